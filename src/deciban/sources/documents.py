"""Folders of documents as a source, one row per document, in any encoding."""

import codecs
import os
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import unescape
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from deciban.errors import Argument, DataError, Place, UsageError
from deciban.sources.source import Source

# Maximum number of documents in a piece.
DOCUMENT_ROWS = 1 << 12

# Size of a piece in characters from which the next one begins.
DOCUMENT_BYTES = 1 << 23

# Kinds of files by extension; other files are classified by their first bytes.
DOCUMENT_KINDS = {
    **dict.fromkeys((".html", ".htm", ".xhtml"), "html"),
    **dict.fromkeys((".txt", ".text", ".md", ".markdown", ".rst", ".tex", ".log", ".org", ".adoc"), "text"),
}

# Bytes of a file that are examined; the share of control bytes above which it is not text.
DOCUMENT_START = 1 << 12
CONTROL_BYTES = bytes({*range(32), 127} - {*b"\t\n\v\f\r\x1b"})
MAX_CONTROLS = 0.05
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

COLUMNS = {"folder": pa.string(), "file": pa.string(), "text": pa.large_string()}


class Item(NamedTuple):
    """File, its name in the table, and its folder."""

    path: str
    called: str
    folder: str | None


@dataclass(frozen=True)
class Documents(Source):
    """Documents in a folder. encoding: encoding of text without a byte order mark."""

    items: tuple[Item, ...] = ()
    encoding: str | None = None

    @property
    def expected(self) -> int | None:
        return len(self.items)

    @property
    def row_names(self) -> tuple[str, ...]:
        return tuple(name for name in ("file",) if name in self.columns)

    def tables(self) -> Iterator[pa.Table]:
        held: list[tuple[str | None, str, str]] = []
        size, empty = 0, True
        for item, text in self._texts():
            held.append((item.folder, item.called, text))
            size += len(text)
            if len(held) >= DOCUMENT_ROWS or size >= DOCUMENT_BYTES:
                yield self._table(held)
                held, size, empty = [], 0, False
        if held or empty:
            yield self._table(held)

    def _table(self, rows: Sequence[tuple[str | None, str, str]]) -> pa.Table:
        cells = dict(zip(COLUMNS, zip(*rows, strict=True) if rows else [()] * len(COLUMNS), strict=True))
        return pa.table({name: pa.array(cells[name], COLUMNS[name]) for name in self.columns})

    def _texts(self) -> Iterator[tuple[Item, str]]:
        """Yield all documents; skip files that are not text, with a warning."""
        others: list[str] = []
        for item in self.items:
            with _open_file(item.path) as file:
                start = file.read(DOCUMENT_START)
                raw = start + file.read() if len(start) == DOCUMENT_START else start
            kind = _kind(item.path, start)
            if kind == "other":
                others.append(item.called)
            else:
                text = decode(raw, self.encoding)
                yield item, text_of_html(text) if kind == "html" else text
        if others and len(others) == len(self.items):
            problem = f"no text files found; for example {others[0]} is not text"
            raise DataError(problem, place=Place(self.name), remedy="save them as text")
        if others:
            count = "1 file is" if len(others) == 1 else f"{len(others):,} files are"
            warnings.warn(f"{self.name}: {count} not text and skipped, for example {others[0]}", stacklevel=2)


def documents_in(folder: str, encoding: str | None = None) -> Documents:
    """Open the documents in a folder. The column "folder" has the top-level subfolder of each document."""
    if encoding is not None and codec(encoding) is None:
        raise UsageError(
            "unknown encoding",
            parameter=Argument("encoding", encoding),
            remedy="try utf-8, utf-16, latin-1 or cp1252",
        )
    root = os.path.expanduser(folder)
    items = []
    for path in _files_in(root):
        called = _readable(os.path.relpath(path, root).replace(os.sep, "/"))
        first, below, _ = called.partition("/")
        items.append(Item(path, called, first if below else None))
    if not items:
        raise DataError("no tables and no documents found in the folder", place=Place(folder), remedy="give a file")
    files = tuple(Path(item.path) for item in items)
    return Documents(folder, tuple(COLUMNS), files=files, items=tuple(items), encoding=encoding)


def _files_in(root: str) -> list[str]:
    """Return the files in a folder and its subfolders, sorted, without names that start with . or _."""

    def raise_denied(problem: OSError) -> None:
        raise PermissionError(f"{problem.filename}: permission denied") from None

    found: list[str] = []
    seen: set[str] = set()  # links may form a cycle
    for folder, folders, names in os.walk(root, onerror=raise_denied, followlinks=True):
        real = os.path.realpath(folder)
        folders[:] = [] if real in seen else sorted(name for name in folders if not name.startswith((".", "_")))
        if real in seen:
            continue
        seen.add(real)
        paths = (os.path.join(folder, name) for name in names if not name.startswith((".", "_")))
        found += [path for path in paths if os.path.isfile(path)]
    return sorted(found, key=lambda path: path.split(os.sep))


def _kind(path: str, start: bytes) -> str:
    """Return the kind of a file: "html", "text", or "other" if it is not text."""
    known = DOCUMENT_KINDS.get(os.path.splitext(path)[1].lower())
    if known is not None:
        return known
    if start.startswith(tuple(ENCODING_MARKS)):
        return "text"
    controls = len(start) - len(start.translate(None, CONTROL_BYTES))
    return "other" if start.startswith(NO_DOCUMENTS) or controls > MAX_CONTROLS * len(start) else "text"


def _readable(path: str) -> str:
    """Return a path as valid text."""
    return os.fsencode(path).decode("utf-8", "replace")


def _open_file(path: str) -> Any:
    try:
        return open(path, "rb")
    except PermissionError:
        raise PermissionError(f"{path}: permission denied") from None


# Decoding of text in any encoding, and of HTML. Invalid bytes are replaced; nothing raises.

# Byte order marks, longer ones first.
ENCODING_MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}

# Fallback for text that is not UTF-8.
WESTERN = "cp1252"

# Encodings replaced by their supersets, as browsers do.
LARGER = {"ascii": "utf-8", "iso8859-1": WESTERN, "gb2312": "gb18030", "gbk": "gb18030", "euc_kr": "cp949"}

# Codecs of Python that do not encode text.
NO_TEXT_CODECS = ("idna", "punycode", "unicode_escape", "raw_unicode_escape", "unicode-escape", "raw-unicode-escape")

# HTML elements that separate words; all others are inline.
BLOCK = re.compile(
    "address|article|aside|blockquote|body|br|button|caption|center|dd|details|dialog|dir|div|dl|dt|fieldset|figcaption|"
    "figure|footer|form|frame|frameset|h[1-6]|head|header|hr|html|iframe|input|legend|li|main|menu|nav|noscript|ol|"
    "optgroup|option|p|pre|section|select|summary|table|tbody|td|textarea|tfoot|th|thead|title|tr|ul"
)
SILENT = ("script", "style")

# Next item within a tag: its end, or a quoted value.
WITHIN = re.compile(r"""=\s*(["'])|>""")
TAG = re.compile(r"<(/?)([a-zA-Z][^\s/>]*)")
LONG_NUMBER = re.compile(r"&#[0-9]{8,};?")


def decode(raw: bytes, encoding: str | None = None) -> str:
    """Decode a document: by its byte order mark, `encoding`, UTF-8, or Windows-1252. NUL bytes are removed."""
    mark = next((mark for mark in ENCODING_MARKS if raw.startswith(mark)), b"")
    known = ENCODING_MARKS.get(mark) or (codec(encoding) if encoding else None)
    for name in (known, "utf-8"):
        if name is not None:
            try:
                return _clean(raw.decode("utf-8-sig" if name == "utf-8" else name))
            except ValueError:  # includes decoding errors
                pass
    return _clean(raw.removeprefix(codecs.BOM_UTF8).decode(ENCODING_MARKS.get(mark, WESTERN), "replace"))


def _clean(text: str) -> str:
    """Remove NUL bytes and lone surrogates from a text."""
    text = text.replace("\0", " ")
    try:
        text.encode()
    except UnicodeEncodeError:
        text = text.encode("utf-8", "replace").decode()
    return text


@lru_cache(maxsize=256)
def codec(name: str) -> str | None:
    """Return Python's name of a text encoding; None if it is unknown."""
    try:
        found = codecs.lookup(name.strip("\"' ")).name
        "".encode(found)  # raises a LookupError for codecs that do not encode text
    except (LookupError, ValueError, TypeError, ImportError):
        return None
    return None if found in NO_TEXT_CODECS else LARGER.get(found, found)


def text_of_html(markup: str) -> str:
    """Return the visible text of HTML, without scripts and styles, one line per block."""
    lines = (" ".join(line.split()) for line in "".join(_visible_text(markup)).splitlines())
    return "\n".join(line for line in lines if line)


def _visible_text(markup: str) -> Iterator[str]:
    """Yield the text between tags, with line breaks at blocks.

    Takes linear time whatever is not closed: Python's own parser may take minutes for a short page.
    """
    here, unclosed = 0, set[str]()
    while (sign := markup.find("<", here)) >= 0:
        yield _entities(markup[here:sign])
        tag = TAG.match(markup, sign)
        if tag is not None:
            here = _end_of_tag(markup, tag.end(), unclosed)
            name = tag[2].lower()
            if BLOCK.fullmatch(name):
                yield "\n"
            if name in SILENT and not tag[1]:
                end = re.compile(f"</{name}", re.IGNORECASE).search(markup, here)
                here = len(markup) if end is None else end.start()
        elif markup.startswith("<!--", sign):
            here = _after(markup, "-->", sign + 2)  # <!--> is a complete comment
        elif markup.startswith(("<!", "<?", "</"), sign):
            here = _after(markup, ">", sign)
        else:
            here = sign + 1
            yield "<"
    yield _entities(markup[here:])


def _end_of_tag(markup: str, here: int, unclosed: set[str]) -> int:
    """Return the position after a tag. unclosed: quotation marks known not to occur again."""
    while (found := WITHIN.search(markup, here)) is not None:
        here = found.end()
        if found[1] is None:
            return here
        if found[1] not in unclosed:
            end = markup.find(found[1], here)
            if end < 0:
                unclosed.add(found[1])
            here = max(here, end + 1)
    return len(markup)


def _after(markup: str, sign: str, here: int) -> int:
    """Return the position after this sign, or the end."""
    found = markup.find(sign, here)
    return len(markup) if found < 0 else found + len(sign)


def _entities(text: str) -> str:
    """Decode the entities of a text; numbers too large for a character are replaced."""
    return unescape(LONG_NUMBER.sub("\ufffd", text)) if "&" in text else text
