"""Arrow streams in the body of a request: none is trusted, each is checked before anything reads it.

Cells that nothing else can hold are rejected too: dates after the year 9999, unknown time zones, null in dictionaries.
"""

import re
import struct
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc

from deciban.serve.bodies.checks import refuse_columns, refuse_rows
from deciban.serve.problems import Problem, place_of
from deciban.serve.settings import RequestSettings
from deciban.tables.cells import is_numeric, is_text
from deciban.tables.table import find_duplicate

# The seconds of the years 1 to 9999, and those that a duration may have; a zone moves a time by a day at most.
FIRST_SECOND, LAST_SECOND, DAY_SECONDS = -62_135_596_800, 253_402_300_799, 86_400
MAX_DURATION = 9_000_000_000_000

UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
MAX_TICKS = (1 << 63) - 1

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
        end = MAX_TICKS - margin * unit
        return max(first, -end), min(last, end), far
    if pa.types.is_duration(kind):
        most = min(MAX_DURATION * UNITS[kind.unit], MAX_TICKS)
        return -most, most, f"found a duration of more than {MAX_DURATION:,} seconds"
    return None


def _is_zone(name: str) -> bool:
    if DISTANCE.fullmatch(name):
        return True
    try:
        ZoneInfo(name)
    except (ValueError, OSError, KeyError):  # it is none, or the path of something else
        return False
    return True


# What messages call it.
THE_BODY = "the body"
PLAIN_STREAM = "send an Arrow IPC stream without compression"

# The kinds of messages in a stream that hold columns.
DICTIONARY_MESSAGE, RECORD_MESSAGE = 2, 3


def table_of_arrow(body: bytes, settings: RequestSettings) -> pa.Table:
    """The table of a stream; a Problem where it is damaged or too large, or has what JSON could not have."""
    try:
        _refuse_compressed(body, settings)
        with pa.ipc.open_stream(body) as reader:
            refuse_columns(len(reader.schema), settings)
            _check_schema(reader.schema)
            batches, rows = [], 0
            for batch in reader:
                rows += batch.num_rows
                refuse_rows(rows, settings)
                batches.append(batch)
            table = pa.Table.from_batches(batches, reader.schema)
        table.validate(full=True)
        for name, column in zip(table.column_names, table.columns, strict=True):
            refuse_wrong_cells(name, column)
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
        told = str(error).splitlines()[0][:120] if str(error) else "it is damaged"
        raise Problem(422, f"this is no Arrow stream ({told})", PLAIN_STREAM, THE_BODY) from None


def _check_schema(schema: pa.Schema) -> None:
    if (twice := find_duplicate(schema.names)) is not None:
        raise Problem(422, f"column {twice!r} is there more than once", "give every column its own name", THE_BODY)
    for one in schema:
        kind = one.type.value_type if pa.types.is_dictionary(one.type) else one.type
        if pa.types.is_interval(kind) or not (is_text(kind) or is_numeric(kind)):
            remedy = "send numbers, text, true and false, dates or times"
            raise Problem(422, f"the column has the type {str(one.type)[:60]}", remedy, f"rows[*].{one.name}")


def _refuse_compressed(body: bytes, settings: RequestSettings) -> None:
    """A Problem where columns are compressed, of which a few bytes can become gigabytes, or say that they are endless.

    The messages are checked by Arrow before they are looked at here.
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
            refuse_rows(struct.unpack_from("<q", metadata, length)[0], settings)
        if _field(metadata, records, 3) is not None:
            raise Problem(422, "the columns are compressed", PLAIN_STREAM, THE_BODY)


def _field(metadata: bytes, table: int, number: int) -> int | None:
    """Where a field of a table of FlatBuffers is; None where it has its default."""
    fields = table - struct.unpack_from("<i", metadata, table)[0]
    size = struct.unpack_from("<H", metadata, fields)[0]
    at = 4 + 2 * number
    offset = struct.unpack_from("<H", metadata, fields + at)[0] if at + 2 <= size else 0
    return table + offset if offset else None


def _inside(metadata: bytes, table: int, number: int) -> int:
    """Where the table is that a field refers to."""
    at = _field(metadata, table, number)
    if at is None:
        raise ValueError("a message has no columns")
    return int(at + struct.unpack_from("<I", metadata, at)[0])
