"""Detect the format of a file from its first bytes: kind, compression, and the dialect of text."""

import codecs
import csv
import io
import re
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from deciban.errors import Argument, DataError, Place, UsageError
from deciban.util.text_tables import find_duplicate

# Bytes examined at the start of a file; the header must end before.
SNIFF_BYTES = 1 << 20

# Magic bytes of typed file formats.
TYPED_KINDS = {
    b"PAR1": "parquet",
    b"ARROW1\0\0": "arrow",
    b"\xff\xff\xff\xff": "arrow stream",
}

# Workbooks are zip archives with such a member, or files of Excel before 2007, which all start alike.
ZIP_MAGIC = b"PK\x03\x04"
OLD_WORKBOOK_MAGIC = b"\xd0\xcf\x11\xe0"
WORKBOOK_MEMBER = re.compile(r"xl/workbook\.(xml|bin)")
OPEN_DOCUMENT = b"application/vnd.oasis.opendocument.spreadsheet"

COMPRESSIONS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
MAIL_ENDINGS = (".eml", ".mbox")
NO_TABLES = {
    ZIP_MAGIC: "a zip archive or a damaged workbook; unpack it, or save it again",
    b"SQLite format 3": "an SQLite database; export the table as CSV",
    b"deciban\n": "a deciban model, not a table; pass a table",
    b"FEA1\0": "a Feather file of version 1; save the table as Parquet",
    b"Obj\x01": "an Avro file; save the table as Parquet",
    b"\x04\x22\x4d\x18": "compressed with lz4; use gzip or zstd",
    b"\x89HDF": "an HDF5 file; save the table as Parquet",
    b"\x93NUMPY": "a NumPy array; load it with numpy.load, and pass the array",
    b"BZh": "compressed with bzip2; use gzip or zstd",
    b"\xfd7zXZ": "compressed with xz; use gzip or zstd",
    b"%PDF": "a PDF document; save the table as CSV",
    b"\x80\x02": "a pickle; save the table as CSV or Parquet",
    b"\x80\x03": "a pickle; save the table as CSV or Parquet",
    b"\x80\x04": "a pickle; save the table as CSV or Parquet",
    b"\x80\x05": "a pickle; save the table as CSV or Parquet",
}
UTF_16_MARKS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}

DELIMITERS = ",;\t|"
DECIMAL_COMMA = re.compile(r"\s*[-+]?\d+,\d+\s*")


@dataclass(frozen=True)
class FileFormat:
    """Format of a file: "json", "csv", "excel", "orc" or one of TYPED_KINDS, the compression, and the CSV dialect."""

    kind: str
    compression: str | None = None
    encoding: str = "utf-8"
    delimiter: str = ","
    decimal: str = "."
    header: tuple[str, ...] = ()
    named: bool = True  # True if the first row is the header
    skipped: int = 0  # blank lines before the header
    mixed_ends: bool = False
    row_bytes: float | None = None  # average size of a row, if known


def sniff(
    path: Path, name: str, encoding: str | None = None, delimiter: str | None = None, header: bool = True
) -> FileFormat:
    """Detect the format of a file; raise a DataError if it cannot be read as a table. name: its name in messages."""
    with open(path, "rb") as file:
        start = file.read(SNIFF_BYTES)
        file.seek(max(path.stat().st_size - 4, 0))
        end = file.read(3)
    if not start.strip():
        raise DataError(
            "the file is empty", place=Place(name), remedy="give a table with a header and at least one row"
        )
    if name.lower().endswith(MAIL_ENDINGS):
        remedy = "read it with Python's mailbox and email modules; see docs/howto/files.md"
        raise DataError("mail files are not supported", place=Place(name), remedy=remedy)
    for magic, kind in TYPED_KINDS.items():
        if start.startswith(magic):
            return FileFormat(kind)
    if start.startswith(b"ORC") and end == b"ORC":  # a CSV header may start with ORC too
        return FileFormat("orc")
    if start.startswith(OLD_WORKBOOK_MAGIC) or (start.startswith(ZIP_MAGIC) and _is_workbook(path)):
        return FileFormat("excel")
    if start[8:12] == b"DUCK":
        raise DataError(
            "this is a DuckDB database",
            place=Place(name),
            remedy=(
                f"open it with duckdb.connect({name!r}), and pass the connection with ",
                Argument("table"),
                " or ",
                Argument("query"),
            ),
        )
    compression = compression_of(start)
    if compression is not None:
        import pyarrow as pa  # only here, because completion by the shell must be fast

        try:
            with pa.input_stream(str(path), compression=compression) as stream:
                start = stream.read(SNIFF_BYTES)
        except (OSError, pa.ArrowException) as problem:
            cause = f"cannot decompress the file ({problem})"
            raise DataError(cause, place=Place(name), remedy="write it again") from None
    for magic, what in NO_TABLES.items():
        if start.startswith(magic):
            raise DataError(f"this is {what}", place=Place(name))
    marked = next((name for magic, name in UTF_16_MARKS.items() if start.startswith(magic)), None)
    encoding = encoding or marked or "utf-8"
    text = _decode_start(name, start, encoding)
    if text.lstrip()[:1] in ("{", "["):
        return FileFormat("json", compression, encoding, row_bytes=len(start) / max(start.count(b"\n"), 1))
    return _csv(name, text, len(start), compression, encoding, delimiter, header)


def _is_workbook(path: Path) -> bool:
    """Return True for a zip archive that is an Excel or OpenDocument workbook."""
    with suppress(zipfile.BadZipFile, OSError), zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        return any(map(WORKBOOK_MEMBER.fullmatch, names)) or (
            "mimetype" in names and archive.read("mimetype").startswith(OPEN_DOCUMENT)
        )
    return False


def compression_of(start: bytes) -> str | None:
    """Return the compression of a file that starts with these bytes, or None."""
    return next((name for magic, name in COMPRESSIONS.items() if start.startswith(magic)), None)


def _decode_start(name: str, start: bytes, encoding: str) -> str:
    """Decode the first bytes of a file, without a byte order mark."""
    whole = len(start) < SNIFF_BYTES
    try:
        decoder = codecs.getincrementaldecoder("utf-8-sig" if encoding == "utf-8" else encoding)()
        text = decoder.decode(start, final=whole)
    except LookupError:
        raise UsageError(
            "unknown encoding",
            parameter=Argument("encoding", encoding),
            remedy="try utf-8, utf-16, latin-1 or cp1252",
        ) from None
    except UnicodeDecodeError as problem:
        if b"\0" in start[:1024]:
            raise DataError(
                "unsupported file format",
                place=Place(name),
                remedy="use CSV, JSON, Parquet, Arrow, ORC or Excel, or give the encoding of the text",
            ) from None
        line = start[: problem.start].count(b"\n") + 1
        raise DataError(
            f"the byte 0x{start[problem.start]:02x} is not valid {encoding}",
            place=Place(f"{name}, line {line}"),
            remedy=("give the encoding of the file, e.g. ", Argument("encoding", "latin-1")),
        ) from None
    if text[:1024].count("\0") > len(text[:1024]) // 4:
        remedy = "give its encoding, or use CSV or Parquet"
        raise DataError("not a text file (many NUL bytes)", place=Place(name), remedy=remedy)
    return text


def _csv(
    called: str,
    text: str,
    size: int,
    compression: str | None,
    encoding: str,
    delimiter: str | None,
    header: bool,
) -> FileFormat:
    body = text.lstrip("\r\n")
    skipped = len(re.findall(r"\r\n|\r|\n", text[: len(text) - len(body)]))
    lines = io.StringIO(body, newline="")
    if delimiter is None:
        delimiter = max(DELIMITERS, key=lambda mark: len(next(_records(lines, mark), ())))  # ties: the first one
    rows = list(islice(_records(lines, delimiter), 200))
    if not rows or (len(rows[0]) == 1 and '"' in rows[0][0]):
        raise DataError("invalid header", place=Place(called), remedy="check for an unclosed quote")
    names = tuple(name.strip() for name in rows[0]) if header else tuple(f"column{j + 1}" for j in range(len(rows[0])))
    names = tuple(name or f"column{j + 1}" for j, name in enumerate(names))
    if (damaged := next((name for name in names if "\0" in name), None)) is not None:
        cause, remedy = f"the column name {damaged!r} contains a NUL byte", "the file is damaged; write it again"
        raise DataError(cause, place=Place(f"{called}, line {skipped + 1}"), remedy=remedy)
    if (twice := find_duplicate(names)) is not None:
        cause = f"duplicate column {twice!r}"
        raise DataError(cause, place=Place(f"{called}, line {skipped + 1}"), remedy="give each column a unique name")
    cells = [cell for row in rows[1:] for cell in row]
    comma = delimiter != "," and any(map(DECIMAL_COMMA.fullmatch, cells))
    point = any(re.fullmatch(r"\s*[-+]?\d+\.\d+\s*", cell) for cell in cells)
    ends: float = body.count("\n") or body.count("\r")
    if any("\n" in cell or "\r" in cell for cell in cells):  # estimated from these rows
        ends = max(len(body) * len(rows) / sum(len(cell) + 3 for row in rows for cell in row), 1.0)
    return FileFormat(
        kind="csv",
        compression=compression,
        encoding=encoding,
        delimiter=delimiter,
        decimal="," if comma and not point else ".",
        header=names,
        named=header,
        skipped=skipped,
        mixed_ends="\r" in body and "\r\n" in body and bool(re.search(r"(?<!\r)\n", body)),
        row_bytes=size / ends if ends and compression is None else None,
    )


def last_line_without_newline(path: Path, delimiter: str) -> list[str]:
    """Return the cells of the last line if it has no newline; empty if it has one, is very long, or is invalid."""
    with open(path, "rb") as file:
        file.seek(max(path.stat().st_size - SNIFF_BYTES, 0))
        last = file.read(SNIFF_BYTES).replace(b"\r", b"\n").rpartition(b"\n")[2]
    if not last or len(last) == SNIFF_BYTES:
        return []
    return next(_records(io.StringIO(last.decode(errors="replace"), newline=""), delimiter), [])


def _records(lines: io.StringIO, delimiter: str) -> Iterator[list[str]]:
    """Yield rows up to the first invalid one."""
    csv.field_size_limit(SNIFF_BYTES)
    lines.seek(0)
    try:
        yield from csv.reader(lines, delimiter=delimiter, strict=True)
    except csv.Error:
        return
