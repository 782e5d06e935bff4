"""`CostDisplay`: the mean cost of decisions for every threshold, or for every prior of a class."""

from collections.abc import Mapping
from typing import Any, Literal, Self

import numpy as np

from deciban.decisions.decide import choose_decisions, compute_incurred_costs
from deciban.decisions.loss import Loss
from deciban.decisions.threshold import Threshold
from deciban.errors import Argument, UsageError
from deciban.plot.display import (
    CLASS_LINES,
    QUIET_COLOR,
    Axes,
    Display,
    axes_for,
    legend,
    printed,
    quiet,
    shown_name,
)
from deciban.plot.scored_rows import ScoredRows, check_posteriors, score_rows
from deciban.util.arrays import Floats
from deciban.util.frames import data_frame
from deciban.util.text_tables import format_digits
from deciban.web.palette import CLASS_COLORS

XAxis = Literal["threshold", "prior"]

# Thresholds, and priors, at which costs are found.
THRESHOLDS = 501
PRIORS_TRIED = np.concatenate([[0.001, 0.005, 0.01, 0.02], np.linspace(0.04, 0.96, 24), [0.98, 0.99, 0.995, 0.999]])


class CostDisplay(Display):
    """Mean cost per row against the decision threshold of two classes, or against the prior of a class.

    Against the threshold: the cost of deciding for a class if its probability is above the threshold. The threshold
    with the lowest expected cost is marked; calibrated probabilities cost least there. Against the prior: the cost of
    the rows if the class were more or less frequent, with the decisions of the model unchanged and with decisions
    adapted to the new prior.

    Parameters
    ----------
    x : ndarray of shape (n_points,)
        Thresholds, or priors.
    costs : mapping from str to ndarray of shape (n_points,)
        The mean cost at each of them, by the name of the rule.
    label : label
        The class.
    x_axis : {"threshold", "prior"}, default="threshold"
        What is along the axis.
    reference : float, default=None
        The threshold that least risk demands, or the prior of the model. None: nothing is reference.

    Attributes
    ----------
    ax_, figure_ : Axes, Figure
        Where it was drawn.

    See Also
    --------
    BayesClassifier.threshold : Where the decision between two classes turns.
    CoverageDisplay : What rejecting saves.

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
        estimator: Any,
        X: Any = None,
        y: Any = None,
        sample_weight: Any = None,
        *,
        leave_one_out: bool = False,
        loss: Any = None,
        label: Any = None,
        x_axis: XAxis = "threshold",
        ax: Axes | None = None,
    ) -> Self:
        """Draw what the decisions of a fitted classifier cost.

        Parameters
        ----------
        estimator : BayesClassifier
            A fitted classifier.
        X : table, default=None
            Rows whose class is known. None: the rows of the last `fit`, each left out in its turn.
        y : array-like or str, default=None
            Their classes, or the name of the column that holds them.
        sample_weight : array-like or str, default=None
            Their weights, or the name of the column that holds them.
        leave_one_out : bool, default=False
            True if the classifier was trained on these rows: each is then scored by the model without it.
        loss : Loss, matrix, mapping, table or path, default=None
            What each decision costs, as for `BayesClassifier.decide`. None is zero-one loss.
        label : label, default=None
            The class whose threshold or prior is along the axis. None: the last of `classes_`.
        x_axis : {"threshold", "prior"}, default="threshold"
            What is along the axis; a threshold needs two classes.
        ax : Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        CostDisplay
        """
        return cls._of(score_rows(estimator, X, y, sample_weight, leave_one_out), loss, label, x_axis).plot(ax)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        posterior: Any,
        *,
        classes: Any = None,
        loss: Any = None,
        label: Any = None,
        x_axis: XAxis = "threshold",
        ax: Axes | None = None,
    ) -> Self:
        """Draw what decisions by the posteriors of any classifier cost.

        Parameters
        ----------
        y_true : array-like of shape (n_rows,)
            The true classes.
        posterior : array-like of shape (n_rows, n_classes)
            What `predict_proba` says.
        classes : sequence of labels, default=None
            The classes of its columns. None: those of `y_true`, sorted.
        loss : Loss, matrix, mapping, table or path, default=None
            What each decision costs. None is zero-one loss.
        label : label, default=None
            The class whose threshold or prior is along the axis. None: the last one.
        x_axis : {"threshold", "prior"}, default="threshold"
            What is along the axis; a threshold needs two classes.
        ax : Axes, default=None
            Where to draw; None makes a new figure.

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
            raise UsageError(f"the class {wanted!r} is none of {labels}")
        place = labels.index(wanted)
        costs = (Loss.zero_one(labels) if loss is None else Loss.from_costs(loss)).for_classes(labels)
        if x_axis == "prior":
            return cls(*costs_by_prior(rows, costs, place), wanted, x_axis, float(rows.prior[place]))
        if x_axis != "threshold":
            raise UsageError("choose 'threshold' or 'prior'", parameter=Argument("x_axis", x_axis))
        if len(labels) != 2:
            raise UsageError(
                f"a threshold is for two classes, not {len(labels)}",
                remedy=("choose ", Argument("x_axis", "prior")),
            )
        pair = (wanted, labels[1 - place])
        limit = Threshold.from_loss(costs, float(rows.prior[place]), pair, (labels[0], labels[1]))
        return cls(*costs_by_threshold(rows, costs, place), wanted, x_axis, limit.posterior)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the curves.

        Parameters
        ----------
        ax : Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        CostDisplay
        """
        ax = axes_for(ax, (6.4, 3.9))
        for k, (name, cost) in enumerate(self.costs.items()):
            best = int(np.argmin(cost))
            least = (
                f", least {format_digits(float(cost[best]))} at {self.x[best]:.3g}"
                if self.x_axis == "threshold"
                else ""
            )
            ax.plot(self.x, cost, color=CLASS_COLORS[k % 7], linestyle=CLASS_LINES[k % 4], linewidth=1.6,
                    label=printed(name) + least)  # fmt: skip
        if self.reference is not None:
            there = float(np.interp(self.reference, self.x, next(iter(self.costs.values()))))
            what = "least risk" if self.x_axis == "threshold" else "prior of the model"
            ax.axvline(self.reference, color=QUIET_COLOR, linewidth=1.0, linestyle=":",
                       label=f"{what}: {format_digits(there)} at {self.reference:.3g}")  # fmt: skip
        ax.set_xlim(0.0, 1.0)
        ax.set_ylim(bottom=0.0)
        name = shown_name(self.label)
        along = f"decide {name} above this P({name})" if self.x_axis == "threshold" else f"prior of {name}"
        quiet(ax, f"cost against the {self.x_axis}", along, "mean cost of a row")
        legend(ax)
        self._count_held(ax)
        return self

    def to_frame(self) -> Any:
        """What is drawn, as a table.

        Returns
        -------
        DataFrame
            A line for each threshold or prior, with the mean cost of each rule.
        """
        return data_frame({self.x_axis: self.x, **self.costs})


def costs_by_threshold(rows: ScoredRows, loss: Loss, place: int) -> tuple[Floats, dict[str, Floats]]:
    """Thresholds, and the mean cost of deciding for a class of two where its posterior is above each."""
    labels = rows.classes.tolist()
    own, other = (loss.decision_index(labels[k]) for k in (place, 1 - place))
    matrix, weights = loss.matrix, rows.weights / rows.weights.sum()
    thresholds = np.linspace(0.0, 1.0, THRESHOLDS)
    chance = rows.posterior[:, place]
    order = np.argsort(chance, kind="stable")
    gain = weights * (matrix[own, rows.labels] - matrix[other, rows.labels])
    above = np.concatenate([np.cumsum(gain[order][::-1])[::-1], [0.0]])  # of rows from each place on
    start = np.searchsorted(chance[order], thresholds, side="right")
    return thresholds, {"above the threshold": float(weights @ matrix[other, rows.labels]) + above[start]}


def costs_by_prior(rows: ScoredRows, loss: Loss, place: int) -> tuple[Floats, dict[str, Floats]]:
    """Priors of a class, and the mean cost of the decisions as they are, and as they are if the prior is told."""
    size = rows.classes.size
    present = np.bincount(rows.labels, rows.weights, size) > 0.0
    if not present[place] or np.count_nonzero(present) < 2:
        raise UsageError("costs against the prior need rows of the class and of another one")
    share = np.where(present, rows.prior, 0.0)
    share[place] = 0.0
    if not share.any():
        share = present.astype(np.float64)
        share[place] = 0.0
    share /= share.sum()
    now = _cost_by_truth(rows, rows.posterior, loss)
    as_now, as_told = np.empty(PRIORS_TRIED.size), np.empty(PRIORS_TRIED.size)
    for k, prior in enumerate(PRIORS_TRIED):
        wanted = (1.0 - prior) * share
        wanted[place] = prior
        factor = np.divide(wanted, rows.prior, out=np.zeros(size), where=rows.prior > 0.0)
        moved = rows.posterior * factor
        total = moved.sum(axis=1, keepdims=True)
        told = np.where(total > 0.0, moved / np.where(total > 0.0, total, 1.0), wanted)
        as_now[k], as_told[k] = now @ wanted, _cost_by_truth(rows, told, loss) @ wanted
    return PRIORS_TRIED.copy(), {"as the model decides": as_now, "if it is told the prior": as_told}


def _cost_by_truth(rows: ScoredRows, posterior: Floats, loss: Loss) -> Floats:
    """The mean cost of the rows of each class; 0 where there are none."""
    cost = compute_incurred_costs(choose_decisions(np.ascontiguousarray(posterior), loss), rows.labels)
    size = rows.classes.size
    total, weight = np.bincount(rows.labels, rows.weights * cost, size), np.bincount(rows.labels, rows.weights, size)
    return np.divide(total, weight, out=np.zeros(size), where=weight > 0.0)
