"""Evidence at the edges: infinite, huge and missing cells, floors, smoothing, weights of blocks."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse, stats

import deciban as dc
from deciban.families import Family
from deciban.families.base.contract import LeftOutRows, score_block
from deciban.model.partial_rows import PartialRows
from deciban.sources.open import open_table
from tests import textbook

RNG = np.random.default_rng(11)
X = RNG.normal(size=(60, 2))
Y = np.arange(60) % 2


def test_the_weights_of_blocks_reach_the_kernels() -> None:
    """log joint and evidence agree for any weights, also where a weight of 0 meets a probability of 0."""
    table = pa.table(
        {"c": ["x", "y", "x", "y"], "g": [1.0, 2.0, 4.0, 3.0], "n": [1.0, 0.0, 2.0, 3.0], "m": [1.0, 1.0, 5.0, 2.0]}
    )
    spec = {"c": dc.Categorical(alpha=0), "g": dc.Gaussian(), ("n", "m"): dc.Multinomial()}
    fitted = textbook(spec).fit(table, [0, 1, 0, 1]).model_
    rows = fitted.schema.table_as_learned(open_table(table))
    for weights in ([0.0, 1.0, 0.5], [0.3, 0.0, 2.0], [1.0, 0.7, 0.0]):
        partial = PartialRows.even(np.array([0.1, -0.2]), range(4), 4)
        model = replace(fitted, partial=partial, weights=np.array(weights))
        np.testing.assert_allclose(model.log_joint(rows), model.evidence(rows).log_joint, rtol=1e-12)
        assert not np.isnan(model.log_joint(rows)).any()


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize(
    "family", [dc.Multinomial(), dc.Multinomial(alpha=0), dc.Complement(), dc.Complement(norm=True)], ids=str
)
def test_huge_counts_give_no_nan(family, form) -> None:
    clf = textbook(family).fit(form(np.array([[1.0, 2.0], [2.0, 10.0]])), [0, 1])
    queries = form(np.array([[1.7e308, 1.7e308], [0.0, 1e300], [np.nan, 3.0], [1e200, 0.0]]))
    for found in (clf.predict_proba(queries), clf.log_joint(queries), clf.evidence(queries).values):
        assert not np.isnan(found).any()


def test_infinity_is_refused_whoever_else_is_in_the_batch() -> None:
    for family in (dc.Poisson(), dc.Gamma(), dc.LogNormal(), dc.Binned(), dc.Gaussian(), dc.JointGaussian()):
        clf = textbook(family).fit([[1.0], [2.0], [5.0], [7.0]], [0, 0, 1, 1])
        for rows in ([[np.inf]], [[np.inf], [1.0]]):
            with pytest.raises(dc.DecibanError, match="row 0: found inf"):
                clf.predict_proba(rows)


def test_a_sparse_rows_bits_do_not_depend_on_the_others() -> None:
    table = (RNG.random((20, 30)) < 0.2).astype(float)
    clf = textbook(dc.Bernoulli()).fit(sparse.csr_array(table), np.arange(20) % 2)
    holed = table.copy()
    holed[1, 1] = np.nan
    alone = clf.log_joint(sparse.csr_array(table[:1]))
    np.testing.assert_array_equal(clf.log_joint(sparse.csr_array(holed))[:1], alone)


def test_the_floor_and_ddof_of_a_joint_block() -> None:
    flat = np.column_stack([X[:, 0], X[:, 0], X[:, 1]])  # two copies: one direction has no variance
    for floor in (1e-3, 1e-1):
        clf = textbook(dc.JointGaussian(dc.Pooled(), floor=floor), prior="uniform").fit(flat, Y)
        lowest = np.linalg.eigvalsh(clf.model_.likelihoods[0].covariance[0])[0]
        assert lowest == pytest.approx(floor, rel=1e-6)
    clf = textbook(dc.JointGaussian(dc.PerClass(), ddof=1), prior="uniform").fit(X, Y)
    expected = stats.multivariate_normal.logpdf(X[:3], X[Y == 0].mean(axis=0), np.cov(X[Y == 0].T))
    np.testing.assert_allclose(clf.evidence(X[:3]).values[:, 0, 0], expected, rtol=1e-9)


def test_gamma_of_narrow_columns() -> None:
    for spread in (1e-2, 1e-4, 1e-5):
        narrow = 5.0 * (1.0 + spread * RNG.normal(size=(4000, 1)))
        clf = textbook(dc.Gamma()).fit(narrow, np.zeros(4000, dtype=int))
        shape = clf.model_.likelihoods[0].shape[0, 0]
        assert shape**-0.5 == pytest.approx(narrow.std() / narrow.mean(), rel=2e-3)


def test_poisson_smoothing_and_gamma_floor() -> None:
    counts = np.array([[0.0], [0.0], [4.0], [6.0]])
    rate = textbook(dc.Poisson(alpha=2.0)).fit(counts, [0, 0, 1, 1]).model_.likelihoods[0].rate
    np.testing.assert_allclose(rate, [[(0 + 2 * 2.5) / 4, (10 + 2 * 2.5) / 4]])
    constant = np.array([[2.0], [2.0], [4.0], [9.0]])
    shapes = [
        textbook(dc.Gamma(floor=f)).fit(constant, [0, 0, 1, 1]).model_.likelihoods[0].shape[0, 0] for f in (0.1, 0.01)
    ]
    assert shapes[1] > 5 * shapes[0]


def test_many_missing_patterns() -> None:
    table = RNG.normal(size=(300, 6))
    table[RNG.random(table.shape) < 0.3] = np.nan
    table[0] = np.nan
    clf = textbook(dc.JointGaussian(dc.PerClass(shrinkage=0.2)), prior="uniform").fit(RNG.normal(size=(60, 6)), Y)
    normal = clf.model_.likelihoods[0]
    found = clf.evidence(table).values[:, 0]
    for i in range(300):
        kept = np.flatnonzero(~np.isnan(table[i]))
        for c in range(2):
            mean = (normal.center + normal.mean[c] * normal.unit)[kept]
            matrix = (normal.covariance[c] * np.outer(normal.unit, normal.unit))[np.ix_(kept, kept)]
            expected = stats.multivariate_normal.logpdf(table[i, kept], mean, matrix) if kept.size else 0.0
            assert found[i, c] == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_repeated_levels_count_once() -> None:
    assert dc.Categorical(levels=("x", "x", "z")).levels == ("x", "z")


@pytest.mark.parametrize(
    "family", [dc.Gaussian(), dc.JointGaussian(), dc.Poisson(), dc.Multinomial(), dc.Binned(), dc.Gamma()], ids=str
)
def test_infinite_float32_cells_are_refused(family) -> None:
    table = np.array([[1], [np.inf], [2], [3], [5], [4]], dtype=np.float32)
    with pytest.raises(dc.DecibanError, match="column 'x0', row 1"):
        textbook(family).fit(table, [0, 0, 0, 1, 1, 1])


def test_more_possible_tuples_than_numbers() -> None:
    base = np.random.default_rng(1).integers(0, 2, (1, 65))
    x = np.repeat(base, 4, 0)
    x[2:, 0] = 1 - base[0, 0]
    x = np.vstack([x, 1 - base, 1 - base])
    table = {f"c{j}": x[:, j] for j in range(65)}
    values = textbook({tuple(table): dc.JointTable()}).fit(table, [0, 0, 1, 1, 0, 1]).evidence(table).values[:, 0]
    assert values[0, 0] > values[0, 1]
    assert values[2, 0] < values[2, 1]
    assert values[4, 0] == values[4, 1]


def test_infinity_beside_a_constant_column_is_refused() -> None:
    clf = textbook(dc.JointGaussian()).fit(np.c_[X[:, 0], np.ones(60)], Y)
    with pytest.raises(dc.DecibanError, match="found inf"):
        clf.predict_proba([[1.0, np.inf]])


def test_weights_below_ddof_do_not_make_a_variance_explode() -> None:
    light = textbook(dc.JointGaussian(dc.Pooled(), ddof=1)).fit(X, Y, np.full(60, 0.001))
    assert np.abs(light.log_joint(X)).max() < 1e12


@pytest.mark.parametrize("family", [dc.Gamma(), dc.Poisson(alpha=1.0, outside="ignore")])
@pytest.mark.parametrize("digits", [0, 6])  # many equal cells, or none
def test_left_out_evidence_of_equal_cells_is_that_of_the_other_rows(family: Family, digits: int) -> None:
    rng = np.random.default_rng(digits)
    labels = rng.integers(0, 3, 120).astype(np.int32)
    cells = np.maximum(rng.gamma(3.0 + labels, 2.0).round(digits), 1.0)[:, None]
    cells[:3, 0] = 400.0, np.nan, 0.01  # an outlier moves the shape far
    weights, slot, found = np.ones(120), np.zeros(1, dtype=np.int64), np.zeros((120, 1, 3))
    statistic = family.count(cells, labels, weights, 3)
    family.score_left_out(statistic, cells, LeftOutRows(labels, weights), slot, found)
    for i in range(120):
        others = np.arange(120) != i
        likelihood = family.estimate(family.count(cells[others], labels[others], weights[others], 3))
        np.testing.assert_allclose(found[i, 0], score_block(likelihood, cells[i : i + 1], 3)[0], rtol=1e-9, atol=1e-9)
