"""What the kernels `left_out_*` share: they score each training row by what is counted without it.

Like the kernels of `scoring`, they add evidence to `out[row, slot[j], class]`. `removed[i]` is the weight of row i that
was counted and is to be left out; 0 scores the row as it is.
"""

import numpy as np

from deciban.kernels.compiled import inner

# What is left of a sum below this share of it is rounding.
ROUNDING_SHARE = 1e-13

# Shares count as no less than this.
LEAST_SHARE = 1e-300
LEAST_LOG = float(np.log(LEAST_SHARE))


@inner
def less(have: float, removed: float) -> float:
    """have - removed, 0 where that is rounding."""
    left = have - removed
    return left if left > ROUNDING_SHARE * have else 0.0


@inner
def share_term(log_share: float, others: bool) -> float:
    """What an occurrence adds to a class: the log of the share in it, or less that of the share in all `others`."""
    if not others:
        return log_share
    return -log_share if log_share > LEAST_LOG else -LEAST_LOG
