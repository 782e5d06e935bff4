"""A query that a connection of the user's answers, of ADBC or of Python's DB-API, as a source of rows.

Its rows are read in the user's own transaction: whether two passes see the same rows is up to that.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import chain, count
from typing import Any

import pyarrow as pa

from deciban.errors import BadCell, DataError, naming_source
from deciban.sources.databases.cells import Look, to_array, told_type
from deciban.sources.databases.postgres_errors import as_user_error
from deciban.sources.databases.source import Answer, ArrowSource, DatabaseType, distinct_names, types_of
from deciban.tables.text_types import as_whole

# Rows that are fetched at a time, and the first rows, which show what columns are.
FETCHED_ROWS = 4096
SHOWN_ROWS = 5 * FETCHED_ROWS

# Drivers whose cursors hold all rows in memory unless they have a name.
NAMED_CURSORS = ("psycopg", "psycopg2")
_numbers = count(1)

# Drivers whose cursors are connections of their own, which see neither uncommitted rows nor temporary tables.
DUCKDB_DRIVERS = ("duckdb", "_duckdb")


@dataclass(frozen=True)
class AdbcSource(ArrowSource):
    """A query of a connection that gives Arrow's batches."""

    connection: Any = field(repr=False)
    query: str

    @contextmanager
    def _asked(self) -> Iterator[Answer]:
        with _executed(self.connection, self.query, self.name) as cursor:
            reader = _arrow_of(cursor)()
            _refuse_other_columns(self.name, self.types, reader.schema.names)
            yield Answer(reader.schema, self._batches(reader))

    def _relation(self) -> Any:
        return self.connection.sql(self.query) if driver_of(self.connection) in DUCKDB_DRIVERS else None

    def _batches(self, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        while True:
            with translated(self.connection, self.name):
                batch = next(reader, None)
            if batch is None:
                return
            yield batch


@dataclass(frozen=True)
class RowSource(ArrowSource):
    """A query of a connection whose cursors give rows of Python's values.

    arrow: the types of columns that can be learned. told: the columns whose types the cursor tells.
    """

    connection: Any = field(repr=False)
    query: str
    arrow: Mapping[str, pa.DataType] = field(default_factory=dict)
    told: frozenset[str] = frozenset()

    @property
    def typed(self) -> bool:
        return self.told.issuperset(self.names)

    def resolve_types(self, sample: pa.Table) -> tuple["RowSource", pa.Table]:
        """Numbers are whole if all of a sample are, where nobody says what they are."""
        names = sample.column_names
        cells = [sample[name] if name in self.told else as_whole(sample[name]) for name in names]
        return self, pa.Table.from_arrays(cells, names=names)

    @contextmanager
    def _asked(self) -> Iterator[Answer]:
        schema = pa.schema([(name, self.arrow.get(name, pa.string())) for name in self.names])
        with _executed(self.connection, self.query, self.name) as cursor:
            yield Answer(schema, self._batches(cursor, schema))

    def _batches(self, cursor: Any, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        first_row = 1
        for rows in _fetched(self.connection, cursor, self.name):
            names = _names_of(cursor)
            _refuse_other_columns(self.name, self.types, names)
            columns = dict(zip(names, zip(*rows, strict=True), strict=False))
            cells = [self._array(columns.get(one.name, ()), one, first_row) for one in schema]
            yield pa.RecordBatch.from_arrays(cells, schema=schema)
            first_row += len(rows)

    def _array(self, cells: Sequence[Any], one: pa.Field, first_row: int) -> pa.Array:
        try:
            return to_array(cells, one.type, any_as_text=one.name not in self.arrow)
        except BadCell as bad:
            raise bad.as_error(one.name, first_row) from None


def open_connection(connection: Any, query: str, name: str) -> ArrowSource:
    """The source of a query; `name` is what messages call it."""
    with _executed(connection, query, name) as cursor:
        if (arrow := _arrow_of(cursor)) is not None:
            schema = arrow().schema
            types = types_of(dict(zip(distinct_names(schema.names, name), schema.types, strict=True)))
            return AdbcSource(name, tuple(types), types, connection, query)
        return _of_rows(connection, cursor, query, name)


def _of_rows(connection: Any, cursor: Any, query: str, name: str) -> RowSource:
    """The source of rows: what the cursor does not say of its columns, the first rows show."""
    pieces = _fetched(connection, cursor, name)
    first = next(pieces)  # some drivers describe the columns only then
    names = distinct_names(_names_of(cursor), name)
    codes = zip(names, (told_type(column[1], driver_of(connection)) for column in cursor.description), strict=True)
    told = {column: kind for column, kind in codes if kind is not None}
    looks = _looks(names, frozenset(told), chain([first], pieces))
    found = {column: told.get(column, looks[column].type) for column in names}
    arrow = {column: kind for column, kind in found.items() if kind is not None}
    known, unknown = types_of(arrow), {column: DatabaseType("", called=looks[column].called) for column in names}
    types = {column: known.get(column, unknown[column]) for column in names}
    return RowSource(name, tuple(types), types, connection, query, arrow, frozenset(told))


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
def _executed(connection: Any, query: str, place: str) -> Iterator[Any]:
    """A cursor that has run a query, and is closed in the end; of DuckDB a relation."""
    itself = driver_of(connection) in DUCKDB_DRIVERS
    with translated(connection, place):
        cursor = connection.sql(query) if itself else _cursor(connection)
    try:
        if not itself:
            with translated(connection, place):
                cursor.execute(query)
        yield cursor
    finally:
        with suppress(Exception):  # of a server that is gone
            cursor.close()


def _cursor(connection: Any) -> Any:
    if driver_of(connection) in NAMED_CURSORS:
        return connection.cursor(name=f"deciban_{next(_numbers)}", withhold=connection.autocommit)
    return connection.cursor()


def _fetched(connection: Any, cursor: Any, place: str) -> Iterator[list[Any]]:
    """Rows as tuples, some at a time; none in the end."""
    rows: list[Any] = [None]
    while rows:
        with translated(connection, place):
            found = cursor.fetchmany(FETCHED_ROWS)
        rows = [tuple(row.values()) if isinstance(row, Mapping) else tuple(row) for row in found]
        yield rows


def _names_of(cursor: Any) -> list[str]:
    return [str(column[0]) for column in cursor.description or ()]


@contextmanager
def translated(connection: Any, place: str) -> Iterator[None]:
    """While it lasts, errors of the connection become ours; theirs is the cause."""
    module = sys.modules.get(driver_of(connection))
    errors: type[Exception] = getattr(connection, "Error", getattr(module, "Error", OSError))
    try:
        yield
    except (errors, OSError, pa.ArrowException) as problem:
        raise as_user_error(place, problem, bool(getattr(connection, "closed", False))) from problem


def _refuse_other_columns(place: str, known: Mapping[str, object], now: Sequence[str]) -> None:
    """Refuse an answer whose columns are not those that were looked at."""
    if list(known) != list(now):
        gone = next((name for name in known if name not in now), None)
        what = "other columns" if gone is None else f"no column {gone!r} any more"
        raise naming_source(DataError(f"{place}: it has {what} since it was looked at; scan it anew"))
