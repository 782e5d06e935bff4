"""Sums of deviations against NumPy."""

import numpy as np
import pytest

from deciban import kernels
from tests.kernels.data import LABELS, WEIGHTS, K, M, N, X, parameters


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_sums_of_deviations(kind: type) -> None:
    """Of whole rows by the plain loop, of rows with holes by the other; many rows, so that parts are moved."""
    rows = np.tile(np.arange(N), 20)
    labels, weights, shift = LABELS[rows], WEIGHTS[rows], parameters(K, M)
    for x in (X[rows].astype(kind), np.nan_to_num(X[rows]).astype(kind)):
        sums, part = np.zeros((4, K, M)), np.zeros((2, K, M))
        if np.isnan(x).any():
            kernels.sum_present_deviations(x, labels, weights, shift, sums)
        else:
            kernels.sum_deviations(x, labels, weights, shift, part, np.zeros(K, dtype=np.int64), sums)
            sums[0] = sums[0, :, :1]
        for c in range(K):
            w = np.where((labels == c)[:, None] & ~np.isnan(x), weights[:, None], 0.0)
            away = np.nan_to_num(x.astype(np.float64) - shift[c])
            np.testing.assert_allclose(sums[0, c], w.sum(axis=0))
            np.testing.assert_allclose(sums[1, c] + part[0, c], (w * away).sum(axis=0), rtol=1e-10, atol=1e-10)
            squares = sums[2, c] - sums[3, c] + part[1, c]
            np.testing.assert_allclose(squares, (w * away**2).sum(axis=0), rtol=1e-13)


def test_sums_of_first_rows() -> None:
    """They stop where enough rows were seen and no cell is without a value."""
    sums = np.zeros((4, K, M))
    counted = (LABELS >= 0) & (WEIGHTS > 0.0)
    kernels.sum_first_rows(X, LABELS, WEIGHTS, 12, 0, sums)
    for c in range(K):
        rows = X[:12][(c == LABELS)[:12] & counted[:12]]
        for j in range(M):
            values = rows[~np.isnan(rows[:, j]), j]
            assert sums[0, c, j] == values.size
            if values.size:
                away = values - values[0]
                np.testing.assert_allclose(sums[1:, c, j], [values[0], away.sum(), (away**2).sum()], atol=1e-15)
    sums[:] = 0.0
    kernels.sum_first_rows(X, LABELS, WEIGHTS, 0, K * M, sums)
    assert (sums[0] > 0.0).all()
    assert sums[0].sum() < (~np.isnan(X[counted])).sum()
