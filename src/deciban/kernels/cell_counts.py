"""Counting of cells by class (levels, dyadic bins, totals), and checks of all values in one pass.

A dyadic bin of width w holds the values from k * w up to (k + 1) * w; k * w is its edge. `keys` is a hash table of the
edges of the occupied bins, with NaN in free slots; its size is a power of two.

Totals are sums by class and column, and the weight of the rows in which the column is present. They are doubles, which
are exact for integers, or digits of `exact_sums`.
"""

import numpy as np

from deciban.kernels.compiled import Array, compile_kernel, inner
from deciban.kernels.exact_sums import add_product, bits_of
from deciban.util.arrays import MIN_WHOLE


@compile_kernel
def count_codes(codes: Array, labels: Array, weights: Array, table: Array) -> None:
    """Add the weight of each row to table[class, code], in place; negative codes and classes are left out."""
    for i in range(codes.size):
        if codes[i] >= 0 and labels[i] >= 0:
            table[labels[i], codes[i]] += weights[i]


@compile_kernel
def integer_ranges(x: Array, low: Array, high: Array) -> bool:
    """Fill the minimum and maximum of each column; return False if a cell is neither integral nor missing."""
    limit = 2.0**53
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            value = np.float64(x[i, j])
            if value == value:
                if not (-limit < value < limit) or value != np.floor(value):
                    return False
                low[j] = min(low[j], value)
                high[j] = max(high[j], value)
    return True


@compile_kernel
def count_integers(x: Array, labels: Array, weights: Array, low: Array, start: Array, table: Array) -> None:
    """Add each row to table[class, start[j] + x[i, j] - low[j]], in place; missing cells are left out."""
    for i in range(x.shape[0]):
        c = labels[i]
        w = weights[i]
        if c < 0 or w == 0.0:
            continue
        for j in range(x.shape[1]):
            value = np.float64(x[i, j])
            if value == value:
                table[c, start[j] + np.int64(value - low[j])] += w


@compile_kernel
def encode_integers(x: Array, low: Array, start: Array, codes_of: Array, out: Array) -> bool:
    """Fill out[i, j] with the code of x[i, j], -1 if it is missing, -2 if it has no code; return False if any has none.

    `codes_of[start[j] : start[j + 1]]` are the codes of low[j], low[j] + 1, ... (-2: not a level).
    """
    known = True
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            value = np.float64(x[i, j])
            if value != value:
                out[i, j] = -1
                continue
            place = value - low[j]
            if 0.0 <= place < start[j + 1] - start[j] and value == np.floor(value):
                out[i, j] = codes_of[start[j] + np.int64(place)]
            else:
                out[i, j] = -2
            known &= out[i, j] != -2
    return known


@inner
def _edge_of(value: float, width: float) -> float:
    """Return the edge of the bin of a value; a number beyond 2**52 widths is its own edge."""
    number = value / width
    return np.floor(number) * width + 0.0 if abs(number) < MIN_WHOLE else value


@inner
def _place_of(keys: Array, edge: float) -> np.int64:
    """Return the slot of a bin, or the free slot where it belongs."""
    mixed = np.uint64(bits_of(edge)) * np.uint64(0x9E3779B97F4A7C15)
    place = np.int64(mixed >> np.uint64(48)) & (keys.size - 1)  # the highest bits depend on all others
    while keys[place] == keys[place] and keys[place] != edge:
        place = (place + 1) & (keys.size - 1)
    return place


@compile_kernel
def occupy_bins(x: Array, first: int, width: float, most: int, occupied: int, keys: Array) -> int:
    """Enter the bins of the values from `first` on; return the row of the first value that exceeds the maximum.

    `occupied` bins are entered already, at most `most` are allowed. The number of values is returned if all fit.
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


@compile_kernel
def count_bins(
    x: Array, labels: Array, weights: Array, width: float, keys: Array, columns: Array, table: Array
) -> None:
    """Add the weight of each value to table[class, columns[slot of its bin]]."""
    for i in range(x.size):
        table[labels[i], columns[_place_of(keys, _edge_of(x[i], width))]] += weights[i]


@compile_kernel
def count_totals(
    x: Array, labels: Array, weights: Array, binary: bool, threshold: float, present: Array, total: Array
) -> bool:
    """Add the rows of `x` to the totals, in place; with `binary`, a cell counts as 1 above `threshold`, else 0.

    Return True if all weights and cells are integers. Products do not show this, because large ones are rounded.
    """
    whole = True
    for i in range(x.shape[0]):
        c = labels[i]
        w = weights[i]
        if c < 0 or w == 0.0:
            continue
        whole &= w == np.floor(w)
        for j in range(x.shape[1]):
            value = np.float64(x[i, j])
            here = w if value == value else 0.0
            present[c, j] += here
            amount = (w if value > threshold else 0.0) if binary else (w * value if value == value else 0.0)
            total[c, j] += amount
            whole &= binary | (value != value) | (value == np.floor(value))
    return whole


@compile_kernel
def count_sparse_totals(
    data: Array,
    indices: Array,
    indptr: Array,
    labels: Array,
    weights: Array,
    binary: bool,
    threshold: float,
    present: Array,
    total: Array,
) -> bool:
    """Add rows in CSR form to the totals, as `count_totals` does.

    Only missing cells change `present`: their weight is subtracted.
    """
    whole = True
    for i in range(indptr.size - 1):
        c = labels[i]
        w = weights[i]
        if c < 0 or w == 0.0:
            continue
        whole &= w == np.floor(w)
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            value = np.float64(data[k])
            j = np.uint64(indices[k])
            if value != value:
                present[c, j] -= w
            else:
                amount = (w if value > threshold else 0.0) if binary else w * value
                total[c, j] += amount
                whole &= binary | (value == np.floor(value))
    return whole


@compile_kernel
def add_amounts(
    x: Array, labels: Array, weights: Array, binary: bool, threshold: float, rows: Array, sums: Array, lows: Array
) -> None:
    """Add the rows of `x` to the digits of the totals; `lows` are those of both."""
    for i in range(x.shape[0]):
        c = labels[i]
        w = weights[i]
        if c < 0 or w == 0.0:
            continue
        for j in range(x.shape[1]):
            value, cell = np.float64(x[i, j]), c * x.shape[1] + j
            if value == value:
                add_product(rows, cell, lows[0], w, 1.0, 1.0)
                amount = (1.0 if value > threshold else 0.0) if binary else value
                add_product(sums, cell, lows[1], w, amount, 1.0)


@compile_kernel
def add_sparse_amounts(
    data: Array,
    indices: Array,
    indptr: Array,
    labels: Array,
    weights: Array,
    binary: bool,
    threshold: float,
    every: Array,
    rows: Array,
    sums: Array,
    lows: Array,
) -> None:
    """Add rows in CSR form to the digits of the totals.

    The weight of each class is added to `every`; missing cells are subtracted from `rows`.
    """
    width = rows.shape[0] // every.shape[0]
    for i in range(indptr.size - 1):
        c = labels[i]
        w = weights[i]
        if c < 0 or w == 0.0:
            continue
        add_product(every, c, lows[0], w, 1.0, 1.0)
        for k in range(indptr[i], indptr[i + 1]):
            value, cell = np.float64(data[k]), c * width + indices[k]
            if value != value:
                add_product(rows, cell, lows[0], -w, 1.0, 1.0)
            else:
                amount = (1.0 if value > threshold else 0.0) if binary else value
                add_product(sums, cell, lows[1], w, amount, 1.0)


@compile_kernel
def all_finite(values: Array) -> bool:
    """Return True if no value is missing or infinite."""
    bad = 0
    for k in range(values.size):
        bad += not np.isfinite(values[k])
    return bad == 0


@compile_kernel
def all_within(values: Array, low: float, high: float) -> bool:
    """Return True if each value is within the bounds or missing."""
    outside = 0
    for k in range(values.size):
        outside += values[k] < low or values[k] > high
    return outside == 0
