"""Rows that are learned and forgotten, counted into what is known."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import numpy as np

from deciban.errors import DecibanError
from deciban.fitting import update
from deciban.fitting.fit import count_examples
from deciban.model.counting import add_up
from deciban.model.counts import Counts
from deciban.model.fitted import Fitted
from deciban.serve.bodies.records import CELL, cause_and_remedy, table_of_records
from deciban.serve.json_values import JSON_KINDS, Record
from deciban.serve.learning.class_labels import ClassLabels
from deciban.serve.learning.numbers import Numbers
from deciban.serve.problems import Problem
from deciban.tables.labelled import LabelledTable
from deciban.tables.labels import encode_labels

T = TypeVar("T")

# What sums of weights may be wrong by, as a share of all weight that was ever in them.
ROUNDING = 1e-12

# Where a message of a table made of records says what it is about.
ROW_PLACE = re.compile(r"rows\[(\d+)\](.*)", re.DOTALL)


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
    counts, slack = fitted.counts, ROUNDING * now.weight_ever
    if before != now.decay:
        counts = counts * 2.0 ** (now.decay - before)
    for rows, sign in ((delta.added, 1), (delta.removed, -1), (delta.unverified, 0)):
        some = counted(fitted, rows, now, labels)
        if some is None:
            continue
        counts = counts + some if sign > 0 else counts.without(some, slack if sign else None)
    return fitted if counts is fitted.counts else update.with_counts(fitted, counts)


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
        examples = LabelledTable(table, known, np.array([row.weight for row in rows]))
        return count_examples(schema, examples, 1)
    except (Problem, DecibanError) as problem:
        raise placed(problem, [row.place for row in rows]) from None


def by_kinds(rows: Sequence[T], record: Callable[[T], Record]) -> list[list[T]]:
    """The rows apart by the kinds of their cells, the largest part first."""
    parts: dict[Any, list[T]] = {}
    for row in rows:
        cells = record(row)
        found = cells.items() if isinstance(cells, Mapping) else enumerate(cells)
        parts.setdefault(frozenset((name, JSON_KINDS.get(type(cell))) for name, cell in found), []).append(row)
    return sorted(parts.values(), key=len, reverse=True)


def placed(problem: Problem | DecibanError, places: Sequence[int]) -> Problem:
    """The problem with its place in the request; places: where each of the rows it may be about is."""
    if isinstance(problem, Problem):
        status, cause, remedy, place = problem.status, problem.cause, problem.remedy, problem.place
    else:
        status, (cause, remedy), place = 422, cause_and_remedy(str(problem)), ""
    found = CELL.fullmatch(cause)
    if found is not None and (found[2] is None or int(found[2]) < len(places)):
        row = "*" if found[2] is None else places[int(found[2])]
        place, cause = f"rows[{row}].{found[1]}", found[3]
    elif (found := ROW_PLACE.fullmatch(place)) is not None and int(found[1]) < len(places):
        place = f"rows[{places[int(found[1])]}]{found[2]}"
    return Problem(status, cause, remedy, place)
