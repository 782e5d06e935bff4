"""Cells of Arrow columns that nothing else can hold: dates after the year 9999, unknown zones, null in dictionaries."""

import re
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc

from deciban.serve.bodies.cell_kinds import place_of
from deciban.serve.problems import Problem

# The seconds of the years 1 to 9999, and those that a duration may have; a zone moves a time by a day at most.
FIRST_SECOND, LAST_SECOND, DAY_SECONDS = -62_135_596_800, 253_402_300_799, 86_400
LONGEST_DURATION = 9_000_000_000_000

UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
MOST_TICKS = (1 << 63) - 1

# A zone that is a distance from universal time.
DISTANCE = re.compile(r"[+-](0\d|1\d|2[0-3]):?[0-5]\d")


def refuse_wrong_cells(name: str, column: pa.ChunkedArray) -> None:
    """A Problem that names the first cell of a column that cannot be read."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        for chunk in column.chunks:
            if chunk.dictionary.null_count:
                remedy = "mark missing cells in the indices"
                raise Problem(422, "the dictionary of the column holds null", remedy, place_of("*", name))
            _refuse_far(name, pa.chunked_array([chunk.dictionary]), in_dictionary=True)
    else:
        _refuse_far(name, column)


def _refuse_far(name: str, cells: pa.ChunkedArray, in_dictionary: bool = False) -> None:
    """A Problem where a date, a time or a duration is beyond what can be reckoned with, or its zone is not known."""
    kind = cells.type
    if pa.types.is_timestamp(kind) and kind.tz is not None and not _is_zone(kind.tz):
        cause = f"the time zone {kind.tz[:40]!r} is not known"
        raise Problem(422, cause, "send times in UTC, or in a zone of the tz database", place_of("*", name))
    bounds = _bounds(kind)
    if bounds is None:
        return
    least, most, what = bounds
    ticks = cells.cast(pa.int32()) if pa.types.is_date32(kind) else cells
    numbers = ticks.cast(pa.int64())
    outside = pc.or_(pc.less(numbers, least), pc.greater(numbers, most))
    if pc.any(outside).as_py():
        row = "*" if in_dictionary else pc.index(outside, True).as_py()
        raise Problem(422, what, "correct the cell, or leave it empty", place_of(row, name))


def _bounds(kind: pa.DataType) -> tuple[int, int, str] | None:
    """The least and the largest number that a cell may have inside, and what is said of others."""
    far = "found a date outside of the years 1 to 9999"
    if pa.types.is_date32(kind):
        return FIRST_SECOND // DAY_SECONDS, LAST_SECOND // DAY_SECONDS, far
    if pa.types.is_date64(kind):
        return FIRST_SECOND * 1_000, LAST_SECOND * 1_000, far
    if pa.types.is_timestamp(kind):
        unit, margin = UNITS[kind.unit], 0 if kind.tz is None else DAY_SECONDS
        first, last = (FIRST_SECOND + margin) * unit, (LAST_SECOND + 1 - margin) * unit - 1
        end = MOST_TICKS - margin * unit
        return max(first, -end), min(last, end), far
    if pa.types.is_duration(kind):
        most = min(LONGEST_DURATION * UNITS[kind.unit], MOST_TICKS)
        return -most, most, f"found a duration of more than {LONGEST_DURATION:,} seconds"
    return None


def _is_zone(name: str) -> bool:
    if DISTANCE.fullmatch(name):
        return True
    try:
        ZoneInfo(name)
    except (ValueError, OSError, KeyError):  # it is none, or the path of something else
        return False
    return True
