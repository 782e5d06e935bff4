"""Conversion of Arrow arrays to the few types of cell values."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deciban.errors import BadCell
from deciban.util.arrays import Floats

# Integers up to this are exact doubles.
EXACT_WHOLE = 1 << 53

# Powers of ten up to this exponent are exact doubles, so that a quotient of both is rounded once.
EXACT_POWER = 22


def as_values(array: pa.Array, column: int = 0) -> pa.Array:
    """Return `array` in one of the types of levels: text, int64, float64, bool, or a date or time.

    Integral floats become integers, because missing cells turn a column of codes into floats. NaN is missing.
    """
    kind = array.type
    if pa.types.is_dictionary(kind):
        values = as_values(array.dictionary, column)  # Arrow cannot decode dictionaries of every text type
        return pa.DictionaryArray.from_arrays(array.indices, values).dictionary_decode()
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return array.cast(pa.string())
    if pa.types.is_integer(kind):
        if kind == pa.uint64() and len(array) and (pc.max(array).as_py() or 0) >= 1 << 63:
            raise BadCell(column, None, "found integers >= 2**63", "convert the column to text")
        return array.cast(pa.int64())
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        floats = as_doubles(array) if pa.types.is_decimal(kind) else array.cast(pa.float64())
        floats = pc.add(pc.if_else(pc.is_nan(floats), pa.scalar(None, pa.float64()), floats), 0.0)  # -0.0 is 0.0
        whole = pc.all(pc.equal(pc.floor(floats), floats)).as_py() is not False
        small = pc.all(pc.less(pc.abs(floats), 2.0**53)).as_py() is not False
        return floats.cast(pa.int64()) if whole and small else floats
    extension = isinstance(kind, pa.BaseExtensionType)
    if extension or pa.types.is_nested(kind) or "binary" in str(kind):
        raise BadCell(column, None, f"unsupported type {kind}", "convert the column to text or numbers")
    return array


def as_doubles(array: pa.Array) -> pa.Array:
    """Return the doubles nearest to decimal numbers, as engines round them; Arrow is often off by one bit."""
    scale = array.type.scale
    if 0 <= scale <= EXACT_POWER:
        whole, exact = _digits(array.cast(pa.decimal128(38, scale)) if array.type.bit_width < 128 else array)
        if exact:
            return pa.array(whole / 10.0**scale, mask=array.is_null().to_numpy(zero_copy_only=False))
    return array.cast(pa.string()).cast(pa.float64())


def _digits(array: pa.Array) -> tuple[Floats, bool]:
    """Return the digits of decimal numbers as integers, and True if all of them are exact doubles."""
    if array.type.bit_width != 128 or not len(array):
        return np.zeros(len(array)), not len(array)
    halves = np.frombuffer(array.buffers()[1], np.int64).reshape(-1, 2)[array.offset : array.offset + len(array)]
    halves = np.where(array.is_valid().to_numpy(zero_copy_only=False)[:, None], halves, 0)
    low, high = halves[:, 0], halves[:, 1]
    small = (high == (low >> 63)) & (np.abs(low) <= EXACT_WHOLE) & (low != np.iinfo(np.int64).min)
    return low.astype(np.float64), bool(small.all())
