"""Sums of each class and column, and the weight of the rows where the column is present."""

import numpy as np

from deciban.kernels.compiled import Array, compiled


@compiled
def count_totals(
    x: Array, labels: Array, weights: Array, binary: bool, threshold: float, present: Array, total: Array
) -> None:
    """Add the rows of `x` to the totals, in place; with `binary`, a cell counts as 1 above `threshold`, else 0."""
    for i in range(x.shape[0]):
        c = labels[i]
        w = weights[i]
        if c < 0 or w == 0.0:
            continue
        for j in range(x.shape[1]):
            value = np.float64(x[i, j])
            here = w if value == value else 0.0
            present[c, j] += here
            if binary:
                total[c, j] += w if value > threshold else 0.0
            else:
                total[c, j] += w * value if value == value else 0.0


@compiled
def count_sparse_totals(
    data: Array,
    indices: Array,
    indptr: Array,
    labels: Array,
    weights: Array,
    binary: bool,
    threshold: float,
    present: Array,
    total: Array,
) -> None:
    """The same for rows in CSR form; `present` must already hold the class weights, and loses its missing cells."""
    for i in range(indptr.size - 1):
        c = labels[i]
        w = weights[i]
        if c < 0 or w == 0.0:
            continue
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            value = np.float64(data[k])
            j = np.uint64(indices[k])
            if value != value:
                present[c, j] -= w
            elif binary:
                if value > threshold:
                    total[c, j] += w
            else:
                total[c, j] += w * value
