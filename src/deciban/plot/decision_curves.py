"""Curves of prior times density, and the intervals of each decision under them: of known distributions, of a model."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from deciban.arrays import Floats, Integers
from deciban.decisions.bayes_error import bayes_error
from deciban.decisions.bayes_error_exact import log_joint
from deciban.decisions.bayes_error_result import BayesError
from deciban.decisions.loss import Loss
from deciban.errors import UsageError
from deciban.explain.alone import table_of_columns
from deciban.explain.column_values import ColumnValues, allowed, column_place, values_of
from deciban.fitted import Fitted
from deciban.plot.decision_line import Interval, best_intervals, given_intervals, intervals, value_intervals
from deciban.posterior import log_normalize

# Points of the curves; the share of a class that is beyond them; how much wider than the cells of a column they are.
CURVE_POINTS = 2001
BEYOND_CURVES = 1e-9
WIDER = 0.3


class Curves(NamedTuple):
    """Prior times density of each class at rising points, the intervals of a rule, and those of the best one."""

    x: Floats
    joint: Floats
    rule: list[Interval]
    best: list[Interval]
    discrete: bool


def curves_of_result(result: BayesError) -> Curves:
    """Those of known distributions of one dimension."""
    assert result.prior is not None, "a result of bayes_error has its prior"
    best = bayes_error(
        result.distributions, result.prior.tolist(), result.loss, classes=list(result.loss.classes or ())
    )
    ends = [d.ppf([BEYOND_CURVES, 1.0 - BEYOND_CURVES]) for d in result.distributions]
    low, high = float(np.min(ends)), float(np.max(ends))
    if hasattr(getattr(result.distributions[0], "dist", result.distributions[0]), "pmf"):
        values = np.arange(low, high + 1.0)
        joint = np.stack([d.pmf(values) for d in result.distributions], axis=1) * result.prior
        rule, least = (_intervals(one, halfway=True) for one in (result, best))
        return Curves(*_bars(values, joint), rule, least, True)
    rule, least = (_intervals(one) for one in (result, best))
    x = _with_edges(np.linspace(low, high, CURVE_POINTS), rule, least)
    joint = np.exp(log_joint(result.distributions, result.prior, x))
    return Curves(x, np.where(np.isfinite(joint), joint, 0.0), rule, least, False)


def curves_of_column(
    fitted: Fitted, column: int, loss: Loss, boundaries: Sequence[float] | None, decisions: Sequence[Any] | None
) -> Curves:
    """Those of a column of a model."""
    values = values_of(fitted, column, CURVE_POINTS)
    if values.numbers is None or values.dates:
        raise UsageError(f"the column {values.name!r} holds no numbers; choose one that does")
    if values.kind != "continuous":
        joint = joint_of(fitted, [values], values.numbers[:, None])
        joint = joint / max(float(joint.sum()), 1e-300)
        best = value_intervals(values.numbers, joint, loss)
        rule = best if boundaries is None else given_intervals(joint, values.numbers, loss, boundaries, decisions)
        return Curves(*_bars(values.numbers, joint), rule, best, True)
    room = WIDER * float(values.numbers[-1] - values.numbers[0])
    x = np.linspace(values.numbers[0] - room, values.numbers[-1] + room, CURVE_POINTS)
    x = x[allowed(fitted.model, column, x)]

    def joint_at(points: Floats) -> Floats:
        return joint_of(fitted, [values], points[:, None])

    best = best_intervals(joint_at, x, loss)
    rule = best if boundaries is None else given_intervals(joint_at(x), x, loss, boundaries, decisions)
    x = _with_edges(x, rule, best)
    return Curves(x, joint_at(x), rule, best, False)


def joint_of(fitted: Fitted, columns: Sequence[ColumnValues], points: Floats) -> Floats:
    """Prior times density of each class, at points (point by column).

    Of a tuned model that has just these columns, it is its posterior times the density of plain Bayes. Where it has
    others, plain Bayes is drawn.
    """
    cells = {one.column: pa.array(points[:, k]) for k, one in enumerate(columns)}
    model = fitted.model if fitted.model.schema.width == len(columns) else fitted.plain
    table = table_of_columns(model.schema, cells, len(points))
    posterior, _ = log_normalize(model.log_joint(table), model.log_prior)
    _, log_density = log_normalize(fitted.plain.log_joint(table), fitted.plain.log_prior)
    unseen = np.zeros(len(points), dtype=np.bool_) if len(columns) > 1 else log_density == 0.0
    return posterior * np.where(unseen, 0.0, np.exp(log_density))[:, None]


def _intervals(result: BayesError, halfway: bool = False) -> list[Interval]:
    """The regions of a result; those of single values meet halfway between these."""
    decisions = list(result.loss.decisions or ())
    edges = [region.low - (0.5 if halfway else 0.0) for region in result.regions[1:]]
    return intervals(edges, [decisions.index(region.decision) for region in result.regions])


def _bars(values: Floats, joint: Floats) -> tuple[Floats, Floats]:
    """Single values as bars of height probability / width, whose neighbours touch: both sides of each bar."""
    middle = 0.5 * (values[1:] + values[:-1])
    ends = np.array([1.5 * values[0] - 0.5 * values[1], 1.5 * values[-1] - 0.5 * values[-2]]) if values.size > 1 else (
        values[0] + np.array([-0.5, 0.5])
    )  # fmt: skip
    edges = np.concatenate([ends[:1], middle, ends[1:]])
    sides = np.stack([edges[:-1], edges[1:]], axis=1).ravel()
    return sides, np.repeat(joint / np.diff(edges)[:, None], 2, axis=0)


def _with_edges(x: Floats, *rules: list[Interval]) -> Floats:
    """The points with those at which a decision changes."""
    edges = [one.low for rule in rules for one in rule[1:]]
    inside = [edge for edge in edges if x[0] < edge < x[-1]]
    return np.unique(np.concatenate([x, inside]))


def places_of_columns(fitted: Fitted, columns: Any) -> Integers:
    """The places of one or two columns that a decision is drawn over."""
    width = fitted.counts.schema.width
    if columns is None:
        if width > 2:
            raise UsageError(f"the model has {width} columns; name the one or the two that are to be drawn in columns=")
        return np.arange(width)
    several = columns if isinstance(columns, list | tuple | np.ndarray) else [columns]
    if len(several) not in (1, 2):
        raise UsageError(f"columns={columns!r}: give one column, or two")
    return np.array([column_place(fitted, column) for column in several])
