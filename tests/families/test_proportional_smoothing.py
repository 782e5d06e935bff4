"""Smoothing in proportion to the classes, against target statistics and fractions."""

from fractions import Fraction
from itertools import product

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from deciban import BayesClassifier, Categorical
from deciban.errors import UsageError
from deciban.families.base.smoothing import smooth_in_proportion

RNG = np.random.default_rng(5)
TOWNS = np.array([f"t{k}" for k in RNG.integers(0, 40, 600)], dtype=object)
Y = RNG.choice(["a", "b", "c"], 600, p=[0.8, 0.15, 0.05])


def test_shares_are_these_fractions() -> None:
    counts = np.array([[3.0, 0.0, 5.0], [1.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    found = smooth_in_proportion(counts, 2.0, 3)
    for c, row in enumerate(counts.tolist()):
        share = Fraction(int(sum(row)), 10)
        for k, count in enumerate(row):
            expected = (int(count) + 2 * share) / (int(sum(row)) + 2 * share * 3) if share else None
            every = Fraction(int(counts[:, k].sum()) + 2, 10 + 6)  # of a class without rows
            assert found[c, k] == pytest.approx(float(expected if expected is not None else every), rel=1e-15)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-15)


def test_the_posterior_of_a_value_is_its_target_statistic() -> None:
    """The class shares among its rows and alpha rows of the overall shares."""
    frame = pd.DataFrame({"town": TOWNS})
    clf = BayesClassifier(Categorical(alpha=7.0, proportional=True), tune=None).fit(frame, Y)
    counts = pd.crosstab(TOWNS, Y)
    expected = (counts + 7.0 * counts.sum() / 600).div(counts.sum(axis=1) + 7.0, axis=0)
    found = clf.predict_proba(pd.DataFrame({"town": counts.index.to_numpy(dtype=object)}))
    np.testing.assert_allclose(found, expected.to_numpy(), rtol=1e-12)


def test_a_value_without_rows_is_no_evidence() -> None:
    family = Categorical(alpha=7.0, levels=(*sorted(set(TOWNS)), "nowhere"), proportional=True)
    clf = BayesClassifier(family, tune=None).fit(pd.DataFrame({"town": TOWNS}), Y)
    found = clf.predict_proba(pd.DataFrame({"town": ["nowhere"]}))[0]
    np.testing.assert_allclose(found, np.unique(Y, return_counts=True)[1] / 600, rtol=1e-12)


def test_the_formula_evaluates_to_the_estimate() -> None:
    family, cells = Categorical(alpha=7.0, proportional=True), [pa.array(TOWNS)]
    codes = np.unique(Y, return_inverse=True)[1].astype(np.int32)
    likelihood = family.estimate(family.count(cells, codes, np.ones(600), 4))  # the last class has no rows
    shares, place = likelihood.estimates()[0].parameters["probability"], likelihood.codes(cells)[:, 0]
    for row, label in product(range(20), range(4)):
        text = likelihood.formula(cells, row, 0, label)
        assert text is not None
        value = eval(text.replace("·", "*"))  # a fraction of numbers
        assert value == pytest.approx(shares[label, place[row]], rel=1e-4)


def test_both_smoothings_agree_for_balanced_classes() -> None:
    labels = np.where(np.arange(600) % 2, "a", "b")
    frame = pd.DataFrame({"town": TOWNS})
    even = BayesClassifier(Categorical(alpha=1.5), tune=None).fit(frame, labels)
    shared = BayesClassifier(Categorical(alpha=3.0, proportional=True), tune=None).fit(frame, labels)
    np.testing.assert_allclose(shared.predict_proba(frame), even.predict_proba(frame), rtol=1e-12)


def test_tuning_chooses_it_for_many_values_of_rare_classes() -> None:
    """Values without effect: even smoothing would make every rare value evidence for the rare class."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"town": [f"t{k}" for k in rng.integers(0, 300, 1500)]})
    labels = np.where(rng.random(1500) < 0.05, "rare", "common")
    (choice,) = BayesClassifier(tune="weights").fit(frame, labels).tuning_.choices
    assert choice.family.proportional
    even = min(loss for family, loss in choice.others if not family.proportional)
    assert choice.loss < even


def test_a_flag_is_needed() -> None:
    with pytest.raises(UsageError, match="proportional"):
        Categorical(proportional="yes")  # type: ignore[arg-type]
