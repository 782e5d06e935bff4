"""Sums of each class and column, and the weight of the rows where the column is present."""

import numpy as np

from deciban.kernels.compiled import compiled


@compiled
def count_totals(x, labels, weights, binary, threshold, present, total):
    """Add the rows of `x` to the totals, in place; with `binary`, a cell counts as 1 above `threshold`, else 0."""
    for i in range(x.shape[0]):
        c = labels[i]
        w = weights[i]
        if c < 0 or w == 0.0:
            continue
        for j in range(x.shape[1]):
            value = np.float64(x[i, j])
            here = w if value == value else 0.0
            if binary:
                amount = w if value > threshold else 0.0
            else:
                amount = w * value if value == value else 0.0
            present[c, j] += here
            total[c, j] += amount


@compiled
def count_sparse_totals(data, indices, indptr, labels, weights, binary, threshold, present, total):
    """The same for rows in CSR form; `present` must already hold the class weights, and loses its missing cells."""
    for i in range(indptr.size - 1):
        c = labels[i]
        w = weights[i]
        if c < 0 or w == 0.0:
            continue
        for k in range(indptr[i], indptr[i + 1]):
            value = np.float64(data[k])
            j = indices[k]
            if value != value:
                present[c, j] -= w
            elif binary:
                if value > threshold:
                    total[c, j] += w
            else:
                total[c, j] += w * value
