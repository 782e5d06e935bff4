"""Family of real numbers that are normally distributed within each class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np

from deciban import kernels
from deciban.families.base.checks import FINITE, check_amount, check_finite
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
)
from deciban.families.base.lowering import ExportedColumns, Lowered, NormalTerm, Term, reject_infinite
from deciban.families.base.spread import (
    PerClass,
    Pooled,
    Spread,
    check_no_shrinkage,
    estimate_rounding_variance,
    estimate_spread_errors,
    find_varying,
    min_variance,
)
from deciban.families.base.sql_questions import Later, Number, SqlQuestions
from deciban.statistics import Moments
from deciban.tables.table import Readable
from deciban.util.arrays import TILE_ROWS, Codes, Floats, Integers, Numbers
from deciban.util.text_tables import format_digits, format_number


@dataclass(frozen=True, repr=False)
class NormalShaped(ColumnFamily):
    """Base class of families with a mean and a variance; the parameters are those of `Gaussian`."""

    variance: Spread = PerClass()
    ddof: float = 0.0
    floor: float = 0.0

    def __post_init__(self) -> None:
        check_amount("ddof", self.ddof)
        check_amount("floor", self.floor)
        check_no_shrinkage(self.variance)

    def read(self, batch: Readable, columns: Sequence[int]) -> Numbers:
        return batch.numbers(columns)

    def empty(self, classes: int, columns: int) -> Moments:
        return Moments.empty(classes, columns)


@dataclass(frozen=True, repr=False)
class Gaussian(NormalShaped):
    r"""Real numbers: a normal distribution for each class and column.

    Each column is a separate block. Rescaling or shifting a column does not change posteriors. A constant column has
    no evidence.

    Parameters
    ----------
    variance : PerClass, Pooled or Shrunk, default=PerClass()
        One variance per class, one for all classes, or a weighted mean of both.
    ddof : float, default=0.0
        Delta degrees of freedom, as in `numpy.var`: 0 is maximum likelihood, 1 unbiased. With `Pooled` it is subtracted
        once per class: ddof=1 divides the pooled scatter by n - n_classes.
    floor : float, default=0.0
        Minimum variance, as a share of the column's variance over all classes. With 0, only a class of n equal cells is
        adjusted: its variance is 1/(n+1) of the column's variance, as if the next cell differed.
    var_smoothing : float, default=0.0
        Share of the column's variance over all classes that is added to each variance. scikit-learn's `GaussianNB`
        adds a share of the largest variance of any column instead.

    Raises
    ------
    UsageError
        If a parameter is out of range.

    See Also
    --------
    JointGaussian : Several columns together, with their correlations.
    LogNormal, Gamma : Positive amounts.
    Binned : Numbers of any distribution.

    Notes
    -----
    With the mean :math:`\mu_c` and the variance :math:`\sigma_c^2` of the cells of class c:

    .. math:: p(x \mid c) = \frac{1}{\sqrt{2 \pi \sigma_c^2}} \exp\left(- \frac{(x - \mu_c)^2}{2 \sigma_c^2}\right)

    Examples
    --------
    >>> from deciban import BayesClassifier, Gaussian, Pooled
    >>> clf = BayesClassifier(Gaussian(variance=Pooled()), tune=None)
    >>> _ = clf.fit({"pixels": [11.0, 19.0, 21.0, 29.0]}, ["a", "a", "b", "b"])
    >>> print(clf.estimates()["pixels"])
    pixels: Gaussian(variance=Pooled())
              a   b
    mean      15  25
    variance  16  16
    """

    var_smoothing: float = 0.0

    support = FINITE

    def __post_init__(self) -> None:
        super().__post_init__()
        check_amount("var_smoothing", self.var_smoothing)

    def alternatives(self, summary: NumericSummary | None, others: Sequence[Any], values: int) -> list[Any]:
        """Leave out this family if a class has zero variance: leave-one-out could not show how wrong it is."""
        suits = summary is None or summary.varies_in_every_class
        return [*([self] if suits else []), *others]

    @classmethod
    def candidates_for(cls, summary: NumericSummary) -> list[Self]:
        pooled = [cls(variance=Pooled())] if summary.varies_within_classes else []
        return [*pooled, *([cls()] if summary.varies_in_every_class else [])]

    def count(self, cells: Numbers, labels: Codes, weights: Floats, classes: int) -> Moments:
        return Moments.count(cells, labels, weights, classes)

    def count_in_sql(self, questions: SqlQuestions, columns: Sequence[int]) -> Later[Moments]:
        return questions.moments([Number(column) for column in columns])

    def estimate(self, statistic: Moments) -> Normal:
        return estimate_normal(statistic, self.variance, self.ddof, self.floor, self.var_smoothing)

    def score_left_out(
        self, statistic: Moments, cells: Numbers, rows: LeftOutRows, slot: Integers, out: Floats
    ) -> None:
        score_normal_left_out(self, statistic, cells, rows, slot, out, self.var_smoothing)

    def add_covariance(
        self, whole: Normal, statistic: Moments, cells: Numbers, weight: Floats, out: Covariance
    ) -> None:
        add_normal_covariance(whole, statistic, self, cells, weight, out)


def add_normal_covariance(
    normal: Normal, moments: Moments, family: NormalShaped, cells: Numbers, weight: Floats, out: Covariance
) -> None:
    """Add the estimation errors of means and variances; see `Family.add_covariance`.

    The estimate of a mean has the variance v/n, that of a variance 2v²/n; n counts all rows if it is pooled. At a
    squared distance q, in units of the variance, the evidence changes by q times the relative error of the mean, and
    (q - 1)/2 times that of the variance.
    """
    rows = np.maximum(moments.weight.T, 0.5)
    for j in np.flatnonzero(weight):
        if not (normal.variance[j] > 0.0).all():
            continue
        square = 2.0 * ((cells[:, j, None] - normal.center[j] - normal.mean[j]) * normal.root[j]) ** 2
        missing = np.isnan(cells[:, j, None])
        change = weight[j] * np.where(missing, 0.0, square - 1.0)
        errors = estimate_spread_errors(family.variance, rows[j], normal.variance[j])
        out.own[:] += weight[j] ** 2 * np.where(missing, 0.0, square) / rows[j] + change**2 * np.diag(errors)
        if family.variance.share_pooled:
            between = errors - np.diag(np.diag(errors))
            out.add_shared(partial(_multiply_scaled, change, between))


def _multiply_scaled(scale: Floats, matrix: Floats, direction: Floats) -> Floats:
    """Return diag(scale) matrix diag(scale) direction, for the scale and the direction of each row."""
    return np.asarray(scale * ((scale * direction) @ matrix))


def score_normal_left_out(
    family: NormalShaped,
    moments: Moments,
    cells: Numbers,
    rows: LeftOutRows,
    slot: Integers,
    out: Floats,
    var_smoothing: float = 0.0,
) -> None:
    """Score each row with the normal distributions estimated from the other rows."""
    center = moments.merge_classes().mean[0]
    mean = np.where(moments.weight > 0.0, (moments.mean - center) + moments.mean_low, 0.0)
    weight, scatter = moments.weight, moments.scatter + moments.scatter_low
    all_weight, pooled, degrees = weight.sum(axis=0), scatter.sum(axis=0), np.maximum(weight - family.ddof, 0.0)
    all_mean = (weight * mean).sum(axis=0) / np.where(all_weight > 0.0, all_weight, 1.0)
    all_scatter = pooled + (weight * (mean - all_mean) ** 2).sum(axis=0)
    columns = kernels.left_out.NormalColumns(
        center=center,
        weight=all_weight,
        mean=all_mean,
        scatter=all_scatter,
        degrees=degrees.sum(axis=0),
        pooled=pooled,
        least=min_variance(center),
    )
    own = np.divide(scatter, degrees, out=np.zeros_like(scatter), where=degrees > 0.0)
    varied = own > estimate_rounding_variance(center + mean, all_scatter / np.where(all_weight > 0.0, all_weight, 1.0))
    stays = np.where(varied & (family.variance.share_pooled == 0.0) & (var_smoothing == 0.0), own, 0.0)
    safe = np.where(stays > 0.0, stays, 1.0)
    arrays = {"weight": weight, "mean": mean, "scatter": scatter, "variance": stays}
    arrays |= {"half_precision": 0.5 / safe, "log_root": 0.5 * np.log(2.0 * np.pi * safe)}
    by_class = kernels.left_out.NormalClasses(**{name: np.ascontiguousarray(array.T) for name, array in arrays.items()})
    rule = kernels.left_out.VarianceRule(
        family.variance.share_pooled, float(family.ddof), float(family.floor), float(var_smoothing)
    )
    kernels.left_out.score_normal(cells, rows.labels, rows.removed, columns, by_class, rule, slot, out)


def estimate_normal(moments: Moments, spread: Spread, ddof: float, floor: float, var_smoothing: float = 0.0) -> Normal:
    """Return the normal distributions with these moments; a class without cells gets those of the whole column."""
    overall = moments.merge_classes()
    overall_variance = overall.variance()
    own = moments.variance(ddof)
    seen = moments.weight > 0.0
    divisor = np.maximum(moments.weight - ddof, 0.0).sum(axis=0)
    scatter = moments.scatter.sum(axis=0)
    pooled = np.divide(scatter, divisor, out=np.zeros_like(scatter), where=divisor > 0.0)
    variance = np.maximum(spread.combine(own, pooled), floor * overall_variance)
    constant = variance <= estimate_rounding_variance(moments.mean, overall_variance)
    unspread = np.maximum(variance, overall_variance / (1.0 + moments.weight))
    variance = np.where(seen & ~constant, variance, np.where(seen, unspread, overall_variance))
    variance = variance + var_smoothing * overall_variance
    center = overall.mean[0]
    mean = np.where(seen, (moments.mean - center) + moments.mean_low, overall.mean_low)
    variance = np.where(find_varying(overall_variance, overall.mean), variance, 0.0)
    return Normal.of(center, mean.T.copy(), variance.T.copy(), spread.share_pooled == 1.0)


@dataclass(frozen=True)
class Normal(BaseLikelihood):
    """Normal distributions, column by class, with the means center + mean.

    The log density is offset - ((x - center - mean) * root)**2. A variance of 0 marks a column without evidence.
    shared: True if all classes have the same variance.
    """

    center: Floats
    mean: Floats
    variance: Floats
    root: Floats
    offset: Floats
    shared: bool = False

    @classmethod
    def of(cls, center: Floats, mean: Floats, variance: Floats, shared: bool = False) -> Self:
        varies = variance > 0.0
        safe = np.where(varies, np.maximum(variance, 1e-305), 1.0)
        root = np.where(varies, np.sqrt(0.5 / safe), 0.0)
        offset = np.where(varies, -0.5 * np.log(2.0 * np.pi * safe), 0.0)
        return cls(center, mean, variance, root, offset, shared)

    def score(self, cells: Numbers, weight: Floats, slot: Integers, out: Floats) -> None:
        column, tile = np.empty(TILE_ROWS), np.zeros((self.mean.shape[1], TILE_ROWS))
        terms = (self.center, self.mean, self.root, self.offset)
        if not kernels.scoring.score_normal(cells, *terms, weight, slot, column, tile, out):
            check_finite(cells)

    def lower(self, columns: ExportedColumns) -> Lowered:
        refusals = [reject_infinite(column, if_weighted=j) for j, column in enumerate(columns.numbers)]
        return Lowered(self.normal_terms(columns), refusals)

    def normal_terms(
        self, columns: ExportedColumns, of_log: bool = False, impossible: bool = False
    ) -> list[list[Term]]:
        """Return the export term of each column, or of its logarithm."""
        parts = zip(columns.numbers, self.center.tolist(), self.mean, self.root, self.offset, strict=True)
        return [[NormalTerm(*part, of_log=of_log, impossible=impossible)] for part in parts]

    def sample(self, labels: Integers, rng: np.random.Generator) -> list[Sampled]:
        deviation = np.sqrt(self.variance)[:, labels]
        return list(self.center[:, None] + (self.mean[:, labels] + deviation * rng.standard_normal(deviation.shape)))

    def estimates(self) -> list[ParameterEstimates]:
        mean = self.center[:, None] + self.mean
        return [ParameterEstimates({"mean": m, "variance": v}) for m, v in zip(mean, self.variance, strict=True)]

    def free_parameters(self) -> FreeParameters:
        """Return one mean per class, and one variance per class or for all."""
        columns, classes = self.variance.shape
        variances, shared = (1, columns) if self.shared else (classes, 0)
        return FreeParameters.of_columns([classes + variances] * columns, shared=shared, n_continuous=columns)

    def formula(self, cells: Numbers, row: int, column: int, label: int) -> str | None:
        return None if np.isnan(cells[row, column]) else self.at(format_number(cells[row, column]), column, label)

    def cdf(self, x: Floats, column: int, label: int) -> Floats:
        deviation = np.sqrt(max(float(self.variance[column, label]), 1e-300))
        from scipy.special import ndtr

        return np.asarray(ndtr((x - self.center[column] - self.mean[column, label]) / deviation))

    def curve_points(self, column: int) -> Floats:
        return np.unique(self.center[column] + self.mean[column])

    def discriminant_terms(self, names: Sequence[str]) -> list[DiscriminantTerms]:
        return [self._terms(j, name) for j, name in enumerate(names)]

    def _terms(self, j: int, name: str) -> DiscriminantTerms:
        """Return -(x - m)²/2v as terms, without the part in x² if it is the same for every class."""
        variance, mean, center = self.variance[j], self.mean[j], self.center[j]
        if not (variance > 0.0).all():
            return DiscriminantTerms.empty(variance.size)

        def features(cells: Numbers) -> Floats:
            return cells[:, j : j + 1].astype(np.float64)

        slope, offset = mean / variance, -(mean**2) / (2.0 * variance)
        if (variance == variance[0]).all():
            return DiscriminantTerms((name,), features, slope[None], offset, center=center)
        curve = -1.0 / (2.0 * variance)
        return DiscriminantTerms(
            (name,), features, slope[None], offset - 0.5 * np.log(variance), curve[:, None, None], center
        )

    def at(self, x: str, column: int, label: int) -> str:
        """Return the density at x as text."""
        if not self.variance[column, label] > 0.0:
            return "constant"
        mean = self.center[column] + self.mean[column, label]
        deviation = self.variance[column, label] ** 0.5
        return f"N({x}; mean {format_digits(mean)}, sd {format_digits(deviation)})"
