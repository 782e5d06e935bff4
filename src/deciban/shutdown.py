"""How a command ends before its time: what it has not finished is removed, and its exit code tells the signal.

Nothing is raised. An exception that comes out of nowhere is lost, or becomes another one, where C calls Python (while a
module is imported, a kernel compiled, a query run); the end of the process is sure. What is made is whole or not there,
so nothing is left to tidy up but the files that are named here.
"""

import os
import signal
import sys

TYPE_CHECKING = False  # what type checkers take for true: typing takes its time, in which a signal is not yet caught
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

# The exit codes are 128 and the number: 129, 130, 143.
SIGNALS = {"SIGHUP": "hung up", "SIGINT": "interrupted", "SIGTERM": "terminated"}

_unfinished: dict[str, int] = {}  # paths, and the process that made them
written: list[str] = []  # what has been finished


def remove_at_exit(path: str) -> None:
    """Remove this file or folder when the process ends by a signal, or as a command."""
    _unfinished[path] = os.getpid()


def finished(path: str, result: str | None = None) -> None:
    """It is no longer to be removed; `result` is what it has become."""
    _unfinished.pop(path, None)
    if result is not None:
        written.append(result)


def catch_signals() -> None:
    """End at the first signal, with its exit code; one that is ignored (nohup, &) stays ignored."""
    for name in SIGNALS:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _stop)


def leave(code: int) -> "NoReturn":
    """End with this code, without the long farewell of the interpreter, in which a signal would be an error."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except BrokenPipeError:  # whoever read the output has seen enough
            pass
        except (OSError, ValueError) as problem:
            _say(f"deciban: error: the output cannot be written: {problem}")
            code = code or 5
    _remove_unfinished()
    os._exit(code)


def _stop(number: int, frame: object) -> "NoReturn":
    _remove_unfinished()
    changed = f"{', '.join(written)} had been written" if written else "nothing was changed"
    _say(f"deciban: {SIGNALS[signal.Signals(number).name]}: {changed}")
    os._exit(128 + number)


def _say(text: str) -> None:
    start = "\n" if os.isatty(2) else ""  # behind ^C and the line of progress
    try:
        os.write(2, f"{start}{text}\n".encode(errors="backslashreplace"))
    except OSError:
        return


def _remove_unfinished() -> None:
    for path, process in list(_unfinished.items()):
        if process != os.getpid():
            continue  # it is that of a parent
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
