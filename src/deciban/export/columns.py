"""What a form needs to know of each column: its name, what may be entered, and how that was learned to be read."""

from typing import Any

from deciban.schema.schema import Schema
from deciban.tables.cells import kind_of

# What cells of a column are read as, by the type that it was learned with; others are taken as they are.
READ_AS = {"DOUBLE": "number", "BOOLEAN": "flag", "TIMESTAMP": "date", "TIME": "time"}

# What columns are to people, where their type says more than their family.
KIND_OF_TYPE = {"date": "date", "time": "time"}


def columns_as_json(schema: Schema, kinds: dict[int, tuple[str, int | None]]) -> list[dict[str, Any]]:
    """Each column of the schema; `kinds` has what those with a family are, and the place of their levels."""
    found = []
    for column in range(schema.width):
        read_as = READ_AS.get(kind_of(schema.types[column]), "as it is") if schema.types is not None else "as it is"
        kind, levels = kinds.get(column, ("unused", None))
        shown = KIND_OF_TYPE.get(read_as, kind) if kind in ("number", "count", "category") else kind
        known = {} if levels is None else {"levels": levels}
        found.append({"name": schema.column_name(column), "kind": shown, "read_as": read_as, **known})
    return found
