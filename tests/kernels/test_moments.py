"""Exact sums of cells, of squares and of products, against fractions."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from deciban import kernels
from deciban.statistics.exact import ExactSums, allocate_digits, bound_exponents, loses_digits
from deciban.statistics.moments import Moments
from deciban.statistics.scatter import Scatter
from tests.kernels.data import LABELS, RNG, WEIGHTS, K, N, X, exact

TABLES: dict[str, Any] = {
    "plain": RNG.normal(size=(N, 11)),
    "narrow": RNG.normal(size=(N, 3)),
    "holes": X,
    "float32": X.astype(np.float32),
    "whole": RNG.integers(-1000, 1000, (N, 9)),
    "zeros": np.zeros((N, 8)),
    "any sizes": RNG.normal(size=(N, 9)) * 10.0 ** RNG.integers(-300, 139, (N, 9)),
    "columns of any size": RNG.normal(size=(N, 9)) * 10.0 ** RNG.integers(-300, 139, 9),
    "few digits": np.round(RNG.normal(size=(N, 9)) * 2.0 ** RNG.integers(0, 30, (N, 9))) * 2.0**-30,
    "denormal": RNG.integers(-5, 6, (N, 8)) * 5e-324,
}
KINDS = {"none": np.ones(N), "whole": WEIGHTS, "large": 1500.0 * WEIGHTS, "fractions": WEIGHTS * RNG.random(N)}


def rows_of(x: Any, weights: np.ndarray, c: int, columns: list[int]) -> list[tuple[Fraction, list[Fraction]]]:
    there = (c == LABELS) & (weights > 0.0) & ~np.isnan(np.asarray(x, dtype=np.float64)[:, columns]).any(axis=1)
    cells = [[Fraction(float(x[i, j])) for j in columns] for i in np.flatnonzero(there)]
    return [(Fraction(float(weights[i])), row) for i, row in zip(np.flatnonzero(there), cells, strict=True)]


@pytest.mark.parametrize("weights", KINDS)
@pytest.mark.parametrize("table", TABLES)
def test_moments_are_those_of_fractions(table: str, weights: str) -> None:
    x, w = TABLES[table], KINDS[weights]
    found = Moments.count(x, LABELS, w, K)
    for c in range(K):
        for j in range(x.shape[1]):
            rows = rows_of(x, w, c, [j])
            n, total = sum(a for a, _ in rows), sum(a * b for a, (b,) in rows)
            squares = sum(a * b * b for a, (b,) in rows)
            assert exact(found.present, c, j) == n
            assert exact(found.first, c, j) == total
            assert exact(found.second, c, j) == squares
            if n:
                scatter = squares - total * total / n
                for pair, expected in (
                    ((found.mean, found.mean_low), total / n),
                    ((found.scatter, found.scatter_low), scatter),
                ):
                    got = sum(Fraction(float(part[c, j])) for part in pair)
                    assert abs(got - expected) <= abs(expected) * Fraction(1, 10**28) + Fraction(1, 10**300)


@pytest.mark.parametrize("weights", KINDS)
@pytest.mark.parametrize("table", TABLES)
def test_scatter_is_that_of_fractions(table: str, weights: str) -> None:
    x, w = TABLES[table][:, :4], KINDS[weights]
    found = Scatter.count(x, LABELS, w, K)
    pairs = list(zip(*np.triu_indices(x.shape[1]), strict=True))
    for c in range(K):
        rows = rows_of(x, w, c, list(range(x.shape[1])))
        assert exact(found.present, c) == sum(a for a, _ in rows)
        for j in range(x.shape[1]):
            assert exact(found.first, c, j) == sum(a * row[j] for a, row in rows)
        for k, (i, j) in enumerate(pairs):
            assert exact(found.second, c, k) == sum(a * row[i] * row[j] for a, row in rows)


def test_sums_of_more_rows_than_slices_hold() -> None:
    x, labels = RNG.normal(size=(5000, 9)), np.zeros(5000, dtype=np.int32)
    found, joint = (kind.count(x, labels, np.ones(5000), 1) for kind in (Moments, Scatter))
    for j in range(9):
        values = [Fraction(v) for v in x[:, j].tolist()]
        assert exact(found.first, 0, j) == exact(joint.first, 0, j) == sum(values)
        assert exact(found.second, 0, j) == sum(v * v for v in values)
    other = [Fraction(v) for v in x[:, 1].tolist()]
    assert exact(joint.second, 0, 1) == sum(a * b for a, b in zip(map(Fraction, x[:, 0].tolist()), other, strict=True))


def test_products_of_doubles() -> None:
    w, a, b = (RNG.normal(size=60) * 10.0 ** RNG.integers(-100, 100, 60) for _ in range(3))
    a[:5] = 0.0
    found = ExactSums.of_products(w, a, b)
    for i in range(60):
        assert exact(found, i) == Fraction(w[i]) * Fraction(a[i]) * Fraction(b[i])
    whole = np.array([0.0, 1.0, -1.0, 2.0**31, -(2.0**31), 2.0**31 - 1, 2.0**53, -(2.0**53), 2.0**32])
    np.testing.assert_array_equal(ExactSums.of(whole).to_doubles()[0], whole)
    assert [exact(ExactSums.of(whole), i) for i in range(9)] == [Fraction(v) for v in whole.tolist()]


def test_integers_at_any_place() -> None:
    numbers, places = RNG.integers(-(2**53), 2**53, 40), RNG.integers(-200, 200, 40)
    digits, low = allocate_digits((40,), [(-200, 253)])
    kernels.exact_sums.add_integers(numbers, places, digits, low)
    kernels.exact_sums.add_integers(numbers, places, digits, low)
    found = ExactSums.of_digits(digits, low, (40,))
    for i in range(40):
        assert exact(found, i) == 2 * int(numbers[i]) * Fraction(2) ** int(places[i])


def test_adding_taking_away_and_scaling_sums() -> None:
    a, b = (ExactSums.of(RNG.normal(size=(3, 5)) * 10.0 ** RNG.integers(-300, 300, (3, 5))) for _ in range(2))
    both = a.add(b)
    for cell in np.ndindex(3, 5):
        assert exact(both, *cell) == exact(a, *cell) + exact(b, *cell)
        assert exact(both.sum_first_axis(), 0, cell[1]) == sum(exact(both, c, cell[1]) for c in range(3))
    back = both.subtract(b)
    assert back.low == a.low
    np.testing.assert_array_equal(back.limbs, a.limbs)
    assert not both.subtract(both).limbs.size
    for factor in (2.0, 0.5, 3.0, 0.3, 0.9):
        scaled = a.scale(factor)
        for cell in np.ndindex(3, 5):
            error = abs(exact(scaled, *cell) - exact(a, *cell) * Fraction(factor))
            assert error <= abs(exact(a, *cell)) * Fraction(1, 2**340) if loses_digits(factor) else error == 0


def test_exponents_of_the_first_and_the_last_bit() -> None:
    assert bound_exponents(1.0, 1.0) == (-52, 1)
    assert bound_exponents(5e-324, 3.0) == (-1074, 2)
    assert bound_exponents(np.inf, 0.0) == (-52, 1)
