"""Scoring with correction tables."""

import numpy as np

from deciban.kernels.compiled import Array, compile_kernel
from deciban.kernels.instructions import STEP, no_lanes, plus_scaled, put_lanes

# Up to this many rows, cells are found row by row.
MAX_SINGLE_ROWS = 8

# Tables whose values are added at once, so that sums stay in registers.
TABLES_AT_ONCE = 4


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
def sum_weights(codes: Array, tests: Array, weights: Array, cell: Array, out: Array) -> None:
    """Add the weight of each row to its cell in all tables, out[table, cell]. cell: scratch space, one byte per row.

    Neighbors go to four places, so that they need not wait for each other.
    """
    room = np.empty((4, out.shape[1]))
    for t in range(tests.shape[0]):
        for i in range(cell.size):
            cell[i] = 0
        for level in range(tests.shape[1]):
            if tests[t, level, 0] < 0:
                break
            code, cut = codes[tests[t, level, 0]], np.uint8(tests[t, level, 1])
            for i in range(cell.size):
                cell[i] = np.uint8(2 * cell[i] + (1 if code[i] > cut else 0))
        room[:, :] = 0.0
        whole = cell.size // 4 * 4
        for i in range(np.uint64(0), np.uint64(whole), np.uint64(4)):
            for m in range(np.uint64(4)):
                room[m, cell[i + m]] += weights[i + m]
        for i in range(whole, cell.size):
            room[0, cell[i]] += weights[i]
        for c in range(out.shape[1]):
            out[t, c] += (room[0, c] + room[1, c]) + (room[2, c] + room[3, c])


@compile_kernel
def add_partial_corrections(
    codes: Array, unknown: Array, tests: Array, values: Array, weight: Array, mean: Array, out: Array
) -> None:
    """Add the mean value of the cells that agree with the known columns of each row to out[row, class], for all tables.

    unknown: flags of unknown cells, column by row. weight: weight of each cell, table by cell. mean: scratch space,
    cell by class, for the means of a table, which rows with the same unknown columns share. A table without known
    columns adds nothing.
    """
    averaged = np.empty(mean.shape[0], dtype=np.int64)  # the questions over which a mean was taken
    for t in range(tests.shape[0]):
        averaged[:] = 0
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
            if averaged[cell] != free:
                averaged[cell] = free
                total, some = 0.0, free
                for k in range(mean.shape[1]):
                    mean[cell, k] = 0.0
                while True:
                    amount = weight[t, cell + some]
                    total += amount
                    for k in range(mean.shape[1]):
                        mean[cell, k] += amount * values[t, cell + some, k]
                    if some == 0:
                        break
                    some = (some - 1) & free
                for k in range(mean.shape[1]):
                    mean[cell, k] /= total
            for k in range(mean.shape[1]):
                out[i, k] += mean[cell, k]


@compile_kernel
def measure_effects(tests: Array, values: Array, weight: Array, mean: Array, out: Array) -> None:
    """Add the mean absolute effect of each column on the log-odds in all tables to out[column].

    The effect is the difference between the value of a cell and the mean of the cells that differ in this column only.
    weight: weight of each cell, table by cell. mean: scratch space, one number per class.
    """
    classes = mean.size
    for t in range(tests.shape[0]):
        levels = 0
        while levels < tests.shape[1] and tests[t, levels, 0] >= 0:
            levels += 1
        total = 0.0
        for cell in range(1 << levels):
            total += weight[t, cell]
        for level in range(levels):
            j, own = tests[t, level, 0], 0
            for other in range(levels):
                if tests[t, other, 0] == j:
                    if other < level:
                        own = 0  # counted at its first question
                        break
                    own |= 1 << (levels - 1 - other)
            if own == 0:
                continue
            effect = 0.0
            for cell in range(1 << levels):
                if cell & own:
                    continue
                amount, some = 0.0, own
                mean[:] = 0.0
                while True:
                    amount += weight[t, cell + some]
                    for k in range(classes):
                        mean[k] += weight[t, cell + some] * values[t, cell + some, k]
                    if some == 0:
                        break
                    some = (some - 1) & own
                some = own
                while True:
                    middle = 0.0
                    for k in range(classes):
                        middle += (values[t, cell + some, k] - mean[k] / amount) / classes
                    size = 0.0
                    for k in range(classes):
                        size += abs(values[t, cell + some, k] - mean[k] / amount - middle)
                    effect += weight[t, cell + some] * size
                    if some == 0:
                        break
                    some = (some - 1) & own
            out[j] += effect / total


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
