"""The Bayes risk of known distributions, against integration, and of models."""

import re
from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate, stats
from sklearn.datasets import load_iris

from deciban import Gaussian, Pooled, bayes_error
from deciban.evaluation.model_risk import BayesRiskEstimate
from tests import textbook

RNG = np.random.default_rng(0)
X, Y = load_iris(return_X_y=True)


def by_integration(distributions, priors, loss) -> float:
    def least(x: float) -> float:
        joint = [p * d.pdf(x) for p, d in zip(priors, distributions, strict=True)]
        return min(float(np.dot(row, joint)) for row in loss)

    low = min(d.ppf(1e-12) for d in distributions)
    high = max(d.ppf(1 - 1e-12) for d in distributions)
    points = np.linspace(low, high, 200)
    return sum(integrate.quad(least, a, b)[0] for a, b in pairwise(points))


@pytest.mark.parametrize(
    ("distributions", "priors", "loss"),
    [
        ([stats.norm(15, 4), stats.norm(25, 4)], [0.75, 0.25], None),
        ([stats.norm(0, 1), stats.norm(0, 3)], [0.5, 0.5], None),
        ([stats.norm(0, 1), stats.norm(2, 1), stats.norm(4, 2)], [0.2, 0.5, 0.3], [[0, 1, 5], [2, 0, 1], [9, 1, 0]]),
        ([stats.gamma(2), stats.norm(5, 1)], [0.6, 0.4], [[0, 3], [1, 0]]),
        ([stats.expon(), stats.expon(scale=3)], [0.5, 0.5], None),
        ([stats.uniform(0, 2), stats.uniform(1, 2)], [0.4, 0.6], None),
        ([stats.norm(0, 1), stats.norm(1, 1)], [0.5, 0.5], [[0, 1], [1, 0], [0.2, 0.2]]),
    ],
)
def test_the_bayes_risk_is_the_integral(distributions, priors, loss) -> None:
    if loss is not None and len(loss) > len(priors):
        loss = np.array(loss, dtype=float)
    found = bayes_error(distributions, priors, loss)
    matrix = 1.0 - np.eye(len(priors)) if loss is None else np.asarray(loss)
    assert found.risk == pytest.approx(by_integration(distributions, priors, matrix), abs=2e-6)
    assert found.areas.sum() == pytest.approx(1.0)
    assert found.avoidable == 0.0


def test_letters_to_the_digit() -> None:
    letters = [stats.norm(15, 4), stats.norm(25, 4)]
    found = bayes_error(letters, [0.75, 0.25], classes=["a", "b"])
    assert found.boundaries == pytest.approx([21.7578], abs=5e-5)
    assert found.areas[1, 0] == pytest.approx(0.034175, abs=5e-7)
    assert found.areas[0, 1] == pytest.approx(0.052203, abs=5e-7)
    assert found.error == pytest.approx(found.areas[1, 0] + found.areas[0, 1])
    assert bayes_error(letters).boundaries == pytest.approx([20.0])
    moved = bayes_error(letters, [0.75, 0.25], classes=["a", "b"], boundaries=[20.0])
    exact = 0.75 * letters[0].sf(20) + 0.25 * letters[1].cdf(20)
    assert moved.risk == pytest.approx(exact)
    assert moved.avoidable == pytest.approx(exact - found.error)
    assert "avoidable" in str(moved)
    swapped = bayes_error(letters, [0.75, 0.25], classes=["a", "b"], boundaries=[20.0], decisions=["b", "a"])
    assert swapped.risk == pytest.approx(1.0 - exact)
    costly = bayes_error(letters, [0.75, 0.25], [[0, 10], [1, 0]])
    assert costly.boundaries[0] < found.boundaries[0]
    with pytest.raises(ValueError, match="an error rate needs zero-one loss"):
        _ = costly.error


def test_discrete_and_many_dimensional_distributions() -> None:
    coins = [stats.binom(10, 0.3), stats.binom(10, 0.6)]
    found = bayes_error(coins, [0.5, 0.5])
    exact = sum(min(0.5 * coins[0].pmf(k), 0.5 * coins[1].pmf(k)) for k in range(11))
    assert found.error == pytest.approx(exact)
    gaussians = [stats.multivariate_normal([0, 0], np.eye(2)), stats.multivariate_normal([2, 0], np.eye(2))]
    plane = bayes_error(gaussians)
    assert plane.interval[0] <= stats.norm.cdf(-1) <= plane.interval[1]
    assert plane.risk <= plane.bounds["Chernoff"] <= plane.bounds["Bhattacharyya"]
    assert plane.bounds["Bhattacharyya"] == pytest.approx(0.5 * np.exp(-0.5))
    skewed = [stats.multivariate_normal([0, 0], np.eye(2)), stats.multivariate_normal([2, 0], 4 * np.eye(2))]
    uneven = bayes_error(skewed, [0.7, 0.3])
    assert uneven.risk <= uneven.bounds["Chernoff"] < uneven.bounds["Bhattacharyya"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([stats.norm()],), "at least two"),
        (([stats.norm(), stats.norm(1)], [0.5, 0.6]), "sum to 1"),
        (([stats.norm(), stats.norm(1)], [0.5, 0.5], [[0, 1, 2]]), "columns"),
    ],
)
def test_bad_questions(arguments, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        bayes_error(*arguments)
    with pytest.raises(ValueError, match="2 intervals"):
        bayes_error([stats.norm(), stats.norm(1)], boundaries=[0.5], decisions=[0])


def test_a_models_own_risk_and_the_left_out_one() -> None:
    clf = textbook().fit(X, Y)
    found = clf.bayes_error(n_samples=20_000)
    assert found.interval[0] < found.risk < found.interval[1]
    assert found.leave_one_out == pytest.approx(1.0 - clf.leave_one_out().accuracy)
    number = r"0\.\d{4}"
    text = rf"model-based estimate {number} \(95% interval {number} to {number}\); leave-one-out {number}"
    assert re.fullmatch(text, str(found))
    tiny = BayesRiskEstimate(1e-6, (0.0, 4e-5), None, found.loss)
    assert str(tiny) == "model-based estimate < 0.0001 (95% interval below 0.0001)"
    y = np.arange(4000) % 2
    x = RNG.normal(size=(4000, 1)) + 2.0 * y[:, None]
    true = textbook(Gaussian(variance=Pooled())).fit(x, y).bayes_error()
    assert true.risk == pytest.approx(stats.norm.cdf(-1), abs=0.01)


def test_discrete_distributions_with_rules_and_off_the_integers() -> None:
    counts = [stats.poisson(1), stats.poisson(5)]
    assert bayes_error(counts, boundaries=[20]).avoidable > 0.3
    best = bayes_error(counts)
    values = np.arange(60)
    assert best.error == pytest.approx(0.5 * np.minimum(counts[0].pmf(values), counts[1].pmf(values)).sum())
    assert bayes_error(counts, boundaries=[2.5], decisions=[1, 0]).risk == pytest.approx(
        1.0 - bayes_error(counts, boundaries=[2.5]).risk
    )
    halves = [stats.rv_discrete(values=([0.5, 1.5], share)) for share in ([0.3, 0.7], [0.6, 0.4])]
    assert bayes_error(halves).error == pytest.approx(0.35)
    moved = bayes_error([stats.poisson(3, loc=0.5), stats.poisson(5, loc=0.5)]).risk
    assert moved == pytest.approx(bayes_error([stats.poisson(3), stats.poisson(5)]).risk)
    with pytest.raises(ValueError, match="too many values to enumerate"):
        bayes_error([stats.geom(1e-9), stats.geom(2e-9)])


def test_regions_are_where_something_lies() -> None:
    found = bayes_error([stats.beta(2, 5), stats.beta(5, 2)], classes=["a", "b"])
    assert [region.decision for region in found.regions] == ["a", "b"]
    assert found.boundaries == pytest.approx([0.5])
    apart = bayes_error([stats.uniform(1, 1), stats.uniform(0, 1)])
    assert apart.boundaries == pytest.approx([1.0], abs=1e-9)
    assert apart.error == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(
    ("arguments", "given", "message"),
    [
        ([stats.norm(), stats.norm(1)], {"decisions": [1, 0]}, "needs boundaries=; give both"),
        ([stats.norm(), stats.norm(1)], {"classes": ["a"]}, "1 classes for 2"),
        ([stats.norm(), stats.norm(1)], {"boundaries": [np.nan]}, "finite"),
        ([stats.norm(), stats.norm(1)], {"boundaries": 0.5}, "list of numbers"),
        ([stats.norm(), stats.poisson(1)], {}, "of one kind"),
        ([stats.norm(), "normal"], {}, "not a frozen SciPy distribution"),
        ({"a": stats.norm(), "b": stats.norm(1)}, {}, "as a list"),
    ],
)
def test_more_bad_questions(arguments, given, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        bayes_error(arguments, **given)
