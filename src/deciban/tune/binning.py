"""Columns cut into few bins: numbers at quantiles, categories in the order of what they say."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from deciban.arrays import Codes, Floats
from deciban.corrections import CorrectedColumn
from deciban.statistics.levels import distinct
from deciban.tables.table import Table
from deciban.tune.rows import Rows, is_number

# The most levels of a category that are told apart where few are wanted, and in corrections.
FEW_LEVELS, MOST_LEVELS = 16, 60

# Rows that a level of a category needs to be told apart: the order of rarer ones would be that of their labels.
ROWS_OF_A_LEVEL = 10.0

# Rows of the overall shares that are added to those of each level when levels are put in order.
SHARES_ADDED = 5.0

# The least and the most bins of a number, and rows for each.
LEAST_BINS, MOST_BINS_CUT, ROWS_OF_A_BIN = 16, 126, 64.0


def few_levels(rows: Rows, column: int, bins: int) -> tuple[Codes, tuple[float, ...] | None, int] | None:
    """A column as a few levels: the code of each cell (-1: missing), where it is cut (None: nowhere), their number."""
    table = rows.table
    if is_number(table, column):
        cells = np.asarray(table.numbers([column])[:, 0], dtype=np.float64)
        cuts = quantile_cuts(cells, rows.weights, bins, bins + 2)
        if not cuts.size:
            return None
        codes = np.where(np.isnan(cells), -1, np.searchsorted(cuts, cells, side="right")).astype(np.int32)
        return codes, tuple(cuts.tolist()), cuts.size + 1
    codes, levels = _levels(table, column)
    return (codes, None, len(levels)) if 2 <= len(levels) <= FEW_LEVELS else None


def quantile_cuts(cells: Floats, weights: Floats, bins: int, most_values: int) -> Floats:
    """Where numbers are cut into about so many bins of equal weight; between all values where these are few."""
    here = ~np.isnan(cells)
    values = np.unique(cells[here])
    if values.size <= most_values:
        return np.asarray((values[1:] + values[:-1]) / 2.0)
    share = np.arange(1, bins) / bins
    return np.unique(np.quantile(cells[here], share, method="inverted_cdf", weights=weights[here]))


def corrected_columns(rows: Rows, columns: Sequence[int]) -> list[CorrectedColumn]:
    """The columns in the bins that corrections tell apart; without those that do not vary."""
    bins = int(np.clip(rows.total / ROWS_OF_A_BIN, LEAST_BINS, MOST_BINS_CUT))
    found = []
    for column in columns:
        if is_number(rows.table, column):
            cells = np.asarray(rows.table.numbers([column])[:, 0], dtype=np.float64)
            cuts = quantile_cuts(cells, rows.weights, bins, bins)
            if cuts.size or np.isnan(cells).any():
                found.append(CorrectedColumn(column, cuts=cuts))
        else:
            found.append(CorrectedColumn(column, levels=_levels_in_order(rows, column)))
    return found


def _levels(table: Table, column: int) -> tuple[Codes, pa.Array]:
    """The code of each cell (-1: missing), and the levels."""
    values = table.values([column])
    array = values[0] if isinstance(values, list) else pa.array(values[:, 0], from_pandas=True)
    codes, levels = distinct(array, column)
    return codes.astype(np.int32), levels


def _levels_in_order(rows: Rows, column: int) -> pa.Array:
    """The frequent levels of a category, those that say alike side by side: along the direction in which their
    evidence differs most."""
    codes, levels = _levels(rows.table, column)
    here = codes >= 0
    size = len(levels) * rows.classes
    counts = np.bincount(codes[here] * rows.classes + rows.labels[here], rows.weights[here], size)
    counts = counts.reshape(len(levels), rows.classes)
    total = counts.sum(axis=1)
    by_name = np.array(sorted(range(len(levels)), key=lambda k: (-total[k], str(levels[k]))), dtype=np.int64)
    kept = by_name[total[by_name] >= ROWS_OF_A_LEVEL][:MOST_LEVELS]
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
