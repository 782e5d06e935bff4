"""From questions to answers, in as few statements as an engine takes."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pyarrow as pa

from deciban.families.base.sql_questions import DistinctRows, Number
from deciban.fitting.engines.asking import Classes, EngineRows
from deciban.fitting.engines.bins import Grouping
from deciban.fitting.engines.columns import Columns
from deciban.fitting.engines.groups import Keys, ask_groups
from deciban.fitting.engines.hints import Hints, near_mean
from deciban.fitting.engines.numbers import Numbers, Wanted, ask_numbers, moments_of, totals_of
from deciban.fitting.engines.questions import Answers, Questions
from deciban.fitting.engines.scatters import ask_scatter
from deciban.statistics import Scatter
from deciban.statistics.bins import Column
from deciban.util.arrays import Floats


@dataclass(frozen=True)
class CountingRun:
    """What is asked, of whom, and what is known before. some: the numbers of some rows, by column."""

    asked: EngineRows
    columns: Columns
    questions: Questions
    hints: Hints
    some: Mapping[int, Floats]

    @classmethod
    def of(cls, asked: EngineRows, columns: Columns, questions: Questions, hints: Hints) -> "CountingRun":
        asked_for = (*questions.moments.items, *questions.bins.items, *chain(*questions.scatters.items))
        places = sorted({number.column for number in asked_for})
        some = hints.numbers(places, [columns.numbers[place] for place in places])
        return cls(asked, columns, questions, hints, dict(zip(places, some.T, strict=True)))

    def answers(self, refuse: Callable[[Numbers], None]) -> tuple[Classes, Answers]:
        """The classes, and all answers; `refuse` raises an error where cells that were found cannot be used: before
        they are added up, if one has to be careful."""
        wanted = Wanted(
            self.questions.numbers, self._guesses(self.questions.moments.items), self.questions.totals.items
        )
        sql = {column: self.columns.numbers[column] for column in wanted.ranges}
        if self.asked.careful:
            sql = {column: self._known(column) for column in sql}
            classes, found = ask_numbers(self.asked, sql, Wanted(wanted.ranges), self.asked.classes())
            refuse(found)
            found |= ask_numbers(self.asked, sql, Wanted({}, wanted.moments, wanted.totals), classes)[1]
        else:
            classes, found = ask_numbers(self.asked, sql, wanted, None)
            if found.nan:
                sql |= {column: self._known(column) for column in found.nan}
                found |= ask_numbers(self.asked, sql, wanted.of(found.nan), classes)[1]
            refuse(found)
        return classes, Answers(
            moments_of(self.asked, wanted, sql, found, classes),
            totals_of(wanted.totals, found, classes),
            [self._scatter(block, sql, found, classes) for block in self.questions.scatters.items],
            *self._groups(sql, found, classes),
        )

    def _known(self, column: int) -> str:
        """A column of numbers, NULL where they are NaN."""
        sql = self.columns.numbers[column]
        return self.asked.dialect.not_nan(sql) if column in self.columns.floating else sql

    def _guesses(self, numbers: Iterable[Number]) -> dict[Number, float]:
        return {number: near_mean(number.of(self.some[number.column])) for number in numbers}

    def _sql(self, numbers: Iterable[Number], sql: Mapping[int, str]) -> list[str]:
        return [number.sql(self.asked.dialect, sql[number.column]) for number in numbers]

    def _scatter(self, block: Sequence[Number], sql: Mapping[int, str], found: Numbers, classes: Classes) -> Scatter:
        near, constant = list(self._guesses(block).values()), [found.constant(number) for number in block]
        return ask_scatter(self.asked, self._sql(block, sql), np.array(near), np.array(constant).T, classes)

    def _groups(
        self, sql: Mapping[int, str], found: Numbers, classes: Classes
    ) -> tuple[list[Column], list[DistinctRows], list[DistinctRows]]:
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
