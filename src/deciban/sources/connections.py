"""Queries of connections that the user has, of ADBC or of Python's DB-API, and tables of Ibis, as sources.

Rows are read in the user's own transaction: whether two passes see the same rows is up to that. First come errors of
database servers in the terms of the user, and values of Python as Arrow's columns: the type of a column must not depend
on the piece, so it is the one that the cursor reports, or else the one that the first rows show.
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

# What the driver puts before the words of libpq, and libpq before the words of the server.
DRIVER_WORDS = re.compile(r"^(?:[A-Z_]+: )?(?:\[libpq\] )?(?:Failed to connect: )?")
SERVER_WORDS = re.compile(r"(?:failed|\[PGRES_FATAL_ERROR\]|query|COPY|'): *[^\W\d_]+: +(.*)")
HINT = re.compile(r"^HINT: +(.*)$", re.MULTILINE)

# The words of libpq for a server that is gone, where nothing else tells.
GONE = re.compile("closed the connection|terminating connection|could not receive data|SYSCALL error")

# What to do about errors of these states, or of all that begin so. The kinds of errors: see `_kind`.
REMEDIES: dict[str, Message] = {
    "42P01": "check the name of the table, in which capitals count",
    "42703": "check the names of the columns, in which capitals count",
    "42501": "ask the owner of the database for the right to do this",
    "42P07": (
        "write another table, or choose ",
        Argument("if_exists", "replace"),
        " or ",
        Argument("if_exists", "append"),
    ),
    "3F000": "make it first, or check its name",
    "25006": "deciban reads in a transaction that changes nothing; give a query that only selects",
    "57014": "allow it more time, or ask for fewer rows",
    "55P03": "somebody uses the table, and perhaps the rows are read from it; try later, or write another table",
    "22": "correct the rows, or the query",
    "53": "the server has no room for this; try later",
    "40": "try again",
    "42": "correct the query",
}


@contextmanager
def translate_server_errors(place: str, connection: Any) -> Iterator[None]:
    """While it lasts, errors of the driver become ours."""
    try:
        yield
    except (connection.Error, OSError, pa.ArrowException) as problem:
        raise as_server_error(place, problem, _is_gone(connection, str(problem))) from None


def as_server_error(place: str, problem: Exception, gone: bool) -> Exception:
    """The error that the user sees."""
    said = message_of(problem)
    state = getattr(problem, "sqlstate", None) or ("57014" if "statement timeout" in said else "22")
    if gone or state.startswith(("08", "57P")):
        return ConnectionError(f"{place}: the server went away ({said}); start again when it is back")
    if "multiple commands" in said:
        return UsageError("these are several statements", place=Place(place), remedy="give one query")
    remedy = next((REMEDIES[state[:size]] for size in (5, 2) if state[:size] in REMEDIES), "")
    kind, remedy = _kind(state), "" if ";" in said else remedy
    if issubclass(kind, DecibanError):
        return kind(said, place=Place(place), remedy=remedy)
    return kind(f"{place}: {said}" + (f"; {render_message(remedy)}" if remedy else ""))


def _kind(state: str) -> type[Exception]:
    """The class of an error: of the system where neither the question nor the rows are to blame."""
    if state == "42501":
        return PermissionError
    if state in ("57014", "55P03"):
        return TimeoutError
    if state.startswith(("53", "54", "55", "57", "58", "40")):
        return OSError
    return UsageError if state.startswith(("42", "25", "0A", "3F", "26", "2B")) else DataError


def message_of(problem: Exception) -> str:
    """What the server says, and its hint, in one line."""
    text = str(problem)
    details = dict(getattr(problem, "details", None) or ())
    if primary := details.get(b"PG_DIAG_MESSAGE_PRIMARY"):
        said = primary.decode(errors="replace")
    elif found := SERVER_WORDS.search(text):
        said = found[1]
    else:
        said = DRIVER_WORDS.sub("", text.strip().partition("\n")[0]) or "no reason is given"
    hint = HINT.search(text)
    return mask_passwords(said.strip().rstrip(".") + (f"; {hint[1].strip().rstrip('.')}" if hint else ""))


def connection_error(address: Address, text: str) -> Exception:
    """The error of a connection that was not made."""
    said = address.hide(DRIVER_WORDS.sub("", " ".join(text.split())))
    place = f"{address.shown}: cannot connect: {said}"
    if re.search("password|authentication", said):
        return PermissionError(f"{place}; give the password by PGPASSWORD or in ~/.pgpass, and check the user")
    if "SSL" in said:
        return ConnectionError(f"{place}; choose another sslmode= in the URL, or ask who runs the server")
    if "does not exist" in said:
        return ConnectionError(f"{place}; check the name")
    return ConnectionError(f"{place}; check the address, and whether the server runs")


def _is_gone(connection: Any, text: str) -> bool:
    """Whether the server does not answer any more."""
    try:
        status = connection.adbc_connection.get_option("adbc.postgresql.transaction_status")
    except (connection.Error, AttributeError):  # an older driver
        status = ""
    return status == "unknown" or GONE.search(text) is not None


# Arrow's types of columns, by the classes of their cells; numbers are doubles unless a cursor says otherwise.
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

# Types of PostgreSQL, by the numbers that cursors of its drivers have for them.
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

# Whole numbers below this are doubles too, exactly.
EXACT = 2**53

UNCONVERTED = (pa.ArrowException, TypeError, ValueError, OverflowError)


def declared_type(code: Any, driver: str) -> pa.DataType | None:
    """What a cursor says of a column, in the way of its driver; None where that tells nothing."""
    if driver in POSTGRES_DRIVERS and isinstance(code, int):
        return TYPES_OF_OIDS.get(code)
    if isinstance(code, type):  # as drivers of ODBC say it
        return pa.int64() if code is int else _type_of_class(code)
    return None


class Look:
    """What the cells of a column show of its type, some at a time."""

    def __init__(self) -> None:
        self._classes: set[type] = set()
        self._long = self._zoned = False

    def add(self, cells: Iterable[Any]) -> None:
        """Look at more cells."""
        for cell in cells:
            if cell is not None:
                self._classes.add(type(cell))
                self._long |= isinstance(cell, int) and not -EXACT < cell < EXACT
                self._zoned |= isinstance(cell, dt.datetime) and cell.tzinfo is not None

    @property
    def empty(self) -> bool:
        """Whether every cell was missing."""
        return not self._classes

    @property
    def called(self) -> str:
        """What the cells are, for messages."""
        return " and ".join(sorted(one.__name__ for one in self._classes))

    @property
    def type(self) -> pa.DataType | None:
        """The type that all cells have; None where they have nothing in common that could be learned."""
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
    """Cells as an array of this type; a BadCell where one is of another.

    any_as_text: whatever a cell is, it is written as text.
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
        raise BadCell(0, row, f"found {shown}, and the column is {kind}", "cast it in the query") from None


def _refuse_rounding(cells: Sequence[Any], kind: pa.DataType) -> None:
    """A BadCell where a whole number is none of the doubles that the column has: a code would become another one."""
    if not pa.types.is_floating(kind):
        return
    for row, cell in enumerate(cells):
        if isinstance(cell, int) and not _is_double(cell):
            problem = f"found {cell}, which no double is" if abs(cell) < 10**30 else "found a number beyond all doubles"
            raise BadCell(0, row, problem, "cast it in the query, to text if it is a code")


def _is_double(cell: int) -> bool:
    try:
        return float(cell) == cell
    except OverflowError:
        return False


def _plain(cell: Any, kind: pa.DataType, any_as_text: bool) -> Any:
    """A cell in the class that Arrow takes for the type."""
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


# Rows that are fetched at a time, and the first rows, which show what columns are.
FETCHED_ROWS = 4096
SHOWN_ROWS = 5 * FETCHED_ROWS

# Drivers whose cursors hold all rows in memory unless they have a name.
NAMED_CURSORS = ("psycopg", "psycopg2")
_numbers = count(1)

# Drivers whose cursors are connections of their own, which see neither uncommitted rows nor temporary tables.
DUCKDB_DRIVERS = ("duckdb", "_duckdb")


@dataclass(frozen=True)
class AdbcQuery:
    """A query of a connection that gives Arrow's batches."""

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
    """A query of a connection whose cursors give rows of Python's values.

    arrow: the types of columns that can be learned.
    """

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
    """The source of a query; `name` is what messages call it."""
    with _execute(connection, query, name) as cursor:
        if (arrow := _arrow_of(cursor)) is not None:
            schema = arrow().schema
            types = types_of(dict(zip(distinct_names(schema.names, name), schema.types, strict=True)))
            return BatchSource(name, tuple(types), AdbcQuery(connection, query), types=types)
        return _of_rows(connection, cursor, query, name)


def _of_rows(connection: Any, cursor: Any, query: str, name: str) -> BatchSource:
    """The source of rows: what the cursor does not say of its columns, the first rows show."""
    pieces = _fetch_rows(connection, cursor, name)
    first = next(pieces)  # some drivers describe the columns only then
    names = distinct_names(_names_of(cursor), name)
    codes = zip(names, (declared_type(column[1], driver_of(connection)) for column in cursor.description), strict=True)
    told = {column: kind for column, kind in codes if kind is not None}
    looks = _looks(names, frozenset(told), chain([first], pieces))
    found = {column: told.get(column, looks[column].type) for column in names}
    arrow = {column: kind for column, kind in found.items() if kind is not None}
    known, unknown = types_of(arrow), {column: ColumnType("", called=looks[column].called) for column in names}
    types = {column: known.get(column, unknown[column]) for column in names}
    return BatchSource(name, tuple(types), RowQuery(connection, query, arrow), frozenset(told), types=types)


def _looks(names: Sequence[str], told: frozenset[str], pieces: Iterable[list[Any]]) -> dict[str, Look]:
    """What the first rows show of columns: as many as it takes for each that is not told to have a value."""
    looks = {name: Look() for name in names}
    seen = 0
    for rows in pieces:
        for name, cells in zip(names, zip(*rows, strict=True), strict=False):
            looks[name].add(cells)
        seen += len(rows)
        unknown = any(look.empty for name, look in looks.items() if name not in told)
        if len(told) == len(names) or (seen >= SHOWN_ROWS and not unknown):
            break
    return looks


def driver_of(connection: Any) -> str:
    """The package that a connection is of."""
    return type(connection).__module__.partition(".")[0]


def _arrow_of(cursor: Any) -> Any:
    """What gives the answer of a cursor, or of a relation of DuckDB, as Arrow's batches; None where nothing does."""
    return getattr(cursor, "to_arrow_reader", None) or getattr(cursor, "fetch_record_batch", None)


@contextmanager
def _execute(connection: Any, query: str, place: str) -> Iterator[Any]:
    """A cursor that has run a query, and is closed in the end; of DuckDB a relation."""
    itself = driver_of(connection) in DUCKDB_DRIVERS
    with translate_connection_errors(connection, place):
        cursor = connection.sql(query) if itself else _cursor(connection)
    try:
        if not itself:
            with translate_connection_errors(connection, place):
                cursor.execute(query)
        yield cursor
    finally:
        with suppress(Exception):  # of a server that is gone
            cursor.close()


def _cursor(connection: Any) -> Any:
    if driver_of(connection) in NAMED_CURSORS:
        return connection.cursor(name=f"deciban_{next(_numbers)}", withhold=connection.autocommit)
    return connection.cursor()


def _fetch_rows(connection: Any, cursor: Any, place: str) -> Iterator[list[Any]]:
    """Rows as tuples, some at a time; none in the end."""
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
    """While it lasts, errors of the connection become ours; theirs is the cause."""
    module = sys.modules.get(driver_of(connection))
    errors: type[Exception] = getattr(connection, "Error", getattr(module, "Error", OSError))
    try:
        yield
    except (errors, OSError, pa.ArrowException) as problem:
        raise as_server_error(place, problem, bool(getattr(connection, "closed", False))) from problem


def _refuse_other_columns(place: str, known: Mapping[str, object], now: Sequence[str]) -> None:
    """Refuse an answer whose columns are not those that were looked at."""
    if list(known) != list(now):
        gone = next((name for name in known if name not in now), None)
        what = "other columns" if gone is None else f"no column {gone!r} any more"
        raise DataError(f"it has {what} since it was looked at", place=Place(place), remedy="scan it again")


# Rows of a batch.
BATCH_OF_ROWS = 1 << 14


@dataclass(frozen=True)
class IbisTable:
    """The rows of a table of Ibis, or any other expression that has the columns of one."""

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
    """The source of a table."""
    name = "the table of Ibis"
    with translate_errors(name):
        schema = table.limit(0).to_pyarrow().schema
    types = types_of(dict(zip(schema.names, schema.types, strict=True)))
    return BatchSource(name, tuple(types), IbisTable(table), types=types)


def _reader(table: Any) -> pa.RecordBatchReader:
    """The rows of a table, batch by batch. DuckDB is asked itself: Ibis asks it for what version 2 has no more."""
    relation = _relation_of(table)
    if relation is None:
        return table.to_pyarrow_batches(chunk_size=BATCH_OF_ROWS)
    return relation.to_arrow_reader(BATCH_OF_ROWS)


def _relation_of(table: Any) -> Any:
    """The relation that a table is in DuckDB; None where another engine has it."""
    backend = table.get_backend()
    if backend.name != "duckdb":
        return None
    table.limit(0).to_pyarrow()  # by which tables in memory become known to DuckDB
    return backend.con.sql(backend.compile(table))
