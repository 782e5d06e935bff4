"""What is written down of requests before they are committed."""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field, replace
from math import log2
from typing import Any

import msgspec

from deciban.serve.json_values import Record
from deciban.serve.learning.changes import Delta, Row
from deciban.serve.learning.class_labels import ClassLabels
from deciban.serve.learning.journal import Journal, KeptRow, as_json, pending_bytes
from deciban.serve.learning.numbers import Numbers
from deciban.serve.learning.settings import LearnSettings
from deciban.serve.problems import Problem

LEARNED, ALREADY, RELEARNED, FORGOTTEN, NOT_KNOWN = (
    *("learned", "already learned", "relearned"),
    *("forgotten", "not known"),
)

INFINITY = float("inf")


@dataclass
class Draft:
    """Changes that are in the transaction of the journal, and what they do to the counts.

    numbers, labels: where learning stands after them. check: raises a Problem for a record that has something else than
    the columns of the model. full: why no more is learned, if that is so. batch: the number of the first change here.
    """

    journal: Journal
    settings: LearnSettings
    numbers: Numbers
    labels: ClassLabels
    check: Callable[[Record, int], None]
    batch: int
    full: Problem | None = None
    delta: Delta = field(default_factory=Delta)

    def part(self) -> "Draft":
        """A draft to go on in, whose changes so far are none: for a request that may fail alone."""
        return replace(self, numbers=copy(self.numbers), batch=self.numbers.sequence + 1, delta=Delta())

    def learn(self, row_id: str | None, record: Record | None, label: Any, weight: float, place: int) -> str:
        """What became of a row; without a record, of the one that is known by its id."""
        label = self.labels.read(label, f"labels[{place}]")
        kept = None if row_id is None else self.journal.row(row_id)
        if kept is not None and kept.label == as_json(label):
            self._drop_pending(row_id)
            return ALREADY
        if self.full is not None:
            raise self.full
        if record is None:
            record, weight = self._known_record(row_id, kept, place)
        else:
            self.check(record, place)
        if kept is not None:
            self._forget(kept, place)
        self._add(row_id, record, label, weight, place)
        return LEARNED if kept is None else RELEARNED

    def _known_record(self, row_id: str | None, kept: KeptRow | None, place: int) -> tuple[Record, float]:
        """The record and weight of a row that is learned, or that waits for its label."""
        if kept is not None:
            return msgspec.json.decode(self.journal.record(kept.sequence)), kept.weight
        found = None if row_id is None else self.journal.pending(row_id)
        if found is None:
            remedy = "send the row with its label, or predict it, with columns of the model, by this id before"
            raise Problem(422, f"no row is kept by the id {str(row_id)[:80]!r}", remedy, f"ids[{place}]")
        return msgspec.json.decode(found), 1.0

    def _add(self, row_id: str | None, record: Record, label: Any, weight: float, place: int) -> None:
        numbers, text = self.numbers, record_as_json(record, place)
        self.labels = self.labels.with_label(label)
        numbers.sequence += 1
        numbers.weight_ever += weight
        self.journal.learn(numbers.sequence, self.batch, row_id, text, as_json(label), weight, numbers.decay)
        self.delta.added.append(Row(record, label, weight, numbers.decay, place))
        numbers.kept += row_id is not None
        self._drop_pending(row_id)
        numbers.learned += 1
        numbers.untuned += 1
        if self.settings.decay is not None and numbers.learned >= self.settings.decay_every:
            self._decay(log2(self.settings.decay))

    def _decay(self, amount: float) -> None:
        numbers = self.numbers
        numbers.sequence += 1
        numbers.decay += amount
        numbers.weight_ever *= 2.0**amount
        numbers.learned = 0
        self.journal.decay(numbers.sequence, self.batch, amount)

    def forget_id(self, row_id: str, place: int) -> str:
        """Whether a row was known by this id, and is forgotten; one that waits for its label is dropped."""
        kept = self.journal.row(row_id)
        waited = self._drop_pending(row_id)
        if kept is None:
            return FORGOTTEN if waited else NOT_KNOWN
        self._forget(kept, place)
        return FORGOTTEN

    def _forget(self, kept: KeptRow, place: int) -> None:
        """Forget what is left of a row that was learned."""
        numbers = self.numbers
        left = numbers.left_of(kept.weight, kept.decay)
        record, label = msgspec.json.decode(self.journal.record(kept.sequence)), msgspec.json.decode(kept.label)
        numbers.sequence += 1
        numbers.weight_ever += left
        numbers.kept -= 1
        self.journal.forget_row(numbers.sequence, self.batch, kept.sequence, left)
        self.delta.removed.append(Row(record, label, left, numbers.decay, place))

    def forget_row(self, record: Record, label: Any, weight: float, place: int) -> str:
        """Forget a row that was learned without an id."""
        label = self.labels.read(label, f"labels[{place}]")
        self.check(record, place)
        numbers, text = self.numbers, record_as_json(record, place)
        numbers.sequence += 1
        numbers.weight_ever += weight
        numbers.unverified += 1
        self.journal.forget(numbers.sequence, self.batch, text, as_json(label), weight)
        self.delta.unverified.append(Row(record, label, weight, numbers.decay, place))
        return FORGOTTEN

    def keep(self, row_id: str, record: str) -> None:
        """Keep a row, as JSON, to be labelled later, unless its id is known already."""
        if self.journal.keep_pending(row_id, self.numbers.clock, record):
            self.numbers.pending += 1
            self.numbers.pending_bytes += pending_bytes(row_id, record)

    def _drop_pending(self, row_id: str | None) -> bool:
        if row_id is None or not self.numbers.pending:
            return False
        freed = self.journal.drop_pending(row_id)
        self.numbers.pending -= freed > 0
        self.numbers.pending_bytes -= freed
        return freed > 0


def record_as_json(record: Record, place: int) -> str:
    """A record as the journal writes it; a Problem where it cannot be written."""
    cells = record.values() if isinstance(record, dict) else record
    if INFINITY in cells or -INFINITY in cells:  # JSON has no such number
        raise Problem(422, "found infinity, expected a number", "send a finite number, or null", f"rows[{place}]")
    try:
        return as_json(record)
    except (UnicodeError, TypeError, ValueError, OverflowError, RecursionError):
        remedy = "send numbers of usual size, valid Unicode, true, false or null"
        raise Problem(422, "the row cannot be written down", remedy, f"rows[{place}]") from None
