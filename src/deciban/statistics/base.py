"""What every statistic can do."""

from dataclasses import dataclass
from typing import Generic, Protocol, Self, TypeVar

import numpy as np

from deciban.arrays import Floats, Integers
from deciban.errors import ForgetError

# Sums of fractional weights carry rounding errors; what is left below this share of a sum is nothing.
FUZZ = 1e-10


class Statistic(Protocol):
    """Counts of classes and columns that add up over rows. Every method returns a new value."""

    def merge(self, other: Self) -> Self:
        """The counts of both sets of rows together; classes and columns must be at the same places."""
        ...

    def remove(self, other: Self) -> Self:
        """The counts without those of `other`; a ForgetError where these cannot have been part of them."""
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


def remaining(have: Floats, taken: Floats) -> Floats:
    """have - taken, refused where less than nothing would remain."""
    left = have - taken
    fractional = (have != np.floor(have)) | (taken != np.floor(taken))
    allowed = np.where(fractional, FUZZ * np.maximum(have, taken), 0.0)
    if np.any(left < -allowed):
        raise ForgetError(
            "these rows cannot be forgotten: more is taken away than was counted; "
            "give just the rows that the model has learned"
        )
    return np.where(left <= allowed, 0.0, left)


def checked_scatter(
    left: Floats, before: Floats, rounding_error: Floats, weight: Floats, overall: Floats, strict: bool = True
) -> Floats:
    """The scatter that remains of `before`: 0 where it is nothing but rounding, refused where it is mostly doubt.

    Rows counted apart are kept apart to 31 digits. Of rows that were summed together with an outlier 16 digits of the
    whole are known, and after the outlier is gone that may be none. What is left within a doubt that is below a
    billionth of the column's `overall` variance is taken for 0. Nothing is refused unless `strict`.
    """
    share = np.divide(left, before, out=np.zeros_like(left), where=before > 0.0)
    if strict and np.any(share < -1e-12):
        raise ForgetError(
            "these rows cannot be forgotten: the spread of a column would become negative; "
            "give just the rows that the model has learned"
        )
    unknown = (left > rounding_error) | (rounding_error > 1e-9 * weight * overall)
    if strict and np.any((np.abs(share) > 1e-25) & (rounding_error > 4e-9 * left) & unknown):
        raise ForgetError(
            "these rows cannot be forgotten: the spread that remains in a column is too small beside the one it had "
            "to be known; fit anew without them"
        )
    return np.where(left <= np.maximum(rounding_error, 1e-25 * before), 0.0, left)


First = TypeVar("First", bound=Statistic)
Second = TypeVar("Second", bound=Statistic)


@dataclass(frozen=True)
class Combined(Generic[First, Second]):
    """Two statistics of the same rows and columns, side by side."""

    parts: tuple[First, Second]

    def merge(self, other: Self) -> "Combined[First, Second]":
        (a, b), (other_a, other_b) = self.parts, other.parts
        return Combined((a.merge(other_a), b.merge(other_b)))

    def remove(self, other: Self) -> "Combined[First, Second]":
        (a, b), (other_a, other_b) = self.parts, other.parts
        return Combined((a.remove(other_a), b.remove(other_b)))

    def scale(self, factor: float) -> "Combined[First, Second]":
        a, b = self.parts
        return Combined((a.scale(factor), b.scale(factor)))

    def place_classes(self, positions: Integers, size: int) -> "Combined[First, Second]":
        a, b = self.parts
        return Combined((a.place_classes(positions, size), b.place_classes(positions, size)))

    def place_columns(self, positions: Integers, size: int) -> "Combined[First, Second]":
        a, b = self.parts
        return Combined((a.place_columns(positions, size), b.place_columns(positions, size)))
