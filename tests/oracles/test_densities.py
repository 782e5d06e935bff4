"""Every family's score against SciPy, exact fractions, or the closed formula."""

from fractions import Fraction
from math import factorial, log, prod

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse, stats

from deciban import (
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
    PerClass,
    Poisson,
    Pooled,
    Shrunk,
)
from tests import textbook

RNG = np.random.default_rng(0)
Y = RNG.integers(0, 3, 200)


def evidence(spec, X, y=Y, at=None) -> np.ndarray:
    """log P(cells | class), row by class, the blocks added up."""
    return textbook(spec, prior="uniform").fit(X, y).evidence(X if at is None else at).values.sum(axis=1)


def by_class(x: np.ndarray, at: np.ndarray, logpdf) -> np.ndarray:
    """logpdf(rows of the class, at) for each class and column, columns added up."""
    return np.stack([sum(logpdf(x[c == Y, j], at[:, j]) for j in range(x.shape[1])) for c in range(3)], axis=1)


NORMAL = RNG.normal([0, 50, -3], [1, 10, 0.1], (200, 3)) + Y[:, None]
POSITIVE = RNG.gamma(2.0, 3.0, (200, 3)) * (1 + Y[:, None])
COUNTS = RNG.poisson([0.5, 2.0, 5.0], (200, 3)) + Y[:, None]


def test_gaussian_is_scipys() -> None:
    expected = by_class(NORMAL, NORMAL, lambda rows, x: stats.norm.logpdf(x, rows.mean(), rows.std()))
    np.testing.assert_allclose(evidence(Gaussian(), NORMAL), expected, rtol=1e-12)


def test_gaussian_with_ddof() -> None:
    expected = by_class(NORMAL, NORMAL, lambda rows, x: stats.norm.logpdf(x, rows.mean(), rows.std(ddof=1)))
    np.testing.assert_allclose(evidence(Gaussian(ddof=1), NORMAL), expected, rtol=1e-12)


@pytest.mark.parametrize("amount", [0.0, 0.3, 1.0])
def test_pooled_and_shrunk_variance(amount: float) -> None:
    pooled = sum(NORMAL[c == Y].var(axis=0) * (c == Y).sum() for c in range(3)) / 200
    expected = np.stack(
        [
            stats.norm.logpdf(
                NORMAL, NORMAL[c == Y].mean(0), np.sqrt((1 - amount) * NORMAL[c == Y].var(0) + amount * pooled)
            ).sum(axis=1)
            for c in range(3)
        ],
        axis=1,
    )
    np.testing.assert_allclose(evidence(Gaussian(variance=Shrunk(amount)), NORMAL), expected, rtol=1e-12)
    if amount == 1.0:
        np.testing.assert_allclose(evidence(Gaussian(variance=Pooled()), NORMAL), expected, rtol=1e-12)


def test_log_normal_is_scipys() -> None:
    def logpdf(rows: np.ndarray, x: np.ndarray) -> np.ndarray:
        return stats.lognorm.logpdf(x, np.log(rows).std(), scale=np.exp(np.log(rows).mean()))

    np.testing.assert_allclose(evidence(LogNormal(), POSITIVE), by_class(POSITIVE, POSITIVE, logpdf), rtol=1e-12)


def test_gamma_is_scipys_maximum_likelihood() -> None:
    def logpdf(rows: np.ndarray, x: np.ndarray) -> np.ndarray:
        shape, _, scale = stats.gamma.fit(rows, floc=0)
        return stats.gamma.logpdf(x, shape, scale=scale)

    np.testing.assert_allclose(evidence(Gamma(), POSITIVE), by_class(POSITIVE, POSITIVE, logpdf), rtol=1e-9)


def test_poisson_is_scipys() -> None:
    expected = by_class(COUNTS, COUNTS, lambda rows, x: stats.poisson.logpmf(x, rows.mean()))
    np.testing.assert_allclose(evidence(Poisson(), COUNTS), expected, rtol=1e-12, atol=1e-12)


def test_bernoulli_is_scipys() -> None:
    flags = (COUNTS > 2).astype(int)
    expected = by_class(flags, flags, lambda rows, x: stats.bernoulli.logpmf(x, (rows.sum() + 0.5) / (len(rows) + 1)))
    np.testing.assert_allclose(evidence(Bernoulli(alpha=0.5), flags), expected, rtol=1e-12)
    np.testing.assert_allclose(evidence(Bernoulli(alpha=0.5, threshold=2), COUNTS), expected, rtol=1e-12)
    np.testing.assert_allclose(evidence(Bernoulli(alpha=0.5), sparse.csr_array(flags)), expected, rtol=1e-12)


def test_multinomial_is_scipys() -> None:
    expected = np.stack(
        [
            stats.multinomial.logpmf(
                COUNTS, COUNTS.sum(axis=1), (COUNTS[c == Y].sum(0) + 1) / (COUNTS[c == Y].sum() + 3)
            )
            for c in range(3)
        ],
        axis=1,
    )
    np.testing.assert_allclose(evidence(Multinomial(), COUNTS.astype(float)), expected, rtol=1e-12)
    np.testing.assert_allclose(evidence(Multinomial(), sparse.csr_array(COUNTS)), expected, rtol=1e-12)


def test_complement_is_the_formula() -> None:
    totals = np.array([COUNTS[c == Y].sum(axis=0) for c in range(3)])
    others = totals.sum(axis=0) - totals
    weight = -np.log((1 + others) / (3 + others.sum(axis=1, keepdims=True)))
    np.testing.assert_allclose(evidence(Complement(), COUNTS.astype(float)), COUNTS @ weight.T, rtol=1e-12)
    normed = weight / np.abs(weight).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(evidence(Complement(norm=True), COUNTS.astype(float)), COUNTS @ normed.T, rtol=1e-12)


@pytest.mark.parametrize("alpha", [0, 1, Fraction(1, 2)])
def test_categorical_in_fractions(alpha: Fraction) -> None:
    X = RNG.integers(0, 4, (200, 2))
    found = evidence(Categorical(alpha=float(alpha)), X)
    for i in range(0, 200, 17):
        for c in range(3):
            shares = [
                (Fraction(int(((X[:, j] == X[i, j]) & (c == Y)).sum())) + alpha) / (int((c == Y).sum()) + alpha * 4)
                for j in range(2)
            ]
            assert found[i, c] == pytest.approx(log(prod(shares)), rel=1e-13)


def test_joint_table_in_fractions() -> None:
    X = pa.table({"a": RNG.integers(0, 3, 200), "b": RNG.integers(0, 2, 200).astype(str)})
    a, b = X["a"].to_numpy(), X["b"].to_numpy()
    found = evidence({("a", "b"): JointTable(alpha=0.5)}, X)
    for i in range(0, 200, 13):
        for c in range(3):
            count = int(((a == a[i]) & (b == b[i]) & (c == Y)).sum())
            share = (Fraction(count) + Fraction(1, 2)) / (int((c == Y).sum()) + Fraction(1, 2) * 6)
            assert found[i, c] == pytest.approx(log(share), rel=1e-13)


def test_a_full_joint_table_is_plain_counting() -> None:
    """With every column in it, no smoothing and counted priors, P(class | tuple) is N(tuple, class) / N(tuple)."""
    X = pa.table({"a": RNG.integers(0, 3, 200), "b": RNG.integers(0, 2, 200)})
    a, b = X["a"].to_numpy(), X["b"].to_numpy()
    found = textbook({("a", "b"): JointTable(alpha=0)}).fit(X, Y).predict_proba(X)
    for i in range(200):
        same = (a == a[i]) & (b == b[i])
        np.testing.assert_allclose(found[i], [(same & (c == Y)).sum() / same.sum() for c in range(3)], rtol=1e-12)


def test_joint_table_sums_over_missing_members_exactly() -> None:
    X = pa.table({"a": RNG.integers(0, 3, 200), "b": RNG.integers(0, 2, 200)})
    clf = textbook({("a", "b"): JointTable(alpha=0.7)}, prior="uniform").fit(X, Y)
    whole = [np.exp(clf.evidence([{"a": 1, "b": b}]).values[0, 0]) for b in (0, 1)]
    part = np.exp(clf.evidence([{"a": 1, "b": None}]).values[0, 0])
    np.testing.assert_allclose(part, sum(whole), rtol=1e-13)
    np.testing.assert_array_equal(clf.evidence([{"a": None, "b": None}]).values, np.zeros((1, 1, 3)))


@pytest.mark.parametrize("spread", [PerClass(), Pooled(), Shrunk(0.25), PerClass(shrinkage=0.4)], ids=str)
def test_joint_gaussian_is_scipys(spread) -> None:
    mix = NORMAL @ np.array([[1, 0.5, 0], [0, 1, 0.2], [0, 0.3, 1]])
    own = np.array([np.cov(mix[c == Y].T, bias=True) for c in range(3)])
    pooled = sum(own[c] * (c == Y).sum() for c in range(3)) / 200
    matrices = {"PerClass": own, "Pooled": np.array([pooled] * 3)}.get(
        type(spread).__name__, 0.75 * own + 0.25 * pooled
    )
    matrices = np.array([(1 - spread.shrinkage) * m + spread.shrinkage * np.diag(np.diag(m)) for m in matrices])
    expected = np.stack(
        [stats.multivariate_normal.logpdf(mix, mix[c == Y].mean(axis=0), matrices[c]) for c in range(3)], axis=1
    )
    np.testing.assert_allclose(evidence(JointGaussian(spread), mix), expected, rtol=1e-9)
    holed = mix.copy()
    holed[:, 1] = np.nan
    kept = np.ix_([0, 2], [0, 2])
    marginal = np.stack(
        [
            stats.multivariate_normal.logpdf(mix[:, [0, 2]], mix[c == Y][:, [0, 2]].mean(axis=0), matrices[c][kept])
            for c in range(3)
        ],
        axis=1,
    )
    np.testing.assert_allclose(evidence(JointGaussian(spread), mix, at=holed), marginal, rtol=1e-9)


def test_oas_shrinkage_is_scikit_learns_on_standardised_columns() -> None:
    from sklearn.covariance import oas

    from deciban.families.joint_gaussian import oas_share, shrink

    z = RNG.normal(size=(40, 6)) @ RNG.normal(size=(6, 6))
    z = (z - z.mean(axis=0)) / z.std(axis=0)
    np.testing.assert_allclose(shrink(z.T @ z / 40, oas_share(z.T @ z / 40, 40.0)), oas(z)[0], rtol=1e-10, atol=1e-12)


def test_binned_is_a_histogram() -> None:
    x = RNG.exponential(size=(200, 1))
    clf = textbook(Binned(bins=8, alpha=1.0), prior="uniform").fit(x, Y)
    bins = clf.model_.likelihoods[0].bins[0]
    width = 2.0**bins.exponent
    assert 0.5 <= width / (4 * x.std() / 8) <= 2.0
    cell = np.floor(x[:, 0] / width)
    occupied = np.unique(cell).size
    for i in range(0, 200, 9):
        for c in range(3):
            count = ((cell == cell[i]) & (c == Y)).sum()
            share = (count + 1) / ((c == Y).sum() + occupied) / width
            assert clf.evidence(x[i : i + 1]).values[0, 0, c] == pytest.approx(np.log(share), rel=1e-12)


def test_multinomial_coefficient_by_hand() -> None:
    clf = textbook(Multinomial(alpha=0), prior="uniform").fit([[1.0, 3.0], [2.0, 2.0]], ["a", "b"])
    joint = np.exp(clf.log_joint([[2.0, 1.0]])[0])
    ways = factorial(3) / (factorial(2) * factorial(1))
    np.testing.assert_allclose(joint, [0.5 * ways * 0.25**2 * 0.75, 0.5 * ways * 0.5**3], rtol=1e-14)


def test_pooled_block_of_many_columns_and_few_classes() -> None:
    """Scored in the few directions that tell the classes apart; the density of the others is not lost."""
    rng = np.random.default_rng(8)
    labels = np.arange(300) % 3
    x = rng.normal(size=(300, 9)) @ rng.normal(size=(9, 9)) + 1e3 * labels[:, None]
    clf = textbook(JointGaussian(Pooled())).fit(x, labels)
    means = np.stack([x[labels == c].mean(axis=0) for c in range(3)])
    spread = (x - means[labels]).T @ (x - means[labels]) / 300
    holed = x[:40].copy()
    holed[::2, 4] = np.nan
    expected = np.empty((40, 3))
    for i, row in enumerate(holed):
        there = np.flatnonzero(~np.isnan(row))
        for c in range(3):
            normal = stats.multivariate_normal(means[c, there], spread[np.ix_(there, there)])
            expected[i, c] = normal.logpdf(row[there]) - np.log(3.0)
    np.testing.assert_allclose(clf.log_joint(holed), expected, rtol=1e-7)
    np.testing.assert_allclose(clf.evidence(holed).log_joint, expected, rtol=1e-7)
    for i in range(40):
        np.testing.assert_array_equal(clf.log_joint(holed[i : i + 1])[0], clf.log_joint(holed)[i])
