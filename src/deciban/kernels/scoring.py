"""Scoring of rows: bins and evidence of cells, posteriors, and decisions of least risk.

Evidence is added to `out[row, slot[j], class]`. If all slots are 0, the evidence of all columns is summed in place;
with slot[j] = block, each block is separate. Each class sums over columns in a fixed order, so that a single row has
the same bits as in a batch. Missing cells (NaN, or negative codes) and weights of 0 add nothing.
"""

from typing import NamedTuple

import numpy as np

from deciban.kernels.compiled import Array, compile_kernel, inner
from deciban.kernels.instructions import STEP, no_lanes, plus_scaled, put_lanes
from deciban.util.arrays import MAX_AMOUNT

# exp() of smaller numbers is 0, which libraries are slowest to compute.
MIN_EXPONENT = -746.0


@inner
def _sum_stored(
    data: Array, indices: Array, first: int, last: int, binary: bool, threshold: float, table: Array, total: Array
) -> bool:
    """Fill `total` with the sum of cell * table[column] over some cells, both in lanes; return False if one is missing.

    With `binary`, a cell counts as 1 above the threshold, else as 0. A zero adds nothing, even if the table has
    infinities.
    """
    whole = True
    width, place = np.uint64(table.shape[1]), np.uint64(0)
    start, stop = np.uint64(first), np.uint64(last)
    while place < width:
        a, b, c = no_lanes(), no_lanes(), no_lanes()
        wide = place + STEP + STEP < width  # three at once, because each pass over the cells costs as much as the sums
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


@compile_kernel
def score_lookup(
    codes: Array, start: Array, table: Array, weight: Array, slot: Array, total: Array, out: Array
) -> None:
    """Add weight * table[start[j] + code]; the table is in lanes, `total` is scratch space for one row of it."""
    width = np.uint64(table.shape[1])
    for i in range(codes.shape[0]):
        first = 0
        while first < codes.shape[1]:  # one slot after another
            here, last = slot[first], first
            while last < codes.shape[1] and slot[last] == here:
                last += 1
            place = np.uint64(0)
            while place < width:
                a, b, c = no_lanes(), no_lanes(), no_lanes()
                # three at once, because each pass over the columns costs as much as the sums
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


@compile_kernel
def score_binary(x: Array, threshold: float, one: Array, zero: Array, weight: Array, slot: Array, out: Array) -> None:
    """Add weight * one if the cell is above the threshold, else weight * zero."""
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if x[i, j] == x[i, j] and weight[j] != 0.0:
                here = one if x[i, j] > threshold else zero
                for c in range(out.shape[2]):
                    out[i, slot[j], c] += weight[j] * here[j, c]


@compile_kernel
def score_linear(x: Array, slope: Array, finite: bool, weight: float, slot: int, total: Array, out: Array) -> None:
    """Add weight * sum of x * slope over the columns; a zero cell adds nothing, even if its slope is infinite.

    Slopes are in lanes, and `total` is scratch space for those of one column. If all are `finite`, no branch is needed.
    """
    width, columns = np.uint64(slope.shape[1]), np.uint64(x.shape[1])
    for i in range(x.shape[0]):
        place = np.uint64(0)
        while place < width:
            a, b, c = no_lanes(), no_lanes(), no_lanes()
            wide = place + STEP + STEP < width  # three at once, as in `_sum_stored`
            for j in range(columns):
                value = np.float64(x[i, j])
                amount = value if value == value else 0.0
                if finite or amount != 0.0:
                    here = j * width + place
                    a = plus_scaled(a, amount, slope, here)
                    if wide:
                        b = plus_scaled(b, amount, slope, here + STEP)
                        c = plus_scaled(c, amount, slope, here + STEP + STEP)
            put_lanes(a, total, place)
            if wide:
                put_lanes(b, total, place + STEP)
                put_lanes(c, total, place + STEP + STEP)
                place += STEP + STEP
            place += STEP
        for k in range(out.shape[2]):
            out[i, slot, k] += weight * total[k]


@compile_kernel
def score_sparse_linear(
    data: Array, indices: Array, indptr: Array, slope: Array, weight: float, slot: int, total: Array, out: Array
) -> None:
    """Add the same as score_linear for rows in CSR form."""
    for i in range(indptr.size - 1):
        _sum_stored(data, indices, indptr[i], indptr[i + 1], False, 0.0, slope, total)
        for c in range(out.shape[2]):
            out[i, slot, c] += weight * total[c]


class BinaryTerms(NamedTuple):
    """Weighted evidence of columns of flags: `one` if a cell is above the threshold, else `zero`.

    one, zero: column by class. gain: one - zero in lanes, unused unless all terms are `finite`. zeros: per class, the
    sum of the zeros that are not -inf. blocked: the number of zeros that are.
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
    """Fill `total` with the sum of `zero` over all columns, replaced by `one` for cells above the threshold.

    Terms of -inf are counted and not added, so that they can be removed. A missing cell removes its zero.
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


@compile_kernel
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
    """Add the same as score_binary for all columns together: each row starts from the sum of all zeros.

    Gains are added for cells above the threshold; terms are replaced one by one if a cell is missing or a term
    infinite. `columns` are the column indices, `ones` as many ones, `above` scratch space for them and one more,
    `total` for the terms of a row.
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


@compile_kernel
def score_sparse_binary(
    data: Array, indices: Array, indptr: Array, threshold: float, terms: BinaryTerms, total: Array, out: Array
) -> None:
    """Add the same as score_all_binary for rows in CSR form; cells that are not stored are below the threshold."""
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


@compile_kernel
def score_half_line(
    x: Array, power: Array, slope: Array, offset: Array, weight: Array, slot: Array, out: Array
) -> None:
    """Add weight * (offset + power * log(x) + slope * x); a zero cell has only the offset.

    Cells are limited to MAX_AMOUNT, so that terms of either sign stay finite.
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
                    value = value if value < MAX_AMOUNT else MAX_AMOUNT
                    log_value = np.log(value)
                    for c in range(offset.shape[1]):
                        out[i, s, c] += w * (offset[j, c] + power[j, c] * log_value + slope[j, c] * value)


@inner
def _add_tile(tile: Array, rows: int, start: int, slot: int, out: Array) -> None:
    """Add a tile [class, row] to its slot, and clear it."""
    for i in range(rows):
        for c in range(tile.shape[0]):
            out[start + i, slot, c] += tile[c, i]
            tile[c, i] = 0.0


@compile_kernel
def score_normal(
    x: Array, center: Array, mean: Array, root: Array, offset: Array, weight: Array, slot: Array, column: Array,
    tile: Array, out: Array,
) -> bool:  # fmt: skip
    """Add weight * (offset - ((x - center - mean) * root)**2); return False if a cell is infinite.

    It works by tiles of rows, so that the innermost loop, over the rows of one column and class, runs in registers.
    `column` is scratch space for one column of a tile, `tile` [class, row] is for zeros.
    """
    finite = True
    for start in range(0, x.shape[0], column.size):
        rows = x.shape[0] - start if x.shape[0] - start < column.size else column.size
        here = slot[0]
        for j in range(x.shape[1]):
            w = weight[j]
            if w == 0.0:
                continue
            if slot[j] != here:
                _add_tile(tile, rows, start, here, out)
                here = slot[j]
            for i in range(rows):
                column[i] = x[start + i, j] - center[j]
                finite &= not np.isinf(column[i])
            for c in range(mean.shape[1]):
                m, r, o = mean[j, c], root[j, c], offset[j, c]
                for i in range(rows):
                    z = (column[i] - m) * r
                    tile[c, i] += w * (o - z * z) if column[i] == column[i] else 0.0
        _add_tile(tile, rows, start, here, out)
    return finite


@inner
def _combine_columns(columns: Array, whiten: Array, g: int, m: int, count: int, rows: int, white: Array) -> None:
    """Fill white[m] with the sum of whiten[g, m, k] * columns[k] over the first `count` columns of a tile."""
    height, place = np.uint64(columns.shape[1]), np.uint64(0)
    row = np.uint64(m * white.shape[1])
    while place < np.uint64(rows):
        a, b, c, d = no_lanes(), no_lanes(), no_lanes(), no_lanes()
        here = place
        for k in range(count):
            factor = whiten[g, m, k]
            a = plus_scaled(a, factor, columns, here)
            b = plus_scaled(b, factor, columns, here + STEP)
            c = plus_scaled(c, factor, columns, here + STEP + STEP)
            d = plus_scaled(d, factor, columns, here + STEP + STEP + STEP)
            here += height
        put_lanes(a, white, row + place)
        put_lanes(b, white, row + place + STEP)
        put_lanes(c, white, row + place + STEP + STEP)
        put_lanes(d, white, row + place + STEP + STEP + STEP)
        place += STEP + STEP + STEP + STEP


class WhitenedNormals(NamedTuple):
    """Joint normal densities: class c has the matrix whiten[group[c]].

    whiten[g, m, k] is the factor of column k in whitened coordinate m; it is 0 from column reach[m] on.
    """

    center: Array  # per column
    whiten: Array
    reach: Array
    group: Array
    mean: Array  # class by whitened coordinate
    offset: Array  # per class


@compile_kernel
def score_joint_normal(
    x: Array,
    center: Array,
    whiten: Array,
    reach: Array,
    group: Array,
    mean: Array,
    offset: Array,
    weight: float,
    slot: int,
    columns: Array,
    white: Array,
    distance: Array,
    out: Array,
) -> None:
    """Add weight * (offset - |whiten (x - center) - mean|**2), with the arrays of `WhitenedNormals`.

    The arrays are passed separately, because numba takes ten microseconds to unpack a NamedTuple, as long as scoring a
    row.

    It works by tiles of rows: every innermost loop runs over the rows of a tile. `columns` [column, row], `white`
    [coordinate, row] and `distance` are scratch space.
    """
    for start in range(0, x.shape[0], distance.size):
        rows = x.shape[0] - start if x.shape[0] - start < distance.size else distance.size
        for i in range(rows):
            for k in range(x.shape[1]):
                columns[k, i] = x[start + i, k] - center[k]
        last = -1
        for c in range(group.size):
            g = group[c]
            if g != last:
                for m in range(reach.size):
                    _combine_columns(columns, whiten, g, m, reach[m], rows, white)
                last = g
            for i in range(rows):
                distance[i] = 0.0
            for m in range(reach.size):
                here = mean[c, m]
                for i in range(rows):
                    z = white[m, i] - here
                    distance[i] += z * z
            for i in range(rows):
                # coordinates that overflowed in both directions are infinitely far
                far = distance[i] if distance[i] == distance[i] else np.inf
                out[start + i, slot, c] += weight * (offset[c] - far)


class JointNormals(NamedTuple):
    """Joint normal densities: class c has covariance[group[c]]; it and the means are in units of `unit`."""

    center: Array  # per column
    unit: Array  # per column
    covariance: Array
    group: Array
    mean: Array  # class by column, relative to the center


@compile_kernel
def score_holed_normal(
    x: Array, normals: JointNormals, weight: float, slot: int, kept: Array, root: Array, out: Array
) -> None:
    """Add weight * log density of rows with missing cells, which are integrated out.

    Matrices are factored again only for a row that lacks other columns than the row before. `kept` is scratch space for
    column indices, `root` for a matrix of them and one more row, for each matrix.
    """
    unit, group = normals.unit, normals.group
    log_root = np.zeros(root.shape[0])
    size, constant = -1, 0.0
    for i in range(x.shape[0]):
        there, changed = 0, False
        for k in range(x.shape[1]):
            if x[i, k] == x[i, k]:
                changed |= there >= size or kept[there] != k
                kept[there] = k
                there += 1
        if changed or there != size:
            size, constant = there, 0.0
            for a in range(size):
                constant -= np.log(unit[kept[a]]) + 0.5 * np.log(2.0 * np.pi)
            for g in range(root.shape[0]):
                log_root[g] = 0.0
                for a in range(size):  # Cholesky factor of the matrix of the present columns
                    for b in range(a + 1):
                        total = normals.covariance[g, kept[a], kept[b]]
                        for k in range(b):
                            total -= root[g, a, k] * root[g, b, k]
                        root[g, a, b] = np.sqrt(total) if a == b else total / root[g, b, b]
                    log_root[g] += np.log(root[g, a, a])
        for c in range(group.size):
            g = group[c]
            distance = 0.0
            for a in range(size):
                k = kept[a]
                total = (np.float64(x[i, k]) - normals.center[k]) / unit[k] - normals.mean[c, k]
                for b in range(a):
                    total -= root[g, a, b] * root[g, x.shape[1], b]
                white = total / root[g, a, a]
                root[g, x.shape[1], a] = white
                distance += white * white
            if distance != distance:
                distance = np.inf
            out[i, slot, c] += weight * (constant - log_root[g] - 0.5 * distance)


@compile_kernel
def find_bins(x: Array, cuts: Array, start: Array, column: Array, found: Array, out: Array) -> None:
    """Fill out[j, row] with 1 + the number of cuts of column j not above the cell, 0 for a missing cell.

    The cuts of column j are cuts[start[j] : start[j + 1]], increasing. It works by tiles of rows; `column` and `found`
    are scratch space for one column of a tile.
    """
    for first in range(0, x.shape[0], column.size):
        rows = column.size if x.shape[0] - first > column.size else x.shape[0] - first
        for j in range(x.shape[1]):
            begin, size = np.uint64(start[j]), np.uint64(start[j + 1] - start[j])
            for i in range(rows):
                column[i], found[i] = x[first + i, j], begin
            while size > 0:  # a binary search of all rows at once, without branches
                half = (size + np.uint64(1)) >> np.uint64(1)
                for i in range(rows):
                    found[i] += half * np.uint64(cuts[found[i] + half - np.uint64(1)] <= column[i])
                size -= half
            for i in range(rows):
                out[j, first + i] = 1 + (found[i] - begin) if column[i] == column[i] else 0


@compile_kernel
def limit_blocks(weighted: Array, cap: float, vast: float, uncapped: Array, beyond: Array, total: Array) -> None:
    """Limit the weighted evidence [row, block, class] in place, and add it to total[row, class], block by block.

    Fill `beyond` with flags of the blocks that are limited: if a class is more than `cap` below the best one, or all
    are below -`vast`. Their evidence becomes relative to the best class, or 0 if every class has probability 0.
    """
    for i in range(weighted.shape[0]):
        for b in range(weighted.shape[1]):
            low = top = weighted[i, b, 0]
            for c in range(1, weighted.shape[2]):
                value = weighted[i, b, c]
                low = value if value < low or value != value else low  # NaN stays
                top = value if value > top or value != value else top
            limited = not uncapped[b] and (not low >= top - cap or top < -vast)
            beyond[i, b] = limited
            if limited:
                for c in range(weighted.shape[2]):
                    below = 0.0 if top == -np.inf else weighted[i, b, c] - top
                    weighted[i, b, c] = -cap if below < -cap else below
            for c in range(weighted.shape[2]):
                total[i, c] += weighted[i, b, c]


@compile_kernel
def raise_to_limit(total: Array, limit: float) -> None:
    """Raise the evidence total[row, class] of each class to `limit` below the best one; -inf stays."""
    for i in range(total.shape[0]):
        top = total[i, 0]
        for c in range(1, total.shape[1]):
            top = total[i, c] if total[i, c] > top else top
        for c in range(total.shape[1]):
            if -np.inf < total[i, c] < top - limit:
                total[i, c] = top - limit


@compile_kernel
def normalize(log_joint: Array, log_prior: Array, logarithm: bool, posterior: Array, log_density: Array) -> None:
    """Fill the posterior (or its logarithm) and the log density of each row.

    If every class has probability 0, the posterior is the prior.
    """
    for i in range(log_joint.shape[0]):
        top = -np.inf
        for c in range(log_joint.shape[1]):
            if not log_joint[i, c] <= top:  # so that NaN is noticed
                top = log_joint[i, c]
        if top == -np.inf:
            log_density[i] = -np.inf
            for c in range(log_joint.shape[1]):
                posterior[i, c] = log_prior[c] if logarithm else np.exp(log_prior[c])
            continue
        total = 0.0
        for c in range(log_joint.shape[1]):
            below = log_joint[i, c] - top
            posterior[i, c] = 0.0 if below < MIN_EXPONENT else np.exp(below)
            total += posterior[i, c]
        log_total = np.log(total)
        log_density[i] = top + log_total
        for c in range(log_joint.shape[1]):
            if logarithm:
                posterior[i, c] = (log_joint[i, c] - top) - log_total
            else:
                posterior[i, c] /= total


@compile_kernel
def most_probable(log_joint: Array, fallback: int, out: Array) -> None:
    """Fill the class with the highest log joint of each row; `fallback` if all are -inf. Ties go to the first class."""
    for i in range(log_joint.shape[0]):
        best, top = fallback, -np.inf
        for c in range(log_joint.shape[1]):
            if log_joint[i, c] > top:
                best, top = c, log_joint[i, c]
        out[i] = best


@compile_kernel
def least_risk(
    posterior: Array, loss: Array, constant: Array, best: Array, risk: Array, second: Array, second_risk: Array
) -> None:
    """Fill the decision of least expected loss of each row and the second best; ties go to the first.

    `loss` is row by decision by truth, with one row if it is the same for all; `constant` flags decisions whose cost
    does not depend on the truth, to the bit.
    """
    for i in range(posterior.shape[0]):
        row = i if loss.shape[0] > 1 else 0
        least, next_least = np.inf, np.inf
        chosen, second_best = -1, -1
        for d in range(loss.shape[1]):
            total = loss[row, d, 0]
            if not constant[d]:
                total = 0.0
                for c in range(loss.shape[2]):
                    total += loss[row, d, c] * posterior[i, c]
            if total < least:
                second_best, next_least = chosen, least
                chosen, least = d, total
            elif total < next_least:
                second_best, next_least = d, total
        best[i], risk[i], second[i], second_risk[i] = chosen, least, second_best, next_least
