"""A table of Ibis as a source of rows. Ibis is recognised, and never imported."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from deciban.files.databases.source import Answer, ArrowSource, types_of
from deciban.files.duckdb import translated_errors

# Rows of a batch.
BATCH_OF_ROWS = 1 << 14


@dataclass(frozen=True)
class IbisSource(ArrowSource):
    """The rows of a table, or any other expression that has the columns of one."""

    table: Any = field(repr=False)

    @contextmanager
    def _asked(self) -> Iterator[Answer]:
        wanted = self.table.select(*self.names)
        with translated_errors(self.name):
            schema = wanted.limit(0).to_pyarrow().schema
            yield Answer(schema, _batches(wanted))


def open_ibis(table: Any) -> IbisSource:
    """The source of a table."""
    name = "the table of Ibis"
    with translated_errors(name):
        types = types_of(table.limit(0).to_pyarrow().schema, name)
    return IbisSource(name, tuple(types), types, table)


def _batches(table: Any) -> Iterator[pa.RecordBatch]:
    """The rows of a table. Where Ibis asks DuckDB for what newer versions of it do not have, DuckDB is asked itself."""
    try:
        yield from table.to_pyarrow_batches(chunk_size=BATCH_OF_ROWS)
    except AttributeError:
        backend = table.get_backend()
        yield from backend.con.sql(backend.compile(table)).to_arrow_reader(BATCH_OF_ROWS)
