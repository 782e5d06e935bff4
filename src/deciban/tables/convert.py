"""Whatever the user has in memory, as a Table."""

import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import scipy

from deciban.errors import DataError, Place, UsageError
from deciban.tables.cells import is_text, plain_type
from deciban.tables.table import NO_COLUMN, Frame, Matrix, SparseMatrix, Table, find_duplicate
from deciban.util.sparse import SparseRows

# Half of a pair that would be a character; no file can hold it.
HALF_CHARACTER = re.compile("[\ud800-\udfff]")

# What pyarrow and pandas raise for a column they cannot convert.
UNREADABLE = (pa.ArrowException, TypeError, ValueError, OverflowError)

# Packages whose tables are neither in memory nor read by this one, and what to do with one.
NOT_IN_MEMORY = {
    "dask": "pass table.compute(), or learn its partitions one after another with partial_fit",
    "deltalake": "pass table.to_pyarrow_dataset()",
    "pyiceberg": "pass table.scan().to_arrow()",
}


def as_table(data: Any) -> Table:
    """NumPy arrays, SciPy sparse matrices, frames (anything with `__arrow_c_stream__`), dicts of columns, lists.

    Arrow types, missing cells and column names come along as they are.
    """
    if type(data) is np.ndarray:
        return _texts(data) or _array(data)
    if isinstance(data, Matrix | SparseMatrix | Frame):
        return data
    if (package := type(data).__module__.partition(".")[0]) in NOT_IN_MEMORY:
        raise UsageError(f"expected a table, found {type(data).__name__} of {package}; {NOT_IN_MEMORY[package]}")
    if isinstance(data, bytes):
        raise UsageError(f"expected a table, found {data[:40]!r}", remedy="give a table, or the name of a file as text")
    if "scipy.sparse" in sys.modules and scipy.sparse.issparse(data):  # otherwise nobody can have made one
        return _sparse(data)
    if (texts := _texts(data)) is not None:
        return texts
    if _is_pandas(data):
        return _pandas(data)
    if hasattr(data, "__arrow_c_stream__"):
        return _frame(data)
    if isinstance(data, Mapping):
        return _columns(data)
    if isinstance(data, Sequence) and len(data) and all(isinstance(row, Mapping) for row in data):
        names = dict.fromkeys(name for row in data for name in row) or (NO_COLUMN,)  # rows of which nothing is known
        return _columns({name: [row.get(name) for row in data] for name in names})
    return _array(data)


def _texts(data: Any) -> Frame | None:
    """Texts alone, one a row, as a table of one column, which has a name if they have; None for anything else."""
    name = getattr(data, "name", None)
    if isinstance(data, list | tuple):
        kinds = set(map(type, data))
        if not kinds & {str, np.str_}:
            return None
        for row, cell in enumerate(data if kinds - {str, np.str_, type(None)} else ()):
            if isinstance(cell, int | float | bytes) and cell == cell:
                found = f"row {row}: found {cell!r} ({type(cell).__name__}) among texts"
                raise DataError(f"{found}", remedy="give texts alone, or a list with one list of cells a row")
        if not kinds <= {str, np.str_, float, type(None)}:
            return None
        cells = _arrow(data, "x0")
    elif isinstance(data, pa.Array | pa.ChunkedArray):
        cells = data
    elif getattr(data, "ndim", 1) != 1 or not hasattr(data, "dtype"):
        return None
    elif isinstance(data, np.ndarray):
        if data.dtype.kind not in "OUT" or not any(isinstance(cell, str) for cell in data):
            return None
        cells = _arrow(data, "x0")
    elif _is_pandas_series(data):
        cells = _series(data, str(name) if name is not None else "x0")
    elif hasattr(data, "to_arrow"):  # of polars
        cells = data.to_arrow()
    else:
        return _texts(np.asarray(data))
    if not is_text(plain_type(cells.type)):
        return None
    named = isinstance(name, str) and name != ""
    return _make_frame([str(name) if named else "x0"], [cells], named)


def _is_pandas_series(data: Any) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(data, pandas.Series)


def _sparse(data: Any) -> SparseMatrix:
    """A SciPy matrix in CSR form, its cells in order, each once."""
    if data.dtype.kind == "c":
        raise DataError("Complex data not supported: a sparse matrix of complex numbers", remedy="give real numbers")
    if data.ndim != 2:
        raise DataError(
            f"Expected 2D array, got a sparse array of {data.ndim} dimension(s): a table has rows and columns"
        )
    matrix = data.tocsr()
    if not matrix.has_canonical_format:  # SciPy remembers the answer
        matrix = matrix.copy()
        matrix.sum_duplicates()
    if matrix.dtype not in (np.float64, np.float32):
        matrix = matrix.astype(np.float64)
    return SparseMatrix(SparseRows.of(matrix))


def _is_pandas(data: Any) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(data, pandas.DataFrame)


def _pandas(data: Any) -> Frame:
    """The columns of a pandas frame. Its index labels rows and is no column; numbers 0, 1, ... are no names."""
    names = [str(name) for name in data.columns]
    arrays = [_series(data.iloc[:, j], name) for j, name in enumerate(names)]
    unnamed = [name for name in data.columns if isinstance(name, int)] == list(range(len(names)))
    return _make_frame(names, arrays, named=not unnamed)


def _series(column: Any, name: str) -> pa.Array:
    """A pandas column; categories that Arrow does not know (intervals, periods) are named by their text."""
    try:
        if hasattr(column.dtype, "fill_value"):  # a sparse column
            column = column.sparse.to_dense()
        if getattr(column.dtype, "categories", None) is not None:
            values = column.cat.categories
            try:
                known = pa.array(values, from_pandas=True)
                plain = not isinstance(known.type, pa.BaseExtensionType)
            except UNREADABLE:
                plain = False
            if not plain:
                known = pa.array(values.astype(str))
            codes = column.cat.codes.to_numpy()
            return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32(), mask=codes < 0), known)
        array = pa.Array.from_pandas(column)
        return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    except UnicodeError:  # half a character
        return _arrow(column.tolist(), name)
    except UNREADABLE as error:
        raise _unreadable(name, column.tolist(), error) from error


def _frame(data: Any) -> Frame:
    """The columns of whatever has `__arrow_c_stream__`."""
    try:
        table = pa.table(data)
    except UNREADABLE as error:
        raise DataError(
            f"a column cannot be read: {_first_line(error)}", remedy="give every column one type"
        ) from error
    return _make_frame(table.column_names, table.columns)


def _columns(data: Mapping[Any, Any]) -> Frame:
    """The columns of a dict."""
    single = [
        name for name, column in data.items() if isinstance(column, str | bytes) or not hasattr(column, "__len__")
    ]
    if single:
        raise DataError(
            f"column {single[0]!r} of a dict of columns holds one value, not one a row",
            remedy="give a single row as a list with one dict in it",
        )
    lengths = {len(column) for column in data.values()}
    if len(lengths) > 1:
        raise DataError(f"the columns have different lengths: {sorted(lengths)}", remedy="give one cell a row in each")
    names = [str(name) for name in data]
    return _make_frame(names, [_arrow(column, name) for name, column in zip(names, data.values(), strict=True)])


def _make_frame(names: Sequence[str], arrays: Sequence[Any], named: bool = True) -> Frame:
    """A frame of columns with these names, each of which may be there once."""
    if (twice := find_duplicate(names)) is not None:
        raise DataError(f"column {twice!r} is there more than once", remedy="give every column its own name")
    return Frame(pa.table(list(arrays), names=list(names)), named)


def _arrow(cells: Any, name: str) -> pa.Array:
    """The cells of a column as an Arrow array; half characters are replaced."""
    try:
        return pa.array(cells, from_pandas=True)
    except UnicodeError:
        return _arrow([HALF_CHARACTER.sub("\ufffd", cell) if isinstance(cell, str) else cell for cell in cells], name)
    except UNREADABLE as error:
        raise _unreadable(name, cells, error) from error


def _unreadable(name: str, cells: Any, error: BaseException) -> DataError:
    """The error for a column that Arrow cannot convert."""
    kinds = sorted({type(cell).__name__ for cell in cells if cell is not None})
    if len(kinds) > 1:
        why = f"its cells are of several kinds ({', '.join(kinds)}: argument must be a string or a number)"
    else:
        why = f"its cells cannot be read ({_first_line(error)})"
    return DataError(why, place=Place(column=name), remedy="give the column one type, numbers or text")


def _first_line(error: BaseException) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


def _array(data: Any) -> Matrix | Frame:
    """An array or lists of rows: a matrix of numbers, or a frame without names where there are other cells."""
    array = np.asarray(data) if hasattr(data, "__array__") else _from_lists(data)
    if array.ndim != 2:
        hint = "Reshape your data either using array.reshape(-1, 1) or array.reshape(1, -1)"
        found = f"{array.ndim}D array" if array.ndim else "scalar array"
        raise DataError(f"Expected 2D array, got {found} instead: a table has rows and columns. {hint}")
    if array.dtype.kind == "c":
        raise DataError("Complex data not supported: an array of complex numbers", remedy="give real numbers")
    if isinstance(data, np.ma.MaskedArray) and array.dtype.kind in "fiub":
        array = np.ma.filled(data.astype(np.float64), np.nan)
    if array.dtype.kind in "fiub":
        return Matrix(array)
    if array.dtype.kind not in "OUSMm":
        raise DataError(
            f"an array of type {array.dtype} is not a table of numbers or values", remedy="convert it first"
        )
    names = [f"x{j}" for j in range(array.shape[1])]
    return _make_frame(names, [_arrow(array[:, j], name) for j, name in enumerate(names)], named=False)


def _from_lists(data: Any) -> np.ndarray:
    """An array of lists of rows; of objects where NumPy would turn numbers beside text into text."""
    try:
        array = np.asarray(data)
    except ValueError as error:
        raise DataError(f"the rows do not have the same number of cells ({error})", remedy="make them equal") from error
    return np.asarray(data, dtype=object) if array.dtype.kind in "US" else array
