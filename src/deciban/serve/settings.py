"""Settings of the service and their defaults, which are also the defaults of the command's options."""

import ipaddress
from dataclasses import dataclass, field, fields
from math import isfinite
from typing import Any, Self

from deciban.errors import Argument, UsageError

# Host names that only resolve to this machine on this machine.
LOOPBACK_NAMES = ("localhost", "ip6-localhost")

# Seconds per day.
DAY_SECONDS = 86_400.0


@dataclass(frozen=True)
class RequestSettings:
    """Limits on requests.

    Attributes
    ----------
    max_body_bytes, max_rows, max_columns
        Maximum size of one request.
    max_inflight_bytes
        Maximum size of all request bodies in memory.
    read_timeout
        Seconds allowed to receive a body.
    response_timeout
        Seconds allowed to respond.
    max_requests
        Maximum number of requests processed at a time.
    linger_timeout
        Seconds for which the rest of a rejected body is read and discarded, so that the client can read the response.
    """

    max_body_bytes: int = 16 << 20
    max_inflight_bytes: int = 256 << 20
    max_rows: int = 100_000
    max_columns: int = 10_000
    read_timeout: float = 30.0
    response_timeout: float = 60.0
    max_requests: int = 256
    linger_timeout: float = 1.0


@dataclass(frozen=True)
class ConnectionSettings:
    """Limits on connections.

    Attributes
    ----------
    head_timeout
        Seconds allowed to receive the request line and headers, counted from the first byte or, for the first request,
        from the start of the connection.
    send_timeout
        Seconds a client has to read a response.
    idle_timeout
        Seconds after which an idle connection is closed.
    shutdown_timeout
        Seconds in-flight requests get on shutdown.
    max_head_bytes, max_headers, max_url_bytes
        Maximum size of the head of a request.
    max_pipelined
        Maximum number of requests queued behind one in flight on the same connection.
    max_connections
        Maximum number of open connections.
    max_connections_per_address
        Maximum number of open connections from one IPv4 address or one IPv6 network. Connections beyond either limit
        may only request /health/… and /metrics.
    """

    head_timeout: float = 10.0
    send_timeout: float = 30.0
    idle_timeout: float = 60.0
    shutdown_timeout: float = 30.0
    max_head_bytes: int = 16 << 10
    max_headers: int = 64
    max_url_bytes: int = 8 << 10
    max_pipelined: int = 8
    max_connections: int = 1_000
    max_connections_per_address: int = 250


@dataclass(frozen=True)
class LearnSettings:
    """Settings of online learning.

    Attributes
    ----------
    new_classes
        If True, an unknown label becomes a new class; otherwise it is rejected.
    decay, decay_every
        After every `decay_every` learned rows, all earlier counts are multiplied by `decay`; None disables decay. It
        depends on rows and not on time, so that a replay is exact.
    retune_every
        Number of learned rows after which the evidence weights are tuned again; None disables retuning.
    snapshot_every, snapshot_seconds
        The model file is written after this number of changes, or this long after the first unsaved change.
    max_retained_rows, max_journal_bytes
        Rows with an id are retained, so that they can be recognized, relabeled and forgotten. The oldest are dropped
        when there are more than `max_retained_rows` or the journal approaches `max_journal_bytes`.
    max_model_bytes
        Learning stops when the model file is larger than this.
    max_pending, pending_seconds
        Maximum number of rows waiting for a label, and their retention in seconds of uptime. They take at most an
        eighth of `max_journal_bytes`.
    max_queued_rows, max_queued_bytes
        Maximum number of rows waiting to be learned, and size of the rows waiting to be retained for labeling. Further
        ones are rejected.
    max_classes
        Maximum number of classes; beyond it, unknown labels are rejected.
    """

    new_classes: bool = False
    decay: float | None = None
    decay_every: int = 1_000
    retune_every: int | None = None
    snapshot_every: int = 10_000
    snapshot_seconds: float = 300.0
    max_retained_rows: int = 1_000_000
    max_journal_bytes: int = 1 << 30
    max_model_bytes: int = 1 << 30
    max_pending: int = 100_000
    pending_seconds: float = 7 * DAY_SECONDS
    max_queued_rows: int = 20_000
    max_queued_bytes: int = 64 << 20
    max_classes: int = 10_000

    @property
    def max_pending_bytes(self) -> int:
        """Maximum size in the journal of the rows waiting for a label."""
        return self.max_journal_bytes // 8

    def check(self) -> None:
        """Raise a UsageError that names the first invalid setting."""
        if self.decay is not None and not 0.0 < self.decay < 1.0:
            raise UsageError("must be between 0 and 1, or None for no decay", parameter=Argument("decay", self.decay))
        minima = {"decay_every": 1, "retune_every": 1, "snapshot_every": 1, "max_queued_rows": 1}
        minima |= {"max_model_bytes": 1, "max_retained_rows": 0, "max_pending": 0, "max_journal_bytes": 1 << 18}
        minima |= {"max_queued_bytes": 1, "max_classes": 1}
        for name, minimum in minima.items():
            value = getattr(self, name)
            if value is None and name == "retune_every":
                continue
            if type(value) is not int or value < minimum:
                raise UsageError(f"must be an integer of at least {minimum}", parameter=Argument(name, value))
        for name in ("snapshot_seconds", "pending_seconds"):
            value = getattr(self, name)
            if not (isfinite(value) and value > 0.0):
                raise UsageError("must be a positive number of seconds", parameter=Argument(name, value))


@dataclass(frozen=True)
class ServeSettings:
    """Settings of a service.

    Attributes
    ----------
    path
        Model file, or folder of model files.
    host, port
        Address to listen on.
    token_file
        File of access tokens; None: no authentication.
    allow_hosts
        Names accepted in the Host header, besides those of this machine.
    learning
        Settings of online learning; None: the model is read-only.
    costs, reject
        Default costs of decisions: path of the file, and cost of leaving a row undecided.
    workers
        Number of processes.
    reload_interval
        Seconds between two checks for a changed model file.
    access_log
        If True, each request is logged.
    json_log
        If True, each line of the log is a JSON object.
    folder
        True if `path` is a folder, for a worker that starts while it is not mounted; None: check.
    requests, connections
        Limits on requests and connections.
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
    reload_interval: float = 1.0
    access_log: bool = False
    json_log: bool = False
    folder: bool | None = None
    requests: RequestSettings = field(default_factory=RequestSettings)
    connections: ConnectionSettings = field(default_factory=ConnectionSettings)

    @classmethod
    def of(cls, path: str, *, learn: bool = False, **options: Any) -> Self:
        """Return settings from options by name, whichever group they belong to."""

        def pop_fields(group: type) -> dict[str, Any]:
            return {entry.name: options.pop(entry.name) for entry in fields(group) if entry.name in options}

        requests = RequestSettings(**pop_fields(RequestSettings))
        connections = ConnectionSettings(**pop_fields(ConnectionSettings))
        learning = LearnSettings(**pop_fields(LearnSettings))
        return cls(path, learning=learning if learn else None, requests=requests, connections=connections, **options)

    @property
    def on_loopback(self) -> bool:
        """True if only programs on this machine can reach the service."""
        return is_loopback(self.host)

    @property
    def hosts(self) -> frozenset[str]:
        """Host names accepted without a token: those of this machine and `allow_hosts`."""
        return frozenset({*LOOPBACK_NAMES, "127.0.0.1", "::1", self.host, *self.allow_hosts})


def is_loopback(host: str) -> bool:
    """Return True if an address or host name can only be reached from this machine.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    if host.lower() in LOOPBACK_NAMES:
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
