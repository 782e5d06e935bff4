"""Intermediate representation of a model for exporters: terms that add up, in blocks.

JavaScript and Python use the output of `lower_model`. SQL and ONNX use the folded form (`fold_model`), which has only
lookups, densities and linear terms. Weights are multiplied into these terms, and unused columns are left out.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from deciban.families.base.lowering import CellPlace, LookupTerm, Refusal, Term, TuplePlace, TupleTerm
from deciban.model.corrections import AveragedTable, Corrections, find_unit, round_to_units
from deciban.model.partial_rows import PartialRows
from deciban.tables.labels import LabelArray
from deciban.util.arrays import Floats, Integers

# Type to which the cells of a column are converted: doubles (0 and 1 for flags, days since 1970 for dates, seconds
# since midnight for times) or texts. The folded form has neither durations nor "any" (cells of a matrix have no type).
ReadAs = Literal["number", "flag", "date", "time", "text", "duration", "any"]

# Kind of input for a column in a form.
Kind = Literal["number", "count", "category", "yes/no", "date", "time", "text", "unused"]


@dataclass(frozen=True)
class Column:
    """Column of the table: its name, cell type, kind of input, and its levels if it has any."""

    name: str
    read_as: ReadAs
    kind: Kind = "number"
    levels: CellPlace | None = None


@dataclass(frozen=True)
class Block:
    """Columns that form one block of evidence: weight times the sum of the terms, limited by the cap.

    If the sum exceeds the cap, it is relative to the best class. If every class has probability 0 under a finite cap,
    the block adds nothing. In the folded form the weight is multiplied into the terms, and the cap of a lookup into its
    table. group: index of the column group in the schema.
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
    """Lookup over all combinations of places, expanded from a term of tuples."""

    tuples: TupleTerm


@dataclass(frozen=True)
class CorrectionTables:
    """Correction tables, indexed by the number of cuts that each column exceeds.

    places: of the corrected columns. A missing cell (place 0) is unknown, unless missing cells of the column are
    evidence or the model has no `PartialRows`: then it exceeds no cut.
    """

    places: tuple[CellPlace, ...]
    corrections: Corrections

    @cached_property
    def tables(self) -> tuple[AveragedTable, ...]:
        """Tables with their means over unknown columns."""
        return tuple(self.corrections.average_tables())

    @cached_property
    def unit(self) -> float:
        """Power of two of which all `contrasts` are multiples."""
        return find_unit(self._contrasts)

    @cached_property
    def contrasts(self) -> Integers:
        """Differences of the other classes to the first one, table by cell by class, as multiples of `unit`."""
        return np.asarray(np.rint(self._contrasts / self.unit).astype(np.int64))

    @cached_property
    def _contrasts(self) -> Floats:
        """Differences to the first class. Learned ones are few units; others are rounded, so that sums fit 32 bits."""
        values = np.where(self.corrections.used_cells[:, :, None], self.corrections.values, 0.0)
        contrasts = values[:, :, 1:] - values[:, :, :1]
        most = (2**31 - 1) // max(len(values), 1)
        if np.abs(contrasts).max(initial=0.0) <= most * find_unit(contrasts):
            return contrasts
        return round_to_units(contrasts, most)


@dataclass(frozen=True)
class TermModel:
    """Model as terms: log joint = log prior + scale * (bias + sum of the blocks + corrections).

    What is added to the log prior is raised to `limit` below that of the best class, unless it is -inf.
    columns: by index in the schema; in the folded form only those that are read. partial: bias and scale, depending on
    the known columns; None for no bias and a scale of 1. presence: places that show whether a cell is missing, for the
    columns where this matters; only in the folded form. If every class has probability 0, the posterior is the prior.
    Ties go to the first class. A rejected row has no result.
    order: classes in ascending order, if they are ordered; the prediction is then the posterior median.
    """

    classes: LabelArray
    log_prior: Floats
    columns: dict[int, Column]
    blocks: tuple[Block, ...]
    corrections: CorrectionTables | None
    refusals: tuple[Refusal, ...]
    partial: PartialRows | None
    presence: dict[int, CellPlace]
    limit: float
    order: tuple[int, ...] | None = None

    @cached_property
    def places(self) -> tuple[CellPlace, ...]:
        """Distinct places of single cells used by lookups and corrections."""
        return tuple(dict.fromkeys(self._places()))

    def _places(self) -> Iterator[CellPlace]:
        for block in self.blocks:
            for term in block.terms:
                yield from term_places(term)
        if self.corrections is not None:
            yield from self.corrections.places
        yield from self.presence.values()


def term_places(term: Term) -> tuple[CellPlace, ...]:
    """Return the places of single cells that a term looks up."""
    if isinstance(term, TupleTerm):
        return term.members
    if isinstance(term, LookupTerm):
        return term.place.members if isinstance(term.place, TuplePlace) else (term.place,)
    return ()
