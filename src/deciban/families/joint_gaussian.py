"""A block of real columns, jointly bell-shaped within each class: linear and quadratic discriminants."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self

import numpy as np
from scipy.linalg import solve_triangular

from deciban import kernels
from deciban.arrays import Codes, Flags, Floats, Integers, Numbers
from deciban.families.base import (
    OfBlocks,
    PerClass,
    Readable,
    Sampled,
    Spread,
    check_amount,
    check_spread,
    refuse_infinite,
    vary,
)
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
        check_spread(self.covariance)

    def read(self, batch: Readable, columns: Sequence[int]) -> Numbers:
        return batch.numbers(columns)

    def empty(self, classes: int, columns: int) -> Scatter:
        return Scatter.empty(classes, columns)

    def count(self, cells: Numbers, labels: Codes, weights: Floats, classes: int) -> Scatter:
        return Scatter.count(cells, labels, weights, classes)

    def estimate(self, statistic: Scatter) -> "JointNormal":
        overall, seen = statistic.over_classes(), statistic.weight > 0.0
        unit = units(overall)
        scale = np.outer(1.0 / unit, 1.0 / unit)
        divisor = np.maximum(statistic.weight - self.ddof, 0.0)[:, None, None]
        scatter = (statistic.scatter + statistic.scatter_low) * scale
        own = np.divide(scatter, divisor, out=np.zeros_like(scatter), where=divisor > 0.0)
        freedom = divisor.sum()
        pooled = scatter.sum(axis=0) / freedom if freedom > 0.0 else np.zeros_like(scale)
        share = self.covariance.shrinkage
        own = np.stack([shrunk(matrix, share, weight) for matrix, weight in zip(own, statistic.weight, strict=True)])
        pooled = shrunk(pooled, share, overall.weight[0])
        everything = (overall.scatter + overall.scatter_low) * scale / max(overall.weight[0], 1e-300)
        if self.covariance.shared:
            covariance, group = np.concatenate([pooled[None], everything]), np.where(seen, 0, 1)
        else:
            covariance = np.where(seen[:, None, None], self.covariance.combine(own, pooled), everything)
            group = np.arange(seen.size)
        return joint_normal(statistic, covariance[: group.max(initial=0) + 1], group, self.floor)


def units(overall: Scatter) -> Floats:
    """The deviation of each column over all classes; infinite where it does not vary."""
    variance = np.diagonal(overall.scatter[0]) / max(overall.weight[0], 1e-300)
    varies = vary(variance, overall.mean[0])
    return np.asarray(np.sqrt(variance, out=np.full_like(variance, np.inf), where=varies))


def joint_normal(statistic: Scatter, covariance: Floats, group: Integers, floor: float) -> "JointNormal":
    """The distributions with the means of the statistic and these covariances, in units of the columns' deviations.

    In these units no unit of measurement matters. A class without rows takes the overall mean.
    """
    overall, seen = statistic.over_classes(), statistic.weight > 0.0
    unit, centre = units(overall), overall.mean[0]
    mean = np.where(seen[:, None], (statistic.mean - centre) + statistic.mean_low, 0.0) / unit
    return JointNormal.of(centre, unit, mean, raised(covariance, floor), group)


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
    whitened: "Whitened"
    common: "Whitened | None"  # what is the same for every class, where it is kept apart

    @classmethod
    def of(cls, centre: Floats, unit: Floats, mean: Floats, covariance: Floats, group: Integers) -> Self:
        return cls(centre, unit, mean, covariance, group, *Whitened.of(centre, unit, mean, covariance, group).parted())

    def score(self, cells: Numbers, weight: Floats, slot: Integers, out: Floats) -> None:
        if not self.whitened.columns.size:
            refuse_infinite(cells)
            return
        used, holed = self._used(cells)
        if holed is None:
            self.whitened.score(used, weight[0], slot[0], out)
        else:
            for rows, score in (
                (np.flatnonzero(~holed), self.whitened.score),
                (np.flatnonzero(holed), self._score_holed),
            ):
                part = np.zeros((rows.size, 1, out.shape[2]))
                score(used[rows], weight[0], 0, part)
                out[rows, slot[0]] += part[:, 0]

    def _used(self, cells: Numbers) -> tuple[Floats, Flags | None]:
        """The cells of the columns that vary, and which rows miss one; None where no row does."""
        varies = self.whitened.columns
        used = np.ascontiguousarray(cells if varies.size == cells.shape[1] else cells[:, varies], dtype=np.float64)
        if kernels.all_finite(cells.ravel()):
            return used, None
        refuse_infinite(cells)
        holed = np.asarray(np.isnan(used).any(axis=1))
        return used, holed if holed.any() else None

    def _score_holed(self, cells: Floats, weight: float, slot: int, out: Floats) -> None:
        varies = self.whitened.columns
        centre, unit, mean = self.centre[varies], self.unit[varies], np.ascontiguousarray(self.mean[:, varies])
        covariance = np.ascontiguousarray(self.covariance[:, varies][:, :, varies])
        kernels.score_holed_normal(cells, centre, unit, covariance, self.group, mean, weight, slot, out)

    def base(self, cells: Numbers) -> Floats | None:
        """The evidence of the coordinates in which the classes do not differ; rows with holes have theirs already."""
        if self.common is None:
            return None
        used, holed = self._used(cells)
        out = np.zeros((len(used), 1, 1))
        self.common.score(used, 1.0, 0, out)
        return out[:, 0] if holed is None else np.where(holed[:, None], 0.0, out[:, 0])

    def sample(self, labels: Integers, rng: np.random.Generator) -> list[Sampled]:
        speaks = np.isfinite(self.unit)
        unit = np.where(speaks, self.unit, 0.0)
        root = np.linalg.cholesky(self.covariance)[self.group]
        noise = rng.standard_normal((len(labels), self.unit.size))
        standard = self.mean[labels] + np.einsum("nij,nj->ni", root[labels], noise)
        return list((self.centre + unit * standard).T)

    def working(self, cells: Numbers, row: int, column: int, label: int) -> str | None:
        if np.isnan(cells[row]).all():
            return None
        mean = self.centre + np.where(np.isfinite(self.unit), self.mean[label], 0.0) * np.where(
            np.isfinite(self.unit), self.unit, 0.0
        )
        point = ", ".join("missing" if np.isnan(value) else f"{value:.4g}" for value in cells[row])
        return f"N(({point}); mean ({', '.join(f'{value:.4g}' for value in mean)}), its covariance)"


@dataclass(frozen=True)
class Whitened:
    """The log density of the columns that vary as offset - |whiten (x - centre) - mean|**2.

    whiten[g, m, k] is what column k adds to coordinate m in group g, nothing from column reach[m] on.
    """

    columns: Integers
    centre: Floats
    whiten: Floats
    reach: Integers
    group: Integers
    mean: Floats
    offset: Floats

    @classmethod
    def of(cls, centre: Floats, unit: Floats, mean: Floats, covariance: Floats, group: Integers) -> Self:
        columns = np.flatnonzero(np.isfinite(unit))
        size, kept = columns.size, np.ix_(columns, columns)
        whiten, log_root = np.empty((len(covariance), size, size)), np.zeros(len(covariance))
        for g, matrix in enumerate(covariance):
            lower = np.linalg.cholesky(matrix[kept])
            inverse = solve_triangular(lower, np.eye(size), lower=True) / np.sqrt(2.0) if size else lower
            log_root[g] = np.log(np.diag(lower)).sum() + np.log(unit[columns]).sum()
            whiten[g] = inverse / unit[columns]
        whitened = np.einsum("cmk,ck->cm", whiten[group], mean[:, columns] * unit[columns])
        offset = -0.5 * size * np.log(2.0 * np.pi) - log_root[group]
        return cls(columns, centre[columns], whiten, np.arange(1, size + 1), group, whitened, offset)

    def parted(self) -> "tuple[Whitened, Whitened | None]":
        """The coordinates in which the classes differ, and the others, where these are most: one matrix, few classes.

        Turned so that the means lie along the first axes, all classes are equally far away along the others.
        """
        size = self.columns.size
        if self.group.any() or not size:
            return self, None
        _, spread, axes = np.linalg.svd(self.mean)
        rank = int((spread > size * np.finfo(np.float64).eps * spread[0]).sum())
        if 2 * rank >= size:
            return self, None
        whiten, mean, reach = axes @ self.whiten, self.mean @ axes.T, np.full(size, size)
        differ = replace(
            self,
            whiten=np.ascontiguousarray(whiten[:, :rank]),
            reach=reach[:rank],
            mean=np.ascontiguousarray(mean[:, :rank]),
            offset=np.zeros_like(self.offset),
        )
        common = replace(
            self,
            whiten=np.ascontiguousarray(whiten[:, rank:]),
            reach=reach[rank:],
            group=self.group[:1],
            mean=np.zeros((1, size - rank)),
            offset=self.offset[:1],
        )
        return differ, common

    def score(self, cells: Floats, weight: float, slot: int, out: Floats) -> None:
        terms = (self.centre, self.whiten, self.reach, self.group, self.mean, self.offset)
        kernels.score_joint_normal(cells, *terms, weight, slot, out)
