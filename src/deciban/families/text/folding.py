"""What characters become in the words of a vocabulary: small letters, letters without accents, nothing."""

import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import numpy as np

from deciban.util.arrays import Codes

# There are so many code points, of which so many are looked at together. Beyond CASED no letter has a capital form,
# beyond COMPOSED no character has accents or is one.
POINTS = 0x110000
POINTS_AT_ONCE = 1 << 12
CASED = 0x20000
COMPOSED = 0x32000


class Folding(NamedTuple):
    """What each code point becomes: folded[point], 0 if it is no part of a word.

    Where that is negative, it becomes several: pool[-folded[point]] has their number, behind which they stand.
    """

    folded: Codes
    pool: Codes


# For texts that are ASCII, which kernels fold by themselves.
ASCII_FOLDING = Folding(np.zeros(128, dtype=np.int32), np.zeros(1, dtype=np.int32))


def folded_text(text: str, lowercase: bool, strip_accents: bool) -> str:
    """A text as its words are written in the vocabulary."""
    text = text.lower() if lowercase else text
    if not strip_accents or text.isascii():
        return text
    return "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))


@cache
def folding(lowercase: bool, strip_accents: bool, characters: bool) -> Folding:
    """The table for `find_words` or, with `characters`, for `find_characters`, where white space is marked.

    It is made from Python's own tables, once, and only where there is a text that is not ASCII.
    """
    from deciban.kernels.texts import SPACE

    folded, spaces = _characters() if characters else (_word_characters(), set[int]())

    def one(point: int) -> int:
        """A character as it is in a word: 0 if it is none, marked if it is white space."""
        return (point or ord(" ")) + SPACE if point in spaces else int(folded[point])

    pool, becomes = [0], {point: one(point) for point in spaces}
    for point in range(COMPOSED if strip_accents else CASED if lowercase else 0):
        if 0xD800 <= point < 0xE000:
            continue
        text = folded_text(chr(point), lowercase, strip_accents)
        if len(text) == 1 and text != chr(point):
            becomes[point] = one(ord(text))
        elif len(text) != 1:
            becomes[point] = -len(pool)
            pool += [len(text), *(one(ord(c)) for c in text)]
    folded[list(becomes)] = list(becomes.values())
    return Folding(folded, np.array(pool, dtype=np.int32))


def _word_characters() -> Codes:
    """Each code point that may be part of a word, 0 for all others."""
    found = np.zeros(POINTS, dtype=np.int32)
    for first, block in _blocks():
        for run in re.finditer(r"\w+", block):
            found[first + run.start() : first + run.end()] = np.arange(first + run.start(), first + run.end())
    return found


def _characters() -> tuple[Codes, set[int]]:
    """Each code point as it is, those that are no character replaced, and those that are white space."""
    found = np.arange(POINTS, dtype=np.int32)
    found[0xD800:0xE000] = 0xFFFD
    spaces = {first + space.start() for first, block in _blocks() for space in re.finditer(r"\s", block)}
    return found, spaces | {0}  # NUL is no part of a word


def _blocks() -> Iterator[tuple[int, str]]:
    """All characters, some at a time, with the first of them: all at once would need a hundred megabytes."""
    for first in range(0, POINTS, POINTS_AT_ONCE):
        points = np.arange(first, first + POINTS_AT_ONCE, dtype="<u4")
        yield first, points.tobytes().decode("utf-32-le", "surrogatepass")
