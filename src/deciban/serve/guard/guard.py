"""The guard around the application: who may ask, how much, for how long; and what every answer has in common.

`guarded` is pure ASGI. It reads the body itself, before the application runs: a client that sends slowly takes up no
place among the requests that are worked on, and no more memory than it has sent. All that the application says passes
through it, so that no answer lacks the headers of `deciban.serve.guard.answers` and no error is anything but a problem.
"""

import logging
import time
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from deciban.serve.guard.access import Access, Request
from deciban.serve.guard.answering import FAULT, Answer, Message, Send
from deciban.serve.guard.deadlines import Deadlines
from deciban.serve.guard.tokens import Tokens
from deciban.serve.problems import Problem

Receive = Callable[[], Awaitable[Message]]
Application = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

# Is called with the route, the status and the seconds of each request.
ObserveRequest = Callable[[str, int, float], None]

log = logging.getLogger("deciban.serve")
access_log = logging.getLogger("deciban.serve.access")


@dataclass(frozen=True)
class GuardSettings:
    """What requests may ask of the service.

    most_body_bytes: of one request. most_held_bytes: of all bodies that are in memory at a time. body_limit: seconds
    within which a body has come in. answer_limit: seconds within which it is answered. most_waiting: requests that are
    worked on at a time. linger_limit: seconds for which the rest of a body that was refused is read and thrown away, so
    that the client gets to read why. hosts: the names that requests may have in their Host header; None: any. tokens:
    who may ask; None: anyone. open_paths: what may be asked without a token.
    """

    most_body_bytes: int = 16 << 20
    most_held_bytes: int = 256 << 20
    body_limit: float = 30.0
    answer_limit: float = 60.0
    most_waiting: int = 256
    linger_limit: float = 1.0
    hosts: frozenset[str] | None = None
    tokens: Tokens | None = None
    open_paths: frozenset[str] = frozenset({"/", "/health/live", "/health/ready"})


def guarded(
    app: Application,
    settings: GuardSettings,
    observe: ObserveRequest | None = None,
    observe_cut: Callable[[str], None] | None = None,
) -> Application:
    """The application behind a guard.

    observe: is called with the route, the status and the seconds of each request. observe_cut: is called by
    `GuardedProtocol` with the reason when a connection is cut.
    """
    return _Guard(app, settings, observe, observe_cut)


class _Guard:
    def __init__(
        self,
        app: Application,
        settings: GuardSettings,
        observe: ObserveRequest | None,
        observe_cut: Callable[[str], None] | None,
    ) -> None:
        self._app = app
        self._settings = settings
        self._observe = observe
        self.observe_cut = observe_cut
        self._access = Access(settings.hosts, settings.tokens, settings.open_paths)
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
            if self._working >= self._settings.most_waiting:
                raise Problem(503, f"{self._working} requests are being worked on", "try again later")
            self._working += 1
            answer.release = self._release
        deadline = self.deadlines.within(self._settings.answer_limit)
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
        cause = f"found no answer within {self._settings.answer_limit:g} s"
        if request.learns:
            return Problem(503, cause, "it may still be learned; send it again with the same ids", undone=False)
        return Problem(503, cause, "ask for fewer rows at a time")

    def _release(self) -> None:
        self._working -= 1

    def hold(self, size: int) -> None:
        """Count bytes that are in memory; a Problem where there are too many."""
        self._held += size
        if self._held > self._settings.most_held_bytes:
            raise Problem(503, "the bodies of other requests fill the memory that is set aside", "try again later")

    async def _linger(self, receive: Receive) -> None:
        """Throw away what the client still sends, for a while: closed at once, it might not get to read its answer."""
        try:
            with self.deadlines.within(self._settings.linger_limit):
                while True:
                    message = await receive()
                    if message["type"] != "http.request" or not message.get("more_body", False):
                        return
        except TimeoutError:
            return

    @property
    def settings(self) -> GuardSettings:
        return self._settings


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
        if (self._request.length or 0) > self._settings.most_body_bytes:
            raise self._too_large()
        try:
            with self._guard.deadlines.within(self._settings.body_limit):
                while await self._read_part():
                    pass
        except TimeoutError:
            cause = f"the body did not come in within {self._settings.body_limit:g} s"
            raise Problem(408, cause, "send it faster, or in smaller requests") from None
        self._answer.closes = False

    async def _read_part(self) -> bool:
        """Whether there is more to come."""
        message = await self._receive()
        if message["type"] != "http.request":
            self.is_gone = True
            return False
        part = message.get("body", b"")
        if self._size + len(part) > self._settings.most_body_bytes:
            raise self._too_large()
        self._size += len(part)
        self._parts.append(part)
        self._guard.hold(len(part))
        return bool(message.get("more_body", False))

    def _too_large(self) -> Problem:
        cause = f"the body has more than {self._settings.most_body_bytes} bytes"
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
