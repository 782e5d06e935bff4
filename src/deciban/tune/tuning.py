"""Tuning by leave-one-out: the family of each column, the columns modelled together, the weight of each block.

Rows are scored by what is counted without them, so that a choice is judged by rows it has not seen. Counts do not
depend on any of it: a choice is which statistics are kept beside those of plain Bayes, and how all are weighed.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from deciban.arrays import Floats, Integers
from deciban.counts import Counts, column_places
from deciban.errors import BadCell, DataError
from deciban.families.protocols import LeftOut
from deciban.model import Model, estimate
from deciban.parallel import one_blas_thread
from deciban.progress import progress
from deciban.schema.schema import ADDED_LATER, ColumnGroup, Schema
from deciban.tables.labels import LabelArray, Labels
from deciban.tables.table import Table
from deciban.text_tables import aligned, counted
from deciban.tune.blocks import MOST_PAIRS, choose_joint_gaussians, choose_pairs
from deciban.tune.families import Choice, choose_families
from deciban.tune.rows import FEWEST_ROWS, Rows
from deciban.tune.texts import choose_texts
from deciban.tune.weights import learn_weights, left_out_figures

# No more rows than this are tuned on, and no more numbers of evidence.
MOST_ROWS_TUNED = 6_000
MOST_EVIDENCE_TUNED = 1 << 23

# With more blocks than this all of them share one weight.
MOST_BLOCKS_WEIGHED = 500


@dataclass(frozen=True)
class Tuning:
    """The column groups in use, the weight of each of their blocks, the bias of each class, and how they were found.

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
    accuracy: float | None = field(default=None, metadata=ADDED_LATER)
    log_loss: float | None = field(default=None, metadata=ADDED_LATER)

    @property
    def weight_groups(self) -> Integers:
        """The group of each block: one for all columns alone, one for each other model of the columns together; -1 for
        interactions, whose weights are drawn to 0."""
        groups = np.zeros(len(self.schema.block_names), dtype=np.int64)
        auxiliary = 0
        for slot, group in zip(self.schema.block_slots, self.schema.groups, strict=True):
            if group.auxiliary and group.family.interaction:
                groups[slot] = -1
            elif group.auxiliary:
                auxiliary += 1
                groups[slot] = auxiliary
        return groups

    @classmethod
    def plain(cls, counts: Counts) -> "Tuning":
        """Every block of plain Bayes with weight 1."""
        schema = counts.schema.plain
        return cls(schema, np.ones(len(schema.block_names)), np.zeros(counts.classes.size), 0)

    def without_zero_weights(self) -> "Tuning":
        """Without the blocks beside the columns that weigh nothing."""
        slots = self.schema.block_slots
        kept = [p for p, group in enumerate(self.schema.groups) if not group.auxiliary or self.weights[slots[p]].any()]
        schema = replace(self.schema, groups=tuple(self.schema.groups[p] for p in kept))
        weights = np.empty(len(schema.block_names))
        for place, p in enumerate(kept):
            weights[schema.block_slots[place]] = self.weights[slots[p]]
        return replace(self, schema=schema, weights=weights)

    def model(self, counts: Counts, log_prior: Floats) -> Model:
        """The model that these counts support."""
        return estimate(counts.for_schema(self.schema), log_prior, weights=self.weights, bias=self.bias)

    def after(self, counts: Counts, classes: Any) -> "Tuning":
        """The same, marked stale, for counts that have changed; `classes` are those of the bias.

        What is not counted any more is dropped: a column then takes its plain family with the weight it had. New
        columns have the mean weight of the others.
        """
        place = column_places(self.schema, counts.schema)
        held: list[tuple[ColumnGroup, list[float]]] = []
        alone: dict[int, float] = {}
        for slot, group in zip(self.schema.block_slots, self.schema.groups, strict=True):
            moved = replace(group, columns=tuple(place[column] for column in group.columns))
            own = self.weights[slot].tolist()
            if counts.schema.group_counting(moved) is not None:
                held.append((moved, own))
            elif not group.auxiliary:
                alone.update(zip(moved.columns, own * len(moved.columns) if group.family.joint else own, strict=True))
        scored = {column for group, _ in held if not group.auxiliary for column in group.columns}
        usual = float(np.mean(self.weights)) if self.weights.size else 1.0
        for group in counts.schema.plain.groups:
            missing = [k for k, column in enumerate(group.columns) if column not in scored]
            if group.family.joint and missing:
                held.append((group, [alone.get(group.columns[0], usual)]))
            elif missing:
                some = group.subset(missing)
                held.append((some, [alone.get(column, usual) for column in some.columns]))
        schema = replace(counts.schema, groups=tuple(group for group, _ in held))
        weights = np.empty(len(schema.block_names))
        for p, (_, own) in enumerate(held):
            weights[schema.block_slots[p]] = own
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


@dataclass(frozen=True)
class Proposal:
    """What tuning suggests from a sample of rows, before all rows are counted.

    schema: what is to be counted. rows, classes: the sample, and the classes that its labels are places of. tuning:
    what was found on the sample; None where nothing was, or where all blocks are to share one weight. note: why.
    """

    schema: Schema
    rows: Rows
    classes: LabelArray
    tuning: Tuning | None = None
    shared_weight: bool = False
    note: str = ""


@one_blas_thread()
def propose(table: Table, labels: Labels, weights: Floats | None, base: Schema, threads: int | None = None) -> Proposal:
    """The groups of columns to count and to score, chosen on these rows, each scored without itself."""
    rows = Rows.of(table, labels.codes, weights, labels.classes.size, most_rows(base, labels.classes.size))
    present, blocks = rows.of_classes_present(), len(base.block_names)
    plain = Proposal(base, rows, labels.classes)
    if present.classes < 2 or rows.total < FEWEST_ROWS:
        few = "one class" if present.classes == 1 else counted(rows.total, "row")
        return replace(plain, note=f"plain Bayes: {few} cannot be tuned on")
    if blocks > MOST_BLOCKS_WEIGHED:
        return replace(plain, shared_weight=True, note=f"one weight for all {blocks} blocks")
    try:
        with progress("tuning", "candidates") as advance:
            tuning = choose(replace(present, advance=advance, threads=threads), base)
    except (BadCell, np.linalg.LinAlgError) as problem:
        return replace(plain, note=f"plain Bayes: tuning met {problem}")
    return replace(plain, schema=with_groups(base, tuning.schema.groups), tuning=tuning)


@one_blas_thread()
def reweigh(proposal: Proposal, counts: Counts) -> Tuning:
    """What was proposed, with weights that the counts of all rows support."""
    rows = proposal.rows.among(proposal.classes, counts)
    if proposal.shared_weight:
        start = replace(Tuning.plain(counts), schema=proposal.schema, note=proposal.note)
        return with_shared_weight(start, rows, counts, learned=True)
    if proposal.tuning is None:
        return replace(Tuning.plain(counts), note=proposal.note)
    if rows.labels.size == counts.rows and proposal.tuning.bias.size == counts.classes.size:
        return proposal.tuning  # the rows it was found on are all there are
    return with_learned_weights(proposal.tuning, counts, rows)


@one_blas_thread()
def relearn_weights(
    tuning: Tuning, counts: Counts, table: Table, labels: Labels, weights: Floats | None, learned: bool
) -> Tuning:
    """The same groups with weights learned anew from these rows."""
    classes = labels.classes.size
    rows = Rows.of(table, labels.codes, weights, classes, most_rows(tuning.schema, classes))
    rows = rows.among(labels.classes, counts)
    if classes < 2 or rows.total < FEWEST_ROWS:
        raise DataError(
            f"{counted(rows.labels.size, 'row')} of {counted(classes, 'class')} are too few to tune on; "
            f"give at least {FEWEST_ROWS}"
        )
    if len(tuning.schema.block_names) > MOST_BLOCKS_WEIGHED:
        return with_shared_weight(tuning, rows, counts.for_schema(tuning.schema), learned)
    return with_learned_weights(tuning, counts, rows, learned)


def with_learned_weights(tuning: Tuning, counts: Counts, rows: Rows, learned: bool = True) -> Tuning:
    """The same groups with the weights that these rows support; they are among those counted if they were `learned`."""
    scored = counts.for_schema(tuning.schema)
    model = estimate(scored, rows.log_prior)
    left_out = rows.rows_to_leave_out(learned)
    evidence = model.left_out_evidence_of(scored, rows.table, left_out)
    found = replace(tuning, rows=rows.labels.size, stale=False, note="")
    return with_weights(found, evidence, rows, counts.class_weight, left_out)


def with_weights(tuning: Tuning, evidence: Floats, rows: Rows, class_weight: Floats, left_out: LeftOut) -> Tuning:
    """With the weights that this evidence supports, and how good they make it."""
    weights, bias = learn_weights(evidence, rows, tuning.weight_groups)
    accuracy, log_loss = left_out_figures(evidence, rows, weights, bias, class_weight, left_out.removed)
    return replace(tuning, weights=weights, bias=bias, accuracy=accuracy, log_loss=log_loss)


def choose(rows: Rows, base: Schema) -> Tuning:
    """The groups to use and their weights, found on rows that are counted here for this purpose alone."""
    scored, choices = choose_families(rows, base)
    texts, more = choose_texts(rows, base)
    scored += texts
    choices += more
    scored += choose_joint_gaussians(rows, base)
    scored += choose_pairs(rows, base, scored, {choice.column: choice.loss for choice in choices})
    schema = replace(base, groups=tuple(group.group for group in scored))
    tuning = Tuning(schema, np.ones(0), np.zeros(0), rows.labels.size, choices=choices)
    evidence = np.empty((rows.labels.size, len(schema.block_names), rows.classes))
    for slot, group in zip(schema.block_slots, scored, strict=True):
        evidence[:, slot] = group.evidence
    class_weight = np.bincount(rows.labels, rows.weights, rows.classes).astype(np.float64)
    return with_weights(tuning, evidence, rows, class_weight, rows.left_out).without_zero_weights()


def most_rows(schema: Schema, classes: int) -> int:
    """How many rows are tuned on."""
    blocks = min(len(schema.block_names), MOST_BLOCKS_WEIGHED) + MOST_PAIRS
    return max(min(MOST_ROWS_TUNED, MOST_EVIDENCE_TUNED // max(1, blocks * classes)), FEWEST_ROWS)


def with_groups(base: Schema, scored: Iterable[ColumnGroup]) -> Schema:
    """The base and, beside it, all that has to be counted for the groups in use."""
    schema = base
    for group in scored:
        if schema.group_counting(group) is None:
            schema = replace(schema, groups=(*schema.groups, replace(group, auxiliary=True)))
    return schema


def with_shared_weight(tuning: Tuning, rows: Rows, counts: Counts, learned: bool) -> Tuning:
    """With one weight for all blocks, and the bias of each class: for models of too many blocks to weigh each."""
    schema, left_out = counts.schema, rows.rows_to_leave_out(learned)
    evidence = np.zeros((rows.labels.size, 1, rows.classes))
    for p, (group, statistic) in enumerate(zip(schema.groups, counts.statistics, strict=True)):
        cells = group.family.read(rows.table, group.columns)
        group.family.score_left_out(statistic, cells, left_out, schema.shared_slots[p], evidence)
    shared, bias = learn_weights(evidence, rows, np.zeros(1, dtype=np.int64))
    figures = left_out_figures(evidence, rows, shared, bias, counts.class_weight, left_out.removed)
    weights = np.full(len(schema.block_names), shared[0])
    return replace(
        tuning, weights=weights, bias=bias, rows=rows.labels.size, stale=False, accuracy=figures[0], log_loss=figures[1]
    )
