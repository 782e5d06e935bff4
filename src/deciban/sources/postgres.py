"""PostgreSQL through ADBC: connections, snapshots, reading and writing rows.

No other module imports the driver. Statements run on their own threads, so that signals can interrupt them. Each column
is read by a cast in a query around the user's. While a snapshot is held, every pass sees the same rows. Rows are
written to a temporary table first, and from there to the target table, all or none.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from threading import Lock, Thread
from types import TracebackType
from typing import Any, NamedTuple, Protocol, Self, TypeVar, get_args

import pyarrow as pa

from deciban.errors import Argument, DataError, Place, UsageError, missing_package, render_message
from deciban.sources.addresses import Address
from deciban.sources.arrow import distinct_names
from deciban.sources.connections import connection_error, translate_server_errors
from deciban.sources.dialects import POSTGRES
from deciban.sources.source import (
    ColumnType,
    Source,
    SqlColumn,
    SqlRows,
    in_measured_pieces,
    is_sorted_query,
    sample_by_content,
)
from deciban.sources.write import IfExists
from deciban.tables.cells import is_text, plain_type
from deciban.tables.table import cast_like_first, map_columns
from deciban.util import shutdown
from deciban.util.arrays import CONTENT_SEED
from deciban.util.progress import Advance

T = TypeVar("T")

# Seconds between checks for signals: libraries may install handlers that do not end a wait.
LOOK = 0.2


def run_in_thread(action: Callable[[], T]) -> "Future[T]":
    """Run an action in a daemon thread and return its future."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(action())
        except BaseException as problem:
            future.set_exception(problem)

    Thread(target=run, name="deciban-database", daemon=True).start()
    return future


def wait_for_result(future: "Future[T]") -> T:
    """Wait for a future and return its result, or raise its error."""
    while not future.done():
        wait([future], LOOK)
    return future.result()


# Approximate size of a batch in bytes.
BATCH_BYTES = 4 << 20

# Seconds to wait for a cancelled statement.
CANCEL_SECONDS = 5.0


def driver() -> Any:
    """Return the driver; raise a UsageError that names the package if it is not installed."""
    try:
        from adbc_driver_postgresql import dbapi
    except ImportError:
        raise missing_package("reading PostgreSQL", "adbc-driver-postgresql", "postgres") from None
    return dbapi


@contextmanager
def connect(address: Address, sibling: Any = None) -> Iterator[Any]:
    """Open a connection with its own transaction, which is rolled back at the end unless it was committed.

    sibling: another connection to the same database; cloning it takes a tenth of the time.
    """
    dbapi = driver()
    connecting = run_in_thread(lambda: dbapi.connect(address.url) if sibling is None else sibling.adbc_clone())
    try:
        connection = wait_for_result(connecting)
    except dbapi.Error as problem:
        raise connection_error(address, str(problem)) from None
    except BaseException:  # an interrupt: close the connection once it is open
        connecting.add_done_callback(_close_opened)
        raise
    try:
        yield connection
    finally:
        with suppress(Exception):  # the connection may be lost
            connection.close()


def _close_opened(connecting: "Future[Any]") -> None:
    if connecting.exception() is None:
        connecting.result().close()


class Statement:
    """Statement on a connection. Waiting for its result can be interrupted, which cancels the statement.

    place: name of the query or table in messages.
    own: True if the connection is ours and a result may be cancelled; a user's connection stays in its transaction.
    """

    def __init__(self, connection: Any, place: str, own: bool = True) -> None:
        self._connection, self._place, self._own = connection, place, own
        self._cursor = connection.cursor(adbc_stmt_kwargs={"adbc.postgresql.batch_size_hint_bytes": str(BATCH_BYTES)})
        self._running: Future[Any] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, problem: object, trace: TracebackType | None) -> None:
        if self._running is not None and not self._running.done():
            if self._own or kind not in (None, GeneratorExit):
                with suppress(Exception):
                    self._cursor.adbc_cancel()
            if not wait([self._running], timeout=CANCEL_SECONDS).done:
                return  # no response: the cursor is still in use
        with suppress(Exception):
            self._cursor.close()

    def run(self, text: str) -> None:
        """Run a statement without a result."""
        self._wait(lambda: self._cursor.execute(text))

    def table(self, text: str) -> pa.Table:
        """Return the result of a query as a table."""
        return self._wait(lambda: self._cursor.execute(text).fetch_arrow_table())

    def rows(self, text: str) -> list[dict[str, Any]]:
        """Return the result of a query as a list of dicts."""
        return list(self.table(text).to_pylist())

    def schema(self, text: str) -> pa.Schema:
        """Return the schema of a query without running it; its tables stay locked until the transaction ends."""
        return self._wait(lambda: self._cursor.adbc_execute_schema(text))

    def reader(self, text: str) -> pa.RecordBatchReader:
        """Start a query and return a reader of its result."""
        self._wait(lambda: self._cursor.execute(text))
        results = getattr(self._cursor, "_results", None)  # its errors keep the SQLSTATE
        return getattr(results, "reader", None) or self._cursor.fetch_record_batch()

    def batches(self, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        """Yield the batches of a reader; the next batch is fetched in the background."""
        batches = iter(reader)
        coming = self._start(lambda: next(batches, None))
        while (batch := self._result(coming)) is not None:
            coming = self._start(lambda: next(batches, None))
            yield batch

    def append(self, table: str, rows: pa.Table, *, new: bool) -> None:
        """Append rows to a temporary table. new: True to create it."""
        mode = "create" if new else "append"
        self._wait(lambda: self._cursor.adbc_ingest(table, rows, mode=mode, temporary=True))

    def commit(self) -> None:
        """Commit the transaction."""
        self._wait(self._connection.commit)

    def _wait(self, action: Callable[[], T]) -> T:
        return self._result(self._start(action))

    def _start(self, action: Callable[[], T]) -> "Future[T]":
        self._running = future = run_in_thread(action)
        return future

    def _result(self, future: "Future[T]") -> T:
        with translate_server_errors(self._place, self._connection):
            return wait_for_result(future)


# Infinite dates, and dates beyond Arrow's range, are missing: as numbers of days they would be wrong.
DATES = "CASE WHEN {0} BETWEEN '4713-01-01 BC' AND '290000-01-01' THEN {0} END"

# Supported types of PostgreSQL: the expression to read them, and DuckDB's name of the result. Decimals would be text.
READ = {
    "bool": ("{0}", "BOOLEAN"),
    "int2": ("{0}", "SMALLINT"),
    "int4": ("{0}", "INTEGER"),
    "int8": ("{0}", "BIGINT"),
    "oid": ("{0}::int8", "BIGINT"),
    "float4": ("{0}", "FLOAT"),
    "float8": ("{0}", "DOUBLE"),
    "numeric": ("{0}::float8", "DOUBLE"),
    "money": ("{0}::numeric::float8", "DOUBLE"),
    "date": (DATES, "DATE"),
    "timestamp": (DATES, "TIMESTAMP"),
    "timestamptz": (DATES, "TIMESTAMP WITH TIME ZONE"),
    "time": ("{0}", "TIME"),
    "uuid": ("{0}::text", "VARCHAR"),
    "char": ("{0}::text", "VARCHAR"),
}

# Type categories read as text: strings, enums, network addresses, bits.
TEXT_CATEGORIES = frozenset("SEIV")

# PostgreSQL types for columns with another wanted type.
AS_TYPES = {"VARCHAR": "text", "DOUBLE": "float8", "BOOLEAN": "boolean", "TIMESTAMP": "timestamp", "TIME": "time"}

# Names and categories of types, with domains resolved; one row per column even if the query has no rows.
TYPES_OF_COLUMNS = """
WITH RECURSIVE found(place, called, type) AS (
    SELECT columns.place, format_type(columns.type, NULL), columns.type
    FROM (SELECT 1) AS one LEFT JOIN (SELECT * FROM {source} AS q LIMIT 0) AS q ON true,
        unnest(ARRAY[{types}]) WITH ORDINALITY AS columns(type, place)
    UNION ALL
    SELECT place, called, typbasetype FROM found JOIN pg_type ON oid = type WHERE typtype = 'd'
)
SELECT called, typname::text AS name, typcategory::text AS category
FROM found JOIN pg_type ON oid = type WHERE typtype <> 'd' ORDER BY place
"""


@dataclass(frozen=True)
class PostgresType(ColumnType):
    """Column of a query. read: expression of its own type, where {0} is the column."""

    read: str = "{0}"

    def expression(self, name: str) -> str:
        """Return the expression to select for the column with this name in q."""
        column = f"q.{POSTGRES.identifier(name)}"
        if self.kind == self.own:
            return self.read.format(column)
        if self.kind == "VARCHAR":  # as the server writes it: a cast to a number would lose digits
            return f"{column}::text"
        made = self.read.format(column) if self.own else column
        return f"CAST({made}{'::int' if self.own == 'BOOLEAN' else ''} AS {AS_TYPES[self.kind]})"


def describe_columns(statement: Statement, source: str, place: str) -> dict[str, PostgresType]:
    """Return the columns and types of a table or a query, given as in FROM."""
    names = distinct_names(statement.schema(f"SELECT * FROM {source} AS q").names, place)
    types = ", ".join(f"pg_typeof(q.{POSTGRES.identifier(name)})::oid" for name in names)
    rows = statement.rows(TYPES_OF_COLUMNS.format(source=source, types=types))
    return {name: _type_of(row) for name, row in zip(names, rows, strict=True)}


def _type_of(row: Mapping[str, str]) -> PostgresType:
    read, own = READ.get(row["name"], ("{0}::text", "VARCHAR") if row["category"] in TEXT_CATEGORIES else ("{0}", ""))
    return PostgresType(own, called=row["called"], read=read)


BEGIN = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"

# Rows are read as UTF-8 and always in the same order, so without parallel or synchronized scans. A held snapshot does
# not time out, and a query ends with its client.
SESSION_SETTINGS = {
    "client_encoding": "UTF8",
    "synchronize_seqscans": "off",
    "max_parallel_workers_per_gather": "0",
    "idle_in_transaction_session_timeout": "0",
    "client_connection_check_interval": "2s",
}

# Only settings that the server supports; on Windows it cannot detect a lost client.
SET_THEM = f"""
SELECT set_config(name, wanted, true)
FROM (VALUES {", ".join(f"('{name}', '{value}')" for name, value in SESSION_SETTINGS.items())}) AS asked(name, wanted)
JOIN pg_settings USING (name)
WHERE name <> 'client_connection_check_interval' OR version() !~* 'mingw|visual|windows'
"""


class Held(NamedTuple):
    """Connection that holds a snapshot, the name of the snapshot, and a stack to close both."""

    connection: Any
    moment: str
    closing: ExitStack


class Snapshots:
    """Snapshots of a database: a new one for each pass, unless one is held."""

    own = True  # its connections may be closed at any time

    def __init__(self, address: Address) -> None:
        self.address = address
        self._lock = Lock()
        self._holders = 0
        self._held: Held | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.address,)

    @contextmanager
    def hold_snapshot(self, place: str, look: Callable[[Statement], object]) -> Iterator[None]:
        """Hold one snapshot for all passes. look: function that reads the tables first, which locks them."""
        with self._lock:
            if self._held is None:
                self._held = self._hold(place, look)
            self._holders += 1
        try:
            yield
        finally:
            with self._lock:
                self._holders -= 1
                if not self._holders and self._held is not None:
                    held, self._held = self._held, None
                    held.closing.close()

    def _hold(self, place: str, look: Callable[[Statement], object]) -> Held:
        with ExitStack() as closing:
            connection = closing.enter_context(self.acquire(place))
            with Statement(connection, place) as statement:
                (found,) = statement.rows("SELECT pg_export_snapshot() AS moment")
                look(statement)
            return Held(connection, found["moment"], closing.pop_all())

    @contextmanager
    def acquire(self, place: str) -> Iterator[Any]:
        """Open a read-only connection that sees the held snapshot, or its own."""
        held = self._held
        with connect(self.address, None if held is None else held.connection) as connection:
            with Statement(connection, place) as statement:
                statement.run(BEGIN)
                if held is not None:
                    statement.run(f"SET TRANSACTION SNAPSHOT {POSTGRES.literal(held.moment)}")
                statement.rows(SET_THEM)
            yield connection


class Connections(Protocol):
    """Provider of connections for reading a query."""

    own: bool

    def acquire(self, place: str) -> AbstractContextManager[Any]:
        """Return a connection for one pass."""
        ...

    def hold_snapshot(self, place: str, look: Callable[[Statement], object]) -> AbstractContextManager[None]:
        """Hold one snapshot for all passes, if possible."""
        ...


@dataclass(frozen=True)
class GivenConnection:
    """User's connection, in the user's transaction."""

    connection: Any
    own = False

    def acquire(self, place: str) -> AbstractContextManager[Any]:
        return nullcontext(self.connection)

    def hold_snapshot(self, place: str, look: Callable[[Statement], object]) -> AbstractContextManager[None]:
        return nullcontext()


@dataclass(frozen=True)
class PostgresSource(Source):
    """Result of a PostgreSQL query.

    source: the query as in FROM.
    connections: provider of connections.
    """

    source: str
    connections: Connections = field(repr=False)
    types: Mapping[str, PostgresType] = field(kw_only=True)

    @property
    def in_order(self) -> bool:
        return is_sorted_query(self.source)

    def steady(self) -> AbstractContextManager[None]:
        return self.connections.hold_snapshot(self.name, self._refuse_changed)

    def tables(self) -> Iterator[pa.Table]:
        self._refuse_unreadable()
        with (
            self.connections.acquire(self.name) as connection,
            Statement(connection, self.name, self.connections.own) as statement,
        ):
            self._refuse_changed(statement)
            reader = statement.reader(self._query)
            for piece in in_measured_pieces(statement.batches(reader), reader.schema):
                yield pa.Table.from_arrays(piece.columns, names=list(self.names))

    @contextmanager
    def sql(self) -> Iterator[SqlRows]:
        """Return the rows on the server, which may use its default number of parallel workers."""
        with self._open_sql() as (statement, rows):
            if self.connections.own:
                statement.run("SET LOCAL max_parallel_workers_per_gather TO DEFAULT")
            yield rows

    def sample_in_engine(self, max_rows: int, advance: Advance, labels: Sequence[str] = ()) -> tuple[pa.Table, int]:
        """Draw the rows that `sample` draws: the server computes the same hashes."""
        with self.sql() as rows:
            cells = [name for name in self.names if name not in labels]
            drawn, size = sample_by_content(
                rows, max_rows, _content([rows.columns[name] for name in (*cells, *labels)])
            )
        advance(size)
        return drawn, size

    @contextmanager
    def _open_sql(self) -> Iterator[tuple[Statement, SqlRows]]:
        """Return a statement, and the rows it can query."""
        self._refuse_unreadable()
        with (
            self.connections.acquire(self.name) as connection,
            Statement(connection, self.name, self.connections.own) as statement,
        ):
            self._refuse_changed(statement)
            columns = {name: self.types[name].expression(name) for name in self.names}
            rows = SqlRows.of(POSTGRES, f"{self.source} AS q", columns, statement.table)
            yield statement, replace(rows, fragile=not self.connections.own)

    @property
    def _query(self) -> str:
        columns = (f"{self.types[name].expression(name)} AS {POSTGRES.identifier(name)}" for name in self.names)
        return f"SELECT {', '.join(columns)} FROM {self.source} AS q"

    def _refuse_changed(self, statement: Statement) -> None:
        """Raise a DataError if a column is gone or has another type since the query was opened."""
        try:
            now = describe_columns(statement, self.source, self.name)
        except UsageError as problem:
            message = (
                f"{render_message(problem.cause)}; {render_message(problem.remedy)}"
                if problem.remedy
                else problem.cause
            )
            remedy = "it has changed since it was opened: scan it again"
            raise DataError(message, place=problem.place, remedy=remedy) from None
        for name in self.names:
            was = self.types[name].called
            if name not in now:
                raise self._change_error(f"column {name!r} no longer exists")
            if now[name].called != was:
                raise self._change_error(
                    f"column {name!r} is {now[name].called}, but was {was} when the query was opened"
                )

    def _change_error(self, what: str) -> DataError:
        return DataError(what, place=Place(self.name), remedy="scan it again")


def _content(columns: Sequence[SqlColumn]) -> str:
    """Return the expression for the content hash of a row (`hash_record_extended`, PostgreSQL 14 and later)."""
    cells = ", ".join(map(_hash_input, columns))
    return f"hash_record_extended(ROW({cells}), {(CONTENT_SEED ^ 1 << 63) - (1 << 63)})"


def _hash_input(column: SqlColumn) -> str:
    """Return a cell as a text, or as the double it is read as; NULL for a missing cell."""
    if is_text(plain_type(column.type)):
        return f'CAST({column.sql} AS text) COLLATE "C"'
    return POSTGRES.not_nan(POSTGRES.as_number(column.sql, column.type) or column.sql)


def open_postgres(connections: Connections, where: str, query: str | None, table: str | None) -> PostgresSource:
    """Open a query or a table. where: name of the database in messages."""
    name = f"{'the query' if table is None else table} ({where})"
    source = f"({query}\n)" if table is None else POSTGRES.quote_table(table)
    with connections.acquire(name) as connection, Statement(connection, name, connections.own) as statement:
        if query is not None:
            distinct_names(statement.schema(query).names, name)  # checks for one complete statement
        types = describe_columns(statement, source, name)
    return PostgresSource(name, tuple(types), source, connections, types=types)


# Name of the temporary table.
WRITTEN_ROWS = "deciban_rows"

# Lock timeout at the start, when this query itself may read from the table.
FIRST_WAIT = "10s"

# Lock timeout at the end, when the work is done.
LAST_WAIT = "10min"


@contextmanager
def write_to_table(url: str, table: str, if_exists: IfExists = "fail") -> Iterator[Callable[[pa.Table], None]]:
    """Return a function that appends tables to a database table; all rows are committed at the end, or none."""
    address = Address.of(url)
    if if_exists not in get_args(IfExists):
        raise UsageError(
            f"choose {', '.join(map(repr, get_args(IfExists)))}", parameter=Argument("if_exists", if_exists)
        )
    POSTGRES.quote_table(table)
    place = f"{table} ({address.shown})"
    names: list[str] = []
    first: pa.Schema | None = None
    with connect(address) as connection, Statement(connection, place) as statement:

        def write(rows: pa.Table) -> None:
            nonlocal first
            rows = map_columns(rows, _storable)
            if first is None:
                first, names[:] = rows.schema, rows.column_names
                statement.run("SET LOCAL client_encoding = 'UTF8'")
                _try(statement, rows.slice(0, 0), _final_statements(table, names, if_exists))
            statement.append(WRITTEN_ROWS, cast_like_first(rows, first), new=False)

        yield write
        statement.run(f"SET LOCAL lock_timeout = '{LAST_WAIT}'")
        for text in _final_statements(table, names, if_exists):
            statement.run(text)
        statement.commit()
    shutdown.mark_finished("", place)


def _try(statement: Statement, nothing: pa.Table, finishing: Sequence[str]) -> None:
    """Create the temporary table, run the final statements without rows, and roll these back."""
    statement.append(WRITTEN_ROWS, nothing, new=True)
    statement.run("SAVEPOINT before")
    statement.run(f"SET LOCAL lock_timeout = '{FIRST_WAIT}'")
    for text in finishing:
        statement.run(text)
    statement.run("ROLLBACK TO SAVEPOINT before")


def _final_statements(table: str, names: Sequence[str], if_exists: IfExists) -> list[str]:
    """Return the statements that move all rows to the target table."""
    target, columns = POSTGRES.quote_table(table), ", ".join(map(POSTGRES.identifier, names))
    rows = f"SELECT {columns} FROM pg_temp.{POSTGRES.identifier(WRITTEN_ROWS)}"
    if if_exists == "append":
        return [f"INSERT INTO {target} ({columns}) {rows}"]
    drop = [f"DROP TABLE IF EXISTS {target}"] if if_exists == "replace" else []
    return [*drop, f"CREATE TABLE {target} AS {rows}"]


def _storable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Convert a column to a type that the driver can write."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return column.cast(kind.value_type)
    return column.cast(pa.date32()) if pa.types.is_date64(kind) else column
