"""A model, the journal of what it learns on line, and where learning stands. One thread at a time uses it."""

import logging
import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from copy import copy
from dataclasses import dataclass, replace
from itertools import chain

from deciban.errors import DecibanError
from deciban.model.fitted import Fitted
from deciban.model.tuning import Tuning
from deciban.serve.learning.changes import applied, placed
from deciban.serve.learning.class_labels import ClassLabels
from deciban.serve.learning.compaction import (
    DROPPED_AT_ONCE,
    drop_oldest_pending,
    drop_oldest_rows,
    give_back,
    shorten,
    used_bytes,
)
from deciban.serve.learning.draft import Draft
from deciban.serve.learning.journal import Journal
from deciban.serve.learning.model_on_disk import ModelOnDisk, digest
from deciban.serve.learning.numbers import Numbers
from deciban.serve.learning.replay import replayed
from deciban.serve.learning.requests import Request, known_columns
from deciban.serve.learning.settings import LearnSettings
from deciban.serve.problems import Problem
from deciban.serve.state import State
from deciban.store import model_file
from deciban.store.lock import journal_of
from deciban.util.parallel import one_blas_thread

# Shares of the bound of the journal: from which on it is shortened, to which, and from which on nothing is learned any
# more. What lies above is for what comes meanwhile, and for forgetting.
NEARLY_FULL, SHORTENED, FULL = 0.75, 0.5, 0.9

log = logging.getLogger("deciban.serve")

# What became of a request: of each row, or why it failed.
Outcome = list[str] | Exception


@dataclass
class LearnedModel:
    """The model as it is, on the disk and in memory.

    saved: where learning stood when the file was written. tunings: which of the tunings so far the model has. started:
    when the seconds of service were last added up.
    """

    settings: LearnSettings
    journal: Journal
    file: ModelOnDisk
    state: State
    numbers: Numbers
    labels: ClassLabels
    saved: Numbers
    tunings: int
    started: float

    @classmethod
    def open(cls, path: str, settings: LearnSettings) -> "LearnedModel":
        """The model of the file and all that was learned since; an error where these do not fit together."""
        settings.check()
        path = os.path.realpath(path)
        file, fitted = ModelOnDisk.load(path)
        counts = fitted.counts
        with ExitStack() as undone:
            undone.callback(file.close)
            may_be = (counts.declared, settings.new_classes, settings.most_classes)
            first = ClassLabels.of(counts.classes, (), *may_be)
            weight = float(counts.class_weight.sum())
            journal = Journal.open(journal_of(path), path, file.hash, weight, list(first.known))
            undone.callback(journal.close)
            journal.limit(settings.most_journal_bytes)
            saved = journal.snapshot(file.hash)
            assert saved is not None, "the journal was opened for this file"
            labels = ClassLabels.of(counts.classes, journal.classes(), *may_be)
            if counts.class_weight.any():
                _ = fitted.model  # loads the BLAS libraries that are held to one thread from here on
            with one_blas_thread():
                fitted = replayed(journal, fitted, saved, labels)
                _ = fitted.model
            state, numbers = State(fitted, "", 0, time.time()), journal.numbers()
            learned_model = cls(settings, journal, file, state, numbers, labels, saved, saved.tunings, time.monotonic())
            learned_model._show(fitted)
            undone.pop_all()
        return learned_model

    def close(self) -> None:
        """Let others have the model."""
        self.journal.close()
        self.file.close()

    def _show(self, fitted: Fitted) -> None:
        """Make this the model that is read. Its version tells the journal, the tuning and the last change."""
        version = f"{self.journal.name}.{self.tunings}.{self.numbers.sequence}"
        self.state = State(fitted, version, self.numbers.sequence, self.state.loaded)

    @property
    def unsaved(self) -> int:
        """How many changes the model file does not have."""
        return self.numbers.sequence - self.saved.sequence

    def write(
        self, requests: Sequence[Request], kept: Sequence[tuple[str, str]], full: Problem | None
    ) -> list[Outcome]:
        """What became of each request: all that succeeded are on the disk and in the state, the others left nothing.

        kept: ids and records of rows that are to be labelled later. A sqlite3.Error where the disk does not take it.
        """
        if len(requests) > 1:
            try:
                return self._attempt(requests, kept, full, together=True)
            except sqlite3.Error:
                raise
            except Exception as problem:  # which one it is shows when each is done alone
                log.debug("requests are written one by one: %s", problem)
        return self._attempt(requests, kept, full, together=False)

    def _attempt(
        self, requests: Sequence[Request], kept: Sequence[tuple[str, str]], full: Problem | None, together: bool
    ) -> list[Outcome]:
        fitted, numbers, outcomes = self.state.fitted, self._now(), list[Outcome]()
        start = copy(numbers)
        draft = Draft(
            self.journal, self.settings, numbers, self.labels, known_columns(fitted), start.sequence + 1, full
        )
        with one_blas_thread(), self.journal.transaction():
            for row_id, record in kept:
                draft.keep(row_id, record)
            if together:
                outcomes += [request.write(draft) for request in requests]
                fitted = self._after(fitted, draft, start.decay)
            else:
                for request in requests:
                    draft, fitted, outcome = self._alone(request, draft, fitted)
                    outcomes.append(outcome)
            if draft.numbers != start:
                self._write_down(draft)
        self.numbers, self.labels = draft.numbers, draft.labels
        if fitted is not self.state.fitted:
            self._show(fitted)
        return outcomes

    def _alone(self, request: Request, draft: Draft, fitted: Fitted) -> tuple[Draft, Fitted, Outcome]:
        """The draft and the model after a request that may fail, and what became of it."""
        part = draft.part()
        try:
            with self.journal.part():
                outcome = request.write(part)
                after = self._after(fitted, part, draft.numbers.decay)
            return part, after, outcome
        except Problem as problem:
            return draft, fitted, problem
        except DecibanError as problem:
            return draft, fitted, placed(problem, [])
        except sqlite3.Error:
            raise
        except Exception as problem:  # of our own making: the others are none the worse for it
            log.exception("a request failed")
            return draft, fitted, problem

    def _after(self, fitted: Fitted, draft: Draft, before: float) -> Fitted:
        """What is known after all that is in the draft, with its model, so that no reader waits for it."""
        if draft.delta or draft.numbers.decay != before:
            fitted = applied(fitted, draft.delta, before, draft.numbers, draft.labels)
            _ = fitted.model
        return fitted

    def _write_down(self, draft: Draft) -> None:
        """Write down where learning stands after the draft."""
        rows = draft.numbers.pending - self.settings.most_pending
        size = draft.numbers.pending_bytes - self.settings.most_pending_bytes
        if rows > 0 or size > 0:
            dropped, freed = drop_oldest_pending(self.journal, rows, size)
            draft.numbers.pending -= dropped
            draft.numbers.pending_bytes -= freed
        self.journal.save(draft.numbers)
        if draft.labels is not self.labels:
            self.journal.save_classes(list(draft.labels.known))

    def _now(self) -> Numbers:
        """Where learning stands, with the seconds of service up to now."""
        now = time.monotonic()
        self.numbers.clock += max(now - self.started, 0.0)
        self.started = now
        return copy(self.numbers)

    # Snapshots: packed by any thread, announced by the one that has the journal, put in place by any thread.

    def announce(self, data: bytes, numbers: Numbers) -> None:
        """Commit that this content, which is to become the model file, has all changes up to here."""
        self.journal.add_snapshot(digest(data), numbers)

    def to_save(self) -> Numbers:
        """Where learning stands in the state that is to be saved."""
        return replace(self.numbers, tunings=self.tunings)

    def settle(self, numbers: Numbers) -> Iterator[None]:
        """The model file has all changes up to here: drop from the journal what is not needed any more, bit by bit."""
        self.saved = numbers
        return chain(shorten(self.journal, self.file.hash, numbers.sequence), self.tidy())

    def tidy(self) -> Iterator[None]:
        """Drop the oldest rows beyond the bounds, and those that waited too long for a label, bit by bit.

        Where there is too little room, rows that wait for a label go first: whoever may predict can send these, and
        must not be able to make learned ids unknown, whose rows would be counted twice then.
        """
        settings = self.settings
        while self._drop_pending(DROPPED_AT_ONCE, self._now().clock - settings.pending_seconds):
            yield
        while self.nearly_full and self._drop_pending(min(self.numbers.pending // 4 + 1, DROPPED_AT_ONCE)):
            yield
        most = (SHORTENED if self.nearly_full else NEARLY_FULL) * settings.most_journal_bytes
        while (surplus := self._surplus(most)) > 0 and self._drop_rows(surplus):
            yield
        yield from give_back(self.journal)

    @property
    def nearly_full(self) -> bool:
        """Whether the journal comes near its bound."""
        return used_bytes(self.journal) > NEARLY_FULL * self.settings.most_journal_bytes

    @property
    def can_be_shortened(self) -> bool:
        """Whether the journal holds enough that shortening it makes room."""
        return used_bytes(self.journal) > SHORTENED * self.settings.most_journal_bytes

    @property
    def full(self) -> bool:
        """Whether the journal has reached its bound."""
        return used_bytes(self.journal) > FULL * self.settings.most_journal_bytes

    def _surplus(self, most: float) -> int:
        """How many of the oldest rows to drop now, so that the journal has no more than so many bytes."""
        surplus = self.numbers.kept - self.settings.most_kept_rows
        if used_bytes(self.journal) > most:
            surplus = max(surplus, self.numbers.kept // 4 + 1)
        return min(surplus, DROPPED_AT_ONCE)

    def _drop_rows(self, most: int) -> int:
        numbers = self._now()
        with self.journal.transaction():
            dropped = drop_oldest_rows(self.journal, most, self.saved.sequence)
            numbers.kept -= dropped
            self.journal.save(numbers)
        self.numbers = numbers
        return dropped

    def _drop_pending(self, most: int, before: float = float("inf")) -> int:
        numbers = self._now()
        if not numbers.pending:
            return 0
        with self.journal.transaction():
            dropped, freed = drop_oldest_pending(self.journal, most, before=before)
            numbers.pending -= dropped
            numbers.pending_bytes -= freed
            self.journal.save(numbers)
        self.numbers = numbers
        return dropped

    def retune(self, tuning: Tuning, tuned: Fitted) -> None:
        """Show the model with a tuning that was found for what was known as `tuned`."""
        fitted, numbers = self.state.fitted, self._now()
        if fitted.counts is not tuned.counts:
            tuning = tuning.after(fitted.counts, tuned.classes)
        fitted = replace(fitted, tuning=tuning)
        with one_blas_thread():
            _ = fitted.model
        numbers.tunings += 1
        numbers.untuned = 0
        with self.journal.transaction():
            self.journal.save(numbers)
        self.numbers, self.tunings = numbers, numbers.tunings
        self._show(fitted)


def packed(fitted: Fitted) -> bytes:
    """The content of the model file."""
    return model_file.content(fitted)
