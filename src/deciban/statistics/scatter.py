"""Weight, mean vector and scatter matrix of a block of real columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from deciban import kernels
from deciban.statistics.base import find_emptied, reject_negative_scatter, reject_unknown_scatter
from deciban.statistics.exact import ExactSums, allocate_digits, bound_exponents, compute_scatters, loses_digits
from deciban.statistics.moments import (
    MIN_POSITIVE,
    MIN_SCALED_EXPONENT,
    SCALED_ERROR,
    add_errors,
    check_not_too_large,
    estimate_weight_errors,
    from_sums,
    normalize_moments,
)
from deciban.util.arrays import (
    TOO_LARGE,
    Codes,
    Flags,
    Floats,
    Integers,
    Numbers,
    PickledFields,
    scatter_to,
    sum_at,
)

# Bits of a slice of a cell: products of two slices, summed over rows of SLICED_WEIGHT, fit in 53 bits.
FACTOR_BITS = 21

# Maximum number of slices of a cell.
MAX_SLICES = 4

# Number of blocks of rows whose sums fit in 64-bit integers.
SUMMED_BLOCKS = 128

# Up to this number of rows, adding them one by one is faster than slicing.
UNSLICED_ROWS = 16

# Relative rounding error allowed in the Cauchy-Schwarz inequality between a scatter and its two variances.
CORRELATION_ERROR = 1e-12

# Products of deviations below this have lost digits and are not compared.
MIN_COMPARED = 1e-280


@dataclass(frozen=True)
class Scatter(PickledFields):
    """Exact sums of weights, of cells and of products of two columns, by class; see `Moments`.

    Rows with a missing cell are left out, so that every scatter matrix is positive semidefinite. Weight, mean and
    scatter matrix of each class are computed from the sums.

    second: class by pair of columns, in the order of `numpy.triu_indices`. rounding_error: class by column.
    """

    present: ExactSums
    first: ExactSums
    second: ExactSums
    rounding_error: Floats | None = None

    @classmethod
    def empty(cls, classes: int, columns: int) -> Self:
        pairs = columns * (columns + 1) // 2
        return from_sums(cls, (ExactSums.zeros(*shape) for shape in ((classes,), (classes, columns), (classes, pairs))))

    @classmethod
    def count(cls, numbers: Numbers, labels: Codes, weights: Floats, classes: int) -> Self:
        """Count the scatter of the complete rows; an infinite cell raises BadCell."""
        there = (labels >= 0) & (weights > 0.0)
        if not kernels.cell_counts.all_finite(numbers.ravel()):
            check_not_too_large(numbers)
            there &= ~np.isnan(numbers).any(axis=1)
        rows = np.flatnonzero(there)
        if not rows.size:
            return cls.empty(classes, numbers.shape[1])
        cells = np.ascontiguousarray(numbers if rows.size == len(numbers) else numbers[rows], dtype=np.float64)
        labels, weights = labels[rows], weights[rows]
        largest = np.zeros(cells.shape[1])
        kernels.moments.largest_cells(cells, labels, weights, largest)
        if not (largest <= TOO_LARGE).all():
            check_not_too_large(numbers)
        left = np.ones(rows.size, dtype=np.bool_)
        sums: tuple[ExactSums, ...] = cls.empty(classes, numbers.shape[1])._sums()
        if rows.size > UNSLICED_ROWS:
            sums = _sum_slices(cells, labels, weights, classes, largest, left)
        if left.any():
            others = _sum_one_by_one(cells[left], labels[left], weights[left], classes)
            sums = tuple(a.add(b) for a, b in zip(sums, others, strict=True))
        return from_sums(cls, sums)

    @classmethod
    def from_values(
        cls, weight: Floats, mean: tuple[Floats, Floats], scatter: Floats, rounding_error: Floats
    ) -> Scatter:
        """Return the scatter with these weights, means (sums of two doubles), matrices, and errors of the matrices."""
        rows, columns = np.triu_indices(scatter.shape[1])
        first, second = ExactSums.zeros(*mean[0].shape), ExactSums.of(scatter[:, rows, columns])
        n = weight[:, None]
        for a in mean:
            first = first.add(ExactSums.of_products(np.broadcast_to(n, a.shape), a, np.ones_like(a)))
            for b in mean:
                left, right = a[:, rows], b[:, columns]
                second = second.add(ExactSums.of_products(np.broadcast_to(n, left.shape), left, right))
        return cls(ExactSums.of(weight), first, second, rounding_error if rounding_error.any() else None)

    @cached_property
    def weight(self) -> Floats:
        return self.present.to_doubles()[0]

    @cached_property
    def _means(self) -> tuple[Floats, Floats]:
        return self.first.divide(self.present.repeat(self.first.shape[1]))

    @property
    def mean(self) -> Floats:
        return self._means[0]

    @property
    def mean_low(self) -> Floats:
        return self._means[1]

    @cached_property
    def _matrices(self) -> tuple[Floats, Floats]:
        """Scatter matrices as doubles, and their rounding errors."""
        size = self.first.shape[1]
        rows, columns = np.triu_indices(size)
        weight = self.present.repeat(rows.size)
        found = compute_scatters(weight, self.first[:, rows], self.first[:, columns], self.second)
        matrices = np.zeros((2, self.first.shape[0], size, size))
        matrices[:, :, rows, columns] = matrices[:, :, columns, rows] = found
        return matrices[0], matrices[1]

    @cached_property
    def _known(self) -> tuple[Floats, Floats]:
        """Scatter matrices with 0 for columns whose variance is within the rounding error."""
        own = self.raw_scatter
        none = own <= (MIN_POSITIVE if self.rounding_error is None else np.maximum(self.rounding_error, MIN_POSITIVE))
        none = none[:, :, None] | none[:, None, :]
        high, low = self._matrices
        return np.where(none, 0.0, high), np.where(none, 0.0, low)

    @property
    def scatter(self) -> Floats:
        return self._known[0]

    @property
    def scatter_low(self) -> Floats:
        return self._known[1]

    @property
    def raw_scatter(self) -> Floats:
        """Scatter of each column before values within the rounding error are set to 0."""
        return np.diagonal(self._matrices[0], axis1=1, axis2=2)

    def merge(self, other: Self) -> Scatter:
        sums = (mine.add(theirs) for mine, theirs in zip(self._sums(), other._sums(), strict=True))
        return from_sums(Scatter, sums, add_errors(self.rounding_error, other.rounding_error))

    def remove(self, other: Self, tolerance: float | None = None) -> Scatter:
        present, first, second = (
            mine.subtract(theirs) for mine, theirs in zip(self._sums(), other._sums(), strict=True)
        )
        error = add_errors(self.rounding_error, other.rounding_error)
        gone = find_emptied(present.to_doubles()[0], self.weight, other.weight, tolerance, exact=error is None)
        if tolerance is not None and error is not None:
            squares = other.second[:, _diagonal_pairs(first.shape[1])].to_doubles()[0]
            error = add_errors(error, estimate_weight_errors(other.weight[:, None], squares))
        if tolerance is None and error is None:
            reject_negative_scatter(gone & (first.nonzero().any(axis=1) | second.nonzero().any(axis=1)))
        if gone.any():
            present, first, second = (
                sums.zero_out(np.broadcast_to(gone.reshape(-1, *(1,) * (len(sums.shape) - 1)), sums.shape))
                for sums in (present, first, second)
            )
            error = None if error is None else np.where(gone[:, None], 0.0, error)
        left = Scatter(present, first, second, error if error is not None and error.any() else None)
        if tolerance is None:
            left._check_removed(self)
        return left

    def _check_removed(self, before: Scatter) -> None:
        """Raise ForgetError if this cannot be a remainder of `before`."""
        own = self.raw_scatter
        if self.rounding_error is None:
            reject_negative_scatter(own < 0.0)
            deviation = np.sqrt(own)
            bound = (1.0 + CORRELATION_ERROR) * deviation[:, :, None] * deviation[:, None, :]
            reject_negative_scatter((np.abs(self._matrices[0]) > bound) & (bound > MIN_COMPARED))
        else:
            overall = self.merge_classes()
            variance = np.maximum(overall.raw_scatter, 0.0) / max(self.weight.sum(), 1e-300)
            reject_unknown_scatter(own, before.raw_scatter, self.rounding_error, self.weight[:, None], variance)

    def scale(self, factor: float) -> Scatter:
        present, first, second = (sums.scale(factor, raised=sums is self.second) for sums in self._sums())
        error = None if self.rounding_error is None else self.rounding_error * factor
        if loses_digits(factor):
            squares = second[:, _diagonal_pairs(first.shape[1])].to_doubles()[0]
            error = add_errors(error, SCALED_ERROR * squares)
        return Scatter(present, first, second, error)

    def reindex_classes(self, positions: Integers, size: int) -> Scatter:
        error = self.rounding_error
        placed = None if error is None else scatter_to(error, positions, size)
        return from_sums(Scatter, (sums.reindex(positions, size, 0) for sums in self._sums()), placed)

    def reindex_columns(self, positions: Integers, size: int) -> Scatter:
        rows, columns = np.triu_indices(self.first.shape[1])
        a, b = np.minimum(positions[rows], positions[columns]), np.maximum(positions[rows], positions[columns])
        pairs = np.where(a < 0, -1, a * size - a * (a - 1) // 2 + b - a)
        error = self.rounding_error
        return Scatter(
            self.present,
            self.first.reindex(positions, size, 1),
            self.second.reindex(pairs, size * (size + 1) // 2, 1),
            None if error is None else scatter_to(error, positions, size, axis=1),
        )

    def merge_classes(self) -> Scatter:
        """Return the scatter of all classes together, as one class."""
        return self._together

    @cached_property
    def _together(self) -> Scatter:
        error = self.rounding_error
        together = None if error is None else error.sum(axis=0, keepdims=True)
        return from_sums(Scatter, (sums.sum_first_axis() for sums in self._sums()), together)

    def comparison_key(self) -> tuple[Floats, ...]:
        """Return numbers that are equal to seven digits for counts of the same rows, from any engine."""
        return normalize_moments(self.weight[:, None], self.mean, np.diagonal(self.scatter, axis1=1, axis2=2))

    def _sums(self) -> tuple[ExactSums, ExactSums, ExactSums]:
        return self.present, self.first, self.second


def _diagonal_pairs(size: int) -> Integers:
    """Return the positions of the pairs of a column with itself."""
    rows, columns = np.triu_indices(size)
    return np.flatnonzero(rows == columns)


def _sum_slices(
    cells: Floats, labels: Codes, weights: Floats, classes: int, largest: Floats, left: Flags
) -> tuple[ExactSums, ...]:
    """Return the exact sums of rows, by products of matrices of few bits (Ozaki's scheme).

    left: output, flags of the rows that are not included.
    """
    size = largest.size
    exponent = np.maximum(np.where(largest > 0.0, np.frexp(largest)[1], 0).astype(np.int64), MIN_SCALED_EXPONENT)
    np.not_equal(weights, np.minimum(np.floor(weights), kernels.moments.SLICED_WEIGHT), out=left)
    low_exponent, high_exponent, total = int(exponent.min()), int(exponent.max()), float(weights.sum())
    shapes = (classes, size), (classes, size * (size + 1) // 2)
    depth = FACTOR_BITS * MAX_SLICES
    rooms = [
        allocate_digits(shapes[k], [((k + 1) * (low_exponent - depth), (k + 1) * high_exponent)], total)
        for k in range(2)
    ]
    order = np.flatnonzero(~left)
    order = order[np.argsort(labels[order], kind="stable")]
    ends = np.searchsorted(labels[order], np.arange(classes + 1))
    for c in range(classes):
        here = order[ends[c] : ends[c + 1]]
        digits = [
            (room.reshape(classes, shape[1], -1)[c], low) for (room, low), shape in zip(rooms, shapes, strict=True)
        ]
        for slices in (MAX_SLICES - 1, MAX_SLICES):  # few rows need all
            for blocks in _group_blocks(here, weights):
                _add_blocks(blocks, cells, weights, exponent, slices, left, digits)
            here = here[left[here]]
            if slices < MAX_SLICES:
                left[here] = False
    counted = sum_at(labels[~left], weights[~left], classes)
    sums = (ExactSums.of_digits(*room, shape) for room, shape in zip(rooms, shapes, strict=True))
    return ExactSums.of(counted), *sums


def _group_blocks(rows: Integers, weights: Floats) -> Iterator[list[Integers]]:
    """Yield blocks of rows with a weight of at most SLICED_WEIGHT, SUMMED_BLOCKS at a time."""
    blocks, begin = [], 0
    reached = np.cumsum(weights[rows])
    while begin < rows.size:
        before = reached[begin - 1] if begin else 0.0
        end = int(np.searchsorted(reached, before + kernels.moments.SLICED_WEIGHT, side="right"))
        blocks.append(rows[begin:end])
        begin = end
    for k in range(0, len(blocks), SUMMED_BLOCKS):
        yield blocks[k : k + SUMMED_BLOCKS]


def _add_blocks(
    blocks: list[Integers],
    cells: Floats,
    weights: Floats,
    exponent: Integers,
    slices: int,
    left: Flags,
    digits: list[tuple[Integers, int]],
) -> None:
    """Add blocks of rows of a class to the digits of its sums; rows that need more slices are flagged in `left`."""
    size, scale = exponent.size, np.ldexp(1.0, -exponent)
    rows, columns = np.triu_indices(size)
    width = slices * size
    sums, products = np.zeros(width, dtype=np.int64), np.zeros((width, width), dtype=np.int64)
    for block in blocks:
        parts = np.empty((block.size, width))
        kernels.moments.slice_rows(cells, block, scale, FACTOR_BITS, parts, left)
        w = weights[block]
        weighted = parts if (w == 1.0).all() else w[:, None] * parts
        sums += (np.ones(block.size) @ weighted).astype(np.int64)
        products += (weighted.T @ parts).astype(np.int64)
    of_slices, of_pairs = sums.reshape(slices, size), products.reshape(slices, size, slices, size)
    (first, first_low), (second, second_low) = digits
    for s in range(slices):
        kernels.exact_sums.add_integers(of_slices[s], exponent - FACTOR_BITS * (s + 1), first, first_low)
        for t in range(slices):
            pairs = exponent[rows] + exponent[columns] - FACTOR_BITS * (s + t + 2)
            kernels.exact_sums.add_integers(of_pairs[s, rows, t, columns], pairs, second, second_low)


def _sum_one_by_one(cells: Floats, labels: Codes, weights: Floats, classes: int) -> tuple[ExactSums, ...]:
    """Return the exact sums, row by row."""
    size, sizes = cells.shape[1], np.abs(cells)
    cell = bound_exponents(float(np.min(sizes, initial=np.inf, where=sizes > 0.0)), float(sizes.max(initial=0.0)))
    weight, one = bound_exponents(float(weights.min()), float(weights.max())), bound_exponents(1.0, 1.0)
    shapes = ((classes,), (classes, size), (classes, size * (size + 1) // 2))
    factors = ([weight, one, one], [weight, cell, one], [weight, cell, cell])
    rooms = [allocate_digits(shape, some, len(cells)) for shape, some in zip(shapes, factors, strict=True)]
    digits = kernels.moments.MomentDigits(*(room for room, _ in rooms), np.array([low for _, low in rooms]))
    kernels.moments.add_rows(cells, labels, weights, digits)
    return tuple(ExactSums.of_digits(*room, shape) for room, shape in zip(rooms, shapes, strict=True))
