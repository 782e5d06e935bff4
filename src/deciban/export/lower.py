"""From a fitted model to terms: as they are for programs, folded for targets that only add up tables and densities."""

import math
from collections.abc import Iterable
from dataclasses import replace
from itertools import product

import numpy as np

from deciban.errors import Place as Where, UsageError
from deciban.export.ir import Block, Column, CorrectionTables, ExpandedTerm, Kind, ReadAs, TermModel, term_places
from deciban.families.base.contract import group_by_missing
from deciban.families.base.lowering import (
    OTHER_PLACE,
    SUMMED_OVER,
    CellPlace,
    CutPlace,
    ExportedColumns,
    HalfLineTerm,
    JointNormalTerm,
    LevelPlace,
    LinearTerm,
    LookupTerm,
    NarrowGammaTerm,
    NormalTerm,
    Refusal,
    Term,
    TextTerm,
    TuplePlace,
    TupleTerm,
    level_place,
    reject_other_than_flags,
)
from deciban.families.base.smoothing import smooth_shares
from deciban.model.corrections import Corrections
from deciban.model.fitted import Fitted
from deciban.model.model import Model
from deciban.model.partial_rows import PartialRows
from deciban.schema.schema import Schema
from deciban.statistics import Scatter
from deciban.tables.cells import kind_of
from deciban.util.arrays import Floats, Integers, log

# What cells are read as, by the type that the column was learned with; others are texts.
READ_AS: dict[str, ReadAs] = {"DOUBLE": "number", "BOOLEAN": "flag", "TIMESTAMP": "date", "TIME": "time"}

# Combinations of values, and of missing ones, that a table of tuples is expanded to at most.
MAX_COMBINATIONS = 1 << 16

# Whole numbers beyond this are not all doubles.
MAX_EXACT = 1 << 53

REMEDY = "use deciban itself, to_python() or to_javascript(), or give it another family, and fit again"


def lower_model(fitted: Fitted | Model) -> TermModel:
    """Return the model as terms: every column and every block, also those without a weight, as they were estimated.

    Parameters
    ----------
    fitted : Fitted or Model
        A fitted state, or its model. A `Model` alone does not show whether cells were missing when it was learned.

    Returns
    -------
    TermModel

    Raises
    ------
    UsageError
        If a column cannot be exported; it is named.

    See Also
    --------
    fold_model : The same for targets that can only add up.
    """
    model = fitted.model if isinstance(fitted, Fitted) else fitted
    schema = model.schema
    blocks: dict[int, Block] = {}
    refusals: list[Refusal] = []
    kinds: dict[int, tuple[Kind, CellPlace | None]] = {}
    for p, (group, slots) in enumerate(zip(schema.groups, schema.block_slots, strict=True)):
        names = [schema.column_name(column) for column in group.columns]
        lowered = model.likelihoods[p].lower(ExportedColumns(group.family, group.columns, names))
        cap = math.inf if group.family.is_text or group.family.accepts_new_columns else float(model.cap)
        for k, (slot, terms) in enumerate(zip(slots.tolist(), lowered.blocks, strict=True)):
            if isinstance(fitted, Fitted) and _is_holed(fitted, p):
                terms = [replace(term, holed=True) if isinstance(term, JointNormalTerm) else term for term in terms]
            columns = group.columns if group.family.joint else group.columns[k : k + 1]
            weight = float(model.weights[slot])
            blocks[slot] = Block(schema.block_names[slot], columns, p, str(group.family), weight, cap, tuple(terms))
        refusals += [
            one if one.if_weighted is None else replace(one, if_weighted=int(slots[one.if_weighted]))
            for one in lowered.refusals
        ]
        for column, kind in _kinds(group.columns, lowered.blocks, lowered.refusals).items():
            if not group.auxiliary or column not in kinds:
                kinds[column] = kind
    return TermModel(
        model.classes,
        model.log_prior,
        {c: _column(schema, c, *kinds.get(c, ("unused", None))) for c in range(schema.width)},
        tuple(blocks[slot] for slot in sorted(blocks)),
        None if model.corrections is None else _corrections(model.corrections, schema),
        tuple(dict.fromkeys(refusals)),
        model.partial,
        {},
    )


def _is_holed(fitted: Fitted, p: int) -> bool:
    """Whether a column group left out rows with missing cells when it was counted."""
    counts = fitted.counts.select_schema(fitted.model.schema)
    statistic = counts.statistics[p]
    return isinstance(statistic, Scatter) and bool(statistic.weight.sum() < (1.0 - 1e-9) * counts.class_weight.sum())


def _kinds(
    columns: Iterable[int], blocks: Iterable[Iterable[Term]], refusals: Iterable[Refusal]
) -> dict[int, tuple[Kind, CellPlace | None]]:
    """What users enter for each column, by its terms, and its levels."""
    found: dict[int, tuple[Kind, CellPlace | None]] = dict.fromkeys(columns, ("number", None))
    for term in (term for terms in blocks for term in terms):
        if isinstance(term, TextTerm):
            found[term.column] = "text", None
        elif isinstance(term, LinearTerm) or (isinstance(term, HalfLineTerm) and term.counts):
            found[term.column] = "count", None
        for place in term_places(term):
            if isinstance(place, LevelPlace):
                found[place.column] = "yes/no" if place.kind == "flag" else "category", place
    for one in refusals:
        if one == reject_other_than_flags(one.place.column):
            found[one.place.column] = "yes/no", None
    return found


def _column(schema: Schema, column: int, kind: Kind, levels: CellPlace | None) -> Column:
    read_as: ReadAs = "any"
    if schema.types is not None:
        learned = schema.types[column]
        read_as = "duration" if learned.startswith("duration") else READ_AS.get(kind_of(learned), "text")
    if read_as in ("date", "time") and kind in ("number", "count", "category"):
        kind = read_as
    return Column(schema.column_name(column), read_as, kind, levels)


def _corrections(corrections: Corrections, schema: Schema) -> CorrectionTables:
    """The tables; bins of their columns are numbered as places are."""
    places: list[CellPlace] = []
    for one in corrections.columns:
        if one.cuts is not None:
            places.append(CutPlace(one.column, tuple(one.cuts.tolist())))
        else:
            places.append(level_place(one.column, one.levels, schema.column_name(one.column)))
    return CorrectionTables(tuple(places), corrections)


def fold_model(fitted: Fitted | Model) -> TermModel:
    """Return the model as terms for targets that can only add up tables and densities.

    Weights are in the terms, and the cap of a lookup is in its table. Tables of tuples are expanded to all combinations
    of places. Blocks without a weight and columns that are not read are left out.

    Parameters
    ----------
    fitted : Fitted or Model
        A fitted state, or its model. A `Model` alone does not show whether cells were missing when it was learned.

    Returns
    -------
    TermModel

    Raises
    ------
    UsageError
        If a column cannot be expressed in this form; it is named.

    See Also
    --------
    lower_model : The same of every family, for programs that can do more.

    Examples
    --------
    >>> from deciban import BayesClassifier
    >>> from deciban.datasets import weather
    >>> terms = fold_model(BayesClassifier(tune=None).fit(weather(), "play").model_)
    >>> terms.columns[0].name, len(terms.blocks), terms.blocks[0].terms[0].place.levels
    ('outlook', 4, ('overcast', 'rain', 'sunny'))
    """
    model = lower_model(fitted)
    blocks = tuple(_folded_block(model, block) for block in model.blocks if block.terms)
    blocks = tuple(block for block in blocks if block.weight > 0.0)
    refusals = [
        replace(one, place=_folded_place(one.place), if_weighted=None)
        for one in model.refusals
        if one.if_weighted is None or model.blocks[one.if_weighted].weight > 0.0
    ]
    corrections = model.corrections
    if corrections is not None:
        corrections = replace(corrections, places=tuple(map(_folded_place, corrections.places)))
    flags = {one.place.column for one in refusals if one == reject_other_than_flags(one.place.column)}
    columns = {c: replace(one, read_as="flag" if c in flags else one.read_as) for c, one in model.columns.items()}
    presence = {} if model.partial is None else _presence(columns, blocks, corrections, model.partial)
    read = {place.column for place in (*(one.place for one in refusals), *presence.values())}
    read |= set() if corrections is None else {place.column for place in corrections.places}
    for term in (term for block in blocks for term in block.terms):
        read |= {place.column for place in term_places(term)}
        if not isinstance(term, LookupTerm):
            read |= set(term.columns) if isinstance(term, JointNormalTerm) else {term.column}  # type: ignore[union-attr]
    return replace(
        model,
        columns={c: replace(columns[c], read_as=_folded_reading(columns[c])) for c in sorted(read)},
        blocks=blocks,
        corrections=corrections,
        refusals=tuple(dict.fromkeys(refusals)),
        presence=presence,
    )


def _folded_reading(column: Column) -> ReadAs:
    """What cells are read as; a UsageError for durations."""
    if column.read_as == "duration":
        raise UsageError("durations cannot be said as terms of a sum", place=Where(column=column.name), remedy=REMEDY)
    return "number" if column.read_as == "any" else column.read_as


def _presence(
    columns: dict[int, Column], blocks: Iterable[Block], corrections: CorrectionTables | None, partial: PartialRows
) -> dict[int, CellPlace]:
    """The places of the columns that have an offset, a share of the evidence or corrections: 0 if a cell is missing.

    An empty text is a place of its own if it is a level: ONNX has no other way to write a missing text.
    """
    places = [place for block in blocks for term in block.terms for place in term_places(term)]
    empty = {place.column for place in places if isinstance(place, LevelPlace) and "" in place.levels}
    used = set(np.flatnonzero(partial.offsets.any(axis=1) | (partial.shares > 0.0)).tolist())
    used |= set() if corrections is None else {place.column for place in corrections.places}
    found: dict[int, CellPlace] = {}
    for column in sorted(used):
        if _folded_reading(columns[column]) == "text":
            found[column] = LevelPlace(column, "text", ("",) if column in empty else ())
        else:
            found[column] = CutPlace(column, ())
    return found


def _folded_place(place: CellPlace) -> CellPlace:
    """Levels that are doubles are numbers, and no levels are texts."""
    if not isinstance(place, LevelPlace) or place.kind in ("text", "date", "time"):
        return place
    if place.kind == "none":
        return replace(place, kind="text")
    if place.kind == "integer" and any(abs(level) >= MAX_EXACT for level in place.levels):
        return place
    return replace(place, kind="number", levels=tuple(map(float, place.levels)))


def _folded_block(model: TermModel, block: Block) -> Block:
    """A block with its weight in the terms. What is impossible under a cap counts as missing."""
    terms = tuple(_folded_term(model, block, term) for term in block.terms)
    if block.cap == math.inf or not block.weight > 0.0:
        return replace(block, terms=terms)
    if len(terms) == 1 and isinstance(term := terms[0], LookupTerm):
        return replace(block, cap=math.inf, terms=(replace(term, table=capped(term.table, block.cap)),))
    densities = NormalTerm | HalfLineTerm | NarrowGammaTerm
    return replace(
        block, terms=tuple(replace(one, impossible=False) if isinstance(one, densities) else one for one in terms)
    )


def capped(weighted: Floats, cap: float) -> Floats:
    """Weighted evidence (row by class) relative to the best class, and no further below it than the cap."""
    top = weighted.max(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        return np.maximum(np.where(top == -np.inf, 0.0, weighted - top), -cap)


def _folded_term(model: TermModel, block: Block, term: Term) -> Term:
    """A term with the weight of its block."""
    w = block.weight
    if isinstance(term, TextTerm):
        name = model.columns[term.column].name
        raise UsageError(f"{block.family} cannot be said as terms of a sum", place=Where(column=name), remedy=REMEDY)
    if isinstance(term, TupleTerm):
        return _expanded(model, block, term)
    if not w > 0.0:
        return term
    if isinstance(term, LookupTerm):
        assert not isinstance(term.place, TuplePlace), "likelihoods look up single cells"
        return replace(term, place=_folded_place(term.place), table=w * term.table)
    if isinstance(term, NormalTerm):
        return replace(term, root=w**0.5 * term.root, offset=w * term.offset)
    if isinstance(term, HalfLineTerm):
        return replace(term, offset=w * term.offset, power=w * term.power, slope=w * term.slope)
    if isinstance(term, NarrowGammaTerm):
        return replace(term, peak=w * term.peak, shape=w * term.shape)
    if isinstance(term, LinearTerm):
        return replace(term, slope=w * term.slope)
    form, root = term.form, w**0.5
    form = replace(form, whiten=root * form.whiten, mean=root * form.mean, offset=w * form.offset)
    return replace(term, form=form, weight=w)


def _expanded(model: TermModel, block: Block, term: TupleTerm) -> LookupTerm | TupleTerm:
    """A row for each combination of places; a UsageError if they are too many."""
    members: list[CellPlace] = []
    codes = []
    for member, code in zip(term.members, term.codes, strict=True):
        place = _folded_place(member)
        if isinstance(place, LevelPlace) and code[OTHER_PLACE] == SUMMED_OVER:  # other values count as missing
            place, code = replace(place, merged=True), np.delete(code, OTHER_PLACE)
        members.append(place)
        codes.append(code)
    every = TuplePlace(tuple(members))
    if every.size > MAX_COMBINATIONS:
        raise UsageError(
            f"{block.family} has {every.size:,} combinations of values, more than {MAX_COMBINATIONS:,}",
            place=Where(column=model.columns[block.columns[0]].name),
            remedy=REMEDY,
        )
    term = replace(term, members=every.members, codes=tuple(codes))
    if not block.weight > 0.0:
        return term
    return ExpandedTerm(every, block.weight * tuple_evidence(term, all_codes(term)), term)


def all_codes(term: TupleTerm) -> Integers:
    """The codes of every combination of places, in order, combination by member."""
    return np.array(list(product(*(code.tolist() for code in term.codes))), dtype=np.int64)


def tuple_evidence(term: TupleTerm, codes: Integers) -> Floats:
    """The evidence of tuples of codes (tuple by member), tuple by class."""
    out, sizes = np.zeros((len(codes), len(term.counts))), np.array(term.sizes, dtype=np.float64)
    for pattern, rows in group_by_missing(codes == SUMMED_OVER):
        kept = np.flatnonzero(~pattern)
        if not kept.size:
            continue
        known, place = np.unique(term.tuples[:, kept], axis=0, return_inverse=True)
        counts = np.zeros((len(known) + 1, out.shape[1]))  # the last one is of tuples that do not occur
        np.add.at(counts, place.ravel(), term.counts.T)
        shares = smooth_shares(counts.T, term.alpha * sizes[pattern].prod(), sizes[kept].prod())
        number = {tuple(one): k for k, one in enumerate(known.tolist())}
        found = [number.get(tuple(one), len(known)) for one in codes[np.ix_(rows, kept)].tolist()]
        out[rows] = log(shares)[:, found].T
    return out
