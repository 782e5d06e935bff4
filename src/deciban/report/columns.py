"""What each column of a model says over its values, from counts: many columns in one pass."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

from deciban.errors import UsageError
from deciban.evaluation.importance import Importance
from deciban.explain.alone import density_of_each, evidence_of_each
from deciban.explain.cells import form_cell
from deciban.explain.column_values import ColumnValues, values_of
from deciban.explain.words import top_words_of
from deciban.model.fitted import Fitted
from deciban.util.arrays import Floats
from deciban.util.text_tables import class_name

# Values at which a number is shown, in a picture that is open and in one that is folded or has many lines; and how
# many lines are many.
POINTS_OPEN = 61
POINTS_FOLDED = 21
MANY_LINES = 6

# Categories and words that are shown of a column.
MOST_CATEGORIES_SHOWN = 12
MOST_WORDS_SHOWN = 10


@dataclass(frozen=True)
class ColumnFigures:
    """What a column says, all other columns missing.

    values: at which it is shown; None for texts and for columns without cells. evidence: for each class against all
    others, in decibans; density: within each class, by the family that the model uses for the column; value by class.
    note: why there are no values. words: of a text, for each class those that are typical of it.
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
        """The least and the most that it says for any class, in decibans; infinite where a value rules a class out."""
        known = self.evidence[~np.isnan(self.evidence)]
        return (float(known.min()), float(known.max())) if known.size else (0.0, 0.0)

    @property
    def typical(self) -> list[Any]:
        """Of each class the value of highest density, for programs; None where there is none."""
        if self.values is None:
            return []
        density = np.where(np.isfinite(self.density), self.density, -1.0)
        best = np.where(density.any(axis=0), density.argmax(axis=0), len(density) // 2)
        return [_typed(self.values.cells[int(place)].as_py()) for place in best]


def _typed(value: Any) -> Any:
    """A value as somebody would type it: a number in four digits, a date without the time."""
    if isinstance(value, float):
        return form_cell(float(f"{value:.4g}"))
    return form_cell(value.date() if isinstance(value, datetime) else value)


def column_figures(fitted: Fitted, importance: Importance, opened: int, most: int) -> list[ColumnFigures]:
    """The figures of at most so many columns, the most important first; more points for the first `opened` of them."""
    draws: dict[int, list[Any]] = {}
    found: list[ColumnValues | str] = []
    order = importance.order[:most].tolist()
    for rank, column in enumerate(order):
        few_lines = fitted.classes.size <= MANY_LINES
        points = POINTS_OPEN if rank < opened and few_lines else POINTS_FOLDED
        try:
            found.append(values_of(fitted, column, points, draws))
        except UsageError as error:
            found.append(str(error))
    shown = [one for one in found if isinstance(one, ColumnValues)]
    evidence = dict(zip((one.column for one in shown), evidence_of_each(fitted.model, shown), strict=True))
    density = dict(zip((one.column for one in shown), density_of_each(fitted.generative, shown), strict=True))
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
