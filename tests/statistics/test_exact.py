"""Exact sums against Python's integers."""

import numpy as np
import pytest

from deciban.statistics.exact import ExactSums

# Numbers at the limits of one digit of 32 bits, and beyond.
NUMBERS = [0, 1, -1, 2**31 - 1, -(2**31), 2**31, -(2**31) - 1, 2**32, 2**52 + 1, 2**53, -(2**53)]


def to_integers(sums: ExactSums) -> list[int]:
    return [sum(int(digit) << 32 * (sums.low + k) for k, digit in enumerate(row)) for row in sums.limbs]


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("size", [2, 4, 6, len(NUMBERS)])
def test_whole_numbers_are_added(sign: int, size: int) -> None:
    """Whatever the number of digits; the representation is that of the same sums without intermediate steps."""
    pairs = [(a, b) for a in NUMBERS[:size] for b in NUMBERS[:size]]
    one, other = (ExactSums.of_whole(np.array(side, dtype=np.float64)) for side in zip(*pairs, strict=True))
    assert to_integers(one) == [a for a, _ in pairs]
    found = one.add(other, sign)
    assert to_integers(found) == [a + sign * b for a, b in pairs]
    assert found.to_doubles()[0].tolist() == [float(a + sign * b) for a, b in pairs]
    if max(abs(a + sign * b) for a, b in pairs) <= 2**53:
        direct = ExactSums.of_whole(np.array([a + sign * b for a, b in pairs], dtype=np.float64))
        assert (direct.low, direct.limbs.shape) == (found.low, found.limbs.shape)


def test_sums_of_nothing_have_no_digits() -> None:
    assert ExactSums.of_whole(np.zeros((2, 3))).limbs.shape == (2, 3, 0)
    assert ExactSums.of_whole(np.zeros((2, 0))).limbs.shape == (2, 0, 0)
    one = ExactSums.of_whole(np.array([5.0, -7.0]))
    assert one.subtract(one).limbs.shape == (2, 0)
