"""Whenever a command is stopped, the files that were there are whole, and none is left that was not meant."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import duckdb
import pytest

from deciban.sources.duckdb import connect
from tests import PATIENCE
from tests.support.command import HEADER, Deciban, rows, table

ROOT = Path(__file__).parent.parent.parent
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
    """Whether the process has the file open, or one in this folder."""
    for one in Path(f"/proc/{process.pid}/fd").glob("*"):
        try:
            if os.readlink(one).startswith(str(path)):
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
        ("fit -", signal.SIGHUP),
        ("learn", signal.SIGINT),
        ("predict", signal.SIGTERM),
    ],
)
def test_a_stopped_command_leaves_everything_as_it_was(
    command: str, number: signal.Signals, long_table: Path, deciban: Deciban, model: str
) -> None:
    """Exit code 130 (143 for SIGTERM, 129 for SIGHUP), one line, the old files byte for byte, no temporary ones."""
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
    read = Path("tmp").absolute() if command == "fit -" else long_table  # a copy, which no folder shows
    while not reading(process, read):
        assert process.poll() is None
        assert time.monotonic() < started + PATIENCE
        time.sleep(0.01)
    time.sleep(0.3)
    process.send_signal(number)
    _, err = process.communicate(timeout=PATIENCE)
    assert b"Traceback" not in err
    word = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated", signal.SIGHUP: "hung up"}[number]
    assert err.decode().strip() == f"deciban: {word}: nothing was changed"
    assert process.returncode == 128 + number
    assert {name: Path(name).read_bytes() for name in before} == before
    assert os.listdir("tmp") == []
    assert sorted(os.listdir()) == ["base.csv", "m.dcb", "p.csv", "tmp"]


AT_IMPORT = """
import os, sys
class Signal:
    def find_spec(self, name, *rest):
        if name == {module!r}:
            os.kill(os.getpid(), {number})
sys.meta_path.insert(0, Signal())
import atexit
atexit.register(os.kill, os.getpid(), {number})
from deciban.__main__ import main
main()
"""


@pytest.mark.parametrize(
    ("module", "number", "code"),
    [
        ("click", signal.SIGINT, 130),
        ("numpy._core.multiarray", signal.SIGINT, 130),
        ("pyarrow.lib", signal.SIGTERM, 143),
        ("none", signal.SIGINT, 0),
    ],
)
def test_a_signal_while_modules_are_imported_or_at_the_exit_is_no_fault(
    module: str, number: int, code: int, deciban: Deciban, model: str
) -> None:
    """Where an exception would come out of a half imported extension; nothing runs any more when all is said."""
    script = AT_IMPORT.format(module=module, number=int(number))
    done = subprocess.run([sys.executable, "-c", script, "inspect", model], capture_output=True, timeout=PATIENCE)
    word = {130: b"deciban: interrupted: nothing was changed\n", 143: b"deciban: terminated: nothing was changed\n"}
    assert (done.returncode, done.stderr) == (code, word.get(code, b""))


def test_an_ignored_signal_stays_ignored() -> None:
    """That of nohup."""
    script = (
        "import os; from deciban.util import shutdown; shutdown.catch_signals(); os.kill(os.getpid(), 1); os._exit(7)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)
    )
    assert done.returncode == 7


def test_programs_that_tests_start_do_not_ignore_signals_as_under_nohup() -> None:
    """See restore_signals in conftest.py: the tests of this file would fail under nohup, or in the background."""
    child = [sys.executable, "-c", "import signal; print([k for k in (1, 2, 3, 15) if signal.getsignal(k) == 1])"]
    script = f"import subprocess, conftest; conftest.restore_signals(); subprocess.run({child!r})"

    def ignore() -> None:
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
            signal.signal(number, signal.SIG_IGN)

    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, preexec_fn=ignore, capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


def test_an_interrupt_tells_what_was_written_before_and_removes_the_rest(tmp_path: Path) -> None:
    script = """
import os, signal
from deciban.util import shutdown
from deciban.sources.write import replace_file
shutdown.catch_signals()
with replace_file("done.txt") as file:
    file.write(b"all")
os.makedirs("folder/inner")
open("folder/inner/file", "w").close()
shutdown.remove_at_exit("folder")
with replace_file("half.txt") as file:
    file.write(b"half")
    os.kill(os.getpid(), signal.SIGINT)
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, timeout=PATIENCE)
    assert (done.returncode, done.stderr) == (130, b"deciban: interrupted: done.txt had been written\n")
    assert os.listdir(tmp_path) == ["done.txt"]


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
