"""Rulers: values stand where they are worth what the model says, and their sum is the posterior."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from deciban import BayesClassifier, Binned, Gaussian, LogNormal, UsageError
from deciban.datasets import weather
from deciban.plot import NomogramDisplay
from deciban.plot.nomogram import MARKED_CHANCES, Mark, _draw_marks, list_marks


@pytest.fixture(scope="module")
def days() -> BayesClassifier:
    return BayesClassifier(tune=None).fit(weather(), "play")


def worth(shown: NomogramDisplay, row: dict[str, str]) -> float:
    """The sum of what the values of a row are worth on the rulers."""
    total = 0.0
    for values, evidence in zip(shown.columns, shown.evidence, strict=True):
        total += float(evidence[values.names.index(row[values.name])])
    return total


def test_the_sum_of_the_rulers_is_the_posterior(days: BayesClassifier) -> None:
    shown = NomogramDisplay.from_estimator(days)
    for row in weather().to_pylist():
        row.pop("play")
        odds = 10.0 ** ((worth(shown, row) + shown.prior) / 10.0)
        assert odds / (1.0 + odds) == pytest.approx(days.predict_proba([row])[0, 1], rel=1e-12)


def test_the_last_ruler_turns_sums_into_probabilities(days: BayesClassifier) -> None:
    shown = NomogramDisplay.from_estimator(days)
    marks = {text.get_text(): text.get_position()[0] for text in shown.axes_[1].texts[:-1]}
    assert len(marks) == len(MARKED_CHANCES)
    for chance in (0.01, 0.5, 0.9):
        assert marks[f"{100 * chance:g}%"] == pytest.approx(
            10.0 * np.log10(chance / (1 - chance)) - 10.0 * np.log10(9 / 5)
        )


def test_one_class_against_another_is_exact_among_several() -> None:
    rng = np.random.default_rng(2)
    y = rng.integers(0, 4, 300)
    X = rng.normal(y[:, None] * [1.0, 2.0, 0.5], 1.0)
    clf = BayesClassifier(Gaussian(), tune=None).fit(X, y)
    shown = NomogramDisplay.from_estimator(clf, label=2, against=0)
    row = [float(np.median(values.numbers)) for values in sorted(shown.columns, key=lambda one: one.column)]
    total = shown.prior
    for values, evidence in zip(shown.columns, shown.evidence, strict=True):
        total += float(np.interp(row[values.column], values.numbers, evidence))
    joint = clf.log_joint([row])[0]
    assert total == pytest.approx(10.0 / np.log(10.0) * (joint[2] - joint[0]), abs=1e-3)


def test_the_columns_that_tell_most_come_first_and_others_are_counted() -> None:
    rng = np.random.default_rng(2)
    y = rng.integers(0, 2, 200)
    X = rng.normal(y[:, None] * np.linspace(0.0, 3.0, 20), 1.0)
    clf = BayesClassifier(Gaussian(), tune=None).fit(X, y)
    shown = NomogramDisplay.from_estimator(clf, max_display=5)
    ranges = [evidence.max() - evidence.min() for evidence in shown.evidence]
    assert len(ranges) == 5
    assert shown.ax_.get_title(loc="left") == "Nomogram: evidence for 1 against 0 (15 columns not drawn)"
    assert {values.name for values in shown.columns} <= {f"x{j}" for j in range(8, 20)}
    chosen = NomogramDisplay.from_estimator(clf, columns=["x3", 1])
    assert [values.name for values in chosen.columns] == ["x3", "x1"]
    assert [text.get_text() for text in chosen.ax_.get_yticklabels()] == ["x3", "x1"]


def test_marks_of_what_falls_and_rises_are_on_both_sides() -> None:
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 400)
    X = rng.normal(0.0, np.where(y == 1, 4.0, 1.0))[:, None]
    shown = NomogramDisplay.from_estimator(BayesClassifier(Gaussian(), tune=None).fit(X, y))
    marks = list_marks(shown.columns[0], shown.evidence[0])
    assert {mark.rises for mark in marks if float(mark.name) < -1} == {False}
    assert {mark.rises for mark in marks if float(mark.name) > 1} == {True}


def test_values_next_to_each_other_are_named_and_all_ticks_of_numbers_have_a_name() -> None:
    rng = np.random.default_rng(3)
    y = np.arange(2_000) % 2
    table = pd.DataFrame({
        "amount": np.exp(rng.normal(-5.0 + 4.0 * y, 1.0)),  # most of its values are far below its largest one
        "owner": np.where(rng.random(2_000) < 0.5 + 0.02 * y, "yes", "no"),
    })  # fmt: skip
    clf = BayesClassifier({"amount": LogNormal()}, tune=None).fit(table, y)
    shown = NomogramDisplay.from_estimator(clf)
    assert [values.name for values in shown.columns] == ["amount", "owner"]
    texts = {text.get_text(): text.get_position() for text in shown.ax_.texts}
    assert {"yes", "no"} <= set(texts)
    row_of = {name: round(at[1]) for name, at in texts.items()}
    numbers = [name for name, row in row_of.items() if row == 0]
    assert min(map(float, numbers)) < 0.01
    places = np.sort([texts[name][0] for name in numbers])
    low, high = np.clip([shown.evidence[0].min(), shown.evidence[0].max()], *shown._find_reach())
    assert np.diff([low, *places, high]).max() < 0.2 * (high - low)
    ends = [line.get_ydata() for line in shown.ax_.lines if len(line.get_ydata()) == 2]
    ticks = [1 for start, end in ends if start == 0 != end]
    assert len(ticks) == len(numbers)
    for name in numbers:
        odds = clf.predict_log_proba(pd.DataFrame({"amount": [float(name)], "owner": [None]}))[0]
        assert texts[name][0] == pytest.approx(10.0 / np.log(10.0) * (odds[1] - odds[0]), abs=0.1)


def test_bad_questions_are_refused(days: BayesClassifier) -> None:
    with pytest.raises(UsageError, match="the class itself"):
        NomogramDisplay.from_estimator(days, label="yes", against="yes")
    with pytest.raises(UsageError, match="unknown class"):
        NomogramDisplay.from_estimator(days, label="perhaps")
    texts = BayesClassifier(tune=None).fit(["some words here", "other words there", "more of them"], [0, 1, 0])
    with pytest.raises(UsageError, match="no column has values"):
        NomogramDisplay.from_estimator(texts)


def test_the_frame_lists_all_values(days: BayesClassifier) -> None:
    frame = NomogramDisplay.from_estimator(days).to_frame("pandas")
    assert list(frame) == ["column", "value", "decibans"]
    overcast = frame[(frame.column == "outlook") & (frame.value == "overcast")].decibans.item()
    assert overcast == pytest.approx(10.0 * np.log10((5 / 12) / (1 / 8)))


def test_what_rules_a_class_out_is_marked_as_infinite_and_comes_first() -> None:
    """Nobody stayed at home on an overcast day: without smoothing that is infinite evidence."""
    shown = NomogramDisplay.from_estimator(BayesClassifier(alpha=0, tune=None).fit(weather(), "play"))
    assert shown.columns[0].name == "outlook"
    assert shown.evidence[0][0] == np.inf
    low, high = shown._find_reach()
    (said,) = [text for text in shown.ax_.texts if "∞" in text.get_text()]
    assert said.get_text() == "overcast +∞"
    assert said.get_position()[0] > high, "beyond the scale"
    assert all(low <= tick <= high for tick in shown.ax_.get_xticks())
    assert "+∞ rules out no" in shown.ax_.get_xlabel()
    arrows = [text for text in shown.ax_.texts if getattr(text, "arrow_patch", None) is not None]
    assert len(arrows) == 1
    other = NomogramDisplay.from_estimator(BayesClassifier(alpha=0, tune=None).fit(weather(), "play"), label="no")
    assert [text.get_text() for text in other.ax_.texts if "∞" in text.get_text()] == ["overcast −∞"]
    assert "−∞ rules out no" in other.ax_.get_xlabel()


def test_numbers_next_to_infinite_ones_are_not_drawn_between() -> None:
    rng = np.random.default_rng(0)
    y = np.arange(300) % 3
    clf = BayesClassifier(Binned(bins=8, alpha=0), tune=None).fit(rng.normal(2.0 * y[:, None], 1.0), y)
    shown = NomogramDisplay.from_estimator(clf)
    marks = {float(mark.name): mark.decibans for mark in list_marks(shown.columns[0], shown.evidence[0])}
    for number, decibans in marks.items():
        posterior = clf.predict_proba([[number]])[0, 2]
        expected = 10.0 * np.log10(posterior / (1.0 - posterior) * 2.0) if 0.0 < posterior < 1.0 else decibans
        assert np.isinf(decibans) == (posterior in (0.0, 1.0))
        assert decibans == pytest.approx(expected, abs=0.5)


def test_a_ruler_that_goes_beyond_the_scale_ends_in_an_arrowhead() -> None:
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 100)
    far = NomogramDisplay.from_estimator(BayesClassifier(Gaussian(), tune=None).fit(rng.normal(20.0 * y)[:, None], y))
    assert {line.get_marker() for line in far.ax_.lines} >= {"<", ">"}
    assert "continues beyond the scale" in far.ax_.get_xlabel()
    near = NomogramDisplay.from_estimator(BayesClassifier(tune=None).fit(weather(), "play"))
    assert not {line.get_marker() for line in near.ax_.lines} & {"<", ">"}


def test_both_ends_of_a_short_line_have_names() -> None:
    """Marks of falling evidence are below the line, where the names of a short line overlap."""
    ax = Figure().subplots()
    marks = [Mark(name, at, False, True) for name, at in (("300", 2.0), ("400", 0.0), ("160", 4.0))]
    _draw_marks(ax, 0, marks, 2.0)
    assert {text.get_text() for text in ax.texts} == {"400", "160"}
