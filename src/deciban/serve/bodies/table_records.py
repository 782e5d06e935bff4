"""Tables as JSON has them: rows as records, labels as plain values."""

from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from deciban.serve.problems import Problem
from deciban.tables.cells import as_whole, is_text, plain_type
from deciban.tables.table import decoded_cells

# How cells that JSON does not have are written in it, so that they are read again as what they are.
WRITTEN: dict[type, Callable[[Any], Any]] = {
    date: date.isoformat,
    datetime: lambda cell: cell.isoformat(" "),
    time: time.isoformat,
    timedelta: timedelta.total_seconds,
    Decimal: float,
}


# Types that count nanoseconds, of which Python has no cells, and those that count microseconds.
COARSER_TYPES = {"timestamp[ns": pa.timestamp, "time64[ns": pa.time64, "duration[ns": pa.duration}


def records_of_table(table: pa.Table) -> list[dict[str, Any]]:
    """The rows of a table as records; a missing cell, NaN too, is null."""
    columns = [
        cells_of_column(column, f"rows[*].{name}")
        for name, column in zip(table.column_names, table.columns, strict=True)
    ]
    names = table.column_names
    return [dict(zip(names, cells, strict=True)) for cells in zip(*columns, strict=True)] if columns else []


def cells_of_column(column: pa.ChunkedArray, place: str) -> list[Any]:
    """The cells of a column as JSON has them; a Problem where one is infinite. place: of the column."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
    if (coarse := COARSER_TYPES.get(str(column.type).partition(",")[0].rstrip("]"))) is not None:
        column = column.cast(pa.timestamp("us", column.type.tz) if coarse is pa.timestamp else coarse("us"), safe=False)
    cells = decoded_cells(column.combine_chunks()) if is_text(plain_type(column.type)) else column.to_pylist()
    found = [WRITTEN[type(cell)](cell) if type(cell) in WRITTEN else cell for cell in cells]
    for row, cell in enumerate(found):
        if type(cell) is float and cell - cell != 0.0:  # NaN and infinity
            if cell == cell:
                remedy = "send a finite number, or leave the cell empty"
                raise Problem(422, "found an infinite number, which cannot be learned", remedy, _placed(place, row))
            found[row] = None
    return found


def labels_of_column(column: pa.ChunkedArray, place: str) -> list[Any]:
    """Labels as JSON has them; whole numbers are integers."""
    return cells_of_column(as_whole(column), place)


def _placed(place: str, row: int) -> str:
    return place.replace("[*]", f"[{row}]", 1) if "[*]" in place else f"{place}[{row}]"
