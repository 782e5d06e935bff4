"""Sums and products of numbers kept as two doubles, high + low, to about 31 digits."""

from deciban.kernels.compiled import compiled

Pair = tuple[float, float]

_SPLITTER = 134217729.0  # 2**27 + 1


@compiled
def two_sum(a: float, b: float) -> Pair:
    """The double nearest to a + b, and what it leaves out."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


@compiled
def _split(a: float) -> Pair:
    high = _SPLITTER * a
    high = high - (high - a)
    return high, a - high


@compiled
def two_product(a: float, b: float) -> Pair:
    """The double nearest to a * b, and what it leaves out (Dekker)."""
    product = a * b
    a_high, a_low = _split(a)
    b_high, b_low = _split(b)
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


@compiled
def plus(one: Pair, other: Pair) -> Pair:
    high, low = two_sum(one[0], other[0])
    return two_sum(high, low + (one[1] + other[1]))


@compiled
def minus(one: Pair, other: Pair) -> Pair:
    return plus(one, (-other[0], -other[1]))


@compiled
def times(one: Pair, other: Pair) -> Pair:
    high, low = two_product(one[0], other[0])
    return two_sum(high, low + (one[0] * other[1] + one[1] * other[0]))


@compiled
def quotient(a: float, b: float) -> Pair:
    """a / b of two doubles."""
    high = a / b
    product, error = two_product(high, b)
    return high, ((a - product) - error) / b
