"""How a service runs: every option of `deciban serve`, as one value that can be handed to other processes."""

import ipaddress
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

# Names of this machine that only programs on it can reach it by.
LOOPBACK_NAMES = ("localhost", "ip6-localhost")


@dataclass(frozen=True)
class ServeSettings:
    """Where a service listens, what it answers by, and what it allows.

    path: the model file, or a folder of them. host, port: where it listens. token_file: who may ask; None: anyone who
    can reach it. allow_hosts: names, besides those of this machine, that requests may have in their Host header.
    learn: whether rows can be learned and forgotten; new_classes: whether they may have classes that are new; decay:
    how many times as much all that was learned weighs after each thousand more rows; retune_every: rows after which
    the weights are learned anew; most_journal_bytes, most_model_bytes: what a model that learns may grow to. costs: the
    file with what decisions cost; reject: what it costs to leave a row undecided. workers: processes. most_body_bytes,
    most_rows, most_columns: of a request. time_limit: seconds within which a request must have come in; answer_limit:
    seconds within which it is answered; idle_limit: seconds after which a connection without requests is closed;
    drain_limit: seconds that requests under way have when the service ends. most_connections: that are open at a time;
    max_connections_per_address: of them, those of one client; most_waiting: requests that are worked on at a time.
    check_every: seconds between two looks at the file. access_log: whether each request is logged. folder: whether the
    path is that of a folder, for a worker that starts while it is gone; None: it is looked at.
    """

    path: str
    host: str = "127.0.0.1"
    port: int = 8000
    token_file: str | None = None
    allow_hosts: tuple[str, ...] = ()
    learn: bool = False
    new_classes: bool = False
    decay: float | None = None
    decay_every: int = 1_000
    retune_every: int | None = None
    most_journal_bytes: int = 1 << 30
    most_model_bytes: int = 1 << 30
    costs: str | None = None
    reject: float | None = None
    workers: int = 1
    most_body_bytes: int = 16 << 20
    most_rows: int = 100_000
    most_columns: int = 10_000
    time_limit: float = 30.0
    answer_limit: float = 60.0
    idle_limit: float = 60.0
    drain_limit: float = 30.0
    most_connections: int = 1_000
    max_connections_per_address: int = 250
    most_waiting: int = 256
    check_every: float = 1.0
    access_log: bool = False
    folder: bool | None = None

    @property
    def on_loopback(self) -> bool:
        """Whether only programs on this machine can reach the service."""
        return is_loopback(self.host)

    def as_dict(self) -> dict[str, Any]:
        """The options as JSON has them."""
        return asdict(self)

    @classmethod
    def from_dict(cls, options: dict[str, Any]) -> Self:
        """The same from such a dict."""
        known = {field.name for field in fields(cls)}
        given = {name: value for name, value in options.items() if name in known}
        return cls(**{**given, "allow_hosts": tuple(given.get("allow_hosts", ()))})


def is_loopback(host: str) -> bool:
    """Whether an address, or a name of this machine, is reached from this machine alone.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, True, False)
    """
    if host.lower() in LOOPBACK_NAMES:
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
