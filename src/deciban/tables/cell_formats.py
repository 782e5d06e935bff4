"""Cells of CSV files that are converted here: numbers and dates among words for missing ones, or in other forms."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from deciban.errors import BadCell
from deciban.tables.text_types import PATTERNS, text_type

# Words, in small letters, that mean a missing cell where the other cells are numbers or dates.
MARKERS = (
    *("n/a", "na", "n.a.", "n.a", "#n/a", "#na", "<na>", "nan", "#nan", "null", "(null)", "#null!", "nil", "none"),
    *("missing", "unknown", "not available", "#value!", "#div/0!", "#ref!"),
    *("?", "??", "-", "--", "\u2013", "\u2014", ".", "..", "\u2026"),
)

# What DuckDB's types are to Arrow; a time is read as that of a day.
ARROW = {
    "DOUBLE": pa.float64(),
    "BIGINT": pa.int64(),
    "BOOLEAN": pa.bool_(),
    "TIMESTAMP": pa.timestamp("us"),
    "TIMESTAMPTZ": pa.timestamp("us", "UTC"),
    "TIME": pa.timestamp("us"),
}
EXPECTED_CELLS = {"DOUBLE": "a number", "BIGINT": "a whole number", "BOOLEAN": "true or false", "TIME": "a time"}

# What DuckDB reads as true and false.
FLAG_WORDS = {"t": "true", "yes": "true", "y": "true", "f": "false", "no": "false", "n": "false"}


@dataclass(frozen=True)
class CellHabits:
    """How people write cells of CSV files, as a model remembers it for files that it reads later.

    missing: cells that mean a missing one, besides the usual ones. marked: columns of numbers or dates in which words
    such as n/a were read as missing. thousands: the sign between them. date_format: as strptime has it.
    """

    missing: tuple[str, ...] = ()
    marked: tuple[str, ...] = ()
    thousands: str = ""
    date_format: str = ""


@dataclass(frozen=True)
class CellFormat:
    """How the cells of one column are written, and what they are read as (a type of DuckDB)."""

    kind: str
    decimal: str = "."
    thousands: str = ""
    date_format: str = ""
    markers: bool = True

    def read(self, cells: pa.ChunkedArray, missing: Sequence[str] = ()) -> pa.ChunkedArray:
        """The cells as that type, without those that mean a missing one; a BadCell where one cannot be read."""
        if missing:
            cells = _without(cells, pc.is_in(cells, value_set=pa.array(missing, pa.string())))
        if self.kind == "VARCHAR":
            return cells
        cells = pc.utf8_trim_whitespace(cells)
        if self.markers:
            cells = _without(cells, marked(cells))
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
        """Numbers whose thousands are written apart without the sign between them; other cells as they are."""
        if not self.thousands:
            return cells
        sign, point = re.escape(self.thousands), re.escape(self.decimal)
        whole = pc.match_substring_regex(cells, rf"^[-+]?[1-9]\d{{0,2}}({sign}\d{{3}})+({point}\d*)?$")
        return pc.if_else(whole, pc.replace_substring(cells, self.thousands, ""), cells)

    def _dates(self, cells: pa.ChunkedArray) -> pa.ChunkedArray:
        """Few are different: each of them is read once."""
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
        remedy = "correct the cell, leave it empty, name it as missing, or read the column as text"
        return BadCell(0, row, f"found {shown!r}, expected {wanted}", remedy)


def date_of(cell: str, date_format: str) -> datetime:
    """A date in this form, or in that of ISO; a ValueError where it is none."""
    try:
        return datetime.strptime(cell, date_format)
    except ValueError:
        found = datetime.fromisoformat(cell)
        if found.tzinfo is not None:
            raise
        return found


def _in_utc(cells: pa.ChunkedArray) -> pa.ChunkedArray:
    """Texts with times; those with a time zone (Z, +02:00) as the time in UTC without one."""
    zoned = pc.match_substring_regex(cells, PATTERNS["TIMESTAMPTZ"])
    if not pc.any(zoned).as_py():
        return cells
    try:
        moments = _without(cells, pc.invert(zoned)).cast(ARROW["TIMESTAMPTZ"]).cast(ARROW["TIMESTAMP"])
    except pa.ArrowInvalid:
        return cells  # the first that cannot be read is found by whoever reads them
    return pc.if_else(zoned, moments.cast(pa.string()), cells)


def marked(cells: pa.ChunkedArray) -> pa.ChunkedArray:
    """Where cells are words that mean a missing one."""
    small = pc.utf8_lower(pc.utf8_trim_whitespace(cells))
    return pc.is_in(small, value_set=pa.array(MARKERS, pa.string()))


def _without(cells: pa.ChunkedArray, missing: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.if_else(missing, pa.scalar(None, pa.string()), cells)


def sniffed_format(cells: pa.ChunkedArray, decimal: str, thousands: str, date_format: str) -> CellFormat | None:
    """How cells of text are written that are numbers or dates but for words that mean a missing one, or in such forms.

    None where they are text, or numbers or dates that DuckDB reads by itself.
    """
    there = cells.drop_null()
    some = there.slice(0, 100)
    if not len(there) or (len(there) > len(some) and sniffed_format(some, decimal, thousands, date_format) is None
                          and text_type(some, decimal) == "VARCHAR" and not pc.all(marked(some)).as_py()):  # fmt: skip
        return None
    values = pc.unique(there)
    rest = values.filter(pc.invert(marked(values)))
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
    try:
        for cell in values.to_pylist():
            datetime.strptime(cell.strip(), date_format)
    except ValueError:
        return False
    return True


def marker_note(cells: pa.ChunkedArray, written: CellFormat) -> str:
    """What is to be said of the words that are read as missing cells; nothing where there are none."""
    words = cells.filter(marked(cells))
    if not len(words):
        return ""
    number = f"{len(words):,} cells" if len(words) > 1 else "1 cell"
    others = "dates" if written.kind == "TIMESTAMP" else "numbers"
    return f"{number} such as {words[0].as_py()!r} read as missing, the others are {others}"
