"""Conversion between JSON rows (objects, or lists for a model without column names) and tables."""

from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import cached_property
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa

from deciban.errors import BadCell, DecibanError, render_message
from deciban.schema.schema import NO_TYPE, Schema
from deciban.serve.bodies.checks import CELL_REMEDIES, JSON_KINDS, Record, check_cell_types
from deciban.serve.problems import Problem, RowPlace, cell_place, to_problem
from deciban.tables.cells import as_learned, as_numbers, as_whole, fits, is_text, kind_of, plain_type
from deciban.tables.table import Frame, decode_cells
from deciban.util.arrays import Floats

# Encoders for cells without a JSON type, into text that is read back to the same value.
JSON_ENCODERS: dict[type, Callable[[Any], Any]] = {
    date: date.isoformat,
    datetime: lambda cell: cell.isoformat(" "),
    time: time.isoformat,
    timedelta: timedelta.total_seconds,
    Decimal: float,
}


# Types with nanoseconds, which Python cannot represent, and constructors of their microsecond types.
COARSER_TYPES = {"timestamp[ns": pa.timestamp, "time64[ns": pa.time64, "duration[ns": pa.duration}


def table_to_records(table: pa.Table) -> list[dict[str, Any]]:
    """Return the rows of a table as records; missing cells and NaN become null."""
    columns = [
        column_to_cells(column, f"rows[*].{name}")
        for name, column in zip(table.column_names, table.columns, strict=True)
    ]
    names = table.column_names
    return [dict(zip(names, cells, strict=True)) for cells in zip(*columns, strict=True)] if columns else []


def column_to_cells(column: pa.ChunkedArray, place: str) -> list[Any]:
    """Return the cells of a column as JSON values; raise a Problem for infinity. place: of the column."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
    if (coarse := COARSER_TYPES.get(str(column.type).partition(",")[0].rstrip("]"))) is not None:
        column = column.cast(pa.timestamp("us", column.type.tz) if coarse is pa.timestamp else coarse("us"), safe=False)
    cells = decode_cells(column.combine_chunks()) if is_text(plain_type(column.type)) else column.to_pylist()
    found = [JSON_ENCODERS[type(cell)](cell) if type(cell) in JSON_ENCODERS else cell for cell in cells]
    for row, cell in enumerate(found):
        if type(cell) is float and cell - cell != 0.0:  # NaN and infinity
            if cell == cell:
                remedy = "send a finite number, or an empty cell"
                raise Problem(422, "found an infinite number", remedy, _label_cell(place, row))
            found[row] = None
    return found


def column_to_labels(column: pa.ChunkedArray, place: str) -> list[Any]:
    """Return labels as JSON values; whole numbers become integers."""
    return column_to_cells(as_whole(column), place)


def _label_cell(place: str, row: int) -> str:
    return place.replace("[*]", f"[{row}]", 1) if "[*]" in place else f"{place}[{row}]"


# Cells of a column: a tuple of Python numbers or None, or an Arrow array.
Cells = tuple[Any, ...] | Any

# Types of cells that are used unchanged in a numeric column.
NUMBER_TYPES = frozenset((int, float, type(None)))
FLAG_TYPES = frozenset((bool, type(None)))
FLAG_CELLS = (None, 0, 1)
NESTED_TYPES = frozenset((dict, list))
NUMERIC_KINDS = ("DOUBLE", "BOOLEAN")

# Type of all columns of a model that was fitted on a matrix.
MATRIX_TYPE = "double"


class RecordFrame(Frame):
    """Table whose numbers stay Python objects until they are needed as Arrow arrays.

    whole: True if every record has a cell, possibly null, for each column. Most families read numbers as one matrix,
    which is built from all columns at once.
    """

    def __init__(self, names: tuple[str, ...], cells: list[Cells], rows: int, named: bool, whole: bool = False) -> None:
        own = vars(self)  # the fields are frozen
        own["named"], own["whole"] = named, whole
        own["_names"], own["_cells"], own["_rows"] = names, cells, rows
        own["_arrays"] = {}

    whole: bool
    _names: tuple[str, ...]
    _cells: list[Cells]
    _rows: int
    _arrays: dict[int, pa.Array]

    @cached_property
    def _numbers(self) -> Floats:
        """Numbers of all plain columns, column by row; NaN in other columns."""
        nothing = (None,) * self._rows
        plain = [cells if type(cells) is tuple else nothing for cells in self._cells]
        return np.array(plain, dtype=np.float64).reshape(len(plain), self._rows)

    @cached_property
    def _others(self) -> dict[int, Floats]:
        """Cached numbers of other columns, such as dates."""
        return {}

    @cached_property
    def table(self) -> pa.Table:
        """Columns as an Arrow table."""
        return pa.table([self._array(column) for column in range(len(self._cells))], names=list(self._names))

    @property
    def names(self) -> tuple[str, ...] | None:
        return self._names if self.named else None

    @property
    def width(self) -> int:
        return len(self._cells)

    @property
    def rows(self) -> int:
        return self._rows

    @property
    def text_bytes(self) -> int:
        arrays = [cells for cells in self._cells if not isinstance(cells, tuple)]
        return sum(array.nbytes for array in arrays if is_text(array.type))

    def slice(self, start: int, stop: int) -> "RecordFrame":
        cells = [column[start:stop] for column in self._cells]
        return RecordFrame(self._names, cells, min(stop, self._rows) - start, self.named)

    def numbers(self, columns: Sequence[int]) -> Floats:
        found = self._numbers[list(columns)]
        for k, column in enumerate(columns):
            cells = self._cells[column]
            if type(cells) is not tuple:
                if column not in self._others:
                    self._others[column] = as_numbers(cells, k)
                found[k] = self._others[column]
        return np.ascontiguousarray(found.T)

    def _array(self, column: int) -> pa.Array:
        cells = self._cells[column]
        if type(cells) is not tuple:
            return cells
        if column not in self._arrays:
            self._arrays[column] = pa.array(cells)
        return self._arrays[column]


def records_to_table(schema: Schema, records: Sequence[Record], strict: bool = False) -> Frame:
    """Return the columns of the model in order, with its types; raise a Problem that names an invalid cell.

    strict: do not read text as a number, as in requests.
    """
    names, named = schema.column_names, schema.names is not None
    columns, whole, types = _columns_of(schema, records)
    try:
        parts = zip(names, columns, types, strict=True)
        cells = [_cells(name, column, learned, named, strict) for name, column, learned in parts]
    except DecibanError as error:
        raise to_problem(error) from None
    return RecordFrame(names, cells, len(records), named, whole)


def check_record_types(schema: Schema, records: Sequence[Record]) -> None:
    """Raise a Problem that names the first cell whose type differs from that of its column."""
    columns, _, types = _columns_of(schema, records)
    for name, cells, learned in zip(schema.column_names, columns, types, strict=True):
        check_cell_types(name, cells, learned, schema.names is not None, set(map(type, cells)))


def _columns_of(schema: Schema, records: Sequence[Record]) -> tuple[Sequence[tuple[Any, ...]], bool, Sequence[str]]:
    """Return the cells of each column, whether each record has all of them, and the types of the columns."""
    names, named = schema.column_names, schema.names is not None
    columns, whole = _columns_by_name(records, names) if named else (_columns_by_position(records, len(names)), True)
    return columns, whole, schema.types or (MATRIX_TYPE,) * len(names)


def _columns_by_name(records: Sequence[Record], names: Sequence[str]) -> tuple[Sequence[tuple[Any, ...]], bool]:
    """Return the cells of each column, and whether every record has all of them."""
    if len(names) > 1 and records:
        try:
            return list(zip(*map(itemgetter(*names), records), strict=True)), True
        except (KeyError, TypeError, IndexError):  # some are missing, or a row is not an object
            pass
    for row, record in enumerate(records):
        if type(record) is not dict:
            found = JSON_KINDS.get(type(record), "null")
            raise Problem(422, f"expected an object, found {found}", "send {column: value, ...}", RowPlace(row))
    found_cells = [tuple([record.get(name) for record in records]) for name in names]  # type: ignore[union-attr]
    return found_cells, False


def _columns_by_position(records: Sequence[Record], width: int) -> Sequence[tuple[Any, ...]]:
    for row, record in enumerate(records):
        if type(record) is not list:
            found = JSON_KINDS.get(type(record), "null")
            remedy = f"the columns of this model have no names: send {width} cells in order"
            raise Problem(422, f"expected a list, found {found}", remedy, RowPlace(row))
        if len(record) != width:
            remedy = f"send {width} cells, with null for missing values"
            raise Problem(422, f"expected {width} cells, found {len(record)}", remedy, RowPlace(row))
    return list(zip(*records, strict=True)) if records else [()] * width


def _cells(name: str, cells: tuple[Any, ...], learned: str, named: bool, strict: bool) -> Cells:
    """Return the cells of a column in its type; raise a Problem or DataError that names the first invalid one."""
    kinds = set(map(type, cells))
    if kinds & NESTED_TYPES:
        raise _unreadable(name, cells, named)
    if strict:
        check_cell_types(name, cells, learned, named, kinds)
    if kind_of(learned) == "BOOLEAN" and not kinds <= FLAG_TYPES and all(cell in FLAG_CELLS for cell in cells):
        cells, kinds = tuple([None if cell is None else bool(cell) for cell in cells]), {bool}
    if (kinds <= NUMBER_TYPES or kinds <= FLAG_TYPES) and (learned == NO_TYPE or kind_of(learned) in NUMERIC_KINDS):
        if int in kinds and any(type(cell) is int and not -(1 << 63) <= cell < 1 << 63 for cell in cells):
            return _doubles(name, cells, named)
        return cells
    array = _array(name, cells, named)
    kind = str(array.type)
    if fits(kind, learned):
        return array
    try:
        found = as_learned(pa.chunked_array([array]), kind, learned)
    except BadCell as bad:
        if (remedy := CELL_REMEDIES.get(kind_of(learned))) is None:
            raise bad.as_error(name) from None
        raise Problem(422, render_message(bad.cause), remedy, cell_place(bad.row or 0, name, named)) from None
    return found.chunk(0) if found.num_chunks == 1 else found.combine_chunks()


def _doubles(name: str, cells: tuple[Any, ...], named: bool) -> tuple[Any, ...]:
    """Return numbers as floats, if some are integers beyond 64 bits."""
    try:
        return tuple([None if cell is None else float(cell) for cell in cells])
    except OverflowError:
        raise _unreadable(name, cells, named) from None


def _array(name: str, cells: tuple[Any, ...], named: bool) -> pa.Array:
    """Return the cells of a column; raise a Problem that names the first cell of another type."""
    try:
        array = pa.array(cells)
    except (pa.ArrowException, OverflowError, UnicodeError):
        raise _unreadable(name, cells, named) from None
    return array


def _unreadable(name: str, cells: tuple[Any, ...], named: bool) -> Problem:
    expected = None
    for row, cell in enumerate(cells):
        kind = JSON_KINDS.get(type(cell))
        if kind in ("an object", "a list"):
            remedy = "send a number, text, true, false or null"
            return Problem(422, f"expected a single value, found {kind}", remedy, cell_place(row, name, named))
        if kind is not None and expected is not None and kind != expected:
            remedy = "send values of one type per column"
            return Problem(
                422, f"expected {expected}, as in the rows before, found {kind}", remedy, cell_place(row, name, named)
            )
        expected = kind or expected
    first = next((row for row, cell in enumerate(cells) if type(cell) is int and abs(cell) >= 1 << 1_023), "*")
    return Problem(422, "number out of range", "send a smaller number, or text", cell_place(first, name, named))
