"""Decimal numbers as doubles."""

import numpy as np
import pyarrow as pa

from deciban.util.arrays import Floats

# Whole numbers up to this, and powers of ten with exponents up to that, are doubles; so their quotient is rounded once.
EXACT_WHOLE = 1 << 53
EXACT_POWER = 22


def as_doubles(array: pa.Array) -> pa.Array:
    """The doubles nearest to decimal numbers, as every engine rounds them; Arrow itself is often off by one digit."""
    scale = array.type.scale
    if 0 <= scale <= EXACT_POWER:
        whole, exact = _digits(array.cast(pa.decimal128(38, scale)) if array.type.bit_width < 128 else array)
        if exact:
            return pa.array(whole / 10.0**scale, mask=array.is_null().to_numpy(zero_copy_only=False))
    return array.cast(pa.string()).cast(pa.float64())


def _digits(array: pa.Array) -> tuple[Floats, bool]:
    """The digits of decimal numbers as whole numbers, and whether all of them are doubles."""
    if array.type.bit_width != 128 or not len(array):
        return np.zeros(len(array)), not len(array)
    halves = np.frombuffer(array.buffers()[1], np.int64).reshape(-1, 2)[array.offset : array.offset + len(array)]
    halves = np.where(array.is_valid().to_numpy(zero_copy_only=False)[:, None], halves, 0)
    low, high = halves[:, 0], halves[:, 1]
    small = (high == (low >> 63)) & (np.abs(low) <= EXACT_WHOLE) & (low != np.iinfo(np.int64).min)
    return low.astype(np.float64), bool(small.all())
