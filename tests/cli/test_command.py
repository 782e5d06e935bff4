"""The command itself: help, version, usage, completion, --debug, --json."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from deciban.cli import app, run
from tests.support.command import COMMAND, COSTS, Deciban, started, table


def test_the_module_is_the_command() -> None:
    found = subprocess.run([sys.executable, "-m", "deciban", "--version"], capture_output=True, check=True)
    assert found.stdout == started("--version").stdout


def test_help_is_there_with_examples_for_every_command(deciban: Deciban) -> None:
    assert "Examples:" in deciban("--help").out
    for name in app.commands:
        answer = deciban(name, "--help")
        assert (answer.code, answer.err) == (0, "")
        assert re.search(rf"Examples?:\n(.*\n)*.*deciban {name}", answer.out)
        for option in ("--json", "--debug"):
            assert option in answer.out


def test_help_fits_into_80_columns(monkeypatch: pytest.MonkeyPatch, deciban: Deciban) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    listed = deciban("--help").out
    for name, command in app.commands.items():
        assert re.search(rf"^  {name} +{re.escape(str(command.short_help))}$", listed, re.MULTILINE)
        assert [line for line in deciban(name, "--help").out.splitlines() if len(line) > 80] == []


def test_help_imports_nothing_heavy() -> None:
    """So that it answers at once."""
    names = [[name, "--help"] for name in app.commands] + [["--help"], ["--version"]]
    code = (
        "import sys, io, contextlib\nfrom deciban.cli import run\nwith contextlib.redirect_stdout(io.StringIO()):\n"
        f"    codes = [run(one) for one in {names!r}]\n"
        "heavy = {'numpy', 'pyarrow', 'duckdb', 'sklearn', 'scipy', 'numba'} & set(sys.modules)\n"
        "print(set(codes), sorted(heavy))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "{0} []\n"


def test_the_version_and_usage(deciban: Deciban) -> None:
    assert re.fullmatch(r"deciban \d+\.\d+\.\d+\n", deciban("--version").out)
    for wrong in (["nonsense"], ["fit"], ["fit", "a.csv"], ["fit", "a.csv", "-t", "x", "-o", "y", "--nonsense"]):
        answer = deciban(*wrong)
        assert (answer.code, "--help" in answer.err) == (2, True)
    assert deciban() == deciban("--help") == deciban("help")
    assert deciban("help", "fit") == deciban("fit", "--help")
    assert deciban("version") == deciban("--version")
    for unknown in (["ftt"], ["help", "ftt"]):
        assert deciban(*unknown).err == "deciban: error: no command 'ftt'; did you mean 'fit'? (see deciban --help)\n"


def test_a_long_option_with_one_dash_is_not_a_short_option_with_a_value(deciban: Deciban, model: str) -> None:
    for wrong, meant in (
        (["fit", "base.csv", "-target", "kind", "-o", "x.dcb"], "-target; did you mean --target?"),
        (["fit", "base.csv", "-t", "kind", "-output=x.dcb"], "-output; did you mean --output?"),
        (["predict", model, "base.csv", "-probabilities"], "-probabilities; did you mean --probabilities?"),
        (["-version"], "-version; did you mean --version?"),
    ):
        answer = deciban(*wrong)
        assert (answer.code, answer.err.startswith(f"deciban: error: unknown option {meant} (see ")) == (2, True)
    Path("target.csv").write_text(table().replace("kind", "arget"))
    for right in (["-t", "arget", "--missing", "-target", "-o", "x.dcb"], ["-targe", "-o", "x.dcb", "--", "-target"]):
        Path("-target").write_text(table().replace("kind", "arge"))
        source = ["target.csv"] if "--" not in right else []
        assert deciban("fit", *source, "--tune", "none", *right).code == 0


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell: str, deciban: Deciban) -> None:
    script = deciban("completion", shell).out
    assert "_DECIBAN_COMPLETE" in script
    assert json.loads(deciban("completion", shell, "--json").out)["script"].strip() == script.strip()
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=script.encode(), check=True)
        asked = {**os.environ, "_DECIBAN_COMPLETE": "bash_complete", "COMP_WORDS": "deciban\npre", "COMP_CWORD": "1"}
        assert subprocess.run([COMMAND], env=asked, capture_output=True, check=False).stdout == b"plain,predict\n"


def test_debug_shows_where_an_error_comes_from(capsys: pytest.CaptureFixture[str]) -> None:
    assert (run(["inspect", "no.dcb"]), "Traceback" in capsys.readouterr().err) == (5, False)
    for arguments in (["inspect", "no.dcb", "--debug"], ["--debug", "inspect", "no.dcb"]):
        assert (run(arguments), "Traceback" in capsys.readouterr().err) == (5, True)


def test_every_command_has_json(deciban: Deciban, model: str) -> None:
    """One JSON value, or one a line; numbers that JSON does not have are null."""
    Path("costs.csv").write_text(COSTS)
    Path("few.csv").write_text(table(20, seed=5))
    for command in (
        ["fit", "base.csv", "-t", "kind", "-o", "x.dcb"],
        ["predict", model, "base.csv", "-p"],
        ["predict", model, "base.csv", "-o", "p.csv"],
        ["explain", model, "base.csv"],
        ["decide", model, "base.csv", "--costs", "costs.csv"],
        ["evaluate", model, "base.csv"],
        ["diagnose", model, "base.csv"],
        ["learn", model, "few.csv", "-o", "y.dcb"],
        ["merge", model, "y.dcb", "-o", "z.dcb", "--force"],
        ["forget", "y.dcb", "few.csv"],
        ["inspect", model],
        ["sample", model],
        ["bayes", "--prior", "0.05", "--sensitivity", "0.9", "--false-positive", "0.08"],
        ["demo"],
        ["demo", "--files", "tour"],
    ):
        answer = deciban(*command, "--json")
        assert answer.code == 0, answer.err
        lines = answer.out.splitlines()
        assert lines
        for line in lines:
            json.loads(line, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
