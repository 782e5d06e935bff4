"""Losses by their constructors, and results as text, tables and plain data."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from deciban import BayesClassifier, Loss, Threshold, bayes, bayes_error, decide
from deciban.datasets import weather


def test_costs_of_classes_are_the_costs_of_missing_them() -> None:
    loss = Loss.from_class_costs({"healthy": 1, "sick": 100, "dying": 1_000})
    assert loss.decisions == loss.classes == ("healthy", "sick", "dying")
    assert loss.matrix.tolist() == [[0.0, 100.0, 1000.0], [1.0, 0.0, 1000.0], [1.0, 100.0, 0.0]]
    assert loss.to_dict() == Loss.from_costs({"healthy": 1, "sick": 100, "dying": 1_000}).to_dict()
    tuples = Loss.from_class_costs({("a", 1): 2, ("b", 1): 3})  # a class may be a pair
    assert tuples.matrix.tolist() == [[0.0, 3.0], [2.0, 0.0]]


def test_pairs_may_omit_correct_decisions_only() -> None:
    pairs = {("well", "ill"): 9, ("ill", "well"): 2, ("test", "well"): 1, ("test", "ill"): 1}
    loss = Loss.from_pairs(pairs)
    assert (loss.decisions, loss.classes) == (("well", "ill", "test"), ("well", "ill"))
    assert all(loss[pair] == cost for pair, cost in pairs.items())
    assert loss["well", "well"] == loss["ill", "ill"] == 0.0
    with pytest.raises(ValueError, match="only one true class, 'ill'; give every pair of decision and class"):
        Loss.from_costs({("healthy", "ill"): 100, ("test", "ill"): 20})
    with pytest.raises(ValueError, match="deciding 'test' when 'ill' is true is missing; give every pair"):
        Loss.from_pairs({pair: cost for pair, cost in pairs.items() if pair != ("test", "ill")})


def test_a_loss_is_the_same_after_to_dict() -> None:
    loss = Loss([[0, "amount"], [1, 0]], ["pay", "deny"], ["good", "bad"])
    again = Loss.from_costs(loss.to_dict())
    assert str(again) == str(loss)
    frame = loss.to_frame()
    assert list(frame) == ["decision", "good", "bad"]
    assert frame["bad"].tolist() == ["amount", 0]
    assert (loss.decision_index("deny"), loss.class_index("bad")) == (1, 1)
    with pytest.raises(ValueError, match="'deny' is not a class of the loss"):
        loss.class_index("deny")


CLF = BayesClassifier(tune=None).fit(weather(), "play")
COSTS = {"yes": 1, "no": 5}
RESULTS: dict[str, Any] = {
    "belief": (bayes(0.05, (0.9, 0.08), names=("ill", "well")), 2),
    "bayes error": (bayes_error([stats.norm(0), stats.norm(2)]), 2),
    "coverage curve": (CLF.coverage_curve(weather(), "play"), None),
    "decisions": (decide([[0.2, 0.8], [0.6, 0.4]]), 2),
    "estimates": (CLF.estimates(), None),
    "explanation": (CLF.explain(weather().slice(0, 1)), 5),
    "threshold": (CLF.threshold(COSTS), None),
}


@pytest.mark.parametrize("name", RESULTS)
def test_every_result_is_readable_text_a_table_and_plain_data(name: str) -> None:
    result, rows = RESULTS[name]
    assert repr(result) == str(result)
    assert isinstance(result.to_dict(), dict)
    if hasattr(result, "to_frame"):
        frame = result.to_frame("pandas")
        assert isinstance(frame, pd.DataFrame)
        assert rows is None or len(frame) == rows


def test_plain_data_of_results() -> None:
    alarm = Threshold.from_loss({"fire": 10_000, "no fire": 1}, prior=0.001, classes=("fire", "no fire"))
    assert list(alarm.to_dict()) == ["class", "against", "prior", "likelihood_ratio", "odds", "posterior"]
    assert alarm.to_dict()["odds"] == pytest.approx(1e-4)
    error = bayes_error([stats.norm(0), stats.norm(2)]).to_dict()
    assert error["risk"] == error["bayes_risk"] == pytest.approx(stats.norm.cdf(-1))
    assert [region["decision"] for region in error["regions"]] == [0, 1]
    found = decide([[0.2, 0.8], [0.6, 0.4]]).to_dict()
    assert (found["decision"], found["risk"]) == ([1, 0], pytest.approx([0.2, 0.4]))
    curve = RESULTS["coverage curve"][0]
    np.testing.assert_allclose(curve.to_frame("pandas")["cost"], curve.cost)
    with pytest.warns(UserWarning, match="may be too extreme"):
        shares = CLF.estimate_prior(weather())
    assert repr(shares) == str(shares)
    assert shares.to_frame().column_names == ["class", "prior", "low", "high"]
    assert list(shares.to_dict()) == ["no", "yes"]
