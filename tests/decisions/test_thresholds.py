"""Thresholds of two classes: where the decision turns, in posteriors, odds and likelihood ratios."""

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st
from sklearn.datasets import load_iris

from deciban import Threshold, UsageError
from tests import example_count, textbook

X, Y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])
CLF = textbook().fit(X, NAMES[Y])


@settings(max_examples=example_count(60))
@given(
    prior=st.floats(0.01, 0.99),
    costs=st.tuples(*[st.floats(0.1, 50.0) for _ in range(2)]),
    posterior=st.floats(0.001, 0.999),
)
def test_thresholds_agree_with_the_risks(prior: float, costs: tuple[float, float], posterior: float) -> None:
    matrix = np.array([[0.0, costs[0]], [costs[1], 0.0]])
    turning = Threshold.from_loss(matrix, prior, ("yes", "no"))
    risks = matrix @ [posterior, 1.0 - posterior]
    assume(abs(risks[0] - risks[1]) >= 1e-9)
    yes = bool(risks[0] < risks[1])
    odds = posterior / (1.0 - posterior)
    assert (posterior > turning.posterior) == yes
    assert (odds > turning.odds) == yes
    assert (odds * (1.0 - prior) / prior > turning.likelihood_ratio) == yes


def test_what_a_threshold_becomes() -> None:
    fire = Threshold.from_loss({("alarm", "quiet"): 1, ("quiet", "alarm"): 10_000}, 0.001, ("alarm", "quiet"))
    assert fire.posterior == pytest.approx(1 / 10_001)
    assert fire.likelihood_ratio == pytest.approx(0.0999)
    assert fire.with_prior(0.01).posterior == fire.posterior
    assert fire.with_prior(0.01).likelihood_ratio == pytest.approx(0.0099)
    assert fire.with_loss(None).posterior == 0.5
    assert "P(alarm | x)  >  9.999e-05" in str(fire)
    with pytest.warns(UserWarning, match="deciding 0 correctly costs 5"):
        never = Threshold.from_loss([[5.0, 5.0], [1.0, 0.0]], 0.5, ("a", "b"))
    assert never.odds == np.inf
    assert never.posterior == 1.0
    clf = textbook().fit(X[:100], NAMES[Y[:100]])
    assert clf.threshold({"setosa": 1, "versicolor": 3}, positive="versicolor").posterior == pytest.approx(0.25)
    with pytest.raises(ValueError, match="two classes"):
        CLF.threshold()


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


@pytest.mark.parametrize(
    "arguments",
    [
        (0.001, {"fire": 10_000, "no fire": 1}, ("fire", "no fire")),
        ({"fire": 10_000, "no fire": 1}, ("fire", "no fire"), 0.001),
        (np.eye(2), np.eye(2), ("a", "b")),
        (("a", "b"), 0.5, np.eye(2)),
        (np.eye(2), 0.5, ("a", "a")),
        (np.eye(2), 0.5, "ab"),
        (np.eye(2), 0.5, ("a", "b", "c")),
    ],
)
def test_arguments_in_another_order_are_named(arguments) -> None:
    with pytest.raises(UsageError, match=r"the arguments are Threshold\.from_loss\(loss, prior, classes\)$") as error:
        Threshold.from_loss(*arguments)
    assert "\n" not in str(error.value)
    with pytest.raises(UsageError, match="in the order of the matrix"):
        Threshold.from_loss(1 - np.eye(2), 0.5, ("a", "b"), ("a", "c"))
    assert Threshold.from_loss(1 - np.eye(2), 0.5, np.array(["a", "b"])).odds == 1.0


def test_labels_are_written_as_in_other_results() -> None:
    found = Threshold.from_loss([[0, 1], [20, 0]], 0.1, (True, False))
    assert str(found).startswith("decide true if\n  p(x | true) / p(x | false)  > ")
