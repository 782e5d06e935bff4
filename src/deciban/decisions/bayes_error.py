"""The least possible error, and what of an error could be avoided."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy

from deciban.arrays import Floats
from deciban.decisions.loss import Loss
from deciban.decisions.priors import log_prior
from deciban.errors import UsageError

# Points on which the decision is looked up before its boundaries are found exactly.
GRID = 4001

# Values of discrete distributions that are enumerated, and regions that are printed.
MOST_VALUES = 10_000_000
MOST_LINES = 12


@dataclass(frozen=True)
class Region:
    """An interval in which one decision is taken, and the probability of each truth in it (joint with its prior)."""

    low: float
    high: float
    decision: Any
    areas: Floats


@dataclass(frozen=True)
class BayesError:
    """The expected loss of a rule; for zero-one loss that is its error.

    risk: of this rule. least: of the best rule, the Bayes risk. regions, boundaries: in one dimension.
    interval: where it was simulated, between which bounds it lies with 95 %. bounds: of two Gaussians, from above.
    """

    risk: float
    least: float
    loss: Loss
    regions: tuple[Region, ...] = ()
    interval: tuple[float, float] | None = None
    bounds: dict[str, float] | None = None

    @property
    def error(self) -> float:
        """The risk, where every mistake costs 1."""
        if not self.loss.is_zero_one:
            raise UsageError("with this loss there is no error, only a risk; ask for .risk")
        return self.risk

    @property
    def avoidable(self) -> float:
        """What the rule costs beyond the best one."""
        return max(self.risk - self.least, 0.0)

    @property
    def boundaries(self) -> tuple[float, ...]:
        return tuple(region.low for region in self.regions[1:])

    @property
    def areas(self) -> Floats:
        """The probability of each decision with each truth; off the matching places these are the error areas."""
        if not self.regions:
            raise UsageError("areas are known in one dimension; in more only the risk is simulated")
        decisions = list(self.loss.decisions or ())
        total = np.zeros((len(decisions), len(self.loss.classes or ())))
        for region in self.regions:
            total[decisions.index(region.decision)] += region.areas
        return total

    def __str__(self) -> str:
        name = "error" if self.loss.is_zero_one else "risk"
        lines = [
            f"{name} {self.risk:.6g}" + (f", of which {self.avoidable:.6g} is avoidable" if self.avoidable else "")
        ]
        if self.interval is not None:
            lines[0] += f" (between {self.interval[0]:.6g} and {self.interval[1]:.6g} with 95 %)"
        lines += [f"  {r.low:.6g} to {r.high:.6g}: decide {r.decision}" for r in self.regions[:MOST_LINES]]
        if len(self.regions) > MOST_LINES:
            lines.append(f"  ({len(self.regions) - MOST_LINES} more regions)")
        lines += [f"  {bound} bound {value:.6g}" for bound, value in (self.bounds or {}).items()]
        return "\n".join(lines)


def bayes_error(
    distributions: Sequence[Any],
    priors: Sequence[float] | None = None,
    loss: Any = None,
    *,
    classes: Sequence[Any] | None = None,
    boundaries: Sequence[float] | None = None,
    decisions: Sequence[Any] | None = None,
    samples: int = 200_000,
    random_state: int = 0,
) -> BayesError:
    """The Bayes risk of known class-conditional distributions.

    distributions: frozen distributions of SciPy, one for each class: in one dimension the result is exact, in more it
        is simulated (Gaussians get bounds as well).
    priors: of the classes; equal ones without. loss: whatever `Loss.of` takes; None is zero-one: the risk is the error.
    boundaries, decisions: a rule to judge instead of the best one, in one dimension: the decision in each interval,
        from the left; without decisions the best one of each interval.

    >>> from scipy.stats import norm
    >>> found = bayes_error([norm(15, 4), norm(25, 4)], [0.75, 0.25], classes=["a", "b"])
    >>> print(found)
    error 0.086378
      -inf to 21.7578: decide a
      21.7578 to inf: decide b
    """
    if isinstance(distributions, Mapping) or not isinstance(distributions, Sequence) or len(distributions) < 2:
        raise UsageError("give the distributions of at least two classes, as a list")
    labels = tuple(range(len(distributions))) if classes is None else tuple(classes)
    if len(labels) != len(distributions):
        raise UsageError(f"{len(labels)} classes for {len(distributions)} distributions; give one for each")
    prior = _checked_priors(priors, labels)
    loss_for_classes = (Loss.zero_one(labels) if loss is None else Loss.of(loss)).for_classes(labels)
    kinds = {_kind(distribution) for distribution in distributions}
    if len(kinds) > 1:
        raise UsageError(f"the distributions are {' and '.join(sorted(kinds))}; give distributions of one kind")
    edges = _checked_edges(boundaries, decisions)
    if kinds == {"of several dimensions"}:
        if edges is not None:
            raise UsageError("boundaries= is for one dimension")
        if samples < 100:
            raise UsageError(f"samples={samples}: give at least 100 to simulate with")
        return _simulated(distributions, prior, loss_for_classes, samples, random_state)
    if kinds == {"discrete"}:
        return _enumerated(distributions, prior, loss_for_classes, edges, decisions)
    best = _regions(
        distributions, prior, loss_for_classes, _best_boundaries(distributions, prior, loss_for_classes), None
    )
    least = _risk(best, loss_for_classes)
    if edges is None:
        return BayesError(least, least, loss_for_classes, _with_mass(best))
    regions = _regions(distributions, prior, loss_for_classes, edges, decisions)
    return BayesError(_risk(regions, loss_for_classes), least, loss_for_classes, regions)


def _checked_priors(priors: Any, classes: tuple[Any, ...]) -> Floats:
    if priors is None:
        return np.full(len(classes), 1.0 / len(classes))
    return np.exp(log_prior(priors, np.array(classes), np.ones(len(classes))))


def _checked_edges(boundaries: Any, decisions: Any) -> list[float] | None:
    if boundaries is None:
        if decisions is not None:
            raise UsageError("decisions= says what is decided between boundaries=; give these too")
        return None
    try:
        edges = sorted(float(edge) for edge in boundaries)
    except (TypeError, ValueError):
        raise UsageError(f"boundaries={boundaries!r}: give a list of numbers") from None
    if not np.isfinite(edges).all():
        raise UsageError(f"boundaries={boundaries!r}: give finite numbers")
    if decisions is not None and len(decisions) != len(edges) + 1:
        raise UsageError(f"{len(edges)} boundaries make {len(edges) + 1} intervals; give as many decisions")
    return edges


def _kind(distribution: Any) -> str:
    """What is to be done with a distribution."""
    if hasattr(distribution, "dim") and hasattr(distribution, "logpdf"):
        return "of several dimensions"
    inner = getattr(distribution, "dist", distribution)
    if hasattr(inner, "pmf") and hasattr(distribution, "ppf"):
        return "discrete"
    if hasattr(distribution, "logpdf") and hasattr(distribution, "ppf"):
        return "continuous"
    raise UsageError(f"{distribution!r} is no distribution to work with; give frozen ones, as scipy.stats.norm(0, 1)")


def _with_mass(regions: Sequence[Region]) -> tuple[Region, ...]:
    """Without the regions where nothing ever lies: they join their neighbours."""
    kept: list[Region] = []
    for region in regions:
        empty = not region.areas.sum() > 1e-14
        if kept and (empty or not kept[-1].areas.sum() > 1e-14 or kept[-1].decision == region.decision):
            last = kept.pop()
            decision = last.decision if empty else region.decision
            region = Region(last.low, region.high, decision, last.areas + region.areas)
        kept.append(region)
    return tuple(kept)


def _log_joint(distributions: Sequence[Any], prior: Floats, x: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.stack([d.logpdf(x) for d in distributions], axis=-1) + np.log(prior)


def _risks(distributions: Sequence[Any], prior: Floats, loss: Loss, x: Floats) -> Floats:
    """The expected loss of each decision at x, up to a factor that is the same for all."""
    joint = _log_joint(distributions, prior, np.atleast_1d(x))
    highest = joint.max(axis=-1, keepdims=True)
    scaled = np.where(np.isfinite(highest), np.exp(joint - np.where(np.isfinite(highest), highest, 0.0)), 0.0)
    return np.asarray(scaled @ loss.matrix.T)


def _best_boundaries(distributions: Sequence[Any], prior: Floats, loss: Loss) -> list[float]:
    """Where the decision of least risk changes."""
    grid = _grid(distributions, prior)
    least = _risks(distributions, prior, loss, grid).argmin(axis=1)
    edges = []
    for k in np.flatnonzero(np.diff(least)):
        a, b = int(least[k]), int(least[k + 1])

        def difference(x: float, a: int = a, b: int = b) -> float:
            risks = _risks(distributions, prior, loss, np.array([x]))[0]
            return float(risks[a] - risks[b])

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
        if _risks(distributions, prior, loss, np.array([middle]))[0].argmin() == first:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


def _grid(distributions: Sequence[Any], prior: Floats) -> Floats:
    """Points that are dense wherever one of the distributions lives, and between them."""
    tails = np.concatenate(
        [np.logspace(-14, -3, 200), np.linspace(1e-3, 1 - 1e-3, GRID), 1 - np.logspace(-3, -14, 200)]
    )
    points = [d.ppf(tails) for d in distributions]
    spread = np.concatenate(points)
    spread = spread[np.isfinite(spread)]
    between = np.linspace(spread.min(), spread.max(), GRID)
    edges = [float(edge) for d in distributions for edge in d.support() if np.isfinite(edge)]
    near = [edge + side * 1e-12 * max(abs(edge), 1.0) for edge in edges for side in (-1.0, 1.0)]
    return np.unique(np.concatenate([spread, between, near]))


def _regions(
    distributions: Sequence[Any], prior: Floats, loss: Loss, edges: Sequence[float], decisions: Sequence[Any] | None
) -> tuple[Region, ...]:
    """The intervals between the edges; without decisions each takes the one of least risk in it."""
    ends = [-np.inf, *edges, np.inf]
    regions: list[Region] = []
    for k in range(len(ends) - 1):
        low, high = float(ends[k]), float(ends[k + 1])
        areas = np.array([_mass(d, low, high) for d in distributions]) * prior
        if decisions is None:
            decision = (loss.decisions or ())[int((loss.matrix @ areas).argmin())]
        else:
            decision = (loss.decisions or ())[loss.place("decision", decisions[k])]
        if regions and regions[-1].decision == decision:
            last = regions.pop()
            low, areas = last.low, areas + last.areas
        regions.append(Region(low, high, decision, areas))
    return tuple(regions)


def _mass(distribution: Any, low: float, high: float) -> float:
    """The probability of an interval, from the side where it is known better."""
    if low > distribution.median():
        return float(distribution.sf(low) - distribution.sf(high))
    return float(distribution.cdf(high) - distribution.cdf(low))


def _risk(regions: Sequence[Region], loss: Loss) -> float:
    decisions = list(loss.decisions or ())
    return float(sum(loss.matrix[decisions.index(region.decision)] @ region.areas for region in regions))


def _enumerated(
    distributions: Sequence[Any], prior: Floats, loss: Loss, edges: list[float] | None, decisions: Sequence[Any] | None
) -> BayesError:
    """Discrete distributions, value by value as far as they reach."""
    values = np.unique(np.concatenate([_support(distribution) for distribution in distributions]))
    joint = np.stack([d.pmf(values) for d in distributions], axis=1) * prior
    if abs(joint.sum() - 1.0) > 1e-6:
        raise UsageError("the values of these distributions cannot be enumerated: their probabilities do not sum to 1")
    named = loss.decisions or ()
    best = (joint @ loss.matrix.T).argmin(axis=1)
    least = float((loss.matrix[best] * joint).sum())
    chosen = best
    if edges is not None:
        interval = np.searchsorted(edges, values, side="right")
        if decisions is not None:
            rule = np.array([loss.place("decision", decision) for decision in decisions])
        else:
            sums = np.stack([joint[interval == k].sum(axis=0) for k in range(len(edges) + 1)])
            rule = (sums @ loss.matrix.T).argmin(axis=1)
        chosen = rule[interval]
    starts = np.concatenate([[0], np.flatnonzero(np.diff(chosen)) + 1, [values.size]])
    regions = tuple(
        Region(float(values[a]), float(values[b - 1]), named[chosen[a]], joint[a:b].sum(axis=0))
        for a, b in pairwise(starts)
    )
    return BayesError(_risk(regions, loss), least, loss, regions)


def _support(distribution: Any) -> Floats:
    """The values of a discrete distribution that have any probability to speak of."""
    listed = getattr(distribution, "xk", getattr(getattr(distribution, "dist", None), "xk", None))
    if listed is not None:
        return np.asarray(listed, dtype=np.float64)
    low, high = (float(end) for end in distribution.support())
    low = low if np.isfinite(low) else float(distribution.ppf(1e-15))
    high = min(high, float(distribution.isf(1e-15)) + 1.0)
    if not high - low < MOST_VALUES:
        raise UsageError(f"a discrete distribution reaches from {low:g} to {high:g}: too far to enumerate")
    return low + np.arange(0.0, high - low + 1.0)


def _simulated(distributions: Sequence[Any], prior: Floats, loss: Loss, samples: int, seed: int) -> BayesError:
    """By drawing from each class as often as its prior says: the mean of the least conditional risk."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(prior.size, size=samples, p=prior)
    joint = np.empty((samples, prior.size))
    for c, distribution in enumerate(distributions):
        here = np.flatnonzero(labels == c)
        if here.size:
            drawn = np.asarray(distribution.rvs(here.size, random_state=rng)).reshape(here.size, -1)
            joint[here] = _log_joint(distributions, prior, drawn)
    posterior = np.exp(joint - joint.max(axis=1, keepdims=True))
    posterior /= posterior.sum(axis=1, keepdims=True)
    mean, interval = mean_with_interval((posterior @ loss.matrix.T).min(axis=1))
    bounds = None
    if prior.size == 2 and loss.is_zero_one and all(hasattr(d, "cov") and hasattr(d, "mean") for d in distributions):
        with suppress(np.linalg.LinAlgError):  # a matrix without inverse has no bounds
            bounds = gaussian_bounds(distributions, prior)
    return BayesError(mean, mean, loss, interval=interval, bounds=bounds)


def mean_with_interval(values: Floats) -> tuple[float, tuple[float, float]]:
    """The mean of independent values, and between which bounds that of all lies with 95 %."""
    mean = float(values.mean())
    half = float(scipy.special.ndtri(0.975)) * float(values.std(ddof=1)) / np.sqrt(values.size)
    return mean, (mean - half, mean + half)


def gaussian_bounds(distributions: Sequence[Any], prior: Floats) -> dict[str, float]:
    """The Bhattacharyya and the Chernoff bound of the error of two Gaussians."""
    mean = [np.atleast_1d(d.mean) for d in distributions]
    cov = [np.atleast_2d(d.cov_object.covariance if hasattr(d, "cov_object") else d.cov) for d in distributions]

    def bound(s: float) -> float:
        mixed = s * cov[1] + (1.0 - s) * cov[0]
        away = mean[1] - mean[0]
        distance = 0.5 * s * (1.0 - s) * away @ np.linalg.solve(mixed, away)
        logs = [np.linalg.slogdet(matrix)[1] for matrix in (mixed, *cov)]
        distance += 0.5 * (logs[0] - (1.0 - s) * logs[1] - s * logs[2])
        return float(prior[0] ** s * prior[1] ** (1.0 - s) * np.exp(-distance))

    best: Any = scipy.optimize.minimize_scalar(
        bound, bounds=(1e-6, 1.0 - 1e-6), method="bounded", options={"xatol": 1e-10}
    )
    return {"Bhattacharyya": bound(0.5), "Chernoff": float(min(best.fun, bound(0.5)))}
