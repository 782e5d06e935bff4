"""Growing of correction tables, one after another, as in gradient boosting.

Two series of tables share their questions: one is grown on top of the evidence, one on top of the prior alone. A table
is searched with the slopes of one series, in turn, and has values for both. Slopes and curvatures are rounded to whole
numbers and packed into one 64-bit number, the slope in the upper half. So a row costs one addition per column, and sums
are exact: neither the order of rows nor repeated rows change a bit.
"""

from typing import NamedTuple

import numpy as np

from deciban.kernels.compiled import Array, compile_kernel, inner, inner_to_reorder

# A cut must be better by this factor to be preferred, so that rounding does not decide between equal cuts.
EQUAL_GAINS = 1.0 + 1e-9

# Gain per row on the smaller side of a cut. It allows a first cut if only two columns together are informative.
GAIN_OF_A_ROW = 1e-9

# Bound of the sums of whole numbers: half of the largest 32-bit integer, which leaves room for rounding.
MAX_SUM = 2.0**30

# Slopes whose absolute sum is below this are 0; a unit of more would not be a number of single precision.
MIN_TOTAL = 1e-25

# Whole weights are repetitions of rows, whose slopes are rounded one by one, if their sum is at most this: beyond, too
# few digits are left for a slope.
MAX_REPEATS = 2.0**20

# Bounds of odds, and the smallest posterior, in single precision: no product of two of them overflows.
MIN_ODDS = 1e-18
MAX_ODDS = 1e18

# Largest step of a table, in nats; cells of rows that are wrong for sure would take larger ones.
MAX_STEP = 60.0

# Rows whose posteriors are computed at a time, so that they stay in the cache for all classes.
CHUNK_ROWS = 1024


class GrowthRows(NamedTuple):
    """Rows to grow tables from; those from `held[0]` to `held[1]` are held out.

    codes: the bin of each cell, column by row. labels: the class of each row. repeats: how often each row counts.
    weight: weight of one repetition. posterior: series by class by row; of two classes, only the odds of the second.
    """

    codes: Array
    labels: Array
    repeats: Array
    weight: Array
    posterior: Array
    held: Array


class GrowthScratch(NamedTuple):
    """Scratch space for one table at a time.

    slopes: by output, the curvature last, by row. packed: whole numbers of each series by row. order, moved: rows
    grouped by cell, and their whole numbers, twice: before and after a split. sums: by cell, column, output and bin.
    room: the same of a smaller half and of the rest, for four columns. run, below: cumulative sums of a column. gains:
    by column and bin. first: where the rows of each cell begin. cell: of each row. totals: by class or series and cell.
    """

    slopes: Array
    packed: Array
    order: Array
    moved: Array
    sums: Array
    room: Array
    run: Array
    below: Array
    gains: Array
    first: Array
    cell: Array
    totals: Array


@inner_to_reorder
def _two_class_slopes(
    labels: Array, repeats: Array, weight: Array, odds: Array, slope: Array, curvature: Array
) -> tuple[float, float]:
    """Fill slope and curvature of each row in the log-odds of the second class; return their absolute sums."""
    slopes, curvatures = np.float32(0.0), np.float32(0.0)
    for i in range(odds.size):
        p = odds[i] / (np.float32(1.0) + odds[i])
        g, h = weight[i] * (np.float32(labels[i]) - p), weight[i] * p * (np.float32(1.0) - p)
        slope[i], curvature[i] = g, h
        slopes += abs(g) * np.float32(repeats[i])
        curvatures += h * np.float32(repeats[i])
    return float(slopes), float(curvatures)


@inner_to_reorder
def _class_slopes(rows: GrowthRows, series: int, mix: Array, slopes: Array) -> tuple[float, float]:
    """Fill the slopes of each row for two mixtures of classes, and the curvature; return their absolute sums."""
    _, labels, repeats, weight, posterior, _ = rows
    classes, size = posterior.shape[1], labels.size
    one, other, curvature = slopes[0], slopes[1], slopes[2]
    for i in range(size):
        one[i], other[i], curvature[i] = mix[labels[i], 0], mix[labels[i], 1], np.float32(0.0)
    for k in range(classes):
        p, a, b = posterior[series, k], mix[k, 0], mix[k, 1]
        for i in range(size):
            one[i] -= p[i] * a
            other[i] -= p[i] * b
            curvature[i] += p[i] * (np.float32(1.0) - p[i])
    share, sum_one, sum_other, curvatures = np.float32((classes - 1.0) / classes), 0.0, 0.0, 0.0
    for i in range(size):
        one[i] *= weight[i]
        other[i] *= weight[i]
        curvature[i] *= share * weight[i]
        sum_one += abs(one[i]) * repeats[i]
        sum_other += abs(other[i]) * repeats[i]
        curvatures += curvature[i] * repeats[i]
    return max(sum_one, sum_other), curvatures


@inner
def _units(total: float) -> float:
    """Return how many whole numbers make one: a power of two, so that small differences of the total do not matter."""
    return 2.0 ** np.floor(np.log2(MAX_SUM / total)) if total > MIN_TOTAL else 1.0


@inner
def _pack(slope: Array, curvature: Array, repeats: Array, by: float, of: float, packed: Array) -> None:
    """Fill the whole numbers of each row: the slope in the upper half, the curvature in the lower one."""
    a, b = np.float32(by), np.float32(of)
    for i in range(packed.size):
        g = np.int32(np.rint(slope[i] * a)) * repeats[i]
        h = np.int32(np.rint(curvature[i] * b)) * repeats[i]
        packed[i] = (np.int64(g) << 32) + np.int64(h)


@inner
def _count(
    codes: Array, columns: Array, q: int, block: int, order: Array, moved: Array, first: int, last: int, room: Array
) -> None:
    """Add the whole numbers of the rows from `first` to `last` to their bins, in `block` columns from the q-th."""
    low, high = np.uint64(first), np.uint64(last)
    one = moved[0]
    if moved.shape[0] == 1:
        if block == 4:
            c0, c1, c2, c3 = codes[columns[q]], codes[columns[q + 1]], codes[columns[q + 2]], codes[columns[q + 3]]
            r0, r1, r2, r3 = room[0, 0], room[1, 0], room[2, 0], room[3, 0]
            for k in range(low, high):
                i, v = order[k], one[k]
                r0[c0[i]] += v
                r1[c1[i]] += v
                r2[c2[i]] += v
                r3[c3[i]] += v
            return
        for m in range(block):
            c0, r0 = codes[columns[q + m]], room[m, 0]
            for k in range(low, high):
                r0[c0[order[k]]] += one[k]
        return
    other = moved[1]
    for m in range(0, block - 1, 2):
        c0, c1 = codes[columns[q + m]], codes[columns[q + m + 1]]
        r0, r1, r2, r3 = room[m, 0], room[m, 1], room[m + 1, 0], room[m + 1, 1]
        for k in range(low, high):
            i, v, w = order[k], one[k], other[k]
            r0[c0[i]] += v
            r1[c0[i]] += w
            r2[c1[i]] += v
            r3[c1[i]] += w
    if block % 2:
        c0, r0, r1 = codes[columns[q + block - 1]], room[block - 1, 0], room[block - 1, 1]
        for k in range(low, high):
            r0[c0[order[k]]] += one[k]
            r1[c0[order[k]]] += other[k]


@inner
def _add_gains(
    sums: Array, bins: int, slope_unit: float, unit: float, ridge: float, run: Array, below: Array, gains: Array
) -> None:
    """Add the gain of each cut of one cell to `gains`. sums: of the cell, output by bin."""
    halves = run.view(np.int32)  # in turn: curvature, slope
    total = np.int64(0)
    for b in range(bins):
        total += sums[0, b]
        run[b] = total
    every = halves[2 * bins - 2] * unit
    if every <= 0.0:
        return
    for b in range(bins - 1):
        below[b] = halves[2 * b] * unit
    for s in range(sums.shape[0]):
        if s:
            total = np.int64(0)
            for b in range(bins):
                total += sums[s, b]
                run[b] = total
        whole = halves[2 * bins - 1] * slope_unit
        each = whole * whole / (every + ridge)
        for b in range(bins - 1):
            left, low, high = halves[2 * b + 1] * slope_unit, below[b] + ridge, every - below[b] + ridge
            right = whole - left
            gains[b] += (left * left * high + right * right * low) / (low * high) - each
    for b in range(bins - 1):
        gains[b] += GAIN_OF_A_ROW * min(below[b], every - below[b])


@compile_kernel
def search_table(
    codes: Array,
    bins: Array,
    columns: Array,
    many: int,
    units: Array,
    ridge: float,
    scratch: GrowthScratch,
    tests: Array,
) -> int:
    """Find the tests of a table for `many` rows; return their number.

    Each test is the column and cut with the largest gain over all cells. Only the smaller half of each cell is counted.
    """
    _, _, order, moved, sums, room, run, below, gains, first, _, _ = scratch
    depth, wide, outputs = int(tests.shape[0]), columns.size, moved.shape[1]
    slope_unit, unit = 1.0 / units[0], 1.0 / units[1]
    side = 0
    first[0], first[1] = 0, many
    for level in range(depth):
        for q in range(wide):
            for b in range(gains.shape[1]):
                gains[q, b] = 0.0
        for c in range(max((1 << level) >> 1, 1) - 1, -1, -1):
            start, middle, end = first[2 * c], first[2 * c + 1], first[2 * c + 2]
            smaller = 0 if level == 0 or middle - start <= end - middle else 1
            low, high = (start, middle) if smaller == 0 else (middle, end)
            for q in range(0, wide, 4):
                block = min(4, wide - q)
                for m in range(block):
                    for s in range(outputs):
                        part = room[m, s]
                        for b in range(bins[columns[q + m]]):
                            part[b] = 0
                _count(codes, columns, q, block, order[side], moved[side], low, high, room)
                for m in range(block):
                    size = bins[columns[q + m]]
                    for s in range(outputs):
                        part, whole = room[m, s], sums[c, q + m, s]
                        if level == 0:
                            for b in range(size):
                                whole[b] = part[b]
                            continue
                        rest = room[4, s]
                        for b in range(size):
                            rest[b] = whole[b] - part[b]
                        if level + 1 < depth:
                            here, there = sums[2 * c + smaller, q + m, s], sums[2 * c + 1 - smaller, q + m, s]
                            for b in range(size):
                                here[b] = part[b]
                                there[b] = rest[b]
                    if high > low:
                        _add_gains(room[m], size, slope_unit, unit, ridge, run, below, gains[q + m])
                    if level and end - start > high - low:
                        _add_gains(room[4], size, slope_unit, unit, ridge, run, below, gains[q + m])
        best_gain, best_column, best_bin = 0.0, -1, 0
        for q in range(wide):
            for b in range(bins[columns[q]] - 1):
                if gains[q, b] > best_gain * EQUAL_GAINS:
                    best_gain, best_column, best_bin = gains[q, b], columns[q], b
        if best_column < 0:
            return level
        tests[level, 0], tests[level, 1] = best_column, best_bin
        if level + 1 == depth:
            return depth
        code, cut = codes[best_column], np.uint8(best_bin)
        here, there, held, put = order[side], order[1 - side], moved[side, 0], moved[1 - side, 0]
        held_too, put_too = moved[side, outputs - 1], moved[1 - side, outputs - 1]
        for c in range((1 << level) - 1, -1, -1):
            start, end = first[c], first[c + 1]
            left, right = np.uint64(start), np.uint64(end - 1)
            one = np.uint64(1)
            if outputs == 1:
                for k in range(np.uint64(start), np.uint64(end)):
                    i = here[k]
                    above = np.uint64(code[i] > cut)
                    place = right if above else left
                    there[place] = i
                    put[place] = held[k]
                    left += one - above
                    right -= above
            else:
                for k in range(np.uint64(start), np.uint64(end)):
                    i = here[k]
                    above = np.uint64(code[i] > cut)
                    place = right if above else left
                    there[place] = i
                    put[place] = held[k]
                    put_too[place] = held_too[k]
                    left += one - above
                    right -= above
            first[2 * c + 2], first[2 * c + 1] = end, np.int64(left)
        side = 1 - side
    return depth


@inner
def _find_cells(codes: Array, tests: Array, depth: int, cell: Array) -> None:
    """Fill the cell of each row in a table."""
    for i in range(cell.size):
        cell[i] = 0
    for level in range(depth):
        code, cut = codes[tests[level, 0]], np.uint8(tests[level, 1])
        for i in range(cell.size):
            cell[i] = np.uint8(2 * cell[i] + (1 if code[i] > cut else 0))


@inner
def _sum_cells(cell: Array, packed: Array, held: Array, totals: Array) -> None:
    """Add up the whole numbers of the rows to learn from by cell.

    Neighbors go to two places, so that they need not wait for each other.
    """
    for part in range(2):
        first, last = (0, held[0]) if part == 0 else (held[1], cell.size)
        for k in range(np.uint64(first), np.uint64(max(last - 1, first)), np.uint64(2)):
            totals[0, cell[k]] += packed[k]
            totals[1, cell[k + np.uint64(1)]] += packed[k + np.uint64(1)]
        if (last - first) % 2:
            totals[0, cell[last - 1]] += packed[last - 1]


@inner
def _steps(totals: Array, cells: int, units: Array, more: float, ridge: float, rate: float, values: Array) -> None:
    """Fill the value of each cell, a damped Newton step, and clear the totals. more: factor of the curvature."""
    for c in range(cells):
        total = totals[0, c] + totals[1, c]
        slope, curvature = np.float64(total >> 32) / units[0], np.float64(total & 0xFFFFFFFF) / units[1]
        values[c] = rate * min(max(slope / (more * curvature + ridge), -MAX_STEP), MAX_STEP)
        totals[0, c], totals[1, c] = 0, 0


@inner_to_reorder
def _bound_slopes(labels: Array, repeats: Array, weight: Array, p: Array, k: int) -> tuple[float, float]:
    """Return the absolute sums of the slopes of one class, and of their curvatures, held-out rows included."""
    slopes, curvatures = np.float32(0.0), np.float32(0.0)
    for i in range(p.size):
        own = np.float32(1.0) if labels[i] == k else np.float32(0.0)
        slopes += weight[i] * np.float32(repeats[i]) * abs(own - p[i])
        curvatures += weight[i] * np.float32(repeats[i]) * p[i]
    return float(slopes), float(curvatures)


@inner
def _pack_class(labels: Array, repeats: Array, weight: Array, p: Array, k: int, units: Array, packed: Array) -> None:
    """Fill the whole numbers of each row for one class, as `_pack` does."""
    a, b = np.float32(units[0]), np.float32(units[1])
    for i in range(packed.size):
        own = np.float32(1.0) if labels[i] == k else np.float32(0.0)
        g = np.int32(np.rint(weight[i] * (own - p[i]) * a)) * repeats[i]
        h = np.int32(np.rint(weight[i] * p[i] * (np.float32(1.0) - p[i]) * b)) * repeats[i]
        packed[i] = (np.int64(g) << 32) + np.int64(h)


@inner
def _multiply(posterior: Array, factor: Array, cell: Array, total: Array) -> None:
    """Multiply the posterior of each class by the factor of the row's cell, and normalize. total: scratch space."""
    classes, size = posterior.shape
    for first in range(0, size, CHUNK_ROWS):
        last = min(first + CHUNK_ROWS, size)
        for i in range(first, last):
            total[i] = np.float32(0.0)
        for k in range(classes):
            p, by = posterior[k], factor[k]
            for i in range(first, last):
                p[i] *= by[cell[i]]
                total[i] += p[i]
        for i in range(first, last):
            total[i] = np.float32(1.0) / total[i]
        for k in range(classes):
            p = posterior[k]
            for i in range(first, last):
                p[i] = max(p[i] * total[i], np.float32(MIN_ODDS))


@inner
def _list_rows(rows: GrowthRows, order: Array) -> int:
    """List the rows to learn from; return their number."""
    many = 0
    for i in range(rows.repeats.size):
        if (i < rows.held[0] or i >= rows.held[1]) and rows.repeats[i] > 0:
            order[many] = i
            many += 1
    return many


@compile_kernel
def pack_two_classes(rows: GrowthRows, lead: int, scratch: GrowthScratch, units: Array) -> int:
    """Fill the whole numbers of each row, of both series, and list the rows with those of the series `lead`.

    Return the number of rows. units: how many whole numbers make a slope and a curvature of one, by series.
    """
    _, labels, repeats, weight, posterior, _ = rows
    slope, curvature, order = scratch.slopes[0], scratch.slopes[1], scratch.order[0]
    for s in range(2):
        a, b = _two_class_slopes(labels, repeats, weight, posterior[s, 0], slope, curvature)
        units[s, 0], units[s, 1] = _units(a), _units(b)
        _pack(slope, curvature, repeats, units[s, 0], units[s, 1], scratch.packed[s])
    many, leading, moved = _list_rows(rows, order), scratch.packed[lead], scratch.moved[0, 0]
    for k in range(np.uint64(many)):
        moved[k] = leading[order[k]]
    return many


@compile_kernel
def step_two_classes(
    rows: GrowthRows,
    tests: Array,
    depth: int,
    ridge: float,
    rate: float,
    scratch: GrowthScratch,
    units: Array,
    values: Array,
) -> None:
    """Fill the values of a table, cell by series, and update the odds of all rows."""
    cell, totals = scratch.cell, scratch.totals
    _find_cells(rows.codes, tests, depth, cell)
    factor = np.empty(1 << depth, dtype=np.float32)
    for s in range(2):
        _sum_cells(cell, scratch.packed[s], rows.held, totals)
        _steps(totals, 1 << depth, units[s], 1.0, ridge, rate, values[:, s, 0])
        for c in range(1 << depth):
            factor[c] = np.exp(values[c, s, 0])
        odds = rows.posterior[s, 0]
        for i in range(odds.size):
            odds[i] = min(max(odds[i] * factor[cell[i]], np.float32(MIN_ODDS)), np.float32(MAX_ODDS))


@compile_kernel
def pack_mixtures(rows: GrowthRows, lead: int, mix: Array, scratch: GrowthScratch, units: Array) -> int:
    """Fill the whole numbers of each row for two mixtures of classes, and list the rows with them.

    As `pack_two_classes`, for more classes and one series. mix: class by mixture.
    """
    slopes, packed, order, moved = scratch.slopes, scratch.packed, scratch.order[0], scratch.moved[0]
    a, b = _class_slopes(rows, lead, mix, slopes)
    units[0, 0], units[0, 1] = _units(a), _units(b)
    _pack(slopes[0], slopes[2], rows.repeats, units[0, 0], units[0, 1], packed[0])
    _pack(slopes[1], slopes[2], rows.repeats, units[0, 0], 0.0, packed[1])
    many = _list_rows(rows, order)
    for s in range(2):
        put, whole = moved[s], packed[s]
        for k in range(np.uint64(many)):
            put[k] = whole[order[k]]
    return many


@compile_kernel
def step_classes(
    rows: GrowthRows,
    tests: Array,
    depth: int,
    ridge: float,
    rate: float,
    scratch: GrowthScratch,
    units: Array,
    values: Array,
) -> None:
    """Fill the values of a table, cell by series by class, and update the posteriors of all rows."""
    _, labels, repeats, weight, posterior, held = rows
    cell, totals, packed, unit = scratch.cell, scratch.totals, scratch.packed[0], units[0]
    classes = posterior.shape[1]
    _find_cells(rows.codes, tests, depth, cell)
    factor = np.empty((classes, 1 << depth), dtype=np.float32)
    for s in range(2):
        for k in range(classes):
            a, b = _bound_slopes(labels, repeats, weight, posterior[s, k], k)
            unit[0], unit[1] = _units(a), _units(b)
            _pack_class(labels, repeats, weight, posterior[s, k], k, unit, packed)
            _sum_cells(cell, packed, held, totals)
            _steps(totals, 1 << depth, unit, classes / (classes - 1.0), ridge, rate, values[:, s, k])
            for c in range(1 << depth):
                factor[k, c] = np.exp(values[c, s, k])
        _multiply(posterior[s], factor, cell, scratch.slopes[0])


@compile_kernel
def measure_held_loss(rows: GrowthRows) -> float:
    """Return the loss of the held-out rows by the mean of both series."""
    _, labels, repeats, weight, posterior, held = rows
    loss, classes = 0.0, posterior.shape[1]
    for i in range(held[0], held[1]):
        if classes == 1:
            odds = np.sqrt(np.float64(posterior[0, 0, i]) * np.float64(posterior[1, 0, i]))
            value = np.log1p(1.0 / odds if labels[i] else odds)
        else:
            total = 0.0
            for k in range(classes):
                total += np.sqrt(np.float64(posterior[0, k, i]) * np.float64(posterior[1, k, i]))
            own = np.float64(posterior[0, labels[i], i]) * np.float64(posterior[1, labels[i], i])
            value = np.log(total) - 0.5 * np.log(own)
        loss += np.float64(weight[i]) * repeats[i] * value
    return loss


@compile_kernel
def measure_spread(
    posterior: Array, start: Array, ends: Array, repeats: Array, weight: Array, step: int, logs: Array
) -> tuple[float, float]:
    """Return how much the mean loss of the mean of all members is below the mean of their losses.

    Also return the mean square of the tables' sums in rows that a member has not seen, as a share of that in rows it
    has seen. posterior: member by series by class by row; of two classes, only the odds of the second. start: the same
    before the first table, for any member. ends: member m has not seen the rows from ends[m] to ends[m + 1]. step:
    distance between the rows that are used. logs: scratch space, one number per class. Means are of logarithms; a
    member is the mean of its series.
    """
    members, _, classes, size = posterior.shape
    power, gain, amount = 0.5 / members, 0.0, 0.0
    squares, amounts = np.zeros(2), np.zeros(2)
    for i in range(0, size, step):
        own = np.float64(weight[i]) * repeats[i]
        every, apart = 0.0 if classes > 1 else 1.0, 1.0
        for k in range(classes):
            product = 1.0
            for m in range(members):
                product *= np.float64(posterior[m, 0, k, i]) * np.float64(posterior[m, 1, k, i])
            every += product**power
        for m in range(members):
            total, mean = 0.0 if classes > 1 else 1.0, 0.0
            for k in range(classes):
                product = np.float64(posterior[m, 0, k, i]) * np.float64(posterior[m, 1, k, i])
                total += np.sqrt(product)
                logs[k] = np.log(product / (np.float64(start[0, k, i]) * np.float64(start[1, k, i])))
                mean += logs[k] / classes
            apart *= total
            seen = np.int64(i < ends[m] or i >= ends[m + 1])
            amounts[seen] += own
            for k in range(classes):
                away = logs[k] - mean if classes > 1 else logs[k]
                squares[seen] += own * away * away
        amount += own
        gain += own * (np.log(apart) / members - np.log(every))
    seen_square = squares[1] / max(amounts[1], 1e-300)
    return gain / amount, squares[0] / max(amounts[0], 1e-300) / seen_square if seen_square > 0.0 else 1.0
