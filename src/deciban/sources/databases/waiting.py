"""Waiting that can be interrupted: what takes long in C is done on a thread of its own.

A signal is handled when the main thread runs Python again. While a driver waits for a server, that may be never.
"""

from collections.abc import Callable
from concurrent.futures import Future, wait
from threading import Thread
from typing import TypeVar

T = TypeVar("T")

# Seconds after which one looks for signals: libraries change how they are handled, so that they do not end a wait.
LOOK = 0.2


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


def result_of(future: "Future[T]") -> T:
    """What was returned or raised, for which is waited."""
    while not future.done():
        wait([future], LOOK)
    return future.result()
