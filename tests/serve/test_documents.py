"""docs/serving.md and deploy/ tell the truth: examples are run, and lists are those of the program."""

from pathlib import Path

from tests.consoles import follow

ROOT = Path(__file__).parent.parent.parent
SERVING = ROOT / "docs" / "serving.md"


def test_the_examples_print_what_is_shown(tmp_path: Path) -> None:
    follow(SERVING, tmp_path)
