"""The schema of two tables together."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from deciban.errors import Argument, SchemaError
from deciban.schema.schema import NO_TYPE, ColumnGroup, Schema

Fact = TypeVar("Fact")


def union_schemas(one: Schema, other: Schema) -> Schema:
    """The columns of both, those of `one` first; a SchemaError where the two disagree about a column."""
    if one == other:
        return one
    _refuse_other_shape(one, other)
    mine, theirs = _keys(one), _keys(other)
    place: dict[Any, int] = {key: k for k, key in enumerate(dict.fromkeys([*mine, *theirs]))}
    groups = list(one.plain.groups)
    for group in _moved(other.plain.groups, theirs, place):
        groups = _with_group(groups, group, list(place))
    ours, more = _moved(one.groups, mine, place), _moved(other.groups, theirs, place)
    kept = _counted_by_both(ours, more)
    groups += kept + [group for group in _counted_by_both(more, ours) if group not in kept]
    types = _known_of_either(place, NO_TYPE, (mine, one.types), (theirs, other.types))
    looks = _known_of_either(place, None, (mine, one.looks_like), (theirs, other.looks_like))
    return Schema(tuple(place) if one.names is not None else None, len(place), tuple(groups), types, looks)


def _refuse_other_shape(one: Schema, other: Schema) -> None:
    """A SchemaError where nothing shows which columns of two tables are the same."""
    if (one.names is None) != (other.names is None) or (one.names is None and one.width != other.width):
        raise SchemaError(
            f"the tables do not fit together: {one.width} and {other.width} columns, "
            f"{'with' if one.names else 'without'} and {'with' if other.names else 'without'} names"
        )


def _keys(schema: Schema) -> list[Any]:
    """What tells the columns of a schema from others: their names, or else their positions."""
    return list(schema.names) if schema.names is not None else list(range(schema.width))


def _moved(groups: Iterable[ColumnGroup], keys: list[Any], place: dict[Any, int]) -> list[ColumnGroup]:
    """The groups with the places that their columns have in the union."""
    return [replace(group, columns=tuple(place[keys[column]] for column in group.columns)) for group in groups]


def _known_of_either(
    keys: Iterable[Any], unknown: Fact, *known: tuple[list[Any], tuple[Fact, ...] | None]
) -> tuple[Fact, ...] | None:
    """What is known of each column, by the first of the schemas that knows something of it; None if neither does."""
    if all(facts is None for _, facts in known):
        return None
    found = dict.fromkeys(keys, unknown)
    for columns, facts in reversed(known):
        found.update((key, fact) for key, fact in zip(columns, facts or (), strict=False) if fact != unknown)
    return tuple(found.values())


def _with_group(groups: list[ColumnGroup], group: ColumnGroup, names: list[Any]) -> list[ColumnGroup]:
    """`groups`, and the columns of a group of the other schema that they do not have yet."""
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
    """Whether the columns of a group go with those of another one, of which they are none."""
    if group.family.joint:
        return group.open and host.open and host.family.counts == group.family.counts
    return host.family == group.family


def _refuse_other_families(hosts: Sequence[ColumnGroup], group: ColumnGroup, names: list[Any]) -> None:
    for host in hosts:
        if host.family.counts != group.family.counts:
            column = next(column for column in group.columns if column in host.columns)
            raise SchemaError(
                f"column {names[column]!r} is {host.family} in one and {group.family} in the other",
                remedy=("fit both with the same ", Argument("columns")),
            )


def _refuse_other_blocks(hosts: Sequence[ColumnGroup], group: ColumnGroup, known: set[int], names: list[Any]) -> None:
    grows = group.open and hosts[0].open
    if len(hosts) > 1 or not (grows or known == set(group.columns)):
        shown = ", ".join(repr(names[column]) for column in group.columns[:6])
        raise SchemaError(
            f"the columns {shown} form one block in one and not in the other",
            remedy=("use the same ", Argument("columns")),
        )


def _counted_by_both(mine: list[ColumnGroup], theirs: list[ColumnGroup]) -> list[ColumnGroup]:
    """The auxiliary groups of one schema, as far as the other has counted them too: a column that the other does not
    know counts as missing there."""
    known = {column for group in theirs for column in group.columns}
    kept = []
    for group in mine:
        if not group.auxiliary:
            continue
        alike = [set(p.columns) for p in theirs if p.auxiliary and p.family.counts == group.family.counts]
        if group.family.joint:
            whole = set(group.columns) in alike or not known.issuperset(group.columns)
            held = list(range(len(group.columns))) if whole else []
        else:
            counted = set[int]().union(*alike)
            held = [k for k, column in enumerate(group.columns) if column in counted or column not in known]
        if held:
            kept.append(group.subset(held))
    return kept
