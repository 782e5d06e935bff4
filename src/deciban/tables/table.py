"""Rows in memory: a matrix, a sparse matrix, or Arrow columns.

`Readable` is the interface for families, `Table` the one for the rest of the program. A few functions replace Arrow's
where these would be slow or raise.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from deciban.errors import BadCell, DataError
from deciban.tables.cells import as_numbers, is_text, type_name
from deciban.tables.row_sampling import RowHashes, content_hashes, matrix_hashes, sparse_hashes
from deciban.util.arrays import Flags, Floats, Integers, Numbers, kernel_view
from deciban.util.sparse import SparseRows
from deciban.util.text_tables import format_class

# Name of a placeholder column of missing cells for rows without columns: Arrow and DuckDB need one.
NO_COLUMN = " "

# Frames with at most this many cells keep their columns as numbers, once they are read: 32 MB.
MAX_KEPT_CELLS = 1 << 22


class Readable(Protocol):
    """Rows of a table in the forms that families count."""

    def numbers(self, columns: Sequence[int]) -> Numbers:
        """Return the cells as a C-ordered matrix of real numbers, NaN for missing cells."""
        ...

    def values(self, columns: Sequence[int]) -> Numbers | list[pa.Array]:
        """Return the cells unchanged: a matrix of numbers, or an Arrow array per column."""
        ...

    def amounts(self, columns: Sequence[int]) -> Numbers | SparseRows:
        """Return the cells as numbers that may be mostly zero: a matrix, dense or in CSR form."""
        ...


class Table(Readable, Protocol):
    """Rows that can be counted and scored. Columns may have names."""

    @property
    def names(self) -> tuple[str, ...] | None: ...

    @property
    def width(self) -> int: ...

    @property
    def rows(self) -> int: ...

    def slice(self, start: int, stop: int) -> Self:
        """Return consecutive rows, without a copy if possible."""
        ...

    def take(self, rows: Integers) -> Self:
        """Return the rows with these numbers."""
        ...

    def hashes(self) -> RowHashes:
        """Return a hash of the content of each row."""
        ...


@dataclass(frozen=True)
class Matrix:
    """NumPy array of numbers, NaN for missing cells."""

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
        """Arrow type of each column if they are not numbers, else None."""
        return ("bool",) * self.width if self.array.dtype.kind == "b" else None

    def slice(self, start: int, stop: int) -> "Matrix":
        return self if start == 0 and stop == self.rows else Matrix(self.array[start:stop])

    def take(self, rows: Integers) -> "Matrix":
        return Matrix(self.array[rows])

    def hashes(self) -> RowHashes:
        return matrix_hashes(self.array)

    def numbers(self, columns: Sequence[int]) -> Numbers:
        return self._kernel_array(columns, np.float64)

    def values(self, columns: Sequence[int]) -> Numbers:
        return self._kernel_array(columns, np.int64)

    def amounts(self, columns: Sequence[int]) -> Numbers:
        return self._kernel_array(columns, np.int64)

    def _kernel_array(self, columns: Sequence[int], whole: type[np.generic]) -> Numbers:
        """Return the columns, integers converted to `whole`: kernels are compiled for few types."""
        array = self.array if len(columns) == self.array.shape[1] else _take_columns(self.array, columns)
        kind = array.dtype
        if kind.char in "df" and kind.isnative:
            return kernel_view(array)  # type: ignore[return-value]  # the dtype is a float
        if kind == np.uint64 and whole is np.int64 and array.size and array.max() >= np.uint64(1 << 63):
            row, column = (int(i) for i in np.argwhere(array >= np.uint64(1 << 63))[0])
            raise BadCell(column, row, f"found {int(array[row, column])}, beyond 2**63", "convert the column to text")
        if kind.char in "df":
            array = array.astype(kind.newbyteorder("="))
        else:
            array = array.astype(np.float64 if kind.kind == "f" else whole, copy=False)
        return kernel_view(array)  # type: ignore[return-value]  # the dtype is a float or `whole`


@dataclass(frozen=True)
class SparseMatrix:
    """Matrix in CSR form with sorted cells; cells that are not stored are 0."""

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
        return SparseMatrix(self.cells.take(rows))

    def hashes(self) -> RowHashes:
        return sparse_hashes(self.cells)

    def numbers(self, columns: Sequence[int]) -> Numbers:
        return np.ascontiguousarray(self.amounts(columns).dense())

    def values(self, columns: Sequence[int]) -> Numbers:
        return self.numbers(columns)

    def amounts(self, columns: Sequence[int]) -> SparseRows:
        return self.cells if _is_all(columns, self.width) else self.cells.take_columns(columns)


@dataclass(frozen=True)
class Frame:
    """Arrow columns, each with its own type.

    named: True if the names are meaningful; else columns are identified by position.
    """

    table: pa.Table
    named: bool = True

    @cached_property
    def names(self) -> tuple[str, ...] | None:
        return tuple(self.table.column_names) if self.named else None

    @property
    def width(self) -> int:
        return int(self.table.num_columns)

    @cached_property
    def types(self) -> tuple[str, ...]:
        """Type of each column, regardless of how its cells are stored."""
        return tuple(map(type_name, self.table.schema.types))

    @property
    def rows(self) -> int:
        return int(self.table.num_rows)

    @property
    def has_no_cells(self) -> bool:
        """True if rows contain no information, not even a column."""
        alone = self.width == 1 and self.table.column_names == [NO_COLUMN]
        return alone and bool(self.table[0].null_count == self.rows)

    @property
    def text_bytes(self) -> int:
        """Approximate size of all texts in bytes."""
        texts = (column for column in self.table.columns if is_text(column.type))
        # old versions of Arrow do not count those of views
        return sum(
            column.get_total_buffer_size() if pa.types.is_string_view(column.type) else column.nbytes
            for column in texts
        )

    def slice(self, start: int, stop: int) -> "Frame":
        return Frame(self.table.slice(start, stop - start), self.named)

    def take(self, rows: Integers) -> "Frame":
        def takeable(column: pa.ChunkedArray) -> pa.ChunkedArray:
            """Convert string views, which Arrow cannot take from."""
            return column.cast(pa.large_string()) if pa.types.is_string_view(column.type) else column

        return Frame(map_columns(self.table, takeable).take(pa.array(rows)), self.named)

    def hashes(self) -> RowHashes:
        return content_hashes(self.table.columns, self.rows)

    def select(self, names: Sequence[str]) -> "Frame":
        """Return the columns with these names in this order; absent columns have only missing cells."""
        present = set(self.table.column_names)
        columns = [self.table[name] if name in present else pa.nulls(self.rows) for name in names]
        return Frame(pa.table(columns, names=list(names)), self.named)

    def numbers(self, columns: Sequence[int]) -> Floats:
        if self._matrix is not None:
            return self._matrix if columns == self._all_columns else _take_columns(self._matrix, columns)
        cells, kept = np.empty((self.rows, len(columns))), self._kept
        for k, column in enumerate(columns):
            found = kept[column] if column in kept else as_numbers(self._array(column), k)
            if self.rows * self.width <= MAX_KEPT_CELLS:
                kept[column] = found
            cells[:, k] = found
        return cells

    # Families, bins and missing cells need the same numbers, so those of small tables are kept.

    @cached_property
    def _matrix(self) -> Floats | None:
        """All cells as numbers, if no column has another type and the table is small."""
        batches = self.table.to_batches() if 0 < self.rows * self.width <= MAX_KEPT_CELLS else []
        if len(batches) != 1:
            return None
        try:
            cells = batches[0].to_tensor(null_to_nan=True, row_major=True).to_numpy()
        except (pa.ArrowTypeError, pa.ArrowNotImplementedError):  # text, half floats
            return None
        return cells if cells.dtype == np.float64 else None

    @cached_property
    def _kept(self) -> dict[int, Floats]:
        return {}

    @cached_property
    def _all_columns(self) -> tuple[int, ...]:
        return tuple(range(self.width))

    def missing(self) -> Flags | None:
        """Return a mask of the missing cells, row by column; None if no cell is missing."""
        if self._matrix is not None:
            found = np.isnan(self._matrix)
            return found if found.any() else None
        missing: Flags | None = None
        for place, column in enumerate(self.table.columns):
            if pa.types.is_floating(column.type):
                nulls = np.isnan(self.numbers((place,))[:, 0])
            elif column.null_count:
                nulls = column.is_null().to_numpy()
            else:
                continue
            if nulls.any():
                missing = np.zeros((self.rows, self.width), dtype=np.bool_) if missing is None else missing
                missing[:, place] = nulls
        return missing

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


def missing_cells(table: Table) -> Flags | None:
    """Return a mask of the missing cells, row by column; None if no cell is missing.

    Sparse matrices have no missing cells: cells that are not stored are 0.
    """
    if isinstance(table, Matrix):
        found = np.isnan(table.array) if table.array.dtype.kind == "f" else None
        return None if found is None or not found.any() else np.asarray(found)
    return table.missing() if isinstance(table, Frame) else None


def with_columns(table: Table, added: dict[str, Any]) -> pa.Table:
    """Append columns to a table. A name that is already taken gets underscores."""
    if isinstance(table, Frame):
        shown = table.table.drop_columns([NO_COLUMN]) if table.has_no_cells else table.table
        names, columns = shown.column_names, list(shown.columns)
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
            cells = np.array([format_class(cell) for cell in cells])
        kind = pa.string() if cells.dtype.kind in "OU" else None
        columns.append(pa.array(cells.tolist() if kind else cells, kind))
    return pa.Table.from_arrays(columns, names=names)


def map_columns(table: pa.Table, change: Callable[[pa.ChunkedArray], Any]) -> pa.Table:
    """Apply `change` to each column, all at once: replacing columns one by one takes quadratic time."""
    before = table.columns
    after = [change(column) for column in before]
    if all(one is other for one, other in zip(before, after, strict=True)):
        return table
    return pa.Table.from_arrays(after, names=table.column_names)


def cast_like_first(table: pa.Table, schema: pa.Schema | None) -> pa.Table:
    """Cast a table to the types of the first one written to the same file."""
    if table.schema == schema:
        return table
    cast = table.cast(schema)
    for name, here, there in zip(table.column_names, table.schema.types, cast.schema.types, strict=True):
        if pa.types.is_timestamp(here) and pa.types.is_date(there) and cast[name].cast(here) != table[name]:
            raise DataError(
                f"column {name!r} contains dates first and timestamps later", remedy="write a .csv or .jsonl file"
            )
    return cast


def take_cells(array: pa.Array, rows: Any) -> pa.Array:
    """Take cells from an Arrow array, also from string views, which Arrow does not support."""
    if pa.types.is_string_view(array.type):
        array = array.cast(pa.large_string())
    return array.take(pa.array(rows))


def decode_cells(array: pa.Array) -> list[str | None]:
    """Return cells of text as Python strings. Invalid UTF-8, which Arrow accepts, is replaced."""
    cells = array.cast(pa.large_string()).cast(pa.large_binary()).to_pylist()
    return [None if cell is None else cell.decode(errors="replace") for cell in cells]


def _take_columns(array: npt.NDArray[Any], columns: Sequence[int]) -> npt.NDArray[Any]:
    """Return the columns as a C-ordered matrix; indexing with a list would return another order."""
    return array.take(np.asarray(columns, dtype=np.intp), axis=1)


def _is_all(columns: Sequence[int], width: int) -> bool:
    return len(columns) == width
