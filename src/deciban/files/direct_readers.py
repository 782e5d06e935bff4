"""Files that are read faster without DuckDB, and as well: CSV and lines of JSON of nothing but text, short Parquet.

Whatever is strange in a file (rows of other lengths, quotes in the middle of a cell, other types) is left to DuckDB,
which reads the file once more and can say what is wrong.
"""

import codecs
import json
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deciban.arrays import Bytes, Codes, Flags, Integers, even_part
from deciban.files.sniff import GLANCE_BYTES, LONGEST_LINE, FileFormat
from deciban.tables.text_types import text_type

# Bytes of a piece of a table, at most and about, and of a table that is one piece.
PIECE = 12 << 20
ONE_PIECE = 2 << 20

# Bytes of a short table: it is two pieces, and if it is Parquet it is read by Arrow.
SHORT = 1 << 26

# Cells of text that are found at a time.
MOST_CELLS = 1 << 20

# Bytes of lines of JSON of which the keys are the columns, and in which a line ends behind the middle of a file.
FIRST_LINES = 1 << 16

# Rows of Parquet that are read at a time, and bytes of a column.
PARQUET_ROWS = 1 << 10
PARQUET_BYTES = 1 << 20

# Whatever has such a letter is no number to DuckDB, and no date or time but for these words.
WORDS = "[g-su-yG-SU-Y]"
DATES = r"^(?i:\s*[-+]?(epoch|infinity)\s*)$"

# Rows: bytes of a file, and where their cells begin and stop in them, row by cell. The next ones overwrite all of it.
Found = tuple[Bytes, Codes, Codes]

# Kernels: find the rows of some bytes, and copy the cells of a column. See `kernels.csv_cells`, `kernels.json_cells`.
Find = Callable[[Bytes, int, bool, Codes, Codes], tuple[int, int]]
Copy = Callable[[Bytes, Codes, Codes, Bytes, Codes, Flags], bool]


class UnsuitableError(Exception):
    """The file is none of those that are read here."""


# What is raised where DuckDB has to be asked.
UNSUITABLE = (UnsuitableError, pa.ArrowException, OSError, UnicodeDecodeError)


class DirectReader(Protocol):
    """A way to read files without DuckDB."""

    @property
    def first(self) -> pa.RecordBatch:
        """Some of the first rows, with all columns."""
        ...

    @property
    def piece(self) -> int:
        """The bytes of a piece, about."""
        ...

    def batches(self, names: Sequence[str]) -> Generator[pa.RecordBatch]:
        """The rows with these columns; StrangeError, or an exception of Arrow, where DuckDB has to be asked."""
        ...


def pieces(quick: DirectReader, names: Sequence[str]) -> Iterator[pa.Table]:
    """The rows with these columns in pieces of about one size, which depends on the table alone; at least one."""
    enough, size, held, empty = quick.piece, 0, list[pa.RecordBatch](), True
    for batch in quick.batches(names):
        held.append(batch)
        size += batch.nbytes
        if size > enough - batch.nbytes // 2:
            yield pa.Table.from_batches(held)
            size, held, empty = 0, [], False
    if held or empty:
        yield pa.Table.from_batches(held or [quick.first.select(list(names)).slice(0, 0)])


def _piece_bytes(size: int) -> int:
    """The bytes of a piece of a table of this size: of several pieces the number is even.

    A short table is two, of which the first is larger: it is counted while the second is still read.
    """
    if size <= ONE_PIECE:
        return ONE_PIECE
    return 5 * size // 9 if size <= SHORT else even_part(size, PIECE)


def _one_of(batches: Iterator[pa.RecordBatch]) -> pa.RecordBatch:
    for batch in batches:
        return batch
    raise UnsuitableError


@dataclass(frozen=True)
class TextFiles:
    """Files with the same columns, all of them text, whose cells are found and copied by these kernels."""

    paths: tuple[Path, ...]
    compression: str | None
    names: tuple[str, ...]
    find: Find
    copy: Copy
    header: bool = False  # whether the first row of each file has the names
    rows: int | None = None  # where that is known
    held: tuple[pa.RecordBatch, ...] = ()  # all of them, where they had to be read already

    @cached_property
    def first(self) -> pa.RecordBatch:
        with closing(self._batches(self.names, GLANCE_BYTES)) as batches:
            return _one_of(batches)

    @property
    def piece(self) -> int:
        if self.compression is not None:
            return PIECE
        return _piece_bytes(bytes_of(self.paths))

    def batches(self, names: Sequence[str]) -> Generator[pa.RecordBatch]:
        """Each a piece: a little more is read, for the last row of a block is only a part and comes with the next."""
        if self.held:
            yield from (batch.select(list(names)) for batch in self.held)
        else:
            yield from self._batches(names, self.piece + (1 << 16))

    def _batches(self, names: Sequence[str], block: int) -> Generator[pa.RecordBatch]:
        for found in self.found(block):
            yield self._copied(found, names)

    def _copied(self, found: Found, names: Sequence[str]) -> pa.RecordBatch:
        """These columns of rows that were found."""
        data, begins, stops = found
        place = {name: k for k, name in enumerate(self.names)}
        places = [place[name] for name in names]
        cells = [_texts(self.copy, data, begins[:, place], stops[:, place]) for place in places]
        return pa.RecordBatch.from_arrays(cells, list(names))

    def found(self, block: int) -> Generator[Found]:
        """The whole rows, about so many bytes at a time."""
        for path in self.paths:
            header = int(self.header)
            with pa.input_stream(str(path), compression=self.compression) as stream:
                for data, begins, stops in _rows(stream, self.find, len(self.names), block):
                    yield data, begins[header:], stops[header:]
                    header = 0

    def all_lines(self) -> tuple[pa.RecordBatch, ...]:
        """All rows of files in which every line is one: halves of a file are read side by side."""
        with ThreadPoolExecutor(2) as pool:
            halves = pool.map(self._lines_of, [half for path in self.paths for half in _halves(path)])
            return tuple(chain.from_iterable(halves))

    def _lines_of(self, part: tuple[Path, int, int]) -> list[pa.RecordBatch]:
        path, first, size = part
        with pa.OSFile(str(path)) as file:
            rows = _rows(file.get_stream(first, size), self.find, len(self.names), size, first == 0)
            return [self._copied(found, self.names) for found in rows]


def _halves(path: Path) -> list[tuple[Path, int, int]]:
    """Two parts of a file, the second from a line on: where they begin, and their sizes.

    It is one part if it is short, or its lines are long.
    """
    size = path.stat().st_size
    middle = size // 2
    with pa.OSFile(str(path)) as file:
        middle += file.get_stream(middle, FIRST_LINES).read().find(b"\n") + 1
    if size <= ONE_PIECE or middle == size // 2:
        return [(path, 0, size)]
    return [(path, 0, middle), (path, middle, size - middle)]


def _texts(copy: Copy, data: Bytes, begins: Codes, stops: Codes) -> pa.Array:
    """The texts that begin and stop at these places of a file, if they are UTF-8."""
    size = int((np.maximum(stops, ~stops) - begins).sum(dtype=np.int64))
    out = np.frombuffer(pa.allocate_buffer(size + 64), dtype=np.uint8)
    offsets, present = np.empty(begins.size + 1, dtype=np.int32), np.empty(begins.size, dtype=np.bool_)
    if not copy(data, begins, stops, out, offsets, present):
        raise UnsuitableError
    known = None if present.all() else pa.py_buffer(np.packbits(present, bitorder="little"))
    parts = [known, pa.py_buffer(offsets), pa.py_buffer(out[: offsets[-1]])]
    array = pa.Array.from_buffers(pa.string(), begins.size, parts)
    array.validate(full=True)
    return array


def _rows(stream: Any, find: Find, width: int, size: int, from_the_first: bool = True) -> Generator[Found]:
    """The whole rows of a stream, about so many bytes at a time, without the mark of UTF-8 that may be the first."""
    room, held, all_read = np.empty(max(size, 64), dtype=np.uint8), 0, False
    begins, stops = (np.empty(max(width, min(size, MOST_CELLS)), dtype=np.int32) for _ in range(2))
    mark = stream.read(len(codecs.BOM_UTF8))
    if mark != codecs.BOM_UTF8 or not from_the_first:
        room[: len(mark)], held = np.frombuffer(mark, dtype=np.uint8), len(mark)
    while held or not all_read:
        got = stream.readinto(room[held:])
        held, all_read = held + got, not got
        rows, used = find(room, held, all_read, begins, stops)
        if rows < 0:
            raise UnsuitableError
        if rows:
            yield room, begins[: rows * width].reshape(rows, width), stops[: rows * width].reshape(rows, width)
        held -= used
        room[:held] = room[used : used + held]
        if not rows and held > room.size // 2:  # a long one
            if room.size >= 2 * LONGEST_LINE:
                raise UnsuitableError
            room = np.concatenate([room, room])


def csv_reader(paths: Sequence[Path], look: FileFormat, missing: Sequence[str], rows: int) -> TextFiles | None:
    """CSV files whose first rows, no more than these, show that every column is text: what fits into no type there."""
    from deciban.kernels.csv_cells import copy_cells, find_cells

    find = partial(find_cells, ord(look.delimiter), len(look.header))
    copy = partial(copy_cells, *_one_behind_the_other(missing))
    files = TextFiles(tuple(paths), look.compression, look.header, find, copy, look.named)
    with suppress(*UNSUITABLE):
        columns = files.first.slice(0, rows).columns
        return files if all(text_type(column, look.decimal) == "VARCHAR" for column in columns) else None
    return None


def json_reader(paths: Sequence[Path], compression: str | None) -> TextFiles | None:
    """Files of lines whose values are all text, in every column with a word among the first; None if these are not."""
    names = () if in_named_folders(paths) else _keys(paths[0], compression)
    if not names or not all(names) or len({name.lower() for name in names}) < len(names):
        return None
    from deciban.kernels.json_cells import copy_values, find_values

    find = partial(find_values, *_one_behind_the_other(names))
    files = TextFiles(tuple(paths), compression, names, find, copy_values)
    with suppress(*UNSUITABLE):
        if not all(map(_has_words, files.first.columns)):
            return None
        if compression is None and bytes_of(paths) <= SHORT:
            held = files.all_lines()
            return replace(files, held=held, rows=sum(batch.num_rows for batch in held))
        return replace(files, rows=sum(len(begins) for _, begins, _ in files.found(GLANCE_BYTES)))
    return None


def _one_behind_the_other(words: Sequence[str]) -> tuple[Bytes, Integers]:
    """The bytes of all words, and where each begins, and one more."""
    written = [word.encode() for word in words]
    return np.frombuffer(b"".join(written), dtype=np.uint8), np.cumsum([0, *map(len, written)])


def _keys(path: Path, compression: str | None) -> tuple[str, ...]:
    """The keys of the first lines of JSON, if these are objects of texts."""
    with (
        suppress(ValueError, RecursionError, *UNSUITABLE),
        pa.input_stream(str(path), compression=compression) as stream,
    ):
        start = stream.read(GLANCE_BYTES).removeprefix(codecs.BOM_UTF8)
        lines = start[: start.rfind(b"\n", 0, FIRST_LINES) + 1] or start.partition(b"\n")[0]
        found = [json.loads(line) for line in lines.split(b"\n") if line.strip()]
        if all(isinstance(one, dict) and all(isinstance(cell, str | None) for cell in one.values()) for one in found):
            names = dict.fromkeys(key for one in found for key in one)
            "".join(names).encode()  # half of a surrogate pair is no character
            return tuple(names)
    return ()


def _has_words(column: pa.Array) -> bool:
    words = pc.and_not(pc.match_substring_regex(column, WORDS), pc.match_substring_regex(column, DATES))
    return bool(pc.any(words).as_py())


def in_named_folders(paths: Sequence[Path]) -> bool:
    """Whether the name of a folder, such as year=2024, is a column of its files."""
    return any("=" in folder for path in paths for folder in path.absolute().parts[:-1])


@dataclass(frozen=True)
class ParquetReader:
    """Parquet files with the same columns, none of a strange type, so many rows, and so many bytes if unpacked."""

    paths: tuple[Path, ...]
    rows: int
    unpacked: int

    @property
    def piece(self) -> int:
        """Cells that are there often are stored once, and not so in memory."""
        in_memory = int(self.first.nbytes / max(self.first.num_rows, 1) * self.rows)
        return _piece_bytes(max(self.unpacked, in_memory))

    @cached_property
    def first(self) -> pa.RecordBatch:
        with closing(self._batches(None)) as batches:
            return _one_of(batches)

    def batches(self, names: Sequence[str]) -> Generator[pa.RecordBatch]:
        yield from self._batches(list(names))

    def _batches(self, names: list[str] | None) -> Generator[pa.RecordBatch]:
        import pyarrow.parquet

        for path in self.paths:
            with pyarrow.parquet.ParquetFile(path, pre_buffer=False, buffer_size=PARQUET_BYTES) as file:
                for batch in file.iter_batches(PARQUET_ROWS, columns=names, use_threads=False):
                    batch.validate(full=True)  # Arrow has not looked whether it is UTF-8
                    yield batch if names is None else batch.select(names)


def bytes_of(paths: Iterable[Path]) -> int:
    """The size of all files."""
    return sum(path.stat().st_size for path in paths)
