"""The calculation behind a prediction: terms of the sum for one class against another, and the lecture's product.

`Term` is a line of the sum (prior, bias, a column or a block), `sum_table` shows the sum, `calculation_table` shows
prior, likelihoods, joint and posterior as in a lecture.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from deciban.explain.columns import Block, ColumnEvidence, cut_label, labels_of, plain_cell, written_cell
from deciban.model.model import Evidence, Model
from deciban.util.arrays import Floats
from deciban.util.text_tables import DECIBANS, align_table, count_noun, format_digits, shorten, text_width

# The parts of what a column says: by its own blocks, by its share of joint blocks, and by corrections.
PARTS = ("own", "joint", "correction")

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

    def to_dict(self) -> dict[str, Any]:
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
    alone = {"prior": evidence.row_log_prior(row)}
    if evidence.row_bias(row).any():
        alone["bias"] = evidence.row_bias(row)
    terms = start_terms(alone, "block", best, other, columns=[], values=[], weight=1.0)
    for b, (block, label) in enumerate(zip(blocks, labels_of(blocks, cells), strict=True)):
        what = {**block.to_dict(cells), "weight": float(evidence.weights[b])}
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
    terms = start_terms({"prior": evidence.row_log_prior(row)}, "term", best, other, column=None, value=None)
    with np.errstate(invalid="ignore"):
        parts = [
            (part[row, :, best] - part[row, :, other]).tolist()
            for part in (columns.own, columns.joint, columns.correction)
        ]
    absorbs = {column: group.family.accepts_new_columns for group in model.schema.groups for column in group.columns}
    for column in sorted(absorbs):
        if absorbs[column] and cells[column] == 0:
            continue
        name, value = columns.columns[column], cells[column]
        of_column = {part: values[column] for part, values in zip(PARTS, parts, strict=True)}
        what = {"term": "column", "column": name, "value": plain_cell(value)}
        terms.append(Term(f"{name} = {written_cell(value)}", sum(of_column.values()), what, of_column))
    return sorted_terms(terms)


def rolled_up(terms: Sequence[Term], most: int) -> list[tuple[str, float]]:
    """The label of each term and what it says in decibans: prior and bias, the most telling of the others, and what is
    left of them together."""
    start, telling = [term for term in terms if term.is_start], [term for term in terms if not term.is_start]
    telling = [term for term in telling if term.nats != 0.0]
    shown = telling if len(telling) == most + 1 else telling[:most]  # one more can as well be shown
    found = [(term.label, term.decibans) for term in (*start, *shown)]
    rest = [term.decibans for term in telling[len(shown) :]]
    return [*found, (count_noun(len(rest), "other"), sum(rest))] if rest else found


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


# Terms that are shown in a summary; all others are added up.
MAX_TERMS = 40


def sum_table(terms: Sequence[Term], width: int, short: bool) -> str:
    """Terms and their sum as a table, with the parts of each where columns say more than their own."""
    is_shown = [not short or term.is_start or (term.nats != 0.0 and k < MAX_TERMS) for k, term in enumerate(terms)]
    if is_shown.count(False) == 1:
        is_shown = [True] * len(terms)  # the line that would count it can as well show it
    shown = [term for term, here in zip(terms, is_shown, strict=True) if here]
    others = [term.decibans for term, here in zip(terms, is_shown, strict=True) if not here]
    parts = [part for part in PARTS if any(term.parts.get(part) for term in shown)]
    if not set(parts) - {"own"}:
        parts = []  # the sum says the same
    numbers = [[f"{term.decibans:+.2f}", *_parts(term, parts)] for term in shown]
    blank = [""] * len(parts)
    if others:
        numbers.append([f"{sum(others):+.2f}", *blank])
    numbers.append([f"{sum(term.decibans for term in terms):+.2f}", *blank])
    head = ["total", *parts] if parts else []
    rest = [max(map(text_width, column)) for column in zip(*numbers, *([head] if head else []), strict=True)]
    room = max(width - sum(2 + each for each in rest), 12)
    labels = [cut_label(term.label, room) for term in shown]
    labels += [count_noun(len(others), "other")] if others else []
    lines = [(label, *line) for label, line in zip([*labels, "sum"], numbers, strict=True)]
    return align_table([("", *head), *lines] if head else lines, right=range(1, len(rest) + 1))


def _parts(term: Term, parts: Sequence[str]) -> list[str]:
    return [f"{DECIBANS * term.parts[part]:+.2f}" if part in term.parts else "" for part in parts]


# Characters of the name of a class that are shown.
MAX_NAME_LENGTH = 16

# Characters of a text that are shown above its words.
MAX_LABEL_OF_FACTORS = 30


def calculation_table(steps: dict[str, Any], labels: Sequence[str], names: Sequence[str], width: int) -> str:
    """The calculation for some classes; how each likelihood was found stands beside it, or below where that is too
    wide."""
    text = _beside(steps, labels, names)
    return text if max(map(text_width, text.splitlines())) <= width else _below(steps, labels, names, width)


def _beside(steps: dict[str, Any], labels: Sequence[str], names: Sequence[str]) -> str:
    """The calculation as a table, how each likelihood was found beside it."""
    lines = [("", *names), ("prior", *(f"{steps['prior'][name]:.4g}" for name in names))]
    for block, label in zip(steps["blocks"], labels, strict=True):
        found = []
        for name in names:
            how, value = block["formula"][name], _number(block["log_likelihood"][name])
            how = None if block["capped"] or "factors" in block else how  # the number is not what the formula gives
            found.append(value if how is None else f"{how} = {value}")
        shown = cut_label(label, MAX_LABEL_OF_FACTORS) if "factors" in block else label
        lines.append((shown + _remark(block), *found))
        for factor in block.get("factors", ()):
            numbers = [_number(factor["log"][name]) for name in names]
            if (formula := factor["formula"]) is not None:
                numbers = [f"{formula[name]} = {number}" for name, number in zip(names, numbers, strict=True)]
            lines.append((f"  · {factor['factor']}", *numbers))
    return align_table([*lines, *_product(steps, names)])


def _below(steps: dict[str, Any], labels: Sequence[str], names: Sequence[str], width: int) -> str:
    """The same where that is too wide: the numbers as a table, how they were found below each line."""
    short = [shorten(name, MAX_NAME_LENGTH) for name in names]
    lines: list[tuple[str, ...]] = [("", *short), ("prior", *(f"{steps['prior'][name]:.4g}" for name in names))]
    likelihoods = [[_number(block["log_likelihood"][name]) for name in names] for block in steps["blocks"]]
    columns = zip(short, lines[1][1:], *likelihoods, *(line[1:] for line in _product(steps, names)), strict=True)
    room = max(width - sum(2 + max(map(text_width, column)) for column in columns), 20)
    below: dict[int, list[str]] = {}
    for block, label, numbers in zip(steps["blocks"], labels, likelihoods, strict=True):
        remark = _remark(block)
        lines.append((cut_label(label, room - len(remark)) + remark, *numbers))
        told = () if "factors" in block else names
        how = [(name, block["formula"][name]) for name in told if block["formula"][name] is not None]
        below[len(lines) - 1] = [shorten(f"    {name}: {found}", width) for name, found in how]
        for factor in block.get("factors", ()):
            lines.append(
                (f"  · {cut_label(factor['factor'], room - 4)}", *(_number(factor["log"][name]) for name in names))
            )
            if (formula := factor["formula"]) is not None:
                below[len(lines) - 1] = [shorten(f"      {name}: {formula[name]}", width) for name in names]
    lines += _product(steps, names)
    table = align_table(lines).splitlines()
    return "\n".join(line for k, row in enumerate(table) for line in (row, *below.get(k, ())))


def _remark(block: dict[str, Any]) -> str:
    """What is to be said of a block: that its cell is missing or was never seen, or what its evidence weighs."""
    if all(how is None for how in block["formula"].values()):
        return "  (no evidence)"
    weight = "" if block["weight"] == 1.0 else f"  (weight {block['weight']:.3g})"
    return f"{weight}  (capped)" if block["capped"] else weight


def _product(steps: dict[str, Any], names: Sequence[str]) -> list[tuple[str, ...]]:
    """The last lines: what all is multiplied to, and the shares of it."""
    lines: list[tuple[str, ...]] = []
    if any(steps["log_bias"].values()):
        lines.append(("bias", *(f"× {_number(steps['log_bias'][name])}" for name in names)))
    if any(steps["log_correction"].values()):
        lines.append(("corrections", *(f"× {_number(steps['log_correction'][name])}" for name in names)))
    lines.append(("joint", *(_number(steps["log_joint"][name]) for name in names)))
    return [*lines, ("posterior", *(format_digits(steps["posterior"][name]) for name in names))]


def _number(log_value: float) -> str:
    """exp(log_value) in four digits, also where that is too small for a double."""
    if log_value == -np.inf or -690.0 < log_value < 690.0:
        return f"{np.exp(log_value):.4g}"
    power, rest = divmod(log_value / np.log(10.0), 1.0)
    return f"{10.0**rest:.4g}e{int(power):+d}"
