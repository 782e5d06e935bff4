"""Confidence intervals of posteriors.

Computed by the delta method. The log joint of each class has an estimation error: of its own means and shares, of
variances shared between classes, and of the prior if it was counted. Together these give the variance of the log-odds
of each class against all others. Evidence weights are treated as fixed.
"""

from dataclasses import dataclass

import numpy as np

from deciban.families.base.contract import Covariance
from deciban.model.counts import Counts, Guard
from deciban.model.model import Model, posteriors
from deciban.tables.table import Table
from deciban.util.arrays import Floats, Integers
from deciban.util.special import normal_quantile

# Rows per batch, to limit memory.
INTERVAL_ROWS = 1 << 14

# Numbers (rows times classes) per batch, for models with many classes.
INTERVAL_NUMBERS = 1 << 22

# Rounding error of a sum of variances and covariances that cancel, relative to their size.
CANCELLED_SHARE = 1e-14


def posterior_intervals(
    model: Model, counts: Counts, prior_variance: Floats, table: Table, level: float
) -> tuple[Floats, Floats]:
    """Return the lower and upper bound of each posterior, row by class, at the given level.

    counts: the counts from which the model was estimated. prior_variance: variance of the log prior of each class. If
    cells are so far from the training data that their errors overflow, the interval is 0 to 1.
    """
    classes = model.classes.size
    low, high = np.ones((table.rows, classes)), np.ones((table.rows, classes))
    if classes == 1:
        return low, high
    step = max(1, min(INTERVAL_ROWS, INTERVAL_NUMBERS // (classes * model.n_slots)))
    width = normal_quantile(0.5 + level / 2.0)
    for first in range(0, table.rows, step):
        some = slice(first, min(first + step, table.rows))
        piece = table.slice(some.start, some.stop)
        log_joint = model.log_joint(piece, first)
        impossible = log_joint.max(axis=1) == -np.inf  # the posterior is the prior
        log_joint[impossible] = model.log_prior
        with np.errstate(over="ignore", invalid="ignore"):  # for cells far from the training data
            odds = LogOdds.of(log_joint)
            covariance = odds.no_errors()
            add_errors(model, counts, piece, first, covariance)
            for errors in (covariance.own, *covariance.shared):
                errors[impossible & np.isfinite(covariance.own).all(axis=1)] = 0.0
            covariance.own[:] += prior_variance
            spread = width * np.sqrt(odds.variance(covariance))
            bounds = [np.exp(-np.logaddexp(0.0, -odds.value + side)) for side in (spread, -spread)]
        posterior = posteriors(log_joint, model.log_prior)  # the bounds must contain it exactly
        known = np.isfinite(spread)
        low[some] = np.where(known, np.minimum(bounds[0], posterior), 0.0)
        high[some] = np.where(known, np.maximum(bounds[1], posterior), 1.0)
    return low, high


def add_errors(model: Model, counts: Counts, table: Table, first_row: int, out: Covariance) -> None:
    """Add the estimation errors of log P(row | class)."""
    guard = Guard(model.schema, first_row)
    for p, (group, statistic) in enumerate(zip(model.schema.groups, counts.statistics, strict=True)):
        cells = guard(p, group.family.read, table, group.columns)
        weight = model.weights[model.schema.block_slots[p]]
        guard(p, group.family.add_covariance, model.likelihoods[p], statistic, cells, weight, out)


@dataclass(frozen=True)
class LogOdds:
    """Log-odds of each class against all others, row by class, and their derivatives.

    With respect to the log joint of class k, whose posterior is p[k], the log-odds of c have the derivative (1[c = k] -
    p[k]) / (1 - p[c]). For the most probable class 1 - p may be lost to rounding. There the others are added up, and
    `slope` holds the share of each.
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
        """Return a covariance of 0, in the shape that `variance` needs."""
        return Covariance.zeros_along(self.posterior, self.slope)

    def variance(self, covariance: Covariance) -> Floats:
        """Return the variance of the errors, row by class; infinite if it overflows.

        A lower bound accounts for rounding if classes share nearly all of their errors.
        """
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
