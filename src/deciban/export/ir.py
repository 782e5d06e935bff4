"""The intermediate representation of a model: terms that add up, in blocks, with corrections and rejected rows.

JavaScript and Python read it as `lower_model` makes it. SQL and ONNX read the folded form (`fold_model`), in which only
lookups, densities and linear terms are left, weights are in the terms, and nothing unused is left.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from deciban.families.base.lowering import CellPlace, LookupTerm, Refusal, Term, TuplePlace, TupleTerm
from deciban.model.corrections import AveragedTable, Corrections
from deciban.model.partial_rows import PartialRows
from deciban.tables.labels import LabelArray
from deciban.util.arrays import Floats

# What the cells of a column are read as: doubles, of flags 0 and 1, of dates days since 1970, of times seconds since
# midnight; or texts. Not in the folded form: durations, and any type (cells of a matrix have no type).
ReadAs = Literal["number", "flag", "date", "time", "text", "duration", "any"]

# What users enter for a column.
Kind = Literal["number", "count", "category", "yes/no", "date", "time", "text", "unused"]


@dataclass(frozen=True)
class Column:
    """A column of the table: its name, what its cells are read as, what users enter, and its levels if it has any."""

    name: str
    read_as: ReadAs
    kind: Kind = "number"
    levels: CellPlace | None = None


@dataclass(frozen=True)
class Block:
    """Columns that are evidence together: weight times the sum of its terms, no further below the best class than cap.

    If that is beyond the cap, it is relative to the best class. If every class has probability 0 under a finite cap, a
    block adds nothing. In the folded form the weight is in the terms and the cap of a lookup in its table. group: the
    number of its column group in the schema, of this family.
    """

    name: str
    columns: tuple[int, ...]
    group: int
    family: str
    weight: float
    cap: float
    terms: tuple[Term, ...]


@dataclass(frozen=True)
class ExpandedTerm(LookupTerm):
    """The lookup of all combinations of places, made from a term of tuples; members: as they are in the tuple place."""

    tuples: TupleTerm


@dataclass(frozen=True)
class CorrectionTables:
    """Tables whose values are added to the log joint, looked up by how many cuts each of their columns is beyond.

    places: of the corrected columns. A missing cell (place 0) is unknown, unless it is evidence: then, as without
    `PartialRows`, it is beyond no cut.
    """

    places: tuple[CellPlace, ...]
    corrections: Corrections

    @cached_property
    def tables(self) -> tuple[AveragedTable, ...]:
        """The tables with their means over unknown columns."""
        return tuple(self.corrections.average_tables())


@dataclass(frozen=True)
class TermModel:
    """log joint = log prior + scale * (bias + sum of the blocks + corrections).

    columns: by their number in the schema; in the folded form those that are read. partial: the bias and the scale, by
    the known columns; None: no bias, and a scale of 1. presence: the places of the columns of which it has to be known
    whether they are missing; only in the folded form. If every class has probability 0 the posterior is the prior; ties
    go to the first class. A rejected row has no answer.
    """

    classes: LabelArray
    log_prior: Floats
    columns: dict[int, Column]
    blocks: tuple[Block, ...]
    corrections: CorrectionTables | None
    refusals: tuple[Refusal, ...]
    partial: PartialRows | None
    presence: dict[int, CellPlace]

    @cached_property
    def places(self) -> tuple[CellPlace, ...]:
        """Every place of a single cell that a lookup or a correction needs, once."""
        return tuple(dict.fromkeys(self._places()))

    def _places(self) -> Iterator[CellPlace]:
        for block in self.blocks:
            for term in block.terms:
                yield from term_places(term)
        if self.corrections is not None:
            yield from self.corrections.places
        yield from self.presence.values()


def term_places(term: Term) -> tuple[CellPlace, ...]:
    """The places of single cells that a term is looked up by."""
    if isinstance(term, TupleTerm):
        return term.members
    if isinstance(term, LookupTerm):
        return term.place.members if isinstance(term.place, TuplePlace) else (term.place,)
    return ()
