"""Questions of all column groups about rows in an SQL engine; each is asked once, even if several groups need it.

`Columns` has the cells as SQL expressions. `GroupQuestions` is the interface of the families
(`families.base.sql_questions`).
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np
import pyarrow as pa

from deciban.families.base.sql_questions import DistinctRows, Number
from deciban.fitting.sql_counts.statements import EngineRows
from deciban.schema.schema import Schema
from deciban.statistics import Bins, Moments, Scatter, Totals
from deciban.statistics.bins import ColumnBins
from deciban.tables.cells import fits, plain_type
from deciban.tables.table import Frame

Item = TypeVar("Item", bound=Hashable)


@dataclass(frozen=True)
class Columns:
    """SQL expressions for the cells of columns, by position in the schema.

    numbers: as doubles, for columns of numbers. values: as they are. floating: columns that may contain NaN. absent:
    columns that the rows do not have, whose cells are all missing.
    """

    numbers: Mapping[int, str]
    values: Mapping[int, str]
    floating: frozenset[int]
    absent: frozenset[int]

    @classmethod
    def of(cls, engine: EngineRows, schema: Schema) -> "Columns":
        """Return the expressions for the columns of a schema.

        Raise a SchemaError, or a UsageError of a family, if reading an empty table of such columns raises one. Columns
        of another type than the learned one are left out: reading converts or rejects them.
        """
        here = {
            name: column
            for name, column in engine.rows.columns.items()
            if name not in (engine.examples.target, engine.examples.weight)
        }
        nothing = {name: pa.array([], column.type) for name, column in here.items()}
        table = schema.table_as_learned(Frame(pa.table(nothing)))
        for group in schema.groups:
            group.family.read(table, group.columns)
        missing = engine.dialect.as_double("NULL")
        numbers, values, floating, absent = {}, {}, set(), set()
        for place, name in enumerate(schema.names or here):  # by position if they were learned without names
            if name not in here:
                absent.add(place)
                numbers[place] = values[place] = missing
                continue
            column = here[name]
            if schema.types is not None and not fits(str(plain_type(column.type)), schema.types[place]):
                continue
            if (number := engine.dialect.as_number(column.sql, column.type)) is not None:
                numbers[place] = number
            if (value := engine.dialect.as_value(column.sql, column.type)) is not None:
                values[place] = value
            if pa.types.is_floating(column.type):
                floating.add(place)
        return cls(numbers, values, frozenset(floating), frozenset(absent))


class Listed(Generic[Item]):
    """Distinct items in the order in which they were added."""

    def __init__(self) -> None:
        self._places: dict[Item, int] = {}

    def place(self, item: Item) -> int:
        """Return the position of an item, which is added if it is new."""
        return self._places.setdefault(item, len(self._places))

    @property
    def items(self) -> list[Item]:
        return list(self._places)


@dataclass
class Questions:
    """All questions to ask.

    numbers: columns of numbers; True if it matters that these are integers. levels: columns. tuples: columns taken
    together, as values or as numbers. answers: known after asking.
    """

    numbers: dict[int, bool] = field(default_factory=dict)
    moments: Listed[Number] = field(default_factory=Listed)
    totals: Listed[Number] = field(default_factory=Listed)
    bins: Listed[Number] = field(default_factory=Listed)
    scatters: Listed[tuple[Number, ...]] = field(default_factory=Listed)
    levels: Listed[int] = field(default_factory=Listed)
    tuples: Listed[tuple[int | Number, ...]] = field(default_factory=Listed)
    answers: "Answers | None" = None


@dataclass(frozen=True)
class Answers:
    """Answers, in the order of the questions."""

    moments: Moments
    totals: Totals
    scatters: list[Scatter]
    bins: list[ColumnBins]
    levels: list[DistinctRows]
    tuples: list[DistinctRows]


class NotInSql(Exception):  # noqa: N818 - never leaves this package
    """SQL cannot express the numbers or values of a column."""


class GroupQuestions:
    """Questions of one column group, asked by its family (`families.base.sql_questions.SqlQuestions`).

    looks: True if the family reads numbers, which it may reject.
    """

    def __init__(self, asked: Questions, known: Columns) -> None:
        self._asked, self._known = asked, known
        self.looks = False

    def moments(self, numbers: Sequence[Number]) -> Callable[[], Moments]:
        places = self._places(self._asked.moments, numbers)
        return lambda: self._answers.moments.take_columns(places)

    def totals(self, numbers: Sequence[Number], whole: bool = False) -> Callable[[], Totals]:
        places = self._places(self._asked.totals, numbers)
        if whole:
            self._asked.numbers.update(dict.fromkeys((number.column for number in numbers), True))
        return lambda: self._answers.totals.take_columns(places)

    def bins(self, numbers: Sequence[Number]) -> Callable[[], Bins]:
        places = self._places(self._asked.bins, numbers)
        return lambda: Bins(tuple(self._answers.bins[place] for place in places))

    def scatter(self, numbers: Sequence[Number]) -> Callable[[], Scatter]:
        self._read(numbers)
        place = self._asked.scatters.place(tuple(numbers))
        return lambda: self._answers.scatters[place]

    def values(self, columns: Sequence[int]) -> Callable[[], list[DistinctRows]]:
        self._check(self._known.values.keys() >= set(columns))
        places = [self._asked.levels.place(column) for column in columns]
        return lambda: [self._answers.levels[place] for place in places]

    def tuples(self, members: Sequence[int | Number]) -> Callable[[], DistinctRows]:
        numbers = [member.column for member in members if isinstance(member, Number)]
        columns = [member.column if isinstance(member, Number) else member for member in members]
        self._check(self._known.numbers.keys() >= set(numbers) and self._known.values.keys() >= set(columns))
        for column in numbers:
            self._asked.numbers.setdefault(column, False)
        place = self._asked.tuples.place(tuple(members))
        return lambda: self._answers.tuples[place]

    def _places(self, listed: Listed[Number], numbers: Sequence[Number]) -> Any:
        self._read(numbers)
        return np.array([listed.place(number) for number in numbers], dtype=np.int64)

    def _read(self, numbers: Sequence[Number]) -> None:
        """Note that the range of these columns is needed."""
        self._check(all(number.column in self._known.numbers for number in numbers))
        self.looks = True
        for number in numbers:
            self._asked.numbers.setdefault(number.column, False)

    def _check(self, possible: bool) -> None:
        if not possible:
            raise NotInSql

    @property
    def _answers(self) -> Answers:
        assert self._asked.answers is not None, "questions are answered before statistics are made"
        return self._asked.answers
