"""Rows to tune on, and the evidence of each by what is counted of the others."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from deciban.families import Family
from deciban.families.base.contract import LeftOut, Measure, cells_of
from deciban.model.counts import Counts
from deciban.model.folds_by_content import Copies, find_copies
from deciban.model.posterior import log_normalize
from deciban.tables.cells import is_numeric
from deciban.tables.labels import LabelArray, Labels
from deciban.tables.row_sampling import sampled_places
from deciban.tables.table import SparseMatrix, Table
from deciban.util.arrays import CORES, Codes, Floats, log
from deciban.util.parallel import map_in_threads
from deciban.util.progress import Advance

# Fewer rows than this are not tuned.
FEWEST_ROWS = 20

# Rows that are worth a thread of their own.
CHUNK_ROWS = 500


@dataclass(frozen=True)
class Rows:
    """Rows to tune on: their table, class and weight; their prior is their own shares of the classes.

    So what is learned from a sample does not make up for a class of which the sample has too few or too many rows.
    removed: how much is left out with each row of counts of all rows, not only of these: the weight of all its copies.
    """

    table: Table
    labels: Codes
    weights: Floats
    log_prior: Floats
    threads: int | None = None
    advance: Advance = field(default=lambda done: None, compare=False)  # called for every candidate that was tried
    removed: Floats | None = None

    @classmethod
    def of(cls, table: Table, labels: Codes, weights: Floats | None, classes: int, most: int) -> "Rows":
        """The rows that have a label and a weight, or a random sample of `most` of them."""
        every = np.ones(labels.size) if weights is None else weights
        usable = np.flatnonzero((labels >= 0) & (every > 0.0))
        if usable.size < labels.size:
            table, labels, every = table.take(usable), labels[usable], every[usable]
        kept, removed = sampled_places(usable.size, most), None
        if kept.size < usable.size:
            removed = find_copies(table, labels, every).removed[kept]
            table, labels, every = table.take(kept), labels[kept], every[kept]
        share = np.bincount(labels, every, classes)
        log_prior = log(share / max(share.sum(), 1e-300))
        return cls(table, labels, every, log_prior, removed=removed)

    @property
    def classes(self) -> int:
        return self.log_prior.size

    def among(self, classes: LabelArray, counts: Counts) -> "Rows":
        """The same rows with the classes of the counts; one that they do not have is as probable as the counts say."""
        labels = Labels(classes, self.labels).places_among(counts.classes)
        share = np.bincount(labels, self.weights, counts.classes.size) / max(self.weights.sum(), 1e-300)
        share = np.where(share > 0.0, share, counts.class_weight / max(counts.class_weight.sum(), 1e-300))
        return replace(self, labels=labels, log_prior=log(share / max(share.sum(), 1e-300)))

    @property
    def total(self) -> float:
        return float(self.weights.sum())

    @cached_property
    def copies(self) -> Copies:
        """Which of these rows are copies of others."""
        return find_copies(self.table, self.labels, self.weights)

    @property
    def left_out(self) -> LeftOut:
        """Each row to be left out of counts of these rows, with its copies."""
        return LeftOut(self.labels, self.copies.removed)

    def rows_to_leave_out(self, learned: bool) -> LeftOut:
        """Each row to be left out of counts of all rows if it was `learned`, or to be scored as it is."""
        if not learned:
            return LeftOut(self.labels, np.zeros(self.labels.size))
        return LeftOut(self.labels, self.copies.removed if self.removed is None else self.removed)

    def some(self, most: int) -> "Rows":
        if self.labels.size <= most:
            return self
        kept = sampled_places(self.labels.size, most)
        removed = None if self.removed is None else self.removed[kept]
        some = replace(self, table=self.table.take(kept), labels=self.labels[kept], weights=self.weights[kept])
        return replace(some, removed=removed)

    def of_classes_present(self) -> "Rows":
        """The same rows as if there were no other classes than theirs."""
        present, labels = np.unique(self.labels, return_inverse=True)
        if present.size == self.classes:
            return self
        share = np.exp(self.log_prior[present])
        return replace(self, labels=labels.astype(np.int32), log_prior=log(share / max(share.sum(), 1e-300)))

    def losses(self, evidence: Floats) -> Floats:
        """The log-loss of each block alone, to twelve places: digits of rounding are not to choose between equals."""
        share = self.weights / self.weights.sum()
        losses = np.empty(evidence.shape[1])
        for b in range(evidence.shape[1]):
            log_posterior = log_normalize(evidence[:, b] + self.log_prior, self.log_prior, logarithm=True)[0]
            losses[b] = -(share @ log_posterior[np.arange(share.size), self.labels])
        return losses.round(12)


def left_out_evidence(rows: Rows, family: Family, columns: Sequence[int], counted: dict[Any, Any]) -> Floats:
    """The evidence of each row by the statistic of the other rows; `counted` keeps statistics for the next family."""
    cells = family.read(rows.table, columns)
    key = family.counts, tuple(columns)
    if key not in counted:
        counted[key] = family.count(cells, rows.labels, rows.weights, rows.classes)
    blocks = 1 if family.joint else len(columns)
    size = rows.labels.size
    out = np.zeros((size, blocks, rows.classes))

    def score(start: int) -> None:
        some = np.arange(start, min(start + step, size))
        family.score_left_out(
            counted[key], cells_of(cells, some), rows.left_out[some], np.arange(blocks), out[start : start + step]
        )

    step = max(CHUNK_ROWS, -(-size // (rows.threads or CORES)))
    for _ in map_in_threads(score, range(0, size, step), rows.threads):
        pass
    rows.advance(1)
    return out


def is_number(table: Table, column: int) -> bool:
    """Whether a column holds numbers, dates or times."""
    if isinstance(table, SparseMatrix):
        return False
    cells = table.values([column])
    return is_numeric(cells[0].type) if isinstance(cells, list) else True


def measure_of(table: Table, column: int) -> Measure:
    """What the numbers of a column measure."""
    cells = table.values([column])
    if not isinstance(cells, list) or not pa.types.is_temporal(cells[0].type):
        return "number"
    return "amount" if pa.types.is_duration(cells[0].type) else "position"
