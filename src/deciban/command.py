"""Where the command `deciban` starts: signals are caught before anything else is imported."""

from deciban import ending


def main() -> None:
    """Run the command line and exit with its code."""
    ending.catch_signals()
    from deciban.cli import main as run_and_leave

    run_and_leave()
