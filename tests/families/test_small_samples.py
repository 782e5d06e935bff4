"""What families do at their edges."""

import numpy as np
import pytest
from scipy import stats

import deciban as dc
from deciban.families import FAMILIES
from deciban.families.base.contract import BlockFamily, ColumnFamily
from deciban.statistics import Bins
from deciban.statistics.bins import MAX_BINS
from tests import textbook

RNG = np.random.default_rng(2)
X = RNG.gamma(3.0, 2.0, (80, 2)) + 0.1
Y = RNG.integers(0, 2, 80)


# Every family that learns counts, without smoothing; Complement is a score of the other classes.
UNSMOOTHED = [
    kind(alpha=0) if hasattr(kind, "alpha") else kind()
    for kind in FAMILIES
    if kind is not dc.Complement and kind().support.contains(np.ceil(X)).all()
]


def cells(x: np.ndarray) -> Bins:
    return Bins.count(x.reshape(-1, 1), np.zeros(x.size, dtype=np.int32), np.ones(x.size), 1)


def test_shards_of_different_resolution_merge_to_the_counts_of_all_rows() -> None:
    """The shards are finer than the whole, each in its own way; the whole has more values than cells."""
    x = np.concatenate([RNG.normal(0, 1, 3000), RNG.normal(1e4, 1e-3, 300), [1e9, -1e-9, 0.0]])
    whole = cells(x)
    for parts in (np.array_split(x, 7), [x[:5], x[5:2000], x[2000:]], [*x.reshape(-1, 1)[:40], x[40:]]):
        total = cells(parts[0])
        for part in parts[1:]:
            total = total.merge(cells(np.asarray(part)))
        assert total.columns[0].exponent == whole.columns[0].exponent
        np.testing.assert_array_equal(total.columns[0].cells, whole.columns[0].cells)
        np.testing.assert_array_equal(total.columns[0].table, whole.columns[0].table)
    assert 100 < whole.columns[0].cells.size <= MAX_BINS
    assert cells(x[:300]).columns[0].exponent < whole.columns[0].exponent


def test_any_coarser_binning_can_be_estimated() -> None:
    x = RNG.normal(size=500)
    fine = cells(x).columns[0]
    for exponent in (-4, 0, 2):
        coarse = fine.coarsen(exponent)
        found, counts = np.unique(np.floor(x / 2.0**exponent), return_counts=True)
        np.testing.assert_array_equal(coarse.cells, found)
        np.testing.assert_array_equal(coarse.table[0], counts)


@pytest.mark.parametrize(
    "family",
    [*UNSMOOTHED, dc.Gaussian(variance=dc.Pooled()), dc.JointGaussian(dc.Pooled()), dc.Bernoulli(alpha=0, threshold=6)],
    ids=str,
)
def test_a_class_without_rows_takes_the_distribution_of_all_rows(family) -> None:
    table = np.ceil(X)
    declared = textbook(family, classes=[0, 1, 2], prior="uniform").fit(table, Y)
    overall = textbook(family, prior="uniform").fit(table, np.zeros(80, dtype=int))
    found, expected = declared.evidence(table).values[..., 2], overall.evidence(table).values[..., 0]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_the_floor_is_a_share_of_the_columns_own_variance() -> None:
    x = np.array([[0.0], [0.0], [10.0], [30.0]])
    clf = textbook(dc.Gaussian(floor=0.01)).fit(x, [0, 0, 1, 1])
    expected = stats.norm.logpdf(0.3, 0.0, np.sqrt(0.01 * x.var()))
    assert clf.evidence([[0.3]]).values[0, 0, 0] == pytest.approx(expected, rel=1e-12)


def test_a_constant_column_says_nothing() -> None:
    for family in (dc.Gaussian(), dc.LogNormal(), dc.Gamma(), dc.Binned(), dc.JointGaussian()):
        clf = textbook(family).fit(np.full((6, 2), 0.1), [0, 0, 1, 1, 1, 1])
        np.testing.assert_allclose(clf.predict_proba([[0.1, 0.1], [5.0, 7.0]]), [[1 / 3, 2 / 3]] * 2, rtol=1e-12)


def test_a_constant_column_does_not_disturb_its_block() -> None:
    wide = np.column_stack([X, np.full(80, 3.0)])
    for spread in (dc.PerClass(), dc.Pooled()):
        alone = textbook(dc.JointGaussian(spread)).fit(X, Y).predict_proba(X)
        np.testing.assert_allclose(textbook(dc.JointGaussian(spread)).fit(wide, Y).predict_proba(wide), alone)


def test_incomplete_rows_are_left_out_of_a_joint_block() -> None:
    holed = X.copy()
    holed[::5, 0] = np.nan
    complete = ~np.isnan(holed[:, 0])
    ours = textbook(dc.JointGaussian(), prior="uniform").fit(holed, Y)
    same = textbook(dc.JointGaussian(), prior="uniform").fit(holed[complete], Y[complete])
    np.testing.assert_allclose(ours.predict_proba(holed), same.predict_proba(holed), rtol=1e-10)


def test_given_levels_count_even_if_they_never_occur() -> None:
    clf = textbook(dc.Categorical(levels=("a", "b", "c", "d"))).fit([["a"], ["b"]], [0, 1])
    np.testing.assert_allclose(np.exp(clf.evidence([["d"]]).values[0, 0]), [1 / 5, 1 / 5])


def test_levels_follow_what_is_forgotten() -> None:
    clf = textbook(dc.Categorical()).fit([["a"], ["b"], ["c"], ["a"]], [0, 1, 0, 1])
    clf.forget([["c"]], [0])
    assert clf.counts_.statistics[0].levels[0].to_pylist() == ["a", "b"]
    np.testing.assert_allclose(np.exp(clf.evidence([["a"]]).values[0, 0]), [2 / 3, 2 / 4])


def test_fractional_weights_can_be_forgotten() -> None:
    weights = RNG.random(80)
    clf = textbook().fit(X, Y, weights).partial_fit(X + 1, Y + 1, sample_weight=weights)
    clf.forget(X + 1, Y + 1, sample_weight=weights)
    plain = textbook().fit(X, Y, weights)
    assert clf.classes_.tolist() == [0, 1]
    np.testing.assert_allclose(clf.predict_proba(X), plain.predict_proba(X), rtol=1e-9)


@pytest.mark.parametrize(
    ("family", "parameters"),
    [
        (dc.Gaussian(), lambda s: [s.mean(axis=0), s.std(axis=0)]),
        (dc.LogNormal(), lambda s: [np.log(s).mean(axis=0), np.log(s).std(axis=0)]),
        (dc.Gamma(), lambda s: [s.mean(axis=0), np.log(s).mean(axis=0)]),
        (dc.JointGaussian(), lambda s: [s.mean(axis=0), s.std(axis=0), np.corrcoef(s.T)[0, 1:]]),
        (dc.Poisson(), lambda s: [s.mean(axis=0)]),
        (dc.Multinomial(alpha=0), lambda s: [s.mean(axis=0)]),
        (dc.Bernoulli(alpha=0, threshold=6), lambda s: [(s > 0).mean(axis=0)]),
        (dc.Binned(bins=40, alpha=0), lambda s: [s.mean(axis=0), s.std(axis=0)]),
        (dc.Categorical(alpha=0), lambda s: [s.mean(axis=0), s.std(axis=0)]),
        (dc.JointTable(alpha=0), lambda s: [s.mean(axis=0), s.std(axis=0), np.corrcoef(s.T)[0, 1:]]),
    ],
    ids=lambda value: str(value) if isinstance(value, BlockFamily | ColumnFamily) else "moments",
)
def test_samples_have_the_moments_of_the_data(family, parameters) -> None:
    table = np.ceil(X)
    clf = textbook(family).fit(table, np.zeros(80, dtype=int))
    drawn, _ = clf.sample(40_000, random_state=1)
    if not isinstance(drawn, np.ndarray):
        drawn = drawn.to_numpy()
    seen = (table > 6).astype(float) if isinstance(family, dc.Bernoulli) else table
    for found, expected in zip(parameters(drawn.astype(float)), parameters(seen), strict=True):
        np.testing.assert_allclose(found, expected, rtol=0.05, atol=0.05)


def test_what_is_written_is_what_one_would_type() -> None:
    assert str(dc.Gaussian()) == "Gaussian()"
    assert str(dc.Categorical(alpha=0.5, unseen="smooth")) == "Categorical(alpha=0.5, unseen='smooth')"
    assert str(dc.JointGaussian(dc.Pooled(shrinkage="oas"))) == "JointGaussian(covariance=Pooled(shrinkage='oas'))"
    assert dc.Complement() == dc.Complement()
    assert hash(dc.Gaussian(floor=0.1)) != hash(dc.Gaussian())


def test_cuts_go_to_the_columns_they_are_given_for_whatever_the_order_of_the_table() -> None:
    p, q = [0.0, 0.4, 0.6, 1.0] * 5, [-5.0, 5.0, -5.0, 5.0] * 5
    family = {("p", "q"): dc.JointTable(cuts=((0.5,), (0.0,)))}
    one = textbook(family).fit({"p": p, "q": q}, [0, 1] * 10)
    other = textbook(family).fit({"q": q, "p": p}, [0, 1] * 10)
    rows = [{"p": 0.45, "q": 1.0}, {"p": 0.7, "q": -1.0}]
    np.testing.assert_array_equal(one.predict_proba(rows), other.predict_proba(rows))


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_an_event_where_there_never_was_one_is_rare_and_says_nothing(alpha: float) -> None:
    """The rate of a column of nothing but zeros is that of n rows and one event more, in every class."""
    x = np.column_stack([np.zeros(8), [1, 2, 1, 2, 5, 6, 4, 5]])
    y = np.array([0, 0, 0, 0, 0, 1, 1, 1])
    clf, other = textbook(dc.Poisson(alpha=alpha)).fit(x, y), textbook(dc.Poisson(alpha=alpha)).fit(x[:, 1:], y)
    for event in (0.0, 1.0, 3.0):
        found = clf.log_density([[event, 2.0]]) - other.log_density([[2.0]])
        np.testing.assert_allclose(found, stats.poisson.logpmf(event, 1 / 9), rtol=1e-9)
        np.testing.assert_allclose(clf.predict_proba([[event, 2.0]]), other.predict_proba([[2.0]]), rtol=1e-12)


def test_the_only_event_of_a_column_is_left_out_as_if_there_had_been_none() -> None:
    x = np.column_stack([[0.0, 0, 3, 0, 0, 0], [1.0, 2, 1, 5, 6, 4]])
    y = np.array([0, 0, 0, 1, 1, 1])
    found = textbook(dc.Poisson()).fit(x, y).leave_one_out().posterior[2]
    expected = textbook(dc.Poisson()).fit(np.delete(x, 2, axis=0), np.delete(y, 2)).predict_proba(x[2:3])[0]
    np.testing.assert_allclose(found, expected, rtol=1e-9)
