"""Rows to tune on, and the evidence of each by the counts of the others.

Copies of a row are found by content, and rows are assigned to folds by content: equal rows are in the same fold,
wherever and whenever they occur.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from deciban.families import Family
from deciban.families.base.contract import LeftOutRows, Measure, take_rows
from deciban.fitting.tune.hyperparameters import COPIES, SAMPLING
from deciban.model.corrections import Bins, CorrectedColumn, Corrections, bins_of
from deciban.model.counts import Counts
from deciban.tables.cells import is_numeric
from deciban.tables.labels import LabelArray, Labels
from deciban.tables.row_sampling import sample_places
from deciban.tables.table import Frame, Matrix, Readable, SparseMatrix, Table
from deciban.util.arrays import CORES, Codes, Flags, Floats, Integers, log, sum_at
from deciban.util.budget import NO_LIMIT, Budget
from deciban.util.parallel import map_in_threads
from deciban.util.progress import Advance

Hashes = npt.NDArray[np.uint64]

# First multiplier of the generator splitmix64.
FIRST = np.uint64(0xBF58476D1CE4E5B9)

# Second multiplier of splitmix64.
SECOND = np.uint64(0x94D049BB133111EB)

# Increment of splitmix64: 2^64 divided by the golden ratio.
GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def assign_folds(
    columns: Sequence[CorrectedColumn],
    bins: Bins,
    table: Table,
    labels: Codes,
    classes: LabelArray,
    weights: Floats,
    folds: int,
    copies: "Copies | None" = None,
) -> Floats:
    """Return how much of each row is in each fold, row by fold.

    Equal rows of one class are assigned to the folds in turn, and a row of weight 2 counts as two rows; the first fold
    depends on their content. Copies (`find_copies`) are all in that fold, because otherwise they would be scored by
    each other. Of other equal rows, as many stay together as are copies of one.

    bins: those of the cells, column by row. copies: those of these rows, if known.
    """
    names = np.array([crc32(repr(label).encode()) for label in classes.tolist()], dtype=np.uint64)
    contents = np.full(labels.size, GOLDEN)
    numeric = [column.column for column in columns if column.cuts is not None]
    numbers = iter(np.ascontiguousarray(table.numbers(numeric).T) if numeric else ())
    for column, own in zip(columns, bins, strict=True):
        cells = own.astype(np.uint64) if column.cuts is None else _read_digits(next(numbers))
        contents = _mix(contents ^ (cells + GOLDEN))
    rows = _mix(contents ^ names[labels])
    amounts = np.zeros((labels.size, folds))
    amounts[np.arange(labels.size), (rows % np.uint64(folds)).astype(np.int64)] = weights
    copies = find_copies(table, labels, weights) if copies is None else copies
    dealt, unit = np.flatnonzero(~copies.together), float(round(copies.usual))
    amounts[dealt] = unit * _deal(rows[dealt], weights[dealt] / unit, folds)
    return amounts


@dataclass(frozen=True)
class Copies:
    """Rows that are copies of each other, which are left out together.

    together: True for a row if all rows equal to it are its copies. usual: how often a row occurs, itself included; of
    rows that are equal by chance too, this many are copies. removed: weight left out with each row. extra: approximate
    number of rows that are copies of others. row: a number per row, shared by equal rows.
    """

    together: Flags
    usual: float
    removed: Floats
    extra: int
    row: Integers

    def take(self, rows: Integers) -> "Copies":
        """Return some of the rows; the number of copies stays that of all rows."""
        return Copies(self.together[rows], self.usual, self.removed[rows], self.extra, self.row[rows])

    @property
    def units(self) -> Integers:
        """A number per row, in the order of the rows; rows that must stay together share one."""
        if not self.extra:
            return np.arange(self.row.size)
        order = np.argsort(self.row, kind="stable")
        begins = np.flatnonzero(np.diff(self.row[order], prepend=-1))
        turn = np.empty(order.size, dtype=np.int64)
        turn[order] = np.arange(order.size) - np.repeat(begins, np.diff(np.append(begins, order.size)))
        part = np.where(self.together, 0, turn // round(self.usual))
        first = order[np.repeat(begins, np.diff(np.append(begins, order.size)))]
        own = np.empty(order.size, dtype=np.int64)
        own[order] = first
        _, at, unit = np.unique(own * order.size + part, return_index=True, return_inverse=True)
        return np.asarray(np.argsort(np.argsort(at, kind="stable"), kind="stable")[unit])


def find_copies(table: Table, labels: Codes, weights: Floats) -> Copies:
    """Tell copies of rows from rows that are equal by chance; a row of weight 2 is the row twice.

    Rows are equal if all their cells and their class are. How many rows would be equal by chance is estimated from rows
    that differ in one column: their weight times the odds of the cell in that column. Rows with the same cells and
    another class give an estimate too, and are not all copies. The largest estimate counts. Rows beyond it are copies;
    the more of all equal rows chance explains, the less it has to explain of the others. Where it explains hardly
    anything, the number of equal rows shows how often rows are copied.
    """
    every = np.arange(labels.size)
    nothing = Copies(np.zeros(labels.size, dtype=np.bool_), 1.0, np.minimum(weights, 1.0), 0, every)
    codes = _encode_cells(table)
    if not codes or not labels.size:
        return nothing
    seeds = np.arange(1 + len(codes), dtype=np.uint64) * GOLDEN
    parts = [_mix(cells + seed) for cells, seed in zip([labels.astype(np.uint64), *codes], seeds, strict=True)]
    row = np.sum(parts, axis=0, dtype=np.uint64)
    _, first, group = np.unique(row, return_index=True, return_inverse=True)
    weight = sum_at(group, weights, first.size)
    excess = np.maximum(weight - 1.0, 0.0)
    if not (excess > 1e-9).any() or (
        first.size < COPIES.few_distinct and weight.sum() > COPIES.max_repetitions * first.size
    ):
        return nothing
    cells = (row - parts[0])[first]
    alike = _sum_by_key(cells, weight)  # regardless of class
    chance = (alike - weight) * _compute_odds(parts[0][first], weight)
    for part in parts[1:]:
        own = part[first]
        others = _sum_by_key(cells - own, weight) - alike
        np.maximum(chance, others * _compute_odds(own, weight) * weight / alike, out=chance)
    explained = np.minimum(chance, excess).sum() / excess.sum()
    copied = (excess > 1e-9) & (alike - weight < 1e-9 * alike) & (chance < (1.0 - explained) * excess)
    beyond, rare = excess - chance, chance < COPIES.max_by_chance
    usual = 1.0 + max(float(weight[rare] @ beyond[rare]) / max(float(weight[rare].sum()), 1.0), 0.0)
    mean = 1.0 + max(float(beyond[rare].sum()) / max(int(rare.sum()), 1), 0.0)
    together = copied[group]
    removed = np.where(together, weight[group], np.minimum(weight[group], usual))
    extra = np.where(copied, np.maximum(beyond, 0.0), np.minimum(excess, weight * (1.0 - 1.0 / mean)))
    removed = np.where(removed > 1.0, removed, np.minimum(weights, 1.0))
    return Copies(together, usual, removed, round(float(extra.sum())), group)


def _compute_odds(values: Hashes, weight: Floats) -> Floats:
    """Return the odds of each of these values."""
    share = _sum_by_key(values, weight) / weight.sum()
    return np.asarray(share / np.maximum(1.0 - share, 1e-300))


def _sum_by_key(keys: Hashes, amounts: Floats) -> Floats:
    """Return, for each amount, the sum of all amounts with the same key."""
    place = np.unique(keys, return_inverse=True)[1]
    return np.asarray(sum_at(place, amounts, int(place.max()) + 1)[place])


def _encode_cells(table: Table) -> list[npt.NDArray[np.uint64]] | None:
    """Return integers for the cells of each column, equal if the cells are; None for sparse matrices."""
    if isinstance(table, SparseMatrix):
        return None
    if isinstance(table, Matrix):
        return [_read_digits(table.array[:, j]) for j in range(table.width)]
    found = []
    for j in range(table.width):
        cells = table.values([j])[0]
        if pa.types.is_floating(cells.type):
            found.append(_read_digits(cells.to_numpy(zero_copy_only=False)))
            continue
        if not pa.types.is_dictionary(cells.type):
            try:
                cells = cells.dictionary_encode()
            except pa.ArrowNotImplementedError:  # no family reads this type; the error is raised elsewhere
                continue
        found.append(pc.fill_null(cells.indices.cast(pa.int64()), -1).to_numpy(zero_copy_only=False).astype(np.uint64))
    return found


def _read_digits(numbers: npt.NDArray[np.generic]) -> Hashes:
    """Return the bits of numbers: the same for equal numbers, and for all missing ones."""
    doubles = np.ascontiguousarray(numbers, dtype=np.float64) + 0.0  # -0.0 is 0.0
    doubles[np.isnan(doubles)] = np.nan
    return doubles.view(np.uint64)


def _deal(rows: Hashes, weights: Floats, folds: int) -> Floats:
    """Return how much of each row each fold gets if equal rows are assigned in turn."""
    order = np.argsort(rows, kind="stable")
    ends = np.cumsum(weights[order])
    first = np.flatnonzero(np.concatenate([[True], np.diff(rows[order]) != 0])) if order.size else order
    before = np.repeat((ends - weights[order])[first], np.diff(np.append(first, order.size)))
    end = np.empty(order.size)
    end[order] = ends - before
    start = np.maximum(end - weights, 0.0)
    own = (rows % np.uint64(folds)).astype(np.int64)
    turn = (np.arange(folds)[None, :] - own[:, None]) % folds
    amounts = _share_until(end, turn, folds) - _share_until(start, turn, folds)
    amounts[amounts < 1e-9 * weights[:, None]] = 0.0
    lost = ~amounts.any(axis=1)  # weights that vanish beside those before them
    amounts[lost, own[lost]] = weights[lost]
    return amounts


def _share_until(amount: Floats, turn: npt.NDArray[np.int64], folds: int) -> Floats:
    """Return how much of this amount of equal rows each fold has."""
    whole = np.floor(amount / folds)
    rest = amount - folds * whole
    return np.asarray(whole[:, None] + np.clip(rest[:, None] - turn, 0.0, 1.0))


def _mix(numbers: Hashes) -> Hashes:
    """Return hashes of numbers, as the generator splitmix64 makes them."""
    z = (numbers ^ (numbers >> np.uint64(30))) * FIRST
    z = (z ^ (z >> np.uint64(27))) * SECOND
    return np.asarray(z ^ (z >> np.uint64(31)))


def correct_left_out_rows(
    corrections: Corrections,
    table: Table,
    labels: Codes,
    classes: LabelArray,
    weights: Floats,
    unknown: Flags | None = None,
) -> Floats:
    """Return the corrections of labeled rows, row by class, each by the tables learned without it.

    unknown: the unknown cells of the corrected columns, column by row.
    """
    hashed, bins = corrections.columns[: corrections.hashed], corrections.read_left_out(table)
    own = bins[: corrections.hashed] if bins.ndim == 2 else bins_of(hashed, table)
    amounts = assign_folds(hashed, own, table, labels, classes, weights, corrections.folds)
    out = np.zeros((labels.size, classes.size))
    corrections.add_left_out(bins, amounts, out, unknown)
    return out


@dataclass(frozen=True)
class Rows:
    """Rows to tune on: their table, class and weight.

    Their prior is their own class shares, so that what is learned from a sample does not compensate for a class that is
    over- or underrepresented in it. removed: how much is left out with each row of the counts of all rows, not only of
    these: the weight of all its copies. evidence: of the blocks of a tuning, row by block by class, each row scored by
    the others, if it is known. found_copies: the copies among these rows, if they are known.
    """

    table: Table
    labels: Codes
    weights: Floats
    log_prior: Floats
    threads: int | None = None
    advance: Advance = field(default=lambda done: None, compare=False)  # called after each candidate
    removed: Floats | None = None
    evidence: Floats | None = None
    found_copies: Copies | None = None
    budget: Budget = field(default=NO_LIMIT, compare=False)  # corrections stop growing when it is spent

    @classmethod
    def of(
        cls,
        table: Table,
        labels: Codes,
        weights: Floats | None,
        classes: int,
        max_rows: int,
        copies: Copies | None = None,
    ) -> "Rows":
        """Return the rows with a label and a weight, or a random sample of `max_rows` of them.

        copies: those of the given rows, if known.
        """
        every = np.ones(labels.size) if weights is None else weights
        usable = np.flatnonzero((labels >= 0) & (every > 0.0))
        if usable.size < labels.size:
            table, labels, every, copies = table.take(usable), labels[usable], every[usable], None
        kept, removed = sample_places(usable.size, max_rows), None
        if kept.size < usable.size:
            copies = find_copies(table, labels, every) if copies is None else copies
            table, labels, every, removed = table.take(kept), labels[kept], every[kept], copies.removed[kept]
            copies = None  # among the rows of the sample
        share = np.bincount(labels, every, classes)
        log_prior = log(share / max(share.sum(), 1e-300))
        return cls(table, labels, every, log_prior, removed=removed, found_copies=copies)

    @property
    def classes(self) -> int:
        return self.log_prior.size

    def among(self, classes: LabelArray, counts: Counts) -> "Rows":
        """Return the rows with the classes of the counts; classes without rows here have the prior of the counts."""
        labels = Labels(classes, self.labels).places_among(counts.classes)
        share = np.bincount(labels, self.weights, counts.classes.size) / max(self.weights.sum(), 1e-300)
        share = np.where(share > 0.0, share, counts.class_weight / max(counts.class_weight.sum(), 1e-300))
        return replace(self, labels=labels, log_prior=log(share / max(share.sum(), 1e-300)))

    @property
    def total(self) -> float:
        return float(self.weights.sum())

    @cached_property
    def copies(self) -> Copies:
        """Copies among these rows."""
        found = self.found_copies
        if found is not None and found.row.size == self.labels.size:
            return found
        return find_copies(self.table, self.labels, self.weights)

    @cached_property
    def reader(self) -> Readable:
        """The cells, which are converted to numbers only once."""
        return _NumbersReadOnce(self.table, {}) if isinstance(self.table, Frame) else self.table

    @property
    def left_out(self) -> LeftOutRows:
        """Each row, to be left out of the counts of these rows, with its copies."""
        return LeftOutRows(self.labels, self.copies.removed)

    def rows_to_leave_out(self, learned: bool) -> LeftOutRows:
        """Return the rows to be left out of counts of all rows if `learned`; else leave nothing out."""
        if not learned:
            return LeftOutRows(self.labels, np.zeros(self.labels.size))
        return LeftOutRows(self.labels, self.copies.removed if self.removed is None else self.removed)

    def some(self, max_rows: int) -> "Rows":
        """Return the rows, or a random sample of `max_rows` of them."""
        if self.labels.size <= max_rows:
            return self
        kept = sample_places(self.labels.size, max_rows)
        removed, evidence = (None if part is None else part[kept] for part in (self.removed, self.evidence))
        some = replace(self, table=self.table.take(kept), labels=self.labels[kept], weights=self.weights[kept])
        return replace(some, removed=removed, evidence=evidence, found_copies=self.copies.take(kept))

    def of_classes_present(self) -> "Rows":
        """Return the rows with only the classes that they have."""
        present, labels = np.unique(self.labels, return_inverse=True)
        if present.size == self.classes:
            return self
        share = np.exp(self.log_prior[present])
        return replace(self, labels=labels.astype(np.int32), log_prior=log(share / max(share.sum(), 1e-300)))

    def losses(self, evidence: Floats) -> Floats:
        """Return the log-loss of each block alone, to twelve places: rounding must not decide between equals."""
        own = evidence[np.arange(self.labels.size), :, self.labels] + self.log_prior[self.labels, None]
        joint = np.empty((self.classes, *evidence.shape[:2]))  # NumPy's reductions over a short last axis are slow
        for c, log_joint in enumerate(joint):
            np.add(evidence[:, :, c], self.log_prior[c], out=log_joint)
        top = joint.max(axis=0)
        impossible = top == -np.inf  # for every class: the posterior is the prior
        top[impossible] = 0.0
        joint -= top
        with np.errstate(invalid="ignore"):
            losses = log(np.exp(joint, out=joint).sum(axis=0)) + top - own
        if impossible.any():
            losses[impossible] = -self.log_prior[self.labels][np.nonzero(impossible)[0]]
        return np.asarray(self.weights @ losses / self.weights.sum()).round(12)


@dataclass(frozen=True)
class _NumbersReadOnce:
    """Arrow columns of which each is converted to numbers once; read: the numbers so far, by column."""

    frame: Frame
    read: dict[int, Floats]

    def numbers(self, columns: Sequence[int]) -> Floats:
        new = [column for column in columns if column not in self.read]
        self.read.update(zip(new, np.ascontiguousarray(self.frame.numbers(new).T), strict=True))
        return np.stack([self.read[column] for column in columns], axis=1)

    def values(self, columns: Sequence[int]) -> list[pa.Array]:
        return self.frame.values(columns)

    def amounts(self, columns: Sequence[int]) -> Floats:
        return self.numbers(columns)


def score_without_each(rows: Rows, family: Family, columns: Sequence[int], counted: dict[Any, Any]) -> Floats:
    """Return the evidence of each row by the statistic of the other rows.

    counted: keeps statistics for the next family.
    """
    cells = family.read(rows.reader, columns)
    key = family.statistic_key, tuple(columns)
    if key not in counted:
        counted[key] = family.count(cells, rows.labels, rows.weights, rows.classes)
    blocks = 1 if family.joint else len(columns)
    size = rows.labels.size
    out = np.zeros((size, blocks, rows.classes))

    def score(start: int) -> None:
        some = np.arange(start, min(start + step, size))
        family.score_left_out(
            counted[key], take_rows(cells, some), rows.left_out[some], np.arange(blocks), out[start : start + step]
        )

    step = max(SAMPLING.chunk_rows, -(-size // (rows.threads or CORES)))
    for _ in map_in_threads(score, range(0, size, step), rows.threads):
        pass
    rows.advance(1)
    return out


def is_number(table: Table, column: int) -> bool:
    """Return True if a column holds numbers, dates or times."""
    if isinstance(table, SparseMatrix):
        return False
    cells = table.values([column])
    return is_numeric(cells[0].type) if isinstance(cells, list) else True


def find_measure(table: Table, column: int) -> Measure:
    """Return what the numbers of a column measure."""
    cells = table.values([column])
    if not isinstance(cells, list) or not pa.types.is_temporal(cells[0].type):
        return "number"
    return "amount" if pa.types.is_duration(cells[0].type) else "position"
