"""Weight, mean and scatter of each class and column, in one pass.

The mean and the scatter are each an unevaluated sum of a double and a small correction (`*_low`), so that merging
a million one-row batches loses nothing.
"""

import numpy as np

from deciban.kernels.compiled import Array, compiled

# Bytes of one tile: it is read twice when its first guess of the mean was poor, so it should still be in cache.
TILE_BYTES = 1 << 22

# Rows of a class that the first guess of its mean is made of, and rows that are summed without compensation.
GUESS_ROWS = 32
PLAIN_ROWS = 64


@compiled
def two_sum(a: float, b: float) -> tuple[float, float]:
    """The double nearest to a + b, and what it leaves out."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@compiled
def merge_cell(
    n1: float,
    mean1: float,
    low1: float,
    scatter1: float,
    rest1: float,
    n2: float,
    mean2: float,
    low2: float,
    scatter2: float,
    rest2: float,
) -> tuple[float, float, float, float, float]:
    """Moments of two sets of rows taken together (Chan, Golub and LeVeque)."""
    if n2 == 0.0:
        return n1, mean1, low1, scatter1, rest1
    if n1 == 0.0:
        return n2, mean2, low2, scatter2, rest2
    n = n1 + n2
    delta = (mean2 - mean1) + (low2 - low1)
    share = n2 / n
    mean, error = two_sum(mean1, delta * share)
    mean, low = two_sum(mean, low1 + error)
    scatter, error1 = two_sum(scatter1, scatter2)
    scatter, error2 = two_sum(scatter, delta * delta * (n1 * share))
    scatter, rest = two_sum(scatter, (rest1 + rest2) + (error1 + error2))
    return n, mean, low, scatter, rest


@compiled
def remove_cell(
    n1: float,
    mean1: float,
    low1: float,
    scatter1: float,
    rest1: float,
    n2: float,
    mean2: float,
    low2: float,
    scatter2: float,
    rest2: float,
    n: float,
) -> tuple[float, float, float, float]:
    """Moments of the first set without the second; `n` > 0 is the weight that stays."""
    delta = (mean2 - mean1) + (low2 - low1)
    mean, error = two_sum(mean1, -delta * (n2 / n))
    mean, low = two_sum(mean, low1 + error)
    scatter, error1 = two_sum(scatter1, -scatter2)
    scatter, error2 = two_sum(scatter, -delta * delta * (n1 * (n2 / n)))
    scatter, rest = two_sum(scatter, (rest1 - rest2) + (error1 + error2))
    return mean, low, scatter, rest


@compiled
def merge_moments(
    n1: Array,
    mean1: Array,
    low1: Array,
    scatter1: Array,
    rest1: Array,
    n2: Array,
    mean2: Array,
    low2: Array,
    scatter2: Array,
    rest2: Array,
) -> None:
    """Merge the second moments into the first, cell by cell, in place."""
    for c in range(n1.shape[0]):
        for j in range(n1.shape[1]):
            n1[c, j], mean1[c, j], low1[c, j], scatter1[c, j], rest1[c, j] = merge_cell(
                n1[c, j], mean1[c, j], low1[c, j], scatter1[c, j], rest1[c, j],
                n2[c, j], mean2[c, j], low2[c, j], scatter2[c, j], rest2[c, j],
            )  # fmt: skip


@compiled
def remove_moments(
    n1: Array,
    mean1: Array,
    low1: Array,
    scatter1: Array,
    rest1: Array,
    n2: Array,
    mean2: Array,
    low2: Array,
    scatter2: Array,
    rest2: Array,
    n: Array,
) -> None:
    """Take the second moments out of the first, cell by cell, in place; `n` is the weight that stays."""
    for c in range(n1.shape[0]):
        for j in range(n1.shape[1]):
            if n[c, j] > 0.0:
                if n2[c, j] > 0.0:
                    mean1[c, j], low1[c, j], scatter1[c, j], rest1[c, j] = remove_cell(
                        n1[c, j], mean1[c, j], low1[c, j], scatter1[c, j], rest1[c, j],
                        n2[c, j], mean2[c, j], low2[c, j], scatter2[c, j], rest2[c, j], n[c, j],
                    )  # fmt: skip
            else:
                mean1[c, j] = low1[c, j] = scatter1[c, j] = rest1[c, j] = 0.0
            n1[c, j] = n[c, j]


@compiled
def _guess_means(x: Array, labels: Array, weights: Array, start: int, stop: int, shift: Array) -> None:
    """Fill the cells of `shift` that are still NaN with the mean of a few values of their class and column."""
    classes, columns = shift.shape
    unknown = 0
    for c in range(classes):
        for j in range(columns):
            if shift[c, j] != shift[c, j]:
                unknown += 1
    if unknown == 0:
        return
    first = np.full((classes, columns), np.nan)
    total = np.zeros((classes, columns))
    n = np.zeros((classes, columns))
    for i in range(start, stop):
        if unknown == 0 and i - start >= GUESS_ROWS * classes:
            break
        c = labels[i]
        if c < 0 or weights[i] == 0.0:
            continue
        for j in range(columns):
            value = np.float64(x[i, j])
            if value == value:
                if n[c, j] == 0.0:
                    first[c, j] = value
                    if shift[c, j] != shift[c, j]:
                        unknown -= 1
                total[c, j] += value - first[c, j]
                n[c, j] += 1.0
    for c in range(classes):
        for j in range(columns):
            if shift[c, j] != shift[c, j]:
                shift[c, j] = first[c, j] + total[c, j] / n[c, j]


@compiled
def _flush(part_first: Array, part_second: Array, first: Array, second: Array, rest: Array) -> None:
    """Move partial sums into the compensated ones."""
    for j in range(first.size):
        first[j] += part_first[j]
        term = part_second[j] - rest[j]
        total = second[j] + term
        rest[j] = (total - second[j]) - term
        second[j] = total
        part_first[j] = 0.0
        part_second[j] = 0.0


@compiled
def _sum_whole_tile(
    x: Array,
    labels: Array,
    weights: Array,
    start: int,
    stop: int,
    shift: Array,
    n: Array,
    first: Array,
    second: Array,
    rest: Array,
) -> bool:
    """Weight, sum and compensated sum of squares of the deviations from `shift`; False when one is not finite.

    It asks no cell whether it is missing, which is half the time: a missing cell shows in the sums. Squares are
    added plainly for PLAIN_ROWS rows of a class, then with compensation.
    """
    n[:] = 0.0
    first[:] = 0.0
    second[:] = 0.0
    rest[:] = 0.0
    part_first = np.zeros(n.shape)
    part_second = np.zeros(n.shape)
    plain = np.zeros(n.shape[0], np.int64)
    for i in range(start, stop):
        c = labels[i]
        w = weights[i]
        if c < 0 or w == 0.0:
            continue
        n[c, 0] += w
        for j in range(shift.shape[1]):
            deviation = x[i, j] - shift[c, j]
            weighted = w * deviation
            part_first[c, j] += weighted
            part_second[c, j] += weighted * deviation
        plain[c] += 1
        if plain[c] == PLAIN_ROWS:
            _flush(part_first[c], part_second[c], first[c], second[c], rest[c])
            plain[c] = 0
    for c in range(n.shape[0]):
        _flush(part_first[c], part_second[c], first[c], second[c], rest[c])
        n[c, :] = n[c, 0]
        for j in range(n.shape[1]):
            if n[c, j] > 0.0 and not np.isfinite(second[c, j]):
                return False
    return True


@compiled
def _sum_holed_tile(
    x: Array,
    labels: Array,
    weights: Array,
    start: int,
    stop: int,
    shift: Array,
    n: Array,
    first: Array,
    second: Array,
    rest: Array,
) -> bool:
    """The same sums, missing cells left out."""
    n[:] = 0.0
    first[:] = 0.0
    second[:] = 0.0
    rest[:] = 0.0
    for i in range(start, stop):
        c = labels[i]
        w = weights[i]
        if c < 0 or w == 0.0:
            continue
        for j in range(shift.shape[1]):
            value = np.float64(x[i, j])
            present = value == value
            here = w if present else 0.0
            deviation = value - shift[c, j] if present else 0.0
            n[c, j] += here
            first[c, j] += here * deviation
            term = here * deviation * deviation - rest[c, j]
            total = second[c, j] + term
            rest[c, j] = (total - second[c, j]) - term
            second[c, j] = total
    for c in range(n.shape[0]):
        for j in range(n.shape[1]):
            if not np.isfinite(second[c, j]):
                return False
    return True


@compiled
def _move_poor_shifts(weight: Array, scatter: Array, n: Array, first: Array, second: Array, shift: Array) -> bool:
    """Move each shift that is so far from the mean that digits cancel to the mean just found; True if any moved."""
    poor = False
    for c in range(n.shape[0]):
        for j in range(n.shape[1]):
            if n[c, j] > 0.0:
                reach = 0.5 * (scatter[c, j] + second[c, j]) * (weight[c, j] + n[c, j])
                if first[c, j] * first[c, j] > reach:
                    shift[c, j] += first[c, j] / n[c, j]
                    poor = True
    return poor


@compiled
def count_moments(
    x: Array, labels: Array, weights: Array, weight: Array, mean: Array, low: Array, scatter: Array, rest: Array
) -> bool:
    """Add the rows of `x` to the moments, in place; False when a cell is infinite or too large to square.

    A tile is summed about the mean known so far. Where that guess turns out to be poor against the spread (the
    first tile, mostly), the tile is summed once more about the mean just found: it is still in cache.
    """
    classes, columns = weight.shape
    rows = max(4 * classes, TILE_BYTES // max(1, columns * x.itemsize), 1)
    shift = np.empty((classes, columns))
    n = np.empty((classes, columns))
    first = np.empty((classes, columns))
    second = np.empty((classes, columns))
    lost = np.empty((classes, columns))
    holes = False
    for start in range(0, x.shape[0], rows):
        stop = min(start + rows, x.shape[0])
        for c in range(classes):
            for j in range(columns):
                shift[c, j] = mean[c, j] if weight[c, j] > 0.0 else np.nan
        _guess_means(x, labels, weights, start, stop, shift)
        for attempt in range(2):
            if not holes:
                holes = not _sum_whole_tile(x, labels, weights, start, stop, shift, n, first, second, lost)
            if holes and not _sum_holed_tile(x, labels, weights, start, stop, shift, n, first, second, lost):
                return False
            if attempt == 1 or not _move_poor_shifts(weight, scatter, n, first, second, shift):
                break
        for c in range(classes):
            for j in range(columns):
                if n[c, j] > 0.0:
                    step = first[c, j] / n[c, j]
                    tile_mean, tile_low = two_sum(shift[c, j], step)
                    tile_scatter, tile_rest = two_sum(second[c, j], -step * first[c, j] - lost[c, j])
                    weight[c, j], mean[c, j], low[c, j], scatter[c, j], rest[c, j] = merge_cell(
                        weight[c, j], mean[c, j], low[c, j], scatter[c, j], rest[c, j],
                        n[c, j], tile_mean, tile_low, tile_scatter, tile_rest,
                    )  # fmt: skip
    return True
