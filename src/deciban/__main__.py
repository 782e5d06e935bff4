"""Entry point of the command `deciban` and of `python -m deciban`. Signals are caught before other imports."""

import sys

from deciban.util import shutdown


class WithoutPandas:
    """Import hook that hides pandas. The command does not need it, and pyarrow's import of it takes 0.3 s.

    `sys.modules["pandas"] = None` is not enough: pyarrow would use the None as the module.
    """

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("the command does not use pandas", name=name)


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
