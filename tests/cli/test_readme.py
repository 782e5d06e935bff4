"""The tour of the README, done literally: its commands are run in an empty folder and print what it shows."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.house

ROOT = Path(__file__).parent.parent.parent
DOCUMENTS = [
    path for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))) if "```console\n" in path.read_text()
]


def steps(document: Path) -> list[tuple[str, str]]:
    """The commands of a document and what they print, in their order."""
    found = []
    for block in re.findall(r"```console\n(.*?)```", document.read_text(), re.DOTALL):
        for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, printed = step.partition("\n")
            found.append((command, printed))
    return found


def as_pattern(printed: str) -> str:
    """A pattern for the output in which a line "..." stands for any lines."""
    parts = [re.escape(part) for part in re.split(r"^\.\.\.\n", printed, flags=re.MULTILINE)]
    return "(.*\n)*".join(parts)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_the_commands_print_what_is_shown(document: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    folder = tmp_path
    for command, printed in steps(document):
        if command.startswith("cd "):
            folder /= command.removeprefix("cd ")
            continue
        done = subprocess.run(
            ["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        shown = "\n".join(line.rstrip() for line in done.stdout.splitlines()) + ("\n" if done.stdout else "")
        assert re.fullmatch(as_pattern(printed), shown), f"{command}\n{shown}"


def test_the_readme_has_a_tour() -> None:
    commands = [command.split()[1] for command, _ in steps(ROOT / "README.md") if command.startswith("deciban")]
    assert {"fit", "predict", "explain", "evaluate", "decide", "learn", "merge", "bayes"} <= set(commands)
