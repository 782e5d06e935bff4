"""Convert data in memory to a Table."""

import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from deciban.errors import DataError, Place, UsageError
from deciban.tables.cells import is_text, plain_type
from deciban.tables.table import NO_COLUMN, Frame, Matrix, SparseMatrix, Table
from deciban.util.sparse import SparseRows
from deciban.util.text_tables import find_duplicate

# Lone surrogates, which cannot be encoded in UTF-8.
HALF_CHARACTER = re.compile("[\ud800-\udfff]")

# Errors of pyarrow and pandas for a column they cannot convert.
UNREADABLE = (pa.ArrowException, TypeError, ValueError, OverflowError)

# Packages whose tables are not supported directly, and what to do with them.
NOT_IN_MEMORY = {
    "dask": "pass table.compute(), or learn its partitions one after another with partial_fit",
    "deltalake": "pass table.to_pyarrow_dataset()",
    "pyiceberg": "pass table.scan().to_arrow()",
}


def as_table(data: Any) -> Table:
    """Convert NumPy arrays, SciPy sparse matrices, data frames, dicts of columns, or lists to a table.

    Data frames are objects with `__arrow_c_stream__`. Arrow types, missing cells and column names are kept.
    """
    if type(data) is np.ndarray:
        return (_texts(data) if data.ndim == 1 else None) or _array(data)
    if isinstance(data, Matrix | SparseMatrix | Frame):
        return data
    if (package := type(data).__module__.partition(".")[0]) in NOT_IN_MEMORY:
        raise UsageError(f"expected a table, found {type(data).__name__} of {package}; {NOT_IN_MEMORY[package]}")
    if isinstance(data, bytes):
        raise UsageError(f"expected a table, found {data[:40]!r}", remedy="pass a table, or a file name as str")
    sparse = sys.modules.get("scipy.sparse")
    if sparse is not None and sparse.issparse(data):  # without the module the data cannot be sparse
        return _sparse(data)
    is_series = getattr(data, "ndim", None) == 1 and hasattr(data, "to_frame")  # of pandas or polars
    try:
        texts = _texts(data)
    except DataError:
        if not is_series:
            raise
        texts = None
    if texts is not None:
        return texts
    if is_series:
        row = "X.iloc[[0]]" if hasattr(data, "iloc") else "X[[0]]"
        raise DataError(
            "Expected 2D array, got 1D array instead: a Series is one row or one column of a table",
            remedy=f"for one row pass {row}, for one column X[['name']]",
        )
    if _is_pandas(data):
        return _pandas(data)
    if hasattr(data, "__arrow_c_stream__"):
        return _frame(data)
    if isinstance(data, Mapping):
        return _columns(data)
    if isinstance(data, Sequence) and len(data) and all(isinstance(row, Mapping) for row in data):
        names = dict.fromkeys(name for row in data for name in row) or (NO_COLUMN,)  # rows without any cell
        return _columns({name: [row.get(name) for row in data] for name in names})
    return _array(data)


def _texts(data: Any) -> Frame | None:
    """Return texts, one per row, as a table with one column; None for other data."""
    name = getattr(data, "name", None)
    if isinstance(data, list | tuple):
        kinds = set(map(type, data))
        if not kinds & {str, np.str_}:
            return None
        for row, cell in enumerate(data if kinds - {str, np.str_, type(None)} else ()):
            if isinstance(cell, int | float | bytes) and cell == cell:
                raise DataError(
                    f"found {cell!r} ({type(cell).__name__}), expected text",
                    place=Place(row=row),
                    remedy="pass only strings, or one list of cells per row",
                )
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
    elif hasattr(data, "to_arrow"):  # a polars series
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
    """Return a SciPy matrix in CSR form, with sorted cells and no duplicates."""
    if data.dtype.kind == "c":
        raise DataError("Complex data not supported: a sparse matrix of complex numbers", remedy="give real numbers")
    if data.ndim != 2:
        raise DataError(
            f"Expected 2D array, got a sparse array of {data.ndim} dimension(s): a table has rows and columns"
        )
    matrix = data.tocsr()
    if not matrix.has_canonical_format:  # SciPy caches this
        matrix = matrix.copy()
        matrix.sum_duplicates()
    if matrix.dtype not in (np.float64, np.float32):
        matrix = matrix.astype(np.float64)
    return SparseMatrix(SparseRows.of(matrix))


def _is_pandas(data: Any) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(data, pandas.DataFrame)


def _pandas(data: Any) -> Frame:
    """Return the columns of a pandas frame. The index is dropped; integer names 0, 1, ... count as unnamed."""
    given, kinds = data.columns.tolist(), set(data.dtypes)
    names = [str(name) for name in given]
    if len(kinds) == 1 and isinstance(kind := kinds.pop(), np.dtype) and kind.kind in "fiu":
        arrays = [_arrow(column, name) for column, name in zip(data.to_numpy().T, names, strict=True)]
    else:
        arrays = [_series(column, name) for (_, column), name in zip(data.items(), names, strict=True)]
    unnamed = [name for name in given if isinstance(name, int)] == list(range(len(names)))
    return _make_frame(names, arrays, named=not unnamed)


def _series(column: Any, name: str) -> pa.Array:
    """Return a pandas column. Categories that Arrow cannot store (intervals, periods) become text."""
    try:
        if isinstance(column.dtype, np.dtype):
            return pa.array(column.to_numpy(), from_pandas=True)
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
    except UnicodeError:  # a lone surrogate
        return _arrow(column.tolist(), name)
    except UNREADABLE as error:
        raise _unreadable(name, column.tolist(), error) from error


def _frame(data: Any) -> Frame:
    """Return the columns of an object with `__arrow_c_stream__`."""
    try:
        table = pa.table(data)
    except UNREADABLE as error:
        raise DataError(f"a column cannot be read: {_first_line(error)}", remedy="use one type per column") from error
    return _make_frame(table.column_names, table.columns)


def _columns(data: Mapping[Any, Any]) -> Frame:
    """Return the columns of a dict."""
    single = [
        name for name, column in data.items() if isinstance(column, str | bytes) or not hasattr(column, "__len__")
    ]
    if single:
        raise DataError(
            f"column {single[0]!r} of a dict of columns contains one value, not one per row",
            remedy="pass a single row as a list with one dict",
        )
    lengths = {len(column) for column in data.values()}
    if len(lengths) > 1:
        raise DataError(
            f"the columns have different lengths: {sorted(lengths)}", remedy="give one cell per row in each"
        )
    names = [str(name) for name in data]
    return _make_frame(names, [_arrow(column, name) for name, column in zip(names, data.values(), strict=True)])


def _make_frame(names: Sequence[str], arrays: Sequence[Any], named: bool = True) -> Frame:
    """Return a frame of columns; raise a DataError for a duplicate name."""
    if (twice := find_duplicate(names)) is not None:
        raise DataError(f"duplicate column {twice!r}", remedy="give each column a unique name")
    return Frame(pa.table(list(arrays), names=list(names)), named)


def _arrow(cells: Any, name: str) -> pa.Array:
    """Return the cells of a column as an Arrow array; lone surrogates are replaced."""
    try:
        return pa.array(cells, from_pandas=True)
    except UnicodeError:
        return _arrow([HALF_CHARACTER.sub("\ufffd", cell) if isinstance(cell, str) else cell for cell in cells], name)
    except UNREADABLE as error:
        raise _unreadable(name, cells, error) from error


def _unreadable(name: str, cells: Any, error: BaseException) -> DataError:
    """Return the error for a column that Arrow cannot convert."""
    kinds = sorted({type(cell).__name__ for cell in cells if cell is not None})
    if len(kinds) > 1:
        why = f"its cells have several types ({', '.join(kinds)}: argument must be a string or a number)"
    else:
        why = f"its cells cannot be read ({_first_line(error)})"
    return DataError(why, place=Place(column=name), remedy="use one type in the column: numbers or text")


def _first_line(error: BaseException) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


def _array(data: Any) -> Matrix | Frame:
    """Return an array or lists of rows as a matrix of numbers, or as a frame without names for other cells."""
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
    """Return lists of rows as an array; of objects if NumPy would turn numbers into text."""
    try:
        array = np.asarray(data)
    except ValueError as error:
        raise DataError(
            f"the rows do not have the same number of cells ({error})", remedy="give all rows the same number of cells"
        ) from error
    return np.asarray(data, dtype=object) if array.dtype.kind in "US" else array
