"""Queue of the learner thread: requests, rows to retain for labeling, and calls from other threads."""

import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from threading import Condition
from typing import Any, NamedTuple

from deciban.serve.online.change_set import LearnRequest
from deciban.serve.online.journal import measure_pending
from deciban.serve.problems import Problem

# Maximum number of rows per batch, unless a single request has more.
MAX_BATCH_ROWS = 5_000

# Seconds for which rows to retain are collected, since no client waits for them.
PENDING_DELAY = 0.2

# Number of rows to retain that are not delayed further.
MIN_PENDING_BATCH = 1_000


# Problem for requests during shutdown.
STOPPING = Problem(503, "the service is shutting down", "try again later")

log = logging.getLogger("deciban.serve")


class PendingRows(NamedTuple):
    """Ids and records, as JSON, of rows to retain until they are labeled. size: in bytes."""

    rows: Sequence[tuple[str, str]]
    size: int
    future: "Future[None]"
    since: float


class Work(NamedTuple):
    """Batch of work. ended: True if nothing more will come."""

    requests: list[LearnRequest]
    pending: list[PendingRows]
    calls: list[Callable[[], Any]]
    ended: bool


class WorkQueue:
    """Bounded queue of the learner thread.

    max_rows: maximum number of rows waiting to be learned, and to be retained. max_bytes: maximum size of the latter.
    dropped: number of rows that could not be retained.
    """

    def __init__(self, max_rows: int, max_bytes: int) -> None:
        self._max_rows = max_rows
        self._max_bytes = max_bytes
        self.dropped = 0
        self._changed = Condition()
        self._requests: deque[LearnRequest] = deque()
        self._pending: deque[PendingRows] = deque()
        self._calls: deque[tuple[Callable[[], Any], Future[Any]]] = deque()
        self._waiting = 0
        self._pending_waiting = self._pending_bytes = 0
        self._closed: Problem | None = None
        self._ended = False

    @property
    def queued_rows(self) -> int:
        """Number of rows waiting to be learned or forgotten."""
        return self._waiting

    def put(self, request: LearnRequest) -> None:
        """Queue a request; raise a Problem if the queue is full. A single request may exceed the limit."""
        with self._changed:
            self._check_room(self._waiting, request.size)
            self._waiting += request.size
            self._requests.append(request)
            self._changed.notify()

    def put_pending(self, rows: Sequence[tuple[str, str]]) -> "Future[None]":
        """Queue rows to retain for labeling; raise a Problem if the queue is full."""
        future: Future[None] = Future()
        with self._changed:
            size = sum(measure_pending(*row) for row in rows)
            self._check_room(self._pending_waiting, len(rows))
            if self._pending_bytes and self._pending_bytes + size > self._max_bytes:
                raise Problem(
                    503, f"{self._pending_bytes:,} bytes of rows are waiting to be retained", "try again later"
                )
            self._pending_waiting += len(rows)
            self._pending_bytes += size
            self._pending.append(PendingRows(rows, size, future, time.monotonic()))
            self._changed.notify()
        return future

    def count_dropped(self, rows: int) -> None:
        """Count rows that could not be retained."""
        with self._changed:
            self.dropped += rows

    def _check_room(self, waiting: int, more: int) -> None:
        if self._closed is not None:
            raise self._closed
        if waiting and waiting + more > self._max_rows:
            raise Problem(503, f"{waiting:,} rows are waiting to be learned", "try again later")

    def call(self, action: Callable[[], Any]) -> "Future[Any]":
        """Run `action` in the learner thread, even if the queue is closed; return the future of its result."""
        future: Future[Any] = Future()
        with self._changed:
            if self._ended:
                future.set_exception(RuntimeError("the learner has stopped"))
            else:
                self._calls.append((action, future))
            self._changed.notify()
        return future

    def post(self, action: Callable[[], Any]) -> None:
        """Run `action` in the learner thread, and log its errors."""
        self.call(action).add_done_callback(_log_failure)

    def close(self, why: Problem = STOPPING) -> None:
        """Reject further requests with this problem; queued ones are still processed."""
        with self._changed:
            self._closed = self._closed or why
            self._changed.notify()

    def end(self) -> None:
        """Fail all calls, since no thread takes them any more."""
        with self._changed:
            self._ended = True
            left = [future for _, future in self._calls]
            self._calls.clear()
        for future in left:
            future.set_exception(RuntimeError("the learner has stopped"))

    def take(self, timeout: float, calls_only: bool = False) -> Work:
        """Return the work that is due; wait for it at most `timeout` seconds."""
        end = time.monotonic() + timeout
        with self._changed:
            while not self._ready(calls_only) and (left := self._seconds_left(end)) > 0.0:
                self._changed.wait(left)
            calls: list[Callable[[], Any]] = [
                partial(_run_call, *self._calls.popleft()) for _ in range(len(self._calls))
            ]
            if calls_only:
                return Work([], [], calls, False)
            requests, rows = list[LearnRequest](), 0
            while self._requests and (not requests or rows + self._requests[0].size <= MAX_BATCH_ROWS):
                requests.append(self._requests.popleft())
                rows += requests[-1].size
            self._waiting -= rows
            pending = list(self._pending) if requests or self._closed or self._is_pending_due() else []
            if pending:
                self._pending.clear()
                self._pending_waiting = self._pending_bytes = 0
            ended = self._closed is not None and not self._requests and not self._pending
            return Work(requests, pending, calls, ended)

    def _ready(self, calls_only: bool) -> bool:
        return bool(self._calls) or (not calls_only and bool(self._requests or self._closed or self._is_pending_due()))

    def _is_pending_due(self) -> bool:
        full = self._pending_waiting >= MIN_PENDING_BATCH
        return bool(self._pending) and (full or time.monotonic() >= self._pending[0].since + PENDING_DELAY)

    def _seconds_left(self, end: float) -> float:
        """Return the time to wait for a change."""
        if self._pending:
            end = min(end, self._pending[0].since + PENDING_DELAY)
        return end - time.monotonic()


def _run_call(action: Callable[[], Any], future: "Future[Any]") -> None:
    try:
        future.set_result(action())
    except BaseException as problem:
        future.set_exception(problem)


def _log_failure(future: "Future[Any]") -> None:
    if (problem := future.exception()) is not None:
        log.error("a call in the learner thread failed", exc_info=problem)
