"""Posteriors against SciPy."""

import numpy as np
from scipy.special import logsumexp

from deciban import kernels
from tests.kernels.data import RNG, K, N


def test_normalize() -> None:
    joint, prior = RNG.normal(size=(N, K)) * 500, np.log(np.full(K, 1 / K))
    joint[3] = -np.inf
    joint[4, 1] = -np.inf
    posterior, log_posterior, density = np.empty((N, K)), np.empty((N, K)), np.empty(N)
    kernels.scoring.normalize(joint, prior, True, log_posterior, density)
    kernels.scoring.normalize(joint, prior, False, posterior, density)
    rest = np.arange(N) != 3
    np.testing.assert_allclose(density[rest], logsumexp(joint[rest], axis=1), rtol=1e-12)
    np.testing.assert_allclose(log_posterior[rest], joint[rest] - density[rest, None], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(np.exp(log_posterior), posterior, rtol=1e-9, atol=1e-300)
    np.testing.assert_allclose(posterior[3], 1 / K)
    assert density[3] == -np.inf
