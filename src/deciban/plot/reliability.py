"""`ReliabilityDisplay`: predicted probability against observed frequency, before and after tuning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from deciban.evaluation.metrics import Calibration, wilson_interval
from deciban.plot.display import (
    QUIET_COLOR,
    SMALL_SIZE,
    Axes,
    ClassStyle,
    Display,
    escape_text,
    get_curve_styles,
    make_panels,
    style_axes,
)
from deciban.plot.scored_rows import check_posteriors, score_rows
from deciban.typing import Labels, Table, Weights
from deciban.util.frames import remember_library
from deciban.util.text_tables import format_three

if TYPE_CHECKING:
    from deciban.estimators.classifier import BayesClassifier

# Bins of the predicted probability, as in `Calibration`.
N_BINS = 15
# Bins of fewer rows have hollow marks and are not joined by lines.
MIN_ROWS_PER_BIN = 20
# Area of the smallest mark, in square points.
MIN_POINT = 16.0
# Area that is added for the bin of all rows.
MAX_POINT = 90.0


class ReliabilityDisplay(Display):
    """Reliability diagram: how often predictions are correct against their predicted probability.

    Rows are binned by the probability of their predicted class. Points on the diagonal are perfectly calibrated.
    Vertical lines are 95% Wilson intervals. Bins of fewer than 20 rows have hollow marks. The lower panel shows the
    number of rows per bin. A tuned model is compared with plain Bayes.

    Parameters
    ----------
    calibrations : mapping from str to Calibration
        The curves by name, such as "plain Bayes" and "tuned".

    Attributes
    ----------
    ax_ : Axes
        The axes of the curves.
    axes_ : list of Axes
        The axes of the curves and of the row counts.
    figure_ : Figure
        The figure.

    See Also
    --------
    BayesClassifier.evaluate : Metrics of labeled rows.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from deciban import BayesClassifier
    >>> from deciban.plot import ReliabilityDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = BayesClassifier(tune="weights").fit(X[::2], y[::2])
    >>> shown = ReliabilityDisplay.from_estimator(clf, X[1::2], y[1::2])
    >>> list(shown.calibrations)
    ['plain Bayes', 'tuned']
    """

    def __init__(self, calibrations: Mapping[str, Calibration]) -> None:
        self.calibrations = dict(calibrations)

    @classmethod
    def from_estimator(
        cls,
        estimator: BayesClassifier,
        X: Table | None = None,
        y: Labels | None = None,
        sample_weight: Weights | None = None,
        *,
        leave_one_out: bool = False,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the calibration of a fitted classifier, and of plain Bayes if the classifier is tuned.

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
        ax : Axes, default=None
            One pair of axes, or two. None: a new figure.

        Returns
        -------
        ReliabilityDisplay
        """
        rows = score_rows(estimator, X, y, sample_weight, leave_one_out, plain=True)
        after = Calibration.from_posterior(rows.posterior, rows.labels, rows.weights, N_BINS)
        if rows.plain is None:
            return remember_library(cls({"model": after}), X, estimator).plot(ax)
        before = Calibration.from_posterior(rows.plain, rows.labels, rows.weights, N_BINS)
        return remember_library(cls({"plain Bayes": before, "tuned": after}), X, estimator).plot(ax)

    @classmethod
    def from_predictions(
        cls,
        y_true: Labels,
        posterior: Table,
        *,
        classes: Labels | None = None,
        name: str = "model",
        ax: Axes | None = None,
    ) -> Self:
        """Draw the calibration of any classifier.

        Parameters
        ----------
        y_true : array-like of shape (n_rows,)
            The true labels.
        posterior : array-like of shape (n_rows, n_classes)
            The output of `predict_proba`.
        classes : sequence of labels, default=None
            The class of each column. None: the sorted labels of `y_true`.
        name : str, default="model"
            The name of the curve.
        ax : Axes, default=None
            One pair of axes, or two. None: a new figure.

        Returns
        -------
        ReliabilityDisplay
        """
        rows = check_posteriors(y_true, posterior, classes)
        return cls({name: Calibration.from_posterior(rows.posterior, rows.labels, rows.weights, N_BINS)}).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the reliability diagram and the row counts.

        Parameters
        ----------
        ax : Axes, default=None
            One pair of axes, or two. None: a new figure.

        Returns
        -------
        ReliabilityDisplay
        """
        above, below = make_panels(ax, 2, 1, (5.6, 5.8), (3.2, 1.0))
        above.plot([0.0, 1.0], [0.0, 1.0], color=QUIET_COLOR, linewidth=0.8, linestyle=(0, (4, 3)), zorder=0)
        size, few = len(self.calibrations), False
        styles = get_curve_styles(size)
        for k, ((name, curve), style) in enumerate(zip(self.calibrations.items(), styles, strict=True)):
            few |= bool((curve.rows < MIN_ROWS_PER_BIN).any())
            error = f"expected calibration error {format_three(curve.expected_calibration_error)}"
            self._draw_curve(above, curve, style, escape_text(name) + f": {error}")
            width = 0.8 / (N_BINS * size)
            middle = (np.floor(np.minimum(curve.predicted, 1.0 - 1e-9) * N_BINS) + 0.5) / N_BINS
            below.bar(middle + (k - (size - 1) / 2.0) * width, curve.rows, width=width, color=style.color)
        low = min((float(curve.predicted.min(initial=1.0)) for curve in self.calibrations.values()), default=0.0)
        low = max(low - 0.06, 0.0)
        intervals = [wilson_interval(curve.observed, curve.rows) for curve in self.calibrations.values()]
        floor = min((float(bounds[0].min(initial=1.0)) for bounds in intervals), default=0.0)
        for one in (above, below):
            one.set_xlim(low, 1.02)
            one.xaxis.set_major_formatter(_format_percent)
        above.set_ylim(max(min(floor, low) - 0.04, -0.02), 1.03)
        above.yaxis.set_major_formatter(_format_percent)
        above.tick_params(labelbottom=False)
        angle = {"rotation": 45.0, "rotation_mode": "anchor", "transform_rotates_text": True}
        above.text(low + 0.01, low + 0.03, "perfect calibration", fontsize=SMALL_SIZE, color=QUIET_COLOR, **angle)
        below.set_yscale("symlog", linthresh=1.0)
        below.yaxis.set_major_formatter(lambda rows, _: f"{rows:,.0f}")
        style_axes(above, "Calibration", y="observed frequency (correct predictions)")
        style_axes(below, x="predicted probability of the predicted class", y="rows (log scale)")
        handles = above.get_legend_handles_labels()[0]
        handles.append(above.plot([], [], color=QUIET_COLOR, linewidth=1.0, label="95% interval")[0])
        if few:
            look = {"marker": "o", "markerfacecolor": "white", "markersize": 5, "linestyle": "none"}
            handles += above.plot([], [], color=QUIET_COLOR, label=f"fewer than {MIN_ROWS_PER_BIN} rows", **look)
        options: dict[str, Any] = {"handles": handles, "fontsize": SMALL_SIZE, "frameon": False}
        if ax is None:
            above.figure.legend(loc="outside lower left", ncols=1 if size > 1 else 2, **options)
        else:
            above.legend(loc="best", **options)
        self.axes_ = [above, below]
        self._remember_axes(above)
        return self

    def _draw_curve(self, ax: Axes, curve: Calibration, style: ClassStyle, label: str) -> None:
        """Draw the points of a model, their intervals, and a line through the bins of many rows."""
        many = curve.rows >= MIN_ROWS_PER_BIN
        low, high = wilson_interval(curve.observed, curve.rows)
        area = MIN_POINT + MAX_POINT * curve.rows / max(float(curve.rows.sum()), 1e-300)
        ax.vlines(curve.predicted, low, high, color=style.color, linewidth=1.0, alpha=0.6, zorder=2)
        ax.plot(np.where(many, curve.predicted, np.nan), np.where(many, curve.observed, np.nan), color=style.color,
                linestyle=style.line, linewidth=1.4, zorder=2)  # fmt: skip
        fill = np.where(many, style.color, "white")
        ax.scatter(curve.predicted, curve.observed, area, c=fill, edgecolors=style.color, marker=style.marker, zorder=3,
                   clip_on=False)  # fmt: skip
        ax.plot([], [], color=style.color, linestyle=style.line, marker=style.marker, markersize=5, label=label)

    def _columns(self) -> dict[str, Any]:
        """Return a row for each curve and bin: prediction, observed frequency, its 95% interval, number of rows."""
        curves = list(self.calibrations.items())
        intervals = [wilson_interval(curve.observed, curve.rows) for _, curve in curves]
        return {
            "model": [name for name, curve in curves for _ in curve.rows],
            "predicted": np.concatenate([curve.predicted for _, curve in curves]),
            "observed": np.concatenate([curve.observed for _, curve in curves]),
            "low": np.concatenate([low for low, _ in intervals]),
            "high": np.concatenate([high for _, high in intervals]),
            "rows": np.concatenate([curve.rows for _, curve in curves]),
        }


def _format_percent(share: float, _: Any = None) -> str:
    return f"{share:.0%}"
