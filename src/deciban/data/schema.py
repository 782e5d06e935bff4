"""What each column is: its family, and why."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deciban.arrays import Integers
from deciban.data.tables import DATE_ORIGIN, TIME_ORIGIN, Frame, Matrix, Table
from deciban.errors import SchemaError, UsageError
from deciban.families import Bernoulli, Categorical, Family, Gaussian, Multinomial
from deciban.families.base import Unseen

# Whole numbers with no more distinct values than this (and each about twice) are taken for codes of categories.
MOST_CODES = 10

ColumnSpec = Mapping[Any, Family] | Family | None


@dataclass(frozen=True)
class Defaults:
    """What inferred discrete families are given."""

    alpha: float = 1.0
    unseen: Unseen = "ignore"


@dataclass(frozen=True)
class Part:
    """Columns of one family that are counted and scored together: a block each, or one block if the family is joint."""

    family: Family
    columns: tuple[int, ...]
    why: tuple[str, ...] = field(compare=False)
    open: bool = field(default=False, compare=False)  # whether columns that turn up later join the block

    @property
    def blocks(self) -> int:
        return 1 if self.family.joint else len(self.columns)


@dataclass(frozen=True)
class Schema:
    """The columns of a table in parts. `names` is None where columns have only positions."""

    names: tuple[str, ...] | None
    width: int
    parts: tuple[Part, ...]

    def column_name(self, column: int) -> str:
        return self.names[column] if self.names is not None else f"x{column}"

    @cached_property
    def _block_columns(self) -> list[tuple[int, int, tuple[int, ...]]]:
        """(part, block within the part, columns) of each block, in the order of their first columns."""
        blocks = []
        for p, part in enumerate(self.parts):
            members = [part.columns] if part.family.joint else [(column,) for column in part.columns]
            blocks += [(p, b, columns) for b, columns in enumerate(members)]
        return sorted(blocks, key=lambda block: block[2][:1])

    @cached_property
    def block_names(self) -> tuple[str, ...]:
        """The name of each block: that of its column, or those of its columns joined."""
        return tuple(self._joined(columns) for _, _, columns in self._block_columns)

    def _joined(self, columns: tuple[int, ...]) -> str:
        if len(columns) > 6:
            first, second, last = (self.column_name(column) for column in (*columns[:2], columns[-1]))
            return f"{first}+{second}+…+{last}"
        return "+".join(self.column_name(column) for column in columns)

    @cached_property
    def slots(self) -> tuple[Integers, ...]:
        """For each part, the place of each of its blocks among all blocks."""
        places = [np.zeros(part.blocks, dtype=np.int64) for part in self.parts]
        for place, (p, b, _) in enumerate(self._block_columns):
            places[p][b] = place
        return tuple(places)

    @cached_property
    def together(self) -> tuple[Integers, ...]:
        """Slots that send every block to one place."""
        return tuple(np.zeros_like(slot) for slot in self.slots)

    def locate(self, block: int) -> tuple[int, int]:
        """The part of a block, and its place within that part."""
        part, place, _ = self._block_columns[block]
        return part, place

    def rows(self) -> list[tuple[str, str, str]]:
        """(column, family, why) in the order of the columns."""
        found = {
            column: (self.column_name(column), self._family(part, column), part.why[k])
            for part in self.parts
            for k, column in enumerate(part.columns)
        }
        undecided = ("undecided", "no cell is filled yet")
        return [found.get(column, (self.column_name(column), *undecided)) for column in range(self.width)]

    def _family(self, part: Part, column: int) -> str:
        """The family of a column, and the columns that form a block with it."""
        if not part.family.joint or len(part.columns) == 1:
            return str(part.family)
        if len(part.columns) > 4:
            return f"{part.family} with {len(part.columns) - 1} others"
        return f"{part.family} with {', '.join(self.column_name(other) for other in part.columns if other != column)}"

    def __str__(self) -> str:
        lines = [("column", "family", "why"), *self.rows()]
        if len(lines) > 61:
            lines = [*lines[:58], ("…", f"({len(lines) - 61} more)", ""), *lines[-2:]]
        widths = [max(len(line[k]) for line in lines) for k in range(2)]
        return "\n".join(f"{a:{widths[0]}}  {b:{widths[1]}}  {why}".rstrip() for a, b, why in lines)

    def fitting(self, table: Table) -> Table:
        """`table` with the columns of this schema in their order; a SchemaError where that cannot be."""
        if self.names is None or not isinstance(table, Frame) or not table.named:
            if table.width != self.width:
                raise SchemaError(
                    f"X has {table.width} features, but BayesClassifier is expecting {self.width} features as input; "
                    f"give the columns the model was fitted on"
                )
            return table
        if table.names == self.names:
            return table
        if not set(self.names) & set(table.names or ()):
            raise SchemaError(
                f"none of the model's columns is in the table: it has {_listed(table.names or ())}, "
                f"the model knows {_listed(self.names)}"
            )
        return table.select(self.names)

    def extended(self, table: Table, spec: ColumnSpec, defaults: Defaults) -> "Schema":
        """This schema and, behind it, the columns of `table` that it does not know yet."""
        if self.names is None or table.names is None:
            return self
        known = {self.names[column] for part in self.parts for column in part.columns}
        new = [name for name in table.names if name not in known]
        if not new or not isinstance(table, Frame):
            return self
        return self.union(settle(table.select(new), spec, defaults, partly=True))

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
        parts = list(self.parts)
        for part in other.parts:
            _join(parts, part, tuple(place[theirs[column]] for column in part.columns), list(place))
        return Schema(tuple(place) if self.names is not None else None, len(place), tuple(parts))


def _join(parts: list[Part], part: Part, columns: tuple[int, ...], names: list[Any]) -> None:
    """Bring a part of another schema, at these columns of the union, into `parts`."""
    hosts = [k for k, host in enumerate(parts) if not set(columns).isdisjoint(host.columns)]
    for host in (parts[k] for k in hosts):
        if host.family.counts != part.family.counts:
            column = next(column for column in columns if column in host.columns)
            raise SchemaError(
                f"column {names[column]!r} is {host.family} in one and {part.family} in the other; "
                f"fit both with the same columns="
            )
    known = {column for k in hosts for column in parts[k].columns}
    if part.family.joint and hosts:
        grows = part.open and parts[hosts[0]].open
        if len(hosts) > 1 or not (grows or known == set(columns)):
            shown = ", ".join(repr(names[column]) for column in columns[:6])
            raise SchemaError(f"the columns {shown} form one block in one and not in the other; use the same columns=")
    new = [k for k, column in enumerate(columns) if column not in known]
    if not new:
        return
    added, why = tuple(columns[k] for k in new), tuple(part.why[k] for k in new)
    for k, host in enumerate(parts):
        if part.family.joint:
            same = k in hosts or (part.open and host.open and host.family.counts == part.family.counts)
        else:
            same = host.family == part.family
        if same:
            parts[k] = Part(host.family, host.columns + added, host.why + why, host.open)
            return
    parts.append(Part(part.family, added, why, part.open))


def _members(key: Any) -> tuple[Any, ...]:
    return key if isinstance(key, tuple) else (key,)


def _listed(names: Iterable[str]) -> str:
    shown = [repr(name) for name in names]
    return ", ".join(shown[:12] + ([f"… ({len(shown)} in all)"] if len(shown) > 12 else []))


def settle(table: Table, spec: ColumnSpec, defaults: Defaults, partly: bool = False) -> Schema:
    """The schema of a table: what the user says of its columns, and for the others what their cells say.

    `partly`: the user may also speak of columns that are not there (yet).
    """
    names = table.names
    given = _given(table, spec, partly)
    taken = {column for columns, _ in given for column in columns}
    groups: dict[Any, tuple[Family, list[int], list[str]]] = {}
    for k, (columns, family) in enumerate(given):
        key = (k, family) if family.joint else family
        _, members, whys = groups.setdefault(key, (family, [], []))
        members += columns
        whys += ["given"] * len(columns)
    for columns, family, why in _inferred(table, [c for c in range(table.width) if c not in taken], defaults):
        _, members, whys = groups.setdefault(family, (family, [], []))
        members += columns
        whys += [why] * len(columns)
    parts = []
    for family, members, whys in groups.values():
        order = np.argsort(members, kind="stable")
        alone = family.absorbs and not isinstance(spec, Mapping)
        parts.append(Part(family, tuple(members[k] for k in order), tuple(whys[k] for k in order), alone))
    return Schema(names, table.width, tuple(parts))


def _given(table: Table, spec: ColumnSpec, partly: bool) -> list[tuple[list[int], Family]]:
    """The columns the user speaks of, as positions, with their families."""
    if spec is None:
        return []
    if not isinstance(spec, Mapping):
        _check_family(spec, "columns=")
        return [(list(range(table.width)), spec)]
    names = table.names if table.names is not None else tuple(f"x{j}" for j in range(table.width))
    place: dict[Any, int] = {name: j for j, name in enumerate(names)}
    if table.names is None:
        place.update({j: j for j in range(table.width)})
    given, seen = [], set()
    for key, family in spec.items():
        _check_family(family, f"columns[{key!r}]")
        columns = []
        members = [member if member in place else str(member) for member in _members(key)]
        there = [member in place for member in members]
        if partly and not any(there):
            continue
        if partly and not all(there):
            raise UsageError(f"columns= names the block {key!r}, of which only a part is in the table; give it whole")
        for member in members:
            if member not in place:
                raise UsageError(
                    f"columns= names {member!r}, which is not in the table; it has {_listed(names)} "
                    f"(columns that come later are for partial_fit)"
                )
            if place[member] in seen:
                raise UsageError(f"columns= names {member!r} twice; a column belongs to one block")
            seen.add(place[member])
            columns.append(place[member])
        given.append((columns, family))
    return given


def _check_family(family: Any, place: str) -> None:
    if isinstance(family, type):
        raise UsageError(f"{place} is the class {family.__name__}; give an instance: {family.__name__}()")
    if not all(hasattr(family, verb) for verb in ("read", "count", "estimate", "joint")):
        raise UsageError(f"{place} is {family!r}; give a family such as Gaussian() or Categorical()")


def _inferred(table: Table, columns: list[int], defaults: Defaults) -> list[tuple[list[int], Family, str]]:
    """The families of columns nobody spoke of, and why."""
    if not columns:
        return []
    if isinstance(table, Matrix):
        kind = table.array.dtype.kind
        if kind == "f":
            return [(columns, Gaussian(), "floating point")]
        if kind == "b":
            return [(columns, Bernoulli(defaults.alpha), "true or false")]
        return [([j], *_of_integers(np.asarray(table.array[:, j]), defaults)) for j in columns]
    if isinstance(table, Frame):
        found = [([j], _of_arrow(table.values([j])[0], defaults)) for j in columns]
        return [(column, *what) for column, what in found if what is not None]
    return [(columns, Multinomial(defaults.alpha), "sparse counts")]


def _of_integers(cells: np.ndarray, defaults: Defaults) -> tuple[Family, str]:
    values = np.unique(cells)
    if values.size <= min(MOST_CODES, cells.size // 2):
        return Categorical(
            defaults.alpha, unseen=defaults.unseen
        ), f"{values.size} distinct integers in {cells.size} rows"
    return Gaussian(), f"{values.size} distinct integers in {cells.size} rows"


def _of_arrow(array: pa.Array, defaults: Defaults) -> tuple[Family, str] | None:
    """The family of a column, and why; None as long as no cell says what it is."""
    kind = array.type
    if array.null_count == len(array) and not pa.types.is_floating(kind):
        return None
    categorical = Categorical(defaults.alpha, unseen=defaults.unseen)
    if pa.types.is_dictionary(kind):
        return categorical, "categories"
    if pa.types.is_boolean(kind):
        return Bernoulli(defaults.alpha), "true or false"
    if pa.types.is_integer(kind):
        return _of_integers(array.drop_null().to_numpy(zero_copy_only=False), defaults)
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return Gaussian(), "floating point" if pa.types.is_floating(kind) else "decimal numbers"
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return Gaussian(), f"dates, as {DATE_ORIGIN}"
    if pa.types.is_time(kind):
        return Gaussian(), f"times, as {TIME_ORIGIN}"
    if pa.types.is_duration(kind):
        return Gaussian(), "durations, in seconds"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        distinct = pc.count_distinct(array.cast(pa.string())).as_py()
        return categorical, f"text, {distinct} distinct in {len(array)} rows"
    return categorical, str(kind)
