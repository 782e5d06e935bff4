"""Temporary files that are gone with the process, whatever ends it."""

import os
import tempfile
from dataclasses import dataclass
from typing import Any

from deciban import shutdown


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


def spill_folder() -> str:
    """Where DuckDB may put what it has no room for in memory: it makes the folder if need be."""
    path = os.path.join(tempfile.gettempdir(), f"deciban-{os.getpid()}.spill")
    shutdown.remove_at_exit(path)
    return path
