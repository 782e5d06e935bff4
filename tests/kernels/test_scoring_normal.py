"""Normal densities against NumPy and SciPy."""

import numpy as np
from scipy.stats import multivariate_normal

from deciban import kernels
from tests.kernels.blocks import collapsed, scored
from tests.kernels.data import K, M, N, X, parameters


def test_score_normal() -> None:
    center, mean, root, offset = parameters(M), parameters(M, K), parameters(M, K), parameters(M, K)
    apart, _ = scored(kernels.scoring.score_normal, X, center, mean, root, offset, room=(np.empty(8), np.zeros((K, 8))))
    terms = offset - (((X - center)[:, :, None] - mean) * root) ** 2
    np.testing.assert_allclose(apart, collapsed(terms), rtol=1e-12, atol=1e-12)


def test_score_normal_sees_infinite_cells() -> None:
    one = np.ones((1, 1))
    for value, finite in ((1e300, True), (np.nan, True), (np.inf, False), (-np.inf, False)):
        x, out = np.array([[1.0], [value]]), np.zeros((2, 1, 1))
        found = kernels.scoring.score_normal(
            x, one[0], one, one, one, one[0], np.zeros(1, dtype=np.int64), np.empty(2), np.zeros((1, 2)), out
        )
        assert found is finite


def test_score_joint_normal() -> None:
    x, center, mean, offset = np.nan_to_num(X), parameters(M), parameters(K, M), parameters(K)
    whiten, reach = np.tril(parameters(2, M, M)), np.arange(1, M + 1)
    group = np.array([0, 0, 1, 0])
    out = np.zeros((N, 2, K))
    room = (np.zeros((M, 40)), np.zeros((M, 32)), np.empty(32))
    normals = kernels.scoring.WhitenedNormals(center, whiten, reach, group, mean, offset)
    kernels.scoring.score_joint_normal(x, *normals, 0.5, 1, *room, out)
    white = np.einsum("nk,clk->ncl", x - center, whiten[group])
    np.testing.assert_allclose(out[:, 1], 0.5 * (offset - ((white - mean) ** 2).sum(axis=2)), rtol=1e-12)
    assert not out[:, 0].any()


def test_score_holed_normal() -> None:
    """The marginal density of the columns that are there; of none it is 1."""
    x, group = X.copy(), np.array([0, 0, 1, 0])
    x[0] = np.nan
    x[-3:] = np.where(np.isnan(x[-3]), np.nan, 0.5)  # rows that lack the same columns share a factor
    center, unit, mean, root = parameters(M), np.abs(parameters(M)), parameters(K, M), parameters(2, M, M)
    covariance, out = root @ root.transpose(0, 2, 1) + np.eye(M), np.zeros((N, 2, K))
    normals = kernels.scoring.JointNormals(center=center, unit=unit, covariance=covariance, group=group, mean=mean)
    kernels.scoring.score_holed_normal(x, normals, 0.5, 1, np.empty(M, dtype=np.int64), np.empty((2, M + 1, M)), out)
    for i, c in np.ndindex(N, K):
        here = ~np.isnan(x[i])
        where = center + unit * mean[c]
        matrix = covariance[group[c]] * np.outer(unit, unit)
        density = multivariate_normal(where[here], matrix[here][:, here]).logpdf(x[i, here]) if here.any() else 0.0
        np.testing.assert_allclose(out[i, 1, c], 0.5 * density, rtol=1e-10)
    assert not out[:, 0].any()
