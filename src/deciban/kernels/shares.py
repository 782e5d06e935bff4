"""What words say of classes, from their counts."""

from typing import Any

import numpy as np

from deciban.kernels.bits import fetch
from deciban.kernels.compiled import Array, compiled

# Words ahead of which memory is asked for counts.
AHEAD = 12


@compiled
def _fetch_row(counts: Array, order: Array, k: int) -> None:
    """Ask memory for the counts of the word that is k-th in this order."""
    if k < order.size:
        for c in range(0, counts.shape[1], 8):
            fetch(counts, np.uint64(order[k] * counts.shape[1] + c))


@compiled
def log_shares(
    counts: Array, order: Array, alpha: float, bottom: Array, others: bool, as_all: Array, out: Array
) -> None:
    """The logarithm of (count + alpha) / bottom, word by class, for the words of `counts` in this order.

    With `others` the count is that in the other classes, and the logarithm is what its share lacks; of classes `as_all`
    it is that in all classes. Most counts are small whole numbers.
    """
    logs = np.log(np.arange(64) + alpha)
    log_bottom = np.log(bottom)
    absent = logs[0] - log_bottom
    least = np.log(1e-300)
    summed = others or as_all.any()
    for k in range(order.size):
        j = np.uint64(order[k])
        _fetch_row(counts, order, k + AHEAD)
        total = 0.0
        if summed:
            for c in range(counts.shape[1]):
                total += counts[j, c]
        for c in range(counts.shape[1]):
            count = counts[j, c]
            if summed:
                count = total - count if others else total if as_all[c] else count
            value = absent[c]
            if count != 0.0:
                whole = np.int64(count) if count < 64.0 else 64
                value = (logs[whole] if whole < 64 and whole == count else np.log(count + alpha)) - log_bottom[c]
            out[k, c] = -max(value, least) if others else value


@compiled
def heard_lift(lift: float, linear: float) -> Any:
    """What a lift says: its logarithm, or a part of it linearly."""
    if linear == 1.0:
        return lift - 1.0
    return (1.0 - linear) * np.log(lift) + linear * (lift - 1.0)


@compiled
def log_lifts(counts: Array, order: Array, sums: Array, unit: float, linear: float, out: Array) -> None:
    """What each word, in this order, says of each class by how much more probable it makes it; `unit` is added."""
    inverse = np.zeros(sums.size)  # of the share that a class has of all counts
    for c in range(sums.size):
        inverse[c] = sums.sum() / sums[c] if sums[c] > 0.0 else 0.0
    for k in range(order.size):
        j = np.uint64(order[k])
        _fetch_row(counts, order, k + AHEAD)
        total = unit
        for c in range(counts.shape[1]):
            total += counts[j, c]
        nothing = heard_lift(unit / total, linear)
        for c in range(counts.shape[1]):
            lift = (counts[j, c] * inverse[c] + unit) / total
            out[k, c] = heard_lift(lift, linear) if counts[j, c] > 0.0 else nothing
