"""The command line speaks of its options, in numbers and names as people write them."""

import csv
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from deciban import load
from tests.support.command import Deciban, rows

# What only Python has: arguments, attributes that end in a low line, calls.
PYTHON = re.compile(r"\b[a-z_]+='|\b[a-z_]+=[,;: ]|\w_\b|\w\(\)|<ast|object at")


def fit(deciban: Deciban, *options: str) -> tuple[int, str]:
    answer = deciban("fit", "base.csv", "-t", "kind", "-o", "x.dcb", "--tune", "none", *options)
    return answer.code, answer.err


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["top-words", "m.dcb"], "the model has no text column; fit a column as --family COLUMN=Text"),
        (
            ["top-words", "m.dcb", "--column", "town"],
            "--column town: this column is not Text; fit it as --family COLUMN=Text",
        ),
        (["sample", "m.dcb", "--length", "3"], "--length 3: no column has the family Text or Multinomial"),
        (["fit", "base.csv", "-t", "kind", "-o", "x.dcb", "--prior", "foo"], "--prior foo: choose"),
        (["fit", "base.csv", "-t", "kind", "-o", "x.dcb", "--alpha", "-1"], "--alpha -1"),
        (["fit", "base.csv", "-t", "kind", "-o", "x.dcb", "--encoding", "klingon"], "--encoding klingon"),
        (["fit", "base.csv", "-t", "kind", "-o", "x.dcb", "--family", "twon=Gaussian"], "did you mean 'town'?"),
        (
            ["fit", "base.csv", "-t", "kind", "-o", "x.dcb", "--family", "town=Gaussian"],
            "use --family town=Categorical",
        ),
        (["decide", "m.dcb", "base.csv", "--reject", "-1"], "--reject -1"),
        (["fit", "costs.csv", "-t", "kind", "-o", "m.txt"], "costs.csv"),
        (["predict", "base.csv", "base.csv"], "`deciban fit`"),
    ],
)
def test_messages_speak_of_options(command: list[str], words: str, deciban: Deciban, model: str) -> None:
    answer = deciban(*command)
    assert answer.code
    assert words in answer.err
    assert not PYTHON.search(answer.err), answer.err


@pytest.mark.parametrize(
    ("written", "family"),
    [
        ("gaussian", "Gaussian()"),
        ("GAUSSIAN()", "Gaussian()"),
        ("log_normal", "LogNormal()"),
        ("gaussian(variance=pooled)", "Gaussian(variance=Pooled())"),
        ("Binned(bins=8)", "Binned(bins=8)"),
        ("lognormal(outside=ignore)", "LogNormal(outside='ignore')"),
        ("LogNormal(outside='ignore')", "LogNormal(outside='ignore')"),
    ],
)
def test_families_are_found_however_they_are_written(written: str, family: str, deciban: Deciban, model: str) -> None:
    answer = deciban(
        "fit", "base.csv", "-t", "kind", "-o", "x.dcb", "--tune", "none", "--family", f"age={written}", "--json"
    )
    found = {column["column"]: column["family"] for column in json.loads(answer.out)["columns"]}
    assert found["age"] == family


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("gausian", "unknown family 'gausian'; did you mean 'Gaussian'?"),
        ("spline", "unknown family 'spline'; choose one of"),
        ("spline(3)", "unknown family 'spline'; choose one of"),
        ("Pooled", "unknown family 'Pooled'"),
        ("Gaussian(", "unknown family 'Gaussian('"),
        ("1+2", "unknown family '1+2'"),
        ("binned(bins=0)", "Binned(bins=0): expected a whole number"),
        ("binned(boxes=3)", "has no parameter 'boxes'"),
        ("__import__('os')", "unknown family '__import__'"),
    ],
)
def test_what_is_no_family_is_told_in_plain_words(written: str, words: str, deciban: Deciban, model: str) -> None:
    code, err = fit(deciban, "--family", f"age={written}")
    assert (code, words in err) == (2, True), err
    assert "<ast" not in err


def test_names_with_commas_can_be_given(deciban: Deciban) -> None:
    lines = [line.replace(",", ";", 1).replace(";", ",") for line in rows(60)]
    Path("t.csv").write_text("\n".join(['"age, years","town=where",kind', *lines]) + "\n")
    common = ["fit", "t.csv", "-t", "kind", "-o", "m.dcb", "--tune", "none", "--json"]
    for written in ("age, years=Binned", '"age, years"=Binned'):
        found = json.loads(deciban(*common, "--family", written).out)["columns"]
        assert (found[0]["column"], found[0]["family"]) == ("age, years", "Binned()")
    pair = json.loads(deciban(*common, "--family", '"age, years","town=where"=JointTable').out)["columns"]
    assert [column["family"] for column in pair] == ["JointTable() with town=where", "JointTable() with age, years"]
    for keep in ("age, years", '"age, years"', '"age, years",kind'):
        header = deciban("predict", "m.dcb", "t.csv", "--keep", keep).out.splitlines()[0]
        assert header.startswith('"age, years",')


def test_a_prior_of_classes_with_commas_can_be_given(deciban: Deciban) -> None:
    Path("t.csv").write_text("x,kind\n" + '1,"a, b"\n2,c\n' * 5)
    answer = deciban("fit", "t.csv", "-t", "kind", "-o", "m.dcb", "--tune", "none", "--prior", '"a, b=0.25",c=0.75')
    assert answer.code == 0


def test_a_prior_of_classes_that_are_numbers_can_be_given(deciban: Deciban) -> None:
    Path("t.csv").write_text("x,kind\n" + "1,1\n2,2\n" * 5)
    answer = deciban("fit", "t.csv", "-t", "kind", "-o", "m.dcb", "--tune", "none", "--prior", "1=0.25,2=0.75")
    assert answer.code == 0
    np.testing.assert_allclose(load("m.dcb").predict_proba([{"x": None}]), [[0.25, 0.75]])
    answer = deciban("fit", "t.csv", "-t", "kind", "-o", "m.dcb", "--tune", "none", "--prior", "1=0.25,3=0.75")
    assert (answer.code, "the prior has no probability for the class 2" in answer.err) == (2, True)


def test_one_is_singular(deciban: Deciban) -> None:
    Path("one.csv").write_text("x,kind\n1,a\n")
    answer = deciban("fit", "one.csv", "-t", "kind", "-o", "m.dcb", "--tune", "none")
    assert answer.out.splitlines()[0] == "m.dcb: 1 row, 1 class, 1 column"
    Path("more.csv").write_text("x,kind\n2,a\n")
    assert "1 row added; now 2 rows, 1 class, 1 column" in deciban("learn", "m.dcb", "more.csv").out
    assert "1 row removed; now 1 row, 1 class" in deciban("forget", "m.dcb", "more.csv").out
    assert deciban("predict", "m.dcb", "one.csv", "-o", "p.csv").out == "p.csv: 1 row\n"


def test_wide_characters_stand_in_columns(deciban: Deciban) -> None:
    Path("t.csv").write_text("都市,x,kind\n" + "東京,1,はい\n大阪,2,no\n" * 5)
    deciban("fit", "t.csv", "-t", "kind", "-o", "m.dcb", "--tune", "none")
    lines = deciban("inspect", "m.dcb").out.splitlines()
    at = next(k for k, line in enumerate(lines) if line.startswith("class"))
    assert lines[at + 1 : at + 3] == ["no     5", "はい   5"]


def test_a_terminal_shows_six_digits_and_files_have_all(
    deciban: Deciban, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("new.csv").write_text("age,town\n41.123456789,Ulm\n38.5,Bern\n")
    piped = deciban("predict", model, "new.csv", "-p").out
    drawn = deciban("sample", model, "--seed", "1").out
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    shown = deciban("predict", model, "new.csv", "-p").out
    sampled = deciban("sample", model, "--seed", "1").out
    assert shown.splitlines()[1].startswith("41.123456789,")
    for exact, seen in ((piped, shown), (drawn, sampled)):
        for line, other in zip(
            list(csv.DictReader(exact.splitlines())), csv.DictReader(seen.splitlines()), strict=True
        ):
            for name, cell in line.items():
                if name not in ("town", "kind", "predicted") and not (name == "age" and exact is piped):
                    assert other[name] == repr(float(f"{float(cell):.6g}")).removesuffix(".0")
    assert max(len(cell) for line in csv.reader(piped.splitlines()) for cell in line) > 15
