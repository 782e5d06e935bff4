"""What waits for the one thread that learns: requests, rows to be kept, and calls of other threads."""

import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from threading import Condition
from typing import Any, NamedTuple

from deciban.serve.online.draft import Request
from deciban.serve.online.journal import pending_bytes
from deciban.serve.problems import Problem

# Rows that are taken at once, unless one request has more.
MAX_AT_ONCE = 5_000

# Seconds that rows to be kept may wait for others, and how many wait no longer: nobody is waiting for them.
KEEP_DELAY, KEEP_AT_ONCE = 0.2, 1_000


# Why nothing is taken any more.
STOPPING = Problem(503, "the service is stopping", "send it again later")

log = logging.getLogger("deciban.serve")


class PendingRows(NamedTuple):
    """Ids and records, as JSON, of rows that are to be kept until they are labeled. size: in bytes."""

    rows: Sequence[tuple[str, str]]
    size: int
    answer: "Future[None]"
    since: float


class Work(NamedTuple):
    """What is to be done now. ended: nothing will come any more."""

    requests: list[Request]
    pending: list[PendingRows]
    calls: list[Callable[[], Any]]
    ended: bool


class Inbox:
    """A bounded queue.

    most: how many rows may wait to be learned, and to be kept. most_bytes: of the latter. lost: how many rows that were
    to be kept were not.
    """

    def __init__(self, most: int, most_bytes: int) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self.lost = 0
        self._change_error = Condition()
        self._requests: deque[Request] = deque()
        self._pending: deque[PendingRows] = deque()
        self._calls: deque[tuple[Callable[[], Any], Future[Any]]] = deque()
        self._waiting = 0
        self._pending_waiting = self._pending_bytes = 0
        self._closed: Problem | None = None
        self._ended = False

    @property
    def waiting(self) -> int:
        """How many rows wait to be learned or forgotten."""
        return self._waiting

    def put(self, request: Request) -> None:
        """Let a request wait; a Problem where too many do. One alone may be as large as it likes."""
        with self._change_error:
            self._refuse(self._waiting, request.size)
            self._waiting += request.size
            self._requests.append(request)
            self._change_error.notify()

    def keep(self, rows: Sequence[tuple[str, str]]) -> "Future[None]":
        """Let rows wait to be kept; a Problem where too many do."""
        answer: Future[None] = Future()
        with self._change_error:
            size = sum(pending_bytes(*row) for row in rows)
            self._refuse(self._pending_waiting, len(rows))
            if self._pending_bytes and self._pending_bytes + size > self._most_bytes:
                raise Problem(503, f"{self._pending_bytes:,} bytes are waiting to be kept", "send it again later")
            self._pending_waiting += len(rows)
            self._pending_bytes += size
            self._pending.append(PendingRows(rows, size, answer, time.monotonic()))
            self._change_error.notify()
        return answer

    def lose(self, rows: int) -> None:
        """Count rows that were to be kept and were not."""
        with self._change_error:
            self.lost += rows

    def _refuse(self, waiting: int, more: int) -> None:
        if self._closed is not None:
            raise self._closed
        if waiting and waiting + more > self._most:
            raise Problem(503, f"{waiting:,} rows are waiting to be learned", "send it again later")

    def call(self, action: Callable[[], Any]) -> "Future[Any]":
        """Have the thread that learns call this, also after the box is closed; what comes of it, for who asks."""
        answer: Future[Any] = Future()
        with self._change_error:
            if self._ended:
                answer.set_exception(RuntimeError("learning has ended"))
            else:
                self._calls.append((action, answer))
            self._change_error.notify()
        return answer

    def post(self, action: Callable[[], Any]) -> None:
        """Have the thread that learns call this; nobody waits for it, so what goes wrong is logged."""
        self.call(action).add_done_callback(_log_failure)

    def close(self, why: Problem = STOPPING) -> None:
        """Take no more, and say why; what waits is still to be done."""
        with self._change_error:
            self._closed = self._closed or why
            self._change_error.notify()

    def end(self) -> None:
        """Nobody takes anything out any more: calls fail, so that nobody waits for them."""
        with self._change_error:
            self._ended = True
            left = [answer for _, answer in self._calls]
            self._calls.clear()
        for answer in left:
            answer.set_exception(RuntimeError("learning has ended"))

    def take(self, longest: float, calls_only: bool = False) -> Work:
        """What is to be done now; wait for it for at most so many seconds."""
        end = time.monotonic() + longest
        with self._change_error:
            while not self._ready(calls_only) and (left := self._patience(end)) > 0.0:
                self._change_error.wait(left)
            calls: list[Callable[[], Any]] = [
                partial(_answer_call, *self._calls.popleft()) for _ in range(len(self._calls))
            ]
            if calls_only:
                return Work([], [], calls, False)
            requests, rows = list[Request](), 0
            while self._requests and (not requests or rows + self._requests[0].size <= MAX_AT_ONCE):
                requests.append(self._requests.popleft())
                rows += requests[-1].size
            self._waiting -= rows
            pending = list(self._pending) if requests or self._closed or self._keep_now() else []
            if pending:
                self._pending.clear()
                self._pending_waiting = self._pending_bytes = 0
            ended = self._closed is not None and not self._requests and not self._pending
            return Work(requests, pending, calls, ended)

    def _ready(self, calls_only: bool) -> bool:
        return bool(self._calls) or (not calls_only and bool(self._requests or self._closed or self._keep_now()))

    def _keep_now(self) -> bool:
        full = self._pending_waiting >= KEEP_AT_ONCE
        return bool(self._pending) and (full or time.monotonic() >= self._pending[0].since + KEEP_DELAY)

    def _patience(self, end: float) -> float:
        """How long to wait for something to change."""
        if self._pending:
            end = min(end, self._pending[0].since + KEEP_DELAY)
        return end - time.monotonic()


def _answer_call(action: Callable[[], Any], answer: "Future[Any]") -> None:
    try:
        answer.set_result(action())
    except BaseException as problem:
        answer.set_exception(problem)


def _log_failure(answer: "Future[Any]") -> None:
    if (problem := answer.exception()) is not None:
        log.error("a call of the thread that learns failed", exc_info=problem)
