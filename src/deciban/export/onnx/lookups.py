"""What is looked up by places, and which rows are refused, as nodes of an ONNX graph."""

from collections import defaultdict
from collections.abc import Sequence
from functools import reduce
from operator import or_

import numpy as np

from deciban.arrays import Floats
from deciban.export.onnx.cells import Cells
from deciban.export.onnx.places import CellPlace, Places
from deciban.export.onnx.tensors import Tensor
from deciban.export.terms import CutPlace, LookupTerm, Refusal, TuplePlace


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
    numbers = cells.numbers([term.place.column for term in terms])  # type: ignore[union-attr]  # of one cell each
    cut = np.array([term.place.cuts[0] for term in terms])  # type: ignore[union-attr]
    below, above = ((numbers < cut).cast(np.float64), (numbers >= cut).cast(np.float64))
    tables = np.stack([term.table for term in terms])
    return weighted_sums(below, tables[:, 1]) + weighted_sums(above, tables[:, 2])


def looked_up(places: Places, terms: Sequence[LookupTerm]) -> Tensor:
    """The sum of what is looked up by single cells and by several together, row by class."""
    single = [term for term in terms if not isinstance(term.place, TuplePlace)]
    joint = [term for term in terms if isinstance(term.place, TuplePlace)]
    found = [places.of([term.place for term in single])] if single else []  # type: ignore[misc]  # of one cell each
    for term in joint:
        members, factors = term.place.members, np.array(term.place.factors)  # type: ignore[union-attr]
        found.append((places.of(members) * factors).sum(1, keep=True))
    tables = [term.table for term in (*single, *joint)]
    start = np.cumsum([0, *(len(table) for table in tables[:-1])])
    graph = found[0].graph
    return graph.constant(np.concatenate(tables)).take(graph.side_by_side(found) + start, 0).sum(1)


def refused_rows(cells: Cells, places: Places, refusals: Sequence[Refusal]) -> Tensor | None:
    """Which rows are refused, a matrix of one column; None where no row is."""
    alike: dict[tuple[tuple[float, ...], tuple[int, ...]], list[CellPlace]] = defaultdict(list)
    for refusal in refusals:
        place = refusal.place
        alike[place.cuts if isinstance(place, CutPlace) else (), refusal.places].append(place)
    found = []
    for (cuts, refused), some in alike.items():
        if cuts:
            numbers = cells.numbers([place.column for place in some])
            found.append(reduce(or_, (_between(numbers, cuts, place) for place in refused)))
        else:
            where = places.of(some)
            found.append(reduce(or_, (where.equals(place) for place in refused)))
    return reduce(or_, (cells.any(1, keep=True) for cells in found)) if found else None


def _between(numbers: Tensor, cuts: Sequence[float], place: int) -> Tensor:
    """Whether numbers have a place, from 1 on, between cuts."""
    if place == 1:
        return numbers < cuts[0]
    if place > len(cuts):
        return numbers >= cuts[-1]
    return (numbers >= cuts[place - 2]) & (numbers < cuts[place - 1])
