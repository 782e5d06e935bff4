"""Words in the order of their bytes."""

from typing import Any

import numpy as np

from deciban.kernels.bits import eight_bytes, swapped
from deciban.kernels.compiled import Array, compiled
from deciban.kernels.words import MASKS

_EIGHT = np.uint64(8)


@compiled
def _first_bytes(text: Array, begin: int, size: int) -> Any:
    """The first eight bytes of a word as a number that is in order as words are; missing ones are 0."""
    if begin + 8 <= text.size:
        return swapped(eight_bytes(text, np.uint64(begin)) & MASKS[min(size, 8)])
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
def _is_behind(text: Array, starts: Array, one: int, other: int) -> Any:
    """Whether a word comes after another one with the same first eight bytes."""
    begin, end, there, stop = starts[one], starts[one + 1], starts[other], starts[other + 1]
    for k in range(8, min(end - begin, stop - there)):
        if text[begin + k] != text[there + k]:
            return text[begin + k] > text[there + k]
    return end - begin > stop - there


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
