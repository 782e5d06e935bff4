"""Relations of DuckDB, in a connection of the user's, as a stream."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import pyarrow as pa

from deciban.errors import DataError
from deciban.sources.dialects import DUCKDB
from deciban.sources.duckdb import quoted, translated_errors
from deciban.sources.sql_rows import SqlRows
from deciban.sources.stream import Source
from deciban.tables.arrow import repeated


def is_relation(data: Any) -> bool:
    """Whether something is a relation of DuckDB."""
    return type(data).__name__ == "DuckDBPyRelation"


@dataclass(frozen=True)
class RelationRows(Source):
    """The rows of a relation."""

    relation: Any = field(default=None, compare=False)

    @classmethod
    def of(cls, relation: Any) -> "RelationRows":
        """A DataError where two columns have one name."""
        if (twice := repeated(relation.columns)) is not None:
            raise DataError(f"column {twice!r} is there more than once; give every column its own name")
        return cls("the relation", tuple(relation.columns), relation=relation)

    @property
    def expected(self) -> int | None:
        return None

    def reading_as(self, types: Mapping[str, str]) -> "RelationRows":
        return self

    def resolve_types(self, sample: pa.Table) -> "tuple[RelationRows, pa.Table]":
        return self, sample

    def tables(self) -> Iterator[pa.Table]:
        with translated_errors(self.name):
            reader = self.relation.project(", ".join(map(quoted, self.names))).to_arrow_reader()
            yield pa.Table.from_batches([], reader.schema)
            for batch in reader:
                yield pa.Table.from_batches([batch])

    @contextmanager
    def sql(self) -> Iterator[SqlRows]:
        yield rows_of_relation(self.relation, self.name, dict.fromkeys(self.names, ""))


def rows_of_relation(relation: Any, name: str, columns: Mapping[str, str]) -> SqlRows:
    """The rows of a relation, which the user calls `name`, as DuckDB has them; columns: the type of each that is to be
    cast, or nothing."""
    called = f"deciban_{uuid4().hex}"  # by statements alone: a table of this name would be counted in its place

    def ask(query: str) -> pa.Table:
        with translated_errors(name):
            return relation.query(called, query).to_arrow_table()

    cells = {column: f"{called}.{quoted(column)}" for column in columns}
    cast = {column: f"CAST({cells[column]} AS {kind})" if kind else cells[column] for column, kind in columns.items()}
    return SqlRows.of(DUCKDB, called, cast, ask)
