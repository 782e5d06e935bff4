"""Covariance matrices of weighted rows, and the distributions of the discriminants."""

from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import has_fit_parameter

from deciban.errors import UsageError
from deciban.families.base.spread import find_varying
from deciban.families.joint_gaussian import JointNormal, build_joint_normal, find_units
from deciban.statistics import Scatter
from deciban.util.arrays import Floats

# Smallest variance of the covariance matrix of a class in any direction, in units of the standard deviations.
MIN_FLOOR = 1e-7

# Smaller eigenvalues of a correlation matrix are rounding errors.
MIN_EIGENVALUE = 1e-14

# Rows with integer weights are repeated for estimators without sample_weight, up to this many rows.
MAX_REPEATED = 10_000_000


def compute_ledoit_wolf(rows: Floats, weights: Floats) -> Floats:
    """Return the Ledoit-Wolf covariance in units of the standard deviations; a weight of k counts a row k times."""
    total = weights.sum()
    if not total > 0.0:
        return np.zeros((rows.shape[1], rows.shape[1]))
    away = rows - weights @ rows / total
    unit = np.sqrt(weights @ away**2 / total)
    unit[unit == 0.0] = 1.0
    away /= unit
    covariance = (away * weights[:, None]).T @ away / total
    size = len(covariance)
    square, mean = (covariance**2).sum(), np.trace(covariance) / size
    noise = (weights @ (away**2).sum(axis=1) ** 2 / total - square) / total
    excess = square - size * mean**2
    share = min(noise / excess, 1.0) if noise > 0.0 and excess > 0.0 else 0.0
    shrunk = (1.0 - share) * covariance + share * mean * np.eye(size)
    return np.asarray(shrunk * np.outer(unit, unit))


def estimate_covariance(estimator: Any, rows: Floats, weights: Floats) -> Floats:
    """Return the covariance found by a copy of a scikit-learn covariance estimator."""
    fitted, name = deepcopy(estimator), type(estimator).__name__
    if (weights == 1.0).all():
        fitted.fit(rows)
    elif has_fit_parameter(fitted, "sample_weight"):
        fitted.fit(rows, sample_weight=weights)
    elif (weights == np.floor(weights)).all() and weights.sum() <= MAX_REPEATED:
        fitted.fit(np.repeat(rows, weights.astype(np.int64), axis=0))
    else:
        raise UsageError(
            f"{name}.fit does not accept sample_weight, and these weights cannot be expressed by repeating rows",
            remedy="omit sample_weight, or use a shrinkage",
        )
    if not hasattr(fitted, "covariance_"):
        raise UsageError(f"{name} does not have a covariance_ attribute")
    return np.atleast_2d(fitted.covariance_)


def make_class_normals(statistic: Scatter, covariance: Floats) -> JointNormal:
    """Return the normal distributions of the quadratic discriminant; a class without rows gets that of all rows."""
    overall = statistic.merge_classes()
    unit = find_units(overall)
    seen = (statistic.weight > 0.0)[:, None, None]
    matrices = np.where(seen, covariance, _covariance(overall)) / np.outer(unit, unit)
    return build_joint_normal(statistic, matrices, np.arange(len(matrices)), MIN_FLOOR)


@dataclass(frozen=True)
class Within:
    """Means and invertible covariance of the linear discriminant, in units of the within-class standard deviations.

    A direction without variance within classes is ignored if there are fewer rows than directions. Otherwise it gets
    1/(n+1) of the variance of all rows. A constant column has an infinite unit.
    """

    center: Floats
    unit: Floats
    mean: Floats
    matrix: Floats

    @classmethod
    def of(cls, statistic: Scatter, covariance: Floats, tol: float) -> "Within":
        overall, seen = statistic.merge_classes(), statistic.weight > 0.0
        center, unit = overall.mean[0], find_units(overall)
        varies, variance = np.isfinite(unit), np.diag(covariance)
        unit = np.sqrt(variance, out=unit, where=varies & find_varying(variance, center))
        mean = np.where(seen[:, None], (statistic.mean - center) + statistic.mean_low, 0.0) / unit
        matrix = covariance / np.outer(unit, unit) + np.diag(~varies)
        values, vectors = np.linalg.eigh(matrix)
        least = max(tol**2, MIN_EIGENVALUE)
        kept = values > least
        if kept.all():
            return cls(center, unit, mean, matrix)
        known, never = vectors[:, kept], vectors[:, ~kept]
        rest, rows = np.eye(never.shape[1]), float(statistic.weight.sum())
        if rows - seen.sum() < varies.sum():
            mean = mean @ known @ known.T
        else:
            total = _covariance(overall) / np.outer(unit, unit)
            rest = never.T @ total @ never / (rows + 1.0) + least * rest
        return cls(center, unit, mean, (known * values[kept]) @ known.T + never @ rest @ never.T)

    def make_normals(self) -> JointNormal:
        """Return the normal distributions of the classes."""
        group = np.zeros(len(self.mean), dtype=np.int64)
        return JointNormal.of(self.center, self.unit, self.mean, self.matrix[None], group)


def _covariance(overall: Scatter) -> Floats:
    return np.asarray((overall.scatter + overall.scatter_low)[0] / max(overall.weight[0], 1e-300))
