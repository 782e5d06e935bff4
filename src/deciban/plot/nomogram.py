"""`NomogramDisplay`: the model as a set of rulers, one per column and one for the probability."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from deciban.errors import Argument, UsageError
from deciban.explain.column_values import (
    ColumnValues,
    compute_evidence_of_each,
    compute_log_odds,
    compute_values_log_joint,
    find_column,
    get_column_values,
)
from deciban.model.fitted import Fitted
from deciban.plot.display import (
    LINE_COLOR,
    MAX_REACH,
    QUIET_COLOR,
    SMALL_SIZE,
    TEXT_SIZE,
    Axes,
    Display,
    escape_text,
    format_name,
    get_fitted,
    make_panels,
    style_axes,
)
from deciban.util.arrays import Floats
from deciban.util.frames import remember_library
from deciban.util.text_tables import DECIBANS, count_noun, shorten

if TYPE_CHECKING:
    from deciban.estimators.classifier import BayesClassifier

# Columns drawn by default.
MAX_RULERS = 12
# Numbers marked on a ruler.
MARKS_PER_RULER = 7
# Characters shown of the name of a mark.
MAX_MARK_WIDTH = 12
# Probabilities marked on the last ruler.
MARKED_CHANCES = (0.0001, 0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 0.9999)
# Probabilities with a short tick and no label.
MINOR_CHANCES = (0.2, 0.3, 0.4, 0.6, 0.7, 0.8)
# Stands for infinite evidence in interpolation between two values.
BEYOND_SCALE = 1e6
# Width of the picture, in inches.
RULER_WIDTH = 8.0
# Width of a character of a mark, in inches.
LETTER_WIDTH = 0.075
# Height of a ruler, in inches.
RULER_HEIGHT = 0.42


class Mark(NamedTuple):
    """Mark on a ruler: the value and its decibans.

    rises: True if the decibans rise with the values here, False if they fall, None if that is not shown. optional: the
    mark is drawn only if its name has room.
    """

    name: str
    decibans: float
    rises: bool | None
    optional: bool = False


class NomogramDisplay(Display):
    """The model as a nomogram: a ruler for each column, and one from the total to the probability.

    Each value of a column is placed at its evidence for a class, in decibans, read on the scale above. A value that
    rules a class out is marked ∞ beyond the scale, and its column comes first. Add up the decibans of a row, 0 for
    missing values, and read the probability on the last ruler. If the evidence of a number partly falls and partly
    rises, the marks of the falling parts are below the line.

    The evidence of a column is its evidence with all others missing. The total is exact for two classes (or one class
    against another) and columns that the model adds up. For one class against several others, and for columns in joint
    blocks or with corrections, it approximates `predict_proba`.

    Parameters
    ----------
    columns : sequence of ColumnValues
        The values of each column, the most informative column first.
    evidence : sequence of ndarray
        The evidence of each value of each column, in decibans.
    prior : float
        The log-odds of the prior, in decibans.
    label : label
        The class to explain.
    against : label, default=None
        The class to compare with. None: all others.
    left_out : int, default=0
        The number of columns that are not drawn.

    Attributes
    ----------
    ax_ : Axes
        The axes of the columns.
    axes_ : list of Axes
        The axes of the columns, and of the total and the probability.
    figure_ : Figure
        The figure.

    See Also
    --------
    EvidenceDisplay : The evidence of one row.
    ColumnDisplay : The evidence of one column.

    Examples
    --------
    >>> from deciban import BayesClassifier
    >>> from deciban.datasets import weather
    >>> from deciban.plot import NomogramDisplay
    >>> clf = BayesClassifier(tune=None).fit(weather(), "play")
    >>> shown = NomogramDisplay.from_estimator(clf)
    >>> [column.name for column in shown.columns], shown.label
    (['outlook', 'humidity', 'wind', 'temperature'], 'yes')
    >>> round(shown.prior, 2), shown.evidence[0].round(1).tolist()
    (2.55, [5.2, -0.5, -3.0])
    """

    def __init__(
        self,
        columns: Sequence[ColumnValues],
        evidence: Sequence[Floats],
        prior: float,
        label: Any,
        against: Any = None,
        left_out: int = 0,
    ) -> None:
        self.columns = list(columns)
        self.evidence = list(evidence)
        self.prior = prior
        self.label = label
        self.against = against
        self.left_out = left_out

    @classmethod
    def from_estimator(
        cls,
        estimator: BayesClassifier,
        *,
        label: Any = None,
        against: Any = None,
        columns: Sequence[Any] | None = None,
        max_display: int = MAX_RULERS,
        ax: Axes | None = None,
    ) -> Self:
        """Draw a fitted classifier.

        Parameters
        ----------
        estimator : BayesClassifier
            A fitted classifier.
        label : label, default=None
            The class to explain. None: the last of `classes_`.
        against : label, default=None
            The class to compare with. None: all others.
        columns : sequence of str or int, default=None
            The columns to draw. None: those with the widest range of evidence. Texts are left out.
        max_display : int, default=12
            The number of columns to draw if `columns` is None.
        ax : Axes, default=None
            One pair of axes, or two. None: a new figure.

        Returns
        -------
        NomogramDisplay
        """
        fitted = get_fitted(estimator)
        if fitted.classes.size == 1:
            raise UsageError("the model has one class, but a nomogram needs two")
        place = fitted.classes.size - 1 if label is None else fitted.class_index(label)
        if against is None and fitted.classes.size == 2:
            against = fitted.classes.tolist()[1 - place]
        other = None if against is None else fitted.class_index(against)
        if other == place:
            raise UsageError((Argument("against", against), " is the class itself"), remedy="choose a different class")
        values = _list_column_values(fitted, columns)
        decibans = [evidence[:, place] for evidence in compute_evidence_of_each(fitted.model, values, other)]
        kept = list(range(len(values)))
        if columns is None:
            kept = sorted(kept, key=lambda k: (not np.isinf(decibans[k]).any(), -_measure_range(decibans[k])))[
                :max_display
            ]
        prior = float(DECIBANS * compute_log_odds(compute_values_log_joint(fitted.model, []), other)[0, place])
        left_out = fitted.counts.schema.width - len(kept)
        shown = [values[k] for k in kept], [decibans[k] for k in kept]
        drawn = cls(*shown, prior, fitted.classes.tolist()[place], against, left_out)
        return remember_library(drawn, estimator).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the rulers.

        Parameters
        ----------
        ax : Axes, default=None
            One pair of axes, or two. None: a new figure.

        Returns
        -------
        NomogramDisplay
        """
        heights = (max(len(self.columns), 1) + 0.6, 2.0)
        rulers, sums = make_panels(ax, 2, 1, (RULER_WIDTH, RULER_HEIGHT * sum(heights) + 0.9), heights)
        self._draw_columns(rulers)
        self._draw_sum(sums)
        self.axes_ = [rulers, sums]
        self._remember_axes(rulers)
        return self

    def _draw_columns(self, ax: Axes) -> None:
        low, high = self._find_reach()
        infinite = {side: any((decibans == side * np.inf).any() for decibans in self.evidence) for side in (-1, 1)}
        step = 0.14 * (high - low)  # from the scale to the place of infinite values, and from there to the edge
        left, right = low - 2.0 * step * infinite[-1], high + 2.0 * step * infinite[1]
        ax.set_xlim(left, right)
        ax.set_ylim(len(self.columns) - 0.35, -0.75)
        beyond = False
        room = LETTER_WIDTH * (right - left) / (0.72 * RULER_WIDTH)
        for row, (values, decibans) in enumerate(zip(self.columns, self.evidence, strict=True)):
            inside = np.clip(decibans, low, high)
            ax.plot([inside.min(), inside.max()], [row, row], color="black", linewidth=1.0, solid_capstyle="butt")
            marks = list_marks(values, decibans)
            _draw_marks(ax, row, [mark for mark in marks if low <= mark.decibans <= high], room)
            for side, edge in ((-1, low), (1, high)):
                if (decibans == side * np.inf).any():
                    values_there = ", ".join(mark.name for mark in marks if mark.decibans == side * np.inf)
                    _draw_infinite(ax, row, edge, side * step, shorten(values_there, MAX_MARK_WIDTH + 8))
                elif (side * decibans > side * edge).any():  # cut off at the end of the scale
                    ax.plot(edge, row, marker=">" if side > 0 else "<", color="black", markersize=5, clip_on=False)
                    beyond |= True
        names = [format_name(values.name) for values in self.columns]
        against = "all others" if self.against is None else format_name(self.against)
        rest = f" ({count_noun(self.left_out, 'column')} not drawn)" if self.left_out else ""
        style_axes(ax, f"Nomogram: evidence for {format_name(self.label)} against {against}{rest}")
        ax.xaxis.set_ticks_position("top")
        ax.xaxis.set_label_position("top")
        ruled_out = {1: f"+∞ rules out {against}", -1: f"−∞ rules out {format_name(self.label)}"}
        notes = [text for side, text in ruled_out.items() if infinite[side]]
        ends = ["arrowheads: continues beyond the scale"] if beyond else []
        ax.set_xlabel("; ".join(["decibans", *notes, *ends]), fontsize=TEXT_SIZE)
        if notes:  # the scale ends before the infinite values
            ax.set_xticks([tick for tick in ax.get_xticks() if low <= tick <= high])
        ax.set_yticks(range(len(names)), names, fontsize=TEXT_SIZE)
        ax.tick_params(axis="y", length=0)
        ax.grid(axis="x", color=LINE_COLOR, linewidth=0.6)
        ax.set_axisbelow(True)
        for spine, visible in (("top", True), ("bottom", False), ("left", False)):
            ax.spines[spine].set_visible(visible)

    def _draw_sum(self, ax: Axes) -> None:
        """Draw the ruler of the total above that of the probability."""
        chances = np.array(MARKED_CHANCES)
        at = DECIBANS * np.log(chances / (1.0 - chances)) - self.prior
        ax.set_xlim(at[0], at[-1])
        ax.set_ylim(0.0, 1.0)
        for side in ("left", "right", "bottom"):
            ax.spines[side].set_visible(False)
        ax.xaxis.set_ticks_position("top")
        ax.tick_params(labelsize=SMALL_SIZE)
        ax.set_yticks([0.98, 0.56], ["total decibans", f"P({format_name(self.label)})"], fontsize=TEXT_SIZE)
        ax.tick_params(axis="y", length=0)
        ax.plot(at[[0, -1]], [0.56, 0.56], color="black", linewidth=1.0)
        for chance in MINOR_CHANCES:
            x = DECIBANS * np.log(chance / (1.0 - chance)) - self.prior
            ax.plot([x, x], [0.53, 0.56], color="black", linewidth=0.8)
        for chance, x in zip(chances, at, strict=True):
            ax.plot([x, x], [0.5, 0.56], color="black", linewidth=1.0)
            ax.text(x, 0.46, f"{100.0 * chance:g}%", ha="center", va="top", fontsize=SMALL_SIZE)
        how = "Add up the decibans of all columns (0 for missing values) and read the probability under the total."
        ax.text(0.0, 0.0, how, transform=ax.transAxes, va="bottom", fontsize=SMALL_SIZE, color=QUIET_COLOR)

    def _find_reach(self) -> tuple[float, float]:
        """Return the limits of the scale of the columns."""
        finite = [decibans[np.isfinite(decibans)] for decibans in self.evidence]
        everything = np.clip(np.concatenate([*finite, np.array([-1.0, 1.0])]), -MAX_REACH, MAX_REACH)
        low, high = float(everything.min()), float(everything.max())
        room = 0.04 * (high - low)
        return low - room, high + room

    def _columns(self) -> dict[str, Any]:
        """Return a row for each value of each column, with its decibans."""
        pairs = list(zip(self.columns, self.evidence, strict=True))
        return {
            "column": [values.name for values, _ in pairs for _ in values.names],
            "value": [name for values, _ in pairs for name in values.names],
            "decibans": np.concatenate([decibans for _, decibans in pairs]) if pairs else [],
        }


def list_marks(values: ColumnValues, decibans: Floats) -> list[Mark]:
    """Return the marks of a ruler: all categories, or round numbers."""
    finite = np.clip(decibans, -BEYOND_SCALE, BEYOND_SCALE)
    slope = np.gradient(finite) if decibans.size > 1 else np.ones(decibans.size)
    one_way = values.numbers is None or bool((slope >= 0.0).all() or (slope <= 0.0).all())

    def mark(name: str, at: float, rising: float, optional: bool = False) -> Mark:
        return Mark(escape_text(name, MAX_MARK_WIDTH), float(at), None if one_way else rising >= 0.0, optional)

    if values.kind == "categories" or values.numbers is None:
        return [mark(name, decibans[k], slope[k]) for k, name in enumerate(values.names)]
    from matplotlib.ticker import MaxNLocator

    numbers = values.numbers
    if values.dates:
        chosen = np.linspace(0, numbers.size - 1, MARKS_PER_RULER).astype(np.int64)
        return [mark(values.names[k][:10], decibans[k], slope[k], True) for k in chosen]
    even = MaxNLocator(MARKS_PER_RULER).tick_values(numbers[0], numbers[-1])
    largest = np.abs(numbers[[0, -1]]).max()
    powers = 10.0 ** np.arange(np.floor(np.log10(largest)), -7.0, -1.0) if largest > 0.0 else np.zeros(0)
    uneven = (powers[:, None] * [5.0, 2.0, 1.0]).ravel()  # where the evidence of small numbers differs
    if values.kind == "whole":
        uneven = uneven[uneven >= 1.0]
    round_ones = np.array([*dict.fromkeys(float(f"{x:.6g}") for x in [*even, *uneven, *-uneven])])
    inside = round_ones[(round_ones >= numbers[0]) & (round_ones <= numbers[-1])]
    at, rises = np.interp(inside, numbers, finite), np.interp(inside, numbers, slope)
    nearest = decibans[np.abs(numbers[:, None] - inside).argmin(axis=0)]
    at = np.where(np.isinf(nearest), nearest, at)
    return [mark(f"{x:.6g}", y, up, True) for x, y, up in zip(inside, at, rises, strict=True)]


def _draw_infinite(ax: Axes, row: int, edge: float, step: float, names: str) -> None:
    """Draw an arrow from the end of the scale to the names of values of infinite evidence."""
    arrow = {"arrowstyle": "-|>", "color": "black", "linewidth": 1.0, "shrinkA": 0.0, "shrinkB": 0.0}
    ax.annotate("", (edge + step, row), (edge, row), arrowprops=arrow)
    text = f"{names} {'+∞' if step > 0.0 else '−∞'}".strip()
    ax.text(edge + step, row - 0.14, text, ha="center", va="bottom", fontsize=SMALL_SIZE - 1)


def _draw_marks(ax: Axes, row: int, marks: Sequence[Mark], room: float) -> None:
    """Draw marks above the line if the evidence rises, below if it falls, else where their names have room.

    The two ends of the line come first, on either side: without their names the line could not be read.
    """
    named: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
    ends = sorted({int(find([mark.decibans for mark in marks])) for find in (np.argmin, np.argmax)}) if marks else []
    for k in [*ends, *(k for k in range(len(marks)) if k not in ends)]:
        mark = marks[k]
        half = 0.5 * room * (len(mark.name) + 1)
        sides = (True, False) if mark.rises is None else (mark.rises, not mark.rises)[: 2 if k in ends else 1]
        free = [side for side in sides if all(abs(mark.decibans - at) >= half + other for at, other in named[side])]
        if mark.optional and not free:
            continue
        above = (free or sides)[0]
        side = -1.0 if above else 1.0
        ax.plot([mark.decibans] * 2, [row, row + 0.12 * side], color="black", linewidth=0.8)
        if free:
            align = "bottom" if above else "top"
            ax.text(mark.decibans, row + 0.14 * side, mark.name, ha="center", va=align, fontsize=SMALL_SIZE - 1)
            named[above].append((mark.decibans, half))


def _list_column_values(fitted: Fitted, columns: Sequence[Any] | None) -> list[ColumnValues]:
    """Return the values of these columns, or of all columns that have values."""
    draws: dict[int, list[Any]] = {}
    if columns is not None:
        return [get_column_values(fitted, find_column(fitted, column), draws=draws) for column in columns]
    listed = []
    for column in range(fitted.counts.schema.width):
        try:
            listed.append(get_column_values(fitted, column, draws=draws))
        except UsageError:  # texts, and columns without cells
            continue
    if not listed:
        raise UsageError("no column has values to draw", remedy="use top_words() for texts")
    return listed


def _measure_range(decibans: Floats) -> float:
    """Return the range of the evidence of a column, within the scale."""
    finite = np.clip(decibans[np.isfinite(decibans)], -MAX_REACH, MAX_REACH)
    return float(finite.max() - finite.min()) if finite.size else 0.0
