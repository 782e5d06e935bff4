"""From a fitted model to terms."""

import math
from dataclasses import replace

import numpy as np

from deciban.errors import UsageError
from deciban.export.columns import READ_AS
from deciban.export.likelihood_terms import REMEDY, Group, level_place, no_flag, terms_of_likelihood
from deciban.export.terms import (
    Block,
    Column,
    CorrectionTables,
    CutPlace,
    HalfLineTerm,
    JointNormalTerm,
    LevelPlace,
    LookupTerm,
    NarrowGammaTerm,
    NormalTerm,
    Place,
    ReadAs,
    Refusal,
    Term,
    TermModel,
    TuplePlace,
)
from deciban.model.corrections import Corrections
from deciban.model.fitted import Fitted
from deciban.model.model import Model
from deciban.schema.schema import Schema
from deciban.statistics import Scatter
from deciban.tables.text_types import kind_of
from deciban.util.arrays import Floats


def model_as_terms(fitted: Fitted | Model) -> TermModel:
    """A model as terms of a sum, for targets that have nothing else.

    Parameters
    ----------
    fitted : Fitted or Model
        What is known, or the model of it. Of a `Model` alone it is not known whether cells were missing when it was
        learned.

    Returns
    -------
    TermModel

    Raises
    ------
    UsageError
        If a column cannot be said as terms; it is named.

    See Also
    --------
    deciban.export.model_json.model_as_json : The same of every family, for programs that can do more.

    Examples
    --------
    >>> from deciban import BayesClassifier
    >>> from deciban.datasets import weather
    >>> terms = model_as_terms(BayesClassifier(tune=None).fit(weather(), "play").model_)
    >>> terms.columns[0], len(terms.blocks), terms.blocks[0].terms[0].place.levels
    (Column(name='outlook', read_as='text'), 4, ('overcast', 'rain', 'sunny'))
    """
    model = fitted.model if isinstance(fitted, Fitted) else fitted
    schema = model.schema
    blocks: dict[int, Block] = {}
    refusals: list[Refusal] = []
    for p, (family_group, slots) in enumerate(zip(schema.groups, schema.block_slots, strict=True)):
        names = [schema.column_name(column) for column in family_group.columns]
        holed = isinstance(fitted, Fitted) and _is_holed(fitted, p)
        group = Group(family_group.family, family_group.columns, names, model.weights[slots], holed)
        found = terms_of_likelihood(model.likelihoods[p], group)
        refusals += found.refusals
        words = group.family.holds_texts or group.family.absorbs
        for k, (slot, terms) in enumerate(zip(slots.tolist(), found.terms, strict=True)):
            columns = group.columns if group.family.joint else group.columns[k : k + 1]
            cap = math.inf if words else float(model.cap)
            block = Block(schema.block_names[slot], columns, p, float(model.weights[slot]), cap, tuple(terms))
            if terms:
                blocks[slot] = _with_cap(block)
    in_order = tuple(blocks[slot] for slot in sorted(blocks))
    tables = None if model.corrections is None else _corrections(model.corrections, schema)
    kept = tuple(dict.fromkeys(refusals))
    presence = {} if model.partial is None else _presence(model, in_order)
    read = sorted(_columns_read(in_order, tables, kept) | set(presence))
    flags = {one.place.column for one in kept if one == no_flag(one.place.column)}
    return TermModel(
        model.classes,
        model.log_prior,
        {c: Column(schema.column_name(c), "flag" if c in flags else read_as(schema, c)) for c in read},
        in_order,
        tables,
        kept,
        model.partial,
        presence,
    )


def _presence(model: Model, blocks: tuple[Block, ...]) -> dict[int, LevelPlace | CutPlace]:
    """The places of the columns that have an offset, a share of the evidence or corrections: 0 where a cell is missing.

    An empty text is a place of its own where it is a level: ONNX has no other way to write a missing text.
    """
    places = [term.place for block in blocks for term in block.terms if isinstance(term, LookupTerm)]
    members = [one for place in places for one in (place.members if isinstance(place, TuplePlace) else (place,))]
    empty = {one.column for one in members if isinstance(one, LevelPlace) and "" in one.levels}
    partial = model.partial
    found: dict[int, LevelPlace | CutPlace] = {}
    assert partial is not None, "there are offsets"
    used = set(np.flatnonzero(partial.offsets.any(axis=1) | (partial.shares > 0.0)).tolist())
    used |= set() if model.corrections is None else {one.column for one in model.corrections.columns}
    for column in sorted(used):
        if read_as(model.schema, column) == "text":
            found[column] = LevelPlace(column, "text", ("",) if column in empty else ())
        else:
            found[column] = CutPlace(column, ())
    return found


def _is_holed(fitted: Fitted, p: int) -> bool:
    """Whether a column group left out rows with missing cells when it was counted."""
    counts = fitted.counts.for_schema(fitted.model.schema)
    statistic = counts.statistics[p]
    return isinstance(statistic, Scatter) and bool(statistic.weight.sum() < (1.0 - 1e-9) * counts.class_weight.sum())


def read_as(schema: Schema, column: int) -> ReadAs:
    """What the cells of a column are read as, by the type that it was learned with; a UsageError for durations."""
    if schema.types is None:
        return "number"
    learned = schema.types[column]
    if learned.startswith("duration"):
        raise UsageError(f"column {schema.column_name(column)!r}: durations cannot be said as terms of a sum; {REMEDY}")
    return READ_AS.get(kind_of(learned), "text")  # type: ignore[return-value]  # these are some of them


def capped(weighted: Floats, cap: float) -> Floats:
    """Weighted evidence (row by class) relative to the best class, and no further below it than the cap."""
    top = weighted.max(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        return np.maximum(np.where(top == -np.inf, 0.0, weighted - top), -cap)


def _with_cap(block: Block) -> Block:
    """A block with a finite cap: of a lookup the cap is in its table, and what is impossible counts as missing."""
    if block.cap == math.inf:
        return block
    if len(block.terms) == 1 and isinstance(term := block.terms[0], LookupTerm):
        return replace(block, cap=math.inf, terms=(replace(term, table=capped(term.table, block.cap)),))
    return replace(block, terms=tuple(map(_possible, block.terms)))


def _possible(term: Term) -> Term:
    if isinstance(term, NormalTerm | HalfLineTerm | NarrowGammaTerm):
        return replace(term, impossible=False)
    return term


def _corrections(corrections: Corrections, schema: Schema) -> CorrectionTables:
    """The tables with their means: bins of their columns are numbered as places are."""
    places: list[LevelPlace | CutPlace] = []
    for one in corrections.columns:
        if one.cuts is not None:
            places.append(CutPlace(one.column, tuple(one.cuts.tolist())))
        else:
            places.append(level_place(one.column, one.levels, schema.column_name(one.column)))
    return CorrectionTables(tuple(places), tuple(corrections.averaged()))


def _columns_read(
    blocks: tuple[Block, ...], corrections: CorrectionTables | None, refusals: tuple[Refusal, ...]
) -> set[int]:
    """The numbers of the columns that anything asks for."""
    found: set[int] = set()
    for block in blocks:
        for term in block.terms:
            if isinstance(term, LookupTerm):
                found |= _columns_of(term.place)
            else:
                found |= set(term.columns) if isinstance(term, JointNormalTerm) else {term.column}
    places = () if corrections is None else corrections.places
    for place in (*places, *(refusal.place for refusal in refusals)):
        found |= _columns_of(place)
    return found


def _columns_of(place: Place) -> set[int]:
    return {member.column for member in place.members} if isinstance(place, TuplePlace) else {place.column}
