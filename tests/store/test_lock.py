"""Two commands that change one model file do so one after the other."""

import fcntl
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from deciban import BayesClassifier, load
from deciban.cli import run
from deciban.serve.online.learner import Learner
from deciban.serve.settings import LearnSettings
from deciban.store import lock, model_file
from tests import PATIENCE

HEADER = "size,town,kind\n"


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    for name, first in (("base", 0), ("one", 20), ("two", 40)):
        lines = (f"{i},{'Ulm' if i % 3 else 'Bern'},{'yes' if i % 2 else 'no'}\n" for i in range(first, first + 20))
        Path(f"{name}.csv").write_text(HEADER + "".join(lines))
    BayesClassifier(tune=None).fit("base.csv", "kind").save("m.dcb")
    return "m.dcb"


# Reads a number, and some time later replaces the file by one with the next number: what learning does, in short.
CHANGE = """
import os, sys, time
from deciban.store.lock import lock_for_change
for turn in range(5):
    with lock_for_change("number", lambda words: None):
        number = int(open("number").read())
        time.sleep(0.005)
        name = f"{os.getpid()}.part"
        with open(name, "w") as file:
            file.write(str(number + 1))
        os.replace(name, "number")
"""


def test_of_several_processes_at_once_none_is_lost(tmp_path: Path) -> None:
    (tmp_path / "number").write_text("0")
    several = [subprocess.Popen([sys.executable, "-c", CHANGE], cwd=tmp_path) for _ in range(3)]
    assert [one.wait(timeout=PATIENCE) for one in several] == [0, 0, 0]
    assert (tmp_path / "number").read_text() == "15"
    assert os.listdir(tmp_path) == ["number"]


def test_the_second_waits_says_so_and_sees_what_the_first_wrote(model: str, capfd: pytest.CaptureFixture[str]) -> None:
    """The file that it waited for has been replaced by then."""
    changed = load(model).partial_fit("two.csv", "kind").fitted_
    first = os.open(model, os.O_RDWR)
    fcntl.flock(first, fcntl.LOCK_EX)

    def end() -> None:
        model_file.save(model, changed)
        os.close(first)

    timer = threading.Timer(0.3, end)
    timer.start()
    assert run(["learn", model, "one.csv"]) == 0
    timer.join()
    said = f"note: {model}: the model is locked by another command or service; waiting"
    assert said in capfd.readouterr().err
    assert load(model).counts_.rows == 60


def test_the_second_does_not_wait_for_ever(model: str, capfd: pytest.CaptureFixture[str]) -> None:
    before = Path(model).read_bytes()
    with open(model, "rb") as first:
        fcntl.flock(first, fcntl.LOCK_EX)
        for command in (["learn", model, "one.csv"], ["forget", model, "base.csv", "--output", "./m.dcb"]):
            for wait in ("0.2", "0"):
                assert run([*command, "--wait", wait]) == 5
                said = capfd.readouterr().err
                assert "the model is locked by another command or service; try again" in said
                assert ("; waiting" in said) == (wait != "0")
        Path("copy.dcb").write_bytes(before)
        for command in (["fit", "one.csv", "-t", "kind"], ["merge", "copy.dcb"]):
            assert run([*command, "--output", model]) == 2
            assert "the model is in use by a learning service or another command" in capfd.readouterr().err
        assert run(["learn", model, "one.csv", "--output", "other.dcb"]) == 0
        assert run(["predict", model, "one.csv"]) == 0
    assert Path(model).read_bytes() == before


def test_where_files_cannot_be_locked_that_is_said(
    model: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(file: int, how: int) -> None:
        raise OSError(lock.CANNOT_LOCK[0], "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    assert run(["learn", model, "one.csv"]) == 0
    assert "locks are not supported here" in capfd.readouterr().err


def test_a_model_with_a_journal_is_not_changed_by_commands(model: str, capfd: pytest.CaptureFixture[str]) -> None:
    """The journal of a service that learns belongs to the file as it is; with another one it would not start."""
    before = Path(model).read_bytes()
    run(["fit", "one.csv", "-t", "kind", "--output", "other.dcb"])
    with Learner.open(model, LearnSettings(), lambda state: None):
        pass  # it leaves its journal
    commands = [["fit", "one.csv", "-t", "kind", "-o", model], ["merge", "other.dcb", "-o", model]]
    commands += [
        ["learn", model, "one.csv"],
        ["forget", model, "base.csv"],
        ["learn", "other.dcb", "two.csv", "-o", model],
    ]
    commands.append(["fit", "one.csv", "-t", "kind", "-o", model, "--force"])
    for command in commands:
        assert run(command) == 2, command
        assert "a learning service left its journal next to the model (m.dcb.journal)" in capfd.readouterr().err
    assert Path(model).read_bytes() == before
    os.remove(f"{model}.journal")
    assert run(["learn", model, "one.csv"]) == 0
