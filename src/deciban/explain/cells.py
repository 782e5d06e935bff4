"""The cells of a row as people write them, and for programs."""

from typing import Any

import numpy as np
import pyarrow as pa

from deciban.tables.cells import is_text
from deciban.tables.table import Table, decoded_cells
from deciban.util.text_tables import as_written, shortened, whole

# Characters of a cell that are shown.
MOST_CELL = 40


def values_of_row(row: Table) -> list[Any]:
    """The values of a table of one row, None where one is missing; short floats with the digits that they have."""
    cells = row.values(range(row.width))
    if isinstance(cells, list):
        values = [_value(column) for column in cells]
    elif cells.dtype == np.float32:
        values = [float(str(value)) for value in cells[0]]
    else:
        values = cells[0].tolist()
    return [None if value is None or value != value else value for value in values]


def _value(column: pa.Array) -> Any:
    if is_text(column.type):
        return decoded_cells(column)[0]
    value = column[0].as_py()
    short = value is not None and (pa.types.is_float16(column.type) or pa.types.is_float32(column.type))
    return float(str(np.float32(value))) if short else value


def plain_cell(value: Any) -> Any:
    """A cell for programs: a whole number is one, whatever it is counted as."""
    return whole(value) if isinstance(value, float) else value


def written_cell(value: Any) -> str:
    """A cell as people write it."""
    if value is None:
        return "missing"
    return as_written(value) if isinstance(value, float) else shortened(str(value).replace("\n", "\\n"), MOST_CELL)


def form_cell(value: Any) -> Any:
    """A cell as it would be entered in a form: a number, a text, true or false, or nothing; dates are text."""
    plain = plain_cell(value)
    return plain if plain is None or isinstance(plain, bool | int | float | str) else str(plain)
