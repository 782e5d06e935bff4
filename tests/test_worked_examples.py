"""The examples of the textbooks, to the digit."""

import numpy as np
import pytest

from deciban import BayesClassifier, Bernoulli, Categorical, Gaussian, Multinomial, Pooled
from deciban.datasets import weather
from tests import textbook

DAY = [{"outlook": "sunny", "temperature": "cool", "humidity": "high", "wind": "strong"}]


def test_weather() -> None:
    clf = textbook(alpha=0).fit(weather(), "play")
    assert clf.classes_.tolist() == ["no", "yes"]
    np.testing.assert_allclose(np.exp(clf.log_joint(DAY)[0]), [18 / 875, 1 / 189], rtol=1e-14)
    assert [f"{value:.5f}" for value in np.exp(clf.log_joint(DAY)[0])] == ["0.02057", "0.00529"]
    assert [f"{value:.4f}" for value in clf.predict_proba(DAY)[0]] == ["0.7954", "0.2046"]
    likelihood = np.exp(clf.evidence(DAY).log_likelihood[0])
    np.testing.assert_allclose(likelihood, [18 / 875 * 14 / 5, 1 / 189 * 14 / 9], rtol=1e-14)
    assert clf.predict(DAY).tolist() == ["no"]
    text = str(clf.explain(DAY, by="block"))
    for step in ("2/9 = 0.2222", "3/5 = 0.6", "0.02057", "0.005291", "0.795417", "0.204583", "decision: no"):
        assert step in text


def test_a_word_never_seen() -> None:
    """0 of 100 and 30 of 80 with one added to each of two values."""
    X = np.concatenate([np.zeros((100, 1)), np.ones((30, 1)), np.zeros((50, 1))])
    y = ["ham"] * 100 + ["spam"] * 80
    for family in (Bernoulli(alpha=1), Categorical(alpha=1)):
        shares = np.exp(textbook(family).fit(X, y).evidence([[1.0]]).values[0, 0])
        np.testing.assert_allclose(shares, [1 / 102, 31 / 82], rtol=1e-14)


FRUIT = [
    {"shape": "round", "color": "orange"},
    {"shape": "round", "color": "orange"},
    {"shape": "round", "color": "red"},
    {"shape": "round", "color": "green"},
]
KINDS = ["orange", "orange", "apple", "grape"]


@pytest.mark.parametrize(
    ("alpha", "joint"),
    [(0, {"orange": 0.5, "apple": 0.0, "grape": 0.0}), (1, {"orange": 0.3, "apple": 0.0625, "grape": 0.0625})],
)
def test_fruit(alpha: float, joint: dict[str, float]) -> None:
    clf = textbook(alpha=alpha).fit(FRUIT, KINDS)
    found = np.exp(clf.log_joint([{"shape": "round", "color": "orange"}])[0])
    np.testing.assert_allclose(dict(zip(clf.classes_, found, strict=True))["orange"], joint["orange"], rtol=1e-14)
    np.testing.assert_allclose(found, [joint[kind] for kind in clf.classes_], rtol=1e-14)


@pytest.mark.parametrize("false_positive", [0.08, 0.2])
def test_diagnosis(false_positive: float) -> None:
    """Prior 5 %, sensitivity 90 %: a table of 10,000 people says what the formula says."""
    sick, well = 500, 9500
    rows = [[1]] * round(0.9 * sick) + [[0]] * round(0.1 * sick)
    rows += [[1]] * round(false_positive * well) + [[0]] * round((1 - false_positive) * well)
    clf = textbook(Bernoulli(alpha=0)).fit(np.array(rows), ["sick"] * sick + ["well"] * well)
    expected = 0.045 / (0.045 + 0.95 * false_positive)
    np.testing.assert_allclose(clf.predict_proba([[1]])[0, 0], expected, rtol=1e-12)


def letters() -> BayesClassifier:
    """Two normal classes, N(15, 4²) and N(25, 4²), with priors 0.75 and 0.25."""
    X = np.array([11.0, 19.0, 21.0, 29.0])[:, None]
    return textbook(Gaussian(variance=Pooled()), prior={"a": 0.75, "b": 0.25}).fit(X, ["a", "a", "b", "b"])


def boundary(clf: BayesClassifier) -> float:
    low, high = 15.0, 25.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if clf.predict([[middle]])[0] == "a" else (low, middle)
    return low


def test_letters() -> None:
    from scipy.stats import norm

    cut = boundary(letters())
    assert f"{cut:.4f}" == "21.7578"
    assert f"{0.75 * norm.sf(cut, 15, 4):.6f}" == "0.034175"
    assert f"{0.25 * norm.cdf(cut, 25, 4):.6f}" == "0.052203"
    assert boundary(letters().with_prior("uniform")) == pytest.approx(20.0, abs=1e-9)


def test_counts_are_not_categories() -> None:
    """A word seen 10 times speaks for spam, so 20 times speaks twice as loud; as a category, 20 was never seen."""
    X, y = np.array([[10.0, 10.0], [2.0, 18.0]]), ["spam", "ham"]
    counts = textbook(Multinomial(), prior="uniform").fit(X, y)

    def odds(clf: BayesClassifier, row: list[float]) -> float:
        ham, spam = clf.log_joint([row])[0]
        return spam - ham

    once, twice = odds(counts, [10.0, 0.0]), odds(counts, [20.0, 0.0])
    assert once > 0.0
    assert twice == pytest.approx(2 * once, rel=1e-12)
    categories = textbook(Categorical(), prior="uniform").fit(X.astype(int), y)
    assert odds(categories, [20, 10]) == pytest.approx(
        odds(categories, [10, 10]) - odds(categories, [10, 99]), abs=1e-12
    )
    assert odds(categories, [20, 99]) == 0.0


def test_smoke_detector() -> None:
    """A false alarm costs 1, silence in a fire 10,000: the alarm costs less once P(fire | x) > 1/10,001."""
    loss = np.array([[0.0, 1.0], [10_000.0, 0.0]])  # decision (alarm, silence) by truth (fire, no fire)
    smoke = np.array([[1]] * 9 + [[0]] * 1 + [[1]] * 10 + [[0]] * 9980)
    clf = textbook(Bernoulli(alpha=0), prior={"fire": 0.001, "none": 0.999})
    clf.fit(smoke, ["fire"] * 10 + ["none"] * 9990)
    posterior = clf.predict_proba([[1], [0]])
    np.testing.assert_allclose(posterior[0, 0], 0.0009 / (0.0009 + 0.999 * 10 / 9990), rtol=1e-12)
    for row in posterior:
        assert ((loss @ row).argmin() == 0) == (row[0] > 1 / 10_001)
    assert (loss @ posterior[1]).argmin() == 0  # even without smoke: a tenth of the fires give none
