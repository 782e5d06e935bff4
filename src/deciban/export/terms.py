"""A model as terms: a sum of tables and simple functions of cells, for targets that have nothing else, SQL and ONNX.

A *place* is a whole number that a row has, by which a table is looked up: of a value among levels, of a number among
cuts, of several of these together. Place 0 is a missing cell. A *term* adds a number for each class. Weights are in the
terms already; what is the same for every class is left out, so only differences between classes mean anything.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Literal

from deciban.families.joint_gaussian import JointNormal
from deciban.model.corrections import AveragedTable
from deciban.model.partial_rows import PartialRows
from deciban.tables.labels import LabelArray
from deciban.util.arrays import Floats, Integers

# The places of a missing cell, and of a value that is none of the levels.
MISSING_PLACE, OTHER_PLACE = 0, 1

# What cells of a column are read as: doubles, of flags 0 and 1, of dates days since 1970, of times seconds since
# midnight; or texts.
ReadAs = Literal["number", "flag", "date", "time", "text"]

# What levels are: doubles (also of flags, and of whole numbers that doubles hold), whole numbers of 64 bits, texts,
# microseconds since 1970 or since midnight.
LevelKind = Literal["number", "integer", "text", "date", "time"]


@dataclass(frozen=True)
class Column:
    """A column of the table: its name, and what its cells are read as."""

    name: str
    read_as: ReadAs


@dataclass(frozen=True)
class LevelPlace:
    """The place of a value among some: 0 where the cell is missing, 1 where it is none of them, then the levels.

    merged: a value that is none of them counts as missing; the levels begin at 1.
    """

    column: int
    kind: LevelKind
    levels: tuple[str | float | int, ...]
    merged: bool = False

    @property
    def first(self) -> int:
        """The place of the first level."""
        return 1 if self.merged else 2

    @property
    def size(self) -> int:
        """How many places there are."""
        return self.first + len(self.levels)


@dataclass(frozen=True)
class CutPlace:
    """The place of a number between rising cuts: 0 where it is missing, else 1 + how many of them do not lie above."""

    column: int
    cuts: tuple[float, ...]

    @property
    def size(self) -> int:
        """How many places there are."""
        return 2 + len(self.cuts)


@dataclass(frozen=True)
class TuplePlace:
    """The place of several cells together: their places as the digits of a number, the last one the fastest."""

    members: tuple[LevelPlace | CutPlace, ...]

    @property
    def size(self) -> int:
        """How many places there are."""
        return prod(member.size for member in self.members)

    @property
    def factors(self) -> tuple[int, ...]:
        """What the place of each member is multiplied by."""
        return tuple(prod(member.size for member in self.members[k + 1 :]) for k in range(len(self.members)))


Place = LevelPlace | CutPlace | TuplePlace


@dataclass(frozen=True)
class LookupTerm:
    """table[place]; the table is place by class, and 0 where the cell is missing."""

    place: Place
    table: Floats


@dataclass(frozen=True)
class NormalTerm:
    """offset - ((x - centre - mean) * root)**2 of each class; nothing where the cell is missing.

    of_log: x is the logarithm of the cell, of which only numbers above 0 have one. impossible: any other number has
    probability 0 in every class; else it counts as missing.
    """

    column: int
    centre: float
    mean: Floats
    root: Floats
    offset: Floats
    of_log: bool = False
    impossible: bool = False


@dataclass(frozen=True)
class HalfLineTerm:
    """offset + power * log(x) + slope * x of each class, x cut off at LARGEST; offset alone where x is 0.

    Only numbers above 0 have it, or, if it `counts`, the whole numbers from 0 on. impossible: any other number has
    probability 0 in every class; else it counts as missing.
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

    Below a half of |u| log(1 + u) keeps its digits as log1p; from there on it is log(x) - log(mean). Only numbers above
    0 have it. impossible: any other number has probability 0 in every class; else it counts as missing.
    """

    column: int
    peak: Floats
    shape: Floats
    mean: Floats
    mean_low: Floats
    impossible: bool


@dataclass(frozen=True)
class LinearTerm:
    """min(x, TOO_LARGE) * slope of each class; nothing where the cell is missing or 0, whatever its slope."""

    column: int
    slope: Floats


@dataclass(frozen=True)
class WhitenedForm:
    """offset - |whiten (x - centre) - mean|**2 of each class.

    group: which of the matrices each class has. whiten: group by coordinate by column. mean: class by coordinate.
    offset: by class.
    """

    group: Integers
    whiten: Floats
    mean: Floats
    offset: Floats


@dataclass(frozen=True)
class JointNormalTerm:
    """A whitened form of rows whose cells are all there; nothing where all are missing.

    Of other rows it is weight * the log density of the cells that are there, by `normals`, the distributions without
    their weight: the others are integrated out. centre: by column. holed: whether rows are known to have had missing
    cells when they were learned.
    """

    columns: tuple[int, ...]
    centre: Floats
    form: WhitenedForm
    weight: float
    normals: JointNormal
    holed: bool


Term = LookupTerm | NormalTerm | HalfLineTerm | NarrowGammaTerm | LinearTerm | JointNormalTerm


@dataclass(frozen=True)
class Block:
    """Columns that speak together: the sum of its terms, relative to the best class and no further below it than `cap`.

    Where every class has probability 0 under a finite cap, a block says nothing. The cap of a single lookup is in its
    table already. group: the place of its column group in the schema.
    """

    name: str
    columns: tuple[int, ...]
    group: int
    weight: float
    cap: float
    terms: tuple[Term, ...]


@dataclass(frozen=True)
class CorrectionTables:
    """Tables whose values are added to the log joint, looked up by how many cuts each of their columns is beyond.

    places: of the corrected columns. A missing cell (place 0) is unknown, unless it is evidence: then, as without
    `PartialRows`, it is beyond no cut.
    """

    places: tuple[LevelPlace | CutPlace, ...]
    tables: tuple[AveragedTable, ...]


@dataclass(frozen=True)
class Refusal:
    """A row with one of these places is refused: it has no answer."""

    place: LevelPlace | CutPlace
    places: tuple[int, ...]


@dataclass(frozen=True)
class TermModel:
    """log joint = log prior + scale * (bias + sum of the blocks + corrections).

    columns: those that are read, by their number in the schema. partial: the bias and the scale, by the columns that
    are known; None: no bias, and a scale of 1. presence: the places of the columns of which it has to be known whether
    they are missing. Where every class has probability 0 the posterior is the prior; ties go to the first class. A row
    that is refused has no answer.
    """

    classes: LabelArray
    log_prior: Floats
    columns: dict[int, Column]
    blocks: tuple[Block, ...]
    corrections: CorrectionTables | None
    refusals: tuple[Refusal, ...]
    partial: PartialRows | None
    presence: dict[int, LevelPlace | CutPlace]

    @cached_property
    def places(self) -> tuple[LevelPlace | CutPlace, ...]:
        """Every place of a single cell that a lookup or a correction asks for, once."""
        return tuple(dict.fromkeys(self._places()))

    def _places(self) -> Iterator[LevelPlace | CutPlace]:
        for block in self.blocks:
            for term in block.terms:
                if isinstance(term, LookupTerm):
                    yield from term.place.members if isinstance(term.place, TuplePlace) else (term.place,)
        if self.corrections is not None:
            yield from self.corrections.places
        yield from self.presence.values()
