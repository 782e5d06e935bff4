"""A single column: its counts, the values at which to show it, and its evidence if all others are missing.

Plots and reports use these. Values come from the counts: categories, whole numbers, or points on a line.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from deciban.errors import Argument, BadCell, UsageError
from deciban.explain.words import list_top_words
from deciban.families import Likelihood
from deciban.model.counts import Counts
from deciban.model.fitted import Fitted
from deciban.model.intervals import LogOdds
from deciban.model.model import Model
from deciban.schema.schema import ColumnGroup, Schema
from deciban.statistics import Bins, Combined, Levels, Tuples
from deciban.tables.cells import as_numbers, from_numbers, kind_of
from deciban.tables.table import Frame, Table
from deciban.util.arrays import Flags, Floats, sum_columns_at
from deciban.util.text_tables import DECIBANS, format_class, format_number

# Bins are shown no narrower than the range of the column divided by 2 to this power.
DRAWN_BITS = 12

# A density peak of more than this multiple of the usual height is clipped, or it would flatten the curve.
MAX_PEAK_DRAWN = 5.0


@dataclass(frozen=True)
class ColumnCounts:
    """Counts of the values or bins of a column in each class.

    levels: values of a categorical column. low, high: bounds of the bins of a numeric column.
    """

    table: Floats
    levels: pa.Array | None = None
    low: Floats | None = None
    high: Floats | None = None


def find_column_counts(counts: Counts, column: int, by: ColumnGroup | None = None) -> ColumnCounts | None:
    """Return the counts of the values or bins of a column, or None if only sums were counted.

    by: use the group that counts for this group. None: any group of the column.
    """
    host = None if by is None else counts.schema.group_counting(by)
    for p, (group, statistic) in enumerate(zip(counts.schema.groups, counts.statistics, strict=True)):
        if getattr(group.family, "cuts", None) or group.family.part is not None:  # counts of places, not of values
            continue
        if host is not None and p != host[0]:
            continue
        if column in group.columns and (found := _count_place(statistic, group.columns.index(column))) is not None:
            return found
    return None


@singledispatch
def _count_place(statistic: Any, place: int) -> ColumnCounts | None:
    return None


@_count_place.register
def _(statistic: Levels, place: int) -> ColumnCounts | None:
    return ColumnCounts(statistic.tables[place], levels=statistic.levels[place])


@_count_place.register
def _(statistic: Tuples, place: int) -> ColumnCounts | None:
    levels = statistic.levels[place]
    return ColumnCounts(sum_columns_at(statistic.table, statistic.tuples[:, place], len(levels)), levels=levels)


@_count_place.register
def _(statistic: Bins, place: int) -> ColumnCounts | None:
    column = statistic.columns[place]
    reach = np.ptp(column.edges) or np.abs(column.edges).max() if column.edges.size else 1.0
    column = column.coarsen(max(column.exponent, int(np.frexp(reach)[1]) - DRAWN_BITS))
    return ColumnCounts(column.table, low=column.edges, high=column.edges + np.ldexp(1.0, column.exponent))


@_count_place.register
def _(statistic: Combined, place: int) -> ColumnCounts | None:  # type: ignore[type-arg]  # whatever is combined
    return next((found for part in statistic.parts if (found := _count_place(part, place)) is not None), None)


# Points of a curve, enough for a smooth line.
LINE_POINTS = 241

# Landmarks (modes, edges of bins) per point of a curve; with more, landmarks are dropped.
LANDMARKS_PER_POINT = 4

# Numbers with at most this many values are listed as categories.
MAX_LISTED = 24

# Cells drawn per class to estimate the range of a column.
CELLS_DRAWN = 400

# Share of the cells outside the shown range, on either side.
BEYOND = 0.005


@dataclass(frozen=True)
class ColumnValues:
    """Values at which a column is shown, in order.

    kind: categories, whole numbers or continuous numbers. cells: the values as cells of a table. numbers: the values as
    numbers, or None. names: the values as text. dates: True if the numbers are days since 1970.
    """

    column: int
    name: str
    kind: Literal["categories", "whole", "continuous"]
    cells: pa.Array
    numbers: Floats | None
    names: tuple[str, ...]
    dates: bool = False

    @property
    def positions(self) -> Floats:
        """Position of each value on an axis; categories have the positions 0, 1, 2 and so on."""
        if self.kind == "categories" or self.numbers is None:
            return np.arange(float(len(self.cells)))
        return self.numbers


def find_column(fitted: Fitted, column: Any) -> int:
    """Return the position of a column given by name or position; raise a UsageError if there is no such column."""
    schema = fitted.counts.schema
    names = schema.column_names
    if isinstance(column, str) and column in names:
        return names.index(column)
    if isinstance(column, int | np.integer) and not isinstance(column, bool) and -schema.width <= column < schema.width:
        return int(column) % schema.width
    shown = ", ".join(map(repr, names[:12])) + (", …" if len(names) > 12 else "")
    raise UsageError(f"unknown column {column!r}", remedy=f"choose from {shown}")


def get_two_columns(fitted: Fitted, columns: Any, points: int) -> tuple[ColumnValues, ColumnValues]:
    """Return the values of two columns, given by names or positions."""
    if isinstance(columns, str | int) or len(columns) != 2:
        raise UsageError("expected two columns", parameter=Argument("columns", columns))
    first, second = (find_column(fitted, column) for column in columns)
    if first == second:
        raise UsageError("expected two different columns", parameter=Argument("columns", columns))
    return get_column_values(fitted, first, points, even=True), get_column_values(fitted, second, points, even=True)


def get_column_values(
    fitted: Fitted,
    column: int,
    points: int = LINE_POINTS,
    draws: dict[int, list[Any]] | None = None,
    even: bool = False,
) -> ColumnValues:
    """Return the values at which a column is shown; raise a UsageError for texts and empty columns.

    draws: cache of drawn cells, shared between columns. even: equal steps, without modes and edges of bins.
    """
    schema = fitted.counts.schema
    name = schema.column_name(column)
    found = find_group(fitted.generative, column)
    if found is None:
        raise UsageError(f"the column {name!r} has no values", remedy="choose a different column")
    group, likelihood, place = found
    family = group.family
    if family.is_text:
        raise UsageError(f"the column {name!r} holds texts", remedy="choose a different column, or use top_words()")
    learned = dict(enumerate(schema.types or ())).get(column, "")
    own = find_column_counts(fitted.counts, column, group)
    if own is not None and own.levels is not None:
        return _make_level_values(column, name, own.levels)
    try:
        drawn = _draw_cells(likelihood, fitted.classes.size, place, {} if draws is None else draws)
    except BadCell as bad:  # a score is not a distribution
        raise UsageError(f"the column {name!r} cannot be shown: {bad}") from None
    if set(np.unique(drawn).tolist()) <= {0.0, 1.0}:
        flags = pa.array([False, True]) if kind_of(learned) == "BOOLEAN" else pa.array([0, 1])
        return _make_level_values(column, name, flags)
    whole = not family.support.contains(np.array([0.5]))[0]
    inside = find_allowed(fitted.model, column, drawn)
    drawn = np.where(inside, drawn, np.nan) if inside.any(axis=1).all() else drawn
    if whole:
        return _make_number_values(column, name, _make_whole_numbers(drawn, points), "whole", learned)
    low, high = _find_range(drawn) if own is None else _find_counted_range(own)
    line = np.linspace(low, high, points)
    if not even:
        marks = likelihood.curve_points(place)
        marks = marks[(marks > low) & (marks < high)]
        dense = np.nanquantile(drawn, np.linspace(0.01, 0.99, points // (2 * len(drawn))), axis=1).ravel()
        marks = marks if marks.size <= LANDMARKS_PER_POINT * points else marks[:0]
        line = np.unique(np.concatenate([line, marks, dense[(dense > low) & (dense < high)]]))
    return _make_number_values(column, name, line, "continuous", learned)


def find_density_limit(x: Floats, density: Floats) -> float:
    """Return the top of a chart of densities, value by class: their peak, or less if it would flatten the curves."""
    highest = density.max(axis=1)
    order = np.argsort(-highest, kind="stable")
    along = np.cumsum(np.gradient(x)[order]) if x.size > 1 else np.ones(1)
    exceeded = float(highest[order[np.searchsorted(along, 0.05 * along[-1])]])  # over a twentieth of the range
    peak = max(float(highest.max()), 1e-300)
    return min(MAX_PEAK_DRAWN * exceeded, peak) if exceeded > 0.0 else peak


def get_text_words(fitted: Fitted, column: int) -> ColumnValues | None:
    """Return the most characteristic words of each class in a text column; None for other columns."""
    found = find_group(fitted.generative, column)
    if found is None or not found[0].family.is_text:
        return None
    name, each = fitted.counts.schema.column_name(column), max(MAX_LISTED // fitted.classes.size, 2)
    words: dict[str, None] = {}
    for label in range(fitted.classes.size):
        words |= dict.fromkeys(one.word for one in list_top_words(fitted.plain, label, each, name))
    shown = list(words)[:MAX_LISTED]
    return ColumnValues(column, name, "categories", pa.array(shown, pa.string()), None, tuple(shown))


def find_group(model: Model, column: int) -> tuple[ColumnGroup, Likelihood, int] | None:
    """Return the group and likelihood of a column, and its position in the group."""
    for group, likelihood in zip(model.schema.groups, model.likelihoods, strict=True):
        if column in group.columns:
            return group, likelihood, group.columns.index(column)
    return None


def _draw_cells(likelihood: Likelihood, classes: int, place: int, draws: dict[int, list[Any]]) -> Floats:
    """Draw cells of a column from each class, with a fixed seed; class by cell."""
    if id(likelihood) not in draws:
        labels = np.repeat(np.arange(classes), CELLS_DRAWN)
        draws[id(likelihood)] = likelihood.sample(labels, np.random.default_rng(0))
    cells = draws[id(likelihood)][place]
    numbers = cells if isinstance(cells, np.ndarray) else as_numbers(cells)
    return np.asarray(numbers, dtype=np.float64).reshape(classes, CELLS_DRAWN)


def find_allowed(model: Model, column: int, numbers: Floats) -> Flags:
    """Return a mask of the numbers that every family of the column supports; drawn numbers may be negative."""
    inside = np.ones(numbers.shape, dtype=np.bool_)
    for group in model.schema.groups:
        if column in group.columns and not group.family.joint and group.family.part is None:
            inside &= group.family.support.contains(numbers)
    return inside


def _make_level_values(column: int, name: str, levels: pa.Array) -> ColumnValues:
    """Return listed values; many numbers become positions on an axis."""
    number = pa.types.is_integer(levels.type) or pa.types.is_floating(levels.type)
    if number and len(levels) > MAX_LISTED:
        return _make_number_values(column, name, as_numbers(levels), "whole", "")
    names = tuple(
        format_number(value) if isinstance(value, float) else format_class(value) for value in levels.to_pylist()
    )
    return ColumnValues(column, name, "categories", levels, as_numbers(levels) if number else None, names)


def _make_number_values(
    column: int, name: str, numbers: Floats, kind: Literal["whole", "continuous"], learned: str
) -> ColumnValues:
    cells = from_numbers(numbers, learned) if kind_of(learned) in ("TIMESTAMP", "TIME") else pa.array(numbers)
    dates = kind_of(learned) == "TIMESTAMP"
    names = tuple(str(cell) for cell in cells.to_pylist()) if dates else tuple(f"{x:.6g}" for x in numbers)
    return ColumnValues(column, name, kind, cells, numbers, names, dates)


def _find_range(drawn: Floats) -> tuple[float, float]:
    """Return the range of the cells of all classes, except for a few outliers."""
    ends = np.nanquantile(drawn, [BEYOND, 1.0 - BEYOND], axis=1)
    low, high = float(np.nanmin(ends[0])), float(np.nanmax(ends[1]))
    return (low, high) if low < high else (low - 0.5, low + 0.5)


def _find_counted_range(counted: ColumnCounts) -> tuple[float, float]:
    """Return the range of cells that were counted in bins."""
    assert counted.low is not None, "there are bins"
    assert counted.high is not None, "there are bins"
    order = np.argsort(counted.low)
    share = counted.table[:, order] / np.maximum(counted.table.sum(axis=1, keepdims=True), 1e-300)
    along = np.cumsum(share, axis=1)
    first = min(int(np.searchsorted(line, BEYOND)) for line in along)
    last = max(int(np.searchsorted(line, 1.0 - BEYOND)) for line in along)
    return float(counted.low[order[first]]), float(counted.high[order[min(last, order.size - 1)]])


def _make_whole_numbers(drawn: Floats, points: int) -> Floats:
    """Return whole numbers in the range, with steps if there are too many."""
    low, high = np.nanmin(drawn), max(_find_range(drawn)[1], np.nanmin(drawn) + 1.0)
    return np.arange(np.floor(low), np.ceil(high) + 1.0, max(np.ceil((high - low) / points), 1.0))


# Cells scored at once if many columns are scored one by one; bounds the memory.
MAX_CELLS_SCORED = 1 << 22


def make_table(schema: Schema, cells: Mapping[int, pa.Array], rows: int) -> Table:
    """Return rows in which only the given columns (by position) have values."""
    columns = [cells.get(column, pa.nulls(rows)) for column in range(schema.width)]
    return schema.table_as_learned(
        Frame(pa.Table.from_arrays(columns, names=list(schema.column_names)), schema.names is not None)
    )


def compute_values_log_joint(model: Model, columns: Sequence[ColumnValues]) -> Floats:
    """Return log P(cells, class) at every combination of values; the last column changes fastest."""
    sizes = [len(column.cells) for column in columns]
    places = np.indices(sizes).reshape(len(sizes), -1) if sizes else np.zeros((0, 1), dtype=np.int64)
    cells = {one.column: one.cells.take(pa.array(place)) for one, place in zip(columns, places, strict=True)}
    return model.log_joint(make_table(model.schema, cells, places.shape[1]))


def compute_evidence_alone(model: Model, columns: Sequence[ColumnValues], against: int | None = None) -> Floats:
    """Return the evidence of the values of some columns for each class, in decibans, with all other columns missing.

    The evidence is the change of the log-odds of a class against all others, or against the class `against`.
    """
    there, nothing = compute_values_log_joint(model, columns), compute_values_log_joint(model, ())
    with np.errstate(invalid="ignore"):  # a single class has no odds
        return _replace_nan(DECIBANS * (compute_log_odds(there, against) - compute_log_odds(nothing, against)))


def compute_evidence_of_each(model: Model, columns: Sequence[ColumnValues], against: int | None = None) -> list[Floats]:
    """Return the evidence of each column separately; many columns are scored in one table."""
    nothing = compute_log_odds(compute_values_log_joint(model, ()), against)
    with np.errstate(invalid="ignore"):
        return [
            _replace_nan(DECIBANS * (compute_log_odds(joint, against) - nothing))
            for joint in _compute_log_joint_of_each(model, columns)
        ]


def compute_density_of_each(generative: Model, columns: Sequence[ColumnValues]) -> list[Floats]:
    """Return P(value | class), or its density, for each column separately; 0 for a value without evidence."""
    nothing = compute_values_log_joint(generative, ())
    found = []
    for joint in _compute_log_joint_of_each(generative, columns):
        with np.errstate(invalid="ignore", over="ignore"):
            log_density = _replace_nan(joint - nothing)
            unseen = (log_density == 0.0).all(axis=1, keepdims=True)
            found.append(np.where(unseen, 0.0, np.exp(log_density)))
    return found


def _compute_log_joint_of_each(model: Model, columns: Sequence[ColumnValues]) -> Iterator[Floats]:
    """Yield log P(value, class) of each column separately, scored in one table with the values one below the other."""
    for some in _batch_columns(columns, max(MAX_CELLS_SCORED // max(model.schema.width, 1), 1)):
        ends = np.cumsum([len(one.cells) for one in some])
        cells = {
            one.column: _pad_cells(one.cells, int(end), int(ends[-1])) for one, end in zip(some, ends, strict=True)
        }
        joint = model.log_joint(make_table(model.schema, cells, int(ends[-1])))
        yield from np.split(joint, ends[:-1])


def _batch_columns(columns: Sequence[ColumnValues], max_values: int) -> Iterator[list[ColumnValues]]:
    """Yield batches of columns with at most `max_values` values in total, unless a single column has more."""
    some: list[ColumnValues] = []
    values = 0
    for one in columns:
        if some and values + len(one.cells) > max_values:
            yield some
            some, values = [], 0
        some.append(one)
        values += len(one.cells)
    if some:
        yield some


def _pad_cells(cells: pa.Array, end: int, rows: int) -> pa.Array:
    """Return a column in which the cells end at row `end`, with missing values before and after."""
    missing = (pa.nulls(size, cells.type) for size in (end - len(cells), rows - end))
    return pa.concat_arrays([next(missing), cells, next(missing)])


def compute_log_odds(log_joint: Floats, against: int | None = None) -> Floats:
    """Return the log-odds of each class against all others, or against one class; 0 if undefined."""
    with np.errstate(all="ignore"):
        odds = LogOdds.of(log_joint).value if against is None else log_joint - log_joint[:, [against]]
    return _replace_nan(odds)


def _replace_nan(values: Floats) -> Floats:
    """Return the values with 0 instead of NaN."""
    return np.where(np.isnan(values), 0.0, values)
