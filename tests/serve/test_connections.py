"""Clients that are slow, silent, hostile or confused, against a real server on loopback."""

import contextlib
import gc
import json
import socket
import threading
import time
from collections.abc import Iterator

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from deciban.serve.connections import HEALTH_RESERVE, GuardedProtocol
from deciban.serve.middleware import guard
from deciban.serve.settings import ConnectionSettings, RequestSettings
from tests import PATIENCE
from tests.serve.servers import Running, read_all, running, seconds_until_closed, statuses

SETTINGS = ConnectionSettings(
    head_timeout=0.3, send_timeout=0.4, max_head_bytes=4096, max_headers=20, max_url_bytes=1000, max_connections=200
)
GUARD = RequestSettings(max_body_bytes=100_000, read_timeout=0.4, linger_timeout=0.2)
HEAD = b"GET /echo HTTP/1.1\r\nHost: localhost\r\n"
GET = HEAD + b"\r\n"
LARGE = bytes(20_000_000)  # more than the buffers of two sockets hold


async def echo(request: Request) -> Response:
    body = await request.body()
    return JSONResponse({"path": request.url.path, "size": len(body), "headers": len(request.headers)})


async def large(request: Request) -> Response:
    return Response(LARGE, media_type="application/octet-stream")


async def short(request: Request) -> Response:
    return Response(bytes(50_000), media_type="application/octet-stream")


def application() -> Starlette:
    return Starlette(
        routes=[
            Route("/echo", echo, methods=["GET", "POST"]),
            Route("/large", large),
            Route("/short", short),
            Route("/learn", echo),
            Route("/health/ready", echo),
        ]
    )


@pytest.fixture(scope="module", params=["uvloop", "asyncio"])
def server(request: pytest.FixtureRequest) -> Iterator[Running]:
    if request.param == "uvloop":
        pytest.importorskip("uvloop")
    with running(guard(application(), GUARD), SETTINGS, request.param, idle=0.25) as found:
        yield found


def post(body: bytes, *headers: bytes, path: bytes = b"/echo") -> bytes:
    lines = [b"POST " + path + b" HTTP/1.1", b"Host: localhost", b"Content-Length: %d" % len(body), *headers]
    return b"\r\n".join([*lines, b"", body])


def endless() -> Iterator[None]:
    """Turns of a client that goes on until it is cut off."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        yield
    raise AssertionError("the client was not cut off")


def keep_sending(client: socket.socket, part: bytes, pause: float = 0.0) -> None:
    for _ in endless():
        client.sendall(part)
        time.sleep(pause)


def problem(answer: bytes) -> dict[str, object]:
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"content-type: application/problem+json" in head
    assert b"content-security-policy: default-src 'none'" in head
    found: dict[str, object] = json.loads(body)
    return found


# slow clients


def test_a_silent_client_is_cut_off(server: Running) -> None:
    with server.connect() as client:
        assert seconds_until_closed(client) > 0.2


def test_a_head_that_comes_byte_by_byte_is_cut_off(server: Running) -> None:
    with server.connect() as client:
        before = server.cut.count("head_timeout")
        with contextlib.suppress(ConnectionError):
            for byte in HEAD + b"X: " + b"x" * 3000:
                client.sendall(bytes([byte]))
                time.sleep(0.05)
        assert server.cut.count("head_timeout") == before + 1
        assert read_all(client) == b""


def test_line_breaks_before_a_request_do_not_keep_a_connection(server: Running) -> None:
    with server.connect() as client:
        client.sendall(GET)
        assert b" 200 " in client.recv(4096)
        with pytest.raises(ConnectionError):
            keep_sending(client, b"\r\n", 0.05)


def test_a_second_request_that_begins_slowly_is_cut_off(server: Running) -> None:
    with server.connect() as client:
        client.sendall(GET)
        assert b" 200 " in client.recv(4096)
        client.sendall(b"GET /ec")
        assert seconds_until_closed(client) > 0.2


def test_a_connection_without_requests_is_closed(server: Running) -> None:
    with server.connect() as client:
        client.sendall(GET)
        assert b" 200 " in client.recv(4096)
        assert seconds_until_closed(client) > 0.2


@pytest.mark.parametrize("last", [b"Content-Length: 1000\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n400\r\n"])
def test_a_slow_body_is_answered_408_and_closed(server: Running, last: bytes) -> None:
    with server.connect() as client:
        client.sendall(b"POST /echo HTTP/1.1\r\nHost: localhost\r\n" + last)
        answer = b""
        client.settimeout(0.05)
        for _ in endless():
            try:
                client.sendall(b"x")
                part = client.recv(4096)
                if not part:
                    break
                answer += part
            except TimeoutError:
                continue
            except ConnectionError:
                break
        assert statuses(answer) == [408]
        assert problem(answer)["status"] == 408


def test_a_body_that_goes_on_after_the_answer_does_not_keep_a_connection(server: Running) -> None:
    """A 404 is told when the body is there, a request refused by its head before."""
    with server.connect() as client:
        client.sendall(b"POST /echo HTTP/1.1\r\nContent-Length: 1000\r\n\r\n")  # without Host: refused
        with pytest.raises(ConnectionError):
            keep_sending(client, b"x", 0.05)
        assert statuses(read_all(client)) in ([400], [])


def test_a_client_that_does_not_read_is_cut_off(server: Running) -> None:
    before = server.cut.count("send_timeout")
    with server.connect() as client:
        client.sendall(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
        server.wait_for(lambda: server.cut.count("send_timeout") > before)
        server.wait_for(lambda: server.connections == 0)


@pytest.mark.parametrize("loop", ["uvloop", "asyncio"])
def test_a_client_that_does_not_read_a_short_answer_is_cut_off(loop: str) -> None:
    """So short that nobody waits for it to be sent: the idle connection is closed, which lasts until all is read."""
    if loop == "uvloop":
        pytest.importorskip("uvloop")
    app = guard(application(), GUARD)
    with running(app, SETTINGS, loop, 0.1, send_buffer=4096) as server, server.connect(receive_buffer=2048) as client:
        client.sendall(b"GET /short HTTP/1.1\r\nHost: localhost\r\n\r\n")
        server.wait_for(lambda: server.cut == ["send_timeout"])
        server.wait_for(lambda: server.connections == 0)


def test_a_client_that_asks_and_asks_and_does_not_read_is_cut_off(server: Running) -> None:
    """Answers that are small fill the buffers too, in the end."""
    with server.connect() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.settimeout(2)
        with pytest.raises((ConnectionError, TimeoutError)):
            keep_sending(client, GET * 4)
        server.wait_for(lambda: server.connections == 0)


def test_a_client_that_reads_slowly_but_in_time_gets_all(server: Running) -> None:
    with server.connect() as client:
        client.sendall(b"GET /large HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        time.sleep(0.2)
        assert len(read_all(client)) > len(LARGE)


def test_others_are_answered_while_fifty_are_slow(server: Running) -> None:
    begun = [
        b"",
        b"GET /ec",
        b"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nx",
        b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
    ]
    with contextlib.ExitStack() as stack:
        slow = [stack.enter_context(server.connect()) for _ in range(50)]
        for place, client in enumerate(slow):
            client.sendall(begun[place % len(begun)])
        for _ in range(20):
            assert statuses(server.ask(HEAD + b"Connection: close\r\n\r\n", quiet=PATIENCE)) == [200]
        server.wait_for(lambda: server.connections == 0)


def test_no_timer_outlives_its_connection(server: Running) -> None:
    for _ in range(20):
        assert statuses(server.ask(HEAD + b"Connection: close\r\n\r\n")) == [200]
    server.wait_for(lambda: server.connections == 0)
    time.sleep(0.1)
    gc.collect()
    ours = server.server.server_state  # other tests may have servers of their own in this process
    made = [one for one in gc.get_objects() if issubclass(type(one), GuardedProtocol) and one.server_state is ours]
    left = [one for one in made if one.transport is not None]
    assert [one for one in left if one._timer is not None or one.timeout_keep_alive_task is not None] == []


HEALTH = b"GET /health/ready?x=1 HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.mark.parametrize(
    "settings", [ConnectionSettings(max_connections=3), ConnectionSettings(max_connections_per_address=3)]
)
def test_connections_beyond_the_bounds_may_ask_for_health_alone(settings: ConnectionSettings) -> None:
    with running(guard(application(), GUARD), settings) as server, contextlib.ExitStack() as stack:
        clients = [stack.enter_context(server.connect()) for _ in range(3)]
        server.wait_for(lambda: server.connections == 3)
        refused = server.ask(GET, quiet=PATIENCE)  # until it is closed
        assert statuses(refused) == [503]
        assert "too many open connections" in problem(refused)["cause"]
        assert server.cut == ["too_many_connections"]
        told = server.ask(HEALTH, quiet=PATIENCE)
        assert statuses(told) == [200]
        assert b"connection: close" in told
        clients[0].sendall(GET)
        assert b" 200 " in clients[0].recv(4096)
        clients.pop().close()
        server.wait_for(lambda: server.connections == 2)
        assert statuses(server.ask(GET)) == [200]


def test_one_address_has_its_share_of_connections() -> None:
    settings = ConnectionSettings(max_connections_per_address=5)
    with running(guard(application(), GUARD), settings) as server, contextlib.ExitStack() as stack:
        for _ in range(5):
            stack.enter_context(server.connect())
        server.wait_for(lambda: server.connections == 5)
        assert statuses(server.ask(GET)) == [503]
        with server.connect(source="127.0.0.2") as other:
            other.sendall(GET)
            assert b" 200 " in other.recv(4096)


@pytest.mark.parametrize("loop", ["uvloop", "asyncio"])
def test_health_is_answered_whatever_number_of_connections_one_client_has(loop: str) -> None:
    """Also where the client and whoever looks after the service have one address; and nothing is left of it."""
    settings = ConnectionSettings(max_connections=30)
    with running(guard(application(), GUARD), settings, loop) as server:
        with contextlib.ExitStack() as stack:
            for _ in range(150):
                stack.enter_context(server.connect())
            for _ in range(3):
                assert statuses(server.ask(HEALTH, quiet=PATIENCE)) == [200]
            server.wait_for(lambda: server.connections <= 30 + HEALTH_RESERVE)
            assert set(server.cut) == {"too_many_connections"}
        server.wait_for(lambda: server.connections == 0)
        assert statuses(server.ask(GET)) == [200]
        server.wait_for(lambda: server.connections == 0)
        counted = server.server.config.http.keywords["open_connections"]  # type: ignore[union-attr]
        assert (counted.per_address, counted.reserve) == ({}, {})


# bodies


def test_a_body_within_the_limit_is_taken(server: Running) -> None:
    assert b'"size":100000' in server.ask(post(b"x" * 100_000))


def test_a_body_that_says_it_is_too_large_is_refused_before_it_comes(server: Running) -> None:
    head = b"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100001\r\n\r\n"
    answer = server.ask(head)
    assert statuses(answer) == [413]
    assert b"connection: close" in answer
    assert problem(answer)["place"] == "body"


@pytest.mark.parametrize("size", [100_001, 3_000_000])
def test_a_body_that_is_too_large_is_refused_and_the_client_reads_why(server: Running, size: int) -> None:
    assert statuses(server.ask(post(b"x" * size))) == [413]


def test_a_body_in_chunks_is_refused_when_it_gets_too_large(server: Running) -> None:
    head = b"POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunk = b"2710\r\n" + b"x" * 10_000 + b"\r\n"
    assert b'"size":100000' in server.ask(head + 10 * chunk + b"0\r\n\r\n")
    assert statuses(server.ask(head + 11 * chunk + b"0\r\n\r\n")) == [413]
    assert statuses(server.ask(head + 10 * chunk + b"1\r\nx\r\n")) == [413]


def test_an_endless_body_is_cut_off(server: Running) -> None:
    with server.connect() as client:
        client.sendall(b"POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        with pytest.raises(ConnectionError):
            keep_sending(client, b"2710\r\n" + b"x" * 10_000 + b"\r\n")


def test_a_client_that_waits_for_100_continue_is_told_to_go_on(server: Running) -> None:
    with server.connect() as client:
        client.sendall(b"POST /echo HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
        assert client.recv(4096) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(b"ab")
        assert b'"size":2' in read_all(client, 0.3)
    head = b"POST /echo HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 200000\r\n\r\n"
    assert statuses(server.ask(head)) == [413]  # without 100


# heads


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (post(b"ab", b"Content-Length: 2"), 400),
        (post(b"ab", b"Content-Length: 3"), 400),
        (post(b"", b"Transfer-Encoding: chunked") + b"0\r\n\r\n", 400),
        (b"POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n", 400),
        (b"POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501),
        (b"POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip\r\n\r\n", 501),
        (b"POST /echo HTTP/1.0\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 501),
        (b"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", 400),
        (b"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: +1\r\n\r\nx", 400),
        (b"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999\r\n\r\n", 400),
        (b"POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
        (b"POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nxyz\r\n", 400),
        (HEAD + b"X: a\r\n b\r\n\r\n", 400),
        (HEAD + b"X: a\0b\r\n\r\n", 400),
        (HEAD + b"X\0: b\r\n\r\n", 400),
        (HEAD + b"X : b\r\n\r\n", 400),
        (HEAD + b": b\r\n\r\n", 400),
        (HEAD + b"no colon\r\n\r\n", 400),
        (b"GET /echo HTTP/1.1\nHost: localhost\n\n", 400),
        (b"GET /echo HTTP/1.1\r\nHost: localhost\nX: b\r\n\r\n", 400),
        (b"GET /echo HTTP/1.1\r\nHost: localhost\rX: b\r\n\r\n", 400),
        (b"GET /echo HTTP/1.1\r\n\r\n", 400),
        (HEAD + b"Host: localhost\r\n\r\n", 400),
        (b"GET /echo\r\n\r\n", 505),
        (b"GET /echo HTTP/2.0\r\nHost: localhost\r\n\r\n", 505),
        (b"GET /echo HTTP/1.7\r\nHost: localhost\r\n\r\n", 400),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
        (b"get /echo HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        (b"BREW /echo HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        (b"GET /\xff HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        (b"GET /a b HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        (b"GET /learn%0A HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        (b"GET /echo%00 HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        (b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        (b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        (b"GET http://elsewhere/echo HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        (b"GET http://localhost HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        (b"GET http://localhost/echo HTTP/1.1\r\nHost: localhost\r\n\r\n", 200),
        (b"GET /../echo HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
        (b"GET /%2e%2e/echo HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
        (b"GET /echo/../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
        (b"GET /..%2f..%2fetc%2fpasswd HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
        (b"GET //echo HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
        (b"GET /%ff%fe HTTP/1.1\r\nHost: localhost\r\n\r\n", 404),
        (b"GET /" + b"a" * 1000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", 414),
        (b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", 414),
        (b"GET /" + b"a" * 500_000, 414),
        (HEAD + b"X: " + b"a" * 5000 + b"\r\n\r\n", 431),
        (HEAD + b"X: " + b"a" * 500_000, 431),
        (HEAD + b"X" * 500_000, 431),
        (HEAD + b"".join(b"X%d: a\r\n" % n for n in range(20)) + b"\r\n", 431),
        (HEAD + b"X: aaaa\r\n" * 10_000 + b"\r\n", 431),
        (b"DELETE /echo HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
        (b"OPTIONS /echo HTTP/1.1\r\nHost: localhost\r\n\r\n", 405),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
    ],
)
def test_heads_are_answered_as_stated(server: Running, request_: bytes, status: int) -> None:
    answer = server.ask(request_)
    assert statuses(answer) == [status]
    if status >= 400:
        assert problem(answer)["status"] == status
    assert b"Traceback" not in answer
    assert b"server:" not in answer.lower()


def test_head_and_http_1_0(server: Running) -> None:
    answer = server.ask(b"HEAD /echo HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    assert statuses(answer) == [200]
    assert answer.endswith(b"\r\n\r\n")
    answer = server.ask(b"GET /echo HTTP/1.0\r\n\r\n")
    assert statuses(answer) == [200]
    assert b"connection: close" in answer


def test_requests_in_a_row_are_answered_in_a_row(server: Running) -> None:
    assert statuses(server.ask(GET * 5)) == [200] * 5
    assert statuses(server.ask(GET + post(b"abc") + GET)) == [200] * 3


def test_a_request_behind_which_nonsense_comes_is_answered_first(server: Running) -> None:
    assert statuses(server.ask(GET + b"nonsense\r\n\r\n")) == [200, 400]
    assert statuses(server.ask(GET * 3 + b"nonsense\r\n\r\n" + GET)) == [200, 200, 200, 400]
    wrong = b"POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"
    assert statuses(server.ask(GET + wrong)) == [200, 400]
    assert statuses(server.ask(GET + GET + wrong)) == [200, 200, 400]


def test_too_many_requests_in_a_row_are_refused(server: Running) -> None:
    assert statuses(server.ask(GET * 1000)) == [200] * 9 + [503]


def test_a_request_within_a_body_is_not_one(server: Running) -> None:
    assert statuses(server.ask(post(GET))) == [200]


def test_trailers_are_left_out_and_bounded(server: Running) -> None:
    head = b"POST /echo HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n"
    assert b'"headers":2' in server.ask(head + b"Authorization: Bearer x\r\n\r\n")
    assert statuses(server.ask(head + b"X: " + b"a" * 600_000)) == [431]
    assert statuses(server.ask(head + b"X: aaaaaaa\r\n" * 10_000)) == [431]


def test_another_protocol_is_not_spoken(server: Running) -> None:
    upgrade = HEAD + b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\r\n"
    answer = server.ask(upgrade + b"\x81\x05hello")
    assert statuses(answer) == [200]
    assert b"connection: close" in answer


def test_many_clients_at_once_are_all_answered(server: Running) -> None:
    found: list[list[int]] = []

    def ask() -> None:
        found.extend(statuses(server.ask(GET * 2 + HEAD + b"Connection: close\r\n\r\n")) for _ in range(5))

    threads = [threading.Thread(target=ask) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[200, 200, 200]] * 50
