"""What is asked of a block of numbers: the scatter matrix of each class, of the rows where no cell is missing."""

from collections.abc import Sequence

import numpy as np

from deciban.fitting.engines.asking import Classes, EngineRows, mean_of, minus
from deciban.fitting.engines.numbers import FAR_ADDED, lost
from deciban.statistics import Scatter
from deciban.statistics.exact import two_sum
from deciban.util.arrays import Flags, Floats


def ask_scatter(asked: EngineRows, values: Sequence[str], guess: Floats, constant: Floats, classes: Classes) -> Scatter:
    """The scatter matrices of values: about a guess of their means or, where that is far off, about the means.

    constant: what a value is in each class where it is always the same, NaN elsewhere.
    """
    about = [minus(asked, value, near) for value, near in zip(values, guess, strict=True)]
    near = np.broadcast_to(guess, constant.shape)
    products = Products.of(asked, asked.cells(about, complete=True), len(values), classes)
    if (products.far & np.isnan(constant)).any():
        source = asked.about_means(values, complete=True)
        means = [f"max({mean_of(f'v{k}')})" for k in range(len(values))]
        near = np.nan_to_num(asked.of_each_class(source, means, classes)[0].T)
        products = Products.of(asked, source, len(values), classes)
    return products.scatter(near, constant, classes)


class Products:
    """The weight of each class, the sums of its values, and those of the products of two."""

    def __init__(self, weight: Floats, first: Floats, second: Floats) -> None:
        self.weight, self.first, self.second = weight, first, second
        self.step = first / np.where(weight > 0.0, weight, 1.0)[:, None]
        self.scattered = second - first[:, :, None] * self.step[:, None, :]

    @classmethod
    def of(cls, asked: EngineRows, source: str, size: int, classes: Classes) -> "Products":
        values = [f"v{k}" for k in range(size)]
        rows, columns = np.triu_indices(size)
        products = [asked.product(values[i], values[j]) for i, j in zip(rows, columns, strict=True)]
        aggregates = [asked.amount, *map(asked.total, (*values, *products))]
        found = np.nan_to_num(asked.of_each_class(source, aggregates, classes)[0])
        second = np.zeros((classes.labels.size, size, size))
        second[:, rows, columns] = second[:, columns, rows] = found[1 + size :].T
        return cls(found[0], found[1 : 1 + size].T, second)

    @property
    def far(self) -> Flags:
        """Where values were too far from zero, beside their deviation, for the squares to be exact."""
        own = np.diagonal(self.scattered, axis1=1, axis2=2)
        return np.asarray(self.first * self.step > FAR_ADDED**2 * own)

    def scatter(self, near: Floats, constant: Floats, classes: Classes) -> Scatter:
        """The statistic of values that these sums are about `near`."""
        there, same = (self.weight > 0.0)[:, None], ~np.isnan(constant)
        mean, low = two_sum(near, self.step)
        mean, low = np.where(same, constant, mean), np.where(same, 0.0, low)
        matrix = np.where(same[:, :, None] | same[:, None, :], 0.0, self.scattered)
        squares = np.diagonal(self.second, axis1=1, axis2=2)
        error = np.where(same, 0.0, lost(self.weight, classes)[:, None] * squares)
        mean, low, error = (np.where(there, array, 0.0) for array in (mean, low, error))
        matrix = np.where(there[:, :, None], matrix, 0.0)
        return Scatter.of_values(self.weight, (mean, low), matrix, error)
