"""Checks of the parameters of families, and the cells that families can learn and produce."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from deciban import kernels
from deciban.errors import Argument, BadCell, UsageError
from deciban.util.arrays import Flags, Floats, Integers, Numbers
from deciban.util.sparse import SparseRows

# What a value that was never learned is worth: no evidence, the probability of a zero count, or an error.
Unseen = Literal["ignore", "smooth", "error"]

# What happens to a number outside the support of a family: it is refused, or taken for a missing cell.
Outside = Literal["error", "ignore"]

# A smoothing for all columns, or one for each.
Alpha = float | tuple[float, ...]


def check_amount(name: str, value: float) -> None:
    """Refuse anything but a finite number >= 0."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0.0 <= value < math.inf:
        raise UsageError("give a finite number that is at least 0", parameter=Argument(name, value))


def check_alpha(alpha: Alpha) -> None:
    """Refuse anything but a smoothing that is at least 0, or one for each column."""
    for amount in alpha if isinstance(alpha, tuple) else (alpha,):
        check_amount("alpha", amount)


def alpha_to_array(alpha: Alpha) -> float | Floats:
    """The smoothing as arithmetic takes it."""
    return np.array(alpha) if isinstance(alpha, tuple) else alpha


def check_unseen(unseen: str) -> None:
    """Refuse anything but one of the three choices."""
    if unseen not in ("ignore", "smooth", "error"):
        raise UsageError("choose 'ignore', 'smooth' or 'error'", parameter=Argument("unseen", unseen))


def check_outside(outside: str) -> None:
    """Refuse anything but one of the two choices."""
    if outside not in ("error", "ignore"):
        raise UsageError("choose 'error' or 'ignore'", parameter=Argument("outside", outside))


def raise_unless(usable: Flags, numbers: Numbers, expected: str, remedy: str) -> None:
    """A BadCell for the first cell that is present and not usable."""
    bad = ~usable & ~np.isnan(numbers)
    if bad.any():
        row, column = (int(i) for i in np.argwhere(bad)[0])
        raise BadCell(column, row, f"found {numbers[row, column].item()!r}, expected {expected}", remedy)


def raise_unless_stored(usable: Flags, cells: Numbers | SparseRows, expected: str, remedy: str) -> None:
    """A BadCell for the first cell that is present and not usable; `usable` is of the stored cells of sparse rows."""
    if isinstance(cells, np.ndarray):
        raise_unless(usable, cells, expected, remedy)
        return
    bad = np.flatnonzero(~usable & ~np.isnan(cells.stored))
    if bad.size:
        first = bad[0] + cells.indptr[0]
        row = int(np.searchsorted(cells.indptr, first, side="right")) - 1
        found = cells.data[first].item()
        raise BadCell(int(cells.indices[first]), row, f"found {found!r}, expected {expected}", remedy)


def score_impossible(outside: Flags, weight: Floats, slot: Integers, out: Floats) -> None:
    """Give the rows whose cell lies outside a family's support probability 0 in every class."""
    for column in np.flatnonzero(outside.any(axis=0)):
        if weight[column] > 0.0:
            out[outside[:, column], slot[column]] = -np.inf


@dataclass(frozen=True)
class Support:
    """A set of cells: the name that messages have for them, the remedy for others, and whether cells are in it."""

    expected: str
    remedy: str
    contains: Callable[[Any], Flags]

    def check(self, cells: Numbers | SparseRows) -> None:
        """A BadCell for the first cell that is neither in the set nor missing; of sparse rows, among the stored."""
        stored = cells if isinstance(cells, np.ndarray) else cells.stored
        inside = self.contains(stored)
        if not inside.all():
            raise_unless_stored(inside, cells, self.expected, self.remedy)

    def mask_outside(self, numbers: Numbers) -> Numbers:
        """The numbers, NaN in place of those outside."""
        inside = self.contains(numbers)
        return numbers if inside.all() else np.where(inside, numbers, np.nan)

    def handle_outside(self, numbers: Numbers, outside: Outside) -> Numbers:
        """The numbers to learn from: others are refused, or are missing."""
        if outside == "ignore":
            return self.mask_outside(numbers)
        self.check(numbers)
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


def check_finite(numbers: Numbers) -> None:
    """A BadCell for the first infinite cell."""
    if not kernels.cell_counts.all_finite(numbers.ravel()):
        FINITE.check(numbers)
