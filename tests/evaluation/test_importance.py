"""How much columns matter: against sums over rows by hand, left out, new and drawn."""

import numpy as np
import pyarrow as pa
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, load_wine

from deciban import BayesClassifier, Complement, UsageError
from deciban.evaluation.importance import compute_simulated_importance
from tests import textbook

X, Y = load_iris(return_X_y=True)


def test_the_figures_are_means_over_rows_that_are_left_out() -> None:
    """Against models that were fitted without the row, and then without the column."""
    rows = np.r_[0:150:10, 101]
    clf = textbook().fit(X, Y)
    found = clf.importance()
    assert found.rows == 150
    some = clf.importance(X[rows], Y[rows])
    decibans, bits = np.zeros(4), np.zeros(4)
    for i in rows:
        others = np.arange(150) != i
        left = textbook().fit(X[others], Y[others])
        evidence = left.evidence(X[i : i + 1])
        best, second = np.argsort(-evidence.log_joint[0])[:2]
        decibans += 10 / np.log(10) * np.abs(evidence.values[0, :, best] - evidence.values[0, :, second])
        for j in range(4):
            cells = X[i : i + 1].copy()
            cells[0, j] = np.nan
            bits[j] += np.log2(left.predict_proba(X[i : i + 1])[0, Y[i]] / left.predict_proba(cells)[0, Y[i]])
    np.testing.assert_allclose(some.decibans, decibans / len(rows), rtol=1e-9)
    np.testing.assert_allclose(some.bits, bits / len(rows), rtol=1e-7, atol=1e-10)


def test_a_tuned_model_names_the_columns_that_matter() -> None:
    table, y = load_breast_cancer(return_X_y=True, as_frame=True)
    table["noise"] = np.random.default_rng(0).normal(size=len(table))
    found = BayesClassifier().fit(table, y).importance()
    frame = found.to_frame()
    assert frame["column"].tolist()[0].startswith("worst ")
    assert frame.set_index("column")["decibans"]["noise"] < 0.15 * frame["decibans"].max()
    assert (np.diff(frame["decibans"]) <= 0.0).all()
    assert "rows (left out)" in str(found)
    assert [line["column"] for line in found.to_dict()["columns"]] == frame["column"].tolist()
    assert "… (1 more column)" in str(found)


def test_without_labels_the_posterior_expects() -> None:
    clf = textbook().fit(X, Y)
    found = clf.importance(X[:40])
    posterior = clf.predict_proba(X[:40])
    for j in range(4):
        cells = X[:40].copy()
        cells[:, j] = np.nan
        gain = (posterior * np.log2(posterior / clf.predict_proba(cells))).sum(axis=1).mean()
        assert found.bits[j] == pytest.approx(gain, rel=1e-6)
    assert found.source == "new, classes as predicted"


def test_a_model_from_a_file_draws_its_rows(tmp_path) -> None:
    textbook().fit(X, Y).save(tmp_path / "iris.dcb")
    found = BayesClassifier.load(tmp_path / "iris.dcb").importance()
    assert found.source == "sampled from the model"
    assert set(found.order[:2].tolist()) == {2, 3}
    score = textbook(Complement()).fit(np.abs(X), Y)
    score.partial_fit(np.abs(X), Y)
    with pytest.raises(UsageError, match=r"no training rows are in memory, and none can be sampled .*; pass X"):
        score.importance()


def test_simulated_rows_are_as_dependent_as_those_of_a_joint_block() -> None:
    """Drawn column by column, rows would be far outside the joint block, which has most of the evidence."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    common = rng.normal(size=300)
    table = np.column_stack([common + 0.1 * rng.normal(size=300) + 0.3 * y * sign for sign in (-1, 0, 1)])
    clf = BayesClassifier().fit(table, y)
    assert any(group.family.joint for group in clf.tuning_.schema.groups)
    actual, drawn = clf.importance(table).decibans, compute_simulated_importance(clf.fitted_).decibans
    np.testing.assert_allclose(drawn, actual, rtol=0.35)


def test_a_value_that_is_impossible_in_a_class_is_no_nan() -> None:
    table = pa.table({"a": ["u", "u", "v", "v"], "b": ["p", "q", "p", "q"]})
    found = textbook(alpha=0).fit(table, [0, 0, 1, 1]).importance(table)
    assert np.isfinite(found.bits).all()
    assert found.decibans.tolist() == [np.inf, 0.0]
    assert found.order.tolist() == [0, 1]
    assert found.bits[0] == pytest.approx(1.0)


@pytest.mark.parametrize("holes", [0.0, 0.2])
def test_a_tuned_model_loses_what_it_would_without_the_cell(holes: float) -> None:
    """Of new rows it is just what predicting with this cell missing loses."""
    X, y = load_wine(return_X_y=True)
    X = X[:, :7].copy()
    clf = BayesClassifier().fit(X, y)
    X[np.random.default_rng(0).random(X.shape) < holes] = np.nan
    posterior = clf.predict_proba(X)
    found = clf.importance(X)
    for j in range(X.shape[1]):
        cells = X.copy()
        cells[:, j] = np.nan
        gain = (posterior * np.log2(posterior / clf.predict_proba(cells))).sum(axis=1).mean()
        assert found.bits[j] == pytest.approx(gain, abs=1e-6)
