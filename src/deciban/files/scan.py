"""Files and SQL, read through DuckDB as a stream of Arrow tables: memory does not grow with the file.

Of CSV files DuckDB does the splitting and converting (unless `quick` does); what the columns are is found here, because
a guess from the first rows must not change later ones. Numbers are read as doubles, so that 3.5 after ten thousand
whole numbers is 3.5.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from deciban.arrays import CORES
from deciban.errors import BadCell, DataError
from deciban.files.direct_readers import PIECE, UNSUITABLE, DirectReader, bytes_of, pieces
from deciban.files.duckdb_errors import interrupts, translated_errors
from deciban.files.sniff import LONGEST_LINE, Quotes, quotes_in, unfinished_line
from deciban.files.stream import Source
from deciban.files.temporary import spill_folder
from deciban.progress import Advance
from deciban.tables.arrow import with_each
from deciban.tables.cell_formats import MARKERS, CellFormat, CellHabits, marker_note, sniffed_format
from deciban.tables.row_sampling import drawn, rows_that_fit
from deciban.tables.text_types import as_days, as_whole, kind_of, text_type

if TYPE_CHECKING:
    import duckdb

# Rows of one piece of a stream.
PIECE_ROWS = 3 << 13

PIECE_CELLS = 1 << 21

# Megabytes of DuckDB, and one more for each column. For a file of JSON it sets more aside, however short it is.
MEMORY = 128
JSON_MEMORY = 34

# Options of a call that reads a CSV file as it is written, and one with long rows; these only in files up to a size.
ONE_THREAD = ", parallel=false"
LONG_LINES = f", max_line_size={LONGEST_LINE + (1 << 20)}"
LONG_LINE_FILES = 1 << 30

# Rows that DuckDB handles together, and that it holds at least, of those that are read and of those that are given.
VECTOR = 2048
HELD_ROWS = 8 * VECTOR

# What DuckDB calls the number of a row of a Parquet file.
ROW_NUMBER = "file_row_number"


@dataclass(frozen=True)
class Reading:
    """One thing that DuckDB reads: a call or a query, and the names of its columns, there and here."""

    call: str
    columns: tuple[tuple[str, str], ...]
    csv: bool = False
    json: bool = False
    compressed: bool = False
    delimiter: str = ","
    files: tuple[Path, ...] = ()

    def on_one_thread(self, long_lines: bool = False) -> "Reading":
        """Read from the beginning to the end: of a cell with line breaks a thread cannot know that it is in one.

        long_lines: rows may be longer than two megabytes; then DuckDB holds as much of the file as it can.
        """
        call = self.call
        for option in (ONE_THREAD, LONG_LINES) if long_lines else (ONE_THREAD,):
            if self.csv and option not in call:
                call = f"{call.removesuffix(')')}{option})"
        return replace(self, call=call)

    def select(self, names: Sequence[str], types: Mapping[str, str], missing: Sequence[str] = ()) -> str:
        """The query for these columns; those that it does not have are missing, as are these cells of a CSV file."""
        inner = {here: there for there, here in self.columns}
        shown = []
        for k, name in enumerate(names):
            there = quoted(inner[name]) if name in inner else "NULL"
            if not self.csv and name in types:
                there = f"CAST({there} AS {types[name]})"
            shown.append(f"{there} AS c{k}")
        call = self.call
        if self.csv:
            read_as = (f"'{there}': '{types.get(here, 'VARCHAR')}'" for there, here in self.columns)
            call = call.replace("%COLUMNS%", ", ".join(read_as))
            call = call.replace("%MISSING%", ", ".join(map(literal, ("", *missing))))
        return f"SELECT {', '.join(shown)} FROM {call}"


@dataclass(frozen=True)
class Scan(Source):
    """A table that is streamed from files or a query, as often as it is asked for.

    types: DuckDB's, of columns of text that is to be converted, or of others that are to be cast. own_types: those that
    columns have by themselves. unsure: columns of a CSV file that had no cell where its types were looked up. days:
    columns of a CSV file that hold dates without a time of the day. missing: cells of a CSV file that mean a missing
    one. written: columns of a CSV file that are read as text and converted here. habit: how the user writes cells.
    """

    readings: tuple[Reading, ...]
    types: Mapping[str, str] = field(default_factory=dict)
    own_types: Mapping[str, str] = field(default_factory=dict)
    unsure: frozenset[str] = frozenset()
    days: frozenset[str] = frozenset()
    row_bytes: float | None = None  # on average in a file of text
    row_size: float = 0.0  # in memory, about, where that is known beforehand
    decimal: str = "."
    rows: int | None = None  # where that is known beforehand
    quick: DirectReader | None = None  # reads files without DuckDB
    named: tuple[str, ...] = ()  # files that a query names
    missing: tuple[str, ...] = ()
    written: Mapping[str, CellFormat] = field(default_factory=dict)
    habit: CellHabits = CellHabits()
    kept: tuple[Any, ...] = ()  # files that are deleted when nobody reads them any more

    @property
    def inputs(self) -> tuple[str, ...]:
        return (*super().inputs, *self.named)

    @cached_property
    def expected(self) -> int | None:
        """About how many rows there are."""
        if self.row_bytes is not None:
            return int(self._size / self.row_bytes)
        return self.rows

    def head(self, rows: int) -> pa.Table:
        if (quick := self.quickly) is not None:
            with suppress(*UNSUITABLE):
                if (first := quick.first).num_rows >= min(rows, rows if self.rows is None else self.rows):
                    return pa.Table.from_batches([first.slice(0, rows)]).select(self.names)
        if not self.files or not self.typed or self.types:  # else a query is planned, and casts, in another way
            return super().head(rows)
        with self._reader(f"SELECT * FROM ({self._union(self.names)}) LIMIT {int(rows)}") as reader:
            return self._named(reader.read_all())

    @property
    def typed(self) -> bool:
        return not any(reading.csv for reading in self.readings)

    @property
    def has_types(self) -> bool:
        return self.typed or self.quickly is not None

    @property
    def quickly(self) -> DirectReader | None:
        """What reads it without DuckDB, if nobody has to convert a cell."""
        own = {name: self.own_types.get(name, "VARCHAR") for name in self.names}
        as_they_are = all(self.types.get(name, kind) == kind for name, kind in own.items())
        return self.quick if own and as_they_are else None

    def with_types(self, types: Mapping[str, str]) -> "Scan":
        """Read some columns as another type."""
        self._refuse_unknown(types)
        written = {name: how for name, how in self.written.items() if name not in types}
        if not self.typed:
            written |= {name: how for name, kind in types.items() if (how := self._written_as(kind)) is not None}
        notes = {name: note for name, note in self.notes.items() if name not in types}
        unsure = self.unsure - set(types)
        return replace(self, types={**self.types, **types}, unsure=unsure, written=written, notes=notes)

    @property
    def _point(self) -> str:
        """The decimal sign where there is one between thousands, which may say it: 4.706,79 is in euros."""
        return {".": ",", ",": "."}.get(self.habit.thousands, self.decimal)

    def _written_as(self, kind: str) -> CellFormat | None:
        """How columns of this type are written, where the user said something of that."""
        if kind == "DOUBLE" and self.habit.thousands:
            return CellFormat(kind, self._point, self.habit.thousands, markers=False)
        if kind == "TIMESTAMP" and self.habit.date_format:
            return CellFormat(kind, date_format=self.habit.date_format, markers=False)
        return None

    @property
    def learned_habit(self) -> CellHabits | None:
        marked = tuple(name for name, how in self.written.items() if how.markers and name in self.columns)
        habit = replace(self.habit, marked=marked)
        return None if habit == CellHabits() else habit

    def with_habit(self, habit: CellHabits) -> "Scan":
        """Read cells as a model has learned to; what the user says of this file goes before."""
        if self.typed:
            return self
        missing = tuple(dict.fromkeys((*self.missing, *habit.missing)))
        mine = self.habit
        both = CellHabits(
            missing, habit.marked, mine.thousands or habit.thousands, mine.date_format or habit.date_format
        )
        return replace(self, missing=missing, habit=both, quick=self.quick if missing == self.missing else None)

    def as_text(self, columns: Sequence[str]) -> "Scan":
        """Leave some columns of a CSV file as they are written."""
        return self if self.typed else self.with_types(dict.fromkeys(columns, "VARCHAR"))

    def with_label_as_written(self, column: str) -> "Scan":
        """Classes that are dates in a CSV file, or numbers among other words, are taken as they are written."""
        as_written = column in self.written or self.types.get(column, "").startswith("TIME")
        return self.as_text([column]) if as_written else self

    def looks_like(self, column: str) -> str:
        as_written = column in self.written and self.written[column].markers
        return "VARCHAR" if as_written else kind_of(self.types.get(column, self.own_types.get(column, "")))

    def reading_as(self, types: Mapping[str, str]) -> "Scan":
        wanted = {}
        for name in self.names:
            kind = kind_of(types.get(name, "null"))
            here = self.own_types.get(name, "") if self.typed else self.types.get(name, "VARCHAR")
            if kind and kind != kind_of(here) and (not self.typed or kind == "VARCHAR"):
                wanted[name] = kind
        if self.typed:
            return self.with_types(wanted) if wanted else self
        days = {name for name in self.names if types.get(name, "").startswith("date")}
        found = self.with_types(wanted) if wanted else self
        return replace(found, days=found.days | days, written={**found.written, **self._written_by(types, wanted)})

    def _written_by(self, types: Mapping[str, str], wanted: Mapping[str, str]) -> dict[str, CellFormat]:
        """Columns of a model's numbers and dates that look like something else here, or had words for missing cells."""
        habit, marked = self.habit, set(self.habit.marked)
        found = {}
        for name in self.names:
            kind = kind_of(types.get(name, "null"))
            unknown = name in wanted or name in marked or name in self.written
            if kind == "DOUBLE" and (unknown or habit.thousands):
                found[name] = CellFormat(kind, self._point, habit.thousands)
            elif kind == "TIMESTAMP" and unknown:
                found[name] = CellFormat(kind, date_format=habit.date_format)
        return found

    def tables(self) -> Iterator[pa.Table]:
        given = 0
        if (quick := self.quickly) is not None:
            try:
                for piece in pieces(quick, self.names):
                    yield piece
                    given += piece.num_rows
                return
            except UNSUITABLE:
                pass
        try:
            for piece in _behind(given, self._read()):
                yield piece
                given += piece.num_rows
        except DataError:
            long_lines = self._size <= LONG_LINE_FILES and not any(one.compressed for one in self.readings)
            slowly = replace(self, readings=tuple(reading.on_one_thread(long_lines) for reading in self.readings))
            if slowly.readings == self.readings or not self._quotes.closed:
                raise
            yield from _behind(given, slowly._read())

    def unfinished(self, column: str) -> tuple[str, ...]:
        found = []
        for reading in self.readings:
            header = [here for _, here in reading.columns]
            for path in reading.files if reading.csv and not reading.compressed and column in header else ():
                cells = unfinished_line(path, reading.delimiter)
                if len(cells) == len(header):
                    found.append(cells[header.index(column)])
        return tuple(found)

    def beside_text(self) -> Iterator[tuple[pa.Table, pa.Table]]:
        if self.typed:
            yield from super().beside_text()
            return
        as_text = dict.fromkeys(self.types, "VARCHAR")
        nothing = frozenset[str]()
        as_written = replace(self, types=as_text, written={}, days=nothing, unsure=nothing, missing=(), quick=None)
        first = 1
        for text in as_written.tables():
            cells = [self._from_text(name, text[name], first) for name in self.names]
            yield pa.Table.from_arrays(cells, names=list(self.names)), text
            first += text.num_rows

    def _from_text(self, name: str, cells: pa.ChunkedArray, first_row: int) -> pa.ChunkedArray:
        plain = CellFormat(self.types.get(name, "VARCHAR"), self.decimal, markers=False)
        return self._converted(name, cells, first_row, self.written.get(name, plain), self.missing)

    def _read(self) -> Iterator[pa.Table]:
        alone = tuple(reading.on_one_thread() for reading in self.readings)
        in_parts = any(one != reading for one, reading in zip(alone, self.readings, strict=True) if not one.compressed)
        if in_parts and (quotes := self._quotes).long_lines:
            alone = tuple(reading.on_one_thread(long_lines=True) for reading in self.readings)
            yield from replace(self, readings=alone)._read()
            return
        if in_parts and quotes.closed and quotes.with_breaks:
            yield from replace(self, readings=alone)._read()
            return
        first = 1
        with self._reader(self._union(self.names)) as reader:
            for piece in _pieces(reader, self._piece_rows, reader.schema):
                yield self._named(piece, first)
                first += piece.num_rows

    @property
    def _quotes(self) -> Quotes:
        """The quotes of all files."""
        found = [quotes_in(path) for path in self.files]
        closed = all(one.closed for one in found)
        longest = max((one.longest_line for one in found), default=0)
        return Quotes(closed, any(one.with_breaks for one in found), longest)

    @property
    def _size(self) -> int:
        return bytes_of(self.files)

    @property
    def _piece_rows(self) -> int:
        """The rows of a piece, which depend on the table alone."""
        few = int(PIECE / max(self.row_size, self.row_bytes or 0.0, 1.0))
        rows = min(PIECE_ROWS, max(256, min(few, PIECE_CELLS // max(len(self.columns), 1))))
        return rows - rows % VECTOR if rows > VECTOR else rows  # as DuckDB has them: then nothing is copied

    def sample(self, most: int, advance: Advance) -> tuple[pa.Table, int]:
        if self._numbered and self.expected is not None:
            rows = pa.table({"place": drawn(self.expected, rows_that_fit(most, self.row_size))})
            query = f"{self._union(self.names)} WHERE {ROW_NUMBER} IN (SELECT place FROM drawn) ORDER BY {ROW_NUMBER}"
            with self._reader(query, drawn=rows) as reader:
                return self._named(reader.read_all()), self.expected
        return super().sample(most, advance)

    @property
    def _numbered(self) -> bool:
        """Whether DuckDB knows the number of each row."""
        return len(self.files) == 1 and f"{ROW_NUMBER}=true" in self.readings[0].call

    def resolve_types(self, sample: pa.Table) -> tuple["Scan", pa.Table]:
        unsure = [name for name in sample.column_names if name in self.unsure]
        scan = self.looked_at(sample.select(unsure)) if unsure else self
        late = {name: scan.written.get(name, CellFormat(scan.types[name])) for name in self.unsure & scan.types.keys()}
        if late:
            cells = [late[name].read(sample[name]) if name in late else sample[name] for name in sample.column_names]
            sample = pa.Table.from_arrays(cells, names=sample.column_names)
        if self.typed:
            return scan, sample
        sample = with_each(sample, lambda cells: as_days(as_whole(cells)))
        days = {field.name for field in sample.schema if pa.types.is_date(field.type)}
        return replace(scan, days=scan.days | days), sample

    def looked_at(self, cells: pa.Table) -> "Scan":
        """The scan of a CSV file whose columns are what such cells of text look like, where they are not missing."""
        types, written, notes = dict(self.types), dict(self.written), dict(self.notes)
        for name, column in zip(cells.column_names, cells.columns, strict=True):
            kind = text_type(column, self.decimal)
            if kind is None:
                continue
            habit = self.habit
            how = sniffed_format(column, self._point, habit.thousands, habit.date_format) if kind == "VARCHAR" else None
            if how is not None:
                kind = how.kind
                note = marker_note(column, how)
                notes |= {name: note} if note else {}
            elif (how := self._written_as(kind)) is not None:
                how = replace(how, markers=True)
            written |= {name: how} if how is not None else {}
            types[name] = kind
        return replace(self, types=types, unsure=frozenset(self.names) - set(types), written=written, notes=notes)

    def _named(self, table: pa.Table, first_row: int = 1) -> pa.Table:
        if not self.days and not self.written:
            return table.rename_columns(list(self.names))
        cells = []
        for name, column in zip(self.names, table.columns, strict=True):
            cells.append(self._converted(name, column, first_row, self.written.get(name)))
        return pa.Table.from_arrays(cells, names=list(self.names))

    def _converted(
        self, name: str, cells: pa.ChunkedArray, first_row: int, written: CellFormat | None, missing: Sequence[str] = ()
    ) -> pa.ChunkedArray:
        """A column as it is to be read, from what DuckDB has read it as."""
        if written is not None:
            try:
                cells = written.read(cells, missing)
            except BadCell as bad:
                self._complain_by_line()
                raise bad.as_error(name, first_row) from None
        return as_days(cells) if name in self.days else cells

    def _complain_by_line(self) -> None:
        """Have DuckDB, which knows the line, complain of a cell that cannot be read, if it is wrong for DuckDB too."""
        forms = {name for name, how in self.written.items() if how.thousands or how.date_format}
        types = {name: "VARCHAR" if name in forms else kind for name, kind in self.types.items()}
        missing = (*self.missing, *(word for marker in MARKERS for word in (marker, marker.upper(), marker.title())))
        deque(replace(self, types=types, written={}, missing=missing).tables(), maxlen=0)

    def _union(self, names: Sequence[str]) -> str:
        if not names:
            return " UNION ALL ".join(f"SELECT 1 FROM {reading.call}" for reading in self.readings)
        types = {name: "VARCHAR" if name in self.written else kind for name, kind in self.types.items()}
        return " UNION ALL ".join(reading.select(names, types, self.missing) for reading in self.readings)

    @contextmanager
    def _reader(self, query: str, **tables: pa.Table) -> Iterator[pa.RecordBatchReader]:
        """The answer of DuckDB, streamed; what goes wrong is told in terms of the file."""
        held = self._size / HELD_ROWS if any(LONG_LINES in reading.call for reading in self.readings) else 0.0
        lines = 2 if any(reading.json for reading in self.readings) else 0
        row_size = max(self.row_size, 2.0 * held)
        connection = connect(len(self.columns), not self.typed, row_size, lines)
        for name, table in tables.items():
            connection.register(name, table)
        try:
            with translated_errors(
                self.name, {there: here for one in self.readings for there, here in one.columns}, self.called
            ):
                reader = connection.sql(query).to_arrow_reader(self._piece_rows)
                yield reader
        finally:
            connection.close()
            pa.default_memory_pool().release_unused()


def _behind(rows: int, pieces: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """What is behind so many rows."""
    for piece in pieces:
        if piece.num_rows > rows or rows == 0:
            yield piece.slice(rows)
        rows = max(rows - piece.num_rows, 0)


def _pieces(batches: Iterable[pa.RecordBatch], size: int, schema: pa.Schema) -> Iterator[pa.Table]:
    """The rows in pieces of one size, in whatever batches they are read on so many threads; at least one piece.

    So the sums of a model do not depend on the machine, in no digit.
    """
    held, empty = schema.empty_table(), True
    for batch in batches:
        more = pa.Table.from_batches([batch])
        held = pa.concat_tables([held, more]) if held.num_rows else more
        while held.num_rows >= size:
            empty = False
            yield held.slice(0, size).combine_chunks()
            held = held.slice(size)
    if held.num_rows or empty:
        yield held.combine_chunks()


def connect(
    columns: int = 0, parsing: bool = False, row_size: float = 0.0, json_files: int = 0
) -> "duckdb.DuckDBPyConnection":
    """A DuckDB of its own, in memory that grows with the columns and not with the rows, which loads nothing else.

    parsing: of text, which is most of the work; else half of the cores are left to those who count. row_size: the bytes
    of a row, of which DuckDB holds a few thousand at least. json_files: so many are open at once.
    """
    import duckdb

    config: dict[str, Any] = {
        "memory_limit": f"{MEMORY + columns + int(HELD_ROWS * row_size / 1e6) + JSON_MEMORY * json_files}MB",
        "threads": CORES if parsing else max(1, CORES // 2),
        "temp_directory": spill_folder(),
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "python_enable_replacements": False,
    }
    with interrupts():
        connection = duckdb.connect(config=config)
        connection.execute("SET disable_parquet_prefetching = true")  # of all columns of a group of rows, at once
    return connection


def quoted(name: str) -> str:
    """A name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text as SQL writes it."""
    return "'" + text.replace("'", "''") + "'"
