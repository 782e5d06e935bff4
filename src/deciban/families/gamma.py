"""Family of waiting times and other positive amounts with a long tail."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from deciban import kernels
from deciban.families.base.checks import POSITIVE, Outside, check_amount, check_finite, check_outside, score_impossible
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
from deciban.families.base.lowering import (
    ExportedColumns,
    HalfLineTerm,
    Lowered,
    NarrowGammaTerm,
    Term,
    reject_infinite,
)
from deciban.families.base.spread import estimate_rounding_variance, find_varying
from deciban.families.base.sql_questions import Later, Logarithm, Positive, SqlQuestions
from deciban.families.log_normal import positive_log
from deciban.statistics import Combined, Moments
from deciban.statistics.moments import MomentValues
from deciban.tables.table import Readable
from deciban.util.arrays import Codes, Flags, Floats, Integers, Numbers
from deciban.util.special import digamma_gap, log_gamma, trigamma_gap
from deciban.util.text_tables import format_digits, format_number

# Minimum of log(mean) - mean(log): cells that differ by a few units of their last digit.
MIN_GAP = 1e-30

# From this shape on (a standard deviation of 1% of the mean) the terms of the density are so large that their sum loses
# digits. The density is then computed from the distance to the mean.
NARROW_SHAPE = 1e4

# From this shape on Stirling's series is exact to the last digit.
STIRLING_SHAPE = 100.0

# A relative step of Newton's method below this is the last: the error after it is about its square.
CLOSE_SHAPE = 1e-7

# Gaps with a smaller relative distance from a known one start from its shape; Minka's start has about this error.
CLOSE_GAP = 0.02

# Moments of the cells, and of their logarithms.
MomentsAndLogs = Combined[Moments, Moments]

# Types with a mean and a variance.
AnyMoments = Moments | MomentValues


@dataclass(frozen=True, repr=False)
class Gamma(ColumnFamily):
    r"""Amounts above 0, such as waiting times: a gamma distribution for each class, by maximum likelihood.

    Each column is a separate block.

    Parameters
    ----------
    floor : float, default=0.0
        Minimum of log(mean) - mean(log), which is about 1 / (2 shape), as a share of the column's over all classes.
        With 0, only a class of n equal cells is adjusted: it gets 1/(n+1) of the column's.
    outside : {"error", "ignore"}, default="error"
        How to treat a cell outside the support. "error": raise DataError in training; in scoring, every class has
        probability 0. "ignore": treat the cell as missing.

    Raises
    ------
    UsageError
        If a parameter is out of range.

    See Also
    --------
    LogNormal : The other family of positive amounts.
    Poisson : Counts.

    Notes
    -----
    With the shape :math:`k_c` and the rate :math:`\beta_c = k_c / \mathrm{mean}_c(x)`:

    .. math:: p(x \mid c) = \frac{\beta_c^{k_c} \, x^{k_c - 1} \, e^{-\beta_c x}}{\Gamma(k_c)}

    The shape of maximum likelihood solves, with the digamma function :math:`\psi`:

    .. math:: \log k_c - \psi(k_c) = \log \mathrm{mean}_c(x) - \mathrm{mean}_c(\log x)

    Examples
    --------
    >>> from deciban import BayesClassifier, Gamma
    >>> clf = BayesClassifier(Gamma(), tune=None).fit({"wait": [1.0, 2.0, 3.0, 8.0, 9.0, 13.0]}, list("aaabbb"))
    >>> clf.estimates()["wait"]["shape"].round(2).tolist(), clf.estimates()["wait"]["scale"].round(2).tolist()
    ([5.38, 22.84], [0.37, 0.44])
    """

    floor: float = 0.0
    outside: Outside = "error"

    support = POSITIVE

    def __post_init__(self) -> None:
        check_amount("floor", self.floor)
        check_outside(self.outside)

    @property
    def statistic_key(self) -> Hashable:
        return type(self).__name__, self.outside

    @classmethod
    def candidates_for(cls, summary: NumericSummary) -> list[Self]:
        return [cls(outside="ignore")] if summary.is_positive and summary.varies_in_every_class else []

    def read(self, batch: Readable, columns: Sequence[int]) -> Numbers:
        return batch.numbers(columns)

    def empty(self, classes: int, columns: int) -> MomentsAndLogs:
        return Combined((Moments.empty(classes, columns), Moments.empty(classes, columns)))

    def count(self, cells: Numbers, labels: Codes, weights: Floats, classes: int) -> MomentsAndLogs:
        check_finite(cells)
        cells = POSITIVE.handle_outside(cells, self.outside)
        logs = positive_log(cells)
        return Combined((Moments.count(cells, labels, weights, classes), Moments.count(logs, labels, weights, classes)))

    def count_in_sql(self, questions: SqlQuestions, columns: Sequence[int]) -> Later[MomentsAndLogs]:
        plain = questions.moments([Positive(column) for column in columns])
        logs = questions.moments([Logarithm(column) for column in columns])
        return lambda: Combined((plain(), logs()))

    def estimate(self, statistic: MomentsAndLogs) -> GammaLikelihood:
        plain, logs = statistic.parts
        overall, overall_logs = plain.merge_classes(), logs.merge_classes()
        seen = plain.weight > 0.0
        overall_gap = _compute_gap(overall, overall_logs)
        gap = np.where(seen, self._raise_gap(_compute_gap(plain, logs), plain, overall, overall_gap), overall_gap)
        mean, low = (np.where(seen, *pair) for pair in ((plain.mean, overall.mean), (plain.mean_low, overall.mean_low)))
        mean, low = np.where(mean > 0.0, mean, 1.0), np.where(mean > 0.0, low, 0.0)
        varies = find_varying(overall.variance()[0], overall.mean[0])
        shape = _solve_shape(np.maximum(gap, MIN_GAP))
        return GammaLikelihood.of(shape.T.copy(), mean.T.copy(), low.T.copy(), varies, self.outside)

    def _raise_gap(self, gap: Floats, own: AnyMoments, overall: AnyMoments, overall_gap: Floats) -> Floats:
        """Return the gap of each class, raised to the floor, or to a share of the overall gap if it is constant."""
        constant = own.variance() <= estimate_rounding_variance(own.mean, overall.variance())
        unspread = overall_gap / (1.0 + own.weight)
        gap = np.where(constant, np.maximum(gap, unspread if self.floor == 0.0 else 0.0), gap)
        return np.asarray(np.maximum(gap, self.floor * overall_gap))

    def score_left_out(
        self, statistic: MomentsAndLogs, cells: Numbers, rows: LeftOutRows, slot: Integers, out: Floats
    ) -> None:
        plain, logs = (some.values for some in statistic.parts)
        every, every_log = (some.merge_classes().values for some in statistic.parts)
        gaps, estimated = _compute_gap(plain, logs), self.estimate(statistic)
        whole = np.zeros((len(cells), slot.size, out.shape[2]))
        estimated.score(cells, np.ones(slot.size), np.arange(slot.size), whole)
        for j in range(slot.size):
            evidence = whole[:, j]
            counted = np.flatnonzero((rows.removed > 0.0) & (cells[:, j] > 0))
            x, labels, removed = cells[counted, j].astype(np.float64), rows.labels[counted], rows.removed[counted]
            first, place = rows[counted].find_distinct(x)  # equal cells are scored once
            x, labels, removed = x[first], labels[first], removed[first]
            log_x, one = np.log(x), np.zeros_like(labels)
            left, left_log = every.leave_out(x, one, removed, j), every_log.leave_out(log_x, one, removed, j)
            overall = _compute_gap(left, left_log)
            own, own_log = plain.leave_out(x, labels, removed, j), logs.leave_out(log_x, labels, removed, j)
            there = own.weight > 1e-9 * removed
            gap = np.where(there, self._raise_gap(_compute_gap(own, own_log), own, left, overall), overall)
            mean, low = np.where(there, own.mean, left.mean), np.where(there, own.mean_low, left.mean_low)
            near = gaps[labels, j], estimated.shape[j, labels]
            evidence[counted, labels[place]] = _log_density(x, gap[0], mean[0], low[0], near)[place]
            for c in range(out.shape[2]):  # a class at the floor, or without cells, depends on the other classes
                if plain.weight[c, j] > 0.0:
                    same = plain.take_cell(c, j, x.size)
                    gap = self._raise_gap(np.full_like(overall, gaps[c, j]), same, left, overall)
                    follows = (labels != c) & (gap[0] != gaps[c, j])
                else:
                    same, gap, follows = left, overall, np.ones(x.size, dtype=np.bool_)
                if follows.any():
                    found, here = np.zeros(x.size), (array[0, follows] for array in (gap, same.mean, same.mean_low))
                    found[follows] = _log_density(x[follows], *here)
                    those = follows[place]
                    evidence[counted[those], c] = found[place[those]]
            silent = ~find_varying(left.variance()[0], left.mean[0]) | (left.weight[0] <= 1e-9 * removed)
            evidence[counted[silent[place]]] = 0.0
            out[:, slot[j]] += evidence

    def add_covariance(
        self, whole: GammaLikelihood, statistic: MomentsAndLogs, cells: Numbers, weight: Floats, out: Covariance
    ) -> None:
        """Add the estimation errors of the mean and of the shape k.

        The Fisher information of a row is k / mean² for the mean, and trigamma(k) - 1/k for the shape.
        """
        rows = np.maximum(statistic.parts[0].weight.T, 0.5)
        for j in np.flatnonzero((weight != 0.0) & whole.slope.any(axis=1)):
            x = np.where(cells[:, j] > 0, cells[:, j], np.nan).astype(np.float64)[:, None]
            shape, mean, low = whole.shape[j], whole.mean[j], whole.mean_low[j]
            by_mean = ((x - mean) - low) / mean
            by_shape = fall(x, mean, low) + digamma_gap(shape)
            variance = (shape * by_mean**2 + by_shape**2 / trigamma_gap(shape)) / rows[j]
            out.own[:] += weight[j] ** 2 * np.where(np.isnan(x), 0.0, variance)


def _compute_gap(plain: AnyMoments, logs: AnyMoments) -> Floats:
    """Return log(mean) - mean(log), the gap, which is 0 for constant cells and grows with their spread.

    If the two are too close to be subtracted, use the first terms of the series in the central moments:
    var(x) / (6 mean²) + var(log x) / 3. The one with the smaller error is taken; the error of the series is estimated
    from the difference of the two variances.
    """
    mean = np.where(plain.mean > 0.0, plain.mean, 1.0)
    log_mean = np.log(mean)
    gap = np.maximum(log_mean + plain.mean_low / mean - logs.mean - logs.mean_low, 0.0)
    square, log_square = (np.sqrt(plain.variance()) / mean) ** 2, logs.variance()
    series = square / 6.0 + log_square / 3.0
    skew = np.divide(square - log_square, square, out=np.zeros_like(square), where=square > 0.0)
    error = series * (skew**2 + square) / 10.0
    return np.where(error < np.finfo(np.float64).eps * (1.0 + np.abs(log_mean)), series, gap)


def _log_density(
    x: Floats, gap: Floats, mean: Floats, low: Floats, near: tuple[Floats, Floats] | None = None
) -> Floats:
    """Return the log density at x of the distribution with this gap and the mean `mean` + `low`; near: see below."""
    mean = np.where(mean > 0.0, mean, 1.0)
    return log_density(x, _solve_shape(np.maximum(gap, MIN_GAP), near), mean, low)


def log_density(x: Floats, shape: Floats, mean: Floats, low: Floats) -> Floats:
    """Return the log density k log k - k - log gamma(k) + k (log(1 + u) - u) - log x, where u = x / mean - 1."""
    return log_peak(shape) + shape * fall(x, mean, low) - np.log(x)


def fall(x: Floats, mean: Floats, low: Floats) -> Floats:
    """Return log(x / m) - (x / m - 1) for the mean m = `mean` + `low`; it is 0 at m and negative elsewhere."""
    away = np.minimum(((x - mean) - low) / mean, 1e250)
    near = np.abs(away) < 0.5
    log_ratio = np.where(near, np.log1p(np.where(near, away, 0.0)), np.log(x) - np.log(mean))
    return np.asarray(log_ratio - away)


def log_peak(shape: Floats) -> Floats:
    """Return k log k - k - log gamma(k) for the shape k."""
    small, large = np.minimum(shape, STIRLING_SHAPE), np.maximum(shape, STIRLING_SHAPE)
    exact = small * np.log(small) - small - log_gamma(small)
    series = 0.5 * np.log(large / (2.0 * np.pi)) - 1.0 / (12.0 * large) + 1.0 / (360.0 * large**3)
    return np.asarray(np.where(shape < STIRLING_SHAPE, exact, series))


def _solve_shape(gap: Floats, near: tuple[Floats, Floats] | None = None) -> Floats:
    """Return the shape k that solves log(k) - digamma(k) = gap, by Newton's method on 1/k from Minka's start.

    near: gaps and their shapes; a gap close to one of these starts with a step from there, which needs no digamma.
    """
    shape = (3.0 - gap + np.sqrt((gap - 3.0) ** 2 + 24.0 * gap)) / (12.0 * gap)
    moving = np.flatnonzero(gap > 1e-6)  # below that the initial value is exact and the terms of a step cancel
    if near is not None:
        known = moving[np.abs(near[0][moving] - gap[moving]) < CLOSE_GAP * gap[moving]]
        shapes, place = np.unique(near[1][known], return_inverse=True)  # one per class
        slope = -trigamma_gap(shapes) * shapes**2
        shape[known] = 1.0 / (1.0 / shapes[place] + (near[0][known] - gap[known]) / slope[place])
    flat, gap = shape.reshape(-1), gap.reshape(-1)
    for _ in range(6):
        if not moving.size:
            break
        k = flat[moving]
        error = digamma_gap(k) - gap[moving]
        step = 1.0 / k - error / (k**2 * trigamma_gap(k))
        better = step > 0.0
        flat[moving[better]] = 1.0 / step[better]
        moving = moving[better & (np.abs(step * k - 1.0) > CLOSE_SHAPE)]
    return shape


@dataclass(frozen=True)
class GammaLikelihood(BaseLikelihood):
    """Gamma distributions, column by class, with the means mean + mean_low.

    The log density is offset + power * log x + slope * x.
    """

    shape: Floats
    mean: Floats
    mean_low: Floats
    power: Floats
    slope: Floats
    offset: Floats
    outside: Outside

    @classmethod
    def of(cls, shape: Floats, mean: Floats, low: Floats, varies: Flags, outside: Outside = "error") -> Self:
        """Return the distributions; columns that do not vary have no evidence."""
        used, scale = np.where(varies[:, None], 1.0, 0.0), mean / shape
        offset = -used * (log_gamma(shape) + shape * np.log(scale))
        return cls(shape, mean, low, used * (shape - 1.0), -used / scale, offset, outside)

    @property
    def scale(self) -> Floats:
        return self.mean / self.shape

    @cached_property
    def narrow(self) -> Flags:
        """Flags of the columns that are scored by the distance from the mean."""
        return np.asarray((self.shape > NARROW_SHAPE).any(axis=1) & self.slope.any(axis=1))

    def score(self, cells: Numbers, weight: Floats, slot: Integers, out: Floats) -> None:
        check_finite(cells)
        positive = POSITIVE.mask_outside(cells)
        plain = np.where(self.narrow, 0.0, weight)
        kernels.scoring.score_half_line(positive, self.power, self.slope, self.offset, plain, slot, out)
        for j in np.flatnonzero(self.narrow & (weight != 0.0)):
            x = positive[:, j, None].astype(np.float64)
            found = log_density(x, self.shape[j], self.mean[j], self.mean_low[j])
            out[:, slot[j]] += weight[j] * np.where(np.isnan(x), 0.0, found)
        if self.outside == "error":
            score_impossible(cells <= 0, weight, slot, out)

    def lower(self, columns: ExportedColumns) -> Lowered:
        impossible, peak = self.outside == "error", log_peak(self.shape)
        blocks: list[list[Term]] = []
        for j, column in enumerate(columns.numbers):
            if self.narrow[j]:
                mean, low = self.mean[j], self.mean_low[j]
                blocks.append([NarrowGammaTerm(column, peak[j], self.shape[j], mean, low, impossible)])
            else:
                offset, power, slope = self.offset[j], self.power[j], self.slope[j]
                blocks.append([HalfLineTerm(column, offset, power, slope, False, impossible)])
        return Lowered(blocks, [reject_infinite(column) for column in columns.numbers])

    def sample(self, labels: Integers, rng: np.random.Generator) -> list[Sampled]:
        return list(rng.gamma(self.shape[:, labels], self.scale[:, labels]))

    def estimates(self) -> list[ParameterEstimates]:
        return [ParameterEstimates({"shape": k, "scale": s}) for k, s in zip(self.shape, self.scale, strict=True)]

    def free_parameters(self) -> FreeParameters:
        columns, classes = self.shape.shape
        return FreeParameters.of_columns([2 * classes] * columns, n_continuous=columns)

    def cdf(self, x: Floats, column: int, label: int) -> Floats:
        shape, scale = self.shape[column, label], self.scale[column, label]
        from scipy.special import gammainc

        return np.asarray(gammainc(shape, np.maximum(x, 0) / scale))

    def curve_points(self, column: int) -> Floats:
        """Return the modes; a distribution with a shape of at most 1 has none above 0."""
        modes = (self.shape[column] - 1.0) * self.scale[column]
        return np.unique(modes[modes > 0.0])

    def discriminant_terms(self, names: Sequence[str]) -> list[DiscriminantTerms]:
        """Return terms whose features are x and log x."""

        def features(j: int) -> Callable[[Numbers], Floats]:
            def read(cells: Numbers) -> Floats:
                x = cells[:, j : j + 1].astype(np.float64)
                return np.concatenate([POSITIVE.mask_outside(x), positive_log(x)], axis=1)

            return read

        return [
            DiscriminantTerms(
                (name, f"log({name})"), features(j), np.stack([self.slope[j], self.power[j]]), self.offset[j]
            )
            for j, name in enumerate(names)
        ]

    def formula(self, cells: Numbers, row: int, column: int, label: int) -> str | None:
        if np.isnan(cells[row, column]) or (self.outside == "ignore" and cells[row, column] <= 0):
            return None
        if not self.slope[column].any():
            return "constant"
        shape, scale = self.shape[column, label], self.scale[column, label]
        return f"Gamma({format_number(cells[row, column])}; shape {format_digits(shape)}, scale {format_digits(scale)})"
