"""Counts of real columns in dyadic bins."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from deciban import kernels
from deciban.arrays import Codes, Floats, Integers, Numbers, scatter_to, summed
from deciban.statistics.base import remaining

# The most bins kept for a column, and the binary digits of a bin's number: together they set the resolution.
MOST_BINS = 1024
BIN_DIGITS = 48

# From so many values it is estimated how fine the bins can be.
FIRST_VALUES = 1 << 12

# Powers of two with exponents up to this can be divided by without overflow.
SAFE_EXPONENT = 900


@dataclass(frozen=True)
class Column:
    """The occupied bins of one column.

    cells: their numbers, in order; bin k is [k, k + 1) * 2**exponent. table: counts, class by bin.
    """

    exponent: int
    cells: Floats
    table: Floats

    def coarser(self, exponent: int) -> "Column":
        """The same counts in the bins of a larger (or the same) exponent, each of which is made of whole bins."""
        if exponent == self.exponent:
            return self
        parents = np.floor(np.ldexp(self.cells, self.exponent - exponent))
        cells, place = np.unique(parents, return_inverse=True)
        return Column(exponent, cells, summed(self.table, place, cells.size))

    def few_enough(self) -> "Column":
        """The finest of the coarser counts that have no more than MOST_BINS bins."""
        column = self
        while column.cells.size > MOST_BINS:
            column = column.coarser(column.exponent + 1)
        return column


@dataclass(frozen=True)
class Bins:
    """Counts in the finest dyadic bins that are few enough to keep, for each column.

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
            x = numbers[:, j]
            used = ~np.isnan(x) & (labels >= 0) & (weights > 0.0)
            here = slice(None) if used.all() else used
            column = np.ascontiguousarray(x[here], dtype=np.float64)
            counted.append(counted_column(column, labels[here], weights[here], classes, MOST_BINS, BIN_DIGITS))
        return cls(tuple(counted))

    def merge(self, other: Self) -> "Bins":
        merged = []
        for mine, theirs in zip(self.columns, other.columns, strict=True):
            cells, have, more, exponent = _aligned(mine, theirs)
            merged.append(Column(exponent, cells, have + more).few_enough())
        return Bins(tuple(merged))

    def remove(self, other: Self, slack: float | None = None) -> "Bins":
        left = []
        for mine, theirs in zip(self.columns, other.columns, strict=True):
            cells, have, removed, exponent = _aligned(mine, theirs)
            table = remaining(have, removed, slack)
            kept = table.any(axis=0)
            left.append(Column(exponent, cells[kept], table[:, kept]))
        return Bins(tuple(left))

    def scale(self, factor: float) -> "Bins":
        return Bins(tuple(Column(c.exponent, c.cells, c.table * factor) for c in self.columns))

    def place_classes(self, positions: Integers, size: int) -> "Bins":
        return Bins(tuple(Column(c.exponent, c.cells, scatter_to(c.table, positions, size)) for c in self.columns))

    def place_columns(self, positions: Integers, size: int) -> "Bins":
        classes = self.columns[0].table.shape[0] if self.columns else 0
        columns = list(Bins.empty(classes, size).columns)
        for column, position in zip(self.columns, positions, strict=True):
            if position >= 0:
                columns[position] = column
        return Bins(tuple(columns))


def counted_column(x: Floats, labels: Codes, weights: Floats, classes: int, most: int, digits: int) -> Column:
    """Values counted in the finest bins of which at most `most` are occupied, with numbers of `digits` binary digits.

    Which bins these are is a property of the set of values, not of their order.
    """
    if not x.size:
        return Column(-1074, np.zeros(0), np.zeros((classes, 0)))
    exponent = _first_exponent(x, most, digits)
    scaled = -SAFE_EXPONENT < exponent < SAFE_EXPONENT
    x, scale = (x, float(np.ldexp(1.0, -exponent))) if scaled else (np.ldexp(x, -exponent), 1.0)
    keys = np.full(1 << (4 * min(most, x.size) - 1).bit_length(), np.nan)
    place = kernels.occupy_bins(x, 0, scale, most, 0, keys)
    while place < x.size:  # too many: bins nest, so halving the resolution keeps what was found
        found = np.unique(np.floor(0.5 * keys[~np.isnan(keys)]))
        exponent, scale = exponent + 1, 0.5 * scale
        keys[:] = np.nan
        kernels.occupy_bins(found, 0, 1.0, most, 0, keys)
        place = kernels.occupy_bins(x, place, scale, most, found.size, keys)
    places = np.flatnonzero(~np.isnan(keys))
    places = places[np.argsort(keys[places])]
    columns = np.zeros(keys.size, dtype=np.int64)
    columns[places] = np.arange(places.size)
    table = np.zeros((classes, places.size))
    kernels.count_bins(x, labels, weights, scale, keys, columns, table)
    return Column(exponent, keys[places], table)


def least_exponent(largest: float, digits: int = BIN_DIGITS) -> int:
    """The exponent of the finest bins whose numbers have so many digits, for values up to this."""
    return max(-1074, int(np.frexp(largest)[1]) - digits) if largest > 0.0 else -1074


def _first_exponent(x: Floats, most: int, digits: int) -> int:
    """An exponent to start from, no larger than the final one: that of the first values, with the digits of all."""
    largest = float(np.abs(x).max())
    low = least_exponent(largest, digits)
    if largest == 0.0:
        return low
    high = max(low, int(np.frexp(largest)[1]) + 1)  # where the bins are -1 and 0
    few = np.sort(x[:FIRST_VALUES])
    while low < high:
        middle = (low + high) // 2
        if 1 + np.count_nonzero(np.diff(np.floor(np.ldexp(few, -middle)))) <= most:
            high = middle
        else:
            low = middle + 1
    return low


def _aligned(mine: Column, theirs: Column) -> tuple[Floats, Floats, Floats, int]:
    """The bins of both at the coarser of their exponents, the counts of each, and that exponent."""
    exponent = max(mine.exponent, theirs.exponent)
    mine, theirs = mine.coarser(exponent), theirs.coarser(exponent)
    cells = np.union1d(mine.cells, theirs.cells)
    have = scatter_to(mine.table, np.searchsorted(cells, mine.cells), cells.size, axis=1)
    more = scatter_to(theirs.table, np.searchsorted(cells, theirs.cells), cells.size, axis=1)
    return cells, have, more, exponent
