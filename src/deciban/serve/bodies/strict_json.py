"""JSON as it is written down in RFC 8259 and nothing else: each name once in an object, every number finite."""

import json
import re
from collections.abc import Iterable
from typing import Any

import msgspec

from deciban.serve.problems import Problem

# Where msgspec says that it stopped: a byte, or a path.
AT_BYTE = re.compile(r" \(byte (\d+)\)$")
AT_PATH = re.compile(r" - at `\$(.*)`$")

# Half of a character outside of the first plane, without the other half.
LONE_SURROGATE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)

_decoder = msgspec.json.Decoder()


def decoded_json(body: bytes) -> Any:
    """The value that a body holds; a Problem that names the byte where it is no JSON."""
    try:
        return _decoder.decode(body)
    except RecursionError:
        remedy = "send rows as a list of objects with plain values"
        raise Problem(422, "lists and objects are nested too deeply", remedy, "the body") from None
    except UnicodeDecodeError:
        raise Problem(422, "the bytes are no UTF-8", "send text in UTF-8", _first_byte_of_no_text(body)) from None
    except msgspec.DecodeError as error:
        raise _malformed(body, str(error)) from None
    except (ValueError, OverflowError):
        raise Problem(422, "a number cannot be read", "send numbers of usual size", "the body") from None


def _malformed(body: bytes, text: str) -> Problem:
    remedy = "send JSON as RFC 8259 has it, in UTF-8"
    if at := AT_PATH.search(text):
        cause = AT_PATH.sub("", text).lower()
        return Problem(422, f"{cause}: JSON has no such number", "send finite numbers", f"the body{at[1]}")
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


def _read_every_name(body: bytes) -> None:
    def checked(pairs: list[tuple[str, Any]]) -> None:
        seen = set()
        for name, _ in pairs:
            if name in seen:
                raise Problem(422, f"the name {name!r} is there twice in one object", "send each name once", "the body")
            seen.add(name)

    try:
        json.loads(body, object_pairs_hook=checked, parse_float=float, parse_int=len)
    except (RecursionError, ValueError):
        raise Problem(422, "this JSON cannot be read", "send rows as a list of flat objects", "the body") from None
