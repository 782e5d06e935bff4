"""Connections that no client can hold: limits and timeouts before a request and after its response.

uvicorn waits without limit for a client that connects and sends nothing, that sends the head of its request byte by
byte, or that does not read its response, and it accepts heads of any size. `GuardedProtocol` adds a timeout or a limit
for each of these. Pass it to uvicorn as ``Config(http=make_protocol(settings), ws="none")``. `deciban.serve.middleware`
covers the time between the head of a request and its response.
"""

import asyncio
import ipaddress
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from deciban.serve.middleware import render_problem
from deciban.serve.problems import Problem
from deciban.serve.routes import find_route
from deciban.serve.settings import ConnectionSettings

# Seconds to read data that has already arrived.
READ_GRACE_SECONDS = 0.02

# Connections beyond the limits that are accepted briefly, for health checks.
HEALTH_RESERVE = 16

# Leading bytes of an IPv6 address that identify a network. One client can use all addresses of its network.
NETWORK_BYTES = 8


@dataclass
class OpenConnections:
    """Open connections of one process: the number per address, and those beyond the limits, oldest first."""

    settings: ConnectionSettings
    per_address: Counter[str] = field(default_factory=Counter)
    reserve: "dict[GuardedProtocol, None]" = field(default_factory=dict)

    def enter(self, connection: "GuardedProtocol", address: str) -> None:
        """Count a new connection.

        A connection beyond the limits takes a place in the reserve; if the reserve is full, the oldest one there is
        dropped.
        """
        settings, others = self.settings, self.per_address.total()
        if others >= settings.max_connections or self.per_address[address] >= settings.max_connections_per_address:
            if len(self.reserve) >= HEALTH_RESERVE:
                next((old for old in self.reserve if old.is_silent), connection).drop("too_many_connections")
            self.reserve[connection] = None
        else:
            self.per_address[address] += 1

    def leave(self, connection: "GuardedProtocol", address: str) -> None:
        """Remove a closed connection."""
        if connection in self.reserve:
            del self.reserve[connection]
        else:
            self.per_address[address] -= 1
            if not self.per_address[address]:
                del self.per_address[address]


def client_network(client: tuple[str, int] | None) -> str:
    """Return the key by which a client is counted: its IPv4 address or its IPv6 network.

    >>> client_network(("192.0.2.7", 80)), client_network(("2001:db8::1", 80)) == client_network(("2001:db8::2:1", 80))
    ('192.0.2.7', True)
    """
    try:
        address = ipaddress.ip_address(client[0].partition("%")[0] if client else "")
    except ValueError:
        return ""  # a Unix socket
    if isinstance(address, ipaddress.IPv6Address):
        mapped = address.ipv4_mapped
        return address.packed[:NETWORK_BYTES].hex() if mapped is None else str(mapped)
    return str(address)


class GuardedProtocol(HttpToolsProtocol):
    """Connection with timeouts and limits.

    It has one timer, which checks whether a deadline has passed and sleeps until the next one. Setting a deadline is an
    assignment, so requests in time cost next to nothing.

    observe: called with the reason when a connection is dropped ("head_timeout", "send_timeout",
    "too_many_connections") or a request is rejected ("malformed"). By default it is `observe_drop` of the application,
    if it has that attribute.
    """

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        open_connections: OpenConnections,
        observe: Callable[[str], None] | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._open = open_connections
        self._settings = open_connections.settings
        self._address = ""
        self._observe = observe or getattr(self.app, "observe_drop", None)
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due = math.inf
        self._head_due: float | None = None
        self._send_due: float | None = None
        self._in_body = False
        self._head_bytes = 0
        self._unparsed_bytes = 0  # since the last event of the parser, which keeps an unfinished header in memory
        self._running: RequestResponseCycle | None = None  # the request in progress; others are queued behind it
        self._rejection: Problem | None = None
        self._is_read = False  # True if data that had arrived at the deadline has been read since
        self._is_over = False

    # deadlines

    def _schedule(self, seconds: float) -> float:
        """Return the time this number of seconds from now, and schedule a check for it."""
        due = self.loop.time() + seconds
        if due < self._timer_due:
            if self._timer is not None:
                self._timer.cancel()
            self._timer_due = due
            self._timer = self.loop.call_at(due, self._check_deadlines)
        return due

    def _check_deadlines(self) -> None:
        """Drop the connection if a deadline has passed; else schedule the next check."""
        self._timer, self._timer_due = None, math.inf
        now = self.loop.time()
        if self._head_due is not None and now >= self._head_due:
            if not self.flow.read_paused:
                self._drop_unless_read()
                return
            # reading is paused because an earlier request is in progress
            self._head_due = now + self._settings.head_timeout
        if self._send_due is not None and now >= self._send_due:
            if self.transport.get_write_buffer_size() > 0:
                self.drop("send_timeout")
                return
            self._send_due = None
        dues = [due for due in (self._head_due, self._send_due) if due is not None]
        if dues:
            self._schedule(min(dues) - now)

    def _drop_unless_read(self) -> None:
        """Drop the connection whose head is late, unless the head has arrived but was not read yet.

        On a busy event loop, timers run before data is read, so the data is read first.
        """
        if self._is_read:
            self.drop("head_timeout")
        else:
            self._is_read = True
            self._schedule(READ_GRACE_SECONDS)

    @property
    def is_silent(self) -> bool:
        """True if no request has arrived yet."""
        return self.cycle is None and not self._is_over

    def drop(self, reason: str) -> None:
        """Close the connection at once."""
        self._is_over = True
        if self._observe is not None:
            self._observe(reason)
        self.transport.abort()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        super().connection_made(transport)
        self._address = client_network(self.client)
        self._open.enter(self, self._address)
        if not self._is_over:
            self._head_due = self._schedule(self._settings.head_timeout)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._open.leave(self, self._address)
        self._unset_keepalive_if_required()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._is_over = True

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._send_due is None:
            self._send_due = self._schedule(self._settings.send_timeout)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._send_due = None

    # received data

    def data_received(self, data: bytes) -> None:
        if self._is_over:
            return
        if self._head_due is None and not self._in_body:
            self._head_due = self._schedule(self._settings.head_timeout)
        self._unparsed_bytes += len(data)
        super().data_received(data)
        if self._unparsed_bytes > self._settings.max_head_bytes and not self._is_over:
            self.send_400_response("")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head_bytes = self._unparsed_bytes = 0

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        self._unparsed_bytes = 0
        if len(self.url) > (limit := self._settings.max_url_bytes):
            self._reject(414, f"the URL is longer than {limit:,} bytes", "send a shorter one, with rows in the body")

    def on_header(self, name: bytes, value: bytes) -> None:
        self._unparsed_bytes = 0
        self._head_bytes += len(name) + len(value) + 4
        if self._head_bytes > self._settings.max_head_bytes or len(self.headers) >= self._settings.max_headers:
            self._reject_head()
        if not self._in_body:  # trailers arrive after the head was checked, and are ignored
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._is_read = False
        version = self.parser.get_http_version()
        if version not in ("1.1", "1.0"):
            self._reject(505, f"HTTP/{version} is not supported", "send HTTP/1.1")
        for name, value in self.headers:
            if name == b"transfer-encoding" and (version == "1.0" or value.strip().lower() != b"chunked"):
                self._reject(501, "unsupported transfer coding", "send Content-Length, or HTTP/1.1 and chunked")
        if not self.url.startswith(b"/") and not self._is_addressed_to_host():
            self._reject(400, "the URL is neither a path nor a URL of this host", "send a path, such as /predict")
        if len(self.pipeline) >= self._settings.max_pipelined:
            self._reject(503, "too many pipelined requests on this connection", "wait for responses")
        is_reserve = self in self._open.reserve
        route = find_route(self.url.partition(b"?")[0].decode("latin-1")) if is_reserve else None
        if is_reserve and not (route is not None and route.is_health_check):
            self._reject(503, "too many open connections", "close some of them, or try again later")
        super().on_headers_complete()
        if is_reserve:
            self.cycle.keep_alive = False
        self._head_due = None
        self._in_body = True

    def _is_addressed_to_host(self) -> bool:
        """Return True if an absolute URL (http://host/path) names the host of the Host header."""
        host = next((value for name, value in self.headers if name == b"host"), b"")
        scheme, _, rest = self.url.partition(b"://")
        authority, slash, _ = rest.partition(b"/")
        return scheme.lower() in (b"http", b"https") and bool(slash) and authority.lower() == host.lower()

    def on_chunk_header(self) -> None:
        """Handle the start of a chunk of the body. The parser calls this method by name."""
        self._unparsed_bytes = 0

    def on_body(self, body: bytes) -> None:
        self._unparsed_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._unparsed_bytes = 0
        self._in_body = False
        super().on_message_complete()

    def _ignore_upgrade(self) -> None:
        """Ignore a request to upgrade to another protocol, as HTTP permits.

        The connection is closed after the response, since the client may have sent data in the other protocol.
        """
        if self.cycle is not None:
            self.cycle.keep_alive = False

    _unsupported_upgrade_warning = _ignore_upgrade  # called by uvicorn

    # rejections

    def _reject_head(self) -> None:
        limits = f"{self._settings.max_headers} headers or {self._settings.max_head_bytes:,} bytes"
        self._reject(431, f"found more than {limits}", "send fewer and shorter headers")

    def _reject(self, status: int, cause: str, remedy: str) -> None:
        """Stop the parser with an error, which makes it call `send_400_response`."""
        self._rejection = Problem(status, cause, remedy)
        raise httptools.HttpParserError(cause)

    def send_400_response(self, msg: str) -> None:
        """Respond to a malformed request once earlier ones are finished, and stop reading."""
        self._is_over = True
        self._head_due = None
        if self._observe is not None:
            self._observe("too_many_connections" if self in self._open.reserve else "malformed")
        if self._rejection is None:
            too_long = self._unparsed_bytes > self._settings.max_head_bytes
            status, cause = (431, "unterminated header") if too_long else (400, "malformed HTTP/1.1 request")
            self._rejection = Problem(status, cause, "send a valid HTTP/1.1 request (RFC 9112)")
        unfinished = self.cycle if self._in_body else None  # the malformed request, if its head was valid
        if self.pipeline and self.pipeline[0][0] is unfinished:
            self.pipeline.popleft()
        elif unfinished is not None and not unfinished.response_complete:
            unfinished.disconnected = True  # discard the response of the application
            unfinished.message_event.set()
            if unfinished.response_started:
                self.transport.abort()
                return
            self._running = None
        if self._is_response_complete:
            self._close_with_rejection()
        else:
            self.flow.pause_reading()

    @property
    def _is_response_complete(self) -> bool:
        return self._running is None or self._running.response_complete

    def _close_with_rejection(self) -> None:
        assert self._rejection is not None, "only called after a rejection"
        headers, body = render_problem(self._rejection, (b"connection", b"close"))
        lines = [b"%s: %s\r\n" % header for header in (*self.server_state.default_headers, *headers)]
        self.transport.write(b"".join([STATUS_LINE[self._rejection.status], *lines, b"\r\n", body]))
        self._send_due = self._schedule(self._settings.send_timeout)
        self.transport.close()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._send_due = self._schedule(self._settings.send_timeout)
        if self.transport.is_closing() or not self._is_response_complete:
            return
        if self._is_over:
            self._unset_keepalive_if_required()
            self._close_with_rejection()
        elif self._in_body:
            self.transport.close()  # the response was sent before the body arrived: do not wait for the rest


def make_protocol(settings: ConnectionSettings, observe: Callable[[str], None] | None = None) -> Any:
    """Return a value for uvicorn's `Config(http=...)`; it can be pickled if `observe` can, for worker processes."""
    return partial(GuardedProtocol, open_connections=OpenConnections(settings), observe=observe)
