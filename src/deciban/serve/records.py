"""Rows as JSON has them (records of a model with names, lists of one without) as a table that the model reads."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from deciban.errors import DecibanError
from deciban.schema.schema import Schema
from deciban.serve.problems import Problem
from deciban.tables.table import Frame, Table

# A row as JSON has it: cells by the names of columns, or, where columns have no names, in their order.
Record = Mapping[str, Any] | Sequence[Any]

# What cells of JSON are called, by their types.
KINDS = {bool: "true or false", int: "number", float: "number", str: "text", dict: "object", list: "list"}


def table_of_records(schema: Schema, records: Sequence[Record]) -> Table:
    """The columns of the model in their order, of the types that were learned; a Problem that names the cell."""
    names = schema.column_names
    columns = _columns_by_place(records, len(names)) if schema.names is None else _columns_by_name(records, names)
    arrays = [_array(name, cells, schema.names is not None) for name, cells in zip(names, columns, strict=True)]
    try:
        return schema.table_as_learned(Frame(pa.table(arrays, names=list(names)), schema.names is not None))
    except DecibanError as problem:
        raise Problem(422, *cause_and_remedy(str(problem))) from None


def cause_and_remedy(message: str) -> tuple[str, str]:
    """The two halves of an error of the engine, which has both in one line."""
    cause, _, remedy = message.rpartition("; ")
    return (cause, remedy) if cause else (message, "correct the request")


def _columns_by_name(records: Sequence[Record], names: Sequence[str]) -> list[list[Any]]:
    for row, record in enumerate(records):
        if not isinstance(record, dict):
            found = KINDS.get(type(record), "null")
            raise Problem(422, f"found {found}, expected an object", "send {column: value, ...}", f"rows[{row}]")
    return [[record.get(name) for record in records] for name in names]  # type: ignore[union-attr]  # just checked


def _columns_by_place(records: Sequence[Record], width: int) -> list[list[Any]]:
    for row, record in enumerate(records):
        if not isinstance(record, list):
            found = KINDS.get(type(record), "null")
            remedy = f"the columns of this model have no names: send {width} cells in their order"
            raise Problem(422, f"found {found}, expected a list", remedy, f"rows[{row}]")
        if len(record) != width:
            remedy = f"send {width} cells, null where one is missing"
            raise Problem(422, f"found {len(record)} cells, expected {width}", remedy, f"rows[{row}]")
    return [list(column) for column in zip(*records, strict=True)] if records else [[] for _ in range(width)]


def _array(name: str, cells: list[Any], named: bool) -> pa.Array:
    """The cells of a column; a Problem that names the first one of another kind than those before it."""
    try:
        return pa.array(cells)
    except (pa.ArrowException, OverflowError, UnicodeError):
        raise _unreadable(name, cells, named) from None


def _unreadable(name: str, cells: list[Any], named: bool) -> Problem:
    place = f".{name}" if named else f"[{name.removeprefix('x')}]"
    expected = None
    for row, cell in enumerate(cells):
        kind = KINDS.get(type(cell))
        if kind in ("object", "list"):
            remedy = "send a number, text, true, false or null"
            return Problem(422, f"found {kind}, expected a single value", remedy, f"rows[{row}]{place}")
        if kind is not None and expected is not None and kind != expected:
            remedy = "send cells of one kind in a column"
            return Problem(422, f"found {kind} among cells of kind {expected}", remedy, f"rows[{row}]{place}")
        expected = kind or expected
    return Problem(422, "the cells cannot be read", "send numbers of usual size, or text", f"rows[*]{place}")
