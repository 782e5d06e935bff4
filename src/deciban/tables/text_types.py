"""What cells of text are: numbers, dates, true and false, or text."""

import re
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

# What people call types, and DuckDB's names for them.
TYPES = {"text": "VARCHAR", "number": "DOUBLE", "bool": "BOOLEAN", "date": "TIMESTAMP", "time": "TIME"}

NUMBER_PATTERN = r"^\s*[-+]?(\d+POINT?\d*|POINT\d+)([eE][-+]?\d+)?\s*$|^\s*[-+]?(?i:inf|infinity|nan)\s*$"
PATTERNS = {
    "BOOLEAN": r"^(?i:true|false)$",
    "TIMESTAMP": r"^\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d+)?)?)?$",
    "TIMESTAMPTZ": r"^\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d(:?\d\d)?)$",
    "TIME": r"^\d\d:\d\d(:\d\d(\.\d+)?)?$",
}
# Cells that are looked at before all the others.
SEVERAL = 100

LEADING_ZERO = r"^\s*[-+]?0\d"
LONG_INTEGER = r"^\s*[-+]?\d{16,18}\s*$"


def text_type(cells: pa.ChunkedArray, decimal: str = ".") -> str | None:
    """DuckDB's type for what such cells of text can be read as; None where every cell is missing.

    Codes with leading zeros stay text, numbers are doubles (whole ones beyond 2**53 integers), dates are ISO's.
    """
    there = cells.drop_null()
    if not len(there):
        return None
    if len(there) > SEVERAL and text_type(there.slice(0, SEVERAL), decimal) == "VARCHAR":
        return "VARCHAR"  # what a few cells are not, all are not
    values = pc.unique(there)
    if _all(values, NUMBER_PATTERN.replace("POINT", re.escape(decimal))):
        if pc.any(pc.match_substring_regex(values, LEADING_ZERO)).as_py():
            return "VARCHAR"
        long = pc.match_substring_regex(values, LONG_INTEGER)
        return "BIGINT" if pc.any(long).as_py() and _all(values, r"^\s*[-+]?\d{1,18}\s*$") else "DOUBLE"
    return next((kind for kind, pattern in PATTERNS.items() if _all(values, pattern)), "VARCHAR")


def _all(values: pa.Array, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(values, pattern)).as_py())


@lru_cache(maxsize=256)
def kind_of(name: str) -> str:
    """What a type of DuckDB or of Arrow is read as from text; nothing where that cannot be said."""
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


def as_whole(cells: pa.ChunkedArray) -> pa.ChunkedArray:
    """Doubles that are all whole numbers as integers; other cells as they are."""
    if not pa.types.is_float64(cells.type) or cells.null_count == len(cells):
        return cells
    whole = pc.and_kleene(pc.equal(cells, pc.floor(cells)), pc.less(pc.abs(cells), 2.0**53))
    return cells.cast(pa.int64()) if pc.all(whole).as_py() else cells


def as_days(cells: pa.ChunkedArray) -> pa.ChunkedArray:
    """Times that are all midnight as dates; other cells as they are."""
    if cells.type != pa.timestamp("us") or cells.null_count == len(cells):
        return cells
    return cells.cast(pa.date32()) if pc.all(pc.equal(cells, pc.floor_temporal(cells))).as_py() else cells
