"""Words of texts in UTF-8: found, numbered by a hash table, counted.

A vocabulary is two arrays: `text` (the bytes of all words, one behind the other) and `starts` (where each begins, and
one more). It is searched by `keys`, two numbers a word, and `slots`, half a hash and 1 + the number of a word, in open
addressing. Hashes depend on `seeds`, which nobody outside the process knows: words cannot be chosen to collide.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from deciban.kernels.compiled import Array, compiled

WORDS, CHARACTERS, CHARACTERS_IN_WORDS = 0, 1, 2

# Words of so many bytes or more are known by a hash; the others are their own keys. Bytes that `text` has at its end
# so that keys can be read from it.
LONG = 16
SPARE = 16

_ONE, _EIGHT, _HALF = np.uint64(1), np.uint64(8), np.uint64(32)
_LONG_MARK = np.uint64(0xFF << 56)
_NUMBER = np.uint64((1 << 32) - 1)
_MASKS = np.array([(1 << 8 * size) - 1 for size in range(9)], dtype=np.uint64)
SPACE = 1 << 24  # marks characters that are white space where characters are counted

_WORD64 = ir.IntType(64)


@intrinsic  # type: ignore[untyped-decorator]
def _eight_bytes(typing: Any, array: Any, place: Any) -> Any:
    """Eight bytes from a place on, as one number."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        pointer = builder.bitcast(builder.gep(data, [arguments[1]]), _WORD64.as_pointer())
        return builder.load(pointer, align=1)

    return types.uint64(array, types.uint64), generate


@intrinsic  # type: ignore[untyped-decorator]
def _mixed(typing: Any, a: Any, b: Any) -> Any:
    """The two halves of a product of 128 bits, one upon the other."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        wide = ir.IntType(128)
        product = builder.mul(*(builder.zext(argument, wide) for argument in arguments))
        high = builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), _WORD64)
        return builder.xor(builder.trunc(product, _WORD64), high)

    return types.uint64(types.uint64, types.uint64), generate


_BLOCK = ir.VectorType(ir.IntType(8), 64)


def _each_byte(value: int) -> Any:
    return ir.Constant(_BLOCK, [value] * 64)


def _block(context: Any, builder: Any, signature: Any, arguments: Any, which: int) -> Any:
    """A pointer to 64 bytes of one of the arrays that an intrinsic is given, each followed by a place."""
    data = context.make_array(signature.args[which])(context, builder, arguments[which]).data
    return builder.bitcast(builder.gep(data, [arguments[which + 1]]), _BLOCK.as_pointer())


@intrinsic  # type: ignore[untyped-decorator]
def _copy_block(typing: Any, source: Any, place: Any, target: Any, there: Any, lower: Any) -> Any:
    """Copy 64 bytes, letters of ASCII as small ones if `lower`; a bit for each byte that is not ASCII."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        block = builder.load(_block(context, builder, signature, arguments, 0), align=1)
        capital = builder.icmp_unsigned("<", builder.sub(block, _each_byte(ord("A"))), _each_byte(26))
        small = builder.or_(block, builder.and_(builder.sext(capital, _BLOCK), _each_byte(32)))
        chosen = builder.select(arguments[4], small, block)
        builder.store(chosen, _block(context, builder, signature, arguments, 2), align=1)
        return builder.bitcast(builder.icmp_signed("<", block, _each_byte(0)), _WORD64)

    return types.uint64(source, types.uint64, target, types.uint64, types.boolean), generate


@intrinsic  # type: ignore[untyped-decorator]
def _letters(typing: Any, array: Any, place: Any) -> Any:
    """A bit for each of 64 bytes that is a letter of ASCII, a digit or a low line."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        block = builder.load(_block(context, builder, signature, arguments, 0), align=1)
        small = builder.or_(block, _each_byte(32))
        letter = builder.icmp_unsigned("<", builder.sub(small, _each_byte(ord("a"))), _each_byte(26))
        digit = builder.icmp_unsigned("<", builder.sub(block, _each_byte(ord("0"))), _each_byte(10))
        line = builder.icmp_unsigned("==", block, _each_byte(ord("_")))
        return builder.bitcast(builder.or_(letter, builder.or_(digit, line)), _WORD64)

    return types.uint64(array, types.uint64), generate


@intrinsic  # type: ignore[untyped-decorator]
def _lowest(typing: Any, bits: Any) -> Any:
    """The place of the lowest bit that is set."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), generate


@compiled
def _key(text: Array, begin: int, size: int, seeds: Array) -> tuple[int, int]:
    """What a word is looked up by; `text` may be read for fifteen bytes behind its first one."""
    if size < LONG:
        first = _eight_bytes(text, np.uint64(begin)) & _MASKS[min(size, 8)]
        more = _eight_bytes(text, np.uint64(begin + 8)) & _MASKS[max(size - 8, 0)]
        return first, more | np.uint64(size) << np.uint64(56)
    mixed = seeds[0]
    for place in range(begin, begin + size - 8, 8):
        mixed = _mixed(mixed ^ _eight_bytes(text, np.uint64(place)), seeds[1])
    mixed = _mixed(mixed ^ _eight_bytes(text, np.uint64(begin + size - 8)), seeds[2])
    return mixed, np.uint64(size) | _LONG_MARK


@compiled
def _find(
    slots: Array, keys: Array, text: Array, starts: Array, of: Array, begin: int, size: int, first: int, more: int,
    hashed: int,
) -> int:  # fmt: skip
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
def _hashed(first: int, more: int, seeds: Array) -> int:
    return _mixed(first ^ seeds[3], more ^ seeds[4])


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
def _longer(array: Array, used: int, least: int) -> Array:
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
def _decoded(data: Array, i: int, end: int) -> tuple[int, int]:
    """The code point that begins at a byte of 128 or more, and its length; 0 and 1 for a byte that begins none."""
    first = np.int64(data[i])
    if 0xC2 <= first < 0xE0 and i + 1 < end:
        return (first & 0x1F) << 6 | np.int64(data[i + 1] & 0x3F), 2
    if 0xE0 <= first < 0xF0 and i + 2 < end:
        return (first & 0x0F) << 12 | np.int64(data[i + 1] & 0x3F) << 6 | np.int64(data[i + 2] & 0x3F), 3
    if 0xF0 <= first < 0xF5 and i + 3 < end:
        low = np.int64(data[i + 2] & 0x3F) << 6 | np.int64(data[i + 3] & 0x3F)
        point = (first & 0x07) << 18 | np.int64(data[i + 1] & 0x3F) << 12 | low
        return (point if point < 0x110000 else 0), 4
    return 0, 1


@compiled
def _written(scratch: Array, k: int, point: int) -> int:
    """Write a code point in UTF-8; the place behind it."""
    if point < 0x80:
        scratch[k] = point
        return k + 1
    if point < 0x800:
        scratch[k], scratch[k + 1] = 0xC0 | point >> 6, 0x80 | point & 0x3F
        return k + 2
    if point < 0x10000:
        scratch[k], scratch[k + 1], scratch[k + 2] = 0xE0 | point >> 12, 0x80 | (point >> 6) & 0x3F, 0x80 | point & 0x3F
        return k + 3
    scratch[k], scratch[k + 1] = 0xF0 | point >> 18, 0x80 | (point >> 12) & 0x3F
    scratch[k + 2], scratch[k + 3] = 0x80 | (point >> 6) & 0x3F, 0x80 | point & 0x3F
    return k + 4


@compiled
def _ascii_words(
    data: Array, i: int, end: int, lower: bool, shortest: int, scratch: Array, k: int, begins: Array, stops: Array, words: int
) -> int:
    """Copy a text to `scratch` and find where its words begin and stop there; their number, or -1 if not all is ASCII.

    Letters are found 64 at a time, as bits.
    """
    carry, at, begun, stopped = np.uint64(0), 0, words, words
    while at < end - i:
        if at + 64 > end - i:
            for b in range(64):
                scratch[k + at + b] = data[i + at + b] if at + b < end - i else 0
            beyond = _copy_block(scratch, np.uint64(k + at), scratch, np.uint64(k + at), lower)
        else:
            beyond = _copy_block(data, np.uint64(i + at), scratch, np.uint64(k + at), lower)
        if beyond != 0:
            return -1
        letters = _letters(scratch, np.uint64(k + at))
        shifted = (letters << _ONE) | carry
        carry = letters >> np.uint64(63)
        edges = letters & ~shifted
        while edges != 0:
            begins[begun] = k + at + np.int64(_lowest(edges))
            begun += 1
            edges &= edges - _ONE
        edges = shifted & ~letters
        while edges != 0:
            stops[stopped] = k + at + np.int64(_lowest(edges))
            stopped += 1
            edges &= edges - _ONE
        at += 64
    if stopped < begun:
        stops[stopped] = k + end - i
    for t in range(words, begun):
        begins[words], stops[words] = begins[t], stops[t]
        words += stops[t] - begins[t] >= shortest
    return words


@compiled
def _unicode_words(
    data: Array, i: int, end: int, folded: Array, pool: Array, shortest: int, scratch: Array, k: int, begins: Array,
    stops: Array, words: int,
) -> tuple[int, int, Array]:  # fmt: skip
    """Write the words of a text to `scratch`: their number, where it is free, and scratch, which may have grown."""
    begin, length = k, 0
    while True:
        point, step, several = 0, 1, 1
        if i < end:
            if data[i] < 128:
                point = folded[data[i]]
            else:
                point, step = _decoded(data, i, end)
                point = folded[point]
            if point < 0:  # it becomes several characters, of which some may be no letters
                several = pool[-point]
        for part in range(several):
            one = pool[1 - point + part] if point < 0 else point
            if one > 0:
                if scratch.size < k + end - i + 128:
                    scratch = _longer(scratch, k, k + end - i + 128)
                k = _written(scratch, k, one)
                length += 1
                continue
            if length >= shortest:
                begins[words], stops[words] = begin, k
                words += 1
                begin = k
            k = begin
            length = 0
        if i >= end:
            return words, k, scratch
        i += step


@compiled
def find_words(
    data: Array, offsets: Array, present: Array, folded: Array, pool: Array, lower: bool, shortest: int
) -> tuple[Array, Array, Array, Array]:
    """The words of texts, each character as `folded` has it: their bytes, where they begin and stop, where texts do.

    A character becomes folded[c], none of a word if that is 0; if it is negative, several, which `pool` has.
    """
    rows = offsets.size - 1
    total = offsets[rows] - offsets[0]
    scratch = np.empty(total + 128, dtype=np.uint8)
    begins, stops = np.empty(total // 4 + 64, dtype=np.int64), np.empty(total // 4 + 64, dtype=np.int64)
    texts = np.zeros(rows + 1, dtype=np.int64)
    words, k = 0, 0
    for row in range(rows):
        if present[row]:
            i, end = offsets[row], offsets[row + 1]
            if scratch.size < k + end - i + 128:
                scratch = _longer(scratch, k, k + end - i + 128)
            if begins.size < words + (end - i) // 2 + 8:
                begins = _longer(begins, words, words + (end - i) // 2 + 8)
                stops = _longer(stops, words, words + (end - i) // 2 + 8)
            found = _ascii_words(data, i, end, lower, shortest, scratch, k, begins, stops, words)
            if found >= 0:
                k += end - i
                words = found
            else:
                if begins.size < words + 2 * (end - i) + 8:
                    begins = _longer(begins, words, words + 2 * (end - i) + 8)
                    stops = _longer(stops, words, words + 2 * (end - i) + 8)
                words, k, scratch = _unicode_words(
                    data, i, end, folded, pool, shortest, scratch, k, begins, stops, words
                )
        texts[row + 1] = words
    return scratch, begins, stops, texts


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
            several, point, step = 1, 0, 1
            if i < end:
                if data[i] < 128:
                    point = folded[data[i]]
                else:
                    point, step = _decoded(data, i, end)
                    point = 0xFFFD if point == 0 else folded[point]
                if point < 0:
                    several = pool[-point]
            if scratch.size < k + 8 * several + 64:
                scratch = _longer(scratch, k, k + end - i + 8 * several + 64)
            if begins.size < count + several + 8:
                begins = _longer(begins, count, count + several + 8)
                stops = _longer(stops, count, count + several + 8)
            if groups.size < group + 4:
                groups = _longer(groups, group + 1, group + 4)
            for part in range(several):
                one = pool[1 - point + part] if point < 0 else point
                if i < end and one >= SPACE:
                    blanks += 1
                    last_blank = one - SPACE
                    continue
                ended = in_words and (blanks > 0 or i >= end) and groups[group] < count
                if ended or (blanks > 0 and not in_words):
                    begins[count] = k
                    k = _written(scratch, k, last_blank if blanks == 1 and not in_words else 32)
                    stops[count] = k
                    count += 1
                if ended:
                    group += 1
                    groups[group] = count
                blanks = 0
                if i < end:
                    if in_words and groups[group] == count:
                        begins[count] = k
                        k = _written(scratch, k, 32)
                        stops[count] = k
                        count += 1
                    begins[count] = k
                    k = _written(scratch, k, one)
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
                    numbers = _longer(numbers, count, count + units + 1)
                for t in range(groups[g], groups[g + 1] - together + 1):
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
                            text = _longer(text, starts[known], starts[known] + size + SPARE)
                        if known + 2 > starts.size:
                            starts = _longer(starts, known + 1, 0)
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
def _bucket(text: Array, begin: int, size: int, buckets: int, seeds: Array) -> int:
    """The bucket of a word, the same on every machine."""
    first, more = _key(text, begin, size, seeds)
    return np.int64(_hashed(first, more, seeds) % np.uint64(buckets))


@compiled
def word_buckets(text: Array, starts: Array, buckets: int, seeds: Array, out: Array) -> None:
    """The bucket of each word; `text` has seven bytes more than they."""
    for k in range(starts.size - 1):
        out[k] = _bucket(text, starts[k], starts[k + 1] - starts[k], buckets, seeds)


@compiled
def count_numbers(numbers: Array, begins: Array, labels: Array, weights: Array, table: Array) -> None:
    """Add the weight of each text to table[word, class] for each of its words, as often as it is there."""
    for row in range(begins.size - 1):
        c, w = labels[row], weights[row]
        if c < 0 or w == 0.0:
            continue
        for k in range(begins[row], begins[row + 1]):
            table[np.uint64(numbers[k]), np.uint64(c)] += w


@compiled
def gather_numbers(numbers: Array, begins: Array, size: int) -> tuple[Array, Array, Array]:
    """The rows in CSR form: how often each word is in each text."""
    place = np.full(size, -1, dtype=np.int64)
    data = np.empty(numbers.size, dtype=np.float64)
    indices = np.empty(numbers.size, dtype=np.int32)
    indptr = np.zeros(begins.size, dtype=np.int64)
    count = 0
    for row in range(begins.size - 1):
        first = count
        for k in range(begins[row], begins[row + 1]):
            word = np.uint64(numbers[k])
            if place[word] < first:
                place[word] = count
                indices[count] = word
                data[count] = 1.0
                count += 1
            else:
                data[place[word]] += 1.0
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
def _compared(a: Array, a_begin: int, a_end: int, b: Array, b_begin: int, b_end: int) -> int:
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
def add_amounts(
    data: Array, indices: Array, indptr: Array, labels: Array, weights: Array, table: Array
) -> None:
    """Add weight * amount of each row in CSR form to table[column, class]."""
    for row in range(indptr.size - 1):
        c, w = labels[row], weights[row]
        if c < 0 or w == 0.0:
            continue
        for k in range(indptr[row], indptr[row + 1]):
            table[np.uint64(indices[k]), np.uint64(c)] += w * data[k]


@compiled
def log_shares(counts: Array, alpha: float, bottom: Array, others: bool, out: Array) -> None:
    """The logarithm of (count + alpha) / bottom, word by class; with `others` what it lacks. Most counts are small."""
    logs = np.log(np.arange(64) + alpha)
    log_bottom = np.log(bottom)
    for j in range(counts.shape[0]):
        for c in range(counts.shape[1]):
            count = counts[j, c]
            whole = np.int64(count) if count < 64.0 else 64
            value = (logs[whole] if whole < 64 and whole == count else np.log(count + alpha)) - log_bottom[c]
            out[j, c] = -max(value, np.log(1e-300)) if others else value


@compiled
def lift(count: float, share: float, total: float, unit: float, linear: float) -> float:
    """What a word says of a class: the logarithm of how much more probable it makes the class, or a part linearly.

    `count` of the `total` of the word are in the class, which has this share of all counts; `unit` is added.
    """
    lifted = ((count / share if share > 0.0 else 0.0) + unit) / (total + unit)
    return (1.0 - linear) * np.log(lifted) + linear * (lifted - 1.0)


@compiled
def log_lifts(counts: Array, sums: Array, unit: float, linear: float, out: Array) -> None:
    """The lift of each word in each class."""
    every = sums.sum()
    for j in range(counts.shape[0]):
        total = 0.0
        for c in range(counts.shape[1]):
            total += counts[j, c]
        for c in range(counts.shape[1]):
            out[j, c] = lift(counts[j, c], sums[c] / every, total, unit, linear)
