"""Housekeeping of a learner: writing the model file, shortening the journal, and tuning again on kept rows."""

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
from deciban.serve.bodies.records import table_of_records
from deciban.serve.online.draft import ClassLabels, Row, by_kinds
from deciban.serve.online.inbox import Inbox
from deciban.serve.online.journal import Numbers
from deciban.serve.online.learned_model import LearnedModel
from deciban.serve.problems import Problem, without_folders
from deciban.store.model_file import content

# The newest rows that are looked at.
MAX_ROWS = 20_000

# Record and label as JSON, weight, and the decay when it was learned.
Kept = tuple[str, str, float, float]


def retuned(fitted: Fitted, rows: Sequence[Kept], now: Numbers, labels: ClassLabels) -> Tuning:
    """The tuning that these rows, which the model has learned, support; a DataError where they are too few."""
    known = set(fitted.classes.tolist())
    found = [
        Row(msgspec.json.decode(record), msgspec.json.decode(label), now.left_of(weight, decay), now.decay)
        for record, label, weight, decay in rows
    ]
    used = [row for row in found if row.weight > 0.0 and labels.known.get(row.label, row.label) in known]
    if not used:
        raise DataError("no rows are kept to tune on", remedy="learn rows with ids")
    try:
        table = table_of_records(fitted.counts.schema, [row.record for row in used])
    except Problem:  # cells of several kinds in a column: those of the most usual kinds are enough
        used = by_kinds(used, lambda row: row.record)[0]
        table = table_of_records(fitted.counts.schema, [row.record for row in used])
    names = labels.array([row.label for row in used])
    tuned = update.retune(fitted.single_threaded, table, names, np.array([row.weight for row in used]))
    assert tuned.tuning is not None, "it was just made"
    return tuned.tuning


# Seconds after which a model file that could not be written is tried again, and between two looks at old rows.
RETRY_SECONDS, TIDY_SECONDS = 30.0, 60.0

# Seconds until a journal that gives no answer is asked again.
CHORE_PAUSE = 1.0

# What problems are about.
TOLD = {
    "snapshot": "the model file cannot be written",
    "journal": "the journal cannot be written",
    "chores": "the journal was not shortened",
    "tuning": "the model was not tuned anew",
    "learning": "the service has stopped learning",
}

log = logging.getLogger("deciban.serve")


class Housekeeping:
    """What is due besides learning, a little at a time. The thread that learns calls it; long work has its own threads.

    show: called when the model has another tuning.
    """

    def __init__(self, learned_model: LearnedModel, inbox: Inbox, show: Callable[[], None]) -> None:
        self._model, self._inbox, self._show = learned_model, inbox, show
        self.problems: dict[str, str] = {}
        self.snapshots = 0
        self.saved_at = self._changed_at = self._retry_at = self._tidied_at = time.monotonic()
        self.saving = self._tuning = self._save_soon = False
        self._retune_at = learned_model.settings.retune_every
        # a process that was killed may have left what the model file has
        self._chores: Iterator[None] = learned_model.settle(learned_model.saved)
        self.busy = True

    def changed(self, before: int) -> None:
        """Something was learned; `before` is the number of the last change before that."""
        if self._model.saved.sequence >= before:
            self._changed_at = time.monotonic()

    def patience(self) -> float:
        """Seconds to wait for requests before there is something else to do."""
        if self.busy:
            return 0.0
        due = self._tidied_at + TIDY_SECONDS
        try:
            if self._due(float("inf")):
                due = min(due, max(self._changed_at + self._model.settings.snapshot_seconds, self._retry_at))
            if self._due(time.monotonic()):
                due = self._retry_at
        except sqlite3.Error as problem:  # the journal cannot even be asked how large it is
            self.tell("journal", problem)
            return CHORE_PAUSE
        return max(due - time.monotonic(), 0.001)

    def step(self) -> None:
        """Do a little of what is due. What fails is told, and tried again when it is due again."""
        try:
            was_busy, self.busy = self.busy, next(self._chores, self) is not self
            if was_busy and not self.busy:
                self.problems.pop("chores", None)
            if not self.busy and not self.saving:
                self._begin()
        except Exception as problem:
            self._chores, self.busy, self._tidied_at = iter(()), False, time.monotonic()
            self.tell("chores", problem)

    def _begin(self) -> None:
        """Start what is due next."""
        learned_model, now = self._model, time.monotonic()
        if self._due(now) and now >= self._retry_at:
            self.saving, self._save_soon = True, False
            try:
                arguments = (learned_model.state.fitted, learned_model.to_save())
                Thread(target=self._save, args=arguments, name="deciban saves", daemon=True).start()
            except Exception as problem:
                self._not_saved(problem)
        elif now >= self._tidied_at + TIDY_SECONDS:
            self._tidied_at = now
            self._chores, self.busy = learned_model.tidy(), True
        if self._retune_at is not None and learned_model.numbers.untuned >= self._retune_at and not self._tuning:
            self._tuning = True
            try:
                rows = learned_model.journal.newest_rows(MAX_ROWS)
                state = (learned_model.state.fitted, rows, learned_model.to_save(), learned_model.labels)
                Thread(target=self._retune, args=state, name="deciban tunes", daemon=True).start()
            except Exception as problem:
                self._not_tuned(problem)

    def _due(self, now: float) -> bool:
        """Whether the model file is to be written by then."""
        learned_model, settings = self._model, self._model.settings
        late = now >= self._changed_at + settings.snapshot_seconds or learned_model.unsaved >= settings.snapshot_every
        return self._save_soon or (learned_model.unsaved > 0 and (late or learned_model.nearly_full))

    def make_room(self) -> None:
        """Write the model file and shorten the journal now, while requests wait."""
        self.wait_for_saving()
        try:
            for _ in self._chores:
                pass
            if self._model.unsaved and time.monotonic() >= self._retry_at:
                self._save_here()
            else:
                self._chores = self._model.tidy()
            for _ in self._chores:
                pass
        except Exception as problem:
            self._not_saved(problem)

    def wait_for_saving(self) -> None:
        """Wait for the thread that writes the model file, and do what it asks for."""
        while self.saving:
            for call in self._inbox.take(1.0, calls_only=True).calls:
                call()

    def end(self) -> None:
        """Write the model file, and tidy up behind it."""
        try:
            if self._model.unsaved or self._save_soon:
                self._save_here()
            for _ in self._chores:
                pass
        except Exception as problem:
            self.tell("snapshot", problem)

    # The model file.

    def _save(self, fitted: Fitted, numbers: Numbers) -> None:
        """Write the model file, on a thread of its own."""
        try:
            data = content(fitted)
            self._inbox.call(partial(self._model.announce, data, numbers)).result()
            self._model.file.replace(data)
        except Exception as problem:
            self._inbox.post(partial(self._not_saved, problem))
        else:
            self._inbox.post(partial(self._was_saved, numbers))

    def _save_here(self) -> None:
        """Write the model file on this thread."""
        fitted, numbers = self._model.state.fitted, self._model.to_save()
        data = content(fitted)
        self._model.announce(data, numbers)
        self._model.file.replace(data)
        self._was_saved(numbers)

    def _was_saved(self, numbers: Numbers) -> None:
        self.saving, self._save_soon, self.busy = False, False, True
        self.snapshots += 1
        self.saved_at = self._changed_at = self._tidied_at = time.monotonic()
        self._chores = self._model.settle(numbers)
        self.problems.pop("snapshot", None)

    def _not_saved(self, problem: Exception) -> None:
        self.saving, self._save_soon = False, True
        self._retry_at = time.monotonic() + RETRY_SECONDS
        self.tell("snapshot", problem)

    # The tuning.

    def _retune(self, fitted: Fitted, rows: Any, numbers: Numbers, labels: Any) -> None:
        """Learn the tuning anew, on a thread of its own."""
        try:
            tuning = retuned(fitted, rows, numbers, labels)
        except Exception as problem:
            self._inbox.post(partial(self._not_tuned, problem))
        else:
            self._inbox.post(partial(self._was_tuned, tuning, fitted))

    def _was_tuned(self, tuning: Tuning, fitted: Fitted) -> None:
        self._tuning = False
        try:
            self._model.retune(tuning, fitted)
        except Exception as problem:
            self._not_tuned(problem)
            return
        self._retune_at, self._save_soon, self.busy = self._model.settings.retune_every, True, True
        self.problems.pop("tuning", None)
        self._show()

    def _not_tuned(self, problem: Exception) -> None:
        self._tuning = False
        self._retune_at = self._model.numbers.untuned + (self._model.settings.retune_every or 1)
        self.tell("tuning", problem)

    def tell(self, about: str, problem: Exception | str) -> None:
        """Let the status, and the log, say what is wrong."""
        reason = problem.strerror if isinstance(problem, OSError) and problem.strerror else str(problem)
        text = f"{TOLD[about]}: {without_folders(reason, self._model.file.path)}"
        if self.problems.get(about) != text:
            foreseen = isinstance(problem, str | DecibanError | OSError | sqlite3.Error)
            log.warning("%s", text, exc_info=problem if isinstance(problem, Exception) and not foreseen else None)
        self.problems[about] = text
