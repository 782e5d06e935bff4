"""Bins of columns: numbers cut at quantiles, categories in the order of their evidence.

Corrections, the diagnosis and importance use them.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from deciban.fitting.tune.hyperparameters import BINNING
from deciban.fitting.tune.rows import Rows, is_number
from deciban.model.corrections import CorrectedColumn
from deciban.statistics.levels import encode_distinct
from deciban.tables.table import Table
from deciban.util.arrays import Codes, Floats, sum_at


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


def bin_columns(rows: Rows, columns: Sequence[int]) -> list[CorrectedColumn]:
    """Return the bins of these columns for corrections; constant columns are left out."""
    bins = int(np.clip(rows.total / BINNING.rows_per_bin, BINNING.min_bins, BINNING.max_bins))
    found = []
    for column in columns:
        if is_number(rows.table, column):
            cells = np.asarray(rows.table.numbers([column])[:, 0], dtype=np.float64)
            found.append(CorrectedColumn(column, cuts=find_quantile_cuts(cells, rows.weights, bins, bins)))
        else:
            found.append(CorrectedColumn(column, levels=_order_levels(rows, column)))
    return [column for column in found if np.ptp(column.read(rows.table))]


def encode_levels(table: Table, column: int) -> tuple[Codes, pa.Array]:
    """Return the code of each cell (-1: missing), and the levels."""
    values = table.values([column])
    array = values[0] if isinstance(values, list) else pa.array(values[:, 0], from_pandas=True)
    codes, levels = encode_distinct(array, column)
    return codes.astype(np.int32), levels


def _order_levels(rows: Rows, column: int) -> pa.Array:
    """Return the frequent levels of a category, ordered so that neighbors have similar evidence.

    The order is along the direction in which their evidence differs most.
    """
    codes, levels = encode_levels(rows.table, column)
    counts = _count_levels(codes, rows, rows.weights, len(levels))
    total = counts.sum(axis=1)
    by_name = np.array(sorted(range(len(levels)), key=lambda k: (-total[k], str(levels[k]))), dtype=np.int64)
    kept = by_name[total[by_name] >= BINNING.min_level_rows][: BINNING.max_levels]
    if kept.size > 1:
        prior = np.exp(rows.log_prior)
        shares = (counts[kept] + BINNING.prior_rows * prior) / (total[kept, None] + BINNING.prior_rows)
        evidence = np.log(np.maximum(shares, 1e-12)) - np.maximum(rows.log_prior, -30.0)
        evidence -= evidence.mean(axis=1, keepdims=True)
        evidence -= np.average(evidence, axis=0, weights=total[kept])
        direction = np.linalg.svd(evidence, full_matrices=False)[2][0]
        along = evidence @ direction * np.sign(direction[np.abs(direction).argmax()])
        kept = kept[np.argsort(along.round(9), kind="stable")]
    return levels.take(pa.array(kept))
