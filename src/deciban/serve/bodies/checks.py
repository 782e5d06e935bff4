"""Checks of what requests hold: numbers of rows and columns, ids, labels, weights, and the JSON types of cells."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from deciban.serve.problems import Problem, place_of
from deciban.serve.settings import RequestSettings
from deciban.tables.cells import kind_of
from deciban.tables.labels import MAX_REPETITIONS
from deciban.tables.table import find_duplicate

# A row as JSON has it: cells by the names of columns, or, where columns have no names, in their order.
Record = Mapping[str, Any] | Sequence[Any]

# What cells of JSON are called, by their types.
JSON_KINDS = {bool: "true or false", int: "number", float: "number", str: "text", dict: "object", list: "list"}

# Characters of an id.
MAX_ID_LENGTH = 512


def row_id(given: Any, place: str) -> str:
    """An id as text: a whole number is the text of its digits. A Problem where it is none."""
    text = str(given) if type(given) is int and abs(given) < 10**100 else given
    if not isinstance(text, str):
        found = JSON_KINDS.get(type(given), "null")
        remedy = f"send text of at most {MAX_ID_LENGTH} characters, or a whole number"
        raise Problem(422, f"found {found} as an id", remedy, place)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Problem(422, "the id is not valid Unicode", "send text without lone surrogates", place) from None
    if not 0 < len(text) <= MAX_ID_LENGTH:
        raise Problem(422, f"the id has {len(text)} characters", f"send 1 to {MAX_ID_LENGTH}", place)
    return text


def row_weight(given: Any, place: str) -> float:
    """How often a row counts. A Problem where it is no such number."""
    number = type(given) in (int, float)
    if not number or not 0.0 <= given <= MAX_REPETITIONS:
        shown = repr(given)[:40] if number else JSON_KINDS.get(type(given), "null")
        remedy = f"send how often the row counts: a number from 0 to {MAX_REPETITIONS:g}"
        raise Problem(422, f"found {shown}, expected a weight", remedy, place)
    return float(given)


@dataclass(frozen=True)
class LearnableRows:
    """Checked rows to learn or to forget; whoever gets them trusts them.

    records: None for rows that are known by their ids. labels: as sent; empty to forget rows by their ids. ids: None
    for a row that has none. weights: how often each row counts.
    """

    records: Sequence[Record] | None
    labels: Sequence[Any]
    ids: Sequence[str | None]
    weights: Sequence[float]

    @property
    def size(self) -> int:
        """The number of rows."""
        return len(self.ids)


def refuse_rows(rows: int, settings: RequestSettings, place: str = "rows") -> None:
    """A Problem where there are more rows, or ids of rows, than are taken."""
    if rows > settings.max_rows:
        cause = f"found more than the {settings.max_rows:,} {place} that are taken at a time"
        raise Problem(413, cause, "send them in several requests", place)


def refuse_columns(columns: int, settings: RequestSettings) -> None:
    """A Problem where there are more columns than are taken."""
    if columns > settings.max_columns:
        cause = f"found {columns:,} columns, at most {settings.max_columns:,} are taken"
        raise Problem(413, cause, "send those that the model knows", "rows")


def refuse_unknown(name: str, place: str, known: Sequence[str]) -> Problem:
    """The problem of something that was sent to an address that does not take it."""
    return Problem(422, f"{name[:80]!r} is not taken here", f"leave it out, or send {', '.join(known)}", place)


def checked_options(options: dict[str, Any], rows: int | None, settings: RequestSettings) -> dict[str, Any]:
    """The options, each of the right type and length. rows: how many there are; None where ids stand for them."""
    if "ids" in options:
        refuse_rows(len(a_list(options["ids"], "ids")), settings, "ids")
        options["ids"] = _checked_ids(options["ids"])
        rows = len(options["ids"]) if rows is None else rows
    if "weights" in options:
        options["weights"] = checked_weights(options["weights"])
    if "labels" in options:
        _check_labels(options["labels"])
    check_lengths(options, rows)
    if "reject" in options:
        options["reject"] = _checked_reject(options["reject"])
    return options


def check_lengths(options: Mapping[str, Any], rows: int | None) -> None:
    """Raise a Problem where there is not one id, weight or label for each row."""
    for name in ("ids", "weights", "labels"):
        if name in options and len(options[name]) != rows:
            raise Problem(422, f"found {len(options[name])} {name} for {rows} rows", "send one for each row", name)


def a_list(value: Any, name: str) -> list[Any]:
    """The value, if it is a list; else a Problem."""
    if type(value) is not list:
        found = JSON_KINDS.get(type(value), "null")
        raise Problem(422, f"found {found}, expected a list", "send one for each row", name)
    return value


def _checked_ids(ids: list[Any]) -> list[str]:
    """The ids as texts, each of them once; whole numbers are taken for the text they are written as."""
    found = []
    for place, one in enumerate(ids):
        if type(one) is float and one.is_integer() and abs(one) < 2.0**53:
            one = int(one)  # a CSV file knows no other numbers
        found.append(row_id(one, f"ids[{place}]"))
    if (twice := find_duplicate(found)) is not None:
        place = len(found) - 1 - found[::-1].index(twice)
        raise Problem(422, f"the id {twice!r} is there twice", "send each row once", f"ids[{place}]")
    return found


def checked_weights(weights: Any) -> list[float]:
    """Return the weights; a Problem names the first that is not a number of times that a row counts."""
    return [row_weight(one, f"weights[{place}]") for place, one in enumerate(a_list(weights, "weights"))]


def _check_labels(labels: Any) -> None:
    for place, label in enumerate(a_list(labels, "labels")):
        if type(label) in (dict, list):
            cause = f"found {JSON_KINDS[type(label)]}, expected a class"
            raise Problem(422, cause, "send text or a number", f"labels[{place}]")


def _checked_reject(reject: Any) -> float:
    """What it costs to leave a row undecided."""
    try:
        cost = float(reject) if type(reject) in (int, float) else math.nan
    except OverflowError:
        cost = math.inf
    if not 0.0 <= cost < math.inf:
        remedy = "send what it costs to leave a row undecided: a number that is at least 0"
        raise Problem(422, "this is no cost", remedy, "reject")
    return cost


# The types of cells that a column takes, by what it was learned as, and what messages call these. A column of which
# nothing was learned, or durations, take whatever is of one kind.
JSON_NUMBERS, JSON_TEXTS, JSON_FLAGS = frozenset((int, float)), frozenset((str,)), frozenset((bool,))
TAKEN: dict[str, tuple[frozenset[type], str]] = {
    "DOUBLE": (JSON_NUMBERS, "a number"),
    "BOOLEAN": (JSON_FLAGS, "true or false"),
    "VARCHAR": (JSON_TEXTS, "text"),
    "TIMESTAMP": (JSON_TEXTS, "text with a date"),
    "TIME": (JSON_TEXTS, "text with a time"),
}

# What to do about a cell of another kind.
CELL_REMEDIES = {
    "DOUBLE": "send a number, or null",
    "BOOLEAN": "send true, false or null",
    "VARCHAR": "send text, or null",
    "TIMESTAMP": "send text such as 2026-01-31, 2026-01-31 12:30:00 or 2026-01-31T12:30:00Z, or null",
    "TIME": "send text such as 12:30:00, or null",
}

JSON_NULL = type(None)


def refuse_other_kinds(name: str, cells: Sequence[Any], learned: str, named: bool, kinds: Iterable[type]) -> None:
    """A Problem that names the first cell that is not of the kind that the column was learned with.

    kinds: the types of all cells. A flag may also be 0 or 1, which forms have for it.
    """
    kind = kind_of(learned)
    if kind not in TAKEN:
        return
    taken, expected = TAKEN[kind]
    others = set(kinds) - taken - {JSON_NULL}
    if not others and (kind not in ("TIMESTAMP", "TIME") or not any(cell is not None and not cell for cell in cells)):
        return
    for row, cell in enumerate(cells):
        if cell is None or (type(cell) in taken and (cell or kind not in ("TIMESTAMP", "TIME"))):
            continue
        if kind == "BOOLEAN" and type(cell) in JSON_NUMBERS and cell in (0, 1):
            continue
        found = JSON_KINDS.get(type(cell), "null") if cell != "" else "empty text"
        raise Problem(422, f"found {found}, expected {expected}", CELL_REMEDIES[kind], place_of(row, name, named))


def refuse_other_columns(table: pa.Table, types: dict[str, str]) -> None:
    """The same for the columns of a table, of which one that holds text takes nothing but text."""
    for name, column in zip(table.column_names, table.columns, strict=True):
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        found = str(kind)
        if kind_of(types.get(name, "")) != "VARCHAR" or "string" in found or column.null_count == len(column):
            continue
        row = pc.indices_nonzero(column.is_valid())[0].as_py()
        what = {"DOUBLE": "a number", "BOOLEAN": "true or false", "TIMESTAMP": "a date", "TIME": "a time"}
        cause = f"found {what.get(kind_of(found), found)}, expected text"
        raise Problem(422, cause, "send this column as text", place_of(row, name))
