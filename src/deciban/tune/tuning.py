"""Tuning by leave-one-out: the family of each column, the columns that speak together, the weight of each block.

Rows are scored by what is counted without them, so that a choice is judged by rows it has not seen. Counts do not
depend on any of it: a choice says which statistics are kept beside those of plain Bayes, and how all are heard.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from deciban.arrays import Floats, Integers
from deciban.data.labels import Labels
from deciban.data.schema import LATER, Part, Schema
from deciban.data.tables import Table
from deciban.errors import BadCell, DataError
from deciban.families import JointGaussian
from deciban.families.base import LeftOut
from deciban.fit import one_blas_thread
from deciban.model import Counts, Model, column_places, estimate
from deciban.progress import progress
from deciban.text_tables import aligned, counted
from deciban.tune.blocks import MOST_PAIRS, joint_gaussians, pairs_of
from deciban.tune.families import Choice, best_families
from deciban.tune.rows import FEWEST_ROWS, Rows
from deciban.tune.texts import best_texts
from deciban.tune.weights import learn_weights, left_out_figures

# No more rows than this are looked at, fewer where they have much to say.
MOST_ROWS = 6_000
MOST_EVIDENCE = 1 << 23

# With more blocks than this all of them share one weight.
MOST_BLOCKS = 500


@dataclass(frozen=True)
class Tuning:
    """The parts that are heard, the weight of each of their blocks, the bias of each class, and how they were found.

    `stale`: the counts have changed since.
    `accuracy`, `log_loss`: of the rows it was found on, each scored without itself; the weights were chosen by these
    same rows, so they flatter a little. None where nothing was tuned, or the counts have changed since.
    """

    schema: Schema
    weights: Floats
    bias: Floats
    rows: int
    note: str = ""
    choices: tuple[Choice, ...] = ()
    stale: bool = False
    accuracy: float | None = field(default=None, metadata=LATER)
    log_loss: float | None = field(default=None, metadata=LATER)

    @property
    def groups(self) -> Integers:
        """The group of each block: all single columns, each joint Gaussian beside them; -1 for tables beside them."""
        groups = np.zeros(len(self.schema.block_names), dtype=np.int64)
        beside = 0
        for slot, part in zip(self.schema.slots, self.schema.parts, strict=True):
            if part.beside and isinstance(part.family, JointGaussian):
                beside += 1
                groups[slot] = beside
            elif part.beside:
                groups[slot] = -1
        return groups

    @classmethod
    def plain(cls, counts: Counts) -> "Tuning":
        """Every block of plain Bayes with weight 1."""
        schema = counts.schema.plain
        return cls(schema, np.ones(len(schema.block_names)), np.zeros(counts.classes.size), 0)

    def without_idle_blocks(self) -> "Tuning":
        """Without the blocks beside the columns that weigh nothing."""
        slots = self.schema.slots
        kept = [p for p, part in enumerate(self.schema.parts) if not part.beside or self.weights[slots[p]].any()]
        schema = replace(self.schema, parts=tuple(self.schema.parts[p] for p in kept))
        weights = np.empty(len(schema.block_names))
        for place, p in enumerate(kept):
            weights[schema.slots[place]] = self.weights[slots[p]]
        return replace(self, schema=schema, weights=weights)

    def model(self, counts: Counts, log_prior: Floats) -> Model:
        """The model that these counts support."""
        return estimate(counts.heard(self.schema), log_prior, weights=self.weights, bias=self.bias)

    def after(self, counts: Counts, classes: Any) -> "Tuning":
        """The same, marked stale, for counts that have changed; `classes` are those of the bias.

        What is not counted any more is dropped: a column then speaks by its plain family with the weight it had. New
        columns have the mean weight of the others.
        """
        place = column_places(self.schema, counts.schema)
        held: list[tuple[Part, list[float]]] = []
        alone: dict[int, float] = {}
        for slot, part in zip(self.schema.slots, self.schema.parts, strict=True):
            moved = replace(part, columns=tuple(place[column] for column in part.columns))
            own = self.weights[slot].tolist()
            if counts.schema.find(moved) is not None:
                held.append((moved, own))
            elif not part.beside:
                alone.update(zip(moved.columns, own * len(moved.columns) if part.family.joint else own, strict=True))
        heard = {column for part, _ in held if not part.beside for column in part.columns}
        usual = float(np.mean(self.weights)) if self.weights.size else 1.0
        for part in counts.schema.plain.parts:
            missing = [k for k, column in enumerate(part.columns) if column not in heard]
            if part.family.joint and missing:
                held.append((part, [alone.get(part.columns[0], usual)]))
            elif missing:
                some = part.only(missing)
                held.append((some, [alone.get(column, usual) for column in some.columns]))
        schema = replace(counts.schema, parts=tuple(part for part, _ in held))
        weights = np.empty(len(schema.block_names))
        for p, (_, own) in enumerate(held):
            weights[schema.slots[p]] = own
        bias = np.zeros(counts.classes.size)
        known = np.isin(counts.classes, classes)
        bias[known] = self.bias[np.isin(classes, counts.classes)]
        return replace(self, schema=schema, weights=weights, bias=bias, stale=True, accuracy=None, log_loss=None)

    @property
    def summary(self) -> str:
        """On how many rows it was tuned and how good it is, in one line."""
        if not self.rows:
            return self.note or "not tuned"
        text = f"tuned on {counted(self.rows, 'row')}" + (f", {self.note}" if self.note else "")
        if self.accuracy is None or self.log_loss is None:
            return text
        return f"{text}: left-out accuracy {self.accuracy:.4f}, log-loss {self.log_loss:.4f} (given the tuning)"

    def __str__(self) -> str:
        stale = "; the counts have changed since: retune" if self.stale else ""
        return f"{self.summary}{stale}\n{self.weights_table}"

    @property
    def weights_table(self) -> str:
        """The weight of each block, for people."""
        weights = zip(self.schema.block_names, self.weights, strict=True)
        return aligned((name, f"{weight:.3f}") for name, weight in weights)


@one_blas_thread()
def tuned(
    table: Table,
    labels: Labels,
    weights: Floats | None,
    base: Schema,
    count: Callable[[Schema], Counts],
    threads: int | None = None,
) -> tuple[Counts, Tuning]:
    """The counts of a table and how they are to be heard; `count` counts all of it under a schema."""
    rows = Rows.of(table, labels.codes, weights, labels.classes.size, most_rows(base, labels.classes.size))
    blocks = len(base.block_names)
    present = rows.of_classes_present()
    if present.classes < 2 or rows.total < FEWEST_ROWS:
        few = "one class" if present.classes == 1 else counted(rows.total, "row")
        return _untuned(count(base), f"plain Bayes: {few} cannot be tuned on")
    if blocks > MOST_BLOCKS:
        counts = count(base)
        start = replace(Tuning.plain(counts), schema=base, note=f"one weight for all {blocks} blocks")
        return counts, with_shared_weight(start, rows.among(labels.classes, counts), counts, learned=True)
    try:
        with progress("tuning", "candidates") as advance:
            found = choose(replace(present, advance=advance, threads=threads), base)
    except (BadCell, np.linalg.LinAlgError) as problem:
        return _untuned(count(base), f"plain Bayes: tuning met {problem}")
    counts = count(wide(base, found.schema.parts))
    if rows.labels.size == counts.rows and present.classes == counts.classes.size:
        return counts, found  # the rows it was found on are all there are
    return counts, reweighed(found, counts, rows.among(labels.classes, counts))


def _untuned(counts: Counts, note: str) -> tuple[Counts, Tuning]:
    return counts, replace(Tuning.plain(counts), note=note)


@one_blas_thread()
def retuned(
    tuning: Tuning, counts: Counts, table: Table, labels: Labels, weights: Floats | None, learned: bool
) -> Tuning:
    """The same parts with weights learned anew from these rows."""
    classes = labels.classes.size
    rows = Rows.of(table, labels.codes, weights, classes, most_rows(tuning.schema, classes))
    rows = rows.among(labels.classes, counts)
    if classes < 2 or rows.total < FEWEST_ROWS:
        raise DataError(
            f"{counted(rows.labels.size, 'row')} of {counted(classes, 'class')} are too few to tune on; "
            f"give at least {FEWEST_ROWS}"
        )
    if len(tuning.schema.block_names) > MOST_BLOCKS:
        return with_shared_weight(tuning, rows, counts.heard(tuning.schema), learned)
    return reweighed(tuning, counts, rows, learned)


def reweighed(tuning: Tuning, counts: Counts, rows: Rows, learned: bool = True) -> Tuning:
    """The same parts with the weights that these rows support, which are among those counted if they were `learned`."""
    heard = counts.heard(tuning.schema)
    model = estimate(heard, rows.log_prior)
    left_out = rows.taken_out(learned)
    evidence = model.evidence_left_out(heard, rows.table, left_out)
    found = replace(tuning, rows=rows.labels.size, stale=False, note="")
    return weighed(found, evidence, rows, counts.class_weight, left_out)


def weighed(tuning: Tuning, evidence: Floats, rows: Rows, class_weight: Floats, left_out: LeftOut) -> Tuning:
    """With the weights that this evidence supports, and how good they make it."""
    weights, bias = learn_weights(evidence, rows, tuning.groups)
    accuracy, log_loss = left_out_figures(evidence, rows, weights, bias, class_weight, left_out.taken)
    return replace(tuning, weights=weights, bias=bias, accuracy=accuracy, log_loss=log_loss)


def choose(rows: Rows, base: Schema) -> Tuning:
    """The parts to hear and their weights, found on rows that are counted here for this purpose alone."""
    heard, choices = best_families(rows, base)
    spoken, more = best_texts(rows, base)
    heard += spoken
    choices += more
    heard += joint_gaussians(rows, base)
    heard += pairs_of(rows, base, heard, {choice.column: choice.loss for choice in choices})
    schema = replace(base, parts=tuple(part.part for part in heard))
    tuning = Tuning(schema, np.ones(0), np.zeros(0), rows.labels.size, choices=choices)
    evidence = np.empty((rows.labels.size, len(schema.block_names), rows.classes))
    for slot, part in zip(schema.slots, heard, strict=True):
        evidence[:, slot] = part.evidence
    class_weight = np.bincount(rows.labels, rows.weights, rows.classes).astype(np.float64)
    return weighed(tuning, evidence, rows, class_weight, rows.left_out).without_idle_blocks()


def most_rows(schema: Schema, classes: int) -> int:
    """How many rows are tuned on."""
    blocks = min(len(schema.block_names), MOST_BLOCKS) + MOST_PAIRS
    return max(min(MOST_ROWS, MOST_EVIDENCE // max(1, blocks * classes)), FEWEST_ROWS)


def wide(base: Schema, heard: Iterable[Part]) -> Schema:
    """The base and, beside it, all that has to be counted for the parts that are heard."""
    schema = base
    for part in heard:
        if schema.find(part) is None:
            schema = replace(schema, parts=(*schema.parts, replace(part, beside=True)))
    return schema


def with_shared_weight(tuning: Tuning, rows: Rows, counts: Counts, learned: bool) -> Tuning:
    """With one weight for all blocks, and the bias of each class: for models of too many blocks to weigh each."""
    schema, left_out = counts.schema, rows.taken_out(learned)
    evidence = np.zeros((rows.labels.size, 1, rows.classes))
    for p, (part, statistic) in enumerate(zip(schema.parts, counts.statistics, strict=True)):
        cells = part.family.read(rows.table, part.columns)
        part.family.score_left_out(statistic, cells, left_out, schema.together[p], evidence)
    shared, bias = learn_weights(evidence, rows, np.zeros(1, dtype=np.int64))
    figures = left_out_figures(evidence, rows, shared, bias, counts.class_weight, left_out.taken)
    weights = np.full(len(schema.block_names), shared[0])
    return replace(
        tuning, weights=weights, bias=bias, rows=rows.labels.size, stale=False, accuracy=figures[0], log_loss=figures[1]
    )
