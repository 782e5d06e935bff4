"""Numbers and arrays as strict JSON has them, exact to the last bit.

A number that JSON has no way to write is a text: "inf", "-inf", "nan". A short array is a list; a long one an object of
one entry, whose name says what the bytes are (f8, i4, u2, u1: NumPy's names, little-endian) and whose value is base64.
"""

import base64
import math
from typing import Any

import numpy as np
import numpy.typing as npt

from deciban.util.arrays import Floats

# Arrays of so many numbers or fewer are written out.
SHORT_ARRAY = 12

# The most bytes of a fixed-point number.
MOST_FIXED_BYTES = 6


def number(value: float) -> float | str:
    """A double as JSON has it.

    >>> number(0.1), number(float("-inf"))
    (0.1, '-inf')
    """
    if math.isfinite(value):
        return float(value)
    return "nan" if math.isnan(value) else "inf" if value > 0.0 else "-inf"


def floats(array: npt.ArrayLike) -> list[Any] | dict[str, str]:
    """Doubles, row after row.

    >>> floats([1.5, float("inf")])
    [1.5, 'inf']
    >>> floats(np.zeros(13))["f8"][:8]
    'AAAAAAAA'
    """
    flat = np.asarray(array, dtype=np.float64).ravel()
    return [number(value) for value in flat.tolist()] if flat.size <= SHORT_ARRAY else _bytes(flat, "f8")


def integers(array: npt.ArrayLike) -> list[int] | dict[str, str]:
    """Whole numbers of at most 32 bits, row after row, in as few bytes as hold them all.

    >>> integers([1, -1])
    [1, -1]
    >>> list(integers(np.full(13, 300)))
    ['u2']
    """
    flat = np.asarray(array, dtype=np.int64).ravel()
    if flat.size <= SHORT_ARRAY:
        return [int(value) for value in flat.tolist()]
    least, most = int(flat.min()), int(flat.max())
    return _bytes(flat, "i4" if least < 0 or most > 0xFFFF else "u2" if most > 0xFF else "u1")


def amounts(array: npt.ArrayLike) -> Any:
    """Numbers that are mostly counts: as integers where all of them are."""
    flat = np.asarray(array, dtype=np.float64).ravel()
    whole = flat.size and np.abs(flat).max() < 1 << 31 and np.array_equal(flat, np.floor(flat))
    return integers(flat.astype(np.int64)) if whole else floats(flat)


def fixed(array: Floats, error: float) -> Any:
    """Finite numbers, each as low + step * (a whole number of so few bytes that none is off by more than `error`);
    doubles where six bytes are not enough."""
    flat = np.asarray(array, dtype=np.float64).ravel()
    low, high = float(flat.min(initial=0.0)), float(flat.max(initial=0.0))
    for size in range(1, MOST_FIXED_BYTES + 1):
        most = (1 << 8 * size) - 1
        step = max((high - low) / most, 1e-300)  # numbers that are all but equal are `low`
        if 0.5 * step <= error:
            places = np.rint((flat - low) / step).clip(0, most).astype("<u8")
            parts = np.ascontiguousarray(places).view("u1").reshape(-1, 8)[:, :size]
            return {"low": low, "step": step, "size": size, "places": _bytes(parts.ravel(), "u1")}
    return floats(flat)


def runs(points: npt.ArrayLike) -> list[int]:
    """Rising whole numbers as runs of neighbours: how many are left out, how many follow, and so on.

    >>> runs([3, 4, 5, 9])
    [3, 3, 3, 1]
    """
    flat = np.asarray(points, dtype=np.int64).ravel()
    if not flat.size:
        return []
    breaks = np.flatnonzero(np.diff(flat) != 1)
    first, last = flat[np.append(0, breaks + 1)], flat[np.append(breaks, flat.size - 1)]
    gaps = first - np.append(0, last[:-1] + 1)
    return [int(value) for value in np.stack([gaps, last - first + 1], axis=1).ravel()]


def _bytes(flat: npt.NDArray[Any], kind: str) -> dict[str, str]:
    return {kind: base64.b64encode(np.ascontiguousarray(flat.astype(f"<{kind}")).tobytes()).decode()}
