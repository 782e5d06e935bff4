"""The model file of a service that learns: read once, replaced as a whole, and never over somebody else's."""

import hashlib
import os
import sys
from dataclasses import dataclass

from deciban.errors import ModelFileError, naming_source
from deciban.model.fitted import Fitted
from deciban.sources.write import replacing
from deciban.store import layout, model_file
from deciban.store.lock import owned


def digest(data: bytes) -> str:
    """The hash by which the journal knows a model file."""
    return hashlib.sha256(data).hexdigest()


@dataclass
class ModelOnDisk:
    """The file as it was read or written last, which no command changes until it is closed.

    hash: of its content. size: in bytes. lock: its descriptor, which holds the lock; None where files cannot be locked.
    """

    path: str
    hash: str
    size: int
    seen: tuple[int, ...]
    lock: int | None

    @classmethod
    def load(cls, path: str) -> tuple["ModelOnDisk", Fitted]:
        """The file, locked, and what is in it; a ModelFileError where another process is changing it."""
        try:
            lock = owned(path)
        except BlockingIOError:
            raise naming_source(
                ModelFileError(f"{path}: another process learns with this model or changes it; stop that one first")
            ) from None
        except PermissionError as problem:
            cause, remedy = f"the service may not write to it ({problem.strerror})", "let it, or serve without --learn"
            raise naming_source(ModelFileError(f"{path}: {cause}; {remedy}")) from None
        try:
            seen, found = _status(path), model_file.read(path)
            return cls(path, found.sha256, found.size, seen, lock), found.fitted
        except BaseException:
            if lock is not None:
                os.close(lock)
            raise

    def close(self) -> None:
        """Let others change the file."""
        if self.lock is not None:
            os.close(self.lock)
            self.lock = None

    @property
    def changed(self) -> bool:
        """Whether somebody else has replaced the file, or taken it away."""
        try:
            now = _status(self.path)
            return now != self.seen and (now[2] != self.size or layout.sha256_of(self.path) != self.hash)
        except (FileNotFoundError, ModelFileError):  # gone, or not a file any more
            return True

    def replace(self, data: bytes) -> None:
        """Put a new content in the place of the old one; a ModelFileError where the file is not ours any more."""
        if self.changed:
            raise ModelFileError(
                f"{os.path.basename(self.path)} was changed while the service learned, and is left as it is; what "
                f"was learned is in the journal: restore the file, or move the journal away and start anew"
            )
        lock = None
        try:
            with replacing(self.path) as file:
                file.write(data)
                lock = self._lock_on(file.fileno())
        except BaseException:
            if lock is not None:
                os.close(lock)
            raise
        if lock is not None:
            self.close()
            self.lock = lock
        self.hash, self.size, self.seen = digest(data), len(data), _status(self.path)

    def _lock_on(self, written: int) -> int | None:
        """The lock on a file that is being written, which has it already, to be held when it has been written."""
        return None if self.lock is None or sys.platform == "win32" else os.dup(written)


def _status(path: str) -> tuple[int, ...]:
    """What changes when a file does."""
    found = os.stat(path)
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
