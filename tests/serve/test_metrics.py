"""The figures of the service, against counting by hand; and that they cost those who wait next to nothing."""

import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from prometheus_client.parser import text_string_to_metric_families

from deciban import BayesClassifier, Gaussian
from deciban.decisions.shift import estimate_shares
from deciban.errors import UsageError
from deciban.scoring.outliers import OutlierDetector, UnknownCells, without_cells
from deciban.serve import monitor as watch
from deciban.serve.bodies.records import records_to_table
from deciban.serve.metrics import MAX_LABELS, Metrics
from deciban.serve.predictions import State
from deciban.serve.worker_metrics import FOLDER_VARIABLE, create_shared_folder
from deciban.tables.table import Frame


@dataclass
class Model:
    """A model that is served, as the application has it."""

    name: str
    state: State | None
    problem: str = ""
    learner: Any = None


def rows_of(rng: np.random.Generator, rows: int, shares: tuple[float, float] = (0.7, 0.3)) -> pd.DataFrame:
    label = rng.choice(["ham", "spam"], rows, p=shares)
    spam = label == "spam"
    return pd.DataFrame(
        {
            "length": rng.normal(np.where(spam, 3.0, 0.0), 1.0),
            "links": rng.normal(np.where(spam, 2.0, 0.0), 1.0) * 1000.0,
            "country": np.where(rng.random(rows) < np.where(spam, 0.7, 0.2), "there", "here"),
            "label": label,
        }
    )


@pytest.fixture(scope="module")
def clf() -> BayesClassifier:
    return BayesClassifier(tune=None).fit(rows_of(np.random.default_rng(0), 4000), "label")


@pytest.fixture(scope="module")
def state(clf: BayesClassifier) -> State:
    return State(clf._get_fitted(), "v1", 0, time.time() - 100)


@pytest.fixture
def metrics() -> Iterator[Metrics]:
    made = Metrics()
    yield made
    made.close()


def predicted(metrics: Metrics, clf: BayesClassifier, state: State, frame: pd.DataFrame, each: int = 7) -> None:
    """Rows as the service hands them over, a few at a time."""
    records = json.loads(frame.to_json(orient="records"))
    for start in range(0, len(records), each):
        table = records_to_table(state.fitted.model.schema, records[start : start + each])
        metrics.observe_rows("mail", state, table, clf.predict_proba(frame.iloc[start : start + each]))


LABELS = ("model", "class", "column", "route", "status", "reason", "le")


def figures(metrics: Metrics, *models: Model) -> dict[tuple[str, ...], float]:
    """Each figure by its name and the values of its labels."""
    found = {}
    for family in text_string_to_metric_families(metrics.text(models).decode()):
        assert family.name.startswith("deciban_")
        assert len(family.documentation) > 10
        for sample in family.samples:
            values = (sample.labels[label] for label in LABELS if label in sample.labels)
            key = (sample.name.removeprefix("deciban_"), *values)
            assert key not in found
            found[key] = sample.value
    return found


# rows


def test_rows_classes_and_cells_are_counted(metrics: Metrics, clf: BayesClassifier, state: State) -> None:
    rng = np.random.default_rng(1)
    frame = rows_of(rng, 500).drop(columns="label")
    frame.loc[rng.random(500) < 0.1, "length"] = np.nan
    frame.loc[rng.random(500) < 0.2, "country"] = None
    frame.loc[rng.random(500) < 0.05, "country"] = "nowhere"
    predicted(metrics, clf, state, frame)
    metrics.flush()
    found = figures(metrics)
    assert found["predicted_rows_total", "mail"] == found["monitored_rows_total", "mail"] == 500
    for label, rows in Counter(clf.predict(frame)).items():
        assert found["monitored_predictions_total", "mail", label] == rows
    assert found["missing_cells_total", "mail", "length"] == frame["length"].isna().sum()
    assert found["missing_cells_total", "mail", "country"] == frame["country"].isna().sum()
    assert found["unseen_cells_total", "mail", "country"] == (frame["country"] == "nowhere").sum()
    assert ("unseen_cells_total", "mail", "length") not in found
    cells = UnknownCells(state.fitted.model)
    cells.add(records_to_table(state.fitted.model.schema, json.loads(frame.to_json(orient="records"))))
    assert {name: found["missing_cells_total", "mail", name] for name in cells.missing} == cells.missing
    assert {name: found["unseen_cells_total", "mail", name] for name in cells.unseen} == cells.unseen


def test_the_thread_works_rows_off_by_itself(metrics: Metrics, clf: BayesClassifier, state: State) -> None:
    predicted(metrics, clf, state, rows_of(np.random.default_rng(2), 50).drop(columns="label"))
    end = time.monotonic() + 10
    while figures(metrics).get(("estimated_prior_rows", "mail")) != 50:
        assert time.monotonic() < end
        time.sleep(0.02)
    assert figures(metrics)["monitored_rows_total", "mail"] == 50


def test_under_overload_rows_are_left_out_and_counted_so(
    metrics: Metrics, clf: BayesClassifier, state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "MAX_QUEUED_TABLES", 10)
    monkeypatch.setattr(watch, "ROUND_SECONDS", 60.0)
    predicted(metrics, clf, state, rows_of(np.random.default_rng(3), 100).drop(columns="label"), each=1)
    metrics.flush()
    found = figures(metrics)
    assert (found["predicted_rows_total", "mail"], found["monitored_rows_total", "mail"]) == (100, 10)
    assert sum(value for key, value in found.items() if key[0] == "monitored_predictions_total") == 10


def test_few_bytes_wait(metrics: Metrics, clf: BayesClassifier, state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "MAX_QUEUED_BYTES", 1000)
    monkeypatch.setattr(watch, "ROUND_SECONDS", 60.0)
    predicted(metrics, clf, state, rows_of(np.random.default_rng(3), 100).drop(columns="label"), each=10)
    metrics.flush()
    assert 10 <= figures(metrics)["monitored_rows_total", "mail"] < 100


def test_the_body_of_a_request_counts_as_bytes_that_wait(
    metrics: Metrics, state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "ROUND_SECONDS", 60.0)
    table = records_to_table(state.fitted.model.schema, [{}])
    for _ in range(10):
        metrics.observe_rows("mail", state, table, np.array([[0.5, 0.5]]), body_bytes=watch.MAX_QUEUED_BYTES // 4)
    metrics.flush()
    found = figures(metrics)
    assert (found["predicted_rows_total", "mail"], found["monitored_rows_total", "mail"]) == (10, 4)


def test_rows_that_tell_nothing_leave_the_prior_and_take_no_time(metrics: Metrics, state: State) -> None:
    prior = np.exp(state.fitted.log_prior)
    rng = np.random.default_rng(19)
    odds = prior * np.exp(rng.normal(0, 1e-3, (10_000, 2)))
    posterior = odds / odds.sum(axis=1, keepdims=True)
    metrics.observe_rows("mail", state, records_to_table(state.fitted.model.schema, [{}] * 10_000), posterior)
    start = time.thread_time()
    metrics.flush()
    assert time.thread_time() - start < 5
    assert figures(metrics)["estimated_prior_ratio", "mail", "spam"] == pytest.approx(prior[1], abs=0.1)


def test_a_fault_in_the_watch_does_not_stop_it(
    metrics: Metrics, clf: BayesClassifier, state: State, caplog: pytest.LogCaptureFixture
) -> None:
    wrong: Any = SimpleNamespace(rows=1, width=3)
    metrics.observe_rows("mail", state, wrong, np.ones((1, 5)))
    metrics.flush()
    assert "internal error while monitoring" in caplog.text
    predicted(metrics, clf, state, rows_of(np.random.default_rng(4), 20).drop(columns="label"))
    metrics.flush()
    assert figures(metrics)["monitored_rows_total", "mail"] == 20


@pytest.mark.filterwarnings("ignore:the target has 300 classes")
def test_names_of_columns_and_classes_are_bounded(metrics: Metrics) -> None:
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(rng.normal(size=(600, 300)), columns=[f"column {k}" for k in range(300)])
    labels = np.arange(600) % 300
    clf = BayesClassifier(tune=None).fit(frame, labels)
    state = State(clf._get_fitted(), "v", 0, time.time())
    blank = pd.DataFrame(np.full((4, 300), np.nan), columns=frame.columns)
    table = records_to_table(state.fitted.model.schema, [{}] * 4)
    metrics.observe_rows("wide", state, table, clf.predict_proba(blank))
    table = records_to_table(state.fitted.model.schema, frame.to_dict("records"))
    metrics.observe_rows("wide", state, table, clf.predict_proba(frame))
    metrics.flush()
    found = figures(metrics, Model("wide", state))
    for name, total in (
        ("missing_cells_total", 1200),
        ("monitored_predictions_total", 604),
        ("model_prior_ratio", 1.0),
    ):
        mine = {key[2]: value for key, value in found.items() if key[0] == name}
        assert len(mine) <= MAX_LABELS + 1
        assert sum(mine.values()) == pytest.approx(total)
    assert found["missing_cells_total", "wide", "other"] == 400


# outliers


def share_of_outliers(clf: BayesClassifier, frame: pd.DataFrame) -> float:
    made = Metrics()
    state = State(clf._get_fitted(), "v", 0, 0.0)
    records = [{k: None if v is None or v != v else v for k, v in row.items()} for row in frame.to_dict("records")]
    table = records_to_table(state.fitted.model.schema, records)
    made.observe_rows("m", state, table, clf.predict_proba(frame))
    made.flush()
    made.close()
    found = figures(made)
    assert found["outlier_checked_rows_total", "m"] == len(frame)
    return found["outlier_rows_total", "m"] / len(frame)


@pytest.fixture(scope="module")
def measured() -> BayesClassifier:
    """A model in which a missing cell moves the density of a row by far, up (`coarse`) or down (`fine`)."""
    rng = np.random.default_rng(20)
    label = rng.choice(["a", "b"], 4000)
    center = np.where(label == "b", 1.0, 0.0)
    frame = pd.DataFrame(
        {
            "length": rng.normal(center, 1.0),
            "coarse": 1e5 * rng.normal(center, 1.0),
            "fine": 1e-5 * rng.normal(center, 1.0),
            "country": np.where(rng.random(4000) < 0.2 + 0.5 * center, "there", "here"),
        }
    )
    return BayesClassifier(families=dict.fromkeys(["length", "coarse", "fine"], Gaussian()), tune=None).fit(
        frame, label
    )


LACKING = [[], ["length"], ["coarse"], ["fine"], ["coarse", "fine"], ["fine", "country"], ["length", "coarse"]]


@pytest.mark.parametrize("gone", LACKING, ids="+".join)
def test_about_one_in_a_thousand_of_the_model_s_own_rows_is_an_outlier(
    measured: BayesClassifier, gone: list[str]
) -> None:
    """Whatever cells are missing: without `fine` all rows would be outliers, without `coarse` none, if rows that lack
    cells were judged by those that have them all."""
    own = measured.sample(20_000, random_state=8).X
    own[gone] = None
    assert 0.0003 < share_of_outliers(measured, own) < 0.0025


@pytest.mark.parametrize("gone", [lacking for lacking in LACKING if "length" not in lacking], ids="+".join)
def test_missing_cells_hide_no_outliers(measured: BayesClassifier, gone: list[str]) -> None:
    """A length six deviations off costs a row 18 nats; that `coarse` is missing would give it back 12."""
    strange = measured.sample(500, random_state=9).X
    strange["length"] = 7.0
    strange[gone] = None
    assert share_of_outliers(measured, strange) > 0.95


@pytest.mark.parametrize("unseen", ["ignore", "smooth"])
def test_a_value_never_seen_is_left_out_of_the_judgment(unseen: str) -> None:
    """Also where it counts as evidence: among many rows, as very little of it."""
    rng = np.random.default_rng(21)
    country = rng.choice(["here", "there"], 200_000)
    frame = pd.DataFrame({"length": rng.normal(size=200_000), "country": country})
    clf = BayesClassifier(tune=None, unseen=unseen).fit(frame, rng.choice(["a", "b"], 200_000))
    own = clf.sample(20_000, random_state=10).X.assign(country="nowhere")
    assert 0.0003 < share_of_outliers(clf, own) < 0.0025
    assert share_of_outliers(clf, own.head(100).assign(length=12.0)) == 1.0


def test_outliers_are_those_of_low_density(clf: BayesClassifier) -> None:
    """Without missing cells the rule is that of `log_density`, with a limit from rows of the model itself."""
    rng = np.random.default_rng(11)
    frame = rows_of(rng, 3000).drop(columns="label")
    frame["length"] += rng.normal(0, 1.5, 3000)
    limit = np.quantile(clf.log_density(clf.sample(200_000, random_state=12)[0]), 0.001)
    assert share_of_outliers(clf, frame) == pytest.approx((clf.log_density(frame) < limit).mean(), rel=0.25)


def test_unseen_values_in_columns_of_views_are_taken_out() -> None:
    """DuckDB and Arrow have text as views, for which Arrow cannot choose between cells."""
    cells = pa.chunked_array([pa.array(["a", "b", "c"], pa.string_view())])
    gone = np.array([[False], [True], [False]])
    left = without_cells(Frame(pa.table({"x": cells})), gone)
    assert isinstance(left, Frame)
    assert left.table["x"].to_pylist() == ["a", None, "c"]


def test_many_sets_of_missing_cells_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(13)
    frame = pd.DataFrame(rng.normal(size=(200, 12)), columns=[f"c{k}" for k in range(12)])
    clf = BayesClassifier(tune=None).fit(frame, np.arange(200) % 2)
    outliers = OutlierDetector(clf._get_fitted())
    kinds = (rng.random((1000, 12)) < 0.5).astype(np.int8)
    kinds[:300] = 0
    table = records_to_table(clf.schema_, frame.sample(1000, replace=True, random_state=0).to_dict("records"))
    judged, _ = outliers.count(table, kinds)
    assert 300 <= judged < 1000
    assert len(outliers._limits) == 16


def test_a_model_without_samples_has_no_outliers(
    metrics: Metrics, clf: BayesClassifier, state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: Any) -> Any:
        raise UsageError("rows cannot be drawn")

    monkeypatch.setattr("deciban.scoring.outliers.sample_rows", refuse)
    predicted(metrics, clf, state, rows_of(np.random.default_rng(4), 20).drop(columns="label"))
    metrics.flush()
    found = figures(metrics)
    assert found["monitored_rows_total", "mail"] == 20
    assert ("outlier_checked_rows_total", "mail") not in found


def test_texts_and_columns_without_names(metrics: Metrics) -> None:
    texts = pd.DataFrame({"text": ["cheap pills now", "meeting at noon", "cheap offer", "lunch at noon"] * 20})
    clf = BayesClassifier(tune=None).fit(texts, ["spam", "ham"] * 40)
    state = State(clf._get_fitted(), "v", 0, 0.0)
    table = records_to_table(state.fitted.model.schema, [{"text": "cheap lunch"}, {"text": None}])
    metrics.observe_rows("texts", state, table, np.full((2, 2), 0.5))
    numbers = BayesClassifier(tune=None).fit(np.random.default_rng(0).normal(size=(50, 3)), np.arange(50) % 2)
    state = State(numbers._get_fitted(), "v", 0, 0.0)
    table = records_to_table(state.fitted.model.schema, [[1.0, None, 2.0], [0.0, 50.0, 0.0]])
    metrics.observe_rows("numbers", state, table, np.full((2, 2), 0.5))
    metrics.flush()
    found = figures(metrics)
    assert found["missing_cells_total", "texts", "text"] == 1
    assert found["missing_cells_total", "numbers", "x1"] == 1
    assert found["outlier_checked_rows_total", "texts"] == found["outlier_checked_rows_total", "numbers"] == 2
    assert found["outlier_rows_total", "numbers"] == 1


def test_a_model_that_is_learned_on_line_is_judged_by_an_old_one_for_a_while(
    metrics: Metrics, clf: BayesClassifier, state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Any] = []
    real = watch.OutlierDetector
    monkeypatch.setattr(watch, "OutlierDetector", lambda fitted: (made.append(fitted), real(fitted))[1])
    frame = rows_of(np.random.default_rng(14), 30).drop(columns="label")
    states = [State(state.fitted.with_settings(state.fitted.settings), f"v{k}", k, 0.0) for k in range(5)]
    for one in states:
        predicted(metrics, clf, one, frame)
    metrics.flush()
    assert (len(made), figures(metrics)["monitored_rows_total", "mail"]) == (1, 150)
    monkeypatch.setattr(watch, "RENEW_SECONDS", 0.0)
    newest = State(state.fitted.with_settings(state.fitted.settings), "v5", 5, 0.0)
    predicted(metrics, clf, newest, frame)
    metrics.flush()
    assert made[-1] is newest.fitted


def test_new_classes_begin_a_new_window(metrics: Metrics, clf: BayesClassifier, state: State) -> None:
    frame = rows_of(np.random.default_rng(15), 60)
    predicted(metrics, clf, state, frame.drop(columns="label"))
    more = frame.assign(label=np.where(np.arange(60) % 3 == 0, "news", frame["label"]))
    other = BayesClassifier(tune=None).fit(more, "label")
    predicted(metrics, other, State(other._get_fitted(), "v2", 1, 0.0), more.head(20).drop(columns="label"))
    metrics.flush()
    found = figures(metrics)
    assert found["monitored_rows_total", "mail"] == 80
    assert found["monitored_predictions_total", "mail", "news"] >= 0


# priors and costs


def test_the_estimated_prior_follows_a_shift(metrics: Metrics, clf: BayesClassifier, state: State) -> None:
    frame = rows_of(np.random.default_rng(16), 5000, (0.2, 0.8))
    predicted(metrics, clf, state, frame.drop(columns="label"), each=100)
    metrics.flush()
    found = figures(metrics, Model("mail", state))
    assert found["model_prior_ratio", "mail", "spam"] == pytest.approx(np.exp(state.fitted.log_prior)[1])
    posterior = clf.predict_proba(frame.drop(columns="label"))
    by_hand = estimate_shares(posterior, np.exp(state.fitted.log_prior), clf.classes_, 0.95, 0.0)
    assert found["estimated_prior_ratio", "mail", "spam"] == pytest.approx(by_hand.prior[1], abs=1e-6)
    assert found["estimated_prior_ratio", "mail", "spam"] == pytest.approx(0.8, abs=0.02)
    assert found["estimated_prior_rows", "mail"] == 5000


def test_only_the_last_rows_count_for_the_prior(
    metrics: Metrics, clf: BayesClassifier, state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "PRIOR_ROWS", 500)
    for shares in ((1.0, 0.0), (0.0, 1.0)):
        frame = rows_of(np.random.default_rng(17), 700, shares).drop(columns="label")
        predicted(metrics, clf, state, frame, each=30)
        metrics.flush()
    found = figures(metrics)
    assert found["estimated_prior_ratio", "mail", "spam"] > 0.97
    assert found["estimated_prior_rows", "mail"] == 500


def test_the_window_holds_the_last_rows_however_they_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "PRIOR_ROWS", 500)
    window = watch._Window(np.array(["a", "b"]))
    half = np.array([0.5, 0.5])
    for _ in range(2):
        for place in range(100):
            window.add(np.tile([1.0, 0.0] if place < 80 else [0.0, 1.0], (30, 1)), half)
            assert sum(map(len, window._parts)) < 2 * 500
        found = window.estimate(half)
        assert found is not None
        assert found.rows == 500
        assert found.shares[1] > 0.99  # the last 600 rows are of the second class
    assert window.estimate(half) is None, "nothing has come since"


def test_requests_without_rows_are_not_monitored(
    metrics: Metrics, clf: BayesClassifier, state: State, caplog: pytest.LogCaptureFixture
) -> None:
    frame = rows_of(np.random.default_rng(3), 30, (0.5, 0.5)).drop(columns="label")
    for rows in (frame.head(0), frame, frame.head(0)):
        predicted(metrics, clf, state, rows)
        metrics.flush()
        assert not caplog.records
    assert figures(metrics)["estimated_prior_rows", "mail"] == 30


def test_costs_are_added_up(metrics: Metrics) -> None:
    metrics.observe_decisions("mail", np.array([1.0, 2.5, np.inf]))
    metrics.observe_decisions("mail", np.array([-4.0]))
    metrics.flush()
    found = figures(metrics)
    assert found["decisions_total", "mail"] == 3
    assert found["decisions_expected_cost", "mail"] == pytest.approx(-0.5)


def test_no_decision_is_lost_however_many_come(metrics: Metrics) -> None:
    for _ in range(watch.MAX_QUEUED_TABLES + 100):
        metrics.observe_decisions("mail", np.array([0.5]))
    assert figures(metrics)["decisions_total", "mail"] == watch.MAX_QUEUED_TABLES + 100


def test_a_class_keeps_its_label_when_others_come_and_go(metrics: Metrics, monkeypatch: pytest.MonkeyPatch) -> None:
    """Classes are sorted: `aa`, which is learned later, would push `d` out of the first three."""
    monkeypatch.setattr("deciban.serve.metrics.MAX_LABELS", 3)
    monkeypatch.setattr(watch, "RENEW_SECONDS", 0.0)
    told = []
    for classes in ("bcd", ["aa", "b", "c", "d"], "cd"):
        clf = BayesClassifier(tune=None).fit(pd.DataFrame({"x": np.arange(4.0 * len(classes))}), [*classes] * 4)
        state = State(clf._get_fitted(), "v", 0, time.time())
        rows = len(classes)
        table = records_to_table(state.fitted.model.schema, [{}] * rows)
        metrics.observe_rows("m", state, table, np.eye(rows))
        metrics.flush()
        found = figures(metrics, Model("m", state))
        names = ("model_prior_ratio", "estimated_prior_ratio")
        told += [{key[2] for key in found if key[0] == name} for name in names]
    assert told == [{"b", "c", "d"}] * 2 + [{"b", "c", "d", "other"}] * 2 + [{"c", "d"}] * 2
    assert found["monitored_predictions_total", "m", "other"] == 1


# requests, models, learners


def test_requests_and_cut_connections(metrics: Metrics) -> None:
    for seconds in (0.0001, 0.004, 0.2):
        metrics.observe_request("/predict", 200, seconds)
    metrics.observe_request("/predict", 422, 0.01)
    metrics.observe_drop("head_timeout")
    found = figures(metrics)
    assert found["request_duration_seconds_count", "/predict", "200"] == 3
    assert found["request_duration_seconds_sum", "/predict", "200"] == pytest.approx(0.2041)
    assert found["request_duration_seconds_bucket", "/predict", "200", "0.005"] == 2
    assert found["request_duration_seconds_count", "/predict", "422"] == 1
    assert found["connections_dropped_total", "head_timeout"] == 1


def test_models_and_learners(metrics: Metrics, state: State) -> None:
    status = {
        "sequence": 12,
        "journal_bytes": 4096,
        "pending_rows": 3,
        "snapshots": 2,
        "snapshot_age_seconds": 1.5,
        "problems": ["the disk is full"],
    }
    learner = SimpleNamespace(status=lambda: status)
    found = figures(metrics, Model("mail", state, learner=learner), Model("b", None, "it is corrupt"))
    assert 100 <= found["model_age_seconds", "mail"] < 200
    assert found["model_rows", "mail"] == 4000
    assert (found["model_reload_failed", "mail"], found["model_reload_failed", "b"]) == (0, 1)
    assert ("model_age_seconds", "b") not in found
    assert found["learner_sequence", "mail"] == 12
    assert found["learner_journal_bytes", "mail"] == 4096
    assert found["learner_pending_rows", "mail"] == 3
    assert found["learner_snapshots_total", "mail"] == 2
    assert found["learner_snapshot_age_seconds", "mail"] == 1.5
    assert found["learner_problems", "mail"] == 1


def test_labels_of_any_kind_are_written_so_that_they_can_be_read(metrics: Metrics) -> None:
    names = ['quo"te', "line\nbreak", "back\\slash", "ä{}=,"]
    frame = pd.DataFrame({name: [1.0, 2.0, None, 4.0] for name in names})
    clf = BayesClassifier(tune=None).fit(frame, ["a\nb", 'c"d'] * 2)
    state = State(clf._get_fitted(), "v", 0, time.time())
    metrics.observe_rows("m", state, records_to_table(clf.schema_, [{}]), np.array([[0.9, 0.1]]))
    metrics.flush()
    found = figures(metrics, Model("m", state))
    assert {key[2] for key in found if key[0] == "missing_cells_total"} == set(names)


# workers, and what it costs


WORKER = """
import sys, numpy as np
from deciban.serve.metrics import Metrics
metrics = Metrics()
for _ in range(int(sys.argv[1])):
    metrics.observe_request("/predict", 200, 0.01)
metrics.observe_decisions("m", np.array([2.0, 3.0]))
metrics.flush()
metrics.close()
sys.stdout.write(metrics.text([]).decode())
"""


def test_figures_of_several_workers_are_summed() -> None:
    with create_shared_folder() as folder:
        assert os.environ[FOLDER_VARIABLE] == folder
        assert os.stat(folder).st_mode & 0o777 == 0o700
        command = [sys.executable, "-c", WORKER]
        subprocess.run([*command, "3"], check=True, capture_output=True)
        done = subprocess.run([*command, "4"], check=True, capture_output=True, text=True)
    assert FOLDER_VARIABLE not in os.environ
    assert not os.path.exists(folder)
    found = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(done.stdout)
        for sample in family.samples
    }
    assert found["deciban_request_duration_seconds_count", "/predict", "200"] == 7
    assert found["deciban_decisions_total", "m"] == 4
    assert found["deciban_decisions_expected_cost", "m"] == 10


def test_the_thread_ends(clf: BayesClassifier, state: State) -> None:
    before = set(threading.enumerate())  # other tests may have services in this process
    made = Metrics()
    predicted(made, clf, state, rows_of(np.random.default_rng(18), 5).drop(columns="label"))
    assert [thread.name for thread in set(threading.enumerate()) - before] == ["deciban-monitor"]
    made.close()
    assert not set(threading.enumerate()) - before


def test_handing_rows_over_takes_microseconds(metrics: Metrics, clf: BayesClassifier, state: State) -> None:
    """A bound that only a change of kind breaks, such as looking at the rows at once, which takes far longer."""
    record = {"length": 1.0, "links": 2.0, "country": "here"}
    tables = [records_to_table(state.fitted.model.schema, [record]) for _ in range(1000)]  # new ones, as requests have
    posterior = np.array([[0.5, 0.5]])
    taken = []
    for table in tables:
        start = time.thread_time_ns()
        metrics.observe_rows("mail", state, table, posterior, body_bytes=60)
        taken.append(time.thread_time_ns() - start)
    assert np.median(taken) < 30_000
