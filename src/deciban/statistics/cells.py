"""Counts of real columns on dyadic cells."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from deciban import kernels
from deciban.arrays import Codes, Floats, Integers, Numbers, placed, summed
from deciban.statistics.base import remaining

# The most cells kept for a column, and the binary digits of a cell's number: together they set the resolution.
MOST_CELLS = 1024
CELL_DIGITS = 48


@dataclass(frozen=True)
class Column:
    """The occupied cells of one column: cell k is [k, k + 1) * 2**exponent; counts are class by cell."""

    exponent: int
    cells: Floats
    table: Floats

    def coarser(self, exponent: int) -> "Column":
        """The same counts on the cells of a larger (or the same) exponent, each of which holds whole cells of this."""
        if exponent == self.exponent:
            return self
        parents = np.floor(np.ldexp(self.cells, self.exponent - exponent))
        cells, place = np.unique(parents, return_inverse=True)
        return Column(exponent, cells, summed(self.table, place, cells.size))

    def few_enough(self) -> "Column":
        """The finest of the coarser counts that has no more than MOST_CELLS cells."""
        column = self
        while column.cells.size > MOST_CELLS:
            column = column.coarser(column.exponent + 1)
        return column


@dataclass(frozen=True)
class Cells:
    """Counts on the finest dyadic cells that are few enough to keep, for each column.

    How fine that is depends on the values alone, not on their order: counts of shards, each as fine as its own
    values allow, merge to just the counts of all rows together.
    """

    columns: tuple[Column, ...]

    @classmethod
    def empty(cls, classes: int, columns: int) -> Self:
        return cls(tuple(Column(-1074, np.zeros(0), np.zeros((classes, 0))) for _ in range(columns)))

    @classmethod
    def count(cls, numbers: Numbers, labels: Codes, weights: Floats, classes: int) -> Self:
        counted = []
        for j in range(numbers.shape[1]):
            column = np.ascontiguousarray(numbers[:, j], dtype=np.float64)
            exponent, cells, table = kernels.count_cells(column, labels, weights, classes, MOST_CELLS, CELL_DIGITS)
            counted.append(Column(int(exponent), cells, table))
        return cls(tuple(counted))

    def merge(self, other: Self) -> "Cells":
        merged = []
        for mine, theirs in zip(self.columns, other.columns, strict=True):
            cells, have, more, exponent = _aligned(mine, theirs)
            merged.append(Column(exponent, cells, have + more).few_enough())
        return Cells(tuple(merged))

    def remove(self, other: Self) -> "Cells":
        left = []
        for mine, theirs in zip(self.columns, other.columns, strict=True):
            cells, have, taken, exponent = _aligned(mine, theirs)
            table = remaining(have, taken)
            kept = table.any(axis=0)
            left.append(Column(exponent, cells[kept], table[:, kept]))
        return Cells(tuple(left))

    def scale(self, factor: float) -> "Cells":
        return Cells(tuple(Column(c.exponent, c.cells, c.table * factor) for c in self.columns))

    def place_classes(self, positions: Integers, size: int) -> "Cells":
        return Cells(tuple(Column(c.exponent, c.cells, placed(c.table, positions, size)) for c in self.columns))

    def place_columns(self, positions: Integers, size: int) -> "Cells":
        classes = self.columns[0].table.shape[0] if self.columns else 0
        columns = list(Cells.empty(classes, size).columns)
        for column, position in zip(self.columns, positions, strict=True):
            if position >= 0:
                columns[position] = column
        return Cells(tuple(columns))


def _aligned(mine: Column, theirs: Column) -> tuple[Floats, Floats, Floats, int]:
    """The cells of both at the coarser of their exponents, the counts of each, and that exponent."""
    exponent = max(mine.exponent, theirs.exponent)
    mine, theirs = mine.coarser(exponent), theirs.coarser(exponent)
    cells = np.union1d(mine.cells, theirs.cells)
    have = placed(mine.table, np.searchsorted(cells, mine.cells), cells.size, axis=1)
    more = placed(theirs.table, np.searchsorted(cells, theirs.cells), cells.size, axis=1)
    return cells, have, more, exponent
