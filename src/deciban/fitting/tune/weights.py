"""Learn the weight of the evidence of each block."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy

from deciban.fitting.tune.hyperparameters import WEIGHTS
from deciban.fitting.tune.rows import Rows
from deciban.model.model import log_normalize
from deciban.util.arrays import Floats, Integers


def learn_weights(evidence: Floats, rows: Rows, group: Integers, polish: bool = True) -> tuple[Floats, Floats]:
    """Return the weights (not negative) and the bias with the highest penalized likelihood of the labels.

    First one weight per group of blocks is learned, then one per block, drawn to that of its group. Blocks of group -1
    are drawn to 0.
    """
    evidence = center(evidence)
    groups = [evidence[:, group == g].sum(axis=1) for g in range(group.max(initial=-1) + 1)]
    start = np.zeros(group.size)
    bias = np.zeros(rows.classes)
    if groups:
        together = np.stack(groups, axis=1)
        shared, bias = maximize(
            together, rows, np.full(len(groups), group.size**-0.5), bias, WEIGHTS.group_rows, polish
        )
        start = np.where(group >= 0, shared[group], 0.0)
    if group.size == len(groups):
        return start, bias
    return maximize(evidence, rows, start, bias, WEIGHTS.block_rows, polish)


def measure_left_out(
    evidence: Floats, rows: Rows, weights: Floats, bias: Floats, class_weight: Floats, removed: Floats
) -> tuple[float, float]:
    """Return the accuracy and the log-loss of rows, each scored by the others.

    class_weight: weight of each class in all counted rows. removed: how much of each row is left out of it.
    """
    joint = np.einsum("nkc,k->nc", center(evidence), weights) + rows.log_prior + bias
    return compute_metrics(use_prior_of_others(joint, rows, class_weight[rows.labels], removed), rows)


def use_prior_of_others(joint: Floats, rows: Rows, own: Floats, removed: Floats) -> Floats:
    """Return the log joint of each row with the prior of the other rows.

    own: weight of the class of each row. removed: how much of the row is left out of it.
    """
    every = np.arange(rows.labels.size)
    with np.errstate(divide="ignore"):
        joint[every, rows.labels] += np.log(np.maximum(own - removed, 0.0) / own)
    return joint


def compute_metrics(joint: Floats, rows: Rows) -> tuple[float, float]:
    """Return the accuracy and the log-loss of rows with these log joints."""
    every = np.arange(rows.labels.size)
    posterior, _ = log_normalize(joint, rows.log_prior)
    right = joint.argmax(axis=1) == rows.labels
    losses = -np.log(np.maximum(posterior[every, rows.labels], np.finfo(np.float64).eps))
    return float(np.average(right, weights=rows.weights)), float(np.average(losses, weights=rows.weights))


def center(evidence: Floats) -> Floats:
    """Subtract the mean over the classes, which changes no posterior, and clip to `WEIGHTS.max_log_odds`."""
    finite = np.clip(np.nan_to_num(evidence, nan=0.0), -1e200, 1e200)
    finite = finite - finite.max(axis=2, keepdims=True)
    finite = np.maximum(finite, -WEIGHTS.max_log_odds)
    return np.asarray(finite - finite.mean(axis=2, keepdims=True))


def maximize(
    evidence: Floats, rows: Rows, target: Floats, bias: Floats, strength: float, polish: bool = True
) -> tuple[Floats, Floats]:
    """Return the weights and the bias of the highest likelihood, with a penalty on the distance from `target`."""
    problem = WeightProblem.of(evidence, rows, target, strength)
    blocks, classes = target.size, rows.classes
    start = np.concatenate([target / problem.unit, bias])
    bounds = [(0.0, None)] * blocks + [(None, None)] * classes
    options = {"maxiter": 200, "ftol": 1e-8, "gtol": 1e-6} if polish else {"maxiter": 50, "ftol": 1e-6, "gtol": 1e-5}
    solved: Any = scipy.optimize.minimize(  # type: ignore[call-overload]  # the stubs are stricter than the function
        problem.loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options
    )
    point = solved.x
    work = rows.labels.size * classes * blocks**2 + (blocks + classes) ** 3
    for _ in range(WEIGHTS.newton_steps if polish and work < WEIGHTS.max_newton_work else 0):
        point = problem.newton_step(point)
    return point[:blocks] * problem.unit, point[blocks:]


@dataclass(frozen=True)
class WeightProblem:
    """Penalized log-loss of the labels, as a function of a point: weights in units of `unit`, and the bias.

    evidence: row and class by block. share: each row's share of the total weight. target: the weights without data.
    strength: strength of the penalty, in rows.
    """

    evidence: Floats
    rows: Rows
    share: Floats
    target: Floats
    strength: float
    unit: Floats

    @classmethod
    def of(cls, evidence: Floats, rows: Rows, target: Floats, strength: float) -> Self:
        size, blocks, classes = evidence.shape
        share = rows.weights / rows.total
        flat = np.ascontiguousarray(evidence.transpose(0, 2, 1)).reshape(size * classes, blocks)
        # scaled by the deviation of each block's evidence, all directions are about equally steep
        unit = 1.0 / np.maximum(np.sqrt(np.repeat(share, classes) @ flat**2 / classes), 1e-6)
        return cls(flat, rows, share, target, strength, np.minimum(unit, 1.0 / np.sqrt(strength / rows.total)))

    def _log_joint(self, point: Floats) -> Floats:
        blocks = self.unit.size
        weighted = self.evidence @ (point[:blocks] * self.unit)
        return np.asarray(weighted.reshape(-1, self.rows.classes) + self.rows.log_prior + point[blocks:])

    def loss(self, point: Floats) -> tuple[float, Floats]:
        """Return the loss and its gradient."""
        labels, share, total = self.rows.labels, self.share, self.rows.total
        blocks, row = self.unit.size, np.arange(labels.size)
        log_joint = self._log_joint(point)
        posterior, normalizer = log_normalize(log_joint, self.rows.log_prior)
        excess = posterior * share[:, None]
        excess[row, labels] -= share
        away, bias = point[:blocks] * self.unit - self.target, point[blocks:]
        penalty = 0.5 * (self.strength * float(away @ away) + WEIGHTS.bias_rows * float(bias @ bias)) / total
        slope = (self.evidence.T @ excess.ravel() + self.strength / total * away) * self.unit
        slopes = np.concatenate([slope, excess.sum(axis=0) + WEIGHTS.bias_rows / total * bias])
        return float(share @ (normalizer - log_joint[row, labels])) + penalty, slopes

    def newton_step(self, point: Floats) -> Floats:
        """Take a Newton step, so that the optimum does not depend on the path to it.

        Weights at 0 that should not grow stay at 0.
        """
        blocks = self.unit.size
        loss, slope = self.loss(point)
        free = np.ones(point.size, dtype=np.bool_)
        free[:blocks] = (point[:blocks] > 0.0) | (slope[:blocks] < 0.0)
        step = np.zeros(point.size)
        step[free] = np.linalg.lstsq(self._curvature(point)[np.ix_(free, free)], slope[free], rcond=None)[0]
        moved = point - step
        moved[:blocks] = np.maximum(moved[:blocks], 0.0)
        return moved if self.loss(moved)[0] <= loss + 1e-14 else point

    def _curvature(self, point: Floats) -> Floats:
        """Return the Hessian of the loss."""
        blocks, classes, total = self.unit.size, self.rows.classes, self.rows.total
        posterior, _ = log_normalize(self._log_joint(point), self.rows.log_prior)
        scaled = (self.evidence * self.unit).reshape(-1, classes, blocks)
        mean = np.einsum("nc,nck->nk", posterior, scaled)
        heavy = posterior * self.share[:, None]
        both = np.einsum("nc,nck->kc", heavy, scaled) - mean.T @ heavy
        curvature = np.empty((point.size, point.size))
        squares = self.evidence.T @ (self.evidence * heavy.reshape(-1, 1)) * np.outer(self.unit, self.unit)
        curvature[:blocks, :blocks] = squares - mean.T @ (mean * self.share[:, None])
        curvature[:blocks, blocks:], curvature[blocks:, :blocks] = both, both.T
        curvature[blocks:, blocks:] = np.diag(heavy.sum(axis=0)) - posterior.T @ heavy
        penalty = np.concatenate([self.strength * self.unit**2, np.full(classes, WEIGHTS.bias_rows)])
        curvature[np.diag_indices(point.size)] += penalty / total
        return curvature
