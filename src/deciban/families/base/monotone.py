"""Probabilities of bins whose ratio between neighboring classes grows, or falls, with the number of the bin.

For two classes this is the maximum likelihood estimate under the likelihood ratio order (Dykstra, Kochar & Robertson,
1995): isotonic regression of the share of the higher class, by pooling of adjacent violators. With more classes each
pair of neighbors is fitted on its own; then all bins and classes get the totals of their counts again.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Self

import numpy as np

from deciban.errors import UsageError
from deciban.families.base.contract import LeftOutRows, Monotone
from deciban.util.arrays import Codes, Floats, Integers

# Rounds in which bins and classes get their totals; two classes need one.
MAX_ROUNDS = 1000

# Largest deviation of the logarithm of a total.
MAX_DEVIATION = 1e-12


def pool_violators(counts: Floats) -> Floats:
    """Return the counts of two classes, class by bin, each replaced by the total of its pool.

    Neighboring bins are pooled until the share of the second class does not fall from one pool to the next.
    """
    pools: list[tuple[float, float, int]] = []  # counts of both classes, number of bins
    for first, second in counts.T.tolist():
        size = 1
        while pools and pools[-1][1] * first >= second * pools[-1][0]:
            before = pools.pop()
            first, second, size = before[0] + first, before[1] + second, before[2] + size
        pools.append((first, second, size))
    totals = np.array([pool[:2] for pool in pools]).reshape(-1, 2).T
    return np.repeat(totals, [pool[2] for pool in pools], axis=1)


@dataclass(frozen=True)
class MonotoneShares:
    """Monotone estimate of P(bin | class) from counts with smoothing.

    log_shares: class by bin. rank: position of each class in the order. lower, upper: for each pair of neighbors in the
    order and each bin, the counts of the lower and the upper class in the pool of the bin. total: of each class.
    """

    log_shares: Floats
    rank: Integers
    lower: Floats
    upper: Floats
    total: Floats

    @classmethod
    def of(cls, counts: Floats, monotone: Monotone) -> Self:
        """Fit counts above 0, class by bin."""
        classes, bins = counts.shape
        order = np.arange(classes)[::monotone] if isinstance(monotone, int) else np.array(monotone, dtype=np.int64)
        if not np.array_equal(np.sort(order), np.arange(classes)):
            raise UsageError(
                f"a monotone column was declared for {order.size} ordered classes, but there are {classes}",
                remedy="fit again with all classes",
            )
        pooled = np.zeros((2, max(classes - 1, 0), bins))
        for k, pair in enumerate(pairwise(order.tolist())):
            pooled[:, k] = pool_violators(counts[list(pair)])
        fitted = np.zeros((classes, bins))
        ratio = np.maximum.accumulate(np.log(pooled[1]) - np.log(pooled[0]), axis=1)  # also to the last bit
        fitted[order[1:]] = np.cumsum(ratio, axis=0)
        total, of_bins = counts.sum(axis=1), np.log(counts.sum(axis=0))
        for _ in range(MAX_ROUNDS if bins else 0):
            fitted += of_bins - np.logaddexp.reduce(fitted, axis=0)
            away = np.log(total) - np.logaddexp.reduce(fitted, axis=1)
            fitted += away[:, None]
            if np.abs(away).max() < MAX_DEVIATION:
                break
        return cls(fitted - np.log(total)[:, None], np.argsort(order), pooled[0], pooled[1], total)

    def score_left_out(self, codes: Codes, rows: LeftOutRows, out: Floats, log_width: float) -> None:
        """Add the log density in the bin of each row to out[row, class], without the row; -1 adds nothing.

        Approximation: the pools are those of all rows.
        """
        here = np.flatnonzero(codes >= 0)
        code, label, removed, pairs = codes[here], rows.labels[here], rows.removed[here], len(self.lower)
        rank = self.rank[label]

        def lessen(counts: Floats, pair: Integers) -> Floats:
            """Return the change of the logarithm of the counts of a pair without the row; 0 outside of all pairs."""
            known = (pair >= 0) & (pair < pairs)
            count = counts[np.where(known, pair, 0), code] if pairs else np.ones(code.size)
            return np.where(known, np.log1p(-np.minimum(removed / count, 1.0 - 1e-9)), 0.0)

        own, above = lessen(self.upper, rank - 1), lessen(self.lower, rank)
        relative = self.rank[None] - rank[:, None]
        change = np.where(relative > 0, (own - above)[:, None], 0.0)
        change[np.arange(here.size), label] = own - np.log1p(-np.minimum(removed / self.total[label], 1.0 - 1e-9))
        out[here] += self.log_shares.T[code] - log_width + change
