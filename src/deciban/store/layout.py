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
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from reprlib import repr as shortened
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from deciban.errors import ModelFileError, Place, UsageError

MAGIC = b"deciban\n"
CHECKSUM_BYTES = 32

# Bytes of a file that are read at once.
READ_BYTES = 1 << 22

# Bounds of a header, checked before its content is built, so that no short file takes long or much memory.
MAX_HEADER_BYTES = 1 << 28
MAX_LISTS = 1 << 20  # lists and objects; each column of a model has a few
MAX_VALUES = 1 << 24
MAX_DEPTH = 64  # of lists inside each other; models have about a dozen
MAX_NUMBER_DIGITS = 20  # of a whole number: those of 64 bits
MAX_DIMENSIONS = 8  # of an array

# How every header begins.
HEADER_START = b'{"format":'

ARRAY_TYPES: dict[str, np.dtype[Any]] = {
    "float64": np.dtype("<f8"),
    "int64": np.dtype("<i8"),
    "int32": np.dtype("<i4"),
    "uint8": np.dtype("u1"),
}


def packed(header: Any, arrays: Sequence[npt.NDArray[Any]]) -> bytes:
    """The whole file; a UsageError for a model that would be refused when it is read."""
    text = json.dumps(header, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    if excess := _excess(text):
        raise UsageError(f"a model file cannot hold {excess}", remedy="leave columns out, or merge rare categories")
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


class Content(NamedTuple):
    """The content of a model file. arrays: the bytes behind the header. sha256, size: of the whole file."""

    header: Any
    arrays: memoryview
    sha256: str
    size: int


@contextmanager
def opened(path: str | os.PathLike[str], name: Any = None) -> Iterator[BinaryIO]:
    """The file at `path`, open for reading; a ModelFileError for anything but a regular file, without waiting for it.

    name: what messages call the file; its path unless given.
    """
    refusal = ModelFileError(
        "this is a pipe or a device, not a model file",
        place=Place(str(path if name is None else name)),
        remedy="give the name of a file",
    )
    mode = os.stat(path).st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise refusal
    with open(path, "rb", opener=open_at_once) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):  # it was replaced since
            raise refusal
        yield file


def open_at_once(path: str, flags: int) -> int:
    """An opener for `open`: a pipe without a writer would be waited for."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def read(path: str | os.PathLike[str], name: Any = None) -> Content:
    """The content of a model file; a ModelFileError for a damaged or any other file.

    name: what messages call the file; its path unless given.
    """
    with opened(path, name) as file:
        return read_from(file, os.fstat(file.fileno()).st_size, path if name is None else name)


def read_from(file: BinaryIO, size: int, path: Any) -> Content:
    """The same of a file that is open and has so many bytes; `path` is what messages call it.

    No more is read than a model with this header has, and nothing is kept unless the checksum is right.
    """
    start = file.read(16 + len(HEADER_START))
    if not start.startswith(MAGIC):
        raise ModelFileError(
            "this is not a model file",
            place=Place(str(path)),
            remedy="`deciban fit` and BayesClassifier.save write one",
        )
    length = int.from_bytes(start[8:16], "little")
    fits = length <= MAX_HEADER_BYTES and 16 + length + CHECKSUM_BYTES <= size
    if start[16:] != HEADER_START or length % 8 or not fits:  # before much is read
        raise _damaged(path, f"{size} bytes do not hold the header it begins with")
    try:
        header = _parsed(_text(path, file, length))
        held = bytes_of_arrays(header, size)
    except (ValueError, RecursionError) as problem:
        reason = "its lists are nested too deeply" if isinstance(problem, RecursionError) else str(problem)
        raise _damaged(path, f"its header cannot be read ({reason})") from None
    if 16 + length + held + CHECKSUM_BYTES != size:
        raise _damaged(path, f"a model with its header has {16 + length + held + CHECKSUM_BYTES} bytes, not {size}")
    digest = _digest(file, size - CHECKSUM_BYTES)
    if (checksum := file.read(CHECKSUM_BYTES)) != digest.digest():
        raise _damaged(path, "its checksum is not that of its content")
    digest.update(checksum)
    content = bytearray(held)
    file.seek(16 + length)
    if file.readinto(content) != held:  # type: ignore[attr-defined]  # files and BytesIO have it
        raise ModelFileError("the file became shorter while it was read", place=Place(str(path)), remedy="try again")
    return Content(header, memoryview(content), digest.hexdigest(), size)


def sha256_of(path: str | os.PathLike[str]) -> str:
    """The SHA-256 of a file, which is not kept in memory."""
    with opened(path) as file:
        return str(_digest(file, os.fstat(file.fileno()).st_size).hexdigest())


def _damaged(path: Any, what: str) -> ModelFileError:
    return ModelFileError(f"the file is damaged: {what}", place=Place(str(path)), remedy="restore it from a copy")


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


def _digest(file: BinaryIO, size: int) -> Any:
    """The SHA-256 of the first `size` bytes, to which more can be added."""
    file.seek(0)
    digest = hashlib.sha256()
    while size > 0 and (piece := file.read(min(size, READ_BYTES))):
        digest.update(piece)
        size -= len(piece)
    return digest


def bytes_of_arrays(header: Any, most: int) -> int:
    """The bytes of all arrays that a header names, with padding; a ValueError if it cannot be that of `most` bytes.

    Arrays of unknown types are left to `ArrayReader`.
    """
    total, waiting = 0, [(header, 1)]
    while waiting:
        node, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise ValueError("its lists are nested too deeply")
        if isinstance(node, dict) and node.keys() == {"array"}:
            array = node["array"]
            known = isinstance(array, list) and len(array) == 2 and isinstance(array[0], str)
            if known and array[0] in ARRAY_TYPES:
                held = ARRAY_TYPES[array[0]].itemsize * _elements(array[1], most)
                total += held + -held % 8
                if total > most:
                    raise ValueError(f"its arrays have more than the {most:,} bytes of the file")
        inner = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
        waiting += [(one, depth + 1) for one in inner if isinstance(one, dict | list)]
    return total


def _elements(shape: Any, most: int) -> int:
    """The number of elements of an array; a ValueError for a shape of more than `most` in any direction."""
    if not isinstance(shape, list) or len(shape) > MAX_DIMENSIONS:
        raise ValueError(f"an array has the shape {shortened(shape)}")
    if not all(type(size) is int and 0 <= size <= most for size in shape):
        raise ValueError(f"an array has the shape {shortened(shape)}")
    return math.prod(shape)


def _excess(text: bytes) -> str:
    """What a header has too much of, by counting alone; empty if nothing."""
    if len(text) > MAX_HEADER_BYTES:
        return f"{len(text):,} bytes of names and categories"
    if (lists := text.count(b"[") + text.count(b"{")) > MAX_LISTS:
        return f"{lists:,} lists"
    if (values := text.count(b",")) > MAX_VALUES:
        return f"{values:,} values"
    return ""


def _parsed(text: bytes) -> Any:
    """The header; a ValueError or RecursionError where it is not one."""
    if excess := _excess(text):
        raise ValueError(f"it holds {excess}, more than a model has")
    return json.loads(
        text.decode(),
        object_pairs_hook=_without_duplicates,
        parse_constant=_refuse_constant,
        parse_int=_whole_number,
    )


def _whole_number(text: str) -> int:
    if len(text) > MAX_NUMBER_DIGITS + 1:  # and a sign
        raise ValueError(f"it holds a number of {len(text):,} digits")
    return int(text)


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("it names something twice")
    return found


def _refuse_constant(text: str) -> Any:
    raise ValueError(f"{text} is not a number")


class ArrayReader:
    """The arrays behind a header, taken one after the other."""

    def __init__(self, content: Content) -> None:
        self._content = content.arrays
        self._most = content.size
        self._at = 0

    def take(self, kind: Any, shape: Any) -> npt.NDArray[Any]:
        """The next array, which `bytes_of_arrays` has counted."""
        if not isinstance(kind, str) or kind not in ARRAY_TYPES:
            raise ValueError(f"an array of type {shortened(kind)}")
        stop = self._at + ARRAY_TYPES[kind].itemsize * _elements(shape, self._most)
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
