"""Streams cut into pieces whose size depends on the table alone, and not on the batches in which its rows come."""

from collections.abc import Iterable, Iterator
from itertools import chain

import pyarrow as pa

# Rows, bytes and cells of one piece of a stream, at most.
STREAM_ROWS = 3 << 13
STREAM_BYTES = 12 << 20
STREAM_CELLS = 1 << 21

# Rows that DuckDB handles together.
VECTOR_ROWS = 2048

# The first rows of a stream, which show how long its rows are.
MEASURED_ROWS = 1024


def rows_of_piece(row_bytes: float, columns: int) -> int:
    """The rows of a piece of a table with rows of so many bytes (0 where nothing is known of that) and columns."""
    few = int(STREAM_BYTES / max(row_bytes, 1.0))
    rows = min(STREAM_ROWS, max(256, min(few, STREAM_CELLS // max(columns, 1))))
    return rows - rows % VECTOR_ROWS if rows > VECTOR_ROWS else rows  # as DuckDB has them: nothing is copied


def in_pieces(batches: Iterable[pa.RecordBatch], size: int, schema: pa.Schema) -> Iterator[pa.Table]:
    """The rows in pieces of one size, in whatever batches they are read on so many threads; at least one piece.

    So the sums of a model do not depend on the machine, in no digit.
    """
    held, empty = schema.empty_table(), True
    for batch in batches:
        more = pa.Table.from_batches([batch])
        held = pa.concat_tables([held, more]) if held.num_rows else more
        while held.num_rows >= size:
            empty = False
            yield held.slice(0, size).combine_chunks()
            held = held.slice(size)
    if held.num_rows or empty:
        yield held.combine_chunks()


def in_measured_pieces(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    """The rows in pieces of one size, for which the first rows are measured; at least one piece."""
    coming, first, rows = iter(batches), [], 0
    for batch in coming:
        first.append(batch)
        rows += batch.num_rows
        if rows >= MEASURED_ROWS:
            break
    shown = pa.Table.from_batches(first, schema).slice(0, MEASURED_ROWS)
    size = rows_of_piece(shown.nbytes / max(shown.num_rows, 1), len(schema))
    return in_pieces(chain(first, coming), size, schema)
