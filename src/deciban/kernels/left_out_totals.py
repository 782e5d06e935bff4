"""Amounts times log shares of each training row, from the totals of all other rows."""

from typing import NamedTuple

import numpy as np

from deciban.kernels.compiled import Array, compiled
from deciban.kernels.left_out import less, share_term


class ShareCounts(NamedTuple):
    """The totals of all rows, and what is added to them."""

    counts: Array  # column by class
    sums: Array  # of each class, over all columns
    alpha: Array  # added to the counts of each column
    added: float  # added to each of the sums
    worth: Array  # column by class: what one occurrence adds with every row counted


@compiled
def left_out_linear(
    data: Array,
    indices: Array,
    indptr: Array,
    labels: Array,
    removed: Array,
    shares: ShareCounts,
    others: bool,
    out: Array,
) -> None:
    """Add the sum of amount * log share over the cells of each row, which are in CSR form.

    The shares of the row's own class change. With `others` the counts of a class are those of all other classes: then
    those of every class but the row's own change, and a share counts against its class.
    """
    for i in range(indptr.size - 1):
        y, w = labels[i], removed[i]
        length = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            if data[k] == data[k]:
                length += data[k]
        for c in range(shares.sums.size):
            changed = w > 0.0 and (c == y) != others
            log_bottom = np.log(less(shares.sums[c], w * length) + shares.added) if changed else 0.0
            total = 0.0
            for k in range(indptr[i], indptr[i + 1]):
                value, j = np.float64(data[k]), indices[k]
                if value == value and value != 0.0:
                    if changed:
                        gain = np.log(less(shares.counts[j, c], w * value) + shares.alpha[j]) - log_bottom
                        total += value * share_term(gain, others)
                    else:
                        total += value * shares.worth[j, c]
            out[i, c] += total
