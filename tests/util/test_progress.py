"""The progress line."""

import io
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import deciban
from deciban import BayesClassifier, Progress, on_progress, scan
from deciban.evaluation.validation import cross_validate, evaluate_left_out
from deciban.model.fitted import Settings
from deciban.sources.streams import LabeledStream
from deciban.util import progress as module
from deciban.util.progress import describe_progress, one_call, progress, stages, track


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_nothing_is_shown_where_nobody_watches_or_where_it_is_quick() -> None:
    for stream in (io.StringIO(), Terminal()):
        with progress("counting", "rows", 10, stream) as advance:
            advance(10)
        assert stream.getvalue() == ""


def test_a_line_is_shown_and_wiped(monkeypatch) -> None:
    clock = iter([0.0, 1.0, 2.5, 2.6, 4.0])
    monkeypatch.setattr(module.time, "monotonic", lambda: next(clock))
    stream = Terminal()
    with progress("counting", "rows", 100, stream) as advance:
        for _ in range(4):
            advance(20)
    shown = stream.getvalue().replace("\033[K", "").split("\r")
    assert shown[1] == "counting ████████░░░░░░░░░░░░ 40%: 40 of 100 rows, 16 a second, 4 s left"
    assert shown[2].startswith("counting ████████████████░░░░ 80%: 80 of 100 rows")
    assert shown[3] == ""
    assert len(shown) == 4


def test_without_a_total_the_number_is_shown() -> None:
    assert describe_progress("tuning", "candidates", 12, None, 3.2) == "tuning: 12 candidates, 4 a second, 3 s"


def test_an_estimate_that_was_too_low_is_forgotten() -> None:
    assert describe_progress("counting", "rows", 120, 100, 3.0) == "counting: 120 rows, 40 a second, 3 s"


@pytest.mark.parametrize("most", [8, 20, 40, 60, 79, 119])
@pytest.mark.parametrize("total", [None, 12_345_678_901])
def test_the_line_fits_into_the_terminal(most: int, total: int | None) -> None:
    """Longer ones would scroll; the share and the time left are the last to go."""
    line = describe_progress("fold 3 of 5, counting", "rows", 1_234_567_890, total, 1234.0, most)
    assert len(line) <= most
    if total and most >= 40:
        assert "9%" in line
        assert line.endswith("s left")


def test_stages_are_named_and_their_time_counts_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five folds of one second each would never have shown a line."""
    now = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    stream = Terminal()
    with stages("fold", 5) as begin:
        for fold in range(5):
            begin(fold)
            for _ in range(2):
                with progress("counting", "rows", 10, stream) as advance:
                    now[0] += 0.5
                    advance(10)
    shown = [line for line in stream.getvalue().replace("\033[K", "").split("\r") if line]
    assert shown[0].startswith("fold 3 of 5, counting ████████████████████ 100%: 10 of 10 rows")
    assert shown[-1].startswith("fold 5 of 5, counting")
    stream = Terminal()
    with progress("counting", "rows", 10, stream) as advance:
        now[0] += 1.0
        advance(10)
    assert stream.getvalue() == ""


def test_evaluating_shows_how_far_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Folds, rows that are judged, and rows that are left out."""
    (tmp_path / "t.csv").write_text("a,k\n" + "".join(f"{k % 7},{k % 2}\n" for k in range(40)))
    stream = Terminal()
    monkeypatch.setattr(module.sys, "stderr", stream)
    monkeypatch.setattr(module, "PATIENCE", 0.0)
    monkeypatch.setattr(module, "INTERVAL", 0.0)
    rows = LabeledStream.of(scan(tmp_path / "t.csv"), "k", None)
    clf = BayesClassifier(tune=None)
    cross_validate(Settings(tune=None), rows, 2)
    assert "fold 2 of 2, evaluating" in stream.getvalue()
    clf.fit(rows.stream, "k")
    evaluate_left_out(clf.fitted_, rows)
    assert "leaving out" in stream.getvalue()


def make_rows(rows: int = 400) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    X = random.normal(size=(rows, 4))
    return X, (X[:, 0] * X[:, 1] + 0.5 * random.normal(size=rows) > 0.0).astype(int)


def test_a_callback_gets_every_stage_without_printing(capsys: pytest.CaptureFixture[str]) -> None:
    found: list[Progress] = []
    with on_progress(found.append):
        clf = BayesClassifier().fit(*make_rows())
        fitted = len(found)
        clf.leave_one_out(*make_rows())
        clf.cross_validate(*make_rows(), folds=2)
    BayesClassifier().fit(*make_rows())
    assert capsys.readouterr() == ("", "")
    stages = list(dict.fromkeys(one.stage for one in found[:fitted]))
    assert stages == ["tuning", "counting", "leaving out", "learning corrections"]
    first = [one for one in found[:fitted] if one.stage == "counting"]
    ends = [(one.done, one.total, one.finished) for one in (first[0], first[-1])]
    assert ends == [(0, 400, False), (400, 400, True)]
    assert all(one.finished for one in found if one.seconds_left == 0.0 and one.total is None)
    assert {"fold 1 of 2, tuning", "fold 2 of 2, evaluating"} <= {one.stage for one in found[fitted:]}


def test_the_remaining_time_is_estimated_from_the_rate() -> None:
    half = Progress("counting", "rows", 50, 100, 3.0)
    assert half.seconds_left == 3.0
    assert str(half).startswith("counting ██████████░░░░░░░░░░ 50%: 50 of 100 rows")
    for unknown in (Progress("counting", "rows", 0, 100, 3.0), Progress("counting", "rows", 9, None, 3.0)):
        assert unknown.seconds_left is None
    assert Progress("counting", "rows", 9, None, 3.0, finished=True).seconds_left == 0.0


class CancelledError(Exception):
    pass


@pytest.mark.parametrize("stage", ["tuning", "counting", "leaving out", "learning corrections"])
def test_a_callback_may_cancel_and_the_classifier_is_unchanged(stage: str) -> None:
    X, y = make_rows()
    clf = BayesClassifier().fit(X[:, :2], y)
    before = clf.fitted_, clf.predict_log_proba(X[:, :2])

    def cancel(progress: Progress) -> None:
        if progress.stage == stage and progress.done:
            raise CancelledError

    with on_progress(cancel), pytest.raises(CancelledError):
        clf.fit(X, y)
    assert clf.fitted_ is before[0]
    assert np.array_equal(clf.predict_log_proba(X[:, :2]), before[1])
    fresh = BayesClassifier()
    with on_progress(cancel), pytest.raises(CancelledError):
        fresh.fit(X, y)
    assert not hasattr(fresh, "fitted_")


def test_callbacks_nest_and_end_with_their_block_and_do_not_reach_other_threads() -> None:
    outer: list[str] = []
    inner: list[str] = []

    def run(name: str) -> None:
        with progress(name, "rows", 1) as advance:
            advance(1)

    with on_progress(lambda one: outer.append(one.stage)):
        with on_progress(lambda one: inner.append(one.stage)):
            run("both")
        run("outer")
        other = threading.Thread(target=run, args=("other",))
        other.start()
        other.join()
    run("none")
    assert (outer, inner) == (["both", "both", "outer", "outer"], ["both", "both"])


def test_updates_in_between_are_at_most_five_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    found: list[int] = []
    with on_progress(lambda one: found.append(one.done)):
        for _ in track(range(100), "counting", "rows", 100):
            now[0] += 0.01
    assert found[0] == 0
    assert found[-1] == 100
    assert 5 <= len(found) <= 7


def test_stages_within_stages_name_both() -> None:
    found: list[str] = []
    with on_progress(lambda one: found.append(one.stage)), stages("model", 2) as outer:
        outer(1)
        with stages("fold", 5) as begin:
            begin(2)
            list(track([], "counting", "rows"))
        list(track([], "saving", "rows"))
    assert list(dict.fromkeys(found)) == ["model 2 of 2, fold 3 of 5, counting", "model 2 of 2, saving"]


@pytest.mark.parametrize(
    ("call", "stage"),
    [
        (lambda clf, X, y: clf.importance(), "measuring importance"),
        (lambda clf, X, y: clf.importance(), "explaining"),
        (lambda clf, X, y: clf.diagnose(), "testing"),
        (lambda clf, X, y: clf.select_columns(2), "selecting"),
        (lambda clf, X, y: clf.evaluate(X, y), "evaluating"),
        (lambda clf, X, y: clf.predict(np.tile(X, (800, 1))), "scoring"),
        (lambda clf, X, y: clf.retune(X, y), "learning corrections"),
        (lambda clf, X, y: clf.report(), "testing"),
    ],
)
def test_every_long_call_reports(call: Callable, stage: str) -> None:
    X, y = make_rows()
    clf = BayesClassifier().fit(X, y)
    found: list[Progress] = []
    with on_progress(found.append):
        call(clf, X, y)
    own = [one for one in found if one.stage == stage]
    assert own[0].done == 0
    assert own[-1].finished
    assert own[-1].done > 0


class Shell:
    """What this package uses of a notebook's shell."""

    kernel = object()

    def __init__(self) -> None:
        self.execution_count = 1


def test_a_notebook_shows_one_line_that_is_updated_and_cleared(monkeypatch: pytest.MonkeyPatch) -> None:
    display = pytest.importorskip("IPython.display")
    shell, shown, now = Shell(), [], [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: shell)
    monkeypatch.setattr(display, "display", lambda data, **how: shown.append((data["text/plain"], how)))
    for cell in (1, 2):
        shell.execution_count = cell
        for _ in track(range(4), "counting", "rows", 4):
            now[0] += 1.1
    lines, how = [text for text, _ in shown], [given for _, given in shown]
    assert [line.partition(":")[0][-4:] for line in lines] == [" 50%", " 75%", "100%", ""] * 2
    assert [one["update"] for one in how] == [False, True, True, True] * 2
    names = [one["display_id"] for one in how]
    assert names[0] == names[3] != names[4] == names[7]


def test_the_callback_is_public() -> None:
    assert deciban.on_progress is on_progress


def test_the_stages_of_one_call_count_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call of many stages of a second each shows a line from two seconds on."""
    now = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    stream = Terminal()
    with one_call():
        for name in ("looking", "tuning", "counting"):
            with progress(name, "rows", 10, stream) as advance:
                now[0] += 1.1
                advance(10)
    shown = [line.partition(" ")[0] for line in stream.getvalue().replace("\033[K", "").split("\r") if line]
    assert list(dict.fromkeys(shown)) == ["tuning", "counting"]


def test_a_report_is_one_call() -> None:
    """Its stages count together, and begin anew in the next report."""
    X, y = make_rows()
    clf = BayesClassifier().fit(X, y)
    begun: list[float] = []

    def remember(one: Progress) -> None:
        stage = module._stage.get()
        begun.append(stage[1] if stage else -1.0)

    for _ in range(2):
        with on_progress(remember):
            clf.report()
    assert len(set(begun)) == 2
    assert -1.0 not in begun
