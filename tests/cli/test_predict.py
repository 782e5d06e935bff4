"""What predict, decide, explain and sample write is what the library says."""

import csv
import gzip
import io
import json
import math
from pathlib import Path

import numpy as np
import pytest
from pyarrow import parquet

from deciban import Loss, load
from tests.support.command import COSTS, HEADER, Deciban, records, rows


@pytest.mark.parametrize("name", ["p.csv", "p.tsv", "p.csv.gz", "p.jsonl", "p.jsonl.gz", "p.parquet", None])
def test_predictions_are_those_of_the_library(name: str | None, deciban: Deciban, model: str) -> None:
    """To the last digit, in every kind of file, and with the columns of the table before them."""
    output = [] if name is None else ["-o", name]
    answer = deciban("predict", model, "base.csv", "-p", *output)
    assert answer.code == 0
    if name is not None and name.endswith("parquet"):
        found = parquet.read_table(name).to_pylist()
    else:
        content = answer.out.encode() if name is None else Path(name).read_bytes()
        text = (gzip.decompress(content) if name is not None and name.endswith(".gz") else content).decode()
        sign = "\t" if name == "p.tsv" else ","
        found = list(csv.DictReader(io.StringIO(text), delimiter=sign))
        if name is not None and "json" in name:
            found = [json.loads(line) for line in text.splitlines()]
    clf = load(model)
    posterior = clf.predict_proba("base.csv")
    assert list(found[0]) == ["age", "town", "kind", "predicted", "probability", "P(no)", "P(yes)"]
    assert [[float(row["P(no)"]), float(row["P(yes)"])] for row in found] == posterior.tolist()
    assert [row["predicted"] for row in found] == clf.predict("base.csv").tolist()
    assert [float(row["probability"]) for row in found] == posterior.max(axis=1).tolist()
    assert [f"{float(row['age']):.2f},{row['town']},{row['kind']}" for row in found] == rows(200)


def test_columns_to_keep(deciban: Deciban, model: str) -> None:
    assert deciban("predict", model, "base.csv", "--keep", "town").out.startswith("town,predicted,probability\n")
    assert deciban("predict", model, "base.csv", "--keep", "").out.startswith("predicted,probability\n")
    one, several = (
        deciban("predict", model, "base.csv", *keep).out
        for keep in (("--keep", "age,town"), ("--keep", "town", "--keep", "age"))
    )
    assert several == one
    answer = deciban("predict", model, "base.csv", "--keep", "city")
    assert (answer.code, "the columns are age, town, kind" in answer.err) == (2, True)
    answer = deciban("predict", model, "base.csv", "-o", "p.xls")
    assert (answer.code, ".parquet" in answer.err) == (2, True)


@pytest.mark.parametrize("reject", [None, 0.3])
def test_decisions_are_those_of_the_library(reject: float | None, deciban: Deciban, model: str) -> None:
    Path("costs.csv").write_text(COSTS)
    options = [] if reject is None else ["--reject", str(reject)]
    found = records(deciban("decide", model, "base.csv", "--costs", "costs.csv", *options).out)
    clf = load(model)
    expected = clf.decide("base.csv", Loss.from_csv("costs.csv"), reject=reject)
    assert [row["decision"] for row in found] == [str(one) for one in expected.decision]
    assert [float(row["risk"]) for row in found] == expected.risk.tolist()
    posterior = clf.predict_proba("base.csv")
    by_hand = np.column_stack([10 * posterior[:, 1], posterior[:, 0]])  # of "no" and "yes"
    least = by_hand.min(axis=1) if reject is None else np.minimum(by_hand.min(axis=1), reject)
    np.testing.assert_allclose([float(row["risk"]) for row in found], least, rtol=1e-12)


@pytest.mark.parametrize("command", ["predict", "decide"])
def test_columns_that_the_model_does_not_know_are_passed_on_as_written(
    command: str, deciban: Deciban, model: str
) -> None:
    Path("codes.csv").write_text("code,day,age,town\n1.50,2020-01-02,40,Ulm\n2,2020-01-03,41,Bern\n")
    lines = deciban(command, model, "codes.csv", "--keep", "code,day").out.splitlines()
    assert [line.split(",")[:2] for line in lines[1:]] == [["1.50", "2020-01-02"], ["2", "2020-01-03"]]


def test_explanations_add_up_to_the_log_odds(deciban: Deciban, model: str) -> None:
    clf = load(model)
    logs = clf.predict_log_proba("base.csv")
    for one in json.loads(deciban("explain", model, "base.csv", "--rows", "20", "--json").out):
        for_, against = (clf.classes_.tolist().index(one[key]) for key in ("predicted", "against"))
        odds = logs[one["row"] - 1, for_] - logs[one["row"] - 1, against]
        total = math.fsum(term["decibans"] for term in one["evidence"])
        assert total == pytest.approx(one["sum"])
        assert total == pytest.approx(10 / math.log(10) * odds, abs=1e-9)
    assert deciban("explain", model, "base.csv", "--row", "3").out.startswith("row 3\n")
    answer = deciban("explain", model, "base.csv", "--row", "999")
    assert (answer.code, "the table has fewer rows" in answer.err) == (2, True)


def test_samples(deciban: Deciban, model: str) -> None:
    answer = deciban("sample", model, "--rows", "50", "--seed", "1")
    found = records(answer.out)
    assert len(found) == 50
    assert list(found[0]) == HEADER.split(",")
    assert {row["town"] for row in found} <= {"Ulm", "Bern", "Graz"}
    assert deciban("sample", model, "--rows", "50", "--seed", "1").out == answer.out
    assert deciban("sample", model, "--rows", "50", "--seed", "2").out != answer.out


def test_true_and_false_are_drawn_as_such(deciban: Deciban) -> None:
    lines = [f"{'true' if k % 3 else 'false'},{k},{'yn'[k % 2]}" for k in range(30)]
    Path("flags.csv").write_text("\n".join(["flag,x,kind", *lines]) + "\n")
    assert deciban("fit", "flags.csv", "--target", "kind", "--output", "flags.dcb").code == 0
    assert {row["flag"] for row in records(deciban("sample", "flags.dcb", "--rows", "50").out)} == {"true", "false"}


def test_an_empty_object_is_a_row_of_missing_cells(deciban: Deciban, model: str, tmp_path) -> None:
    (tmp_path / "empty.jsonl").write_text("{}\n{}\n")
    file = str(tmp_path / "empty.jsonl")
    prior = {
        one["class"]: one["estimate"]
        for one in json.loads(deciban("inspect", model, "--estimates", "--json").out)["estimates"][:2]
    }
    for line in deciban("predict", model, file, "--probabilities", "--json").out.splitlines():
        found = json.loads(line)
        assert found[f"P({found['predicted']})"] == max(prior.values())
    assert deciban("predict", model, file).out.splitlines()[0] == "predicted,probability"
    for command in ("explain", "decide"):
        assert deciban(command, model, file).code == 0


def test_sets_are_those_of_the_library(deciban: Deciban, model: str) -> None:
    assert "conformity scores" in deciban("predict", model, "base.csv", "--coverage", "90%").err  # it is plain Bayes
    model = "tuned.dcb"
    assert deciban("fit", "base.csv", "--target", "kind", "-o", model).code == 0
    sets = load(model).predict_set("base.csv", 0.9)
    texts = ["{" + ", ".join(labels) + "}" for labels in sets]
    assert [row["set"] for row in records(deciban("predict", model, "base.csv", "--coverage", "90%").out)] == texts
    found = records(deciban("decide", model, "base.csv", "--coverage", "0.9").out)
    decided = load(model).decide("base.csv", coverage=0.9).decision
    assert [row["decision"] for row in found] == decided.tolist()
    assert {"{no, yes}", "no", "yes"} == set(decided.tolist())
    answer = deciban("predict", model, "base.csv", "--coverage", "2")
    assert (answer.code, "--coverage" in answer.err) == (2, True)
