"""Random rows that the tests of kernels share."""

from fractions import Fraction

import numpy as np

from deciban.statistics.exact import ExactSums

RNG = np.random.default_rng(5)
N, M, K = 40, 3, 4
X = RNG.normal(size=(N, M))
X[RNG.random((N, M)) < 0.15] = np.nan
LABELS = RNG.integers(-1, K, N).astype(np.int32)
WEIGHTS = RNG.integers(0, 3, N).astype(np.float64)


def parameters(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape)


def exact(sums: ExactSums, *cell: int) -> Fraction:
    """The sum of a cell."""
    return sum(
        (Fraction(int(d)) * Fraction(2) ** (32 * (sums.low + k)) for k, d in enumerate(sums.limbs[cell])), Fraction(0)
    )
