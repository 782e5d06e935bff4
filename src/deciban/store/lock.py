"""Lock on a model file while a command reads, changes and replaces it.

The lock is on the file itself and ends with the process, however it ends: no lock file is left behind. The file is
replaced by renaming, so a process that has waited checks whether the file it locked still has the name.
"""

import errno
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from deciban.errors import Place, UsageError

# Default number of seconds to wait for another command.
DEFAULT_WAIT = 10.0

# Seconds between two attempts.
PAUSE = 0.05

# Seconds for which a lock is taken for that of a program that has just written the file.
CHECK_SECONDS = 0.5

# Errors of file systems that cannot lock a file.
CANNOT_LOCK = (errno.ENOLCK, errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.ENOTSUP)


def lock_model(path: str | os.PathLike[str]) -> int | None:
    """Return a descriptor of the locked model file; closing it releases the lock.

    None if the file system does not support locks. Raise a BlockingIOError if another process is changing the file.
    """
    name = os.fspath(path)
    file = _open_lock_file(name)
    try:
        if _try_lock(file, shared=False) and _still_has_name(file, name):
            return file
    except BaseException as problem:
        os.close(file)
        if isinstance(problem, OSError) and problem.errno in CANNOT_LOCK:
            return None
        raise
    os.close(file)
    raise BlockingIOError(errno.EAGAIN, "another process is changing this model; try again later", name)


@contextmanager
def lock_for_change(
    path: str | os.PathLike[str], notify: Callable[[str], None], wait: float = DEFAULT_WAIT
) -> Iterator[None]:
    """Lock the model file in a `with` block against other processes that use this function.

    `notify` is called with a message if the process has to wait. Raise a TimeoutError after `wait` seconds.
    """
    lock = _wait_for_lock(os.fspath(path), notify, wait) if os.path.isfile(path) else None
    try:
        yield
    finally:
        if lock is not None:
            os.close(lock)


def journal_of(path: str | os.PathLike[str]) -> str:
    """Return the path of the journal of an online learner: next to the file itself, not next to a link to it."""
    return f"{os.path.realpath(path)}.journal"


def check_no_service(path: str | os.PathLike[str]) -> None:
    """Raise a UsageError if a service is learning with a model, or has left a journal."""
    if not os.path.isfile(path):
        return
    end = time.monotonic() + CHECK_SECONDS
    while (locked := _is_locked(os.fspath(path))) and time.monotonic() < end:
        time.sleep(PAUSE)
    if locked:
        cause = "the model is in use by a learning service or another command"
        raise UsageError(cause, place=Place(os.fspath(path)), remedy="choose a different name or stop it")
    check_no_journal(path)


def check_no_journal(path: str | os.PathLike[str]) -> None:
    """Raise a UsageError if a model has a journal, which may contain rows that the model file lacks."""
    journal = journal_of(path)
    if os.path.exists(journal) and os.path.getsize(journal):
        raise UsageError(
            f"a learning service left its journal next to the model ({os.path.basename(journal)})",
            place=Place(os.fspath(path)),
            remedy="write to another name, then use deciban upgrade",
        )


def _is_locked(path: str) -> bool:
    """Return True if another process has locked the file; False also if it cannot be locked or opened."""
    try:
        file = _open_lock_file(path)
    except OSError:
        return False
    try:
        return not _try_lock(file, shared=True)  # shared: two processes may check at the same time
    except OSError:
        return False
    finally:
        os.close(file)


def _open_lock_file(path: str) -> int:
    return os.open(_lock_file(path), os.O_RDWR | os.O_CREAT if sys.platform == "win32" else os.O_RDWR)


def _wait_for_lock(path: str, notify: Callable[[str], None], wait: float) -> int | None:
    """Return a descriptor of the locked file; None if the file system does not support locks."""
    end = time.monotonic() + wait
    waiting = False
    while True:
        try:
            file = lock_model(path)
        except BlockingIOError:
            pass
        else:
            if file is None:
                notify(f"{path}: locks are not supported here; run only one command at a time that changes this model")
            return file
        if not waiting and wait > 0.0:
            notify(f"{path}: the model is locked by another command or service; waiting")
            waiting = True
        if time.monotonic() > end:
            raise TimeoutError(
                f"{path}: the model is locked by another command or service; try again later, "
                f"or wait longer with --wait SECONDS"
            )
        time.sleep(PAUSE)


if sys.platform == "win32":  # an open file cannot be replaced, so a separate file is locked
    import hashlib
    import msvcrt
    import tempfile

    def _lock_file(path: str) -> str:
        name = hashlib.sha256(os.path.realpath(path).encode()).hexdigest()[:16]
        return os.path.join(tempfile.gettempdir(), f"deciban-{name}.lock")

    def _try_lock(file: int, shared: bool) -> bool:
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

    def _try_lock(file: int, shared: bool) -> bool:
        try:
            fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _still_has_name(file: int, path: str) -> bool:
        return os.path.samestat(os.fstat(file), os.stat(path))
