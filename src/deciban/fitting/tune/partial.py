"""Offsets and scales for rows with missing cells, learned on left-out rows and on masked copies of them."""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy

from deciban.fitting.tune.binning import bin_columns
from deciban.fitting.tune.boosting import find_correctable_columns
from deciban.fitting.tune.hyperparameters import CORRECTIONS, PARTIAL_ROWS, WEIGHTS
from deciban.fitting.tune.propose import limit_tuning_rows
from deciban.fitting.tune.rows import Rows, assign_folds
from deciban.fitting.tune.weights import center, compute_metrics, use_prior_of_others
from deciban.model.batches import Batch, count
from deciban.model.corrections import Bins
from deciban.model.counts import Counts
from deciban.model.model import Model, log_normalize
from deciban.model.partial_rows import SCALED_SHARES, PartialRows
from deciban.model.tuning import Tuning
from deciban.tables.row_sampling import sample_places
from deciban.tables.table import Frame, Matrix, SparseMatrix, Table, missing_cells
from deciban.util.arrays import Flags, Floats, Integers
from deciban.util.parallel import one_blas_thread


@one_blas_thread()
def learn_partial_rows(tuning: Tuning, counts: Counts, rows: Rows, learned: bool = True) -> Tuning:
    """Return the tuning with offsets and scales for rows with missing cells.

    learned: True if the rows are among those counted.
    """
    few = 0 < len(tuning.schema.block_names) <= WEIGHTS.max_blocks
    if not tuning.rows or not few or isinstance(rows.table, SparseMatrix):
        return tuning
    rows = rows.some(limit_tuning_rows(tuning.schema, rows.classes))
    model = replace(tuning, partial=None).model(counts, np.maximum(rows.log_prior, CORRECTIONS.min_log_prior))
    if model.partial is None:
        return tuning
    left_out = _LeftOutRows.of(model, counts.select_schema(tuning.schema), rows, learned)
    partial = left_out.with_informative(left_out.offsets())
    partial = replace(partial, scales=left_out.scales(partial))
    return replace(left_out.with_metrics(tuning, partial), partial=partial)


@dataclass(frozen=True)
class _LeftOutRows:
    """Rows, and the evidence of each from a model without it.

    weighted: the evidence of each block, weighted, capped and centered, row by block by class. missing: the missing
    cells, row by column. amounts: how much of each row is in each fold. bins: bins of the corrected columns.
    """

    model: Model
    counts: Counts
    rows: Rows
    learned: bool
    weighted: Floats
    missing: Flags
    amounts: Floats
    bins: Bins | None

    @classmethod
    def of(cls, model: Model, counts: Counts, rows: Rows, learned: bool) -> "_LeftOutRows":
        values = model.leave_one_out_evidence(counts, rows.table, rows.rows_to_leave_out(learned))
        values, _ = model.cap_evidence(values)
        weight = model.weights[:, None]
        weighted = center(np.where(weight > 0.0, weight * values, 0.0))
        missing = missing_cells(rows.table)
        if missing is None:
            missing = np.zeros((rows.table.rows, model.schema.width), dtype=np.bool_)
        corrections = model.corrections
        if corrections is not None:
            hashed, bins = corrections.columns[: corrections.hashed], corrections.read_left_out(rows.table)
        else:
            hashed, bins = (
                tuple(bin_columns(rows, find_correctable_columns(model.schema)[: CORRECTIONS.max_columns])),
                None,
            )
        amounts = assign_folds(hashed, rows.table, rows.labels, counts.classes, rows.weights, CORRECTIONS.folds)
        return cls(model, counts, rows, learned, weighted, missing, amounts, bins)

    def offsets(self) -> PartialRows:
        """Return the offsets of columns.

        Each cancels the mean evidence of its column, and has its share of the rest of the bias.
        """
        model, schema, weights = self.model, self.model.schema, self.rows.weights
        mean, size = np.zeros((schema.width, self.rows.classes)), np.zeros(schema.width)
        for p, (group, slots) in enumerate(zip(schema.groups, schema.block_slots, strict=True)):
            parts = self._parts(p) if group.family.joint else np.ones(len(group.columns))
            for k, column in enumerate(group.columns):
                known = weights * ~self.missing[:, column]
                known /= max(known.sum(), 1e-300)
                each = parts[k] * self.weighted[:, slots[min(k, slots.size - 1)]]
                mean[column] += known @ each
                size[column] += known @ np.abs(each).sum(axis=1)
        if model.corrections is not None:
            size[[one.column for one in model.corrections.columns]] += model.corrections.importance
        columns = sorted({column for group in schema.groups for column in group.columns})
        even = PartialRows.even(model.bias, columns, schema.width)
        shares = size / size.sum() if size.any() else even.shares
        offsets = shares[:, None] * (model.bias + mean.sum(axis=0)) - mean
        return replace(even, offsets=offsets, shares=shares, min_share=self._least_known(shares))

    def _least_known(self, shares: Floats) -> float:
        """Return the share of the evidence that all but the least complete training rows have."""
        if not self.missing.any():
            return 1.0
        share = (~self.missing * shares).sum(axis=1)
        order = np.argsort(share, kind="stable")
        rare = np.searchsorted(np.cumsum(self.rows.weights[order]), PARTIAL_ROWS.rare_rows, side="right")
        least = (
            share[order[min(int(rare), order.size - 1)]] - PARTIAL_ROWS.min_weight
        )  # sums of shares have rounding errors
        return float(np.clip(least, PARTIAL_ROWS.min_share, 1.0))

    def _parts(self, p: int) -> Floats:
        """Return each column's share of the evidence of a joint block, by the size of its Shapley values."""
        group, some = self.model.schema.groups[p], self.rows.some(PARTIAL_ROWS.max_shared_rows)
        size = np.ones(len(group.columns))
        if size.size > 1:
            shares = self.model.likelihoods[p].shapley_values(group.family.read(some.table, group.columns))
            assert shares is not None, "a joint block is shared out"
            with np.errstate(invalid="ignore"):
                values = shares.values - shares.values.mean(axis=2, keepdims=True)
            found = some.weights @ np.abs(np.where(np.isfinite(values), values, 0.0)).sum(axis=2)
            size = found if found.any() else size
        return np.asarray(size / size.sum())

    def with_informative(self, partial: PartialRows) -> PartialRows:
        """Return the columns whose missing cells are evidence.

        These have enough missing cells, and left-out rows gain by it.
        """
        corrections, missing = self.model.corrections, self.missing
        if corrections is None or not missing.any():
            return partial
        enough = np.flatnonzero(self.rows.weights @ missing >= PARTIAL_ROWS.min_missing)
        kept = np.intersect1d(enough, [one.column for one in corrections.columns]).astype(np.int64)
        losses = self._losses(replace(partial, informative=kept), np.arange(len(missing)))
        for column in kept.tolist():
            here, fewer = np.flatnonzero(missing[:, column]), kept[kept != column]
            without = self._losses(replace(partial, informative=fewer), here)
            gains, weights = without - losses[here], self.rows.weights[here]
            if weights @ gains <= PARTIAL_ROWS.min_gain * np.sqrt(weights @ gains**2) + PARTIAL_ROWS.min_weight:
                kept, losses[here] = fewer, without
        return replace(partial, informative=kept)

    def _losses(self, partial: PartialRows, here: Integers) -> Floats:
        """Return the log-loss of some rows, scored and corrected without them."""
        joint = self._log_joint(partial, here)
        log_posterior = log_normalize(joint, self.model.log_prior, logarithm=True)[0]
        return -np.asarray(log_posterior[np.arange(here.size), self.rows.labels[here]])

    def _log_joint(self, partial: PartialRows, here: Integers) -> Floats:
        """Return the log joint of some rows, scored and corrected without them."""
        known, joint = partial.adjust_for_missing(self.missing[here]), self.weighted[here].sum(axis=1)
        if self.model.corrections is not None and self.bins is not None:
            unknown = self.model.unknown_corrected_cells(known)
            self.model.corrections.add_left_out(self.bins[..., here], self.amounts[here], joint, unknown)
        return np.asarray((joint + known.bias) * known.scale[:, None] + self.model.log_prior)

    def with_metrics(self, tuning: Tuning, partial: PartialRows) -> Tuning:
        """Return the tuning with the accuracy and log-loss that include rows with missing cells."""
        if not self.missing.any() or tuning.accuracy is None or tuning.log_loss is None:
            return tuning
        every, rows = np.arange(self.rows.labels.size), self.rows
        joint = self._log_joint(partial, every)
        if tuning.corrections is None:
            own, removed = self.counts.class_weight[rows.labels], rows.rows_to_leave_out(self.learned).removed
            accuracy, log_loss = compute_metrics(use_prior_of_others(joint, rows, own, removed), rows)
        else:  # the weights were cross-fitted there: only the change is measured here
            before = replace(partial, informative=np.arange(self.model.schema.width), min_share=0.0)
            old, new = (compute_metrics(one, rows) for one in (self._log_joint(before, every), joint))
            accuracy, log_loss = tuning.accuracy + new[0] - old[0], tuning.log_loss + new[1] - old[1]
        return replace(tuning, accuracy=float(np.clip(accuracy, 0.0, 1.0)), log_loss=max(log_loss, 0.0))

    def scales(self, partial: PartialRows) -> Floats:
        """Return the scale at each of the SCALED_SHARES, learned on masked copies of the rows."""
        rows, found = self.rows, []
        drawn = np.random.default_rng(0).random((len(PARTIAL_ROWS.masked_shares), rows.table.width))
        masks = drawn < np.array(PARTIAL_ROWS.masked_shares)[:, None]
        copied = np.zeros(rows.labels.size, dtype=np.bool_)
        copied[sample_places(rows.labels.size, PARTIAL_ROWS.max_rows)] = True
        for fold in np.flatnonzero((self.amounts[copied] > 0.0).any(axis=0)).tolist():
            model = replace(self._without(fold), partial=partial)
            here = np.flatnonzero(copied & (self.amounts[:, fold] > 0.0))
            table = rows.table.take(here)
            for mask in masks:
                masked = np.broadcast_to(mask, (here.size, mask.size))
                sums = model.log_joint(mask_cells(table, masked)) - model.log_prior
                known = (~(masked | self.missing[here]) * partial.shares).sum(axis=1)
                found.append((sums, known, rows.labels[here], self.amounts[here, fold]))
        sums, known, labels, weights = (np.concatenate([part[k] for part in found]) for k in range(4))
        with np.errstate(invalid="ignore"):  # a row that no class allows has no scale
            sums = np.nan_to_num(sums - sums.max(axis=1, keepdims=True), nan=0.0, neginf=-WEIGHTS.max_log_odds)
        sums, known = np.maximum(sums, -WEIGHTS.max_log_odds), known / partial.min_share
        return learn_scales(sums, known, labels, weights, self.model.log_prior)

    def _without(self, fold: int) -> Model:
        """Return the model without the rows of a fold."""
        model, counts, rows, corrections = self.model, self.counts, self.rows, self.model.corrections
        if corrections is not None:
            corrections = corrections.select_fold(fold)
            corrections = replace(corrections, values=corrections.folds * corrections.values)
        likelihoods = model.likelihoods
        here = np.flatnonzero(self.amounts[:, fold])
        if self.learned:
            batch = Batch(rows.table.take(here), counts.classes, rows.labels[here], self.amounts[here, fold], 0)
            parts = zip(counts.schema.groups, counts.statistics, count(batch, counts.schema).statistics, strict=True)
            likelihoods = tuple(
                group.family.estimate(every.remove(some, PARTIAL_ROWS.min_weight)) for group, every, some in parts
            )
        return replace(model, likelihoods=likelihoods, corrections=corrections)


def mask_cells(table: Table, masked: Flags) -> Table:
    """Return the table with these cells missing, row by column."""
    if isinstance(table, Matrix):
        return Matrix(np.where(masked, np.nan, np.asarray(table.array, dtype=np.float64)))
    assert isinstance(table, Frame), "no cell of a sparse matrix is missing"
    columns = []
    for place, column in enumerate(table.table.columns):
        none = pa.scalar(None, column.type)
        columns.append(pc.if_else(pa.array(masked[:, place]), none, column) if masked[:, place].any() else column)
    return Frame(pa.table(columns, names=table.table.column_names), table.named)


def learn_scales(sums: Floats, known: Floats, labels: Integers, weights: Floats, log_prior: Floats) -> Floats:
    """Return the scales with the highest likelihood of the labels: log joint = log prior + scale * sum.

    known: share of the evidence that is known of each row, relative to rows as complete as the training rows. The scale
    is interpolated between the SCALED_SHARES.
    """
    points = np.eye(len(SCALED_SHARES) + 1)
    hats = np.stack([np.interp(known, (*SCALED_SHARES, 1.0), point) for point in points], axis=1)
    every, share, penalty = np.arange(labels.size), weights / weights.sum(), PARTIAL_ROWS.scale_rows / weights.sum()

    def loss(scales: Floats) -> tuple[float, Floats]:
        joint = (hats @ np.append(scales, 1.0))[:, None] * sums + log_prior
        posterior, normalizer = log_normalize(joint, log_prior)
        slope = (posterior * sums).sum(axis=1) - sums[every, labels]
        value = share @ (normalizer - joint[every, labels]) + 0.5 * penalty * ((scales - 1.0) ** 2).sum()
        return float(value), hats[:, :-1].T @ (share * slope) + penalty * (scales - 1.0)

    start = np.ones(len(SCALED_SHARES))
    bounds = [(PARTIAL_ROWS.min_scale, None)] * start.size
    solved = scipy.optimize.minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds)
    found = np.asarray(solved.x, dtype=np.float64)
    for _ in range(WEIGHTS.newton_steps):  # so that the optimum does not depend on the path to it
        value, slope = loss(found)
        joint = (hats @ np.append(found, 1.0))[:, None] * sums + log_prior
        posterior, _ = log_normalize(joint, log_prior)
        spread = (posterior * sums**2).sum(axis=1) - (posterior * sums).sum(axis=1) ** 2
        curvature = hats[:, :-1].T @ ((share * spread)[:, None] * hats[:, :-1]) + penalty * np.eye(found.size)
        moved = np.maximum(found - np.linalg.solve(curvature, slope), PARTIAL_ROWS.min_scale)
        found = moved if loss(moved)[0] <= value + 1e-14 else found
    return found
