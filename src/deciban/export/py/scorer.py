"""A fitted model that scores rows: DecibanScorer(model), given the model's JSON."""

from __future__ import annotations

import json
import math
import os
import sys
from typing import Any, Mapping, NamedTuple

from deciban.export.py.arrays import decoded_array, decoded_number, largest, log, zeros
from deciban.export.py.cells import Column, LevelSet, learned_cell
from deciban.export.py.corrections import TableCorrections
from deciban.export.py.families import (
    Context,
    GroupScorer,
    add_to,
    bernoulli,
    binned,
    categorical,
    gamma,
    linear,
    log_normal,
    normal,
    poisson,
)
from deciban.export.py.joint import joint_normal, joint_table
from deciban.export.py.shares import settled
from deciban.export.py.texts import texts

_SCORERS: dict[str, Any] = {
    "categorical": categorical,
    "binned": binned,
    "bernoulli": bernoulli,
    "linear": linear,
    "normal": normal,
    "log normal": log_normal,
    "gamma": gamma,
    "poisson": poisson,
    "joint normal": joint_normal,
    "joint table": joint_table,
    "text": texts,
}

# Evidence beyond this for every class leaves too few digits to what is added to it.
_VAST_EVIDENCE = 1e6
_LEAST_EXPONENT = -746.0

# What turns a label that is written as text back into what it was.
_LABELS: dict[str, Any] = {"integer": int, "number": float}


class Group(NamedTuple):
    """A group of columns: what scores it, its columns, its blocks and their weights."""

    scorer: GroupScorer
    places: list[int]
    blocks: list[int]
    weights: list[float]


class Known(NamedTuple):
    """What is known of a row: the columns that say nothing, the bias of the others, and what the sum is scaled by."""

    unknown: list[bool]
    bias: list[float]
    scale: float


class DecibanScorer:
    """What scores rows, each a dict from names of columns to cells; a column that is not there is a missing cell."""

    def __init__(self, model: dict[str, Any]) -> None:
        found = f"{model.get('format')} {model.get('version')}"
        if found != "deciban model 1":
            raise ValueError(f"this is {found}, expected deciban model 1; export the model again")
        read_label = _LABELS.get(model["classes"]["type"], lambda label: label)
        self.classes: list[Any] = [read_label(label) for label in model["classes"]["labels"]]
        levels = [LevelSet(encoded) for encoded in model["levels"]]
        context = Context(len(self.classes), levels)
        self._columns = [_column(one, place, levels) for place, one in enumerate(model["columns"])]
        self._places = {column.name: column.place for column in self._columns}
        self._blocks = model["blocks"]
        self._block_weights = [decoded_number(block["weight"]) for block in self._blocks]
        self._groups = [self._group(group, context) for group in model["groups"]]
        self._log_prior = [decoded_number(value) for value in model["log_prior"]]
        self._partial = model["partial"]
        if self._partial is not None:
            self._shares, offsets = (decoded_array(self._partial[name]) for name in ("shares", "offsets"))
            size = len(self.classes)
            self._offsets = [offsets[k * size : (k + 1) * size] for k in range(len(self._columns))]
            self._informative = decoded_array(self._partial["informative"])
        self._cap = decoded_number(model["cap"])
        encoded = model["corrections"]
        self._corrections = None if encoded is None else TableCorrections(encoded, self._columns, context)

    def _group(self, group: dict[str, Any], context: Context) -> Group:
        columns = [self._columns[place] for place in group["columns"]]
        weights = [self._block_weights[block] for block in group["blocks"]]
        scorer = _SCORERS[group["scorer"]](group, columns, context)
        return Group(scorer, group["columns"], group["blocks"], weights)

    @property
    def columns(self) -> list[dict[str, Any]]:
        """Each column with its name, its kind and, if it has any, its levels."""
        plain: list[dict[str, Any]] = [{"name": column.name, "kind": column.kind} for column in self._columns]
        for found, column in zip(plain, self._columns):
            if column.levels is not None:
                found["levels"] = column.levels
        return plain

    def log_joint(self, row: Mapping[str, Any]) -> list[float]:
        """The log joint of each class, without terms that are the same for every class."""
        return self._joint(self._cells(row))

    def log_proba(self, row: Mapping[str, Any]) -> list[float]:
        """The logarithm of the posterior of each class."""
        return self._normalized(self.log_joint(row))[0]

    def proba(self, row: Mapping[str, Any]) -> list[float]:
        """The posterior of each class, in the order of `classes`."""
        return self._normalized(self.log_joint(row))[1]

    def predict(self, row: Mapping[str, Any]) -> Any:
        """The most probable class; ties go to the first."""
        return self._best(self.log_joint(row))

    def evidence(self, row: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Of each block: name, columns, weight, values (in nats, one for each class), capped.

        Where a correction has a share in the log joint, that of each column is behind them; last the bias, the sum of
        the offsets of the known columns. All are scaled where cells are missing.
        """
        return self._evidence(self._cells(row))

    def column_evidence(self, row: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Of each column: values, which are alone + together + correction, after weights and cap."""
        return self._column_evidence(self._cells(row))

    def _best(self, joint: list[float]) -> Any:
        values = self._log_prior if largest(joint) == -math.inf else joint
        return self.classes[values.index(largest(values))]

    def _cells(self, row: Mapping[str, Any]) -> list[Any]:
        """The cells of a row in the order of the columns."""
        if not isinstance(row, Mapping):
            raise ValueError(f"a row is a dict, {{column: value, ...}}; found a value of type {type(row).__name__}")
        cells: list[Any] = [None] * len(self._columns)
        known = [name for name in row if name in self._places]
        if row and not known:
            names = ", ".join(str(name) for name in list(row)[:12])
            raise ValueError(f"none of the model's columns is in the row: it has {names}")
        for name in known:
            cells[self._places[name]] = row[name]
        return cells

    def _is_beyond(self, weighted: list[float], block: int) -> bool:
        """Whether a block is worth more than the cap, or so much for every class that others would be rounded away."""
        if self._cap == math.inf or self._blocks[block]["words"]:
            return False
        top = largest(weighted)
        return not all(value >= top - self._cap for value in weighted) or top < -_VAST_EVIDENCE

    def _capped(self, weighted: list[float]) -> list[float]:
        """Weighted evidence, relative to the best class and no further below it than the cap."""
        top = largest(weighted)
        return [0.0 if top == -math.inf else max(value - top, -self._cap) for value in weighted]

    def _known(self, cells: list[Any]) -> Known:
        """What is known of a row."""
        unknown, bias, scale = [False] * len(cells), zeros(len(self.classes)), 1.0
        if self._partial is None:
            return Known(unknown, bias, scale)
        share = 0.0
        for column, raw, part in zip(self._columns, cells, self._shares):
            if column.kind != "unused":
                unknown[column.place] = learned_cell(column, raw) is None
                share += 0.0 if unknown[column.place] else part
        if any(unknown):
            scale = _interpolated(share, self._partial["scales"])
            for place in self._informative:
                unknown[place] = unknown[place] and share < self._partial["least"]
        for gone, offset in zip(unknown, self._offsets):
            if not gone:
                add_to(bias, 1.0, offset)
        return Known(unknown, bias, scale)

    def _zeros(self, count: int) -> list[list[float]]:
        return [zeros(len(self.classes)) for _ in range(count)]

    def _joint(self, cells: list[Any]) -> list[float]:
        known = self._known(cells)
        joint = list(known.bias)
        if self._cap == math.inf:
            for group in self._groups:
                group.scorer.score(cells, group.weights, [0] * len(group.blocks), [joint])
        else:
            apart = self._zeros(len(self._blocks))
            for group in self._groups:
                group.scorer.score(cells, group.weights, group.blocks, apart)
            for b, weighted in enumerate(apart):
                add_to(joint, 1.0, self._capped(weighted) if self._is_beyond(weighted, b) else weighted)
        if self._corrections is not None:
            add_to(joint, 1.0, self._corrections.totals(cells, known.unknown))
        return [prior + known.scale * value for prior, value in zip(self._log_prior, joint)]

    def _normalized(self, joint: list[float]) -> tuple[list[float], list[float]]:
        """The log posterior and the posterior; where every class has probability 0, those of the prior."""
        top = largest(joint)
        if top == -math.inf:
            return list(self._log_prior), [math.exp(value) for value in self._log_prior]
        shares = [0.0 if value - top < _LEAST_EXPONENT else math.exp(value - top) for value in joint]
        total = sum(shares)
        return [value - top - log(total) for value in joint], [share / total for share in shares]

    def _evidence(self, cells: list[Any]) -> list[dict[str, Any]]:
        apart = self._zeros(len(self._blocks))
        for group in self._groups:
            group.scorer.score(cells, [1.0] * len(group.blocks), group.blocks, apart)
        found = [self._block_evidence(b, values) for b, values in enumerate(apart)]
        known = self._known(cells)
        if self._corrections is not None:
            corrected = zip(self._corrections.columns, self._corrections.shares(cells, known.unknown))
            found += [_named(f"correction of {one.name}", [one.name], 1.0, values, False) for one, values in corrected]
        if self._partial is not None:
            found.append(_named("bias", [], 1.0, known.bias, False))
        return [{**block, "values": [known.scale * value for value in block["values"]]} for block in found]

    def _block_evidence(self, b: int, values: list[float]) -> dict[str, Any]:
        block, weight = self._blocks[b], self._block_weights[b]
        scale = weight if weight > 0 else 1.0
        weighted = [scale * value for value in values]
        beyond = self._is_beyond(weighted, b)
        if beyond:
            values = [value / scale for value in self._capped(weighted)]
        return _named(block["name"], [self._columns[k].name for k in block["columns"]], weight, values, beyond)

    def _column_evidence(self, cells: list[Any]) -> list[dict[str, Any]]:
        alone, together, correction = (self._zeros(len(self._columns)) for _ in range(3))
        blocks, known = self._evidence(cells), self._known(cells)
        if self._partial is not None:
            for values, gone, offset in zip(alone, known.unknown, self._offsets):
                if not gone:
                    add_to(values, known.scale, offset)
        for group in self._groups:
            if group.scorer.shares is not None and len(group.places) > 1:
                for place, share in zip(
                    group.places, self._shared_out(group, cells, blocks[group.blocks[0]], known.scale)
                ):
                    add_to(together[place], 1.0, share)
                continue
            for b, place in zip(group.blocks, group.places):
                if blocks[b]["weight"] > 0:
                    add_to(alone[place], blocks[b]["weight"], blocks[b]["values"])
        if self._corrections is not None:
            for column, block in zip(self._corrections.columns, blocks[len(self._blocks) :]):
                add_to(correction[column.place], 1.0, block["values"])
        found = []
        for column, *parts in zip(self._columns, alone, together, correction):
            named = dict(zip(("alone", "together", "correction"), parts))
            found.append({"name": column.name, "values": [sum(each) for each in zip(*parts)], **named})
        return found

    def _shared_out(self, group: Group, cells: list[Any], block: dict[str, Any], scale: float) -> list[list[float]]:
        """What the columns of a joint block have of its evidence; nothing where it has no weight."""
        scorer, weight, limited = group.scorer, block["weight"], block["capped"]
        if scorer.shares is None or not weight > 0:
            return []
        evidence = block["values"]
        if not limited and scorer.evidence is not None:
            evidence = [scale * value for value in scorer.evidence(cells)]
        shares = settled([[scale * value for value in share] for share in scorer.shares(cells)], evidence, limited)
        return [[weight * value for value in share] for share in shares]

    def main(self) -> int:
        """Read rows as JSON, one a line, from standard input; write what is predicted of each, one a line."""
        for number, line in enumerate(sys.stdin.buffer, 1):
            if not line.strip():
                continue
            try:
                joint = self.log_joint(json.loads(line))
            except (ValueError, RecursionError) as problem:
                print(f"line {number}: {problem}", file=sys.stderr)
                return 1
            found = {"predicted": self._best(joint), "posterior": self._normalized(joint)[1]}
            try:
                print(json.dumps(found), flush=True)
            except BrokenPipeError:  # whoever reads has seen enough; nothing is left to be written at the end
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                return 0
        return 0


def _interpolated(share: float, scales: list[list[float]]) -> float:
    """The scale at a share of the evidence, between those that are given: (share, scale), rising."""
    for (low, before), (high, after) in zip(scales, scales[1:]):
        if share <= high:
            return before + (after - before) * (share - low) / (high - low)
    return scales[-1][1]


def _column(encoded: dict[str, Any], place: int, levels: list[LevelSet]) -> Column:
    known = levels[encoded["levels"]].values if "levels" in encoded else None
    return Column(encoded["name"], encoded["kind"], encoded["read_as"], place, known)


def _named(name: str, columns: list[str], weight: float, values: list[float], capped: bool) -> dict[str, Any]:
    return {"name": name, "columns": columns, "weight": weight, "values": values, "capped": capped}
