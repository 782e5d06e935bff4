"""A query, or a table, of PostgreSQL as a source of rows."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import pyarrow as pa

from deciban.errors import DataError, UsageError, naming_source
from deciban.sources.databases.postgres import Statement
from deciban.sources.databases.postgres_types import PostgresType, described
from deciban.sources.databases.source import DatabaseSource, distinct_names
from deciban.sources.dialects import POSTGRES
from deciban.sources.pieces import in_measured_pieces
from deciban.sources.sql_rows import SqlColumn, SqlRows, sample_by_content
from deciban.tables.cell_numbers import is_text, plain_type
from deciban.util.arrays import CONTENT_SEED
from deciban.util.progress import Advance


class Connections(Protocol):
    """Where the connections come from by which a query is read."""

    own: bool

    def reading(self, place: str) -> AbstractContextManager[Any]:
        """A connection for one pass."""
        ...

    def held(self, place: str, look: Callable[[Statement], object]) -> AbstractContextManager[None]:
        """While it lasts, all passes see the same rows, as far as that can be had."""
        ...


@dataclass(frozen=True)
class GivenConnection:
    """A connection that the user has, in a transaction of the user's."""

    connection: Any
    own = False

    def reading(self, place: str) -> AbstractContextManager[Any]:
        return nullcontext(self.connection)

    def held(self, place: str, look: Callable[[Statement], object]) -> AbstractContextManager[None]:
        return nullcontext()


@dataclass(frozen=True)
class PostgresSource(DatabaseSource):
    """What a query of PostgreSQL answers.

    source: what the query is behind FROM. connections: where those come from that ask for it.
    """

    types: Mapping[str, PostgresType]
    source: str
    connections: Connections = field(repr=False)

    def steady(self) -> AbstractContextManager[None]:
        return self.connections.held(self.name, self._refuse_changed)

    def tables(self) -> Iterator[pa.Table]:
        self._refuse_unreadable()
        with (
            self.connections.reading(self.name) as connection,
            Statement(connection, self.name, self.connections.own) as statement,
        ):
            self._refuse_changed(statement)
            reader = statement.reader(self._query)
            for piece in in_measured_pieces(statement.batches(reader), reader.schema):
                yield pa.Table.from_arrays(piece.columns, names=list(self.names))

    @contextmanager
    def sql(self) -> Iterator[SqlRows]:
        """The rows as the server has them; it may use several processes, as it does by itself."""
        with self._asking() as (statement, rows):
            if self.connections.own:
                statement.run("SET LOCAL max_parallel_workers_per_gather TO DEFAULT")
            yield rows

    def sample_in_engine(self, most: int, advance: Advance, labels: Sequence[str] = ()) -> tuple[pa.Table, int]:
        """The rows that `sample` draws: the server has the same hashes."""
        with self.sql() as rows:
            cells = [name for name in self.names if name not in labels]
            drawn, size = sample_by_content(rows, most, _content([rows.columns[name] for name in (*cells, *labels)]))
        advance(size)
        return drawn, size

    @contextmanager
    def _asking(self) -> Iterator[tuple[Statement, SqlRows]]:
        """Who answers, and what is asked about."""
        self._refuse_unreadable()
        with (
            self.connections.reading(self.name) as connection,
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
        """Refuse columns that are not there any more, or are of another type, since they were looked at."""
        try:
            now = described(statement, self.source, self.name)
        except UsageError as problem:
            raise naming_source(DataError(f"{problem}; it has changed since it was looked at: scan it anew")) from None
        for name in self.names:
            was = self.types[name].called
            if name not in now:
                raise self._changed(f"column {name!r} is gone, which was there")
            if now[name].called != was:
                raise self._changed(f"column {name!r} is {now[name].called}, and was {was}")

    def _changed(self, what: str) -> DataError:
        return naming_source(DataError(f"{self.name}: {what} when it was looked at; scan it anew"))


def _content(columns: Sequence[SqlColumn]) -> str:
    """The hash of what a row holds, as `content_hashes` has it (`hash_record_extended`: since PostgreSQL 14)."""
    cells = ", ".join(map(_hashed_as, columns))
    return f"hash_record_extended(ROW({cells}), {(CONTENT_SEED ^ 1 << 63) - (1 << 63)})"


def _hashed_as(column: SqlColumn) -> str:
    """A cell as a text or as the double that it is read as; NULL where it is missing."""
    if is_text(plain_type(column.type)):
        return f'CAST({column.sql} AS text) COLLATE "C"'
    return POSTGRES.not_nan(POSTGRES.as_number(column.sql, column.type) or column.sql)


def open_postgres(connections: Connections, where: str, query: str | None, table: str | None) -> PostgresSource:
    """The source of a query or of a table; `where` is what messages call the database."""
    name = f"{'the query' if table is None else table} ({where})"
    source = f"({query}\n)" if table is None else POSTGRES.qualified(table)
    with connections.reading(name) as connection, Statement(connection, name, connections.own) as statement:
        if query is not None:
            distinct_names(statement.schema(query).names, name)  # of one statement, and a whole one
        types = described(statement, source, name)
    return PostgresSource(name, tuple(types), types, source, connections)
