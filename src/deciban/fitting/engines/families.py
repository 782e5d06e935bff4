"""What each family asks of an engine, and the statistic that it makes of the answers.

A family that is not named here is counted from rows that are read.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from deciban.errors import BadCell
from deciban.families import (
    Bernoulli,
    Binned,
    Categorical,
    Complement,
    Family,
    Gamma,
    Gaussian,
    JointGaussian,
    JointTable,
    LogNormal,
    Multinomial,
    Poisson,
)
from deciban.fitting.engines.columns import Columns as SqlCells
from deciban.fitting.engines.numbers import Numbers
from deciban.fitting.engines.questions import (
    Amount,
    Answers,
    Event,
    Flag,
    Interval,
    Logarithm,
    Number,
    Positive,
    Questions,
)
from deciban.statistics import Bins, Combined, Levels, Moments, Scatter, Totals, Tuples
from deciban.tables.table import Matrix

Columns = Sequence[int]
Made = Callable[[Answers], Any]
Counted = Callable[[Any, Columns, Questions], Made]


def _moments(numbers: Sequence[Number], ask: Questions) -> Callable[[Answers], Moments]:
    places = np.array([ask.moments.place(number) for number in numbers], dtype=np.int64)
    return lambda found: found.moments.of_columns(places)


def _totals(numbers: Sequence[Number], ask: Questions) -> Callable[[Answers], Totals]:
    places = np.array([ask.totals.place(number) for number in numbers], dtype=np.int64)
    return lambda found: found.totals.of_columns(places)


def _gaussian(family: Gaussian, columns: Columns, ask: Questions) -> Made:
    return _moments([Number(column) for column in columns], ask)


def _log_normal(family: LogNormal, columns: Columns, ask: Questions) -> Made:
    return _moments([Logarithm(column) for column in columns], ask)


def _gamma(family: Gamma, columns: Columns, ask: Questions) -> Made:
    plain = _moments([Positive(column) for column in columns], ask)
    logs = _moments([Logarithm(column) for column in columns], ask)
    return lambda found: Combined((plain(found), logs(found)))


def _binned(family: Binned, columns: Columns, ask: Questions) -> Made:
    moments = _moments([Number(column) for column in columns], ask)
    places = [ask.bins.place(Number(column)) for column in columns]
    return lambda found: Combined((moments(found), Bins(tuple(found.bins[place] for place in places))))


def _joint_gaussian(family: JointGaussian, columns: Columns, ask: Questions) -> Callable[[Answers], Scatter]:
    place = ask.scatters.place(tuple(Number(column) for column in columns))
    return lambda found: found.scatters[place]


def _bernoulli(family: Bernoulli, columns: Columns, ask: Questions) -> Made:
    if family.threshold is None:
        ask.numbers.update(dict.fromkeys(columns, True))
    return _totals([Flag(column, family.cut) for column in columns], ask)


def _poisson(family: Poisson, columns: Columns, ask: Questions) -> Made:
    ask.numbers.update(dict.fromkeys(columns, True))
    return _totals([Event(column) for column in columns], ask)


def _amounts(family: Multinomial | Complement, columns: Columns, ask: Questions) -> Made:
    return _totals([Amount(column) for column in columns], ask)


def _categorical(family: Categorical, columns: Columns, ask: Questions) -> Callable[[Answers], Levels]:
    places = [ask.levels.place(column) for column in columns]

    def made(found: Answers) -> Levels:
        parts = [_levels(family, k, found, place) for k, place in enumerate(places)]
        return Levels(tuple(part.levels[0] for part in parts), tuple(part.tables[0] for part in parts))

    return made


def _levels(family: Categorical, column: int, found: Answers, place: int) -> Levels:
    """The levels of one column, which the family may refuse."""
    groups = found.levels[place]
    try:
        return family.count(groups.cells, groups.codes, groups.weights, found.classes)
    except BadCell as bad:
        bad.column = column
        raise


def _joint_table(family: JointTable, columns: Columns, ask: Questions) -> Callable[[Answers], Tuples]:
    cuts = family.cuts or (None,) * len(columns)
    pairs = zip(columns, cuts, strict=True)
    place = ask.tuples.place(tuple(column if cut is None else Interval(column, cut) for column, cut in pairs))

    def made(found: Answers) -> Tuples:
        groups = found.tuples[place]
        return family.count(groups.cells, groups.codes, groups.weights, found.classes)

    return made


# Families of numbers, which are looked at before they are counted; and families of values.
OF_NUMBERS: dict[type[Any], Counted] = {
    Gaussian: _gaussian,
    LogNormal: _log_normal,
    Gamma: _gamma,
    Binned: _binned,
    JointGaussian: _joint_gaussian,
    Bernoulli: _bernoulli,
    Poisson: _poisson,
    Multinomial: _amounts,
    Complement: _amounts,
}
OF_VALUES: dict[type[Any], Counted] = {Categorical: _categorical, JointTable: _joint_table}


def question_of(family: Family, columns: Columns, known: SqlCells, ask: Questions) -> Made | None:
    """What makes the statistic of a column group, after its questions are entered; None where SQL cannot count it."""
    of_numbers = type(family) in OF_NUMBERS
    counted = OF_NUMBERS.get(type(family)) or OF_VALUES.get(type(family))
    numbers = columns if of_numbers else _cut_columns(family, columns)
    if (
        counted is None
        or not known.numbers.keys() >= set(numbers)
        or not (of_numbers or known.values.keys() >= set(columns))
    ):
        return None
    for column in numbers:
        ask.numbers.setdefault(column, False)
    return counted(family, columns, ask)


def _cut_columns(family: Family, columns: Columns) -> list[int]:
    """The columns that are cut into intervals."""
    cuts = family.cuts if isinstance(family, JointTable) and family.cuts is not None else ()
    return [column for column, cut in zip(columns, cuts, strict=False) if cut is not None]


def refuse_unusable(family: Family, found: Numbers, columns: Columns) -> None:
    """A BadCell where a family of numbers cannot use a cell that was found; nobody can tell its row."""
    if type(family) not in OF_NUMBERS:
        return
    witnesses = np.full((max(found.ranges[column].size for column in columns), len(columns)), np.nan)
    for k, column in enumerate(columns):
        cells = found.ranges[column].ravel()
        witnesses[: cells.size, k] = cells
    rows = len(witnesses)
    try:
        cells = family.read(Matrix(witnesses), range(witnesses.shape[1]))
        family.count(cells, np.zeros(rows, dtype=np.int32), np.ones(rows), 1)
    except BadCell as bad:
        bad.row = None
        raise
