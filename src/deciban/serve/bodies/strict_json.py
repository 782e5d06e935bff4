"""Strict JSON (RFC 8259): unique names in objects, finite numbers."""

import codecs
import json
import re
from collections.abc import Iterable
from typing import Any

import msgspec

from deciban.serve.problems import Problem
from deciban.util.text_tables import find_duplicate

# Position in error messages of msgspec: a byte, or a path.
AT_BYTE = re.compile(r" \(byte (\d+)\)$")
AT_PATH = re.compile(r" - at `\$(.*)`$")

# Escaped surrogate without its counterpart.
LONE_SURROGATE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)

# Maximum depth of nesting: rows are flat, and ignored columns need no more.
MAX_DEPTH = 8

# Translation that makes all brackets square.
BRACES_TO_BRACKETS = bytes.maketrans(b"{}", b"[]")

# All bytes but brackets, which are deleted.
NOT_BRACKETS = bytes(sorted(set(range(256)) - set(b"[]{}")))

# JSON string.
JSON_TEXT = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)

# Path of msgspec in a body with rows.
IN_ROWS = re.compile(r"(?:\[\.\.\.\])?\[(\d+)\](?:\[\.\.\.\]|(\[\d+\]))$")

_decoder = msgspec.json.Decoder()


def decode_json(body: bytes) -> Any:
    """Return the value of a body; raise a Problem that names the byte of a syntax error."""
    try:
        found = _decoder.decode(body)
    except RecursionError:
        raise _too_deep() from None
    except UnicodeDecodeError:
        raise Problem(422, "not valid UTF-8", "send the body in UTF-8", _first_invalid_byte(body)) from None
    except msgspec.DecodeError as error:
        raise _syntax_problem(body, str(error)) from None
    except (ValueError, OverflowError):
        raise Problem(422, "number out of range", "send a smaller number", "the body") from None
    if _is_deep(body) and _is_deep(JSON_TEXT.sub(b"", body)):  # ignore brackets in strings
        raise _too_deep()
    return found


def _too_deep() -> Problem:
    cause = f"lists and objects are nested more than {MAX_DEPTH} levels deep"
    return Problem(422, cause, "send rows as a list of flat objects", "the body")


def _is_deep(body: bytes) -> bool:
    """Return True if the brackets of a body are nested too deeply."""
    left = body.translate(BRACES_TO_BRACKETS, NOT_BRACKETS)
    for _ in range(MAX_DEPTH):
        if not left:
            return False
        left = left.replace(b"[]", b"")  # the innermost level
    return bool(left)


def _syntax_problem(body: bytes, text: str) -> Problem:
    remedy = "send valid JSON (RFC 8259) in UTF-8"
    if body.startswith(codecs.BOM_UTF8):
        return Problem(422, "found a byte order mark", "remove it", "byte 0")
    if at := AT_PATH.search(text):
        cause = AT_PATH.sub("", text).lower()
        row = IN_ROWS.fullmatch(at[1])
        place = f"rows[{row[1]}]{row[2] or ''}" if row else "the body"
        return Problem(422, f"{cause}: not a JSON number", "send finite numbers", place)
    if half := LONE_SURROGATE.search(body):
        return Problem(422, "lone surrogate in a string", "send complete characters", f"byte {half.start()}")
    if "truncated" in text:
        return Problem(422, "unexpected end of JSON", remedy, f"byte {len(body)}")
    at_byte = AT_BYTE.search(text)
    cause = AT_BYTE.sub("", text).removeprefix("JSON is malformed: ").lower()
    return Problem(422, f"invalid JSON: {cause}", remedy, f"byte {at_byte[1]}" if at_byte else "the body")


def _first_invalid_byte(body: bytes) -> str:
    try:
        body.decode()
    except UnicodeDecodeError as error:
        return f"byte {error.start}"
    return "the body"


def check_repeated_names(body: bytes, value: Any, objects: Iterable[dict[str, Any]]) -> None:
    """Raise a Problem if an object has a duplicate name.

    objects: the known objects in the value. The decoder keeps the last of two values, so then the number of names
    differs from the number of colons in the body. Colons in strings cause such a difference too. Only if there is one,
    a slower decoder that sees every name reads the body again.
    """
    colons = body.count(b":")
    names = 0
    for entry in objects:
        names += len(entry)
    if colons == names:
        return
    if b"\\u003" not in body and colons == sum(_colons(value)):  # an escaped colon (\u003a) is not counted in the body
        return
    _read_every_name(body)


def _colons(value: Any) -> Iterable[int]:
    """Yield 1 for each name of each object, and the number of colons in each string."""
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
    """Marker for an object with a duplicate name."""

    def __init__(self, name: str) -> None:
        self.name = name


def _read_every_name(body: bytes) -> None:
    found: list[_Twice] = []

    def check_pairs(pairs: list[tuple[str, Any]]) -> Any:
        if (twice := find_duplicate(name for name, _ in pairs)) is None:
            return dict(pairs)
        found.append(_Twice(twice))
        return found[-1]

    try:
        value = json.loads(body, object_pairs_hook=check_pairs, parse_float=float, parse_int=len)
    except (RecursionError, ValueError):
        raise Problem(422, "invalid JSON", "send rows as a list of flat objects", "the body") from None
    if found:
        rows = value.get("rows") if isinstance(value, dict) else value
        row = rows.index(found[0]) if isinstance(rows, list) and found[0] in rows else None
        name = found[0].name
        place = "the body" if row is None else f"rows[{row}].{name}"
        raise Problem(422, f"duplicate name {name!r} in an object", "send each name once", place)
