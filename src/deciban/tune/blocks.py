"""The choice of columns to model together: joint Gaussians, and tables of two columns."""

from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa

from deciban import kernels
from deciban.arrays import Codes, Floats
from deciban.families import JointGaussian, JointTable
from deciban.families.spreads import Pooled, Shrunk
from deciban.posterior import log_normalize
from deciban.schema.reasons import ChosenBy, Reason
from deciban.schema.schema import ColumnGroup, Schema
from deciban.statistics.levels import distinct
from deciban.tune.families import ScoredGroup, least_spread
from deciban.tune.rows import FEWEST_ROWS, Rows, is_number, left_out_evidence
from deciban.tune.weights import BLOCK_ROWS, centred, learn_weights, maximise

# The widest joint Gaussian, the largest share of missing cells in its columns, and the multiplications that choose its
# shrinkage.
MOST_JOINED = 128
MOST_MISSING = 0.1
SHRINKAGE_WORK = 2e7

# Pairs of columns: how many of the best columns are paired, how many levels they may have, their smoothing, how many
# pairs join at a time and how often, and what log-likelihood each must promise.
PAIRED_COLUMNS, PAIRED_LEVELS, PAIR_ALPHA, PAIRS_A_ROUND, ROUNDS, LEAST_PAIR_GAIN = 24, 16, 0.5, 6, 6, 4.0
MOST_PAIRS = PAIRS_A_ROUND * ROUNDS

POOLED = tuple(JointGaussian(Pooled(shrinkage=share)) for share in (0.002, 0.02, 0.2))
PER_CLASS = tuple(
    JointGaussian(Shrunk(amount, share)) for amount, share in ((0.02, 0.005), (0.1, 0.02), (0.1, 0.1), (0.5, 0.5))
)


def choose_joint_gaussians(rows: Rows, base: Schema) -> list[ScoredGroup]:
    """The linear and the quadratic discriminant of all numeric columns, each with the best of a few shrinkages."""
    columns = [
        column
        for group in base.groups
        if not group.family.joint
        for column in group.inferred_columns
        if is_number(rows.table, column)
    ]
    if len(columns) < 2:
        return []
    cells = np.asarray(rows.table.numbers(columns), dtype=np.float64)
    missing = rows.weights @ np.isnan(cells) / rows.total
    full = (missing <= MOST_MISSING) & (np.fmax.reduce(cells) > np.fmin.reduce(cells))
    columns = sorted(c for c, usable in zip(columns, full, strict=True) if usable and _joins(rows, c))
    if not 2 <= len(columns) <= min(MOST_JOINED, rows.total / 2):
        return []
    some = rows.some(max(FEWEST_ROWS, int(SHRINKAGE_WORK / (rows.classes * len(columns) ** 3 / 6))))
    any_of_them = POOLED[0]  # they all count the same
    statistic = any_of_them.count(any_of_them.read(rows.table, columns), rows.labels, rows.weights, rows.classes)
    counted: dict[Any, Any] = {(any_of_them.counts, tuple(columns)): statistic}
    scored = []
    for families in (POOLED, PER_CLASS):
        losses = [float(some.losses(left_out_evidence(some, family, columns, counted))[0]) for family in families]
        family = families[int(np.argmin(losses))]
        evidence = left_out_evidence(rows, family, columns, counted)
        reason = Reason(ChosenBy.TUNED, f"all numeric columns together: log-loss {rows.losses(evidence)[0]:.4f} alone")
        group = ColumnGroup(family, tuple(columns), (reason,) * len(columns), auxiliary=True)
        scored.append(ScoredGroup(group, evidence))
    return scored


def _joins(rows: Rows, column: int) -> bool:
    """Whether a column may join the others: its classes spread together, and each that has few rows by itself."""
    return all(least_spread(rows, column, few=30.0))


def choose_pairs(rows: Rows, base: Schema, scored: list[ScoredGroup], losses: dict[str, float]) -> list[ScoredGroup]:
    """Tables of two columns, as long as they promise to add to the evidence of the others."""
    known = [column for column in range(base.width) if base.column_name(column) in losses]
    best = sorted(known, key=lambda column: losses[base.column_name(column)])
    bins = int(np.clip((rows.total / 2.0) ** (1.0 / 3.0), 4, PAIRED_LEVELS))
    coded: dict[int, tuple[Codes, tuple[float, ...] | None, int]] = {}
    for column in best:
        if len(coded) < PAIRED_COLUMNS and (member := few_levels(rows, column, bins)) is not None:
            coded[column] = member
    columns = sorted(coded)
    sizes = np.array([coded[column][2] for column in columns], dtype=np.int64)
    pairs = [
        (a, b) for a, b in combinations(range(len(columns)), 2) if sizes[a] * sizes[b] * rows.classes <= rows.total
    ]
    if not pairs:
        return []
    codes = np.stack([coded[column][0] for column in columns], axis=1)
    evidence = centred(np.concatenate([group.evidence for group in scored], axis=1))
    singles = sum(group.evidence.shape[1] for group in scored if not group.group.auxiliary)
    groups = np.concatenate([np.zeros(singles), 1 + np.arange(evidence.shape[1] - singles)]).astype(np.int64)
    weights, bias = learn_weights(evidence, rows, groups, polish=False)
    joined: list[ScoredGroup] = []
    for _ in range(ROUNDS):
        if not pairs:
            break
        score = np.einsum("nbk,b->nk", evidence, weights) + rows.log_prior + bias
        posterior, _ = log_normalize(score, rows.log_prior)
        gains = np.array([pair_gain(codes[:, a], sizes[a], codes[:, b], sizes[b], rows, posterior) for a, b in pairs])
        found = [k for k in np.argsort(-gains)[:PAIRS_A_ROUND] if gains[k] > LEAST_PAIR_GAIN]
        if not found:
            break
        for k in found:
            members = tuple(columns[m] for m in pairs[k])
            cuts = tuple(coded[column][1] for column in members)
            family = JointTable(PAIR_ALPHA, cuts=None if cuts == (None, None) else cuts)
            reason = Reason(ChosenBy.TUNED, f"they depend on each other: together worth {gains[k]:.1f} nats more")
            group = ColumnGroup(family, members, (reason, reason), auxiliary=True)
            joined.append(ScoredGroup(group, left_out_evidence(rows, family, members, {})))
        pairs = [pair for k, pair in enumerate(pairs) if k not in set(found)]
        more = centred(np.concatenate([group.evidence for group in joined[-len(found) :]], axis=1))
        evidence = np.concatenate([evidence, more], axis=1)
        target = np.concatenate([weights, np.zeros(len(found))])
        weights, bias = maximise(evidence, rows, target, bias, BLOCK_ROWS, polish=False)
    return joined


def pair_gain(a: Codes, levels_a: int, b: Codes, levels_b: int, rows: Rows, posterior: Floats) -> float:
    """How much log-likelihood a table of two columns would add to what `posterior` knows, by its best weight.

    To second order: slope**2 / (2 curvature) of the log-likelihood in the weight of the pair's evidence, each row left
    out of the table; 0 where the slope is not positive.
    """
    size, classes = int(levels_a * levels_b), rows.classes
    cells = np.where((a >= 0) & (b >= 0), a * levels_b + b, -1)
    here = cells >= 0
    counted = np.bincount(cells[here] * classes + rows.labels[here], rows.weights[here], size * classes)
    counts = counted.reshape(size, classes)
    total = counts.sum(axis=0)
    evidence = np.log((counts + PAIR_ALPHA) / (total + PAIR_ALPHA * size))
    left, total_left = np.maximum(counts - 1.0, 0.0), np.maximum(total - 1.0, 0.0)
    own = np.log((left + PAIR_ALPHA) / (total_left + PAIR_ALPHA * size))
    sums = np.array([0.0, 1e-9])
    kernels.weight_slope(cells, rows.labels, rows.weights, evidence, own, posterior, sums)
    slope, curvature = sums.tolist()
    return float(slope * slope / (2.0 * curvature)) if slope > 0.0 else 0.0


def few_levels(rows: Rows, column: int, bins: int) -> tuple[Codes, tuple[float, ...] | None, int] | None:
    """A column as a few levels: the code of each cell (-1: missing), where it is cut (None: nowhere), their number."""
    table = rows.table
    if is_number(table, column):
        cells = np.asarray(table.numbers([column])[:, 0], dtype=np.float64)
        here = ~np.isnan(cells)
        values = np.unique(cells[here])
        if values.size < 2:
            return None
        if values.size <= bins + 2:
            cuts = (values[1:] + values[:-1]) / 2.0
        else:
            share = np.arange(1, bins) / bins
            cuts = np.unique(np.quantile(cells[here], share, method="inverted_cdf", weights=rows.weights[here]))
        codes = np.where(np.isnan(cells), -1, np.searchsorted(cuts, cells, side="right")).astype(np.int32)
        return codes, tuple(cuts.tolist()), cuts.size + 1
    values_of = table.values([column])
    array = values_of[0] if isinstance(values_of, list) else pa.array(values_of[:, 0], from_pandas=True)
    codes, levels = distinct(array, 0)
    return (codes.astype(np.int32), None, len(levels)) if 2 <= len(levels) <= PAIRED_LEVELS else None
