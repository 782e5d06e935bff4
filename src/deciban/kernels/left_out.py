"""Scoring each training row by what is counted without it.

Like the kernels of `scoring`, these add evidence to `out[row, slot[j], class]`. `taken[i]` is the weight of row i that
was counted and is to be left out; 0 scores the row as it is.
"""

import numpy as np

from deciban.arrays import ROUNDING_VARIANCE
from deciban.kernels.compiled import Array, compiled, compiled_to_reorder
from deciban.kernels.shares import heard_lift

# What is left of a sum below this share of it is rounding.
ROUNDING = 1e-13


@compiled
def _less(have: float, taken: float) -> float:
    """have - taken, 0 where that is rounding."""
    left = have - taken
    return left if left > ROUNDING * have else 0.0


@compiled
def left_out_normal(
    x: Array,
    labels: Array,
    taken: Array,
    centre: Array,
    weight: Array,
    mean: Array,
    scatter: Array,
    shared: float,
    ddof: float,
    floor: float,
    added: float,
    least: Array,
    slot: Array,
    out: Array,
) -> None:
    """Normal densities; `weight`, `mean` (beyond `centre`) and `scatter` are column by class.

    A variance is (1 - shared) of the class's own and `shared` of the pooled one. Columns with an overall variance up to
    least[j] say nothing.
    """
    classes, columns = weight.shape[1], x.shape[1]
    half_log = 0.5 * np.log(2.0 * np.pi)
    all_weight, all_mean, all_scatter = np.zeros(columns), np.zeros(columns), np.zeros(columns)
    freedom, pooled_scatter = np.zeros(columns), np.zeros(columns)
    for j in range(columns):
        for c in range(classes):
            all_weight[j] += weight[j, c]
            all_mean[j] += weight[j, c] * mean[j, c]
            freedom[j] += max(weight[j, c] - ddof, 0.0)
            pooled_scatter[j] += scatter[j, c]
        all_mean[j] = all_mean[j] / all_weight[j] if all_weight[j] > 0.0 else 0.0
        all_scatter[j] = pooled_scatter[j]
        for c in range(classes):
            all_scatter[j] += weight[j, c] * (mean[j, c] - all_mean[j]) ** 2
    # of the classes that a row is not in, most stay as they are
    stays = shared == 0.0 and added == 0.0
    whole, root_log, inverse = np.zeros((columns, classes)), np.zeros((columns, classes)), np.zeros((columns, classes))
    for j in range(columns):
        for c in range(classes):
            size = (centre[j] + mean[j, c]) ** 2 + all_scatter[j] / max(all_weight[j], 1e-300)
            if stays and scatter[j, c] > ROUNDING_VARIANCE * size * max(weight[j, c] - ddof, 0.0) > 0.0:
                whole[j, c] = scatter[j, c] / (weight[j, c] - ddof)
                root_log[j, c] = half_log + 0.5 * np.log(whole[j, c])
                inverse[j, c] = 0.5 / whole[j, c]
    for i in range(x.shape[0]):
        y, w = labels[i], taken[i]
        for j in range(columns):
            value = np.float64(x[i, j]) - centre[j]
            if value != value:
                continue
            rest = _less(all_weight[j], w)
            if rest == 0.0:
                continue
            own_rest = _less(weight[j, y], w)
            away, own_away = value - all_mean[j], value - mean[j, y]
            overall = _less(all_scatter[j], w * all_weight[j] / rest * away * away) / rest
            if not overall > least[j]:
                continue
            overall_mean = all_mean[j] - w * away / rest
            own_mean, own_scatter = overall_mean, 0.0
            if own_rest > 0.0:
                own_mean = mean[j, y] - w * own_away / own_rest
                own_scatter = _less(scatter[j, y], w * weight[j, y] / own_rest * own_away * own_away)
            degrees = freedom[j] - max(weight[j, y] - ddof, 0.0) + max(own_rest - ddof, 0.0)
            pooled = max(pooled_scatter[j] - scatter[j, y] + own_scatter, 0.0) / degrees if degrees > 0.0 else 0.0
            for c in range(classes):
                n, m, s = weight[j, c], mean[j, c], scatter[j, c]
                if c != y and whole[j, c] > floor * overall:
                    out[i, slot[j], c] -= root_log[j, c] + (value - m) ** 2 * inverse[j, c]
                    continue
                if c == y:
                    n, m, s = own_rest, own_mean, own_scatter
                if n > 0.0:
                    own = s / (n - ddof) if n > ddof else 0.0
                    variance = max((1.0 - shared) * own + shared * pooled, floor * overall)
                    if variance <= ROUNDING_VARIANCE * ((centre[j] + m) ** 2 + overall):
                        variance = max(variance, overall / (1.0 + n))
                else:
                    m, variance = overall_mean, overall
                variance += added * overall
                out[i, slot[j], c] -= half_log + 0.5 * (np.log(variance) + (value - m) ** 2 / variance)


@compiled
def left_out_lookup(
    codes: Array,
    labels: Array,
    taken: Array,
    start: Array,
    table: Array,
    counts: Array,
    alpha: Array,
    fixed: bool,
    smooth: bool,
    log_width: Array,
    slot: Array,
    out: Array,
) -> None:
    """Shares of levels; `table` has their logarithms with every row counted, `counts` the counts, level by class.

    The levels of column j stand at start[j] .. start[j + 1] - 2, and after them one that never occurs. Unless the
    levels are `fixed`, one that only this row has is gone without it, and is then worth a zero count if `smooth`.
    """
    classes, columns = counts.shape[1], codes.shape[1]
    total, every = np.zeros((columns, classes)), np.zeros(counts.shape[0])
    for j in range(columns):
        for v in range(start[j], start[j + 1]):
            for c in range(classes):
                total[j, c] += counts[v, c]
                every[v] += counts[v, c]
    for i in range(codes.shape[0]):
        y, w = labels[i], taken[i]
        for j in range(columns):
            if codes[i, j] < 0:
                continue
            v, a, size = start[j] + codes[i, j], alpha[j], start[j + 1] - start[j] - 1
            every_left = _less(every[v], w)
            if w > 0.0 and every_left == 0.0 and not fixed:
                if smooth:
                    for c in range(classes):
                        bottom = (_less(total[j, c], w) if c == y else total[j, c]) + a * (size - 1)
                        out[i, slot[j], c] += np.log(a / bottom) - log_width[j]
                continue
            for c in range(classes):
                drop = w if c == y else 0.0
                bottom = _less(total[j, c], drop) + a * size
                if drop == 0.0 and bottom > 0.0:
                    out[i, slot[j], c] += table[v, c]
                    continue
                top = _less(counts[v, c], drop) + a
                if bottom == 0.0:  # nothing is left of the class: it takes the shares of all
                    top, bottom = every_left, _less(total[j].sum(), w)
                out[i, slot[j], c] += np.log(top / bottom) - log_width[j]


@compiled_to_reorder
def left_out_cholesky(
    x: Array,
    labels: Array,
    taken: Array,
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
    slot: int,
    out: Array,
) -> None:
    """Joint normal densities whose matrices are moved towards their diagonals, so that each row factors its own.

    The matrix of class c is (1 - mix) of its own covariance and `mix` of the pooled one, each moved towards its
    diagonal by share[c] and share[-1]. With mix 0 the other classes are as in `whole`, their densities with every row.
    """
    size, classes = x.shape[1], weight.size
    root = np.empty((size, size))
    away = np.empty(size)
    white = np.empty(size)
    for i in range(x.shape[0]):
        y, w = labels[i], taken[i]
        rest = weight[y] - w
        for k in range(size):
            away[k] = x[i, k] - mean[y, k]
        down = w * weight[y] / rest
        left = freedom - max(weight[y] - ddof, 0.0) + max(rest - ddof, 0.0)
        factored = False
        log_root = 0.0
        for c in range(classes):
            if mix == 0.0 and c != y:
                out[i, slot, c] += whole[i, c]
                continue
            if mix < 1.0 or not factored:
                own_divisor = max((rest if c == y else weight[c]) - ddof, 1e-300)
                log_root = 0.0
                for a in range(size):
                    for b in range(a + 1):
                        drop = down * away[a] * away[b]
                        own = (scatter[c, a, b] - (drop if c == y else 0.0)) / own_divisor
                        joint = (pooled[a, b] - drop) / left
                        if a != b:
                            own *= 1.0 - share[c]
                            joint *= 1.0 - share[classes]
                        total = (1.0 - mix) * own + mix * joint
                        for k in range(b):
                            total -= root[a, k] * root[b, k]
                        root[a, b] = np.sqrt(total) if a == b else total / root[b, b]
                    log_root += np.log(root[a, a])
                factored = True
            distance = 0.0
            stretch = weight[y] / rest if c == y else 1.0
            for a in range(size):
                total = stretch * (x[i, a] - mean[c, a])
                for b in range(a):
                    total -= root[a, b] * white[b]
                white[a] = total / root[a, a]
                distance += white[a] * white[a]
            out[i, slot, c] += constant - log_root - 0.5 * distance


@compiled
def left_out_linear(
    data: Array,
    indices: Array,
    indptr: Array,
    labels: Array,
    taken: Array,
    counts: Array,
    alpha: Array,
    added: float,
    others: bool,
    table: Array,
    slot: int,
    out: Array,
) -> None:
    """Amounts times the logarithm of smoothed shares of `counts`, column by class, for rows in CSR form.

    Only the row's own class changes, whose shares are of the counts without it; with `others` all classes but that
    one do, and score what their shares lack. `table` is what one occurrence is worth with every row counted.
    """
    classes = counts.shape[1]
    sums = np.zeros(classes)
    for j in range(counts.shape[0]):
        for c in range(classes):
            sums[c] += counts[j, c]
    for i in range(indptr.size - 1):
        y, w = labels[i], taken[i]
        length = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            if data[k] == data[k]:
                length += data[k]
        for c in range(classes):
            changed = w > 0.0 and (c == y) != others
            log_bottom = np.log(_less(sums[c], w * length) + added) if changed else 0.0
            total = 0.0
            for k in range(indptr[i], indptr[i + 1]):
                value, j = np.float64(data[k]), indices[k]
                if value == value and value != 0.0:
                    if changed:
                        gain = np.log(_less(counts[j, c], w * value) + alpha[j]) - log_bottom
                        total += value * (-max(gain, np.log(1e-300)) if others else gain)
                    else:
                        total += value * table[j, c]
            out[i, slot, c] += total


@compiled
def _vanishes(total: float, amount: float, least: float) -> bool:
    """Whether a word that was counted so often is in no vocabulary any more without this amount."""
    left = total - amount
    return left <= 1e-10 * total or left < least


@compiled
def left_out_words(
    data: Array,
    indices: Array,
    indptr: Array,
    labels: Array,
    taken: Array,
    counts: Array,
    total: Array,
    alpha: float,
    least: float,
    others: bool,
    normed: bool,
    slope: Array,
    bottom: Array,
    length: Array,
    part: Array,
) -> None:
    """`left_out_linear` for a vocabulary that grows with the texts: a word that no other text has is not in it.

    `bottom` are the sums of the smoothed counts, `total` is what the counts of each word were in all classes; words
    below `least` are left out. With `normed` the amounts of the words that are left have length 1. Writes `length`, the
    amounts that are left, too.
    """
    classes = counts.shape[1]
    fewer = np.empty(classes)
    for i in range(indptr.size - 1):
        y, w = labels[i], taken[i]
        gone, whole, left_square = 0, 0.0, 0.0
        fewer[:] = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            j, x = indices[k], data[k]
            whole += x
            if w > 0.0 and _vanishes(total[j], w * x, least):
                gone += 1
                for c in range(classes):
                    fewer[c] += _less(counts[j, c], w * x) if (c == y) != others else counts[j, c]
            else:
                length[i] += x
                left_square += x * x
        stretch = 1.0 / np.sqrt(left_square) if normed and left_square > 0.0 else 1.0
        length[i] *= stretch
        for c in range(classes):
            changed = w > 0.0 and (c == y) != others
            rest = bottom[c] - alpha * gone - fewer[c] - (w * whole if changed else 0.0)
            log_rest = np.log(max(rest, 1e-300))
            shift = np.log(bottom[c]) - log_rest
            score = 0.0
            for k in range(indptr[i], indptr[i + 1]):
                j, x = indices[k], data[k]
                if w > 0.0 and _vanishes(total[j], w * x, least):
                    continue
                if changed:
                    gain = np.log(_less(counts[j, c], w * x) + alpha) - log_rest
                    score += x * (-max(gain, np.log(1e-300)) if others else gain)
                else:
                    score += x * (slope[j, c] - shift if others else slope[j, c] + shift)
            part[i, 0, c] += stretch * score


@compiled
def left_out_presence(
    data: Array,
    indices: Array,
    indptr: Array,
    labels: Array,
    taken: Array,
    counts: Array,
    texts: Array,
    total: Array,
    alpha: float,
    least: float,
    length: Array,
    part: Array,
) -> None:
    """The same for words that are there or not: `counts` are texts that have a word, `texts` all of a class."""
    words, classes = counts.shape
    absent = np.zeros(classes)
    for c in range(classes):
        for j in range(words):
            absent[c] += np.log(max(texts[c] - counts[j, c], 0.0) + alpha)
    without = np.zeros(classes)  # the same without one text of the class, of the weight that was taken last
    weight = np.full(classes, -1.0)
    for i in range(indptr.size - 1):
        y, w = labels[i], taken[i]
        if weight[y] != w:
            weight[y], without[y] = w, 0.0
            for j in range(words):
                without[y] += np.log(max(texts[y] - w - counts[j, y], 0.0) + alpha)
        for c in range(classes):
            off = w if c == y else 0.0
            rows = texts[c] - off
            score, left = without[c] if c == y else absent[c], words
            for k in range(indptr[i], indptr[i + 1]):
                j = indices[k]
                score -= np.log(max(rows - counts[j, c], 0.0) + alpha)
                if w > 0.0 and _vanishes(total[j], w, least):
                    left -= 1
                else:
                    score += np.log(_less(counts[j, c], off) + alpha)
            part[i, 0, c] += score - left * np.log(max(rows + 2.0 * alpha, 1e-300))
            length[i] = left - (words - (indptr[i + 1] - indptr[i]))


@compiled
def left_out_lifts(
    data: Array,
    indices: Array,
    indptr: Array,
    labels: Array,
    taken: Array,
    counts: Array,
    sums: Array,
    texts: float,
    total: Array,
    alpha: float,
    least: float,
    normed: bool,
    linear: float,
    length: Array,
    part: Array,
) -> None:
    """`left_out_words` for lifts: without a text the counts of its words and the shares of all classes are others."""
    classes = counts.shape[1]
    rest = np.empty(classes)
    for i in range(indptr.size - 1):
        y, w = labels[i], taken[i]
        for c in range(classes):
            rest[c] = sums[c]
        left_square = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            j, x = indices[k], data[k]
            rest[y] -= w * x
            if w > 0.0 and _vanishes(total[j], w * x, least):
                for c in range(classes):
                    rest[c] -= _less(counts[j, c], w * x) if c == y else counts[j, c]
            else:
                length[i] += x
                left_square += x * x
        stretch = 1.0 / np.sqrt(left_square) if normed and left_square > 0.0 else 1.0
        length[i] *= stretch
        every = 0.0
        for c in range(classes):
            rest[c] = rest[c] if rest[c] > ROUNDING * sums[c] else 0.0
            every += rest[c]
        for c in range(classes):
            rest[c] = every / rest[c] if rest[c] > 0.0 else 0.0  # the inverse of its share
        unit = alpha * ((texts - w) / max(every, 1e-300) if normed else 1.0)
        for k in range(indptr[i], indptr[i + 1]):
            j, x = indices[k], data[k]
            if w > 0.0 and _vanishes(total[j], w * x, least):
                continue
            left = total[j] - w * x + unit
            nothing = heard_lift(unit / left, linear)
            for c in range(classes):
                count = _less(counts[j, c], w * x) if c == y else counts[j, c]
                said = heard_lift((count * rest[c] + unit) / left, linear) if count > 0.0 else nothing
                part[i, 0, c] += stretch * x * said
