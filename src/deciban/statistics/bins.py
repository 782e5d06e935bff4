"""Counts of real columns in dyadic bins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from deciban import kernels
from deciban.statistics.base import subtract_counts
from deciban.util.arrays import MIN_WHOLE, TILE_ROWS, Codes, Floats, Integers, Numbers, scatter_to, sum_columns_at

# Maximum number of occupied bins per column; it determines the resolution.
MAX_BINS = 1024

# Number of values from which the first resolution is estimated.
FIRST_VALUES = 1 << 12

# Exponent of the narrowest bins; below it doubles lose digits.
MIN_EXPONENT = -1022

# Exponent of the widest bins: that of the largest cells.
MAX_EXPONENT = 1000


def find_edges(values: Floats, exponent: int) -> Floats:
    """Return the lower edge of the bin of each value: the largest multiple of 2**exponent not above it."""
    with np.errstate(over="ignore"):
        numbers = np.ldexp(values, -exponent)
    return np.where(np.abs(numbers) < MIN_WHOLE, np.ldexp(np.floor(numbers), exponent), values) + 0.0


@dataclass(frozen=True)
class Cuts:
    """Increasing cuts of several columns: those of column j are values[start[j] : start[j + 1]]."""

    values: Floats
    start: Integers

    @classmethod
    def of(cls, columns: Sequence[Floats]) -> Self:
        return cls(np.concatenate([np.zeros(0), *columns]), np.cumsum([0, *map(len, columns)], dtype=np.int64))

    def find_bins(self, cells: Numbers) -> Codes:
        """Return 1 + the number of cuts not above each cell, 0 for a missing cell: column by row."""
        rows = min(max(len(cells), 1), TILE_ROWS)
        found = np.empty(cells.shape[::-1], dtype=np.int32)
        scratch = np.empty(rows), np.empty(rows, dtype=np.uint64)
        kernels.scoring.find_bins(cells, self.values, self.start, *scratch, found)
        return found


@dataclass(frozen=True)
class ColumnBins:
    """Occupied bins of one column.

    edges: the lower edges, in ascending order; a bin ends 2**exponent above its edge. table: counts, class by bin.
    """

    exponent: int
    edges: Floats
    table: Floats

    @classmethod
    def empty(cls, classes: int) -> ColumnBins:
        return cls(MIN_EXPONENT, np.zeros(0), np.zeros((classes, 0)))

    @property
    def cells(self) -> Floats:
        """Numbers of the bins: bin k is [k, k + 1) * 2**exponent."""
        return np.ldexp(self.edges, -self.exponent)

    def coarsen(self, exponent: int) -> ColumnBins:
        """Return the counts in bins of a larger or equal exponent; each contains whole bins of this one."""
        if exponent == self.exponent:
            return self
        edges, place = np.unique(find_edges(self.edges, exponent), return_inverse=True)
        return ColumnBins(exponent, edges, sum_columns_at(self.table, place, edges.size))

    def limit_bins(self) -> ColumnBins:
        """Return the counts in the finest bins of which at most MAX_BINS are occupied."""
        return (
            self if self.edges.size <= MAX_BINS else self.coarsen(_find_exponent(self.edges, self.exponent, MAX_BINS))
        )


@dataclass(frozen=True)
class Bins:
    """Counts of real columns in bins whose width is a power of two, as narrow as MAX_BINS allows.

    The width depends on the set of values, not on their order. Counts of shards, each with its own width, merge to the
    counts of all rows together.
    """

    columns: tuple[ColumnBins, ...]

    @classmethod
    def empty(cls, classes: int, columns: int) -> Self:
        return cls((ColumnBins.empty(classes),) * columns)

    @classmethod
    def count(cls, numbers: Numbers, labels: Codes, weights: Floats, classes: int) -> Self:
        counted = []
        for j in range(numbers.shape[1]):
            x = numbers[:, j]
            used = ~np.isnan(x) & (labels >= 0) & (weights > 0.0)
            here = slice(None) if used.all() else used
            column = np.ascontiguousarray(x[here], dtype=np.float64)
            counted.append(count_column(column, labels[here], weights[here], classes, MAX_BINS))
        return cls(tuple(counted))

    def merge(self, other: Self) -> Bins:
        merged = []
        for mine, theirs in zip(self.columns, other.columns, strict=True):
            edges, have, more, exponent = _align(mine, theirs)
            merged.append(ColumnBins(exponent, edges, have + more).limit_bins())
        return Bins(tuple(merged))

    def remove(self, other: Self, tolerance: float | None = None) -> Bins:
        left = []
        for mine, theirs in zip(self.columns, other.columns, strict=True):
            edges, have, removed, exponent = _align(mine, theirs)
            table = subtract_counts(have, removed, tolerance)
            kept = table.any(axis=0)
            left.append(ColumnBins(exponent, edges[kept], table[:, kept]))
        return Bins(tuple(left))

    def scale(self, factor: float) -> Bins:
        return Bins(tuple(ColumnBins(c.exponent, c.edges, c.table * factor) for c in self.columns))

    def reindex_classes(self, positions: Integers, size: int) -> Bins:
        return Bins(tuple(ColumnBins(c.exponent, c.edges, scatter_to(c.table, positions, size)) for c in self.columns))

    def reindex_columns(self, positions: Integers, size: int) -> Bins:
        classes = self.columns[0].table.shape[0] if self.columns else 0
        columns = list(Bins.empty(classes, size).columns)
        for column, position in zip(self.columns, positions, strict=True):
            if position >= 0:
                columns[position] = column
        return Bins(tuple(columns))


def count_column(x: Floats, labels: Codes, weights: Floats, classes: int, max_bins: int) -> ColumnBins:
    """Count values in the finest bins of which at most `max_bins` are occupied."""
    if not x.size:
        return ColumnBins.empty(classes)
    exponent = _find_exponent(x[:FIRST_VALUES], MIN_EXPONENT, max_bins)
    keys = np.full(1 << (4 * min(max_bins, x.size) - 1).bit_length(), np.nan)
    place = kernels.cell_counts.occupy_bins(x, 0, 2.0**exponent, max_bins, 0, keys)
    while place < x.size:  # too many bins: they nest, so halve the resolution and continue
        exponent += 1
        found = np.unique(find_edges(keys[~np.isnan(keys)], exponent))
        keys[:] = np.nan
        kernels.cell_counts.occupy_bins(found, 0, 2.0**exponent, max_bins, 0, keys)
        place = kernels.cell_counts.occupy_bins(x, place, 2.0**exponent, max_bins, found.size, keys)
    places = np.flatnonzero(~np.isnan(keys))
    places = places[np.argsort(keys[places])]
    columns = np.zeros(keys.size, dtype=np.int64)
    columns[places] = np.arange(places.size)
    table = np.zeros((classes, places.size))
    kernels.cell_counts.count_bins(x, labels, weights, 2.0**exponent, keys, columns, table)
    return ColumnBins(exponent, keys[places], table)


def _find_exponent(values: Floats, low: int, max_bins: int) -> int:
    """Return the exponent, at least `low`, of the finest bins of which the values occupy at most `max_bins`."""
    ordered, high = np.sort(values), MAX_EXPONENT
    while low < high:
        middle = (low + high) // 2
        if 1 + np.count_nonzero(np.diff(find_edges(ordered, middle))) <= max_bins:
            high = middle
        else:
            low = middle + 1
    return low


def _align(mine: ColumnBins, theirs: ColumnBins) -> tuple[Floats, Floats, Floats, int]:
    """Return the edges of both at the larger of their exponents, the counts of each, and that exponent."""
    exponent = max(mine.exponent, theirs.exponent)
    mine, theirs = mine.coarsen(exponent), theirs.coarsen(exponent)
    edges = np.union1d(mine.edges, theirs.edges)
    have = scatter_to(mine.table, np.searchsorted(edges, mine.edges), edges.size, axis=1)
    more = scatter_to(theirs.table, np.searchsorted(edges, theirs.edges), edges.size, axis=1)
    return edges, have, more, exponent
