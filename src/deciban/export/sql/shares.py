"""Shares of the columns in the evidence of a joint block, as SQL tables and polynomials for explanations.

They are computed by calling the likelihood itself, so that the rule is implemented once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from deciban.errors import UsageError
from deciban.export.ir import Block, ExpandedTerm
from deciban.export.lower import all_codes, cap_evidence, tuple_evidence
from deciban.export.sql.cells import Cells, total
from deciban.export.sql.terms import (
    TERMS_IN_SQL,
    Evidence,
    behind_best,
    block_evidence,
    contrast,
    distances,
    lookup,
    sum_of_terms,
)
from deciban.families.base.lowering import SUMMED_OVER, JointNormalTerm, LinearTerm, LookupTerm
from deciban.families.base.shapley import settle, shapley
from deciban.families.joint_gaussian import JointNormal
from deciban.model.model import VAST_EVIDENCE, Model
from deciban.util.arrays import Flags, Floats

# Larger shares cannot be added without losing all digits.
MAX_SHARE = 1e300

# Maximum difference between the evidence and the sum of its shares; rounding leaves less.
LEFT_OVER = 1e-6

# Maximum number of polynomial coefficients per block, to limit the length of the statement.
MAX_FACTORS = 100_000

# Up to this many columns, every set of present columns has its own polynomials, so that any cell may be missing.
MAX_ENUMERATED_SETS = 6


def table_shares(model: Model, block: Block, term: LookupTerm) -> Floats:
    """Return the share of each column for every row of a joint table, place by column by class."""
    assert isinstance(term, ExpandedTerm), "tables of several columns are made from tuples"
    tuples, codes = term.tuples, all_codes(term.tuples)

    def evidence_of(known: Flags) -> Floats:
        return tuple_evidence(tuples, np.where(known, codes, SUMMED_OVER))

    evidence = tuple_evidence(tuples, codes)
    weighted = block.weight * evidence
    top = weighted.max(axis=1)
    limited = np.asarray(~(weighted.min(axis=1) >= top - model.cap) | (top < -VAST_EVIDENCE)) & (model.cap < np.inf)
    evidence = np.where(limited[:, None], cap_evidence(weighted, model.cap) / block.weight, evidence)
    return block.weight * settle(shapley(evidence_of, len(tuples.members)).values, evidence, limited)


@dataclass(frozen=True)
class Polynomials:
    """Shares of columns in the weighted evidence of a joint normal block, relative to the first class.

    A share is constant + linear · s + s · quadratic · s per column and class, where s are the deviations of the columns
    from their center. kept: the present columns. constant: column by class. linear: also by column of s. quadratic:
    also by two columns of s; only the upper triangle is not 0.
    """

    kept: tuple[int, ...]
    constant: Floats
    linear: Floats
    quadratic: Floats


def normal_shares(model: Model, block: Block, term: JointNormalTerm) -> list[Polynomials]:
    """Return the polynomials of complete rows and, for few columns, of all subsets, the complete set first.

    Raise a UsageError if they are too long.
    """
    size, classes = len(term.columns), model.classes.size
    apart = np.unique(term.form.group).size > 1
    if (factors := size * (size**2 // 2 if apart else size) * (classes - 1)) > MAX_FACTORS:
        raise UsageError(
            f"block {block.name!r}: what each of its {size} columns contributes would take {factors:,} numbers",
            remedy="export without explain, or use deciban itself",
        )
    least = 1 if size <= MAX_ENUMERATED_SETS else size
    sets = (kept for count in range(size, least - 1, -1) for kept in combinations(range(size), count))
    return [_polynomials(term, kept) for kept in sets]


def _polynomials(term: JointNormalTerm, kept: tuple[int, ...]) -> Polynomials:
    """Return polynomials from the shares at the center and at deviations along one and two columns."""
    width, size = len(term.columns), len(kept)
    normals = JointNormal.of(np.zeros(width), np.ones(width), term.mean, term.covariance, term.form.group)
    pairs = list(combinations(range(size), 2))
    steps = np.concatenate([np.zeros((1, size)), np.eye(size), -np.eye(size), np.zeros((len(pairs), size))])
    for row, pair in enumerate(pairs, 1 + 2 * size):
        steps[row, list(pair)] = 1.0
    cells = np.full((len(steps), width), np.nan)
    cells[:, kept] = steps
    found = term.weight * normals.shapley_values(cells).values[:, list(kept)]
    found = found - found[:, :, :1]
    middle, up, down = found[0], found[1 : 1 + size], found[1 + size : 1 + 2 * size]
    linear = np.moveaxis((up - down) / 2.0, 0, 1)
    quadratic = np.zeros((size, size, size, found.shape[2]))
    for k in range(size):
        quadratic[:, k, k] = (up[k] + down[k]) / 2.0 - middle
    for row, (a, b) in enumerate(pairs, 1 + 2 * size):
        quadratic[:, a, b] = found[row] - up[a] - up[b] + middle
    same = term.form.group == term.form.group[0]
    quadratic[..., same] = 0.0  # classes share the matrix, so the rest is rounding
    return Polynomials(kept, middle, linear, quadratic)


def block_shares(cells: Cells, model: Model, block: Block) -> dict[int, Evidence]:
    """Return the share of each column in the evidence of a joint block, by column index."""
    term = block.terms[0]
    if isinstance(term, LookupTerm):
        shares, index = table_shares(model, block, term), cells.place(term.place)
        return {column: lookup(cells, index, shares[:, k]) for k, column in enumerate(block.columns)}
    if isinstance(term, JointNormalTerm):
        return _normal_shares(cells, model, block, term)
    return {one.column: TERMS_IN_SQL[type(one)](cells, one) for one in block.terms if isinstance(one, LinearTerm)}


def _normal_shares(cells: Cells, model: Model, block: Block, term: JointNormalTerm) -> dict[int, Evidence]:
    number, away = cells.dialect.number, distances(cells, term)
    units = term.unit.tolist()
    scaled = [f"({z} / {number(unit)})" for z, unit in zip(away, units, strict=True)]
    steps = [cells.stages.name("s", cells.dialect.nudge(cells.dialect.within(one, 1e100), 1e-50)) for one in scaled]
    forms = normal_shares(model, block, term)
    pattern = _pattern(cells, away) if len(forms) > 1 else None
    plain = [
        ["0", *(_polynomial(cells, forms, pattern, steps, k, c) for c in range(1, model.classes.size))]
        for k in range(len(steps))
    ]
    known = _is_known(cells, block, plain)
    there = cells.stages.name("b", total([f"CASE WHEN {one} IS NULL THEN 0 ELSE 1 END" for one in steps]))
    whole = [None if one is None else cells.stages.name("b", one) for one in block_evidence(cells, block)]
    within = _within_cap(cells, block, plain)

    def share(k: int, c: int) -> str | None:
        """Return the share of a column; if shares are unknown, the present columns share equally."""
        evenly = f"WHEN NOT {known} THEN {whole[c]} / {there}"
        shared = f"CASE WHEN {steps[k]} IS NULL THEN 0 WHEN {known} THEN {within[k][c]} {evenly} END"
        return None if whole[c] is None else shared

    return {column: [share(k, c) for c in range(len(whole))] for k, column in enumerate(term.columns)}


def _pattern(cells: Cells, away: Sequence[str]) -> str:
    """Return the index of the set of present columns: each column is a binary digit, the first the lowest."""
    digits = " + ".join(f"CASE WHEN {one} IS NULL THEN 0 ELSE {1 << k} END" for k, one in enumerate(away))
    return cells.stages.name("h", f"{cells.first} + {digits}")


def _is_known(cells: Cells, block: Block, plain: Sequence[Sequence[str]]) -> str:
    """Return a condition: the shares, column by class, sum to the evidence. Huge ones may have lost all digits."""
    number = cells.dialect.number
    each = [one or number(0.0) for one in sum_of_terms(cells, block)]
    size = cells.stages.name("b", total([f"abs({one})" for row in plain for one in row[1:]]))
    if len(each) == 2:
        ahead = [contrast(cells, each)]
    else:
        names, _ = behind_best(cells, each)
        ahead = [f"({one} - {names[0]})" for one in names[1:]]
    apart = [f"abs({total([row[c] for row in plain])} - {one})" for c, one in enumerate(ahead, 1)]
    close = f"{total(apart)} <= {number(LEFT_OVER)} * ({number(1.0)} + {size})"
    return cells.stages.name("b", f"{size} < {number(MAX_SHARE)} AND {close}")


def _within_cap(cells: Cells, block: Block, plain: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return the shares, column by class, scaled to the capped evidence."""
    number = cells.dialect.number
    if block.cap == np.inf:
        return [list(row) for row in plain]
    each = [one or number(0.0) for one in sum_of_terms(cells, block)]
    cap = number(block.cap)
    if len(each) == 2:
        ahead = contrast(cells, each)
        scale = cells.stages.name(
            "b", f"CASE WHEN abs({ahead}) > {cap} THEN {cap} / abs({ahead}) ELSE {number(1.0)} END"
        )
        return [["0", f"{row[1]} * {scale}"] for row in plain]
    names, top = behind_best(cells, each)
    scales = [
        cells.stages.name("b", f"CASE WHEN {top} - {one} > {cap} THEN {cap} / ({top} - {one}) ELSE {number(1.0)} END")
        for one in names
    ]
    best = cells.stages.name("b", f"CASE {' '.join(f'WHEN {one} = {top} THEN {c}' for c, one in enumerate(names))} END")
    found = []
    for row in plain:
        cases = " ".join(f"WHEN {c} THEN {one}" for c, one in enumerate(row))
        of_best = cells.stages.name("b", f"CASE {best} {cases} END")
        found.append([f"({one} - {of_best}) * {scale}" for one, scale in zip(row, scales, strict=True)])
    return found


def _polynomial(
    cells: Cells, forms: Sequence[Polynomials], pattern: str | None, steps: Sequence[str], k: int, c: int
) -> str:
    """Return the name of the share of a column for a class; NULL if it has no polynomial."""
    number, whole = cells.dialect.number, forms[0]
    constant, linear, quadratic = whole.constant[k, c], whole.linear[k, :, c], whole.quadratic[k, :, :, c]
    products = [[number(x) if x else None for x in row] for row in quadratic.tolist()]
    full = _sum(number(constant), [number(x) for x in linear], products, steps)
    if pattern is None:
        return cells.stages.name("f", full)
    size, patterns = len(steps), 1 << len(steps)
    constants, linears = np.zeros(patterns), np.zeros((size, patterns))
    quadratics = np.zeros((size, size, patterns))
    for form in forms[1:]:
        if k in form.kept:
            kept, here, own = list(form.kept), sum(1 << one for one in form.kept), form.kept.index(k)
            constants[here], linears[kept, here] = form.constant[own, c], form.linear[own, :, c]
            quadratics[np.array(kept)[:, None], kept, here] = form.quadratic[own, :, :, c]

    def factor(values: Floats) -> str:
        return f"({cells.dialect.doubles(values.tolist())})[{pattern}]"

    there = [f"COALESCE({one}, {number(0.0)})" for one in steps]
    factors = [[factor(values) if values.any() else None for values in row] for row in quadratics]
    holed = _sum(factor(constants), [factor(values) for values in linears], factors, there)
    complete = f"{pattern} = {cells.first + patterns - 1}"
    return cells.stages.name("f", f"CASE WHEN {complete} THEN {full} ELSE {holed} END")


def _sum(constant: str, linear: Sequence[str], quadratic: Sequence[Sequence[str | None]], steps: Sequence[str]) -> str:
    """Return constant + the sum of s[a] * (linear[a] + the sum of quadratic[a][b] * s[b])."""
    parts = [constant]
    for step, slope, row in zip(steps, linear, quadratic, strict=True):
        inner = [slope, *(f"{one} * {other}" for one, other in zip(row, steps, strict=True) if one is not None)]
        parts.append(f"{step} * {total(inner)}")
    return total(parts)
