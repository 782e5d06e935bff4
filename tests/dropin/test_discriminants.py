"""The discriminants: weights, missing cells, batches, and fewer rows than columns."""

import warnings
from typing import ClassVar

import numpy as np
import pytest
from sklearn import discriminant_analysis as theirs
from sklearn.covariance import OAS, EmpiricalCovariance
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.metrics import log_loss

from deciban.dropin import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis

BOTH = [LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis]
X, Y = load_iris(return_X_y=True)
WEIGHTS = np.random.default_rng(1).integers(0, 4, 150)
REPEATED = np.repeat(np.arange(150), WEIGHTS)


@pytest.mark.parametrize("kind", BOTH, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("how", [{"shrinkage": "auto"}, {"covariance_estimator": OAS()}], ids=["auto", "estimator"])
def test_weight_k_is_the_row_k_times_where_the_covariance_comes_from_rows(kind, how) -> None:
    parameters = {"solver": "eigen", "store_covariance": True, **how}
    heavy = kind(**parameters).fit(X, Y, WEIGHTS)
    repeated = getattr(theirs, kind.__name__)(**parameters).fit(X[REPEATED], Y[REPEATED])
    np.testing.assert_allclose(heavy.covariance_, repeated.covariance_, rtol=1e-10)
    np.testing.assert_allclose(heavy.predict_proba(X), repeated.predict_proba(X), rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("kind", BOTH, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("how", [{"shrinkage": "auto"}, {"covariance_estimator": OAS()}], ids=["auto", "estimator"])
def test_a_row_of_weight_zero_is_not_there(kind, how) -> None:
    parameters = {"solver": "eigen", "store_covariance": True, **how}
    far, labels = np.concatenate([X, np.full((1, 4), 1e4)]), np.append(Y, 2)
    without = kind(**parameters).fit(far, labels, np.append(np.ones(150), 0.0))
    np.testing.assert_allclose(without.covariance_, kind(**parameters).fit(X, Y).covariance_, rtol=1e-12)


class Weighted(EmpiricalCovariance):
    """An estimator that takes weights."""

    seen: ClassVar[list] = []

    def fit(self, X, y=None, sample_weight=None):
        self.seen.append(sample_weight)
        self.covariance_ = np.cov(X.T, aweights=sample_weight, ddof=0)
        return self


def test_fractional_weights_go_to_an_estimator_that_takes_them_and_are_refused_for_others() -> None:
    fractions = np.random.default_rng(2).random(150)
    with pytest.raises(ValueError, match=r"^OAS.fit does not accept sample_weight, .*; omit sample_weight"):
        LinearDiscriminantAnalysis("lsqr", covariance_estimator=OAS()).fit(X, Y, fractions)
    heavy = LinearDiscriminantAnalysis("lsqr", covariance_estimator=Weighted()).fit(X, Y, fractions)
    plain = LinearDiscriminantAnalysis("lsqr").fit(X, Y, fractions)
    np.testing.assert_allclose(heavy.predict_proba(X), plain.predict_proba(X), rtol=1e-9)
    assert len(Weighted.seen) == 3


@pytest.mark.parametrize("solver", ["svd", "lsqr"])
def test_missing_cells_leave_their_rows_out_of_the_covariance(solver: str) -> None:
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.normal(size=(100, 2)), 2 * rng.normal(size=(100, 2)) + 1])
    labels = np.repeat([0, 1], 100)
    rows[10:100, 0] = np.nan  # nine in ten of the narrow class
    complete = ~np.isnan(rows).any(axis=1)
    ours = LinearDiscriminantAnalysis(solver, store_covariance=True).fit(rows, labels)
    expected = theirs.LinearDiscriminantAnalysis("lsqr").fit(rows[complete], labels[complete]).covariance_
    np.testing.assert_allclose(ours.covariance_, expected, rtol=1e-10)


@pytest.mark.parametrize("kind", BOTH, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("first", [1, 50], ids=["one row", "one class"])
def test_the_first_batch_may_be(kind, first: int) -> None:
    parts = kind().partial_fit(X[:first], Y[:first], classes=[0, 1, 2])
    assert parts.predict(X[:first]).tolist() == [0] * first
    parts.partial_fit(X[first:], Y[first:])
    np.testing.assert_allclose(parts.predict_proba(X), kind().fit(X, Y).predict_proba(X), rtol=1e-9, atol=1e-12)


def test_a_class_without_rows_has_the_distribution_of_all() -> None:
    """With a prior of its own it may be predicted, but not because it is thought to be a point."""
    clf = QuadraticDiscriminantAnalysis(priors=[0.4, 0.4, 0.2]).partial_fit(X[:100], Y[:100], classes=[0, 1, 2])
    mean, matrix = X[:100].mean(axis=0), np.cov(X[:100].T, bias=True)
    away = X[:1] - mean
    expected = -0.5 * (np.linalg.slogdet(matrix)[1] + (away @ np.linalg.inv(matrix) @ away.T).item()) + np.log(0.2)
    own = np.cov(X[:50].T, bias=True)
    away = X[:1] - X[:50].mean(axis=0)
    known = -0.5 * (np.linalg.slogdet(own)[1] + (away @ np.linalg.inv(own) @ away.T).item()) + np.log(0.4)
    joint = clf.predict_joint_log_proba(X[:1])[0]
    assert joint[2] - joint[0] == pytest.approx(expected - known)


def wide_problems():
    rng = np.random.default_rng(0)
    for rows, columns, classes in ((40, 100, 2), (60, 80, 3), (30, 150, 2), (20, 21, 2)):
        means, mixed = rng.normal(size=(classes, columns)) / 4, rng.normal(size=(columns, columns)) / columns**0.5
        labels = np.arange(rows + 400) % classes
        cells = (means[labels] + rng.normal(size=(rows + 400, columns))) @ (np.eye(columns) + mixed)
        yield pytest.param(cells[:rows], labels[:rows], cells[rows:], labels[rows:], id=f"{rows} x {columns}")
    for load, rows in ((load_digits, 50), (load_breast_cancer, 20), (load_breast_cancer, 28)):
        cells, labels = load(return_X_y=True)
        order = rng.permutation(len(labels))
        drawn, others = order[:rows], order[rows : rows + 400]
        name = f"{load.__name__} {rows}"
        yield pytest.param(cells[drawn], labels[drawn], cells[others], labels[others], id=name)


@pytest.mark.parametrize(("rows", "labels", "held_out", "truths"), list(wide_problems()))
@pytest.mark.parametrize("solver", ["svd", "lsqr", "eigen"])
def test_with_fewer_rows_than_columns_it_is_no_surer_than_scikit_learns(rows, labels, held_out, truths, solver) -> None:
    ours = LinearDiscriminantAnalysis(solver).fit(rows, labels)
    reference = theirs.LinearDiscriminantAnalysis().fit(rows, labels)
    found, expected = ours.predict_proba(held_out), reference.predict_proba(held_out)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-9)
    assert log_loss(truths, found, labels=ours.classes_) == pytest.approx(
        log_loss(truths, expected, labels=ours.classes_), rel=1e-4
    )


def test_a_combination_that_tells_the_classes_apart_is_heard_where_rows_are_enough() -> None:
    """scikit-learn drops it, as it does not vary within the classes."""
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 2
    one = rng.normal(size=120)
    rows = np.column_stack([one, one + np.tile(labels, 2)])
    clf = LinearDiscriminantAnalysis().fit(rows[:60], labels)
    assert clf.score(rows[60:], labels) == 1.0
    assert theirs.LinearDiscriminantAnalysis().fit(rows[:60], labels).score(rows[60:], labels) < 0.8
    assert 1e-9 < clf.predict_proba([[0.0, 0.45]])[0, 1] < 0.5  # a row between them is no certain case
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert clf.transform(rows).shape == (120, 1)


def test_classes_far_apart_keep_the_variance_they_have() -> None:
    rng = np.random.default_rng(0)
    labels = np.arange(40) % 2
    rows = 1e6 * labels[:, None] + rng.normal(size=(40, 2))
    homes = (LinearDiscriminantAnalysis, theirs.LinearDiscriminantAnalysis)
    ours, reference = (home().fit(rows, labels) for home in homes)
    np.testing.assert_allclose(ours.coef_, reference.coef_, rtol=1e-6)
    np.testing.assert_allclose(ours.decision_function(rows), reference.decision_function(rows), rtol=1e-6)


@pytest.mark.parametrize("solver", ["svd", "eigen"])
def test_transform_is_centered_just_where_scikit_learns_is(solver: str) -> None:
    homes = (LinearDiscriminantAnalysis, theirs.LinearDiscriminantAnalysis)
    ours, reference = (home(solver).fit(X, Y) for home in homes)
    found, expected = ours.transform(X), reference.transform(X)
    signs = np.sign((found * expected).sum(axis=0))
    np.testing.assert_allclose(found * signs, expected, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(ours.explained_variance_ratio_, reference.explained_variance_ratio_, rtol=1e-9)
