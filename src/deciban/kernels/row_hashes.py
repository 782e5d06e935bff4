"""A hash of each row's number: always the same, and without a pattern that data could have too."""

import numpy as np

from deciban.kernels.compiled import Array, compiled


@compiled
def hash_rows(first: int, out: Array) -> None:
    """Set out[i] to the hash of row first + i: the output of the generator splitmix64 at that place."""
    for i in range(out.size):
        z = np.uint64(first + i + 1) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        out[i] = z ^ (z >> np.uint64(31))
