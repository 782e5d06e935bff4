"""The progress line."""

import io
from pathlib import Path

import pytest

from deciban import BayesClassifier, scan
from deciban.evaluation.validation import cross_validate, evaluate_left_out
from deciban.model.fitted import Settings
from deciban.sources.streams import LabeledStream
from deciban.util import progress as module
from deciban.util.progress import describe_progress, progress, stages


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
    shown = stream.getvalue().split("\r")
    assert shown[1] == "counting ████████░░░░░░░░░░░░ 40 %: 40 of 100 rows, 16 a second, 4 s left"
    assert shown[2].startswith("counting ████████████████░░░░ 80 %: 80 of 100 rows")
    assert shown[3].strip() == ""
    assert len(shown) == 5


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
        assert "9 %" in line
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
    shown = [line for line in stream.getvalue().split("\r") if line.strip()]
    assert shown[0].startswith("fold 3 of 5, counting ████████████████████ 100 %: 10 of 10 rows")
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
