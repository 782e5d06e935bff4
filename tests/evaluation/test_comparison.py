"""Drift: equal counts do not differ, planted drift is found, and false alarms are as rare as stated."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.stats import binom, chi2_contingency, hmean, norm, ttest_ind

from deciban import BayesClassifier, Binned, Categorical, DataError, Loss, Poisson, SchemaError, UsageError, load
from deciban.evaluation.comparison import _diverge_normals, _test_cells
from deciban.results import Comparison

LEVEL = 0.01


def draw(random: np.random.Generator, rows: int, positive: float = 0.5) -> pd.DataFrame:
    """A table of all kinds of columns, with missing cells."""
    label = random.random(rows) < positive
    table = pd.DataFrame(
        {
            "number": random.normal(label, 1.0),
            "bins": random.gamma(2.0, 1.0 + label),
            "color": random.choice(["red", "green", "blue", "rare"], rows, p=[0.5, 0.3, 0.195, 0.005]),
            "flag": random.random(rows) < 0.2 + 0.3 * label,
            "text": [" ".join(words) for words in random.choice(["good", "bad", "ugly", "fair"], (rows, 4))],
            "kind": np.where(label, "yes", "no"),
        }
    )
    table.loc[random.random(rows) < 0.05, "number"] = np.nan
    return table


def fitted(table: pd.DataFrame, **settings: object) -> BayesClassifier:
    return BayesClassifier(tune=None, families={"bins": Binned()}, **settings).fit(table, "kind")


@pytest.fixture(scope="module")
def clf() -> BayesClassifier:
    return fitted(draw(np.random.default_rng(1), 1500))


def drifted(found: Comparison) -> list[str]:
    return [name for name, flag in zip(found.columns, found.drifted, strict=True) if flag]


def assert_same(one: Comparison, other: Comparison) -> None:
    assert one.columns == other.columns
    for name in ("divergence", "chance", "p_value", "missing"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-6, atol=1e-12)


def test_counts_do_not_differ_from_themselves(clf: BayesClassifier) -> None:
    for same in (clf, clf.counts_):
        found = clf.compare(same)
        np.testing.assert_allclose(found.divergence, 0.0, atol=1e-12)
        np.testing.assert_array_equal(found.p_value, 1.0)
        assert not found.drifted.any()
        assert found.shares_p_value == 1.0
        assert set(found.change) == {"no change"}
        assert found.accuracy is None
        assert str(found).startswith("1,500 rows, compared with 1,500 rows learned: drift in 0 of 5 columns (level 1%)")


def test_rows_are_compared_as_their_counts_are(clf: BayesClassifier, tmp_path: Path) -> None:
    new = draw(np.random.default_rng(2), 300, positive=0.7)
    by_rows, by_counts = clf.compare(new), clf.compare(clf.shard(new, "kind"))
    assert_same(by_rows, by_counts)
    assert by_rows.labeled
    np.testing.assert_allclose(by_rows.shares, by_counts.shares)
    assert by_rows.shares_p_value < 1e-6
    new.to_csv(tmp_path / "new.csv", index=False)
    clf.save(tmp_path / "model.dcb")
    assert_same(load(tmp_path / "model.dcb").compare(tmp_path / "new.csv"), by_rows)
    swapped = clf.shard(new, "kind").compare(clf)
    np.testing.assert_allclose(swapped.divergence, by_rows.divergence)
    np.testing.assert_allclose(swapped.p_value, by_rows.p_value, rtol=1e-6)


def test_a_class_that_was_not_learned_is_a_change(clf: BayesClassifier) -> None:
    new = draw(np.random.default_rng(2), 300)
    new["kind"] = new["kind"].mask(np.arange(300) < 30, "undecided")
    found = clf.compare(new)
    assert found.classes.tolist() == ["no", "yes", "undecided"]
    assert found.shares[2] == pytest.approx(0.1)
    assert found.shares_p_value < 1e-6
    assert found.accuracy == pytest.approx(found.adjusted_accuracy)  # nothing is known about rows of such a class


def test_false_alarms_are_as_rare_as_stated() -> None:
    random = np.random.default_rng(3)
    plan = fitted(draw(random, 500))
    runs, level = 100, 0.1
    alarms = 0
    for _ in range(runs):
        old, new = (plan.shard(draw(random, rows), "kind") for rows in (400, 150))
        found = old.compare(new, level=level)
        alarms += bool(found.drifted.any() or found.shares_p_value <= level)
    assert alarms <= binom.ppf(0.999, runs, level)
    assert alarms > 0


@pytest.mark.parametrize("column", ["number", "bins", "color", "flag", "text"])
def test_planted_drift_is_found_in_its_column_only(clf: BayesClassifier, column: str) -> None:
    new = draw(np.random.default_rng(4), 500)
    assert drifted(clf.compare(new)) == []
    some = np.random.default_rng(5).random(500) < 0.3
    new[column] = {
        "number": new["number"] + 0.5,
        "bins": new["bins"] * 1.4,
        "color": new["color"].mask(some, "green"),
        "flag": new["flag"] | some,
        "text": new["text"].mask(some, "ugly ugly ugly ugly"),
    }[column]
    assert drifted(clf.compare(new)) == [column]


def test_new_values_and_missing_cells_are_found(clf: BayesClassifier) -> None:
    new = draw(np.random.default_rng(6), 500)
    few = np.arange(500) % 50 == 0
    found = clf.compare(new.assign(color=new["color"].mask(few, "purple"), bins=new["bins"].mask(few)))
    assert drifted(found) == ["bins", "color"]
    place = found.columns.index
    assert found.unseen[place("color")] == 10.0
    assert found.missing[place("bins")] == pytest.approx(0.02)
    assert found.change[place("bins")] == "missing: 0.0% → 2.0%"
    assert found.change[place("color")] == "purple: 0.0% → 2.0%"
    many = pd.DataFrame({"name": [f"n{i // 2}" for i in range(2000)], "kind": ["a", "b"] * 1000})
    names = BayesClassifier(tune=None, families={"name": Categorical()}).fit(many, "kind")
    fresh = names.shard(many.assign(name="m" + many["name"])[:200], "kind")
    assert names.compare(fresh).drifted.all()
    assert not names.compare(names.shard(many[::10], "kind")).drifted.any()


def test_class_shares_and_accuracy_are_estimated_without_labels() -> None:
    random = np.random.default_rng(7)
    clf = BayesClassifier().fit(draw(random, 1500), "kind")
    new = draw(random, 2000, positive=0.8)
    rows, y = new.drop(columns="kind"), new["kind"]
    found = clf.compare(rows, Loss.from_costs([[0, 1], [5, 0]]))
    assert not found.labeled
    assert found.shares_p_value < 1e-6
    np.testing.assert_allclose(found.shares, [0.2, 0.8], atol=0.04)
    assert found.accuracy == pytest.approx(clf.score(rows, y), abs=0.03)
    adjusted = clf.with_prior(dict(zip(found.classes, found.shares, strict=True)))
    assert found.adjusted_accuracy == pytest.approx(adjusted.score(rows, y), abs=0.03)
    assert found.adjusted_cost == pytest.approx(adjusted.risk(rows, [[0, 1], [5, 0]]).min(axis=1).mean())
    assert found.cost >= found.adjusted_cost
    np.testing.assert_allclose(found.shares, clf.estimate_prior(rows).prior)
    assert found.outliers == (clf.outliers(rows) <= 0.001).mean()
    assert "expected cost per row" in str(found)
    assert found.to_dict()["columns"][0]["column"] == "number"
    assert found.to_frame("pandas")["drifted"].tolist() == found.drifted.tolist()


def test_outliers_are_rows_of_low_density_whatever_is_missing() -> None:
    random = np.random.default_rng(8)
    X, y = random.normal(size=(1000, 2)), random.integers(0, 2, 1000)
    clf = BayesClassifier(tune=None).fit(X, y)
    scores = clf.outliers([[0, 0], [4, 0], [4, np.nan], [np.nan, 0], [np.nan, np.nan]])
    assert (scores <= 0.001).tolist() == [False, True, True, False, False]
    fresh = clf.outliers(random.normal(size=(2000, 2)))
    assert abs(np.mean(fresh <= 0.5) - 0.5) < 0.05


def test_statistics_agree_with_scipy() -> None:
    cells = np.array([[300.0, 200.0, 100.0], [50.0, 60.0, 30.0]])
    divergence, chance, p = _test_cells(cells)
    overall = chi2_contingency(cells, correction=False, lambda_="log-likelihood").pvalue
    pairs = [(x, binom(int(n), 140 / 740)) for x, n in zip(cells[1], cells.sum(axis=0), strict=True)]
    single = min(2.0 * min(one.cdf(x), one.sf(x - 1)) for x, one in pairs)
    assert p == pytest.approx(hmean([overall, 3.0 * single]), rel=1e-9)
    a, b = cells / cells.sum(axis=1, keepdims=True)
    m = (a + b) / 2
    assert divergence == pytest.approx(0.5 * np.sum(a * np.log(a / m) + b * np.log(b / m)))
    assert chance == pytest.approx((1 / 600 + 1 / 140) * 2 / 8)
    random = np.random.default_rng(3)
    old, new = random.exponential(1.0, (60, 1)), random.exponential(2.5, (15, 1))
    clf = BayesClassifier(tune=None).fit(old, np.arange(60) % 2)
    found = clf.compare(clf.shard(new, np.arange(15) % 2).counts_).p_value[0]
    assert found == pytest.approx(2.0 * ttest_ind(old[:, 0], new[:, 0]).pvalue)  # corrected for the class shares
    for distance in (0.1, 1.0, 3.0):
        both = [norm(0.0, 1.0), norm(distance, 1.0)]
        log_mean = lambda x: np.logaddexp(*(one.logpdf(x) for one in both)) - np.log(2.0)  # noqa: B023, E731
        exact = quad(lambda x: both[0].pdf(x) * (both[0].logpdf(x) - log_mean(x)), -10.0, 10.0)[0]  # noqa: B023
        assert _diverge_normals(distance) == pytest.approx(exact, rel=1e-6)


@pytest.mark.filterwarnings("ignore:the posteriors come from plain Bayes")
def test_what_the_counts_do_not_hold_is_not_tested() -> None:
    random = np.random.default_rng(9)
    X, y = random.poisson(3.0, (400, 1)), random.integers(0, 2, 400)
    clf = BayesClassifier(tune=None, families=Poisson()).fit(X, y)
    found = clf.compare(X + 5)
    assert np.isnan(found.p_value[0])
    assert not found.drifted[0]
    assert found.to_dict()["columns"][0]["p_value"] is None
    assert "the variance is not counted" in found.change[0]


def test_errors_name_the_cause(clf: BayesClassifier) -> None:
    table = draw(np.random.default_rng(1), 50)
    with pytest.raises(SchemaError, match="no column in common"):
        clf.compare(BayesClassifier(tune=None).fit({"x": [1.0, 2.0]}, ["no", "yes"]))
    with pytest.raises(SchemaError, match="none of the model's columns"):
        clf.compare({"x": [1.0, 2.0]})
    with pytest.raises(SchemaError, match="predict different columns, 'kind' and 'color'"):
        clf.compare(BayesClassifier(tune=None).fit(table, "color"))
    with pytest.raises(DataError, match="at least one row"):
        clf.compare(table[:0])
    with pytest.raises(UsageError, match="between 0 and 1"):
        clf.compare(table, level=1.0)
    with pytest.raises(UsageError, match="expected costs need rows"):
        clf.compare(clf, [[0, 1], [1, 0]])
