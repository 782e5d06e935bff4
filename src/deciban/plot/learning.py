"""`LearningDisplay`: metrics of held-out rows against the number of training rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from deciban.errors import Argument, UsageError
from deciban.evaluation.metrics import Z_95, Evaluation, wilson_interval
from deciban.evaluation.validation import evaluate_rows, separate_fold
from deciban.fitting.fit import count_examples, open_examples
from deciban.fitting.update import replace_counts
from deciban.model.fitted import Fitted
from deciban.plot.display import (
    QUIET_COLOR,
    Axes,
    Display,
    add_legend,
    escape_text,
    get_curve_styles,
    get_fitted,
    make_panels,
    style_axes,
)
from deciban.tables.examples import LabeledTable
from deciban.typing import Labels, Table, Weights
from deciban.util.arrays import Floats, Integers
from deciban.util.frames import remember_library

if TYPE_CHECKING:
    from deciban.estimators.classifier import BayesClassifier

# Points of the curve: each has twice as many training rows as the one before.
N_SHARDS = 8
# Fewest training rows of a point.
MIN_TRAINING_ROWS = 10
# One of this number of folds is held out.
N_FOLDS = 5
# Probabilities below this count as this, as in `log_loss`.
TINY = np.finfo(np.float64).eps


class LearningMetrics(NamedTuple):
    """Accuracy and log loss after each number of training rows.

    log_loss_error: the standard error of the log loss. effective_rows: the effective number of held-out rows. Both give
    the intervals; None if they are unknown.
    """

    accuracy: Floats
    log_loss: Floats
    log_loss_error: Floats | None = None
    effective_rows: Floats | None = None

    def bounds(self) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]] | None:
        """Return the 95% intervals of the log loss and of the accuracy, or None."""
        if self.log_loss_error is None or self.effective_rows is None:
            return None
        half = Z_95 * self.log_loss_error
        accuracy = wilson_interval(self.accuracy, self.effective_rows)
        return (np.maximum(self.log_loss - half, 0.0), self.log_loss + half), accuracy


class LearningDisplay(Display):
    """Learning curve: accuracy and log loss of held-out rows against the number of training rows.

    Rows are counted in shards, each once, and the counts are added up: nothing is fitted again. The types and families
    of the columns and the tuning are kept, as in leave-one-out. A tuned model is compared with plain Bayes. Shaded
    bands are 95% intervals for the held-out rows.

    Parameters
    ----------
    rows : ndarray of shape (n_points,)
        The numbers of training rows.
    metrics : mapping from str to (accuracy, log_loss) or LearningMetrics
        The metrics after each number of rows, by the name of the model.
    held_out : int, default=0
        The number of held-out rows.

    Attributes
    ----------
    ax_ : Axes
        The axes of the log loss.
    axes_ : list of Axes
        The axes of the log loss and of the accuracy.
    figure_ : Figure
        The figure.

    See Also
    --------
    BayesClassifier.shard : Count rows to add later.
    merge : Merge classifiers trained on separate rows.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from deciban import BayesClassifier
    >>> from deciban.plot import LearningDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = BayesClassifier(tune=None).fit(X, y)
    >>> shown = LearningDisplay.from_estimator(clf, X, y, shards=4)
    >>> shown.rows.tolist()
    [15, 30, 60, 120]
    """

    def __init__(
        self, rows: Floats, metrics: Mapping[str, LearningMetrics | tuple[Floats, Floats]], held_out: int = 0
    ) -> None:
        self.rows = rows
        self.metrics = {name: LearningMetrics(*values) for name, values in metrics.items()}
        self.held_out = held_out

    @classmethod
    def from_estimator(
        cls,
        estimator: BayesClassifier,
        X: Table,
        y: Labels,
        sample_weight: Weights | None = None,
        *,
        X_test: Table | None = None,
        y_test: Labels | None = None,
        shards: int = N_SHARDS,
        ax: Axes | None = None,
    ) -> Self:
        """Draw the learning curve of a classifier.

        Parameters
        ----------
        estimator : BayesClassifier
            A fitted classifier. Its column types, families and tuning are kept.
        X : table
            Training rows.
        y : array-like or str
            Their labels, or the name of the target column.
        sample_weight : array-like or str, default=None
            Their weights, or the name of the weight column.
        X_test : table, default=None
            Held-out rows. None: a fifth of X is held out.
        y_test : array-like or str, default=None
            Their labels, or the name of the target column.
        shards : int, default=8
            The number of points of the curve. Each doubles the training rows.
        ax : Axes, default=None
            One pair of axes, or two. None: a new figure.

        Returns
        -------
        LearningDisplay
        """
        fitted = get_fitted(estimator)
        if not isinstance(shards, int | np.integer) or shards < 2:
            raise UsageError("expected a whole number of at least 2", parameter=Argument("shards", shards))
        rows = open_examples(fitted, X, y, sample_weight).whole()
        if X_test is not None:
            test = open_examples(fitted, X_test, y_test).whole()
        else:
            inside, outside = separate_fold(rows, N_FOLDS, 0)
            test, rows = inside.whole(), outside.whole()
        order, sizes = _shuffle_rows(rows), _choose_sizes(rows.table.rows, int(shards))
        named = {"plain Bayes": replace(fitted, tuning=None)}
        if fitted.tuning is not None:
            named["tuned"] = fitted
        metrics = _measure(named, [rows.take(order[a:b]) for a, b in zip([0, *sizes[:-1]], sizes, strict=True)], test)
        return remember_library(cls(np.array(sizes), metrics, test.table.rows), X, estimator).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the curves.

        Parameters
        ----------
        ax : Axes, default=None
            One pair of axes, or two. None: a new figure.

        Returns
        -------
        LearningDisplay
        """
        panels = make_panels(ax, 1, 2, (8.4, 3.6))
        for (name, values), style in zip(self.metrics.items(), get_curve_styles(len(self.metrics)), strict=True):
            look = {"color": style.color, "linestyle": style.line, "marker": style.marker, "label": escape_text(name)}
            intervals = values.bounds()
            for k, curve in enumerate((values.log_loss, values.accuracy)):
                panels[k].plot(self.rows, curve, markersize=4, linewidth=1.6, **look)
                if intervals is not None:
                    panels[k].fill_between(self.rows, *intervals[k], color=style.color, alpha=0.15, linewidth=0.0)
        held_out = f" of {self.held_out:,} held-out rows" if self.held_out else ""
        style_axes(panels[0], f"Log loss{held_out}", "training rows (log scale)", "log loss (nats per row)")
        style_axes(panels[1], f"Accuracy{held_out}", "training rows (log scale)", "correct predictions")
        panels[1].yaxis.set_major_formatter(lambda share, _: f"{100.0 * share:.3g}%")
        panels[0].set_ylim(bottom=0.0)
        for panel in panels:
            _label_rows(panel, self.rows)
        handles = panels[0].get_legend_handles_labels()[0]
        if any(values.bounds() is not None for values in self.metrics.values()):
            handles.append(panels[0].fill_between([], [], [], color=QUIET_COLOR, alpha=0.25, label="95% interval"))
        add_legend(panels[0], handles)
        self.axes_ = panels
        self._remember_axes(panels[0])
        return self

    def _columns(self) -> dict[str, Any]:
        """Return a row for each model and number of training rows, with accuracy and log loss."""
        names = list(self.metrics)
        return {
            "model": np.repeat(names, self.rows.size),
            "rows": np.tile(self.rows, len(names)),
            "accuracy": np.concatenate([self.metrics[name].accuracy for name in names]),
            "log_loss": np.concatenate([self.metrics[name].log_loss for name in names]),
        }


def _shuffle_rows(rows: LabeledTable) -> Integers:
    """Return the rows in a random order that is the same each time."""
    return np.random.default_rng(0).permutation(rows.table.rows)


def _choose_sizes(rows: int, shards: int) -> list[int]:
    """Return the number of training rows of each point, doubling each time."""
    sizes = sorted({rows >> k for k in range(shards) if rows >> k >= MIN_TRAINING_ROWS})
    if len(sizes) < 2:
        raise UsageError(f"{rows} rows are too few for a learning curve", remedy="pass more rows")
    return sizes


def _measure(named: Mapping[str, Fitted], shards: Sequence[LabeledTable], test: Any) -> dict[str, LearningMetrics]:
    """Return the metrics of each model after each shard. A shard is counted once for all models."""
    first = next(iter(named.values()))
    total = None
    points: dict[str, list[tuple[float, float, float, float]]] = {name: [] for name in named}
    for shard in shards:
        table = replace(shard, table=first.counts.schema.table_as_learned(shard.table))
        counted = count_examples(first.counts.schema, table, first.settings.threads)
        total = counted if total is None else total + counted
        for name, fitted in named.items():
            result = evaluate_rows(replace_counts(fitted, total), test)
            points[name].append((result.accuracy, result.log_loss, *_measure_spread(result)))
    return {name: LearningMetrics(*np.array(values).T) for name, values in points.items()}


def _measure_spread(result: Evaluation) -> tuple[float, float]:
    """Return the standard error of the log loss, and the effective number of rows; NaN if the rows were not kept."""
    scored = result.ranking
    if scored.histograms is not None or not scored.labels.size:
        return float("nan"), float("nan")
    weights = scored.weights / scored.weights.sum()
    chance = scored.posterior[np.arange(scored.labels.size), scored.labels]
    loss = -np.log(np.maximum(chance, TINY))
    error = float(np.sqrt((weights**2 * (loss - weights @ loss) ** 2).sum()))
    return error, float(1.0 / (weights**2).sum())


def _label_rows(ax: Axes, rows: Floats) -> None:
    """Label a logarithmic axis with the numbers of training rows."""
    from matplotlib.ticker import NullFormatter, NullLocator

    ax.set_xscale("log")
    every = -(-rows.size // 5)
    shown = rows[::-1][::every][::-1]
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set_xticks(shown, [f"{int(size):,}" for size in shown])
