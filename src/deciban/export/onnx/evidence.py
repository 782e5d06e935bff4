"""The evidence of likelihoods whose columns are the columns of one matrix, as nodes of an ONNX graph."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from deciban.arrays import LARGEST, TOO_LARGE, Floats
from deciban.export.onnx.tensors import Tensor
from deciban.families import Bernoulli, Family, Likelihood
from deciban.families.bernoulli import BernoulliLikelihood
from deciban.families.categorical import CategoricalLikelihood
from deciban.families.gaussian import Normal
from deciban.families.joint_normal import JointNormal, Whitened
from deciban.families.multinomial import ComplementScore, MultinomialLikelihood

# Numbers of all matrices that are factored at a time, of rows with missing cells.
FACTORED_AT_A_TIME = 1 << 20


@dataclass(frozen=True)
class Scored:
    """The evidence, row by class, up to what is the same for every class; and the cells that deciban refuses to score,
    None where there is no such cell."""

    evidence: Tensor
    refused: Tensor | None


def evidence_of(family: Family, likelihood: Likelihood, cells: Tensor) -> Scored:
    """What a likelihood says of rows of doubles, NaN where a cell is missing."""
    scored = WRITERS[type(likelihood)](likelihood, cells)
    if isinstance(family, Bernoulli) and family.threshold is None:
        return replace(scored, refused=~(cells.equals(0.0) | cells.equals(1.0) | cells.is_nan()))
    return scored


def weighted_sums(amounts: Tensor, slope: Floats) -> Tensor:
    """The sum of amount times slope over the columns, row by class; a zero adds nothing, even where its slope is -inf."""
    never = np.isneginf(slope)
    total = amounts @ np.where(never, 0.0, slope)
    if not never.any():
        return total
    hits = (amounts > 0.0).cast(np.float64) @ never.astype(np.float64)
    return amounts.graph.where(hits > 0.0, np.array(-np.inf), total)


def squared_distances(points: Tensor, from_each: Floats) -> Tensor:
    """The squared distance of each row from each of some points (point by column)."""
    away = (points - point for point in from_each)
    return points.graph.side_by_side([(one * one).sum(1, keep=True) for one in away])


def _normal(likelihood: Normal, cells: Tensor) -> Scored:
    missing, centred = cells.is_nan(), cells - likelihood.centre
    there = (~missing).cast(np.float64)
    distances = []
    for mean, root in zip(likelihood.mean.T, likelihood.root.T, strict=True):
        away = cells.graph.where(missing, np.array(0.0), (centred - mean) * root)
        distances.append((away * away).sum(1, keep=True))
    evidence = there @ likelihood.offset - cells.graph.side_by_side(distances)
    return Scored(evidence, cells.is_infinite())


def _bernoulli(likelihood: BernoulliLikelihood, cells: Tensor) -> Scored:
    above, below = cells > likelihood.threshold, cells <= likelihood.threshold
    ones, zeros = (flags.cast(np.float64) for flags in (above, below))
    return Scored(weighted_sums(ones, likelihood.one) + weighted_sums(zeros, likelihood.zero), None)


def _amounts(slope: Floats, cells: Tensor) -> Scored:
    amounts = cells.graph.where(cells.is_nan(), np.array(0.0), cells).at_most(TOO_LARGE)
    return Scored(weighted_sums(amounts, slope), (cells < 0.0) | cells.is_infinite())


def _multinomial(likelihood: MultinomialLikelihood, cells: Tensor) -> Scored:
    return _amounts(likelihood.log_share, cells)


def _complement(likelihood: ComplementScore, cells: Tensor) -> Scored:
    return _amounts(likelihood.weight, cells)


def _codes_from_zero(likelihood: CategoricalLikelihood, cells: Tensor) -> Scored:
    """Of categories 0, 1, ...: the row of a zero count, behind those of the levels, is no evidence."""
    table, start, size = likelihood.table.copy(), likelihood.start[:-1], np.diff(likelihood.start) - 1
    table[start + size] = 0.0
    whole = cells.graph.where(cells < 0.0, cells.graph.node("Ceil", cells), cells.floor())
    code = cells.graph.where(cells.is_nan(), size.astype(np.float64), whole.at_most(size.astype(np.float64)))
    place = code.at_least(0.0).cast(np.int64) + start
    return Scored(cells.graph.constant(table).take(place, 0).sum(1), (whole < 0.0) | (whole > LARGEST))


def _joint_normal(likelihood: JointNormal, cells: Tensor) -> Scored:
    white, infinite = likelihood.whitened, cells.is_infinite()
    if not white.columns.size:
        return Scored(infinite.any(1, keep=True).cast(np.float64) * np.zeros((1, likelihood.group.size)), infinite)
    used = cells if white.columns.size == likelihood.unit.size else cells.take(white.columns, 1)
    missing = used.is_nan()
    whole = _whitened(white, used.graph.where(missing, white.centre, used))
    rows = used.graph.node("NonZero", missing.any(1)).reshape(-1)
    holed = _normals_with_holes(likelihood, used.take(rows, 0))
    return Scored(used.graph.node("ScatterND", whole, rows.with_axis(1), holed), infinite)


def _whitened(white: Whitened, cells: Tensor) -> Tensor:
    """offset - |whiten (x - centre) - mean|² of rows without missing cells."""
    centred, distances = cells - white.centre, []
    points = [centred @ matrix.T for matrix in white.whiten]
    for mean, group in zip(white.mean, white.group.tolist(), strict=True):
        distances.append(squared_distances(points[group], mean[None]))
    distance = cells.graph.side_by_side(distances)
    return white.offset - _as_far_as_any(distance)


def _as_far_as_any(distance: Tensor) -> Tensor:
    """The distance; infinite where coordinates have overflowed in both directions."""
    return distance.graph.where(distance.is_nan(), np.array(np.inf), distance)


def _normals_with_holes(likelihood: JointNormal, cells: Tensor) -> Tensor:
    """The log density of the cells that are there, some rows at a time, row by class."""
    columns, classes = likelihood.whitened.columns, likelihood.group.size
    matrices = len(likelihood.covariance)
    step = np.array([max(1, FACTORED_AT_A_TIME // (matrices * columns.size**2))])

    def more(number: Tensor, cells: Tensor, found: Tensor) -> list[Tensor]:
        start = number * step
        part = cells.cut(start, start + step, [0])
        return [cells, cells.graph.node("Concat", found, _marginal_normals(likelihood, part), axis=0)]

    times = (cells.size(0) + (step - 1)) / step  # of whole numbers, rounded down
    return cells.graph.repeat(times.reshape(), [cells, np.zeros((0, classes))], more)[1]


def _marginal_normals(likelihood: JointNormal, cells: Tensor) -> Tensor:
    """-½ log|S| - ½ |x - mean|² in the metric of S, whose columns are eliminated one after another.

    S is the matrix of the columns that are there; a missing one becomes a column that is 0, as it should be, with a
    variance of 1 and no covariances, which adds nothing.
    """
    graph, varies = cells.graph, likelihood.whitened.columns
    shared = len(likelihood.covariance) == 1
    matrix = likelihood.covariance[:1] if shared else likelihood.covariance[likelihood.group]
    there = (~cells.is_nan()).with_axis(1)
    both = there.with_axis(3) & there.with_axis(2)
    left = graph.where(both, matrix[:, varies][:, :, varies], np.eye(varies.size))
    units = ((cells - likelihood.centre[varies]) * (1.0 / likelihood.unit[varies])).with_axis(1)
    away = graph.where(there, units - likelihood.mean[:, varies], np.array(0.0))
    total = None
    for last in range(varies.size - 1, -1, -1):
        row = left.take(np.array(0), 2)
        pivot, first = row.take(np.array([0]), 2), away.take(np.array([0]), 2)
        ratio = first / pivot
        term = pivot.log() + first * ratio
        total = term if total is None else total + term
        if last:
            rest = row.cut(np.array([1]), np.array([last + 1]), [2])
            below = left.cut(np.array([1, 1]), np.array([last + 1] * 2), [2, 3])
            left = below - (rest / pivot).with_axis(3) * rest.with_axis(2)
            away = away.cut(np.array([1]), np.array([last + 1]), [2]) - ratio * rest
    assert total is not None, "some columns vary"
    return _as_far_as_any(total.reshape(-1, likelihood.group.size)) * -0.5


# How the evidence of each likelihood is written.
WRITERS: dict[type[Any], Callable[[Any, Tensor], Scored]] = {
    Normal: _normal,
    BernoulliLikelihood: _bernoulli,
    MultinomialLikelihood: _multinomial,
    ComplementScore: _complement,
    CategoricalLikelihood: _codes_from_zero,
    JointNormal: _joint_normal,
}
