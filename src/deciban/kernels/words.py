"""Words: numbered by a hash table, counted, sorted, merged.

A vocabulary is two arrays: `text` (the bytes of all words, one behind the other) and `starts` (where each begins, and
one more). It is searched by `entries` in open addressing: two numbers that are the key of a word, its own number and
its hash; or zeros. Hashes depend on `seeds`, which nobody outside the process knows: words cannot be chosen to collide.
"""

from typing import Any

import numpy as np

from deciban.arrays import SPARE
from deciban.kernels.bits import eight_bytes, fetch, mixed, put_eight, swapped
from deciban.kernels.compiled import Array, compiled

# Words of so many bytes or more are known by a hash; the others are their own keys.
LONG = 16

# So many words are looked up together: memory is asked for their entries before they are needed.
RUN = 512

_ONE, _EIGHT = np.uint64(1), np.uint64(8)
_LONG_MARK = np.uint64(0xFF << 56)
_MASKS = np.array([(1 << 8 * size) - 1 for size in range(9)], dtype=np.uint64)


@compiled
def _key(text: Array, begin: int, size: int, seeds: Array) -> tuple[Any, Any]:
    """What a word is looked up by; `text` may be read for fifteen bytes behind its first one."""
    if size < LONG:
        first = eight_bytes(text, np.uint64(begin)) & _MASKS[min(size, 8)]
        more = eight_bytes(text, np.uint64(begin + 8)) & _MASKS[max(size - 8, 0)]
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
            place, same = starts[entries[slot, 2]], 0
            while same < size and text[place + same] == of[begin + same]:
                same += 1
            if same == size:
                return slot
        elif entries[slot, 1] == 0:  # no word is empty
            return slot
        slot = (slot + _ONE) & mask


@compiled
def _hashed(first: int, more: int, seeds: Array) -> Any:
    return mixed(first ^ seeds[3], more ^ seeds[4])


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
    count = 0
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
    """The bucket of a word, the same on every machine."""
    first, more = _key(text, begin, size, seeds)
    return np.int64(_hashed(first, more, seeds) % np.uint64(buckets))


@compiled
def word_buckets(text: Array, starts: Array, buckets: int, seeds: Array, out: Array) -> None:
    """The bucket of each word; `text` has fifteen bytes more than they."""
    for k in range(starts.size - 1):
        out[k] = _bucket(text, starts[k], starts[k + 1] - starts[k], buckets, seeds)


@compiled
def add_text(
    numbers: Array, amounts: Any, first: int, last: int, weight: float, tally: Array, touched: Array, new: int
) -> Any:
    """Add the words of a text to the tally of its class and, if they are new there, to those that it has."""
    at = np.uint64(new)
    for t in range(first, last):
        number = np.uint64(numbers[t])
        before = tally[number]
        tally[number] = before + (weight if amounts is None else weight * amounts[t])
        touched[at] = numbers[t]
        at += np.uint64((before == 0.0) & (tally[number] > 0.0))  # a product may be too small to be anything
    return np.int64(at)


@compiled
def end_class(
    tally: Array, touched: Array, new: int, words: Array, counts: Array, found: int
) -> tuple[Array, Array, int]:
    """Move the tally of a class to the end of the lists of words and counts."""
    if found + new > counts.size:
        words, counts = longer(words, found, found + new), longer(counts, found, found + new)
    for t in range(new):
        number = np.uint64(touched[t])
        words[found + t], counts[found + t] = touched[t], tally[number]
        tally[number] = 0.0
    return words, counts, found + new


@compiled
def count_words(
    numbers: Array, amounts: Any, firsts: Array, order: Array, labels: Array, weights: Array, known: int, classes: int
) -> tuple[Array, Array, Array]:
    """The weights of texts added up for each of their words: class by class the numbers of its words, and their counts.

    The words of text i are numbers[firsts[i]] and so on, each as much as `amounts` has or, if that is None, 1. `order`
    has the texts that count, class by class: the tally of one stays in the cache.
    """
    tally, touched = np.zeros(known), np.empty(known + 1, dtype=np.int32)
    words, counts = np.empty(2 * known + 64, dtype=np.int32), np.empty(2 * known + 64)
    ends = np.zeros(classes + 1, dtype=np.int64)
    new, found = 0, 0
    for k in range(order.size):
        row = order[k]
        new = add_text(numbers, amounts, firsts[row], firsts[row + 1], weights[row], tally, touched, new)
        if k + 1 == order.size or labels[order[k + 1]] != labels[row]:
            words, counts, found = end_class(tally, touched, new, words, counts, found)
            new = 0
            ends[labels[row] + 1 :] = found
    return words[:found], counts[:found], ends


@compiled
def transposed(data: Array, indices: Array, indptr: Array, order: Array, width: int) -> tuple[Array, Array, Array]:
    """A table in CSR form with so many columns as rows of some of them, in this order."""
    place = np.full(width, -1, dtype=np.int32)
    for row in range(order.size):
        place[order[row]] = row
    ends = np.zeros(order.size + 2, dtype=np.int64)
    for t in range(indptr[0], indptr[-1]):
        ends[place[np.uint64(indices[t])] + 2] += place[np.uint64(indices[t])] >= 0
    for row in range(order.size):
        ends[row + 2] += ends[row + 1]
    found, columns = np.empty(ends[-1]), np.empty(ends[-1], dtype=np.int32)
    for c in range(indptr.size - 1):
        for t in range(indptr[c], indptr[c + 1]):
            row = place[np.uint64(indices[t])]
            if row >= 0:
                at = np.uint64(ends[np.uint64(row + 1)])
                found[at], columns[at] = data[t], c
                ends[np.uint64(row + 1)] += 1
    return found, columns, ends[:-1].copy()


@compiled
def column_sums(data: Array, indices: Array, indptr: Array, width: int) -> Array:
    """The sums of the columns of a table in CSR form."""
    sums = np.zeros(width)
    for t in range(indptr[0], indptr[-1]):
        sums[np.uint64(indices[t])] += data[t]
    return sums


@compiled
def add_counts(
    a_data: Array, a_words: Array, a_ends: Array, b_data: Array, b_words: Array, b_ends: Array, numbers: Array,
    known: int,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """The sum of two tables, class by word; numbers[w] is what the first calls word w of the second."""
    classes = a_ends.size - 1
    size = a_data.size + b_data.size
    data, words, ends = np.empty(size), np.empty(size, dtype=np.int32), np.zeros(classes + 1, dtype=np.int64)
    place = np.full(known, -1, dtype=np.int64)  # of a word among those of its class, if it is not before them
    at = 0
    for c in range(classes):
        first = at
        for t in range(a_ends[c], a_ends[c + 1]):
            data[at], words[at] = a_data[t], a_words[t]
            place[np.uint64(a_words[t])] = at
            at += 1
        for t in range(b_ends[c], b_ends[c + 1]):
            number = numbers[np.uint64(b_words[t])]
            there = place[np.uint64(number)]
            if there >= first:
                data[np.uint64(there)] += b_data[t]
            else:
                data[at], words[at] = b_data[t], number
                at += 1
        ends[c + 1] = at
    return data[:at], words[:at], ends


@compiled
def gather_numbers(numbers: Array, begins: Array, size: int) -> tuple[Array, Array, Array]:
    """The rows in CSR form: how often each word is in each text."""
    place = np.full(size, -1, dtype=np.int32)  # of a word among those of its text
    data = np.empty(numbers.size, dtype=np.float64)
    indices = np.empty(numbers.size, dtype=np.int32)
    indptr = np.zeros(begins.size, dtype=np.int64)
    count = 0
    for row in range(begins.size - 1):
        first = count
        for k in range(begins[row], begins[row + 1]):
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
    return data, indices, indptr


@compiled
def _first_bytes(text: Array, begin: int, size: int) -> Any:
    """The first eight bytes of a word as a number that is in order as words are; missing ones are 0."""
    if begin + 8 <= text.size:
        return swapped(eight_bytes(text, np.uint64(begin)) & _MASKS[min(size, 8)])
    number = np.uint64(0)
    for b in range(8):
        number = number << _EIGHT
        if b < size:
            number |= np.uint64(text[begin + b])
    return number


@compiled
def first_bytes(text: Array, starts: Array, out: Array) -> None:
    """The first eight bytes of each word as numbers in the order of the words; missing ones are 0."""
    for k in range(starts.size - 1):
        out[k] = _first_bytes(text, starts[k], starts[k + 1] - starts[k])


@compiled
def _compared(a: Array, a_begin: int, a_end: int, b: Array, b_begin: int, b_end: int) -> Any:
    """-1, 0 or 1: which of two words comes first, byte by byte."""
    one = _first_bytes(a, a_begin, a_end - a_begin)
    two = _first_bytes(b, b_begin, b_end - b_begin)
    if one != two:
        return np.int64(one > two) - np.int64(one < two)
    for k in range(8, min(a_end - a_begin, b_end - b_begin)):
        if a[a_begin + k] != b[b_begin + k]:
            return -1 if a[a_begin + k] < b[b_begin + k] else 1
    return np.sign((a_end - a_begin) - (b_end - b_begin))


@compiled
def sort_ties(text: Array, starts: Array, firsts: Array, order: Array, scratch: Array) -> None:
    """Put words into order that are sorted by their first eight bytes already, by merging runs of equal ones."""
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
                        one, two = order[a], order[b]
                        take = _compared(text, starts[one], starts[one + 1], text, starts[two], starts[two + 1]) <= 0
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
