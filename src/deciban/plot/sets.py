"""`PredictionSetDisplay`: coverage and size of prediction sets against the requested coverage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from deciban.decisions.sets import choose_sets
from deciban.plot.display import QUIET_COLOR, Axes, Display, add_legend, get_fitted, make_panels, style_axes
from deciban.plot.scored_rows import score_rows
from deciban.typing import Labels, Table, Weights
from deciban.util.arrays import Floats
from deciban.util.frames import remember_library
from deciban.web.palette import CLASS_COLORS

if TYPE_CHECKING:
    from deciban.estimators.classifier import BayesClassifier

# Requested coverages that are drawn.
COVERAGES = np.concatenate([np.linspace(0.5, 0.98, 25), [0.99]])


class PredictionSetDisplay(Display):
    """Observed coverage and mean size of prediction sets against the requested coverage.

    A curve on the diagonal keeps its promise: sets contain the true class of the requested share of rows.

    Parameters
    ----------
    requested, observed, size : ndarray of shape (n_points,)
        Requested coverage, share of rows whose set contains their class, and mean number of classes in a set.
    per_class : bool, default=False
        True if the coverage is requested in each class; `observed` is then that of the class with the lowest.

    Attributes
    ----------
    axes_ : list of Axes
        The axes of the coverage and of the size.
    figure_ : Figure
        The figure.

    See Also
    --------
    BayesClassifier.predict_set : The sets.
    CoverageDisplay : Error rate of the rows that are decided.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from deciban import BayesClassifier
    >>> from deciban.plot import PredictionSetDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = BayesClassifier().fit(X[::2], y[::2])
    >>> shown = PredictionSetDisplay.from_estimator(clf, X[1::2], y[1::2])
    >>> float(shown.requested[-1]), float(shown.observed[-1]), float(shown.size[-1])
    (0.99, 1.0, 3.0)
    """

    def __init__(self, requested: Floats, observed: Floats, size: Floats, per_class: bool = False) -> None:
        self.requested = requested
        self.observed = observed
        self.size = size
        self.per_class = per_class

    @classmethod
    def from_estimator(
        cls,
        estimator: BayesClassifier,
        X: Table,
        y: Labels,
        sample_weight: Weights | None = None,
        *,
        per_class: bool = False,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the sets of a fitted classifier for held-out rows.

        Parameters
        ----------
        estimator : BayesClassifier
            A fitted classifier with conformity scores.
        X : table
            Labeled rows that the classifier has not learned.
        y : array-like or str
            Their labels, or the name of the target column.
        sample_weight : array-like or str, default=None
            Their weights, or the name of the weight column.
        per_class : bool, default=False
            True to request the coverage in each class.
        ax : Axes, default=None
            One pair of axes, or two. None: a new figure.

        Returns
        -------
        PredictionSetDisplay
        """
        rows = score_rows(estimator, X, y, sample_weight)
        fitted, weight = get_fitted(estimator), np.bincount(rows.labels, rows.weights, rows.classes.size)
        observed, size = np.empty(COVERAGES.size), np.empty(COVERAGES.size)
        for k, coverage in enumerate(COVERAGES.tolist()):
            sets = choose_sets(fitted, rows.posterior, coverage, per_class)
            hits = rows.weights * sets.members[np.arange(rows.labels.size), rows.labels]
            by_class = np.bincount(rows.labels, hits, weight.size)
            observed[k] = (by_class[weight > 0] / weight[weight > 0]).min() if per_class else hits.sum() / weight.sum()
            size[k] = np.average(sets.sizes, weights=rows.weights)
        return remember_library(cls(COVERAGES, observed, size, per_class), X, estimator).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the coverage and the size.

        Parameters
        ----------
        ax : Axes, default=None
            One pair of axes, or two. None: a new figure.

        Returns
        -------
        PredictionSetDisplay
        """
        above, below = make_panels(ax, 2, 1, (5.6, 5.4), (2.4, 1.4))
        diagonal = {"color": QUIET_COLOR, "linewidth": 0.8, "linestyle": (0, (4, 3)), "label": "requested"}
        above.plot(self.requested, self.requested, **diagonal)
        label = "observed, in the class with the lowest" if self.per_class else "observed"
        above.plot(self.requested, self.observed, color=CLASS_COLORS[0], linewidth=1.6, label=label)
        below.plot(self.requested, self.size, color=CLASS_COLORS[0], linewidth=1.6)
        for one in (above, below):
            one.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
        above.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
        above.tick_params(labelbottom=False)
        below.set_ylim(bottom=0.0)
        style_axes(above, "Prediction sets", y="rows whose set has their class")
        style_axes(below, x="requested coverage", y="classes per set")
        add_legend(above, loc="upper left")
        self.axes_ = [above, below]
        self._remember_axes(above)
        return self

    def _columns(self) -> dict[str, Any]:
        """Return a row for each requested coverage: observed coverage, mean size of the sets."""
        return {"requested": self.requested, "observed": self.observed, "size": self.size}
