"""What characters are to Python, so that JavaScript cuts texts into the same words: its own tables may be newer."""

import unicodedata
from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np

from deciban.export.encoding import runs
from deciban.families.text.tokens import CASED, COMPOSED, POINTS, folding


@cache
def letters() -> list[int]:
    """The code points that words are made of, as runs."""
    return runs(np.flatnonzero(folding(False, False, False).folded))


@cache
def spaces() -> list[int]:
    """The code points that are white space, as runs; NUL is one of them."""
    return runs(np.flatnonzero(folding(False, False, True).folded != _as_they_are()))


def _as_they_are() -> np.ndarray:
    points = np.arange(POINTS)
    points[0xD800:0xE000] = 0xFFFD
    return points


@cache
def small_letters() -> dict[str, Any]:
    """What capital letters become: single: runs of (first, how many, how far apart, by how much they change); several:
    the few that become more than one character, each followed by these."""
    single, several = [], []
    for point in _characters(CASED):
        small = chr(point).lower()
        if len(small) > 1:
            several.append(chr(point) + small)
        elif small != chr(point):
            single.append((point, ord(small) - point))
    return {"single": _strides(single), "several": several}


def _strides(changes: list[tuple[int, int]]) -> list[list[int]]:
    """Points and their changes as runs of equal changes at equal distances."""
    found: list[list[int]] = []
    for point, change in changes:
        if found and found[-1][3] == change:
            first, count, step, _ = found[-1]
            if count == 1 or point == first + count * step:
                found[-1] = [first, count + 1, point - first if count == 1 else step, change]
                continue
        found.append([point, 1, 1, change])
    return found


@cache
def accents() -> dict[str, list[int]]:
    """The code points that have a decomposition, and those that are accents, as runs."""
    composed = [point for point in _characters(COMPOSED) if unicodedata.normalize("NFKD", chr(point)) != chr(point)]
    marks = [point for point in _characters(COMPOSED) if unicodedata.combining(chr(point))]
    return {"composed": runs(composed), "marks": runs(marks)}


def _characters(end: int) -> Iterable[int]:
    return (point for point in range(end) if not 0xD800 <= point < 0xE000)
