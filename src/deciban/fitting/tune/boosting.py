"""Corrections learned on left-out rows: where the sum of the evidence is wrong, and by how much.

Columns are cut into few bins: numbers at quantiles, categories in the order of their evidence. Two series of tables are
grown, one on top of the weighted evidence, one on the prior alone; left-out rows then say how much each counts. The
rows are cut into five folds. Each series is grown five times, each time without one fold, whose rows tell when to stop;
the five are averaged. So every row has scores that it had no part in.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from deciban import kernels
from deciban.families.base.contract import LeftOutRows
from deciban.fitting.tune.propose import limit_tuning_rows
from deciban.fitting.tune.rows import Rows, assign_folds, is_number
from deciban.fitting.tune.weights import MAX_BLOCKS_WEIGHED, center, compute_metrics, learn_weights, maximize
from deciban.model.corrections import Bins, CorrectedColumn, Corrections, bins_of, cells_of, sums_of_values
from deciban.model.counts import Counts
from deciban.model.model import Model, estimate
from deciban.model.tuning import Tuning
from deciban.schema.schema import Schema
from deciban.statistics.levels import encode_distinct
from deciban.tables.row_sampling import sample_places
from deciban.tables.table import SparseMatrix, Table
from deciban.util.arrays import Codes, Flags, Floats, Integers, sum_at
from deciban.util.parallel import map_in_threads, one_blas_thread

# The most levels of a category that are told apart where few are wanted, and in corrections.
FEW_LEVELS, MAX_LEVELS = 16, 60

# Rows that a level of a category needs to be told apart: the order of rarer ones would be that of their labels.
ROWS_OF_A_LEVEL = 10.0

# Rows of the overall shares that are added to those of each level when levels are put in order.
SHARES_ADDED = 5.0

# Columns whose cells are looked at together.
COLUMNS_AT_A_TIME = 256

# The least and the most bins of a number, and rows for each.
MIN_BINS, MAX_BINS_CUT, ROWS_OF_A_BIN = 16, 126, 64.0


def cut_into_levels(rows: Rows, column: int, bins: int) -> tuple[Codes, tuple[float, ...] | None, int] | None:
    """A column as a few levels: the code of each cell (-1: missing), where it is cut (None: nowhere), their number."""
    table = rows.table
    if is_number(table, column):
        cells = np.asarray(table.numbers([column])[:, 0], dtype=np.float64)
        cuts = find_quantile_cuts(cells, rows.weights, bins, bins + 2)
        if not cuts.size:
            return None
        codes = np.where(np.isnan(cells), -1, np.searchsorted(cuts, cells, side="right")).astype(np.int32)
        return codes, tuple(cuts.tolist()), cuts.size + 1
    codes, levels = _encode_levels(table, column)
    return (codes, None, len(levels)) if 2 <= len(levels) <= FEW_LEVELS else None


def find_quantile_cuts(cells: Floats, weights: Floats, bins: int, most_values: int) -> Floats:
    """Where numbers are cut into about so many bins of equal weight; between all values where these are few."""
    here = ~np.isnan(cells)
    values = np.unique(cells[here])
    if values.size <= most_values:
        low, high = values[:-1], values[1:]
        middle = low + (high - low) / 2.0
        return np.unique(np.where(middle > low, middle, high))  # of neighbors among doubles there is no middle
    share = np.arange(1, bins) / bins
    return np.unique(np.quantile(cells[here], share, method="inverted_cdf", weights=weights[here]))


def measure_associations(rows: Rows, columns: Sequence[int], weights: Floats) -> Floats:
    """How much each column depends on the class, by rows of these weights: of a number the share of its variance that
    lies between the classes, of a category the mean square contingency for each level."""
    found = np.zeros(len(columns))
    numeric = np.array([is_number(rows.table, column) for column in columns], dtype=np.bool_)
    member = np.eye(rows.classes)[rows.labels] * weights[:, None]
    for places in np.array_split(np.flatnonzero(numeric), max(1, numeric.sum() // COLUMNS_AT_A_TIME)):
        cells = np.asarray(rows.table.numbers([columns[k] for k in places]), dtype=np.float64)
        here = ~np.isnan(cells)
        cells = np.where(here, cells, 0.0)
        total = np.maximum(weights @ here, 1e-300)
        cells = np.where(here, cells - weights @ cells / total, 0.0)
        sums, sizes = member.T @ cells, np.maximum(member.T @ here, 1e-300)
        found[places] = (sums**2 / sizes).sum(axis=0) / np.maximum(weights @ cells**2, 1e-300)
    for k in np.flatnonzero(~numeric).tolist():
        codes, levels = _encode_levels(rows.table, columns[k])
        counts = _count_levels(codes, rows, weights, len(levels))
        expected = np.outer(counts.sum(axis=1), counts.sum(axis=0))
        squares = np.divide(counts**2, expected, out=np.zeros_like(counts), where=expected > 0.0)
        found[k] = max(squares.sum() - 1.0, 0.0) / max(len(levels) - 1, 1)
    return found


def _count_levels(codes: Codes, rows: Rows, weights: Floats, levels: int) -> Floats:
    """The weight of each level and class."""
    here = codes >= 0
    found = sum_at(codes[here] * rows.classes + rows.labels[here], weights[here], levels * rows.classes)
    return found.reshape(levels, rows.classes)


def bin_columns(rows: Rows, columns: Sequence[int]) -> list[CorrectedColumn]:
    """The columns in the bins that corrections tell apart; without those that do not vary."""
    bins = int(np.clip(rows.total / ROWS_OF_A_BIN, MIN_BINS, MAX_BINS_CUT))
    found = []
    for column in columns:
        if is_number(rows.table, column):
            cells = np.asarray(rows.table.numbers([column])[:, 0], dtype=np.float64)
            found.append(CorrectedColumn(column, cuts=find_quantile_cuts(cells, rows.weights, bins, bins)))
        else:
            found.append(CorrectedColumn(column, levels=_order_levels(rows, column)))
    return [column for column in found if np.ptp(column.read(rows.table))]


def _encode_levels(table: Table, column: int) -> tuple[Codes, pa.Array]:
    """The code of each cell (-1: missing), and the levels."""
    values = table.values([column])
    array = values[0] if isinstance(values, list) else pa.array(values[:, 0], from_pandas=True)
    codes, levels = encode_distinct(array, column)
    return codes.astype(np.int32), levels


def _order_levels(rows: Rows, column: int) -> pa.Array:
    """The frequent levels of a category, those that say alike side by side: along the direction in which their
    evidence differs most."""
    codes, levels = _encode_levels(rows.table, column)
    counts = _count_levels(codes, rows, rows.weights, len(levels))
    total = counts.sum(axis=1)
    by_name = np.array(sorted(range(len(levels)), key=lambda k: (-total[k], str(levels[k]))), dtype=np.int64)
    kept = by_name[total[by_name] >= ROWS_OF_A_LEVEL][:MAX_LEVELS]
    if kept.size > 1:
        prior = np.exp(rows.log_prior)
        shares = (counts[kept] + SHARES_ADDED * prior) / (total[kept, None] + SHARES_ADDED)
        evidence = np.log(np.maximum(shares, 1e-12)) - np.maximum(rows.log_prior, -30.0)
        evidence -= evidence.mean(axis=1, keepdims=True)
        evidence -= np.average(evidence, axis=0, weights=total[kept])
        direction = np.linalg.svd(evidence, full_matrices=False)[2][0]
        along = evidence @ direction * np.sign(direction[np.abs(direction).argmax()])
        kept = kept[np.argsort(along.round(9), kind="stable")]
    return levels.take(pa.array(kept))


# With fewer rows, or more classes, nothing is corrected.
MIN_ROWS_CORRECTED, MAX_CLASSES_CORRECTED = 100, 50

# The parts that rows are cut into; the tests of a table; the curvature added to that of each cell, in rows; how far the
# values of a table go toward the optimum, and at most where tables are few.
FOLDS, DEPTH, RIDGE, RATE, MAX_RATE = 5, 6, 1.0, 0.2, 0.4

# The most tables of a series, tables between two looks at the loss, and by what share it has to fall while so many more
# tables are grown.
MAX_TABLES, TABLES_A_LOOK, TABLES_OF_A_FALL, MIN_FALL = 400, 10, 20, 0.001

# The most slopes that a table explains at once: of more classes it explains random mixtures.
MAX_OUTPUTS = 5

# Columns that corrections may use, the share of them that each table may, and of how few it may use all.
MAX_COLUMNS_CORRECTED, SHARE_OF_COLUMNS, FEW_COLUMNS = 128, 0.5, 8

# Cells that may be looked at for a series: rows times columns times tables, more where there are several slopes. It is
# what bounds the time.
MAX_WORK, MIN_TABLES = 4e9, 150

# How strongly the scale of the evidence is drawn to 1 and that of the second series to 0: as so many rows would.
SCALE_ROWS = 10.0

# Numbers of evidence that are held at a time, and sums of slopes in the search of a table.
EVIDENCE_AT_A_TIME, MAX_SUMS = 1 << 22, 1 << 21

# Numbers that are held for all rows together.
MAX_NUMBERS_HELD = 1 << 26

# The log prior of a class that has no rows.
MIN_LOG_PRIOR = -50.0


class Searched(NamedTuple):
    """What tables are searched in: the bin of each cell, column by row; the bins of each column; and for each fold the
    columns that its tables may use."""

    bins: Bins
    sizes: Integers
    chosen: list[Integers]


class Series(NamedTuple):
    """Tables grown without each fold, and the correction of each row by those that were grown without it."""

    tests: list[Integers]
    values: list[Floats]
    left_out: Floats


@one_blas_thread()
def learn_corrections(tuning: Tuning, counts: Counts, rows: Rows, learned: bool = True) -> Tuning:
    """The tuning with corrections, and with the scales that they leave to the evidence; as it is where rows are too
    few. `learned`: whether the rows are among those counted."""
    places = find_correctable_columns(tuning.schema)
    if rows.total < MIN_ROWS_CORRECTED or isinstance(rows.table, SparseMatrix):
        return tuning
    if not (columns := bin_columns(rows, places[:MAX_COLUMNS_CORRECTED])):
        return tuning
    left_out, hashed, copies = rows.rows_to_leave_out(learned), len(columns), rows.copies.extra
    amounts = assign_folds(columns, rows.table, rows.labels, counts.classes, rows.weights, FOLDS)
    place, fold = np.nonzero(amounts)  # a row that is in several folds is several rows
    if not np.array_equal(place, np.arange(rows.labels.size)):
        rows = replace(rows, table=rows.table.take(place), labels=rows.labels[place])
        left_out = left_out[place]
    rows = replace(rows, weights=amounts[place, fold])
    if np.unique(fold).size < FOLDS:
        return tuning
    columns, chosen = _choose_columns_by_fold(rows, places, columns, fold)
    prior = make_finite_prior(rows)
    start = score_left_out_rows(tuning, counts, rows, left_out, fold)
    search = Searched(bins_of(columns, rows.table), np.array([column.bins for column in columns]), chosen)
    first = grow(search, rows, fold, start, seed=0)
    second = grow(search, rows, fold, np.broadcast_to(prior, start.shape), seed=1)
    scores = np.stack([start - prior + first.left_out, second.left_out], axis=1)
    scale, bias = maximize(center(scores), rows, np.array([1.0, 0.0]), np.zeros(rows.classes), SCALE_ROWS)
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
    """The tuning with a cap on what one block may be worth: no more than the rows behind it can support."""
    few = 0 < len(tuning.schema.block_names) <= MAX_BLOCKS_WEIGHED
    return replace(tuning, cap=float(np.log1p(counts.class_weight.sum()))) if tuning.rows and few else tuning


def may_correct(tuning: Tuning, classes: int) -> bool:
    """Whether there is anything to correct: tuned columns besides texts, and classes that are not too many."""
    return bool(tuning.rows and 2 <= classes <= MAX_CLASSES_CORRECTED and find_correctable_columns(tuning.schema))


def limit_correction_rows(columns: int, classes: int) -> int:
    """The most rows that corrections are learned from."""
    columns = min(columns, MAX_COLUMNS_CORRECTED)
    numbers = FOLDS * (2 * classes + 2 * count_outputs(classes) + 6)  # that are held for each row
    work = MIN_TABLES * _measure_row_work(_count_table_columns(columns), classes)
    return int(min(MAX_WORK / work, MAX_NUMBERS_HELD / numbers))


def _measure_row_work(columns: int, classes: int) -> float:
    """The cells of a row that are looked at for a table of each fold; further slopes cost half of the first."""
    return FOLDS * columns * (1.0 + count_outputs(classes)) / 2.0


def find_correctable_columns(schema: Schema) -> list[int]:
    """The columns that may be corrected: all but texts and counts of words."""
    groups = (group for group in schema.groups if not group.family.is_text and not group.family.accepts_new_columns)
    return sorted({column for group in groups for column in group.columns})


def _choose_columns_by_fold(
    rows: Rows, places: list[int], columns: list[CorrectedColumn], fold: Integers
) -> tuple[list[CorrectedColumn], list[Integers]]:
    """The columns to correct by, and for each fold which of them its tables may use: all, or of very many those that
    depend most on the class by the rows of the other folds."""
    if len(places) <= MAX_COLUMNS_CORRECTED:
        return columns, [np.arange(len(columns))] * FOLDS
    best = []
    for f in range(FOLDS):
        found = measure_associations(rows, places, np.where(fold == f, 0.0, rows.weights))
        best.append([places[k] for k in np.argsort(-found.round(12), kind="stable")[:MAX_COLUMNS_CORRECTED]])
    known = {column.column for column in columns}
    columns = columns + bin_columns(rows, sorted(set().union(*best) - known))
    where = {column.column: k for k, column in enumerate(columns)}
    chosen = [np.array(sorted(where[place] for place in some if place in where), dtype=np.int64) for some in best]
    return columns, [some if some.size else np.arange(len(columns)) for some in chosen]


def _count_table_columns(columns: int) -> int:
    return max(min(columns, FEW_COLUMNS), int(np.ceil(SHARE_OF_COLUMNS * columns)))


def score_left_out_rows(tuning: Tuning, counts: Counts, rows: Rows, left_out: LeftOutRows, fold: Integers) -> Floats:
    """The log joint of each row by its left-out evidence, with weights that were learned without its fold."""
    scored = counts.select_schema(tuning.schema)
    model = estimate(scored, rows.log_prior)
    few = sample_places(rows.labels.size, limit_tuning_rows(tuning.schema, rows.classes))
    known = _score_rows(model, scored, rows, left_out, few)
    weights = _learn_weights_by_fold(tuning, known, rows, few, fold)
    out = np.empty((rows.labels.size, rows.classes))

    def score(some: Integers) -> None:
        evidence = known if some is few else _score_rows(model, scored, rows, left_out, some)
        for f, (weight, bias) in enumerate(weights):
            here = np.flatnonzero(fold[some] == f)
            weighted = np.where(weight[:, None] > 0.0, evidence[here], 0.0) * weight[:, None]
            weighted = model.cap_weighted_evidence(weighted, tuning.cap).sum(axis=1)
            out[some[here]] = weighted + bias + make_finite_prior(rows)

    step = max(1, EVIDENCE_AT_A_TIME // (max(len(tuning.schema.block_names), 1) * rows.classes))
    every = np.arange(rows.labels.size)
    pieces = [few] if few.size == every.size else [every[first : first + step] for first in range(0, every.size, step)]
    for _ in map_in_threads(score, pieces, rows.threads):
        pass
    top = out.max(axis=1, keepdims=True)
    return np.asarray(np.where(np.isfinite(top), out - top, make_finite_prior(rows)))


def make_finite_prior(rows: Rows) -> Floats:
    """The log prior of each class, finite also for one that has no rows."""
    return np.maximum(rows.log_prior, MIN_LOG_PRIOR)


def _score_rows(model: Model, counts: Counts, rows: Rows, left_out: LeftOutRows, some: Integers) -> Floats:
    """The left-out evidence of some rows, row by block by class."""
    table = rows.table if some.size == rows.labels.size else rows.table.take(some)
    return model.leave_one_out_evidence(counts, table, left_out[some])


def _learn_weights_by_fold(
    tuning: Tuning, evidence: Floats, rows: Rows, few: Integers, fold: Integers
) -> list[tuple[Floats, Floats]]:
    """The weights and the bias that the rows of all other folds support, for each fold; `evidence` is of `few` rows."""
    if len(tuning.schema.block_names) > MAX_BLOCKS_WEIGHED:
        return [(tuning.weights, tuning.bias)] * FOLDS
    evidence = center(evidence)

    def without(left_out: int) -> tuple[Floats, Floats]:
        here = np.flatnonzero(fold[few] != left_out)
        others = replace(rows, labels=rows.labels[few[here]], weights=rows.weights[few[here]])
        return learn_weights(evidence[here], others, tuning.weight_groups)

    return list(map_in_threads(without, range(FOLDS), rows.threads))


def grow(search: Searched, rows: Rows, fold: Integers, start: Floats, seed: int) -> Series:
    """A series of tables on top of the scores `start`, as long as the loss of left-out rows falls."""
    columns = _count_table_columns(min(map(len, search.chosen)))
    work = rows.labels.size * _measure_row_work(columns, rows.classes)
    most = int(np.clip(MAX_WORK / work, MIN_TABLES, MAX_TABLES))
    rate = min(RATE * MAX_TABLES / most, MAX_RATE)
    members = [_Member.of(search, f, rows, fold == f, start, columns, FOLDS * seed + f) for f in range(FOLDS)]
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
    """Whether the loss has fallen enough while the last tables were grown, or these are too few to tell."""
    return losses.size <= TABLES_OF_A_FALL or losses.min() < (1.0 - MIN_FALL) * losses[:-TABLES_OF_A_FALL].min()


@dataclass
class _Member:
    """A series that is being grown without one fold."""

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
        depth = max(1, min(DEPTH, 1 + int(np.log2(max(MAX_SUMS / room, 1.0)))))
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
        """Grow some more tables."""
        drawn = [self.draw.permutation(self.chosen.size)[: self.columns] for _ in range(TABLES_A_LOOK)]
        columns = self.chosen[np.sort(np.stack(drawn), axis=1)].astype(np.int64)
        grown = kernels.correction_tables.GrownTables(
            tests=np.full((TABLES_A_LOOK, self.depth, 2), -1, dtype=np.int64),
            values=np.zeros((TABLES_A_LOOK, 1 << self.depth, self.search.posterior.shape[1])),
            losses=np.empty(TABLES_A_LOOK),
        )
        mix = self._mixtures()
        kernels.correction_tables.learn_corrections(
            self.rows, self.sizes, columns, mix, RIDGE, rate, self.search, grown
        )
        self.tests.append(grown.tests)
        self.values.append(grown.values)
        self.losses = np.concatenate([self.losses, grown.losses])

    def _mixtures(self) -> Floats:
        """What is to be explained by each of the next tables, table by class by output: every class by itself, or of
        many classes random mixtures, whose squares add up to the same on average."""
        classes = self.rows.scores.shape[1]
        outputs = count_outputs(classes)
        if outputs >= classes:
            return np.tile(np.eye(classes), (TABLES_A_LOOK, 1, 1))
        return self.draw.normal(scale=outputs**-0.5, size=(TABLES_A_LOOK, classes, outputs))


def count_outputs(classes: int) -> int:
    """How many slopes of each row a table explains."""
    return 1 if classes == 2 else min(classes, MAX_OUTPUTS)


def _join_series(
    columns: Sequence[CorrectedColumn], hashed: int, bins: Bins, rows: Rows, series: Sequence[Series], scale: Floats
) -> tuple[Corrections | None, Floats]:
    """All tables as one value, and the mean of what they add: their values are centered about it."""
    parts = [
        (tests, amount / FOLDS * values, np.full(len(tests), fold))
        for one, amount in zip(series, scale.tolist(), strict=True)
        for fold, (tests, values) in enumerate(zip(one.tests, one.values, strict=True))
        if amount > 0.0
    ]
    if not sum(len(tests) for tests, _, _ in parts):
        return None, np.zeros(rows.classes)
    tests, values, fold = (np.concatenate([part[k] for part in parts]) for k in range(3))
    behind = np.stack([sum_at(cell, rows.weights, values.shape[1]) for cell in cells_of(bins, tests)])
    mean = np.einsum("tc,tck->tk", behind, values) / rows.total
    corrections = Corrections(tuple(columns), tests, values - mean[:, None, :], behind, fold, FOLDS, hashed)
    return corrections, mean.sum(axis=0)
