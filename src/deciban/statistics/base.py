"""What every statistic can do."""

from dataclasses import dataclass
from typing import Generic, NoReturn, Protocol, Self, TypeVar

import numpy as np

from deciban.errors import ForgetError
from deciban.util.arrays import Flags, Floats, Integers

# Sums of fractional weights carry rounding errors; what is left below this share of a sum is nothing.
FUZZ = 1e-10


class Statistic(Protocol):
    """Counts of classes and columns that add up over rows. Every method returns a new value."""

    def merge(self, other: Self) -> Self:
        """The counts of both sets of rows together; classes and columns must be at the same places."""
        ...

    def remove(self, other: Self, slack: float | None = None) -> Self:
        """The counts without those of `other`; a ForgetError where these cannot have been part of them.

        slack: `other` is known to be a part of them, and whatever is left below this weight is rounding; then nothing
        is refused.
        """
        ...

    def scale(self, factor: float) -> Self:
        """The counts as if every row had had `factor` times its weight."""
        ...

    def place_classes(self, positions: Integers, size: int) -> Self:
        """The same counts with class i moved to positions[i] of `size` classes, or dropped where that is negative."""
        ...

    def place_columns(self, positions: Integers, size: int) -> Self:
        """The same counts with column j moved to positions[j] of `size` columns, or dropped where that is negative."""
        ...


def remaining(have: Floats, removed: Floats, slack: float | None = None) -> Floats:
    """have - removed; a ForgetError where less than nothing would remain, unless there is a `slack` (see `remove`)."""
    left = have - removed
    fractional = (have != np.floor(have)) | (removed != np.floor(removed))
    allowed = np.where(fractional, FUZZ * np.maximum(have, removed), 0.0)
    if slack is not None:
        allowed = np.where(fractional & (removed > 0.0), np.maximum(allowed, slack), allowed)
    elif np.any(left < -allowed):
        _refuse("more is taken away than was counted")
    return np.where(left <= allowed, 0.0, left)


def find_gone(left: Floats, have: Floats, removed: Floats, slack: float | None, exact: bool) -> Flags:
    """Where no weight is left; a ForgetError where it is negative, unless there is a `slack` (see `Statistic.remove`).

    left: have - removed. exact: without any rounding.
    """
    allowed = np.zeros_like(left)
    if not exact:
        fractional = (have != np.floor(have)) | (removed != np.floor(removed))
        allowed = np.where(fractional, FUZZ * np.maximum(have, removed), 0.0)
        if slack is not None:
            allowed = np.where(fractional & (removed > 0.0), np.maximum(allowed, slack), allowed)
    if slack is None and np.any(left < -allowed):
        _refuse("more is taken away than was counted")
    return np.asarray(left <= allowed)


def find_negative(left: Floats, have: Floats, removed: Floats, slack: float | None, exact: bool) -> Flags:
    """Where less than nothing is left of sums, which is then rounding; a ForgetError where it cannot be."""
    allowed = 0.0 if exact else FUZZ * np.maximum(have, removed)
    if slack is None and np.any(left < -allowed):
        _refuse("more is taken away than was counted")
    return np.asarray(left < 0.0)


def refuse_negative_scatter(cells: Flags) -> None:
    """A ForgetError if the scatter of any cell would be negative, or would be left without a row."""
    if cells.any():
        _refuse("the spread of a column would become negative")


def refuse_unknown_scatter(
    left: Floats, before: Floats, rounding_error: Floats, weight: Floats, overall: Floats
) -> None:
    """A ForgetError where the scatter `left` of `before` is negative, or rounding may be most of it.

    Where sums are not exact, only so many digits of the whole are known: without an outlier there may be none left.
    What is left within a rounding error below a billionth of the column's `overall` variance counts as 0.
    """
    share = np.divide(left, before, out=np.zeros_like(left), where=before > 0.0)
    refuse_negative_scatter(share < -1e-12)
    unknown = (left > rounding_error) | (rounding_error > 1e-9 * weight * overall)
    if np.any((np.abs(share) > 1e-25) & (rounding_error > 4e-9 * left) & unknown):
        raise ForgetError(
            "these rows cannot be forgotten: an engine has summed them in doubles, and the spread that remains in a "
            "column is too small beside the one it had to be known",
            remedy="fit again without them",
        )


def _refuse(why: str) -> NoReturn:
    raise ForgetError(f"these rows cannot be forgotten: {why}", remedy="give just the rows that the model has learned")


First = TypeVar("First", bound=Statistic)
Second = TypeVar("Second", bound=Statistic)


@dataclass(frozen=True)
class Combined(Generic[First, Second]):
    """Two statistics of the same rows and columns, side by side."""

    parts: tuple[First, Second]

    def merge(self, other: Self) -> "Combined[First, Second]":
        (a, b), (other_a, other_b) = self.parts, other.parts
        return Combined((a.merge(other_a), b.merge(other_b)))

    def remove(self, other: Self, slack: float | None = None) -> "Combined[First, Second]":
        (a, b), (other_a, other_b) = self.parts, other.parts
        return Combined((a.remove(other_a, slack), b.remove(other_b, slack)))

    def scale(self, factor: float) -> "Combined[First, Second]":
        a, b = self.parts
        return Combined((a.scale(factor), b.scale(factor)))

    def place_classes(self, positions: Integers, size: int) -> "Combined[First, Second]":
        a, b = self.parts
        return Combined((a.place_classes(positions, size), b.place_classes(positions, size)))

    def place_columns(self, positions: Integers, size: int) -> "Combined[First, Second]":
        a, b = self.parts
        return Combined((a.place_columns(positions, size), b.place_columns(positions, size)))
