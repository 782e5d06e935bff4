"""What scoring kernels add, with the blocks of columns apart and together."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.kernels.data import RNG, K, M, N

SLOT = np.arange(M)
WEIGHT = RNG.random(M)


def collapsed(terms: np.ndarray, weight: np.ndarray = WEIGHT) -> np.ndarray:
    """Weighted terms [row, column, class], missing ones 0, as `out` holds them apart."""
    return weight[None, :, None] * np.nan_to_num(terms, nan=0.0)


def scored(
    kernel: Callable[..., Any], *arguments: Any, room: tuple[np.ndarray, ...] = ()
) -> tuple[np.ndarray, np.ndarray]:
    """What the kernel adds with blocks apart and together."""
    apart, together = np.zeros((N, M, K)), np.zeros((N, 1, K))
    kernel(*arguments, WEIGHT, SLOT, *room, apart)
    kernel(*arguments, WEIGHT, np.zeros(M, dtype=np.int64), *room, together)
    np.testing.assert_allclose(apart.sum(axis=1), together[:, 0], rtol=1e-12, atol=1e-12)
    return apart, together
