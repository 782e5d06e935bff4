"""SQL statements that count rows, and their answers by class.

Every statement selects from the cells that it is about: `y` is the label of a row, `w` its weight if rows have weights,
and `v0`, `v1` ... are the values. Names given by users occur only quoted, in the source.

`EngineRows` writes and runs the statements, `Sums` collects aggregates of values, `ask_groups` groups distinct cells.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deciban.errors import DataError, Place
from deciban.families.base.sql_questions import DistinctRows
from deciban.sources.dialects import Dialect
from deciban.sources.source import SqlRows
from deciban.sources.streams import LabeledStream
from deciban.tables.labels import MAX_REPETITIONS, UNKNOWN_LABEL, LabelArray, Labels
from deciban.tables.table import Frame
from deciban.util.arrays import Codes, Flags, Floats, sum_at

# Aggregates per statement: PostgreSQL allows 1,664 columns.
MAX_AGGREGATES = 480


@dataclass(frozen=True)
class Classes:
    """Classes, the weight of each, the number of rows with a label and a weight, and of rows without a label."""

    labels: LabelArray
    weight: Floats
    rows: int
    unlabeled: int


@dataclass(frozen=True)
class EngineRows:
    """Rows in an engine.

    label, weight: SQL expressions; weight is None if rows have no weights. careful: True if the engine may not be able
    to multiply the numbers.
    """

    rows: SqlRows
    examples: LabeledStream
    label: str
    weight: str | None
    careful: bool

    @classmethod
    def of(cls, rows: SqlRows, examples: LabeledStream, careful: bool) -> "EngineRows":
        """Raise a DataError if labels or weights are of an invalid type."""
        target = rows.columns[examples.target]
        label = rows.dialect.as_value(target.sql, target.type)
        if label is None:
            cause = f"Unknown label type: the labels are {target.type}"
            raise DataError(cause, remedy="turn them into text or whole numbers")
        if pa.types.is_floating(target.type):
            label = rows.dialect.not_nan(rows.dialect.as_double(label))
        weight = None if examples.weight is None else _weight(rows, examples)
        return cls(rows, examples, label, weight, careful)

    def cells(self, values: Sequence[str], complete: bool = False, everything: bool = False) -> str:
        """Return the FROM clause of the values of the rows that have a label and a weight.

        complete: of those where no value is missing. everything: of all rows.
        """
        shown = [f"{self.label} AS y", *([] if self.weight is None else [f"{self.weight} AS w"])]
        shown += [f"{value} AS v{k}" for k, value in enumerate(values)]
        cells = f"(SELECT {', '.join(shown)} FROM {self.rows.source}) AS cells"
        if everything:
            return cells
        there = ["y IS NOT NULL", *([] if self.weight is None else [f"w > {self.dialect.number(0.0)}"])]
        there += [f"v{k} IS NOT NULL" for k in range(len(values) if complete else 0)]
        return f"(SELECT * FROM {cells} WHERE {' AND '.join(there)}) AS counted"

    def about_means(self, values: Sequence[str], complete: bool = False) -> str:
        """Return the FROM clause of the values less their means within the class of each row, with these means."""
        cells, names = self.cells(values, complete), [f"v{k}" for k in range(len(values))]
        means = ", ".join(f"{self.mean(name)} AS {name_mean(name)}" for name in names)
        shown = ["y", *([] if self.weight is None else ["w"]), *map(name_mean, names)]
        shown += [f"{name} - {name_mean(name)} AS {name}" for name in names]
        found = f"(SELECT y AS k, {means} FROM {cells} GROUP BY y) AS means"
        return f"(SELECT {', '.join(shown)} FROM {cells} JOIN {found} ON y = k) AS about"

    def classes(self) -> Classes:
        """Return the classes of all rows; raise a DataError for an invalid weight."""
        if self.weight is None:
            return self.of_all_classes([], [])[0]
        least, most = map(self.dialect.number, (0.0, MAX_REPETITIONS))
        usable = f"w >= {least} AND w <= {most}"
        aggregates = [
            self.dialect.as_double(f"count(CASE WHEN w > {least} THEN 1 END)"),
            "sum(w)",
            f"count(CASE WHEN {usable} THEN NULL ELSE 1 END)",
            f"max(CASE WHEN {usable} THEN NULL ELSE w END)",
        ]
        answer = self._ask(self.cells([], everything=True), aggregates)
        bad = np.flatnonzero(as_floats(answer.column(3)))
        if bad.size:
            raise self._bad_weight(answer.column(4)[int(bad[0])].as_py())
        return self._classes(answer, as_floats(answer.column(2)))

    def _bad_weight(self, found: float | None) -> DataError:
        """Return the error of `check_weights`, without the row, which is unknown."""
        return DataError(
            f"a weight is {np.nan if found is None else found}",
            place=Place(column=self.examples.weight),
            remedy=f"weights must be finite, not negative and at most {MAX_REPETITIONS:g}",
        )

    def _classes(self, answer: pa.Table, weight: Floats) -> Classes:
        """Return the classes of an answer, which has the number of rows of each label."""
        labels, rows = self._labels(answer.column(0)), as_floats(answer.column(1))
        known = labels.codes >= 0
        total = np.bincount(labels.codes[known], weight[known], labels.classes.size).astype(np.float64)
        return Classes(labels.classes, total, int(rows[known].sum()), int(rows[~known].sum()))

    def of_all_classes(self, values: Sequence[str], aggregates: Sequence[str]) -> tuple[Classes, Floats, Flags]:
        """Return the classes, and the answers of `of_each_class`; in one statement without weights."""
        if self.weight is not None:
            classes = self.classes()
            return classes, *self.of_each_class(self.cells(values), aggregates, classes)
        rows = self.dialect.as_double("count(*)")
        answer = self._ask(self.cells(values, everything=True), [rows, *aggregates])
        classes = self._classes(answer, as_floats(answer.column(1)))
        return classes, *self._by_class(answer.remove_column(1), classes)

    def of_each_class(self, source: str, aggregates: Sequence[str], classes: Classes) -> tuple[Floats, Flags]:
        """Return the value of each aggregate over a source, by class, and which are NaN in some class.

        Missing values are NaN in the first result only.
        """
        found = [(np.zeros((0, classes.labels.size)), np.zeros(0, dtype=np.bool_))]
        for first in range(0, len(aggregates), MAX_AGGREGATES):
            answer = self._ask(source, aggregates[first : first + MAX_AGGREGATES])
            found.append(self._by_class(answer, classes))
        numbers, broken = map(np.concatenate, zip(*found, strict=True))
        return numbers, broken

    def _by_class(self, answer: pa.Table, classes: Classes) -> tuple[Floats, Flags]:
        codes = self.codes(answer.column(0), classes)
        there = codes >= 0
        cells = [column.cast(pa.float64()).filter(pa.array(there)) for column in answer.columns[1:]]
        numbers = np.full((len(cells), classes.labels.size), np.nan)
        for k, column in enumerate(cells):
            numbers[k, codes[there]] = as_floats(column)
        return numbers, np.array([pc.any(pc.is_nan(column)).as_py() is True for column in cells], dtype=np.bool_)

    def _ask(self, source: str, aggregates: Sequence[str]) -> pa.Table:
        """Run aggregates, grouped by label."""
        shown = ", ".join(("y", *(f"{aggregate} AS a{k}" for k, aggregate in enumerate(aggregates))))
        return self.rows.ask(f"SELECT {shown} FROM {source} GROUP BY y")

    def codes(self, labels: pa.ChunkedArray, classes: Classes) -> Codes:
        """Return the class indices of labels in an answer; raise a DataError for an unknown label."""
        places = self._labels(labels).places_among(classes.labels)
        if (places == UNKNOWN_LABEL).any():
            raise make_changed_error()
        return places

    def _labels(self, cells: pa.ChunkedArray) -> Labels:
        """Return the labels in an answer, with the type they have when read."""
        kind = self.rows.columns[self.examples.target].type
        return self.examples.labels_of(cells.cast(kind) if pa.types.is_floating(kind) else cells)

    @property
    def dialect(self) -> Dialect:
        return self.rows.dialect

    @property
    def amount(self) -> str:
        """Weight of all rows of a group."""
        return self.dialect.as_double("count(*)") if self.weight is None else "sum(w)"

    def present(self, value: str) -> str:
        """Return the weight of the rows in which a value is not missing."""
        return (
            self.dialect.as_double(f"count({value})")
            if self.weight is None
            else f"sum(CASE WHEN {value} IS NOT NULL THEN w END)"
        )

    def total(self, value: str) -> str:
        """Return the weighted sum of a value."""
        return f"sum({value})" if self.weight is None else f"sum(w * {value})"

    def product(self, one: str, other: str) -> str:
        """Return the product of two values."""
        return self.dialect.product(one, other) if self.careful else f"{one} * {other}"

    def mean(self, value: str) -> str:
        """Return a number near the weighted mean of a value."""
        return f"avg({value})" if self.weight is None else f"({self.total(value)} / {self.present(value)})"


def _weight(rows: SqlRows, examples: LabeledStream) -> str:
    assert examples.weight is not None
    column = rows.columns[examples.weight]
    kinds = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean)
    number = rows.dialect.as_number(column.sql, column.type) if any(is_kind(column.type) for is_kind in kinds) else None
    if number is None:
        raise DataError(f"the weights are not numbers ({column.type})", remedy="pass one number per row")
    return number


def make_changed_error() -> DataError:
    """Return the error for statements that do not agree with each other."""
    return DataError("the table changed while it was counted", remedy="count it again")


def write_difference(engine: EngineRows, value: str, number: float) -> str:
    """Return the distance of a value from a number."""
    return f"({value}) - {engine.dialect.number(number)}"


def name_mean(value: str) -> str:
    """Return the name of the mean of a value within the class of a row."""
    return f"mean_{value}"


def as_floats(column: pa.ChunkedArray | pa.Array) -> Floats:
    """Return a column of numbers of an answer as floats, NaN for NULL."""
    return np.asarray(column.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)


# Writes an aggregate in SQL, given the name of a value.
Aggregate = Callable[[str], str]


class Sums:
    """Aggregates of values, as many per statement as it can hold."""

    def __init__(self) -> None:
        self._asked: list[tuple[str, Aggregate]] = []

    def add(self, value: str, *aggregates: Aggregate) -> slice:
        """Add aggregates of a value; return the positions of their answers."""
        self._asked.extend((value, aggregate) for aggregate in aggregates)
        return slice(len(self._asked) - len(aggregates), len(self._asked))

    def ask(self, engine: EngineRows, classes: Classes | None) -> tuple[Classes, Floats, Flags]:
        """Return the classes, the answers by class, and which of these are NaN in some class.

        The classes are asked for if they are not known. Missing answers are NaN.
        """
        numbers, broken = [], []
        first = 0
        while first < len(self._asked) or classes is None:
            values, aggregates = self._statement(first)
            if classes is None:
                classes, found, nan = engine.of_all_classes(values, aggregates)
            else:
                found, nan = engine.of_each_class(engine.cells(values), aggregates, classes)
            numbers.append(found)
            broken.append(nan)
            first += len(aggregates)
        nothing = np.zeros((0, classes.labels.size)), np.zeros(0, dtype=np.bool_)
        return classes, np.concatenate([nothing[0], *numbers]), np.concatenate([nothing[1], *broken])

    def _statement(self, first: int) -> tuple[list[str], list[str]]:
        """Return the values of a statement and their aggregates, from the first that is still open."""
        names: dict[str, str] = {}
        part = self._asked[first : first + MAX_AGGREGATES]
        aggregates = [aggregate(names.setdefault(value, f"v{len(names)}")) for value, aggregate in part]
        return list(names), aggregates


# SQL expressions of cells to group by.
Keys = tuple[str, ...]


def ask_groups(engine: EngineRows, sets: Sequence[Keys], classes: Classes) -> list[DistinctRows]:
    """Return the groups of each set of keys."""
    found: dict[int, DistinctRows] = {}
    for places in _statements(sets, engine.dialect.max_grouping_sets):
        found |= dict(zip(places, _answer(engine, [sets[place] for place in places], classes), strict=True))
    return [found[place] for place in range(len(sets))]


def _statements(sets: Sequence[Keys], max_sets: int) -> Iterator[list[int]]:
    """Yield the positions of sets to ask for together: at most `max_sets`, without common keys."""
    left = list(range(len(sets)))
    while left:
        chosen: list[int] = []
        taken: set[str] = set()
        for place in left:
            if len(chosen) < max_sets and taken.isdisjoint(sets[place]):
                chosen.append(place)
                taken.update(sets[place])
        yield chosen
        left = [place for place in left if place not in set(chosen)]


def _answer(engine: EngineRows, sets: Sequence[Keys], classes: Classes) -> Iterator[DistinctRows]:
    """Yield the groups of sets without common keys."""
    ends = np.cumsum([len(keys) for keys in sets]).tolist()
    names = [[f"v{k}" for k in range(end - len(keys), end)] for keys, end in zip(sets, ends, strict=True)]
    every = [name for own in names for name in own]
    marks = [f"GROUPING({own[0]}) AS g{k}" for k, own in enumerate(names)] if len(sets) > 1 else []
    grouped = ", ".join(f"({', '.join(('y', *own))})" for own in names)
    by = f"GROUPING SETS ({grouped})" if len(sets) > 1 else ", ".join(("y", *every))
    source = engine.cells([key for keys in sets for key in keys])
    answer = engine.rows.ask(f"SELECT {', '.join(('y', *every, *marks, engine.amount))} FROM {source} GROUP BY {by}")
    codes, weights = engine.codes(answer.column(0), classes), as_floats(answer.column(answer.num_columns - 1))
    if not np.allclose(sum_at(codes, weights, classes.weight.size), len(sets) * classes.weight, rtol=1e-9):
        raise make_changed_error()
    for k, end in enumerate(ends):
        here = np.arange(codes.size)
        if marks:
            here = np.flatnonzero(as_floats(answer.column(1 + len(every) + k)) == 0.0)
        cells = Frame(answer.select(range(1 + end - len(sets[k]), 1 + end))).take(here)
        yield DistinctRows(cells.values(range(len(sets[k]))), codes[here], weights[here], classes.labels.size)
