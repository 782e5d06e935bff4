"""Outputs are checked before any work, replace nothing by mistake, and are safe for terminals and spreadsheets."""

import csv
import io
import os
import pty
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from deciban import load
from deciban.cli import run
from tests import PATIENCE
from tests.support.command import COMMAND, COSTS, HEADER, Deciban, records, rows, started, table

EVIL = "\x1b[31mred\x1b]0;title\x07\x9b1m\u202eleft\u2066"
OBEYED = set("\x00\x07\x1b\x7f\x9b\u202e\u2066")


def test_the_output_is_checked_before_any_work(deciban: Deciban) -> None:
    """The table is not even there."""
    os.mkdir("folder")
    for path, words in (("no/m.dcb", "no/m.dcb: the folder no does not exist"), ("folder", "folder: this is a folder")):
        answer = deciban("fit", "not-there.csv", "-t", "kind", "-o", path)
        assert (answer.code, words in answer.err) == (5, True)


def test_what_can_be_known_is_checked_before_the_table_is_read(
    deciban: Deciban, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table is broken far behind what is read ahead; standard input is not even opened."""
    monkeypatch.setattr(sys, "stdin", None)
    Path("long.csv").write_text("\n".join([HEADER, *rows(1_000) * 3_000, "40,Ulm", *rows(10)]))
    Path("costs.csv").write_text(COSTS.replace("yes", "yse"))
    fit, predict, decide = ["fit", "-t", "kind", "-o", "x.dcb"], ["predict", model], ["decide", model]
    for command, words, code in (
        ([*fit, "-", "--prior", "foo"], "--prior foo: choose empirical", 2),
        ([*fit, "-", "--prior", "yes=0.5,no=0.6"], "the prior probabilities sum to 1.1; they must sum to 1", 2),
        ([*fit, "-", "--prior", "yes=0.5,no=x"], "give a number for each class", 2),
        ([*fit, "long.csv", "--prior", "yes=0.4,nein=0.6"], "no probability for the class 'no'", 2),
        ([*fit, "-", "--family", "age=Gauss"], "--family age=Gauss", 2),
        ([*fit, "-", "--alpha", "-1"], "alpha", 2),
        ([*fit, "long.csv", "--family", "aeg=Gaussian"], "no column 'aeg' in the table; did you mean 'age'", 2),
        ([*fit, "long.csv", "--family", "town,kind=JointTable"], "no column 'kind' in the table", 2),
        ([*fit, "long.csv", "--weight", "w"], "no weight column 'w'", 3),
        ([*predict, "-", "-o", "x.txt"], "x.txt: unsupported file type", 2),
        ([*predict, "long.csv", "--keep", "id", "-o", "x.csv"], "--keep id: no such column", 2),
        ([*decide, "-", "--costs", "costs.csv", "-o", "x.csv"], "costs.csv", 3),
        ([*decide, "-", "--costs", "not.csv", "-o", "x.csv"], "not.csv: no such file", 5),
        (["evaluate", model, "-", "--costs", "costs.csv"], "costs.csv", 3),
    ):  # fmt: skip
        answer = deciban(*command)
        assert (answer.code, words in answer.err) == (code, True), (command, answer.err)
    assert sorted(os.listdir()) == ["base.csv", "costs.csv", "long.csv", "m.dcb"]


def test_files_without_permission_are_refused(
    model: str, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By somebody who is not root."""
    Path("mine.dcb").write_bytes(b"")
    Path("old.dcb").write_bytes(b"")
    os.chmod("old.dcb", 0o666)  # can be written, and not replaced
    Path("secret.csv").write_text("a")
    os.chmod("mine.dcb", 0o400)
    os.chmod("secret.csv", 0o000)
    os.chmod(".", 0o555)

    def as_nobody(*arguments: str) -> tuple[int, bytes]:
        child = os.fork()
        if child == 0:
            try:
                if os.getuid() == 0:
                    os.setgroups([])
                    os.setgid(65534)
                    os.setuid(65534)
                os._exit(run(arguments))
            finally:
                os._exit(99)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), capfdbinary.readouterr().err

    try:
        for command, words in (
            (("fit", "base.csv", "-t", "kind", "-o", "mine.dcb"), b"mine.dcb: permission denied"),
            (
                ("fit", "base.csv", "-t", "kind", "-o", "new.dcb"),
                b"new.dcb: permission denied to write in the folder .",
            ),
            (
                ("fit", "not-there.csv", "-t", "kind", "-o", "old.dcb"),
                b"old.dcb: permission denied to write in the folder .",
            ),
            (("predict", model, "secret.csv"), b"secret.csv: permission denied"),
        ):
            code, err = as_nobody(*command)
            assert (code, words in err) == (5, True), err
    finally:
        os.chmod(".", 0o755)


def test_an_input_is_never_the_output(deciban: Deciban, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also under another name, as one of the files of a folder or a glob, in SQL, or by standard input."""
    os.symlink("base.csv", "soft.csv")
    os.link("base.csv", "hard.csv")
    os.link(model, "model.csv")
    os.mkdir("all")
    Path("all/a.csv").write_text(table())
    Path("costs.csv").write_text(COSTS)
    before = {name: Path(name).read_bytes() for name in ("base.csv", model, "all/a.csv", "costs.csv")}
    for command in (
        ["fit", "base.csv", "-t", "kind", "-o", "soft.csv"],
        ["fit", "base.csv", "-t", "kind", "-o", "hard.csv", "--force"],
        ["fit", "all", "-t", "kind", "-o", "all/a.csv", "--force"],
        ["fit", "sql: select * from 'base.csv'", "-t", "kind", "-o", "base.csv", "--force"],
        ["fit", "-", "-t", "kind", "-o", "soft.csv"],
        ["predict", model, "base.csv", "-o", "./base.csv"],
        ["predict", model, "b*.csv", "-o", "base.csv"],
        ["predict", model, "all", "-o", "all/a.csv"],
        ["predict", model, "base.csv", "-o", "model.csv"],
        ["predict", model, "-", "-o", "base.csv"],
        ["predict", model, "sql: select * from 'base.csv'", "-o", "hard.csv"],
        ["predict", model, 'sql: from "soft.csv"', "-o", "base.csv"],
        ["predict", model, "sql: from read_csv(['all/a.csv', 'b*.csv'])", "-o", "base.csv"],
        ["decide", model, "sql: with t as (from read_csv($$base.csv$$)) from t", "-o", "base.csv"],
        ["decide", model, "base.csv", "--costs", "costs.csv", "-o", "costs.csv"],
        ["learn", model, "base.csv", "-o", "hard.csv"],
        ["merge", model, model, "-o", model],
    ):
        with open("base.csv") as file:
            monkeypatch.setattr(sys, "stdin", file)
            answer = deciban(*command)
        assert (answer.code, "output and input are the same file" in answer.err) == (2, True), command
    assert {name: Path(name).read_bytes() for name in before} == before
    assert deciban("predict", model, "sql: select *, 'other.csv' as name from 'base.csv'", "-o", "other.csv").code == 0


def test_what_is_read_is_not_appended_to(deciban: Deciban, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with open("base.csv", "a") as file:
        monkeypatch.setattr(sys, "stdout", file)
        answer = deciban("predict", model, "base.csv")
    assert (answer.code, "standard output: output and input are the same file" in answer.err) == (2, True)
    assert Path("base.csv").read_text() == table()


def test_a_model_replaces_only_a_model(deciban: Deciban, model: str) -> None:
    Path("notes.txt").write_text("mine")
    Path("empty.dcb").touch()
    Path("few.csv").write_text(table(20, seed=5))
    for command in (
        ["fit", "base.csv", "-t", "kind"],
        ["fit", "sql: select * from 'base.csv'", "-t", "kind"],
        ["learn", model, "few.csv"],
        ["forget", model, "base.csv"],
        ["merge", model],
    ):
        answer = deciban(*command, "--output", "notes.txt")
        assert (answer.code, "notes.txt: this file exists and is not a model" in answer.err) == (2, True)
        assert Path("notes.txt").read_text() == "mine"
    for path, more in ((model, ()), ("empty.dcb", ()), ("notes.txt", ("--force",))):
        assert deciban("fit", "base.csv", "-t", "kind", "-o", path, "--tune", "none", *more).code == 0
        assert load(path).counts_.rows == 200


def test_a_full_disk(deciban: Deciban, model: str) -> None:
    """It is said which file has no room, and the old one is whole."""
    answer = deciban("fit", "base.csv", "-t", "kind", "-o", "/dev/full")
    assert (answer.code, "/dev/full: No space left" in answer.err) == (5, True)
    before = Path(model).read_bytes()

    def narrow() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))

    found = started("fit", "base.csv", "-t", "kind", "-o", model, "--tune", "none", preexec_fn=narrow)
    assert (found.returncode, b"m.dcb: File too large" in found.stderr) == (5, True)
    assert Path(model).read_bytes() == before
    assert sorted(os.listdir()) == ["base.csv", "m.dcb"]


def test_spreadsheets_run_nothing(deciban: Deciban) -> None:
    """Cells, names of columns and classes that look like formulas get an apostrophe; --no-escape leaves them."""
    formulas = ["=1+1", "+A1", "-A1+2", "@sum", "\tx", "\rx"]
    harmless = ["-5", "+7.5", "-1e5", "a=b", "plain"]
    lines = [f'{i},"{cell}",{"=yes" if i % 2 else "@no"}' for i, cell in enumerate((formulas + harmless) * 4)]
    Path("a.csv").write_text("\n".join(["=n,@town,kind", *lines]), newline="")
    assert deciban("fit", "a.csv", "-t", "kind", "-o", "m.dcb", "--tune", "none").code == 0
    for command in (["predict", "m.dcb", "a.csv", "-p"], ["decide", "m.dcb", "a.csv"], ["sample", "m.dcb"]):
        for row in csv.reader(io.StringIO(deciban(*command).out, newline="")):
            for cell in row:
                assert not re.match(r"[=@\t\r]|[+-](?![0-9.])", cell), cell
    found = records(deciban("predict", "m.dcb", "a.csv").out)
    assert [row["'@town"] for row in found[:11]] == [*("'" + cell for cell in formulas), *harmless]
    assert found[0]["predicted"] in ("'=yes", "'@no")
    raw = records(deciban("predict", "m.dcb", "a.csv", "--no-escape").out)
    assert [row["@town"] for row in raw[:11]] == formulas + harmless


def test_terminals_obey_nothing_that_stands_in_data(deciban: Deciban) -> None:
    """Neither in columns, categories and classes nor in names of files and options."""
    Path("a.csv").write_text(f'"{EVIL}",kind\n' + "".join(f"{EVIL}{i % 3},{EVIL}{i % 2}\n" for i in range(40)))
    Path(f"{EVIL}.csv").write_text("x\n1\n")
    for command in (
        ["fit", "a.csv", "-t", "kind", "-o", "m.dcb"],
        ["inspect", "m.dcb"],
        ["inspect", "m.dcb", "--json"],
        ["explain", "m.dcb", "a.csv"],
        ["explain", "m.dcb", "a.csv", "--steps"],
        ["explain", "m.dcb", "a.csv", "--json"],
        ["evaluate", "m.dcb", "a.csv"],
        ["evaluate", "m.dcb", "a.csv", "--json"],
        ["diagnose", "m.dcb", "a.csv"],
        ["fit", "a.csv", "-t", EVIL + "!", "-o", "x.dcb"],
        ["fit", EVIL, "-t", "x", "-o", "x.dcb"],
        ["predict", "m.dcb", f"{EVIL}.csv"],
        ["predict", "m.dcb", "a.csv", "--keep", EVIL + "!"],
        ["fit", "a.csv", "-t", "kind", "-o", f"{EVIL}.dcb"],
        [EVIL],
    ):
        answer = deciban(*command)
        assert not OBEYED & set(answer.out + answer.err), command
        assert "red" in answer.out + answer.err, command  # it was shown, and made harmless


def test_a_terminal_shows_predictions_and_does_not_obey_them(tmp_path: Path, deciban: Deciban) -> None:
    """What a file gets unchanged, a terminal gets made harmless; colors are for terminals alone."""
    Path("a.csv").write_text("v,kind\n" + "".join(f"{EVIL}{i % 3},{'yn'[i % 2]}\n" for i in range(40)))
    assert "\x1b" not in deciban("fit", "a.csv", "-t", "kind", "-o", "m.dcb", "--tune", "none").out
    assert EVIL in deciban("predict", "m.dcb", "a.csv").out
    outer, inner = pty.openpty()
    process = subprocess.Popen([COMMAND, "predict", "m.dcb", "a.csv"], stdout=inner, stderr=inner, stdin=inner)
    os.close(inner)
    seen = b""
    try:
        while part := os.read(outer, 4096):
            seen += part
    except OSError:  # the end, on Linux
        pass
    os.close(outer)
    assert process.wait(timeout=PATIENCE) == 0
    assert b"predicted" in seen
    shown = re.sub(r"\r[^\r\n]*\x1b\[K", "", seen.decode())  # without the progress of a slow machine
    assert not OBEYED & set(shown)


def test_whoever_reads_the_output_may_stop(tmp_path: Path, model: str) -> None:
    """`| head` is quiet, and fine."""
    Path("long.csv").write_text(table(60_000))
    line = f"{COMMAND} predict {model} long.csv | head -n 1; exit ${{PIPESTATUS[0]}}"
    found = subprocess.run(["bash", "-c", line], capture_output=True, timeout=PATIENCE, check=False)
    assert (found.returncode, found.stderr, found.stdout.count(b"\n")) == (0, b"", 1)
