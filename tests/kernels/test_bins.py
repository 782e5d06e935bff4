"""Bins against NumPy."""

import numpy as np
import pytest

from deciban import kernels
from deciban.statistics.bins import counted_column
from tests.kernels.data import RNG


def test_occupied_bins_are_entered_until_there_is_no_more_room() -> None:
    x = RNG.normal(size=50)
    numbers = np.floor(x * 4.0)
    keys = np.full(256, np.nan)
    assert kernels.occupy_bins(x, 0, 4.0, 50, 0, keys) == x.size
    np.testing.assert_array_equal(np.sort(keys[~np.isnan(keys)]), np.unique(numbers))
    table, columns = np.zeros((2, keys.size)), np.arange(keys.size)
    labels, weights = RNG.integers(0, 2, x.size).astype(np.int32), RNG.random(x.size)
    kernels.count_bins(x, labels, weights, 4.0, keys, columns, table)
    for c, place in np.ndindex(table.shape):
        np.testing.assert_allclose(table[c, place], weights[(labels == c) & (numbers == keys[place])].sum(), rtol=1e-12)
    _, first = np.unique(numbers, return_index=True)
    keys[:] = np.nan
    assert kernels.occupy_bins(x, 0, 4.0, 5, 0, keys) == np.sort(first)[5]


@pytest.mark.parametrize("most", [8, 100])
def test_the_finest_bins_that_are_few_enough(most: int) -> None:
    x = np.concatenate([RNG.normal(1000.0, 3.0, 200), [-5.0, 0.0, np.nan]])
    labels, weights = RNG.integers(-1, 2, x.size).astype(np.int32), RNG.integers(0, 3, x.size).astype(np.float64)
    used = (labels >= 0) & (weights > 0) & ~np.isnan(x)
    column = counted_column(x[used], labels[used], weights[used], 2, most, 48)
    exponent, cells, table = column.exponent, column.cells, column.table
    place = np.floor(np.ldexp(x, -exponent))
    np.testing.assert_array_equal(cells, np.unique(place[used]))
    assert cells.size <= most
    if exponent > np.floor(np.log2(np.abs(x[used]).max())) + 1 - 48:  # one finer would have been too many
        assert np.unique(np.floor(np.ldexp(x[used], 1 - exponent))).size > most
    for c in range(2):
        for k, cell in enumerate(cells):
            assert table[c, k] == weights[used & (labels == c) & (place == cell)].sum()
