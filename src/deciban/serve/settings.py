"""Settings of a service: each default is written here once, and the command's options take theirs from here."""

import ipaddress
from dataclasses import dataclass, field, fields
from math import isfinite
from typing import Any, Self

from deciban.errors import Argument, UsageError

# Names of this machine that only programs on it can reach it by.
LOOPBACK_NAMES = ("localhost", "ip6-localhost")

DAY_SECONDS = 86_400.0


@dataclass(frozen=True)
class RequestSettings:
    """Limits of requests.

    max_body_bytes, max_rows, max_columns: of one request. max_held_bytes: of all bodies that are in memory at a time.
    time_limit: seconds within which a body must have come in. answer_limit: seconds within which it is answered.
    max_requests: worked on at a time. linger_limit: seconds for which the rest of a rejected body is read and thrown
    away, so that the client gets to read why.
    """

    max_body_bytes: int = 16 << 20
    max_held_bytes: int = 256 << 20
    max_rows: int = 100_000
    max_columns: int = 10_000
    time_limit: float = 30.0
    answer_limit: float = 60.0
    max_requests: int = 256
    linger_limit: float = 1.0


@dataclass(frozen=True)
class ConnectionSettings:
    """Limits of connections.

    head_limit: seconds within which the head of a request must have come in, from its first byte or, for the first
    request, from when the client connected. send_limit: seconds within which a client has read its answer, once that is
    ready. idle_limit: seconds after which a connection without requests is closed. drain_limit: seconds that requests
    under way have when the service ends. max_head_bytes, max_headers, max_url_bytes: of one request. max_pipelined:
    requests that wait behind one that is not answered yet. max_connections: open at a time.
    max_connections_per_address: of them, those of one address (of one network of IPv6). A connection beyond these may
    only ask for /health/… and /metrics.
    """

    head_limit: float = 10.0
    send_limit: float = 30.0
    idle_limit: float = 60.0
    drain_limit: float = 30.0
    max_head_bytes: int = 16 << 10
    max_headers: int = 64
    max_url_bytes: int = 8 << 10
    max_pipelined: int = 8
    max_connections: int = 1_000
    max_connections_per_address: int = 250


@dataclass(frozen=True)
class LearnSettings:
    """Settings of online learning.

    new_classes: whether an unknown label makes a class of its own, or is rejected.
    decay, decay_every: after every `decay_every` learned rows all that was learned so far weighs `decay` times as much;
    None for never. It goes by rows and not by the clock, so that a replay is exact.
    retune_every: the evidence weights are learned again after this number of learned rows; None for never.
    snapshot_every, snapshot_seconds: the model file is written after this number of changes, or this long after the
    first one.
    max_kept_rows, max_journal_bytes: rows with an id are kept, to be recognized, relabeled and forgotten by it, until
    there are more of them or the journal comes near this size; then the oldest are dropped.
    max_model_bytes: nothing is learned any more when the model file is larger.
    max_pending, pending_seconds: rows that wait for their labels: how many, and how long, in seconds of uptime; they
    take at most an eighth of max_journal_bytes.
    max_waiting_rows, max_waiting_bytes: rows that wait to be learned, and bytes of those that wait to be kept; more are
    rejected. max_classes: beyond this number no label makes a class.
    """

    new_classes: bool = False
    decay: float | None = None
    decay_every: int = 1_000
    retune_every: int | None = None
    snapshot_every: int = 10_000
    snapshot_seconds: float = 300.0
    max_kept_rows: int = 1_000_000
    max_journal_bytes: int = 1 << 30
    max_model_bytes: int = 1 << 30
    max_pending: int = 100_000
    pending_seconds: float = 7 * DAY_SECONDS
    max_waiting_rows: int = 20_000
    max_waiting_bytes: int = 64 << 20
    max_classes: int = 10_000

    @property
    def max_pending_bytes(self) -> int:
        """What rows that wait for their labels may take of the journal."""
        return self.max_journal_bytes // 8

    def check(self) -> None:
        """Raise a UsageError that names the first invalid setting."""
        if self.decay is not None and not 0.0 < self.decay < 1.0:
            raise UsageError(
                "give a number between 0 and 1, or None for no decay", parameter=Argument("decay", self.decay)
            )
        smallest = {"decay_every": 1, "retune_every": 1, "snapshot_every": 1, "max_waiting_rows": 1}
        smallest |= {"max_model_bytes": 1, "max_kept_rows": 0, "max_pending": 0, "max_journal_bytes": 1 << 18}
        smallest |= {"max_waiting_bytes": 1, "max_classes": 1}
        for name, least in smallest.items():
            given = getattr(self, name)
            if given is None and name == "retune_every":
                continue
            if type(given) is not int or given < least:
                raise UsageError(f"give a whole number that is at least {least}", parameter=Argument(name, given))
        for name in ("snapshot_seconds", "pending_seconds"):
            given = getattr(self, name)
            if not (isfinite(given) and given > 0.0):
                raise UsageError("give a number of seconds above 0", parameter=Argument(name, given))


@dataclass(frozen=True)
class ServeSettings:
    """Where a service listens, which models it has, and what it allows.

    path: the model file, or a folder of them. host, port: where it listens. token_file: who may ask; None: anyone who
    can reach it. allow_hosts: names, besides those of this machine, that requests may have in their Host header.
    learning: how rows are learned and forgotten; None: they are not. costs: the file with what decisions cost; reject:
    what it costs to leave a row undecided. workers: processes. check_every: seconds between two looks at the file.
    access_log: whether each request is logged. folder: whether the path is that of a folder, for a worker that starts
    while it is gone; None: it is looked at. requests, connections: their limits.
    """

    path: str
    host: str = "127.0.0.1"
    port: int = 8000
    token_file: str | None = None
    allow_hosts: tuple[str, ...] = ()
    learning: LearnSettings | None = None
    costs: str | None = None
    reject: float | None = None
    workers: int = 1
    check_every: float = 1.0
    access_log: bool = False
    folder: bool | None = None
    requests: RequestSettings = field(default_factory=RequestSettings)
    connections: ConnectionSettings = field(default_factory=ConnectionSettings)

    @classmethod
    def of(cls, path: str, *, learn: bool = False, **options: Any) -> Self:
        """Return the settings from options by their names, whichever group they belong to."""

        def taken(group: type) -> dict[str, Any]:
            return {one.name: options.pop(one.name) for one in fields(group) if one.name in options}

        groups = RequestSettings(**taken(RequestSettings)), ConnectionSettings(**taken(ConnectionSettings))
        learning = LearnSettings(**taken(LearnSettings))
        return cls(path, learning=learning if learn else None, requests=groups[0], connections=groups[1], **options)

    @property
    def on_loopback(self) -> bool:
        """Whether only programs on this machine can reach the service."""
        return is_loopback(self.host)

    @property
    def hosts(self) -> frozenset[str]:
        """The names that requests without a token may be for: those of this machine, and the allowed ones."""
        return frozenset({*LOOPBACK_NAMES, "127.0.0.1", "::1", self.host, *self.allow_hosts})


def is_loopback(host: str) -> bool:
    """Return whether an address, or a name of this machine, is reached from this machine alone.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    if host.lower() in LOOPBACK_NAMES:
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
