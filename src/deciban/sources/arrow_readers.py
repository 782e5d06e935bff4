"""Files that Arrow reads faster than DuckDB, and as well: CSV and lines of JSON of nothing but text, short Parquet.

Whatever Arrow would read otherwise, or not at all (rows of other lengths, quotes in the middle of a cell, other types)
is left to DuckDB, which reads the file once more and can say what is wrong.
"""

import json
from codecs import BOM_UTF8
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deciban.sources.quotes import LONGEST_LINE, quotes_in
from deciban.sources.sniff import SNIFF_BYTES, FileFormat
from deciban.util.arrays import even_part

# Bytes of a piece of a table, at most and about, and of a table that is one piece.
TEXT_PIECE_BYTES = 12 << 20
ONE_PIECE_BYTES = 2 << 20

# Bytes of a short table: it is two pieces, its lines of JSON are held in memory, and if it is Parquet it is read here.
SHORT_BYTES = 1 << 26

# Bytes of a CSV file whose rows are looked at first.
FIRST_CSV_BYTES = 1 << 17

# Bytes of lines of JSON that are read at a time.
JSON_BLOCK = 1 << 21

# Bytes of the lines of JSON whose keys are the columns.
FIRST_LINES = 1 << 16

# Rows of Parquet that are read at a time, and bytes of a column.
PARQUET_ROWS = 1 << 10
PARQUET_BYTES = 1 << 20

# Text with such a letter is no number to DuckDB, and no date or time but for these words.
LETTERS = "[g-su-yG-SU-Y]"
DATE_WORDS = r"^(?i:\s*[-+]?(epoch|infinity)\s*)$"


class UnsuitableError(Exception):
    """The file is none of those that are read here."""


# What is raised where DuckDB has to be asked.
UNSUITABLE = (UnsuitableError, pa.ArrowException, OSError, UnicodeDecodeError)

Batches = Generator[pa.RecordBatch]


class ArrowReader(Protocol):
    """A way to read files without DuckDB."""

    @property
    def first(self) -> pa.RecordBatch:
        """Some of the first rows, with all columns."""
        ...

    @property
    def piece(self) -> int:
        """The bytes of a piece, about."""
        ...

    def batches(self, names: Sequence[str]) -> Batches:
        """The rows with these columns; one of UNSUITABLE is raised where DuckDB has to be asked."""
        ...


def pieces(reader: ArrowReader, names: Sequence[str]) -> Iterator[pa.Table]:
    """The rows with these columns in pieces of about one size, which depends on the table alone; at least one."""
    enough, size, held, empty = reader.piece, 0, list[pa.RecordBatch](), True
    for batch in reader.batches(names):
        held.append(batch)
        size += batch.nbytes
        if size > enough - batch.nbytes // 2:
            yield pa.Table.from_batches(held)
            size, held, empty = 0, [], False
    if held or empty:
        yield pa.Table.from_batches(held or [reader.first.select(list(names)).slice(0, 0)])


def _piece_bytes(size: int) -> int:
    """The bytes of a piece of a table of this size: of several pieces the number is even.

    A short table is two, of which the first is larger: it is counted while the second is still read.
    """
    if size <= ONE_PIECE_BYTES:
        return ONE_PIECE_BYTES
    return 5 * size // 9 if size <= SHORT_BYTES else even_part(size, TEXT_PIECE_BYTES)


def _first_of(batches: Batches) -> pa.RecordBatch:
    with closing(batches):
        for batch in batches:
            return batch
    raise UnsuitableError


@dataclass(frozen=True)
class CsvText:
    """CSV files of one form, all of whose columns are text; `missing` are cells that mean a missing one."""

    paths: tuple[Path, ...]
    form: FileFormat
    missing: tuple[str, ...]

    @classmethod
    def of(cls, paths: Sequence[Path], form: FileFormat, missing: Sequence[str]) -> "CsvText | None":
        """None where Arrow would take signs, line ends or quotes for something else than DuckDB does."""
        special = f'"\r\n{form.delimiter}'
        if form.skipped or not form.delimiter.isascii() or any(sign in cell for cell in missing for sign in special):
            return None
        plain = all(quotes_in(path, form.delimiter).plain for path in paths)
        return cls(tuple(paths), form, tuple(missing)) if plain else None

    @cached_property
    def first(self) -> pa.RecordBatch:
        return _first_of(self._batches(self.form.header, FIRST_CSV_BYTES))

    @property
    def piece(self) -> int:
        return TEXT_PIECE_BYTES if self.form.compression is not None else _piece_bytes(bytes_of(self.paths))

    def batches(self, names: Sequence[str]) -> Batches:
        """Each is a piece; no row may be longer than that."""
        return self._batches(names, self.piece)

    def _batches(self, names: Sequence[str], block: int) -> Batches:
        from pyarrow import csv

        read = csv.ReadOptions(
            block_size=block, column_names=list(self.form.header), skip_rows_after_names=int(self.form.named)
        )
        parse = csv.ParseOptions(
            delimiter=self.form.delimiter,
            newlines_in_values=True,
            ignore_empty_lines=len(self.form.header) > 1,  # else such a line is a missing cell
        )
        convert = csv.ConvertOptions(
            column_types=dict.fromkeys(self.form.header, pa.string()),
            include_columns=list(names),
            null_values=["", *self.missing],
            strings_can_be_null=True,
        )
        for path in self.paths:
            with pa.input_stream(str(path), compression=self.form.compression) as stream:
                yield from csv.open_csv(pa.PythonFile(_WholeLineEnds(stream), "r"), read, parse, convert)


class _WholeLineEnds:
    """A file that is never read up to a CR: of CR LF in a cell, Arrow would lose the LF that begins a block."""

    def __init__(self, stream: Any) -> None:
        self._stream, self._held = stream, b""
        self.closed = False

    def read(self, size: int) -> bytes:
        data: bytes = self._held + self._stream.read(size - len(self._held))
        self._held = b"\r" if len(data) > 1 and data.endswith(b"\r") else b""
        return data[: len(data) - len(self._held)]

    def close(self) -> None:
        self.closed = True


@dataclass(frozen=True)
class JsonText:
    """Files of lines of JSON with these keys, all of whose values are text; `held` are the rows of short files."""

    paths: tuple[Path, ...]
    compression: str | None
    names: tuple[str, ...]
    rows: int = 0
    held: tuple[pa.RecordBatch, ...] = ()

    @classmethod
    def of(cls, paths: Sequence[Path], compression: str | None) -> "JsonText | None":
        """None where a value is no text, a column has no word among the first lines, or keys are not those of these.

        All lines are read: only then is it known that there are no other keys.
        """
        names = () if in_named_folders(paths) else _keys(paths[0], compression)
        if not names or not all(names) or len({name.lower() for name in names}) < len(names):
            return None
        files = cls(tuple(paths), compression, names)
        with suppress(*UNSUITABLE):
            if not all(map(_has_words, files.first.columns)):
                return None
            if compression is None and bytes_of(paths) <= SHORT_BYTES:
                held = tuple(files.batches(names))
                return replace(files, held=held, rows=sum(batch.num_rows for batch in held))
            return replace(files, rows=sum(batch.num_rows for batch in files.batches(names)))
        return None

    @cached_property
    def first(self) -> pa.RecordBatch:
        return self.held[0] if self.held else _first_of(self._batches(SNIFF_BYTES))

    @property
    def piece(self) -> int:
        if self.held:
            return _piece_bytes(sum(batch.nbytes for batch in self.held))
        return TEXT_PIECE_BYTES if self.compression is not None else _piece_bytes(bytes_of(self.paths))

    def batches(self, names: Sequence[str]) -> Batches:
        for batch in self.held or self._batches(JSON_BLOCK):
            yield batch.select(list(names))

    def _batches(self, block: int) -> Batches:
        from pyarrow import json as arrow_json

        schema = pa.schema([(name, pa.string()) for name in self.names])
        parse = arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="error")
        for path in self.paths:
            with pa.input_stream(str(path), compression=self.compression) as stream:
                for lines in _blocks_of_lines(stream, block):
                    if not (rows := _objects(lines)):
                        continue
                    read = arrow_json.ReadOptions(use_threads=False, block_size=len(lines))
                    table = arrow_json.read_json(pa.BufferReader(lines), read, parse)
                    table.validate(full=True)  # Arrow has not looked whether it is UTF-8
                    if table.num_rows != rows:  # several objects in a line
                        raise UnsuitableError
                    yield from table.to_batches()


def _blocks_of_lines(stream: Any, size: int) -> Iterator[memoryview]:
    """The lines of JSON, about so many bytes at a time; the next ones overwrite them."""
    room = bytearray(size)
    first = stream.read(len(BOM_UTF8)).removeprefix(BOM_UTF8)
    held = len(first)
    room[:held] = first
    while got := stream.readinto(memoryview(room)[held:]):
        held += got
        if end := room.rfind(b"\n", 0, held) + 1:
            yield memoryview(room)[:end]
            room[: held - end] = room[end:held]
            held -= end
        elif held == len(room):
            if held > LONGEST_LINE:
                raise UnsuitableError
            room = room + bytes(held)
    yield memoryview(bytes(room[:held]) + b"\n")


def _objects(lines: memoryview) -> int:
    """The number of lines that are not empty, each of which has to begin and end with a brace.

    Arrow would take a line that is null for a row, and crash at a block of nothing else.
    """
    data = np.frombuffer(lines, dtype=np.uint8)
    ends = np.flatnonzero(data == ord("\n"))
    starts = np.concatenate([[0], ends[:-1] + 1])
    there = starts < ends
    starts, ends = starts[there], ends[there]
    last = data[ends - 1]
    last = np.where(last == ord("\r"), data[ends - 2], last)
    if not ((data[starts] == ord("{")) & (last == ord("}"))).all():
        raise UnsuitableError
    return ends.size


def _keys(path: Path, compression: str | None) -> tuple[str, ...]:
    """The keys of the first lines of JSON, if these are objects of texts."""
    with (
        suppress(ValueError, RecursionError, *UNSUITABLE),
        pa.input_stream(str(path), compression=compression) as stream,
    ):
        start = stream.read(SNIFF_BYTES).removeprefix(BOM_UTF8)
        lines = start[: start.rfind(b"\n", 0, FIRST_LINES) + 1] or start.partition(b"\n")[0]
        found = [json.loads(line) for line in lines.split(b"\n") if line.strip()]
        if all(isinstance(one, dict) and all(isinstance(cell, str | None) for cell in one.values()) for one in found):
            names = dict.fromkeys(key for one in found for key in one)
            "".join(names).encode()  # half of a surrogate pair is no character
            return tuple(names)
    return ()


def _has_words(column: pa.Array) -> bool:
    words = pc.and_not(pc.match_substring_regex(column, LETTERS), pc.match_substring_regex(column, DATE_WORDS))
    return bool(pc.any(words).as_py())


def in_named_folders(paths: Sequence[Path]) -> bool:
    """Whether the name of a folder, such as year=2024, is a column of its files."""
    return any("=" in folder for path in paths for folder in path.absolute().parts[:-1])


@dataclass(frozen=True)
class ParquetReader:
    """Parquet files with the same columns, all of plain types, so many rows, and so many bytes if unpacked."""

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
        return _first_of(self._batches(None))

    def batches(self, names: Sequence[str]) -> Batches:
        return self._batches(list(names))

    def _batches(self, names: list[str] | None) -> Batches:
        from pyarrow import parquet

        for path in self.paths:
            with parquet.ParquetFile(path, pre_buffer=False, buffer_size=PARQUET_BYTES) as file:
                for batch in file.iter_batches(PARQUET_ROWS, columns=names, use_threads=False):
                    batch.validate(full=True)  # Arrow has not looked whether it is UTF-8
                    yield batch if names is None else batch.select(names)


def bytes_of(paths: Iterable[Path]) -> int:
    """The size of all files."""
    return sum(path.stat().st_size for path in paths)
