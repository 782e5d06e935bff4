"""`EvidenceDisplay`: the evidence behind one prediction, from the prior to the posterior."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from deciban.errors import Argument, UsageError
from deciban.explain.calculation import clip_infinite, format_decibans
from deciban.explain.columns import compute_column_evidence, format_cell, read_row_values
from deciban.plot.display import (
    LINE_COLOR,
    QUIET_COLOR,
    SMALL_SIZE,
    TEXT_SIZE,
    Axes,
    Display,
    draw_zero_line,
    escape_text,
    format_name,
    get_fitted,
    make_axes,
    style_axes,
)
from deciban.scoring.predict import align_rows
from deciban.typing import Table
from deciban.util.arrays import Floats
from deciban.util.frames import remember_library
from deciban.util.text_tables import DECIBANS, count_noun, format_class, format_probability, shorten
from deciban.web.palette import AGAINST_COLOR, FOR_COLOR

if TYPE_CHECKING:
    from deciban.estimators.classifier import BayesClassifier

# Columns with a bar of their own; the others share one.
MAX_COLUMNS_DRAWN = 12
# Less evidence, in decibans, would be drawn as 0.0 and has no bar of its own.
MIN_DECIBANS_DRAWN = 0.05
# Characters shown of the name of a column.
MAX_NAME_WIDTH = 28
# Characters shown of a cell.
MAX_CELL_WIDTH = 16
# Probabilities on the upper axis, with their labels.
UPPER_CHANCES = {
    1e-9: "10⁻⁹", 1e-6: "10⁻⁶", 1e-4: "0.01%", 1e-3: "0.1%", 0.01: "1%", 0.1: "10%", 0.5: "50%", 0.9: "90%",
    0.99: "99%", 0.999: "99.9%", 0.9999: "99.99%", 1.0 - 1e-6: "1 − 10⁻⁶", 1.0 - 1e-9: "1 − 10⁻⁹",
}  # fmt: skip
# Further probabilities, shown if there is room.
EXTRA_CHANCES = {0.2: "20%", 0.8: "80%", 0.05: "5%", 0.95: "95%"}


class EvidenceDisplay(Display):
    """Waterfall chart of one row: from the prior, through the evidence of each column, to the posterior.

    Each bar is the evidence of a column for one class against another, in decibans, as in `explain`: its own evidence,
    its share of joint blocks, and its correction. The upper axis shows the probability of the class among the two.

    Parameters
    ----------
    names : sequence of str
        The label of each column, such as "outlook = sunny".
    decibans : ndarray of shape (n_columns,)
        The evidence of each column.
    prior : float
        The evidence of the prior, in decibans.
    label, against : label
        The class to explain, and the class to compare with.
    posterior : float
        The probability of `label` among all classes.
    max_display : int, default=12
        The number of columns with a bar of their own. The others share one bar.
    limit : float, default=0.0
        The decibans by which the limit of a tuned model changes the sum.

    Attributes
    ----------
    bars : list of (str, float, float)
        The name, the start and the end of each bar.
    ax_, figure_ : Axes, Figure
        The axes and the figure.

    See Also
    --------
    BayesClassifier.explain : The same evidence as text.
    NomogramDisplay : The evidence of every value.

    Examples
    --------
    >>> from deciban import BayesClassifier
    >>> from deciban.datasets import weather
    >>> from deciban.plot import EvidenceDisplay
    >>> clf = BayesClassifier(tune=None).fit(weather(), "play")
    >>> shown = EvidenceDisplay.from_estimator(clf, [{"outlook": "overcast", "wind": "strong"}])
    >>> shown.label, [(name, round(end - start, 1)) for name, start, end in shown.bars[:3]]
    ('yes', [('prior', 2.6), ('outlook = overcast', 5.2), ('wind = strong', -2.0)])
    """

    def __init__(
        self,
        names: Sequence[str],
        decibans: Floats,
        prior: float,
        label: Any,
        against: Any,
        posterior: float,
        max_display: int = MAX_COLUMNS_DRAWN,
        limit: float = 0.0,
    ) -> None:
        self.names = list(names)
        self.decibans = np.asarray(decibans, dtype=np.float64)
        self.prior = prior
        self.label = label
        self.against = against
        self.posterior = posterior
        self.max_display = max_display
        self.limit = limit

    @classmethod
    def from_estimator(
        cls,
        estimator: BayesClassifier,
        X: Table,
        row: int = 0,
        *,
        label: Any = None,
        against: Any = None,
        max_display: int = MAX_COLUMNS_DRAWN,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the evidence of one row of a table.

        Parameters
        ----------
        estimator : BayesClassifier
            A fitted classifier.
        X : table
            Rows, as in `predict`.
        row : int, default=0
            The position of the row, counted from 0.
        label : label, default=None
            The class to explain. None: the most probable class.
        against : label, default=None
            The class to compare with. None: the most probable of the others.
        max_display : int, default=12
            The number of columns with a bar of their own. The others share one bar.
        ax : Axes, default=None
            The axes to draw on. None: a new figure.

        Returns
        -------
        EvidenceDisplay
        """
        fitted = get_fitted(estimator)
        table = align_rows(fitted, X)
        if not 0 <= row < table.rows:
            raise UsageError(
                f"out of range: the table has {count_noun(table.rows, 'row')}, counted from 0",
                parameter=Argument("row", row),
            )
        one = table.slice(row, row + 1)
        found = compute_column_evidence(fitted.model, one, fitted.model.evidence(one))
        order = np.argsort(-found.log_posterior[0], kind="stable")
        best = int(order[0]) if label is None else fitted.class_index(label)
        other = next((int(c) for c in order if c != best), None) if against is None else fitted.class_index(against)
        if other is None or other == best:
            raise UsageError("evidence compares two classes", remedy="choose two different classes")
        with np.errstate(invalid="ignore"):
            evidence = DECIBANS * (found.values[0, :, best] - found.values[0, :, other])
            prior = float(DECIBANS * (found.log_prior[best] - found.log_prior[other]))
        cells = [_format_cell(value) for value in read_row_values(one)]
        names = [
            f"{shorten(name, MAX_NAME_WIDTH)} = {shorten(cell, MAX_CELL_WIDTH)}"
            for name, cell in zip(found.columns, cells, strict=True)
        ]
        labels = fitted.classes.tolist()
        chance = float(np.exp(found.log_posterior[0, best]))
        evidence = np.where(np.isnan(evidence), 0.0, evidence)  # impossible in both classes
        limit = float(DECIBANS * (found.raised[0, best] - found.raised[0, other]))
        shown = cls(names, evidence, prior, labels[best], labels[other], chance, max_display, limit)
        return remember_library(shown, X, estimator).plot(ax)

    @property
    def steps(self) -> list[tuple[str, float]]:
        """Name and decibans of each bar except the sum: prior, columns, other columns, and the limit if it is not 0."""
        order = np.argsort(-np.abs(self.decibans), kind="stable")
        telling = [k for k in order if self.decibans[k] != 0.0]
        most = min(self.max_display, int((np.abs(self.decibans) >= MIN_DECIBANS_DRAWN).sum()))
        kept = telling if len(telling) == most + 1 else telling[:most]  # a single other column gets its own bar
        steps = [("prior", self.prior), *((self.names[k], float(self.decibans[k])) for k in kept)]
        if rest := telling[len(kept) :]:
            steps.append((count_noun(len(self.names) - len(kept), "other column"), float(self.decibans[rest].sum())))
        if self.limit != 0.0:
            steps.append(("limit", self.limit))
        return steps

    @property
    def bars(self) -> list[tuple[str, float, float]]:
        """Name, start and end of each bar. Infinite evidence is cut off."""
        steps, bars, total = self.steps, [], 0.0
        for (name, _), step in zip(steps, clip_infinite([step for _, step in steps]), strict=True):
            bars.append((name, total, total + step))
            total += step
        return [*bars, ("sum", 0.0, total)]

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the waterfall chart.

        Parameters
        ----------
        ax : Axes, default=None
            The axes to draw on. None: a new figure.

        Returns
        -------
        EvidenceDisplay
        """
        bars, decibans = self.bars, self._decibans_of_bars
        ax = make_axes(ax, (7.5, 0.3 * len(bars) + 1.6))
        draw_zero_line(ax, vertical=True)
        for row, (_, start, end) in enumerate(bars):
            color = QUIET_COLOR if row in (0, len(bars) - 1) else _choose_color(end - start)
            ax.barh(row, end - start, left=start, height=0.7, color=color, linewidth=0.0)
            if row + 1 < len(bars):
                ax.plot([end, end], [row - 0.35, row + 1.35], color=LINE_COLOR, linewidth=0.8, zorder=0)  # to the next
            side = 1.0 if end >= start else -1.0
            infinite = bool(np.isinf(decibans[row]))
            if infinite:  # an arrow: the bar has no end
                ax.plot(end, row, marker=">" if side > 0.0 else "<", markersize=12, color=color, clip_on=False)
            away = (9.0 if infinite else 3.0) * side
            rounded = decibans[row] if abs(decibans[row]) >= MIN_DECIBANS_DRAWN else 0.0  # not −0.0
            ax.annotate(format_decibans(rounded), (end, row), (away, 0.0), textcoords="offset points",
                        va="center", ha="left" if side > 0.0 else "right", fontsize=SMALL_SIZE)  # fmt: skip
        ends = [end for _, *both in bars for end in both]
        room = max(0.11 * (max(ends) - min(ends)), 0.5)
        ax.set_xlim(min(ends) - room, max(ends) + room)
        ax.set_ylim(len(bars) - 0.4, -0.6)
        ax.set_yticks(range(len(bars)), [escape_text(name) for name, _, _ in bars], fontsize=TEXT_SIZE)
        ax.tick_params(axis="y", length=0)
        label, chance = format_name(self.label), format_probability(self.posterior)
        equals = chance if chance[0] in "<>" else f"= {chance}"
        style_axes(ax, f"Evidence by column: P({label}) {equals}",
                   f"decibans for {label} against {format_name(self.against)}")  # fmt: skip
        self._mark_chances(ax)
        self._remember_axes(ax)
        return self

    @property
    def _decibans_of_bars(self) -> list[float]:
        """Decibans of each bar, the sum last."""
        each = [decibans for _, decibans in self.steps]
        return [*each, sum(each)]

    def _mark_chances(self, ax: Axes) -> None:
        """Label the upper axis with the probability of the class among the two."""
        low, high = ax.get_xlim()
        letter = 0.014 * (high - low)
        shown: list[tuple[float, str]] = []
        for chance, text in (UPPER_CHANCES | EXTRA_CHANCES).items():
            x = float(DECIBANS * np.log(chance / (1.0 - chance)))
            if low <= x <= high and all(2.0 * abs(x - at) > letter * (len(text) + len(one) + 2) for at, one in shown):
                shown.append((x, text))
        upper = ax.secondary_xaxis("top")
        upper.set_xticks([x for x, _ in shown], [text for _, text in shown], fontsize=SMALL_SIZE)
        upper.set_xlabel(f"probability of {format_name(self.label)} against {format_name(self.against)}",
                         fontsize=SMALL_SIZE, color=QUIET_COLOR)  # fmt: skip
        upper.spines["top"].set_color(LINE_COLOR)

    def _columns(self) -> dict[str, Any]:
        """Return a row for each bar: name, decibans, start, end, and P(class) among the two classes after it."""
        bars = self.bars
        ends = np.array([end for _, _, end in bars])
        return {
            "term": [name for name, _, _ in bars],
            "decibans": self._decibans_of_bars,
            "start": [start for _, start, _ in bars],
            "end": ends,
            "probability": 1.0 / (1.0 + np.exp(-ends / DECIBANS)),
        }


def _format_cell(value: Any) -> str:
    """Format a cell for the label of a bar."""
    return format_class(value) if isinstance(value, bool) else format_cell(value)


def _choose_color(step: float) -> str:
    return FOR_COLOR if step >= 0.0 else AGAINST_COLOR
