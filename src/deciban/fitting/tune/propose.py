"""Choose groups of columns on a sample of left-out rows, then learn the weights that all counts support."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from deciban.errors import BadCell, DataError
from deciban.families.base.contract import LeftOutRows
from deciban.fitting.tune.candidates import (
    ScoredGroup,
    choose_additions,
    choose_families,
    choose_joint_gaussians,
    choose_texts,
)
from deciban.fitting.tune.hyperparameters import CANDIDATES, SAMPLING, WEIGHTS
from deciban.fitting.tune.rows import Copies, Rows
from deciban.fitting.tune.weights import center, learn_weights, measure_left_out
from deciban.model.counts import Counts
from deciban.model.model import estimate
from deciban.model.tuning import Choice, Tuning
from deciban.schema.schema import ColumnGroup, Schema
from deciban.tables.labels import LabelArray, Labels
from deciban.tables.table import Table
from deciban.util.arrays import Floats
from deciban.util.budget import NO_LIMIT, Budget
from deciban.util.parallel import one_blas_thread
from deciban.util.progress import progress
from deciban.util.text_tables import count_noun


@dataclass(frozen=True)
class Proposal:
    """Result of tuning on a sample, before all rows are counted.

    schema: the columns and groups to count. rows, classes: the sample, and the classes of its labels. tuning: the
    result on the sample; None without a result, or if all blocks share one weight. note: the reason. evidence: of the
    blocks of the tuning, row by block by class, each row scored by the others.
    """

    schema: Schema
    rows: Rows
    classes: LabelArray
    tuning: Tuning | None = None
    shared_weight: bool = False
    note: str = ""
    evidence: Floats | None = None

    def covers(self, counts: Counts) -> bool:
        """Return True if the sample is the whole table, so that the tuning and the evidence are those of the counts."""
        if self.tuning is None or self.tuning.bias.size != counts.classes.size:
            return False
        return self.rows.labels.size == counts.rows


@one_blas_thread()
def propose(
    table: Table,
    labels: Labels,
    weights: Floats | None,
    base: Schema,
    threads: int | None = None,
    copies: Copies | None = None,
    budget: Budget = NO_LIMIT,
) -> Proposal:
    """Choose the groups of columns to count and to score, on rows that are each scored without themselves.

    copies: those of the given rows, if known.
    """
    limit = min(limit_tuning_rows(base, labels.classes.size), max(labels.codes.size, 1))
    if budget.spent:
        return _propose(table, labels, weights, base, threads, copies, max_rows=0)
    return budget.part(SAMPLING.budget_share).run_with_affordable_rows(
        lambda max_rows: _propose(table, labels, weights, base, threads, copies, max_rows), limit, SAMPLING.first_rows
    )


def _propose(
    table: Table,
    labels: Labels,
    weights: Floats | None,
    base: Schema,
    threads: int | None,
    copies: Copies | None,
    max_rows: int,
) -> Proposal:
    """Choose the groups on at most this many rows."""
    rows = Rows.of(table, labels.codes, weights, labels.classes.size, max_rows, copies)
    rows = replace(rows, found_copies=rows.copies)
    present, blocks = rows.of_classes_present(), len(base.block_names)
    plain = Proposal(base, rows, labels.classes)
    if present.classes == 1:
        return replace(plain, note="plain Bayes: one class is too few for tuning")
    if rows.total < SAMPLING.min_rows:
        verb = "is" if rows.total == 1.0 else "are"
        return replace(plain, note=f"plain Bayes: {count_noun(rows.total, 'row')} {verb} too few for tuning")
    if blocks > WEIGHTS.max_blocks:
        return replace(plain, shared_weight=True, note=f"one weight for all {blocks:,} blocks")
    try:
        with progress("tuning", "candidates") as advance:
            tuning, evidence = choose_groups(replace(present, advance=advance, threads=threads), base)
    except (BadCell, np.linalg.LinAlgError) as problem:
        return replace(plain, note=f"plain Bayes: tuning failed: {problem}")
    return replace(plain, schema=add_groups(base, tuning.schema.groups), tuning=tuning, evidence=evidence)


@one_blas_thread()
def reweigh(proposal: Proposal, counts: Counts) -> Tuning:
    """Return the proposed tuning with the weights that the counts of all rows support."""
    rows = proposal.rows.among(proposal.classes, counts)
    if proposal.shared_weight:
        start = replace(Tuning.plain(counts), schema=proposal.schema, note=proposal.note)
        return learn_shared_weight(start, rows, counts, learned=True)
    if proposal.tuning is None:
        return replace(Tuning.plain(counts), note=proposal.note)
    if proposal.covers(counts):
        return proposal.tuning
    return refit_weights(proposal.tuning, counts, rows)


@one_blas_thread()
def relearn_weights(
    tuning: Tuning,
    counts: Counts,
    table: Table,
    labels: Labels,
    weights: Floats | None,
    learned: bool,
    budget: Budget = NO_LIMIT,
) -> tuple[Tuning, Rows]:
    """Relearn the weights of the same groups from these rows; return the tuning and the rows used."""
    classes = labels.classes.size

    def learn(max_rows: int) -> tuple[Tuning, Rows]:
        rows = Rows.of(table, labels.codes, weights, classes, max_rows).among(labels.classes, counts)
        if classes < 2 or rows.total < SAMPLING.min_rows:
            raise DataError(
                f"{count_noun(rows.labels.size, 'row')} of {count_noun(classes, 'class')} are too few for tuning",
                remedy=f"pass at least {SAMPLING.min_rows} rows of two classes",
            )
        if len(tuning.schema.block_names) > WEIGHTS.max_blocks:
            return learn_shared_weight(tuning, rows, tuning.select(counts), learned), rows
        return refit_weights(tuning, counts, rows, learned), rows

    limit = min(limit_tuning_rows(tuning.schema, classes), max(labels.codes.size, 1))
    return budget.part(SAMPLING.budget_share).run_with_affordable_rows(learn, limit, SAMPLING.first_rows)


def refit_weights(tuning: Tuning, counts: Counts, rows: Rows, learned: bool = True) -> Tuning:
    """Return the tuning with weights learned from these rows; `learned`: they are among those counted."""
    scored = tuning.select(counts)
    model = estimate(scored, rows.log_prior)
    left_out = rows.rows_to_leave_out(learned)
    evidence = model.leave_one_out_evidence(scored, rows.table, left_out)
    found = replace(tuning, rows=rows.labels.size, stale=False, note="")
    return set_weights(found, evidence, rows, counts.class_weight, left_out)


def set_weights(tuning: Tuning, evidence: Floats, rows: Rows, class_weight: Floats, left_out: LeftOutRows) -> Tuning:
    """Return the tuning with weights learned from this evidence, and with its metrics."""
    evidence = center(evidence)
    weights, bias = learn_weights(evidence, rows, tuning.weight_groups)
    accuracy, log_loss = measure_left_out(evidence, rows, weights, bias, class_weight, left_out.removed)
    copies = rows.copies.extra
    return replace(tuning, weights=weights, bias=bias, accuracy=accuracy, log_loss=log_loss, copies=copies)


def choose_groups(rows: Rows, base: Schema) -> tuple[Tuning, Floats]:
    """Return the groups to use and their weights, from rows that are counted here for this, and the evidence."""
    scored, choices = choose_families(rows, base)
    additions = choose_additions(rows, scored)
    texts, more = choose_texts(rows, base)
    scored += texts
    choices += more
    scored += choose_joint_gaussians(rows, base)
    tuning, evidence = weigh_groups(rows, base, [*scored, *additions], choices)
    for addition in reversed(additions):  # words before parts
        fewer = [one for one in additions if one is not addition]
        without, rest = weigh_groups(rows, base, [*scored, *fewer], choices)
        assert without.log_loss is not None and tuning.log_loss is not None, "both are measured"  # noqa: PT018 - for mypy
        least = max(CANDIDATES.min_addition_gain / rows.total, addition.min_share * without.log_loss)
        if without.log_loss - tuning.log_loss <= least:
            tuning, evidence, additions = without, rest, fewer
    tuning, kept = tuning.drop_zero_weights()
    return tuning, evidence if kept.size == evidence.shape[1] else evidence[:, kept]


def weigh_groups(
    rows: Rows, base: Schema, scored: Sequence[ScoredGroup], choices: tuple[Choice, ...]
) -> tuple[Tuning, Floats]:
    """Return the tuning with these groups, their weights and its metrics, and the evidence of its blocks."""
    schema = replace(base, groups=tuple(group.group for group in scored))
    tuning = Tuning(schema, np.ones(0), np.zeros(0), rows.labels.size, choices=choices)
    evidence = np.empty((rows.labels.size, len(schema.block_names), rows.classes))
    for slot, group in zip(schema.block_slots, scored, strict=True):
        evidence[:, slot] = group.evidence
    class_weight = np.bincount(rows.labels, rows.weights, rows.classes).astype(np.float64)
    return set_weights(tuning, evidence, rows, class_weight, rows.left_out), evidence


def limit_tuning_rows(schema: Schema, classes: int) -> int:
    """Return the maximum number of rows to tune on."""
    blocks = min(len(schema.block_names), WEIGHTS.max_blocks)
    return max(min(SAMPLING.max_rows, SAMPLING.max_evidence // max(1, blocks * classes)), SAMPLING.min_rows)


def add_groups(base: Schema, scored: Iterable[ColumnGroup]) -> Schema:
    """Return the base schema with everything that must be counted for the groups in use."""
    schema = base
    for group in scored:
        if schema.group_counting(group) is None:
            schema = replace(schema, groups=(*schema.groups, replace(group, auxiliary=True)))
    return schema


def learn_shared_weight(tuning: Tuning, rows: Rows, counts: Counts, learned: bool) -> Tuning:
    """Return the tuning with one weight for all blocks: for models with too many blocks."""
    schema, left_out = counts.schema, rows.rows_to_leave_out(learned)
    evidence = np.zeros((rows.labels.size, 1, rows.classes))
    for p, (group, statistic) in enumerate(zip(schema.groups, counts.statistics, strict=True)):
        cells = group.family.read(rows.table, group.columns)
        group.family.score_left_out(statistic, cells, left_out, schema.shared_slots[p], evidence)
    evidence = center(evidence)
    shared, bias = learn_weights(evidence, rows, np.zeros(1, dtype=np.int64))
    accuracy, log_loss = measure_left_out(evidence, rows, shared, bias, counts.class_weight, left_out.removed)
    weights = np.full(len(schema.block_names), shared[0])
    return replace(
        tuning, weights=weights, bias=bias, rows=rows.labels.size, stale=False, accuracy=accuracy, log_loss=log_loss
    )
