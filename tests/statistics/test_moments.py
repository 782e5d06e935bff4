"""Moments against NumPy and exact fractions."""

from fractions import Fraction

import numpy as np
import pytest

from deciban.errors import BadCell, ForgetError
from deciban.statistics.moments import Moments
from deciban.statistics.scatter import Scatter

RNG = np.random.default_rng(5)
N, M, K = 40, 3, 4
X = RNG.normal(size=(N, M))
X[RNG.random((N, M)) < 0.15] = np.nan
LABELS = RNG.integers(-1, K, N).astype(np.int32)
WEIGHTS = RNG.integers(0, 3, N).astype(np.float64)


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("offset", [0.0, 1e9])
def test_moments_are_those_of_numpy(kind: type, offset: float) -> None:
    x = (X + offset).astype(kind)
    moments = Moments.count(x, LABELS, WEIGHTS, K)
    for c in range(K):
        for j in range(M):
            rows = (c == LABELS) & ~np.isnan(x[:, j])
            w, v = WEIGHTS[rows], x[rows, j].astype(np.float64)
            mean = np.average(v, weights=w)
            np.testing.assert_allclose(moments.weight[c, j], w.sum())
            np.testing.assert_allclose(moments.mean[c, j], mean, rtol=1e-13)
            np.testing.assert_allclose(
                moments.scatter[c, j], (w * (v - mean) ** 2).sum(), rtol=1e-7 if offset else 1e-13
            )


def test_a_guess_that_turns_out_poor_costs_no_digits() -> None:
    """The first rows of the class are far from all others; also where they are at 1e9 and the spread is 2."""
    for far in (1e6, 1e9):
        x = np.concatenate([np.full(64, far), RNG.integers(0, 7, 5000)])[:, None].astype(np.float64)
        found = Moments.count(x, np.zeros(len(x), dtype=np.int32), np.ones(len(x)), 1)
        values = [Fraction(v) for v in x[:, 0].tolist()]
        mean = sum(values) / len(values)
        scatter = sum((v - mean) ** 2 for v in values)
        assert abs(Fraction(found.mean[0, 0]) + Fraction(found.mean_low[0, 0]) - mean) < mean * Fraction(1, 10**15)
        assert abs(Fraction(found.scatter[0, 0]) - scatter) < scatter * Fraction(1, 10**14)


def test_what_cannot_be_squared_is_refused() -> None:
    for value in (np.inf, -np.inf, 1e200):
        with pytest.raises(BadCell):
            Moments.count(np.array([[1.0], [value]]), np.zeros(2, np.int32), np.ones(2), 1)


def assert_same(a: Moments | Scatter, b: Moments | Scatter) -> None:
    """To the last bit."""
    for name in ("present", "first", "second"):
        one, other = getattr(a, name), getattr(b, name)
        assert one.low == other.low
        np.testing.assert_array_equal(one.limbs, other.limbs)


def test_adding_and_taking_away_moments_are_inverse() -> None:
    for statistic in (Moments, Scatter):
        a, b, whole = (
            statistic.count(X[rows], LABELS[rows], WEIGHTS[rows], K)
            for rows in (slice(20), slice(20, None), slice(None))
        )
        assert_same(a.merge(b), whole)
        assert_same(whole.remove(b), a)


def test_moments_made_of_their_values_are_the_same() -> None:
    """As far as two doubles have them; those of columns that do not vary are just the same."""
    whole = Moments.count(X, LABELS, WEIGHTS, K)
    made = Moments.from_values(whole.weight, (whole.mean, whole.mean_low), whole.scatter, np.zeros_like(whole.weight))
    for name, rtol in (("weight", 0.0), ("mean", 0.0), ("scatter", 1e-15)):
        np.testing.assert_allclose(getattr(made, name), getattr(whole, name), rtol=rtol)
    constant = Moments.count(np.full((7, 2), 0.1), np.zeros(7, dtype=np.int32), np.ones(7), 1)
    values = constant.values
    assert_same(
        Moments.from_values(values.weight, (values.mean, values.mean_low), values.scatter, values.scatter), constant
    )


def test_scaling_rounds_to_more_digits_than_anything_needs() -> None:
    """A column that does not vary stays so, no scatter becomes negative, and a whole factor loses nothing."""
    x = np.column_stack([np.full(N, 0.1), np.nan_to_num(X[:, 0]), 1e9 + np.nan_to_num(X[:, 1])])
    for statistic in (Moments, Scatter):
        whole = statistic.count(x, LABELS, WEIGHTS, K)
        assert_same(whole.scale(3.0), statistic.count(x, LABELS, 3.0 * WEIGHTS, K))
        left = whole
        for _ in range(50):
            left = left.scale(0.9)
        assert left.second.limbs.shape[-1] <= 14
        own = left.scatter if statistic is Moments else np.diagonal(left.scatter, axis1=1, axis2=2)
        before = whole.scatter if statistic is Moments else np.diagonal(whole.scatter, axis1=1, axis2=2)
        np.testing.assert_array_equal(own[:, 0], 0.0)
        np.testing.assert_allclose(own, 0.9**50 * before, rtol=1e-12)
        assert (left.raw_scatter >= 0.0).all()


def test_sums_of_an_engine_that_cannot_be_told_apart_are_refused() -> None:
    """They have 16 digits: beside 1e9 nothing is known of a deviation of 1."""
    x = np.nan_to_num(X[:, :1])
    labels, weights = np.zeros(N, dtype=np.int32), np.ones(N)
    whole = Moments.count(np.concatenate([x, [[1e9]]]), np.zeros(N + 1, dtype=np.int32), np.ones(N + 1), 1)
    outlier = Moments.count(np.array([[1e9]]), labels[:1], weights[:1], 1)
    values, error = whole.values, 1e-15 * whole.scatter
    made = Moments.from_values(values.weight, (values.mean, values.mean_low), values.scatter, error)
    with pytest.raises(ForgetError, match="fit again without them"):
        made.remove(outlier)
    assert_same(whole.remove(outlier), Moments.count(x, labels, weights, 1))
    assert not made.remove(whole).weight.any()


@pytest.mark.parametrize("classes", [0, 1, 2, 3, 7])
def test_moments_over_classes_are_those_without_labels(classes: int) -> None:
    x = np.nan_to_num(X)
    labels = (np.arange(N) % max(classes, 1)).astype(np.int32) - (classes == 0)
    one = np.where(labels < 0, -1, 0).astype(np.int32)
    for statistic in (Moments, Scatter):
        together = statistic.count(x, labels, WEIGHTS, classes).merge_classes()
        alone = statistic.count(x, one, WEIGHTS, 1)
        np.testing.assert_allclose(together.weight, alone.weight)
        np.testing.assert_allclose(together.mean, alone.mean, rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(together.scatter, alone.scatter, rtol=1e-12, atol=1e-13)


def test_scatter_adds_up_and_stays_symmetric() -> None:
    x = np.nan_to_num(X) * 10.0 ** np.arange(M) + 1e6
    a, b, whole = (
        Scatter.count(x[rows], LABELS[rows], WEIGHTS[rows], K) for rows in (slice(20), slice(20, None), slice(None))
    )
    both = a.merge(b)
    np.testing.assert_array_equal(both.scatter, whole.scatter)
    np.testing.assert_array_equal(both.scatter, both.scatter.transpose(0, 2, 1))
    np.testing.assert_array_equal(both.remove(b).scatter, a.scatter)


def test_columns_of_a_scatter_are_placed_with_their_pairs() -> None:
    x = np.nan_to_num(X)
    order = np.roll(np.arange(M), 2)
    whole = Scatter.count(x, LABELS, WEIGHTS, K)
    positions = np.empty(M, dtype=np.int64)
    positions[order] = np.arange(M)
    assert_same(whole.reindex_columns(positions, M), Scatter.count(x[:, order], LABELS, WEIGHTS, K))
    fewer = whole.reindex_columns(np.where(np.arange(M) < 2, 1 - np.arange(M), -1), 2)
    assert_same(fewer, Scatter.count(x[:, [1, 0]], LABELS, WEIGHTS, K))
