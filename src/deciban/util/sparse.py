"""Rows in compressed sparse row (CSR) form."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from deciban.util.arrays import Floats, Integers, Numbers, kernel_view, sum_at

if TYPE_CHECKING:
    from scipy import sparse


class SparseArrays(NamedTuple):
    """Rows in CSR form as kernels take them; see `SparseRows`."""

    data: npt.NDArray[Any]
    indices: npt.NDArray[Any]
    indptr: npt.NDArray[Any]


@dataclass(frozen=True)
class SparseRows:
    """Rows in CSR form: row i has data[k] in column indices[k] for indptr[i] <= k < indptr[i + 1], else 0.

    A slice shares data and indices with the whole: `indptr` need not start at 0.
    """

    data: npt.NDArray[Any]
    indices: npt.NDArray[Any]
    indptr: npt.NDArray[Any]
    width: int

    @classmethod
    def of(cls, matrix: "sparse.csr_array") -> "SparseRows":
        return cls(matrix.data, matrix.indices, matrix.indptr, matrix.shape[1])

    @classmethod
    def of_dense(cls, cells: Numbers) -> "SparseRows":
        row, column = np.nonzero(cells)
        return cls(cells[row, column], column.astype(np.int32), _count_before(row, len(cells)), cells.shape[1])

    @property
    def shape(self) -> tuple[int, int]:
        return self.indptr.size - 1, self.width

    @property
    def stored(self) -> npt.NDArray[Any]:
        """The stored cells of these rows."""
        return np.asarray(self.data[self.indptr[0] : self.indptr[-1]])

    @property
    def stored_columns(self) -> npt.NDArray[Any]:
        """Column of each stored cell."""
        return np.asarray(self.indices[self.indptr[0] : self.indptr[-1]])

    @property
    def stored_rows(self) -> Integers:
        """Row of each stored cell."""
        return np.repeat(np.arange(self.indptr.size - 1), np.diff(self.indptr))

    def slice(self, start: int, stop: int) -> "SparseRows":
        return SparseRows(self.data, self.indices, self.indptr[start : stop + 1], self.width)

    def take(self, rows: Integers) -> "SparseRows":
        size = (self.indptr[1:] - self.indptr[:-1])[rows]
        ends = np.concatenate([[0], np.cumsum(size)])
        here = np.arange(ends[-1]) + np.repeat(self.indptr[rows] - ends[:-1], size)
        return SparseRows(self.data[here], self.indices[here], ends.astype(self.indptr.dtype), self.width)

    def take_columns(self, columns: Sequence[int] | range) -> "SparseRows":
        place = np.full(self.width, -1)
        place[columns] = np.arange(len(columns))
        return self.move_columns(place, len(columns))

    def move_columns(self, place: npt.NDArray[np.integer], width: int) -> "SparseRows":
        """Return the rows with column j at place[j], in order; a negative place drops the column.

        Cells that meet in a place are summed.
        """
        columns = place[self.stored_columns]
        kept = columns >= 0
        cells, meet = np.unique(self.stored_rows[kept] * width + columns[kept], return_inverse=True)
        data = np.bincount(meet, self.stored[kept], cells.size).astype(self.data.dtype, copy=False)
        row, column = np.divmod(cells, max(width, 1))
        return SparseRows(data, column.astype(np.int32), _count_before(row, self.indptr.size - 1), width)

    def transpose(self) -> "SparseRows":
        columns = self.stored_columns
        order = np.argsort(columns, kind="stable")
        ends = _count_before(columns, self.width)
        return SparseRows(self.stored[order], self.stored_rows[order], ends, self.indptr.size - 1)

    def drop_zeros(self) -> "SparseRows":
        kept = self.stored != 0
        ends = _count_before(self.stored_rows[kept], self.indptr.size - 1)
        return SparseRows(self.stored[kept], self.stored_columns[kept], ends, self.width)

    def with_values(self, stored: npt.NDArray[Any]) -> "SparseRows":
        """Return the same rows with other values in their stored cells."""
        return SparseRows(stored, self.stored_columns, self.indptr - self.indptr[0], self.width)

    def dense(self) -> npt.NDArray[Any]:
        """Return all cells."""
        cells = np.zeros(self.shape, dtype=self.data.dtype)
        cells[self.stored_rows, self.stored_columns] = self.stored
        return cells

    def sum(self) -> Floats:
        """Return the sum of the stored cells of each row."""
        return sum_at(self.stored_rows, self.stored, self.indptr.size - 1)

    def multiply(self, table: Floats) -> Floats:
        """Return the product of these rows and a table with a row per column."""
        row, column, stored = self.stored_rows, self.stored_columns, self.stored
        return np.stack([sum_at(row, stored * each[column], self.indptr.size - 1) for each in table.T], axis=-1)

    def kernel_arrays(self) -> SparseArrays:
        return SparseArrays(kernel_view(self.data), kernel_view(self.indices), kernel_view(self.indptr))


def stack_rows(parts: Sequence[SparseRows], width: int) -> SparseRows:
    """Return the rows of all parts, one below the other."""
    ends = np.cumsum([0, *(size for part in parts for size in np.diff(part.indptr))])
    data, indices = (
        np.concatenate(arrays) for arrays in zip(*((p.stored, p.stored_columns) for p in parts), strict=True)
    )
    return SparseRows(data, indices, ends, width)


def _count_before(sorted_rows: npt.NDArray[Any], rows: int) -> Integers:
    """Return the number of cells before each row, and the number of all."""
    return np.concatenate([[0], np.cumsum(np.bincount(sorted_rows, minlength=rows))]).astype(np.int64)


def dense_row(cells: Numbers | SparseRows, row: int) -> Numbers:
    """Return one row with all its cells."""
    return np.asarray(cells[row] if isinstance(cells, np.ndarray) else cells.slice(row, row + 1).dense()[0])
