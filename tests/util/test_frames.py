"""Data frames of results: the library of the caller's rows, a given one, or one that is there."""

import sys
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pandas.testing import assert_frame_equal

from deciban import BayesClassifier, UsageError, decide, load
from deciban.datasets import weather
from deciban.plot import EvidenceDisplay, ImportanceDisplay
from deciban.util import frames
from deciban.util.frames import choose_library, library_of, make_frame

FORMS: dict[str, Any] = {
    "pandas": lambda table: table.to_pandas(),
    "polars": pl.DataFrame,
    "pyarrow": lambda table: table,
}
KINDS = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.Table}


def results(rows: Any) -> dict[str, Any]:
    """Every result of a classifier that learned these rows."""
    clf = BayesClassifier().fit(rows, "play")
    few = rows[:2] if not isinstance(rows, pa.Table) else rows.slice(0, 2)
    with pytest.warns(UserWarning, match="may be too extreme"):
        prior = BayesClassifier(tune=None).fit(rows, "play").estimate_prior(rows)
    left_out = clf.leave_one_out()
    return {
        "schema": clf.schema_,
        "tuning": clf.tuning_,
        "explanation": clf.explain(few),
        "explanation by block": clf.explain(few, by="block"),
        "evidence of an explanation": clf.explain(few).evidence,
        "evidence": clf.evidence(few),
        "evidence by column": clf.evidence(few, by="column"),
        "evaluation": clf.evaluate(rows, "play"),
        "cross-validation": BayesClassifier(tune=None).cross_validate(rows, "play", folds=2),
        "leave one out": left_out,
        "evaluation of it": left_out.evaluate(),
        "calibration": clf.evaluate(rows, "play").calibration,
        "calibration of it": left_out.calibration(),
        "diagnosis": clf.diagnose(),
        "leave one out before": clf.diagnose().before,
        "threshold": clf.threshold(),
        "parameters": clf.parameter_count(),
        "bayes error": clf.bayes_error(n_samples=100),
        "estimates of a block": clf.estimates()["wind"],
        "importance": clf.importance(),
        "importance of rows": clf.importance(few),
        "estimates": clf.estimates(),
        "linear form": BayesClassifier(tune=None).fit(rows, "play").linear_form(),
        "decisions": clf.decide(few),
        "decisions of a table": decide(make_frame({"no": [0.2], "yes": [0.8]}, library_of(rows) or "pandas")),
        "coverage": clf.coverage_curve(rows, "play"),
        "prior": prior,
        "intervals": clf.predict_interval(few),
        "sample": clf.sample(3, random_state=0),
        "evidence display": EvidenceDisplay.from_estimator(clf, few),
        "importance display": ImportanceDisplay.from_estimator(clf),
    }


@pytest.fixture(scope="module")
def every() -> dict[str, dict[str, Any]]:
    return {library: results(form(weather())) for library, form in FORMS.items()}


@pytest.mark.parametrize("library", FORMS)
def test_results_come_in_the_library_of_the_rows(library: str, every: Any) -> None:
    found = {name: type(result.to_frame()) for name, result in every[library].items()}
    assert found == dict.fromkeys(found, KINDS[library])


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_the_libraries_agree(library: str, every: Any) -> None:
    for name, result in every["pandas"].items():
        expected, other = result.to_frame(), every[library][name].to_frame().to_pandas()
        assert list(other) == list(expected), name
        numbers = expected.select_dtypes("number").columns
        assert_frame_equal(other[numbers], expected[numbers], check_dtype=False)
        for column in set(expected) - set(numbers):
            assert list(map(as_text, other[column])) == list(map(as_text, expected[column])), name


def as_text(cell: Any) -> str | None:
    if isinstance(cell, list | np.ndarray):
        return str(list(cell))
    return None if pd.isna(cell) else str(cell)


@pytest.mark.parametrize("library", FORMS)
def test_a_library_can_be_chosen(library: Any, every: Any) -> None:
    for result in every["polars"].values():
        assert type(result.to_frame(library)) is KINDS[library]
    with pytest.raises(UsageError, match="library='dask': choose 'pandas', 'polars', 'pyarrow'"):
        every["polars"]["schema"].to_frame("dask")


def test_samples_have_rows_in_the_library_and_learn_again(every: Any) -> None:
    for library, found in every.items():
        X, y = found["sample"]
        assert isinstance(X, KINDS[library])
        assert X is found["sample"][0]
        assert len(found["sample"].to_dict()["play"]) == len(y) == 3
        assert BayesClassifier(tune=None).fit(X, y).counts_.rows == 3


def test_without_a_table_of_the_caller_a_library_that_is_there_is_used(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    clf = BayesClassifier(tune=None).fit(weather().to_pylist(), [1, 2] * 7)
    clf.save(tmp_path / "days.dcb")
    for made in (clf, load(tmp_path / "days.dcb")):
        assert isinstance(made.schema_.to_frame(), pd.DataFrame)
        assert isinstance(made.sample(2).X, pd.DataFrame)
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert choose_library(None) == "polars"
    monkeypatch.setitem(sys.modules, "polars", None)
    assert choose_library(None) == "pyarrow"
    with pytest.raises(UsageError, match="polars is not installed"):
        clf.schema_.to_frame("polars")
    monkeypatch.delitem(sys.modules, "polars")
    monkeypatch.setattr(frames, "find_spec", lambda name: name == "polars" or None)
    assert choose_library(None) == "polars"


def test_a_column_may_have_the_name_of_the_attribute() -> None:
    rows = pd.DataFrame({frames.MADE_FROM: [1.0, 2.0, 3.0, 4.0]})
    assert library_of(rows) == "pandas"
    assert isinstance(BayesClassifier(tune=None).fit(rows, [0, 1, 0, 1]).schema_.to_frame(), pd.DataFrame)


def test_values_of_different_types_become_text() -> None:
    table = make_frame({"x": [1, "a", None, True], "y": np.array([1, 2, 3, 4])}, "pyarrow")
    assert table.to_pydict() == {"x": ["1", "a", None, "true"], "y": [1, 2, 3, 4]}
    assert make_frame({"x": [1, "a", None]}, "polars")["x"].to_list() == ["1", "a", None]


def test_intervals_can_be_unpacked_and_hold_the_posterior(every: Any) -> None:
    clf = BayesClassifier(tune=None).fit(weather(), "play")
    found = clf.predict_interval(weather(), level=0.8)
    low, high = found
    np.testing.assert_array_equal(found.posterior, clf.predict_proba(weather()))
    assert (low < found.posterior).all()
    assert (found.posterior < found[1]).all()
    assert found[1] is high
    assert found.to_dict()["level"] == 0.8
    frame = found.to_frame("pandas").query("row == 3")
    assert frame["class"].tolist() == ["no", "yes"]
    np.testing.assert_array_equal(frame["high"], high[3])
    assert str(found).splitlines()[0].split() == ["row", "class", "posterior", "80%", "from", "to"]
    assert str(found).splitlines()[-1] == "… (8 more lines: to_frame())"


@pytest.mark.parametrize("tune", ["auto", None])
def test_the_terms_of_evidence_sum_to_the_log_joint(tune: Any) -> None:
    rng = np.random.default_rng(3)
    y = np.arange(400) % 2
    table = pd.DataFrame({"a": rng.normal(y, 1.0), "b": rng.normal(-y, 1.0), "c": rng.choice(list("uvw"), 400)})
    clf = BayesClassifier(tune=tune).fit(table, y)
    few = pd.DataFrame({"a": [40.0, None, 0.1], "b": [-40.0, 0.2, None], "c": ["u", None, "w"]})
    assert str(clf.evidence(few[:0])) == "no rows"
    for by in ("block", "column"):
        found = clf.evidence(few, by=by)
        total = found.to_frame().pivot_table(index="row", columns="class", values="nats", aggfunc="sum")
        np.testing.assert_allclose(total, clf.log_joint(few), rtol=1e-9)
        printed = [line.split()[2:] for line in str(found).splitlines() if line.startswith("log joint")]
        np.testing.assert_allclose(np.array(printed, dtype=float), clf.log_joint(few), atol=1e-4)
