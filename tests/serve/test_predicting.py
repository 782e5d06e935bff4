"""Answers over HTTP are those of `predict_proba`, `explain` and `decide`."""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv as arrow_csv

from deciban import BayesClassifier, load
from deciban.export.model_json import model_as_json
from deciban.serve.bodies.body import ARROW_STREAM, CSV, JSON
from deciban.serve.bodies.records import table_to_records
from deciban.store.model_file import load as load_fitted
from tests.serve.conftest import Opened, mixed_table
from tests.serve.requests import as_stream

MODELS = ("mixed.dcb", "plain.dcb")


def rows_with_everything() -> pa.Table:
    """Rows of every kind of column, some cells missing, and some with values that were never seen."""
    table = mixed_table(40, seed=7).drop_columns(["kind"])
    cells = table.to_pydict()
    for place, name in enumerate(cells):
        cells[name][place] = None
        cells[name][-1] = None  # the last row is empty
    cells["city"][20], cells["note"][21], cells["calls"][22] = "Genf", "words never seen", 1_000_000
    return pa.table({name: pa.array(cells[name], table.schema.field(name).type) for name in cells})


def as_csv(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    arrow_csv.write_csv(table, sink)
    return sink.getvalue()


def chances(answer: dict[str, Any], classes: Any) -> np.ndarray:
    return np.array([[row["probabilities"][str(label)] for label in classes] for row in answer["rows"]])


@pytest.mark.parametrize("name", MODELS)
def test_json_has_the_numbers_of_predict_proba(opened: Opened, models: Path, name: str) -> None:
    clf, table = load(models / name), rows_with_everything()
    found = opened(name).post("/predict", json=table_to_records(table))
    assert found.status_code == 200
    assert found.headers["deciban-model"] == found.json()["model"]
    np.testing.assert_array_equal(chances(found.json(), clf.classes_), clf.predict_proba(table))
    assert [row["predicted"] for row in found.json()["rows"]] == clf.predict(table).tolist()
    best = clf.predict_proba(table).max(axis=1)
    np.testing.assert_array_equal([row["probability"] for row in found.json()["rows"]], best)
    assert "ignored" not in found.json()


@pytest.mark.parametrize("name", MODELS)
def test_a_row_alone_has_the_bits_it_has_among_others(opened: Opened, models: Path, name: str) -> None:
    records = table_to_records(rows_with_everything())
    client = opened(name)
    together = client.post("/predict", json=records).json()["rows"]
    assert [client.post("/predict", json=[one]).json()["rows"][0] for one in records] == together


@pytest.mark.parametrize("name", MODELS)
def test_csv_is_read_as_the_command_reads_it(opened: Opened, models: Path, name: str, tmp_path: Path) -> None:
    body = as_csv(rows_with_everything())
    (tmp_path / "rows.csv").write_bytes(body)
    clf = load(models / name)
    found = opened(name).post("/predict", content=body, headers={"content-type": CSV})
    assert found.status_code == 200, found.text
    read = arrow_csv.read_csv(io.BytesIO(found.content))
    told = np.column_stack([read[f"P({label})"].to_numpy() for label in clf.classes_])
    np.testing.assert_allclose(told, clf.predict_proba(tmp_path / "rows.csv"), rtol=1e-12, atol=0)
    assert read["predicted"].to_pylist() == clf.predict(tmp_path / "rows.csv").tolist()


@pytest.mark.parametrize("name", MODELS)
def test_arrow_has_the_numbers_of_predict_proba(opened: Opened, models: Path, name: str) -> None:
    clf, table = load(models / name), rows_with_everything()
    found = opened(name).post("/predict", content=as_stream(table), headers={"content-type": ARROW_STREAM})
    assert found.headers["content-type"] == ARROW_STREAM
    read = pa.ipc.open_stream(found.content).read_all()
    told = np.column_stack([read[f"P({label})"].to_numpy() for label in clf.classes_])
    np.testing.assert_array_equal(told, clf.predict_proba(table))


def test_a_model_without_names_takes_lists(opened: Opened, models: Path) -> None:
    rows = [[0.5, None, 1], [2.5, 0.0, -1.0]]
    found = opened("matrix.dcb").post("/predict", json=rows).json()["rows"]
    wanted = load(models / "matrix.dcb").predict_proba(np.array(rows, dtype=float))
    np.testing.assert_array_equal([[row["probabilities"][c] for c in ("false", "true")] for row in found], wanted)
    assert {type(row["predicted"]) for row in found} == {bool}


def test_classes_that_are_numbers_or_dates(opened: Opened, tmp_path: Path) -> None:
    days = np.array(["2026-01-01", "2026-02-01"], dtype="datetime64[D]")
    for name, labels in (("numbers", np.array([3, 7])), ("dates", days)):
        path = tmp_path / f"{name}.dcb"
        BayesClassifier(tune=None).fit({"x": np.arange(20.0)}, labels[np.arange(20) // 10]).save(path)
        row = opened(path).post("/predict", json=[{"x": 2.0}]).json()["rows"][0]
        assert row["predicted"] == (3 if name == "numbers" else str(row["predicted"]))
        assert len(row["probabilities"]) == 2


def test_unknown_columns_are_told_and_ids_come_back(opened: Opened) -> None:
    body = {"rows": [{"outlook": "sunny", "color": 1}, {"size": {"a": [1]}}], "ids": ["first", 2]}
    found = opened("weather.dcb").post("/predict", json=body).json()
    assert found["ignored"] == ["color", "size"]
    assert [row["id"] for row in found["rows"]] == ["first", "2"]


def test_answers_come_in_the_form_that_is_accepted(opened: Opened) -> None:
    client = opened("weather.dcb")
    for accept, kind in (
        (CSV, CSV),
        (ARROW_STREAM, ARROW_STREAM),
        (f"{CSV};q=0.2, {JSON}", JSON),
        ("text/html", JSON),
        ("*/*", JSON),
    ):
        found = client.post("/predict", json=[{"outlook": "rain"}], headers={"accept": accept})
        assert found.headers["content-type"].startswith(kind)
    found = client.post("/predict", content=b"outlook\nrain\n", headers={"content-type": CSV, "accept": JSON})
    assert found.json()["rows"][0]["predicted"] == "yes"


def test_no_rows_are_answered_by_no_rows(opened: Opened) -> None:
    for path in ("/predict", "/explain", "/decide"):
        for name in ("mixed.dcb", "weather.dcb", "matrix.dcb"):
            assert opened(name).post(path, json=[]).json()["rows"] == []


@pytest.mark.parametrize("by", ["column", "block"])
@pytest.mark.parametrize("name", MODELS)
def test_explanations_are_those_of_explain(opened: Opened, models: Path, name: str, by: str) -> None:
    table = rows_with_everything().slice(15, 8)
    explanation = load(models / name).explain(table, by=by)
    found = opened(name).post("/explain", json=table_to_records(table), params={"by": by}).json()["rows"]
    for row, told in enumerate(found):
        wanted = explanation.to_dict(row)
        assert told["predicted"] == wanted["predicted"]
        assert told["sum"] == pytest.approx(wanted["sum"])
        key = "column" if by == "column" else "block"
        said = {one[key]: one["decibans"] for one in wanted["evidence"]}
        assert {one[key]: one["decibans"] for one in told["evidence"]} == pytest.approx(said)
    for kind in (CSV, ARROW_STREAM):
        form = opened(name).post("/explain", json=table_to_records(table), params={"by": by}, headers={"accept": kind})
        assert form.status_code == 200
        assert form.headers["content-type"].startswith(kind)


def test_decisions_are_those_of_decide(opened: Opened, models: Path) -> None:
    costs = {"call": {"low": 1, "mid": 2, "high": 30}, "wait": {"low": 0, "mid": 4, "high": 90.5}}
    table = rows_with_everything()
    wanted = load(models / "plain.dcb").decide(table, costs, reject=3)
    body = {"rows": table_to_records(table), "costs": costs, "reject": 3}
    found = opened("plain.dcb").post("/decide", json=body).json()["rows"]
    assert [row["decision"] for row in found] == wanted.decision.tolist()
    assert [row["second_best"] for row in found] == wanted.second_best.tolist()
    np.testing.assert_allclose([row["risk"] for row in found], wanted.risk)
    np.testing.assert_allclose([row["second_best_risk"] for row in found], wanted.second_best_risk)
    form = opened("plain.dcb").post("/decide", json=body, headers={"accept": CSV})
    assert form.text.splitlines()[0] == "decision,risk,second_best,second_best_risk"


def test_costs_that_are_columns_and_costs_of_the_command(opened: Opened, models: Path, tmp_path: Path) -> None:
    (tmp_path / "costs.csv").write_text(",no,yes\ngo,3,0\nstay,0,1\n")
    rows = [{"outlook": "sunny", "price": 5}, {"outlook": "overcast", "price": 0.5}]
    client = opened("weather.dcb", costs=str(tmp_path / "costs.csv"), reject=0.1)
    assert {row["decision"] for row in client.post("/decide", json=rows).json()["rows"]} == {"reject"}
    body = {"rows": rows, "costs": {"go": {"no": "price", "yes": 0}, "stay": {"no": 0, "yes": 1}}}
    assert [row["decision"] for row in client.post("/decide", json=body).json()["rows"]] == ["stay", "go"]
    body["costs"]["go"]["no"] = "color"  # type: ignore[index]  # a cost
    assert client.post("/decide", json=body).json()["place"] == "costs"


def test_many_rows_are_answered_while_others_wait_for_none(opened: Opened, models: Path) -> None:
    table = mixed_table(3_000, seed=3).drop_columns(["kind"])
    found = opened("mixed.dcb").post("/predict", json=table_to_records(table)).json()
    wanted = load(models / "mixed.dcb").predict_proba(table)
    np.testing.assert_array_equal(chances(found, load(models / "mixed.dcb").classes_), wanted)


def test_the_model_is_described(opened: Opened, models: Path) -> None:
    found = opened("mixed.dcb").get("/model").json()
    kinds = {column["name"]: column["kind"] for column in found["columns"]}
    assert kinds == {
        "age": "number", "income": "number", "city": "category", "calls": "number", "member": "yes/no",
        "since": "date", "seen": "date", "at": "time", "note": "text",
    }  # fmt: skip
    assert sum(one["prior"] for one in found["classes"]) == pytest.approx(1.0)
    assert found["rows"] == 300.0
    assert found["target"] == "kind"
    assert found["tuning"]["tuned"]
    assert found["learning"] is None
    assert found["age_seconds"] >= 0.0


def test_the_scorer_and_the_report(opened: Opened, models: Path) -> None:
    client = opened("mixed.dcb")
    scorer = client.get("/model/scorer")
    assert scorer.json() == json.loads(json.dumps(model_as_json(load_fitted(models / "mixed.dcb"))))
    again = client.get("/model/scorer", headers={"if-none-match": scorer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert "<section" in client.get("/model/report").text


def test_a_folder_has_all_its_models(opened: Opened) -> None:
    client = opened("")
    assert [one["name"] for one in client.get("/models").json()["models"]] == ["matrix", "mixed", "plain", "weather"]
    found = client.post("/models/weather/predict", json=[{"outlook": "sunny"}])
    assert found.json()["rows"][0]["predicted"] == "no"
    assert client.post("/models/nothing/predict", json=[{}]).status_code == 404
    assert client.post("/predict", json=[{}]).status_code == 404
    page = client.get("/")
    assert "script-src 'sha256-" in page.headers["content-security-policy"]
    assert client.get("/models/weather/").status_code == 200
    for path in ("/models/../models.dcb/predict", "/models/%2e%2e%2fweather/predict", "/models/weather.dcb/predict"):
        assert client.post(path, json=[{}]).status_code == 404


def test_sets_are_those_of_predict_set(opened: Opened, models: Path) -> None:
    clf, table = load(models / "mixed.dcb"), rows_with_everything()
    client, sets = opened("mixed.dcb"), clf.predict_set(table, 0.8)
    found = client.post("/predict?coverage=0.8", json=table_to_records(table)).json()
    assert [row["set"] for row in found["rows"]] == list(sets)
    answer = client.post("/predict?coverage=0.8", content=as_stream(table), headers={"content-type": ARROW_STREAM})
    texts = pa.ipc.open_stream(answer.content).read_all()["set"].to_pylist()
    assert texts == ["{" + ", ".join(labels) + "}" for labels in sets]
    assert "set" not in client.post("/predict", json=[{}]).json()["rows"][0]


@pytest.mark.parametrize("coverage", ["0", "1", "ninety", "nan"])
def test_an_invalid_coverage_is_a_problem(opened: Opened, coverage: str) -> None:
    found = opened("mixed.dcb").post(f"/predict?coverage={coverage}", json=[{}])
    assert (found.status_code, found.json()["place"]) == (422, "query.coverage")


def test_a_model_without_scores_has_no_sets(opened: Opened) -> None:
    found = opened("weather.dcb").post("/predict?coverage=0.9", json=[{}])
    assert (found.status_code, "conformity scores" in found.json()["cause"]) == (422, True)
