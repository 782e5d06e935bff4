"""Files that are read faster without DuckDB, and as well: CSV and lines of JSON of nothing but text, short Parquet.

Whatever is strange in a file (rows of other lengths, quotes in the middle of a cell, other types) is left to DuckDB,
which reads the file once more and can say what is wrong.
"""

import codecs
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deciban.arrays import Bytes, Codes, Integers, even_part
from deciban.data.dialect import GLANCE_BYTES, Look
from deciban.data.text_types import text_type

# Bytes of a piece of a table, at most and about, and of a table that is one piece.
PIECE = 12 << 20
ONE_PIECE = 2 << 20

# Cells of CSV that are cut at a time.
MOST_CELLS = 1 << 20

# Bytes of lines of JSON that are read at a time; each line has to fit into them.
LINES = 2 << 20

# Bytes of a short file. Lines of JSON are kept when they have been looked at, Parquet is read by Arrow.
SHORT = 1 << 26

# Rows of Parquet that are read at a time.
PARQUET_ROWS = 1 << 10

# Whatever has such a letter is no number to DuckDB, and no date or time but for these words.
WORDS = "[g-su-yG-SU-Y]"
DATES = r"^(?i:\s*[-+]?(epoch|infinity)\s*)$"


class StrangeError(Exception):
    """The file is none of those that are read here."""


# What is raised where DuckDB has to be asked.
STRANGE = (StrangeError, pa.ArrowException, OSError, UnicodeDecodeError)


class Quick(Protocol):
    """A way to read files without DuckDB."""

    @property
    def first(self) -> pa.RecordBatch:
        """Some of the first rows, with all columns."""
        ...

    @property
    def size(self) -> int | None:
        """The bytes of all rows, about, if that is known."""
        ...

    def batches(self, names: Sequence[str]) -> Generator[pa.RecordBatch]:
        """The rows with these columns; StrangeError, or an exception of Arrow, where DuckDB has to be asked."""
        ...


def pieces(quick: Quick, names: Sequence[str]) -> Iterator[pa.Table]:
    """The rows with these columns in pieces of about one size, which depends on the table alone; at least one."""
    enough, size, held, empty = piece_bytes(quick.size), 0, list[pa.RecordBatch](), True
    for batch in quick.batches(names):
        held.append(batch)
        size += batch.nbytes
        if size > enough - batch.nbytes // 2:
            yield pa.Table.from_batches(held)
            size, held, empty = 0, [], False
    if held or empty:
        yield pa.Table.from_batches(held or [quick.first.select(list(names)).slice(0, 0)])


def piece_bytes(size: int | None) -> int:
    """The bytes of a piece of a table of this size: of several pieces the number is even."""
    return PIECE if size is None or size <= ONE_PIECE else even_part(size, PIECE)


def _one_of(batches: Iterator[pa.RecordBatch]) -> pa.RecordBatch:
    for batch in batches:
        return batch
    raise StrangeError


@dataclass(frozen=True)
class TextFiles:
    """CSV files with the same columns, all of them text."""

    paths: tuple[Path, ...]
    look: Look
    missing: tuple[str, ...]

    @cached_property
    def first(self) -> pa.RecordBatch:
        with closing(self._batches(self.look.header, GLANCE_BYTES)) as batches:
            return _one_of(batches)

    def are_all_text(self, rows: int) -> bool:
        """Whether the first rows, no more than these, show that every column is text: what fits into no type there."""
        with suppress(*STRANGE):
            columns = self.first.slice(0, rows).columns
            return all(text_type(column, self.look.decimal) == "VARCHAR" for column in columns)
        return False

    @property
    def size(self) -> int | None:
        return _bytes(self.paths) if self.look.compression is None else None

    def batches(self, names: Sequence[str]) -> Generator[pa.RecordBatch]:
        """Each a piece: a little more is read, for the last row of a block is only a part and comes with the next."""
        yield from self._batches(names, piece_bytes(self.size) + (1 << 16))

    def _batches(self, names: Sequence[str], block: int) -> Generator[pa.RecordBatch]:
        places = [self.look.header.index(name) for name in names]
        words = [word.encode() for word in self.missing]
        missing = np.frombuffer(b"".join(words), dtype=np.uint8), np.cumsum([0, *map(len, words)])
        for path in self.paths:
            header = int(self.look.named)
            with pa.input_stream(str(path), compression=self.look.compression) as stream:
                for data, begins, stops in _rows(stream, self.look.delimiter, len(self.look.header), block):
                    cells = ((begins[header:, place], stops[header:, place]) for place in places)
                    yield pa.RecordBatch.from_arrays([_texts(data, *some, *missing) for some in cells], list(names))
                    header = 0


def _texts(data: Bytes, begins: Codes, stops: Codes, missing: Bytes, starts: Integers) -> pa.Array:
    """The texts that begin and stop at these places of a CSV file, if they are UTF-8."""
    from deciban.kernels.csv_cells import copy_cells

    size = int((np.maximum(stops, ~stops) - begins).sum(dtype=np.int64))
    out = np.frombuffer(pa.allocate_buffer(size + 64), dtype=np.uint8)
    offsets, present = np.empty(begins.size + 1, dtype=np.int32), np.empty(begins.size, dtype=np.bool_)
    copy_cells(data, begins, stops, missing, starts, out, offsets, present)
    known = None if present.all() else pa.py_buffer(np.packbits(present, bitorder="little"))
    parts = [known, pa.py_buffer(offsets), pa.py_buffer(out[: offsets[-1]])]
    array = pa.Array.from_buffers(pa.string(), begins.size, parts)
    array.validate(full=True)
    return array


def _rows(stream: Any, delimiter: str, width: int, size: int) -> Generator[tuple[Bytes, Codes, Codes]]:
    """The whole rows of a CSV file, about so many bytes at a time: these, and where cells begin and stop, row by cell.

    All of it is overwritten by the next ones.
    """
    from deciban.kernels.csv_cells import find_cells

    room, held, all_read = np.empty(max(size, 64), dtype=np.uint8), 0, False
    begins, stops = (np.empty(max(width, min(size, MOST_CELLS)), dtype=np.int32) for _ in range(2))
    mark = stream.read(len(codecs.BOM_UTF8))
    if mark != codecs.BOM_UTF8:
        room[: len(mark)], held = np.frombuffer(mark, dtype=np.uint8), len(mark)
    while held or not all_read:
        got = stream.readinto(room[held:])
        held, all_read = held + got, not got
        rows, used = find_cells(room, held, ord(delimiter), width, all_read, begins, stops)
        if rows < 0:
            raise StrangeError
        if rows:
            yield room, begins[: rows * width].reshape(rows, width), stops[: rows * width].reshape(rows, width)
        held -= used
        room[:held] = room[used : used + held]
        if not rows and held > room.size // 2:  # a long one
            if room.size >= 1 << 30:
                raise StrangeError
            room = np.concatenate([room, room])


@dataclass(frozen=True)
class TextLines:
    """Lines of JSON with the same keys, all of text; `held` are those of files that are not long."""

    paths: tuple[Path, ...]
    compression: str | None
    names: tuple[str, ...]
    rows: int
    held: tuple[pa.RecordBatch, ...] | None = None

    @property
    def size(self) -> int | None:
        return _bytes(self.paths) if self.compression is None else None

    @property
    def first(self) -> pa.RecordBatch:
        return _one_of(self.batches(self.names))

    def batches(self, names: Sequence[str]) -> Generator[pa.RecordBatch]:
        schema = pa.schema([(name, pa.string()) for name in self.names])
        for batch in self.held or _json_batches(self.paths, self.compression, schema):
            yield batch.select(list(names))


def json_of_text(paths: Sequence[Path], compression: str | None) -> TextLines | None:
    """Files of lines whose values are all text, and none a date to anybody; None if these are not."""
    if in_named_folders(paths):
        return None
    short = compression is None and _bytes(paths) <= SHORT
    held, rows = [], 0
    with suppress(*STRANGE):
        with closing(_json_batches(paths, compression, None)) as batches:
            first = _one_of(batches)
        names = first.schema.names
        different = len({name.lower() for name in names}) == len(names)
        if not names or not all(names) or not different or not all(map(_has_words, first.columns)):
            return None
        for batch in _json_batches(paths, compression, first.schema):
            rows += batch.num_rows
            held += [batch] if short else []
        return TextLines(tuple(paths), compression, tuple(names), rows, tuple(held) if short else None)
    return None


def _has_words(column: pa.Array) -> bool:
    if not pa.types.is_string(column.type):
        return False
    words = pc.and_not(pc.match_substring_regex(column, WORDS), pc.match_substring_regex(column, DATES))
    return bool(pc.any(words).as_py())


def in_named_folders(paths: Sequence[Path]) -> bool:
    """Whether the name of a folder, such as year=2024, is a column of its files."""
    return any("=" in folder for path in paths for folder in path.absolute().parts[:-1])


def _json_batches(
    paths: Sequence[Path], compression: str | None, schema: pa.Schema | None
) -> Generator[pa.RecordBatch]:
    """The rows of lines of JSON; another key than those of the schema is an exception of Arrow."""
    import pyarrow.json

    if not hasattr(pyarrow.json, "open_json"):
        raise StrangeError
    unexpected = "infer" if schema is None else "error"
    parse = pyarrow.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior=unexpected)
    read = pyarrow.json.ReadOptions(block_size=LINES)
    for path in paths:
        with pa.input_stream(str(path), compression=compression) as stream:
            for batch in pyarrow.json.open_json(stream, read, parse):
                batch.validate(full=True)  # Arrow has not looked whether it is UTF-8
                yield batch


@dataclass(frozen=True)
class ShortParquet:
    """Parquet files with the same columns, none of a strange type, so many rows, and so many bytes if unpacked."""

    paths: tuple[Path, ...]
    rows: int
    unpacked: int

    @property
    def size(self) -> int:
        """Cells that are there often are stored once, and not so in memory."""
        return max(self.unpacked, int(self.first.nbytes / max(self.first.num_rows, 1) * self.rows))

    @cached_property
    def first(self) -> pa.RecordBatch:
        with closing(self._batches(None)) as batches:
            return _one_of(batches)

    def batches(self, names: Sequence[str]) -> Generator[pa.RecordBatch]:
        yield from self._batches(list(names))

    def _batches(self, names: list[str] | None) -> Generator[pa.RecordBatch]:
        import pyarrow.parquet

        for path in self.paths:
            with pyarrow.parquet.ParquetFile(path, pre_buffer=False) as file:
                for batch in file.iter_batches(PARQUET_ROWS, columns=names, use_threads=False):
                    batch.validate(full=True)  # Arrow has not looked whether it is UTF-8
                    yield batch if names is None else batch.select(names)


def _bytes(paths: Sequence[Path]) -> int:
    return sum(path.stat().st_size for path in paths)
