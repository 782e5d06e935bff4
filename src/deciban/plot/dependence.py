"""`DependenceDisplay`: dependence between columns within the classes."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb
from typing import TYPE_CHECKING, Any, Literal, Self

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
from deciban.typing import Labels, Table, Weights
from deciban.util.arrays import Floats
from deciban.util.frames import remember_library
from deciban.util.text_tables import count_noun
from deciban.web.palette import CLASS_COLORS

if TYPE_CHECKING:
    from deciban.estimators.classifier import BayesClassifier

# Columns of the matrix.
MAX_IN_MATRIX = 30
# Pairs drawn as bars.
MAX_PAIRS_DRAWN = 20
# Characters shown of the names of a pair.
MAX_PAIR_WIDTH = 44
# Color map of the matrix.
RISING_COLORS = "Blues"
# Smallest side of the matrix, in inches.
MIN_SIDE = 3.8
TITLE = "Dependence between columns"
UNIT = "mutual information given the class (bits)"


class DependenceDisplay(Display):
    """Mutual information of pairs of columns given the class, in bits. Plain Bayes assumes that it is 0.

    Only significant pairs are drawn, after a correction for the number of tested pairs.

    Parameters
    ----------
    dependences : sequence of Dependence
        The pairs from `BayesClassifier.diagnose`, the strongest first.
    columns : sequence of str, default=None
        The columns of the matrix, in order. None: those of the pairs, the most dependent first.
    pairs_tested : int, default=0
        The number of tested pairs.

    Attributes
    ----------
    ax_, figure_ : Axes, Figure
        The axes and the figure.

    See Also
    --------
    BayesClassifier.diagnose : The cost of dependence, and remedies.
    PairDisplay : The joint evidence of two columns.

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
        estimator: BayesClassifier,
        X: Table | None = None,
        y: Labels | None = None,
        sample_weight: Weights | None = None,
        *,
        kind: Literal["matrix", "bars"] = "matrix",
        ax: Axes | None = None,
    ) -> Self:
        """Draw the dependence between columns of a fitted classifier.

        Parameters
        ----------
        estimator : BayesClassifier
            A fitted classifier.
        X : table, default=None
            The training rows. None: the rows of the last `fit`.
        y : array-like or str, default=None
            Their labels, or the name of the target column.
        sample_weight : array-like or str, default=None
            Their weights in training, or the name of the weight column.
        kind : {"matrix", "bars"}, default="matrix"
            A matrix of columns, or a bar for each of the strongest pairs.
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
        """Draw a result of `BayesClassifier.diagnose`.

        Parameters
        ----------
        diagnosis : Diagnosis
            The diagnosis.
        kind : {"matrix", "bars"}, default="matrix"
            A matrix of columns, or a bar for each of the strongest pairs.
        ax : Axes, default=None
            The axes to draw on. None: a new figure.

        Returns
        -------
        DependenceDisplay
        """
        shown = cls(diagnosis.dependences, pairs_tested=diagnosis.pairs_tested)
        return remember_library(shown, diagnosis).plot(ax, kind=kind)

    @property
    def bits(self) -> Floats:
        """Mutual information of each pair of columns given the class, in bits; NaN if it is not significant."""
        place = {name: k for k, name in enumerate(self.columns)}
        matrix = np.full((len(place), len(place)), np.nan)
        for one in self.dependences:
            a, b = (place.get(name) for name in one.columns)
            if a is not None and b is not None:
                matrix[a, b] = matrix[b, a] = one.bits
        return matrix

    def plot(self, ax: Axes | None = None, *, kind: Literal["matrix", "bars"] = "matrix") -> Self:
        """Draw a matrix or bars.

        Parameters
        ----------
        ax : Axes, default=None
            The axes to draw on. None: a new figure.
        kind : {"matrix", "bars"}, default="matrix"
            A matrix of columns, or a bar for each of the strongest pairs.

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
        ax.text(0.0, 0.5, f"No dependence between columns within the classes{tested}", fontsize=TEXT_SIZE)
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
        style_axes(ax, TITLE, more)
        bar = ax.figure.colorbar(image, ax=ax, shrink=0.9)
        bar.set_label(UNIT, fontsize=SMALL_SIZE)
        bar.ax.tick_params(labelsize=SMALL_SIZE)
        return ax

    def _draw_bars(self, ax: Axes | None) -> Axes:
        shown = self.dependences[:MAX_PAIRS_DRAWN]
        ax = make_axes(ax, (7.0, 0.27 * len(shown) + 1.2))
        ax.barh(range(len(shown)), [one.bits for one in shown], color=CLASS_COLORS[0], height=0.7)
        names = [escape_text(" and ".join(one.columns), MAX_PAIR_WIDTH) for one in shown]
        ax.set_yticks(range(len(shown)), names, fontsize=SMALL_SIZE)
        ax.tick_params(axis="y", length=0)
        ax.invert_yaxis()
        rest = len(self.dependences) - len(shown)
        more = f"\n({count_noun(rest, 'weaker pair')} not drawn)" if rest > 0 else ""
        style_axes(ax, TITLE, f"{UNIT}{more}")
        return ax

    def _columns(self) -> dict[str, Any]:
        """Return a row for each pair: columns, bits, share of the smaller entropy, cost in bits per row, p-value."""
        pairs = self.dependences
        return {
            "first": [one.columns[0] for one in pairs],
            "second": [one.columns[1] for one in pairs],
            **{name: [getattr(one, name) for one in pairs] for name in ("bits", "share", "cost", "p")},
        }


def _sort_columns(dependences: Sequence[Dependence]) -> list[str]:
    """Return the columns of the pairs, the column with the most bits in total first."""
    total: dict[str, float] = {}
    for one in dependences:
        for name in one.columns:
            total[name] = total.get(name, 0.0) + one.bits
    return sorted(total, key=lambda name: -total[name])
