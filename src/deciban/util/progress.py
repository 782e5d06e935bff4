"""Progress line on the terminal for work that takes longer than two seconds."""

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

# Seconds before the first line is shown.
PATIENCE = 2.0

# Seconds between two updates.
INTERVAL = 0.2

# Characters of the progress bar.
BAR_WIDTH = 20

Advance = Callable[[int], None]

# The current stage of work in several stages, such as "fold 2 of 5", and when the first stage began.
_stage: list[tuple[str, float]] = []


@contextmanager
def stages(what: str, total: int) -> Iterator[Advance]:
    """Yield a function to call with the number of each stage, from 0, when it begins.

    Progress lines then start with the stage. They are shown when all stages together have taken longer than PATIENCE.
    """
    start = time.monotonic()

    def begin(place: int) -> None:
        _stage[-1] = (f"{what} {place + 1} of {total}, ", start)

    _stage.append(("", start))
    try:
        yield begin
    finally:
        _stage.pop()


@contextmanager
def progress(what: str, unit: str, total: int | None = None, stream: TextIO | None = None) -> Iterator[Advance]:
    """Yield a function to call with the number of units done; it prints only on terminals.

    With a total the line shows the share and the remaining time, without one the number, the rate and the elapsed time.
    The line is cleared at the end.
    """
    screen = sys.stderr if stream is None else stream
    if not _is_watched(screen):
        yield lambda done: None
        return
    start = time.monotonic()
    stage, begun = _stage[-1] if _stage else ("", start)
    done, shown, width = 0, begun + PATIENCE - INTERVAL, 0

    def advance(more: int) -> None:
        nonlocal done, shown, width
        done += more
        now = time.monotonic()
        if now - shown < INTERVAL:
            return
        shown = now
        line = describe_progress(f"{stage}{what}", unit, done, total, now - start, _columns(screen) - 1)
        print(f"\r{line:{width}}", end="", file=screen, flush=True)
        width = len(line)

    try:
        if stage and start - begun >= PATIENCE:
            advance(0)
        yield advance
    finally:
        if width:
            print(f"\r{'':{width}}\r", end="", file=screen, flush=True)


def _is_watched(screen: TextIO | None) -> bool:
    """Return True for a terminal.

    A program without a console may have no stream, or one without `isatty`.
    """
    try:
        return screen is not None and screen.isatty()
    except (AttributeError, ValueError):
        return False


def _columns(screen: TextIO) -> int:
    """Return the width of the terminal."""
    try:
        return os.get_terminal_size(screen.fileno()).columns or 80
    except (OSError, ValueError):
        return shutil.get_terminal_size().columns


def describe_progress(what: str, unit: str, done: int, total: int | None, seconds: float, max_width: int = 120) -> str:
    """Return the progress in one line of at most `max_width` characters, leaving out details that do not fit."""
    rate = done / max(seconds, 1e-9)
    speed = f", {rate:,.0f} a second"
    if not total or done > total:  # a total may be an estimate
        forms = [f"{what}: {done:,} {unit}{speed}, {seconds:.0f} s", f"{what}: {done:,} {unit}, {seconds:.0f} s"]
    else:
        time_left = f", {(total - done) / max(rate, 1e-9):.0f} s left" if done else ""
        bar, share = f"{'█' * (BAR_WIDTH * done // total):░<{BAR_WIDTH}}", f"{100 * done // total} %"
        amount = f"{done:,} of {total:,} {unit}"
        forms = [
            f"{what} {bar} {share}: {amount}{speed}{time_left}",
            f"{what} {bar} {share}: {amount}{time_left}",
            f"{what} {share}: {amount}{time_left}",
            f"{what} {share}{time_left}",
        ]
    return next((form for form in forms if len(form) <= max_width), forms[-1][: max(max_width, 1)])


def show_line(line: str, stream: TextIO | None = None) -> None:
    """Show a line on the terminal that the next one replaces; an empty line clears it."""
    screen = sys.stderr if stream is None else stream
    if _is_watched(screen):
        print(f"\r\033[K{line[: _columns(screen) - 1]}", end="", file=screen, flush=True)
