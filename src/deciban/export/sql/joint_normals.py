"""Normal distributions of several columns together, whole or with missing cells."""

from collections.abc import Sequence

import numpy as np

from deciban.errors import UsageError
from deciban.export.ir import Block
from deciban.export.lower import REMEDY
from deciban.export.sql.cells import Cells
from deciban.export.sql.stages import total
from deciban.families.base.lowering import JointNormalTerm, WhitenedForm
from deciban.util.arrays import Floats


def joint_normal_evidence(cells: Cells, term: JointNormalTerm) -> list[str]:
    """The log density of each class, 0 where all cells are missing."""
    away, zero = distances(cells, term), cells.dialect.number(0.0)
    whole = _whole(cells, term.form, away)
    if len(away) == 1:
        return [f"CASE WHEN {away[0]} IS NULL THEN {zero} ELSE {one} END" for one in whole]
    if not may_miss(cells, term):  # rows that miss some cells end the query
        return [f"CASE WHEN {away[0]} IS NULL THEN {zero} ELSE {one} END" for one in whole]
    complete = is_complete(cells, away)
    parts = zip(whole, _holed(cells, term, away, complete), strict=True)
    return [f"CASE WHEN {complete} THEN {one} ELSE {other} END" for one, other in parts]


def distances(cells: Cells, term: JointNormalTerm) -> list[str]:
    """How far each column is from its centre; NULL where it is missing."""
    number, found = cells.dialect.number, []
    for k, (column, centre) in enumerate(zip(term.columns, term.centre.tolist(), strict=True)):
        largest = float(np.abs(term.form.whiten[:, :, k]).max())
        x = cells.bounded(column, 1e152 / (len(term.columns) ** 1.5 * largest))
        found.append(cells.stages.name("z", cells.engine.nudged(f"({x} - {number(centre)})", largest)))
    return found


def is_complete(cells: Cells, away: Sequence[str]) -> str:
    """Whether no cell is missing."""
    return cells.stages.name("h", " AND ".join(f"{one} IS NOT NULL" for one in away))


def may_miss(cells: Cells, term: JointNormalTerm) -> bool:
    """Return True if rows may miss some of the cells."""
    return len(term.columns) <= cells.engine.max_factored


def fail_at_holes(cells: Cells, block: Block, term: JointNormalTerm) -> str:
    """A condition that fails, with the name of the block, at a row that misses some but not all of too many columns.

    A UsageError if rows are known to miss some.
    """
    size = len(term.columns)
    if term.holed:
        raise UsageError(
            f"block {block.name!r}: {size} columns with missing cells in the training rows are more than the "
            f"{cells.engine.max_factored} that {cells.dialect.name} supports; {REMEDY}"
        )
    first, last = (cells.model.columns[term.columns[k]].name.replace("\0", "\ufffd") for k in (0, -1))
    message = (
        f"deciban: a cell of the joint block of {size} columns from {first!r} to {last!r} is missing; "
        f"{cells.dialect.name} supports missing cells of blocks of up to {cells.engine.max_factored} columns; "
        f"fill in the cell, or score the row with deciban"
    )
    away = distances(cells, term)
    nothing = cells.stages.name("h", " AND ".join(f"{one} IS NULL" for one in away))
    complete = is_complete(cells, away)
    fails = cells.engine.fail(message, complete, cells.dialect.integer)
    return f"CASE WHEN {complete} OR {nothing} THEN 0 ELSE {fails} END = 1"


def _whole(cells: Cells, form: WhitenedForm, away: Sequence[str]) -> list[str]:
    """The log densities of rows that miss nothing."""
    number = cells.dialect.number

    def coordinate(factors: Floats) -> str:
        used = [f"{number(factor)} * {away[k]}" for k, factor in enumerate(factors.tolist()) if factor]
        return cells.stages.name("w", total(used))

    white = [[coordinate(row) for row in matrix] for matrix in form.whiten]
    found = []
    for offset, g, mean in zip(form.offset.tolist(), form.group.tolist(), form.mean.tolist(), strict=True):
        apart = (f"({one} - {number(value)})" for one, value in zip(white[g], mean, strict=True))
        found.append(f"({number(offset)} - {_distance(cells, [f'{one} * {one}' for one in apart])})")
    return found


def _distance(cells: Cells, squares: Sequence[str]) -> str:
    """The sum of some squares; infinite where infinite parts have cancelled out before."""
    number = cells.dialect.number
    return f"COALESCE(NULLIF({total(squares)}, {number(np.nan)}), {number(np.inf)})"


def _holed(cells: Cells, term: JointNormalTerm, away: Sequence[str], complete: str) -> list[str]:
    """The log densities of the cells that are there; NULL for rows that miss nothing.

    They follow from eliminating the covariance. A missing cell has variance 1, no covariance and distance 0 from the
    mean, so that it changes nothing. Column by column, what is left of the covariance, of the distances of each class
    and of the sums is worked out from what was left before: only that is carried from subquery to subquery.
    """
    number, names, group = cells.dialect.number, cells.stages.names, term.form.group
    half, size = number(-0.5 * term.weight), len(away)
    one, zero = number(1.0), number(0.0)
    there = names("h", [f"CASE WHEN {complete} THEN NULL WHEN {z} IS NULL THEN {zero} ELSE {one} END" for z in away])
    found = [""] * group.size
    for g in np.unique(group).tolist():
        matrix, members = term.covariance[g], np.flatnonzero(group == g).tolist()
        left = {
            (a, b): f"{there[a]} * {there[b]} * {number(matrix[a, b])}"
            if a != b
            else f"({there[a]} * {number(matrix[a, a])} + ({one} - {there[a]}))"
            for b in range(size)
            for a in range(b, size)
        }
        units, means = term.unit.tolist(), term.mean.tolist()
        apart = {
            (c, a): f"CASE WHEN {complete} THEN NULL WHEN {away[a]} IS NULL THEN {zero} "
            f"ELSE {away[a]} / {number(units[a])} - {number(means[c][a])} END"
            for c in members
            for a in range(size)
        }
        sums = dict.fromkeys([*members, -1], zero)  # squares of each class, and at -1 the logarithms of the pivots
        for b in range(size):
            left = dict(zip(left, names("y", list(left.values())), strict=True))
            apart = dict(zip(apart, names("v", list(apart.values())), strict=True))
            sums = dict(zip(sums, names("t", list(sums.values())), strict=True))
            pivot = left[b, b]
            squares = {c: f"{sums[c]} + {apart[c, b]} * {apart[c, b]} / {pivot}" for c in members}
            sums = {**squares, -1: f"{sums[-1]} + ln({pivot})"}
            apart = {(c, a): f"{apart[c, a]} - {left[a, b]} * {apart[c, b]} / {pivot}" for c, a in apart if a > b}
            left = {(a, k): f"{left[a, k]} - {left[a, b]} * {left[k, b]} / {pivot}" for a, k in left if k > b}
        for c in members:
            found[c] = f"({half} * ({sums[-1]} + {_distance(cells, [sums[c]])}))"
    return found
