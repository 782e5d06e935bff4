"""Curves of prior times density, and the intervals of each decision under them: of known distributions, of a model."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from deciban.decisions.bayes_error import BayesError, bayes_error, compute_log_joint
from deciban.decisions.decide import compute_risks
from deciban.decisions.loss import Loss
from deciban.decisions.regions import (
    Interval,
    compute_areas,
    find_best_intervals,
    find_value_intervals,
    join_intervals,
    make_intervals,
)
from deciban.errors import Argument, UsageError
from deciban.explain.column_values import (
    ColumnValues,
    allowed,
    column_place,
    home_of,
    log_joint_of,
    table_of_columns,
    values_of,
)
from deciban.model.fitted import Fitted
from deciban.model.model import Model, log_normalize
from deciban.util.arrays import Floats, Integers

# Points of the curves; the share of a class that is beyond them; how much wider than the cells of a column they are.
CURVE_POINTS = 2001
BEYOND_CURVES = 1e-9
WIDER = 0.3

# Where boundaries beyond the curves are looked for, in widths of these, as far as densities are above this share of the
# highest one; and how far from 1 the areas under all curves may be if they are exact.
FAR = np.logspace(-3.0, 3.0, 300)
MIN_DENSITY = 1e-13
MAX_AREA_ERROR = 1e-9


class Curves(NamedTuple):
    """Prior times density of each class at rising points, the intervals of a rule, and those of the best one.

    areas: the exact area under the curve of each class in each decision, of the rule and of the best one; None where
    only the points are known.
    """

    x: Floats
    joint: Floats
    rule: list[Interval]
    best: list[Interval]
    discrete: bool
    areas: tuple[Floats, Floats] | None = None


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
    joint = np.exp(compute_log_joint(result.distributions, result.prior, x))
    return Curves(x, np.where(np.isfinite(joint), joint, 0.0), rule, least, False)


def curves_of_column(
    fitted: Fitted,
    column: int,
    loss: Loss,
    boundaries: Sequence[float] | None = None,
    decisions: Sequence[Any] | None = None,
    tuned: bool = True,
) -> Curves:
    """Those of a column of a model; without `tuned`, of its generative model even if it has no other column."""
    values = values_of(fitted, column, CURVE_POINTS)
    if values.numbers is None or values.dates:
        raise UsageError(f"the column {values.name!r} holds no numbers", remedy="choose one that does")
    if values.kind != "continuous":
        joint = joint_of(fitted, [values], values.numbers[:, None], tuned)
        joint = joint / max(float(joint.sum()), 1e-300)
        best = find_value_intervals(values.numbers, joint, loss)
        rule = best if boundaries is None else make_intervals(joint, values.numbers, loss, boundaries, decisions)
        return Curves(*_bars(values.numbers, joint), rule, best, True)
    room = WIDER * float(values.numbers[-1] - values.numbers[0])
    home = home_of(fitted.generative, column)
    assert home is not None, "it has values"
    marks = home[1].curve_points(home[2])  # those of bins are all that has a density
    ends = (min(values.numbers[0] - room, *marks), max(values.numbers[-1] + room, *marks))
    x = np.unique(np.concatenate([np.linspace(*ends, CURVE_POINTS), values.numbers, marks]))
    x = x[allowed(fitted.model, column, x)]

    def joint_at(points: Floats) -> Floats:
        return joint_of(fitted, [values], points[:, None], tuned)

    beyond = FAR * (x[-1] - x[0])
    far = np.concatenate([x[0] - beyond, x[-1] + beyond])
    far = far[allowed(fitted.model, column, far)]
    far = far[joint_at(far).max(axis=1) > MIN_DENSITY * joint_at(x).max()]
    best = find_best_intervals(joint_at, np.unique(np.concatenate([x, far])), loss)
    rule = best if boundaries is None else make_intervals(joint_at(x), x, loss, boundaries, decisions)
    x = _with_edges(x, rule, best)
    areas = None
    if _drawn_model(fitted, 1, tuned) is fitted.generative:
        exact = [exact_areas(one, fitted.generative, column, len(loss.matrix)) for one in (rule, best)]
        areas = None if exact[0] is None or exact[1] is None else (exact[0], exact[1])
    return Curves(x, joint_at(x), rule, best, False, areas)


def exact_areas(rule: Sequence[Interval], model: Model, column: int, decisions: int) -> Floats | None:
    """The probability of each decision with each class, by the cumulative distribution of a column; None where its
    family has none."""
    home = home_of(model, column)
    assert home is not None, "the column has a family"
    _, likelihood, place = home
    edges = np.array([one.low for one in rule[1:]])
    found = np.zeros((decisions, model.classes.size))
    for c, prior in enumerate(np.exp(model.log_prior)):
        below = likelihood.cdf(edges, place, c)
        if below is None:
            return None
        mass = np.diff(np.concatenate([[0.0], below, [1.0]]))
        np.add.at(found[:, c], [one.decision for one in rule], prior * mass)
    return found


def exact_risk(fitted: Fitted, loss: Loss) -> float | None:
    """The least risk if the generative model were true, for one column whose distribution is known exactly: listed
    values, bins, or a family with a cumulative distribution; None for others."""
    if fitted.generative.schema.width != 1:
        return None
    try:
        values = values_of(fitted, 0)
        if values.kind != "continuous":
            joint = np.exp(log_joint_of(fitted.generative, [values]))
            return (
                float(compute_risks(joint, loss).min(axis=1).sum()) if abs(joint.sum() - 1.0) < MAX_AREA_ERROR else None
            )
        curves = curves_of_column(fitted, 0, loss, tuned=False)
    except UsageError:  # texts, dates, and columns without cells
        return None
    areas = (
        compute_areas(curves.best, curves.joint, curves.x, len(loss.matrix))
        if curves.areas is None
        else curves.areas[1]
    )
    return float((loss.matrix * areas).sum()) if abs(areas.sum() - 1.0) < MAX_AREA_ERROR else None


def _drawn_model(fitted: Fitted, columns: int, tuned: bool = True) -> Model:
    """The model whose posteriors are drawn over so many columns: of a model that has others, the generative one."""
    if tuned and fitted.is_tuned and fitted.model.schema.width == columns:
        return fitted.model
    return fitted.generative


def joint_of(fitted: Fitted, columns: Sequence[ColumnValues], points: Floats, tuned: bool = True) -> Floats:
    """Prior times density of each class, at points (point by column).

    Each column has the family that the model uses for it. Of a tuned model that has just these columns, it is its
    posterior times that density. Where it has others, weights and biases are left out: they are tuned for rows in which
    all columns are there.
    """
    cells = {one.column: pa.array(points[:, k]) for k, one in enumerate(columns)}
    model, generative = _drawn_model(fitted, len(columns), tuned), fitted.generative
    table = table_of_columns(model.schema, cells, len(points))
    posterior, _ = log_normalize(model.log_joint(table), model.log_prior)
    log_joint = generative.log_joint(table)
    _, log_density = log_normalize(log_joint, generative.log_prior)
    unseen = (log_joint == generative.log_prior).all(axis=1) & (len(columns) == 1)  # in no bin that has cells
    return posterior * np.where(unseen, 0.0, np.exp(log_density))[:, None]


def _intervals(result: BayesError, halfway: bool = False) -> list[Interval]:
    """The regions of a result; those of single values meet halfway between these."""
    decisions = list(result.loss.decisions or ())
    edges = [region.low - (0.5 if halfway else 0.0) for region in result.regions[1:]]
    return join_intervals(edges, [decisions.index(region.decision) for region in result.regions])


def _bars(values: Floats, joint: Floats) -> tuple[Floats, Floats]:
    """Single values as bars of height probability / width, whose neighbors touch: both sides of each bar."""
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
            raise UsageError(
                f"the model has {width} columns",
                remedy=("name the one or the two that are to be drawn in ", Argument("columns")),
            )
        return np.arange(width)
    several = columns if isinstance(columns, list | tuple | np.ndarray) else [columns]
    if len(several) not in (1, 2):
        raise UsageError("give one column, or two", parameter=Argument("columns", columns))
    return np.array([column_place(fitted, column) for column in several])
