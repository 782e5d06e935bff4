"""A table of Ibis as a source of rows. Ibis is recognised, and never imported."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from deciban.sources.databases.source import Answer, ArrowSource, types_of
from deciban.sources.duckdb import translated_errors

# Rows of a batch.
BATCH_OF_ROWS = 1 << 14


@dataclass(frozen=True)
class IbisSource(ArrowSource):
    """The rows of a table, or any other expression that has the columns of one."""

    expression: Any = field(repr=False)

    @contextmanager
    def _asked(self) -> Iterator[Answer]:
        with translated_errors(self.name):
            reader = _reader(self.expression.select(*self.names))
            try:
                yield Answer(reader.schema, iter(reader))
            finally:
                reader.close()

    def _relation(self) -> Any:
        return _relation_of(self.expression.select(*self.names))


def open_ibis(table: Any) -> IbisSource:
    """The source of a table."""
    name = "the table of Ibis"
    with translated_errors(name):
        schema = table.limit(0).to_pyarrow().schema
    types = types_of(dict(zip(schema.names, schema.types, strict=True)))
    return IbisSource(name, tuple(types), types, table)


def _reader(table: Any) -> pa.RecordBatchReader:
    """The rows of a table, batch by batch. DuckDB is asked itself: Ibis asks it for what version 2 has no more."""
    relation = _relation_of(table)
    if relation is None:
        return table.to_pyarrow_batches(chunk_size=BATCH_OF_ROWS)
    return relation.to_arrow_reader(BATCH_OF_ROWS)


def _relation_of(table: Any) -> Any:
    """The relation that a table is in DuckDB; None where another engine has it."""
    backend = table.get_backend()
    if backend.name != "duckdb":
        return None
    table.limit(0).to_pyarrow()  # by which tables in memory become known to DuckDB
    return backend.con.sql(backend.compile(table))
