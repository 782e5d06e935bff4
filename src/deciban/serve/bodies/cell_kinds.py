"""What JSON has for the cells of a column: numbers for numbers, text for text, true and false for flags."""

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from deciban.serve.json_values import JSON_KINDS
from deciban.serve.problems import Problem
from deciban.tables.cells import kind_of

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


def place_of(row: int | str, name: str, named: bool = True) -> str:
    """Where a cell is in a request; columns without names are known by their numbers."""
    return f"rows[{row}].{name}" if named else f"rows[{row}][{name.removeprefix('x')}]"


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


def refuse_other_columns(table: pa.Table, types: dict[str, str], first_row: int = 0) -> None:
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
