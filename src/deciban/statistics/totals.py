"""Exact sums of columns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from deciban import kernels
from deciban.statistics.base import find_emptied, find_negative
from deciban.statistics.exact import MAX_WHOLE, ExactSums, allocate_digits, find_exponents, largest, loses_digits
from deciban.util.arrays import Codes, Floats, Integers, Numbers, PickledFields, sum_at
from deciban.util.sparse import SparseRows


@dataclass(frozen=True)
class Totals(PickledFields):
    """Weight of the rows with a value in a column, and sum of its cells, each class by column.

    exact: True if no digit was lost. Digits are lost if a database engine summed fractions, or the sums were scaled by
    a fraction.
    """

    rows: ExactSums
    sums: ExactSums
    exact: bool = True

    @classmethod
    def empty(cls, classes: int, columns: int) -> Self:
        return cls(ExactSums.zeros(classes, columns), ExactSums.zeros(classes, columns))

    @classmethod
    def from_values(cls, present: Floats, total: Floats) -> Self:
        """Return the totals with these sums, which are exact if they are whole numbers."""
        return cls(ExactSums.of(present), ExactSums.of(total), all(map(_are_whole, (present, total))))

    @classmethod
    def count(
        cls,
        cells: Numbers | SparseRows,
        labels: Codes,
        weights: Floats,
        classes: int,
        threshold: float | None = None,
    ) -> Self:
        """Count the totals of rows; with a threshold, of the flags `cell > threshold`."""
        shape = (classes, cells.shape[1])
        present, total = np.zeros(shape), np.zeros(shape)
        flags = threshold is not None, 0.0 if threshold is None else threshold
        if isinstance(cells, np.ndarray):
            whole = kernels.cell_counts.count_totals(cells, labels, weights, *flags, present, total)
            rows = present
        else:
            whole = kernels.cell_counts.count_sparse_totals(
                *cells.kernel_arrays(), labels, weights, *flags, present, total
            )
            known = labels >= 0
            rows = sum_at(labels[known], weights[known], classes)[:, None]
            if present.any():  # the weights of missing cells, negative
                rows = rows + present
        if whole and max(largest(rows), largest(total)) <= MAX_WHOLE:
            found = ExactSums.of_whole(rows)
            return cls(found if rows.shape == shape else found[:, 0].repeat(shape[1]), ExactSums.of_whole(total))
        return cls._count_fractions(cells, labels, weights, classes, *flags)

    @classmethod
    def _count_fractions(
        cls, cells: Numbers | SparseRows, labels: Codes, weights: Floats, classes: int, binary: bool, threshold: float
    ) -> Self:
        """Count the totals cell by cell, for sums that doubles would round."""
        shape = (classes, cells.shape[1])
        dense = isinstance(cells, np.ndarray)
        stored = cells if isinstance(cells, np.ndarray) else cells.stored
        weight, one = find_exponents(weights), find_exponents(np.ones(1))
        amount = one if binary else find_exponents(np.nan_to_num(stored.astype(np.float64)))
        rows, rows_low = allocate_digits(shape, [weight, one, one], len(labels))
        sums, sums_low = allocate_digits(shape, [weight, amount, one], len(labels))
        every = np.zeros((classes, rows.shape[1]), dtype=np.int64)
        lows = np.array([rows_low, sums_low])
        if dense:
            kernels.cell_counts.add_amounts(cells, labels, weights, binary, threshold, rows, sums, lows)
        else:
            assert isinstance(cells, SparseRows)
            kernels.cell_counts.add_sparse_amounts(
                *cells.kernel_arrays(), labels, weights, binary, threshold, every, rows, sums, lows
            )
        of_class = ExactSums.of_digits(every, rows_low, (classes,)).repeat(shape[1])
        return cls(of_class.add(ExactSums.of_digits(rows, rows_low, shape)), ExactSums.of_digits(sums, sums_low, shape))

    @cached_property
    def present(self) -> Floats:
        """Weight of the rows with a value, class by column."""
        return self.rows.to_doubles()[0]

    @cached_property
    def total(self) -> Floats:
        """Sum of the cells, class by column."""
        return np.maximum(self.sums.to_doubles()[0], 0.0)

    def merge(self, other: Self) -> Totals:
        return Totals(self.rows.add(other.rows), self.sums.add(other.sums), self.exact and other.exact)

    def remove(self, other: Self, tolerance: float | None = None) -> Totals:
        rows, sums = self.rows.subtract(other.rows), self.sums.subtract(other.sums)
        exact = self.exact and other.exact
        gone = find_emptied(rows.to_doubles()[0], self.present, other.present, tolerance, exact)
        total = np.where(gone, -np.abs(sums.to_doubles()[0]), sums.to_doubles()[0])  # a sum without rows is 0
        negative = find_negative(total, self.total, other.total, tolerance, exact)
        return Totals(rows.zero_out(gone), sums.zero_out(gone | negative), exact)

    def scale(self, factor: float) -> Totals:
        return Totals(self.rows.scale(factor), self.sums.scale(factor), self.exact and not loses_digits(factor))

    def reindex_classes(self, positions: Integers, size: int) -> Totals:
        return Totals(self.rows.reindex(positions, size, 0), self.sums.reindex(positions, size, 0), self.exact)

    def reindex_columns(self, positions: Integers, size: int) -> Totals:
        return Totals(self.rows.reindex(positions, size, 1), self.sums.reindex(positions, size, 1), self.exact)

    def take_columns(self, columns: Integers) -> Totals:
        """Return the totals of some columns, in the given order."""
        return Totals(self.rows[:, columns], self.sums[:, columns], self.exact)


def _are_whole(numbers: Floats) -> bool:
    """Return True if all numbers are whole and small enough for doubles to be exact."""
    return bool((np.abs(numbers) <= MAX_WHOLE).all() and (numbers == np.floor(numbers)).all())
