"""What the evidence of each block weighs."""

from typing import Any

import numpy as np
import scipy

from deciban.arrays import Floats, Integers
from deciban.tune.rows import Rows

# Steps from where L-BFGS stops to where the optimum is.
POLISHING_STEPS = 3
MOST_POLISHING = 2e8

# Evidence beyond this, for or against, counts as this while weights are learned.
MOST_EXTREME = 700.0

# How strongly weights are drawn to the weight of their group, and that to its start: as much as so many rows would.
GROUP_ROWS, BLOCK_ROWS, BIAS_ROWS = 1.0, 10.0, 1.0


def learn_weights(evidence: Floats, rows: Rows, group: Integers, polish: bool = True) -> tuple[Floats, Floats]:
    """Weights (none negative) and bias with the highest penalised likelihood of the labels.

    First one weight for each group of blocks, then one for each block, drawn to that of its group; blocks of group -1
    are drawn to 0.
    """
    evidence = centred(evidence)
    groups = [evidence[:, group == g].sum(axis=1) for g in range(group.max(initial=-1) + 1)]
    start = np.zeros(group.size)
    bias = np.zeros(rows.classes)
    if groups:
        together = np.stack(groups, axis=1)
        shared, bias = maximise(together, rows, np.full(len(groups), group.size**-0.5), bias, GROUP_ROWS, polish)
        start = np.where(group >= 0, shared[group], 0.0)
    if group.size == len(groups):
        return start, bias
    return maximise(evidence, rows, start, bias, BLOCK_ROWS, polish)


def left_out_figures(
    evidence: Floats, rows: Rows, weights: Floats, bias: Floats, class_weight: Floats, removed: Floats
) -> tuple[float, float]:
    """The accuracy and the log-loss of rows, each scored by the others: what the weights were chosen by.

    class_weight: of all that was counted. taken: how much of each row is left out of that.
    """
    joint = np.einsum("nkc,k->nc", centred(evidence), weights) + rows.log_prior + bias
    every = np.arange(rows.labels.size)
    own = class_weight[rows.labels]
    with np.errstate(divide="ignore"):
        joint[every, rows.labels] += np.log(np.maximum(own - removed, 0.0) / own)  # the prior of the other rows
    chance = scipy.special.softmax(joint, axis=1)[every, rows.labels]
    right = joint.argmax(axis=1) == rows.labels
    losses = -np.log(np.maximum(chance, np.finfo(np.float64).eps))
    return float(np.average(right, weights=rows.weights)), float(np.average(losses, weights=rows.weights))


def centred(evidence: Floats) -> Floats:
    """The evidence about its mean over the classes, which changes no posterior, and not beyond what is reasonable."""
    finite = np.clip(np.nan_to_num(evidence, nan=0.0), -1e200, 1e200)
    finite = finite - finite.max(axis=2, keepdims=True)
    finite = np.maximum(finite, -MOST_EXTREME)
    return np.asarray(finite - finite.mean(axis=2, keepdims=True))


def maximise(
    evidence: Floats, rows: Rows, target: Floats, bias: Floats, strength: float, polish: bool = True
) -> tuple[Floats, Floats]:
    """The weights and the bias of the highest likelihood, less what they differ from their targets."""
    size, blocks, classes = evidence.shape
    total = rows.weights.sum()
    share = rows.weights / total
    flat = np.ascontiguousarray(evidence.transpose(0, 2, 1)).reshape(size * classes, blocks)
    row = np.arange(size)
    # in units of the deviation of each block's evidence all directions are about equally steep
    unit = 1.0 / np.maximum(np.sqrt(np.repeat(share, classes) @ flat**2 / classes), 1e-6)
    unit = np.minimum(unit, 1.0 / np.sqrt(strength / total))

    def objective(point: Floats) -> tuple[float, Floats]:
        weight, lift = point[:blocks] * unit, point[blocks:]
        score = (flat @ weight).reshape(size, classes) + rows.log_prior + lift
        highest = score.max(axis=1)
        odds = np.exp(score - highest[:, None])
        normalizer = odds.sum(axis=1)
        loss = float(share @ (highest + np.log(normalizer) - score[row, rows.labels]))
        excess = odds * (share / normalizer)[:, None]
        excess[row, rows.labels] -= share
        away = weight - target
        loss += 0.5 * (strength * float(away @ away) + BIAS_ROWS * float(lift @ lift)) / total
        slope = (flat.T @ excess.ravel() + strength / total * away) * unit
        return loss, np.concatenate([slope, excess.sum(axis=0) + BIAS_ROWS / total * lift])

    def newton_step(point: Floats) -> Floats:
        """A step to the optimum that does not depend on the way there; weights at 0 that want to stay do."""
        loss, slope = objective(point)
        score = (flat @ (point[:blocks] * unit)).reshape(size, classes) + rows.log_prior + point[blocks:]
        odds = np.exp(score - score.max(axis=1, keepdims=True))
        chance = odds / odds.sum(axis=1, keepdims=True)
        scaled = (flat * unit).reshape(size, classes, blocks)
        mean = np.einsum("nc,nck->nk", chance, scaled)
        heavy = chance * share[:, None]
        both = np.einsum("nc,nck->kc", heavy, scaled) - mean.T @ heavy
        curvature = np.empty((point.size, point.size))
        curvature[:blocks, :blocks] = flat.T @ (flat * heavy.reshape(-1, 1)) * np.outer(unit, unit)
        curvature[:blocks, :blocks] -= mean.T @ (mean * share[:, None])
        curvature[:blocks, blocks:], curvature[blocks:, :blocks] = both, both.T
        curvature[blocks:, blocks:] = np.diag(heavy.sum(axis=0)) - chance.T @ heavy
        curvature[np.diag_indices(blocks)] += strength / total * unit**2
        lifts = np.arange(blocks, blocks + classes)
        curvature[lifts, lifts] += BIAS_ROWS / total
        free = np.ones(point.size, dtype=np.bool_)
        free[:blocks] = (point[:blocks] > 0.0) | (slope[:blocks] < 0.0)
        step = np.zeros(point.size)
        step[free] = np.linalg.lstsq(curvature[np.ix_(free, free)], slope[free], rcond=None)[0]
        moved = point - step
        moved[:blocks] = np.maximum(moved[:blocks], 0.0)
        return moved if objective(moved)[0] <= loss + 1e-14 else point

    start = np.concatenate([target / unit, bias])
    bounds = [(0.0, None)] * blocks + [(None, None)] * classes
    options = {"maxiter": 200, "ftol": 1e-8, "gtol": 1e-6} if polish else {"maxiter": 50, "ftol": 1e-6, "gtol": 1e-5}
    solved: Any = scipy.optimize.minimize(  # type: ignore[call-overload]  # its stubs are stricter than it is
        objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options
    )
    point = solved.x
    work = size * classes * blocks**2 + (blocks + classes) ** 3
    for _ in range(POLISHING_STEPS if polish and work < MOST_POLISHING else 0):
        point = newton_step(point)
    return point[:blocks] * unit, point[blocks:]
