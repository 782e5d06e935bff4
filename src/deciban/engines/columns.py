"""The columns of a schema as an engine has them."""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from deciban.engines.asking import Asked
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
    def of(cls, asked: Asked, schema: Schema) -> "Columns":
        """A SchemaError, or a UsageError of a family, where reading no rows of such columns gives one.

        Cells that are not of the type that was learned are left out: whoever reads them converts or refuses them.
        """
        here = asked.rows.columns
        names = [name for name in here if name not in (asked.examples.target, asked.examples.weight)]
        nothing = schema.table_as_learned(Frame(pa.table({name: pa.array([], here[name].type) for name in names})))
        for group in schema.groups:
            group.family.read(nothing, group.columns)
        missing = asked.engine.double("NULL")
        numbers, values, absent = {}, {}, set()
        for place, name in enumerate(schema.column_names):
            if name not in names:
                absent.add(place)
                numbers[place] = values[place] = missing
                continue
            column, learned = here[name], None if schema.types is None else schema.types[place]
            if learned is not None and not fits(str(plain_type(column.type)), learned):
                continue
            for found, sql in ((numbers, asked.engine.number(column)), (values, asked.engine.value(column))):
                if sql is not None:
                    found[place] = sql
        floating = {
            p for p, name in enumerate(schema.column_names) if p not in absent and pa.types.is_floating(here[name].type)
        }
        return cls(numbers, values, frozenset(floating), frozenset(absent))
