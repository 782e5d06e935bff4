"""Least risk for any classifier of scikit-learn, among its tools."""

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    StratifiedKFold,
    TunedThresholdClassifierCV,
    cross_val_predict,
    train_test_split,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils import get_tags

from deciban import BayesClassifier, MinimumRisk, Threshold, cost_scorer

RNG = np.random.default_rng(0)
COSTS = {0: 10, 1: 1}


def tumours() -> tuple[np.ndarray, np.ndarray]:
    """A table in units in which logistic regression is found at once."""
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def test_scikit_learns_thresholds_are_oracles() -> None:
    X, y = tumours()
    clf = LogisticRegression(max_iter=10_000).fit(X, y)
    matrix = np.array([[0.0, 1.0], [20.0, 0.0]])  # to call a malignant (0) one benign costs 20
    turning = Threshold.from_loss(matrix[::-1, ::-1], 0.5, (1, 0))
    theirs = FixedThresholdClassifier(clf, threshold=turning.posterior, response_method="predict_proba").fit(X, y)
    ours = MinimumRisk(clf, matrix).fit(X, y)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    train, test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)
    scorer = cost_scorer(matrix)
    tuned = TunedThresholdClassifierCV(clf, scoring=scorer, random_state=0).fit(train, y_train)
    risk = MinimumRisk(clf, matrix).fit(train, y_train)
    assert -risk.score(test, y_test) <= -scorer(tuned, test, y_test) + 0.1


@pytest.mark.parametrize("scored", ["by itself", "by a scorer"])
def test_a_search_scores_by_the_mean_cost(scored: str) -> None:
    """Of the folds, charged by hand: 10 for a class 0 that is called 1, and 1 for a class 1 that is called 0."""
    X, y = tumours()
    plain = make_pipeline(StandardScaler(), LogisticRegression())
    if scored == "by itself":
        clf, name, scoring = MinimumRisk(plain, COSTS), "estimator__logisticregression__C", None
    else:
        clf, name, scoring = plain, "logisticregression__C", cost_scorer(COSTS)
    values = [0.01, 1.0]
    search = GridSearchCV(clf, {name: values}, scoring=scoring, cv=3).fit(X, y)
    for value, found in zip(values, search.cv_results_["mean_test_score"], strict=True):
        decided = cross_val_predict(clone(clf).set_params(**{name: value}), X, y, cv=3)
        charged = np.where(decided == y, 0.0, np.where(y == 0, 10.0, 1.0))
        expected = np.mean([charged[test].mean() for _, test in StratifiedKFold(3).split(X, y)])
        assert found == pytest.approx(-expected)
    assert search.best_score_ == max(search.cv_results_["mean_test_score"])


def test_least_risk_is_a_step_of_a_pipeline() -> None:
    X, y = tumours()
    inside = make_pipeline(StandardScaler(), MinimumRisk(LogisticRegression(), COSTS)).fit(X, y)
    posterior = inside.predict_proba(X)
    np.testing.assert_array_equal(inside.predict(X), np.where(posterior[:, 1] <= 10.0 * posterior[:, 0], 0, 1))


def test_least_risk_may_reject() -> None:
    X, y = tumours()
    rejecting = MinimumRisk(BayesClassifier(), COSTS, reject=0.2).fit(X, y)
    assert set(map(str, rejecting.predict(X))) == {"0", "1", "reject"}
    assert rejecting.decide(X).risk.max() <= 0.2


def test_without_costs_least_risk_is_the_prediction() -> None:
    X, y = tumours()
    zero_one = MinimumRisk(LogisticRegression(max_iter=10_000)).fit(X, y)
    np.testing.assert_array_equal(zero_one.predict(X), zero_one.estimator_.predict(X))
    with pytest.raises(ValueError, match="not one of the classes"):
        zero_one.score(X, y + 5)


def test_costs_of_rows_are_routed() -> None:
    X, y = tumours()
    amounts = RNG.uniform(1, 50, len(y))
    loss = {(1, 0): "amount", (0, 1): 1.0, (0, 0): 0.0, (1, 1): 0.0}
    with sklearn.config_context(enable_metadata_routing=True):
        clf = MinimumRisk(LogisticRegression(max_iter=10_000), loss).set_predict_request(costs=True)
        pipe = make_pipeline(StandardScaler(), clf).fit(X, y)
        routed = pipe.predict(X, costs={"amount": amounts})
    posterior = pipe.predict_proba(X)
    expected = np.where(posterior[:, 1] * 1.0 < posterior[:, 0] * amounts, 0, 1)
    np.testing.assert_array_equal(routed, expected)
    with pytest.raises(ValueError, match="costs="):
        clf.fit(X, y).predict(X)


def test_minimum_risk_of_unusual_estimators() -> None:
    class Reversed(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            self.classes_ = np.unique(y)[::-1]
            return self

        def predict_proba(self, X):
            return np.tile([0.9, 0.1], (len(X), 1))

    y = np.array([0, 1, 1, 1])
    clf = MinimumRisk(Reversed()).fit(np.zeros((4, 1)), y)
    assert clf.predict(np.zeros((4, 1))).tolist() == [1, 1, 1, 1]
    assert clf.score(np.zeros((4, 1)), y) == -0.25
    with pytest.raises(ValueError, match="no predict_proba"):
        MinimumRisk(LinearSVC()).fit(np.zeros((4, 1)), y)
    assert get_tags(MinimumRisk(BayesClassifier())).input_tags.allow_nan
