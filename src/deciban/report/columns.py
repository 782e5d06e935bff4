"""What each column of a model says over its values, from counts: many columns in one pass."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from deciban.arrays import Floats
from deciban.errors import UsageError
from deciban.explain.alone import log_odds, table_of_columns
from deciban.explain.cells import plain_cell
from deciban.explain.column_values import ColumnValues, values_of
from deciban.explain.words import DECIBANS, top_words_of
from deciban.fitted import Fitted
from deciban.importance import Importance
from deciban.model import Model
from deciban.text_tables import class_name

# Values at which a number is shown, in a picture that is open and in one that is folded or has many lines; and how
# many lines are many.
POINTS_OPEN = 61
POINTS_FOLDED = 21
MANY_LINES = 6

# Categories and words that are shown of a column.
MOST_CATEGORIES_SHOWN = 12
MOST_WORDS_SHOWN = 10

# Rows that are scored together.
ROWS_SCORED_TOGETHER = 2_000


@dataclass(frozen=True)
class ColumnFigures:
    """What a column says, all other columns missing.

    values: at which it is shown; None for texts and for columns without cells. evidence: for each class against all
    others, in decibans; density: within each class, by plain Bayes; value by class. note: why there are no values.
    words: of a text, for each class those that are typical of it.
    """

    column: int
    name: str
    values: ColumnValues | None
    evidence: Floats
    density: Floats
    note: str = ""
    words: tuple[tuple[str, tuple[tuple[str, float], ...]], ...] = ()

    @property
    def reach(self) -> tuple[float, float]:
        """The least and the most that it says for any class, in decibans."""
        finite = self.evidence[np.isfinite(self.evidence)]
        return (float(finite.min()), float(finite.max())) if finite.size else (0.0, 0.0)

    @property
    def typical(self) -> list[Any]:
        """Of each class the value of highest density, for programs; None where there is none."""
        if self.values is None:
            return []
        best = np.where(np.isfinite(self.density), self.density, -1.0).argmax(axis=0)
        cells = self.values.cells
        return [_entered(cells[int(place)].as_py()) for place in best]


def _entered(value: Any) -> Any:
    """A value as it would be entered in a form."""
    if isinstance(value, float):
        return plain_cell(float(f"{value:.4g}"))
    return value if isinstance(value, bool | int | str) or value is None else str(value)


def column_figures(fitted: Fitted, importance: Importance, opened: int) -> list[ColumnFigures]:
    """The figures of all columns, the most important first; more points for the first `opened` of them."""
    draws: dict[int, list[Any]] = {}
    found: list[ColumnValues | str] = []
    order = importance.order.tolist()
    for rank, column in enumerate(order):
        few_lines = fitted.classes.size <= MANY_LINES
        points = POINTS_OPEN if rank < opened and few_lines else POINTS_FOLDED
        try:
            found.append(values_of(fitted, column, points, draws))
        except UsageError as error:
            found.append(str(error))
    shown = [one for one in found if isinstance(one, ColumnValues)]
    evidence = dict(zip((one.column for one in shown), _evidence(fitted.model, shown), strict=True))
    density = dict(zip((one.column for one in shown), _densities(fitted.plain, shown), strict=True))
    return [
        ColumnFigures(column, fitted.schema.column_name(column), one, evidence[column], density[column])
        if isinstance(one, ColumnValues)
        else _without_values(fitted, column, one)
        for column, one in zip(order, found, strict=True)
    ]


def _without_values(fitted: Fitted, column: int, note: str) -> ColumnFigures:
    """A text, by its words, or a column of which nothing was learned."""
    name, nothing = fitted.schema.column_name(column), np.zeros((0, fitted.classes.size))
    try:
        words = tuple(
            (
                class_name(label),
                tuple((word.word, word.decibans) for word in top_words_of(fitted.plain, c, MOST_WORDS_SHOWN, name)),
            )
            for c, label in enumerate(fitted.classes.tolist())
        )
    except UsageError:
        return ColumnFigures(column, name, None, nothing, nothing, note)
    return ColumnFigures(column, name, None, nothing, nothing, "", words)


def _evidence(model: Model, columns: Sequence[ColumnValues]) -> Iterator[Floats]:
    """What the values of each column say for each class against all others, in decibans."""
    nothing = log_odds(model.log_joint(table_of_columns(model.schema, {}, 1)))
    for joint in _log_joints(model, columns):
        yield DECIBANS * (log_odds(joint) - nothing)


def _densities(plain: Model, columns: Sequence[ColumnValues]) -> Iterator[Floats]:
    """P(value | class), or its density, by plain Bayes; 0 where a value says nothing."""
    nothing = plain.log_joint(table_of_columns(plain.schema, {}, 1))
    for joint in _log_joints(plain, columns):
        with np.errstate(invalid="ignore", over="ignore"):
            log_density = np.nan_to_num(joint - nothing, nan=0.0, neginf=-np.inf)
        unseen = (log_density == 0.0).all(axis=1, keepdims=True)
        yield np.where(unseen, 0.0, np.exp(log_density))


def _log_joints(model: Model, columns: Sequence[ColumnValues]) -> Iterator[Floats]:
    """The log joint of each column's values, the others missing; many columns are scored together."""
    some: list[ColumnValues] = []
    for one in columns:
        some.append(one)
        if sum(len(each.cells) for each in some) >= ROWS_SCORED_TOGETHER:
            yield from _stacked(model, some)
            some = []
    yield from _stacked(model, some)


def _stacked(model: Model, columns: Sequence[ColumnValues]) -> Iterator[Floats]:
    """The same by one table: the rows of each column below those of the one before."""
    if not columns:
        return
    ends = np.cumsum([len(one.cells) for one in columns])
    rows, cells = int(ends[-1]), {}
    for one, end in zip(columns, ends.tolist(), strict=True):
        before, after = end - len(one.cells), rows - end
        kind = one.cells.type
        cells[one.column] = pa.concat_arrays([pa.nulls(before, kind), one.cells, pa.nulls(after, kind)])
    joint = model.log_joint(table_of_columns(model.schema, cells, rows))
    yield from np.split(joint, ends[:-1])
