"""Evidence of terms as nodes of an ONNX graph, for many columns at a time.

Covers lookups, rejected rows, densities, joint normal distributions (missing cells are integrated out), and corrections
as one tree ensemble.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Any, cast

import numpy as np

from deciban.export.ir import CorrectionTables
from deciban.export.onnx.cells import Cells, KnownCells, Places
from deciban.export.onnx.tensors import Tensor, as_constant
from deciban.families.base.lowering import (
    CellPlace,
    CutPlace,
    HalfLineTerm,
    JointNormalTerm,
    LinearTerm,
    LookupTerm,
    NarrowGammaTerm,
    NormalTerm,
    Refusal,
    TuplePlace,
    WhitenedForm,
)
from deciban.families.joint_gaussian import HALF_LOG_2_PI
from deciban.model.corrections import CELL_PRIOR_WEIGHT
from deciban.util.arrays import MAX_AMOUNT, TOO_LARGE, Flags, Floats, Integers


def sum_weighted(amounts: Tensor, slope: Floats) -> Tensor:
    """Return the sum of amount times slope over the columns, row by class.

    An amount of 0 adds nothing, even if the slope is -inf. amounts: non-negative, row by column. slope: column by
    class.
    """
    never = np.isneginf(slope)
    total = amounts @ np.where(never, 0.0, slope)
    if not never.any():
        return total
    hits = (amounts > 0.0).cast(np.float64) @ never.astype(np.float64)
    return amounts.graph.select(hits > 0.0, np.array(-np.inf), total)


def is_flag(term: LookupTerm) -> bool:
    """Return True if the term has two values, below and above one cut."""
    return isinstance(term.place, CutPlace) and len(term.place.cuts) == 1


def flags(cells: Cells, terms: Sequence[LookupTerm]) -> Tensor:
    """Return the sum of two-valued terms, row by class, as one matrix product for thousands of columns."""
    places = cast("list[CutPlace]", [term.place for term in terms])
    numbers, cut = cells.numbers([place.column for place in places]), np.array([place.cuts[0] for place in places])
    below, above = ((numbers < cut).cast(np.float64), (numbers >= cut).cast(np.float64))
    tables = np.stack([term.table for term in terms])
    return sum_weighted(below, tables[:, 1]) + sum_weighted(above, tables[:, 2])


def sum_lookups(places: Places, terms: Sequence[LookupTerm]) -> Tensor:
    """Return the sum of lookups by single cells and by several cells, row by class."""
    found, tables = [], []
    if single := [(term.place, term.table) for term in terms if not isinstance(term.place, TuplePlace)]:
        found.append(places.of([place for place, _ in single]))
        tables += [table for _, table in single]
    for place, table in ((term.place, term.table) for term in terms if isinstance(term.place, TuplePlace)):
        found.append((places.of(place.members) * np.array(place.factors)).sum(1, keep=True))
        tables.append(table)
    graph, start = found[0].graph, np.cumsum([0, *(len(table) for table in tables[:-1])])
    return graph.constant(np.concatenate(tables)).take(graph.side_by_side(found) + start, 0).sum(1)


def find_rejected_rows(cells: Cells, places: Places, refusals: Sequence[Refusal]) -> Tensor | None:
    """Return flags of rejected rows as a matrix of one column; None if no row is rejected."""
    alike: dict[tuple[Any, ...], list[Refusal]] = defaultdict(list)
    for one in refusals:
        alike[one.place.cuts if isinstance(one.place, CutPlace) else None, one.places].append(one)
    found = []
    for (cuts, rejected), some in alike.items():
        if cuts is None:
            where = places.of([one.place for one in some])
            cells_refused = [where.equals(place) for place in rejected]
        else:
            numbers = cells.numbers([one.place.column for one in some])
            cells_refused = [_between(numbers, cuts, place) for place in rejected]
        found.append(reduce(or_, cells_refused).any(1, keep=True))
    return reduce(or_, found) if found else None


def _between(numbers: Tensor, cuts: Sequence[float], place: int) -> Tensor:
    """Return flags of numbers with a place (from 1 on) between cuts."""
    beyond = numbers >= (-np.inf, *cuts)[place - 1]
    return beyond & (numbers < cuts[place - 1]) if place <= len(cuts) else beyond


DensityTerm = NormalTerm | HalfLineTerm | NarrowGammaTerm


def density_terms(cells: Cells, terms: Sequence[DensityTerm], cap: float) -> Tensor:
    """Return the sum of terms of one kind, each limited by the cap, row by class."""
    by_class = WRITERS[type(terms[0])](cells.numbers([term.column for term in terms]), terms)
    return cells.graph.side_by_side([one.sum(1, keep=True) for one in cap_evidence(by_class, cap)])


def cap_evidence(by_class: Sequence[Tensor], cap: float) -> Sequence[Tensor]:
    """Return evidence relative to the best class, limited by the cap; 0 if all classes are impossible."""
    if cap == np.inf:
        return by_class
    graph = by_class[0].graph
    top = by_class[0] if len(by_class) == 1 else graph.node("Max", *by_class)
    nothing = top.equals(-np.inf)
    return [graph.select(nothing, np.array(0.0), one - top).at_least(-cap) for one in by_class]


def linear_terms(cells: Cells, terms: Sequence[LinearTerm]) -> Tensor:
    """Return the sum of amounts times slopes, row by class; a missing amount adds nothing."""
    numbers = cells.numbers([term.column for term in terms])
    amounts = cells.graph.select(numbers > 0.0, numbers.at_most(TOO_LARGE), np.array(0.0))
    return sum_weighted(amounts, np.stack([term.slope for term in terms]))


def _inside(numbers: Tensor, terms: Sequence[Any]) -> Callable[[Tensor, Tensor], Tensor]:
    """Return a function that replaces evidence outside the support, by 0 or by -inf."""
    graph, nothing = numbers.graph, np.array(0.0)
    impossible = np.array([term.impossible for term in terms])
    if not impossible.any():
        return lambda inside, found: graph.select(inside, found, nothing)
    outside = graph.select(numbers.is_nan(), nothing, np.where(impossible, -np.inf, 0.0))
    return lambda inside, found: graph.select(inside, found, outside)


def _of_classes(terms: Sequence[Any], *names: str) -> list[tuple[Floats, ...]]:
    """Return the parameters of the terms, per class those of all terms."""
    return [*zip(*(np.stack([getattr(term, name) for term in terms], axis=1) for name in names), strict=True)]


def _normal(numbers: Tensor, terms: Sequence[NormalTerm]) -> list[Tensor]:
    place = numbers
    inside = ~numbers.is_nan()
    if terms[0].of_log:
        inside = numbers > 0.0
        place = numbers.graph.select(inside, numbers, np.array(1.0)).log()
    centered, outside = place - np.array([term.center for term in terms]), _inside(numbers, terms)
    found = []
    for mean, root, offset in _of_classes(terms, "mean", "root", "offset"):
        away = (centered - mean) * root
        found.append(outside(inside, offset - away * away))
    return found


def _half_line(numbers: Tensor, terms: Sequence[HalfLineTerm]) -> list[Tensor]:
    graph, outside = numbers.graph, _inside(numbers, terms)
    positive = numbers > 0.0
    inside = (numbers >= 0.0) & numbers.equals(numbers.floor()) if terms[0].counts else positive
    value = graph.select(positive, numbers.at_most(MAX_AMOUNT), np.array(1.0))
    log, found = value.log(), []
    for offset, power, slope in _of_classes(terms, "offset", "power", "slope"):
        above_0 = log * power + value * slope
        found.append(outside(inside, offset + graph.select(positive, above_0, np.array(0.0))))
    return found


def _narrow_gamma(numbers: Tensor, terms: Sequence[NarrowGammaTerm]) -> list[Tensor]:
    graph, inside, outside = numbers.graph, numbers > 0.0, _inside(numbers, terms)
    value, found = graph.select(inside, numbers, np.array(1.0)), []
    log = value.log()
    for peak, shape, mean, low in _of_classes(terms, "peak", "shape", "mean", "mean_low"):
        away = (((value - mean) - low) / mean).at_most(1e250)
        near = away.absolute() < 0.5
        ratio = graph.select(near, _log_of_1_plus(away), log - np.log(mean))
        found.append(outside(inside, peak + (ratio - away) * shape))
    return found


def _log_of_1_plus(small: Tensor) -> Tensor:
    """Return log(1 + u) with all digits of u, by compensating the rounding error of 1 + u."""
    sum_ = small + 1.0
    kept = sum_ - 1.0
    same = kept.equals(0.0)
    share = small / small.graph.select(same, np.array(1.0), kept)
    return small.graph.select(same, small, sum_.log() * share)


# Function that writes the evidence of each type of term. The terms of one call share the flags `of_log` and `counts`.
WRITERS: dict[type[Any], Callable[[Tensor, Any], list[Tensor]]] = {
    NormalTerm: _normal,
    HalfLineTerm: _half_line,
    NarrowGammaTerm: _narrow_gamma,
}


# Numbers of all matrices that are factored at a time for rows with missing cells, to limit memory.
FACTORED_AT_A_TIME = 1 << 20


def joint_normal(cells: Cells, term: JointNormalTerm, cap: float) -> Tensor:
    """Return the evidence of a joint normal term, limited by the cap, row by class."""
    numbers = cells.numbers(term.columns)
    missing = numbers.is_nan()
    whole = _score_whitened(term.form, numbers.graph.select(missing, np.array(0.0), numbers - term.center))
    rows = numbers.graph.node("NonZero", missing.any(1)).reshape(-1)
    holed = _score_partial_rows(term, numbers.take(rows, 0))
    found = numbers.graph.node("ScatterND", whole, rows.with_axis(1), holed)
    if cap == np.inf:
        return found
    classes = term.form.offset.size
    return numbers.graph.side_by_side(cap_evidence([found.take(np.array([c]), 1) for c in range(classes)], cap))


def _score_whitened(form: WhitenedForm, centered: Tensor) -> Tensor:
    """Return offset - |whiten x - mean|**2 for rows without missing cells, row by class."""
    white = [centered @ matrix.T for matrix in form.whiten]
    away = [white[group] - mean for group, mean in zip(form.group.tolist(), form.mean, strict=True)]
    distance = centered.graph.side_by_side([(one * one).sum(1, keep=True) for one in away])
    return form.offset - _replace_nan_distance(distance)


def _replace_nan_distance(distance: Tensor) -> Tensor:
    """Return the distance; infinite if coordinates have overflowed in both directions."""
    return distance.graph.select(distance.is_nan(), np.array(np.inf), distance)


def _score_partial_rows(term: JointNormalTerm, numbers: Tensor) -> Tensor:
    """Return the evidence of the present cells, some rows at a time, row by class."""
    size, classes = len(term.columns), term.form.group.size
    step = np.array([max(1, FACTORED_AT_A_TIME // (len(term.covariance) * size**2))])

    def more(number: Tensor, numbers: Tensor, found: Tensor) -> list[Tensor]:
        start = number * step
        some = _marginal(term, numbers.slice(start, start + step, [0])) * term.weight
        return [numbers, numbers.graph.node("Concat", found, some, axis=0)]

    times = (numbers.size(0) + (step - 1)) / step  # integer division
    return numbers.graph.repeat(times.reshape(), [numbers, np.zeros((0, classes))], more)[1]


def _marginal(term: JointNormalTerm, numbers: Tensor) -> Tensor:
    """Return the log density, with the determinant and the distance computed by elimination of columns.

    The matrix is that of the present columns. A missing column is replaced by one at its mean with variance 1 and no
    covariance, which adds nothing.
    """
    graph, size = numbers.graph, len(term.columns)
    matrices = term.covariance if len(term.covariance) == 1 else term.covariance[term.form.group]
    present = ~numbers.is_nan()
    there = present.with_axis(1)
    both = there.with_axis(3) & there.with_axis(2)
    left = graph.select(both, matrices, np.eye(size))
    units = ((numbers - term.center) / term.unit).with_axis(1)
    away = graph.select(there, units - term.mean, np.array(0.0))
    terms = []
    for last in range(size, 0, -1):
        row, first = left.take(np.array(0), 2), away.take(np.array([0]), 2)
        pivot = row.take(np.array([0]), 2)
        ratio = first / pivot
        terms.append(pivot.log() + first * ratio)
        rest = row.slice(np.array([1]), np.array([last]), [2])
        left = left.slice(np.array([1, 1]), np.array([last, last]), [2, 3])
        left = left - (rest / pivot).with_axis(3) * rest.with_axis(2)
        away = away.slice(np.array([1]), np.array([last]), [2]) - ratio * rest
    total = graph.node("Sum", *terms) if len(terms) > 1 else terms[0]
    log_unit: Floats = HALF_LOG_2_PI + np.log(term.unit)
    density = _replace_nan_distance(total.reshape(-1, term.form.group.size)) * -0.5
    return density - present.cast(np.float64) @ log_unit[:, None]


# ONNX's code for the test "is the cell >= the split?".
AT_LEAST = 2

# ONNX's code for adding up the trees.
ADD_UP = 1

# ONNX's code for returning the sum unchanged.
AS_IT_IS = 0

# The smallest double; a missing cell that is evidence is below it.
MIN_DOUBLE = float(-np.finfo(np.float64).max)


# Numbers held for partial rows at a time, to limit memory.
AVERAGED_AT_A_TIME = 1 << 22


def always(tables: CorrectionTables) -> Floats:
    """Return the constant sum of the tables without questions, per class, relative to the first class."""
    asking_nothing = tables.contrasts[tables.corrections.questions == 0, 0]
    return np.concatenate([[0.0], tables.unit * asking_nothing.sum(axis=0)])


def corrections(cells: Cells, places: Places, tables: CorrectionTables, known: KnownCells | None) -> Tensor:
    """Return the sum of the other tables, row by class, relative to the first class.

    Trees give the sum for complete rows. Rows with unknown columns are averaged afterwards.
    """
    tests = tables.corrections.tests
    asked = np.unique(tests[:, :, 0][tests[:, :, 0] >= 0]).tolist()
    between = [k for k in asked if isinstance(tables.places[k], CutPlace)]
    among = [k for k in asked if not isinstance(tables.places[k], CutPlace)]
    features, graph = [], cells.graph
    if between:
        columns = [tables.places[k].column for k in between]
        numbers = cells.numbers(columns)
        missing = numbers.is_nan()
        evident = missing if known is None else missing & ~known.unknown(columns)
        least = graph.select(numbers.equals(np.array(-np.inf)), np.array(MIN_DOUBLE), numbers)
        features.append(graph.select(evident, np.array(-np.inf), least))
    if among:
        features.append(places.of([tables.places[k] for k in among]).cast(np.float64))
    table, order = graph.side_by_side(features), {k: place for place, k in enumerate((*between, *among))}
    questions = Questions.of(tables, order)
    found = graph.node("TreeEnsemble", table, **_ensemble(questions, tables))
    if known is not None:
        unknown = known.unknown([tables.places[k].column for k in order])
        rows = graph.node("NonZero", unknown.any(1)).reshape(-1)
        partial = _average_tables(questions, tables, table.take(rows, 0), unknown.take(rows, 0).cast(np.float64))
        found = graph.node("ScatterND", found, rows.with_axis(1), partial)
    return found @ np.eye(tables.contrasts.shape[2] + 1)[1:]


@dataclass(frozen=True)
class Questions:
    """Questions of correction tables: each asks if a feature is at least as large as a split.

    Arrays are table by binary digit of the cell, the highest digit first. Unused digits have the split NaN, which
    no feature reaches.
    """

    features: Integers
    splits: Floats
    used: Flags

    @classmethod
    def of(cls, tables: CorrectionTables, order: dict[int, int]) -> "Questions":
        """Return the questions. order: the feature of each corrected column."""
        tests = tables.corrections.tests
        depth = int(tables.corrections.questions.max())
        features, splits = np.zeros((len(tests), depth), dtype=np.int64), np.full((len(tests), depth), np.nan)
        for t, asked in enumerate(tests):
            own = asked[asked[:, 0] >= 0].tolist()
            for k, (column, cut) in enumerate(own, depth - len(own)):
                features[t, k], splits[t, k] = order[column], _find_split(tables.places[column], cut)
        used = np.arange(depth) >= depth - tables.corrections.questions[:, None]
        return cls(features, splits, np.asarray(used))


def _ensemble(questions: Questions, tables: CorrectionTables) -> dict[str, Any]:
    """Return the attributes of the node: one tree per table and class except the first, with all cells as leaves."""
    parts: list[dict[str, Any]] = []
    nodes = leaves = 0
    size, _, targets = tables.contrasts.shape
    for c in range(targets):
        for t in range(size):
            used = questions.used[t]
            if not (depth := int(used.sum())):
                continue
            level = np.repeat(np.arange(depth), 1 << np.arange(depth))  # nodes are numbered level by level
            place, last = np.arange(level.size) + 1 - (1 << level), level == depth - 1
            no = 2 * place + np.where(last, leaves, nodes + (2 << level) - 1)
            parts.append(
                {
                    "nodes_featureids": questions.features[t, used][level],
                    "nodes_splits": questions.splits[t, used][level],
                    "nodes_falsenodeids": no,
                    "nodes_truenodeids": no + 1,
                    "nodes_falseleafs": last.astype(np.int64),
                    "nodes_trueleafs": last.astype(np.int64),
                    "tree_roots": np.array([nodes]),
                    "leaf_weights": tables.unit * tables.contrasts[t, : 1 << depth, c].astype(np.float64),
                    "leaf_targetids": np.full(1 << depth, c),
                }
            )
            nodes, leaves = nodes + level.size, leaves + (1 << depth)
    merged = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    merged["nodes_modes"] = np.full(nodes, AT_LEAST, dtype=np.uint8)
    tensors = {name: as_constant(merged.pop(name)) for name in ("nodes_splits", "nodes_modes", "leaf_weights")}
    lists = {name: array.tolist() for name, array in merged.items()}
    return {"n_targets": targets, "aggregate_function": ADD_UP, "post_transform": AS_IT_IS, **tensors, **lists}


def _average_tables(questions: Questions, tables: CorrectionTables, features: Tensor, unknown: Tensor) -> Tensor:
    """Return the sum of the tables, averaged over unknown columns, row by class except the first.

    A cell counts if it has the answers of the row in all known digits. unknown: 1 for unknown columns, else 0.
    """
    (size, depth), targets = questions.features.shape, tables.contrasts.shape[2]
    used = tables.corrections.used_cells[:, : 1 << depth]
    weight = np.where(used, tables.corrections.rows[:, : 1 << depth] + CELL_PRIOR_WEIGHT, 0.0)[:, :, None]
    asking = np.asarray(questions.used.any(axis=1))[:, None, None]  # others are added by `always`
    values = np.where(asking, tables.unit * tables.contrasts[:, : 1 << depth], 0.0)
    sums = np.concatenate([weight * values, weight], axis=2)
    digits = (np.arange(1 << depth) >> np.arange(depth)[::-1, None] & 1).astype(np.float64)
    step = np.array([max(1, AVERAGED_AT_A_TIME // (size << depth))])

    def by_table(numbers: Tensor) -> Tensor:
        return numbers.graph.node("Transpose", numbers.reshape(-1, size, depth), perm=[1, 0, 2])

    def more(number: Tensor, features: Tensor, unknown: Tensor, found: Tensor) -> list[Tensor]:
        graph, start = features.graph, number * step
        asked = features.slice(start, start + step, [0]).take(questions.features.ravel(), 1)
        yes = by_table((asked >= questions.splits.ravel()).cast(np.float64))
        gone = unknown.slice(start, start + step, [0]).take(questions.features.ravel(), 1)
        gone = by_table(gone.cast(np.float64)) * questions.used[:, None].astype(np.float64)
        differing = yes.sum(2, keep=True) + (1.0 - gone - yes - yes) @ digits
        sums_here = differing.equals(np.array(0.0)).cast(np.float64) @ sums
        mean = sums_here.take(np.arange(targets), 2) / sums_here.take(np.array([targets]), 2)
        nothing = gone.sum(2, keep=True).equals(questions.used.sum(axis=1).astype(np.float64)[:, None, None])
        some = graph.select(nothing, np.array(0.0), mean).sum(0)
        return [features, unknown, graph.node("Concat", found, some, axis=0)]

    times = (features.size(0) + (step - 1)) / step  # integer division
    return features.graph.repeat(times.reshape(), [features, unknown, np.zeros((0, targets))], more)[2]


def _find_split(place: CellPlace, last: int) -> float:
    """Return the smallest number whose place is beyond `last`; for levels, the smallest such place."""
    if not isinstance(place, CutPlace):
        return float(last + 1)
    edges = (-np.inf, *place.cuts)
    if last >= len(edges):
        return np.nan  # there is no such number
    return max(edges[last], MIN_DOUBLE)
