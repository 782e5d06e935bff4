"""Scoring of Spark DataFrames on the executors: each function returns the DataFrame with columns added."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from deciban.explain.columns import explain_as_columns
from deciban.model.fitted import Fitted
from deciban.scoring.predict import align_rows, decide_batches, loss_for, predict_batches
from deciban.sources.spark import SparkRows
from deciban.tables.table import Frame, with_columns


def predict_in_spark(fitted: Fitted, frame: Any, *, probabilities: bool = False) -> Any:
    """Add the columns `predicted` and `probability` and, if asked, the probability of each class."""
    return SparkRows.of(frame).add_columns(Predict(fitted.single_threaded, probabilities))


def decide_in_spark(fitted: Fitted, frame: Any, loss: Any = None, reject: float | None = None) -> Any:
    """Add the least-cost decision, its risk, and the second-best decision."""
    return SparkRows.of(frame).add_columns(Decide(fitted.single_threaded, loss_for(fitted, loss, reject)))


def explain_in_spark(fitted: Fitted, frame: Any) -> Any:
    """Add the predicted class, the second-best class, and the evidence of each column in decibans."""
    return SparkRows.of(frame).add_columns(Explain(fitted.single_threaded))


@dataclass(frozen=True)
class Predict:
    """Predictions of a batch of rows, as columns."""

    fitted: Fitted
    probabilities: bool

    def __call__(self, table: pa.Table) -> pa.Table:
        return _select_added(table, predict_batches(self.fitted, table, probabilities=self.probabilities))


@dataclass(frozen=True)
class Decide:
    """Decisions of a batch of rows, as columns; the loss must have the classes of the model."""

    fitted: Fitted
    loss: Any

    def __call__(self, table: pa.Table) -> pa.Table:
        return _select_added(table, decide_batches(self.fitted, table, self.loss))


@dataclass(frozen=True)
class Explain:
    """Explanations of a batch of rows, as columns."""

    fitted: Fitted

    def __call__(self, table: pa.Table) -> pa.Table:
        explained = explain_as_columns(self.fitted.model, align_rows(self.fitted, table))
        return _select_added(table, iter([with_columns(Frame(table), explained)]))


def _select_added(table: pa.Table, results: Iterator[pa.Table]) -> pa.Table:
    """Return the columns of the result that the table does not have."""
    (result,) = results
    return result.select(range(table.num_columns, result.num_columns))
