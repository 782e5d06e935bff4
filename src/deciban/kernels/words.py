"""Words: numbered by a hash table, counted, sorted, merged.

A vocabulary is two arrays: `text` (the bytes of all words, one behind the other) and `starts` (where each begins, and
one more). It is searched by `keys`, two numbers a word, and `slots`, half a hash and 1 + the number of a word, in open
addressing. Hashes depend on `seeds`, which nobody outside the process knows: words cannot be chosen to collide.
"""

from typing import Any

import numpy as np

from deciban.arrays import SPARE
from deciban.kernels.bits import eight_bytes, fetch, mixed
from deciban.kernels.compiled import Array, compiled

# Words of so many bytes or more are known by a hash; the others are their own keys.
LONG = 16

# Slots that are more than these are not all in the cache: so many words ahead memory is asked for them.
CACHED = 1 << 20
AHEAD = 32

_ONE, _EIGHT, _HALF = np.uint64(1), np.uint64(8), np.uint64(32)
_LONG_MARK = np.uint64(0xFF << 56)
_NUMBER = np.uint64((1 << 32) - 1)
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
    slots: Array, keys: Array, text: Array, starts: Array, of: Array, begin: int, size: int, first: int, more: int,
    hashed: int,
) -> Any:  # fmt: skip
    """The slot of a word, whose bytes are in `of`; or the empty one that it may have."""
    mask = np.uint64(slots.size - 1)
    slot = hashed & mask
    while True:
        held = slots[slot]
        if held == 0:
            return slot
        if held >> _HALF == hashed >> _HALF:
            number = (held & _NUMBER) - _ONE
            if keys[number, 0] == first and keys[number, 1] == more:
                if size < LONG:
                    return slot
                place, same = starts[number], 0
                while same < size and text[place + same] == of[begin + same]:
                    same += 1
                if same == size:
                    return slot
        slot = (slot + _ONE) & mask


@compiled
def _hashed(first: int, more: int, seeds: Array) -> Any:
    return mixed(first ^ seeds[3], more ^ seeds[4])


@compiled
def _fetch_slots(
    scratch: Array,
    begins: Array,
    stops: Array,
    first: int,
    last: int,
    more: int,
    seeds: Array,
    slots: Array,
    keys: Array,
) -> None:
    """Ask memory for the slots, and then for the keys, of the words from `first` on, each with `more` units behind."""
    mask = np.uint64(slots.size - 1)
    hashes = np.empty(AHEAD, dtype=np.uint64)
    count = min(AHEAD, last - first)
    for k in range(count):
        begin = begins[first + k]
        hashes[k] = _hashed(*_key(scratch, begin, stops[first + k + more] - begin, seeds), seeds) & mask
        fetch(slots, hashes[k])
    for k in range(count):
        if slots[hashes[k]] != 0:
            fetch(keys, np.uint64(2) * ((slots[hashes[k]] & _NUMBER) - _ONE))


@compiled
def _slotted(keys: Array, count: int, size: int, seeds: Array) -> Array:
    """The slots of words that are all different."""
    slots = np.zeros(size, dtype=np.uint64)
    mask = np.uint64(size - 1)
    for number in range(count):
        hashed = _hashed(keys[number, 0], keys[number, 1], seeds)
        slot = hashed & mask
        while slots[slot] != 0:
            slot = (slot + _ONE) & mask
        slots[slot] = (hashed >> _HALF) << _HALF | np.uint64(number + 1)
    return slots


@compiled
def index_words(text: Array, starts: Array, seeds: Array) -> tuple[Array, Array]:
    """The slots and the keys of words that are all different; `text` has fifteen bytes more than they."""
    count = starts.size - 1
    size = 16
    while size < 2 * count:
        size *= 2
    keys = np.empty((max(count, 1), 2), dtype=np.uint64)
    for number in range(count):
        first, more = _key(text, starts[number], starts[number + 1] - starts[number], seeds)
        keys[number, 0], keys[number, 1] = first, more
    return _slotted(keys, count, size, seeds), keys


@compiled
def longer(array: Array, used: int, least: int) -> Array:
    """The same array with room for more."""
    longer = np.empty(max(2 * array.size, least), dtype=array.dtype)
    for k in range(used):
        longer[k] = array[k]
    return longer


@compiled
def _longer_keys(keys: Array, used: int, size: int) -> Array:
    longer = np.empty((size, 2), dtype=np.uint64)
    for k in range(used):
        longer[k, 0], longer[k, 1] = keys[k, 0], keys[k, 1]
    return longer


@compiled
def keep_words(
    scratch: Array,
    begins: Array,
    stops: Array,
    texts: Array,
    stop_slots: Array,
    stop_keys: Array,
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
                hashed = _hashed(first, more, seeds)
                slot = _find(stop_slots, stop_keys, stop_text, stop_starts, scratch, begin, size, first, more, hashed)
                if stop_slots[slot] != 0:
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
def number_words(
    scratch: Array,
    begins: Array,
    stops: Array,
    groups: Array,
    texts: Array,
    whole: bool,
    least: int,
    most: int,
    seeds: Array,
    slots: Array,
    keys: Array,
    text: Array,
    starts: Array,
    known: int,
    growing: bool,
    tail: Array,
    tail_seeds: Array,
) -> tuple[Array, Array, Array, Array, Array, Array, int]:
    """The numbers of the words (or n-grams, `least` to `most` long) of each text, and where those of each begin.

    With `growing` new words are added to the vocabulary, whose arrays are returned as they then are; without, words it
    does not know have the number that `tail` has for their hash, or are left out. `whole`: of a group that is shorter
    than an n-gram all of it counts, once.
    """
    rows = texts.size - 1
    numbers = np.empty(max(64, groups[texts[rows]]), dtype=np.int32)
    firsts = np.zeros(rows + 1, dtype=np.int64)
    count = 0
    for row in range(rows):
        for g in range(texts[row], texts[row + 1]):
            units = groups[g + 1] - groups[g]
            for n in range(least, most + 1):
                together = min(n, units)
                if together < n and (not whole or units == 0):
                    break
                if count + units >= numbers.size:
                    numbers = longer(numbers, count, count + units + 1)
                last = groups[g + 1] - together + 1
                for t in range(groups[g], last):
                    if slots.size > CACHED and (t - groups[g]) % AHEAD == 0:
                        _fetch_slots(scratch, begins, stops, t, last, together - 1, seeds, slots, keys)
                    begin = begins[t]
                    size = stops[t + together - 1] - begin
                    first, more = _key(scratch, begin, size, seeds)
                    hashed = _hashed(first, more, seeds)
                    slot = _find(slots, keys, text, starts, scratch, begin, size, first, more, hashed)
                    if slots[slot] != 0:
                        numbers[count] = np.int32((slots[slot] & _NUMBER) - _ONE)
                        count += 1
                    elif growing:
                        if starts[known] + size + SPARE > text.size:
                            text = longer(text, starts[known], starts[known] + size + SPARE)
                        if known + 2 > starts.size:
                            starts = longer(starts, known + 1, 0)
                            keys = _longer_keys(keys, known, starts.size)
                        for b in range(size):
                            text[starts[known] + b] = scratch[begin + b]
                        starts[known + 1] = starts[known] + size
                        keys[known, 0], keys[known, 1] = first, more
                        numbers[count] = known
                        count += 1
                        known += 1
                        slots[slot] = (hashed >> _HALF) << _HALF | np.uint64(known)
                        if 2 * known > slots.size:
                            slots = _slotted(keys, known, 4 * slots.size, seeds)
                    elif tail.size > 0:
                        bucket = tail[_bucket(scratch, begin, size, tail.size, tail_seeds)]
                        if bucket >= 0:
                            numbers[count] = bucket
                            count += 1
                if whole and n >= units:
                    break
        firsts[row + 1] = count
    return numbers, firsts, slots, keys, text, starts, known


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
def count_numbers(numbers: Array, begins: Array, place: Array, labels: Array, weights: Array, table: Array) -> None:
    """Add the weight of each text to table[place of the word, class] for each of its words, as often as it is there."""
    for row in range(begins.size - 1):
        c, w = labels[row], weights[row]
        if c < 0 or w == 0.0:
            continue
        for k in range(begins[row], begins[row + 1]):
            table[np.uint64(place[np.uint64(numbers[k])]), np.uint64(c)] += w


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
def first_bytes(text: Array, starts: Array, out: Array) -> None:
    """The first eight bytes of each word as numbers in the order of the words; missing ones are 0."""
    for k in range(starts.size - 1):
        size = min(starts[k + 1] - starts[k], 8)
        number = np.uint64(0)
        for b in range(8):
            number = number << _EIGHT
            if b < size:
                number |= np.uint64(text[starts[k] + b])
        out[k] = number


@compiled
def _compared(a: Array, a_begin: int, a_end: int, b: Array, b_begin: int, b_end: int) -> Any:
    """-1, 0 or 1: which of two words comes first, byte by byte."""
    size = min(a_end - a_begin, b_end - b_begin)
    for k in range(size):
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
        out_starts[k] = at
        for b in range(starts[order[k]], starts[order[k] + 1]):
            out[at] = text[b]
            at += 1
    out_starts[order.size] = at


@compiled
def merged_words(
    a: Array, a_starts: Array, b: Array, b_starts: Array, text: Array, starts: Array, of_a: Array, of_b: Array
) -> int:
    """The words of two sorted vocabularies, sorted; where each word of both is among them, and their number."""
    i, j, count, at = 0, 0, 0, 0
    starts[0] = 0
    while i < a_starts.size - 1 or j < b_starts.size - 1:
        if j == b_starts.size - 1:
            order = -1
        elif i == a_starts.size - 1:
            order = 1
        else:
            order = _compared(a, a_starts[i], a_starts[i + 1], b, b_starts[j], b_starts[j + 1])
        if order <= 0:
            for k in range(a_starts[i], a_starts[i + 1]):
                text[at] = a[k]
                at += 1
            of_a[i] = count
            i += 1
        if order >= 0:
            if order > 0:
                for k in range(b_starts[j], b_starts[j + 1]):
                    text[at] = b[k]
                    at += 1
            of_b[j] = count
            j += 1
        count += 1
        starts[count] = at
    return count


@compiled
def add_rows(table: Array, places: Array, total: Array) -> None:
    """Add the rows of a table to those at their places."""
    for k in range(places.size):
        row = np.uint64(places[k])
        for c in range(table.shape[1]):
            total[row, c] += table[k, c]


@compiled
def add_amounts(data: Array, indices: Array, indptr: Array, labels: Array, weights: Array, table: Array) -> None:
    """Add weight * amount of each row in CSR form to table[column, class]."""
    for row in range(indptr.size - 1):
        c, w = labels[row], weights[row]
        if c < 0 or w == 0.0:
            continue
        for k in range(indptr[row], indptr[row + 1]):
            table[np.uint64(indices[k]), np.uint64(c)] += w * data[k]
