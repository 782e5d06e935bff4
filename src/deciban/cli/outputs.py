"""What may be written where: found out before any work is done, so that nothing is lost, neither a file nor an hour."""

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from deciban.errors import UsageError
from deciban.sources.addresses import is_address


def check_output(path: str | None, inputs: Iterable[str]) -> None:
    """Refuse an output that cannot be written or is an input; without a path, what standard output is sent to."""
    from deciban.sources.write import refuse_inputs

    if is_address(path):
        return  # a database says itself what may be written
    if path is not None:
        _check_writable(Path(path))
    refuse_inputs(path, inputs)


def check_table_output(path: str | None, inputs: Iterable[str]) -> None:
    """Refuse also a name that does not say what to write."""
    from deciban.sources.write import kind_of_output

    if path is not None:
        kind_of_output(path)
    check_output(path, inputs)


def check_model_output(path: str, inputs: Iterable[str], remedy: str = "give another name") -> None:
    """Refuse also to replace a file that is no model: it would be lost."""
    from deciban.store.layout import is_model

    check_output(path, inputs)
    if os.path.isfile(path) and os.path.getsize(path) and not is_model(path):
        raise UsageError(f"{path}: there is such a file, and it is no model; {remedy}")


def refuse_learning_service(path: str) -> None:
    """Refuse to replace a model that a service learns with, or has learned with."""
    from deciban.store.lock import owned

    if not os.path.isfile(path):
        return
    try:
        lock = owned(path)
    except BlockingIOError:
        raise UsageError(
            f"{path}: a service that learns, or another command, has this model; give another name, or end it first"
        ) from None
    except OSError:
        return  # whether it can be written is checked elsewhere
    if lock is not None:
        os.close(lock)
    refuse_journal(path)


def refuse_journal(path: str) -> None:
    """Refuse to change a model with a journal: that belongs to the file as it is, and may have rows that it lacks."""
    from deciban.store.lock import journal_of

    journal = journal_of(path)
    if os.path.exists(journal) and os.path.getsize(journal):
        raise UsageError(
            f"{path}: the journal of a service that learns is beside it ({os.path.basename(journal)}); give another "
            f"name, or move the journal away: rows in it that the file lacks, and all ids, are lost then"
        )


def _check_writable(target: Path) -> None:
    if target.is_dir():
        raise IsADirectoryError(f"{target}: this is a folder; give the name of a file in it")
    folder = target.resolve().parent if target.is_symlink() else target.parent  # a link stays a link
    if not folder.is_dir():
        raise FileNotFoundError(f"{target}: there is no folder {folder}; make it first")
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(f"{target}: you may not write this file")
    if target.exists() and not target.is_file():
        return  # a device or a pipe is written as it is
    try:
        with tempfile.TemporaryFile(dir=folder):  # as the new file will be, beside the old one
            pass
    except PermissionError:
        raise PermissionError(f"{target}: you may not write into the folder {folder}") from None
    except OSError as problem:
        raise OSError(f"{target}: nothing can be written into the folder {folder} ({problem.strerror})") from None
