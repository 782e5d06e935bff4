"""Shares of levels of rows left out against counts of the other rows by NumPy."""

from itertools import product

import numpy as np
import pytest

from deciban import kernels
from tests.kernels.data import RNG, K, M, N

LABELS = RNG.integers(0, K, N).astype(np.int32)
REMOVED = RNG.integers(1, 3, N).astype(np.float64)
SIZES = np.array([2, 3, 5])
CODES = np.stack([RNG.integers(-1, size - 1, N) for size in SIZES], axis=1).astype(np.int32)
CODES[7] = SIZES - 1  # the only row that has these levels
START = np.concatenate([[0], np.cumsum(SIZES + 1)])
WIDTH = np.array([1.0, 0.5, 2.0])


def counted(weights: np.ndarray, j: int) -> np.ndarray:
    """Level by class, with a level that never occurs."""
    table = np.zeros((SIZES[j] + 1, K))
    here = CODES[:, j] >= 0
    np.add.at(table, (CODES[here, j], LABELS[here]), weights[here])
    return table


def expected(i: int, j: int, alpha: float, fixed: bool, smooth: bool, proportional: bool) -> np.ndarray:
    code, table = CODES[i, j], counted(np.where(np.arange(N) == i, 0.0, REMOVED), j)
    gone = not fixed and not table[code].any()
    if code < 0 or (gone and not smooth):
        return np.zeros(K)
    added = alpha * table.sum(axis=0) / table.sum() if proportional else alpha
    return np.log((table[code] + added) / (table.sum(axis=0) + added * (SIZES[j] - gone)) / WIDTH[j])


@pytest.mark.parametrize(("alpha", "fixed", "smooth", "proportional"), list(product([0.5, 1.0], *[[False, True]] * 3)))
def test_left_out_lookup(alpha: float, fixed: bool, smooth: bool, proportional: bool) -> None:
    tables = [counted(REMOVED, j) for j in range(M)]
    counts, total = np.concatenate(tables), np.stack([table.sum(axis=0) for table in tables])
    bottom = np.repeat(total + alpha * SIZES[:, None], SIZES + 1, axis=0)
    levels = kernels.left_out.LevelCounts(
        start=START,
        counts=counts,
        every=counts.sum(axis=1),
        total=total,
        all_total=total.sum(axis=1),
        alpha=np.full(M, alpha),
        log_width=np.log(WIDTH),
        log_share=np.log((counts + alpha) / bottom) - np.log(np.repeat(WIDTH, SIZES + 1))[:, None],
        proportional=proportional,
    )
    out = np.zeros((N, M, K))
    kernels.left_out.score_lookup(CODES, LABELS, REMOVED, levels, fixed, smooth, np.arange(M), out)
    for i, j in np.ndindex(N, M):
        np.testing.assert_allclose(
            out[i, j], expected(i, j, alpha, fixed, smooth, proportional), rtol=1e-12, atol=1e-12
        )


def test_a_class_without_other_rows_takes_the_shares_of_all() -> None:
    """Three rows of one column, the last of a class of its own; nothing is smoothed."""
    codes, labels = np.array([[0], [1], [1]], dtype=np.int32), np.array([0, 0, 1], dtype=np.int32)
    counts = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    total = counts.sum(axis=0, keepdims=True)
    with np.errstate(divide="ignore"):
        shares = np.log(counts / total)
    nothing = np.zeros(1)
    levels = kernels.left_out.LevelCounts(
        np.array([0, 3]), counts, counts.sum(axis=1), total, total.sum(axis=1), nothing, nothing, shares, False
    )
    out = np.zeros((3, 1, 2))
    kernels.left_out.score_lookup(
        codes, labels, np.array([0.0, 0.0, 1.0]), levels, True, False, np.zeros(1, np.int64), out
    )
    np.testing.assert_allclose(out[2, 0], np.log([0.5, 0.5]))
