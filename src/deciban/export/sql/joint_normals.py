"""Normal distributions of several columns together, whole or with missing cells."""

from collections.abc import Sequence

import numpy as np

from deciban.arrays import Floats
from deciban.errors import UsageError
from deciban.export.likelihood_terms import REMEDY
from deciban.export.sql.cells import Cells
from deciban.export.sql.stages import total
from deciban.export.terms import Block, JointNormalTerm, WhitenedForm

# Columns of a block of which rows may miss some: of each such row the matrix of the others is eliminated, which takes
# about a sixth of the third power of this many products. Of more than a few, only where rows that were learned did.
MOST_FACTORED, FEW = 32, 8


def joint_normal_evidence(cells: Cells, term: JointNormalTerm) -> list[str]:
    """The log density of each class, 0 where all cells are missing."""
    away, zero = distances(cells, term), cells.dialect.number(0.0)
    whole = _whole(cells, term.form, away)
    if len(away) == 1:
        return [f"CASE WHEN {away[0]} IS NULL THEN {zero} ELSE {one} END" for one in whole]
    if not may_miss(term):
        return whole
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


def may_miss(term: JointNormalTerm) -> bool:
    """Whether rows may miss some of the cells."""
    return len(term.columns) <= (MOST_FACTORED if term.holed else FEW)


def holes(cells: Cells, term: JointNormalTerm) -> str | None:
    """Whether a row misses cells where none may, and has no answer; None where every row has one."""
    if may_miss(term):
        return None
    return f"NOT {is_complete(cells, distances(cells, term))}"


def refuse_holes(block: Block, term: JointNormalTerm) -> None:
    """A UsageError where rows are known to miss cells of too many columns."""
    if term.holed and not may_miss(term):
        raise UsageError(
            f"block {block.name!r}: {len(term.columns)} columns of which cells were missing are more than the "
            f"{MOST_FACTORED} that SQL takes; {REMEDY}"
        )


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
    """The log densities of the cells that are there, by elimination in the covariance of all.

    What is missing has the variance 1 and no covariance, so that it changes nothing.
    """
    number, normals = cells.dialect.number, term.normals
    varies, half = normals.whitened.columns, number(-0.5 * term.weight)
    factors = [_eliminated(cells, matrix[np.ix_(varies, varies)], away, complete) for matrix in normals.covariance]
    found = []
    for g, mean in zip(normals.group.tolist(), normals.mean[:, varies].tolist(), strict=True):
        pivots, matrix = [row[k] for k, row in enumerate(factors[g])], factors[g]
        left: list[str] = []
        for b, (one, unit, value) in enumerate(zip(away, normals.unit[varies].tolist(), mean, strict=True)):
            away_from_mean = f"{one} / {number(unit)} - {number(value)}"
            rest = [f"{matrix[b][k]} * {left[k]} / {pivots[k]}" for k in range(b)]
            known = f"{away_from_mean} - {total(rest)}" if rest else away_from_mean
            skipped = f"WHEN {complete} THEN NULL WHEN {one} IS NULL THEN {number(0.0)}"
            left.append(cells.stages.name("v", f"CASE {skipped} ELSE {known} END"))
        distance = _distance(cells, [f"{one} * {one} / {pivot}" for one, pivot in zip(left, pivots, strict=True)])
        found.append(f"({half} * ({total([f'ln({pivot})' for pivot in pivots])} + {distance}))")
    return found


def _eliminated(cells: Cells, matrix: Floats, away: Sequence[str], complete: str) -> list[list[str]]:
    """The lower half of a matrix of which each column is freed of those before it; the diagonal has the pivots."""
    number, size = cells.dialect.number, len(away)
    rows: list[list[str]] = [[] for _ in away]
    for b in range(size):
        expressions = []
        for a in range(b, size):
            rest = [f"{rows[a][k]} * {rows[b][k]} / {rows[k][k]}" for k in range(b)]
            known = f"{number(matrix[a, b])} - {total(rest)}" if rest else number(matrix[a, b])
            either = f"{away[a]} IS NULL" if a == b else f"{away[a]} IS NULL OR {away[b]} IS NULL"
            skipped = f"WHEN {complete} THEN NULL WHEN {either} THEN {number(float(a == b))}"
            expressions.append(f"CASE {skipped} ELSE {known} END")
        for row, name in zip(rows[b:], cells.stages.names("y", expressions), strict=True):
            row.append(name)
    return rows
