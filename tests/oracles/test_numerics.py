"""Digits, scales and extremes."""

from fractions import Fraction

import numpy as np
import pytest

import deciban as dc
from deciban.statistics import Moments, Scatter
from tests.laws.cases import CASES

RNG = np.random.default_rng(3)
ROWS = np.arange(1, 1001)
NIST = {
    "NumAcc1": np.array([10000001.0, 10000003.0, 10000002.0]),
    "NumAcc2": np.concatenate([[1.2], np.where(ROWS % 2 == 1, 1.1, 1.3)]),
    "NumAcc3": np.concatenate([[1000000.2], np.where(ROWS % 2 == 1, 1000000.1, 1000000.3)]),
    "NumAcc4": np.concatenate([[10000000.2], np.where(ROWS % 2 == 1, 10000000.1, 10000000.3)]),
}
SETS = NIST | {
    f"offset {offset:g}": offset + np.random.default_rng(0).integers(0, 7, 500) for offset in (1e9, 1e12, 1e15)
}


def exact_variance(values: np.ndarray) -> Fraction:
    fractions = [Fraction(float(value)) for value in values]
    mean = sum(fractions) / len(fractions)
    return sum((value - mean) ** 2 for value in fractions) / len(fractions)


def moments(values: np.ndarray) -> Moments:
    n = len(values)
    return Moments.count(values.reshape(-1, 1).copy(), np.zeros(n, dtype=np.int32), np.ones(n), 1)


@pytest.mark.parametrize("batch", [1, 2, 7, 100, 10_000])
@pytest.mark.parametrize("name", SETS)
def test_fourteen_and_a_half_digits_of_variance(name: str, batch: int) -> None:
    values = SETS[name]
    total = Moments.empty(1, 1)
    for start in range(0, len(values), batch):
        total = total.merge(moments(values[start : start + batch]))
    exact = exact_variance(values)
    error = abs(Fraction(float(total.variance()[0, 0])) - exact) / exact
    assert error < Fraction(10.0**-14.5)


def test_digits_in_a_tree_of_merges_and_with_missing_cells() -> None:
    values = SETS["offset 1e+15"]
    parts = [moments(part) for part in np.array_split(values, 64)]
    while len(parts) > 1:
        parts = [parts[k].merge(parts[k + 1]) for k in range(0, len(parts), 2)]
    holed = moments(np.concatenate([values, [np.nan] * 5]))
    exact = exact_variance(values)
    for found in (parts[0], holed):
        assert abs(Fraction(float(found.variance()[0, 0])) - exact) / exact < Fraction(10.0**-14.5)


def assert_digits(values: np.ndarray, found: Moments) -> None:
    exact = exact_variance(values)
    assert abs(Fraction(float(found.variance()[0, 0])) - exact) / exact < Fraction(10.0**-14.5)


def test_a_poor_first_guess_costs_no_digits() -> None:
    """The first rows, from which the mean is guessed, lie a million deviations from the rows that make the variance."""
    values = np.concatenate([np.full(40, 1e6), RNG.normal(size=40_000) * 1e7, np.full(40, 1e6)])
    assert_digits(values, moments(values))
    level = np.concatenate([1e8 + RNG.normal(size=40), RNG.normal(size=9_000)])
    assert_digits(level, moments(level))


def test_many_equal_squares_cost_no_digits() -> None:
    """Adding the same square again and again rounds in the same direction."""
    values = np.tile([0.1, 0.3, 0.1, 0.7], 30_000)
    assert_digits(values, moments(values))
    assert_digits(values, moments(np.concatenate([values, [np.nan]])))


def test_scaling_keeps_the_low_parts() -> None:
    block = np.stack([SETS["offset 1e+15"], SETS["offset 1e+12"]], axis=1)
    labels, weights = np.zeros(len(block), dtype=np.int32), np.ones(len(block))
    half, rest = (
        Scatter.count(part, labels[: len(part)], weights[: len(part)], 1) for part in (block[:250], block[250:])
    )
    both = half.merge(rest).scale(0.1)
    exact = [exact_variance(column) * 50 for column in block.T]
    for j in range(2):
        found = Fraction(float(both.scatter[0, j, j])) + Fraction(float(both.scatter_low[0, j, j]))
        assert abs(found - exact[j]) / exact[j] < Fraction(10.0**-14.5)


def test_a_million_merges_lose_nothing() -> None:
    one = moments(np.array([0.1, 0.3]))
    total = one
    for _ in range(20):
        total = total.merge(total)
    assert total.variance()[0, 0] == pytest.approx(one.variance()[0, 0], rel=1e-15)


Y = RNG.integers(0, 3, 90)
REAL = RNG.normal(size=(90, 3)) + Y[:, None]
POSITIVE = np.exp(REAL)

UNIT_FREE = [
    dc.Gaussian(),
    dc.Gaussian(variance=dc.Pooled()),
    dc.JointGaussian(dc.PerClass()),
    dc.JointGaussian(dc.Pooled()),
]


@pytest.mark.parametrize("factor", [1e-9, 1e-3, 1e9, 1e60])
@pytest.mark.parametrize("family", [*UNIT_FREE, dc.LogNormal(), dc.Gamma()], ids=str)
def test_the_unit_of_a_column_changes_no_posterior(family, factor: float) -> None:
    scaled = POSITIVE.copy()
    scaled[:, 1] *= factor
    before = dc.BayesClassifier(family).fit(POSITIVE, Y).predict_proba(POSITIVE)
    np.testing.assert_allclose(
        dc.BayesClassifier(family).fit(scaled, Y).predict_proba(scaled), before, rtol=1e-8, atol=1e-12
    )


@pytest.mark.parametrize("family", UNIT_FREE, ids=str)
def test_the_origin_of_a_column_changes_no_posterior(family) -> None:
    grid = np.round(REAL * 1024) / 1024  # so that shifting loses no digit
    before = dc.BayesClassifier(family).fit(grid, Y).predict_proba(grid)
    moved = grid + np.array([1e9, 0.0, -1e12 / 1024])
    np.testing.assert_allclose(
        dc.BayesClassifier(family).fit(moved, Y).predict_proba(moved), before, rtol=1e-8, atol=1e-12
    )


def test_binned_follows_a_change_of_unit_by_a_power_of_two() -> None:
    before = dc.BayesClassifier(dc.Binned()).fit(REAL, Y).predict_proba(REAL)
    scaled = REAL * 2.0**40
    np.testing.assert_allclose(dc.BayesClassifier(dc.Binned()).fit(scaled, Y).predict_proba(scaled), before, rtol=1e-12)


def test_meters_as_in_centimeters() -> None:
    """A quadratic discriminant that refuses nothing: the columns differ by nine orders of magnitude."""
    meters = REAL * np.array([1e-9, 1.0, 1e-5])
    before = dc.BayesClassifier(dc.JointGaussian(dc.PerClass())).fit(REAL, Y).predict(REAL)
    np.testing.assert_array_equal(
        dc.BayesClassifier(dc.JointGaussian(dc.PerClass())).fit(meters, Y).predict(meters), before
    )


EXTREMES = np.array([1e300, -1e300, 1e-300, 1e160, -0.0, 5e-324, 1e18, -1.7e308])
ANYTHING = sorted(
    {
        *(
            case.family
            for case in CASES
            if case.family.support.contains(np.ceil(POSITIVE)).all() and getattr(case.family, "part", None) is None
        ),
        dc.Gaussian(variance=dc.Pooled(), floor=0.0),
        dc.Binned(alpha=0.0, unseen="smooth"),
        dc.Categorical(alpha=0.0),
        dc.Categorical(alpha=0.0, unseen="smooth"),
        dc.Bernoulli(alpha=0.0, threshold=1.0),
    },
    key=str,
)


def assert_sound(clf: dc.BayesClassifier, rows: np.ndarray) -> None:
    posterior = clf.predict_proba(rows)
    assert not np.isnan(posterior).any()
    np.testing.assert_allclose(posterior.sum(axis=1), 1.0, rtol=1e-12)
    assert not np.isnan(clf.log_joint(rows)).any()
    assert not np.isnan(clf.log_density(rows)).any()
    assert not np.isnan(clf.evidence(rows).values).any()


@pytest.mark.parametrize("family", [family for family in ANYTHING if not family.accepts_new_columns], ids=str)
@pytest.mark.parametrize(
    "table",
    [
        np.ceil(POSITIVE),
        np.full((90, 3), 7.0),  # constant columns
        np.where(Y[:, None] == 0, 7.0, np.ceil(POSITIVE)),  # constant within a class
        np.where(Y[:, None] == 1, np.nan, np.ceil(POSITIVE)),  # missing throughout a class
        np.full((90, 3), np.nan),
        np.repeat(np.ceil(POSITIVE[:, :1]), 3, axis=1),  # three copies of one column
    ],
    ids=["plain", "constant", "constant-in-class", "missing-in-class", "missing", "copies"],
)
def test_no_nan_from_finite_cells(family, table: np.ndarray) -> None:
    queries = np.concatenate([table[:5], np.tile(EXTREMES[:, None], 3), np.full((1, 3), np.nan)])
    assert_sound(dc.BayesClassifier(family).fit(table, Y), queries)


@pytest.mark.parametrize("family", [*ANYTHING, dc.Multinomial(alpha=0.0), dc.JointTable(alpha=0.0)], ids=str)
def test_one_row_and_a_class_without_rows(family) -> None:
    table = np.ceil(POSITIVE)
    assert_sound(dc.BayesClassifier(family).fit(table[:1], Y[:1]), table)
    declared = dc.BayesClassifier(family, classes=[0, 1, 2, 3], prior="uniform").fit(table, Y)
    assert declared.classes_.tolist() == [0, 1, 2, 3]
    assert_sound(declared, table)
    assert_sound(dc.BayesClassifier(family, classes=[0, 1, 2, 3]).fit(table, Y), table)


def test_a_far_query_goes_to_the_wider_class() -> None:
    clf = dc.BayesClassifier().fit([[-1.0], [1.0], [-10.0], [10.0]], ["narrow", "narrow", "wide", "wide"])
    assert clf.predict([[1e100]]).tolist() == ["wide"]


def test_where_every_class_is_impossible_the_posterior_is_the_prior() -> None:
    clf = dc.BayesClassifier(dc.Categorical(alpha=0)).fit([["a", "x"], ["a", "x"], ["b", "y"]], ["p", "p", "q"])
    posterior = clf.predict_proba([["a", "y"]])
    np.testing.assert_allclose(posterior, [[2 / 3, 1 / 3]])
    assert clf.log_density([["a", "y"]]).tolist() == [-np.inf]
    assert clf.evidence([["a", "y"]]).impossible.tolist() == [True]
    assert "impossible in every class" in str(clf.explain([["a", "y"]]))


def test_ties_go_to_the_first_class() -> None:
    clf = dc.BayesClassifier().fit([[1.0], [1.0]], ["b", "a"])
    assert clf.predict([[1.0]]).tolist() == ["a"]
