"""The consoles of a document, done literally: commands are run in an empty folder and print what is shown."""

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

from tests import PATIENCE

# Where documents have services, which are run on a free port here.
PORT = "8000"

# What differs from run to run: versions, of a file and of a model that learns (its journal, tunings, changes).
VERSION = re.compile(r'(?<=")(?:[0-9a-f]{16}|[0-9a-f]{8}(?=\.[0-9]+\.[0-9]+"))')

# Numbers with so many digits that the last ones may differ from machine to machine.
LONG_NUMBER = re.compile(r"-?[0-9]+\.[0-9]{10,}(?:e-?[0-9]+)?")


def steps(document: Path) -> list[tuple[str, str]]:
    """The commands of a document and what they print, in their order. A command goes on where a line begins with >."""
    found = []
    for block in re.findall(r"```console\n(.*?)```", document.read_text(), re.DOTALL):
        for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            first, *lines = step.splitlines(keepends=True)
            more = [line for line in lines if line.startswith("> ")]
            found.append((first + "".join(line[2:] for line in more), "".join(lines[len(more) :])))
    return [(command.rstrip("\n"), printed) for command, printed in found]


class Console:
    """A shell in a folder, with services in its background. `close` ends them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.services: list[subprocess.Popen[str]] = []
        self.port = PORT
        self.environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}

    def do(self, command: str, printed: str) -> None:
        """Run a command, and fail if it prints something else than this."""
        if command.startswith("cd "):
            self.folder = (self.folder / command.removeprefix("cd ")).resolve()
        elif command == "kill -KILL %1":
            self._end(signal.SIGKILL)
        elif command == "kill %1":
            self._end(signal.SIGTERM)
        elif command.endswith(" &"):
            self._start(command.removesuffix(" &"), printed)
        else:
            self._run(command, printed)

    def _run(self, command: str, printed: str) -> None:
        asked = command.replace(f":{PORT}", f":{self.port}")
        done = subprocess.run(
            ["bash", "-c", asked], cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        shown = "\n".join(line.rstrip() for line in done.stdout.splitlines()) + ("\n" if done.stdout else "")
        self._compare(command, printed, shown)

    def _start(self, command: str, printed: str) -> None:
        """Start a service, on a port that is free, and wait until it has said as many lines as are shown."""
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = str(free.getsockname()[1])
        service = subprocess.Popen(
            ["bash", "-c", f"exec {command} --port {self.port}"],
            cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.services.append(service)
        assert service.stdout is not None
        self._compare(command, printed, "".join(service.stdout.readline() for _ in printed.splitlines()))

    def _compare(self, command: str, printed: str, shown: str) -> None:
        same = re.fullmatch(as_pattern(comparable(printed)), comparable(shown.replace(f":{self.port}", f":{PORT}")))
        assert same, f"{command}\n{shown}"

    def _end(self, how: signal.Signals) -> None:
        """End the service that was started last; one that is asked to must end in order."""
        service = self.services.pop()
        service.send_signal(how)
        assert service.wait(PATIENCE) == (0 if how == signal.SIGTERM else -how), "the service did not end in order"
        assert service.stdout is not None
        service.stdout.close()

    def close(self) -> None:
        """End all services."""
        while self.services:
            self._end(signal.SIGTERM)


def comparable(text: str) -> str:
    """The text without what differs from run to run and from machine to machine.

    >>> comparable('{"model":"671f5689.0.12","p":0.52631578947368423}')
    '{"model":"VERSION.0.12","p":0.526315789}'
    """
    return LONG_NUMBER.sub(lambda number: f"{float(number[0]):.9g}", VERSION.sub("VERSION", text))


def as_pattern(printed: str) -> str:
    """A pattern for the output in which a line "..." stands for any lines, and "..." within a line for anything."""
    parts = [re.escape(part) for part in re.split(r"^\.\.\.\n", printed, flags=re.MULTILINE)]
    return "(.*\n)*".join(part.replace(r"\.\.\.", ".*") for part in parts)


def follow(document: Path, folder: Path) -> None:
    """Do what the document shows, in this folder."""
    console = Console(folder)
    try:
        for command, printed in steps(document):
            console.do(command, printed)
    finally:
        console.close()
