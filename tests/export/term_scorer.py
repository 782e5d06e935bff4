"""What terms say of a table, in NumPy: the definitions of `deciban.families.base.lowering`, line by line."""

import math
from typing import Any

import numpy as np
import pyarrow as pa

from deciban.export.ir import Block, TermModel
from deciban.families.base.lowering import (
    CutPlace,
    HalfLineTerm,
    JointNormalTerm,
    LevelPlace,
    LinearTerm,
    LookupTerm,
    NarrowGammaTerm,
    NormalTerm,
    Place,
    Term,
    TuplePlace,
)
from deciban.tables.table import Table
from deciban.util.arrays import MAX_AMOUNT, TOO_LARGE

Floats = np.ndarray


def log_joint_of_terms(model: TermModel, table: Table) -> Floats:
    """The log joint of each row, row by class, but for a number that is the same for every class; NaN where a row is
    refused."""
    joint, unknown, scale = np.zeros((table.rows, model.classes.size)), {}, np.ones((table.rows, 1))
    if (partial := model.partial) is not None:
        missing = {column: place_of(place, table) == 0 for column, place in model.presence.items()}
        share = sum(partial.shares[column] * ~gone for column, gone in missing.items()) + np.zeros(table.rows)
        for column, gone in missing.items():
            unknown[column] = gone & (share < partial.min_share) if column in partial.informative else gone
            joint += np.where(unknown[column][:, None], 0.0, partial.offsets[column])
        scale = np.interp(share, *np.array(partial.scale_points).T)[:, None]
    for block in model.blocks:
        joint += block_evidence(block, table)
    if (tables := model.corrections) is not None:
        for one in tables.tables:
            answers = []
            for k, cuts in zip(one.columns, one.cuts, strict=True):
                answer = 1 + np.searchsorted(cuts, place_of(tables.places[k], table), side="left")
                answers.append(np.where(unknown.get(tables.places[k].column, False), 0, answer))
            joint += one.values[tuple(answers)] if answers else one.values
    joint = scale * joint
    least = joint.max(axis=1, keepdims=True) - model.limit
    joint = model.log_prior + np.where((joint < least) & (joint > -np.inf), least, joint)
    for refusal in model.refusals:
        joint[np.isin(place_of(refusal.place, table), refusal.places)] = np.nan
    return joint


def block_evidence(block: Block, table: Table) -> Floats:
    evidence = sum(term_evidence(term, table) for term in block.terms)
    if block.cap == math.inf:
        return np.asarray(evidence)
    top = evidence.max(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        return np.maximum(np.where(top == -np.inf, 0.0, evidence - top), -block.cap)


def numbers_in(table: Table, column: int) -> Floats:
    return np.asarray(table.numbers([column])[:, 0], dtype=np.float64)


def place_of(place: Place, table: Table) -> Any:
    if isinstance(place, TuplePlace):
        return sum(f * place_of(member, table) for f, member in zip(place.factors, place.members, strict=True))
    if isinstance(place, CutPlace):
        x = numbers_in(table, place.column)
        return np.where(np.isnan(x), 0, 1 + np.searchsorted(place.cuts, x, side="right"))
    known = {level: place.first + k for k, level in enumerate(place.levels)}
    return np.array([_code(place, known, cell) for cell in cells_in(table, place)])


def cells_in(table: Table, place: LevelPlace) -> list[Any]:
    cells = table.values([place.column])
    array = cells[0] if isinstance(cells, list) else pa.array(cells[:, 0], from_pandas=True)
    if place.part is not None:
        return [None if cell is None else part_of(cell, place.part) for cell in array.to_pylist()]
    if place.kind in ("date", "time"):
        kind = pa.timestamp("us") if place.kind == "date" else pa.time64("us")
        array = array.cast(kind, safe=False).cast(pa.int64())
    if place.kind == "number":
        array = array.cast(pa.float64(), safe=False)
    return list(array.to_pylist())


def part_of(cell: Any, part: str) -> Any:
    if isinstance(cell, str):
        return cell.split(" ")[0] if part == "first word" else cell[: 1 if part == "first character" else int(part[6])]
    return {"month": cell.month, "weekday": cell.isoweekday(), "hour": getattr(cell, "hour", 0)}[part]


def _code(place: LevelPlace, known: dict[Any, int], cell: Any) -> int:
    if cell is None or cell != cell:
        return 0
    return known.get(cell, 0 if place.merged else 1)


def term_evidence(term: Term, table: Table) -> Any:
    if isinstance(term, LookupTerm):
        return term.table[place_of(term.place, table)]
    if isinstance(term, JointNormalTerm):
        return joint_normal(term, table)
    x = numbers_in(table, term.column)[:, None]
    with np.errstate(all="ignore"):
        if isinstance(term, LinearTerm):
            return np.where(x > 0.0, np.minimum(x, TOO_LARGE) * term.slope, 0.0)
        if isinstance(term, NormalTerm):
            inside = x > 0.0 if term.of_log else ~np.isnan(x)
            y = np.log(x) if term.of_log else x
            found = term.offset - ((y - term.center - term.mean) * term.root) ** 2
        elif isinstance(term, HalfLineTerm):
            inside = (x >= 0.0) & (x == np.floor(x)) if term.counts else x > 0.0
            value = np.minimum(x, MAX_AMOUNT)
            found = np.where(x == 0.0, term.offset, term.offset + term.power * np.log(value) + term.slope * value)
        else:
            assert isinstance(term, NarrowGammaTerm)
            inside = x > 0.0
            away = np.minimum(((x - term.mean) - term.mean_low) / term.mean, 1e250)
            ratio = np.where(np.abs(away) < 0.5, np.log1p(away), np.log(x) - np.log(term.mean))
            found = term.peak + term.shape * (ratio - away)
    return np.where(inside, found, np.where(np.isnan(x) | (not term.impossible), 0.0, -np.inf))


def joint_normal(term: JointNormalTerm, table: Table) -> Floats:
    x = np.stack([numbers_in(table, column) for column in term.columns], axis=1)
    there, form = ~np.isnan(x), term.form
    with np.errstate(all="ignore"):
        white = np.einsum("gmk,nk->gnm", form.whiten, x - term.center)[form.group]
        square = ((white - form.mean[:, None]) ** 2).sum(axis=2).T
        out = form.offset - np.where(np.isnan(square), np.inf, square)
    for row in np.flatnonzero(~there.all(axis=1)):
        kept = np.flatnonzero(there[row])
        for c, g in enumerate(form.group):
            away = (x[row, kept] - term.center[kept]) / term.unit[kept] - term.mean[c, kept]
            matrix = term.covariance[g][np.ix_(kept, kept)]
            with np.errstate(all="ignore"):
                square = away @ np.linalg.solve(matrix, away)
            square = np.inf if np.isnan(square) else square
            out[row, c] = -0.5 * term.weight * (square + np.linalg.slogdet(matrix)[1])
    return out
