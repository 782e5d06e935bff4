"""Terms that a likelihood is lowered to for export: tables and simple functions of cells, which are summed.

A *place* is the index of a row of a table: the index of a value among levels, of a number among cuts, or of a
combination of these. Place 0 is a missing cell. A *term* adds a number for each class. Numbers that are the same for
every class are left out, so only differences between classes are meaningful. Export targets read these terms and do not
depend on families. A new family implements `lower`; only a new type of term needs changes elsewhere.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, prod
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from deciban.errors import Place as Where, UsageError
from deciban.util.arrays import Floats, Integers

if TYPE_CHECKING:
    from deciban.families.text.tokens import Tokens

# Place of a missing cell.
MISSING_PLACE = 0

# Place of a value that is not one of the levels.
OTHER_PLACE = 1

# Code of a member of a tuple that is summed over.
SUMMED_OVER = -1

# Code of a member of a tuple that occurs in no tuple.
NEVER_SEEN = -2

# The largest finite double.

MAX_DOUBLE = float(np.finfo(np.float64).max)

# Types of levels: texts, 64-bit integers, doubles, flags, microseconds since 1970 or since midnight, or no levels.
LevelKind = Literal["text", "integer", "number", "flag", "date", "time", "none"]


@dataclass(frozen=True)
class LevelPlace:
    """Place of a value among levels: 0 for a missing cell, 1 for any other value, then the levels.

    merged: any other value counts as missing; the levels begin at 1. part: the levels are of this part of a cell (see
    `Categorical`); those of a date are integers.
    """

    column: int
    kind: LevelKind
    levels: tuple[Any, ...]
    merged: bool = False
    part: Any = None

    @property
    def first(self) -> int:
        """Place of the first level."""
        return 1 if self.merged else 2

    @property
    def size(self) -> int:
        """Number of places."""
        return self.first + len(self.levels)


@dataclass(frozen=True)
class CutPlace:
    """Place of a number between ascending cuts: 0 if it is missing, else 1 + the number of cuts not above it."""

    column: int
    cuts: tuple[float, ...]

    @property
    def size(self) -> int:
        """Number of places."""
        return 2 + len(self.cuts)


CellPlace = LevelPlace | CutPlace


@dataclass(frozen=True)
class TuplePlace:
    """Place of several cells together: their places as the digits of a number, the last one varying fastest."""

    members: tuple[CellPlace, ...]

    @property
    def size(self) -> int:
        """Number of places."""
        return prod(member.size for member in self.members)

    @property
    def factors(self) -> tuple[int, ...]:
        """Factor of the place of each member."""
        return tuple(prod(member.size for member in self.members[k + 1 :]) for k in range(len(self.members)))


Place = LevelPlace | CutPlace | TuplePlace


@dataclass(frozen=True)
class LookupTerm:
    """Term table[place]; the table is place by class, and 0 for a missing cell."""

    place: Place
    table: Floats


@dataclass(frozen=True)
class NormalTerm:
    """Term offset - ((x - center - mean) * root)**2 of each class; 0 for a missing cell.

    of_log: x is the logarithm of the cell, defined for numbers above 0. impossible: any other number has probability 0
    in every class; otherwise it counts as missing.
    """

    column: int
    center: float
    mean: Floats
    root: Floats
    offset: Floats
    of_log: bool = False
    impossible: bool = False


@dataclass(frozen=True)
class HalfLineTerm:
    """Term offset + power * log(x) + slope * x of each class, x at most MAX_AMOUNT; only offset if x is 0.

    It is defined for numbers above 0 or, with `counts`, for the whole numbers 0, 1, 2, ... impossible: any other number
    has probability 0 in every class; otherwise it counts as missing.
    """

    column: int
    offset: Floats
    power: Floats
    slope: Floats
    counts: bool
    impossible: bool


@dataclass(frozen=True)
class NarrowGammaTerm:
    """Term peak + shape * (log(1 + u) - u) of each class, where u = ((x - mean) - mean_low) / mean is at most 1e250.

    log(1 + u) is computed as log1p(u) if |u| < 1/2, to keep its digits, else as log(x) - log(mean). The term is defined
    for numbers above 0. impossible: any other number has probability 0 in every class; otherwise it counts as missing.
    """

    column: int
    peak: Floats
    shape: Floats
    mean: Floats
    mean_low: Floats
    impossible: bool


@dataclass(frozen=True)
class LinearTerm:
    """Term min(x, TOO_LARGE) * slope of each class; 0 for a cell that is missing or 0, even if slope is infinite."""

    column: int
    slope: Floats


@dataclass(frozen=True)
class WhitenedForm:
    """Form offset - |whiten (x - center) - mean|**2 of each class.

    group: the index of the matrix of each class. whiten: group by coordinate by column; 0 from column
    reach[coordinate] on. mean: class by coordinate. offset: by class.
    """

    group: Integers
    whiten: Floats
    reach: Integers
    mean: Floats
    offset: Floats


@dataclass(frozen=True)
class JointNormalTerm:
    """Term of a joint normal distribution: the whitened form for rows without missing cells; 0 if all are missing.

    For other rows it is weight * the log density of the known cells, with the others integrated out: normal in the
    units (x - center) / unit, with mean[class] and covariance[form.group[class]]. center, unit: by column. holed: True
    if training rows are known to have had missing cells.
    """

    columns: tuple[int, ...]
    center: Floats
    form: WhitenedForm
    unit: Floats
    mean: Floats
    covariance: Floats
    weight: float = 1.0
    holed: bool = False


@dataclass(frozen=True)
class TupleTerm:
    """Term log P(tuple | class) of several cells together, from counts of tuples; missing cells are summed over.

    It is log((count + a) / (sum + a * possible)), where a is alpha times the number of combinations of the members
    summed over, and possible is the number of tuples of the others. A class without counts and smoothing takes the
    shares of all classes. codes: for each member, its code in the tuples by place, or SUMMED_OVER or NEVER_SEEN. sizes:
    the number of levels of each member. tuples: tuple by member. counts: class by tuple.
    """

    members: tuple[CellPlace, ...]
    codes: tuple[Integers, ...]
    sizes: tuple[int, ...]
    tuples: Integers
    counts: Floats
    alpha: float


@dataclass(frozen=True)
class TextTerm:
    """Term of a text: the sum of amount * score over its known words, times max(sum of amounts, 1) ** -tempering.

    words: the vocabulary. buckets, seeds: the number of buckets of rare words, and the seeds of their hash.
    term_counts, normalize: the rule that turns the count of a word into its amount. scores[row[word]]: the score of a
    word for each class. With `absent` (word by class, by the same rows) only presence matters: the sum starts from all
    words absent, `zeros`, with `blocked` terms of -inf among them, and replaces the scores of those present.
    """

    column: int
    tokens: "Tokens"
    words: Sequence[str]
    buckets: int
    seeds: tuple[int, ...]
    term_counts: str
    normalize: bool
    tempering: float
    scores: Floats
    row: Integers
    absent: Floats | None = None
    zeros: Floats | None = None
    blocked: Floats | None = None


Term = LookupTerm | NormalTerm | HalfLineTerm | NarrowGammaTerm | LinearTerm | JointNormalTerm | TupleTerm | TextTerm


@dataclass(frozen=True)
class Refusal:
    """Rule that rejects rows with one of these places.

    expected: a description of valid cells; if it is empty, `never` is the message. if_weighted: the number of a block;
    apply the rule only if it has a weight.
    """

    place: CellPlace
    places: tuple[int, ...]
    expected: str = ""
    never: str = ""
    if_weighted: int | None = None


@dataclass(frozen=True)
class Lowered:
    """Terms of each block of a column group, and rules that reject rows."""

    blocks: list[list[Term]]
    refusals: list[Refusal]


@dataclass(frozen=True)
class ExportedColumns:
    """Columns that a likelihood is lowered for: its family, their numbers in the schema, and their names."""

    family: Any
    numbers: tuple[int, ...]
    names: Sequence[str]

    def cannot_export(self) -> UsageError:
        """Return the error for a family that does not support export."""
        return UsageError(
            f"{self.family} cannot be exported",
            place=Where(column=self.names[0]),
            remedy="choose a different family for this column, and fit again",
        )

    def level_place(self, k: int, levels: pa.Array) -> LevelPlace:
        """Return the place of a value of column k among Arrow levels."""
        return level_place(self.numbers[k], levels, self.names[k])


def level_place(column: int, levels: pa.Array, name: str) -> LevelPlace:
    """Return the place of a value among Arrow levels; raise UsageError if their type cannot be exported."""
    kind = levels.type
    if pa.types.is_null(kind):
        return LevelPlace(column, "none", ())
    if pa.types.is_string(kind):
        return LevelPlace(column, "text", tuple(levels.to_pylist()))
    if pa.types.is_int64(kind):
        return LevelPlace(column, "integer", tuple(levels.to_pylist()))
    if pa.types.is_float64(kind):
        return LevelPlace(column, "number", tuple(levels.to_pylist()))
    if pa.types.is_boolean(kind):
        return LevelPlace(column, "flag", tuple(levels.to_pylist()))
    if pa.types.is_date(kind) or (pa.types.is_timestamp(kind) and kind.tz is None):
        return LevelPlace(column, "date", _microseconds(levels.cast(pa.timestamp("us"), safe=False)))
    if pa.types.is_time(kind):
        return LevelPlace(column, "time", _microseconds(levels.cast(pa.time64("us"), safe=False)))
    raise UsageError(
        f"values of type {kind} cannot be exported",
        place=Where(column=name),
        remedy="convert the column to text or numbers, and fit again",
    )


def _microseconds(levels: pa.Array) -> tuple[int, ...]:
    return tuple(levels.cast(pa.int64()).to_pylist())


def reject_infinite(column: int, if_weighted: int | None = None) -> Refusal:
    """Reject numbers that are not finite."""
    place = CutPlace(column, (-MAX_DOUBLE, inf))
    return Refusal(place, (1, 3), "a finite number (not infinity)", if_weighted=if_weighted)


def reject_other_than_flags(column: int) -> Refusal:
    """Reject numbers other than 0 and 1."""
    edges = (0.0, float(np.nextafter(0.0, 1.0)), 1.0, float(np.nextafter(1.0, 2.0)))
    return Refusal(CutPlace(column, edges), (1, 3, 5), "0 or 1")


def reject_other_than_amounts(column: int) -> Refusal:
    """Reject negative and infinite numbers."""
    return Refusal(CutPlace(column, (0.0, inf)), (1, 3), "a number that is not negative and not infinite")


def lookup(place: CellPlace, rows: Floats) -> LookupTerm:
    """Return a lookup of these rows, for places from 1 on; a missing cell (place 0) has zeros."""
    return LookupTerm(place, np.concatenate([np.zeros((1, rows.shape[1])), rows]))
