"""Deadlines of many tasks, kept by one timer: `asyncio.timeout` for each request costs more than all the guard does."""

import asyncio
from types import TracebackType
from typing import Self

# How often the timer looks within the shortest deadline; none passes later than by this part of it.
LOOKS_WITHIN_A_DEADLINE = 20


class Deadline:
    """``with deadlines.within(seconds):`` raises TimeoutError in its task when the time is over.

    is_over: whether it is. A TimeoutError while it is not comes from something else.
    """

    __slots__ = ("_deadlines", "_task", "due", "is_over")

    def __init__(self, deadlines: "Deadlines", due: float) -> None:
        self._deadlines = deadlines
        self._task = asyncio.current_task()
        self.due = due
        self.is_over = False

    def __enter__(self) -> Self:
        self._deadlines.open.add(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._deadlines.open.discard(self)
        if self.is_over and self._task is not None and self._task.uncancel() <= 0 and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def stop(self) -> None:
        """Stop the task."""
        self.is_over = True
        self._deadlines.open.discard(self)
        if self._task is not None:
            self._task.cancel()


class Deadlines:
    """The deadlines that are open, in one event loop. The timer runs while there are any."""

    def __init__(self) -> None:
        self.open: set[Deadline] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._every = 1.0

    def within(self, seconds: float) -> Deadline:
        """A deadline so many seconds from now, for the task that asks."""
        loop = asyncio.get_running_loop()
        every = seconds / LOOKS_WITHIN_A_DEADLINE
        if self._timer is None or self._loop is not loop or every < self._every:
            self._every = every if self._timer is None else min(every, self._every)
            if self._timer is not None:
                self._timer.cancel()
            self._loop, self._timer = loop, loop.call_later(self._every, self._look)
        return Deadline(self, loop.time() + seconds)

    def _look(self) -> None:
        assert self._loop is not None, "the timer was set"
        now = self._loop.time()
        for deadline in [deadline for deadline in self.open if deadline.due <= now]:
            deadline.stop()
        self._timer = self._loop.call_later(self._every, self._look) if self.open else None
