"""Counts of codes and of whole numbers against NumPy."""

import numpy as np

from deciban import kernels
from tests.kernels.data import LABELS, RNG, WEIGHTS, K, M, N


def test_count_codes() -> None:
    codes = RNG.integers(-1, 5, N).astype(np.int32)
    table = np.zeros((K, 5))
    kernels.cell_counts.count_codes(codes, LABELS, WEIGHTS, table)
    for c in range(K):
        for v in range(5):
            assert table[c, v] == WEIGHTS[(c == LABELS) & (codes == v)].sum()


def test_whole_numbers() -> None:
    x = RNG.integers(-2, 6, (N, M)).astype(np.float64)
    x[3, 1] = np.nan
    low, high = np.full(M, np.inf), np.full(M, -np.inf)
    assert kernels.cell_counts.integer_ranges(x, low, high)
    np.testing.assert_array_equal(low, np.nanmin(x, axis=0))
    np.testing.assert_array_equal(high, np.nanmax(x, axis=0))
    assert not kernels.cell_counts.integer_ranges(x + 0.5, low.copy(), high.copy())
    start = np.concatenate([[0], np.cumsum(high - low + 1)]).astype(np.int64)
    table = np.zeros((K, start[-1]))
    kernels.cell_counts.count_integers(x, LABELS, WEIGHTS, low, start, table)
    for j in range(M):
        for k in range(int(high[j] - low[j]) + 1):
            for c in range(K):
                expected = WEIGHTS[(c == LABELS) & (x[:, j] == low[j] + k)].sum()
                assert table[c, start[j] + k] == expected
    code_of = np.arange(start[-1], dtype=np.int32)
    codes = np.zeros((2, M), dtype=np.int32)
    assert not kernels.cell_counts.encode_integers(np.array([[99.0] * M, [np.nan] * M]), low, start, code_of, codes)
    assert codes.tolist() == [[-2] * M, [-1] * M]
    codes = np.zeros((N, M), dtype=np.int32)
    assert kernels.cell_counts.encode_integers(np.nan_to_num(x, nan=low[1]), low, start, code_of, codes)
    np.testing.assert_array_equal(codes, np.nan_to_num(x, nan=low[1]) - low + start[:-1])
    tiny, code = np.full((1, M), 5e-324), codes[:1]  # minus a whole number it is rounded to one
    assert not kernels.cell_counts.encode_integers(tiny, low - 1, start, code_of, code)
    assert code.tolist() == [[-2] * M]
