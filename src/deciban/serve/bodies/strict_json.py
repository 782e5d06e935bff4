"""JSON as it is written down in RFC 8259 and nothing else: each name once in an object, every number finite."""

import codecs
import json
import re
from collections.abc import Iterable
from typing import Any

import msgspec

from deciban.serve.problems import Problem
from deciban.tables.table import find_duplicate

# Where msgspec says that it stopped: a byte, or a path.
AT_BYTE = re.compile(r" \(byte (\d+)\)$")
AT_PATH = re.compile(r" - at `\$(.*)`$")

# Half of a character outside of the first plane, without the other half.
LONE_SURROGATE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)

# What the body of a request may have inside of each other: rows are flat, and no column that is ignored needs more.
MAX_INSIDE = 8
ALL_ALIKE = bytes.maketrans(b"{}", b"[]")
ALL_BUT_BRACKETS = bytes(sorted(set(range(256)) - set(b"[]{}")))
JSON_TEXT = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)

# Where msgspec is in a body with rows, by its path.
IN_ROWS = re.compile(r"(?:\[\.\.\.\])?\[(\d+)\](?:\[\.\.\.\]|(\[\d+\]))$")

_decoder = msgspec.json.Decoder()


def decoded_json(body: bytes) -> Any:
    """The value that a body holds; a Problem that names the byte where it is no JSON."""
    try:
        found = _decoder.decode(body)
    except RecursionError:
        raise _too_deep() from None
    except UnicodeDecodeError:
        raise Problem(422, "the bytes are no UTF-8", "send text in UTF-8", _first_byte_of_no_text(body)) from None
    except msgspec.DecodeError as error:
        raise _malformed(body, str(error)) from None
    except (ValueError, OverflowError):
        raise Problem(422, "a number cannot be read", "send numbers of usual size", "the body") from None
    if _is_deep(body) and _is_deep(JSON_TEXT.sub(b"", body)):  # brackets inside of texts are none
        raise _too_deep()
    return found


def _too_deep() -> Problem:
    cause = f"lists and objects are nested too deeply, in more than {MAX_INSIDE} levels"
    return Problem(422, cause, "send rows as a list of objects with plain values", "the body")


def _is_deep(body: bytes) -> bool:
    """Whether the brackets of a body have more levels than they may."""
    left = body.translate(ALL_ALIKE, ALL_BUT_BRACKETS)
    for _ in range(MAX_INSIDE):
        if not left:
            return False
        left = left.replace(b"[]", b"")  # the innermost level
    return bool(left)


def _malformed(body: bytes, text: str) -> Problem:
    remedy = "send JSON as RFC 8259 has it, in UTF-8"
    if body.startswith(codecs.BOM_UTF8):
        return Problem(422, "there is a byte order mark before the JSON", "send it without this mark", "byte 0")
    if at := AT_PATH.search(text):
        cause = AT_PATH.sub("", text).lower()
        row = IN_ROWS.fullmatch(at[1])
        place = f"rows[{row[1]}]{row[2] or ''}" if row else "the body"
        return Problem(422, f"{cause}: JSON has no such number", "send finite numbers", place)
    if half := LONE_SURROGATE.search(body):
        return Problem(422, "half a character (a lone surrogate)", "send whole characters", f"byte {half.start()}")
    if "truncated" in text:
        return Problem(422, "the JSON ends too early", remedy, f"byte {len(body)}")
    at_byte = AT_BYTE.search(text)
    cause = AT_BYTE.sub("", text).removeprefix("JSON is malformed: ").lower()
    return Problem(422, f"this is no JSON: {cause}", remedy, f"byte {at_byte[1]}" if at_byte else "the body")


def _first_byte_of_no_text(body: bytes) -> str:
    try:
        body.decode()
    except UnicodeDecodeError as error:
        return f"byte {error.start}"
    return "the body"


def refuse_repeated_names(body: bytes, value: Any, objects: Iterable[dict[str, Any]]) -> None:
    """A Problem that names a name that an object has twice.

    objects: those that the value consists of, as far as they are known. The decoder keeps the last of two values, so
    that the names and the colons in the body, of which each name has one, then differ in number; only if they do, which
    texts with colons bring about too, is the body read again by a slower reader that sees every name.
    """
    colons = body.count(b":")
    names = 0
    for one in objects:
        names += len(one)
    if colons == names:
        return
    if b"\\u003" not in body and colons == sum(_colons(value)):  # as \u003a a colon is none in the body
        return
    _read_every_name(body)


def _colons(value: Any) -> Iterable[int]:
    """For each name of each object 1, and the number of colons in each text."""
    if isinstance(value, dict):
        yield len(value)
        for name, inside in value.items():
            yield name.count(":")
            yield from _colons(inside)
    elif isinstance(value, list):
        for inside in value:
            if type(inside) is str:
                yield inside.count(":")
            elif inside is not None:
                yield from _colons(inside)
    elif isinstance(value, str):
        yield value.count(":")


class _Twice:
    """An object that has a name twice."""

    def __init__(self, name: str) -> None:
        self.name = name


def _read_every_name(body: bytes) -> None:
    found: list[_Twice] = []

    def checked(pairs: list[tuple[str, Any]]) -> Any:
        if (twice := find_duplicate(name for name, _ in pairs)) is None:
            return dict(pairs)
        found.append(_Twice(twice))
        return found[-1]

    try:
        value = json.loads(body, object_pairs_hook=checked, parse_float=float, parse_int=len)
    except (RecursionError, ValueError):
        raise Problem(422, "this JSON cannot be read", "send rows as a list of flat objects", "the body") from None
    if found:
        rows = value.get("rows") if isinstance(value, dict) else value
        row = rows.index(found[0]) if isinstance(rows, list) and found[0] in rows else None
        name = found[0].name
        place = "the body" if row is None else f"rows[{row}].{name}"
        raise Problem(422, f"the name {name!r} is there twice in one object", "send each name once", place)
