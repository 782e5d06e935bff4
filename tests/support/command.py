"""The command line in this process or in one of its own, and small tables to give it."""

import csv
import io
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from deciban.cli import run
from tests import PATIENCE

HEADER = "age,town,kind"
COSTS = ",no,yes\nno,0,10\nyes,1,0\n"
COMMAND = str(Path(sys.executable).with_name("deciban"))


class Answer(NamedTuple):
    """What a command said."""

    code: int
    out: str
    err: str


Deciban = Callable[..., Answer]


def rows(count: int, seed: int = 1) -> list[str]:
    """Lines of a table whose columns tell something of the class."""
    draw = random.Random(seed)
    lines = []
    for _ in range(count):
        yes = draw.random() < 0.5
        town = draw.choice(["Ulm", "Bern"] if yes else ["Bern", "Graz"])
        lines.append(f"{draw.gauss(50 if yes else 40, 8):.2f},{town},{'yes' if yes else 'no'}")
    return lines


def table(count: int = 200, seed: int = 1) -> str:
    return "\n".join([HEADER, *rows(count, seed)]) + "\n"


def with_line(line: str, at: int, lines: list[str] | None = None) -> str:
    """The table (or these lines) with one more line, which becomes the line of this number."""
    lines = lines or table().splitlines()
    return "\n".join([*lines[: at - 1], line, *lines[at - 1 :]]) + "\n"


def records(text: str) -> list[dict[str, str]]:
    """The rows of a CSV text by the names of their columns."""
    return list(csv.DictReader(io.StringIO(text, newline="")))


def started(*arguments: str, **more: Any) -> subprocess.CompletedProcess[bytes]:
    """The command in a process of its own."""
    return subprocess.run([COMMAND, *arguments], capture_output=True, timeout=PATIENCE, check=False, **more)


@pytest.fixture
def deciban(capfdbinary: pytest.CaptureFixture[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Deciban:
    """The command in an empty folder; a traceback is never fine, and an error is one line."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: object) -> Answer:
        code = run([str(argument) for argument in arguments])
        out, err = (text.decode() for text in capfdbinary.readouterr())
        assert "Traceback" not in err
        if code:
            assert sum(line.startswith("deciban: error: ") for line in err.splitlines()) == 1, err
            assert all(line.startswith("deciban: ") for line in err.splitlines()), err
        else:
            assert "error" not in err
        return Answer(code, out, err)

    return call
