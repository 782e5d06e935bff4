"""The shares of columns in a joint block are Shapley values: against brute force over all orders of the columns."""

from itertools import permutations
from math import factorial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats

from deciban import BayesClassifier, Complement, JointGaussian, JointTable, Multinomial, PerClass, Pooled, Shrunk
from deciban.families.base import shapley as shares
from deciban.families.base.shapley import Rule, gradual_normal_shares, settle
from tests import example_count, textbook

RNG = np.random.default_rng(3)
Y = np.arange(200) % 3
NUMBERS = RNG.normal(Y[:, None] * [1.0, 0.5, 0.0, -1.0], 1.0) @ RNG.normal(size=(4, 4)) + 100.0
WORDS = {name: np.array(["x", "y", "z"], dtype=object)[RNG.integers(0, 3, 200)] for name in "abc"}
WORDS["c"] = np.where(RNG.random(200) < 0.6, WORDS["a"], WORDS["c"])


def brute_force(log_joint_of: Any, columns: int) -> np.ndarray:
    """The mean gain of each column over all orders, by a model that is asked for the evidence of some columns."""
    total = 0.0
    for order in permutations(range(columns)):
        known: list[int] = []
        gains = np.zeros((columns, *log_joint_of(()).shape))
        for column in order:
            before = log_joint_of(tuple(sorted(known)))
            known.append(column)
            gains[column] = log_joint_of(tuple(sorted(known))) - before
        total = total + gains
    return np.moveaxis(total / factorial(columns), 0, 1)


@pytest.mark.parametrize("covariance", [PerClass(), Pooled(), Shrunk(0.3), PerClass(shrinkage=0.2)], ids=str)
def test_shares_of_a_joint_gaussian_are_shapley_values_of_the_marginal_densities(covariance: Any) -> None:
    clf = textbook(JointGaussian(covariance)).fit(NUMBERS, Y)
    new = NUMBERS[:6].copy()
    new[1, 2] = np.nan
    new[2, :3] = np.nan
    estimated = clf.estimates()["x0+x1+x2+x3"]

    def density(known: tuple[int, ...]) -> np.ndarray:
        """By SciPy, row by class."""
        found = np.zeros((len(new), 3))
        for i, c in np.ndindex(*found.shape):
            kept = [k for k in known if not np.isnan(new[i, k])]
            if kept:
                normal = stats.multivariate_normal(
                    estimated["mean"][c, kept], estimated["covariance"][c][np.ix_(kept, kept)]
                )
                found[i, c] = normal.logpdf(new[i, kept])
        return found

    found = clf.evidence(new, by="column")
    np.testing.assert_allclose(found.joint, brute_force(density, 4), rtol=1e-9, atol=1e-9)
    assert found.sharing_rules == {"x0+x1+x2+x3": "Shapley values"}
    assert (found.joint[1, 2] == 0.0).all()


@pytest.mark.parametrize("family", [JointTable(), JointTable(alpha=0.1), JointTable(unseen="smooth")], ids=str)
def test_shares_of_a_joint_table_are_shapley_values_of_the_summed_tables(family: JointTable) -> None:
    table = pa.table({name: pa.array(cells, pa.string()) for name, cells in WORDS.items()})
    clf = textbook({("a", "b", "c"): family}).fit(table, Y)
    new = pa.table({"a": ["x", "x", None, "never"], "b": ["y", None, "z", "x"], "c": ["z", "z", "x", "x"]})

    def evidence(known: tuple[int, ...]) -> np.ndarray:
        hidden = {n: cells if k in known else [None] * 4 for k, (n, cells) in enumerate(new.to_pydict().items())}
        arrays = {name: pa.array(cells, pa.string()) for name, cells in hidden.items()}
        return clf.log_joint(pa.table(arrays)) - np.log(1.0 / 200) - np.log(np.bincount(Y))

    found = clf.evidence(new, by="column")
    np.testing.assert_allclose(found.joint, brute_force(evidence, 3), rtol=0, atol=1e-12)
    if family.unseen == "ignore":
        assert (found.joint[3, 0] == 0.0).all()


@pytest.mark.parametrize("family", [Multinomial(), Complement(), Complement(norm=True)], ids=str)
def test_a_count_has_just_what_it_adds(family: Any) -> None:
    counts = RNG.poisson([2.0, 1.0, 0.5], (200, 3)).astype(float)
    clf = textbook(family).fit(counts, Y)
    found = clf.evidence(counts[:5], by="column").joint
    for k in range(3):
        without = counts[:5].copy()
        without[:, k] = 0.0
        gained = clf.log_joint(counts[:5]) - clf.log_joint(without)
        np.testing.assert_allclose(found[:, k] - found[:, k, :1], gained - gained[:, :1], atol=1e-12)


def test_two_identical_columns_have_equal_shares() -> None:
    for twins in (2, 12):  # by all sets of columns, and by the formula
        table = np.column_stack([NUMBERS[:, :1]] * twins + [NUMBERS[:, 1:]])
        clf = textbook(JointGaussian(Pooled(shrinkage=0.05))).fit(table, Y)
        found = clf.evidence(table[:20], by="column").joint
        for k in range(1, twins):
            np.testing.assert_allclose(found[:, k], found[:, 0], rtol=1e-8, atol=1e-8)
    words = pa.table({"a": WORDS["a"].tolist(), "b": WORDS["b"].tolist(), "c": WORDS["a"].tolist()})
    found = textbook({("a", "b", "c"): JointTable()}).fit(words, Y).evidence(words.slice(0, 9), by="column").joint
    np.testing.assert_allclose(found[:, 0], found[:, 2], atol=1e-12)


@given(st.integers(2, 5), st.integers(0, 10_000))
@settings(max_examples=example_count(40))
def test_the_formula_adds_up_and_leaves_independent_columns_their_own(columns: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(columns, columns))
    covariance = root @ root.T + 0.01 * np.eye(columns)
    z = rng.normal(size=(3, columns)) * 3.0
    alone = rng.normal(size=(3, 1)), 0.7
    whole = np.zeros((columns + 1, columns + 1))
    whole[:columns, :columns], whole[columns, columns] = covariance, alone[1]
    found = gradual_normal_shares(np.hstack([z, alone[0]]), whole) - 0.5 * np.log(2.0 * np.pi)
    oracle = stats.multivariate_normal(np.zeros(columns), covariance).logpdf(z)
    np.testing.assert_allclose(found[:, :columns].sum(axis=1), oracle, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found[:, columns], stats.norm(0.0, np.sqrt(alone[1])).logpdf(alone[0][:, 0]), atol=1e-10)


def test_the_formula_is_the_integral_over_falling_noise() -> None:
    """By quadrature: what the log density gains as the noise of one column falls, that of all being equal."""
    covariance = np.array([[2.0, 1.2, 0.3], [1.2, 1.0, 0.1], [0.3, 0.1, 0.5]])
    z = np.array([[1.0, -2.0, 0.5]])
    noise = np.exp(np.linspace(-18.0, 18.0, 40_001))
    slopes = []
    for s in noise:
        inverse = np.linalg.inv(covariance + s * np.eye(3))
        slopes.append(0.5 * ((inverse @ z[0]) ** 2 - np.diag(inverse)))
    oracle = -np.trapezoid(np.array(slopes) * noise[:, None], np.log(noise), axis=0)
    found = gradual_normal_shares(z, covariance)[0]
    contrast = gradual_normal_shares(np.zeros((1, 3)), covariance)[0]
    flat = -np.trapezoid(
        np.array([-0.5 * np.diag(np.linalg.inv(covariance + s * np.eye(3))) for s in noise]) * noise[:, None],
        np.log(noise), axis=0,
    )  # fmt: skip
    np.testing.assert_allclose(found - contrast, oracle - flat, rtol=1e-5)


def test_a_large_block_is_shared_out_by_the_formula_and_close_to_shapley_values(monkeypatch: Any) -> None:
    rng = np.random.default_rng(8)
    y = np.arange(400) % 2
    table = rng.normal(y[:, None] * rng.normal(size=9), 1.0) @ (np.eye(9) + 0.4 * rng.normal(size=(9, 9)))
    clf = textbook(JointGaussian()).fit(table, y)
    exact = clf.evidence(table[:40], by="column")
    monkeypatch.setattr("deciban.families.joint_gaussian.MAX_ENUMERATED", 2)
    formula = clf.evidence(table[:40], by="column")
    assert set(formula.sharing_rules.values()) == {str(Rule.GRADUAL)}
    one, other = (np.diff(found.joint, axis=2).ravel() for found in (exact, formula))
    assert np.corrcoef(one, other)[0, 1] > 0.95
    np.testing.assert_allclose(exact.log_joint, formula.log_joint, rtol=1e-12)
    far = np.full((2, 9), np.nan)
    far[1, 0] = 1e200
    assert not np.isnan(clf.evidence(far, by="column").values).any()


def test_a_large_table_is_shared_out_by_some_orders_of_its_columns(monkeypatch: Any) -> None:
    rng = np.random.default_rng(2)
    y = np.arange(300) % 2
    table = pa.table({name: np.array(["u", "v"])[(rng.random(300) < 0.3 + 0.4 * y).astype(int)] for name in "abcde"})
    clf = textbook({tuple("abcde"): JointTable()}).fit(table, y)
    exact = clf.evidence(table.slice(0, 40), by="column")
    monkeypatch.setattr(shares, "MAX_ENUMERATED", 2)
    sampled = clf.evidence(table.slice(0, 40), by="column")
    assert set(sampled.sharing_rules.values()) == {str(Rule.SAMPLED)}
    one, other = (np.diff(found.joint, axis=2).ravel() for found in (exact, sampled))
    assert np.corrcoef(one, other)[0, 1] > 0.98
    np.testing.assert_allclose(exact.log_joint, sampled.log_joint, rtol=1e-12)


def test_shares_follow_a_cap_and_survive_what_is_beyond_all_numbers() -> None:
    given_shares = np.array([[[-1.0, -31.0], [-2.0, -2.0], [0.0, 0.0]]])
    capped = settle(given_shares, np.array([[0.0, -5.0]]), np.array([True]))
    np.testing.assert_allclose(capped.sum(axis=1), [[0.0, -5.0]], atol=1e-15)
    np.testing.assert_allclose(capped[0, :, 1], [-5.0, 0.0, 0.0])
    endless = np.array([[[-1.0, -np.inf], [-2.0, np.nan], [0.0, 0.0]]])
    np.testing.assert_array_equal(
        settle(endless, np.array([[0.0, -6.0]]), np.array([True]))[0, :, 1], [-3.0, -3.0, 0.0]
    )
    assert settle(endless, np.array([[-3.0, -np.inf]]), np.array([False])).sum(axis=1).tolist() == [[-3.0, -np.inf]]
    X = NUMBERS[:, :3]
    found = BayesClassifier().fit(X, Y).evidence([[1e200, -1e308, 3.0], [np.nan] * 3], by="column")
    assert np.isfinite(found.values).all()
    plain = textbook(JointGaussian()).fit(X, Y).evidence([[1e200, -1e308, 3.0]], by="column")
    assert not np.isnan(plain.values).any()
