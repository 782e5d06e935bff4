"""Exact sums of doubles, as integers of many digits.

A sum is an array of digits, the smallest first: digit k counts 2**(32 * (low + k)); `low` is common to all sums of an
array. In `limbs` (int32) digits are between -2**31 and 2**31 - 1, so that each sum has one representation. In `digits`
(int64), while numbers are being added, they may be any.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types

from deciban.kernels.compiled import Array, compile_kernel, emit_intrinsic, inner

# Half the range of a digit.
HALF = 1 << 31

# Mask of the bits of a digit.
MASK = (1 << 32) - 1
LOW_HALF = np.uint64(MASK)
HIGH_HALF = np.uint64(32)

# Mask of the fraction bits of a double.
FRACTION = (1 << 52) - 1

# The implicit leading bit of a double.
LEADING = 1 << 52

# Exponent of the last fraction bit of a double whose biased exponent is 0.
LAST_BIT = -1075

RADIX = 2.0**32

# Leading digits of a sum used for its double-double: 5 have more than 128 bits.
LEADING_DIGITS = 5


@emit_intrinsic
def bits_of(typing: Any, number: Any) -> Any:
    """Return the 64 bits of a double."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), build


@emit_intrinsic
def high_product(typing: Any, a: Any, b: Any) -> Any:
    """Return the upper 64 bits of a product of 128 bits."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        wide = ir.IntType(128)
        product = builder.mul(*(builder.zext(argument, wide) for argument in arguments))
        return builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), build


@inner
def _add_pieces(digits: Array, cell: int, place: int, number: Any, sign: int) -> None:
    """Add 64 unsigned bits to a sum at a position counted in bits from its first digit."""
    k, shift = place >> 5, np.uint64(place & 31)
    low, high = (number & LOW_HALF) << shift, (number >> HIGH_HALF) << shift
    digits[cell, k] += sign * np.int64(low & LOW_HALF)
    digits[cell, k + 1] += sign * (np.int64(low >> HIGH_HALF) + np.int64(high & LOW_HALF))
    digits[cell, k + 2] += sign * np.int64(high >> HIGH_HALF)


@inner
def add_integer(digits: Array, cell: int, low: int, number: Any, exponent: int) -> None:
    """Add number * 2**exponent to a sum."""
    if number != 0:
        sign = -1 if number < 0 else 1
        _add_pieces(digits, cell, exponent - 32 * low, np.uint64(number * sign), sign)


@inner
def add_product(digits: Array, cell: int, low: int, w: float, a: float, b: float) -> None:
    """Add w * a * b to a sum."""
    if w == 0.0 or a == 0.0 or b == 0.0:
        return
    place, sign = 3 * LAST_BIT - 32 * low, 1
    first, second, third = np.uint64(0), np.uint64(0), np.uint64(0)
    for step in range(3):
        bits = bits_of(w if step == 0 else a if step == 1 else b)
        sign = -sign if bits < 0 else sign
        exponent = (bits >> 52) & 2047
        mantissa = np.uint64((bits & FRACTION) | (LEADING if exponent > 0 else 0))
        place += exponent if exponent > 0 else 1
        if step == 0:
            first = mantissa
        elif step == 1:
            second = high_product(first, mantissa)
            first = first * mantissa
        else:
            third = high_product(second, mantissa)
            middle = second * mantissa
            second = middle + high_product(first, mantissa)
            third += np.uint64(1) if second < middle else np.uint64(0)
            first = first * mantissa
    _add_pieces(digits, cell, place, first, sign)
    if second != np.uint64(0) or third != np.uint64(0):
        _add_pieces(digits, cell, place + 64, second, sign)
        _add_pieces(digits, cell, place + 128, third, sign)


@compile_kernel
def add_products(w: Array, a: Array, b: Array, digits: Array, low: int) -> None:
    """Add w * a * b to each of the sums."""
    for i in range(w.size):
        add_product(digits, i, low, w[i], a[i], b[i])


@compile_kernel
def add_integers(numbers: Array, exponents: Array, digits: Array, low: int) -> None:
    """Add number * 2**exponent to each of the sums."""
    for i in range(numbers.size):
        add_integer(digits, i, low, numbers[i], exponents[i])


@inner
def _carry(digits: Array, size: int) -> None:
    """Normalize the digits of a sum to the range of limbs; the last digit must have room for the carry."""
    carried = 0
    for k in range(size):
        total = digits[k] + carried
        digit = ((total + HALF) & MASK) - HALF
        carried = (total - digit) >> 32
        digits[k] = digit


@compile_kernel
def carry(digits: Array) -> None:
    """Normalize the digits of all sums to the range of limbs."""
    for i in range(digits.shape[0]):
        _carry(digits[i], digits.shape[1])


@compile_kernel
def add_limbs(one: Array, one_first: int, other: Array, other_first: int, sign: int, out: Array) -> None:
    """Write one + sign * other; their digits begin at positions `one_first` and `other_first` of `out`."""
    one_end, other_end = one_first + one.shape[1], other_first + other.shape[1]
    for i in range(out.shape[0]):
        carried = np.int64(0)
        for k in range(out.shape[1]):
            total = carried
            if one_first <= k < one_end:
                total += np.int64(one[i, k - one_first])
            if other_first <= k < other_end:
                total += sign * np.int64(other[i, k - other_first])
            digit = ((total + HALF) & MASK) - HALF
            carried = (total - digit) >> 32
            out[i, k] = digit


@inner
def _add_limb_products(digits: Array, first: int, one: Array, other: Array, sign: Any) -> None:
    """Add sign (an int64) * one * other; their smallest digits meet at position `first`."""
    for k in range(one.size):
        if one[k] == 0:
            continue
        for m in range(other.size):
            product = sign * np.int64(one[k]) * np.int64(other[m])
            digits[first + k + m] += product & MASK
            digits[first + k + m + 1] += product >> 32


@compile_kernel
def multiply_limbs(limbs: Array, factor: Array, digits: Array) -> None:
    """Add the product of each sum and a factor, given by its limbs, to `digits`, and carry."""
    for i in range(limbs.shape[0]):
        _add_limb_products(digits[i], 0, limbs[i], factor, 1)
        _carry(digits[i], digits.shape[1])


@inner
def _read_leading(digits: Array, size: int) -> tuple[float, float, int]:
    """Return the leading digits of a sum as a double-double, and the position of the digit they count."""
    top = size - 1
    while top >= 0 and digits[top] == 0:
        top -= 1
    if top < 0:
        return 0.0, 0.0, 0
    high, low, unit = np.float64(0.0), np.float64(0.0), 1.0
    for k in range(LEADING_DIGITS):
        if top - k < 0:
            break
        term = np.float64(digits[top - k]) * unit
        total = high + term  # a term may be larger than `high` if that is 0 or cancels
        part = total - high
        low += (high - (total - part)) + (term - part)
        high = total
        unit /= RADIX
    total = high + low
    return total, low - (total - high), top


@inner
def _divide(high: float, low: float, by: float, by_low: float) -> tuple[float, float]:
    """Return (high + low) / (by + by_low) as a double-double."""
    quotient = high / by
    split = 134217729.0 * quotient
    q1 = split - (split - quotient)
    q2 = quotient - q1
    split = 134217729.0 * by
    b1 = split - (split - by)
    b2 = by - b1
    product = quotient * by
    error = ((q1 * b1 - product) + q1 * b2 + q2 * b1) + q2 * b2
    rest = (((high - product) - error) + low - quotient * by_low) / by
    total = quotient + rest
    return total, rest - (total - quotient)


@inner
def _scale(number: float, exponent: int) -> float:
    """Return number * 2**(32 * exponent)."""
    while exponent > 0:
        number *= RADIX
        exponent -= 1
    while exponent < 0 and number != 0.0:
        number /= RADIX
        exponent += 1
    return number


@compile_kernel
def limbs_as_doubles(limbs: Array, low: int, high: Array, rest: Array) -> None:
    """Write each sum as a double-double: the nearest double, and the rest."""
    for i in range(limbs.shape[0]):
        a, b, top = _read_leading(limbs[i], limbs.shape[1])
        high[i], rest[i] = _scale(a, top + low), _scale(b, top + low)


@compile_kernel
def limb_quotients(top: Array, bottom: Array, shift: int, high: Array, rest: Array) -> None:
    """Write top / bottom, 0 if the bottom is 0; shift: the number of digits by which the top starts later."""
    for i in range(top.shape[0]):
        n, n_low, n_place = _read_leading(bottom[i], bottom.shape[1])
        a, a_low, a_place = _read_leading(top[i], top.shape[1])
        if n != 0.0:
            a, a_low = _divide(a, a_low, n, n_low)
        else:
            a, a_low = 0.0, 0.0
        high[i], rest[i] = _scale(a, a_place - n_place + shift), _scale(a_low, a_place - n_place + shift)


@compile_kernel
def limb_scatters(
    weight: Array, one: Array, other: Array, second: Array, lows: Array, digits: Array, high: Array, rest: Array
) -> None:
    """Write second - one * other / weight for each cell; 0 without weight.

    The sign is exact, however small the result is. lows: of the four sums. digits: scratch space for weight * second -
    one * other, which is exact.
    """
    products, squares = lows[0] + lows[3], lows[1] + lows[2]
    least = products if products < squares else squares
    for i in range(weight.shape[0]):
        n, n_low, n_place = _read_leading(weight[i], weight.shape[1])
        if n == 0.0:
            high[i], rest[i] = 0.0, 0.0
            continue
        digits[:] = 0
        _add_limb_products(digits, products - least, weight[i], second[i], np.int64(1))
        _add_limb_products(digits, squares - least, one[i], other[i], np.int64(-1))
        _carry(digits, digits.size)
        a, a_low, place = _read_leading(digits, digits.size)
        a, a_low = _divide(a, a_low, n, n_low)
        exponent = place + least - n_place - lows[0]
        high[i], rest[i] = _scale(a, exponent), _scale(a_low, exponent)
        if high[i] == 0.0 and a != 0.0:
            high[i] = 5e-324 if a > 0.0 else -5e-324  # the smallest double
