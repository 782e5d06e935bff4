"""The values that a column is shown at, found from what was counted: categories, whole numbers, or points on a line."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from deciban.errors import Argument, BadCell, UsageError
from deciban.explain.counted import ColumnCounts, counted_column
from deciban.explain.words import top_words_of
from deciban.families import Likelihood
from deciban.model.fitted import Fitted
from deciban.model.model import Model
from deciban.schema.schema import ColumnGroup
from deciban.tables.cells import as_numbers, from_numbers, kind_of
from deciban.util.arrays import Flags, Floats
from deciban.util.text_tables import as_written, class_name

# Points of a line, how many landmarks (modes, edges of bins) it may have for each of them, and values that are listed
# as categories though they are numbers.
LINE_POINTS = 241
LANDMARKS_PER_POINT = 4
MOST_LISTED = 24

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
    raise UsageError(f"there is no column {column!r}; the model has {shown}")


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
    if family.holds_texts:
        raise UsageError(f"the column {name!r} holds texts, whose words top_words() shows; choose another column")
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
        marks = likelihood.landmarks(place)
        marks = marks[(marks > low) & (marks < high)]
        dense = np.nanquantile(drawn, np.linspace(0.01, 0.99, points // (2 * len(drawn))), axis=1).ravel()
        marks = marks if marks.size <= LANDMARKS_PER_POINT * points else marks[:0]
        line = np.unique(np.concatenate([line, marks, dense[(dense > low) & (dense < high)]]))
    return _of_numbers(column, name, line, "continuous", learned)


def words_of(fitted: Fitted, column: int, most: int = MOST_LISTED) -> ColumnValues | None:
    """The most telling words of a column of texts, each a text by itself: as many of each class; None of others."""
    found = home_of(fitted.generative, column)
    if found is None or not found[0].family.holds_texts:
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
    if number and len(levels) > MOST_LISTED:
        return _of_numbers(column, name, as_numbers(levels), "whole", "")
    names = tuple(as_written(value) if isinstance(value, float) else class_name(value) for value in levels.to_pylist())
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
