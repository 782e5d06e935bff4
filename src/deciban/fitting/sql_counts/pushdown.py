"""Count rows in an SQL engine: none of them leaves it, except for the cells of columns that SQL cannot count.

`count_in_engine` lets the family of each column group ask its questions, answers all of them in as few statements as
the engine takes (`CountingRun`), and makes the counts. Some of the rows show how to ask about all (`Hints`).
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

# Counts the rows of some columns under a schema of theirs, by reading them.
Read = Callable[[Schema, LabeledStream], Counts]


# The first rows that are looked at, if no sample was drawn.
MAX_HINTS = 1 << 14

# Discrete columns are asked for together if this many rows of a sample, on average, have the same cells in them.
MIN_ALIKE = 2


class Stopped(Exception):  # noqa: N818 - never leaves this module
    """An engine could not answer, because of what it found."""


def count_in_engine(schema: Schema, examples: LabeledStream, read: Read) -> Counts:
    """Return the counts of all rows under a schema, as reading them gives: discrete ones to the bit, moments to 1e-12.

    read: counts what SQL cannot.
    """
    try:
        classes, found = _ask(schema, examples, careful=False)
    except Stopped:  # perhaps by numbers that are more than the engine can add up
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
    looking: set[int] = set()  # column groups that read numbers, which they may reject
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
        asked, questions = EngineRows.of(replace(rows, ask=ask), examples, careful), Questions()
        columns = Columns.of(asked, schema)
        for place, group in enumerate(schema.groups):
            own = GroupQuestions(questions, columns)
            with suppress(NotInSql):
                if (later := group.family.count_in_sql(own, group.columns)) is not None:
                    made[place] = later
                    looking |= {place} if own.looks else set()
        run = CountingRun.of(asked, columns, questions, Hints.of(asked, schema))
        classes, questions.answers = run.answers(reject)
    return classes, {place: guard(place, later) for place, later in made.items()}


def _read(
    schema: Schema, places: Sequence[int], examples: LabeledStream, classes: Classes, read: Read
) -> dict[int, Any]:
    """Return the statistics of other column groups, from rows of their columns alone."""
    groups = tuple(schema.groups[place] for place in places)
    names = {schema.column_name(column) for group in groups for column in group.columns}
    what = (
        "this column is read, for SQL cannot count it" if len(names) == 1 else "columns are read that SQL cannot count"
    )
    warn_user((Argument("pushdown", True), f": {what}: {list_names(sorted(names))}"))
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
    """Questions, the rows that they are about, and hints. some: the numbers of some rows, by column."""

    asked: EngineRows
    columns: Columns
    questions: Questions
    hints: "Hints"
    some: Mapping[int, Floats]

    @classmethod
    def of(cls, asked: EngineRows, columns: Columns, questions: Questions, hints: "Hints") -> "CountingRun":
        asked_for = (*questions.moments.items, *questions.bins.items, *chain(*questions.scatters.items))
        places = sorted({number.column for number in asked_for})
        some = hints.numbers(places, [columns.numbers[place] for place in places])
        return cls(asked, columns, questions, hints, dict(zip(places, some.T, strict=True)))

    def answers(self, reject: Callable[[Numbers], None]) -> tuple[Classes, Answers]:
        """Return the classes, and all answers.

        reject: raises an error if numbers that were found cannot be used. If one has to be careful, it is called before
        they are added up.
        """
        wanted = Wanted(
            self.questions.numbers, self._guesses(self.questions.moments.items), self.questions.totals.items
        )
        sql = {column: self.columns.numbers[column] for column in wanted.ranges}
        if self.asked.careful:
            sql = {column: self._known(column) for column in sql}
            classes, found = ask_numbers(self.asked, sql, Wanted(wanted.ranges), self.asked.classes())
            reject(found)
            found |= ask_numbers(self.asked, sql, Wanted({}, wanted.moments, wanted.totals), classes)[1]
        else:
            classes, found = ask_numbers(self.asked, sql, wanted, None)
            if found.nan:
                sql |= {column: self._known(column) for column in found.nan}
                found |= ask_numbers(self.asked, sql, wanted.of(found.nan), classes)[1]
            reject(found)
        return classes, Answers(
            make_moments(self.asked, wanted, sql, found, classes),
            make_totals(wanted.totals, found, classes),
            [self._scatter(block, sql, found, classes) for block in self.questions.scatters.items],
            *self._groups(sql, found, classes),
        )

    def _known(self, column: int) -> str:
        """A column of numbers, NULL where they are NaN."""
        sql = self.columns.numbers[column]
        return self.asked.dialect.not_nan(sql) if column in self.columns.floating else sql

    def _guesses(self, numbers: Iterable[Number]) -> dict[Number, float]:
        return {number: round_mean(number.of(self.some[number.column])) for number in numbers}

    def _sql(self, numbers: Iterable[Number], sql: Mapping[int, str]) -> list[str]:
        return [number.sql(self.asked.dialect, sql[number.column]) for number in numbers]

    def _scatter(self, block: Sequence[Number], sql: Mapping[int, str], found: Numbers, classes: Classes) -> Scatter:
        near, constant = list(self._guesses(block).values()), [found.constant(number) for number in block]
        return ask_scatter(self.asked, self._sql(block, sql), np.array(near), np.array(constant).T, classes)

    def _groups(
        self, sql: Mapping[int, str], found: Numbers, classes: Classes
    ) -> tuple[list[ColumnBins], list[DistinctRows], list[DistinctRows]]:
        """Bins of numbers, levels of columns, and tuples."""
        bins, tuples = self.questions.bins.items, self.questions.tuples.items
        groupings = [Grouping.of(self.some[one.column], found.largest(one.column)) for one in bins]
        levels = [column for column in self.questions.levels.items if column not in self.columns.absent]
        bundles = [[levels[place] for place in together] for together in self.hints.together(levels)]
        sets: list[Keys] = [
            *(one.key(self.asked.dialect, v) for one, v in zip(groupings, self._sql(bins, sql), strict=True)),
            *(tuple(self.columns.values[column] for column in bundle) for bundle in bundles),
            *(tuple(self._member(one, sql) for one in members) for members in tuples),
        ]
        answers = iter(ask_groups(self.asked, sets, classes))
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
    """Some rows that are counted. drawn: those of a sample; without, the first ones are asked for where needed."""

    asked: EngineRows
    drawn: Table | None

    @classmethod
    def of(cls, asked: EngineRows, schema: Schema) -> "Hints":
        sample = asked.examples.seen
        if sample is None:
            return cls(asked, None)
        there = sample.labels.codes >= 0
        if sample.weights is not None:
            there &= sample.weights > 0.0
        return cls(asked, schema.table_as_learned(sample.table.take(np.flatnonzero(there))))

    def numbers(self, columns: Sequence[int], sql: Sequence[str]) -> Floats:
        """The numbers in some columns, row by column."""
        if self.drawn is not None:
            return np.asarray(self.drawn.numbers(columns), dtype=np.float64)
        found = np.full((MAX_HINTS, len(columns)), np.nan)
        for first in range(0, len(sql), MAX_AGGREGATES):
            some = sql[first : first + MAX_AGGREGATES]
            names = ", ".join(f"v{k}" for k in range(len(some)))
            answer = self.asked.rows.ask(f"SELECT {names} FROM {self.asked.cells(some)} LIMIT {MAX_HINTS}")
            for k, column in enumerate(answer.columns):
                found[: answer.num_rows, first + k] = as_floats(column)
        return found

    def together(self, columns: Sequence[int]) -> list[list[int]]:
        """Places of discrete columns that are asked for together; each is alone where nothing is known."""
        alone = [[place] for place in range(len(columns))]
        if self.drawn is None or not self.drawn.rows:
            return alone
        cells = self.drawn.values(columns)
        assert isinstance(cells, list), "cells of a stream have types"
        return bundle_columns(cells)


def round_mean(numbers: Floats) -> float:
    """A number of few digits near the mean; 0 where there is none."""
    there = numbers[np.isfinite(numbers)]
    if not there.size:
        return 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        found = float(round_to_deviation(np.array([there.mean()]), np.array([there.var()]))[0])
    return found if np.isfinite(found) else 0.0


def bundle_columns(cells: Sequence[pa.Array]) -> list[list[int]]:
    """Places of columns, those of few values first, in bundles that have few combinations of values."""
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
    """`shift` to a sixteenth of the deviation: then sums over whole numbers are exact."""
    known = (variance > 0.0) & np.isfinite(variance)
    unit = np.ldexp(1.0, np.floor(0.5 * np.log2(np.where(known, variance, 1.0)) - 3.0).astype(np.int64))
    return np.where(known, np.floor(shift / unit + 0.5) * unit, shift)
