"""Intervals of posteriors: how often they hold the truth, over many samples of one and the same world."""

import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats
from scipy.special import expit, logit, logsumexp

import deciban as dc
from deciban.families.base.contract import Covariance
from deciban.families.base.spread import estimate_spread_errors
from deciban.model.intervals import LogOdds
from deciban.model.priors import log_prior, prior_variance
from deciban.util.parallel import one_blas_thread
from tests import textbook

Rng = np.random.Generator
Bins = np.ndarray | list[pa.Array]


@dataclass(frozen=True)
class World:
    """Classes of known distribution: how rows of given classes are drawn, and log P(point | class) of some points.

    The classes of the rows are drawn too where the prior is counted.
    """

    name: str
    family: Any
    draw: Callable[[Rng, np.ndarray], Bins]
    points: Bins
    truth: np.ndarray
    rows: int = 400
    prior: Any = "uniform"
    shares: tuple[float, ...] = (0.5, 0.5)


def _numbers(*cells: Any) -> np.ndarray:
    return np.array(cells, dtype=np.float64).reshape(len(cells), -1)


def _normal_world(
    name: str, family: Any, deviations: Any = (1.0, 1.0), at: Any = (-3.0, 0.3), logs: bool = False, **given: Any
) -> World:
    means, deviations = np.arange(len(deviations), dtype=np.float64), np.array(deviations)
    points = _numbers(*at)
    truth = np.nan_to_num(stats.norm.logpdf(points, means, deviations))

    def draw(rng: Rng, labels: np.ndarray) -> np.ndarray:
        drawn = rng.normal(means[labels], deviations[labels])[:, None]
        return np.exp(drawn) if logs else drawn

    return World(name, family, draw, np.exp(points) if logs else points, truth, **given)


def _level_world(name: str, family: Any, chances: Any, as_cells: Callable[[np.ndarray], Bins], **given: Any) -> World:
    """One column of a few levels; the points are all of them."""
    chances = np.array(chances)

    def draw(rng: Rng, labels: np.ndarray) -> Bins:
        return as_cells((rng.random(labels.size)[:, None] > chances[labels].cumsum(axis=1)).sum(axis=1))

    return World(name, family, draw, as_cells(np.arange(chances.shape[1])), np.log(chances.T), **given)


def _joint_world(name: str, family: Any, roots: Any, **given: Any) -> World:
    means = np.array([[0.0, 0.0, 0.0], [1.0, 0.5, 0.0]])
    roots = np.array(roots)
    points = _numbers([0, 0, 0], [1, 2, -1], [-1.5, 0.5, 1])
    laws = [stats.multivariate_normal(m, r.T @ r) for m, r in zip(means, roots, strict=True)]

    def draw(rng: Rng, labels: np.ndarray) -> np.ndarray:
        noise = rng.normal(size=(labels.size, 3))
        return means[labels] + np.einsum("nk,nkj->nj", noise, roots[labels])

    return World(name, family, draw, points, np.stack([law.logpdf(points) for law in laws], axis=1), **given)


def _words_world(name: str, family: Any, **given: Any) -> World:
    rates = np.array([[3.0, 2.0, 1.0], [1.0, 2.0, 3.0]])
    points = _numbers([1, 0, 2], [4, 1, 0])
    shares = rates / rates.sum(axis=1, keepdims=True)

    def draw(rng: Rng, labels: np.ndarray) -> np.ndarray:
        return rng.poisson(rates[labels]).astype(np.float64)

    return World(name, family, draw, points, points @ np.log(shares).T, **given)


def _columns(codes: np.ndarray) -> list[pa.Array]:
    return [pa.array(codes // 2), pa.array(codes % 2)]


ROOT = [[1.0, 0.5, 0.0], [0.0, 1.0, 0.3], [0.0, 0.0, 1.0]]
OTHER = [[0.7, -0.2, 0.0], [0.0, 1.5, 0.0], [0.0, 0.0, 1.2]]
GAMMA = stats.gamma([2.0, 3.0], scale=[1.0, 1.5])
UNEVEN = (0.5, 0.3, 0.2)

WORLDS = [
    _normal_world("gaussian", dc.Gaussian(), (1.0, 2.0), (0.3, 2.5, -2.0)),
    _normal_world("gaussian-small", dc.Gaussian(), (1.0, 2.0), (0.3, 2.5), rows=100),
    _normal_world("gaussian-counts", dc.Gaussian(), (1.0, 2.0), (0.3, 2.5), prior="empirical", shares=(0.7, 0.3)),
    _normal_world("three", dc.Gaussian(), (1.0, 2.0, 1.5), (0.3, 2.5), rows=600, prior="empirical", shares=UNEVEN),
    _normal_world("pooled", dc.Gaussian(dc.Pooled()), (1.0, 1.0), (-3.0, 0.3, 4.0)),
    _normal_world("pooled-three", dc.Gaussian(dc.Pooled()), (1.0, 1.0, 1.0), (-3.0, 1.2), rows=600),
    _normal_world("pooled-counted-prior", dc.Gaussian(dc.Pooled()), prior="empirical", shares=(0.8, 0.2)),
    _normal_world("shrunk", dc.Gaussian(dc.Shrunk(0.4)), at=(-3.0, 0.3, 4.0)),
    _normal_world("log-normal", dc.LogNormal(dc.Pooled()), logs=True),
    World(
        "gamma",
        dc.Gamma(),
        lambda rng, labels: rng.gamma(2.0 + labels, 1.0 + 0.5 * labels)[:, None],
        _numbers(0.5, 1.0, 8.0),
        GAMMA.logpdf(_numbers(0.5, 1.0, 8.0)),
    ),
    World(
        "poisson",
        dc.Poisson(),
        lambda rng, labels: rng.poisson(2.0 + 2.0 * labels)[:, None].astype(np.float64),
        _numbers(0.0, 1.0, 6.0),
        stats.poisson([2.0, 4.0]).logpmf(_numbers(0.0, 1.0, 6.0)),
    ),
    _level_world("bernoulli", dc.Bernoulli(), [[0.8, 0.2], [0.5, 0.5]], lambda codes: codes[:, None].astype(float)),
    _level_world("categorical", dc.Categorical(), [[0.3, 0.3, 0.4], [0.2, 0.6, 0.2]], lambda codes: [pa.array(codes)]),
    _level_world(
        "categorical-three",
        dc.Categorical(),
        [[0.3, 0.3, 0.4], [0.2, 0.6, 0.2], [0.5, 0.2, 0.3]],
        lambda codes: [pa.array(codes)],
        rows=900, prior="smoothed", shares=UNEVEN,
    ),
    _words_world("multinomial", dc.Multinomial()),
    _joint_world("joint", dc.JointGaussian(), [ROOT, OTHER]),
    _joint_world("joint-pooled", dc.JointGaussian(dc.Pooled()), [ROOT, ROOT]),
]  # fmt: skip

SAMPLES = 1000


def _truth(world: World) -> np.ndarray:
    """The log-odds of every class at every point."""
    shares = np.full(world.truth.shape[1], 1.0) if world.prior == "uniform" else np.array(world.shares)
    joint = np.log(shares) + world.truth
    return np.stack([joint[:, c] - logsumexp(np.delete(joint, c, axis=1), axis=1) for c in range(shares.size)], axis=1)


def _learned(world: World, rng: Rng) -> tuple[np.ndarray, np.ndarray]:
    """The log-odds at the points by a sample of the world, and the deviation that is claimed for them."""
    classes, one = world.truth.shape[1], np.ones(1)
    if world.prior == "uniform":
        labels = np.arange(world.rows) % classes
    else:
        labels = rng.choice(classes, world.rows, p=world.shares)
    weight = np.bincount(labels, minlength=classes).astype(np.float64)
    cells = world.draw(rng, labels)
    statistic = world.family.count(cells, labels.astype(np.int32), np.ones(world.rows), classes)
    joint = np.zeros((len(world.truth), 1, classes))
    joint[:] = log_prior(world.prior, np.arange(classes), weight)
    whole = world.family.estimate(statistic)
    whole.score(world.points, one, np.zeros(1, dtype=np.int64), joint)
    odds = LogOdds.of(joint[:, 0])
    covariance = odds.no_errors()
    covariance.own[:] += prior_variance(world.prior, weight)
    world.family.add_covariance(whole, statistic, world.points, one, covariance)
    return odds.value, np.sqrt(odds.variance(covariance))


def _errors(world: World, samples: int) -> tuple[np.ndarray, np.ndarray]:
    """The errors of the log-odds in each sample, and the deviations that were claimed for them."""
    rng = np.random.default_rng(6)
    with one_blas_thread():
        odds, claimed = zip(*(_learned(world, rng) for _ in range(samples)), strict=True)
    return np.array(odds) - _truth(world), np.array(claimed)


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.name)
def test_intervals_hold_the_truth_as_often_as_they_say(world: World) -> None:
    errors, claimed = _errors(world, SAMPLES)
    held = (np.abs(errors) <= stats.norm.ppf(0.975) * claimed).mean(axis=0)
    assert (held >= 0.93).all(), held
    assert (held <= 0.97).all(), held


SCORES = [
    _words_world("complement", dc.Complement()),
    _level_world("joint-table", dc.JointTable(), [[0.3, 0.3, 0.2, 0.2], [0.1, 0.4, 0.2, 0.3]], _columns),
    _joint_world("joint-shrunk", dc.JointGaussian(dc.Shrunk(0.5)), [ROOT, ROOT], prior="empirical", shares=(0.3, 0.7)),
    _normal_world("binned", dc.Binned(bins=4), at=(0.1, 0.6)),
    World(
        "complement-three",
        dc.Complement(),
        lambda rng, labels: rng.poisson(np.array([[3.0, 2, 1], [1, 2, 3], [2, 2, 2]])[labels]).astype(np.float64),
        _numbers([1, 0, 2], [4, 1, 0]),
        np.zeros((2, 3)),
        rows=600,
    ),
    *(
        World(
            f"text-{kind}",
            dc.Text(kind=kind),
            lambda rng, labels: [
                pa.array(["aa " * a + "bb " * b + "cc " * c for a, b, c in _word_counts(rng, labels)])
            ],
            [pa.array(["aa cc cc", "aa aa aa bb"])],
            np.zeros((2, 2)),
        )
        for kind in ("multinomial", "bernoulli", "complement")
    ),
]


def _word_counts(rng: Rng, labels: np.ndarray) -> Any:
    return rng.poisson(np.array([[1.5, 1.0, 0.5], [0.5, 1.0, 1.5]])[labels]).tolist()


@pytest.mark.parametrize("world", SCORES, ids=lambda world: world.name)
def test_what_is_claimed_is_the_spread_over_samples(world: World) -> None:
    """Also where there is no true posterior to hold: scores, and densities by bins."""
    errors, claimed = _errors(world, 250)
    np.testing.assert_allclose(np.median(claimed, axis=0), errors.std(axis=0), rtol=0.15)


def test_texts_of_length_one_claim_no_less_than_their_spread_and_not_twice_as_much() -> None:
    world = next(world for world in SCORES if world.name == "text-multinomial")
    errors, claimed = _errors(replace(world, family=dc.Text(normalize=True)), 150)
    ratio = np.median(claimed, axis=0) / errors.std(axis=0)
    assert (ratio > 0.9).all(), ratio
    assert (ratio < 2.0).all(), ratio


def test_the_intervals_of_a_classifier_are_those_of_its_parts() -> None:
    """Each column adds its errors, weighed, to those of the prior; two columns more than one."""
    rng = np.random.default_rng(4)
    labels = rng.choice(2, 300, p=[0.7, 0.3])
    first, second = rng.normal(labels, 1.0), rng.poisson(1.0 + labels)
    table, points = pa.table({"a": first, "b": second}), pa.table({"a": [-1.0, 2.5], "b": [0, 3]})
    clf = textbook({"a": dc.Gaussian(dc.Pooled()), "b": dc.Poisson()}).fit(table, labels)
    counts = np.bincount(labels).astype(np.float64)
    odds = LogOdds.of(clf.log_joint(points))
    covariance = odds.no_errors()
    covariance.own[:] += 1.0 / counts
    for family, cells, at in (
        (dc.Gaussian(dc.Pooled()), first, [-1.0, 2.5]),
        (dc.Poisson(), second.astype(float), [0.0, 3.0]),
    ):
        statistic = family.count(cells[:, None], labels.astype(np.int32), np.ones(300), 2)
        family.add_covariance(family.estimate(statistic), statistic, _numbers(*at), np.ones(1), covariance)
    low, high = clf.predict_interval(points, level=0.9)
    width = stats.norm.ppf(0.95) * np.sqrt(odds.variance(covariance))
    np.testing.assert_allclose(low, expit(odds.value - width), rtol=1e-9)
    np.testing.assert_allclose(high, expit(odds.value + width), rtol=1e-9)


def test_a_missing_row_has_the_interval_of_the_prior() -> None:
    """Of 400 rows in two equal classes the log-odds are known to sqrt(1/200 + 1/200)."""
    x, y = np.random.default_rng(0).normal(size=(400, 1)), np.arange(400) % 2
    low, high = textbook(dc.Gaussian()).fit(x, y).predict_interval([[np.nan]])
    expected = expit([-1.959964 * 0.1, 1.959964 * 0.1])
    np.testing.assert_allclose([low[0], high[0]], [expected[:1].repeat(2), expected[1:].repeat(2)], rtol=1e-6)


@pytest.mark.parametrize("prior", ["uniform", [0.3, 0.7], {0: 0.3, 1: 0.7}])
def test_a_prior_that_is_given_has_no_error(prior: Any) -> None:
    x, y = np.random.default_rng(0).normal(size=(40, 1)), np.arange(40) % 2
    clf = textbook(dc.Gaussian(), prior=prior).fit(x, y)
    low, high = clf.predict_interval([[np.nan]])
    np.testing.assert_allclose(low, clf.predict_proba([[np.nan]]), rtol=1e-12)
    np.testing.assert_allclose(high, low, rtol=1e-12)


def test_an_error_that_all_classes_share_is_one_error() -> None:
    """x = -3 between N(0, 1) and N(1, 1): the log-odds are (x - 1/2) / v, so a pooled v of 400 rows is worth 3.5
    sqrt(2 / 400); each mean (x - mean) / sqrt(200)."""
    rng = np.random.default_rng(2)
    y = np.arange(400) % 2
    x = np.concatenate([rng.normal(size=(200, 2))])
    x = ((x - x.mean(axis=0)) / x.std(axis=0) + [0.0, 1.0]).ravel()[:, None]  # moments as they are in truth
    clf = textbook(dc.Gaussian(dc.Pooled()), prior="uniform").fit(x, y)
    low, high = clf.predict_interval([[-3.0]])
    deviation = (logit(high) - logit(low)) / (2.0 * 1.959964)
    assert deviation[0, 0] == pytest.approx(np.sqrt(3.5**2 * 2 / 400 + 9 / 200 + 16 / 200), rel=1e-6)


def test_a_missing_member_of_a_block_is_left_out() -> None:
    rng = np.random.default_rng(5)
    x = rng.normal(size=(200, 3)) @ np.array(ROOT)
    y = np.arange(200) % 2
    block = textbook(dc.JointGaussian(dc.Pooled())).fit(x, y).predict_interval([[0.5, np.nan, -1.0]])
    pair = textbook(dc.JointGaussian(dc.Pooled())).fit(x[:, [0, 2]], y).predict_interval([[0.5, -1.0]])
    np.testing.assert_allclose(block, pair, rtol=1e-9)


def test_rows_in_pieces_have_the_same_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.random.default_rng(0).normal(size=(50, 2))
    clf = textbook(dc.Gaussian()).fit(x, np.arange(50) % 3)
    whole = clf.predict_interval(x)
    monkeypatch.setattr("deciban.model.intervals.INTERVAL_NUMBERS", 70)
    np.testing.assert_array_equal(clf.predict_interval(x), whole)


def test_certain_and_impossible_rows_have_intervals_too() -> None:
    x = np.array([[0.0], [1.0], [1000.0], [1001.0]])
    low, high = textbook(dc.Gaussian()).fit(x, list("aabb")).predict_interval([[0.5], [1e130], [-1e130]])
    assert np.isfinite([low, high]).all()
    clf = textbook(dc.Bernoulli(alpha=0.0)).fit([[0], [0], [0]], list("aab"))
    low, high = clf.predict_interval([[1]])  # no class can have this row: the prior stands for the posterior
    assert (low[0] < [2 / 3, 1 / 3]).all()
    assert (high[0] > [2 / 3, 1 / 3]).all()
    one = textbook(dc.Gaussian()).fit(x, ["a"] * 4).predict_interval(x)
    np.testing.assert_array_equal(one, np.ones((2, 4, 1)))


FAMILIES_OF_COUNTS = dc.Poisson, dc.Multinomial, dc.Complement, dc.Bernoulli, dc.Categorical, dc.JointTable

FAR = [
    dc.Gaussian(), dc.Gaussian(dc.Pooled()), dc.Gaussian(dc.Shrunk(0.3)), dc.JointGaussian(),
    dc.JointGaussian(dc.Pooled()), dc.JointGaussian(dc.Shrunk(0.3)), dc.LogNormal(), dc.LogNormal(dc.Pooled()),
    dc.Gamma(), dc.Poisson(), dc.Binned(), dc.Multinomial(), dc.Complement(), dc.Complement(norm=True),
    dc.Bernoulli(), dc.Categorical(unseen="smooth"), dc.JointTable(unseen="smooth"),
]  # fmt: skip

SCALES = 10.0 ** np.array([-300, -160, -20, 0, 4, 8, 10, 20, 24, 26, 40, 60, 76, 78, 100, 150, 154, 160, 200, 300])


@pytest.mark.parametrize("prior", ["empirical", [0.6, 0.4, 0.0]], ids=str)
@pytest.mark.parametrize("family", FAR, ids=str)
def test_an_interval_holds_the_posterior_at_every_scale(family: Any, prior: Any) -> None:
    rng = np.random.default_rng(0)
    x = 1.0 + rng.poisson(2.0, size=(90, 3)) if isinstance(family, FAMILIES_OF_COUNTS) else rng.gamma(2.0, size=(90, 3))
    x = np.minimum(x - 1.0, 1.0) if isinstance(family, dc.Bernoulli) else x
    clf = textbook(family, prior=prior).fit(x, np.arange(90) % 3)
    points = np.concatenate([SCALES[:, None] * [1.0, 1.0, 1.0], SCALES[:, None] * [1.0, 0.0, 2.0] + [0.0, 1.0, 0.0]])
    if isinstance(family, FAMILIES_OF_COUNTS):
        points = np.ceil(points)
    if isinstance(family, dc.Bernoulli):
        points = np.minimum(points, 1.0)
    low, high = clf.predict_interval(points)
    posterior = clf.predict_proba(points)
    assert (low >= 0.0).all()
    assert (low <= posterior).all()
    assert (posterior <= high).all()
    assert (high <= 1.0).all()


@pytest.mark.parametrize("family", FAR[:6], ids=str)
def test_what_is_not_known_far_away_is_not_known_farther_away(family: Any) -> None:
    """Three classes of one and the same distribution: which of them has the widest tails is not known."""
    x = np.random.default_rng(0).normal(size=(300, 3))
    far = SCALES[SCALES >= 1e20][:, None] * np.ones(3)
    low, high = textbook(family).fit(x, np.arange(300) % 3).predict_interval(far)
    np.testing.assert_array_equal(low, 0.0)
    np.testing.assert_array_equal(high, 1.0)


def test_what_is_known_far_away_is_still_known_farther_away() -> None:
    """Far out the wider of two bells has it, as long as numbers can say so."""
    x = np.random.default_rng(0).normal(size=(2000, 1)) * (1.0 + 9.0 * (np.arange(2000) % 2))[:, None]
    low, high = textbook(dc.Gaussian()).fit(x, np.arange(2000) % 2).predict_interval([[1e3], [1e24], [1e60], [1e70]])
    np.testing.assert_array_equal(low, [[0.0, 1.0]] * 4)
    np.testing.assert_array_equal(high, [[0.0, 1.0]] * 4)


def test_classes_share_the_errors_of_the_words_of_all_other_classes() -> None:
    """By definition: the count n of a word in a class has the variance n, and changes the scores of all others."""
    rng = np.random.default_rng(3)
    counts, cells, classes = rng.integers(1, 9, (4, 5)).astype(np.float64), np.array([[2.0, 0, 3, 1, 0]]), range(4)
    alpha = 1e-3  # which counts as a word of every class, but is not among those of two
    others = counts.sum(axis=0) - counts + alpha
    change = cells / others - cells.sum() / others.sum(axis=1, keepdims=True)
    expected = [[sum((counts[k] * change[a] * change[b]).sum() for k in classes if k not in (a, b)) for b in classes]
                for a in classes] + np.diag(alpha * (change**2).sum(axis=1))  # fmt: skip
    family, found = dc.Complement(alpha=alpha), []
    statistic = family.count(counts, np.arange(4, dtype=np.int32), np.ones(4), 4)
    for direction in np.eye(4):
        out = Covariance.zeros_along(direction[None])
        family.add_covariance(family.estimate(statistic), statistic, cells, np.ones(1), out)
        found.append(out.multiply(0)[0])
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("spread", [dc.PerClass(), dc.Pooled(), dc.Shrunk(0.3)], ids=str)
def test_variances_share_the_errors_of_those_they_are_made_of(spread: Any) -> None:
    rows, variance = np.array([10.0, 30.0, 60.0]), np.array([1.0, 2.0, 5.0])
    share = spread.share_pooled
    by_own = ((1.0 - share) * np.eye(3) + share * rows / rows.sum()) * variance / variance[:, None]
    expected = [[(a * b / (2.0 * rows)).sum() for b in by_own] for a in by_own]
    np.testing.assert_allclose(estimate_spread_errors(spread, rows, variance), expected, rtol=1e-12)


@pytest.mark.parametrize(
    "family", [dc.Gaussian(), dc.Gaussian(dc.Pooled()), dc.JointGaussian(), dc.Poisson(), dc.Categorical()], ids=str
)
def test_intervals_take_the_estimates_that_are_there(family: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """And no matrices class by class for every row: of 200 rows and 150 classes they would take 36 MB."""
    x, y = np.random.default_rng(0).poisson(3.0, size=(1500, 2)), np.arange(1500) % 150
    clf = textbook(family).fit(x, y)
    clf.predict_interval(x[:1])  # estimates are made when they are first needed
    monkeypatch.delattr(type(family), "estimate")
    tracemalloc.start()
    clf.predict_interval(x[:200])
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 12e6


@pytest.mark.parametrize("tune", [None, "auto"])
def test_intervals_hold_the_posterior_and_widen_where_data_are_few(tune: Any) -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=(2000, 2)) + (np.arange(2000) % 2)[:, None]
    y = np.arange(2000) % 2
    many, few = (dc.BayesClassifier(tune=tune).fit(x[:n], y[:n]) for n in (2000, 60))
    for clf in (many, few):
        low, high = clf.predict_interval(x[:50])
        posterior = clf.predict_proba(x[:50])
        assert (low <= posterior).all()
        assert (posterior <= high).all()
    narrow, wide = (np.subtract(*clf.predict_interval(x[:50])[::-1]).mean() for clf in (many, few))
    assert wide > 3.0 * narrow
    with pytest.raises(ValueError, match="level"):
        many.predict_interval(x, level=95)
