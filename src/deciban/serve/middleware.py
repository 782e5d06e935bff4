"""Middleware: access control, limits, timeouts and response headers.

`guard` wraps an application in pure ASGI. It reads the body itself, before the application runs: a slow client takes up
no slot among the requests in flight, and no more memory than it has sent. Every response passes through it, so each has
the `SECURITY_HEADERS` and every error is a problem (RFC 9457). One timer keeps the deadlines of all requests:
`asyncio.timeout` per request would cost more than the rest of the middleware.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

from deciban.serve.access import Access, Request, Tokens
from deciban.serve.problems import Problem, default_problem
from deciban.serve.settings import RequestSettings

log = logging.getLogger("deciban.serve")
access_log = logging.getLogger("deciban.serve.access")

# Attribute of a log record with the fields of a request, and these fields.
REQUEST_FIELDS = "request_fields"
ACCESS_FIELDS = ("client", "method", "path", "status", "milliseconds")

# ASGI types: headers, messages, the receive and send callables, and an application.
Headers = list[tuple[bytes, bytes]]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

# Called with the route, status and duration in seconds of each request.
ObserveRequest = Callable[[str, int, float], None]

# Responses must not run scripts, be framed, be sniffed for another content type, or leak referrers. A response that
# sets one of these headers keeps its own: the web page has a policy that allows its own script.
SECURITY_HEADERS = {
    b"content-security-policy": (
        b"default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox"
    ),
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"cache-control": b"no-store",
}


def add_security_headers(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Return the headers with missing `SECURITY_HEADERS` added and the name of the server removed."""
    present = [(name.lower(), value) for name, value in headers]
    names = {name for name, _ in present}
    missing = [header for header in SECURITY_HEADERS.items() if header[0] not in names]
    return [header for header in present if header[0] != b"server"] + missing


def render_problem(problem: Problem, *more: tuple[bytes, bytes]) -> tuple[Headers, bytes]:
    """Return the headers and body of a problem response. more: additional headers."""
    body = problem.to_bytes()
    overridden = {name for name, _ in more}
    own = [(name.encode(), value.encode()) for name, value in problem.headers.items()]
    kept = [header for header in own if header[0] not in overridden]
    return add_security_headers([*kept, (b"content-length", b"%d" % len(body)), *more]), body


# Checks of the timer within the shortest deadline: no deadline is exceeded by more than this fraction.
CHECKS_PER_DEADLINE = 20


class Deadline:
    """Context manager that raises TimeoutError in its task when the time is over.

    Use it as ``with deadlines.within(seconds):``. expired: True once the deadline has passed; a TimeoutError before
    that has another origin.
    """

    __slots__ = ("_deadlines", "_task", "due", "expired")

    def __init__(self, deadlines: "Deadlines", due: float) -> None:
        self._deadlines = deadlines
        self._task = asyncio.current_task()
        self.due = due
        self.expired = False

    def __enter__(self) -> Self:
        self._deadlines.open.add(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._deadlines.open.discard(self)
        if self.expired and self._task is not None and self._task.uncancel() <= 0 and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def stop(self) -> None:
        """Cancel the task."""
        self.expired = True
        self._deadlines.open.discard(self)
        if self._task is not None:
            self._task.cancel()


class Deadlines:
    """Open deadlines of one event loop. The timer runs while there are any."""

    def __init__(self) -> None:
        self.open: set[Deadline] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._every = 1.0

    def within(self, seconds: float) -> Deadline:
        """Return a deadline for the current task, this number of seconds from now."""
        loop = asyncio.get_running_loop()
        every = seconds / CHECKS_PER_DEADLINE
        if self._timer is None or self._loop is not loop or every < self._every:
            self._every = every if self._timer is None else min(every, self._every)
            if self._timer is not None:
                self._timer.cancel()
            self._loop, self._timer = loop, loop.call_later(self._every, self._check)
        return Deadline(self, loop.time() + seconds)

    def _check(self) -> None:
        assert self._loop is not None, "the timer was set"
        now = self._loop.time()
        for deadline in [deadline for deadline in self.open if deadline.due <= now]:
            deadline.stop()
        self._timer = self._loop.call_later(self._every, self._check) if self.open else None


# Headers of a plain-text error that are kept in the problem response.
PRESERVED_HEADERS = (b"allow", b"retry-after", b"www-authenticate")

# Response to unexpected exceptions.
INTERNAL_ERROR = default_problem(500)


class ResponseSender:
    """Sender of one response: adds headers, and turns plain-text errors of the framework into problems."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._unfinished = False
        self.status = 0
        self.close_after = False
        self.plain_error: tuple[Any, ...] | None = None  # plain-text error of the framework, sent as a problem later
        self.release: Callable[[], None] | None = None

    @property
    def is_started(self) -> bool:
        return self.status != 0

    def release_slot(self) -> None:
        """Release the slot among the requests in flight, once."""
        if self.release is not None:
            self.release()
            self.release = None

    async def send(self, message: Message) -> None:
        """Send a message of the application."""
        if message["type"] == "http.response.start":
            self.release_slot()  # the work is done; the client may read slowly
            headers = add_security_headers(message.get("headers", ()))
            if message["status"] >= 400 and not _is_machine_readable(headers):
                preserved = [header for header in headers if header[0] in PRESERVED_HEADERS]
                self.plain_error = (default_problem(message["status"]), *preserved)
                return
            self.status = message["status"]
            if self.close_after:
                headers.append((b"connection", b"close"))
            await self._send({**message, "headers": headers})
        elif self.plain_error is None:
            await self._send(message)

    async def send_problem(self, problem: Problem, *more: tuple[bytes, bytes]) -> None:
        """Send a problem, unless a response has been started.

        If the connection is to be closed, the end of the response is sent later, by `finish`.
        """
        if self.is_started:
            return
        self.status = problem.status
        if self.close_after:
            more = (*more, (b"connection", b"close"))
        if problem.status == 401:
            more = (*more, (b"www-authenticate", b'Bearer realm="deciban"'))
        headers, body = render_problem(problem, *more)
        await self._send({"type": "http.response.start", "status": problem.status, "headers": headers})
        await self._send({"type": "http.response.body", "body": body, "more_body": self.close_after})
        self._unfinished = self.close_after

    async def finish(self) -> None:
        """Send the end of a response that `send_problem` began; the server then closes the connection."""
        if self._unfinished:
            self._unfinished = False
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})


def _is_machine_readable(headers: Headers) -> bool:
    """Return True if an error has a body for programs; frameworks send plain text."""
    return any(name == b"content-type" and value.startswith(b"application/") for name, value in headers)


def guard(
    app: Application,
    settings: RequestSettings,
    observe: ObserveRequest | None = None,
    observe_drop: Callable[[str], None] | None = None,
    *,
    hosts: frozenset[str] | None = None,
    tokens: Tokens | None = None,
) -> Application:
    """Return the application wrapped in the middleware.

    observe: called with the route, status and duration in seconds of each request. observe_drop: called by
    `GuardedProtocol` with the reason when a connection is dropped. hosts: names accepted in the Host header; None: any.
    tokens: accepted tokens; None: no authentication.
    """
    return _Guard(app, settings, observe, observe_drop, Access(hosts, tokens))


class _Guard:
    def __init__(
        self,
        app: Application,
        settings: RequestSettings,
        observe: ObserveRequest | None,
        observe_drop: Callable[[str], None] | None,
        access: Access,
    ) -> None:
        self._app = app
        self.settings = settings
        self._observe = observe
        self.observe_drop = observe_drop
        self._access = access
        self._in_flight = 0
        self._held_bytes = 0
        self.deadlines = Deadlines()

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            start = time.perf_counter()
            sender = ResponseSender(send)
            request = Request(scope)
            try:
                await self._respond(request, scope, receive, sender)
            finally:
                if sender.status:
                    seconds = time.perf_counter() - start
                    if self._observe is not None:
                        self._observe(request.route, sender.status, seconds)
                    if access_log.isEnabledFor(logging.INFO):
                        client, method = ":".join(map(str, scope.get("client") or ("-",))), scope["method"]
                        path = quote(scope["path"])  # without the query, which may contain ids and secrets
                        shown = (client, method, path, sender.status, round(1e3 * seconds, 1))
                        request_fields = dict(zip(ACCESS_FIELDS, shown, strict=True))
                        access_log.info('%s "%s %s" %d %.1f ms', *shown, extra={REQUEST_FIELDS: request_fields})
        else:
            raise RuntimeError(f"unsupported scope {scope['type']!r}; run uvicorn with ws='none'")

    async def _respond(
        self, request: Request, scope: MutableMapping[str, Any], receive: Receive, sender: ResponseSender
    ) -> None:
        """Check access, read the body, and let the application respond."""
        body: _Body | None = None
        try:
            if (problem := self._access.check(request)) is not None:
                sender.close_after = request.has_body
                await sender.send_problem(problem)
                return
            if request.has_body:
                body = _Body(self, request, receive, sender)
                await body.read()
                if body.is_gone:
                    return
                receive = body.replay
            await self._work(request, scope, receive, sender)
        except Problem as problem:
            await sender.send_problem(problem)
        finally:
            if body is not None:
                self._held_bytes -= body.discard()
            if sender.close_after:
                await self._discard_rest(receive)
            await sender.finish()

    async def _work(
        self, request: Request, scope: MutableMapping[str, Any], receive: Receive, sender: ResponseSender
    ) -> None:
        """Let the application respond within the response timeout."""
        if not request.is_health_check:
            if self._in_flight >= self.settings.max_requests:
                raise Problem(503, f"{self._in_flight} requests are in flight", "try again later")
            self._in_flight += 1
            sender.release = self._release
        deadline = self.deadlines.within(self.settings.response_timeout)
        try:
            with deadline:
                await self._app(scope, receive, sender.send)
        except Problem:
            raise
        except Exception as error:
            if not (isinstance(error, TimeoutError) and deadline.expired):
                log.exception("internal error while handling %s", request.route)
                await sender.send_problem(INTERNAL_ERROR)
                return
            if sender.is_started:
                log.warning("the response to %s was not finished in time", request.route)
                return
            raise self._timeout_problem(request) from None
        finally:
            sender.release_slot()
        if sender.plain_error is not None:
            await sender.send_problem(*sender.plain_error)
        elif not sender.is_started:
            log.error("no response to %s", request.route)
            await sender.send_problem(INTERNAL_ERROR)

    def _timeout_problem(self, request: Request) -> Problem:
        cause = f"no response within {self.settings.response_timeout:g} s"
        if request.learns:
            return Problem(
                503, cause, "the change may still be made; send the request again with the same ids", retryable=False
            )
        return Problem(503, cause, "send fewer rows per request")

    def _release(self) -> None:
        self._in_flight -= 1

    def reserve_memory(self, size: int) -> None:
        """Count bytes of bodies in memory; raise a Problem if there are too many."""
        self._held_bytes += size
        if self._held_bytes > self.settings.max_inflight_bytes:
            raise Problem(503, "too many request bodies in memory", "try again later")

    async def _discard_rest(self, receive: Receive) -> None:
        """Read and discard what the client still sends, for a limited time.

        If the connection were closed at once, the client might not be able to read the response.
        """
        try:
            with self.deadlines.within(self.settings.linger_timeout):
                while True:
                    message = await receive()
                    if message["type"] != "http.request" or not message.get("more_body", False):
                        return
        except TimeoutError:
            return


class _Body:
    """Body of a request, as far as it has been received."""

    def __init__(self, guard: _Guard, request: Request, receive: Receive, sender: ResponseSender) -> None:
        self._guard = guard
        self._settings = guard.settings
        self._request = request
        self._receive = receive
        self._sender = sender
        self._parts: list[bytes] = []
        self._size = 0
        self.is_gone = False

    async def read(self) -> None:
        """Read the whole body; raise a Problem if it is too large or too slow."""
        self._sender.close_after = True  # until all of it is read
        if (self._request.length or 0) > self._settings.max_body_bytes:
            raise self._too_large()
        try:
            with self._guard.deadlines.within(self._settings.read_timeout):
                while await self._read_part():
                    pass
        except TimeoutError:
            cause = f"the body was not received within {self._settings.read_timeout:g} s"
            raise Problem(408, cause, "send smaller requests") from None
        self._sender.close_after = False

    async def _read_part(self) -> bool:
        """Read one message; return True if there is more."""
        message = await self._receive()
        if message["type"] != "http.request":
            self.is_gone = True
            return False
        part = message.get("body", b"")
        if self._size + len(part) > self._settings.max_body_bytes:
            raise self._too_large()
        self._size += len(part)
        self._parts.append(part)
        self._guard.reserve_memory(len(part))
        return bool(message.get("more_body", False))

    def _too_large(self) -> Problem:
        cause = f"the body has more than {self._settings.max_body_bytes:,} bytes"
        return Problem(413, cause, "send fewer rows per request", "body")

    def discard(self) -> int:
        """Drop the received data and return its size."""
        size, self._size, self._parts = self._size, 0, []
        return size

    async def replay(self) -> Message:
        """Return the body as one message, then further messages of the connection."""
        if self._parts:
            body, self._parts = b"".join(self._parts), []
            return {"type": "http.request", "body": body, "more_body": False}
        return await self._receive()
