"""Rows in the order of time are tested on the last of them."""

import datetime as dt
import sqlite3
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score, log_loss

from deciban import BayesClassifier, UsageError, scan
from deciban.errors import DecibanWarning
from deciban.evaluation import validation
from tests.support.command import Deciban

ROWS = 400


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def drifting(rows: int = ROWS) -> pd.DataFrame:
    """The mean of a class moves with time; some of the last rows have no label yet."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 2, rows)
    labels = np.array(["no", "yes"], dtype=object)[kind]
    labels[-10:] = None
    return pd.DataFrame({
        "day": [dt.date(2023, 1, 1) + dt.timedelta(i // 2) for i in range(rows)],
        "size": rng.normal(size=rows) + kind * np.linspace(2.0, -2.0, rows),
        "town": rng.choice(["Ulm", "Bern"], rows),
        "kind": labels,
    })  # fmt: skip


def warned(call: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        call()
    return [str(one.message) for one in given if isinstance(one.message, DecibanWarning)]


@pytest.mark.parametrize("where", ["memory", "file", "long file"])
def test_the_last_rows_are_scored_by_a_model_of_those_before(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = drifting()
    frame.to_csv("a.csv", index=False)
    if where == "long file":  # read in pieces, and not held in memory
        monkeypatch.setattr(validation, "hold_in_memory", lambda rows: rows)
        monkeypatch.setattr("deciban.sources.source.STREAM_ROWS", 64)
    rows = frame if where == "memory" else "a.csv"
    found = BayesClassifier(tune=None).cross_validate(rows, "kind", hold_out_last=0.3)
    labeled = frame[frame["kind"].notna()]
    last = round(0.3 * len(labeled))
    earlier, later = labeled[:-last], labeled[-last:]
    clf = BayesClassifier(tune=None).fit(earlier, "kind")
    assert found.weight == last
    assert found.accuracy == accuracy_score(later["kind"], clf.predict(later))
    assert found.log_loss == pytest.approx(log_loss(later["kind"], clf.predict_proba(later)), rel=1e-12)
    assert found.accuracy < BayesClassifier(tune=None).cross_validate(labeled, "kind").accuracy - 0.1


def test_at_least_one_row_is_held_out_and_one_is_learned() -> None:
    frame = drifting(20)
    assert BayesClassifier(tune=None).cross_validate(frame, "kind", hold_out_last=1e-6).weight == 1
    assert BayesClassifier(tune=None).cross_validate(frame, "kind", hold_out_last=0.999).weight == 9
    for share in (0.0, 1.0, -0.5):
        with pytest.raises(UsageError, match=r"hold_out_last=.*: expected a number between 0 and 1"):
            BayesClassifier().cross_validate(frame, "kind", hold_out_last=share)


def test_rows_in_the_order_of_time_are_noted_once(deciban: Deciban) -> None:
    frame = drifting()
    frame.to_csv("a.csv", index=False)
    note = (
        "the rows are in the order of 'day', so metrics of a random split are too optimistic; to test on later rows, "
        "evaluate with "
    )
    for rows in (frame, "a.csv", frame[::-1]):
        assert warned(lambda rows=rows: BayesClassifier(tune="weights").fit(rows, "kind")) == [
            f"{note}hold_out_last=0.2"
        ]
        assert warned(lambda rows=rows: BayesClassifier(tune=None).fit(rows, "kind")) == []
    assert warned(lambda: BayesClassifier(tune="weights").cross_validate(frame, "kind")) == [f"{note}hold_out_last=0.2"]
    assert warned(lambda: BayesClassifier(tune="weights").cross_validate(frame, "kind", hold_out_last=0.2)) == []
    shuffled = frame.sample(frac=1.0, random_state=0)
    assert warned(lambda: BayesClassifier(tune="weights").fit(shuffled, "kind")) == []
    assert warned(lambda: BayesClassifier(tune="weights").fit(frame.assign(day=frame["day"][0]), "kind")) == []
    for command in (("fit", "-o", "m.dcb"), ("evaluate",), ("evaluate", "--hold-out", "0.2")):
        answer = deciban(command[0], "a.csv", "-t", "kind", "--tune", "weights", *command[1:])
        assert answer.err.count(f"{note}--hold-out-last 0.2") == 1
    answer = deciban("evaluate", "a.csv", "-t", "kind", "--tune", "weights", "--hold-out-last", "20%")
    assert answer.out.startswith("hold-out of the last 20% of the rows\n")
    assert "order of" not in answer.err


def test_last_rows_that_are_not_the_latest_are_warned_of() -> None:
    frame = drifting()
    clf = BayesClassifier(tune=None)
    assert warned(lambda: clf.cross_validate(frame[::-1], "kind", hold_out_last=0.2)) == [
        "by 'day', the rows are from late to early, so the last rows are the earliest; sort them by 'day' first"
    ]
    shuffled = frame.sample(frac=1.0, random_state=0)
    assert warned(lambda: clf.cross_validate(shuffled, "kind", hold_out_last=0.2)) == [
        "by 'day', the rows are not sorted; sort them by 'day' first"
    ]
    assert warned(lambda: clf.cross_validate(frame.drop(columns="day"), "kind", hold_out_last=0.2)) == []


def test_rows_of_a_query_need_an_order(deciban: Deciban) -> None:
    frame = drifting()
    frame.to_csv("a.csv", index=False)
    connection = sqlite3.connect(":memory:")
    frame.to_sql("sales", connection, index=False)
    clf = BayesClassifier(tune=None)
    expected = clf.cross_validate("a.csv", "kind", hold_out_last=0.2)
    found = clf.cross_validate("sql: select * from 'a.csv' order by day", "kind", hold_out_last=0.2)
    assert (found.accuracy, found.log_loss) == (expected.accuracy, expected.log_loss)
    sorted_rows = scan(connection, query="select * from sales ORDER  BY day", ignore=["day"])  # text in SQLite
    expected = clf.cross_validate(frame.drop(columns="day"), "kind", hold_out_last=0.2)
    assert clf.cross_validate(sorted_rows, "kind", hold_out_last=0.2).accuracy == expected.accuracy
    for rows in ("sql: select * from 'a.csv'", scan(connection, table="sales")):
        with pytest.raises(UsageError, match=r"hold_out_last=0.2: these rows have no order; sort them with ORDER BY"):
            clf.cross_validate(rows, "kind", hold_out_last=0.2)
    answer = deciban("evaluate", "sql: select * from 'a.csv'", "-t", "kind", "--hold-out-last", "0.2")
    assert answer.code == 2
    assert "the query: --hold-out-last 0.2: these rows have no order" in answer.err


def test_one_method_is_chosen(deciban: Deciban) -> None:
    drifting().to_csv("a.csv", index=False)
    answer = deciban("evaluate", "a.csv", "-t", "kind", "--hold-out-last", "0.2", "--folds", "3")
    assert answer.code == 2
    assert "--folds and --hold-out-last cannot be combined; choose one" in answer.err
