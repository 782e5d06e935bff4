"""The columns of a schema as an engine has them."""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from deciban.fitting.engines.asking import EngineRows
from deciban.schema.schema import Schema
from deciban.tables.cell_numbers import plain_type
from deciban.tables.learned_types import fits
from deciban.tables.table import Frame


@dataclass(frozen=True)
class Columns:
    """How SQL writes the cells of columns, by their places in the schema.

    numbers: as doubles, where they are numbers. values: as they are. floating: those that may hold NaN. absent: those
    that the rows do not have, of which all cells are missing.
    """

    numbers: Mapping[int, str]
    values: Mapping[int, str]
    floating: frozenset[int]
    absent: frozenset[int]

    @classmethod
    def of(cls, asked: EngineRows, schema: Schema) -> "Columns":
        """A SchemaError, or a UsageError of a family, where reading no rows of such columns gives one.

        Cells that are not of the type that was learned are left out: whoever reads them converts or refuses them.
        """
        here = {
            name: column
            for name, column in asked.rows.columns.items()
            if name not in (asked.examples.target, asked.examples.weight)
        }
        nothing = {name: pa.array([], column.type) for name, column in here.items()}
        table = schema.table_as_learned(Frame(pa.table(nothing)))
        for group in schema.groups:
            group.family.read(table, group.columns)
        missing = asked.dialect.as_double("NULL")
        numbers, values, floating, absent = {}, {}, set(), set()
        for place, name in enumerate(schema.names or here):  # by their places where they were learned without names
            if name not in here:
                absent.add(place)
                numbers[place] = values[place] = missing
                continue
            column = here[name]
            if schema.types is not None and not fits(str(plain_type(column.type)), schema.types[place]):
                continue
            if (number := asked.dialect.as_number(column.sql, column.type)) is not None:
                numbers[place] = number
            if (value := asked.dialect.as_value(column.sql, column.type)) is not None:
                values[place] = value
            if pa.types.is_floating(column.type):
                floating.add(place)
        return cls(numbers, values, frozenset(floating), frozenset(absent))
