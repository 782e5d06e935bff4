"""Termination by signals: unfinished files are removed, and the exit code is that of the signal.

No exception is raised. If C code is calling Python (during an import, a compilation or a query), an exception from a
signal may be lost or replaced; ending the process is reliable. Files are written completely or not at all, so only the
temporary files registered here need to be removed.
"""

import os
import signal
import sys

TYPE_CHECKING = False  # type checkers take it for true; importing typing takes time in which no signal is caught yet
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

# Signals and the message for each; the exit codes are 128 plus the number: 129, 130, 143.
SIGNALS = {"SIGHUP": "hung up", "SIGINT": "interrupted", "SIGTERM": "terminated"}

_unfinished: dict[str, int] = {}  # paths, and the process that made them
written: list[str] = []  # paths of finished results


def remove_at_exit(path: str) -> None:
    """Remove this file or folder when the process ends by a signal, or as a command."""
    _unfinished[path] = os.getpid()


def mark_finished(path: str, result: str | None = None) -> None:
    """Keep this file or folder; `result` is the path that it was renamed to."""
    _unfinished.pop(path, None)
    if result is not None and result not in written:
        written.append(result)


def catch_signals() -> None:
    """End at the first signal, with its exit code; ignored signals (nohup, &) stay ignored."""
    for name in SIGNALS:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _stop)


def leave(code: int) -> "NoReturn":
    """Exit immediately with this code, because a signal during interpreter shutdown would print an error."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except BrokenPipeError:  # the reader has closed the pipe
            pass
        except (OSError, ValueError) as problem:
            _print_error(f"deciban: error: the output cannot be written: {problem}")
            code = code or 5
    _remove_unfinished()
    os._exit(code)


def _stop(number: int, frame: object) -> "NoReturn":
    _remove_unfinished()
    changed = f"{', '.join(written)} had been written" if written else "nothing was changed"
    _print_error(f"deciban: {SIGNALS[signal.Signals(number).name]}: {changed}")
    os._exit(128 + number)


def _print_error(text: str) -> None:
    start = "\n" if os.isatty(2) else ""  # after ^C and the line of progress
    try:
        os.write(2, f"{start}{text}\n".encode(errors="backslashreplace"))
    except OSError:
        return


def _remove_unfinished() -> None:
    for path, process in list(_unfinished.items()):
        if process != os.getpid():
            continue  # the parent process made it
        for folder, folders, files in os.walk(path, topdown=False):
            for name in files:
                _quietly(os.unlink, os.path.join(folder, name))
            for name in folders:
                _quietly(os.rmdir, os.path.join(folder, name))
        _quietly(os.rmdir if os.path.isdir(path) else os.unlink, path)


def _quietly(action: "Callable[[str], None]", path: str) -> None:
    try:
        action(path)
    except OSError:
        return
