"""Columns cut into few bins: numbers at quantiles, categories in the order of what they say."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from deciban.fitting.tune.rows import Rows, is_number
from deciban.model.corrections import CorrectedColumn
from deciban.statistics.levels import distinct
from deciban.tables.table import Table
from deciban.util.arrays import Codes, Floats, summed_cells

# The most levels of a category that are told apart where few are wanted, and in corrections.
FEW_LEVELS, MOST_LEVELS = 16, 60

# Rows that a level of a category needs to be told apart: the order of rarer ones would be that of their labels.
ROWS_OF_A_LEVEL = 10.0

# Rows of the overall shares that are added to those of each level when levels are put in order.
SHARES_ADDED = 5.0

# Columns whose cells are looked at together.
COLUMNS_AT_A_TIME = 256

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
        low, high = values[:-1], values[1:]
        middle = low + (high - low) / 2.0
        return np.unique(np.where(middle > low, middle, high))  # of neighbours among doubles there is no middle
    share = np.arange(1, bins) / bins
    return np.unique(np.quantile(cells[here], share, method="inverted_cdf", weights=weights[here]))


def associations(rows: Rows, columns: Sequence[int], weights: Floats) -> Floats:
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
        codes, levels = _levels(rows.table, columns[k])
        counts = _counts(codes, rows, weights, len(levels))
        expected = np.outer(counts.sum(axis=1), counts.sum(axis=0))
        squares = np.divide(counts**2, expected, out=np.zeros_like(counts), where=expected > 0.0)
        found[k] = max(squares.sum() - 1.0, 0.0) / max(len(levels) - 1, 1)
    return found


def _counts(codes: Codes, rows: Rows, weights: Floats, levels: int) -> Floats:
    """The weight of each level and class."""
    here = codes >= 0
    found = summed_cells(codes[here] * rows.classes + rows.labels[here], weights[here], levels * rows.classes)
    return found.reshape(levels, rows.classes)


def corrected_columns(rows: Rows, columns: Sequence[int]) -> list[CorrectedColumn]:
    """The columns in the bins that corrections tell apart; without those that do not vary."""
    bins = int(np.clip(rows.total / ROWS_OF_A_BIN, LEAST_BINS, MOST_BINS_CUT))
    found = []
    for column in columns:
        if is_number(rows.table, column):
            cells = np.asarray(rows.table.numbers([column])[:, 0], dtype=np.float64)
            found.append(CorrectedColumn(column, cuts=quantile_cuts(cells, rows.weights, bins, bins)))
        else:
            found.append(CorrectedColumn(column, levels=_levels_in_order(rows, column)))
    return [column for column in found if np.ptp(column.read(rows.table))]


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
    counts = _counts(codes, rows, rows.weights, len(levels))
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
