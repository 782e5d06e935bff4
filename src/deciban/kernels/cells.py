"""Counting a column on the finest dyadic cells that are few enough to keep."""

import numpy as np

from deciban.kernels.compiled import Array, compiled


@compiled
def _home(cell: float, capacity: int) -> np.int64:
    """Where the search for `cell` starts in a table of `capacity` (a power of two) places."""
    mixed = np.uint64(np.int64(cell)) * np.uint64(0x9E3779B97F4A7C15)
    return np.int64(mixed >> np.uint64(32)) & (capacity - 1)


@compiled
def _find(keys: Array, used: Array, cell: float) -> np.int64:
    """The place of `cell`, or the free place where it belongs."""
    place = _home(cell, keys.size)
    while used[place] and keys[place] != cell:
        place = (place + 1) & (keys.size - 1)
    return place


@compiled
def count_cells(
    x: Array, labels: Array, weights: Array, classes: int, most: int, digits: int
) -> tuple[int, Array, Array]:
    """Return (exponent, cells, table): cell k is [k, k + 1) * 2**exponent, table[class, i] the weight in cells[i].

    The exponent is the least for which at most `most` cells are occupied and every cell number has at most `digits`
    binary digits: a property of the set of values, not of their order.
    """
    capacity = 1
    while capacity < 4 * most:
        capacity *= 2
    keys = np.zeros(capacity)
    used = np.zeros(capacity, np.bool_)
    table = np.zeros((capacity, classes))
    occupied = 0
    largest = 0.0
    exponent = -1074
    for i in range(x.size):
        value = np.float64(x[i])
        c = labels[i]
        w = weights[i]
        if value != value or c < 0 or w == 0.0:
            continue
        wanted = exponent
        if abs(value) > largest:
            largest = abs(value)
            wanted = max(wanted, int(np.floor(np.log2(largest))) + 1 - digits)
        place = np.int64(0)
        while True:
            while wanted > exponent:  # halve the resolution, as often as needed: the cells nest
                step = wanted - exponent
                kept = np.empty(occupied)
                held = np.empty((occupied, classes))
                k = 0
                for p in range(capacity):
                    if used[p]:
                        kept[k] = np.floor(np.ldexp(keys[p], -step))
                        held[k] = table[p]
                        k += 1
                used[:] = False
                table[:] = 0.0
                occupied = 0
                for k in range(kept.size):
                    home = _find(keys, used, kept[k])
                    if not used[home]:
                        used[home] = True
                        keys[home] = kept[k]
                        occupied += 1
                    table[home] += held[k]
                exponent = wanted
            cell = np.floor(np.ldexp(value, -exponent))
            place = _find(keys, used, cell)
            if used[place]:
                break
            if occupied < most:
                used[place] = True
                keys[place] = cell
                occupied += 1
                break
            wanted = exponent + 1
        table[place, c] += w
    cells = keys[used]
    order = np.argsort(cells)
    return exponent, cells[order], table[used][order].T
