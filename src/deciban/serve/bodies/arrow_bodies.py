"""Arrow streams in the body of a request, none of which is trusted: each is checked before anything reads it."""

import struct

import pyarrow as pa

from deciban.serve.bodies.arrow_cells import refuse_wrong_cells
from deciban.serve.bodies.sizes import refuse_columns, refuse_rows
from deciban.serve.problems import Problem
from deciban.serve.settings import ServeSettings
from deciban.tables.cells import is_numeric, is_text
from deciban.tables.table import repeated

# What messages call it.
THE_BODY = "the body"
PLAIN_STREAM = "send an Arrow IPC stream without compression"

# The kinds of messages in a stream that hold columns.
DICTIONARY_MESSAGE, RECORD_MESSAGE = 2, 3


def table_of_arrow(body: bytes, settings: ServeSettings) -> pa.Table:
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
    if (twice := repeated(schema.names)) is not None:
        raise Problem(422, f"column {twice!r} is there more than once", "give every column its own name", THE_BODY)
    for one in schema:
        kind = one.type.value_type if pa.types.is_dictionary(one.type) else one.type
        if pa.types.is_interval(kind) or not (is_text(kind) or is_numeric(kind)):
            remedy = "send numbers, text, true and false, dates or times"
            raise Problem(422, f"the column has the type {str(one.type)[:60]}", remedy, f"rows[*].{one.name}")


def _refuse_compressed(body: bytes, settings: ServeSettings) -> None:
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
