"""The command `deciban serve` as a process of its own, and a client that asks it."""

import contextlib
import json
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests import PATIENCE


@dataclass(frozen=True)
class Answer:
    """What came back: the status, the headers in small letters, and the body."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@contextlib.contextmanager
def serving(path: Path, *options: str, program: Sequence[str] = ("-m", "deciban")) -> Iterator[str]:
    """The address of a service of this model, which is ended in order when the block is left."""
    command = [sys.executable, *program, "serve", str(path), "--port", "0", "--json", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as service:
        assert service.stdout is not None
        try:
            yield json.loads(service.stdout.readline())["address"]
        finally:
            service.send_signal(signal.SIGTERM)
            assert service.wait(PATIENCE) == 0


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
        return port


def ask(address: str, content: Any = None, headers: Mapping[str, str] | None = None, context: Any = None) -> Answer:
    """The answer to a request; content is sent as JSON, by POST."""
    given = {**({} if content is None else {"Content-Type": "application/json"}), **(headers or {})}
    data = content if content is None or isinstance(content, bytes) else json.dumps(content).encode()
    request = urllib.request.Request(address, data, given)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE, context=context) as found:
            return Answer(found.status, _lower(found.headers), found.read())
    except urllib.error.HTTPError as error:
        with error:
            return Answer(error.code, _lower(error.headers), error.read())


def _lower(headers: Any) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}
