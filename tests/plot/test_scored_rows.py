"""Pictures of rows whose class is known: reliability, coverage, costs; against counting and scikit-learn."""

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.calibration import calibration_curve
from sklearn.datasets import load_breast_cancer, load_iris

from deciban import BayesClassifier, DataError, Loss, UsageError
from deciban.plot import CostDisplay, CoverageDisplay, ReliabilityDisplay

X, Y = load_breast_cancer(return_X_y=True)
TRAIN, TEST = slice(0, None, 2), slice(1, None, 2)
LOSS = {(1, 0): 10.0, (0, 1): 1.0}


@pytest.fixture(scope="module")
def plain() -> BayesClassifier:
    return BayesClassifier(tune=None).fit(X[TRAIN], Y[TRAIN])


@pytest.fixture(scope="module")
def tuned() -> BayesClassifier:
    return BayesClassifier(tune="weights").fit(X[TRAIN], Y[TRAIN])


def test_points_are_the_shares_that_were_right(plain: BayesClassifier) -> None:
    shown = ReliabilityDisplay.from_estimator(plain, X[TEST], Y[TEST])
    claims = plain.predict_proba(X[TEST])
    right, claimed = calibration_curve(claims.argmax(axis=1) == Y[TEST], claims.max(axis=1), n_bins=15)
    (points,) = [one for one in shown.ax_.collections if len(one.get_offsets()) == len(right)]
    np.testing.assert_allclose(points.get_offsets(), np.stack([claimed, right], axis=1))
    frame = shown.to_frame()
    hollow = (points.get_facecolors()[:, :3] == 1.0).all(axis=1)
    np.testing.assert_array_equal(hollow, frame.rows < 20)
    assert hollow.any()
    joined = shown.ax_.lines[1].get_xdata()
    np.testing.assert_array_equal(np.isnan(joined), hollow)
    for row in frame.itertuples():
        expected = binomtest(round(row.observed * row.rows), int(row.rows)).proportion_ci(method="wilson")
        assert (row.low, row.high) == pytest.approx((expected.low, expected.high), abs=1e-6)
    assert [bar.get_height() for bar in shown.axes_[1].patches] == shown.to_frame().rows.tolist()
    assert shown.to_frame().rows.sum() == len(Y[TEST])


def test_a_tuned_model_stands_beside_plain_bayes(tuned: BayesClassifier, plain: BayesClassifier) -> None:
    shown = ReliabilityDisplay.from_estimator(tuned, X[TEST], Y[TEST])
    assert list(shown.calibrations) == ["plain Bayes", "tuned"]
    for name, clf in (("plain Bayes", plain), ("tuned", tuned)):
        expected = clf.evaluate(X[TEST], Y[TEST]).calibration
        np.testing.assert_allclose(shown.calibrations[name].sums, expected.sums, atol=1e-9)
    labels = [text.get_text() for text in shown.figure_.legends[0].get_texts()]
    assert (
        labels[1] == f"tuned: expected calibration error {shown.calibrations['tuned'].expected_calibration_error:.3g}"
    )


def test_rows_that_were_learned_are_left_out(tuned: BayesClassifier, plain: BayesClassifier) -> None:
    remembered = ReliabilityDisplay.from_estimator(tuned)
    given = ReliabilityDisplay.from_estimator(tuned, X[TRAIN], Y[TRAIN], leave_one_out=True)
    expected = tuned.leave_one_out().calibration()
    for shown in (remembered, given):
        np.testing.assert_allclose(shown.calibrations["tuned"].sums, expected.sums, atol=1e-9)
    before = plain.leave_one_out().calibration()
    np.testing.assert_allclose(given.calibrations["plain Bayes"].sums, before.sums, atol=1e-9)


def test_predictions_of_any_classifier_can_be_drawn(plain: BayesClassifier) -> None:
    claims = plain.predict_proba(X[TEST])
    shown = ReliabilityDisplay.from_predictions(Y[TEST], claims, name="mine")
    np.testing.assert_allclose(
        shown.calibrations["mine"].sums,
        ReliabilityDisplay.from_estimator(plain, X[TEST], Y[TEST]).calibrations["model"].sums,
    )
    with pytest.raises(UsageError, match="one column per class"):
        ReliabilityDisplay.from_predictions(Y[TEST], claims[:, :1])
    with pytest.raises(DataError, match="not among"):
        ReliabilityDisplay.from_predictions(["what"] * len(claims), claims, classes=[0, 1])


def test_the_coverage_curve_is_the_error_of_the_surest_rows(plain: BayesClassifier) -> None:
    iris, kinds = load_iris(return_X_y=True)
    clf = BayesClassifier(tune=None).fit(iris[TRAIN], kinds[TRAIN])
    shown = CoverageDisplay.from_estimator(clf, iris[TEST], kinds[TEST], reject=0.2)
    claims = clf.predict_proba(iris[TEST])
    doubt, wrong = 1.0 - claims.max(axis=1), claims.argmax(axis=1) != kinds[TEST]
    x, y = shown.ax_.lines[0].get_data()
    for coverage, error in zip(x, y, strict=True):
        surest = np.argsort(doubt, kind="stable")[: round(coverage * len(doubt))]
        assert error == pytest.approx(wrong[surest].mean())
    decided = doubt <= 0.2
    marked = shown.ax_.lines[2]
    assert (marked.get_xdata()[0], marked.get_ydata()[0]) == pytest.approx((decided.mean(), wrong[decided].mean()))
    assert list(shown.to_frame()) == ["reject", "coverage", "risk", "cost"]
    dear = CoverageDisplay.from_predictions(Y[TEST], plain.predict_proba(X[TEST]), loss=LOSS)
    assert dear.curve.risk[-1] == pytest.approx(plain.evaluate(X[TEST], Y[TEST], loss=LOSS).mean_cost)


def test_costs_against_the_threshold_are_counted_costs(plain: BayesClassifier) -> None:
    shown = CostDisplay.from_estimator(plain, X[TEST], Y[TEST], loss=LOSS)
    chance = plain.predict_proba(X[TEST])[:, 1]
    x, cost = shown.ax_.lines[0].get_data()
    for k in range(0, x.size, 50):
        said = (chance > x[k]).astype(int)
        costs = np.where(said == Y[TEST], 0.0, np.where(said == 1, 10.0, 1.0))
        assert cost[k] == pytest.approx(costs.mean())
    assert shown.reference == pytest.approx(10 / 11)
    other = CostDisplay.from_estimator(plain, X[TEST], Y[TEST], loss=LOSS, label=0)
    assert other.reference == pytest.approx(1 / 11)
    assert list(shown.to_frame()) == ["threshold", "mean cost"]


def test_costs_against_the_prior_are_those_of_rows_drawn_so(plain: BayesClassifier) -> None:
    shown = CostDisplay.from_estimator(plain, X[TEST], Y[TEST], loss=LOSS, x_axis="prior")
    k = 12
    prior = shown.x[k]
    wanted = np.where(Y[TEST] == 1, prior, 1.0 - prior)
    weights = wanted / np.bincount(Y[TEST])[Y[TEST]]
    now = plain.decide(X[TEST], LOSS)
    told = plain.with_prior({0: 1.0 - prior, 1: prior}).decide(X[TEST], LOSS)
    for name, decisions in (("current decisions", now), ("decisions adapted to the prior", told)):
        costs = [
            Loss.from_costs(LOSS).for_classes([0, 1])[d, t] for d, t in zip(decisions.decision, Y[TEST], strict=True)
        ]
        assert shown.costs[name][k] == pytest.approx(np.dot(weights, costs), rel=1e-9), name
    assert shown.reference == pytest.approx((Y[TRAIN] == 1).mean())


def test_bad_questions_about_costs_are_refused(plain: BayesClassifier) -> None:
    iris, kinds = load_iris(return_X_y=True)
    clf = BayesClassifier(tune=None).fit(iris, kinds)
    with pytest.raises(UsageError, match="two classes, found 3"):
        CostDisplay.from_estimator(clf, iris, kinds)
    with pytest.raises(UsageError, match="unknown class 7"):
        CostDisplay.from_estimator(plain, X, Y, label=7)
    with pytest.raises(UsageError, match="choose 'threshold' or 'prior'"):
        CostDisplay.from_estimator(plain, X, Y, x_axis="cost")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="rows of this class and of at least one other"):
        CostDisplay.from_estimator(plain, X[Y == 1], Y[Y == 1], x_axis="prior")
    with pytest.raises(DataError, match="no row has a label"):
        ReliabilityDisplay.from_estimator(plain, X[:2], Y[:2], sample_weight=[0.0, 0.0])


def test_a_model_of_a_file_does_not_remember_rows(plain: BayesClassifier) -> None:
    again = BayesClassifier.from_fitted(plain.fitted_)
    for display in (ReliabilityDisplay, CoverageDisplay, CostDisplay):
        with pytest.raises(UsageError, match="pass X and y"):
            display.from_estimator(again)
