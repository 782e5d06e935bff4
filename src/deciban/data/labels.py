"""Labels and weights."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from deciban.arrays import Codes, Floats
from deciban.errors import DataError

LabelArray = npt.NDArray[Any]

# More repetitions of a row than this are no longer told apart by a double.
MOST_REPETITIONS = 1e15


@dataclass(frozen=True)
class Labels:
    """The distinct labels, sorted and of the type they came in, and each row's place among them (-1: missing)."""

    classes: LabelArray
    codes: Codes


def encode_labels(labels: Any, rows: int) -> Labels:
    """The labels of `rows` rows; None and NaN are missing labels."""
    array = label_array(labels)
    if array.ndim != 1:
        raise DataError(
            f"the labels have {array.ndim} dimensions (shape {array.shape}); bad input shape: give one label a row"
        )
    if array.size != rows:
        raise DataError(
            f"Found input variables with inconsistent numbers of samples: {rows} rows but {array.size} labels; "
            f"give one label a row"
        )
    if array.dtype.kind == "b":
        return _narrow(array.view(np.uint8), array.dtype)
    if array.dtype.kind in "iu":
        return _integers(array, array.dtype)
    if array.dtype.kind == "f":
        return _floats(array)
    return _objects(array)


def label_array(labels: Any) -> LabelArray:
    """The labels as a NumPy array, whatever they came in."""
    if labels is None:
        raise DataError(
            "requires y to be passed, but the target y is None; give the labels or the name of their column"
        )
    if isinstance(labels, pa.ChunkedArray | pa.Array):
        array = np.asarray(labels.to_numpy() if isinstance(labels, pa.ChunkedArray) else labels.to_numpy(False))
        whole = pa.types.is_integer(labels.type) or pa.types.is_boolean(labels.type)
        return np.array(labels.to_pylist(), dtype=object) if whole and labels.null_count else array
    if hasattr(labels, "__arrow_c_stream__") and not hasattr(labels, "__array__"):
        return label_array(pa.chunked_array(labels))
    array = np.asarray(labels)
    if array.ndim == 2 and array.shape[1] == 1:
        import warnings

        from sklearn.exceptions import DataConversionWarning

        warnings.warn(
            "A column-vector y was passed when a 1d array was expected; it is taken as one label a row",
            DataConversionWarning,
            stacklevel=2,
        )
        array = array.ravel()
    return array


def _integers(array: npt.NDArray[Any], kind: np.dtype[Any]) -> Labels:
    if not array.size:
        return Labels(array.astype(kind), np.zeros(0, dtype=np.int32))
    low, high = int(array.min()), int(array.max())
    if high - low <= max(1 << 16, array.size):
        return _narrow(array.astype(np.int64) - low if low else array, kind, low)
    classes, codes = np.unique(array, return_inverse=True)
    return Labels(classes.astype(kind), codes.astype(np.int32))


def _narrow(offsets: npt.NDArray[Any], kind: np.dtype[Any], low: int = 0) -> Labels:
    """The labels low + offset, for small offsets: a table tells which occur and their places."""
    occurs = np.zeros(int(offsets.max(initial=0)) + 1, dtype=np.bool_)
    occurs[offsets] = True
    place = np.cumsum(occurs, dtype=np.int32) - np.int32(1)
    return Labels((np.flatnonzero(occurs) + low).astype(kind) if offsets.size else np.zeros(0, kind), place[offsets])


def _floats(array: npt.NDArray[Any]) -> Labels:
    known = ~np.isnan(array)
    values = array[known]
    if np.isinf(values).any():
        raise DataError("the labels hold infinity; Input y contains infinity, which is not a class")
    if not np.array_equal(values, np.floor(values)):
        raise DataError(
            "Unknown label type: continuous. The labels are fractions, which looks like a quantity to be predicted "
            "and not a class; turn them into classes (text or whole numbers) first"
        )
    found = _integers(values.astype(np.int64), array.dtype)
    codes = np.full(array.size, -1, dtype=np.int32)
    codes[known] = found.codes
    return Labels(found.classes, codes)


def _objects(array: LabelArray) -> Labels:
    try:
        encoded = pa.array(array, from_pandas=True).dictionary_encode()
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        kinds = sorted({type(label).__name__ for label in array})
        raise DataError(f"Unknown label type: the labels mix {', '.join(kinds)}; give them all one type") from error
    values = np.array(encoded.dictionary.to_pylist(), dtype=array.dtype)
    if values.size and isinstance(values[0], float):
        numbers = _floats(array.astype(np.float64))
        return Labels(numbers.classes.astype(array.dtype), numbers.codes)
    order = np.argsort(values, kind="stable")
    place = np.empty(order.size + 1, dtype=np.int32)
    place[order] = np.arange(order.size)
    place[-1] = -1
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return Labels(values[order], place[codes])


def check_weights(weights: Any, rows: int) -> Floats | None:
    """The weights as doubles; None stays None."""
    if weights is None:
        return None
    try:
        array = np.ascontiguousarray(weights, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"the weights are not numbers ({error}); give one number a row") from error
    if array.ndim != 1:
        raise DataError(f"Sample weights must be 1D array or scalar: they have {array.ndim} dimensions; give one a row")
    if array.size != rows:
        raise DataError(f"there are {array.size} weights for {rows} rows (shape mismatch); give one weight a row")
    bad = ~((array >= 0.0) & (array <= MOST_REPETITIONS))
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise DataError(
            f"row {row}: its weight is {array[row]}; a weight is a number of repetitions: finite, not negative, "
            f"at most {MOST_REPETITIONS:g}"
        )
    return array
