"""Correction tables, boosted on left-out rows where the sum of the evidence is wrong.

Columns are cut into few bins (`binning.py`). Two series of tables are grown with the same questions: one on top of the
weighted evidence, one on top of the prior alone. Left-out rows then decide how much each series counts. The rows are
split into five folds. Tables are grown five times, each time without one fold, whose rows decide when to stop; the five
are averaged. So every row is scored by tables that have not seen it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from deciban import kernels
from deciban.families.base.contract import LeftOutRows
from deciban.fitting.tune.binning import bin_columns, bins_out_of_fold, measure_associations, place_out_of_fold
from deciban.fitting.tune.hyperparameters import CORRECTIONS, WEIGHTS
from deciban.fitting.tune.propose import limit_tuning_rows
from deciban.fitting.tune.rows import Rows, assign_folds
from deciban.fitting.tune.weights import WeightSearch, center, compute_metrics, maximize, minimize_newton
from deciban.model.corrections import (
    Bins,
    CorrectedColumn,
    Corrections,
    merge_equal_tables,
    round_corrections,
)
from deciban.model.counts import Counts
from deciban.model.model import Model, estimate, raise_to_limit
from deciban.model.tuning import Tuning
from deciban.schema.schema import Schema
from deciban.tables.row_sampling import sample_places
from deciban.tables.table import SparseMatrix
from deciban.util.arrays import Floats, Integers
from deciban.util.parallel import map_in_threads, one_blas_thread
from deciban.util.progress import progress


class Searched(NamedTuple):
    """Input of the search for tables.

    bins: the bin of each cell, column by row. sizes: the number of bins of each column. chosen: for each fold, the
    columns that its tables may use.
    """

    bins: Bins
    sizes: Integers
    chosen: list[Integers]


class Grown(NamedTuple):
    """Tables grown without each fold, with values of both series, and the log posteriors that they lead to.

    values: for each fold, table by cell by series by class. left_out: log posterior of each row by the tables grown
    without it, row by series by class. some: rows whose log posteriors by the tables of each fold are `each`, fold by
    row by series by class. unseen: how much of the spread between folds there is in rows that they have not seen.
    """

    tests: list[Integers]
    values: list[Floats]
    left_out: Floats
    some: Integers
    each: Floats
    unseen: float


@one_blas_thread()
def learn_corrections(tuning: Tuning, counts: Counts, rows: Rows, learned: bool = True) -> Tuning:
    """Return the tuning with corrections, and the scales that these leave to the evidence.

    With too few rows, the tuning is returned as it is. learned: True if the rows are among those counted.
    """
    places = find_correctable_columns(tuning.schema)
    if rows.total < CORRECTIONS.min_rows or isinstance(rows.table, SparseMatrix):
        return tuning
    columns, bins = bin_columns(rows, places[: CORRECTIONS.max_columns])
    if not columns:
        return tuning
    left_out, hashed, copies = rows.rows_to_leave_out(learned), len(columns), rows.copies.extra
    read = rows.labels.size
    amounts = assign_folds(
        columns, bins, rows.table, rows.labels, counts.classes, rows.weights, CORRECTIONS.folds, rows.copies
    )
    place, fold = np.nonzero(amounts)  # a row in several folds counts as several rows
    if not np.array_equal(place, np.arange(rows.labels.size)):
        rows, bins = replace(rows, table=rows.table.take(place), labels=rows.labels[place]), bins[:, place]
        left_out = left_out[place]
    rows = replace(rows, weights=amounts[place, fold])
    if np.unique(fold).size < CORRECTIONS.folds:
        return tuning
    columns, bins, chosen = _choose_columns_by_fold(rows, places, columns, bins, fold)
    prior = make_finite_prior(rows)
    start = score_left_out_rows(tuning, counts, rows, left_out, fold)
    columns = place_out_of_fold(columns, rows, fold, CORRECTIONS.folds)
    bins = bins_out_of_fold(columns, rows.table, fold, bins)
    search = Searched(bins, np.array([column.bins for column in columns]), chosen)
    grown = grow(search, rows, fold, np.stack([start, np.broadcast_to(prior, start.shape)]))
    scale, bias, spread = _learn_scales(grown, rows, prior)
    corrections, mean = _join_series(columns, hashed, search.bins, rows, grown, scale)
    evidence = np.einsum("nbk,b->nk", grown.left_out - prior, scale) + bias
    accuracy, log_loss = compute_metrics(raise_to_limit(evidence, tuning.limit) + prior, rows)
    return replace(
        tuning,
        weights=scale[0] * tuning.weights,
        bias=scale[0] * tuning.bias + bias + mean,
        corrections=corrections,
        cap=max(float(scale[0]), 1e-3) * tuning.cap,
        accuracy=accuracy,
        log_loss=max(log_loss - grown.unseen * spread, 0.0),
        copies=copies,
        correction_rows=0 if corrections is None else read,
        fold_gain=None if corrections is None else max(spread, 0.0),
    )


def _learn_scales(grown: Grown, rows: Rows, prior: Floats) -> tuple[Floats, Floats, float]:
    """Return the scale of each series, the bias of each class, and how much the mean of all folds' tables is better.

    A row is left out of the tables of one fold only, but new rows are scored by the mean of all. The log-loss of a
    geometric mean of posteriors is the mean of their log-losses less their spread, which does not depend on the label.
    So it can be measured on any row, and is counted when the scales are chosen. There, rows that most folds' tables
    have seen would count too much of it: `grown.unseen` is the share to count.
    """
    own = center(grown.left_out - prior)
    start, bias = maximize(own, rows, np.array([1.0, 0.0]), CORRECTIONS.scale_rows)
    labels, weights = rows.labels[grown.some], rows.weights[grown.some]
    share, penalty, target = weights / weights.sum(), CORRECTIONS.scale_rows / rows.total, np.array([1.0, 0.0])
    each = grown.each - prior
    parts = np.concatenate([own[None, grown.some], each.mean(axis=0, keepdims=True), each])
    factor = np.concatenate([[1.0, grown.unseen], np.full(len(each), -grown.unseen / len(each))])[:, None] * share
    one, other = np.moveaxis(parts[..., 1:] - parts[..., :1], 2, 0)  # classes relative to the first
    shift = (prior + bias)[1:] - (prior + bias)[0]
    labeled = np.flatnonzero(labels)
    observed = np.array([share[labeled] @ x[0, labeled, labels[labeled] - 1] for x in (one, other)])

    def totals(scale: Floats) -> tuple[Floats, Floats]:
        """Return the joint probability of each class relative to the highest, and the logarithm of their total."""
        joint = scale[0] * one + scale[1] * other + shift
        top = np.maximum(joint.max(axis=2), 0.0)
        relative = np.exp(joint - top[:, :, None])
        total = np.exp(-top) + relative.sum(axis=2)
        return relative / total[:, :, None], top + np.log(total)

    def evaluate(scale: Floats) -> tuple[float, Floats, Floats]:
        posterior, log_total = totals(scale)
        first, second = posterior * one, posterior * other
        means = np.stack([first.sum(axis=2), second.sum(axis=2)])
        moments = [(x * y).sum(axis=2) for x, y in ((first, one), (first, other), (second, other))]
        cross = [float((factor * moment).sum()) for moment in moments]
        weighted = (means * factor).reshape(2, -1)
        curvature = np.array([cross[:2], cross[1:]]) - weighted @ means.reshape(2, -1).T + penalty * np.eye(2)
        away = scale - target
        value = float((factor * log_total).sum() - scale @ observed + 0.5 * penalty * away @ away)
        return value, weighted.sum(axis=1) - observed + penalty * away, curvature

    scale = minimize_newton(evaluate, start, np.zeros(2))
    log_total = totals(scale)[1]
    return scale, bias, float(share @ (log_total[2:].mean(axis=0) - log_total[1]))


def bound_evidence(tuning: Tuning, counts: Counts) -> Tuning:
    """Return the tuning with a cap on the evidence of a block and a limit of the total, as the rows can support.

    With monotone columns and more than two classes the total has no limit, which would change ratios of other classes.
    """
    if not tuning.rows:
        return tuning
    supported = float(np.log1p(counts.class_weight.sum()))
    few = 0 < len(tuning.schema.block_names) <= WEIGHTS.max_blocks
    limit = supported + float(np.log(WEIGHTS.limit_factor))
    monotone = counts.classes.size > 2 and any(group.family.monotone is not None for group in tuning.schema.groups)
    return replace(tuning, cap=supported if few else np.inf, limit=np.inf if monotone else limit)


def may_correct(tuning: Tuning, classes: int) -> bool:
    """Return True if there are tuned columns besides texts, and not too many classes."""
    return bool(tuning.rows and 2 <= classes <= CORRECTIONS.max_classes and find_correctable_columns(tuning.schema))


def limit_correction_rows(columns: int, classes: int) -> int:
    """Return the maximum number of rows that corrections are learned from."""
    columns = _count_table_columns(min(columns, CORRECTIONS.max_columns))
    numbers = CORRECTIONS.folds * (9 + classes)  # held for each row
    work = CORRECTIONS.min_tables * _measure_row_work(columns, classes)
    return int(min(CORRECTIONS.max_work / work, CORRECTIONS.max_numbers / numbers))


def _measure_row_work(columns: int, classes: int) -> float:
    """Return the approximate nanoseconds per row for a table of each fold that uses this number of columns."""
    by_class = 4.0 if classes == 2 else 5.3 * classes
    return CORRECTIONS.folds * (5.0 + 1.1 * columns + by_class)


def find_correctable_columns(schema: Schema) -> list[int]:
    """Return the columns that may be corrected: all but texts, word counts and monotone columns."""
    return sorted({column for group in schema.groups if group.is_adjustable for column in group.columns})


def _choose_columns_by_fold(
    rows: Rows, places: list[int], columns: list[CorrectedColumn], bins: Bins, fold: Integers
) -> tuple[list[CorrectedColumn], Bins, list[Integers]]:
    """Return the columns to correct by, their bins, and for each fold the columns that its tables may use.

    These are all columns, or of very many those most strongly associated with the class in the other folds.
    """
    if len(places) <= CORRECTIONS.max_columns:
        return columns, bins, [np.arange(len(columns))] * CORRECTIONS.folds
    best = []
    for f in range(CORRECTIONS.folds):
        found = measure_associations(rows, places, np.where(fold == f, 0.0, rows.weights))
        best.append([places[k] for k in np.argsort(-found.round(12), kind="stable")[: CORRECTIONS.max_columns]])
    known = {column.column for column in columns}
    more, their_bins = bin_columns(rows, sorted(set().union(*best) - known))
    columns, bins = columns + more, np.concatenate([bins, their_bins])
    where = {column.column: k for k, column in enumerate(columns)}
    chosen = [np.array(sorted(where[place] for place in some if place in where), dtype=np.int64) for some in best]
    return columns, bins, [some if some.size else np.arange(len(columns)) for some in chosen]


def _count_table_columns(columns: int) -> int:
    return max(min(columns, CORRECTIONS.min_table_columns), int(np.ceil(CORRECTIONS.column_share * columns)))


def score_left_out_rows(tuning: Tuning, counts: Counts, rows: Rows, left_out: LeftOutRows, fold: Integers) -> Floats:
    """Return the log joint of each row by its left-out evidence, with weights learned without its fold."""
    scored = tuning.select(counts)
    model = estimate(scored, rows.log_prior)
    few = sample_places(rows.labels.size, limit_tuning_rows(tuning.schema, rows.classes))
    known = _score_rows(model, scored, rows, left_out, few)
    every_weight, every_bias = map(np.stack, zip(*_learn_weights_by_fold(tuning, known, rows, few, fold), strict=True))
    unused, prior = bool((every_weight == 0.0).any()), make_finite_prior(rows)
    out = np.empty((rows.labels.size, rows.classes))

    def score(some: Integers) -> None:
        evidence = known if some is few else _score_rows(model, scored, rows, left_out, some)
        weight, bias = (part[fold[some]] for part in (every_weight, every_bias))
        with np.errstate(invalid="ignore"):
            weighted = evidence * weight[:, :, None]
        if unused:  # also where the evidence is infinite
            weighted[weight == 0.0] = 0.0
        out[some] = np.einsum("nbk->nk", model.cap_weighted_evidence(weighted, tuning.cap)) + bias + prior

    step = max(1, CORRECTIONS.max_evidence // (max(len(tuning.schema.block_names), 1) * rows.classes))
    rest = np.delete(np.arange(rows.labels.size), few)
    pieces = [few, *(rest[first : first + step] for first in range(0, rest.size, step))]
    with progress("leaving out", "rows", rows.labels.size) as advance:
        for some, _ in zip(pieces, map_in_threads(score, pieces, rows.threads), strict=True):
            advance(some.size)
    top = out.max(axis=1, keepdims=True)
    return np.asarray(np.where(np.isfinite(top), out - top, prior))


def make_finite_prior(rows: Rows) -> Floats:
    """Return the log prior of each class, finite also for a class without rows."""
    return np.maximum(rows.log_prior, CORRECTIONS.min_log_prior)


def _score_rows(model: Model, counts: Counts, rows: Rows, left_out: LeftOutRows, some: Integers) -> Floats:
    """Return the left-out evidence of some rows, row by block by class."""
    if rows.evidence is not None and len(rows.evidence) == rows.labels.size:  # else rows were split
        return rows.evidence if some.size == rows.labels.size else rows.evidence[some]
    table = rows.table if some.size == rows.labels.size else rows.table.take(some)
    return model.leave_one_out_evidence(counts, table, left_out[some])


def _learn_weights_by_fold(
    tuning: Tuning, evidence: Floats, rows: Rows, few: Integers, fold: Integers
) -> list[tuple[Floats, Floats]]:
    """Return, for each fold, the weights and the bias learned from all other folds.

    evidence: of the rows `few`.
    """
    if len(tuning.schema.block_names) > WEIGHTS.max_blocks:
        return [(tuning.weights, tuning.bias)] * CORRECTIONS.folds
    part = replace(rows, labels=rows.labels[few], weights=rows.weights[few])
    search = WeightSearch.of(center(evidence), part, tuning.weight_groups)
    start = tuning.weights, tuning.bias
    if rows.evidence is None:  # they were learned from other rows
        start = search.learn(part.weights, start)
    return search.learn_without_each(fold[few], CORRECTIONS.folds, start)


def grow(search: Searched, rows: Rows, fold: Integers, start: Floats) -> Grown:
    """Grow tables without each fold, as long as the loss of left-out rows falls.

    start: the scores that the two series begin with, series by row by class.
    """
    columns = _count_table_columns(min(map(len, search.chosen)))
    work = rows.labels.size * _measure_row_work(columns, rows.classes)
    most = int(np.clip(CORRECTIONS.max_work / work, CORRECTIONS.min_tables, CORRECTIONS.max_tables))
    rate = min(CORRECTIONS.learning_rate * CORRECTIONS.max_tables / most, CORRECTIONS.max_learning_rate)
    order = np.argsort(fold, kind="stable")  # the rows of a fold are neighbors
    bins = np.ascontiguousarray(search.bins[:, order])
    ends = np.searchsorted(fold[order], np.arange(CORRECTIONS.folds + 1))
    begin = _start_posterior(start[:, order])
    posterior = np.repeat(begin[None], CORRECTIONS.folds, axis=0)
    members = [
        _Member.of(bins, search, rows, order, posterior[f], (f, int(ends[f]), int(ends[f + 1])), columns)
        for f in range(CORRECTIONS.folds)
    ]
    repeats, weight = members[0].rows.repeats, members[0].rows.weight
    total, step = float(repeats @ weight), 1 + rows.labels.size // CORRECTIONS.max_spread_rows
    losses, kept, unseen = [sum(member.held_loss for member in members) / total], posterior.copy(), 1.0
    with progress("learning corrections", "tables", most) as advance:
        while (len(losses) - 1) * CORRECTIONS.tables_per_round < most and _is_falling(np.array(losses)):
            if rows.budget.spent:
                break
            held = sum(map_in_threads(partial(_Member.grow, rate=rate), members, rows.threads)) / total
            spread, share = kernels.table_growth.measure_spread(
                posterior, begin, ends, repeats, weight, step, np.empty(posterior.shape[2])
            )
            loss = held - min(share, 1.0) * spread
            if loss < min(losses):
                kept[:], unseen = posterior, min(share, 1.0)
            losses.append(loss)
            advance(CORRECTIONS.tables_per_round)
    best = CORRECTIONS.tables_per_round * int(np.argmin(losses))
    left_out = np.empty((rows.labels.size, 2, rows.classes))
    some = sample_places(rows.labels.size, CORRECTIONS.max_scale_rows)
    each = np.empty((CORRECTIONS.folds, some.size, 2, rows.classes))
    place = np.argsort(order)[some]
    for f in range(CORRECTIONS.folds):
        own = slice(ends[f], ends[f + 1])
        left_out[order[own]] = _log_posterior(kept[f][:, :, own])
        each[f] = _log_posterior(kept[f][:, :, place])
    tests, values = [member.first_tests(best) for member in members], [member.first_values(best) for member in members]
    return Grown(tests, values, left_out, some, each, unseen)


def _log_posterior(posterior: npt.NDArray[np.float32]) -> Floats:
    """Return log posteriors, row by series by class, up to a constant per row; of two classes, the odds are given."""
    logs = np.log(posterior.astype(np.float64)).transpose(2, 0, 1)
    return np.concatenate([-0.5 * logs, 0.5 * logs], axis=2) if logs.shape[2] == 1 else logs


def _is_falling(losses: Floats) -> bool:
    """Return True if the last rounds reduced the loss enough, or if they are too few to decide."""
    patience = CORRECTIONS.patience // CORRECTIONS.tables_per_round
    return losses.size <= patience or losses.min() < (1.0 - CORRECTIONS.min_improvement) * losses[:-patience].min()


@dataclass
class _Member:
    """Tables that are grown without one fold."""

    rows: Any  # GrowthRows and GrowthScratch of kernels.table_growth, which is imported on first use
    scratch: Any
    sizes: Integers
    chosen: Integers
    columns: int
    classes: int
    ridge: float
    draw: np.random.Generator
    tests: list[Integers]
    values: list[Floats]

    @classmethod
    def of(
        cls,
        bins: Bins,
        searched: Searched,
        rows: Rows,
        order: Integers,
        posterior: npt.NDArray[np.float32],
        held: tuple[int, int, int],
        columns: int,
    ) -> "_Member":
        """Return a member; held: its fold, and the places of the fold's first and last row in the order."""
        size, classes, most = rows.labels.size, rows.classes, int(searched.sizes.max())
        weights = rows.weights[order]
        unit, repeats = _find_repeats(weights)
        labels = rows.labels[order].astype(np.int32)
        part = kernels.table_growth.GrowthRows(
            codes=bins,
            labels=labels,
            repeats=repeats,
            weight=(weights / unit / repeats).astype(np.float32),
            posterior=posterior,
            held=np.array(held[1:]),
        )
        outputs, cells = (1 if classes == 2 else 2), 1 << CORRECTIONS.depth
        scratch = kernels.table_growth.GrowthScratch(
            slopes=np.zeros((outputs + 1, size), dtype=np.float32),
            packed=np.empty((2, size), dtype=np.int64),
            order=np.empty((2, size), dtype=np.uint32),
            moved=np.empty((2, outputs, size), dtype=np.int64),
            sums=np.empty((cells >> 1, columns, outputs, most), dtype=np.int64),
            room=np.empty((5, outputs, most), dtype=np.int64),
            run=np.empty(most, dtype=np.int64),
            below=np.empty(most),
            gains=np.empty((columns, most)),
            first=np.empty(cells + 1, dtype=np.int64),
            cell=np.empty(size, dtype=np.uint8),
            totals=np.zeros((2, cells), dtype=np.int64),
        )
        draw = np.random.default_rng(held[0])
        ridge = CORRECTIONS.ridge / unit
        return cls(part, scratch, searched.sizes, searched.chosen[held[0]], columns, classes, ridge, draw, [], [])

    def grow(self, rate: float) -> float:
        """Grow the tables of one round; return the loss of the held-out rows."""
        growth, ridge, two = kernels.table_growth, self.ridge, self.classes == 2
        tables, units = CORRECTIONS.tables_per_round, np.empty((2, 2))
        tests = np.full((tables, CORRECTIONS.depth, 2), -1, dtype=np.int64)
        values = np.zeros((tables, 1 << CORRECTIONS.depth, 2, self.rows.posterior.shape[1]))
        for t in range(tables):
            columns = np.sort(self.chosen[self.draw.permutation(self.chosen.size)[: self.columns]])
            lead = t % 2
            if two:
                many = growth.pack_two_classes(self.rows, lead, self.scratch, units)
            else:  # random mixtures of the classes, whose squares have the same sum on average
                mix = self.draw.normal(scale=0.5**0.5, size=(self.classes, 2)).astype(np.float32)
                many = growth.pack_mixtures(self.rows, lead, mix, self.scratch, units)
            unit = units[lead if two else 0]
            depth = growth.search_table(self.rows.codes, self.sizes, columns, many, unit, ridge, self.scratch, tests[t])
            step = growth.step_two_classes if two else growth.step_classes
            step(self.rows, tests[t], depth, ridge, rate, self.scratch, units, values[t])
        self.tests.append(tests)
        self.values.append(values)
        return self.held_loss

    @property
    def held_loss(self) -> float:
        """Loss of the held-out rows."""
        return float(kernels.table_growth.measure_held_loss(self.rows))

    def first_tests(self, tables: int) -> Integers:
        """Return the tests of the first tables."""
        return np.concatenate([*self.tests, np.zeros((0, CORRECTIONS.depth, 2), dtype=np.int64)])[:tables]

    def first_values(self, tables: int) -> Floats:
        """Return the values of the first tables by class; of two classes, they are opposite."""
        empty = np.zeros((0, 1 << CORRECTIONS.depth, 2, self.rows.posterior.shape[1]))
        values = np.concatenate([*self.values, empty])[:tables]
        return np.concatenate([-0.5 * values, 0.5 * values], axis=3) if self.classes == 2 else values


def _find_repeats(weights: Floats) -> tuple[float, npt.NDArray[np.int32]]:
    """Return the unit of weights, and how often each row counts, so that a row of weight 2 is the row twice.

    That holds exactly for whole weights, whose unit is their greatest common divisor. Other weights count once, in
    units of the largest.
    """
    if (weights == np.rint(weights)).all() and weights.max() < 1e15:
        divisor = int(np.gcd.reduce(weights.astype(np.int64)))
        if weights.sum() / divisor <= kernels.table_growth.MAX_REPEATS:
            return float(divisor), (weights / divisor).astype(np.int32)
    return float(weights.max()), np.ones(weights.size, dtype=np.int32)


def _start_posterior(start: Floats) -> npt.NDArray[np.float32]:
    """Return the posterior of each series, class and row; of two classes, only the odds of the second."""
    low, high = kernels.table_growth.MIN_ODDS, kernels.table_growth.MAX_ODDS
    if start.shape[2] == 2:
        found = np.exp(np.clip(start[:, None, :, 1] - start[:, None, :, 0], np.log(low), np.log(high)))
    else:
        found = np.exp(start - start.max(axis=2, keepdims=True)).transpose(0, 2, 1)
        found = np.maximum(found / found.sum(axis=1, keepdims=True), low)
    return np.ascontiguousarray(found, dtype=np.float32)


def _join_series(
    columns: Sequence[CorrectedColumn], hashed: int, bins: Bins, rows: Rows, grown: Grown, scale: Floats
) -> tuple[Corrections | None, Floats]:
    """Join both series into one value per cell, centered; return the tables and the mean that was subtracted."""
    tests = np.concatenate(grown.tests)
    if not len(tests) or not scale.any():
        return None, np.zeros(rows.classes)
    values = np.concatenate(grown.values).transpose(0, 1, 3, 2) @ (scale / CORRECTIONS.folds)
    fold = np.repeat(np.arange(CORRECTIONS.folds), [len(some) for some in grown.tests])
    behind = np.zeros(values.shape[:2])
    kernels.correction_tables.sum_weights(bins, tests, rows.weights, np.empty(bins.shape[1], dtype=np.uint8), behind)
    mean = np.einsum("tc,tck->tk", behind, values) / rows.total
    corrections = Corrections(tuple(columns), tests, values - mean[:, None, :], behind, fold, CORRECTIONS.folds, hashed)
    return round_corrections(merge_equal_tables(corrections)), mean.sum(axis=0)
