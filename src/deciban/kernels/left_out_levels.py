"""Shares of levels for each training row, from the counts of all other rows."""

from typing import NamedTuple

import numpy as np

from deciban.kernels.compiled import Array, compiled
from deciban.kernels.left_out import less


class LevelCounts(NamedTuple):
    """The counts of all rows. Level k of column j is row start[j] + k; the last row of a column never occurs."""

    start: Array
    counts: Array  # level by class
    every: Array  # for each level, of all classes
    total: Array  # column by class, of all levels
    all_total: Array  # for each column, of all levels and classes
    alpha: Array  # for each column, what is added to each count
    log_width: Array  # for each column, the logarithm of what a share is divided by: 0, or the width of bins
    log_share: Array  # level by class


@compiled
def left_out_lookup(
    codes: Array, labels: Array, removed: Array, levels: LevelCounts, fixed: bool, smooth: bool, slot: Array, out: Array
) -> None:
    """Add the log share of the level of each cell; a negative code adds nothing.

    Unless the levels are `fixed`, one that only this row has is gone without it: it adds nothing, or counts as a level
    that was never seen if `smooth`.
    """
    for i in range(codes.shape[0]):
        y, w = labels[i], removed[i]
        for j in range(codes.shape[1]):
            if codes[i, j] < 0:
                continue
            v = levels.start[j] + codes[i, j]
            size = levels.start[j + 1] - levels.start[j] - 1
            every_left = less(levels.every[v], w)
            gone = w > 0.0 and every_left == 0.0 and not fixed
            if gone and not smooth:
                continue
            for c in range(out.shape[2]):
                drop = w if c == y else 0.0
                bottom = less(levels.total[j, c], drop) + levels.alpha[j] * (size - gone)
                if drop == 0.0 and bottom > 0.0 and not gone:
                    out[i, slot[j], c] += levels.log_share[v, c]
                    continue
                top = levels.alpha[j] if gone else less(levels.counts[v, c], drop) + levels.alpha[j]
                if bottom == 0.0 and not gone:  # nothing is left of the class: it takes the shares of all
                    top, bottom = every_left, less(levels.all_total[j], w)
                out[i, slot[j], c] += np.log(top / bottom) - levels.log_width[j]
