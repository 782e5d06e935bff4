"""One column on its own: its counts, the values it is shown at, and its evidence if all others are missing.

Pictures and reports show these. Values come from what was counted: categories, whole numbers, or points on a line.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from deciban.errors import Argument, BadCell, UsageError
from deciban.explain.words import top_words_of
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

# Bins are shown no narrower than this many halvings of the range of a column.
DRAWN_BITS = 12


@dataclass(frozen=True)
class ColumnCounts:
    """How often something was counted in each class, class by value or class by bin.

    levels: the values, where they are categories. low, high: the bins, where they are numbers.
    """

    table: Floats
    levels: pa.Array | None = None
    low: Floats | None = None
    high: Floats | None = None


def counted_column(counts: Counts, column: int, by: ColumnGroup | None = None) -> ColumnCounts | None:
    """Counts of the values or bins of a column, from any of its groups or from the one that counts what `by` needs;
    None if only sums of it were counted."""
    host = None if by is None else counts.schema.group_counting(by)
    for p, (group, statistic) in enumerate(zip(counts.schema.groups, counts.statistics, strict=True)):
        if getattr(group.family, "cuts", None) or (host is not None and p != host[0]):  # cuts count places, not values
            continue
        if column in group.columns and (found := _counted(statistic, group.columns.index(column))) is not None:
            return found
    return None


@singledispatch
def _counted(statistic: Any, place: int) -> ColumnCounts | None:
    return None


@_counted.register
def _(statistic: Levels, place: int) -> ColumnCounts | None:
    return ColumnCounts(statistic.tables[place], levels=statistic.levels[place])


@_counted.register
def _(statistic: Tuples, place: int) -> ColumnCounts | None:
    levels = statistic.levels[place]
    return ColumnCounts(sum_columns_at(statistic.table, statistic.tuples[:, place], len(levels)), levels=levels)


@_counted.register
def _(statistic: Bins, place: int) -> ColumnCounts | None:
    column = statistic.columns[place]
    reach = np.ptp(column.edges) or np.abs(column.edges).max() if column.edges.size else 1.0
    column = column.coarsen(max(column.exponent, int(np.frexp(reach)[1]) - DRAWN_BITS))
    return ColumnCounts(column.table, low=column.edges, high=column.edges + np.ldexp(1.0, column.exponent))


@_counted.register
def _(statistic: Combined, place: int) -> ColumnCounts | None:  # type: ignore[type-arg]  # whatever is combined
    return next((found for part in statistic.parts if (found := _counted(part, place)) is not None), None)


# Points of a line, how many landmarks (modes, edges of bins) it may have for each of them, and values that are listed
# as categories though they are numbers.
LINE_POINTS = 241
LANDMARKS_PER_POINT = 4
MAX_LISTED = 24

# Cells that are drawn for each class to see how far a column reaches, and the share of them that lies beyond, on
# either side.
CELLS_DRAWN = 400
BEYOND = 0.005


@dataclass(frozen=True)
class ColumnValues:
    """Values of a column, in their order.

    kind: categories, whole numbers, or numbers that may be anything in between. cells: the values as a table has them.
    numbers: the same as numbers, where they are some. names: the values as people write them. dates: whether the
    numbers are days since 1970.
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
        """Where each value stands on an axis: categories one beside the other."""
        if self.kind == "categories" or self.numbers is None:
            return np.arange(float(len(self.cells)))
        return self.numbers


def column_place(fitted: Fitted, column: Any) -> int:
    """The place of a column, given by its name or its place; a UsageError where there is none."""
    schema = fitted.counts.schema
    names = schema.column_names
    if isinstance(column, str) and column in names:
        return names.index(column)
    if isinstance(column, int | np.integer) and not isinstance(column, bool) and -schema.width <= column < schema.width:
        return int(column) % schema.width
    shown = ", ".join(map(repr, names[:12])) + (", …" if len(names) > 12 else "")
    raise UsageError(f"there is no column {column!r}", remedy=f"the model has {shown}")


def two_columns(fitted: Fitted, columns: Any, points: int) -> tuple[ColumnValues, ColumnValues]:
    """The values of two columns, given by names or places."""
    if isinstance(columns, str | int) or len(columns) != 2:
        raise UsageError("give two columns", parameter=Argument("columns", columns))
    first, second = (column_place(fitted, column) for column in columns)
    if first == second:
        raise UsageError("give two that differ", parameter=Argument("columns", columns))
    return values_of(fitted, first, points, even=True), values_of(fitted, second, points, even=True)


def values_of(
    fitted: Fitted,
    column: int,
    points: int = LINE_POINTS,
    draws: dict[int, list[Any]] | None = None,
    even: bool = False,
) -> ColumnValues:
    """The values at which a column is shown; a UsageError for texts, which have no order, and for empty columns.

    draws: what was drawn for columns before, to be used again and added to. even: equal steps along a line, without
    the modes and the edges of bins that lie between them.
    """
    schema = fitted.counts.schema
    name = schema.column_name(column)
    found = home_of(fitted.generative, column)
    if found is None:
        raise UsageError(f"the column {name!r} has no cell that is filled: there is nothing to show")
    group, likelihood, place = found
    family = group.family
    if family.is_text:
        raise UsageError(
            f"the column {name!r} holds texts, whose words top_words() shows", remedy="choose another column"
        )
    learned = dict(enumerate(schema.types or ())).get(column, "")
    own = counted_column(fitted.counts, column, group)
    if own is not None and own.levels is not None:
        return _of_levels(column, name, own.levels)
    try:
        drawn = _drawn(likelihood, fitted.classes.size, place, {} if draws is None else draws)
    except BadCell as bad:  # a score has no distribution
        raise UsageError(f"the column {name!r} cannot be shown: {bad}") from None
    if set(np.unique(drawn).tolist()) <= {0.0, 1.0}:
        flags = pa.array([False, True]) if kind_of(learned) == "BOOLEAN" else pa.array([0, 1])
        return _of_levels(column, name, flags)
    whole = not family.support.contains(np.array([0.5]))[0]
    inside = allowed(fitted.model, column, drawn)
    drawn = np.where(inside, drawn, np.nan) if inside.any(axis=1).all() else drawn
    if whole:
        return _of_numbers(column, name, _whole(drawn, points), "whole", learned)
    low, high = _reach(drawn) if own is None else _counted_reach(own)
    line = np.linspace(low, high, points)
    if not even:
        marks = likelihood.curve_points(place)
        marks = marks[(marks > low) & (marks < high)]
        dense = np.nanquantile(drawn, np.linspace(0.01, 0.99, points // (2 * len(drawn))), axis=1).ravel()
        marks = marks if marks.size <= LANDMARKS_PER_POINT * points else marks[:0]
        line = np.unique(np.concatenate([line, marks, dense[(dense > low) & (dense < high)]]))
    return _of_numbers(column, name, line, "continuous", learned)


def words_of(fitted: Fitted, column: int, most: int = MAX_LISTED) -> ColumnValues | None:
    """The most telling words of a column of texts, each a text by itself: as many of each class; None of others."""
    found = home_of(fitted.generative, column)
    if found is None or not found[0].family.is_text:
        return None
    name, each = fitted.counts.schema.column_name(column), max(most // fitted.classes.size, 2)
    words: dict[str, None] = {}
    for label in range(fitted.classes.size):
        words |= dict.fromkeys(one.word for one in top_words_of(fitted.plain, label, each, name))
    shown = list(words)[:most]
    return ColumnValues(column, name, "categories", pa.array(shown, pa.string()), None, tuple(shown))


def home_of(model: Model, column: int) -> tuple[ColumnGroup, Likelihood, int] | None:
    """The group and likelihood of a column in a model that has it once, and its place in the group."""
    for group, likelihood in zip(model.schema.groups, model.likelihoods, strict=True):
        if column in group.columns:
            return group, likelihood, group.columns.index(column)
    return None


def _drawn(likelihood: Likelihood, classes: int, place: int, draws: dict[int, list[Any]]) -> Floats:
    """Cells of a column drawn from each class, class by cell, the same ones each time."""
    if id(likelihood) not in draws:
        labels = np.repeat(np.arange(classes), CELLS_DRAWN)
        draws[id(likelihood)] = likelihood.sample(labels, np.random.default_rng(0))
    cells = draws[id(likelihood)][place]
    numbers = cells if isinstance(cells, np.ndarray) else as_numbers(cells)
    return np.asarray(numbers, dtype=np.float64).reshape(classes, CELLS_DRAWN)


def allowed(model: Model, column: int, numbers: Floats) -> Flags:
    """Which numbers all families of a column in the model can learn: drawn from others, they may lie below 0."""
    inside = np.ones(numbers.shape, dtype=np.bool_)
    for group in model.schema.groups:
        if column in group.columns and not group.family.joint:
            inside &= group.family.support.contains(numbers)
    return inside


def _of_levels(column: int, name: str, levels: pa.Array) -> ColumnValues:
    """Values that were counted one by one; numbers of which there are many stand where they are on an axis."""
    number = pa.types.is_integer(levels.type) or pa.types.is_floating(levels.type)
    if number and len(levels) > MAX_LISTED:
        return _of_numbers(column, name, as_numbers(levels), "whole", "")
    names = tuple(
        format_number(value) if isinstance(value, float) else format_class(value) for value in levels.to_pylist()
    )
    return ColumnValues(column, name, "categories", levels, as_numbers(levels) if number else None, names)


def _of_numbers(
    column: int, name: str, numbers: Floats, kind: Literal["whole", "continuous"], learned: str
) -> ColumnValues:
    cells = from_numbers(numbers, learned) if kind_of(learned) in ("TIMESTAMP", "TIME") else pa.array(numbers)
    dates = kind_of(learned) == "TIMESTAMP"
    names = tuple(str(cell) for cell in cells.to_pylist()) if dates else tuple(f"{x:.6g}" for x in numbers)
    return ColumnValues(column, name, kind, cells, numbers, names, dates)


def _reach(drawn: Floats) -> tuple[float, float]:
    """From where to where cells of any class lie, but for a few."""
    ends = np.nanquantile(drawn, [BEYOND, 1.0 - BEYOND], axis=1)
    low, high = float(np.nanmin(ends[0])), float(np.nanmax(ends[1]))
    return (low, high) if low < high else (low - 0.5, low + 0.5)


def _counted_reach(counted: ColumnCounts) -> tuple[float, float]:
    """The same of cells that were counted in bins."""
    assert counted.low is not None, "there are bins"
    assert counted.high is not None, "there are bins"
    order = np.argsort(counted.low)
    share = counted.table[:, order] / np.maximum(counted.table.sum(axis=1, keepdims=True), 1e-300)
    along = np.cumsum(share, axis=1)
    first = min(int(np.searchsorted(line, BEYOND)) for line in along)
    last = max(int(np.searchsorted(line, 1.0 - BEYOND)) for line in along)
    return float(counted.low[order[first]]), float(counted.high[order[min(last, order.size - 1)]])


def _whole(drawn: Floats, points: int) -> Floats:
    """Whole numbers; of very many, every second, third, … one."""
    low, high = np.nanmin(drawn), max(_reach(drawn)[1], np.nanmin(drawn) + 1.0)
    return np.arange(np.floor(low), np.ceil(high) + 1.0, max(np.ceil((high - low) / points), 1.0))


# Cells that are scored at a time, where many columns are looked at one by one.
CELLS_AT_A_TIME = 1 << 22


def table_of_columns(schema: Schema, cells: Mapping[int, pa.Array], rows: int) -> Table:
    """Rows in which only these columns, known by their places, are there."""
    columns = [cells.get(column, pa.nulls(rows)) for column in range(schema.width)]
    return schema.table_as_learned(
        Frame(pa.Table.from_arrays(columns, names=list(schema.column_names)), schema.names is not None)
    )


def log_joint_of(model: Model, columns: Sequence[ColumnValues]) -> Floats:
    """log P(cells, class) at every combination of values of these columns, the last changing fastest."""
    sizes = [len(column.cells) for column in columns]
    places = np.indices(sizes).reshape(len(sizes), -1) if sizes else np.zeros((0, 1), dtype=np.int64)
    cells = {one.column: one.cells.take(pa.array(place)) for one, place in zip(columns, places, strict=True)}
    return model.log_joint(table_of_columns(model.schema, cells, places.shape[1]))


def evidence_alone(model: Model, columns: Sequence[ColumnValues], against: int | None = None) -> Floats:
    """What the values of these columns say for each class, in decibans, all other columns missing.

    Against all other classes together, or against one of them: by how much the odds change where the columns are there.
    """
    there, nothing = log_joint_of(model, columns), log_joint_of(model, ())
    with np.errstate(invalid="ignore"):  # where there is but one class, no odds are known
        return _known(DECIBANS * (log_odds(there, against) - log_odds(nothing, against)))


def evidence_of_each(model: Model, columns: Sequence[ColumnValues], against: int | None = None) -> list[Floats]:
    """The same for each column by itself; many of them are scored together."""
    nothing = log_odds(log_joint_of(model, ()), against)
    with np.errstate(invalid="ignore"):
        return [_known(DECIBANS * (log_odds(joint, against) - nothing)) for joint in _log_joint_of_each(model, columns)]


def density_of_each(generative: Model, columns: Sequence[ColumnValues]) -> list[Floats]:
    """P(value | class), or its density, for each column by itself; 0 for a value without evidence."""
    nothing = log_joint_of(generative, ())
    found = []
    for joint in _log_joint_of_each(generative, columns):
        with np.errstate(invalid="ignore", over="ignore"):
            log_density = _known(joint - nothing)
            unseen = (log_density == 0.0).all(axis=1, keepdims=True)
            found.append(np.where(unseen, 0.0, np.exp(log_density)))
    return found


def _log_joint_of_each(model: Model, columns: Sequence[ColumnValues]) -> Iterator[Floats]:
    """log P(value, class) of each column by itself: in one table the values of each stand below those of the last."""
    for some in _together(columns, max(CELLS_AT_A_TIME // max(model.schema.width, 1), 1)):
        ends = np.cumsum([len(one.cells) for one in some])
        cells = {one.column: _padded(one.cells, int(end), int(ends[-1])) for one, end in zip(some, ends, strict=True)}
        joint = model.log_joint(table_of_columns(model.schema, cells, int(ends[-1])))
        yield from np.split(joint, ends[:-1])


def _together(columns: Sequence[ColumnValues], most: int) -> Iterator[list[ColumnValues]]:
    """The columns, some at a time, which have no more than so many values in all, unless one alone has."""
    some: list[ColumnValues] = []
    values = 0
    for one in columns:
        if some and values + len(one.cells) > most:
            yield some
            some, values = [], 0
        some.append(one)
        values += len(one.cells)
    if some:
        yield some


def _padded(cells: pa.Array, end: int, rows: int) -> pa.Array:
    """Cells that end at a row, and are missing before and behind."""
    missing = (pa.nulls(size, cells.type) for size in (end - len(cells), rows - end))
    return pa.concat_arrays([next(missing), cells, next(missing)])


def log_odds(log_joint: Floats, against: int | None = None) -> Floats:
    """The log-odds of each class, against all others or against one of them; 0 where nothing is known."""
    with np.errstate(all="ignore"):
        odds = LogOdds.of(log_joint).value if against is None else log_joint - log_joint[:, [against]]
    return _known(odds)


def _known(values: Floats) -> Floats:
    """The values, 0 in place of NaN."""
    return np.where(np.isnan(values), 0.0, values)
