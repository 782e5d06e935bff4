"""Protocol of statistics, subtraction of counts, and `Combined`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, NoReturn, Protocol, Self, TypeVar

import numpy as np

from deciban.errors import ForgetError
from deciban.util.arrays import Flags, Floats, Integers

# Sums of fractional weights have rounding errors: a remainder below this share of a sum counts as 0.
FUZZ = 1e-10

# A scatter below minus this share of what it was before is negative, not rounded.
MAX_NEGATIVE_SHARE = 1e-12

# A scatter below this share of what it was before is 0.
MIN_SHARE = 1e-25

# Rounding may be this share of a scatter at most.
MAX_ERROR_SHARE = 4e-9

# A scatter within its rounding error counts as 0 if that error is below this share of the column's variance.
MAX_VARIANCE_ERROR = 1e-9


class Statistic(Protocol):
    """Counts by class and column that add up over rows. Every method returns a new value."""

    def merge(self, other: Self) -> Self:
        """Return the counts of both sets of rows; classes and columns must be in the same positions."""
        ...

    def remove(self, other: Self, tolerance: float | None = None) -> Self:
        """Return the counts without those of `other`.

        Raise ForgetError if `other` cannot have been part of them. With a `tolerance`, `other` is known to be part of
        them: nothing is raised, and remainders below this weight count as rounding errors.
        """
        ...

    def scale(self, factor: float) -> Self:
        """Return the counts with the weight of every row multiplied by `factor`."""
        ...

    def reindex_classes(self, positions: Integers, size: int) -> Self:
        """Return the counts with class i at positions[i] of `size` classes; a negative position drops the class."""
        ...

    def reindex_columns(self, positions: Integers, size: int) -> Self:
        """Return the counts with column j at positions[j] of `size` columns; a negative position drops the column."""
        ...


def subtract_counts(have: Floats, removed: Floats, tolerance: float | None = None) -> Floats:
    """Return have - removed; see `Statistic.remove`."""
    left = have - removed
    fractional = (have != np.floor(have)) | (removed != np.floor(removed))
    allowed = np.where(fractional, FUZZ * np.maximum(have, removed), 0.0)
    if tolerance is not None:
        allowed = np.where(fractional & (removed > 0.0), np.maximum(allowed, tolerance), allowed)
    elif np.any(left < -allowed):
        _reject("some counts would become negative")
    return np.where(left <= allowed, 0.0, left)


def find_emptied(left: Floats, have: Floats, removed: Floats, tolerance: float | None, exact: bool) -> Flags:
    """Return a flag for each cell without remaining weight; see `Statistic.remove`.

    left: have - removed. exact: True if the sums are not rounded.
    """
    allowed = np.zeros_like(left)
    if not exact:
        fractional = (have != np.floor(have)) | (removed != np.floor(removed))
        allowed = np.where(fractional, FUZZ * np.maximum(have, removed), 0.0)
        if tolerance is not None:
            allowed = np.where(fractional & (removed > 0.0), np.maximum(allowed, tolerance), allowed)
    if tolerance is None and np.any(left < -allowed):
        _reject("some counts would become negative")
    return np.asarray(left <= allowed)


def find_negative(left: Floats, have: Floats, removed: Floats, tolerance: float | None, exact: bool) -> Flags:
    """Return a flag for each negative sum; raise ForgetError if it is too large to be a rounding error."""
    allowed = 0.0 if exact else FUZZ * np.maximum(have, removed)
    if tolerance is None and np.any(left < -allowed):
        _reject("some counts would become negative")
    return np.asarray(left < 0.0)


def reject_negative_scatter(cells: Flags) -> None:
    """Raise ForgetError if any cell is flagged: its scatter is negative, or left without a row."""
    if cells.any():
        _reject("the variance of a column would become negative")


def reject_unknown_scatter(
    left: Floats, before: Floats, rounding_error: Floats, weight: Floats, overall: Floats
) -> None:
    """Raise ForgetError if the remaining scatter is negative, or may be mostly rounding error.

    Rounded sums have a limited number of digits. If the removed rows contain an outlier, none may be left for the rest.

    left, before: the scatter after and before the removal. overall: the variance of the column over all classes.
    """
    share = np.divide(left, before, out=np.zeros_like(left), where=before > 0.0)
    reject_negative_scatter(share < -MAX_NEGATIVE_SHARE)
    unknown = (left > rounding_error) | (rounding_error > MAX_VARIANCE_ERROR * weight * overall)
    if np.any((np.abs(share) > MIN_SHARE) & (rounding_error > MAX_ERROR_SHARE * left) & unknown):
        raise ForgetError(
            "cannot forget these rows: they were summed in doubles by a database engine, and rounding errors exceed "
            "the remaining variance of a column",
            remedy="fit again without them",
        )


def _reject(cause: str) -> NoReturn:
    raise ForgetError(f"cannot forget these rows: {cause}", remedy="pass only rows the model was trained on")


First = TypeVar("First", bound=Statistic)
Second = TypeVar("Second", bound=Statistic)


@dataclass(frozen=True)
class Combined(Generic[First, Second]):
    """Pair of statistics of the same rows and columns."""

    parts: tuple[First, Second]

    def merge(self, other: Self) -> Combined[First, Second]:
        (a, b), (other_a, other_b) = self.parts, other.parts
        return Combined((a.merge(other_a), b.merge(other_b)))

    def remove(self, other: Self, tolerance: float | None = None) -> Combined[First, Second]:
        (a, b), (other_a, other_b) = self.parts, other.parts
        return Combined((a.remove(other_a, tolerance), b.remove(other_b, tolerance)))

    def scale(self, factor: float) -> Combined[First, Second]:
        a, b = self.parts
        return Combined((a.scale(factor), b.scale(factor)))

    def reindex_classes(self, positions: Integers, size: int) -> Combined[First, Second]:
        a, b = self.parts
        return Combined((a.reindex_classes(positions, size), b.reindex_classes(positions, size)))

    def reindex_columns(self, positions: Integers, size: int) -> Combined[First, Second]:
        a, b = self.parts
        return Combined((a.reindex_columns(positions, size), b.reindex_columns(positions, size)))
