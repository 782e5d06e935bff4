"""Waiting times and other amounts above zero with a long tail."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import digamma, gammaln, polygamma

from deciban import kernels
from deciban.arrays import Codes, Floats, Integers, Numbers
from deciban.families.base import (
    OfColumns,
    Readable,
    Sampled,
    check_amount,
    impossible,
    refuse_infinite,
    refuse_unless,
)
from deciban.families.log_normal import POSITIVE, POSITIVE_REMEDY, positive_log
from deciban.statistics import Moments, Several


@dataclass(frozen=True, repr=False)
class Gamma(OfColumns):
    """A gamma distribution for each class and column, for x > 0; its maximum likelihood estimate.

    floor: the least log(mean) - mean(log), as a share of the column's own over all classes; 0 switches it off.
    """

    floor: float = 1e-9

    def __post_init__(self) -> None:
        check_amount("floor", self.floor)

    def read(self, batch: Readable, columns: Sequence[int]) -> Numbers:
        return batch.numbers(columns)

    def empty(self, classes: int, columns: int) -> Several:
        return Several((Moments.empty(classes, columns), Moments.empty(classes, columns)))

    def count(self, cells: Numbers, labels: Codes, weights: Floats, classes: int) -> Several:
        refuse_infinite(cells)
        refuse_unless(cells > 0, cells, POSITIVE, POSITIVE_REMEDY)
        logs = positive_log(cells)
        return Several((Moments.count(cells, labels, weights, classes), Moments.count(logs, labels, weights, classes)))

    def estimate(self, statistic: Several) -> "GammaLikelihood":
        plain, logs = (part for part in statistic.parts if isinstance(part, Moments))
        overall, overall_logs = plain.over_classes(), logs.over_classes()
        seen = plain.weight > 0.0
        mean = np.where(seen, plain.mean, overall.mean)
        gap = _gap(mean, np.where(seen, logs.mean, overall_logs.mean))
        overall_gap = _gap(overall.mean, overall_logs.mean)
        constant = (overall.variance() <= 0.0)[0]
        shape = _shape(np.maximum(gap, np.maximum(self.floor * overall_gap, 1e-14)))
        scale = np.divide(mean, shape, out=np.ones_like(mean), where=mean > 0.0)
        return GammaLikelihood(shape.T.copy(), scale.T.copy(), constant)


def _gap(mean: Floats, mean_of_log: Floats) -> Floats:
    """log(mean) - mean(log), which is 0 for a constant and grows with the spread."""
    logs = np.log(mean, out=np.zeros_like(mean), where=mean > 0.0)
    return np.maximum(logs - mean_of_log, 0.0)


def _shape(gap: Floats) -> Floats:
    """The k that solves log(k) - digamma(k) = gap, by Newton's method on 1/k from Minka's starting point."""
    shape = (3.0 - gap + np.sqrt((gap - 3.0) ** 2 + 24.0 * gap)) / (12.0 * gap)
    for _ in range(6):
        error = np.log(shape) - digamma(shape) - gap
        slope = 1.0 / shape - polygamma(1, shape)
        step = 1.0 / shape + error / (shape**2 * slope)
        shape = np.where(step > 0.0, 1.0 / np.where(step > 0.0, step, 1.0), shape)
    return np.asarray(shape)


@dataclass(frozen=True)
class GammaLikelihood:
    """Shape and scale, column by class; constant columns say nothing."""

    shape: Floats
    scale: Floats
    constant: np.ndarray

    def score(self, cells: Numbers, weight: Floats, slot: Integers, out: Floats) -> None:
        says = np.where(self.constant[:, None], 0.0, 1.0)
        power, slope = says * (self.shape - 1.0), -says / self.scale
        offset = -says * (gammaln(self.shape) + self.shape * np.log(self.scale))
        kernels.score_half_line(np.where(cells > 0, cells, np.nan), power, slope, offset, weight, slot, out)
        impossible(cells <= 0, weight, slot, out)

    def base(self, cells: Numbers) -> None:
        return None

    def sample(self, labels: Integers, rng: np.random.Generator) -> list[Sampled]:
        return list(rng.gamma(self.shape[:, labels], self.scale[:, labels]))

    def working(self, cells: Numbers, row: int, column: int, label: int) -> str:
        shape, scale = self.shape[column, label], self.scale[column, label]
        return f"Gamma({cells[row, column]:.6g}; shape {shape:.6g}, scale {scale:.6g})"
