"""Waiting times and other amounts above zero with a long tail."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import digamma, gammaln, polygamma

from deciban import kernels
from deciban.arrays import Codes, Flags, Floats, Integers, Numbers
from deciban.families.base import (
    LeftOut,
    OfColumns,
    Outside,
    Readable,
    Sampled,
    check_amount,
    check_outside,
    impossible,
    refuse_infinite,
    refuse_unless,
    vary,
)
from deciban.families.log_normal import POSITIVE, POSITIVE_REMEDY, positive_log
from deciban.statistics import Moments, Several

# The least log(mean) - mean(log): a deviation of about a millionth of the mean. Below it the terms of the density are
# so large that their sum loses all digits; such columns are Gaussian anyway.
NARROWEST = 1e-12


@dataclass(frozen=True, repr=False)
class Gamma(OfColumns):
    """A gamma distribution for each class and column, for x > 0; its maximum likelihood estimate.

    floor: the least log(mean) - mean(log), as a share of the column's own over all classes; 0 switches it off.
    outside: as for LogNormal.
    """

    floor: float = 1e-9
    outside: Outside = "refuse"

    def __post_init__(self) -> None:
        check_amount("floor", self.floor)
        check_outside(self.outside)

    @property
    def counts(self) -> Hashable:
        return "Gamma", self.outside

    def read(self, batch: Readable, columns: Sequence[int]) -> Numbers:
        return batch.numbers(columns)

    def empty(self, classes: int, columns: int) -> Several:
        return Several((Moments.empty(classes, columns), Moments.empty(classes, columns)))

    def count(self, cells: Numbers, labels: Codes, weights: Floats, classes: int) -> Several:
        refuse_infinite(cells)
        positive = cells > 0
        if self.outside == "refuse":
            refuse_unless(positive, cells, POSITIVE, POSITIVE_REMEDY)
        elif not positive.all():
            cells = np.where(positive, cells, np.nan)
        logs = positive_log(cells)
        return Several((Moments.count(cells, labels, weights, classes), Moments.count(logs, labels, weights, classes)))

    def estimate(self, statistic: Several) -> "GammaLikelihood":
        plain, logs = (part for part in statistic.parts if isinstance(part, Moments))
        overall, overall_logs = plain.over_classes(), logs.over_classes()
        seen = plain.weight > 0.0
        overall_gap = _gap(overall, overall_logs)
        gap = np.where(seen, _gap(plain, logs), overall_gap)
        mean = np.where(seen, plain.mean, overall.mean)
        shape = _shape(np.maximum(gap, np.maximum(self.floor * overall_gap, NARROWEST)))
        scale = np.divide(mean, shape, out=np.ones_like(mean), where=mean > 0.0)
        varies = vary(overall.variance()[0], overall.mean[0])
        return GammaLikelihood.of(shape.T.copy(), scale.T.copy(), varies, self.outside)

    def score_left_out(self, statistic: Several, cells: Numbers, rows: LeftOut, slot: Integers, out: Floats) -> None:
        plain, logs = (part for part in statistic.parts if isinstance(part, Moments))
        every, every_log = plain.over_classes(), logs.over_classes()
        gaps = _gap(plain, logs)
        whole = np.zeros((len(cells), slot.size, out.shape[2]))
        self.estimate(statistic).score(cells, np.ones(slot.size), np.arange(slot.size), whole)
        for j in range(slot.size):
            evidence = whole[:, j]
            counted = np.flatnonzero((rows.taken > 0.0) & (cells[:, j] > 0))
            x, labels, taken = cells[counted, j].astype(np.float64), rows.labels[counted], rows.taken[counted]
            log_x, first = np.log(x), np.zeros_like(labels)
            left, left_log = every.left_out(x, first, taken, j), every_log.left_out(log_x, first, taken, j)
            overall, mean = _gap(left, left_log)[0], left.mean[0]
            least = np.maximum(self.floor * overall, NARROWEST)
            own, own_log = plain.left_out(x, labels, taken, j), logs.left_out(log_x, labels, taken, j)
            there = own.weight[0] > 1e-9 * taken
            gap = np.where(there, _gap(own, own_log)[0], overall)
            density = _log_density(x, np.maximum(gap, least), np.where(there, own.mean[0], mean))
            evidence[counted, labels] = density
            for c in range(out.shape[2]):  # a class at the floor, or without cells, follows the others
                if plain.weight[c, j] > 0.0:
                    narrow = gaps[c, j]
                    at_floor = (labels != c) & (narrow <= 2.0 * least)
                    gap, centre = np.maximum(narrow, least), np.full(x.size, plain.mean[c, j])
                else:
                    at_floor, gap, centre = np.ones(x.size, dtype=np.bool_), np.maximum(overall, least), mean
                if at_floor.any():
                    found = _log_density(x[at_floor], gap[at_floor], centre[at_floor])
                    evidence[counted[at_floor], c] = found
            silent = ~vary(left.variance()[0], mean) | (left.weight[0] <= 1e-9 * taken)
            evidence[counted[silent]] = 0.0
            out[:, slot[j]] += evidence

    def add_doubt(self, statistic: Several, cells: Numbers, weight: Floats, out: Floats) -> None:
        """By the information matrix of shape k and scale s: [trigamma(k), 1/s; 1/s, k/s²] for each row."""
        whole = self.estimate(statistic)
        rows = np.maximum(statistic.parts[0].weight.T, 0.5)  # type: ignore[attr-defined]  # its Moments
        for j in np.flatnonzero(weight):
            x = np.where(cells[:, j] > 0, cells[:, j], np.nan)[:, None]
            shape, scale = whole.shape[j], whole.scale[j]
            by_shape = np.log(x / scale) - digamma(shape)
            by_scale = x / scale - shape  # times the scale, as the matrix is then free of it
            spread = polygamma(1, shape)
            determinant = np.maximum(spread * shape - 1.0, 1e-12)
            variance = (shape * by_shape**2 - 2.0 * by_shape * by_scale + spread * by_scale**2) / determinant
            if whole.slope[j].any():
                out += weight[j] ** 2 * np.nan_to_num(variance / rows[j])


def _gap(plain: Moments, logs: Moments) -> Floats:
    """log(mean) - mean(log), which is 0 for a constant and grows with the spread.

    Where the two are too close to be subtracted, the first terms of its series in the central moments say it:
    var(x) / (6 mean²) + var(log x) / 3.
    """
    mean = np.where(plain.mean > 0.0, plain.mean, 1.0)
    gap = np.maximum(np.log(mean) - logs.mean - logs.mean_low, 0.0)
    series = (np.sqrt(plain.variance()) / mean) ** 2 / 6.0 + logs.variance() / 3.0
    return np.where(series < 1e-8, series, gap)


def _log_density(x: Floats, gap: Floats, mean: Floats) -> Floats:
    """The log density at x of the distribution with this gap and mean."""
    shape = _shape(gap)
    scale = np.where(mean > 0.0, mean, 1.0) / shape
    return np.asarray((shape - 1.0) * np.log(x) - x / scale - gammaln(shape) - shape * np.log(scale))


def _shape(gap: Floats) -> Floats:
    """The k that solves log(k) - digamma(k) = gap, by Newton's method on 1/k from Minka's starting point."""
    shape = (3.0 - gap + np.sqrt((gap - 3.0) ** 2 + 24.0 * gap)) / (12.0 * gap)
    newton = gap > 1e-6  # below that the starting point is right and the terms of a step cancel
    for _ in range(6):
        error = np.log(shape) - digamma(shape) - gap
        slope = np.where(newton, 1.0 / shape - polygamma(1, shape), 1.0)
        step = 1.0 / shape + error / (shape**2 * slope)
        better = newton & (step > 0.0)
        shape = np.where(better, 1.0 / np.where(better, step, 1.0), shape)
    return np.asarray(shape)


@dataclass(frozen=True)
class GammaLikelihood:
    """Shape and scale, column by class; the log density is offset + power log x + slope x."""

    shape: Floats
    scale: Floats
    power: Floats
    slope: Floats
    offset: Floats
    outside: Outside

    @classmethod
    def of(cls, shape: Floats, scale: Floats, varies: Flags, outside: Outside = "refuse") -> Self:
        """Columns that do not vary say nothing."""
        says = np.where(varies[:, None], 1.0, 0.0)
        offset = -says * (gammaln(shape) + shape * np.log(scale))
        return cls(shape, scale, says * (shape - 1.0), -says / scale, offset, outside)

    def score(self, cells: Numbers, weight: Floats, slot: Integers, out: Floats) -> None:
        refuse_infinite(cells)
        positive = np.where(cells > 0, cells, np.nan)
        kernels.score_half_line(positive, self.power, self.slope, self.offset, weight, slot, out)
        if self.outside == "refuse":
            impossible(cells <= 0, weight, slot, out)

    def base(self, cells: Numbers) -> None:
        return None

    def sample(self, labels: Integers, rng: np.random.Generator) -> list[Sampled]:
        return list(rng.gamma(self.shape[:, labels], self.scale[:, labels]))

    def working(self, cells: Numbers, row: int, column: int, label: int) -> str | None:
        if np.isnan(cells[row, column]) or (self.outside == "ignore" and cells[row, column] <= 0):
            return None
        if not self.slope[column].any():
            return "constant"
        shape, scale = self.shape[column, label], self.scale[column, label]
        return f"Gamma({cells[row, column]:.6g}; shape {shape:.6g}, scale {scale:.6g})"
