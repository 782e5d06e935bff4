"""Corrections as a value: bins of cells, shares of columns, effects."""

from dataclasses import replace
from fractions import Fraction
from itertools import permutations

import numpy as np
import pyarrow as pa
import pytest

from deciban.errors import BadCell
from deciban.model.corrections import (
    MAX_UNITS,
    CorrectedColumn,
    Corrections,
    bins_of,
    cell_shares,
    find_unit,
    merge_equal_tables,
    round_corrections,
    round_to_units,
)
from deciban.sources.open import open_table
from deciban.tables.table import Frame

RNG = np.random.default_rng(3)
COLUMNS = (
    CorrectedColumn(0, cuts=np.array([1.0, 2.5])),
    CorrectedColumn(1, levels=pa.array(["red", "blue"])),
    CorrectedColumn(2, cuts=np.array([0.0])),
)
TABLE = Frame(
    pa.table({"x": [0.5, 1.0, 3.0, None], "color": ["blue", None, "green", "red"], "z": [-1.0, 0.0, None, 5.0]})
)


def corrections(tables: int = 5, classes: int = 3) -> Corrections:
    """Tables of up to three questions, some of which ask of a column twice."""
    tests = np.stack([RNG.integers(0, 3, (tables, 3)), RNG.integers(0, 3, (tables, 3))], axis=2)
    tests[0, 2] = tests[1, 1:] = -1
    values, rows = RNG.normal(size=(tables, 8, classes)), RNG.integers(0, 20, (tables, 8)).astype(float)
    for t in range(tables):
        cells = 1 << int((tests[t, :, 0] >= 0).sum())
        values[t, cells:] = rows[t, cells:] = 0.0
        values[t, :cells] -= np.average(values[t, :cells], axis=0, weights=rows[t, :cells] + 1e-6)
    return Corrections(COLUMNS, tests, values, rows, np.arange(tables) % 2, 2, 3)


def test_cells_have_the_bins_of_their_cuts_and_levels() -> None:
    assert [column.read(TABLE).tolist() for column in COLUMNS] == [[1, 2, 3, 0], [3, 0, 1, 2], [1, 2, 0, 2]]
    assert [column.bins for column in COLUMNS] == [4, 4, 3]
    assert COLUMNS[0].bin_names == ["missing", "below 1", "1 to 2.5", "from 2.5"]
    assert COLUMNS[1].bin_names == ["missing", "others", "red", "blue"]


def test_levels_may_share_bins() -> None:
    places = np.array([[2, 2, 3], [3, 1, 2], [2, 3, 3]], dtype=np.uint8)
    column = CorrectedColumn(0, levels=pa.array(["a", "b", "c"]), places=places)
    table = open_table(pa.table({"x": ["c", None, "b", "z", "a"]}))
    assert column.read(table).tolist() == [3, 0, 2, 1, 2]
    assert [bins.tolist() for bins in column.read_left_out(table, 2)] == [[2, 0, 1, 1, 3], [3, 0, 3, 1, 2]]
    assert column.bins == 4
    assert column.bin_names == ["missing", "others", "a, b", "c"]
    tests = np.array([[[0, 0]], [[0, 1]], [[0, 2]]])
    found = Corrections((column,), tests, RNG.normal(size=(3, 2, 2)), np.ones((3, 2)), np.array([0, 1, 1]), 2, 1)
    separate, same, other = found.separate_levels(), np.zeros((5, 2)), np.zeros((5, 2))
    assert separate.columns[0].read(table).tolist() == [4, 0, 3, 1, 2]
    found.add_to(found.read(table), same)
    separate.add_to(separate.read(table), other)
    np.testing.assert_array_equal(same, other)
    left_out, amounts = np.zeros((5, 2)), np.eye(2)[[0, 1, 1, 0, 1]]
    found.add_left_out(found.read_left_out(table), amounts, left_out)
    for i, fold in enumerate([0, 1, 1, 0, 1]):
        alone, own = np.zeros((1, 2)), found._by_fold[fold]
        own.add_to(column.read_left_out(table, 2)[fold][None, i : i + 1].copy(), alone)
        np.testing.assert_allclose(left_out[i], 2.0 * alone[0], rtol=1e-15)


def test_shares_add_up_to_the_correction() -> None:
    found = corrections(40)
    bins = found.read(TABLE)
    total = np.zeros((4, 3))
    found.add_to(bins, total)
    np.testing.assert_allclose(found.shares(bins).sum(axis=1), total, rtol=0, atol=1e-13)


def test_shares_are_shapley_values_by_enumeration() -> None:
    """The mean over all orders in which columns become known of what each adds to the mean over the rows that agree."""
    found = corrections(6)
    shares = cell_shares(found.tests, found.values, found.rows)
    for t, tests in enumerate(found.tests):
        asked = [int(column) for column in tests[:, 0] if column >= 0]
        cells = range(1 << len(asked))
        rows = found.rows[t] + 1e-6

        def agree(cell: int, other: int, known: tuple[int, ...], asked: list[int] = asked) -> bool:
            bits = [(cell ^ other) >> (len(asked) - 1 - k) & 1 for k in range(len(asked))]
            return not any(bit for bit, column in zip(bits, asked, strict=True) if column in known)

        def mean(cell: int, known: tuple[int, ...], t: int = t, cells: range = cells, rows: np.ndarray = rows):
            here = [other for other in cells if agree(cell, other, known)]
            return np.average(found.values[t, here], axis=0, weights=rows[here])

        for cell in cells:
            players = sorted(set(asked))
            expected = {player: np.zeros(3) for player in players}
            orders = list(permutations(players))
            for order in orders:
                for k, player in enumerate(order):
                    expected[player] += (mean(cell, order[: k + 1]) - mean(cell, order[:k])) / len(orders)
            for player in players:
                np.testing.assert_allclose(shares[t, cell, asked.index(player)], expected[player], atol=1e-6)


def test_left_out_rows_are_corrected_by_the_tables_of_their_fold() -> None:
    found = corrections(6)
    bins, amounts = found.read(TABLE), np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0], [0.5, 0.0]])
    out, parts = np.zeros((4, 3)), [np.zeros((4, 3)), np.zeros((4, 3))]
    found.add_left_out(bins, amounts, out)
    for fold in (0, 1):
        here = found.fold == fold
        one = Corrections(COLUMNS, found.tests[here], found.values[here], found.rows[here], found.fold[here], 2, 3)
        one.add_to(bins, parts[fold])
    expected = [2 * parts[0][0], 2 * parts[1][1], parts[0][2] + parts[1][2], 2 * parts[0][3]]
    np.testing.assert_allclose(out, expected, atol=1e-13)


def test_classes_and_columns_move() -> None:
    found = corrections()
    moved = found.reindex_classes(np.array([2, 0, -1]), 4).reindex_columns([2, 1, 0])
    np.testing.assert_array_equal(moved.values[:, :, 2], found.values[:, :, 0])
    np.testing.assert_array_equal(moved.values[:, :, [1, 3]], 0.0)
    assert [column.column for column in moved.columns] == [2, 1, 0]


def test_the_effect_of_the_only_column_of_a_table_is_its_value() -> None:
    tests, values = np.array([[[0, 1], [0, 0]]]), RNG.normal(size=(1, 4, 2))
    found = Corrections(COLUMNS, tests, values, np.array([[3.0, 1.0, 2.0, 5.0]]), np.zeros(1, dtype=int), 2, 3)
    # bins 0, 1, 2, 3: above the cut at 1? above that at 0?
    np.testing.assert_allclose(found.column_effect(0), values[0, [0, 1, 3, 3]], atol=1e-6)
    np.testing.assert_array_equal(found.column_effect(1), 0.0)
    assert found.importance[1] == 0.0 < found.importance[0]
    assert found.cells == 4
    assert found.top_column_sets(2, 5) == []
    assert corrections(30).top_column_sets(2, 1)[0] in {(0, 1), (0, 2), (1, 2)}


@pytest.mark.parametrize("classes", [2, 5])
def test_importance_is_a_share_of_each_column(classes: int) -> None:
    found = corrections(20, classes)
    assert found.importance.shape == (3,)
    assert (found.importance > 0.0).all()


def test_the_unit_is_the_largest_power_of_two_of_which_all_are_multiples() -> None:
    for scale in (1e-3, 1.0, 1e5):
        numbers = round_to_units(scale * RNG.normal(size=40), 3000)
        unit = find_unit(numbers)
        shares = [Fraction(number) / Fraction(unit) for number in numbers.tolist()]
        assert all(share.denominator == 1 for share in shares)
        assert any(share.numerator % 2 for share in shares)
    assert find_unit(np.zeros(3)) == 1.0
    assert find_unit(np.array([5e-324])) == 5e-324


def test_numbers_are_rounded_to_the_smallest_unit_that_fits() -> None:
    numbers = RNG.normal(size=100)
    found = round_to_units(numbers, MAX_UNITS)
    largest, unit = np.abs(numbers).max(), find_unit(found)
    assert largest / unit <= MAX_UNITS < largest / (unit / 2.0)
    assert np.abs(found - numbers).max() <= unit / 2.0
    exact = np.array([-32767.0, 5.0, 0.0, -0.2])
    assert round_to_units(exact, MAX_UNITS).tolist() == [-32767.0, 5.0, 0.0, 0.0]
    assert not np.signbit(round_to_units(exact, MAX_UNITS)[3])


def test_rounded_corrections_are_units_and_add_up_exactly_in_any_order() -> None:
    found = corrections(30)
    found = replace(found, rows=found.rows + 0.1)
    rounded = round_corrections(found)
    units = rounded.values / rounded.unit
    np.testing.assert_array_equal(units, np.rint(units))
    assert np.abs(units).max() <= MAX_UNITS
    np.testing.assert_allclose(rounded.values, found.values, rtol=0, atol=rounded.unit / 2.0)
    np.testing.assert_array_equal(rounded.rows, np.where(found.used_cells, found.rows.astype(np.float32), 0.0))
    np.testing.assert_array_equal(round_corrections(rounded).values, rounded.values)
    bins, one, other = found.read(TABLE), np.zeros((4, 3)), np.zeros((4, 3))
    rounded.add_to(bins, one)
    rounded._some(np.arange(30) >= 12).add_to(bins, other)
    rounded._some(np.arange(30) < 12).add_to(bins, other)
    np.testing.assert_array_equal(one, other)


def same_questions() -> Corrections:
    """Twelve tables twice: as they are, and in the next fold with questions in another order and other values."""
    found = corrections(60)
    distinct = [len({*map(tuple, asked)}) == len(asked) for asked in (t[t[:, 0] >= 0] for t in found.tests)]
    found, again = found._some(np.isin(np.arange(60), np.flatnonzero(distinct)[:12])), []
    for tests, values, rows in zip(found.tests, found.values, found.rows, strict=True):
        used = int((tests[:, 0] >= 0).sum())
        order, cells = RNG.permutation(used), np.arange(1 << used).reshape((2,) * used)
        place = cells.transpose(order).ravel()
        tests, rows = tests.copy(), rows.copy()
        tests[:used], rows[: 1 << used] = tests[order], rows[place]
        again.append((tests, RNG.permuted(values, axis=0) * (np.arange(len(values)) < 1 << used)[:, None], rows))
    tests, values, rows = (np.stack([one[k] for one in again]) for k in range(3))
    return replace(
        found,
        tests=np.concatenate([found.tests, tests]),
        values=np.concatenate([found.values, values]),
        rows=np.concatenate([found.rows, rows]),
        fold=np.concatenate([found.fold, (found.fold + 1) % 2]),
    )


def test_tables_that_ask_the_same_questions_are_added_up() -> None:
    """Corrections of whole and partial rows, and shares of columns, stay as they were."""
    twice = round_corrections(same_questions())
    merged = merge_equal_tables(twice, across_folds=True)
    assert 12 <= len(merged.tests) <= 14  # two tables with random rows may ask the same
    bins = twice.read(TABLE)
    for unknown in (None, np.asarray(bins == 0)):
        found, expected = np.zeros((4, 3)), np.zeros((4, 3))
        merged.add_to(bins, found, unknown)
        twice.add_to(bins, expected, unknown)
        np.testing.assert_allclose(found, expected, rtol=0, atol=0.0 if unknown is None else 1e-12)
        np.testing.assert_allclose(merged.shares(bins, unknown), twice.shares(bins, unknown), rtol=0, atol=1e-12)


def test_tables_of_different_folds_or_different_rows_stay_apart() -> None:
    twice = same_questions()
    merged = merge_equal_tables(twice)
    bins, amounts = twice.read(TABLE), np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0], [0.5, 0.0]])
    found, expected = np.zeros((4, 3)), np.zeros((4, 3))
    merged.add_left_out(bins, amounts, found)
    twice.add_left_out(bins, amounts, expected)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    one = twice._some(np.isin(np.arange(24), [3, 15]))
    assert len(merge_equal_tables(one).tests) == 2
    assert len(merge_equal_tables(one, across_folds=True).tests) == 1
    other = replace(one, rows=one.rows + np.arange(2)[:, None])
    assert len(merge_equal_tables(other, across_folds=True).tests) == 2


def test_bins_of_mixed_columns_in_any_order() -> None:
    """Numbers by the cuts not above them, categories by their levels; a bad cell names its column."""
    columns = [
        CorrectedColumn(3, cuts=np.array([0.5, 2.0])),
        CorrectedColumn(1, levels=pa.array(["b", "a"])),
        CorrectedColumn(0, cuts=np.array([-1.0])),
    ]
    cells = {"w": [-2, -1, None], "x": ["a", None, "z"], "y": ["u", "v", "w"], "z": [2.0, np.nan, 0.4]}
    expected = [[3, 0, 1], [3, 0, 1], [1, 2, 0]]
    assert bins_of(columns, Frame(pa.table(cells))).tolist() == expected
    assert [column.read(Frame(pa.table(cells))).tolist() for column in columns] == expected
    assert bins_of(columns, Frame(pa.table(cells).slice(0, 0))).shape == (3, 0)
    with pytest.raises(BadCell) as raised:
        bins_of(columns, Frame(pa.table(cells | {"z": ["one", "2", "3"]})))
    assert raised.value.column == 3
