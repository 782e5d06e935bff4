"""What each column is: its family, and why."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Literal, TypeVar

import numpy as np
import pyarrow as pa

from deciban.arrays import Integers
from deciban.errors import BadCell, SchemaError
from deciban.families import Family
from deciban.tables.learned_types import as_learned, fits
from deciban.tables.table import Frame, Table
from deciban.text_tables import aligned, listed

T = TypeVar("T", bound=str)

# Why a column has its family, where the user said so.
GIVEN = "given"

# What a column may be meant as, though its family takes it for something else: "" nothing, "identifier" a name or
# number of each row, "numbers" numbers written as text, "thousands" such with signs between thousands, "units" with a
# unit, "dates" dates in another form than ISO's.
LooksLike = Literal["", "identifier", "numbers", "thousands", "units", "dates"]

# A field that came after the first model files: it is not written where it has its default, as in those.
ADDED_LATER = {"later": True}

# The type of a column that has no cells yet.
NO_TYPE = "null"


@dataclass(frozen=True)
class ColumnGroup:
    """Columns of one family that are counted and scored together: a block each, or one block if the family is joint."""

    family: Family
    columns: tuple[int, ...]
    why: tuple[str, ...] = field(compare=False)
    open: bool = field(default=False, compare=False)  # whether columns that turn up later join the block
    auxiliary: bool = False  # counted beside the part that has the column, and heard only where tuning chose it

    def subset(self, places: Sequence[int]) -> "ColumnGroup":
        """The part with some of its columns."""
        return replace(self, columns=tuple(self.columns[k] for k in places), why=tuple(self.why[k] for k in places))

    @property
    def blocks(self) -> int:
        return 1 if self.family.joint else len(self.columns)


@dataclass(frozen=True)
class Schema:
    """The columns of a table in parts. `names` is None where columns have only positions.

    types: the Arrow type that each column was first seen with, where it had one; so are files read later.
    looks_like: what each column may be meant as, where that was looked at.
    """

    names: tuple[str, ...] | None
    width: int
    groups: tuple[ColumnGroup, ...]
    types: tuple[str, ...] | None = field(default=None, compare=False)
    looks_like: tuple[LooksLike, ...] | None = field(default=None, compare=False, metadata=ADDED_LATER)

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
        """The parts of plain Bayes, which have each column once."""
        groups = tuple(group for group in self.groups if not group.auxiliary)
        return self if len(groups) == len(self.groups) else replace(self, groups=groups)

    def find(self, group: ColumnGroup) -> tuple[int, Integers] | None:
        """The part of this schema that counts what `group` needs, and where it has each of its columns: -1 nowhere."""
        for p, host in enumerate(self.groups):
            same = set(host.columns) == set(group.columns)
            if host.family.counts == group.family.counts and (
                same or (not group.family.joint and set(host.columns) > set(group.columns))
            ):
                place = {column: k for k, column in enumerate(group.columns)}
                return p, np.array([place.get(column, -1) for column in host.columns])
        return None

    def with_notes(self, notes: Mapping[str, str]) -> "Schema":
        """The same with more to say of some columns, by their names."""
        if not notes:
            return self

        def said(group: ColumnGroup) -> ColumnGroup:
            if group.auxiliary:
                return group
            more = [notes.get(self.column_name(column), "") for column in group.columns]
            return replace(group, why=tuple(f"{a}, {b}" if b else a for a, b in zip(group.why, more, strict=True)))

        return replace(self, groups=tuple(map(said, self.groups)))

    def columns_like(self, what: LooksLike) -> list[str]:
        """The names of the columns that may be meant as this."""
        return [self.column_name(column) for column, looks in enumerate(self.looks_like or ()) if looks == what]

    def column_name(self, column: int) -> str:
        return self.names[column] if self.names is not None else f"x{column}"

    @cached_property
    def _block_columns(self) -> list[tuple[int, int, tuple[int, ...]]]:
        """(part, block within the part, columns) of each block, in the order of their first columns."""
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
        if len(columns) > 6:
            first, second, last = (self.column_name(column) for column in (*columns[:2], columns[-1]))
            return f"{first}+{second}+…+{last}"
        return "+".join(self.column_name(column) for column in columns)

    @cached_property
    def slots(self) -> tuple[Integers, ...]:
        """For each part, the place of each of its blocks among all blocks."""
        places = [np.zeros(group.blocks, dtype=np.int64) for group in self.groups]
        for place, (p, b, _) in enumerate(self._block_columns):
            places[p][b] = place
        return tuple(places)

    @cached_property
    def together(self) -> tuple[Integers, ...]:
        """Slots that send every block to one place."""
        return tuple(np.zeros_like(slot) for slot in self.slots)

    def locate(self, block: int) -> tuple[int, int]:
        """The part of a block, and its place within that part."""
        group, place, _ = self._block_columns[block]
        return group, place

    def rows(self) -> list[tuple[str, str, str]]:
        """(column, family, why) in the order of the columns; then the blocks that overlap them."""
        found: dict[int, tuple[str, str, str]] = {}
        more = []
        for group in sorted(self.groups, key=lambda group: group.auxiliary):
            if group.auxiliary and group.family.joint and not found.keys().isdisjoint(group.columns):
                more.append((self._joined(group.columns), str(group.family), group.why[0]))
                continue
            for k, column in enumerate(group.columns):
                found[column] = (self.column_name(column), self._family(group, column), group.why[k])
        undecided = ("undecided", "no cell is filled yet")
        auxiliary = _numbered(name for name, _, _ in more)
        return [found.get(column, (self.column_name(column), *undecided)) for column in range(self.width)] + [
            (name, family, why) for name, (_, family, why) in zip(auxiliary, more, strict=True)
        ]

    def _family(self, group: ColumnGroup, column: int) -> str:
        """The family of a column, and the columns that form a block with it."""
        if not group.family.joint or len(group.columns) == 1:
            return str(group.family)
        if len(group.columns) > 4:
            return f"{group.family} with {len(group.columns) - 1} others"
        return f"{group.family} with {', '.join(self.column_name(other) for other in group.columns if other != column)}"

    def __str__(self) -> str:
        lines = [("column", "family", "why"), *self.rows()]
        if len(lines) > 61:
            lines = [*lines[:58], ("…", f"({len(lines) - 61} more)", ""), *lines[-2:]]
        return aligned(lines)

    def align(self, table: Table, first_row: int = 0) -> Table:
        """`table` with the columns of this schema in their order and of its types; an error where that cannot be."""
        if self.names is None or not isinstance(table, Frame) or not table.named:
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
        return self.as_learned_types(table, first_row)

    def as_learned_types(self, table: Table, first_row: int = 0) -> Table:
        """`table` with those of its columns that this schema knows as they were learned; a DataError where one holds
        something else."""
        if not isinstance(table, Frame) or self.types is None:
            return table
        if table.names is not None and table.names != self.names:
            known = dict(zip(self.names or (), self.types, strict=False))
            learned = [known.get(name, NO_TYPE) for name in table.names]
        else:
            learned = list(self.types)
        if all(map(fits, table.types, learned)):
            return table
        columns = []
        for column, name, here, before in zip(
            table.table.columns, table.table.column_names, table.types, learned, strict=True
        ):
            try:
                columns.append(column if fits(here, before) else as_learned(column, here, before))
            except BadCell as bad:
                raise bad.as_error(name, first_row) from None
        return Frame(pa.table(columns, names=table.table.column_names), table.named)

    def union(self, other: "Schema") -> "Schema":
        """The columns of both; a SchemaError where the two disagree about a column."""
        if self == other:
            return self
        if (self.names is None) != (other.names is None) or (self.names is None and self.width != other.width):
            raise SchemaError(
                f"the tables do not fit together: {self.width} and {other.width} columns, "
                f"{'with' if self.names else 'without'} and {'with' if other.names else 'without'} names"
            )
        names = list(self.names) if self.names is not None else list(range(self.width))
        theirs = list(other.names) if other.names is not None else list(range(other.width))
        place: dict[Any, int] = {name: k for k, name in enumerate(names)}
        for name in theirs:
            place.setdefault(name, len(place))
        groups = list(self.plain.groups)
        for group in other.plain.groups:
            _join(groups, group, tuple(place[theirs[column]] for column in group.columns), list(place))
        mine, more = (
            [replace(group, columns=tuple(place[known[column]] for column in group.columns)) for group in schema.groups]
            for schema, known in ((self, names), (other, theirs))
        )
        groups += _counted_by_both(mine, more) + [group for group in _counted_by_both(more, mine) if group not in mine]
        types = _of_both(list(place), NO_TYPE, (names, self.types), (theirs, other.types))
        looks = _of_both(list(place), "", (names, self.looks_like), (theirs, other.looks_like))
        return Schema(tuple(place) if self.names is not None else None, len(place), tuple(groups), types, looks)


def _numbered(names: Iterable[str]) -> tuple[str, ...]:
    """Names no two of which are alike: those that are get numbers."""
    given = tuple(names)
    times, met = Counter(given), Counter[str]()
    found = []
    for name in given:
        met[name] += 1
        found.append(name if times[name] == 1 else f"{name} ({met[name]})")
    return tuple(found)


def _of_both(names: list[Any], unknown: T, *known: tuple[list[Any], tuple[T, ...] | None]) -> tuple[T, ...] | None:
    """What is known of each column in the first of the schemas that knows something of it."""
    if all(facts is None for _, facts in known):
        return None
    found = dict.fromkeys(names, unknown)
    for columns, facts in reversed(known):
        found.update((name, fact) for name, fact in zip(columns, facts or (), strict=False) if fact != unknown)
    return tuple(found.values())


def _join(groups: list[ColumnGroup], group: ColumnGroup, columns: tuple[int, ...], names: list[Any]) -> None:
    """Bring a part of another schema, at these columns of the union, into `groups`."""
    hosts = [k for k, host in enumerate(groups) if not set(columns).isdisjoint(host.columns)]
    for host in (groups[k] for k in hosts):
        if host.family.counts != group.family.counts:
            column = next(column for column in columns if column in host.columns)
            raise SchemaError(
                f"column {names[column]!r} is {host.family} in one and {group.family} in the other; "
                f"fit both with the same columns="
            )
    known = {column for k in hosts for column in groups[k].columns}
    if group.family.joint and hosts:
        grows = group.open and groups[hosts[0]].open
        if len(hosts) > 1 or not (grows or known == set(columns)):
            shown = ", ".join(repr(names[column]) for column in columns[:6])
            raise SchemaError(f"the columns {shown} form one block in one and not in the other; use the same columns=")
    new = [k for k, column in enumerate(columns) if column not in known]
    if not new:
        return
    added, why = tuple(columns[k] for k in new), tuple(group.why[k] for k in new)
    for k, host in enumerate(groups):
        if group.family.joint:
            same = k in hosts or (group.open and host.open and host.family.counts == group.family.counts)
        else:
            same = host.family == group.family
        if same:
            groups[k] = ColumnGroup(host.family, host.columns + added, host.why + why, host.open)
            return
    groups.append(ColumnGroup(group.family, added, why, group.open))


def _counted_by_both(mine: list[ColumnGroup], theirs: list[ColumnGroup]) -> list[ColumnGroup]:
    """The parts beside of one schema that another has counted too; a column it does not know is counted as missing."""
    known = {column for group in theirs for column in group.columns}
    kept = []
    for group in mine:
        alike = {c for p in theirs if p.auxiliary and p.family.counts == group.family.counts for c in p.columns}
        held = [k for k, column in enumerate(group.columns) if column in alike or column not in known]
        if group.auxiliary and group.family.joint:
            same = any(
                p.auxiliary and p.family.counts == group.family.counts and set(p.columns) == set(group.columns)
                for p in theirs
            )
            held = list(range(len(group.columns))) if same or not known.issuperset(group.columns) else []
        if group.auxiliary and held:
            kept.append(group.subset(held))
    return kept
