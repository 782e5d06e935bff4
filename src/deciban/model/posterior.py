"""From log joint probabilities to posteriors."""

import numpy as np

from deciban import kernels
from deciban.util.arrays import Floats, Integers


def log_normalize(log_joint: Floats, log_prior: Floats, logarithm: bool = False) -> tuple[Floats, Floats]:
    """The posterior of each row (or its logarithm), and the log of its density, which was divided out.

    Where every class has probability 0 the posterior is the prior, and the density of -inf marks the row. The prior is
    one for all rows, or has a line for each of them.
    """
    posterior, log_density = np.empty(log_joint.shape), np.empty(len(log_joint))
    each = log_prior.ndim == 2
    kernels.scoring.normalize(
        log_joint, np.zeros(log_joint.shape[1]) if each else log_prior, logarithm, posterior, log_density
    )
    if each:
        impossible = log_density == -np.inf
        posterior[impossible] = log_prior[impossible] if logarithm else np.exp(log_prior[impossible])
    return posterior, log_density


def posteriors(log_joint: Floats, log_prior: Floats) -> Floats:
    """The posterior of each row."""
    return log_normalize(log_joint, log_prior)[0]


def most_probable(log_joint: Floats, log_prior: Floats) -> Integers:
    """The place of the class with the highest posterior; ties go to the first."""
    best = log_joint.argmax(axis=1)
    impossible = log_joint[np.arange(best.size), best] == -np.inf
    return np.where(impossible, log_prior.argmax(), best)
