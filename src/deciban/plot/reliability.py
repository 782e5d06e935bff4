"""`ReliabilityDisplay`: how often claims come true, before and after tuning."""

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from deciban.evaluation.metrics import Calibration
from deciban.plot.display import LINE_COLOR, Axes, Display, curve_styles, legend, panels_for, printed, quiet
from deciban.plot.scored_rows import check_posteriors, score_rows
from deciban.util.frames import data_frame

# Bins of claims, and the size of their points: the more rows, the larger.
CLAIM_BINS = 15
MIN_POINT, MAX_POINT = 6.0, 160.0


class ReliabilityDisplay(Display):
    """How often predictions are right against how probable they were said to be; of a tuned model also before tuning.

    Rows are put into bins by the probability of their predicted class. On the diagonal, claims come true as often as
    they say. Below is how many rows there are in each bin.

    Parameters
    ----------
    calibrations : mapping from str to Calibration
        What is drawn, by name: such as "plain Bayes" and "tuned".

    Attributes
    ----------
    ax_ : Axes
        The axes of the curves.
    axes_ : list of Axes
        Those of the curves and of the numbers of rows.
    figure_ : Figure
        The figure.

    See Also
    --------
    BayesClassifier.evaluate : All figures of rows whose class is known.

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
        estimator: Any,
        X: Any = None,
        y: Any = None,
        sample_weight: Any = None,
        *,
        leave_one_out: bool = False,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the claims of a fitted classifier; of a tuned one beside those of plain Bayes.

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
        ax : Axes, default=None
            Where to draw: one pair of axes, or two; None makes a new figure.

        Returns
        -------
        ReliabilityDisplay
        """
        rows = score_rows(estimator, X, y, sample_weight, leave_one_out, plain=True)
        after = Calibration.of(rows.posterior, rows.labels, rows.weights, CLAIM_BINS)
        if rows.plain is None:
            return cls({"model": after}).plot(ax)
        before = Calibration.of(rows.plain, rows.labels, rows.weights, CLAIM_BINS)
        return cls({"plain Bayes": before, "tuned": after}).plot(ax)

    @classmethod
    def from_predictions(
        cls, y_true: Any, posterior: Any, *, classes: Any = None, name: str = "model", ax: Axes | None = None
    ) -> Self:
        """Draw the claims of any classifier.

        Parameters
        ----------
        y_true : array-like of shape (n_rows,)
            The true classes.
        posterior : array-like of shape (n_rows, n_classes)
            What `predict_proba` says.
        classes : sequence of labels, default=None
            The classes of its columns. None: those of `y_true`, sorted.
        name : str, default="model"
            What the curve is called.
        ax : Axes, default=None
            Where to draw: one pair of axes, or two; None makes a new figure.

        Returns
        -------
        ReliabilityDisplay
        """
        rows = check_posteriors(y_true, posterior, classes)
        return cls({name: Calibration.of(rows.posterior, rows.labels, rows.weights, CLAIM_BINS)}).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the curves.

        Parameters
        ----------
        ax : Axes, default=None
            Where to draw: one pair of axes, or two; None makes a new figure.

        Returns
        -------
        ReliabilityDisplay
        """
        above, below = panels_for(ax, 2, 1, (5.2, 5.6), (3.0, 1.0))
        above.plot([0.0, 1.0], [0.0, 1.0], color=LINE_COLOR, linewidth=1.0, zorder=0)
        size = len(self.calibrations)
        for k, ((name, found), style) in enumerate(zip(self.calibrations.items(), curve_styles(size), strict=True)):
            color = style.color
            label = f"{printed(name)}: calibration error {found.expected_calibration_error:.4f}"
            above.plot(found.predicted, found.observed, color=color, linestyle=style.line, linewidth=1.2)
            share = found.rows / max(float(found.rows.sum()), 1e-300)
            above.scatter(
                found.predicted, found.observed, MIN_POINT + MAX_POINT * share, color=color, marker=style.marker
            )
            width = 0.8 / (CLAIM_BINS * size)
            middle = (np.floor(np.minimum(found.predicted, 1.0 - 1e-9) * CLAIM_BINS) + 0.5) / CLAIM_BINS
            at = middle + (k - (size - 1) / 2.0) * width
            below.bar(at, found.rows, width=width, color=color, label=label)
        low = min((float(found.predicted.min(initial=1.0)) for found in self.calibrations.values()), default=0.0)
        for one in (above, below):
            one.set_xlim(max(low - 0.05, 0.0), 1.01)
        above.set_ylim(bottom=min(above.get_ylim()[0], 0.0), top=1.02)
        quiet(above, "do claims come true?", y="share that was right")
        quiet(below, x="claimed probability of the predicted class", y="rows")
        legend(below)
        self.axes_ = [above, below]
        self._count_held(above)
        return self

    def to_frame(self) -> Any:
        """What is drawn, as a table.

        Returns
        -------
        DataFrame
            A line for each curve and bin: what was claimed, the share that was right, and the weight of its rows.
        """
        found = list(self.calibrations.items())
        return data_frame(
            {
                "model": [name for name, one in found for _ in one.rows],
                "predicted": np.concatenate([one.predicted for _, one in found]),
                "observed": np.concatenate([one.observed for _, one in found]),
                "rows": np.concatenate([one.rows for _, one in found]),
            }
        )
