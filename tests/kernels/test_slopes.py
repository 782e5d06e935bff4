"""Slope and curvature of the log-likelihood against differences."""

import numpy as np
from scipy.special import logsumexp

from deciban import kernels
from tests.kernels.data import LABELS, RNG, WEIGHTS, K, N, parameters


def test_weight_slope() -> None:
    """Against the slope and curvature of the log-likelihood by differences."""
    cells, labels = RNG.integers(-1, 5, N), np.maximum(LABELS, 0)
    evidence, own, score = parameters(5, K), parameters(5, K), parameters(N, K)
    said = np.where(np.arange(K) == labels[:, None], own[cells], evidence[cells]) * (cells >= 0)[:, None]

    def likelihood(weight: float) -> float:
        joint = score + weight * said
        return float(WEIGHTS @ (joint[np.arange(N), labels] - logsumexp(joint, axis=1)))

    sums, step = np.zeros(2), 1e-4
    posterior = np.exp(score - logsumexp(score, axis=1, keepdims=True))
    kernels.weight_slope(cells, labels, WEIGHTS, evidence, own, posterior, sums)
    low, here, high = (likelihood(weight) for weight in (-step, 0.0, step))
    np.testing.assert_allclose(sums, [(high - low) / (2 * step), -(high - 2 * here + low) / step**2], rtol=1e-5)
