"""The drop-in classifiers: scikit-learn's own tests and checks, and what is better here."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sklearn.tests
from scipy import sparse
from sklearn import discriminant_analysis, naive_bayes
from sklearn.datasets import load_digits, load_iris
from sklearn.metrics import classification_report
from sklearn.model_selection import cross_val_score, train_test_split
from sklearn.utils.estimator_checks import parametrize_with_checks

from deciban import dropin

ROOT = Path(__file__).parent.parent.parent
ALL = [thing for thing in map(vars(dropin).get, dropin.__all__) if isinstance(thing, type)]
CLASSES = [kind for kind in ALL if kind.__name__.endswith("NB")]
DISCRIMINANTS = [kind for kind in ALL if kind not in CLASSES]
RNG = np.random.default_rng(0)
COUNTS = RNG.poisson(2.0, (120, 5))
Y = np.arange(120) % 3

# scikit-learn's tests that do not hold here, and why.
EXCEPTIONS = {
    "test_check_accuracy_on_digits": "its bound of 0.89 for GaussianNB(var_smoothing=0.1) rests on a tenth of the "
    "largest column's variance being added to every column; with a tenth of the column's own it is 0.875 (and with the "
    "default 0.858, where scikit-learn has 0.811)",
    "test_qda_regularization": "it wants a LinAlgError for a covariance matrix without inverse; here such a matrix is "
    "raised in units of the columns' own deviations, and the classifier works",
}


@parametrize_with_checks([kind() for kind in ALL])
def test_scikit_learns_own_checks(estimator, check) -> None:
    check(estimator)


@pytest.mark.parametrize(("name", "least"), [("test_naive_bayes.py", 80), ("test_discriminant_analysis.py", 55)])
def test_scikit_learns_own_tests_pass_with_our_classes_in_their_place(name: str, least: int) -> None:
    suite = Path(sklearn.tests.__file__).parent / name
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.dropin.swapped", "-p", "no:cacheprovider"]
    command += ["-c", "/dev/null", "--rootdir", str(suite.parent), "--import-mode=importlib", str(suite)]
    command += ["-k", " and ".join(f"not {exception}" for exception in EXCEPTIONS)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    passed = int(done.stdout.split(" passed")[0].split()[-1])
    assert passed >= least, done.stdout[-500:]


def test_the_exception_is_what_it_is_said_to_be() -> None:
    X, y = load_digits(return_X_y=True)
    scores = [cross_val_score(dropin.GaussianNB(var_smoothing=share), X, y, cv=10).mean() for share in (1e-9, 0.1)]
    assert scores == pytest.approx([0.858, 0.875], abs=0.002)


def test_a_class_that_never_varies_takes_a_share_of_the_columns_variance() -> None:
    x = np.array([[0.0], [0.0], [10.0], [30.0]])
    clf = dropin.GaussianNB().fit(x, [0, 0, 1, 1])
    np.testing.assert_allclose(clf.var_[:, 0], [x.var() / 3, 100.0], rtol=1e-8)


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("weights", [None, RNG.random(120)], ids=["plain", "weighted"])
def test_results_are_scikit_learns(kind, weights) -> None:
    theirs = getattr(naive_bayes, kind.__name__)().fit(COUNTS, Y, weights)
    ours = kind().fit(COUNTS, Y, weights)
    np.testing.assert_allclose(ours.predict_proba(COUNTS), theirs.predict_proba(COUNTS), rtol=1e-6)
    np.testing.assert_array_equal(ours.predict(COUNTS), theirs.predict(COUNTS))
    np.testing.assert_allclose(
        ours.predict_joint_log_proba(COUNTS), theirs.predict_joint_log_proba(COUNTS), rtol=1e-6, atol=1e-9
    )
    for name in (
        "class_count_",
        "class_prior_",
        "theta_",
        "var_",
        "class_log_prior_",
        "feature_count_",
        "feature_log_prob_",
    ):
        if hasattr(theirs, name):
            for a, b in zip(getattr(ours, name), getattr(theirs, name), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_batches_give_what_fit_gives(kind) -> None:
    whole, parts = kind().fit(COUNTS, Y), kind()
    for start in range(0, 120, 17):
        rows = slice(start, start + 17)
        parts.partial_fit(COUNTS[rows], Y[rows], classes=[0, 1, 2])
    np.testing.assert_allclose(parts.predict_proba(COUNTS), whole.predict_proba(COUNTS), rtol=1e-10)


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_missing_cells_and_sparse_input(kind) -> None:
    holed = COUNTS.astype(float)
    holed[::7, 1] = np.nan
    assert not np.isnan(kind().fit(holed, Y).predict_proba(holed)).any()
    if kind in CLASSES and kind is not dropin.GaussianNB:
        dense = kind().fit(COUNTS, Y).predict_proba(COUNTS)
        np.testing.assert_allclose(
            kind().fit(sparse.csr_array(COUNTS), Y).predict_proba(sparse.csc_array(COUNTS)), dense
        )


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_a_refused_batch_changes_nothing(kind) -> None:
    clf = kind().fit(COUNTS, Y)
    before = clf.predict_proba(COUNTS)
    with pytest.raises(ValueError, match="do not exist in the initial classes"):
        clf.partial_fit(COUNTS[:1], [7])
    np.testing.assert_array_equal(clf.predict_proba(COUNTS), before)


def test_units_do_not_matter() -> None:
    """One column in nanoseconds does not ruin the others."""
    X, y = load_iris(return_X_y=True)
    scaled = X * np.array([1e9, 1.0, 1e-9, 1.0])
    np.testing.assert_allclose(
        dropin.GaussianNB().fit(scaled, y).predict_proba(scaled),
        dropin.GaussianNB().fit(X, y).predict_proba(X),
        rtol=1e-6,
    )
    assert not np.isnan(dropin.GaussianNB().fit(X, y).predict_proba([[1e300, -1e300, 0.0, 1e160]])).any()


def test_a_category_never_seen_is_no_evidence() -> None:
    clf = dropin.CategoricalNB().fit([[0], [1], [0]], [0, 1, 0])
    np.testing.assert_allclose(clf.predict_proba([[9]]), [[2 / 3, 1 / 3]])


def test_the_script_of_every_tutorial() -> None:
    from deciban.dropin import BernoulliNB, GaussianNB, MultinomialNB

    X, y = load_iris(return_X_y=True, as_frame=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=42)
    for model in (GaussianNB(), MultinomialNB(), BernoulliNB(binarize=2.0)):
        model.fit(X_train, y_train)
        report = classification_report(y_test, model.predict(X_test), zero_division=0)
        assert "accuracy" in report
        assert cross_val_score(model, X, y, cv=5).mean() > 0.5
        assert model.predict_proba(X_test).shape == (45, 3)
    assert isinstance(X_test, pd.DataFrame)


@pytest.mark.parametrize(
    ("kind", "parameters"),
    [
        ("LinearDiscriminantAnalysis", {}),
        ("LinearDiscriminantAnalysis", {"solver": "lsqr", "shrinkage": 0.3}),
        ("LinearDiscriminantAnalysis", {"solver": "eigen", "shrinkage": "auto"}),
        ("QuadraticDiscriminantAnalysis", {}),
        ("QuadraticDiscriminantAnalysis", {"reg_param": 0.2}),
        ("QuadraticDiscriminantAnalysis", {"solver": "eigen", "shrinkage": 0.3}),
    ],
    ids=str,
)
def test_discriminants_are_scikit_learns(kind: str, parameters: dict) -> None:
    X, y = load_iris(return_X_y=True)
    theirs = getattr(discriminant_analysis, kind)(**parameters).fit(X, y)
    ours = getattr(dropin, kind)(**parameters).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), rtol=1e-5, atol=1e-10)
    np.testing.assert_allclose(ours.means_, theirs.means_)
    np.testing.assert_allclose(ours.priors_, theirs.priors_)
    if hasattr(theirs, "explained_variance_ratio_") and not parameters:
        np.testing.assert_allclose(ours.explained_variance_ratio_, theirs.explained_variance_ratio_)
        np.testing.assert_allclose(np.abs(ours.transform(X)), np.abs(theirs.transform(X)), rtol=1e-6, atol=1e-9)
    found = X @ ours.coef_.T + ours.intercept_ if hasattr(ours, "coef_") else ours.decision_function(X)
    np.testing.assert_allclose(found, ours.decision_function(X), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("kind", DISCRIMINANTS, ids=lambda kind: kind.__name__)
def test_discriminants_in_meters_with_weights_and_given_priors(kind) -> None:
    X, y = load_iris(return_X_y=True)
    scaled = X * [1e-9, 1.0, 1e6, 1.0]
    np.testing.assert_allclose(
        kind().fit(scaled, y).predict_proba(scaled), kind().fit(X, y).predict_proba(X), rtol=1e-5, atol=1e-12
    )
    weights = RNG.integers(0, 4, 150)
    weights[:4] = weights[60:64] = weights[110:114] = 2
    repeated = np.repeat(np.arange(150), weights)
    heavy, plain = kind().fit(X, y, weights), kind().fit(X[repeated], y[repeated])
    np.testing.assert_allclose(heavy.predict_proba(X), plain.predict_proba(X), rtol=1e-6, atol=1e-12)
    given, counted = (clf.fit(X, y).predict_joint_log_proba(X) for clf in (kind(priors=[0.7, 0.2, 0.1]), kind()))
    np.testing.assert_allclose(given - counted, np.tile(np.log([2.1, 0.6, 0.3]), (150, 1)), rtol=1e-9)
