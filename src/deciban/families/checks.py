"""Checks of the parameters of families, and of the cells they are given."""

import math
from typing import Literal

import numpy as np

from deciban.errors import BadCell, UsageError
from deciban.util.arrays import Flags, Floats, Integers, Numbers
from deciban.util.sparse import SparseRows

# What a value that was never learned is worth: no evidence, the probability of a zero count, or an error.
Unseen = Literal["ignore", "smooth", "error"]

# What happens to a number outside the support of a family: it is refused, or taken for a missing cell.
Outside = Literal["refuse", "ignore"]

# A smoothing for all columns, or one for each.
Alpha = float | tuple[float, ...]


def check_amount(name: str, value: float) -> None:
    """Refuse anything but a finite number >= 0."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0.0 <= value < math.inf:
        raise UsageError(f"{name}={value!r}: give a finite number that is at least 0")


def check_alpha(alpha: Alpha) -> None:
    """Refuse anything but a smoothing that is at least 0, or one for each column."""
    for amount in alpha if isinstance(alpha, tuple) else (alpha,):
        check_amount("alpha", amount)


def as_alpha(alpha: Alpha) -> float | Floats:
    """The smoothing as arithmetic takes it."""
    return np.array(alpha) if isinstance(alpha, tuple) else alpha


def check_unseen(unseen: str) -> None:
    """Refuse anything but one of the three choices."""
    if unseen not in ("ignore", "smooth", "error"):
        raise UsageError(f"unseen={unseen!r}: choose 'ignore', 'smooth' or 'error'")


def check_outside(outside: str) -> None:
    """Refuse anything but one of the two choices."""
    if outside not in ("refuse", "ignore"):
        raise UsageError(f"outside={outside!r}: choose 'refuse' or 'ignore'")


def refuse_unless(usable: Flags, numbers: Numbers, expected: str, remedy: str) -> None:
    """A BadCell for the first cell that is present and not usable."""
    bad = ~usable & ~np.isnan(numbers)
    if bad.any():
        row, column = (int(i) for i in np.argwhere(bad)[0])
        raise BadCell(column, row, f"found {numbers[row, column].item()!r}, expected {expected}", remedy)


def refuse_stored(usable: Flags, cells: Numbers | SparseRows, expected: str, remedy: str) -> None:
    """A BadCell for the first cell that is present and not usable; `usable` is of the stored cells of sparse rows."""
    if isinstance(cells, np.ndarray):
        refuse_unless(usable, cells, expected, remedy)
        return
    bad = np.flatnonzero(~usable & ~np.isnan(cells.stored))
    if bad.size:
        first = bad[0] + cells.indptr[0]
        row = int(np.searchsorted(cells.indptr, first, side="right")) - 1
        found = cells.data[first].item()
        raise BadCell(int(cells.indices[first]), row, f"found {found!r}, expected {expected}", remedy)


def impossible(outside: Flags, weight: Floats, slot: Integers, out: Floats) -> None:
    """Give the rows whose cell lies outside a family's support probability 0 in every class."""
    for column in np.flatnonzero(outside.any(axis=0)):
        if weight[column] > 0.0:
            out[outside[:, column], slot[column]] = -np.inf
