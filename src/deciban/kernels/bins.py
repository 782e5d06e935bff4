"""Values counted in dyadic bins: bin k of scale s holds the values from k / s up to (k + 1) / s.

`keys` is a hash table of the occupied bins, NaN where a place is free; its size is a power of two.
"""

import numpy as np

from deciban.kernels.compiled import Array, compiled, inner


@inner
def _place_of(keys: Array, number: float) -> np.int64:
    """The place of a bin, or the free place where it belongs."""
    mixed = np.uint64(np.int64(number)) * np.uint64(0x9E3779B97F4A7C15)
    place = np.int64(mixed >> np.uint64(48)) & (keys.size - 1)  # the highest bits depend on all others
    while keys[place] == keys[place] and keys[place] != number:
        place = (place + 1) & (keys.size - 1)
    return place


@compiled
def occupy_bins(x: Array, first: int, scale: float, most: int, occupied: int, keys: Array) -> int:
    """Enter the bins of the values from `first` on; return the row of the first value that is one bin too many.

    `occupied` bins are entered already, and `most` may be; the number of values is returned if all find room.
    """
    for i in range(first, x.size):
        number = np.floor(x[i] * scale)
        place = _place_of(keys, number)
        if keys[place] != number:
            if occupied == most:
                return i
            keys[place] = number
            occupied += 1
    return x.size


@compiled
def count_bins(
    x: Array, labels: Array, weights: Array, scale: float, keys: Array, columns: Array, table: Array
) -> None:
    """Add the weight of each value to table[class, columns[place of its bin]]."""
    for i in range(x.size):
        table[labels[i], columns[_place_of(keys, np.floor(x[i] * scale))]] += weights[i]
