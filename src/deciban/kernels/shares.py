"""What words say of classes, from their counts."""

from typing import Any

import numpy as np

from deciban.kernels.compiled import Array, compiled


@compiled
def log_shares(counts: Array, alpha: float, bottom: Array, others: bool, out: Array) -> None:
    """The logarithm of (count + alpha) / bottom, word by class; with `others` what it lacks. Most counts are small."""
    logs = np.log(np.arange(64) + alpha)
    log_bottom = np.log(bottom)
    for j in range(counts.shape[0]):
        for c in range(counts.shape[1]):
            count = counts[j, c]
            whole = np.int64(count) if count < 64.0 else 64
            value = (logs[whole] if whole < 64 and whole == count else np.log(count + alpha)) - log_bottom[c]
            out[j, c] = -max(value, np.log(1e-300)) if others else value


@compiled
def heard_lift(lift: float, linear: float) -> Any:
    """What a lift says: its logarithm, or a part of it linearly."""
    if linear == 1.0:
        return lift - 1.0
    return (1.0 - linear) * np.log(lift) + linear * (lift - 1.0)


@compiled
def log_lifts(counts: Array, sums: Array, unit: float, linear: float, out: Array) -> None:
    """What each word says of each class by how much more probable it makes it; `unit` is added to the counts."""
    inverse = np.zeros(sums.size)  # of the share that a class has of all counts
    for c in range(sums.size):
        inverse[c] = sums.sum() / sums[c] if sums[c] > 0.0 else 0.0
    for j in range(counts.shape[0]):
        total = unit
        for c in range(counts.shape[1]):
            total += counts[j, c]
        nothing = heard_lift(unit / total, linear)
        for c in range(counts.shape[1]):
            lift = (counts[j, c] * inverse[c] + unit) / total
            out[j, c] = heard_lift(lift, linear) if counts[j, c] > 0.0 else nothing
