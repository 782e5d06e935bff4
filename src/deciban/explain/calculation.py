"""Calculation behind a prediction: the sum of evidence for one class against another, and the textbook product.

`Term` is a term of the sum (prior, a column or a block, limit). `format_sum` prints the sum,
`format_calculation` prints prior, likelihoods, joint and posterior.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from deciban.explain.columns import (
    MAX_CELL_LENGTH,
    Block,
    ColumnEvidence,
    add_up_by_block,
    format_cell,
    label_blocks,
    plain_cell,
)
from deciban.model.model import Evidence, Model
from deciban.util.arrays import Floats
from deciban.util.text_tables import (
    DECIBANS,
    align_table,
    count_noun,
    escape_line,
    format_digits,
    shorten,
    shorten_middle,
    text_width,
    wrap_lines,
)

# Parts of the evidence of a column: its own block, its share of joint blocks, and its share of the corrections.
PARTS = ("own", "joint", "correction")

# Parts of the evidence of a block in a tuned model: its weighted likelihood ratio, and the offsets of its columns.
BLOCK_PARTS = ("likelihood", "offset")

# Fields of a term that is a column.
COLUMN_KEYS = ("term", "column", "value", "decibans", "nats", *PARTS)

# Fields of a term that is a block.
BLOCK_KEYS = ("block", "columns", "values", "weight", "decibans", "nats", *BLOCK_PARTS)


@dataclass(frozen=True)
class Term:
    """Evidence of a column, a block or the prior for one class against another, in nats.

    label: text for people. fields: plain data for programs. parts: summands of the evidence of a column or block, else
    empty. role: the prior is the first term of a sum, the limit the last one. block: the block, if the term is one.
    """

    label: str
    nats: float
    fields: dict[str, Any]
    parts: dict[str, float] = field(default_factory=dict)
    role: Literal["prior", "column", "limit"] = "column"
    block: Block | None = None

    @property
    def decibans(self) -> float:
        return float(DECIBANS * self.nats)

    def to_dict(self) -> dict[str, Any]:
        """Return the term as plain data; its parts are in decibans."""
        parts = {name: float(DECIBANS * value) for name, value in self.parts.items()}
        return {**self.fields, "decibans": self.decibans, "nats": self.nats, **parts}


def arrange_terms(
    terms: Sequence[Term], evidence: Evidence, row: int, key: str, best: int, other: int, **no_cells: Any
) -> list[Term]:
    """Return the prior, these terms (most evidence first) and, if it changes the row, the limit."""

    def difference(values: Floats) -> float:
        with np.errstate(invalid="ignore"):
            return float(values[best] - values[other])

    found = sorted(terms, key=lambda term: 0.0 if math.isnan(term.nats) else -abs(term.nats))
    prior, raised = difference(evidence.row_log_prior(row)), difference(evidence.raised[row])
    limit = [Term("limit", raised, {key: "limit", **no_cells}, role="limit")] if raised != 0.0 else []
    return [Term("prior", prior, {key: "prior", **no_cells}, role="prior"), *found, *limit]


def make_block_terms(
    model: Model,
    evidence: Evidence,
    row: int,
    cells: list[Any],
    offsets: Floats,
    best: int,
    other: int,
    blocks: Sequence[Block],
) -> list[Term]:
    """Return the prior, a term for each block (with its offset) and the correction of each column, and the limit."""
    values, weights = evidence.values[row], evidence.weights
    with np.errstate(invalid="ignore"):
        each = np.where(weights > 0.0, weights * values[:, best] - weights * values[:, other], 0.0).tolist()
    of_blocks = add_up_by_block(blocks, offsets)
    terms = []
    for b, (block, label) in enumerate(zip(blocks, label_blocks(blocks, cells), strict=True)):
        fields = {**block.to_dict(cells), "weight": float(weights[b])}
        parts = dict(zip(BLOCK_PARTS, (each[b], float(of_blocks[b, best] - of_blocks[b, other])), strict=True))
        terms.append(Term(label, sum(parts.values()), fields, {} if model.partial is None else parts, block=block))
    for b in range(len(blocks), len(evidence.blocks)):
        assert model.corrections is not None, "there is a correction"
        column = model.corrections.columns[b - len(blocks)].column
        name, value = model.schema.column_name(column), cells[column]
        fields = {"block": evidence.blocks[b], "columns": [name], "values": [plain_cell(value)], "weight": 1.0}
        terms.append(Term(escape_line(f"correction of {name} = {format_cell(value)}"), each[b], fields))
    return arrange_terms(terms, evidence, row, "block", best, other, columns=[], values=[], weight=1.0)


def make_column_terms(
    model: Model, evidence: Evidence, columns: ColumnEvidence, row: int, cells: list[Any], best: int, other: int
) -> list[Term]:
    """Return the prior, a term for each used column, and the limit; word counts of 0 are one term, unless it is 0."""
    with np.errstate(invalid="ignore"):
        parts = [
            (part[row, :, best] - part[row, :, other]).tolist()
            for part in (columns.own, columns.joint, columns.correction)
        ]
    absorbs = {column: group.family.accepts_new_columns for group in model.schema.groups for column in group.columns}
    terms, absent = [], []
    for column in sorted(absorbs):
        of_column = {part: values[column] for part, values in zip(PARTS, parts, strict=True)}
        if absorbs[column] and cells[column] == 0:
            absent.append(of_column)
            continue
        name, value = columns.columns[column], cells[column]
        fields = {"term": "column", "column": name, "value": plain_cell(value)}
        terms.append(Term(escape_line(f"{name} = {format_cell(value)}"), sum(of_column.values()), fields, of_column))
    together = {part: math.fsum(one[part] for one in absent) for part in PARTS}
    if any(together.values()):
        fields = {"term": "counts of 0", "column": None, "value": 0}
        terms.append(Term(count_noun(len(absent), "count") + " of 0", sum(together.values()), fields, together))
    return arrange_terms(terms, evidence, row, "term", best, other, column=None, value=None)


def roll_up(terms: Sequence[Term], max_terms: int) -> list[tuple[str, float]]:
    """Return the label and the decibans of the prior, the largest terms, the sum of the other terms, and the limit."""
    columns = [term for term in terms if term.role == "column" and term.nats != 0.0]
    shown = columns if len(columns) == max_terms + 1 else columns[:max_terms]  # a single other term is shown itself
    rest = [term.decibans for term in columns[len(shown) :]]
    others = [(count_noun(len(rest), "other"), sum(rest))] if rest else []
    first, last = ([term for term in terms if term.role == role] for role in ("prior", "limit"))
    return [
        *((term.label, term.decibans) for term in (*first, *shown)),
        *others,
        *((term.label, term.decibans) for term in last),
    ]


def clip_infinite(values: Sequence[float]) -> list[float]:
    """Return evidence that can be drawn: infinite values become longer than all finite ones together.

    >>> clip_infinite([1.0, -2.0, float("-inf")])
    [1.0, -2.0, -13.0]
    """
    longest = 10.0 + sum(abs(value) for value in values if math.isfinite(value))
    return [min(max(value, -longest), longest) if not math.isnan(value) else 0.0 for value in values]


def format_signed(decibans: float, digits: int = 1) -> str:
    """Return evidence as text; zero has no minus sign.

    >>> format_signed(1.25), format_signed(-0.01), format_signed(float("-inf")), format_signed(float("nan"))
    ('+1.2', '+0.0', '−∞', 'undefined')
    """
    if math.isnan(decibans):  # evidence of +∞ and of −∞ has no sum
        return "undefined"
    if math.isinf(decibans):
        return "+∞" if decibans > 0.0 else "−∞"
    return f"{decibans:+z.{digits}f}"


def format_decibans(decibans: float, digits: int = 1) -> str:
    """Format evidence with its sign, infinite evidence as ∞.

    >>> format_decibans(-2.55), format_decibans(float("inf"))
    ('−2.5', '+∞')
    """
    return format_signed(decibans, digits).replace("-", "−")


# More terms than this make a summary unreadable; the others are added up.
MAX_TERMS = 40


def format_sum(terms: Sequence[Term], width: int, short: bool) -> str:
    """Return the terms and their sum as a text table, with the parts of each term if there is more than one.

    short: omit columns without evidence, and all but the largest ones.
    """
    is_shown = [
        not short or term.role != "column" or (term.nats != 0.0 and k <= MAX_TERMS) for k, term in enumerate(terms)
    ]
    if is_shown.count(False) == 1:
        is_shown = [True] * len(terms)  # show a single other term itself
    shown = [term for term, here in zip(terms, is_shown, strict=True) if here]
    others = [term.decibans for term, here in zip(terms, is_shown, strict=True) if not here]
    parts = [part for part in (*PARTS, *BLOCK_PARTS) if any(term.parts.get(part) for term in shown)]
    if not set(parts) - {"own", "likelihood"}:
        parts = []  # identical to the total
    blank = [""] * len(parts)
    lines = [(term.label, f"{term.decibans:+z.2f}", *_format_parts(term, parts)) for term in shown]
    if others:
        at = len(lines) - (shown[-1].role == "limit")
        lines.insert(at, (count_noun(len(others), "other"), f"{sum(others):+z.2f}", *blank))
    lines.append(("sum", f"{sum(term.decibans for term in terms):+z.2f}", *blank))
    if parts:
        lines.insert(0, ("", "total", *parts))
    rest = [max(map(text_width, column)) for column in list(zip(*lines, strict=True))[1:]]
    room = max(width - sum(2 + each for each in rest), 12)
    lines = [(shorten_middle(label, room), *numbers) for label, *numbers in lines]
    return align_table(lines, right=range(1, len(rest) + 1))


def format_shared_columns(blocks: Sequence[Term], columns: Sequence[Term], cells: list[Any]) -> list[str]:
    """Return a line for each column with several blocks of its own, such as a date and its hour: the evidence of each.

    blocks: the terms by block. columns: those by column. cells: values of the row.
    """
    own: dict[str, list[tuple[Block, float]]] = {}
    for one in blocks:
        if one.block is not None and len(one.block.names) == 1:
            own.setdefault(one.block.names[0], []).append((one.block, one.parts.get("likelihood", one.nats)))
    lines = []
    for term in columns:
        shared = own.get(term.fields.get("column") or "", [])
        if len(shared) < 2 or not term.parts.get("own"):
            continue
        found = [(block.short_label(cells), nats) for block, nats in shared if nats != 0.0]
        offset = term.parts["own"] - sum(nats for _, nats in found)
        found += [("offset", offset)] if abs(DECIBANS * offset) >= 0.05 else []  # smaller ones are +0.0
        name = shorten(escape_line(term.fields["column"]), MAX_CELL_LENGTH)
        lines.append(
            f"{name} alone {DECIBANS * term.parts['own']:+z.1f}: "
            + ", ".join(f"{label} {DECIBANS * nats:+z.1f}" for label, nats in found)
        )
    return lines


def _format_parts(term: Term, parts: Sequence[str]) -> list[str]:
    return [f"{DECIBANS * term.parts[part]:+z.2f}" if part in term.parts else "" for part in parts]


# Factors of the joint behind the likelihoods, and their keys in the calculation.
FACTORS = (("offsets", "log_offset"), ("corrections", "log_correction"), ("limit", "log_limit"))

# Longer class names are truncated in narrow tables.
MAX_NAME_LENGTH = 16

# Longer texts are truncated above the list of their words.
MAX_LABEL_OF_FACTORS = 30


def format_calculation(steps: dict[str, Any], labels: Sequence[str], names: Sequence[str], width: int) -> str:
    """Return the calculation for some classes as text, with formulas beside the numbers, or below if too wide."""
    text = _format_beside(steps, labels, names)
    if max(map(text_width, text.splitlines())) > width:
        text = _format_below(steps, labels, names, width)
    factors = [name for name, key in FACTORS if any(steps[key].values())]
    if not factors and all(block["weight"] == 1.0 for block in steps["blocks"]):
        return text
    note = f"(joint = {' × '.join(['prior', 'each likelihood to the power of its weight', *factors])})"
    return f"{text}\n{wrap_lines(note, width)}"


def _format_beside(steps: dict[str, Any], labels: Sequence[str], names: Sequence[str]) -> str:
    """Return the calculation as a table with the formulas beside the numbers."""
    lines = [("", *names), ("prior", *(f"{steps['prior'][name]:.4g}" for name in names))]
    for block, label in zip(steps["blocks"], labels, strict=True):
        found = []
        for name in names:
            how, value = block["formula"][name], _format_number(block["log_likelihood"][name])
            how = None if block["capped"] or "factors" in block else how  # the number is not what the formula gives
            found.append(value if how is None else f"{how} = {value}")
        shown = shorten(label, MAX_LABEL_OF_FACTORS) if "factors" in block else label
        lines.append((shown + _format_remark(block), *found))
        for factor in block.get("factors", ()):
            numbers = [_format_number(factor["log"][name]) for name in names]
            if (formula := factor["formula"]) is not None:
                numbers = [f"{formula[name]} = {number}" for name, number in zip(names, numbers, strict=True)]
            lines.append((f"  · {factor['factor']}", *numbers))
    return align_table([*lines, *_format_product(steps, names)])


def _format_below(steps: dict[str, Any], labels: Sequence[str], names: Sequence[str], width: int) -> str:
    """Return the calculation as a table with the formulas below each line."""
    short = [shorten(name, MAX_NAME_LENGTH) for name in names]
    lines: list[tuple[str, ...]] = [("", *short), ("prior", *(f"{steps['prior'][name]:.4g}" for name in names))]
    likelihoods = [[_format_number(block["log_likelihood"][name]) for name in names] for block in steps["blocks"]]
    columns = zip(short, lines[1][1:], *likelihoods, *(line[1:] for line in _format_product(steps, names)), strict=True)
    room = max(width - sum(2 + max(map(text_width, column)) for column in columns), 20)
    below: dict[int, list[str]] = {}
    for block, label, numbers in zip(steps["blocks"], labels, likelihoods, strict=True):
        remark = _format_remark(block)
        lines.append((shorten_middle(label, room - len(remark)) + remark, *numbers))
        explained = () if "factors" in block else names
        how = [(name, block["formula"][name]) for name in explained if block["formula"][name] is not None]
        below[len(lines) - 1] = [shorten(f"    {name}: {found}", width) for name, found in how]
        for factor in block.get("factors", ()):
            lines.append(
                (
                    f"  · {shorten(factor['factor'], room - 4)}",
                    *(_format_number(factor["log"][name]) for name in names),
                )
            )
            if (formula := factor["formula"]) is not None:
                below[len(lines) - 1] = [shorten(f"      {name}: {formula[name]}", width) for name in names]
    lines += _format_product(steps, names)
    table = align_table(lines).splitlines()
    return "\n".join(line for k, row in enumerate(table) for line in (row, *below.get(k, ())))


def _format_remark(block: dict[str, Any]) -> str:
    """Return a remark on a block: no evidence of its value, its weight, or that it is capped."""
    if all(how is None for how in block["formula"].values()):
        more = [part for part in ("offset", "correction") if any(block[f"log_{part}"].values())]
        return f"  (only {' and '.join(more)})" if more else "  (no evidence)"
    weight = "" if block["weight"] == 1.0 else f"  (weight {block['weight']:.3g})"
    return f"{weight}  (capped)" if block["capped"] else weight


def _format_product(steps: dict[str, Any], names: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the last lines: offsets, corrections, limit, joint and posterior."""
    lines: list[tuple[str, ...]] = []
    for label, key in FACTORS:
        if any(steps[key].values()):
            lines.append((label, *(f"× {_format_number(steps[key][name])}" for name in names)))
    lines.append(("joint", *(_format_number(steps["log_joint"][name]) for name in names)))
    return [*lines, ("posterior", *(format_digits(steps["posterior"][name]) for name in names))]


def _format_number(log_value: float) -> str:
    """Return exp(log_value) with four digits, even if it underflows a double."""
    if log_value == -np.inf or -690.0 < log_value < 690.0:
        return f"{np.exp(log_value):.4g}"
    power, rest = divmod(log_value / np.log(10.0), 1.0)
    return f"{10.0**rest:.4g}e{int(power):+d}"
