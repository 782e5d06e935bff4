"""What a likelihood answers about itself: what it has estimated, and how many numbers that took."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from deciban.util.arrays import Floats


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

    shared: how many of those of the columns by themselves are not of one class: a pooled variance, a lift.
    sizes, numbers, unbounded: how many values each of its discrete columns can have, how many of its columns are
    continuous numbers, and whether it counts things without a bound (words, events), of which there are infinitely many
    combinations: the full joint distribution of a table is counted from these.
    """

    blocks: tuple[int, ...]
    apart: int
    shared: int = 0
    sizes: tuple[int, ...] = ()
    numbers: int = 0
    unbounded: bool = False

    @classmethod
    def of_columns(
        cls,
        each: Sequence[int],
        *,
        shared: int = 0,
        sizes: Sequence[int] = (),
        numbers: int = 0,
        unbounded: bool = False,
    ) -> Self:
        """The parameters of columns that are blocks of their own."""
        return cls(tuple(each), sum(each), shared, tuple(sizes), numbers, unbounded)
