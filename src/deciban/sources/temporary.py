"""Temporary files that are removed when the process ends, however it ends."""

import os
import shutil
import stat
import sys
import tempfile
from dataclasses import dataclass
from typing import Any

from deciban.errors import DataError, Place
from deciban.util import shutdown

# Bytes copied at a time.
COPIED_BYTES = 1 << 20

# Share of the disk that is left free.
MIN_FREE_SPACE = 0.02

# Name for standard input.
STANDARD_INPUT = "-"


@dataclass(frozen=True)
class Temporary:
    """Open temporary file, and a name to open it by. It is closed with this object."""

    file: Any
    name: str

    def __del__(self) -> None:
        self.file.close()


def create_temporary() -> Temporary:
    """Create a temporary file: without a directory entry if the system supports that, else removed at exit."""
    file: Any = tempfile.TemporaryFile(prefix="deciban-")  # noqa: SIM115 - kept open
    name = f"/proc/self/fd/{file.fileno()}"
    if os.path.exists(name):
        return Temporary(file, name)
    file.close()
    file = tempfile.NamedTemporaryFile(prefix="deciban-", suffix=".table")  # noqa: SIM115
    shutdown.remove_at_exit(file.name)
    return Temporary(file, file.name)


def spool(path: str) -> Temporary:
    """Copy standard input, a pipe or a terminal to a file, so that it can be read twice.

    Raises a DataError for endless devices such as /dev/zero, and an OSError before the disk is full.
    """
    if path == STANDARD_INPUT:
        if sys.stdin is None:
            remedy = "give a file or a pipe"
            raise DataError("standard input is closed", remedy=remedy)
        return _copy_to_file(sys.stdin.buffer, "standard input")
    mode = os.stat(path).st_mode
    if not stat.S_ISFIFO(mode) and not stat.S_ISCHR(mode):
        raise DataError("not a file", place=Place(path), remedy="give a file, a folder or a pipe")
    with open(path, "rb") as pipe:
        return _copy_to_file(pipe, path)


def _copy_to_file(source: Any, name: str) -> Temporary:
    """Copy a stream to a temporary file."""
    try:
        endless = stat.S_ISCHR(os.fstat(source.fileno()).st_mode) and not source.isatty()
    except (OSError, ValueError, AttributeError):  # standard input was replaced by another object
        endless = False
    if endless and source.read(1):  # /dev/null is empty
        cause = "this is an endless device"
        raise DataError(cause, place=Place(name), remedy="give a file, a folder or a pipe")
    copy, size = create_temporary(), 0
    while block := source.read(COPIED_BYTES):
        copy.file.write(block)
        size += len(block)
        disk = shutil.disk_usage(tempfile.gettempdir())
        if disk.free < MIN_FREE_SPACE * disk.total:
            raise OSError(
                f"{name}: more than {size / 1e6:,.0f} MB, and the folder for temporary files is nearly full; "
                f"free some disk space, or set TMPDIR to another folder"
            )
    copy.file.flush()
    return copy
