"""What JSON has for rows, ids and weights: what it is called, and what it may be."""

from collections.abc import Mapping, Sequence
from typing import Any

from deciban.serve.problems import Problem
from deciban.tables.labels import MOST_REPETITIONS

# A row as JSON has it: cells by the names of columns, or, where columns have no names, in their order.
Record = Mapping[str, Any] | Sequence[Any]

# What cells of JSON are called, by their types.
JSON_KINDS = {bool: "true or false", int: "number", float: "number", str: "text", dict: "object", list: "list"}

# Characters of an id.
LONGEST_ID = 512


def row_id(given: Any, place: str) -> str:
    """An id as text: a whole number is the text of its digits. A Problem where it is none."""
    text = str(given) if type(given) is int and abs(given) < 10**100 else given
    if not isinstance(text, str):
        found = JSON_KINDS.get(type(given), "null")
        remedy = f"send text of at most {LONGEST_ID} characters, or a whole number"
        raise Problem(422, f"found {found} as an id", remedy, place)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Problem(422, "the id is not valid Unicode", "send text without lone surrogates", place) from None
    if not 0 < len(text) <= LONGEST_ID:
        raise Problem(422, f"the id has {len(text)} characters", f"send 1 to {LONGEST_ID}", place)
    return text


def row_weight(given: Any, place: str) -> float:
    """How often a row counts. A Problem where it is no such number."""
    number = type(given) in (int, float)
    if not number or not 0.0 <= given <= MOST_REPETITIONS:
        shown = repr(given)[:40] if number else JSON_KINDS.get(type(given), "null")
        remedy = f"send how often the row counts: a number from 0 to {MOST_REPETITIONS:g}"
        raise Problem(422, f"found {shown}, expected a weight", remedy, place)
    return float(given)
