"""The evidence of numbers, column by column, as nodes of an ONNX graph: those of many columns at a time.

Each function gives, for each class, a matrix of row by term.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from deciban.export.onnx.cells import Cells
from deciban.export.onnx.lookups import weighted_sums
from deciban.export.onnx.tensors import Tensor
from deciban.families.base.lowering import HalfLineTerm, LinearTerm, NarrowGammaTerm, NormalTerm
from deciban.util.arrays import LARGEST, TOO_LARGE, Floats

DensityTerm = NormalTerm | HalfLineTerm | NarrowGammaTerm


def density_terms(cells: Cells, terms: Sequence[DensityTerm], cap: float) -> Tensor:
    """The sum of terms of one kind, none of which is worth more than the cap, row by class."""
    by_class = WRITERS[type(terms[0])](cells.numbers([term.column for term in terms]), terms)
    return cells.graph.side_by_side([one.sum(1, keep=True) for one in capped(by_class, cap)])


def capped(by_class: Sequence[Tensor], cap: float) -> Sequence[Tensor]:
    """Evidence relative to that of the best class, no further below it than the cap; none where all are impossible."""
    if cap == np.inf:
        return by_class
    graph = by_class[0].graph
    top = by_class[0] if len(by_class) == 1 else graph.node("Max", *by_class)
    nothing = top.equals(-np.inf)
    return [graph.where(nothing, np.array(0.0), one - top).at_least(-cap) for one in by_class]


def linear_terms(cells: Cells, terms: Sequence[LinearTerm]) -> Tensor:
    """The sum of amounts times their slopes, row by class; a missing amount adds nothing."""
    numbers = cells.numbers([term.column for term in terms])
    amounts = cells.graph.where(numbers > 0.0, numbers.at_most(TOO_LARGE), np.array(0.0))
    return weighted_sums(amounts, np.stack([term.slope for term in terms]))


def _inside(numbers: Tensor, terms: Sequence[Any]) -> Callable[[Tensor, Tensor], Tensor]:
    """A function of where numbers are in the support, and evidence, to evidence: outside it is none, or impossible."""
    graph, nothing = numbers.graph, np.array(0.0)
    impossible = np.array([term.impossible for term in terms])
    if not impossible.any():
        return lambda inside, found: graph.where(inside, found, nothing)
    outside = graph.where(numbers.is_nan(), nothing, np.where(impossible, -np.inf, 0.0))
    return lambda inside, found: graph.where(inside, found, outside)


def _of_classes(terms: Sequence[Any], *names: str) -> list[tuple[Floats, ...]]:
    """Parameters of the terms, for each class those of all terms."""
    return [*zip(*(np.stack([getattr(term, name) for term in terms], axis=1) for name in names), strict=True)]


def _normal(numbers: Tensor, terms: Sequence[NormalTerm]) -> list[Tensor]:
    place = numbers
    inside = ~numbers.is_nan()
    if terms[0].of_log:
        inside = numbers > 0.0
        place = numbers.graph.where(inside, numbers, np.array(1.0)).log()
    centred, outside = place - np.array([term.centre for term in terms]), _inside(numbers, terms)
    found = []
    for mean, root, offset in _of_classes(terms, "mean", "root", "offset"):
        away = (centred - mean) * root
        found.append(outside(inside, offset - away * away))
    return found


def _half_line(numbers: Tensor, terms: Sequence[HalfLineTerm]) -> list[Tensor]:
    graph, outside = numbers.graph, _inside(numbers, terms)
    positive = numbers > 0.0
    inside = (numbers >= 0.0) & numbers.equals(numbers.floor()) if terms[0].counts else positive
    value = graph.where(positive, numbers.at_most(LARGEST), np.array(1.0))
    log, found = value.log(), []
    for offset, power, slope in _of_classes(terms, "offset", "power", "slope"):
        above_0 = log * power + value * slope
        found.append(outside(inside, offset + graph.where(positive, above_0, np.array(0.0))))
    return found


def _narrow_gamma(numbers: Tensor, terms: Sequence[NarrowGammaTerm]) -> list[Tensor]:
    graph, inside, outside = numbers.graph, numbers > 0.0, _inside(numbers, terms)
    value, found = graph.where(inside, numbers, np.array(1.0)), []
    log = value.log()
    for peak, shape, mean, low in _of_classes(terms, "peak", "shape", "mean", "mean_low"):
        away = (((value - mean) - low) / mean).at_most(1e250)
        near = away.absolute() < 0.5
        ratio = graph.where(near, _log_of_1_plus(away), log - np.log(mean))
        found.append(outside(inside, peak + (ratio - away) * shape))
    return found


def _log_of_1_plus(small: Tensor) -> Tensor:
    """log(1 + u) with all digits of u, of which 1 + u has lost some: it is made up for by what is left of u in it."""
    sum_ = small + 1.0
    kept = sum_ - 1.0
    same = kept.equals(0.0)
    share = small / small.graph.where(same, np.array(1.0), kept)
    return small.graph.where(same, small, sum_.log() * share)


# How the evidence of each kind of term is written; terms of one kind are all of logarithms, or of counts, or none is.
WRITERS: dict[type[Any], Callable[[Tensor, Any], list[Tensor]]] = {
    NormalTerm: _normal,
    HalfLineTerm: _half_line,
    NarrowGammaTerm: _narrow_gamma,
}
