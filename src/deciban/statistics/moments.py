"""Weight, mean and scatter of real columns."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from deciban import kernels
from deciban.arrays import Codes, Floats, Integers, Numbers, placed
from deciban.errors import BadCell, ForgetError
from deciban.statistics.base import FUZZ, remaining


@dataclass(frozen=True)
class Moments:
    """Weight, mean and scatter (the weighted sum of squared deviations from the mean), each class by column.

    The true mean is mean + mean_low and the true scatter is scatter + scatter_low.
    """

    weight: Floats
    mean: Floats
    mean_low: Floats
    scatter: Floats
    scatter_low: Floats

    @classmethod
    def empty(cls, classes: int, columns: int) -> Self:
        return cls(*(np.zeros((classes, columns)) for _ in range(5)))

    @classmethod
    def count(cls, numbers: Numbers, labels: Codes, weights: Floats, classes: int) -> Self:
        """The moments of the rows; NaN is missing, an infinite cell is refused."""
        moments = cls.empty(classes, numbers.shape[1])
        if numbers.size and not kernels.count_moments(numbers, labels, weights, *moments._arrays()):
            raise _unusable(numbers)
        return moments

    def merge(self, other: Self) -> "Moments":
        merged = self._copy()
        kernels.merge_moments(*merged._arrays(), *other._arrays())
        return merged

    def remove(self, other: Self) -> "Moments":
        weight = remaining(self.weight, other.weight)
        left = self._copy()
        kernels.remove_moments(*left._arrays(), *other._arrays(), weight)
        if np.any(left.scatter < -FUZZ * self.scatter):
            raise ForgetError(
                "these rows cannot be forgotten: the spread of a column would become negative; "
                "give just the rows that the model has learned"
            )
        negative = left.scatter < 0.0
        left.scatter[negative] = 0.0
        left.scatter_low[negative] = 0.0
        return left

    def scale(self, factor: float) -> "Moments":
        return Moments(self.weight * factor, self.mean, self.mean_low, self.scatter * factor, self.scatter_low * factor)

    def place_classes(self, positions: Integers, size: int) -> "Moments":
        return Moments(*(placed(array, positions, size) for array in self._arrays()))

    def place_columns(self, positions: Integers, size: int) -> "Moments":
        return Moments(*(placed(array, positions, size, axis=1) for array in self._arrays()))

    def over_classes(self) -> "Moments":
        """The moments of all classes together, as of one class."""
        total = Moments.empty(1, self.weight.shape[1])
        for c in range(self.weight.shape[0]):
            kernels.merge_moments(*total._arrays(), *(array[c : c + 1] for array in self._arrays()))
        return total

    def variance(self, ddof: float = 0.0) -> Floats:
        """scatter / (weight - ddof); zero where nothing was counted."""
        divisor = np.maximum(self.weight - ddof, 0.0)
        scatter = np.maximum(self.scatter + self.scatter_low, 0.0)
        return np.divide(scatter, divisor, out=np.zeros_like(scatter), where=divisor > 0.0)

    def _arrays(self) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        return self.weight, self.mean, self.mean_low, self.scatter, self.scatter_low

    def _copy(self) -> "Moments":
        return Moments(*(array.copy() for array in self._arrays()))


def _unusable(numbers: Numbers) -> BadCell:
    """The first cell that is infinite or too large to square."""
    with np.errstate(over="ignore"):
        wide = numbers.astype(np.float64)
        row, column = np.argwhere(np.isinf(wide) | (np.abs(wide) > 1e140))[0]
    value = wide[row, column]
    problem = f"found {value!r}, which is " + (
        "infinite (infinity is not a number to learn from)" if np.isinf(value) else "too large to square"
    )
    return BadCell(int(column), int(row), problem, "correct it, leave the cell empty, or use smaller units")
