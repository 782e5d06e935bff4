"""What each column of a table is: its family and why, its type, and the block that it is scored in."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from deciban.errors import BadCell, SchemaError
from deciban.families import Family
from deciban.schema.looks_like import LooksLike, MeantAs
from deciban.schema.reasons import ChosenBy, Reason
from deciban.tables.learned_types import as_learned, fits
from deciban.tables.table import NO_COLUMN, Frame, Table
from deciban.util.arrays import Integers
from deciban.util.text_tables import aligned, listed

# The type of a column that has no cells yet.
NO_TYPE = "null"

# The most lines of a printed schema, and how many of them are its last ones.
SCHEMA_LINES, LAST_SCHEMA_LINES = 61, 2


@dataclass(frozen=True)
class ColumnGroup:
    """Columns of one family that are counted and scored together: a block each, or one block if the family is joint.

    reasons: why each column has this family. open: whether columns that turn up later join the block. auxiliary: the
    columns are in another group too; this one is counted beside it, and scored only where tuning chose it.
    """

    family: Family
    columns: tuple[int, ...]
    reasons: tuple[Reason, ...] = field(compare=False)
    open: bool = field(default=False, compare=False)
    auxiliary: bool = False

    def subset(self, places: Sequence[int]) -> "ColumnGroup":
        """The group with some of its columns, by their places in it."""
        columns, reasons = tuple(self.columns[k] for k in places), tuple(self.reasons[k] for k in places)
        return replace(self, columns=columns, reasons=reasons)

    @property
    def blocks(self) -> int:
        """The number of its blocks."""
        return 1 if self.family.joint else len(self.columns)

    @property
    def inferred_columns(self) -> list[int]:
        """Its columns whose family the user did not give."""
        pairs = zip(self.columns, self.reasons, strict=True)
        return [column for column, reason in pairs if reason.source is not ChosenBy.GIVEN]


@dataclass(frozen=True)
class Schema:
    """What the columns of a table are, in groups of one family each.

    names: of the columns; None where they have only positions. types: the Arrow type that each column was first seen
    with, where it had one; so are files read later. looks_like: what each column may be meant as though its family
    takes it for something else, where that was looked at.
    """

    names: tuple[str, ...] | None
    width: int
    groups: tuple[ColumnGroup, ...]
    types: tuple[str, ...] | None = field(default=None, compare=False)
    looks_like: tuple[MeantAs | None, ...] | None = field(default=None, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        """Without what is derived from the rest."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @cached_property
    def columns_with_family(self) -> frozenset[str]:
        """The names of the columns that have a family."""
        names = self.names or ()
        return frozenset(names[column] for group in self.groups for column in group.columns if names)

    @cached_property
    def plain(self) -> "Schema":
        """The schema of plain Bayes, without auxiliary groups: it has each column once."""
        groups = tuple(group for group in self.groups if not group.auxiliary)
        return self if len(groups) == len(self.groups) else replace(self, groups=groups)

    def group_counting(self, group: ColumnGroup) -> tuple[int, Integers] | None:
        """The place of the group here that counts what `group` needs, and for each column of the former its place in
        the latter (-1: none); None where nothing here counts that."""
        for p, host in enumerate(self.groups):
            same = set(host.columns) == set(group.columns)
            if host.family.counts == group.family.counts and (
                same or (not group.family.joint and set(host.columns) > set(group.columns))
            ):
                place = {column: k for k, column in enumerate(group.columns)}
                return p, np.array([place.get(column, -1) for column in host.columns])
        return None

    def with_notes(self, notes: Mapping[str, str]) -> "Schema":
        """The same schema with notes on some columns, by their names, beside the reasons of their families."""
        if not notes:
            return self

        def noted(group: ColumnGroup) -> ColumnGroup:
            names = map(self.column_name, group.columns)
            pairs = zip(group.reasons, names, strict=True)
            return replace(group, reasons=tuple(reason.with_note(notes.get(name, "")) for reason, name in pairs))

        return replace(self, groups=tuple(group if group.auxiliary else noted(group) for group in self.groups))

    def columns_like(self, kind: LooksLike) -> dict[str, MeantAs]:
        """The columns that may be meant as this, by name."""
        looks = enumerate(self.looks_like or ())
        return {self.column_name(column): meant for column, meant in looks if meant is not None and meant.kind == kind}

    def column_name(self, column: int) -> str:
        """The name of a column; x0, x1, … where columns have only positions."""
        return self.names[column] if self.names is not None else f"x{column}"

    @property
    def column_types(self) -> dict[str, str]:
        """The Arrow type that each named column was learned with."""
        return dict(zip(self.names or (), self.types or (), strict=False))

    @property
    def column_names(self) -> tuple[str, ...]:
        """The names of all columns, in their order."""
        return tuple(self.column_name(column) for column in range(self.width))

    @cached_property
    def _block_columns(self) -> list[tuple[int, int, tuple[int, ...]]]:
        """(group, block within the group, columns) of each block, in the order of their first columns."""
        blocks = []
        for p, group in enumerate(self.groups):
            members = [group.columns] if group.family.joint else [(column,) for column in group.columns]
            blocks += [(p, b, columns) for b, columns in enumerate(members)]
        return sorted(blocks, key=lambda block: block[2][:1])

    @cached_property
    def block_names(self) -> tuple[str, ...]:
        """The name of each block: that of its column, or those of its columns joined; with the family if need be."""
        names = [self._joined(columns) for _, _, columns in self._block_columns]
        times = Counter(names)
        return _numbered(
            name if times[name] == 1 else f"{name} as {self.groups[p].family}"
            for name, (p, _, _) in zip(names, self._block_columns, strict=True)
        )

    def _joined(self, columns: tuple[int, ...]) -> str:
        """The names of columns that form a block, as one."""
        if len(columns) > 6:
            first, second, last = (self.column_name(column) for column in (*columns[:2], columns[-1]))
            return f"{first}+{second}+…+{last}"
        return "+".join(self.column_name(column) for column in columns)

    @cached_property
    def block_slots(self) -> tuple[Integers, ...]:
        """For each group, the place of each of its blocks among all blocks."""
        places = [np.zeros(group.blocks, dtype=np.int64) for group in self.groups]
        for place, (p, b, _) in enumerate(self._block_columns):
            places[p][b] = place
        return tuple(places)

    @cached_property
    def shared_slots(self) -> tuple[Integers, ...]:
        """For each group, place 0 for each of its blocks: so the evidence of all blocks is added up."""
        return tuple(np.zeros_like(slot) for slot in self.block_slots)

    def group_of_block(self, block: int) -> tuple[int, int]:
        """The group of a block, and its place within that group."""
        group, place, _ = self._block_columns[block]
        return group, place

    def descriptions(self) -> list[tuple[str, str, str]]:
        """(column, family, reason) in the order of the columns; then the auxiliary blocks, which overlap them."""
        found: dict[int, tuple[str, str, str]] = {}
        overlapping = []
        for group in sorted(self.groups, key=lambda group: group.auxiliary):
            if group.auxiliary and group.family.joint and not found.keys().isdisjoint(group.columns):
                overlapping.append((self._joined(group.columns), str(group.family), str(group.reasons[0])))
                continue
            for column, reason in zip(group.columns, group.reasons, strict=True):
                found[column] = (self.column_name(column), self._family(group, column), str(reason))
        for column in range(self.width):
            found.setdefault(column, (self.column_name(column), "undecided", "no cell is filled yet"))
        names = _numbered(name for name, _, _ in overlapping)
        return [found[column] for column in range(self.width)] + [
            (name, family, reason) for name, (_, family, reason) in zip(names, overlapping, strict=True)
        ]

    def _family(self, group: ColumnGroup, column: int) -> str:
        """The family of a column, and the columns that form a block with it."""
        others = [other for other in group.columns if other != column] if group.family.joint else []
        if not others:
            return str(group.family)
        if len(others) > 3:
            return f"{group.family} with {len(others)} others"
        return f"{group.family} with {', '.join(map(self.column_name, others))}"

    def __str__(self) -> str:
        lines = [("column", "family", "why"), *self.descriptions()]
        if (more := len(lines) - SCHEMA_LINES) > 0:
            lines = [
                *lines[: SCHEMA_LINES - LAST_SCHEMA_LINES - 1],
                ("…", f"({more} more)", ""),
                *lines[-LAST_SCHEMA_LINES:],
            ]
        return aligned(lines)

    def table_as_learned(self, table: Table, first_row: int = 0) -> Table:
        """`table` with the columns of this schema, in their order and of the types that were learned; an error where
        that cannot be. first_row: the number of the first row, for errors."""
        if isinstance(table, Frame) and table.rows and table.has_no_cells and NO_COLUMN not in (self.names or ()):
            missing = pa.table([pa.nulls(table.rows)] * self.width, names=list(self.column_names))
            table = Frame(missing, self.names is not None)
        elif self.names is None or not isinstance(table, Frame) or not table.named:
            if table.width != self.width:
                raise SchemaError(
                    f"X has {table.width} features, but BayesClassifier is expecting {self.width} features as input; "
                    f"give the columns the model was fitted on"
                )
        elif table.names != self.names:
            if not set(self.names) & set(table.names or ()):
                raise SchemaError(
                    f"none of the model's columns is in the table: it has {listed(table.names or ())}, "
                    f"the model knows {listed(self.names)}"
                )
            table = table.select(self.names)
        return self.cells_as_learned(table, first_row)

    def cells_as_learned(self, table: Table, first_row: int = 0) -> Table:
        """`table` with the columns that this schema knows of the types that were learned, and the others as they are; a
        DataError that names the cell where one holds something else."""
        if not isinstance(table, Frame) or self.types is None:
            return table
        learned = list(self.types)
        if table.names is not None and table.names != self.names:
            known = dict(zip(self.names or (), self.types, strict=False))
            learned = [known.get(name, NO_TYPE) for name in table.names]
        if all(map(fits, table.types, learned)):
            return table
        names, columns = table.table.column_names, []
        for column, name, here, before in zip(table.table.columns, names, table.types, learned, strict=True):
            try:
                columns.append(column if fits(here, before) else as_learned(column, here, before))
            except BadCell as bad:
                raise bad.as_error(name, first_row) from None
        return Frame(pa.table(columns, names=names), table.named)


def _numbered(names: Iterable[str]) -> tuple[str, ...]:
    """The names, with numbers behind those that are there more than once."""
    given = tuple(names)
    times, met = Counter(given), Counter[str]()
    found = []
    for name in given:
        met[name] += 1
        found.append(name if times[name] == 1 else f"{name} ({met[name]})")
    return tuple(found)


ColumnSpec = Mapping[Any, Family] | Family | None
