"""CSV files: quotes and line ends, types of columns, and the source that reads them.

DuckDB splits lines and converts cells. Types are inferred here, because a guess from the first rows must not change
later ones. Numbers are read as doubles, so that 3.5 after ten thousand integers is 3.5.

Contents: `open_csv` and `CsvSource`; `CsvCells`, the format of cells; `Quotes`, which determine how many threads can
    read a file; `copy_as_utf8`, a copy in UTF-8 with uniform line ends.
"""

import codecs
import re
from codecs import BOM_UTF8
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from deciban.errors import Argument, BadCell, DataError, Place, UsageError
from deciban.sources.duckdb import DuckDb, files_of, list_of, literal, quote_name, record_of, select_all, select_from
from deciban.sources.sniff import FileFormat, compression_of, last_line_without_newline
from deciban.sources.source import ColumnType, Source, Types, rows_of_piece
from deciban.sources.temporary import Temporary, create_temporary
from deciban.tables.cells import (
    MARKERS,
    CellFormat,
    CellHabits,
    are_compact_dates,
    as_days,
    as_whole,
    kind_of,
    marker_note,
    sniff_format,
    text_type,
)
from deciban.tables.table import map_columns
from deciban.util.arrays import Bytes, Flags, Integers

# Length in bytes from which DuckDB may lose a line when it reads in parallel.
LONG_LINE = 1 << 23

# Maximum length: longer lines would take gigabytes of memory.
MAX_LINE_LENGTH = 1 << 26

# Bytes scanned at a time.
QUOTE_BLOCK = 1 << 20

QUOTE, FEED, BACK = b'"\n\r'


class Quotes(NamedTuple):
    """Properties of quotes and lines in CSV files.

    closed: True if all quotes are closed.
    with_breaks: True if line breaks are, or may be, within quotes.
    plain: True if quotes are closed, enclose whole cells or are doubled in them, and no line ends with CR alone. Then
        all readers find the same cells.
    longest_line: length in bytes, if longer than a block.
    nul: position of the first NUL byte, or -1.
    """

    closed: bool = True
    with_breaks: bool = False
    plain: bool = True
    longest_line: int = 0
    nul: int = -1

    @property
    def long_lines(self) -> bool:
        """True if DuckDB may lose a line when it reads the file in parts."""
        return self.longest_line >= LONG_LINE

    @classmethod
    def together(cls, found: Sequence["Quotes"]) -> "Quotes":
        """Combine the properties of several files."""
        closed, breaks, plain, longest, nul = zip(cls(), *found, strict=True)
        return cls(all(closed), any(breaks), all(plain), max(longest), max(nul))


def quotes_in(path: Path, delimiter: str) -> Quotes:
    """Scan the quotes of a CSV file; `closed` is False if the file cannot be read to its end."""
    file = path.stat()
    return _quotes_in(path, delimiter, (file.st_ino, file.st_size, file.st_mtime_ns, file.st_ctime_ns))


@lru_cache(maxsize=256)
def _quotes_in(path: Path, delimiter: str, state: tuple[int, ...]) -> Quotes:
    """Scan the quotes of a file, cached until the file changes."""
    with suppress(OSError, pa.ArrowException):
        return quotes_of(_blocks(path), delimiter)
    return Quotes(closed=False, with_breaks=True, plain=False)


def _blocks(path: Path) -> Iterator[bytes]:
    with open(path, "rb") as file:
        compression = compression_of(file.read(4))
    with pa.input_stream(str(path), compression=compression) as stream:
        block = stream.read(QUOTE_BLOCK).removeprefix(BOM_UTF8)
        while block:
            yield block
            block = stream.read(QUOTE_BLOCK)


def quotes_of(blocks: Iterable[bytes], delimiter: str) -> Quotes:
    """Scan the quotes of a CSV file given as blocks."""
    beside_cell = np.zeros(256, dtype=np.bool_)
    beside_cell[[QUOTE, FEED, BACK, delimiter.encode()[-1]]] = True  # a doubled quote is next to another one
    opened, with_breaks, plain = False, False, True
    longest, line = 0, 0  # lengths of the longest and of the current line
    size, nul = 0, -1
    before = b"\n"
    for block in blocks:
        if nul < 0 and (found := block.find(0)) >= 0:
            nul = size + found
        size += len(block)
        feed = b"\n" if b"\n" in block else b"\r"
        stop = block.find(feed)
        longest = max(longest, line + (len(block) if stop < 0 else stop))
        line = line + len(block) if stop < 0 else len(block) - block.rfind(feed) - 1
        if opened or b'"' in block or b"\r" in block or before in b'"\r':
            data = np.frombuffer(before + block, dtype=np.uint8)
            quotes = np.flatnonzero(data[1:] == QUOTE)
            with_breaks = with_breaks or _breaks_within(data[1:], opened)
            plain = plain and _are_plain(data, quotes, opened, beside_cell)
            opened ^= quotes.size % 2 == 1
        before = block[-1:]
    return Quotes(not opened, with_breaks or not plain, plain and not opened and before != b"\r", longest, nul)


def _are_plain(data: Bytes, quotes: Integers, opened: bool, beside_cell: Flags) -> bool:
    """Return True if quotes enclose cells or are doubled, and no unquoted line ends with CR alone.

    The first byte belongs to the previous block; the byte after the last one is checked with the next block.
    """
    here = quotes + 1
    opening, closing = here[int(opened) :: 2], here[1 - int(opened) :: 2]
    if data[0] == QUOTE and not opened:  # it closed a cell, or is the first of a doubled quote
        closing = np.concatenate([[0], closing])
    if closing.size and closing[-1] == data.size - 1:
        closing = closing[:-1]
    if not beside_cell[data[opening - 1]].all() or not beside_cell[data[closing + 1]].all():
        return False
    returns = np.flatnonzero(data[:-1] == BACK)
    lone = returns[data[returns + 1] != FEED]
    return bool(((np.searchsorted(here, lone) + opened) % 2 == 1).all())


def _breaks_within(data: Bytes, opened: bool) -> bool:
    """Return True if there are line breaks within quotes. opened: True if the first byte is within quotes."""
    inside, breaks = _bits(data == QUOTE), _bits((data == FEED) | (data == BACK))
    for k in range(6):  # each quote flips all following bits of its 64
        inside ^= inside << np.uint64(1 << k)
    turned = np.bitwise_xor.accumulate(inside >> np.uint64(63)) ^ np.uint64(opened)
    inside ^= np.uint64(0) - np.concatenate([[np.uint64(opened)], turned[:-1]])
    return bool((inside & breaks).any())


def _bits(flags: Flags) -> npt.NDArray[np.uint64]:
    """Pack flags into integers of 64 bits."""
    packed = np.packbits(flags, bitorder="little")
    return np.concatenate([packed, np.zeros(-packed.size % 8, dtype=np.uint8)]).view(np.uint64)


def refuse_damaged(path: Path, name: str, delimiter: str) -> None:
    """Raise a DataError for a NUL byte, or for a line so long that a quote must be open."""
    quotes = quotes_in(path, delimiter)
    if quotes.nul >= 0:
        line, left = 1, quotes.nul
        for block in _blocks(path):
            line += block[:left].count(b"\n") or block[:left].count(b"\r")
            left -= len(block)
            if left <= 0:
                break
        remedy = "the file is damaged or in another encoding; write it again, or give its encoding"
        raise DataError("found a NUL byte", place=Place(f"{name}, line {line}"), remedy=remedy)
    if (longest := quotes.longest_line) > MAX_LINE_LENGTH:
        raise DataError(
            f"a row of {longest // 1_000_000:,} MB exceeds the limit of {MAX_LINE_LENGTH // 1_000_000} MB",
            place=Place(name),
            remedy="close all quotes, shorten its cells, or read them from a folder of documents",
        )


INSIDE = re.compile(r'(?:[^"]+|"")*')


def copy_as_utf8(path: Path, name: str, found: FileFormat) -> Temporary:
    """Copy a file as UTF-8 with uniform line ends; line breaks within quotes are kept."""
    copy = create_temporary()
    encoding = "utf-8-sig" if found.encoding == "utf-8" else found.encoding
    decoder, ends = codecs.getincrementaldecoder(encoding)(), LineEnds(found.delimiter if found.kind == "csv" else None)
    line = 1
    with pa.input_stream(str(path), compression=found.compression) as stream:
        while block := stream.read(1 << 20):
            try:
                text = ends.unify(decoder.decode(block))
            except UnicodeDecodeError as problem:
                message = f"{problem.reason} for {encoding}"
                raise DataError(
                    message, place=Place(f"{name}, after line {line}"), remedy="give its encoding"
                ) from None
            line += text.count("\n")
            copy.file.write(text.encode())
        copy.file.write(ends.unify(decoder.decode(b"", final=True), final=True).encode())
    copy.file.flush()
    return copy


class LineEnds:
    """Converter of line ends to line feeds, except within quotes, for text that arrives in pieces.

    Without a delimiter the text is not CSV, and quotes have no meaning.
    """

    def __init__(self, delimiter: str | None) -> None:
        self._opening = re.compile("(?!)" if delimiter is None else rf'(?<=[\r\n{re.escape(delimiter)}])"')
        self._quoted = False
        self._before = "\n"  # last character of the previous piece: quotes open only at the start of a cell
        self._held = ""

    def unify(self, text: str, final: bool = False) -> str:
        """Convert the next piece. An ambiguous end is held back until the next call."""
        text = self._before + self._held + text
        kept = text if final else text[: max(len(text.rstrip('\r"')), 1)]
        self._held = text[len(kept) :]
        found, at = [], 1
        while at < len(kept):
            if self._quoted:
                match = INSIDE.match(kept, at)
                stop = match.end() if match else at
                found.append(kept[at : stop + 1])  # including the closing quote
                self._quoted = stop == len(kept)
            else:
                opening = self._opening.search(kept, at)
                stop = len(kept) if opening is None else opening.start()
                found.append(kept[at:stop].replace("\r\n", "\n").replace("\r", "\n") + kept[stop : stop + 1])
                self._quoted = opening is not None
            at = stop + 1
        self._before = kept[-1]
        return "".join(found)


# Words for missing cells, besides empty cells.
MISSING_WORDS = ("NA", "N/A", "NaN", "nan", "NULL", "null", "None")

# First rows, from which the types of columns are inferred.
TYPED_ROWS = 20_000

# Maximum number of their cells: wide tables have fewer rows.
TYPED_CELLS = 1 << 22

# Maximum size of files with rows longer than 2 MB: DuckDB keeps as much of them in memory as it can.
LONG_LINE_FILES = 1 << 30


@dataclass(frozen=True)
class CsvRead:
    """CSV files of one format, as DuckDB reads them.

    columns: (name in DuckDB, name in the file) of each column.
    missing: words for missing cells, besides empty cells.
    one_thread: True to read sequentially: a thread that starts in the middle cannot know if a line break is quoted.
    long_lines: True if rows may be longer than 2 MB.
    """

    paths: tuple[Path, ...]
    columns: tuple[tuple[str, str], ...]
    delimiter: str = ","
    decimal: str = "."
    header: bool = True
    skip: int = 0
    missing: tuple[str, ...] = ()
    compression: str | None = None
    one_thread: bool = False
    long_lines: bool = False

    def select(self, names: Sequence[str], types: Types) -> str:
        """Return the query for these columns; absent columns are NULL."""
        inner = {here: there for there, here in self.columns}
        return select_from(self._call(types), [quote_name(inner[name]) if name in inner else "NULL" for name in names])

    def _call(self, types: Types) -> str:
        options = {
            "auto_detect": "false",
            "columns": record_of((there, types[here].in_duckdb) for there, here in self.columns),
            "header": str(self.header).lower(),
            "delim": literal(self.delimiter),
            "quote": "'\"'",
            "escape": "'\"'",
            "decimal_separator": literal(self.decimal),
            "skip": str(self.skip),
            "comment": "''",
            "nullstr": list_of(("", *self.missing)),
            "strict_mode": "true",
            "compression": literal(self.compression or "none"),
        }
        if self.one_thread:
            options["parallel"] = "false"
        if self.long_lines:
            options["max_line_size"] = str(MAX_LINE_LENGTH + (1 << 20))
        return f"read_csv({files_of(self.paths)}, {', '.join(f'{name}={value}' for name, value in options.items())})"


@dataclass(frozen=True)
class CsvCells:
    """Format of the cells in CSV files, and the column types that follow from it.

    decimal: decimal separator found in the files.
    habit: formats given by the user or by a model.
    """

    decimal: str = "."
    habit: CellHabits = CellHabits()

    @property
    def point(self) -> str:
        """Decimal separator, which may follow from the thousands separator: 4.706,79 has a decimal comma."""
        return {".": ",", ",": "."}.get(self.habit.thousands, self.decimal)

    def format_of(self, kind: str) -> CellFormat | None:
        """Return the format of cells of this type, if the user gave one."""
        if kind == "DOUBLE" and self.habit.thousands:
            return CellFormat(kind, self.point, self.habit.thousands, markers=False)
        if kind == "TIMESTAMP" and self.habit.date_format:
            return CellFormat(kind, date_format=self.habit.date_format, markers=False)
        return None

    def as_type(self, one: ColumnType, kind: str) -> ColumnType:
        """Return the column with another type."""
        return replace(one, wanted=kind, sure=True, cell_format=self.format_of(kind))

    def as_learned(self, name: str, one: ColumnType, learned: str) -> ColumnType:
        """Return the column with the Arrow type that a model has learned.

        Numbers and dates that look different in this file, or had words for missing cells, are converted here.
        """
        kind, habit = kind_of(learned), self.habit
        looks_different = bool(kind) and kind != kind_of(one.kind)
        unknown = looks_different or name in habit.marked or one.cell_format is not None
        if looks_different:
            one = self.as_type(one, kind)
        if kind == "DOUBLE" and (unknown or habit.thousands):
            one = replace(one, cell_format=CellFormat(kind, self.point, habit.thousands))
        elif kind == "TIMESTAMP" and unknown:
            one = replace(one, cell_format=CellFormat(kind, date_format=habit.date_format))
        return replace(one, days=one.days or learned.startswith("date"))

    def as_seen(self, one: ColumnType, cells: pa.ChunkedArray) -> tuple[ColumnType, str]:
        """Infer the type of a column from cells of text, and return it with a note on words for missing cells.

        The column is unchanged if all cells are missing.
        """
        kind = text_type(cells, self.decimal)
        if kind is None:
            return one, ""
        habit, note = self.habit, ""
        how = sniff_format(cells, self.point, habit.thousands, habit.date_format) if kind == "VARCHAR" else None
        if kind == "DOUBLE" and are_compact_dates(cells, habit.date_format):
            how = CellFormat("TIMESTAMP", date_format=habit.date_format)
        if how is not None:
            kind, note = how.kind, marker_note(cells, how)
        elif (how := self.format_of(kind)) is not None:
            how = replace(how, markers=True)
        return replace(one, wanted=kind, sure=True, cell_format=how or one.cell_format), note


@dataclass(frozen=True)
class CsvSource(Source):
    """Table in CSV files; columns are text until their type is known.

    reads: file groups that DuckDB reads one after the other.
    cells: format of cells.
    row_bytes: average size of a row in the files, if known.
    more_memory: megabytes that DuckDB needs for long lines.
    """

    reads: tuple[CsvRead, ...]
    cells: CsvCells = CsvCells()
    row_bytes: float | None = None
    more_memory: float = 0.0

    @property
    def expected(self) -> int | None:
        return None if self.row_bytes is None else int(self._size / self.row_bytes)

    @property
    def typed(self) -> bool:
        return False

    @property
    def has_types(self) -> bool:
        """True if all columns are text, so that the sample cannot change their types."""
        return all(one.sure and one.in_duckdb == one.own for one in (self.types[name] for name in self.names))

    @property
    def missing(self) -> tuple[str, ...]:
        """Words for missing cells, besides empty cells."""
        return self.reads[0].missing

    def sql(self) -> NoReturn:
        """Raise a UsageError: SQL lacks the rules for missing words and date formats."""
        raise UsageError(
            "CSV files cannot be counted by SQL",
            parameter=Argument("pushdown", True),
            remedy=(
                "leave ",
                Argument("pushdown"),
                " out, convert the file to Parquet, or let DuckDB read it: \"sql: select * from '...'\"",
            ),
        )

    # Types of columns

    def looks_like(self, column: str) -> str:
        one = self.types.get(column)
        if one is None or not one.sure:
            return ""
        return "VARCHAR" if one.cell_format is not None and one.cell_format.markers else kind_of(one.kind)

    def with_types(self, types: Mapping[str, str]) -> "CsvSource":
        self._refuse_unknown(types)
        return self._with_column_types(
            {name: self.cells.as_type(self.types[name], kind) for name, kind in types.items()}, types
        )

    def as_text(self, columns: Sequence[str]) -> "CsvSource":
        return self.with_types(dict.fromkeys(columns, "VARCHAR"))

    def with_label_as_written(self, column: str) -> "CsvSource":
        """Read classes that are dates, or numbers among words, as text."""
        one = self.types[column]
        return self.as_text([column]) if one.cell_format is not None or one.kind.startswith("TIME") else self

    def as_learned(self, types: Mapping[str, str], habit: CellHabits | None = None) -> "CsvSource":
        source = self if habit is None else self._with_habit(habit)
        found = {
            name: source.cells.as_learned(name, source.types[name], types[name]) for name in self.names if name in types
        }
        return source._with_column_types(
            found, {name for name, one in found.items() if one.kind != self.types[name].kind}
        )

    def _with_habit(self, habit: CellHabits) -> "CsvSource":
        """Use the cell formats that a model has learned; options for this file take precedence."""
        own = self.cells.habit
        missing = tuple(dict.fromkeys((*self.missing, *habit.missing)))
        thousands, date_format = own.thousands or habit.thousands, own.date_format or habit.date_format
        cells = replace(self.cells, habit=CellHabits(missing, habit.marked, thousands, date_format))
        return replace(self._with_reads(missing=missing), cells=cells)

    def _with_column_types(self, types: Types, changed: Collection[str]) -> "CsvSource":
        """Replace types of columns, and drop the notes on those that changed."""
        notes = {name: note for name, note in self.notes.items() if name not in changed}
        return replace(self, types={**self.types, **types}, notes=notes)

    @property
    def learned_habit(self) -> CellHabits | None:
        formats = {name: self.types[name].cell_format for name in self.columns}
        marked = tuple(name for name, how in formats.items() if how is not None and how.markers)
        habit = replace(self.cells.habit, marked=marked)
        return None if habit == CellHabits() else habit

    @property
    def formats(self) -> dict[str, CellFormat]:
        """Formats of the columns that are read as numbers or dates, with the options given."""
        habit, kinds = self.cells.habit, {name: self.types[name].kind for name in self.names}
        return {
            name: CellFormat(kind, self.cells.point, habit.thousands, habit.date_format)
            for name, kind in kinds.items()
            if kind in ("DOUBLE", "BIGINT", "TIMESTAMP")
        }

    def resolve_types(self, sample: pa.Table) -> tuple["CsvSource", pa.Table]:
        unsure = [name for name in sample.column_names if name in self.types and not self.types[name].sure]
        source = self.infer_types(sample.select(unsure)) if unsure else self
        late = {name: one for name in unsure if (one := source.types[name]).sure}
        if late:
            formats = {name: one.cell_format or CellFormat(one.kind) for name, one in late.items()}
            cells = [
                formats[name].read(sample[name]) if name in formats else sample[name] for name in sample.column_names
            ]
            sample = pa.Table.from_arrays(cells, names=sample.column_names)
        sample = map_columns(sample, lambda cells: as_days(as_whole(cells)))
        days = {field.name: replace(source.types[field.name], days=True)
                for field in sample.schema if pa.types.is_date(field.type)}  # fmt: skip
        return replace(source, types={**source.types, **days}), sample

    def infer_types(self, cells: pa.Table) -> "CsvSource":
        """Infer the types of columns from cells of text; columns with only missing cells are unchanged."""
        seen = {name: self.cells.as_seen(self.types[name], cells[name]) for name in cells.column_names}
        notes = {name: note for name, (_, note) in seen.items() if note}
        types = {name: one for name, (one, _) in seen.items()}
        return replace(self, types={**self.types, **types}, notes={**self.notes, **notes})

    # Rows

    def tables(self) -> Iterator[pa.Table]:
        """Yield all rows, in parallel if quotes and line lengths allow it; on one thread after an error."""
        given, source = 0, self._in_threads()
        try:
            for piece in source._pieces():
                yield piece
                given += piece.num_rows
        except DataError:
            packed = any(read.compression is not None for read in self.reads)
            slow = source._on_one_thread(long_lines=self._size <= LONG_LINE_FILES and not packed)
            if slow.reads == source.reads or not self._quotes.closed:
                raise
            yield from _behind(given, slow._pieces())

    def _pieces(self) -> Iterator[pa.Table]:
        """Yield all rows from DuckDB, with the remaining conversions applied."""
        header = {there: here for read in self.reads for there, here in read.columns}
        duckdb = DuckDb(self.name, len(self.columns), header, self.called, True, self.more_memory)
        query, first = select_all(self.reads, self.names, self.types), 1
        for piece in duckdb.pieces(query, rows_of_piece(self.row_bytes or 0.0, len(self.columns))):
            cells = (self._convert(*column, first) for column in zip(self.names, piece.columns, strict=True))
            yield pa.Table.from_arrays(list(cells), names=list(self.names))
            first += piece.num_rows

    def _convert(
        self,
        name: str,
        cells: pa.ChunkedArray,
        first_row: int,
        one: ColumnType | None = None,
        missing: Sequence[str] = (),
    ) -> pa.ChunkedArray:
        """Convert a column from the type that DuckDB has read."""
        one = self.types[name] if one is None else one
        if one.cell_format is not None:
            try:
                cells = one.cell_format.read(cells, missing)
            except BadCell as bad:
                self._raise_by_line()
                raise bad.as_error(name, first_row) from None
        return as_days(cells) if one.days else cells

    def _raise_by_line(self) -> None:
        """Let DuckDB raise the error of an invalid cell, because it knows the line."""
        words = (word for marker in MARKERS for word in (marker, marker.upper(), marker.title()))
        types = {name: _as_duckdb_can(one) for name, one in self.types.items()}
        deque(replace(self._with_reads(missing=(*self.missing, *words)), types=types).tables(), maxlen=0)

    def beside_text(self) -> Iterator[tuple[pa.Table, pa.Table]]:
        as_text = {name: ColumnType("VARCHAR") for name in self.types}
        as_written = replace(self._with_reads(missing=()), types=as_text)
        plain = {
            name: replace(one, cell_format=one.cell_format or CellFormat(one.kind, self.cells.decimal, markers=False))
            for name, one in self.types.items()
        }
        first = 1
        for text in as_written.tables():
            cells = [self._convert(name, text[name], first, plain[name], self.missing) for name in self.names]
            yield pa.Table.from_arrays(cells, names=list(self.names)), text
            first += text.num_rows

    def cells_without_newline(self, column: str) -> tuple[str, ...]:
        found = []
        for read in self.reads:
            header = [here for _, here in read.columns]
            for path in read.paths if read.compression is None and column in header else ():
                cells = last_line_without_newline(path, read.delimiter)
                if len(cells) == len(header):
                    found.append(cells[header.index(column)])
        return tuple(found)

    # Threads, and long lines

    def _in_threads(self) -> "CsvSource":
        """Return a source that reads on one thread if parallel reading could split a row."""
        if all(read.one_thread or read.compression is not None for read in self.reads):
            return self
        quotes = self._quotes
        alone = quotes.long_lines or (quotes.closed and quotes.with_breaks)
        return self._on_one_thread(quotes.long_lines) if alone else self

    def _on_one_thread(self, long_lines: bool) -> "CsvSource":
        memory = 2e-6 * self._size if long_lines else 0.0  # DuckDB may keep the whole file in memory
        source = self._with_reads(one_thread=True, long_lines=long_lines or self.reads[0].long_lines)
        return replace(source, more_memory=max(self.more_memory, memory))

    def _with_reads(self, **changes: Any) -> "CsvSource":
        """Return the same files with other options for DuckDB."""
        return replace(self, reads=tuple(replace(read, **changes) for read in self.reads))

    @property
    def _quotes(self) -> Quotes:
        """Properties of quotes in all files."""
        found = [quotes_in(path, read.delimiter) for read in self.reads for path in read.paths]
        return Quotes.together(found)

    @property
    def _size(self) -> int:
        return sum(path.stat().st_size for path in self.files)


def _as_duckdb_can(one: ColumnType) -> ColumnType:
    """Return the type without a conversion here; text if DuckDB does not know the format of cells."""
    form = one.cell_format
    return replace(
        one, cell_format=None, wanted="VARCHAR" if form and (form.thousands or form.date_format) else one.wanted
    )


def _behind(rows: int, tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Skip the given number of rows."""
    for table in tables:
        if table.num_rows > rows or rows == 0:
            yield table.slice(rows)
        rows = max(rows - table.num_rows, 0)


def open_csv(
    name: str, paths: Sequence[Path], forms: Sequence[FileFormat], called: Mapping[str, str], missing: Sequence[str],
    habit: CellHabits,
) -> CsvSource:  # fmt: skip
    """Open CSV files. Files with the same header are read together, other columns are matched by name."""
    for path, form in zip(paths, forms, strict=True):
        refuse_damaged(path, called.get(str(path), str(path)), form.delimiter)
    names = tuple(dict.fromkeys(column for form in forms for column in form.header))
    reads = _reads(names, paths, forms, tuple(missing))
    own = replace(habit, missing=tuple(word for word in missing if word not in MISSING_WORDS))
    source = CsvSource(
        name, names, reads, CsvCells(reads[0].decimal, own),
        row_bytes=None if any(form.row_bytes is None for form in forms) else forms[0].row_bytes,
        types={name: ColumnType("VARCHAR", sure=False) for name in names}, files=tuple(paths), called=called,
    )  # fmt: skip
    return source.infer_types(source.head(max(1_000, min(TYPED_ROWS, TYPED_CELLS // len(source.names)))))


def _reads(
    names: Sequence[str], paths: Sequence[Path], forms: Sequence[FileFormat], missing: tuple[str, ...]
) -> tuple[CsvRead, ...]:
    """Group files of one format for DuckDB, with unambiguous column names."""
    inner = {column: f"d{j}" for j, column in enumerate(names)}
    alike: dict[Any, list[Path]] = {}
    for path, form in zip(paths, forms, strict=True):
        alike.setdefault((form.header, form.delimiter, form.decimal, form.skipped, form.compression), []).append(path)
    return tuple(
        CsvRead(
            tuple(files), tuple((inner[column], column) for column in header), delimiter, decimal, forms[0].named,
            skipped, missing, compression,
        )
        for (header, delimiter, decimal, skipped, compression), files in alike.items()
    )  # fmt: skip
