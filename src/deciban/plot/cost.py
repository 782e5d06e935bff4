"""`CostDisplay`: mean cost per row against the decision threshold, or against the prior of a class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from deciban.decisions.decide import choose_decisions, compute_incurred_costs
from deciban.decisions.loss import Loss
from deciban.decisions.threshold import Threshold
from deciban.errors import Argument, Labels as ShownLabels, UsageError
from deciban.plot.display import (
    CLASS_LINES,
    QUIET_COLOR,
    SMALL_SIZE,
    TEXT_SIZE,
    Axes,
    Display,
    add_legend,
    escape_text,
    format_name,
    make_axes,
    style_axes,
)
from deciban.plot.scored_rows import ScoredRows, check_posteriors, score_rows
from deciban.typing import Costs, Labels, Table, Weights
from deciban.util.arrays import Floats
from deciban.util.frames import remember_library
from deciban.util.text_tables import format_probability, format_three
from deciban.web.palette import CLASS_COLORS

if TYPE_CHECKING:
    from deciban.estimators.classifier import BayesClassifier

XAxis = Literal["threshold", "prior"]

# Evenly spaced thresholds from 0 to 1.
N_THRESHOLDS = 501
# Further thresholds, evenly spaced in log-odds: the axis of thresholds is logarithmic at both ends.
MAX_LOG_ODDS = 7.5
# Priors of the class on the axis.
PRIORS = np.concatenate([[0.001, 0.005, 0.01, 0.02], np.linspace(0.04, 0.96, 24), [0.98, 0.99, 0.995, 0.999]])
# Limits and ticks of the axis of thresholds.
THRESHOLD_TICKS = (0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999)
# Costs that differ by more than this factor are drawn on a logarithmic axis.
MIN_LOG_RATIO = 8.0


class CostDisplay(Display):
    """Mean cost per row against the decision threshold of two classes, or against the prior of a class.

    Against the threshold: the cost of deciding for a class if its probability is above the threshold. The threshold
    with the lowest expected cost is marked; calibrated probabilities cost least there. Against the prior: the cost of
    the rows if the class were more or less frequent, with the decisions of the model unchanged and with decisions
    adapted to the new prior.

    Parameters
    ----------
    x : ndarray of shape (n_points,)
        Thresholds or priors.
    costs : mapping from str to ndarray of shape (n_points,)
        The mean cost per row at each of them, by the name of the curve.
    label : label
        The class whose threshold or prior is on the horizontal axis.
    x_axis : {"threshold", "prior"}, default="threshold"
        The horizontal axis.
    reference : float, default=None
        The threshold of minimum expected cost, or the prior of the model. None: not marked.

    Attributes
    ----------
    ax_, figure_ : Axes, Figure
        The axes and the figure.

    See Also
    --------
    BayesClassifier.threshold : The threshold of minimum expected cost.
    CoverageDisplay : The effect of rejecting rows.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from deciban import BayesClassifier
    >>> from deciban.plot import CostDisplay
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> clf = BayesClassifier(tune=None).fit(X[::2], y[::2])
    >>> shown = CostDisplay.from_estimator(clf, X[1::2], y[1::2], loss={(1, 0): 10, (0, 1): 1})
    >>> round(shown.reference, 3)                             # decide 1 where P(1) is above 10 / 11
    0.909
    """

    def __init__(
        self,
        x: Floats,
        costs: Mapping[str, Floats],
        label: Any,
        x_axis: XAxis = "threshold",
        reference: float | None = None,
    ) -> None:
        self.x = x
        self.costs = dict(costs)
        self.label = label
        self.x_axis = x_axis
        self.reference = reference

    @classmethod
    def from_estimator(
        cls,
        estimator: BayesClassifier,
        X: Table | None = None,
        y: Labels | None = None,
        sample_weight: Weights | None = None,
        *,
        leave_one_out: bool = False,
        loss: Loss | Costs | None = None,
        label: Any = None,
        x_axis: XAxis = "threshold",
        ax: Axes | None = None,
    ) -> Self:
        """Draw the cost of the decisions of a fitted classifier.

        Parameters
        ----------
        estimator : BayesClassifier
            A fitted classifier.
        X : table, default=None
            Labeled rows. None: the rows of the last `fit`, each scored by the model without it.
        y : array-like or str, default=None
            Their labels, or the name of the target column.
        sample_weight : array-like or str, default=None
            Their weights, or the name of the weight column.
        leave_one_out : bool, default=False
            True if the classifier was trained on these rows: each is then scored by the model without it.
        loss : Loss, matrix, mapping, table or path, default=None
            The cost of each decision, as in `BayesClassifier.decide`. None: zero-one loss.
        label : label, default=None
            The class whose threshold or prior is on the horizontal axis. None: the last of `classes_`.
        x_axis : {"threshold", "prior"}, default="threshold"
            The horizontal axis. A threshold needs two classes.
        ax : Axes, default=None
            The axes to draw on. None: a new figure.

        Returns
        -------
        CostDisplay
        """
        shown = cls._of(score_rows(estimator, X, y, sample_weight, leave_one_out), loss, label, x_axis)
        return remember_library(shown, X, estimator).plot(ax)

    @classmethod
    def from_predictions(
        cls,
        y_true: Labels,
        posterior: Table,
        *,
        classes: Labels | None = None,
        loss: Loss | Costs | None = None,
        label: Any = None,
        x_axis: XAxis = "threshold",
        ax: Axes | None = None,
    ) -> Self:
        """Draw the cost of decisions by the posteriors of any classifier.

        Parameters
        ----------
        y_true : array-like of shape (n_rows,)
            The true labels.
        posterior : array-like of shape (n_rows, n_classes)
            The output of `predict_proba`.
        classes : sequence of labels, default=None
            The class of each column. None: the sorted labels of `y_true`.
        loss : Loss, matrix, mapping, table or path, default=None
            The cost of each decision. None: zero-one loss.
        label : label, default=None
            The class whose threshold or prior is on the horizontal axis. None: the last class.
        x_axis : {"threshold", "prior"}, default="threshold"
            The horizontal axis. A threshold needs two classes.
        ax : Axes, default=None
            The axes to draw on. None: a new figure.

        Returns
        -------
        CostDisplay
        """
        return cls._of(check_posteriors(y_true, posterior, classes), loss, label, x_axis).plot(ax)

    @classmethod
    def _of(cls, rows: ScoredRows, loss: Any, label: Any, x_axis: XAxis) -> Self:
        labels = rows.classes.tolist()
        wanted = labels[-1] if label is None else label
        if wanted not in labels:
            raise UsageError(f"unknown class {wanted!r}", remedy=("choose one of ", ShownLabels(labels)))
        place = labels.index(wanted)
        costs = (Loss.zero_one(labels) if loss is None else Loss.from_costs(loss)).for_classes(labels)
        if x_axis == "prior":
            return cls(*compute_costs_by_prior(rows, costs, place), wanted, x_axis, float(rows.prior[place]))
        if x_axis != "threshold":
            raise UsageError("choose 'threshold' or 'prior'", parameter=Argument("x_axis", x_axis))
        if len(labels) != 2:
            raise UsageError(
                f"a threshold needs two classes, found {len(labels)}",
                remedy=("use ", Argument("x_axis", "prior")),
            )
        pair = (wanted, labels[1 - place])
        limit = Threshold.from_loss(costs, float(rows.prior[place]), pair, (labels[0], labels[1]))
        return cls(*compute_costs_by_threshold(rows, costs, place), wanted, x_axis, limit.posterior)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the curves.

        Parameters
        ----------
        ax : Axes, default=None
            The axes to draw on. None: a new figure.

        Returns
        -------
        CostDisplay
        """
        ax = make_axes(ax, (6.4, 4.0))
        by_threshold = self.x_axis == "threshold"
        for k, (name, cost) in enumerate(self.costs.items()):
            look = {"color": CLASS_COLORS[k % 7], "linestyle": CLASS_LINES[k % 4]}
            ax.plot(self.x, cost, linewidth=1.6, label=None if by_threshold else escape_text(name), **look)
        if by_threshold:
            self._mark_minimum(ax)
        if self.reference is not None:
            there = format_three(float(np.interp(self.reference, self.x, next(iter(self.costs.values())))))
            at = format_probability(self.reference)
            what = "threshold of minimum expected cost" if by_threshold else "prior of the model"
            ax.axvline(self.reference, color=QUIET_COLOR, linewidth=1.0, linestyle=":", zorder=0,
                       label=f"{what} ({at}): cost {there}")  # fmt: skip
        self._scale(ax)
        name = format_name(self.label)
        if by_threshold:
            along = f"decide {name} if P({name}) is above (log scale)"
            style_axes(ax, "Mean cost per row by decision threshold", along)
        else:
            style_axes(ax, f"Mean cost per row by the prior of {name}", f"prior probability of {name}")
        ax.set_ylabel("mean cost per row" + (" (log scale)" if ax.get_yscale() == "log" else ""), fontsize=TEXT_SIZE)
        add_legend(ax)
        self._remember_axes(ax)
        return self

    def _mark_minimum(self, ax: Axes) -> None:
        """Mark the lowest cost on these rows."""
        cost = next(iter(self.costs.values()))
        best = int(np.argmin(cost))
        label = f"lowest cost on these rows: {format_three(float(cost[best]))} at {format_probability(self.x[best])}"
        look = {"color": CLASS_COLORS[0], "marker": "o", "markersize": 5, "linestyle": "none"}
        ax.plot(self.x[best], cost[best], label=label, **look)

    def _scale(self, ax: Axes) -> None:
        """Scale the axes: thresholds in log-odds, costs on a logarithmic axis if they differ by a large factor."""
        from matplotlib.ticker import NullLocator

        drawn = (self.x >= THRESHOLD_TICKS[0]) & (self.x <= THRESHOLD_TICKS[-1])
        shown = np.concatenate([cost[drawn] for cost in self.costs.values()])
        low, high = float(shown.min()), float(shown.max())
        if self.x_axis == "threshold":
            ax.set_xscale("logit")
            ax.set_xlim(THRESHOLD_TICKS[0], THRESHOLD_TICKS[-1])
            ax.set_xticks(THRESHOLD_TICKS, [f"{100.0 * tick:g}%" for tick in THRESHOLD_TICKS])
            ax.xaxis.set_minor_locator(NullLocator())
        else:
            ax.set_xlim(0.0, 1.0)
            ax.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
        if self.x_axis == "threshold" and low > 0.0 and high > MIN_LOG_RATIO * low:
            ax.set_yscale("log")
            ax.set_ylim(low / 1.2, high * 1.5)
            ax.tick_params(which="both", labelsize=SMALL_SIZE)
            ax.yaxis.set_major_formatter(lambda cost, _: format_three(cost))
            ax.yaxis.set_minor_formatter(lambda cost, _: format_three(cost) if f"{cost:e}"[0] in "25" else "")
        else:
            ax.set_ylim(bottom=0.0)

    def _columns(self) -> dict[str, Any]:
        """Return a row for each threshold or prior, with the mean cost per row of each curve."""
        return {self.x_axis: self.x, **self.costs}


def compute_costs_by_threshold(rows: ScoredRows, loss: Loss, place: int) -> tuple[Floats, dict[str, Floats]]:
    """Return thresholds, and the mean cost of deciding for one of two classes if its posterior is above each."""
    labels = rows.classes.tolist()
    own, other = (loss.decision_index(labels[k]) for k in (place, 1 - place))
    matrix, weights = loss.matrix, rows.weights / rows.weights.sum()
    odds = np.exp(np.linspace(-MAX_LOG_ODDS, MAX_LOG_ODDS, N_THRESHOLDS))
    thresholds = np.unique(np.concatenate([np.linspace(0.0, 1.0, N_THRESHOLDS), odds / (1.0 + odds)]))
    chance = rows.posterior[:, place]
    order = np.argsort(chance, kind="stable")
    gain = weights * (matrix[own, rows.labels] - matrix[other, rows.labels])
    above = np.concatenate([np.cumsum(gain[order][::-1])[::-1], [0.0]])  # of the rows from each position on
    start = np.searchsorted(chance[order], thresholds, side="right")
    return thresholds, {"mean cost": float(weights @ matrix[other, rows.labels]) + above[start]}


def compute_costs_by_prior(rows: ScoredRows, loss: Loss, place: int) -> tuple[Floats, dict[str, Floats]]:
    """Return priors of a class, and the mean cost of the current decisions and of decisions adapted to each prior."""
    size = rows.classes.size
    present = np.bincount(rows.labels, rows.weights, size) > 0.0
    if not present[place] or np.count_nonzero(present) < 2:
        raise UsageError("costs by prior need rows of this class and of at least one other class")
    share = np.where(present, rows.prior, 0.0)
    share[place] = 0.0
    if not share.any():
        share = present.astype(np.float64)
        share[place] = 0.0
    share /= share.sum()
    now = _compute_cost_by_class(rows, rows.posterior, loss)
    fixed, adapted = np.empty(PRIORS.size), np.empty(PRIORS.size)
    for k, prior in enumerate(PRIORS):
        wanted = (1.0 - prior) * share
        wanted[place] = prior
        factor = np.divide(wanted, rows.prior, out=np.zeros(size), where=rows.prior > 0.0)
        moved = rows.posterior * factor
        total = moved.sum(axis=1, keepdims=True)
        scaled = np.where(total > 0.0, moved / np.where(total > 0.0, total, 1.0), wanted)
        fixed[k], adapted[k] = now @ wanted, _compute_cost_by_class(rows, scaled, loss) @ wanted
    return PRIORS.copy(), {"current decisions": fixed, "decisions adapted to the prior": adapted}


def _compute_cost_by_class(rows: ScoredRows, posterior: Floats, loss: Loss) -> Floats:
    """Return the mean cost of the rows of each true class; 0 for a class without rows."""
    cost = compute_incurred_costs(choose_decisions(np.ascontiguousarray(posterior), loss), rows.labels)
    size = rows.classes.size
    total, weight = np.bincount(rows.labels, rows.weights * cost, size), np.bincount(rows.labels, rows.weights, size)
    return np.divide(total, weight, out=np.zeros(size), where=weight > 0.0)
