"""Label shift: the prior of rows that nobody has labeled."""

from dataclasses import dataclass

import numpy as np
import scipy

from deciban.errors import Argument, DataError, UsageError, warn_user
from deciban.tables.labels import LabelArray
from deciban.util.arrays import Floats

# Steps of expectation and maximization.
MAX_STEPS = 10_000


@dataclass(frozen=True)
class EstimatedPrior:
    """The prior that unlabeled rows show: the share of each class among them. `clf.with_prior(found)` uses it.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        The classes.
    prior : ndarray of shape (n_classes,)
        The share of each.
    low, high : ndarray of shape (n_classes,)
        The bounds between which each share lies with the probability `level`.
    level : float
        The probability of the intervals.
    n_iter : int
        How many steps of expectation and maximization were taken.
    """

    classes: LabelArray
    prior: Floats
    low: Floats
    high: Floats
    level: float
    n_iter: int

    def to_dict(self) -> dict[object, float]:
        """The share of each class, by its label."""
        return dict(zip(self.classes.tolist(), self.prior.tolist(), strict=True))

    def __str__(self) -> str:
        return "\n".join(
            f"{label}: {share:.4f} ({low:.4f} to {high:.4f})"
            for label, share, low, high in zip(self.classes.tolist(), self.prior, self.low, self.high, strict=True)
        )


def estimate_shares(
    posterior: Floats,
    before: Floats,
    classes: LabelArray,
    level: float,
    calibration_error: float | None,
    max_steps: int = MAX_STEPS,
) -> EstimatedPrior:
    """The shares under which the rows are most probable, by expectation and maximization.

    `posterior` is under the prior `before`: P(x | c) is proportional to their quotient. One row of the shares `before`
    is added, so that no class that there was is said to be impossible.
    """
    if calibration_error is None or calibration_error > 0.05:
        how = "of plain Bayes" if calibration_error is None else f"off by {calibration_error:.3f} on average"
        warn_user(
            (
                f"the posteriors are {how} and so may be uncalibrated; shares estimated from them lean to the "
                "extremes (",
                Argument("tune", "auto"),
                " and leave_one_out() help)",
            )
        )
    if not len(posterior):
        raise DataError("there are no rows to estimate shares from")
    if not 0.0 < level < 1.0:
        raise UsageError("give a probability between 0 and 1, such as 0.95", parameter=Argument("level", level))
    ratio = posterior / np.maximum(before, 1e-300)
    ratio[:, before == 0.0] = 0.0
    share, steps = np.where(before > 0.0, before, 0.0), 0
    while steps < max_steps:
        steps += 1
        weighted = ratio * share
        new = ((weighted / weighted.sum(axis=1, keepdims=True)).sum(axis=0) + before) / (len(ratio) + 1.0)
        moved = float(np.abs(new - share).max())
        share = new
        if moved < 1e-10:
            break
    # the curvature of the log-likelihood along the directions that keep the sum at 1
    scaled = ratio / (ratio @ share)[:, None]
    information = scaled.T @ scaled
    free = np.linalg.svd(np.ones((1, share.size)))[2][1:]
    known, axes = np.linalg.eigh(free @ information @ free.T)
    directions = axes.T @ free
    silent = known <= 1e-9 * max(float(information.max()), 1.0)  # along these the rows hold no information
    variance = (directions[~silent] ** 2 / known[~silent][:, None]).sum(axis=0)
    variance[(directions[silent] ** 2).sum(axis=0) > 1e-9] = np.inf
    half = float(scipy.special.ndtri(0.5 + level / 2.0)) * np.sqrt(variance)
    return EstimatedPrior(classes, share, np.maximum(share - half, 0.0), np.minimum(share + half, 1.0), level, steps)
