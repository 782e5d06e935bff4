"""Tables in memory: a matrix, a sparse matrix, or Arrow columns, seen as families need them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import scipy

from deciban.arrays import Floats, Integers, Numbers, kernel_view
from deciban.errors import BadCell
from deciban.sparse import SparseRows
from deciban.statistics.levels import as_values
from deciban.tables.arrow import with_each
from deciban.tables.readable import Readable
from deciban.text_tables import class_name

# Where the numbers made of dates and times start, as error messages and the schema say it.
DATE_ORIGIN = "days since 1970-01-01"
TIME_ORIGIN = "seconds since midnight"

# The largest double that is an integer of 64 bits, and the days of the years 1 to 9999.
LARGEST_INTEGER = 2.0**63 - 1024.0
DAYS = (-719_162.0, 2_932_896.0)


class Table(Readable, Protocol):
    """Rows that can be counted and scored. Columns may have names."""

    @property
    def names(self) -> tuple[str, ...] | None: ...

    @property
    def width(self) -> int: ...

    @property
    def rows(self) -> int: ...

    def slice(self, start: int, stop: int) -> Self:
        """Some of the rows, without a copy where that is possible."""
        ...

    def take(self, rows: Integers) -> Self:
        """The rows with these numbers."""
        ...


def _is_all(columns: Sequence[int], width: int) -> bool:
    """Whether `columns` (in order, each at most once) are all there are."""
    return len(columns) == width


@dataclass(frozen=True)
class Matrix:
    """A NumPy array of numbers, NaN where one is missing."""

    array: npt.NDArray[np.generic]

    names = None

    @property
    def width(self) -> int:
        return int(self.array.shape[1])

    @property
    def rows(self) -> int:
        return int(self.array.shape[0])

    @property
    def types(self) -> tuple[str, ...] | None:
        """What the columns are if not numbers."""
        return ("bool",) * self.width if self.array.dtype.kind == "b" else None

    def slice(self, start: int, stop: int) -> "Matrix":
        return self if start == 0 and stop == self.rows else Matrix(self.array[start:stop])

    def take(self, rows: Integers) -> "Matrix":
        return Matrix(self.array[rows])

    def numbers(self, columns: Sequence[int]) -> Numbers:
        return self._kernel_array(columns, np.float64)

    def values(self, columns: Sequence[int]) -> Numbers:
        return self._kernel_array(columns, np.int64)

    def amounts(self, columns: Sequence[int]) -> Numbers:
        return self._kernel_array(columns, np.int64)

    def _kernel_array(self, columns: Sequence[int], whole: type[np.generic]) -> Numbers:
        """The columns, floats as they are and whole numbers as `whole`: kernels are compiled for few types."""
        array = self.array if _is_all(columns, self.width) else self.array[:, list(columns)]
        kind = array.dtype
        if kind == np.uint64 and whole is np.int64 and array.size and array.max() >= np.uint64(1 << 63):
            row, column = (int(i) for i in np.argwhere(array >= np.uint64(1 << 63))[0])
            raise BadCell(column, row, f"found {int(array[row, column])}, beyond 2**63", "turn the column into text")
        if kind not in (np.float64, np.float32):
            array = array.astype(np.float64 if kind.kind == "f" else whole, copy=False)
        elif not kind.isnative:
            array = array.astype(kind.newbyteorder("="))
        return kernel_view(array)  # type: ignore[return-value]  # its dtype is a float or `whole` by now


@dataclass(frozen=True)
class SparseMatrix:
    """A matrix in CSR form, the cells of a row in the order of their columns; what is not stored is 0."""

    cells: SparseRows

    names = None

    @property
    def width(self) -> int:
        return self.cells.width

    @property
    def rows(self) -> int:
        return self.cells.indptr.size - 1

    def slice(self, start: int, stop: int) -> "SparseMatrix":
        return SparseMatrix(self.cells.slice(start, stop))

    def take(self, rows: Integers) -> "SparseMatrix":
        return SparseMatrix(sparse_rows(self.cells.matrix()[rows]))

    def numbers(self, columns: Sequence[int]) -> Numbers:
        return np.ascontiguousarray(self.amounts(columns).matrix().toarray())

    def values(self, columns: Sequence[int]) -> Numbers:
        return self.numbers(columns)

    def amounts(self, columns: Sequence[int]) -> SparseRows:
        return self.cells if _is_all(columns, self.width) else sparse_rows(self.cells.matrix()[:, list(columns)])


def sparse_rows(matrix: "scipy.sparse.csr_array") -> SparseRows:
    """The rows of a SciPy matrix, whose arrays they share."""
    return SparseRows(matrix.data, matrix.indices, matrix.indptr, int(matrix.shape[1]))


@dataclass(frozen=True)
class Frame:
    """Arrow columns, each of its own type; `named` says whether their names mean anything."""

    table: pa.Table
    named: bool = True

    @property
    def names(self) -> tuple[str, ...] | None:
        return tuple(self.table.column_names) if self.named else None

    @property
    def width(self) -> int:
        return int(self.table.num_columns)

    @property
    def types(self) -> tuple[str, ...]:
        """The type of each column, whatever the way its cells are stored."""
        return tuple(str(plain_type(kind)) for kind in self.table.schema.types)

    @property
    def rows(self) -> int:
        return int(self.table.num_rows)

    @property
    def text_bytes(self) -> int:
        """The bytes of its texts, about."""
        return sum(column.nbytes for column in self.table.columns if is_text(column.type))

    def slice(self, start: int, stop: int) -> "Frame":
        return Frame(self.table.slice(start, stop - start), self.named)

    def take(self, rows: Integers) -> "Frame":
        def takeable(column: pa.ChunkedArray) -> pa.ChunkedArray:
            """Arrow can take no views."""
            return column.cast(pa.large_string()) if pa.types.is_string_view(column.type) else column

        return Frame(with_each(self.table, takeable).take(pa.array(rows)), self.named)

    def select(self, names: Sequence[str]) -> "Frame":
        """The columns of these names in this order; a column that is not there has only missing cells."""
        present = set(self.table.column_names)
        columns = [self.table[name] if name in present else pa.nulls(self.rows) for name in names]
        return Frame(pa.table(columns, names=list(names)), self.named)

    def numbers(self, columns: Sequence[int]) -> Floats:
        cells = np.empty((self.rows, len(columns)))
        for k, column in enumerate(columns):
            cells[:, k] = as_numbers(self._array(column), k)
        return cells

    def values(self, columns: Sequence[int]) -> list[pa.Array]:
        return [self._array(column) for column in columns]

    def amounts(self, columns: Sequence[int]) -> Floats:
        return self.numbers(columns)

    def _array(self, column: int) -> pa.Array:
        chunks = self.table.column(column)
        if chunks.num_chunks == 1:
            return chunks.chunk(0)
        if pa.types.is_dictionary(chunks.type):
            chunks = chunks.unify_dictionaries()
        joined = chunks.combine_chunks()
        return joined.combine_chunks() if isinstance(joined, pa.ChunkedArray) else joined


def plain_type(kind: pa.DataType) -> pa.DataType:
    """The type of cells, whatever the way they are stored."""
    if pa.types.is_dictionary(kind):
        return plain_type(kind.value_type)
    return pa.string() if pa.types.is_large_string(kind) or pa.types.is_string_view(kind) else kind


def is_text(kind: pa.DataType) -> bool:
    """Whether cells of this type are texts."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_numeric(kind: pa.DataType) -> bool:
    """Whether cells of this type can be read as numbers."""
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_temporal(kind)
        or pa.types.is_null(kind)
    )


def as_numbers(array: pa.Array, column: int = 0) -> Floats:
    """The cells as doubles, NaN where one is missing; dates and times count from their origin."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        array = as_values(array, column)
        kind = array.type
    if not is_numeric(kind):
        filled = pc.indices_nonzero(array.is_valid())
        if not len(filled):
            return np.full(len(array), np.nan)
        row = filled[0].as_py()
        problem = f"found {_shown(array[row].as_py())} ({kind}), expected a number"
        raise BadCell(column, row, problem, "correct the cell, leave it empty, or make the column Categorical()")
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return _ticks(array.cast(pa.timestamp("us"), safe=False)) / 86_400e6
    if pa.types.is_time(kind):
        return _ticks(array.cast(pa.time64("us"), safe=False)) / 1e6
    if pa.types.is_duration(kind):
        return _ticks(array.cast(pa.duration("us"), safe=False)) / 1e6
    if not pa.types.is_float64(kind):
        array = array.cast(pa.float64(), safe=False)
    return np.asarray(array.to_numpy(zero_copy_only=False), dtype=np.float64)


def from_numbers(numbers: Floats, kind: str) -> pa.Array:
    """Numbers as cells of the type that they were read from; the ends of its range stand for what is beyond."""
    array = pa.array(numbers, from_pandas=True)
    if kind == "bool":
        return pc.greater(array, 0.5)
    if kind.startswith(("int", "uint")):
        return pc.round(_within(array, -LARGEST_INTEGER, LARGEST_INTEGER)).cast(pa.int64())
    if kind.startswith("date"):
        return pc.floor(_within(array, *DAYS)).cast(pa.int32()).cast(pa.date32())
    if kind.startswith("timestamp"):
        return pc.round(pc.multiply(_within(array, *DAYS), 86_400e6)).cast(pa.int64()).cast(pa.timestamp("us"))
    if kind.startswith("time"):
        return pc.round(pc.multiply(_within(array, 0.0, 86_399.999999), 1e6)).cast(pa.int64()).cast(pa.time64("us"))
    if kind.startswith("duration"):
        return pc.round(pc.multiply(_within(array, -9.2e12, 9.2e12), 1e6)).cast(pa.int64()).cast(pa.duration("us"))
    return array


def _within(array: pa.Array, least: float, most: float) -> pa.Array:
    return pc.min_element_wise(pc.max_element_wise(array, least, skip_nulls=False), most, skip_nulls=False)


def with_columns(table: Table, added: dict[str, Any]) -> pa.Table:
    """The columns of a table with more behind, which get other names where theirs are taken."""
    if isinstance(table, Frame):
        names, columns = table.table.column_names, list(table.table.columns)
    else:
        numbers = table.numbers(range(table.width))
        names, columns = [f"x{j}" for j in range(table.width)], [pa.array(column) for column in numbers.T]
    taken = set(names)
    for name, cells in added.items():
        while name in taken:
            name += "_"
        taken.add(name)
        names.append(name)
        if cells.dtype.kind == "O" and not all(isinstance(cell, str) for cell in cells):
            cells = np.array([class_name(cell) for cell in cells])
        kind = pa.string() if cells.dtype.kind in "OU" else None
        columns.append(pa.array(cells.tolist() if kind else cells, kind))
    return pa.Table.from_arrays(columns, names=names)


def _ticks(array: pa.Array) -> Floats:
    """The integers behind dates and times, NaN where one is missing."""
    return np.asarray(array.cast(pa.int64()).cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False))


def _shown(value: object) -> str:
    """A cell as error messages quote it."""
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."
