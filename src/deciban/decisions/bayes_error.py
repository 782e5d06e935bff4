"""The Bayes error of known distributions: the least possible risk, the regions of each decision, what is avoidable.

In one dimension it is integrated, or summed value by value; in several it is simulated.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import scipy

from deciban.decisions.decide import least_risk_decisions, risks
from deciban.decisions.loss import Loss
from deciban.decisions.regions import least_risk
from deciban.errors import Argument, UsageError
from deciban.model.model import posteriors
from deciban.model.priors import log_prior
from deciban.util.arrays import Floats, log

# Regions that are printed.
MAX_REGIONS_SHOWN = 12

# Fewer samples give no interval that could be trusted.
MIN_SAMPLES = 100

# Points on which the decision is looked up before its boundaries are found exactly.
GRID_POINTS = 4001

# Values of discrete distributions that are enumerated.
MAX_VALUES = 10_000_000

# Regions of less probability than this are joined to their neighbors.
MIN_AREA = 1e-14


@dataclass(frozen=True)
class Region:
    """An interval in which one decision is taken.

    Attributes
    ----------
    low, high : float
        Its ends.
    decision : object
        The decision that is taken in it.
    areas : ndarray of shape (n_classes,)
        The probability that a row of each class lies in it, joint with the prior of the class.
    """

    low: float
    high: float
    decision: Any
    areas: Floats


@dataclass(frozen=True)
class BayesError:
    """The expected loss of a rule under known distributions; for zero-one loss that is its error.

    Attributes
    ----------
    risk : float
        The expected loss of this rule.
    bayes_risk : float
        The expected loss of the best rule: the Bayes risk.
    loss : Loss
        What each decision costs under each truth.
    regions : tuple of Region
        In one dimension, the intervals from the left; otherwise none.
    interval : (float, float) or None
        Where the risk was simulated, the bounds between which it lies with 95 %.
    bounds : dict or None
        For two Gaussians in several dimensions, the Bhattacharyya and the Chernoff bound of the error, from above.
    distributions : tuple
        The distribution of each class.
    prior : ndarray of shape (n_classes,) or None
        The prior of each class.
    """

    risk: float
    bayes_risk: float
    loss: Loss
    regions: tuple[Region, ...] = ()
    interval: tuple[float, float] | None = None
    bounds: dict[str, float] | None = None
    distributions: tuple[Any, ...] = ()
    prior: Floats | None = None

    @property
    def error(self) -> float:
        """The risk, where every mistake costs 1."""
        if not self.loss.is_zero_one:
            raise UsageError("with this loss there is no error, only a risk", remedy="ask for .risk")
        return self.risk

    @property
    def avoidable(self) -> float:
        """The risk of the rule less that of the best one."""
        return max(self.risk - self.bayes_risk, 0.0)

    @property
    def boundaries(self) -> tuple[float, ...]:
        """The points at which the decision changes, in one dimension."""
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
        shown, more = self.regions[:MAX_REGIONS_SHOWN], len(self.regions) - MAX_REGIONS_SHOWN
        lines += [f"  {r.low:.6g} to {r.high:.6g}: decide {r.decision}" for r in shown]
        if more > 0:
            lines.append(f"  ({more} more regions)")
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
    n_samples: int = 200_000,
    random_state: int = 0,
) -> BayesError:
    """The Bayes risk of known class-conditional distributions, or the risk of a rule under them.

    In one dimension the result is exact, with the regions of each decision and the error areas. In several dimensions
    it is simulated and has an interval; two Gaussians also get the Bhattacharyya and the Chernoff bound.

    Parameters
    ----------
    distributions : sequence of frozen SciPy distributions
        One for each class, all continuous, all discrete, or all of several dimensions.
    priors : sequence of float or mapping from class to float, default=None
        The prior of each class. None: equal priors.
    loss : Loss or anything `Loss.from_costs` takes, default=None
        What each decision costs under each truth. None is zero-one loss: the risk is the error.
    classes : sequence of labels, default=None
        The classes. None: 0, 1, …
    boundaries : sequence of float, default=None
        A rule to evaluate instead of the best one, in one dimension: the points at which its decision changes.
    decisions : sequence of labels, default=None
        The decision in each interval between the boundaries, from the left. None: the best one in each.
    n_samples : int, default=200_000
        How many rows are drawn where the risk is simulated, at least 100.
    random_state : int, default=0
        The seed of the simulation.

    Returns
    -------
    BayesError
        The risk of the rule, the Bayes risk and, in one dimension, the regions of each decision.

    Raises
    ------
    UsageError
        If the distributions are of different kinds or cannot be enumerated, or something does not fit them.

    See Also
    --------
    BayesClassifier.bayes_error : The risk that a fitted model expects of itself.
    Loss : What mistakes cost.

    Examples
    --------
    >>> from scipy.stats import norm
    >>> from deciban import bayes_error
    >>> letters = [norm(15, 4), norm(25, 4)]
    >>> print(bayes_error(letters, [0.75, 0.25], classes=["a", "b"]))
    error 0.086378
      -inf to 21.7578: decide a
      21.7578 to inf: decide b
    >>> moved = bayes_error(letters, [0.75, 0.25], classes=["a", "b"], boundaries=[20])
    >>> round(moved.avoidable, 6), moved.areas.round(6).tolist()
    (0.019272, [[0.670763, 0.026412], [0.079237, 0.223588]])
    """
    if isinstance(distributions, Mapping) or not isinstance(distributions, Sequence) or len(distributions) < 2:
        raise UsageError("give the distributions of at least two classes, as a list")
    labels = tuple(range(len(distributions))) if classes is None else tuple(classes)
    if len(labels) != len(distributions):
        raise UsageError(f"{len(labels)} classes for {len(distributions)} distributions", remedy="give one for each")
    prior = _checked_priors(priors, labels)
    loss_for_classes = (Loss.zero_one(labels) if loss is None else Loss.from_costs(loss)).for_classes(labels)
    kinds = {_kind(distribution) for distribution in distributions}
    if len(kinds) > 1:
        raise UsageError(
            f"the distributions are {' and '.join(sorted(kinds))}", remedy="give distributions of one kind"
        )
    edges = _checked_edges(boundaries, decisions)
    if kinds == {"of several dimensions"}:
        if edges is not None:
            raise UsageError((Argument("boundaries"), " is for one dimension"))
        if n_samples < MIN_SAMPLES:
            raise UsageError(
                f"give at least {MIN_SAMPLES} to simulate with", parameter=Argument("n_samples", n_samples)
            )
        found = _simulated(distributions, prior, loss_for_classes, n_samples, random_state)
    else:
        exact = enumerated if kinds == {"discrete"} else integrated
        found = exact(distributions, prior, loss_for_classes, edges, decisions)
    return replace(found, distributions=tuple(distributions), prior=prior)


def _checked_priors(priors: Any, classes: tuple[Any, ...]) -> Floats:
    if priors is None:
        return np.full(len(classes), 1.0 / len(classes))
    return np.exp(log_prior(priors, np.array(classes), np.ones(len(classes))))


def _checked_edges(boundaries: Any, decisions: Any) -> list[float] | None:
    if boundaries is None:
        if decisions is not None:
            raise UsageError(
                (Argument("decisions"), " says what is decided between ", Argument("boundaries")),
                remedy="give these too",
            )
        return None
    try:
        edges = sorted(float(edge) for edge in boundaries)
    except (TypeError, ValueError):
        raise UsageError("give a list of numbers", parameter=Argument("boundaries", boundaries)) from None
    if not np.isfinite(edges).all():
        raise UsageError("give finite numbers", parameter=Argument("boundaries", boundaries))
    if decisions is not None and len(decisions) != len(edges) + 1:
        raise UsageError(f"{len(edges)} boundaries make {len(edges) + 1} intervals", remedy="give as many decisions")
    return edges


def _kind(distribution: Any) -> str:
    """Whether a distribution is continuous, discrete or of several dimensions."""
    if hasattr(distribution, "dim") and hasattr(distribution, "logpdf"):
        return "of several dimensions"
    inner = getattr(distribution, "dist", distribution)
    if hasattr(inner, "pmf") and hasattr(distribution, "ppf"):
        return "discrete"
    if hasattr(distribution, "logpdf") and hasattr(distribution, "ppf"):
        return "continuous"
    raise UsageError(
        f"{distribution!r} is no distribution to work with", remedy="give frozen ones, as scipy.stats.norm(0, 1)"
    )


def _simulated(distributions: Sequence[Any], prior: Floats, loss: Loss, n_samples: int, seed: int) -> BayesError:
    """The mean of the least conditional risk of rows that are drawn from each class as often as its prior demands."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(prior.size, size=n_samples, p=prior)
    joint = np.empty((n_samples, prior.size))
    for c, distribution in enumerate(distributions):
        here = np.flatnonzero(labels == c)
        if here.size:
            drawn = np.asarray(distribution.rvs(here.size, random_state=rng)).reshape(here.size, -1)
            joint[here] = log_joint(distributions, prior, drawn)
    mean, interval = mean_with_interval(least_risk_decisions(posteriors(joint, log(prior)), loss).risk)
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
    chosen = best = least_risk(joint, loss)
    least = float((loss.matrix[best] * joint).sum())
    if edges is not None:
        interval = np.searchsorted(edges, values, side="right")
        if decisions is not None:
            rule = np.array([loss.decision_index(decision) for decision in decisions])
        else:
            rule = least_risk(np.stack([joint[interval == k].sum(axis=0) for k in range(len(edges) + 1)]), loss)
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


def _best_boundaries(distributions: Sequence[Any], prior: Floats, loss: Loss) -> list[float]:
    """Where the decision of least risk changes."""
    grid = _grid(distributions)
    least = least_risk(_posterior(distributions, prior, grid), loss)
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
        if least_risk(_posterior(distributions, prior, np.array([middle])), loss)[0] == first:
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
        place = int(least_risk(areas[None], loss)[0]) if decisions is None else loss.decision_index(decisions[k])
        decision = (loss.decisions or ())[place]
        if regions and regions[-1].decision == decision:
            last = regions.pop()
            low, areas = last.low, areas + last.areas
        regions.append(Region(float(low), float(high), decision, areas))
    return tuple(regions)


def _with_mass(regions: Sequence[Region]) -> tuple[Region, ...]:
    """The regions without those in which nothing ever lies: they join their neighbors."""
    kept: list[Region] = []
    for region in regions:
        empty = not region.areas.sum() > MIN_AREA
        if kept and (empty or not kept[-1].areas.sum() > MIN_AREA or kept[-1].decision == region.decision):
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
    if not high - low < MAX_VALUES:
        raise UsageError(f"a discrete distribution reaches from {low:g} to {high:g}: too far to enumerate")
    return low + np.arange(0.0, high - low + 1.0)
