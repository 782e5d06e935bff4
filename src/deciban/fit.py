"""Batches on threads: counted and added up, or scored."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, reduce
from threading import Lock
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from deciban.arrays import CORES, Codes, Floats, even_part
from deciban.data.examples import Examples, Labelled
from deciban.data.labels import LabelArray
from deciban.data.schema import Schema
from deciban.data.tables import Frame, Table
from deciban.model import Counts, Guard, Model
from deciban.progress import progress

# Rows of one batch at most. Batches depend on the table alone, so that threads never change a bit of the result.
BATCH_ROWS = 1 << 16

# So many rows are never cut into batches.
FEW_ROWS = 64

_ONES = np.ones(BATCH_ROWS)

# Bytes of text of one batch that is counted, and of one that is scored, at most and about. Vocabularies are added batch
# by batch, so the former are large; scores are small. FEW_TEXT is never cut.
BATCH_TEXT = 24 << 20
SCORED_TEXT = 2 << 20
FEW_TEXT = 2 << 20

# Scores of one batch at most: they stay in the cache, and memory stays bounded when there are many classes.
MOST_SCORES = 1 << 18

# From the log joint of some rows and the log prior to what is asked for.
Finish = Callable[[Floats, Floats], npt.NDArray[Any]]

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


def row_ranges(rows: int, most: int | None = None) -> list[tuple[int, int]]:
    """The first row of each batch and the one after its last; one empty range where there are no rows.

    Batches are equally long, and if there are several their number is even.
    """
    size = BATCH_ROWS if most is None else min(most, BATCH_ROWS)
    if rows > size:
        size = even_part(rows, size)
    return [(start, min(start + size, rows)) for start in range(0, max(rows, 1), size)]


def batches(examples: Examples, schema: Schema) -> Iterable[Batch]:
    """The rows cut into batches, with the columns of the schema; of a table in memory all at once."""
    if isinstance(examples, Labelled):
        return list(_batches([examples], schema, halved=True))
    return _batches(examples.pieces(), schema)


def _batches(pieces: Iterable[Labelled], schema: Schema, halved: bool = False) -> Iterator[Batch]:
    for piece in pieces:
        table, labels, weights = schema.fitting(piece.table, piece.first_row), piece.labels, piece.weights
        for start, stop in row_ranges(table.rows, _most_rows(table, BATCH_TEXT, halved)):
            part = _ONES[: stop - start] if weights is None else weights[start:stop]
            first = piece.first_row + start
            yield Batch(table.slice(start, stop), labels.classes, labels.codes[start:stop], part, first)


def _most_rows(table: Table, text: int, halved: bool = False) -> int:
    """The rows of one batch at most, which has no more than so many bytes of text, about; `halved`: or half of all."""
    if table.rows <= FEW_ROWS or not isinstance(table, Frame):
        return BATCH_ROWS
    size = table.text_bytes
    if halved:
        text = max(FEW_TEXT, min(text, -(-size // 2)))
    return BATCH_ROWS if size <= text else max(FEW_ROWS, table.rows * text // size)


def count(batch: Batch, schema: Schema) -> Counts:
    """The counts of one batch. Rows without a label are left out and their number kept; weight 0 is no row at all."""
    table, codes, weights = batch.table, batch.codes, batch.weights
    there = (codes >= 0) & (weights > 0.0)
    guard = Guard(schema, batch.first_row)
    if not there.all():
        rows = np.flatnonzero(there)
        table, codes, weights = table.take(rows), codes[rows], weights[rows]
        guard = Guard(schema, batch.first_row, rows)
    statistics = []
    for p, part in enumerate(schema.parts):
        cells = guard(p, part.family.read, table, part.columns)
        statistics.append(guard(p, part.family.count, cells, codes, weights, batch.classes.size))
    return Counts(
        schema=schema,
        classes=batch.classes,
        class_weight=np.bincount(codes, weights, batch.classes.size).astype(np.float64),
        statistics=tuple(statistics),
        rows=codes.size,
        unlabelled=int(((batch.codes < 0) & (batch.weights > 0.0)).sum()),
    )


def fold(rows: Iterable[Batch], start: Counts, threads: int | None = None, expected: int | None = None) -> Counts:
    """`start`, which has counted nothing, and the counts of all batches, added up in their order as a binary tree."""
    tree = _Tree()

    def add(numbered: tuple[int, Batch]) -> int:
        place, batch = numbered
        counts = count(batch, start.schema)
        tree.add(place, start + counts if start.declared else counts)  # refuses a label that is not among the classes
        return counts.rows

    items = list(enumerate(rows)) if isinstance(rows, Sequence) else enumerate(rows)
    with one_blas_thread(), progress("counting", "rows", expected) as advance:
        for more in in_order(add, items, threads):
            advance(more)
    return tree.total(start).without_empty_classes()


def scored(
    model: Model, table: Table, finish: Finish, full: bool = False, threads: int | None = None, first_row: int = 0
) -> npt.NDArray[Any]:
    """finish(log joint, log prior) of all rows of a table that fits the model, batch by batch on threads."""

    most = min(_most_rows(table, SCORED_TEXT), max(1, MOST_SCORES // model.classes.size))
    if table.rows <= most:
        return finish(model.log_joint(table, first_row, full), model.log_prior)
    nothing = finish(np.empty((0, model.classes.size)), model.log_prior)
    result = np.empty((table.rows, *nothing.shape[1:]), nothing.dtype)

    def fill(rows: tuple[int, int]) -> None:
        joint = model.log_joint(table.slice(*rows), first_row + rows[0], full)
        result[slice(*rows)] = finish(joint, model.log_prior)

    deque(in_order(fill, row_ranges(table.rows, most), threads), maxlen=0)
    return result


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """While it lasts, matrices are multiplied by the thread that asks: ours would wait for those of the library."""
    with _blas().limit(limits=1, user_api="blas"):
        yield


@cache
def _blas() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def in_order(action: Callable[[T], R], items: Iterable[T], threads: int | None = None) -> Iterator[R]:
    """action(item) of each item, in their order, a few at a time on threads."""
    workers = threads or CORES
    if workers == 1 or (isinstance(items, Sequence) and len(items) < 2):
        yield from map(action, items)
        return
    with ThreadPoolExecutor(workers) as pool:
        running: deque[Future[R]] = deque()

        def source() -> Iterator[T]:
            try:
                yield from items
            except Exception:
                for future in running:
                    future.result()  # whatever went wrong before is told first, as on one thread
                raise

        try:
            for item in source():
                running.append(pool.submit(action, item))
                if len(running) == workers + 1:
                    yield running.popleft().result()
            while running:
                yield running.popleft().result()
        finally:
            for future in running:
                future.cancel()


class _Tree:
    """Adds counts as a binary tree of their order, in whatever order they come: equal heaps, so few large ones.

    Whoever brings the second of two that belong together adds them, so that nobody waits for anybody.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._waiting: dict[tuple[int, int], Counts] = {}  # by their height in the tree and their place among equals

    def add(self, place: int, counts: Counts) -> None:
        height = 0
        while (neighbour := self._neighbour_of(height, place, counts)) is not None:
            counts = neighbour + counts if place % 2 else counts + neighbour
            height, place = height + 1, place // 2

    def _neighbour_of(self, height: int, place: int, counts: Counts) -> Counts | None:
        """What they are to be added to; if it is not there yet, they wait for it."""
        with self._lock:
            neighbour = self._waiting.pop((height, place ^ 1), None)
            if neighbour is None:
                self._waiting[height, place] = counts
            return neighbour

    def total(self, start: Counts) -> Counts:
        """All that came, and `start` before it."""
        heaps = [self._waiting[key] for key in sorted(self._waiting)]  # the first are the last ones, which are small
        return start + reduce(lambda behind, before: before + behind, heaps) if heaps else start
