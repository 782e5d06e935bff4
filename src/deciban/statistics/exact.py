"""Sums without any rounding: whatever was added can be taken away again, in any order, and nothing is left of it."""

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from deciban import kernels
from deciban.util.arrays import Codes, Flags, Floats, Integers, scatter_to

# Bits of a digit; digits that a sum keeps when it is scaled by a fraction: more than 350 bits.
DIGIT = 32
KEPT_DIGITS = 12

# The digit, behind the first, by which a sum of squares is raised when it is rounded, and by how much: so that it stays
# above the square of the sum, which is rounded too.
RAISED_DIGIT, RAISED = 10, 4

# Up to this, doubles hold every whole number.
MAX_WHOLE = 2.0**53

# Bits of a product of three doubles; digits to spare behind the sum of all.
PRODUCT_BITS = 3 * 53
SPARE_DIGITS = 3

# Numbers in files: beyond these exponents no sum of doubles has a digit.
MAX_DIGITS = 256


@dataclass(frozen=True)
class ExactSums:
    """An array of sums, each an integer times a power of two.

    The last axis of `limbs` has the digits of each sum, the smallest first: digit k counts 2**(32 * (low + k)), and is
    between -2**31 and 2**31 - 1. No first or last digit is 0 in all sums, so that equal sums are equal in every bit.
    """

    limbs: Codes
    low: int = 0

    @classmethod
    def zeros(cls, *shape: int) -> Self:
        return cls(np.zeros((*shape, 0), dtype=np.int32))

    @classmethod
    def of_digits(cls, digits: Integers, low: int, shape: tuple[int, ...]) -> Self:
        """The sums of any digits, those of a sum in a row, which are changed; the last must have room to carry."""
        kernels.exact_sums.carry(digits)
        return cls._trim(digits.reshape(*shape, digits.shape[-1]), low)

    @classmethod
    def _trim(cls, digits: Integers | Codes, low: int) -> Self:
        used = np.flatnonzero(digits.any(axis=tuple(range(digits.ndim - 1))))
        if not used.size:
            return cls.zeros(*digits.shape[:-1])
        first, last = int(used[0]), int(used[-1])
        return cls(np.ascontiguousarray(digits[..., first : last + 1], dtype=np.int32), low + first)

    @classmethod
    def of_whole(cls, numbers: Floats) -> Self:
        """Whole numbers up to MAX_WHOLE."""
        whole = numbers.astype(np.int64)
        high = (whole + (1 << (DIGIT - 1))) >> DIGIT
        return cls._trim(np.stack([whole - (high << DIGIT), high], axis=-1), 0)

    @classmethod
    def of(cls, numbers: Floats) -> Self:
        """Doubles as they are."""
        if (np.abs(numbers) <= MAX_WHOLE).all() and (numbers == np.floor(numbers)).all():
            return cls.of_whole(numbers)
        return cls.of_products(numbers, np.ones_like(numbers), np.ones_like(numbers))

    @classmethod
    def of_products(cls, w: Floats, a: Floats, b: Floats) -> Self:
        """w * a * b, cell by cell."""
        digits, low = allocate_digits(np.shape(w), [find_exponents(w), find_exponents(a), find_exponents(b)])
        parts = (np.ascontiguousarray(part, dtype=np.float64).ravel() for part in (w, a, b))
        kernels.exact_sums.add_products(*parts, digits, low)
        return cls.of_digits(digits, low, np.shape(w))

    @property
    def shape(self) -> tuple[int, ...]:
        return self.limbs.shape[:-1]

    def nonzero(self) -> Flags:
        """Where the sums are not 0."""
        return np.asarray(self.limbs.any(axis=-1))

    def add(self, other: Self, sign: int = 1) -> "ExactSums":
        """The sums of both, or with sign -1 their differences."""
        if not other.limbs.size:
            return self
        if not self.limbs.size and sign == 1:
            return other
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
        """The sums over the first axis, which then has length 1."""
        digits = np.zeros((1, *self.limbs.shape[1:-1], self.limbs.shape[-1] + 2), dtype=np.int64)
        digits[0, ..., : self.limbs.shape[-1]] = self.limbs.sum(axis=0, dtype=np.int64)
        return ExactSums.of_digits(digits.reshape(-1, digits.shape[-1]), self.low, digits.shape[:-1])

    def __getitem__(self, index: Any) -> "ExactSums":
        """Some of the sums, by axes before the last."""
        return ExactSums._trim(self.limbs[index], self.low)

    def reindex(self, positions: Integers, size: int, axis: int) -> "ExactSums":
        """The sums with their slices along an axis at other places; see `arrays.scatter_to`."""
        return ExactSums._trim(scatter_to(self.limbs, positions, size, axis), self.low)

    def repeat(self, size: int) -> "ExactSums":
        """Each sum so many times, along a new last axis."""
        return ExactSums(np.repeat(self.limbs[..., None, :], size, axis=-2), self.low)

    def zero_out(self, cells: Flags) -> "ExactSums":
        """The sums with 0 in place of some of them."""
        return ExactSums._trim(np.where(cells[..., None], np.int32(0), self.limbs), self.low)

    def scale(self, factor: float, raised: bool = False) -> "ExactSums":
        """The sums times a factor, to KEPT_DIGITS digits if it `rounds`; raised: such are too large by a tiny share."""
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
        """The double nearest to each sum, and what it leaves out."""
        high, low = np.zeros(self.shape), np.zeros(self.shape)
        kernels.exact_sums.limbs_as_doubles(self._rows, self.low, high.ravel(), low.ravel())
        return high, low

    def divide(self, weight: "ExactSums") -> tuple[Floats, Floats]:
        """The sums divided by others, as `doubles` has them; 0 where there is no weight."""
        high, low = np.zeros(self.shape), np.zeros(self.shape)
        kernels.exact_sums.limb_quotients(self._rows, weight._rows, self.low - weight.low, high.ravel(), low.ravel())
        return high, low


def loses_digits(factor: float) -> bool:
    """Whether sums that are scaled by this are no longer what counting makes them."""
    return bool(factor != np.floor(factor) and np.frexp(factor)[0] != 0.5)


def compute_scatters(weight: ExactSums, one: ExactSums, other: ExactSums, second: ExactSums) -> tuple[Floats, Floats]:
    """second - one * other / weight, as `ExactSums.doubles` has it: its sign and whether it is 0 are always right."""
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
    """Digits, all 0, for sums of products of doubles, those of a sum in a row; and the place of the first.

    factors: for each the exponents of the last bit and of the first. terms: how many products are added, or how much
    weight.
    """
    low = sum(last for last, _ in factors) // DIGIT
    high = sum(first for _, first in factors) + int(np.frexp(terms)[1])
    return np.zeros((math.prod(shape), (high - DIGIT * low + PRODUCT_BITS) // DIGIT + SPARE_DIGITS + 1), np.int64), low


def find_exponents(numbers: Floats) -> tuple[int, int]:
    """The exponents of the last bit that a number among these may have, and of the first."""
    sizes = np.abs(numbers)
    return bound_exponents(float(np.min(sizes, initial=np.inf, where=sizes > 0.0)), float(np.max(sizes, initial=0.0)))


def bound_exponents(smallest: float, largest: float) -> tuple[int, int]:
    """The same, given the smallest number above 0 and the largest."""
    if not largest > 0.0:
        return -52, 1
    return max(int(np.frexp(smallest)[1]) - 53, -1074), int(np.frexp(largest)[1])


def two_sum(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """The doubles nearest to a + b, and what they leave out."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)
