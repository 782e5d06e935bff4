"""Decision regions in one dimension, and the areas under the class densities in them."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from deciban.decisions.decide import compute_risks
from deciban.decisions.loss import Loss
from deciban.errors import Argument, UsageError
from deciban.util.arrays import Floats, Integers

# Points per round of the search for a boundary: each round narrows the interval by a factor of 32.
ZOOM = 33

# Five rounds narrow the interval by 32**5, beyond what a plot can show.
ZOOM_ROUNDS = 5


class Interval(NamedTuple):
    """Interval in which one decision is taken; `decision` is its index in the loss."""

    low: float
    high: float
    decision: int


def join_intervals(edges: Sequence[float], decisions: Sequence[int]) -> list[Interval]:
    """Return the intervals between ascending edges; neighbors with the same decision are joined."""
    found: list[Interval] = []
    for (low, high), place in zip(pairwise([-np.inf, *edges, np.inf]), decisions, strict=True):
        if found and found[-1].decision == place:
            low = found.pop().low
        found.append(Interval(float(low), float(high), int(place)))
    return found


def find_best_intervals(joint_at: Callable[[Floats], Floats], x: Floats, loss: Loss) -> list[Interval]:
    """Return the intervals in which each decision has the least risk.

    `joint_at` returns the joint density of each class at given points, `x` is a grid of points. Where no class has a
    density, the decision to the left continues.
    """
    joint = joint_at(x)
    known = np.flatnonzero(joint.max(axis=1) > 0.0)
    if not known.size:
        known = np.arange(x.size)
    chosen = find_least_risk(joint[known], loss)
    changes = np.flatnonzero(np.diff(chosen))
    edges = [_find_edge(joint_at, loss, float(x[known[k]]), float(x[known[k + 1]]), int(chosen[k])) for k in changes]
    return join_intervals(edges, [chosen[0], *chosen[changes + 1]])


def find_value_intervals(values: Floats, joint: Floats, loss: Loss) -> list[Interval]:
    """Return the intervals with the least risk for discrete values; boundaries are halfway between values."""
    chosen = find_least_risk(joint, loss)
    changes = np.flatnonzero(np.diff(chosen))
    return join_intervals((0.5 * (values[changes] + values[changes + 1])).tolist(), [chosen[0], *chosen[changes + 1]])


def make_intervals(
    joint: Floats, x: Floats, loss: Loss, boundaries: Sequence[float], decisions: Sequence[Any] | None
) -> list[Interval]:
    """Return the intervals between given boundaries; without decisions, each interval takes the best one."""
    edges = sorted(float(edge) for edge in boundaries)
    if not np.isfinite(edges).all():
        raise UsageError("expected finite numbers", parameter=Argument("boundaries", list(boundaries)))
    if decisions is not None and len(decisions) != len(edges) + 1:
        raise UsageError(f"{len(edges)} boundaries make {len(edges) + 1} intervals", remedy="give as many decisions")
    if decisions is not None:
        return join_intervals(edges, [loss.decision_index(decision) for decision in decisions])
    inside = [joint[(x >= low) & (x <= high)] for low, high in pairwise([-np.inf, *edges, np.inf])]
    return join_intervals(edges, find_least_risk(np.stack([part.sum(axis=0) for part in inside]), loss).tolist())


def find_least_risk(joint: Floats, loss: Loss) -> Integers:
    """Return the index of the decision with the least risk for each row.

    Risks are linear in the posterior, so rows need not sum to 1.
    """
    return np.asarray(compute_risks(joint, loss).argmin(axis=1))


def _find_edge(joint_at: Callable[[Floats], Floats], loss: Loss, low: float, high: float, first: int) -> float:
    """Return the point between `low` and `high` at which the first decision ends."""
    for _ in range(ZOOM_ROUNDS):
        points = np.linspace(low, high, ZOOM)
        joint = joint_at(points[1:-1])
        other = np.flatnonzero((find_least_risk(joint, loss) != first) & (joint.max(axis=1) > 0.0))
        place = int(other[0]) + 1 if other.size else ZOOM - 1
        low, high = float(points[place - 1]), float(points[place])
    return 0.5 * (low + high)


def find_decisions(rule: Sequence[Interval], x: Floats) -> Integers:
    """Return the index of the decision at each point; at an edge, the one on its right."""
    edges = [interval.low for interval in rule[1:]]
    return np.array([interval.decision for interval in rule])[np.searchsorted(edges, x, side="right")]


def compute_areas(rule: Sequence[Interval], joint: Floats, x: Floats, decisions: int) -> Floats:
    """Return the area under the density of each class where each decision is taken, decision by class."""
    areas = np.zeros((decisions, joint.shape[1]))
    for interval in rule:
        inside = (x >= interval.low) & (x <= interval.high)
        if np.count_nonzero(inside) > 1:
            areas[interval.decision] += np.trapezoid(joint[inside], x[inside], axis=0)
    return areas
