"""What is looked up by places, and which rows are refused, as nodes of an ONNX graph."""

from collections import defaultdict
from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import Any, cast

import numpy as np

from deciban.export.onnx.cells import Cells
from deciban.export.onnx.places import Places
from deciban.export.onnx.tensors import Tensor
from deciban.families.base.lowering import CutPlace, LookupTerm, Refusal, TuplePlace
from deciban.util.arrays import Floats


def weighted_sums(amounts: Tensor, slope: Floats) -> Tensor:
    """The sum of amount times slope over the columns, row by class; 0 adds nothing, even where the slope is -inf.

    amounts: at least 0, row by column. slope: column by class.
    """
    never = np.isneginf(slope)
    total = amounts @ np.where(never, 0.0, slope)
    if not never.any():
        return total
    hits = (amounts > 0.0).cast(np.float64) @ never.astype(np.float64)
    return amounts.graph.where(hits > 0.0, np.array(-np.inf), total)


def is_flag(term: LookupTerm) -> bool:
    """Whether the term has but two values, below and above a cut."""
    return isinstance(term.place, CutPlace) and len(term.place.cuts) == 1


def flags(cells: Cells, terms: Sequence[LookupTerm]) -> Tensor:
    """The sum of terms of two values, row by class; one product of matrices, as there may be thousands of columns."""
    places = cast("list[CutPlace]", [term.place for term in terms])
    numbers, cut = cells.numbers([place.column for place in places]), np.array([place.cuts[0] for place in places])
    below, above = ((numbers < cut).cast(np.float64), (numbers >= cut).cast(np.float64))
    tables = np.stack([term.table for term in terms])
    return weighted_sums(below, tables[:, 1]) + weighted_sums(above, tables[:, 2])


def looked_up(places: Places, terms: Sequence[LookupTerm]) -> Tensor:
    """The sum of what is looked up by single cells and by several together, row by class."""
    found, tables = [], []
    if single := [(term.place, term.table) for term in terms if not isinstance(term.place, TuplePlace)]:
        found.append(places.of([place for place, _ in single]))
        tables += [table for _, table in single]
    for place, table in ((term.place, term.table) for term in terms if isinstance(term.place, TuplePlace)):
        found.append((places.of(place.members) * np.array(place.factors)).sum(1, keep=True))
        tables.append(table)
    graph, start = found[0].graph, np.cumsum([0, *(len(table) for table in tables[:-1])])
    return graph.constant(np.concatenate(tables)).take(graph.side_by_side(found) + start, 0).sum(1)


def refused_rows(cells: Cells, places: Places, refusals: Sequence[Refusal]) -> Tensor | None:
    """Which rows are refused, a matrix of one column; None where no row is."""
    alike: dict[tuple[Any, ...], list[Refusal]] = defaultdict(list)
    for one in refusals:
        alike[one.place.cuts if isinstance(one.place, CutPlace) else None, one.places].append(one)
    found = []
    for (cuts, refused), some in alike.items():
        if cuts is None:
            where = places.of([one.place for one in some])
            cells_refused = [where.equals(place) for place in refused]
        else:
            numbers = cells.numbers([one.place.column for one in some])
            cells_refused = [_between(numbers, cuts, place) for place in refused]
        found.append(reduce(or_, cells_refused).any(1, keep=True))
    return reduce(or_, found) if found else None


def _between(numbers: Tensor, cuts: Sequence[float], place: int) -> Tensor:
    """Whether numbers have a place, from 1 on, between cuts."""
    beyond = numbers >= (-np.inf, *cuts)[place - 1]
    return beyond & (numbers < cuts[place - 1]) if place <= len(cuts) else beyond
