"""Weight, mean vector and scatter matrix of a block of real columns."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from deciban.arrays import Codes, Floats, Integers, Numbers, placed, two_sum
from deciban.errors import ForgetError
from deciban.statistics.base import FUZZ, remaining


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
        """The scatter of the complete rows; the caller has made sure that no cell is infinite."""
        result = cls.empty(classes, numbers.shape[1])
        usable = np.flatnonzero((labels >= 0) & (weights > 0.0) & ~np.isnan(numbers.sum(axis=1)))
        order = usable[np.argsort(labels[usable], kind="stable")]
        ends = np.cumsum(np.bincount(labels[usable], minlength=classes))
        for c in np.unique(labels[usable]):
            rows = order[ends[c - 1] if c else 0 : ends[c]]
            result.weight[c] = weights[rows].sum()
            _fill_class(result, c, numbers[rows].astype(np.float64), weights[rows])
        return result

    def merge(self, other: Self) -> "Scatter":
        total = self.weight + other.weight
        share = np.divide(other.weight, total, out=np.zeros_like(total), where=total > 0.0)
        first = self.weight == 0.0
        delta = np.where(first[:, None], 0.0, (other.mean - self.mean) + (other.mean_low - self.mean_low))
        delta[other.weight == 0.0] = 0.0
        start, start_low = (np.where(first[:, None], b, a) for a, b in ((self.mean, other.mean),
                                                                       (self.mean_low, other.mean_low)))  # fmt: skip
        mean, error = two_sum(start, delta * share[:, None])
        mean, mean_low = two_sum(mean, start_low + error)
        scatter, error1 = two_sum(self.scatter, other.scatter)
        scatter, error2 = two_sum(scatter, _outer(delta) * (self.weight * share)[:, None, None])
        scatter, scatter_low = two_sum(scatter, (self.scatter_low + other.scatter_low) + (error1 + error2))
        return Scatter(total, mean, mean_low, scatter, scatter_low)

    def remove(self, other: Self) -> "Scatter":
        weight = remaining(self.weight, other.weight)
        share = np.divide(other.weight, weight, out=np.zeros_like(weight), where=weight > 0.0)
        delta = (other.mean - self.mean) + (other.mean_low - self.mean_low)
        mean, error = two_sum(self.mean, -delta * share[:, None])
        mean, mean_low = two_sum(mean, self.mean_low + error)
        scatter, error1 = two_sum(self.scatter, -other.scatter)
        scatter, error2 = two_sum(scatter, -_outer(delta) * (self.weight * share)[:, None, None])
        scatter, scatter_low = two_sum(scatter, (self.scatter_low - other.scatter_low) + (error1 + error2))
        diagonal, before = (np.diagonal(s, axis1=1, axis2=2) for s in (scatter, self.scatter))
        gone = weight == 0.0
        if np.any((diagonal < -FUZZ * before)[~gone]):
            raise ForgetError(
                "these rows cannot be forgotten: the spread of a column would become negative; "
                "give just the rows that the model has learned"
            )
        for array in (mean, mean_low, scatter, scatter_low):
            array[gone] = 0.0
        return Scatter(weight, mean, mean_low, scatter, scatter_low)

    def scale(self, factor: float) -> "Scatter":
        return Scatter(self.weight * factor, self.mean, self.mean_low, self.scatter * factor, self.scatter_low * factor)

    def place_classes(self, positions: Integers, size: int) -> "Scatter":
        return Scatter(
            *(placed(array, positions, size) for array in
              (self.weight, self.mean, self.mean_low, self.scatter, self.scatter_low))
        )  # fmt: skip

    def place_columns(self, positions: Integers, size: int) -> "Scatter":
        raise AssertionError("a joint block is counted as a whole")

    def over_classes(self) -> "Scatter":
        """The scatter of all classes together, as of one class."""
        total = Scatter.empty(1, self.mean.shape[1])
        for c in range(self.weight.size):
            total = total.merge(self._one(c))
        return total

    def within(self) -> Floats:
        """The scatter matrices of the classes about their own means, added up."""
        return np.asarray(self.scatter.sum(axis=0) + self.scatter_low.sum(axis=0))

    def _one(self, c: int) -> "Scatter":
        one = slice(c, c + 1)
        return Scatter(self.weight[one], self.mean[one], self.mean_low[one], self.scatter[one], self.scatter_low[one])


def _outer(delta: Floats) -> Floats:
    return delta[:, :, None] * delta[:, None, :]


def _fill_class(result: Scatter, c: int, rows: Floats, weights: Floats) -> None:
    """Set the mean and scatter of class `c` to those of its rows: about the first row, then about the mean found."""
    weight = result.weight[c]
    origin = rows[0] + (weights @ (rows - rows[0])) / weight
    deviations = rows - origin
    first = weights @ deviations
    result.mean[c], result.mean_low[c] = two_sum(origin, first / weight)
    rooted = np.sqrt(weights)[:, None] * deviations
    result.scatter[c] = rooted.T @ rooted - np.outer(first, first / weight)
