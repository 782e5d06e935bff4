"""Texts as Arrow has them."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deciban.errors import BadCell
from deciban.kernels.text_arrays import Texts
from deciban.util.arrays import Bytes, Flags, Integers, kernel_view


def as_text(array: pa.Array, column: int = 0) -> pa.Array:
    """The cells as texts; a BadCell where they are something else."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        if pa.types.is_string_view(kind.value_type):  # of which Arrow can take none
            array = pa.DictionaryArray.from_arrays(array.indices, array.dictionary.cast(pa.large_string()))
        return as_text(array.cast(array.type.value_type), column)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return array
    if pa.types.is_string_view(kind) or pa.types.is_null(kind):
        return array.cast(pa.large_string())
    filled = pc.indices_nonzero(array.is_valid())
    if not len(filled):
        return pa.nulls(len(array), pa.large_string())
    row = filled[0].as_py()
    binary = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
    remedy = "decode the bytes, for instance as UTF-8" if binary else "use Gaussian() or Categorical() for it"
    raise BadCell(column, row, f"found {array[row].as_py()!r} ({kind}), expected text", remedy)


def texts_of(array: pa.Array) -> Texts:
    """The texts of an Arrow array of strings as kernels take them; they share its bytes."""
    kind = np.int64 if pa.types.is_large_string(array.type) else np.int32
    _, starts, held = array.buffers()
    present = present_texts(array)
    if starts is None or not starts.size:
        return Texts(np.zeros(0, dtype=np.uint8), np.zeros(len(array) + 1, dtype=np.int64), present)
    offsets = np.frombuffer(starts, dtype=kind)[array.offset : array.offset + len(array) + 1].astype(np.int64)
    data = np.zeros(0, dtype=np.uint8) if held is None else np.frombuffer(held, dtype=np.uint8)
    return Texts(np.asarray(kernel_view(data)), offsets, present)


def present_texts(array: pa.Array) -> Flags:
    """Whether each text is there, not missing."""
    if not array.null_count:
        return np.ones(len(array), dtype=np.bool_)
    return np.asarray(array.is_valid().to_numpy(zero_copy_only=False))


def decoded_texts(data: Bytes, offsets: Integers) -> list[str]:
    """The texts as Python has them; bytes that are no UTF-8 are replaced."""
    return [bytes(data[a:b]).decode(errors="replace") for a, b in pairwise(offsets)]
