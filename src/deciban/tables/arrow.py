"""Arrow tables and arrays where Arrow alone would be slow or refuse, and names of columns."""

from collections.abc import Callable, Hashable, Iterable
from typing import Any, TypeVar

import pyarrow as pa

from deciban.errors import DataError

Name = TypeVar("Name", bound=Hashable)


def with_each(table: pa.Table, change: Callable[[pa.ChunkedArray], Any]) -> pa.Table:
    """The table with `change` of each column, made at once: setting a single one takes as long as there are columns."""
    before = table.columns
    after = [change(column) for column in before]
    if all(one is other for one, other in zip(before, after, strict=True)):
        return table
    return pa.Table.from_arrays(after, names=table.column_names)


def like_first(table: pa.Table, schema: pa.Schema | None) -> pa.Table:
    """A table with the types of the first one, for what it is written to, in which a column has one type."""
    if table.schema == schema:
        return table
    cast = table.cast(schema)
    for name, here, there in zip(table.column_names, table.schema.types, cast.schema.types, strict=True):
        if pa.types.is_timestamp(here) and pa.types.is_date(there) and cast[name].cast(here) != table[name]:
            raise DataError(f"column {name!r} has dates first and times of the day later; write a .csv or .jsonl file")
    return cast


def take_cells(array: pa.Array, rows: Any) -> pa.Array:
    """Some cells of an Arrow array, also of text that is stored as views, of which Arrow can take none."""
    if pa.types.is_string_view(array.type):
        array = array.cast(pa.large_string())
    return array.take(pa.array(rows))


def decoded_cells(array: pa.Array) -> list[str | None]:
    """Cells of text as Python has them; bytes that are no UTF-8, which Arrow does not refuse, are replaced."""
    cells = array.cast(pa.large_string()).cast(pa.large_binary()).to_pylist()
    return [None if cell is None else cell.decode(errors="replace") for cell in cells]


def repeated(names: Iterable[Name]) -> Name | None:
    """The first of the names that is there more than once."""
    seen = set[Name]()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None
