"""Tuned models, as people have them: weights, biases, a cap, joint blocks beside the columns, corrections."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from sklearn.datasets import load_breast_cancer, load_wine

from deciban import BayesClassifier, JointGaussian, JointTable, Pooled
from deciban.explain.columns import ColumnEvidence, compute_column_evidence
from deciban.model.model import Evidence, Model
from tests.export.agreement import assert_agree
from tests.export.models import aligned, as_rows, as_tuned, plain_model
from tests.export.targets import Row, everywhere
from tests.laws.cases import CASES, Case

# A model, and rows to score.
Known = tuple[Model, list[Row]]


def with_holes(rows: list[Row], share: float = 0.3) -> list[Row]:
    """Half of the rows with some cells missing."""
    rng = np.random.default_rng(2)
    half = len(rows) // 2
    holed = [{name: None if rng.random() < share else cell for name, cell in row.items()} for row in rows[half:]]
    return [*rows[:half], *holed]


@pytest.fixture(scope="module")
def cancer() -> Known:
    X, y = load_breast_cancer(return_X_y=True)
    return BayesClassifier().fit(X, y).model_, with_holes(as_rows(X[:40]))


@pytest.fixture(scope="module")
def mixed() -> Known:
    """Three classes; numbers, categories and texts, some missing; the classes hang on two columns together."""
    rng, rows = np.random.default_rng(4), 600
    size, town = rng.normal(size=rows), rng.integers(0, 4, rows)
    labels = np.array(["no", "so", "yes"])[((size > 0.0) + town + (rng.random(rows) < 0.2)) % 3]
    table = pa.table(
        {
            "size": pa.array(size, mask=rng.random(rows) < 0.1),
            "town": pa.array(np.array(["Ulm", "Bern", "Graz", 'O"K'])[town], mask=rng.random(rows) < 0.1),
            "noise": rng.gamma(2.0, size=rows),
            "text": [" ".join(rng.choice(["red", "green", label], 3)) for label in labels],
        }
    )
    model = BayesClassifier().fit(table, labels).model_
    return model, [*with_holes(table.slice(0, 30).to_pylist()), {"town": "Rome"}, {"size": 1e300}, {"size": -1e9}]


def test_many_levels_that_share_bins_agree() -> None:
    """More levels than a byte can count: tables ask for groups of them, exports for each of them."""
    rng, rows = np.random.default_rng(6), 3_000
    town, size = rng.integers(0, 350, rows), rng.normal(size=rows)
    likely = 1.0 / (1.0 + np.exp(-2.0 * rng.normal(size=350)[town] * np.where(size > 0.0, 1.0, -1.0)))
    table = pa.table({"town": [f"t{k}" for k in town], "size": size})
    model = BayesClassifier().fit(table, np.where(rng.random(rows) < likely, "yes", "no")).model_
    assert model.corrections is not None
    (column,) = (one for one in model.corrections.columns if one.cuts is None)
    assert column.places is not None
    assert column.places.shape == (6, 350)
    assert (model.corrections.tests[:, :, 0] == model.corrections.columns.index(column)).any()
    assert_agree([model], [[*with_holes(table.slice(0, 60).to_pylist()), {"town": "Rome"}]])


def test_tuned_models_agree(cancer: Known, mixed: Known) -> None:
    assert cancer[0].corrections is not None
    assert cancer[0].cap < np.inf
    assert mixed[0].corrections is not None
    assert_agree(*zip(cancer, mixed, strict=True))  # models, rows


def test_the_evidence_of_blocks_is_that_of_python(cancer: Known, mixed: Known) -> None:
    """But for what is the same for every class: names, weights, caps and differences are equal."""
    models, rows = zip(cancer, mixed, strict=True)
    known = [[model.evidence(aligned(model, row)) for row in some] for model, some in zip(models, rows, strict=True)]
    for answers in everywhere(models, rows, ["evidence", "predict_joint_log_proba"]):
        for model, some, found in zip(models, known, answers, strict=True):
            assert_same_blocks(model, some, found.rows)


def assert_same_blocks(model: Model, known: list[Evidence], found: list[Row]) -> None:
    for evidence, answer in zip(known, found, strict=True):
        blocks = answer["evidence"]
        others = [("offsets", evidence.row_bias(0)), ("limit", evidence.raised[0])][: 1 + evidence.raised.any()]
        assert tuple(block["name"] for block in blocks) == (*evidence.blocks, *(name for name, _ in others))
        assert [block["weight"] for block in blocks] == [*evidence.weights.tolist(), *(1.0 for _ in others)]
        expected = np.concatenate([evidence.values[0], [values for _, values in others]])
        same_differences(np.array([block["values"] for block in blocks]), expected, 1e-11)
        assert evidence.capped is not None
        capped = [block["capped"] for block in blocks][: evidence.capped.shape[1]]
        assert capped == evidence.capped[0].tolist()
        joint = model.log_prior
        for block in blocks:
            joint = joint + block["weight"] * np.array(block["values"]) if block["weight"] > 0.0 else joint
        np.testing.assert_allclose(joint, answer["predict_joint_log_proba"], rtol=0.0, atol=1e-11)


def same_differences(found: Any, expected: Any, bound: float) -> None:
    """Between classes; both are term by class."""
    found, expected = found.astype(np.float64), np.asarray(expected)
    with np.errstate(invalid="ignore"):
        apart = np.abs((found - found[:, :1]) - (expected - expected[:, :1]))
    same = np.isinf(found) & (found == expected)
    scale = np.maximum(1.0, np.abs(expected).max(axis=1, initial=0.0, where=np.isfinite(expected)))[:, None]
    assert np.where(same, 0.0, apart / scale).max() <= bound


def assert_same_columns(model: Model, rows: list[Row], bound: float = 1e-9) -> None:
    """What each column says is what Python says that it does."""
    tables = [aligned(model, row) for row in rows]
    known = [compute_column_evidence(model, table, model.evidence(table)) for table in tables]
    for answers in everywhere([model], [rows], ["column_evidence", "predict_log_proba"]):
        for evidence, answer in zip(known, answers[0].rows, strict=True):
            assert_same_shares(model, evidence, answer, bound)


def assert_same_shares(model: Model, evidence: ColumnEvidence, answer: Row, bound: float) -> None:
    columns = answer["column_evidence"]
    raised = evidence.raised
    assert tuple(column["name"] for column in columns) == (*evidence.columns, *(["limit"] if raised.any() else []))
    for name, expected in (
        ("values", evidence.values),
        ("own", evidence.own),
        ("joint", evidence.joint),
        ("correction", evidence.correction),
    ):
        if raised.any():
            expected = np.concatenate(
                [expected, raised[:, None] if name in ("values", "own") else 0.0 * raised[:, None]], 1
            )
        same_differences(np.array([column[name] for column in columns]), expected[0], bound)
    joint = np.array([column["values"] for column in columns]).sum(axis=0) + model.log_prior
    posterior = np.array(answer["predict_log_proba"])
    np.testing.assert_allclose(joint - joint.max(), posterior - posterior.max(), rtol=0.0, atol=1e-9)


def test_the_evidence_of_columns_is_that_of_python(cancer: Known, mixed: Known) -> None:
    """Thirty columns together, shared out by eigenvectors; and few of them, by all their sets."""
    for model, rows in (cancer, mixed):
        assert_same_columns(model, rows)


def test_joint_blocks_are_shared_out_as_in_python() -> None:
    X, y = load_wine(return_X_y=True)
    rows = with_holes(as_rows(X[::9]))
    for columns in (13, 10, 2):  # by eigenvectors, by all sets, by all sets of the coordinates in which classes differ
        spec = {tuple(range(columns)): JointGaussian(Pooled())}
        assert_same_columns(BayesClassifier(spec, tune=None).fit(X, y).model_, rows)


def test_a_table_of_many_columns_is_shared_out_by_the_same_orders() -> None:
    rng, names = np.random.default_rng(6), "abcdefghijkl"
    cells = pa.table({name: rng.integers(0, 2, 300) for name in names})
    model = BayesClassifier({tuple(names): JointTable(alpha=0.1)}, tune=None).fit(cells, rng.integers(0, 2, 300)).model_
    assert_same_columns(model, with_holes(cells.slice(0, 2).to_pylist()))


JOINT = [case for case in CASES if case.family.joint]


@pytest.mark.parametrize("case", JOINT, ids=lambda case: case.name)
def test_shares_of_capped_blocks_are_those_of_python(case: Case) -> None:
    rng = np.random.default_rng(9)
    model = plain_model(case, rng)
    rows = as_rows(case.draw(rng, 15))
    assert_same_columns(model, rows)
    assert_same_columns(as_tuned(model, rng, cap=0.5), rows)
