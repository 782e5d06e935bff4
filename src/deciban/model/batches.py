"""Parallel counting of rows in batches."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from threading import Lock

import numpy as np

from deciban.model.counts import Counts, Guard
from deciban.schema.schema import Schema
from deciban.sources.streams import Examples
from deciban.tables.examples import LabeledTable
from deciban.tables.labels import LabelArray
from deciban.tables.table import Frame, Table
from deciban.util.arrays import Codes, Floats, even_part
from deciban.util.parallel import map_in_threads, one_blas_thread
from deciban.util.progress import progress

# Maximum number of rows per batch. Batches depend only on the table, so that the number of threads never changes the
# result.
BATCH_ROWS = 1 << 16

# Tables with at most this many rows are not split: the overhead would exceed the gain.
UNCUT_ROWS = 64

# Texts with fewer bytes than this are not split.
UNCUT_TEXT = 2 << 20


def row_ranges(rows: int, max_rows: int | None = None) -> list[tuple[int, int]]:
    """Return the (start, stop) rows of each batch; one empty range for an empty table.

    Batches have equal sizes. If there are several, their number is even.
    """
    size = BATCH_ROWS if max_rows is None else min(max_rows, BATCH_ROWS)
    if rows > size:
        size = even_part(rows, size)
    return [(start, min(start + size, rows)) for start in range(0, max(rows, 1), size)]


def rows_per_batch(table: Table, max_text: int, halved: bool = False) -> int:
    """Return the maximum number of rows per batch, such that a batch has about `max_text` bytes of text.

    If `halved`, a batch also has at most half of all text, so that two threads have work.
    """
    if table.rows <= UNCUT_ROWS or not isinstance(table, Frame):
        return BATCH_ROWS
    size = table.text_bytes
    if halved:
        max_text = max(UNCUT_TEXT, min(max_text, -(-size // 2)))
    return BATCH_ROWS if size <= max_text else max(UNCUT_ROWS, table.rows * max_text // size)


_ONES = np.ones(BATCH_ROWS)

# Approximate maximum of text bytes per counted batch. It is large because vocabularies are merged batch by batch.
COUNTED_TEXT = 24 << 20


@dataclass(frozen=True)
class Batch:
    """Rows of a table with their labels and weights."""

    table: Table
    classes: LabelArray
    codes: Codes
    weights: Floats
    first_row: int


def batches(examples: Examples, schema: Schema) -> Iterable[Batch]:
    """Return the rows in batches with the columns of the schema; a list if the table is in memory."""
    if isinstance(examples, LabeledTable):
        return list(_batches([examples], schema, halved=True))
    return _batches(examples.pieces(), schema)


def _batches(pieces: Iterable[LabeledTable], schema: Schema, halved: bool = False) -> Iterator[Batch]:
    for piece in pieces:
        table, labels, weights = schema.table_as_learned(piece.table, piece.first_row), piece.labels, piece.weights
        for start, stop in row_ranges(table.rows, rows_per_batch(table, COUNTED_TEXT, halved)):
            part = _ONES[: stop - start] if weights is None else weights[start:stop]
            first = piece.first_row + start
            yield Batch(table.slice(start, stop), labels.classes, labels.codes[start:stop], part, first)


def count(batch: Batch, schema: Schema) -> Counts:
    """Return the counts of one batch.

    Rows without a label are only numbered. Rows with weight 0 are ignored.
    """
    table, codes, weights = batch.table, batch.codes, batch.weights
    there = (codes >= 0) & (weights > 0.0)
    guard = Guard(schema, batch.first_row)
    if not there.all():
        rows = np.flatnonzero(there)
        table, codes, weights = table.take(rows), codes[rows], weights[rows]
        guard = Guard(schema, batch.first_row, rows)
    statistics = []
    for p, group in enumerate(schema.groups):
        cells = guard(p, group.family.read, table, group.columns)
        statistics.append(guard(p, group.family.count, cells, codes, weights, batch.classes.size))
    return Counts(
        schema=schema,
        classes=batch.classes,
        class_weight=np.bincount(codes, weights, batch.classes.size).astype(np.float64),
        statistics=tuple(statistics),
        rows=codes.size,
        unlabeled=int(((batch.codes < 0) & (batch.weights > 0.0)).sum()),
    )


def count_batches(
    rows: Iterable[Batch], start: Counts, threads: int | None = None, expected: int | None = None
) -> Counts:
    """Return `start`, which must be empty, plus the counts of all batches, added in order as a binary tree."""
    tree = _Tree()

    def add(numbered: tuple[int, Batch]) -> int:
        place, batch = numbered
        counts = count(batch, start.schema)
        tree.add(place, start + counts if start.declared else counts)  # raises for undeclared labels
        return counts.rows

    items = list(enumerate(rows)) if isinstance(rows, Sequence) else enumerate(rows)
    with one_blas_thread(), progress("counting", "rows", expected) as advance:
        for more in map_in_threads(add, items, threads):
            advance(more)
    return tree.total(start).drop_empty_classes()


def add_up(parts: Iterable[Counts], start: Counts) -> Counts:
    """Return `start`, which must be empty, plus all parts, added in order as a binary tree."""
    tree = _Tree()
    for place, counts in enumerate(parts):
        tree.add(place, counts)
    return tree.total(start).drop_empty_classes()


class _Tree:
    """Binary tree that adds counts arriving in any order.

    Counts of similar size are added, so that few additions involve large ones. The thread that brings the second of two
    neighbors adds them, so that no thread waits for another.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._waiting: dict[tuple[int, int], Counts] = {}  # by height in the tree and index at that height

    def add(self, place: int, counts: Counts) -> None:
        height = 0
        while (neighbor := self._neighbor_of(height, place, counts)) is not None:
            counts = neighbor + counts if place % 2 else counts + neighbor
            height, place = height + 1, place // 2

    def _neighbor_of(self, height: int, place: int, counts: Counts) -> Counts | None:
        """Return the counts to add these to, or keep these and return None if the others have not arrived."""
        with self._lock:
            neighbor = self._waiting.pop((height, place ^ 1), None)
            if neighbor is None:
                self._waiting[height, place] = counts
            return neighbor

    def total(self, start: Counts) -> Counts:
        """Return `start` plus all counts that arrived, in order."""
        subtotals = [self._waiting[key] for key in sorted(self._waiting)]  # the lowest subtotals cover the last batches
        return start + reduce(lambda later, earlier: earlier + later, subtotals) if subtotals else start
