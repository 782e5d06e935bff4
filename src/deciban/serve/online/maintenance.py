"""Maintenance of a learner: writing the model file, compacting the journal, and retuning."""

import logging
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from threading import Thread
from typing import Any

import msgspec
import numpy as np

from deciban.errors import DataError, DecibanError
from deciban.fitting import update
from deciban.model.fitted import Fitted
from deciban.model.tuning import Tuning
from deciban.serve.bodies.records import records_to_table
from deciban.serve.online.change_set import ClassLabels, Row, group_by_types
from deciban.serve.online.durable_model import DurableModel
from deciban.serve.online.journal import Counters
from deciban.serve.online.work_queue import WorkQueue
from deciban.serve.problems import Problem, strip_folders
from deciban.store.model_file import content

# Maximum number of recent rows used for retuning.
MAX_TUNING_ROWS = 20_000

# Record and label as JSON, weight, and the decay at the time of learning.
RetainedRowFields = tuple[str, str, float, float]


def retune_model(fitted: Fitted, rows: Sequence[RetainedRowFields], now: Counters, labels: ClassLabels) -> Tuning:
    """Return the tuning learned on these rows of the model; raise a DataError if there are too few."""
    known = set(fitted.classes.tolist())
    decoded = [
        Row(msgspec.json.decode(record), msgspec.json.decode(label), now.decay_weight(weight, decay), now.decay)
        for record, label, weight, decay in rows
    ]
    used = [row for row in decoded if row.weight > 0.0 and labels.known.get(row.label, row.label) in known]
    if not used:
        raise DataError("no retained rows for tuning", remedy="learn rows with ids")
    try:
        table = records_to_table(fitted.counts.schema, [row.record for row in used])
    except Problem:  # mixed types in a column: use the rows of the most common types
        used = group_by_types(used, lambda row: row.record)[0]
        table = records_to_table(fitted.counts.schema, [row.record for row in used])
    names = labels.array([row.label for row in used])
    tuned = update.retune(fitted.single_threaded, table, names, np.array([row.weight for row in used]))
    assert tuned.tuning is not None, "retune returns a tuned model"
    return tuned.tuning


# Seconds after which a failed write of the model file is tried again.
RETRY_SECONDS = 30.0

# Seconds between two cleanups of old rows.
CLEANUP_SECONDS = 60.0

# Seconds until an unresponsive journal is tried again.
JOURNAL_RETRY_SECONDS = 1.0

# Texts of problems by topic.
PROBLEM_TEXTS = {
    "snapshot": "cannot write the model file",
    "journal": "cannot write the journal",
    "compaction": "cannot compact the journal",
    "tuning": "cannot retune the model",
    "learning": "online learning has stopped",
}

log = logging.getLogger("deciban.serve")


class Maintenance:
    """Maintenance of a learner, a little at a time. The learner thread calls it; long work has its own threads.

    publish: called when the tuning of the model has changed.
    """

    def __init__(self, durable: DurableModel, queue: WorkQueue, publish: Callable[[], None]) -> None:
        self._model, self._queue, self._publish = durable, queue, publish
        self.problems: dict[str, str] = {}
        self.snapshots = 0
        self.saved_at = self._changed_at = self._retry_at = self._cleaned_at = time.monotonic()
        self.saving = self._tuning = self._save_soon = False
        self._retune_at = durable.settings.retune_every
        # a killed process may have left changes that are in the model file
        self._tasks: Iterator[None] = durable.drop_saved(durable.saved)
        self.busy = True

    def note_change(self, before: int) -> None:
        """Note a change; `before` is the sequence number before it."""
        if self._model.saved.sequence >= before:
            self._changed_at = time.monotonic()

    def seconds_until_due(self) -> float:
        """Return the time to wait for requests before maintenance is due."""
        if self.busy:
            return 0.0
        due = self._cleaned_at + CLEANUP_SECONDS
        try:
            if self._is_save_due(float("inf")):
                due = min(due, max(self._changed_at + self._model.settings.snapshot_seconds, self._retry_at))
            if self._is_save_due(time.monotonic()):
                due = self._retry_at
        except sqlite3.Error as problem:  # even the size of the journal is unavailable
            self.report("journal", problem)
            return JOURNAL_RETRY_SECONDS
        return max(due - time.monotonic(), 0.001)

    def step(self) -> None:
        """Do a small step of maintenance. Failures are reported, and tried again when due."""
        try:
            was_busy, self.busy = self.busy, next(self._tasks, self) is not self
            if was_busy and not self.busy:
                self.problems.pop("compaction", None)
            if not self.busy and not self.saving:
                self._begin()
        except Exception as problem:
            self._tasks, self.busy, self._cleaned_at = iter(()), False, time.monotonic()
            self.report("compaction", problem)

    def _begin(self) -> None:
        """Start what is due next."""
        durable, now = self._model, time.monotonic()
        if self._is_save_due(now) and now >= self._retry_at:
            self.saving, self._save_soon = True, False
            try:
                arguments = (durable.state.fitted, durable.counters_to_save())
                Thread(target=self._save, args=arguments, name="deciban-save", daemon=True).start()
            except Exception as problem:
                self._fail_save(problem)
        if not self.saving and now >= self._cleaned_at + CLEANUP_SECONDS:
            self._cleaned_at = now
            self._save_soon |= durable.file.changed  # by another program: reported when the file cannot be saved
            self._tasks, self.busy = durable.drop_surplus(), True
        if self._retune_at is not None and durable.counters.untuned >= self._retune_at and not self._tuning:
            self._tuning = True
            try:
                rows = durable.journal.newest_rows(MAX_TUNING_ROWS)
                state = (durable.state.fitted, rows, durable.counters_to_save(), durable.labels)
                Thread(target=self._retune, args=state, name="deciban-retune", daemon=True).start()
            except Exception as problem:
                self._fail_retune(problem)

    def _is_save_due(self, now: float) -> bool:
        """Return True if the model file has to be written by this time."""
        durable, settings = self._model, self._model.settings
        late = now >= self._changed_at + settings.snapshot_seconds or durable.unsaved >= settings.snapshot_every
        return self._save_soon or (durable.unsaved > 0 and (late or durable.nearly_full))

    def make_room(self) -> None:
        """Write the model file and compact the journal now, while requests wait."""
        self.wait_for_saving()
        try:
            for _ in self._tasks:
                pass
            if self._model.unsaved and time.monotonic() >= self._retry_at:
                self._save_here()
            else:
                self._tasks = self._model.drop_surplus()
            for _ in self._tasks:
                pass
        except Exception as problem:
            self._fail_save(problem)

    def wait_for_saving(self) -> None:
        """Wait for the thread that writes the model file, and run its calls."""
        while self.saving:
            for call in self._queue.take(1.0, calls_only=True).calls:
                call()

    def finish(self) -> None:
        """Write the model file and compact the journal, on shutdown."""
        try:
            if self._model.unsaved or self._save_soon:
                self._save_here()
            for _ in self._tasks:
                pass
        except Exception as problem:
            self.report("snapshot", problem)

    # The model file.

    def _save(self, fitted: Fitted, counters: Counters) -> None:
        """Write the model file, in a thread of its own."""
        try:
            data = content(fitted)
            self._queue.call(partial(self._model.commit_snapshot, data, counters)).result()
            self._model.file.replace(data)
        except Exception as problem:
            self._queue.post(partial(self._fail_save, problem))
        else:
            self._queue.post(partial(self._finish_save, counters))

    def _save_here(self) -> None:
        """Write the model file in this thread."""
        fitted, counters = self._model.state.fitted, self._model.counters_to_save()
        data = content(fitted)
        self._model.commit_snapshot(data, counters)
        self._model.file.replace(data)
        self._finish_save(counters)

    def _finish_save(self, counters: Counters) -> None:
        self.saving, self._save_soon, self.busy = False, False, True
        self.snapshots += 1
        self.saved_at = self._changed_at = self._cleaned_at = time.monotonic()
        self._tasks = self._model.drop_saved(counters)
        self.problems.pop("snapshot", None)

    def _fail_save(self, problem: Exception) -> None:
        self.saving, self._save_soon = False, True
        self._retry_at = time.monotonic() + RETRY_SECONDS
        self.report("snapshot", problem)

    # The tuning.

    def _retune(self, fitted: Fitted, rows: Any, counters: Counters, labels: Any) -> None:
        """Learn the tuning again, in a thread of its own."""
        try:
            tuning = retune_model(fitted, rows, counters, labels)
        except Exception as problem:
            self._queue.post(partial(self._fail_retune, problem))
        else:
            self._queue.post(partial(self._finish_retune, tuning, fitted))

    def _finish_retune(self, tuning: Tuning, fitted: Fitted) -> None:
        self._tuning = False
        try:
            self._model.retune(tuning, fitted)
        except Exception as problem:
            self._fail_retune(problem)
            return
        self._retune_at, self._save_soon, self.busy = self._model.settings.retune_every, True, True
        self.problems.pop("tuning", None)
        self._publish()

    def _fail_retune(self, problem: Exception) -> None:
        self._tuning = False
        self._retune_at = self._model.counters.untuned + (self._model.settings.retune_every or 1)
        self.report("tuning", problem)

    def report(self, about: str, problem: Exception | str) -> None:
        """Report a problem in the status and the log."""
        reason = problem.strerror if isinstance(problem, OSError) and problem.strerror else str(problem)
        text = f"{PROBLEM_TEXTS[about]}: {strip_folders(reason, self._model.file.path)}"
        if self.problems.get(about) != text:
            expected = isinstance(problem, str | DecibanError | OSError | sqlite3.Error)
            log.warning("%s", text, exc_info=problem if isinstance(problem, Exception) and not expected else None)
        self.problems[about] = text
