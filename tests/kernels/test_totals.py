"""Totals of dense and sparse rows against NumPy."""

import numpy as np
import pytest
from scipy import sparse

from deciban import kernels
from tests.kernels.data import LABELS, WEIGHTS, K, M, X


@pytest.mark.parametrize("binary", [False, True])
def test_count_totals(binary: bool) -> None:
    present, total = np.zeros((K, M)), np.zeros((K, M))
    kernels.count_totals(X, LABELS, WEIGHTS, binary, 0.3, present, total)
    amounts = np.nan_to_num(X > 0.3 if binary else X)
    for c in range(K):
        w = np.where(c == LABELS, WEIGHTS, 0.0)
        np.testing.assert_allclose(present[c], w @ ~np.isnan(X))
        np.testing.assert_allclose(total[c], w @ amounts, rtol=1e-12)
    csr = sparse.csr_array(np.where(np.isnan(X), np.nan, np.where(X > 0, X, 0.0)))
    sparse_present, sparse_total = np.zeros((K, M)), np.zeros((K, M))
    known = LABELS >= 0
    sparse_present[:] = np.bincount(LABELS[known], WEIGHTS[known], K)[:, None]
    kernels.count_sparse_totals(
        csr.data, csr.indices, csr.indptr, LABELS, WEIGHTS, binary, 0.3, sparse_present, sparse_total
    )
    dense_present, dense_total = np.zeros((K, M)), np.zeros((K, M))
    kernels.count_totals(csr.toarray(), LABELS, WEIGHTS, binary, 0.3, dense_present, dense_total)
    np.testing.assert_allclose(sparse_present, dense_present)
    np.testing.assert_allclose(sparse_total, dense_total)
