"""Scoring with corrections: the values of small tables of cells."""

from deciban.kernels.compiled import Array, compiled


@compiled
def find_cells(codes: Array, tests: Array, t: int, cell: Array) -> None:
    """Fill the cell of each row in table t.

    codes: the bin of each cell, column by row. tests: (column, last bin below the cut) of each table, -1 where there
    is none.
    """
    for i in range(cell.size):
        cell[i] = 0
    for level in range(tests.shape[1]):
        j, cut = tests[t, level, 0], tests[t, level, 1]
        if j < 0:
            break
        for i in range(cell.size):
            cell[i] = 2 * cell[i] + (1 if codes[j, i] > cut else 0)


@compiled
def add_corrections(codes: Array, tests: Array, values: Array, cell: Array, out: Array) -> None:
    """Add the values of the cells of each row in all tables to out[row, class].

    values: table by cell by class. cell: room for a number a row.
    """
    for t in range(tests.shape[0]):
        find_cells(codes, tests, t, cell)
        for i in range(cell.size):
            for k in range(values.shape[2]):
                out[i, k] += values[t, cell[i], k]
