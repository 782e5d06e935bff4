"""Amounts times log shares of rows left out against totals of the other rows by NumPy."""

import numpy as np
import pytest
from scipy import sparse

from deciban import kernels
from tests.kernels.data import RNG, K, N

COLUMNS = 6
AMOUNTS = RNG.integers(0, 3, (N, COLUMNS)).astype(np.float64)
LABELS = (np.arange(N) % K).astype(np.int32)
REMOVED = RNG.integers(0, 3, N).astype(np.float64)
ALPHA = RNG.random(COLUMNS) + 0.1


def totals(weights: np.ndarray, others: bool) -> np.ndarray:
    """Column by class: the weighted amounts of each class, or of all other classes."""
    counts = np.stack([(weights * (c == LABELS)) @ AMOUNTS for c in range(K)], axis=1)
    return counts.sum(axis=1, keepdims=True) - counts if others else counts


def worth(counts: np.ndarray, others: bool) -> np.ndarray:
    log_share = np.log((counts + ALPHA[:, None]) / (counts.sum(axis=0) + ALPHA.sum()))
    return -log_share if others else log_share


@pytest.mark.parametrize("others", [False, True])
def test_left_out_linear(others: bool) -> None:
    counts, cells = totals(REMOVED, others), sparse.csr_array(AMOUNTS)
    shares = kernels.left_out.ShareCounts(
        counts=counts, sums=counts.sum(axis=0), alpha=ALPHA, added=ALPHA.sum(), worth=worth(counts, others)
    )
    out = np.zeros((N, K))
    kernels.left_out.score_linear(cells.data, cells.indices, cells.indptr, LABELS, REMOVED, shares, others, out)
    for i in range(N):
        left = totals(np.where(np.arange(N) == i, 0.0, REMOVED), others)
        np.testing.assert_allclose(out[i], AMOUNTS[i] @ worth(left, others), rtol=1e-12, atol=1e-12)
