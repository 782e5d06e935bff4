"""Family of positive amounts with a normally distributed logarithm: incomes, prices, concentrations."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from deciban.families.base.checks import POSITIVE, Outside, check_finite, check_outside, score_impossible
from deciban.families.base.contract import (
    BaseLikelihood,
    Covariance,
    DiscriminantTerms,
    FreeParameters,
    LeftOutRows,
    NumericSummary,
    ParameterEstimates,
    Sampled,
    add_common_factor,
)
from deciban.families.base.lowering import ExportedColumns, Lowered, reject_infinite
from deciban.families.base.spread import Pooled
from deciban.families.base.sql_questions import Later, Logarithm, SqlQuestions
from deciban.families.gaussian import (
    Normal,
    NormalShaped,
    add_normal_covariance,
    estimate_normal,
    score_normal_left_out,
)
from deciban.statistics import Moments
from deciban.util.arrays import Codes, Floats, Integers, Numbers
from deciban.util.text_tables import format_number


def positive_log(numbers: Numbers) -> Floats:
    """Return the logarithms of the numbers above 0; NaN for all others."""
    logs = np.empty(numbers.shape)
    logs.fill(np.nan)
    return np.log(numbers, out=logs, where=numbers > 0.0, dtype=np.float64)


@dataclass(frozen=True, repr=False)
class LogNormal(NormalShaped):
    r"""Amounts above 0, such as incomes and prices: a log-normal distribution for each class, normal in log x.

    Each column is a separate block.

    Parameters
    ----------
    variance : PerClass, Pooled or Shrunk, default=PerClass()
        One variance (of log x) per class, one for all classes, or a weighted mean of both.
    ddof : float, default=0.0
        Delta degrees of freedom, as in `numpy.var`: 0 is maximum likelihood, 1 unbiased. With `Pooled` it is subtracted
        once per class: ddof=1 divides the pooled scatter by n - n_classes.
    floor : float, default=0.0
        Minimum variance of log x, as a share of the column's over all classes. With 0, only a class of n equal cells is
        adjusted: its variance is 1/(n+1) of the column's.
    outside : {"error", "ignore"}, default="error"
        How to treat a cell outside the support. "error": raise DataError in training; in scoring, every class has
        probability 0. "ignore": treat the cell as missing.

    Raises
    ------
    UsageError
        If a parameter is out of range.

    See Also
    --------
    Gamma : The other family of positive amounts.
    Gaussian : Real numbers of either sign.

    Notes
    -----
    With the mean :math:`\mu_c` and the variance :math:`\sigma_c^2` of log x in class c:

    .. math::

        p(x \mid c) = \frac{1}{x \sqrt{2 \pi \sigma_c^2}} \exp\left(- \frac{(\log x - \mu_c)^2}{2 \sigma_c^2}\right)

    Examples
    --------
    >>> from deciban import BayesClassifier, LogNormal
    >>> clf = BayesClassifier(LogNormal(), tune=None).fit({"income": [1e3, 1e4, 1e5, 1e4, 1e5, 1e6]}, list("aaabbb"))
    >>> clf.estimates()["income"]["log_mean"].round(3).tolist()             # log 10,000 and log 100,000
    [9.21, 11.513]
    """

    outside: Outside = "error"

    support = POSITIVE

    def __post_init__(self) -> None:
        super().__post_init__()
        check_outside(self.outside)

    @property
    def statistic_key(self) -> Hashable:
        return type(self).__name__, self.outside

    @classmethod
    def candidates_for(cls, summary: NumericSummary) -> list[Self]:
        if not summary.is_positive:
            return []
        pooled = [cls(variance=Pooled(), outside="ignore")] if summary.varies_within_classes else []
        return [*pooled, *([cls(outside="ignore")] if summary.varies_in_every_class else [])]

    def count(self, cells: Numbers, labels: Codes, weights: Floats, classes: int) -> Moments:
        check_finite(cells)
        return Moments.count(positive_log(POSITIVE.handle_outside(cells, self.outside)), labels, weights, classes)

    def count_in_sql(self, questions: SqlQuestions, columns: Sequence[int]) -> Later[Moments]:
        return questions.moments([Logarithm(column) for column in columns])

    def estimate(self, statistic: Moments) -> LogNormalLikelihood:
        return LogNormalLikelihood(estimate_normal(statistic, self.variance, self.ddof, self.floor), self.outside)

    def score_left_out(
        self, statistic: Moments, cells: Numbers, rows: LeftOutRows, slot: Integers, out: Floats
    ) -> None:
        score_normal_left_out(self, statistic, positive_log(cells), rows, slot, out)
        add_common_factor(self.estimate(statistic), cells, np.ones(slot.size), slot, out)

    def add_covariance(
        self, whole: LogNormalLikelihood, statistic: Moments, cells: Numbers, weight: Floats, out: Covariance
    ) -> None:
        add_normal_covariance(whole.normal, statistic, self, positive_log(cells), weight, out)


@dataclass(frozen=True)
class LogNormalLikelihood(BaseLikelihood):
    """Normal distributions of log x."""

    normal: Normal
    outside: Outside

    def score(self, cells: Numbers, weight: Floats, slot: Integers, out: Floats) -> None:
        check_finite(cells)
        self.normal.score(positive_log(cells), weight, slot, out)
        if self.outside == "error":
            score_impossible(cells <= 0, weight, slot, out)

    def log_common_factor(self, cells: Numbers) -> Floats:
        return -np.nan_to_num(positive_log(cells))

    def lower(self, columns: ExportedColumns) -> Lowered:
        blocks = self.normal.normal_terms(columns, of_log=True, impossible=self.outside == "error")
        return Lowered(blocks, [reject_infinite(column) for column in columns.numbers])

    def sample(self, labels: Integers, rng: np.random.Generator) -> list[Sampled]:
        return [np.exp(column) for column in self.normal.sample(labels, rng)]

    def estimates(self) -> list[ParameterEstimates]:
        """Return the mean and variance of the logarithm of the cells."""
        found = (block.parameters for block in self.normal.estimates())
        return [ParameterEstimates({"log_mean": log["mean"], "log_variance": log["variance"]}) for log in found]

    def free_parameters(self) -> FreeParameters:
        return self.normal.free_parameters()

    def cdf(self, x: Floats, column: int, label: int) -> Floats:
        return self.normal.cdf(np.log(np.where(x > 0.0, x, 1e-300)), column, label)

    def curve_points(self, column: int) -> Floats:
        with np.errstate(over="ignore"):
            modes = np.exp(self.normal.center[column] + self.normal.mean[column] - self.normal.variance[column])
        return np.unique(modes[np.isfinite(modes)])

    def discriminant_terms(self, names: Sequence[str]) -> list[DiscriminantTerms]:
        """Return terms whose features are logarithms."""
        return [_of_logs(terms) for terms in self.normal.discriminant_terms([f"log({name})" for name in names])]

    def formula(self, cells: Numbers, row: int, column: int, label: int) -> str | None:
        if cells[row, column] <= 0:
            return "outside the support" if self.outside == "error" else None
        if np.isnan(cells[row, column]):
            return None
        x = format_number(cells[row, column])
        return f"{self.normal.at(f'log {x}', column, label)} / {x}"


def _of_logs(terms: DiscriminantTerms) -> DiscriminantTerms:
    """Return terms of the logarithms of cells as terms of the cells."""
    return replace(terms, features=lambda cells: terms.features(positive_log(cells)))
