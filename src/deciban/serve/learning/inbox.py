"""What waits for the one thread that learns: requests, rows to be kept, and calls of other threads."""

import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from threading import Condition
from typing import Any, NamedTuple

from deciban.serve.learning.requests import Request
from deciban.serve.problems import Problem

# Rows that are taken at once, unless one request has more.
MOST_AT_ONCE = 5_000

# Seconds that rows to be kept may wait for others, and how many wait no longer: nobody is waiting for them.
KEEP_DELAY, KEEP_AT_ONCE = 0.2, 1_000


class Kept(NamedTuple):
    """Ids and records, as JSON, of rows that are to be labelled later."""

    rows: Sequence[tuple[str, str]]
    answer: "Future[None]"
    since: float


class Work(NamedTuple):
    """What is to be done now. ended: nothing will come any more."""

    requests: list[Request]
    kept: list[Kept]
    calls: list[Callable[[], Any]]
    ended: bool


class Inbox:
    """A bounded queue; `most` is how many rows may wait."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._changed = Condition()
        self._requests: deque[Request] = deque()
        self._kept: deque[Kept] = deque()
        self._calls: deque[Callable[[], Any]] = deque()
        self._waiting = 0
        self._kept_waiting = 0
        self._closed = False

    @property
    def waiting(self) -> int:
        """How many rows wait to be learned or forgotten."""
        return self._waiting

    def put(self, request: Request) -> None:
        """Let a request wait; a Problem where too many do. One alone may be as large as it likes."""
        with self._changed:
            self._refuse(self._waiting, request.size)
            self._waiting += request.size
            self._requests.append(request)
            self._changed.notify()

    def keep(self, rows: Sequence[tuple[str, str]]) -> "Future[None]":
        """Let rows wait to be kept; a Problem where too many do."""
        answer: Future[None] = Future()
        with self._changed:
            self._refuse(self._kept_waiting, len(rows))
            self._kept_waiting += len(rows)
            self._kept.append(Kept(rows, answer, time.monotonic()))
            self._changed.notify()
        return answer

    def _refuse(self, waiting: int, more: int) -> None:
        if self._closed:
            raise Problem(503, "the service is stopping", "send it again later")
        if waiting and waiting + more > self._most:
            raise Problem(503, f"{waiting:,} rows are waiting to be learned", "send it again later")

    def call(self, action: Callable[[], Any]) -> "Future[Any]":
        """Have the thread that learns call this, also after the box is closed."""
        answer: Future[Any] = Future()

        def answering() -> None:
            try:
                answer.set_result(action())
            except BaseException as problem:
                answer.set_exception(problem)

        with self._changed:
            self._calls.append(answering)
            self._changed.notify()
        return answer

    def close(self) -> None:
        """Take no more; what waits is still to be done."""
        with self._changed:
            self._closed = True
            self._changed.notify()

    def take(self, longest: float, calls_only: bool = False) -> Work:
        """What is to be done now; wait for it for at most so many seconds."""
        end = time.monotonic() + longest
        with self._changed:
            while not self._ready(calls_only) and (left := self._patience(end)) > 0.0:
                self._changed.wait(left)
            calls = [self._calls.popleft() for _ in range(len(self._calls))]
            if calls_only:
                return Work([], [], calls, False)
            requests, rows = list[Request](), 0
            while self._requests and (not requests or rows + self._requests[0].size <= MOST_AT_ONCE):
                requests.append(self._requests.popleft())
                rows += requests[-1].size
            self._waiting -= rows
            kept = list(self._kept) if requests or self._closed or self._keep_now() else []
            if kept:
                self._kept.clear()
                self._kept_waiting = 0
            return Work(requests, kept, calls, self._closed and not self._requests and not self._kept)

    def _ready(self, calls_only: bool) -> bool:
        return bool(self._calls) or (not calls_only and bool(self._requests or self._closed or self._keep_now()))

    def _keep_now(self) -> bool:
        full = self._kept_waiting >= KEEP_AT_ONCE
        return bool(self._kept) and (full or time.monotonic() >= self._kept[0].since + KEEP_DELAY)

    def _patience(self, end: float) -> float:
        """How long to wait for something to change."""
        if self._kept:
            end = min(end, self._kept[0].since + KEEP_DELAY)
        return end - time.monotonic()
