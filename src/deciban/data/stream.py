"""Tables that come piece by piece, as often as they are asked for."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager

import pyarrow as pa

from deciban.data.drawing import Drawing
from deciban.progress import Advance


class Stream(ABC):
    """Rows that need not fit into memory."""

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """Of the columns."""

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
    def settled(self, sample: pa.Table) -> tuple["Stream", pa.Table]:
        """The stream and rows of it, when these have said what the columns are of which nothing was known."""

    @abstractmethod
    def naming(self) -> AbstractContextManager[None]:
        """While it lasts, errors about rows name their source."""

    def table(self) -> pa.Table:
        """All rows in memory."""
        return self.settled(pa.concat_tables(self.tables()))[1]

    def sample(self, most: int, advance: Advance) -> tuple[pa.Table, int]:
        """Rows drawn by lot, at most so many, and how many rows there are; the same that a table in memory draws."""
        drawing = Drawing(most)
        for table in self.tables():
            drawing.add(table)
            advance(table.num_rows)
        return drawing.table(), drawing.rows
