"""Each training text scored by the words of all others; a word that no other text has is not in the vocabulary then.

These kernels add evidence to part[row, 0, class] and write `length`: the sum of the amounts of the words that are left
in each text.
"""

from typing import Any

import numpy as np

from deciban.kernels.compiled import Array, compiled, inner
from deciban.kernels.left_out import LEAST_SHARE, ROUNDING_SHARE, less, share_term
from deciban.kernels.text_arrays import (
    AbsentWithout,
    LeftOutRules,
    LeftOutTexts,
    LiftTable,
    PresenceTable,
    ShareTable,
)
from deciban.util.sparse import SparseArrays


@inner
def _lift_score(lift: float, linear: float) -> Any:
    """The score of a lift: its logarithm, or a share of it linearly; see `families.text.kinds.lift_score`."""
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
def left_out_shares(
    rows: SparseArrays, left: LeftOutTexts, table: ShareTable, rules: LeftOutRules, others: bool, fewer: Array,
    length: Array, part: Array,
) -> None:  # fmt: skip
    """Amounts times the logarithms of shares of words.

    Only the shares of the text's own class change; with `others` those of all classes but that one do, and a class is
    scored by what they lack. `fewer` is room for a number of each class.
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
    rows: SparseArrays, left: LeftOutTexts, table: PresenceTable, rules: LeftOutRules, without: AbsentWithout,
    length: Array, part: Array,
) -> None:  # fmt: skip
    """The presence and absence of each word; `without` is room that is filled here."""
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
            part[i, 0, c] += score - known * np.log(bottom if bottom > LEAST_SHARE else LEAST_SHARE)
            length[i] = known - (words - (indptr[i + 1] - indptr[i]))


@compiled
def left_out_lifts(
    rows: SparseArrays, left: LeftOutTexts, table: LiftTable, rules: LeftOutRules, linear: float, rest: Array,
    length: Array, part: Array,
) -> None:  # fmt: skip
    """Amounts times lifts: without a text the counts of its words and the shares of all classes are others.

    `rest` is room for a number of each class.
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
        mean_amount = (texts - w) / (every if every > LEAST_SHARE else LEAST_SHARE) if normalize else 1.0
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
