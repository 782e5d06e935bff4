"""Weight, mean and scatter of real columns."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from deciban import kernels
from deciban.arrays import TOO_LARGE, Codes, Floats, Integers, Numbers, scatter_to
from deciban.errors import BadCell
from deciban.statistics.base import checked_scatter, merged_classes, remaining
from deciban.statistics.exact import minus, plus, quotient, times, two_sum

# Rows of a class whose mean is the first guess of the class's mean.
GUESS_ROWS = 32

# Means and deviations beyond this are a reason to look for cells that are too large.
SUSPICIOUS = 0.001 * float(TOO_LARGE)

# The share by which a sum of squares may be wrong.
SUM_ERROR = 4.0 * 2.0**-52

# A mean below this share of the standard deviation is rounding.
ROUNDED_MEAN = 1e-6


@dataclass(frozen=True)
class Moments:
    """Weight, mean and scatter (the weighted sum of squared deviations from the mean), each class by column.

    The array has six rows: weight; mean, and what it leaves out; scatter, and what it leaves out; and
    `rounding_error`, by how much the scatter may be wrong. The true mean is mean + mean_low and the true scatter is
    scatter + scatter_low: being unevaluated sums of two doubles, they lose nothing when a million one-row batches are
    merged; only rows that were summed together (at memory speed) have a rounding error.
    """

    array: Floats

    @classmethod
    def empty(cls, classes: int, columns: int) -> Self:
        return cls(np.zeros((6, classes, columns)))

    @classmethod
    def count(cls, numbers: Numbers, labels: Codes, weights: Floats, classes: int) -> Self:
        """The moments of the rows; NaN is missing, an infinite cell is refused."""
        if not numbers.size:
            return cls.empty(classes, numbers.shape[1])
        shift, sums = _summed(numbers, labels, weights, classes)
        n, first, second, rest = sums
        there = n > 0.0
        with np.errstate(all="ignore"):  # cells that are not there, or too large
            step = quotient(first, n)
            mean = plus((shift, 0.0), step)
            scatter = minus((second, -rest), times((first, 0.0), step))
            if not (~there | ((np.abs(mean[0]) < SUSPICIOUS) & (second < n * SUSPICIOUS**2))).all():
                refuse_too_large(numbers)
        return cls(np.where(there, np.stack([n, *mean, *scatter, SUM_ERROR * second]), 0.0))

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
        return Moments(_combined(self.array, other.array, self.weight + other.weight, 1.0))

    def remove(self, other: Self, slack: float | None = None) -> "Moments":
        left = _combined(self.array, other.array, remaining(self.weight, other.weight, slack), -1.0)
        overall = Moments(
            np.maximum(left, np.array([0, -np.inf, -np.inf, 0, -np.inf, 0])[:, None, None])
        ).over_classes()
        variance, strict = overall.variance(), slack is None
        left[3:, checked_scatter(left[3], self.scatter, left[5], left[0], variance, strict) == 0.0] = 0.0
        return Moments(left)

    def left_out(self, x: Floats, labels: Codes, removed: Floats, column: int) -> "Moments":
        """The moments of a column in the class of each of its cells x without that cell: one column for each cell."""
        weight, mean, low, scatter, rest, rounding_error = self.array[:, labels, column]
        left = weight - removed
        left = np.where(left > 1e-12 * weight, left, 0.0)
        share = np.divide(removed, left, out=np.zeros_like(left), where=left > 0.0)
        away = (x - mean) - low
        before = scatter + rest
        scatter = before - share * weight * away**2
        scatter = np.where((left > 0.0) & (scatter > 1e-14 * before), scatter, 0.0)
        moved, lost = two_sum(mean, low - share * away)
        rows = (left, moved, lost, scatter, np.zeros_like(left), rounding_error)
        return Moments(np.stack(rows)[:, None, :])

    def scale(self, factor: float) -> "Moments":
        return Moments(self.array * np.array([factor, 1.0, 1.0, factor, factor, factor])[:, None, None])

    def place_classes(self, positions: Integers, size: int) -> "Moments":
        return Moments(scatter_to(self.array, positions, size, axis=1))

    def place_columns(self, positions: Integers, size: int) -> "Moments":
        return Moments(scatter_to(self.array, positions, size, axis=2))

    def over_classes(self) -> "Moments":
        """The moments of all classes together, as of one class."""
        return merged_classes(self, self.array.shape[1])

    def comparable(self) -> tuple[Floats, ...]:
        """What counts of the same rows have in common to seven digits, whatever batches they were counted in."""
        return comparable_moments(self.weight, self.mean, self.scatter)

    def variance(self, ddof: float = 0.0) -> Floats:
        """scatter / (weight - ddof); zero where nothing was counted."""
        divisor = np.maximum(self.weight - ddof, 0.0)
        scatter = np.maximum(self.scatter + self.scatter_low, 0.0)
        return np.divide(scatter, divisor, out=np.zeros_like(scatter), where=divisor > 0.0)


def _summed(numbers: Numbers, labels: Codes, weights: Floats, classes: int) -> tuple[Floats, Floats]:
    """Numbers near the means, and the sums of the deviations from them; see `kernels.moments`.

    Where the first guess of a mean was far off, beside the spread, all is summed once more about the mean just found.
    """
    shape = (classes, numbers.shape[1])
    shift = _guessed_means(numbers, labels, weights, shape)
    holes = False
    for attempt in range(2):
        sums = np.zeros((4, *shape))
        if not holes:
            part = np.zeros((2, *shape))
            kernels.sum_deviations(numbers, labels, weights, shift, part, np.zeros(classes, dtype=np.int64), sums)
            with np.errstate(all="ignore"):
                sums[0] = sums[0, :, :1]
                sums[1] += part[0]
                term = part[1] - sums[3]
                total = sums[2] + term
                sums[2], sums[3] = total, (total - sums[2]) - term
            holes = not np.isfinite(sums[2])[sums[0] > 0.0].all()  # or a cell is infinite or too large
        if holes:
            sums[:] = 0.0
            kernels.sum_present_deviations(numbers, labels, weights, shift, sums)
            if not np.isfinite(sums[2]).all():
                break
        n, first, second, _ = sums
        poor = (n > 0.0) & (first * first > 0.5 * second * n)
        if attempt == 1 or not poor.any():
            break
        step = np.divide(first, n, out=np.zeros(shape), where=poor)
        spread = np.divide(second, n, out=np.zeros(shape), where=poor) - step * step
        shift = np.where(poor, few_digits(shift + step, spread), shift)
    return shift, sums


def _guessed_means(numbers: Numbers, labels: Codes, weights: Floats, shape: tuple[int, int]) -> Floats:
    """The mean of a few values of each class and column, 0 where there are none."""
    sums = np.zeros((4, *shape))
    classes = np.count_nonzero(np.bincount(labels[labels >= 0], minlength=1))
    kernels.sum_first_rows(numbers, labels, weights, GUESS_ROWS * shape[0], classes * shape[1], sums)
    n, first, total, squares = sums
    with np.errstate(over="ignore", invalid="ignore"):  # cells that are too large are found later
        step = np.divide(total, n, out=np.zeros(shape), where=n > 0.0)
        spread = np.divide(squares, n, out=np.zeros(shape), where=n > 0.0) - step * step
        return few_digits(first + step, spread)


def few_digits(shift: Floats, variance: Floats) -> Floats:
    """`shift` to a sixteenth of the deviation: then sums over whole numbers are exact, and so is forgetting."""
    known = (variance > 0.0) & np.isfinite(variance)
    unit = np.ldexp(1.0, np.floor(0.5 * np.log2(np.where(known, variance, 1.0)) - 3.0).astype(np.int64))
    return np.where(known, np.floor(shift / unit + 0.5) * unit, shift)


def _combined(one: Floats, other: Floats, weight: Floats, sign: float) -> Floats:
    """The moments of the first set with the second (sign 1) or without it (sign -1); `weight` is that of the result.

    The update of Chan, Golub and LeVeque, and its inverse.
    """
    n1, mean1, scatter1, error1 = one[0], (one[1], one[2]), (one[3], one[4]), one[5]
    n2, mean2, scatter2, error2 = other[0], (other[1], other[2]), (sign * other[3], sign * other[4]), other[5]
    with np.errstate(all="ignore"):  # where one of the weights is 0 another array is chosen
        share = quotient(sign * n2, weight)
        delta = minus(mean2, mean1)
        mean = plus(mean1, times(delta, share))
        between = times(times(delta, delta), times((n1, 0.0), share))
        scatter = plus(plus(scatter1, scatter2), between)
    both = np.stack([weight, *mean, *scatter, error1 + error2])
    return np.select([n2 == 0.0, weight == 0.0, n1 == 0.0], [one, np.zeros_like(both), other], both)


def comparable_moments(weight: Floats, mean: Floats, scatter: Floats) -> tuple[Floats, ...]:
    """Weight, mean and scatter without signs of zero and without means that are nothing but rounding."""
    spread = np.sqrt(np.maximum(scatter, 0.0) / np.maximum(weight, 1e-300))
    return weight, np.where(np.abs(mean) > ROUNDED_MEAN * spread, mean, 0.0) + 0.0, scatter + 0.0


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
