"""Mail: its subject, its sender and the text that a reader sees. What can be read is read, and nothing is an error."""

import binascii
import re
from codecs import BOM_UTF8
from collections.abc import Iterator
from dataclasses import dataclass
from email import message_from_bytes
from email.message import Message
from typing import Any, BinaryIO

from deciban.sources.plain_text import ENCODING_MARKS, decoded, text_of_html

# Of one message of an mbox no more is kept than this, and no line is longer than that.
MOST_BYTES = 1 << 26
MOST_LINE = 1 << 20

# Fields that a message may begin with; many others would do in a text too.
FIRST_FIELD = re.compile(
    rb"(?:received|return-path|delivered-to|envelope-to|x-[a-z0-9-]+|from|to|cc|subject|date|message-id|mime-version|"
    rb"content-type|content-transfer-encoding|reply-to|sender|references|in-reply-to|errors-to|precedence|status|"
    rb"resent-[a-z-]+|list-[a-z-]+|arc-[a-z-]+|dkim-signature|domainkey-signature|received-spf|authentication-results|"
    rb"path|newsgroups|xref|organization|approved|archive-name|article-i\.d\.|nntp-posting-host)[ \t]*:",
    re.IGNORECASE,
)
FIELD = re.compile(rb"[!-9;-~]+[ \t]*:|>From ")
NEXT = re.compile(rb"[!-9;-~]+[ \t]*:|>From |[ \t]+\S|\r?$|\r?\n")

# The line before a message in an mbox: who, and when, with a time and a year.
SEPARATOR = re.compile(rb"From (?=.*\d\d?:\d\d)(?=.*\b\d{4}\b)")
QUOTED_SEPARATOR = re.compile(rb"^>(>*From )", re.MULTILINE)

END_OF_HEAD = re.compile(rb"\n\r?\n|\r\r")
ENCODED_WORD = re.compile(r"=\?([^?\s]*)\?([bq])\?([^?]*)\?=", re.IGNORECASE)
BOUNDARY = re.compile(rb"^--([^\s\"\\]+)[ \t]*\r?\ncontent-", re.MULTILINE | re.IGNORECASE)
MARKUP_START = re.compile(r"\s*<(?:!doctype\s+html|html|head|body)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Mail:
    """What is read of a message; None where it has no such field."""

    subject: str | None
    sender: str | None
    text: str


def read_mail(raw: bytes, encoding: str | None = None) -> Mail:
    """The message in these bytes; `encoding` is that of parts that do not say theirs."""
    raw = raw.lstrip(b"\r\n")
    if raw.startswith(tuple(ENCODING_MARKS)):
        raw = decoded(raw).encode()
    end = END_OF_HEAD.search(raw)
    head, body = (raw, b"") if end is None else (raw[: end.start()], raw[end.end() :])
    try:
        text = "\n".join(filter(None, _texts(message_from_bytes(raw), encoding)))
    except Exception:  # whatever Python's parser does not stand, such as parts in parts in parts without end
        text = _shown(decoded(body, encoding), "text/plain")
    return Mail(_field(head, b"subject", encoding), _field(head, b"from", encoding), text)


def mail_kind(start: bytes) -> str | None:
    """Whether a file that starts with these bytes is one message ("mail"), several ("mbox"), or none."""
    first, _, rest = start.removeprefix(BOM_UTF8).lstrip(b"\r\n").partition(b"\n")
    if SEPARATOR.match(first) and FIELD.match(rest):
        return "mbox"
    return "mail" if FIRST_FIELD.match(first) and NEXT.match(rest) else None


def messages(file: BinaryIO) -> Iterator[bytes]:
    """The messages of an mbox, one at a time.

    One begins after a line "From ..." with a time and a year that a field follows, so that a sentence of a message that
    begins with this word separates nothing; such lines of messages are quoted by a sign that is taken away.
    """
    held: list[bytes] = []
    size = 0
    waiting = b""  # a line that separates messages if a field follows
    for line in iter(lambda: file.readline(MOST_LINE), b""):
        if waiting and FIELD.match(line):
            yield from _joined(held)
            held, size = [], 0
        elif waiting:
            held.append(waiting)
        waiting = line if line.startswith(b"From ") and SEPARATOR.match(line) else b""
        if not waiting and size < MOST_BYTES:
            held.append(line)
            size += len(line)
    yield from _joined([*held, waiting])


def _joined(lines: list[bytes]) -> Iterator[bytes]:
    raw = b"".join(lines)
    if raw.strip():
        yield QUOTED_SEPARATOR.sub(rb"\1", raw)


def _texts(part: "Message[Any, Any]", encoding: str | None, guesses: int = 2) -> Iterator[str]:
    """The texts of a message or a part of it, in their order; of parts that say the same, the plainest.

    guesses: so deep in one another parts are looked for that do not say what stands between them.
    """
    kind = part.get_content_type()
    payload: Any = part.get_payload()
    if kind.startswith("multipart/") and not isinstance(payload, list) and guesses:
        payload, guesses = _parts(_content(part, payload)), guesses - 1
    if isinstance(payload, list):
        if kind == "multipart/alternative":
            plainest = sorted(payload, key=lambda one: one.get_content_type() != "text/plain")
            found = ("\n".join(filter(None, _texts(one, encoding, guesses))) for one in plainest)
            yield next(filter(None, found), "")
            return
        for one in payload:
            if part.get_content_maintype() == "message":
                yield _field_of(one, encoding)
            yield from _texts(one, encoding, guesses)
    elif kind.startswith(("text/", "multipart/")) and part.get_content_disposition() != "attachment":
        raw = _content(part, part.get_payload())  # of a multipart too that has no parts
        yield _shown(decoded(raw, _charset(part) or encoding), kind)


def _parts(raw: bytes) -> Any:
    """The parts of a message that does not say what stands between them, if that can be seen."""
    found = BOUNDARY.search(raw)
    if found is None:
        return None
    return message_from_bytes(b'Content-Type: multipart/mixed; boundary="%b"\n\n' % found[1] + raw).get_payload()


def _shown(text: str, kind: str) -> str:
    if kind == "text/html" or MARKUP_START.match(text):
        return text_of_html(text)
    return text.replace("\r\n", "\n").strip()


def _content(part: "Message[Any, Any]", payload: Any) -> bytes:
    """The bytes of a part, whatever they were written as."""
    if str(part.get("content-transfer-encoding", "")).strip().lower() == "base64":
        return _from_base64(str(payload).encode("ascii", "ignore"))
    found = part.get_payload(decode=True)
    return found if isinstance(found, bytes) else b""


def _charset(part: "Message[Any, Any]") -> str | None:
    try:
        return part.get_content_charset()
    except (ValueError, LookupError):
        return None


def _from_base64(raw: bytes) -> bytes:
    """What can be read of broken base64: unknown signs are passed over, and so is a last one that is left over."""
    found = []
    for part in re.sub(rb"[^A-Za-z0-9+/=]", b"", raw).split(b"="):
        whole = part[: len(part) - (len(part) % 4 == 1)]
        found.append(binascii.a2b_base64(whole + b"=" * (-len(whole) % 4)))
    return b"".join(found)


def _field_of(message: "Message[Any, Any]", encoding: str | None) -> str:
    """The subject of a message within a message."""
    raw = next((str(value) for name, value in message.raw_items() if name.lower() == "subject"), "")
    return _decoded_field(raw.encode("utf-8", "surrogateescape"), encoding)


def _field(head: bytes, name: bytes, encoding: str | None) -> str | None:
    """A field of a message's head; the first, if there are several."""
    lines = head if b"\n" in head else head.replace(b"\r", b"\n")
    found = re.search(rb"(?im)^" + name + rb"[ \t]*:(.*(?:\n[ \t].*)*)", lines)
    return None if found is None else _decoded_field(found[1], encoding)


def _decoded_field(raw: bytes, encoding: str | None) -> str:
    """The text of a field, in one line, with the words decoded that are written as =?charset?how?...?=."""
    text = decoded(raw, encoding)
    found: list[str] = []
    word, charset, end = b"", "", 0  # a character may be cut in two by words of one charset
    for match in ENCODED_WORD.finditer(text):
        between = text[end : match.start()]
        here = match[1].partition("*")[0].lower()
        if between.strip() or not end or here != charset:
            found += [decoded(word, charset), between if between.strip() or not end else ""]
            word = b""
        content = match[3].encode()
        word += _from_base64(content) if match[2] in "bB" else binascii.a2b_qp(content, header=True)
        charset, end = here, match.end()
    return " ".join("".join([*found, decoded(word, charset), text[end:]]).split())
