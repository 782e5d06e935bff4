"""Confidence intervals of posteriors: the bounds between which they lie, given that they were learned from a sample.

By the delta method: the log joint of each class has an error for everything that was estimated (its own means and
shares, the variances that classes have in common, the prior if it was counted), and the errors of the classes together
give the variance of the log-odds of each class against all others. Evidence weights are held fixed.
"""

from dataclasses import dataclass

import numpy as np
import scipy

from deciban.families.base.contract import Covariance
from deciban.model.counts import Counts, Guard
from deciban.model.model import Model, posteriors
from deciban.tables.table import Table
from deciban.util.arrays import Floats, Integers

# Rows are taken in batches of at most so many, and of at most so many numbers row by class.
INTERVAL_ROWS = 1 << 14
INTERVAL_NUMBERS = 1 << 22

# What rounding leaves of the sum of variances and covariances that cancel, as a share of them.
CANCELLED_SHARE = 1e-14


def posterior_intervals(
    model: Model, counts: Counts, prior_variance: Floats, table: Table, level: float
) -> tuple[Floats, Floats]:
    """The least and the highest posterior of each class, row by class, at the given level.

    counts: what the model was estimated from. prior_variance: of the log prior of each class. Where cells are so far
    from all that was learned that their errors overflow, nothing is known: from 0 to 1.
    """
    classes = model.classes.size
    low, high = np.ones((table.rows, classes)), np.ones((table.rows, classes))
    if classes == 1:
        return low, high
    step = max(1, min(INTERVAL_ROWS, INTERVAL_NUMBERS // (classes * model.n_slots)))
    width = float(scipy.special.ndtri(0.5 + level / 2.0))
    for first in range(0, table.rows, step):
        some = slice(first, min(first + step, table.rows))
        piece = table.slice(some.start, some.stop)
        log_joint = model.log_joint(piece, first)
        impossible = log_joint.max(axis=1) == -np.inf  # the prior stands for the posterior
        log_joint[impossible] = model.log_prior
        with np.errstate(over="ignore", invalid="ignore"):  # of cells that are far from all that was learned
            odds = LogOdds.of(log_joint)
            covariance = odds.no_errors()
            add_errors(model, counts, piece, first, covariance)
            for errors in (covariance.own, *covariance.shared):
                errors[impossible & np.isfinite(covariance.own).all(axis=1)] = 0.0
            covariance.own[:] += prior_variance
            spread = width * np.sqrt(odds.variance(covariance))
            bounds = scipy.special.expit(odds.value - spread), scipy.special.expit(odds.value + spread)
        posterior = posteriors(log_joint, model.log_prior)  # which the bounds hold to the last digit
        known = np.isfinite(spread)
        low[some] = np.where(known, np.minimum(bounds[0], posterior), 0.0)
        high[some] = np.where(known, np.maximum(bounds[1], posterior), 1.0)
    return low, high


def add_errors(model: Model, counts: Counts, table: Table, first_row: int, out: Covariance) -> None:
    """Add the errors of log P(row | class)."""
    guard = Guard(model.schema, first_row)
    for p, (group, statistic) in enumerate(zip(model.schema.groups, counts.statistics, strict=True)):
        cells = guard(p, group.family.read, table, group.columns)
        weight = model.weights[model.schema.block_slots[p]]
        guard(p, group.family.add_covariance, model.likelihoods[p], statistic, cells, weight, out)


@dataclass(frozen=True)
class LogOdds:
    """The log-odds of each class against all others, row by class, and how they follow the log joints.

    With the log joint of class k, whose posterior is p[k], the log-odds of c grow by (1[c = k] - p[k]) / (1 - p[c]).
    Of the most probable class 1 - p may be lost to rounding: there the others are added up, and `slope` is the share
    by which each of them counts.
    """

    value: Floats
    posterior: Floats
    best: Integers
    slope: Floats

    @classmethod
    def of(cls, log_joint: Floats) -> "LogOdds":
        rows = np.arange(len(log_joint))
        best = log_joint.argmax(axis=1)
        top = log_joint[rows, best]
        posterior = np.exp(log_joint - top[:, None])
        total = posterior.sum(axis=1, keepdims=True)
        posterior /= total
        value = log_joint - top[:, None] - np.log(total) - np.log1p(-np.minimum(posterior, 0.5))
        others = log_joint.copy()
        others[rows, best] = -np.inf
        second = others.max(axis=1)
        alone = second == -np.inf  # every other class is impossible
        slope = -np.exp(others - np.where(alone, 0.0, second)[:, None])
        summed = np.where(alone, 1.0, -slope.sum(axis=1))
        slope /= summed[:, None]
        slope[rows, best] = 1.0
        value[rows, best] = top - second - np.log(summed)
        return cls(value, posterior, best, slope)

    def no_errors(self) -> Covariance:
        """The covariance of log joints that have no errors as yet, along all that `variance` looks at."""
        return Covariance.zeros_along(self.posterior, self.slope)

    def variance(self, covariance: Covariance) -> Floats:
        """The variance of the errors, row by class: infinite where it overflows, and not below what is left of it by
        rounding where classes have nearly all of their errors in common."""
        rows, posterior, slope = np.arange(len(self.value)), self.posterior, self.slope
        rest = 1.0 - np.minimum(posterior, 0.5)
        along, deviation = covariance.multiply(0), np.sqrt(covariance.own)
        common = (along * posterior).sum(axis=1, keepdims=True)
        variance = (covariance.own - 2.0 * along + common) / rest**2
        size = (deviation + (deviation * posterior).sum(axis=1, keepdims=True)) / rest
        variance[rows, self.best] = (covariance.multiply(1) * slope).sum(axis=1)
        size[rows, self.best] = (deviation * np.abs(slope)).sum(axis=1)
        variance = np.maximum(variance, CANCELLED_SHARE * size**2)
        return np.where(np.isnan(variance), np.inf, variance)
