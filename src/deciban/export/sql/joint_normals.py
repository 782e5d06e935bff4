"""Normal distributions of several columns together, whole or with missing cells."""

from collections.abc import Sequence

import numpy as np

from deciban.arrays import Floats
from deciban.export.sql.cells import Cells
from deciban.export.sql.stages import total
from deciban.export.terms import JointNormalTerm, WhitenedForm


def joint_normal_evidence(cells: Cells, term: JointNormalTerm) -> list[str]:
    """The log density of each class, 0 where all cells are missing."""
    away = distances(cells, term)
    number, whole = cells.dialect.number, term.forms[0]
    found = _densities(cells, whole, _coordinates(cells, whole, away))
    if len(term.forms) == 1:
        return [f"CASE WHEN {away[0]} IS NULL THEN {number(0.0)} ELSE {one} END" for one in found]
    pattern = pattern_of(cells, away)
    holed = _holed_densities(cells, term, away, pattern)
    complete = f"{pattern} = {cells.first + (1 << len(away)) - 1}"
    return [f"CASE WHEN {complete} THEN {one} ELSE {other} END" for one, other in zip(found, holed, strict=True)]


def distances(cells: Cells, term: JointNormalTerm) -> list[str]:
    """How far each column is from its centre; NULL where it is missing."""
    number, found = cells.dialect.number, []
    for k, (column, centre) in enumerate(zip(term.columns, term.centre.tolist(), strict=True)):
        largest = float(np.abs(term.forms[0].whiten[:, :, k]).max())
        x = cells.bounded(column, 1e152 / (len(term.columns) ** 1.5 * largest))
        found.append(cells.stages.name("z", cells.engine.nudged(f"({x} - {number(centre)})", largest)))
    return found


def pattern_of(cells: Cells, away: Sequence[str]) -> str:
    """The place of the set of columns that are there: each is a binary digit, the first one the lowest."""
    digits = " + ".join(f"CASE WHEN {one} IS NULL THEN 0 ELSE {1 << k} END" for k, one in enumerate(away))
    return cells.stages.name("h", f"{cells.first} + {digits}")


def holes(cells: Cells, term: JointNormalTerm) -> str | None:
    """Whether some cells are missing and others are not, which has no answer where whole rows alone have a form."""
    if len(term.forms) > 1 or len(term.columns) == 1:
        return None
    empty = [f"{cells.number(column)} IS NULL" for column in term.columns]
    return f"(({' OR '.join(empty)}) AND NOT ({' AND '.join(empty)}))"


def _coordinates(cells: Cells, form: WhitenedForm, away: Sequence[str]) -> list[list[str]]:
    """The coordinates of a whole row, by group of classes."""
    number = cells.dialect.number

    def coordinate(factors: Floats) -> str:
        used = [f"{number(factor)} * {away[k]}" for k, factor in enumerate(factors.tolist()) if factor]
        return cells.stages.name("w", total(used))

    return [[coordinate(row) for row in matrix] for matrix in form.whiten]


def _densities(cells: Cells, form: WhitenedForm, white: Sequence[Sequence[str]]) -> list[str]:
    number = cells.dialect.number
    return [
        _density(cells, number(offset), white[g], [number(value) for value in mean])
        for offset, g, mean in zip(form.offset.tolist(), form.group.tolist(), form.mean.tolist(), strict=True)
    ]


def _density(cells: Cells, offset: str, white: Sequence[str], mean: Sequence[str]) -> str:
    """offset - the squared distance; a distance of which infinite parts cancel out is infinite."""
    number = cells.dialect.number
    apart = (f"({one} - {other})" for one, other in zip(white, mean, strict=True))
    squared = total([f"{one} * {one}" for one in apart])
    return f"{offset} - COALESCE(NULLIF({squared}, {number(np.nan)}), {number(np.inf)})"


def _holed_densities(cells: Cells, term: JointNormalTerm, away: Sequence[str], pattern: str) -> list[str]:
    """The same of rows with missing cells: each factor is an element of an array, by the columns that are there."""
    size, patterns = len(away), 1 << len(away)
    groups, classes = len(term.forms[0].whiten), term.forms[0].offset.size
    whiten, mean = np.zeros((groups, size, size, patterns)), np.zeros((classes, size, patterns))
    offset = np.zeros((classes, patterns))
    for form in term.forms[1:]:
        kept, here = list(form.kept), sum(1 << k for k in form.kept)
        whiten[:, np.array(kept)[:, None], kept, here] = form.whiten
        mean[:, kept, here], offset[:, here] = form.mean, form.offset
    there = [f"COALESCE({one}, {cells.dialect.number(0.0)})" for one in away]

    def factor(values: Floats) -> str:
        return f"({cells.dialect.doubles(values.tolist())})[{pattern}]"

    def coordinate(matrix: Floats) -> str:
        used = [f"{factor(values)} * {there[k]}" for k, values in enumerate(matrix) if values.any()]
        complete = f"{pattern} = {cells.first + patterns - 1}"
        return cells.stages.name("w", f"CASE WHEN {complete} THEN NULL ELSE {total(used)} END")

    white = [[coordinate(matrix) for matrix in group] for group in whiten]
    return [
        _density(cells, factor(offset[c]), white[g], [factor(values) for values in mean[c]])
        for c, g in enumerate(term.forms[0].group.tolist())
    ]
