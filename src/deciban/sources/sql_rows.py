"""Rows that stay in an engine, which is asked about them in SQL."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from deciban.sources.dialects import Dialect
from deciban.tables.row_sampling import LONG_ROWS, lowest_priorities, rows_that_fit
from deciban.util.arrays import Integers


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


def sample_by_content(rows: SqlRows, most: int, content: str) -> tuple[pa.Table, int]:
    """At most so many rows (fewer if they are long), and how many there are: those that `Stream.sample` draws of them.

    content: how SQL writes the hash of what a row holds, as `content_hashes` has it.
    """
    shown = ", ".join(f"{column.sql} AS c{k}" for k, column in enumerate(rows.columns.values()))
    size = int(rows.ask(f"SELECT count(*) FROM {rows.source}").column(0)[0].as_py())
    first = rows.ask(f"SELECT {shown} FROM {rows.source} LIMIT {LONG_ROWS}")
    most = rows_that_fit(most, first.nbytes / max(first.num_rows, 1))
    if size <= most:
        return rows.ask(f"SELECT {shown} FROM {rows.source}").rename_columns(list(rows.columns)), size
    hashes, counts = _frequent_or_low(rows, most, size, content)
    drawn, _ = lowest_priorities(hashes.view(np.uint64), counts, most)
    wanted, place = np.unique(drawn, return_inverse=True)
    of_them = f"SELECT {shown}, {content} AS content FROM {rows.source}"
    numbered = f"SELECT *, row_number() OVER (PARTITION BY content) AS copy FROM ({of_them}) AS hashed"
    among = f"content IN ({rows.dialect.rows_of(hashes[wanted].tolist())})"
    one_of_each = rows.ask(f"SELECT * FROM ({numbered} WHERE {among}) AS numbered WHERE copy = 1")
    found = one_of_each["content"].to_numpy()
    order = np.argsort(found)[np.searchsorted(np.sort(found), hashes[wanted])]
    table = one_of_each.drop_columns(["content", "copy"]).rename_columns(list(rows.columns))
    return table.take(pa.array(order[place])), size


def _frequent_or_low(rows: SqlRows, most: int, size: int, content: str) -> tuple[Integers, Integers]:
    """The contents of which so many rows at least have the lowest priorities, and how many rows have each."""
    lot = "(CAST((content >> 11) & 9007199254740991 AS float8) + 0.5)"
    counted = f"SELECT content, count(*) AS copies FROM (SELECT {content} AS content FROM {rows.source}) AS hashed"
    limit = (most + 6.0 * most**0.5 + 16.0) / size
    while True:
        within = f"{lot} <= {rows.dialect.number(limit * 2.0**53)} * count(*)"
        found = rows.ask(f"{counted} GROUP BY content HAVING {within}")
        hashes, counts = found["content"].to_numpy().astype(np.int64), found["copies"].to_numpy().astype(np.int64)
        lots = ((hashes.view(np.uint64) >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
        if np.minimum(np.floor(counts * limit - lots) + 1.0, counts).sum() >= most or limit >= 1.0:
            return hashes, counts
        limit *= 2.0
