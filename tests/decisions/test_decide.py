"""Decisions of least risk, and rejecting: against enumeration."""

import itertools

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.datasets import load_iris

import deciban.decisions.loss
from deciban import Loss, bayes, decide
from tests import textbook

X, Y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])
CLF = textbook().fit(X, NAMES[Y])
LINE = textbook().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
RNG = np.random.default_rng(0)


@pytest.mark.filterwarnings("ignore:deciding")
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
            assert found.second_best[i] == f"do {second}"
            assert found.second_best_risk[i] == pytest.approx(risks[second])
        else:
            assert found.second_best[i] == "do 0"


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
        np.testing.assert_allclose(found.second_best_risk, np.sort(risks, axis=1)[:, 1])
    np.testing.assert_array_equal(decide(posterior, matrix[:3]).decision, risks[:, :3].argmin(axis=1))
    found = decide(posterior, named, classes=["a", "b", "c"])
    np.testing.assert_allclose(found.risk, risks.min(axis=1))
    mine = decide(CLF.predict_proba(X), matrix[:3], classes=CLF.classes_, reject=0.1)
    assert str(mine) == str(CLF.decide(X, matrix[:3], reject=0.1))
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
    with pytest.raises(ValueError, match="costs 'amount' of the loss are missing"):
        decide(array, loss, classes=["good", "bad"])


@pytest.mark.parametrize(
    ("posterior", "given", "message"),
    [
        ([[0.5, 0.4]], {}, r"row 0: the posterior 0.5, 0.4 is invalid"),
        ([[0.5, 0.5], [1.5, -0.5]], {}, r"row 1: the posterior 1.5, -0.5 is invalid"),
        ([[np.nan, 1.0]], {}, "the posterior nan, 1 is invalid"),
        ([[0.5, 0.5]], {"loss": {"a": 1, "b": 2}}, "give the class of each column"),
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
        assert (found.second_best != found.decision).all()


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
    chosen = curve.choose_reject(min_coverage=0.9)
    assert (CLF.decide(X, reject=chosen).decision != "reject").mean() >= 0.9
    assert curve.choose_reject(max_risk=1.0) == curve.reject[-1]
    with pytest.raises(ValueError, match="give either max_risk= or min_coverage="):
        curve.choose_reject()


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
    assert list(frame.columns) == ["decision", "risk", "second_best", "second_best_risk"]
    assert found.to_frame("pyarrow").num_rows == 150
    assert "decision" in str(found).splitlines()[0]
    assert repr(found) == str(found)
    assert "…" in str(found)
    assert textbook().fit(X, Y).decide(X, reject=0.05).decision.dtype == object
    assert textbook().fit(X, Y).decide(X).decision.dtype.kind == "i"


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


def test_an_infinite_cost_rejects_nothing_among_huge_costs() -> None:
    huge = [[1e305, 2e305], [3e305, 1e305]]
    assert LINE.decide([[1.0]], huge, reject=np.inf).decision.tolist() == [0]


def test_a_cost_of_rejecting_may_be_any_number() -> None:
    for cost in (0.1, np.float32(0.1), np.float64(0.1)):
        assert LINE.decide([[1.0], [1.5]], reject=cost).decision.tolist() == [0, "reject"]
    assert LINE.decide([[1.0], [1.5]], reject=0.1).to_frame("pyarrow")["decision"].to_pylist() == ["0", "reject"]


def test_the_coverage_curve_refuses_what_cannot_be() -> None:
    curve = LINE.coverage_curve([[1.0], [2.0]], [0, 1])
    assert "reject" in str(curve)
    for bad in ({"min_coverage": 2.0}, {"min_coverage": np.nan}, {"max_risk": -1.0}):
        with pytest.raises(ValueError, match=r"give a share|that cheap"):
            curve.choose_reject(**bad)


def test_another_prior_keeps_the_training_rows() -> None:
    clf = textbook().fit(X, Y).with_prior([0.2, 0.3, 0.5])
    assert clf.leave_one_out().labels.size == 150
