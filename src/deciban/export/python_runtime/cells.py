"""Decoding of the model's JSON, and conversion of the cells of a row."""

from __future__ import annotations

import base64
import math
import re
import struct
from bisect import bisect_right
from datetime import date, datetime, time, timedelta, timezone
from numbers import Integral, Real
from typing import Any, NamedTuple

# Code of the module struct and size in bytes, by the type of an array in the JSON.
_BYTE_CODES = {"f8": ("d", 8), "i4": ("i", 4), "i2": ("h", 2), "u2": ("H", 2), "u1": ("B", 1)}


def decode_number(value: float | str) -> float:
    """Return a double; "inf", "-inf" and "nan" are strings in JSON."""
    return float(value)


def decode_array(encoded: Any) -> list[Any]:
    """Return the numbers of a list or of base64, which is little-endian."""
    if isinstance(encoded, list):
        return [decode_number(value) if isinstance(value, str) else value for value in encoded]
    ((kind, text),) = encoded.items()
    data = base64.b64decode(text)
    code, size = _BYTE_CODES[kind]
    return list(struct.unpack(f"<{len(data) // size}{code}", data))


def zeros(size: int) -> list[float]:
    """Return a list of zeros."""
    return [0.0] * size


def log(value: float) -> float:
    """Return the natural logarithm; -inf for 0, NaN for negative numbers."""
    if value > 0.0:
        return math.log(value)
    return -math.inf if value == 0.0 else math.nan


def largest(values: list[float]) -> float:
    """Return the maximum; -inf for an empty list."""
    return max(values, default=-math.inf)


def add_to(out: list[float], weight: float, values: list[float]) -> None:
    """Add weight * value for each class."""
    for c, value in enumerate(values):
        out[c] += weight * value


_NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")
_INFINITE = re.compile(r"([-+]?)(inf|infinity)", re.IGNORECASE | re.ASCII)
_NOT_A_NUMBER = re.compile(r"[-+]?nan(\([a-z0-9_]*\))?", re.IGNORECASE | re.ASCII)
_LONG_INTEGER = re.compile(r"-?[1-9][0-9]{15,17}")
_MINUTES = r":([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,6}))?)?"
_ZONE = r"(Z|[-+][0-9]{2}(?::?[0-9]{2})?)"
_TIME = re.compile(f"([0-9]{{2}})(?:{_MINUTES})?")
_DATE = re.compile(f"([0-9]{{4}})-([0-9]{{2}})-([0-9]{{2}})(?:[ T]([0-9]{{2}})(?:{_MINUTES}{_ZONE}?)?)?")
_HALF_CHARACTER = re.compile("[\ud800-\udfff]")
_FLAGS = {
    **dict.fromkeys(("true", "t", "yes", "y", "1"), True),
    **dict.fromkeys(("false", "f", "no", "n", "0"), False),
}
_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)
_DAY = 86_400_000_000
_DAYS_OF_400_YEARS = 146_097
_PREFIX_LENGTHS = {"first character": 1, "first 2 characters": 2, "first 3 characters": 3}


class Moment(NamedTuple):
    """A day ("date") or a time of day ("time"), in microseconds."""

    kind: str
    micros: int


class Column(NamedTuple):
    """A column: name, kind of input, cell type, index, and levels for display."""

    name: str
    kind: str
    read_as: str
    number: int
    levels: list[Any] | None


def display_cell(value: Any) -> str:
    """Return a cell for messages, truncated if it is long."""
    text = moment_text(value) if isinstance(value, Moment) else repr(value)
    return text if len(text) <= 40 else text[:37] + "..."


def kind_of_cell(value: Any) -> str:
    """Return the type of a cell: text, number, boolean, date or time."""
    if isinstance(value, Moment):
        return value.kind
    return "text" if isinstance(value, str) else "boolean" if isinstance(value, bool) else "number"


def bad_cell(column: Column, problem: str, remedy: str) -> ValueError:
    """Return an error that names the column."""
    return ValueError(f"column {column.name!r}: {problem}; {remedy}")


def type_error(column: Column, value: Any, expected: str) -> ValueError:
    """Return an error for a cell of the wrong type."""
    problem = f"found {display_cell(value)} ({kind_of_cell(value)}), expected {expected}"
    return bad_cell(column, problem, "correct the cell, or leave it empty")


def parse_cell(column: Column, raw: Any) -> Any:
    """Return a cell as None, a number, bool, str or Moment."""
    if isinstance(raw, Real) and not isinstance(raw, (int, float)):
        raw = plain_number(raw)
    if raw is None or (isinstance(raw, float) and math.isnan(raw)):
        return None
    if isinstance(raw, str):
        return _HALF_CHARACTER.sub("\ufffd", raw)
    if isinstance(raw, (bool, float)):
        return raw
    if isinstance(raw, int):
        if not -(1 << 63) <= raw < 1 << 63:
            raise type_error(column, raw, "a number below 2**63")
        return raw
    if isinstance(raw, datetime) and raw.tzinfo is not None:
        raw = raw.astimezone(timezone.utc).replace(tzinfo=None)
    if isinstance(raw, (date, time)) and getattr(raw, "tzinfo", None) is None:
        return parse_moment(raw)
    problem = f"found a value of type {type(raw).__name__}"
    raise bad_cell(column, problem, "use a number, str, bool, None, a date, or a time without a time zone")


def plain_number(raw: Any) -> float:
    """Return a number of another library, such as NumPy, as a Python number."""
    try:
        return int(raw) if isinstance(raw, Integral) else float(raw)
    except OverflowError:
        return math.inf if raw > 0 else -math.inf


def parse_moment(raw: date | time) -> Moment:
    """Return a date, a date with a time, or a time of day."""
    if isinstance(raw, time):
        return Moment("time", ((raw.hour * 60 + raw.minute) * 60 + raw.second) * 1_000_000 + raw.microsecond)
    stamp = raw if isinstance(raw, datetime) else datetime(raw.year, raw.month, raw.day)
    return Moment("date", (stamp - _EPOCH) // _MICROSECOND)


def convert_cell(column: Column, raw: Any) -> Any:
    """Return a cell converted to the type of the column."""
    cell = parse_cell(column, raw)
    wanted = column.read_as
    if cell is None or wanted == "as it is":
        return cell
    numeric = wanted in ("number", "flag")
    if isinstance(cell, str):
        text = cell.strip()
        return _READERS[wanted](column, text, cell) if text else None
    if cell.kind == wanted if isinstance(cell, Moment) else numeric:
        return cell
    raise type_error(column, cell, "a number" if numeric else "a time" if wanted == "time" else "a date")


def read_number(column: Column, text: str, cell: str) -> float | None:
    """Return the number in a text; None for NaN."""
    if _LONG_INTEGER.fullmatch(text):
        return int(text)
    if _NUMBER.fullmatch(text):
        return float(text)
    if _NOT_A_NUMBER.fullmatch(text):
        return None
    infinite = _INFINITE.fullmatch(text)
    if infinite:
        return -math.inf if infinite.group(1) == "-" else math.inf
    raise type_error(column, cell, "a number")


def read_flag(column: Column, text: str, cell: str) -> bool:
    """Return the boolean in a text."""
    found = _FLAGS.get(text.lower())
    if found is None:
        raise type_error(column, cell, "true or false")
    return found


def read_date(column: Column, text: str, cell: str) -> Moment:
    """Return the date in a text, with or without a time; time zones are converted to UTC."""
    found = _DATE.fullmatch(text)
    try:
        if found:
            year, month, day = (int(part) for part in found.groups()[:3])
            clock = clock_micros(found.groups()[3:7]) - zone_micros(found.group(8))
            return Moment("date", parse_moment(date(year, month, day)).micros + clock)
    except ValueError:
        pass  # not a valid day or time
    raise type_error(column, cell, "a date such as 2024-12-31")


def read_time(column: Column, text: str, cell: str) -> Moment:
    """Return the time of day in a text."""
    found = _TIME.fullmatch(text)
    try:
        if found:
            return Moment("time", clock_micros(found.groups()))
    except ValueError:
        pass
    raise type_error(column, cell, "a time such as 23:59")


_READERS: dict[str, Any] = {"number": read_number, "flag": read_flag, "date": read_date, "time": read_time}


def clock_micros(parts: tuple[Any, ...]) -> int:
    """Return the microseconds of hours, minutes, seconds and fraction (any may be None), or raise a ValueError."""
    hours, minutes, seconds = (int(part or 0) for part in parts[:3])
    return parse_moment(time(hours, minutes, seconds, int((parts[3] or "").ljust(6, "0")))).micros


def zone_micros(zone: str | None) -> int:
    """Return the offset of a zone (Z, +02, +0200 or +02:00) from UTC, or raise a ValueError."""
    if zone is None or zone == "Z":
        return 0
    digits = zone[1:].replace(":", "")
    ahead = clock_micros((digits[:2], digits[2:], None, None))
    return -ahead if zone[0] == "-" else ahead


def moment_text(moment: Moment) -> str:
    """Return a date or time as text."""
    try:
        stamp = _EPOCH + moment.micros * _MICROSECOND
    except OverflowError:  # beyond the years that Python supports
        return str(moment.micros)
    text = stamp.isoformat(" ")
    text = text.rstrip("0") if "." in text else text
    if moment.kind == "time":
        return text[11:]
    return text[:10] if moment.micros % _DAY == 0 else text


class LevelPlace:
    """Place of a cell or its part among levels: 0 if missing, 1 if unknown, else 2 + the index of the level."""

    def __init__(self, column: Column, kind: str, encoded: list[Any], part: str | None) -> None:
        self.column, self.kind, self.size, self.part = column, kind, 2 + len(encoded), part
        self.wanted = "number" if kind in ("integer", "flag") else kind
        if part is not None and kind != "text":
            self.wanted = "date"
        self.places: dict[Any, int] = {}
        self.exact: dict[int, int] = {}
        for place, value in enumerate(encoded, 2):
            self.places.setdefault(level_key(kind, value), place)
            if kind == "integer":
                self.exact[int(value)] = place

    def of(self, row: Row) -> int:
        """Return the place of the cell of a row."""
        cell = row.cell(self.column)
        if cell is None:
            return 0
        if self.kind == "none":
            return 1
        kind = "number" if isinstance(cell, (bool, int, float)) else kind_of_cell(cell)
        if kind != self.wanted:
            raise bad_cell(self.column, f"found {kind}, expected {self.wanted}", "use one type for this column")
        if self.part is not None:
            cell = read_part(cell, self.part)
        if self.kind == "integer" and isinstance(cell, int):
            return self.exact.get(cell, 1)
        return self.places.get(cell_key(cell), 1)

    def display(self, row: Row) -> tuple[Any, str]:
        """Return the cell of a row, and its text in messages."""
        cell = parse_cell(self.column, row.raw[self.column.number])
        return cell, display_cell(cell)


def read_part(cell: Any, part: str) -> Any:
    """Return a part of a date or of a text."""
    if isinstance(cell, str):
        words = cell.split(" ", 1)
        return words[0] if part == "first word" else cell[: _PREFIX_LENGTHS[part]]
    days, micros = divmod(cell.micros, _DAY)
    if part == "hour":
        return micros * 24 // _DAY
    if part == "weekday":
        return (days + 3) % 7 + 1
    return (_EPOCH + timedelta(days=days % _DAYS_OF_400_YEARS)).month


class CutPlace:
    """Place of a number between cuts: 0 if missing, else 1 + the number of cuts not above it."""

    def __init__(self, column: Column, cuts: list[float]) -> None:
        self.column, self.cuts, self.size = column, cuts, 2 + len(cuts)

    def of(self, row: Row) -> int:
        """Return the place of the number of a row."""
        x = row.number(self.column)
        return 0 if math.isnan(x) else 1 + bisect_right(self.cuts, x)

    def display(self, row: Row) -> tuple[Any, str]:
        """Return the number of a row, and its text in messages."""
        x = row.number(self.column)
        return x, display_cell(x)


class Row:
    """Cells of a row, each converted once, on first use."""

    def __init__(self, raw: list[Any], places: list[LevelPlace | CutPlace]) -> None:
        self.raw, self._all_places = raw, places
        self._cells: dict[int, Any] = {}
        self._numbers: dict[int, float] = {}
        self._places: dict[int, int] = {}

    def cell(self, column: Column) -> Any:
        """Return a cell in the type of the column; None if it is missing."""
        if column.number not in self._cells:
            self._cells[column.number] = convert_cell(column, self.raw[column.number])
        return self._cells[column.number]

    def number(self, column: Column) -> float:
        """Return a cell as a double; NaN if it is missing."""
        found = self._numbers.get(column.number)
        if found is None:
            found = self._numbers[column.number] = number_of(column, self.cell(column))
        return found

    def text(self, column: Column) -> str | None:
        """Return a cell as a text; None if it is missing."""
        cell = self.cell(column)
        if cell is not None and not isinstance(cell, str):
            raise type_error(column, cell, "text")
        return cell

    def place(self, number: int) -> int:
        """Return the place with this index in the model."""
        found = self._places.get(number)
        if found is None:
            found = self._places[number] = self._all_places[number].of(self)
        return found


def number_of(column: Column, cell: Any) -> float:
    """Return a cell as a double."""
    if cell is None:
        return math.nan
    if isinstance(cell, str):
        raise type_error(column, cell, "a number")
    if isinstance(cell, Moment):
        return float(cell.micros) / (1e6 if cell.kind == "time" else 86400e6)
    return float(cell)


def level_key(kind: str, value: Any) -> Any:
    """Return the dict key of a level."""
    if kind == "text":
        return value
    return int(value) if kind in ("date", "time") else float(value)


def cell_key(cell: Any) -> Any:
    """Return the dict key of the level of a cell."""
    if isinstance(cell, str):
        return cell
    return cell.micros if isinstance(cell, Moment) else float(cell)


def display_level(kind: str, value: Any) -> Any:
    """Return a level for display."""
    if kind in ("date", "time"):
        return moment_text(Moment(kind, int(value)))
    if kind == "integer":
        return int(value)
    return decode_number(value) if kind == "number" else value
