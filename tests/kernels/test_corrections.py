"""Tables of corrections: scored, counted and grown as a few lines of NumPy do it."""

import numpy as np
import pytest
from scipy.special import log_softmax, softmax

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


def gain(cell: np.ndarray, slopes: np.ndarray, curvature: np.ndarray, ridge: float) -> float:
    """Sum over cells of |slopes|² / (curvature + ridge)."""
    size = cell.max() + 1
    below = np.bincount(cell, curvature, size) + ridge
    return sum(float((np.bincount(cell, slope, size) ** 2 / below).sum()) for slope in slopes.T)


def room_to_search(classes: int, rows: int, columns: int, bins: int) -> kernels.correction_tables.TableSearch:
    slopes, cells = (2 if classes == 2 else classes + 1), 1 << DEPTH
    return kernels.correction_tables.TableSearch(
        slopes=np.empty((rows, slopes)),
        posterior=np.empty((rows, classes)),
        cell=np.empty(rows, dtype=np.int32),
        searched=np.empty(rows, dtype=np.int32),
        some=np.empty(rows, dtype=np.int32),
        listed=np.empty((rows, slopes)),
        place=np.empty(rows, dtype=np.int32),
        sums=np.empty((columns, cells // 2 * bins * slopes)),
        half=np.empty(cells // 4 * bins * slopes),
        below=np.empty((slopes, bins)),
        gains=np.empty(bins),
        smaller=np.empty(cells, dtype=np.int64),
        curvature=np.empty((cells, classes)),
    )


def one_table(codes: np.ndarray, labels: np.ndarray, bins: np.ndarray) -> np.ndarray:
    """The tests of a table grown on rows of two classes."""
    columns, size = codes.shape
    rows = kernels.correction_tables.CorrectedRows(codes, labels, np.ones(size), np.zeros(size), np.zeros((size, 2)))
    grown = kernels.correction_tables.GrownTables(np.full((1, DEPTH, 2), -1), np.zeros((1, 1 << DEPTH, 2)), np.empty(1))
    search = room_to_search(2, size, columns, int(bins.max()))
    kernels.correction_tables.learn_corrections(
        rows, bins, np.arange(columns)[None], np.eye(2)[None], 1.0, 0.2, search, grown
    )
    return grown.tests[0]


def test_a_first_cut_is_made_where_only_two_together_tell() -> None:
    """In a table of exclusive or no cut gains anything by itself."""
    bits = np.array([[0, 0, 1, 1], [0, 1, 0, 1]]).repeat(50, axis=1)
    tests = one_table((1 + bits).astype(np.uint8), np.array([0, 1, 1, 0]).repeat(50), np.full(2, 3))
    assert sorted(tests[:2].tolist()) == [[0, 1], [1, 1]]


@pytest.mark.parametrize("classes", [2, 4])
def test_a_table_is_the_best_by_brute_force(classes: int) -> None:
    """Each test is the cut that gains most over all cells, each value a damped step of Newton's for its cell."""
    labels = RNG.integers(0, classes, ROWS)
    learned = np.where(RNG.random(ROWS) < 0.8, RNG.integers(1, 3, ROWS), 0).astype(float)
    held, ridge, rate = np.where(learned == 0.0, 1.0, 0.0), 0.7, 0.3
    start = RNG.normal(size=(ROWS, classes))
    search = room_to_search(classes, ROWS, COLUMNS, BINS)
    rows = kernels.correction_tables.CorrectedRows(CODES, labels, learned, held, start.copy())
    grown = kernels.correction_tables.GrownTables(
        np.full((2, DEPTH, 2), -1), np.zeros((2, 1 << DEPTH, classes)), np.empty(2)
    )
    columns, mix = np.tile(np.arange(COLUMNS), (2, 1)), np.tile(np.eye(classes), (2, 1, 1))
    kernels.correction_tables.learn_corrections(rows, np.full(COLUMNS, BINS), columns, mix, ridge, rate, search, grown)
    scores = start.copy()
    for r in range(2):
        posterior = softmax(scores, axis=1)
        assert grown.losses[r] == pytest.approx(-held @ log_softmax(scores, axis=1)[np.arange(ROWS), labels])
        by_class = learned[:, None] * (np.eye(classes)[labels] - posterior)
        bend = learned[:, None] * posterior * (1.0 - posterior)
        shown = by_class[:, 1:] if classes == 2 else by_class
        total = bend[:, 1] if classes == 2 else bend.sum(axis=1) * (classes - 1) / classes
        cell = np.zeros(ROWS, dtype=int)
        for level in range(DEPTH):
            gains = {
                (j, b): gain(2 * cell + (CODES[j] > b), shown, total, ridge)
                for j in range(COLUMNS)
                for b in range(BINS - 1)
            }
            column, cut = max(gains, key=gains.__getitem__)
            assert grown.tests[r, level].tolist() == [column, cut]
            cell = 2 * cell + (CODES[column] > cut)
        step = np.stack([np.bincount(cell, slope, 1 << DEPTH) for slope in by_class.T], axis=1)
        below = np.stack([np.bincount(cell, one, 1 << DEPTH) for one in bend.T], axis=1)
        scale = 0.5 if classes == 2 else 1.0
        values = scale * rate * step / ((1.0 if classes == 2 else classes / (classes - 1)) * below + ridge)
        np.testing.assert_allclose(grown.values[r], values, rtol=1e-9, atol=1e-12)
        scores += values[cell]
    np.testing.assert_allclose(rows.scores, scores, rtol=1e-9)
