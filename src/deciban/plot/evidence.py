"""`EvidenceDisplay`: the sum that makes a prediction, from the prior to the posterior."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from deciban.errors import Argument, UsageError
from deciban.explain.calculation import cut_endless, signed
from deciban.explain.columns import column_evidence, values_of_row, written_cell
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
from deciban.util.arrays import Floats
from deciban.util.frames import data_frame
from deciban.util.text_tables import DECIBANS, count_noun, format_class, format_digits, shorten
from deciban.web.palette import AGAINST_COLOR, FOR_COLOR

# Columns that have a bar of their own, places of a column's name and of its cell, and the probabilities that the upper
# axis is marked with.
MAX_COLUMNS_DRAWN = 12
NAME_PLACES, CELL_PLACES = 28, 16
UPPER_CHANCES = (1e-9, 1e-6, 1e-4, 1e-3, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 0.9999, 1.0 - 1e-6, 1.0 - 1e-9)


class EvidenceDisplay(Display):
    """A waterfall of one row: from the prior, by what each column says, to the posterior.

    Each bar is what a column says for one class against another, in decibans, exactly as `explain` has it: its own
    block, its share of joint blocks, its correction. The upper axis is the probability of the one among the two.

    Parameters
    ----------
    names : sequence of str
        What each column is, such as "outlook = sunny".
    decibans : ndarray of shape (n_columns,)
        What each column says.
    prior : float
        What the prior says, in decibans.
    label, against : label
        The class that evidence speaks for, and the one against.
    posterior : float
        The probability of the class among all.
    max_display : int, default=12
        How many columns have a bar of their own; the others have one together.

    Attributes
    ----------
    bars : list of (str, float, float)
        The name of each bar, where it starts, and where it ends.
    ax_, figure_ : Axes, Figure
        The axes and the figure.

    See Also
    --------
    BayesClassifier.explain : The same as text.
    NomogramDisplay : What every value is worth.

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
    ) -> None:
        self.names = list(names)
        self.decibans = np.asarray(decibans, dtype=np.float64)
        self.prior = prior
        self.label = label
        self.against = against
        self.posterior = posterior
        self.max_display = max_display

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        row: int = 0,
        *,
        label: Any = None,
        against: Any = None,
        max_display: int = MAX_COLUMNS_DRAWN,
        ax: Axes | None = None,
    ) -> Self:
        """Draw a row of a table.

        Parameters
        ----------
        estimator : BayesClassifier
            A fitted classifier.
        X : table
            Rows, as for `predict`.
        row : int, default=0
            Which of them.
        label : label, default=None
            The class that evidence speaks for. None: the most probable one.
        against : label, default=None
            The class that it speaks against. None: the most probable of the others.
        max_display : int, default=12
            How many columns have a bar of their own; the others have one together.
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
                f"the table has {count_noun(table.rows, 'row')}, counted from 0", parameter=Argument("row", row)
            )
        one = table.slice(row, row + 1)
        found = column_evidence(fitted.model, one, fitted.model.evidence(one))
        order = np.argsort(-found.log_posterior[0], kind="stable")
        best = int(order[0]) if label is None else fitted.class_index(label)
        other = next((int(c) for c in order if c != best), None) if against is None else fitted.class_index(against)
        if other is None or other == best:
            raise UsageError("evidence speaks for one class against another", remedy="give two classes that differ")
        with np.errstate(invalid="ignore"):
            said = DECIBANS * (found.values[0, :, best] - found.values[0, :, other])
            prior = float(DECIBANS * (found.log_prior[best] - found.log_prior[other]))
        cells = [_format_cell(value) for value in values_of_row(one)]
        names = [
            f"{shorten(name, NAME_PLACES)} = {shorten(cell, CELL_PLACES)}"
            for name, cell in zip(found.columns, cells, strict=True)
        ]
        labels = fitted.classes.tolist()
        chance = float(np.exp(found.log_posterior[0, best]))
        said = np.where(np.isnan(said), 0.0, said)  # what no class can say is said by none
        return cls(names, said, prior, labels[best], labels[other], chance, max_display).plot(ax)

    @property
    def steps(self) -> list[tuple[str, float]]:
        """The name and the decibans of each bar but the sum: prior, columns, others."""
        order = np.argsort(-np.abs(self.decibans), kind="stable")
        telling = [k for k in order if self.decibans[k] != 0.0]
        kept = (
            telling if len(telling) == self.max_display + 1 else telling[: self.max_display]
        )  # one other can as well be shown
        steps = [("prior", self.prior), *((self.names[k], float(self.decibans[k])) for k in kept)]
        if rest := telling[len(kept) :]:
            steps.append((count_noun(len(self.names) - len(kept), "other"), float(self.decibans[rest].sum())))
        return steps

    @property
    def bars(self) -> list[tuple[str, float, float]]:
        """The name of each bar, where it starts, and where it ends; what is infinite is cut off."""
        steps, found, total = self.steps, [], 0.0
        for (name, _), step in zip(steps, cut_endless([step for _, step in steps]), strict=True):
            found.append((name, total, total + step))
            total += step
        return [*found, ("sum", 0.0, total)]

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the waterfall.

        Parameters
        ----------
        ax : Axes, default=None
            The axes to draw on. None: a new figure.

        Returns
        -------
        EvidenceDisplay
        """
        bars, said = self.bars, self._said
        ax = make_axes(ax, (7.5, 0.32 * len(bars) + 1.4))
        draw_zero_line(ax, vertical=True)
        for row, (_, start, end) in enumerate(bars):
            color = QUIET_COLOR if row in (0, len(bars) - 1) else _choose_color(end - start)
            hatch = {"hatch": "///", "edgecolor": "white"} if color == AGAINST_COLOR else {}
            ax.barh(row, end - start, left=start, height=0.7, color=color, linewidth=0.0, **hatch)
            if row + 1 < len(bars):
                ax.plot([end, end], [row - 0.35, row + 1.35], color=LINE_COLOR, linewidth=0.8, zorder=0)  # to the next
            side = 1.0 if end >= start else -1.0
            endless = bool(np.isinf(said[row]))
            if endless:  # an arrow: the bar has no end
                ax.plot(end, row, marker=">" if side > 0.0 else "<", markersize=12, color=color, clip_on=False)
            away = (9.0 if endless else 3.0) * side
            ax.annotate(signed(said[row]), (end, row), (away, 0.0), textcoords="offset points", va="center",
                        ha="left" if side > 0.0 else "right", fontsize=SMALL_SIZE)  # fmt: skip
        ends = [end for _, *both in bars for end in both]
        room = max(0.11 * (max(ends) - min(ends)), 0.5)
        ax.set_xlim(min(ends) - room, max(ends) + room)
        ax.set_ylim(len(bars) - 0.4, -0.6)
        ax.set_yticks(range(len(bars)), [escape_text(name) for name, _, _ in bars], fontsize=TEXT_SIZE)
        ax.tick_params(axis="y", length=0)
        title = f"P({format_name(self.label)}) = {format_digits(self.posterior)}"
        style_axes(ax, title, f"decibans for {format_name(self.label)} against {format_name(self.against)}")
        self._mark_chances(ax)
        self._remember_axes(ax)
        return self

    @property
    def _said(self) -> list[float]:
        """The decibans of each bar, the sum last."""
        each = [decibans for _, decibans in self.steps]
        return [*each, sum(each)]

    def _mark_chances(self, ax: Axes) -> None:
        """The probability of the one class among the two, along the upper edge."""
        low, high = ax.get_xlim()
        at = {chance: float(DECIBANS * np.log(chance / (1.0 - chance))) for chance in UPPER_CHANCES}
        letter, shown, end = 0.014 * (high - low), [], -np.inf
        for chance, x in at.items():
            text = f"1 − {1.0 - chance:.0e}" if chance > 0.9999 else format_digits(chance)
            half = 0.5 * letter * (len(text) + 1)
            if low <= x <= high and x - half >= end:
                shown.append((x, text))
                end = x + half
        upper = ax.secondary_xaxis("top")
        upper.set_xticks([x for x, _ in shown], [text for _, text in shown], fontsize=SMALL_SIZE)
        upper.spines["top"].set_color(LINE_COLOR)

    def to_frame(self) -> Any:
        """Return the plotted values as a table.

        Returns
        -------
        DataFrame
            A row for each bar: its name, its decibans, where it starts and ends, and the probability of the class
            among the two up to there.
        """
        bars = self.bars
        ends = np.array([end for _, _, end in bars])
        return data_frame(
            {
                "term": [name for name, _, _ in bars],
                "decibans": self._said,
                "start": [start for _, start, _ in bars],
                "end": ends,
                "probability": 1.0 / (1.0 + np.exp(-ends / DECIBANS)),
            }
        )


def _format_cell(value: Any) -> str:
    """A cell as it stands beside a bar."""
    if isinstance(value, bool):
        return format_class(value)
    return format_digits(value) if isinstance(value, float) else written_cell(value)


def _choose_color(step: float) -> str:
    return FOR_COLOR if step >= 0.0 else AGAINST_COLOR
