"""Sums of columns."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from deciban import kernels
from deciban.arrays import Codes, Floats, Integers, Numbers, scatter_to
from deciban.sparse import SparseRows
from deciban.statistics.base import remaining


@dataclass(frozen=True)
class Totals:
    """The weight of the rows where a column is present, and the sum of its cells, each class by column."""

    present: Floats
    total: Floats

    @classmethod
    def empty(cls, classes: int, columns: int) -> Self:
        return cls(np.zeros((classes, columns)), np.zeros((classes, columns)))

    @classmethod
    def count(
        cls,
        cells: Numbers | SparseRows,
        labels: Codes,
        weights: Floats,
        classes: int,
        threshold: float | None = None,
    ) -> Self:
        """The totals of the rows; with a threshold, of the flags `cell > threshold`."""
        totals = cls.empty(classes, cells.shape[1])
        cut = 0.0 if threshold is None else threshold
        if isinstance(cells, np.ndarray):
            kernels.count_totals(cells, labels, weights, threshold is not None, cut, totals.present, totals.total)
        else:
            known = labels >= 0
            totals.present[:] = np.bincount(labels[known], weights[known], classes)[:, None]
            kernels.count_sparse_totals(
                *cells.kernel_arrays(), labels, weights, threshold is not None, cut, totals.present, totals.total
            )
        return totals

    def merge(self, other: Self) -> "Totals":
        return Totals(self.present + other.present, self.total + other.total)

    def remove(self, other: Self, slack: float | None = None) -> "Totals":
        present, total = remaining(self.present, other.present, slack), remaining(self.total, other.total, slack)
        return Totals(present, total if slack is None else np.where(present > 0.0, total, 0.0))

    def scale(self, factor: float) -> "Totals":
        return Totals(self.present * factor, self.total * factor)

    def place_classes(self, positions: Integers, size: int) -> "Totals":
        return Totals(scatter_to(self.present, positions, size), scatter_to(self.total, positions, size))

    def place_columns(self, positions: Integers, size: int) -> "Totals":
        return Totals(
            scatter_to(self.present, positions, size, axis=1), scatter_to(self.total, positions, size, axis=1)
        )
