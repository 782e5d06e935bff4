"""Weight, mean vector and scatter matrix of a block of real columns."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from deciban import kernels
from deciban.arrays import TOO_LARGE, Codes, Floats, Integers, Numbers, scatter_to
from deciban.statistics.base import checked_scatter, merged_classes, remaining
from deciban.statistics.exact import minus, plus, quotient, times, two_sum
from deciban.statistics.moments import comparable_moments, refuse_too_large


@dataclass(frozen=True)
class Scatter:
    """Weight of each class, mean of each class and column, scatter matrix of each class, as Moments has them.

    Rows with a missing cell are left out (complete cases, so that every scatter matrix is positive).
    """

    weight: Floats
    mean: Floats
    mean_low: Floats
    scatter: Floats
    scatter_low: Floats
    rounding_error: Floats

    @classmethod
    def empty(cls, classes: int, columns: int) -> Self:
        vector, matrix = (classes, columns), (classes, columns, columns)
        return cls(np.zeros(classes), *(np.zeros(shape) for shape in (vector, vector, matrix, matrix, vector)))

    @classmethod
    def count(cls, numbers: Numbers, labels: Codes, weights: Floats, classes: int) -> Self:
        """The scatter of the complete rows; an infinite cell is refused."""
        result = cls.empty(classes, numbers.shape[1])
        there = (labels >= 0) & (weights > 0.0)
        if not kernels.all_finite(numbers.ravel()):
            refuse_too_large(numbers)
            there &= ~np.isnan(numbers).any(axis=1)
        usable = np.flatnonzero(there)
        order = usable[np.argsort(labels[usable], kind="stable")]
        ends = np.cumsum(np.bincount(labels[usable], minlength=classes))
        for c in np.unique(labels[usable]):
            rows = order[ends[c - 1] if c else 0 : ends[c]]
            result.weight[c] = weights[rows].sum()
            _fill_class(result, c, numbers[rows].astype(np.float64, copy=False), weights[rows])
        largest = np.abs(result.mean).max(initial=0.0) + np.sqrt(result.rounding_error.max(initial=0.0))
        if not largest < 1e-12 * TOO_LARGE:
            refuse_too_large(numbers)
        return result

    def merge(self, other: Self) -> "Scatter":
        return _combined(self, other, self.weight + other.weight, 1.0)

    def remove(self, other: Self, slack: float | None = None, strict: bool = True) -> "Scatter":
        left = _combined(self, other, remaining(self.weight, other.weight, slack), -1.0)
        left.rounding_error[left.weight == 0.0] = 0.0
        overall = np.maximum(left.over_classes()._diagonal(), 0.0) / max(left.weight.sum(), 1e-300)
        weight = left.weight[:, None]
        strict = strict and slack is None
        checked = checked_scatter(left._diagonal(), self._diagonal(), left.rounding_error, weight, overall, strict)
        gone = checked == 0.0
        for array in (left.scatter, left.scatter_low):
            array[gone[:, :, None] | gone[:, None, :]] = 0.0
        return left

    def scale(self, factor: float) -> "Scatter":
        scaled = (array * factor for array in (self.scatter, self.scatter_low, self.rounding_error))
        return Scatter(self.weight * factor, self.mean, self.mean_low, *scaled)

    def _arrays(self) -> tuple[Floats, ...]:
        return self.weight, self.mean, self.mean_low, self.scatter, self.scatter_low, self.rounding_error

    def _diagonal(self) -> Floats:
        return np.diagonal(self.scatter, axis1=1, axis2=2)

    def place_classes(self, positions: Integers, size: int) -> "Scatter":
        return Scatter(*(scatter_to(array, positions, size) for array in self._arrays()))

    def place_columns(self, positions: Integers, size: int) -> "Scatter":
        mean, low, scatter, rest, rounding_error = (
            scatter_to(array, positions, size, axis=1) for array in self._arrays()[1:]
        )
        scatter, rest = (scatter_to(array, positions, size, axis=2) for array in (scatter, rest))
        return Scatter(self.weight, mean, low, scatter, rest, rounding_error)

    def over_classes(self) -> "Scatter":
        """The scatter of all classes together, as of one class."""
        return merged_classes(self, self.weight.size)

    def comparable(self) -> tuple[Floats, ...]:
        """What counts of the same rows have in common to seven digits, whatever batches they were counted in."""
        return comparable_moments(self.weight[:, None], self.mean, self._diagonal())


def _combined(one: Scatter, other: Scatter, weight: Floats, sign: float) -> Scatter:
    """The first with the second (sign 1) or without it (sign -1); `weight` is that of the result.

    The algebra of moments, with products of two columns.
    """
    mean1, mean2 = (one.mean, one.mean_low), (other.mean, other.mean_low)
    with np.errstate(all="ignore"):  # where one of the weights is 0 another array is chosen
        high, low = quotient(sign * other.weight, weight)
        share = high[:, None], low[:, None]
        delta = minus(mean2, mean1)
        mean = plus(mean1, times(delta, share))
        rows, columns = (delta[0][:, :, None], delta[1][:, :, None]), (delta[0][:, None], delta[1][:, None])
        factor = times((one.weight[:, None, None], 0.0), (high[:, None, None], low[:, None, None]))
        scatter = plus((one.scatter, one.scatter_low), (sign * other.scatter, sign * other.scatter_low))
        scatter = plus(scatter, times(times(rows, columns), factor))
    both = (weight, *mean, *scatter, one.rounding_error + other.rounding_error)
    chosen = []
    for mine, theirs, together in zip(one._arrays(), other._arrays(), both, strict=True):
        here = (slice(None), *(None,) * (together.ndim - 1))
        cases = (other.weight == 0.0)[here], (weight == 0.0)[here], (one.weight == 0.0)[here]
        chosen.append(np.select(cases, (mine, np.zeros_like(together), theirs), together))
    return Scatter(*chosen)


def _fill_class(result: Scatter, c: int, rows: Floats, weights: Floats) -> None:
    """Set the mean and scatter of class `c` to those of its rows: about the first row, then about the mean found."""
    weight = result.weight[c]
    origin = rows[0] + (weights @ (rows - rows[0])) / weight
    deviations = rows - origin
    first = weights @ deviations
    result.mean[c], result.mean_low[c] = two_sum(origin, first / weight)
    rooted = deviations if (weights == 1.0).all() else np.sqrt(weights)[:, None] * deviations
    squares = rooted.T @ rooted
    result.scatter[c] = squares - np.outer(first, first / weight)
    result.rounding_error[c] = 16.0 * np.finfo(np.float64).eps * np.diag(squares)
