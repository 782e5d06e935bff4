"""Whenever a command is stopped, the files that were there are whole, and none is left that was not meant."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pytest

from deciban.cli import once_more
from deciban.data.scan import connect
from tests.cli.conftest import HEADER, Deciban, rows, table

COMMAND = str(Path(sys.executable).with_name("deciban"))


@pytest.fixture(scope="module")
def long_table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Long enough to be in the middle of it for some seconds."""
    path = tmp_path_factory.mktemp("long") / "long.csv"
    block = "\n".join(rows(20_000)) + "\n"
    with open(path, "w") as file:
        file.write(f"{HEADER}\n")
        for _ in range(120):
            file.write(block)
    return path


def reading(process: subprocess.Popen[bytes], path: Path) -> bool:
    """Whether the process has the file open."""
    for one in Path(f"/proc/{process.pid}/fd").glob("*"):
        try:
            if os.readlink(one) == str(path):
                return True
        except OSError:  # closed in the meantime
            continue
    return False


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc to see how far the command is")
@pytest.mark.parametrize(
    ("command", "number"),
    [
        ("fit", signal.SIGINT),
        ("fit -", signal.SIGTERM),
        ("learn", signal.SIGINT),
        ("predict", signal.SIGTERM),
    ],
)
def test_a_stopped_command_leaves_everything_as_it_was(
    command: str, number: signal.Signals, long_table: Path, deciban: Deciban, model: str
) -> None:
    """Exit code 130 (143 for SIGTERM), one line, the old files byte for byte, no temporary ones."""
    Path("p.csv").write_text("old")
    os.mkdir("tmp")
    before = {name: Path(name).read_bytes() for name in ("base.csv", model, "p.csv")}
    arguments = {
        "fit": ["fit", long_table, "-t", "kind", "-o", model],
        "fit -": ["fit", "-", "-t", "kind", "-o", model],
        "learn": ["learn", model, long_table],
        "predict": ["predict", model, long_table, "-o", "p.csv"],
    }[command]
    with open(long_table, "rb") as file:
        process = subprocess.Popen(
            [COMMAND, *map(str, arguments)],
            stdin=file if command == "fit -" else subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={**os.environ, "TMPDIR": os.path.abspath("tmp")},
        )
    started = time.monotonic()
    begun = (lambda: os.listdir("tmp")) if command == "fit -" else (lambda: reading(process, long_table))
    while not begun():
        assert process.poll() is None
        assert time.monotonic() < started + 30
        time.sleep(0.01)
    time.sleep(0.3)
    process.send_signal(number)
    _, err = process.communicate(timeout=30)
    assert b"Traceback" not in err
    assert b"fault" not in err
    # DuckDB says of any signal that it was interrupted
    assert process.returncode in ({130} if number == signal.SIGINT else {130, 143})
    if process.returncode == 130:
        assert err.strip() == b"deciban: interrupted: nothing was changed"
    assert {name: Path(name).read_bytes() for name in before} == before
    assert os.listdir("tmp") == []
    assert sorted(os.listdir()) == ["base.csv", "m.dcb", "p.csv", "tmp"]


@pytest.mark.parametrize(("kind", "number"), [(KeyboardInterrupt, signal.SIGINT), (SystemExit, signal.SIGTERM)])
def test_a_signal_that_nobody_could_raise_comes_again(
    kind: type[BaseException], number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once Ctrl-C was lost where LLVM calls back into Python: the command went on and replaced the model."""
    came: list[int] = []
    monkeypatch.setattr(signal, "raise_signal", came.append)
    once_more(SimpleNamespace(exc_type=kind))  # type: ignore[arg-type]
    time.sleep(0.3)
    assert came == [number]


def test_a_signal_while_duckdb_connects_is_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    """DuckDB says of a signal during a query that there was a RuntimeError, and setting an option is a query."""
    made, delays = duckdb.connect, [step * 1e-5 for step in range(1, 41)]

    def connect_and_wait() -> None:
        connect()
        time.sleep(1.0)

    def interrupted(*args: Any, **options: Any) -> duckdb.DuckDBPyConnection:
        connection = made(*args, **options)
        signal.setitimer(signal.ITIMER_REAL, delays.pop())
        return connection

    monkeypatch.setattr(duckdb, "connect", interrupted)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        while delays:
            with pytest.raises(KeyboardInterrupt):
                connect_and_wait()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def test_a_table_that_is_read_twice_leaves_no_copy(
    deciban: Deciban, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where reading fails."""
    os.mkdir("tmp")
    monkeypatch.setattr("tempfile.tempdir", os.path.abspath("tmp"))
    for text, code in ((table(), 0), (table() + "40,Ulm\n", 3)):
        Path("wide.csv").write_bytes(text.encode("utf-16"))
        assert deciban("predict", model, "wide.csv").code == code
        assert os.listdir("tmp") == []
