"""Whatever the user has, as a Table."""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from scipy import sparse

from deciban.data.tables import Frame, Matrix, SparseMatrix, Table
from deciban.errors import DataError, UsageError


def open_table(data: Any) -> Table:
    """NumPy arrays, SciPy sparse matrices, frames (anything with `__arrow_c_stream__`), dicts of columns, lists.

    Arrow types, missing cells and column names come along as they are.
    """
    if isinstance(data, str | bytes):
        raise UsageError(f"expected a table, found the text {data!r}; read the file into a table first")
    if sparse.issparse(data):
        return _sparse(data)
    if hasattr(data, "__arrow_c_stream__"):
        return _frame(data)
    if isinstance(data, Mapping):
        return _columns({str(name): list(column) for name, column in data.items()})
    if isinstance(data, Sequence) and len(data) and all(isinstance(row, Mapping) for row in data):
        names = dict.fromkeys(name for row in data for name in row)
        return _columns({str(name): [row.get(name) for row in data] for name in names})
    return _array(data)


def _sparse(data: Any) -> SparseMatrix:
    if data.dtype.kind == "c":
        raise DataError("Complex data not supported: a sparse matrix of complex numbers; give real numbers")
    matrix = sparse.csr_array(data)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    if matrix.dtype not in (np.float64, np.float32):
        matrix = matrix.astype(np.float64)
    return SparseMatrix(matrix)


def _frame(data: Any) -> Frame:
    try:
        table = pa.table(data)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise DataError(f"a column cannot be read: {error}; give every column one type") from error
    names = table.column_names
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"column {twice!r} is there more than once; give every column its own name")
    return Frame(table, _has_string_names(data))


def _has_string_names(data: Any) -> bool:
    """pandas makes text of the numbers of columns that have no names; they do not count as names."""
    pandas = sys.modules.get("pandas")
    if pandas is None or not isinstance(data, pandas.DataFrame):
        return True
    return all(isinstance(name, str) for name in data.columns)


def _columns(columns: dict[str, list[Any]]) -> Frame:
    lengths = {len(column) for column in columns.values()}
    if len(lengths) > 1:
        raise DataError(f"the columns have different lengths: {sorted(lengths)}; give one cell a row in each")
    arrays = {name: _arrow(column, name) for name, column in columns.items()}
    return Frame(pa.table(arrays))


def _arrow(cells: Any, name: str) -> pa.Array:
    try:
        return pa.array(cells, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        kinds = sorted({type(cell).__name__ for cell in cells if cell is not None})
        raise DataError(
            f"column {name!r}: its cells are of several kinds ({', '.join(kinds)}: argument must be a string or a "
            f"number); give the column one type"
        ) from error


def _array(data: Any) -> Matrix | Frame:
    array = np.asarray(data) if hasattr(data, "__array__") else _from_lists(data)
    if array.ndim != 2:
        hint = "Reshape your data either using array.reshape(-1, 1) or array.reshape(1, -1)"
        found = f"{array.ndim}D array" if array.ndim else "scalar array"
        raise DataError(f"Expected 2D array, got {found} instead: a table has rows and columns. {hint}")
    if array.dtype.kind == "c":
        raise DataError("Complex data not supported: an array of complex numbers; give real numbers")
    if array.dtype.kind in "fiub":
        return Matrix(array)
    if array.dtype.kind not in "OUSMm":
        raise DataError(f"an array of type {array.dtype} is not a table of numbers or values; convert it first")
    columns = [_arrow(array[:, j], f"x{j}") for j in range(array.shape[1])]
    return Frame(pa.table(columns, names=[f"x{j}" for j in range(array.shape[1])]), named=False)


def _from_lists(data: Any) -> np.ndarray:
    """An array of lists of rows; of objects where NumPy would turn numbers beside text into text."""
    try:
        array = np.asarray(data)
    except ValueError as error:
        raise DataError(f"the rows do not have the same number of cells ({error}); make them equal") from error
    return np.asarray(data, dtype=object) if array.dtype.kind in "US" else array
