"""Weights of evidence and losses of blocks against SciPy."""

import numpy as np
import pytest
from scipy.optimize import minimize, nnls
from scipy.special import log_softmax

from deciban.fitting.tune import weights
from deciban.fitting.tune.rows import Rows
from deciban.tables.table import Matrix


def make_rows(classes: int, size: int = 300) -> tuple[Rows, np.ndarray]:
    """Rows with weights, and centered evidence of five blocks, some of them against the label."""
    rng = np.random.default_rng(classes)
    labels = rng.integers(0, classes, size).astype(np.int32)
    evidence = rng.normal(size=(size, 5, classes)) * np.array([1.0, 2.0, 0.1, 1.0, 3.0])[:, None]
    evidence += np.array([0.5, 1.0, 0.0, -0.6, 0.2])[:, None] * np.eye(classes)[labels][:, None]
    rows = Rows.of(Matrix(np.zeros((size, 1))), labels, rng.integers(1, 4, size).astype(float), classes, size)
    return rows, weights.center(evidence)


def penalized_loss(point: np.ndarray, evidence: np.ndarray, rows: Rows, target: np.ndarray, strength: float) -> float:
    weight, bias = point[: target.size], point[target.size :]
    joint = np.einsum("nbk,b->nk", evidence, weight) + rows.log_prior + bias
    losses = -log_softmax(joint, axis=1)[np.arange(rows.labels.size), rows.labels]
    return float(rows.weights @ losses + 0.5 * strength * ((weight - target) ** 2).sum() + 0.5 * (bias**2).sum())


@pytest.mark.parametrize("classes", [2, 4])
def test_the_weights_are_those_of_a_general_optimizer(classes: int) -> None:
    rows, evidence = make_rows(classes)
    target = np.array([0.5, 0.0, 1.0, 0.3, 0.0])
    found, bias = weights.maximize(evidence, rows, target, 2.0)
    arguments = (evidence, rows, target, 2.0)
    expected = minimize(
        penalized_loss,
        np.append(target, np.zeros(classes)),
        arguments,
        bounds=[(0.0, None)] * 5 + [(None, None)] * classes,
        options={"ftol": 1e-15, "gtol": 1e-10, "maxiter": 5000, "maxfun": 50_000},
    )
    np.testing.assert_allclose(np.append(found, bias), expected.x, atol=2e-4)
    assert penalized_loss(np.append(found, bias), *arguments) <= expected.fun + 1e-9
    assert found[3] == 0.0  # evidence against the label


@pytest.mark.parametrize("classes", [2, 4])
def test_neither_the_start_nor_rows_of_weight_0_change_the_weights(classes: int) -> None:
    rows, evidence = make_rows(classes)
    group, kept = np.array([0, 0, 1, 1, -1]), np.arange(300) % 3 > 0
    start = np.array([3.0, 0.0, 0.0, 5.0, 0.1]), np.linspace(-1.0, 1.0, classes)
    some = Rows(rows.table.take(np.flatnonzero(kept)), rows.labels[kept], rows.weights[kept], rows.log_prior)
    expected = weights.learn_weights(evidence[kept], some, group)
    for begin in (None, start):
        found = weights.WeightSearch.of(evidence, rows, group).learn(np.where(kept, rows.weights, 0.0), begin)
        for mine, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-7, atol=1e-8)


def test_more_work_than_newton_steps_may_take_gives_nearly_the_same_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, evidence = make_rows(3)
    expected = weights.maximize(evidence, rows, np.ones(5), 1.0)
    monkeypatch.setattr(weights, "WEIGHTS", type(weights.WEIGHTS)(max_newton_work=0.0))
    found = weights.maximize(evidence, rows, np.ones(5), 1.0)
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-2)


def test_newton_steps_solve_least_squares_that_are_not_negative() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(40, 8)), rng.normal(size=40)

    def evaluate(x: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        return 0.5 * float(((a @ x - b) ** 2).sum()), a.T @ (a @ x - b), a.T @ a

    expected = nnls(a, b)[0]
    assert 0 < (expected == 0.0).sum() < 8
    for start in (np.zeros(8), np.full(8, 3.0)):
        np.testing.assert_allclose(weights.minimize_newton(evaluate, start, np.zeros(8)), expected, atol=1e-10)


@pytest.mark.parametrize("classes", [2, 3])
def test_losses_of_blocks_are_those_of_their_posteriors(classes: int) -> None:
    rows, evidence = make_rows(classes)
    evidence = evidence.copy()
    evidence[:, 1] *= 1e3
    expected = []
    for block in evidence.transpose(1, 0, 2):
        losses = -log_softmax(block + rows.log_prior, axis=1)[np.arange(300), rows.labels]
        expected.append(np.average(losses, weights=rows.weights))
    np.testing.assert_allclose(rows.losses(evidence), expected, rtol=1e-10, atol=1e-12)
    evidence[:, 0] = -np.inf  # no class allows any row: the posterior is the prior
    evidence[0, 2, rows.labels[0]] = -np.inf
    found = rows.losses(evidence)
    assert found[0] == pytest.approx(np.average(-rows.log_prior[rows.labels], weights=rows.weights))
    assert found[2] == np.inf


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("group", [[0, 0, 1, 1, -1], [0, 1, 2, 3, 4], [-1, -1, -1, -1, -1]])
def test_weights_without_a_fold_are_nearly_those_of_the_other_rows(classes: int, group: list[int]) -> None:
    rows, evidence = make_rows(classes, 2000)
    fold, groups = np.arange(2000) % 4, np.array(group)
    search = weights.WeightSearch.of(evidence, rows, groups)
    start = search.learn(rows.weights)
    found = search.learn_without_each(fold, 4, start)
    for f in range(4):
        expected = search.learn(np.where(fold == f, 0.0, rows.weights))
        for mine, theirs, whole in zip(found[f], expected, start, strict=True):
            assert np.abs(mine - theirs).max() < 0.05 * np.abs(whole - theirs).max()


def test_few_rows_without_a_fold_take_more_than_one_step() -> None:
    rows, evidence = make_rows(3, 40)
    fold, groups = np.arange(40) % 2, np.array([0, 0, 1, 1, -1])
    search = weights.WeightSearch.of(evidence, rows, groups)
    found = search.learn_without_each(fold, 2, search.learn(rows.weights))
    for f in range(2):
        expected = search.learn(np.where(fold == f, 0.0, rows.weights))
        np.testing.assert_allclose(np.append(*found[f]), np.append(*expected), atol=0.02)
