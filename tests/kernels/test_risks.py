"""Decisions of least risk against NumPy."""

import numpy as np
import pytest

from deciban import kernels
from tests.kernels.data import RNG, K, N


@pytest.mark.parametrize("tables", [1, N])
def test_least_risk(tables: int) -> None:
    """With one table of losses for all rows or one a row; the last decision costs the same whatever is true."""
    posterior, loss = RNG.dirichlet(np.ones(K), N), RNG.integers(0, 4, (tables, K + 1, K)).astype(np.float64)
    loss[:, K] = 0.7
    best, second = np.empty(N, dtype=np.int64), np.empty(N, dtype=np.int64)
    risk, second_risk = np.empty(N), np.empty(N)
    kernels.scoring.least_risk(posterior, loss, np.arange(K + 1) == K, best, risk, second, second_risk)
    expected = np.einsum("idc,ic->id", np.broadcast_to(loss, (N, K + 1, K)), posterior)
    order = np.argsort(np.round(expected, 12), axis=1, kind="stable")
    np.testing.assert_array_equal(best, order[:, 0])
    np.testing.assert_array_equal(second, order[:, 1])
    np.testing.assert_allclose(risk, expected.min(axis=1), rtol=1e-12)
    np.testing.assert_allclose(second_risk, np.sort(expected, axis=1)[:, 1], rtol=1e-12)


def test_ties_go_to_the_first_and_a_single_decision_has_no_second() -> None:
    best, second, risk, second_risk = np.empty(1, np.int64), np.empty(1, np.int64), np.empty(1), np.empty(1)
    posterior = np.array([[0.5, 0.5]])
    kernels.scoring.least_risk(
        posterior, np.ones((1, 3, 2)), np.ones(3, dtype=np.bool_), best, risk, second, second_risk
    )
    assert (best[0], second[0], risk[0], second_risk[0]) == (0, 1, 1.0, 1.0)
    kernels.scoring.least_risk(
        posterior, np.ones((1, 1, 2)), np.ones(1, dtype=np.bool_), best, risk, second, second_risk
    )
    assert (best[0], second[0], second_risk[0]) == (0, -1, np.inf)
