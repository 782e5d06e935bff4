"""Standard output and standard error, such that no label, no narrow encoding and no closed stream is a fault."""

import io
import os
import sys
from typing import Any, BinaryIO, cast


class Nowhere(io.RawIOBase):
    """Stands for a standard output that is closed; `lost` tells whether something was to be said there."""

    lost = False

    def write(self, data: Any) -> int:
        Nowhere.lost = True
        return len(data)

    def writable(self) -> bool:
        return True


def prepare() -> None:
    """Before anything is opened or said.

    A closed descriptor is given to the null device, so that no file gets its number, into which libraries would then
    write their words. To files and pipes text goes in UTF-8; what a narrower terminal cannot show is escaped.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free, which is this one
    if sys.stdout is None:
        sys.stdout = io.TextIOWrapper(cast(BinaryIO, Nowhere()), "utf-8")
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - to the end
    for stream in (sys.stdout, sys.stderr):
        widen(stream)


def widen(stream: Any) -> None:
    """Let a stream take every character."""
    if hasattr(stream, "reconfigure"):
        if stream.isatty():
            stream.reconfigure(errors="backslashreplace")
        else:
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
