"""Vocabulary as a hash table: numbering, counting and sorting of words.

A `WordIndex` has the concatenated bytes of all words (`text`) and where each begins, and one more (`starts`). It is
searched by `entries` in open addressing: two numbers that are the key of a word, its number and its hash; or zeros.
Hashes depend on `seeds`, which are secret, so that collisions cannot be provoked. Counts are tables in CSR form, class
by word.

Kernels allocate nothing. Without enough space they return False, and `state` has the position to continue from.
"""

from typing import Any

import numpy as np

from deciban.kernels.compiled import Array, compile_kernel, inner
from deciban.kernels.instructions import eight_bytes, fetch, mix_halves, put_eight, swap_bytes
from deciban.kernels.text_arrays import LabeledTexts, Numbering, UnknownWords, WordIndex, WordSpans
from deciban.util.arrays import SPARE
from deciban.util.sparse import SparseArrays

# Words with at least this many bytes have a hash as key; shorter words are their own keys.
LONG = 16

# Words that are looked up together: their entries are prefetched before they are needed.
RUN = 512


# Index in `state` of the row to continue with.
ROW = 0

# Index in `state` of the word to continue with.
WORD = 1

# Index in `state` of the number of known words.
KNOWN = 2

# Index in `state` of the count of written numbers.
COUNT = 3

# Index in `state` of the end of the words of the row (-1: not yet split into words).
ROW_END = 4


# Length of `state`.
STATES = 5

_ONE = np.uint64(1)

_EIGHT = np.uint64(8)

_LONG_MARK = np.uint64(0xFF << 56)

# Masks of the first 0 to 8 bytes of a number that holds eight bytes.
MASKS = np.array([(1 << 8 * size) - 1 for size in range(9)], dtype=np.uint64)


@inner
def _key(text: Array, begin: int, size: int, seeds: Array) -> tuple[Any, Any]:
    """Return the key of a word; `text` may be read for fifteen bytes after its first one."""
    if size < LONG:
        first = eight_bytes(text, np.uint64(begin)) & MASKS[size if size < 8 else 8]
        more = eight_bytes(text, np.uint64(begin + 8)) & MASKS[size - 8 if size > 8 else 0]
        return first, more | np.uint64(size) << np.uint64(56)
    key = seeds[0]
    for place in range(begin, begin + size - 8, 8):
        key = mix_halves(key ^ eight_bytes(text, np.uint64(place)), seeds[1])
    key = mix_halves(key ^ eight_bytes(text, np.uint64(begin + size - 8)), seeds[2])
    return key, np.uint64(size) | _LONG_MARK


@inner
def _find(index: WordIndex, source: Array, begin: int, size: int, first: int, more: int, slot: Any) -> Any:
    """Return the slot of a word, whose bytes are in `source`, from a slot on; or the empty slot where it belongs."""
    entries, text = index.entries, index.text
    mask = np.uint64(entries.shape[0] - 1)
    while True:
        if entries[slot, 0] == first and entries[slot, 1] == more:
            if size < LONG:
                return slot
            there, same = index.starts[entries[slot, 2]], 0
            while same < size and text[there + same] == source[begin + same]:
                same += 1
            if same == size:
                return slot
        elif entries[slot, 1] == 0:  # no word is empty
            return slot
        slot = (slot + _ONE) & mask


@inner
def _hash_once(first: int, more: int, seeds: Array) -> Any:
    return mix_halves(first ^ seeds[3], more ^ seeds[4])


@inner
def _hash_key(first: int, more: int, seeds: Array) -> Any:
    # One round is not enough: for some seeds, words that differ in a few bits would hash too regularly.
    return mix_halves(_hash_once(first, more, seeds), seeds[1])


@inner
def _bucket(text: Array, begin: int, size: int, buckets: int, seeds: Array) -> Any:
    """Return the bucket of a word, the same on every machine and in every model file."""
    first, more = _key(text, begin, size, seeds)
    return np.int64(_hash_once(first, more, seeds) % np.uint64(buckets))


@compile_kernel
def move_entries(entries: Array, found: Array) -> None:
    """Enter the same words into a larger, empty table of entries."""
    mask = np.uint64(found.shape[0] - 1)
    for k in range(entries.shape[0]):
        if entries[k, 1] != 0:
            slot = entries[k, 3] & mask
            while found[slot, 1] != 0:
                slot = (slot + _ONE) & mask
            for j in range(4):
                found[slot, j] = entries[k, j]


@compile_kernel
def index_words(text: Array, starts: Array, seeds: Array, hashes: Array, entries: Array) -> None:
    """Enter distinct words; `text` has fifteen more bytes."""
    mask = np.uint64(entries.shape[0] - 1)
    for run in range(0, starts.size - 1, RUN):
        some = starts.size - 1 - run
        some = some if some < RUN else RUN
        for k in range(some):
            first, more = _key(text, starts[run + k], starts[run + k + 1] - starts[run + k], seeds)
            hashes[k, 0], hashes[k, 1], hashes[k, 2] = first, more, _hash_key(first, more, seeds)
            fetch(entries, np.uint64(4) * (hashes[k, 2] & mask))
        for k in range(some):
            slot = hashes[k, 2] & mask
            while entries[slot, 1] != 0:
                slot = (slot + _ONE) & mask
            entries[slot, 0], entries[slot, 1], entries[slot, 3] = hashes[k, 0], hashes[k, 1], hashes[k, 2]
            entries[slot, 2] = np.uint64(run + k)


@compile_kernel
def keep_words(words: WordSpans, texts: Array, stop: WordIndex, seeds: Array, out: Array, left: Array) -> None:
    """Copy words to `out` with one space between them, without stop words, and update their spans.

    left[row] becomes the number of remaining words in the texts before it.
    """
    source, begins, stops = words
    kept, at = 0, 0
    for row in range(texts.size - 1):
        for t in range(texts[row], texts[row + 1]):
            begin, size = begins[t], stops[t] - begins[t]
            if stop.known > 0:
                first, more = _key(source, begin, size, seeds)
                slot = _hash_key(first, more, seeds) & np.uint64(stop.entries.shape[0] - 1)
                if stop.entries[_find(stop, source, begin, size, first, more, slot), 1] != 0:
                    continue
            for b in range(size):
                out[at + b] = source[begin + b]
            out[at + size] = 32
            begins[kept], stops[kept] = at, at + size
            at += size + 1
            kept += 1
        left[row + 1] = kept


@compile_kernel
def list_grams(
    units: WordSpans, groups: Array, texts: Array, sizes: tuple[int, int], whole: bool, bounds: Array, grams: WordSpans
) -> None:
    """Write the spans of the n-grams of each text; those of text i start at bounds[i].

    sizes: minimum and maximum number of units. whole: a group shorter than any n-gram counts as a whole, once.
    """
    least, most = sizes
    at = 0
    for row in range(texts.size - 1):
        for g in range(texts[row], texts[row + 1]):
            first, last = groups[g], groups[g + 1]
            for n in range(least, most + 1):
                for k in range(first, last - n + 1):
                    grams.begins[at], grams.stops[at] = units.begins[k], units.stops[k + n - 1]
                    at += 1
            if whole and first < last < first + least:
                grams.begins[at], grams.stops[at] = units.begins[first], units.stops[last - 1]
                at += 1
        bounds[row + 1] = at


@inner
def _copy_word(source: Array, begin: int, size: int, target: Array, at: int) -> None:
    """Copy a word, eight bytes at a time if possible; some bytes after it are overwritten."""
    if begin + size + 8 <= source.size and at + size + 8 <= target.size:
        for k in range(0, size, 8):
            put_eight(target, np.uint64(at + k), eight_bytes(source, np.uint64(begin + k)))
    else:
        for k in range(size):
            target[at + k] = source[begin + k]


@inner
def _number_run(
    words: WordSpans, run: int, last: int, seeds: Array, index: WordIndex, growing: bool, unknown: UnknownWords,
    out: Numbering,
) -> None:  # fmt: skip
    """Assign numbers to the words `run` to `last`, at most RUN of them.

    All entries are prefetched before the first is needed.
    """
    scratch, begins, stops = words
    entries, text, starts, _ = index
    numbers, _, state, hashes = out
    mask = np.uint64(entries.shape[0] - 1)
    known, at = state[KNOWN], np.uint64(state[COUNT])  # unsigned, so that numba does not check for negative indices
    for k in range(np.uint64(last - run)):
        begin = begins[np.uint64(run) + k]
        first, more = _key(scratch, begin, stops[np.uint64(run) + k] - begin, seeds)
        hashed = _hash_key(first, more, seeds)
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
        slot = _find(index, scratch, begin, size, first, more, slot)
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
        elif unknown.numbers.size > 0:
            number = unknown.numbers[_bucket(scratch, begin, size, unknown.numbers.size, unknown.seeds)]
            if number >= 0:
                numbers[at] = number
                at += _ONE
    state[KNOWN], state[COUNT] = known, np.int64(at)


@inner
def number_some(
    words: WordSpans, count: int, seeds: Array, index: WordIndex, growing: bool, unknown: UnknownWords, out: Numbering
) -> bool:
    """Assign numbers to the words from state[WORD] to `count`; return False without enough space."""
    _, begins, stops = words
    entries, text, starts, _ = index
    numbers, state = out.numbers, out.state
    while state[WORD] < count:
        run = state[WORD]
        last = run + RUN if run + RUN < count else count
        if state[COUNT] + last - run > numbers.size:
            return False
        if growing:
            known, size = state[KNOWN], 0
            for k in range(run, last):
                size += stops[k] - begins[k]
            many = (
                10 * (known + last - run) > 7 * entries.shape[0]
            )  # frequent words come early and are found immediately
            short = starts[known] + size + SPARE > text.size
            if many or short or known + last - run + 1 > starts.size:
                return False
        _number_run(words, run, last, seeds, index, growing, unknown, out)
        state[WORD] = last
    return True


@compile_kernel
def number_words(
    texts: Array, words: WordSpans, seeds: Array, index: WordIndex, growing: bool, unknown: UnknownWords, out: Numbering
) -> bool:
    """Write the numbers of the words of each text, and where each text begins; return False without enough space.

    The words of text i start at texts[i]. With `growing`, new words are added to the index.
    """
    state = out.state
    while state[ROW] < texts.size - 1:
        state[ROW_END] = texts[state[ROW] + 1]
        if not number_some(words, state[ROW_END], seeds, index, growing, unknown, out):
            return False
        state[ROW] += 1
        out.bounds[state[ROW]] = state[COUNT]
    return True


@compile_kernel
def word_buckets(text: Array, starts: Array, buckets: int, seeds: Array, out: Array) -> None:
    """Write the bucket of each word; `text` has fifteen more bytes."""
    for k in range(starts.size - 1):
        out[k] = _bucket(text, starts[k], starts[k + 1] - starts[k], buckets, seeds)


@compile_kernel
def count_words(
    numbers: Array, bounds: Array, amounts: Array, texts: LabeledTexts, tally: Array, touched: Array, out: SparseArrays
) -> None:
    """Sum the weights of texts for each of their words: per class, the word numbers and their counts.

    The words of text i start at numbers[bounds[i]]; each counts as `amounts` or, if that is empty, 1. out.indptr[c + 1]
    is where the words of class c end. `tally` (zeros) has space for each word and stays in the cache class by class;
    `touched` has space for one more.
    """
    order, labels, weights = texts
    counts, words, ends = out
    new, found = np.uint64(0), np.uint64(0)
    for k in range(order.size):
        row = order[k]
        weight = weights[row]
        for t in range(bounds[row], bounds[row + 1]):
            number = np.uint64(numbers[t])
            before = tally[number]
            tally[number] = before + (weight if amounts.size == 0 else weight * amounts[t])
            touched[new] = numbers[t]
            new += np.uint64((before == 0.0) & (tally[number] > 0.0))  # a product may underflow to 0
        if k + 1 == order.size or labels[order[k + 1]] != labels[row]:
            for t in range(new):
                number = np.uint64(touched[t])
                words[found], counts[found] = touched[t], tally[number]
                tally[number] = 0.0
                found += np.uint64(1)
            new = np.uint64(0)
            ends[labels[row] + 1] = found


@compile_kernel
def add_counts(mine: SparseArrays, theirs: SparseArrays, numbers: Array, place: Array, out: SparseArrays) -> None:
    """Add two tables, class by word; numbers[w] is the number in the first table of word w of the second.

    `place`, of each word within its class, is negative at first; `out` has space for the cells of both.
    """
    my_data, my_words, my_ends = mine
    their_data, their_words, their_ends = theirs
    data, words, ends = out
    at = 0
    for c in range(my_ends.size - 1):
        first = at
        for t in range(my_ends[c], my_ends[c + 1]):
            data[at], words[at] = my_data[t], my_words[t]
            place[np.uint64(my_words[t])] = at
            at += 1
        for t in range(their_ends[c], their_ends[c + 1]):
            number = numbers[np.uint64(their_words[t])]
            there = place[np.uint64(number)]
            if there >= first:
                data[np.uint64(there)] += their_data[t]
            else:
                data[at], words[at] = their_data[t], number
                at += 1
        ends[c + 1] = at


@compile_kernel
def count_per_text(numbers: Array, bounds: Array, place: Array, out: SparseArrays) -> None:
    """Count each word in each text, in CSR form; `place` of each word is -1 before and after."""
    data, indices, indptr = out
    count = 0
    for row in range(bounds.size - 1):
        first = count
        for k in range(bounds[row], bounds[row + 1]):
            word = np.uint64(numbers[k])
            if place[word] < 0:
                place[word] = count - first
                indices[count] = word
                data[count] = 1.0
                count += 1
            else:
                data[first + place[word]] += 1.0
        for k in range(first, count):
            place[np.uint64(indices[k])] = -1
        indptr[row + 1] = count


@compile_kernel
def _first_bytes(text: Array, begin: int, size: int) -> Any:
    """Return the first eight bytes of a word as a number that sorts like words; missing bytes are 0."""
    if begin + 8 <= text.size:
        return swap_bytes(eight_bytes(text, np.uint64(begin)) & MASKS[min(size, 8)])
    number = np.uint64(0)
    for b in range(8):
        number = number << _EIGHT
        if b < size:
            number |= np.uint64(text[begin + b])
    return number


@compile_kernel
def first_bytes(text: Array, starts: Array, out: Array) -> None:
    """Write the first eight bytes of each word as numbers that sort like words; missing bytes are 0."""
    for k in range(starts.size - 1):
        out[k] = _first_bytes(text, starts[k], starts[k + 1] - starts[k])


@compile_kernel
def _is_behind(text: Array, starts: Array, one: int, other: int) -> Any:
    """Return True if a word sorts after another one with the same first eight bytes."""
    begin, end, there, stop = starts[one], starts[one + 1], starts[other], starts[other + 1]
    for k in range(8, min(end - begin, stop - there)):
        if text[begin + k] != text[there + k]:
            return text[begin + k] > text[there + k]
    return end - begin > stop - there


@compile_kernel
def sort_ties(text: Array, starts: Array, firsts: Array, order: Array, scratch: Array) -> None:
    """Sort words that are sorted by their first eight bytes, by merging runs of equal ones."""
    begin = 0
    while begin < order.size:
        end = begin + 1
        while end < order.size and firsts[order[end]] == firsts[order[begin]]:
            end += 1
        width = 1
        while width < end - begin:
            for low in range(begin, end, 2 * width):
                middle, high = min(low + width, end), min(low + 2 * width, end)
                a, b = low, middle
                for k in range(low, high):
                    take = b == high
                    if not take and a < middle:
                        take = not _is_behind(text, starts, order[a], order[b])
                    if take and a < middle:
                        scratch[k] = order[a]
                        a += 1
                    else:
                        scratch[k] = order[b]
                        b += 1
                for k in range(low, high):
                    order[k] = scratch[k]
            width *= 2
        begin = end
