"""The waterfall: its bars are the terms of the log-odds, and end at the posterior."""

from itertools import pairwise

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris

from deciban import BayesClassifier, UsageError
from deciban.datasets import weather
from deciban.plot import EvidenceDisplay


def test_bars_add_up_to_the_log_odds_of_the_model() -> None:
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    clf = BayesClassifier().fit(X[::3], y[::3])
    shown = EvidenceDisplay.from_estimator(clf, X, 7)
    log = clf.log_joint(X[7:8])[0]
    best = int(clf.predict(X[7:8])[0])
    total = 10.0 / np.log(10.0) * (log[best] - log[1 - best])
    bars = shown.bars
    assert bars[-1][2] == pytest.approx(total, abs=1e-9)
    assert bars[-2][2] == pytest.approx(total, abs=1e-9)
    for (_, _, end), (_, start, _) in pairwise(bars[:-1]):
        assert end == start
    assert bars[0][0] == "prior"
    assert "bias" not in [name for name, _, _ in bars]
    assert bars[-2][0] == "18 other columns"
    rectangles = shown.ax_.patches
    assert [bar.get_x() for bar in rectangles] == pytest.approx([start for _, start, _ in bars])
    assert [bar.get_width() for bar in rectangles] == pytest.approx([end - start for _, start, end in bars])
    said = dict(zip(clf.evidence(X[7:8], by="column").columns, shown.decibans, strict=True))
    found = clf.evidence(X[7:8], by="column").values[0]
    assert list(said.values()) == pytest.approx(10.0 / np.log(10.0) * (found[:, best] - found[:, 1 - best]))
    sizes = np.abs([end - start for _, start, end in bars[1:-2]])
    assert (np.diff(sizes) <= 0.0).all()


def test_labels_are_in_the_words_of_the_data() -> None:
    clf = BayesClassifier(tune=None).fit(weather(), "play")
    row = {"outlook": "sunny", "temperature": "cool", "humidity": "high", "wind": "strong"}
    shown = EvidenceDisplay.from_estimator(clf, [row])
    names = [text.get_text() for text in shown.ax_.get_yticklabels()]
    assert set(names) == {"prior", "sum", *(f"{name} = {value}" for name, value in row.items())}
    assert shown.ax_.get_xlabel() == "decibans for no against yes"
    chance = clf.predict_proba([row])[0, 0]
    assert shown.ax_.get_title(loc="left") == f"Evidence by column: P(no) = {100 * chance:.1f}%".replace(".0%", "%")
    frame = shown.to_frame("pandas")
    assert frame.probability.iloc[-1] == pytest.approx(chance)
    assert frame.decibans[1:-1].sum() + frame.decibans[0] == pytest.approx(frame.decibans.iloc[-1])


def test_evidence_that_rounds_to_0_shares_a_bar_and_the_limit_is_the_last_term() -> None:
    names, decibans = ["a = 1", "b = 1", "c = 1", "d = 1"], [0.01, 4.0, -0.02, -3.0]
    shown = EvidenceDisplay(names, np.array(decibans), 2.0, "yes", "no", 0.6, limit=-0.5)
    assert [name for name, _ in shown.steps] == ["prior", "b = 1", "d = 1", "2 other columns", "limit"]
    assert shown.bars[-1] == ("sum", 0.0, pytest.approx(2.0 + sum(decibans) - 0.5))


def test_missing_cells_have_no_bar() -> None:
    clf = BayesClassifier(tune=None).fit(weather(), "play")
    shown = EvidenceDisplay.from_estimator(clf, [{"wind": "weak"}])
    assert [name for name, _, _ in shown.bars] == ["prior", "wind = weak", "sum"]


def test_the_classes_can_be_chosen_among_several() -> None:
    X, y = load_iris(return_X_y=True)
    clf = BayesClassifier(tune=None).fit(X, y)
    shown = EvidenceDisplay.from_estimator(clf, X, 100, label=0, against=2)
    log = clf.log_joint(X[100:101])[0]
    assert shown.bars[-1][2] == pytest.approx(10.0 / np.log(10.0) * (log[0] - log[2]))
    usual = EvidenceDisplay.from_estimator(clf, X, 100)
    assert (usual.label, usual.against) == (2, 1)
    with pytest.raises(UsageError, match="choose two different classes"):
        EvidenceDisplay.from_estimator(clf, X, label=1, against=1)
    with pytest.raises(UsageError, match="150 rows"):
        EvidenceDisplay.from_estimator(clf, X, 150)


def test_the_upper_axis_has_the_probability_of_one_among_two() -> None:
    clf = BayesClassifier(tune=None).fit(weather(), "play")
    shown = EvidenceDisplay.from_estimator(clf, [{"outlook": "overcast"}])
    (upper,) = shown.ax_.child_axes
    marks = dict(zip((text.get_text() for text in upper.get_xticklabels()), upper.get_xticks(), strict=True))
    assert marks["50%"] == 0.0
    assert upper.get_xlabel() == "probability of yes against no"
