"""Curves of prior times density and the decision intervals under them, for known distributions and for models."""

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
    compute_values_log_joint,
    find_allowed,
    find_column,
    find_group,
    get_column_values,
    make_table,
)
from deciban.model.fitted import Fitted
from deciban.model.model import Model, log_normalize
from deciban.util.arrays import Floats, Integers

# Points of a curve, enough for areas with five digits.
CURVE_POINTS = 2001

# Share of a class outside the curves.
BEYOND_CURVES = 1e-9

# Margin on either side of the cells of a column, as a share of their range.
MARGIN = 0.3

# Distances beyond the curves, in widths of the curves, at which boundaries are searched.
FAR_DISTANCES = np.logspace(-3.0, 3.0, 300)

# Boundaries are searched where the density exceeds this share of the highest density.
MIN_DENSITY = 1e-13

# Exact areas sum to 1 within this error.
MAX_AREA_ERROR = 1e-9


class Curves(NamedTuple):
    """Prior times density of each class at ascending points, the intervals of a rule, and those of the best rule.

    areas: exact areas under the curve of each class for each decision, of the rule and of the best rule; None if
    unknown.
    """

    x: Floats
    joint: Floats
    rule: list[Interval]
    best: list[Interval]
    discrete: bool
    areas: tuple[Floats, Floats] | None = None


def make_result_curves(result: BayesError) -> Curves:
    """Return the curves of known one-dimensional distributions."""
    assert result.prior is not None, "a result of bayes_error has its prior"
    best = bayes_error(
        result.distributions, result.prior.tolist(), result.loss, classes=list(result.loss.classes or ())
    )
    ends = [d.ppf([BEYOND_CURVES, 1.0 - BEYOND_CURVES]) for d in result.distributions]
    low, high = float(np.min(ends)), float(np.max(ends))
    if hasattr(getattr(result.distributions[0], "dist", result.distributions[0]), "pmf"):
        values = np.arange(low, high + 1.0)
        joint = np.stack([d.pmf(values) for d in result.distributions], axis=1) * result.prior
        rule, least = (_make_intervals(one, halfway=True) for one in (result, best))
        return Curves(*_make_bars(values, joint), rule, least, True)
    rule, least = (_make_intervals(one) for one in (result, best))
    x = _add_edges(np.linspace(low, high, CURVE_POINTS), rule, least)
    joint = np.exp(compute_log_joint(result.distributions, result.prior, x))
    return Curves(x, np.where(np.isfinite(joint), joint, 0.0), rule, least, False)


def make_column_curves(
    fitted: Fitted,
    column: int,
    loss: Loss,
    boundaries: Sequence[float] | None = None,
    decisions: Sequence[Any] | None = None,
    tuned: bool = True,
) -> Curves:
    """Return the curves of a column of a model; without `tuned`, of its generative model."""
    values = get_column_values(fitted, column, CURVE_POINTS)
    if values.numbers is None or values.dates:
        raise UsageError(f"the column {values.name!r} is not numeric", remedy="choose a numeric column")
    if values.kind != "continuous":
        joint = compute_joint(fitted, [values], values.numbers[:, None], tuned)
        joint = joint / max(float(joint.sum()), 1e-300)
        best = find_value_intervals(values.numbers, joint, loss)
        rule = best if boundaries is None else make_intervals(joint, values.numbers, loss, boundaries, decisions)
        return Curves(*_make_bars(values.numbers, joint), rule, best, True)
    room = MARGIN * float(values.numbers[-1] - values.numbers[0])
    home = find_group(fitted.generative, column)
    assert home is not None, "it has values"
    marks = home[1].curve_points(home[2])  # for bins, only these have a density
    ends = (min(values.numbers[0] - room, *marks), max(values.numbers[-1] + room, *marks))
    x = np.unique(np.concatenate([np.linspace(*ends, CURVE_POINTS), values.numbers, marks]))
    x = x[find_allowed(fitted.model, column, x)]

    def joint_at(points: Floats) -> Floats:
        return compute_joint(fitted, [values], points[:, None], tuned)

    beyond = FAR_DISTANCES * (x[-1] - x[0])
    far = np.concatenate([x[0] - beyond, x[-1] + beyond])
    far = far[find_allowed(fitted.model, column, far)]
    far = far[joint_at(far).max(axis=1) > MIN_DENSITY * joint_at(x).max()]
    best = find_best_intervals(joint_at, np.unique(np.concatenate([x, far])), loss)
    rule = best if boundaries is None else make_intervals(joint_at(x), x, loss, boundaries, decisions)
    x = _add_edges(x, rule, best)
    areas = None
    if _choose_model(fitted, 1, tuned) is fitted.generative:
        exact = [compute_exact_areas(one, fitted.generative, column, len(loss.matrix)) for one in (rule, best)]
        areas = None if exact[0] is None or exact[1] is None else (exact[0], exact[1])
    return Curves(x, joint_at(x), rule, best, False, areas)


def compute_exact_areas(rule: Sequence[Interval], model: Model, column: int, decisions: int) -> Floats | None:
    """Return the joint probability of each decision and class, from the cumulative distribution function of a column.

    None if its family has no such function.
    """
    home = find_group(model, column)
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


def compute_exact_risk(fitted: Fitted, loss: Loss) -> float | None:
    """Return the Bayes risk of the generative model of a single column, or None if it cannot be computed exactly.

    It is exact for listed values, bins, and families with a cumulative distribution function.
    """
    if fitted.generative.schema.width != 1:
        return None
    try:
        values = get_column_values(fitted, 0)
        if values.kind != "continuous":
            joint = np.exp(compute_values_log_joint(fitted.generative, [values]))
            return (
                float(compute_risks(joint, loss).min(axis=1).sum()) if abs(joint.sum() - 1.0) < MAX_AREA_ERROR else None
            )
        curves = make_column_curves(fitted, 0, loss, tuned=False)
    except UsageError:  # texts, dates, and columns without cells
        return None
    areas = (
        compute_areas(curves.best, curves.joint, curves.x, len(loss.matrix))
        if curves.areas is None
        else curves.areas[1]
    )
    return float((loss.matrix * areas).sum()) if abs(areas.sum() - 1.0) < MAX_AREA_ERROR else None


def _choose_model(fitted: Fitted, columns: int, tuned: bool = True) -> Model:
    """Return the tuned model if it has exactly this number of columns, else the generative model."""
    if tuned and fitted.is_tuned and fitted.model.schema.width == columns:
        return fitted.model
    return fitted.generative


def compute_joint(fitted: Fitted, columns: Sequence[ColumnValues], points: Floats, tuned: bool = True) -> Floats:
    """Return prior times density of each class at points (point by column).

    Each column has the family that the model uses. A tuned model with exactly these columns contributes its posterior
    times that density. With more columns, weights and biases are omitted: they are tuned for complete rows.
    """
    cells = {one.column: pa.array(points[:, k]) for k, one in enumerate(columns)}
    model, generative = _choose_model(fitted, len(columns), tuned), fitted.generative
    table = make_table(model.schema, cells, len(points))
    posterior, _ = log_normalize(model.log_joint(table), model.log_prior)
    log_joint = generative.log_joint(table)
    _, log_density = log_normalize(log_joint, generative.log_prior)
    unseen = (log_joint == generative.log_prior).all(axis=1) & (len(columns) == 1)  # in an empty bin
    return posterior * np.where(unseen, 0.0, np.exp(log_density))[:, None]


def _make_intervals(result: BayesError, halfway: bool = False) -> list[Interval]:
    """Return the regions of a result; regions of discrete values meet halfway between values."""
    decisions = list(result.loss.decisions or ())
    edges = [region.low - (0.5 if halfway else 0.0) for region in result.regions[1:]]
    return join_intervals(edges, [decisions.index(region.decision) for region in result.regions])


def _make_bars(values: Floats, joint: Floats) -> tuple[Floats, Floats]:
    """Return both sides of a bar for each value, with height probability / width; neighboring bars touch."""
    middle = 0.5 * (values[1:] + values[:-1])
    ends = np.array([1.5 * values[0] - 0.5 * values[1], 1.5 * values[-1] - 0.5 * values[-2]]) if values.size > 1 else (
        values[0] + np.array([-0.5, 0.5])
    )  # fmt: skip
    edges = np.concatenate([ends[:1], middle, ends[1:]])
    sides = np.stack([edges[:-1], edges[1:]], axis=1).ravel()
    return sides, np.repeat(joint / np.diff(edges)[:, None], 2, axis=0)


def _add_edges(x: Floats, *rules: list[Interval]) -> Floats:
    """Return the points, with the boundaries of the rules added."""
    edges = [one.low for rule in rules for one in rule[1:]]
    inside = [edge for edge in edges if x[0] < edge < x[-1]]
    return np.unique(np.concatenate([x, inside]))


def find_columns(fitted: Fitted, columns: Any) -> Integers:
    """Return the positions of the one or two columns of a decision plot."""
    width = fitted.counts.schema.width
    if columns is None:
        if width > 2:
            raise UsageError(
                f"the model has {width} columns",
                remedy=("choose one or two with ", Argument("columns")),
            )
        return np.arange(width)
    several = columns if isinstance(columns, list | tuple | np.ndarray) else [columns]
    if len(several) not in (1, 2):
        raise UsageError("expected one or two columns", parameter=Argument("columns", columns))
    return np.array([find_column(fitted, column) for column in several])
