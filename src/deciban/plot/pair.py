"""`PairDisplay`: what two columns say together, as a heat map for each class."""

from typing import Any, Self

import numpy as np

from deciban.explain.calculation import signed
from deciban.explain.column_values import ColumnValues, evidence_alone, log_joint_of, two_columns
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
from deciban.util.frames import data_frame

# Points of a number along each side of a heat map; categories up to which the decibans are written into the cells;
# panels beside each other.
MAP_POINTS = 61
MAX_CELLS_WRITTEN = 8
MAX_PANELS_ACROSS = 5


class PairDisplay(Display):
    """What two columns say together for each class: a heat map of decibans, all other columns missing.

    It comes from counts; no row is needed. A line is drawn where numbers say nothing.

    Parameters
    ----------
    first, second : ColumnValues
        The values of both columns, the first along the horizontal axis.
    classes : ndarray of shape (n_classes,)
        The classes.
    evidence : ndarray of shape (n_first, n_second, n_classes)
        What each pair of values says for each class against all others, in decibans.
    chances : ndarray of shape (n_first, n_second, n_classes)
        P(pair | class), or its density, which sets the range of the colors.

    Attributes
    ----------
    ax_ : Axes
        The axes of the first class.
    axes_ : list of Axes
        Those of each class.
    figure_ : Figure
        The figure.

    See Also
    --------
    ColumnDisplay : What one column says.
    DependenceDisplay : Which columns depend on each other.

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
    def from_estimator(cls, estimator: Any, columns: Any = (0, 1), *, ax: Axes | None = None) -> Self:
        """Draw two columns of a fitted classifier.

        Parameters
        ----------
        estimator : BayesClassifier
            A fitted classifier.
        columns : (str, str) or (int, int), default=(0, 1)
            The names of the columns, or their places.
        ax : Axes, default=None
            Where to draw: one pair of axes, or one for each class; None makes a new figure.

        Returns
        -------
        PairDisplay
        """
        fitted = get_fitted(estimator)
        first, second = two_columns(fitted, columns, MAP_POINTS)
        shape = (len(first.cells), len(second.cells), fitted.classes.size)
        chances = np.exp(log_joint_of(fitted.generative, [first, second]) - log_joint_of(fitted.generative, []))
        evidence = evidence_alone(fitted.model, [first, second])
        return cls(first, second, fitted.classes, evidence.reshape(shape), chances.reshape(shape)).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the heat maps.

        Parameters
        ----------
        ax : Axes, default=None
            Where to draw: one pair of axes, or one for each class; None makes a new figure.

        Returns
        -------
        PairDisplay
        """
        size = self.classes.size
        across = size if size <= 3 else min(int(np.ceil(np.sqrt(size))), MAX_PANELS_ACROSS)
        down = -(-size // across)
        wide, tall = (3.6, 3.2) if size <= 4 else (2.4, 2.2)
        self.axes_ = make_panels(ax, down, across, (wide * across + 0.9, tall * down + 0.4))
        for one in self.axes_[size:]:
            one.set_axis_off()
        shown = self._shown()
        low, high = find_evidence_limits(*(array.reshape(-1, size) for array in (self.evidence, self.chances)))
        mesh = None
        for c, label in enumerate(self.classes.tolist()):
            mesh = self._draw_class(self.axes_[c], c, shown, max(-low, high))
            edge = c >= size - across, c % across == 0
            names = [
                format_name(one.name) if there else ""
                for one, there in zip((self.first, self.second), edge, strict=True)
            ]
            style_axes(self.axes_[c], f"for {format_name(label)}", *names)
            self.axes_[c].tick_params(labelbottom=edge[0], labelleft=edge[1])
        bar = self.axes_[0].figure.colorbar(mesh, ax=self.axes_ if ax is None else self.axes_[0], shrink=0.8)
        bar.set_label("decibans", fontsize=SMALL_SIZE)
        bar.ax.tick_params(labelsize=SMALL_SIZE)
        self._remember_axes(self.axes_[0])
        return self

    def _shown(self) -> tuple[Integers, Integers]:
        """The places of the values of both columns that there is room for."""
        telling = np.abs(self.evidence).max(axis=2)
        most = MAX_CATEGORIES_DRAWN if self.classes.size <= 4 else MAX_CELLS_WRITTEN
        columns = ((self.first, telling.max(axis=1)), (self.second, telling.max(axis=0)))
        first, second = (select_values(one, size, most) for one, size in columns)
        return first, second

    def _draw_class(self, ax: Axes, c: int, shown: tuple[Integers, Integers], reach: float) -> Any:
        x, y = (get_positions(one, places) for one, places in zip((self.first, self.second), shown, strict=True))
        values = self.evidence[np.ix_(*shown)][:, :, c].T
        shade = np.nan_to_num(values, posinf=reach, neginf=-reach)  # what is infinite has the color of the end
        mesh = ax.pcolormesh(x, y, shade, cmap=DIVERGING, vmin=-reach, vmax=reach, shading="nearest", rasterized=True)
        listed = self.first.kind == self.second.kind == "categories"
        if listed and max(values.shape) <= MAX_CELLS_WRITTEN and self.classes.size <= 4:
            for (row, column), value in np.ndenumerate(values):
                ink = "white" if abs(value) > 0.6 * reach else "black"
                ax.text(x[column], y[row], signed(value), ha="center", va="center", fontsize=SMALL_SIZE, color=ink)
        elif "categories" not in (self.first.kind, self.second.kind) and values.min() < 0.0 < values.max():
            ax.contour(x, y, shade, levels=[0.0], colors="black", linewidths=0.8)
        label_values(ax, self.first, shown[0])
        label_values(ax, self.second, shown[1], vertical=True)
        return mesh

    def to_frame(self) -> Any:
        """Return the plotted values as a table.

        Returns
        -------
        DataFrame
            A row for each pair of values and class, with the evidence in decibans.
        """
        shape = self.evidence.shape
        places = np.indices(shape).reshape(3, -1)
        one, other = (name if k == 0 or name != self.first.name else f"{name} (2)"
                      for k, name in enumerate((self.first.name, self.second.name)))  # fmt: skip
        return data_frame(
            {
                one: [self.first.names[k] for k in places[0]],
                other: [self.second.names[k] for k in places[1]],
                "class": [self.classes.tolist()[k] for k in places[2]],
                "decibans": self.evidence.ravel(),
            }
        )
