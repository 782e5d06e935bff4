"""Scoring each training row by what is counted without it.

Like the kernels of `scoring`, these add evidence to `out[row, slot[j], class]`. `taken[i]` is the weight of row i that
was counted and is to be left out; 0 scores the row as it is.
"""

import numpy as np

from deciban.arrays import ROUNDING_VARIANCE
from deciban.kernels.compiled import Array, compiled, compiled_to_reorder, inner

# What is left of a sum below this share of it is rounding.
ROUNDING = 1e-13

# Shares count as no less than this.
LEAST_SHARE = 1e-300
LEAST_LOG = float(np.log(LEAST_SHARE))


@inner
def _less(have: float, removed: float) -> float:
    """have - taken, 0 where that is rounding."""
    left = have - removed
    return left if left > ROUNDING * have else 0.0


@inner
def _said(log_share: float, others: bool) -> float:
    """What an occurrence says by the share of the class, or by what the share of the others lacks."""
    if not others:
        return log_share
    return -log_share if log_share > LEAST_LOG else -LEAST_LOG


@compiled
def left_out_normal(
    x: Array,
    labels: Array,
    removed: Array,
    overall: Array,
    counted: Array,
    stays: Array,
    shared: float,
    ddof: float,
    floor: float,
    added: float,
    slot: Array,
    out: Array,
) -> None:
    """Normal densities.

    overall: for each column its centre, and of all classes weight, mean (beyond the centre), scatter, degrees of
        freedom, pooled scatter, and the variance up to which a column says nothing.
    counted: weight, mean and scatter, column by class.
    stays: variance, half of its inverse, and half of log 2 pi variance, of the classes that a row is not in; a
        variance of 0 where that depends on the row.
    A variance is (1 - shared) of the class's own and `shared` of the pooled one.
    """
    half_log = 0.5 * np.log(2.0 * np.pi)
    for i in range(x.shape[0]):
        y, w = labels[i], removed[i]
        for j in range(x.shape[1]):
            value = np.float64(x[i, j]) - overall[0, j]
            rest = _less(overall[1, j], w)
            if value != value or rest == 0.0:
                continue
            away = value - overall[2, j]
            spread = _less(overall[3, j], w * overall[1, j] / rest * away * away) / rest
            if not spread > overall[6, j]:
                continue
            all_mean = overall[2, j] - w * away / rest
            own_weight, own_mean, own_scatter = counted[0, j, y], all_mean, 0.0
            own_rest = _less(own_weight, w)
            degrees = overall[4, j] - (own_weight - ddof if own_weight > ddof else 0.0)
            if own_rest > 0.0:
                away = value - counted[1, j, y]
                own_mean = counted[1, j, y] - w * away / own_rest
                own_scatter = _less(counted[2, j, y], w * own_weight / own_rest * away * away)
            if own_rest > ddof:
                degrees += own_rest - ddof
            pooled = overall[5, j] - counted[2, j, y] + own_scatter
            pooled = pooled / degrees if degrees > 0.0 and pooled > 0.0 else 0.0
            for c in range(out.shape[2]):
                if c != y and stays[0, j, c] > floor * spread:
                    away = value - counted[1, j, c]
                    out[i, slot[j], c] -= stays[2, j, c] + away * away * stays[1, j, c]
                    continue
                n, m, s = counted[0, j, c], counted[1, j, c], counted[2, j, c]
                if c == y:
                    n, m, s = own_rest, own_mean, own_scatter
                variance = shared * pooled
                if n > ddof:
                    variance += (1.0 - shared) * s / (n - ddof)
                if variance < floor * spread:
                    variance = floor * spread
                if n == 0.0:
                    m, variance = all_mean, spread
                elif variance <= ROUNDING_VARIANCE * ((overall[0, j] + m) * (overall[0, j] + m) + spread):
                    variance = variance if variance > spread / (1.0 + n) else spread / (1.0 + n)
                variance += added * spread
                out[i, slot[j], c] -= half_log + 0.5 * (np.log(variance) + (value - m) * (value - m) / variance)


@compiled
def left_out_lookup(
    codes: Array,
    labels: Array,
    removed: Array,
    start: Array,
    table: Array,
    counts: Array,
    every: Array,
    total: Array,
    all_total: Array,
    alpha: Array,
    log_width: Array,
    fixed: bool,
    smooth: bool,
    slot: Array,
    out: Array,
) -> None:
    """Shares of levels; `table` has their logarithms with every row counted, `counts` the counts, level by class.

    `every` are the counts of all classes, `total` those of all levels, column by class, `all_total` of all.
    The levels of column j stand at start[j] .. start[j + 1] - 2, and after them one that never occurs. Unless the
    levels are `fixed`, one that only this row has is gone without it, and is then worth a zero count if `smooth`.
    """
    for i in range(codes.shape[0]):
        y, w = labels[i], removed[i]
        for j in range(codes.shape[1]):
            if codes[i, j] < 0:
                continue
            v = start[j] + codes[i, j]
            size = start[j + 1] - start[j] - 1
            every_left = _less(every[v], w)
            gone = w > 0.0 and every_left == 0.0 and not fixed
            if gone and not smooth:
                continue
            for c in range(out.shape[2]):
                drop = w if c == y else 0.0
                bottom = _less(total[j, c], drop) + alpha[j] * (size - gone)
                if drop == 0.0 and bottom > 0.0 and not gone:
                    out[i, slot[j], c] += table[v, c]
                    continue
                top = alpha[j] if gone else _less(counts[v, c], drop) + alpha[j]
                if bottom == 0.0 and not gone:  # nothing is left of the class: it takes the shares of all
                    top, bottom = every_left, _less(all_total[j], w)
                out[i, slot[j], c] += np.log(top / bottom) - log_width[j]


@compiled_to_reorder
def left_out_cholesky(
    x: Array,
    labels: Array,
    removed: Array,
    weight: Array,
    mean: Array,
    scatter: Array,
    pooled: Array,
    mix: float,
    share: Array,
    freedom: float,
    ddof: float,
    constant: float,
    whole: Array,
    scratch: Array,
    out: Array,
) -> None:
    """Joint normal densities whose matrices are moved towards their diagonals, so that each row factors its own.

    The matrix of class c is (1 - mix) of its own covariance and `mix` of the pooled one, each moved towards its
    diagonal by share[c] and share[-1]. With mix 0 the other classes are as in `whole`, their densities with every row.
    scratch: room for a matrix and two rows.
    """
    size, classes = x.shape[1], weight.size
    for i in range(x.shape[0]):
        y, w = labels[i], removed[i]
        rest = weight[y] - w
        for k in range(size):
            scratch[size, k] = x[i, k] - mean[y, k]
        down = w * weight[y] / rest
        left = freedom - (weight[y] - ddof if weight[y] > ddof else 0.0) + (rest - ddof if rest > ddof else 0.0)
        factored = False
        log_root = 0.0
        for c in range(classes):
            if mix == 0.0 and c != y:
                out[i, c] += whole[i, c]
                continue
            if mix < 1.0 or not factored:
                own_divisor = (rest if c == y else weight[c]) - ddof
                own_divisor = own_divisor if own_divisor > 0.0 else 1e-300
                log_root = 0.0
                for a in range(size):
                    for b in range(a + 1):
                        drop = down * scratch[size, a] * scratch[size, b]
                        own = (scatter[c, a, b] - (drop if c == y else 0.0)) / own_divisor
                        joint = (pooled[a, b] - drop) / left
                        if a != b:
                            own *= 1.0 - share[c]
                            joint *= 1.0 - share[classes]
                        total = (1.0 - mix) * own + mix * joint
                        for k in range(b):
                            total -= scratch[a, k] * scratch[b, k]
                        scratch[a, b] = np.sqrt(total) if a == b else total / scratch[b, b]
                    log_root += np.log(scratch[a, a])
                factored = True
            distance = 0.0
            stretch = weight[y] / rest if c == y else 1.0
            for a in range(size):
                total = stretch * (x[i, a] - mean[c, a])
                for b in range(a):
                    total -= scratch[a, b] * scratch[size + 1, b]
                white = total / scratch[a, a]
                scratch[size + 1, a] = white
                distance += white * white
            out[i, c] += constant - log_root - 0.5 * distance


@compiled
def left_out_linear(
    data: Array,
    indices: Array,
    indptr: Array,
    labels: Array,
    removed: Array,
    counts: Array,
    sums: Array,
    alpha: Array,
    added: float,
    others: bool,
    table: Array,
    out: Array,
) -> None:
    """Amounts times the logarithm of smoothed shares of `counts`, column by class, for rows in CSR form.

    Only the row's own class changes, whose shares are of the counts without it; with `others` all classes but that
    one do, and score what their shares lack. `table` is what one occurrence is worth with every row counted, `sums`
    are the counts of all columns.
    """
    for i in range(indptr.size - 1):
        y, w = labels[i], removed[i]
        length = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            if data[k] == data[k]:
                length += data[k]
        for c in range(sums.size):
            changed = w > 0.0 and (c == y) != others
            log_bottom = np.log(_less(sums[c], w * length) + added) if changed else 0.0
            total = 0.0
            for k in range(indptr[i], indptr[i + 1]):
                value, j = np.float64(data[k]), indices[k]
                if value == value and value != 0.0:
                    if changed:
                        gain = np.log(_less(counts[j, c], w * value) + alpha[j]) - log_bottom
                        total += value * _said(gain, others)
                    else:
                        total += value * table[j, c]
            out[i, c] += total
