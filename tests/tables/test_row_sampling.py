"""Rows drawn by lot."""

import tracemalloc

import numpy as np

from deciban.tables.row_sampling import row_hashes, sampled_places


def test_the_lowest_lots_are_drawn_in_memory_that_does_not_grow() -> None:
    size, most = 6_000_000, 1_000
    lowest = np.sort(np.argsort(row_hashes(0, size))[:most])
    tracemalloc.start()
    found = sampled_places(size, most)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert np.array_equal(found, lowest)
    assert peak < 8 * size  # that of one number a row
