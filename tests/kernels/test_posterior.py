"""Posteriors against SciPy."""

import numpy as np
from scipy.special import logsumexp

from deciban import kernels
from deciban.model.model import MAX_UNCOMPILED_SCORES, most_probable
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


def test_most_probable() -> None:
    """Many rows are searched by the kernel, few by NumPy; both give the first class with the highest score."""
    joint = np.repeat(RNG.integers(0, 3, (N, K)).astype(np.float64), 1 + MAX_UNCOMPILED_SCORES // (N * K), axis=0)
    joint[3] = -np.inf
    joint[4, 1:] = -np.inf
    prior = np.log(np.arange(1.0, K + 1) / np.arange(1.0, K + 1).sum())
    expected = [K - 1 if max(row) == -np.inf else row.index(max(row)) for row in joint.tolist()]
    assert joint.size > MAX_UNCOMPILED_SCORES
    assert most_probable(joint, prior).tolist() == expected
    out = np.empty(len(joint), dtype=np.int64)
    kernels.scoring.most_probable(joint, K - 1, out)
    assert out.tolist() == expected
    assert [int(most_probable(row[None], prior)[0]) for row in joint[:50]] == expected[:50]
