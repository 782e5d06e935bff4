"""Special functions against SciPy and exact values."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import linalg, sparse, special, stats

from deciban.util.sparse import SparseRows
from deciban.util.special import digamma_gap, log_gamma, normal_quantile, solve_lower, trigamma_gap

POSITIVE = np.concatenate(
    [np.geomspace(1e-300, 1e-3, 50), np.linspace(1e-3, 30.0, 2000), np.geomspace(30.0, 1e290, 50)]
)


def test_log_gamma() -> None:
    found, exact = log_gamma(POSITIVE), special.gammaln(POSITIVE)
    np.testing.assert_allclose(found, exact, rtol=2e-14, atol=2e-14)
    assert log_gamma(np.array([1.0, 2.0])).tolist() == [0.0, 0.0]
    factorials = [math.log(math.factorial(n)) for n in range(60)]
    np.testing.assert_allclose(log_gamma(np.arange(1.0, 61.0)), factorials, rtol=2e-14)
    counts = np.random.default_rng(0).integers(1, 257, (40, 20)).astype(np.float64)  # looked up
    for cells in (counts, counts + 1.0, counts + 0.5, counts / 256.0):
        np.testing.assert_allclose(log_gamma(cells), special.gammaln(cells), rtol=2e-14, atol=2e-14)
    assert log_gamma(counts)[3, 4] == log_gamma(counts[3, 4:5])[0]
    assert log_gamma(np.array([1e307, np.inf])).tolist() == [np.inf, np.inf]
    assert np.isnan(log_gamma(np.array([np.nan]))).all()


def test_gaps_of_digamma_and_trigamma() -> None:
    x = POSITIVE[POSITIVE < 20.0]  # beyond, SciPy's terms cancel
    np.testing.assert_allclose(digamma_gap(x), np.log(x) - special.digamma(x), rtol=1e-13)
    normal = x[x > 1e-150]  # below, the square overflows
    np.testing.assert_allclose(trigamma_gap(normal), special.polygamma(1, normal) - 1.0 / normal, rtol=1e-13)


@pytest.mark.parametrize("x", [100, 10**6, 10**12, 10**30])
def test_gaps_of_large_numbers_against_exact_series(x: int) -> None:
    inverse = Fraction(1, x)
    gap = inverse / 2 + inverse**2 / 12 - inverse**4 / 120 + inverse**6 / 252
    slope = inverse**2 / 2 + inverse**3 / 6 - inverse**5 / 30 + inverse**7 / 42
    assert digamma_gap(np.array([float(x)]))[0] == pytest.approx(float(gap), rel=1e-13, abs=0.0)
    assert trigamma_gap(np.array([float(x)]))[0] == pytest.approx(float(slope), rel=1e-13, abs=0.0)


def test_normal_quantile() -> None:
    for p in (1e-300, 1e-9, 0.025, 0.5, 0.9, 0.975, 1.0 - 1e-12):
        assert normal_quantile(p) == pytest.approx(stats.norm.ppf(p), rel=1e-12, abs=1e-12)
    assert normal_quantile(1.0) == np.inf


@pytest.mark.parametrize("size", [0, 1, 3, 40])
def test_solve_lower(size: int) -> None:
    rng = np.random.default_rng(0)
    lower, right = np.tril(rng.normal(size=(size, size))) + 3.0 * np.eye(size), rng.normal(size=(size, 7))
    expected = linalg.solve_triangular(lower, right, lower=True) if size else right
    np.testing.assert_allclose(solve_lower(lower, right), expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("rows", [0, 1, 12])
def test_sparse_rows(rows: int) -> None:
    """Operations of a slice, against those of SciPy and NumPy."""
    rng = np.random.default_rng(0)
    cells = rng.poisson(0.5, (rows + 5, 6)).astype(np.float64)
    matrix = sparse.csr_array(cells)
    part, dense = SparseRows.of(matrix).slice(2, rows + 2), cells[2 : rows + 2]
    np.testing.assert_array_equal(part.dense(), dense)
    np.testing.assert_array_equal(SparseRows.of_dense(dense).dense(), dense)
    np.testing.assert_array_equal(part.transpose().dense(), dense.T)
    np.testing.assert_array_equal(part.sum(), dense.sum(axis=1))
    np.testing.assert_array_equal(part.take_columns([4, 0, 3]).dense(), dense[:, [4, 0, 3]])
    chosen = rng.integers(0, max(rows, 1), 2 * rows)
    np.testing.assert_array_equal(part.take(chosen).dense(), dense[chosen])
    place = np.array([2, 0, -1, 2, 1, 0])
    onto = np.array([[float(p == k) for k in range(3)] for p in place])
    moved = part.move_columns(place, 3)
    np.testing.assert_array_equal(moved.dense(), dense @ onto)
    assert all((np.diff(moved.indices[a:b]) > 0).all() for a, b in zip(moved.indptr, moved.indptr[1:], strict=False))
    table = rng.normal(size=(6, 3))
    np.testing.assert_allclose(part.multiply(table), matrix[2 : rows + 2] @ table, rtol=1e-12)
    holed = part.with_values(np.where(part.stored > 1.0, part.stored, 0.0))
    assert (holed.drop_zeros().stored > 1.0).all()
    np.testing.assert_array_equal(holed.drop_zeros().dense(), holed.dense())
