"""Byte layout of a model file: a JSON header, arrays of numbers, and a checksum.

`docs/reference/model-file.md` describes the format.

    magic     8 bytes   "deciban" and a newline
    length    8 bytes   of the header, little-endian
    header    JSON in UTF-8, padded with spaces to a multiple of 8 bytes
    arrays    numbers (little-endian), padded with zeros to a multiple of 8; row-major, in the order in which the header
              names them
    checksum  32 bytes  SHA-256 of everything before

A file may end with metadata, which do not affect the model and its version:

    length    8 bytes   of the metadata, little-endian
    metadata  JSON in UTF-8
    checksum  32 bytes  SHA-256 of everything before

The layout has no gaps and no offsets, so that every byte has one meaning.
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

# Length of the SHA-256 checksum.
CHECKSUM_BYTES = 32

# Bytes read at a time.
READ_BYTES = 1 << 22

# Maximum size of a header. All limits are checked before the content is parsed, so that a short file never takes long
# or much memory.
MAX_HEADER_BYTES = 1 << 28

# Maximum size of the metadata.
MAX_ABOUT_BYTES = 1 << 16

# Maximum size of the end of a file that has metadata: their length, themselves, and the checksum.
MAX_ABOUT_SIZE = 8 + MAX_ABOUT_BYTES + CHECKSUM_BYTES

# Maximum number of lists and objects; each column of a model has a few.
MAX_LISTS = 1 << 20

# Maximum number of values.
MAX_VALUES = 1 << 24

# Maximum nesting depth; models have about a dozen levels.
MAX_DEPTH = 64

# Maximum number of digits of an integer of 64 bits.
MAX_NUMBER_DIGITS = 20

# Maximum number of dimensions of an array.
MAX_DIMENSIONS = 8

# How every header begins.
HEADER_START = b'{"format":'

# Types of arrays in memory.
ARRAY_TYPES: dict[str, np.dtype[Any]] = {
    "float64": np.dtype("<f8"),
    "int64": np.dtype("<i8"),
    "int32": np.dtype("<i4"),
    "uint8": np.dtype("u1"),
}

# Smaller types in which a file holds doubles and 64-bit integers that they represent exactly, the first that does.
NARROW_TYPES: dict[str, np.dtype[Any]] = {
    "uint8": np.dtype("u1"),
    "int16": np.dtype("<i2"),
    "uint16": np.dtype("<u2"),
    "int32": np.dtype("<i4"),
    "float32": np.dtype("<f4"),
}

# Shorter arrays are not narrowed: the name of the smaller type would take more bytes.
MIN_NARROWED = 16


def narrow(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return doubles or 64-bit integers in the smallest type that represents them exactly; other arrays unchanged."""
    if array.dtype.itemsize < 8 or array.size < MIN_NARROWED:
        return array
    array = np.ascontiguousarray(array)
    with np.errstate(invalid="ignore", over="ignore"):
        for name in NARROW_TYPES:
            if not _may_narrow(array.dtype.name, name):
                continue
            small = array.astype(NARROW_TYPES[name])
            if np.array_equal(small.astype(array.dtype).view(np.int64), array.view(np.int64)):  # also the sign of 0
                return small
    return array


def pack_file(header: Any, arrays: Sequence[npt.NDArray[Any]], about: bytes = b"") -> bytes:
    """Return the whole file, also the metadata if there are any.

    Raise a UsageError for a model that exceeds the limits of the format.
    """
    text = json.dumps(header, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    if excess := _excess(text):
        raise UsageError(f"a model file cannot hold {excess}", remedy="omit columns, or merge rare categories")
    body = [MAGIC, len(text).to_bytes(8, "little"), text]
    for array in arrays:
        held = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).tobytes()
        body += [held, bytes(-len(held) % 8)]
    content = _with_checksum(b"".join(body))
    return _with_checksum(content + len(about).to_bytes(8, "little") + about) if about else content


def _with_checksum(content: bytes) -> bytes:
    return content + hashlib.sha256(content).digest()


def is_model(path: str | os.PathLike[str]) -> bool:
    """Return True if a file begins like a model file; pipes and devices are not opened."""
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return file.read(len(MAGIC)) == MAGIC


class Content(NamedTuple):
    """Content of a model file.

    arrays: the bytes after the header. sha256, size: of the whole file. version: SHA-256 of the file without metadata.
    about: the metadata.
    """

    header: Any
    arrays: memoryview
    sha256: str
    size: int
    version: str = ""
    about: bytes = b""


@contextmanager
def open_model_file(path: str | os.PathLike[str], name: Any = None) -> Iterator[BinaryIO]:
    """Return the file at `path`, open for reading; raise a ModelFileError unless it is a regular file.

    Pipes are not waited for. name: name of the file in messages (default: its path).
    """
    refusal = ModelFileError(
        "not a model file, but a pipe or a device",
        place=Place(str(path if name is None else name)),
        remedy="pass the path of a file",
    )
    mode = os.stat(path).st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise refusal
    with open(path, "rb", opener=open_at_once) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):  # it has been replaced
            raise refusal
        yield file


def open_at_once(path: str, flags: int) -> int:
    """Open a file without waiting for the writer of a pipe; for the parameter `opener` of `open`."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def read(path: str | os.PathLike[str], name: Any = None) -> Content:
    """Return the content of a model file; raise a ModelFileError if the file is damaged or not a model.

    name: name of the file in messages (default: its path).
    """
    with open_model_file(path, name) as file:
        return read_from(file, os.fstat(file.fileno()).st_size, path if name is None else name)


def read_from(file: BinaryIO, size: int, path: Any) -> Content:
    """Return the content of an open file of `size` bytes; `path` is its name in messages.

    At most as many bytes are read as a model with this header has, and nothing is kept unless the checksum is correct.
    """
    start = file.read(16 + len(HEADER_START))
    if not start.startswith(MAGIC):
        raise ModelFileError(
            "not a model file",
            place=Place(str(path)),
            remedy="create one with `deciban fit`",
        )
    length = int.from_bytes(start[8:16], "little")
    fits = length <= MAX_HEADER_BYTES and 16 + length + CHECKSUM_BYTES <= size
    if start[16:] != HEADER_START or length % 8 or not fits:  # before much is read
        raise _damage_error(path, f"{size} bytes are too few for its header")
    try:
        header = _parse_header(_text(path, file, length))
        held = bytes_of_arrays(header, size)
    except (ValueError, RecursionError) as problem:
        reason = "it is nested too deeply" if isinstance(problem, RecursionError) else str(problem)
        raise _damage_error(path, f"its header cannot be read ({reason})") from None
    model_size = 16 + length + held + CHECKSUM_BYTES
    if size != model_size and not model_size + 8 + CHECKSUM_BYTES < size <= model_size + MAX_ABOUT_SIZE:
        raise _damage_error(path, f"expected {model_size} bytes, found {size}")
    digest = _digest(file, model_size - CHECKSUM_BYTES)
    _read_checksum(file, digest, path)
    version, about = digest.hexdigest(), b""
    if size > model_size:
        stored = file.read(size - model_size - CHECKSUM_BYTES)
        digest.update(stored)
        _read_checksum(file, digest, path)
        about = stored[8:]
        if int.from_bytes(stored[:8], "little") != len(about):
            raise _damage_error(path, f"its metadata have {len(about)} bytes, not those of their length")
    content = bytearray(held)
    file.seek(16 + length)
    if file.readinto(content) != held:  # type: ignore[attr-defined]  # files and BytesIO have it
        raise ModelFileError("the file became shorter while it was read", place=Place(str(path)), remedy="try again")
    return Content(header, memoryview(content), digest.hexdigest(), size, version, about)


def _read_checksum(file: BinaryIO, digest: Any, path: Any) -> None:
    """Compare the next bytes with the digest of everything before, and add them to it."""
    if (checksum := file.read(CHECKSUM_BYTES)) != digest.digest():
        raise _damage_error(path, "the checksum does not match the content")
    digest.update(checksum)


def read_header(path: str | os.PathLike[str]) -> Any:
    """Return only the header of a model file; the rest of the file is not read and not checked."""
    with open_model_file(path) as file:
        start = file.read(16)
        length = int.from_bytes(start[8:], "little")
        if not start.startswith(MAGIC) or length > MAX_HEADER_BYTES:
            raise _damage_error(path, "it has no header")
        return _parse_header(_text(path, file, length))


def sha256_of(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file without reading it into memory."""
    with open_model_file(path) as file:
        return str(_digest(file, os.fstat(file.fileno()).st_size).hexdigest())


def _damage_error(path: Any, what: str) -> ModelFileError:
    return ModelFileError(f"the file is damaged: {what}", place=Place(str(path)), remedy="restore it from a backup")


def _text(path: Any, file: BinaryIO, length: int) -> bytes:
    """Return the bytes of the header; reading stops at the first byte that cannot be text."""
    file.seek(16)
    pieces = []
    while length > 0:
        piece = file.read(min(length, READ_BYTES))
        if not piece or b"\0" in piece:
            raise _damage_error(path, "its header is not text")
        pieces.append(piece)
        length -= len(piece)
    return b"".join(pieces)


def _digest(file: BinaryIO, size: int) -> Any:
    """Return the SHA-256 of the first `size` bytes, to which more can be added."""
    file.seek(0)
    digest = hashlib.sha256()
    while size > 0 and (piece := file.read(min(size, READ_BYTES))):
        digest.update(piece)
        size -= len(piece)
    return digest


def bytes_of_arrays(header: Any, max_bytes: int) -> int:
    """Return the total size of the arrays in a header, with padding; raise a ValueError beyond `max_bytes`.

    Arrays of unknown types are left to `ArrayReader`.
    """
    total, waiting = 0, [(header, 1)]
    while waiting:
        node, depth = waiting.pop()
        if depth > MAX_DEPTH:
            raise ValueError("it is nested too deeply")
        if isinstance(node, dict) and node.keys() == {"array"}:
            array = node["array"]
            if isinstance(array, list) and 2 <= len(array) <= 3 and (kind := _held_type(*array)) is not None:
                held = kind.itemsize * _elements(array[1], max_bytes)
                total += held + -held % 8
                if total > max_bytes:
                    raise ValueError(f"its arrays have more than the {max_bytes:,} bytes of the file")
        inner = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
        waiting += [(one, depth + 1) for one in inner if isinstance(one, dict | list)]
    return total


def _held_type(kind: Any, _: Any, narrowed: Any = None) -> np.dtype[Any] | None:
    """Return the type of the numbers in the file; None if it is unknown."""
    if not isinstance(kind, str) or kind not in ARRAY_TYPES:
        return None
    if narrowed is None:
        return ARRAY_TYPES[kind]
    return NARROW_TYPES[narrowed] if isinstance(narrowed, str) and _may_narrow(kind, narrowed) else None


def _may_narrow(kind: str, narrowed: str) -> bool:
    """Return True if a file may hold numbers of one type in another."""
    return narrowed in NARROW_TYPES and (kind == "float64" or (kind == "int64" and narrowed != "float32"))


def _elements(shape: Any, max_size: int) -> int:
    """Return the number of elements of an array; raise a ValueError if a dimension exceeds `max_size`."""
    if not isinstance(shape, list) or len(shape) > MAX_DIMENSIONS:
        raise ValueError(f"an array has the invalid shape {shortened(shape)}")
    if not all(type(size) is int and 0 <= size <= max_size for size in shape):
        raise ValueError(f"an array has the invalid shape {shortened(shape)}")
    return math.prod(shape)


def _excess(text: bytes) -> str:
    """Return the limit that a header exceeds, found by counting characters; empty if none."""
    if len(text) > MAX_HEADER_BYTES:
        return f"{len(text):,} bytes of names and categories"
    if (lists := text.count(b"[") + text.count(b"{")) > MAX_LISTS:
        return f"{lists:,} lists"
    if (values := text.count(b",")) > MAX_VALUES:
        return f"{values:,} values"
    return ""


def _parse_header(text: bytes) -> Any:
    """Return the parsed header; raise a ValueError or RecursionError if it is invalid."""
    if excess := _excess(text):
        raise ValueError(f"it has {excess}, more than a model can have")
    return json.loads(
        text.decode(),
        object_pairs_hook=_without_duplicates,
        parse_constant=_refuse_constant,
        parse_int=_whole_number,
    )


def _whole_number(text: str) -> int:
    if len(text) > MAX_NUMBER_DIGITS + 1:  # plus a sign
        raise ValueError(f"it has a number of {len(text):,} digits")
    return int(text)


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key occurs twice")
    return found


def _refuse_constant(text: str) -> Any:
    raise ValueError(f"{text} is not a number")


class ArrayReader:
    """Reader of the arrays after a header, one after another."""

    def __init__(self, content: Content) -> None:
        self._content = content.arrays
        self._max_bytes = content.size
        self._at = 0

    def take(self, kind: Any, shape: Any, *narrowed: Any) -> npt.NDArray[Any]:
        """Return the next array, which `bytes_of_arrays` has counted."""
        held = _held_type(kind, shape, *narrowed)
        if held is None:
            raise ValueError(f"an array of type {shortened((kind, *narrowed))}")
        stop = self._at + held.itemsize * _elements(shape, self._max_bytes)
        filled = stop + -stop % 8
        if filled > len(self._content):
            raise ValueError("its arrays are longer than the file")
        if any(self._content[stop:filled]):
            raise ValueError("the padding of an array is not 0")
        array = np.frombuffer(self._content[self._at : stop], held).reshape(shape)
        self._at = filled
        return np.asarray(array.astype(ARRAY_TYPES[kind].newbyteorder("=")))

    def finish(self) -> None:
        """Raise a ValueError if bytes are left over."""
        if self._at != len(self._content):
            raise ValueError(f"{len(self._content) - self._at} bytes follow its arrays")
