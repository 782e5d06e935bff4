"""Durable model of the online learner: its file, its journal, and the current state.

The file is never written over a version of another program. The journal is replayed on opening. Only one thread at a
time uses the model.
"""

import hashlib
import logging
import os
import sqlite3
import sys
import time
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import ExitStack
from copy import copy
from dataclasses import dataclass, replace
from itertools import chain, groupby, islice
from operator import attrgetter

import msgspec

from deciban.errors import DataError, DecibanError, ModelFileError, Place, SchemaError, UsageError, render_message
from deciban.fitting import update
from deciban.model.counts import Counts
from deciban.model.fitted import Fitted
from deciban.model.tuning import Tuning
from deciban.serve.online.change_set import (
    ChangeSet,
    ClassLabels,
    Delta,
    LearnRequest,
    Row,
    apply_delta,
    count_rows,
    make_column_check,
)
from deciban.serve.online.journal import (
    DECAY,
    FORGET,
    MAX_DROPPED_ROWS,
    Change,
    Counters,
    Journal,
    drop_oldest_pending,
    drop_oldest_rows,
    drop_saved_changes,
    make_damage_error,
    measure_used,
    release_pages,
)
from deciban.serve.predictions import State
from deciban.serve.problems import Problem, to_problem
from deciban.serve.settings import LearnSettings
from deciban.sources.write import replace_file
from deciban.store import layout, model_file
from deciban.store.lock import journal_of, lock_model
from deciban.store.model_file import content
from deciban.util.parallel import one_blas_thread
from deciban.util.text_tables import same_label


def compute_digest(data: bytes) -> str:
    """Return the hash by which the journal identifies a model file."""
    return hashlib.sha256(data).hexdigest()


@dataclass
class LockedModelFile:
    """Model file as it was last read or written, locked against changes by other commands until it is closed.

    hash: of its content. size: in bytes. lock: file descriptor that holds the lock; None if files cannot be locked.
    """

    path: str
    hash: str
    size: int
    seen: tuple[int, ...]
    lock: int | None

    @classmethod
    def load(cls, path: str) -> tuple["LockedModelFile", Fitted]:
        """Lock and load the file; raise a ModelFileError if another process is changing it."""
        try:
            lock = lock_model(path)
        except BlockingIOError:
            cause = "the model is in use by another process"
            raise ModelFileError(cause, place=Place(path), remedy="stop it first") from None
        except PermissionError as problem:
            cause = f"cannot write the file ({problem.strerror})"
            remedy = "grant write access, or serve without --learn"
            raise ModelFileError(cause, place=Place(path), remedy=remedy) from None
        try:
            seen, content = _status(path), model_file.read(path)
            return cls(path, content.sha256, content.size, seen, lock), content.fitted
        except BaseException:
            if lock is not None:
                os.close(lock)
            raise

    def close(self) -> None:
        """Release the lock."""
        if self.lock is not None:
            os.close(self.lock)
            self.lock = None

    @property
    def changed(self) -> bool:
        """True if another program has replaced or removed the file."""
        try:
            now = _status(self.path)
            return now != self.seen and (now[2] != self.size or layout.sha256_of(self.path) != self.hash)
        except (FileNotFoundError, ModelFileError):  # removed, or no longer a file
            return True

    def replace(self, data: bytes) -> None:
        """Replace the content; raise a ModelFileError if another program has changed the file."""
        if self.changed:
            raise ModelFileError(
                f"{os.path.basename(self.path)} was changed by another program and is not overwritten",
                remedy="all changes are in the journal: restore the file, or move the journal away and restart",
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
        self.hash, self.size, self.seen = compute_digest(data), len(data), _status(self.path)

    def _lock_on(self, written: int) -> int | None:
        """Return a descriptor that keeps the lock of a file being written after it is closed."""
        return None if self.lock is None or sys.platform == "win32" else os.dup(written)


def _status(path: str) -> tuple[int, ...]:
    """Return values that change when a file does."""
    status = os.stat(path)
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


# Maximum number of changes replayed at a time, to bound memory.
MAX_REPLAYED_CHANGES = 5_000


def replay(journal: Journal, fitted: Fitted, saved: Counters, labels: ClassLabels) -> Fitted:
    """Return the model of the file with the later changes; raise a ModelFileError if one is missing or invalid."""
    end = journal.counters()
    now = replace(saved, weight_ever=max(saved.weight_ever, end.weight_ever))
    try:
        for run in _runs(journal, saved):
            fitted, now = _apply_changes(fitted, run, now, labels)
        if now.sequence != end.sequence:
            raise ModelFileError(f"changes after number {now.sequence:,} are missing")
    except sqlite3.Error as problem:
        raise make_damage_error(journal.path, problem) from problem
    except Exception as problem:  # any content of a damaged journal
        raise ModelFileError(
            f"cannot replay the journal ({problem})",
            place=Place(journal.path),
            remedy="restore the journal and the model file from the same backup, or move the journal away",
        ) from problem
    return fitted


def _runs(journal: Journal, saved: Counters) -> Iterator[list[Change]]:
    """Yield the changes after the model file, in groups that can be applied together.

    A row forgotten without an id may be one that was learned with an id. Then the order of changes matters: what is
    removed by that id later is no longer there. From the first such row on, changes are applied in their original
    batches. Before it the order does not matter, so larger and faster batches have the same result.
    """
    exact, run = saved.unverified > 0, list[Change]()
    for _, found in groupby(journal.changes_after(saved.sequence), attrgetter("batch")):
        batch = list(found)
        if not exact and any(change.kind == FORGET and change.row is None for change in batch):
            exact = True
            if run:
                yield run
                run = []
        run += batch
        if exact or len(run) >= MAX_REPLAYED_CHANGES:
            yield run
            run = []
    if run:
        yield run


def _apply_changes(
    fitted: Fitted, changes: Sequence[Change], before: Counters, labels: ClassLabels
) -> tuple[Fitted, Counters]:
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
    return apply_delta(fitted, delta, before.decay, now, labels), now


# Share of the maximum size of the journal from which on it is compacted.
CLEANUP_SHARE = 0.75

# Share to which it is compacted.
TARGET_SHARE = 0.5

# Share from which on learning stops. The rest is for requests that arrive meanwhile, and for forgetting.
FULL_SHARE = 0.9

# Remedy for a model that cannot replace the one of a journal.
SAME_QUESTION = "fit the new model to a table with the same target and columns"

log = logging.getLogger("deciban.serve")

# Outcome of a request: the result for each row, or the error.
Outcome = list[str] | Exception


@dataclass
class DurableModel:
    """Model on disk and in memory.

    saved: counters at the time when the file was written. tunings: number of the current tuning. started: time up to
    which uptime has been counted.
    """

    settings: LearnSettings
    journal: Journal
    file: LockedModelFile
    state: State
    counters: Counters
    labels: ClassLabels
    saved: Counters
    tunings: int
    started: float

    @classmethod
    def open(cls, path: str, settings: LearnSettings) -> "DurableModel":
        """Open the model file and its journal; raise an error if they do not match."""
        settings.check()
        path = os.path.realpath(path)
        file, fitted = LockedModelFile.load(path)
        counts = fitted.counts
        with ExitStack() as cleanup:
            cleanup.callback(file.close)
            class_settings = (counts.declared, settings.new_classes, settings.max_classes)
            first = ClassLabels.of(counts.classes, (), *class_settings)
            weight = float(counts.class_weight.sum())
            journal = Journal.open(journal_of(path), path, file.hash, weight, list(first.known))
            cleanup.callback(journal.close)
            journal.set_max_bytes(settings.max_journal_bytes)
            saved = journal.snapshot(file.hash)
            assert saved is not None, "checked when the journal was opened"
            labels = ClassLabels.of(counts.classes, journal.classes(), *class_settings)
            if counts.class_weight.any():
                _ = fitted.model  # load BLAS before its threads are limited
            with one_blas_thread():
                fitted = replay(journal, fitted, saved, labels)
                _ = fitted.model
            state, counters = State(fitted, "", 0, time.time()), journal.counters()
            durable = cls(settings, journal, file, state, counters, labels, saved, saved.tunings, time.monotonic())
            durable._set_state(fitted)
            cleanup.pop_all()
        return durable

    def close(self) -> None:
        """Close the journal and release the file."""
        self.journal.close()
        self.file.close()

    def _set_state(self, fitted: Fitted) -> None:
        """Make this the current model. The version has the journal, the tuning and the last change."""
        version = f"{self.journal.name}.{self.tunings}.{self.counters.sequence}"
        self.state = State(fitted, version, self.counters.sequence, self.state.loaded)

    @property
    def unsaved(self) -> int:
        """Number of changes that are not in the model file."""
        return self.counters.sequence - self.saved.sequence

    def write(
        self, requests: Sequence[LearnRequest], pending: Sequence[tuple[str, str]], full: Problem | None
    ) -> list[Outcome]:
        """Write requests and return the outcome of each.

        What succeeds is on disk and in the state; what fails leaves no trace. pending: ids and records of rows to
        retain for labeling. Raises a sqlite3.Error if writing fails.
        """
        if len(requests) > 1:
            try:
                return self._attempt(requests, pending, full, together=True)
            except sqlite3.Error:
                raise
            except Exception as problem:  # write each request alone to find the failing one
                log.debug("writing requests one by one: %s", problem)
        return self._attempt(requests, pending, full, together=False)

    def _attempt(
        self, requests: Sequence[LearnRequest], pending: Sequence[tuple[str, str]], full: Problem | None, together: bool
    ) -> list[Outcome]:
        fitted, counters, outcomes = self.state.fitted, self._current_counters(), list[Outcome]()
        start = copy(counters)
        changes = ChangeSet(
            self.journal, self.settings, counters, self.labels, make_column_check(fitted), start.sequence + 1, full
        )
        with one_blas_thread(), self.journal.transaction():
            for row_id, record in pending:
                changes.add_pending(row_id, record)
            if together:
                outcomes += [request.write(changes) for request in requests]
                fitted = self._apply(fitted, changes, start.decay)
            else:
                for request in requests:
                    changes, fitted, outcome = self._write_alone(request, changes, fitted)
                    outcomes.append(outcome)
            if changes.counters != start:
                self._save_counters(changes)
        self.counters, self.labels = changes.counters, changes.labels
        if fitted is not self.state.fitted:
            self._set_state(fitted)
        return outcomes

    def _write_alone(
        self, request: LearnRequest, changes: ChangeSet, fitted: Fitted
    ) -> tuple[ChangeSet, Fitted, Outcome]:
        """Write one request that may fail; return the change set and model after it, and its outcome."""
        part = changes.savepoint()
        try:
            with self.journal.savepoint():
                outcome = request.write(part)
                after = self._apply(fitted, part, changes.counters.decay)
            return part, after, outcome
        except Problem as problem:
            return changes, fitted, problem
        except DecibanError as problem:
            return changes, fitted, to_problem(problem)
        except sqlite3.Error:
            raise
        except Exception as problem:  # internal error: other requests are not affected
            log.exception("a request failed")
            return changes, fitted, problem

    def _apply(self, fitted: Fitted, changes: ChangeSet, before: float) -> Fitted:
        """Return the model after all changes of the set, estimated, so that no request waits for that."""
        if changes.delta or changes.counters.decay != before:
            fitted = apply_delta(fitted, changes.delta, before, changes.counters, changes.labels)
            _ = fitted.model
        return fitted

    def _save_counters(self, changes: ChangeSet) -> None:
        """Write the counters and classes after the changes."""
        rows = changes.counters.pending - self.settings.max_pending
        size = changes.counters.pending_bytes - self.settings.max_pending_bytes
        if rows > 0 or size > 0:
            dropped, freed = drop_oldest_pending(self.journal, rows, size)
            changes.counters.pending -= dropped
            changes.counters.pending_bytes -= freed
        self.journal.save(changes.counters)
        if changes.labels is not self.labels:
            self.journal.save_classes(list(changes.labels.known))

    def _current_counters(self) -> Counters:
        """Return the counters with the current uptime."""
        now = time.monotonic()
        self.counters.clock += max(now - self.started, 0.0)
        self.started = now
        return copy(self.counters)

    # Snapshots: encoded by any thread, committed by the one with the journal, put in place by any thread.

    def commit_snapshot(self, data: bytes, counters: Counters) -> None:
        """Commit that this content, which will become the model file, includes all changes so far."""
        self.journal.add_snapshot(compute_digest(data), counters)

    def counters_to_save(self) -> Counters:
        """Return the counters of the state to be saved."""
        return replace(self.counters, tunings=self.tunings)

    def drop_saved(self, counters: Counters) -> Iterator[None]:
        """Note that the model file includes these changes, and drop them from the journal, step by step."""
        self.saved = counters
        return chain(drop_saved_changes(self.journal, self.file.hash, counters.sequence), self.drop_surplus())

    def drop_surplus(self) -> Iterator[None]:
        """Drop the oldest rows beyond the limits and expired rows waiting for a label, step by step.

        If space is short, rows waiting for a label are dropped first. Anyone who may predict can send these, and must
        not be able to make learned ids unknown: their rows could then be counted twice.
        """
        settings = self.settings
        while self._drop_pending(MAX_DROPPED_ROWS, self._current_counters().clock - settings.pending_seconds):
            yield
        while self.nearly_full and self._drop_pending(min(self.counters.pending // 4 + 1, MAX_DROPPED_ROWS)):
            yield
        max_bytes = (TARGET_SHARE if self.nearly_full else CLEANUP_SHARE) * settings.max_journal_bytes
        while (surplus := self._surplus(max_bytes)) > 0 and self._drop_rows(surplus):
            yield
        yield from release_pages(self.journal)

    @property
    def nearly_full(self) -> bool:
        """True if the journal approaches its maximum size."""
        return measure_used(self.journal) > CLEANUP_SHARE * self.settings.max_journal_bytes

    @property
    def can_free_space(self) -> bool:
        """True if compacting the journal can free a useful amount of space."""
        return measure_used(self.journal) > TARGET_SHARE * self.settings.max_journal_bytes

    @property
    def full(self) -> bool:
        """True if the journal has reached its maximum size."""
        return measure_used(self.journal) > FULL_SHARE * self.settings.max_journal_bytes

    def _surplus(self, max_bytes: float) -> int:
        """Return the number of oldest rows to drop now, so that the journal has at most `max_bytes`."""
        surplus = self.counters.kept - self.settings.max_retained_rows
        if measure_used(self.journal) > max_bytes:
            surplus = max(surplus, self.counters.kept // 4 + 1)
        return min(surplus, MAX_DROPPED_ROWS)

    def _drop_rows(self, max_rows: int) -> int:
        counters = self._current_counters()
        with self.journal.transaction():
            dropped = drop_oldest_rows(self.journal, max_rows, self.saved.sequence)
            counters.kept -= dropped
            counters.unretained += dropped
            self.journal.save(counters)
        self.counters = counters
        return dropped

    def _drop_pending(self, max_rows: int, before: float = float("inf")) -> int:
        counters = self._current_counters()
        if not counters.pending:
            return 0
        with self.journal.transaction():
            dropped, freed = drop_oldest_pending(self.journal, max_rows, before=before)
            counters.pending -= dropped
            counters.pending_bytes -= freed
            self.journal.save(counters)
        self.counters = counters
        return dropped

    def retune(self, tuning: Tuning, tuned: Fitted) -> None:
        """Publish the model with a tuning that was learned for the state `tuned`."""
        fitted, counters = self.state.fitted, self._current_counters()
        if fitted.counts is not tuned.counts:
            tuning = tuning.mark_stale(fitted.counts, tuned.counts)
        fitted = replace(fitted, tuning=tuning)
        with one_blas_thread():
            _ = fitted.model
        counters.tunings += 1
        counters.untuned = 0
        with self.journal.transaction():
            self.journal.save(counters)
        self.counters, self.tunings = counters, counters.tunings
        self._set_state(fitted)

    def check_included(self, included: Mapping[str, tuple[str | None, float | None]]) -> None:
        """Raise a DataError if a retained row has another label or weight in the table of the new model.

        The journal would later forget or replace the row as it has it, and not as the new model has counted it.
        included: the label as text, and the weight, by id; None if it is not known.
        """
        now = self._current_counters()
        for row_id, _, label, weight, decay in self.journal.retained_rows():
            if row_id not in included:
                continue
            counted, amount = included[row_id]
            learned, left = msgspec.json.decode(label), now.decay_weight(weight, decay)
            if counted is not None and not same_label(counted, learned):
                found = f"the label {counted!r} in the table and {learned!r} in the journal"
            elif amount is not None and abs(amount - left) > 1e-9 * max(amount, left):
                found = f"the weight {amount:g} in the table and {left:g} in the journal"
            else:
                continue
            raise DataError(
                f"the row with the id {row_id!r} has {found}",
                remedy="fit the new model without the rows of the journal, so that they are added as it has them",
            )

    def upgrade(self, new: Fitted, included: Container[str]) -> int:
        """Replace the model by one that was fitted again; return the number of rows added to it.

        Retained rows are added with their remaining weights, except those with an id in `included`, which the new model
        was fitted to. Ids, rows waiting for a label, and decay continue. If the process is killed, the file and the
        journal are those of the old model or those of the new one.
        """
        counters = self._current_counters()
        labels = self._labels_for(new)
        counts, added = new.counts, 0
        rows = (row for row in self.journal.retained_rows() if row[0] not in included)
        with one_blas_thread():
            while batch := list(islice(rows, MAX_REPLAYED_CHANGES)):
                counted = _count_retained(new, batch, counters, labels)
                counts = counts if counted is None else counts + counted
                added += len(batch)
            fitted = update.replace_counts(new, counts) if added else new
            _ = fitted.model
        counters.weight_ever += float(new.counts.class_weight.sum())
        counters.tunings += 1  # a new version, although no change was made
        counters.untuned = 0
        with self.journal.transaction():
            self.journal.save(counters)
        data, counters = content(fitted), replace(counters, unretained=0)
        self.commit_snapshot(data, counters)
        self.file.replace(data)
        with self.journal.transaction():
            self.journal.save(counters)
        self.counters, self.labels, self.tunings = counters, labels, counters.tunings
        self._set_state(fitted)
        for _ in self.drop_saved(counters):
            pass
        return added

    def _labels_for(self, new: Fitted) -> ClassLabels:
        """Return the labels for another model; raise a UsageError if it does not answer the question of this one."""
        old = self.state.fitted
        try:
            update.check_compatible(old, new)
        except SchemaError as problem:
            raise UsageError(f"the models do not fit: {render_message(problem.cause)}", remedy=SAME_QUESTION) from None
        if (old.schema.names is None) != (new.schema.names is None):
            raise UsageError("only one of the models has column names", remedy=SAME_QUESTION)
        settings = self.settings
        class_settings = (new.counts.declared, settings.new_classes, settings.max_classes)
        labels = ClassLabels.of(new.classes, self.labels.known, *class_settings)
        if labels.kind != self.labels.kind:
            raise UsageError("the classes of the models have different types", remedy=SAME_QUESTION)
        return labels


def _count_retained(
    new: Fitted, rows: Sequence[tuple[str, str, str, float, float]], now: Counters, labels: ClassLabels
) -> Counts | None:
    """Return the counts of retained rows by another model; raise a DataError that names the first unsuitable one."""
    decoded = [
        Row(msgspec.json.decode(record), msgspec.json.decode(label), weight, decay, position)
        for position, (_, record, label, weight, decay) in enumerate(rows)
    ]
    try:
        return count_rows(new, decoded, now, labels)
    except Problem as problem:
        where = "" if problem.row is None else f" with the id {rows[problem.row][0]!r}"
        raise DataError(
            f"the new model cannot learn the row{where}: {problem.place}: {problem.cause}", remedy=SAME_QUESTION
        ) from None
