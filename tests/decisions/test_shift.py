"""The shares of classes among unlabeled rows."""

import warnings

import numpy as np
import pytest

from deciban import BayesClassifier
from tests import textbook

RNG = np.random.default_rng(0)


def test_shares_of_unlabeled_rows_are_found() -> None:
    def rows(n: int, share: float) -> tuple[np.ndarray, np.ndarray]:
        y = (RNG.random(n) < share).astype(int)
        return RNG.normal(size=(n, 2)) + 1.5 * y[:, None], y

    x, y = rows(3000, 0.5)
    clf = BayesClassifier().fit(x, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        covered = []
        for _ in range(20):
            new, truth = rows(1000, 0.1)
            found = clf.estimate_prior(new)
            covered.append(found.low[1] <= 0.1 <= found.high[1])
    assert np.mean(covered) >= 0.8
    assert found.prior.sum() == pytest.approx(1.0)
    moved = clf.with_prior(found)
    assert moved.score(new, truth) > clf.score(new, truth)
    assert "1: 0." in str(found)
    assert "95% interval 0." in str(found)


def test_uncalibrated_posteriors_are_warned_of() -> None:
    y = np.arange(500) % 2
    x = np.repeat((RNG.normal(size=500) + y)[:, None], 10, axis=1)
    with pytest.warns(UserWarning, match="shares may be too extreme"):
        textbook().fit(x, y).estimate_prior(x)


@pytest.mark.filterwarnings("ignore:the posteriors are off")
def test_shares_that_rows_cannot_tell_are_not_claimed() -> None:
    words = ["p"] * 80 + ["q"] * 20 + ["p"] * 80 + ["q"] * 20 + ["p"] * 10 + ["q"] * 90
    clf = textbook().fit({"w": words}, np.repeat(["a", "b", "c"], 100))
    found = clf.estimate_prior({"w": ["p"] * 70 + ["q"] * 30})
    assert found.low[:2].tolist() == [0.0, 0.0]
    assert found.high[:2].tolist() == [1.0, 1.0]
    assert found.high[2] < 0.5
    for rows, level in (({"w": []}, 0.95), ({"w": ["p"]}, 2.0)):
        with pytest.raises(ValueError, match=r"at least one row|level"):
            clf.estimate_prior(rows, level)


def test_a_class_that_does_not_show_is_rare_and_not_impossible() -> None:
    rng = np.random.default_rng(4)
    y = np.repeat([0, 1, 2], 100)
    X = rng.normal(20.0 * y[:, None], 1.0, (300, 2))
    clf = BayesClassifier(tune=None).fit(X, y)
    found = clf.estimate_prior(X[:200])
    assert 0.0 < found.prior[2] < 0.01
    assert clf.with_prior(found).predict(X[200:]).tolist() == [2] * 100
