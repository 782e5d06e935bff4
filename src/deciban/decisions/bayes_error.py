"""The least possible error, and what of an error could be avoided."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import scipy

from deciban.decisions.bayes_error_exact import enumerated, integrated, log_joint
from deciban.decisions.bayes_error_result import BayesError
from deciban.decisions.loss import Loss
from deciban.decisions.policy import least_risk_decisions
from deciban.errors import UsageError
from deciban.model.posterior import posteriors
from deciban.model.priors import log_prior
from deciban.util.arrays import Floats, log

# Fewer samples give no interval that could be trusted.
FEWEST_SAMPLES = 100


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
    """The Bayes risk of known class-conditional distributions, or the risk of a rule under them.

    In one dimension the result is exact, with the regions of each decision and the error areas. In several dimensions
    it is simulated and has an interval; two Gaussians also get the Bhattacharyya and the Chernoff bound.

    Parameters
    ----------
    distributions : sequence of frozen SciPy distributions
        One for each class, all continuous, all discrete, or all of several dimensions.
    priors : sequence of float or mapping from class to float, default=None
        The prior of each class. None: equal priors.
    loss : Loss or anything `Loss.of` takes, default=None
        What each decision costs under each truth. None is zero-one loss: the risk is the error.
    classes : sequence of labels, default=None
        The classes. None: 0, 1, …
    boundaries : sequence of float, default=None
        A rule to evaluate instead of the best one, in one dimension: the points at which its decision changes.
    decisions : sequence of labels, default=None
        The decision in each interval between the boundaries, from the left. None: the best one in each.
    samples : int, default=200_000
        How many rows are drawn where the risk is simulated, at least 100.
    random_state : int, default=0
        The seed of the simulation.

    Returns
    -------
    BayesError
        With `risk`, `least` (that of the best rule), `avoidable` (their difference), `error` (under zero-one loss),
        `regions`, `boundaries` and `areas` (in one dimension), `interval` and `bounds` (where it was simulated).

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
        if samples < FEWEST_SAMPLES:
            raise UsageError(f"samples={samples}: give at least {FEWEST_SAMPLES} to simulate with")
        found = _simulated(distributions, prior, loss_for_classes, samples, random_state)
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
    """Whether a distribution is continuous, discrete or of several dimensions."""
    if hasattr(distribution, "dim") and hasattr(distribution, "logpdf"):
        return "of several dimensions"
    inner = getattr(distribution, "dist", distribution)
    if hasattr(inner, "pmf") and hasattr(distribution, "ppf"):
        return "discrete"
    if hasattr(distribution, "logpdf") and hasattr(distribution, "ppf"):
        return "continuous"
    raise UsageError(f"{distribution!r} is no distribution to work with; give frozen ones, as scipy.stats.norm(0, 1)")


def _simulated(distributions: Sequence[Any], prior: Floats, loss: Loss, samples: int, seed: int) -> BayesError:
    """The mean of the least conditional risk of rows that are drawn from each class as often as its prior demands."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(prior.size, size=samples, p=prior)
    joint = np.empty((samples, prior.size))
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
