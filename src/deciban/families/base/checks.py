"""Checks of the parameters of families, and the supports of distributions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from deciban import kernels
from deciban.errors import Argument, BadCell, Message, UsageError
from deciban.util.arrays import Flags, Floats, Integers, Numbers
from deciban.util.sparse import SparseRows

# How to score a value that was not seen in training: no evidence, the probability of a zero count, or an error.
Unseen = Literal["ignore", "smooth", "error"]

# How to treat a number outside the support of a family: raise an error, or treat it as missing.
Outside = Literal["error", "ignore"]

# Smoothing: one number for all columns, or one per column.
Alpha = float | tuple[float, ...]


def check_amount(name: str, value: float) -> None:
    """Raise UsageError unless the value is a finite number >= 0."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0.0 <= value < math.inf:
        raise UsageError("expected a finite number, at least 0", parameter=Argument(name, value))


def check_alpha(alpha: Alpha) -> None:
    """Raise UsageError unless alpha, or each entry of a tuple, is a finite number >= 0."""
    for amount in alpha if isinstance(alpha, tuple) else (alpha,):
        check_amount("alpha", amount)


def alpha_to_array(alpha: Alpha) -> float | Floats:
    """Return a tuple as an array, and a number as it is."""
    return np.array(alpha) if isinstance(alpha, tuple) else alpha


def check_flag(name: str, value: bool) -> None:
    """Raise UsageError unless the value is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise UsageError("expected True or False", parameter=Argument(name, value))


def check_unseen(unseen: str) -> None:
    """Raise UsageError unless `unseen` is one of its three values."""
    if unseen not in ("ignore", "smooth", "error"):
        raise UsageError(
            "unknown value", remedy="choose 'ignore', 'smooth' or 'error'", parameter=Argument("unseen", unseen)
        )


def check_outside(outside: str) -> None:
    """Raise UsageError unless `outside` is one of its two values."""
    if outside not in ("error", "ignore"):
        raise UsageError("unknown value", remedy="choose 'error' or 'ignore'", parameter=Argument("outside", outside))


def raise_unless(usable: Flags, numbers: Numbers, expected: str, remedy: Message) -> None:
    """Raise BadCell for the first cell that is neither missing nor usable."""
    bad = ~usable & ~np.isnan(numbers)
    if bad.any():
        row, column = (int(i) for i in np.argwhere(bad)[0])
        raise BadCell(column, row, f"found {numbers[row, column].item()!r}, expected {expected}", remedy)


def raise_unless_stored(usable: Flags, cells: Numbers | SparseRows, expected: str, remedy: Message) -> None:
    """Raise BadCell for the first cell that is neither missing nor usable; of sparse rows, among the stored cells."""
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
    """Give rows with a cell outside the support probability 0 in every class."""
    for column in np.flatnonzero(outside.any(axis=0)):
        if weight[column] > 0.0:
            out[outside[:, column], slot[column]] = -np.inf


@dataclass(frozen=True)
class Support:
    """Set of cells that a family can learn.

    expected: a description of the cells for messages, such as "a number above 0". remedy: advice for other cells.
    contains: function from cells to flags.
    """

    expected: str
    remedy: Message
    contains: Callable[[Any], Flags]

    def __repr__(self) -> str:
        return f"<Support: {self.expected}>"

    def check(self, cells: Numbers | SparseRows) -> None:
        """Raise BadCell for the first cell that is neither missing nor in the support."""
        stored = cells if isinstance(cells, np.ndarray) else cells.stored
        inside = self.contains(stored)
        if not inside.all():
            raise_unless_stored(inside, cells, self.expected, self.remedy)

    def mask_outside(self, numbers: Numbers) -> Numbers:
        """Return the numbers with NaN for those outside the support."""
        inside = self.contains(numbers)
        return numbers if inside.all() else np.where(inside, numbers, np.nan)

    def handle_outside(self, numbers: Numbers, outside: Outside) -> Numbers:
        """Check the numbers (outside="error"), or mask those outside the support (outside="ignore")."""
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
GAUSSIAN = Argument("family", "Gaussian")
POSITIVE = Support(
    "a number above 0",
    ("use ", GAUSSIAN, " or ", Argument("family", "Binned"), " for this column, or leave the cell empty"),
    lambda x: x > 0,
)
COUNTS = Support(
    "a count 0, 1, 2, ...", ("use ", Argument("family", "Gamma"), " or ", GAUSSIAN, " for this column"), _are_counts
)
FLAGS = Support(
    "0 or 1",
    ("give Bernoulli a threshold=, or use ", Argument("family", "Categorical"), " or ", GAUSSIAN),
    lambda x: (x == 0) | (x == 1),
)
AMOUNTS = Support(
    "a number that is not negative and not infinite (Negative values in data passed to a count family)",
    ("use ", GAUSSIAN, " for this column"),
    lambda x: (x >= 0) & (x < np.inf),
)
VALUES = Support("a value", "leave the cell empty", lambda values: np.ones(len(values), dtype=np.bool_))
TEXTS = Support("text", ("use ", GAUSSIAN, " or ", Argument("family", "Categorical"), " for this column"), _are_texts)


def check_finite(numbers: Numbers) -> None:
    """Raise BadCell for the first infinite cell."""
    if not kernels.cell_counts.all_finite(numbers.ravel()):
        FINITE.check(numbers)
