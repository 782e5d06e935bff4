"""What sources in databases have in common: types that the database has names for, some of which cannot be learned."""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import pyarrow as pa

from deciban.errors import BadCell, DataError, UsageError, naming_source
from deciban.sources.pieces import in_measured_pieces
from deciban.sources.relations import rows_of_relation
from deciban.sources.sql_rows import SqlRows
from deciban.sources.typed_source import ColumnType, TypedSource
from deciban.tables.arrow import repeated
from deciban.tables.cell_formats import ARROW, CellFormat
from deciban.tables.cell_numbers import is_text, plain_type
from deciban.tables.text_types import kind_of

# What columns are converted to that are to be of another type than they are, and are no text.
AS_ARROW = {**ARROW, "VARCHAR": pa.string(), "TIME": pa.time64("us")}


@dataclass(frozen=True)
class DatabaseType(ColumnType):
    """What one column is; its own type is empty where it cannot be learned. called: the name that the user knows."""

    called: str = ""


@dataclass(frozen=True)
class DatabaseSource(TypedSource):
    """Rows in a database."""

    types: Mapping[str, DatabaseType]

    @property
    def expected(self) -> int | None:
        return None

    def as_text(self, columns: Sequence[str]) -> Self:
        """Only those that cannot be read otherwise: others are what they are in the database."""
        return self.with_types({name: "VARCHAR" for name in columns if not self.types[name].kind})

    def _refuse_unreadable(self) -> None:
        for name in self.names:
            if not self.types[name].kind:
                problem = f"column {name!r} is {self.types[name].called}, which is neither a number, a text nor a date"
                remedy = f"cast it in the query, read it with types={{{name!r}: 'text'}}, or leave it out with ignore="
                raise naming_source(DataError(f"{self.name}: {problem}; {remedy}"))


class Answer(NamedTuple):
    """The columns of a stream, and its rows."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]


@dataclass(frozen=True)
class ArrowSource(DatabaseSource):
    """Rows that come as Arrow's batches; columns that are to be of another type are converted here."""

    @abstractmethod
    def _asked(self) -> AbstractContextManager[Answer]:
        """Rows with the columns of this source, and perhaps more."""

    def tables(self) -> Iterator[pa.Table]:
        self._refuse_unreadable()
        with self._asked() as answer:
            first_row = 1
            for piece in in_measured_pieces(answer.batches, answer.schema):
                columns = [self._as_wanted(name, piece[name], first_row) for name in self.names]
                yield pa.Table.from_arrays(columns, names=list(self.names))
                first_row += piece.num_rows

    def sql(self) -> AbstractContextManager[SqlRows]:
        """The rows as DuckDB has them, if it is DuckDB that has them."""
        self._refuse_unreadable()
        if (relation := self._relation()) is None:
            return super().sql()
        return nullcontext(
            rows_of_relation(relation, self.name, {name: self.types[name].wanted for name in self.names})
        )

    def _relation(self) -> Any:
        """The relation of DuckDB that these rows are; None where another engine has them."""
        return None

    def _as_wanted(self, name: str, cells: pa.ChunkedArray, first_row: int) -> pa.ChunkedArray:
        kind = self.types[name].wanted
        if not kind or kind_of(str(plain_type(cells.type))) == kind:
            return cells
        try:
            if is_text(plain_type(cells.type)):
                return CellFormat(kind, markers=False).read(cells.cast(pa.string()))
            return cells.cast(AS_ARROW[kind])
        except BadCell as bad:
            raise bad.as_error(name, first_row) from None
        except pa.ArrowException as problem:
            raise DataError(f"column {name!r}: {problem}; read it as what it is, {cells.type}") from None


def distinct_names(names: Iterable[str], place: str) -> list[str]:
    """The names of columns; a UsageError where there are none, a DataError where two are one."""
    found = list(names)
    if not found:
        raise naming_source(UsageError(f"{place}: it gives no columns; give a query that selects some"))
    if (twice := repeated(found)) is not None:
        problem = f"column {twice!r} is there more than once; give every column its own name"
        raise naming_source(DataError(f"{place}: {problem}"))
    return found


def types_of(kinds: Mapping[str, pa.DataType]) -> dict[str, DatabaseType]:
    """Types that Arrow knows."""
    names = {name: str(plain_type(kind)) for name, kind in kinds.items()}
    return {name: DatabaseType(kind_of(kind) or kind, called=kind) for name, kind in names.items()}
