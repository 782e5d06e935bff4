"""Validation of request content: numbers of rows and columns, ids, labels, weights, and JSON types of cells."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from deciban.serve.problems import Problem, cell_place
from deciban.serve.settings import RequestSettings
from deciban.tables.cells import kind_of
from deciban.tables.labels import MAX_REPETITIONS
from deciban.util.text_tables import find_duplicate

# Row in JSON: cells by column name or, if columns have no names, in order.
Record = Mapping[str, Any] | Sequence[Any]

# Names of JSON types in messages.
JSON_KINDS = {bool: "a boolean", int: "a number", float: "a number", str: "text", dict: "an object", list: "a list"}

# Maximum length of an id.
MAX_ID_LENGTH = 512


def parse_id(value: Any, place: str) -> str:
    """Return an id as text; an integer becomes its digits. Raise a Problem if it is invalid."""
    text = str(value) if type(value) is int and abs(value) < 10**100 else value
    if not isinstance(text, str):
        found = JSON_KINDS.get(type(value), "null")
        remedy = f"send text of at most {MAX_ID_LENGTH} characters, or an integer"
        raise Problem(422, f"expected an id, found {found}", remedy, place)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Problem(422, "the id is not valid Unicode", "send text without lone surrogates", place) from None
    if not 0 < len(text) <= MAX_ID_LENGTH:
        raise Problem(422, f"the id has {len(text):,} characters", f"send 1 to {MAX_ID_LENGTH} characters", place)
    return text


def parse_weight(value: Any, place: str) -> float:
    """Return the weight of a row; raise a Problem if it is invalid."""
    number = type(value) in (int, float)
    if not number or not 0.0 <= value <= MAX_REPETITIONS:
        shown = repr(value)[:40] if number else JSON_KINDS.get(type(value), "null")
        remedy = f"send a number from 0 to {MAX_REPETITIONS:g}"
        raise Problem(422, f"expected a weight, found {shown}", remedy, place)
    return float(value)


@dataclass(frozen=True)
class LearnableRows:
    """Validated rows to learn or to forget.

    records: None if rows are given by id. labels: as sent; empty to forget rows by id. ids: None for a row without an
    id. weights: how often each row counts.
    """

    records: Sequence[Record] | None
    labels: Sequence[Any]
    ids: Sequence[str | None]
    weights: Sequence[float]

    @property
    def size(self) -> int:
        """Number of rows."""
        return len(self.ids)


def check_row_count(rows: int, settings: RequestSettings, place: str = "rows") -> None:
    """Raise a Problem if there are too many rows or ids."""
    if rows > settings.max_rows:
        cause = f"more than {settings.max_rows:,} {place}"
        raise Problem(413, cause, "send several requests", place)


def check_column_count(columns: int, settings: RequestSettings) -> None:
    """Raise a Problem if there are too many columns."""
    if columns > settings.max_columns:
        cause = f"found {columns:,} columns, the maximum is {settings.max_columns:,}"
        raise Problem(413, cause, "send only columns of the model", "rows")


def reject_property(name: str, place: str, known: Sequence[str]) -> Problem:
    """Return the problem for a property or parameter that an endpoint does not accept."""
    remedy = f"remove it; allowed: {', '.join(known)}"
    code = "invalid-parameter" if place.startswith("query") else "unknown-property"
    return Problem(422, f"unexpected property {name[:80]!r}", remedy, place, code=code)


def check_options(options: dict[str, Any], rows: int | None, settings: RequestSettings) -> dict[str, Any]:
    """Return the options, validated. rows: their number; None if ids stand for them."""
    if "ids" in options:
        check_row_count(len(check_list(options["ids"], "ids")), settings, "ids")
        options["ids"] = _check_ids(options["ids"])
        rows = len(options["ids"]) if rows is None else rows
    if "weights" in options:
        options["weights"] = check_weights(options["weights"])
    if "labels" in options:
        _check_labels(options["labels"])
    check_lengths(options, rows)
    if "reject" in options:
        options["reject"] = _check_reject(options["reject"])
    return options


def check_lengths(options: Mapping[str, Any], rows: int | None) -> None:
    """Raise a Problem unless there is one id, weight and label per row."""
    for name in ("ids", "weights", "labels"):
        if name in options and len(options[name]) != rows:
            raise Problem(422, f"found {len(options[name])} {name} for {rows} rows", "send one per row", name)


def check_list(value: Any, name: str) -> list[Any]:
    """Return the value if it is a list; raise a Problem otherwise."""
    if type(value) is not list:
        found = JSON_KINDS.get(type(value), "null")
        raise Problem(422, f"expected a list, found {found}", "send one value per row", name)
    return value


def _check_ids(ids: list[Any]) -> list[str]:
    """Return the ids as text; raise a Problem for duplicates."""
    texts = []
    for place, value in enumerate(ids):
        if type(value) is float and value.is_integer() and abs(value) < 2.0**53:
            value = int(value)  # numbers in CSV are floats
        texts.append(parse_id(value, f"ids[{place}]"))
    if (twice := find_duplicate(texts)) is not None:
        place = len(texts) - 1 - texts[::-1].index(twice)
        raise Problem(422, f"duplicate id {twice!r}", "send each row once", f"ids[{place}]")
    return texts


def check_weights(weights: Any) -> list[float]:
    """Return the weights; raise a Problem that names the first invalid one."""
    return [parse_weight(value, f"weights[{place}]") for place, value in enumerate(check_list(weights, "weights"))]


def _check_labels(labels: Any) -> None:
    for place, label in enumerate(check_list(labels, "labels")):
        if type(label) in (dict, list):
            cause = f"expected a class, found {JSON_KINDS[type(label)]}"
            raise Problem(422, cause, "send text or a number", f"labels[{place}]")


def _check_reject(reject: Any) -> float:
    """Return the cost of leaving a row undecided; raise a Problem if it is invalid."""
    try:
        cost = float(reject) if type(reject) in (int, float) else math.nan
    except OverflowError:
        cost = math.inf
    if not 0.0 <= cost < math.inf:
        remedy = "send the cost of leaving a row undecided, a number of at least 0"
        raise Problem(422, "invalid cost", remedy, "reject")
    return cost


# Python types of JSON numbers.
JSON_NUMBERS = frozenset((int, float))

# Python types of JSON strings.
JSON_TEXTS = frozenset((str,))

# Python types of JSON booleans.
JSON_FLAGS = frozenset((bool,))

# Accepted types of cells and their names in messages, by the type of the column in the model. Columns without training
# values and durations accept any one type.
ACCEPTED_TYPES: dict[str, tuple[frozenset[type], str]] = {
    "DOUBLE": (JSON_NUMBERS, "a number"),
    "BOOLEAN": (JSON_FLAGS, "true or false"),
    "VARCHAR": (JSON_TEXTS, "text"),
    "TIMESTAMP": (JSON_TEXTS, "text with a date"),
    "TIME": (JSON_TEXTS, "text with a time"),
}

# Remedies for a cell of another type.
CELL_REMEDIES = {
    "DOUBLE": "send a number, or null",
    "BOOLEAN": "send true, false or null",
    "VARCHAR": "send text, or null",
    "TIMESTAMP": "send text such as 2026-01-31, 2026-01-31 12:30:00 or 2026-01-31T12:30:00Z, or null",
    "TIME": "send text such as 12:30:00, or null",
}

# Python type of JSON null.
JSON_NULL = type(None)


def check_cell_types(name: str, cells: Sequence[Any], learned: str, named: bool, kinds: Iterable[type]) -> None:
    """Raise a Problem that names the first cell whose type differs from that of its column.

    kinds: the types of all cells. A flag may also be 0 or 1, as HTML forms send it.
    """
    kind = kind_of(learned)
    if kind not in ACCEPTED_TYPES:
        return
    accepted, expected = ACCEPTED_TYPES[kind]
    others = set(kinds) - accepted - {JSON_NULL}
    if not others and (kind not in ("TIMESTAMP", "TIME") or not any(cell is not None and not cell for cell in cells)):
        return
    for row, cell in enumerate(cells):
        if cell is None or (type(cell) in accepted and (cell or kind not in ("TIMESTAMP", "TIME"))):
            continue
        if kind == "BOOLEAN" and type(cell) in JSON_NUMBERS and cell in (0, 1):
            continue
        found = JSON_KINDS.get(type(cell), "null") if cell != "" else "empty text"
        raise Problem(422, f"expected {expected}, found {found}", CELL_REMEDIES[kind], cell_place(row, name, named))


def check_text_columns(table: pa.Table, types: dict[str, str]) -> None:
    """Raise a Problem if a text column of the model has another type in a table."""
    for name, column in zip(table.column_names, table.columns, strict=True):
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        found = str(kind)
        if kind_of(types.get(name, "")) != "VARCHAR" or "string" in found or column.null_count == len(column):
            continue
        row = pc.indices_nonzero(column.is_valid())[0].as_py()
        names = {"DOUBLE": "a number", "BOOLEAN": "true or false", "TIMESTAMP": "a date", "TIME": "a time"}
        cause = f"expected text, found {names.get(kind_of(found), found)}"
        raise Problem(422, cause, "send this column as text", cell_place(row, name))
