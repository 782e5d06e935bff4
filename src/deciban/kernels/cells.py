"""Counting a column on the finest dyadic cells that are few enough to keep."""

import numpy as np

from deciban.kernels.compiled import Array, compiled

# Cells that are not further apart than this are looked up instead of searched for.
MOST_PLACES = 1 << 16


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
def _coarsen(keys: Array, used: Array, step: int) -> int:
    """Replace the cells in the table by those that are 2**step times as wide; the number that are occupied."""
    kept = np.floor(np.ldexp(keys[used], -step))
    used[:] = False
    occupied = 0
    for k in range(kept.size):
        home = _find(keys, used, kept[k])
        if not used[home]:
            used[home] = True
            keys[home] = kept[k]
            occupied += 1
    return occupied


@compiled
def _scale(exponent: int) -> float:
    """2**-exponent, to multiply by; 0 where a double cannot hold it and its products."""
    return float(np.ldexp(1.0, -exponent)) if -900 < exponent < 900 else 0.0


@compiled
def _cell(value: float, exponent: int, scale: float) -> float:
    """The number of the cell that holds a value."""
    return float(np.floor(value * scale)) if scale > 0.0 else float(np.floor(np.ldexp(value, -exponent)))


@compiled
def _occupied_cells(x: Array, labels: Array, weights: Array, most: int, digits: int) -> tuple[int, Array]:
    """The least exponent that will do, and the cells that are occupied then, in order."""
    capacity = 1
    while capacity < 4 * min(most, x.size):
        capacity *= 2
    keys = np.zeros(capacity)
    used = np.zeros(capacity, np.bool_)
    occupied = 0
    largest = 0.0
    exponent = -1074
    scale = 0.0
    for i in range(x.size):
        value = x[i]
        if value != value or labels[i] < 0 or weights[i] == 0.0:
            continue
        wanted = exponent
        if abs(value) > largest:
            largest = abs(value)
            wanted = max(wanted, int(np.floor(np.log2(largest))) + 1 - digits)
        while True:
            if wanted > exponent:  # the cells nest, so halving the resolution keeps what was found
                occupied = _coarsen(keys, used, wanted - exponent)
                exponent = wanted
                scale = _scale(exponent)
            cell = _cell(value, exponent, scale)
            place = _find(keys, used, cell)
            if used[place]:
                break
            if occupied < most:
                used[place] = True
                keys[place] = cell
                occupied += 1
                break
            wanted = exponent + 1
    return exponent, np.sort(keys[used])


@compiled
def count_cells(
    x: Array, labels: Array, weights: Array, classes: int, most: int, digits: int
) -> tuple[int, Array, Array]:
    """Return (exponent, cells, table): cell k is [k, k + 1) * 2**exponent, table[class, i] the weight in cells[i].

    The exponent is the least for which at most `most` cells are occupied and every cell number has at most `digits`
    binary digits: a property of the set of values, not of their order.
    """
    exponent, cells = _occupied_cells(x, labels, weights, most, digits)
    table = np.zeros((classes, cells.size))
    scale = _scale(exponent)
    close = cells.size > 0 and cells[-1] - cells[0] < MOST_PLACES
    place_of = np.empty(np.int64(cells[-1] - cells[0]) + 1 if close else 0, np.int32)
    if close:
        for k in range(cells.size):
            place_of[np.int64(cells[k] - cells[0])] = k
    for i in range(x.size):
        if x[i] == x[i] and labels[i] >= 0 and weights[i] != 0.0:
            cell = _cell(x[i], exponent, scale)
            place = place_of[np.int64(cell - cells[0])] if close else np.searchsorted(cells, cell)
            table[labels[i], place] += weights[i]
    return exponent, cells, table
