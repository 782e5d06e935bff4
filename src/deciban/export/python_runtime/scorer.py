"""Scorer of rows: DecibanScorer(model), given the model's JSON."""

from __future__ import annotations

import json
import math
import os
import sys
from operator import getitem
from typing import Any, Callable, Iterator, Mapping, NamedTuple

from deciban.export.python_runtime.cells import (
    Column,
    CutPlace,
    LevelPlace,
    Row,
    add_to,
    bad_cell,
    decode_array,
    decode_number,
    display_level,
    largest,
    log,
    type_error,
    zeros,
)
from deciban.export.python_runtime.terms import (
    Term,
    adjust_shares,
    half_line_term,
    joint_normal_term,
    linear_term,
    lookup_term,
    narrow_gamma_term,
    normal_term,
    shapley_shares,
    tuple_term,
)
from deciban.export.python_runtime.texts import text_term

_TERMS: dict[str, Any] = {
    "LookupTerm": lookup_term,
    "NormalTerm": normal_term,
    "HalfLineTerm": half_line_term,
    "NarrowGammaTerm": narrow_gamma_term,
    "LinearTerm": linear_term,
    "JointNormalTerm": joint_normal_term,
    "TupleTerm": tuple_term,
    "TextTerm": text_term,
}

# Evidence below minus this for every class leaves too few digits for the other blocks.
_VAST_EVIDENCE = 1e6

# exp() of smaller numbers is 0.
_MIN_EXPONENT = -746.0

# Cumulative probability that makes a class the median.
_MIN_HALF = 0.5 - 1e-9

# Conversion of labels that JSON stores as text.
_LABELS: dict[str, Any] = {"integer": int, "number": float}

# Weight added to each cell of a table when its values are averaged, so that no cell is empty.
_CELL_PRIOR_WEIGHT = 1e-6


class TableCorrections:
    """Correction tables, and the share of each column in them.

    The cells of a row in all tables are the bytes of one integer. Each column contributes its answers to the questions
    of all tables at once, as the binary digits of these cells.
    """

    def __init__(self, encoded: dict[str, Any], places: list[Any], classes: int) -> None:
        self.classes, self.places = classes, encoded["places"]
        self.depth, self.tests = decode_array(encoded["depth"]), decode_array(encoded["tests"])
        self.contrasts, self.rows = decode_array(encoded["contrasts"]), decode_array(encoded["rows"])
        self.unit = float(encoded["unit"])
        self.columns: list[Column] = [places[place].column for place in self.places]
        self.starts = [0]  # first cell of each table
        for depth in self.depth:
            self.starts.append(self.starts[-1] + (1 << depth))
        size = classes - 1
        flat = [self.contrasts[c::size] for c in range(size)]
        self.tables = [[one[a:b] for a, b in zip(self.starts, self.starts[1:])] for one in flat]
        self.answers, self.digits = self.encode_questions([places[place].size for place in self.places])

    def encode_questions(self, sizes: list[int]) -> tuple[list[list[int]], list[int]]:
        """Return the answers of each place of each column, and the digits that each column determines."""
        tables = len(self.depth)
        changes = [
            [bytearray(tables) for _ in range(size)] for size in sizes
        ]  # digits that a place is the first to set
        test = 0
        for t, depth in enumerate(self.depth):
            for bit in (1 << (depth - 1 - k) for k in range(depth)):
                column, cut = self.tests[2 * test : 2 * test + 2]
                if cut + 1 < sizes[column]:
                    changes[column][max(cut + 1, 0)][t] |= bit
                test += 1
        answers = []
        for own in changes:
            answers.append([0])
            for change in own:
                answers[-1].append(answers[-1][-1] | int.from_bytes(change, "little"))
        digits, test = [bytearray(tables) for _ in sizes], 0
        for t, depth in enumerate(self.depth):
            for bit in (1 << (depth - 1 - k) for k in range(depth)):
                digits[self.tests[2 * test]][t] |= bit
                test += 1
        return [own[1:] for own in answers], [int.from_bytes(own, "little") for own in digits]

    def cells(self, row: Row, unknown: list[bool]) -> tuple[bytes, bytes]:
        """Return the cell of a row in each table, and its unknown digits (empty if all are known).

        unknown: flags of the model's columns without evidence.
        """
        found = free = 0
        for place, column, answers, digits in zip(self.places, self.columns, self.answers, self.digits):
            if unknown[column.number]:
                free |= digits
            else:
                found |= answers[row.place(place)]
        tables = len(self.depth)
        return found.to_bytes(tables, "little"), free.to_bytes(tables, "little") if free else b""

    def center(self, sums: list[float]) -> list[float]:
        """Return class values with mean 0, from their differences to the first class."""
        mean = sum(sums) / self.classes
        return [value - mean for value in [0.0, *sums]]

    def contrast(self, cell: int) -> list[float]:
        """Return the differences of the classes to the first one in a cell, in units."""
        size = self.classes - 1
        return self.contrasts[cell * size : (cell + 1) * size]

    def totals(self, row: Row, unknown: list[bool]) -> list[float]:
        """Return the correction of each class; tables are averaged over unknown columns."""
        cells, frees = self.cells(row, unknown)
        sums = [float(sum(map(getitem, tables, cells))) for tables in self.tables]
        for t, free in enumerate(frees):
            if free:
                cell = self.starts[t] + cells[t]
                add_to(sums, -1.0, self.contrast(cell))
                if free < (1 << self.depth[t]) - 1:
                    add_to(sums, 1.0, self.mean(cell, free))
        return self.center([self.unit * value for value in sums])

    def mean(self, cell: int, free: int) -> list[float]:
        """Return the mean of the cells that differ only in the free digits."""
        sums, total, some = zeros(self.classes - 1), 0.0, free
        while True:
            amount = self.rows[cell + some] + _CELL_PRIOR_WEIGHT
            total += amount
            add_to(sums, amount, self.contrast(cell + some))
            if not some:
                return [value / total for value in sums]
            some = (some - 1) & free

    def conditional_means(self, first: int, depth: int, cell: int) -> Callable[[int], list[float]]:
        """Return a function from a set of tests (bits) to a mean of the table.

        The mean is over the rows that agree with a cell in these tests; 0 for the empty set.
        """
        count = 1 << depth
        places = [first + (cell ^ differs) for differs in range(count)]
        weight = [self.rows[at] + _CELL_PRIOR_WEIGHT for at in places]
        contrasts = [self.contrast(at) for at in places]
        sums = [[w * one[c] for w, one in zip(weight, contrasts)] for c in range(self.classes - 1)]
        for values in (weight, *sums):
            for bit in (1 << level for level in range(depth)):
                for some in range(count):
                    if some & bit:
                        values[some] += values[some ^ bit]

        def mean_of(known: int) -> list[float]:
            free = count - 1 - known
            return [values[free] / weight[free] for values in sums] if known else zeros(self.classes - 1)

        return mean_of

    def add_shares(self, test: int, first: int, depth: int, cell: int, free: int, out: list[list[float]]) -> None:
        """Add the Shapley value of each known column of a table."""
        players: dict[int, int] = {}
        for k in range(depth):
            column, bit = self.tests[2 * (test + k)], 1 << (depth - 1 - k)
            if not free & bit:
                players[column] = players.get(column, 0) | bit
        mean_of = self.conditional_means(first, depth, cell)
        bits = list(players.values())

        def value_of(some: int) -> list[float]:
            return mean_of(sum(bit for p, bit in enumerate(bits) if some & 1 << p))

        for column, share in zip(players, shapley_shares(value_of, len(bits), self.classes - 1)):
            add_to(out[column], 1.0, share)

    def shares(self, row: Row, unknown: list[bool]) -> list[list[float]]:
        """Return the share of each corrected column."""
        out, test = [zeros(self.classes - 1) for _ in self.columns], 0
        cells, frees = self.cells(row, unknown)
        for t, depth in enumerate(self.depth):
            self.add_shares(test, self.starts[t], depth, cells[t], frees[t] if frees else 0, out)
            test += depth
        return [self.center([self.unit * value for value in sums]) for sums in out]


class Block:
    """Columns that form one block of evidence: terms that add up, their weight, and their cap."""

    def __init__(self, block: dict[str, Any], columns: list[Column], classes: int) -> None:
        self.name, self.classes = block["name"], classes
        self.columns = [columns[number] for number in block["columns"]]
        self.weight, self.cap = decode_number(block["weight"]), decode_number(block["cap"])
        self.terms: list[Term] = [
            _TERMS[term["term"]](term, [columns[number] for number in term["columns"]], classes)
            for term in block["terms"]
        ]

    def read(self, row: Row) -> None:
        """Read the cells, which may raise an error."""
        for term in self.terms:
            term.read(row)

    def score(self, row: Row) -> list[float]:
        """Return the evidence of a row for each class, without weight and cap."""
        if len(self.terms) == 1:
            return self.terms[0].score(row) or zeros(self.classes)
        total = zeros(self.classes)
        for term in self.terms:
            values = term.score(row)
            if values is not None:
                add_to(total, 1.0, values)
        return total

    def is_beyond(self, weighted: list[float]) -> bool:
        """Return True if the evidence must be capped.

        It exceeds the cap, or is so large for every class that other blocks would be rounded away.
        """
        if self.cap == math.inf:
            return False
        top = largest(weighted)
        return not all(value >= top - self.cap for value in weighted) or top < -_VAST_EVIDENCE

    def cap_evidence(self, weighted: list[float]) -> list[float]:
        """Return weighted evidence relative to the best class, limited by the cap."""
        top = largest(weighted)
        return [0.0 if top == -math.inf else max(value - top, -self.cap) for value in weighted]

    def evidence(self, row: Row) -> dict[str, Any]:
        """Return the evidence of a row for display."""
        values, scale = self.score(row), self.weight if self.weight > 0 else 1.0
        weighted = [scale * value for value in values]
        beyond = self.is_beyond(weighted)
        if beyond:
            values = [value / scale for value in self.cap_evidence(weighted)]
        return _describe_block(self.name, [column.name for column in self.columns], self.weight, values, beyond)

    def shares(self, row: Row, shown: dict[str, Any], scale: float) -> list[list[float]]:
        """Return the share of each column in the weighted evidence; empty without weight."""
        if not self.weight > 0:
            return []
        evidence, limited = shown["values"], shown["capped"]
        found = {column.number: zeros(self.classes) for column in self.columns}
        for term in self.terms:
            own = [term.score(row)] if term.shares is None else term.shares(row)
            for column, values in zip(term.columns, own):
                add_to(found[column.number], scale, values or [])
            if term.evidence is not None and not limited:
                evidence = [scale * value for value in term.evidence(row)]
        shares = adjust_shares([found[column.number] for column in self.columns], evidence, limited)
        return [[self.weight * value for value in share] for share in shares]


class Rejection:
    """Places of several columns, with the same cuts or levels, that are rejected."""

    def __init__(self, encoded: dict[str, Any], places: list[LevelPlace | CutPlace]) -> None:
        self.places, self.rejected = decode_array(encoded["places"]), frozenset(decode_array(encoded["rejected"]))
        self.blocks = encoded["blocks"]
        self.expected, self.never = encoded["expected"], encoded["never"]
        self.columns = [places[place].column for place in self.places]
        self.low, self.high = (
            math.inf,
            -math.inf,
        )  # interval of numbers that are accepted at once
        first = places[self.places[0]]
        if isinstance(first, CutPlace):
            edges = [-math.inf, *first.cuts, math.inf]
            accepted = [place for place in range(1, len(edges)) if place not in self.rejected]
            if len(accepted) == 1:
                self.low, self.high = edges[accepted[0] - 1], edges[accepted[0]]

    def find(self, row: Row) -> Iterator[int]:
        """Yield the positions of columns with a rejected place."""
        low, high = self.low, self.high
        for k, column in enumerate(self.columns):
            if low < high and low <= row.number(column) < high:
                continue
            if row.place(self.places[k]) in self.rejected:
                yield k


class Known(NamedTuple):
    """Unknown columns of a row, the bias of the others, and the scale of the sum."""

    unknown: list[bool]
    bias: list[float]
    scale: float


class DecibanScorer:
    """Scorer of rows, given as dicts from column name to value.

    Columns that a row does not have are missing cells.
    """

    def __init__(self, model: dict[str, Any]) -> None:
        found = f"{model.get('format')} {model.get('version')}"
        if found != "deciban model 2":
            raise ValueError(f"unsupported format {found!r}, expected 'deciban model 2'; export the model again")
        read_label = _LABELS.get(model["classes"]["type"], lambda label: label)
        self.classes: list[Any] = [read_label(label) for label in model["classes"]["labels"]]
        size, sets = len(self.classes), model["sets"]
        self._columns = [_column(one, number, sets) for number, one in enumerate(model["columns"])]
        self._numbers = {column.name: column.number for column in self._columns}
        self._places = [_place(place, self._columns, sets) for place in model["places"]]
        self._rejections = [Rejection(one, self._places) for one in model["refusals"]]
        self._blocks = [Block(block, self._columns, size) for block in model["blocks"]]
        self._log_prior = [decode_number(value) for value in model["log_prior"]]
        self._limit = decode_number(model["limit"])
        self._order = model.get("order")
        self._partial = model["partial"]
        if self._partial is not None:
            self._shares, offsets = (decode_array(self._partial[name]) for name in ("shares", "offsets"))
            self._offsets = [offsets[k * size : (k + 1) * size] for k in range(len(self._columns))]
            self._informative = decode_array(self._partial["informative"])
        encoded = model["corrections"]
        self._corrections = None if encoded is None else TableCorrections(encoded, self._places, size)

    @property
    def columns(self) -> list[dict[str, Any]]:
        """Columns, each with its name, its kind and, if it has any, its levels."""
        plain: list[dict[str, Any]] = [{"name": column.name, "kind": column.kind} for column in self._columns]
        for found, column in zip(plain, self._columns):
            if column.levels is not None:
                found["levels"] = column.levels
        return plain

    def predict_joint_log_proba(self, row: Mapping[str, Any]) -> list[float]:
        """Return the log joint of each class, without terms common to all classes."""
        return self._joint(self._row(row))

    def predict_log_proba(self, row: Mapping[str, Any]) -> list[float]:
        """Return the log posterior of each class."""
        return self._normalize(self.predict_joint_log_proba(row))[0]

    def predict_proba(self, row: Mapping[str, Any]) -> list[float]:
        """Return the posterior of each class, in the order of `classes`."""
        return self._normalize(self.predict_joint_log_proba(row))[1]

    def predict(self, row: Mapping[str, Any]) -> Any:
        """Return the most probable class, the first of equal ones; of ordered classes, the posterior median."""
        return self._best(self.predict_joint_log_proba(row))

    def evidence(self, row: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return for each block: name, columns, weight, values (in nats, one per class), capped.

        The blocks are followed by the correction of each corrected column, by the sum of the offsets of the known
        columns, and, if it changes the row, by what the limit adds. All values are scaled if cells are missing.
        """
        return self._evidence(self._row(row))

    def column_evidence(self, row: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return for each column: name, values, own, joint, correction.

        The values are own + joint + correction, after weights and cap. If the limit changes the row, it follows.
        """
        return self._column_evidence(self._row(row))

    def _best(self, joint: list[float]) -> Any:
        if self._order is not None:
            shares, total = self._normalize(joint)[1], 0.0
            for place in self._order:
                total += shares[place]
                if total >= _MIN_HALF:
                    return self.classes[place]
        values = self._log_prior if largest(joint) == -math.inf else joint
        return self.classes[values.index(largest(values))]

    def _row(self, row: Mapping[str, Any]) -> Row:
        """Return the cells of a row in the order of the columns."""
        if not isinstance(row, Mapping):
            raise ValueError(f"expected a row as {{column: value, ...}}, found a value of type {type(row).__name__}")
        cells: list[Any] = [None] * len(self._columns)
        known = [name for name in row if name in self._numbers]
        if row and not known:
            names = ", ".join(str(name) for name in list(row)[:12])
            raise ValueError(f"the row has none of the model's columns; it has {names}")
        for name in known:
            cells[self._numbers[name]] = row[name]
        return Row(cells, self._places)

    def _reject(self, row: Row, every: bool) -> None:
        """Raise a ValueError for a cell that cannot be scored; `every` includes blocks without weight."""
        for rule in self._rejections:
            for k in rule.find(row):
                if every or rule.blocks is None or self._blocks[rule.blocks[k]].weight != 0:
                    place = self._places[rule.places[k]]
                    cell, text = place.display(row)
                    if rule.expected:
                        raise type_error(place.column, cell, rule.expected)
                    raise bad_cell(place.column, f"found {text}, {rule.never}", "or fit with unseen='ignore'")

    def _adjust_for_missing(self, row: Row) -> Known:
        """Return the unknown columns, the bias and the scale of a row."""
        unknown, bias, scale = [False] * len(self._columns), zeros(len(self.classes)), 1.0
        if self._partial is None:
            return Known(unknown, bias, scale)
        share = 0.0
        for column, part in zip(self._columns, self._shares):
            if column.kind != "unused":
                unknown[column.number] = row.cell(column) is None
                share += 0.0 if unknown[column.number] else part
        if any(unknown):
            scale = _interpolate(share, self._partial["scales"])
            for number in self._informative:
                unknown[number] = unknown[number] and share < self._partial["least"]
        for gone, offset in zip(unknown, self._offsets):
            if not gone:
                add_to(bias, 1.0, offset)
        return Known(unknown, bias, scale)

    def _joint(self, row: Row) -> list[float]:
        self._reject(row, every=False)
        known = self._adjust_for_missing(row)
        joint = list(known.bias)
        for block in self._blocks:
            if block.weight == 0:
                block.read(row)
                continue
            values = block.score(row)
            if block.cap == math.inf:
                add_to(joint, block.weight, values)
                continue
            weighted = [block.weight * value for value in values]
            add_to(joint, 1.0, block.cap_evidence(weighted) if block.is_beyond(weighted) else weighted)
        if self._corrections is not None:
            add_to(joint, 1.0, self._corrections.totals(row, known.unknown))
        total = [known.scale * value for value in joint]
        return [prior + value for prior, value in zip(self._log_prior, self._raise(total))]

    def _raise(self, total: list[float]) -> list[float]:
        """Return the evidence raised to the limit below the best class; a class of probability 0 keeps it."""
        least = largest(total) - self._limit
        return [least if -math.inf < value < least else value for value in total]

    def _normalize(self, joint: list[float]) -> tuple[list[float], list[float]]:
        """Return the log posterior and the posterior; those of the prior if every class is impossible."""
        top = largest(joint)
        if top == -math.inf:
            return list(self._log_prior), [math.exp(value) for value in self._log_prior]
        shares = [0.0 if value - top < _MIN_EXPONENT else math.exp(value - top) for value in joint]
        total = sum(shares)
        return [value - top - log(total) for value in joint], [share / total for share in shares]

    def _evidence(self, row: Row) -> list[dict[str, Any]]:
        self._reject(row, every=True)
        found, known = [block.evidence(row) for block in self._blocks], self._adjust_for_missing(row)
        if self._corrections is not None:
            corrected = zip(self._corrections.columns, self._corrections.shares(row, known.unknown))
            found += [
                _describe_block(f"correction of {one.name}", [one.name], 1.0, values, False)
                for one, values in corrected
            ]
        if self._partial is not None:
            found.append(_describe_block("offsets", [], 1.0, known.bias, False))
        found = [{**block, "values": [known.scale * value for value in block["values"]]} for block in found]
        total = zeros(len(self.classes))
        for block in found:
            if block["weight"] > 0:
                add_to(total, block["weight"], block["values"])
        added = [now - value if now > value else 0.0 for now, value in zip(self._raise(total), total)]
        return [*found, _describe_block("limit", [], 1.0, added, False)] if any(added) else found

    def _column_evidence(self, row: Row) -> list[dict[str, Any]]:
        own, joint, correction = ([zeros(len(self.classes)) for _ in self._columns] for _ in range(3))
        evidence, known = self._evidence(row), self._adjust_for_missing(row)
        if self._partial is not None:
            for values, gone, offset in zip(own, known.unknown, self._offsets):
                if not gone:
                    add_to(values, known.scale, offset)
        for block, shown in zip(self._blocks, evidence):
            if len(block.columns) > 1:
                for column, share in zip(block.columns, block.shares(row, shown, known.scale)):
                    add_to(joint[column.number], 1.0, share)
            elif block.weight > 0:
                add_to(own[block.columns[0].number], block.weight, shown["values"])
        if self._corrections is not None:
            for column, shown in zip(self._corrections.columns, evidence[len(self._blocks) :]):
                add_to(correction[column.number], 1.0, shown["values"])
        found = []
        for column, *parts in zip(self._columns, own, joint, correction):
            named = dict(zip(("own", "joint", "correction"), parts))
            found.append({"name": column.name, "values": [sum(each) for each in zip(*parts)], **named})
        if evidence and evidence[-1]["name"] == "limit" and not evidence[-1]["columns"]:
            added, nothing = evidence[-1]["values"], zeros(len(self.classes))
            found.append({"name": "limit", "values": added, "own": added, "joint": nothing, "correction": nothing})
        return found

    def main(self) -> int:
        """Read rows as JSON Lines from standard input, and write a prediction per line."""
        for number, line in enumerate(sys.stdin.buffer, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as problem:
                place = f", character {problem.pos + 1}" if isinstance(problem, json.JSONDecodeError) else ""
                print(
                    f"line {number}{place}: not valid JSON; write each row as {{column: value, ...}}", file=sys.stderr
                )
                return 1
            try:
                joint = self.predict_joint_log_proba(row)
            except (ValueError, RecursionError) as problem:
                print(f"line {number}: {problem}", file=sys.stderr)
                return 1
            found = {"predicted": self._best(joint), "probabilities": self._normalize(joint)[1]}
            try:
                print(json.dumps(found), flush=True)
            except BrokenPipeError:  # the reader has closed the pipe; discard the rest of the output
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                return 0
        return 0


def _interpolate(share: float, scales: list[list[float]]) -> float:
    """Return the scale at a share of the evidence, interpolated between increasing (share, scale) pairs."""
    for (low, before), (high, after) in zip(scales, scales[1:]):
        if share <= high:
            return before + (after - before) * (share - low) / (high - low)
    return scales[-1][1]


def _column(encoded: dict[str, Any], number: int, sets: list[dict[str, Any]]) -> Column:
    known = None
    if "levels" in encoded:
        own = sets[encoded["levels"]]
        known = [display_level(own["type"], value) for value in own["values"]]
    return Column(encoded["name"], encoded["kind"], encoded["read_as"], number, known)


def _place(encoded: list[int], columns: list[Column], sets: list[dict[str, Any]]) -> LevelPlace | CutPlace:
    column, own = columns[encoded[0]], sets[encoded[1]]
    if own["type"] == "cuts":
        return CutPlace(column, decode_array(own["values"]))
    return LevelPlace(column, own["type"], own["values"], own.get("part"))


def _describe_block(name: str, columns: list[str], weight: float, values: list[float], capped: bool) -> dict[str, Any]:
    return {"name": name, "columns": columns, "weight": weight, "values": values, "capped": capped}
