"""Folders of documents, and mail, as a stream of tables: a row for each document or message."""

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from deciban.errors import DataError, UsageError, naming_source
from deciban.sources.mail import mail_kind, messages, read_mail
from deciban.sources.plain_text import ENCODING_MARKS, codec, decoded, text_of_html
from deciban.sources.stream import Source

# A piece of a stream has no more documents, and not much more text, than these.
DOCUMENT_ROWS = 1 << 12
DOCUMENT_BYTES = 1 << 23

# What files are by their names; others are looked at. MAIL is read as mail, too, where a file is given by its name.
MAIL = {".eml": "mail", ".mbox": "mbox"}
MARKUP_ENDINGS = dict.fromkeys((".html", ".htm", ".xhtml"), "html")
TEXT = dict.fromkeys((".txt", ".text", ".md", ".markdown", ".rst", ".tex", ".log", ".org", ".adoc"), "text")
DOCUMENT_KINDS = {**MAIL, **MARKUP_ENDINGS, **TEXT}

# How much of a file is looked at; how many of these bytes are controls in what is no text, at least.
DOCUMENT_START = 1 << 12
CONTROL_BYTES = bytes({*range(32), 127} - {*b"\t\n\v\f\r\x1b"})
MOST_CONTROLS = 0.05
NO_DOCUMENTS = (
    b"\x89PNG",
    b"GIF8",
    b"\xff\xd8\xff",
    b"PK\x03\x04",
    b"%PDF",
    b"\x1f\x8b",
    b"BZh",
    b"\x7fELF",
    b"deciban\n",
)

COLUMNS = {"folder": pa.string(), "file": pa.string(), "subject": pa.string(), "from": pa.string(),
           "text": pa.large_string()}  # fmt: skip


class Row(NamedTuple):
    """A document or a message, in the order of COLUMNS."""

    folder: str | None
    file: str
    subject: str | None
    sender: str | None
    text: str


class Item(NamedTuple):
    """A file, what it is called in the table, and the folder that it is in."""

    path: str
    called: str
    folder: str | None


@dataclass(frozen=True)
class Documents(Source):
    """The documents in a folder, or files of mail; `encoding` is that of text that does not say its own."""

    items: tuple[Item, ...] = ()
    encoding: str | None = None

    @property
    def expected(self) -> int | None:
        """How many files there are, where each is a row."""
        return None if any(item.path.lower().endswith(".mbox") for item in self.items) else len(self.items)

    @property
    def row_names(self) -> tuple[str, ...]:
        return tuple(name for name in ("file",) if name in self.columns)

    def reading_as(self, types: Mapping[str, str]) -> "Documents":
        """With the columns of mail that a model has learned, which are empty if no file is mail."""
        wanted = (name for name in COLUMNS if name in self.columns or (name in types and name not in self.ignored))
        return replace(self, columns=tuple(wanted))

    def resolve_types(self, sample: pa.Table) -> tuple["Documents", pa.Table]:
        return self, sample

    def tables(self) -> Iterator[pa.Table]:
        held: list[Row] = []
        size, empty = 0, True
        for row in self._rows():
            held.append(row)
            size += len(row.text)
            if len(held) >= DOCUMENT_ROWS or size >= DOCUMENT_BYTES:
                yield self._table(held)
                held, size, empty = [], 0, False
        if held or empty:
            yield self._table(held)

    def _table(self, rows: Sequence[Row]) -> pa.Table:
        cells = dict(zip(COLUMNS, zip(*rows, strict=True) if rows else [()] * len(COLUMNS), strict=True))
        return pa.table({name: pa.array(cells[name], COLUMNS[name]) for name in self.columns})

    def _rows(self) -> Iterator[Row]:
        """All documents and messages; files that are no text are left out, with a word about them."""
        others: list[str] = []
        for item in self.items:
            with _opened(item.path) as file:
                start = file.read(DOCUMENT_START)
                kind = _kind(item.path, start)
                if kind == "mbox":
                    file.seek(0)
                    for number, raw in enumerate(messages(file), 1):
                        yield self._message(item, f"{item.called}#{number}", raw)
                    continue
                raw = start + file.read() if len(start) == DOCUMENT_START else start
            if kind == "mail":
                yield self._message(item, item.called, raw)
            elif kind == "other":
                others.append(item.called)
            else:
                text = decoded(raw, self.encoding)
                yield Row(item.folder, item.called, None, None, text_of_html(text) if kind == "html" else text)
        if others and len(others) == len(self.items):
            none = f"{self.name}: none of its files is text, such as {others[0]}; save them as text"
            raise naming_source(DataError(none))
        if others:
            count = "1 file is" if len(others) == 1 else f"{len(others):,} files are"
            warnings.warn(f"{self.name}: {count} no text and left out, such as {others[0]}", stacklevel=2)

    def _message(self, item: Item, called: str, raw: bytes) -> Row:
        mail = read_mail(raw, self.encoding)
        return Row(item.folder, called, mail.subject, mail.sender, mail.text)


def documents_in(folder: str, encoding: str | None = None) -> Documents:
    """The documents in a folder; those in folders that are in it have the name of the first one below it."""
    root = os.path.expanduser(folder)
    items = []
    for path in _files_in(root):
        called = _readable(os.path.relpath(path, root).replace(os.sep, "/"))
        first, below, _ = called.partition("/")
        items.append(Item(path, called, first if below else None))
    if not items:
        raise DataError(f"{folder}: the folder holds no CSV, JSON or Parquet files and no documents; give a file")
    return _documents(folder, items, encoding)


def mail_files(name: str, paths: Sequence[str], encoding: str | None = None) -> Documents:
    """Files of mail, each with the name of the folder that it is in."""
    items = [Item(path, _readable(path), _readable(os.path.basename(os.path.dirname(path))) or None) for path in paths]
    return _documents(name, items, encoding)


def is_mail(path: str) -> bool:
    """Whether a file is mail, by its name or, where that says nothing, by its first lines."""
    ending = _ending(path)
    if ending in DOCUMENT_KINDS:
        return ending in MAIL
    with _opened(path) as file:
        return mail_kind(file.read(DOCUMENT_START)) is not None


def _documents(name: str, items: Sequence[Item], encoding: str | None) -> Documents:
    if encoding is not None and codec(encoding) is None:
        raise UsageError(f"encoding={encoding!r} is not known; try utf-8, utf-16, latin-1 or cp1252")
    mail = any(_ending(item.path) in MAIL for item in items) or any(is_mail(item.path) for item in items)
    columns = tuple(name for name in COLUMNS if mail or name not in ("subject", "from"))
    files = tuple(Path(item.path) for item in items)
    return Documents(name, columns, files=files, items=tuple(items), encoding=encoding)


def _files_in(root: str) -> list[str]:
    """The files in a folder and those below it, in the order of their names, without hidden ones and _others."""

    def refused(problem: OSError) -> None:
        raise PermissionError(f"{problem.filename}: you may not read this folder; ask its owner") from None

    found: list[str] = []
    seen: set[str] = set()  # a link may lead back
    for folder, folders, names in os.walk(root, onerror=refused, followlinks=True):
        real = os.path.realpath(folder)
        folders[:] = [] if real in seen else sorted(name for name in folders if not name.startswith((".", "_")))
        if real in seen:
            continue
        seen.add(real)
        paths = (os.path.join(folder, name) for name in names if not name.startswith((".", "_")))
        found += [path for path in paths if os.path.isfile(path)]
    return sorted(found, key=lambda path: path.split(os.sep))


def _kind(path: str, start: bytes) -> str:
    """What a file is: "mail", "mbox", "html", "text", or "other" if it is no text."""
    known = DOCUMENT_KINDS.get(_ending(path)) or mail_kind(start)
    if known is not None:
        return known
    if start.startswith(tuple(ENCODING_MARKS)):
        return "text"
    controls = len(start) - len(start.translate(None, CONTROL_BYTES))
    return "other" if start.startswith(NO_DOCUMENTS) or controls > MOST_CONTROLS * len(start) else "text"


def _ending(path: str) -> str:
    return os.path.splitext(path)[1].lower()


def _readable(path: str) -> str:
    """A path as text, whatever its bytes are."""
    return os.fsencode(path).decode("utf-8", "replace")


def _opened(path: str) -> Any:
    try:
        return open(path, "rb")
    except PermissionError:
        raise PermissionError(f"{path}: you may not read this file; ask its owner") from None
