"""Weight, mean and scatter of real columns."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from deciban import kernels
from deciban.arrays import TOO_LARGE, Codes, Floats, Integers, Numbers, placed
from deciban.errors import BadCell
from deciban.statistics.base import remaining, settled


@dataclass(frozen=True)
class Moments:
    """Weight, mean and scatter (the weighted sum of squared deviations from the mean), each class by column.

    The true mean is mean + mean_low and the true scatter is scatter + scatter_low, give or take `doubt`.
    """

    array: Floats

    @classmethod
    def empty(cls, classes: int, columns: int) -> Self:
        return cls(np.zeros((6, classes, columns)))

    @classmethod
    def count(cls, numbers: Numbers, labels: Codes, weights: Floats, classes: int) -> Self:
        """The moments of the rows; NaN is missing, an infinite cell is refused."""
        moments = cls.empty(classes, numbers.shape[1])
        if numbers.size and not kernels.count_moments(numbers, labels, weights, moments.array):
            refuse_too_large(numbers)
        return moments

    @property
    def weight(self) -> Floats:
        return self._row(0)

    @property
    def mean(self) -> Floats:
        return self._row(1)

    @property
    def mean_low(self) -> Floats:
        return self._row(2)

    @property
    def scatter(self) -> Floats:
        return self._row(3)

    @property
    def scatter_low(self) -> Floats:
        return self._row(4)

    def _row(self, k: int) -> Floats:
        row: Floats = self.array[k]
        return row

    def merge(self, other: Self) -> "Moments":
        merged = self.array.copy()
        kernels.combine_moments(merged, other.array, self.weight + other.weight, 1.0)
        return Moments(merged)

    def remove(self, other: Self) -> "Moments":
        left = self.array.copy()
        kernels.combine_moments(left, other.array, remaining(self.weight, other.weight), -1.0)
        overall = Moments(
            np.maximum(left, np.array([0, -np.inf, -np.inf, 0, -np.inf, 0])[:, None, None])
        ).over_classes()
        left[3:, settled(left[3], self.scatter, left[5], left[0], overall.variance()) == 0.0] = 0.0
        return Moments(left)

    def left_out(self, x: Floats, labels: Codes, taken: Floats, column: int) -> "Moments":
        """What is left of a column in the class of each of its cells x without that cell: a column for each cell."""
        weight, mean, low, scatter, rest, doubt = self.array[:, labels, column]
        left = weight - taken
        left = np.where(left > 1e-12 * weight, left, 0.0)
        share = np.divide(taken, left, out=np.zeros_like(left), where=left > 0.0)
        away = (x - mean) - low
        before = scatter + rest
        scatter = before - share * weight * away**2
        scatter = np.where((left > 0.0) & (scatter > 1e-14 * before), scatter, 0.0)
        change = low - share * away
        moved = mean + change
        lost = (mean - (moved - (moved - mean))) + (change - (moved - mean))  # by rounding of the sum
        rows = (left, moved, lost, scatter, np.zeros_like(left), doubt)
        return Moments(np.stack(rows)[:, None, :])

    def scale(self, factor: float) -> "Moments":
        return Moments(self.array * np.array([factor, 1.0, 1.0, factor, factor, factor])[:, None, None])

    def place_classes(self, positions: Integers, size: int) -> "Moments":
        return Moments(placed(self.array, positions, size, axis=1))

    def place_columns(self, positions: Integers, size: int) -> "Moments":
        return Moments(placed(self.array, positions, size, axis=2))

    def over_classes(self) -> "Moments":
        """The moments of all classes together, as of one class."""
        total = Moments.empty(1, self.array.shape[2])
        for c in range(self.array.shape[1]):
            total = total.merge(Moments(np.ascontiguousarray(self.array[:, c : c + 1])))
        return total

    def variance(self, ddof: float = 0.0) -> Floats:
        """scatter / (weight - ddof); zero where nothing was counted."""
        divisor = np.maximum(self.weight - ddof, 0.0)
        scatter = np.maximum(self.scatter + self.scatter_low, 0.0)
        return np.divide(scatter, divisor, out=np.zeros_like(scatter), where=divisor > 0.0)


def refuse_too_large(numbers: Numbers) -> None:
    """A BadCell for the first cell that is infinite or too large to square, if there is one."""
    with np.errstate(invalid="ignore"):
        wrong = np.abs(numbers) > TOO_LARGE
    if wrong.any():
        row, column = (int(i) for i in np.argwhere(wrong)[0])
        value = float(numbers[row, column])
        why = "infinite (infinity is not a number to learn from)" if np.isinf(value) else "too large to square"
        remedy = "correct it, leave the cell empty, or use smaller units"
        raise BadCell(column, row, f"found {value!r}, which is {why}", remedy)
