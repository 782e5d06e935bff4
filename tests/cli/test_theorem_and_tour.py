"""The commands bayes and demo."""

import json
import os
from pathlib import Path

import pyarrow.csv
import pytest

from tests.support.command import Deciban


def test_the_theorem(deciban: Deciban) -> None:
    """0.05 · 0.9 / (0.05 · 0.9 + 0.95 · 0.08) = 0.3719; the next test starts from there."""
    numbers = ["bayes", "--prior", "0.05", "--sensitivity", "0.9"]
    assert "0.3719" in deciban(*numbers, "--false-positive", "0.08").out
    believed, results = 0.05, ["positive", "positive", "negative"]
    steps = json.loads(deciban(*numbers, "--specificity", "0.92", "--results", ",".join(results), "--json").out)
    for step, result in zip(steps, results, strict=True):
        hit, alarm = (0.9, 0.08) if result == "positive" else (0.1, 0.92)
        believed = believed * hit / (believed * hit + (1 - believed) * alarm)
        assert step["posterior"]["ill"] == pytest.approx(believed)
    likelihoods = ["--likelihood", "ill=0.9,well=0.08", "--likelihood", "ill=0.2,well=0.1"]
    last = json.loads(deciban("bayes", "--prior", "ill=0.05,well=0.95", *likelihoods, "--json").out)[-1]
    assert last["posterior"]["ill"] == pytest.approx(0.05 * 0.9 * 0.2 / (0.05 * 0.9 * 0.2 + 0.95 * 0.08 * 0.1))
    for wrong in (
        ["--prior", "0.5"],
        ["--prior", "x", "--likelihood", "1,0"],
        ["--prior", "1.5", "--likelihood", "1,0"],
    ):
        assert deciban("bayes", *wrong).code == 2


def test_the_theorem_takes_per_cent_and_densities(deciban: Deciban) -> None:
    shares = ["bayes", "--prior", "0.05", "--sensitivity", "0.999", "--false-positive", "0.08", "--json"]
    for sign in ("%", " %"):
        found = ["bayes", "--prior", f"5{sign}", "--sensitivity", f"99.9{sign}", "--specificity", f"92{sign}", "--json"]
        assert json.loads(deciban(*found).out)[0]["posterior"] == pytest.approx(
            json.loads(deciban(*shares).out)[0]["posterior"], abs=1e-15
        )
    fractions = ["bayes", "--prior", "1/20", "--sensitivity", "999 / 1000", "--false-positive", "2/25", "--json"]
    assert deciban(*fractions).out == deciban(*shares).out
    for wrong in ("1/0", "1/x", "1//2", "/2"):
        assert deciban("bayes", "--prior", wrong, "--likelihood", "1,0").code == 2
    named = deciban("bayes", "--prior", "ill=5%,well=95 %", "--likelihood", "90%,8%")
    assert "ill   0.05       0.9         0.045      0.371901" in named.out
    dense = deciban("bayes", "--prior", "0.3", "--likelihood", "3.5,2.5")
    assert dense.code == 0
    assert f"{0.3 * 3.5 / (0.3 * 3.5 + 0.7 * 2.5):.6g}" in dense.out
    assert "people" not in dense.out
    for wrong in (["--sensitivity", "1.2", "--specificity", "0.9"], ["--likelihood", "%,1"], ["--likelihood", "inf,1"]):
        assert deciban("bayes", "--prior", "0.5", *wrong).code == 2
    assert deciban("bayes", "--prior", "0.5", "--likelihood", "2,1", "--population", 1000).code == 2
    below = ["bayes", "--prior", "0.75", "--likelihood", "0.045,0.03"]
    assert "are A, of whom" in deciban(*below).out
    assert "people" not in deciban(*below, "--density").out
    tested = deciban("bayes", "--prior", "1%", "--sensitivity", "80%", "--false-positive", "9.6%").out
    assert "10 are ill, of whom 8 have this evidence; 990 are well, of whom 95 have this evidence." in tested
    assert "So of the 103 who have it, 8 are ill: 7.8%." in tested
    assert deciban("bayes", "--prior", "1%", "--sensitivity", "1", "--specificity", "1", "--density").code == 2


def test_the_tour(deciban: Deciban) -> None:
    """It runs, tells of each step, and leaves nothing behind; --files leaves its tables."""
    answer = deciban("demo")
    assert answer.code == 0
    for words in ("$ deciban fit weather.csv", "decision: no", "14 rows", "accuracy 0.9", "decibans", ",reject,"):
        assert words in answer.out
    assert os.listdir() == []
    names = deciban("demo", "--files").out.split()
    assert [(Path(name).is_file(), name.startswith("deciban-demo/")) for name in names] == [(True, True)] * 7
    assert deciban("fit", "deciban-demo/weather.csv", "-t", "play", "-o", "w.dcb").code == 0
    assert pyarrow.csv.read_csv("deciban-demo/cancer.csv").num_rows == 561


def test_the_tables_of_the_tour_overwrite_nothing(deciban: Deciban) -> None:
    Path("costs.csv").write_text("mine")
    answer = deciban("demo", "--files", ".")
    assert (answer.code, "costs.csv: a different file with this name exists" in answer.err) == (5, True)
    assert (os.listdir(), Path("costs.csv").read_text()) == (["costs.csv"], "mine")
    assert deciban("demo", "--files", "tour").code == 0
    Path("tour/cancer.csv").unlink()
    assert deciban("demo", "--files", "tour").code == 0  # the others are what they were
    assert Path("tour/cancer.csv").is_file()
