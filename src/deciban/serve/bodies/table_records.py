"""Tables as JSON has them: rows as records, labels as plain values."""

from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from deciban.serve.problems import Problem
from deciban.tables.arrow import decoded_cells
from deciban.tables.cell_numbers import is_text, plain_type
from deciban.tables.text_types import as_whole

# How cells that JSON does not have are written in it, so that they are read again as what they are.
WRITTEN: dict[type, Callable[[Any], Any]] = {
    date: date.isoformat,
    datetime: lambda cell: cell.isoformat(" "),
    time: time.isoformat,
    timedelta: timedelta.total_seconds,
    Decimal: float,
}


def records_of_table(table: pa.Table) -> list[dict[str, Any]]:
    """The rows of a table as records; a missing cell, NaN too, is null."""
    columns = [cells_of_column(name, column) for name, column in zip(table.column_names, table.columns, strict=True)]
    names = table.column_names
    return [dict(zip(names, cells, strict=True)) for cells in zip(*columns, strict=True)] if columns else []


def cells_of_column(name: str, column: pa.ChunkedArray) -> list[Any]:
    """The cells of a column as JSON has them; a Problem where one is infinite."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    cells = decoded_cells(column.combine_chunks()) if is_text(plain_type(column.type)) else column.to_pylist()
    found = [WRITTEN[type(cell)](cell) if type(cell) in WRITTEN else cell for cell in cells]
    for row, cell in enumerate(found):
        if type(cell) is float and cell - cell != 0.0:  # NaN and infinity
            if cell == cell:
                remedy = "send a finite number, or leave the cell empty"
                raise Problem(422, "found an infinite number, which cannot be learned", remedy, f"rows[{row}].{name}")
            found[row] = None
    return found


def labels_of_column(column: pa.ChunkedArray) -> list[Any]:
    """Labels as JSON has them; whole numbers are integers."""
    return cells_of_column("labels", as_whole(column))
