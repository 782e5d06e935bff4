"""Tables in real engines, and what a model answers of them there."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

from deciban.export.sql.statement import to_sql
from deciban.model.fitted import Fitted
from deciban.model.model import Model
from deciban.sources.dialects import DIALECTS, Dialect
from deciban.util.text_tables import format_class
from tests.export.tables import HARD_TEXTS, assert_answers_agree

# What columns of Arrow are in PostgreSQL; the first that fits.
POSTGRES_TYPES = {
    "double": "float8",
    "int": "int8",
    "bool": "boolean",
    "string": "text",
    "date": "date",
    "timestamp[us, ": "timestamptz",
    "timestamp": "timestamp",
    "time": "time",
    "decimal": "numeric",
}

# The column by which rows are told apart.
ROW = "the number of the row"

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

    @property
    def texts(self) -> list[str | None]:
        """Texts that are hard, and that the engine can hold."""
        return ["", *(text for text in HARD_TEXTS if self.dialect.nul or "\0" not in (text or ""))]

    def answers(self, model: Model | Fitted, table: pa.Table, **options: Any) -> pa.Table:
        """What a model answers of the rows, in their order."""
        name = f"rows of test {next(_numbers)}"
        self.load(name, table.append_column(ROW, pa.array(np.arange(table.num_rows))))
        found = self.ask(to_sql(model, name, self.name, keep=[ROW], **options))
        return found.sort_by(ROW)

    def assert_agrees(self, model: Model | Fitted, table: pa.Table) -> int:
        """The engine answers as deciban does; how many rows are refused is returned."""
        found = self.answers(model, table)
        plain = model.model if isinstance(model, Fitted) else model
        labels = np.array(found["predicted"].to_pylist(), dtype=object)
        return assert_answers_agree(plain, table, labels, probabilities(plain, found))


def probabilities(model: Model, found: pa.Table) -> np.ndarray:
    """The posterior of each row, NaN where there is none."""
    names = [f"P({format_class(label)})" for label in model.classes.tolist()]
    return np.stack([numbers(found, name) for name in names], axis=1)


def numbers(found: pa.Table, name: str) -> np.ndarray:
    return np.array([np.nan if cell is None else cell for cell in found[name].to_pylist()], dtype=np.float64)


def duckdb_engine() -> EngineUnderTest:
    connection = duckdb.connect()

    def load(name: str, table: pa.Table) -> None:
        connection.register("given", table)
        connection.execute(f"CREATE TABLE {DIALECTS['duckdb'].identifier(name)} AS SELECT * FROM given")
        connection.unregister("given")

    return EngineUnderTest("duckdb", load, lambda query: connection.sql(query).to_arrow_table())


def postgres_engine(connection: Any) -> EngineUnderTest:
    quoted = DIALECTS["postgres"].identifier
    connection.execute("SET jit = off")

    def type_of(kind: pa.DataType) -> str:
        return next(known for start, known in POSTGRES_TYPES.items() if str(kind).startswith(start))

    def load(name: str, table: pa.Table) -> None:
        columns = ", ".join(f"{quoted(field.name)} {type_of(field.type)}" for field in table.schema)
        connection.execute(f"CREATE TEMP TABLE {quoted(name)} ({columns})")
        with connection.cursor().copy(f"COPY {quoted(name)} FROM STDIN") as copy:
            for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
                copy.write_row(row)

    def ask(query: str) -> pa.Table:
        cursor = connection.execute(query)
        names = [column.name for column in cursor.description]
        return pa.table([pa.array(column) for column in zip(*cursor.fetchall(), strict=True)], names=names)

    return EngineUnderTest("postgres", load, ask)


def spark_engine(session: Any) -> EngineUnderTest:
    def load(name: str, table: pa.Table) -> None:
        """Times of day are texts: Spark has no such type."""
        columns = [column.cast(pa.string()) if pa.types.is_time(column.type) else column for column in table.columns]
        frame = session.createDataFrame(pa.table(columns, names=table.column_names)).coalesce(1)
        frame.createOrReplaceTempView(DIALECTS["spark"].identifier(name))

    return EngineUnderTest("spark", load, lambda query: session.sql(query).toArrow())
