"""Changes that are written down but not committed yet: labels are read, rows are learned and forgotten in the
transaction of the journal, and counted into the model.
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
from deciban.serve.bodies.records import table_of_records
from deciban.serve.online.journal import Journal, KeptRow, Numbers, as_json, pending_bytes
from deciban.serve.predictions import State
from deciban.serve.problems import Problem, problem_of
from deciban.serve.settings import LearnSettings
from deciban.tables.examples import LabeledTable
from deciban.tables.labels import LabelArray, encode_labels
from deciban.util.text_tables import list_names

# What labels are called, by the kinds of NumPy's types.
KINDS_OF_CLASSES = {
    "b": "true or false",
    "i": "a whole number",
    "u": "a whole number",
    "f": "a number",
    "U": "text",
    "O": "text",
}

# Whole numbers that classes can be.
MAX_INTEGER_LABEL = (1 << 63) - 1


@dataclass(frozen=True)
class ClassLabels:
    """What labels may be: `known` are those that the model has, or had before all rows of them were forgotten.

    kind: of NumPy's type of the classes; "?" for dates and other things that JSON writes as text. new: whether others
    may come. most: how many there may be in all.
    """

    kind: str
    dtype: Any
    known: dict[Any, Any]
    declared: bool
    new: bool
    most: int

    @classmethod
    def of(cls, classes: LabelArray, before: Iterable[Any], declared: bool, new: bool, most: int) -> "ClassLabels":
        """The labels of these classes, and those, as JSON has them, that were there before."""
        kind: str = classes.dtype.kind
        if kind not in KINDS_OF_CLASSES or (kind == "O" and not all(isinstance(label, str) for label in classes)):
            kind = "?"
        found = dict.fromkeys(before)
        values = list(classes) if kind == "?" else classes.tolist()
        found.update({(str(value) if kind == "?" else value): value for value in values})
        dtype = {"U": np.str_, "O": object}.get(kind, classes.dtype)
        known = {label: label if value is None else value for label, value in found.items()}
        return cls(kind, dtype, known, declared, new, most)

    def read(self, label: Any, place: str) -> Any:
        """The label, if it may be learned, as it is written to the journal; a Problem where it may not."""
        if label is None:
            raise Problem(422, "the label is missing", "give each row a label", place)
        right = self._as_kind(label)
        if right is None:
            found = JSON_KINDS.get(type(label), type(label).__name__)
            expected = KINDS_OF_CLASSES.get(self.kind, "text")
            raise Problem(422, f"found {found} as a label, expected {expected}", "send labels like the classes", place)
        if right not in self.known and (not self.new or self.declared or self.kind == "?"):
            cause = f"the label {str(right)[:80]!r} is none of the classes {list_names(list(self.known), 6)}"
            remedy = "correct it" if self.declared else "correct it, or let the service learn new classes"
            raise Problem(422, cause, remedy, place)
        if right not in self.known and len(self.known) >= self.most:
            cause = f"the label {str(right)[:80]!r} is new, and there are {len(self.known):,} classes already"
            raise Problem(422, cause, f"send one of these: there may be {self.most:,}", place)
        if isinstance(right, str) and not _is_unicode(right):
            raise Problem(422, "the label is not valid Unicode", "send text without lone surrogates", place)
        return right

    def _as_kind(self, label: Any) -> Any:
        """The label as the type that classes have; None where it is something else."""
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
        """The same with a label that was learned."""
        if label in self.known:
            return self
        return replace(self, known={**self.known, label: label})

    def array(self, labels: list[Any]) -> LabelArray:
        """Labels that were read, as the engine takes them."""
        found = [self.known.get(label, label) for label in labels]
        try:
            return np.array(found, dtype=self.dtype)
        except OverflowError:  # a new class that the narrow type of the others does not hold
            return np.array(found, dtype=np.int64)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


T = TypeVar("T")

# What sums of weights may be wrong by, as a share of all weight that was ever in them.
ROUNDING = 1e-12


class Row(NamedTuple):
    """A row with the weight it has when the decay is `decay`; place: where it is in the request."""

    record: Record
    label: Any
    weight: float
    decay: float
    place: int = 0


@dataclass
class Delta:
    """What a change adds and takes away; `unverified` rows are taken away too, if they can have been learned."""

    added: list[Row] = field(default_factory=list)
    removed: list[Row] = field(default_factory=list)
    unverified: list[Row] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.unverified)

    def extend(self, other: "Delta") -> None:
        self.added += other.added
        self.removed += other.removed
        self.unverified += other.unverified


def applied(fitted: Fitted, delta: Delta, before: float, now: Numbers, labels: ClassLabels) -> Fitted:
    """What is known after a change; a Problem or an error of the engine where it cannot be made.

    before: the decay of what is known so far. Rows that the journal has learned are taken away whatever rounding has
    made of them: the weight that is left then, if any, is less than anybody can measure.
    """
    counts, tolerance = fitted.counts, ROUNDING * now.weight_ever
    if before != now.decay:
        counts = counts * 2.0 ** (now.decay - before)
    for rows, sign in ((delta.added, 1), (delta.removed, -1), (delta.unverified, 0)):
        some = counted(fitted, rows, now, labels)
        if some is None:
            continue
        counts = counts + some if sign > 0 else counts.subtract(some, tolerance if sign else None)
    return fitted if counts is fitted.counts else update.replace_counts(fitted, counts)


def counted(fitted: Fitted, rows: Sequence[Row], now: Numbers, labels: ClassLabels) -> Counts | None:
    """The counts of these rows at the weights that they have now; None where none of them has any.

    Rows of several requests may have cells of several kinds in a column (a number, and text that reads as one), which
    no table has; then those of each kind are counted apart.
    """
    weighed = [row._replace(weight=now.left_of(row.weight, row.decay)) for row in rows]
    there = [row for row in weighed if row.weight > 0.0]
    if not there:
        return None
    try:
        return _counted(fitted, there, labels)
    except Problem:
        if len(parts := by_kinds(there, lambda row: row.record)) == 1:
            raise
    return add_up((_counted(fitted, part, labels) for part in parts), Counts.empty(fitted.counts.schema))


def _counted(fitted: Fitted, rows: Sequence[Row], labels: ClassLabels) -> Counts:
    schema = fitted.counts.schema
    try:
        table = table_of_records(schema, [row.record for row in rows])
        known = encode_labels(labels.array([row.label for row in rows]), len(rows))
        examples = LabeledTable(table, known, np.array([row.weight for row in rows]))
        return count_examples(schema, examples, 1)
    except (Problem, DecibanError) as problem:
        found = problem if isinstance(problem, Problem) else problem_of(problem)
        raise found.in_request([row.place for row in rows]) from None


def by_kinds(rows: Sequence[T], record: Callable[[T], Record]) -> list[list[T]]:
    """The rows apart by the kinds of their cells, the largest part first."""
    parts: dict[Any, list[T]] = {}
    for row in rows:
        cells = record(row)
        found = cells.items() if isinstance(cells, Mapping) else enumerate(cells)
        parts.setdefault(frozenset((name, JSON_KINDS.get(type(cell))) for name, cell in found), []).append(row)
    return sorted(parts.values(), key=len, reverse=True)


LEARNED, ALREADY, RELEARNED, FORGOTTEN, NOT_KNOWN = (
    *("learned", "already learned", "relearned"),
    *("forgotten", "not found"),
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

    def learn(self, rows: LearnableRows) -> list[str]:
        """Learn rows, each id once; return what became of each row. A Problem where one cannot be learned."""
        records = [None] * rows.size if rows.records is None else rows.records
        found = zip(rows.ids, records, rows.labels, rows.weights, strict=True)
        return [self._learn(*row, place) for place, row in enumerate(found)]

    def forget(self, rows: LearnableRows) -> list[str]:
        """Forget rows by their ids, or as they were learned without one; return what became of each."""
        if rows.records is None:
            return [self._forget_id(str(row_id), place) for place, row_id in enumerate(rows.ids)]
        found = zip(rows.records, rows.labels, rows.weights, strict=True)
        return [self._forget_record(*row, place) for place, row in enumerate(found)]

    def _learn(self, row_id: str | None, record: Record | None, label: Any, weight: float, place: int) -> str:
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

    def _forget_id(self, row_id: str, place: int) -> str:
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

    def _forget_record(self, record: Record, label: Any, weight: float, place: int) -> str:
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
        """Keep a row, as JSON, to be labeled later, unless its id is known already."""
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


@dataclass(frozen=True)
class Learned:
    """What became of each row of a request, and the state in which that shows."""

    results: list[str]
    state: State


@dataclass(frozen=True)
class Request:
    """Rows to be learned, or forgotten, and the answer that waits for it."""

    rows: LearnableRows
    forgets: bool = False
    answer: "Future[Learned]" = field(default_factory=Future)

    @property
    def size(self) -> int:
        """The number of rows."""
        return self.rows.size

    def write(self, draft: Draft) -> list[str]:
        """Write it down in a draft; return what became of each row, or raise a Problem."""
        return draft.forget(self.rows) if self.forgets else draft.learn(self.rows)


def known_columns(fitted: Fitted) -> Callable[[Record, int], None]:
    """A function that raises a Problem for a record with a column that the model does not know."""
    names = fitted.counts.schema.names
    if names is None:
        return lambda record, row: None
    known = frozenset(names) | frozenset(fitted.origin.ignored)

    def check(record: Record, row: int) -> None:
        if not isinstance(record, dict):
            found = JSON_KINDS.get(type(record), "null")
            raise Problem(422, f"found {found}, expected an object", "send {column: value, ...}", f"rows[{row}]")
        if not record.keys() <= known:
            name = next(name for name in record if name not in known)
            near = get_close_matches(str(name), names, 1)
            remedy = f"did you mean {near[0]!r}?" if near else "leave it out"
            raise Problem(422, "the model has no such column", remedy, f"rows[{row}].{str(name)[:80]}")

    return check


def rows_to_keep(fitted: Fitted, ids: Sequence[str], records: Sequence[Record]) -> list[tuple[str, str]]:
    """Ids and records, as JSON and without the columns that the model does not know.

    A record that has none of its columns is left out: learned, it would be a row of which everything is missing.
    """
    known = frozenset(fitted.counts.schema.names or ())
    rows = []
    for place, (name, record) in enumerate(zip(ids, records, strict=True)):
        if known and isinstance(record, dict):
            record = {column: cell for column, cell in record.items() if column in known}
            if not record:
                continue
        elif known or not isinstance(record, list):
            found = JSON_KINDS.get(type(record), "null")
            raise Problem(422, f"found {found} as a row", "send rows as the model has them", f"rows[{place}]")
        rows.append((name, record_as_json(record, place)))
    return rows
