"""Words, numbered by a hash table.

A vocabulary is two arrays: `text` (the bytes of all words, one behind the other) and `starts` (where each begins, and
one more). It is searched by `entries` in open addressing: two numbers that are the key of a word, its own number and
its hash; or zeros. Hashes depend on `seeds`, which nobody outside the process knows: words cannot be chosen to collide.
"""

from typing import Any

import numpy as np

from deciban.arrays import SPARE
from deciban.kernels.bits import eight_bytes, fetch, mixed, put_eight, same_bytes
from deciban.kernels.compiled import Array, compiled

# Words of so many bytes or more are known by a hash; the others are their own keys.
LONG = 16

# So many words are looked up together: memory is asked for their entries before they are needed.
RUN = 512

_ONE = np.uint64(1)
_LONG_MARK = np.uint64(0xFF << 56)
# Of a number that is eight bytes of a text: so many of them.
MASKS = np.array([(1 << 8 * size) - 1 for size in range(9)], dtype=np.uint64)


@compiled
def _key(text: Array, begin: int, size: int, seeds: Array) -> tuple[Any, Any]:
    """What a word is looked up by; `text` may be read for fifteen bytes behind its first one."""
    if size < LONG:
        first = eight_bytes(text, np.uint64(begin)) & MASKS[min(size, 8)]
        more = eight_bytes(text, np.uint64(begin + 8)) & MASKS[max(size - 8, 0)]
        return first, more | np.uint64(size) << np.uint64(56)
    key = seeds[0]
    for place in range(begin, begin + size - 8, 8):
        key = mixed(key ^ eight_bytes(text, np.uint64(place)), seeds[1])
    key = mixed(key ^ eight_bytes(text, np.uint64(begin + size - 8)), seeds[2])
    return key, np.uint64(size) | _LONG_MARK


@compiled
def _find(
    entries: Array, text: Array, starts: Array, of: Array, begin: int, size: int, first: int, more: int, slot: Any
) -> Any:
    """The slot of a word, whose bytes are in `of`, from a slot on; or the empty one that it may have."""
    mask = np.uint64(entries.shape[0] - 1)
    while True:
        if entries[slot, 0] == first and entries[slot, 1] == more:
            if size < LONG:
                return slot
            if same_bytes(text, starts[entries[slot, 2]], of, begin, size):
                return slot
        elif entries[slot, 1] == 0:  # no word is empty
            return slot
        slot = (slot + _ONE) & mask


@compiled
def _hashed_once(first: int, more: int, seeds: Array) -> Any:
    return mixed(first ^ seeds[3], more ^ seeds[4])


@compiled
def _hashed(first: int, more: int, seeds: Array) -> Any:
    # Once is not enough: words that differ in a few bits are then too regular for some seeds.
    return mixed(_hashed_once(first, more, seeds), seeds[1])


@compiled
def _enter(entries: Array, slot: int, first: int, more: int, number: int, hashed: int) -> None:
    entries[slot, 0], entries[slot, 1], entries[slot, 2], entries[slot, 3] = first, more, np.uint64(number), hashed


@compiled
def _more_entries(entries: Array, size: int) -> Array:
    """The same words among so many entries."""
    found = np.zeros((size, 4), dtype=np.uint64)
    mask = np.uint64(size - 1)
    for k in range(entries.shape[0]):
        if entries[k, 1] != 0:
            slot = entries[k, 3] & mask
            while found[slot, 1] != 0:
                slot = (slot + _ONE) & mask
            for j in range(4):
                found[slot, j] = entries[k, j]
    return found


@compiled
def _is_full(entries: int, words: int) -> bool:
    """Whether so many words need more entries. Frequent words come early and are found at once in any case."""
    return 10 * words > 7 * entries


@compiled
def index_words(text: Array, starts: Array, seeds: Array) -> Array:
    """The entries of words that are all different; `text` has fifteen bytes more than they."""
    count = starts.size - 1
    size = 16
    while _is_full(size, count):
        size *= 2
    entries = np.zeros((size, 4), dtype=np.uint64)
    mask = np.uint64(size - 1)
    hashes = np.empty((RUN, 3), dtype=np.uint64)
    for run in range(0, count, RUN):
        some = min(RUN, count - run)
        for k in range(some):
            first, more = _key(text, starts[run + k], starts[run + k + 1] - starts[run + k], seeds)
            hashes[k, 0], hashes[k, 1], hashes[k, 2] = first, more, _hashed(first, more, seeds)
            fetch(entries, np.uint64(4) * (hashes[k, 2] & mask))
        for k in range(some):
            slot = hashes[k, 2] & mask
            while entries[slot, 1] != 0:
                slot = (slot + _ONE) & mask
            _enter(entries, slot, hashes[k, 0], hashes[k, 1], run + k, hashes[k, 2])
    return entries


@compiled
def longer(array: Array, used: int, least: int) -> Array:
    """The same array with room for more."""
    longer = np.empty(max(2 * array.size, least), dtype=array.dtype)
    for k in range(used):
        longer[k] = array[k]
    return longer


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
) -> tuple[Array, Array]:
    """Copy words with one space between them, without stop words, and change begins and stops accordingly."""
    kept, at = 0, 0
    size = SPARE
    for t in range(texts[-1]):
        size += stops[t] - begins[t] + 1
    out = np.empty(size, dtype=np.uint8)
    left = np.zeros_like(texts)
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
    return out, left


@compiled
def _copy_word(source: Array, begin: int, size: int, target: Array, at: int) -> None:
    """Copy a word, eight bytes at a time where nothing is in the way; some behind it are overwritten."""
    if begin + size + 8 <= source.size and at + size + 8 <= target.size:
        for k in range(0, size, 8):
            put_eight(target, np.uint64(at + k), eight_bytes(source, np.uint64(begin + k)))
    else:
        for k in range(size):
            target[at + k] = source[begin + k]


@compiled
def _room_for(
    entries: Array, text: Array, starts: Array, known: int, words: int, size: int
) -> tuple[Array, Array, Array]:
    """The arrays of a vocabulary with room for so many more words of so many bytes."""
    if starts[known] + size + SPARE > text.size:
        text = longer(text, starts[known], starts[known] + size + SPARE)
    if known + words + 1 > starts.size:
        starts = longer(starts, known + 1, known + words + 1)
    if _is_full(entries.shape[0], known + words):
        entries = _more_entries(entries, 2 * entries.shape[0])
    return entries, text, starts


@compiled
def _number_run(
    scratch: Array, begins: Array, stops: Array, run: int, last: int, behind: int, seeds: Array, entries: Array,
    text: Array, starts: Array, known: int, growing: bool, tail: Array, tail_seeds: Array, hashes: Array,
    numbers: Array, count: int,
) -> tuple[Any, int]:  # fmt: skip
    """Number the words that begin with the units from `run` on and have `behind` more; how many numbers and words.

    Memory is asked for all their entries before the first is needed. There must be room for those that are new.
    """
    mask = np.uint64(entries.shape[0] - 1)
    at = np.uint64(count)  # unsigned: an index is not asked whether it counts from the end
    for k in range(np.uint64(last - run)):
        begin = begins[np.uint64(run) + k]
        first, more = _key(scratch, begin, stops[np.uint64(run + behind) + k] - begin, seeds)
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
        size = stops[np.uint64(run + behind) + k] - begin
        slot = _find(entries, text, starts, scratch, begin, size, first, more, slot)
        if entries[slot, 1] != 0:
            numbers[at] = np.int32(entries[slot, 2])
            at += _ONE
        elif growing:
            _copy_word(scratch, begin, size, text, starts[known])
            starts[known + 1] = starts[known] + size
            _enter(entries, slot, first, more, known, hashed)
            numbers[at] = known
            at += _ONE
            known += 1
        elif tail.size > 0:
            bucket = tail[_bucket(scratch, begin, size, tail.size, tail_seeds)]
            if bucket >= 0:
                numbers[at] = bucket
                at += _ONE
    return np.int64(at), known


@compiled
def number_all(
    scratch: Array, begins: Array, stops: Array, first: int, last: int, behind: int, seeds: Array, entries: Array,
    text: Array, starts: Array, known: int, growing: bool, tail: Array, tail_seeds: Array, hashes: Array,
    numbers: Array, count: int,
) -> tuple[Array, int, Array, Array, Array, int]:  # fmt: skip
    """Number the words that begin with the units from `first` on, a run at a time; arrays grow if need be."""
    if count + last - first > numbers.size:
        numbers = longer(numbers, count, count + last - first)
    for run in range(first, last, RUN):
        end = min(run + RUN, last)
        if growing:
            size = (behind + 1) * (stops[end - 1 + behind] - begins[run])  # at most
            entries, text, starts = _room_for(entries, text, starts, known, end - run, size)
        count, known = _number_run(
            scratch, begins, stops, run, end, behind, seeds, entries, text, starts, known, growing, tail, tail_seeds,
            hashes, numbers, count,
        )  # fmt: skip
    return numbers, count, entries, text, starts, known


@compiled
def number_words(
    scratch: Array, begins: Array, stops: Array, groups: Array, texts: Array, whole: bool, least: int, most: int,
    seeds: Array, entries: Array, text: Array, starts: Array, known: int, growing: bool, tail: Array, tail_seeds: Array,
) -> tuple[Array, Array, Array, Array, Array, int]:  # fmt: skip
    """The numbers of the words (or n-grams, `least` to `most` long) of each text, and where those of each begin.

    With `growing` new words are added to the vocabulary, whose arrays are returned as they then are; without, words it
    does not know have the number that `tail` has for their hash, or are left out. `whole`: of a group that is shorter
    than an n-gram all of it counts, once.
    """
    rows = texts.size - 1
    numbers = np.empty(max(64, groups[texts[rows]]), dtype=np.int32)
    firsts = np.zeros(rows + 1, dtype=np.int64)
    hashes = np.empty((RUN, 3), dtype=np.uint64)
    count: Any = np.int64(0)  # not literally 0, for which all would be compiled once more
    for row in range(rows):
        for g in range(texts[row], texts[row + 1]):
            units = groups[g + 1] - groups[g]
            for n in range(least, most + 1):
                together = min(n, units)
                if together < n and (not whole or units == 0):
                    break
                numbers, count, entries, text, starts, known = number_all(
                    scratch, begins, stops, groups[g], groups[g + 1] - together + 1, together - 1, seeds, entries, text,
                    starts, known, growing, tail, tail_seeds, hashes, numbers, count,
                )  # fmt: skip
                if whole and n >= units:
                    break
        firsts[row + 1] = count
    return numbers[:count], firsts, entries, text, starts, known


@compiled
def _bucket(text: Array, begin: int, size: int, buckets: int, seeds: Array) -> Any:
    """The bucket of a word, the same on every machine and in every model file."""
    first, more = _key(text, begin, size, seeds)
    return np.int64(_hashed_once(first, more, seeds) % np.uint64(buckets))


@compiled
def word_buckets(text: Array, starts: Array, buckets: int, seeds: Array, out: Array) -> None:
    """The bucket of each word; `text` has fifteen bytes more than they."""
    for k in range(starts.size - 1):
        out[k] = _bucket(text, starts[k], starts[k + 1] - starts[k], buckets, seeds)


@compiled
def taken_words(text: Array, starts: Array, order: Array, out: Array, out_starts: Array) -> None:
    """Some words, one behind the other."""
    at = 0
    for k in range(order.size):
        begin, end = starts[order[k]], starts[order[k] + 1]
        out_starts[k] = at
        _copy_word(text, begin, end - begin, out, at)
        at += end - begin
    out_starts[order.size] = at
