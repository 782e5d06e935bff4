"""Connections that no client can hold: deadlines and bounds for what comes before a request, and after its answer.

uvicorn waits without end for a client that connects and says nothing, that sends the head of its request byte by byte,
or that does not read its answer, and takes heads of any size. `GuardedProtocol` gives each of these a deadline, or a
bound. It is handed to uvicorn as ``Config(http=guarded_protocol(settings), ws="none")``. What happens between the head
of a request and its answer is the matter of `deciban.serve.guard`.
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

from deciban.serve.guard import problem_answer
from deciban.serve.problems import Problem
from deciban.serve.routes import find_route
from deciban.serve.settings import ConnectionSettings

# Seconds in which what has come in already is read.
READING_TIME = 0.02

# Connections beyond the bounds that are taken for a moment, in case they ask whether the service is well.
HEALTH_RESERVE = 16

# Bits of an IPv6 address that name a network: whoever has one, has all of its addresses.
NETWORK_BYTES = 8


@dataclass
class OpenConnections:
    """The connections of one process: how many of each address, and those beyond the bounds, oldest first."""

    settings: ConnectionSettings
    of_address: Counter[str] = field(default_factory=Counter)
    reserve: "dict[GuardedProtocol, None]" = field(default_factory=dict)

    def enter(self, one: "GuardedProtocol", address: str) -> None:
        """Count a new connection. One beyond the bounds takes a place of the reserve, where the oldest makes room."""
        settings, others = self.settings, self.of_address.total()
        if others >= settings.max_connections or self.of_address[address] >= settings.max_connections_per_address:
            if len(self.reserve) >= HEALTH_RESERVE:
                (next((old for old in self.reserve if old.is_silent), one)).cut("connections")
            self.reserve[one] = None
        else:
            self.of_address[address] += 1

    def leave(self, one: "GuardedProtocol", address: str) -> None:
        """A connection has ended."""
        if one in self.reserve:
            del self.reserve[one]
        else:
            self.of_address[address] -= 1
            if not self.of_address[address]:
                del self.of_address[address]


def network_of(client: tuple[str, int] | None) -> str:
    """What a client is counted by: its IPv4 address, or the network of its IPv6 address.

    >>> network_of(("192.0.2.7", 80)), network_of(("2001:db8::1", 80)) == network_of(("2001:db8::2:1", 80))
    ('192.0.2.7', True)
    """
    try:
        address = ipaddress.ip_address(client[0].partition("%")[0] if client else "")
    except ValueError:
        return ""  # a socket of this machine
    if isinstance(address, ipaddress.IPv6Address):
        mapped = address.ipv4_mapped
        return address.packed[:NETWORK_BYTES].hex() if mapped is None else str(mapped)
    return str(address)


class GuardedProtocol(HttpToolsProtocol):
    """One connection. It has one timer, which looks whether a deadline has passed and sleeps till the next one: setting
    a deadline is an assignment, so that requests in time cost next to nothing.

    observe: is called with the reason when a connection is cut ("head", "answer", "connections") or a request is
    refused ("malformed"); unless it is given, it is `observe_drop` of the application, if that has such an attribute.
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
        self._silent_bytes = 0  # since the parser has last told of anything: it keeps an unfinished header in memory
        self._running: RequestResponseCycle | None = None  # the request that is being answered; others wait behind it
        self._refusal: Problem | None = None
        self._is_read = False  # whether what had come in when a deadline passed has been read since
        self._is_over = False

    # deadlines

    def _due(self, seconds: float) -> float:
        """The moment so many seconds from now, at which the timer will look."""
        due = self.loop.time() + seconds
        if due < self._timer_due:
            if self._timer is not None:
                self._timer.cancel()
            self._timer_due = due
            self._timer = self.loop.call_at(due, self._look)
        return due

    def _look(self) -> None:
        """Cut the connection if a deadline has passed; else look again at the next one."""
        self._timer, self._timer_due = None, math.inf
        now = self.loop.time()
        if self._head_due is not None and now >= self._head_due:
            if not self.flow.read_paused:
                self._cut_unless_read()
                return
            self._head_due = (
                now + self._settings.head_timeout
            )  # it is we who do not read: an earlier request is worked on
        if self._send_due is not None and now >= self._send_due:
            if self.transport.get_write_buffer_size() > 0:
                self.cut("answer")
                return
            self._send_due = None
        dues = [due for due in (self._head_due, self._send_due) if due is not None]
        if dues:
            self._due(min(dues) - now)

    def _cut_unless_read(self) -> None:
        """Cut the connection whose head is late, unless the head is there and it was we who were busy: timers come
        before what is to be read, so that is read first."""
        if self._is_read:
            self.cut("head")
        else:
            self._is_read = True
            self._due(READING_TIME)

    @property
    def is_silent(self) -> bool:
        """Whether no request has come yet."""
        return self.cycle is None and not self._is_over

    def cut(self, reason: str) -> None:
        """Close the connection at once."""
        self._is_over = True
        if self._observe is not None:
            self._observe(reason)
        self.transport.abort()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        self._address = network_of(self.client)
        self._open.enter(self, self._address)
        if not self._is_over:
            self._head_due = self._due(self._settings.head_timeout)

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
            self._send_due = self._due(self._settings.send_timeout)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._send_due = None

    # what the client sends

    def data_received(self, data: bytes) -> None:
        if self._is_over:
            return
        if self._head_due is None and not self._in_body:
            self._head_due = self._due(self._settings.head_timeout)
        self._silent_bytes += len(data)
        super().data_received(data)
        if self._silent_bytes > self._settings.max_head_bytes and not self._is_over:
            self.send_400_response("")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._head_bytes = self._silent_bytes = 0

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        self._silent_bytes = 0
        if len(self.url) > (most := self._settings.max_url_bytes):
            self._refuse(414, f"the address is longer than {most} bytes", "send a shorter one, and rows in the body")

    def on_header(self, name: bytes, value: bytes) -> None:
        self._silent_bytes = 0
        self._head_bytes += len(name) + len(value) + 4
        if self._head_bytes > self._settings.max_head_bytes or len(self.headers) >= self._settings.max_headers:
            self._refuse_head()
        if not self._in_body:  # trailers come when the head has been judged, and are left out
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._is_read = False
        version = self.parser.get_http_version()
        if version not in ("1.1", "1.0"):
            self._refuse(505, f"HTTP/{version} is not spoken here", "send HTTP/1.1")
        for name, value in self.headers:
            if name == b"transfer-encoding" and (version == "1.0" or value.strip().lower() != b"chunked"):
                self._refuse(501, "this transfer coding is not known", "send Content-Length, or HTTP/1.1 and chunked")
        if not self.url.startswith(b"/") and not self._is_addressed_to_host():
            self._refuse(400, "the address is neither a path nor one of the host", "send a path, such as /predict")
        if len(self.pipeline) >= self._settings.max_pipelined:
            self._refuse(503, "too many requests wait for an answer on this connection", "wait for answers")
        is_reserve = self in self._open.reserve
        route = find_route(self.url.partition(b"?")[0].decode("latin-1")) if is_reserve else None
        if is_reserve and not (route is not None and route.about_health):
            self._refuse(503, "too many connections are open", "close some of them, or try again later")
        super().on_headers_complete()
        if is_reserve:
            self.cycle.keep_alive = False
        self._head_due = None
        self._in_body = True

    def _is_addressed_to_host(self) -> bool:
        """Whether an absolute address (http://host/path) is of the host that the header names."""
        host = next((value for name, value in self.headers if name == b"host"), b"")
        scheme, _, rest = self.url.partition(b"://")
        authority, slash, _ = rest.partition(b"/")
        return scheme.lower() in (b"http", b"https") and bool(slash) and authority.lower() == host.lower()

    def on_chunk_header(self) -> None:
        """A chunk of the body begins; the parser calls it by its name."""
        self._silent_bytes = 0

    def on_body(self, body: bytes) -> None:
        self._silent_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._silent_bytes = 0
        self._in_body = False
        super().on_message_complete()

    def _unsupported_upgrade_warning(self) -> None:
        """A request for another protocol is answered as if it had not asked, which HTTP allows; then, since it is not
        certain what else the client has sent, the connection is closed."""
        if self.cycle is not None:
            self.cycle.keep_alive = False

    # refusals

    def _refuse_head(self) -> None:
        most = f"{self._settings.max_headers} headers or {self._settings.max_head_bytes} bytes of them"
        self._refuse(431, f"found more than {most}", "send fewer and shorter headers")

    def _refuse(self, status: int, cause: str, remedy: str) -> None:
        """Stop the parser, by an error that it turns into a call of `send_400_response`."""
        self._refusal = Problem(status, cause, remedy)
        raise httptools.HttpParserError(cause)

    def send_400_response(self, msg: str) -> None:
        """Answer a request that is not one, once those before it are answered, and read no more."""
        self._is_over = True
        self._head_due = None
        if self._observe is not None:
            self._observe("connections" if self in self._open.reserve else "malformed")
        if self._refusal is None:
            too_long = self._silent_bytes > self._settings.max_head_bytes
            status, cause = (431, "a header has no end") if too_long else (400, "this is no HTTP request")
            self._refusal = Problem(status, cause, "send one as HTTP/1.1 (RFC 9112) has it")
        unfinished = self.cycle if self._in_body else None  # the request that is wrong, if its head was right
        if self.pipeline and self.pipeline[0][0] is unfinished:
            self.pipeline.popleft()
        elif unfinished is not None and not unfinished.response_complete:
            unfinished.disconnected = True  # what the application still says is not sent
            unfinished.message_event.set()
            if unfinished.response_started:
                self.transport.abort()
                return
            self._running = None
        if self._is_answered:
            self._close_with_refusal()
        else:
            self.flow.pause_reading()

    @property
    def _is_answered(self) -> bool:
        return self._running is None or self._running.response_complete

    def _close_with_refusal(self) -> None:
        assert self._refusal is not None, "there is something to refuse"
        headers, body = problem_answer(self._refusal, (b"connection", b"close"))
        lines = [b"%s: %s\r\n" % header for header in (*self.server_state.default_headers, *headers)]
        self.transport.write(b"".join([STATUS_LINE[self._refusal.status], *lines, b"\r\n", body]))
        self._send_due = self._due(self._settings.send_timeout)
        self.transport.close()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._send_due = self._due(self._settings.send_timeout)
        if self.transport.is_closing() or not self._is_answered:
            return
        if self._is_over:
            self._unset_keepalive_if_required()
            self._close_with_refusal()
        elif self._in_body:
            self.transport.close()  # answered before its body has come: nobody waits for the rest


def guarded_protocol(settings: ConnectionSettings, observe: Callable[[str], None] | None = None) -> Any:
    """What uvicorn's `Config(http=...)` takes; it can be pickled if `observe` can, as worker processes need."""
    return partial(GuardedProtocol, open_connections=OpenConnections(settings), observe=observe)
