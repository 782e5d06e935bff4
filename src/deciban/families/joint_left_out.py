"""Rows of a joint Gaussian, each scored by the matrices of the other rows."""

from dataclasses import dataclass
from typing import Self

import numpy as np
import scipy

from deciban import kernels
from deciban.families.joint_normal import NO_VARIANCE, units
from deciban.families.protocols import LeftOut
from deciban.families.spreads import Spread
from deciban.statistics import Scatter
from deciban.util.arrays import Flags, Floats, Integers


@dataclass(frozen=True)
class Downdate:
    """The scatters about the class means that rows are removed from, in units of the columns' deviations."""

    weight: Floats
    mean: Floats
    centre: Floats
    unit: Floats
    scatter: Floats
    pooled: Floats
    shares: Floats
    mix: float
    ddof: float
    floor: float

    @classmethod
    def of(
        cls, statistic: Scatter, columns: Integers, spread: Spread, shares: Floats, ddof: float, floor: float
    ) -> Self:
        """For some columns; `shares`: how far the matrix of each class and the pooled one move to their diagonals."""
        overall = statistic.over_classes()
        unit, centre = units(overall)[columns], overall.mean[0, columns]
        mean = ((statistic.mean[:, columns] - centre) + statistic.mean_low[:, columns]) / unit
        scatter = (statistic.scatter + statistic.scatter_low)[:, columns][:, :, columns] / np.outer(unit, unit)
        pooled, least = scatter.sum(axis=0), max(floor, NO_VARIANCE)
        return cls(statistic.weight, mean, centre, unit, scatter, pooled, shares, spread.share_pooled, ddof, least)

    def score(self, x: Floats, rows: LeftOut, whole: Floats) -> tuple[Floats, Flags]:
        """The evidence of each row, and whether it is sure that no floor was met."""
        z = np.ascontiguousarray((x - self.centre) / self.unit)
        constant = -np.log(self.unit).sum() - 0.5 * self.unit.size * np.log(2.0 * np.pi)
        rest = self.weight[rows.labels] - rows.removed
        sure = (rest > self.ddof + 1e-9) & (rest > 1e-9 * rows.removed)
        if not self.shares.any() and self.mix in (0.0, 1.0):
            return self._by_rank_one(z, rows, whole, constant, sure)
        away = z - self.mean[rows.labels]
        drop = (rows.removed * self.weight[rows.labels] / np.where(sure, rest, 1.0))[:, None] * away**2
        own = self._diagonal(self.scatter)[rows.labels] - drop
        own = own / np.where(sure, rest - self.ddof, 1.0)[:, None]
        freedom = np.maximum(self.weight - self.ddof, 0.0).sum()
        pooled = (np.diag(self.pooled) - drop) / max(freedom - 1.0, 1e-300)
        share = self.shares[rows.labels][:, None]
        least = (1.0 - self.mix) * share * own + self.mix * self.shares[-1] * pooled
        sure &= least.min(axis=1) > self.floor
        found, scratch = np.zeros(whole.shape), np.empty((self.unit.size + 2, self.unit.size))
        joint = kernels.JointClasses(
            weight=self.weight,
            mean=self.mean,
            scatter=self.scatter,
            pooled=self.pooled,
            mix=self.mix,
            shrinkage=self.shares,
            degrees=freedom,
            ddof=self.ddof,
        )
        removed = np.where(sure, rows.removed, 0.0)
        kernels.left_out_cholesky(z, rows.labels, removed, joint, constant, whole, scratch, found)
        return found, sure

    @staticmethod
    def _diagonal(matrices: Floats) -> Floats:
        return np.diagonal(matrices, axis1=1, axis2=2)

    def _by_rank_one(
        self, z: Floats, rows: LeftOut, whole: Floats, constant: float, sure: Flags
    ) -> tuple[Floats, Flags]:
        """Without row x, d from the mean of its class, a scatter A is A - c dd'; whitened by A's root that is
        1 - c dd', whose inverse is 1 + c / (1 - c d'd) dd'."""
        found, sure = whole.copy(), sure.copy()
        shared = self.mix == 1.0
        for g in [None] if shared else range(self.weight.size):
            here = np.flatnonzero(sure & ((rows.labels == g) if g is not None else True))
            matrix = self.pooled if g is None else self.scatter[g]
            if not here.size:
                continue
            values = np.linalg.eigvalsh(matrix)
            if not values[0] > 1e-13 * values[-1]:
                sure[here] = False
                continue
            lower = np.linalg.cholesky(matrix)
            white = scipy.linalg.solve_triangular(lower, z[here].T, lower=True).T
            means = scipy.linalg.solve_triangular(lower, self.mean.T, lower=True).T
            removed, labels = rows.removed[here], rows.labels[here]
            weight = self.weight[labels]
            rest = weight - removed
            away = white - means[labels]
            down = removed * weight / rest
            left = 1.0 - down * (away**2).sum(axis=1)
            divisors = np.maximum(self.weight - self.ddof, 0.0)
            freedom = divisors.sum() - removed if g is None else rest - self.ddof
            sure[here] = left * values[0] > self.floor * freedom
            safe = np.where(left > 0.0, left, 1.0)
            log_root = np.log(np.diag(lower)).sum() + 0.5 * np.log(safe) - 0.5 * z.shape[1] * np.log(freedom)
            for c in range(self.weight.size) if g is None else [g]:
                from_mean = white - means[c]
                stretch = np.where(labels == c, weight / rest, 1.0)
                squares = (from_mean**2).sum(axis=1) + down / safe * (from_mean * away).sum(axis=1) ** 2
                distance = freedom * stretch**2 * squares
                found[here, c] = constant - log_root - 0.5 * distance
        return found, sure
