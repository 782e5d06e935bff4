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
def lift(count: float, share: float, total: float, unit: float, linear: float) -> Any:
    """What a word says of a class: the logarithm of how much more probable it makes the class, or a part linearly.

    `count` of the `total` of the word are in the class, which has this share of all counts; `unit` is added.
    """
    lifted = ((count / share if share > 0.0 else 0.0) + unit) / (total + unit)
    return (1.0 - linear) * np.log(lifted) + linear * (lifted - 1.0)


@compiled
def log_lifts(counts: Array, sums: Array, unit: float, linear: float, out: Array) -> None:
    """The lift of each word in each class."""
    every = sums.sum()
    for j in range(counts.shape[0]):
        total = 0.0
        for c in range(counts.shape[1]):
            total += counts[j, c]
        for c in range(counts.shape[1]):
            out[j, c] = lift(counts[j, c], sums[c] / every, total, unit, linear)
