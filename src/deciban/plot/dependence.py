"""`DependenceDisplay`: which columns depend on each other within the classes."""

from collections.abc import Sequence
from math import comb
from typing import Any, Literal, Self

import numpy as np

from deciban.errors import Argument, UsageError
from deciban.evaluation.diagnose import MAX_COMPARED, Dependence, Diagnosis
from deciban.plot.display import (
    SMALL_SIZE,
    TEXT_SIZE,
    Axes,
    Display,
    escape_text,
    format_name,
    get_fitted,
    make_axes,
    style_axes,
)
from deciban.util.arrays import Floats
from deciban.util.frames import data_frame
from deciban.util.text_tables import count_noun
from deciban.web.palette import FOR_COLOR

# Columns of the matrix, pairs that have a bar, places of a pair's name, the colors of the matrix, and the least side
# of its picture in inches.
MAX_IN_MATRIX = 30
MAX_PAIRS_DRAWN = 20
PAIR_PLACES = 44
RISING_COLORS = "Blues"
MIN_SIDE = 3.8


class DependenceDisplay(Display):
    """Conditional mutual information of columns given the class, in bits: what plain Bayes takes to be 0.

    Only pairs that depend on each other by more than chance, all pairs that were tested considered, are drawn.

    Parameters
    ----------
    dependences : sequence of Dependence
        The pairs, as `BayesClassifier.diagnose` finds them, the strongest first.
    columns : sequence of str, default=None
        The columns of the matrix, in their order. None: those of the pairs, the most dependent first.
    pairs_tested : int, default=0
        How many pairs were tested.

    Attributes
    ----------
    ax_, figure_ : Axes, Figure
        The axes and the figure.

    See Also
    --------
    BayesClassifier.diagnose : What that costs, and the remedy.
    PairDisplay : What two columns say together.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from deciban import BayesClassifier
    >>> from deciban.plot import DependenceDisplay
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> shown = DependenceDisplay.from_estimator(BayesClassifier(tune=None).fit(X, y))
    >>> shown.dependences[0].columns
    ('sepal length (cm)', 'sepal width (cm)')
    """

    def __init__(
        self, dependences: Sequence[Dependence], columns: Sequence[str] | None = None, pairs_tested: int = 0
    ) -> None:
        self.dependences = list(dependences)
        self.columns = _sort_columns(self.dependences) if columns is None else list(columns)
        self.pairs_tested = pairs_tested

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        sample_weight: Any = None,
        *,
        kind: Literal["matrix", "bars"] = "matrix",
        ax: Axes | None = None,
    ) -> Self:
        """Draw the columns of a fitted classifier.

        Parameters
        ----------
        estimator : BayesClassifier
            A fitted classifier.
        X : table, default=None
            Rows that were learned. None: those of the last `fit`.
        y : array-like or str, default=None
            Their labels, or the name of the column that holds them.
        sample_weight : array-like or str, default=None
            The weights with which they were learned.
        kind : {"matrix", "bars"}, default="matrix"
            A matrix of columns by columns, or a bar for each of the strongest pairs.
        ax : Axes, default=None
            The axes to draw on. None: a new figure.

        Returns
        -------
        DependenceDisplay
        """
        get_fitted(estimator)
        return cls.from_diagnosis(estimator.diagnose(X, y, sample_weight), kind=kind, ax=ax)

    @classmethod
    def from_diagnosis(
        cls, diagnosis: Diagnosis, *, kind: Literal["matrix", "bars"] = "matrix", ax: Axes | None = None
    ) -> Self:
        """Draw what `BayesClassifier.diagnose` has found.

        Parameters
        ----------
        diagnosis : Diagnosis
            The diagnosis.
        kind : {"matrix", "bars"}, default="matrix"
            A matrix of columns by columns, or a bar for each of the strongest pairs.
        ax : Axes, default=None
            The axes to draw on. None: a new figure.

        Returns
        -------
        DependenceDisplay
        """
        return cls(diagnosis.dependences, pairs_tested=diagnosis.pairs_tested).plot(ax, kind=kind)

    @property
    def bits(self) -> Floats:
        """The conditional mutual information of each pair of columns, in bits; NaN where there is none to speak of."""
        place = {name: k for k, name in enumerate(self.columns)}
        found = np.full((len(place), len(place)), np.nan)
        for one in self.dependences:
            a, b = (place.get(name) for name in one.columns)
            if a is not None and b is not None:
                found[a, b] = found[b, a] = one.bits
        return found

    def plot(self, ax: Axes | None = None, *, kind: Literal["matrix", "bars"] = "matrix") -> Self:
        """Draw a matrix, or bars.

        Parameters
        ----------
        ax : Axes, default=None
            The axes to draw on. None: a new figure.
        kind : {"matrix", "bars"}, default="matrix"
            A matrix of columns by columns, or a bar for each of the strongest pairs.

        Returns
        -------
        DependenceDisplay
        """
        if kind not in ("matrix", "bars"):
            raise UsageError("choose 'matrix' or 'bars'", parameter=Argument("kind", kind))
        self._remember_axes(self._draw_nothing(ax) if not self.dependences else
                    self._draw_matrix(ax) if kind == "matrix" else self._draw_bars(ax))  # fmt: skip
        return self

    def _draw_nothing(self, ax: Axes | None) -> Axes:
        ax = make_axes(ax, (6.0, 1.6))
        ax.set_axis_off()
        some = f" of {MAX_COMPARED} columns" if self.pairs_tested == comb(MAX_COMPARED, 2) else ""
        tested = f" ({count_noun(self.pairs_tested, 'pair')}{some} tested)" if self.pairs_tested else ""
        ax.text(0.0, 0.5, f"no dependence between columns within the classes{tested}", fontsize=TEXT_SIZE)
        return ax

    def _draw_matrix(self, ax: Axes | None) -> Axes:
        shown = self.columns[:MAX_IN_MATRIX]
        size, bits = len(shown), self.bits[: len(shown), : len(shown)]
        side = max(0.24 * size + 2.2, MIN_SIDE)
        ax = make_axes(ax, (side + 1.0, side))
        image = ax.imshow(bits, cmap=RISING_COLORS, vmin=0.0, interpolation="nearest")
        names = [format_name(name) for name in shown]
        ax.set_xticks(range(size), names, rotation=60, ha="right", rotation_mode="anchor", fontsize=SMALL_SIZE)
        ax.set_yticks(range(size), names, fontsize=SMALL_SIZE)
        ax.tick_params(length=0)
        rest = len(self.columns) - size
        more = f"({count_noun(rest, 'weaker column')} not drawn)" if rest > 0 else ""
        style_axes(ax, "bits shared within the classes", more)
        bar = ax.figure.colorbar(image, ax=ax, shrink=0.7)
        bar.set_label("bits", fontsize=SMALL_SIZE)
        bar.ax.tick_params(labelsize=SMALL_SIZE)
        return ax

    def _draw_bars(self, ax: Axes | None) -> Axes:
        shown = self.dependences[:MAX_PAIRS_DRAWN]
        ax = make_axes(ax, (7.0, 0.27 * len(shown) + 1.2))
        ax.barh(range(len(shown)), [one.bits for one in shown], color=FOR_COLOR, height=0.7)
        names = [escape_text(" and ".join(one.columns), PAIR_PLACES) for one in shown]
        ax.set_yticks(range(len(shown)), names, fontsize=SMALL_SIZE)
        ax.tick_params(axis="y", length=0)
        ax.invert_yaxis()
        rest = len(self.dependences) - len(shown)
        more = f"\n({count_noun(rest, 'weaker pair')} not drawn)" if rest > 0 else ""
        style_axes(ax, "bits shared within the classes", f"mutual information given the class, in bits{more}")
        return ax

    def to_frame(self) -> Any:
        """Return the plotted values as a table.

        Returns
        -------
        DataFrame
            A row for each pair: the columns, bits, the share of the smaller entropy, what it costs in bits a row, p.
        """
        found = self.dependences
        return data_frame(
            {
                "first": [one.columns[0] for one in found],
                "second": [one.columns[1] for one in found],
                **{name: [getattr(one, name) for one in found] for name in ("bits", "share", "cost", "p")},
            }
        )


def _sort_columns(dependences: Sequence[Dependence]) -> list[str]:
    """The columns of pairs, that with the most bits in all first."""
    total: dict[str, float] = {}
    for one in dependences:
        for name in one.columns:
            total[name] = total.get(name, 0.0) + one.bits
    return sorted(total, key=lambda name: -total[name])
