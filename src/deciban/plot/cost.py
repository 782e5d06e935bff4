"""`CostDisplay`: what decisions cost against the threshold, or against the prior."""

from collections.abc import Mapping
from typing import Any, Literal, Self

import numpy as np

from deciban.decisions.loss import Loss
from deciban.decisions.threshold import Threshold
from deciban.errors import UsageError
from deciban.plot.cost_curves import costs_by_prior, costs_by_threshold
from deciban.plot.display import Display, frame_of
from deciban.plot.figures import Axes, axes_for
from deciban.plot.judged import Judged, judged_posteriors, judged_rows
from deciban.plot.style import CLASS_LINES, QUIET_COLOUR, legend, printed, quiet, shown_name
from deciban.util.arrays import Floats
from deciban.util.text_tables import digits
from deciban.web.palette import CLASS_COLOURS

Against = Literal["threshold", "prior"]


class CostDisplay(Display):
    """What decisions cost on average, against the threshold of two classes, or against the prior of a class.

    Against the threshold: what it costs to decide for a class as soon as its probability is above each threshold; that
    which least risk demands is marked. Posteriors that can be believed cost least just there. Against the prior: what
    the rows would cost if the class were more or less frequent, as the model decides now and as it would decide if it
    were told.

    Parameters
    ----------
    x : ndarray of shape (n_points,)
        Thresholds, or priors.
    costs : mapping from str to ndarray of shape (n_points,)
        The mean cost at each of them, by the name of the rule.
    label : label
        The class.
    against : {"threshold", "prior"}, default="threshold"
        What is along the axis.
    marked : float, default=None
        The threshold that least risk demands, or the prior of the model. None: nothing is marked.

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
    >>> round(shown.marked, 3)                             # decide 1 where P(1) is above 10 / 11
    0.909
    """

    def __init__(
        self,
        x: Floats,
        costs: Mapping[str, Floats],
        label: Any,
        against: Against = "threshold",
        marked: float | None = None,
    ) -> None:
        self.x = x
        self.costs = dict(costs)
        self.label = label
        self.against = against
        self.marked = marked

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any = None,
        y: Any = None,
        sample_weight: Any = None,
        *,
        learned: bool = False,
        loss: Any = None,
        label: Any = None,
        against: Against = "threshold",
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
        learned : bool, default=False
            Whether the classifier has learned these rows, so that each is left out in its turn.
        loss : Loss, matrix, mapping, table or path, default=None
            What each decision costs, as for `BayesClassifier.decide`. None is zero-one loss.
        label : label, default=None
            The class whose threshold or prior is along the axis. None: the last of `classes_`.
        against : {"threshold", "prior"}, default="threshold"
            What is along the axis; a threshold needs two classes.
        ax : Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        CostDisplay
        """
        return cls._of(judged_rows(estimator, X, y, sample_weight, learned), loss, label, against).plot(ax)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        posterior: Any,
        *,
        classes: Any = None,
        loss: Any = None,
        label: Any = None,
        against: Against = "threshold",
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
        against : {"threshold", "prior"}, default="threshold"
            What is along the axis; a threshold needs two classes.
        ax : Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        CostDisplay
        """
        return cls._of(judged_posteriors(y_true, posterior, classes), loss, label, against).plot(ax)

    @classmethod
    def _of(cls, rows: Judged, loss: Any, label: Any, against: Against) -> Self:
        labels = rows.classes.tolist()
        wanted = labels[-1] if label is None else label
        if wanted not in labels:
            raise UsageError(f"the class {wanted!r} is none of {labels}")
        place = labels.index(wanted)
        costs = (Loss.zero_one(labels) if loss is None else Loss.of(loss)).for_classes(labels)
        if against == "prior":
            return cls(*costs_by_prior(rows, costs, place), wanted, against, float(rows.prior[place]))
        if against != "threshold":
            raise UsageError(f"against={against!r}: choose 'threshold' or 'prior'")
        if len(labels) != 2:
            raise UsageError(f"a threshold is for two classes, not {len(labels)}; choose against='prior'")
        pair = (wanted, labels[1 - place])
        limit = Threshold.of(costs, float(rows.prior[place]), pair, (labels[0], labels[1]))
        return cls(*costs_by_threshold(rows, costs, place), wanted, against, limit.posterior)

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
            least = f", least {digits(float(cost[best]))} at {self.x[best]:.3g}" if self.against == "threshold" else ""
            ax.plot(self.x, cost, color=CLASS_COLOURS[k % 7], linestyle=CLASS_LINES[k % 4], linewidth=1.6,
                    label=printed(name) + least)  # fmt: skip
        if self.marked is not None:
            there = float(np.interp(self.marked, self.x, next(iter(self.costs.values()))))
            what = "least risk" if self.against == "threshold" else "prior of the model"
            ax.axvline(self.marked, color=QUIET_COLOUR, linewidth=1.0, linestyle=":",
                       label=f"{what}: {digits(there)} at {self.marked:.3g}")  # fmt: skip
        ax.set_xlim(0.0, 1.0)
        ax.set_ylim(bottom=0.0)
        name = shown_name(self.label)
        along = f"decide {name} above this P({name})" if self.against == "threshold" else f"prior of {name}"
        quiet(ax, f"cost against the {self.against}", along, "mean cost of a row")
        legend(ax)
        self._drawn(ax)
        return self

    def frame(self) -> Any:
        """What is drawn, as a table.

        Returns
        -------
        DataFrame
            A line for each threshold or prior, with the mean cost of each rule.
        """
        return frame_of({self.against: self.x, **self.costs})
