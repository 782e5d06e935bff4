"""scikit-learn's own displays draw our classifiers."""

import numpy as np
import pytest
from sklearn.calibration import CalibrationDisplay
from sklearn.datasets import load_breast_cancer
from sklearn.inspection import DecisionBoundaryDisplay
from sklearn.metrics import ConfusionMatrixDisplay, RocCurveDisplay, confusion_matrix, roc_auc_score

from deciban import BayesClassifier

from . import cases

assert cases  # which chooses how figures are drawn

X, Y = load_breast_cancer(return_X_y=True)


@pytest.fixture(scope="module", params=[None, "weights"])
def clf(request: pytest.FixtureRequest) -> BayesClassifier:
    return BayesClassifier(tune=request.param).fit(X[::2, :4], Y[::2])


def test_the_confusion_matrix(clf: BayesClassifier) -> None:
    shown = ConfusionMatrixDisplay.from_estimator(clf, X[1::2, :4], Y[1::2])
    expected = confusion_matrix(Y[1::2], clf.predict(X[1::2, :4]))
    assert [[int(text.get_text()) for text in row] for row in shown.text_] == expected.tolist()


def test_the_roc_curve(clf: BayesClassifier) -> None:
    shown = RocCurveDisplay.from_estimator(clf, X[1::2, :4], Y[1::2])
    auc = np.asarray(shown.roc_auc).item()
    assert auc == pytest.approx(roc_auc_score(Y[1::2], clf.predict_proba(X[1::2, :4])[:, 1]))
    assert auc == pytest.approx(clf.evaluate(X[1::2, :4], Y[1::2]).roc_auc)


def test_the_calibration_curve(clf: BayesClassifier) -> None:
    shown = CalibrationDisplay.from_estimator(clf, X[1::2, :4], Y[1::2], n_bins=4)
    chance = clf.predict_proba(X[1::2, :4])[:, 1]
    first = chance <= 0.25
    assert shown.prob_true[0] == pytest.approx(Y[1::2][first].mean())


def test_the_decision_boundary(clf: BayesClassifier) -> None:
    two = BayesClassifier(tune=clf.tune).fit(X[::2, :2], Y[::2])
    shown = DecisionBoundaryDisplay.from_estimator(two, X[::2, :2], response_method="predict", grid_resolution=20)
    points = np.stack([shown.xx0.ravel(), shown.xx1.ravel()], axis=1)
    assert (shown.response.ravel() == two.predict(points)).all()
