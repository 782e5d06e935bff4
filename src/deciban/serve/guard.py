"""The guard around the application: who may ask, how much, for how long; and the headers of every answer.

`guarded` is pure ASGI. It reads the body itself, before the application runs: a client that sends slowly takes up no
place among the requests that are worked on, and no more memory than it has sent. Every answer passes through it, so
that none lacks `SECURITY_HEADERS` and every error is a problem (RFC 9457). Deadlines of all requests are kept by one
timer: `asyncio.timeout` for each request would cost more than all the guard does.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

from deciban.serve.access import Access, Request, Tokens
from deciban.serve.problems import Problem, usual_problem
from deciban.serve.settings import RequestSettings

log = logging.getLogger("deciban.serve")
access_log = logging.getLogger("deciban.serve.access")

# The types of ASGI: the name and the value of each header, messages, what receives and sends them, an application.
Headers = list[tuple[bytes, bytes]]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

# Is called with the route, the status and the seconds of each request.
ObserveRequest = Callable[[str, int, float], None]

# Nothing that is answered may run, be framed, be guessed to be something else, or tell others where a reader came from.
# An answer that has one of these headers of its own keeps it: the page has a policy that lets its own script run.
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


def secured(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    """The headers with those of `SECURITY_HEADERS` that they lack, and without the name of the server."""
    given = [(name.lower(), value) for name, value in headers]
    names = {name for name, _ in given}
    lacking = [header for header in SECURITY_HEADERS.items() if header[0] not in names]
    return [header for header in given if header[0] != b"server"] + lacking


def problem_answer(problem: Problem, *more: tuple[bytes, bytes]) -> tuple[Headers, bytes]:
    """The headers and the body that tell a problem (RFC 9457). more: headers that go with it."""
    body = problem.as_bytes()
    given = {name for name, _ in more}
    told = [(name.encode(), value.encode()) for name, value in problem.headers.items() if name.encode() not in given]
    return secured([*told, (b"content-length", b"%d" % len(body)), *more]), body


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


# Headers of an error that say something, whoever tells of it.
TELLING_HEADERS = (b"allow", b"retry-after", b"www-authenticate")

# What is told of an error that nobody expected.
FAULT = usual_problem(500)


class Answer:
    """What is sent back: headers are added, and errors that are not told as problems become such."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._unfinished = False
        self.status = 0
        self.closes = False
        self.untold: tuple[Any, ...] | None = None  # an error that was not told as a problem: it will be, in the end
        self.release: Callable[[], None] | None = None

    @property
    def is_started(self) -> bool:
        return self.status != 0

    def released(self) -> None:
        """Give back the place among the requests that are worked on, once."""
        if self.release is not None:
            self.release()
            self.release = None

    async def send(self, message: Message) -> None:
        """What the application says."""
        if message["type"] == "http.response.start":
            self.released()  # the work is done; how fast the client reads is another matter
            headers = secured(message.get("headers", ()))
            if message["status"] >= 400 and not _is_told(headers):
                telling = [header for header in headers if header[0] in TELLING_HEADERS]
                self.untold = (usual_problem(message["status"]), *telling)
                return
            self.status = message["status"]
            if self.closes:
                headers.append((b"connection", b"close"))
            await self._send({**message, "headers": headers})
        elif self.untold is None:
            await self._send(message)

    async def tell(self, problem: Problem, *more: tuple[bytes, bytes]) -> None:
        """The problem as the answer, unless there is another already. Where the connection is to be closed its end is
        not sent yet: see `end`."""
        if self.is_started:
            return
        self.status = problem.status
        if self.closes:
            more = (*more, (b"connection", b"close"))
        if problem.status == 401:
            more = (*more, (b"www-authenticate", b'Bearer realm="deciban"'))
        headers, body = problem_answer(problem, *more)
        await self._send({"type": "http.response.start", "status": problem.status, "headers": headers})
        await self._send({"type": "http.response.body", "body": body, "more_body": self.closes})
        self._unfinished = self.closes

    async def end(self) -> None:
        """Send the end of an answer that `tell` has begun; the server then closes the connection."""
        if self._unfinished:
            self._unfinished = False
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})


def _is_told(headers: Headers) -> bool:
    """Whether an error has a body for programs; what frameworks say by themselves is plain text."""
    return any(name == b"content-type" and value.startswith(b"application/") for name, value in headers)


def guarded(
    app: Application,
    settings: RequestSettings,
    observe: ObserveRequest | None = None,
    observe_drop: Callable[[str], None] | None = None,
    *,
    hosts: frozenset[str] | None = None,
    tokens: Tokens | None = None,
) -> Application:
    """Return the application behind a guard.

    observe: is called with the route, the status and the seconds of each request. observe_drop: is called by
    `GuardedProtocol` with the reason when a connection is cut. hosts: the names that requests may have in their Host
    header; None: any. tokens: who may ask; None: anyone.
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
        self._working = 0
        self._held = 0
        self.deadlines = Deadlines()

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            start = time.perf_counter()
            answer = Answer(send)
            request = Request(scope)
            try:
                await self._answer(request, scope, receive, answer)
            finally:
                if answer.status:
                    seconds = time.perf_counter() - start
                    if self._observe is not None:
                        self._observe(request.route, answer.status, seconds)
                    if access_log.isEnabledFor(logging.INFO):
                        client, method = ":".join(map(str, scope.get("client") or ("-",))), scope["method"]
                        path = quote(scope["path"])  # without the query, in which ids and secrets may be
                        access_log.info('%s "%s %s" %d %.1f ms', client, method, path, answer.status, 1e3 * seconds)
        else:
            raise RuntimeError(f"the service does not speak {scope['type']}; run uvicorn with ws='none'")

    async def _answer(
        self, request: Request, scope: MutableMapping[str, Any], receive: Receive, answer: Answer
    ) -> None:
        """Judge, read the body, and have the application answer, or tell why not."""
        body: _Body | None = None
        try:
            if (refused := self._access.refused(request)) is not None:
                answer.closes = request.has_body
                await answer.tell(refused)
                return
            if request.has_body:
                body = _Body(self, request, receive, answer)
                await body.read()
                if body.is_gone:
                    return
                receive = body.replayed
            await self._work(request, scope, receive, answer)
        except Problem as problem:
            await answer.tell(problem)
        finally:
            if body is not None:
                self._held -= body.freed()
            if answer.closes:
                await self._linger(receive)
            await answer.end()

    async def _work(self, request: Request, scope: MutableMapping[str, Any], receive: Receive, answer: Answer) -> None:
        """Have the application answer, in time."""
        if not request.is_about_health:
            if self._working >= self.settings.max_requests:
                raise Problem(503, f"{self._working} requests are being worked on", "try again later")
            self._working += 1
            answer.release = self._release
        deadline = self.deadlines.within(self.settings.response_timeout)
        try:
            with deadline:
                await self._app(scope, receive, answer.send)
        except Problem:
            raise
        except Exception as fault:
            if not (isinstance(fault, TimeoutError) and deadline.is_over):
                log.exception("a fault while answering %s", request.route)
                await answer.tell(FAULT)
                return
            if answer.is_started:
                log.warning("an answer to %s was not finished in time", request.route)
                return
            raise self._late(request) from None
        finally:
            answer.released()
        if answer.untold is not None:
            await answer.tell(*answer.untold)
        elif not answer.is_started:
            log.error("no answer was given to %s", request.route)
            await answer.tell(FAULT)

    def _late(self, request: Request) -> Problem:
        cause = f"found no answer within {self.settings.response_timeout:g} s"
        if request.learns:
            return Problem(503, cause, "it may still be learned; send it again with the same ids", undone=False)
        return Problem(503, cause, "ask for fewer rows at a time")

    def _release(self) -> None:
        self._working -= 1

    def hold(self, size: int) -> None:
        """Count bytes that are in memory; a Problem where there are too many."""
        self._held += size
        if self._held > self.settings.max_inflight_bytes:
            raise Problem(503, "the bodies of other requests fill the memory that is set aside", "try again later")

    async def _linger(self, receive: Receive) -> None:
        """Throw away what the client still sends, for a while: closed at once, it might not get to read its answer."""
        try:
            with self.deadlines.within(self.settings.linger_timeout):
                while True:
                    message = await receive()
                    if message["type"] != "http.request" or not message.get("more_body", False):
                        return
        except TimeoutError:
            return


class _Body:
    """The body of a request, as far as it has come in."""

    def __init__(self, guard: _Guard, request: Request, receive: Receive, answer: Answer) -> None:
        self._guard = guard
        self._settings = guard.settings
        self._request = request
        self._receive = receive
        self._answer = answer
        self._parts: list[bytes] = []
        self._size = 0
        self.is_gone = False

    async def read(self) -> None:
        """All of the body, or a Problem: it is too large, or slow."""
        self._answer.closes = True  # unless all of it is read
        if (self._request.length or 0) > self._settings.max_body_bytes:
            raise self._too_large()
        try:
            with self._guard.deadlines.within(self._settings.read_timeout):
                while await self._read_part():
                    pass
        except TimeoutError:
            cause = f"the body did not come in within {self._settings.read_timeout:g} s"
            raise Problem(408, cause, "send it faster, or in smaller requests") from None
        self._answer.closes = False

    async def _read_part(self) -> bool:
        """Whether there is more to come."""
        message = await self._receive()
        if message["type"] != "http.request":
            self.is_gone = True
            return False
        part = message.get("body", b"")
        if self._size + len(part) > self._settings.max_body_bytes:
            raise self._too_large()
        self._size += len(part)
        self._parts.append(part)
        self._guard.hold(len(part))
        return bool(message.get("more_body", False))

    def _too_large(self) -> Problem:
        cause = f"the body has more than {self._settings.max_body_bytes} bytes"
        return Problem(413, cause, "send fewer rows at a time", "body")

    def freed(self) -> int:
        """Forget what has come in; its bytes."""
        size, self._size, self._parts = self._size, 0, []
        return size

    async def replayed(self) -> Message:
        """The body as one message, and then what else the connection tells."""
        if self._parts:
            body, self._parts = b"".join(self._parts), []
            return {"type": "http.request", "body": body, "more_body": False}
        return await self._receive()
