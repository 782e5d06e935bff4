"""The tour of the README, done literally: its commands are run in an empty folder and print what it shows."""

from pathlib import Path

import pytest

from tests.support.consoles import follow, steps

pytestmark = pytest.mark.house

ROOT = Path(__file__).parent.parent.parent
# Pages with services are followed in tests/serve/test_documents.py.
SERVICE_PAGES = {"serve.md", "online-learning.md", "monitor.md", "rest.md"}
DOCUMENTS = [
    path
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    if "```console\n" in path.read_text() and path.name not in SERVICE_PAGES
]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_commands_print_what_is_shown(document: Path, tmp_path: Path) -> None:
    follow(document, tmp_path)


def commands_of(document: Path) -> set[str]:
    return {command.split()[1] for command, _ in steps(document) if command.startswith("deciban")}


def test_the_readme_and_the_tour_show_the_common_commands() -> None:
    assert {"fit", "evaluate", "predict", "explain", "report"} <= commands_of(ROOT / "README.md")
    assert {"decide", "learn", "forget", "merge", "bayes", "serve"} <= commands_of(
        ROOT / "docs" / "start" / "command-line.md"
    )
