"""Bayes error of known distributions: the lowest possible risk, and the decision regions that achieve it.

In one dimension the risk is integrated, or summed over discrete values. In several dimensions it is simulated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from deciban.decisions.decide import choose_decisions, compute_risks
from deciban.decisions.loss import Loss
from deciban.decisions.regions import find_least_risk
from deciban.errors import Argument, UsageError
from deciban.model.model import posteriors
from deciban.model.priors import log_prior
from deciban.typing import Costs
from deciban.util.arrays import Floats, log
from deciban.util.results import Aligned, Part, Result
from deciban.util.special import normal_quantile

# More regions than this do not fit on a screen.
MAX_REGIONS_SHOWN = 12

# Fewer samples give no reliable interval.
MIN_SAMPLES = 100

# Points of the grid on which decisions are compared before their boundaries are found exactly.
GRID_POINTS = 4001

# Enumerating more discrete values would take too much memory.
MAX_VALUES = 10_000_000

# Regions with less probability than this are rounding errors, and are joined to their neighbors.
MIN_AREA = 1e-14


@dataclass(frozen=True)
class Region:
    """Interval in which one decision is taken.

    Attributes
    ----------
    low, high : float
        Bounds of the interval.
    decision : object
        Label of the decision.
    areas : ndarray of shape (n_classes,)
        Joint probability of each class and the interval: prior times P(interval | class).
    """

    low: float
    high: float
    decision: Any
    areas: Floats


@dataclass(frozen=True, repr=False)
class BayesError(Result):
    """Expected loss of a decision rule under known distributions; under zero-one loss, its error rate.

    `repr` shows the risk and the decision regions.

    Attributes
    ----------
    risk : float
        Expected loss of the rule.
    bayes_risk : float
        Expected loss of the best rule: the Bayes risk, or Bayes error under zero-one loss.
    loss : Loss
        Cost of each decision under each true class.
    regions : tuple of Region
        Decision regions from left to right, in one dimension; otherwise empty.
    interval : (float, float) or None
        95% confidence interval of a simulated risk; None if the risk is exact.
    bounds : dict or None
        Bhattacharyya and Chernoff upper bounds of the error, for two Gaussians in several dimensions.
    distributions : tuple
        Distribution of each class.
    prior : ndarray of shape (n_classes,) or None
        Prior of each class.
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
        """Error rate: the risk under zero-one loss."""
        if not self.loss.is_zero_one:
            raise UsageError("an error rate needs zero-one loss", remedy="use .risk")
        return self.risk

    @property
    def avoidable(self) -> float:
        """Risk of the rule minus the Bayes risk."""
        return max(self.risk - self.bayes_risk, 0.0)

    @property
    def boundaries(self) -> tuple[float, ...]:
        """Points at which the decision changes, in one dimension."""
        return tuple(region.low for region in self.regions[1:])

    @property
    def areas(self) -> Floats:
        """Joint probability of each decision and each true class, in one dimension.

        Entries for a wrong decision are the error areas.
        """
        if not self.regions:
            raise UsageError("areas exist in one dimension only", remedy="use .risk")
        decisions = list(self.loss.decisions or ())
        total = np.zeros((len(decisions), len(self.loss.classes or ())))
        for region in self.regions:
            total[decisions.index(region.decision)] += region.areas
        return total

    def _columns(self) -> dict[str, Any]:
        """Return the bounds and decision of each region, and the joint probability of each class and the region."""
        classes = self.loss.classes or ()
        columns = {name: [getattr(region, name) for region in self.regions] for name in ("low", "high", "decision")}
        areas = {f"P({label})": [float(r.areas[c]) for r in self.regions] for c, label in enumerate(classes)}
        return {**columns, **areas}

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data.

        Returns
        -------
        dict
            ``risk``, ``bayes_risk``, ``avoidable``, ``interval``, ``bounds`` and ``regions``, a list with ``low``,
            ``high``, ``decision`` and ``areas`` of each region.
        """
        regions = [
            {"low": r.low, "high": r.high, "decision": r.decision, "areas": r.areas.tolist()} for r in self.regions
        ]
        return {
            "risk": self.risk,
            "bayes_risk": self.bayes_risk,
            "avoidable": self.avoidable,
            "interval": self.interval,
            "bounds": self.bounds,
            "regions": regions,
        }

    def _parts(self) -> list[Part]:
        name = "error" if self.loss.is_zero_one else "risk"
        lines = [
            f"{name} {self.risk:.6g}" + (f", of which {self.avoidable:.6g} is avoidable" if self.avoidable else "")
        ]
        if self.interval is not None:
            lines[0] += f" (95% interval {self.interval[0]:.6g} to {self.interval[1]:.6g})"
        shown, more = self.regions[:MAX_REGIONS_SHOWN], len(self.regions) - MAX_REGIONS_SHOWN
        lines += [f"  {r.low:.6g} to {r.high:.6g}: decide {r.decision}" for r in shown]
        if more > 0:
            lines.append(f"  ({more} more regions)")
        lines += [f"  {bound} bound {value:.6g}" for bound, value in (self.bounds or {}).items()]
        return [Aligned("\n".join(lines))]


def bayes_error(
    distributions: Sequence[Any],
    prior: Sequence[float] | None = None,
    loss: Loss | Costs | None = None,
    *,
    classes: Sequence[Any] | None = None,
    boundaries: Sequence[float] | None = None,
    decisions: Sequence[Any] | None = None,
    n_samples: int = 200_000,
    random_state: int = 0,
) -> BayesError:
    r"""Return the Bayes error of known class-conditional distributions, or the risk of a given rule.

    In one dimension the result is exact and includes decision regions and error areas. In several dimensions it is
    simulated and has a confidence interval; for two Gaussians it includes the Bhattacharyya and Chernoff bounds.

    Parameters
    ----------
    distributions : sequence of frozen SciPy distributions
        One distribution per class: all continuous, all discrete, or all multivariate.
    prior : sequence of float or mapping from class to float, default=None
        Prior of each class. None: equal priors.
    loss : Loss or any form that `Loss.from_costs` accepts, default=None
        Cost of each decision under each true class. None is zero-one loss: the risk is the error rate.
    classes : sequence of labels, default=None
        Labels of the classes. None: 0, 1, …
    boundaries : sequence of float, default=None
        Boundaries of a rule to evaluate instead of the best rule, in one dimension.
    decisions : sequence of labels, default=None
        Decision in each interval between the boundaries, from left to right. None: the best decision in each.
    n_samples : int, default=200_000
        Number of rows to draw if the risk is simulated; at least 100.
    random_state : int, default=0
        Seed of the simulation.

    Returns
    -------
    BayesError
        The risk of the rule, the Bayes risk and, in one dimension, the regions of each decision.

    Raises
    ------
    UsageError
        If the distributions are of different kinds or cannot be enumerated, or another argument does not match them.

    See Also
    --------
    BayesClassifier.bayes_error : The Bayes error according to a fitted model.
    Loss : Costs of decisions.

    Notes
    -----
    The Bayes risk, with the loss L of decision d in class c; under zero-one loss it is the Bayes error:

    .. math::

        R = \int \min_d \sum_c L(d, c) \, P(c) \, p(x \mid c) \, dx, \quad
        E = 1 - \int \max_c P(c) \, p(x \mid c) \, dx

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
    prior_shares = _parse_prior(prior, labels)
    loss_for_classes = (Loss.zero_one(labels) if loss is None else Loss.from_costs(loss)).for_classes(labels)
    kinds = {_kind(distribution) for distribution in distributions}
    if len(kinds) > 1:
        raise UsageError(
            f"the distributions are {' and '.join(sorted(kinds))}", remedy="give distributions of one kind"
        )
    edges = _parse_boundaries(boundaries, decisions)
    if kinds == {"multivariate"}:
        if edges is not None:
            raise UsageError((Argument("boundaries"), " needs one-dimensional distributions"))
        if n_samples < MIN_SAMPLES:
            raise UsageError(f"expected at least {MIN_SAMPLES}", parameter=Argument("n_samples", n_samples))
        found = _simulate(distributions, prior_shares, loss_for_classes, n_samples, random_state)
    else:
        exact = enumerate_risk if kinds == {"discrete"} else integrate_risk
        found = exact(distributions, prior_shares, loss_for_classes, edges, decisions)
    return replace(found, distributions=tuple(distributions), prior=prior_shares)


def _parse_prior(prior: Any, classes: tuple[Any, ...]) -> Floats:
    if prior is None:
        return np.full(len(classes), 1.0 / len(classes))
    return np.exp(log_prior(prior, np.array(classes), np.ones(len(classes))))


def _parse_boundaries(boundaries: Any, decisions: Any) -> list[float] | None:
    if boundaries is None:
        if decisions is not None:
            raise UsageError(
                (Argument("decisions"), " needs ", Argument("boundaries")),
                remedy="give both",
            )
        return None
    try:
        edges = sorted(float(edge) for edge in boundaries)
    except (TypeError, ValueError):
        raise UsageError("expected a list of numbers", parameter=Argument("boundaries", boundaries)) from None
    if not np.isfinite(edges).all():
        raise UsageError("expected finite numbers", parameter=Argument("boundaries", boundaries))
    if decisions is not None and len(decisions) != len(edges) + 1:
        raise UsageError(f"{len(edges)} boundaries make {len(edges) + 1} intervals", remedy="give as many decisions")
    return edges


def _kind(distribution: Any) -> str:
    """Return "continuous", "discrete" or "multivariate"."""
    if hasattr(distribution, "dim") and hasattr(distribution, "logpdf"):
        return "multivariate"
    inner = getattr(distribution, "dist", distribution)
    if hasattr(inner, "pmf") and hasattr(distribution, "ppf"):
        return "discrete"
    if hasattr(distribution, "logpdf") and hasattr(distribution, "ppf"):
        return "continuous"
    raise UsageError(
        f"{distribution!r} is not a frozen SciPy distribution", remedy="give one such as scipy.stats.norm(0, 1)"
    )


def _simulate(distributions: Sequence[Any], prior: Floats, loss: Loss, n_samples: int, seed: int) -> BayesError:
    """Estimate the Bayes risk as the mean of the lowest conditional risk of simulated rows."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(prior.size, size=n_samples, p=prior)
    joint = np.empty((n_samples, prior.size))
    for c, distribution in enumerate(distributions):
        here = np.flatnonzero(labels == c)
        if here.size:
            drawn = np.asarray(distribution.rvs(here.size, random_state=rng)).reshape(here.size, -1)
            joint[here] = compute_log_joint(distributions, prior, drawn)
    mean, interval = compute_mean_interval(choose_decisions(posteriors(joint, log(prior)), loss).risk)
    bounds = None
    if prior.size == 2 and loss.is_zero_one and all(hasattr(d, "cov") and hasattr(d, "mean") for d in distributions):
        with suppress(np.linalg.LinAlgError):  # a singular covariance has no bounds
            bounds = compute_gaussian_bounds(distributions, prior)
    return BayesError(mean, mean, loss, interval=interval, bounds=bounds)


def compute_mean_interval(values: Floats) -> tuple[float, tuple[float, float]]:
    """Return the mean of independent values and its 95% confidence interval."""
    mean = float(values.mean())
    half = normal_quantile(0.975) * float(values.std(ddof=1)) / np.sqrt(values.size)
    return mean, (mean - half, mean + half)


def compute_gaussian_bounds(distributions: Sequence[Any], prior: Floats) -> dict[str, float]:
    """Return the Bhattacharyya and the Chernoff bound of the error of two Gaussians."""
    from scipy.optimize import minimize_scalar

    mean = [np.atleast_1d(d.mean) for d in distributions]
    cov = [np.atleast_2d(d.cov_object.covariance if hasattr(d, "cov_object") else d.cov) for d in distributions]

    def bound(s: float) -> float:
        mixed = s * cov[1] + (1.0 - s) * cov[0]
        away = mean[1] - mean[0]
        distance = 0.5 * s * (1.0 - s) * away @ np.linalg.solve(mixed, away)
        logs = [np.linalg.slogdet(matrix)[1] for matrix in (mixed, *cov)]
        distance += 0.5 * (logs[0] - (1.0 - s) * logs[1] - s * logs[2])
        return float(prior[0] ** s * prior[1] ** (1.0 - s) * np.exp(-distance))

    best: Any = minimize_scalar(bound, bounds=(1e-6, 1.0 - 1e-6), method="bounded", options={"xatol": 1e-10})
    return {"Bhattacharyya": bound(0.5), "Chernoff": float(min(best.fun, bound(0.5)))}


def integrate_risk(
    distributions: Sequence[Any], prior: Floats, loss: Loss, edges: list[float] | None, decisions: Sequence[Any] | None
) -> BayesError:
    """Return the risk of continuous distributions, for the best rule or for given boundaries and decisions."""
    best_edges = _find_best_boundaries(distributions, prior, loss)
    best = _regions(distributions, prior, loss, best_edges, None)
    least = _risk(best, loss)
    if edges is None:
        return BayesError(least, least, loss, _drop_empty(best))
    regions = _regions(distributions, prior, loss, edges, decisions)
    return BayesError(_risk(regions, loss), least, loss, regions)


def enumerate_risk(
    distributions: Sequence[Any], prior: Floats, loss: Loss, edges: list[float] | None, decisions: Sequence[Any] | None
) -> BayesError:
    """Return the risk of discrete distributions, summed over their values."""
    values = np.unique(np.concatenate([_support(distribution) for distribution in distributions]))
    joint = np.stack([d.pmf(values) for d in distributions], axis=1) * prior
    if abs(joint.sum() - 1.0) > 1e-6:
        raise UsageError(
            "the probabilities of the enumerated values do not sum to 1", remedy="use distributions on integers"
        )
    chosen = best = find_least_risk(joint, loss)
    least = float((loss.matrix[best] * joint).sum())
    if edges is not None:
        interval = np.searchsorted(edges, values, side="right")
        if decisions is not None:
            rule = np.array([loss.decision_index(decision) for decision in decisions])
        else:
            rule = find_least_risk(np.stack([joint[interval == k].sum(axis=0) for k in range(len(edges) + 1)]), loss)
        chosen = rule[interval]
    named = loss.decisions or ()
    starts = np.concatenate([[0], np.flatnonzero(np.diff(chosen)) + 1, [values.size]])
    regions = tuple(
        Region(float(values[a]), float(values[b - 1]), named[chosen[a]], joint[a:b].sum(axis=0))
        for a, b in pairwise(starts)
    )
    return BayesError(_risk(regions, loss), least, loss, regions)


def compute_log_joint(distributions: Sequence[Any], prior: Floats, x: Floats) -> Floats:
    """Return log prior + log density of each class at each x."""
    with np.errstate(divide="ignore"):  # some distributions take the logarithm of a density of 0
        return np.stack([d.logpdf(x) for d in distributions], axis=-1) + np.log(prior)


def _posterior(distributions: Sequence[Any], prior: Floats, x: Floats) -> Floats:
    """Return the posterior at each x; 0 for all classes if no density is positive, or one is infinite."""
    joint = compute_log_joint(distributions, prior, x)
    usable = np.isfinite(joint.max(axis=1))
    posterior = np.zeros_like(joint)
    posterior[usable] = posteriors(joint[usable], log(prior))
    return posterior


def _find_best_boundaries(distributions: Sequence[Any], prior: Floats, loss: Loss) -> list[float]:
    """Return the points at which the best decision changes."""
    from scipy.optimize import brentq

    grid = _make_grid(distributions)
    least = find_least_risk(_posterior(distributions, prior, grid), loss)
    edges = []
    for k in np.flatnonzero(np.diff(least)):
        a, b = int(least[k]), int(least[k + 1])

        def difference(x: float, a: int = a, b: int = b) -> float:
            found = compute_risks(_posterior(distributions, prior, np.array([x])), loss)[0]
            return float(found[a] - found[b])

        low, high = float(grid[k]), float(grid[k + 1])
        if difference(low) < 0.0 < difference(high):
            edges.append(float(brentq(difference, low, high, xtol=1e-13, rtol=1e-14)))
        else:  # a jump, for example at the edge of a support
            edges.append(_find_jump(distributions, prior, loss, low, high, a))
    return edges


def _find_jump(distributions: Sequence[Any], prior: Floats, loss: Loss, low: float, high: float, first: int) -> float:
    """Return the end of a decision at a jump of the risks, by bisection."""
    for _ in range(200):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        if find_least_risk(_posterior(distributions, prior, np.array([middle])), loss)[0] == first:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


def _make_grid(distributions: Sequence[Any]) -> Floats:
    """Return points that are dense where a distribution has mass, and points between them."""
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
    """Return the regions between the edges; without decisions, each takes the best one."""
    regions: list[Region] = []
    for k, (low, high) in enumerate(pairwise([-np.inf, *edges, np.inf])):
        areas = np.array([_mass(d, low, high) for d in distributions]) * prior
        place = int(find_least_risk(areas[None], loss)[0]) if decisions is None else loss.decision_index(decisions[k])
        decision = (loss.decisions or ())[place]
        if regions and regions[-1].decision == decision:
            last = regions.pop()
            low, areas = last.low, areas + last.areas
        regions.append(Region(float(low), float(high), decision, areas))
    return tuple(regions)


def _drop_empty(regions: Sequence[Region]) -> tuple[Region, ...]:
    """Join regions without probability to their neighbors."""
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
    """Return the probability of an interval, from the tail that loses fewer digits."""
    if low > distribution.median():
        return float(distribution.sf(low) - distribution.sf(high))
    return float(distribution.cdf(high) - distribution.cdf(low))


def _risk(regions: Sequence[Region], loss: Loss) -> float:
    """Return the expected loss of the decisions in the regions."""
    decisions = list(loss.decisions or ())
    return float(sum(loss.matrix[decisions.index(region.decision)] @ region.areas for region in regions))


def _support(distribution: Any) -> Floats:
    """Return the values of a discrete distribution with non-negligible probability."""
    listed = getattr(distribution, "xk", getattr(getattr(distribution, "dist", None), "xk", None))
    if listed is not None:
        return np.asarray(listed, dtype=np.float64)
    low, high = (float(end) for end in distribution.support())
    low = low if np.isfinite(low) else float(distribution.ppf(1e-15))
    high = min(high, float(distribution.isf(1e-15)) + 1.0)
    if not high - low < MAX_VALUES:
        raise UsageError(
            f"a discrete distribution has too many values to enumerate ({low:g} to {high:g})",
            remedy=f"use one with fewer than {MAX_VALUES:,} values",
        )
    return low + np.arange(0.0, high - low + 1.0)
