"""Bins of columns: numbers cut at quantiles, categories in the order of their evidence.

Corrections, the diagnosis and importance use them.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from deciban.fitting.tune.hyperparameters import BINNING
from deciban.fitting.tune.rows import Rows, is_number
from deciban.model.corrections import OTHER_BIN, Bins, CorrectedColumn, bins_of
from deciban.statistics.levels import encode_distinct
from deciban.tables.table import Table
from deciban.util.arrays import Codes, Floats, Integers, sum_at


def reduce_to_levels(rows: Rows, column: int, bins: int) -> tuple[Codes, tuple[float, ...] | None, int] | None:
    """Cut a column into few levels; return None if that is not possible.

    Returns the code of each cell (-1: missing), the cuts of numbers (None for categories), and the number of levels.
    """
    table = rows.table
    if is_number(table, column):
        cells = np.asarray(table.numbers([column])[:, 0], dtype=np.float64)
        cuts = find_quantile_cuts(cells, rows.weights, bins, bins + 2)
        if not cuts.size:
            return None
        codes = np.where(np.isnan(cells), -1, np.searchsorted(cuts, cells, side="right")).astype(np.int32)
        return codes, tuple(cuts.tolist()), cuts.size + 1
    codes, levels = encode_levels(table, column)
    return (codes, None, len(levels)) if 2 <= len(levels) <= BINNING.few_levels else None


def find_quantile_cuts(cells: Floats, weights: Floats, bins: int, max_values: int) -> Floats:
    """Return cuts into about `bins` bins of equal weight; between all values if these are few."""
    here = ~np.isnan(cells)
    values = np.unique(cells[here])
    if values.size <= max_values:
        low, high = values[:-1], values[1:]
        middle = low + (high - low) / 2.0
        return np.unique(np.where(middle > low, middle, high))  # neighboring doubles have no midpoint
    share = np.arange(1, bins) / bins
    return np.unique(np.quantile(cells[here], share, method="inverted_cdf", weights=weights[here]))


def measure_associations(rows: Rows, columns: Sequence[int], weights: Floats) -> Floats:
    """Return how strongly each column depends on the class, by rows with these weights.

    For a number, this is the share of its variance between the classes; for a category, the mean square contingency per
    level.
    """
    found = np.zeros(len(columns))
    numeric = np.array([is_number(rows.table, column) for column in columns], dtype=np.bool_)
    member = np.eye(rows.classes)[rows.labels] * weights[:, None]
    for places in np.array_split(np.flatnonzero(numeric), max(1, numeric.sum() // BINNING.columns_at_once)):
        cells = np.asarray(rows.table.numbers([columns[k] for k in places]), dtype=np.float64)
        here = ~np.isnan(cells)
        cells = np.where(here, cells, 0.0)
        total = np.maximum(weights @ here, 1e-300)
        cells = np.where(here, cells - weights @ cells / total, 0.0)
        sums, sizes = member.T @ cells, np.maximum(member.T @ here, 1e-300)
        found[places] = (sums**2 / sizes).sum(axis=0) / np.maximum(weights @ cells**2, 1e-300)
    for k in np.flatnonzero(~numeric).tolist():
        codes, levels = encode_levels(rows.table, columns[k])
        counts = _count_levels(codes, rows, weights, len(levels))
        expected = np.outer(counts.sum(axis=1), counts.sum(axis=0))
        squares = np.divide(counts**2, expected, out=np.zeros_like(counts), where=expected > 0.0)
        found[k] = max(squares.sum() - 1.0, 0.0) / max(len(levels) - 1, 1)
    return found


def _count_levels(codes: Codes, rows: Rows, weights: Floats, levels: int) -> Floats:
    """Return the weight of each level and class."""
    here = codes >= 0
    found = sum_at(codes[here] * rows.classes + rows.labels[here], weights[here], levels * rows.classes)
    return found.reshape(levels, rows.classes)


def bin_columns(rows: Rows, columns: Sequence[int]) -> tuple[list[CorrectedColumn], Bins]:
    """Return the bins of these columns for corrections, and that of each cell; constant columns are left out."""
    bins = int(np.clip(rows.total / BINNING.rows_per_bin, BINNING.min_bins, BINNING.max_bins))
    found = []
    for column in columns:
        if is_number(rows.table, column):
            cells = np.asarray(rows.table.numbers([column])[:, 0], dtype=np.float64)
            found.append(CorrectedColumn(column, cuts=find_quantile_cuts(cells, rows.weights, bins, bins)))
        else:
            found.append(_bin_levels(rows, column))
    codes = bins_of(found, rows.table)
    varies = (codes != codes[:, :1]).any(axis=1)
    return [column for column, kept in zip(found, varies, strict=True) if kept], codes[varies]


def encode_levels(table: Table, column: int) -> tuple[Codes, pa.Array]:
    """Return the code of each cell (-1: missing), and the levels."""
    values = table.values([column])
    array = values[0] if isinstance(values, list) else pa.array(values[:, 0], from_pandas=True)
    codes, levels = encode_distinct(array, column)
    return codes.astype(np.int32), levels


def _bin_levels(rows: Rows, column: int) -> CorrectedColumn:
    """Return the levels of a category in the order of their evidence, a bin for each; of many, similar ones share one.

    The order is along the direction in which their evidence differs most.
    """
    codes, levels = encode_levels(rows.table, column)
    counts = _count_levels(codes, rows, rows.weights, len(levels))
    total, shared = counts.sum(axis=1), len(levels) > BINNING.max_own_bins
    names = [str(level) for level in levels.to_pylist()]
    by_name = np.array(sorted(range(len(levels)), key=lambda k: (-total[k], names[k])), dtype=np.int64)
    min_rows = BINNING.min_placed_rows if shared else BINNING.min_level_rows
    kept = by_name[total[by_name] >= min_rows][: BINNING.max_levels]
    if not kept.size:
        return CorrectedColumn(column, levels=levels.take(pa.array(kept)))
    along, _ = _place_levels(counts[kept], rows)
    order = np.argsort(along, kind="stable")
    kept, along = kept[order], along[order]
    if not shared:
        return CorrectedColumn(column, levels=levels.take(pa.array(kept)))
    return CorrectedColumn(column, levels=levels.take(pa.array(kept)), places=_share_bins(along, total[kept])[None])


def _place_levels(counts: Floats, rows: Rows) -> tuple[Floats, Floats]:
    """Return where levels are in the direction in which their evidence differs most, and this direction, by class."""
    evidence, total = _smooth_evidence(counts, rows), counts.sum(axis=1)
    away = (evidence - np.average(evidence, axis=0, weights=total)) * np.sqrt(total)[:, None]
    direction = np.linalg.eigh(away.T @ away)[1][:, -1]
    direction = direction * np.sign(direction[np.abs(direction).round(9).argmax()])
    return (evidence @ direction).round(9), direction


def _smooth_evidence(counts: Floats, rows: Rows) -> Floats:
    """Return the smoothed evidence of levels, level by class, with mean 0 over the classes."""
    added = BINNING.prior_rows * np.exp(rows.log_prior)
    shares = (counts + added) / (counts.sum(axis=1, keepdims=True) + BINNING.prior_rows)
    evidence = np.log(np.maximum(shares, 1e-12)) - np.maximum(rows.log_prior, -30.0)
    return np.asarray(evidence - evidence.mean(axis=1, keepdims=True))


def _share_bins(along: Floats, weights: Floats) -> Bins:
    """Return the bins of levels in ascending order: of about equal weight, the same for equal levels."""
    values, first = np.unique(along, return_index=True)
    group = np.arange(values.size)
    if values.size > BINNING.max_shared_bins:
        weight = np.add.reduceat(weights, first)
        middle = (np.cumsum(weight) - weight / 2.0) / weight.sum()
        group = np.unique((middle * BINNING.max_shared_bins).astype(np.int64), return_inverse=True)[1].ravel()
    return (OTHER_BIN + 1 + np.repeat(group, np.diff(first, append=along.size))).astype(np.uint8)


def place_out_of_fold(
    columns: Sequence[CorrectedColumn], rows: Rows, fold: Integers, folds: int
) -> list[CorrectedColumn]:
    """Return the columns with the bins of shared levels by the rows outside of each fold.

    The bins come from labels. A row placed by its own label would look better than a new row, so the rows of a fold are
    placed by the other folds. Frequent levels stay in place: their rows in one fold change little.
    """
    found = []
    for one in columns:
        if one.places is None:
            found.append(one)
            continue
        codes, size = one.encode(rows.table), len(one.places[0])
        parts = [_count_levels(codes, rows, np.where(fold == f, rows.weights, 0.0), size) for f in range(folds)]
        whole = np.sum(parts, axis=0)
        along, direction = _place_levels(whole, rows)
        last = np.flatnonzero(np.diff(one.places[0].astype(np.int64)))
        cuts = along[last] + (along[last + 1] - along[last]) / 2.0
        places = [one.places[0]]
        for part in parts:
            rest = np.maximum(whole - part, 0.0)
            away = OTHER_BIN + 1 + np.searchsorted(cuts, _smooth_evidence(rest, rows) @ direction)
            away = np.where(rest.sum(axis=1) >= BINNING.min_placed_rows - 1e-6, away, OTHER_BIN)
            places.append(np.where(whole.sum(axis=1) < BINNING.frequent_rows, away, places[0]))
        found.append(replace(one, places=np.stack(places).astype(np.uint8)))
    return found


def bins_out_of_fold(columns: Sequence[CorrectedColumn], table: Table, fold: Integers, bins: Bins) -> Bins:
    """Return bins (column by row) in which each row of a fold has the bins by the rows of the other folds."""
    bins = bins.copy()
    for k, one in enumerate(columns):
        if one.places is not None:
            codes = one.encode(table)
            here = np.flatnonzero(codes >= 0)
            bins[k, here] = one.places[1 + fold[here], codes[here]]
    return bins
