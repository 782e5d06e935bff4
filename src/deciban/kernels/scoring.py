"""Adding the evidence of cells to `out[row, slot[j], class]`.

With all slots 0 the evidence of every column adds up in place; with slot[j] = block each block's stays apart. Each
class sums over columns in a fixed order, so a row scored alone has the same bits as in a batch. A missing cell
(NaN, or a negative code) and a weight of 0 add nothing.
"""

from typing import NamedTuple

import numpy as np

from deciban.kernels.compiled import Array, compiled, inner
from deciban.kernels.lanes import STEP, no_lanes, plus_scaled, put_lanes
from deciban.util.arrays import LARGEST


@inner
def _sum_stored(
    data: Array, indices: Array, first: int, last: int, binary: bool, threshold: float, table: Array, total: Array
) -> bool:
    """Fill `total` with the sum of cell * table[column] over some cells, both in lanes; False if one is missing.

    With `binary` a cell counts as 1 above the threshold, else as 0. A zero adds nothing, whatever stands in the table.
    """
    whole = True
    width, place = np.uint64(table.shape[1]), np.uint64(0)
    start, stop = np.uint64(first), np.uint64(last)
    while place < width:
        a, b, c = no_lanes(), no_lanes(), no_lanes()
        wide = place + STEP + STEP < width  # three at once: each pass over the cells costs as much as the sums
        for k in range(start, stop):
            value = np.float64(data[k])
            whole &= value == value
            amount = (1.0 if value > threshold else 0.0) if binary else value
            if amount == amount and amount != 0.0:
                here = np.uint64(indices[k]) * width + place
                a = plus_scaled(a, amount, table, here)
                if wide:
                    b = plus_scaled(b, amount, table, here + STEP)
                    c = plus_scaled(c, amount, table, here + STEP + STEP)
        put_lanes(a, total, place)
        if wide:
            put_lanes(b, total, place + STEP)
            put_lanes(c, total, place + STEP + STEP)
            place += STEP + STEP
        place += STEP
    return whole


@compiled
def score_lookup(
    codes: Array, start: Array, table: Array, weight: Array, slot: Array, total: Array, out: Array
) -> None:
    """Add weight * table[start[j] + code]; the table is in lanes, `total` has room for one row of it."""
    width = np.uint64(table.shape[1])
    for i in range(codes.shape[0]):
        first = 0
        while first < codes.shape[1]:  # the columns of one slot after those of another
            here, last = slot[first], first
            while last < codes.shape[1] and slot[last] == here:
                last += 1
            place = np.uint64(0)
            while place < width:
                a, b, c = no_lanes(), no_lanes(), no_lanes()
                # three at once: each pass over the columns costs as much as the sums
                wide = place + STEP + STEP < width
                for j in range(first, last):
                    if codes[i, j] >= 0 and weight[j] != 0.0:
                        cell = np.uint64(start[j] + codes[i, j]) * width + place
                        a = plus_scaled(a, weight[j], table, cell)
                        if wide:
                            b = plus_scaled(b, weight[j], table, cell + STEP)
                            c = plus_scaled(c, weight[j], table, cell + STEP + STEP)
                put_lanes(a, total, place)
                if wide:
                    put_lanes(b, total, place + STEP)
                    put_lanes(c, total, place + STEP + STEP)
                    place += STEP + STEP
                place += STEP
            for k in range(out.shape[2]):
                out[i, here, k] += total[k]
            first = last


@compiled
def score_binary(x: Array, threshold: float, one: Array, zero: Array, weight: Array, slot: Array, out: Array) -> None:
    """Add weight * one where the cell is above the threshold, weight * zero where it is not."""
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if x[i, j] == x[i, j] and weight[j] != 0.0:
                here = one if x[i, j] > threshold else zero
                for c in range(out.shape[2]):
                    out[i, slot[j], c] += weight[j] * here[j, c]


@compiled
def score_linear(x: Array, slope: Array, weight: float, slot: int, total: Array, out: Array) -> None:
    """Add weight * sum of x * slope over the columns; a zero cell adds nothing, whatever its slope.

    Slopes are in lanes, and `total` has room for those of one column.
    """
    for i in range(x.shape[0]):
        for c in range(total.size):
            total[c] = 0.0
        for j in range(x.shape[1]):
            value = np.float64(x[i, j])
            if value == value and value != 0.0:
                for c in range(total.size):
                    total[c] += value * slope[j, c]
        for c in range(out.shape[2]):
            out[i, slot, c] += weight * total[c]


@compiled
def score_sparse_linear(
    data: Array, indices: Array, indptr: Array, slope: Array, weight: float, slot: int, total: Array, out: Array
) -> None:
    """score_linear for rows in CSR form."""
    for i in range(indptr.size - 1):
        _sum_stored(data, indices, indptr[i], indptr[i + 1], False, 0.0, slope, total)
        for c in range(out.shape[2]):
            out[i, slot, c] += weight * total[c]


class BinaryTerms(NamedTuple):
    """Weighted evidence of columns of flags: `one` where a cell is above the threshold, `zero` where it is not.

    one, zero: column by class. gain: one - zero in lanes, unused unless all terms are `finite`. zeros: for each class,
    the sum of the zeros of all columns that are not -inf. blocked: the number of those that are.
    """

    one: Array
    zero: Array
    gain: Array
    zeros: Array
    blocked: Array
    finite: bool


@inner
def _exchange(
    data: Array, indices: Array, first: int, last: int, threshold: float, terms: BinaryTerms, total: Array
) -> None:
    """Fill `total` with the sum of `zero` over all columns, exchanged for `one` where a cell is above the threshold.

    Terms of -inf are counted and not added, so that they can be taken back. A missing cell takes its zero away.
    """
    one, zero = terms.one, terms.zero
    for c in range(terms.zeros.size):
        stops = terms.blocked[c]
        total[c] = terms.zeros[c]
        for k in range(first, last):
            value = np.float64(data[k])
            if value <= threshold:
                continue
            j = indices[k]
            if zero[j, c] == -np.inf:
                stops -= 1.0
            else:
                total[c] -= zero[j, c]
            if value == value:
                if one[j, c] == -np.inf:
                    stops += 1.0
                else:
                    total[c] += one[j, c]
        if stops > 0.0:
            total[c] = -np.inf


@compiled
def score_all_binary(
    x: Array,
    threshold: float,
    terms: BinaryTerms,
    columns: Array,
    ones: Array,
    above: Array,
    total: Array,
    out: Array,
) -> None:
    """score_binary for all columns together: each row starts from the sum of all zeros.

    Its gains are added where a cell is above the threshold, or exchanged if a cell is missing or a term infinite.
    `columns` are the numbers of the columns, `ones` as many ones, `above` has room for them and one more, `total` for
    the terms of a row.
    """
    zeros = terms.zeros
    for i in range(x.shape[0]):
        count, whole = 0, terms.finite
        for j in range(x.shape[1]):
            above[count] = j
            count += x[i, j] > threshold
            whole &= x[i, j] == x[i, j]
        if whole:
            _sum_stored(ones, above, 0, count, False, 0.0, terms.gain, total)
            for c in range(zeros.size):
                out[i, 0, c] += zeros[c] + total[c]
        else:
            _exchange(x[i], columns, 0, columns.size, threshold, terms, total)
            for c in range(zeros.size):
                out[i, 0, c] += total[c]


@compiled
def score_sparse_binary(
    data: Array, indices: Array, indptr: Array, threshold: float, terms: BinaryTerms, total: Array, out: Array
) -> None:
    """score_all_binary for rows in CSR form; what is not stored is below the threshold."""
    zeros = terms.zeros
    for i in range(indptr.size - 1):
        first, last = indptr[i], indptr[i + 1]
        if terms.finite and _sum_stored(data, indices, first, last, True, threshold, terms.gain, total):
            for c in range(zeros.size):
                out[i, 0, c] += zeros[c] + total[c]
        else:
            _exchange(data, indices, first, last, threshold, terms, total)
            for c in range(zeros.size):
                out[i, 0, c] += total[c]


@compiled
def score_half_line(
    x: Array, power: Array, slope: Array, offset: Array, weight: Array, slot: Array, out: Array
) -> None:
    """Add weight * (offset + power * log(x) + slope * x); a zero cell has no power and no slope term.

    Cells are cut off at LARGEST, so that terms of either sign stay finite.
    """
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            value = np.float64(x[i, j])
            w = weight[j]
            if value == value and w != 0.0:
                s = slot[j]
                if value == 0.0:
                    for c in range(offset.shape[1]):
                        out[i, s, c] += w * offset[j, c]
                else:
                    value = value if value < LARGEST else LARGEST
                    log_value = np.log(value)
                    for c in range(offset.shape[1]):
                        out[i, s, c] += w * (offset[j, c] + power[j, c] * log_value + slope[j, c] * value)
