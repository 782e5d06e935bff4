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
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from deciban.errors import ModelFileError

MAGIC = b"deciban\n"
CHECKSUM_BYTES = 32

# The most lists and objects in a header; each column of a model has a few.
MOST_NESTED = 1 << 20

# The most bytes of a header, and how many bytes of a file are read at once.
LONGEST_HEADER = 1 << 30
READ_BYTES = 1 << 22

# How every header begins.
HEADER_START = b'{"format":'

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
    """Whether a file begins as a model file does; pipes and devices are not opened."""
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def read(path: str | os.PathLike[str]) -> tuple[Any, memoryview]:
    """The header and the bytes of the arrays of a model file; a ModelFileError for a damaged or any other file."""
    if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
        raise ModelFileError(f"{path}: this is a pipe or a device, and no model file; give the name of a file")
    with open(path, "rb") as file:
        return read_from(file, os.fstat(file.fileno()).st_size, path)


def read_from(file: BinaryIO, size: int, path: Any) -> tuple[Any, memoryview]:
    """The same of a file that is open and has so many bytes; `path` is what messages call it.

    No more is read than a model with this header has, and nothing is kept unless the checksum is right.
    """
    start = file.read(16 + len(HEADER_START))
    if not start.startswith(MAGIC):
        raise ModelFileError(f"{path}: this is not a model file; one is written by `deciban fit` or clf.save()")
    length = int.from_bytes(start[8:16], "little")
    fits = length <= LONGEST_HEADER and 16 + length + CHECKSUM_BYTES <= size
    if start[16:] != HEADER_START or length % 8 or not fits:  # before much is read
        raise _damaged(path, f"{size} bytes do not hold the header it begins with")
    header = _header(path, _text(path, file, length))
    held = bytes_of_arrays(header)
    if 16 + length + held + CHECKSUM_BYTES != size:
        raise _damaged(path, f"a model with its header has {16 + length + held + CHECKSUM_BYTES} bytes, not {size}")
    if _checksum(file, size - CHECKSUM_BYTES) != file.read(CHECKSUM_BYTES):
        raise _damaged(path, "its checksum is not that of its content")
    content = bytearray(held)
    file.seek(16 + length)
    if file.readinto(content) != held:  # type: ignore[attr-defined]  # files and BytesIO have it
        raise ModelFileError(f"{path}: the file became shorter while it was read; try again")
    return header, memoryview(content)


def _damaged(path: Any, what: str) -> ModelFileError:
    return ModelFileError(f"{path}: the file is damaged: {what}; restore it from a copy")


def _text(path: Any, file: BinaryIO, length: int) -> bytes:
    """The bytes of the header; reading stops at the first that cannot be text."""
    file.seek(16)
    pieces = []
    while length > 0:
        piece = file.read(min(length, READ_BYTES))
        if not piece or b"\0" in piece:
            raise _damaged(path, "its header is no text")
        pieces.append(piece)
        length -= len(piece)
    return b"".join(pieces)


def _checksum(file: BinaryIO, size: int) -> bytes:
    """The SHA-256 of the first `size` bytes."""
    file.seek(0)
    digest = hashlib.sha256()
    while size > 0 and (piece := file.read(min(size, READ_BYTES))):
        digest.update(piece)
        size -= len(piece)
    return digest.digest()


def bytes_of_arrays(header: Any) -> int:
    """The bytes that the arrays of a header take, with padding; what is no array is refused when it is read."""
    total, waiting = 0, [header]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            array = node["array"] if node.keys() == {"array"} else None
            if isinstance(array, list) and len(array) == 2 and isinstance(array[1], list):
                kind, shape = array
                known = isinstance(kind, str) and kind in ARRAY_TYPES
                if known and all(type(size) is int and size >= 0 for size in shape):
                    held = ARRAY_TYPES[kind].itemsize * math.prod(shape)
                    total += held + -held % 8
            waiting += node.values()
        elif isinstance(node, list):
            waiting += [inner for inner in node if isinstance(inner, dict | list)]
    return total


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
        raise _damaged(path, f"its header cannot be read ({reason})") from None


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
        if not isinstance(kind, str) or kind not in ARRAY_TYPES or not isinstance(shape, list):
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
        """A ValueError if bytes are left over."""
        if self._at != len(self._content):
            raise ValueError(f"{len(self._content) - self._at} bytes are left over behind its arrays")
