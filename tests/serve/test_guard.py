"""The guard, in ASGI alone: who may ask, how much, for how long; and what every answer has in common."""

import asyncio
import json
import logging
import tracemalloc
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from deciban.serve.access import Tokens
from deciban.serve.middleware import SECURITY_HEADERS, guard
from deciban.serve.problems import Problem
from deciban.serve.settings import RequestSettings
from tests.serve.requests import LEARN, READ, token_file

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class Answer:
    """What was sent back."""

    def __init__(self, messages: list[dict[str, Any]]) -> None:
        self.messages = messages
        start = messages[0]
        assert [message["type"] for message in messages] == [
            "http.response.start",
            *["http.response.body"] * (len(messages) - 1),
        ]
        self.status = start["status"]
        self.headers = {name.decode(): value.decode() for name, value in start["headers"]}
        assert len(self.headers) == len(start["headers"]), "no header is there twice"
        self.body = b"".join(message.get("body", b"") for message in messages[1:])

    def problem(self) -> dict[str, Any]:
        assert self.headers["content-type"] == "application/problem+json"
        found: dict[str, Any] = json.loads(self.body)
        assert found["status"] == self.status
        assert found["cause"]
        assert found["remedy"]
        return found


async def ask(
    app: Any,
    path: str = "/predict",
    method: str = "GET",
    headers: dict[str, str] | list[tuple[bytes, bytes]] | None = None,
    body: list[bytes] | None = None,
    pause: float = 0.0,
) -> Answer:
    """The answer of the application to a request whose body comes in parts, with a pause before each."""
    given = (
        headers if isinstance(headers, list) else [(a.lower().encode(), b.encode()) for a, b in (headers or {}).items()]
    )
    if not any(name == b"host" for name, _ in given):
        given = [*given, (b"host", b"localhost:8000")]
    if body is not None and not any(name in (b"content-length", b"transfer-encoding") for name, _ in given):
        given = [*given, (b"transfer-encoding", b"chunked")]
    parts, sent = list(body or []), []

    async def receive() -> dict[str, Any]:
        await asyncio.sleep(pause)
        if not parts:
            return {"type": "http.request", "body": b"", "more_body": False}
        part = parts.pop(0)
        return {"type": "http.request", "body": part, "more_body": bool(parts)}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "http_version": "1.1",
        "headers": given,
        "root_path": "",
        "scheme": "http",
        "server": ("localhost", 8000),
        "client": ("127.0.0.1", 1),
    }
    await app(scope, receive, send)
    answer = Answer(sent)
    assert sent[-1].get("more_body", False) is False, "the answer has an end"
    for name in SECURITY_HEADERS:
        assert name.decode() in answer.headers
    assert "server" not in answer.headers
    return answer


def run(found: Awaitable[Any]) -> Any:
    async def main() -> Any:
        return await found

    return asyncio.run(main())


async def echo(request: Request) -> Response:
    return JSONResponse({"size": len(await request.body())})


async def fault(request: Request) -> Response:
    raise RuntimeError("/secret/path/of/the/server")


async def refusal(request: Request) -> Response:
    raise Problem(422, "found 'abc', expected a number", "send a number", "rows[0].age")


async def unauthorised(request: Request) -> Response:
    raise HTTPException(409, headers={"retry-after": "7", "x-secret": "kept back"})


async def page(request: Request) -> Response:
    policy = {"Content-Security-Policy": "default-src 'self'", "Cache-Control": "max-age=60", "Server": "it"}
    return HTMLResponse("<p>page", headers=policy)


async def slow(request: Request) -> Response:
    await asyncio.sleep(5)
    return Response()


def application() -> Starlette:
    methods = ["GET", "POST"]
    paths = ["/predict", "/learn", "/forget", "/models/a/learn", "/metrics", "/health/live", "/health/ready", "/model"]
    return Starlette(
        routes=[
            *(Route(path, echo, methods=methods) for path in paths),
            Route("/", page),
            Route("/fault", fault),
            Route("/refusal", refusal),
            Route("/409", unauthorised),
            Route("/slow", slow),
        ]
    )


def app(**settings: Any) -> Any:
    who = {name: settings.pop(name) for name in ("hosts", "tokens") if name in settings}
    return guard(application(), RequestSettings(**settings), **who)


# answers


def test_every_answer_has_the_headers_and_the_page_keeps_its_own() -> None:
    answer = run(ask(app()))
    assert answer.status == 200
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")
    answer = run(ask(app(), "/"))
    assert answer.headers["content-security-policy"] == "default-src 'self'"
    assert answer.headers["cache-control"] == "max-age=60"
    assert answer.headers["x-frame-options"] == "DENY"


def test_errors_of_the_framework_become_problems() -> None:
    assert run(ask(app(), "/nothing")).problem()["title"] == "Not Found"
    answer = run(ask(app(), "/predict", "DELETE"))
    assert answer.problem()["status"] == 405
    assert "GET" in answer.headers["allow"]
    answer = run(ask(app(), "/409"))
    assert answer.problem()["status"] == 409
    assert answer.headers["retry-after"] == "7"
    assert "x-secret" not in answer.headers


def test_a_fault_is_logged_and_not_told(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR, "deciban.serve"):
        answer = run(ask(app(), "/fault"))
    assert answer.problem()["status"] == 500
    assert b"secret" not in answer.body
    assert b"RuntimeError" not in answer.body
    assert "/secret/path" in caplog.text


def test_a_problem_that_is_raised_is_told() -> None:
    assert run(ask(app(), "/refusal")).problem()["place"] == "rows[0].age"


@pytest.mark.parametrize("how", ["nothing", "half", "raises in between"])
def test_an_application_that_breaks_off(how: str, caplog: pytest.LogCaptureFixture) -> None:
    async def breaking(scope: Any, receive: Any, send: Any) -> None:
        if how != "nothing":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"half", "more_body": True})
        if how == "raises in between":
            raise RuntimeError("broken")

    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    scope = {"type": "http", "path": "/", "http_version": "1.1", "headers": [(b"host", b"localhost")]}
    asyncio.run(guard(breaking, RequestSettings())(scope, receive, send))
    statuses = [message["status"] for message in sent if message["type"] == "http.response.start"]
    assert statuses == ([500] if how == "nothing" else [200])
    assert bool(caplog.records) == (how != "half")


def test_requests_are_observed_whatever_comes_of_them() -> None:
    seen: list[tuple[str, int]] = []

    def observe(route: str, status: int, seconds: float) -> None:
        assert 0 <= seconds < 10
        seen.append((route, status))

    watched = guard(application(), RequestSettings(max_body_bytes=3), observe)
    for path in ("/predict", "/models/a/learn", "/nothing/at/all", "/fault", "/health/live", "/"):
        run(ask(watched, path))
    run(ask(watched, method="POST", body=[b"four"]))
    assert seen == [
        ("/predict", 200),
        ("/learn", 200),
        ("other", 404),
        ("other", 500),
        ("/health/live", 200),
        ("/", 200),
        ("/predict", 413),
    ]


# bodies


def test_bodies_up_to_the_limit() -> None:
    behind = app(max_body_bytes=10)
    assert run(ask(behind, method="POST", body=[b"12345", b"67890"])).body == b'{"size":10}'
    assert run(ask(behind, method="POST", body=[b"12345", b"678901"])).problem()["status"] == 413
    answer = run(ask(behind, method="POST", headers={"Content-Length": "11"}, body=[b"12345"]))
    assert answer.problem()["place"] == "body"
    assert answer.headers["connection"] == "close"


def test_memory_holds_no_more_than_the_limit() -> None:
    """A body without end: the application is never asked, and what comes is thrown away."""
    came = 0

    async def endless() -> dict[str, Any]:
        nonlocal came
        came += 1
        await asyncio.sleep(0)
        return {"type": "http.request", "body": bytes(1 << 20), "more_body": True}

    sent: list[dict[str, Any]] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {"type": "http", "path": "/predict", "http_version": "1.1",
             "headers": [(b"host", b"localhost"), (b"transfer-encoding", b"chunked")]}  # fmt: skip
    behind = app(max_body_bytes=4 << 20, linger_timeout=0.3)
    tracemalloc.start()
    try:
        asyncio.run(behind(scope, endless, send))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert Answer(sent).status == 413
    assert came > 5, "the rest was read, and thrown away"
    assert peak < 8 << 20
    assert behind._held_bytes == 0


def test_the_bodies_of_all_requests_together_are_bounded() -> None:
    behind = app(max_inflight_bytes=100, read_timeout=2.0, linger_timeout=0.05)

    async def main() -> list[Answer]:
        slow = [ask(behind, method="POST", body=[b"x" * 40, b"y"], pause=0.2) for _ in range(3)]
        return list(await asyncio.gather(*slow))

    found = asyncio.run(main())
    assert sorted(answer.status for answer in found) == [200, 200, 503]
    assert run(ask(behind, method="POST", body=[b"x" * 90])).status == 200, "what was held is free again"
    assert behind._held_bytes == 0


def test_a_slow_body_is_answered_408() -> None:
    answer = run(ask(app(read_timeout=0.1, linger_timeout=0.05), method="POST", body=[b"x"] * 20, pause=0.03))
    assert answer.problem()["status"] == 408
    assert answer.headers["connection"] == "close"


def test_a_client_that_goes_away_is_not_answered() -> None:
    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "path": "/predict", "http_version": "1.1",
             "headers": [(b"host", b"localhost"), (b"content-length", b"5")]}  # fmt: skip
    asyncio.run(app()(scope, receive, send))
    assert sent == []


# time and places


def test_an_answer_that_takes_too_long_is_given_up() -> None:
    answer = run(ask(app(response_timeout=0.1), "/slow"))
    assert answer.problem()["status"] == 503
    assert answer.headers["retry-after"]


@pytest.mark.parametrize("path", ["/learn", "/models/a/forget"])
def test_what_may_still_be_learned_is_not_said_to_be_undone(path: str) -> None:
    async def slow(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.sleep(5)

    answer = run(ask(guard(slow, RequestSettings(response_timeout=0.1)), path))
    assert answer.status == 503
    assert answer.problem()["remedy"] == "the change may still be made; send the request again with the same ids"
    assert "retry-after" not in answer.headers


def test_an_error_of_time_within_the_application_is_a_fault() -> None:
    async def late(scope: Any, receive: Any, send: Any) -> None:
        raise TimeoutError("of something else")

    assert run(ask(guard(late, RequestSettings()))).status == 500


def test_requests_at_a_time_are_bounded_and_health_is_told_nevertheless() -> None:
    behind = app(max_requests=2, response_timeout=0.3)

    async def main() -> list[Answer]:
        working = [asyncio.create_task(ask(behind, "/slow")) for _ in range(2)]
        await asyncio.sleep(0.05)
        found = [await ask(behind), await ask(behind, "/health/live"), await ask(behind, "/metrics")]
        await asyncio.gather(*working)
        return [*found, await ask(behind)]

    busy, live, metrics, after = asyncio.run(main())
    assert busy.problem()["status"] == 503
    assert busy.headers["retry-after"] == "1"
    assert (live.status, metrics.status, after.status) == (200, 200, 200)


def test_a_client_that_reads_slowly_takes_no_place_among_those_worked_on() -> None:
    behind = app(max_requests=1)
    reading = asyncio.Event()

    async def main() -> int:
        async def send(message: Any) -> None:
            await reading.wait()

        async def receive() -> dict[str, Any]:
            return {"type": "http.disconnect"}

        scope = {"type": "http", "method": "GET", "path": "/predict", "http_version": "1.1", "query_string": b"",
                 "root_path": "", "headers": [(b"host", b"localhost")]}  # fmt: skip
        task = asyncio.create_task(behind(scope, receive, send))
        await asyncio.sleep(0.05)
        status: int = (await ask(behind)).status
        reading.set()
        await task
        return status

    assert asyncio.run(main()) == 200


# who may ask


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8000", "127.0.0.1:1", "[::1]:8000", "[::1]"])
def test_hosts_of_this_machine(host: str) -> None:
    assert run(ask(app(hosts=LOOPBACK), headers={"Host": host})).status == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "localhost.evil.example",
        "",
        "127.0.0.1.evil",
        "[::2]",
        "[::1",
        "[::1]x",
        "localhost:80@evil",
        "ä",
    ],
)
def test_a_name_that_was_bound_to_this_machine_by_others_is_refused(host: str) -> None:
    assert run(ask(app(hosts=LOOPBACK), headers={"Host": host})).status == 421
    assert run(ask(app(hosts=None), headers={"Host": host})).status == 200


def test_one_host_header_is_expected() -> None:
    twice = [(b"host", b"localhost"), (b"host", b"localhost")]
    assert run(ask(app(), headers=twice)).problem()["status"] == 400


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "http://localhost:8000"}, 200),
        ({"Origin": "http://localhost:8000", "Sec-Fetch-Site": "same-origin"}, 200),
        ({"Sec-Fetch-Site": "none"}, 200),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "http://localhost:3000"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
    ],
)
def test_a_page_of_another_site_may_not_ask(headers: dict[str, str], status: int) -> None:
    """A browser sends what a page has it send, with no token needed on loopback: its headers tell whose page it is."""
    assert run(ask(app(hosts=LOOPBACK), "/learn", "POST", headers, [b"[]"])).status == status


@pytest.fixture
def tokens(tmp_path: Path) -> Tokens:
    return Tokens.open(token_file(tmp_path, f"read {READ}\nlearn {LEARN}\n"))


def with_token(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.mark.parametrize(
    ("path", "nothing", "reading", "learning"),
    [
        ("/", 200, 200, 200),
        ("/health/live", 200, 200, 200),
        ("/health/ready", 200, 200, 200),
        ("/predict", 401, 200, 200),
        ("/model", 401, 200, 200),
        ("/metrics", 401, 200, 200),
        ("/nothing", 401, 404, 404),
        ("/learn", 401, 403, 200),
        ("/forget", 401, 403, 200),
        ("/models/a/learn", 401, 403, 200),
        ("/learn/", 401, 403, 307),
        ("/learn\n", 400, 400, 400),
        ("/learn\x00", 400, 400, 400),
        ("//health/live", 401, 404, 404),
        ("/health/live/", 401, 307, 307),
    ],
)
def test_what_tokens_may_do(tokens: Tokens, path: str, nothing: int, reading: int, learning: int) -> None:
    behind = app(tokens=tokens)
    assert run(ask(behind, path)).status == nothing
    assert run(ask(behind, path, headers=with_token(READ))).status == reading
    assert run(ask(behind, path, headers=with_token(LEARN))).status == learning


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": ""},
        {"Authorization": READ},
        {"Authorization": f"Basic {READ}"},
        {"Authorization": f"Bearer{READ}"},
        {"Authorization": f"Bearer {READ}x"},
        {"Authorization": f"Bearer {READ} {READ}"},
        {"Authorization": "Bearer "},
        [(b"authorization", f"Bearer {READ}".encode())] * 2,
    ],
)
def test_a_wrong_token_is_answered_401(tokens: Tokens, headers: Any) -> None:
    answer = run(ask(app(tokens=tokens), headers=headers))
    assert answer.problem()["status"] == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
    assert READ.encode() not in answer.body


def test_the_scheme_may_be_written_in_any_case(tokens: Tokens) -> None:
    assert run(ask(app(tokens=tokens), headers={"Authorization": f"bearer {READ}"})).status == 200


def test_a_body_without_a_token_is_not_read(tokens: Tokens) -> None:
    answer = run(ask(app(tokens=tokens, linger_timeout=0.05), "/learn", "POST", body=[b"x"] * 1000, pause=0.01))
    assert answer.status == 401
    assert answer.headers["connection"] == "close"


def test_the_application_gets_the_whole_body_and_then_what_the_connection_tells() -> None:
    got: list[Any] = []

    async def reading(scope: Any, receive: Callable[[], Awaitable[Any]], send: Any) -> None:
        got.extend([await receive(), await receive()])
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})

    assert run(ask(guard(reading, RequestSettings()), method="POST", body=[b"a", b"b", b"c"])).status == 204
    assert got[0] == {"type": "http.request", "body": b"abc", "more_body": False}


def test_titles_of_problems_do_not_depend_on_the_version_of_python() -> None:
    """Python 3.13 has those of RFC 9110, older ones those of RFC 4918 and 2616."""
    titles = {status: Problem(status, "cause", "remedy").to_dict()["title"] for status in (404, 413, 414, 422)}
    assert titles == {404: "Not Found", 413: "Content Too Large", 414: "URI Too Long", 422: "Unprocessable Content"}
