"""Hashes of the contents of rows.

The hash of a cell is PostgreSQL's (`hashfloat8extended`, `hashtextextended`: Bob Jenkins' lookup3), and that of a row
is `hash_record_extended`, so that a server computes the same hashes.
"""

from typing import Any, NamedTuple

import numpy as np

from deciban.kernels.compiled import Array, compile_kernel, inner
from deciban.kernels.instructions import eight_bytes
from deciban.util.arrays import CONTENT_SEED, SLOTS_PER_CONTENT

# PostgreSQL starts with this number plus the length of the hashed bytes.
_START = 0x9E3779B9 + 3923095


class Contents(NamedTuple):
    """Counts of row contents: an open-addressing table by hash, 0 in an empty slot.

    The count of a sampled content is negative.
    """

    keys: Array
    counts: Array


@inner
def _rotate(x: Any, k: Any) -> Any:
    return np.uint32(np.uint32(x << k) | np.uint32(x >> np.uint32(np.uint32(32) - k)))


@inner
def _mix(a: Any, b: Any, c: Any) -> tuple[Any, Any, Any]:
    """Return the result of lookup3's `mix` for three 32-bit numbers."""
    a = np.uint32(np.uint32(a - c) ^ _rotate(c, np.uint32(4)))
    c = np.uint32(c + b)
    b = np.uint32(np.uint32(b - a) ^ _rotate(a, np.uint32(6)))
    a = np.uint32(a + c)
    c = np.uint32(np.uint32(c - b) ^ _rotate(b, np.uint32(8)))
    b = np.uint32(b + a)
    a = np.uint32(np.uint32(a - c) ^ _rotate(c, np.uint32(16)))
    c = np.uint32(c + b)
    b = np.uint32(np.uint32(b - a) ^ _rotate(a, np.uint32(19)))
    a = np.uint32(a + c)
    c = np.uint32(np.uint32(c - b) ^ _rotate(b, np.uint32(4)))
    b = np.uint32(b + a)
    return a, b, c


@inner
def _final(a: Any, b: Any, c: Any) -> Any:
    """Return the result of lookup3's `final`, as the two 32-bit numbers of the hash."""
    c = np.uint32(np.uint32(c ^ b) - _rotate(b, np.uint32(14)))
    a = np.uint32(np.uint32(a ^ c) - _rotate(c, np.uint32(11)))
    b = np.uint32(np.uint32(b ^ a) - _rotate(a, np.uint32(25)))
    c = np.uint32(np.uint32(c ^ b) - _rotate(b, np.uint32(16)))
    a = np.uint32(np.uint32(a ^ c) - _rotate(c, np.uint32(4)))
    b = np.uint32(np.uint32(b ^ a) - _rotate(a, np.uint32(14)))
    c = np.uint32(np.uint32(c ^ b) - _rotate(b, np.uint32(24)))
    return np.uint64(b) << np.uint64(32) | np.uint64(c)


@inner
def _begin(size: int) -> tuple[Any, Any, Any]:
    """Return the initial three numbers for this number of bytes."""
    start = np.uint32(_START + size)
    high, low = np.uint32(CONTENT_SEED >> 32), np.uint32(CONTENT_SEED & 0xFFFFFFFF)
    return _mix(np.uint32(start + high), np.uint32(start + low), start)


@compile_kernel
def hash_numbers(bits: Array, out: Array) -> None:
    """Add the next cell of each row to its hash: a double, given by its bits; NaN is a missing cell."""
    a, b, c = _begin(8)
    magnitude, infinity = np.uint64(0x7FFFFFFFFFFFFFFF), np.uint64(0x7FF0000000000000)
    for i in range(out.size):
        number = bits[i]
        low, high = np.uint32(number & np.uint64(0xFFFFFFFF)), np.uint32(number >> np.uint64(32))
        cell = _final(np.uint32(a + low), np.uint32(b + high), c)
        size = number & magnitude
        if size == np.uint64(0):
            cell = np.uint64(CONTENT_SEED)
        elif size > infinity:
            cell = np.uint64(0)
        out[i] = out[i] * np.uint64(31) + cell


@compile_kernel
def hash_texts(offsets: Array, text: Array, there: Array, out: Array) -> None:
    """Add the next cell of each row to its hash: the bytes of a text.

    `text` may be read up to twelve bytes beyond the last one. there: flags of present cells; if empty, all are present.
    """
    for i in range(out.size):
        cell = np.uint64(0)
        if there.size == 0 or there[i]:
            place, size = offsets[i], offsets[i + 1] - offsets[i]
            a, b, c = _begin(size)
            while size >= 12:
                first = eight_bytes(text, np.uint64(place))
                more = eight_bytes(text, np.uint64(place + 8))
                a = np.uint32(a + np.uint32(first & np.uint64(0xFFFFFFFF)))
                b = np.uint32(b + np.uint32(first >> np.uint64(32)))
                c = np.uint32(c + np.uint32(more & np.uint64(0xFFFFFFFF)))
                a, b, c = _mix(a, b, c)
                place, size = place + 12, size - 12
            first = eight_bytes(text, np.uint64(place))
            if size < 8:
                first &= (np.uint64(1) << np.uint64(8 * size)) - np.uint64(1)
            else:  # the lowest byte of c is that of the length
                rest = (np.uint64(1) << np.uint64(8 * (size - 8))) - np.uint64(1)
                more = eight_bytes(text, np.uint64(place + 8)) & rest
                c = np.uint32(c + np.uint32((more << np.uint64(8)) & np.uint64(0xFFFFFFFF)))
            a = np.uint32(a + np.uint32(first & np.uint64(0xFFFFFFFF)))
            b = np.uint32(b + np.uint32(first >> np.uint64(32)))
            cell = _final(a, b, c)
        out[i] = out[i] * np.uint64(31) + cell


@inner
def _slot_of(key: Any, keys: Array) -> Any:
    """Return the slot of a content in the table, or the empty slot where it belongs."""
    mask = np.uint64(keys.size - 1)
    slot = (key * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20) & mask
    while keys[slot] != key and keys[slot] != np.uint64(0):
        slot = slot + np.uint64(1) & mask
    return slot


@compile_kernel
def count_contents(contents: Contents, hashes: Array, start: int, known: int, limit: float, drawn: Array) -> Any:
    """Count rows by their hashes (never 0), from row `start` on; `known` contents are in the table.

    drawn: set to 1 for a row whose content was not sampled yet and whose first copy now has a priority within the
    limit. Return the row to continue from, which is past the last one unless the table is full, and the number of known
    contents.
    """
    keys, counts = contents.keys, contents.counts
    full = keys.size // SLOTS_PER_CONTENT
    for i in range(start, hashes.size):
        key = hashes[i]
        slot = _slot_of(key, keys)
        if keys[slot] == np.uint64(0):
            if known >= full:
                return i, known
            keys[slot] = key
            known += 1
        if counts[slot] < 0:
            counts[slot] -= 1
            continue
        counts[slot] += 1
        lot = (np.float64(key >> np.uint64(11)) + 0.5) * 2.0**-53
        if lot <= limit * counts[slot]:
            counts[slot] = -counts[slot]
            drawn[i] = 1
    return hashes.size, known


@compile_kernel
def look_up_contents(contents: Contents, hashes: Array, out: Array) -> None:
    """Set out[i] to the count of a content that is in the table."""
    for i in range(hashes.size):
        out[i] = abs(contents.counts[_slot_of(hashes[i], contents.keys)])


@compile_kernel
def release_contents(contents: Contents, hashes: Array) -> None:
    """Mark contents that are in the table as not sampled."""
    for i in range(hashes.size):
        slot = _slot_of(hashes[i], contents.keys)
        contents.counts[slot] = abs(contents.counts[slot])


@compile_kernel
def move_contents(before: Contents, after: Contents, limit: float, furthest: float) -> int:
    """Move the contents of a table to an empty one: all sampled ones, and those close to being sampled.

    Return their number. The distance of a content is the excess of its hash, as a share of all, over the limit times
    its count.
    """
    known = 0
    for k in range(before.keys.size):
        key = before.keys[k]
        if key == np.uint64(0):
            continue
        count = before.counts[k]
        if count < 0 or (key >> np.uint64(11)) * 2.0**-53 - limit * count <= furthest:
            slot = _slot_of(key, after.keys)
            after.keys[slot] = key
            after.counts[slot] = count
            known += 1
    return known
