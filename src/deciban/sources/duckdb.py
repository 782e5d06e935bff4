"""DuckDB: its connections, SQL as text, and its errors in the terms of the user's files. Nobody else imports it.

Its messages are read by regular expressions, which is why `pyproject.toml` bounds its version from above.

Tables that DuckDB streams from files or a query, in memory that does not grow with them.

A `Read` is one thing that DuckDB reads, as a value that becomes SQL; a `Scan` has one or several, whose rows follow one
another. Each kind of file has its reads, and what else is special of it, in a file of its own.

Relations of DuckDB, in a connection of the user's, as a stream.
"""

import glob
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from uuid import uuid4

import pyarrow as pa

from deciban.errors import DataError, DecibanError, Place, UsageError, naming_source
from deciban.sources.dialects import DUCKDB
from deciban.sources.source import VECTOR_ROWS, Source, SqlRows, TypedSource, Types, in_pieces, rows_of_piece
from deciban.sources.temporary import spill_folder
from deciban.tables.table import repeated
from deciban.util.arrays import CORES

if TYPE_CHECKING:
    import duckdb


# Megabytes that DuckDB may take, and one more for each column.
DUCKDB_MEMORY = 128

# Megabytes that it sets aside for each open file of JSON, however short the file is.
JSON_FILE_MEMORY = 34

LINE = re.compile(r"CSV Error on Line: (\d+)")
FILE = re.compile(r"^\s*file = (.+)$", re.MULTILINE)
CELLS = re.compile(r"Expected Number of Columns: (\d+) Found: (\d+)")
CONVERTED = re.compile(r'converting column "(.*?)"\. Could not convert string "(.*?)" to \'(\w+)\'', re.DOTALL)
CONTENT = re.compile(r"^Original Line:\s*(.*)$", re.MULTILINE)  # a line that ends with CR LF begins with LF there
JSON_LINE = re.compile(r'in file "(.*?)",(?: at byte \d+)? in line (\d+): (.*)', re.DOTALL)
LONGEST = re.compile(r"Maximum line size of (\d+)")
NOTHING: Mapping[str, str] = {}
_RELATION = "open it with duckdb.connect, and pass the connection with table= or query="
_WITHOUT_QUERY = "which DuckDB does not read; give its name alone, without a query"
NOT_IN_QUERIES = {
    **dict.fromkeys((".xlsx", ".xls"), "a spreadsheet, which is not read; save the sheet as CSV"),
    **dict.fromkeys((".duckdb", ".ddb", ".db"), f"a database; {_RELATION}"),
    **dict.fromkeys((".arrow", ".arrows", ".feather"), f"an Arrow file, {_WITHOUT_QUERY}"),
    ".orc": f"an ORC file, {_WITHOUT_QUERY}",
    ".avro": "an Avro file, which is not read; save the table as Parquet",
}
EXPECTED_TYPES = {
    "DOUBLE": "a number",
    "BIGINT": "a whole number",
    "BOOLEAN": "true or false",
    "TIMESTAMP": "a date",
    "TIME": "a time",
}


def connect(columns: int = 0, *, parsing: bool = False, more_memory: float = 0.0) -> "duckdb.DuckDBPyConnection":
    """A DuckDB of its own, in memory that grows with the columns and not with the rows, which loads no extension.

    parsing: whether it parses text, which is most of the work; else half of the cores are left to those who count.
    more_memory: megabytes beyond those that rows of numbers need.
    """
    import duckdb

    config: dict[str, Any] = {
        "memory_limit": f"{DUCKDB_MEMORY + columns + int(more_memory)}MB",
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
    return DUCKDB.identifier(name)


def literal(text: str) -> str:
    """A text as SQL writes it."""
    return DUCKDB.literal(text)


def list_of(texts: Iterable[str]) -> str:
    """A list of texts as SQL writes it."""
    return "[" + ", ".join(map(literal, texts)) + "]"


def files_of(paths: Iterable[Path]) -> str:
    """A list of files as SQL writes it: none of their names is a pattern."""
    return list_of(glob.escape(str(path)) for path in paths)


def record_of(cells: Iterable[tuple[str, str]]) -> str:
    """A record of texts by name, as SQL writes it."""
    return "{" + ", ".join(f"{literal(name)}: {literal(cell)}" for name, cell in cells) + "}"


def select_from(table: str, columns: Sequence[str]) -> str:
    """The query for these columns, each an expression, which are called c0, c1 ... in the answer."""
    shown = ", ".join(f"{column} AS c{k}" for k, column in enumerate(columns))
    return f"SELECT {shown or '1'} FROM {table}"


@lru_cache(maxsize=1)
def keywords() -> frozenset[str]:
    """The words that are names in SQL only in quotes."""
    connection = connect()
    try:
        return frozenset(
            word for (word,) in connection.execute("SELECT keyword_name FROM duckdb_keywords()").fetchall()
        )
    finally:
        connection.close()


def query_error() -> type[Exception]:
    """The class of DuckDB's own errors."""
    import duckdb

    return duckdb.Error


def column_types(
    query: str, name: str, called: Mapping[str, str] = NOTHING, more_memory: float = 0.0
) -> dict[str, str]:
    """The names and types of the columns of one query, whose source the user calls `name`."""
    connection = connect(more_memory=more_memory)
    try:
        with translated_errors(name, called=called):
            if len(connection.extract_statements(query)) != 1:  # before any of them is run
                raise UsageError(f"{name}: these are several statements; give one query")
            relation = connection.sql(query)
            names, types = relation.columns, [str(kind) for kind in relation.types]
    finally:
        connection.close()
    if (twice := repeated(names)) is not None:
        raise DataError(f"{name}: column {twice!r} is there more than once; give every column its own name")
    return dict(zip(names, types, strict=True))


@contextmanager
def translated_errors(
    name: str, header: Mapping[str, str] = NOTHING, called: Mapping[str, str] = NOTHING
) -> Iterator[None]:
    """While it lasts, DuckDB's errors become ours. `header`, `called`: what the user calls its columns and files."""
    try:
        with interrupts():
            yield
    except (DataError, UsageError):
        raise
    except OSError as problem:
        if problem.errno is not None or isinstance(problem, FileNotFoundError | PermissionError):
            raise  # of the system
        raise _with_name(as_user_error(name, header, called, str(problem))) from None
    except Exception as problem:
        if isinstance(problem, RuntimeError) and "conversion error" in str(problem):
            damaged = DataError(f"{name}: the file is damaged, beyond what can be said of it; write it anew")
            raise naming_source(damaged) from None
        if type(problem).__module__.split(".")[0] not in ("duckdb", "_duckdb"):
            raise
        raise _with_name(as_user_error(name, header, called, str(problem))) from None


def _with_name(problem: Exception) -> Exception:
    return naming_source(problem) if isinstance(problem, DecibanError) else problem


@contextmanager
def interrupts() -> Iterator[None]:
    """While it lasts, a signal that DuckDB noticed is an interrupt and no error of a query."""
    try:
        yield
    except RuntimeError as problem:
        if "Query interrupted" in str(problem):
            raise KeyboardInterrupt from None
        raise


def as_user_error(name: str, header: Mapping[str, str], called: Mapping[str, str], text: str) -> Exception:
    """The error that the user sees."""
    for path in sorted(called, key=len, reverse=True):  # one may begin as another does
        text = text.replace(path, called[path])
    if found := re.search(r"Permission denied|Cannot open file", text):
        return PermissionError(f"{name}: the file cannot be read ({found[0].lower()}); check who may read it")
    if (unread := _of_an_extension(name, text)) is not None:
        return unread
    if "No space left" in text or "Out of Memory" in text:
        return OSError(f"{name}: {_first(text)}; free some space for temporary files")
    if found := LINE.search(text):
        return _csv_error(name, header, text, found)
    if found := JSON_LINE.search(text):
        line = int(found[2]) - ("Malformed" in text)  # counts one too many there
        return DataError(
            f"{name}, line {line}: this is not a line of JSON as those before ({_first(found[3])}); correct it"
        )
    if "invalid state" in text:
        return DataError(
            f"{name}: some lines end in another way than the first ones; write the file with one kind of end"
        )
    if "GZIP" in text.upper() or "zstd" in text.lower():
        return DataError(f"{name}: the compressed file is damaged or cut off ({_first(text)}); write it anew")
    if re.search("Parquet|magic bytes|footer|decompression|know what type|Out of buffer|Thrift", text, re.IGNORECASE):
        return DataError(f"{name}: the Parquet file is damaged or cut off ({_first(text)}); write it anew")
    kind = UsageError if re.match(r"(Parser|Binder|Catalog) Error", text) else DataError
    return kind(f"{name}: {_first(text)}")


def _of_an_extension(name: str, text: str) -> UsageError | None:
    """The error for what DuckDB reads only by an extension, or not at all."""
    own = "a DuckDB connection of your own, and pass its relation: connection.sql('select ...')"
    if found := re.search(r"File (\S+) requires the extension (\w+)", text):
        return UsageError(f"{name}: {found[1]} is not on this machine; download it, or load {found[2]} in {own}")
    if found := re.search(r'with name "?(\w+)"? is not in the catalog, but it exists in the (\w+) extension', text):
        return UsageError(
            f"{name}: {found[1]} is in DuckDB's extension {found[2]}, which is not loaded here; load it in {own}"
        )
    table = re.search(
        r"(?:Table with name|No files found that match the pattern) \"?([^\"\n]+?)\"?(?: does not exist|\n|$)", text
    )
    ending = "" if table is None else Path(table[1]).suffix.lower()
    if table is None or ending not in NOT_IN_QUERIES:
        return None
    return UsageError(f"{name}: {table[1]} is {NOT_IN_QUERIES[ending]}")


def _csv_error(name: str, header: Mapping[str, str], text: str, line: re.Match[str]) -> DataError:
    found = FILE.search(text)
    place = f"{name if found is None else found[1].strip()}, line {line[1]}"
    content = CONTENT.search(text)
    shown = _cut(content[1]) if content is not None else ""
    if cells := CELLS.search(text):
        return DataError(
            f"{place}: found {cells[2]} cells where the header has {cells[1]} ({shown!r}); "
            f"complete the row, or quote the cells that hold a separator"
        )
    if "unterminated quote" in text or "quote" in text.split("Possible")[0].lower():
        return DataError(
            f"{place}: a quote is opened and never closed ({shown!r}); close it, or double it inside a cell"
        )
    if bad := CONVERTED.search(text):
        column = header.get(bad[1], bad[1])
        return DataError(
            f"found {_cut(bad[2])!r}, expected {EXPECTED_TYPES.get(bad[3], bad[3])}",
            place=Place(place, column),
            remedy="correct the cell, leave it empty, name it as missing, or read the column as text",
        )
    if "unicode" in text.lower():
        return DataError(f"{place}: this is not UTF-8 text ({shown!r}); say how the file is encoded, such as latin-1")
    if longest := LONGEST.search(text):
        most = f"{int(longest[1]) // 1_000_000} MB"
        return DataError(f"{place}: a row is longer than {most}; is a quote not closed? Else shorten its cells")
    return DataError(f"{place}: {_first(text.split(line[0])[-1])} ({shown!r}); correct the row")


def _first(text: str) -> str:
    lines: list[Any] = [line.strip() for line in text.strip().splitlines() if line.strip()]
    return _cut(re.sub(r"^(\w+ )+Error: ", "", lines[0]), 160) if lines else "it cannot be read"


def _cut(text: str, most: int = 40) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


# Rows that DuckDB holds at least, read and handed out.
HELD_ROWS = 8 * VECTOR_ROWS

# Megabytes that DuckDB may take besides, to count; beyond them it writes to a temporary file.
COUNTING_MEMORY = 256


class Read(Protocol):
    """One thing that DuckDB reads: files of one form, or a query."""

    def select(self, names: Sequence[str], types: Types) -> str:
        """The query for these columns, which are called c0, c1 ... in its answer."""
        ...


@dataclass(frozen=True)
class Scan(TypedSource):
    """A table that is streamed from files or a query, as often as it is asked for. Its columns have types.

    reads: what DuckDB reads, one after the other. row_size: the bytes of a row in memory, about, where that is known
    beforehand. rows: their number, where that is known. named: files that a query names. kept: files that are deleted
    when nobody reads them any more. more_memory: megabytes of DuckDB beyond those that rows take.
    """

    reads: tuple[Read, ...]
    row_size: float = 0.0
    rows: int | None = None
    named: tuple[str, ...] = ()
    kept: tuple[Any, ...] = ()
    more_memory: float = 0.0

    @property
    def inputs(self) -> tuple[str, ...]:
        return (*super().inputs, *self.named)

    @property
    def expected(self) -> int | None:
        return self.rows

    def head(self, rows: int) -> pa.Table:
        if not self.files or any(one.wanted for one in self.types.values()):  # planned, and cast, in another way
            return super().head(rows)
        with self._answer(f"SELECT * FROM ({self._query}) LIMIT {int(rows)}") as reader:
            return self._named(reader.read_all())

    def tables(self) -> Iterator[pa.Table]:
        first = 1
        with self._answer(self._query) as reader:
            for piece in in_pieces(reader, self._piece_rows, reader.schema):
                yield self._named(piece, first)
                first += piece.num_rows

    @property
    def _query(self) -> str:
        return " UNION ALL ".join(read.select(self.names, self.types) for read in self.reads)

    @property
    def _piece_rows(self) -> int:
        """The rows of a piece, which depend on the table alone."""
        return rows_of_piece(self._row_bytes, len(self.columns))

    @property
    def _row_bytes(self) -> float:
        """The bytes of a row, about; 0 where nothing is known of it."""
        return self.row_size

    def _named(self, table: pa.Table, first_row: int = 1) -> pa.Table:
        """What DuckDB answered, as rows of this table; `first_row` is counted from 1."""
        return table.rename_columns(list(self.names))

    @contextmanager
    def _answer(self, query: str) -> Iterator[pa.RecordBatchReader]:
        """The answer of DuckDB to a query, as a stream."""
        connection = connect(
            len(self.columns),
            parsing=not self.typed,
            more_memory=self.more_memory + HELD_ROWS * self.row_size / 1e6,
        )
        try:
            with translated_errors(self.name, self._header, self.called):
                yield connection.sql(query).to_arrow_reader(self._piece_rows)
        finally:
            connection.close()
            pa.default_memory_pool().release_unused()

    @contextmanager
    def sql(self) -> Iterator[SqlRows]:
        """The rows as DuckDB has them, on all cores: nobody else counts."""
        connection = connect(len(self.columns), parsing=True, more_memory=self.more_memory + COUNTING_MEMORY)

        def ask(query: str) -> pa.Table:
            with translated_errors(self.name, self._header, self.called):
                return connection.sql(query).to_arrow_table()

        try:
            columns = {name: f"c{k}" for k, name in enumerate(self.names)}
            yield SqlRows.of(DUCKDB, f"({self._query}) AS source", columns, ask)
        finally:
            connection.close()
            pa.default_memory_pool().release_unused()

    @property
    def _header(self) -> Mapping[str, str]:
        """The names of columns by those that DuckDB knows them by, where these are others."""
        return NOTHING

    @property
    def _size(self) -> int:
        return sum(path.stat().st_size for path in self.files)


def select_typed(table: str, names: Sequence[str], types: Types) -> str:
    """The query for these columns of a table that has types, each cast to the one that is wanted."""
    casts = (f"CAST({quoted(name)} AS {wanted})" if (wanted := types[name].wanted) else quoted(name) for name in names)
    return select_from(table, list(casts))


def behind(rows: int, tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """What follows so many rows."""
    for table in tables:
        if table.num_rows > rows or rows == 0:
            yield table.slice(rows)
        rows = max(rows - table.num_rows, 0)


def is_relation(data: Any) -> bool:
    """Whether something is a relation of DuckDB."""
    return type(data).__name__ == "DuckDBPyRelation"


@dataclass(frozen=True)
class RelationRows(Source):
    """The rows of a relation."""

    relation: Any = field(default=None, compare=False)

    @classmethod
    def of(cls, relation: Any) -> "RelationRows":
        """A DataError where two columns have one name."""
        if (twice := repeated(relation.columns)) is not None:
            raise DataError(f"column {twice!r} is there more than once; give every column its own name")
        return cls("the relation", tuple(relation.columns), relation=relation)

    @property
    def expected(self) -> int | None:
        return None

    def reading_as(self, types: Mapping[str, str]) -> "RelationRows":
        return self

    def resolve_types(self, sample: pa.Table) -> "tuple[RelationRows, pa.Table]":
        return self, sample

    def tables(self) -> Iterator[pa.Table]:
        with translated_errors(self.name):
            reader = self.relation.project(", ".join(map(quoted, self.names))).to_arrow_reader()
            yield pa.Table.from_batches([], reader.schema)
            for batch in reader:
                yield pa.Table.from_batches([batch])

    @contextmanager
    def sql(self) -> Iterator[SqlRows]:
        yield rows_of_relation(self.relation, self.name, dict.fromkeys(self.names, ""))


def rows_of_relation(relation: Any, name: str, columns: Mapping[str, str]) -> SqlRows:
    """The rows of a relation, which the user calls `name`, as DuckDB has them; columns: the type of each that is to be
    cast, or nothing."""
    called = f"deciban_{uuid4().hex}"  # by statements alone: a table of this name would be counted in its place

    def ask(query: str) -> pa.Table:
        with translated_errors(name):
            return relation.query(called, query).to_arrow_table()

    cells = {column: f"{called}.{quoted(column)}" for column in columns}
    cast = {column: f"CAST({cells[column]} AS {kind})" if kind else cells[column] for column, kind in columns.items()}
    return SqlRows.of(DUCKDB, called, cast, ask)
