"""Output of commands: what is printed and how, standard streams, and which files may be written."""

import io
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import click

from deciban.errors import Place, UsageError
from deciban.sources.addresses import is_address, mask_passwords
from deciban.util.text_tables import align_table, shorten, text_width, to_json

if TYPE_CHECKING:
    from deciban.model.fitted import Fitted

# Characters that a terminal would obey: all controls but the end of a line and the tabulator, and changes of direction;
# and halves of characters, which stand for bytes in the name of a file that are no text.
TERMINAL_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


# What a family says of itself that a narrow terminal has no room for, and the least room of a reason.
PARAMETERS_TO_SKIP = re.compile(r"(, )?outside='ignore'|\(outside='ignore'\)|\(\)")


MIN_WHY = 20


def escape_controls(text: str) -> str:
    """Text that a terminal shows and does not obey; JSON stays JSON of the same."""
    return TERMINAL_CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def echo(text: Any = "") -> None:
    """Print for people."""
    click.echo(escape_controls(str(text)))


def echo_heading(text: str) -> None:
    click.secho(escape_controls(text), bold=True)


def notify(kind: str, text: str) -> None:
    """One line on standard error."""
    color = {"error": "red", "warning": "yellow"}.get(kind)
    said = escape_controls(mask_passwords(" ".join(text.splitlines())))
    click.echo(f"deciban: {click.style(kind, fg=color, bold=True)}: {said}", err=True)


def flush() -> None:
    sys.stdout.flush()


def echo_json(result: Any) -> None:
    """Print for programs: one line of JSON, in which numbers that JSON does not have are null."""
    click.echo(escape_controls(json.dumps(to_json(result), ensure_ascii=False, allow_nan=False)))


def format_columns(fitted: "Fitted", most: int | None = None, more: str = "") -> str:
    """What each column is: its type in the table, its family, and why; at most so many lines."""
    schema = fitted.schema
    types = schema.column_types
    lines = [("column", "type", "family", "why")]
    for name, family, why in schema.descriptions():
        lines.append((shorten(name, 32), types.get(name, ""), family, why))
    shown = lines if most is None or len(lines) <= most + 1 else lines[: most + 1]
    rest = "" if len(shown) == len(lines) else f"\n… ({len(lines) - len(shown)} more: {more})"
    width = shutil.get_terminal_size((100, 24)).columns if sys.stdout.isatty() else None
    return align_columns(shown, width) + rest


def align_columns(lines: Sequence[tuple[str, str, str, str]], width: int | None) -> str:
    """Lines of column, type, family and why as a table; within `width`, if given, as far as there is room for all."""
    table = align_table(lines)
    if width is None or max(map(text_width, table.splitlines())) <= width:
        return table
    short = [(name, kind, PARAMETERS_TO_SKIP.sub("", family), why) for name, kind, family, why in lines]
    sizes = [2 + max(text_width(line[k]) for line in short) for k in range(3)]
    kept = [0, 1, 2] if sum(sizes) + MIN_WHY <= width else [0, 2]
    family = max(width - sizes[0] - MIN_WHY - 2, MIN_WHY)  # what is left for it
    room = max(width - sum(min(sizes[k], family + 2) if k == 2 else sizes[k] for k in kept), MIN_WHY)
    cells = [(*line[:2], shorten(line[2], family), shorten_at_word(line[3], room)) for line in short]
    return align_table([tuple(line[k] for k in (*kept, 3)) for line in cells])


def shorten_at_word(text: str, most: int) -> str:
    """A text of at most so many places, cut off behind a word.

    >>> at_a_word("log-loss 0.61, best of 13", 20), at_a_word("kept", 20)
    ('log-loss 0.61,…', 'kept')
    """
    if text_width(text) <= most:
        return text
    words = shorten(text, most).rpartition(" ")[0]
    return f"{words}…" if words else shorten(text, most)


def list_first(names: Sequence[str]) -> str:
    """The first of some names."""
    return ", ".join(repr(name) for name in names[:5]) + (", …" if len(names) > 5 else "")


class ClosedOutput(io.RawIOBase):
    """Stands for a standard output that is closed; `lost` tells whether something was to be said there."""

    lost = False

    def write(self, data: Any) -> int:
        ClosedOutput.lost = True
        return len(data)

    def writable(self) -> bool:
        return True


def prepare_streams() -> None:
    """Before anything is opened or said.

    A closed descriptor is given to the null device, so that no file gets its number, into which libraries would then
    write their words. To files and pipes text goes in UTF-8; what a narrower terminal cannot show is escaped.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free, which is this one
    if sys.stdout is None:
        sys.stdout = io.TextIOWrapper(cast(BinaryIO, ClosedOutput()), "utf-8")
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - to the end
    for stream in (sys.stdout, sys.stderr):
        accept_all_characters(stream)


def accept_all_characters(stream: Any) -> None:
    """Let a stream take every character."""
    if hasattr(stream, "reconfigure"):
        if stream.isatty():
            stream.reconfigure(errors="backslashreplace")
        else:
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


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
        raise UsageError("there is such a file, and it is no model", place=Place(path), remedy=remedy)


def check_no_service(path: str) -> None:
    """Refuse to replace a model that a service learns with, or has learned with."""
    from deciban.store.lock import lock_model

    if not os.path.isfile(path):
        return
    try:
        lock = lock_model(path)
    except BlockingIOError:
        raise UsageError(
            f"{path}: a service that learns, or another command, has this model; give another name, or end it first"
        ) from None
    except OSError:
        return  # whether it can be written is checked elsewhere
    if lock is not None:
        os.close(lock)
    check_no_journal(path)


def check_no_journal(path: str) -> None:
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
