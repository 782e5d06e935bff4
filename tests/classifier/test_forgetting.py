"""Rows that were learned are forgotten exactly; rows that were not are refused."""

import pickle

import numpy as np
import pyarrow as pa
import pytest

from deciban import Binned, DecibanError, Gamma, Gaussian, JointGaussian, LogNormal, Pooled
from deciban.errors import ForgetError
from deciban.testing import assert_same_counts
from tests import textbook
from tests.support.tables import MIXED, N

RNG = np.random.default_rng(11)
X = RNG.normal(size=(60, 2))
Y = np.arange(60) % 2


NUMBERS = [Gaussian(), Gaussian(variance=Pooled()), LogNormal(), Gamma(), JointGaussian(), Binned()]


@pytest.mark.parametrize("family", NUMBERS, ids=str)
@pytest.mark.parametrize("outliers", [1, 3])
@pytest.mark.parametrize("size", [1e3, 1e6, 1e10, 3e8 + 0.7, 1e14, 1.7e18, 1e40, 1e138, 1e-300])
def test_outliers_are_forgotten_without_a_trace(family, outliers: int, size: float) -> None:
    """Learned apart, and in one batch with all other rows."""
    positive = np.exp(X)
    rows, labels = size * np.array([[1.0, 1.5], [0.3, 0.9], [0.7, 0.1]])[:outliers], [0, 0, 1][:outliers]
    clf = textbook(family).fit(positive, Y)
    before, probabilities = clf.counts_, clf.predict_proba(positive)
    together = textbook(family).fit(np.concatenate([positive, rows]), [*Y, *labels])
    for learned in (clf.partial_fit(rows, labels), together):
        left = learned.forget(rows, labels)
        np.testing.assert_array_equal(left.predict_proba(positive), probabilities)
        assert_same_counts(left.counts_, before, exact=True)


@pytest.mark.parametrize("family", [Gaussian(), JointGaussian(), Binned()], ids=str)
def test_a_column_of_zeros_is_one_again(family) -> None:
    y = np.arange(20) % 2
    zeros, rows, labels = np.zeros((20, 2)), np.array([[0.1, 0.2], [0.3, 0.6], [0.7, 0.9]]), [0, 1, 0]
    a, b = textbook(family).fit(zeros, y), textbook(family).fit(rows, labels)
    for clf in ((a + b) - b, a.partial_fit(rows, labels).forget(rows, labels)):
        np.testing.assert_array_equal(clf.predict_proba([[0.0, 0.0], [0.1, 0.5]]), 0.5)


def test_random_tables_are_forgotten_without_a_trace() -> None:
    """Among 1,919 such tables the sums of doubles had failed 12, and refused 27."""
    rng = np.random.default_rng(60310)
    for _ in range(60):
        n, columns = int(rng.integers(2, 40)), int(rng.integers(1, 5))
        scale = 10.0 ** rng.integers(-8, rng.choice([3, 9, 20, 138]), columns)
        x = np.round(rng.normal(size=(n, columns)) * rng.choice([0.0, 1.0, 100.0], columns)) * scale
        y = rng.integers(0, 3, n)
        some = rng.random(n) < 0.5
        if not 0 < some.sum() < n:
            continue
        for family in (Gaussian(), JointGaussian()):
            a = textbook(family).fit(x[some], y[some])
            left = textbook(family).fit(x[some], y[some]).partial_fit(x[~some], y[~some]).forget(x[~some], y[~some])
            np.testing.assert_array_equal(left.predict_proba(x[some]), a.predict_proba(x[some]))


@pytest.mark.parametrize("rows", [2000, 20_000])
def test_many_bins_are_as_fine_as_before(rows: int) -> None:
    """Of so many values bins are coarser beside outliers than without them, and still finer than the density's."""
    rng = np.random.default_rng(rows)
    x, y = rng.normal(size=(rows, 1)), rng.integers(0, 2, rows)
    clf = textbook(Binned()).fit(x, y)
    before = clf.predict_proba(x)
    outliers = 10.0 ** rng.uniform(-10.0, 100.0, (300, 1))
    clf.partial_fit(outliers, y[:300]).forget(outliers, y[:300])
    np.testing.assert_array_equal(clf.predict_proba(x), before)


@pytest.mark.parametrize("family", [Gaussian(), JointGaussian(), LogNormal(), Gamma(), Binned()], ids=str)
def test_what_remains_constant_says_nothing(family) -> None:
    constant, varied = np.full((40, 2), 0.1), np.exp(RNG.normal(size=(40, 2)))
    y = np.arange(40) % 2
    clf = textbook(family).fit(constant, y).partial_fit(varied, y).forget(varied, y)
    np.testing.assert_allclose(clf.predict_proba([[0.1, 0.1], [0.2, 0.3]]), 0.5, rtol=1e-12)


def test_whole_numbers_in_one_batch_are_forgotten_exactly() -> None:
    flags = np.zeros((50, 2))
    flags[13] = 1.0
    y = np.arange(50) % 2
    for family in (Gaussian(), Gaussian(variance=Pooled())):
        clf = textbook(family).fit(flags, y).forget(flags[13:14], y[13:14])
        np.testing.assert_array_equal(clf.counts_.statistics[0].variance(), 0.0)


def test_rows_never_learned_make_a_spread_negative() -> None:
    clf = textbook().fit([[1.0], [1.1], [0.9], [1.0]], [0, 0, 0, 0])
    with pytest.raises(DecibanError, match="negative"):
        clf.forget([[50.0]], [0])
    joint = textbook(JointGaussian()).fit(X, Y)
    with pytest.raises(DecibanError, match="negative"):
        joint.forget([[50.0, 0.0]], [0])


@pytest.mark.parametrize("family", [Gaussian(), LogNormal(), Gamma(), JointGaussian(), Binned()], ids=str)
def test_a_class_may_be_forgotten_down_to_one_row(family) -> None:
    positive = np.exp(X)
    clf = textbook(family).fit(positive, Y)
    rows = np.flatnonzero(Y == 0)[1:]
    clf.forget(positive[rows], Y[rows])
    assert clf.counts_.class_weight.tolist() == [1.0, 30.0]
    left = np.delete(np.arange(60), rows)
    expected = textbook(family).fit(positive[left], Y[left])
    np.testing.assert_allclose(clf.predict_proba(positive), expected.predict_proba(positive), rtol=1e-6, atol=1e-9)


def test_a_column_may_become_constant_in_a_class() -> None:
    x = np.full((100, 1), 0.1)
    x[3], x[60:] = 0.7, RNG.normal(size=(40, 1))
    y = np.repeat([0, 1], 50)
    clf = textbook().fit(x, y).forget(x[3:4], y[3:4])
    assert clf.counts_.statistics[0].variance()[0, 0] == 0.0


def test_forgetting_needs_every_column_that_was_learned() -> None:
    """Else rows would be taken from some columns and stay in others."""
    clf = textbook().fit(MIXED, "label")
    before = pickle.dumps(clf)
    rows = MIXED.slice(0, 10)
    misnamed = rows.rename_columns(["aeg" if name == "age" else name for name in rows.column_names])
    for table in (misnamed, rows.drop_columns(["age"]), rows.select(["label", "height"])):
        with pytest.raises(
            ForgetError,
            match=r"they lack the columns? 'age'.*if .* also missing in training, add (it|them) as (an )?empty column",
        ):
            clf.forget(table, "label")
    with pytest.raises(ForgetError, match="they lack the column 'age'"):
        clf - textbook().fit(misnamed.drop_columns(["aeg"]), "label")
    assert pickle.dumps(clf) == before
    assert clf.forget(rows.append_column("reason", pa.array(["asked"] * 10)), "label").counts_.rows == N - 10
    alone = textbook().fit(MIXED.slice(10), "label")
    np.testing.assert_allclose(clf.predict_proba(MIXED), alone.predict_proba(MIXED), rtol=1e-9)


def test_rows_that_were_learned_without_a_column_are_forgotten_with_an_empty_one() -> None:
    early, late = MIXED.slice(0, 60).drop_columns(["age"]), MIXED.slice(60)
    clf = textbook().fit(early, "label").partial_fit(late, "label")
    with pytest.raises(ForgetError, match="'age'"):
        clf.forget(early.slice(0, 20), "label")
    clf.forget(early.slice(0, 20).append_column("age", pa.nulls(20)), "label")
    expected = textbook().fit(pa.concat_tables([early.slice(20), late], promote_options="default"), "label")
    np.testing.assert_allclose(clf.predict_proba(MIXED), expected.predict_proba(MIXED), rtol=1e-9)


def test_all_rows_of_a_shard_are_forgotten_as_they_were_learned() -> None:
    early, late = MIXED.slice(0, 60).drop_columns(["age"]), MIXED.slice(60)
    both = textbook().fit(early, "label") + textbook().fit(late, "label")
    assert both.forget(early, "label").counts_.rows == N - 60
    np.testing.assert_allclose(both.predict_proba(late), textbook().fit(late, "label").predict_proba(late), rtol=1e-9)
