"""From log joint probabilities to posteriors."""

import numpy as np

from deciban.kernels.compiled import Array, compiled

# The exponential of less than this is 0, which takes the library longest to find out.
LEAST_EXPONENT = -746.0


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
            posterior[i, c] = 0.0 if below < LEAST_EXPONENT else np.exp(below)
            total += posterior[i, c]
        log_total = np.log(total)
        log_density[i] = top + log_total
        for c in range(log_joint.shape[1]):
            if logarithm:
                posterior[i, c] = (log_joint[i, c] - top) - log_total
            else:
                posterior[i, c] /= total
