"""`ColumnDisplay`: the evidence of a column over its values, and its distribution in each class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from deciban.explain.column_values import (
    ColumnCounts,
    ColumnValues,
    compute_density_of_each,
    compute_evidence_alone,
    find_column,
    find_column_counts,
    find_density_limit,
    get_column_values,
    get_text_words,
)
from deciban.plot.display import (
    TEXT_SIZE,
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
    mark_peaks,
    select_values,
    style_axes,
)
from deciban.tables.labels import LabelArray
from deciban.util.arrays import Floats, Integers
from deciban.util.frames import remember_library
from deciban.util.text_tables import count_noun

if TYPE_CHECKING:
    from deciban.estimators.classifier import BayesClassifier

# Bars of a histogram behind a density.
MAX_BARS = 60
# More classes are drawn as points instead of bars.
MAX_BAR_CLASSES = 6
# Width of the bars of all classes of a category.
BARS_WIDTH = 0.8
# Infinite evidence is drawn as this number of decibans: the axis ends before.
BEYOND_ALL_AXES = 1e4


class ColumnDisplay(Display):
    """Evidence of a column for each class over its values, above its distribution within the classes.

    The upper panel shows the evidence in decibans for each class against all others together, with all other columns
    missing. The lower panel shows the densities (for categories, the shares) of the family that the model uses for the
    column, and behind them the counted values. For a column that is only in a joint block, it is the marginal. All of
    it is computed from counts; no rows are needed. For texts, the most characteristic words are shown, each as a text
    of one word.

    Parameters
    ----------
    values : ColumnValues
        The values of the column, with their names.
    classes : ndarray of shape (n_classes,)
        The classes.
    evidence : ndarray of shape (n_values, n_classes)
        The evidence of each value for each class, in decibans.
    density : ndarray of shape (n_values, n_classes)
        P(value | class), or its density.
    counts : ColumnCounts or None, default=None
        The counts of each value, or of each bin, in each class. None: only sums were kept.
    rows : ndarray of shape (n_classes,), default=None
        The weight of the rows of each class. None: unknown.

    Attributes
    ----------
    ax_ : Axes
        The axes of the evidence.
    axes_ : list of Axes
        The axes of the evidence and of the densities.
    figure_ : Figure
        The figure.

    See Also
    --------
    PairDisplay : The joint evidence of two columns.
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
    def from_estimator(cls, estimator: BayesClassifier, column: str | int = 0, *, ax: Axes | None = None) -> Self:
        """Draw a column of a fitted classifier.

        Parameters
        ----------
        estimator : BayesClassifier
            A fitted classifier.
        column : str or int, default=0
            The name or the position of the column.
        ax : Axes, default=None
            One pair of axes, or two. None: a new figure.

        Returns
        -------
        ColumnDisplay
        """
        fitted = get_fitted(estimator)
        place = find_column(fitted, column)
        values = get_text_words(fitted, place) or get_column_values(fitted, place)
        density = compute_density_of_each(fitted.generative, [values])[0]
        counts = find_column_counts(fitted.counts, values.column)
        evidence = compute_evidence_alone(fitted.model, [values])
        shown = cls(values, fitted.classes, evidence, density, counts, fitted.counts.class_weight)
        return remember_library(shown, estimator).plot(ax)

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
        size = len(self.values.cells)
        rest = f" (the {places.size} of {size} values with the strongest evidence)" if places.size < size else ""
        infinite = " (−∞: never seen in that class)" if np.isinf(self.evidence[places]).any() else ""
        style_axes(above, f"Evidence of {name}{infinite}", y="decibans for each class", pad=10.0 if infinite else None)
        what = "probability" if self.values.kind != "continuous" else "density"
        style_axes(below, "Distribution within each class", x=name + rest, y=what)
        for one in (above, below):
            label_values(one, self.values, places)
        below.set_xlim(above.get_xlim())
        above.tick_params(labelbottom=False)
        limits = find_evidence_limits(self.evidence[places], self._chances[places])
        above.set_ylim(limits)
        self._mark_beyond(above, places, limits)
        handles = [*above.get_legend_handles_labels()[0], *below.get_legend_handles_labels()[0]]
        add_legend(above, handles, outside=True, own=ax is None)
        self.axes_ = [above, below]
        self._remember_axes(above)
        return self

    @property
    def _chances(self) -> Floats:
        """Probability of each value in each class; for numbers, of the interval around each point."""
        if self.values.kind != "continuous" or len(self.values.cells) < 2:
            return self.density
        return self.density * np.gradient(self.values.positions)[:, None]

    def _mark_beyond(self, ax: Axes, places: Integers, limits: tuple[float, float]) -> None:
        """Mark evidence beyond the axis with a triangle, and infinite evidence also with ∞; a run of points once."""
        x, size = get_positions(self.values, places), self.classes.size
        listed = self.values.kind == "categories"
        for c, style in enumerate(get_class_styles(self.classes)):
            evidence = self.evidence[places, c]
            at = x + (c - (size - 1) / 2.0) * BARS_WIDTH / size if listed else x
            for edge, beyond in zip(limits, (evidence < limits[0], evidence > limits[1]), strict=True):
                out = np.flatnonzero(beyond)
                stretches = np.split(out, np.arange(1, out.size) if listed else np.flatnonzero(np.diff(out) > 1) + 1)
                for stretch in (one for one in stretches if one.size):
                    middle, up = float(at[stretch[stretch.size // 2]]), edge > 0.0
                    infinite = bool(np.isinf(evidence[stretch]).any())
                    arrow = {"marker": "^" if up else "v", "markersize": 11 if infinite and listed else 5}
                    ax.plot(middle, edge, color=style.color, clip_on=False, zorder=4, **arrow)
                    if infinite:
                        look = {"color": "white" if listed else style.color, "ha": "center", "va": "center"}
                        away = (0.0, -14.0 if up else 14.0)
                        ax.annotate("+∞" if up else "−∞", (middle, edge), away, textcoords="offset points",
                                    fontsize=TEXT_SIZE, fontweight="bold", **look)  # fmt: skip

    def _draw_evidence(self, ax: Axes, places: Integers) -> None:
        x = get_positions(self.values, places)
        draw_zero_line(ax)
        for c, style in enumerate(get_class_styles(self.classes)):
            y = np.nan_to_num(self.evidence[places, c], posinf=BEYOND_ALL_AXES, neginf=-BEYOND_ALL_AXES)
            options: dict[str, Any] = {"color": style.color, "label": self._make_label(c)}
            if self.values.kind == "categories":
                self._draw_side_by_side(ax, x, y, c, options)
            else:
                ax.plot(x, y, linestyle=style.line, linewidth=1.6, **options)

    def _draw_side_by_side(self, ax: Axes, x: Floats, y: Floats, c: int, options: dict[str, Any]) -> None:
        """Draw the bars of the classes side by side, or points if there are many classes."""
        size, style = self.classes.size, get_class_styles(self.classes)[c]
        width = BARS_WIDTH / size
        at = x + (c - (size - 1) / 2.0) * width
        if size <= MAX_BAR_CLASSES:
            ax.bar(at, y, width=0.92 * width, linewidth=0.0, **options)
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
        if self.values.kind == "continuous" and len(x):
            density = np.where(np.isfinite(self.density[places]), self.density[places], 0.0)
            if (top := find_density_limit(x, density)) < density.max():
                ax.set_ylim(0.0, top)
                mark_peaks(ax, x, density, top, self.classes)

    def _draw_counts(self, ax: Axes, places: Integers) -> None:
        """Draw the counted shares: a histogram behind a density, or a tick on each bar."""
        if self.counts is None:
            return
        total = np.maximum(self.counts.table.sum(axis=1), 1e-300)
        for c, style in enumerate(get_class_styles(self.classes)):
            if self.counts.low is not None:
                edges, share = self._make_histogram(c, float(total[c]))
                ax.stairs(share, edges, fill=True, color=style.color, alpha=0.18, linewidth=0.0)
            elif self.values.kind == "categories" and self.classes.size <= MAX_BAR_CLASSES:
                width = BARS_WIDTH / self.classes.size
                at = get_positions(self.values, places) + (c - (self.classes.size - 1) / 2.0) * width
                ax.plot(at, self.counts.table[c, places] / total[c], linestyle="none", marker="_", color="black",
                        markersize=9, markeredgewidth=1.6, zorder=3, label=None if c else "counted share")  # fmt: skip

    def _make_histogram(self, c: int, total: float) -> tuple[Floats, Floats]:
        """Return the edges and the densities of a histogram of a class."""
        assert self.counts is not None, "there are counts"
        assert self.counts.low is not None, "of bins"
        assert self.counts.high is not None, "of bins"
        x = self.values.positions
        edges = np.linspace(float(x[0]), float(x[-1]), MAX_BARS + 1)
        middle = 0.5 * (self.counts.low + self.counts.high)
        width = float(self.counts.high[0] - self.counts.low[0]) if middle.size else 0.0
        if width > edges[1] - edges[0]:  # bins wider than the bars are kept
            edges = np.arange(self.counts.low.min(), self.counts.high.max() + 0.5 * width, width)
        counted, _ = np.histogram(middle, edges, weights=self.counts.table[c])
        return edges, counted / (total * np.diff(edges))

    def _make_label(self, c: int) -> str:
        rows = "" if self.rows is None else f" ({count_noun(float(self.rows[c]), 'row')})"
        return format_name(self.classes.tolist()[c]) + escape_text(rows)

    def _columns(self) -> dict[str, Any]:
        """Return a row for each value and class: evidence in decibans, density or probability, and count."""
        values, labels = list(self.values.names), self.classes.tolist()
        known = self.counts is not None and self.counts.levels is not None and self.values.kind == "categories"
        return {
            "value": [value for value in values for _ in labels],
            "class": [label for _ in values for label in labels],
            "decibans": self.evidence.ravel(),
            "density": self.density.ravel(),
            "count": self.counts.table.T.ravel()
            if known and self.counts is not None
            else np.full(self.evidence.size, np.nan),
        }
