"""The log joint of a model, as nodes of an ONNX graph."""

from collections import defaultdict
from collections.abc import Iterator
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from deciban.export.ir import TermModel
from deciban.export.onnx.cells import Cells
from deciban.export.onnx.densities import density_terms, linear_terms
from deciban.export.onnx.joint_normals import joint_normal
from deciban.export.onnx.lookups import flags, is_flag, looked_up, refused_rows
from deciban.export.onnx.partial_rows import KnownCells
from deciban.export.onnx.places import CellPlace, Places
from deciban.export.onnx.tensors import Tensor
from deciban.export.onnx.trees import always, corrections
from deciban.families.base.lowering import (
    HalfLineTerm,
    JointNormalTerm,
    LevelPlace,
    LinearTerm,
    LookupTerm,
    NormalTerm,
    Term,
    TuplePlace,
)
from deciban.util.arrays import Floats


def log_joint(model: TermModel, cells: Cells) -> tuple[Tensor, Tensor | None]:
    """The log joint of each row, row by class, but for what is the same for every class; and which rows are refused, a
    matrix of one column, or None where no row is."""
    places = Places(cells, _places(model))
    known = None if model.partial is None or not model.presence else KnownCells(model, cells, places, model.partial)
    parts = [*_parts(model, cells, places, known)]
    if model.corrections is not None:
        parts.append(_for_each_row(always(model.corrections), cells))
    if known is not None:
        parts.append(known.bias())
    if not parts:
        return _for_each_row(model.log_prior, cells), refused_rows(cells, places, model.refusals)
    joint = reduce(add, parts)
    joint = joint + model.log_prior if known is None else joint * known.scale() + model.log_prior
    return joint, refused_rows(cells, places, model.refusals)


def _for_each_row(numbers: Floats, cells: Cells) -> Tensor:
    """The same numbers for each row."""
    shape = cells.graph.node("Concat", cells.rows(), np.array([1]), axis=0)
    return cells.graph.node("Expand", numbers[None], shape)


def _places(model: TermModel) -> Iterator[CellPlace]:
    """The places that must be found; flags, trees and refusals ask for numbers as they are."""
    for term in (term for block in model.blocks for term in block.terms):
        if isinstance(term, LookupTerm) and not is_flag(term):
            yield from term.place.members if isinstance(term.place, TuplePlace) else (term.place,)
    asked = () if model.corrections is None else model.corrections.places
    for place in (*asked, *model.presence.values(), *(refusal.place for refusal in model.refusals)):
        if isinstance(place, LevelPlace):
            yield place


def _parts(model: TermModel, cells: Cells, places: Places, known: KnownCells | None) -> Iterator[Tensor]:
    """What is added up, row by class: terms of one kind at a time."""
    alike: dict[tuple[Any, ...], list[Any]] = defaultdict(list)
    for block in model.blocks:
        assert block.cap == np.inf or len(block.terms) == 1, "what is capped is one term"
        for term in block.terms:
            alike[*_kind(term), block.cap].append(term)
    for (kind, *_, cap), terms in alike.items():
        if kind is LookupTerm:
            yield flags(cells, terms) if is_flag(terms[0]) else looked_up(places, terms)
        elif kind is LinearTerm:
            yield linear_terms(cells, terms)
        elif kind is JointNormalTerm:
            yield from (joint_normal(cells, term, cap) for term in terms)
        else:
            yield density_terms(cells, terms, cap)
    tables = model.corrections
    if tables is not None and model.classes.size > 1 and any(table.columns for table in tables.tables):
        yield corrections(cells, places, tables, known)


def _kind(term: Term) -> tuple[Any, ...]:
    """Terms of one kind are written together."""
    if isinstance(term, LookupTerm):
        return LookupTerm, is_flag(term)
    of_numbers = isinstance(term, NormalTerm) and term.of_log, isinstance(term, HalfLineTerm) and term.counts
    return type(term), *of_numbers
