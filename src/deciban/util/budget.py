"""Wall time that a fit may take, and how many rows there is time for."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from numbers import Real
from typing import TypeVar

from deciban.errors import Argument, UsageError

T = TypeVar("T")

# Share of the time left that a run over more rows is expected to take: the estimate may be too low.
CAREFUL = 0.7

# A run is repeated only with at least this many times as many rows.
WORTHWHILE = 2.0

_compiled = 0.0  # seconds, see `exclude_seconds`


def exclude_seconds(seconds: float) -> None:
    """Do not count these seconds in any budget: kernels were compiled, which happens once per machine."""
    global _compiled
    _compiled += seconds


def _read_clock() -> float:
    return time.monotonic() - _compiled


@dataclass(frozen=True)
class Budget:
    """Seconds of wall time from the start; infinite by default, and then nothing depends on time."""

    seconds: float = math.inf
    start: float = field(default_factory=_read_clock)

    @classmethod
    def of(cls, max_seconds: float | None) -> "Budget":
        """Return a budget that starts now; raise a UsageError if `max_seconds` is not a positive number."""
        if max_seconds is None:
            return cls()
        if isinstance(max_seconds, bool) or not isinstance(max_seconds, Real) or not max_seconds > 0.0:
            raise UsageError("expected a positive number of seconds", parameter=Argument("max_seconds", max_seconds))
        return cls(float(max_seconds))

    @property
    def limited(self) -> bool:
        return self.seconds < math.inf

    @property
    def used(self) -> float:
        """Seconds since the start."""
        return _read_clock() - self.start

    @property
    def left(self) -> float:
        """Seconds left; negative if more were used."""
        return self.seconds - self.used

    @property
    def spent(self) -> bool:
        """True if no time is left."""
        return self.left <= 0.0

    def part(self, share: float) -> "Budget":
        """Return the budget that ends when this share of the time left is used."""
        return Budget(self.used + share * self.left, self.start) if self.limited else self

    def without(self, seconds: float) -> "Budget":
        """Return the budget that ends earlier by these seconds."""
        return Budget(self.seconds - seconds, self.start)

    def run_with_affordable_rows(self, run: Callable[[int], T], rows: int, first: int) -> T:
        """Return `run(rows)`, or with less time, the result of a run with fewer rows.

        Without a limit it is run once. With one, the first run has `first` rows. Its time shows how many rows are
        affordable, and so on.
        """
        if not self.limited or rows <= WORTHWHILE * first:
            return run(rows)
        tried = first
        while True:
            before = self.used
            result = run(tried)
            rate = tried / max(self.used - before, 1e-9)
            affordable = min(int(rate * CAREFUL * max(self.left, 0.0)), rows)
            if affordable < min(WORTHWHILE * tried, rows) or tried == rows:
                return result
            tried = affordable


# The budget of a call without `max_seconds`.
NO_LIMIT = Budget()
