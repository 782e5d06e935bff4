"""Weight, mean and scatter of each class and column, in one pass.

Moments are an array [6, class, column] of cells: weight, mean, what the mean leaves out, scatter, what the scatter
leaves out, and by how much the scatter may be wrong. Being unevaluated sums of two doubles, they lose nothing when a
million one-row batches are merged; only rows that were summed together (at memory speed) leave a doubt.
"""

import numpy as np

from deciban.arrays import TOO_LARGE
from deciban.kernels.compiled import Array, compiled
from deciban.kernels.exact import minus, plus, quotient, times

# Bytes of one tile: it is read twice when its first guess of the mean was poor, so it should still be in cache.
TILE_BYTES = 1 << 22

# Rows of a class that the first guess of its mean is made of, and rows that are summed without compensation.
GUESS_ROWS = 32
PLAIN_ROWS = 64

# Means and deviations beyond this are a reason to look for cells that are too large.
SUSPICIOUS = 0.001 * float(TOO_LARGE)

# A sum of squares may be wrong by this share.
DOUBT = 4.0 * 2.0**-52

Cell = tuple[float, float, float, float, float, float]


@compiled
def _load(moments: Array, c: int, j: int) -> Cell:
    m = moments
    return m[0, c, j], m[1, c, j], m[2, c, j], m[3, c, j], m[4, c, j], m[5, c, j]


@compiled
def _store(moments: Array, c: int, j: int, cell: Cell) -> None:
    m = moments
    m[0, c, j], m[1, c, j], m[2, c, j], m[3, c, j], m[4, c, j], m[5, c, j] = cell


@compiled
def combine_cell(one: Cell, other: Cell, n: float, sign: float) -> Cell:
    """Moments of the first set with the second (sign 1) or without it (sign -1); `n` is the weight of the result.

    The update of Chan, Golub and LeVeque, and its inverse.
    """
    n1, mean1, low1, scatter1, rest1, doubt1 = one
    n2, mean2, low2, scatter2, rest2, doubt2 = other
    if n2 == 0.0:
        return one
    if n1 == 0.0:
        return other
    if n == 0.0:
        return 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    share = quotient(sign * n2, n)
    delta = minus((mean2, low2), (mean1, low1))
    mean = plus((mean1, low1), times(delta, share))
    between = times(times(delta, delta), times((n1, 0.0), share))
    scatter = plus(plus((scatter1, rest1), (sign * scatter2, sign * rest2)), between)
    return n, mean[0], mean[1], scatter[0], scatter[1], doubt1 + doubt2


@compiled
def combine_moments(moments: Array, other: Array, weight: Array, sign: float) -> None:
    """Add (sign 1) or take away (sign -1) the other moments, cell by cell, in place; `weight` is what results."""
    for c in range(moments.shape[1]):
        for j in range(moments.shape[2]):
            _store(moments, c, j, combine_cell(_load(moments, c, j), _load(other, c, j), weight[c, j], sign))


@compiled
def _few_digits(shift: float, variance: float) -> float:
    """`shift` to a sixteenth of the deviation: then sums over whole numbers are exact, and so is forgetting."""
    if not 0.0 < variance < np.inf:
        return shift
    unit = 2.0 ** np.floor(0.5 * np.log2(variance) - 3.0)
    return float(np.floor(shift / unit + 0.5) * unit)


@compiled
def _guess_means(x: Array, labels: Array, weights: Array, shift: Array) -> None:
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
    squares = np.zeros((classes, columns))
    n = np.zeros((classes, columns))
    for i in range(x.shape[0]):
        if unknown == 0 and i >= GUESS_ROWS * classes:
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
                squares[c, j] += (value - first[c, j]) ** 2
                n[c, j] += 1.0
    for c in range(classes):
        for j in range(columns):
            if shift[c, j] != shift[c, j]:
                step = total[c, j] / n[c, j]
                shift[c, j] = _few_digits(first[c, j] + step, squares[c, j] / n[c, j] - step * step)


@compiled
def _flush(part: Array, sums: Array, c: int) -> None:
    """Move the partial sums of a class into the compensated ones."""
    for j in range(part.shape[2]):
        sums[1, c, j] += part[0, c, j]
        term = part[1, c, j] - sums[3, c, j]
        total = sums[2, c, j] + term
        sums[3, c, j] = (total - sums[2, c, j]) - term
        sums[2, c, j] = total
        part[0, c, j] = 0.0
        part[1, c, j] = 0.0


@compiled
def _sum_whole_tile(x: Array, labels: Array, weights: Array, shift: Array, sums: Array) -> bool:
    """Fill `sums` with the weight, sum, sum of squares (and its correction) of the deviations from `shift`.

    It asks no cell whether it is missing, which is half the time; False says that one may be. Squares are added
    plainly for PLAIN_ROWS rows of a class, then with compensation.
    """
    sums[:] = 0.0
    part = np.zeros((2, sums.shape[1], sums.shape[2]))
    plain = np.zeros(sums.shape[1], np.int64)
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
            _flush(part, sums, c)
            plain[c] = 0
    for c in range(sums.shape[1]):
        _flush(part, sums, c)
        sums[0, c, :] = sums[0, c, 0]
        for j in range(sums.shape[2]):
            if sums[0, c, j] > 0.0 and not np.isfinite(sums[2, c, j]):
                return False
    return True


@compiled
def _sum_holed_tile(x: Array, labels: Array, weights: Array, shift: Array, sums: Array) -> bool:
    """The same sums, missing cells left out; False says that a cell is infinite or too large to square."""
    sums[:] = 0.0
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
    for c in range(sums.shape[1]):
        for j in range(sums.shape[2]):
            if not np.isfinite(sums[2, c, j]):
                return False
    return True


@compiled
def _move_poor_shifts(moments: Array, sums: Array, shift: Array) -> bool:
    """Move each shift that is so far from the mean that digits cancel to the mean just found; True if any moved."""
    moved = False
    for c in range(shift.shape[0]):
        for j in range(shift.shape[1]):
            n = sums[0, c, j]
            if n > 0.0:
                reach = 0.5 * (moments[3, c, j] + sums[2, c, j]) * (moments[0, c, j] + n)
                if sums[1, c, j] * sums[1, c, j] > reach:
                    step = sums[1, c, j] / n
                    shift[c, j] = _few_digits(shift[c, j] + step, sums[2, c, j] / n - step * step)
                    moved = True
    return moved


@compiled
def count_moments(x: Array, labels: Array, weights: Array, moments: Array) -> bool:
    """Add the rows of `x` to the moments, in place; False when a cell may be infinite or too large to square.

    A tile is summed about the mean known so far. Where that guess turns out to be poor against the spread, the tile
    is summed once more about the mean just found: it is still in cache.
    """
    classes, columns = moments.shape[1], moments.shape[2]
    rows = max(4 * classes, TILE_BYTES // max(1, columns * x.itemsize), 1)
    shift = np.empty((classes, columns))
    sums = np.empty((4, classes, columns))
    holes = False
    sound = True
    for start in range(0, x.shape[0], rows):
        tile = slice(start, min(start + rows, x.shape[0]))
        cells, classes_of, weights_of = x[tile], labels[tile], weights[tile]
        for c in range(classes):
            for j in range(columns):
                weight = moments[0, c, j]
                shift[c, j] = _few_digits(moments[1, c, j], moments[3, c, j] / weight) if weight > 0.0 else np.nan
        _guess_means(cells, classes_of, weights_of, shift)
        for attempt in range(2):
            if not holes:
                holes = not _sum_whole_tile(cells, classes_of, weights_of, shift, sums)
            if holes and not _sum_holed_tile(cells, classes_of, weights_of, shift, sums):
                return False
            if attempt == 1 or not _move_poor_shifts(moments, sums, shift):
                break
        for c in range(classes):
            for j in range(columns):
                n, first, second, rest = sums[0, c, j], sums[1, c, j], sums[2, c, j], sums[3, c, j]
                if n > 0.0:
                    step = quotient(first, n)
                    mean = plus((shift[c, j], 0.0), step)
                    scatter = minus((second, -rest), times((first, 0.0), step))
                    sound = sound and bool(abs(mean[0]) < SUSPICIOUS and second < n * SUSPICIOUS**2)
                    found = (n, mean[0], mean[1], scatter[0], scatter[1], DOUBT * second)
                    total = moments[0, c, j] + n
                    _store(moments, c, j, combine_cell(_load(moments, c, j), found, total, 1.0))
    return sound
