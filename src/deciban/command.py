"""Where the command `deciban` starts: signals are caught before anything else is imported."""

import sys

from deciban import ending


def main() -> None:
    """Run the command line and exit with its code."""
    ending.catch_signals()
    # The command reads files. pyarrow would import pandas wherever it is installed, which takes a third of a second.
    sys.modules.setdefault("pandas", None)  # type: ignore[arg-type]  # that is how an import is refused
    from deciban.cli import main as run_and_leave

    run_and_leave()
