"""`CoverageDisplay`: what decided rows cost against how many are decided."""

from typing import Any, Self

from deciban.decisions.decide import CoverageCurve, choose_decisions, compute_incurred_costs
from deciban.decisions.loss import Loss
from deciban.errors import Argument, UsageError
from deciban.plot.display import Axes, Display, axes_for, legend, quiet
from deciban.plot.scored_rows import ScoredRows, check_posteriors, score_rows
from deciban.util.frames import data_frame
from deciban.util.text_tables import format_digits
from deciban.web.palette import AGAINST_COLOR, FOR_COLOR


class CoverageDisplay(Display):
    """What the decided rows cost on average against the share of rows that is decided, the surest first.

    From left to right, rejecting a row gets dearer, so that fewer are rejected. A curve that rises says that the model
    knows which rows it does not know.

    Parameters
    ----------
    curve : CoverageCurve
        The share of rows that is decided, and what these cost, for every cost of rejecting.
    zero_one : bool, default=True
        Whether every mistake costs 1, so that the cost is the share of mistakes.
    reject : float, default=None
        A cost of rejecting that is marked. None: none is.

    Attributes
    ----------
    ax_, figure_ : Axes, Figure
        Where it was drawn.

    See Also
    --------
    BayesClassifier.coverage_curve : The curve as arrays.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from deciban import BayesClassifier
    >>> from deciban.plot import CoverageDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = BayesClassifier(tune=None).fit(X[::2], y[::2])
    >>> shown = CoverageDisplay.from_estimator(clf, X[1::2], y[1::2])
    >>> float(shown.curve.coverage[-1]), round(float(shown.curve.risk[-1]), 2)
    (1.0, 0.04)
    """

    def __init__(self, curve: CoverageCurve, zero_one: bool = True, reject: float | None = None) -> None:
        self.curve = curve
        self.zero_one = zero_one
        self.reject = reject

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
        reject: float | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the curve of a fitted classifier.

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
        reject : float, default=None
            A cost of rejecting to mark. None: none is marked.
        ax : Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        CoverageDisplay
        """
        return cls._of(score_rows(estimator, X, y, sample_weight, leave_one_out), loss, reject).plot(ax)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        posterior: Any,
        *,
        classes: Any = None,
        loss: Any = None,
        reject: float | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the curve of any classifier.

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
        reject : float, default=None
            A cost of rejecting to mark. None: none is marked.
        ax : Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        CoverageDisplay
        """
        return cls._of(check_posteriors(y_true, posterior, classes), loss, reject).plot(ax)

    @classmethod
    def _of(cls, rows: ScoredRows, loss: Any, reject: float | None) -> Self:
        if reject is not None and not reject >= 0.0:
            raise UsageError("give what it costs to reject a row, at least 0", parameter=Argument("reject", reject))
        labels = rows.classes.tolist()
        costs = (Loss.zero_one(labels) if loss is None else Loss.from_costs(loss)).for_classes(labels)
        decisions = choose_decisions(rows.posterior, costs)
        curve = CoverageCurve.from_decisions(decisions, compute_incurred_costs(decisions, rows.labels), rows.weights)
        return cls(curve, costs.is_zero_one, reject)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the curve.

        Parameters
        ----------
        ax : Axes, default=None
            Where to draw; None makes a new figure.

        Returns
        -------
        CoverageDisplay
        """
        ax = axes_for(ax, (6.0, 3.8))
        there = self.curve.coverage > 0.0
        x, y = self.curve.coverage[there], self.curve.risk[there]
        ax.plot(x, y, color=FOR_COLOR, linewidth=1.6, drawstyle="steps-post")
        ax.plot(x[-1:], y[-1:], color=FOR_COLOR, marker="o", markersize=5, linestyle="none",
                label=f"all decided: {format_digits(float(y[-1]))}")  # fmt: skip
        if self.reject is not None:
            place = int((self.curve.reject <= self.reject).sum()) - 1
            coverage, risk = (float(array[place]) for array in (self.curve.coverage, self.curve.risk))
            said = f"reject at {format_digits(self.reject)}: {format_digits(risk)} of {coverage:.1%}"
            ax.plot([coverage], [risk], color=AGAINST_COLOR, marker="s", markersize=6, linestyle="none", label=said)
        ax.set_xlim(0.0, 1.02)
        ax.set_ylim(bottom=0.0)
        what = "error" if self.zero_one else "mean cost"
        quiet(ax, f"{what} of the rows that are decided", "share of rows that is decided", what)
        legend(ax)
        self._count_held(ax)
        return self

    def to_frame(self) -> Any:
        """What is drawn, as a table.

        Returns
        -------
        DataFrame
            A line for each cost of rejecting: the share that is decided, what these cost, and what all cost.
        """
        curve = self.curve
        columns = {"reject": curve.reject, "coverage": curve.coverage, "risk": curve.risk, "cost": curve.cost}
        return data_frame(columns)
