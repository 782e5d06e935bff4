"""Counts of combinations of values in a block of discrete columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa

from deciban import kernels
from deciban.statistics.base import subtract_counts
from deciban.statistics.levels import encode, encode_distinct, find_positions, merge_levels
from deciban.util.arrays import Codes, Floats, Integers, scatter_to, sum_columns_at


@dataclass(frozen=True)
class Tuples:
    """Levels of each column, the tuples of their codes that occur, sorted, and their counts, class by tuple."""

    levels: tuple[pa.Array, ...]
    tuples: Integers
    table: Floats

    @classmethod
    def empty(cls, classes: int, columns: int) -> Self:
        return cls((pa.nulls(0),) * columns, np.zeros((0, columns), dtype=np.int64), np.zeros((classes, 0)))

    @classmethod
    def count(cls, values: Sequence[pa.Array], labels: Codes, weights: Floats, classes: int) -> Tuples:
        """Count the tuples of the rows without missing cells."""
        encoded = [encode_distinct(column, j) for j, column in enumerate(values)]
        codes = np.stack([code for code, _ in encoded], axis=1).astype(np.int64)
        complete = np.flatnonzero((codes >= 0).all(axis=1))
        tuples, place = _find_distinct(codes[complete], [len(level) for _, level in encoded])
        table = np.zeros((classes, len(tuples)))
        kernels.cell_counts.count_codes(place.astype(np.int32), labels[complete], weights[complete], table)
        return cls(tuple(level for _, level in encoded), tuples, table)._canonicalize()

    def merge(self, other: Self) -> Tuples:
        levels, tuples, have, more = _align(self, other)
        return Tuples(levels, tuples, have + more)

    def remove(self, other: Self, tolerance: float | None = None) -> Tuples:
        levels, tuples, have, removed = _align(self, other)
        return Tuples(levels, tuples, subtract_counts(have, removed, tolerance))._canonicalize()

    def scale(self, factor: float) -> Tuples:
        return Tuples(self.levels, self.tuples, self.table * factor)

    def reindex_classes(self, positions: Integers, size: int) -> Tuples:
        return Tuples(self.levels, self.tuples, scatter_to(self.table, positions, size))

    def reindex_columns(self, positions: Integers, size: int) -> Tuples:
        order = np.argsort(positions)
        return Tuples(tuple(self.levels[j] for j in order), self.tuples[:, order], self.table)._canonicalize()

    def codes(self, values: Sequence[pa.Array]) -> Integers:
        """Return the code of every cell; -1 for a missing cell, -2 for an unknown value."""
        columns = [encode(column, self.levels[j], j) for j, column in enumerate(values)]
        return np.stack(columns, axis=1).astype(np.int64)

    def marginal(self, kept: Integers) -> tuple[Integers, Floats]:
        """Return the tuples of the columns `kept`, summed over the others, and their counts."""
        tuples, place = np.unique(self.tuples[:, kept], axis=0, return_inverse=True)
        return tuples, sum_columns_at(self.table, place.ravel(), len(tuples))

    def _canonicalize(self) -> Tuples:
        """Drop tuples and levels that do not occur, and sort both."""
        occurs = self.table.any(axis=0)
        tuples, table = self.tuples[occurs], self.table[:, occurs]
        levels = []
        for j, column in enumerate(self.levels):
            used = np.unique(tuples[:, j])
            kept = merge_levels(column.take(pa.array(used)), pa.nulls(0, column.type), j)
            levels.append(kept)
            tuples[:, j] = find_positions(column.take(pa.array(tuples[:, j])), kept)
        order = np.lexsort(tuples.T[::-1])
        return Tuples(tuple(levels), tuples[order], table[:, order])


def _find_distinct(codes: Integers, sizes: Sequence[int]) -> tuple[Integers, Integers]:
    """Return the distinct rows, sorted, and the position of each row among them."""
    possible = float(np.prod(np.array(sizes, dtype=np.float64)))
    if possible >= 2.0**62:
        tuples, place = np.unique(codes, axis=0, return_inverse=True)
        return tuples, place.ravel()
    keys = np.zeros(len(codes), dtype=np.int64)
    for j, size in enumerate(sizes):
        keys = keys * size + codes[:, j]
    if possible <= len(codes):  # a table of all possible tuples
        occurs = np.zeros(int(possible), dtype=np.bool_)
        occurs[keys] = True
        tuples = np.stack(np.unravel_index(np.flatnonzero(occurs), tuple(sizes)), axis=1).astype(np.int64)
        return tuples, (np.cumsum(occurs) - 1)[keys]
    _, first, place = np.unique(keys, return_index=True, return_inverse=True)
    return codes[first], place.ravel()


def _align(mine: Tuples, theirs: Tuples) -> tuple[tuple[pa.Array, ...], Integers, Floats, Floats]:
    """Return the levels and tuples of both, and the counts of each at these tuples."""
    if np.array_equal(mine.tuples, theirs.tuples) and all(map(pa.Array.equals, mine.levels, theirs.levels)):
        return mine.levels, mine.tuples, mine.table, theirs.table
    levels, recoded = [], ([], [])  # type: tuple[list[pa.Array], tuple[list[Integers], list[Integers]]]
    for j, (a, b) in enumerate(zip(mine.levels, theirs.levels, strict=True)):
        both = merge_levels(a, b, j)
        levels.append(both)
        recoded[0].append(find_positions(a, both)[mine.tuples[:, j]])
        recoded[1].append(find_positions(b, both)[theirs.tuples[:, j]])
    stacked = np.concatenate([np.stack(recoded[0], axis=1), np.stack(recoded[1], axis=1)])
    tuples, place = np.unique(stacked, axis=0, return_inverse=True)
    place, size, mine_size = place.ravel(), len(tuples), len(mine.tuples)
    have = scatter_to(mine.table, place[:mine_size], size, axis=1)
    more = scatter_to(theirs.table, place[mine_size:], size, axis=1)
    return tuple(levels), tuples, have, more
