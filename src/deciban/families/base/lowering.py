"""The terms that a likelihood is lowered to for export: tables and simple functions of cells, which add up.

A *place* is a whole number by which a table is looked up: of a value among levels, of a number among cuts, of several
of these together. Place 0 is a missing cell. A *term* adds a number for each class; numbers that are the same for every
class are left out, so only differences between classes mean anything. Every export target reads these terms and none
knows a family: a new family writes `lower`, and needs a change elsewhere only for a new kind of term.
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

# The places of a missing cell, and of a value that is not one of the levels.
MISSING_PLACE = 0
OTHER_PLACE = 1

# The codes of a member of a tuple that is summed over, and of one that occurs in no tuple.
SUMMED_OVER = -1
NEVER_SEEN = -2

MAX_DOUBLE = float(np.finfo(np.float64).max)

# Types of levels: texts, whole numbers of 64 bits, doubles, flags, microseconds since 1970 or since midnight, or none.
LevelKind = Literal["text", "integer", "number", "flag", "date", "time", "none"]


@dataclass(frozen=True)
class LevelPlace:
    """The place of a value among levels: 0 for a missing cell, 1 for any other value, then the levels.

    merged: any other value counts as missing; the levels begin at 1.
    """

    column: int
    kind: LevelKind
    levels: tuple[Any, ...]
    merged: bool = False

    @property
    def first(self) -> int:
        """The place of the first level."""
        return 1 if self.merged else 2

    @property
    def size(self) -> int:
        """The number of places."""
        return self.first + len(self.levels)


@dataclass(frozen=True)
class CutPlace:
    """The place of a number between rising cuts: 0 if it is missing, else 1 + how many of them do not lie above."""

    column: int
    cuts: tuple[float, ...]

    @property
    def size(self) -> int:
        """The number of places."""
        return 2 + len(self.cuts)


CellPlace = LevelPlace | CutPlace


@dataclass(frozen=True)
class TuplePlace:
    """The place of several cells together: their places as the digits of a number, the last one the fastest."""

    members: tuple[CellPlace, ...]

    @property
    def size(self) -> int:
        """The number of places."""
        return prod(member.size for member in self.members)

    @property
    def factors(self) -> tuple[int, ...]:
        """The factor of the place of each member."""
        return tuple(prod(member.size for member in self.members[k + 1 :]) for k in range(len(self.members)))


Place = LevelPlace | CutPlace | TuplePlace


@dataclass(frozen=True)
class LookupTerm:
    """table[place]; the table is place by class, and 0 for a missing cell."""

    place: Place
    table: Floats


@dataclass(frozen=True)
class NormalTerm:
    """offset - ((x - center - mean) * root)**2 of each class; nothing for a missing cell.

    of_log: x is the logarithm of the cell, which only numbers above 0 have. impossible: any other number has
    probability 0 in every class; else it counts as missing.
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
    """offset + power * log(x) + slope * x of each class, x at most MAX_AMOUNT; offset alone if x is 0.

    It is defined for numbers above 0, or, if it `counts`, for the whole numbers from 0 on. impossible: any other number
    has probability 0 in every class; else it counts as missing.
    """

    column: int
    offset: Floats
    power: Floats
    slope: Floats
    counts: bool
    impossible: bool


@dataclass(frozen=True)
class NarrowGammaTerm:
    """peak + shape * (log(1 + u) - u) of each class, where u = ((x - mean) - mean_low) / mean is at most 1e250.

    If |u| is below 1/2, log(1 + u) keeps its digits as log1p; else it is log(x) - log(mean). It is defined for numbers
    above 0. impossible: any other number has probability 0 in every class; else it counts as missing.
    """

    column: int
    peak: Floats
    shape: Floats
    mean: Floats
    mean_low: Floats
    impossible: bool


@dataclass(frozen=True)
class LinearTerm:
    """min(x, TOO_LARGE) * slope of each class; nothing for a cell that is missing or 0, whatever its slope."""

    column: int
    slope: Floats


@dataclass(frozen=True)
class WhitenedForm:
    """offset - |whiten (x - center) - mean|**2 of each class.

    group: which of the matrices each class has. whiten: group by coordinate by column, 0 from column reach[coordinate]
    on. mean: class by coordinate. offset: by class.
    """

    group: Integers
    whiten: Floats
    reach: Integers
    mean: Floats
    offset: Floats


@dataclass(frozen=True)
class JointNormalTerm:
    """The whitened form for rows without missing cells; nothing if all cells are missing.

    For other rows it is weight * the log density of the known cells, the others integrated out: normal in the units
    (x - center) / unit, with mean[class] and covariance[form.group[class]]. center, unit: by column. holed: whether
    rows are known to have had missing cells when they were learned.
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
    """log P(tuple | class) of several cells together, by counts of tuples; missing cells are summed over.

    It is log((count + a) / (sum + a * possible)), where a is alpha times the combinations of the members summed over,
    and possible is how many tuples the others have; a class without counts and smoothing takes the shares of all
    classes. codes: for each member, from its place to its code in the tuples, SUMMED_OVER or NEVER_SEEN. sizes: the
    number of levels of each member. tuples: tuple by member. counts: class by tuple.
    """

    members: tuple[CellPlace, ...]
    codes: tuple[Integers, ...]
    sizes: tuple[int, ...]
    tuples: Integers
    counts: Floats
    alpha: float


@dataclass(frozen=True)
class TextTerm:
    """The sum of amount * score over the known words of a text, times max(sum of amounts, 1) ** -tempering.

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
    """A row with one of these places is rejected: it has no answer.

    expected: a description of valid cells; "": the value was `never` seen. if_weighted: only if this block of the group
    has a weight.
    """

    place: CellPlace
    places: tuple[int, ...]
    expected: str = ""
    never: str = ""
    if_weighted: int | None = None


@dataclass(frozen=True)
class Lowered:
    """The terms of each block of a column group, and the rows that it rejects."""

    blocks: list[list[Term]]
    refusals: list[Refusal]


@dataclass(frozen=True)
class ExportedColumns:
    """The columns that a likelihood is lowered for: its family, their numbers in the schema and their names."""

    family: Any
    numbers: tuple[int, ...]
    names: Sequence[str]

    def cannot_export(self) -> UsageError:
        """The error of a family without terms."""
        return UsageError(
            f"{self.family} cannot be exported",
            place=Where(column=self.names[0]),
            remedy="give it another family, and fit again",
        )

    def level_place(self, k: int, levels: pa.Array) -> LevelPlace:
        """The place of a value of column k among Arrow's levels."""
        return level_place(self.numbers[k], levels, self.names[k])


def level_place(column: int, levels: pa.Array, name: str) -> LevelPlace:
    """The place of a value among Arrow's levels; a UsageError that names the column if they cannot be exported."""
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
        f"its values are {kind}, which cannot be exported",
        place=Where(column=name),
        remedy="turn the column into text or numbers, and fit again",
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
    return Refusal(CutPlace(column, (0.0, inf)), (1, 3), "a count: not negative, not infinite")


def lookup(place: CellPlace, rows: Floats) -> LookupTerm:
    """The lookup of the rows of the places from 1 on; a missing cell has a row of zeros before them."""
    return LookupTerm(place, np.concatenate([np.zeros((1, rows.shape[1])), rows]))
