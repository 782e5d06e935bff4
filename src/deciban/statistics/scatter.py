"""Weight, mean vector and scatter matrix of a block of real columns."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from deciban import kernels
from deciban.arrays import Codes, Floats, Integers, Numbers, placed, two_sum
from deciban.statistics.base import remaining, settled
from deciban.statistics.moments import refuse_too_large


@dataclass(frozen=True)
class Scatter:
    """Weight of each class, mean of each class and column, scatter matrix of each class: (mean, scatter) + (low).

    Rows with a missing cell are left out (complete cases, so that every scatter matrix is positive).
    """

    weight: Floats
    mean: Floats
    mean_low: Floats
    scatter: Floats
    scatter_low: Floats

    @classmethod
    def empty(cls, classes: int, columns: int) -> Self:
        vector, matrix = (classes, columns), (classes, columns, columns)
        return cls(np.zeros(classes), np.zeros(vector), np.zeros(vector), np.zeros(matrix), np.zeros(matrix))

    @classmethod
    def count(cls, numbers: Numbers, labels: Codes, weights: Floats, classes: int) -> Self:
        """The scatter of the complete rows; an infinite cell is refused."""
        refuse_too_large(numbers)
        result = cls.empty(classes, numbers.shape[1])
        usable = np.flatnonzero((labels >= 0) & (weights > 0.0) & ~np.isnan(numbers).any(axis=1))
        order = usable[np.argsort(labels[usable], kind="stable")]
        ends = np.cumsum(np.bincount(labels[usable], minlength=classes))
        for c in np.unique(labels[usable]):
            rows = order[ends[c - 1] if c else 0 : ends[c]]
            result.weight[c] = weights[rows].sum()
            _fill_class(result, c, numbers[rows].astype(np.float64), weights[rows])
        return result

    def merge(self, other: Self) -> "Scatter":
        merged = Scatter(*(array.copy() for array in self._arrays()))
        kernels.merge_scatter(*merged._arrays(), *other._arrays())
        return merged

    def remove(self, other: Self) -> "Scatter":
        left = Scatter(*(array.copy() for array in self._arrays()))
        kernels.remove_scatter(*left._arrays(), *other._arrays(), remaining(self.weight, other.weight))
        stays = left.weight > 0.0
        spread = np.where(
            stays[:, None], settled(left._diagonal(), np.where(stays[:, None], self._diagonal(), 0.0)), 0.0
        )
        gone = spread == 0.0
        for array in (left.scatter, left.scatter_low):
            array[gone[:, :, None] | gone[:, None, :]] = 0.0
        return left

    def scale(self, factor: float) -> "Scatter":
        return Scatter(self.weight * factor, self.mean, self.mean_low, self.scatter * factor, self.scatter_low * factor)

    def _arrays(self) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        return self.weight, self.mean, self.mean_low, self.scatter, self.scatter_low

    def _diagonal(self) -> Floats:
        return np.diagonal(self.scatter, axis1=1, axis2=2)

    def place_classes(self, positions: Integers, size: int) -> "Scatter":
        return Scatter(*(placed(array, positions, size) for array in self._arrays()))

    def place_columns(self, positions: Integers, size: int) -> "Scatter":
        raise AssertionError("a joint block is counted as a whole")

    def over_classes(self) -> "Scatter":
        """The scatter of all classes together, as of one class."""
        total = Scatter.empty(1, self.mean.shape[1])
        for c in range(self.weight.size):
            kernels.merge_scatter(*total._arrays(), *(array[c : c + 1] for array in self._arrays()))
        return total

    def within(self) -> Floats:
        """The scatter matrices of the classes about their own means, added up."""
        return np.asarray(self.scatter.sum(axis=0) + self.scatter_low.sum(axis=0))


def _fill_class(result: Scatter, c: int, rows: Floats, weights: Floats) -> None:
    """Set the mean and scatter of class `c` to those of its rows: about the first row, then about the mean found."""
    weight = result.weight[c]
    origin = rows[0] + (weights @ (rows - rows[0])) / weight
    deviations = rows - origin
    first = weights @ deviations
    result.mean[c], result.mean_low[c] = two_sum(origin, first / weight)
    rooted = np.sqrt(weights)[:, None] * deviations
    result.scatter[c] = rooted.T @ rooted - np.outer(first, first / weight)
