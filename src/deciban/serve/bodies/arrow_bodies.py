"""Arrow streams in request bodies, validated before any cell is read.

Cells that JSON could not represent are rejected too: dates after the year 9999, unknown time zones, null in
dictionaries.
"""

import re
import struct
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc

from deciban.serve.bodies.checks import check_column_count, check_row_count
from deciban.serve.problems import Problem, cell_place
from deciban.serve.settings import RequestSettings
from deciban.tables.cells import is_numeric, is_text
from deciban.util.text_tables import find_duplicate

# Unix time of the start of year 1, the first that Python's datetime represents.
FIRST_SECOND = -62_135_596_800

# Unix time of the end of year 9999, the last one.
LAST_SECOND = 253_402_300_799

# Seconds per day; a time zone shifts a time by at most one day.
DAY_SECONDS = 86_400

# Maximum number of seconds in a duration, near the limit of milliseconds in 64 bits.
MAX_DURATION = 9_000_000_000_000

# Ticks per second of each Arrow time unit.
UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}

# Maximum 64-bit integer.
MAX_TICKS = (1 << 63) - 1

# Time zone given as an offset from UTC.
UTC_OFFSET = re.compile(r"[+-](0\d|1\d|2[0-3]):?[0-5]\d")


def check_cells(name: str, column: pa.ChunkedArray) -> None:
    """Raise a Problem that names the first invalid cell of a column."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        for chunk in column.chunks:
            if chunk.dictionary.null_count:
                remedy = "encode missing cells in the indices"
                raise Problem(422, "the dictionary of the column contains null", remedy, cell_place("*", name))
            _check_range(name, pa.chunked_array([chunk.dictionary]), in_dictionary=True)
    else:
        _check_range(name, column)


def _check_range(name: str, cells: pa.ChunkedArray, in_dictionary: bool = False) -> None:
    """Raise a Problem if a date, time or duration is out of range, or its time zone is unknown."""
    kind = cells.type
    if pa.types.is_timestamp(kind) and kind.tz is not None and not _is_zone(kind.tz):
        cause = f"unknown time zone {kind.tz[:40]!r}"
        raise Problem(422, cause, "send times in UTC or in a time zone of the tz database", cell_place("*", name))
    bounds = _bounds(kind)
    if bounds is None:
        return
    minimum, maximum, cause = bounds
    ticks = cells.cast(pa.int32()) if pa.types.is_date32(kind) else cells
    numbers = ticks.cast(pa.int64())
    outside = pc.or_(pc.less(numbers, minimum), pc.greater(numbers, maximum))
    if pc.any(outside).as_py():
        row = "*" if in_dictionary else pc.index(outside, True).as_py()
        raise Problem(422, cause, "correct the cell, or leave it empty", cell_place(row, name))


def _bounds(kind: pa.DataType) -> tuple[int, int, str] | None:
    """Return the minimum and maximum integer value of a cell, and the cause to report for others."""
    cause = "found a date outside the years 1 to 9999"
    if pa.types.is_date32(kind):
        return FIRST_SECOND // DAY_SECONDS, LAST_SECOND // DAY_SECONDS, cause
    if pa.types.is_date64(kind):
        return FIRST_SECOND * 1_000, LAST_SECOND * 1_000, cause
    if pa.types.is_timestamp(kind):
        unit, margin = UNITS[kind.unit], 0 if kind.tz is None else DAY_SECONDS
        first, last = (FIRST_SECOND + margin) * unit, (LAST_SECOND + 1 - margin) * unit - 1
        end = MAX_TICKS - margin * unit
        return max(first, -end), min(last, end), cause
    if pa.types.is_duration(kind):
        limit = min(MAX_DURATION * UNITS[kind.unit], MAX_TICKS)
        return -limit, limit, f"found a duration of more than {MAX_DURATION:,} seconds"
    return None


def _is_zone(name: str) -> bool:
    if UTC_OFFSET.fullmatch(name):
        return True
    try:
        ZoneInfo(name)
    except (ValueError, OSError, KeyError):  # unknown, or the path of another file
        return False
    return True


# Name of the body in messages.
BODY_NAME = "the body"

# Remedy for bodies that cannot be read.
PLAIN_STREAM = "send an Arrow IPC stream without compression"

# Type of messages with a dictionary, in the Arrow format.
DICTIONARY_MESSAGE = 2

# Type of messages with a batch of rows.
RECORD_MESSAGE = 3


def read_arrow(body: bytes, settings: RequestSettings) -> pa.Table:
    """Return the table of a stream; raise a Problem if it is damaged, too large or has unsupported types."""
    try:
        _check_uncompressed(body, settings)
        with pa.ipc.open_stream(body) as reader:
            check_column_count(len(reader.schema), settings)
            _check_schema(reader.schema)
            batches, rows = [], 0
            for batch in reader:
                rows += batch.num_rows
                check_row_count(rows, settings)
                batches.append(batch)
            table = pa.Table.from_batches(batches, reader.schema)
        table.validate(full=True)
        for name, column in zip(table.column_names, table.columns, strict=True):
            check_cells(name, column)
        return table
    except Problem:
        raise
    except (
        pa.ArrowException,
        OSError,
        ValueError,
        TypeError,
        KeyError,
        MemoryError,
        OverflowError,
        struct.error,
    ) as error:
        reason = str(error).splitlines()[0][:120] if str(error) else "damaged"
        raise Problem(422, f"invalid Arrow stream ({reason})", PLAIN_STREAM, BODY_NAME) from None


def _check_schema(schema: pa.Schema) -> None:
    if (twice := find_duplicate(schema.names)) is not None:
        raise Problem(422, f"duplicate column {twice!r}", "send each column once", BODY_NAME)
    for column in schema:
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if pa.types.is_interval(kind) or not (is_text(kind) or is_numeric(kind)):
            remedy = "send numbers, text, booleans, dates or times"
            raise Problem(422, f"unsupported type {str(column.type)[:60]}", remedy, f"rows[*].{column.name}")


def _check_uncompressed(body: bytes, settings: RequestSettings) -> None:
    """Raise a Problem if columns are compressed: a few bytes could expand to gigabytes.

    Arrow validates the messages before they are inspected here.
    """
    for message in pa.ipc.MessageReader.open_stream(pa.BufferReader(body)):
        metadata = message.metadata.to_pybytes()
        table = struct.unpack_from("<I", metadata)[0]
        kind = _field(metadata, table, 1)
        if kind is None or metadata[kind] not in (DICTIONARY_MESSAGE, RECORD_MESSAGE):
            continue
        records = _inside(metadata, table, 2)
        if metadata[kind] == DICTIONARY_MESSAGE:
            records = _inside(metadata, records, 1)
        length = _field(metadata, records, 0)
        if length is not None:
            check_row_count(struct.unpack_from("<q", metadata, length)[0], settings)
        if _field(metadata, records, 3) is not None:
            raise Problem(422, "compressed columns are not supported", PLAIN_STREAM, BODY_NAME)


def _field(metadata: bytes, table: int, number: int) -> int | None:
    """Return the offset of a field in a FlatBuffers table; None if it has its default."""
    fields = table - struct.unpack_from("<i", metadata, table)[0]
    size = struct.unpack_from("<H", metadata, fields)[0]
    at = 4 + 2 * number
    offset = struct.unpack_from("<H", metadata, fields + at)[0] if at + 2 <= size else 0
    return table + offset if offset else None


def _inside(metadata: bytes, table: int, number: int) -> int:
    """Return the offset of the table that a field refers to."""
    at = _field(metadata, table, number)
    if at is None:
        raise ValueError("message without columns")
    return int(at + struct.unpack_from("<I", metadata, at)[0])
