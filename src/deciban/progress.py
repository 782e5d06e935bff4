"""A line on the terminal for what takes longer than two seconds."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

PATIENCE = 2.0
INTERVAL = 0.2
BAR = 20

Advance = Callable[[int], None]


@contextmanager
def progress(what: str, unit: str, total: int | None = None, stream: TextIO | None = None) -> Iterator[Advance]:
    """Yields a function to call with the number of units done. Quiet where nobody watches; wiped in the end.

    With a total it shows the share and the time left, without one the number, the rate and the time.
    """
    screen = sys.stderr if stream is None else stream
    if not screen.isatty():
        yield lambda done: None
        return
    start = time.monotonic()
    done, shown, width = 0, start + PATIENCE - INTERVAL, 0

    def advance(more: int) -> None:
        nonlocal done, shown, width
        done += more
        now = time.monotonic()
        if now - shown < INTERVAL:
            return
        shown = now
        line = described(what, unit, done, total, now - start)
        print(f"\r{line:{width}}", end="", file=screen, flush=True)
        width = len(line)

    try:
        yield advance
    finally:
        if width:
            print(f"\r{'':{width}}\r", end="", file=screen, flush=True)


def described(what: str, unit: str, done: int, total: int | None, seconds: float) -> str:
    """What is done so far, in one line."""
    rate = done / max(seconds, 1e-9)
    if not total or done > total:  # a total may be an estimate
        return f"{what}: {done:,} {unit}, {rate:,.0f} a second, {seconds:.0f} s"
    left = (total - done) / max(rate, 1e-9)
    bar = "█" * (BAR * done // total)
    return (
        f"{what} {bar:░<{BAR}} {100 * done // total} %: {done:,} of {total:,} {unit}, {rate:,.0f} a second, "
        f"{left:.0f} s left"
    )
