"""The contract of a family and of its likelihood: what the rest of the program asks, with defaults for a new one.

First the values that are passed (ColumnNumbers, Estimated, Parameters, Terms, LeftOut, Covariance), then the protocols
`Likelihood` and `Family`, then the base classes that answer what most families answer alike (ColumnFamily, BlockFamily,
BaseLikelihood), then functions that work for any family.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from math import inf
from typing import Any, ClassVar, Literal, Protocol, Self

import numpy as np
import pyarrow as pa

from deciban.errors import DataError, ForgetError
from deciban.families.base.checks import VALUES, Support
from deciban.families.base.lowering import ExportedColumns, Lowered
from deciban.families.base.shapley import Shares
from deciban.families.base.sql_questions import Later, SqlQuestions
from deciban.tables.table import Readable, take_cells
from deciban.util.arrays import Codes, Flags, Floats, Integers
from deciban.util.sparse import SparseRows

# Dates and times are positions, whose zero is a convention, and durations amounts, whose unit is one: no counts.
Measure = Literal["number", "amount", "position"]


@dataclass(frozen=True)
class ColumnNumbers:
    """The distinct values of a column, in order, and what the families choose by.

    rows: the weight of all rows. varies_in_classes: whether the cells of every class vary. varies_within: whether those
    of the classes together do, about the mean of their class.
    """

    values: Floats
    rows: float
    measure: Measure
    varies_in_classes: bool
    varies_within: bool

    @property
    def positive(self) -> bool:
        """Whether all are amounts above 0."""
        return self.measure != "position" and bool(self.values[0] > 0.0)

    @property
    def counts(self) -> bool:
        """Whether all are counts, and none of them huge."""
        whole = self.values[0] >= 0.0 and self.values[-1] < 1e6 and (self.values == np.floor(self.values)).all()
        return self.measure == "number" and bool(whole)


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


@dataclass(frozen=True)
class Terms:
    """The evidence of one block as weights times features, up to a term that is the same for every class.

    names: one for each feature.
    features: from the cells of the family to numbers, row by feature; NaN where a row has no evidence.
    weights: feature by class. offset: one for each class, which falls away where the cells are missing.
    quadratic: class by feature by feature, or None where the evidence is linear.
    center: is subtracted from the features first, so that values that are large against their spread lose no digits.
    """

    names: tuple[str, ...]
    features: Callable[[Any], Floats]
    weights: Floats
    offset: Floats
    quadratic: Floats | None = None
    center: Floats | float = 0.0

    @classmethod
    def none(cls, classes: int) -> Self:
        """The terms of a block without evidence, such as a constant column."""
        return cls((), lambda cells: np.zeros((len(cells), 0)), np.zeros((0, classes)), np.zeros(classes))

    @property
    def finite(self) -> bool:
        return bool(np.isfinite(self.weights).all() and np.isfinite(self.offset).all())

    def weighted(self, weight: float) -> "Terms":
        """The terms of `weight` times the evidence."""
        curve = None if self.quadratic is None else weight * self.quadratic
        return replace(self, weights=weight * self.weights, offset=weight * self.offset, quadratic=curve)

    def expanded(self) -> "Terms":
        """The same terms with a center of 0."""
        center = np.broadcast_to(self.center, (len(self.names),))
        weights, offset = self.weights, self.offset - center @ self.weights
        if self.quadratic is not None:
            weights = weights - 2.0 * np.einsum("cij,j->ic", self.quadratic, center)
            offset = offset + np.einsum("i,cij,j->c", center, self.quadratic, center)
        return replace(self, weights=weights, offset=offset, center=0.0)

    def scores(self, cells: Any) -> Floats:
        """The evidence of each row, row by class; 0 where the cells are missing."""
        features = self.features(cells)
        missing = np.isnan(features)
        holed = np.asarray(missing.any(axis=1))
        if (holed & ~missing.all(axis=1)).any():
            raise DataError(f"{' and '.join(self.names[:3])} belong together; a form cannot leave one of them out")
        x = np.where(missing, 0.0, features - self.center)
        scores = x @ self.weights + self.offset
        if self.quadratic is not None:
            scores = scores + np.einsum("ni,cij,nj->nc", x, self.quadratic, x)
        return np.where(holed[:, None], 0.0, scores)


@dataclass(frozen=True)
class LeftOut:
    """Rows that were counted, each to be scored without itself: its class, and the weight of it that is removed."""

    labels: Codes
    removed: Floats

    def __getitem__(self, rows: Any) -> "LeftOut":
        return LeftOut(self.labels[rows], self.removed[rows])


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

    def lower(self, columns: ExportedColumns) -> Lowered:
        """The evidence of each block as terms, for export; a UsageError that names a column if it has none."""
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

    def check_statistic(self, statistic: Any) -> None:
        """Raise a ValueError if no rows have this statistic: a model file may hold anything of its type and shape."""
        ...

    def estimate(self, statistic: Any) -> Likelihood:
        """The likelihood that the statistic supports."""
        ...

    def score_left_out(self, statistic: Any, cells: Any, rows: LeftOut, slot: Integers, out: Floats) -> None:
        """Add to out[row, slot[b], class] each row's evidence (with its base) as if it had not been counted."""
        ...

    def add_covariance(self, whole: Any, statistic: Any, cells: Any, weight: Floats, out: Covariance) -> None:
        """Add weight[b]**2 times the covariance between classes of the evidence of each block, which errs because the
        statistic is of a sample; by the delta method. `whole` is what `estimate` makes of the statistic. Errors that
        classes do not share add to `out.own` alone."""
        ...


class ShortRepr:
    """Written as it would be typed: parameters that have their default are left out."""

    def __repr__(self) -> str:
        given = [
            f"{field.name}={getattr(self, field.name)!r}"
            for field in fields(self)  # type: ignore[arg-type]  # every family is a dataclass
            if getattr(self, field.name) != field.default
        ]
        return f"{type(self).__name__}({', '.join(given)})"


def _overrides(cls: type[Any], methods: Sequence[str], follower: str) -> bool:
    """Whether a class has one of the methods from nearer by than `follower`, which says the same in another way."""

    def place(name: str) -> float:
        return next((k for k, home in enumerate(cls.__mro__) if name in vars(home)), inf)

    return min(map(place, methods)) < place(follower)


class CountedFamily(ShortRepr):
    """A family that counts the same whatever its parameters are: they matter when it is estimated."""

    absorbs: ClassVar[bool] = False
    interaction: ClassVar[bool] = False
    in_bins: ClassVar[bool] = False
    holds_texts: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        """Not let a family that counts in its own way ask SQL for what its parent counts."""
        super().__init_subclass__()
        if _overrides(cls, ("read", "empty", "count"), "count_in_sql"):
            cls.count_in_sql = CountedFamily.count_in_sql  # type: ignore[method-assign]  # the columns are read

    @property
    def ordered(self) -> bool:
        return False

    @property
    def counts(self) -> Hashable:
        return type(self).__name__

    @property
    def support(self) -> Support:
        return VALUES

    def alternatives(self, numbers: ColumnNumbers | None, others: Sequence[Any]) -> list[Any]:
        return [self]

    @classmethod
    def suited_to(cls, numbers: ColumnNumbers) -> list[Self]:
        return []

    def count_in_sql(self, questions: SqlQuestions, columns: Sequence[int]) -> Later[Any] | None:
        return None

    def check_statistic(self, statistic: Any) -> None:
        return


class ColumnFamily(CountedFamily):
    """A family that models each column by itself."""

    joint: ClassVar[bool] = False

    def alone(self) -> Self:
        return self


class BlockFamily(CountedFamily):
    """A family that models its columns together."""

    joint: ClassVar[bool] = True


class BaseLikelihood:
    """What a likelihood answers where a question does not apply to it."""

    takes_length: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        """Not let a likelihood that scores in its own way export what its parent scores."""
        super().__init_subclass__()
        if _overrides(cls, ("score",), "lower"):
            cls.lower = BaseLikelihood.lower  # type: ignore[method-assign]  # it cannot be exported

    @property
    def texts(self) -> tuple[Any, ...]:
        return ()

    def base(self, cells: Any) -> Floats | None:
        return None

    def shares(self, cells: Any) -> Shares | None:
        return None

    def score_terms(self, names: Sequence[str]) -> Sequence[Terms] | None:
        return None

    def lower(self, columns: ExportedColumns) -> Lowered:
        raise columns.cannot_export()

    def cumulative(self, x: Floats, column: int, label: int) -> Floats | None:
        return None

    def landmarks(self, column: int) -> Floats:
        return np.zeros(0)

    def known_values(self) -> Sequence[Any] | None:
        return None


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


def score_by_refitting(family: Family, statistic: Any, cells: Any, rows: LeftOut, slot: Integers, out: Floats) -> None:
    """score_left_out by definition: take a row from the counts, estimate, score it. For the few rows, or the family,
    for which there is no shorter way."""
    classes = out.shape[2]
    ones = np.ones(slot.size)
    for i in range(rows.labels.size):
        one, at = cells_of(cells, [i]), slice(i, i + 1)
        counted = family.count(one, rows.labels[at], rows.removed[at], classes)
        left = statistic
        if rows.removed[i] > 0.0:
            with suppress(ForgetError):  # of what is left nothing is known: the row stays in
                left = statistic.remove(counted)
        likelihood = family.estimate(left)
        likelihood.score(one, ones, slot, out[at])
        add_base(likelihood, one, ones, slot, out[at])


def cells_of(cells: Any, rows: Any) -> Any:
    """Some rows of what `read` returns."""
    if isinstance(cells, list):
        return [take_cells(column, rows) for column in cells]
    return cells.take(rows) if isinstance(cells, SparseRows) else cells[rows]


def with_missing(cells: Any, column: int) -> Any:
    """The cells of a joint block, those of one of its columns missing."""
    if isinstance(cells, list):
        return [pa.nulls(len(one), one.type) if k == column else one for k, one in enumerate(cells)]
    changed = np.array(cells, dtype=np.float64)
    changed[:, column] = np.nan
    return changed


def by_pattern(missing: Flags) -> Iterator[tuple[Flags, Integers]]:
    """Each distinct row of `missing`, with the rows where it stands."""
    if not missing.any():
        yield missing[0] if len(missing) else np.zeros(missing.shape[1], dtype=np.bool_), np.arange(len(missing))
        return
    patterns, place, sizes = np.unique(missing, axis=0, return_inverse=True, return_counts=True)
    order = np.argsort(place.ravel(), kind="stable")
    yield from zip(patterns, np.split(order, np.cumsum(sizes)[:-1]), strict=True)
