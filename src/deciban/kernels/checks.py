"""Checks of every value, in one pass and without a temporary array."""

import numpy as np

from deciban.kernels.compiled import Array, compiled


@compiled
def all_finite(values: Array) -> bool:
    """Whether no value is missing or infinite."""
    bad = 0
    for k in range(values.size):
        bad += not np.isfinite(values[k])
    return bad == 0


@compiled
def all_within(values: Array, low: float, high: float) -> bool:
    """Whether each value lies between the two or is missing."""
    outside = 0
    for k in range(values.size):
        outside += values[k] < low or values[k] > high
    return outside == 0
