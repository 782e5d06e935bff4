"""Conformity scores of left-out rows: a table of counts that add, from which prediction sets are made.

The score of a row is the posterior of its true class when it is left out. A class belongs to the set of a new row
unless nearly all left-out rows have higher scores. All models count scores in the same bins.
"""

from dataclasses import dataclass, replace

import numpy as np

from deciban.errors import Argument, UsageError
from deciban.util.arrays import Codes, Floats, Integers, scatter_to, sum_at

# Bins are of equal width in asinh(log-odds / LINEAR): nearly equal in log-odds up to this many nats, then wider.
LINEAR = 4.0

# Bins per unit: 128 per nat where sets are decided. A bin there has about 0.1% of the rows. Those in the bin of the
# threshold are covered beyond what was requested.
RESOLUTION = 512.0

# Log-odds are clipped to this: the largest of a double below 1 are 36.7.
MAX_LOG_ODDS = 40.0

# Number of bins of negative log-odds, and of others.
HALF = int(np.ceil(RESOLUTION * np.arcsinh(MAX_LOG_ODDS / LINEAR)))

# Tolerance for p-values that equal 1 - coverage up to rounding.
ROUNDING = 1e-12


def bin_posteriors(posterior: Floats) -> Integers:
    """Return the bin of each posterior probability."""
    share = np.clip(posterior, 0.0, 1.0)
    with np.errstate(divide="ignore"):
        log_odds = np.clip(np.log(share) - np.log1p(-share), -MAX_LOG_ODDS, MAX_LOG_ODDS)
    return np.asarray(np.floor(RESOLUTION * np.arcsinh(log_odds / LINEAR)).astype(np.int64) + HALF)


def lowest_posterior(bins: Integers) -> Floats:
    """Return the lowest posterior probability in each bin."""
    edges = 1.0 / (1.0 + np.exp(-LINEAR * np.sinh((bins - HALF) / RESOLUTION)))
    return np.where(bins > 0, edges, 0.0)


@dataclass(frozen=True)
class Conformity:
    """Number of left-out rows by true class and bin of its posterior.

    counts: class by bin, in rows; a row of weight 2 counts twice. stale: True if the model has changed since.
    """

    counts: Floats
    stale: bool = False

    @classmethod
    def of(cls, posterior: Floats, labels: Codes, weights: Floats) -> "Conformity":
        """Count rows with these posteriors, row by class, and true classes."""
        classes, width = posterior.shape[1], 2 * HALF
        place = labels.astype(np.int64) * width + bin_posteriors(posterior[np.arange(labels.size), labels])
        return cls(sum_at(place, weights, classes * width).reshape(classes, width))

    def __add__(self, other: "Conformity") -> "Conformity":
        """Return the counts of both, for the same classes."""
        return Conformity(self.counts + other.counts, self.stale or other.stale)

    def remove(self, other: "Conformity") -> "Conformity | None":
        """Return the counts without those of `other`; None if these were never added."""
        left = self.counts - other.counts
        if (left < -1e-9 * self.counts.max(initial=1.0)).any():
            return None
        return replace(self, counts=np.where(left > 1e-9 * self.counts, left, 0.0))

    def scale(self, factors: Floats) -> "Conformity":
        """Return the counts of each class multiplied by its factor."""
        return self if (factors == 1.0).all() else replace(self, counts=self.counts * factors[:, None])

    def reindex_classes(self, positions: Integers, size: int) -> "Conformity":
        """Return the counts with classes moved to `positions`; classes with a negative position are dropped."""
        if np.array_equal(positions, np.arange(size)):
            return self
        return replace(self, counts=scatter_to(self.counts, positions, size))

    def first_bins(self, coverage: float, per_class: bool = False) -> Integers:
        """Return, for each class, the lowest bin that belongs to sets of this coverage.

        The p-value of a bin is the share of rows with a score in it or below, the new row included. per_class: only
        rows of the same class count.
        """
        if not 0.0 < coverage < 1.0:
            raise UsageError("use a share between 0 and 1, such as 0.9", parameter=Argument("coverage", coverage))
        behind = np.cumsum(self.counts if per_class else self.counts.sum(axis=0, keepdims=True), axis=1)
        p_values = (behind + 1.0) / (behind[:, -1:] + 1.0)
        first = (p_values <= 1.0 - coverage + ROUNDING).sum(axis=1)
        return np.asarray(np.broadcast_to(first, len(self.counts)))
