"""Losses, least risk, reject, thresholds: against enumeration and scikit-learn."""

import itertools
import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import sklearn
from hypothesis import given, settings, strategies as st
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV, TunedThresholdClassifierCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils import get_tags

import deciban.decisions.loss
from deciban import BayesClassifier, Loss, MinimumRisk, Threshold, bayes, cost_scorer, decide, mean_cost
from deciban.scoring import loss_for
from tests import textbook

X, Y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])
CLF = textbook().fit(X, NAMES[Y])
RNG = np.random.default_rng(0)


def random_loss(rng, decisions: int, classes: int) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return rng.uniform(-1, 10, (decisions, classes))


@pytest.mark.filterwarnings("ignore:to decide")
@pytest.mark.parametrize("decisions", [1, 2, 3, 5])
def test_least_risk_is_the_minimum_of_the_enumerated_risks(decisions: int) -> None:
    matrix = RNG.uniform(-1, 10, (decisions, 3))
    loss = Loss(matrix, decisions=[f"do {d}" for d in range(decisions)])
    found = CLF.decide(X, loss)
    posterior = CLF.predict_proba(X)
    for i in range(0, 150, 10):
        risks = [sum(matrix[d, c] * posterior[i, c] for c in range(3)) for d in range(decisions)]
        best = int(np.argmin(risks))
        assert found.decision[i] == f"do {best}"
        assert found.risk[i] == pytest.approx(risks[best])
        np.testing.assert_allclose(CLF.risk(X[i : i + 1], loss)[0], risks)
        if decisions > 1:
            second = int(np.argsort(risks, kind="stable")[1])
            assert found.runner_up[i] == f"do {second}"
            assert found.runner_up_risk[i] == pytest.approx(risks[second])
        else:
            assert found.runner_up[i] == "do 0"


def test_posteriors_are_decided_without_a_model() -> None:
    """By enumeration, and as a classifier decides its own; whatever holds the posteriors."""
    assert deciban.decide is decide  # though deciban.decisions was imported
    posterior = RNG.dirichlet([0.5, 0.5, 0.5], 40)
    matrix = np.array([[0.0, 1.0, 50.0], [2.0, 0.0, 1.0], [1.0, 9.0, 0.0], [0.7, 0.7, 0.7]])
    risks = posterior @ matrix.T
    named = Loss(matrix, decisions=["a", "b", "c", "wait"], classes=["a", "b", "c"])
    frame = pd.DataFrame(posterior[:, [2, 0, 1]], columns=["c", "a", "b"])
    written = frame.rename(columns=lambda name: f"P({name})").assign(id=range(40))
    for table in (frame, written, pa.Table.from_pandas(frame), {name: frame[name].tolist() for name in "bac"}):
        found = decide(table, named)
        np.testing.assert_array_equal(found.decision, np.array(["a", "b", "c", "wait"])[risks.argmin(axis=1)])
        np.testing.assert_allclose(found.risk, risks.min(axis=1))
        np.testing.assert_allclose(found.runner_up_risk, np.sort(risks, axis=1)[:, 1])
    np.testing.assert_array_equal(decide(posterior, matrix[:3]).decision, risks[:, :3].argmin(axis=1))
    found = decide(posterior, named, classes=["a", "b", "c"])
    np.testing.assert_allclose(found.risk, risks.min(axis=1))
    mine, theirs = decide(CLF.predict_proba(X), matrix[:3], classes=CLF.classes_, reject=0.1), CLF.decide(
        X, matrix[:3], reject=0.1
    )  # fmt: skip
    assert str(mine) == str(theirs)
    assert (decide(CLF.predict_proba(X), classes=CLF.classes_).decision == CLF.predict(X)).all()
    belief = bayes(0.05, (0.9, 0.08), names=("ill", "well"))
    assert decide(belief, {"ill": 1, "well": 1}).decision.tolist() == ["well"]
    assert decide(belief, {"ill": 2, "well": 1}).decision.tolist() == ["ill"]


def test_costs_of_rows_without_a_model() -> None:
    amount = np.array([10.0, 1000.0])
    frame = pd.DataFrame({"good": [0.95, 0.95], "bad": [0.05, 0.05], "amount": amount})
    loss = {("pay", "bad"): "amount", ("pay", "good"): 0.0, ("check", "bad"): 5.0, ("check", "good"): 5.0}
    found = decide(frame, loss)
    assert found.decision.tolist() == ["pay", "check"]
    np.testing.assert_allclose(found.risk, [0.5, 5.0])
    array = frame[["good", "bad"]].to_numpy()
    again = decide(array, loss, classes=["good", "bad"], costs={"amount": amount})
    assert str(again) == str(found)
    with pytest.raises(ValueError, match="names the costs 'amount'"):
        decide(array, loss, classes=["good", "bad"])


@pytest.mark.parametrize(
    ("posterior", "given", "message"),
    [
        ([[0.5, 0.4]], {}, r"row 0: 0.5, 0.4 is no posterior"),
        ([[0.5, 0.5], [1.5, -0.5]], {}, r"row 1: 1.5, -0.5 is no posterior"),
        ([[np.nan, 1.0]], {}, "no posterior"),
        ([[0.5, 0.5]], {"loss": {"a": 1, "b": 2}}, "say which class each column is of"),
        ([[0.5, 0.5]], {"classes": ["a"]}, "2 columns for 1 classes"),
        ({"a": [0.5], "b": [0.5]}, {"loss": {"a": 1, "c": 2}}, "no column 'c'; there are 'a', 'b'"),
        ([[0.5, 0.5]], {"reject": -1.0}, "at least 0"),
    ],
)
def test_what_is_no_posterior_is_refused(posterior, given, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        decide(posterior, **given)


def test_a_transposed_matrix_gives_other_decisions() -> None:
    matrix = np.array([[0, 1, 50], [2, 0, 1], [1, 9, 0]], dtype=float)
    one, other = (CLF.decide(X, m).decision for m in (matrix, matrix.T))
    assert (one != other).any()


def test_zero_one_decisions_are_predictions() -> None:
    for loss in (None, 1.0 - np.eye(3), Loss.zero_one(NAMES)):
        found = CLF.decide(X, loss)
        np.testing.assert_array_equal(found.decision, CLF.predict(X))
        np.testing.assert_allclose(found.risk, 1.0 - CLF.predict_proba(X).max(axis=1), atol=1e-12)
        assert (found.runner_up != found.decision).all()


def test_ties_go_to_the_first_decision() -> None:
    clf = textbook(prior="uniform").fit([[0], [1], [0], [1]], ["b", "b", "a", "a"])
    assert clf.decide([[0]], [[1, 1], [1, 1]]).decision.tolist() == ["a"]
    assert clf.decide([[0]], {("b", "a"): 1, ("b", "b"): 0, ("a", "b"): 1}).decision.tolist() == ["b"]
    assert clf.decide([[0]], reject=0.5).decision.tolist() == ["a"]  # rejecting comes last


def test_classes_of_probability_zero() -> None:
    clf = textbook(prior=[1.0, 0.0, 0.0]).fit(X, Y)
    found = clf.decide(X, [[0, 1e6, 1e6], [1, 0, 0], [1, 0, 0]])
    assert (found.decision == 0).all()
    assert (found.risk == 0.0).all()


@pytest.mark.parametrize(("cost", "share"), [(0.0, 0.0), (1.0, 1.0), (np.inf, 1.0)])
def test_reject_at_both_ends(cost: float, share: float) -> None:
    clf = textbook(prior=[0.4, 0.3, 0.3]).fit(RNG.normal(size=(90, 2)), np.arange(90) % 3)
    found = clf.decide(RNG.normal(size=(50, 2)), reject=cost)
    assert (found.decision != "reject").mean() == share


def test_reject_is_a_constant_row() -> None:
    by_option = CLF.decide(X, reject=0.1)
    by_row = CLF.decide(X, np.concatenate([1.0 - np.eye(3), np.full((1, 3), 0.1)]))
    np.testing.assert_array_equal(by_option.decision, by_row.decision)
    assert "reject" in by_option.decision
    with pytest.raises(ValueError, match="already"):
        CLF.decide(X, np.concatenate([1.0 - np.eye(3), np.full((1, 3), 0.1)]), reject=0.2)
    with pytest.raises(ValueError, match="reject=-1"):
        CLF.decide(X, reject=-1)


def test_the_coverage_curve_is_what_deciding_at_each_cost_gives() -> None:
    curve = CLF.coverage_curve(X, NAMES[Y])
    for k in range(0, curve.reject.size, 7):
        decisions = CLF.decide(X, reject=curve.reject[k])
        decided = decisions.decision != "reject"
        assert curve.coverage[k] == pytest.approx(decided.mean())
        wrong = decisions.decision[decided] != NAMES[Y][decided]
        assert curve.risk[k] == pytest.approx(wrong.mean() if decided.any() else 0.0)
        spent = np.where(decided, decisions.decision != NAMES[Y], curve.reject[k])
        assert curve.cost[k] == pytest.approx(spent.mean())
    assert curve.coverage[-1] == 1.0
    chosen = curve.choose(coverage=0.9)
    assert (CLF.decide(X, reject=chosen).decision != "reject").mean() >= 0.9
    assert curve.choose(risk=1.0) == curve.reject[-1]
    with pytest.raises(ValueError, match="one of the two"):
        curve.choose()


def test_a_loss_may_be_said_in_many_ways(tmp_path) -> None:
    pairs = {
        ("healthy", "sick"): 100,
        ("sick", "healthy"): 1,
        ("test", "sick"): 5,
        ("test", "healthy"): 5,
        ("healthy", "healthy"): 0,
    }
    loss = Loss.of(pairs)
    expected = [[0.0, 100.0], [1.0, 0.0], [5.0, 5.0]]
    assert loss.for_classes(["healthy", "sick"]).matrix.tolist() == expected
    frame = pd.DataFrame(expected, index=["healthy", "sick", "test"], columns=["healthy", "sick"])
    (tmp_path / "loss.csv").write_text("decide,sick,healthy\nhealthy,100,0\nsick,0,1\ntest,5,5\n")
    for said in (frame, frame[["sick", "healthy"]], tmp_path / "loss.csv", str(tmp_path / "loss.csv"), loss):
        fitting = Loss.of(said).for_classes(["healthy", "sick"])
        assert fitting.matrix.tolist() == expected
        assert fitting.decisions == ("healthy", "sick", "test")
    assert Loss.of({"healthy": 1, "sick": 100}).matrix.tolist() == [[0, 100], [1, 0]]
    assert str(Loss.of(frame)).splitlines() == [
        "decide   if healthy  if sick",
        "healthy           0      100",
        "sick              1        0",
        "test              5        5",
    ]
    numbers = Loss.of({(0, 1): 3, (1, 0): 2}).for_classes(np.array([0, 1]))
    assert numbers.matrix.tolist() == [[0, 3], [2, 0]]


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        ([[0, 1], [1, 0]], "2 columns, the model 3 classes"),
        ([[0, 1, np.nan]] * 3, "finite"),
        ([[0, 1, 2], [1, 0]], "different lengths"),
        (5, "matrix of decisions by classes"),
        ({("a", "b"): 1}, "does not fit the classes"),
        ({("setosa", "virginica"): 1, ("virginica", "versicolor"): 2}, "does not say what it costs"),
        (np.zeros((5, 3)), "5 decisions for 3 classes"),
        (Loss(np.zeros((2, 3)), decisions=["x", "y"], classes=["a", "b", "c"]), "does not fit"),
        ("nowhere.csv", "cannot be read"),
    ],
)
def test_bad_losses_are_refused(loss, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CLF.decide(X, loss)


def test_labels_of_a_loss_must_be_different_and_as_many() -> None:
    with pytest.raises(ValueError, match="not all different"):
        Loss([[0, 1], [1, 0]], decisions=["a", "a"])
    with pytest.raises(ValueError, match="3 labels"):
        Loss([[0, 1], [1, 0]], classes=["a", "b", "c"])


def test_a_right_decision_that_costs_more_than_a_wrong_one_is_warned_of() -> None:
    with pytest.warns(UserWarning, match="decision first, truth second"):
        Loss([[5, 0], [0, 5]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Loss([[0, 5], [9, 0], [20, 20]], decisions=["a", "b", "both"], classes=["a", "b"])


def test_costs_may_differ_from_row_to_row() -> None:
    table = pd.DataFrame(X, columns=list("abcd")).assign(amount=RNG.uniform(0, 100, 150))
    clf = textbook().fit(table, NAMES[Y])
    loss = Loss.zero_one(NAMES)
    costs = loss.costs.copy()
    costs[0, 2] = "amount"
    by_name = clf.decide(table, Loss(costs, tuple(NAMES), tuple(NAMES)))
    costs[0, 2] = table["amount"].to_numpy()
    by_array = clf.decide(table, Loss(costs, tuple(NAMES), tuple(NAMES)))
    cube = np.tile(loss.matrix, (150, 1, 1))
    cube[:, 0, 2] = table["amount"]
    by_cube = clf.decide(table, cube)
    posterior = clf.predict_proba(table)
    risks = np.einsum("ndc,nc->nd", cube, posterior)
    for found in (by_name, by_array, by_cube):
        np.testing.assert_array_equal(found.decision, NAMES[risks.argmin(axis=1)])
        np.testing.assert_allclose(found.risk, risks.min(axis=1))
    np.testing.assert_allclose(clf.risk(table, cube), risks)
    for cell, message in (
        ("nothing", "'nothing', which is not in the table"),
        (np.ones(3), "one for each of 150 rows"),
    ):
        costs[0, 2] = cell
        bad = Loss(costs, tuple(NAMES), tuple(NAMES))
        with pytest.raises(ValueError, match=message):
            clf.decide(table, bad)


def test_decisions_print_and_convert() -> None:
    found = CLF.decide(X, reject=0.05)
    assert len(found) == 150
    frame = found.to_frame()
    assert list(frame.columns) == ["decision", "risk", "runner_up", "runner_up_risk"]
    assert found.to_arrow().num_rows == 150
    assert "decision" in str(found).splitlines()[0]
    assert "…" in str(found)
    assert textbook().fit(X, Y).decide(X, reject=0.05).decision.dtype == object
    assert textbook().fit(X, Y).decide(X).decision.dtype.kind == "i"


# thresholds


@settings(max_examples=60, deadline=None)
@given(
    prior=st.floats(0.01, 0.99),
    costs=st.tuples(*[st.floats(0.1, 50.0) for _ in range(2)]),
    posterior=st.floats(0.001, 0.999),
)
def test_thresholds_agree_with_the_risks(prior: float, costs: tuple[float, float], posterior: float) -> None:
    matrix = np.array([[0.0, costs[0]], [costs[1], 0.0]])
    turning = Threshold.of(matrix, prior, ("yes", "no"))
    risks = matrix @ [posterior, 1.0 - posterior]
    if abs(risks[0] - risks[1]) < 1e-9:
        return
    yes = bool(risks[0] < risks[1])
    odds = posterior / (1.0 - posterior)
    assert (posterior > turning.posterior) == yes
    assert (odds > turning.odds) == yes
    assert (odds * (1.0 - prior) / prior > turning.likelihood_ratio) == yes


def test_what_a_threshold_becomes() -> None:
    fire = Threshold.of({("alarm", "quiet"): 1, ("quiet", "alarm"): 10_000}, 0.001, ("alarm", "quiet"))
    assert fire.posterior == pytest.approx(1 / 10_001)
    assert fire.likelihood_ratio == pytest.approx(0.0999)
    assert fire.with_prior(0.01).posterior == fire.posterior
    assert fire.with_prior(0.01).likelihood_ratio == pytest.approx(0.0099)
    assert fire.with_loss(None).posterior == 0.5
    assert "P(alarm | x)  >  9.999e-05" in str(fire)
    with pytest.warns(UserWarning, match="to decide"):
        never = Threshold.of([[5.0, 5.0], [1.0, 0.0]], 0.5, ("a", "b"))
    assert never.odds == np.inf
    assert never.posterior == 1.0
    clf = textbook().fit(X[:100], NAMES[Y[:100]])
    assert clf.threshold({"setosa": 1, "versicolor": 3}, positive="versicolor").posterior == pytest.approx(0.25)
    with pytest.raises(ValueError, match="two classes"):
        CLF.threshold()


def tumours() -> tuple[np.ndarray, np.ndarray]:
    """A table in units in which logistic regression is found at once."""
    X, y = load_breast_cancer(return_X_y=True)
    return StandardScaler().fit_transform(X), y


def test_scikit_learns_thresholds_are_oracles() -> None:
    X, y = tumours()
    clf = LogisticRegression(max_iter=10_000).fit(X, y)
    matrix = np.array([[0.0, 1.0], [20.0, 0.0]])  # to call a malignant (0) one benign costs 20
    turning = Threshold.of(matrix[::-1, ::-1], 0.5, (1, 0))
    theirs = FixedThresholdClassifier(clf, threshold=turning.posterior, response_method="predict_proba").fit(X, y)
    ours = MinimumRisk(clf, matrix).fit(X, y)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    train, test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)
    scorer = cost_scorer(matrix)
    tuned = TunedThresholdClassifierCV(clf, scoring=scorer, random_state=0).fit(train, y_train)
    risk = MinimumRisk(clf, matrix).fit(train, y_train)
    assert -risk.score(test, y_test) <= -scorer(tuned, test, y_test) + 0.1


def test_minimum_risk_fits_scikit_learns_tools() -> None:
    X, y = tumours()
    clf = MinimumRisk(make_pipeline(StandardScaler(), LogisticRegression()), {0: 10, 1: 1})
    search = GridSearchCV(clf, {"estimator__logisticregression__C": [0.01, 1.0]}, cv=3).fit(X, y)
    assert search.best_score_ <= 0.0
    chosen = GridSearchCV(
        LogisticRegression(max_iter=10_000), {"C": [0.1, 1.0]}, scoring=cost_scorer({0: 10, 1: 1}), cv=3
    )
    assert chosen.fit(X, y).best_score_ <= 0.0
    inside = make_pipeline(StandardScaler(), MinimumRisk(LogisticRegression(), {0: 10, 1: 1})).fit(X, y)
    assert set(inside.predict(X)) == {0, 1}
    rejecting = MinimumRisk(BayesClassifier(), {0: 10, 1: 1}, reject=0.2).fit(X, y)
    assert set(map(str, rejecting.predict(X))) == {"0", "1", "reject"}
    assert rejecting.decide(X).risk.max() <= 0.2
    zero_one = MinimumRisk(LogisticRegression(max_iter=10_000)).fit(X, y)
    np.testing.assert_array_equal(zero_one.predict(X), zero_one.estimator_.predict(X))
    with pytest.raises(ValueError, match="none of the classes"):
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


def test_every_pair_of_decisions_and_truths_is_charged_as_the_matrix_says() -> None:
    """By drawing a truth from each posterior: the mean cost is the expected risk."""
    matrix = np.array([[0, 7, 2], [3, 0, 11], [5, 1, 0]], dtype=float)
    found = CLF.decide(X, matrix)
    posterior = CLF.predict_proba(X)
    decided = np.searchsorted(NAMES, found.decision)
    exact = sum(matrix[d, c] * posterior[i, c] for i, d in enumerate(decided) for c in range(3))
    assert found.risk.sum() == pytest.approx(exact)
    for rule in itertools.product(range(3), repeat=2):  # no other choice for the first two rows is better
        assert (
            sum(matrix[d, c] * posterior[i, c] for i, d in enumerate(rule) for c in range(3))
            >= found.risk[:2].sum() - 1e-12
        )


# found by trying hard


def test_a_threshold_and_decide_read_a_matrix_alike() -> None:
    clf = textbook().fit([[0.0], [1.0], [2.0], [3.0]], ["ben", "ben", "mal", "mal"])
    matrix = [[0, 100], [1, 0]]
    points = np.linspace(0, 3, 200)[:, None]
    decided = clf.decide(points, matrix).decision
    for positive, place in (("mal", 1), ("ben", 0)):
        above = clf.predict_proba(points)[:, place] > clf.threshold(matrix, positive=positive).posterior
        np.testing.assert_array_equal(above, decided == positive)
        again = clf.threshold(None, positive=positive).with_loss(matrix)
        assert again.posterior == clf.threshold(matrix, positive=positive).posterior
    assert clf.threshold(matrix).with_prior({"ben": 0.9, "mal": 0.1}).prior == pytest.approx(0.1)


def test_tables_of_any_library_are_read_the_same_way(tmp_path) -> None:
    import polars as pl
    import pyarrow as pa

    clf = textbook().fit([[0.0], [1.0], [2.0], [3.0]], ["ben", "ben", "mal", "mal"])
    columns = {"ben": [0, 1], "mal": [100, 0]}
    (tmp_path / "loss.csv").write_text('\ufeff"decide, if", ben , mal\nben,0,100\nmal, 1,0\n\n', encoding="utf-8")
    for said in (
        pl.DataFrame(columns),
        pl.DataFrame({"decide": ["ben", "mal"], **columns}),
        pa.table(columns),
        pd.DataFrame(columns),
        tmp_path / "loss.csv",
        {"ben": {"ben": 0, "mal": 100}, "mal": {"ben": 1, "mal": 0}},
    ):
        assert clf.decide([[1.5]], said).decision.tolist() == ["mal"]
        assert loss_for(clf.fitted_, said).matrix.tolist() == [[0, 100], [1, 0]]
    assert loss_for(clf.fitted_, pd.DataFrame(columns))["ben", "mal"] == 100


def test_labels_match_when_they_are_equal_and_by_spelling_only_then() -> None:
    floats = textbook().fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 1.0])
    assert floats.decide([[1.0]], {0: 1, 1: 5}).loss.decisions == (0.0, 1.0)
    flags = textbook().fit([[0.0], [1.0], [2.0]], [False, True, True])
    assert flags.decide([[1.0]], {0: 1, 1: 5}).decision.dtype == bool
    with pytest.raises(ValueError, match="does not fit"):
        Loss([[0, 1, 7], [5, 0, 9]], decisions=[0, 1], classes=[0, 1, "1"]).for_classes([0, 1])
    dates = np.array(["2020-01-01"] * 2 + ["2021-01-01"] * 2, "M8[ns]")
    clf = textbook().fit([[0.0], [1.0], [2.0], [3.0]], dates)
    np.testing.assert_array_equal(clf.decide([[1.0]]).decision, clf.predict([[1.0]]))


def test_odd_rejects() -> None:
    clf = textbook().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    huge = [[1e305, 2e305], [3e305, 1e305]]
    assert clf.decide([[1.0]], huge, reject=np.inf).decision.tolist() == [0]
    assert clf.decide([[1.0]], reject=np.float32(0.1)).decision.size == 1
    assert clf.decide(X[:3, :1], reject=0.1).to_arrow().num_rows == 3
    assert "reject" in str(clf.coverage_curve([[1.0], [2.0]], [0, 1]))
    assert repr(clf.decide([[1.0]])) == str(clf.decide([[1.0]]))
    curve = clf.coverage_curve([[1.0], [2.0]], [0, 1])
    for bad in ({"coverage": 2.0}, {"coverage": np.nan}, {"risk": -1.0}):
        with pytest.raises(ValueError, match=r"give a share|that cheap"):
            curve.choose(**bad)


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        ([[0, 10**400], [1, 0]], "finite"),
        ([], "empty"),
        ({("a", "b"): 1, "b": 1}, "from both or none"),
        ([[0, np.bool_(True)], [1, 0]], "give a number"),
        ([[0, [[1.0]]], [1, 0]], "give a number"),
        ([[0, ["x", "y"]], [1, 0]], "no numbers"),
    ],
)
def test_more_bad_losses(loss, message: str) -> None:
    clf = textbook().fit([[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "b"])
    with pytest.raises(ValueError, match=message):
        clf.decide([[1.0], [2.0]], loss)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("d,a,b\na,0,\nb,1,0\n", "empty cell"),
        ("", "no table"),
        ("d,a,b\na,0\n", "no table"),
    ],
)
def test_bad_loss_files(tmp_path, text: str, message: str) -> None:
    (tmp_path / "loss.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        Loss.of(tmp_path / "loss.csv")
    (tmp_path / "wide.csv").write_text("d,a,b\na,0,1\nb,1,0\n", encoding="utf-16")
    with pytest.raises(ValueError, match="UTF-8"):
        Loss.of(tmp_path / "wide.csv")


def test_mean_cost_says_what_is_wrong() -> None:
    assert mean_cost([0, 1, 1], [0, 0, 1], loss={0: 3, 1: 6}) == pytest.approx(2.0)
    assert mean_cost([0, 1], ["0", "1"], loss={"0": 3, "1": 6}) == 0.0
    with pytest.raises(ValueError, match="2 is no decision"):
        mean_cost([0, 1], [0, 2], loss={0: 1, 1: 1})
    with pytest.raises(ValueError, match="3 truths and 2 decisions"):
        mean_cost([0, 1, 1], [0, 1], loss={0: 3, 1: 5})


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


def test_another_prior_keeps_the_training_rows() -> None:
    clf = textbook().fit(X, Y).with_prior([0.2, 0.3, 0.5])
    assert clf.leave_one_out().labels.size == 150


def test_a_loss_file_with_semicolons_is_read(tmp_path) -> None:
    (tmp_path / "costs.csv").write_text(";a;b\na;0;5\nb;1;0\n")
    assert Loss.from_csv(tmp_path / "costs.csv").matrix.tolist() == [[0.0, 5.0], [1.0, 0.0]]
