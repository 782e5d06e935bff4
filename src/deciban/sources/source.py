"""Sources: rows read in pieces, as often as needed, that need not fit into memory.

`Source` is the base class for files, queries, database tables, Spark tables and folders of documents. Each subclass is
in its own module and composes the parts it needs: DuckDB reads, cell formats, connections. This module also has pieces
whose size depends only on the table, and rows in an SQL engine.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import KW_ONLY, dataclass, field, replace
from difflib import get_close_matches
from itertools import chain
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa

from deciban.errors import Argument, DataError, DecibanError, Place, UsageError
from deciban.sources.dialects import Dialect
from deciban.sources.temporary import STANDARD_INPUT
from deciban.tables.cells import CellFormat, CellHabits, kind_of
from deciban.tables.row_sampling import LONG_ROWS, RowSampler, lowest_priorities, rows_that_fit
from deciban.tables.table import Frame
from deciban.util.arrays import Integers
from deciban.util.progress import Advance
from deciban.util.text_tables import list_some

# Function that processes one part of the rows and returns bytes; it must be picklable.
Work = Callable[[Iterable[pa.Table]], bytes]


@dataclass(frozen=True)
class ColumnType:
    """Type of a column, in DuckDB's names for types.

    own: original type; text in CSV files, empty for an unsupported type.
    wanted: type to read the column as, if given or inferred.
    sure: False if no cell has been seen yet.
    days: True if it contains dates without a time of day.
    cell_format: format of cells that are read as text and converted here.
    called: type name for messages.
    """

    own: str
    wanted: str = ""
    sure: bool = True
    days: bool = False
    cell_format: CellFormat | None = None
    called: str = ""

    @property
    def kind(self) -> str:
        """Type that the column is finally read as."""
        return self.wanted or self.own

    @property
    def in_duckdb(self) -> str:
        """Type that DuckDB reads the column as."""
        return "VARCHAR" if self.cell_format is not None else self.kind


Types = Mapping[str, ColumnType]


@dataclass(frozen=True)
class Source(ABC):
    """Rows that need not fit into memory. `tables` reads all rows in pieces, each time from the beginning.

    name: name in messages.
    columns: names of the columns.
    types: types of all columns, also ignored ones, if known before rows are read.
    files: files that are read.
    called: names of files in messages, for files that are read from a copy.
    ignored: columns that were left out.
    notes: notes on columns, by name.
    kept: temporary files, which are deleted with the source.
    """

    name: str
    columns: tuple[str, ...]
    _: KW_ONLY
    types: Types = field(default_factory=dict)
    files: tuple[Path, ...] = ()
    called: Mapping[str, str] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()
    notes: Mapping[str, str] = field(default_factory=dict)
    kept: tuple[Any, ...] = field(default=(), repr=False, compare=False)

    @abstractmethod
    def tables(self) -> Iterator[pa.Table]:
        """Yield all rows, piece by piece; at least one piece, which may be empty."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self.columns

    @property
    def expected(self) -> int | None:
        """Approximate number of rows, if known."""
        return None

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of all files that are read ("-" for standard input), which must not be overwritten."""
        called = (STANDARD_INPUT if name == "standard input" else name for name in self.called.values())
        return (*map(str, self.files), *called)

    @property
    def row_names(self) -> tuple[str, ...]:
        """Columns that identify a row: shown beside predictions and never learned."""
        return ()

    @property
    def elsewhere(self) -> bool:
        """True if the rows are on other machines and processed there."""
        return False

    @property
    def in_order(self) -> bool:
        """True if the rows have an order: those of files have, those of a query only with ORDER BY."""
        return bool(self.files)

    # Types of columns

    @property
    def typed(self) -> bool:
        """True if columns have their own types; if not, integers are read as doubles."""
        return True

    @property
    def has_types(self) -> bool:
        """True if the first rows determine the types of all columns."""
        return self.typed

    def looks_like(self, column: str) -> str:
        """Return the type of a column: VARCHAR, DOUBLE, BOOLEAN, TIMESTAMP or TIME; empty if unknown."""
        return kind_of(self.types[column].kind) if column in self.types else ""

    def with_types(self, types: Mapping[str, str]) -> Self:
        """Return the source with other DuckDB types for some columns."""
        self._refuse_unknown(types)
        wanted = {name: replace(self.types[name], wanted=kind) for name, kind in types.items()}
        return replace(self, types={**self.types, **wanted})

    def as_learned(self, types: Mapping[str, str], habit: CellHabits | None = None) -> Self:
        """Return the source with columns read as a model has learned them.

        types: Arrow types of columns.
        habit: cell formats learned from CSV files.
        """
        wanted = [name for name in self.names if name in self.types and kind_of(types.get(name, "")) == "VARCHAR"]
        others = [name for name in wanted if kind_of(self.types[name].own) != "VARCHAR"]
        return self.with_types(dict.fromkeys(others, "VARCHAR")) if others else self

    def as_text(self, columns: Sequence[str]) -> Self:
        """Return the source with columns read as text: text files unchanged, else only unsupported types."""
        unreadable = [name for name in columns if name in self.types and not self.types[name].kind]
        return self.with_types(dict.fromkeys(unreadable, "VARCHAR")) if unreadable else self

    def _refuse_unreadable(self) -> None:
        """Raise a DataError for columns of unsupported types."""
        for name in self.names:
            if not self.types[name].kind:
                message = f"column {name!r} has the unsupported type {self.types[name].called}"
                remedy = (
                    "cast it in the query, read it with ",
                    Argument("types", {name: "text"}),
                    ", or leave it out with ",
                    Argument("ignore"),
                )
                raise DataError(message, place=Place(self.name), remedy=remedy)

    def with_label_as_written(self, column: str) -> Self:
        """Return the source with classes that are dates read as text, if they come from text."""
        return self

    def resolve_types(self, sample: pa.Table) -> tuple[Self, pa.Table]:
        """Return the source and a sample, with types for columns whose first rows were empty."""
        return self, sample

    @property
    def learned_habit(self) -> CellHabits | None:
        """Formats of cells to store in a model; None if they are the default ones."""
        return None

    def cells_without_newline(self, column: str) -> tuple[str, ...]:
        """Return the cells of a column in last lines without a newline."""
        return ()

    # Rows

    def without(self, columns: Sequence[str]) -> Self:
        """Return the source without these columns."""
        self._refuse_unknown(columns)
        out = set(columns)
        left = tuple(name for name in self.columns if name not in out)
        return replace(self, columns=left, ignored=(*self.ignored, *columns))

    def with_ignored(self) -> Self:
        """Return the source with the columns that were left out."""
        order = {name: place for place, name in enumerate(self.types)}
        every = sorted((*self.columns, *self.ignored), key=lambda name: order.get(name, len(order)))
        return replace(self, columns=tuple(every), ignored=())

    def _refuse_unknown(self, columns: Iterable[str]) -> None:
        known = set(self.names)
        if unknown := [name for name in columns if name not in known]:
            near = get_close_matches(unknown[0], self.names, 1)
            hint = f"did you mean {near[0]!r}? The columns are" if near else "the columns are"
            raise UsageError(
                f"no column {unknown[0]!r}", place=Place(self.name), remedy=f"{hint} {list_some(self.names)}"
            )

    def table(self) -> pa.Table:
        """Read all rows into memory."""
        return self.resolve_types(pa.concat_tables(self.tables()))[1]

    def head(self, rows: int) -> pa.Table:
        """Return the first rows, at most the given number."""
        pieces, held = [], 0
        for piece in self.tables():
            pieces.append(piece)
            held += piece.num_rows
            if held >= rows:
                break
        return pa.concat_tables(pieces).slice(0, rows)

    def at(self, places: Sequence[int]) -> pa.Table:
        """Return the rows at these places, counted from 0; only these rows are held in memory."""
        found: dict[int, pa.Table] = {}
        first = 0
        for piece in self.tables():
            here = [place for place in places if first <= place < first + piece.num_rows]
            found |= {place: piece.slice(place - first, 1) for place in here}
            first += piece.num_rows
            if first > max(places):
                break
        return pa.concat_tables([found[place] for place in places if place in found] or [piece.slice(0, 0)])

    def beside_text(self) -> Iterator[tuple[pa.Table, pa.Table]]:
        """Yield pairs of pieces: rows, and the same rows with cells of CSV files as text."""
        return ((table, table) for table in self.tables())

    def sample(self, max_rows: int, advance: Advance, labels: Sequence[str] = ()) -> tuple[pa.Table, int]:
        """Draw a random sample of at most `max_rows` rows (fewer if they are long), and count all rows.

        The sample is the same as that of the table in memory. labels: columns of labels and weights, which are separate
        there.
        """
        sampler, size = RowSampler(max_rows), 0
        cells = [name for name in self.names if name not in labels]
        for table in self.tables():
            sampler.add(table, Frame(table.select([*cells, *labels])).hashes)
            size += table.nbytes
            sampler.max_rows = min(sampler.max_rows, rows_that_fit(max_rows, size / max(sampler.rows, 1)))
            advance(table.num_rows)
        return sampler.table(), sampler.rows

    def each_part(self, work: Work) -> Iterator[bytes]:
        """Yield the results of `work` for each part of the rows, in order."""
        yield work(self.tables())

    def sql(self) -> AbstractContextManager["SqlRows"]:
        """Return the rows in their SQL engine; all queries see the same rows.

        Raises a UsageError if no engine has the rows.
        """
        raise UsageError(
            "these rows are not in a database",
            parameter=Argument("pushdown", True),
            remedy=("leave ", Argument("pushdown"), " out to read and count them here"),
        )

    def sample_in_engine(self, max_rows: int, advance: Advance, labels: Sequence[str] = ()) -> tuple[pa.Table, int]:
        """Draw the same rows as `sample`, inside the engine if possible."""
        return self.sample(max_rows, advance, labels)

    def steady(self) -> AbstractContextManager[None]:
        """Return a context in which every pass reads the same rows, even if others change them."""
        return nullcontext()

    def locate_errors(self) -> AbstractContextManager[None]:
        """Return a context in which errors about rows name their source."""
        return _add_source_to_errors(self.name)


@contextmanager
def _add_source_to_errors(source: str) -> Iterator[None]:
    try:
        yield
    except DecibanError as problem:
        problem.add_place(source=source)
        raise


def is_sorted_query(query: str) -> bool:
    """Return True if a query sorts its rows."""
    return re.search(r"\border\s+by\b", query, re.IGNORECASE) is not None


def duplicate_column_error(column: str, source: str | None = None) -> DataError:
    """Return the error for a table with two columns of one name."""
    message = f"duplicate column {column!r}"
    return DataError(message, place=Place(source), remedy="give each column a unique name")


# Maximum number of rows in a piece.
STREAM_ROWS = 3 << 13

# Maximum size of a piece in bytes.
STREAM_BYTES = 12 << 20

# Maximum number of cells in a piece.
STREAM_CELLS = 1 << 21

# Rows in one vector of DuckDB.
VECTOR_ROWS = 2048

# First rows, from which the size of rows is estimated.
MEASURED_ROWS = 1024


def rows_of_piece(row_bytes: float, columns: int) -> int:
    """Return the number of rows per piece. row_bytes: size of a row, 0 if unknown."""
    few = int(STREAM_BYTES / max(row_bytes, 1.0))
    rows = min(STREAM_ROWS, max(256, min(few, STREAM_CELLS // max(columns, 1))))
    return rows - rows % VECTOR_ROWS if rows > VECTOR_ROWS else rows  # whole vectors are not copied


def in_pieces(batches: Iterable[pa.RecordBatch], size: int, schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield rows in pieces of one size, however the batches are split; at least one piece.

    So sums are identical on all machines and for any number of threads.
    """
    held, rows, empty = list[pa.RecordBatch](), 0, True
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        if rows < size:
            continue
        table = pa.Table.from_batches(held)  # not after every batch: that would take quadratic time
        while table.num_rows >= size:
            empty = False
            yield table.slice(0, size).combine_chunks()
            table = table.slice(size)
        held, rows = table.to_batches(), table.num_rows
    if rows or empty:
        yield (pa.Table.from_batches(held) if rows else schema.empty_table()).combine_chunks()


def in_measured_pieces(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    """Yield rows in pieces of one size, derived from the first rows; at least one piece."""
    coming, first, rows = iter(batches), [], 0
    for batch in coming:
        first.append(batch)
        rows += batch.num_rows
        if rows >= MEASURED_ROWS:
            break
    shown = pa.Table.from_batches(first, schema).slice(0, MEASURED_ROWS)
    size = rows_of_piece(shown.nbytes / max(shown.num_rows, 1), len(schema))
    return in_pieces(chain(first, coming), size, schema)


@dataclass(frozen=True)
class SqlColumn:
    """Column in an engine: its SQL expression, and the Arrow type of its cells when read."""

    sql: str
    type: pa.DataType


@dataclass(frozen=True)
class SqlRows:
    """Rows in an SQL engine.

    dialect: SQL dialect of the engine.
    source: the rows as in FROM, with an alias.
    columns: columns by the names that users know.
    ask: function that returns the result of a query; errors are translated.
    fragile: True if an error would abort the user's transaction.
    """

    dialect: Dialect
    source: str
    columns: Mapping[str, SqlColumn]
    ask: Callable[[str], pa.Table]
    fragile: bool = False

    @classmethod
    def of(cls, dialect: Dialect, source: str, columns: Mapping[str, str], ask: Callable[[str], pa.Table]) -> "SqlRows":
        """Describe the rows of a source. columns: SQL expression of each column."""
        shown = ", ".join(f"{sql} AS c{k}" for k, sql in enumerate(columns.values()))
        kinds = ask(f"SELECT {shown} FROM {source} LIMIT 0").schema.types
        found = {name: SqlColumn(sql, kind) for (name, sql), kind in zip(columns.items(), kinds, strict=True)}
        return cls(dialect, source, found, ask)


def sample_by_content(rows: SqlRows, max_rows: int, content: str) -> tuple[pa.Table, int]:
    """Draw at most `max_rows` rows (fewer if they are long) and count all rows, as `Source.sample` does.

    content: SQL expression for the hash of a row's content, equal to `content_hashes`.
    """
    shown = ", ".join(f"{column.sql} AS c{k}" for k, column in enumerate(rows.columns.values()))
    size = int(rows.ask(f"SELECT count(*) FROM {rows.source}").column(0)[0].as_py())
    first = rows.ask(f"SELECT {shown} FROM {rows.source} LIMIT {LONG_ROWS}")
    max_rows = rows_that_fit(max_rows, first.nbytes / max(first.num_rows, 1))
    if size <= max_rows:
        return rows.ask(f"SELECT {shown} FROM {rows.source}").rename_columns(list(rows.columns)), size
    hashes, counts = _frequent_or_low(rows, max_rows, size, content)
    drawn, _ = lowest_priorities(hashes.view(np.uint64), counts, max_rows)
    wanted, place = np.unique(drawn, return_inverse=True)
    of_them = f"SELECT {shown}, {content} AS content FROM {rows.source}"
    numbered = f"SELECT *, row_number() OVER (PARTITION BY content) AS copy FROM ({of_them}) AS hashed"
    among = f"content IN ({rows.dialect.rows_of(hashes[wanted].tolist())})"
    one_of_each = rows.ask(f"SELECT * FROM ({numbered} WHERE {among}) AS numbered WHERE copy = 1")
    found = one_of_each["content"].to_numpy()
    order = np.argsort(found)[np.searchsorted(np.sort(found), hashes[wanted])]
    table = one_of_each.drop_columns(["content", "copy"]).rename_columns(list(rows.columns))
    return table.take(pa.array(order[place])), size


def _frequent_or_low(rows: SqlRows, max_rows: int, size: int, content: str) -> tuple[Integers, Integers]:
    """Return the contents of at least `max_rows` rows with the lowest priorities, and their row counts."""
    lot = "(CAST((content >> 11) & 9007199254740991 AS float8) + 0.5)"
    counted = f"SELECT content, count(*) AS copies FROM (SELECT {content} AS content FROM {rows.source}) AS hashed"
    limit = (max_rows + 6.0 * max_rows**0.5 + 16.0) / size
    while True:
        within = f"{lot} <= {rows.dialect.number(limit * 2.0**53)} * count(*)"
        found = rows.ask(f"{counted} GROUP BY content HAVING {within}")
        hashes, counts = found["content"].to_numpy().astype(np.int64), found["copies"].to_numpy().astype(np.int64)
        lots = ((hashes.view(np.uint64) >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
        if np.minimum(np.floor(counts * limit - lots) + 1.0, counts).sum() >= max_rows or limit >= 1.0:
            return hashes, counts
        limit *= 2.0
