"""Rows that are scored by SQL have the probabilities that deciban gives them: every family that SQL claims."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sklearn.datasets import load_breast_cancer, load_wine

from deciban import BayesClassifier, Categorical, Gaussian, JointGaussian, PerClass, Pooled
from deciban.export.sql.statement import to_sql
from deciban.model.model import Model
from tests.export.models import as_tuned, plain_model
from tests.export.sql_engines import EngineUnderTest
from tests.export.tables import SAID, as_columns, hardened, mixed_table, random_spec, random_table
from tests.laws.cases import Case


@pytest.mark.parametrize("case", SAID, ids=lambda case: case.name)
def test_families_plain_weighted_capped_and_corrected_agree(quick_engine: EngineUnderTest, case: Case) -> None:
    rng = np.random.default_rng(7)
    model = plain_model(case, rng)
    for one in (model, as_tuned(model, rng, cap=3.0), as_tuned(model, rng, cap=np.inf)):
        quick_engine.assert_agrees(one, hardened(as_columns(case.draw(rng, 400)), rng, texts=quick_engine.texts))


def all_families(rng: Any, classes: int) -> tuple[Model, pa.Table]:
    """A model of all families at once, with random parameters, and the columns that it takes."""
    spec = {name: family for name, family in random_spec(rng).items() if name != "text"}
    table = random_table(rng, 150).drop_columns("text")
    return BayesClassifier(spec, tune=None).fit(table, rng.integers(0, classes, 150)).model_, table


def test_ten_thousand_rows_of_all_families_agree(engine: EngineUnderTest) -> None:
    """Missing, unseen, extreme and hostile cells; of counts and whole numbers as doubles."""
    rng = np.random.default_rng(3)
    plain, tuned = all_families(rng, 2)[0], as_tuned(all_families(rng, 3)[0], rng, cap=5.0)
    for model in (plain, tuned):
        rows = hardened(random_table(rng, 5_000).drop_columns("text"), rng, share=0.03, texts=engine.texts)
        assert 0 < engine.assert_agrees(model, rows) < 4_000


def test_columns_of_the_types_that_they_were_learned_with_agree(quick_engine: EngineUnderTest) -> None:
    rng = np.random.default_rng(5)
    for k in range(6):
        model, table = all_families(rng, 2 + k % 3)
        quick_engine.assert_agrees(model, table)
        quick_engine.assert_agrees(as_tuned(model, rng, cap=2.0), table)


def test_a_tuned_model_of_mixed_columns_agrees(quick_engine: EngineUnderTest) -> None:
    table, labels = mixed_table(np.random.default_rng(4), 3_000)
    clf = BayesClassifier().fit(table.slice(0, 1_000), labels[:1_000])
    assert clf.model_.corrections is not None
    assert clf.model_.cap < np.inf
    assert any(group.family.joint for group in clf.model_.schema.groups)
    assert quick_engine.assert_agrees(clf._get_fitted(), table.slice(1_000)) == 0


def test_dates_and_times_as_categories_agree(engine: EngineUnderTest) -> None:
    rng = np.random.default_rng(2)
    days = pa.array(rng.integers(-9, 9, 300).astype(np.int32)).cast(pa.date32())
    at = pa.array(rng.integers(-7, 7, 300) * 3_600_250_001).cast(pa.timestamp("us"))
    clock = pa.array(rng.integers(0, 5, 300) * 3_600_000_007).cast(pa.time64("us"))
    table = pa.table({"day": days, "at": at, "clock": clock})
    spec = dict.fromkeys(table.column_names, Categorical(unseen="smooth"))
    model = BayesClassifier(spec, tune=None).fit(table.slice(0, 200), rng.integers(0, 3, 200)).model_
    assert engine.assert_agrees(model, table) == 0


@pytest.mark.parametrize("spread", [Pooled(), PerClass(shrinkage=0.1)], ids=["pooled", "apart"])
def test_missing_cells_of_joint_normal_distributions_are_integrated_out(engine: EngineUnderTest, spread: Any) -> None:
    """Any of them, whether or not training rows missed some."""
    rng = np.random.default_rng(5)
    X, y = load_wine(return_X_y=True)
    holed = np.where(rng.random(X.shape) < 0.05, np.nan, X)
    for learned in (holed, X) if engine.name != "spark" else (X,):
        fitted = BayesClassifier({tuple(range(13)): JointGaussian(spread)}, tune=None).fit(learned, y)._get_fitted()
        rows = np.where(rng.random(X.shape) < rng.random(len(X))[:, None], np.nan, X)
        rows[:3] = np.nan
        rows[3:6, 4] *= 1e9
        assert engine.assert_agrees(fitted, as_columns(rows)) == 0


def test_a_default_model_of_complete_rows_scores_rows_with_missing_cells(quick_engine: EngineUnderTest) -> None:
    X, y = load_breast_cancer(return_X_y=True)
    fitted = BayesClassifier(tune="weights").fit(X[:, :20], y)._get_fitted()
    assert any(group.family.joint for group in fitted.model.schema.groups)
    rng = np.random.default_rng(6)
    assert quick_engine.assert_agrees(fitted, as_columns(np.where(rng.random(X.shape) < 0.1, np.nan, X)[:60, :20])) == 0


def test_a_missing_cell_of_a_very_wide_block_ends_the_query_by_name(engine: EngineUnderTest) -> None:
    rng = np.random.default_rng(7)
    X, y = rng.normal(size=(120, 33)), rng.integers(0, 2, 120)
    fitted = BayesClassifier({tuple(range(33)): JointGaussian()}, tune=None).fit(X, y)._get_fitted()
    assert 'stops the query: ["x0", ' in to_sql(fitted, "t", engine.name)
    rows = X[:5].copy()
    rows[1] = np.nan
    assert engine.assert_agrees(fitted, as_columns(rows)) == 0
    rows[2, 7] = np.nan
    with pytest.raises(Exception, match="joint block of 33 columns from 'x0' to 'x32' is missing"):
        engine.answers(fitted, as_columns(rows))


def test_infinite_distances_of_classes_without_values_are_no_evidence(quick_engine: EngineUnderTest) -> None:
    """Neither of a column that never had a value nor of a class."""
    never = np.full(40, np.nan)
    some = np.where(np.arange(40) < 20, np.nan, np.arange(40.0))
    x = np.column_stack([never, some, np.arange(40.0) % 7])
    labels = np.repeat(["a", "b"], 20)
    model = BayesClassifier(Gaussian(), tune=None).fit(x, labels).model_
    rows = np.array([[1e303, 1e303, 1.0], [-1e308, np.nan, 2.0], [np.nan, -1e308, 3.0], [0.0, 25.0, np.nan]])
    assert quick_engine.assert_agrees(model, as_columns(rows)) == 0
