"""Whatever the user has, in memory or in files, as rows to learn from or to score."""

import os
from collections.abc import Mapping
from typing import Any

from deciban.files.locate import scan
from deciban.files.spark import SparkRows, is_spark_table
from deciban.files.stream import Source, Stream
from deciban.tables.cell_formats import CellHabits
from deciban.tables.convert import as_table
from deciban.tables.table import Frame, Table


def open_rows(data: Any, types: Mapping[str, str], habit: CellHabits | None = None) -> Table | Stream:
    """A table in memory, or a stream of files or a query; `types` are Arrow's, of columns that are known already.

    habit: how cells of CSV files were written that were learned before.
    """
    if isinstance(data, str | os.PathLike):
        data = scan(data)
    if is_spark_table(data):
        data = SparkRows.of(data)
    if habit is not None and isinstance(data, Source):
        data = data.with_habit(habit)
    return data.reading_as(types) if isinstance(data, Stream) else as_table(data)


def open_table(data: Any, types: Mapping[str, str] | None = None, habit: CellHabits | None = None) -> Table:
    """All rows in memory, wherever they are."""
    rows = open_rows(data, types or {}, habit)
    return Frame(rows.table()) if isinstance(rows, Stream) else rows
