"""DuckDB queries as a source."""

import glob
import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from deciban.errors import UsageError
from deciban.sources.duckdb import (
    DuckDbSource,
    borrow_connection,
    column_types,
    literal,
    query_error,
    quote_name,
    record_of,
    select_typed,
    translate_errors,
)
from deciban.sources.source import ColumnType, Types
from deciban.tables.cells import text_type

SQL = "sql:"

# Extensions of CSV files that DuckDB accepts as tables.
CSV_IN_SQL = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".csv.zst")

# Quoted texts and names in SQL, and file names.
IN_QUOTES = re.compile(r"""\$\$(.*?)\$\$|'(?:[^']|'')*'|"(?:[^"]|"")*"|[\w/]+\.[\w.]+""", re.DOTALL)
NAME_IN_SQL = re.compile(rb"""'(?:[^']|'')*'|"(?:[^"]|"")*"|[\w.]+""")

# Rows of a CSV file examined to decide if DuckDB's booleans are words.
FLAG_ROWS = 20_000


@dataclass(frozen=True)
class QueryRead:
    """Query written by the user."""

    query: str

    def select(self, names: Sequence[str], types: Types) -> str:
        return select_typed(f"({self.query}\n)", names, types)


def open_query(source: str) -> DuckDbSource:
    """Open a query given as "sql: select ..."."""
    text = source.removeprefix(SQL).strip().rstrip(";")
    if not text:
        raise UsageError(f"{source!r} contains no query", remedy="write it as 'sql: select ... from ...'")
    name = "the query"
    with translate_errors(name):
        query = _keep_words(text)
    types = {column: ColumnType(own) for column, own in column_types(f"SELECT * FROM ({query}\n)", name).items()}
    return DuckDbSource(name, tuple(types), (QueryRead(query),), types=types, named=tuple(_files_in(text)))


def _files_in(query: str) -> Iterator[str]:
    """Yield the files named in a query as tables, in calls or in lists, including globs."""
    for found in IN_QUOTES.finditer(query):
        text = found[1] if found[1] is not None else _bare(found[0])
        yield from filter(os.path.isfile, (text, *glob.iglob(os.path.expanduser(text), recursive=True)))


def _keep_words(query: str) -> str:
    """Rewrite a query so that yes and no stay text in the CSV files it names.

    DuckDB would read them as booleans. Calls of read_csv are not changed.
    """
    text = query.encode()
    with (
        borrow_connection() as connection,
        suppress(query_error()),
    ):  # errors are raised when the query is described
        ((parsed,),) = connection.execute("SELECT json_serialize_sql(?)", [query]).fetchall()
        for table in sorted(_tables_in(json.loads(parsed)), key=lambda table: -table["query_location"]):
            name = ".".join(filter(None, (table["schema_name"], table["table_name"])))
            start = table["query_location"]
            found = NAME_IN_SQL.match(text, start)
            if found is None or _bare(found[0].decode()) != name or not name.lower().endswith(CSV_IN_SQL):
                continue
            if (call := _read_words_as_text(connection, name)) is not None:
                called = "" if table["alias"] else f" AS {quote_name(_table_name_of_file(name))}"
                text = text[:start] + f"{call}{called}".encode() + text[found.end() :]
    return text.decode()


def _tables_in(parsed: Any) -> Iterator[dict[str, Any]]:
    """Yield the tables in a query parsed by DuckDB."""
    if isinstance(parsed, dict) and parsed.get("type") == "BASE_TABLE":
        yield parsed
    for item in parsed.values() if isinstance(parsed, dict) else parsed if isinstance(parsed, list) else ():
        yield from _tables_in(item)


def _bare(token: str) -> str:
    """Return a name or text in SQL without its quotes."""
    quote = token[0]
    return token[1:-1].replace(2 * quote, quote) if quote in "'\"" else token


def _table_name_of_file(name: str) -> str:
    """Return DuckDB's name for a file used as a table, if the query does not name it."""
    return name if any(mark in name for mark in "*?[") else os.path.basename(name).split(".")[0]


def _read_words_as_text(connection: Any, name: str) -> str | None:
    """Return a call of read_csv that keeps words as text; None if all booleans are true and false."""
    found = connection.sql(f"SELECT * FROM read_csv({literal(name)})")
    flags = [name for name, kind in zip(found.columns, found.types, strict=True) if str(kind) == "BOOLEAN"]
    if not flags:
        return None
    shown = ", ".join(map(quote_name, flags))
    call = _as_text(name, flags)
    cells = connection.sql(f"SELECT {shown} FROM {call} LIMIT {FLAG_ROWS}").to_arrow_table()
    words = [flag for flag in flags if text_type(cells[flag]) == "VARCHAR"]
    return _as_text(name, words) if words else None


def _as_text(name: str, columns: Sequence[str]) -> str:
    return f"read_csv({literal(name)}, types={record_of((column, 'VARCHAR') for column in columns)})"
