"""What was estimated can be read: against scikit-learn, SciPy and NumPy; and how many numbers that took, by hand."""

import json
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, ComplementNB, GaussianNB, MultinomialNB

from deciban import (
    BayesClassifier,
    Bernoulli,
    Binned,
    Categorical,
    Complement,
    Gamma,
    Gaussian,
    JointGaussian,
    JointTable,
    LogNormal,
    Multinomial,
    Poisson,
    Pooled,
    Shrunk,
    Text,
    UsageError,
)
from deciban.datasets import weather
from tests import textbook

RNG = np.random.default_rng(3)
Y = np.arange(90) % 3
X = RNG.gamma(2.0 + Y[:, None], 1.0, (90, 2)) + 0.1
COUNTS = RNG.poisson(1.0 + Y[:, None], (90, 4))
CODES = RNG.integers(0, 3, (90, 2))
WORDS = np.array(["ox", "elk", "owl", "yak", "asp"])
TEXTS = [" ".join(RNG.choice(WORDS, 4, p=RNG.dirichlet(np.ones(5)))) for _ in range(90)]


def of_column(family, cells, name: str = "x0"):
    return textbook(family).fit(cells, Y).estimates()[name]


def test_means_and_variances_are_those_of_scikit_learn() -> None:
    oracle = GaussianNB(var_smoothing=0.0).fit(X, Y)
    for j in range(2):
        found = of_column(Gaussian(), X, f"x{j}")
        np.testing.assert_allclose(found["mean"], oracle.theta_[:, j], rtol=1e-12)
        np.testing.assert_allclose(found["variance"], oracle.var_[:, j], rtol=1e-12)
    found = of_column(LogNormal(), X)
    for c in range(3):
        np.testing.assert_allclose(found["log_mean"][c], np.log(X[c == Y, 0]).mean(), rtol=1e-12)
        np.testing.assert_allclose(found["log_variance"][c], np.log(X[c == Y, 0]).var(), rtol=1e-12)


def test_shapes_scales_and_rates_are_those_of_scipy() -> None:
    found = of_column(Gamma(), X)
    for c in range(3):
        shape, _, scale = stats.gamma.fit(X[c == Y, 0], floc=0.0)
        np.testing.assert_allclose([found["shape"][c], found["scale"][c]], [shape, scale], rtol=1e-6)
    found = of_column(Poisson(), COUNTS, "x2")
    np.testing.assert_allclose(found["rate"], [COUNTS[c == Y, 2].mean() for c in range(3)])


def test_joint_gaussians_have_the_means_and_covariances_of_discriminants() -> None:
    found = of_column(JointGaussian(), X, "x0+x1")
    np.testing.assert_allclose(found["mean"], [X[c == Y].mean(axis=0) for c in range(3)])
    np.testing.assert_allclose(found["covariance"], [np.cov(X[c == Y].T, bias=True) for c in range(3)], rtol=1e-9)
    pooled = LinearDiscriminantAnalysis(solver="lsqr", store_covariance=True).fit(X, Y)
    for matrix in of_column(JointGaussian(Pooled()), X, "x0+x1")["covariance"]:
        np.testing.assert_allclose(matrix, pooled.covariance_, rtol=1e-9)
    constant = textbook(JointGaussian()).fit(np.c_[X, np.full(90, 7.0)], Y).estimates()["x0+x1+x2"]
    assert constant["mean"][:, 2].tolist() == [7.0] * 3
    assert not constant["covariance"][:, 2].any()


def test_shares_are_those_of_scikit_learn() -> None:
    found = of_column(Categorical(), CODES)
    assert found.values == (0, 1, 2)
    np.testing.assert_allclose(found["probability"], np.exp(CategoricalNB().fit(CODES, Y).feature_log_prob_[0]))
    present = (COUNTS > 1).astype(float)
    oracle = np.exp(BernoulliNB().fit(present, Y).feature_log_prob_)
    np.testing.assert_allclose(of_column(Bernoulli(), present, "x3")["probability"], oracle[:, 3])
    block = "x0+x1+x2+x3"
    oracle = np.exp(MultinomialNB().fit(COUNTS, Y).feature_log_prob_)
    np.testing.assert_allclose(of_column(Multinomial(), COUNTS, block)["probability"], oracle)
    oracle = ComplementNB().fit(COUNTS, Y).feature_log_prob_
    np.testing.assert_allclose(of_column(Complement(), COUNTS, block)["score"], oracle)


def test_words_have_the_shares_of_scikit_learn() -> None:
    words = CountVectorizer()
    counts = words.fit_transform(TEXTS)
    for kind, oracle, parameter in (
        ("multinomial", np.exp(MultinomialNB().fit(counts, Y).feature_log_prob_), "probability"),
        ("bernoulli", np.exp(BernoulliNB().fit(counts, Y).feature_log_prob_), "probability"),
        ("complement", ComplementNB().fit(counts, Y).feature_log_prob_, "score"),
    ):
        found = of_column(Text(kind=kind), TEXTS)
        assert found.values is not None
        order = [words.vocabulary_[word] for word in found.values]
        np.testing.assert_allclose(found[parameter], oracle[:, order])
    assert of_column(Text(kind="lift"), TEXTS)["score"].shape == (3, 5)


def test_bins_and_tuples_are_distributions() -> None:
    found = of_column(Binned(8, alpha=0.0), X)
    low, high = np.array(found.values).T
    np.testing.assert_allclose(found["density"] @ (high - low), 1.0)
    for c in range(3):
        counted = np.histogram(X[c == Y, 0], np.append(low, high[-1]))[0]
        if (low[1:] == high[:-1]).all():
            np.testing.assert_allclose(found["density"][c], counted / 30 / (high - low))
    some = np.array([[0, 0], [0, 1], [1, 1], [2, 0]]).repeat([30, 30, 29, 1], axis=0)
    found, possible = of_column(JointTable(), some, "x0+x1"), 3 * 2
    assert found.values == ((0, 0), (0, 1), (1, 1), (2, 0))
    whole = found["probability"].sum(axis=1) + (possible - len(found.values)) * found["unseen"]
    np.testing.assert_allclose(whole, 1.0)
    full = of_column(JointTable(alpha=0.0, cuts=((2.0,), None)), np.c_[X[:, 0], Y], "x0+x1")
    place = full.values.index(((2.0, np.inf), 1))
    assert full["probability"][1, place] == pytest.approx(np.mean(X[Y == 1, 0] >= 2.0))


def test_estimates_come_as_tables() -> None:
    found = textbook(alpha=0.0).fit(weather(), "play").estimates()
    assert list(found) == ["outlook", "temperature", "humidity", "wind"]
    assert found.to_dict()["wind"] == {
        "probability": {"no": {"strong": 0.6, "weak": 0.4}, "yes": {"strong": 3 / 9, "weak": 6 / 9}}
    }
    frame = found.to_frame("pandas")
    counted = weather().to_pandas().groupby("play").outlook.value_counts(normalize=True)
    for line in frame[frame.block == "outlook"].itertuples():
        assert line.estimate == pytest.approx(counted.get((line[4], line.value), 0.0))
    assert found.to_frame().column_names == ["block", "parameter", "value", "class", "estimate"]
    pd.testing.assert_frame_equal(found.to_frame().to_pandas(), frame, check_dtype=False)
    assert "P(strong)  0.6  0.333333" in str(found)
    joint = textbook(JointGaussian()).fit(X * 1e6, Y).estimates()
    assert "covariance of x0, x1" in str(joint)
    assert "e+06" not in str(joint).split("covariance")[0]
    assert np.array(joint.to_dict()["x0+x1"]["covariance"][0]).shape == (2, 2)


def test_a_tuned_model_tells_its_weights_and_the_plain_one_beside_it() -> None:
    clf = BayesClassifier().fit(X, Y)
    tuned, plain = clf.estimates(), clf.estimates(plain=True)
    assert list(tuned) == list(clf.tuning_.schema.block_names)
    assert [block.weight for block in tuned.values()] == clf.tuning_.weights.tolist()
    assert list(plain) == ["x0", "x1"]
    assert {block.weight for block in plain.values()} == {1.0}
    np.testing.assert_allclose(plain["x1"]["mean"], [X[c == Y, 1].mean() for c in range(3)])
    assert json.dumps(tuned.to_dict())


# the numbers that had to be learned, counted by hand: 3 classes, so 2 of the prior

FREE: list[tuple[str, object, Callable[[], object], int, int]] = [
    ("gaussian", Gaussian(), lambda: X, 2 + 2 * 6, 2 + 2 * 6),
    ("pooled", Gaussian(Pooled()), lambda: X, 2 + 2 * 4, 2 + 2 * 4),
    ("shrunk", Gaussian(Shrunk(0.5)), lambda: X, 2 + 2 * 6, 2 + 2 * 6),
    ("log-normal", LogNormal(), lambda: X, 2 + 2 * 6, 2 + 2 * 6),
    ("log-normal pooled", LogNormal(Pooled()), lambda: X, 2 + 2 * 4, 2 + 2 * 4),
    ("gamma", Gamma(), lambda: X, 2 + 2 * 6, 2 + 2 * 6),
    ("poisson", Poisson(), lambda: COUNTS, 2 + 4 * 3, 2 + 4 * 3),
    ("bernoulli", Bernoulli(threshold=0.5), lambda: COUNTS, 2 + 4 * 3, 2 + 4 * 3),
    ("categorical", Categorical(), lambda: CODES, 2 + 2 * 3 * 2, 2 + 2 * 3 * 2),
    ("multinomial", Multinomial(), lambda: COUNTS, 2 + 3 * 3, 2 + 3 * 3),
    ("complement", Complement(), lambda: COUNTS, 2 + 3 * 3, 2 + 3 * 3),
    ("joint", JointGaussian(), lambda: X, 2 + 2 * 6, 2 + 3 * 2 + 3 * 3),
    ("joint pooled", JointGaussian(Pooled()), lambda: X, 2 + 2 * 4, 2 + 3 * 2 + 3),
    ("table", JointTable(), lambda: CODES, 2 + 2 * 3 * 2, 2 + 3 * 8),
    ("text", Text(), lambda: TEXTS, 2 + 3 * 4, 2 + 3 * 4),
    ("two texts", Text(), lambda: {"a": TEXTS, "b": TEXTS}, 2 + 2 * 3 * 4, 2 + 2 * 3 * 4),
    ("presence", Text(kind="bernoulli"), lambda: TEXTS, 2 + 3 * 5, 2 + 3 * 5),
    ("text complement", Text(kind="complement"), lambda: TEXTS, 2 + 3 * 4, 2 + 3 * 4),
    ("lift", Text(kind="lift"), lambda: TEXTS, 2 + 5 * 2, 2 + 5 * 2),
]


@pytest.mark.parametrize(("family", "cells", "naive", "model"), [case[1:] for case in FREE], ids=[c[0] for c in FREE])
def test_parameters_are_counted_as_by_hand(family, cells, naive: int, model: int) -> None:
    found = textbook(family).fit(cells(), Y).parameter_count()
    assert (found.naive, found.model) == (naive, model)


def test_the_prior_is_among_the_estimates() -> None:
    clf = textbook(prior="smoothed").fit(X[:140], Y[:140])
    found = clf.estimates()
    assert list(found.prior) == clf.classes_.tolist()
    np.testing.assert_allclose(list(found.prior.values()), np.exp(clf.model_.log_prior))
    assert found.to_dict()["(prior)"]["probability"] == found.prior
    frame = found.to_frame()
    assert frame["block"].tolist()[:3] == ["(prior)"] * 3
    assert frame["estimate"][:3].sum() == pytest.approx(1.0)
    assert str(found).startswith("prior\n")


def test_classes_that_happen_to_be_as_wide_do_not_share_a_variance() -> None:
    cells = np.array([[-1.0], [1.0], [9.0], [11.0]])
    assert textbook(Gaussian()).fit(cells, [0, 0, 1, 1]).parameter_count().model == 1 + 4


def test_bins_but_one_are_counted_and_large_numbers_are_shown() -> None:
    clf = textbook(Binned(8)).fit(X[:, :1], Y)
    bins = len(clf.estimates()["x0"].values)
    assert clf.parameter_count().model == 2 + 3 * (bins - 1)
    many = [" ".join(f"w{k}" for k in range(20_000)), "w1", "w2"]
    count = textbook(Text(kind="bernoulli")).fit(many, ["a", "b", "c"]).parameter_count()
    assert count.full == 2 + 3 * (2**20_000 - 1)
    lines = [line.split() for line in str(count).splitlines()]
    assert lines[2][:5] == ["full", "joint", "distribution", "about", "10^6021"]
    assert lines[3] == ["combinations", "about", "10^6020"]


def test_weights_of_tuning_are_parameters_too() -> None:
    clf = BayesClassifier().fit({"text": TEXTS, "n": X[:, 0]}, Y)
    tuning, count = clf.tuning_, clf.parameter_count()
    heard = int(((tuning.weights != 0.0) & (tuning.weights != 1.0)).sum()) + (2 if tuning.bias.any() else 0)
    by_hand = 0
    for block in clf.estimates().values():
        if block.weight != 0.0:
            words = 0 if block.values is None else len(block.values)
            kind, shared = type(block.family).__name__, "Pooled" in str(block.family)
            by_hand += 3 * (words - 1) if kind in ("Text", "Binned") else 4 if shared else 6
    assert count.model == 2 + heard + by_hand
    assert count.naive == 2 + 3 * 4 + 6


def test_an_unknown_block_or_parameter_names_the_valid_ones() -> None:
    estimates = BayesClassifier(tune=None).fit(weather(), "play").estimates()
    with pytest.raises(UsageError, match=r"'wind' has no parameter 'P\(weak\)'; use 'probability'; to_dict\(\)"):
        estimates["wind"]["P(weak)"]
    with pytest.raises(KeyError, match="found no estimates of 'winds'; did you mean 'wind'"):
        estimates["winds"]
    assert "winds" not in estimates
    assert estimates.get("size") is None
