"""Whatever the user has, in memory, in files or in a database, as rows to learn from or to score."""

import os
from collections.abc import Mapping
from typing import Any

from deciban.sources.arrow_tables import is_arrow_stream
from deciban.sources.databases.find import is_database
from deciban.sources.locate import scan
from deciban.sources.spark import SparkRows, is_spark_table
from deciban.sources.stream import Source, Stream
from deciban.tables.cell_formats import CellHabits
from deciban.tables.convert import as_table
from deciban.tables.table import Frame, Table


def named_rows(data: Any, query: str | None, table: str | None) -> Any:
    """The source of a query or a table of a database; without either, the data as they are."""
    return data if query is None and table is None else scan(data, query=query, table=table)


def found_rows(data: Any, files: bool = False) -> Any:
    """The source of what is named: files, a query, a database; anything else as it is.

    files: whether texts in a list are names of files, as paths always are; else each is a row.
    """
    names = (str, os.PathLike) if files else (os.PathLike,)
    several = isinstance(data, list | tuple) and len(data) > 0 and all(isinstance(one, names) for one in data)
    named = several or isinstance(data, str | os.PathLike) or is_database(data) or is_arrow_stream(data)
    return scan(data) if named else data


def _are_files(data: Any) -> bool:
    """Whether all items of a list of texts are files that exist."""
    return isinstance(data, list | tuple) and all(isinstance(one, str) and os.path.isfile(one) for one in data)


def open_rows(data: Any, types: Mapping[str, str], habit: CellHabits | None = None) -> Table | Stream:
    """A table in memory, or a stream of files, a query or a database.

    types: Arrow's types of columns that are known already. habit: how cells of CSV files were written that were learned
    before.
    """
    data = found_rows(data, files=len(types) > 1 and _are_files(data))  # of one column, each text may be a row
    if is_spark_table(data):
        data = SparkRows.of(data)
    if habit is not None and isinstance(data, Source):
        data = data.with_habit(habit)
    return data.reading_as(types) if isinstance(data, Stream) else as_table(data)


def open_table(data: Any, types: Mapping[str, str] | None = None, habit: CellHabits | None = None) -> Table:
    """All rows in memory, wherever they are."""
    rows = open_rows(data, types or {}, habit)
    return Frame(rows.table()) if isinstance(rows, Stream) else rows
