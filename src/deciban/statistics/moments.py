"""Weight, mean and scatter of real columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Self, TypeVar

import numpy as np

from deciban import kernels
from deciban.errors import BadCell
from deciban.statistics.base import find_emptied, reject_negative_scatter, reject_unknown_scatter
from deciban.statistics.exact import (
    ExactSums,
    allocate_digits,
    bound_exponents,
    compute_scatters,
    loses_digits,
    two_sum,
)
from deciban.util.arrays import TOO_LARGE, Codes, Floats, Integers, Numbers, PickledFields, kernel_view, scatter_to

# The smallest double above 0; a scatter up to this counts as 0.
MIN_POSITIVE = 5e-324

# A mean below this share of the standard deviation counts as 0 in comparisons: it may be a rounding error.
ROUNDED_MEAN = 1e-6

# If the exponent of the largest cell of a column is below this, its scale would overflow: cells are added one by one.
MIN_SCALED_EXPONENT = -1000

# Relative error of a sum of squares that was scaled by a fraction.
SCALED_ERROR = 1e-90

# Relative error of a sum of squares if rows are removed after scaling: their weights are computed again.
WEIGHT_ERROR = 2.0**-50


@dataclass(frozen=True)
class MomentValues:
    """Weight, mean and scatter as doubles, each class by column.

    mean, scatter: the nearest doubles. mean_low, scatter_low: their rounding errors.
    """

    weight: Floats
    mean: Floats
    mean_low: Floats
    scatter: Floats
    scatter_low: Floats

    def variance(self, ddof: float = 0.0) -> Floats:
        """Return scatter / (weight - ddof); 0 if nothing was counted."""
        divisor = np.maximum(self.weight - ddof, 0.0)
        return np.divide(self.scatter, divisor, out=np.zeros_like(divisor), where=divisor > 0.0)

    def take_cell(self, label: int, column: int, repeated: int) -> MomentValues:
        """Return the values of one class and column, repeated as columns."""
        arrays = (self.weight, self.mean, self.mean_low, self.scatter, self.scatter_low)
        return MomentValues(*(np.full((1, repeated), array[label, column]) for array in arrays))

    def leave_out(self, x: Floats, labels: Codes, removed: Floats, column: int) -> MomentValues:
        """Return the values of a column in the class of each cell x, without that cell; one column per cell."""
        weight, mean, low = (array[labels, column] for array in (self.weight, self.mean, self.mean_low))
        left = weight - removed
        left = np.where(left > 1e-12 * weight, left, 0.0)
        share = np.divide(removed, left, out=np.zeros_like(left), where=left > 0.0)
        away = (x - mean) - low
        before = self.scatter[labels, column] + self.scatter_low[labels, column]
        scatter = before - share * weight * away**2
        scatter = np.where((left > 0.0) & (scatter > 1e-14 * before), scatter, 0.0)
        moved, lost = two_sum(mean, low - share * away)
        rows = (left, moved, lost, scatter, np.zeros_like(left))
        return MomentValues(*(row[None, :] for row in rows))


M = TypeVar("M")


def from_sums(kind: Callable[..., M], sums: Iterable[ExactSums], rounding_error: Floats | None = None) -> M:
    """Build a statistic from the sums of weights, of cells and of products."""
    present, first, second = sums
    return kind(present, first, second, rounding_error)


@dataclass(frozen=True)
class Moments(PickledFields):
    """Exact sums of weights, of cells and of squared cells, each class by column.

    Exact sums do not depend on the order of rows or on batches, and removing rows leaves no trace. Weight, mean and
    scatter (the weighted sum of squared deviations from the mean) are computed from them as `MomentValues`.

    present, first, second: the sums of weights, of cells and of squared cells. rounding_error: bound of the error of
    the scatter, if the sums came from a database engine or were scaled by a fraction; None if the sums are exact.
    """

    present: ExactSums
    first: ExactSums
    second: ExactSums
    rounding_error: Floats | None = None

    @classmethod
    def empty(cls, classes: int, columns: int) -> Self:
        return from_sums(cls, (ExactSums.zeros(classes, columns) for _ in range(3)))

    @classmethod
    def count(cls, numbers: Numbers, labels: Codes, weights: Floats, classes: int) -> Self:
        """Count the moments of rows; NaN is a missing cell, an infinite cell raises BadCell."""
        if not numbers.size:
            return cls.empty(classes, numbers.shape[1])
        numbers = kernel_view(numbers)  # type: ignore[assignment]
        largest = np.zeros(numbers.shape[1])
        kernels.moments.largest_cells(numbers, labels, weights, largest)
        if not (largest <= TOO_LARGE).all():
            check_not_too_large(numbers)
        return from_sums(cls, _sum_cells(numbers, labels, weights, classes, largest))

    @classmethod
    def from_values(
        cls, weight: Floats, mean: tuple[Floats, Floats], scatter: Floats, rounding_error: Floats
    ) -> Moments:
        """Return the moments with this weight, mean (a sum of two doubles), scatter, and error of the scatter."""
        one = np.ones_like(weight)
        first, second = ExactSums.zeros(*weight.shape), ExactSums.of(scatter)
        for a in mean:
            first = first.add(ExactSums.of_products(weight, a, one))
            for b in mean:
                second = second.add(ExactSums.of_products(weight, a, b))
        return cls(ExactSums.of(weight), first, second, rounding_error if rounding_error.any() else None)

    @cached_property
    def values(self) -> MomentValues:
        """Weight, mean and scatter."""
        scatter, low = self._scatter
        bound = MIN_POSITIVE if self.rounding_error is None else np.maximum(self.rounding_error, MIN_POSITIVE)
        none = scatter <= bound
        scatter, low = np.where(none, 0.0, scatter), np.where(none, 0.0, low)
        return MomentValues(self.present.to_doubles()[0], *self.first.divide(self.present), scatter, low)

    @cached_property
    def _scatter(self) -> tuple[Floats, Floats]:
        """Scatter, and its rounding error; negative if rows were removed that had not been counted."""
        return compute_scatters(self.present, self.first, self.first, self.second)

    @property
    def raw_scatter(self) -> Floats:
        """Scatter before values within the rounding error are set to 0."""
        return self._scatter[0]

    @property
    def weight(self) -> Floats:
        return self.values.weight

    @property
    def mean(self) -> Floats:
        return self.values.mean

    @property
    def mean_low(self) -> Floats:
        return self.values.mean_low

    @property
    def scatter(self) -> Floats:
        return self.values.scatter

    @property
    def scatter_low(self) -> Floats:
        return self.values.scatter_low

    def variance(self, ddof: float = 0.0) -> Floats:
        """Return scatter / (weight - ddof); 0 if nothing was counted."""
        return self.values.variance(ddof)

    def merge(self, other: Self) -> Moments:
        sums = (mine.add(theirs) for mine, theirs in zip(self._sums(), other._sums(), strict=True))
        return from_sums(Moments, sums, add_errors(self.rounding_error, other.rounding_error))

    def remove(self, other: Self, tolerance: float | None = None) -> Moments:
        present, first, second = (
            mine.subtract(theirs) for mine, theirs in zip(self._sums(), other._sums(), strict=True)
        )
        error = add_errors(self.rounding_error, other.rounding_error)
        gone = find_emptied(present.to_doubles()[0], self.weight, other.weight, tolerance, exact=error is None)
        if tolerance is not None and error is not None:
            error = add_errors(error, estimate_weight_errors(other.weight, other.second.to_doubles()[0]))
        if tolerance is None and error is None:
            reject_negative_scatter(gone & (first.nonzero() | second.nonzero()))
        if gone.any():
            present, first, second = (sums.zero_out(gone) for sums in (present, first, second))
            error = None if error is None else np.where(gone, 0.0, error)
        left = Moments(present, first, second, error if error is not None and error.any() else None)
        if tolerance is None and left.rounding_error is None:
            reject_negative_scatter(left.raw_scatter < 0.0)
        elif tolerance is None and left.rounding_error is not None:
            overall = left.merge_classes().variance()
            reject_unknown_scatter(left.raw_scatter, self.scatter, left.rounding_error, left.weight, overall)
        return left

    def scale(self, factor: float) -> Moments:
        present, first, second = (sums.scale(factor, raised=sums is self.second) for sums in self._sums())
        error = None if self.rounding_error is None else self.rounding_error * factor
        if loses_digits(factor):
            error = add_errors(error, SCALED_ERROR * second.to_doubles()[0])
        return Moments(present, first, second, error)

    def reindex_classes(self, positions: Integers, size: int) -> Moments:
        return self._reindex(positions, size, 0)

    def reindex_columns(self, positions: Integers, size: int) -> Moments:
        return self._reindex(positions, size, 1)

    def _reindex(self, positions: Integers, size: int, axis: int) -> Moments:
        error = self.rounding_error
        placed = None if error is None else scatter_to(error, positions, size, axis)
        return from_sums(Moments, (sums.reindex(positions, size, axis) for sums in self._sums()), placed)

    def take_columns(self, columns: Integers) -> Moments:
        """Return the moments of some columns, in the given order."""
        error = self.rounding_error
        return from_sums(
            Moments, (sums[:, columns] for sums in self._sums()), None if error is None else error[:, columns]
        )

    def merge_classes(self) -> Moments:
        """Return the moments of all classes together, as one class."""
        return self._together

    @cached_property
    def _together(self) -> Moments:
        error = self.rounding_error
        together = None if error is None else error.sum(axis=0, keepdims=True)
        return from_sums(Moments, (sums.sum_first_axis() for sums in self._sums()), together)

    def comparison_key(self) -> tuple[Floats, ...]:
        """Return numbers that are equal to seven digits for counts of the same rows, from any engine."""
        return normalize_moments(self.weight, self.mean, self.scatter)

    def _sums(self) -> tuple[ExactSums, ExactSums, ExactSums]:
        return self.present, self.first, self.second


def _sum_cells(
    numbers: Numbers, labels: Codes, weights: Floats, classes: int, largest: Floats
) -> tuple[ExactSums, ...]:
    """Return the exact sums of weights, cells and squares; largest: the size of the largest cell of each column."""
    columns, lanes = largest.size, kernels.moments.SLICE_LANES
    exponent = np.zeros(-(-columns // lanes) * lanes, dtype=np.int64)
    exponent[:columns] = np.where(largest > 0.0, np.frexp(largest)[1], 0)
    fits = exponent >= MIN_SCALED_EXPONENT
    exponent[~fits] = 0
    slices = kernels.moments.Slices(
        scale=np.where(np.arange(exponent.size) < columns, np.where(fits, np.ldexp(1.0, -exponent), np.nan), 0.0),
        exponent=exponent,
        sums=np.zeros((classes, kernels.moments.ALL_SLICES, exponent.size)),
        used=np.zeros(classes),
        rows=np.zeros(classes),
        missing=np.zeros((classes, columns)),
        unfit=np.zeros(columns, dtype=np.int64),
        tail=np.zeros(lanes),
    )
    shape, weight, (last, first) = (classes, columns), float(weights.sum()), (int(exponent.min()), int(exponent.max()))
    cells, squares = (
        allocate_digits(shape, [(power * (last - kernels.moments.FITTING_BITS), power * first)], weight)
        for power in (1, 2)
    )
    digits = kernels.moments.MomentDigits(cells[0], cells[0], squares[0], np.array([0, cells[1], squares[1]]))
    all_whole = kernels.moments.add_sliced_cells(numbers, labels, weights, slices, digits)
    counted = ExactSums.of(slices.rows[:, None] - slices.missing)
    sums = counted, ExactSums.of_digits(*cells, shape), ExactSums.of_digits(*squares, shape)
    left = np.flatnonzero(slices.unfit) if all_whole else np.arange(columns)
    if not left.size:
        return sums
    some: Numbers = np.ascontiguousarray(numbers[:, left])  # type: ignore[assignment]
    others = _sum_one_by_one(some, labels, weights, classes, slices.scale[left], slices.unfit[left])
    return tuple(a.add(b.reindex(left, columns, 1)) for a, b in zip(sums, others, strict=True))


def _sum_one_by_one(
    numbers: Numbers, labels: Codes, weights: Floats, classes: int, scale: Floats, unfit: Integers
) -> tuple[ExactSums, ...]:
    """Return the exact sums of the cells that do not fit in slices."""
    smallest, largest = np.full(numbers.shape[1], np.inf), np.zeros(numbers.shape[1])
    kernels.moments.smallest_cells(numbers, labels, weights, smallest)
    kernels.moments.largest_cells(numbers, labels, weights, largest)
    cell, one = bound_exponents(float(smallest.min()), float(largest.max())), bound_exponents(1.0, 1.0)
    weight = bound_exponents(float(np.min(weights, initial=np.inf, where=weights > 0.0)), float(weights.max()))
    factors = ([weight, one, one], [weight, cell, one], [weight, cell, cell])
    shape = (classes, numbers.shape[1])
    rooms = [allocate_digits(shape, some, len(numbers)) for some in factors]
    digits = kernels.moments.MomentDigits(*(room for room, _ in rooms), np.array([low for _, low in rooms]))
    kernels.moments.add_other_cells(numbers, labels, weights, scale, unfit, digits)
    return tuple(ExactSums.of_digits(*room, shape) for room in rooms)


def add_errors(mine: Floats | None, theirs: Floats | None) -> Floats | None:
    """Return the error of the sum of two numbers with these errors; None stands for exact."""
    if mine is None or theirs is None:
        return theirs if mine is None else mine
    return mine + theirs


def estimate_weight_errors(weight: Floats, squares: Floats) -> Floats | None:
    """Return the error of squares after removing rows with fractional weights from scaled sums; None if exact."""
    rounded = weight != np.floor(weight)
    return WEIGHT_ERROR * np.where(rounded, squares, 0.0) if rounded.any() else None


def normalize_moments(weight: Floats, mean: Floats, scatter: Floats) -> tuple[Floats, ...]:
    """Return weight, mean and scatter without negative zeros, and with means within rounding set to 0."""
    spread = np.sqrt(np.maximum(scatter, 0.0) / np.maximum(weight, 1e-300))
    return weight, np.where(np.abs(mean) > ROUNDED_MEAN * spread, mean, 0.0) + 0.0, scatter + 0.0


def check_not_too_large(numbers: Numbers) -> None:
    """Raise BadCell for the first cell that is infinite or too large to square."""
    with np.errstate(invalid="ignore"):
        wrong = np.abs(numbers) > TOO_LARGE
    if wrong.any():
        row, column = (int(i) for i in np.argwhere(wrong)[0])
        value = float(numbers[row, column])
        expected = "a finite number (not infinity)" if np.isinf(value) else f"a number up to {TOO_LARGE:g}"
        remedy = "correct it, leave the cell empty, or use smaller units"
        raise BadCell(column, row, f"found {value!r}, expected {expected}", remedy)
