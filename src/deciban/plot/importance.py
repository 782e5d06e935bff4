"""`ImportanceDisplay`: the columns of a model, ranked by their evidence or by their gain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from deciban.errors import Argument, UsageError
from deciban.evaluation.importance import Importance
from deciban.plot.display import (
    SMALL_SIZE,
    Axes,
    Display,
    draw_zero_line,
    format_name,
    get_fitted,
    make_axes,
    style_axes,
)
from deciban.typing import Labels, Table, Weights
from deciban.util.arrays import Integers
from deciban.util.frames import remember_library
from deciban.util.text_tables import count_noun, format_three
from deciban.web.palette import AGAINST_COLOR, CLASS_COLORS

if TYPE_CHECKING:
    from deciban.estimators.classifier import BayesClassifier

Measure = Literal["decibans", "bits"]

# Columns drawn by default.
MAX_COLUMNS_DRAWN = 20
# Name of each measure on its axis.
MEASURES: dict[str, str] = {
    "decibans": "mean absolute evidence (decibans)",
    "bits": "loss without the column (bits per row)",
}


class ImportanceDisplay(Display):
    """Ranked bars of the importance of each column: the mean size of its evidence, or what is lost without it.

    Parameters
    ----------
    importance : Importance
        The result of `BayesClassifier.importance`.
    measure : {"decibans", "bits"}, default="decibans"
        "decibans" is the mean absolute evidence of a column, "bits" the log-loss that it saves. Bits below 0 (in
        another color) mean that the model is better without the column.
    max_display : int, default=20
        The number of columns to draw. The others are counted.

    Attributes
    ----------
    order : ndarray of int
        The positions of the drawn columns in `importance.columns`, the most important first.
    ax_, figure_ : Axes, Figure
        The axes and the figure.

    See Also
    --------
    BayesClassifier.importance : The same as numbers.
    EvidenceDisplay : The evidence of each column for one row.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from deciban import BayesClassifier
    >>> from deciban.plot import ImportanceDisplay
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> shown = ImportanceDisplay.from_estimator(BayesClassifier(tune=None).fit(X, y))
    >>> [shown.importance.columns[k] for k in shown.order[:2]]
    ['petal width (cm)', 'petal length (cm)']
    """

    def __init__(
        self, importance: Importance, measure: Measure = "decibans", max_display: int = MAX_COLUMNS_DRAWN
    ) -> None:
        if measure not in MEASURES:
            raise UsageError("choose 'decibans' or 'bits'", parameter=Argument("measure", measure))
        self.importance = importance
        self.measure = measure
        self.max_display = max_display

    @classmethod
    def from_estimator(
        cls,
        estimator: BayesClassifier,
        X: Table | None = None,
        y: Labels | None = None,
        sample_weight: Weights | None = None,
        *,
        measure: Measure = "decibans",
        max_display: int = MAX_COLUMNS_DRAWN,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the importance of the columns of a fitted classifier.

        Parameters
        ----------
        estimator : BayesClassifier
            A fitted classifier.
        X : table, default=None
            Rows, as in `BayesClassifier.importance`. None: the training rows or, for a loaded model, rows sampled from
            the model.
        y : array-like or str, default=None
            Labels of training rows, or the name of the target column. None: the rows are new.
        sample_weight : array-like or str, default=None
            Row weights, or the name of the weight column.
        measure : {"decibans", "bits"}, default="decibans"
            The length of the bars.
        max_display : int, default=20
            The number of columns to draw.
        ax : Axes, default=None
            The axes to draw on. None: a new figure.

        Returns
        -------
        ImportanceDisplay
        """
        get_fitted(estimator)
        found = estimator.importance(X, y, sample_weight)
        return cls.from_importance(found, measure=measure, max_display=max_display, ax=ax)

    @classmethod
    def from_importance(
        cls,
        importance: Importance,
        *,
        measure: Measure = "decibans",
        max_display: int = MAX_COLUMNS_DRAWN,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the result of `BayesClassifier.importance`.

        Parameters
        ----------
        importance : Importance
            The importance of the columns.
        measure : {"decibans", "bits"}, default="decibans"
            The length of the bars.
        max_display : int, default=20
            The number of columns to draw.
        ax : Axes, default=None
            The axes to draw on. None: a new figure.

        Returns
        -------
        ImportanceDisplay
        """
        return remember_library(cls(importance, measure, max_display), importance).plot(ax)

    @property
    def order(self) -> Integers:
        """Positions of the drawn columns, the most important first."""
        return np.argsort(-getattr(self.importance, self.measure), kind="stable")[: self.max_display]

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the bars.

        Parameters
        ----------
        ax : Axes, default=None
            The axes to draw on. None: a new figure.

        Returns
        -------
        ImportanceDisplay
        """
        order, found = self.order, self.importance
        values = getattr(found, self.measure)[order]
        ax = make_axes(ax, (7.0, 0.27 * order.size + 1.2))
        colors = [CLASS_COLORS[0] if value >= 0.0 else AGAINST_COLOR for value in values]
        ax.barh(range(order.size), values, color=colors, height=0.7)
        for row, value in enumerate(values.tolist()):
            ax.annotate(format_three(value), (max(value, 0.0), row), (3.0, 0.0), textcoords="offset points",
                        va="center", fontsize=SMALL_SIZE)  # fmt: skip
        draw_zero_line(ax, vertical=True)
        ax.set_yticks(range(order.size), [format_name(found.columns[k]) for k in order], fontsize=SMALL_SIZE)
        ax.tick_params(axis="y", length=0)
        ax.set_ylim(order.size - 0.4, -0.6)
        ax.margins(x=0.12)
        rest = len(found.columns) - order.size
        more = f"\n({count_noun(rest, 'less important column')} not drawn)" if rest > 0 else ""
        rows = f"{count_noun(found.rows, 'row')}, {found.source}"
        style_axes(ax, f"Importance of columns ({rows})", f"{MEASURES[self.measure]}{more}")
        self._remember_axes(ax)
        return self

    def _columns(self) -> dict[str, Any]:
        """Return a row for each drawn column: its name, decibans and bits."""
        found, order = self.importance, self.order
        names = [found.columns[k] for k in order]
        return {"column": names, "decibans": found.decibans[order], "bits": found.bits[order]}
