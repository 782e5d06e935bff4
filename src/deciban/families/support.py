"""The cells that a family can learn and produce."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from deciban import kernels
from deciban.families.checks import Outside, refuse_stored
from deciban.util.arrays import Flags, Numbers
from deciban.util.sparse import SparseRows


@dataclass(frozen=True)
class Support:
    """A set of cells: the name that messages have for them, the remedy for others, and whether cells are in it."""

    expected: str
    remedy: str
    contains: Callable[[Any], Flags]

    def refuse_others(self, cells: Numbers | SparseRows) -> None:
        """A BadCell for the first cell that is neither in the set nor missing; of sparse rows, among the stored."""
        stored = cells if isinstance(cells, np.ndarray) else cells.stored
        inside = self.contains(stored)
        if not inside.all():
            refuse_stored(inside, cells, self.expected, self.remedy)

    def keep(self, numbers: Numbers) -> Numbers:
        """The numbers, NaN in place of those outside."""
        inside = self.contains(numbers)
        return numbers if inside.all() else np.where(inside, numbers, np.nan)

    def learnable(self, numbers: Numbers, outside: Outside) -> Numbers:
        """The numbers to learn from: others are refused, or are missing."""
        if outside == "ignore":
            return self.keep(numbers)
        self.refuse_others(numbers)
        return numbers


def _are_counts(numbers: Numbers) -> Flags:
    return np.asarray((numbers >= 0) & (numbers == np.floor(numbers)))


def _are_texts(values: Any) -> Flags:
    listed = values.tolist() if isinstance(values, np.ndarray) else values.to_pylist()
    return np.array([value is None or isinstance(value, str) for value in listed], dtype=np.bool_)


FINITE = Support("a finite number (not infinity)", "correct it or leave it empty", lambda x: ~np.isinf(x))
POSITIVE = Support(
    "a number above 0", "use Gaussian() or Binned() for this column, or leave the cell empty", lambda x: x > 0
)
COUNTS = Support("a count 0, 1, 2, ...", "use Gamma() or Gaussian() for this column", _are_counts)
FLAGS = Support(
    "0 or 1", "give Bernoulli a threshold=, or use Categorical() or Gaussian()", lambda x: (x == 0) | (x == 1)
)
AMOUNTS = Support(
    "a count: not negative, not infinite (Negative values in data passed to a count family)",
    "use Gaussian() for this column",
    lambda x: (x >= 0) & (x < np.inf),
)
VALUES = Support("a value", "leave the cell empty", lambda values: np.ones(len(values), dtype=np.bool_))
TEXTS = Support("text", "use Gaussian() or Categorical() for this column", _are_texts)


def refuse_infinite(numbers: Numbers) -> None:
    """A BadCell for the first infinite cell."""
    if not kernels.all_finite(numbers.ravel()):
        FINITE.refuse_others(numbers)
