"""What an application says on its way to the client: with the headers of all answers, and every error as a problem."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from deciban.serve.guard.answers import Headers, problem_answer, secured
from deciban.serve.problems import Problem, usual_problem

Message = MutableMapping[str, Any]
Send = Callable[[Message], Awaitable[None]]

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
