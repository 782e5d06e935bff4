"""Tables in three engines that answer SQL, as streams that can be counted there."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import duckdb
import pyarrow as pa

from deciban.errors import DataError
from deciban.fitting.sql_counts.pushdown import count_in_engine
from deciban.model.batches import batches, count_batches
from deciban.model.counts import Counts
from deciban.schema.schema import Schema
from deciban.sources.dialects import DUCKDB, POSTGRES, SPARK, Dialect
from deciban.sources.source import Source, SqlRows
from deciban.sources.streams import LabeledStream
from deciban.tables.examples import LabeledTable

Ask = Callable[[str], pa.Table]


class Database(ABC):
    """An engine of a test: tables are made in it, and asked for."""

    dialect: Dialect

    def __init__(self) -> None:
        self.made = 0

    def table(self, cells: pa.Table, name: str | None = None) -> "SqlTable":
        """A new table of these cells."""
        self.made += 1
        name = f"t{self.made}" if name is None else name
        self.fill(name, cells)
        return self.known(name, cells.column_names)

    def known(self, name: str, columns: list[str]) -> "SqlTable":
        """A table that is there, or a view."""
        return SqlTable(name, tuple(columns), self, self.dialect.identifier(name))

    @abstractmethod
    def fill(self, name: str, cells: pa.Table) -> None:
        """Make a table."""

    @abstractmethod
    def run(self, statement: str) -> None:
        """Run a statement that has no answer."""

    @abstractmethod
    def asking(self) -> AbstractContextManager[Ask]:
        """While it lasts, questions about the same rows are answered, as far as the engine can."""


@dataclass(frozen=True)
class SqlTable(Source):
    """A table of an engine. source: its name, as SQL writes it. asked: the statements so far."""

    database: Database
    source: str
    asked: list[str] = field(default_factory=list)

    def tables(self) -> Iterator[pa.Table]:
        shown = ", ".join(self.database.dialect.identifier(name) for name in self.columns)
        with self.database.asking() as ask:
            yield ask(f"SELECT {shown} FROM {self.source}").rename_columns(list(self.columns))

    def locate_errors(self) -> AbstractContextManager[None]:
        return nullcontext()

    @contextmanager
    def sql(self) -> Iterator[SqlRows]:
        columns = {name: self.database.dialect.identifier(name) for name in self.columns}
        with self.database.asking() as ask:

            def remembered(query: str) -> pa.Table:
                self.asked.append(query)
                return ask(query)

            yield SqlRows.of(self.database.dialect, self.source, columns, remembered)


class DuckDb(Database):
    dialect = DUCKDB

    def __init__(self) -> None:
        super().__init__()
        self.connection = duckdb.connect(config={"threads": 2})

    def fill(self, name: str, cells: pa.Table) -> None:
        self.connection.register("cells", cells)
        self.run(f"CREATE OR REPLACE TABLE {self.dialect.identifier(name)} AS SELECT * FROM cells")
        self.connection.unregister("cells")

    def run(self, statement: str) -> None:
        self.connection.execute(statement)

    @contextmanager
    def asking(self) -> Iterator[Ask]:
        yield lambda query: self.connection.sql(query).to_arrow_table()


class PostgreSql(Database):
    dialect = POSTGRES

    def __init__(self, url: str) -> None:
        super().__init__()
        self.url = url

    def fill(self, name: str, cells: pa.Table) -> None:
        with self._connected() as connection, connection.cursor() as cursor:
            cursor.execute(f"DROP TABLE IF EXISTS {self.dialect.identifier(name)}")
            cursor.adbc_ingest(name, cells, mode="create")
            connection.commit()

    def run(self, statement: str) -> None:
        with self._connected() as connection, connection.cursor() as cursor:
            cursor.execute(statement)
            connection.commit()

    @contextmanager
    def asking(self) -> Iterator[Ask]:
        with self._connected() as connection, connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")

            def ask(query: str) -> pa.Table:
                try:
                    return cursor.execute(query).fetch_arrow_table()
                except (connection.Error, OSError) as problem:
                    raise DataError(f"PostgreSQL: {problem}") from problem

            yield ask

    def _connected(self) -> Any:
        from adbc_driver_postgresql import dbapi

        return dbapi.connect(self.url)


class SparkSql(Database):
    dialect = SPARK

    def __init__(self, session: Any) -> None:
        super().__init__()
        self.session = session

    def fill(self, name: str, cells: pa.Table) -> None:
        self.session.createDataFrame(cells).createOrReplaceTempView(self.dialect.identifier(name))

    def run(self, statement: str) -> None:
        self.session.sql(statement)

    @contextmanager
    def asking(self) -> Iterator[Ask]:
        yield lambda query: self.session.sql(query).toArrow()


def counted_in_engine(schema: Schema, table: SqlTable, target: str, weight: str | None = None) -> Counts:
    """The counts of all rows, by SQL alone."""

    def refuse(schema: Schema, rest: LabeledStream) -> Counts:
        raise DataError(f"SQL did not count {schema}")

    return count_in_engine(schema, LabeledStream.of(table, target, weight, True), refuse)


def counted_here(schema: Schema, rows: LabeledTable) -> Counts:
    """The counts of rows that were read."""
    return count_batches(batches(rows, schema), Counts.empty(schema), 1)
