"""What columns say where all others are missing, and the values they are shown at."""

import numpy as np
import pyarrow as pa
import pytest

from deciban import BayesClassifier, Binned, Categorical, JointTable, LogNormal, Poisson
from deciban.explain.column_values import (
    compute_evidence_alone,
    compute_evidence_of_each,
    find_column_counts,
    get_column_values,
)
from tests.support.tables import MIXED


@pytest.fixture(scope="module", params=[None, "auto"])
def clf(request: pytest.FixtureRequest) -> BayesClassifier:
    return BayesClassifier(tune=request.param).fit(MIXED, "label")


def test_columns_together_say_what_each_says_alone(clf: BayesClassifier) -> None:
    fitted = clf.fitted_
    columns = [get_column_values(fitted, column, 17) for column in range(clf.n_features_in_)]
    for values, said in zip(columns, compute_evidence_of_each(clf.model_, columns), strict=True):
        np.testing.assert_allclose(said, compute_evidence_alone(clf.model_, [values]), atol=1e-10)
    for values, said in zip(columns, compute_evidence_of_each(clf.model_, columns, 0), strict=True):
        np.testing.assert_allclose(said, compute_evidence_alone(clf.model_, [values], 0), atol=1e-10)


def test_evidence_alone_is_the_change_of_the_posterior(clf: BayesClassifier) -> None:
    age = get_column_values(clf.fitted_, 0, 9)
    posterior = clf.predict_proba(pa.table({"age": age.cells}))
    nothing = clf.predict_proba(pa.table({"age": pa.nulls(1, pa.float64())}))
    odds, before = (10.0 * np.log10(chance[:, 0] / chance[:, 1]) for chance in (posterior, nothing))
    np.testing.assert_allclose(compute_evidence_alone(clf.model_, [age])[:, 0], odds - before, atol=1e-9)


def test_counts_of_values_and_bins_are_those_of_the_rows() -> None:
    columns = {"age": Binned(bins=8), ("color", "smoker"): JointTable(), "visits": Categorical()}
    counts = BayesClassifier(columns, tune=None).fit(MIXED, "label").counts_
    table = MIXED.to_pandas()
    for place, name in ((1, "color"), (3, "visits")):
        found = find_column_counts(counts, place)
        assert found is not None
        complete = table.dropna(subset=["color", "smoker"]) if name == "color" else table
        for k, level in enumerate(found.levels.to_pylist()):
            for c, label in enumerate(["ill", "well"]):
                assert found.table[c, k] == ((complete[name] == level) & (complete.label == label)).sum()
    age = find_column_counts(counts, 0)
    assert age is not None
    assert age.table.sum() == table.age.notna().sum()
    inside = [((table.age >= a) & (table.age < b)).sum() for a, b in zip(age.low, age.high, strict=True)]
    assert age.table.sum(axis=0).tolist() == inside
    assert find_column_counts(counts, 4) is None  # of normal columns only sums are counted


def test_values_lie_where_the_family_allows() -> None:
    rng = np.random.default_rng(0)
    X = np.stack([rng.lognormal(0, 1, 200), rng.poisson(2, 200)], axis=1)
    clf = BayesClassifier({0: LogNormal(), 1: Poisson()}, tune=None).fit(X, rng.integers(0, 2, 200))
    amounts, counts = (get_column_values(clf.fitted_, column) for column in (0, 1))
    assert amounts.kind == "continuous"
    assert (amounts.numbers > 0.0).all()
    assert counts.kind == "whole"
    assert counts.numbers[0] == 0.0
    assert (np.diff(counts.numbers) == 1.0).all()
    assert X[:, 1].max() - 2 <= counts.numbers[-1] <= X[:, 1].max() + 4


def test_numbers_of_many_levels_stand_on_a_line() -> None:
    X = np.arange(80.0)[:, None] % 40
    clf = BayesClassifier({0: Categorical()}, tune=None).fit(X, np.arange(80) % 2)
    many = get_column_values(clf.fitted_, 0)
    assert many.kind == "whole"
    assert many.positions.tolist() == list(range(40))
