"""Costs of rows and weights, by scikit-learn's metadata routing."""

import numpy as np
import pandas as pd
import pytest
import sklearn.compose
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from deciban import MinimumRisk, cost_scorer, mean_cost

X, y = load_breast_cancer(return_X_y=True)
AMOUNT = np.random.default_rng(0).uniform(1, 50, len(y))
WEIGHTS = np.random.default_rng(1).uniform(0, 2, len(y))
LOSS = {(1, 0): "amount", (0, 1): 1.0, (0, 0): 0.0, (1, 1): 0.0}
FOLDS = KFold(4, shuffle=True, random_state=0)


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def mean_costs_by_hand(amounts: np.ndarray = AMOUNT) -> list[float]:
    """Minus the mean cost of each fold, by the definition of least risk."""
    found = []
    for inside, outside in FOLDS.split(X):
        posterior = GaussianNB().fit(X[inside], y[inside]).predict_proba(X[outside])
        amount, truth = amounts[outside], y[outside]
        decided = np.where(posterior[:, 1] < posterior[:, 0] * amount, 0, 1)
        spent = np.where(decided == truth, 0.0, np.where(decided == 1, amount, 1.0))
        found.append(-spent.mean())
    return found


def test_weights_reach_just_the_estimator_that_asks_for_them(routing) -> None:
    plain, weighted = (GaussianNB().fit(X, y, weights) for weights in (None, WEIGHTS))
    asking = MinimumRisk(GaussianNB().set_fit_request(sample_weight=True)).fit(X, y, sample_weight=WEIGHTS)
    np.testing.assert_array_equal(asking.estimator_.theta_, weighted.theta_)
    refusing = MinimumRisk(GaussianNB().set_fit_request(sample_weight=False)).set_score_request(sample_weight=True)
    found = cross_validate(
        refusing, X, y, cv=FOLDS, params={"sample_weight": WEIGHTS}, return_estimator=True, error_score="raise"
    )
    inside, outside = next(FOLDS.split(X))
    alone = plain.fit(X[inside], y[inside])
    np.testing.assert_array_equal(found["estimator"][0].estimator_.theta_, alone.theta_)
    wrong = alone.predict(X[outside]) != y[outside]
    assert found["test_score"][0] == pytest.approx(-np.average(wrong, weights=WEIGHTS[outside]))
    with pytest.raises(TypeError, match="sample_weight"):
        refusing.fit(X, y, sample_weight=WEIGHTS)
    with pytest.raises(UnsetMetadataPassedError, match="sample_weight"):
        MinimumRisk(GaussianNB()).fit(X, y, sample_weight=WEIGHTS)


def test_without_routing_weights_go_to_the_estimator() -> None:
    clf = MinimumRisk(GaussianNB()).fit(X, y, sample_weight=WEIGHTS)
    np.testing.assert_array_equal(clf.estimator_.theta_, GaussianNB().fit(X, y, WEIGHTS).theta_)


@pytest.mark.parametrize("costs", [AMOUNT, pd.DataFrame({"amount": AMOUNT, "other": 0.0})], ids=["array", "table"])
def test_costs_of_rows_are_cross_validated(routing, costs) -> None:
    clf = MinimumRisk(GaussianNB(), LOSS).set_score_request(costs=True)
    found = cross_validate(clf, X, y, cv=FOLDS, params={"costs": costs})
    np.testing.assert_allclose(found["test_score"], mean_costs_by_hand())
    search = GridSearchCV(clf, {"estimator__var_smoothing": [1e-9, 1e-2]}, cv=FOLDS).fit(X, y, costs=costs)
    np.testing.assert_allclose(search.cv_results_["mean_test_score"][0], np.mean(mean_costs_by_hand()))
    assert search.score(X, y, costs=costs) == pytest.approx(search.best_estimator_.score(X, y, costs=costs))


def test_costs_that_are_columns_need_no_routing() -> None:
    frame = pd.DataFrame(X).rename(columns=str).assign(amount=AMOUNT)
    features = make_pipeline(
        sklearn.compose.ColumnTransformer([("kept", "passthrough", list(frame)[:-1])]), GaussianNB()
    )
    found = cross_validate(MinimumRisk(features, LOSS), frame, y, cv=FOLDS)
    np.testing.assert_allclose(found["test_score"], mean_costs_by_hand())


def test_costs_of_rows_for_a_scorer(routing) -> None:
    scorer = cost_scorer(LOSS).set_score_request(costs=True)
    clf = make_pipeline(StandardScaler(), LogisticRegression())
    found = cross_validate(clf, X, y, cv=FOLDS, scoring=scorer, params={"costs": AMOUNT})["test_score"]
    inside, outside = next(FOLDS.split(X))
    decided, truth = clf.fit(X[inside], y[inside]).predict(X[outside]), y[outside]
    spent = np.where(decided == truth, 0.0, np.where(decided == 1, AMOUNT[outside], 1.0))
    assert found[0] == pytest.approx(-spent.mean())
    assert mean_cost(truth, decided, loss=LOSS, costs={"amount": AMOUNT[outside]}) == pytest.approx(spent.mean())


def test_costs_that_nobody_gave_are_asked_for() -> None:
    clf = MinimumRisk(GaussianNB(), LOSS).fit(X, y)
    for costs in (None, {}, pd.DataFrame({"other": AMOUNT})):
        with pytest.raises(ValueError, match=r"the costs 'amount' of the loss are missing; pass them in costs="):
            clf.predict(X, costs=costs)
