"""Counting a column on the finest dyadic cells that are few enough to keep."""

import numpy as np

from deciban.kernels.compiled import Array, compiled

# So many rows say about how fine the cells can be.
FIRST_ROWS = 1 << 12


@compiled
def _home(cell: float, capacity: int) -> np.int64:
    """Where the search for `cell` starts in a table of `capacity` (a power of two) places."""
    mixed = np.uint64(np.int64(cell)) * np.uint64(0x9E3779B97F4A7C15)
    return np.int64(mixed >> np.uint64(48)) & (capacity - 1)  # the highest bits depend on all others


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
def _fits(x: Array, labels: Array, weights: Array, exponent: int, keys: Array, used: Array, most: int) -> bool:
    """Whether the values occupy at most `most` cells of this size."""
    used[:] = False
    occupied = 0
    scale = _scale(exponent)
    for i in range(x.size):
        if x[i] == x[i] and labels[i] >= 0 and weights[i] != 0.0:
            cell = _cell(x[i], exponent, scale)
            place = _find(keys, used, cell)
            if not used[place]:
                if occupied == most:
                    return False
                used[place] = True
                keys[place] = cell
                occupied += 1
    return True


@compiled
def _first_exponent(x: Array, labels: Array, weights: Array, keys: Array, used: Array, most: int, digits: int) -> int:
    """An exponent that is not too large, near the one to be found: that of the first rows, with the digits of all."""
    largest = 0.0
    for i in range(x.size):
        if abs(x[i]) > largest and labels[i] >= 0 and weights[i] != 0.0:
            largest = abs(x[i])
    if largest == 0.0:
        return -1074
    top = int(np.floor(np.log2(largest))) + 1
    low = max(-1074, top - digits)
    high = max(low, top + 1)  # where the cells are -1 and 0
    first = slice(0, FIRST_ROWS)
    while low < high:
        middle = (low + high) // 2
        if _fits(x[first], labels[first], weights[first], middle, keys, used, most):
            high = middle
        else:
            low = middle + 1
    return low


@compiled
def _occupied_cells(x: Array, labels: Array, weights: Array, most: int, digits: int) -> tuple[int, Array, Array]:
    """The least exponent that will do, and the table of the cells that are occupied then."""
    capacity = 1
    while capacity < 4 * min(most, x.size):
        capacity *= 2
    keys = np.zeros(capacity)
    used = np.zeros(capacity, np.bool_)
    exponent = _first_exponent(x, labels, weights, keys, used, most, digits)
    scale = _scale(exponent)
    used[:] = False
    occupied = 0
    for i in range(x.size):
        value = x[i]
        if value != value or labels[i] < 0 or weights[i] == 0.0:
            continue
        while True:
            cell = _cell(value, exponent, scale)
            place = _find(keys, used, cell)
            if used[place]:
                break
            if occupied < most:
                used[place] = True
                keys[place] = cell
                occupied += 1
                break
            occupied = _coarsen(keys, used, 1)  # the cells nest, so halving the resolution keeps what was found
            exponent += 1
            scale = _scale(exponent)
    return exponent, keys, used


@compiled
def count_cells(
    x: Array, labels: Array, weights: Array, classes: int, most: int, digits: int
) -> tuple[int, Array, Array]:
    """Return (exponent, cells, table): cell k is [k, k + 1) * 2**exponent, table[class, i] the weight in cells[i].

    The exponent is the least for which at most `most` cells are occupied and every cell number has at most `digits`
    binary digits: a property of the set of values, not of their order.
    """
    exponent, keys, used = _occupied_cells(x, labels, weights, most, digits)
    cells = np.sort(keys[used])
    place_of = np.empty(keys.size, np.int32)
    for k in range(cells.size):
        place_of[_find(keys, used, cells[k])] = k
    table = np.zeros((classes, cells.size))
    scale = _scale(exponent)
    for i in range(x.size):
        if x[i] == x[i] and labels[i] >= 0 and weights[i] != 0.0:
            place = place_of[_find(keys, used, _cell(x[i], exponent, scale))]
            table[labels[i], place] += weights[i]
    return exponent, cells, table
