"""Rows in compressed sparse row (CSR) form."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from deciban.util.arrays import Integers, Numbers, kernel_view

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

    @property
    def shape(self) -> tuple[int, int]:
        return self.indptr.size - 1, self.width

    @property
    def stored(self) -> npt.NDArray[Any]:
        """The stored cells of these rows."""
        return np.asarray(self.data[self.indptr[0] : self.indptr[-1]])

    def slice(self, start: int, stop: int) -> "SparseRows":
        return SparseRows(self.data, self.indices, self.indptr[start : stop + 1], self.width)

    @classmethod
    def of(cls, matrix: "sparse.csr_array") -> "SparseRows":
        return cls(matrix.data, matrix.indices, matrix.indptr, matrix.shape[1])

    def take(self, rows: Integers) -> "SparseRows":
        return SparseRows.of(self.matrix()[rows])

    def with_values(self, stored: npt.NDArray[Any]) -> "SparseRows":
        """Return the same rows with other values in their stored cells."""
        first, last = self.indptr[0], self.indptr[-1]
        return SparseRows(stored, self.indices[first:last], self.indptr - first, self.width)

    def matrix(self) -> "sparse.csr_array":
        """Return these rows as a SciPy matrix."""
        from scipy import sparse

        rows = self.with_values(self.stored)
        return sparse.csr_array((rows.data, rows.indices, rows.indptr), shape=self.shape)

    def kernel_arrays(self) -> SparseArrays:
        return SparseArrays(kernel_view(self.data), kernel_view(self.indices), kernel_view(self.indptr))


def dense_row(cells: Numbers | SparseRows, row: int) -> Numbers:
    """Return one row with all its cells."""
    return np.asarray(cells[row] if isinstance(cells, np.ndarray) else cells.slice(row, row + 1).matrix().toarray()[0])
