"""Schema of a table: family, reason, type and block of each column, and what else it looks like.

`union_schemas` merges the schemas of two tables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import Any, Literal, TypeVar

import numpy as np
import pyarrow as pa

from deciban.errors import Argument, BadCell, SchemaError
from deciban.families import Family
from deciban.tables.cells import FORMAT_SEPARATOR, as_learned, fits
from deciban.tables.table import NO_COLUMN, Frame, Table
from deciban.util.arrays import Integers, PickledFields
from deciban.util.results import Part, Result, TextTable
from deciban.util.text_tables import list_names

# Type of a column without values.
NO_TYPE = "null"

ColumnSpec = Mapping[Any, Family] | Family | None

Fact = TypeVar("Fact")


class ChosenBy(Enum):
    """Origin of a column's family: given by the user, inferred from cells, or chosen by tuning."""

    GIVEN = "given"
    INFERRED = "inferred"
    TUNED = "tuned"


@dataclass(frozen=True)
class Reason:
    """Origin of a column's family, the reason, and a note on the column, for example on missing cells.

    >>> str(Reason(ChosenBy.INFERRED, "floating point", "2 cells read as missing"))
    'floating point, 2 cells read as missing'
    """

    source: ChosenBy
    text: str
    note: str = ""

    def __str__(self) -> str:
        return f"{self.text}, {self.note}" if self.note else self.text

    def with_note(self, note: str) -> Reason:
        """Return the reason with another note; an empty note changes nothing."""
        return replace(self, note=note) if note else self


# Reason for a family given by the user.
GIVEN = Reason(ChosenBy.GIVEN, "given")


# An identifier is unique to each row. The others are texts: numbers, numbers with thousands separators or units, and
# dates not in ISO format (or integers, such as 20241031).
LooksLikeKind = Literal["identifier", "numbers", "thousands", "units", "dates"]


@dataclass(frozen=True)
class LooksLike:
    """Appearance of a column that differs from its family.

    detail: for dates their strptime formats besides ISO 8601, separated by |, or None without any; for thousands the
        separator; for numbers a cell that is not a number, or None if all are; for units an example.
    decimal_comma: True if numbers have decimal commas.
    exception: for dates, a cell that is not a date, or None if all are.
    otherwise: for dates, other formats that all of them have too, because no day is after the 12th.

    >>> str(LooksLike("numbers", "many"))
    "looks like numbers, except for 'many'"
    >>> str(LooksLike("dates", "%d/%m/%Y", otherwise="%m/%d/%Y"))
    'looks like dates (%d/%m/%Y, or %m/%d/%Y)'
    """

    kind: LooksLikeKind
    detail: str | None = None
    decimal_comma: bool = False
    exception: str | None = None
    otherwise: str | None = None

    @property
    def formats(self) -> list[str]:
        """Formats of dates, besides ISO 8601."""
        return self.detail.split(FORMAT_SEPARATOR) if self.kind == "dates" and self.detail else []

    @property
    def unreadable(self) -> str | None:
        """A cell that is not a number or a date, or None."""
        return self.detail if self.kind == "numbers" else self.exception

    def __str__(self) -> str:
        if self.kind == "identifier":
            return "looks like an identifier"
        if self.kind == "dates":
            formats = [*self.formats, *([] if self.otherwise is None else [f"or {self.otherwise}"])]
            shown = f" ({', '.join(formats)})" if formats else ""
            return f"looks like dates{shown}" + ("" if self.exception is None else f", except for {self.exception!r}")
        if self.kind == "thousands":
            return f"looks like numbers with {self.detail!r} between thousands"
        if self.kind == "units":
            sign = "in parentheses" if (self.detail or "").lstrip().startswith("(") else "with a unit"
            return f"looks like numbers {sign} ({self.detail!r})"
        if self.detail is not None:
            return f"looks like numbers, except for {self.detail!r}"
        return "looks like numbers with decimal commas" if self.decimal_comma else "looks like numbers"


# Fields of the description of a column.
DESCRIPTION = ("column", "family", "why")

# Maximum number of lines of a printed schema.
SCHEMA_LINES = 61

# Lines at its end that are always shown.
LAST_SCHEMA_LINES = 2


@dataclass(frozen=True)
class ColumnGroup:
    """Columns of one family, counted and scored together: one block each, or one block if the family is joint.

    reasons: reason for the family of each column.
    open: True if later columns join the block.
    auxiliary: True if the columns are also in another group; this group is counted too, but scored only if tuning chose
        it.
    """

    family: Family
    columns: tuple[int, ...]
    reasons: tuple[Reason, ...] = field(compare=False)
    open: bool = field(default=False, compare=False)
    auxiliary: bool = False

    def subset(self, places: Sequence[int]) -> ColumnGroup:
        """Return the group with the columns at these places in it."""
        columns, reasons = tuple(self.columns[k] for k in places), tuple(self.reasons[k] for k in places)
        return replace(self, columns=columns, reasons=reasons)

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return 1 if self.family.joint else len(self.columns)

    @property
    def is_adjustable(self) -> bool:
        """True if tuning may cap and correct the evidence: not of words, and not if it must be monotone."""
        family = self.family
        return not (family.is_text or family.accepts_new_columns or family.monotone is not None)

    @property
    def inferred_columns(self) -> list[int]:
        """Columns whose family was not given by the user."""
        pairs = zip(self.columns, self.reasons, strict=True)
        return [column for column, reason in pairs if reason.source is not ChosenBy.GIVEN]


@dataclass(frozen=True, repr=False)
class Schema(PickledFields, Result):
    """Columns of a table, in groups of one family each.

    names: names of the columns; None if they have only positions.
    types: Arrow type of each column when first seen; later files are read with these types.
    looks_like: what each column looks like, if that differs from its family.
    """

    names: tuple[str, ...] | None
    width: int
    groups: tuple[ColumnGroup, ...]
    types: tuple[str, ...] | None = field(default=None, compare=False)
    looks_like: tuple[LooksLike | None, ...] | None = field(default=None, compare=False)

    @cached_property
    def columns_with_family(self) -> frozenset[str]:
        """Names of the columns that have a family."""
        names = self.names or ()
        return frozenset(names[column] for group in self.groups for column in group.columns if names)

    @cached_property
    def plain(self) -> Schema:
        """Schema of plain Bayes, without auxiliary groups: each column occurs once."""
        groups = tuple(group for group in self.groups if not group.auxiliary)
        return self if len(groups) == len(self.groups) else replace(self, groups=groups)

    def group_counting(self, group: ColumnGroup) -> tuple[int, Integers] | None:
        """Return the place of a group here with the counts that `group` needs, and a map of its columns.

        The map has, for each column of the group found, its place in `group` (-1: none). Returns None if no group has
        these counts.
        """
        for p, host in enumerate(self.groups):
            same = set(host.columns) == set(group.columns)
            if host.family.statistic_key == group.family.statistic_key and (
                same or (not group.family.joint and set(host.columns) > set(group.columns))
            ):
                place = {column: k for k, column in enumerate(group.columns)}
                return p, np.array([place.get(column, -1) for column in host.columns])
        return None

    def with_notes(self, notes: Mapping[str, str]) -> Schema:
        """Return the schema with notes on columns, by name, added to the reasons."""
        if not notes:
            return self

        def add_notes(group: ColumnGroup) -> ColumnGroup:
            names = map(self.column_name, group.columns)
            pairs = zip(group.reasons, names, strict=True)
            return replace(group, reasons=tuple(reason.with_note(notes.get(name, "")) for reason, name in pairs))

        return replace(self, groups=tuple(group if group.auxiliary else add_notes(group) for group in self.groups))

    def columns_like(self, kind: LooksLikeKind) -> dict[str, LooksLike]:
        """Return the columns that look like this kind, by name."""
        looks = enumerate(self.looks_like or ())
        return {self.column_name(column): meant for column, meant in looks if meant is not None and meant.kind == kind}

    def column_name(self, column: int) -> str:
        """Return the name of a column; x0, x1, … if columns have no names."""
        return self.names[column] if self.names is not None else f"x{column}"

    @cached_property
    def column_types(self) -> dict[str, str]:
        """Arrow type of each named column when it was learned."""
        return dict(zip(self.names or (), self.types or (), strict=False))

    @property
    def column_names(self) -> tuple[str, ...]:
        """Names of all columns, in order."""
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
        """Name of each block: its columns joined by +, with the family if that is ambiguous."""
        names = [self._name_block(self.groups[p], columns) for p, _, columns in self._block_columns]
        times = Counter(names)
        return _number_duplicates(
            name if times[name] == 1 else f"{name} as {self.groups[p].family}"
            for name, (p, _, _) in zip(names, self._block_columns, strict=True)
        )

    def _name_block(self, group: ColumnGroup, columns: tuple[int, ...]) -> str:
        """Return the names of the columns of a block, or the name of a part, such as month of day."""
        name = self._join_names(columns)
        return name if group.family.part is None else f"{group.family.part} of {name}"

    def _join_names(self, columns: tuple[int, ...]) -> str:
        """Return the names of the columns of a block, joined by +."""
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
        """For each group, place 0 for each of its blocks, so that evidence is summed over blocks."""
        return tuple(np.zeros_like(slot) for slot in self.block_slots)

    def group_of_block(self, block: int) -> tuple[int, int]:
        """Return the group of a block, and the place of the block in it."""
        group, place, _ = self._block_columns[block]
        return group, place

    def descriptions(self) -> list[tuple[str, str, str]]:
        """Return (column, family, reason) for each column, then for auxiliary blocks, which overlap columns."""
        return [
            (name, " + ".join(family for family, _ in blocks), "; ".join(reason for _, reason in blocks))
            for name, blocks in self._descriptions_of_blocks()
        ]

    def _descriptions_of_blocks(self) -> list[tuple[str, list[tuple[str, str]]]]:
        """Return (family, reason) of each block of each column, then of auxiliary blocks, which overlap columns."""
        found: dict[int, list[tuple[str, str]]] = {}
        overlapping = []
        for group in sorted(self.groups, key=lambda group: group.auxiliary):
            if group.auxiliary and group.family.joint and not found.keys().isdisjoint(group.columns):
                overlapping.append((self._join_names(group.columns), [(str(group.family), str(group.reasons[0]))]))
                continue
            for column, reason in zip(group.columns, group.reasons, strict=True):
                found.setdefault(column, []).append((self._family(group, column), str(reason)))
        undecided = [("undecided", "no values yet")]
        columns = [(self.column_name(column), found.get(column, undecided)) for column in range(self.width)]
        names = _number_duplicates(name for name, _ in overlapping)
        return [*columns, *((name, blocks) for name, (_, blocks) in zip(names, overlapping, strict=True))]

    def _family(self, group: ColumnGroup, column: int) -> str:
        """Return the family of a column, and the other columns of its block."""
        if not group.family.joint or len(group.columns) == 1:
            return str(group.family)
        if len(group.columns) > 4:
            return f"{group.family} with {len(group.columns) - 1} others"
        others = [other for other in group.columns if other != column]
        return f"{group.family} with {', '.join(map(self.column_name, others))}"

    def lines_by_column(self) -> list[list[tuple[str, str, str]]]:
        """Return, for each column and then each auxiliary block, a line (column, family, reason) per block."""
        return [
            [
                (name if k == 0 else "", family if k == 0 else f"+ {family}", why)
                for k, (family, why) in enumerate(blocks)
            ]
            for name, blocks in self._descriptions_of_blocks()
        ]

    def _parts(self) -> list[Part]:
        lines = [line for column in self.lines_by_column() for line in column]
        if (more := len(lines) + 1 - SCHEMA_LINES) > 0:
            lines = [
                *lines[: SCHEMA_LINES - LAST_SCHEMA_LINES - 2],
                ("…", f"({more} more)", ""),
                *lines[-LAST_SCHEMA_LINES:],
            ]
        return [TextTable(lines, DESCRIPTION)]

    def _columns(self) -> dict[str, Any]:
        """Return `column`, `family` and `why`, with a line per column."""
        lines = self.descriptions()
        return {name: [line[k] for line in lines] for k, name in enumerate(DESCRIPTION)}

    def to_dict(self) -> dict[str, dict[str, str]]:
        """Return family and reason by column, as plain values."""
        return {column: {"family": family, "why": why} for column, family, why in self.descriptions()}

    def table_as_learned(self, table: Table, first_row: int = 0) -> Table:
        """Return `table` with the columns of this schema, in its order and with the learned types.

        first_row: number of the first row, for errors.
        """
        if isinstance(table, Frame) and table.rows and table.has_no_cells and NO_COLUMN not in (self.names or ()):
            missing = pa.table([pa.nulls(table.rows)] * self.width, names=list(self.column_names))
            table = Frame(missing, self.names is not None)
        elif self.names is None or not isinstance(table, Frame) or not table.named:
            if table.width != self.width:
                raise SchemaError(
                    f"X has {table.width} features, but BayesClassifier is expecting {self.width} features as input",
                    remedy="pass the columns the model was fitted on",
                )
        elif table.names != self.names:
            if not set(self.names) & set(table.names or ()):
                raise SchemaError(
                    f"the table has none of the model's columns ({list_names(self.names, 6)})",
                    remedy=f"its columns are {list_names(table.names or (), 6)}",
                )
            table = table.select(self.names)
        return self.cells_as_learned(table, first_row)

    def cells_as_learned(self, table: Table, first_row: int = 0) -> Table:
        """Convert the columns known to this schema to the learned types; keep all other columns.

        Raises a DataError that names the cell if a cell cannot be converted.
        """
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


def _number_duplicates(names: Iterable[str]) -> tuple[str, ...]:
    """Append a number to names that occur more than once."""
    given = tuple(names)
    times, met = Counter(given), Counter[str]()
    found = []
    for name in given:
        met[name] += 1
        found.append(name if times[name] == 1 else f"{name} ({met[name]})")
    return tuple(found)


def union_schemas(one: Schema, other: Schema) -> Schema:
    """Merge two schemas, columns of `one` first; raise a SchemaError if they disagree about a column."""
    if one == other:
        return one
    _refuse_other_shape(one, other)
    mine, theirs = _keys(one), _keys(other)
    place: dict[Any, int] = {key: k for k, key in enumerate(dict.fromkeys([*mine, *theirs]))}
    groups = list(one.plain.groups)
    for group in _move_groups(other.plain.groups, theirs, place):
        groups = _with_group(groups, group, list(place))
    ours, more = _move_groups(one.groups, mine, place), _move_groups(other.groups, theirs, place)
    kept = _common_auxiliary(ours, more)
    groups += kept + [group for group in _common_auxiliary(more, ours) if group not in kept]
    types = _merge_facts(place, NO_TYPE, (mine, one.types), (theirs, other.types))
    looks = _merge_facts(place, None, (mine, one.looks_like), (theirs, other.looks_like))
    return Schema(tuple(place) if one.names is not None else None, len(place), tuple(groups), types, looks)


def _refuse_other_shape(one: Schema, other: Schema) -> None:
    """Raise a SchemaError if columns cannot be matched, by name or by position."""
    if (one.names is None) != (other.names is None) or (one.names is None and one.width != other.width):
        raise SchemaError(
            f"cannot merge the tables: {one.width} and {other.width} columns, "
            f"{'with' if one.names else 'without'} and {'with' if other.names else 'without'} names"
        )


def _keys(schema: Schema) -> list[Any]:
    """Return the keys of the columns: names, or else positions."""
    return list(schema.names) if schema.names is not None else list(range(schema.width))


def _move_groups(groups: Iterable[ColumnGroup], keys: list[Any], place: dict[Any, int]) -> list[ColumnGroup]:
    """Return the groups with the positions of their columns in the union."""
    return [replace(group, columns=tuple(place[keys[column]] for column in group.columns)) for group in groups]


def _merge_facts(
    keys: Iterable[Any], unknown: Fact, *known: tuple[list[Any], tuple[Fact, ...] | None]
) -> tuple[Fact, ...] | None:
    """Return a fact per column, from the first schema that has one; None if neither schema has any."""
    if all(facts is None for _, facts in known):
        return None
    found = dict.fromkeys(keys, unknown)
    for columns, facts in reversed(known):
        found.update((key, fact) for key, fact in zip(columns, facts or (), strict=False) if fact != unknown)
    return tuple(found.values())


def _with_group(groups: list[ColumnGroup], group: ColumnGroup, names: list[Any]) -> list[ColumnGroup]:
    """Add the columns of a group of the other schema that are not in `groups` yet."""
    columns = set(group.columns)
    hosts = [host for host in groups if not columns.isdisjoint(host.columns)]
    _refuse_other_families(hosts, group, names)
    known = {column for host in hosts for column in host.columns}
    if group.family.joint and hosts:
        _refuse_other_blocks(hosts, group, known, names)
    new = [k for k, column in enumerate(group.columns) if column not in known]
    if not new:
        return groups
    added = group.subset(new)
    joint_host = hosts[0] if group.family.joint and hosts else None
    host = joint_host or next((host for host in groups if _may_join(group, host)), None)
    if host is None:
        return [*groups, added]
    grown = replace(host, columns=host.columns + added.columns, reasons=host.reasons + added.reasons)
    return [grown if one is host else one for one in groups]


def _may_join(group: ColumnGroup, host: ColumnGroup) -> bool:
    """Return True if new columns of a group can be added to another group."""
    if group.family.joint:
        return group.open and host.open and host.family.statistic_key == group.family.statistic_key
    return host.family == group.family


def _refuse_other_families(hosts: Sequence[ColumnGroup], group: ColumnGroup, names: list[Any]) -> None:
    for host in hosts:
        if host.family.statistic_key != group.family.statistic_key:
            column = next(column for column in group.columns if column in host.columns)
            raise SchemaError(
                f"column {names[column]!r} is {host.family} in one table and {group.family} in the other",
                remedy=("fit both with the same ", Argument("families")),
            )


def _refuse_other_blocks(hosts: Sequence[ColumnGroup], group: ColumnGroup, known: set[int], names: list[Any]) -> None:
    grows = group.open and hosts[0].open
    if len(hosts) > 1 or not (grows or known == set(group.columns)):
        shown = ", ".join(repr(names[column]) for column in group.columns[:6])
        raise SchemaError(
            f"the columns {shown} form one block in one table but not in the other",
            remedy=("use the same ", Argument("families")),
        )


def _common_auxiliary(mine: list[ColumnGroup], theirs: list[ColumnGroup]) -> list[ColumnGroup]:
    """Return the auxiliary groups of one schema that the other has counted too.

    A column unknown to the other schema counts as missing there.
    """
    known = {column for group in theirs for column in group.columns}
    kept = []
    for group in mine:
        if not group.auxiliary:
            continue
        alike = [set(p.columns) for p in theirs if p.auxiliary and p.family.statistic_key == group.family.statistic_key]
        if group.family.joint:
            whole = set(group.columns) in alike or not known.issuperset(group.columns)
            held = list(range(len(group.columns))) if whole else []
        else:
            counted = set[int]().union(*alike)
            held = [k for k, column in enumerate(group.columns) if column in counted or column not in known]
        if held:
            kept.append(group.subset(held))
    return kept
