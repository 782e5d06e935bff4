"""Tables of corrections: scored and counted as a few lines of NumPy do it."""

import numpy as np

from deciban import kernels
from tests.kernels.data import RNG

ROWS, COLUMNS, BINS, DEPTH, TABLES = 200, 5, 6, 3, 4
CODES = RNG.integers(0, BINS, (COLUMNS, ROWS)).astype(np.uint8)
TESTS = np.stack([RNG.integers(0, COLUMNS, (TABLES, DEPTH)), RNG.integers(0, BINS - 1, (TABLES, DEPTH))], axis=2)
TESTS[1, 1:] = -1
TESTS[2, :] = -1


def cells_of(tests: np.ndarray) -> np.ndarray:
    """The cell of each row in one table."""
    cell = np.zeros(ROWS, dtype=int)
    for column, cut in tests:
        if column < 0:
            break
        cell = 2 * cell + (CODES[column] > cut)
    return cell


def room() -> np.ndarray:
    return np.empty(ROWS, dtype=np.int64)


def test_values_of_cells_are_added() -> None:
    values, out = RNG.normal(size=(TABLES, 1 << DEPTH, 3)), RNG.normal(size=(ROWS, 3))
    expected = out + sum(values[t][cells_of(TESTS[t])] for t in range(TABLES))
    kernels.correction_tables.add_corrections(CODES, TESTS, values, room(), out)
    np.testing.assert_allclose(out, expected, rtol=1e-12)


def test_cells_of_a_table_are_found() -> None:
    for t in range(TABLES):
        cell = room()
        kernels.correction_tables.find_cells(CODES, TESTS, t, cell)
        np.testing.assert_array_equal(cell, cells_of(TESTS[t]))
