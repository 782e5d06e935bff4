"""Online learning: one thread writes, everybody reads the state that it publishes."""

import logging
import os
import sqlite3
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from threading import Lock, Thread
from typing import Any

from deciban.serve.bodies.checks import LearnableRows, Record
from deciban.serve.online.draft import Learned, Request, rows_to_keep
from deciban.serve.online.housekeeping import Housekeeping
from deciban.serve.online.inbox import Inbox, PendingRows
from deciban.serve.online.learned_model import LearnedModel
from deciban.serve.predictions import State
from deciban.serve.problems import Problem
from deciban.serve.settings import LearnSettings

log = logging.getLogger("deciban.serve")


class Learner:
    """A model that learns on line, durably.

    Requests wait for one thread, which takes all that wait at once: they are written to the journal in one transaction,
    the model is estimated once, published, and then they are answered. So what is answered is on the disk, and in the
    model that is read next. The model file is written from time to time, by another thread.
    """

    def __init__(self, learned_model: LearnedModel, publish: Callable[[State], None]) -> None:
        self._model = learned_model
        self._publish = publish
        self._inbox = Inbox(learned_model.settings.max_queued_rows, learned_model.settings.max_queued_bytes)
        self._housekeeping = Housekeeping(learned_model, self._inbox, self._show)
        self._closing = Lock()
        publish(learned_model.state)
        self._thread = Thread(target=self._run, name="deciban learns", daemon=True)
        self._thread.start()

    @classmethod
    def open(cls, path: str | os.PathLike[str], settings: LearnSettings, publish: Callable[[State], None]) -> "Learner":
        """A learner of the model in this file, and of what its journal has learned since.

        publish: called with each new state, the first one included. A ModelFileError where another process learns with
        this model, or where the journal belongs to another one.
        """
        return cls(LearnedModel.open(os.fspath(path), settings), publish)

    def learn(self, rows: LearnableRows) -> "Future[Learned]":
        """Learn rows: "learned", "already learned" or "relearned"."""
        return self._put(Request(rows))

    def forget(self, rows: LearnableRows) -> "Future[Learned]":
        """Forget rows: "forgotten" or "not found"."""
        return self._put(Request(rows, forgets=True))

    def keep(self, ids: Sequence[str], records: Sequence[Record]) -> "Future[None]":
        """Keep rows to be labeled later. They are kept soon; requests that come after this one find them."""
        try:
            return self._inbox.keep(rows_to_keep(self._model.state.fitted, ids, records))
        except Problem as problem:
            if problem.status != 422:
                self._inbox.lose(len(ids))
            failed: Future[None] = Future()
            failed.set_exception(problem)
            return failed

    def _put(self, request: Request) -> "Future[Learned]":
        try:
            self._inbox.put(request)
        except Problem as problem:
            request.answer.set_exception(problem)
        return request.answer

    def status(self) -> dict[str, Any]:
        """Where learning stands, for people and metrics; ages in seconds, problems as text."""
        learned_model, numbers = self._model, self._model.numbers
        return {
            "sequence": numbers.sequence,
            "unsaved_changes": learned_model.unsaved,
            "queued_rows": self._inbox.waiting,
            "journal_bytes": sum(_size(learned_model.journal.path + end) for end in ("", "-wal")),
            "model_bytes": learned_model.file.size,
            "retained_rows": numbers.kept,
            "pending_rows": numbers.pending,
            "dropped_pending_rows": self._inbox.lost,
            "snapshots": self._housekeeping.snapshots,
            "snapshot_age_seconds": time.monotonic() - self._housekeeping.saved_at,
            "retunes": learned_model.tunings,
            "rows_since_retune": numbers.untuned,
            "problems": list(self._housekeeping.problems.values()),
        }

    def close(self) -> None:
        """Do what waits, write the model file, and close the journal. What comes later is refused."""
        with self._closing:
            self._inbox.close()
            self._thread.join()

    def __enter__(self) -> "Learner":
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    # The thread that learns.

    def _run(self) -> None:
        try:
            while not self._step():
                pass
            self._housekeeping.wait_for_saving()
            self._housekeeping.end()
        except Exception as fault:  # of our own making: what is acknowledged is in the journal
            log.exception("learning has ended")
            self._housekeeping.tell("learning", f"{type(fault).__name__}; see its log, and start it again")
            self._refuse_all(Problem(503, "the service has stopped learning", "start it again"))
        finally:
            self._inbox.end()
            self._model.close()

    def _refuse_all(self, why: Problem) -> None:
        """Fail all that waits, and all that comes."""
        self._inbox.close(why)
        while True:
            work = self._inbox.take(0.0)
            for call in work.calls:
                call()
            self._inbox.lose(sum(len(some.rows) for some in work.pending))
            waiting: list[Request | PendingRows] = [*work.requests, *work.pending]
            _fail([one for one in waiting if one.answer.set_running_or_notify_cancel()], why)
            if work.ended:
                return

    def _step(self) -> bool:
        """Do what waits, and a little of what is due besides; whether that was the last."""
        work = self._inbox.take(self._housekeeping.patience())
        for call in work.calls:
            call()
        requests = [request for request in work.requests if request.answer.set_running_or_notify_cancel()]
        pending = [some for some in work.pending if some.answer.set_running_or_notify_cancel()]
        if requests or pending:
            self._answer(requests, pending)
        self._housekeeping.step()
        return work.ended

    def _answer(self, requests: list[Request], pending: list[PendingRows], again: bool = True) -> None:
        """Write down what was asked, show the model that it makes, and say what became of each request.

        again: whether to try once more when the journal finds no room.
        """
        before = self._model.state
        try:
            rows = [row for some in pending for row in some.rows]
            outcomes = self._model.write(requests, rows, self._full())
        except sqlite3.Error as problem:
            if len(requests) > 1:  # some of them may find room
                for request in requests:
                    self._answer([request], [])
                self._answer([], pending)
            elif again and "full" in str(problem) and self._model.can_be_shortened:
                self._housekeeping.make_room()
                self._answer(requests, pending, again=False)
            else:
                self._housekeeping.tell("journal", problem)
                failed = Problem(503, "the journal cannot be written", "nothing was learned: send it again later")
                self._fail_both(requests, pending, failed)
            return
        except Exception as problem:
            log.exception("learning failed")
            self._fail_both(requests, pending, problem)
            return
        self._housekeeping.problems.pop("journal", None)
        if self._model.state is not before:
            self._housekeeping.changed(before.sequence)
            self._show()
        for some in pending:
            some.answer.set_result(None)
        for request, outcome in zip(requests, outcomes, strict=True):
            if isinstance(outcome, Exception):
                request.answer.set_exception(outcome)
            else:
                request.answer.set_result(Learned(outcome, self._model.state))

    def _fail_both(self, requests: list[Request], pending: list[PendingRows], problem: Exception) -> None:
        self._inbox.lose(sum(len(some.rows) for some in pending))
        _fail([*requests, *pending], problem)

    def _show(self) -> None:
        try:
            self._publish(self._model.state)
        except Exception:  # of somebody else's making: what was learned is learned
            log.exception("publishing a model failed")

    def _full(self) -> Problem | None:
        """Why nothing is learned any more, if that is so; before that, room is made."""
        settings, learned_model = self._model.settings, self._model
        if learned_model.file.size > settings.max_model_bytes:
            cause = f"the model has reached its bound of {settings.max_model_bytes:,} bytes"
            return Problem(507, cause, "forget rows, or raise --max-model-bytes")
        if learned_model.full:
            self._housekeeping.make_room()
        if not learned_model.full:
            return None
        cause = f"the journal has reached its bound of {settings.max_journal_bytes:,} bytes"
        return Problem(
            507, cause, "see which problem keeps the model file from being written, or raise --max-journal-bytes"
        )


def _fail(waiting: Sequence[Request | PendingRows], problem: Exception) -> None:
    for one in waiting:
        one.answer.set_exception(problem)


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
