"""Sums and products of numbers kept as two doubles, high + low, to about 31 digits; of arrays, cell by cell."""

from deciban.arrays import Floats

Pair = tuple[Floats, Floats | float]

_SPLITTER = 134217729.0  # 2**27 + 1


def two_sum(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """The doubles nearest to a + b, and what they leave out."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _split(a: Floats) -> tuple[Floats, Floats]:
    high = _SPLITTER * a
    high = high - (high - a)
    return high, a - high


def two_product(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """The doubles nearest to a * b, and what they leave out (Dekker)."""
    product = a * b
    a_high, a_low = _split(a)
    b_high, b_low = _split(b)
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def plus(one: Pair, other: Pair) -> tuple[Floats, Floats]:
    """one + other."""
    high, low = two_sum(one[0], other[0])
    return two_sum(high, low + (one[1] + other[1]))


def minus(one: Pair, other: Pair) -> tuple[Floats, Floats]:
    """one - other."""
    return plus(one, (-other[0], -other[1]))


def times(one: Pair, other: Pair) -> tuple[Floats, Floats]:
    """one * other."""
    high, low = two_product(one[0], other[0])
    return two_sum(high, low + (one[0] * other[1] + one[1] * other[0]))


def quotient(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """a / b of doubles."""
    high = a / b
    product, error = two_product(high, b)
    return high, ((a - product) - error) / b
