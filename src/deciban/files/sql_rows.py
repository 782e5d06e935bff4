"""Rows that stay in an engine, which is asked about them in SQL."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from deciban.sql import Dialect
from deciban.tables.row_sampling import LONG_ROWS, rows_that_fit, sampled_places


@dataclass(frozen=True)
class SqlColumn:
    """A column of such rows: how SQL writes it, and the type of Arrow that its cells have when they are read."""

    sql: str
    type: pa.DataType


@dataclass(frozen=True)
class SqlRows:
    """Rows in an engine that answers SQL.

    dialect: how the engine writes SQL. source: what stands behind FROM, with a name of its own. columns: by the names
    that users know. ask: the whole answer to a query; errors of the engine are ours by then. fragile: whether an error
    would undo what the user has done before, in the same transaction.
    """

    dialect: Dialect
    source: str
    columns: Mapping[str, SqlColumn]
    ask: Callable[[str], pa.Table]
    fragile: bool = False

    @classmethod
    def of(cls, dialect: Dialect, source: str, columns: Mapping[str, str], ask: Callable[[str], pa.Table]) -> "SqlRows":
        """The rows of a source, whose columns are given as SQL writes them; their types are those of an answer."""
        shown = ", ".join(f"{sql} AS c{k}" for k, sql in enumerate(columns.values()))
        kinds = ask(f"SELECT {shown} FROM {source} LIMIT 0").schema.types
        found = {name: SqlColumn(sql, kind) for (name, sql), kind in zip(columns.items(), kinds, strict=True)}
        return cls(dialect, source, found, ask)


def sample_by_number(rows: SqlRows, most: int) -> tuple[pa.Table, int]:
    """At most so many rows (fewer if they are long), and how many there are: those that `Stream.sample` draws of them
    in the order in which the engine has them."""
    names = [f"c{k}" for k in range(len(rows.columns))]
    shown = ", ".join(f"{column.sql} AS {name}" for name, column in zip(names, rows.columns.values(), strict=True))
    size = int(rows.ask(f"SELECT count(*) FROM {rows.source}").column(0)[0].as_py())
    first = rows.ask(f"SELECT {shown} FROM {rows.source} LIMIT {LONG_ROWS}")
    places = sampled_places(size, rows_that_fit(most, first.nbytes / max(first.num_rows, 1)))
    if places.size == size:
        drawn = rows.ask(f"SELECT {shown} FROM {rows.source}")
    else:
        numbered = f"(SELECT {shown}, row_number() OVER () - 1 AS place FROM {rows.source}) AS numbered"
        wanted = f"place IN ({rows.dialect.rows_of(places.tolist())})"
        drawn = rows.ask(f"SELECT {', '.join(names)} FROM {numbered} WHERE {wanted} ORDER BY place")
    return drawn.rename_columns(list(rows.columns)), size
