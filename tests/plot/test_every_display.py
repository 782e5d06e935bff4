"""Every display on few and many classes and columns, with hostile names: it draws, and no text runs into another."""

import builtins
import io
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from deciban import BayesClassifier, Gaussian, UsageError, plot
from deciban.plot import (
    ColumnDisplay,
    CostDisplay,
    CoverageDisplay,
    DecisionDisplay,
    DependenceDisplay,
    EvidenceDisplay,
    ImportanceDisplay,
    LearningDisplay,
    NomogramDisplay,
    PairDisplay,
    PredictionSetDisplay,
    ReliabilityDisplay,
)
from deciban.plot.display import escape_text, get_class_styles, write_picture

from .cases import HOSTILE, drawn_rows, fitted, outside, overlapping

Draw = Callable[..., Any]

DISPLAYS: dict[str, Draw] = {
    "evidence": lambda clf, X, y, **more: EvidenceDisplay.from_estimator(clf, X, 3, **more),
    "nomogram": lambda clf, X, y, **more: NomogramDisplay.from_estimator(clf, **more),
    "column of numbers": lambda clf, X, y, **more: ColumnDisplay.from_estimator(clf, 0, **more),
    "column of counts": lambda clf, X, y, **more: ColumnDisplay.from_estimator(clf, 1, **more),
    "column of categories": lambda clf, X, y, **more: ColumnDisplay.from_estimator(clf, 2, **more),
    "pair": lambda clf, X, y, **more: PairDisplay.from_estimator(clf, [0, 2], **more),
    "decision": lambda clf, X, y, **more: DecisionDisplay.from_estimator(clf, 0, **more),
    "decision over two": lambda clf, X, y, **more: DecisionDisplay.from_estimator(clf, [0, 1], **more),
    "reliability": lambda clf, X, y, **more: ReliabilityDisplay.from_estimator(clf, X, y, **more),
    "coverage": lambda clf, X, y, **more: CoverageDisplay.from_estimator(clf, X, y, reject=0.2, **more),
    "prediction sets": lambda clf, X, y, **more: PredictionSetDisplay.from_estimator(
        clf.conformalize(), X, y, per_class=True, **more
    ),
    "cost": lambda clf, X, y, **more: CostDisplay.from_estimator(clf, X, y, x_axis="prior", **more),
    "dependence": lambda clf, X, y, **more: DependenceDisplay.from_estimator(clf, X, y, **more),
    "learning": lambda clf, X, y, **more: LearningDisplay.from_estimator(clf, X, y, **more),
    "importance": lambda clf, X, y, **more: ImportanceDisplay.from_estimator(clf, X, y, **more),
    "importance in bits": lambda clf, X, y, **more: ImportanceDisplay.from_estimator(clf, X, measure="bits", **more),
}


@pytest.mark.parametrize("name", DISPLAYS)
@pytest.mark.parametrize(("classes", "columns"), [(2, 3), (20, 3), (2, 300), (20, 300)])
def test_no_text_runs_into_another_or_over_the_edge(name: str, classes: int, columns: int) -> None:
    X, y = drawn_rows(classes, columns)
    shown = DISPLAYS[name](fitted(classes, columns), X, y)
    assert overlapping(shown.figure_) == []
    assert outside(shown.figure_) == []


def test_texts_that_run_into_each_other_or_over_the_edge_would_be_found() -> None:
    figure = Figure(figsize=(3, 3))
    ax = figure.subplots()
    ax.set_axis_off()
    for text, x in (("one", 0.5), ("two", 0.52), ("three", 1.4)):
        ax.text(x, 0.5, text)
    figure.canvas.draw()
    assert overlapping(figure) == [("one", "two")]
    assert outside(figure) == ["three"]


@pytest.mark.parametrize("name", DISPLAYS)
def test_it_draws_on_axes_that_are_given(name: str) -> None:
    X, y = drawn_rows(2, 3)
    figure = Figure(figsize=(9, 6))
    ax = figure.subplots()
    before = plt.get_fignums()
    shown = DISPLAYS[name](fitted(2, 3), X, y, ax=ax)
    assert shown.figure_ is figure
    assert plt.get_fignums() == before
    again = shown.plot()
    assert again is shown
    assert shown.figure_ is not figure


@pytest.mark.parametrize("name", DISPLAYS)
def test_frames_have_what_is_drawn(name: str) -> None:
    X, y = drawn_rows(2, 3)
    frame = DISPLAYS[name](fitted(2, 3), X, y).to_frame("pandas")
    assert len(frame.columns) >= 2
    numbers = frame.select_dtypes("number")
    assert numbers.notna().any(axis=None) or name == "dependence"


@pytest.fixture(scope="module")
def hostile() -> tuple[BayesClassifier, Any, Any]:
    """Six columns and three classes of names that mean harm."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 300)
    X = {name.replace("\ud800", ""): rng.normal(y, 1.0) for name in HOSTILE[:2]}
    X |= {name.replace("\ud800", ""): rng.integers(0, 3, 300) + y for name in HOSTILE[2:4]}
    values = np.array([name.replace("\ud800", "") for name in HOSTILE])
    X |= {name.replace("\ud800", ""): values[(y + rng.integers(0, 3, 300)) % 6] for name in HOSTILE[4:]}
    labels = np.array([HOSTILE[0], HOSTILE[2], HOSTILE[3]])[y]
    return BayesClassifier(tune=None).fit(X, labels), X, labels


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
@pytest.mark.parametrize("name", DISPLAYS)
def test_names_print_literally_and_break_nothing(name: str, ending: str, hostile: Any, tmp_path: Path) -> None:
    clf, X, y = hostile
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shown = DISPLAYS[name](clf, X, y)
        write_picture(shown.figure_, tmp_path / f"picture.{ending}")
    written = (tmp_path / f"picture.{ending}").read_bytes()
    assert len(written) > 1000
    if ending == "svg":
        from xml.etree import ElementTree

        ElementTree.fromstring(written)
        assert b"<b>" not in written


def test_a_name_of_dollars_is_no_formula() -> None:
    X = {"$x$": [1.0, 2.0, 3.0, 4.0], "a_b^{": [0.0, 1.0, 0.0, 2.0]}
    clf = BayesClassifier(Gaussian(), tune=None).fit(X, [0, 0, 1, 1])
    shown = PairDisplay.from_estimator(clf, ["$x$", "a_b^{"])
    label = shown.ax_.xaxis.label
    shown.figure_.canvas.draw()
    assert label._preprocess_math(label.get_text()) == ("$x$", False)
    assert shown.ax_.get_ylabel() == "a_b^{"


def test_names_are_cut_and_signs_that_cannot_be_drawn_are_written() -> None:
    assert len(escape_text("x" * 200, 28)) == 28
    assert escape_text("a\nb\x00\ud800") == "a\\nb\\x00\\ud800"
    assert escape_text("\u202eright to left") == "right to left"


def test_a_class_has_one_look_in_all_pictures() -> None:
    looks = get_class_styles(range(20))
    assert len({(one.color, one.line) for one in looks}) == 20
    clf = fitted(2, 3)
    column, decision = ColumnDisplay.from_estimator(clf, 0), DecisionDisplay.from_estimator(clf, 0)
    for shown in (column.axes_[1], decision.ax_):
        assert [line.get_color() for line in shown.lines[:2]] == [one.color for one in looks[:2]]
        assert [line.get_linestyle() for line in shown.lines[:2]] == [one.line for one in looks[:2]]


def test_without_matplotlib_there_is_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    clf = fitted(2, 3)
    imported = builtins.__import__

    def refuse(name: str, *more: Any) -> Any:
        if name.partition(".")[0] == "matplotlib":
            raise ImportError(name)
        return imported(name, *more)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(UsageError, match=r"pip install '\.\[plot\]'"):
        ColumnDisplay.from_estimator(clf, 0)


def test_only_our_classifiers_and_fitted_ones_are_drawn() -> None:
    from sklearn.exceptions import NotFittedError
    from sklearn.naive_bayes import GaussianNB

    with pytest.raises(UsageError, match="found GaussianNB"):
        ColumnDisplay.from_estimator(GaussianNB(), 0)
    with pytest.raises(NotFittedError):
        ColumnDisplay.from_estimator(BayesClassifier(), 0)


def test_a_failed_picture_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "old.png"
    path.write_bytes(b"old")

    class Broken:
        def savefig(self, file: io.BytesIO, **more: Any) -> None:
            file.write(b"half")
            raise MemoryError

    with pytest.raises(MemoryError):
        write_picture(Broken(), path)
    assert path.read_bytes() == b"old"
    assert sorted(tmp_path.iterdir()) == [path]
    with pytest.raises(UsageError, match=r"use \.png, \.svg or \.pdf"):
        write_picture(Broken(), tmp_path / "picture.jpg")


def test_a_model_of_one_class_is_drawn() -> None:
    clf = BayesClassifier(tune=None).fit([[1.0], [2.0], [4.0]], [0, 0, 0])
    assert (ColumnDisplay.from_estimator(clf, 0).evidence == 0.0).all()
    with pytest.raises(UsageError, match="choose two different classes"):
        EvidenceDisplay.from_estimator(clf, [[1.0]])


def test_all_displays_are_exported() -> None:
    exported = {name for name in plot.__all__ if name.endswith("Display")}
    assert {type(DISPLAYS[name](fitted(2, 3), *drawn_rows(2, 3))).__name__ for name in DISPLAYS} == exported


def test_what_is_impossible_can_be_drawn() -> None:
    """Without smoothing, a value that a class never had is infinite evidence."""
    table = {"a": list("uuuvvvw"), "b": list("pqpqpqp")}
    clf = BayesClassifier(alpha=0, tune=None).fit(table, list("kkklllk"))
    shown = EvidenceDisplay.from_estimator(clf, table)
    assert shown.to_frame().set_index("term")["decibans"][["a = u", "sum"]].tolist() == [np.inf, np.inf]
    assert "+∞" in {text.get_text() for text in shown.ax_.texts}
    ruler = NomogramDisplay.from_estimator(clf)
    assert len(ruler.columns) == 2
    column = ColumnDisplay.from_estimator(clf, "a")
    heights = [bar.get_height() for bar in column.ax_.patches]
    assert max(heights) > column.ax_.get_ylim()[1]
    assert PairDisplay.from_estimator(clf, ["a", "b"]).figure_ is not None


def test_costs_and_boundaries_that_cannot_be_are_refused() -> None:
    X, y = drawn_rows(2, 3)
    with pytest.raises(UsageError, match="reject=-1: expected a cost of at least 0"):
        CoverageDisplay.from_estimator(fitted(2, 3), X, y, reject=-1)
    with pytest.raises(UsageError, match="expected finite numbers"):
        DecisionDisplay.from_estimator(fitted(2, 3), 0, boundaries=[float("nan")])
