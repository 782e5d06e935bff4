"""Tables in real engines, and what queries answer there."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa

from deciban.sql import DIALECTS, Dialect

# What columns of Arrow are in PostgreSQL.
POSTGRES_TYPES = {
    "double": "float8", "float": "float4", "int64": "int8", "int32": "int4", "bool": "boolean", "string": "text",
    "date32[day]": "date", "timestamp[us]": "timestamp", "time64[us]": "time", "timestamp[us, tz=UTC]": "timestamptz",
}  # fmt: skip

_numbers = itertools.count()


@dataclass(frozen=True)
class EngineUnderTest:
    """An engine: the name of its dialect, and functions that put a table there and ask a query."""

    name: str
    load: Callable[[str, pa.Table], None]
    ask: Callable[[str], pa.Table]

    @property
    def dialect(self) -> Dialect:
        return DIALECTS[self.name]

    def new_table(self, table: pa.Table) -> str:
        """The name of a new table in the engine that holds these rows."""
        name = f"rows_{next(_numbers)}"
        self.load(name, table)
        return name


def duckdb_engine() -> EngineUnderTest:
    connection = duckdb.connect()

    def load(name: str, table: pa.Table) -> None:
        connection.register("given", table)
        connection.execute(f"CREATE TABLE {DIALECTS['duckdb'].identifier(name)} AS SELECT * FROM given")
        connection.unregister("given")

    return EngineUnderTest("duckdb", load, lambda query: connection.sql(query).to_arrow_table())


def postgres_engine(server: Any) -> EngineUnderTest:
    connection = server.connect()
    quoted = DIALECTS["postgres"].identifier

    def load(name: str, table: pa.Table) -> None:
        columns = ", ".join(f"{quoted(field.name)} {POSTGRES_TYPES[str(field.type)]}" for field in table.schema)
        connection.execute(f"CREATE TABLE {quoted(name)} ({columns})")
        with connection.cursor().copy(f"COPY {quoted(name)} FROM STDIN") as copy:
            for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
                copy.write_row(row)

    def ask(query: str) -> pa.Table:
        cursor = connection.execute(query)
        rows = cursor.fetchall()
        names = [column.name for column in cursor.description]
        return pa.table([pa.array(column) for column in zip(*rows, strict=True)], names=names)

    return EngineUnderTest("postgres", load, ask)


def spark_engine(session: Any) -> EngineUnderTest:
    def load(name: str, table: pa.Table) -> None:
        session.createDataFrame(table).coalesce(1).createOrReplaceTempView(name)

    return EngineUnderTest("spark", load, lambda query: session.sql(query).toArrow())
