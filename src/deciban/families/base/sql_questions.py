"""Questions of a family to an SQL engine: numbers computed from cells, and statistics of these numbers.

A family asks them in `count_in_sql`. `fitting.sql_counts` collects the questions of all column groups, asks each of
them once, and builds the statistics.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from deciban.statistics import Bins, Moments, Scatter, Totals
from deciban.util.arrays import TOO_LARGE, Codes, Floats

Statistic_co = TypeVar("Statistic_co", covariant=True)

# Function that returns a statistic after the engine has answered.
Later = Callable[[], Statistic_co]


class SqlWriter(Protocol):
    """Part of an SQL dialect that writes numbers."""

    def number(self, value: float) -> str:
        """Return a double, exactly."""
        ...

    def is_whole(self, number: str) -> str:
        """Return a condition: a double has no fraction."""
        ...


@dataclass(frozen=True)
class Number:
    """The cell of a column as a number."""

    column: int

    def sql(self, write: SqlWriter, cell: str) -> str:
        """Return the number, given the cell as a double without NaN; NULL where it is missing."""
        return cell

    def of(self, cells: Floats) -> Floats:
        """Return the numbers of cells in memory."""
        return cells


@dataclass(frozen=True)
class Logarithm(Number):
    """The logarithm of a cell above 0; others are missing."""

    def sql(self, write: SqlWriter, cell: str) -> str:
        return f"CASE WHEN {cell} > {write.number(0.0)} THEN ln({cell}) END"

    def of(self, cells: Floats) -> Floats:
        return np.log(np.where(cells > 0.0, cells, np.nan))


@dataclass(frozen=True)
class Positive(Number):
    """A cell above 0; others are missing."""

    def sql(self, write: SqlWriter, cell: str) -> str:
        return f"CASE WHEN {cell} > {write.number(0.0)} THEN {cell} END"

    def of(self, cells: Floats) -> Floats:
        return np.where(cells > 0.0, cells, np.nan)


@dataclass(frozen=True)
class Flag(Number):
    """1 if a cell is above a cut, 0 if it is not."""

    cut: float

    def sql(self, write: SqlWriter, cell: str) -> str:
        one, zero, cut = map(write.number, (1.0, 0.0, self.cut))
        return f"CASE WHEN {cell} > {cut} THEN {one} WHEN {cell} <= {cut} THEN {zero} END"


@dataclass(frozen=True)
class Event(Number):
    """A count 0, 1, 2, ...; other cells are missing."""

    def sql(self, write: SqlWriter, cell: str) -> str:
        return f"CASE WHEN {cell} >= {write.number(0.0)} AND {write.is_whole(cell)} THEN {cell} END"


@dataclass(frozen=True)
class Amount(Number):
    """A cell, limited so that sums stay finite."""

    def sql(self, write: SqlWriter, cell: str) -> str:
        largest = write.number(float(TOO_LARGE))
        return f"CASE WHEN {cell} > {largest} THEN {largest} ELSE {cell} END"


@dataclass(frozen=True)
class Interval(Number):
    """The index of the interval between ascending cuts that contains a cell."""

    cuts: tuple[float, ...]

    def sql(self, write: SqlWriter, cell: str) -> str:
        below = " ".join(f"WHEN {cell} < {write.number(cut)} THEN {k}" for k, cut in enumerate(self.cuts))
        return f"CASE {below} WHEN {cell} IS NOT NULL THEN {len(self.cuts)} END"


class DistinctRows(NamedTuple):
    """Rows with the same cells and class as one row with their weight: the arguments of `Family.count`."""

    cells: list[pa.Array]
    labels: Codes
    weights: Floats
    classes: int


class SqlQuestions(Protocol):
    """Statistics that SQL can count.

    Each method records a question, and returns a function that builds the statistic after the engine has answered.
    """

    def moments(self, numbers: Sequence[Number]) -> Later[Moments]:
        """Ask for the moments of numbers."""
        ...

    def totals(self, numbers: Sequence[Number], whole: bool = False) -> Later[Totals]:
        """Ask for the totals of numbers. whole: look for cells that are not whole numbers, which `count` rejects."""
        ...

    def bins(self, numbers: Sequence[Number]) -> Later[Bins]:
        """Ask for the bins of numbers."""
        ...

    def scatter(self, numbers: Sequence[Number]) -> Later[Scatter]:
        """Ask for the scatter matrices of a block of numbers."""
        ...

    def values(self, columns: Sequence[int]) -> Later[list[DistinctRows]]:
        """Ask for the distinct values of each column."""
        ...

    def tuples(self, members: Sequence[int | Number]) -> Later[DistinctRows]:
        """Ask for the distinct combinations of columns, as their values are or as numbers."""
        ...
