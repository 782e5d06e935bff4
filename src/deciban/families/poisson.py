"""Family of counts of events: visits, defects, goals."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Self

import numpy as np

from deciban import kernels
from deciban.families.base.checks import COUNTS, Outside, check_amount, check_finite, check_outside, score_impossible
from deciban.families.base.contract import (
    BaseLikelihood,
    ColumnFamily,
    Covariance,
    DiscriminantTerms,
    FreeParameters,
    LeftOutRows,
    NumericSummary,
    ParameterEstimates,
    Sampled,
    add_common_factor,
)
from deciban.families.base.lowering import ExportedColumns, HalfLineTerm, Lowered, Term, reject_infinite
from deciban.families.base.smoothing import draw_counts
from deciban.families.base.sql_questions import Event, Later, SqlQuestions
from deciban.statistics import Totals
from deciban.statistics.base import FUZZ
from deciban.statistics.moments import check_not_too_large
from deciban.tables.table import Readable
from deciban.util.arrays import MAX_AMOUNT, Codes, Floats, Integers, Numbers, log
from deciban.util.special import log_gamma
from deciban.util.text_tables import format_digits, format_number


@dataclass(frozen=True, repr=False)
class Poisson(ColumnFamily):
    r"""Counts 0, 1, 2, …: a Poisson distribution for each class and column.

    Each column is a separate block. A column without any event in n rows has the rate 1/(n+1) in every class, as if the
    next row had one. It has no evidence, and an event there is rare instead of impossible.

    Parameters
    ----------
    alpha : float, default=0.0
        Smoothing: number of rows at the column's overall mean added to each class. 0 is maximum likelihood:
        a class without any event gives events probability 0.
    outside : {"error", "ignore"}, default="error"
        How to treat a cell outside the support. "error": raise DataError in training; in scoring, every class has
        probability 0. "ignore": treat the cell as missing.

    Raises
    ------
    UsageError
        If a parameter is out of range.

    See Also
    --------
    Multinomial : Counts of words; only their proportions matter.
    Gamma : Amounts that are not whole numbers.

    Notes
    -----
    Where :math:`T_c` is the sum of the :math:`n_c` cells of class c, and m the mean of the column over all classes:

    .. math::

        P(x \mid c) = \frac{\lambda_c^x \, e^{-\lambda_c}}{x!}, \quad \lambda_c = \frac{T_c + \alpha m}{n_c + \alpha}

    Examples
    --------
    >>> from deciban import BayesClassifier, Poisson
    >>> clf = BayesClassifier(Poisson(), tune=None).fit({"calls": [0, 1, 2, 4, 6, 5]}, list("aaabbb"))
    >>> print(clf.estimates()["calls"])
    calls: Poisson()
          a  b
    rate  1  5
    """

    alpha: float = 0.0
    outside: Outside = "error"

    support = COUNTS

    def __post_init__(self) -> None:
        check_amount("alpha", self.alpha)
        check_outside(self.outside)

    @property
    def statistic_key(self) -> Hashable:
        return type(self).__name__, self.outside

    @classmethod
    def candidates_for(cls, summary: NumericSummary) -> list[Self]:
        return [cls(alpha=1.0, outside="ignore")] if summary.is_count else []

    def read(self, batch: Readable, columns: Sequence[int]) -> Numbers:
        return batch.numbers(columns)

    def empty(self, classes: int, columns: int) -> Totals:
        return Totals.empty(classes, columns)

    def count(self, cells: Numbers, labels: Codes, weights: Floats, classes: int) -> Totals:
        check_not_too_large(cells)
        return Totals.count(COUNTS.handle_outside(cells, self.outside), labels, weights, classes)

    def count_in_sql(self, questions: SqlQuestions, columns: Sequence[int]) -> Later[Totals]:
        return questions.totals([Event(column) for column in columns], whole=True)

    def estimate(self, statistic: Totals) -> PoissonLikelihood:
        rate = self._rates(statistic.total, statistic.present, axis=0).T
        known = statistic.present.sum(axis=0)[:, None] > 0.0
        return PoissonLikelihood(rate.copy(), np.where(known, log(rate), 0.0), self.outside)

    def _rates(self, total: Floats, present: Floats, axis: int) -> Floats:
        """Return the rate of each class; classes are along `axis`."""
        every, rows = total.sum(axis=axis, keepdims=True), present.sum(axis=axis, keepdims=True)
        overall = np.divide(every, rows, out=np.zeros_like(rows), where=rows > 0.0)
        top, bottom = total + self.alpha * overall, present + self.alpha
        rate = np.divide(top, bottom, out=np.zeros_like(top) + overall, where=bottom > 0.0)
        never = (every == 0.0) & (rows > 0.0)
        return np.asarray(np.where(never, 1.0 / (1.0 + rows), rate))

    def score_left_out(self, statistic: Totals, cells: Numbers, rows: LeftOutRows, slot: Integers, out: Floats) -> None:
        own = np.arange(len(statistic.total)) == rows.labels[:, None]
        cells = COUNTS.mask_outside(cells)
        for j in range(cells.shape[1]):
            x = cells[:, j].astype(np.float64)
            there = np.flatnonzero(~np.isnan(x))
            first, place = rows[there].find_distinct(x[there])  # equal cells are scored once
            x, removed = x[there[first], None], rows.removed[there[first], None]
            gone = own[there[first]] * removed
            whole, present = statistic.total[:, j], statistic.present[:, j] - gone
            total = whole - gone * x
            total = np.where(total > FUZZ * whole, total, 0.0)
            rate = self._rates(total, present, axis=1)
            known = present.any(axis=1, keepdims=True)
            hits = np.multiply(x, log(rate), out=np.zeros_like(rate), where=(x > 0.0) & known)
            out[there, slot[j]] += (hits - rate)[place]
        add_common_factor(self.estimate(statistic), cells, np.ones(slot.size), slot, out)

    def add_covariance(
        self, whole: PoissonLikelihood, statistic: Totals, cells: Numbers, weight: Floats, out: Covariance
    ) -> None:
        """Add the estimation errors of the rates: the estimate of a rate r has the variance r/n."""
        rate, rows = whole.rate, np.maximum(statistic.present.T + self.alpha, 0.5)
        numbers = COUNTS.mask_outside(cells)
        for j in np.flatnonzero((weight != 0.0) & statistic.total.any(axis=0)):
            safe = np.maximum(rate[j], 1e-3 / rows[j])
            x = numbers[:, j, None].astype(np.float64)
            variance = (x / safe - 1.0) ** 2 * safe / rows[j]
            out.own[:] += weight[j] ** 2 * np.where(np.isnan(x), 0.0, variance)


@dataclass(frozen=True)
class PoissonLikelihood(BaseLikelihood):
    """Rates, column by class, and their logarithms."""

    rate: Floats
    log_rate: Floats
    outside: Outside

    def score(self, cells: Numbers, weight: Floats, slot: Integers, out: Floats) -> None:
        check_finite(cells)
        if self.outside == "ignore":
            cells = COUNTS.mask_outside(cells)
        kernels.scoring.score_half_line(cells, np.zeros_like(self.rate), self.log_rate, -self.rate, weight, slot, out)
        score_impossible(~COUNTS.contains(cells) & ~np.isnan(cells), weight, slot, out)

    def log_common_factor(self, cells: Numbers) -> Floats:
        return -log_gamma(np.where(COUNTS.contains(cells), np.minimum(cells, MAX_AMOUNT), 0.0) + 1.0)

    def lower(self, columns: ExportedColumns) -> Lowered:
        impossible, flat = self.outside == "error", np.zeros(self.rate.shape[1])
        blocks: list[list[Term]] = [
            [HalfLineTerm(column, -rate, flat, log_rate, True, impossible)]
            for column, rate, log_rate in zip(columns.numbers, self.rate, self.log_rate, strict=True)
        ]
        return Lowered(blocks, [reject_infinite(column) for column in columns.numbers])

    def sample(self, labels: Integers, rng: np.random.Generator) -> list[Sampled]:
        return list(draw_counts(self.rate[:, labels], rng))

    def estimates(self) -> list[ParameterEstimates]:
        return [ParameterEstimates({"rate": rate}) for rate in self.rate]

    def free_parameters(self) -> FreeParameters:
        columns, classes = self.rate.shape
        return FreeParameters.of_columns([classes] * columns, unbounded=True)

    def discriminant_terms(self, names: Sequence[str]) -> list[DiscriminantTerms]:
        return [
            DiscriminantTerms((name,), partial(_counts_in, j), self.log_rate[j][None], -self.rate[j])
            for j, name in enumerate(names)
        ]

    def formula(self, cells: Numbers, row: int, column: int, label: int) -> str | None:
        if np.isnan(cells[row, column]) or (self.outside == "ignore" and not COUNTS.contains(cells[row, column])):
            return None
        return f"Poisson({format_number(cells[row, column])}; mean {format_digits(self.rate[column, label])})"


def _counts_in(column: int, cells: Numbers) -> Floats:
    """Return the counts in a column as a feature; NaN for other numbers."""
    return np.asarray(COUNTS.mask_outside(cells[:, column : column + 1]), dtype=np.float64)
