"""One dimension: where each decision is taken, and the areas under curves."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from deciban.decisions.decide import risks
from deciban.decisions.loss import Loss
from deciban.errors import Argument, UsageError
from deciban.util.arrays import Floats, Integers

# Each round finds the points where the decision changes so many times as exactly, and there are so many rounds.
ZOOM, ZOOM_ROUNDS = 33, 5


class Interval(NamedTuple):
    """From where to where a decision, known by its place among those of the loss, is taken."""

    low: float
    high: float
    decision: int


def intervals(edges: Sequence[float], decisions: Sequence[int]) -> list[Interval]:
    """The intervals between rising edges; neighbors of one decision are one."""
    found: list[Interval] = []
    for (low, high), place in zip(pairwise([-np.inf, *edges, np.inf]), decisions, strict=True):
        if found and found[-1].decision == place:
            low = found.pop().low
        found.append(Interval(float(low), float(high), int(place)))
    return found


def best_intervals(joint_at: Callable[[Floats], Floats], x: Floats, loss: Loss) -> list[Interval]:
    """Where each decision has the least risk, from joint densities as a function of points, and a grid of these.

    Where no class has a density, the decision of the points before goes on: nothing ever lies there.
    """
    joint = joint_at(x)
    known = np.flatnonzero(joint.max(axis=1) > 0.0)
    if not known.size:
        known = np.arange(x.size)
    chosen = least_risk(joint[known], loss)
    changes = np.flatnonzero(np.diff(chosen))
    edges = [_edge(joint_at, loss, float(x[known[k]]), float(x[known[k + 1]]), int(chosen[k])) for k in changes]
    return intervals(edges, [chosen[0], *chosen[changes + 1]])


def value_intervals(values: Floats, joint: Floats, loss: Loss) -> list[Interval]:
    """The same for single values: a decision changes halfway between two of them."""
    chosen = least_risk(joint, loss)
    changes = np.flatnonzero(np.diff(chosen))
    return intervals((0.5 * (values[changes] + values[changes + 1])).tolist(), [chosen[0], *chosen[changes + 1]])


def given_intervals(
    joint: Floats, x: Floats, loss: Loss, boundaries: Sequence[float], decisions: Sequence[Any] | None
) -> list[Interval]:
    """The intervals between boundaries that are given; without decisions, each takes that of least risk in it."""
    edges = sorted(float(edge) for edge in boundaries)
    if not np.isfinite(edges).all():
        raise UsageError("give finite numbers", parameter=Argument("boundaries", list(boundaries)))
    if decisions is not None and len(decisions) != len(edges) + 1:
        raise UsageError(f"{len(edges)} boundaries make {len(edges) + 1} intervals", remedy="give as many decisions")
    if decisions is not None:
        return intervals(edges, [loss.decision_index(decision) for decision in decisions])
    inside = [joint[(x >= low) & (x <= high)] for low, high in pairwise([-np.inf, *edges, np.inf])]
    return intervals(edges, least_risk(np.stack([part.sum(axis=0) for part in inside]), loss).tolist())


def least_risk(joint: Floats, loss: Loss) -> Integers:
    """The place of the decision of least risk for each row; risks are linear, so rows need not sum to 1."""
    return np.asarray(risks(joint, loss).argmin(axis=1))


def _edge(joint_at: Callable[[Floats], Floats], loss: Loss, low: float, high: float, first: int) -> float:
    """Where between two points the first decision ends."""
    for _ in range(ZOOM_ROUNDS):
        some = np.linspace(low, high, ZOOM)
        joint = joint_at(some[1:-1])
        other = np.flatnonzero((least_risk(joint, loss) != first) & (joint.max(axis=1) > 0.0))
        place = int(other[0]) + 1 if other.size else ZOOM - 1
        low, high = float(some[place - 1]), float(some[place])
    return 0.5 * (low + high)


def decision_at(rule: Sequence[Interval], x: Floats) -> Integers:
    """The place of the decision at each point; at an edge, that on its right."""
    edges = [one.low for one in rule[1:]]
    return np.array([one.decision for one in rule])[np.searchsorted(edges, x, side="right")]


def areas_of(rule: Sequence[Interval], joint: Floats, x: Floats, decisions: int) -> Floats:
    """The area under the curve of each class where each decision is taken, decision by class."""
    found = np.zeros((decisions, joint.shape[1]))
    for one in rule:
        inside = (x >= one.low) & (x <= one.high)
        if np.count_nonzero(inside) > 1:
            found[one.decision] += np.trapezoid(joint[inside], x[inside], axis=0)
    return found
