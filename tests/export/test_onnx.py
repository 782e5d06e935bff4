"""ONNX gives what deciban gives, for every family that it claims; the others, and odd names, are dealt with by name."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from onnx.reference import ReferenceEvaluator
from sklearn.datasets import load_breast_cancer

from deciban import (
    BayesClassifier,
    Bernoulli,
    Categorical,
    Gaussian,
    JointGaussian,
    JointTable,
    PerClass,
    Poisson,
    Text,
    UsageError,
)
from deciban.export.onnx.model import to_onnx
from deciban.model.corrections import Corrections
from deciban.model.model import Model
from tests.classifier.test_ordered import SIGNS, as_grades, draw_table
from tests.export.models import as_tuned, corrections, plain_model
from tests.export.onnx_answers import answers, assert_agrees, inputs_of, session
from tests.export.tables import as_columns, hardened, random_spec, random_table
from tests.laws.cases import CASES, Case

PARTS_OF_TEXTS = ("categorical-first-word", "categorical-beginning")
SAID = [case for case in CASES if not case.family.is_text and case.name not in PARTS_OF_TEXTS]
ROWS = 3_500


@pytest.mark.parametrize("case", SAID, ids=lambda case: case.name)
def test_families_plain_weighted_capped_and_corrected_agree(case: Case) -> None:
    """10,500 rows of each family, with missing, unseen, extreme and hostile cells."""
    rng = np.random.default_rng(7)
    model = plain_model(case, rng)
    for one in (model, as_tuned(model, rng, cap=3.0), as_tuned(model, rng, cap=np.inf)):
        assert_agrees(one, hardened(as_columns(case.draw(rng, ROWS)), rng))


def test_tables_of_all_families_at_once_agree() -> None:
    rng = np.random.default_rng(3)
    for k in range(8):
        spec = {name: family for name, family in random_spec(rng).items() if name != "text"}
        table = random_table(rng, 1_000).drop_columns("text")
        model = BayesClassifier(spec, tune=None).fit(table.slice(0, 150), rng.integers(0, 2 + k % 3, 150)).model_
        for one in (model, as_tuned(model, rng, cap=float(rng.uniform(0.5, 8.0)))):
            assert_agrees(one, table)


@pytest.fixture(scope="module")
def cancer() -> tuple[Model, np.ndarray]:
    X, y = load_breast_cancer(return_X_y=True)
    return BayesClassifier().fit(X, y).model_, X


def test_a_tuned_model_of_thirty_numbers_agrees(cancer: tuple[Model, np.ndarray]) -> None:
    model, X = cancer
    assert model.corrections is not None
    assert model.cap < np.inf
    rng = np.random.default_rng(1)
    rows = X[rng.integers(0, len(X), 10_000)] * rng.normal(1.0, 0.1, (10_000, 30))
    assert_agrees(model, hardened(as_columns(rows), rng, share=0.02))


def test_a_tuned_model_of_mixed_columns_agrees() -> None:
    """Three classes, of which two columns tell together; numbers, counts, flags, dates, times and categories."""
    rng, rows = np.random.default_rng(4), 11_000
    size, town = rng.normal(size=rows), rng.integers(0, 4, rows)
    labels = np.array(["no", "so", "yes"])[((size > 0.0) + town + (rng.random(rows) < 0.2)) % 3]
    day = rng.integers(0, 900, rows)
    table = pa.table(
        {
            "size": pa.array(size, mask=rng.random(rows) < 0.1),
            "town": pa.array(np.array(["Ulm", "Bern", "Graz", 'O"K'])[town], mask=rng.random(rows) < 0.1),
            "wait": rng.gamma(2.0, size=rows),
            "calls": pa.array(rng.poisson(2.0, rows), mask=rng.random(rows) < 0.1),
            "member": rng.random(rows) < 0.3,
            "day": pa.array(day, pa.int32()).cast(pa.date32()),
            "at": pa.array(day * 3_600_000_000 + 250_000, pa.int64()).cast(pa.timestamp("us")),
            "clock": pa.array(rng.integers(0, 86_400, rows).astype(np.int32), pa.int32()).cast(pa.time32("s")),
        }
    )
    model = BayesClassifier().fit(table.slice(0, 1_000), labels[:1_000]).model_
    assert model.corrections is not None
    assert_agrees(model, table.slice(1_000))
    _, found = ReferenceEvaluator(to_onnx(model)).run(None, inputs_of(session(to_onnx(model)), table.slice(0, 40)))
    np.testing.assert_allclose(found, answers(model, table.slice(0, 40))[1], rtol=1e-12)  # by ONNX's own definitions


def test_dates_and_times_as_categories_agree() -> None:
    rng = np.random.default_rng(2)
    days = pa.array(rng.integers(18_000, 18_009, 300).astype(np.int32)).cast(pa.date32())
    at = pa.array(rng.integers(0, 7, 300) * 3_600_250_001).cast(pa.timestamp("us"))
    clock = pa.array(rng.integers(0, 5, 300) * 3_600_000_007).cast(pa.time64("us"))
    table = pa.table({"day": days, "at": at, "clock": clock})
    spec = dict.fromkeys(table.column_names, Categorical(unseen="smooth"))
    model = BayesClassifier(spec, tune=None).fit(table.slice(0, 200), rng.integers(0, 3, 200)).model_
    assert_agrees(model, table)


@pytest.mark.parametrize("columns", [30, 7])
def test_missing_cells_of_a_joint_normal_distribution_are_integrated_out(columns: int) -> None:
    """Of any number of columns, and of more rows than are factored at a time."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(2_000, columns)) @ rng.normal(size=(columns, columns)) + 50.0
    spec = {tuple(range(columns)): JointGaussian(PerClass(shrinkage=0.1))}
    model = BayesClassifier(spec, tune=None).fit(X[:500], rng.integers(0, 3, 500)).model_
    X[rng.random(X.shape) < 0.2] = np.nan
    X[0] = np.nan
    assert_agrees(model, as_columns(X))


def test_zero_probabilities_agree_and_where_all_are_zero_the_prior_does() -> None:
    rng = np.random.default_rng(6)
    flags = rng.random((40, 20)) < np.linspace(0.02, 0.5, 20)
    model = BayesClassifier(Bernoulli(alpha=0.0), tune=None).fit(flags.astype(float), rng.integers(0, 2, 40)).model_
    rows = (rng.random((500, 20)) < 0.3).astype(float)
    assert_agrees(model, as_columns(rows))
    impossible = model.log_joint(model.schema.table_as_learned(_opened(rows))).max(axis=1) == -np.inf
    assert 10 < impossible.sum() < 490


def _opened(rows: Any) -> Any:
    from deciban.sources.open import open_table

    return open_table(rows)


def test_models_of_one_class_and_of_no_evidence_agree() -> None:
    X = np.random.default_rng(12).normal(size=(30, 2))
    assert_agrees(BayesClassifier(tune=None).fit(X, np.arange(30) % 2).model_, as_columns(X))
    one = BayesClassifier(tune=None).fit(X, np.ones(30, dtype=int)).model_
    assert answers(one, as_columns(X))[1].tolist() == [[1.0]] * 30
    model = BayesClassifier(Poisson(outside="ignore"), tune=None).fit(np.abs(X).round(), np.arange(30) % 3).model_
    silent = replace(model, weights=np.zeros(2))
    assert_agrees(silent, as_columns(X))
    assert_agrees(replace(silent, corrections=_without_questions(model)), as_columns(X))


def _without_questions(model: Model) -> Corrections:
    """Tables of which the first and the last ask nothing."""
    rng = np.random.default_rng(13)
    found = corrections(model, rng, tables=4)
    assert found is not None
    tests = found.tests.copy()
    tests[[0, -1]] = -1
    return replace(found, tests=tests)


def test_a_row_is_scored_alone_as_among_others_and_no_row_at_all() -> None:
    rng = np.random.default_rng(8)
    X = rng.normal(size=(60, 3))
    ready = session(to_onnx(BayesClassifier(tune=None).fit(X, rng.integers(0, 2, 60)).model_))
    together = ready.run(None, inputs_of(ready, as_columns(X)))
    for row in (0, 59):
        alone = ready.run(None, inputs_of(ready, as_columns(X[row : row + 1])))
        np.testing.assert_allclose(alone[1], together[1][row : row + 1], rtol=1e-14)
    label, probabilities = ready.run(None, inputs_of(ready, as_columns(X[:0])))
    assert (label.shape, probabilities.shape) == ((0,), (0, 2))


@pytest.mark.parametrize(
    ("classes", "kind", "none"),
    [
        (["a", "ü"], "O", ""),
        ([3, 7], "i", np.iinfo(np.int64).min),
        ([False, True], "i", np.iinfo(np.int64).min),
        ([2.0, 4.0], "f", np.nan),
    ],
)
def test_labels_keep_their_type_and_a_refused_row_has_none(classes: list[Any], kind: str, none: Any) -> None:
    x = np.array([0.0, 1.0, 5.0, 6.0])
    model = BayesClassifier({0: Gaussian()}, tune=None).fit(x[:, None], np.repeat(classes, 2)).model_
    label, probabilities = answers(model, pa.table({"x0": [0.0, 6.0, np.inf]}))
    assert label.dtype.kind == kind
    assert label[:2].tolist() == classes
    np.testing.assert_equal(label[2], none)
    assert np.isnan(probabilities[2]).all()
    assert not np.isnan(probabilities[:2]).any()


def test_a_joint_table_refuses_combinations_of_values_that_it_has_never_seen() -> None:
    rng = np.random.default_rng(14)
    table = pa.table({"a": rng.integers(0, 3, 200).astype(float), "b": rng.normal(size=200), "c": rng.normal(size=200)})
    spec = {tuple("abc"): JointTable(unseen="error", cuts=(None, (-1.0, 9.0), ()))}
    model = BayesClassifier(spec, tune=None).fit(table.slice(0, 100), rng.integers(0, 2, 100)).model_
    odd = pa.table({"a": [1.0, 5.0, 1.0, 2.0], "b": [0.0, 0.0, 99.0, None], "c": [0.0, 1.0, 1.0, np.inf]})
    assert assert_agrees(model, pa.concat_tables([table, odd])) == 2


def test_what_deciban_refuses_has_no_probabilities() -> None:
    table = pa.table(
        {"town": ["Ulm", "Bern", "Ulm", "Bern"], "flag": [0.0, 1.0, 1.0, 1.0], "calls": [1.0, 2.0, 0.0, 3.0]}
    )
    spec = {"town": Categorical(unseen="error"), "flag": Bernoulli(), "calls": Poisson()}
    model = BayesClassifier(spec, tune=None).fit(table, [0, 1, 0, 1]).model_
    flags, calls = [0.0, 1.0, 1.0, 0.5, 1.0], [1.0, 1.0, 1.0, 1.0, np.inf]
    rows = pa.table({"town": ["Ulm", "Rom", None, "Bern", "Ulm"], "flag": flags, "calls": calls})
    assert np.isnan(answers(model, rows)[1]).any(axis=1).tolist() == [False, True, False, True, True]
    assert assert_agrees(model, rows) == 3


def test_equally_probable_classes_give_the_first() -> None:
    model = (
        BayesClassifier({"x": Gaussian()}, prior="uniform", tune=None)
        .fit({"x": [1.0, 2.0, 1.0, 2.0]}, list("aabb"))
        .model_
    )
    label, probabilities = answers(model, pa.table({"x": [1.5, None]}))
    assert label.tolist() == ["a", "a"]
    assert (probabilities == 0.5).all()


def test_an_empty_text_is_missing_unless_it_is_a_value() -> None:
    labels = [0, 1, 0, 1]
    for cells, told in ((["", "a", "", "a"], True), (["b", "a", "b", "a"], False)):
        clf = BayesClassifier({"x": Categorical(unseen="smooth")}, tune=None).fit({"x": cells}, labels)
        found = answers(clf.model_, pa.table({"x": [""]}))[1]
        expected = clf.predict_proba({"x": pa.array([""] if told else [None], pa.string())})
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_names_of_columns_may_be_anything() -> None:
    """Those of outputs and of nodes, none, and quotes."""
    names = ["label", "probabilities", "label_", "add_3", "constant_0", "", 'x"; drop table t; --', "ü\0"]
    rng = np.random.default_rng(9)
    table = {name: rng.normal(size=40) for name in names}
    clf = BayesClassifier(tune=None).fit(table, rng.integers(0, 2, 40))
    ready = session(clf.to_onnx())
    inputs = [one.name for one in ready.get_inputs()]
    assert inputs[:6] == ["label_", "probabilities_", "label__", "add_3", "constant_0", "_"]
    assert inputs[6:] == ['x"; drop table t; --', "ü_"]
    feed = {name: np.array(cells).reshape(-1, 1) for name, cells in zip(inputs, table.values(), strict=True)}
    np.testing.assert_allclose(ready.run(None, feed)[1], clf.predict_proba(table), rtol=1e-12)


def test_the_median_of_ordered_classes_is_predicted() -> None:
    X, y = draw_table()
    clf = BayesClassifier(ordered=True, monotone=SIGNS).fit(X, as_grades(y))
    table = pa.Table.from_pandas(X[:60].assign(income=[*X["income"][:55], -5.0, 1e300, 1e-9, 7.77, -1e300]))
    labels, _ = answers(clf.model_, table)
    assert list(labels) == clf.predict(table).tolist()


def test_the_classes_and_what_inputs_are_stand_in_the_model() -> None:
    table = pa.table({"town": ["Ulm", "Bern"], "day": pa.array([1, 2], pa.int32()).cast(pa.date32())})
    model = BayesClassifier(tune=None).fit(table, ["ja", "nein"]).to_onnx()
    assert json.loads({one.key: one.value for one in model.metadata_props}["classes"]) == ["ja", "nein"]
    town, day = model.graph.input
    assert '"" if missing' in town.doc_string
    assert "days since 1970-01-01" in day.doc_string


def test_what_onnx_cannot_say_is_refused_by_name() -> None:
    labels = [0, 1, 0, 1]
    texts = BayesClassifier({"mail": Text()}, tune=None).fit({"mail": ["a b", "c", "a", "c d"]}, labels)
    with pytest.raises(UsageError, match=r"column 'mail': Text\(\) cannot .*export to Python or JavaScript"):
        texts.to_onnx()
    long = BayesClassifier({"id": Categorical()}, tune=None).fit({"id": [2**60, 2**60 + 1] * 2}, labels)
    with pytest.raises(UsageError, match=r"column 'id': integers beyond 2\*\*53 .* convert the column to text"):
        long.to_onnx()
    silent = BayesClassifier({"x": Categorical()}, tune=None).fit({"x": list("abab")}, labels).model_
    with pytest.raises(UsageError, match="the model uses no column"):
        to_onnx(replace(silent, weights=np.zeros(1)))
    wide = {name: np.arange(300) % 17 for name in "abcde"}
    joint = BayesClassifier({tuple("abcde"): JointTable()}, tune=None).fit(wide, np.arange(300) % 2)
    with pytest.raises(UsageError, match=r"column 'a': JointTable\(\) has .* combinations of values"):
        joint.to_onnx()


def test_where_onnx_is_not_installed_it_is_said_how_to(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    clf = BayesClassifier(tune=None).fit({"x": [1.0, 2.0]}, [0, 1])
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(UsageError, match=r"pip install '\.\[onnx\]'"):
        clf.to_onnx()
