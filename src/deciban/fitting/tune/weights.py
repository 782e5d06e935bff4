"""Learn the weight of the evidence of each block."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from deciban.fitting.tune.hyperparameters import WEIGHTS
from deciban.fitting.tune.rows import Rows
from deciban.model.model import log_normalize
from deciban.util.arrays import Codes, Flags, Floats, Integers


def learn_weights(evidence: Floats, rows: Rows, group: Integers) -> tuple[Floats, Floats]:
    """Return the weights (not negative) and the bias with the highest penalized likelihood of the labels.

    First one weight per group of blocks is learned, then one per block, drawn to that of its group. Blocks of group -1
    are drawn to 0. evidence: centered.
    """
    return WeightSearch.of(evidence, rows, group).learn(rows.weights)


@dataclass(frozen=True)
class WeightSearch:
    """Search for weights of the same evidence by rows of different weights; see `learn_weights`."""

    group: Integers
    together: "WeightProblem | None"
    apart: "WeightProblem"

    @classmethod
    def of(cls, evidence: Floats, rows: Rows, group: Integers) -> Self:
        groups = [evidence[:, group == g].sum(axis=1) for g in range(group.max(initial=-1) + 1)]
        expected = np.full(len(groups), group.size**-0.5)
        together = WeightProblem.of(np.stack(groups, axis=1), rows, expected, WEIGHTS.group_rows) if groups else None
        return cls(group, together, WeightProblem.of(evidence, rows, np.zeros(group.size), WEIGHTS.block_rows))

    def learn(self, weights: Floats, start: tuple[Floats, Floats] | None = None) -> tuple[Floats, Floats]:
        """Return the weights of the blocks and the bias for rows with these weights.

        start: weights and bias from which the search starts; they change nothing but its time.
        """
        target, bias = self.apart.target, np.zeros(self.apart.log_prior.size)
        if self.together is not None:
            shared, bias = self.together.reweigh(weights).solve()
            target = np.where(self.group >= 0, shared[self.group], 0.0)
            if self.group.size == shared.size:
                return target, bias
        problem = replace(self.apart.reweigh(weights), target=target)
        return problem.solve((target, bias) if start is None else start)

    def learn_without_each(
        self, fold: Integers, folds: int, start: tuple[Floats, Floats]
    ) -> list[tuple[Floats, Floats]]:
        """Return the weights of the blocks and the bias for the rows outside of each fold; start: those of all rows."""
        targets = [self.apart.target] * folds
        if self.together is not None:
            shared = self.together.solve_without_each(fold, [self.together.target] * folds, self.together.solve())
            targets = [np.where(self.group >= 0, weights[self.group], 0.0) for weights, _ in shared]
            if self.group.size == self.together.unit.size:
                return [(target, bias) for target, (_, bias) in zip(targets, shared, strict=True)]
        return self.apart.solve_without_each(fold, targets, start)


def measure_left_out(
    evidence: Floats, rows: Rows, weights: Floats, bias: Floats, class_weight: Floats, removed: Floats
) -> tuple[float, float]:
    """Return the accuracy and the log-loss of rows, each scored by the others.

    evidence: centered. class_weight: weight of each class in all counted rows. removed: how much of each row is left
    out of it.
    """
    joint = np.einsum("nkc,k->nc", evidence, weights) + rows.log_prior + bias
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
    if not np.isfinite(evidence).all():
        evidence = np.clip(np.nan_to_num(evidence, nan=0.0), -1e200, 1e200)
    classes = evidence.shape[2]
    top, mean = evidence[:, :, 0].copy(), np.zeros(evidence.shape[:2])
    for c in range(1, classes):  # NumPy's reductions over a short axis are slow
        np.maximum(top, evidence[:, :, c], out=top)
    centered = evidence - top[:, :, None]
    np.maximum(centered, -WEIGHTS.max_log_odds, out=centered)
    for c in range(classes):
        mean += centered[:, :, c]
    mean /= classes
    centered -= mean[:, :, None]
    return centered


def maximize(evidence: Floats, rows: Rows, target: Floats, strength: float) -> tuple[Floats, Floats]:
    """Return the weights and the bias of the highest likelihood, with a penalty on the distance from `target`."""
    return WeightProblem.of(evidence, rows, target, strength).solve()


# Value, gradient and Hessian of a function at a point.
Quadratic = tuple[float, Floats, Floats]


def minimize_newton(
    evaluate: Callable[[Floats], Quadratic],
    start: Floats,
    lower: Floats,
    known: Quadratic | None = None,
    min_gain: float = WEIGHTS.min_newton_gain,
) -> Floats:
    """Return the minimum of a convex function above lower bounds, to about eight digits wherever the search starts.

    evaluate: the value, the gradient and the Hessian at a point. Each step minimizes the quadratic approximation within
    the bounds, and is halved until the value falls. known: the values at the start, if they are known. min_gain: the
    search ends with a step of less expected gain.
    """
    point = np.maximum(start, lower)
    value, slope, curvature = evaluate(point) if known is None else known
    for _ in range(WEIGHTS.max_newton_steps):
        step = _solve_bounded(curvature, slope, lower - point)
        gain, size = -float(slope @ step), 1.0
        if gain < min_gain:
            return np.maximum(point + step, lower)
        found = evaluate(point + step)
        while found[0] > value - 1e-4 * size * gain + 1e-14 and size > 1e-6:
            size /= 2.0
            found = evaluate(point + size * step)
        if found[0] > value + 1e-14:
            break
        point = np.maximum(point + size * step, lower)
        value, slope, curvature = found
    return point


def _solve_bounded(curvature: Floats, slope: Floats, lower: Floats) -> Floats:
    """Return the minimum of a quadratic function above lower bounds, which are at most 0.

    Variables that leave their bounds are set to them, and released if the function falls from there, all at once. That
    ends after a few rounds in practice; if it does not, the last result is limited to the bounds.
    """
    fixed = (lower == 0.0) & (slope > 0.0)
    step = np.zeros(slope.size)
    for _ in range(WEIGHTS.max_bound_rounds):
        free = ~fixed
        step[fixed] = lower[fixed]
        rest = slope[free] + curvature[np.ix_(free, fixed)] @ step[fixed]
        step[free] = -np.linalg.solve(curvature[np.ix_(free, free)], rest)
        beyond, falling = free & (step < lower), fixed & (slope + curvature @ step < 0.0)
        if not (beyond | falling).any():
            break
        fixed = (fixed & ~falling) | beyond
    return np.maximum(step, lower)


@dataclass(frozen=True)
class WeightProblem:
    """Penalized log-loss of the labels, as a function of a point: weights in units of `unit`, and the bias.

    evidence: for each class but the most frequent, relative to that one, in units: class and row by block. total: the
    weight of all rows. share: each row's share of it. target: the weights without data. strength: strength of the
    penalty, in rows.
    """

    evidence: Floats
    labels: Codes
    log_prior: Floats
    total: float
    share: Floats
    target: Floats
    strength: float
    unit: Floats

    @classmethod
    def of(cls, evidence: Floats, rows: Rows, target: Floats, strength: float) -> Self:
        share, common = rows.weights / rows.total, int(rows.log_prior.argmax())
        others = [c for c in range(rows.classes) if c != common]
        apart = np.empty((len(others), *evidence.shape[:2]))
        for k, c in enumerate(others):
            np.subtract(evidence[:, :, c], evidence[:, :, common], out=apart[k])
        # scaled by the deviation of each block's evidence, all directions are about equally steep
        squares = np.einsum("knb,knb,n->b", apart, apart, share) / max(len(others), 1)
        unit = 1.0 / np.maximum(np.sqrt(squares), 1e-6)
        unit = np.minimum(unit, 1.0 / np.sqrt(strength / rows.total))
        apart *= unit
        flat = apart.reshape(-1, unit.size)
        return cls(flat, rows.labels, rows.log_prior, rows.total, share, target, strength, unit)

    def reweigh(self, weights: Floats) -> "WeightProblem":
        """Return the problem for the same rows with other weights."""
        total = float(weights.sum())
        return replace(self, total=total, share=weights / total)

    @property
    def lower(self) -> Floats:
        """Lower bounds of a point."""
        return np.concatenate([np.zeros(self.unit.size), np.full(self.log_prior.size, -np.inf)])

    @property
    def newton(self) -> bool:
        """True if Newton steps are affordable."""
        blocks, classes = self.unit.size, self.log_prior.size
        return self.labels.size * classes * blocks**2 + (blocks + classes) ** 3 < WEIGHTS.max_newton_work

    def solve(self, start: tuple[Floats, Floats] | None = None) -> tuple[Floats, Floats]:
        """Return the weights and the bias of the least loss; start: default: the target and no bias."""
        weights, bias = (self.target, np.zeros(self.log_prior.size)) if start is None else start
        point, lower = np.concatenate([weights / self.unit, bias]), self.lower
        if self.newton:
            return self._split(minimize_newton(self.evaluate, point, lower))
        from scipy.optimize import minimize

        solved: Any = minimize(  # type: ignore[call-overload]  # stubs stricter than the function
            lambda point: self.evaluate(point, curved=False)[:2],
            point,
            jac=True,
            method="L-BFGS-B",
            bounds=[(bound, None) for bound in lower],
            options={"maxiter": 200, "ftol": 1e-8, "gtol": 1e-6},
        )
        return self._split(solved.x)

    def solve_without_each(
        self, fold: Integers, targets: Sequence[Floats], start: tuple[Floats, Floats]
    ) -> list[tuple[Floats, Floats]]:
        """Return the weights and the bias for the rows outside of each fold, with these targets; start: of all rows.

        The sums over all rows less those over a fold give its first Newton step, which nearly always suffices. So all
        folds together take one pass over the rows.
        """
        weights, folds = self.share * self.total, range(len(targets))
        outside = [replace(self.reweigh(np.where(fold == f, 0.0, weights)), target=targets[f]) for f in folds]
        if not self.newton:
            return [problem.solve(start) for problem in outside]
        point = np.maximum(np.concatenate([start[0] / self.unit, start[1]]), self.lower)
        own = [self._take(np.flatnonzero(fold == f)).sum_rows(point) for f in folds]
        losses, slopes = np.array([part[0] for part in own]), np.stack([part[1] for part in own])
        curvatures, found = np.stack([part[2] for part in own]), []
        for f, problem in enumerate(outside):
            scale = self.total / problem.total
            loss, slope, curvature = (scale * (each.sum(axis=0) - each[f]) for each in (losses, slopes, curvatures))
            known = problem.add_penalty((float(loss), slope, curvature), point)
            best = minimize_newton(problem.evaluate, point, self.lower, known, WEIGHTS.min_fold_gain)
            found.append(self._split(best))
        return found

    def _take(self, rows: Integers) -> "WeightProblem":
        """Return the problem of some rows, with their shares of all rows."""
        evidence = self.evidence.reshape(-1, self.labels.size, self.unit.size)[:, rows].reshape(-1, self.unit.size)
        return replace(self, evidence=evidence, labels=self.labels[rows], share=self.share[rows])

    def _split(self, point: Floats) -> tuple[Floats, Floats]:
        """Return the weights and the bias of a point."""
        blocks = self.unit.size
        return point[:blocks] * self.unit, point[blocks:]

    def evaluate(self, point: Floats, curved: bool = True) -> Quadratic:
        """Return the loss, its gradient and, if `curved`, its Hessian."""
        return self.add_penalty(self.sum_rows(point, curved), point)

    def add_penalty(self, sums: Quadratic, point: Floats) -> Quadratic:
        """Return the sums over rows plus the penalty and its derivatives."""
        value, slope, curvature = sums
        blocks, classes = self.unit.size, self.log_prior.size
        away, bias = point[:blocks] * self.unit - self.target, point[blocks:]
        value += 0.5 * (self.strength * float(away @ away) + WEIGHTS.bias_rows * float(bias @ bias)) / self.total
        slope = slope + np.concatenate([self.strength * away * self.unit, WEIGHTS.bias_rows * bias]) / self.total
        if curvature.size:
            penalty = np.concatenate([self.strength * self.unit**2, np.full(classes, WEIGHTS.bias_rows)])
            curvature = curvature + np.diag(penalty / self.total)
        return value, slope, curvature

    def sum_rows(self, point: Floats, curved: bool = True) -> Quadratic:
        """Return the loss of the rows, its gradient and, if `curved`, its Hessian, without the penalty."""
        labels, share, blocks = self.labels, self.share, self.unit.size
        size, common, row = labels.size, int(self.log_prior.argmax()), np.arange(labels.size)
        others = np.arange(self.log_prior.size) != common
        log_joint = np.zeros((size, self.log_prior.size))
        log_joint[:, others] = (self.evidence @ point[:blocks]).reshape(-1, size).T
        log_joint += self.log_prior + point[blocks:]
        posterior, normalizer = log_normalize(log_joint, self.log_prior)
        heavy = posterior * share[:, None]
        excess = heavy.copy()
        excess[row, labels] -= share
        loss = float(share @ (normalizer - log_joint[row, labels]))
        slope = np.concatenate([self.evidence.T @ excess[:, others].T.ravel(), excess.sum(axis=0)])
        return loss, slope, self._curvature(posterior, heavy, others) if curved else np.empty(0)

    def _curvature(self, posterior: Floats, heavy: Floats, others: Flags) -> Floats:
        """Return the Hessian of the loss of the rows; heavy: posterior times share."""
        blocks, classes = self.unit.size, self.log_prior.size
        curvature = np.empty((blocks + classes, blocks + classes))
        if classes == 2:
            spread = heavy[:, 0] * posterior[:, 1]
            weighted = self.evidence * spread[:, None]
            curvature[:blocks, :blocks] = self.evidence.T @ weighted
            both = np.outer(weighted.sum(axis=0), np.where(others, 1.0, -1.0))
        else:
            weighted = self.evidence * heavy[:, others].T.reshape(-1, 1)
            by_class = weighted.reshape(-1, len(heavy), blocks)
            mean = by_class.sum(axis=0)  # times share
            share = np.maximum(self.share, 1e-300)[:, None]
            curvature[:blocks, :blocks] = self.evidence.T @ weighted - mean.T @ (mean / share)
            both = -mean.T @ posterior
            both[:, others] += by_class.sum(axis=1).T
        curvature[:blocks, blocks:], curvature[blocks:, :blocks] = both, both.T
        curvature[blocks:, blocks:] = np.diag(heavy.sum(axis=0)) - posterior.T @ heavy
        return curvature
