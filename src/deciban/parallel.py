"""Batches of rows, and work on them by threads in their order."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

from deciban.arrays import CORES, even_part
from deciban.tables.table import Frame, Table

# Rows of one batch at most. Batches depend on the table alone, so that threads never change a bit of the result.
BATCH_ROWS = 1 << 16


# So many rows are never cut into batches.
FEW_ROWS = 64


T = TypeVar("T")


R = TypeVar("R")


def row_ranges(rows: int, most: int | None = None) -> list[tuple[int, int]]:
    """The first row of each batch and the one after its last; one empty range where there are no rows.

    Batches are equally long, and if there are several their number is even.
    """
    size = BATCH_ROWS if most is None else min(most, BATCH_ROWS)
    if rows > size:
        size = even_part(rows, size)
    return [(start, min(start + size, rows)) for start in range(0, max(rows, 1), size)]


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """While it lasts, matrices are multiplied by the thread that asks: ours would wait for those of the library."""
    with _blas().limit(limits=1, user_api="blas"):
        yield


@cache
def _blas() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def map_in_threads(action: Callable[[T], R], items: Iterable[T], threads: int | None = None) -> Iterator[R]:
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


FEW_TEXT = 2 << 20


def rows_of_a_batch(table: Table, text: int, halved: bool = False) -> int:
    """The rows of one batch at most, which has no more than so many bytes of text, about; `halved`: or half of all."""
    if table.rows <= FEW_ROWS or not isinstance(table, Frame):
        return BATCH_ROWS
    size = table.text_bytes
    if halved:
        text = max(FEW_TEXT, min(text, -(-size // 2)))
    return BATCH_ROWS if size <= text else max(FEW_ROWS, table.rows * text // size)
