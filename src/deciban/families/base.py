"""The contract of a family, and what several of them need."""

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
import pyarrow as pa

from deciban import kernels
from deciban.arrays import ROUNDING_VARIANCE, Codes, Flags, Floats, Integers, Numbers, SparseRows, take_cells
from deciban.errors import BadCell, ForgetError, UsageError
from deciban.families.estimates import Estimated, Parameters

Unseen = Literal["ignore", "smooth", "error"]
Outside = Literal["refuse", "ignore"]
Sampled = Any  # an Arrow array or a NumPy array


class Readable(Protocol):
    """Rows of a table, seen as one of the things that families count."""

    def numbers(self, columns: Sequence[int]) -> Numbers:
        """The cells as a C-ordered matrix of real numbers, NaN where one is missing."""
        ...

    def values(self, columns: Sequence[int]) -> Numbers | list[pa.Array]:
        """The cells as they are: a matrix of numbers, or an Arrow array for each column."""
        ...

    def amounts(self, columns: Sequence[int]) -> Numbers | SparseRows:
        """The cells as numbers, of which most may be zero: a matrix, dense or in CSR form."""
        ...


class Likelihood(Protocol):
    """What a family has estimated: log P(cells | class) for the columns of one part of the model."""

    def score(self, cells: Any, weight: Floats, slot: Integers, out: Floats) -> None:
        """Add weight[b] * (evidence of block b) to out[row, slot[b], class], for the blocks of this part."""
        ...

    def base(self, cells: Any) -> Floats | None:
        """The log factor that is the same for every class, row by block; None where it is 0."""
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

    def working(self, cells: Any, row: int, column: int, label: int) -> str | None:
        """How P(cell | class) was found, as one would write it on a blackboard; None where a cell says nothing."""
        ...


class Family(Protocol):
    """How the cells of a column (or of a block of columns) are distributed within each class."""

    @property
    def joint(self) -> bool:
        """Whether all columns of a part form one block; if not, each is a block of its own."""
        ...

    @property
    def counts(self) -> Hashable:
        """What is counted: families for which this is equal can be estimated from each other's statistics."""
        ...

    @property
    def absorbs(self) -> bool:
        """Whether columns that turn up later may join the block."""
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

    def estimate(self, statistic: Any) -> Likelihood:
        """The likelihood that the statistic supports."""
        ...

    def score_left_out(self, statistic: Any, cells: Any, rows: "LeftOut", slot: Integers, out: Floats) -> None:
        """Add to out[row, slot[b], class] each row's evidence (with its base) as if it had not been counted."""
        ...

    def add_covariance(self, whole: Any, statistic: Any, cells: Any, weight: Floats, out: "Covariance") -> None:
        """Add weight[b]**2 times the covariance that the evidence of each block has between the classes, because what
        it was estimated from is a sample: by the delta method. `whole` is what `estimate` makes of the statistic. What
        classes have estimated apart adds to `out.own` alone."""
        ...


def add_base(likelihood: Likelihood, cells: Any, weight: Floats, slot: Integers, out: Floats) -> None:
    """Add the weighted factor that is the same for every class."""
    if (base := likelihood.base(cells)) is not None:
        for b in range(base.shape[1]):
            out[:, slot[b], :] += weight[b] * base[:, b, None]


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
    """Rows that were counted, each to be scored without itself: its class, and the weight of it that is taken out."""

    labels: Codes
    taken: Floats

    def __getitem__(self, rows: Any) -> "LeftOut":
        return LeftOut(self.labels[rows], self.taken[rows])


def score_anew(family: Family, statistic: Any, cells: Any, rows: LeftOut, slot: Integers, out: Floats) -> None:
    """score_left_out by definition: take a row from the counts, estimate, score it. For the few rows, or the family,
    for which there is no shorter way."""
    classes = out.shape[2]
    ones = np.ones(slot.size)
    for i in range(rows.labels.size):
        one, at = cells_of(cells, [i]), slice(i, i + 1)
        counted = family.count(one, rows.labels[at], rows.taken[at], classes)
        left = statistic
        if rows.taken[i] > 0.0:
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


class Spoken:
    """Written as it would be typed: parameters that have their default are left out."""

    def __repr__(self) -> str:
        spoken = [
            f"{field.name}={getattr(self, field.name)!r}"
            for field in fields(self)  # type: ignore[arg-type]  # every family is a dataclass
            if getattr(self, field.name) != field.default
        ]
        return f"{type(self).__name__}({', '.join(spoken)})"


class Counted(Spoken):
    """A family that counts the same whatever its parameters are: they matter when it is estimated."""

    absorbs = False

    @property
    def counts(self) -> Hashable:
        return type(self).__name__


class OfColumns(Counted):
    """A family that models each column by itself."""

    joint = False


class OfBlocks(Counted):
    """A family that models its columns together."""

    joint = True


@dataclass(frozen=True, repr=False)
class PerClass(Spoken):
    """Every class has a variance (or covariance matrix) of its own.

    `shrinkage` moves a covariance matrix towards its diagonal by that share (0 to 1), or by the share that the
    oracle approximating shrinkage finds ("oas"). Single columns have no use for it.
    """

    shrinkage: float | Literal["oas"] = 0.0

    def __post_init__(self) -> None:
        check_shrinkage(self.shrinkage)

    shared: ClassVar[bool] = False
    share_pooled: ClassVar[float] = 0.0

    def combine(self, own: Floats, pooled: Floats) -> Floats:
        """The variances to use, given those of each class and the one of all classes about their own means."""
        return own


@dataclass(frozen=True, repr=False)
class Pooled(Spoken):
    """One variance (or covariance matrix), shared by all classes. `shrinkage` is as for PerClass."""

    shrinkage: float | Literal["oas"] = 0.0

    def __post_init__(self) -> None:
        check_shrinkage(self.shrinkage)

    shared: ClassVar[bool] = True
    share_pooled: ClassVar[float] = 1.0

    def combine(self, own: Floats, pooled: Floats) -> Floats:
        return np.broadcast_to(pooled, own.shape)


@dataclass(frozen=True, repr=False)
class Shrunk(Spoken):
    """Between the two: (1 - amount) of each class's own and `amount` of the pooled. `shrinkage` is as for PerClass."""

    amount: float = 0.5
    shrinkage: float | Literal["oas"] = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.amount, int | float) or not 0.0 <= self.amount <= 1.0:
            raise UsageError(f"Shrunk(amount={self.amount!r}): the share of the pooled variance is between 0 and 1")
        check_shrinkage(self.shrinkage)

    shared: ClassVar[bool] = False

    @property
    def share_pooled(self) -> float:
        return float(self.amount)

    def combine(self, own: Floats, pooled: Floats) -> Floats:
        return (1.0 - self.amount) * own + self.amount * pooled


Spread = PerClass | Pooled | Shrunk


def spread_errors(spread: Spread, rows: Floats, variance: Floats) -> Floats:
    """Half the covariance, class by class, of the errors that variances have in proportion to themselves.

    The variance of class c is the sum of shares[c, k] of the one that class k has by itself, which is known to
    2 variance²/rows; a pooled one is one error in all classes.
    """
    share, total = spread.share_pooled, rows.sum()
    own = np.diag((1.0 - share) ** 2 / (2.0 * rows))
    if not share:
        return own
    ratio, inverse = variance / variance[:, None], variance.max() / variance
    common = share**2 * ((rows / total) @ inverse**-2.0) * inverse * inverse[:, None]
    return np.asarray(own + (share * (1.0 - share) * (ratio + ratio.T) + common) / (2.0 * total))


def vary(variance: Floats, mean: Floats) -> Flags:
    """Whether columns of this overall variance and mean vary; a constant column says nothing.

    What is left of rounding is no variance: doubles that differ at all do so by more than 1e-24 of their size. Below
    1e-290 the inverse of a variance would overflow.
    """
    return np.asarray(variance > least_variance(mean))


def least_variance(mean: Floats) -> Floats:
    """What the variance of a column with this mean must exceed."""
    return np.maximum(1e-290, (1e-24 * mean) ** 2)


def rounding_variance(mean: Floats, overall: Floats) -> Floats:
    """The variance that rounding alone leaves among equal cells of this mean, in a column of this overall variance."""
    return np.asarray(ROUNDING_VARIANCE * (mean**2 + overall))


def check_shrinkage(shrinkage: float | str) -> None:
    if shrinkage != "oas" and not (isinstance(shrinkage, int | float) and 0.0 <= shrinkage <= 1.0):
        raise UsageError(f"shrinkage={shrinkage!r}: give a share between 0 and 1, or 'oas'")


def check_spread(spread: Spread) -> None:
    """Refuse anything but one of the three kinds."""
    if not isinstance(spread, PerClass | Pooled | Shrunk):
        raise UsageError(f"{spread!r} is no kind of spread; give PerClass(), Pooled() or Shrunk(amount)")


def check_no_shrinkage(variance: Spread) -> None:
    """Refuse a shrinkage where there is no matrix to shrink."""
    check_spread(variance)
    if variance.shrinkage != 0.0:
        raise UsageError(f"{variance!r}: a single column has no correlations to shrink; use Shrunk(amount) or a block")


def check_amount(name: str, value: float) -> None:
    """Refuse anything but a finite number >= 0."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0.0 <= value < math.inf:
        raise UsageError(f"{name}={value!r}: give a finite number that is at least 0")


Alpha = float | tuple[float, ...]


def check_alpha(alpha: Alpha) -> None:
    """Refuse anything but a smoothing that is at least 0, or one for each column."""
    for amount in alpha if isinstance(alpha, tuple) else (alpha,):
        check_amount("alpha", amount)


def as_alpha(alpha: Alpha) -> float | Floats:
    """The smoothing as arithmetic takes it."""
    return np.array(alpha) if isinstance(alpha, tuple) else alpha


def check_unseen(unseen: str) -> None:
    if unseen not in ("ignore", "smooth", "error"):
        raise UsageError(f"unseen={unseen!r}: choose 'ignore', 'smooth' or 'error'")


def check_outside(outside: str) -> None:
    if outside not in ("refuse", "ignore"):
        raise UsageError(f"outside={outside!r}: choose 'refuse' or 'ignore'")


def refuse_unless(usable: Flags, numbers: Numbers, expected: str, remedy: str) -> None:
    """A BadCell for the first cell that is present and not usable."""
    bad = ~usable & ~np.isnan(numbers)
    if bad.any():
        row, column = (int(i) for i in np.argwhere(bad)[0])
        raise BadCell(column, row, f"found {numbers[row, column].item()!r}, expected {expected}", remedy)


def refuse_stored(usable: Flags, cells: Numbers | SparseRows, expected: str, remedy: str) -> None:
    """The same for a matrix that may be sparse: `usable` speaks of its stored cells."""
    if isinstance(cells, np.ndarray):
        refuse_unless(usable, cells, expected, remedy)
        return
    bad = np.flatnonzero(~usable & ~np.isnan(cells.stored))
    if bad.size:
        first = bad[0] + cells.indptr[0]
        row = int(np.searchsorted(cells.indptr, first, side="right")) - 1
        found = cells.data[first].item()
        raise BadCell(int(cells.indices[first]), row, f"found {found!r}, expected {expected}", remedy)


def refuse_infinite(numbers: Numbers) -> None:
    """A BadCell for the first infinite cell."""
    if not kernels.all_finite(numbers.ravel()):
        refuse_unless(~np.isinf(numbers), numbers, "a finite number (not infinity)", "correct it or leave it empty")


def impossible(outside: Flags, weight: Floats, slot: Integers, out: Floats) -> None:
    """Give the rows whose cell lies outside a family's support probability 0 in every class."""
    for column in np.flatnonzero(outside.any(axis=0)):
        if weight[column] > 0.0:
            out[outside[:, column], slot[column]] = -np.inf
