"""Count rows in an SQL engine; no rows leave it, except cells of columns that SQL cannot count.

`count_in_engine` collects the questions of the family of each column group, answers them in as few statements as the
engine allows (`CountingRun`), and makes the counts. Some rows show how to ask about all (`Hints`).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from deciban.errors import Argument, DataError, warn_user
from deciban.families.base.sql_questions import DistinctRows, Later, Number
from deciban.fitting.sql_counts.collector import Answers, Columns, GroupQuestions, NotInSql, Questions
from deciban.fitting.sql_counts.numbers import (
    Grouping,
    Numbers,
    Wanted,
    ask_numbers,
    ask_scatter,
    make_moments,
    make_totals,
    reject_unusable,
)
from deciban.fitting.sql_counts.statements import (
    MAX_AGGREGATES,
    Classes,
    EngineRows,
    Keys,
    as_floats,
    ask_groups,
    make_changed_error,
)
from deciban.model.counts import Counts, Guard
from deciban.schema.schema import Schema
from deciban.sources.streams import LabeledStream
from deciban.statistics import Scatter
from deciban.statistics.bins import ColumnBins
from deciban.statistics.levels import encode_distinct
from deciban.tables.labels import Labels
from deciban.tables.table import Table
from deciban.util.arrays import Floats, Integers
from deciban.util.progress import progress
from deciban.util.text_tables import list_names

# Counts the rows of some columns under their schema, by reading them.
Read = Callable[[Schema, LabeledStream], Counts]


# First rows that are fetched without a sample.
MAX_HINTS = 1 << 14

# Mean number of sample rows with the same cells for which discrete columns are asked for together.
MIN_ALIKE = 2


class Stopped(Exception):  # noqa: N818 - never leaves this module
    """The engine failed on the values it found."""


def count_in_engine(schema: Schema, examples: LabeledStream, read: Read) -> Counts:
    """Return the counts of all rows under a schema: the same as reading them, moments to 1e-12.

    read: counts what SQL cannot.
    """
    try:
        classes, found = _ask(schema, examples, careful=False)
    except Stopped:  # perhaps by numbers that are too large for sums in the engine
        classes, found = _ask(schema, examples, careful=True)
    rest = [place for place in range(len(schema.groups)) if place not in found]
    if rest:
        found |= _read(schema, rest, examples, classes, read)
    statistics = tuple(found[place] for place in range(len(schema.groups)))
    counts = Counts(schema, classes.labels, classes.weight, statistics, classes.rows, classes.unlabeled)
    return counts.drop_empty_classes()


def _ask(schema: Schema, examples: LabeledStream, careful: bool) -> tuple[Classes, dict[int, Any]]:
    """Return the classes, and the statistics of the column groups that SQL can count, by their places in the schema."""
    guard = Guard(schema)
    made: dict[int, Later[Any]] = {}
    looking: set[int] = set()  # column groups that read numbers and may reject them
    with examples.stream.sql() as rows, progress(f"counting in {rows.dialect.name}", "statements") as advance:

        def ask(query: str) -> pa.Table:
            try:
                answer = rows.ask(query)
            except DataError as problem:
                if careful:
                    raise
                raise Stopped from problem
            advance(1)
            return answer

        def reject(found: Numbers) -> None:
            for place in sorted(looking):
                group = schema.groups[place]
                guard(place, reject_unusable, group.family, found, group.columns)

        careful = careful or rows.fragile
        engine, questions = EngineRows.of(replace(rows, ask=ask), examples, careful), Questions()
        columns = Columns.of(engine, schema)
        for place, group in enumerate(schema.groups):
            own = GroupQuestions(questions, columns)
            with suppress(NotInSql):
                if (later := group.family.count_in_sql(own, group.columns)) is not None:
                    made[place] = later
                    looking |= {place} if own.looks else set()
        run = CountingRun.of(engine, columns, questions, Hints.of(engine, schema))
        classes, questions.answers = run.answers(reject)
    return classes, {place: guard(place, later) for place, later in made.items()}


def _read(
    schema: Schema, places: Sequence[int], examples: LabeledStream, classes: Classes, read: Read
) -> dict[int, Any]:
    """Return the statistics of other column groups, from rows of their columns alone."""
    groups = tuple(schema.groups[place] for place in places)
    names = {schema.column_name(column) for group in groups for column in group.columns}
    columns = "this column is" if len(names) == 1 else "these columns are"
    warn_user((Argument("pushdown", True), f": SQL cannot count {list_names(sorted(names))}; {columns} read instead"))
    stream = examples.stream
    if schema.names is not None:
        kept = names | {examples.target, examples.weight}
        stream = stream.without([name for name in stream.names if name not in kept])
    counts = read(replace(schema, groups=groups), replace(examples, stream=stream, pushdown=False))
    codes = Labels(counts.classes, np.arange(counts.classes.size, dtype=np.int32)).places_among(classes.labels)
    there = classes.weight > 0.0
    if counts.rows != classes.rows or not np.array_equal(np.sort(codes), np.flatnonzero(there)):
        raise make_changed_error()
    return {p: one.reindex_classes(codes, there.size) for p, one in zip(places, counts.statistics, strict=True)}


@dataclass(frozen=True)
class CountingRun:
    """Questions, the rows they are about, and hints. some: the numbers of some rows, by column."""

    engine: EngineRows
    columns: Columns
    questions: Questions
    hints: "Hints"
    some: Mapping[int, Floats]

    @classmethod
    def of(cls, engine: EngineRows, columns: Columns, questions: Questions, hints: "Hints") -> "CountingRun":
        asked_for = (*questions.moments.items, *questions.bins.items, *chain(*questions.scatters.items))
        places = sorted({number.column for number in asked_for})
        some = hints.numbers(places, [columns.numbers[place] for place in places])
        return cls(engine, columns, questions, hints, dict(zip(places, some.T, strict=True)))

    def answers(self, reject: Callable[[Numbers], None]) -> tuple[Classes, Answers]:
        """Return the classes, and all answers.

        reject: raises an error for numbers that cannot be used. In careful mode, it is called before they are summed.
        """
        wanted = Wanted(
            self.questions.numbers, self._guesses(self.questions.moments.items), self.questions.totals.items
        )
        sql = {column: self.columns.numbers[column] for column in wanted.ranges}
        if self.engine.careful:
            sql = {column: self._without_nan(column) for column in sql}
            classes, found = ask_numbers(self.engine, sql, Wanted(wanted.ranges), self.engine.classes())
            reject(found)
            found |= ask_numbers(self.engine, sql, Wanted({}, wanted.moments, wanted.totals), classes)[1]
        else:
            classes, found = ask_numbers(self.engine, sql, wanted, None)
            if found.nan:
                sql |= {column: self._without_nan(column) for column in found.nan}
                found |= ask_numbers(self.engine, sql, wanted.of(found.nan), classes)[1]
            reject(found)
        return classes, Answers(
            make_moments(self.engine, wanted, sql, found, classes),
            make_totals(wanted.totals, found, classes),
            [self._scatter(block, sql, found, classes) for block in self.questions.scatters.items],
            *self._groups(sql, found, classes),
        )

    def _without_nan(self, column: int) -> str:
        """Return the expression of a column of numbers, NULL instead of NaN."""
        sql = self.columns.numbers[column]
        return self.engine.dialect.not_nan(sql) if column in self.columns.floating else sql

    def _guesses(self, numbers: Iterable[Number]) -> dict[Number, float]:
        return {number: round_mean(number.of(self.some[number.column])) for number in numbers}

    def _sql(self, numbers: Iterable[Number], sql: Mapping[int, str]) -> list[str]:
        return [number.sql(self.engine.dialect, sql[number.column]) for number in numbers]

    def _scatter(self, block: Sequence[Number], sql: Mapping[int, str], found: Numbers, classes: Classes) -> Scatter:
        near, constant = list(self._guesses(block).values()), [found.constant(number) for number in block]
        return ask_scatter(self.engine, self._sql(block, sql), np.array(near), np.array(constant).T, classes)

    def _groups(
        self, sql: Mapping[int, str], found: Numbers, classes: Classes
    ) -> tuple[list[ColumnBins], list[DistinctRows], list[DistinctRows]]:
        """Return bins of numbers, levels of columns, and tuples."""
        bins, tuples = self.questions.bins.items, self.questions.tuples.items
        groupings = [Grouping.of(self.some[one.column], found.largest(one.column)) for one in bins]
        levels = [column for column in self.questions.levels.items if column not in self.columns.absent]
        bundles = [[levels[place] for place in together] for together in self.hints.together(levels)]
        sets: list[Keys] = [
            *(one.key(self.engine.dialect, v) for one, v in zip(groupings, self._sql(bins, sql), strict=True)),
            *(tuple(self.columns.values[column] for column in bundle) for bundle in bundles),
            *(tuple(self._member(one, sql) for one in members) for members in tuples),
        ]
        answers = iter(ask_groups(self.engine, sets, classes))
        binned = [one.column(next(answers)) for one in groupings]
        by_column: dict[int, DistinctRows] = {}
        for bundle in bundles:
            rows = next(answers)
            by_column |= {c: rows._replace(cells=[cells]) for c, cells in zip(bundle, rows.cells, strict=True)}
        absent = DistinctRows([pa.nulls(0)], np.zeros(0, dtype=np.int32), np.zeros(0), classes.labels.size)
        return binned, [by_column.get(column, absent) for column in self.questions.levels.items], list(answers)

    def _member(self, member: int | Number, sql: Mapping[int, str]) -> str:
        return self._sql([member], sql)[0] if isinstance(member, Number) else self.columns.values[member]


@dataclass(frozen=True)
class Hints:
    """Some of the counted rows. drawn: a sample; without it, the first rows are fetched when needed."""

    engine: EngineRows
    drawn: Table | None

    @classmethod
    def of(cls, engine: EngineRows, schema: Schema) -> "Hints":
        sample = engine.examples.seen
        if sample is None:
            return cls(engine, None)
        there = sample.labels.codes >= 0
        if sample.weights is not None:
            there &= sample.weights > 0.0
        return cls(engine, schema.table_as_learned(sample.table.take(np.flatnonzero(there))))

    def numbers(self, columns: Sequence[int], sql: Sequence[str]) -> Floats:
        """Return the numbers in some columns, row by column."""
        if self.drawn is not None:
            return np.asarray(self.drawn.numbers(columns), dtype=np.float64)
        found = np.full((MAX_HINTS, len(columns)), np.nan)
        for first in range(0, len(sql), MAX_AGGREGATES):
            some = sql[first : first + MAX_AGGREGATES]
            names = ", ".join(f"v{k}" for k in range(len(some)))
            answer = self.engine.rows.ask(f"SELECT {names} FROM {self.engine.cells(some)} LIMIT {MAX_HINTS}")
            for k, column in enumerate(answer.columns):
                found[: answer.num_rows, first + k] = as_floats(column)
        return found

    def together(self, columns: Sequence[int]) -> list[list[int]]:
        """Return the positions of discrete columns to ask about together; each is alone without a sample."""
        alone = [[place] for place in range(len(columns))]
        if self.drawn is None or not self.drawn.rows:
            return alone
        cells = self.drawn.values(columns)
        assert isinstance(cells, list), "cells of a stream have types"
        return bundle_columns(cells)


def round_mean(numbers: Floats) -> float:
    """Return a number of few digits near the mean; 0 without numbers."""
    there = numbers[np.isfinite(numbers)]
    if not there.size:
        return 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        found = float(round_to_deviation(np.array([there.mean()]), np.array([there.var()]))[0])
    return found if np.isfinite(found) else 0.0


def bundle_columns(cells: Sequence[pa.Array]) -> list[list[int]]:
    """Return the positions of columns, those with few values first, in bundles with few combinations."""
    codes = [encode_distinct(column, k) for k, column in enumerate(cells)]
    found: list[list[int]] = []
    held: Integers | None = None
    for place in sorted(range(len(cells)), key=lambda place: len(codes[place][1])):
        own = codes[place][0].astype(np.int64) + 1
        both = own if held is None else np.unique(held * (own.max() + 1) + own, return_inverse=True)[1].ravel()
        if held is not None and MIN_ALIKE * (both.max() + 1) <= own.size:
            found[-1].append(place)
            held = both
        else:
            found.append([place])
            held = own
    return found


def round_to_deviation(shift: Floats, variance: Floats) -> Floats:
    """Round `shift` to a sixteenth of the deviation: sums over integers are then exact."""
    known = (variance > 0.0) & np.isfinite(variance)
    unit = np.ldexp(1.0, np.floor(0.5 * np.log2(np.where(known, variance, 1.0)) - 3.0).astype(np.int64))
    return np.where(known, np.floor(shift / unit + 0.5) * unit, shift)
