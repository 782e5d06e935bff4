"""Totals of dense and sparse rows against NumPy."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from deciban import kernels
from deciban.statistics import Totals
from deciban.util.sparse import SparseRows
from tests.kernels.data import LABELS, RNG, WEIGHTS, K, M, X, exact


@pytest.mark.parametrize("binary", [False, True])
def test_count_totals(binary: bool) -> None:
    present, total = np.zeros((K, M)), np.zeros((K, M))
    kernels.cell_counts.count_totals(X, LABELS, WEIGHTS, binary, 0.3, present, total)
    amounts = np.nan_to_num(X > 0.3 if binary else X)
    for c in range(K):
        w = np.where(c == LABELS, WEIGHTS, 0.0)
        np.testing.assert_allclose(present[c], w @ ~np.isnan(X))
        np.testing.assert_allclose(total[c], w @ amounts, rtol=1e-12)
    csr = sparse.csr_array(np.where(np.isnan(X), np.nan, np.where(X > 0, X, 0.0)))
    sparse_missing, sparse_total = np.zeros((K, M)), np.zeros((K, M))
    known = LABELS >= 0
    kernels.cell_counts.count_sparse_totals(
        csr.data, csr.indices, csr.indptr, LABELS, WEIGHTS, binary, 0.3, sparse_missing, sparse_total
    )
    dense_present, dense_total = np.zeros((K, M)), np.zeros((K, M))
    kernels.cell_counts.count_totals(csr.toarray(), LABELS, WEIGHTS, binary, 0.3, dense_present, dense_total)
    every = np.bincount(LABELS[known], WEIGHTS[known], K)[:, None]
    np.testing.assert_allclose(every + sparse_missing, dense_present)
    np.testing.assert_allclose(sparse_total, dense_total)


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_totals_are_those_of_fractions(binary: bool, layout: str) -> None:
    """Of any sizes and weights, also where doubles would be rounded."""
    sizes = np.abs(X) * 10.0 ** RNG.integers(-300, 300, X.shape)
    weights = WEIGHTS * RNG.random(WEIGHTS.size)
    cells: Any = sizes if layout == "dense" else SparseRows.of(sparse.csr_array(sizes))
    for w in (WEIGHTS, weights):
        found = Totals.count(cells, LABELS, w, K, 0.3 if binary else None)
        for c in range(K):
            for j in range(M):
                rows = [i for i in np.flatnonzero((c == LABELS) & (w > 0.0)) if not np.isnan(sizes[i, j])]
                amounts = [Fraction(int(sizes[i, j] > 0.3)) if binary else Fraction(sizes[i, j]) for i in rows]
                assert exact(found.rows, c, j) == sum(Fraction(w[i]) for i in rows)
                assert exact(found.sums, c, j) == sum(Fraction(w[i]) * a for i, a in zip(rows, amounts, strict=True))


@pytest.mark.parametrize("layout", ["dense", "sparse"])
@pytest.mark.parametrize(("cell", "weight"), [(300450071894.62915, 4182.0), (10.0, 0.1)])
def test_products_that_round_to_a_whole_number_are_kept_exact(layout: str, cell: float, weight: float) -> None:
    assert (cell * weight).is_integer(), "in doubles"
    numbers = np.array([[cell]])
    cells: Any = numbers if layout == "dense" else SparseRows.of(sparse.csr_array(numbers))
    found = Totals.count(cells, np.zeros(1, dtype=np.int32), np.array([weight]), 1)
    assert exact(found.sums, 0, 0) == Fraction(cell) * Fraction(weight)


@pytest.mark.parametrize("missing", [False, True])
def test_whole_totals_are_the_same_dense_and_sparse(missing: bool) -> None:
    cells = np.where(RNG.random(X.shape) < 0.5, 0.0, np.round(np.abs(np.nan_to_num(X)) * 1e9))
    cells[0, 1] = np.nan if missing else 1.0
    weights = np.round(WEIGHTS)
    one = Totals.count(cells, LABELS, weights, K)
    other = Totals.count(SparseRows.of(sparse.csr_array(cells)), LABELS, weights, K)
    for dense, csr in ((one.rows, other.rows), (one.sums, other.sums)):
        assert dense.low == csr.low
        np.testing.assert_array_equal(dense.limbs, csr.limbs)
