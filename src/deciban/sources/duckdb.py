"""DuckDB: connections, SQL as text, translated errors, and the sources it streams.

No other module imports it. Its error messages are parsed with regular expressions, so `pyproject.toml` has an upper
bound for its version. A `Read` is a value that becomes SQL for one set of files or one query. A source has one or more
reads, whose rows follow one another.
"""

import glob
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol
from uuid import uuid4

import pyarrow as pa

from deciban.errors import Argument, DataError, Message, Place, UsageError
from deciban.sources.dialects import DUCKDB
from deciban.sources.source import (
    VECTOR_ROWS,
    Source,
    SqlRows,
    Types,
    duplicate_column_error,
    in_pieces,
    is_sorted_query,
    rows_of_piece,
)
from deciban.util import shutdown
from deciban.util.arrays import CORES
from deciban.util.text_tables import count_noun, find_duplicate

if TYPE_CHECKING:
    import duckdb


# Memory limit of DuckDB in megabytes, plus one per column.
DUCKDB_MEMORY = 128

# Megabytes that DuckDB reserves per open JSON file of any size.
JSON_FILE_MEMORY = 34

LINE = re.compile(r"CSV Error on Line: (\d+)")
FILE = re.compile(r"^\s*file = (.+)$", re.MULTILINE)
CELLS = re.compile(r"Expected Number of Columns: (\d+) Found: (\d+)")
CONVERTED = re.compile(r'converting column "(.*?)"\. Could not convert string "(.*?)" to \'(\w+)\'', re.DOTALL)
CONTENT = re.compile(r"^Original Line:\s*(.*)$", re.MULTILINE)  # after CR LF the line starts with LF
JSON_LINE = re.compile(r'in file "(.*?)",(?: at byte \d+)? in line (\d+): (.*)', re.DOTALL)
LINE_SIZE_ERROR = re.compile(r"Maximum line size of (\d+)")
NOTHING: Mapping[str, str] = {}

# File types that queries cannot read, by extension, with a remedy.
_BY_CONNECTION = (
    "open it with duckdb.connect, and pass the connection with ",
    Argument("table"),
    " or ",
    Argument("query"),
)
_ALONE = "pass the file name, without a query"
NOT_IN_QUERIES: dict[str, tuple[str, Message]] = {
    **dict.fromkeys((".xlsx", ".xls", ".ods"), ("a spreadsheet, which SQL cannot read", _ALONE)),
    **dict.fromkeys((".duckdb", ".ddb", ".db"), ("a database", _BY_CONNECTION)),
    **dict.fromkeys((".arrow", ".arrows", ".feather"), ("an Arrow file, which DuckDB does not support", _ALONE)),
    ".orc": ("an ORC file, which DuckDB does not support", _ALONE),
    ".avro": ("an Avro file, which is not supported", "save the table as Parquet"),
}
EXPECTED_TYPES = {
    "DOUBLE": "a number",
    "BIGINT": "a whole number",
    "BOOLEAN": "true or false",
    "TIMESTAMP": "a date",
    "TIME": "a time",
}


def connect(columns: int = 0, *, parsing: bool = False, more_memory: float = 0.0) -> "duckdb.DuckDBPyConnection":
    """Open an in-memory DuckDB without extensions. Its memory grows with the columns, not with the rows.

    parsing: True if it parses text, which is most of the work; else it uses half of the cores.
    more_memory: megabytes beyond those for rows of numbers.
    """
    try:
        import duckdb
    except ImportError:
        raise UsageError(
            "CSV, JSON and Parquet files need DuckDB, which is not installed", remedy="run pip install duckdb"
        ) from None

    config: dict[str, Any] = {
        "memory_limit": f"{DUCKDB_MEMORY + columns + int(more_memory)}MB",
        "threads": CORES if parsing else max(1, CORES // 2),
        "temp_directory": _spill_folder(),
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "python_enable_replacements": False,
    }
    with raise_interrupts():
        connection = duckdb.connect(config=config)
        connection.execute("SET disable_parquet_prefetching = true")  # it would load all columns of a row group at once
    return connection


# Idle connections, most recently used last. Starting one takes 10 to 20 ms, longer than reading a short file.
_IDLE: list[tuple[tuple[Any, ...], "duckdb.DuckDBPyConnection"]] = []
_IDLE_LOCK = Lock()

# Maximum number of idle connections.
MAX_IDLE = 4


@contextmanager
def borrow_connection(
    columns: int = 0, *, parsing: bool = False, more_memory: float = 0.0
) -> Iterator["duckdb.DuckDBPyConnection"]:
    """Lend a pooled DuckDB for queries that leave no state; see `connect`. It is closed after an error."""
    columns = -(-columns // 64) * 64  # tables of similar width share a connection
    wanted = (columns, parsing, more_memory)
    with _IDLE_LOCK:
        place = next((k for k, (configuration, _) in enumerate(_IDLE) if configuration == wanted), None)
        connection = None if place is None else _IDLE.pop(place)[1]
    if connection is None:
        connection = connect(columns, parsing=parsing, more_memory=more_memory)
    try:
        yield connection
    except BaseException:
        connection.close()
        raise
    with _IDLE_LOCK:
        _IDLE.append((wanted, connection))
    close_idle(MAX_IDLE)


def close_idle(kept: int = 0) -> None:
    """Close idle connections, except for the `kept` most recent ones."""
    with _IDLE_LOCK:
        spare = max(len(_IDLE) - kept, 0)
        closed, _IDLE[:] = _IDLE[:spare], _IDLE[spare:]
    for _, connection in closed:
        connection.close()


if hasattr(os, "register_at_fork"):  # a forked process would wait for threads it lacks
    os.register_at_fork(before=close_idle)


def _spill_folder() -> str:
    """Return the folder in which DuckDB stores data that exceed its memory."""
    path = os.path.join(tempfile.gettempdir(), f"deciban-{os.getpid()}.spill")
    shutdown.remove_at_exit(path)
    return path


def quote_name(name: str) -> str:
    """Return a quoted name."""
    return DUCKDB.identifier(name)


def literal(text: str) -> str:
    """Return a text literal."""
    return DUCKDB.literal(text)


def list_of(texts: Iterable[str]) -> str:
    """Return a list of text literals."""
    return "[" + ", ".join(map(literal, texts)) + "]"


def files_of(paths: Iterable[Path]) -> str:
    """Return a list of files, in which no name is a pattern."""
    return list_of(glob.escape(str(path)) for path in paths)


def record_of(cells: Iterable[tuple[str, str]]) -> str:
    """Return a struct of texts by name."""
    return "{" + ", ".join(f"{literal(name)}: {literal(cell)}" for name, cell in cells) + "}"


def select_from(table: str, columns: Sequence[str]) -> str:
    """Return a query for expressions, which are named c0, c1 ... in its result."""
    shown = ", ".join(f"{column} AS c{k}" for k, column in enumerate(columns))
    return f"SELECT {shown or '1'} FROM {table}"


@lru_cache(maxsize=1)
def keywords() -> frozenset[str]:
    """Return the words that must be quoted to be names."""
    with borrow_connection() as connection:
        words = connection.execute("SELECT keyword_name FROM duckdb_keywords()").fetchall()
        return frozenset(word for (word,) in words)


def query_error() -> type[Exception]:
    """Return the class of DuckDB's errors."""
    import duckdb

    return duckdb.Error


def column_types(
    query: str, name: str, called: Mapping[str, str] = NOTHING, more_memory: float = 0.0
) -> dict[str, str]:
    """Return the names and types of the columns of a query. name: name of its source in messages."""
    with borrow_connection(more_memory=more_memory) as connection, translate_errors(name, called=called):
        if len(connection.extract_statements(query)) != 1:  # checked before any of them runs
            raise UsageError("found several statements", place=Place(name), remedy="give one query")
        relation = connection.sql(query)
        names, types = relation.columns, [str(kind) for kind in relation.types]
    if (twice := find_duplicate(names)) is not None:
        raise duplicate_column_error(twice, name)
    return dict(zip(names, types, strict=True))


@contextmanager
def translate_errors(
    name: str, header: Mapping[str, str] = NOTHING, called: Mapping[str, str] = NOTHING
) -> Iterator[None]:
    """Translate DuckDB's errors. header, called: names of columns and files in messages."""
    try:
        with raise_interrupts():
            yield
    except (DataError, UsageError):
        raise
    except OSError as problem:
        if problem.errno is not None or isinstance(problem, FileNotFoundError | PermissionError):
            raise  # a system error
        raise as_user_error(name, header, called, str(problem)) from None
    except Exception as problem:
        if isinstance(problem, RuntimeError) and "conversion error" in str(problem):
            message = "the file is damaged"
            raise DataError(message, place=Place(name), remedy="write it again") from None
        if type(problem).__module__.split(".")[0] not in ("duckdb", "_duckdb"):
            raise
        raise as_user_error(name, header, called, str(problem)) from None


@contextmanager
def raise_interrupts() -> Iterator[None]:
    """Raise KeyboardInterrupt for a signal that DuckDB reports as an error."""
    try:
        yield
    except RuntimeError as problem:
        if "Query interrupted" in str(problem):
            raise KeyboardInterrupt from None
        raise


def as_user_error(name: str, header: Mapping[str, str], called: Mapping[str, str], text: str) -> Exception:
    """Return the error to raise for an error message of DuckDB."""
    for path in sorted(called, key=len, reverse=True):  # longest first: one may be a prefix of another
        text = text.replace(path, called[path])
    if found := re.search(r"Permission denied|Cannot open file", text):
        return PermissionError(f"{name}: cannot read the file ({found[0].lower()}); check its permissions")
    if (unread := _of_an_extension(name, text)) is not None:
        return unread
    if "No space left" in text or "Out of Memory" in text:
        return OSError(f"{name}: {_first_line(text)}; free some disk space for temporary files")
    if found := LINE.search(text):
        return _csv_error(name, header, text, found)
    if found := JSON_LINE.search(text):
        line = int(found[2]) - ("Malformed" in text)  # DuckDB counts one line too many here
        message = f"invalid JSON: {_first_line(found[3]).rstrip('.')}"
        return DataError(message, place=Place(f"{name}, line {line}"))
    place = Place(name)
    if "invalid state" in text:
        message = "the line ends are inconsistent"
        return DataError(message, place=place, remedy="use one kind of line end in the file")
    if "GZIP" in text.upper() or "zstd" in text.lower():
        message = f"the compressed file is damaged or truncated ({_first_line(text)})"
        return DataError(message, place=place, remedy="write it again")
    if re.search("Parquet|magic bytes|footer|decompression|know what type|Out of buffer|Thrift", text, re.IGNORECASE):
        message = f"the Parquet file is damaged or truncated ({_first_line(text)})"
        return DataError(message, place=place, remedy="write it again")
    kind = UsageError if re.match(r"(Parser|Binder|Catalog) Error", text) else DataError
    return kind(_first_line(text), place=place)


def _of_an_extension(name: str, text: str) -> UsageError | None:
    """Return the error for files that need an extension, or are not supported; None for other errors."""
    own = "your own DuckDB connection and pass a relation: connection.sql('select ...')"
    if found := re.search(r"File (\S+) requires the extension (\w+)", text):
        remedy = f"download it, or load {found[2]} in {own}"
        return UsageError(f"{found[1]} is not a local file", place=Place(name), remedy=remedy)
    if found := re.search(r'with name "?(\w+)"? is not in the catalog, but it exists in the (\w+) extension', text):
        message = f"{found[1]} needs DuckDB's extension {found[2]}, which is not loaded"
        return UsageError(message, place=Place(name), remedy=f"load it in {own}")
    table = re.search(
        r"(?:Table with name|No files found that match the pattern) \"?([^\"\n]+?)\"?(?: does not exist|\n|$)", text
    )
    ending = "" if table is None else Path(table[1]).suffix.lower()
    if table is None or ending not in NOT_IN_QUERIES:
        return None
    kind, what_to_do = NOT_IN_QUERIES[ending]
    return UsageError(f"{table[1]} is {kind}", place=Place(name), remedy=what_to_do)


def _csv_error(name: str, header: Mapping[str, str], text: str, line: re.Match[str]) -> DataError:
    found = FILE.search(text)
    place = Place(f"{name if found is None else found[1].strip()}, line {line[1]}")
    content = CONTENT.search(text)
    shown = _truncate(content[1]) if content is not None else ""
    if cells := CELLS.search(text):
        message = f"{shown!r} has {count_noun(int(cells[2]), 'cell')}, but the header has {cells[1]}"
        return DataError(message, place=place, remedy="fix the row, or quote cells that contain the delimiter")
    if "unterminated quote" in text or "quote" in text.split("Possible")[0].lower():
        message = f"unclosed quote in {shown!r}"
        return DataError(message, place=place, remedy="close it; inside a cell, write two quotes for one")
    if bad := CONVERTED.search(text):
        message = f"found {_truncate(bad[2])!r}, expected {EXPECTED_TYPES.get(bad[3], bad[3])}"
        remedy = "correct the cell, leave it empty, treat it as missing, or read the column as text"
        return DataError(message, place=replace(place, column=header.get(bad[1], bad[1])), remedy=remedy)
    if "unicode" in text.lower():
        message = f"invalid UTF-8 ({shown!r})"
        return DataError(message, place=place, remedy="give its encoding, e.g. latin-1")
    if longest := LINE_SIZE_ERROR.search(text):
        limit = f"{int(longest[1]) // 1_000_000} MB"
        remedy = "close all quotes, or shorten its cells"
        return DataError(f"a row is longer than {limit}", place=place, remedy=remedy)
    return DataError(f"{_first_line(text.split(line[0])[-1])} ({shown!r})", place=place, remedy="correct the row")


def _first_line(text: str) -> str:
    lines: list[Any] = [line.strip() for line in text.strip().splitlines() if line.strip()]
    return _truncate(re.sub(r"^(\w+ )+Error: ", "", lines[0]), 160) if lines else "unknown error"


def _truncate(text: str, max_length: int = 40) -> str:
    return text if len(text) <= max_length else text[: max_length - 1] + "…"


# Rows that DuckDB keeps in memory at least.
HELD_ROWS = 8 * VECTOR_ROWS

# Additional megabytes for counting; beyond them DuckDB spills to disk.
COUNTING_MEMORY = 256


class Read(Protocol):
    """Files of one format, or a query, as DuckDB reads them."""

    def select(self, names: Sequence[str], types: Types) -> str:
        """Return the query for these columns, which are named c0, c1 ... in its result."""
        ...


def select_all(reads: Iterable[Read], names: Sequence[str], types: Types) -> str:
    """Return the query for these columns of all reads, one after the other."""
    return " UNION ALL ".join(read.select(names, types) for read in reads)


def select_typed(table: str, names: Sequence[str], types: Types) -> str:
    """Return the query for columns of a typed table, cast to the wanted types."""
    casts = (
        f"CAST({quote_name(name)} AS {wanted})" if (wanted := types[name].wanted) else quote_name(name)
        for name in names
    )
    return select_from(table, list(casts))


@dataclass(frozen=True)
class DuckDb:
    """DuckDB queries about one source.

    name: name of the source in messages.
    columns: number of columns read.
    header, called: names of columns and files in messages.
    parsing: True if text is parsed.
    more_memory: megabytes beyond those for rows of numbers.
    """

    name: str
    columns: int
    header: Mapping[str, str] = field(default_factory=dict)
    called: Mapping[str, str] = field(default_factory=dict)
    parsing: bool = False
    more_memory: float = 0.0

    @contextmanager
    def answer(self, query: str, rows: int) -> Iterator[pa.RecordBatchReader]:
        """Return the result of a query as a stream of batches with the given number of rows."""
        try:
            with (
                borrow_connection(self.columns, parsing=self.parsing, more_memory=self.more_memory) as connection,
                translate_errors(self.name, self.header, self.called),
            ):
                yield connection.sql(query).to_arrow_reader(rows)
        finally:
            pa.default_memory_pool().release_unused()

    def pieces(self, query: str, rows: int) -> Iterator[pa.Table]:
        """Yield the result of a query in pieces with the given number of rows."""
        with self.answer(query, rows) as reader:
            yield from in_pieces(reader, rows, reader.schema)

    @contextmanager
    def sql(self, query: str, names: Sequence[str]) -> Iterator[SqlRows]:
        """Return the rows of a query with columns c0, c1 ..., queried on all cores."""
        connection = connect(self.columns, parsing=True, more_memory=self.more_memory + COUNTING_MEMORY)

        def ask(question: str) -> pa.Table:
            with translate_errors(self.name, self.header, self.called):
                return connection.sql(question).to_arrow_table()

        try:
            columns = {name: f"c{k}" for k, name in enumerate(names)}
            yield SqlRows.of(DUCKDB, f"({query}) AS source", columns, ask)
        finally:
            connection.close()
            pa.default_memory_pool().release_unused()


@dataclass(frozen=True)
class DuckDbSource(Source):
    """Typed table that DuckDB streams from files or a query.

    reads: inputs that DuckDB reads one after the other.
    row_size: approximate size of a row in memory, if known.
    rows: number of rows, if known.
    named: files named in a query.
    more_memory: megabytes beyond those for rows.
    """

    reads: tuple[Read, ...]
    row_size: float = 0.0
    rows: int | None = None
    named: tuple[str, ...] = ()
    more_memory: float = 0.0

    @property
    def in_order(self) -> bool:
        return bool(self.files) or is_sorted_query(self._query)

    @property
    def inputs(self) -> tuple[str, ...]:
        return (*super().inputs, *self.named)

    @property
    def expected(self) -> int | None:
        return self.rows

    def head(self, rows: int) -> pa.Table:
        if not self.files or any(one.wanted for one in self.types.values()):  # a LIMIT would change the plan
            return super().head(rows)
        with self._engine().answer(f"SELECT * FROM ({self._query}) LIMIT {int(rows)}", self._piece_rows) as reader:
            return reader.read_all().rename_columns(list(self.names))

    def tables(self) -> Iterator[pa.Table]:
        for piece in self._engine().pieces(self._query, self._piece_rows):
            yield piece.rename_columns(list(self.names))

    def sql(self) -> AbstractContextManager[SqlRows]:
        return self._engine(held=False).sql(self._query, self.names)

    def _engine(self, held: bool = True) -> DuckDb:
        """Return the engine to query. held: True if some rows are held in memory meanwhile."""
        memory = self.more_memory + (HELD_ROWS * self.row_size / 1e6 if held else 0.0)
        return DuckDb(self.name, len(self.columns), called=self.called, more_memory=memory)

    @property
    def _query(self) -> str:
        return select_all(self.reads, self.names, self.types)

    @property
    def _piece_rows(self) -> int:
        return rows_of_piece(self.row_size, len(self.columns))


@dataclass(frozen=True)
class RelationSource(Source):
    """Rows of a DuckDB relation on the user's connection."""

    relation: Any = field(default=None, compare=False)

    @classmethod
    def of(cls, relation: Any) -> "RelationSource":
        """Open a relation; raise a DataError for a duplicate column."""
        if (twice := find_duplicate(relation.columns)) is not None:
            raise duplicate_column_error(twice)
        return cls("the relation", tuple(relation.columns), relation=relation)

    def tables(self) -> Iterator[pa.Table]:
        with translate_errors(self.name):
            reader = self.relation.project(", ".join(map(quote_name, self.names))).to_arrow_reader()
            yield pa.Table.from_batches([], reader.schema)
            for batch in reader:
                yield pa.Table.from_batches([batch])

    @contextmanager
    def sql(self) -> Iterator[SqlRows]:
        yield rows_of_relation(self.relation, self.name, dict.fromkeys(self.names, ""))


def rows_of_relation(relation: Any, name: str, columns: Mapping[str, str]) -> SqlRows:
    """Return the rows of a relation as DuckDB has them. columns: type to cast each column to, or empty."""
    called = f"deciban_{uuid4().hex}"  # unique: an existing table of this name would be used instead

    def ask(query: str) -> pa.Table:
        with translate_errors(name):
            return relation.query(called, query).to_arrow_table()

    cells = {column: f"{called}.{quote_name(column)}" for column in columns}
    cast = {column: f"CAST({cells[column]} AS {kind})" if kind else cells[column] for column, kind in columns.items()}
    return SqlRows.of(DUCKDB, called, cast, ask)
