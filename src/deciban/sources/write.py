"""Write tables piece by piece to files of several formats, or to a database: completely or not at all."""

import csv
import errno
import gzip
import io
import os
import re
import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deciban.errors import Argument, Place, UsageError
from deciban.sources.addresses import is_address
from deciban.sources.duckdb import connect, raise_interrupts
from deciban.sources.temporary import STANDARD_INPUT
from deciban.tables.cells import plain_type
from deciban.tables.table import cast_like_first, map_columns
from deciban.util import shutdown

Write = Callable[[pa.Table], None]

# What to do if the database table exists.
IfExists = Literal["fail", "replace", "append"]

FileKind = Literal["csv", "tsv", "json", "parquet", "excel"]
WRITTEN_KINDS: dict[str, FileKind] = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
    ".parquet": "parquet",
    ".xlsx": "excel",
}

# Spreadsheets run text that starts like this as a formula, also after blanks and line breaks. Numbers may start with a
# sign. The wide characters are those of East Asian keyboards.
BLANK = r"[\x00-\x20\x7f\x{85}\x{a0}\x{200b}\x{2028}\x{2029}\x{3000}\x{feff}]"
FORMULA = rf"(?s)^{BLANK}*[=@＝＠]|^[\t\r]|^{BLANK}*[+\-＋－]."
NUMBER_IN_SHEETS = rf"^{BLANK}*([+\-]?[.,]?[0-9][0-9.,]*([eE][+\-]?[0-9]+)?|[+\-](?i:inf|infinity)){BLANK}*$"


def kind_of_file(path: str | os.PathLike[str]) -> FileKind:
    """Return the format of a file by its name."""
    name = os.fspath(path).lower()
    ending = Path(name.removesuffix(".gz")).suffix
    if ending not in WRITTEN_KINDS or (WRITTEN_KINDS[ending] in ("parquet", "excel") and name.endswith(".gz")):
        cause, remedy = "unsupported file type", "use .csv, .jsonl, .parquet or .xlsx (or .csv.gz)"
        raise UsageError(cause, place=Place(os.fspath(path)), remedy=remedy)
    return WRITTEN_KINDS[ending]


def refuse_inputs(path: str | os.PathLike[str] | None, inputs: Iterable[str]) -> None:
    """Raise a UsageError if the output would overwrite an input, under any name; "-" is standard input.

    path: None for the file that standard output is redirected to.
    """
    written = _status(path) if path is not None else _status_of(sys.stdout)
    if written is None or not stat.S_ISREG(written.st_mode):
        return
    for name in inputs:
        read = _status_of(sys.stdin) if name == STANDARD_INPUT else _status(name)
        if read is not None and os.path.samestat(read, written):
            place = Place("standard output" if path is None else os.fspath(path))
            raise UsageError("output and input are the same file", place=place, remedy="choose a different name")


def _status(path: str | os.PathLike[str]) -> os.stat_result | None:
    return os.stat(path) if os.path.exists(path) else None


def _status_of(stream: Any) -> os.stat_result | None:
    """Return the file status of standard input or output; None if it is not a file."""
    try:
        return os.fstat(stream.fileno())
    except (OSError, AttributeError, ValueError):
        return None


@contextmanager
def replace_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file that replaces the old one when it is complete and synced; until then the old one is kept."""
    target = Path(os.path.realpath(path))  # keep symbolic links
    if target.is_dir():
        raise IsADirectoryError(f"{path} is a folder; give a file name")
    if target.exists() and not target.is_file():
        try:
            with open(target, "wb") as device:  # a device or a pipe cannot be replaced
                yield device
        except OSError as problem:
            _add_path(problem, path)
            raise
        return
    remove_leftovers(target.parent)
    beside = target.with_name(f".{target.name[:40]}.{os.urandom(6).hex()}.part")  # unique per thread
    shutdown.remove_at_exit(str(beside))
    try:
        with open(beside, "xb") as file:
            lock(file)
            if target.exists():
                os.fchmod(file.fileno(), target.stat().st_mode & 0o777)
            yield file
            file.flush()
            os.fsync(file.fileno())
            if sys.platform != "win32":  # while it is locked, so that no other process removes it
                os.replace(beside, target)
        if sys.platform == "win32":
            os.replace(beside, target)
    except BaseException as problem:
        with suppress(OSError):
            beside.unlink()
        shutdown.mark_finished(str(beside))
        _add_path(problem, path)
        raise
    shutdown.mark_finished(str(beside), os.fspath(path))
    with suppress(OSError):  # make the rename durable, if the system supports it
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _add_path(problem: BaseException, path: str | os.PathLike[str]) -> None:
    """Add the file name to an error about a full disk."""
    if isinstance(problem, OSError) and problem.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT):
        problem.filename = problem.filename or os.fspath(path)


def kind_of_output(path: str | os.PathLike[str]) -> FileKind | None:
    """Return the format of a file by its name; None for a database, whose columns have types."""
    return None if is_address(path) else kind_of_file(path)


@contextmanager
def open_writer(
    path: str | os.PathLike[str], *, safe: bool = True, table: str | None = None, if_exists: IfExists = "fail"
) -> Iterator[Write]:
    """Return a function that writes tables to a file, in the format of its name, or to a database table.

    safe: see `to_stream`.
    table, if_exists: table of a database, and what to do if it exists.
    """
    if table is not None:
        if not is_address(path):
            raise UsageError(
                (Argument("table"), " applies to databases"),
                remedy="give a URL such as postgresql://user@host/database",
            )
        from deciban.sources.postgres import write_to_table  # imported only for databases

        with write_to_table(os.fspath(path), table, if_exists) as write:
            yield write
        return
    if is_address(path):
        raise UsageError("no table of the database given", remedy=("give ", Argument("table", "schema.table")))
    kind = kind_of_file(path)
    with replace_file(path) as file:
        compressed = os.fspath(path).lower().endswith(".gz")
        packed = gzip.GzipFile("", "wb", 6, file, mtime=0) if compressed else nullcontext(file)
        with packed as stream, to_stream(stream, kind, safe=safe) as write:
            yield write


@contextmanager
def to_stream(file: Any, kind: str, *, safe: bool = True) -> Iterator[Write]:
    """Return a function that writes tables to an open file.

    safe: CSV: put an apostrophe before text that a spreadsheet would run as a formula.
    """
    makers = {"csv": _csv, "tsv": _csv, "json": _json, "parquet": _parquet, "excel": _excel}
    writer: Any = None
    schema: pa.Schema | None = None

    def write(table: pa.Table) -> None:
        nonlocal writer, schema
        if kind in ("csv", "tsv", "excel"):
            table = map_columns(table, _flat)
            table = escape_formulas(table) if safe and kind != "excel" else table
        if writer is None:
            schema = table.schema
            writer = makers[kind](file, schema, kind)
        writer.write_table(cast_like_first(table, schema) if kind == "parquet" else table)

    try:
        yield write
    except BaseException:
        if writer is not None:
            with suppress(Exception):
                writer.close()  # must happen while the file is open
        raise
    if writer is not None:
        writer.close()


class _csv:  # noqa: N801 - called like a function
    """Writer of CSV; only cells that need quotes have them."""

    def __init__(self, file: Any, schema: pa.Schema, kind: str) -> None:
        self._file, self._sign = file, "\t" if kind == "tsv" else ","
        header = io.StringIO()
        csv.writer(header, delimiter=self._sign, lineterminator="\n").writerow(schema.names)
        file.write(header.getvalue().encode())

    def write_table(self, table: pa.Table) -> None:
        from pyarrow import csv as arrow_csv

        special = f'["\r\n{self._sign}]|^$'
        texts = [column for column in table.columns if pa.types.is_string(column.type)]
        if any(pc.any(pc.match_substring_regex(column, special)).as_py() for column in texts):
            self._file.write(self._lines(table, special))
            return
        options = arrow_csv.WriteOptions(include_header=False, delimiter=self._sign, quoting_style="none")
        arrow_csv.write_csv(table.combine_chunks(), self._file, options)  # an empty chunk would be written as NUL bytes

    def _lines(self, table: pa.Table, special: str) -> pa.Buffer:
        """Return all rows as text. Arrow would quote every text, not only those that need it."""
        quote, nothing, end, sign = (pa.scalar(text, pa.large_string()) for text in ('"', "", "\n", self._sign))
        columns = []
        for column in table.columns:
            cells = pa.chunked_array([column.combine_chunks()]).chunk(0).cast(pa.large_string())
            if pa.types.is_string(column.type):
                inside = pc.replace_substring(cells, '"', '""')
                quoted = pc.binary_join_element_wise(quote, inside, quote, nothing)
                cells = pc.if_else(pc.match_substring_regex(cells, special), quoted, cells)
            columns.append(cells)
        empty = {"null_handling": "replace", "null_replacement": ""}
        rows = pc.binary_join_element_wise(*columns, sign, **empty)
        ended = pc.binary_join_element_wise(rows, nothing, end)
        offsets = np.frombuffer(ended.buffers()[1], dtype=np.int64)[ended.offset : ended.offset + len(ended) + 1]
        return ended.buffers()[2].slice(int(offsets[0]), int(offsets[-1] - offsets[0]))

    def close(self) -> None:
        pass


def _parquet(file: Any, schema: pa.Schema, kind: str) -> Any:
    from pyarrow import parquet

    return parquet.ParquetWriter(file, schema)


def _excel(file: Any, schema: pa.Schema, kind: str) -> Any:
    from deciban.sources.excel import ExcelWriter

    return ExcelWriter(file, schema)


class _json:  # noqa: N801 - called like a function
    """Writer of JSON lines; numbers that JSON lacks are null."""

    def __init__(self, file: Any, schema: pa.Schema, kind: str) -> None:
        self._file = file
        self._connection = connect(len(schema))

    def write_table(self, table: pa.Table) -> None:
        table = map_columns(table, _finite)
        with raise_interrupts():
            self._connection.register("deciban rows", table)
            found = self._connection.sql('SELECT to_json("deciban rows") AS line FROM "deciban rows"')
            for batch in found.to_arrow_reader(1 << 14):
                lines = batch.column(0).to_pylist()
                self._file.write(("\n".join(lines) + "\n").encode() if lines else b"")

    def close(self) -> None:
        self._connection.close()


def _finite(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Replace infinity and NaN, which JSON lacks, by null."""
    if not pa.types.is_floating(column.type):
        return column
    return pc.if_else(pc.is_finite(column), column, pa.scalar(None, column.type))


def _flat(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Convert lists and structs to JSON text, and all text to one type."""
    import json

    if str(plain_type(column.type)) == "string":  # also from pandas and polars
        return column.cast(pa.string())
    if pa.types.is_nested(column.type):
        cells = [None if cell is None else json.dumps(cell, default=str) for cell in column.to_pylist()]
        return pa.chunked_array([pa.array(cells, pa.string())])
    return column


def escape_formulas(table: pa.Table) -> pa.Table:
    """Put an apostrophe before text that a spreadsheet would run as a formula."""
    table = map_columns(table, lambda column: _escape_cells(column) if pa.types.is_string(column.type) else column)
    names = _escape_cells(pa.array(table.column_names, pa.string())).to_pylist()
    return table.rename_columns(names)


def _escape_cells(cells: Any) -> Any:
    formula = pc.and_not(pc.match_substring_regex(cells, FORMULA), pc.match_substring_regex(cells, NUMBER_IN_SHEETS))
    return pc.if_else(formula, pc.binary_join_element_wise("'", cells, ""), cells)


# Partially written files of killed processes are removed by the next process that writes to the folder. A file is
# locked while it is written, and the lock ends with the process: an unlocked file has no owner.

# Names of partially written files.
PART_NAME = re.compile(r"\..*\.[0-9a-f]{12}\.part", re.DOTALL)

# Seconds: a younger file may not be locked yet.
YOUNG = 5.0


if sys.platform == "win32":  # open files cannot be removed there

    def lock(file: Any) -> None:
        """Do nothing: Windows does not need the lock."""

    def _is_free(path: str) -> bool:
        return True

else:
    import fcntl

    def lock(file: Any) -> None:
        """Lock a file while it is written, if the file system supports it."""
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _is_free(path: str) -> bool:
        """Return True if no process writes the file; raise an OSError if files cannot be locked."""
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        finally:
            os.close(descriptor)
        return True


def remove_leftovers(folder: Path) -> None:
    """Remove partially written files of killed processes from a folder."""
    oldest = time.time() - YOUNG
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if PART_NAME.fullmatch(entry.name) is None:
                continue
            with suppress(OSError):
                status = entry.stat(follow_symlinks=False)
                if stat.S_ISREG(status.st_mode) and status.st_mtime < oldest and _is_free(entry.path):
                    os.unlink(entry.path)
