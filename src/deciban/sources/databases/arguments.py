"""What others see of a process in the list of all: not the passwords in its arguments."""

import sys
from collections.abc import Sequence

from deciban.sources.databases.addresses import passwords_in


def passwords_among(arguments: Sequence[str]) -> list[str]:
    """The passwords that stand in URLs among the arguments of a command."""
    return [password for argument in arguments if "://" in argument for password in passwords_in(argument)]


def hide_passwords() -> None:
    """Overwrite passwords in the arguments of this process, where the system (Linux) shows them from its memory."""
    passwords = passwords_among(sys.argv)
    if not passwords or sys.platform != "linux":
        return
    import ctypes

    try:
        with open("/proc/self/stat", "rb") as file:
            first, end = (int(field) for field in file.read().rpartition(b")")[2].split()[45:47])
        shown = ctypes.string_at(first, end - first)
        for secret in (password.encode(errors="surrogateescape") for password in passwords):
            shown = shown.replace(secret, b"*" * len(secret))
        ctypes.memmove(first, shown, len(shown))
    except (OSError, ValueError):  # a system that shows them from elsewhere
        return
