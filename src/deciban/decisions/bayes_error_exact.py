"""The least possible error in one dimension: by integration, or value by value."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import scipy

from deciban.decisions.bayes_error_result import BayesError, Region
from deciban.decisions.loss import Loss
from deciban.decisions.policy import risks
from deciban.errors import UsageError
from deciban.model.posterior import posteriors
from deciban.util.arrays import Floats, Integers, log

# Points on which the decision is looked up before its boundaries are found exactly.
GRID_POINTS = 4001

# Values of discrete distributions that are enumerated.
MOST_VALUES = 10_000_000

# Regions of less probability than this are joined to their neighbours.
LEAST_AREA = 1e-14


def integrated(
    distributions: Sequence[Any], prior: Floats, loss: Loss, edges: list[float] | None, decisions: Sequence[Any] | None
) -> BayesError:
    """The risk of continuous distributions: of the best rule, or of the one with these edges and decisions."""
    best_edges = _best_boundaries(distributions, prior, loss)
    best = _regions(distributions, prior, loss, best_edges, None)
    least = _risk(best, loss)
    if edges is None:
        return BayesError(least, least, loss, _with_mass(best))
    regions = _regions(distributions, prior, loss, edges, decisions)
    return BayesError(_risk(regions, loss), least, loss, regions)


def enumerated(
    distributions: Sequence[Any], prior: Floats, loss: Loss, edges: list[float] | None, decisions: Sequence[Any] | None
) -> BayesError:
    """The same for discrete distributions, value by value as far as they reach."""
    values = np.unique(np.concatenate([_support(distribution) for distribution in distributions]))
    joint = np.stack([d.pmf(values) for d in distributions], axis=1) * prior
    if abs(joint.sum() - 1.0) > 1e-6:
        raise UsageError("the values of these distributions cannot be enumerated: their probabilities do not sum to 1")
    chosen = best = _least_risk(joint, loss)
    least = float((loss.matrix[best] * joint).sum())
    if edges is not None:
        interval = np.searchsorted(edges, values, side="right")
        if decisions is not None:
            rule = np.array([loss.place("decision", decision) for decision in decisions])
        else:
            rule = _least_risk(np.stack([joint[interval == k].sum(axis=0) for k in range(len(edges) + 1)]), loss)
        chosen = rule[interval]
    named = loss.decisions or ()
    starts = np.concatenate([[0], np.flatnonzero(np.diff(chosen)) + 1, [values.size]])
    regions = tuple(
        Region(float(values[a]), float(values[b - 1]), named[chosen[a]], joint[a:b].sum(axis=0))
        for a, b in pairwise(starts)
    )
    return BayesError(_risk(regions, loss), least, loss, regions)


def log_joint(distributions: Sequence[Any], prior: Floats, x: Floats) -> Floats:
    """log prior + log density of each class at each x."""
    with np.errstate(divide="ignore"):  # some take the logarithm of a density of 0
        return np.stack([d.logpdf(x) for d in distributions], axis=-1) + np.log(prior)


def _posterior(distributions: Sequence[Any], prior: Floats, x: Floats) -> Floats:
    """The posterior at each x; 0 of all classes where none has a density, or one an infinite one."""
    joint = log_joint(distributions, prior, x)
    usable = np.isfinite(joint.max(axis=1))
    posterior = np.zeros_like(joint)
    posterior[usable] = posteriors(joint[usable], log(prior))
    return posterior


def _least_risk(joint: Floats, loss: Loss) -> Integers:
    """The decision of least risk of each row; risks are linear in the posterior, so the rows need not sum to 1."""
    return np.asarray(risks(joint, loss).argmin(axis=1))


def _best_boundaries(distributions: Sequence[Any], prior: Floats, loss: Loss) -> list[float]:
    """Where the decision of least risk changes."""
    grid = _grid(distributions)
    least = _least_risk(_posterior(distributions, prior, grid), loss)
    edges = []
    for k in np.flatnonzero(np.diff(least)):
        a, b = int(least[k]), int(least[k + 1])

        def difference(x: float, a: int = a, b: int = b) -> float:
            found = risks(_posterior(distributions, prior, np.array([x])), loss)[0]
            return float(found[a] - found[b])

        low, high = float(grid[k]), float(grid[k + 1])
        if difference(low) < 0.0 < difference(high):
            edges.append(float(scipy.optimize.brentq(difference, low, high, xtol=1e-13, rtol=1e-14)))
        else:  # a jump, as at the edge of a support
            edges.append(_jump(distributions, prior, loss, low, high, a))
    return edges


def _jump(distributions: Sequence[Any], prior: Floats, loss: Loss, low: float, high: float, first: int) -> float:
    """Where a decision ends that does not end at equal risks, by bisection."""
    for _ in range(200):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        if _least_risk(_posterior(distributions, prior, np.array([middle])), loss)[0] == first:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


def _grid(distributions: Sequence[Any]) -> Floats:
    """Points that are dense wherever one of the distributions has mass, and between them."""
    tails = np.concatenate(
        [np.logspace(-14, -3, 200), np.linspace(1e-3, 1 - 1e-3, GRID_POINTS), 1 - np.logspace(-3, -14, 200)]
    )
    spread = np.concatenate([d.ppf(tails) for d in distributions])
    spread = spread[np.isfinite(spread)]
    between = np.linspace(spread.min(), spread.max(), GRID_POINTS)
    edges = [float(edge) for d in distributions for edge in d.support() if np.isfinite(edge)]
    near = [edge + side * 1e-12 * max(abs(edge), 1.0) for edge in edges for side in (-1.0, 1.0)]
    return np.unique(np.concatenate([spread, between, near]))


def _regions(
    distributions: Sequence[Any], prior: Floats, loss: Loss, edges: Sequence[float], decisions: Sequence[Any] | None
) -> tuple[Region, ...]:
    """The intervals between the edges; without decisions each takes the one of least risk in it."""
    regions: list[Region] = []
    for k, (low, high) in enumerate(pairwise([-np.inf, *edges, np.inf])):
        areas = np.array([_mass(d, low, high) for d in distributions]) * prior
        place = int(_least_risk(areas[None], loss)[0]) if decisions is None else loss.place("decision", decisions[k])
        decision = (loss.decisions or ())[place]
        if regions and regions[-1].decision == decision:
            last = regions.pop()
            low, areas = last.low, areas + last.areas
        regions.append(Region(float(low), float(high), decision, areas))
    return tuple(regions)


def _with_mass(regions: Sequence[Region]) -> tuple[Region, ...]:
    """The regions without those in which nothing ever lies: they join their neighbours."""
    kept: list[Region] = []
    for region in regions:
        empty = not region.areas.sum() > LEAST_AREA
        if kept and (empty or not kept[-1].areas.sum() > LEAST_AREA or kept[-1].decision == region.decision):
            last = kept.pop()
            decision = last.decision if empty else region.decision
            region = Region(last.low, region.high, decision, last.areas + region.areas)
        kept.append(region)
    return tuple(kept)


def _mass(distribution: Any, low: float, high: float) -> float:
    """The probability of an interval, from the side where it is known better."""
    if low > distribution.median():
        return float(distribution.sf(low) - distribution.sf(high))
    return float(distribution.cdf(high) - distribution.cdf(low))


def _risk(regions: Sequence[Region], loss: Loss) -> float:
    """The expected loss of the decisions of the regions."""
    decisions = list(loss.decisions or ())
    return float(sum(loss.matrix[decisions.index(region.decision)] @ region.areas for region in regions))


def _support(distribution: Any) -> Floats:
    """The values of a discrete distribution that have more than a negligible probability."""
    listed = getattr(distribution, "xk", getattr(getattr(distribution, "dist", None), "xk", None))
    if listed is not None:
        return np.asarray(listed, dtype=np.float64)
    low, high = (float(end) for end in distribution.support())
    low = low if np.isfinite(low) else float(distribution.ppf(1e-15))
    high = min(high, float(distribution.isf(1e-15)) + 1.0)
    if not high - low < MOST_VALUES:
        raise UsageError(f"a discrete distribution reaches from {low:g} to {high:g}: too far to enumerate")
    return low + np.arange(0.0, high - low + 1.0)
