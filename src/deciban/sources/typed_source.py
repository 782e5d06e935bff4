"""Sources whose columns have types, each of which may be read as another."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

import pyarrow as pa

from deciban.sources.stream import Source
from deciban.tables.cell_formats import CellFormat
from deciban.tables.text_types import kind_of


@dataclass(frozen=True)
class ColumnType:
    """What one column is, in DuckDB's names for types.

    own: what it is by itself; a column of a CSV file is text. wanted: what it is read as, where that is said or was
    found. sure: False where no cell of it was seen yet. days: whether it holds dates without a time of the day.
    cell_format: how its cells are written, where they are read as text and converted here.
    """

    own: str
    wanted: str = ""
    sure: bool = True
    days: bool = False
    cell_format: CellFormat | None = None

    @property
    def kind(self) -> str:
        """What the column is read as, in the end."""
        return self.wanted or self.own

    @property
    def in_duckdb(self) -> str:
        """What DuckDB reads it as."""
        return "VARCHAR" if self.cell_format is not None else self.kind


Types = Mapping[str, ColumnType]


@dataclass(frozen=True)
class TypedSource(Source):
    """A source that knows the types of its columns.

    types: those of all columns, also of those that were left out.
    """

    types: Types

    def with_types(self, types: Mapping[str, str]) -> Self:
        """Read some columns as another type of DuckDB's."""
        self._refuse_unknown(types)
        wanted = {name: replace(self.types[name], wanted=kind) for name, kind in types.items()}
        return replace(self, types={**self.types, **wanted})

    def looks_like(self, column: str) -> str:
        return kind_of(self.types[column].kind) if column in self.types else ""

    def reading_as(self, types: Mapping[str, str]) -> Self:
        own = {name: kind_of(self.types[name].own) for name in self.names if kind_of(types.get(name, "")) == "VARCHAR"}
        wanted = {name: "VARCHAR" for name, kind in own.items() if kind != "VARCHAR"}
        return self.with_types(wanted) if wanted else self

    def resolve_types(self, sample: pa.Table) -> tuple[Self, pa.Table]:
        return self, sample
