"""Conversion of a fitted model to terms, unchanged for programs and folded for SQL and ONNX."""

import math
from collections.abc import Iterable
from dataclasses import replace
from itertools import product

import numpy as np

from deciban.errors import Argument, Place as Where, UsageError
from deciban.export.ir import Block, Column, CorrectionTables, ExpandedTerm, Kind, ReadAs, TermModel, term_places
from deciban.families import Categorical
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
from deciban.model.corrections import Corrections, merge_equal_tables
from deciban.model.fitted import Fitted
from deciban.model.model import Model
from deciban.model.partial_rows import PartialRows
from deciban.schema.schema import Schema
from deciban.statistics import Scatter
from deciban.tables.cells import kind_of
from deciban.util.arrays import Floats, Integers, log

# Cell type by the type of the column in training; other columns are texts.
READ_AS: dict[str, ReadAs] = {"DOUBLE": "number", "BOOLEAN": "flag", "TIMESTAMP": "date", "TIME": "time"}

# Maximum number of combinations of values, including missing ones, to which a joint table is expanded.
MAX_COMBINATIONS = 1 << 16

# Not all integers from this size on can be represented as doubles.
MAX_EXACT = 1 << 53

REMEDY = "export to Python or JavaScript, use deciban itself, or fit again with another family"


def fit_as_categories(column: str) -> tuple[str | Argument, ...]:
    """Return the remedy for a column of texts whose words or parts cannot be exported."""
    return "fit again with ", Argument("families", {column: Categorical()})


def lower_model(fitted: Fitted | Model) -> TermModel:
    """Return the model as terms, with all columns and all blocks, including those of weight 0.

    Parameters
    ----------
    fitted : Fitted or Model
        The fitted state, or its model. A `Model` alone does not show whether training cells were missing.

    Returns
    -------
    TermModel

    Raises
    ------
    UsageError
        If a column cannot be exported; the message names it.

    See Also
    --------
    fold_model : The same for targets that only add tables and densities.
    """
    model = fitted.model if isinstance(fitted, Fitted) else fitted
    schema = model.schema
    blocks: dict[int, Block] = {}
    refusals: list[Refusal] = []
    kinds: dict[int, tuple[Kind, CellPlace | None]] = {}
    for p, (group, slots) in enumerate(zip(schema.groups, schema.block_slots, strict=True)):
        names = [schema.column_name(column) for column in group.columns]
        lowered = model.likelihoods[p].lower(ExportedColumns(group.family, group.columns, names))
        cap = float(model.cap) if group.is_adjustable else math.inf
        for k, (slot, terms) in enumerate(zip(slots.tolist(), lowered.blocks, strict=True)):
            if isinstance(fitted, Fitted) and _has_missing_cells(fitted, p):
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
        float(model.limit),
        None if model.order is None else tuple(model.order.tolist()),
    )


def _has_missing_cells(fitted: Fitted, p: int) -> bool:
    """Return True if a column group left out training rows with missing cells."""
    counts = fitted.counts.select_schema(fitted.model.schema)
    statistic = counts.statistics[p]
    return isinstance(statistic, Scatter) and bool(statistic.weight.sum() < (1.0 - 1e-9) * counts.class_weight.sum())


def _kinds(
    columns: Iterable[int], blocks: Iterable[Iterable[Term]], refusals: Iterable[Refusal]
) -> dict[int, tuple[Kind, CellPlace | None]]:
    """Return the kind of input and the levels of each column."""
    found: dict[int, tuple[Kind, CellPlace | None]] = dict.fromkeys(columns, ("number", None))
    for term in (term for terms in blocks for term in terms):
        if isinstance(term, TextTerm):
            found[term.column] = "text", None
        elif isinstance(term, LinearTerm) or (isinstance(term, HalfLineTerm) and term.counts):
            found[term.column] = "count", None
        for place in term_places(term):
            if isinstance(place, LevelPlace) and place.part is not None:
                found[place.column] = "text" if place.kind == "text" else "number", None  # dates are numbers
            elif isinstance(place, LevelPlace):
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
    """Return the tables with places for the bins of their columns.

    Equal tables of different folds are merged, and cuts that no table uses are left out.
    """
    corrections = _without_unused_cuts(merge_equal_tables(corrections, across_folds=True))
    places: list[CellPlace] = []
    for one in corrections.columns:
        if one.cuts is not None:
            places.append(CutPlace(one.column, tuple(one.cuts.tolist())))
        else:
            places.append(level_place(one.column, one.levels, schema.column_name(one.column)))
    return CorrectionTables(tuple(places), corrections.separate_levels())


def _without_unused_cuts(corrections: Corrections) -> Corrections:
    """Return the same with only the cuts of numbers that questions ask about."""
    tests, columns = corrections.tests.copy(), list(corrections.columns)
    for k, column in enumerate(columns):
        if column.cuts is not None:
            bins = tests[:, :, 1][
                tests[:, :, 0] == k
            ]  # bin b ends below cut b - 1; the first bin is that of missing cells
            used = np.unique(bins[(bins >= 1) & (bins <= column.cuts.size)])
            beyond = np.where(bins > column.cuts.size, used.size + 1, np.searchsorted(used, bins, side="right"))
            tests[:, :, 1][tests[:, :, 0] == k] = np.where(bins < 0, bins, beyond)
            columns[k] = replace(column, cuts=column.cuts[used - 1])
    return replace(corrections, columns=tuple(columns), tests=tests)


def fold_model(fitted: Fitted | Model) -> TermModel:
    """Return the model as terms for targets that only add tables and densities.

    Weights are multiplied into the terms, and caps of lookups into their tables. Joint tables are expanded to all
    combinations of places. Blocks without weight and unused columns are left out.

    Parameters
    ----------
    fitted : Fitted or Model
        The fitted state, or its model. A `Model` alone does not show whether training cells were missing.

    Returns
    -------
    TermModel

    Raises
    ------
    UsageError
        If a column cannot be expressed in this form; the message names it.

    See Also
    --------
    lower_model : The same for programs, with all families.

    Examples
    --------
    >>> from deciban import BayesClassifier
    >>> from deciban.datasets import weather
    >>> terms = fold_model(BayesClassifier(tune=None).fit(weather(), "play").model_)
    >>> terms.columns[0].name, len(terms.blocks), terms.blocks[0].terms[0].place.levels
    ('outlook', 4, ('overcast', 'rain', 'sunny'))
    """
    model = lower_model(fitted)
    blocks = tuple(_fold_block(model, block) for block in model.blocks if block.terms)
    blocks = tuple(block for block in blocks if block.weight > 0.0)
    refusals = [
        replace(one, place=_fold_place(one.place), if_weighted=None)
        for one in model.refusals
        if one.if_weighted is None or model.blocks[one.if_weighted].weight > 0.0
    ]
    corrections = model.corrections
    if corrections is not None:
        corrections = replace(corrections, places=tuple(map(_fold_place, corrections.places)))
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
        columns={c: replace(columns[c], read_as=_fold_cell_type(columns[c])) for c in sorted(read)},
        blocks=blocks,
        corrections=corrections,
        refusals=tuple(dict.fromkeys(refusals)),
        presence=presence,
    )


def _fold_cell_type(column: Column) -> ReadAs:
    """Return the cell type; raise a UsageError for durations."""
    if column.read_as == "duration":
        raise UsageError("durations cannot be exported to SQL or ONNX", place=Where(column=column.name), remedy=REMEDY)
    return "number" if column.read_as == "any" else column.read_as


def _presence(
    columns: dict[int, Column], blocks: Iterable[Block], corrections: CorrectionTables | None, partial: PartialRows
) -> dict[int, CellPlace]:
    """Return places that show missing cells, for columns with an offset, a share of the evidence or corrections.

    An empty text has a place of its own if it is a level, because ONNX represents missing texts as empty texts.
    """
    places = [place for block in blocks for term in block.terms for place in term_places(term)]
    empty = {place.column for place in places if isinstance(place, LevelPlace) and "" in place.levels}
    used = set(np.flatnonzero(partial.offsets.any(axis=1) | (partial.shares > 0.0)).tolist())
    used |= set() if corrections is None else {place.column for place in corrections.places}
    found: dict[int, CellPlace] = {}
    for column in sorted(used):
        if _fold_cell_type(columns[column]) == "text":
            found[column] = LevelPlace(column, "text", ("",) if column in empty else ())
        else:
            found[column] = CutPlace(column, ())
    return found


def _fold_place(place: CellPlace) -> CellPlace:
    """Return a place whose levels are numbers if doubles can represent them."""
    if not isinstance(place, LevelPlace) or place.kind in ("text", "date", "time"):
        return place
    if place.kind == "none":
        return replace(place, kind="text")
    if place.kind == "integer" and any(abs(level) >= MAX_EXACT for level in place.levels):
        return place
    return replace(place, kind="number", levels=tuple(map(float, place.levels)))


def _fold_block(model: TermModel, block: Block) -> Block:
    """Return a block with its weight in the terms; impossible values under a cap count as missing."""
    terms = tuple(_fold_term(model, block, term) for term in block.terms)
    if block.cap == math.inf or not block.weight > 0.0:
        return replace(block, terms=terms)
    if len(terms) == 1 and isinstance(term := terms[0], LookupTerm):
        return replace(block, cap=math.inf, terms=(replace(term, table=cap_evidence(term.table, block.cap)),))
    densities = NormalTerm | HalfLineTerm | NarrowGammaTerm
    return replace(
        block, terms=tuple(replace(one, impossible=False) if isinstance(one, densities) else one for one in terms)
    )


def cap_evidence(weighted: Floats, cap: float) -> Floats:
    """Return weighted evidence (row by class) relative to the best class, limited by the cap."""
    top = weighted.max(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        return np.maximum(np.where(top == -np.inf, 0.0, weighted - top), -cap)


def _fold_term(model: TermModel, block: Block, term: Term) -> Term:
    """Return a term multiplied by the weight of its block."""
    w = block.weight
    if isinstance(term, TextTerm):
        name = model.columns[term.column].name
        tools = "" if term.tokens.tokenizer is not None else "export to Python or JavaScript, "
        raise UsageError(
            f"{block.family} cannot be exported to SQL or ONNX",
            place=Where(column=name),
            remedy=(f"{tools}use deciban itself, or ", *fit_as_categories(name)),
        )
    if isinstance(term, TupleTerm):
        return _expand_tuples(model, block, term)
    if not w > 0.0:
        return term
    if isinstance(term, LookupTerm):
        assert not isinstance(term.place, TuplePlace), "likelihoods look up single cells"
        return replace(term, place=_fold_place(term.place), table=w * term.table)
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


def _expand_tuples(model: TermModel, block: Block, term: TupleTerm) -> LookupTerm | TupleTerm:
    """Return a lookup with a row per combination of places; raise a UsageError if there are too many."""
    members: list[CellPlace] = []
    codes = []
    for member, code in zip(term.members, term.codes, strict=True):
        place = _fold_place(member)
        if isinstance(place, LevelPlace) and code[OTHER_PLACE] == SUMMED_OVER:  # other values count as missing
            place, code = replace(place, merged=True), np.delete(code, OTHER_PLACE)
        members.append(place)
        codes.append(code)
    every = TuplePlace(tuple(members))
    if every.size > MAX_COMBINATIONS:
        raise UsageError(
            f"{block.family} has {every.size:,} combinations of values; SQL and ONNX allow {MAX_COMBINATIONS:,}",
            place=Where(column=model.columns[block.columns[0]].name),
            remedy=REMEDY,
        )
    term = replace(term, members=every.members, codes=tuple(codes))
    if not block.weight > 0.0:
        return term
    return ExpandedTerm(every, block.weight * tuple_evidence(term, all_codes(term)), term)


def all_codes(term: TupleTerm) -> Integers:
    """Return the codes of every combination of places, in order, combination by member."""
    return np.array(list(product(*(code.tolist() for code in term.codes))), dtype=np.int64)


def tuple_evidence(term: TupleTerm, codes: Integers) -> Floats:
    """Return the evidence of tuples of codes (tuple by member), tuple by class."""
    out, sizes = np.zeros((len(codes), len(term.counts))), np.array(term.sizes, dtype=np.float64)
    for pattern, rows in group_by_missing(codes == SUMMED_OVER):
        kept = np.flatnonzero(~pattern)
        if not kept.size:
            continue
        known, place = np.unique(term.tuples[:, kept], axis=0, return_inverse=True)
        counts = np.zeros((len(known) + 1, out.shape[1]))  # the last one is for unseen tuples
        np.add.at(counts, place.ravel(), term.counts.T)
        shares = smooth_shares(counts.T, term.alpha * sizes[pattern].prod(), sizes[kept].prod())
        number = {tuple(one): k for k, one in enumerate(known.tolist())}
        found = [number.get(tuple(one), len(known)) for one in codes[np.ix_(rows, kept)].tolist()]
        out[rows] = log(shares)[:, found].T
    return out
