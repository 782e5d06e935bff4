"""Sums of each class and column, and the weight of the rows where the column is present.

In doubles, which are right where all that is added is whole; or in the digits of `exact_sums`, those of a class and
column in a row.
"""

import numpy as np

from deciban.kernels.compiled import Array, compiled
from deciban.kernels.exact_sums import add_product


@compiled
def count_totals(
    x: Array, labels: Array, weights: Array, binary: bool, threshold: float, present: Array, total: Array
) -> bool:
    """Add the rows of `x` to the totals, in place; with `binary`, a cell counts as 1 above `threshold`, else 0.

    It returns whether all that was added is whole.
    """
    whole = True
    for i in range(x.shape[0]):
        c = labels[i]
        w = weights[i]
        if c < 0 or w == 0.0:
            continue
        for j in range(x.shape[1]):
            value = np.float64(x[i, j])
            here = w if value == value else 0.0
            present[c, j] += here
            amount = (w if value > threshold else 0.0) if binary else (w * value if value == value else 0.0)
            total[c, j] += amount
            whole &= (amount == np.floor(amount)) & (here == np.floor(here))
    return whole


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
) -> bool:
    """The same for rows in CSR form; `present` must already hold the class weights, and loses its missing cells."""
    whole = True
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
            else:
                amount = (w if value > threshold else 0.0) if binary else w * value
                total[c, j] += amount
                whole &= amount == np.floor(amount)
    return whole


@compiled
def add_amounts(
    x: Array, labels: Array, weights: Array, binary: bool, threshold: float, rows: Array, sums: Array, lows: Array
) -> None:
    """Add the rows of `x` to the digits of the totals; `lows` are those of both."""
    for i in range(x.shape[0]):
        c = labels[i]
        w = weights[i]
        if c < 0 or w == 0.0:
            continue
        for j in range(x.shape[1]):
            value, cell = np.float64(x[i, j]), c * x.shape[1] + j
            if value == value:
                add_product(rows, cell, lows[0], w, 1.0, 1.0)
                amount = (1.0 if value > threshold else 0.0) if binary else value
                add_product(sums, cell, lows[1], w, amount, 1.0)


@compiled
def add_sparse_amounts(
    data: Array,
    indices: Array,
    indptr: Array,
    labels: Array,
    weights: Array,
    binary: bool,
    threshold: float,
    every: Array,
    rows: Array,
    sums: Array,
    lows: Array,
) -> None:
    """The same for rows in CSR form: the weight of each class goes to `every`, and `rows` loses its missing cells."""
    width = rows.shape[0] // every.shape[0]
    for i in range(indptr.size - 1):
        c = labels[i]
        w = weights[i]
        if c < 0 or w == 0.0:
            continue
        add_product(every, c, lows[0], w, 1.0, 1.0)
        for k in range(indptr[i], indptr[i + 1]):
            value, cell = np.float64(data[k]), c * width + indices[k]
            if value != value:
                add_product(rows, cell, lows[0], -w, 1.0, 1.0)
            else:
                amount = (1.0 if value > threshold else 0.0) if binary else value
                add_product(sums, cell, lows[1], w, amount, 1.0)
