"""Correction tables, boosted on left-out rows where the sum of the evidence is wrong.

Columns are cut into few bins (`binning.py`). Two series of tables are
grown: one on top of the weighted evidence, one on top of the prior alone. Left-out rows then decide how much each
series counts. The rows are split into five folds. Each series is grown five times, each time without one fold, whose
rows decide when to stop; the five are averaged. So every row is scored by tables that have not seen it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from deciban import kernels
from deciban.families.base.contract import LeftOutRows
from deciban.fitting.tune.binning import bin_columns, measure_associations
from deciban.fitting.tune.hyperparameters import CORRECTIONS, WEIGHTS
from deciban.fitting.tune.propose import limit_tuning_rows
from deciban.fitting.tune.rows import Rows, assign_folds
from deciban.fitting.tune.weights import WeightSearch, center, compute_metrics, maximize
from deciban.model.corrections import Bins, CorrectedColumn, Corrections, bins_of, cells_of, sums_of_values
from deciban.model.counts import Counts
from deciban.model.model import Model, estimate
from deciban.model.tuning import Tuning
from deciban.schema.schema import Schema
from deciban.tables.row_sampling import sample_places
from deciban.tables.table import SparseMatrix
from deciban.util.arrays import Flags, Floats, Integers, sum_at
from deciban.util.parallel import map_in_threads, one_blas_thread


class Searched(NamedTuple):
    """Input of the search for tables.

    bins: the bin of each cell, column by row. sizes: the number of bins of each column. chosen: for each fold, the
    columns that its tables may use.
    """

    bins: Bins
    sizes: Integers
    chosen: list[Integers]


class Series(NamedTuple):
    """Tables grown without each fold, and the correction of each row by the tables grown without it."""

    tests: list[Integers]
    values: list[Floats]
    left_out: Floats


@one_blas_thread()
def learn_corrections(tuning: Tuning, counts: Counts, rows: Rows, learned: bool = True) -> Tuning:
    """Return the tuning with corrections, and the scales that these leave to the evidence.

    With too few rows, the tuning is returned as it is. learned: True if the rows are among those counted.
    """
    places = find_correctable_columns(tuning.schema)
    if rows.total < CORRECTIONS.min_rows or isinstance(rows.table, SparseMatrix):
        return tuning
    if not (columns := bin_columns(rows, places[: CORRECTIONS.max_columns])):
        return tuning
    left_out, hashed, copies = rows.rows_to_leave_out(learned), len(columns), rows.copies.extra
    amounts = assign_folds(
        columns, rows.table, rows.labels, counts.classes, rows.weights, CORRECTIONS.folds, rows.copies
    )
    place, fold = np.nonzero(amounts)  # a row in several folds counts as several rows
    if not np.array_equal(place, np.arange(rows.labels.size)):
        rows = replace(rows, table=rows.table.take(place), labels=rows.labels[place])
        left_out = left_out[place]
    rows = replace(rows, weights=amounts[place, fold])
    if np.unique(fold).size < CORRECTIONS.folds:
        return tuning
    columns, chosen = _choose_columns_by_fold(rows, places, columns, fold)
    prior = make_finite_prior(rows)
    start = score_left_out_rows(tuning, counts, rows, left_out, fold)
    search = Searched(bins_of(columns, rows.table), np.array([column.bins for column in columns]), chosen)
    first = grow(search, rows, fold, start, seed=0)
    second = grow(search, rows, fold, np.broadcast_to(prior, start.shape), seed=1)
    scores = np.stack([start - prior + first.left_out, second.left_out], axis=1)
    scale, bias = maximize(center(scores), rows, np.array([1.0, 0.0]), CORRECTIONS.scale_rows)
    corrections, mean = _join_series(columns, hashed, search.bins, rows, (first, second), scale)
    accuracy, log_loss = compute_metrics(np.einsum("nbk,b->nk", scores, scale) + prior + bias, rows)
    return replace(
        tuning,
        weights=scale[0] * tuning.weights,
        bias=scale[0] * tuning.bias + bias + mean,
        corrections=corrections,
        cap=max(float(scale[0]), 1e-3) * tuning.cap,
        accuracy=accuracy,
        log_loss=log_loss,
        copies=copies,
    )


def add_cap(tuning: Tuning, counts: Counts) -> Tuning:
    """Return the tuning with a cap on the evidence of one block: no more than the rows behind it can support."""
    few = 0 < len(tuning.schema.block_names) <= WEIGHTS.max_blocks
    return replace(tuning, cap=float(np.log1p(counts.class_weight.sum()))) if tuning.rows and few else tuning


def may_correct(tuning: Tuning, classes: int) -> bool:
    """Return True if there are tuned columns besides texts, and not too many classes."""
    return bool(tuning.rows and 2 <= classes <= CORRECTIONS.max_classes and find_correctable_columns(tuning.schema))


def limit_correction_rows(columns: int, classes: int) -> int:
    """Return the maximum number of rows that corrections are learned from."""
    columns = min(columns, CORRECTIONS.max_columns)
    numbers = CORRECTIONS.folds * (2 * classes + 2 * count_outputs(classes) + 6)  # held for each row
    work = CORRECTIONS.min_tables * _measure_row_work(_count_table_columns(columns), classes)
    return int(min(CORRECTIONS.max_work / work, CORRECTIONS.max_numbers / numbers))


def _measure_row_work(columns: int, classes: int) -> float:
    """Return the cells read per row for a table of each fold; further slopes cost half of the first."""
    return CORRECTIONS.folds * columns * (1.0 + count_outputs(classes)) / 2.0


def find_correctable_columns(schema: Schema) -> list[int]:
    """Return the columns that may be corrected: all but texts and word counts."""
    groups = (group for group in schema.groups if not group.family.is_text and not group.family.accepts_new_columns)
    return sorted({column for group in groups for column in group.columns})


def _choose_columns_by_fold(
    rows: Rows, places: list[int], columns: list[CorrectedColumn], fold: Integers
) -> tuple[list[CorrectedColumn], list[Integers]]:
    """Return the columns to correct by, and for each fold those that its tables may use.

    These are all columns, or of very many those most strongly associated with the class in the other folds.
    """
    if len(places) <= CORRECTIONS.max_columns:
        return columns, [np.arange(len(columns))] * CORRECTIONS.folds
    best = []
    for f in range(CORRECTIONS.folds):
        found = measure_associations(rows, places, np.where(fold == f, 0.0, rows.weights))
        best.append([places[k] for k in np.argsort(-found.round(12), kind="stable")[: CORRECTIONS.max_columns]])
    known = {column.column for column in columns}
    columns = columns + bin_columns(rows, sorted(set().union(*best) - known))
    where = {column.column: k for k, column in enumerate(columns)}
    chosen = [np.array(sorted(where[place] for place in some if place in where), dtype=np.int64) for some in best]
    return columns, [some if some.size else np.arange(len(columns)) for some in chosen]


def _count_table_columns(columns: int) -> int:
    return max(min(columns, CORRECTIONS.min_table_columns), int(np.ceil(CORRECTIONS.column_share * columns)))


def score_left_out_rows(tuning: Tuning, counts: Counts, rows: Rows, left_out: LeftOutRows, fold: Integers) -> Floats:
    """Return the log joint of each row by its left-out evidence, with weights learned without its fold."""
    scored = counts.select_schema(tuning.schema)
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
    every = np.arange(rows.labels.size)
    pieces = [few] if few.size == every.size else [every[first : first + step] for first in range(0, every.size, step)]
    for _ in map_in_threads(score, pieces, rows.threads):
        pass
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

    def without(left_out: int) -> tuple[Floats, Floats]:
        weights = np.where(fold[few] == left_out, 0.0, part.weights)
        return search.learn(weights, (tuning.weights, tuning.bias))

    return list(map_in_threads(without, range(CORRECTIONS.folds), rows.threads))


def grow(search: Searched, rows: Rows, fold: Integers, start: Floats, seed: int) -> Series:
    """Grow a series of tables on top of the scores `start`, as long as the loss of left-out rows falls."""
    columns = _count_table_columns(min(map(len, search.chosen)))
    work = rows.labels.size * _measure_row_work(columns, rows.classes)
    most = int(np.clip(CORRECTIONS.max_work / work, CORRECTIONS.min_tables, CORRECTIONS.max_tables))
    rate = min(CORRECTIONS.learning_rate * CORRECTIONS.max_tables / most, CORRECTIONS.max_learning_rate)
    members = [
        _Member.of(search, f, rows, fold == f, start, columns, CORRECTIONS.folds * seed + f)
        for f in range(CORRECTIONS.folds)
    ]
    losses = np.zeros(0)
    while losses.size < most and _is_falling(losses):
        for _ in map_in_threads(partial(_Member.grow, rate=rate), members, rows.threads):
            pass
        losses = np.sum([member.losses for member in members], axis=0)
    best = int(losses.argmin())
    left_out = np.zeros(start.shape)
    tests, values = [], []
    for f, member in enumerate(members):
        tests.append(np.concatenate(member.tests)[:best])
        values.append(np.concatenate(member.values)[:best])
        here = np.flatnonzero(fold == f)
        left_out[here] = sums_of_values(search.bins[:, here], tests[-1], values[-1])
    return Series(tests, values, left_out)


def _is_falling(losses: Floats) -> bool:
    """Return True if the last tables reduced the loss enough, or if they are too few to decide."""
    return (
        losses.size <= CORRECTIONS.patience
        or losses.min() < (1.0 - CORRECTIONS.min_improvement) * losses[: -CORRECTIONS.patience].min()
    )


@dataclass
class _Member:
    """A series that is grown without one fold."""

    rows: Any
    search: Any
    sizes: Integers
    chosen: Integers
    columns: int
    depth: int
    draw: np.random.Generator
    tests: list[Integers]
    values: list[Floats]
    losses: Floats

    @classmethod
    def of(
        cls, searched: Searched, fold: int, rows: Rows, held: Flags, start: Floats, columns: int, seed: int
    ) -> "_Member":
        size, classes, most = rows.labels.size, rows.classes, int(searched.sizes.max())
        slopes = count_outputs(classes) + 1
        room = columns * most * slopes
        depth = max(1, min(CORRECTIONS.depth, 1 + int(np.log2(max(CORRECTIONS.max_sums / room, 1.0)))))
        cells = 1 << depth
        search = kernels.correction_tables.TableSearch(
            slopes=np.empty((size, slopes)),
            posterior=np.empty((size, classes)),
            cell=np.empty(size, dtype=np.int32),
            searched=np.empty(size, dtype=np.int32),
            some=np.empty(size, dtype=np.int32),
            listed=np.empty((size, slopes)),
            place=np.empty(size, dtype=np.int32),
            sums=np.empty((columns, max(cells >> 1, 1) * most * slopes)),
            half=np.empty(max(cells >> 2, 1) * most * slopes),
            below=np.empty((slopes, most)),
            gains=np.empty(most),
            smaller=np.empty(cells, dtype=np.int64),
            curvature=np.empty((cells, classes)),
        )
        learned, judged = np.where(held, 0.0, rows.weights), np.where(held, rows.weights, 0.0)
        labels = rows.labels.astype(np.int64)
        scores = np.array(start, dtype=np.float64, order="C")
        part = kernels.correction_tables.CorrectedRows(searched.bins, labels, learned, judged, scores)
        draw = np.random.default_rng(seed)
        return cls(part, search, searched.sizes, searched.chosen[fold], columns, depth, draw, [], [], np.zeros(0))

    def grow(self, rate: float) -> None:
        """Grow the tables of one round."""
        drawn = [self.draw.permutation(self.chosen.size)[: self.columns] for _ in range(CORRECTIONS.tables_per_round)]
        columns = self.chosen[np.sort(np.stack(drawn), axis=1)].astype(np.int64)
        grown = kernels.correction_tables.GrownTables(
            tests=np.full((CORRECTIONS.tables_per_round, self.depth, 2), -1, dtype=np.int64),
            values=np.zeros((CORRECTIONS.tables_per_round, 1 << self.depth, self.search.posterior.shape[1])),
            losses=np.empty(CORRECTIONS.tables_per_round),
        )
        mix = self._mixtures()
        kernels.correction_tables.learn_corrections(
            self.rows, self.sizes, columns, mix, CORRECTIONS.ridge, rate, self.search, grown
        )
        self.tests.append(grown.tests)
        self.values.append(grown.values)
        self.losses = np.concatenate([self.losses, grown.losses])

    def _mixtures(self) -> Floats:
        """Return the targets of the next tables, table by class by output.

        These are the classes themselves, or of many classes random mixtures, whose squares have the same sum on
        average.
        """
        classes = self.rows.scores.shape[1]
        outputs = count_outputs(classes)
        if outputs >= classes:
            return np.tile(np.eye(classes), (CORRECTIONS.tables_per_round, 1, 1))
        return self.draw.normal(scale=outputs**-0.5, size=(CORRECTIONS.tables_per_round, classes, outputs))


def count_outputs(classes: int) -> int:
    """Return the number of slopes per row that a table explains."""
    return 1 if classes == 2 else min(classes, CORRECTIONS.max_outputs)


def _join_series(
    columns: Sequence[CorrectedColumn], hashed: int, bins: Bins, rows: Rows, series: Sequence[Series], scale: Floats
) -> tuple[Corrections | None, Floats]:
    """Join all tables into one value, centered; return it and the mean that was subtracted."""
    parts = [
        (tests, amount / CORRECTIONS.folds * values, np.full(len(tests), fold))
        for one, amount in zip(series, scale.tolist(), strict=True)
        for fold, (tests, values) in enumerate(zip(one.tests, one.values, strict=True))
        if amount > 0.0
    ]
    if not sum(len(tests) for tests, _, _ in parts):
        return None, np.zeros(rows.classes)
    tests, values, fold = (np.concatenate([part[k] for part in parts]) for k in range(3))
    behind = np.stack([sum_at(cell, rows.weights, values.shape[1]) for cell in cells_of(bins, tests)])
    mean = np.einsum("tc,tck->tk", behind, values) / rows.total
    corrections = Corrections(tuple(columns), tests, values - mean[:, None, :], behind, fold, CORRECTIONS.folds, hashed)
    return corrections, mean.sum(axis=0)
