"""Correction tables: scoring with them and learning them.

Tables are grown one after another, as in gradient boosting.
"""

from typing import NamedTuple

import numpy as np

from deciban.kernels.compiled import Array, compile_kernel, inner
from deciban.kernels.instructions import STEP, no_lanes, plus_scaled, put_lanes

# Up to this many rows, cells are found row by row.
MAX_SINGLE_ROWS = 8

# Tables whose values are added at once, so that sums stay in registers.
TABLES_AT_ONCE = 4

# A cut must be better by this factor to be preferred, so that rounding does not decide between equal cuts.
EQUAL_GAINS = 1.0 + 1e-9

# Gain per row on the smaller side of a cut. It allows a first cut if only two columns together are informative.
GAIN_OF_A_ROW = 1e-9


@compile_kernel
def find_cells(codes: Array, tests: Array, t: int, cell: Array) -> None:
    """Fill the cell of each row in table t.

    codes: the bin of each cell, column by row. tests: (column, last bin below the cut) of each table, -1 for unused
    tests.
    """
    for i in range(cell.size):
        cell[i] = 0
    for level in range(tests.shape[1]):
        j, cut = tests[t, level, 0], tests[t, level, 1]
        if j < 0:
            break
        for i in range(cell.size):
            cell[i] = 2 * cell[i] + (1 if codes[j, i] > cut else 0)


@compile_kernel
def add_corrections(codes: Array, tests: Array, values: Array, cell: Array, total: Array, out: Array) -> None:
    """Add the values of the cells of each row in all tables to out[row, class], in the order of the tables.

    codes: the bin of each cell, column by row. values: table by cell by class, in lanes. It works by tiles of rows.
    cell [table, row] of bytes and total [row, class] in lanes are scratch space for a tile and TABLES_AT_ONCE tables.
    """
    cells, width = np.uint64(values.shape[1]), np.uint64(values.shape[2])
    for start in range(0, out.shape[0], total.shape[0]):
        rows = total.shape[0] if out.shape[0] - start > total.shape[0] else out.shape[0] - start
        for i in range(rows):
            for k in range(out.shape[1]):
                total[i, k] = out[start + i, k]
        t = 0
        while t < tests.shape[0]:
            many = TABLES_AT_ONCE if t + TABLES_AT_ONCE <= tests.shape[0] else 1
            for s in range(many):
                if rows <= MAX_SINGLE_ROWS:
                    for i in range(rows):
                        found = 0
                        for level in range(tests.shape[1]):
                            j = tests[t + s, level, 0]
                            if j < 0:
                                break
                            found = 2 * found + (1 if codes[j, start + i] > tests[t + s, level, 1] else 0)
                        cell[s, i] = found
                    continue
                for i in range(np.uint64(rows)):
                    cell[s, i] = 0
                for level in range(tests.shape[1]):
                    j, cut = tests[t + s, level, 0], np.uint8(tests[t + s, level, 1])
                    if j < 0:
                        break
                    for i in range(np.uint64(rows)):  # in bytes and without signs, so that it becomes vectors
                        above = np.uint8(1) if codes[j, np.uint64(start) + i] > cut else np.uint8(0)
                        cell[s, i] = np.uint8((cell[s, i] << np.uint8(1)) | above)
            place = np.uint64(0)
            while place < width:
                for i in range(np.uint64(rows)):
                    here = i * width + place
                    a = plus_scaled(no_lanes(), 1.0, total, here)
                    if many == 1:
                        first = np.uint64(t) * cells + np.uint64(cell[0, i])
                        a = plus_scaled(a, 1.0, values, first * width + place)
                    else:
                        for s in range(TABLES_AT_ONCE):  # a constant number, so that the loop is unrolled
                            first = np.uint64(t + s) * cells + np.uint64(cell[s, i])
                            a = plus_scaled(a, 1.0, values, first * width + place)
                    put_lanes(a, total, here)
                place += STEP
            t += many
        for i in range(rows):
            for k in range(out.shape[1]):
                out[start + i, k] = total[i, k]


@compile_kernel
def add_partial_corrections(
    codes: Array, unknown: Array, tests: Array, values: Array, weight: Array, mean: Array, out: Array
) -> None:
    """Add the mean value of the cells that agree with the known columns of each row to out[row, class], for all tables.

    unknown: flags of unknown cells, column by row. weight: weight of each cell, table by cell. mean: scratch space, one
    number per class. A table without known columns adds nothing.
    """
    for t in range(tests.shape[0]):
        for i in range(codes.shape[1]):
            cell, free, asked = 0, 0, 0
            for level in range(tests.shape[1]):
                j, cut = tests[t, level, 0], tests[t, level, 1]
                if j < 0:
                    break
                cell, free, asked = 2 * cell, 2 * free, 2 * asked + 1
                if unknown[j, i]:
                    free += 1
                elif codes[j, i] > cut:
                    cell += 1
            if free == asked and asked:
                continue
            if free == 0:
                for k in range(values.shape[2]):
                    out[i, k] += values[t, cell, k]
                continue
            total, some = 0.0, free
            for k in range(mean.size):
                mean[k] = 0.0
            while True:
                amount = weight[t, cell + some]
                total += amount
                for k in range(mean.size):
                    mean[k] += amount * values[t, cell + some, k]
                if some == 0:
                    break
                some = (some - 1) & free
            for k in range(mean.size):
                out[i, k] += mean[k] / total


@compile_kernel
def add_partial_shares(
    codes: Array, unknown: Array, tests: Array, values: Array, weight: Array, room: Array, out: Array
) -> None:
    """Add the Shapley value of each known column, in all tables, to out[row, column, class].

    The value of a set of columns is the mean of the cells that agree with the row in them. room: scratch space (cell, 1
    + class).
    """
    depth, classes = tests.shape[1], values.shape[2]
    place, bits = np.empty(depth, dtype=np.int64), np.empty(depth, dtype=np.int64)
    for t in range(tests.shape[0]):
        for i in range(codes.shape[1]):
            levels, cell, players = 0, 0, 0
            while levels < depth and tests[t, levels, 0] >= 0:
                levels += 1
            for level in range(levels):
                j, cut = tests[t, level, 0], tests[t, level, 1]
                if unknown[j, i]:
                    continue
                bit = 1 << (levels - 1 - level)
                if codes[j, i] > cut:
                    cell += bit
                p = 0
                while p < players and place[p] != j:
                    p += 1
                if p == players:
                    place[p], bits[p] = j, 0
                    players += 1
                bits[p] |= bit
            cells = 1 << levels
            for differs in range(cells):
                amount = weight[t, cell ^ differs]
                room[differs, 0] = amount
                for k in range(classes):
                    room[differs, 1 + k] = amount * values[t, cell ^ differs, k]
            for level in range(levels):
                bit = 1 << level
                for differs in range(cells):
                    if differs & bit:
                        for k in range(1 + classes):
                            room[differs, k] += room[differs ^ bit, k]
            for some in range(1 << players):
                known, size = 0, 0
                for p in range(players):
                    if some & (1 << p):
                        known |= bits[p]
                        size += 1
                ways = 1.0  # players * the number of sets of this size among the others
                for n in range(size):
                    ways = ways * (players - 1 - n) / (n + 1)
                for p in range(players):
                    if some & (1 << p):
                        continue
                    without, with_it = cells - 1 - known, cells - 1 - (known | bits[p])
                    for k in range(classes):
                        before = room[without, 1 + k] / room[without, 0] if known else 0.0
                        gain = room[with_it, 1 + k] / room[with_it, 0] - before
                        out[i, place[p], k] += gain / (players * ways)


class CorrectedRows(NamedTuple):
    """Rows to learn from.

    codes: the bin of each cell, column by row. labels: the class of each row. learned, held: weight of each row for
    learning and for evaluation. scores: the current log joint, row by class.
    """

    codes: Array
    labels: Array
    learned: Array
    held: Array
    scores: Array


class TableSearch(NamedTuple):
    """Scratch space for growing one table. There is one slope per row for two classes, else one per mixture.

    slopes: derivative of the log-likelihood of each row by output, and its curvature last. posterior: row by class.
    cell: of each row. searched: the rows that count. some, listed, place: rows to add next, their slopes, and where the
    slopes of their cells start in `half`. sums: slopes by column, cell, bin and output. half: the same for one column
    and the smaller half of each cell. below: cumulative sums over bins, by output. gains: of each cut. smaller: the
    half of each cell with fewer rows. curvature: by cell and class.
    """

    slopes: Array
    posterior: Array
    cell: Array
    searched: Array
    some: Array
    listed: Array
    place: Array
    sums: Array
    half: Array
    below: Array
    gains: Array
    smaller: Array
    curvature: Array


class GrownTables(NamedTuple):
    """Tables of some rounds.

    Each has its tests (column, last bin below the cut), -1 for unused tests, the values of its cells by class, and the
    loss of the held-out rows before it was added.
    """

    tests: Array
    values: Array
    losses: Array


@inner
def _two_class_slopes(labels: Array, learned: Array, held: Array, scores: Array, slopes: Array) -> float:
    """Fill the slope and curvature of each row in the log-odds of the second class; return the held-out loss."""
    loss = 0.0
    for i in range(labels.size):
        odds = scores[i, 1] - scores[i, 0]
        p = 1.0 / (1.0 + np.exp(-odds))
        if held[i] > 0.0:
            wrong = odds if labels[i] == 0 else -odds
            loss += held[i] * (max(wrong, 0.0) + np.log1p(np.exp(-abs(wrong))))
        slopes[i, 0], slopes[i, 1] = learned[i] * (labels[i] - p), learned[i] * p * (1.0 - p)
    return loss


@inner
def _class_slopes(
    labels: Array, learned: Array, held: Array, scores: Array, mix: Array, r: int, slopes: Array, posterior: Array
) -> float:
    """Fill the slopes of each row for the mixtures of classes, their curvature, and the posterior.

    Return the held-out loss.
    """
    loss, classes, outputs = 0.0, scores.shape[1], mix.shape[2]
    for i in range(labels.size):
        top = scores[i, 0]
        for c in range(1, classes):
            top = max(top, scores[i, c])
        total = 0.0
        for c in range(classes):
            posterior[i, c] = np.exp(scores[i, c] - top)
            total += posterior[i, c]
        if held[i] > 0.0:
            loss += held[i] * (top + np.log(total) - scores[i, labels[i]])
        curvature = 0.0
        for c in range(classes):
            p = posterior[i, c] / total
            posterior[i, c] = p
            curvature += p * (1.0 - p)
        slopes[i, outputs] = learned[i] * curvature * (classes - 1.0) / classes
        for s in range(outputs):
            slope = mix[r, labels[i], s]
            for c in range(classes):
                slope -= posterior[i, c] * mix[r, c, s]
            slopes[i, s] = learned[i] * slope
    return loss


@inner
def _list_all(slopes: Array, cell: Array, searched: Array, listed: Array, place: Array) -> int:
    """Put all rows into the first cell and list those with a slope; return their number."""
    many, outputs = 0, slopes.shape[1]
    for i in range(cell.size):
        cell[i] = 0
        if slopes[i, outputs - 1] > 0.0:
            searched[many], place[many] = i, 0
            for s in range(outputs):
                listed[many, s] = slopes[i, s]
            many += 1
    return many


@inner
def _list_smaller_halves(
    slopes: Array,
    cell: Array,
    searched: Array,
    every: int,
    size: Array,
    cells: int,
    step: int,
    rows: Array,
    listed: Array,
    place: Array,
) -> int:
    """List the rows of the smaller half of each cell; return their number.

    Afterwards `size` holds which half that is.
    """
    for c in range(2 * cells):
        size[c] = 0
    for k in range(every):
        size[cell[searched[k]]] += 1
    for c in range(cells):
        size[c] = 1 if size[2 * c + 1] < size[2 * c] else 0
    many = 0
    for k in range(every):
        i = searched[k]
        c = cell[i]
        if (c & 1) == size[c >> 1]:
            rows[many], place[many] = i, (c >> 1) * step
            for s in range(slopes.shape[1]):
                listed[many, s] = slopes[i, s]
            many += 1
    return many


@inner
def _add_slopes(codes: Array, j: int, rows: Array, listed: Array, place: Array, many: int, out: Array) -> None:
    """Add the slopes of the listed rows to their cells and bins in column j."""
    outputs = listed.shape[1]
    if outputs == 2:
        for r in range(many):
            k = place[r] + 2 * codes[j, rows[r]]
            out[k] += listed[r, 0]
            out[k + 1] += listed[r, 1]
        return
    for r in range(many):
        k = place[r] + outputs * codes[j, rows[r]]
        for s in range(outputs):
            out[k + s] += listed[r, s]


@inner
def _halve_sums(sums: Array, q: int, half: Array, smaller: Array, cells: int, step: int) -> None:
    """Compute the sums of half cells from those of whole cells and of their smaller halves."""
    for c in range(cells - 1, -1, -1):
        here, there = (2 * c + smaller[c]) * step, (2 * c + 1 - smaller[c]) * step
        for k in range(step):
            whole, part = sums[q, c * step + k], half[c * step + k]
            sums[q, here + k] = part
            sums[q, there + k] = whole - part


@inner
def _best_cut(sums: Array, q: int, cells: int, bins: int, ridge: float, below: Array, gains: Array) -> int:
    """Fill the gain of each cut of a column, over all cells; return the best cut."""
    last = below.shape[0] - 1
    for b in range(bins):
        gains[b] = 0.0
    for c in range(cells):
        start = c * gains.size * (last + 1)
        for s in range(last + 1):
            total = 0.0
            for b in range(bins):
                total += sums[q, start + b * (last + 1) + s]
                below[s, b] = total
        all_below = below[last, bins - 1]
        if all_below <= 0.0:
            continue
        for b in range(bins - 1):
            gains[b] += GAIN_OF_A_ROW * max(min(below[last, b], all_below - below[last, b]), 0.0)
        for s in range(last):
            total = below[s, bins - 1]
            whole = total * total / (all_below + ridge)
            for b in range(bins - 1):
                left = below[s, b]
                right = total - left
                above = max(all_below - below[last, b], 0.0) + ridge
                gains[b] += left * left / (below[last, b] + ridge) + right * right / above - whole
    best = 0
    for b in range(1, bins - 1):
        if gains[b] > gains[best] * EQUAL_GAINS:
            best = b
    return best


@inner
def _two_class_steps(cell: Array, slopes: Array, cells: int, r: int, values: Array, curvature: Array) -> None:
    """Fill the values of the cells of table r with their slopes, and the curvature.

    The values of the other class are the opposite.
    """
    for c in range(cells):
        values[r, c, 0], values[r, c, 1], curvature[c, 0] = 0.0, 0.0, 0.0
    for i in range(cell.size):
        values[r, cell[i], 1] += 0.5 * slopes[i, 0]
        curvature[cell[i], 0] += slopes[i, 1]
    for c in range(cells):
        values[r, c, 0], curvature[c, 1] = -values[r, c, 1], curvature[c, 0]


@inner
def _class_steps(
    cell: Array, labels: Array, learned: Array, posterior: Array, cells: int, r: int, values: Array, curvature: Array
) -> None:
    """Fill the values of the cells of table r with their slopes by class, and the curvature."""
    classes = posterior.shape[1]
    for c in range(cells):
        for k in range(classes):
            values[r, c, k], curvature[c, k] = 0.0, 0.0
    for i in range(cell.size):
        c = cell[i]
        for k in range(classes):
            p = posterior[i, k]
            curvature[c, k] += learned[i] * p * (1.0 - p) * classes / (classes - 1.0)
            values[r, c, k] += learned[i] * ((1.0 if k == labels[i] else 0.0) - p)


@compile_kernel
def learn_corrections(
    rows: CorrectedRows,
    bins: Array,
    columns: Array,
    mix: Array,
    ridge: float,
    rate: float,
    search: TableSearch,
    grown: GrownTables,
) -> None:
    """Grow a table for each line of `columns`, the columns it may use; update the scores in place.

    A table is grown test by test: each test is the column and cut with the largest gain over all cells. bins: number of
    bins per column. mix: for more than two classes, the mixtures of slopes to fit, table by class by output. ridge:
    curvature added to each cell. rate: step size.
    """
    codes, labels, learned, held, scores = rows
    slopes, posterior, cell, searched, some, listed, place, sums, half, below, gains, smaller, curvature = search
    tests, values, losses = grown
    classes, depth, step = scores.shape[1], tests.shape[1], gains.size * slopes.shape[1]
    for r in range(columns.shape[0]):
        if classes == 2:
            losses[r] = _two_class_slopes(labels, learned, held, scores, slopes)
        else:
            losses[r] = _class_slopes(labels, learned, held, scores, mix, r, slopes, posterior)
        every = _list_all(slopes, cell, searched, listed, place)
        many, cells = every, 1
        for level in range(depth):
            best_gain, best_column, best_bin = 0.0, -1, 0
            for q in range(columns.shape[1]):
                j = columns[r, q]
                for k in range(max(cells >> 1, 1) * step):
                    half[k] = 0.0
                _add_slopes(codes, j, searched if level == 0 else some, listed, place, many, half)
                if level == 0:
                    for k in range(step):
                        sums[q, k] = half[k]
                else:
                    _halve_sums(sums, q, half, smaller, cells >> 1, step)
                b = _best_cut(sums, q, cells, bins[j], ridge, below, gains)
                if gains[b] > best_gain * EQUAL_GAINS:
                    best_gain, best_column, best_bin = gains[b], j, b
            if best_column < 0:
                break
            tests[r, level, 0], tests[r, level, 1] = best_column, best_bin
            for i in range(cell.size):
                cell[i] = 2 * cell[i] + (1 if codes[best_column, i] > best_bin else 0)
            if level + 1 < depth:
                many = _list_smaller_halves(slopes, cell, searched, every, smaller, cells, step, some, listed, place)
            cells *= 2
        if classes == 2:
            _two_class_steps(cell, slopes, cells, r, values, curvature)
        else:
            _class_steps(cell, labels, learned, posterior, cells, r, values, curvature)
        for c in range(cells):
            for k in range(classes):
                values[r, c, k] *= rate / (curvature[c, k] + ridge)
        for i in range(cell.size):
            for k in range(classes):
                scores[i, k] += values[r, cell[i], k]
