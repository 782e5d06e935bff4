"""Completion by the shell."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete, get_completion_class

from deciban.cli import app
from tests.support.command import COMMAND, Deciban, started

TABLE = 'Passenger ID,age,"last, first",a=b,kind\n1,2,x,3,yes\n2,3,y,4,no\n'


def completion(shell: str) -> ShellComplete:
    kind = get_completion_class(shell)
    assert kind is not None
    return kind(app, {}, "deciban", "_DECIBAN_COMPLETE")


def complete(words: str, shell: str = "bash") -> list[str]:
    """The lines for the last of these words, which are separated as by bash."""
    given = words.split(" ") if "\n" not in words else words.split("\n")
    separator = "\n" if shell == "bash" else " "
    os.environ |= {"COMP_WORDS": separator.join(["deciban", *given]), "COMP_CWORD": str(len(given))}
    if shell == "fish":
        os.environ["COMP_CWORD"] = given[-1]
    try:
        return completion(shell).complete().splitlines()
    finally:
        del os.environ["COMP_WORDS"], os.environ["COMP_CWORD"]


@pytest.fixture
def files(deciban: Deciban, model: str) -> None:
    Path("t.csv").write_text(TABLE)
    Path("semi.txt").write_text("a;b\n1;2\n")
    Path("rows.jsonl").write_text('{"x y": 1, "z": 2}\n')
    Path("picture.png").touch()
    Path("sub").mkdir()
    Path("sub/n.dcb").write_bytes(Path(model).read_bytes())


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (["predict"], "file"),
        (["predict", "m.dcb"], "file"),
        (["evaluate"], "file"),
        (["merge", "a.dcb"], "file"),
        (["fit", "t.csv", "--output"], "file"),
        (["decide", "m.dcb", "t.csv", "--costs"], "file"),
        ([], "plain"),
        (["help"], "plain"),
    ],
)
def test_files_are_completed_where_files_are_meant(words: list[str], kind: str) -> None:
    found = completion("bash").get_completions(words, "")
    assert {item.type for item in found} == {kind}


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("fit t.csv --target ki", ["kind"]),
        ("fit t.csv --target = ki", ["kind"]),
        ("fit t.csv -t KI", ["kind"]),
        ("fit t.csv -t nothing", []),
        ("fit --target k", []),
        ("fit no.csv --target k", []),
        ("fit - --target k", []),
        ("fit t.csv --weight a", ["age", "a=b"]),
        ("fit t.csv --ignore age --ignore a", ["a=b"]),
        ("fit\nt.csv\n--ignore\nPassenger\\ I", ["Passenger ID"]),
        ("fit semi.txt --target ", ["a", "b"]),
        ("fit semi.txt --delimiter , --target ", ["a;b"]),
        ("fit rows.jsonl --target ", ["x y", "z"]),
        ("fit *.csv --target ki", ["kind"]),
        ("fit t.csv --type ag", ["age="]),
        ("fit t.csv --type age = d", ["date"]),
        ("fit t.csv --family ag", ["age="]),
        ("fit t.csv --family age,k", ["age,kind="]),
        ("fit t.csv --family age = ga", ["Gamma", "Gaussian"]),
        ("fit t.csv --no-header --target column1", ["column1"]),
        ("predict m.dcb t.csv --keep kind,ag", ["kind,age"]),
        ("predict\nm.dcb\nt.csv\n--keep\n'\"la", ['"last, first"']),
        ("predict m.dcb --ignore to", ["town"]),
        ("evaluate m.dcb t.csv -t ki", ["kind"]),
        ("evaluate m.dcb -t ki", ["kind"]),
        ("plot m.dcb --column a", ["age"]),
        ("plot m.dcb --column age --column ", ["town", "kind"]),
        ("plot m.dcb --class ", ["no", "yes"]),
        ("sample m.dcb --class y", ["yes"]),
        ("plot t.csv --class ", []),
        ("fit sub --target a", []),
    ],
)
def test_columns_and_classes_come_from_the_header(words: str, found: list[str]) -> None:
    assert [line.partition(",")[2] for line in complete(words)] == found


@pytest.mark.usefixtures("files")
def test_files_are_filtered_by_their_kind() -> None:
    def names(words: str) -> list[str]:
        return [line.removeprefix("path,") for line in complete(words)]

    assert names("predict ") == ["m.dcb", "sub"]
    assert names("serve s") == ["sub"]
    assert names("predict sub/") == ["sub/n.dcb"]
    assert names("fit ") == ["base.csv", "rows.jsonl", "semi.txt", "sub", "t.csv"]
    assert names("evaluate m") == ["m.dcb"]
    assert complete("fit pic") == ["file,pic"]  # there is no table: any file
    assert complete("predict ", "zsh") == ["file", "*.dcb"]
    assert complete("predict ", "fish") == ["path,m.dcb", "path,sub/"]
    assert complete("fit t.csv --target=ki", "zsh") == ["plain", "--target=kind"]
    assert complete("fit t.csv --family age=pois", "fish") == ["plain,age=Poisson"]
    assert complete("fit t.csv --output ", "zsh") == ["file", "_"]


@pytest.mark.usefixtures("files")
def test_errors_complete_nothing_and_print_nothing() -> None:
    Path("broken.dcb").write_bytes(b"deciban\n" + b"\xff" * 30)
    Path("broken.csv").write_bytes(b"\xff\xfe\0")
    for words in ("plot broken.dcb --column ", "fit broken.csv --target ", "fit --nonsense --target "):
        given = ["deciban", *words.split(" ")]
        asked = {"COMP_WORDS": "\n".join(given), "COMP_CWORD": str(len(given) - 1)}
        answer = started(env={**os.environ, **asked, "_DECIBAN_COMPLETE": "bash_complete"})
        assert (answer.stdout, answer.stderr) == (b"\n", b"")


@pytest.mark.usefixtures("files")
def test_a_header_is_read_without_heavy_packages() -> None:
    code = (
        "import os, sys\nos.environ |= {'COMP_WORDS': 'deciban\\nfit\\nt.csv\\n-t\\nki', 'COMP_CWORD': '4'}\n"
        "from deciban.cli import app\nfrom click.shell_completion import get_completion_class\n"
        "print(get_completion_class('bash')(app, {}, 'deciban', '_DECIBAN_COMPLETE').complete(),\n"
        "      sorted({'numpy', 'pyarrow', 'duckdb', 'sklearn', 'scipy', 'numba'} & set(sys.modules)))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert found.stdout == "plain,kind []\n"


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@pytest.mark.usefixtures("files")
def test_bash_completes_columns(deciban: Deciban) -> None:
    """It quotes only what it takes for files, so columns with blanks are such; else it falls back to files."""
    script = deciban("completion", "bash").out
    asked = (
        "COMP_WORDS=(deciban fit t.csv -t '{}')\nCOMP_CWORD=4\ncompopt() {{ echo compopt \"$2\"; }}\n"
        "_deciban_completion {}\nprintf '<%s>\\n' \"${{COMPREPLY[@]}}\"\n"
    )
    done = subprocess.run(
        ["bash", "-c", script + asked.format("P", COMMAND) + asked.format("k", COMMAND) + "complete -p deciban"],
        capture_output=True,
        text=True,
        check=True,
    )
    *found, registered = done.stdout.splitlines()
    assert found == ["compopt filenames", "<Passenger ID>", "<kind>"]
    assert {"bashdefault", "default", "nosort"} <= set(registered.split())


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@pytest.mark.parametrize("option", ["--type", "--family", "--target"])
@pytest.mark.parametrize("typed", ["a", "'a", '"a', "b", "'b", '"b', "c", "'c", '"c'])
def test_a_completed_name_runs_no_command(option: str, typed: str, tmp_path: Path, deciban: Deciban) -> None:
    """Bash runs a command line with what it would insert; names of columns are of whoever has written the table."""
    names = ["a;touch RUN;", "b$(touch RUN)", "c`touch RUN`"]
    (tmp_path / "h.csv").write_text(",".join([*names, "kind"]) + "\n1,2,3,4\n")
    ask = (
        deciban("completion", "bash").out
        + f"set -f; compopt() {{ quote=1; }}\nCOMP_WORDS=(deciban fit h.csv {option} {shlex.quote(typed)})\n"
        f"COMP_CWORD=4\n_deciban_completion {COMMAND}\n"
        'for found in "${COMPREPLY[@]}"; do printf "%s\\n" "$found"; done'
    )
    done = subprocess.run(["bash", "-c", ask], cwd=tmp_path, capture_output=True, text=True, check=True)
    found = done.stdout.splitlines()
    assert not (tmp_path / "RUN").exists()
    column, quote = names["abc".index(typed[-1])], typed[:-1]
    if column.startswith("a") or quote == "'":
        sign = "" if option == "--target" else "="
        assert len(found) == 1
        raw = found[0].replace("\\", "") if not quote else found[0]
        assert raw == column + sign
    else:
        assert found == []  # bash would run it
    if option != "--target":  # inserted as it is, in the quotes that are open
        for one in found:
            subprocess.run(["bash", "-c", f": {quote}{one}{quote}"], cwd=tmp_path, check=True)
        assert not (tmp_path / "RUN").exists()


@pytest.mark.skipif(shutil.which("fish") is None, reason="there is no fish")
@pytest.mark.usefixtures("files")
def test_fish_completes_columns_and_models(deciban: Deciban) -> None:
    script = deciban("completion", "fish").out
    for line, found in (("fit t.csv --target ki", "kind\n"), ("predict m", "m.dcb\n"), ("predict su", "sub/\n")):
        asked = f"set -x PATH {Path(COMMAND).parent} $PATH\n{script}\ncomplete -C 'deciban {line}'"
        done = subprocess.run(["fish", "--no-config", "-c", asked], capture_output=True, text=True, check=True)
        assert done.stdout == found


@pytest.mark.skipif(shutil.which("zsh") is None, reason="there is no zsh")
def test_zsh_accepts_the_script(deciban: Deciban) -> None:
    subprocess.run(["zsh", "-f", "-n"], input=deciban("completion", "zsh").out, text=True, check=True)
