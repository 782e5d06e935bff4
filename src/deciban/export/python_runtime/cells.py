"""Numbers and arrays of the model's JSON, and the cells of a row as the model has learned to read them."""

from __future__ import annotations

import base64
import math
import re
import struct
from bisect import bisect_right
from datetime import date, datetime, time, timedelta, timezone
from numbers import Integral, Real
from typing import Any, NamedTuple

# What the bytes of an array are, by its name in the JSON, to the module struct.
_BYTE_CODES = {"f8": ("d", 8), "i4": ("i", 4), "u2": ("H", 2), "u1": ("B", 1)}


def decoded_number(value: float | str) -> float:
    """A double; those that JSON does not have are the texts "inf", "-inf" and "nan"."""
    return float(value)


def decoded_array(encoded: Any) -> list[Any]:
    """The numbers of a list or of base64, little-endian whatever the machine is."""
    if isinstance(encoded, list):
        return [decoded_number(value) if isinstance(value, str) else value for value in encoded]
    ((kind, text),) = encoded.items()
    data = base64.b64decode(text)
    code, size = _BYTE_CODES[kind]
    return list(struct.unpack(f"<{len(data) // size}{code}", data))


def decoded_fixed(encoded: Any) -> list[Any]:
    """Fixed-point numbers of a few bytes each, or doubles."""
    if not isinstance(encoded, dict) or "places" not in encoded:
        return decoded_array(encoded)
    low, step, size = float(encoded["low"]), float(encoded["step"]), encoded["size"]
    parts = bytes(decoded_array(encoded["places"]))
    starts = range(0, len(parts), size)
    return [low + step * int.from_bytes(parts[start : start + size], "little") for start in starts]


def zeros(size: int) -> list[float]:
    """So many zeros."""
    return [0.0] * size


def log(value: float) -> float:
    """The natural logarithm; of 0 it is -inf, of what has none NaN."""
    if value > 0.0:
        return math.log(value)
    return -math.inf if value == 0.0 else math.nan


def largest(values: list[float]) -> float:
    """The largest number, -inf of none."""
    return max(values, default=-math.inf)


def add_to(out: list[float], weight: float, values: list[float]) -> None:
    """Add weight * value of each class."""
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


class Moment(NamedTuple):
    """A day ("date") or a time of day ("time"), in microseconds."""

    kind: str
    micros: int


class Column(NamedTuple):
    """A column: its name, what users enter, how its cells are read, its number, and its levels as users see them."""

    name: str
    kind: str
    read_as: str
    number: int
    levels: list[Any] | None


def shown(value: Any) -> str:
    """A cell as messages show it, cut where it is long."""
    text = moment_text(value) if isinstance(value, Moment) else repr(value)
    return text if len(text) <= 40 else text[:37] + "..."


def kind_of_cell(value: Any) -> str:
    """What a cell is: text, number, boolean, date or time."""
    if isinstance(value, Moment):
        return value.kind
    return "text" if isinstance(value, str) else "boolean" if isinstance(value, bool) else "number"


def bad_cell(column: Column, problem: str, remedy: str) -> ValueError:
    """An error that names the column."""
    return ValueError(f"column {column.name!r}: {problem}; {remedy}")


def unexpected(column: Column, value: Any, expected: str) -> ValueError:
    """An error for a cell that is not what the column holds."""
    problem = f"found {shown(value)} ({kind_of_cell(value)}), expected {expected}"
    return bad_cell(column, problem, "correct the cell, or leave it empty")


def given_cell(column: Column, raw: Any) -> Any:
    """What was given as a cell of a known kind: None, a number, bool, str or Moment."""
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
            raise unexpected(column, raw, "a number below 2**63")
        return raw
    if isinstance(raw, datetime) and raw.tzinfo is not None:
        raw = raw.astimezone(timezone.utc).replace(tzinfo=None)
    if isinstance(raw, (date, time)) and getattr(raw, "tzinfo", None) is None:
        return given_moment(raw)
    problem = f"found a value of type {type(raw).__name__}"
    raise bad_cell(column, problem, "give a number, a text, True, False, None, a date, or a time without a time zone")


def plain_number(raw: Any) -> float:
    """A number of another library, such as NumPy, as one of Python."""
    try:
        return int(raw) if isinstance(raw, Integral) else float(raw)
    except OverflowError:
        return math.inf if raw > 0 else -math.inf


def given_moment(raw: date | time) -> Moment:
    """A date, a date with a time, or a time of day."""
    if isinstance(raw, time):
        return Moment("time", ((raw.hour * 60 + raw.minute) * 60 + raw.second) * 1_000_000 + raw.microsecond)
    stamp = raw if isinstance(raw, datetime) else datetime(raw.year, raw.month, raw.day)
    return Moment("date", (stamp - _EPOCH) // _MICROSECOND)


def learned_cell(column: Column, raw: Any) -> Any:
    """A cell as the column has learned to read it."""
    cell = given_cell(column, raw)
    wanted = column.read_as
    if cell is None or wanted == "as it is":
        return cell
    numeric = wanted in ("number", "flag")
    if isinstance(cell, str):
        text = cell.strip()
        return _READERS[wanted](column, text, cell) if text else None
    if cell.kind == wanted if isinstance(cell, Moment) else numeric:
        return cell
    raise unexpected(column, cell, "a number" if numeric else "a time" if wanted == "time" else "a date")


def read_number(column: Column, text: str, cell: str) -> float | None:
    """A number in a text; None where that says NaN."""
    if _LONG_INTEGER.fullmatch(text):
        return int(text)
    if _NUMBER.fullmatch(text):
        return float(text)
    if _NOT_A_NUMBER.fullmatch(text):
        return None
    infinite = _INFINITE.fullmatch(text)
    if infinite:
        return -math.inf if infinite.group(1) == "-" else math.inf
    raise unexpected(column, cell, "a number")


def read_flag(column: Column, text: str, cell: str) -> bool:
    """True or False in a text."""
    found = _FLAGS.get(text.lower())
    if found is None:
        raise unexpected(column, cell, "true or false")
    return found


def read_date(column: Column, text: str, cell: str) -> Moment:
    """A date in a text, or a date with a time; one with a time zone is taken to UTC."""
    found = _DATE.fullmatch(text)
    try:
        if found:
            year, month, day = (int(part) for part in found.groups()[:3])
            clock = clock_micros(found.groups()[3:7]) - zone_micros(found.group(8))
            return Moment("date", given_moment(date(year, month, day)).micros + clock)
    except ValueError:
        pass  # a day or a time that there is not
    raise unexpected(column, cell, "a date such as 2024-12-31")


def read_time(column: Column, text: str, cell: str) -> Moment:
    """A time of day in a text."""
    found = _TIME.fullmatch(text)
    try:
        if found:
            return Moment("time", clock_micros(found.groups()))
    except ValueError:
        pass
    raise unexpected(column, cell, "a time such as 23:59")


_READERS: dict[str, Any] = {"number": read_number, "flag": read_flag, "date": read_date, "time": read_time}


def clock_micros(parts: tuple[Any, ...]) -> int:
    """Microseconds of hours, minutes, seconds and their fraction, of which any may be None; else a ValueError."""
    hours, minutes, seconds = (int(part or 0) for part in parts[:3])
    return given_moment(time(hours, minutes, seconds, int((parts[3] or "").ljust(6, "0")))).micros


def zone_micros(zone: str | None) -> int:
    """By how much the time in a zone (Z, +02, +0200 or +02:00) is ahead of UTC; a ValueError where there is none."""
    if zone is None or zone == "Z":
        return 0
    digits = zone[1:].replace(":", "")
    ahead = clock_micros((digits[:2], digits[2:], None, None))
    return -ahead if zone[0] == "-" else ahead


def moment_text(moment: Moment) -> str:
    """A date or a time as people write it."""
    try:
        stamp = _EPOCH + moment.micros * _MICROSECOND
    except OverflowError:  # beyond the years that Python has
        return str(moment.micros)
    text = stamp.isoformat(" ")
    text = text.rstrip("0") if "." in text else text
    if moment.kind == "time":
        return text[11:]
    return text[:10] if moment.micros % _DAY == 0 else text


class LevelPlace:
    """From a cell to its place among levels: 0 if it is missing, 1 if it is not one of them, else 2 + its number."""

    def __init__(self, column: Column, kind: str, encoded: list[Any]) -> None:
        self.column, self.kind = column, kind
        self.wanted = "number" if kind in ("integer", "flag") else kind
        self.places: dict[Any, int] = {}
        self.exact: dict[int, int] = {}
        for place, value in enumerate(encoded, 2):
            self.places.setdefault(level_key(kind, value), place)
            if kind == "integer":
                self.exact[int(value)] = place

    def of(self, row: Row) -> int:
        """The place of the cell of a row."""
        cell = row.cell(self.column)
        if cell is None:
            return 0
        if self.kind == "none":
            return 1
        kind = "number" if isinstance(cell, (bool, int, float)) else kind_of_cell(cell)
        if kind != self.wanted:
            raise bad_cell(self.column, f"found {kind}, expected {self.wanted}", "use one type for this column")
        if self.kind == "integer" and isinstance(cell, int):
            return self.exact.get(cell, 1)
        return self.places.get(cell_key(cell), 1)

    def shown(self, row: Row) -> tuple[Any, str]:
        """The cell of a row, and how messages show it."""
        cell = given_cell(self.column, row.raw[self.column.number])
        return cell, shown(cell)


class CutPlace:
    """From a number to its place between cuts: 0 if it is missing, else 1 + how many of them do not lie above."""

    def __init__(self, column: Column, cuts: list[float]) -> None:
        self.column, self.cuts = column, cuts

    def of(self, row: Row) -> int:
        """The place of the number of a row."""
        x = row.number(self.column)
        return 0 if math.isnan(x) else 1 + bisect_right(self.cuts, x)

    def shown(self, row: Row) -> tuple[Any, str]:
        """The number of a row, and how messages show it."""
        x = row.number(self.column)
        return x, shown(x)


class Row:
    """The cells of a row, each read once, and only if it is needed."""

    def __init__(self, raw: list[Any], places: list[LevelPlace | CutPlace]) -> None:
        self.raw, self._all_places = raw, places
        self._cells: dict[int, Any] = {}
        self._numbers: dict[int, float] = {}
        self._places: dict[int, int] = {}

    def cell(self, column: Column) -> Any:
        """A cell as the column has learned to read it; None if it is missing."""
        if column.number not in self._cells:
            self._cells[column.number] = learned_cell(column, self.raw[column.number])
        return self._cells[column.number]

    def number(self, column: Column) -> float:
        """A cell as a double, NaN if it is missing."""
        found = self._numbers.get(column.number)
        if found is None:
            found = self._numbers[column.number] = number_of(column, self.cell(column))
        return found

    def text(self, column: Column) -> str | None:
        """A cell as a text, None if it is missing."""
        cell = self.cell(column)
        if cell is not None and not isinstance(cell, str):
            raise unexpected(column, cell, "text")
        return cell

    def place(self, number: int) -> int:
        """The place of this number among those of the model."""
        found = self._places.get(number)
        if found is None:
            found = self._places[number] = self._all_places[number].of(self)
        return found


def number_of(column: Column, cell: Any) -> float:
    """A cell as a double."""
    if cell is None:
        return math.nan
    if isinstance(cell, str):
        raise unexpected(column, cell, "a number")
    if isinstance(cell, Moment):
        return float(cell.micros) / (1e6 if cell.kind == "time" else 86400e6)
    return float(cell)


def level_key(kind: str, value: Any) -> Any:
    """The key of a level in a dict."""
    if kind == "text":
        return value
    return int(value) if kind in ("date", "time") else float(value)


def cell_key(cell: Any) -> Any:
    """The key of the level of a cell."""
    if isinstance(cell, str):
        return cell
    return cell.micros if isinstance(cell, Moment) else float(cell)


def shown_level(kind: str, value: Any) -> Any:
    """A level as users see it."""
    if kind in ("date", "time"):
        return moment_text(Moment(kind, int(value)))
    if kind == "integer":
        return int(value)
    return decoded_number(value) if kind == "number" else value
