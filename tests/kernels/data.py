"""Random rows that the tests of kernels share."""

import numpy as np

RNG = np.random.default_rng(5)
N, M, K = 40, 3, 4
X = RNG.normal(size=(N, M))
X[RNG.random((N, M)) < 0.15] = np.nan
LABELS = RNG.integers(-1, K, N).astype(np.int32)
WEIGHTS = RNG.integers(0, 3, N).astype(np.float64)


def parameters(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape)
