"""A real server on loopback for tests, and clients that speak to it byte by byte."""

import contextlib
import re
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import uvicorn

from deciban.serve.connections import make_protocol
from deciban.serve.settings import ConnectionSettings
from tests import PATIENCE


class Running:
    """A server in a thread. cut: the reasons for which connections were cut."""

    def __init__(self, port: int, server: uvicorn.Server, cut: list[str]) -> None:
        self.port = port
        self.server = server
        self.cut = cut

    def connect(self, receive_buffer: int | None = None, source: str = "") -> socket.socket:
        """A client, with an address of its own if `source` is given (all of 127.0.0.0/8 are this machine)."""
        client = socket.socket()
        if source:
            client.bind((source, 0))
        client.settimeout(PATIENCE)
        if receive_buffer is not None:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)  # before it connects, or it grows
        client.connect(("127.0.0.1", self.port))
        return client

    def ask(self, request: bytes, quiet: float = 2.0) -> bytes:
        """All that is answered until the connection is closed, or nothing comes for a while."""
        with self.connect() as client:
            with contextlib.suppress(ConnectionError):  # it may be refused before all is sent
                client.sendall(request)
            return read_all(client, quiet)

    @property
    def connections(self) -> int:
        return len(self.server.server_state.connections)

    def wait_for(self, condition: Any) -> None:
        end = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < end, "it did not come to pass"
            time.sleep(0.01)


@contextlib.contextmanager
def running(
    app: Any, settings: ConnectionSettings, loop: str = "auto", idle: float = 5.0, send_buffer: int | None = None
) -> Iterator[Running]:
    """A server of the application, until the block is left. send_buffer: bytes that the system takes at a time."""
    cut: list[str] = []
    listening = socket.create_server(("127.0.0.1", 0), backlog=256)
    if send_buffer is not None:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer)  # connections have it from here
    protocol = make_protocol(settings, cut.append)
    config = uvicorn.Config(
        app,
        http=protocol,
        ws="none",
        loop=loop,  # type: ignore[arg-type]
        lifespan="off",
        log_config=None,
        server_header=False,
        timeout_keep_alive=idle,  # type: ignore[arg-type]  # asyncio takes parts of seconds
        timeout_graceful_shutdown=2,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    found = Running(listening.getsockname()[1], server, cut)
    try:
        found.wait_for(lambda: server.started)
        yield found
    finally:
        server.should_exit = True
        thread.join(PATIENCE)
        assert not thread.is_alive()


def read_all(client: socket.socket, quiet: float = PATIENCE) -> bytes:
    """What comes until the connection is closed, or nothing has come for so many seconds."""
    client.settimeout(quiet)
    parts = []
    with contextlib.suppress(TimeoutError, ConnectionResetError):
        while part := client.recv(1 << 16):
            parts.append(part)
    return b"".join(parts)


def seconds_until_closed(client: socket.socket) -> float:
    """How long the server keeps the connection open."""
    start = time.monotonic()
    client.settimeout(PATIENCE)
    with contextlib.suppress(ConnectionResetError):
        while client.recv(1 << 16):
            pass
    return time.monotonic() - start


def statuses(answers: bytes) -> list[int]:
    """The status of each answer."""
    return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) [A-Z]", answers)]
