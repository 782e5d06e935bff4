"""A class whose cells are all equal has seen no spread; that is no reason to be certain."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import digamma
from sklearn.datasets import load_digits

from deciban import BayesClassifier, Gamma, Gaussian, JointGaussian, LogNormal, Pooled, Shrunk
from deciban.errors import ForgetError
from tests import textbook

X = np.array([[0.0], [1.0], [2.0], [9.0]])
Y = list("aaab")


def test_a_class_of_one_row_takes_its_share_of_the_variance_of_the_column() -> None:
    expected = [stats.norm.pdf(8.99, 1.0, np.sqrt(2 / 3)) * 0.75, stats.norm.pdf(8.99, 9.0, np.sqrt(X.var() / 2)) / 4]
    found = BayesClassifier(Gaussian(), tune=None).fit(X, Y).predict_proba([[8.99]])[0]
    np.testing.assert_allclose(found, np.array(expected) / sum(expected), rtol=1e-9)
    assert BayesClassifier().fit(X, Y).predict_proba([[8.99]])[0, 1] > 0.9


@pytest.mark.parametrize("family", [Gaussian(), Gaussian(Shrunk(0.0)), LogNormal(), Gamma(), JointGaussian()], ids=str)
def test_what_differs_by_rounding_is_equal(family) -> None:
    """0.1 + 0.2 is not 0.3, and a difference of equals is not always 0; neither is a spread."""
    rest = np.array([1.0, 2.0, 4.0, 7.0, 9.0])
    for exact, rounded in (([0.3] * 3, [0.1 + 0.2, 0.3, 0.3]), ([0.7] * 3, [0.7, 0.1 * 7, 0.7])):
        points = np.array([[0.25], [0.31], [1.0], [5.0]])
        one, other = (
            textbook(family).fit(np.concatenate([cells, rest])[:, None], list("aaabbbbb")).evidence(points).values
            for cells in (exact, rounded)
        )
        np.testing.assert_allclose(other, one, rtol=1e-9)


def test_rounding_about_zero_is_no_spread() -> None:
    rest = [1.0, -2.0, 0.4, 0.7, -0.9]
    exact, rounded = (
        textbook(Gaussian()).fit(np.array([*cells, *rest])[:, None], list("aaabbbbb")).predict_proba([[0.01], [1.0]])
        for cells in ([0.0] * 3, [0.0, 1e-17, -5e-17])
    )
    np.testing.assert_allclose(rounded, exact, rtol=1e-12)


def test_without_a_floor_a_small_variance_is_what_it_is() -> None:
    """Two classes that lie close together are told apart, however far away a third one is."""
    x = np.concatenate([[-1.0, 1.0], [9.0, 11.0], [1e9, 3e9]])[:, None]
    for family in (Gaussian(), Gaussian(floor=0.0)):
        evidence = textbook(family).fit(x, list("aabbcc")).evidence([[0.5]]).values[0, 0]
        np.testing.assert_allclose(evidence[:2], stats.norm.logpdf(0.5, [0.0, 10.0], 1.0), rtol=1e-9)


def test_a_direction_without_spread_takes_its_share_too() -> None:
    x = np.array([[0.0, 0.0], [1.0, 3.0], [2.0, 0.0], [9.0, 3.0], [9.0, 5.0]])
    normal = textbook(JointGaussian()).fit(x, list("aaabb")).model_.likelihoods[0]
    np.testing.assert_allclose(normal.covariance[1], np.diag([1 / 3, 1.0 / x[:, 1].var()]), rtol=1e-9, atol=1e-12)
    twice = np.random.default_rng(0).normal(size=(40, 1)) @ np.ones((1, 2))
    normal = textbook(JointGaussian(Pooled())).fit(twice, np.arange(40) % 2).model_.likelihoods[0]
    assert np.linalg.eigvalsh(normal.covariance[0])[0] == pytest.approx(1 / 41, rel=1e-9)


def test_gamma_takes_its_share_of_the_gap_of_the_column() -> None:
    x = np.array([2.0, 2.0, 1.0, 4.0, 9.0])
    shape = textbook(Gamma()).fit(x[:, None], list("aabbb")).model_.likelihoods[0].shape[0, 0]
    gap = np.log(x.mean()) - np.log(x).mean()
    assert np.log(shape) - digamma(shape) == pytest.approx(gap / 3, rel=1e-9)


def test_digits_are_read_by_plain_bayes() -> None:
    """Many pixels are always white in some digits: an accuracy of 0.76 where this was taken for certain."""
    x, y = load_digits(return_X_y=True)
    assert textbook(Gaussian()).fit(x[::2], y[::2]).score(x[1::2], y[1::2]) > 0.84


@pytest.mark.parametrize("family", [Gaussian(), Gaussian(Shrunk(0.3)), LogNormal(), Gamma(), JointGaussian()], ids=str)
def test_a_class_that_never_varied_is_left_out_as_it_is_learned(family) -> None:
    x = np.array([0.3, 0.1 + 0.2, 0.3, 0.7, 0.7, 0.1 * 7, 1.2, 1.0, 2.0, 4.0, 7.0, 9.0])[:, None]
    y = np.array(list("aaabbbbccccc"))
    found = textbook(family).fit(x, y).leave_one_out().posterior
    for i in range(y.size):
        others = np.arange(y.size) != i
        expected = textbook(family).fit(x[others], y[others]).predict_proba(x[i : i + 1])[0]
        np.testing.assert_allclose(found[i], expected, rtol=1e-7, atol=1e-12, err_msg=f"row {i}")


@pytest.mark.parametrize("outlier", [1e2, 1e3, 1e4])
@pytest.mark.parametrize("spread", [1.0, 1e-2, 1e-4])
def test_the_spread_that_forgetting_leaves_is_known_or_refused(outlier: float, spread: float) -> None:
    """There is no floor below which it would not matter, however wide the other classes are."""
    rng = np.random.default_rng(0)
    cells = np.concatenate([[outlier], 5.0 + spread * rng.normal(size=30), 1e5 * rng.normal(size=30)])[:, None]
    labels = np.repeat([0, 1], [31, 30])
    clf = textbook(Gaussian()).fit(cells, labels)
    try:
        clf.forget(cells[:1], labels[:1])
    except ForgetError:
        assert spread <= 1e-4 * outlier
    else:
        assert clf.model_.likelihoods[0].variance[0, 0] == pytest.approx(cells[1:31].var(), rel=4e-9)
