"""Counts of each class and level."""

import numpy as np

from deciban.kernels.compiled import Array, compiled


@compiled
def count_codes(codes: Array, labels: Array, weights: Array, table: Array) -> None:
    """Add the weight of each row to table[class, code], in place; negative codes and classes are left out."""
    for i in range(codes.size):
        if codes[i] >= 0 and labels[i] >= 0:
            table[labels[i], codes[i]] += weights[i]


@compiled
def integer_ranges(x: Array, low: Array, high: Array) -> bool:
    """Fill the least and greatest whole number of each column; False when a cell is neither whole nor missing."""
    limit = 2.0**53
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            value = np.float64(x[i, j])
            if value == value:
                if not (-limit < value < limit) or value != np.floor(value):
                    return False
                low[j] = min(low[j], value)
                high[j] = max(high[j], value)
    return True


@compiled
def count_integers(x: Array, labels: Array, weights: Array, low: Array, start: Array, table: Array) -> None:
    """Add each row to table[class, start[j] + x[i, j] - low[j]], in place; missing cells are left out."""
    for i in range(x.shape[0]):
        c = labels[i]
        w = weights[i]
        if c < 0 or w == 0.0:
            continue
        for j in range(x.shape[1]):
            value = np.float64(x[i, j])
            if value == value:
                table[c, start[j] + np.int64(value - low[j])] += w


@compiled
def encode_integers(x: Array, low: Array, start: Array, codes_of: Array, out: Array) -> bool:
    """Fill out[i, j] with the code of x[i, j], -1 where it is missing and -2 where it has none; False if one has none.

    `codes_of[start[j] : start[j + 1]]` are the codes of low[j], low[j] + 1, ... (-2: not a level).
    """
    known = True
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            value = np.float64(x[i, j])
            if value != value:
                out[i, j] = -1
                continue
            place = value - low[j]
            if 0.0 <= place < start[j + 1] - start[j] and value == np.floor(value):
                out[i, j] = codes_of[start[j] + np.int64(place)]
            else:
                out[i, j] = -2
            known &= out[i, j] != -2
    return known
