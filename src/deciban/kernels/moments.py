"""Sums of deviations, and of their squares, of each class and column, in one pass.

`sums` is an array [4, class, column]: weight, sum of deviations from `shift`, sum of their squares, and by how much
that sum is too large (Kahan's compensation). Rows without a class or a weight are left out.
"""

import numpy as np

from deciban.kernels.compiled import Array, compiled

# Rows of a class that are summed without compensation.
PLAIN_ROWS = 64


@compiled
def sum_first_rows(x: Array, labels: Array, weights: Array, enough: int, left: int, sums: Array) -> None:
    """Fill `sums` with number, first value, and sums of deviations from it and of their squares.

    It reads `enough` rows, and more as long as `left` pairs of class and column have no value yet.
    """
    for i in range(x.shape[0]):
        if left <= 0 and i >= enough:
            break
        c = labels[i]
        if c < 0 or weights[i] == 0.0:
            continue
        for j in range(x.shape[1]):
            value = np.float64(x[i, j])
            if value == value:
                if sums[0, c, j] == 0.0:
                    sums[1, c, j] = value
                    left -= 1
                deviation = value - sums[1, c, j]
                sums[0, c, j] += 1.0
                sums[2, c, j] += deviation
                sums[3, c, j] += deviation * deviation


@compiled
def sum_deviations(
    x: Array, labels: Array, weights: Array, shift: Array, part: Array, plain: Array, sums: Array
) -> None:
    """Add up all cells, none of which may be missing: the squares are not finite where one is.

    Deviations and squares are added plainly to `part` for PLAIN_ROWS rows of a class, which `plain` counts, then to
    `sums`, the squares with compensation. What is left in `part` is not yet in `sums`; the weight is in column 0.
    """
    for i in range(x.shape[0]):
        c = labels[i]
        w = weights[i]
        if c < 0 or w == 0.0:
            continue
        sums[0, c, 0] += w
        for j in range(x.shape[1]):
            deviation = x[i, j] - shift[c, j]
            weighted = w * deviation
            part[0, c, j] += weighted
            part[1, c, j] += weighted * deviation
        plain[c] += 1
        if plain[c] == PLAIN_ROWS:
            plain[c] = 0
            for j in range(x.shape[1]):
                sums[1, c, j] += part[0, c, j]
                term = part[1, c, j] - sums[3, c, j]
                total = sums[2, c, j] + term
                sums[3, c, j] = (total - sums[2, c, j]) - term
                sums[2, c, j] = total
                part[0, c, j] = 0.0
                part[1, c, j] = 0.0


@compiled
def sum_present_deviations(x: Array, labels: Array, weights: Array, shift: Array, sums: Array) -> None:
    """Add up the cells that are not missing."""
    for i in range(x.shape[0]):
        c = labels[i]
        w = weights[i]
        if c < 0 or w == 0.0:
            continue
        for j in range(x.shape[1]):
            value = np.float64(x[i, j])
            present = value == value
            here = w if present else 0.0
            deviation = value - shift[c, j] if present else 0.0
            sums[0, c, j] += here
            sums[1, c, j] += here * deviation
            term = here * deviation * deviation - sums[3, c, j]
            total = sums[2, c, j] + term
            sums[3, c, j] = (total - sums[2, c, j]) - term
            sums[2, c, j] = total
