"""Intervals of posteriors, checked by learning many samples of one and the same world."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from deciban import (
    BayesClassifier,
    Bernoulli,
    Binned,
    Categorical,
    Gamma,
    Gaussian,
    JointGaussian,
    JointTable,
    LogNormal,
    Multinomial,
    Poisson,
)
from tests import textbook

Rng = np.random.Generator
ROWS = 400
LABELS = np.arange(ROWS) % 2

WORLDS: list[tuple[str, Any, Callable[[Rng], np.ndarray], Any]] = [
    ("gaussian", Gaussian(), lambda rng: rng.normal(LABELS, 1.0 + LABELS)[:, None], [[0.3], [2.5]]),
    ("log-normal", LogNormal(), lambda rng: np.exp(rng.normal(LABELS, 1.0 + LABELS))[:, None], [[1.3], [9.5]]),
    ("gamma", Gamma(), lambda rng: rng.gamma(2.0 + LABELS, 1.0 + LABELS)[:, None], [[1.0], [8.0]]),
    ("poisson", Poisson(), lambda rng: rng.poisson(2.0 + 2.0 * LABELS)[:, None].astype(float), [[1.0], [6.0]]),
    ("categorical", Categorical(), lambda rng: rng.binomial(3, 0.3 + 0.2 * LABELS)[:, None], [[0], [2]]),
    ("bernoulli", Bernoulli(), lambda rng: rng.binomial(1, 0.2 + 0.3 * LABELS)[:, None], [[0], [1]]),
    ("binned", Binned(bins=4), lambda rng: rng.uniform(0.0, 1.0 + LABELS)[:, None], [[0.1], [0.6]]),
    (
        "multinomial",
        Multinomial(),
        lambda rng: np.where(
            LABELS[:, None] == 1, rng.poisson([1, 2, 3], (ROWS, 3)), rng.poisson([3, 2, 1], (ROWS, 3))
        ),
        [[1, 0, 2], [4, 1, 0]],
    ),
    (
        "joint-gaussian",
        JointGaussian(),
        lambda rng: rng.normal(size=(ROWS, 3)) @ [[1.0, 0.5, 0], [0, 1, 0.3], [0, 0, 1]] + LABELS[:, None],
        [[0.0, 0.0, 0.0], [1.0, 2.0, -1.0]],
    ),
    (
        "joint-table",
        {(0, 1): JointTable()},
        lambda rng: np.column_stack([rng.binomial(1, 0.3 + 0.2 * LABELS), rng.binomial(1, 0.5, ROWS)]),
        [[0, 1], [1, 0]],
    ),
]


@pytest.mark.parametrize(("name", "family", "draw", "at"), WORLDS, ids=[world[0] for world in WORLDS])
def test_doubt_is_the_spread_over_samples(name: str, family: Any, draw: Callable[[Rng], np.ndarray], at: Any) -> None:
    rng = np.random.default_rng(1)
    points = np.asarray(at)
    odds, variance = [], []
    for _ in range(300):
        clf = textbook(family).fit(draw(rng), LABELS)
        joint = clf.log_joint(points)
        odds.append(joint[:, 1] - joint[:, 0])
        doubt = clf.model_.doubt(clf.counts_, clf.schema_.fitting(_opened(points)))
        variance.append((doubt - 0.5 / (ROWS / 2)).sum(axis=1))  # here the classes are not drawn
    claimed = np.sqrt(np.median(variance, axis=0))
    np.testing.assert_allclose(claimed, np.std(odds, axis=0), rtol=0.25)


def _opened(points: np.ndarray) -> Any:
    from deciban.data.open import open_table

    return open_table(points)


@pytest.mark.parametrize("tune", [None, "auto"])
def test_intervals_hold_the_posterior_and_widen_where_data_are_few(tune: Any) -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=(2000, 2)) + (np.arange(2000) % 2)[:, None]
    y = np.arange(2000) % 2
    many, few = (BayesClassifier(tune=tune).fit(x[:n], y[:n]) for n in (2000, 60))
    for clf in (many, few):
        low, high = clf.predict_interval(x[:50])
        posterior = clf.predict_proba(x[:50])
        assert (low <= posterior).all()
        assert (posterior <= high).all()
    narrow, wide = (np.subtract(*clf.predict_interval(x[:50])[::-1]).mean() for clf in (many, few))
    assert wide > 3.0 * narrow
    with pytest.raises(ValueError, match="level"):
        many.predict_interval(x, level=95)


def test_plain_intervals_cover_the_truth_as_often_as_they_say() -> None:
    rng = np.random.default_rng(3)
    hits = []
    for _ in range(200):
        x = rng.normal(np.arange(200) % 2, 1.0)[:, None]
        low, high = textbook(Gaussian()).fit(x, np.arange(200) % 2).predict_interval([[0.8], [2.0]])
        truth = 1.0 / (1.0 + np.exp(-(np.array([0.8, 2.0]) - 0.5)))
        hits.append((low[:, 1] <= truth) & (truth <= high[:, 1]))
    assert 0.92 <= np.mean(hits) <= 1.0
