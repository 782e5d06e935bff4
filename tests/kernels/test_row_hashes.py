"""Hashes of row numbers and of cells against Python's integers."""

import struct

import numpy as np
import pytest

from deciban import kernels
from deciban.tables.row_sampling import row_hashes
from deciban.util.arrays import CONTENT_SEED, SPARE

WORD = 2**32


def splitmix64(place: int) -> int:
    z = (place + 1) * 0x9E3779B97F4A7C15 % 2**64
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
    return z ^ z >> 31


@pytest.mark.parametrize("first", [0, 7, 1 << 40])
def test_row_hashes(first: int) -> None:
    assert row_hashes(first, 20).tolist() == [splitmix64(first + i) for i in range(20)]


def rotated(x: int, k: int) -> int:
    return (x << k | x >> (32 - k)) % WORD


def lookup3(data: bytes, seed: int = CONTENT_SEED) -> int:
    """Bob Jenkins' hash as PostgreSQL's `hash_bytes_extended` has it: the lowest byte of the last word is not used."""

    def mix(state: list[int]) -> None:
        for k, turn in enumerate((4, 6, 8, 16, 19, 4)):
            x, y, z = k % 3, (k + 1) % 3, (k + 2) % 3
            state[x] = (state[x] - state[z]) % WORD ^ rotated(state[z], turn)
            state[z] = (state[z] + state[y]) % WORD

    state = [(0x9E3779B9 + len(data) + 3923095) % WORD] * 3
    state[0], state[1] = (state[0] + (seed >> 32)) % WORD, (state[1] + seed) % WORD
    mix(state)
    while len(data) >= 12:
        state = [(one + more) % WORD for one, more in zip(state, struct.unpack("<3I", data[:12]), strict=True)]
        mix(state)
        data = data[12:]
    rest = data[:8].ljust(8, b"\0") + b"\0" + data[8:].ljust(3, b"\0")
    a, b, c = ((one + more) % WORD for one, more in zip(state, struct.unpack("<3I", rest), strict=True))
    c = ((c ^ b) - rotated(b, 14)) % WORD
    a = ((a ^ c) - rotated(c, 11)) % WORD
    b = ((b ^ a) - rotated(a, 25)) % WORD
    c = ((c ^ b) - rotated(b, 16)) % WORD
    a = ((a ^ c) - rotated(c, 4)) % WORD
    b = ((b ^ a) - rotated(a, 14)) % WORD
    c = ((c ^ b) - rotated(b, 24)) % WORD
    return b << 32 | c


def test_hash_numbers() -> None:
    numbers = np.array([0.0, -0.0, 1.0, -1.5, 1e300, 5e-324, np.inf, -np.inf, np.nan])
    out = np.arange(numbers.size, dtype=np.uint64)
    kernels.row_hashes.hash_numbers(numbers.view(np.uint64), out)
    cells = [CONTENT_SEED, CONTENT_SEED, *(lookup3(struct.pack("<d", number)) for number in numbers[2:-1]), 0]
    assert out.tolist() == [(31 * before + cell) % 2**64 for before, cell in enumerate(cells)]


def test_hash_texts() -> None:
    cells = [bytes(range(size)) for size in range(40)] + ["Zürich 🏔️".encode(), b"\xff" * 13]
    data = np.frombuffer(b"".join(cells) + bytes(SPARE), dtype=np.uint8)
    offsets = np.cumsum([0, *map(len, cells)])
    everything, some = (np.full(len(cells), 5, dtype=np.uint64) for _ in range(2))
    kernels.row_hashes.hash_texts(offsets, data, np.empty(0, dtype=np.bool_), everything)
    assert everything.tolist() == [(155 + lookup3(cell)) % 2**64 for cell in cells]
    there = np.arange(len(cells)) % 3 > 0
    kernels.row_hashes.hash_texts(offsets, data, there, some)
    np.testing.assert_array_equal(some, np.where(there, everything, np.uint64(155)))
