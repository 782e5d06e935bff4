"""Joint normal densities of rows left out against SciPy, with covariances of the other rows."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from deciban import kernels
from tests.kernels.data import RNG, K, N, parameters

M = 11

X = parameters(N, M)
LABELS = (np.arange(N) % K).astype(np.int32)
WEIGHTS = RNG.integers(1, 3, N).astype(np.float64)
SHRINKAGE = np.linspace(0.1, 0.9, K + 1)


def moments(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Weight, mean and scatter of each class."""
    weight = np.bincount(LABELS, weights, K)
    mean = np.stack([weights[c == LABELS] @ X[c == LABELS] for c in range(K)]) / weight[:, None]
    away = X - mean[LABELS]
    scatter = np.stack([(away[c == LABELS].T * weights[c == LABELS]) @ away[c == LABELS] for c in range(K)])
    return weight, mean, scatter


def densities(weights: np.ndarray, rows: np.ndarray, mix: float, ddof: float) -> np.ndarray:
    weight, mean, scatter = moments(weights)
    pooled = scatter.sum(axis=0) / (weight - ddof).sum()
    found = np.zeros((len(rows), K))
    for c in range(K):
        own, shared = (
            (1.0 - share) * matrix + share * np.diag(np.diag(matrix))
            for matrix, share in ((scatter[c] / (weight[c] - ddof), SHRINKAGE[c]), (pooled, SHRINKAGE[K]))
        )
        found[:, c] = multivariate_normal(mean[c], (1.0 - mix) * own + mix * shared).logpdf(rows)
    return found


@pytest.mark.parametrize("mix", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("ddof", [0.0, 1.0])
def test_left_out_cholesky(mix: float, ddof: float) -> None:
    weight, mean, scatter = moments(WEIGHTS)
    joint = kernels.left_out.JointClasses(
        weight=weight,
        mean=mean,
        scatter=scatter,
        pooled=scatter.sum(axis=0),
        mix=mix,
        shrinkage=SHRINKAGE,
        degrees=(weight - ddof).sum(),
        ddof=ddof,
    )
    removed = np.where(np.arange(N) < 3, 0.0, WEIGHTS)
    whole, out = densities(WEIGHTS, X, mix, ddof), np.zeros((N, K))
    constant = -0.5 * M * np.log(2.0 * np.pi)
    room = np.empty(kernels.left_out.count_slots(M) * kernels.left_out.FACTORED_ROWS)
    order = np.argsort(LABELS, kind="stable")
    kernels.left_out.score_cholesky(X, order, LABELS, removed, joint, constant, whole, room, out)
    for i in range(N):
        others = np.where(np.arange(N) == i, WEIGHTS - removed, WEIGHTS)
        np.testing.assert_allclose(out[i], densities(others, X[i : i + 1], mix, ddof)[0], rtol=1e-9, atol=1e-9)
