"""Waiting times: numbers above 0 whose density falls from 0 on."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deciban.families.base.checks import POSITIVE, impossible, refuse_infinite
from deciban.families.base.contract import (
    BaseLikelihood,
    ColumnFamily,
    Covariance,
    Estimated,
    LeftOut,
    Parameters,
    Sampled,
    score_anew,
)
from deciban.families.base.lowering import ExportedColumns, HalfLineTerm, Lowered, Term, reject_infinite
from deciban.families.base.sql_questions import Later, Positive, SqlQuestions
from deciban.statistics import Moments
from deciban.tables.table import Readable
from deciban.util.arrays import Codes, Floats, Integers, Numbers
from deciban.util.text_tables import as_written, digits


@dataclass(frozen=True, repr=False)
class Exponential(ColumnFamily):
    """Waiting times: an exponential distribution for each class and column.

    Examples
    --------
    >>> from deciban import BayesClassifier, Exponential
    >>> clf = BayesClassifier(Exponential(), tune=None).fit({"wait": [1.0, 3.0, 5.0, 15.0]}, list("aabb"))
    >>> clf.estimates()["wait"]["mean"].tolist()
    [2.0, 10.0]
    """

    support = POSITIVE

    def read(self, batch: Readable, columns: Sequence[int]) -> Numbers:
        return batch.numbers(columns)

    def empty(self, classes: int, columns: int) -> Moments:
        return Moments.empty(classes, columns)

    def count(self, cells: Numbers, labels: Codes, weights: Floats, classes: int) -> Moments:
        refuse_infinite(cells)
        POSITIVE.refuse_others(cells)
        return Moments.count(cells, labels, weights, classes)

    def count_in_sql(self, questions: SqlQuestions, columns: Sequence[int]) -> Later[Moments]:
        return questions.moments([Positive(column) for column in columns])

    def estimate(self, statistic: Moments) -> "ExponentialLikelihood":
        mean = np.where(statistic.weight > 0.0, statistic.mean + statistic.mean_low, statistic.over_classes().mean)
        return ExponentialLikelihood(np.where(mean > 0.0, mean, 1.0).T.copy())

    def score_left_out(self, statistic: Moments, cells: Numbers, rows: LeftOut, slot: Integers, out: Floats) -> None:
        score_anew(self, statistic, cells, rows, slot, out)

    def add_covariance(
        self, whole: "ExponentialLikelihood", statistic: Moments, cells: Numbers, weight: Floats, out: Covariance
    ) -> None:
        for j in np.flatnonzero(weight):
            x, rows = cells[:, j, None], np.maximum(statistic.weight[:, j], 0.5)
            out.own[:] += weight[j] ** 2 * np.where(np.isnan(x), 0.0, (x / whole.mean[j] - 1.0) ** 2 / rows)


@dataclass(frozen=True)
class ExponentialLikelihood(BaseLikelihood):
    """Means, column by class."""

    mean: Floats

    def score(self, cells: Numbers, weight: Floats, slot: Integers, out: Floats) -> None:
        refuse_infinite(cells)
        for j in np.flatnonzero(weight):
            x = cells[:, j, None]
            out[:, slot[j]] += weight[j] * np.where(np.isnan(x), 0.0, -x / self.mean[j] - np.log(self.mean[j]))
        impossible(~POSITIVE.contains(cells) & ~np.isnan(cells), weight, slot, out)

    def lower(self, columns: ExportedColumns) -> Lowered:
        blocks: list[list[Term]] = [
            [HalfLineTerm(column, -np.log(mean), np.zeros_like(mean), -1.0 / mean, False, True)]
            for column, mean in zip(columns.numbers, self.mean, strict=True)
        ]
        return Lowered(blocks, [reject_infinite(column) for column in columns.numbers])

    def sample(self, labels: Integers, rng: np.random.Generator) -> list[Sampled]:
        return list(rng.exponential(self.mean[:, labels]))

    def estimates(self) -> list[Estimated]:
        return [Estimated({"mean": mean}) for mean in self.mean]

    def parameters(self) -> Parameters:
        columns, classes = self.mean.shape
        return Parameters.of_columns([classes] * columns, numbers=columns)

    def cumulative(self, x: Floats, column: int, label: int) -> Floats:
        return np.asarray(-np.expm1(-np.maximum(x, 0.0) / self.mean[column, label]))

    def formula(self, cells: Numbers, row: int, column: int, label: int) -> str | None:
        x = cells[row, column]
        return None if np.isnan(x) else f"Exp({as_written(x)}; mean {digits(self.mean[column, label])})"
