"""`CoverageDisplay`: error rate or mean cost of the decided rows against their share of all rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from deciban.decisions.decide import CoverageCurve, choose_decisions, compute_incurred_costs
from deciban.decisions.loss import Loss
from deciban.errors import Argument, UsageError
from deciban.plot.display import Axes, Display, add_legend, make_axes, style_axes
from deciban.plot.scored_rows import ScoredRows, check_posteriors, score_rows
from deciban.typing import Costs, Labels, Table, Weights
from deciban.util.frames import remember_library
from deciban.util.text_tables import format_three
from deciban.web.palette import CLASS_COLORS

if TYPE_CHECKING:
    from deciban.estimators.classifier import BayesClassifier


class CoverageDisplay(Display):
    """Error rate or mean cost of the decided rows against coverage, the share of rows that are decided.

    Rows are decided in order of confidence. A rising curve shows that the model is less confident where it errs.

    Parameters
    ----------
    curve : CoverageCurve
        Coverage and mean cost of the decided rows for every cost of rejection.
    zero_one : bool, default=True
        True if every mistake costs 1: the mean cost is then the error rate.
    reject : float, default=None
        A cost of rejection to mark. None: not marked.

    Attributes
    ----------
    ax_, figure_ : Axes, Figure
        The axes and the figure.

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
        estimator: BayesClassifier,
        X: Table | None = None,
        y: Labels | None = None,
        sample_weight: Weights | None = None,
        *,
        leave_one_out: bool = False,
        loss: Loss | Costs | None = None,
        reject: float | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the curve of a fitted classifier.

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
        reject : float, default=None
            A cost of rejection to mark. None: not marked.
        ax : Axes, default=None
            The axes to draw on. None: a new figure.

        Returns
        -------
        CoverageDisplay
        """
        shown = cls._of(score_rows(estimator, X, y, sample_weight, leave_one_out), loss, reject)
        return remember_library(shown, X, estimator).plot(ax)

    @classmethod
    def from_predictions(
        cls,
        y_true: Labels,
        posterior: Table,
        *,
        classes: Labels | None = None,
        loss: Loss | Costs | None = None,
        reject: float | None = None,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the curve of any classifier.

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
        reject : float, default=None
            A cost of rejection to mark. None: not marked.
        ax : Axes, default=None
            The axes to draw on. None: a new figure.

        Returns
        -------
        CoverageDisplay
        """
        return cls._of(check_posteriors(y_true, posterior, classes), loss, reject).plot(ax)

    @classmethod
    def _of(cls, rows: ScoredRows, loss: Any, reject: float | None) -> Self:
        if reject is not None and not reject >= 0.0:
            raise UsageError("expected a cost of at least 0", parameter=Argument("reject", reject))
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
            The axes to draw on. None: a new figure.

        Returns
        -------
        CoverageDisplay
        """
        ax = make_axes(ax, (6.0, 3.8))
        some = self.curve.coverage > 0.0
        x, y = self.curve.coverage[some], self.curve.risk[some]
        ax.plot(x, y, color=CLASS_COLORS[0], linewidth=1.6, drawstyle="steps-post")
        ax.plot(x[-1:], y[-1:], color=CLASS_COLORS[0], marker="o", markersize=6, linestyle="none", clip_on=False,
                label=f"all rows decided: {self._format(float(y[-1]))}")  # fmt: skip
        if self.reject is not None:
            place = int((self.curve.reject <= self.reject).sum()) - 1
            coverage, risk = (float(array[place]) for array in (self.curve.coverage, self.curve.risk))
            label = f"rejecting at cost {format_three(self.reject)}: {self._format(risk)} at {coverage:.1%} coverage"
            ax.plot([coverage], [risk], color=CLASS_COLORS[1], marker="s", markersize=6, linestyle="none", label=label,
                    clip_on=False)  # fmt: skip
        ax.set_xlim(0.0, 1.0)
        ax.set_ylim(bottom=0.0)
        ax.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
        if self.zero_one:
            ax.yaxis.set_major_formatter(lambda share, _: f"{100.0 * share:.3g}%")
        what = "Error rate" if self.zero_one else "Mean cost"
        style_axes(ax, f"{what} of the decided rows", "coverage: share of rows decided, most confident first",
                   what.lower() + ("" if self.zero_one else " per row"))  # fmt: skip
        add_legend(ax, loc="upper left")
        self._remember_axes(ax)
        return self

    def _format(self, value: float) -> str:
        return f"{format_three(100.0 * value)}%" if self.zero_one else format_three(value)

    def _columns(self) -> dict[str, Any]:
        """Return a row for each cost of rejection: coverage, mean cost of the decided rows, mean cost of all rows."""
        curve = self.curve
        return {"reject": curve.reject, "coverage": curve.coverage, "risk": curve.risk, "cost": curve.cost}
