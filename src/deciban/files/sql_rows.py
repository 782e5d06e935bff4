"""Rows that stay in an engine, which is asked about them in SQL."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from deciban.sql import Dialect


@dataclass(frozen=True)
class SqlColumn:
    """A column of such rows: how SQL writes it, and the type of Arrow that its cells have when they are read."""

    sql: str
    type: pa.DataType


@dataclass(frozen=True)
class SqlRows:
    """Rows in an engine that answers SQL.

    dialect: how the engine writes SQL. source: what stands behind FROM, with a name of its own. columns: by the names
    that users know. ask: the whole answer to a query; errors of the engine are ours by then.
    """

    dialect: Dialect
    source: str
    columns: Mapping[str, SqlColumn]
    ask: Callable[[str], pa.Table]

    @classmethod
    def of(cls, dialect: Dialect, source: str, columns: Mapping[str, str], ask: Callable[[str], pa.Table]) -> "SqlRows":
        """The rows of a source, whose columns are given as SQL writes them; their types are those of an answer."""
        shown = ", ".join(f"{sql} AS c{k}" for k, sql in enumerate(columns.values()))
        kinds = ask(f"SELECT {shown} FROM {source} LIMIT 0").schema.types
        found = {name: SqlColumn(sql, kind) for (name, sql), kind in zip(columns.items(), kinds, strict=True)}
        return cls(dialect, source, found, ask)
