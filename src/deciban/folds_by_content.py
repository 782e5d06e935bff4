"""Rows cut into parts by what they hold, so that the same row is in the same part wherever and whenever it comes."""

from collections.abc import Sequence
from zlib import crc32

import numpy as np
import numpy.typing as npt

from deciban.arrays import Codes, Flags, Floats, summed_cells
from deciban.corrections import CorrectedColumn, Corrections
from deciban.tables.labels import LabelArray
from deciban.tables.table import Table

Hashes = npt.NDArray[np.uint64]

# Where fewer rows than this differ from each other, one cannot be told from the others: all have to be in every part.
FEW_CONTENTS = 200

# The share of the weight that may lie in rows that are there more than once, by chance.
MOST_COPIED = 0.5

# Multipliers of the generator splitmix64.
FIRST, SECOND, GOLDEN = (np.uint64(k) for k in (0xBF58476D1CE4E5B9, 0x94D049BB133111EB, 0x9E3779B97F4A7C15))


def fold_amounts(
    columns: Sequence[CorrectedColumn],
    table: Table,
    labels: Codes,
    classes: LabelArray,
    weights: Floats,
    folds: int,
) -> Floats:
    """How much of each row is in each fold, row by fold.

    Equal rows of one class are dealt out to the folds one after another, and a row of weight 2 as two rows; the first
    fold follows from what they hold. Where most of the weight lies in rows that are there more than once, such rows
    would be judged by their own copies: then equal rows are all in one fold, unless their classes differ, or few rows
    differ from each other.
    """
    names = np.array([crc32(repr(label).encode()) for label in classes.tolist()], dtype=np.uint64)
    contents = np.full(labels.size, GOLDEN)
    for column in columns:
        contents = _mixed(contents ^ (_content(column, table) + GOLDEN))
    rows = _mixed(contents ^ names[labels])
    group = np.unique(contents, return_inverse=True)[1].ravel()
    lowest, highest = np.full(group.max() + 1, labels.max()), np.zeros(group.max() + 1, dtype=labels.dtype)
    np.minimum.at(lowest, group, labels)
    np.maximum.at(highest, group, labels)
    together = summed_cells(group, weights, lowest.size)
    copied = together[together > 1.0 + 1e-9].sum() > MOST_COPIED * together.sum()
    dealt = np.flatnonzero((lowest < highest)[group] | (lowest.size < FEW_CONTENTS) | (not copied))
    amounts = np.zeros((labels.size, folds))
    amounts[np.arange(labels.size), (contents % np.uint64(folds)).astype(np.int64)] = weights
    amounts[dealt] = _deal(rows[dealt], weights[dealt], folds)
    return amounts


def _deal(rows: Hashes, weights: Floats, folds: int) -> Floats:
    """How much of each row each fold has, when equal rows are dealt out one after another."""
    order = np.argsort(rows, kind="stable")
    ends = np.cumsum(weights[order])
    first = np.flatnonzero(np.concatenate([[True], np.diff(rows[order]) != 0])) if order.size else order
    before = np.repeat((ends - weights[order])[first], np.diff(np.append(first, order.size)))
    end = np.empty(order.size)
    end[order] = ends - before
    start = np.maximum(end - weights, 0.0)
    own = (rows % np.uint64(folds)).astype(np.int64)
    turn = (np.arange(folds)[None, :] - own[:, None]) % folds
    amounts = _dealt(end, turn, folds) - _dealt(start, turn, folds)
    amounts[amounts < 1e-9 * weights[:, None]] = 0.0
    lost = ~amounts.any(axis=1)  # of a weight that is nothing beside those before it
    amounts[lost, own[lost]] = weights[lost]
    return amounts


def _dealt(amount: Floats, turn: npt.NDArray[np.int64], folds: int) -> Floats:
    """How much of so many equal rows each fold has by then."""
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
    corrections: Corrections,
    table: Table,
    labels: Codes,
    classes: LabelArray,
    weights: Floats,
    unknown: Flags | None = None,
) -> Floats:
    """The corrections of rows with labels, row by class, each by the tables that were learned without it.

    unknown: the unknown cells of the corrected columns, column by row.
    """
    hashed = corrections.columns[: corrections.hashed]
    amounts = fold_amounts(hashed, table, labels, classes, weights, corrections.folds)
    out = np.zeros((labels.size, classes.size))
    corrections.add_left_out(corrections.read(table), amounts, out, unknown)
    return out
