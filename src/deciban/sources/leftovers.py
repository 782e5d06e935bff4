"""Files that a process which was killed has left half written: removed by the next one that writes into the folder.

A file is locked as long as it is written, and the lock ends with its process: one that is free belongs to nobody.
"""

import os
import re
import stat
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

# What the files that are written beside others are called.
PART_NAME = re.compile(r"\..*\.[0-9a-f]{12}\.part", re.DOTALL)

# Seconds: one that is younger may not be locked yet.
YOUNG = 5.0


if sys.platform == "win32":  # where an open file cannot be removed

    def lock(file: Any) -> None:
        """Nothing."""

    def _is_free(path: str) -> bool:
        return True

else:
    import fcntl

    def lock(file: Any) -> None:
        """Say that somebody writes this file, where files can be locked."""
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _is_free(path: str) -> bool:
        """Whether nobody writes the file any more; an OSError where files cannot be locked."""
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        finally:
            os.close(descriptor)
        return True


def sweep(folder: Path) -> None:
    """Remove what was left half written in a folder."""
    oldest = time.time() - YOUNG
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if PART_NAME.fullmatch(entry.name) is None:
                continue
            with suppress(OSError):
                status = entry.stat(follow_symlinks=False)
                if stat.S_ISREG(status.st_mode) and status.st_mtime < oldest and _is_free(entry.path):
                    os.unlink(entry.path)
