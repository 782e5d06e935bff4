"""The fold: batches to counts to one sum, on threads."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from deciban.arrays import Codes, Floats
from deciban.data.labels import LabelArray, Labels
from deciban.data.schema import Schema
from deciban.data.tables import Table
from deciban.model import Counts, Guard

# Rows of one batch. Fixed, so that the number of threads never changes a bit of the result.
BATCH_ROWS = 1 << 16

_ONES = np.ones(BATCH_ROWS)

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class Batch:
    """Some rows of a table with their labels and weights."""

    table: Table
    classes: LabelArray
    codes: Codes
    weights: Floats
    first_row: int


def row_ranges(rows: int) -> Iterator[tuple[int, int]]:
    """The first and the last-but-one row of each batch; one empty range where there are no rows."""
    for start in range(0, max(rows, 1), BATCH_ROWS):
        yield start, min(start + BATCH_ROWS, rows)


def batches(table: Table, labels: Labels, weights: Floats | None) -> Iterator[Batch]:
    """The table cut into batches."""
    for start, stop in row_ranges(table.rows):
        part = _ONES[: stop - start] if weights is None else weights[start:stop]
        yield Batch(table.slice(start, stop), labels.classes, labels.codes[start:stop], part, start)


def count(batch: Batch, schema: Schema) -> Counts:
    """The counts of one batch. Rows without a label are left out, and their number kept."""
    size = batch.classes.size
    known = batch.codes >= 0
    whole = bool(known.all())
    codes, weights = (batch.codes, batch.weights) if whole else (batch.codes[known], batch.weights[known])
    statistics = []
    guard = Guard(schema, batch.first_row)
    for p, part in enumerate(schema.parts):
        cells = guard(p, part.family.read, batch.table, part.columns)
        statistics.append(guard(p, part.family.count, cells, batch.codes, batch.weights, size))
    unlabelled = batch.table.rows - codes.size
    return Counts(
        schema=schema,
        classes=batch.classes,
        class_weight=np.bincount(codes, weights, size).astype(np.float64),
        statistics=tuple(statistics),
        rows=codes.size,
        unlabelled=unlabelled,
    )


def fold(rows: Iterable[Batch], start: Counts, threads: int | None = None) -> Counts:
    """`start` and the counts of all batches, added up in their order."""
    total = start
    for counts in in_order(lambda batch: count(batch, start.schema), rows, threads):
        total = total + counts
    return total.without_empty_classes()


def in_order(action: Callable[[T], R], items: Iterable[T], threads: int | None = None) -> Iterator[R]:
    """action(item) of each item, in their order, a few at a time on threads."""
    workers = threads or os.cpu_count() or 1
    queue = deque(items)
    if workers == 1 or len(queue) == 1:
        yield from map(action, queue)
        return
    with ThreadPoolExecutor(workers) as pool:
        running: deque[Future[R]] = deque()
        try:
            while queue or running:
                while queue and len(running) < 2 * workers:
                    running.append(pool.submit(action, queue.popleft()))
                yield running.popleft().result()
        finally:
            for future in running:
                future.cancel()
