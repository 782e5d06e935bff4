"""Work on threads, with results in the order of the items."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeVar

from deciban.util.arrays import CORES

T = TypeVar("T")
R = TypeVar("R")


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit the BLAS library to one thread per calling thread, in a `with` block."""
    with _blas().limit(limits=1, user_api="blas"):
        yield


@cache
def _blas() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def map_in_threads(action: Callable[[T], R], items: Iterable[T], threads: int | None = None) -> Iterator[R]:
    """Yield action(item) for each item, in order, computed on threads (default: all cores)."""
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
                    future.result()  # an earlier error is raised first, as on one thread
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
