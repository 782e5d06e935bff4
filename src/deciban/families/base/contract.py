"""Contract of families and likelihoods.

The module contains, in this order:

- the values that are passed around: `NumericSummary`, `ParameterEstimates`, `FreeParameters`, `DiscriminantTerms`,
  `LeftOutRows`, `Covariance`;
- the protocols `Likelihood` and `Family`;
- the base classes with defaults: `ColumnFamily`, `BlockFamily`, `BaseLikelihood`;
- functions that work for any family.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import reduce
from math import inf
from typing import Any, ClassVar, Literal, Protocol, Self

import numpy as np
import pyarrow as pa

from deciban.errors import DataError, ForgetError
from deciban.families.base.checks import VALUES, Support
from deciban.families.base.lowering import ExportedColumns, Lowered
from deciban.families.base.shapley import ShapleyValues
from deciban.families.base.sql_questions import Later, SqlQuestions
from deciban.tables.table import Readable, take_cells
from deciban.util.arrays import Codes, Flags, Floats, Integers
from deciban.util.sparse import SparseRows

# The scale of a numeric column. "position": dates and times, with an arbitrary zero. "amount": durations, with an
# arbitrary unit. Only a "number" can be a count.
Measure = Literal["number", "amount", "position"]

# Direction in which a column moves the classes: 1 or -1 if these are in ascending order, or else the indices of the
# classes, from the one that low numbers favor to the one that high numbers favor.
Monotone = int | tuple[int, ...]

# Counts are whole numbers below this; larger ones are more likely identifiers or amounts.
MAX_COUNT = 1e6


@dataclass(frozen=True)
class NumericSummary:
    """Summary of a numeric column, by which families decide if they suit it.

    values: the distinct values, in ascending order. rows: the weight of all rows. varies_in_every_class: True if the
    cells of each class vary. varies_within_classes: True if the cells of at least one class vary.
    """

    values: Floats
    rows: float
    measure: Measure
    varies_in_every_class: bool
    varies_within_classes: bool

    @property
    def is_positive(self) -> bool:
        """True if all values are amounts above 0."""
        return self.measure != "position" and bool(self.values[0] > 0.0)

    @property
    def is_count(self) -> bool:
        """True if all values are counts of a plausible size."""
        whole = self.values[0] >= 0.0 and self.values[-1] < MAX_COUNT and (self.values == np.floor(self.values)).all()
        return self.measure == "number" and bool(whole)


@dataclass(frozen=True)
class ParameterEstimates:
    """Estimated parameters of one block: arrays by parameter name, classes along the first axis.

    values: the meaning of the second axis: values, tuples of values, intervals (low, high) or words. None if there is
        no second axis, or if it stands for the columns of the block.
    """

    parameters: dict[str, Floats]
    values: tuple[Any, ...] | None = None


@dataclass(frozen=True)
class FreeParameters:
    """Number of free parameters of a likelihood.

    blocks: the number for each block. independent: the number if each column were modeled on its own. shared: how many
    of the latter belong to no single class, such as a pooled variance or a lift.

    The last three describe the columns, and give the size of the full joint distribution of a table. n_values: the
    number of values of each discrete column. n_continuous: the number of continuous columns. unbounded: True if the
    columns are counts without an upper bound (words, events).
    """

    blocks: tuple[int, ...]
    independent: int
    shared: int = 0
    n_values: tuple[int, ...] = ()
    n_continuous: int = 0
    unbounded: bool = False

    @classmethod
    def of_columns(
        cls,
        each: Sequence[int],
        *,
        shared: int = 0,
        n_values: Sequence[int] = (),
        n_continuous: int = 0,
        unbounded: bool = False,
    ) -> Self:
        """Return the free parameters of columns that are one block each."""
        return cls(tuple(each), sum(each), shared, tuple(n_values), n_continuous, unbounded)


@dataclass(frozen=True)
class DiscriminantTerms:
    """Evidence of one block as weights times features, up to a term that is the same for every class.

    names: one name per feature.
    features: function from cells to numbers, row by feature; NaN if a row has no evidence.
    weights: feature by class.
    offset: one per class; not added if the cells are missing.
    quadratic: class by feature by feature; None if the evidence is linear.
    center: subtracted from the features first, to keep digits of values that are large compared with their spread.
    """

    names: tuple[str, ...]
    features: Callable[[Any], Floats]
    weights: Floats
    offset: Floats
    quadratic: Floats | None = None
    center: Floats | float = 0.0

    @classmethod
    def empty(cls, classes: int) -> Self:
        """Return the terms of a block without evidence, such as a constant column."""
        return cls((), lambda cells: np.zeros((len(cells), 0)), np.zeros((0, classes)), np.zeros(classes))

    @property
    def is_finite(self) -> bool:
        """True if all weights and offsets are finite."""
        return bool(np.isfinite(self.weights).all() and np.isfinite(self.offset).all())

    def scale(self, weight: float) -> DiscriminantTerms:
        """Return the terms of the evidence multiplied by `weight`."""
        curve = None if self.quadratic is None else weight * self.quadratic
        return replace(self, weights=weight * self.weights, offset=weight * self.offset, quadratic=curve)

    def expand(self) -> DiscriminantTerms:
        """Return the same terms with a center of 0."""
        center = np.broadcast_to(self.center, (len(self.names),))
        weights, offset = self.weights, self.offset - center @ self.weights
        if self.quadratic is not None:
            weights = weights - 2.0 * np.einsum("cij,j->ic", self.quadratic, center)
            offset = offset + np.einsum("i,cij,j->c", center, self.quadratic, center)
        return replace(self, weights=weights, offset=offset, center=0.0)

    def evaluate(self, cells: Any) -> Floats:
        """Return the evidence of each row, row by class; 0 if the cells are missing."""
        features = self.features(cells)
        missing = np.isnan(features)
        holed = np.asarray(missing.any(axis=1))
        if (holed & ~missing.all(axis=1)).any():
            raise DataError(
                f"{' and '.join(self.names[:3])} are modeled together, and some of their cells are missing",
                remedy="fill the missing cells, or use predict_proba instead of a linear or quadratic form",
            )
        x = np.where(missing, 0.0, features - self.center)
        scores = x @ self.weights + self.offset
        if self.quadratic is not None:
            scores = scores + np.einsum("ni,cij,nj->nc", x, self.quadratic, x)
        return np.where(holed[:, None], 0.0, scores)


@dataclass(frozen=True)
class LeftOutRows:
    """Counted rows to score as if they had not been counted: the class of each, and its weight to remove."""

    labels: Codes
    removed: Floats

    def __getitem__(self, rows: Any) -> LeftOutRows:
        return LeftOutRows(self.labels[rows], self.removed[rows])

    def find_distinct(self, x: Floats) -> tuple[Integers, Integers]:
        """Return the places of rows with distinct cells x, and the position of each row among these.

        Rows are equal if their class and weight to remove are, too. If few are equal, all rows are returned.
        """
        every = np.arange(x.size)
        if not x.size or self.removed.min() < self.removed.max():
            return every, every
        values, value = np.unique(x, return_inverse=True)
        if 2 * values.size > x.size:
            return every, every
        key = value * (int(self.labels.max()) + 1) + self.labels
        position = np.full(int(key.max()) + 1, -1)
        position[key] = every
        occupied = np.flatnonzero(position >= 0)
        places, position[occupied] = position[occupied], np.arange(occupied.size)
        return places, position[key]


@dataclass(frozen=True)
class Covariance:
    """Covariance between classes of the estimation error of the evidence, for each row, along a few directions.

    own: the variance of each class, row by class. directions: each row by class. shared: for each direction, the sum
    over the other classes of covariance times direction. Full matrices, class by class, would need too much memory.
    """

    own: Floats
    directions: tuple[Floats, ...]
    shared: tuple[Floats, ...]

    @classmethod
    def zeros_along(cls, *directions: Floats) -> Covariance:
        """Return a covariance of 0 along the given directions."""
        zeros = tuple(np.zeros_like(direction) for direction in directions)
        return cls(np.zeros_like(directions[0]), directions, zeros)

    def add_shared(self, product: Callable[[Floats], Floats]) -> None:
        """Add a covariance between different classes; `product` multiplies it by a direction."""
        for direction, shared in zip(self.directions, self.shared, strict=True):
            shared += product(direction)

    def multiply(self, k: int) -> Floats:
        """Return the covariance times direction k, row by class."""
        return self.own * self.directions[k] + self.shared[k]


Sampled = Any  # an Arrow array or a NumPy array


class Likelihood(Protocol):
    """Estimated distributions log P(cells | class) of one group of columns.

    A group contains either one block per column, or one block of all columns. `BaseLikelihood` has defaults for
    everything optional.
    """

    @property
    def text_columns(self) -> tuple[Any, ...]:
        """The TextColumn of each column of texts; empty for other families."""
        ...

    @property
    def accepts_length(self) -> bool:
        """True if `sample` takes the number of words per row as a third argument."""
        ...

    def score(self, cells: Any, weight: Floats, slot: Integers, out: Floats) -> None:
        """Add weight[b] * (evidence of block b) to out[row, slot[b], class]."""
        ...

    def log_common_factor(self, cells: Any) -> Floats | None:
        """Return the log factor that is the same for every class, row by block; None if it is 0."""
        ...

    def shapley_values(self, cells: Any) -> ShapleyValues | None:
        """Return the share of each column in the evidence of a joint block; None if each column is a block."""
        ...

    def sample(self, labels: Integers, rng: np.random.Generator) -> list[Sampled]:
        """Draw cells for rows of the given classes, one array per column."""
        ...

    def estimates(self) -> list[ParameterEstimates]:
        """Return the estimated parameters of each block, in order."""
        ...

    def free_parameters(self) -> FreeParameters:
        """Return the number of free parameters."""
        ...

    def formula(self, cells: Any, row: int, column: int, label: int) -> str | None:
        """Return P(cell | class) as a formula with numbers filled in; None if the cell has no evidence."""
        ...

    def discriminant_terms(self, names: Sequence[str]) -> Sequence[DiscriminantTerms] | None:
        """Return each block as weights times features; None if the family has no linear or quadratic form.

        names: the column names.
        """
        ...

    def lower(self, columns: ExportedColumns) -> Lowered:
        """Return the evidence of each block as terms for export; raise UsageError if that is not supported."""
        ...

    def cdf(self, x: Floats, column: int, label: int) -> Floats | None:
        """Return P(cell < x | class) for one column; None if the distribution is not continuous."""
        ...

    def curve_points(self, column: int) -> Floats:
        """Return points that a plot of the density must include, in ascending order: modes, both sides of jumps.

        Empty for discrete families.
        """
        ...

    def list_known_values(self) -> Sequence[Any] | None:
        """Return the known values of each column; None if any value has evidence."""
        ...


class Family(Protocol):
    """Distribution of the cells of a column, or of a block of columns, within each class.

    `ColumnFamily` and `BlockFamily` have defaults for everything optional.
    """

    @property
    def joint(self) -> bool:
        """True if all columns of a group form one block; otherwise each column is a block."""
        ...

    @property
    def statistic_key(self) -> Hashable:
        """Key of what is counted: families with equal keys can be estimated from each other's statistics."""
        ...

    @property
    def accepts_new_columns(self) -> bool:
        """True if columns that first appear in later rows may join the block."""
        ...

    @property
    def column_order_matters(self) -> bool:
        """True if a parameter has one entry per column."""
        ...

    @property
    def interaction(self) -> bool:
        """True if tuning may add a block of this family next to its columns, to model their interaction.

        The block has weight 0 unless it helps. Otherwise the block replaces its columns.
        """
        ...

    @property
    def is_binned(self) -> bool:
        """True if a cell stands for its bin. Whole numbers are then sampled by rounding down, which keeps the bin."""
        ...

    @property
    def is_text(self) -> bool:
        """True if the cells are texts."""
        ...

    @property
    def part(self) -> str | None:
        """Name of the part of a cell that is counted, such as "month"; None for the whole cell."""
        ...

    @property
    def monotone(self) -> Monotone | None:
        """Direction in which the number in a cell moves the classes; None if it may move them in any way."""
        ...

    def constrain(self, monotone: Monotone) -> Family | None:
        """Return the same family with monotone evidence; None if that is not supported."""
        ...

    @property
    def support(self) -> Support:
        """The cells that can be learned and sampled."""
        ...

    def marginal_family(self) -> Family:
        """Return the family of a single column of the block."""
        ...

    def alternatives(self, summary: NumericSummary | None, others: Sequence[Family], values: int) -> list[Family]:
        """Return the families that tuning tries for a column inferred to be of this family, this one first.

        Leave this one out if it does not suit. summary: of a numeric column, else None. others: the candidates of all
        families, see `candidates_for`. values: the number of distinct values.
        """
        ...

    @classmethod
    def candidates_for(cls, summary: NumericSummary) -> Sequence[Family]:
        """Return the families of this type that tuning may try for any numeric column with this summary."""
        ...

    @classmethod
    def additions_for(cls, values: pa.Array) -> Sequence[Family]:
        """Return the families of this type that tuning may add as further blocks of a column of dates or texts.

        values: the distinct values of the column.
        """
        ...

    def read(self, batch: Readable, columns: Sequence[int]) -> Any:
        """Return the cells of some columns, in the form that `count` and `score` take."""
        ...

    def empty(self, classes: int, columns: int) -> Any:
        """Return the statistic of zero rows."""
        ...

    def count(self, cells: Any, labels: Codes, weights: Floats, classes: int) -> Any:
        """Return the statistic of the rows; rows with label -1 or weight 0 are ignored."""
        ...

    def count_shares(self, cells: Any, shares: Floats) -> Any:
        """Return the statistic of rows that are in every class with a share of their weight; shares: row by class."""
        ...

    def count_in_sql(self, questions: SqlQuestions, columns: Sequence[int]) -> Later[Any] | None:
        """Ask an SQL engine for the numbers behind the statistic; return a function that builds it from the answers.

        Return None if SQL cannot count it. The columns are then read.
        """
        ...

    def check_statistic(self, statistic: Any) -> None:
        """Raise ValueError if no rows can have this statistic; called for the contents of a model file."""
        ...

    def estimate(self, statistic: Any) -> Likelihood:
        """Return the likelihood estimated from the statistic."""
        ...

    def score_left_out(self, statistic: Any, cells: Any, rows: LeftOutRows, slot: Integers, out: Floats) -> None:
        """Add to out[row, slot[b], class] the evidence of each row, common factor included, without that row."""
        ...

    def add_covariance(self, whole: Any, statistic: Any, cells: Any, weight: Floats, out: Covariance) -> None:
        """Add weight[b]**2 times the covariance between classes of the evidence of each block, by the delta method.

        The evidence has an error because the statistic comes from a sample. Errors that classes do not share are
        added to `out.own` only. whole: the likelihood that `estimate` returns for the statistic.
        """
        ...


class ShortRepr:
    """Repr as one would type it, without parameters that have their default."""

    def __repr__(self) -> str:
        given = [
            f"{field.name}={getattr(self, field.name)!r}"
            for field in fields(self)  # type: ignore[arg-type]  # every family is a dataclass
            if getattr(self, field.name) != field.default
        ]
        return f"{type(self).__name__}({', '.join(given)})"


def _overrides(cls: type[Any], methods: Sequence[str], dependent: str) -> bool:
    """Return True if a class overrides one of the methods, but not the method that depends on them."""

    def depth(name: str) -> float:
        return next((k for k, home in enumerate(cls.__mro__) if name in vars(home)), inf)

    return min(map(depth, methods)) < depth(dependent)


class BaseFamily(ShortRepr):
    """Defaults of a family that counts the same for any parameters."""

    accepts_new_columns: ClassVar[bool] = False
    interaction: ClassVar[bool] = False
    is_binned: ClassVar[bool] = False
    is_text: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        """Keep a family that overrides counting from inheriting `count_in_sql` and `count_shares`."""
        super().__init_subclass__()
        for name in ("count_in_sql", "count_shares"):
            if _overrides(cls, ("read", "empty", "count"), name):
                setattr(cls, name, getattr(BaseFamily, name))  # the columns are read, class by class

    @property
    def column_order_matters(self) -> bool:
        return False

    @property
    def statistic_key(self) -> Hashable:
        return type(self).__name__

    @property
    def part(self) -> str | None:
        return None

    @property
    def monotone(self) -> Monotone | None:
        return None

    def constrain(self, monotone: Monotone) -> Any:
        return None

    @property
    def support(self) -> Support:
        return VALUES

    def alternatives(self, summary: NumericSummary | None, others: Sequence[Any], values: int) -> list[Any]:
        return [self]

    @classmethod
    def candidates_for(cls, summary: NumericSummary) -> list[Self]:
        return []

    @classmethod
    def additions_for(cls, values: pa.Array) -> list[Self]:
        return []

    def count_shares(self, cells: Any, shares: Floats) -> Any:
        family: Any = self
        rows, classes = shares.shape
        return reduce(
            lambda total, part: total.merge(part),
            (family.count(cells, np.full(rows, c, dtype=np.int32), shares[:, c], classes) for c in range(classes)),
        )

    def count_in_sql(self, questions: SqlQuestions, columns: Sequence[int]) -> Later[Any] | None:
        return None

    def check_statistic(self, statistic: Any) -> None:
        return


class ColumnFamily(BaseFamily):
    """Base class of families that model each column on its own."""

    joint: ClassVar[bool] = False

    def marginal_family(self) -> Self:
        return self


class BlockFamily(BaseFamily):
    """Base class of families that model their columns jointly."""

    joint: ClassVar[bool] = True


class BaseLikelihood:
    """Defaults of a likelihood for everything optional."""

    accepts_length: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        """Keep a likelihood that overrides `score` from inheriting `lower`."""
        super().__init_subclass__()
        if _overrides(cls, ("score",), "lower"):
            cls.lower = BaseLikelihood.lower  # type: ignore[method-assign]  # it cannot be exported

    @property
    def text_columns(self) -> tuple[Any, ...]:
        return ()

    def log_common_factor(self, cells: Any) -> Floats | None:
        return None

    def shapley_values(self, cells: Any) -> ShapleyValues | None:
        return None

    def discriminant_terms(self, names: Sequence[str]) -> Sequence[DiscriminantTerms] | None:
        return None

    def lower(self, columns: ExportedColumns) -> Lowered:
        raise columns.cannot_export()

    def cdf(self, x: Floats, column: int, label: int) -> Floats | None:
        return None

    def curve_points(self, column: int) -> Floats:
        return np.zeros(0)

    def list_known_values(self) -> Sequence[Any] | None:
        return None


def add_common_factor(likelihood: Likelihood, cells: Any, weight: Floats, slot: Integers, out: Floats) -> None:
    """Add the weighted log factor that is the same for every class."""
    if (factor := likelihood.log_common_factor(cells)) is not None:
        for b in range(factor.shape[1]):
            out[:, slot[b], :] += weight[b] * factor[:, b, None]


def score_block(likelihood: Likelihood, cells: Any, classes: int) -> Floats:
    """Return the evidence of a joint block, common factor included, row by class."""
    one, first = np.ones(1), np.zeros(1, dtype=np.int64)
    rows = len(cells[0]) if isinstance(cells, list) else cells.shape[0]
    out = np.zeros((rows, 1, classes))
    likelihood.score(cells, one, first, out)
    add_common_factor(likelihood, cells, one, first, out)
    return out[:, 0]


def score_by_refitting(
    family: Family, statistic: Any, cells: Any, rows: LeftOutRows, slot: Integers, out: Floats
) -> None:
    """Score left-out rows by definition: remove each row from the counts, estimate, score it.

    Slow: for a few rows, or for families without a formula for `score_left_out`.

    Parameters
    ----------
    family : Family
        The family.
    statistic : Statistic
        The counts of all rows.
    cells : cells
        Cells of the left-out rows, as `Family.read` returns them.
    rows : LeftOutRows
        Labels and weights of the left-out rows.
    slot : ndarray of shape (n_columns,)
        Slot of each column in `out`.
    out : ndarray of shape (n_rows, n_slots, n_classes)
        Array to which the evidence is added.
    """
    classes = out.shape[2]
    ones = np.ones(slot.size)
    for i in range(rows.labels.size):
        row, at = take_rows(cells, [i]), slice(i, i + 1)
        counted = family.count(row, rows.labels[at], rows.removed[at], classes)
        left = statistic
        if rows.removed[i] > 0.0:
            with suppress(ForgetError):  # rounding hides the remaining counts: keep the row
                left = statistic.remove(counted)
        likelihood = family.estimate(left)
        likelihood.score(row, ones, slot, out[at])
        add_common_factor(likelihood, row, ones, slot, out[at])


def take_rows(cells: Any, rows: Any) -> Any:
    """Return some rows of the cells that `Family.read` returns."""
    if isinstance(cells, list):
        return [take_cells(column, rows) for column in cells]
    return cells.take(rows) if isinstance(cells, SparseRows) else cells[rows]


def mask_columns(cells: Any, hidden: Flags) -> Any:
    """Return the cells of a joint block with some of its columns missing."""
    if isinstance(cells, list):
        return [pa.nulls(len(cell), cell.type) if hide else cell for cell, hide in zip(cells, hidden, strict=True)]
    return np.where(hidden, np.nan, cells)


def group_by_missing(missing: Flags) -> Iterator[tuple[Flags, Integers]]:
    """Yield each distinct row of `missing`, with the numbers of the rows equal to it."""
    if not missing.any():
        yield missing[0] if len(missing) else np.zeros(missing.shape[1], dtype=np.bool_), np.arange(len(missing))
        return
    patterns, place, sizes = np.unique(missing, axis=0, return_inverse=True, return_counts=True)
    order = np.argsort(place.ravel(), kind="stable")
    yield from zip(patterns, np.split(order, np.cumsum(sizes)[:-1]), strict=True)
