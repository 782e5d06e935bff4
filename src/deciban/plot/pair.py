"""`PairDisplay`: the joint evidence of two columns, as a heat map."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from deciban.explain.calculation import format_decibans
from deciban.explain.column_values import (
    ColumnValues,
    compute_evidence_alone,
    compute_values_log_joint,
    get_two_columns,
)
from deciban.plot.display import (
    DIVERGING,
    MAX_CATEGORIES_DRAWN,
    SMALL_SIZE,
    Axes,
    Display,
    find_evidence_limits,
    format_name,
    get_fitted,
    get_positions,
    label_values,
    make_panels,
    select_values,
    style_axes,
)
from deciban.tables.labels import LabelArray
from deciban.util.arrays import Floats, Integers
from deciban.util.frames import remember_library
from deciban.util.text_tables import format_three

if TYPE_CHECKING:
    from deciban.estimators.classifier import BayesClassifier

# Points of a number along each side of a heat map.
MAP_POINTS = 121
# Up to this number of categories, the decibans are written into the cells.
MAX_CELLS_WRITTEN = 8
# Panels in one row.
MAX_PANELS_ACROSS = 5


class PairDisplay(Display):
    """Heat map of the joint evidence of two columns, with all other columns missing.

    With two classes there is one panel, for the second class against the first; else there is one panel for each class
    against all others. It is computed from counts; no rows are needed. A line is drawn at zero evidence.

    Parameters
    ----------
    first, second : ColumnValues
        The values of both columns, the first along the horizontal axis.
    classes : ndarray of shape (n_classes,)
        The classes.
    evidence : ndarray of shape (n_first, n_second, n_classes)
        The evidence of each pair of values for each class against all others, in decibans.
    chances : ndarray of shape (n_first, n_second, n_classes)
        P(pair | class), or its density. It sets the range of the colors.

    Attributes
    ----------
    ax_ : Axes
        The first axes.
    axes_ : list of Axes
        The axes of each panel.
    figure_ : Figure
        The figure.

    See Also
    --------
    ColumnDisplay : The evidence of one column.
    DependenceDisplay : Dependence between columns.

    Examples
    --------
    >>> from deciban import BayesClassifier
    >>> from deciban.datasets import weather
    >>> from deciban.plot import PairDisplay
    >>> clf = BayesClassifier(tune=None).fit(weather(), "play")
    >>> shown = PairDisplay.from_estimator(clf, ["outlook", "wind"])
    >>> shown.second.names, shown.evidence[0, :, 1].round(1).tolist()
    (('strong', 'weak'), [3.3, 6.9])
    """

    def __init__(
        self, first: ColumnValues, second: ColumnValues, classes: LabelArray, evidence: Floats, chances: Floats
    ) -> None:
        self.first = first
        self.second = second
        self.classes = classes
        self.evidence = evidence
        self.chances = chances

    @classmethod
    def from_estimator(
        cls, estimator: BayesClassifier, columns: tuple[str, str] | tuple[int, int] = (0, 1), *, ax: Axes | None = None
    ) -> Self:
        """Draw two columns of a fitted classifier.

        Parameters
        ----------
        estimator : BayesClassifier
            A fitted classifier.
        columns : (str, str) or (int, int), default=(0, 1)
            The names or the positions of the columns.
        ax : Axes, default=None
            One pair of axes, or one for each panel. None: a new figure.

        Returns
        -------
        PairDisplay
        """
        fitted = get_fitted(estimator)
        first, second = get_two_columns(fitted, columns, MAP_POINTS)
        shape = (len(first.cells), len(second.cells), fitted.classes.size)
        chances = np.exp(
            compute_values_log_joint(fitted.generative, [first, second])
            - compute_values_log_joint(fitted.generative, [])
        )
        evidence = compute_evidence_alone(fitted.model, [first, second])
        shown = cls(first, second, fitted.classes, evidence.reshape(shape), chances.reshape(shape))
        return remember_library(shown, estimator).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the heat maps.

        Parameters
        ----------
        ax : Axes, default=None
            One pair of axes, or one for each panel. None: a new figure.

        Returns
        -------
        PairDisplay
        """
        labels = self.classes.tolist()
        panels = [1] if len(labels) == 2 else list(range(len(labels)))
        size = len(panels)
        across = size if size <= 3 else min(int(np.ceil(np.sqrt(size))), MAX_PANELS_ACROSS)
        down = -(-size // across)
        wide, tall = (4.6, 3.6) if size == 1 else (3.6, 3.2) if size <= 4 else (2.4, 2.2)
        self.axes_ = make_panels(ax, down, across, (wide * across + 0.9, tall * down + 0.4))
        for unused in self.axes_[size:]:
            unused.set_axis_off()
        shown = self._select()
        low, high = find_evidence_limits(*(array.reshape(-1, len(labels)) for array in (self.evidence, self.chances)))
        reach, mesh = max(-low, high), None
        for k, c in enumerate(panels):
            mesh = self._draw_class(self.axes_[k], c, shown, reach)
            edge = k >= size - across, k % across == 0
            names = [
                format_name(values.name) if there else ""
                for values, there in zip((self.first, self.second), edge, strict=True)
            ]
            style_axes(self.axes_[k], f"Evidence for {format_name(labels[c])}", *names)
            self.axes_[k].tick_params(labelbottom=edge[0], labelleft=edge[1])
        drawn = self.evidence[np.ix_(*shown)][:, :, panels]
        below, above = bool((drawn < -reach).any()), bool((drawn > reach).any())
        extend = "both" if below and above else "min" if below else "max" if above else "neither"
        where = self.axes_ if ax is None else self.axes_[0]
        bar = self.axes_[0].figure.colorbar(mesh, ax=where, shrink=0.8, extend=extend)
        against = f"for {format_name(labels[1])} against {format_name(labels[0])}" if size == 1 else "for each class"
        beyond = "" if extend == "neither" else f"\n(arrows: beyond ±{format_three(reach)})"
        bar.set_label(f"decibans {against}{beyond}", fontsize=SMALL_SIZE)
        bar.ax.tick_params(labelsize=SMALL_SIZE)
        self._remember_axes(self.axes_[0])
        return self

    def _select(self) -> tuple[Integers, Integers]:
        """Return the positions of the values of both columns to draw."""
        strength = np.abs(self.evidence).max(axis=2)
        max_values = MAX_CATEGORIES_DRAWN if self.classes.size <= 4 else MAX_CELLS_WRITTEN
        columns = ((self.first, strength.max(axis=1)), (self.second, strength.max(axis=0)))
        first, second = (select_values(values, strengths, max_values) for values, strengths in columns)
        return first, second

    def _draw_class(self, ax: Axes, c: int, shown: tuple[Integers, Integers], reach: float) -> Any:
        x, y = (get_positions(one, places) for one, places in zip((self.first, self.second), shown, strict=True))
        values = self.evidence[np.ix_(*shown)][:, :, c].T
        shade = np.nan_to_num(values, posinf=reach, neginf=-reach)  # infinite evidence has the color of the end
        mesh = ax.pcolormesh(x, y, shade, cmap=DIVERGING, vmin=-reach, vmax=reach, shading="nearest", rasterized=True)
        listed = self.first.kind == self.second.kind == "categories"
        if listed and max(values.shape) <= MAX_CELLS_WRITTEN and self.classes.size <= 4:
            for (row, column), value in np.ndenumerate(values):
                ink = "white" if abs(value) > 0.6 * reach else "black"
                ax.text(
                    x[column], y[row], format_decibans(value), ha="center", va="center", fontsize=SMALL_SIZE, color=ink
                )
        elif "categories" not in (self.first.kind, self.second.kind) and values.min() < 0.0 < values.max():
            ax.contour(x, y, shade, levels=[0.0], colors="black", linewidths=0.8)
        label_values(ax, self.first, shown[0])
        label_values(ax, self.second, shown[1], vertical=True)
        return mesh

    def _columns(self) -> dict[str, Any]:
        """Return a row for each pair of values and class, with the evidence in decibans."""
        shape = self.evidence.shape
        places = np.indices(shape).reshape(3, -1)
        one, other = (name if k == 0 or name != self.first.name else f"{name} (2)"
                      for k, name in enumerate((self.first.name, self.second.name)))  # fmt: skip
        return {
            one: [self.first.names[k] for k in places[0]],
            other: [self.second.names[k] for k in places[1]],
            "class": [self.classes.tolist()[k] for k in places[2]],
            "decibans": self.evidence.ravel(),
        }
