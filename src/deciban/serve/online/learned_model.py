"""A model that learns online: its file (never written over somebody else's), its journal, replayed when it is opened,
and where learning stands. One thread at a time uses it.
"""

import hashlib
import logging
import os
import sqlite3
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from copy import copy
from dataclasses import dataclass, replace
from itertools import chain, groupby
from operator import attrgetter

import msgspec

from deciban.errors import DecibanError, ModelFileError, Place
from deciban.model.fitted import Fitted
from deciban.model.tuning import Tuning
from deciban.serve.online.draft import ClassLabels, Delta, Draft, Request, Row, applied, known_columns
from deciban.serve.online.journal import (
    DECAY,
    DROPPED_AT_ONCE,
    FORGET,
    Change,
    Journal,
    Numbers,
    damaged,
    drop_oldest_pending,
    drop_oldest_rows,
    give_back,
    shorten,
    used_bytes,
)
from deciban.serve.predictions import State
from deciban.serve.problems import Problem, problem_of
from deciban.serve.settings import LearnSettings
from deciban.sources.write import replace_file
from deciban.store import layout, model_file
from deciban.store.lock import journal_of, lock_model
from deciban.util.parallel import one_blas_thread


def digest(data: bytes) -> str:
    """The hash by which the journal knows a model file."""
    return hashlib.sha256(data).hexdigest()


@dataclass
class ModelOnDisk:
    """The file as it was read or written last, which no command changes until it is closed.

    hash: of its content. size: in bytes. lock: its descriptor, which holds the lock; None where files cannot be locked.
    """

    path: str
    hash: str
    size: int
    seen: tuple[int, ...]
    lock: int | None

    @classmethod
    def load(cls, path: str) -> tuple["ModelOnDisk", Fitted]:
        """The file, locked, and what is in it; a ModelFileError where another process is changing it."""
        try:
            lock = lock_model(path)
        except BlockingIOError:
            cause = "another process learns with this model or changes it"
            raise ModelFileError(cause, place=Place(path), remedy="stop that one first") from None
        except PermissionError as problem:
            cause, remedy = f"the service may not write to it ({problem.strerror})", "let it, or serve without --learn"
            raise ModelFileError(cause, place=Place(path), remedy=remedy) from None
        try:
            seen, found = _status(path), model_file.read(path)
            return cls(path, found.sha256, found.size, seen, lock), found.fitted
        except BaseException:
            if lock is not None:
                os.close(lock)
            raise

    def close(self) -> None:
        """Let others change the file."""
        if self.lock is not None:
            os.close(self.lock)
            self.lock = None

    @property
    def changed(self) -> bool:
        """Whether somebody else has replaced the file, or taken it away."""
        try:
            now = _status(self.path)
            return now != self.seen and (now[2] != self.size or layout.sha256_of(self.path) != self.hash)
        except (FileNotFoundError, ModelFileError):  # gone, or not a file any more
            return True

    def replace(self, data: bytes) -> None:
        """Put a new content in the place of the old one; a ModelFileError where the file is not ours any more."""
        if self.changed:
            raise ModelFileError(
                f"{os.path.basename(self.path)} was changed while the service learned, and is left as it is",
                remedy="what was learned is in the journal: restore the file, or move the journal away and start anew",
            )
        lock = None
        try:
            with replace_file(self.path) as file:
                file.write(data)
                lock = self._lock_on(file.fileno())
        except BaseException:
            if lock is not None:
                os.close(lock)
            raise
        if lock is not None:
            self.close()
            self.lock = lock
        self.hash, self.size, self.seen = digest(data), len(data), _status(self.path)

    def _lock_on(self, written: int) -> int | None:
        """The lock on a file that is being written, which has it already, to be held when it has been written."""
        return None if self.lock is None or sys.platform == "win32" else os.dup(written)


def _status(path: str) -> tuple[int, ...]:
    """What changes when a file does."""
    found = os.stat(path)
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


# Changes that are replayed at once.
REPLAYED = 5_000


def replayed(journal: Journal, fitted: Fitted, saved: Numbers, labels: ClassLabels) -> Fitted:
    """The model of the file with the changes behind it; a ModelFileError where one is missing or cannot be made."""
    end = journal.numbers()
    now = replace(saved, weight_ever=max(saved.weight_ever, end.weight_ever))
    try:
        for some in _runs(journal, saved):
            fitted, now = _with_changes(fitted, some, now, labels)
        if now.sequence != end.sequence:
            raise ModelFileError(f"changes behind the {now.sequence:,}th are missing")
    except sqlite3.Error as problem:
        raise damaged(journal.path, problem) from problem
    except Exception as problem:  # whatever a damaged journal holds
        raise ModelFileError(
            f"what was learned on line cannot be replayed ({problem})",
            place=Place(journal.path),
            remedy="restore the journal and the model file from one copy, or move the journal away",
        ) from problem
    return fitted


def _runs(journal: Journal, saved: Numbers) -> Iterator[list[Change]]:
    """The changes behind the model file, those together that can be applied at once.

    Rows that were forgotten without an id may be those of an id, and then the order of changes shows: what is taken
    away by that id later is not there any more. From the first such row on changes are applied in the batches in which
    they were learned. Before it no order shows, so larger batches, which are faster, come to the same.
    """
    exact, some = saved.unverified > 0, list[Change]()
    for _, found in groupby(journal.changes_after(saved.sequence), attrgetter("batch")):
        batch = list(found)
        if not exact and any(change.kind == FORGET and change.row is None for change in batch):
            exact = True
            if some:
                yield some
                some = []
        some += batch
        if exact or len(some) >= REPLAYED:
            yield some
            some = []
    if some:
        yield some


def _with_changes(
    fitted: Fitted, changes: Sequence[Change], before: Numbers, labels: ClassLabels
) -> tuple[Fitted, Numbers]:
    delta, now = Delta(), copy(before)
    for change in changes:
        now.sequence += 1
        if change.sequence != now.sequence:
            raise ModelFileError(f"change {now.sequence:,} is missing")
        if change.kind == DECAY:
            now.decay += change.weight
            continue
        now.unverified += change.kind == FORGET and change.row is None
        if change.record is None or change.label is None:
            raise ModelFileError(f"the row of change {change.sequence:,} is missing")
        row = Row(msgspec.json.decode(change.record), msgspec.json.decode(change.label), change.weight, now.decay)
        (delta.removed if change.kind == FORGET else delta.added).append(row)
    return applied(fitted, delta, before.decay, now, labels), now


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
            may_be = (counts.declared, settings.new_classes, settings.max_classes)
            first = ClassLabels.of(counts.classes, (), *may_be)
            weight = float(counts.class_weight.sum())
            journal = Journal.open(journal_of(path), path, file.hash, weight, list(first.known))
            undone.callback(journal.close)
            journal.limit(settings.max_journal_bytes)
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

        kept: ids and records of rows that are to be labeled later. A sqlite3.Error where the disk does not take it.
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
            return draft, fitted, problem_of(problem)
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
        rows = draft.numbers.pending - self.settings.max_pending
        size = draft.numbers.pending_bytes - self.settings.max_pending_bytes
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
        most = (SHORTENED if self.nearly_full else NEARLY_FULL) * settings.max_journal_bytes
        while (surplus := self._surplus(most)) > 0 and self._drop_rows(surplus):
            yield
        yield from give_back(self.journal)

    @property
    def nearly_full(self) -> bool:
        """Whether the journal comes near its bound."""
        return used_bytes(self.journal) > NEARLY_FULL * self.settings.max_journal_bytes

    @property
    def can_be_shortened(self) -> bool:
        """Whether the journal holds enough that shortening it makes room."""
        return used_bytes(self.journal) > SHORTENED * self.settings.max_journal_bytes

    @property
    def full(self) -> bool:
        """Whether the journal has reached its bound."""
        return used_bytes(self.journal) > FULL * self.settings.max_journal_bytes

    def _surplus(self, most: float) -> int:
        """How many of the oldest rows to drop now, so that the journal has no more than so many bytes."""
        surplus = self.numbers.kept - self.settings.max_retained_rows
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
            tuning = tuning.mark_stale(fitted.counts, tuned.classes)
        fitted = replace(fitted, tuning=tuning)
        with one_blas_thread():
            _ = fitted.model
        numbers.tunings += 1
        numbers.untuned = 0
        with self.journal.transaction():
            self.journal.save(numbers)
        self.numbers, self.tunings = numbers, numbers.tunings
        self._show(fitted)
