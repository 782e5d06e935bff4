"""Probabilities from counts."""

import numpy as np

from deciban.arrays import Floats


def smoothed(counts: Floats, alpha: float, levels: float | None = None) -> Floats:
    """(count + alpha) / (sum + alpha * levels) for each class (row); `levels` is the number of columns unless given.

    Where that is 0 / 0 (no smoothing and nothing counted in a class), the class takes the shares of all classes.
    """
    size = counts.shape[1] if levels is None else levels
    bottom = counts.sum(axis=1, keepdims=True) + alpha * size
    empty = bottom[:, 0] <= 0.0
    shares = np.divide(counts + alpha, bottom, out=np.zeros_like(counts), where=bottom > 0.0)
    if empty.any():
        overall = counts.sum(axis=0)
        total = overall.sum()
        shares[empty] = overall / total if total > 0.0 else 1.0 / max(size, 1.0)
    return np.asarray(shares)
