"""Correction tables that adjust the sum of evidence in a tuned model.

A table asks up to six yes-or-no questions about a row (is this column above that cut?), which lead to one of its cells.
Each cell has a value per class, learned on left-out rows. The sum of these values can be split exactly into
contributions of columns.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, pairwise
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from deciban import kernels
from deciban.errors import BadCell
from deciban.statistics.bins import Cuts
from deciban.statistics.levels import encode
from deciban.tables.table import Readable, Table
from deciban.util.arrays import Codes, Flags, Floats, Integers, PickledFields, in_lanes, scatter_to
from deciban.util.text_tables import count_noun, format_number, list_some

# Bin of a missing cell.
MISSING_BIN = 0

# Bin of a category that is not a known level.
OTHER_BIN = 1

# Bin of each code of a category, from -2 (not a known level) and -1 (missing) on.
BIN_OF_CODE = np.array([OTHER_BIN, MISSING_BIN, *range(2, 256)], dtype=np.uint8)

# Weight added to each cell of a table when its values are averaged, so that no cell is empty.
CELL_PRIOR_WEIGHT = 1e-6

# Values are at most this many units, so that model files and exports hold them as integers of 16 bits.
MAX_UNITS = 32767

# Number of rows corrected together: their bins and cells stay in the fastest cache.
CORRECTED_ROWS = 512

Bins = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class CorrectedColumn:
    """A column split into bins, with bin 0 for missing cells.

    cuts: increasing numbers; a number has the bin 1 + the number of cuts not above it. levels: categories; a category
    has the bin 2 + its index, or 1 if it is not a known level. places: the bin of each level, if levels share bins: not
    decreasing in the first line, by all rows; then, for each fold, by the rows of the other folds.
    """

    column: int
    cuts: Floats | None = None
    levels: pa.Array | None = None
    places: Bins | None = None

    @property
    def bins(self) -> int:
        """Number of bins."""
        if self.places is not None:
            return 1 + int(self.places.max(initial=OTHER_BIN))
        return 2 + int(len(self.levels) if self.cuts is None else self.cuts.size)  # type: ignore[arg-type]  # one is there

    @property
    def bin_names(self) -> list[str]:
        """Readable name of each bin."""
        if self.cuts is None:
            assert self.levels is not None, "a column has cuts or levels"
            names = [str(level) for level in self.levels.to_pylist()]
            if self.places is not None:
                own = [np.flatnonzero(self.places[0] == place).tolist() for place in range(2, self.bins)]
                names = [list_some([names[k] for k in some], 3) for some in own]
            return ["missing", "others", *names]
        edges = [format_number(cut) for cut in self.cuts.tolist()]
        if not edges:
            return ["missing", "present"]
        between = [f"{low} to {high}" for low, high in pairwise(edges)]
        return ["missing", f"below {edges[0]}", *between, f"from {edges[-1]}"]

    def read(self, table: Table) -> Bins:
        """Return the bin of each cell."""
        return np.asarray(bins_of([self], table)[0])

    def encode(self, table: Readable) -> Codes:
        """Return the index of each category among the levels; -1 for a missing cell, -2 for any other."""
        cells = table.values([self.column])
        array = cells[0] if isinstance(cells, list) else pa.array(cells[:, 0], from_pandas=True)
        return encode(array, self.levels, self.column)

    def find_bins(self, codes: Codes, line: int = 0) -> Bins:
        """Return the bins of encoded categories, by a line of `places`."""
        if self.places is None:
            return BIN_OF_CODE.take(2 + codes)
        return np.concatenate([BIN_OF_CODE[:2], self.places[line]]).take(2 + codes)

    def read_left_out(self, table: Table, folds: int) -> list[Bins]:
        """Return the bin of each cell by the rows outside of each fold."""
        if self.places is None:
            return [self.read(table)] * folds
        codes = self.encode(table)
        return [self.find_bins(codes, 1 + fold) for fold in range(folds)]


@dataclass(frozen=True)
class BinReader:
    """Reader of the bins of several columns: those of all numeric columns in one pass.

    numeric: the numeric columns, increasing. place: their positions among all columns. cuts: of the numeric columns.
    others: position and categorical column.
    """

    width: int
    numeric: tuple[int, ...]
    place: Integers
    cuts: Cuts
    others: tuple[tuple[int, CorrectedColumn], ...]

    @classmethod
    def of(cls, columns: Sequence[CorrectedColumn]) -> "BinReader":
        numeric = sorted((one.column, place, one.cuts) for place, one in enumerate(columns) if one.cuts is not None)
        return cls(
            width=len(columns),
            numeric=tuple(column for column, _, _ in numeric),
            place=np.array([place for _, place, _ in numeric], dtype=np.int64),
            cuts=Cuts.of([own for _, _, own in numeric]),
            others=tuple((place, one) for place, one in enumerate(columns) if one.cuts is None),
        )

    def read(self, table: Table) -> Bins:
        """Return the bin of each cell, column by row; raise BadCell, with the column of the table, for other cells."""
        bins = np.empty((self.width, table.rows), dtype=np.uint8)
        if self.numeric:
            try:
                numbers = table.numbers(self.numeric)
            except BadCell as bad:
                bad.column = self.numeric[bad.column]
                raise
            bins[self.place] = self.cuts.find_bins(numbers)
        for place, column in self.others:
            bins[place] = column.find_bins(column.encode(table))
        return bins


@dataclass(frozen=True, repr=False)
class Corrections(PickledFields):
    """Correction tables, whose values are added to the log joint.

    columns: the columns used in the tables, in bins. tests: (column, last bin below the cut) per table and question, -1
    for unused questions. values: table by cell by class; their mean over the training rows is 0. Learned values are
    multiples of `unit` (`round_corrections`), so their sum is exact in any order. rows: the weight of the training
    rows, table by cell. fold: for each table, the fold that was left out when it was learned. folds: number of folds.
    hashed: the number of leading columns whose cells determine the fold of a row.
    """

    columns: tuple[CorrectedColumn, ...]
    tests: Integers
    values: Floats
    rows: Floats
    fold: Integers
    folds: int
    hashed: int

    def __repr__(self) -> str:
        columns = count_noun(len(self.columns), "column")
        return f"<Corrections in {count_noun(len(self.tests), 'table')} of {columns}>"

    def read(self, table: Table) -> Bins:
        """Return the bin of each cell of a table, column by row."""
        return self._reader.read(table)

    @cached_property
    def _reader(self) -> BinReader:
        return BinReader.of(self.columns)

    @cached_property
    def _lanes(self) -> Floats:
        return in_lanes(self.values)

    def read_left_out(self, table: Table) -> Bins:
        """Return the bins for `add_left_out`: as `read` does, or fold by column by row if they depend on the fold."""
        if all(one.places is None for one in self.columns):
            return self.read(table)
        by_column = [one.read_left_out(table, self.folds) for one in self.columns]
        return np.stack([np.stack(by_fold) for by_fold in zip(*by_column, strict=True)])

    def add_to(self, bins: Bins, out: Floats, unknown: Flags | None = None) -> None:
        """Add the corrections of each row to out[row, class].

        unknown: flags of unknown cells, column by row. Tables are averaged over unknown columns: the value is the mean
        of the cells that agree with the row in the known columns, weighted by their training rows.
        """
        whole, partial = _partition_rows(unknown)
        if whole is None:
            _add_values(bins, self.tests, self._lanes, out)
            return
        part = out[whole]
        _add_values(np.ascontiguousarray(bins[:, whole]), self.tests, self._lanes, part)
        out[whole] = part  # added one by one, so that a single row gives the same bits
        assert unknown is not None, "some cells are"
        holed, part = np.ascontiguousarray(unknown[:, partial]), np.zeros((partial.size, out.shape[1]))
        mean, codes = np.empty(self.values.shape[1:]), np.ascontiguousarray(bins[:, partial])
        kernels.correction_tables.add_partial_corrections(
            codes, holed, self.tests, self.values, self._cell_weights, mean, part
        )
        out[partial] += part

    def add_left_out(self, bins: Bins, amounts: Floats, out: Floats, unknown: Flags | None = None) -> None:
        """Add to out[row, class] the corrections from tables that were learned without the row.

        bins: of `read_left_out`. amounts: the share of each row in each fold, row by fold.
        """
        total = amounts.sum(axis=1)
        for fold in range(self.folds):
            here, own = np.flatnonzero(amounts[:, fold]), self._by_fold[fold]
            part = np.zeros((here.size, out.shape[1]))
            holes = None if unknown is None else unknown[:, here]
            own_bins = bins if bins.ndim == 2 else bins[fold]
            own.add_to(np.ascontiguousarray(own_bins[:, here]), part, holes)
            out[here] += (self.folds * amounts[here, fold] / total[here])[:, None] * part

    @cached_property
    def _by_fold(self) -> "list[Corrections]":
        """The tables that were learned without each fold."""
        return [self._some(self.fold == fold) for fold in range(self.folds)]

    def select_column(self, place: int) -> "Corrections":
        """Return the tables that use a column."""
        return self._some((self.tests[:, :, 0] == place).any(axis=1))

    def _some(self, own: Flags) -> "Corrections":
        return replace(self, tests=self.tests[own], values=self.values[own], rows=self.rows[own], fold=self.fold[own])

    def shares(self, bins: Bins, unknown: Flags | None = None) -> Floats:
        """Return the share of each column in the correction of each row, row by column by class."""
        out = np.zeros((bins.shape[1], len(self.columns), self.values.shape[2]))
        whole, partial = _partition_rows(unknown)
        whole = np.arange(bins.shape[1]) if whole is None else whole
        part = np.zeros((*out.shape[1:], whole.size))  # rows last, so that they are contiguous
        for t, cell in enumerate(cells_of(np.ascontiguousarray(bins[:, whole]), self.tests)):
            found = self._cell_shares[t].transpose(1, 2, 0).take(cell, axis=2)
            for level, column in enumerate(self.tests[t, :, 0].tolist()):
                if column >= 0:
                    part[column] += found[level]
        out[whole] = part.transpose(2, 0, 1)
        if partial.size:
            assert unknown is not None, "some cells are"
            holed, part = np.ascontiguousarray(unknown[:, partial]), np.zeros((partial.size, *out.shape[1:]))
            room, codes = np.empty((self.values.shape[1], 1 + out.shape[2])), np.ascontiguousarray(bins[:, partial])
            kernels.correction_tables.add_partial_shares(
                codes, holed, self.tests, self.values, self._cell_weights, room, part
            )
            out[partial] = part
        return out

    @cached_property
    def _cell_weights(self) -> Floats:
        """Weight of each cell when a table is averaged, table by cell."""
        return np.asarray(self.rows + CELL_PRIOR_WEIGHT)

    @cached_property
    def _cell_shares(self) -> Floats:
        """Share of each test in the value of each cell, table by cell by test by class."""
        return cell_shares(self.tests, self.values, self.rows)

    def separate_levels(self) -> "Corrections":
        """Return the same corrections with a bin for each level, also if that is too many for a byte."""
        tests = self.tests.copy()
        for k, one in enumerate(self.columns):
            if one.places is not None:
                here = (tests[:, :, 0] == k) & (tests[:, :, 1] >= OTHER_BIN)
                tests[here, 1] = OTHER_BIN + np.searchsorted(one.places[0], tests[here, 1], side="right")
        return replace(self, columns=tuple(replace(one, places=None) for one in self.columns), tests=tests)

    def average_tables(self) -> "list[AveragedTable]":
        """Return each table with its means over unknown columns."""
        return [
            _average_table(tests, values, weight)
            for tests, values, weight in zip(self.tests, self.values, self._cell_weights, strict=True)
        ]

    def reindex_classes(self, positions: Integers, size: int) -> "Corrections":
        """Return the same with classes moved to other positions among `size`; new classes are not corrected."""
        return replace(self, values=scatter_to(self.values, positions, size, axis=2))

    def reindex_columns(self, positions: Sequence[int]) -> "Corrections":
        """Return the same with the columns of the table moved to these positions."""
        return replace(self, columns=tuple(replace(one, column=positions[one.column]) for one in self.columns))

    @cached_property
    def unit(self) -> float:
        """Largest power of two of which all values are multiples; 1 if all are 0."""
        return find_unit(self.values)

    @property
    def questions(self) -> Integers:
        """Number of questions of each table."""
        return np.asarray((self.tests[:, :, 0] >= 0).sum(axis=1))

    @property
    def used_cells(self) -> Flags:
        """Flags of the cells that the questions lead to, table by cell."""
        return np.asarray(np.arange(self.values.shape[1]) < (1 << self.questions)[:, None])

    @property
    def cells(self) -> int:
        """Number of cells in all tables."""
        return int((1 << self.questions).sum())

    @cached_property
    def importance(self) -> Floats:
        """Mean absolute effect of each column on the log-odds, in nats.

        The effect of a column in a table is the difference between the value of a cell and the mean of the cells that
        differ in this column only, averaged over the training rows. The effects in all tables are summed.
        """
        found, mean = np.zeros(len(self.columns)), np.empty(self.values.shape[2])
        kernels.correction_tables.measure_effects(self.tests, self.values, self._cell_weights, mean, found)
        return found

    def top_column_sets(self, size: int, max_sets: int) -> list[tuple[int, ...]]:
        """Return the sets of `size` columns that tables use jointly, at most `max_sets`, by decreasing effect."""
        found: dict[tuple[int, ...], float] = {}
        weight = self.rows / np.maximum(self.rows.sum(axis=1, keepdims=True), CELL_PRIOR_WEIGHT)
        moved = np.einsum("tc,tck->t", weight, np.abs(self.values))
        for tests, movement in zip(self.tests, moved.tolist(), strict=True):
            for one in combinations(sorted({int(j) for j in tests[:, 0] if j >= 0}), size):
                found[one] = found.get(one, 0.0) + movement
        best = sorted(found, key=lambda columns: (-found[columns], columns))[:max_sets]
        return [tuple(self.columns[place].column for place in one) for one in best]

    def column_effect(self, place: int) -> Floats:
        """Return the mean effect of each bin of one column, averaged over the others: bin by class, in nats."""
        out = np.zeros((self.columns[place].bins, self.values.shape[2]))
        bins = np.arange(len(out))
        for tests, values, rows in zip(self.tests, self.values, self.rows, strict=True):
            depth = int((tests[:, 0] >= 0).sum())
            own = np.flatnonzero(tests[:depth, 0] == place)
            if own.size:
                shape = (2,) * depth
                weight = (rows[: 1 << depth] + CELL_PRIOR_WEIGHT).reshape(shape)
                others = tuple(k for k in range(depth) if k not in own)
                weighted = (weight[..., None] * values[: 1 << depth].reshape(*shape, -1)).sum(axis=others)
                mean = weighted / weight.sum(axis=others)[..., None]
                out += mean[tuple((bins > tests[k, 1]).astype(np.int64) for k in own)]
        return out


@dataclass(frozen=True)
class AveragedTable:
    """A correction table that also has values for unknown columns.

    columns: indices of the columns it uses. cuts: for each column, the last bins below its cuts, increasing. values:
    one axis per column, then classes. Index 0 is unknown; index 1 + k is beyond k cuts.
    """

    columns: tuple[int, ...]
    cuts: tuple[tuple[int, ...], ...]
    values: Floats

    def shares(self) -> dict[int, Floats]:
        """Return the Shapley value of each column; 0 if the column is unknown."""
        places = range(len(self.columns))
        means = {}
        for size in range(len(self.columns) + 1):
            for known in combinations(places, size):
                means[known] = self.values[tuple(slice(None) if k in known else slice(1) for k in places)]
        found = {}
        for place, column in enumerate(self.columns):
            share = np.zeros_like(self.values)
            for known, mean in means.items():
                if place not in known:
                    gain = means[tuple(sorted((*known, place)))] - mean
                    share += gain / (len(self.columns) * comb(len(self.columns) - 1, len(known)))
            found[column] = share
        return found


def _average_table(tests: Integers, values: Floats, weight: Floats) -> AveragedTable:
    """Return a table with its means over unknown columns, weighted by its cells."""
    asked = [(int(column), int(cut)) for column, cut in tests if column >= 0]
    cells, left = 1 << len(asked), [column for column, _ in asked]
    sums = np.concatenate([weight[:cells, None], weight[:cells, None] * values[:cells]], axis=1)
    sums = sums.reshape(*(2,) * len(asked), -1)
    columns = tuple(dict.fromkeys(left))
    cuts = tuple(tuple(sorted({cut for other, cut in asked if other == column})) for column in columns)
    for column, own in zip(columns, cuts, strict=True):
        tested = [cut for other, cut in asked if other == column]
        axes = tuple(k for k, other in enumerate(left) if other == column)
        answers = [sums.sum(axis=axes)]
        for beyond in range(len(own) + 1):
            index: list[Any] = [slice(None)] * sums.ndim
            for axis, cut in zip(axes, tested, strict=True):
                index[axis] = int(beyond > own.index(cut))
            answers.append(sums[tuple(index)])
        sums = np.stack(answers, axis=-2)
        left = [other for other in left if other != column]
    mean = sums[..., 1:] / sums[..., :1]
    if columns:
        mean[(0,) * len(columns)] = 0.0
    return AveragedTable(columns, cuts, mean)


def _partition_rows(unknown: Flags | None) -> tuple[Integers | None, Integers]:
    """Return the rows with only known cells (None if all rows are), and the other rows."""
    if unknown is None or not unknown.any():
        return None, np.zeros(0, dtype=np.int64)
    partial = unknown.any(axis=0)
    return np.flatnonzero(~partial), np.flatnonzero(partial)


def find_unit(values: Floats) -> float:
    """Return the largest power of two of which all finite numbers are multiples; 1 if all are 0.

    >>> find_unit(np.array([0.75, -2.0, 0.0]))
    0.25
    """
    mantissa, exponent = np.frexp(values[values != 0.0])
    digits = (np.abs(mantissa) * 2.0**53).astype(np.int64)
    last = np.frexp((digits & -digits).astype(np.float64))[1] - 1  # place of the last binary digit
    return float(np.ldexp(1.0, int((exponent - 53 + last).min()))) if digits.size else 1.0


def round_to_units(values: Floats, max_units: int) -> Floats:
    """Return numbers rounded to multiples of the smallest power of two that makes them at most `max_units` of it."""
    mantissa, exponent = np.frexp(float(np.abs(values).max(initial=0.0)) / max_units)
    unit = np.ldexp(1.0, int(exponent) - int(mantissa == 0.5))
    return np.asarray(np.rint(values / unit) * unit + 0.0)  # no -0.0


def round_corrections(corrections: Corrections) -> Corrections:
    """Return the same with values and weights that a model file holds in few bytes, without further rounding.

    Values become multiples of a power of two, at most `MAX_UNITS` of it, and 0 in unused cells. Weights that are not
    all whole numbers are rounded to single precision.
    """
    rows, used = corrections.rows, corrections.used_cells
    if not np.array_equal(rows, np.rint(rows)):
        rows = rows.astype(np.float32).astype(np.float64)
    values = np.where(used[:, :, None], corrections.values, 0.0)
    return replace(corrections, values=round_to_units(values, MAX_UNITS), rows=np.where(used, rows, 0.0))


def merge_equal_tables(corrections: Corrections, across_folds: bool = False) -> Corrections:
    """Return the same corrections with tables that ask the same questions added up.

    They have the same training rows in each cell, so that means over unknown columns and shares of columns add up too.
    across_folds: also merge tables of different folds, if left-out corrections are not needed.
    """
    tests = corrections.tests
    asked = np.where(tests[:, :, 0] >= 0, 512 * tests[:, :, 0] + tests[:, :, 1], np.iinfo(np.int64).max)
    order = np.argsort(asked, axis=1, kind="stable")
    key = np.take_along_axis(asked, order, axis=1)
    if not across_folds:
        key = np.column_stack([key, corrections.fold])
    _, first, group = np.unique(key, axis=0, return_index=True, return_inverse=True)
    leader, kept = first[group.ravel()], np.ones(len(tests), dtype=np.bool_)
    values, rows = corrections.values.copy(), corrections.rows
    for t in np.flatnonzero(leader != np.arange(len(tests))).tolist():
        lead, used = int(leader[t]), int((tests[t, :, 0] >= 0).sum())
        axes = order[t, np.argsort(order[lead])][:used]  # the same questions, in the order of the leading table
        cell = np.arange(1 << used).reshape((2,) * used).transpose(*axes).ravel()
        if np.array_equal(rows[t, cell], rows[lead, : 1 << used]):
            values[lead, : 1 << used] += values[t, cell]
            kept[t] = False
    return replace(corrections, values=values)._some(kept)


def bins_of(columns: Sequence[CorrectedColumn], table: Table) -> Bins:
    """Return the bin of each cell, column by row."""
    return BinReader.of(columns).read(table)


def _add_values(bins: Bins, tests: Integers, values: Floats, out: Floats) -> None:
    """Add table values, with classes in lanes, to out[row, class]."""
    rows = min(max(len(out), 1), CORRECTED_ROWS)
    cell = np.empty((kernels.correction_tables.TABLES_AT_ONCE, rows), dtype=np.uint8)
    total = np.zeros((rows, values.shape[2]))
    kernels.correction_tables.add_corrections(bins, tests, values, cell, total, out)


def cells_of(bins: Bins, tests: Integers) -> Iterator[Integers]:
    """Yield the cell of each row for each table, reusing one array."""
    cell = np.empty(bins.shape[1], dtype=np.int64)
    for t in range(len(tests)):
        kernels.correction_tables.find_cells(bins, tests, t, cell)
        yield cell


def cell_shares(tests: Integers, values: Floats, rows: Floats) -> Floats:
    """Return the Shapley value of each column in each cell of each table, at the first test of the column.

    The value of a set of columns is the mean of the table over the rows that agree with the cell in these columns.
    """
    tables, depth, _ = tests.shape
    shares = np.zeros((tables, values.shape[1], depth, values.shape[2]))
    patterns, pattern = np.unique(_players(tests), axis=0, return_inverse=True)
    for p, players in enumerate(patterns):
        here = np.flatnonzero(pattern.ravel() == p)
        levels = int((players >= 0).sum())
        cells = 1 << levels
        found = _shapley(players[:levels], values[here, :cells], rows[here, :cells])
        for level, share in found.items():
            shares[here, :cells, level] = share
    return shares


def _players(tests: Integers) -> Integers:
    """Return for each test the first test of the same column; -1 for unused tests."""
    asked = tests[:, :, 0]
    first = (asked[:, :, None] == asked[:, None, :]).argmax(axis=2)
    return np.where(asked >= 0, first, -1)


def _shapley(players: Integers, values: Floats, rows: Floats) -> dict[int, Floats]:
    """Return the Shapley value of each player in each cell of tables whose tests have the same players."""
    tables, cells, classes = values.shape
    shape = (tables, *(2,) * players.size, classes)
    weight = np.broadcast_to((rows + CELL_PRIOR_WEIGHT)[:, :, None], values.shape).reshape(shape)
    weighted = weight * values.reshape(shape)
    names = sorted(set(players.tolist()))
    means = {}
    for size in range(len(names) + 1):
        for known in combinations(names, size):
            axes = tuple(1 + k for k, player in enumerate(players.tolist()) if player not in known)
            mean = weighted.sum(axis=axes, keepdims=True) / weight.sum(axis=axes, keepdims=True)
            means[known] = np.broadcast_to(mean if known else 0.0 * mean, shape)
    found = {}
    for player in names:
        share = np.zeros(shape)
        for known, mean in means.items():
            if player not in known:
                with_it = means[tuple(sorted((*known, player)))]
                share += (with_it - mean) / (len(names) * comb(len(names) - 1, len(known)))
        found[player] = share.reshape(tables, cells, classes)
    return found
