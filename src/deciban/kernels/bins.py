"""Values counted in dyadic bins: a bin of width w holds the values from k * w up to (k + 1) * w, k * w being its edge.

`keys` is a hash table of the edges of the occupied bins, NaN where a place is free; its size is a power of two.
"""

import numpy as np

from deciban.kernels.compiled import Array, compiled, inner
from deciban.kernels.exact_sums import bits_of
from deciban.util.arrays import MIN_WHOLE


@inner
def _edge_of(value: float, width: float) -> float:
    """The edge of the bin of a value: a number that is beyond 2**52 widths is an edge itself."""
    number = value / width
    return np.floor(number) * width + 0.0 if abs(number) < MIN_WHOLE else value


@inner
def _place_of(keys: Array, edge: float) -> np.int64:
    """The place of a bin, or the free place where it belongs."""
    mixed = np.uint64(bits_of(edge)) * np.uint64(0x9E3779B97F4A7C15)
    place = np.int64(mixed >> np.uint64(48)) & (keys.size - 1)  # the highest bits depend on all others
    while keys[place] == keys[place] and keys[place] != edge:
        place = (place + 1) & (keys.size - 1)
    return place


@compiled
def occupy_bins(x: Array, first: int, width: float, most: int, occupied: int, keys: Array) -> int:
    """Enter the bins of the values from `first` on; return the row of the first value that is one bin too many.

    `occupied` bins are entered already, and `most` may be; the number of values is returned if all find room.
    """
    for i in range(first, x.size):
        edge = _edge_of(x[i], width)
        place = _place_of(keys, edge)
        if keys[place] != edge:
            if occupied == most:
                return i
            keys[place] = edge
            occupied += 1
    return x.size


@compiled
def count_bins(
    x: Array, labels: Array, weights: Array, width: float, keys: Array, columns: Array, table: Array
) -> None:
    """Add the weight of each value to table[class, columns[place of its bin]]."""
    for i in range(x.size):
        table[labels[i], columns[_place_of(keys, _edge_of(x[i], width))]] += weights[i]
