"""What words say of classes, from their counts."""

from typing import Any

import numpy as np

from deciban.kernels.compiled import Array, compiled, inner


@compiled
def log_shares(
    data: Array, indices: Array, indptr: Array, alpha: float, bottom: Array, others: bool, as_all: Array, out: Array
) -> None:
    """The logarithm of (count + alpha) / bottom, word by class; counts are in CSR form.

    With `others` the count is that in the other classes, and the logarithm is what its share lacks; of classes `as_all`
    it is that in all classes. Most counts are small whole numbers.
    """
    logs = np.log(np.arange(64) + alpha)
    log_bottom = np.log(bottom)
    least = np.log(1e-300)
    absent = logs[0] - log_bottom
    summed = others or as_all.any()
    for j in range(indptr.size - 1):
        if summed:
            total = 0.0
            for z in range(indptr[j], indptr[j + 1]):
                total += data[z]
            log_total = np.log(total + alpha)
            for c in range(bottom.size):
                value = (log_total if others or as_all[c] else logs[0]) - log_bottom[c]
                out[j, c] = -max(value, least) if others else value
            for z in range(indptr[j], indptr[j + 1]):
                there = np.uint64(indices[z])
                value = np.log((total - data[z] if others else data[z]) + alpha) - log_bottom[there]
                out[j, there] = -max(value, least) if others else value
            continue
        for c in range(bottom.size):
            out[j, c] = absent[c]
        for z in range(indptr[j], indptr[j + 1]):
            there, count = np.uint64(indices[z]), data[z]
            whole = np.int64(count) if count < 64.0 else 64
            logarithm = logs[whole] if whole < 64 and whole == count else np.log(count + alpha)
            out[j, there] = logarithm - log_bottom[there]


@inner
def heard_lift(lift: float, linear: float) -> Any:
    """What a lift says: its logarithm, or a part of it linearly."""
    if linear == 1.0:
        return lift - 1.0
    return (1.0 - linear) * np.log(lift) + linear * (lift - 1.0)


@compiled
def log_lifts(data: Array, indices: Array, indptr: Array, sums: Array, unit: float, linear: float, out: Array) -> None:
    """What each word says of each class by how much more probable it makes it; `unit` is added."""
    inverse = np.zeros(sums.size)  # of the share that a class has of all counts
    for c in range(sums.size):
        inverse[c] = sums.sum() / sums[c] if sums[c] > 0.0 else 0.0
    for j in range(indptr.size - 1):
        total = unit
        for z in range(indptr[j], indptr[j + 1]):
            total += data[z]
        nothing = heard_lift(unit / total, linear)
        for c in range(sums.size):
            out[j, c] = nothing
        for z in range(indptr[j], indptr[j + 1]):
            there = np.uint64(indices[z])
            out[j, there] = heard_lift((data[z] * inverse[there] + unit) / total, linear)
