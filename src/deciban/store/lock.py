"""A lock on a model file while a command reads, changes and replaces it, so that no other command does so meanwhile.

The lock is on the file itself and ends with the process, whatever ends it: no lock file is left behind. The file is
replaced by renaming, so a process that has waited checks whether the file that it locked still has the name.
"""

import errno
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# Seconds that a command waits for another one unless told otherwise, and between two attempts.
DEFAULT_WAIT = 10.0
PAUSE = 0.05

# Errors of systems that cannot lock this file.
CANNOT_LOCK = (errno.ENOLCK, errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.ENOTSUP)


def owned(path: str | os.PathLike[str]) -> int | None:
    """The model file, opened and locked until the descriptor is closed: meanwhile no other process changes it.

    None where files cannot be locked; a BlockingIOError where another process is changing it.
    """
    name = os.fspath(path)
    file = os.open(_lock_file(name), os.O_RDWR | os.O_CREAT if sys.platform == "win32" else os.O_RDWR)
    try:
        if _try_lock(file) and _still_has_name(file, name):
            return file
    except BaseException as problem:
        os.close(file)
        if isinstance(problem, OSError) and problem.errno in CANNOT_LOCK:
            return None
        raise
    os.close(file)
    raise BlockingIOError(errno.EAGAIN, "another process is changing this model; start again when it has ended", name)


@contextmanager
def changing(path: str | os.PathLike[str], tell: Callable[[str], None], wait: float = DEFAULT_WAIT) -> Iterator[None]:
    """While it lasts, no other process that uses this function changes the model file.

    `tell` is called with a message if there is something to wait for; a TimeoutError if that takes longer than `wait`
    seconds.
    """
    lock = _locked(os.fspath(path), tell, wait) if os.path.isfile(path) else None
    try:
        yield
    finally:
        if lock is not None:
            os.close(lock)


def journal_of(path: str | os.PathLike[str]) -> str:
    """Where a service that learns keeps what the model file lacks: beside the file, not beside a link to it."""
    return f"{os.path.realpath(path)}.journal"


def _locked(path: str, tell: Callable[[str], None], wait: float) -> int | None:
    """The file, opened and locked; None where files cannot be locked."""
    end = time.monotonic() + wait
    waiting = False
    while True:
        try:
            file = owned(path)
        except BlockingIOError:
            pass
        else:
            if file is None:
                tell(f"{path}: files cannot be locked here; let only one command at a time change this one")
            return file
        if not waiting and wait > 0.0:
            tell(f"{path}: another command, or a service that learns, has this model; waiting for it")
            waiting = True
        if time.monotonic() > end:
            raise TimeoutError(
                f"{path}: the model is locked by another command, or by a service that learns; try again when it has "
                f"ended, or wait longer with --wait SECONDS"
            )
        time.sleep(PAUSE)


if sys.platform == "win32":  # where an open file cannot be replaced: another file is locked for it
    import hashlib
    import msvcrt
    import tempfile

    def _lock_file(path: str) -> str:
        name = hashlib.sha256(os.path.realpath(path).encode()).hexdigest()[:16]
        return os.path.join(tempfile.gettempdir(), f"deciban-{name}.lock")

    def _try_lock(file: int) -> bool:
        try:
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
        return True

    def _still_has_name(file: int, path: str) -> bool:
        return True

else:
    import fcntl

    def _lock_file(path: str) -> str:
        return path

    def _try_lock(file: int) -> bool:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _still_has_name(file: int, path: str) -> bool:
        return os.path.samestat(os.fstat(file), os.stat(path))
