"""The command `deciban`, also as `python -m deciban`: catch signals before anything else is imported."""

import sys

from deciban.util import shutdown


class WithoutPandas:
    """Refuses pandas: the command reads files, and pyarrow would import it where it is there, for a third of a second.

    (None in sys.modules refuses it to Python alone: pyarrow, which is compiled, takes the None for the module.)
    """

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("the command does without pandas", name=name)


def main() -> None:
    """Run the command line and exit with its code."""
    shutdown.catch_signals()
    if any("://" in argument for argument in sys.argv):
        from deciban.sources.addresses import hide_passwords

        hide_passwords()
    sys.meta_path.insert(0, WithoutPandas)
    from deciban.cli import main as run_and_leave

    run_and_leave()


if __name__ == "__main__":
    main()
