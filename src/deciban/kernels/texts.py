"""Texts in UTF-8, cut into words or characters."""

from typing import Any

import numpy as np

from deciban.kernels.bits import copy_block, letters, lowest
from deciban.kernels.compiled import Array, compiled
from deciban.kernels.word_counts import add_text, end_class
from deciban.kernels.words import RUN, longer, number_all

# Marks characters that are white space.
SPACE = 1 << 24

# Stands for bytes that are no character; it is none of a word.
BROKEN = 0xFFFD

# Bytes that one character may become, or that are copied at a time, and more.
ROOM = 128

_ONE, _ALL = np.uint64(1), ~np.uint64(0)


@compiled
def _decoded(data: Array, i: int, end: int) -> tuple[Any, int]:
    """The code point that begins at a byte, and its length; U+FFFD where none does."""
    at = np.uint64(i)  # unsigned: an index is not asked whether it counts from the end
    first = np.int64(data[at])
    if first < 0x80:
        return first, 1
    if 0xC2 <= first < 0xE0 and i + 1 < end:
        return (first & 0x1F) << 6 | np.int64(data[at + _ONE] & 0x3F), 2
    return _long_decoded(data, i, end)


@compiled
def _long_decoded(data: Array, i: int, end: int) -> tuple[Any, int]:
    """The same of three or four bytes."""
    first = np.int64(data[i])
    if 0xE0 <= first < 0xF0 and i + 2 < end:
        point = (first & 0x0F) << 12 | np.int64(data[i + 1] & 0x3F) << 6 | np.int64(data[i + 2] & 0x3F)
        return (point if point > 0 else BROKEN), 3
    if 0xF0 <= first < 0xF5 and i + 3 < end:
        low = np.int64(data[i + 2] & 0x3F) << 6 | np.int64(data[i + 3] & 0x3F)
        point = (first & 0x07) << 18 | np.int64(data[i + 1] & 0x3F) << 12 | low
        return (point if 0 < point < 0x110000 else BROKEN), 4
    return BROKEN, 1


@compiled
def written(scratch: Array, k: int, point: int) -> int:
    """Write a code point in UTF-8; the place behind it."""
    at = np.uint64(k)
    if point < 0x80:
        scratch[at] = point
        return k + 1
    if point < 0x800:
        scratch[at], scratch[at + _ONE] = 0xC0 | point >> 6, 0x80 | point & 0x3F
        return k + 2
    if point < 0x10000:
        scratch[k], scratch[k + 1], scratch[k + 2] = 0xE0 | point >> 12, 0x80 | (point >> 6) & 0x3F, 0x80 | point & 0x3F
        return k + 3
    scratch[k], scratch[k + 1] = 0xF0 | point >> 18, 0x80 | (point >> 12) & 0x3F
    scratch[k + 2], scratch[k + 3] = 0x80 | (point >> 6) & 0x3F, 0x80 | point & 0x3F
    return k + 4


@compiled
def _ascii_words(
    data: Array,
    i: int,
    end: int,
    lower: bool,
    shortest: int,
    scratch: Array,
    k: int,
    begins: Array,
    stops: Array,
    words: int,
) -> Any:
    """Copy a text to `scratch` and find where its words begin and stop there; their number, or -1 if not all is ASCII.

    Letters are found 64 at a time, as bits.
    """
    carry, at = np.uint64(0), 0
    begun, stopped, kept = np.uint64(words), np.uint64(words), np.uint64(words)
    while at < end - i:
        inside = _ALL if at + 64 <= end - i else (_ONE << np.uint64(end - i - at)) - _ONE
        if i + at + 64 <= data.size:
            beyond = copy_block(data, np.uint64(i + at), scratch, np.uint64(k + at), lower)
        else:
            for b in range(end - i - at):
                scratch[k + at + b] = data[i + at + b]
            beyond = copy_block(scratch, np.uint64(k + at), scratch, np.uint64(k + at), lower)
        if beyond & inside != 0:
            return -1
        here = letters(scratch, np.uint64(k + at)) & inside
        shifted = (here << _ONE) | carry
        carry = here >> np.uint64(63)
        edges = here & ~shifted
        while edges != 0:
            begins[begun] = k + at + np.int64(lowest(edges))
            begun += _ONE
            edges &= edges - _ONE
        edges = shifted & ~here
        while edges != 0:  # a word is kept by going on behind it
            begin, stop = begins[stopped], k + at + np.int64(lowest(edges))
            begins[kept], stops[kept] = begin, stop
            kept += np.uint64(stop - begin >= shortest)
            stopped += _ONE
            edges &= edges - _ONE
        at += 64
    if stopped < begun:
        begins[kept], stops[kept] = begins[stopped], k + end - i
        kept += np.uint64(stops[kept] - begins[kept] >= shortest)
    return np.int64(kept)


@compiled
def _unicode_run(
    data: Array, i: int, end: int, folded: Array, pool: Array, shortest: int, scratch: Array, k: int, begin: int,
    length: int, begins: Array, stops: Array, words: int,
) -> tuple[int, int, int, int, int]:  # fmt: skip
    """Write words to `scratch` up to the end, or as long as there is room; the place behind the end if that is reached.

    The word that was begun has `length` characters from `begin` on. It is apart from what makes room, because numba is
    slow where arrays may change.
    """
    while i <= end and k + ROOM <= scratch.size:
        point, step = _decoded(data, i, end) if i < end else (0, 1)
        becomes = folded[np.uint64(point)]
        i += step
        if becomes > 0:
            k = written(scratch, k, becomes)
            length += 1
            continue
        for part in range(1 if becomes == 0 else pool[-becomes]):  # several characters, of which some may be no letters
            one = 0 if becomes == 0 else pool[1 - becomes + part]
            if one > 0:
                k = written(scratch, k, one)
                length += 1
                continue
            if length >= shortest:
                begins[words], stops[words] = begin, k
                words += 1
                begin = k
            k = begin
            length = 0
    return i, k, begin, length, words


@compiled
def _unicode_words(
    data: Array, i: int, end: int, folded: Array, pool: Array, shortest: int, scratch: Array, k: int, begins: Array,
    stops: Array, words: int,
) -> tuple[int, int, Array]:  # fmt: skip
    """Write the words of a text to `scratch`: their number, where it is free, and scratch, which may have grown."""
    begin: Any = k
    length: Any = np.int64(0)  # not literally 0, for which all would be compiled once more
    while True:
        i, k, begin, length, words = _unicode_run(
            data, i, end, folded, pool, shortest, scratch, k, begin, length, begins, stops, words
        )
        if i > end:
            return words, k, scratch
        scratch = longer(scratch, k, k + end - i + ROOM)


@compiled
def _words_of(
    data: Array, i: int, end: int, folded: Array, pool: Array, lower: bool, shortest: int, scratch: Array, k: int,
    begins: Array, stops: Array, words: int,
) -> tuple[int, int, Array, Array, Array]:  # fmt: skip
    """Write the words of a text to `scratch`, behind others: their number, where it is free, and the arrays."""
    if scratch.size < k + end - i + ROOM:
        scratch = longer(scratch, k, k + end - i + ROOM)
    if begins.size < words + (end - i) // 2 + 8:
        begins = longer(begins, words, words + (end - i) // 2 + 8)
        stops = longer(stops, words, words + (end - i) // 2 + 8)
    found = _ascii_words(data, i, end, lower, shortest, scratch, k, begins, stops, words)
    if found >= 0:
        return found, k + end - i, scratch, begins, stops
    if begins.size < words + 2 * (end - i) + 8:
        begins = longer(begins, words, words + 2 * (end - i) + 8)
        stops = longer(stops, words, words + 2 * (end - i) + 8)
    words, k, scratch = _unicode_words(data, i, end, folded, pool, shortest, scratch, k, begins, stops, words)
    return words, k, scratch, begins, stops


@compiled
def find_words(
    data: Array, offsets: Array, present: Array, folded: Array, pool: Array, lower: bool, shortest: int
) -> tuple[Array, Array, Array, Array]:
    """The words of texts, each character as `folded` has it: their bytes, where they begin and stop, where texts do.

    A character becomes folded[c], none of a word if that is 0; if it is negative, several, which `pool` has.
    """
    rows = offsets.size - 1
    total = offsets[rows] - offsets[0]
    scratch = np.empty(total + ROOM, dtype=np.uint8)
    begins, stops = np.empty(total // 4 + 64, dtype=np.int64), np.empty(total // 4 + 64, dtype=np.int64)
    texts = np.zeros(rows + 1, dtype=np.int64)
    words: Any = np.int64(0)
    k: Any = np.int64(0)
    for row in range(rows):
        if present[row]:
            words, k, scratch, begins, stops = _words_of(
                data, offsets[row], offsets[row + 1], folded, pool, lower, shortest, scratch, k, begins, stops, words
            )
        texts[row + 1] = words
    return scratch, begins, stops, texts


@compiled
def number_texts(
    data: Array, offsets: Array, present: Array, folded: Array, pool: Array, lower: bool, shortest: int, seeds: Array,
    entries: Array, text: Array, starts: Array, known: int, growing: bool, tail: Array, tail_seeds: Array,
) -> tuple[Array, Array, Array, Array, Array, int]:  # fmt: skip
    """What `number_words` returns for the words that `find_words` finds, text by text: all stays in the cache."""
    rows = offsets.size - 1
    scratch = np.empty(1 << 13, dtype=np.uint8)
    begins, stops = np.empty(1 << 11, dtype=np.int64), np.empty(1 << 11, dtype=np.int64)
    hashes = np.empty((RUN, 3), dtype=np.uint64)
    numbers = np.empty((offsets[rows] - offsets[0]) // 5 + 64, dtype=np.int32)
    firsts = np.zeros(rows + 1, dtype=np.int64)
    none: Any = np.int64(0)  # not literally 0, for which all would be compiled once more
    count: Any = none
    for row in range(rows):
        if present[row]:
            words, _, scratch, begins, stops = _words_of(
                data, offsets[row], offsets[row + 1], folded, pool, lower, shortest, scratch, none, begins, stops, none
            )
            numbers, count, entries, text, starts, known = number_all(
                scratch, begins, stops, none, words, none, seeds, entries, text, starts, known, growing, tail,
                tail_seeds, hashes, numbers, count,
            )  # fmt: skip
        firsts[row + 1] = count
    return numbers[:count], firsts, entries, text, starts, known


@compiled
def count_texts(
    data: Array, offsets: Array, present: Array, folded: Array, pool: Array, lower: bool, shortest: int, order: Array,
    labels: Array, weights: Array, classes: int, seeds: Array, entries: Array, text: Array, starts: Array, known: int,
) -> tuple[Array, Array, Array, Array, Array, Array, int]:  # fmt: skip
    """What `count_words` returns for the words of texts, and their vocabulary: the numbers of one text are enough."""
    scratch = np.empty(1 << 13, dtype=np.uint8)
    begins, stops = np.empty(1 << 11, dtype=np.int64), np.empty(1 << 11, dtype=np.int64)
    hashes = np.empty((RUN, 3), dtype=np.uint64)
    numbers, no_tail = np.empty(1 << 11, dtype=np.int32), np.empty(0, dtype=np.int32)
    tally, touched = np.zeros(1 << 11), np.empty(1 << 11, dtype=np.int32)
    listed, counts = np.empty(starts.size, dtype=np.int32), np.empty(starts.size)
    ends = np.zeros(classes + 1, dtype=np.int64)
    none: Any = np.int64(0)  # not literally 0, for which all would be compiled once more
    new, found = none, none
    for k in range(order.size):
        row = order[k]
        if present[row]:
            words, _, scratch, begins, stops = _words_of(
                data, offsets[row], offsets[row + 1], folded, pool, lower, shortest, scratch, none, begins, stops, none
            )
            numbers, count, entries, text, starts, known = number_all(
                scratch, begins, stops, none, words, none, seeds, entries, text, starts, known, True, no_tail, seeds,
                hashes, numbers, none,
            )  # fmt: skip
            if known >= tally.size:
                before = tally.size
                tally, touched = longer(tally, before, known + 1), longer(touched, new, known + 1)
                tally[before:] = 0.0
            new = add_text(numbers, None, none, count, weights[row], tally, touched, new)
        if k + 1 == order.size or labels[order[k + 1]] != labels[row]:
            listed, counts, found = end_class(tally, touched, new, listed, counts, found)
            new = none
            ends[labels[row] + 1 :] = found
    return listed[:found], counts[:found], ends, entries, text, starts, known


@compiled
def find_characters(
    data: Array, offsets: Array, present: Array, folded: Array, pool: Array, in_words: bool
) -> tuple[Array, Array, Array, Array, Array]:
    """The characters of texts: their bytes, where they begin and stop, where groups do, and the groups of each text.

    N-grams do not leave a group: a text or, in words, a word with a space before and behind it. Of several white spaces
    one space is left. White space is marked by SPACE in `folded`.
    """
    rows = offsets.size - 1
    total = offsets[rows] - offsets[0]
    scratch = np.empty(total + 128, dtype=np.uint8)
    begins, stops = np.empty(total + 64, dtype=np.int64), np.empty(total + 64, dtype=np.int64)
    groups = np.zeros(rows + 64, dtype=np.int64)
    texts = np.zeros(rows + 1, dtype=np.int64)
    k, count, group = 0, 0, 0
    for row in range(rows):
        i, end = offsets[row], offsets[row + 1]
        blanks, last_blank = 0, 32  # white spaces that were read and not yet written, and the last of them
        while present[row]:
            point, step, several = 0, 1, 1
            if i < end:
                point, step = _decoded(data, i, end)
                point = folded[point]
                several = pool[-point] if point < 0 else 1
            if scratch.size < k + 8 * several + 64:
                scratch = longer(scratch, k, k + end - i + 8 * several + 64)
            if begins.size < count + several + 8:
                begins = longer(begins, count, count + several + 8)
                stops = longer(stops, count, count + several + 8)
            if groups.size < group + several + 4:
                groups = longer(groups, group + 1, group + several + 4)
            for part in range(several):
                one = pool[1 - point + part] if point < 0 else point
                if i < end and one >= SPACE:
                    blanks += 1
                    last_blank = one - SPACE
                    continue
                ended = in_words and (blanks > 0 or i >= end) and groups[group] < count
                if ended or (blanks > 0 and not in_words):
                    begins[count] = k
                    k = written(scratch, k, last_blank if blanks == 1 and not in_words else 32)
                    stops[count] = k
                    count += 1
                if ended:
                    group += 1
                    groups[group] = count
                blanks = 0
                if i < end:
                    if in_words and groups[group] == count:
                        begins[count] = k
                        k = written(scratch, k, 32)
                        stops[count] = k
                        count += 1
                    begins[count] = k
                    k = written(scratch, k, one)
                    stops[count] = k
                    count += 1
            if i >= end:
                break
            i += step
        if not in_words:
            group += 1
            groups[group] = count
        texts[row + 1] = group
    return scratch, begins, stops, groups, texts
