"""`LearningDisplay`: how the figures grow with rows, from shards that are counted once and added up."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np

from deciban.errors import Argument, UsageError
from deciban.evaluation.validation import evaluate_rows, separate_fold
from deciban.fitting.fit import count_examples, open_examples
from deciban.fitting.update import replace_counts
from deciban.model.fitted import Fitted
from deciban.plot.display import (
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
from deciban.util.arrays import Floats, Integers
from deciban.util.frames import data_frame

# Shards that are counted, the fewest rows that anything is learned from, and the folds of which one is held out.
SHARDS = 8
MIN_LEARNED = 10
HELD_OUT = 5


class LearningMetrics(NamedTuple):
    """Accuracy and log-loss after each number of rows."""

    accuracy: Floats
    log_loss: Floats


class LearningDisplay(Display):
    """How accuracy and log-loss of rows held out change as more rows are learned.

    Rows are counted in shards, each once, and the counts are added up: nothing is fitted again. What columns are, and
    what a tuned model htuned, is held fixed, as it is in leave-one-out; beside it is plain Bayes.

    Parameters
    ----------
    rows : ndarray of shape (n_points,)
        How many rows were learned.
    metrics : mapping from str to (accuracy, log-loss)
        The figures after each number of rows, by the name of the model.
    held_out : int, default=0
        How many rows were held out.

    Attributes
    ----------
    ax_ : Axes
        The axes of the log-loss.
    axes_ : list of Axes
        Those of the log-loss and of the accuracy.
    figure_ : Figure
        The figure.

    See Also
    --------
    BayesClassifier.shard : Count rows to be added.
    merge : Add up classifiers that were trained apart.

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

    def __init__(self, rows: Floats, metrics: Mapping[str, tuple[Floats, Floats]], held_out: int = 0) -> None:
        self.rows = rows
        self.metrics = {name: LearningMetrics(*found) for name, found in metrics.items()}
        self.held_out = held_out

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        X_test: Any = None,
        y_test: Any = None,
        shards: int = SHARDS,
        ax: Axes | None = None,
    ) -> Self:
        """Draw how a classifier learns.

        Parameters
        ----------
        estimator : BayesClassifier
            A fitted classifier, which says what each column is and what is tuned.
        X : table
            Rows to learn from.
        y : array-like or str
            Their labels, or the name of the column that holds them.
        sample_weight : array-like or str, default=None
            Their weights, or the name of the weight column.
        X_test : table, default=None
            Rows to judge by. None: a fifth of X, which then is not learned.
        y_test : array-like or str, default=None
            Their labels, or the name of the column that holds them.
        shards : int, default=8
            How many shards the rows are counted in: each doubles the rows.
        ax : Axes, default=None
            One pair of axes, or two. None: a new figure.

        Returns
        -------
        LearningDisplay
        """
        fitted = get_fitted(estimator)
        if not isinstance(shards, int | np.integer) or shards < 2:
            raise UsageError("give a whole number that is at least 2", parameter=Argument("shards", shards))
        rows = open_examples(fitted, X, y, sample_weight).whole()
        if X_test is not None:
            test = open_examples(fitted, X_test, y_test).whole()
        else:
            inside, outside = separate_fold(rows, HELD_OUT, 0)
            test, rows = inside.whole(), outside.whole()
        order, sizes = _shuffle_rows(rows), _choose_sizes(rows.table.rows, int(shards))
        named = {"plain Bayes": replace(fitted, tuning=None)}
        if fitted.tuning is not None:
            named["tuned"] = fitted
        metrics = _measure(named, [rows.take(order[a:b]) for a, b in zip([0, *sizes[:-1]], sizes, strict=True)], test)
        return cls(np.array(sizes), metrics, test.table.rows).plot(ax)

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
        for (name, found), style in zip(self.metrics.items(), get_curve_styles(len(self.metrics)), strict=True):
            look = {"color": style.color, "linestyle": style.line, "marker": style.marker, "label": escape_text(name)}
            for one, values in zip(panels, (found.log_loss, found.accuracy), strict=True):
                one.plot(self.rows, values, markersize=4, linewidth=1.6, **look)
        held_out = f" (of {self.held_out:,} rows held out)" if self.held_out else ""
        style_axes(panels[0], f"log-loss{held_out}", "rows learned", "nats a row")
        style_axes(panels[1], "accuracy", "rows learned", "share that is right")
        for one in panels:
            _label_rows(one, self.rows)
        add_legend(panels[0])
        self.axes_ = panels
        self._remember_axes(panels[0])
        return self

    def to_frame(self) -> Any:
        """Return the plotted values as a table.

        Returns
        -------
        DataFrame
            A row for each model and number of rows, with accuracy and log-loss.
        """
        names = list(self.metrics)
        return data_frame(
            {
                "model": np.repeat(names, self.rows.size),
                "rows": np.tile(self.rows, len(names)),
                "accuracy": np.concatenate([self.metrics[name].accuracy for name in names]),
                "log_loss": np.concatenate([self.metrics[name].log_loss for name in names]),
            }
        )


def _shuffle_rows(rows: LabeledTable) -> Integers:
    """The rows in an order in which classes are mixed, the same each time."""
    return np.random.default_rng(0).permutation(rows.table.rows)


def _choose_sizes(rows: int, shards: int) -> list[int]:
    """How many rows there are up to each shard: twice as many each time."""
    found = sorted({rows >> k for k in range(shards) if rows >> k >= MIN_LEARNED})
    if len(found) < 2:
        raise UsageError(f"{rows} rows are too few to be learned in shards", remedy="give more")
    return found


def _measure(named: Mapping[str, Fitted], shards: Sequence[LabeledTable], test: Any) -> dict[str, LearningMetrics]:
    """The figures of each model after each shard; a shard is counted once, whatever the number of models."""
    first = next(iter(named.values()))
    total, found = None, {name: ([], []) for name in named}  # type: ignore[var-annotated]  # of floats
    for shard in shards:
        table = replace(shard, table=first.counts.schema.table_as_learned(shard.table))
        counted = count_examples(first.counts.schema, table, first.settings.threads)
        total = counted if total is None else total + counted
        for name, fitted in named.items():
            one = evaluate_rows(replace_counts(fitted, total), test)
            found[name][0].append(one.accuracy)
            found[name][1].append(one.log_loss)
    return {name: LearningMetrics(np.array(accuracy), np.array(loss)) for name, (accuracy, loss) in found.items()}


def _label_rows(ax: Axes, rows: Floats) -> None:
    """A logarithmic axis on which the numbers of rows are written."""
    from matplotlib.ticker import NullFormatter, NullLocator

    ax.set_xscale("log")
    every = -(-rows.size // 5)
    shown = rows[::-1][::every][::-1]
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set_xticks(shown, [f"{int(size):,}" for size in shown])
