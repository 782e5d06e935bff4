"""What DuckDB complains of, told in the terms of the user's file: where, what was found, what to do."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from deciban.errors import DataError, UsageError

LINE = re.compile(r"CSV Error on Line: (\d+)")
FILE = re.compile(r"^\s*file = (.+)$", re.MULTILINE)
CELLS = re.compile(r"Expected Number of Columns: (\d+) Found: (\d+)")
CONVERTED = re.compile(r'converting column "(.*?)"\. Could not convert string "(.*?)" to \'(\w+)\'', re.DOTALL)
CONTENT = re.compile(r"^Original Line:\s*(.*)$", re.MULTILINE)  # a line that ends with CR LF begins with LF there
JSON_LINE = re.compile(r'in file "(.*?)",(?: at byte \d+)? in line (\d+): (.*)', re.DOTALL)
LONGEST = re.compile(r"Maximum line size of (\d+)")
NOTHING: Mapping[str, str] = {}
WANTED = {
    "DOUBLE": "a number",
    "BIGINT": "a whole number",
    "BOOLEAN": "true or false",
    "TIMESTAMP": "a date",
    "TIME": "a time",
}


@contextmanager
def translated_errors(
    name: str, header: Mapping[str, str] = NOTHING, called: Mapping[str, str] = NOTHING
) -> Iterator[None]:
    """While it lasts, DuckDB's errors become ours. `header`, `called`: what the user calls columns and files there."""
    try:
        with interrupts():
            yield
    except (DataError, UsageError):
        raise
    except OSError as problem:
        if problem.errno is not None or isinstance(problem, FileNotFoundError | PermissionError):
            raise  # of the system
        raise as_user_error(name, header, called, str(problem)) from None
    except Exception as problem:
        if isinstance(problem, RuntimeError) and "conversion error" in str(problem):
            raise DataError(f"{name}: the file is damaged, beyond what can be said of it; write it anew") from None
        if type(problem).__module__.split(".")[0] not in ("duckdb", "_duckdb"):
            raise
        raise as_user_error(name, header, called, str(problem)) from None


@contextmanager
def interrupts() -> Iterator[None]:
    """While it lasts, a signal that DuckDB noticed is an interrupt and no error of a query."""
    try:
        yield
    except RuntimeError as problem:
        if "Query interrupted" in str(problem):
            raise KeyboardInterrupt from None
        raise


def as_user_error(name: str, header: Mapping[str, str], called: Mapping[str, str], text: str) -> Exception:
    """The error that the user sees."""
    for path in sorted(called, key=len, reverse=True):  # one may begin as another does
        text = text.replace(path, called[path])
    if found := re.search(r"Permission denied|Cannot open file", text):
        return PermissionError(f"{name}: the file cannot be read ({found[0].lower()}); check who may read it")
    if "No space left" in text or "Out of Memory" in text:
        return OSError(f"{name}: {_first(text)}; free some space for temporary files")
    if found := LINE.search(text):
        return _csv(name, header, text, found)
    if found := JSON_LINE.search(text):
        line = int(found[2]) - ("Malformed" in text)  # counts one too many there
        return DataError(
            f"{name}, line {line}: this is not a line of JSON as those before ({_first(found[3])}); correct it"
        )
    if "invalid state" in text:
        return DataError(
            f"{name}: some lines end in another way than the first ones; write the file with one kind of end"
        )
    if "GZIP" in text.upper() or "zstd" in text.lower():
        return DataError(f"{name}: the compressed file is damaged or cut off ({_first(text)}); write it anew")
    if re.search("Parquet|magic bytes|footer|decompression|know what type|Out of buffer|Thrift", text, re.IGNORECASE):
        return DataError(f"{name}: the Parquet file is damaged or cut off ({_first(text)}); write it anew")
    kind = UsageError if re.match(r"(Parser|Binder|Catalog) Error", text) else DataError
    return kind(f"{name}: {_first(text)}")


def _csv(name: str, header: Mapping[str, str], text: str, line: re.Match[str]) -> DataError:
    found = FILE.search(text)
    place = f"{name if found is None else found[1].strip()}, line {line[1]}"
    content = CONTENT.search(text)
    shown = _cut(content[1]) if content is not None else ""
    if cells := CELLS.search(text):
        return DataError(
            f"{place}: found {cells[2]} cells where the header has {cells[1]} ({shown!r}); "
            f"complete the row, or quote the cells that hold a separator"
        )
    if "unterminated quote" in text or "quote" in text.split("Possible")[0].lower():
        return DataError(
            f"{place}: a quote is opened and never closed ({shown!r}); close it, or double it inside a cell"
        )
    if bad := CONVERTED.search(text):
        column = header.get(bad[1], bad[1])
        return DataError(
            f"{place}, column {column!r}: found {_cut(bad[2])!r}, expected {WANTED.get(bad[3], bad[3])}; "
            f"correct the cell, leave it empty, name it as missing, or read the column as text"
        )
    if "unicode" in text.lower():
        return DataError(f"{place}: this is not UTF-8 text ({shown!r}); say how the file is encoded, such as latin-1")
    if longest := LONGEST.search(text):
        most = f"{int(longest[1]) // 1_000_000} MB"
        return DataError(f"{place}: a row is longer than {most}; is a quote not closed? Else shorten its cells")
    return DataError(f"{place}: {_first(text.split(line[0])[-1])} ({shown!r}); correct the row")


def _first(text: str) -> str:
    lines: list[Any] = [line.strip() for line in text.strip().splitlines() if line.strip()]
    return _cut(re.sub(r"^(\w+ )+Error: ", "", lines[0]), 160) if lines else "it cannot be read"


def _cut(text: str, most: int = 40) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
