"""Label shift: estimate the class shares of unlabeled rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from deciban.errors import Argument, DataError, UsageError, warn_user
from deciban.tables.labels import LabelArray
from deciban.util.arrays import Floats
from deciban.util.results import Part, Result, TextTable
from deciban.util.special import normal_quantile

# EM converges long before this unless the classes are hardly distinguishable.
MAX_STEPS = 10_000

# Above this calibration error the estimated shares are biased enough to warn about.
MAX_CALIBRATION_ERROR = 0.05


@dataclass(frozen=True, repr=False)
class EstimatedPrior(Result):
    """Estimated share of each class among unlabeled rows, with intervals.

    `BayesClassifier.estimate_prior` returns it; `BayesClassifier.with_prior` accepts it.

    Attributes
    ----------
    classes : ndarray of shape (n_classes,)
        Class labels.
    prior : ndarray of shape (n_classes,)
        Estimated share of each class.
    low, high : ndarray of shape (n_classes,)
        Bounds of the confidence interval of each share.
    level : float
        Confidence level of the intervals.
    n_iter : int
        Number of EM iterations.
    """

    classes: LabelArray
    prior: Floats
    low: Floats
    high: Floats
    level: float
    n_iter: int

    def to_dict(self) -> dict[object, float]:
        """Return the share of each class, by label.

        Returns
        -------
        dict
        """
        return dict(zip(self.classes.tolist(), self.prior.tolist(), strict=True))

    def _columns(self) -> dict[str, Any]:
        return {"class": self.classes, "prior": self.prior, "low": self.low, "high": self.high}

    def _parts(self) -> list[Part]:
        columns = (self.prior.tolist(), self.low.tolist(), self.high.tolist())
        lines = [
            (str(label), *(f"{share:.4f}" for share in shares))
            for label, *shares in zip(self.classes.tolist(), *columns, strict=True)
        ]
        head = ("class", "share", f"{100 * self.level:g}% interval from", "to")
        return [TextTable(lines, head, range(1, 4), bars=[(0.0, share) for share in columns[0]], bar_reach=1.0)]

    def __str__(self) -> str:
        interval = f"{100 * self.level:g}% interval"
        return "\n".join(
            f"{label}: {share:.4f} ({interval} {low:.4f} to {high:.4f})"
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
    """Return the maximum-likelihood class shares of the rows, by expectation maximization (EM).

    `posterior` was computed under the prior `before`, so P(x | c) is proportional to their ratio. One pseudo-row with
    the shares `before` is added, so that no class with a positive prior gets the share 0.
    """
    if calibration_error is None or calibration_error > MAX_CALIBRATION_ERROR:
        reason = (
            "come from plain Bayes" if calibration_error is None else f"are off by {calibration_error:.3f} on average"
        )
        warn_user(
            (
                f"the posteriors {reason}, so the estimated shares may be too extreme; fit with ",
                Argument("tune", "auto"),
                ", and check calibration with leave_one_out()",
            )
        )
    if not len(posterior):
        raise DataError("estimating shares needs at least one row")
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
    uninformative = known <= 1e-9 * max(float(information.max()), 1.0)  # no information there
    variance = (directions[~uninformative] ** 2 / known[~uninformative][:, None]).sum(axis=0)
    variance[(directions[uninformative] ** 2).sum(axis=0) > 1e-9] = np.inf
    half = normal_quantile(0.5 + level / 2.0) * np.sqrt(variance)
    return EstimatedPrior(classes, share, np.maximum(share - half, 0.0), np.minimum(share + half, 1.0), level, steps)
