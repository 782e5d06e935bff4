"""Text of bytes in whatever encoding, and of HTML: what can be read is read, and nothing is an error."""

import codecs
import re
from collections.abc import Iterator
from functools import lru_cache
from html import unescape

# The marks of encodings at the beginning of a text, the longer ones first.
ENCODING_MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}

# What text of Western Europe is that is not UTF-8.
WESTERN = "cp1252"

# Encodings that are in truth larger than their names say, and those that are no encodings of a text.
LARGER = {"ascii": "utf-8", "iso8859-1": WESTERN, "gb2312": "gb18030", "gbk": "gb18030", "euc_kr": "cp949"}
NO_TEXT_CODECS = ("idna", "punycode", "unicode_escape", "raw_unicode_escape", "unicode-escape", "raw-unicode-escape")

# Elements of HTML that words do not reach across; all others stand within a line.
BLOCK = re.compile(
    "address|article|aside|blockquote|body|br|button|caption|center|dd|details|dialog|dir|div|dl|dt|fieldset|figcaption|"
    "figure|footer|form|frame|frameset|h[1-6]|head|header|hr|html|iframe|input|legend|li|main|menu|nav|noscript|ol|"
    "optgroup|option|p|pre|section|select|summary|table|tbody|td|textarea|tfoot|th|thead|title|tr|ul"
)
SILENT = ("script", "style")

# What may come within a tag: its end, or a value in quotes.
WITHIN = re.compile(r"""=\s*(["'])|>""")
TAG = re.compile(r"<(/?)([a-zA-Z][^\s/>]*)")
LONG_NUMBER = re.compile(r"&#[0-9]{8,};?")


def decoded(raw: bytes, encoding: str | None = None) -> str:
    """The text of these bytes: by their mark, by `encoding`, as UTF-8 or as that of Western Europe; no NUL is in it."""
    mark = next((mark for mark in ENCODING_MARKS if raw.startswith(mark)), b"")
    known = ENCODING_MARKS.get(mark) or (codec(encoding) if encoding else None)
    for name in (known, "utf-8"):
        if name is not None:
            try:
                return _clean(raw.decode("utf-8-sig" if name == "utf-8" else name))
            except ValueError:  # so are all errors of decoding
                pass
    return _clean(raw.removeprefix(codecs.BOM_UTF8).decode(ENCODING_MARKS.get(mark, WESTERN), "replace"))


def _clean(text: str) -> str:
    """Text as Arrow takes it: without halves of characters; and without NUL."""
    text = text.replace("\0", " ")
    try:
        text.encode()
    except UnicodeEncodeError:
        text = text.encode("utf-8", "replace").decode()
    return text


@lru_cache(maxsize=256)
def codec(name: str) -> str | None:
    """What Python calls an encoding of text, whatever its name is in a mail; None where it knows none."""
    try:
        found = codecs.lookup(name.strip("\"' ")).name
        "".encode(found)  # a LookupError where it does not encode text
    except (LookupError, ValueError, TypeError, ImportError):
        return None
    return None if found in NO_TEXT_CODECS else LARGER.get(found, found)


def text_of_html(markup: str) -> str:
    """What HTML shows: without scripts and styles, its entities decoded, each block on lines of its own."""
    lines = (" ".join(line.split()) for line in "".join(_shown(markup)).splitlines())
    return "\n".join(line for line in lines if line)


def _shown(markup: str) -> Iterator[str]:
    """The pieces of text between the tags, and ends of lines at blocks.

    In time that grows with the length, whatever is not closed: Python's own parser may take minutes for a short mail.
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
            here = _after(markup, "-->", sign + 2)  # <!--> is a whole one
        elif markup.startswith(("<!", "<?", "</"), sign):
            here = _after(markup, ">", sign)
        else:
            here = sign + 1
            yield "<"
    yield _entities(markup[here:])


def _end_of_tag(markup: str, here: int, unclosed: set[str]) -> int:
    """Where the text goes on behind a tag; `unclosed` are the quotes that are known not to come again."""
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
    """The place behind this sign, or the end."""
    found = markup.find(sign, here)
    return len(markup) if found < 0 else found + len(sign)


def _entities(text: str) -> str:
    """Text with its entities decoded; a number that is too long for a character is none."""
    return unescape(LONG_NUMBER.sub("\ufffd", text)) if "&" in text else text
