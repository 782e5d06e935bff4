"""A block of real columns, jointly bell-shaped within each class: linear and quadratic discriminants."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
from scipy.linalg import solve_triangular

from deciban import kernels
from deciban.arrays import Codes, Floats, Integers, Numbers
from deciban.families.base import (
    OfBlocks,
    PerClass,
    Pooled,
    Readable,
    Sampled,
    Spread,
    by_missing_pattern,
    check_amount,
    refuse_infinite,
)
from deciban.families.gaussian import LEAST_VARIANCE
from deciban.statistics import Scatter


@dataclass(frozen=True, repr=False)
class JointGaussian(OfBlocks):
    """A multivariate normal distribution for each class.

    covariance: PerClass() is the quadratic discriminant, Pooled() the linear one, Shrunk(amount) lies between.
    ddof: what is subtracted from the weight below a covariance (0: maximum likelihood).
    floor: the least variance in any direction, in units of each column's variance over all classes.
    """

    covariance: Spread = PerClass()
    ddof: float = 0.0
    floor: float = 1e-9

    def __post_init__(self) -> None:
        check_amount("ddof", self.ddof)
        check_amount("floor", self.floor)

    def read(self, batch: Readable, columns: Sequence[int]) -> Numbers:
        return batch.numbers(columns)

    def empty(self, classes: int, columns: int) -> Scatter:
        return Scatter.empty(classes, columns)

    def count(self, cells: Numbers, labels: Codes, weights: Floats, classes: int) -> Scatter:
        refuse_infinite(cells)
        return Scatter.count(cells, labels, weights, classes)

    def estimate(self, statistic: Scatter) -> "JointNormal":
        """Everything is done in units of each column's overall deviation, so no unit of measurement matters."""
        overall = statistic.over_classes()
        variance = np.diagonal(overall.scatter[0]) / max(overall.weight[0], 1.0e-300)
        unit = np.where(variance > LEAST_VARIANCE, np.sqrt(np.maximum(variance, LEAST_VARIANCE)), np.inf)
        scale = np.outer(1.0 / unit, 1.0 / unit)
        seen = statistic.weight > 0.0
        divisor = np.maximum(statistic.weight - self.ddof, 0.0)
        scatter = (statistic.scatter + statistic.scatter_low) * scale
        own = np.divide(scatter, divisor[:, None, None], out=np.zeros_like(scatter), where=divisor[:, None, None] > 0)
        freedom = (divisor * seen).sum()
        pooled = statistic.within() * scale / freedom if freedom > 0.0 else np.zeros_like(scale)
        covariance = np.array(self.covariance.combine(own, pooled))
        if not seen.all():
            covariance[~seen] = (overall.scatter[0] + overall.scatter_low[0]) * scale / max(overall.weight[0], 1e-300)
        shared = isinstance(self.covariance, Pooled) and seen.all()
        if shared:
            covariance = covariance[:1]
        weight = np.array([statistic.weight.sum()]) if shared else statistic.weight
        for g, matrix in enumerate(covariance):
            matrix[:] = shrunk(matrix, self.covariance.shrinkage, weight[g])
        centre = overall.mean[0]
        mean = np.where(seen[:, None], (statistic.mean - centre) + statistic.mean_low, 0.0)
        group = np.zeros(seen.size, dtype=np.int64) if shared else np.arange(seen.size)
        return JointNormal(centre, unit, mean / unit, raised(covariance, self.floor), group)


def shrunk(matrix: Floats, shrinkage: float | Literal["oas"], weight: float) -> Floats:
    """`matrix` moved towards its diagonal by the share `shrinkage`."""
    target = np.diag(np.diag(matrix))
    if shrinkage == "oas":
        shrinkage = oas_share(matrix, weight)
    return (1.0 - shrinkage) * matrix + shrinkage * target


def oas_share(matrix: Floats, weight: float) -> float:
    """The share of the diagonal that the oracle approximating shrinkage of Chen et al. gives the correlation matrix."""
    deviation = np.sqrt(np.diag(matrix))
    used = deviation > 0.0
    size = int(used.sum())
    if size < 2 or weight <= 0.0:
        return 0.0
    correlation = (matrix / np.where(used, deviation, 1.0) / np.where(used, deviation, 1.0)[:, None])[used][:, used]
    mean_square = float((correlation**2).mean())
    top = mean_square + 1.0
    bottom = (weight + 1.0) * (mean_square - 1.0 / size)
    return 1.0 if bottom <= 0.0 else min(top / bottom, 1.0)


def raised(covariance: Floats, floor: float) -> Floats:
    """The matrices with every eigenvalue raised to at least `floor` (and to what keeps them invertible)."""
    result = covariance.copy()
    least = max(floor, 1e-14)
    for g, matrix in enumerate(covariance):
        values, vectors = np.linalg.eigh(matrix)
        if values.size and values[0] < least:
            result[g] = (vectors * np.maximum(values, least)) @ vectors.T
    return result


@dataclass(frozen=True)
class JointNormal:
    """Multivariate normal distributions, in units of `unit` about `centre`.

    `covariance[group[c]]` is the matrix of class c. A column of infinite unit is constant and says nothing.
    """

    centre: Floats
    unit: Floats
    mean: Floats
    covariance: Floats
    group: Integers

    def score(self, cells: Numbers, weight: Floats, slot: Integers, out: Floats) -> None:
        missing = np.isnan(cells) | np.isinf(self.unit)
        for absent, rows in by_missing_pattern(missing):
            kept = np.flatnonzero(~absent)
            if not kept.size:
                continue
            density = Whitened.of(self, kept)
            if rows.size == len(cells):
                density.score(np.ascontiguousarray(cells[:, kept], dtype=np.float64), weight[0], slot[0], out)
            else:
                part = np.zeros((rows.size, 1, out.shape[2]))
                density.score(cells[np.ix_(rows, kept)].astype(np.float64), weight[0], 0, part)
                out[rows, slot[0]] += part[:, 0]

    def base(self, cells: Numbers) -> None:
        return None

    def sample(self, labels: Integers, rng: np.random.Generator) -> list[Sampled]:
        speaks = np.isfinite(self.unit)
        unit = np.where(speaks, self.unit, 0.0)
        root = np.linalg.cholesky(self.covariance)[self.group]
        noise = rng.standard_normal((len(labels), self.unit.size))
        standard = self.mean[labels] + np.einsum("nij,nj->ni", root[labels], noise)
        return list((self.centre + unit * standard).T)

    def working(self, cells: Numbers, row: int, column: int, label: int) -> str:
        mean = self.centre + np.where(np.isfinite(self.unit), self.mean[label] * self.unit, 0.0)
        point = ", ".join(f"{value:.4g}" for value in cells[row])
        return f"N(({point}); mean ({', '.join(f'{value:.4g}' for value in mean)}), its covariance)"


@dataclass(frozen=True)
class Whitened:
    """The log density of some of the columns as offset - |whiten (x - centre) - mean|**2."""

    centre: Floats
    whiten: Floats
    group: Integers
    mean: Floats
    offset: Floats

    @classmethod
    def of(cls, normal: JointNormal, kept: Integers) -> Self:
        groups, size = len(normal.covariance), kept.size
        whiten, log_root = np.empty((groups, size, size)), np.empty(groups)
        for g, matrix in enumerate(normal.covariance):
            lower = np.linalg.cholesky(matrix[np.ix_(kept, kept)])
            inverse = solve_triangular(lower, np.eye(size), lower=True) / np.sqrt(2.0)
            log_root[g] = np.log(np.diag(lower)).sum() + np.log(normal.unit[kept]).sum()
            whiten[g] = (inverse / normal.unit[kept]).T
        mean = np.einsum("ckl,ck->cl", whiten[normal.group], normal.mean[:, kept] * normal.unit[kept])
        offset = -0.5 * size * np.log(2.0 * np.pi) - log_root[normal.group]
        return cls(normal.centre[kept], whiten, normal.group, np.ascontiguousarray(mean), offset)

    def score(self, cells: Floats, weight: float, slot: int, out: Floats) -> None:
        kernels.score_joint_normal(
            cells, self.centre, self.whiten, self.group, self.mean, self.offset, weight, slot, out
        )
