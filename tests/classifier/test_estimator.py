"""A citizen of scikit-learn."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.ensemble import BaggingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from deciban import BayesClassifier, Binned, Gaussian, JointGaussian, Pooled

X, Y = load_iris(return_X_y=True)


@parametrize_with_checks([BayesClassifier(), BayesClassifier(JointGaussian(Pooled())), BayesClassifier(Binned())])
def test_scikit_learns_own_checks(estimator, check) -> None:
    check(estimator)


def test_pipeline_grid_search_and_cross_validation() -> None:
    pipe = make_pipeline(StandardScaler(), BayesClassifier())
    assert cross_val_score(pipe, X, Y, cv=5).mean() > 0.93
    grid = GridSearchCV(
        BayesClassifier(), {"families": [Gaussian(), JointGaussian(Pooled())], "prior": ["uniform", "empirical"]}, cv=3
    )
    assert grid.fit(X, Y).best_score_ > 0.95
    assert cross_val_predict(BayesClassifier(), X, Y, method="predict_log_proba").shape == (150, 3)
    assert BaggingClassifier(BayesClassifier(), n_estimators=3).fit(X, Y).score(X, Y) > 0.9


def test_frames_pass_through_scikit_learns_splitters() -> None:
    frame = pd.DataFrame({"color": np.where(Y == 0, "red", "blue"), "length": X[:, 0]})
    assert cross_val_score(BayesClassifier(), frame, Y, cv=3).mean() > 0.6


def test_clone_and_parameters() -> None:
    clf = BayesClassifier({0: Binned()}, prior="uniform", alpha=0.5)
    same = clone(clf)
    assert same.get_params() == clf.get_params()
    assert "prior='uniform'" in repr(same)
    same.set_params(alpha=2.0).fit(X, Y)
    assert not hasattr(same, "feature_names_in_")
    assert same.n_features_in_ == 4
    assert "BayesClassifier" in same._repr_html_()
    with pytest.raises(NotFittedError):
        clf.predict(X)
