"""Values counted on dyadic cells: cell k of scale s holds the values from k / s up to (k + 1) / s.

`keys` is a hash table of the cells that are occupied, NaN where a place is free; its size is a power of two.
"""

import numpy as np

from deciban.kernels.compiled import Array, compiled, inner


@inner
def _place_of(keys: Array, cell: float) -> np.int64:
    """The place of a cell, or the free place where it belongs."""
    mixed = np.uint64(np.int64(cell)) * np.uint64(0x9E3779B97F4A7C15)
    place = np.int64(mixed >> np.uint64(48)) & (keys.size - 1)  # the highest bits depend on all others
    while keys[place] == keys[place] and keys[place] != cell:
        place = (place + 1) & (keys.size - 1)
    return place


@compiled
def occupy_cells(x: Array, first: int, scale: float, most: int, occupied: int, keys: Array) -> int:
    """Enter the cells of the values from `first` on; the number of the first value that would be one cell too many."""
    for i in range(first, x.size):
        cell = np.floor(x[i] * scale)
        place = _place_of(keys, cell)
        if keys[place] != cell:
            if occupied == most:
                return i
            keys[place] = cell
            occupied += 1
    return x.size


@compiled
def count_cells(
    x: Array, labels: Array, weights: Array, scale: float, keys: Array, columns: Array, table: Array
) -> None:
    """Add the weight of each value to table[class, columns[place of its cell]]."""
    for i in range(x.size):
        table[labels[i], columns[_place_of(keys, np.floor(x[i] * scale))]] += weights[i]
