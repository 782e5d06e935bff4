"""Tables that come piece by piece, as often as they are asked for."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Self

import pyarrow as pa

from deciban.errors import DecibanError, UsageError, naming_source
from deciban.sources.sql_rows import SqlRows
from deciban.sources.temporary import STANDARD_INPUT
from deciban.tables.cell_formats import CellHabits
from deciban.tables.row_sampling import RowSampler, rows_that_fit
from deciban.tables.table import Frame
from deciban.util.progress import Advance

# What is made of the rows of a part of a stream, wherever that is; it can be pickled.
Work = Callable[[Iterable[pa.Table]], bytes]


class Stream(ABC):
    """Rows that need not fit into memory.

    ignored: columns that were left out. notes: what is to be said of columns, by name.
    """

    ignored: tuple[str, ...] = ()
    notes: Mapping[str, str] = MappingProxyType({})

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""

    @property
    @abstractmethod
    def expected(self) -> int | None:
        """About how many rows there are, if that is known."""

    @property
    def typed(self) -> bool:
        """Whether the columns have types of their own; if not, whole numbers are read as doubles."""
        return True

    @abstractmethod
    def tables(self) -> Iterator[pa.Table]:
        """All rows, piece by piece; at least one piece, which may be empty."""

    @abstractmethod
    def reading_as(self, types: Mapping[str, str]) -> "Stream":
        """Read the columns as a model has learned them (Arrow's types), where they look like something else here."""

    @abstractmethod
    def resolve_types(self, sample: pa.Table) -> tuple["Stream", pa.Table]:
        """The stream and a sample of its rows, with types for the columns whose first rows were empty."""

    @abstractmethod
    def naming(self) -> AbstractContextManager[None]:
        """While it lasts, errors about rows name their source."""

    def steady(self) -> AbstractContextManager[None]:
        """While it lasts, every pass reads the same rows, also where others change them meanwhile."""
        return nullcontext()

    @property
    def learned_habit(self) -> CellHabits | None:
        """How its cells are written, for a model to remember; None where they are written in the usual way."""
        return None

    def unfinished(self, column: str) -> tuple[str, ...]:
        """Cells of a column in last lines of files that have no end."""
        return ()

    def sql(self) -> AbstractContextManager[SqlRows]:
        """The rows as an engine has them that answers SQL, all of whose answers are about the same rows while it lasts;
        a UsageError where there is none."""
        raise UsageError("where='engine': no engine has these rows; leave where= out, and they are read and counted")

    def sample_in_engine(self, most: int, advance: Advance, labels: Sequence[str] = ()) -> tuple[pa.Table, int]:
        """What `sample` draws, without reading the other rows if the engine can draw them."""
        return self.sample(most, advance, labels)

    def table(self) -> pa.Table:
        """All rows in memory."""
        return self.resolve_types(pa.concat_tables(self.tables()))[1]

    @property
    def elsewhere(self) -> bool:
        """Whether the rows are on other machines, where they are worked on; else `tables` reads them."""
        return False

    def each_part(self, work: Work) -> Iterator[bytes]:
        """What `work` makes of each part of the rows, in the order of the parts."""
        yield work(self.tables())

    def sample(self, most: int, advance: Advance, labels: Sequence[str] = ()) -> tuple[pa.Table, int]:
        """A random sample of at most so many rows (fewer if they are long), and how many rows there are.

        It has the rows that a sample of the same table in memory has: `labels` are the columns of labels and weights,
        which are beside the other cells there.
        """
        sampler, size = RowSampler(most), 0
        cells = [name for name in self.names if name not in labels]
        for table in self.tables():
            sampler.add(table, Frame(table.select([*cells, *labels])).hashes)
            size += table.nbytes
            sampler.most = min(sampler.most, rows_that_fit(most, size / max(sampler.rows, 1)))
            advance(table.num_rows)
        return sampler.table(), sampler.rows


@dataclass(frozen=True)
class Source(Stream):
    """A stream of something that the user calls by a name: files, a query, a folder of documents.

    name: what the user calls it. columns: their names. files: those that are read. called: what the user calls files
    that are read elsewhere. ignored: columns that were left out. notes: what is to be said of columns.
    """

    name: str
    columns: tuple[str, ...]
    _: KW_ONLY
    files: tuple[Path, ...] = ()
    called: Mapping[str, str] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()
    notes: Mapping[str, str] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        return self.columns

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of all files that are read, "-" for standard input: none of them is to be overwritten."""
        called = (STANDARD_INPUT if name == "standard input" else name for name in self.called.values())
        return (*map(str, self.files), *called)

    @property
    def has_types(self) -> bool:
        """Whether the first rows tell all there is to know of the types of columns."""
        return self.typed

    @property
    def row_names(self) -> tuple[str, ...]:
        """Columns that name a row and say nothing of it: they are shown beside a prediction and never learned."""
        return ()

    def looks_like(self, column: str) -> str:
        """What a column is by itself: VARCHAR, DOUBLE, BOOLEAN, TIMESTAMP or TIME; nothing if nobody can say."""
        return ""

    @abstractmethod
    def reading_as(self, types: Mapping[str, str]) -> "Source": ...

    def with_habit(self, habit: CellHabits) -> Self:
        """Read cells as a model has learned to, where they are read from text."""
        return self

    def as_text(self, columns: Sequence[str]) -> Self:
        """Leave some columns as they are written, where they are written at all."""
        return self

    def with_label_as_written(self, column: str) -> Self:
        """Classes that are dates are taken as they are written, where they are written at all."""
        return self

    def without(self, columns: Sequence[str]) -> Self:
        """Leave some columns out."""
        self._refuse_unknown(columns)
        out = set(columns)
        left = tuple(name for name in self.columns if name not in out)
        return replace(self, columns=left, ignored=(*self.ignored, *columns))

    def _refuse_unknown(self, columns: Iterable[str]) -> None:
        known = set(self.names)
        if unknown := [name for name in columns if name not in known]:
            there = f"there is no column {unknown[0]!r}; there are {', '.join(self.names)}"
            raise naming_source(UsageError(f"{self.name}: {there}"))

    def beside_text(self) -> Iterator[tuple[pa.Table, pa.Table]]:
        """All rows, piece by piece, and beside each piece the same with cells of a CSV file as they are written."""
        return ((table, table) for table in self.tables())

    def head(self, rows: int) -> pa.Table:
        """The first rows, so many if there are."""
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

    @contextmanager
    def naming(self) -> Iterator[None]:
        try:
            yield
        except DecibanError as problem:
            if problem.names_source:
                raise
            raise naming_source(type(problem)(f"{self.name}: {problem}")) from problem
