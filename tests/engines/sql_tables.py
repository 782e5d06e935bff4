"""Tables in three engines that answer SQL, as streams that can be counted there."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa

from deciban.counting import batches, count_batches
from deciban.counts import Counts
from deciban.engines.count import count_in_engine
from deciban.errors import DataError
from deciban.files.labelled_stream import LabelledStream
from deciban.files.sql_rows import SqlRows
from deciban.files.stream import Stream
from deciban.schema.schema import Schema
from deciban.sql import DUCKDB, POSTGRES, SPARK, Dialect
from deciban.tables.labelled import LabelledTable

Ask = Callable[[str], pa.Table]


@dataclass(frozen=True)
class SqlTable(Stream):
    """A table of an engine. source: its name, as SQL writes it. asked: the statements so far."""

    dialect: Dialect
    source: str
    columns: tuple[str, ...]
    ask: Ask
    asked: list[str]

    @property
    def names(self) -> tuple[str, ...]:
        return self.columns

    @property
    def expected(self) -> int | None:
        return None

    def tables(self) -> Iterator[pa.Table]:
        shown = ", ".join(self.dialect.identifier(name) for name in self.columns)
        yield self.ask(f"SELECT {shown} FROM {self.source}").rename_columns(list(self.columns))

    def reading_as(self, types: Mapping[str, str]) -> "SqlTable":
        return self

    def resolve_types(self, sample: pa.Table) -> "tuple[SqlTable, pa.Table]":
        return self, sample

    def naming(self) -> Any:
        return nullcontext()

    @contextmanager
    def sql(self) -> Iterator[SqlRows]:
        columns = {name: self.dialect.identifier(name) for name in self.columns}
        yield SqlRows.of(self.dialect, self.source, columns, self._remembered)

    def _remembered(self, query: str) -> pa.Table:
        self.asked.append(query)
        return self.ask(query)


class Database:
    """An engine of a test: tables are made in it, and asked for."""

    dialect: Dialect

    def __init__(self) -> None:
        self.made = 0

    def table(self, cells: pa.Table, name: str | None = None) -> SqlTable:
        """A new table of these cells."""
        self.made += 1
        name = f"t{self.made}" if name is None else name
        self.fill(name, cells)
        return self.of_name(name, cells.column_names)

    def of_name(self, name: str, columns: list[str]) -> SqlTable:
        return SqlTable(self.dialect, self.dialect.identifier(name), tuple(columns), self.ask, [])

    def fill(self, name: str, cells: pa.Table) -> None: ...

    def ask(self, query: str) -> pa.Table: ...


class DuckDb(Database):
    dialect = DUCKDB

    def __init__(self) -> None:
        super().__init__()
        self.connection = duckdb.connect(config={"threads": 2})

    def fill(self, name: str, cells: pa.Table) -> None:
        self.connection.register("cells", cells)
        self.connection.execute(f"CREATE TABLE {self.dialect.identifier(name)} AS SELECT * FROM cells")
        self.connection.unregister("cells")

    def ask(self, query: str) -> pa.Table:
        return self.connection.sql(query).to_arrow_table()


class PostgreSql(Database):
    dialect = POSTGRES

    def __init__(self, url: str) -> None:
        super().__init__()
        from adbc_driver_postgresql import dbapi

        self.connection = dbapi.connect(url, autocommit=True)

    def fill(self, name: str, cells: pa.Table) -> None:
        with self.connection.cursor() as cursor:
            cursor.execute(f"DROP TABLE IF EXISTS {self.dialect.identifier(name)}")
            cursor.adbc_ingest(name, cells, mode="create")

    def ask(self, query: str) -> pa.Table:
        with self.connection.cursor() as cursor:
            cursor.execute(query)
            return cursor.fetch_arrow_table()


class SparkSql(Database):
    dialect = SPARK

    def __init__(self, session: Any) -> None:
        super().__init__()
        self.session = session

    def fill(self, name: str, cells: pa.Table) -> None:
        frame = self.session.createDataFrame(cells)
        frame.createOrReplaceTempView(self.dialect.identifier(name))

    def ask(self, query: str) -> pa.Table:
        return self.session.sql(query).toArrow()


def counted_in_engine(schema: Schema, table: SqlTable, target: str, weight: str | None = None) -> Counts:
    """The counts of all rows, by SQL alone."""

    def refuse(schema: Schema, rest: LabelledStream) -> Counts:
        raise DataError(f"SQL did not count {schema}")

    return count_in_engine(schema, LabelledStream.of(table, target, weight, "engine"), refuse)


def counted_here(schema: Schema, rows: LabelledTable) -> Counts:
    return count_batches(batches(rows, schema), Counts.empty(schema), 1)
