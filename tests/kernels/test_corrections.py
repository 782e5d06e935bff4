"""Tables of corrections: scored and counted as a few lines of NumPy do it."""

import numpy as np
import pytest

from deciban import kernels
from deciban.util.arrays import in_lanes
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


@pytest.mark.parametrize("classes", [2, 3, 5, 13])
def test_values_of_cells_are_added(classes: int) -> None:
    """In the order of the tables, to the bit; a few rows alone as among others."""
    rows, tables = 3 * ROWS, 4 * TABLES - 1
    codes, tests = np.tile(CODES, 3), np.tile(TESTS, (4, 1, 1))[:tables]
    values, out = RNG.normal(size=(tables, 1 << DEPTH, classes)), RNG.normal(size=(rows, classes))
    start, expected = out.copy(), out.copy()
    for t in range(tables):
        expected += values[t][np.tile(cells_of(tests[t]), 3)]
    room = np.empty((4, 256), dtype=np.uint8), np.zeros((256, in_lanes(values).shape[2]))
    kernels.correction_tables.add_corrections(codes, tests, in_lanes(values), *room, out)
    np.testing.assert_array_equal(out, expected)
    for few in (1, 2, 9):
        some = start[:few].copy()
        kernels.correction_tables.add_corrections(codes[:, :few].copy(), tests, in_lanes(values), *room, some)
        np.testing.assert_array_equal(some, expected[:few])


def test_cells_of_a_table_are_found() -> None:
    for t in range(TABLES):
        cell = room()
        kernels.correction_tables.find_cells(CODES, TESTS, t, cell)
        np.testing.assert_array_equal(cell, cells_of(TESTS[t]))


def test_the_effect_of_a_column_is_that_of_making_it_unknown() -> None:
    tests, out = TESTS.copy(), np.zeros(COLUMNS)
    tests[3, 2, 0] = tests[3, 0, 0]  # two questions about one column
    values, weight = RNG.normal(size=(TABLES, 1 << DEPTH, 3)), RNG.random((TABLES, 1 << DEPTH)) + 0.1
    kernels.correction_tables.measure_effects(tests, values, weight, np.empty(3), out)
    expected = np.zeros(COLUMNS)
    for t in range(TABLES):
        asked = tests[t, tests[t, :, 0] >= 0, 0]
        cells = np.arange(1 << asked.size)
        answers = (cells[:, None] >> (asked.size - 1 - np.arange(asked.size))) & 1
        for column in set(asked.tolist()):
            others = answers[:, asked != column]
            alike = (others[:, None] == others).all(axis=2) * weight[t, cells]
            change = values[t, cells] - alike @ values[t, cells] / alike.sum(axis=1, keepdims=True)
            size = np.abs(change - change.mean(axis=1, keepdims=True)).sum(axis=1)
            expected[column] += np.average(size, weights=weight[t, cells])
    np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-15)


def test_weights_of_cells_are_summed() -> None:
    weights, out = RNG.random(ROWS), np.zeros((TABLES, 1 << DEPTH))
    kernels.correction_tables.sum_weights(CODES, TESTS, weights, np.empty(ROWS, dtype=np.uint8), out)
    expected = [np.bincount(cells_of(tests), weights, 1 << DEPTH) for tests in TESTS]
    np.testing.assert_allclose(out, expected, rtol=1e-12)
