"""SQL expressions of the terms of a model, one per class; `TERMS_IN_SQL` lists them by type.

Joint normal distributions are written for rows with and without missing cells. The shares of columns in joint blocks,
for explanations, are in `shares`.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from deciban.errors import UsageError
from deciban.export.ir import Block, ExpandedTerm
from deciban.export.lower import REMEDY
from deciban.export.sql.cells import Cells, total
from deciban.families.base.lowering import (
    HalfLineTerm,
    JointNormalTerm,
    LinearTerm,
    LookupTerm,
    NarrowGammaTerm,
    NormalTerm,
    Term,
    WhitenedForm,
)
from deciban.util.arrays import MAX_AMOUNT, TOO_LARGE, Floats

# One expression per class; None adds nothing.
Evidence = list[str | None]


def block_evidence(cells: Cells, block: Block) -> Evidence:
    """Return the expressions that a block adds to the log joint of each class, within its cap."""
    each = sum_of_terms(cells, block)
    if block.cap == np.inf:
        return each
    full = [one or cells.dialect.number(0.0) for one in each]
    return cap_two_classes(cells, full, block.cap) if len(full) == 2 else cap_classes(cells, full, block.cap)


def sum_of_terms(cells: Cells, block: Block) -> Evidence:
    """Return the sum of the terms of a block."""
    parts = [TERMS_IN_SQL[type(term)](cells, term) for term in block.terms]
    return [_sum_of(part[c] for part in parts) for c in range(len(parts[0]))]


def _sum_of(parts: Any) -> str | None:
    present = [part for part in parts if part is not None]
    return total(present) if present else None


def contrast(cells: Cells, each: Sequence[str]) -> str:
    """Return the lead of the second class over the first; 0 if both have probability 0."""
    nan = cells.dialect.number(np.nan)
    return cells.stages.name("d", f"COALESCE(NULLIF({each[1]} - {each[0]}, {nan}), {cells.dialect.number(0.0)})")


def cap_two_classes(cells: Cells, each: Sequence[str], cap: float) -> Evidence:
    """Return, for two classes, the lead of the second, within the cap."""
    number = cells.dialect.number
    return [None, f"LEAST(GREATEST({contrast(cells, each)}, {number(-cap)}), {number(cap)})"]


def cap_classes(cells: Cells, each: Sequence[str], cap: float) -> Evidence:
    """Return, for several classes, the distance of each from the best one, within the cap."""
    number = cells.dialect.number
    names, top = behind_best(cells, each)
    behind = (f"GREATEST({name} - {top}, {number(-cap)})" for name in names)
    return [f"CASE WHEN {top} = {number(-np.inf)} THEN {number(0.0)} ELSE {one} END" for one in behind]


def behind_best(cells: Cells, each: Sequence[str]) -> tuple[list[str], str]:
    """Return the evidence of each class, and the maximum."""
    names = cells.stages.names("e", each)
    return names, cells.stages.name("e", f"GREATEST({', '.join(names)})")


def lookup(cells: Cells, index: str, table: Floats) -> Evidence:
    """Return a row of a table (place by class), relative to the first class if that has no probability of 0."""
    if np.isfinite(table).all():
        table = table - table[:, :1]
    return [element(cells, index, column) for column in table.T]


def element(cells: Cells, index: str, column: Floats) -> str | None:
    """Return an element of a column of a table; None if all are 0."""
    return f"({cells.dialect.doubles(column.tolist())})[{index}]" if column.any() else None


def _lookup(cells: Cells, term: LookupTerm) -> Evidence:
    return lookup(cells, cells.place(term.place), term.table)


def _normal(cells: Cells, term: NormalTerm) -> Evidence:
    if not term.root.any() and not term.offset.any() and not term.impossible:  # a column that never had a value
        return [None] * term.root.size
    most = 1e152 / max(float(term.root.max()), 1e-150)
    x = cells.log(term.column) if term.of_log else cells.limit_size(term.column, most)
    number, found = cells.dialect.number, []
    for mean, root, offset in zip(term.mean.tolist(), term.root.tolist(), term.offset.tolist(), strict=True):
        if not root:  # a class without values: infinity times 0 would be NaN
            found.append(f"CASE WHEN {x} IS NOT NULL THEN {number(offset)} END")
            continue
        distance = cells.dialect.nudge(f"({x} - {number(term.center)} - {number(mean)})", root)
        z = f"({distance} * {number(root)})"
        found.append(f"{number(offset)} - {z} * {z}")
    if not term.impossible:
        return [f"COALESCE({one}, {number(0.0)})" for one in found]
    return _restrict_to_support(cells, term, f"{x} IS NOT NULL", found)


def _restrict_to_support(
    cells: Cells, term: NormalTerm | HalfLineTerm | NarrowGammaTerm, inside: str, found: Sequence[str]
) -> Evidence:
    """Return the evidence of a number inside the support; others add nothing or make every class impossible."""
    number = cells.dialect.number
    outside = f" WHEN {cells.number(term.column)} IS NOT NULL THEN {number(-np.inf)}" if term.impossible else ""
    return [f"CASE WHEN {inside} THEN {one}{outside} ELSE {number(0.0)} END" for one in found]


def _half_line(cells: Cells, term: HalfLineTerm) -> Evidence:
    x, log, number, found = cells.number(term.column), cells.log(term.column), cells.dialect.number, []
    steepest = float(np.abs(term.slope[np.isfinite(term.slope)]).max(initial=0.0))
    amount = cells.dialect.amount(x, float(MAX_AMOUNT), steepest)
    for offset, power, slope in zip(term.offset.tolist(), term.power.tolist(), term.slope.tolist(), strict=True):
        parts = [number(offset)]
        parts += [f"{number(power)} * {log}"] if power else []
        parts += [f"{number(slope)} * {amount}"] if slope else []
        rest = f"CASE WHEN {log} IS NULL THEN {number(offset)} ELSE {' + '.join(parts)} END"
        found.append(rest if term.counts else " + ".join(parts))
    inside = f"{x} >= {number(0.0)} AND {cells.dialect.is_whole(x)}" if term.counts else f"{log} IS NOT NULL"
    return _restrict_to_support(cells, term, inside, found)


def _narrow_gamma(cells: Cells, term: NarrowGammaTerm) -> Evidence:
    """Return the evidence of a narrow gamma distribution.

    log(1 + u) is computed as log(w) * u / (w - 1) with w = 1 + u as rounded, which keeps all digits.
    """
    x, log, number, found = cells.number(term.column), cells.log(term.column), cells.dialect.number, []
    one, half, far = number(1.0), number(0.5), number(1e250)
    for c, mean in enumerate(term.mean.tolist()):
        away = f"(({cells.dialect.amount(x, np.inf, 1e50 / mean)} - {number(mean)}) - {number(term.mean_low[c])})"
        u = cells.stages.name("u", f"LEAST({away} / {number(mean)}, {far})")
        exact = f"CASE WHEN {one} + {u} = {one} THEN {u} ELSE ln({one} + {u}) * {u} / (({one} + {u}) - {one}) END"
        ratio = f"CASE WHEN abs({u}) < {half} THEN {exact} ELSE {log} - {number(np.log(mean))} END"
        found.append(f"{number(term.peak[c])} + {number(term.shape[c])} * (({ratio}) - {u})")
    return _restrict_to_support(cells, term, f"{log} IS NOT NULL", found)


def _linear(cells: Cells, term: LinearTerm) -> Evidence:
    x, number = cells.number(term.column), cells.dialect.number
    amount, zero = cells.dialect.amount(x, float(TOO_LARGE), 1.0), number(0.0)
    return [
        f"CASE WHEN {x} > {zero} THEN {amount} * {number(slope)} ELSE {zero} END" if slope else None
        for slope in term.slope.tolist()
    ]


def _joint_normal(cells: Cells, term: JointNormalTerm) -> Evidence:
    """Return the log density of each class; 0 if all cells are missing."""
    away, zero = distances(cells, term), cells.dialect.number(0.0)
    whole = _complete_densities(cells, term.form, away)
    if len(away) == 1 or not may_miss(cells, term):  # rows that miss some of many cells stop the query
        return [f"CASE WHEN {away[0]} IS NULL THEN {zero} ELSE {one} END" for one in whole]
    complete = is_complete(cells, away)
    parts = zip(whole, _missing_densities(cells, term, away, complete), strict=True)
    return [f"CASE WHEN {complete} THEN {one} ELSE {other} END" for one, other in parts]


def distances(cells: Cells, term: JointNormalTerm) -> list[str]:
    """Return the distance of each column from its center; NULL if it is missing."""
    number, found = cells.dialect.number, []
    for k, (column, center) in enumerate(zip(term.columns, term.center.tolist(), strict=True)):
        largest = float(np.abs(term.form.whiten[:, :, k]).max())
        x = cells.limit_size(column, 1e152 / (len(term.columns) ** 1.5 * largest))
        found.append(cells.stages.name("z", cells.dialect.nudge(f"({x} - {number(center)})", largest)))
    return found


def is_complete(cells: Cells, away: Sequence[str]) -> str:
    """Return a condition: no cell is missing."""
    return cells.stages.name("h", " AND ".join(f"{one} IS NOT NULL" for one in away))


def may_miss(cells: Cells, term: JointNormalTerm) -> bool:
    """Return True if rows may miss some of the cells."""
    return len(term.columns) <= cells.dialect.max_factored


def fail_at_holes(cells: Cells, block: Block, term: JointNormalTerm) -> str:
    """Return a condition that fails for a row that misses some but not all of too many columns.

    The error names the block. Raise a UsageError if training rows had such missing cells.
    """
    size = len(term.columns)
    if term.holed:
        raise UsageError(
            f"block {block.name!r}: {size} columns with missing cells in the training rows are more than the "
            f"{cells.dialect.max_factored} that {cells.dialect.name} supports",
            remedy=REMEDY,
        )
    first, last = (cells.model.columns[term.columns[k]].name.replace("\0", "\ufffd") for k in (0, -1))
    message = (
        f"deciban: a cell of the joint block of {size} columns from {first!r} to {last!r} is missing; "
        f"{cells.dialect.name} supports missing cells of blocks of up to {cells.dialect.max_factored} columns; "
        f"fill in the cell, or score the row with deciban"
    )
    away = distances(cells, term)
    nothing = cells.stages.name("h", " AND ".join(f"{one} IS NULL" for one in away))
    complete = is_complete(cells, away)
    fails = cells.dialect.fail(message, complete, cells.dialect.integer)
    return f"CASE WHEN {complete} OR {nothing} THEN 0 ELSE {fails} END = 1"


def _complete_densities(cells: Cells, form: WhitenedForm, away: Sequence[str]) -> list[str]:
    """Return the log densities of complete rows."""
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
    """Return the sum of squares; infinite if infinite parts have cancelled."""
    number = cells.dialect.number
    return f"COALESCE(NULLIF({total(squares)}, {number(np.nan)}), {number(np.inf)})"


def _missing_densities(cells: Cells, term: JointNormalTerm, away: Sequence[str], complete: str) -> list[str]:
    """Return the log densities of the present cells; NULL for complete rows.

    They result from eliminating the covariance. A missing cell has variance 1, no covariance and distance 0 from the
    mean, so that it has no effect. Column by column, the remaining covariance, distances and sums are computed from the
    previous ones, so that only these are carried from subquery to subquery. Complete rows skip this if the engine can
    hold them in one array.
    """
    number, group, found = cells.dialect.number, term.form.group, [""] * term.form.group.size
    eliminate = _eliminate_lists if cells.dialect.name == "DuckDB" else _eliminate_columns
    for g in np.unique(group).tolist():
        members = np.flatnonzero(group == g).tolist()
        log_pivots, squares = eliminate(cells, term, term.covariance[g], members, away, complete)
        for c, square in zip(members, squares, strict=True):
            found[c] = f"({number(-0.5 * term.weight)} * ({log_pivots} + {_distance(cells, [square])}))"
    return found


def _eliminate_columns(
    cells: Cells, term: JointNormalTerm, matrix: Floats, members: Sequence[int], away: Sequence[str], complete: str
) -> tuple[str, list[str]]:
    """Return the sum of the logarithms of the pivots, and the sum of squares of each class of a covariance.

    PostgreSQL computes all of it in one nested subquery, which complete rows skip.
    """
    number, size, query = cells.dialect.number, len(away), ""
    one, zero = number(1.0), number(0.0)

    def names(prefix: str, state: dict[tuple[int, int], str]) -> dict[tuple[int, int], str]:
        """Return the names of expressions."""
        nonlocal query
        if not cells.dialect.packs:
            return dict(zip(state, cells.stages.names(prefix, list(state.values())), strict=True))
        source = f" FROM ({query} OFFSET 0) AS s" if query else ""
        query = f"SELECT ARRAY[{','.join(state.values())}] AS y{source}"
        return {key: f"y[{k + cells.first}]" for k, key in enumerate(state)}

    left = {
        (a, b): f"CASE WHEN {away[a]} IS NULL OR {away[b]} IS NULL THEN {zero if a != b else one} "
        f"ELSE {number(matrix[a, b])} END"
        for b in range(size)
        for a in range(b, size)
    }
    apart = {
        (size + c, a): f"CASE WHEN {away[a]} IS NULL THEN {zero} ELSE {_scaled_distance(cells, term, away, c, a)} END"
        for c in members
        for a in range(size)
    }
    sums = {(-1, c): zero for c in (*members, -1)}  # squares of each class, and at -1 the logarithms of the pivots
    for b in range(size):
        known = names("y", {**left, **apart, **sums})
        pivot = known[b, b]
        sums = {(-1, c): f"{known[-1, c]} + {known[size + c, b]} * {known[size + c, b]} / {pivot}" for c in members}
        sums[-1, -1] = f"{known[-1, -1]} + ln({pivot})"
        apart, left = (
            {(a, k): f"{known[a, k]}-{known[a, b]}*{known[k, b]}/{pivot}" for a, k in some if k > b}
            for some in (apart, left)
        )
    known = names("t", sums)
    if cells.dialect.packs:
        array = cells.stages.name("t", f"CASE WHEN {complete} THEN NULL ELSE ({query}) END")
        known = {key: f"{array}[{k + cells.first}]" for k, key in enumerate(known)}
    return known[-1, -1], [known[-1, c] for c in members]


def _eliminate_lists(
    cells: Cells, term: JointNormalTerm, matrix: Floats, members: Sequence[int], away: Sequence[str], complete: str
) -> tuple[str, list[str]]:
    """Return the same in DuckDB, which eliminates a column of a list of lists in one expression.

    The first row and column of the list are eliminated at a time. The distances of the classes are its last rows.
    """
    number, name, size = cells.dialect.number, cells.stages.name, len(away)
    one, zero = number(1.0), number(0.0)
    there = name("h", f"CASE WHEN {complete} THEN NULL ELSE [{', '.join(f'{z} IS NOT NULL' for z in away)}] END")
    places = name("h", f"CASE WHEN {complete} THEN NULL ELSE range(1, {size + 1}) END")
    numbers = ",".join(f"[{','.join(map(repr, row))}]" for row in matrix.tolist())
    cell = f"(CAST('[{numbers}]' AS DOUBLE[][]))[a][b]"
    rows = (
        f"[[CASE WHEN {there}[a] AND {there}[b] THEN {cell} WHEN a = b THEN {one} ELSE {zero} END "
        f"FOR b IN {places}] FOR a IN {places}]"
    )
    distances = [
        f"[{', '.join(f'COALESCE({_scaled_distance(cells, term, away, c, a)}, {zero})' for a in range(size))}]"
        for c in members
    ]
    left = name("y", f"CASE WHEN {complete} THEN NULL ELSE list_concat({rows}, [{', '.join(distances)}]) END")
    log_pivots, squares = zero, [zero] * len(members)
    for b in range(size):
        pivot = f"{left}[1][1]"
        last = [f"{left}[{size - b + 1 + k}][1]" for k in range(len(members))]
        log_pivots = name("t", f"{log_pivots} + ln({pivot})")
        squares = [name("t", f"{some} + {z} * {z} / {pivot}") for some, z in zip(squares, last, strict=True)]
        ratios = name("y", f"[x / {pivot} FOR x IN {left}[1][2:]]")
        left = name("y", f"[[x[1] - r[1] * x[2] FOR x IN list_zip(r[2:], {ratios})] FOR r IN {left}[2:]]")
    return log_pivots, squares


def _scaled_distance(cells: Cells, term: JointNormalTerm, away: Sequence[str], c: int, a: int) -> str:
    """Return the distance of a column from the mean of a class, in the unit of the column; NULL if it is missing."""
    return f"{away[a]} / {cells.dialect.number(term.unit[a])} - {cells.dialect.number(term.mean[c, a])}"


# Function that writes each type of term.
TERMS_IN_SQL: dict[type[Term], Callable[[Cells, Any], Evidence]] = {
    LookupTerm: _lookup,
    ExpandedTerm: _lookup,
    NormalTerm: _normal,
    HalfLineTerm: _half_line,
    NarrowGammaTerm: _narrow_gamma,
    LinearTerm: _linear,
    JointNormalTerm: _joint_normal,
}
