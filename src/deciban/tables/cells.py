"""Cells of a column: their types, text converted to values, and values converted to numbers.

Types have the names of DuckDB and Arrow. `CellFormat` converts text: numbers and dates, also between words for missing
cells and in other formats. Dates and times become numbers that count from an origin.
"""

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deciban.errors import Argument, BadCell
from deciban.util.arrays import Floats
from deciban.util.arrow_values import as_doubles, as_values

# Type names in the public API, and DuckDB's names for them.
TYPES = {"text": "VARCHAR", "number": "DOUBLE", "bool": "BOOLEAN", "date": "TIMESTAMP", "time": "TIME"}

NUMBER_PATTERN = r"^\s*[-+]?(\d+POINT?\d*|POINT\d+)([eE][-+]?\d+)?\s*$|^\s*[-+]?(?i:inf|infinity|nan)\s*$"

PATTERNS = {
    "BOOLEAN": r"^(?i:true|false)$",
    "TIMESTAMP": r"^\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d+)?)?)?$",
    "TIMESTAMPTZ": r"^\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d(:?\d\d)?)$",
    "TIME": r"^\d\d:\d\d(:\d\d(\.\d+)?)?$",
}


# Cells that are checked first: most columns of text are recognized by them.
SEVERAL = 100

LEADING_ZERO = r"^\s*[-+]?0\d"

LONG_INTEGER = r"^\s*[-+]?\d{16,18}\s*$"

# Words, in lower case, that stand for a missing cell among numbers or dates.
MARKERS = (
    *("n/a", "na", "n.a.", "n.a", "#n/a", "#na", "<na>", "nan", "#nan", "null", "(null)", "#null!", "nil", "none"),
    *("missing", "unknown", "not available", "#value!", "#div/0!", "#ref!"),
    *("?", "??", "-", "--", "\u2013", "\u2014", ".", "..", "\u2026"),
)


# Between several formats of dates.
FORMAT_SEPARATOR = "|"

# Format of dates that are written as integers, such as 20241031.
COMPACT_DATE = "%Y%m%d"

# Arrow's types for DuckDB's types. A time is parsed as a timestamp on a fixed day.
ARROW = {
    "DOUBLE": pa.float64(),
    "BIGINT": pa.int64(),
    "BOOLEAN": pa.bool_(),
    "TIMESTAMP": pa.timestamp("us"),
    "TIMESTAMPTZ": pa.timestamp("us", "UTC"),
    "TIME": pa.timestamp("us"),
}


EXPECTED_CELLS = {"DOUBLE": "a number", "BIGINT": "a whole number", "BOOLEAN": "true or false", "TIME": "a time"}

# Words that DuckDB reads as true and false.
FLAG_WORDS = {"t": "true", "yes": "true", "y": "true", "f": "false", "no": "false", "n": "false"}

# Types that columns of these types also accept: true and false are 1 and 0.
TAKEN_AS_WELL = {"DOUBLE": ("BOOLEAN",), "BOOLEAN": ("DOUBLE",)}

# Origins of the numbers for dates and times, as shown in messages and in the schema.
DATE_ORIGIN = "days since 1970-01-01"

TIME_ORIGIN = "seconds since midnight"

# The largest double that fits into 64 bits.
MAX_INTEGER = 2.0**63 - 1024.0

# First and last day of the years 1 to 9999.
DAYS = (-719_162.0, 2_932_896.0)


# Dates and times are stored in microseconds.
DAY_MICROSECONDS = 86_400e6
SECOND_MICROSECONDS = 1e6


# Frequent types that are stored in one way.
PLAIN_TYPES = frozenset({"double", "int64", "string", "bool"})


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of cells regardless of how they are stored (dictionaries, views, large strings)."""
    if pa.types.is_dictionary(kind):
        return plain_type(kind.value_type)
    return pa.string() if pa.types.is_large_string(kind) or pa.types.is_string_view(kind) else kind


def type_name(kind: pa.DataType) -> str:
    """Return the name of the type of cells regardless of how they are stored."""
    name = str(kind)
    return name if name in PLAIN_TYPES else str(plain_type(kind))


def is_text(kind: pa.DataType) -> bool:
    """Return True if cells of this type are text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_moment(kind: pa.DataType) -> bool:
    """Return True if cells of this type are dates or timestamps."""
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def is_numeric(kind: pa.DataType) -> bool:
    """Return True if cells of this type can be converted to numbers."""
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_temporal(kind)
        or pa.types.is_null(kind)
    )


@lru_cache(maxsize=256)
def kind_of(name: str) -> str:
    """Return the type that text is converted to for a DuckDB or Arrow type; empty for any other type."""
    lower = name.lower()
    if lower.startswith(("varchar", "string")):
        return "VARCHAR"
    if lower.startswith(("bool",)):
        return "BOOLEAN"
    if lower.startswith(("date", "timestamp")):
        return "TIMESTAMP"
    if lower.startswith("time"):
        return "TIME"
    number = ("int", "uint", "bigint", "double", "float", "halffloat", "decimal", "hugeint", "smallint", "tinyint", "u")
    return "DOUBLE" if lower.startswith(number) else ""


def text_type(cells: pa.ChunkedArray, decimal: str = ".") -> str | None:
    """Return DuckDB's name for the type that cells of text can be converted to; None if all cells are missing.

    Codes with leading zeros stay text. Numbers are doubles; integers beyond 2**53 stay integers. Dates must be in ISO
    format.
    """
    there = cells.drop_null()
    if not len(there):
        return None
    if len(there) > SEVERAL and text_type(there.slice(0, SEVERAL), decimal) == "VARCHAR":
        return "VARCHAR"  # no need to check the other cells
    values = pc.unique(there)
    if _all(values, NUMBER_PATTERN.replace("POINT", re.escape(decimal))):
        if pc.any(pc.match_substring_regex(values, LEADING_ZERO)).as_py():
            return "VARCHAR"
        long = pc.match_substring_regex(values, LONG_INTEGER)
        return "BIGINT" if pc.any(long).as_py() and _all(values, r"^\s*[-+]?\d{1,18}\s*$") else "DOUBLE"
    return next((kind for kind, pattern in PATTERNS.items() if _all(values, pattern)), "VARCHAR")


def _all(values: pa.Array, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(values, pattern)).as_py())


@dataclass(frozen=True)
class CellHabits:
    """Formats of cells in CSV files, kept with a model for files it reads later.

    missing: words for missing cells, besides the default ones.
    marked: columns of numbers or dates in which words such as n/a were read as missing.
    thousands: the thousands separator.
    date_format: the format of dates for strptime.
    """

    missing: tuple[str, ...] = ()
    marked: tuple[str, ...] = ()
    thousands: str = ""
    date_format: str = ""


@dataclass(frozen=True)
class CellFormat:
    """Format of the cells of one column, and the type (DuckDB's name) they are converted to."""

    kind: str
    decimal: str = "."
    thousands: str = ""
    date_format: str = ""
    markers: bool = True

    def read(self, cells: pa.ChunkedArray, missing: Sequence[str] = ()) -> pa.ChunkedArray:
        """Convert cells to the type; words for missing cells become missing.

        Raises BadCell for a cell that cannot be converted.
        """
        if missing:
            cells = _without(cells, pc.is_in(cells, value_set=pa.array(missing, pa.string())))
        if self.kind == "VARCHAR":
            return cells
        cells = pc.utf8_trim_whitespace(cells)
        if self.markers:
            cells = _without(cells, is_missing_word(cells))
        cells = _without(cells, pc.equal(cells, ""))
        if self.kind == "TIMESTAMP" and self.date_format:
            return self._dates(cells)
        plain = cells
        if self.kind in ("DOUBLE", "BIGINT"):
            plain = self.without_thousands(cells)
            if self.decimal != ".":
                plain = pc.replace_substring(plain, self.decimal, ".")
        elif self.kind == "BOOLEAN":
            plain = pc.utf8_lower(plain)
            for word, flag in FLAG_WORDS.items():
                plain = pc.replace_substring_regex(plain, f"^{word}$", flag)
        elif self.kind == "TIME":
            plain = pc.binary_join_element_wise("1970-01-01 ", plain, "")
        elif self.kind == "TIMESTAMP":
            plain = _in_utc(plain)
        try:
            found = plain.cast(ARROW[self.kind])
        except pa.ArrowInvalid:
            raise self._bad(cells, self._first_bad(plain)) from None
        return found.cast(pa.time64("us")) if self.kind == "TIME" else found

    def without_thousands(self, cells: pa.ChunkedArray) -> pa.ChunkedArray:
        """Remove the separators from numbers written with thousands separators; other cells stay as they are."""
        if not self.thousands:
            return cells
        sign, point = re.escape(self.thousands), re.escape(self.decimal)
        whole = pc.match_substring_regex(cells, rf"^[-+]?[1-9]\d{{0,2}}({sign}\d{{3}})+({point}\d*)?$")
        return pc.if_else(whole, pc.replace_substring(cells, self.thousands, ""), cells)

    def _dates(self, cells: pa.ChunkedArray) -> pa.ChunkedArray:
        """Convert dates. Each distinct text is converted once, because few are distinct."""
        distinct = pc.unique(cells)
        known = []
        for cell in distinct.to_pylist():
            try:
                known.append(None if cell is None else date_of(cell, self.date_format))
            except ValueError:
                raise self._bad(cells, pc.index(cells, cell).as_py()) from None
        place = pc.index_in(cells, value_set=distinct)
        return pa.array(known, pa.timestamp("us")).take(
            place.combine_chunks() if place.num_chunks != 1 else place.chunk(0)
        )

    def _first_bad(self, cells: pa.ChunkedArray) -> int:
        for row, cell in enumerate(cells.to_pylist()):
            try:
                _in_utc(pa.chunked_array([[cell]], pa.string())).cast(ARROW[self.kind])
            except pa.ArrowInvalid:
                return row
        return 0

    def _bad(self, cells: pa.ChunkedArray, row: int) -> BadCell:
        found = cells[row].as_py()
        shown = found if len(found) <= 40 else found[:39] + "…"
        wanted = EXPECTED_CELLS.get(self.kind, f"a date as {self.date_format}" if self.date_format else "a date")
        remedy = "correct the cell, leave it empty, treat it as missing, or read the column as text"
        return BadCell(0, row, f"found {shown!r}, expected {wanted}", remedy)


def as_whole(cells: pa.ChunkedArray) -> pa.ChunkedArray:
    """Convert doubles to integers if all of them are whole numbers."""
    if not pa.types.is_float64(cells.type) or cells.null_count == len(cells):
        return cells
    whole = pc.and_kleene(pc.equal(cells, pc.floor(cells)), pc.less(pc.abs(cells), 2.0**53))
    return cells.cast(pa.int64()) if pc.all(whole).as_py() else cells


def as_days(cells: pa.ChunkedArray) -> pa.ChunkedArray:
    """Convert timestamps to dates if all of them are at midnight."""
    if cells.type != pa.timestamp("us") or cells.null_count == len(cells):
        return cells
    return cells.cast(pa.date32()) if pc.all(pc.equal(cells, pc.floor_temporal(cells))).as_py() else cells


def date_of(cell: str, date_format: str) -> datetime:
    """Parse a date in one of these formats or in ISO format, in UTC; raise a ValueError for anything else."""
    for form in date_format.split(FORMAT_SEPARATOR):
        with suppress(ValueError):
            return _without_zone(datetime.strptime(cell, form))
    return _without_zone(datetime.fromisoformat(cell))


def _without_zone(moment: datetime) -> datetime:
    try:
        return moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)
    except OverflowError:
        raise ValueError("in UTC, the date is not between the years 1 and 9999") from None


def _in_utc(cells: pa.ChunkedArray) -> pa.ChunkedArray:
    """Convert texts with a time zone (Z, +02:00) to UTC without one."""
    zoned = pc.match_substring_regex(cells, PATTERNS["TIMESTAMPTZ"])
    if not pc.any(zoned).as_py():
        return cells
    try:
        moments = _without(cells, pc.invert(zoned)).cast(ARROW["TIMESTAMPTZ"]).cast(ARROW["TIMESTAMP"])
    except pa.ArrowInvalid:
        return cells  # the caller finds the first bad cell
    return pc.if_else(zoned, moments.cast(pa.string()), cells)


def is_missing_word(cells: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return which cells are words for a missing cell."""
    small = pc.utf8_lower(pc.utf8_trim_whitespace(cells))
    return pc.is_in(small, value_set=pa.array(MARKERS, pa.string()))


def _without(cells: pa.ChunkedArray, missing: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.if_else(missing, pa.scalar(None, pa.string()), cells)


def sniff_format(cells: pa.ChunkedArray, decimal: str, thousands: str, date_format: str) -> CellFormat | None:
    """Return the format of text cells that are numbers or dates among words for missing cells, or in a known format.

    Returns None for other text, and for numbers and dates that DuckDB converts itself.
    """
    there = cells.drop_null()
    some = there.slice(0, 100)
    if not len(there):
        return None
    words = text_type(some, decimal) == "VARCHAR" and not pc.all(is_missing_word(some)).as_py()
    if words and len(there) > len(some) and sniff_format(some, decimal, thousands, date_format) is None:
        return None
    values = pc.unique(there)
    rest = values.filter(pc.invert(is_missing_word(values)))
    if not len(rest):
        return None
    if date_format and are_dates(rest, date_format):
        return CellFormat("TIMESTAMP", date_format=date_format)
    plain = CellFormat("DOUBLE", decimal, thousands).without_thousands(pc.utf8_trim_whitespace(rest))
    kind = text_type(pa.chunked_array([plain]), decimal)
    if kind not in ("DOUBLE", "BIGINT", "TIMESTAMP") or (kind == "TIMESTAMP" and len(rest) == len(values)):
        return None
    number = kind != "TIMESTAMP"
    if len(rest) == len(values) and not (number and thousands):
        return None
    return CellFormat(kind, decimal if number else ".", thousands if number else "")


def are_dates(values: pa.Array, date_format: str) -> bool:
    """Return True if all texts are dates in one of these formats or in ISO format."""
    try:
        for cell in values.to_pylist():
            date_of(cell.strip(), date_format)
    except ValueError:
        return False
    return True


def are_compact_dates(cells: pa.ChunkedArray, date_format: str) -> bool:
    """Return True if `COMPACT_DATE` is one of the formats and all texts are dates written in it."""
    if COMPACT_DATE not in date_format.split(FORMAT_SEPARATOR):
        return False
    return all(_is_compact_date(cell.strip()) for cell in pc.unique(cells.drop_null()).to_pylist())


def _is_compact_date(cell: str) -> bool:
    with suppress(ValueError):
        return len(cell) == 8 and bool(datetime.strptime(cell, COMPACT_DATE))
    return False


def marker_note(cells: pa.ChunkedArray, written: CellFormat) -> str:
    """Return a note on words read as missing cells, or an empty text."""
    words = cells.filter(is_missing_word(cells))
    if not len(words):
        return ""
    number = f"{len(words):,} cells" if len(words) > 1 else "1 cell"
    return f"{number} such as {words[0].as_py()!r} read as missing"


def as_numbers(array: pa.Array, column: int = 0) -> Floats:
    """Convert cells to doubles, NaN for missing cells. Dates and times count from their origin."""
    kind = array.type
    if pa.types.is_float64(kind):
        return np.asarray(array.to_numpy(zero_copy_only=False))
    if pa.types.is_dictionary(kind):
        array = as_values(array, column)
        kind = array.type
    if not is_numeric(kind):
        filled = pc.indices_nonzero(array.is_valid())
        if not len(filled):
            return np.full(len(array), np.nan)
        row = filled[0].as_py()
        shown = str(kind).removeprefix("large_")
        problem = f"found {_show_cell(array[row].as_py())} ({shown}), expected a number"
        raise BadCell(
            column,
            row,
            problem,
            ("correct the cell, leave it empty, or use ", Argument("family", "Categorical"), " for this column"),
        )
    if is_moment(kind):
        return _ticks(drop_infinite(array).cast(pa.timestamp("us"), safe=False)) / DAY_MICROSECONDS
    if pa.types.is_time(kind):
        return _ticks(array.cast(pa.time64("us"), safe=False)) / SECOND_MICROSECONDS
    if pa.types.is_duration(kind):
        return _ticks(array.cast(pa.duration("us"), safe=False)) / SECOND_MICROSECONDS
    array = as_doubles(array) if pa.types.is_decimal(kind) else array.cast(pa.float64(), safe=False)
    return np.asarray(array.to_numpy(zero_copy_only=False), dtype=np.float64)


def from_numbers(numbers: Floats, kind: str) -> pa.Array:
    """Convert numbers back to cells of the type they came from, clipped to its range."""
    array = pa.array(numbers, from_pandas=True)
    if kind == "bool":
        return pc.greater(array, 0.5)
    if kind.startswith(("int", "uint")):
        return pc.round(_within(array, -MAX_INTEGER, MAX_INTEGER)).cast(pa.int64())
    if kind.startswith("date"):
        return pc.floor(_within(array, *DAYS)).cast(pa.int32()).cast(pa.date32())
    if kind.startswith("timestamp"):
        return _microseconds(array, *DAYS, DAY_MICROSECONDS).cast(pa.timestamp("us"))
    if kind.startswith("time"):
        return _microseconds(array, 0.0, 86_399.999999, SECOND_MICROSECONDS).cast(pa.time64("us"))
    if kind.startswith("duration"):
        return _microseconds(array, -9.2e12, 9.2e12, SECOND_MICROSECONDS).cast(pa.duration("us"))
    return array


def _microseconds(array: pa.Array, minimum: float, maximum: float, unit: float) -> pa.Array:
    """Convert days or seconds to whole microseconds. unit: microseconds per day or second."""
    return pc.round(pc.multiply(_within(array, minimum, maximum), unit)).cast(pa.int64())


def _within(array: pa.Array, minimum: float, maximum: float) -> pa.Array:
    return pc.min_element_wise(pc.max_element_wise(array, minimum, skip_nulls=False), maximum, skip_nulls=False)


def drop_infinite(dates: pa.Array) -> pa.Array:
    """Replace infinite dates by missing ones. DuckDB stores them as the ends of the integer range."""
    ticks = dates.cast(pa.int32() if pa.types.is_date32(dates.type) else pa.int64())
    end = np.iinfo(ticks.type.to_pandas_dtype()).max
    infinite = pc.or_(pc.equal(ticks, end), pc.equal(ticks, -end))
    return pc.if_else(infinite, pa.scalar(None, dates.type), dates) if pc.any(infinite).as_py() else dates


def _ticks(array: pa.Array) -> Floats:
    """Return the integers behind dates and times as doubles, NaN for missing cells."""
    return np.asarray(array.cast(pa.int64()).cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False))


def _show_cell(value: object) -> str:
    """Return a cell as error messages quote it."""
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."


def fits(kind: str, learned: str) -> bool:
    """Return True if cells of an Arrow type (by name) can be used unchanged in a column learned as `learned`.

    A column learned as text accepts any type here; families check that themselves.
    """
    if kind in (learned, "null"):
        return True
    wanted, found = kind_of(learned), kind_of(kind)
    if wanted in ("", "VARCHAR"):
        return True
    return found == wanted or found in TAKEN_AS_WELL.get(wanted, ())


def as_learned(cells: pa.ChunkedArray, kind: str, learned: str) -> pa.ChunkedArray:
    """Convert cells that do not fit the learned type: missing cells, or text that can be parsed.

    Raises BadCell for any other cell.
    """
    if cells.null_count == len(cells):
        return pa.chunked_array([pa.nulls(len(cells))])
    wanted = kind_of(learned)
    row = pc.indices_nonzero(cells.is_valid())[0].as_py()
    if kind == "string":
        texts = cells.cast(pa.string())
        whole = wanted == "DOUBLE" and text_type(texts) == "BIGINT"  # a double would not be exact
        try:
            return CellFormat("BIGINT" if whole else wanted, markers=False).read(texts)
        except BadCell as bad:
            row = bad.row
    text = str(cells[row].as_py()) if kind.startswith(("date", "time")) else repr(cells[row].as_py())
    shown = text if len(text) <= 40 else text[:37] + "..."
    expected = "a number" if wanted == "BOOLEAN" and kind != "string" else EXPECTED_CELLS.get(wanted, "a date")
    raise BadCell(0, row, f"found {shown} ({kind}), expected {expected}", "correct the cell, or leave it empty")
