"""The command `plot`: every kind of picture in every kind of file, and what it refuses."""

import json
import os
from pathlib import Path

import pytest

from tests.support.command import COSTS, Deciban, table

BEGINNINGS = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}


@pytest.fixture
def ready(model: str) -> str:
    Path("costs.csv").write_text(COSTS)
    Path("new.csv").write_text(table(120, seed=5))
    return model


@pytest.mark.parametrize(
    "command",
    [
        ["new.csv", "--kind", "evidence"],
        ["new.csv", "--kind", "evidence", "--row", "7", "--class", "yes", "--against", "no"],
        ["--kind", "nomogram"],
        ["--kind", "nomogram", "--class", "no", "--column", "town"],
        ["--kind", "column", "--column", "town"],
        ["--kind", "pair", "--column", "town", "--column", "age"],
        ["--kind", "decision", "--column", "age"],
        ["--kind", "decision", "--column", "age", "--costs", "costs.csv", "--prior", "no=0.9,yes=0.1"],
        ["--kind", "decision", "--column", "age", "--boundary", "40"],
        ["new.csv", "--kind", "decision", "--column", "age", "--y-axis", "posterior"],
        ["new.csv", "--kind", "reliability"],
        ["new.csv", "--kind", "coverage", "--reject", "0.2"],
        ["new.csv", "--kind", "cost", "--costs", "costs.csv"],
        ["new.csv", "--kind", "cost", "--x-axis", "prior", "--class", "no"],
        ["base.csv", "--kind", "dependence", "--bars"],
        ["base.csv", "--kind", "learning", "--target", "kind"],
        ["--kind", "importance"],
        ["new.csv", "--kind", "importance"],
        ["base.csv", "--kind", "importance"],
    ],
    ids=" ".join,
)
def test_every_kind_is_drawn(command: list[str], deciban: Deciban, ready: str) -> None:
    answer = deciban("plot", ready, *command, "--output", "picture.png")
    assert answer.code == 0, answer.err
    kind = command[command.index("--kind") + 1]
    assert answer.out == f"picture.png: {kind}\n"
    assert Path("picture.png").read_bytes().startswith(BEGINNINGS["png"])


@pytest.mark.parametrize("ending", BEGINNINGS)
def test_the_name_of_the_file_says_what_is_written(ending: str, deciban: Deciban, ready: str) -> None:
    answer = deciban("plot", ready, "--kind", "nomogram", "-o", f"picture.{ending}", "--json")
    assert json.loads(answer.out) == {"output": f"picture.{ending}", "kind": "nomogram"}
    first = Path(f"picture.{ending}").read_bytes()
    assert first.startswith(BEGINNINGS[ending])
    deciban("plot", ready, "--kind", "nomogram", "-o", f"picture.{ending}")
    assert len(Path(f"picture.{ending}").read_bytes()) == len(first)
    assert not [name for name in os.listdir() if name.endswith(".part")]


def test_rows_that_were_learned_are_left_out_and_that_is_said(deciban: Deciban, ready: str) -> None:
    said = "the model was trained on these rows; each is scored by the model without it"
    assert said in deciban("plot", ready, "base.csv", "--kind", "reliability", "-o", "p.png").err
    assert said not in deciban("plot", ready, "new.csv", "--kind", "reliability", "-o", "p.png").err
    assert said in deciban("plot", ready, "base.csv", "--kind", "importance", "-o", "p.png").err
    assert said not in deciban("plot", ready, "new.csv", "--kind", "importance", "-o", "p.png").err


@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        (["--kind", "pie", "-o", "p.png"], 2, "'pie' is not one of"),
        (["--kind", "nomogram"], 2, "Missing option '--output'"),
        (["--kind", "nomogram", "-o", "p.jpg"], 2, "use .png, .svg or .pdf"),
        (["new.csv", "--kind", "nomogram", "-o", "p.png"], 2, "leave the table out"),
        (["--kind", "evidence", "-o", "p.png"], 2, "needs a table"),
        (["--kind", "column", "-o", "p.png"], 2, "give --column once"),
        (["--kind", "pair", "--column", "age", "-o", "p.png"], 2, "give --column twice"),
        (["--kind", "column", "--column", "rain", "-o", "p.png"], 2, "unknown column 'rain'"),
        (["--kind", "decision", "--column", "town", "-o", "p.png"], 2, "is not numeric"),
        (["--kind", "nomogram", "--row", "2", "-o", "p.png"], 2, "--row is for --kind evidence"),
        (["--kind", "column", "--column", "age", "--class", "yes", "-o", "p.png"], 2, "--class is for"),
        (["--kind", "nomogram", "--class", "perhaps", "-o", "p.png"], 2, "--class perhaps: no such class"),
        (["--kind", "nomogram", "--against", "perhaps", "-o", "p.png"], 2, "--against perhaps"),
        (["new.csv", "--kind", "evidence", "--row", "999", "-o", "p.png"], 2, "the table has fewer rows"),
        (["new.csv", "--kind", "reliability", "--target", "sort", "-o", "p.png"], 3, "'sort'"),
        (["--kind", "decision", "--column", "age", "--prior", "many", "-o", "p.png"], 2, "--prior many"),
        (["--kind", "nomogram", "-o", "nowhere/p.png"], 5, "the folder nowhere does not exist"),
        (["--kind", "decision", "--column", "age", "--costs", "none.csv", "-o", "p.png"], 5, "none.csv: no such file"),
    ],
)
def test_what_cannot_be_drawn_is_refused(
    command: list[str], code: int, words: str, deciban: Deciban, ready: str
) -> None:
    answer = deciban("plot", ready, *command)
    assert answer.code == code, answer.err
    assert words in answer.err
    assert not Path("p.png").exists()


def test_a_damaged_model_is_no_picture(deciban: Deciban, ready: str) -> None:
    Path("bad.dcb").write_bytes(Path(ready).read_bytes()[:200])
    assert deciban("plot", "bad.dcb", "--kind", "nomogram", "-o", "p.png").code == 4


def test_an_input_is_never_overwritten(deciban: Deciban, ready: str) -> None:
    os.link("new.csv", "new.png")
    answer = deciban("plot", ready, "new.csv", "--kind", "evidence", "-o", "new.png")
    assert answer.code == 2
    assert "output and input are the same file" in answer.err
    assert Path("new.csv").read_text() == table(120, seed=5)
