"""Queries on open connections (ADBC or DB-API) and Ibis tables, as sources.

Rows are read in the user's own transaction, which decides if two passes see the same rows. The module also translates
errors of database servers, and converts Python values to Arrow columns. The type of a column must not change between
batches: it is the one that the cursor reports, or the one found in the first rows.
"""

import datetime as dt
import enum
import re
import sys
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain, count
from typing import Any

import pyarrow as pa

from deciban.errors import Argument, BadCell, DataError, DecibanError, Message, Place, UsageError, render_message
from deciban.sources.addresses import Address, mask_passwords
from deciban.sources.arrow import Answer, BatchSource, distinct_names, types_of
from deciban.sources.duckdb import translate_errors
from deciban.sources.source import ColumnType

# Prefixes that the driver adds to libpq's message, and libpq to the server's.
DRIVER_WORDS = re.compile(r"^(?:[A-Z_]+: )?(?:\[libpq\] )?(?:Failed to connect: )?")
SERVER_WORDS = re.compile(r"(?:failed|\[PGRES_FATAL_ERROR\]|query|COPY|'): *[^\W\d_]+: +(.*)")
HINT = re.compile(r"^HINT: +(.*)$", re.MULTILINE)

# Messages of libpq for a lost connection without an error code.
GONE = re.compile("closed the connection|terminating connection|could not receive data|SYSCALL error")

# Remedies by SQLSTATE, or by its first two characters. For error classes see `_kind`.
REMEDIES: dict[str, Message] = {
    "42P01": "check the name of the table (it is case-sensitive)",
    "42703": "check the names of the columns (they are case-sensitive)",
    "42501": "ask the owner of the database for permission",
    "42P07": (
        "write to another table, or choose ",
        Argument("if_exists", "replace"),
        " or ",
        Argument("if_exists", "append"),
    ),
    "3F000": "create it first, or check its name",
    "25006": "deciban reads in a read-only transaction; give a query that only selects",
    "57014": "raise the timeout, or select fewer rows",
    "55P03": "the table is in use, perhaps by this query; try later, or write to another table",
    "22": "fix the rows or the query",
    "53": "the server is out of resources; try later",
    "40": "try again",
    "42": "fix the query",
}


@contextmanager
def translate_server_errors(place: str, connection: Any) -> Iterator[None]:
    """Translate errors of the driver to errors of this package."""
    try:
        yield
    except (connection.Error, OSError, pa.ArrowException) as problem:
        raise as_server_error(place, problem, _is_gone(connection, str(problem))) from None


def as_server_error(place: str, problem: Exception, gone: bool) -> Exception:
    """Return the error to raise for an error of the server."""
    message = message_of(problem)
    state = getattr(problem, "sqlstate", None) or ("57014" if "statement timeout" in message else "22")
    if gone or state.startswith(("08", "57P")):
        return ConnectionError(
            f"{place}: lost the connection to the server ({message}); try again when it is available"
        )
    if "multiple commands" in message:
        return UsageError("found several statements", place=Place(place), remedy="give one query")
    remedy = next((REMEDIES[state[:size]] for size in (5, 2) if state[:size] in REMEDIES), "")
    kind, remedy = _kind(state), "" if ";" in message else remedy
    if issubclass(kind, DecibanError):
        return kind(message, place=Place(place), remedy=remedy)
    return kind(f"{place}: {message}" + (f"; {render_message(remedy)}" if remedy else ""))


def _kind(state: str) -> type[Exception]:
    """Return the class of an error: a system error if neither the query nor the rows are the cause."""
    if state == "42501":
        return PermissionError
    if state in ("57014", "55P03"):
        return TimeoutError
    if state.startswith(("53", "54", "55", "57", "58", "40")):
        return OSError
    return UsageError if state.startswith(("42", "25", "0A", "3F", "26", "2B")) else DataError


def message_of(problem: Exception) -> str:
    """Return the server's message and hint in one line."""
    text = str(problem)
    details = dict(getattr(problem, "details", None) or ())
    if primary := details.get(b"PG_DIAG_MESSAGE_PRIMARY"):
        message = primary.decode(errors="replace")
    elif found := SERVER_WORDS.search(text):
        message = found[1]
    else:
        message = DRIVER_WORDS.sub("", text.strip().partition("\n")[0]) or "no reason given"
    hint = HINT.search(text)
    return mask_passwords(message.strip().rstrip(".") + (f"; {hint[1].strip().rstrip('.')}" if hint else ""))


def connection_error(address: Address, text: str) -> Exception:
    """Return the error for a failed connection."""
    message = address.hide(DRIVER_WORDS.sub("", " ".join(text.split())))
    place = f"{address.shown}: cannot connect: {message}"
    if re.search("password|authentication", message):
        return PermissionError(f"{place}; set the password in PGPASSWORD or ~/.pgpass, and check the user name")
    if "SSL" in message:
        return ConnectionError(f"{place}; set another sslmode= in the URL, or ask the administrator of the server")
    if "does not exist" in message:
        return ConnectionError(f"{place}; check the name")
    return ConnectionError(f"{place}; check the address, and that the server is running")


def _is_gone(connection: Any, text: str) -> bool:
    """Return True if the server does not respond."""
    try:
        status = connection.adbc_connection.get_option("adbc.postgresql.transaction_status")
    except (connection.Error, AttributeError):  # an older driver
        status = ""
    return status == "unknown" or GONE.search(text) is not None


# Arrow types by Python class. Numbers are doubles unless the cursor declares another type.
TYPES_OF_CLASSES: dict[type, pa.DataType] = {
    bool: pa.bool_(),
    int: pa.float64(),
    float: pa.float64(),
    Decimal: pa.float64(),
    str: pa.string(),
    uuid.UUID: pa.string(),
    enum.Enum: pa.string(),
    dt.datetime: pa.timestamp("us"),
    dt.date: pa.date32(),
    dt.time: pa.time64("us"),
    dt.timedelta: pa.duration("us"),
}

# Arrow types by PostgreSQL's type OIDs, which its drivers report.
TYPES_OF_OIDS: dict[int, pa.DataType] = {
    16: pa.bool_(),
    20: pa.int64(),
    21: pa.int16(),
    23: pa.int32(),
    25: pa.string(),
    700: pa.float32(),
    701: pa.float64(),
    1042: pa.string(),
    1043: pa.string(),
    1082: pa.date32(),
    1083: pa.time64("us"),
    1114: pa.timestamp("us"),
    1184: pa.timestamp("us", "UTC"),
    1700: pa.float64(),
    2950: pa.string(),
}
POSTGRES_DRIVERS = ("psycopg", "psycopg2", "pg8000")

# Integers below this are exact as doubles.
EXACT = 2**53

UNCONVERTED = (pa.ArrowException, TypeError, ValueError, OverflowError)


def read_type_code(code: Any, driver: str) -> pa.DataType | None:
    """Return the type that a cursor declares for a column; None if it declares none."""
    if driver in POSTGRES_DRIVERS and isinstance(code, int):
        return TYPES_OF_OIDS.get(code)
    if isinstance(code, type):  # ODBC drivers declare Python classes
        return pa.int64() if code is int else _type_of_class(code)
    return None


class Look:
    """Types found in the cells of a column, collected batch by batch."""

    def __init__(self) -> None:
        self._classes: set[type] = set()
        self._long = self._zoned = False

    def add(self, cells: Iterable[Any]) -> None:
        """Add cells."""
        for cell in cells:
            if cell is not None:
                self._classes.add(type(cell))
                self._long |= isinstance(cell, int) and not -EXACT < cell < EXACT
                self._zoned |= isinstance(cell, dt.datetime) and cell.tzinfo is not None

    @property
    def empty(self) -> bool:
        """True if every cell was missing."""
        return not self._classes

    @property
    def called(self) -> str:
        """Names of the types found, for messages."""
        return " and ".join(sorted(one.__name__ for one in self._classes))

    @property
    def type(self) -> pa.DataType | None:
        """Common type of all cells; None if no supported type fits."""
        if self.empty:
            return pa.null()
        if self._long and self._classes == {int}:
            return pa.int64()
        found = {_type_of_class(one) for one in self._classes}
        if found == {pa.timestamp("us"), pa.date32()}:
            found = {pa.timestamp("us")}
        if len(found) > 1:
            return None
        return pa.timestamp("us", "UTC") if self._zoned else found.pop()


def _type_of_class(one: type) -> pa.DataType | None:
    return next((TYPES_OF_CLASSES[known] for known in one.__mro__ if known in TYPES_OF_CLASSES), None)


def to_array(cells: Sequence[Any], kind: pa.DataType, any_as_text: bool = False) -> pa.Array:
    """Convert cells to an array of this type; raise BadCell for a cell of another type.

    any_as_text: convert any value to text.
    """
    try:
        return pa.array(cells, kind)
    except UNCONVERTED:
        _refuse_rounding(cells, kind)
        plain = [None if cell is None else _plain(cell, kind, any_as_text) for cell in cells]
    try:
        return pa.array(plain, kind)
    except UNCONVERTED:
        row, cell = next((row, cell) for row, cell in enumerate(plain) if not _fits(cell, kind))
        shown = repr(cell) if len(repr(cell)) <= 40 else repr(cell)[:37] + "..."
        raise BadCell(0, row, f"found {shown}, expected {kind}", "cast it in the query") from None


def _refuse_rounding(cells: Sequence[Any], kind: pa.DataType) -> None:
    """Raise BadCell if a double cannot hold an integer exactly: a code would become another code."""
    if not pa.types.is_floating(kind):
        return
    for row, cell in enumerate(cells):
        if isinstance(cell, int) and not _is_double(cell):
            problem = (
                f"found {cell}, which a double cannot represent"
                if abs(cell) < 10**30
                else "found a number beyond the range of doubles"
            )
            raise BadCell(0, row, problem, "cast it in the query, to text if it is a code")


def _is_double(cell: int) -> bool:
    try:
        return float(cell) == cell
    except OverflowError:
        return False


def _plain(cell: Any, kind: pa.DataType, any_as_text: bool) -> Any:
    """Convert a cell to the Python class that Arrow expects for the type."""
    if pa.types.is_floating(kind) and isinstance(cell, int | Decimal):
        return float(cell)
    if isinstance(cell, enum.Enum):
        return str(cell.value)
    if any_as_text or isinstance(cell, uuid.UUID):
        return str(cell)
    if pa.types.is_timestamp(kind) and type(cell) is dt.date:
        return dt.datetime(cell.year, cell.month, cell.day)
    return cell


def _fits(cell: Any, kind: pa.DataType) -> bool:
    try:
        pa.array([cell], kind)
    except UNCONVERTED:
        return False
    return True


# Rows fetched at a time.
FETCHED_ROWS = 4096

# First rows, from which the types of columns are inferred.
SHOWN_ROWS = 5 * FETCHED_ROWS

# Drivers whose unnamed cursors load all rows into memory.
NAMED_CURSORS = ("psycopg", "psycopg2")
_numbers = count(1)

# Drivers whose cursors are separate connections, which see neither uncommitted rows nor temporary tables.
DUCKDB_DRIVERS = ("duckdb", "_duckdb")


@dataclass(frozen=True)
class AdbcQuery:
    """Query on a connection that returns Arrow batches."""

    connection: Any
    query: str

    @contextmanager
    def open_batches(self, source: BatchSource) -> Iterator[Answer]:
        with _execute(self.connection, self.query, source.name) as cursor:
            reader = _arrow_of(cursor)()
            _refuse_other_columns(source.name, source.types, reader.schema.names)
            yield Answer(reader.schema, self._batches(reader, source.name))

    def relation(self, source: BatchSource) -> Any:
        return self.connection.sql(self.query) if driver_of(self.connection) in DUCKDB_DRIVERS else None

    def _batches(self, reader: pa.RecordBatchReader, place: str) -> Iterator[pa.RecordBatch]:
        while True:
            with translate_connection_errors(self.connection, place):
                batch = next(reader, None)
            if batch is None:
                return
            yield batch


@dataclass(frozen=True)
class RowQuery:
    """Query on a connection that returns rows of Python values. arrow: types of the columns that can be learned."""

    connection: Any
    query: str
    arrow: Mapping[str, pa.DataType]

    @contextmanager
    def open_batches(self, source: BatchSource) -> Iterator[Answer]:
        schema = pa.schema([(name, self.arrow.get(name, pa.string())) for name in source.names])
        with _execute(self.connection, self.query, source.name) as cursor:
            yield Answer(schema, self._batches(source, cursor, schema))

    def relation(self, source: BatchSource) -> Any:
        return None

    def _batches(self, source: BatchSource, cursor: Any, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        first_row = 1
        for rows in _fetch_rows(self.connection, cursor, source.name):
            names = _names_of(cursor)
            _refuse_other_columns(source.name, source.types, names)
            columns = dict(zip(names, zip(*rows, strict=True), strict=False))
            cells = [self._array(columns.get(one.name, ()), one, first_row) for one in schema]
            yield pa.RecordBatch.from_arrays(cells, schema=schema)
            first_row += len(rows)

    def _array(self, cells: Sequence[Any], one: pa.Field, first_row: int) -> pa.Array:
        try:
            return to_array(cells, one.type, any_as_text=one.name not in self.arrow)
        except BadCell as bad:
            raise bad.as_error(one.name, first_row) from None


def open_connection(connection: Any, query: str, name: str) -> BatchSource:
    """Open a query as a source. name: its name in messages."""
    with _execute(connection, query, name) as cursor:
        if (arrow := _arrow_of(cursor)) is not None:
            schema = arrow().schema
            types = types_of(dict(zip(distinct_names(schema.names, name), schema.types, strict=True)))
            return BatchSource(name, tuple(types), AdbcQuery(connection, query), types=types)
        return _of_rows(connection, cursor, query, name)


def _of_rows(connection: Any, cursor: Any, query: str, name: str) -> BatchSource:
    """Open a query that returns rows. Types that the cursor does not declare are found in the first rows."""
    pieces = _fetch_rows(connection, cursor, name)
    first = next(pieces)  # some drivers describe the columns only after a fetch
    names = distinct_names(_names_of(cursor), name)
    codes = zip(names, (read_type_code(column[1], driver_of(connection)) for column in cursor.description), strict=True)
    declared = {column: kind for column, kind in codes if kind is not None}
    looks = _looks(names, frozenset(declared), chain([first], pieces))
    found = {column: declared.get(column, looks[column].type) for column in names}
    arrow = {column: kind for column, kind in found.items() if kind is not None}
    known, unknown = types_of(arrow), {column: ColumnType("", called=looks[column].called) for column in names}
    types = {column: known.get(column, unknown[column]) for column in names}
    return BatchSource(name, tuple(types), RowQuery(connection, query, arrow), frozenset(declared), types=types)


def _looks(names: Sequence[str], declared: frozenset[str], pieces: Iterable[list[Any]]) -> dict[str, Look]:
    """Collect the types in the first rows, until each column without a declared type has a value."""
    looks = {name: Look() for name in names}
    seen = 0
    for rows in pieces:
        for name, cells in zip(names, zip(*rows, strict=True), strict=False):
            looks[name].add(cells)
        seen += len(rows)
        unknown = any(look.empty for name, look in looks.items() if name not in declared)
        if len(declared) == len(names) or (seen >= SHOWN_ROWS and not unknown):
            break
    return looks


def driver_of(connection: Any) -> str:
    """Return the name of the package of a connection."""
    return type(connection).__module__.partition(".")[0]


def _arrow_of(cursor: Any) -> Any:
    """Return the method of a cursor or DuckDB relation that reads Arrow batches, or None."""
    return getattr(cursor, "to_arrow_reader", None) or getattr(cursor, "fetch_record_batch", None)


@contextmanager
def _execute(connection: Any, query: str, place: str) -> Iterator[Any]:
    """Run a query and close the cursor at the end. DuckDB connections return a relation."""
    itself = driver_of(connection) in DUCKDB_DRIVERS
    with translate_connection_errors(connection, place):
        cursor = connection.sql(query) if itself else _cursor(connection)
    try:
        if not itself:
            with translate_connection_errors(connection, place):
                cursor.execute(query)
        yield cursor
    finally:
        with suppress(Exception):  # the connection may be lost
            cursor.close()


def _cursor(connection: Any) -> Any:
    if driver_of(connection) in NAMED_CURSORS:
        return connection.cursor(name=f"deciban_{next(_numbers)}", withhold=connection.autocommit)
    return connection.cursor()


def _fetch_rows(connection: Any, cursor: Any, place: str) -> Iterator[list[Any]]:
    """Yield rows as tuples, in batches; the last batch is empty."""
    rows: list[Any] = [None]
    while rows:
        with translate_connection_errors(connection, place):
            found = cursor.fetchmany(FETCHED_ROWS)
        rows = [tuple(row.values()) if isinstance(row, Mapping) else tuple(row) for row in found]
        yield rows


def _names_of(cursor: Any) -> list[str]:
    return [str(column[0]) for column in cursor.description or ()]


@contextmanager
def translate_connection_errors(connection: Any, place: str) -> Iterator[None]:
    """Translate errors of the connection to errors of this package, chained to the original."""
    module = sys.modules.get(driver_of(connection))
    errors: type[Exception] = getattr(connection, "Error", getattr(module, "Error", OSError))
    try:
        yield
    except (errors, OSError, pa.ArrowException) as problem:
        raise as_server_error(place, problem, bool(getattr(connection, "closed", False))) from problem


def _refuse_other_columns(place: str, known: Mapping[str, object], now: Sequence[str]) -> None:
    """Raise a DataError if the columns have changed since the query was opened."""
    if list(known) != list(now):
        gone = next((name for name in known if name not in now), None)
        what = "the columns have changed" if gone is None else f"column {gone!r} no longer exists"
        raise DataError(what, place=Place(place), remedy="scan it again")


# Rows per batch.
BATCH_OF_ROWS = 1 << 14


@dataclass(frozen=True)
class IbisTable:
    """Rows of an Ibis table, or of another table expression."""

    expression: Any

    @contextmanager
    def open_batches(self, source: BatchSource) -> Iterator[Answer]:
        with translate_errors(source.name):
            reader = _reader(self.expression.select(*source.names))
            try:
                yield Answer(reader.schema, iter(reader))
            finally:
                reader.close()

    def relation(self, source: BatchSource) -> Any:
        return _relation_of(self.expression.select(*source.names))


def open_ibis(table: Any) -> BatchSource:
    """Open an Ibis table as a source."""
    name = "the table of Ibis"
    with translate_errors(name):
        schema = table.limit(0).to_pyarrow().schema
    types = types_of(dict(zip(schema.names, schema.types, strict=True)))
    return BatchSource(name, tuple(types), IbisTable(table), types=types)


def _reader(table: Any) -> pa.RecordBatchReader:
    """Return the rows as batches. DuckDB is queried directly: Ibis calls functions that DuckDB 2 has removed."""
    relation = _relation_of(table)
    if relation is None:
        return table.to_pyarrow_batches(chunk_size=BATCH_OF_ROWS)
    return relation.to_arrow_reader(BATCH_OF_ROWS)


def _relation_of(table: Any) -> Any:
    """Return the DuckDB relation of a table; None if the table is in another engine."""
    backend = table.get_backend()
    if backend.name != "duckdb":
        return None
    table.limit(0).to_pyarrow()  # registers in-memory tables with DuckDB
    return backend.con.sql(backend.compile(table))
