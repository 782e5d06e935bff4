"""`ColumnDisplay`: what a column says over its values, and how it is distributed in each class."""

from typing import Any, Self

import numpy as np

from deciban.explain.column_values import (
    ColumnCounts,
    ColumnValues,
    column_place,
    counted_column,
    density_of_each,
    evidence_alone,
    values_of,
    words_of,
)
from deciban.plot.display import (
    Axes,
    Display,
    add_legend,
    draw_zero_line,
    escape_text,
    find_evidence_limits,
    format_name,
    get_class_styles,
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
from deciban.util.text_tables import format_amount

# The most bars of a histogram behind a density, the most classes that have bars side by side, and the room of these.
MAX_BARS = 60
MAX_BAR_CLASSES = 6
BARS_WIDTH = 0.8

# Where infinite evidence is drawn to, in decibans: the axis ends before.
BEYOND_ALL_AXES = 1e4


class ColumnDisplay(Display):
    """What a column says for each class over its values, above how it is distributed within the classes.

    Above is the evidence in decibans for each class against all others together, with all other columns missing; below
    are the densities (of categories: the shares) by the family that the model uses for the column (of a column in a
    joint block only, its marginal), and behind them what was counted.
    All of it comes from counts; no row is needed. Of texts, the words that tell most are shown, each as a text of one
    word.

    Parameters
    ----------
    values : ColumnValues
        The values of the column, with their names.
    classes : ndarray of shape (n_classes,)
        The classes.
    evidence : ndarray of shape (n_values, n_classes)
        What each value says for each class, in decibans.
    density : ndarray of shape (n_values, n_classes)
        P(value | class), or its density.
    counts : ColumnCounts or None, default=None
        How often each value, or each bin, was counted in each class; None where only sums were.
    rows : ndarray of shape (n_classes,), default=None
        The weight of the rows of each class. None: it is not known.

    Attributes
    ----------
    ax_ : Axes
        The axes of the evidence.
    axes_ : list of Axes
        Those of the evidence and of the densities.
    figure_ : Figure
        The figure.

    See Also
    --------
    PairDisplay : What two columns say together.
    NomogramDisplay : All columns as rulers.

    Examples
    --------
    >>> from deciban import BayesClassifier
    >>> from deciban.datasets import weather
    >>> from deciban.plot import ColumnDisplay
    >>> clf = BayesClassifier(tune=None).fit(weather(), "play")
    >>> shown = ColumnDisplay.from_estimator(clf, "outlook")
    >>> shown.values.names, shown.evidence[:, 1].round(1).tolist()
    (('overcast', 'rain', 'sunny'), [5.2, -0.5, -3.0])
    """

    def __init__(
        self,
        values: ColumnValues,
        classes: LabelArray,
        evidence: Floats,
        density: Floats,
        counts: ColumnCounts | None = None,
        rows: Floats | None = None,
    ) -> None:
        self.values = values
        self.classes = classes
        self.evidence = evidence
        self.density = density
        self.counts = counts
        self.rows = rows

    @classmethod
    def from_estimator(cls, estimator: Any, column: Any = 0, *, ax: Axes | None = None) -> Self:
        """Draw a column of a fitted classifier.

        Parameters
        ----------
        estimator : BayesClassifier
            A fitted classifier.
        column : str or int, default=0
            The name of the column, or its place.
        ax : Axes, default=None
            One pair of axes, or two. None: a new figure.

        Returns
        -------
        ColumnDisplay
        """
        fitted = get_fitted(estimator)
        place = column_place(fitted, column)
        values = words_of(fitted, place) or values_of(fitted, place)
        density = density_of_each(fitted.generative, [values])[0]
        counts = counted_column(fitted.counts, values.column)
        evidence = evidence_alone(fitted.model, [values])
        return cls(values, fitted.classes, evidence, density, counts, fitted.counts.class_weight).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the column.

        Parameters
        ----------
        ax : Axes, default=None
            One pair of axes, or two. None: a new figure.

        Returns
        -------
        ColumnDisplay
        """
        above, below = make_panels(ax, 2, 1, (7.0, 5.6))
        places = select_values(self.values, np.abs(self.evidence).max(axis=1))
        self._draw_evidence(above, places)
        self._draw_counts(below, places)
        self._draw_density(below, places)
        name = format_name(self.values.name)
        left_out = len(self.values.cells) - places.size
        rest = f" (the {places.size} most telling of {len(self.values.cells)} values)" if left_out else ""
        endless = " (−∞: never in that class)" if np.isinf(self.evidence[places]).any() else ""
        style_axes(above, f"what {name} says{endless}", y="decibans")
        what = "share" if self.values.kind != "continuous" else "density"
        style_axes(below, "in each class", x=name + rest, y=what)
        for one in (above, below):
            label_values(one, self.values, places)
        below.set_xlim(above.get_xlim())
        above.tick_params(labelbottom=False)
        limits = find_evidence_limits(self.evidence[places], self._chances[places])
        above.set_ylim(limits)
        self._mark_beyond(above, places, limits)
        add_legend(above, outside=True, own=ax is None)
        self.axes_ = [above, below]
        self._remember_axes(above)
        return self

    @property
    def _chances(self) -> Floats:
        """The probability of each value in each class; of a line, of the stretch about each point."""
        if self.values.kind != "continuous" or len(self.values.cells) < 2:
            return self.density
        return self.density * np.gradient(self.values.positions)[:, None]

    def _mark_beyond(self, ax: Axes, places: Integers, limits: tuple[float, float]) -> None:
        """Mark evidence beyond the axis: by ∞, or by a triangle where it is finite; of lines, each stretch once."""
        x, size = get_positions(self.values, places), self.classes.size
        listed = self.values.kind == "categories"
        for c, style in enumerate(get_class_styles(self.classes)):
            said = self.evidence[places, c]
            at = x + (c - (size - 1) / 2.0) * BARS_WIDTH / size if listed else x
            for edge, beyond in zip(limits, (said < limits[0], said > limits[1]), strict=True):
                out = np.flatnonzero(beyond)
                stretches = np.split(out, np.arange(1, out.size) if listed else np.flatnonzero(np.diff(out) > 1) + 1)
                for stretch in (one for one in stretches if one.size):
                    middle, up = float(at[stretch[stretch.size // 2]]), edge > 0.0
                    if not np.isinf(said[stretch]).any():
                        ax.plot(middle, edge, marker="^" if up else "v", color=style.color, clip_on=False, markersize=5)
                        continue
                    look = {"color": style.color, "ha": "center", "va": "top" if up else "bottom"}
                    behind = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
                    ax.annotate("+∞" if up else "−∞", (middle, edge), (0.0, -3.0 if up else 3.0), bbox=behind,
                                textcoords="offset points", **look)  # fmt: skip

    def _draw_evidence(self, ax: Axes, places: Integers) -> None:
        x = get_positions(self.values, places)
        draw_zero_line(ax)
        for c, style in enumerate(get_class_styles(self.classes)):
            y = np.nan_to_num(self.evidence[places, c], posinf=BEYOND_ALL_AXES, neginf=-BEYOND_ALL_AXES)
            options: dict[str, Any] = {"color": style.color, "label": self._label(c)}
            if self.values.kind == "categories":
                self._draw_side_by_side(ax, x, y, c, options)
            else:
                ax.plot(x, y, linestyle=style.line, linewidth=1.6, **options)

    def _draw_side_by_side(self, ax: Axes, x: Floats, y: Floats, c: int, options: dict[str, Any]) -> None:
        """Bars of the classes beside each other; points where there are many classes."""
        size, style = self.classes.size, get_class_styles(self.classes)[c]
        width = BARS_WIDTH / size
        at = x + (c - (size - 1) / 2.0) * width
        if size <= MAX_BAR_CLASSES:
            hatch = {"hatch": style.hatch} if c % 2 else {}
            ax.bar(at, y, width=0.9 * width, edgecolor="white", linewidth=0.0, **hatch, **options)
        else:
            ax.plot(at, y, linestyle="none", marker=style.marker, markersize=4, **options)

    def _draw_density(self, ax: Axes, places: Integers) -> None:
        x = get_positions(self.values, places)
        for c, style in enumerate(get_class_styles(self.classes)):
            y, options = self.density[places, c], {"color": style.color}
            if self.values.kind == "categories":
                self._draw_side_by_side(ax, x, y, c, dict(options))
            else:
                mark = {"marker": style.marker, "markersize": 3} if self.values.kind == "whole" else {}
                ax.plot(x, y, linestyle=style.line, linewidth=1.6, **mark, **options)
        ax.set_ylim(bottom=0.0)

    def _draw_counts(self, ax: Axes, places: Integers) -> None:
        """What was counted, as shares: a histogram behind a density, or a mark beside a bar."""
        if self.counts is None:
            return
        total = np.maximum(self.counts.table.sum(axis=1), 1e-300)
        for c, style in enumerate(get_class_styles(self.classes)):
            if self.counts.low is not None:
                edges, share = self._histogram(c, float(total[c]))
                ax.stairs(share, edges, fill=True, color=style.color, alpha=0.18, linewidth=0.0)
            elif self.values.kind == "categories" and self.classes.size <= MAX_BAR_CLASSES:
                width = BARS_WIDTH / self.classes.size
                at = get_positions(self.values, places) + (c - (self.classes.size - 1) / 2.0) * width
                ax.plot(at, self.counts.table[c, places] / total[c], linestyle="none", marker="_", color="black",
                        markersize=7, zorder=3)  # fmt: skip

    def _histogram(self, c: int, total: float) -> tuple[Floats, Floats]:
        """The edges and densities of a histogram of a class, of few enough bars."""
        assert self.counts is not None, "there are counts"
        assert self.counts.low is not None, "of bins"
        assert self.counts.high is not None, "of bins"
        x = self.values.positions
        edges = np.linspace(float(x[0]), float(x[-1]), MAX_BARS + 1)
        middle = 0.5 * (self.counts.low + self.counts.high)
        width = float(self.counts.high[0] - self.counts.low[0]) if middle.size else 0.0
        if width > edges[1] - edges[0]:  # bins wider than bars are drawn as they are
            edges = np.arange(self.counts.low.min(), self.counts.high.max() + 0.5 * width, width)
        counted, _ = np.histogram(middle, edges, weights=self.counts.table[c])
        return edges, counted / (total * np.diff(edges))

    def _label(self, c: int) -> str:
        rows = "" if self.rows is None else f" ({format_amount(float(self.rows[c]))})"
        return format_name(self.classes.tolist()[c]) + escape_text(rows)

    def to_frame(self) -> Any:
        """Return the plotted values as a table.

        Returns
        -------
        DataFrame
            A row for each value and class: evidence in decibans, density or share, and what was counted of the value.
        """
        values, labels = list(self.values.names), self.classes.tolist()
        known = self.counts is not None and self.counts.levels is not None and self.values.kind == "categories"
        return data_frame(
            {
                "value": [value for value in values for _ in labels],
                "class": [label for _ in values for label in labels],
                "decibans": self.evidence.ravel(),
                "density": self.density.ravel(),
                "count": self.counts.table.T.ravel() if known and self.counts is not None else np.nan,
            }
        )
