"""Progress of long calls: a line on the terminal or in a notebook, and a callback.

The line appears after two seconds and is cleared at the end. Without a terminal or a notebook nothing is printed.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol, TextIO, TypeVar
from uuid import uuid4

# Seconds before the first line is shown.
PATIENCE = 2.0

# Seconds between two updates.
INTERVAL = 0.2

# Characters of the progress bar.
BAR_WIDTH = 20

# Characters of the line in a notebook, whose width is unknown.
NOTEBOOK_COLUMNS = 100

Advance = Callable[[int], None]

T = TypeVar("T")


@dataclass(frozen=True)
class Progress:
    """Progress of one stage of a long call, passed to the callback of `on_progress`.

    Parameters
    ----------
    stage : str
        Name of the stage, such as ``"counting"`` or ``"fold 2 of 5, counting"``.
    unit : str
        What is counted, such as ``"rows"``.
    done : int
        Number of units done.
    total : int or None
        Number of units of the stage, if known. It may be an estimate, and a stage may end early.
    seconds : float
        Seconds since the stage began.
    finished : bool, default=False
        True for the last value of a stage.

    Examples
    --------
    >>> from deciban import Progress
    >>> half = Progress("counting", "rows", done=50, total=100, seconds=3.0)
    >>> half.seconds_left
    3.0
    >>> print(half)
    counting ██████████░░░░░░░░░░ 50%: 50 of 100 rows, 17 a second, 3 s left
    """

    stage: str
    unit: str
    done: int
    total: int | None
    seconds: float
    finished: bool = False

    @property
    def seconds_left(self) -> float | None:
        """Estimated seconds until the stage ends; None if unknown."""
        if self.finished:
            return 0.0
        if not self.total or not 0 < self.done <= self.total:
            return None
        return (self.total - self.done) * self.seconds / self.done

    def __str__(self) -> str:
        return describe_progress(self.stage, self.unit, self.done, self.total, self.seconds)


# Name of the current stage of work in several stages, such as "fold 2 of 5, ", and when the first stage began.
_stage: ContextVar[tuple[str, float] | None] = ContextVar("stage", default=None)

# Functions that are called with each `Progress`.
_callbacks: ContextVar[tuple[Callable[[Progress], Any], ...]] = ContextVar("callbacks", default=())


@contextmanager
def on_progress(callback: Callable[[Progress], Any]) -> Iterator[None]:
    """Call a function with the progress of all long calls in a ``with`` block.

    It is called when a stage begins, when it ends, and at most five times a second in between, in the thread of the
    block. An exception that it raises cancels the call, which then changes nothing.

    Parameters
    ----------
    callback : callable
        Function of one argument, a value with the attributes ``stage``, ``unit``, ``done``, ``total`` (None if
        unknown), ``seconds`` (elapsed), ``seconds_left`` (None if unknown) and ``finished``: a `Progress`.

    Returns
    -------
    context manager

    Examples
    --------
    >>> import deciban
    >>> from deciban.datasets import weather
    >>> with deciban.on_progress(lambda progress: progress.finished and print(progress)):  # doctest: +ELLIPSIS
    ...     clf = deciban.BayesClassifier(tune=None).fit(weather(), "play")
    counting ████████████████████ 100%: 14 of 14 rows...
    """
    token = _callbacks.set((*_callbacks.get(), callback))
    try:
        yield
    finally:
        _callbacks.reset(token)


@contextmanager
def stages(what: str, total: int) -> Iterator[Advance]:
    """Yield a function to call with the number of each stage, from 0, when it begins.

    Progress lines then start with the stage. They are shown when all stages together have taken longer than PATIENCE.
    """
    with one_call() as (prefix, begun):

        def begin(place: int) -> None:
            _stage.set((f"{prefix}{what} {place + 1} of {total}, ", begun))

        yield begin


@contextmanager
def one_call() -> Iterator[tuple[str, float]]:
    """Count the time of all stages in a block together; yield what they begin with, and when the first one began."""
    outer = _stage.get()
    found = ("", time.monotonic()) if outer is None else outer
    _stage.set(found)
    try:
        yield found
    finally:
        _stage.set(outer)


@contextmanager
def progress(what: str, unit: str, total: int | None = None, stream: TextIO | None = None) -> Iterator[Advance]:
    """Yield a function to call with the number of units done since the last call, in the thread of the block.

    With a total the line shows the share and the remaining time, without one the number, the rate and the elapsed time.
    """
    main = threading.current_thread() is threading.main_thread()  # lines of several threads would mix
    screen, callbacks = _find_screen(stream) if main else None, _callbacks.get()
    if screen is None and not callbacks:
        yield lambda done: None
        return
    start = time.monotonic()
    stage, begun = _stage.get() or ("", start)
    name, done, shown, reported = f"{stage}{what}", 0, False, begun + PATIENCE - INTERVAL
    called = start

    def report(finished: bool = False) -> None:
        now = Progress(name, unit, done, total, time.monotonic() - start, finished)
        for callback in callbacks:
            callback(now)

    def advance(more: int) -> None:
        nonlocal done, shown, reported, called
        done += more
        now = time.monotonic()
        if screen is not None and now - reported >= INTERVAL:
            shown, reported = True, now
            screen.show(describe_progress(name, unit, done, total, now - start, screen.columns))
        if callbacks and now - called >= INTERVAL:
            called = now
            report()

    try:
        if callbacks:
            report()
        if start - begun >= PATIENCE:
            advance(0)
        yield advance
        if callbacks:
            report(finished=True)
    finally:
        if shown and screen is not None:
            screen.clear()


def track(items: Iterable[T], what: str, unit: str, total: int | None = None) -> Iterator[T]:
    """Yield the items; each counts as done when the next one is asked for."""
    with progress(what, unit, total) as advance:
        for item in items:
            yield item
            advance(1)


def show_line(line: str, stream: TextIO | None = None) -> None:
    """Show a line that the next one replaces; an empty line clears it."""
    screen = _find_screen(stream)
    if screen is None:
        return
    if line:
        screen.show(line[: screen.columns])
    else:
        screen.clear()


class _Screen(Protocol):
    """Place for one line that is replaced by the next."""

    @property
    def columns(self) -> int:
        """Maximum number of characters of a line."""

    def show(self, line: str) -> None: ...

    def clear(self) -> None: ...


@dataclass(frozen=True)
class _Terminal:
    stream: TextIO

    @property
    def columns(self) -> int:
        try:
            return (os.get_terminal_size(self.stream.fileno()).columns or 80) - 1
        except (OSError, ValueError):
            return shutil.get_terminal_size().columns - 1

    def show(self, line: str) -> None:
        print(f"\r{line}\033[K", end="", file=self.stream, flush=True)

    def clear(self) -> None:
        self.show("")


class _Notebook:
    """Output of a cell that is updated in place; each cell has its own."""

    columns = NOTEBOOK_COLUMNS

    def __init__(self) -> None:
        self._cell: object = None
        self._name = ""

    def show(self, line: str) -> None:
        shell = sys.modules["IPython"].get_ipython()
        new = self._cell != shell.execution_count
        if new:
            self._cell, self._name = shell.execution_count, uuid4().hex
        display = import_module("IPython.display").display
        display({"text/plain": line}, raw=True, display_id=self._name, update=not new)

    def clear(self) -> None:
        self.show("")


_notebook = _Notebook()


def _find_screen(stream: TextIO | None) -> _Screen | None:
    """Return the terminal or the notebook; None if there is neither.

    A program without a console may have no stream, or one without `isatty`. IPython is never imported: if it is not
    there yet, this is not a notebook.
    """
    screen = sys.stderr if stream is None else stream
    try:
        if screen is not None and screen.isatty():
            return _Terminal(screen)
    except (AttributeError, ValueError):
        pass
    if stream is None and (ipython := sys.modules.get("IPython")) is not None:
        find_shell = getattr(ipython, "get_ipython", None)  # absent while IPython is being imported
        shell = None if find_shell is None else find_shell()
        if getattr(shell, "kernel", None) is not None:
            return _notebook
    return None


def describe_progress(what: str, unit: str, done: int, total: int | None, seconds: float, max_width: int = 120) -> str:
    """Return the progress in one line of at most `max_width` characters, leaving out details that do not fit."""
    rate = done / max(seconds, 1e-9)
    speed = f", {rate:,.0f} a second" if rate >= 1.0 else ""
    if not total or done > total:  # a total may be an estimate
        forms = [f"{what}: {done:,} {unit}{speed}, {seconds:.0f} s", f"{what}: {done:,} {unit}, {seconds:.0f} s"]
    else:
        time_left = f", {(total - done) / max(rate, 1e-9):.0f} s left" if done else ""
        bar, share = f"{'█' * (BAR_WIDTH * done // total):░<{BAR_WIDTH}}", f"{100 * done // total}%"
        amount = f"{done:,} of {total:,} {unit}"
        forms = [
            f"{what} {bar} {share}: {amount}{speed}{time_left}",
            f"{what} {bar} {share}: {amount}{time_left}",
            f"{what} {bar} {share}{time_left}",
            f"{what} {share}: {amount}{time_left}",
            f"{what} {share}{time_left}",
        ]
    return next((form for form in forms if len(form) <= max_width), forms[-1][: max(max_width, 1)])
