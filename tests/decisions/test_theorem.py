"""Bayes' theorem, against fractions."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from sklearn.naive_bayes import GaussianNB

from deciban import bayes


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


def test_beliefs_add_up_in_people() -> None:
    assert "90 show the evidence" in str(bayes(0.01, (0.9, 0.05)))
    assert "of the 585 who show it 90" in str(bayes(0.01, (0.9, 0.05)))
    for arguments, given in (((0.5, 0.9), {}), ((0.5, (0.9, 0.1)), {"names": ("a", "a")})):
        with pytest.raises(ValueError, match=r"give one for each|two different"):
            bayes(*arguments, **given)
