"""Pipelines with drop-in classifiers become ONNX by skl2onnx, and say there what they say here."""

import sys
from typing import Any

import numpy as np
import pytest
from onnx.checker import check_model
from onnxruntime import InferenceSession
from scipy.stats import multivariate_normal
from skl2onnx import to_onnx
from skl2onnx.common.data_types import DoubleTensorType, StringTensorType
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from deciban import dropin
from deciban.datasets import weather
from deciban.dropin import register_converters
from deciban.errors import DataError, UsageError

register_converters()

RNG = np.random.default_rng(0)
COUNTS = ("BernoulliNB", "ComplementNB", "MultinomialNB")
LABELS = {"integers": [3, 7, -1], "texts": ["a", "ü", "d'or"], "flags": [False, True]}
each_kind = pytest.mark.parametrize("name", [name for name in dropin.__all__ if name != "register_converters"])


def cells_for(name: str, rows: int) -> np.ndarray:
    if name == "CategoricalNB":
        return RNG.integers(0, [2, 3, 9, 4], (rows, 4)).astype(float)
    if name in COUNTS:
        return RNG.poisson([0.3, 1.0, 2.0, 0.1], (rows, 4)).astype(float)
    return RNG.normal(size=(rows, 4)) @ np.arange(1.0, 17.0).reshape(4, 4) ** 0.5 + 100.0


def run(model: Any, X: Any) -> tuple[Any, Any]:
    """The label and the probabilities of each row."""
    check_model(model)
    label, probabilities = InferenceSession(model.SerializeToString()).run(None, {"X": X})
    return label, probabilities


def converted(clf: Any, X: Any, **options: Any) -> Any:
    return to_onnx(clf, X[:1], options={"zipmap": False, **options})


@each_kind
@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_classifiers_agree(name: str, labels: str, kind: Any) -> None:
    """Of two classes and of three, with missing cells and without, in doubles and in floats."""
    classes = LABELS[labels]
    X, y = cells_for(name, 200).astype(kind), np.array(classes)[RNG.integers(0, len(classes), 200)]
    clf = getattr(dropin, name)().fit(X, y)
    holed = np.where(RNG.random(X.shape) < 0.2, np.nan, X).astype(kind)
    model = converted(clf, X)
    for rows in (X, holed, holed[:1]):
        label, probabilities = run(model, rows)
        assert probabilities.dtype == kind
        assert label.tolist() == clf.predict(rows).tolist()
        np.testing.assert_allclose(probabilities, clf.predict_proba(rows), atol=1e-12 if kind == np.float64 else 1e-7)


def test_a_linear_discriminant_of_two_classes_is_right() -> None:
    """It agrees with the densities of SciPy; skl2onnx's own is off by up to 0.15."""
    X, y = load_breast_cancer(return_X_y=True)
    X = X[:, :4]
    clf = dropin.LinearDiscriminantAnalysis(store_covariance=True).fit(X, y)
    _, probabilities = run(converted(clf, X), X)
    normals = zip(clf.priors_, clf.means_, strict=True)
    joint = np.stack([p * multivariate_normal(m, clf.covariance_).pdf(X) for p, m in normals], axis=1)
    np.testing.assert_allclose(probabilities, joint / joint.sum(axis=1, keepdims=True), atol=1e-9)


@pytest.mark.parametrize(
    ("clf", "X"),
    [
        (dropin.MultinomialNB(alpha=0.0), RNG.poisson(0.4, (60, 6)).astype(float)),
        (dropin.BernoulliNB(alpha=0.0, binarize=1.5), RNG.poisson(0.9, (60, 6)).astype(float)),
        (dropin.CategoricalNB(alpha=0.0, min_categories=5), RNG.integers(0, 4, (60, 6)).astype(float)),
        (dropin.ComplementNB(norm=True), RNG.poisson(0.4, (60, 6)).astype(float)),
        (dropin.GaussianNB(priors=[0.0, 0.3, 0.7]), RNG.normal(size=(60, 6))),
        (dropin.QuadraticDiscriminantAnalysis(reg_param=0.3), RNG.normal(size=(60, 6))),
        (dropin.LinearDiscriminantAnalysis(), np.column_stack([RNG.normal(size=60), np.ones(60)])),
        (dropin.LinearDiscriminantAnalysis(), np.ones((60, 2))),
    ],
    ids=lambda case: type(case).__name__,
)
def test_zero_probabilities_and_columns_without_variance_agree(clf: Any, X: np.ndarray) -> None:
    clf.fit(X[:30], np.arange(30) % 3)
    label, probabilities = run(converted(clf, X), X)
    np.testing.assert_allclose(probabilities, clf.predict_proba(X), atol=1e-12)
    assert label.tolist() == clf.predict(X).tolist()


@pytest.mark.parametrize("name", ["LinearDiscriminantAnalysis", "QuadraticDiscriminantAnalysis"])
def test_raw_scores_are_the_decision_function(name: str) -> None:
    """Of rows with missing cells too; calibration relies on it."""
    X = cells_for(name, 100)
    holed = np.where(RNG.random(X.shape) < 0.2, np.nan, X)
    for classes in (3, 2):
        clf = getattr(dropin, name)().fit(X, RNG.integers(0, classes, 100))
        _, scores = run(converted(clf, X, raw_scores=True), holed)
        expected = clf.decision_function(holed)
        if classes == 2:
            expected = np.column_stack([-expected, expected])
        np.testing.assert_allclose(scores, expected, rtol=1e-9, atol=1e-9)


@each_kind
def test_calibrated_classifiers_agree(name: str) -> None:
    X, y = cells_for(name, 90), np.arange(90) % 3
    clf = CalibratedClassifierCV(getattr(dropin, name)(), cv=2).fit(X, y)
    _, probabilities = run(to_onnx(clf, X[:1], options={id(clf): {"zipmap": False}}), X)
    np.testing.assert_allclose(probabilities, clf.predict_proba(X), atol=1e-6)


def test_scaled_numbers_agree() -> None:
    X, y = load_iris(return_X_y=True)
    for kind in (dropin.GaussianNB, dropin.LinearDiscriminantAnalysis, dropin.QuadraticDiscriminantAnalysis):
        clf = make_pipeline(StandardScaler(), kind()).fit(X, y)
        label, probabilities = run(converted(clf, X), X)
        np.testing.assert_allclose(probabilities, clf.predict_proba(X), atol=1e-12)
        assert label.tolist() == clf.predict(X).tolist()


def test_words_of_texts_agree() -> None:
    texts = np.array(["win money now", "cheap money", "lunch at noon", "see you at lunch", "now or at noon"])
    y = ["spam", "spam", "ham", "ham", "ham"]
    for kind in (dropin.MultinomialNB, dropin.ComplementNB, dropin.BernoulliNB):
        clf = make_pipeline(CountVectorizer(lowercase=False), kind()).fit(texts, y)
        model = to_onnx(clf, initial_types=[("X", StringTensorType([None, 1]))], options={"zipmap": False})
        label, probabilities = run(model, texts[:, None])
        np.testing.assert_allclose(probabilities, clf.predict_proba(texts), atol=1e-6)
        assert label.tolist() == clf.predict(texts).tolist()


def test_categories_of_a_table_agree() -> None:
    table = weather().to_pandas()
    X, y = table.drop(columns="play").to_numpy(dtype=object), table["play"].to_numpy()
    for encoder, classifier in (
        (OneHotEncoder(sparse_output=False), dropin.BernoulliNB()),
        (OrdinalEncoder(), dropin.CategoricalNB()),
    ):
        columns = make_column_transformer((encoder, list(range(X.shape[1]))))
        clf = make_pipeline(columns, classifier).fit(X, y)
        model = to_onnx(clf, initial_types=[("X", StringTensorType([None, X.shape[1]]))], options={"zipmap": False})
        label, probabilities = run(model, X)
        np.testing.assert_allclose(probabilities, clf.predict_proba(X), atol=1e-6)
        assert label.tolist() == clf.predict(X).tolist()


def test_probabilities_are_maps_or_columns_where_that_is_asked_for() -> None:
    X, y = load_iris(return_X_y=True)
    clf = dropin.GaussianNB().fit(X, np.array(["a", "b", "c"])[y])
    _, maps = run(to_onnx(clf, X[:1].astype(np.float32)), X[:5].astype(np.float32))
    expected = clf.predict_proba(X[:5])
    assert [list(one) for one in maps] == [["a", "b", "c"]] * 5
    np.testing.assert_allclose([list(one.values()) for one in maps], expected, atol=1e-6)
    columns = InferenceSession(converted(clf, X, zipmap="columns").SerializeToString()).run(None, {"X": X[:5]})
    np.testing.assert_allclose(np.column_stack([column.ravel() for column in columns[1:]]), expected, atol=1e-12)


def test_a_search_for_parameters_is_converted() -> None:
    X, y = load_iris(return_X_y=True)
    clf = GridSearchCV(dropin.GaussianNB(), {"var_smoothing": [1e-9, 1e-3]}, cv=3).fit(X, y)
    label, _ = run(to_onnx(clf, X[:1], options={id(clf): {"zipmap": False}}), X)
    assert label.tolist() == clf.predict(X).tolist()


def test_columns_may_be_given_one_by_one() -> None:
    X, y = load_iris(return_X_y=True)
    clf = dropin.LinearDiscriminantAnalysis().fit(X, y)
    types = [(f"x{j}", DoubleTensorType([None, 1])) for j in range(4)]
    ready = InferenceSession(to_onnx(clf, initial_types=types, options={"zipmap": False}).SerializeToString())
    label, _ = ready.run(None, {f"x{j}": X[:, j : j + 1] for j in range(4)})
    assert label.tolist() == clf.predict(X).tolist()


@pytest.mark.parametrize(
    ("clf", "cell"),
    [
        (dropin.GaussianNB(), np.inf),
        (dropin.MultinomialNB(), -1.0),
        (dropin.CategoricalNB(), -1.0),
        (dropin.BernoulliNB(binarize=None), 0.5),
        (dropin.QuadraticDiscriminantAnalysis(), -np.inf),
    ],
    ids=lambda case: type(case).__name__,
)
def test_a_refused_row_has_no_probabilities(clf: Any, cell: float) -> None:
    X, y = RNG.integers(0, 2, (20, 2)).astype(float), np.arange(20) % 2
    clf.fit(X, y)
    rows = np.array([[cell, 1.0], [1.0, 1.0]])
    with pytest.raises(DataError):
        clf.predict_proba(rows)
    label, probabilities = run(converted(clf, X), rows)
    assert np.isnan(probabilities).all(axis=1).tolist() == [True, False]
    assert label.tolist() == [np.iinfo(np.int64).min, clf.predict(rows[1:])[0]]


@each_kind
def test_older_versions_of_operators_are_written_too(name: str) -> None:
    X, y = cells_for(name, 60), np.arange(60) % 3
    clf = getattr(dropin, name)().fit(X, y)
    for version in (13, 18):
        model = to_onnx(clf, X[:1], options={"zipmap": False}, target_opset=version)
        assert {one.version for one in model.opset_import if not one.domain} <= {*range(version + 1)}
        np.testing.assert_allclose(run(model, X)[1], clf.predict_proba(X), atol=1e-12)
    with pytest.raises(UsageError, match="target_opset=12: the drop-in classifiers need at least opset 13"):
        to_onnx(clf, X[:1], target_opset=12)


def test_where_skl2onnx_is_not_installed_it_is_said_how_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "skl2onnx", None)
    with pytest.raises(UsageError, match="pip install skl2onnx"):
        register_converters()


def test_whole_numbers_are_an_input_too() -> None:
    X, y = RNG.integers(0, 3, (60, 2)), np.arange(60) % 2
    clf = dropin.CategoricalNB().fit(X, y)
    np.testing.assert_allclose(run(converted(clf, X), X)[1], clf.predict_proba(X), atol=1e-7)
