"""Sources: rows that need not fit into memory, read in pieces as often as they are asked for.

`Source` is what all of them are: files, queries, tables of databases and of Spark, folders of documents. Each kind is
one class below it, in a module of its own, which composes the parts that it needs: DuckDB's reads, formats of cells,
connections. Below are pieces of a size that depends on the table alone, and rows that an engine answers SQL about.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import KW_ONLY, dataclass, field, replace
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

# Returns what is made of the rows of a part of a source, wherever that is; it can be pickled.
Work = Callable[[Iterable[pa.Table]], bytes]


@dataclass(frozen=True)
class ColumnType:
    """The type of one column, in DuckDB's names for types.

    own: the type it has by itself; a column of a CSV file is text, and one that cannot be learned has none. wanted: the
    type it is read as, where that is given or was found. sure: False where no cell of it was seen yet. days: whether it
    holds dates without a time of the day. cell_format: how its cells are written, where they are read as text and
    converted here. called: the name of the type that users of a database know.
    """

    own: str
    wanted: str = ""
    sure: bool = True
    days: bool = False
    cell_format: CellFormat | None = None
    called: str = ""

    @property
    def kind(self) -> str:
        """The type that the column is read as, in the end."""
        return self.wanted or self.own

    @property
    def in_duckdb(self) -> str:
        """The type that DuckDB reads it as."""
        return "VARCHAR" if self.cell_format is not None else self.kind


Types = Mapping[str, ColumnType]


@dataclass(frozen=True)
class Source(ABC):
    """Rows that need not fit into memory: `tables` reads all of them in pieces, each time from the first one.

    name: what the user calls it. columns: their names. types: of all columns, also of those that were left out, where
    they are known before rows are read. files: those that are read. called: what the user calls files that are read
    elsewhere. ignored: columns that were left out. notes: remarks on columns, by name. kept: temporary files, which are
    deleted when nobody reads them any more.
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
        """All rows, piece by piece; at least one piece, which may be empty."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self.columns

    @property
    def expected(self) -> int | None:
        """About how many rows there are, if that is known."""
        return None

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of all files that are read, "-" for standard input: none of them is to be overwritten."""
        called = (STANDARD_INPUT if name == "standard input" else name for name in self.called.values())
        return (*map(str, self.files), *called)

    @property
    def row_names(self) -> tuple[str, ...]:
        """Columns that name a row: they are shown beside a prediction and never learned."""
        return ()

    @property
    def elsewhere(self) -> bool:
        """Whether the rows are on other machines, where they are worked on; else `tables` reads them."""
        return False

    # Types of columns

    @property
    def typed(self) -> bool:
        """Whether the columns have types of their own; if not, whole numbers are read as doubles."""
        return True

    @property
    def has_types(self) -> bool:
        """Whether the first rows show all there is to know of the types of columns."""
        return self.typed

    def looks_like(self, column: str) -> str:
        """The type of a column: VARCHAR, DOUBLE, BOOLEAN, TIMESTAMP or TIME; empty if it is not known."""
        return kind_of(self.types[column].kind) if column in self.types else ""

    def with_types(self, types: Mapping[str, str]) -> Self:
        """Read some columns as another type of DuckDB's."""
        self._refuse_unknown(types)
        wanted = {name: replace(self.types[name], wanted=kind) for name, kind in types.items()}
        return replace(self, types={**self.types, **wanted})

    def as_learned(self, types: Mapping[str, str], habit: CellHabits | None = None) -> Self:
        """Read the columns as a model has learned them, where they look like something else here.

        types: Arrow's types of columns. habit: how the cells of CSV files were written.
        """
        wanted = [name for name in self.names if name in self.types and kind_of(types.get(name, "")) == "VARCHAR"]
        others = [name for name in wanted if kind_of(self.types[name].own) != "VARCHAR"]
        return self.with_types(dict.fromkeys(others, "VARCHAR")) if others else self

    def as_text(self, columns: Sequence[str]) -> Self:
        """Read some columns as text: of text files as they are written, else only those that are not readable."""
        unreadable = [name for name in columns if name in self.types and not self.types[name].kind]
        return self.with_types(dict.fromkeys(unreadable, "VARCHAR")) if unreadable else self

    def _refuse_unreadable(self) -> None:
        """Refuse columns of types that cannot be learned."""
        for name in self.names:
            if not self.types[name].kind:
                said = f"column {name!r} is {self.types[name].called}, which is neither a number, a text nor a date"
                remedy = (
                    "cast it in the query, read it with ",
                    Argument("types", {name: "text"}),
                    ", or leave it out with ",
                    Argument("ignore"),
                )
                raise DataError(said, place=Place(self.name), remedy=remedy)

    def with_label_as_written(self, column: str) -> Self:
        """Read classes that are dates as they are written, where they are written at all."""
        return self

    def resolve_types(self, sample: pa.Table) -> tuple[Self, pa.Table]:
        """Return the source and a sample of its rows, with types for the columns whose first rows were empty."""
        return self, sample

    @property
    def learned_habit(self) -> CellHabits | None:
        """How its cells are written, for a model to remember; None where they are written in the usual way."""
        return None

    def cells_without_newline(self, column: str) -> tuple[str, ...]:
        """Cells of a column in last lines of files that have no end."""
        return ()

    # Rows

    def without(self, columns: Sequence[str]) -> Self:
        """Leave some columns out."""
        self._refuse_unknown(columns)
        out = set(columns)
        left = tuple(name for name in self.columns if name not in out)
        return replace(self, columns=left, ignored=(*self.ignored, *columns))

    def _refuse_unknown(self, columns: Iterable[str]) -> None:
        known = set(self.names)
        if unknown := [name for name in columns if name not in known]:
            there = f"no column {unknown[0]!r}; the columns are {', '.join(self.names)}"
            raise UsageError(there, place=Place(self.name))

    def table(self) -> pa.Table:
        """All rows in memory."""
        return self.resolve_types(pa.concat_tables(self.tables()))[1]

    def head(self, rows: int) -> pa.Table:
        """The given number of first rows, if there are as many."""
        pieces, held = [], 0
        for piece in self.tables():
            pieces.append(piece)
            held += piece.num_rows
            if held >= rows:
                break
        return pa.concat_tables(pieces).slice(0, rows)

    def at(self, places: Sequence[int]) -> pa.Table:
        """The rows at these places, counted from 0, as far as there are such; no more is held than they."""
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
        """All rows, piece by piece, and beside each piece the same with cells of a CSV file as they are written."""
        return ((table, table) for table in self.tables())

    def sample(self, max_rows: int, advance: Advance, labels: Sequence[str] = ()) -> tuple[pa.Table, int]:
        """A random sample of at most `max_rows` rows (fewer if they are long), and how many rows there are.

        It has the rows that a sample of the same table in memory has: `labels` are the columns of labels and weights,
        which are beside the other cells there.
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
        """The results of `work` for each part of the rows, in the order of the parts."""
        yield work(self.tables())

    def sql(self) -> AbstractContextManager["SqlRows"]:
        """The rows as an engine has them that answers SQL, all of whose answers are about the same rows while it lasts;
        a UsageError where there is none."""
        raise UsageError(
            "no engine has these rows",
            parameter=Argument("pushdown", True),
            remedy=("leave ", Argument("pushdown"), " out, and they are read and counted"),
        )

    def sample_in_engine(self, max_rows: int, advance: Advance, labels: Sequence[str] = ()) -> tuple[pa.Table, int]:
        """The same as `sample`, without reading the other rows if the engine can draw them."""
        return self.sample(max_rows, advance, labels)

    def steady(self) -> AbstractContextManager[None]:
        """While it lasts, every pass reads the same rows, also where others change them meanwhile."""
        return nullcontext()

    def locate_errors(self) -> AbstractContextManager[None]:
        """While it lasts, errors about rows name their source."""
        return _add_source_to_errors(self.name)


@contextmanager
def _add_source_to_errors(source: str) -> Iterator[None]:
    try:
        yield
    except DecibanError as problem:
        problem.about(source=source)
        raise


def duplicate_column_error(column: str, source: str | None = None) -> DataError:
    """The error of a table that has two columns of one name."""
    said = f"duplicate column {column!r}"
    return DataError(said, place=Place(source), remedy="give each column a unique name")


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
    held, rows, empty = list[pa.RecordBatch](), 0, True
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        if rows < size:
            continue
        table = pa.Table.from_batches(held)  # not after every batch: of many short ones, that would take the square
        while table.num_rows >= size:
            empty = False
            yield table.slice(0, size).combine_chunks()
            table = table.slice(size)
        held, rows = table.to_batches(), table.num_rows
    if rows or empty:
        yield (pa.Table.from_batches(held) if rows else schema.empty_table()).combine_chunks()


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


@dataclass(frozen=True)
class SqlColumn:
    """A column of such rows: how SQL writes it, and the type of Arrow that its cells have when they are read."""

    sql: str
    type: pa.DataType


@dataclass(frozen=True)
class SqlRows:
    """Rows in an engine that answers SQL.

    dialect: how the engine writes SQL. source: what stands behind FROM, with a name of its own. columns: by the names
    that users know. ask: the whole answer to a query; errors of the engine are ours by then. fragile: whether an error
    would undo what the user has done before, in the same transaction.
    """

    dialect: Dialect
    source: str
    columns: Mapping[str, SqlColumn]
    ask: Callable[[str], pa.Table]
    fragile: bool = False

    @classmethod
    def of(cls, dialect: Dialect, source: str, columns: Mapping[str, str], ask: Callable[[str], pa.Table]) -> "SqlRows":
        """The rows of a source, whose columns are given as SQL writes them; their types are those of an answer."""
        shown = ", ".join(f"{sql} AS c{k}" for k, sql in enumerate(columns.values()))
        kinds = ask(f"SELECT {shown} FROM {source} LIMIT 0").schema.types
        found = {name: SqlColumn(sql, kind) for (name, sql), kind in zip(columns.items(), kinds, strict=True)}
        return cls(dialect, source, found, ask)


def sample_by_content(rows: SqlRows, max_rows: int, content: str) -> tuple[pa.Table, int]:
    """Draw at most `max_rows` rows (fewer if they are long) and count all rows, as `Source.sample` does.

    content: how SQL writes the hash of what a row holds, as `content_hashes` has it.
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
    """The contents of which so many rows at least have the lowest priorities, and how many rows have each."""
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
