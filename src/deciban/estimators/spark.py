"""Rows of Spark tables scored where they are: a DataFrame goes in, and one with more columns comes out."""

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
    """The DataFrame with the columns `predicted` and `probability`, and with the probability of each class."""
    return SparkRows.of(frame).add_columns(Predict(fitted.single_threaded, probabilities))


def decide_in_spark(fitted: Fitted, frame: Any, loss: Any = None, reject: float | None = None) -> Any:
    """The DataFrame with the decision of least risk, its risk, and the next best decision."""
    return SparkRows.of(frame).add_columns(Decide(fitted.single_threaded, loss_for(fitted, loss, reject)))


def explain_in_spark(fitted: Fitted, frame: Any) -> Any:
    """The DataFrame with what is predicted, against which class, and what each column says for it in decibans."""
    return SparkRows.of(frame).add_columns(Explain(fitted.single_threaded))


@dataclass(frozen=True)
class Predict:
    """The predictions of some rows, as columns."""

    fitted: Fitted
    probabilities: bool

    def __call__(self, table: pa.Table) -> pa.Table:
        return _added(table, predict_batches(self.fitted, table, probabilities=self.probabilities))


@dataclass(frozen=True)
class Decide:
    """The decisions of some rows, as columns; the loss is for the model's classes."""

    fitted: Fitted
    loss: Any

    def __call__(self, table: pa.Table) -> pa.Table:
        return _added(table, decide_batches(self.fitted, table, self.loss))


@dataclass(frozen=True)
class Explain:
    """The explanations of some rows, as columns."""

    fitted: Fitted

    def __call__(self, table: pa.Table) -> pa.Table:
        explained = explain_as_columns(self.fitted.model, align_rows(self.fitted, table))
        return _added(table, iter([with_columns(Frame(table), explained)]))


def _added(table: pa.Table, answers: Iterator[pa.Table]) -> pa.Table:
    """The columns of the answer that the table does not have."""
    (answer,) = answers
    return answer.select(range(table.num_columns, answer.num_columns))
