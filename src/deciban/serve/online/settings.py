"""How a service learns on line: what it accepts, how often it saves, and how much it keeps."""

from dataclasses import dataclass
from math import isfinite

from deciban.errors import UsageError

SECONDS_OF_A_DAY = 86_400.0


@dataclass(frozen=True)
class LearnSettings:
    """How a service learns on line.

    new_classes: whether a label that the model does not know makes a class of its own, or is refused.
    decay, decay_every: after each so many learned rows all that was learned so far weighs `decay` times as much; None
    for never. It goes by rows and not by the clock, so that a replay is exact.
    retune_every: the evidence weights are learned anew after so many learned rows; None for never.
    snapshot_every, snapshot_seconds: the model file is written after so many changes, or so long after the first one.
    most_kept_rows, most_journal_bytes: rows that have an id are kept, to be recognised, relabelled and forgotten by it,
    until there are so many of them or the journal has come near this size; then the oldest are dropped.
    most_model_bytes: no rows are learned any more when the model file has become so large.
    most_pending, pending_seconds: rows that wait for their labels: how many, and how long, in seconds of service; they
    have no more than an eighth of most_journal_bytes.
    most_waiting, most_waiting_bytes: rows that wait to be learned, and bytes of those that wait to be kept; more are
    refused. most_classes: beyond so many no label makes a class.
    """

    new_classes: bool = False
    decay: float | None = None
    decay_every: int = 1_000
    retune_every: int | None = None
    snapshot_every: int = 10_000
    snapshot_seconds: float = 300.0
    most_kept_rows: int = 1_000_000
    most_journal_bytes: int = 1 << 30
    most_model_bytes: int = 1 << 30
    most_pending: int = 100_000
    pending_seconds: float = 7 * SECONDS_OF_A_DAY
    most_waiting: int = 20_000
    most_waiting_bytes: int = 64 << 20
    most_classes: int = 10_000

    @property
    def most_pending_bytes(self) -> int:
        """What rows that wait for their labels may take of the journal."""
        return self.most_journal_bytes // 8

    def check(self) -> None:
        """A UsageError that names the first setting that cannot be."""
        if self.decay is not None and not 0.0 < self.decay < 1.0:
            raise UsageError(f"decay={self.decay!r}: give a number between 0 and 1, or None for no decay")
        least = {"decay_every": 1, "retune_every": 1, "snapshot_every": 1, "most_waiting": 1, "most_model_bytes": 1}
        least |= {"most_kept_rows": 0, "most_pending": 0, "most_journal_bytes": 1 << 18}
        least |= {"most_waiting_bytes": 1, "most_classes": 1}
        for name, smallest in least.items():
            given = getattr(self, name)
            if given is None and name == "retune_every":
                continue
            if type(given) is not int or given < smallest:
                raise UsageError(f"{name}={given!r}: give a whole number that is at least {smallest}")
        for name in ("snapshot_seconds", "pending_seconds"):
            if not (isfinite(getattr(self, name)) and getattr(self, name) > 0.0):
                raise UsageError(f"{name}={getattr(self, name)!r}: give a number of seconds above 0")
