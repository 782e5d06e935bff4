"""Numbers and arrays of the model's JSON; see encoding.py."""

from __future__ import annotations

import base64
import math
import struct
from typing import Any

# What the bytes of an array are, by its name in the JSON, to the module struct.
_BYTE_CODES = {"f8": ("d", 8), "i4": ("i", 4), "u2": ("H", 2), "u1": ("B", 1)}


def decoded_number(value: float | str) -> float:
    """A double; those that JSON does not have are the texts "inf", "-inf" and "nan"."""
    return float(value)


def decoded_array(encoded: Any) -> list[Any]:
    """The numbers of a list or of base64, little-endian whatever the machine is."""
    if isinstance(encoded, list):
        return [decoded_number(value) if isinstance(value, str) else value for value in encoded]
    ((kind, text),) = encoded.items()
    data = base64.b64decode(text)
    code, size = _BYTE_CODES[kind]
    return list(struct.unpack(f"<{len(data) // size}{code}", data))


def decoded_fixed(encoded: Any) -> list[Any]:
    """Fixed-point numbers of a few bytes each, or doubles."""
    if not isinstance(encoded, dict) or "places" not in encoded:
        return decoded_array(encoded)
    low, step, size = float(encoded["low"]), float(encoded["step"]), encoded["size"]
    parts = bytes(decoded_array(encoded["places"]))
    starts = range(0, len(parts), size)
    return [low + step * int.from_bytes(parts[start : start + size], "little") for start in starts]


def zeros(size: int) -> list[float]:
    """So many zeros."""
    return [0.0] * size


def log(value: float) -> float:
    """The natural logarithm; of 0 it is -inf, of what has none NaN."""
    if value > 0.0:
        return math.log(value)
    return -math.inf if value == 0.0 else math.nan


def largest(values: list[float]) -> float:
    """The largest number, -inf of none."""
    return max(values, default=-math.inf)
