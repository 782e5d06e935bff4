"""Moments against NumPy and exact fractions."""

from fractions import Fraction

import numpy as np
import pytest

from deciban.errors import BadCell
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


def test_adding_and_taking_away_moments_are_inverse() -> None:
    a, b, whole = (
        Moments.count(X[rows], LABELS[rows], WEIGHTS[rows], K) for rows in (slice(20), slice(20, None), slice(None))
    )
    kept = [0, 1, 3]
    both = a.merge(b)
    np.testing.assert_allclose(both.array[kept], whole.array[kept], rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(both.remove(b).array[kept], a.array[kept], rtol=1e-12, atol=1e-14)


def test_merging_keeps_31_digits() -> None:
    """Row by row, against exact fractions: the mean and the scatter as sums of two doubles."""
    values = (1e9 + RNG.normal(size=300)).tolist()
    merged = Moments.empty(1, 1)
    for value in values:
        merged = merged.merge(Moments.count(np.array([[value]]), np.zeros(1, np.int32), np.ones(1), 1))
    exact = [Fraction(value) for value in values]
    mean = sum(exact) / len(exact)
    scatter = sum((value - mean) ** 2 for value in exact)
    found = [sum(Fraction(part) for part in merged.array[rows, 0, 0].tolist()) for rows in ([1, 2], [3, 4])]
    assert abs(found[0] - mean) < abs(mean) * Fraction(1, 10**28)
    assert abs(found[1] - scatter) < scatter * Fraction(1, 10**20)  # of deviations of 1 from 1e9


@pytest.mark.parametrize("classes", [0, 1, 2, 3, 7])
def test_moments_over_classes_are_those_without_labels(classes: int) -> None:
    x = np.nan_to_num(X)
    labels = (np.arange(N) % max(classes, 1)).astype(np.int32) - (classes == 0)
    one = np.where(labels < 0, -1, 0).astype(np.int32)
    for statistic in (Moments, Scatter):
        together = statistic.count(x, labels, WEIGHTS, classes).over_classes()
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
    np.testing.assert_allclose(both.scatter, whole.scatter, rtol=1e-9)
    np.testing.assert_array_equal(both.scatter, both.scatter.transpose(0, 2, 1))
    np.testing.assert_allclose(both.remove(b).scatter, a.scatter, rtol=1e-9)
