"""Output of commands: text, JSON and messages, standard streams, and checks of output files."""

import io
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import click

from deciban.errors import Place, UsageError
from deciban.sources.addresses import is_address, mask_passwords
from deciban.util.text_tables import (
    align_table,
    fit_table,
    list_names,
    shorten_middle,
    terminal_width,
    text_width,
    to_json,
    wrap_lines,
)

if TYPE_CHECKING:
    from deciban.schema.schema import Schema

# Characters that would control a terminal: all control characters except newline and tab, changes of text direction,
# and surrogates, which stand for undecodable bytes in file names.
TERMINAL_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")

# Parameters of a family that a narrow terminal does not show: they are defaults.
PARAMETERS_TO_SKIP = re.compile(r"(, )?outside='ignore'|\(outside='ignore'\)|\(\)")

# Reasons that tuning gives, and their shorter forms for a narrow terminal.
SHORT_REASONS = {
    re.compile(r"log-loss ([\d.]+), best of (\d+) \(next: .*? [\d.]+\)"): r"\1 (best of \2)",
    re.compile(r"kept \(log-loss ([\d.]+)\);.*? \([\d.]+\)"): r"\1 (kept)",
}

# Names that a message lists before it ends with an ellipsis.
MAX_NAMES_LISTED = 5


def escape_controls(text: str) -> str:
    """Escape control characters, so that a terminal shows them. JSON stays valid and unchanged in meaning."""
    return TERMINAL_CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def echo(text: Any = "") -> None:
    """Print text to standard output."""
    click.echo(escape_controls(str(text)))


def echo_wrapped(text: str) -> None:
    """Print text to standard output; a terminal wraps it after words."""
    echo(wrap_lines(text, terminal_width()))


def echo_heading(text: str) -> None:
    click.secho(escape_controls(text), bold=True)


def notify(kind: str, text: str) -> None:
    """Print one line to standard error. kind: error, warning, note or interrupted."""
    color = {"error": "red", "warning": "yellow"}.get(kind)
    line = escape_controls(mask_passwords(" ".join(text.splitlines())))
    click.echo(f"deciban: {click.style(kind, fg=color, bold=True)}: {line}", err=True)


def flush() -> None:
    sys.stdout.flush()


def echo_json(result: Any) -> None:
    """Print one line of JSON. NaN and infinity become null."""
    click.echo(escape_controls(json.dumps(to_json(result), ensure_ascii=False, allow_nan=False)))


def format_columns(schema: "Schema", max_columns: int | None = None, more: str = "") -> str:
    """Format a table of columns: type, family, and why the family was chosen.

    max_columns: columns to show. more: the command that shows all of them.
    """
    types, columns = schema.column_types, schema.lines_by_column()
    lines = [("column", "type", "family", "why")]
    for column in columns[:max_columns]:
        lines += [(shorten_middle(name, 32), types.get(name, ""), family, why) for name, family, why in column]
    hidden = len(columns) - len(columns[:max_columns])
    rest = f"\n… ({hidden} more: {more})" if hidden else ""
    width = terminal_width()
    return fit_columns(lines, width) + rest


def fit_columns(lines: Sequence[tuple[str, str, str, str]], width: int | None) -> str:
    """Align lines of column, type, family and why. With a `width`, leave out types and wrap the rest to fit."""
    table = align_table(lines)
    if width is None or max(map(text_width, table.splitlines())) <= width:
        return table
    short = [(name, PARAMETERS_TO_SKIP.sub("", family), _shorten_reason(why)) for name, _, family, why in lines]
    return fit_table(short, width)


def _shorten_reason(text: str) -> str:
    for reason, shorter in SHORT_REASONS.items():
        text = reason.sub(shorter, text)
    return text


def list_first(names: Sequence[str]) -> str:
    """List the first names, in quotes."""
    return list_names(names, MAX_NAMES_LISTED)


class ClosedOutput(io.RawIOBase):
    """Replacement for a closed standard output. `lost` is True after a write to it."""

    lost = False

    def write(self, data: Any) -> int:
        ClosedOutput.lost = True
        return len(data)

    def writable(self) -> bool:
        return True


def prepare_streams() -> None:
    """Prepare the standard streams, before anything is opened or printed.

    Closed descriptors are opened on the null device. Otherwise a file opened later could get the number of standard
    output or error, and libraries would write messages into it. Files and pipes get UTF-8; characters that a terminal
    cannot show are escaped.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one
    if sys.stdout is None:
        sys.stdout = io.TextIOWrapper(cast(BinaryIO, ClosedOutput()), "utf-8")
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - open until the process ends
    for stream in (sys.stdout, sys.stderr):
        accept_all_characters(stream)


def accept_all_characters(stream: Any) -> None:
    """Make a stream accept every character."""
    if hasattr(stream, "reconfigure"):
        if stream.isatty():
            stream.reconfigure(errors="backslashreplace")
        else:
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def check_output(path: str | None, inputs: Iterable[str]) -> None:
    """Raise an error if an output cannot be written or is an input. No path: check where standard output goes."""
    from deciban.sources.write import refuse_inputs

    if is_address(path):
        return  # the database checks it
    if path is not None:
        _check_writable(Path(path))
    refuse_inputs(path, inputs)


def check_table_output(path: str | None, inputs: Iterable[str]) -> None:
    """Check an output like `check_output`, and that its extension is a known format."""
    from deciban.sources.write import kind_of_output

    if path is not None:
        kind_of_output(path)
    check_output(path, inputs)


def check_model_output(path: str, inputs: Iterable[str], remedy: str = "choose a different name") -> None:
    """Check an output like `check_output`, and that it does not replace a file that is not a model."""
    from deciban.store.layout import is_model

    check_output(path, inputs)
    if os.path.isfile(path) and os.path.getsize(path) and not is_model(path):
        raise UsageError("this file exists and is not a model", place=Place(path), remedy=remedy)


def _check_writable(target: Path) -> None:
    if target.is_dir():
        raise IsADirectoryError(f"{target}: this is a folder; give a file name")
    folder = target.resolve().parent if target.is_symlink() else target.parent  # a link stays a link
    if not folder.is_dir():
        raise FileNotFoundError(f"{target}: the folder {folder} does not exist; create it first")
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(f"{target}: permission denied")
    if target.exists() and not target.is_file():
        return  # a device or a pipe
    try:
        with tempfile.TemporaryFile(dir=folder):  # the new file is written next to the old one
            pass
    except PermissionError:
        raise PermissionError(f"{target}: permission denied to write in the folder {folder}") from None
    except OSError as problem:
        raise OSError(f"{target}: cannot write in the folder {folder} ({problem.strerror})") from None
