"""From joint to posterior."""

import numpy as np

from deciban.kernels.compiled import Array, compiled

# The exponential of less than this is 0, which takes the library longest to find.
LEAST = -746.0


@compiled
def weighed_sum(values: Array, weights: Array, out: Array) -> None:
    """Add weights[b] * values[row, b, class] over the blocks b to out[row, class]; a weight of 0 adds nothing."""
    for i in range(values.shape[0]):
        for b in range(values.shape[1]):
            if weights[b] != 0.0:
                for c in range(values.shape[2]):
                    out[i, c] += weights[b] * values[i, b, c]


@compiled
def normalize(log_joint: Array, log_prior: Array, logarithm: bool, posterior: Array, log_density: Array) -> None:
    """Fill the posterior (or its logarithm) and the log density of each row.

    Where every class has probability 0 the posterior is the prior.
    """
    for i in range(log_joint.shape[0]):
        top = -np.inf
        for c in range(log_joint.shape[1]):
            if not log_joint[i, c] <= top:  # so that a NaN would show
                top = log_joint[i, c]
        if top == -np.inf:
            log_density[i] = -np.inf
            for c in range(log_joint.shape[1]):
                posterior[i, c] = log_prior[c] if logarithm else np.exp(log_prior[c])
            continue
        total = 0.0
        for c in range(log_joint.shape[1]):
            below = log_joint[i, c] - top
            posterior[i, c] = 0.0 if below < LEAST else np.exp(below)
            total += posterior[i, c]
        log_total = np.log(total)
        log_density[i] = top + log_total
        for c in range(log_joint.shape[1]):
            if logarithm:
                posterior[i, c] = (log_joint[i, c] - top) - log_total
            else:
                posterior[i, c] /= total


@compiled
def best_classes(log_joint: Array, otherwise: int, best: Array) -> None:
    """Fill the first class with the highest log joint of each row; `otherwise` where every class has probability 0."""
    for i in range(log_joint.shape[0]):
        top, place = -np.inf, otherwise
        for c in range(log_joint.shape[1]):
            if log_joint[i, c] > top:
                top, place = log_joint[i, c], c
        best[i] = place
