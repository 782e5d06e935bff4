"""The calculation behind a prediction, step by step, as text."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from textwrap import wrap
from typing import Any

import numpy as np
import pyarrow as pa

from deciban.arrays import Flags, Floats, Integers
from deciban.explain.words import DECIBANS, TextEvidence, TokenizedText, tokenized_texts
from deciban.families import Family
from deciban.model import Evidence, Model
from deciban.tables.arrow import decoded_cells
from deciban.tables.cell_numbers import is_text
from deciban.tables.table import Table
from deciban.text_tables import aligned, as_written, class_name, counted, digits, shortened, whole, width_of

# More classes than this do not fit beside each other: the most probable ones are shown.
MOST_CLASSES_BESIDE = 4

# Characters of a cell and of the name of a class that are shown, and of a line unless more or less is asked for.
MOST_CELL = 40
MOST_NAME = 16
WIDTH = 100

# Terms that are shown in a summary; all others are added up.
MOST_TERMS = 40


@dataclass(frozen=True)
class Steps:
    """The prior, the likelihood of every block, their product and the posterior of some rows; printing shows them."""

    evidence: Evidence
    model: Model
    table: Table

    @classmethod
    def of(cls, model: Model, table: Table, first_row: int = 0) -> "Steps":
        return cls(model.evidence(table, first_row), model, table)

    def __str__(self) -> str:
        return "\n\n".join(self.calculation(row) for row in range(self.table.rows))

    @cached_property
    def _blocks(self) -> tuple["Block", ...]:
        return tuple(Block.of(self.model, b) for b in range(len(self.model.schema.block_names)))

    @property
    def _corrections(self) -> Floats:
        """What each column has of the corrections, row by column by class."""
        return self.evidence.values[:, len(self._blocks) :]

    @cached_property
    def _log_posterior(self) -> Floats:
        return self.evidence.log_posterior

    @cached_property
    def _log_joint(self) -> Floats:
        return self.evidence.log_joint

    @cached_property
    def _impossible(self) -> Flags:
        return self.evidence.impossible

    @cached_property
    def _weighted(self) -> Floats:
        return self.evidence.weighted

    @cached_property
    def _read(self) -> dict[int, list[Any]]:
        return {}

    def _cells(self, row: int) -> list[Any]:
        """The values of a row, None where one is missing."""
        if row not in self._read:
            self._read.clear()
            self._read[row] = _values(self.table.slice(row, row + 1))
        return self._read[row]

    @cached_property
    def _tokenized(self) -> dict[int, dict[int, TokenizedText]]:
        return {}

    def _texts(self, row: int) -> dict[int, TokenizedText]:
        """The texts of a row by their blocks; each is cut into words once, whatever is asked of it."""
        if row not in self._tokenized:
            self._tokenized.clear()
            texts = tokenized_texts(self.model, self.table.slice(row, row + 1))
            self._tokenized[row] = {text.block: text for text in texts}
        return self._tokenized[row]

    def _order(self, row: int) -> Integers:
        """The classes, the most probable first."""
        return np.argsort(-self._log_posterior[row], kind="stable")

    def calculation(self, row: int, width: int = WIDTH) -> str:
        """The calculation as in a lecture, and the evidence in decibans; lines are folded or cut to `width`."""
        evidence, steps = self.evidence, self.steps(row)
        order = self._order(row)
        shown = np.sort(order[:MOST_CLASSES_BESIDE])
        names = [class_name(label) for label in evidence.classes]
        labels = self._labels(row)
        text = _beside(steps, labels, [names[c] for c in shown])
        if max(map(width_of, text.splitlines())) > width:
            text = _below(steps, labels, [names[c] for c in shown], width)
        if self._impossible[row]:
            text += "\nevery class gives this row probability 0: the posterior is the prior"
        if hidden := len(names) - len(shown):
            text += f"\n({hidden} less probable classes are not shown)"
        text += f"\ndecision: {names[order[0]]}"
        if len(order) > 1 and not self._impossible[row]:
            text += "\n" + self._decibans(row, width)
        return text

    def steps(self, row: int) -> dict[str, Any]:
        """The calculation for programs: prior, log likelihood of each block and how it was found, joint, posterior."""
        evidence = self.evidence
        names = [class_name(label) for label in evidence.classes]

        def by_class(values: Floats) -> dict[str, float]:
            return dict(zip(names, values.tolist(), strict=True))

        one, texts = self.table.slice(row, row + 1), self._texts(row)
        read = [group.family.read(one, group.columns) for group in self.model.schema.groups]
        blocks = []
        for b, block in enumerate(self._blocks):
            likelihood = self.model.likelihoods[block.group]
            if b in texts:
                how = [texts[b].formula(c) for c in range(len(names))]
            else:
                how = [likelihood.formula(read[block.group], 0, block.place, c) for c in range(len(names))]
            blocks.append(
                {
                    **block.as_dict(self._cells(row)),
                    "weight": float(evidence.weights[b]),
                    "capped": bool(evidence.capped is not None and evidence.capped[row, b]),
                    "formula": dict(zip(names, how, strict=True)),
                    "log_likelihood": by_class(evidence.values[row, b]),
                }
            )
        return {
            "prior": by_class(np.exp(evidence.log_prior)),
            "blocks": blocks,
            "log_bias": by_class(evidence.bias),
            "log_correction": by_class(self._corrections[row].sum(axis=0)),
            "log_joint": by_class(self._log_joint[row]),
            "posterior": by_class(np.exp(self._log_posterior[row])),
        }

    def summary(self, row: int, width: int = WIDTH) -> str:
        """What is predicted, and the evidence for it in decibans."""
        found = self.reasons(row)
        chances = sorted(found["posterior"].items(), key=lambda item: -item[1])[:MOST_CLASSES_BESIDE]
        shown = ", ".join(f"P({name}) = {digits(p)}" for name, p in chances)
        text = f"predicted: {class_name(found['predicted'])} ({shown})"
        text = "\n".join(wrap(text, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False))
        return text if found["against"] is None else f"{text}\n{self._decibans(row, width, short=True)}"

    def reasons(self, row: int) -> dict[str, Any]:
        """What is predicted, the posterior of each class, and the evidence against the next best: terms of a sum.

        evidence: the prior, the bias where there is one, each block with its columns, their values in this row and
        its weight, and the correction of each column; what each says is in decibans, the most telling first. words:
        what the texts say, word by word.
        """
        evidence = self.evidence
        posterior, order = self._log_posterior[row], self._order(row)
        labels = evidence.classes.tolist()
        chances = {class_name(label): float(np.exp(posterior[c])) for c, label in enumerate(labels)}
        found: dict[str, Any] = {"predicted": labels[order[0]], "posterior": chances, "against": None, "evidence": []}
        if len(order) == 1 or self._impossible[row]:
            return found
        terms = self._terms(row)
        found["evidence"] = [{**block, "decibans": value} for block, _, value in terms]
        if texts := self.words(row):
            found["words"] = {text.column: text.terms for text in texts}
        return {**found, "against": labels[order[1]], "sum": sum(value for _, _, value in terms)}

    def words(self, row: int = 0) -> list[TextEvidence]:
        """What the texts of a row say for the best class against the next, word by word; empty where there are none."""
        order = self._order(row)
        if order.size == 1 or self._impossible[row]:
            return []
        best, other = int(order[0]), int(order[1])
        found = (text.evidence(float(self.model.weights[b]), best, other) for b, text in self._texts(row).items())
        return [evidence for evidence in found if evidence is not None]

    def _terms(self, row: int) -> list[tuple[dict[str, Any], str, float]]:
        """What each block is, as people write it, and what it says for the best class against the next, in decibans."""
        evidence, cells = self.evidence, self._cells(row)
        best, other = self._order(row)[:2]
        alone: list[tuple[str, Floats]] = [("prior", evidence.log_prior)]
        if evidence.bias.any():
            alone.append(("bias", evidence.bias))
        terms = []
        with np.errstate(invalid="ignore"):
            for name, values in alone:
                what: dict[str, Any] = {"block": name, "columns": [], "values": [], "weight": 1.0}
                terms.append((what, name, float(DECIBANS * (values[best] - values[other]))))
            each = DECIBANS * (self._weighted[row, :, best] - self._weighted[row, :, other])
        for b, (block, label) in enumerate(zip(self._blocks, self._labels(row), strict=True)):
            terms.append(({**block.as_dict(cells), "weight": float(evidence.weights[b])}, label, float(each[b])))
        for b in range(len(self._blocks), len(evidence.blocks)):
            what, label = self._correction(b, cells)
            terms.append((what, label, float(each[b])))
        return sorted(terms, key=lambda term: 0.0 if math.isnan(term[2]) else -abs(term[2]))

    def _correction(self, b: int, cells: list[Any]) -> tuple[dict[str, Any], str]:
        """The correction of a column, for programs and as people write it."""
        corrections = self.model.corrections
        assert corrections is not None, "there is a correction"
        column = corrections.columns[b - len(self._blocks)].column
        name, value = self.model.schema.column_name(column), cells[column]
        what = {"block": self.evidence.blocks[b], "columns": [name], "values": [_plain(value)], "weight": 1.0}
        return what, f"correction of {name} = {_written(value)}"

    def _labels(self, row: int) -> list[str]:
        """Each block of a row as people write it, no two alike: with the family where need be."""
        labels = [block.label(self._cells(row)) for block in self._blocks]
        times = Counter(labels)
        labels = [
            label if times[label] == 1 else f"{label} as {block.family}"
            for label, block in zip(labels, self._blocks, strict=True)
        ]
        times = Counter(labels)
        return [label if times[label] == 1 else f"{label} ({b + 1})" for b, label in enumerate(labels)]

    def _decibans(self, row: int, width: int, short: bool = False) -> str:
        """The evidence for the best class against the next, as terms of a sum; `short`: without columns that say 0."""
        terms = self._terms(row)
        is_shown = [
            not block["columns"] or not short or (value != 0.0 and k < MOST_TERMS)
            for k, (block, _, value) in enumerate(terms)
        ]
        if is_shown.count(False) == 1:
            is_shown = [True] * len(terms)  # the line that would count it can as well show it
        lines = [
            (cut_label(label, width - 12), f"{value:+.2f}")
            for (_, label, value), here in zip(terms, is_shown, strict=True)
            if here
        ]
        others = [value for (_, _, value), here in zip(terms, is_shown, strict=True) if not here]
        if others:
            lines.append((counted(len(others), "other"), f"{sum(others):+.2f}"))
        lines.append(("sum", f"{sum(value for _, _, value in terms):+.2f}"))
        best, against = map(class_name, self.evidence.classes[self._order(row)[:2]].tolist())
        text = f"evidence for {best} against {against}, in decibans:\n" + aligned(lines)
        return "\n".join([text, *map(str, self.words(row))])


@dataclass(frozen=True)
class Block:
    """A block of a model: its place, its family, and its columns with their names."""

    group: int
    place: int
    name: str
    family: Family
    columns: tuple[int, ...]
    names: tuple[str, ...]

    @classmethod
    def of(cls, model: Model, block: int) -> "Block":
        group, place = model.schema.group_of_block(block)
        here = model.schema.groups[group]
        columns = here.columns if here.family.joint else here.columns[place : place + 1]
        names = tuple(model.schema.column_name(column) for column in columns)
        return cls(group, place, model.schema.block_names[block], here.family, columns, names)

    def as_dict(self, row: list[Any]) -> dict[str, Any]:
        """The block for programs, with the values of its columns in a row; of many counts, those that are not 0."""
        cells = [(name, row[column]) for name, column in zip(self.names, self.columns, strict=True)]
        if self.family.absorbs:
            cells = [cell for cell in cells if cell[1] != 0]
        return {
            "block": self.name,
            "columns": [name for name, _ in cells],
            "values": [_plain(value) for _, value in cells],
        }

    def label(self, row: list[Any]) -> str:
        """The block of a row as people write it: outlook = sunny."""
        if len(self.columns) > 4:
            return f"{len(self.columns)} columns as {self.family}"
        cells = zip(self.names, self.columns, strict=True)
        return ", ".join(f"{name} = {_written(row[column])}" for name, column in cells)


def _beside(steps: dict[str, Any], labels: Sequence[str], names: Sequence[str]) -> str:
    """The calculation as a table, how each likelihood was found beside it."""
    lines = [("", *names), ("prior", *(f"{steps['prior'][name]:.4g}" for name in names))]
    for block, label in zip(steps["blocks"], labels, strict=True):
        found = []
        for name in names:
            how, value = block["formula"][name], _number(block["log_likelihood"][name])
            how = None if block["capped"] else how  # the number is not what the formula gives
            found.append(value if how is None else f"{how} = {value}")
        lines.append((label + _remark(block), *found))
    return aligned([*lines, *_product(steps, names)])


def _below(steps: dict[str, Any], labels: Sequence[str], names: Sequence[str], width: int) -> str:
    """The same where that is too wide: the numbers as a table, how they were found below each line."""
    short = [shortened(name, MOST_NAME) for name in names]
    lines: list[tuple[str, ...]] = [("", *short), ("prior", *(f"{steps['prior'][name]:.4g}" for name in names))]
    likelihoods = [[_number(block["log_likelihood"][name]) for name in names] for block in steps["blocks"]]
    columns = zip(short, lines[1][1:], *likelihoods, *(line[1:] for line in _product(steps, names)), strict=True)
    room = max(width - sum(2 + max(map(width_of, column)) for column in columns), 20)
    below: dict[int, list[str]] = {}
    for block, label, numbers in zip(steps["blocks"], labels, likelihoods, strict=True):
        remark = _remark(block)
        lines.append((cut_label(label, room - len(remark)) + remark, *numbers))
        how = [(name, block["formula"][name]) for name in names if block["formula"][name] is not None]
        below[len(lines) - 1] = [shortened(f"    {name}: {found}", width) for name, found in how]
    lines += _product(steps, names)
    table = aligned(lines).splitlines()
    return "\n".join(line for k, row in enumerate(table) for line in (row, *below.get(k, ())))


def cut_label(label: str, most: int) -> str:
    """The label of a block in so many places; the family, by which blocks of the same columns differ, is cut last."""
    columns, sign, family = label.rpartition(" as ")
    room = most - width_of(sign + family)
    if not sign or not 8 <= room < width_of(columns):
        return shortened(label, most)
    return shortened(columns, room) + sign + family


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
    return [*lines, ("posterior", *(digits(steps["posterior"][name]) for name in names))]


def _values(row: Table) -> list[Any]:
    """The values of a table of one row, None where one is missing; short floats with the digits that they have."""
    cells = row.values(range(row.width))
    if isinstance(cells, list):
        values = [_value(column) for column in cells]
    elif cells.dtype == np.float32:
        values = [float(str(value)) for value in cells[0]]
    else:
        values = cells[0].tolist()
    return [None if value is None or value != value else value for value in values]


def _value(column: pa.Array) -> Any:
    if is_text(column.type):
        return decoded_cells(column)[0]
    value = column[0].as_py()
    short = value is not None and (pa.types.is_float16(column.type) or pa.types.is_float32(column.type))
    return float(str(np.float32(value))) if short else value


def _plain(value: Any) -> Any:
    """A cell for programs: a whole number is one, whatever it is counted as."""
    return whole(value) if isinstance(value, float) else value


def _written(value: Any) -> str:
    """A cell as people write it."""
    if value is None:
        return "missing"
    return as_written(value) if isinstance(value, float) else shortened(str(value).replace("\n", "\\n"), MOST_CELL)


def _number(log_value: float) -> str:
    """exp(log_value) in four digits, also where that is too small for a double."""
    if log_value == -np.inf or -690.0 < log_value < 690.0:
        return f"{np.exp(log_value):.4g}"
    power, rest = divmod(log_value / np.log(10.0), 1.0)
    return f"{10.0**rest:.4g}e{int(power):+d}"
