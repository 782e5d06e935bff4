"""Temporary files that are gone with the process, whatever ends it."""

import os
import shutil
import stat
import sys
import tempfile
from dataclasses import dataclass
from typing import Any

from deciban import shutdown
from deciban.errors import DataError

# What the user calls standard input.
STANDARD_INPUT = "-"


@dataclass(frozen=True)
class Temporary:
    """A file to be written, and a name by which it can be opened as long as somebody holds this."""

    file: Any
    name: str

    def __del__(self) -> None:
        self.file.close()


def temporary() -> Temporary:
    """A new one: without an entry in any folder where the system can open such files, else removed in the end."""
    file: Any = tempfile.TemporaryFile(prefix="deciban-")  # noqa: SIM115 - open as long as it is needed
    name = f"/proc/self/fd/{file.fileno()}"
    if os.path.exists(name):
        return Temporary(file, name)
    file.close()
    file = tempfile.NamedTemporaryFile(prefix="deciban-", suffix=".table")  # noqa: SIM115
    shutdown.remove_at_exit(file.name)
    return Temporary(file, file.name)


def spooled(path: str) -> Temporary:
    """Standard input or a pipe as a file on disk, so that it can be read twice."""
    if path != STANDARD_INPUT and not stat.S_ISFIFO(os.stat(path).st_mode) and not stat.S_ISCHR(os.stat(path).st_mode):
        raise DataError(f"{path}: this is no file; give a file, a folder or a pipe")
    if path == STANDARD_INPUT and sys.stdin is None:
        raise DataError("standard input is closed; give a file, or something that is read through a pipe")
    copy = temporary()
    if path == STANDARD_INPUT:
        shutil.copyfileobj(sys.stdin.buffer, copy.file, 1 << 20)
    else:
        with open(path, "rb") as pipe:
            shutil.copyfileobj(pipe, copy.file, 1 << 20)
    copy.file.flush()
    return copy


def spill_folder() -> str:
    """Where DuckDB may put what it has no room for in memory: it makes the folder if need be."""
    path = os.path.join(tempfile.gettempdir(), f"deciban-{os.getpid()}.spill")
    shutdown.remove_at_exit(path)
    return path
