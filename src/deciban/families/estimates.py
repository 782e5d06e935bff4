"""What a likelihood answers about itself: what it has estimated, and how many numbers that took."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from deciban.arrays import Floats


@dataclass(frozen=True)
class Estimated:
    """The estimates of one block: arrays by the name of the parameter, the class first.

    values: what the second axis of an array stands for: values, tuples of values, intervals (low, high) or words; None
        where there is none, or it stands for the columns of the block.
    """

    parameters: dict[str, Floats]
    values: tuple[Any, ...] | None = None


@dataclass(frozen=True)
class Parameters:
    """How many numbers a likelihood has to learn: each of its blocks as it is, and all its columns each by itself.

    values, numbers: how many values its discrete columns can have together, and how many of its columns are numbers:
    the full joint distribution of a table is counted from these.
    """

    blocks: tuple[int, ...]
    apart: int
    values: int = 1
    numbers: int = 0

    @classmethod
    def of_columns(cls, each: Sequence[int], values: int = 1, numbers: int = 0) -> Self:
        """The parameters of columns that are blocks of their own."""
        return cls(tuple(each), sum(each), values, numbers)
