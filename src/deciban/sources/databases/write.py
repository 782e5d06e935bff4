"""Rows written into a table of PostgreSQL: all of them or none, in one transaction.

They go into a temporary table first, and from there into the table that is meant when all are there: it is locked only
for that moment. The same is tried before with no rows, so that what the server refuses is known before hours of work.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Literal, get_args

import pyarrow as pa

from deciban.errors import UsageError
from deciban.sources.databases.addresses import Address
from deciban.sources.databases.postgres import Statement, connected
from deciban.sources.dialects import POSTGRES
from deciban.tables.arrow import like_first, with_each
from deciban.util import shutdown

# What becomes of a table that is there already.
Existing = Literal["refuse", "replace", "append"]

# The temporary table.
WRITTEN_ROWS = "deciban_rows"

# How long others that use the table are waited for: at first, when the rows themselves may be read from it, and in the
# end, when the work is done.
FIRST_WAIT, LAST_WAIT = "10s", "10min"


@contextmanager
def written_into(url: str, table: str, existing: Existing = "refuse") -> Iterator[Callable[[pa.Table], None]]:
    """A function that writes one table after the other; all rows are there when the context ends, and none before."""
    address = Address.of(url)
    if existing not in get_args(Existing):
        raise UsageError(f"existing={existing!r}: choose {', '.join(map(repr, get_args(Existing)))}")
    POSTGRES.qualified(table)
    place = f"{table} ({address.shown})"
    names: list[str] = []
    first: pa.Schema | None = None
    with connected(address) as connection, Statement(connection, place) as statement:

        def write(rows: pa.Table) -> None:
            nonlocal first
            rows = with_each(rows, _storable)
            if first is None:
                first, names[:] = rows.schema, rows.column_names
                statement.run("SET LOCAL client_encoding = 'UTF8'")
                _try(statement, rows.slice(0, 0), _finishing(table, names, existing))
            statement.append(WRITTEN_ROWS, like_first(rows, first), new=False)

        yield write
        statement.run(f"SET LOCAL lock_timeout = '{LAST_WAIT}'")
        for text in _finishing(table, names, existing):
            statement.run(text)
        statement.commit()
    shutdown.finished("", place)


def _try(statement: Statement, nothing: pa.Table, finishing: Sequence[str]) -> None:
    """Make the temporary table, and finish as if no more came; all but the temporary table is undone."""
    statement.append(WRITTEN_ROWS, nothing, new=True)
    statement.run("SAVEPOINT before")
    statement.run(f"SET LOCAL lock_timeout = '{FIRST_WAIT}'")
    for text in finishing:
        statement.run(text)
    statement.run("ROLLBACK TO SAVEPOINT before")


def _finishing(table: str, names: Sequence[str], existing: Existing) -> list[str]:
    """The statements that bring all rows into their table."""
    target, columns = POSTGRES.qualified(table), ", ".join(map(POSTGRES.identifier, names))
    rows = f"SELECT {columns} FROM pg_temp.{POSTGRES.identifier(WRITTEN_ROWS)}"
    if existing == "append":
        return [f"INSERT INTO {target} ({columns}) {rows}"]
    drop = [f"DROP TABLE IF EXISTS {target}"] if existing == "replace" else []
    return [*drop, f"CREATE TABLE {target} AS {rows}"]


def _storable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column of a type that the driver can write."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return column.cast(kind.value_type)
    return column.cast(pa.date32()) if pa.types.is_date64(kind) else column
