"""Sums without rounding errors: whatever was added can be subtracted again, in any order, without a trace."""

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from deciban import kernels
from deciban.util.arrays import Codes, Flags, Floats, Integers, scatter_to

# Bits of a digit.
DIGIT = 32

# Digits that a sum keeps when it is scaled by a fraction: more than 350 bits.
KEPT_DIGITS = 12

# Position, after the first digit, at which a rounded sum of squares is raised.
RAISED_DIGIT = 10

# Amount by which it is raised, so that it stays above the square of the sum, which is rounded too.
RAISED = 4

# Doubles represent every whole number up to this.
MAX_WHOLE = 2.0**53

# Bits of a product of three doubles.
PRODUCT_BITS = 3 * 53

# Additional digits for carries.
SPARE_DIGITS = 3

# Bound of the digit positions in a model file; no sum of doubles has digits beyond it.
MAX_DIGITS = 256


@dataclass(frozen=True)
class ExactSums:
    """Array of sums, each an integer times a power of two.

    The last axis of `limbs` contains the digits of each sum, the least significant first: digit k has the weight
    2**(32 * (low + k)), and is between -2**31 and 2**31 - 1. The first and the last digits are nonzero in some sum, so
    that equal sums have equal bits.
    """

    limbs: Codes
    low: int = 0

    @classmethod
    def zeros(cls, *shape: int) -> Self:
        return cls(np.zeros((*shape, 0), dtype=np.int32))

    @classmethod
    def of_digits(cls, digits: Integers, low: int, shape: tuple[int, ...]) -> Self:
        """Return the sums of any digits, one sum per row; `digits` is changed, and its last digit must be free."""
        kernels.exact_sums.carry(digits)
        return cls._trim(digits.reshape(*shape, digits.shape[-1]), low)

    @classmethod
    def _trim(cls, digits: Integers | Codes, low: int) -> Self:
        first, last = 0, digits.shape[-1]
        while last > 0 and not digits[..., last - 1].any():
            last -= 1
        if last == 0:
            return cls.zeros(*digits.shape[:-1])
        while not digits[..., first].any():
            first += 1
        return cls(np.ascontiguousarray(digits[..., first:last], dtype=np.int32), low + first)

    @classmethod
    def of_whole(cls, numbers: Floats) -> Self:
        """Return whole numbers up to MAX_WHOLE as sums."""
        if largest(numbers) < kernels.exact_sums.HALF:
            return cls._trim(numbers.astype(np.int32)[..., None], 0)
        whole = numbers.astype(np.int64)
        high = (whole + kernels.exact_sums.HALF) >> DIGIT
        return cls._trim(np.stack([whole - (high << DIGIT), high], axis=-1), 0)

    @classmethod
    def of(cls, numbers: Floats) -> Self:
        """Return doubles as sums."""
        if (np.abs(numbers) <= MAX_WHOLE).all() and (numbers == np.floor(numbers)).all():
            return cls.of_whole(numbers)
        return cls.of_products(numbers, np.ones_like(numbers), np.ones_like(numbers))

    @classmethod
    def of_products(cls, w: Floats, a: Floats, b: Floats) -> Self:
        """Return w * a * b, cell by cell."""
        digits, low = allocate_digits(np.shape(w), [find_exponents(w), find_exponents(a), find_exponents(b)])
        parts = (np.ascontiguousarray(part, dtype=np.float64).ravel() for part in (w, a, b))
        kernels.exact_sums.add_products(*parts, digits, low)
        return cls.of_digits(digits, low, np.shape(w))

    @property
    def shape(self) -> tuple[int, ...]:
        return self.limbs.shape[:-1]

    def nonzero(self) -> Flags:
        """Return a flag for each nonzero sum."""
        return np.asarray(self.limbs.any(axis=-1))

    def add(self, other: Self, sign: int = 1) -> "ExactSums":
        """Return self + other, or self - other with sign -1."""
        if not other.limbs.size:
            return self
        if not self.limbs.size and sign == 1:
            return other
        one_digit = self.low == other.low and self.limbs.shape[-1] == other.limbs.shape[-1] == 1
        if one_digit and largest(self.limbs) + largest(other.limbs) < kernels.exact_sums.HALF:  # it does not overflow
            return ExactSums._trim((np.add if sign == 1 else np.subtract)(self.limbs, other.limbs), self.low)
        low = min(self.low, other.low) if self.limbs.size else other.low
        high = max(sums.low + sums.limbs.shape[-1] for sums in (self, other) if sums.limbs.size)
        out = np.empty((*self.shape, high - low + 1), dtype=np.int32)
        places = [(sums._rows, sums.low - low if sums.limbs.size else 0) for sums in (self, other)]
        kernels.exact_sums.add_limbs(*places[0], *places[1], sign, out.reshape(-1, out.shape[-1]))
        return ExactSums._trim(out, low)

    def subtract(self, other: Self) -> "ExactSums":
        return self.add(other, -1)

    @property
    def _rows(self) -> Codes:
        return np.ascontiguousarray(self.limbs).reshape(math.prod(self.shape), self.limbs.shape[-1])

    def sum_first_axis(self) -> "ExactSums":
        """Return the sums over the first axis, which then has length 1."""
        digits = np.zeros((1, *self.limbs.shape[1:-1], self.limbs.shape[-1] + 2), dtype=np.int64)
        digits[0, ..., : self.limbs.shape[-1]] = self.limbs.sum(axis=0, dtype=np.int64)
        return ExactSums.of_digits(digits.reshape(-1, digits.shape[-1]), self.low, digits.shape[:-1])

    def __getitem__(self, index: Any) -> "ExactSums":
        """Return some of the sums."""
        return ExactSums._trim(self.limbs[index], self.low)

    def reindex(self, positions: Integers, size: int, axis: int) -> "ExactSums":
        """Return the sums with their slices along an axis at new positions; see `arrays.scatter_to`."""
        return ExactSums._trim(scatter_to(self.limbs, positions, size, axis), self.low)

    def repeat(self, size: int) -> "ExactSums":
        """Repeat each sum `size` times along a new last axis."""
        return ExactSums(np.repeat(self.limbs[..., None, :], size, axis=-2), self.low)

    def zero_out(self, cells: Flags) -> "ExactSums":
        """Return the sums with the flagged ones set to 0."""
        return ExactSums._trim(np.where(cells[..., None], np.int32(0), self.limbs), self.low)

    def scale(self, factor: float, raised: bool = False) -> "ExactSums":
        """Return the sums times a factor, to KEPT_DIGITS digits if it `loses_digits`.

        raised: round up by slightly more than the error, as sums of squares need.
        """
        by = ExactSums.of(np.array([float(factor)]))
        digits = np.zeros((len(self._rows), self.limbs.shape[-1] + by.limbs.shape[-1] + 2), dtype=np.int64)
        kernels.exact_sums.multiply_limbs(self._rows, by.limbs[0], digits)
        if loses_digits(factor) and digits.shape[-1] > KEPT_DIGITS:
            places = np.arange(digits.shape[-1])
            first = np.where(digits != 0, places, -1).max(axis=-1)[..., None]
            lost = (digits != 0) & (places <= first - KEPT_DIGITS)
            digits[lost] = 0
            if raised:
                digits += RAISED * (lost.any(axis=-1)[..., None] & (places == first - RAISED_DIGIT))
        return ExactSums.of_digits(digits, self.low + by.low, self.shape)

    def to_doubles(self) -> tuple[Floats, Floats]:
        """Return the double nearest to each sum, and its rounding error."""
        if self.limbs.shape[-1] == 1 and self.low == 0:
            return self.limbs[..., 0].astype(np.float64), np.zeros(self.shape)
        high, low = np.zeros(self.shape), np.zeros(self.shape)
        kernels.exact_sums.limbs_as_doubles(self._rows, self.low, high.ravel(), low.ravel())
        return high, low

    def divide(self, weight: "ExactSums") -> tuple[Floats, Floats]:
        """Return the sums divided by `weight`, as `to_doubles`; 0 if the weight is 0."""
        high, low = np.zeros(self.shape), np.zeros(self.shape)
        kernels.exact_sums.limb_quotients(self._rows, weight._rows, self.low - weight.low, high.ravel(), low.ravel())
        return high, low


def largest(numbers: Floats | Codes) -> float:
    """Return the largest absolute value, without a copy of the numbers."""
    return max(float(numbers.max(initial=0)), -float(numbers.min(initial=0)))


def loses_digits(factor: float) -> bool:
    """Return True if scaling by this factor rounds sums."""
    return bool(factor != np.floor(factor) and np.frexp(factor)[0] != 0.5)


def compute_scatters(weight: ExactSums, one: ExactSums, other: ExactSums, second: ExactSums) -> tuple[Floats, Floats]:
    """Return second - one * other / weight, as `ExactSums.to_doubles`; the sign and zeros are always correct."""
    sums = (weight, one, other, second)
    lengths = [part.limbs.shape[-1] for part in sums]
    lows = np.array([part.low for part in sums])
    ends = (lows[0] + lows[3] + lengths[0] + lengths[3], lows[1] + lows[2] + lengths[1] + lengths[2])
    room = int(max(ends) - min(lows[0] + lows[3], lows[1] + lows[2])) + SPARE_DIGITS
    high, low = np.zeros(weight.shape), np.zeros(weight.shape)
    digits = np.zeros(room, dtype=np.int64)
    kernels.exact_sums.limb_scatters(*(part._rows for part in sums), lows, digits, high.ravel(), low.ravel())
    return high, low


def allocate_digits(shape: tuple[int, ...], factors: list[tuple[int, int]], terms: float = 1.0) -> tuple[Integers, int]:
    """Return zero digits for sums of products of doubles, one sum per row, and the position of the first digit.

    factors: for each factor, the exponents of its last and first bit. terms: the number of products, or their weight.
    """
    low = sum(last for last, _ in factors) // DIGIT
    high = sum(first for _, first in factors) + int(np.frexp(terms)[1])
    return np.zeros((math.prod(shape), (high - DIGIT * low + PRODUCT_BITS) // DIGIT + SPARE_DIGITS + 1), np.int64), low


def find_exponents(numbers: Floats) -> tuple[int, int]:
    """Return the smallest exponent of the last bit, and the largest of the first bit, of these numbers."""
    sizes = np.abs(numbers)
    return bound_exponents(float(np.min(sizes, initial=np.inf, where=sizes > 0.0)), float(np.max(sizes, initial=0.0)))


def bound_exponents(smallest: float, largest: float) -> tuple[int, int]:
    """Return these exponents, given the smallest number above 0 and the largest."""
    if not largest > 0.0:
        return -52, 1
    return max(int(np.frexp(smallest)[1]) - 53, -1074), int(np.frexp(largest)[1])


def two_sum(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Return the doubles nearest to a + b, and their rounding errors."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)
