"""What `explain` and `inspect --estimates` say, to people and to programs."""

import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from deciban import BayesClassifier
from tests.support.command import Deciban


def test_programs_get_columns_values_and_steps(deciban: Deciban, model: str) -> None:
    Path("new.csv").write_text("age,town\n45.5,Ulm\n,Bern\n")
    columns = json.loads(deciban("explain", model, "new.csv", "--json").out)[0]
    age = next(term for term in columns["evidence"] if term["column"] == "age")
    assert (age["term"], age["value"]) == ("column", 45.5)
    assert age["own"] == age["decibans"] == pytest.approx(10 / np.log(10) * age["nats"])
    assert age["joint"] == age["correction"] == 0.0
    first, second = json.loads(deciban("explain", model, "new.csv", "--json", "--steps", "--by", "block").out)
    terms = {term["block"]: term for term in first["evidence"]}
    said = terms["age"]["decibans"]
    assert said == age["decibans"]
    assert terms["age"] == {
        "block": "age", "columns": ["age"], "values": [45.5], "weight": 1.0, "decibans": said, "nats": age["nats"],
    }  # fmt: skip
    assert terms["town"]["values"] == ["Ulm"]
    assert (terms["prior"]["columns"], terms["prior"]["values"]) == ([], [])
    assert [None] in [term["values"] for term in second["evidence"]]
    steps = first["steps"]
    rows = [line.split(",") for line in Path("base.csv").read_text().splitlines()[1:]]
    ages = {label: np.array([float(age) for age, _, kind in rows if kind == label]) for label in ("no", "yes")}
    age = next(block for block in steps["blocks"] if block["block"] == "age")
    for label, cells in ages.items():
        assert steps["prior"][label] == pytest.approx(len(cells) / len(rows))
        oracle = stats.norm(cells.mean(), cells.std()).logpdf(45.5)
        assert age["log_likelihood"][label] == pytest.approx(oracle)
        assert age["formula"][label].startswith("N(45.5; mean ")
        whole = math.log(steps["prior"][label]) + sum(b["log_likelihood"][label] for b in steps["blocks"])
        assert steps["log_joint"][label] == pytest.approx(whole)
    assert steps["posterior"] == first["posterior"]
    assert "steps" not in json.loads(deciban("explain", model, "new.csv", "--json").out)[0]


def test_people_get_six_digits_and_files_all(deciban: Deciban, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("new.csv").write_text("age,town\n45.123456789,Ulm\n")
    full = deciban("predict", model, "new.csv").out.splitlines()[1].split(",")
    assert len(full[-1]) > 12
    assert f"P({full[2]}) = {float(full[-1]):.6g}" in deciban("explain", model, "new.csv").out
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    shown = deciban("predict", model, "new.csv").out.splitlines()[1].split(",")
    assert shown == [*full[:-1], f"{float(full[-1]):.6g}"]
    risk = deciban("decide", model, "new.csv").out.splitlines()[1].split(",")[3]
    assert risk == f"{1 - float(full[-1]):.6g}"
    assert json.loads(deciban("predict", model, "new.csv", "--json").out)["probability"] == float(full[-1])


def test_the_command_shows_estimates(deciban: Deciban, model: str) -> None:
    lines = [line.split(",") for line in Path("base.csv").read_text().splitlines()[1:]]
    mean = np.mean([float(age) for age, _, kind in lines if kind == "yes"])
    found = json.loads(deciban("inspect", model, "--estimates", "--json").out)["estimates"]
    assert {"block": "(prior)", "parameter": "probability", "value": None, "class": "yes"}.items() <= found[1].items()
    assert found[1]["estimate"] == pytest.approx(sum(kind == "yes" for _, _, kind in lines) / len(lines))
    assert {"block": "age", "parameter": "mean", "value": None, "class": "yes"}.items() <= found[3].items()
    assert found[3]["estimate"] == pytest.approx(mean)
    shown = deciban("inspect", model, "--estimates").out
    assert f"{mean:.6g}" in shown
    assert "P(Ulm)" in shown
    assert f"P(class)  {1 - found[1]['estimate']:.6g}" in shown
    told = deciban("inspect", model).out
    assert "P(Ulm)" not in told
    assert "free parameters, including the prior" in told
    assert json.loads(deciban("inspect", model, "--json").out)["parameters"]["naive"] > 4


def test_the_command_shows_the_weights_of_a_linear_or_quadratic_form(deciban: Deciban, model: str) -> None:
    form = BayesClassifier.load(model).quadratic_form()
    lines = json.loads(deciban("inspect", model, "--form", "--json").out)["form"]
    assert [line["term"] for line in lines] == form.to_frame("pyarrow")["term"].to_pylist()
    assert [lines[-1]["no"], lines[-1]["yes"]] == form.intercept.tolist()
    shown = deciban("inspect", model, "--form").out
    assert shown.endswith(f"\n{form}\n")
    assert "intercept" not in deciban("inspect", model).out
    deciban("fit", "base.csv", "--target", "kind", "--output", "tuned.dcb")
    answer = deciban("inspect", "tuned.dcb", "--form")
    assert answer.code == 2
    assert "fit with --tune weights, or --tune none" in answer.err
