"""Words, numbered by a hash table.

A vocabulary is two arrays: `text` (the bytes of all words, one behind the other) and `starts` (where each begins, and
one more). It is searched by `entries` in open addressing: two numbers that are the key of a word, its own number and
its hash; or zeros. Hashes depend on `seeds`, which nobody outside the process knows: words cannot be chosen to collide.

Kernels allocate nothing. Where room is short they return False, and `state` says where to go on when there is more.
"""

from typing import Any

import numpy as np

from deciban.arrays import SPARE
from deciban.kernels.bits import eight_bytes, fetch, mixed, put_eight
from deciban.kernels.compiled import Array, compiled, inner

# Words of so many bytes or more are known by a hash; the others are their own keys.
LONG = 16

# So many words are looked up together: memory is asked for their entries before they are needed.
RUN = 512

# Places of `state`: the row and the word to go on with, how many words are known, how many numbers were written, and
# where the words of the row end (-1: it is not yet cut into words).
ROW, WORD, KNOWN, COUNT, CUT = 0, 1, 2, 3, 4
STATES = 5

_ONE = np.uint64(1)
_LONG_MARK = np.uint64(0xFF << 56)
# Of a number that is eight bytes of a text: so many of them.
MASKS = np.array([(1 << 8 * size) - 1 for size in range(9)], dtype=np.uint64)


@inner
def _key(text: Array, begin: int, size: int, seeds: Array) -> tuple[Any, Any]:
    """What a word is looked up by; `text` may be read for fifteen bytes behind its first one."""
    if size < LONG:
        first = eight_bytes(text, np.uint64(begin)) & MASKS[size if size < 8 else 8]
        more = eight_bytes(text, np.uint64(begin + 8)) & MASKS[size - 8 if size > 8 else 0]
        return first, more | np.uint64(size) << np.uint64(56)
    key = seeds[0]
    for place in range(begin, begin + size - 8, 8):
        key = mixed(key ^ eight_bytes(text, np.uint64(place)), seeds[1])
    key = mixed(key ^ eight_bytes(text, np.uint64(begin + size - 8)), seeds[2])
    return key, np.uint64(size) | _LONG_MARK


@inner
def _find(
    entries: Array, text: Array, starts: Array, of: Array, begin: int, size: int, first: int, more: int, slot: Any
) -> Any:
    """The slot of a word, whose bytes are in `of`, from a slot on; or the empty one that it may have."""
    mask = np.uint64(entries.shape[0] - 1)
    while True:
        if entries[slot, 0] == first and entries[slot, 1] == more:
            if size < LONG:
                return slot
            there, same = starts[entries[slot, 2]], 0
            while same < size and text[there + same] == of[begin + same]:
                same += 1
            if same == size:
                return slot
        elif entries[slot, 1] == 0:  # no word is empty
            return slot
        slot = (slot + _ONE) & mask


@inner
def _hashed_once(first: int, more: int, seeds: Array) -> Any:
    return mixed(first ^ seeds[3], more ^ seeds[4])


@inner
def _hashed(first: int, more: int, seeds: Array) -> Any:
    # Once is not enough: words that differ in a few bits are then too regular for some seeds.
    return mixed(_hashed_once(first, more, seeds), seeds[1])


@inner
def _bucket(text: Array, begin: int, size: int, buckets: int, seeds: Array) -> Any:
    """The bucket of a word, the same on every machine and in every model file."""
    first, more = _key(text, begin, size, seeds)
    return np.int64(_hashed_once(first, more, seeds) % np.uint64(buckets))


@compiled
def move_entries(entries: Array, found: Array) -> None:
    """Enter the same words among more entries, which are all empty."""
    mask = np.uint64(found.shape[0] - 1)
    for k in range(entries.shape[0]):
        if entries[k, 1] != 0:
            slot = entries[k, 3] & mask
            while found[slot, 1] != 0:
                slot = (slot + _ONE) & mask
            for j in range(4):
                found[slot, j] = entries[k, j]


@compiled
def index_words(text: Array, starts: Array, seeds: Array, hashes: Array, entries: Array) -> None:
    """Enter words that are all different; `text` has fifteen bytes more than they."""
    mask = np.uint64(entries.shape[0] - 1)
    for run in range(0, starts.size - 1, RUN):
        some = starts.size - 1 - run
        some = some if some < RUN else RUN
        for k in range(some):
            first, more = _key(text, starts[run + k], starts[run + k + 1] - starts[run + k], seeds)
            hashes[k, 0], hashes[k, 1], hashes[k, 2] = first, more, _hashed(first, more, seeds)
            fetch(entries, np.uint64(4) * (hashes[k, 2] & mask))
        for k in range(some):
            slot = hashes[k, 2] & mask
            while entries[slot, 1] != 0:
                slot = (slot + _ONE) & mask
            entries[slot, 0], entries[slot, 1], entries[slot, 3] = hashes[k, 0], hashes[k, 1], hashes[k, 2]
            entries[slot, 2] = np.uint64(run + k)


@compiled
def keep_words(
    scratch: Array,
    begins: Array,
    stops: Array,
    texts: Array,
    stop_entries: Array,
    stop_text: Array,
    stop_starts: Array,
    seeds: Array,
    out: Array,
    left: Array,
) -> None:
    """Copy words to `out` with one space between them, without stop words, and change begins and stops accordingly.

    left[row] becomes the number of the words that are left of the texts before it.
    """
    kept, at = 0, 0
    for row in range(texts.size - 1):
        for t in range(texts[row], texts[row + 1]):
            begin, size = begins[t], stops[t] - begins[t]
            if stop_starts.size > 1:
                first, more = _key(scratch, begin, size, seeds)
                slot = _hashed(first, more, seeds) & np.uint64(stop_entries.shape[0] - 1)
                slot = _find(stop_entries, stop_text, stop_starts, scratch, begin, size, first, more, slot)
                if stop_entries[slot, 1] != 0:
                    continue
            for b in range(size):
                out[at + b] = scratch[begin + b]
            out[at + size] = 32
            begins[kept], stops[kept] = at, at + size
            at += size + 1
            kept += 1
        left[row + 1] = kept


@compiled
def list_grams(
    begins: Array, stops: Array, groups: Array, texts: Array, least: int, most: int, whole: bool, bounds: Array,
    gram_begins: Array, gram_stops: Array,
) -> None:  # fmt: skip
    """Write where the n-grams (`least` to `most` units long) of each text begin and stop; those of text i at bounds[i].

    `whole`: of a group of units that is shorter than any n-gram all of it counts, once.
    """
    at = 0
    for row in range(texts.size - 1):
        for g in range(texts[row], texts[row + 1]):
            first, last = groups[g], groups[g + 1]
            for n in range(least, most + 1):
                for k in range(first, last - n + 1):
                    gram_begins[at], gram_stops[at] = begins[k], stops[k + n - 1]
                    at += 1
            if whole and first < last < first + least:
                gram_begins[at], gram_stops[at] = begins[first], stops[last - 1]
                at += 1
        bounds[row + 1] = at


@inner
def _copy_word(source: Array, begin: int, size: int, target: Array, at: int) -> None:
    """Copy a word, eight bytes at a time where nothing is in the way; some behind it are overwritten."""
    if begin + size + 8 <= source.size and at + size + 8 <= target.size:
        for k in range(0, size, 8):
            put_eight(target, np.uint64(at + k), eight_bytes(source, np.uint64(begin + k)))
    else:
        for k in range(size):
            target[at + k] = source[begin + k]


@inner
def _number_run(
    scratch: Array, begins: Array, stops: Array, run: int, last: int, seeds: Array, entries: Array, text: Array,
    starts: Array, growing: bool, tail: Array, tail_seeds: Array, hashes: Array, numbers: Array, state: Array,
) -> None:  # fmt: skip
    """Number words `run` to `last`, at most RUN of them. Memory is asked for all entries before the first is needed."""
    mask = np.uint64(entries.shape[0] - 1)
    known, at = state[KNOWN], np.uint64(state[COUNT])  # unsigned: an index is not asked whether it counts from the end
    for k in range(np.uint64(last - run)):
        begin = begins[np.uint64(run) + k]
        first, more = _key(scratch, begin, stops[np.uint64(run) + k] - begin, seeds)
        hashed = _hashed(first, more, seeds)
        hashes[k, 0], hashes[k, 1], hashes[k, 2] = first, more, hashed
        fetch(entries, np.uint64(4) * (hashed & mask))
    for k in range(np.uint64(last - run)):
        first, more, hashed = hashes[k, 0], hashes[k, 1], hashes[k, 2]
        slot = hashed & mask
        if entries[slot, 0] == first and entries[slot, 1] == more and more < _LONG_MARK:  # nearly always
            numbers[at] = np.int32(entries[slot, 2])
            at += _ONE
            continue
        begin = begins[np.uint64(run) + k]
        size = stops[np.uint64(run) + k] - begin
        slot = _find(entries, text, starts, scratch, begin, size, first, more, slot)
        if entries[slot, 1] != 0:
            numbers[at] = np.int32(entries[slot, 2])
            at += _ONE
        elif growing:
            _copy_word(scratch, begin, size, text, starts[known])
            starts[known + 1] = starts[known] + size
            entries[slot, 0], entries[slot, 1], entries[slot, 3] = first, more, hashed
            entries[slot, 2] = np.uint64(known)
            numbers[at] = known
            at += _ONE
            known += 1
        elif tail.size > 0:
            bucket = tail[_bucket(scratch, begin, size, tail.size, tail_seeds)]
            if bucket >= 0:
                numbers[at] = bucket
                at += _ONE
    state[KNOWN], state[COUNT] = known, np.int64(at)


@inner
def number_some(
    scratch: Array, begins: Array, stops: Array, words: int, seeds: Array, entries: Array, text: Array, starts: Array,
    growing: bool, tail: Array, tail_seeds: Array, hashes: Array, numbers: Array, state: Array,
) -> bool:  # fmt: skip
    """Number the words from state[WORD] to `words`; False where room is short."""
    while state[WORD] < words:
        run = state[WORD]
        last = run + RUN if run + RUN < words else words
        if state[COUNT] + last - run > numbers.size:
            return False
        if growing:
            known, size = state[KNOWN], 0
            for k in range(run, last):
                size += stops[k] - begins[k]
            many = 10 * (known + last - run) > 7 * entries.shape[0]  # frequent words come early and are found at once
            if many or known + last - run + 1 > starts.size or starts[known] + size + SPARE > text.size:
                return False
        _number_run(
            scratch, begins, stops, run, last, seeds, entries, text, starts, growing, tail, tail_seeds, hashes, numbers,
            state,
        )  # fmt: skip
        state[WORD] = last
    return True


@compiled
def number_words(
    texts: Array, scratch: Array, begins: Array, stops: Array, seeds: Array, entries: Array, text: Array, starts: Array,
    growing: bool, tail: Array, tail_seeds: Array, hashes: Array, numbers: Array, firsts: Array, state: Array,
) -> bool:  # fmt: skip
    """Write the numbers of the words of each text, and where those of each begin; False where room is short.

    The words of text i are those from texts[i] on. With `growing` new words are added to the vocabulary; without,
    words it does not know have the number that `tail` has for their hash, or are left out.
    """
    while state[ROW] < texts.size - 1:
        state[CUT] = texts[state[ROW] + 1]
        if not number_some(
            scratch, begins, stops, state[CUT], seeds, entries, text, starts, growing, tail, tail_seeds,
            hashes, numbers, state,
        ):  # fmt: skip
            return False
        state[ROW] += 1
        firsts[state[ROW]] = state[COUNT]
    return True


@compiled
def word_buckets(text: Array, starts: Array, buckets: int, seeds: Array, out: Array) -> None:
    """The bucket of each word; `text` has fifteen bytes more than they."""
    for k in range(starts.size - 1):
        out[k] = _bucket(text, starts[k], starts[k + 1] - starts[k], buckets, seeds)
