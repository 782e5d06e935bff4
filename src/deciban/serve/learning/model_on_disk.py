"""The model file of a service that learns: read once, replaced as a whole, and never over somebody else's."""

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from deciban.errors import ModelFileError
from deciban.files.write import replacing
from deciban.fitted import Fitted
from deciban.store import model_file
from deciban.store.lock import changing


def digest(data: bytes) -> str:
    """The hash by which the journal knows a model file."""
    return hashlib.sha256(data).hexdigest()


def journal_of(path: str) -> str:
    """Where the journal of a model is: beside the file, not beside a link to it."""
    return f"{os.path.realpath(path)}.journal"


@dataclass
class ModelOnDisk:
    """The file as it was read or written last. hash: of its content. size: in bytes."""

    path: str
    hash: str
    size: int
    seen: tuple[int, ...]

    @classmethod
    def load(cls, path: str) -> tuple["ModelOnDisk", Fitted]:
        seen, data = _status(path), Path(path).read_bytes()
        return cls(path, digest(data), len(data), seen), model_file.from_content(data, path)

    @property
    def changed(self) -> bool:
        """Whether somebody else has replaced the file, or taken it away."""
        try:
            now = _status(self.path)
            return now != self.seen and digest(Path(self.path).read_bytes()) != self.hash
        except FileNotFoundError:
            return True

    def replace(self, data: bytes, tell: Callable[[str], None]) -> None:
        """Put a new content in the place of the old one; a ModelFileError where the file is not ours any more.

        tell: called with a message while another command has the file.
        """
        with changing(self.path, tell):
            if self.changed:
                raise ModelFileError(
                    f"{os.path.basename(self.path)} was changed while the service learned, and is left as it is; what "
                    f"was learned is in the journal: restore the file, or move the journal away and start anew"
                )
            with replacing(self.path) as file:
                file.write(data)
            self.hash, self.size, self.seen = digest(data), len(data), _status(self.path)


def _status(path: str) -> tuple[int, ...]:
    """What changes when a file does."""
    found = os.stat(path)
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
