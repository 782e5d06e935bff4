"""Splitting of UTF-8 texts into words or characters."""

from typing import Any

import numpy as np

from deciban.kernels.compiled import Array, compile_kernel, inner
from deciban.kernels.instructions import copy_block, letters, lowest
from deciban.kernels.text_arrays import CharacterRules, Numbering, Texts, UnknownWords, WordIndex, WordRules, WordSpans
from deciban.kernels.word_index import COUNT, ROW, ROW_END, WORD, number_some

# Flag of white space characters.
SPACE = 1 << 24

# Replacement for invalid bytes; it is never part of a word.
BROKEN = 0xFFFD

# Spare bytes: more than one character may become, or than are copied at a time.
ROOM = 128

# Maximum number of words that one character may become.
MAX_WORDS_OF_ONE = 32

_ONE = np.uint64(1)
_ALL = ~np.uint64(0)


@inner
def _decode(data: Array, i: int, end: int) -> tuple[Any, int]:
    """Return the code point at a byte, and its length; U+FFFD for invalid bytes."""
    at = np.uint64(i)  # unsigned, so that numba does not check for negative indices
    first = np.int64(data[at])
    if first < 0x80:
        return first, 1
    if 0xC2 <= first < 0xE0 and i + 1 < end:
        return (first & 0x1F) << 6 | np.int64(data[at + _ONE] & 0x3F), 2
    return _decode_long(data, i, end)


@inner
def _decode_long(data: Array, i: int, end: int) -> tuple[Any, int]:
    """Return the code point of three or four bytes, and its length."""
    first = np.int64(data[i])
    if 0xE0 <= first < 0xF0 and i + 2 < end:
        point = (first & 0x0F) << 12 | np.int64(data[i + 1] & 0x3F) << 6 | np.int64(data[i + 2] & 0x3F)
        return (point if point > 0 else BROKEN), 3
    if 0xF0 <= first < 0xF5 and i + 3 < end:
        low = np.int64(data[i + 2] & 0x3F) << 6 | np.int64(data[i + 3] & 0x3F)
        point = (first & 0x07) << 18 | np.int64(data[i + 1] & 0x3F) << 12 | low
        return (point if 0 < point < 0x110000 else BROKEN), 4
    return BROKEN, 1


@inner
def put_character(scratch: Array, k: int, point: int) -> int:
    """Write a code point in UTF-8; return the next position."""
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


@inner
def _ascii_words(data: Array, i: int, end: int, rules: WordRules, spans: WordSpans, k: int, words: int) -> Any:
    """Copy a text and find its words; return the total number of words, or -1 if the text is not all ASCII.

    The copy begins at byte `k` of `spans`, after the existing words. Letters are found 64 at a time, as bits.
    """
    scratch, begins, stops = spans
    _, _, lower, min_word_length = rules
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
        while edges != 0:  # a word is kept by moving past it
            begin, stop = begins[stopped], k + at + np.int64(lowest(edges))
            begins[kept], stops[kept] = begin, stop
            kept += np.uint64(stop - begin >= min_word_length)
            stopped += _ONE
            edges &= edges - _ONE
        at += 64
    if stopped < begun:
        begins[kept], stops[kept] = begins[stopped], k + end - i
        kept += np.uint64(stops[kept] - begins[kept] >= min_word_length)
    return np.int64(kept)


@inner
def _unicode_words(data: Array, i: int, end: int, rules: WordRules, spans: WordSpans, k: int, words: int) -> Any:
    """Copy any text and find its words; return -1 if there is not enough space.

    A character becomes folded[c]. If that is 0, it is not part of a word; if it is negative, it becomes several, stored
    in `pool`.
    """
    scratch, begins, stops = spans
    folded, pool, _, min_word_length = rules
    begin, length = k, 0
    while i <= end:
        if k + ROOM > scratch.size or words + MAX_WORDS_OF_ONE > begins.size:
            return -1
        point, step = _decode(data, i, end) if i < end else (0, 1)
        becomes = folded[np.uint64(point)]
        i += step
        if becomes > 0:
            k = put_character(scratch, k, becomes)
            length += 1
            continue
        for part in range(
            1 if becomes == 0 else pool[-becomes]
        ):  # several characters, some of which may not be letters
            one = 0 if becomes == 0 else pool[1 - becomes + part]
            if one > 0:
                k = put_character(scratch, k, one)
                length += 1
                continue
            if length >= min_word_length:
                begins[words], stops[words] = begin, k
                words += 1
                begin = k
            k = begin
            length = 0
    return words


@inner
def _words_of(data: Array, i: int, end: int, rules: WordRules, spans: WordSpans, k: int, words: int) -> Any:
    """Write the words of a text after the existing ones; return the total number, or -1 without enough space."""
    if spans.text.size < k + end - i + ROOM or spans.begins.size < words + (end - i) // 2 + 8:
        return -1
    found = _ascii_words(data, i, end, rules, spans, k, words)
    return found if found >= 0 else _unicode_words(data, i, end, rules, spans, k, words)


@compile_kernel
def find_words(texts: Texts, rules: WordRules, spans: WordSpans, bounds: Array, state: Array) -> bool:
    """Write the words of texts, their spans, and the start of each text; return False without enough space."""
    data, offsets, present = texts
    while state[ROW] < offsets.size - 1:
        row, words = state[ROW], state[WORD]
        if present[row]:
            at = spans.stops[words - 1] if words > 0 else words
            words = _words_of(data, offsets[row], offsets[row + 1], rules, spans, at, words)
            if words < 0:
                return False
        state[ROW], state[WORD] = row + 1, words
        bounds[row + 1] = words
    return True


@compile_kernel
def number_texts(
    texts: Texts, rules: WordRules, spans: WordSpans, seeds: Array, index: WordIndex, growing: bool,
    unknown: UnknownWords, out: Numbering,
) -> bool:  # fmt: skip
    """Assign numbers to the words of texts, text by text, so that all data stays in the cache."""
    none: Any = np.int64(0)  # not a literal 0, for which numba would compile everything again
    data, offsets, present = texts
    _, bounds, state, _ = out
    while state[ROW] < offsets.size - 1:
        row = state[ROW]
        if present[row]:
            if state[ROW_END] < 0:
                state[ROW_END] = _words_of(data, offsets[row], offsets[row + 1], rules, spans, none, none)
            if state[ROW_END] < 0 or not number_some(spans, state[ROW_END], seeds, index, growing, unknown, out):
                return False
        state[ROW], state[WORD], state[ROW_END] = row + 1, 0, -1
        bounds[row + 1] = state[COUNT]
    return True


@inner
def _put_next(spans: WordSpans, count: int, k: int, point: int) -> int:
    """Write a character after `count` others; return the next position."""
    spans.begins[count] = k
    k = put_character(spans.text, k, point)
    spans.stops[count] = k
    return k


@compile_kernel
def find_characters(
    texts: Texts, rules: CharacterRules, spans: WordSpans, groups: Array, bounds: Array, state: Array
) -> bool:
    """Write the characters of texts, their spans, the groups, and the groups of each text.

    N-grams do not cross groups. A group is a text or, within words, a word with a space before and after it. Runs of
    white space become one space. White space is marked by SPACE in `folded`. Return False without enough space: `state`
    then has the row to continue with, and the characters, bytes and groups before it.
    """
    data, offsets, present = texts
    folded, pool, in_words = rules
    for row in range(state[0], offsets.size - 1):
        count, k, group = state[1], state[2], state[3]
        i, end = offsets[row], offsets[row + 1]
        blanks, last_blank = 0, 32  # white spaces read but not yet written, and the last of them
        while present[row]:
            point, step, several = 0, 1, 1
            if i < end:
                point, step = _decode(data, i, end)
                point = folded[point]
                several = pool[-point] if point < 0 else 1
            if spans.text.size < k + 8 * several + 64 or spans.begins.size < count + 3 * several + 8:
                return False
            if groups.size < group + several + 4:
                return False
            for part in range(several):
                one = pool[1 - point + part] if point < 0 else point
                if i < end and one >= SPACE:
                    blanks += 1
                    last_blank = one - SPACE
                    continue
                ended = in_words and (blanks > 0 or i >= end) and groups[group] < count
                if ended or (blanks > 0 and not in_words):
                    k = _put_next(spans, count, k, last_blank if blanks == 1 and not in_words else 32)
                    count += 1
                if ended:
                    group += 1
                    groups[group] = count
                blanks = 0
                if i < end:
                    if in_words and groups[group] == count:
                        k = _put_next(spans, count, k, 32)
                        count += 1
                    k = _put_next(spans, count, k, one)
                    count += 1
            if i >= end:
                break
            i += step
        if not in_words:
            group += 1
            groups[group] = count
        bounds[row + 1] = group
        state[0], state[1], state[2], state[3] = row + 1, count, k, group
    return True
