"""Counts of the values (levels) of discrete columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deciban import kernels
from deciban.errors import BadCell
from deciban.statistics.base import subtract_counts
from deciban.util.arrays import Codes, Floats, Integers, Numbers, scatter_to
from deciban.util.arrow_values import as_values

# Whole numbers within a range of this width are counted in a table, without hashing.
MAX_TABLE_WIDTH = 1 << 12

# Arrow types that need no conversion to be levels.
LEVEL_TYPES = (pa.string(), pa.int64(), pa.bool_())

# Up to this number of cells, looking up each one is faster than finding the distinct ones first.
MAX_CELLS_LOOKED_UP = 64


@dataclass(frozen=True)
class Levels:
    """Levels of each column (its distinct values with a positive count, sorted), and their counts, class by level."""

    levels: tuple[pa.Array, ...]
    tables: tuple[Floats, ...]

    @classmethod
    def empty(cls, classes: int, columns: int) -> Self:
        return cls((pa.nulls(0),) * columns, tuple(np.zeros((classes, 0)) for _ in range(columns)))

    @classmethod
    def count(cls, values: Numbers | Sequence[pa.Array], labels: Codes, weights: Floats, classes: int) -> Self:
        """Count the levels of rows: a matrix of numbers, or one Arrow array per column."""
        if isinstance(values, np.ndarray):
            counted = _count_matrix(values, labels, weights, classes)
        else:
            counted = [_count_column(column, labels, weights, classes, j) for j, column in enumerate(values)]
        return cls(tuple(levels for levels, _ in counted), tuple(table for _, table in counted))

    def merge(self, other: Self) -> Levels:
        pairs = [_merge_column(*pair, j) for j, pair in enumerate(zip(self._columns(), other._columns(), strict=True))]
        return Levels(tuple(levels for levels, _ in pairs), tuple(table for _, table in pairs))

    def remove(self, other: Self, tolerance: float | None = None) -> Levels:
        pairs = []
        for j, (mine, theirs) in enumerate(zip(self._columns(), other._columns(), strict=True)):
            levels, have, removed = _align(mine, theirs, j)
            pairs.append(drop_unused(levels, subtract_counts(have, removed, tolerance)))
        return Levels(tuple(levels for levels, _ in pairs), tuple(table for _, table in pairs))

    def scale(self, factor: float) -> Levels:
        return Levels(self.levels, tuple(table * factor for table in self.tables))

    def reindex_classes(self, positions: Integers, size: int) -> Levels:
        return Levels(self.levels, tuple(scatter_to(table, positions, size) for table in self.tables))

    def reindex_columns(self, positions: Integers, size: int) -> Levels:
        classes = self.tables[0].shape[0] if self.tables else 0
        levels, tables = [pa.nulls(0)] * size, [np.zeros((classes, 0))] * size
        for j, position in enumerate(positions):
            if position >= 0:
                levels[position], tables[position] = self.levels[j], self.tables[j]
        return Levels(tuple(levels), tuple(tables))

    def _columns(self) -> list[tuple[pa.Array, Floats]]:
        return list(zip(self.levels, self.tables, strict=True))


def encode_distinct(array: pa.Array, column: int = 0) -> tuple[Codes, pa.Array]:
    """Return the code of each cell (-1: missing) and the distinct values the codes stand for."""
    encoded = array if pa.types.is_dictionary(array.type) else as_values(array, column).dictionary_encode()
    codes = encoded.indices.cast(pa.int32()).fill_null(-1).to_numpy(zero_copy_only=False)
    values = as_values(encoded.dictionary, column)
    once = pc.unique(values)
    if len(once) < len(values):  # a dictionary may contain a value twice
        place = np.append(pc.index_in(values, once).to_numpy(zero_copy_only=False), -1).astype(np.int32)
        codes, values = place[codes], once
    if values.null_count:  # a dictionary may contain a null
        codes = codes.copy()
        codes[np.isin(codes, np.flatnonzero(values.is_null().to_numpy(zero_copy_only=False)))] = -1
    return codes, values


def encode(array: pa.Array, levels: pa.Array, column: int = 0) -> Codes:
    """Return the code of each cell among `levels`; -1 for a missing cell, -2 for an unknown value."""
    if len(array) <= MAX_CELLS_LOOKED_UP and array.type in LEVEL_TYPES and array.type.equals(levels.type):
        return _encode_few(array, levels)
    codes, values = encode_distinct(array, column)
    if pa.types.is_null(values.type) or pa.types.is_null(levels.type):
        found = np.full(len(values) + 1, -2, dtype=np.int32)
    else:
        kind = find_common_type(levels.type, values.type)
        if kind is None:
            raise _make_type_error(levels.type, values, column)
        known = pc.index_in(values.cast(kind, safe=False), levels.cast(kind, safe=False)).fill_null(-2)
        found = np.append(known.to_numpy(zero_copy_only=False), -1).astype(np.int32)
    found[-1] = -1
    return found[codes]


def _encode_few(array: pa.Array, levels: pa.Array) -> Codes:
    """Encode a few cells of the same type as the levels."""
    found = pc.index_in(array, levels)
    codes = np.array([-2 if place is None else place for place in found.to_pylist()], dtype=np.int32)
    if array.null_count:
        codes[~array.is_valid().to_numpy(zero_copy_only=False)] = -1
    return codes


def find_common_type(mine: pa.DataType, theirs: pa.DataType) -> pa.DataType | None:
    """Return the type that can represent the levels of both; None for text and numbers, for example."""
    if mine.equals(theirs) or pa.types.is_null(theirs):
        return mine
    if pa.types.is_null(mine):
        return theirs
    if {mine, theirs} == {pa.int64(), pa.float64()}:
        return pa.float64()
    if {mine, theirs} == {pa.int64(), pa.bool_()}:
        return pa.int64()
    if {mine, theirs} == {pa.float64(), pa.bool_()}:
        return pa.float64()
    if all(pa.types.is_date(kind) or (pa.types.is_timestamp(kind) and kind.tz is None) for kind in (mine, theirs)):
        return pa.timestamp("us")
    if all(map(pa.types.is_time, (mine, theirs))):
        return pa.time64("us")
    return None


def _make_type_error(mine: pa.DataType, theirs: pa.Array, column: int) -> BadCell:
    """Return the error for values whose type is not that of the training rows."""
    wanted = name_type(mine)
    try:
        example = f" such as {theirs[0].as_py()!r}" if len(theirs) else ""  # no value if all cells are missing
    except (ValueError, OverflowError):  # a time that Python cannot represent
        example = ""
    cause = f"expected {wanted}, as in training, found {name_type(theirs.type)}{example}"
    return BadCell(column, None, cause, f"convert the column to {wanted}")


def name_type(kind: pa.DataType) -> str:
    """Return the name of a type of levels in words.

    >>> name_type(pa.string()), name_type(pa.int64()), name_type(pa.timestamp("us", "UTC"))
    ('text', 'numbers', 'times with a time zone')
    """
    if pa.types.is_boolean(kind):
        return "booleans"
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "numbers"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return "text"
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return "dates" if getattr(kind, "tz", None) is None else "times with a time zone"
    return "times of day" if pa.types.is_time(kind) else str(kind)


def merge_levels(mine: pa.Array, theirs: pa.Array, column: int = 0) -> pa.Array:
    """Return the levels of both, sorted."""
    kind = find_common_type(mine.type, theirs.type)
    if kind is None:
        cause = f"found {name_type(theirs.type)}, expected {name_type(mine.type)}"
        raise BadCell(column, None, cause, "use one type for this column")
    both = pc.unique(pa.concat_arrays([mine.cast(kind, safe=False), theirs.cast(kind, safe=False)]))
    return both.take(pc.array_sort_indices(both))


def find_positions(levels: pa.Array, among: pa.Array) -> Integers:
    """Return the position of each of `levels` in `among`, which contains them all."""
    if not len(levels):
        return np.zeros(0, dtype=np.int64)
    found = pc.index_in(levels.cast(among.type, safe=False), among)
    return np.asarray(found.to_numpy(zero_copy_only=False), dtype=np.int64)


def drop_unused(levels: pa.Array, table: Floats) -> tuple[pa.Array, Floats]:
    """Return the levels with a positive count, sorted, and their counts."""
    kept = np.flatnonzero(table.any(axis=0))
    levels, table = levels.take(pa.array(kept)), table[:, kept]
    order = pc.array_sort_indices(levels).to_numpy()
    if np.array_equal(order, np.arange(order.size)):
        return levels, table
    return levels.take(pa.array(order)), table[:, order]


def _align(
    mine: tuple[pa.Array, Floats], theirs: tuple[pa.Array, Floats], column: int
) -> tuple[pa.Array, Floats, Floats]:
    """Return the levels of both, and the counts of each at these levels."""
    if mine[0].equals(theirs[0]):
        return mine[0], mine[1], theirs[1]
    levels = merge_levels(mine[0], theirs[0], column)
    have = scatter_to(mine[1], find_positions(mine[0], levels), len(levels), axis=1)
    more = scatter_to(theirs[1], find_positions(theirs[0], levels), len(levels), axis=1)
    return levels, have, more


def _merge_column(
    mine: tuple[pa.Array, Floats], theirs: tuple[pa.Array, Floats], column: int
) -> tuple[pa.Array, Floats]:
    levels, have, more = _align(mine, theirs, column)
    return levels, have + more


def _count_column(
    cells: pa.Array, labels: Codes, weights: Floats, classes: int, column: int
) -> tuple[pa.Array, Floats]:
    codes, values = encode_distinct(cells, column)
    table = np.zeros((classes, len(values)))
    kernels.cell_counts.count_codes(codes, labels, weights, table)
    return drop_unused(values, table)


def _count_matrix(numbers: Numbers, labels: Codes, weights: Floats, classes: int) -> list[tuple[pa.Array, Floats]]:
    columns = numbers.shape[1]
    low, high = np.full(columns, np.inf), np.full(columns, -np.inf)
    whole = kernels.cell_counts.integer_ranges(numbers, low, high)
    width = np.maximum(high - low + 1.0, 0.0)
    if not whole or width.max(initial=0.0) > MAX_TABLE_WIDTH:
        arrays = [pa.array(numbers[:, j], from_pandas=True) for j in range(columns)]
        return [_count_column(array, labels, weights, classes, j) for j, array in enumerate(arrays)]
    start = np.concatenate([[0], np.cumsum(width)]).astype(np.int64)
    table = np.zeros((classes, start[-1]))
    kernels.cell_counts.count_integers(numbers, labels, weights, low, start, table)
    counted = []
    for j in range(columns):
        part = table[:, start[j] : start[j + 1]]
        kept = np.flatnonzero(part.any(axis=0))
        counted.append((pa.array((kept + low[j]).astype(np.int64) if kept.size else kept), part[:, kept]))
    return counted
