"""Tables that DuckDB streams from files or a query, in memory that does not grow with them.

A `Read` is one thing that DuckDB reads, as a value that becomes SQL; a `Scan` has one or several, whose rows follow one
another. Each kind of file has its reads, and what else is special of it, in a file of its own.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from deciban.sources.dialects import DUCKDB
from deciban.sources.duckdb import NOTHING, connect, quoted, select_from, translated_errors
from deciban.sources.pieces import VECTOR_ROWS, in_pieces, rows_of_piece
from deciban.sources.sql_rows import SqlRows
from deciban.sources.typed_source import TypedSource, Types

# Rows that DuckDB holds at least, read and handed out.
HELD_ROWS = 8 * VECTOR_ROWS

# Megabytes that DuckDB may take besides, to count; beyond them it writes to a temporary file.
COUNTING_MEMORY = 256


class Read(Protocol):
    """One thing that DuckDB reads: files of one form, or a query."""

    def select(self, names: Sequence[str], types: Types) -> str:
        """The query for these columns, which are called c0, c1 ... in its answer."""
        ...


@dataclass(frozen=True)
class Scan(TypedSource):
    """A table that is streamed from files or a query, as often as it is asked for. Its columns have types.

    reads: what DuckDB reads, one after the other. row_size: the bytes of a row in memory, about, where that is known
    beforehand. rows: their number, where that is known. named: files that a query names. kept: files that are deleted
    when nobody reads them any more. more_memory: megabytes of DuckDB beyond those that rows take.
    """

    reads: tuple[Read, ...]
    row_size: float = 0.0
    rows: int | None = None
    named: tuple[str, ...] = ()
    kept: tuple[Any, ...] = ()
    more_memory: float = 0.0

    @property
    def inputs(self) -> tuple[str, ...]:
        return (*super().inputs, *self.named)

    @property
    def expected(self) -> int | None:
        return self.rows

    def head(self, rows: int) -> pa.Table:
        if not self.files or any(one.wanted for one in self.types.values()):  # planned, and cast, in another way
            return super().head(rows)
        with self._answer(f"SELECT * FROM ({self._query}) LIMIT {int(rows)}") as reader:
            return self._named(reader.read_all())

    def tables(self) -> Iterator[pa.Table]:
        first = 1
        with self._answer(self._query) as reader:
            for piece in in_pieces(reader, self._piece_rows, reader.schema):
                yield self._named(piece, first)
                first += piece.num_rows

    @property
    def _query(self) -> str:
        return " UNION ALL ".join(read.select(self.names, self.types) for read in self.reads)

    @property
    def _piece_rows(self) -> int:
        """The rows of a piece, which depend on the table alone."""
        return rows_of_piece(self._row_bytes, len(self.columns))

    @property
    def _row_bytes(self) -> float:
        """The bytes of a row, about; 0 where nothing is known of it."""
        return self.row_size

    def _named(self, table: pa.Table, first_row: int = 1) -> pa.Table:
        """What DuckDB answered, as rows of this table; `first_row` is counted from 1."""
        return table.rename_columns(list(self.names))

    @contextmanager
    def _answer(self, query: str) -> Iterator[pa.RecordBatchReader]:
        """The answer of DuckDB to a query, as a stream."""
        connection = connect(
            len(self.columns),
            parsing=not self.typed,
            more_memory=self.more_memory + HELD_ROWS * self.row_size / 1e6,
        )
        try:
            with translated_errors(self.name, self._header, self.called):
                yield connection.sql(query).to_arrow_reader(self._piece_rows)
        finally:
            connection.close()
            pa.default_memory_pool().release_unused()

    @contextmanager
    def sql(self) -> Iterator[SqlRows]:
        """The rows as DuckDB has them, on all cores: nobody else counts."""
        connection = connect(len(self.columns), parsing=True, more_memory=self.more_memory + COUNTING_MEMORY)

        def ask(query: str) -> pa.Table:
            with translated_errors(self.name, self._header, self.called):
                return connection.sql(query).to_arrow_table()

        try:
            columns = {name: f"c{k}" for k, name in enumerate(self.names)}
            yield SqlRows.of(DUCKDB, f"({self._query}) AS source", columns, ask)
        finally:
            connection.close()
            pa.default_memory_pool().release_unused()

    @property
    def _header(self) -> Mapping[str, str]:
        """The names of columns by those that DuckDB knows them by, where these are others."""
        return NOTHING

    @property
    def _size(self) -> int:
        return sum(path.stat().st_size for path in self.files)


def select_typed(table: str, names: Sequence[str], types: Types) -> str:
    """The query for these columns of a table that has types, each cast to the one that is wanted."""
    casts = (f"CAST({quoted(name)} AS {wanted})" if (wanted := types[name].wanted) else quoted(name) for name in names)
    return select_from(table, list(casts))


def behind(rows: int, tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """What follows so many rows."""
    for table in tables:
        if table.num_rows > rows or rows == 0:
            yield table.slice(rows)
        rows = max(rows - table.num_rows, 0)
