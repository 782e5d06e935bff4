"""Values of Python as Arrow's columns, for connections that give rows of them.

What a column is must not depend on the piece: it is what the cursor says of it, or else what the first rows show.
"""

import datetime as dt
import enum
import uuid
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from deciban.errors import BadCell

# Arrow's types of columns, by the classes of their cells; numbers are doubles unless a cursor says otherwise.
TYPES_OF_CLASSES: dict[type, pa.DataType] = {
    bool: pa.bool_(),
    int: pa.float64(),
    float: pa.float64(),
    Decimal: pa.float64(),
    str: pa.string(),
    uuid.UUID: pa.string(),
    enum.Enum: pa.string(),
    dt.datetime: pa.timestamp("us"),
    dt.date: pa.date32(),
    dt.time: pa.time64("us"),
    dt.timedelta: pa.duration("us"),
}

# Types of PostgreSQL, by the numbers that cursors of its drivers have for them.
TYPES_OF_OIDS: dict[int, pa.DataType] = {
    16: pa.bool_(),
    20: pa.int64(),
    21: pa.int16(),
    23: pa.int32(),
    25: pa.string(),
    700: pa.float32(),
    701: pa.float64(),
    1042: pa.string(),
    1043: pa.string(),
    1082: pa.date32(),
    1083: pa.time64("us"),
    1114: pa.timestamp("us"),
    1184: pa.timestamp("us", "UTC"),
    1700: pa.float64(),
    2950: pa.string(),
}
POSTGRES_DRIVERS = ("psycopg", "psycopg2", "pg8000")

# Whole numbers below this are doubles too, exactly.
EXACT = 2**53

UNCONVERTED = (pa.ArrowException, TypeError, ValueError, OverflowError)


def told_type(code: Any, driver: str) -> pa.DataType | None:
    """What a cursor says of a column, in the way of its driver; None where that tells nothing."""
    if driver in POSTGRES_DRIVERS and isinstance(code, int):
        return TYPES_OF_OIDS.get(code)
    if isinstance(code, type):  # as drivers of ODBC say it
        return pa.int64() if code is int else _type_of_class(code)
    return None


class Look:
    """What the cells of a column show of its type, some at a time."""

    def __init__(self) -> None:
        self._classes: set[type] = set()
        self._long = self._zoned = False

    def add(self, cells: Iterable[Any]) -> None:
        """Look at more cells."""
        for cell in cells:
            if cell is not None:
                self._classes.add(type(cell))
                self._long |= isinstance(cell, int) and not -EXACT < cell < EXACT
                self._zoned |= isinstance(cell, dt.datetime) and cell.tzinfo is not None

    @property
    def empty(self) -> bool:
        """Whether every cell was missing."""
        return not self._classes

    @property
    def called(self) -> str:
        """What the cells are, for messages."""
        return " and ".join(sorted(one.__name__ for one in self._classes))

    @property
    def type(self) -> pa.DataType | None:
        """The type that all cells have; None where they have nothing in common that could be learned."""
        if self.empty:
            return pa.null()
        if self._long and self._classes == {int}:
            return pa.int64()
        found = {_type_of_class(one) for one in self._classes}
        if found == {pa.timestamp("us"), pa.date32()}:
            found = {pa.timestamp("us")}
        if len(found) > 1:
            return None
        return pa.timestamp("us", "UTC") if self._zoned else found.pop()


def _type_of_class(one: type) -> pa.DataType | None:
    return next((TYPES_OF_CLASSES[known] for known in one.__mro__ if known in TYPES_OF_CLASSES), None)


def to_array(cells: Sequence[Any], kind: pa.DataType, any_as_text: bool = False) -> pa.Array:
    """Cells as an array of this type; a BadCell where one is of another.

    any_as_text: whatever a cell is, it is written as text.
    """
    try:
        return pa.array(cells, kind)
    except UNCONVERTED:
        _refuse_rounding(cells, kind)
        plain = [None if cell is None else _plain(cell, kind, any_as_text) for cell in cells]
    try:
        return pa.array(plain, kind)
    except UNCONVERTED:
        row, cell = next((row, cell) for row, cell in enumerate(plain) if not _fits(cell, kind))
        shown = repr(cell) if len(repr(cell)) <= 40 else repr(cell)[:37] + "..."
        raise BadCell(0, row, f"found {shown}, and the column is {kind}", "cast it in the query") from None


def _refuse_rounding(cells: Sequence[Any], kind: pa.DataType) -> None:
    """A BadCell where a whole number is none of the doubles that the column has: a code would become another one."""
    if not pa.types.is_floating(kind):
        return
    for row, cell in enumerate(cells):
        if isinstance(cell, int) and not _is_double(cell):
            problem = f"found {cell}, which no double is" if abs(cell) < 10**30 else "found a number beyond all doubles"
            raise BadCell(0, row, problem, "cast it in the query, to text if it is a code")


def _is_double(cell: int) -> bool:
    try:
        return float(cell) == cell
    except OverflowError:
        return False


def _plain(cell: Any, kind: pa.DataType, any_as_text: bool) -> Any:
    """A cell in the class that Arrow takes for the type."""
    if pa.types.is_floating(kind) and isinstance(cell, int | Decimal):
        return float(cell)
    if isinstance(cell, enum.Enum):
        return str(cell.value)
    if any_as_text or isinstance(cell, uuid.UUID):
        return str(cell)
    if pa.types.is_timestamp(kind) and type(cell) is dt.date:
        return dt.datetime(cell.year, cell.month, cell.day)
    return cell


def _fits(cell: Any, kind: pa.DataType) -> bool:
    try:
        pa.array([cell], kind)
    except UNCONVERTED:
        return False
    return True
