"""Bayes' theorem, against fractions."""

import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
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
    assert "of the 121 who have it, 45 are ill: 37.2%" in str(belief)


def test_more_hypotheses_and_rare_ones() -> None:
    belief = bayes({"flu": 0.1, "cold": 0.3, "well": 0.6}, {"well": 0.01, "flu": 0.9, "cold": 0.2})
    assert dict(belief) == pytest.approx({"flu": 0.09 / 0.156, "cold": 0.06 / 0.156, "well": 0.006 / 0.156})
    rare = bayes(1e-6, (0.99, 0.001), names=("ill", "well"))
    assert "Of 10,000,000 people" in str(rare) or "Of 100,000,000 people" in str(rare)


def test_likelihoods_may_be_densities() -> None:
    """Two Gaussians narrower than 0.4 have densities above 1; the posterior is that of scikit-learn."""
    centers, deviation, x = np.array([1.0, 1.2]), np.array([0.1, 0.15]), 1.15
    found = bayes({"a": 0.3, "b": 0.7}, dict(zip("ab", stats.norm(centers, deviation).pdf(x), strict=True)))
    oracle = GaussianNB(priors=[0.3, 0.7], var_smoothing=0.0)
    cells = np.array([[m + side * s] for m, s in zip(centers, deviation, strict=True) for side in (-1.0, 1.0)])
    np.testing.assert_allclose(list(found.values()), oracle.fit(cells, [0, 0, 1, 1]).predict_proba([[x]])[0])
    assert "people" not in str(found)
    assert "posterior" in str(found)
    with pytest.raises(ValueError, match="a density is not a share of people"):
        found.frequencies()
    huge = bayes({"a": 0.5, "b": 0.5, "never": 0.0}, {"a": 1e300, "b": 3e300, "never": 1.5e308})
    assert dict(huge) == pytest.approx({"a": 0.25, "b": 0.75, "never": 0.0})
    assert dict(bayes(1e-200, (1e-200, 0.0))) == {"A": 1.0, "B": 0.0}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.5, (np.inf, 1.0)), "a finite number"),
        ((0.5, (np.nan, 1.0)), "a finite number"),
        ((0.5, (-0.1, 1.0)), "at least 0"),
        ((1.5, (0.9, 0.1)), "between 0 and 1"),
        ((0.5, (0.9,)), "1 likelihood for 2"),
        (({"a": 0.5, "b": 0.6}, (0.9, 0.1)), "sum to 1"),
        (({"a": 0.5, "b": 0.5}, {"a": 1, "c": 0}), "use the same names"),
        ((0.0, (1.0, 0.0)), "posterior is undefined"),
        (("much", (1.0, 0.0)), "give a number"),
    ],
)
def test_bad_beliefs(arguments, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        bayes(*arguments)


def test_beliefs_add_up_in_people() -> None:
    assert "90 have this evidence" in str(bayes(0.01, (0.9, 0.05)))
    assert "of the 585 who have it, 90" in str(bayes(0.01, (0.9, 0.05)))
    for arguments, options in (((0.5, 0.9), {}), ((0.5, (0.9, 0.1)), {"names": ("a", "a")})):
        with pytest.raises(ValueError, match=r"give one for each|two different"):
            bayes(*arguments, **options)


@settings(max_examples=300)
@given(*(st.integers(1, 9999).map(lambda k: k / 10_000) for _ in range(3)))
def test_the_whole_numbers_give_the_percentage(prior: float, hit: float, alarm: float) -> None:
    belief = bayes(prior, (hit, alarm), names=("ill", "well"))
    text = belief.frequencies().replace(",", "")
    people, ill, shown_ill, well, shown_well, total, of_these = map(
        int, re.findall(r"(?<![.\d])\d+(?![.\d])", text)[:7]
    )
    assert (ill + well, shown_ill + shown_well, shown_ill) == (people, total, of_these)
    printed = re.search(r": ([\d.]+)%", text)[1]
    assert f"{round(100 * shown_ill / total, 9):.1f}" == printed
    assert f"{round(100 * belief['ill'], 9):.1f}" == printed
    exact = Fraction(round(prior * 10_000), 10_000) * Fraction(round(hit * 10_000), 10_000)
    assert abs(shown_ill - people * exact) <= Fraction(1, 2) + Fraction(1, 10**6)


def test_numbers_that_were_wrong() -> None:
    """87.5 people of 1,000 were 88 by a test of floating point; 8 of 102 were 8.2%."""
    text = bayes(0.1, (0.875, 0.025), names=("ill", "well")).frequencies()
    assert "Of 10,000 people, 1,000 are ill, of whom 875 have this evidence; 9,000 are well, of whom 225" in text
    assert "So of the 1,100 who have it, 875 are ill: 79.5%." in text
    rounded = bayes(0.01, (0.84, 0.095), names=("ill", "well"))
    assert "8 are ill: 7.8% (8.2% before rounding)." in rounded.frequencies(1000)
    assert "8.2%." in rounded.frequencies()


def test_densities_below_1_are_not_shares_of_people() -> None:
    belief = bayes({"a": 0.75, "b": 0.25}, (0.045, 0.045), density=True)
    assert "people" not in str(belief)
    with pytest.raises(ValueError, match="a density is not a share of people"):
        belief.frequencies(1000)
    assert "people" in str(belief.update((0.9, 0.1)))
    assert "people" not in str(belief.update((0.9, 0.1), density=True))
