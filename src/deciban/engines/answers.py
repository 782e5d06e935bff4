"""From questions to answers, in as few statements as an engine takes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from deciban.arrays import Floats
from deciban.engines.asking import Asked, Classes
from deciban.engines.bins import bin_keys, binned_column, finest_exponent
from deciban.engines.columns import Columns
from deciban.engines.groups import NO_GROUPS, Groups, Keys, ask_groups
from deciban.engines.hints import Hints, near_mean
from deciban.engines.numbers import Guess, ask_fractions, ask_moments, ask_ranges, ask_totals
from deciban.engines.questions import Answers, Interval, Number, Questions
from deciban.engines.scatters import ask_scatter
from deciban.statistics.bins import Column


@dataclass(frozen=True)
class Seen:
    """Columns of numbers after a first look: their cells in SQL, NULL where they are NaN; of each class the least and
    the greatest number, and one that is not whole, where that matters."""

    sql: Mapping[int, str]
    low: Mapping[int, Floats]
    high: Mapping[int, Floats]
    fraction: Mapping[int, Floats]

    @classmethod
    def of(cls, asked: Asked, columns: Columns, numbers: Mapping[int, bool], classes: Classes) -> "Seen":
        """numbers: the columns, and whether it matters that they are whole."""
        sql = {column: columns.numbers[column] for column in numbers}
        low, high = _ranges(asked, sql, classes)
        unsure = [column for column in columns.floating if np.isnan(high.get(column, 0.0)).any()]
        sql.update({column: asked.engine.known(sql[column]) for column in unsure})
        more_low, more_high = _ranges(asked, {column: sql[column] for column in unsure}, classes)
        broken = [column for column, whole in numbers.items() if whole]
        fractions = ask_fractions(asked, [sql[column] for column in broken], classes)
        return cls(sql, low | more_low, high | more_high, dict(zip(broken, fractions.T, strict=True)))

    def witnesses(self, columns: Sequence[int]) -> Floats:
        """Cells of columns that show whether all can be used, row by column."""
        nothing = np.full_like(self.low[columns[0]], np.nan)
        shown = [(self.low[c], self.high[c], self.fraction.get(c, nothing)) for c in columns]
        return np.array(shown).reshape(len(columns), -1).T

    def largest(self, column: int) -> float:
        """The largest size of a number; 0 without any."""
        return float(np.nan_to_num(np.abs([self.low[column], self.high[column]])).max(initial=0.0))

    def constant(self, number: Number) -> Floats:
        """What a number is in each class where it is always the same; NaN elsewhere."""
        low = self.low[number.column]
        return number.of(np.where(low == self.high[number.column], low, np.nan))


def _ranges(asked: Asked, sql: Mapping[int, str], classes: Classes) -> tuple[dict[int, Floats], dict[int, Floats]]:
    low, high = ask_ranges(asked, list(sql.values()), classes)
    return dict(zip(sql, low.T, strict=True)), dict(zip(sql, high.T, strict=True))


@dataclass(frozen=True)
class Guessing:
    """Numbers in SQL, and what some rows, by column, tell of them before all are asked about."""

    asked: Asked
    classes: int
    seen: Seen
    some: Mapping[int, Floats]

    @classmethod
    def of(cls, asked: Asked, classes: Classes, seen: Seen, questions: Questions, hints: Hints) -> "Guessing":
        asked_for = (*questions.moments.items, *questions.bins.items, *chain(*questions.scatters.items))
        columns = sorted({number.column for number in asked_for})
        some = hints.numbers(columns, [seen.sql[column] for column in columns])
        return cls(asked, classes.labels.size, seen, dict(zip(columns, some.T, strict=True)))

    def sql(self, numbers: Iterable[Number]) -> list[str]:
        return [number.sql(self.asked.engine, self.seen.sql[number.column]) for number in numbers]

    def guess(self, numbers: Sequence[Number]) -> Guess:
        near, constant = np.zeros(len(numbers)), np.zeros((self.classes, len(numbers)))
        for k, number in enumerate(numbers):
            near[k] = near_mean(number.of(self.some[number.column]))
            constant[:, k] = self.seen.constant(number)
        return Guess(near, constant)

    def exponents(self, numbers: Sequence[Number]) -> list[int]:
        """How fine the bins of numbers are asked for."""
        return [finest_exponent(self.some[one.column], self.seen.largest(one.column)) for one in numbers]


def ask_all(
    asked: Asked, columns: Columns, seen: Seen, questions: Questions, hints: Hints, classes: Classes
) -> Answers:
    """What is asked of numbers, all of which can be used, and of values."""
    numbers = Guessing.of(asked, classes, seen, questions, hints)
    moments, totals, blocks = (one.items for one in (questions.moments, questions.totals, questions.scatters))
    return Answers(
        classes.labels.size,
        ask_moments(asked, numbers.sql(moments), numbers.guess(moments), classes),
        ask_totals(asked, numbers.sql(totals), classes),
        [ask_scatter(asked, numbers.sql(block), numbers.guess(block), classes) for block in blocks],
        *_ask_groups(asked, columns, numbers, questions, hints, classes),
    )


def _ask_groups(
    asked: Asked, columns: Columns, numbers: Guessing, questions: Questions, hints: Hints, classes: Classes
) -> tuple[list[Column], list[Groups], list[Groups]]:
    """Bins of numbers, levels of columns, and tuples."""
    bins, tuples = questions.bins.items, questions.tuples.items
    exponents = numbers.exponents(bins)
    levels = [column for column in questions.levels.items if column not in columns.absent]
    bundles = [[levels[place] for place in together] for together in hints.together(levels)]
    sets: list[Keys] = [
        *bin_keys(asked.engine, numbers.sql(bins), exponents),
        *(tuple(columns.values[column] for column in bundle) for bundle in bundles),
        *(tuple(_member(one, columns, numbers) for one in members) for members in tuples),
    ]
    found = iter(ask_groups(asked, sets, classes))
    binned = [binned_column(exponent, next(found), classes) for exponent in exponents]
    by_column = {column: one for bundle in bundles for column, one in zip(bundle, next(found).apart(), strict=True)}
    return binned, [by_column.get(column, NO_GROUPS) for column in questions.levels.items], list(found)


def _member(member: int | Interval, columns: Columns, numbers: Guessing) -> str:
    return numbers.sql([member])[0] if isinstance(member, Interval) else columns.values[member]
