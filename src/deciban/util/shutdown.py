"""How a command ends at a signal: files that it has not finished are removed, and its exit code tells the signal.

No exception is raised. Where C calls Python (while a module is imported, a kernel compiled, a query run) one that comes
from a signal may be lost or become another; ending the process is sure. Files are written whole or not at all, so there
is nothing to tidy up but the temporary files that are named here.
"""

import os
import signal
import sys

TYPE_CHECKING = False  # type checkers take it for true; importing typing takes time in which no signal is caught yet
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

# The exit codes are 128 and the number: 129, 130, 143.
SIGNALS = {"SIGHUP": "hung up", "SIGINT": "interrupted", "SIGTERM": "terminated"}

_unfinished: dict[str, int] = {}  # paths, and the process that made them
written: list[str] = []  # paths of what has been finished


def remove_at_exit(path: str) -> None:
    """Remove this file or folder when the process ends by a signal, or as a command."""
    _unfinished[path] = os.getpid()


def mark_finished(path: str, result: str | None = None) -> None:
    """Do not remove this file or folder any more; `result` is the path that it has been renamed to."""
    _unfinished.pop(path, None)
    if result is not None and result not in written:
        written.append(result)


def catch_signals() -> None:
    """End at the first signal, with its exit code; one that is ignored (nohup, &) stays ignored."""
    for name in SIGNALS:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _stop)


def leave(code: int) -> "NoReturn":
    """End with this code at once: while the interpreter shuts down in order, a signal would print an error."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except BrokenPipeError:  # whoever read the output has seen enough
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
