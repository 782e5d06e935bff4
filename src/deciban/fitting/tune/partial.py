"""Offsets and scales for rows with missing cells, learned on left-out rows and on masked copies of them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from deciban.families import Likelihood
from deciban.families.base.contract import mask_columns, score_block, take_rows
from deciban.fitting.tune.binning import bin_columns
from deciban.fitting.tune.boosting import find_correctable_columns
from deciban.fitting.tune.hyperparameters import CORRECTIONS, PARTIAL_ROWS, WEIGHTS
from deciban.fitting.tune.propose import limit_tuning_rows
from deciban.fitting.tune.rows import Rows, assign_folds
from deciban.fitting.tune.weights import center, compute_metrics, minimize_newton, use_prior_of_others
from deciban.model.corrections import Bins, CorrectedColumn, bins_of
from deciban.model.counts import Counts
from deciban.model.model import Model, log_normalize
from deciban.model.partial_rows import SCALED_SHARES, PartialRows
from deciban.model.tuning import Tuning
from deciban.tables.row_sampling import sample_places
from deciban.tables.table import SparseMatrix, missing_cells
from deciban.util.arrays import Codes, Flags, Floats, Integers
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
    left_out = _LeftOutRows.of(model, tuning.select(counts), rows, learned)
    partial = left_out.with_informative(left_out.offsets())
    partial = replace(partial, scales=left_out.scales(partial))
    return replace(left_out.with_metrics(tuning, partial), partial=partial)


@dataclass(frozen=True)
class _LeftOutRows:
    """Rows, and the evidence of each from a model without it.

    evidence: of each block, row by block by class. weighted: the same, weighted, capped and centered. missing: the
    missing cells, row by column. amounts: how much of each row is in each fold. bins: bins of the corrected columns.
    """

    model: Model
    counts: Counts
    rows: Rows
    learned: bool
    evidence: Floats
    weighted: Floats
    missing: Flags
    amounts: Floats
    bins: Bins | None

    @classmethod
    def of(cls, model: Model, counts: Counts, rows: Rows, learned: bool) -> "_LeftOutRows":
        values = rows.evidence
        if values is None:
            values = model.leave_one_out_evidence(counts, rows.table, rows.rows_to_leave_out(learned))
        capped, _ = model.cap_evidence(values)
        weight = model.weights[:, None]
        weighted = center(np.where(weight > 0.0, weight * capped, 0.0))
        missing = missing_cells(rows.table)
        if missing is None:
            missing = np.zeros((rows.table.rows, model.schema.width), dtype=np.bool_)
        corrections, bins = model.corrections, None
        hashed: Sequence[CorrectedColumn]
        if corrections is not None:
            hashed, bins = corrections.columns[: corrections.hashed], corrections.read_left_out(rows.table)
            own = bins[: corrections.hashed] if bins.ndim == 2 else bins_of(hashed, rows.table)
        else:
            hashed, own = bin_columns(rows, find_correctable_columns(model.schema)[: CORRECTIONS.max_columns])
        amounts = assign_folds(
            hashed, own, rows.table, rows.labels, counts.classes, rows.weights, CORRECTIONS.folds, rows.copies
        )
        return cls(model, counts, rows, learned, values, weighted, missing, amounts, bins)

    def offsets(self) -> PartialRows:
        """Return the offsets of columns.

        Each cancels the mean evidence of its column, and has its share of the rest of the bias.
        """
        model, schema, weights = self.model, self.model.schema, self.rows.weights
        mean, size = np.zeros((schema.width, self.rows.classes)), np.zeros(schema.width)
        known = ~self.missing * weights[:, None]
        known /= np.maximum(known.sum(axis=0), 1e-300)
        for p, (group, slots) in enumerate(zip(schema.groups, schema.block_slots, strict=True)):
            columns = list(group.columns)
            each, parts = self.weighted[:, slots], self._parts(p) if group.family.joint else np.ones(len(columns))
            sizes = np.einsum("nbk->nb", np.abs(each))
            mean[columns] += parts[:, None] * np.einsum("nb,nbk->bk", known[:, columns], each)
            size[columns] += parts * (known[:, columns] * sizes).sum(axis=0)
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
        """Return each column's share of the evidence of a joint block.

        It is measured by the gain when the column becomes known first and when it becomes known last.
        """
        group, likelihood = self.model.schema.groups[p], self.model.likelihoods[p]
        width = len(group.columns)
        few = max(PARTIAL_ROWS.max_shared_cells // width**2, PARTIAL_ROWS.min_shared_rows)
        some = self.rows.some(min(few, PARTIAL_ROWS.max_shared_rows))
        alone = ~np.eye(width, dtype=np.bool_)
        hidden = np.concatenate([alone, ~alone, np.zeros((1, width), dtype=np.bool_)])
        found = score_hidden(likelihood, group.family.read(some.table, group.columns), hidden, self.rows.classes)
        with np.errstate(invalid="ignore"):
            gains = found[:width] + found[-1] - found[width : 2 * width]
            gains -= gains.mean(axis=2, keepdims=True)
        size = np.abs(np.where(np.isfinite(gains), gains, 0.0)).sum(axis=2) @ some.weights
        size = size if size.any() else np.ones(width)
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
        rows, here = self.rows, sample_places(self.rows.labels.size, PARTIAL_ROWS.max_rows)
        drawn = np.random.default_rng(0).random((len(PARTIAL_ROWS.masked_shares), rows.table.width))
        masks = drawn < np.array(PARTIAL_ROWS.masked_shares)[:, None]
        place, fold = np.nonzero(self.amounts[here])  # a row in several folds counts as several rows
        here, weights = here[place], self.amounts[here[place], fold]
        sums = self._weigh_masked(here, masks).reshape(-1, rows.classes)
        missing = (masks[:, None] | self.missing[here]).reshape(-1, rows.table.width)
        known = partial.adjust_for_missing(missing)
        if self.model.corrections is not None and self.bins is not None:
            amounts, unknown = np.eye(self.amounts.shape[1])[fold], self.model.unknown_corrected_cells(known)
            bins, amounts = np.tile(self.bins[..., here], len(masks)), np.tile(amounts, (len(masks), 1))
            self.model.corrections.add_left_out(bins, amounts, sums, unknown)
        sums += known.bias
        share = (~missing @ partial.shares) / partial.min_share
        with np.errstate(invalid="ignore"):  # a row that no class allows has no scale
            sums = np.nan_to_num(sums - sums.max(axis=1, keepdims=True), nan=0.0, neginf=-WEIGHTS.max_log_odds)
        sums = np.maximum(sums, -WEIGHTS.max_log_odds)
        labels, weights = np.tile(rows.labels[here], len(masks)), np.tile(weights, len(masks))
        return learn_scales(sums, share, labels, weights, self.model.log_prior)

    def _weigh_masked(self, here: Integers, masks: Flags) -> Floats:
        """Return the weighted evidence of some rows, scored without them, under each mask: mask by row by class."""
        schema, weighted = self.model.schema, self.weighted[here]
        shown = np.zeros((len(masks), weighted.shape[1]))
        joint = []
        for p, (group, slots) in enumerate(zip(schema.groups, schema.block_slots, strict=True)):
            if group.family.joint:
                joint.append(p)
            else:
                shown[:, slots] = ~masks[:, list(group.columns)]
        sums = np.matmul(shown, weighted.transpose(1, 0, 2).reshape(weighted.shape[1], -1))
        sums = sums.reshape(len(masks), here.size, self.rows.classes)
        table = self.rows.table.take(here) if joint else self.rows.table
        for p in joint:
            group, slot = schema.groups[p], int(schema.block_slots[p][0])
            hidden = np.concatenate([masks[:, list(group.columns)], np.zeros((1, len(group.columns)), dtype=np.bool_)])
            cells = group.family.read(table, group.columns)
            *found, whole = score_hidden(self.model.likelihoods[p], cells, hidden, self.rows.classes)
            with np.errstate(invalid="ignore"):
                too_high = whole - self.evidence[here, slot]  # because the rows were counted
            too_high = np.where(np.isfinite(too_high), too_high, 0.0)
            part = self.model.weights[slot] * (np.stack(found) - (~hidden[:-1]).mean(axis=1)[:, None, None] * too_high)
            with np.errstate(invalid="ignore"):
                part = np.maximum(part - part.max(axis=2, keepdims=True), -self.model.cap)
            sums += center(part)
        return np.asarray(sums)


def score_hidden(likelihood: Likelihood, cells: Any, hidden: Flags, classes: int) -> Floats:
    """Return the evidence of a joint block with some of its columns missing: hidden set by row by class."""
    if isinstance(cells, list):
        return np.stack([score_block(likelihood, mask_columns(cells, each), classes) for each in hidden])
    rows = len(cells)
    every = take_rows(cells, np.tile(np.arange(rows), len(hidden)))
    every = mask_columns(every, np.repeat(hidden, rows, axis=0))
    return score_block(likelihood, every, classes).reshape(len(hidden), rows, classes)


def learn_scales(sums: Floats, known: Floats, labels: Codes, weights: Floats, log_prior: Floats) -> Floats:
    """Return the scales with the highest likelihood of the labels: log joint = log prior + scale * sum.

    known: share of the evidence that is known of each row, relative to rows as complete as the training rows. The scale
    is interpolated between the SCALED_SHARES.
    """
    points = np.eye(len(SCALED_SHARES) + 1)
    hats = np.stack([np.interp(known, (*SCALED_SHARES, 1.0), point) for point in points], axis=1)
    every, share, penalty = np.arange(labels.size), weights / weights.sum(), PARTIAL_ROWS.scale_rows / weights.sum()

    def evaluate(scales: Floats) -> tuple[float, Floats, Floats]:
        joint = (hats @ np.append(scales, 1.0))[:, None] * sums + log_prior
        posterior, normalizer = log_normalize(joint, log_prior)
        mean = np.einsum("nk,nk->n", posterior, sums)
        spread = np.einsum("nk,nk,nk->n", posterior, sums, sums) - mean**2
        value = share @ (normalizer - joint[every, labels]) + 0.5 * penalty * ((scales - 1.0) ** 2).sum()
        slope = hats[:, :-1].T @ (share * (mean - sums[every, labels])) + penalty * (scales - 1.0)
        curvature = hats[:, :-1].T @ ((share * spread)[:, None] * hats[:, :-1]) + penalty * np.eye(scales.size)
        return float(value), slope, curvature

    start = np.ones(len(SCALED_SHARES))
    return minimize_newton(evaluate, start, np.full(start.size, PARTIAL_ROWS.min_scale))
