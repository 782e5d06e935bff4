"""Bayes' theorem, forms, Bayes error, priors from unlabelled rows."""

import warnings
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, stats
from scipy.special import logsumexp
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

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
    Pooled,
    bayes,
    bayes_error,
)
from deciban.datasets import weather
from tests import textbook

RNG = np.random.default_rng(0)
X, Y = load_iris(return_X_y=True)


# Bayes' theorem


def test_the_doctors_calculation_in_fractions() -> None:
    prior, hit, alarm = Fraction(5, 100), Fraction(9, 10), Fraction(8, 100)
    exact = prior * hit / (prior * hit + (1 - prior) * alarm)
    belief = bayes(0.05, (0.9, 0.08), names=("ill", "well"))
    assert belief["ill"] == pytest.approx(float(exact))
    twice = exact * hit / (exact * hit + (1 - exact) * alarm)
    assert belief.update((0.9, 0.08))["ill"] == pytest.approx(float(twice))
    negative = belief.update({"ill": 0.1, "well": 0.92})
    assert sum(negative.values()) == pytest.approx(1.0)
    assert "50 are ill, of whom 45" in belief.frequencies()
    assert "of the 121 who show it 45 are ill: 37.2 %" in str(belief)


def test_more_hypotheses_and_rare_ones() -> None:
    belief = bayes({"flu": 0.1, "cold": 0.3, "well": 0.6}, {"well": 0.01, "flu": 0.9, "cold": 0.2})
    assert dict(belief) == pytest.approx({"flu": 0.09 / 0.156, "cold": 0.06 / 0.156, "well": 0.006 / 0.156})
    rare = bayes(1e-6, (0.99, 0.001), names=("ill", "well"))
    assert "Of 10,000,000 people" in str(rare) or "Of 100,000,000 people" in str(rare)


def test_likelihoods_may_be_densities() -> None:
    """Two Gaussians narrower than 0.4 have densities above 1; the posterior is that of scikit-learn."""
    centres, deviation, x = np.array([1.0, 1.2]), np.array([0.1, 0.15]), 1.15
    found = bayes({"a": 0.3, "b": 0.7}, dict(zip("ab", stats.norm(centres, deviation).pdf(x), strict=True)))
    oracle = GaussianNB(priors=[0.3, 0.7], var_smoothing=0.0)
    cells = np.array([[m + side * s] for m, s in zip(centres, deviation, strict=True) for side in (-1.0, 1.0)])
    np.testing.assert_allclose(list(found.values()), oracle.fit(cells, [0, 0, 1, 1]).predict_proba([[x]])[0])
    assert "people" not in str(found)
    assert "posterior" in str(found)
    with pytest.raises(ValueError, match="a density, not a share of people"):
        found.frequencies()
    huge = bayes({"a": 0.5, "b": 0.5, "never": 0.0}, {"a": 1e300, "b": 3e300, "never": 1.5e308})
    assert dict(huge) == pytest.approx({"a": 0.25, "b": 0.75, "never": 0.0})
    assert dict(bayes(1e-200, (1e-200, 0.0))) == {"positive": 1.0, "negative": 0.0}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.5, (np.inf, 1.0)), "a finite number"),
        ((0.5, (np.nan, 1.0)), "a finite number"),
        ((0.5, (-0.1, 1.0)), "at least 0"),
        ((1.5, (0.9, 0.1)), "between 0 and 1"),
        ((0.5, (0.9,)), "1 likelihoods for 2"),
        (({"a": 0.5, "b": 0.6}, (0.9, 0.1)), "sum to 1"),
        (({"a": 0.5, "b": 0.5}, {"a": 1, "c": 0}), "name the same"),
        ((0.0, (1.0, 0.0)), "not defined"),
        (("much", (1.0, 0.0)), "give a probability"),
    ],
)
def test_bad_beliefs(arguments, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        bayes(*arguments)


# forms

POSITIVE = RNG.gamma(2.0, 1.0, (60, 3)) + 0.1 * np.arange(60)[:, None] % 1
LABELS = np.arange(60) % 3
LINEAR = [
    ("bernoulli", Bernoulli(), (POSITIVE > 1.5).astype(int)),
    ("multinomial", Multinomial(), RNG.poisson(2.0, (60, 4))),
    ("categorical", Categorical(), RNG.integers(0, 4, (60, 3))),
    ("binned", Binned(), POSITIVE),
    ("pooled", Gaussian(variance=Pooled()), POSITIVE),
    ("log-normal", LogNormal(variance=Pooled()), POSITIVE),
    ("gamma", Gamma(), POSITIVE),
    ("poisson", Poisson(), RNG.poisson(3.0, (60, 3)).astype(float)),
    ("joint", JointGaussian(Pooled()), POSITIVE),
]
QUADRATIC = [
    ("gaussian", Gaussian(), POSITIVE),
    ("log-normal", LogNormal(), POSITIVE),
    ("joint", JointGaussian(), POSITIVE),
    ("mixed", {0: Gaussian(), (1, 2): JointGaussian(Pooled())}, POSITIVE + 1e6),
]


def same_posteriors(form, clf, X) -> None:
    scores = form.scores(X)
    log_posterior = scores - logsumexp(scores, axis=1, keepdims=True)
    np.testing.assert_allclose(log_posterior, clf.predict_log_proba(X), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize(("name", "family", "X"), LINEAR, ids=[case[0] for case in LINEAR])
def test_scores_of_the_linear_form_are_the_models(name: str, family, X) -> None:
    clf = textbook(family).fit(X, LABELS)
    form = clf.linear_form()
    assert form.quadratic is None
    same_posteriors(form, clf, X)
    features = form.features(X)
    full = ~np.isnan(features).any(axis=1)
    scores = features[full] @ form.weights + form.offset
    np.testing.assert_allclose(scores, form.scores(X)[full], rtol=1e-9, atol=1e-9)
    w, b = form.hyperplane(0, 2)
    np.testing.assert_allclose(features[full] @ w + b, scores[:, 0] - scores[:, 2], rtol=1e-7, atol=1e-8)
    assert form.names[0] in str(form)


@pytest.mark.parametrize(("name", "family", "X"), QUADRATIC, ids=[case[0] for case in QUADRATIC])
def test_scores_of_the_quadratic_form_are_the_models(name: str, family, X) -> None:
    clf = textbook(family).fit(X, LABELS)
    with pytest.raises(ValueError, match="quadratic_form"):
        clf.linear_form()
    form = clf.quadratic_form()
    same_posteriors(form, clf, X) if name != "mixed" else None
    if name == "mixed":  # large offsets cost digits in x·Qx
        shifted = textbook(family).fit(X - 1e6, LABELS)
        same_posteriors(shifted.quadratic_form(), shifted, X - 1e6)
    with pytest.raises(ValueError, match="no hyperplane"):
        form.hyperplane(0, 1)


def test_forms_with_missing_cells_and_weights() -> None:
    table = pd.DataFrame({"x": POSITIVE[:, 0], "flag": POSITIVE[:, 1] > 1.0, "word": np.array(list("abc"))[LABELS - 1]})
    table.loc[::7, "x"] = np.nan
    table.loc[::5, "word"] = None
    spec = {"x": Gaussian(variance=Pooled()), "flag": Bernoulli(), "word": Categorical()}
    clf = textbook(spec).fit(table, LABELS)
    same_posteriors(clf.linear_form(), clf, table)
    tuned = BayesClassifier(spec).fit(table, LABELS)
    assert (tuned.model_.weights != 1.0).any()
    same_posteriors(tuned.linear_form(), tuned, table)
    joint = textbook(JointGaussian(Pooled())).fit(POSITIVE, LABELS)
    with pytest.raises(ValueError, match="belong together"):
        joint.linear_form().scores([[1.0, np.nan, 2.0]])


def test_the_signed_form_is_the_logistic_one() -> None:
    y = np.where(LABELS == 0, -1, 1)
    clf = textbook(Gaussian(variance=Pooled())).fit(POSITIVE, y)
    w, b = clf.linear_form().signed()
    np.testing.assert_allclose(1 / (1 + np.exp(-(POSITIVE @ w + b))), clf.predict_proba(POSITIVE)[:, 1], rtol=1e-9)
    np.testing.assert_array_equal(np.sign(POSITIVE @ w + b), clf.predict(POSITIVE))
    with pytest.raises(ValueError, match="two classes"):
        textbook(Gaussian(variance=Pooled())).fit(POSITIVE, LABELS).linear_form().signed()


def test_forms_are_refused_with_a_reason() -> None:
    with pytest.raises(ValueError, match="no finite weight; use alpha > 0"):
        textbook(Bernoulli(alpha=0)).fit([[0, 1], [0, 0], [1, 1]], [0, 0, 1]).linear_form()
    with pytest.raises(ValueError, match="JointTable"):
        textbook({("outlook", "wind"): JointTable()}).fit(weather(), "play").linear_form()


def test_pooled_gaussians_and_logistic_regression_agree_as_data_grow() -> None:
    distances = []
    for rows in (300, 30_000):
        y = np.arange(rows) % 2
        x = RNG.normal(size=(rows, 3)) + y[:, None] * [1.0, -0.5, 0.3]
        w, b = textbook(Gaussian(variance=Pooled())).fit(x, y).linear_form().signed()
        logistic = LogisticRegression(C=np.inf).fit(x, y)
        distances.append(np.abs(np.append(w, b) - np.append(logistic.coef_[0], logistic.intercept_)).max())
    assert distances[1] < 0.05
    assert distances[1] < distances[0]


def test_parameters_are_counted() -> None:
    found = textbook().fit(weather(), "play").parameter_count()
    assert found.naive == 1 + 2 * (2 + 2 + 1 + 1)
    assert found.model == found.naive
    assert found.full == 1 + 2 * (3 * 3 * 2 * 2 - 1)
    blocked = textbook({("outlook", "wind"): JointTable()}).fit(weather(), "play").parameter_count()
    assert blocked.model == 1 + 2 * (5 + 2 + 1)
    assert textbook().fit(X, Y).parameter_count().naive == 2 + 3 * 2 * 4
    assert textbook(JointGaussian(Pooled())).fit(X, Y).parameter_count().model == 2 + 12 + 10
    assert "full joint" in str(found)


# Bayes error


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
    with pytest.raises(ValueError, match="only a risk"):
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
    found = clf.bayes_error(rows=20_000)
    assert found.interval[0] < found.risk < found.interval[1]
    assert found.left_out == pytest.approx(1.0 - clf.leave_one_out().accuracy)
    assert "leave-one-out" in str(found)
    y = np.arange(4000) % 2
    x = RNG.normal(size=(4000, 1)) + 2.0 * y[:, None]
    true = textbook(Gaussian(variance=Pooled())).fit(x, y).bayes_error()
    assert true.risk == pytest.approx(stats.norm.cdf(-1), abs=0.01)


# priors of unlabelled rows


def test_shares_of_unlabelled_rows_are_found() -> None:
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


def test_uncalibrated_posteriors_are_warned_of() -> None:
    y = np.arange(500) % 2
    x = np.repeat((RNG.normal(size=500) + y)[:, None], 10, axis=1)
    with pytest.warns(UserWarning, match="uncalibrated"):
        textbook().fit(x, y).estimate_prior(x)


# found by trying hard


def test_forms_keep_their_digits_where_values_are_large() -> None:
    y = np.arange(300) % 2
    X = RNG.normal(size=(300, 3)) * 0.01 + 1e6 + 0.01 * y[:, None]
    for family in (Gaussian(), JointGaussian(), Gaussian(variance=Pooled())):
        clf = textbook(family).fit(X, y)
        same_posteriors(clf.quadratic_form(), clf, X)


@pytest.mark.filterwarnings("ignore:the posteriors are off")
def test_shares_that_rows_cannot_tell_are_not_claimed() -> None:
    words = ["p"] * 80 + ["q"] * 20 + ["p"] * 80 + ["q"] * 20 + ["p"] * 10 + ["q"] * 90
    clf = textbook().fit({"w": words}, np.repeat(["a", "b", "c"], 100))
    found = clf.estimate_prior({"w": ["p"] * 70 + ["q"] * 30})
    assert found.low[:2].tolist() == [0.0, 0.0]
    assert found.high[:2].tolist() == [1.0, 1.0]
    assert found.high[2] < 0.5
    for rows, level in (({"w": []}, 0.95), ({"w": ["p"]}, 2.0)):
        with pytest.raises(ValueError, match=r"no rows|level"):
            clf.estimate_prior(rows, level)


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
    with pytest.raises(ValueError, match="too far"):
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
        ([stats.norm(), stats.norm(1)], {"decisions": [1, 0]}, "give these too"),
        ([stats.norm(), stats.norm(1)], {"classes": ["a"]}, "1 classes for 2"),
        ([stats.norm(), stats.norm(1)], {"boundaries": [np.nan]}, "finite"),
        ([stats.norm(), stats.norm(1)], {"boundaries": 0.5}, "list of numbers"),
        ([stats.norm(), stats.poisson(1)], {}, "of one kind"),
        ([stats.norm(), "normal"], {}, "no distribution"),
        ({"a": stats.norm(), "b": stats.norm(1)}, {}, "as a list"),
    ],
)
def test_more_bad_questions(arguments, given, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        bayes_error(arguments, **given)


def test_parameters_of_unusual_models() -> None:
    a, b = np.random.default_rng(1).integers(0, 2, (2, 2000))
    xor = BayesClassifier().fit(pd.DataFrame({"a": np.where(a, "x", "y"), "b": np.where(b, "x", "y")}), a ^ b)
    assert xor.parameter_count().naive == 5
    assert xor.parameter_count().full == 7
    assert textbook(Categorical()).fit({"a": [None] * 6, "b": ["x"] * 6}, [0, 1] * 3).parameter_count().naive == 1
    normal = RNG.normal(size=(90, 3))
    joint = textbook(JointGaussian()).fit(normal, np.arange(90) % 3).parameter_count()
    assert (joint.naive, joint.model) == (2 + 18, 2 + 9 + 18)
    wide = textbook(Categorical()).fit(RNG.integers(0, 5, (200, 600)), np.arange(200) % 3).parameter_count()
    assert "10^" in str(wide)


def test_beliefs_add_up_in_people() -> None:
    assert "90 show the evidence" in str(bayes(0.01, (0.9, 0.05)))
    assert "of the 585 who show it 90" in str(bayes(0.01, (0.9, 0.05)))
    for arguments, given in (((0.5, 0.9), {}), ((0.5, (0.9, 0.1)), {"names": ("a", "a")})):
        with pytest.raises(ValueError, match=r"give one for each|two different"):
            bayes(*arguments, **given)
