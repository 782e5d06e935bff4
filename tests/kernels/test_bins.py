"""Bins against NumPy."""

import numpy as np
import pytest

from deciban import kernels
from deciban.statistics.bins import MIN_EXPONENT, count_column, find_edges
from tests.kernels.data import RNG


def test_occupied_bins_are_entered_until_there_is_no_more_room() -> None:
    x = np.concatenate([RNG.normal(size=50), [1e300, -1e300, 5e-324, -5e-324, 0.0, -0.0]])
    edges = np.where(np.abs(x) < 1e9, np.floor(x * 4.0) / 4.0, x)
    np.testing.assert_array_equal(find_edges(x, -2), edges)
    keys = np.full(256, np.nan)
    assert kernels.cell_counts.occupy_bins(x, 0, 0.25, x.size, 0, keys) == x.size
    np.testing.assert_array_equal(np.sort(keys[~np.isnan(keys)]), np.unique(edges))
    table, columns = np.zeros((2, keys.size)), np.arange(keys.size)
    labels, weights = RNG.integers(0, 2, x.size).astype(np.int32), RNG.random(x.size)
    kernels.cell_counts.count_bins(x, labels, weights, 0.25, keys, columns, table)
    for c, place in np.ndindex(table.shape):
        np.testing.assert_allclose(table[c, place], weights[(labels == c) & (edges == keys[place])].sum(), rtol=1e-12)
    _, first = np.unique(edges, return_index=True)
    keys[:] = np.nan
    assert kernels.cell_counts.occupy_bins(x, 0, 0.25, 5, 0, keys) == np.sort(first)[5]


@pytest.mark.parametrize("most", [8, 100])
def test_the_finest_bins_that_are_few_enough(most: int) -> None:
    x = np.concatenate([RNG.normal(1000.0, 3.0, 200), [-5.0, 0.0, np.nan]])
    labels, weights = RNG.integers(-1, 2, x.size).astype(np.int32), RNG.integers(0, 3, x.size).astype(np.float64)
    used = (labels >= 0) & (weights > 0) & ~np.isnan(x)
    column = count_column(x[used], labels[used], weights[used], 2, most)
    exponent, cells, table = column.exponent, column.edges, column.table
    place = find_edges(x, exponent)
    np.testing.assert_array_equal(cells, np.unique(place[used]))
    assert cells.size <= most
    if exponent > MIN_EXPONENT:  # one finer would have been too many
        assert np.unique(find_edges(x[used], exponent - 1)).size > most
    for c in range(2):
        for k, cell in enumerate(cells):
            assert table[c, k] == weights[used & (labels == c) & (place == cell)].sum()
