"""Learning on line: one thread writes, everybody reads the state that it publishes."""

import logging
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from threading import Lock, Thread
from typing import Any

from deciban.errors import DecibanError
from deciban.fitted import Fitted
from deciban.serve.compaction import used_bytes
from deciban.serve.inbox import Inbox, Kept
from deciban.serve.learn_requests import (
    Learned,
    Request,
    forgetting_ids,
    forgetting_rows,
    learning,
    learning_later,
    rows_to_keep,
)
from deciban.serve.learn_settings import LearnSettings
from deciban.serve.ledger import Ledger, packed
from deciban.serve.numbers import Numbers
from deciban.serve.problems import Problem
from deciban.serve.records import Record
from deciban.serve.retuning import MOST_ROWS, retuned
from deciban.serve.state import State
from deciban.tune.tuning import Tuning

# Seconds after which a model file that could not be written is tried again, and between two looks at old rows.
RETRY_SECONDS, TIDY_SECONDS = 30.0, 60.0

log = logging.getLogger("deciban.serve")


class Learner:
    """A model that learns on line, durably.

    Requests wait for one thread, which takes all that wait at once: they are written to the journal in one transaction,
    the model is estimated once, published, and then they are answered. So what is answered is on the disk, and in the
    model that is read next. The model file is written from time to time, by another thread.
    """

    def __init__(self, ledger: Ledger, publish: Callable[[State], None]) -> None:
        self._ledger = ledger
        self._publish = publish
        self._inbox = Inbox(ledger.settings.most_waiting)
        self._problems: dict[str, str] = {}
        self._snapshots = 0
        self._saved_at = time.monotonic()
        self._changed_at = self._saved_at  # when the oldest change came that the model file does not have
        self._retry_at = self._tidied_at = self._saved_at
        self._saving = self._tuning = self._save_soon = False
        self._retune_at = ledger.settings.retune_every
        self._chores: Iterator[None] = iter(())
        self._busy = True
        self._closing = Lock()
        publish(ledger.state)
        self._thread = Thread(target=self._run, name="deciban learns", daemon=True)
        self._thread.start()

    @classmethod
    def open(cls, path: str | os.PathLike[str], settings: LearnSettings, publish: Callable[[State], None]) -> "Learner":
        """A learner of the model in this file, and of what its journal has learned since.

        publish: called with each new state, the first one included. A ModelFileError where another process learns with
        this model, or where the journal belongs to another one.
        """
        return cls(Ledger.open(os.fspath(path), settings), publish)

    def learn(
        self, records: Sequence[Record], labels: Sequence[Any], ids: Any = None, weights: Any = None
    ) -> "Future[Learned]":
        """Learn rows: "learned", "already learned" or "relearned"."""
        return self._put(learning(records, labels, ids, weights))

    def learn_later(self, ids: Sequence[Any], labels: Sequence[Any]) -> "Future[Learned]":
        """Learn rows that were kept by their ids."""
        return self._put(learning_later(ids, labels))

    def forget_ids(self, ids: Sequence[Any]) -> "Future[Learned]":
        """Forget rows by their ids: "forgotten" or "not known"."""
        return self._put(forgetting_ids(ids))

    def forget_rows(self, records: Sequence[Record], labels: Sequence[Any], weights: Any = None) -> "Future[Learned]":
        """Forget rows that were learned without ids."""
        return self._put(forgetting_rows(records, labels, weights))

    def keep(self, ids: Sequence[Any], records: Sequence[Record]) -> "Future[None]":
        """Keep rows to be labelled later. They are kept soon; requests that come after this one find them."""
        try:
            return self._inbox.keep(rows_to_keep(self._ledger.state.fitted, ids, records))
        except Problem as problem:
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
        ledger, numbers = self._ledger, self._ledger.numbers
        return {
            "sequence": numbers.sequence,
            "unsaved": ledger.unsaved,
            "waiting": self._inbox.waiting,
            "journal_bytes": sum(_size(ledger.journal.path + end) for end in ("", "-wal")),
            "model_bytes": ledger.file.size,
            "rows_kept": numbers.kept,
            "pending": numbers.pending,
            "snapshots": self._snapshots,
            "snapshot_age": time.monotonic() - self._saved_at,
            "tunings": ledger.tunings,
            "rows_since_retune": numbers.untuned,
            "problems": list(self._problems.values()),
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
        while True:
            work = self._inbox.take(self._patience())
            for call in work.calls:
                call()
            if work.requests or work.kept:
                self._handle(work.requests, work.kept)
            self._housekeeping()
            if work.ended and not self._saving:
                break
        try:
            if self._ledger.unsaved or self._save_soon:
                self._save_here()
            for _ in self._chores:
                pass
        except Exception as problem:
            self._tell("snapshot", problem)
        finally:
            self._ledger.journal.close()

    def _handle(self, requests: list[Request], kept: list[Kept]) -> None:
        asked = [request for request in requests if request.answer.set_running_or_notify_cancel()]
        waiting = [some for some in kept if some.answer.set_running_or_notify_cancel()]
        before = self._ledger.state
        try:
            rows = [row for some in kept for row in some.rows]
            outcomes = self._ledger.write(asked, rows, self._full())
        except sqlite3.Error as problem:
            self._tell("journal", problem)
            failed = Problem(503, "the journal cannot be written", "nothing was learned: send it again later")
            self._fail(asked, waiting, failed)
            return
        except Exception as problem:
            log.exception("learning failed")
            self._fail(asked, waiting, problem)
            return
        self._problems.pop("journal", None)
        if self._ledger.state is not before:
            if self._ledger.saved.sequence >= before.sequence:
                self._changed_at = time.monotonic()
            self._show()
        for some in waiting:
            some.answer.set_result(None)
        for request, outcome in zip(asked, outcomes, strict=True):
            if isinstance(outcome, Problem):
                request.answer.set_exception(outcome)
            else:
                request.answer.set_result(Learned(outcome, self._ledger.state))

    def _show(self) -> None:
        try:
            self._publish(self._ledger.state)
        except Exception:  # of somebody else's making: what was learned is learned
            log.exception("publishing a model failed")

    def _fail(self, requests: list[Request], kept: list[Kept], problem: Exception) -> None:
        for request in requests:
            request.answer.set_exception(problem)
        for some in kept:
            some.answer.set_exception(problem)

    def _full(self) -> Problem | None:
        """Why nothing is learned any more, if that is so; before that, room is made."""
        settings, ledger = self._ledger.settings, self._ledger
        if ledger.file.size > settings.most_model_bytes:
            cause = f"the model has reached its bound of {settings.most_model_bytes:,} bytes"
            return Problem(507, cause, "forget rows, or raise the bound")
        if used_bytes(ledger.journal) < settings.most_journal_bytes:
            return None
        self._make_room()
        if used_bytes(ledger.journal) < settings.most_journal_bytes:
            return None
        cause = f"the journal has reached its bound of {settings.most_journal_bytes:,} bytes"
        return Problem(507, cause, "see which problem keeps the model file from being written, or raise the bound")

    def _make_room(self) -> None:
        """Write the model file and shorten the journal now, while requests wait."""
        while self._saving:
            for call in self._inbox.take(1.0, calls_only=True).calls:
                call()
        try:
            if self._ledger.unsaved and time.monotonic() >= self._retry_at:
                self._save_here()
            else:
                self._chores = self._ledger.tidy()
            for _ in self._chores:
                pass
        except Exception as problem:
            self._not_saved(problem)

    # Housekeeping: the model file, the journal, the tuning.

    def _patience(self) -> float:
        """Seconds to wait for requests before there is something else to do."""
        if self._busy:
            return 0.0
        due = self._tidied_at + TIDY_SECONDS
        if self._ledger.unsaved or self._save_soon:
            due = min(due, max(self._changed_at + self._ledger.settings.snapshot_seconds, self._retry_at))
        return max(due - time.monotonic(), 0.001)

    def _housekeeping(self) -> None:
        try:
            self._busy = next(self._chores, self) is not self
            if not self._busy and not self._saving:
                self._begin()
        except sqlite3.Error as problem:
            self._chores, self._busy, self._tidied_at = iter(()), False, time.monotonic()
            self._tell("journal", problem)

    def _begin(self) -> None:
        """Start what is due next."""
        ledger, now = self._ledger, time.monotonic()
        settings = ledger.settings
        late = now >= self._changed_at + settings.snapshot_seconds
        due = ledger.unsaved and (ledger.unsaved >= settings.snapshot_every or late or ledger.nearly_full)
        if (due or self._save_soon) and now >= self._retry_at:
            self._saving, self._save_soon = True, False
            arguments = (ledger.state.fitted, ledger.to_save())
            Thread(target=self._save, args=arguments, name="deciban saves", daemon=True).start()
        elif now >= self._tidied_at + TIDY_SECONDS:
            self._tidied_at = now
            self._chores, self._busy = ledger.tidy(), True
        if self._retune_at is not None and ledger.numbers.untuned >= self._retune_at and not self._tuning:
            self._tuning = True
            rows = ledger.journal.newest_rows(MOST_ROWS)
            state = (ledger.state.fitted, rows, ledger.to_save(), ledger.labels)
            Thread(target=self._retune, args=state, name="deciban tunes", daemon=True).start()

    def _save(self, fitted: Fitted, numbers: Numbers) -> None:
        """Write the model file, on a thread of its own."""
        try:
            data = packed(fitted)
            self._inbox.call(partial(self._ledger.announce, data, numbers)).result()
            self._ledger.file.replace(data, partial(self._tell, "waiting"))
            self._problems.pop("waiting", None)
        except Exception as problem:
            self._inbox.call(partial(self._not_saved, problem))
        else:
            self._inbox.call(partial(self._was_saved, numbers))

    def _save_here(self) -> None:
        """Write the model file on this thread."""
        fitted, numbers = self._ledger.state.fitted, self._ledger.to_save()
        data = packed(fitted)
        self._ledger.announce(data, numbers)
        self._ledger.file.replace(data, partial(self._tell, "waiting"))
        self._was_saved(numbers)

    def _was_saved(self, numbers: Numbers) -> None:
        self._saving, self._busy = False, True
        self._snapshots += 1
        self._saved_at = self._changed_at = self._tidied_at = time.monotonic()
        self._chores = self._ledger.settle(numbers)
        self._problems.pop("snapshot", None)

    def _not_saved(self, problem: Exception) -> None:
        self._saving = False
        self._retry_at = time.monotonic() + RETRY_SECONDS
        self._tell("snapshot", problem)

    def _retune(self, fitted: Fitted, rows: Any, numbers: Numbers, labels: Any) -> None:
        """Learn the tuning anew, on a thread of its own."""
        try:
            tuning = retuned(fitted, rows, numbers, labels)
        except Exception as problem:
            self._inbox.call(partial(self._not_tuned, problem))
        else:
            self._inbox.call(partial(self._was_tuned, tuning, fitted))

    def _was_tuned(self, tuning: Tuning, fitted: Fitted) -> None:
        self._tuning = False
        try:
            self._ledger.retune(tuning, fitted)
        except (DecibanError, sqlite3.Error) as problem:
            self._not_tuned(problem)
            return
        self._retune_at, self._save_soon, self._busy = self._ledger.settings.retune_every, True, True
        self._problems.pop("tuning", None)
        self._show()

    def _not_tuned(self, problem: Exception) -> None:
        self._tuning = False
        self._retune_at = self._ledger.numbers.untuned + (self._ledger.settings.retune_every or 1)
        self._tell("tuning", problem)

    def _tell(self, about: str, problem: Exception | str) -> None:
        """Let the status, and the log, say what is wrong."""
        told = {"snapshot": "the model file cannot be written", "journal": "the journal cannot be written"}
        told |= {"tuning": "the model was not tuned anew", "waiting": "the model file is busy"}
        reason = problem.strerror if isinstance(problem, OSError) and problem.strerror else str(problem)
        text = f"{told[about]}: {reason}"
        if self._problems.get(about) != text:
            log.warning("%s", text)
        self._problems[about] = text


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
