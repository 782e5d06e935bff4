"""The contract of a family and of its likelihood: what the rest of the program asks them."""

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from deciban.families.column_numbers import ColumnNumbers
from deciban.families.estimates import Estimated, Parameters
from deciban.families.shares import Shares
from deciban.families.sql_questions import Later, SqlQuestions
from deciban.families.support import Support
from deciban.families.terms import Terms
from deciban.tables.readable import Readable
from deciban.util.arrays import Codes, Flags, Floats, Integers

Sampled = Any  # an Arrow array or a NumPy array


class Likelihood(Protocol):
    """What a family has estimated: log P(cells | class) for the columns of one group of the model.

    Each column is a block, or all of them are one. `BaseLikelihood` has defaults for what not every one can answer.
    """

    @property
    def texts(self) -> tuple[Any, ...]:
        """The TextColumn of each column that holds texts: what its words say."""
        ...

    @property
    def takes_length(self) -> bool:
        """Whether `sample` takes the number of words of each row as a third argument."""
        ...

    def score(self, cells: Any, weight: Floats, slot: Integers, out: Floats) -> None:
        """Add weight[b] * (evidence of block b) to out[row, slot[b], class], for the blocks of this group."""
        ...

    def base(self, cells: Any) -> Floats | None:
        """The log factor that is the same for every class, row by block; None where it is 0."""
        ...

    def shares(self, cells: Any) -> Shares | None:
        """What each column of a joint block has of its evidence, with its base; None where each column is a block."""
        ...

    def sample(self, labels: Integers, rng: np.random.Generator) -> list[Sampled]:
        """Cells drawn for rows of the given classes, one array for each column."""
        ...

    def estimates(self) -> list[Estimated]:
        """What was estimated of each block, in their order."""
        ...

    def parameters(self) -> Parameters:
        """How many numbers had to be learned."""
        ...

    def formula(self, cells: Any, row: int, column: int, label: int) -> str | None:
        """How P(cell | class) was found, as one would write it on a blackboard; None where a cell is no evidence."""
        ...

    def score_terms(self, names: Sequence[str]) -> Sequence[Terms] | None:
        """The evidence of each block as weights times features, given the names of the columns; None where the family
        has no linear or quadratic form."""
        ...

    def cumulative(self, x: Floats, column: int, label: int) -> Floats | None:
        """P(cell < x | class) for cells of one column; None where that is no continuous distribution of a given shape,
        which cells can be tested against."""
        ...

    def landmarks(self, column: int) -> Floats:
        """The points that a curve of the density of a column must have, rising: its modes, and both sides of jumps.
        None for families whose values are listed one by one."""
        ...

    def known_values(self) -> Sequence[Any] | None:
        """The values of each column that evidence is known for; None where any value has evidence."""
        ...


class Family(Protocol):
    """How the cells of a column (or of a block of columns) are distributed within each class.

    `ColumnFamily` and `BlockFamily` have defaults for what most families answer alike.
    """

    @property
    def joint(self) -> bool:
        """Whether all columns of a group form one block; if not, each is a block of its own."""
        ...

    @property
    def counts(self) -> Hashable:
        """What is counted: families for which this is equal can be estimated from each other's statistics."""
        ...

    @property
    def absorbs(self) -> bool:
        """Whether columns that turn up later may join the block."""
        ...

    @property
    def ordered(self) -> bool:
        """Whether the order of the columns matters: a parameter has a part for each of them."""
        ...

    @property
    def interaction(self) -> bool:
        """Whether a block of it beside the columns alone adds how these interact, and weighs nothing unless it helps;
        if not, the block is another model of all its columns."""
        ...

    @property
    def in_bins(self) -> bool:
        """Whether a cell stands for its bin, so that whole numbers are drawn by rounding down, which keeps the bin."""
        ...

    @property
    def holds_texts(self) -> bool:
        """Whether the cells are texts, of which words are counted."""
        ...

    @property
    def support(self) -> Support:
        """The cells that can be learned; samples lie in it."""
        ...

    def alone(self) -> "Family":
        """The family of one column of a block by itself."""
        ...

    def alternatives(self, numbers: ColumnNumbers | None, others: Sequence["Family"]) -> list["Family"]:
        """What tuning tries for a column that was inferred to be of this family, this one first unless it does not
        suit. `numbers` are those of the column, if it has any, and `others` the families that are `suited_to` them."""
        ...

    @classmethod
    def suited_to(cls, numbers: ColumnNumbers) -> Sequence["Family"]:
        """The families of this type that tuning may try for a column of such numbers, whatever was inferred."""
        ...

    def read(self, batch: Readable, columns: Sequence[int]) -> Any:
        """The cells in the form that `count` and `score` take."""
        ...

    def empty(self, classes: int, columns: int) -> Any:
        """The statistic of no rows at all."""
        ...

    def count(self, cells: Any, labels: Codes, weights: Floats, classes: int) -> Any:
        """The statistic of the rows; label -1 and weight 0 are rows that are not there."""
        ...

    def count_in_sql(self, questions: SqlQuestions, columns: Sequence[int]) -> Later[Any] | None:
        """Ask an SQL engine for what `count` counts; the result makes the statistic after the engine has answered. None
        where SQL cannot count it: the columns are read."""
        ...

    def estimate(self, statistic: Any) -> Likelihood:
        """The likelihood that the statistic supports."""
        ...

    def score_left_out(self, statistic: Any, cells: Any, rows: "LeftOut", slot: Integers, out: Floats) -> None:
        """Add to out[row, slot[b], class] each row's evidence (with its base) as if it had not been counted."""
        ...

    def add_covariance(self, whole: Any, statistic: Any, cells: Any, weight: Floats, out: "Covariance") -> None:
        """Add weight[b]**2 times the covariance between classes of the evidence of each block, which errs because the
        statistic is of a sample; by the delta method. `whole` is what `estimate` makes of the statistic. Errors that
        classes do not share add to `out.own` alone."""
        ...


def add_base(likelihood: Likelihood, cells: Any, weight: Floats, slot: Integers, out: Floats) -> None:
    """Add the weighted factor that is the same for every class."""
    if (base := likelihood.base(cells)) is not None:
        for b in range(base.shape[1]):
            out[:, slot[b], :] += weight[b] * base[:, b, None]


def evidence_of_block(likelihood: Likelihood, cells: Any, classes: int) -> Floats:
    """The evidence of a joint block with its base, row by class."""
    one, first = np.ones(1), np.zeros(1, dtype=np.int64)
    rows = len(cells[0]) if isinstance(cells, list) else cells.shape[0]
    out = np.zeros((rows, 1, classes))
    likelihood.score(cells, one, first, out)
    add_base(likelihood, cells, one, first, out)
    return out[:, 0]


def with_missing(cells: Any, column: int) -> Any:
    """The cells of a joint block, those of one of its columns missing."""
    if isinstance(cells, list):
        return [pa.nulls(len(one), one.type) if k == column else one for k, one in enumerate(cells)]
    changed = np.array(cells, dtype=np.float64)
    changed[:, column] = np.nan
    return changed


@dataclass(frozen=True)
class Covariance:
    """The covariance of errors between the classes, for each row, as far as it matters along a few directions.

    own: the variance of each class, row by class. shared: for each direction (row by class), the sum over all other
    classes of the covariance with them times the direction. Matrices class by class would be too many numbers.
    """

    own: Floats
    directions: tuple[Floats, ...]
    shared: tuple[Floats, ...]

    @classmethod
    def along(cls, *directions: Floats) -> "Covariance":
        """No errors as yet."""
        return cls(np.zeros_like(directions[0]), directions, tuple(np.zeros_like(one) for one in directions))

    def add_shared(self, product: Callable[[Floats], Floats]) -> None:
        """Add the covariance between different classes: `product` multiplies it by a direction."""
        for direction, shared in zip(self.directions, self.shared, strict=True):
            shared += product(direction)

    def times(self, k: int) -> Floats:
        """The covariance times direction k, row by class."""
        return self.own * self.directions[k] + self.shared[k]


def by_pattern(missing: Flags) -> Iterator[tuple[Flags, Integers]]:
    """Each distinct row of `missing`, with the rows where it stands."""
    if not missing.any():
        yield missing[0] if len(missing) else np.zeros(missing.shape[1], dtype=np.bool_), np.arange(len(missing))
        return
    patterns, place, sizes = np.unique(missing, axis=0, return_inverse=True, return_counts=True)
    order = np.argsort(place.ravel(), kind="stable")
    yield from zip(patterns, np.split(order, np.cumsum(sizes)[:-1]), strict=True)


@dataclass(frozen=True)
class LeftOut:
    """Rows that were counted, each to be scored without itself: its class, and the weight of it that is removed."""

    labels: Codes
    removed: Floats

    def __getitem__(self, rows: Any) -> "LeftOut":
        return LeftOut(self.labels[rows], self.removed[rows])
