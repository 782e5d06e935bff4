"""Leave-one-out scoring of training rows: levels, totals, moments, scatters, words.

Like the kernels of `scoring`, these add evidence to `out[row, slot[j], class]`. `removed[i]` is the counted weight of
row i to leave out; with 0 the row is scored by all counts.

If covariance matrices are shrunk toward their diagonals, a rank-one update is impossible: each row factors its matrix,
several rows at once. Kernels for texts add evidence to part[row, 0, class] and write `length`, the sum of the amounts
of the remaining words in each text. A word that occurs in no other text is then not in the vocabulary.
"""

from typing import Any, NamedTuple

import numpy as np

from deciban.kernels.compiled import Array, compile_kernel, inner
from deciban.kernels.instructions import STEP, minus_product, no_lanes, plus_scaled, put_lanes, times_lanes
from deciban.kernels.text_arrays import AbsentWithout, LeftOutRules, LeftOutTexts, LiftTable, PresenceTable, ShareTable
from deciban.util.arrays import LANES, ROUNDING_VARIANCE
from deciban.util.sparse import SparseArrays

# A remainder below this share of a sum is a rounding error.
ROUNDING_SHARE = 1e-13

# Minimum of shares, so that logarithms are finite.
MIN_SHARE = 1e-300
MIN_LOG = float(np.log(MIN_SHARE))


@inner
def less(have: float, removed: float) -> float:
    """Return have - removed, 0 if the rest is a rounding error."""
    left = have - removed
    return left if left > ROUNDING_SHARE * have else 0.0


@inner
def share_term(log_share: float, others: bool) -> float:
    """Return the score of an occurrence: the log of its share in the class, or minus that in all `others`."""
    if not others:
        return log_share
    return -log_share if log_share > MIN_LOG else -MIN_LOG


class LevelCounts(NamedTuple):
    """Counts of all rows.

    Level k of column j is row start[j] + k; the last row of a column is for unseen levels.
    """

    start: Array
    counts: Array  # level by class
    every: Array  # for each level, summed over classes
    total: Array  # column by class, summed over levels
    all_total: Array  # for each column, summed over levels and classes
    alpha: Array  # for each column, the smoothing
    log_width: Array  # for each column, the log of the width of bins; 0 for levels
    log_share: Array  # level by class
    proportional: bool  # the smoothing is divided among the classes in proportion to their rows


@compile_kernel
def score_lookup(
    codes: Array, labels: Array, removed: Array, levels: LevelCounts, fixed: bool, smooth: bool, slot: Array, out: Array
) -> None:
    """Add the log share of the level of each cell; a negative code adds nothing.

    Unless the levels are `fixed`, a level that occurs only in this row is removed: it adds nothing, or counts as unseen
    if `smooth`.
    """
    for i in range(codes.shape[0]):
        y, w = labels[i], removed[i]
        for j in range(codes.shape[1]):
            if codes[i, j] < 0:
                continue
            v = levels.start[j] + codes[i, j]
            size = levels.start[j + 1] - levels.start[j] - 1
            every_left = less(levels.every[v], w)
            gone = w > 0.0 and every_left == 0.0 and not fixed
            if gone and not smooth:
                continue
            all_left = less(levels.all_total[j], w)
            for c in range(out.shape[2]):
                drop = w if c == y else 0.0
                if levels.proportional:
                    rows, count = less(levels.total[j, c], drop), less(levels.counts[v, c], drop)
                    if rows == 0.0:  # the class is empty and takes the shares of all classes
                        rows, count = all_left, every_left
                    if all_left == 0.0:
                        share = 1.0 / max(size - gone, 1)
                    else:
                        added = levels.alpha[j] * (rows / all_left)
                        share = (count + added) / (rows + added * (size - gone))
                    out[i, slot[j], c] += np.log(share) - levels.log_width[j]
                    continue
                bottom = less(levels.total[j, c], drop) + levels.alpha[j] * (size - gone)
                if drop == 0.0 and bottom > 0.0 and not gone:
                    out[i, slot[j], c] += levels.log_share[v, c]
                    continue
                top = levels.alpha[j] if gone else less(levels.counts[v, c], drop) + levels.alpha[j]
                if bottom == 0.0 and not gone:  # the class is empty and takes the shares of all classes
                    top, bottom = every_left, all_left
                out[i, slot[j], c] += np.log(top / bottom) - levels.log_width[j]


class ShareCounts(NamedTuple):
    """Totals of all rows, and their smoothing."""

    counts: Array  # column by class
    sums: Array  # per class, over all columns
    alpha: Array  # added to the counts of each column
    added: float  # added to each of the sums
    worth: Array  # column by class: the score of one occurrence with every row counted


@compile_kernel
def score_linear(
    data: Array,
    indices: Array,
    indptr: Array,
    labels: Array,
    removed: Array,
    shares: ShareCounts,
    others: bool,
    out: Array,
) -> None:
    """Add the sum of amount * log share over the cells of each row, which are in CSR form.

    The shares of the row's own class change. With `others` the counts of a class are those of all other classes: then
    the shares of all other classes change, and a share counts against its class.
    """
    for i in range(indptr.size - 1):
        y, w = labels[i], removed[i]
        length = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            if data[k] == data[k]:
                length += data[k]
        for c in range(shares.sums.size):
            changed = w > 0.0 and (c == y) != others
            log_bottom = np.log(less(shares.sums[c], w * length) + shares.added) if changed else 0.0
            total = 0.0
            for k in range(indptr[i], indptr[i + 1]):
                value, j = np.float64(data[k]), indices[k]
                if value == value and value != 0.0:
                    if changed:
                        gain = np.log(less(shares.counts[j, c], w * value) + shares.alpha[j]) - log_bottom
                        total += value * share_term(gain, others)
                    else:
                        total += value * shares.worth[j, c]
            out[i, c] += total


class NormalColumns(NamedTuple):
    """Statistics of each column over all classes; means are deviations from `center`."""

    center: Array
    weight: Array
    mean: Array
    scatter: Array
    degrees: Array  # degrees of freedom of the pooled variance
    pooled: Array  # sum of the scatters of the classes
    least: Array  # a column with at most this variance is constant and adds nothing


class NormalClasses(NamedTuple):
    """Moments by column and class, and the density for rows of other classes.

    variance: 0 if the density depends on the left-out row. half_precision: 1 / (2 variance). log_root: half of log(2 pi
    variance).
    """

    weight: Array
    mean: Array
    scatter: Array
    variance: Array
    half_precision: Array
    log_root: Array


class VarianceRule(NamedTuple):
    """Estimation of variances: (1 - shared) of the class's own and `shared` of the pooled variance.

    floor, var_smoothing: the minimum of a variance and the amount added to it, as shares of the column's variance.
    """

    shared: float
    ddof: float
    floor: float
    var_smoothing: float


@inner
def _moments_without(weight: float, mean: float, scatter: float, value: float, removed: float) -> tuple[float, ...]:
    """Return weight, mean and scatter without one value; the mean stays if nothing else was counted."""
    rest = less(weight, removed)
    if rest == 0.0:
        return rest, mean, 0.0
    away = value - mean
    return rest, mean - removed * away / rest, less(scatter, removed * weight / rest * away * away)


@inner
def _variance(weight: float, mean: float, scatter: float, pooled: float, spread: float, rule: VarianceRule) -> float:
    """Return the variance of a class with a positive weight.

    spread: variance of the column. mean: not centered.
    """
    variance = rule.shared * pooled
    if weight > rule.ddof:
        variance += (1.0 - rule.shared) * scatter / (weight - rule.ddof)
    if variance < rule.floor * spread:
        variance = rule.floor * spread
    if variance <= ROUNDING_VARIANCE * (mean * mean + spread):  # the cells do not vary
        variance = variance if variance > spread / (1.0 + weight) else spread / (1.0 + weight)
    return variance + rule.var_smoothing * spread


@compile_kernel
def score_normal(
    x: Array,
    labels: Array,
    removed: Array,
    column: NormalColumns,
    by_class: NormalClasses,
    rule: VarianceRule,
    slot: Array,
    out: Array,
) -> None:
    """Add the log density of each cell; missing cells and constant columns add nothing."""
    half_log = 0.5 * np.log(2.0 * np.pi)
    for i in range(x.shape[0]):
        y, w = labels[i], removed[i]
        for j in range(x.shape[1]):
            value = np.float64(x[i, j]) - column.center[j]
            if value != value:
                continue
            rest, all_mean, spread = _moments_without(column.weight[j], column.mean[j], column.scatter[j], value, w)
            spread = spread / rest if rest > 0.0 else 0.0
            if not spread > column.least[j]:
                continue
            own = by_class.weight[j, y]
            own_rest, own_mean, own_scatter = _moments_without(
                own, by_class.mean[j, y], by_class.scatter[j, y], value, w
            )
            degrees = column.degrees[j] - (own - rule.ddof if own > rule.ddof else 0.0)
            degrees += own_rest - rule.ddof if own_rest > rule.ddof else 0.0
            pooled = column.pooled[j] - by_class.scatter[j, y] + own_scatter
            pooled = pooled / degrees if degrees > 0.0 and pooled > 0.0 else 0.0
            for c in range(out.shape[2]):
                if c != y and by_class.variance[j, c] > rule.floor * spread:
                    away = value - by_class.mean[j, c]
                    out[i, slot[j], c] -= by_class.log_root[j, c] + away * away * by_class.half_precision[j, c]
                    continue
                n, m, s = by_class.weight[j, c], by_class.mean[j, c], by_class.scatter[j, c]
                if c == y:
                    n, m, s = own_rest, own_mean, own_scatter
                if n == 0.0:
                    m, variance = all_mean, spread + rule.var_smoothing * spread
                else:
                    variance = _variance(n, column.center[j] + m, s, pooled, spread, rule)
                out[i, slot[j], c] -= half_log + 0.5 * (np.log(variance) + (value - m) * (value - m) / variance)


class JointClasses(NamedTuple):
    """Scatter of all rows, and the estimation of covariances.

    The matrix of class c is (1 - mix) of its own covariance and `mix` of the pooled one. The former is shrunk toward
    its diagonal by shrinkage[c], the latter by shrinkage[-1].
    """

    weight: Array
    mean: Array  # class by column
    scatter: Array  # per class
    pooled: Array  # sum of the scatters
    mix: float
    shrinkage: Array
    degrees: float  # degrees of freedom of the pooled covariance
    ddof: float


# Rows whose matrices are factored together, in four registers.
FACTORED_ROWS = 4 * LANES

_PITCH = np.uint64(FACTORED_ROWS)
_SECOND = STEP
_THIRD = np.uint64(2 * LANES)
_FOURTH = np.uint64(3 * LANES)

# Pivots that are multiplied before their logarithm is taken: their product does not underflow.
MULTIPLIED_PIVOTS = 8


def count_slots(columns: int) -> int:
    """Return the slots of FACTORED_ROWS numbers that `score_cholesky` needs as scratch space."""
    return columns * (columns + 1) // 2 + 4 * columns + 7


@inner
def _factor(joint: JointClasses, c: int, size: int, room: Array) -> None:
    """Fill `room` with the Cholesky factor of the matrix of class c without each row, and half its log determinant.

    The slots are those of `score_cholesky`.
    """
    corner = np.uint64(size * (size + 1) // 2) * _PITCH
    away, inverse = corner, corner + np.uint64(2 * size) * _PITCH
    scaled, rest = corner + np.uint64(size) * _PITCH, corner + np.uint64(4 * size) * _PITCH
    log_root = rest + np.uint64(4) * _PITCH
    pivots = log_root + _PITCH
    for i in range(FACTORED_ROWS):
        room[log_root + np.uint64(i)], room[pivots + np.uint64(i)] = 0.0, 1.0
    row_a = np.uint64(0)
    for a in range(size):
        row_b = np.uint64(0)
        for b in range(a + 1):
            own = rest if a != b else rest + np.uint64(2) * _PITCH  # the factor of the scatter of the class
            pool = own + _PITCH
            p = plus_scaled(no_lanes(), joint.scatter[c, a, b], room, own)
            q = plus_scaled(no_lanes(), joint.scatter[c, a, b], room, own + _SECOND)
            r = plus_scaled(no_lanes(), joint.scatter[c, a, b], room, own + _THIRD)
            s = plus_scaled(no_lanes(), joint.scatter[c, a, b], room, own + _FOURTH)
            p = plus_scaled(p, joint.pooled[a, b], room, pool)
            q = plus_scaled(q, joint.pooled[a, b], room, pool + _SECOND)
            r = plus_scaled(r, joint.pooled[a, b], room, pool + _THIRD)
            s = plus_scaled(s, joint.pooled[a, b], room, pool + _FOURTH)
            u, v = (scaled if a != b else inverse) + np.uint64(a) * _PITCH, away + np.uint64(b) * _PITCH
            p = minus_product(p, room, u, v)
            q = minus_product(q, room, u + _SECOND, v + _SECOND)
            r = minus_product(r, room, u + _THIRD, v + _THIRD)
            s = minus_product(s, room, u + _FOURTH, v + _FOURTH)
            u, v = row_a, row_b
            for _ in range(b):
                p = minus_product(p, room, u, v)
                q = minus_product(q, room, u + _SECOND, v + _SECOND)
                r = minus_product(r, room, u + _THIRD, v + _THIRD)
                s = minus_product(s, room, u + _FOURTH, v + _FOURTH)
                u += _PITCH
                v += _PITCH
            if a != b:
                v = inverse + np.uint64(b) * _PITCH
                p, q = times_lanes(p, room, v), times_lanes(q, room, v + _SECOND)
                r, s = times_lanes(r, room, v + _THIRD), times_lanes(s, room, v + _FOURTH)
            put_lanes(p, room, u)
            put_lanes(q, room, u + _SECOND)
            put_lanes(r, room, u + _THIRD)
            put_lanes(s, room, u + _FOURTH)
            row_b += np.uint64(b + 1) * _PITCH
        end, own = row_a + np.uint64(a) * _PITCH, inverse + np.uint64(a) * _PITCH
        for k in range(FACTORED_ROWS):
            lane = np.uint64(k)
            room[own + lane] = 1.0 / np.sqrt(room[end + lane])
            room[pivots + lane] *= room[end + lane]
            if a % MULTIPLIED_PIVOTS == MULTIPLIED_PIVOTS - 1 or a == size - 1:
                room[log_root + lane] += 0.5 * np.log(room[pivots + lane])
                room[pivots + lane] = 1.0
        row_a += np.uint64(a + 1) * _PITCH


@inner
def _measure_distances(joint: JointClasses, c: int, y: int, size: int, room: Array) -> None:
    """Fill the last slot of `room` with minus the squared distances of rows of class y from the mean of class c."""
    corner = np.uint64(size * (size + 1) // 2) * _PITCH
    away, inverse, white = corner, corner + np.uint64(2 * size) * _PITCH, corner + np.uint64(3 * size) * _PITCH
    last = corner + np.uint64(4 * size + 6) * _PITCH
    for i in range(FACTORED_ROWS):
        room[last + np.uint64(i)] = 1.0
    d, e, f, g = no_lanes(), no_lanes(), no_lanes(), no_lanes()
    u = np.uint64(0)
    for a in range(size):
        here, shift = away + np.uint64(a) * _PITCH, joint.mean[y, a] - joint.mean[c, a]
        p = plus_scaled(plus_scaled(no_lanes(), 1.0, room, here), shift, room, last)
        q = plus_scaled(plus_scaled(no_lanes(), 1.0, room, here + _SECOND), shift, room, last)
        r = plus_scaled(plus_scaled(no_lanes(), 1.0, room, here + _THIRD), shift, room, last)
        s = plus_scaled(plus_scaled(no_lanes(), 1.0, room, here + _FOURTH), shift, room, last)
        v = white
        for _ in range(a):
            p = minus_product(p, room, u, v)
            q = minus_product(q, room, u + _SECOND, v + _SECOND)
            r = minus_product(r, room, u + _THIRD, v + _THIRD)
            s = minus_product(s, room, u + _FOURTH, v + _FOURTH)
            u += _PITCH
            v += _PITCH
        u += _PITCH
        root = inverse + np.uint64(a) * _PITCH
        put_lanes(times_lanes(p, room, root), room, v)
        put_lanes(times_lanes(q, room, root + _SECOND), room, v + _SECOND)
        put_lanes(times_lanes(r, room, root + _THIRD), room, v + _THIRD)
        put_lanes(times_lanes(s, room, root + _FOURTH), room, v + _FOURTH)
        d = minus_product(d, room, v, v)
        e = minus_product(e, room, v + _SECOND, v + _SECOND)
        f = minus_product(f, room, v + _THIRD, v + _THIRD)
        g = minus_product(g, room, v + _FOURTH, v + _FOURTH)
    put_lanes(d, room, last)
    put_lanes(e, room, last + _SECOND)
    put_lanes(f, room, last + _THIRD)
    put_lanes(g, room, last + _FOURTH)


@compile_kernel
def score_cholesky(
    x: Array,
    order: Array,
    labels: Array,
    removed: Array,
    joint: JointClasses,
    constant: float,
    with_all_rows: Array,
    room: Array,
    out: Array,
) -> None:
    """Add the log density of each row and class; `constant` is the part that does not depend on the matrix.

    order: the rows, sorted by class: rows of one class are factored together. with_all_rows: the densities with every
    row counted; if mix is 0, they hold for the classes a row is not in. room: scratch space of `count_slots` slots of
    FACTORED_ROWS numbers: the factor, row by row; the deviations of the rows from their mean; these times the factor of
    the product that is removed, off the diagonal, and on it (then: the inverse diagonal); the whitened deviations; the
    factors of the scatter of the class and of the pooled one, off the diagonal and on it; the half log determinants;
    the products of pivots; the squared distances.
    """
    size, classes, ddof = x.shape[1], joint.weight.size, joint.ddof
    corner = np.uint64(size * (size + 1) // 2) * _PITCH
    scaled, inverse = corner + np.uint64(size) * _PITCH, corner + np.uint64(2 * size) * _PITCH
    rest_slots, last = corner + np.uint64(4 * size) * _PITCH, corner + np.uint64(4 * size + 6) * _PITCH
    start = 0
    while start < order.size:
        y, count = labels[order[start]], 1
        while count < FACTORED_ROWS and start + count < order.size and labels[order[start + count]] == y:
            count += 1
        before = joint.weight[y]
        freedom = joint.degrees - (before - ddof if before > ddof else 0.0)
        factored = False
        for c in range(classes):
            if joint.mix == 0.0 and c != y:
                for k in range(count):
                    out[order[start + k], c] += with_all_rows[order[start + k], c]
                continue
            if joint.mix < 1.0 or not factored:
                for k in range(FACTORED_ROWS):
                    lane, i = np.uint64(k), order[start + (k if k < count else 0)]
                    rest = before - removed[i]
                    down = removed[i] * before / rest
                    divisor = (rest if c == y else joint.weight[c]) - ddof
                    own = (1.0 - joint.mix) / (divisor if divisor > 0.0 else 1e-300)
                    pool = joint.mix / (freedom + (rest - ddof if rest > ddof else 0.0))
                    keep, keep_pool = 1.0 - joint.shrinkage[c], 1.0 - joint.shrinkage[classes]
                    slot = rest_slots + lane
                    room[slot], room[slot + _PITCH] = own * keep, pool * keep_pool
                    room[slot + np.uint64(2) * _PITCH], room[slot + np.uint64(3) * _PITCH] = own, pool
                    gone = own if c == y else 0.0
                    for a in range(size):
                        here, away = np.uint64(a) * _PITCH + lane, x[i, a] - joint.mean[y, a]
                        room[corner + here] = away
                        room[scaled + here] = down * (gone * keep + pool * keep_pool) * away
                        room[inverse + here] = down * (gone + pool) * away
                _factor(joint, c, size, room)
                factored = True
            _measure_distances(joint, c, y, size, room)
            for k in range(count):
                i, lane = order[start + k], np.uint64(k)
                stretch = before / (before - removed[i]) if c == y else 1.0
                log_root = room[rest_slots + np.uint64(4) * _PITCH + lane]
                out[i, c] += constant - log_root + 0.5 * stretch * stretch * room[last + lane]
        start += count


@inner
def _lift_score(lift: float, linear: float) -> Any:
    """Return the score of a lift: its logarithm, or partly linear; see `families.text.kinds.lift_score`."""
    if linear == 1.0:
        return lift - 1.0
    return (1.0 - linear) * np.log(lift) + linear * (lift - 1.0)


@inner
def _positive(value: float) -> float:
    return value if value > 0.0 else 0.0


@inner
def _vanishes(total: float, amount: float, least: float) -> bool:
    """Return True if a word drops out of the vocabulary when this amount is removed."""
    left = total - amount
    return left <= 1e-10 * total or left < least


@compile_kernel
def score_shares(
    rows: SparseArrays, left: LeftOutTexts, table: ShareTable, rules: LeftOutRules, others: bool, fewer: Array,
    length: Array, part: Array,
) -> None:  # fmt: skip
    """Add amounts times log shares of words.

    Only the shares of the text's own class change. With `others`, those of all other classes change, and a class is
    scored by the shares in the others. fewer: scratch space, one number per class.
    """
    data, indices, indptr = rows
    labels, removed = left
    counts, total, slope, bottom = table
    alpha, least, normalize = rules
    classes = counts.shape[1]
    for i in range(indptr.size - 1):
        y, w = labels[i], removed[i]
        gone, whole, left_square = 0, 0.0, 0.0
        for c in range(classes):
            fewer[c] = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            j, x = indices[k], data[k]
            whole += x
            if w > 0.0 and _vanishes(total[j], w * x, least):
                gone += 1
                for c in range(classes):
                    fewer[c] += less(counts[j, c], w * x) if (c == y) != others else counts[j, c]
            else:
                length[i] += x
                left_square += x * x
        stretch = 1.0 / np.sqrt(left_square) if normalize and left_square > 0.0 else 1.0
        length[i] *= stretch
        for c in range(classes):
            changed = w > 0.0 and (c == y) != others
            rest = bottom[c] - alpha * gone - fewer[c] - (w * whole if changed else 0.0)
            log_rest = np.log(rest if rest > MIN_SHARE else MIN_SHARE)
            shift = np.log(bottom[c]) - log_rest
            score = 0.0
            for k in range(indptr[i], indptr[i + 1]):
                j, x = indices[k], data[k]
                if w > 0.0 and _vanishes(total[j], w * x, least):
                    continue
                if changed:
                    gain = np.log(less(counts[j, c], w * x) + alpha) - log_rest
                    score += x * share_term(gain, others)
                else:
                    score += x * (slope[j, c] - shift if others else slope[j, c] + shift)
            part[i, 0, c] += stretch * score


@compile_kernel
def score_presence(
    rows: SparseArrays, left: LeftOutTexts, table: PresenceTable, rules: LeftOutRules, without: AbsentWithout,
    length: Array, part: Array,
) -> None:  # fmt: skip
    """Add the evidence of the presence and absence of each word; `without` is scratch space."""
    _, indices, indptr = rows
    labels, removed = left
    counts, total, texts, absent = table
    alpha, least, _ = rules
    absent_without, last_removed = without
    words, classes = counts.shape
    for i in range(indptr.size - 1):
        y, w = labels[i], removed[i]
        if last_removed[y] != w:
            last_removed[y], absent_without[y] = w, 0.0
            for j in range(words):
                absent_without[y] += np.log(_positive(texts[y] - w - counts[j, y]) + alpha)
        for c in range(classes):
            off = w if c == y else 0.0
            all_texts = texts[c] - off
            score, known = absent_without[c] if c == y else absent[c], words
            for k in range(indptr[i], indptr[i + 1]):
                j = indices[k]
                score -= np.log(_positive(all_texts - counts[j, c]) + alpha)
                if w > 0.0 and _vanishes(total[j], w, least):
                    known -= 1
                else:
                    score += np.log(less(counts[j, c], off) + alpha)
            bottom = all_texts + 2.0 * alpha
            part[i, 0, c] += score - known * np.log(bottom if bottom > MIN_SHARE else MIN_SHARE)
            length[i] = known - (words - (indptr[i + 1] - indptr[i]))


@compile_kernel
def score_lifts(
    rows: SparseArrays, left: LeftOutTexts, table: LiftTable, rules: LeftOutRules, linear: float, rest: Array,
    length: Array, part: Array,
) -> None:  # fmt: skip
    """Add amounts times lifts; without a text, the counts of its words and the shares of all classes change.

    rest: scratch space, one number per class.
    """
    data, indices, indptr = rows
    labels, removed = left
    counts, total, sums, texts = table
    alpha, least, normalize = rules
    classes = counts.shape[1]
    for i in range(indptr.size - 1):
        y, w = labels[i], removed[i]
        for c in range(classes):
            rest[c] = sums[c]
        left_square = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            j, x = indices[k], data[k]
            rest[y] -= w * x
            if w > 0.0 and _vanishes(total[j], w * x, least):
                for c in range(classes):
                    rest[c] -= less(counts[j, c], w * x) if c == y else counts[j, c]
            else:
                length[i] += x
                left_square += x * x
        stretch = 1.0 / np.sqrt(left_square) if normalize and left_square > 0.0 else 1.0
        length[i] *= stretch
        every = 0.0
        for c in range(classes):
            rest[c] = rest[c] if rest[c] > ROUNDING_SHARE * sums[c] else 0.0
            every += rest[c]
        for c in range(classes):
            rest[c] = every / rest[c] if rest[c] > 0.0 else 0.0  # the inverse of its share
        mean_amount = (texts - w) / (every if every > MIN_SHARE else MIN_SHARE) if normalize else 1.0
        unit = alpha * mean_amount
        for k in range(indptr[i], indptr[i + 1]):
            j, x = indices[k], data[k]
            if w > 0.0 and _vanishes(total[j], w * x, least):
                continue
            bottom = total[j] - w * x + unit
            nothing = _lift_score(unit / bottom, linear)
            for c in range(classes):
                count = less(counts[j, c], w * x) if c == y else counts[j, c]
                score = _lift_score((count * rest[c] + unit) / bottom, linear) if count > 0.0 else nothing
                part[i, 0, c] += stretch * x * score
