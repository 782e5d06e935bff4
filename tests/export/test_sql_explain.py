"""What SQL says of each column, in decibans, is what deciban says, and adds up to the log-odds."""

import numpy as np
import pyarrow as pa
import pytest
from sklearn.datasets import load_breast_cancer, load_wine

from deciban import BayesClassifier, JointTable
from deciban.explain.explanation import Explanation
from deciban.model.model import Model
from deciban.sources.open import open_table
from tests.export.models import as_tuned, plain_model
from tests.export.sql_engines import EngineUnderTest, duckdb_engine, numbers, probabilities
from tests.export.tables import SAID, as_columns, assert_answers_agree, mixed_table
from tests.laws.cases import Case

DECIBANS = 10.0 / np.log(10.0)


def explanation_of(model: Model, table: pa.Table) -> Explanation:
    rows = table if model.schema.names is not None else np.column_stack([column.to_numpy() for column in table])
    return Explanation.from_model(model, model.schema.table_as_learned(open_table(rows)))


def assert_explained(engine: EngineUnderTest, model: Model, table: pa.Table, bound: float = 1e-9) -> pa.Table:
    """Each column says what deciban says that it does, and with the prior they add up to the log-odds."""
    found, told = engine.answers(model, table, explain=True), explanation_of(model, table)
    labels = np.array(found["predicted"].to_pylist(), dtype=object)
    assert_answers_agree(model, table, labels, probabilities(model, found))
    evidence, columns, classes = told.evidence, told.columns, model.classes
    order = np.argsort(-evidence.log_posterior, axis=1, kind="stable")
    rows, best, other = np.arange(table.num_rows), order[:, 0], order[:, 1]
    sure = ~evidence.impossible
    for first, second in ((0, 1), (1, 2)) if classes.size > 2 else ((0, 1),):
        ranked = evidence.log_posterior[rows[:, None], order]
        sure &= ranked[:, first] - ranked[:, second] > 1e-9
    assert sure.mean() > 0.5
    assert (labels == classes[best])[sure].all()
    assert (np.array(found["against"].to_pylist(), dtype=object) == classes[other])[sure].all()
    expected = {
        "decibans": evidence.log_joint,
        "decibans of prior": evidence.log_prior + 0.0 * evidence.log_joint,
        "decibans of limit": evidence.raised,
    }
    expected |= {f"decibans of {name}": columns.values[:, k] for k, name in enumerate(columns.columns)}
    total = np.zeros(table.num_rows)
    for name, values in expected.items():
        if name not in found.column_names:  # a column that says nothing is not read
            assert not np.any(values[:, :1] != values), name
            continue
        said = numbers(found, name)
        with np.errstate(invalid="ignore"):
            apart = np.abs(said - DECIBANS * (values[rows, best] - values[rows, other]))
            scale = np.maximum(1.0, np.abs(said))
        same = (apart <= bound * scale) | (np.isinf(said) & np.isnan(apart))
        assert same[sure].all(), (name, np.flatnonzero(sure & ~same)[:3], apart[sure].max())
        total += 0.0 if name == "decibans" else said
    with np.errstate(invalid="ignore"):
        apart = np.abs(total - numbers(found, "decibans"))
    usual = sure & np.isfinite(numbers(found, "decibans"))
    assert (apart <= bound * np.maximum(1.0, np.abs(total)))[usual].all()
    return found


@pytest.mark.parametrize("case", SAID, ids=lambda case: case.name)
def test_families_are_explained_as_in_deciban(quick_engine: EngineUnderTest, case: Case) -> None:
    rng = np.random.default_rng(9)
    model, table = plain_model(case, rng), as_columns(case.draw(rng, 100))
    for one in (model, as_tuned(model, rng, cap=0.5), as_tuned(model, rng, cap=np.inf)):
        assert_explained(quick_engine, one, table)


def test_a_tuned_model_of_mixed_columns_is_explained_as_in_deciban(engine: EngineUnderTest) -> None:
    table, labels = mixed_table(np.random.default_rng(4), 1_100)
    model = BayesClassifier().fit(table.slice(0, 1_000), labels[:1_000]).model_
    assert model.corrections is not None
    assert_explained(engine, model, table.slice(1_000))


@pytest.fixture(scope="module")
def tuned() -> list[tuple[Model, pa.Table]]:
    """Of thirty columns and two classes, and of thirteen and three: by formulas, not by all sets of columns."""
    tables = [load(return_X_y=True) for load in (load_breast_cancer, load_wine)]
    return [(BayesClassifier().fit(X, y).model_, as_columns(X[::5])) for X, y in tables]


def test_tuned_models_of_many_numbers_are_explained_as_in_deciban(
    quick_engine: EngineUnderTest, tuned: list[tuple[Model, pa.Table]]
) -> None:
    for model, table in tuned[-1:] if quick_engine.name == "duckdb" else tuned:  # which takes long to plan the first
        assert any(group.family.joint for group in model.schema.groups)
        assert_explained(quick_engine, model, table)


def test_a_capped_joint_table_is_explained_as_in_deciban(quick_engine: EngineUnderTest) -> None:
    rng = np.random.default_rng(8)
    table = pa.table({name: rng.integers(0, 3, 300) for name in "abc"})
    labels = (np.array(table["a"]) + np.array(table["b"])) % 3
    model = BayesClassifier({("a", "b", "c"): JointTable(alpha=0.1)}, tune=None).fit(table, labels).model_
    for one in (model, as_tuned(model, rng, cap=1.0)):
        assert_explained(quick_engine, one, table.slice(0, 50))


def test_what_cannot_be_told_is_null() -> None:
    """The next class where every class has probability 0; a joint block of many columns where some are missing."""
    from deciban import JointGaussian, Poisson

    calls = BayesClassifier(Poisson(), tune=None).fit({"calls": [0, 1, 4, 5]}, list("aabb")).model_
    found = duckdb_engine().answers(calls, pa.table({"calls": [0.5, 1.0]}), explain=True).to_pylist()
    assert (found[0]["predicted"], found[0]["against"], found[0]["decibans"]) == ("a", None, None)
    assert found[0]["P(a)"] == pytest.approx(0.5)
    assert (found[1]["predicted"], found[1]["against"]) == ("a", "b")
    X, y = load_wine(return_X_y=True)
    holed = np.where(np.random.default_rng(1).random(X.shape) < 0.05, np.nan, X)
    wine = BayesClassifier({tuple(range(13)): JointGaussian()}, tune=None).fit(holed, y)._get_fitted()
    rows = as_columns(X[:2]).set_column(3, "x3", pa.array([None, 1.0]))
    found = duckdb_engine().answers(wine, rows, explain=True).to_pylist()
    assert found[0]["decibans"] > 0.0
    assert (found[0]["decibans of x0"], found[0]["decibans of x3"]) == (None, 0.0)
    assert found[1]["decibans of x0"] is not None
