"""Normal densities of rows left out against moments of the other rows by NumPy."""

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from scipy.stats import norm

from deciban import kernels
from tests.kernels.data import WEIGHTS, K, M, N, X

LABELS = (np.arange(N) % (K - 1)).astype(np.int32)
LABELS[0] = K - 1  # the only row of its class
REMOVED = WEIGHTS + 0.5


def by_class(statistic: Callable[..., float], weights: np.ndarray, j: int) -> np.ndarray:
    """statistic(values, weights) of column j in each class; 0 where there are no cells."""
    found = np.zeros(K)
    for c in range(K):
        here = (c == LABELS) & ~np.isnan(X[:, j]) & (weights > 0.0)
        found[c] = statistic(X[here, j], weights[here]) if here.any() else 0.0
    return found


def scatter(values: np.ndarray, weights: np.ndarray) -> float:
    return weights @ (values - np.average(values, weights=weights)) ** 2


def moments(weights: np.ndarray, j: int) -> tuple[np.ndarray, ...]:
    """Weight, mean and scatter of each class, then mean and scatter of all, of column j."""
    n = by_class(lambda _, w: w.sum(), weights, j)
    mean = by_class(lambda x, w: np.average(x, weights=w), weights, j)
    within = by_class(scatter, weights, j)
    whole = (n @ mean) / n.sum()
    return n, mean, within, whole, within.sum() + n @ (mean - whole) ** 2


def expected(i: int, j: int, shared: float, ddof: float, floor: float, added: float) -> np.ndarray:
    n, mean, within, whole, around = moments(np.where(np.arange(N) == i, 0.0, REMOVED), j)
    spread, degrees = around / n.sum(), np.maximum(n - ddof, 0.0)
    own = np.divide(within, degrees, out=np.zeros(K), where=degrees > 0.0)
    variance = np.maximum((1.0 - shared) * own + shared * within.sum() / degrees.sum(), floor * spread)
    variance = np.where(variance > 1e-20, variance, spread / (1.0 + n))  # a class whose cells do not vary
    mean, variance = np.where(n > 0.0, (mean, variance), [[whole], [spread]])
    return norm.logpdf(X[i, j], mean, np.sqrt(variance + added * spread))


@pytest.mark.parametrize(
    ("shared", "ddof", "floor", "added"), list(product([0.0, 0.3, 1.0], [0.0, 1.0], [0.0, 0.9], [0.0, 0.1]))
)
def test_left_out_normal(shared: float, ddof: float, floor: float, added: float) -> None:
    center = np.full(M, 0.25)
    columns, classes = [], []
    for j in range(M):
        n, mean, within, whole, around = moments(REMOVED, j)
        degrees = np.maximum(n - ddof, 0.0)
        columns.append((center[j], n.sum(), whole - center[j], around, degrees.sum(), within.sum(), 0.0))
        own = np.divide(within, degrees, out=np.zeros(K), where=degrees > 0.0)
        stays = np.where((own > 1e-20) & (shared == 0.0) & (added == 0.0), own, 0.0)
        safe = np.where(stays > 0.0, stays, 1.0)
        classes.append((n, mean - center[j], within, stays, 0.5 / safe, 0.5 * np.log(2.0 * np.pi * safe)))
    out = np.zeros((N, M, K))
    kernels.left_out.score_normal(
        X,
        LABELS,
        REMOVED,
        kernels.left_out.NormalColumns(*np.array(columns).T.copy()),
        kernels.left_out.NormalClasses(*np.array(classes).transpose(1, 0, 2).copy()),
        kernels.left_out.VarianceRule(shared, ddof, floor, added),
        np.arange(M),
        out,
    )
    for i, j in np.ndindex(N, M):
        wanted = np.zeros(K) if np.isnan(X[i, j]) else expected(i, j, shared, ddof, floor, added)
        np.testing.assert_allclose(out[i, j], wanted, rtol=1e-9, atol=1e-9)
