"""The terms of the sum that speaks for one class against another: prior, bias, and what each column or block says."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from deciban.explain.blocks import Block, labels_of
from deciban.explain.cells import plain_cell, written_cell
from deciban.explain.columns import ColumnEvidence
from deciban.model.model import Evidence, Model
from deciban.util.arrays import Floats
from deciban.util.text_tables import DECIBANS, counted

# The parts of what a column says: by its own blocks, by its share of joint blocks, and by corrections.
PARTS = ("alone", "with_others", "correction")

# What programs are told of a term that is a column, and of one that is a block.
COLUMN_KEYS = ("term", "column", "value", "decibans", "nats", *PARTS)
BLOCK_KEYS = ("block", "columns", "values", "weight", "decibans", "nats")


@dataclass(frozen=True)
class Term:
    """What a column, a block or the prior says for one class against another, in nats.

    label: as people write it. what: for programs. parts: what it is the sum of; empty where it is no column.
    """

    label: str
    nats: float
    what: dict[str, Any]
    parts: dict[str, float] = field(default_factory=dict)
    is_start: bool = False

    @property
    def decibans(self) -> float:
        return float(DECIBANS * self.nats)

    @property
    def as_dict(self) -> dict[str, Any]:
        """The term for programs; its parts are in decibans."""
        parts = {name: float(DECIBANS * value) for name, value in self.parts.items()}
        return {**self.what, "decibans": self.decibans, "nats": self.nats, **parts}


def sorted_terms(terms: Sequence[Term]) -> list[Term]:
    """The most telling first."""
    return sorted(terms, key=lambda term: 0.0 if math.isnan(term.nats) else -abs(term.nats))


def start_terms(alone: dict[str, Floats], key: str, best: int, other: int, **no_cells: Any) -> list[Term]:
    """The prior, and the bias where it is a term of its own."""
    with np.errstate(invalid="ignore"):
        found = [(name, float(values[best] - values[other])) for name, values in alone.items()]
    return [Term(name, nats, {key: name, **no_cells}, is_start=True) for name, nats in found]


def block_terms(
    model: Model, evidence: Evidence, row: int, cells: list[Any], best: int, other: int, blocks: Sequence[Block]
) -> list[Term]:
    """What each block says, and the correction of each column."""
    values, weights = evidence.values[row], evidence.weights
    with np.errstate(invalid="ignore"):
        each = np.where(weights > 0.0, weights * values[:, best] - weights * values[:, other], 0.0)
    alone = {"prior": evidence.log_prior_of(row)}
    if evidence.bias_of(row).any():
        alone["bias"] = evidence.bias_of(row)
    terms = start_terms(alone, "block", best, other, columns=[], values=[], weight=1.0)
    for b, (block, label) in enumerate(zip(blocks, labels_of(blocks, cells), strict=True)):
        what = {**block.as_dict(cells), "weight": float(evidence.weights[b])}
        terms.append(Term(label, float(each[b]), what))
    for b in range(len(blocks), len(evidence.blocks)):
        assert model.corrections is not None, "there is a correction"
        column = model.corrections.columns[b - len(blocks)].column
        name, value = model.schema.column_name(column), cells[column]
        what = {"block": evidence.blocks[b], "columns": [name], "values": [plain_cell(value)], "weight": 1.0}
        terms.append(Term(f"correction of {name} = {written_cell(value)}", float(each[b]), what))
    return sorted_terms(terms)


def column_terms(
    model: Model, evidence: Evidence, columns: ColumnEvidence, row: int, cells: list[Any], best: int, other: int
) -> list[Term]:
    """What each column says; without columns that were never filled, and counts of words that are 0."""
    terms = start_terms({"prior": evidence.log_prior_of(row)}, "term", best, other, column=None, value=None)
    with np.errstate(invalid="ignore"):
        parts = [
            (part[row, :, best] - part[row, :, other]).tolist()
            for part in (columns.alone, columns.together, columns.corrections)
        ]
    absorbs = {column: group.family.absorbs for group in model.schema.groups for column in group.columns}
    for column in sorted(absorbs):
        if absorbs[column] and cells[column] == 0:
            continue
        name, value = columns.columns[column], cells[column]
        own = {part: values[column] for part, values in zip(PARTS, parts, strict=True)}
        what = {"term": "column", "column": name, "value": plain_cell(value)}
        terms.append(Term(f"{name} = {written_cell(value)}", sum(own.values()), what, own))
    return sorted_terms(terms)


def rolled_up(terms: Sequence[Term], most: int) -> list[tuple[str, float]]:
    """The label of each term and what it says in decibans: prior and bias, the most telling of the others, and what is
    left of them together."""
    start, telling = [term for term in terms if term.is_start], [term for term in terms if not term.is_start]
    telling = [term for term in telling if term.nats != 0.0]
    shown = telling if len(telling) == most + 1 else telling[:most]  # one more can as well be shown
    found = [(term.label, term.decibans) for term in (*start, *shown)]
    rest = [term.decibans for term in telling[len(shown) :]]
    return [*found, (counted(len(rest), "other"), sum(rest))] if rest else found


def cut_endless(values: Sequence[float]) -> list[float]:
    """Evidence that can be drawn: what is infinite is cut off where it is longer than all else together.

    >>> cut_endless([1.0, -2.0, float("-inf")])
    [1.0, -2.0, -13.0]
    """
    longest = 10.0 + sum(abs(value) for value in values if math.isfinite(value))
    return [min(max(value, -longest), longest) if not math.isnan(value) else 0.0 for value in values]


def signed(decibans: float, digits: int = 1) -> str:
    """Evidence as people write it.

    >>> signed(1.25), signed(float("-inf")), signed(float("nan"))
    ('+1.2', '−∞', 'undefined')
    """
    if math.isnan(decibans):  # evidence of +∞ and of −∞ has no sum
        return "undefined"
    if math.isinf(decibans):
        return "+∞" if decibans > 0.0 else "−∞"
    return f"{decibans:+.{digits}f}"
