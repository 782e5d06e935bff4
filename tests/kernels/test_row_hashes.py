"""Hashes of row numbers against Python's integers."""

import numpy as np
import pytest

from deciban import kernels


def splitmix64(place: int) -> int:
    z = (place + 1) * 0x9E3779B97F4A7C15 % 2**64
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
    return z ^ z >> 31


@pytest.mark.parametrize("first", [0, 7, 1 << 40])
def test_hash_rows(first: int) -> None:
    out = np.empty(20, dtype=np.uint64)
    kernels.hash_rows(first, out)
    assert out.tolist() == [splitmix64(first + i) for i in range(20)]
