"""Moments, totals, scatter matrices and bins of numbers by class, from the answers to SQL statements.

Squares are never summed over the cells themselves, but over their distances from a number near the mean: a guess from
some rows or, if that was far off in some class, the mean of that class, which the statement computes first.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from deciban.errors import BadCell
from deciban.families.base.contract import Family
from deciban.families.base.sql_questions import DistinctRows, Number
from deciban.fitting.sql_counts.statements import (
    MAX_AGGREGATES,
    Aggregate,
    Classes,
    EngineRows,
    Keys,
    Sums,
    as_floats,
    name_mean,
    write_difference,
)
from deciban.sources.dialects import Dialect
from deciban.statistics import Bins, Moments, Scatter, Totals
from deciban.statistics.bins import ColumnBins, find_edges
from deciban.statistics.exact import two_sum
from deciban.tables.table import Matrix
from deciban.util.arrays import Flags, Floats

# Distance between guess and class mean, in deviations, beyond which the mean is computed first: squares of numbers far
# from zero lose digits. This limit holds if the engine tracks the mean (var_pop).
MAX_DISTANCE_TRACKED = 16.0

# The same limit if squares are summed.
MAX_DISTANCE_SUMMED = 2.0

# Relative error of a sum of one row; it grows as the square root of the number of rows.
ROW_ERROR = 2.0**-52

# Numbers beyond 2 to this power, in bin widths, are bin edges themselves: doubles have 52 bits of fraction.
MAX_WHOLE_BITS = 52


@dataclass(frozen=True)
class Wanted:
    """Questions about numbers.

    ranges: columns whose minimum and maximum is needed; True if a number that is not an integer is needed too. moments:
    numbers with a guess of their means. totals: numbers.
    """

    ranges: Mapping[int, bool] = field(default_factory=dict)
    moments: Mapping[Number, float] = field(default_factory=dict)
    totals: Sequence[Number] = ()

    def of(self, columns: Iterable[int]) -> "Wanted":
        """Return the questions about some columns only."""
        some = set(columns)
        return Wanted(
            {column: whole for column, whole in self.ranges.items() if column in some},
            {number: near for number, near in self.moments.items() if number.column in some},
            [number for number in self.totals if number.column in some],
        )


@dataclass(frozen=True)
class Numbers:
    """Answers about numbers, each by class.

    ranges: of each column the least and the greatest number and, where that was engine, one that is not whole. nan:
    columns with NaN. sums: of each number the weight, and mean and variance, or with weights the sums of it and of its
    square. totals: weight and sum.
    """

    ranges: Mapping[int, Floats] = field(default_factory=dict)
    nan: frozenset[int] = frozenset()
    sums: Mapping[Number, Floats] = field(default_factory=dict)
    totals: Mapping[Number, Floats] = field(default_factory=dict)

    def __or__(self, other: "Numbers") -> "Numbers":
        """Return the answers of both; those of the other count where both have one."""
        return Numbers(
            {**self.ranges, **other.ranges}, self.nan, {**self.sums, **other.sums}, {**self.totals, **other.totals}
        )

    def constant(self, number: Number) -> Floats:
        """Return the value of a number in each class where it is always the same; NaN elsewhere."""
        low, high = self.ranges[number.column][:2]
        return number.of(np.where(low == high, low, np.nan))

    def largest(self, column: int) -> float:
        """Return the largest absolute value of the cells of a column; 0 without any."""
        return float(np.nan_to_num(np.abs(self.ranges[column])).max(initial=0.0))


def ask_numbers(
    engine: EngineRows, sql: Mapping[int, str], wanted: Wanted, classes: Classes | None
) -> tuple[Classes, Numbers]:
    """Ask about columns, given as doubles, and about the classes if these are not known."""
    sums = Sums()
    ranges = {column: sums.add(sql[column], *_range(engine, whole)) for column, whole in wanted.ranges.items()}
    values = {number: number.sql(engine.dialect, sql[number.column]) for number in (*wanted.moments, *wanted.totals)}
    weights = {number: sums.add(values[number], engine.present) for number in wanted.moments}
    about = {
        number: sums.add(write_difference(engine, values[number], near), *_write_two_sums(engine))
        for number, near in wanted.moments.items()
    }
    totals = {number: sums.add(values[number], engine.present, engine.total) for number in wanted.totals}
    classes, found, broken = sums.ask(engine, classes)
    return classes, Numbers(
        {column: found[place] for column, place in ranges.items()},
        frozenset(column for column, place in ranges.items() if broken[place.start + 1]),
        {number: np.concatenate([found[weights[number]], found[place]]) for number, place in about.items()},
        {number: found[place] for number, place in totals.items()},
    )


def _range(engine: EngineRows, whole: bool) -> list[Aggregate]:
    """Return aggregates for the minimum and maximum, and for a number that is not an integer if that matters."""
    ends: list[Aggregate] = ["min({})".format, "max({})".format]
    return [*ends, lambda v: f"min(CASE WHEN {engine.dialect.is_whole(v)} THEN NULL ELSE {v} END)"] if whole else ends


def _write_two_sums(engine: EngineRows) -> list[Aggregate]:
    """Return aggregates for mean and variance; with row weights, for sums of numbers and of squares."""
    if engine.weight is None:
        return ["avg({})".format, "var_pop({})".format]
    return [engine.total, lambda v: engine.total(engine.product(v, v))]


def make_moments(
    engine: EngineRows, wanted: Wanted, sql: Mapping[int, str], found: Numbers, classes: Classes
) -> Moments:
    """Return the moments of all numbers; those with a poor guess are asked for again."""
    numbers, shape = list(wanted.moments), (classes.labels.size, len(wanted.moments))
    sums, constant = np.zeros((3, *shape)), np.zeros(shape)
    for k, number in enumerate(numbers):
        sums[:, :, k], constant[:, k] = found.sums[number], found.constant(number)
    array, far = _moments(engine, sums, np.array(list(wanted.moments.values())), classes)
    if (again := np.flatnonzero((far & np.isnan(constant)).any(axis=0))).size:
        values = [numbers[k].sql(engine.dialect, sql[numbers[k].column]) for k in again]
        array[:, :, again] = _moments_about_means(engine, values, classes)
    n, mean, low, scatter, error = _with_constants(array, constant)
    return Moments.from_values(n, (mean, low), scatter, error)


def _moments_about_means(engine: EngineRows, values: Sequence[str], classes: Classes) -> Floats:
    """Return the array of moments of values, whose means are computed first."""
    size, parts = MAX_AGGREGATES // 4, []
    for first in range(0, len(values), size):
        some = values[first : first + size]
        named = [f"v{k}" for k in range(len(some))]
        aggregates = [one(v) for one in (engine.present, *_write_two_sums(engine)) for v in named]
        aggregates += [f"max({name_mean(v)})" for v in named]
        answer, _ = engine.of_each_class(engine.about_means(some), aggregates, classes)
        sums = answer.reshape(4, len(some), -1).transpose(0, 2, 1)
        parts.append(_moments(engine, sums[:3], sums[3], classes)[0])
    return np.concatenate(parts, axis=2)


def _moments(engine: EngineRows, sums: Floats, near: Floats, classes: Classes) -> tuple[Floats, Flags]:
    """Return the array of moments from sums about some numbers, and where these numbers were too far off."""
    n, first, second = np.nan_to_num(sums)
    there = n > 0.0
    if engine.weight is None:
        step, scatter = first, n * second
    else:
        step = np.divide(first, n, out=np.zeros_like(n), where=there)
        scatter = np.maximum(second - first * step, 0.0)
    mean = two_sum(np.broadcast_to(np.nan_to_num(near), n.shape), step)
    error = estimate_error(n, classes) * (scatter + n * step**2)
    array = np.where(there, np.stack([n, *mean, scatter, error]), 0.0)
    most = MAX_DISTANCE_TRACKED if engine.weight is None else MAX_DISTANCE_SUMMED
    return array, n * step**2 > most**2 * scatter


def _with_constants(array: Floats, constant: Floats) -> Floats:
    """Return the array of moments with exact means of numbers that are constant in a class."""
    same = ~np.isnan(constant) & (array[0] > 0.0)
    array[1:, same] = 0.0
    array[1, same] = constant[same]
    return array


def estimate_error(n: Floats, classes: Classes) -> Floats:
    """Return the relative error of a sum over rows with this total weight."""
    return np.asarray(ROW_ERROR * np.sqrt(np.clip(n, 1.0, max(classes.rows, 1))))


def make_totals(numbers: Sequence[Number], found: Numbers, classes: Classes) -> Totals:
    """Return the totals of numbers."""
    sums = np.zeros((2, classes.labels.size, len(numbers)))
    for k, number in enumerate(numbers):
        sums[:, :, k] = np.nan_to_num(found.totals[number])
    return Totals.from_values(*sums)


def reject_unusable(family: Family, found: Numbers, columns: Sequence[int]) -> None:
    """Raise a BadCell if a family cannot use one of these numbers; its row is unknown."""
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


def ask_scatter(
    engine: EngineRows, values: Sequence[str], guess: Floats, constant: Floats, classes: Classes
) -> Scatter:
    """Return the scatter matrices of values: about a guess of their means or, if that is far off, about the means.

    constant: the value in classes where it is constant, NaN elsewhere.
    """
    about = [write_difference(engine, value, near) for value, near in zip(values, guess, strict=True)]
    near = np.broadcast_to(guess, constant.shape)
    products = Products.of(engine, engine.cells(about, complete=True), len(values), classes)
    if (products.far & np.isnan(constant)).any():
        source = engine.about_means(values, complete=True)
        means = [f"max({name_mean(f'v{k}')})" for k in range(len(values))]
        near = np.nan_to_num(engine.of_each_class(source, means, classes)[0].T)
        products = Products.of(engine, source, len(values), classes)
    return products.scatter(near, constant, classes)


class Products:
    """Weight of each class, sums of its values, and sums of their pairwise products."""

    def __init__(self, weight: Floats, first: Floats, second: Floats) -> None:
        self.weight, self.first, self.second = weight, first, second
        self.step = first / np.where(weight > 0.0, weight, 1.0)[:, None]
        self.scattered = second - first[:, :, None] * self.step[:, None, :]

    @classmethod
    def of(cls, engine: EngineRows, source: str, size: int, classes: Classes) -> "Products":
        values = [f"v{k}" for k in range(size)]
        rows, columns = np.triu_indices(size)
        products = [engine.product(values[i], values[j]) for i, j in zip(rows, columns, strict=True)]
        aggregates = [engine.amount, *map(engine.total, (*values, *products))]
        found = np.nan_to_num(engine.of_each_class(source, aggregates, classes)[0])
        second = np.zeros((classes.labels.size, size, size))
        second[:, rows, columns] = second[:, columns, rows] = found[1 + size :].T
        return cls(found[0], found[1 : 1 + size].T, second)

    @property
    def far(self) -> Flags:
        """True where values are too far from zero, relative to their deviation, for exact squares."""
        own = np.diagonal(self.scattered, axis1=1, axis2=2)
        return np.asarray(self.first * self.step > MAX_DISTANCE_SUMMED**2 * own)

    def scatter(self, near: Floats, constant: Floats, classes: Classes) -> Scatter:
        """Return the statistic; the sums are about `near`."""
        there, same = (self.weight > 0.0)[:, None], ~np.isnan(constant)
        mean, low = two_sum(near, self.step)
        mean, low = np.where(same, constant, mean), np.where(same, 0.0, low)
        matrix = np.where(same[:, :, None] | same[:, None, :], 0.0, self.scattered)
        squares = np.diagonal(self.second, axis1=1, axis2=2)
        error = np.where(same, 0.0, estimate_error(self.weight, classes)[:, None] * squares)
        mean, low, error = (np.where(there, array, 0.0) for array in (mean, low, error))
        matrix = np.where(there[:, :, None], matrix, 0.0)
        return Scatter.from_values(self.weight, (mean, low), matrix, error)


@dataclass(frozen=True)
class Grouping:
    """Bins of a column. by_value: True if the bins are so fine that cells are grouped by value."""

    exponent: int
    by_value: bool

    @classmethod
    def of(cls, some: Floats, largest: float) -> "Grouping":
        """Return bins at least as fine as all rows of a column allow, and not much finer.

        some: the numbers of some rows, which allow finer bins. largest: the largest absolute value of all.
        """
        alike = np.zeros(len(some), dtype=np.int32), np.ones(len(some))
        exponent = Bins.count(some[:, None], *alike, 1).columns[0].exponent
        return cls(exponent, int(np.frexp(largest)[1]) - exponent > MAX_WHOLE_BITS)

    def key(self, dialect: Dialect, value: str) -> Keys:
        """Return the SQL expression of the cell, or of the index of its bin."""
        return (value if self.by_value else dialect.floor(dialect.scale(value, -self.exponent)),)

    def column(self, rows: DistinctRows) -> ColumnBins:
        """Return the bins of a column from grouped cells, coarser if these are too many."""
        numbers = as_floats(rows.cells[0])
        there = np.flatnonzero(~np.isnan(numbers))
        values = numbers[there]
        values = find_edges(values, self.exponent) if self.by_value else np.ldexp(values, self.exponent) + 0.0
        edges, place = np.unique(values, return_inverse=True)
        table = np.zeros((rows.classes, edges.size))
        np.add.at(table, (rows.labels[there], place.ravel()), rows.weights[there])
        return ColumnBins(self.exponent, edges, table).limit_bins()
