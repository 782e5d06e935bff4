"""Rows cut into parts by what they hold, so that the same row is in the same part wherever and whenever it comes."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from deciban.arrays import Codes, Floats
from deciban.corrections import CorrectedColumn, Corrections
from deciban.tables.table import Table

Hashes = npt.NDArray[np.uint64]

# Multipliers of the generator splitmix64.
FIRST, SECOND, GOLDEN = (np.uint64(k) for k in (0xBF58476D1CE4E5B9, 0x94D049BB133111EB, 0x9E3779B97F4A7C15))


def fold_amounts(
    columns: Sequence[CorrectedColumn], table: Table, labels: Codes, weights: Floats, folds: int
) -> Floats:
    """How much of each row is in each fold, row by fold.

    Equal rows of one class are dealt out one after another, from a fold on that follows from what they hold. A row of
    weight 2 is dealt as two rows.
    """
    hashes = _mixed(labels.astype(np.uint64) + GOLDEN)
    for column in columns:
        hashes = _mixed(hashes ^ (_content(column, table) + GOLDEN))
    order = np.argsort(hashes, kind="stable")
    ends = np.cumsum(weights[order])
    first = np.flatnonzero(np.concatenate([[True], np.diff(hashes[order]) != 0]))
    before = np.repeat((ends - weights[order])[first], np.diff(np.append(first, order.size)))
    end = np.empty(order.size)
    end[order] = ends - before
    start = end - weights
    turn = (np.arange(folds)[None, :] - (hashes % np.uint64(folds)).astype(np.int64)[:, None]) % folds
    amounts = _dealt(end, turn, folds) - _dealt(start, turn, folds)
    amounts[amounts < 1e-9 * weights[:, None]] = 0.0
    return amounts


def _dealt(amount: Floats, turn: npt.NDArray[np.int64], folds: int) -> Floats:
    """How much of so many equal rows each fold has, when one after another is dealt out."""
    whole = np.floor(amount / folds)
    rest = amount - folds * whole
    return np.asarray(whole[:, None] + np.clip(rest[:, None] - turn, 0.0, 1.0))


def _content(column: CorrectedColumn, table: Table) -> Hashes:
    """What the cells of a column hold, as whole numbers: the digits of a number, the bin of a category."""
    if column.cuts is None:
        return column.read(table).astype(np.uint64)
    numbers = np.ascontiguousarray(table.numbers([column.column])[:, 0], dtype=np.float64) + 0.0  # -0.0 is 0.0
    numbers[np.isnan(numbers)] = np.nan
    return numbers.view(np.uint64)


def _mixed(numbers: Hashes) -> Hashes:
    """Hashes of numbers: those of the generator splitmix64."""
    z = (numbers ^ (numbers >> np.uint64(30))) * FIRST
    z = (z ^ (z >> np.uint64(27))) * SECOND
    return np.asarray(z ^ (z >> np.uint64(31)))


def left_out_corrections(
    corrections: Corrections, table: Table, labels: Codes, weights: Floats, classes: int
) -> Floats:
    """The corrections of rows with labels, row by class, each by the tables that were learned without it."""
    hashed = corrections.columns[: corrections.hashed]
    amounts = fold_amounts(hashed, table, labels, weights, corrections.folds)
    out = np.zeros((labels.size, classes))
    corrections.add_left_out(corrections.read(table), amounts, out)
    return out
