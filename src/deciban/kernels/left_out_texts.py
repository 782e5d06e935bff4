"""Scoring each training text by the words of all others.

`removed[i]` is the weight of text i that was counted and is left out; 0 scores the text as it is. A word that no other
text has is not in the vocabulary then.
"""

from typing import Any

import numpy as np

from deciban.kernels.compiled import Array, compiled, inner
from deciban.kernels.left_out import LEAST_SHARE, ROUNDING_SHARE, less, share_term


@inner
def _lift_score(lift: float, linear: float) -> Any:
    """What a lift says: its logarithm, or a part of it linearly; see `families.text.kinds`."""
    if linear == 1.0:
        return lift - 1.0
    return (1.0 - linear) * np.log(lift) + linear * (lift - 1.0)


@inner
def _positive(value: float) -> float:
    return value if value > 0.0 else 0.0


@inner
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
    removed: Array,
    counts: Array,
    total: Array,
    alpha: float,
    least: float,
    others: bool,
    normed: bool,
    slope: Array,
    bottom: Array,
    fewer: Array,
    length: Array,
    part: Array,
) -> None:
    """`left_out_linear` for a vocabulary that grows with the texts: a word that no other text has is not in it.

    `bottom` are the sums of the smoothed counts, `total` is what the counts of each word were in all classes; words
    below `least` are left out. With `normed` the amounts of the words that are left have length 1. Writes `length`, the
    amounts that are left, too. `fewer` is room for a number of each class.
    """
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
        stretch = 1.0 / np.sqrt(left_square) if normed and left_square > 0.0 else 1.0
        length[i] *= stretch
        for c in range(classes):
            changed = w > 0.0 and (c == y) != others
            rest = bottom[c] - alpha * gone - fewer[c] - (w * whole if changed else 0.0)
            log_rest = np.log(rest if rest > LEAST_SHARE else LEAST_SHARE)
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


@compiled
def left_out_presence(
    data: Array,
    indices: Array,
    indptr: Array,
    labels: Array,
    removed: Array,
    counts: Array,
    texts: Array,
    total: Array,
    alpha: float,
    least: float,
    absent: Array,
    without: Array,
    weight: Array,
    length: Array,
    part: Array,
) -> None:
    """The same for words that are there or not: `counts` are texts that have a word, `texts` all of a class.

    absent: the sum over words of log(texts without the word + alpha). without: room for the same without one text of
    the class, of the weight that was taken last, which is `weight` (negative: none was).
    """
    words, classes = counts.shape
    for i in range(indptr.size - 1):
        y, w = labels[i], removed[i]
        if weight[y] != w:
            weight[y], without[y] = w, 0.0
            for j in range(words):
                without[y] += np.log(_positive(texts[y] - w - counts[j, y]) + alpha)
        for c in range(classes):
            off = w if c == y else 0.0
            rows = texts[c] - off
            score, left = without[c] if c == y else absent[c], words
            for k in range(indptr[i], indptr[i + 1]):
                j = indices[k]
                score -= np.log(_positive(rows - counts[j, c]) + alpha)
                if w > 0.0 and _vanishes(total[j], w, least):
                    left -= 1
                else:
                    score += np.log(less(counts[j, c], off) + alpha)
            bottom = rows + 2.0 * alpha
            part[i, 0, c] += score - left * np.log(bottom if bottom > LEAST_SHARE else LEAST_SHARE)
            length[i] = left - (words - (indptr[i + 1] - indptr[i]))


@compiled
def left_out_lifts(
    data: Array,
    indices: Array,
    indptr: Array,
    labels: Array,
    removed: Array,
    counts: Array,
    sums: Array,
    texts: float,
    total: Array,
    alpha: float,
    least: float,
    normed: bool,
    linear: float,
    rest: Array,
    length: Array,
    part: Array,
) -> None:
    """`left_out_words` for lifts: without a text the counts of its words and the shares of all classes are others."""
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
        stretch = 1.0 / np.sqrt(left_square) if normed and left_square > 0.0 else 1.0
        length[i] *= stretch
        every = 0.0
        for c in range(classes):
            rest[c] = rest[c] if rest[c] > ROUNDING_SHARE * sums[c] else 0.0
            every += rest[c]
        for c in range(classes):
            rest[c] = every / rest[c] if rest[c] > 0.0 else 0.0  # the inverse of its share
        unit = alpha * ((texts - w) / (every if every > LEAST_SHARE else LEAST_SHARE) if normed else 1.0)
        for k in range(indptr[i], indptr[i + 1]):
            j, x = indices[k], data[k]
            if w > 0.0 and _vanishes(total[j], w * x, least):
                continue
            left = total[j] - w * x + unit
            nothing = _lift_score(unit / left, linear)
            for c in range(classes):
                count = less(counts[j, c], w * x) if c == y else counts[j, c]
                said = _lift_score((count * rest[c] + unit) / left, linear) if count > 0.0 else nothing
                part[i, 0, c] += stretch * x * said
