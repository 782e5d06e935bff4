"""Adding the log densities of normal distributions to `out[row, slot[j], class]`, as in `scoring`."""

from typing import NamedTuple

import numpy as np

from deciban.kernels.compiled import Array, compiled, inner
from deciban.kernels.lanes import STEP, no_lanes, plus_scaled, put_lanes


@inner
def _add_tile(tile: Array, rows: int, start: int, slot: int, out: Array) -> None:
    """Add what a tile [class, row] holds to its slot, and empty it."""
    for i in range(rows):
        for c in range(tile.shape[0]):
            out[start + i, slot, c] += tile[c, i]
            tile[c, i] = 0.0


@compiled
def score_normal(
    x: Array, centre: Array, mean: Array, root: Array, offset: Array, weight: Array, slot: Array, column: Array,
    tile: Array, out: Array,
) -> bool:  # fmt: skip
    """Add weight * (offset - ((x - centre - mean) * root)**2); False when a cell is infinite.

    It goes by tiles of rows, so that the innermost loop, over the rows of one column and class, runs in registers:
    `column` has room for one column of a tile, `tile` [class, row] for zeros.
    """
    finite = True
    for start in range(0, x.shape[0], column.size):
        rows = x.shape[0] - start if x.shape[0] - start < column.size else column.size
        here = slot[0]
        for j in range(x.shape[1]):
            w = weight[j]
            if w == 0.0:
                continue
            if slot[j] != here:
                _add_tile(tile, rows, start, here, out)
                here = slot[j]
            for i in range(rows):
                column[i] = x[start + i, j] - centre[j]
                finite &= not np.isinf(column[i])
            for c in range(mean.shape[1]):
                m, r, o = mean[j, c], root[j, c], offset[j, c]
                for i in range(rows):
                    z = (column[i] - m) * r
                    tile[c, i] += w * (o - z * z) if column[i] == column[i] else 0.0
        _add_tile(tile, rows, start, here, out)
    return finite


@inner
def _combine_columns(columns: Array, whiten: Array, g: int, m: int, count: int, rows: int, white: Array) -> None:
    """Fill white[m] with the sum of whiten[g, m, k] * columns[k] over the first `count` columns of a tile."""
    height, place = np.uint64(columns.shape[1]), np.uint64(0)
    row = np.uint64(m * white.shape[1])
    while place < np.uint64(rows):
        a, b, c, d = no_lanes(), no_lanes(), no_lanes(), no_lanes()
        here = place
        for k in range(count):
            factor = whiten[g, m, k]
            a = plus_scaled(a, factor, columns, here)
            b = plus_scaled(b, factor, columns, here + STEP)
            c = plus_scaled(c, factor, columns, here + STEP + STEP)
            d = plus_scaled(d, factor, columns, here + STEP + STEP + STEP)
            here += height
        put_lanes(a, white, row + place)
        put_lanes(b, white, row + place + STEP)
        put_lanes(c, white, row + place + STEP + STEP)
        put_lanes(d, white, row + place + STEP + STEP + STEP)
        place += STEP + STEP + STEP + STEP


class WhitenedNormals(NamedTuple):
    """Joint normal densities: class c has the matrix whiten[group[c]].

    whiten[g, m, k] is what column k adds to whitened coordinate m: nothing from column reach[m] on.
    """

    centre: Array  # of each column
    whiten: Array
    reach: Array
    group: Array
    mean: Array  # class by whitened coordinate
    offset: Array  # of each class


@compiled
def score_joint_normal(
    x: Array,
    centre: Array,
    whiten: Array,
    reach: Array,
    group: Array,
    mean: Array,
    offset: Array,
    weight: float,
    slot: int,
    columns: Array,
    white: Array,
    distance: Array,
    out: Array,
) -> None:
    """Add weight * (offset - |whiten (x - centre) - mean|**2), for what `WhitenedNormals` holds.

    They are passed one by one: numba needs ten microseconds to look at a NamedTuple, as long as to score a row.

    By tiles of rows: every innermost loop runs over the rows of a tile, for which there is room in `columns`
    [column, row], `white` [coordinate, row] and `distance`.
    """
    for start in range(0, x.shape[0], distance.size):
        rows = x.shape[0] - start if x.shape[0] - start < distance.size else distance.size
        for i in range(rows):
            for k in range(x.shape[1]):
                columns[k, i] = x[start + i, k] - centre[k]
        last = -1
        for c in range(group.size):
            g = group[c]
            if g != last:
                for m in range(reach.size):
                    _combine_columns(columns, whiten, g, m, reach[m], rows, white)
                last = g
            for i in range(rows):
                distance[i] = 0.0
            for m in range(reach.size):
                here = mean[c, m]
                for i in range(rows):
                    z = white[m, i] - here
                    distance[i] += z * z
            for i in range(rows):
                # coordinates that overflowed in both directions are as far as any
                far = distance[i] if distance[i] == distance[i] else np.inf
                out[start + i, slot, c] += weight * (offset[c] - far)


class JointNormals(NamedTuple):
    """Joint normal densities: class c has the matrix covariance[group[c]]; it and the means are in units of `unit`."""

    centre: Array  # of each column
    unit: Array  # of each column
    covariance: Array
    group: Array
    mean: Array  # class by column, from the centre


@compiled
def score_holed_normal(
    x: Array, normals: JointNormals, weight: float, slot: int, kept: Array, root: Array, out: Array
) -> None:
    """Add weight * log density of rows with missing cells, whose columns are integrated out.

    Each row factors a matrix of its own. `kept` has room for the numbers of the columns, `root` for a matrix of them
    and one row more.
    """
    unit, group = normals.unit, normals.group
    for i in range(x.shape[0]):
        size = 0
        constant = 0.0
        for k in range(x.shape[1]):
            if x[i, k] == x[i, k]:
                kept[size] = k
                size += 1
                constant -= np.log(unit[k]) + 0.5 * np.log(2.0 * np.pi)
        last = -1
        log_root = 0.0
        for c in range(group.size):
            g = group[c]
            if g != last:
                log_root = 0.0
                for a in range(size):  # Cholesky's factor of the matrix of the columns that are there
                    for b in range(a + 1):
                        total = normals.covariance[g, kept[a], kept[b]]
                        for k in range(b):
                            total -= root[a, k] * root[b, k]
                        root[a, b] = np.sqrt(total) if a == b else total / root[b, b]
                    log_root += np.log(root[a, a])
                last = g
            distance = 0.0
            for a in range(size):
                k = kept[a]
                total = (np.float64(x[i, k]) - normals.centre[k]) / unit[k] - normals.mean[c, k]
                for b in range(a):
                    total -= root[a, b] * root[x.shape[1], b]
                white = total / root[a, a]
                root[x.shape[1], a] = white
                distance += white * white
            if distance != distance:
                distance = np.inf
            out[i, slot, c] += weight * (constant - log_root - 0.5 * distance)
