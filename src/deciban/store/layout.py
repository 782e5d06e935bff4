"""The bytes of a model file: a header in JSON, numbers behind it, and a checksum. `docs/model-file.md` describes it.

    magic     8 bytes   "deciban" and a newline
    length    8 bytes   of the header, little-endian
    header    JSON in UTF-8, filled up with spaces to a multiple of 8 bytes
    arrays    doubles and 64-bit integers, little-endian, and bytes, filled up with zeros to a multiple of 8; rows
              first, in the order in which the header names them
    checksum  32 bytes  SHA-256 of all that stands before

Nothing is left between the arrays, before or after them, so that every byte has one meaning and there are no offsets
that could be wrong.
"""

import hashlib
import json
import math
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from deciban.errors import ModelFileError

MAGIC = b"deciban\n"
CHECKSUM_BYTES = 32

# Lists and objects in a header; each column of a model has a few.
MOST_NESTED = 1 << 20

# How every header begins.
FIRST = b'{"format":'

ARRAY_TYPES: dict[str, np.dtype[Any]] = {
    "float64": np.dtype("<f8"),
    "int64": np.dtype("<i8"),
    "int32": np.dtype("<i4"),
    "uint8": np.dtype("u1"),
}


def packed(header: Any, arrays: Sequence[npt.NDArray[Any]]) -> bytes:
    """The whole file."""
    text = json.dumps(header, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    body = [MAGIC, len(text).to_bytes(8, "little"), text]
    for array in arrays:
        held = np.ascontiguousarray(array, dtype=ARRAY_TYPES[array.dtype.name]).tobytes()
        body += [held, bytes(-len(held) % 8)]
    content = b"".join(body)
    return content + hashlib.sha256(content).digest()


def is_model(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins as a model file does."""
    with open(path, "rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def read(path: str | os.PathLike[str]) -> tuple[Any, memoryview]:
    """The header and the bytes of the arrays of a file that is whole; a ModelFileError for any other."""
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        start = file.read(16 + len(FIRST))
        if not start.startswith(MAGIC):
            raise ModelFileError(f"{path}: this is not a model file; one is written by `deciban fit` or clf.save()")
        length = int.from_bytes(start[8:16], "little")
        if start[16:] != FIRST or length % 8 or 16 + length + CHECKSUM_BYTES > size:  # before much is read
            raise ModelFileError(
                f"{path}: the file is damaged: {size} bytes do not hold the header it begins with; "
                f"restore it from a copy"
            )
        content = bytearray(size)
        file.seek(0)
        if file.readinto(content) != size:
            raise ModelFileError(f"{path}: the file became shorter while it was read; try again")
    whole = memoryview(content)
    if hashlib.sha256(whole[:-CHECKSUM_BYTES]).digest() != whole[-CHECKSUM_BYTES:]:
        raise ModelFileError(
            f"{path}: the file is damaged: its checksum is not that of its content; restore it from a copy"
        )
    return _header(path, bytes(whole[16 : 16 + length])), whole[16 + length : -CHECKSUM_BYTES]


def _header(path: Any, text: bytes) -> Any:
    try:
        if text.count(b"[") + text.count(b"{") > MOST_NESTED:  # a million empty lists would take seconds and gigabytes
            raise ValueError("it holds more lists than a model has")
        return json.loads(
            text.decode(),
            object_pairs_hook=_without_duplicates,
            parse_constant=_refuse_constant,
        )
    except (ValueError, RecursionError) as problem:
        reason = "it is nested too deeply" if isinstance(problem, RecursionError) else str(problem)
        raise ModelFileError(
            f"{path}: the file is damaged: its header cannot be read ({reason}); restore it from a copy"
        ) from None


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("it names something twice")
    return found


def _refuse_constant(text: str) -> Any:
    raise ValueError(f"{text} is not a number")


class ArrayReader:
    """The arrays behind a header, taken one after the other."""

    def __init__(self, content: memoryview) -> None:
        self._content = content
        self._at = 0

    def take(self, kind: Any, shape: Any) -> npt.NDArray[Any]:
        """The next array."""
        if kind not in ARRAY_TYPES or not isinstance(shape, list):
            raise ValueError(f"an array of type {kind!r} and shape {shape!r}")
        if not all(type(size) is int and size >= 0 for size in shape) or len(shape) > 8:
            raise ValueError(f"an array of shape {shape!r}")
        stop = self._at + ARRAY_TYPES[kind].itemsize * math.prod(shape)
        filled = stop + -stop % 8
        if filled > len(self._content):
            raise ValueError("its arrays are longer than the file")
        if any(self._content[stop:filled]):
            raise ValueError("there is something behind an array of bytes")
        array = np.frombuffer(self._content[self._at : stop], ARRAY_TYPES[kind]).reshape(shape)
        self._at = filled
        return np.asarray(array.astype(array.dtype.newbyteorder("=")))

    def finish(self) -> None:
        """Nothing may be left over."""
        if self._at != len(self._content):
            raise ValueError(f"{len(self._content) - self._at} bytes are left over behind its arrays")
