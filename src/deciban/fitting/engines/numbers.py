"""What is asked of columns of numbers: ranges, totals and moments of each class.

Sums of squares are never of the cells themselves but of how far they are from a number near their mean: a guess from
some rows or, where that was far off in some class, the mean of that class, which the statement finds first.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from deciban.errors import BadCell
from deciban.families.base.contract import Family
from deciban.families.base.sql_questions import Number
from deciban.fitting.engines.asking import MOST_AGGREGATES, Classes, EngineRows, mean_of, minus
from deciban.fitting.engines.sums import Aggregate, Sums
from deciban.statistics import Moments, Totals
from deciban.statistics.exact import two_sum
from deciban.tables.table import Matrix
from deciban.util.arrays import Flags, Floats

# Deviations of a class between a guess and its mean beyond which the mean is found first: squares of numbers that are
# all far from zero lose digits, fewer where the engine follows their mean (var_pop) than where it adds them up.
FAR_FOLLOWED, FAR_ADDED = 16.0, 2.0

# The share of a sum that may be lost grows as the root of the number of rows: this is that of one row.
LOST = 2.0**-52


@dataclass(frozen=True)
class Wanted:
    """What is asked of numbers.

    ranges: columns whose least and greatest number is asked for, and whether one that is not whole is. moments, totals:
    numbers, the former with a guess of their means.
    """

    ranges: Mapping[int, bool] = field(default_factory=dict)
    moments: Mapping[Number, float] = field(default_factory=dict)
    totals: Sequence[Number] = ()

    def of(self, columns: Iterable[int]) -> "Wanted":
        """The same of some columns alone."""
        some = set(columns)
        return Wanted(
            {column: whole for column, whole in self.ranges.items() if column in some},
            {number: near for number, near in self.moments.items() if number.column in some},
            [number for number in self.totals if number.column in some],
        )


@dataclass(frozen=True)
class Numbers:
    """What was found of numbers, each by class.

    ranges: of each column the least and the greatest number and, where that was asked, one that is not whole. nan:
    columns that hold NaN. sums: of each number weight, and what tells mean and scatter. totals: weight and sum.
    """

    ranges: Mapping[int, Floats] = field(default_factory=dict)
    nan: frozenset[int] = frozenset()
    sums: Mapping[Number, Floats] = field(default_factory=dict)
    totals: Mapping[Number, Floats] = field(default_factory=dict)

    def __or__(self, other: "Numbers") -> "Numbers":
        """What is known of both; the other knows better."""
        return Numbers(
            {**self.ranges, **other.ranges}, self.nan, {**self.sums, **other.sums}, {**self.totals, **other.totals}
        )

    def constant(self, number: Number) -> Floats:
        """What a number is in each class where it is always the same; NaN elsewhere."""
        low, high = self.ranges[number.column][:2]
        return number.of(np.where(low == high, low, np.nan))

    def largest(self, column: int) -> float:
        """The largest size of the cells of a column; 0 without any."""
        return float(np.nan_to_num(np.abs(self.ranges[column])).max(initial=0.0))


def ask_numbers(
    asked: EngineRows, sql: Mapping[int, str], wanted: Wanted, classes: Classes | None
) -> tuple[Classes, Numbers]:
    """What is asked of columns, which are given as doubles; and the classes, if they are not known."""
    sums = Sums()
    ranges = {column: sums.add(sql[column], *_range(asked, whole)) for column, whole in wanted.ranges.items()}
    values = {number: number.sql(asked.dialect, sql[number.column]) for number in (*wanted.moments, *wanted.totals)}
    weights = {number: sums.add(values[number], asked.present) for number in wanted.moments}
    about = {
        number: sums.add(minus(asked, values[number], near), *_two(asked)) for number, near in wanted.moments.items()
    }
    totals = {number: sums.add(values[number], asked.present, asked.total) for number in wanted.totals}
    classes, found, broken = sums.ask(asked, classes)
    return classes, Numbers(
        {column: found[place] for column, place in ranges.items()},
        frozenset(column for column, place in ranges.items() if broken[place.start + 1]),
        {number: np.concatenate([found[weights[number]], found[place]]) for number, place in about.items()},
        {number: found[place] for number, place in totals.items()},
    )


def _range(asked: EngineRows, whole: bool) -> list[Aggregate]:
    """The least and the greatest number; and one that is not whole, if that matters."""
    ends: list[Aggregate] = ["min({})".format, "max({})".format]
    return [*ends, lambda v: f"min(CASE WHEN {asked.dialect.is_whole(v)} THEN NULL ELSE {v} END)"] if whole else ends


def _two(asked: EngineRows) -> list[Aggregate]:
    """Mean and variance; where rows have weights, sums of numbers and of squares."""
    if asked.weight is None:
        return ["avg({})".format, "var_pop({})".format]
    return [asked.total, lambda v: asked.total(asked.product(v, v))]


def moments_of(asked: EngineRows, wanted: Wanted, sql: Mapping[int, str], found: Numbers, classes: Classes) -> Moments:
    """The moments of all numbers; those whose guess was far off are asked for once more."""
    numbers, shape = list(wanted.moments), (classes.labels.size, len(wanted.moments))
    sums, constant = np.zeros((3, *shape)), np.zeros(shape)
    for k, number in enumerate(numbers):
        sums[:, :, k], constant[:, k] = found.sums[number], found.constant(number)
    array, far = _moments(asked, sums, np.array(list(wanted.moments.values())), classes)
    if (again := np.flatnonzero((far & np.isnan(constant)).any(axis=0))).size:
        values = [numbers[k].sql(asked.dialect, sql[numbers[k].column]) for k in again]
        array[:, :, again] = _moments_about_means(asked, values, classes)
    n, mean, low, scatter, error = _with_constants(array, constant)
    return Moments.of_values(n, (mean, low), scatter, error)


def _moments_about_means(asked: EngineRows, values: Sequence[str], classes: Classes) -> Floats:
    """The array of moments of values, whose means are found first."""
    size, parts = MOST_AGGREGATES // 4, []
    for first in range(0, len(values), size):
        some = values[first : first + size]
        named = [f"v{k}" for k in range(len(some))]
        aggregates = [one(v) for one in (asked.present, *_two(asked)) for v in named]
        aggregates += [f"max({mean_of(v)})" for v in named]
        answer, _ = asked.of_each_class(asked.about_means(some), aggregates, classes)
        sums = answer.reshape(4, len(some), -1).transpose(0, 2, 1)
        parts.append(_moments(asked, sums[:3], sums[3], classes)[0])
    return np.concatenate(parts, axis=2)


def _moments(asked: EngineRows, sums: Floats, near: Floats, classes: Classes) -> tuple[Floats, Flags]:
    """The array of moments, given sums about some numbers, and where these numbers were too far off."""
    n, first, second = np.nan_to_num(sums)
    there = n > 0.0
    if asked.weight is None:
        step, scatter = first, n * second
    else:
        step = np.divide(first, n, out=np.zeros_like(n), where=there)
        scatter = np.maximum(second - first * step, 0.0)
    mean = two_sum(np.broadcast_to(np.nan_to_num(near), n.shape), step)
    error = lost(n, classes) * (scatter + n * step**2)
    array = np.where(there, np.stack([n, *mean, scatter, error]), 0.0)
    most = FAR_FOLLOWED if asked.weight is None else FAR_ADDED
    return array, n * step**2 > most**2 * scatter


def _with_constants(array: Floats, constant: Floats) -> Floats:
    """The array of moments, in which numbers that are all the same have that for their mean, exactly."""
    same = ~np.isnan(constant) & (array[0] > 0.0)
    array[1:, same] = 0.0
    array[1, same] = constant[same]
    return array


def lost(n: Floats, classes: Classes) -> Floats:
    """The share by which a sum over rows of so much weight may be wrong."""
    return np.asarray(LOST * np.sqrt(np.clip(n, 1.0, max(classes.rows, 1))))


def totals_of(numbers: Sequence[Number], found: Numbers, classes: Classes) -> Totals:
    """The totals of numbers."""
    sums = np.zeros((2, classes.labels.size, len(numbers)))
    for k, number in enumerate(numbers):
        sums[:, :, k] = np.nan_to_num(found.totals[number])
    return Totals.of_values(*sums)


def reject_unusable(family: Family, found: Numbers, columns: Sequence[int]) -> None:
    """Raise a BadCell if a family cannot use a number that was found; SQL does not tell its row."""
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
