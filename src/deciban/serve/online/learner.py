"""Online learner: one thread writes, all requests read the state that it publishes."""

import logging
import os
import sqlite3
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from threading import Lock, Thread
from typing import Any

from deciban.serve.bodies.checks import LearnableRows, Record
from deciban.serve.online.change_set import LearnRequest, LearnResult, encode_pending_rows
from deciban.serve.online.durable_model import DurableModel
from deciban.serve.online.maintenance import Maintenance
from deciban.serve.online.work_queue import PendingRows, WorkQueue
from deciban.serve.predictions import State
from deciban.serve.problems import Problem
from deciban.serve.settings import LearnSettings

log = logging.getLogger("deciban.serve")


class Learner:
    """Online learner of a model.

    Requests are queued for one thread, which takes all of them at once: it writes them to the journal in one
    transaction, estimates and publishes the model, and then completes the requests. So what is acknowledged is on disk,
    and in the model that serves the next request. Another thread writes the model file from time to time.
    """

    def __init__(self, durable: DurableModel, publish: Callable[[State], None]) -> None:
        self._model = durable
        self._publish = publish
        self._queue = WorkQueue(durable.settings.max_queued_rows, durable.settings.max_queued_bytes)
        self._maintenance = Maintenance(durable, self._queue, self._publish_state)
        self._closing = Lock()
        publish(durable.state)
        self._thread = Thread(target=self._run, name="deciban-learn", daemon=True)
        self._thread.start()

    @classmethod
    def open(cls, path: str | os.PathLike[str], settings: LearnSettings, publish: Callable[[State], None]) -> "Learner":
        """Open a model file and the changes in its journal.

        publish: called with each new state, including the first. Raises a ModelFileError if another process is learning
        with this model, or if the journal belongs to another model.
        """
        return cls(DurableModel.open(os.fspath(path), settings), publish)

    def learn(self, rows: LearnableRows) -> "Future[LearnResult]":
        """Learn rows; the results are "learned", "already learned" or "relearned"."""
        return self._put(LearnRequest(rows))

    def forget(self, rows: LearnableRows) -> "Future[LearnResult]":
        """Forget rows; the results are "forgotten" or "not found"."""
        return self._put(LearnRequest(rows, forgets=True))

    def add_pending(self, ids: Sequence[str], records: Sequence[Record]) -> "Future[None]":
        """Retain rows until they are labeled. Later requests will find them."""
        try:
            return self._queue.put_pending(encode_pending_rows(self._model.state.fitted, ids, records))
        except Problem as problem:
            if problem.status != 422:
                self._queue.count_dropped(len(ids))
            failed: Future[None] = Future()
            failed.set_exception(problem)
            return failed

    def _put(self, request: LearnRequest) -> "Future[LearnResult]":
        try:
            self._queue.put(request)
        except Problem as problem:
            request.future.set_exception(problem)
        return request.future

    def status(self) -> dict[str, Any]:
        """Return the status for /model, /health/ready and metrics."""
        durable, counters = self._model, self._model.counters
        return {
            "sequence": counters.sequence,
            "unsaved_changes": durable.unsaved,
            "queued_rows": self._queue.queued_rows,
            "journal_bytes": sum(_size(durable.journal.path + end) for end in ("", "-wal")),
            "model_bytes": durable.file.size,
            "retained_rows": counters.kept,
            "pending_rows": counters.pending,
            "dropped_pending_rows": self._queue.dropped,
            "snapshots": self._maintenance.snapshots,
            "snapshot_age_seconds": time.monotonic() - self._maintenance.saved_at,
            "retunes": durable.tunings,
            "rows_since_retune": counters.untuned,
            "problems": list(self._maintenance.problems.values()),
        }

    def close(self) -> None:
        """Process queued requests, write the model file, and close the journal. Later requests are rejected."""
        with self._closing:
            self._queue.close()
            self._thread.join()

    def __enter__(self) -> "Learner":
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    # The learner thread.

    def _run(self) -> None:
        try:
            while not self._step():
                pass
            self._maintenance.wait_for_saving()
            self._maintenance.finish()
        except Exception as error:  # internal error; what was acknowledged is in the journal
            log.exception("online learning has stopped")
            self._maintenance.report("learning", f"{type(error).__name__}; see the log, and restart the service")
            self._reject_all(Problem(503, "online learning has stopped", "ask the operator to restart the service"))
        finally:
            self._queue.end()
            self._model.close()

    def _reject_all(self, why: Problem) -> None:
        """Fail all queued and further requests."""
        self._queue.close(why)
        while True:
            work = self._queue.take(0.0)
            for call in work.calls:
                call()
            self._queue.count_dropped(sum(len(rows.rows) for rows in work.pending))
            waiting: list[LearnRequest | PendingRows] = [*work.requests, *work.pending]
            _fail([item for item in waiting if item.future.set_running_or_notify_cancel()], why)
            if work.ended:
                return

    def _step(self) -> bool:
        """Process queued work and a little maintenance; return True if it was the last."""
        work = self._queue.take(self._maintenance.seconds_until_due())
        for call in work.calls:
            call()
        requests = [request for request in work.requests if request.future.set_running_or_notify_cancel()]
        pending = [rows for rows in work.pending if rows.future.set_running_or_notify_cancel()]
        if requests or pending:
            self._process(requests, pending)
        self._maintenance.step()
        return work.ended

    def _process(self, requests: list[LearnRequest], pending: list[PendingRows], again: bool = True) -> None:
        """Write requests, publish the resulting model, and complete the requests.

        again: True to try once more if the journal is full.
        """
        before = self._model.state
        try:
            rows = [row for batch in pending for row in batch.rows]
            outcomes = self._model.write(requests, rows, self._check_capacity())
        except sqlite3.Error as problem:
            if len(requests) > 1:  # some of them may fit
                for request in requests:
                    self._process([request], [])
                self._process([], pending)
            elif again and "full" in str(problem) and self._model.can_free_space:
                self._maintenance.make_room()
                self._process(requests, pending, again=False)
            else:
                self._maintenance.report("journal", problem)
                failed = Problem(503, "cannot write the journal", "nothing was learned; try again later")
                self._fail_both(requests, pending, failed)
            return
        except Exception as problem:
            log.exception("internal error while learning")
            self._fail_both(requests, pending, problem)
            return
        self._maintenance.problems.pop("journal", None)
        if self._model.state is not before:
            self._maintenance.note_change(before.sequence)
            self._publish_state()
        for batch in pending:
            batch.future.set_result(None)
        for request, outcome in zip(requests, outcomes, strict=True):
            if isinstance(outcome, Exception):
                request.future.set_exception(outcome)
            else:
                request.future.set_result(LearnResult(outcome, self._model.state))

    def _fail_both(self, requests: list[LearnRequest], pending: list[PendingRows], problem: Exception) -> None:
        self._queue.count_dropped(sum(len(batch.rows) for batch in pending))
        _fail([*requests, *pending], problem)

    def _publish_state(self) -> None:
        try:
            self._publish(self._model.state)
        except Exception:  # does not affect what was learned
            log.exception("internal error while publishing a model")

    def _check_capacity(self) -> Problem | None:
        """Free space in the journal if needed; return a problem if nothing more can be learned."""
        settings, durable = self._model.settings, self._model
        if durable.file.size > settings.max_model_bytes:
            cause = f"the model file has reached its maximum of {settings.max_model_bytes:,} bytes"
            return Problem(507, cause, "forget rows, or raise --max-model-bytes")
        if durable.full:
            self._maintenance.make_room()
        if not durable.full:
            return None
        cause = f"the journal has reached its maximum of {settings.max_journal_bytes:,} bytes"
        return Problem(
            507, cause, "see /health/ready for why the model file cannot be written, or raise --max-journal-bytes"
        )


def _fail(waiting: Sequence[LearnRequest | PendingRows], problem: Exception) -> None:
    for item in waiting:
        item.future.set_exception(problem)


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
