"""Waiting that can be interrupted: what takes long in C is done on a thread of its own.

A signal is handled when the main thread runs Python again. While a driver waits for a server, that may be never.
"""

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

T = TypeVar("T")


def started(action: Callable[[], T]) -> "Future[T]":
    """What the action will have returned, or raised; nobody waits for it when the process ends."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(action())
        except BaseException as problem:
            future.set_exception(problem)

    Thread(target=run, name="deciban-database", daemon=True).start()
    return future
