"""The progress line."""

import io

from deciban import progress as module
from deciban.progress import described, progress


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
    assert described("tuning", "candidates", 12, None, 3.2) == "tuning: 12 candidates, 4 a second, 3 s"


def test_an_estimate_that_was_too_low_is_forgotten() -> None:
    assert described("counting", "rows", 120, 100, 3.0) == "counting: 120 rows, 40 a second, 3 s"
