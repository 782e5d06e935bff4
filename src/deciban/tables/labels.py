"""Labels of rows as class codes, weights of rows, and warnings about suspicious labels."""

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from deciban.errors import DataError, Place
from deciban.util.arrays import Codes, Floats
from deciban.util.arrow_values import as_values
from deciban.util.text_tables import count_noun

LabelArray = npt.NDArray[Any]

# Largest weight of a row: above it, doubles cannot count single repetitions exactly.
MAX_REPETITIONS = 1e15

# Warn about the target if it has at least this many classes ...
MANY_CLASSES = 20

# ... with fewer rows per class than this on average.
ROWS_OF_A_CLASS = 3

# A target with fewer rows per class than this on average has about one class per row.
ROWS_OF_A_CLASS_PER_ROW = 1.25

# Groups of spellings shown in a warning.
SHOWN = 3


# Place of a missing label among classes.
MISSING_LABEL = -1

# Place of a label that is not among the classes.
UNKNOWN_LABEL = -2


@dataclass(frozen=True)
class Labels:
    """Distinct labels, sorted and in their original type, and the code of each row's label (-1: missing)."""

    classes: LabelArray
    codes: Codes

    def places_among(self, classes: LabelArray) -> Codes:
        """Return the place of each row's label among other classes, in any order.

        The place is MISSING_LABEL for a missing label and UNKNOWN_LABEL for a label not among them.
        """
        mine, theirs = self.classes, classes
        if mine.dtype.kind in "Mm" and theirs.dtype.kind in "Mm":  # equal times in different units are one label
            both = np.promote_types(mine.dtype, theirs.dtype)
            mine, theirs = mine.astype(both), theirs.astype(both)
        place = {label: k for k, label in enumerate(theirs.tolist())}
        places = [place.get(label, UNKNOWN_LABEL) for label in mine.tolist()]
        return np.array([*places, MISSING_LABEL], dtype=np.int32)[self.codes]

    def label(self, row: int) -> Any:
        """Return the label of a row as a Python object; None if it is missing."""
        code = self.codes[row]
        return None if code == MISSING_LABEL else self.classes[code : code + 1].tolist()[0]


def encode_labels(labels: Any, rows: int) -> Labels:
    """Encode the labels of `rows` rows. None and NaN are missing labels."""
    if isinstance(labels, pa.ChunkedArray) and pa.types.is_string(labels.type) and len(labels) == rows:
        return _from_dictionary(labels.combine_chunks().dictionary_encode(), np.dtype(object))
    array = _label_array(labels)
    if array.ndim != 1:
        raise DataError(
            f"the labels have {array.ndim} dimensions (shape {array.shape}); bad input shape: give one label per row"
        )
    if len(array) != rows:
        raise DataError(
            f"Found input variables with inconsistent numbers of samples: {rows} rows but {len(array)} labels",
            remedy="give one label per row",
        )
    if array.dtype.kind == "b":
        return _narrow(array.view(np.uint8), array.dtype)
    if array.dtype.kind in "iu":
        return _integers(array, array.dtype)
    if array.dtype.kind == "f":
        return _floats(array)
    if array.dtype.kind in "OUS":
        return _objects(array)
    if array.dtype.kind not in "Mm":
        raise DataError(f"Unknown label type: {array.dtype}", remedy="convert the labels to text or integers")
    return _encode_sorted(array, ~np.isnat(array))


def _label_array(labels: Any) -> LabelArray:
    """Convert labels to a NumPy array; of objects if some are missing and their type cannot represent that."""
    if labels is None:
        raise DataError(
            "requires y to be passed, but the target y is None", remedy="pass the labels or the name of their column"
        )
    if isinstance(labels, pa.ChunkedArray | pa.Array):
        return _from_arrow(labels)
    if hasattr(labels, "__arrow_c_stream__") and not hasattr(labels, "columns"):
        try:
            return _from_arrow(pa.chunked_array(labels))
        except DataError:
            raise
        except (pa.ArrowException, TypeError, ValueError):
            return np.asarray(labels, dtype=object)
    if isinstance(labels, np.ma.MaskedArray):
        array = np.array(labels.data, dtype=object if np.ma.is_masked(labels) else None)
        array[np.ma.getmaskarray(labels)] = None
        return array
    array = np.asarray(labels)
    made_text = array.dtype.kind in "US" and not hasattr(
        labels, "dtype"
    )  # NumPy converts None, NaN and numbers to text
    if made_text and not all(isinstance(label, str | bytes) for label in labels):
        array = np.array(labels, dtype=object)
    if array.ndim == 2 and array.shape[1] == 1:
        from sklearn.exceptions import (
            DataConversionWarning,
        )  # imported here only: callers of scikit-learn expect its warning

        warnings.warn(
            "A column-vector y was passed when a 1d array was expected; it is treated as one label per row",
            DataConversionWarning,
            stacklevel=2,
        )
        array = array.ravel()
    return array


def _from_arrow(labels: Any) -> LabelArray:
    """Convert an Arrow array of labels to NumPy; integers and booleans become objects if some are missing."""
    chunks = labels if isinstance(labels, pa.ChunkedArray) else pa.chunked_array([labels])
    if not len(chunks):
        return np.zeros(0, dtype=object)
    kind = chunks.type.value_type if pa.types.is_dictionary(chunks.type) else chunks.type
    if isinstance(kind, pa.BaseExtensionType) or pa.types.is_nested(kind):
        raise DataError(f"Unknown label type: the labels are {kind}", remedy="convert them to text or integers")
    if pa.types.is_dictionary(chunks.type):
        chunks = pa.chunked_array([as_values(chunk) for chunk in chunks.chunks])
    if chunks.null_count and (pa.types.is_integer(chunks.type) or pa.types.is_boolean(chunks.type)):
        return np.array(chunks.to_pylist(), dtype=object)
    return np.asarray(chunks.to_numpy())


def _integers(array: npt.NDArray[Any], kind: np.dtype[Any]) -> Labels:
    """Encode integers as labels of type `kind`: by a lookup table for a narrow range, else by sorting."""
    if not array.size:
        return Labels(array.astype(kind), np.zeros(0, dtype=np.int32))
    low, high = int(array.min()), int(array.max())
    if high - low > max(1 << 16, array.size):
        return _encode_sorted(array, np.ones(array.size, dtype=np.bool_))
    if low and array.dtype.kind == "i":
        array = array.astype(np.int64) - low  # a narrow type would wrap
    elif low:
        array = array - array.dtype.type(low)
    return _narrow(array, kind, low)


def _narrow(offsets: npt.NDArray[Any], kind: np.dtype[Any], low: int = 0) -> Labels:
    """Encode the labels low + offset by a lookup table; for small offsets."""
    occurs = np.zeros(int(offsets.max(initial=0)) + 1, dtype=np.bool_)
    occurs[offsets] = True
    place = np.cumsum(occurs, dtype=np.int32) - np.int32(1)
    found = np.flatnonzero(occurs).astype(np.uint64 if low >= 1 << 62 else np.int64)
    classes = (found + found.dtype.type(low)).astype(kind)
    return Labels(classes if offsets.size else np.zeros(0, kind), place.take(offsets))


def _encode_sorted(array: npt.NDArray[Any], known: npt.NDArray[np.bool_]) -> Labels:
    """Encode the `known` labels by sorting; the others are missing."""
    classes, found = np.unique(array[known], return_inverse=True)
    codes = np.full(array.size, -1, dtype=np.int32)
    codes[known] = found
    return Labels(classes, codes)


def _floats(array: npt.NDArray[Any]) -> Labels:
    """Encode whole numbers stored as floats, NaN for missing; raise a DataError for fractions and infinity."""
    known = ~np.isnan(array)
    values = array[known]
    if np.isinf(values).any():
        raise DataError("the labels contain infinity; Input y contains infinity, which is not a class")
    if not np.array_equal(values, np.floor(values)):
        raise DataError(
            "Unknown label type: continuous. The labels are fractions, which look like a quantity to predict, "
            "not classes",
            remedy="convert them to classes (text or integers) first",
        )
    if float(np.abs(values).max(initial=0.0)) >= 2.0**53:
        return _encode_sorted(array, known)
    found = _integers(values.astype(np.int64), array.dtype)
    codes = np.full(array.size, -1, dtype=np.int32)
    codes[known] = found.codes
    return Labels(found.classes, codes)


def _objects(array: LabelArray) -> Labels:
    """Encode text, or Python objects of one type, by hashing."""
    try:
        encoded = pa.array(array, from_pandas=True).dictionary_encode()
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        kinds = sorted({type(label).__name__ for label in array})
        raise DataError(
            f"Unknown label type: the labels mix {', '.join(kinds)}", remedy="use one type for all labels"
        ) from error
    if encoded.null_count == len(encoded):  # Arrow would treat the missing label as a value
        return Labels(np.zeros(0, dtype=array.dtype), np.full(array.size, -1, dtype=np.int32))
    if pa.types.is_floating(encoded.type.value_type):
        numbers = _floats(array.astype(np.float64))
        return Labels(numbers.classes.astype(array.dtype), numbers.codes)
    return _from_dictionary(encoded, array.dtype)


def _from_dictionary(encoded: Any, kind: np.dtype[Any]) -> Labels:
    """Encode an Arrow dictionary array as labels of type `kind`, in sorted order."""
    values = np.array(encoded.dictionary.to_pylist(), dtype=kind)
    found = encoded.type.value_type
    if kind.kind == "O" and (pa.types.is_integer(found) or pa.types.is_boolean(found)):
        values = values.astype(np.int64 if pa.types.is_integer(found) else np.bool_)
    order = np.argsort(values, kind="stable")
    place = np.empty(order.size + 1, dtype=np.int32)
    place[order] = np.arange(order.size)
    place[-1] = -1
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return Labels(values[order], place[codes])


def label_type(classes: LabelArray) -> str:
    """Return the Arrow type of a column with these labels."""
    return {"b": "bool", "i": "int64", "u": "int64", "f": "double", "M": "timestamp[us]"}.get(
        classes.dtype.kind, "string"
    )


def check_weights(weights: Any, rows: int, first_row: int = 0) -> Floats | None:
    """Return the weights as doubles, or None; raise a DataError that names the row of an invalid weight.

    first_row: number of the first row, for the error.
    """
    if weights is None:
        return None
    try:
        array = np.ascontiguousarray(weights, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"the weights are not numbers ({error})", remedy="give one number per row") from error
    if array.ndim != 1:
        raise DataError(
            f"Sample weights must be 1D array or scalar: they have {array.ndim} dimensions",
            remedy="give one weight per row",
        )
    if array.size != rows:
        raise DataError(
            f"found {count_noun(array.size, 'weight')} for {count_noun(rows, 'row')} (shape mismatch)",
            remedy="give one weight per row",
        )
    bad = ~((array >= 0.0) & (array <= MAX_REPETITIONS))
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise DataError(
            f"its weight is {array[row]}",
            place=Place(row=row + first_row),
            remedy=f"a weight must be finite, not negative and at most {MAX_REPETITIONS:g}",
        )
    return array


def check_class_count(labels: Labels) -> str:
    """Return a warning if the labels look like numbers or identifiers instead of classes; else an empty text."""
    if labels.classes.size < MANY_CLASSES:
        return ""
    rows, classes = _count_rows_and_classes(labels)
    if classes < MANY_CLASSES or rows >= ROWS_OF_A_CLASS * classes:
        return ""
    shown = f"the target has {count_noun(classes, 'class')} in {count_noun(rows, 'row')}"
    if labels.classes.dtype.kind in "iuf" and classes < rows:
        return f"{shown}: it looks like a quantity to predict; convert it to a few classes first, such as low and high"
    return f"{shown}: it looks like an identifier; name the column with the classes"


def has_class_per_row(labels: Labels) -> bool:
    """Return True if about every row has a class of its own."""
    rows, classes = _count_rows_and_classes(labels)
    return rows < ROWS_OF_A_CLASS_PER_ROW * classes


def _count_rows_and_classes(labels: Labels) -> tuple[int, int]:
    """Return the number of rows with a label, and of classes that occur."""
    rows_of = np.bincount(labels.codes[labels.codes >= 0])
    return int(rows_of.sum()), int(np.count_nonzero(rows_of))


def check_spellings(classes: Iterable[Any]) -> str:
    """Return a warning if classes differ only in case or spaces; else an empty text."""
    alike: dict[str, list[str]] = {}
    for label in classes:
        if isinstance(label, str):
            alike.setdefault(" ".join(label.split()).casefold(), []).append(label)
    several = [group for group in alike.values() if len(group) > 1]
    if not several:
        return ""
    shown = "; ".join(", ".join(map(repr, group)) for group in several[:SHOWN]) + (
        "; …" if len(several) > SHOWN else ""
    )
    return f"classes differ only in case or spaces ({shown}) and are treated as different classes; use one spelling"


def check_truncation(
    unfinished: Sequence[str], classes: LabelArray, class_weight: Floats, known: LabelArray | None
) -> str:
    """Return a warning if the label of an unterminated last line occurs in no other row; else an empty text.

    unfinished: labels of last lines without a newline.
    known: classes of the model before these rows.
    """
    before = set() if known is None else {str(label) for label in known.tolist()}
    weight = {str(label): float(some) for label, some in zip(classes.tolist(), class_weight, strict=True)}
    alone = [label for label in unfinished if weight.get(label, 2.0) <= 1.0 and label not in before]
    if not alone:
        return ""
    return (
        f"the last line does not end with a newline, and no other row has its label {alone[0]!r}: the file may be "
        f"truncated; complete it, or end its last line"
    )
