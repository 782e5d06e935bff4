"""The terms of a model as expressions of SQL, one for each class."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from deciban.export.ir import Block
from deciban.export.sql.cells import Cells
from deciban.export.sql.joint_normals import joint_normal_evidence
from deciban.export.sql.stages import total
from deciban.families.base.lowering import (
    HalfLineTerm,
    JointNormalTerm,
    LinearTerm,
    LookupTerm,
    NarrowGammaTerm,
    NormalTerm,
    Term,
)
from deciban.util.arrays import LARGEST, TOO_LARGE, Floats

# An expression for each class; None is nothing.
Evidence = list[str | None]


def block_evidence(cells: Cells, block: Block) -> Evidence:
    """What a block adds to the log joint of each class, within its cap."""
    each = sum_of_terms(cells, block)
    if block.cap == np.inf:
        return each
    full = [one or cells.dialect.number(0.0) for one in each]
    return capped(cells, full, block.cap) if len(full) == 2 else capped_among(cells, full, block.cap)


def sum_of_terms(cells: Cells, block: Block) -> Evidence:
    """The sum of the terms of a block."""
    parts = [TERMS_IN_SQL[type(term)](cells, term) for term in block.terms]
    return [_sum_of(part[c] for part in parts) for c in range(len(parts[0]))]


def _sum_of(parts: Any) -> str | None:
    present = [part for part in parts if part is not None]
    return total(present) if present else None


def contrast(cells: Cells, each: Sequence[str]) -> str:
    """By how much the second class is ahead of the first, 0 where both have probability 0."""
    nan = cells.dialect.number(np.nan)
    return cells.stages.name("d", f"COALESCE(NULLIF({each[1]} - {each[0]}, {nan}), {cells.dialect.number(0.0)})")


def capped(cells: Cells, each: Sequence[str], cap: float) -> Evidence:
    """Of two classes: how much the second is ahead, within the cap."""
    number = cells.dialect.number
    return [None, f"LEAST(GREATEST({contrast(cells, each)}, {number(-cap)}), {number(cap)})"]


def capped_among(cells: Cells, each: Sequence[str], cap: float) -> Evidence:
    """Of several classes: how far each is behind the best one, within the cap."""
    number = cells.dialect.number
    names, top = behind_best(cells, each)
    behind = (f"GREATEST({name} - {top}, {number(-cap)})" for name in names)
    return [f"CASE WHEN {top} = {number(-np.inf)} THEN {number(0.0)} ELSE {one} END" for one in behind]


def behind_best(cells: Cells, each: Sequence[str]) -> tuple[list[str], str]:
    """The evidence of each class, and the best of it."""
    names = cells.stages.names("e", each)
    return names, cells.stages.name("e", f"GREATEST({', '.join(names)})")


def lookup(cells: Cells, index: str, table: Floats) -> Evidence:
    """A row of a table, place by class; relative to the first class where that has no probability of 0."""
    if np.isfinite(table).all():
        table = table - table[:, :1]
    return [element(cells, index, column) for column in table.T]


def element(cells: Cells, index: str, column: Floats) -> str | None:
    """An element of a column of a table; None where all are 0."""
    return f"({cells.dialect.doubles(column.tolist())})[{index}]" if column.any() else None


def _lookup(cells: Cells, term: LookupTerm) -> Evidence:
    return lookup(cells, cells.place(term.place), term.table)


def _normal(cells: Cells, term: NormalTerm) -> Evidence:
    if not term.root.any() and not term.offset.any() and not term.impossible:  # a column that never had a value
        return [None] * term.root.size
    most = 1e152 / max(float(term.root.max()), 1e-150)
    x = cells.log(term.column) if term.of_log else cells.bounded(term.column, most)
    number, found = cells.dialect.number, []
    for mean, root, offset in zip(term.mean.tolist(), term.root.tolist(), term.offset.tolist(), strict=True):
        if not root:  # a class without values: infinity times 0 would be NaN
            found.append(f"CASE WHEN {x} IS NOT NULL THEN {number(offset)} END")
            continue
        distance = cells.engine.nudged(f"({x} - {number(term.centre)} - {number(mean)})", root)
        z = f"({distance} * {number(root)})"
        found.append(f"{number(offset)} - {z} * {z}")
    if not term.impossible:
        return [f"COALESCE({one}, {number(0.0)})" for one in found]
    return _where_inside(cells, term, f"{x} IS NOT NULL", found)


def _where_inside(
    cells: Cells, term: NormalTerm | HalfLineTerm | NarrowGammaTerm, inside: str, found: Sequence[str]
) -> Evidence:
    """The evidence of a number inside the support; of others nothing, or that no class can be."""
    number = cells.dialect.number
    outside = f" WHEN {cells.number(term.column)} IS NOT NULL THEN {number(-np.inf)}" if term.impossible else ""
    return [f"CASE WHEN {inside} THEN {one}{outside} ELSE {number(0.0)} END" for one in found]


def _half_line(cells: Cells, term: HalfLineTerm) -> Evidence:
    x, log, number, found = cells.number(term.column), cells.log(term.column), cells.dialect.number, []
    steepest = float(np.abs(term.slope[np.isfinite(term.slope)]).max(initial=0.0))
    amount = cells.engine.amount(x, float(LARGEST), steepest)
    for offset, power, slope in zip(term.offset.tolist(), term.power.tolist(), term.slope.tolist(), strict=True):
        parts = [number(offset)]
        parts += [f"{number(power)} * {log}"] if power else []
        parts += [f"{number(slope)} * {amount}"] if slope else []
        rest = f"CASE WHEN {log} IS NULL THEN {number(offset)} ELSE {' + '.join(parts)} END"
        found.append(rest if term.counts else " + ".join(parts))
    inside = f"{x} >= {number(0.0)} AND {cells.engine.is_whole(x)}" if term.counts else f"{log} IS NOT NULL"
    return _where_inside(cells, term, inside, found)


def _narrow_gamma(cells: Cells, term: NarrowGammaTerm) -> Evidence:
    """log(1 + u) is log(w) * u / (w - 1) for w = 1 + u as it is rounded, which keeps all digits."""
    x, log, number, found = cells.number(term.column), cells.log(term.column), cells.dialect.number, []
    one, half, far = number(1.0), number(0.5), number(1e250)
    for c, mean in enumerate(term.mean.tolist()):
        away = f"(({cells.engine.amount(x, np.inf, 1e50 / mean)} - {number(mean)}) - {number(term.mean_low[c])})"
        u = cells.stages.name("u", f"LEAST({away} / {number(mean)}, {far})")
        exact = f"CASE WHEN {one} + {u} = {one} THEN {u} ELSE ln({one} + {u}) * {u} / (({one} + {u}) - {one}) END"
        ratio = f"CASE WHEN abs({u}) < {half} THEN {exact} ELSE {log} - {number(np.log(mean))} END"
        found.append(f"{number(term.peak[c])} + {number(term.shape[c])} * (({ratio}) - {u})")
    return _where_inside(cells, term, f"{log} IS NOT NULL", found)


def _linear(cells: Cells, term: LinearTerm) -> Evidence:
    x, number = cells.number(term.column), cells.dialect.number
    amount, zero = cells.engine.amount(x, float(TOO_LARGE), 1.0), number(0.0)
    return [
        f"CASE WHEN {x} > {zero} THEN {amount} * {number(slope)} ELSE {zero} END" if slope else None
        for slope in term.slope.tolist()
    ]


def _joint_normal(cells: Cells, term: JointNormalTerm) -> Evidence:
    return list(joint_normal_evidence(cells, term))


# How each term is written.
TERMS_IN_SQL: dict[type[Term], Callable[[Cells, Any], Evidence]] = {
    LookupTerm: _lookup,
    NormalTerm: _normal,
    HalfLineTerm: _half_line,
    NarrowGammaTerm: _narrow_gamma,
    LinearTerm: _linear,
    JointNormalTerm: _joint_normal,
}
