"""The array types of this project, and a few helpers on them."""

import os
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pyarrow as pa
    from scipy import sparse

Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int32]
Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]
Numbers = npt.NDArray[np.floating] | npt.NDArray[np.integer]

Name = TypeVar("Name", bound=Hashable)


# Cells beyond this cannot be squared and added up.
TOO_LARGE = np.float64(1e140)

# Cells beyond this count as this in terms whose signs differ, so that they never make inf - inf.
LARGEST = np.float64(1e290)

# Cells that differ by a few units of their last digit are equal: the variance of that, in units of their mean square.
ROUNDING_VARIANCE = (4.0 * 2.0**-52) ** 2

# Bytes that kernels may read behind the last word of a vocabulary.
SPARE = 16

# Doubles that kernels add at once.
LANES = 4

# Rows that kernels score together; and how far apart the columns of such a tile stand in memory: at a power of two they
# would share a few places of the cache.
TILE_ROWS = 64
TILE_PITCH = TILE_ROWS + 8

# Asking the system takes longer than to score a row.
CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Alias:
    """The memory of an array, marked writable."""

    def __init__(self, array: npt.NDArray[np.generic]) -> None:
        self.owner = array
        interface = dict(array.__array_interface__)
        interface["data"] = (interface["data"][0], False)
        self.__array_interface__ = interface


def kernel_view(array: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    """`array` as kernels take it: C-contiguous and not marked read-only.

    numba compiles another copy of a kernel for read-only arrays; kernels never write to their inputs, so a view of
    the same memory without the mark saves the compilation.
    """
    contiguous = np.ascontiguousarray(array)
    return contiguous if contiguous.flags.writeable else np.asarray(_Alias(contiguous))


@dataclass(frozen=True)
class SparseRows:
    """Rows in CSR form: row i has data[k] in column indices[k] for indptr[i] <= k < indptr[i + 1], and 0 elsewhere.

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
        """The cells of these rows that are stored."""
        return np.asarray(self.data[self.indptr[0] : self.indptr[-1]])

    def slice(self, start: int, stop: int) -> "SparseRows":
        return SparseRows(self.data, self.indices, self.indptr[start : stop + 1], self.width)

    @classmethod
    def of(cls, matrix: "sparse.csr_array") -> "SparseRows":
        return cls(matrix.data, matrix.indices, matrix.indptr, matrix.shape[1])

    def take(self, rows: Integers) -> "SparseRows":
        return SparseRows.of(self.matrix()[rows])

    def with_values(self, stored: npt.NDArray[Any]) -> "SparseRows":
        """The same rows with other values in their stored cells."""
        first, last = self.indptr[0], self.indptr[-1]
        return SparseRows(stored, self.indices[first:last], self.indptr - first, self.width)

    def matrix(self) -> "sparse.csr_array":
        """These rows as SciPy has them."""
        from scipy import sparse

        rows = self.with_values(self.stored)
        return sparse.csr_array((rows.data, rows.indices, rows.indptr), shape=self.shape)

    def kernel_arrays(self) -> "SparseArrays":
        return SparseArrays(kernel_view(self.data), kernel_view(self.indices), kernel_view(self.indptr))


def with_each(table: "pa.Table", change: Callable[["pa.ChunkedArray"], Any]) -> "pa.Table":
    """The table with `change` of each column, made at once: setting a single one takes as long as there are columns."""
    import pyarrow as pa

    before = table.columns
    after = [change(column) for column in before]
    if all(one is other for one, other in zip(before, after, strict=True)):
        return table
    return pa.Table.from_arrays(after, names=table.column_names)


def repeated(names: Iterable[Name]) -> Name | None:
    """The first of the names that is there more than once."""
    seen = set[Name]()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def take_cells(array: "pa.Array", rows: Any) -> "pa.Array":
    """Some cells of an Arrow array, also of text that is stored as views, of which Arrow can take none."""
    import pyarrow as pa

    if pa.types.is_string_view(array.type):
        array = array.cast(pa.large_string())
    return array.take(pa.array(rows))


def decoded_cells(array: "pa.Array") -> list[str | None]:
    """Cells of text as Python has them; bytes that are no UTF-8, which Arrow does not refuse, are replaced."""
    import pyarrow as pa

    cells = array.cast(pa.large_string()).cast(pa.large_binary()).to_pylist()
    return [None if cell is None else cell.decode(errors="replace") for cell in cells]


def dense_row(cells: Numbers | SparseRows, row: int) -> Numbers:
    """One row with all its cells."""
    return np.asarray(cells[row] if isinstance(cells, np.ndarray) else cells.slice(row, row + 1).matrix().toarray()[0])


def in_lanes(table: Floats) -> Floats:
    """`table` with columns of zeros up to a multiple of LANES."""
    return np.ascontiguousarray(np.pad(table, ((0, 0), (0, -table.shape[1] % LANES))))


def even_part(whole: int, most: int) -> int:
    """How large the parts of a whole are that are no larger than this, all about equal and even in number.

    A short one, or one more, would leave threads idle.
    """
    return -(-whole // (2 * -(-whole // (2 * most))))


def scatter_to(array: Floats, positions: Integers, size: int, axis: int = 0) -> Floats:
    """`array` with its slices along `axis` moved to `positions` of an axis of length `size`; zero elsewhere.

    A slice whose position is negative is dropped.
    """
    shape = list(array.shape)
    shape[axis] = size
    result = np.zeros(shape)
    here: list[slice | Integers] = [slice(None)] * array.ndim
    there = here.copy()
    there[axis] = np.flatnonzero(positions >= 0)
    here[axis] = positions[there[axis]]
    result[tuple(here)] = array[tuple(there)]
    return result


def summed(table: Floats, place: Integers, size: int) -> Floats:
    """The columns of `table` added up at their places among `size` columns."""
    result = np.zeros((size, table.shape[0]))
    np.add.at(result, place, table.T)
    return np.ascontiguousarray(result.T)


def summed_cells(place: npt.NDArray[Any], values: npt.NDArray[Any], size: int) -> Floats:
    """The values added up at their places among `size`."""
    return np.bincount(place, values, size).astype(np.float64, copy=False)


def log(values: Floats) -> Floats:
    """Natural logarithm; log 0 is -inf without a warning."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(values), dtype=np.float64)


class SparseArrays(NamedTuple):
    """Rows in CSR form as kernels take them; see `SparseRows`."""

    data: npt.NDArray[Any]
    indices: npt.NDArray[Any]
    indptr: npt.NDArray[Any]
