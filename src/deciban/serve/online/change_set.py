"""Uncommitted changes: rows are learned and forgotten in the current transaction of the journal.

The module also validates labels and applies changes to the counts.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from copy import copy
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from math import log2
from typing import Any, NamedTuple, TypeVar

import msgspec
import numpy as np

from deciban.errors import DecibanError
from deciban.fitting import update
from deciban.fitting.fit import count_examples
from deciban.model.batches import add_up
from deciban.model.counts import Counts
from deciban.model.fitted import Fitted
from deciban.serve.bodies.checks import JSON_KINDS, LearnableRows, Record
from deciban.serve.bodies.records import records_to_table
from deciban.serve.online.journal import Counters, Journal, RetainedRow, as_json, measure_pending
from deciban.serve.predictions import State
from deciban.serve.problems import Problem, to_problem
from deciban.serve.settings import LearnSettings
from deciban.tables.examples import LabeledTable
from deciban.tables.labels import LabelArray, encode_labels
from deciban.util.text_tables import list_names

# Names of the types of labels in messages, by the kind of the NumPy type.
LABEL_TYPE_NAMES = {
    "b": "a boolean",
    "i": "an integer",
    "u": "an integer",
    "f": "a number",
    "U": "text",
    "O": "text",
}

# Maximum absolute value of an integer class.
MAX_INTEGER_LABEL = (1 << 63) - 1


@dataclass(frozen=True)
class ClassLabels:
    """Accepted labels. `known` are the classes of the model, and former classes whose rows were all forgotten.

    kind: kind of the NumPy type of the classes; "?" for dates and other types that JSON represents as text. new: True
    if new classes are accepted. max_classes: maximum number of classes.
    """

    kind: str
    dtype: Any
    known: dict[Any, Any]
    declared: bool
    new: bool
    max_classes: int

    @classmethod
    def of(
        cls, classes: LabelArray, before: Iterable[Any], declared: bool, new: bool, max_classes: int
    ) -> "ClassLabels":
        """Return the labels for these classes and for former ones, given as JSON values."""
        kind: str = classes.dtype.kind
        if kind not in LABEL_TYPE_NAMES or (kind == "O" and not all(isinstance(label, str) for label in classes)):
            kind = "?"
        found = dict.fromkeys(before)
        values = list(classes) if kind == "?" else classes.tolist()
        found.update({(str(value) if kind == "?" else value): value for value in values})
        dtype = {"U": np.str_, "O": object}.get(kind, classes.dtype)
        known = {label: label if value is None else value for label, value in found.items()}
        return cls(kind, dtype, known, declared, new, max_classes)

    def read(self, label: Any, position: str) -> Any:
        """Return a label in the form that the journal stores; raise a Problem if it is not accepted."""
        if label is None:
            raise Problem(422, "missing label", "send a label for each row", position)
        converted = self._convert(label)
        if converted is None:
            found = JSON_KINDS.get(type(label), type(label).__name__)
            expected = LABEL_TYPE_NAMES.get(self.kind, "text")
            cause = f"expected {expected} as the label, found {found}"
            raise Problem(422, cause, "send labels of the type of the classes", position)
        if converted not in self.known and (not self.new or self.declared or self.kind == "?"):
            cause = f"unknown class {str(converted)[:80]!r}, expected one of {list_names(list(self.known), 6)}"
            remedy = "correct the label" if self.declared else "correct it, or start the service with --new-classes"
            raise Problem(422, cause, remedy, position, code="unknown-class")
        if converted not in self.known and len(self.known) >= self.max_classes:
            cause = f"unknown class {str(converted)[:80]!r}, and the maximum of {self.max_classes:,} classes is reached"
            raise Problem(422, cause, "send a known class", position, code="unknown-class")
        if isinstance(converted, str) and not _is_unicode(converted):
            raise Problem(422, "the label is not valid Unicode", "send text without lone surrogates", position)
        return converted

    def _convert(self, label: Any) -> Any:
        """Return a label in the type of the classes; None if it has another type."""
        if self.kind in "UO?":
            return label if isinstance(label, str) else None
        if self.kind == "b":
            return label if isinstance(label, bool) else None
        if (
            isinstance(label, bool)
            or not isinstance(label, int | float)
            or not -MAX_INTEGER_LABEL <= label <= MAX_INTEGER_LABEL
        ):
            return None
        whole = int(label)
        if whole != label or (self.kind == "u" and whole < 0):
            return None
        return float(label) if self.kind == "f" else whole

    def with_label(self, label: Any) -> "ClassLabels":
        """Return labels that include this one."""
        if label in self.known:
            return self
        return replace(self, known={**self.known, label: label})

    def array(self, labels: list[Any]) -> LabelArray:
        """Return labels as an array in the type of the classes."""
        found = [self.known.get(label, label) for label in labels]
        try:
            return np.array(found, dtype=self.dtype)
        except OverflowError:  # a new class beyond the range of the current type
            return np.array(found, dtype=np.int64)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


T = TypeVar("T")

# Rounding error of sums of weights, as a share of all weight that was ever in them.
ROUNDING = 1e-12


class Row(NamedTuple):
    """Row with its weight when the decay is `decay`; position: its position in the request."""

    record: Record
    label: Any
    weight: float
    decay: float
    position: int = 0


@dataclass
class Delta:
    """Rows to add and to remove; `unverified` rows are removed if they can have been learned."""

    added: list[Row] = field(default_factory=list)
    removed: list[Row] = field(default_factory=list)
    unverified: list[Row] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.unverified)

    def extend(self, other: "Delta") -> None:
        self.added += other.added
        self.removed += other.removed
        self.unverified += other.unverified


def apply_delta(fitted: Fitted, delta: Delta, before: float, now: Counters, labels: ClassLabels) -> Fitted:
    """Return the model after a change; raise a Problem or an error of the library if it is impossible.

    before: the decay of the current counts. Rows recorded in the journal are removed regardless of rounding: any weight
    that is left is negligible.
    """
    counts, tolerance = fitted.counts, ROUNDING * now.weight_ever
    if before != now.decay:
        counts = counts * 2.0 ** (now.decay - before)
    for rows, sign in ((delta.added, 1), (delta.removed, -1), (delta.unverified, 0)):
        counted = count_rows(fitted, rows, now, labels)
        if counted is None:
            continue
        counts = counts + counted if sign > 0 else counts.subtract(counted, tolerance if sign else None)
    return fitted if counts is fitted.counts else update.replace_counts(fitted, counts)


def count_rows(fitted: Fitted, rows: Sequence[Row], now: Counters, labels: ClassLabels) -> Counts | None:
    """Return the counts of these rows with their current weights; None if no row has any weight.

    Rows of several requests may have cells of different types in a column (a number, and text that reads as one), which
    a table cannot represent. Rows of each type are then counted separately.
    """
    decayed = [row._replace(weight=now.decay_weight(row.weight, row.decay)) for row in rows]
    weighted = [row for row in decayed if row.weight > 0.0]
    if not weighted:
        return None
    try:
        return _count_table(fitted, weighted, labels)
    except Problem:
        if len(parts := group_by_types(weighted, lambda row: row.record)) == 1:
            raise
    return add_up((_count_table(fitted, part, labels) for part in parts), Counts.empty(fitted.counts.schema))


def _count_table(fitted: Fitted, rows: Sequence[Row], labels: ClassLabels) -> Counts:
    schema = fitted.counts.schema
    try:
        table = records_to_table(schema, [row.record for row in rows])
        known = encode_labels(labels.array([row.label for row in rows]), len(rows))
        examples = LabeledTable(table, known, np.array([row.weight for row in rows]))
        return count_examples(schema, examples, 1)
    except (Problem, DecibanError) as problem:
        found = problem if isinstance(problem, Problem) else to_problem(problem)
        raise found.in_request([row.position for row in rows]) from None


def group_by_types(rows: Sequence[T], record: Callable[[T], Record]) -> list[list[T]]:
    """Group rows by the types of their cells, the largest group first."""
    parts: dict[Any, list[T]] = {}
    for row in rows:
        cells = record(row)
        found = cells.items() if isinstance(cells, Mapping) else enumerate(cells)
        parts.setdefault(frozenset((name, JSON_KINDS.get(type(cell))) for name, cell in found), []).append(row)
    return sorted(parts.values(), key=len, reverse=True)


# Result for a row that was learned.
LEARNED = "learned"

# Result for a row that was learned before with the same id and label.
ALREADY_LEARNED = "already learned"

# Result for a row that was learned before with another label.
RELEARNED = "relearned"

# Result for a row that was forgotten.
FORGOTTEN = "forgotten"

# Result for forgetting an unknown id.
NOT_FOUND = "not found"

# JSON cannot represent it.
INFINITY = float("inf")


@dataclass
class ChangeSet:
    """Changes in the current transaction of the journal, and their effect on the counts.

    counters, labels: state of the learner after the changes. check: raises a Problem for a record with unknown columns.
    full: reason why learning is not possible, if any. batch: number of the first change.
    """

    journal: Journal
    settings: LearnSettings
    counters: Counters
    labels: ClassLabels
    check: Callable[[Record, int], None]
    batch: int
    full: Problem | None = None
    delta: Delta = field(default_factory=Delta)

    def savepoint(self) -> "ChangeSet":
        """Return an empty change set that continues this one, for a request that may fail on its own."""
        return replace(self, counters=copy(self.counters), batch=self.counters.sequence + 1, delta=Delta())

    def learn(self, rows: LearnableRows) -> list[str]:
        """Learn rows, each id once; return the result for each row. Raise a Problem if one cannot be learned."""
        records = [None] * rows.size if rows.records is None else rows.records
        found = zip(rows.ids, records, rows.labels, rows.weights, strict=True)
        return [self._learn(*row, position) for position, row in enumerate(found)]

    def forget(self, rows: LearnableRows) -> list[str]:
        """Forget rows by id, or as they were learned without one; return the result for each row."""
        if rows.records is None:
            return [self._forget_id(str(row_id), position) for position, row_id in enumerate(rows.ids)]
        found = zip(rows.records, rows.labels, rows.weights, strict=True)
        return [self._forget_record(*row, position) for position, row in enumerate(found)]

    def _learn(self, row_id: str | None, record: Record | None, label: Any, weight: float, position: int) -> str:
        """Learn a row and return the result; without a record, the row known by its id."""
        label = self.labels.read(label, f"labels[{position}]")
        kept = None if row_id is None else self.journal.row(row_id)
        if kept is not None and kept.label == as_json(label):
            self._drop_pending(row_id)
            return ALREADY_LEARNED
        if self.full is not None:
            raise self.full
        if record is None:
            record, weight = self._find_record(row_id, kept, position)
        else:
            self.check(record, position)
        if kept is not None:
            self._forget(kept, position)
        self._add(row_id, record, label, weight, position)
        return LEARNED if kept is None else RELEARNED

    def _find_record(self, row_id: str | None, kept: RetainedRow | None, position: int) -> tuple[Record, float]:
        """Return the record and weight of a row that is learned or waits for its label."""
        if kept is not None:
            return msgspec.json.decode(self.journal.record(kept.sequence)), kept.weight
        found = None if row_id is None else self.journal.read_pending(row_id)
        if found is None:
            remedy = "send the row with its label, or predict it with this id first"
            raise Problem(
                422, f"no row found for the id {str(row_id)[:80]!r}", remedy, f"ids[{position}]", code="unknown-id"
            )
        return msgspec.json.decode(found), 1.0

    def _add(self, row_id: str | None, record: Record, label: Any, weight: float, position: int) -> None:
        counters, text = self.counters, record_as_json(record, position)
        self.labels = self.labels.with_label(label)
        counters.sequence += 1
        counters.weight_ever += weight
        self.journal.learn(counters.sequence, self.batch, row_id, text, as_json(label), weight, counters.decay)
        self.delta.added.append(Row(record, label, weight, counters.decay, position))
        counters.kept += row_id is not None
        counters.unretained += row_id is None
        self._drop_pending(row_id)
        counters.learned += 1
        counters.untuned += 1
        if self.settings.decay is not None and counters.learned >= self.settings.decay_every:
            self._decay(log2(self.settings.decay))

    def _decay(self, amount: float) -> None:
        counters = self.counters
        counters.sequence += 1
        counters.decay += amount
        counters.weight_ever *= 2.0**amount
        counters.learned = 0
        self.journal.decay(counters.sequence, self.batch, amount)

    def _forget_id(self, row_id: str, position: int) -> str:
        """Forget a row by its id, also one that waits for its label; return the result."""
        kept = self.journal.row(row_id)
        waited = self._drop_pending(row_id)
        if kept is None:
            return FORGOTTEN if waited else NOT_FOUND
        self._forget(kept, position)
        return FORGOTTEN

    def _forget(self, kept: RetainedRow, position: int) -> None:
        """Forget the remaining weight of a learned row."""
        counters = self.counters
        left = counters.decay_weight(kept.weight, kept.decay)
        record, label = msgspec.json.decode(self.journal.record(kept.sequence)), msgspec.json.decode(kept.label)
        counters.sequence += 1
        counters.weight_ever += left
        counters.kept -= 1
        self.journal.forget_row(counters.sequence, self.batch, kept.sequence, left)
        self.delta.removed.append(Row(record, label, left, counters.decay, position))

    def _forget_record(self, record: Record, label: Any, weight: float, position: int) -> str:
        """Forget a row that was learned without an id."""
        label = self.labels.read(label, f"labels[{position}]")
        self.check(record, position)
        counters, text = self.counters, record_as_json(record, position)
        counters.sequence += 1
        counters.weight_ever += weight
        counters.unverified += 1
        self.journal.forget(counters.sequence, self.batch, text, as_json(label), weight)
        self.delta.unverified.append(Row(record, label, weight, counters.decay, position))
        return FORGOTTEN

    def add_pending(self, row_id: str, record: str) -> None:
        """Retain a row, given as JSON, until it is labeled, unless its id is already known."""
        if self.journal.add_pending(row_id, self.counters.clock, record):
            self.counters.pending += 1
            self.counters.pending_bytes += measure_pending(row_id, record)

    def _drop_pending(self, row_id: str | None) -> bool:
        if row_id is None or not self.counters.pending:
            return False
        freed = self.journal.drop_pending(row_id)
        self.counters.pending -= freed > 0
        self.counters.pending_bytes -= freed
        return freed > 0


def record_as_json(record: Record, position: int) -> str:
    """Return a record as JSON text; raise a Problem if it cannot be represented."""
    cells = record.values() if isinstance(record, dict) else record
    if INFINITY in cells or -INFINITY in cells:  # not representable in JSON
        raise Problem(
            422, "expected a finite number, found infinity", "send a finite number, or null", f"rows[{position}]"
        )
    try:
        return as_json(record)
    except (UnicodeError, TypeError, ValueError, OverflowError, RecursionError):
        remedy = "send numbers in the usual range, valid Unicode, true, false or null"
        raise Problem(422, "the row cannot be represented as JSON", remedy, f"rows[{position}]") from None


@dataclass(frozen=True)
class LearnResult:
    """Result for each row of a request, and the state that includes it."""

    results: list[str]
    state: State


@dataclass(frozen=True)
class LearnRequest:
    """Rows to learn or to forget, and the future of their result."""

    rows: LearnableRows
    forgets: bool = False
    future: "Future[LearnResult]" = field(default_factory=Future)

    @property
    def size(self) -> int:
        """Number of rows."""
        return self.rows.size

    def write(self, changes: ChangeSet) -> list[str]:
        """Add the request to a change set; return the result for each row, or raise a Problem."""
        return changes.forget(self.rows) if self.forgets else changes.learn(self.rows)


def make_column_check(fitted: Fitted) -> Callable[[Record, int], None]:
    """Return a function that raises a Problem for a record with a column that is not in the model."""
    names = fitted.counts.schema.names
    if names is None:
        return lambda record, row: None
    known = frozenset(names) | frozenset(fitted.origin.ignored)

    def check(record: Record, row: int) -> None:
        if not isinstance(record, dict):
            found = JSON_KINDS.get(type(record), "null")
            raise Problem(422, f"expected an object, found {found}", "send {column: value, ...}", f"rows[{row}]")
        if not record.keys() <= known:
            name = next(name for name in record if name not in known)
            near = get_close_matches(str(name), names, 1)
            remedy = f"did you mean {near[0]!r}?" if near else "omit it"
            raise Problem(422, "unknown column", remedy, f"rows[{row}].{str(name)[:80]}", code="unknown-column")

    return check


def encode_pending_rows(fitted: Fitted, ids: Sequence[str], records: Sequence[Record]) -> list[tuple[str, str]]:
    """Return ids and records as JSON, without unknown columns.

    A record without any column of the model is omitted: learned, it would be a row of missing values.
    """
    known = frozenset(fitted.counts.schema.names or ())
    rows = []
    for position, (name, record) in enumerate(zip(ids, records, strict=True)):
        if known and isinstance(record, dict):
            record = {column: cell for column, cell in record.items() if column in known}
            if not record:
                continue
        elif known or not isinstance(record, list):
            found = JSON_KINDS.get(type(record), "null")
            raise Problem(
                422, f"expected a row, found {found}", "send rows in the form of the model", f"rows[{position}]"
            )
        rows.append((name, record_as_json(record, position)))
    return rows
