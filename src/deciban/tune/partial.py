"""Offsets and scales for rows with missing cells, learned on rows that are left out and on masked copies of them."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy

from deciban.arrays import Flags, Floats, Integers
from deciban.counting import Batch, count
from deciban.counts import Counts
from deciban.folds_by_content import fold_amounts, left_out_corrections
from deciban.model import Model
from deciban.parallel import one_blas_thread
from deciban.partial_rows import SCALED_SHARES, PartialRows
from deciban.tables.table import Frame, Matrix, SparseMatrix, Table, missing_cells
from deciban.tune.propose import most_rows
from deciban.tune.rows import Rows
from deciban.tune.tuning import Tuning
from deciban.tune.weights import MOST_BLOCKS_WEIGHED, centred, figures_of

# Rows of which the evidence of joint blocks is shared out among their columns.
ROWS_SHARED_OUT = 200

# The parts that rows are cut into where masked copies are scored by what the other rows say; the rows copied at most,
# and the shares of cells that are masked in turn.
FOLDS, MOST_COPIES, MASKED = 5, 2000, (0.15, 0.3, 0.45, 0.6, 0.75, 0.9)

# How strongly the scales are drawn to 1: as so many rows would.
SCALE_ROWS = 10.0

# What is left of a weight below this is rounding.
NO_WEIGHT = 1e-6

# No sum is scaled down below this, so that what is impossible stays so.
LEAST_SCALE = 1e-3

# Missing cells that a column needs to be evidence, and the share by which the log-loss has to fall by them.
FEWEST_MISSING, LEAST_GAIN = 20, 0.002

# The share of the rows, those of which least is known, that are not looked at when it is found how much has to be known.
RARE = 0.01


@one_blas_thread()
def learn_partial_rows(tuning: Tuning, counts: Counts, rows: Rows, learned: bool = True) -> Tuning:
    """The tuning with offsets and scales for rows with missing cells. `learned`: whether the rows are among those
    counted."""
    blocks = len(tuning.schema.block_names)
    if not tuning.rows or not 0 < blocks <= MOST_BLOCKS_WEIGHED or isinstance(rows.table, SparseMatrix):
        return tuning
    scored, rows = counts.for_schema(tuning.schema), rows.some(most_rows(tuning.schema, rows.classes))
    model = replace(tuning, partial=None).model(counts, np.maximum(rows.log_prior, -50.0))
    if model.partial is None:
        return tuning
    found = _offsets(model, scored, rows, learned)
    found = _with_informative(replace(model, partial=found), scored, rows, learned)
    scales = _scales(replace(model, partial=found), scored, rows, learned)
    return replace(tuning, partial=replace(found, scales=scales))


def _offsets(model: Model, counts: Counts, rows: Rows, learned: bool) -> PartialRows:
    """Each column's offset: what cancels the mean of its evidence, and its share of the rest of the bias."""
    values = model.left_out_evidence_of(counts, rows.table, rows.rows_to_leave_out(learned))
    values, _ = model.capped_evidence(values)
    weighted = centred(np.where(model.weights[:, None] > 0.0, model.weights[:, None] * values, 0.0))
    missing = missing_cells(rows.table)
    known = np.ones((rows.table.rows, model.schema.width), dtype=np.bool_) if missing is None else ~missing
    mean, size = np.zeros((model.schema.width, rows.classes)), np.zeros(model.schema.width)
    for p, (group, slots) in enumerate(zip(model.schema.groups, model.schema.block_slots, strict=True)):
        if group.family.joint and len(group.columns) > 1:
            each = _shared_out(model, p, rows, weighted[:, slots[0]])
        else:
            each = weighted[:, slots]
        for k, column in enumerate(group.columns):
            weights = rows.weights * known[:, column]
            total = max(weights.sum(), 1e-300)
            mean[column] += weights @ each[:, k] / total
            size[column] += weights @ np.abs(each[:, k]).sum(axis=1) / total
    if model.corrections is not None:
        size[[one.column for one in model.corrections.columns]] += model.corrections.importance
    if not size.any():
        size[sorted({column for group in model.schema.groups for column in group.columns})] = 1.0
    shares = size / size.sum()
    rest = model.bias + mean.sum(axis=0)
    offsets = shares[:, None] * (rest - rest.mean()) - mean
    offsets += shares[:, None] * (model.bias - offsets.sum(axis=0))  # to the last digit, and what all classes share
    ones = np.ones(len(SCALED_SHARES))
    return PartialRows(offsets, shares, ones, np.zeros(0, dtype=np.int64), 1.0)


def _shared_out(model: Model, p: int, rows: Rows, weighted: Floats) -> Floats:
    """What each column has of the evidence of a joint block, row by column by class: by its mean part in some rows."""
    group = model.schema.groups[p]
    some = rows.some(ROWS_SHARED_OUT)
    shares = model.likelihoods[p].shares(group.family.read(some.table, group.columns))
    assert shares is not None, "a joint block is shared out"
    values = shares.values - shares.values.mean(axis=2, keepdims=True)
    part = np.abs(np.where(np.isfinite(values), values, 0.0)).sum(axis=(0, 2))
    part = part / part.sum() if part.any() else np.full(part.size, 1.0 / part.size)
    return weighted[:, None, :] * part[None, :, None]


def _left_out_joint(model: Model, counts: Counts, rows: Rows, learned: bool) -> Floats:
    """The log joint of each row by what is counted, and corrected, without it."""
    left_out, known = rows.rows_to_leave_out(learned), model.known(rows.table)
    values, _ = model.capped_evidence(model.left_out_evidence_of(counts, rows.table, left_out))
    joint = np.einsum("nbk,b->nk", centred(values), model.weights)
    if model.corrections is not None:
        unknown = model.unknown_corrected(known)
        joint += left_out_corrections(
            model.corrections, rows.table, rows.labels, counts.classes, rows.weights, unknown
        )
    if known is None:
        return joint + model.bias + model.log_prior
    return (joint + known.bias) * known.scale[:, None] + model.log_prior


def _with_informative(model: Model, counts: Counts, rows: Rows, learned: bool) -> PartialRows:
    """With the columns whose missing cells are evidence: there are enough of them, and left-out rows gain by it."""
    partial, missing = model.partial, missing_cells(rows.table)
    assert partial is not None, "it was learned before"
    if missing is None or model.corrections is None:
        return partial
    share = np.sort((~missing * partial.shares).sum(axis=1))
    partial = replace(partial, least=min(float(share[int(RARE * share.size)]), 1.0))
    corrected = {one.column for one in model.corrections.columns}
    enough = rows.weights @ missing >= FEWEST_MISSING
    tried = [column for column in np.flatnonzero(enough).tolist() if column in corrected]

    def loss(informative: list[int]) -> float:
        chosen = replace(partial, informative=np.array(sorted(informative), dtype=np.int64))
        return figures_of(_left_out_joint(replace(model, partial=chosen), counts, rows, learned), rows)[1]

    found = list(tried)
    best = loss(found) if found else 0.0
    for column in tried:
        fewer = [one for one in found if one != column]
        without = loss(fewer)
        if without <= best * (1.0 + LEAST_GAIN):
            found, best = fewer, without
    return replace(partial, informative=np.array(sorted(found), dtype=np.int64))


def masked_copy(table: Table, masked: Flags) -> Table:
    """A table with more missing cells."""
    if isinstance(table, Matrix):
        return Matrix(np.where(masked, np.nan, np.asarray(table.array, dtype=np.float64)))
    assert isinstance(table, Frame), "cells of a sparse matrix cannot be missing"
    columns = []
    for place, column in enumerate(table.table.columns):
        array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        columns.append(pc.if_else(pa.array(masked[:, place]), pa.scalar(None, array.type), array))
    return Frame(pa.table(columns, names=table.table.column_names), table.named)


def _scales(model: Model, counts: Counts, rows: Rows, learned: bool) -> Floats:
    """The scale of the evidence at each of the SCALED_SHARES: what masked copies of rows support, each scored by what
    is counted, and corrected, without its fold."""
    sums, shares, labels, weights = masked_copies(model, counts, rows, learned)
    place = np.clip(np.asarray(shares) / SCALED_SHARES[1], 0.0, len(SCALED_SHARES))
    knots = np.arange(len(SCALED_SHARES) + 1)
    hats = np.maximum(1.0 - np.abs(place[:, None] - knots), 0.0)
    return fitted_scales(sums, hats, labels, weights, model.log_prior)


def fitted_scales(sums: Floats, hats: Floats, labels: Integers, weights: Floats, log_prior: Floats) -> Floats:
    """The scales of all knots but the last with the highest likelihood of the labels, drawn to 1."""
    every, share = np.arange(labels.size), weights / weights.sum()

    def loss(scales: Floats) -> tuple[float, Floats]:
        joint = (hats @ np.append(scales, 1.0))[:, None] * sums + log_prior
        top = joint.max(axis=1, keepdims=True)
        chance = np.exp(joint - top)
        total = chance.sum(axis=1, keepdims=True)
        chance /= total
        slope = (chance * sums).sum(axis=1) - sums[every, labels]
        value = share @ ((top + np.log(total))[:, 0] - joint[every, labels])
        away = scales - 1.0
        penalty = SCALE_ROWS / labels.size
        return float(value + 0.5 * penalty * away @ away), hats[:, :-1].T @ (share * slope) + penalty * away

    start = np.ones(hats.shape[1] - 1)
    solved = scipy.optimize.minimize(loss, start, jac=True, method="L-BFGS-B", bounds=[(LEAST_SCALE, None)] * start.size)
    return np.asarray(solved.x)


def masked_copies(model: Model, counts: Counts, rows: Rows, learned: bool) -> tuple[Floats, Floats, Integers, Floats]:
    """Copies of rows with cells masked at random: the sum of the evidence, bias and corrections of each, by what is
    counted and corrected without its fold; the share of the evidence that is known; the class; the weight."""
    partial = model.partial
    assert partial is not None, "offsets were learned before"
    size = rows.labels.size
    fold = np.arange(size) % FOLDS
    if model.corrections is not None:
        hashed = model.corrections.columns[: model.corrections.hashed]
        amounts = fold_amounts(hashed, rows.table, rows.labels, counts.classes, rows.weights, model.corrections.folds)
        fold = amounts.argmax(axis=1)
    rng = np.random.default_rng(0)
    found = []
    for f in np.unique(fold).tolist():
        here = np.flatnonzero(fold == f)
        copied = here[np.arange(max(1, round(MOST_COPIES * here.size / size))) % here.size]
        table = rows.table.take(copied)
        level = np.asarray(MASKED)[np.arange(copied.size) // max(here.size, 1) % len(MASKED)] if copied.size > here.size * len(MASKED) else rng.choice(MASKED, copied.size)
        masked = rng.random((copied.size, rows.table.width)) < level[:, None]
        other = _without(model, counts, rows, here if learned else here[:0], f)
        table = masked_copy(table, masked)
        missing = missing_cells(table)
        known = np.ones(copied.size) if missing is None else (~missing * partial.shares).sum(axis=1)
        sums = other.log_joint(table) - other.log_prior
        found.append((sums - sums.max(axis=1, keepdims=True), known, rows.labels[copied], rows.weights[copied]))
    joined = [np.concatenate([part[k] for part in found]) for k in range(4)]
    joined[0] = np.maximum(np.nan_to_num(joined[0], nan=0.0, neginf=-700.0), -700.0)
    return joined[0], joined[1], joined[2], joined[3]


def _without(model: Model, counts: Counts, rows: Rows, here: Integers, fold: int) -> Model:
    """The model without some rows, corrected by the tables that were learned without a fold."""
    corrections = model.corrections
    if corrections is not None:
        corrections = corrections.without(fold)
        corrections = replace(corrections, values=corrections.values * corrections.folds)
    likelihoods = model.likelihoods
    if here.size:
        batch = Batch(rows.table.take(here), counts.classes, rows.labels[here], rows.weights[here], 0)
        parts = zip(counts.schema.groups, counts.statistics, count(batch, counts.schema).statistics, strict=True)
        likelihoods = tuple(group.family.estimate(all_rows.remove(some, NO_WEIGHT)) for group, all_rows, some in parts)
    return replace(model, likelihoods=likelihoods, corrections=corrections)
