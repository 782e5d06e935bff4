"""Between which bounds posteriors lie, given that they were learned from a sample.

By the delta method: the log joint of each class has an error for everything that was estimated (its own means and
shares, the variances that classes have in common, the prior if it was counted), and the errors of the classes together
say how far the log-odds of each class against all others may be off. Weights of evidence are held fixed.
"""

import numpy as np
import scipy

from deciban.arrays import Floats
from deciban.data.tables import Table
from deciban.families.base import own_variance
from deciban.model import Counts, Guard, Model

# Rows are looked at in pieces of so many, and of so many cells row by class by class.
MOST_ROWS = 1 << 14
MOST_CELLS = 1 << 22

# Beyond this a variance is as good as infinite, and can still be multiplied.
LARGEST_VARIANCE = 1e100


def posterior_intervals(
    model: Model, counts: Counts, prior_variance: Floats, table: Table, level: float
) -> tuple[Floats, Floats]:
    """The least and the highest posterior of each class, row by class, at the given level.

    counts: what the model was estimated from. prior_variance: of the log prior of each class.
    """
    classes = model.classes.size
    low, high = np.empty((table.rows, classes)), np.empty((table.rows, classes))
    step = max(1, min(MOST_ROWS, MOST_CELLS // classes**2))
    width = float(scipy.special.ndtri(0.5 + level / 2.0))
    for first in range(0, table.rows, step):
        some = slice(first, min(first + step, table.rows))
        piece = table.slice(some.start, some.stop)
        log_joint = model.log_joint(piece, first)
        covariance = error_covariance(model, counts, prior_variance, piece, first)
        impossible = log_joint.max(axis=1) == -np.inf  # the prior stands for the posterior
        log_joint[impossible] = model.log_prior
        covariance[impossible] = np.diag(prior_variance)
        log_odds, variance = log_odds_errors(log_joint, covariance)
        spread = width * np.sqrt(variance)
        low[some], high[some] = scipy.special.expit(log_odds - spread), scipy.special.expit(log_odds + spread)
    return low, high


def error_covariance(model: Model, counts: Counts, prior_variance: Floats, table: Table, first_row: int = 0) -> Floats:
    """The covariance of the errors of log P(row, class) between the classes: row by class by class."""
    classes = model.classes.size
    out = np.zeros((table.rows, classes, classes))
    own_variance(out)[:] = prior_variance
    guard = Guard(model.schema, first_row)
    with np.errstate(over="ignore", invalid="ignore"):  # of cells that are far from all that was learned
        for p, (part, statistic) in enumerate(zip(model.schema.parts, counts.statistics, strict=True)):
            cells = guard(p, part.family.read, table, part.columns)
            guard(p, part.family.add_covariance, statistic, cells, model.weights[model.schema.slots[p]], out)
    return np.clip(np.nan_to_num(out), -LARGEST_VARIANCE, LARGEST_VARIANCE)


def log_odds_errors(log_joint: Floats, covariance: Floats) -> tuple[Floats, Floats]:
    """The log-odds of each class against all others, row by class, and the variance of their errors.

    With the log joint of class k, whose posterior is p[k], the log-odds of c grow by (1[c = k] - p[k]) / (1 - p[c]).
    Of the most probable class 1 - p may be lost to rounding: there the others are added up.
    """
    rows = np.arange(len(log_joint))
    best = log_joint.argmax(axis=1)
    top = log_joint[rows, best]
    posterior = np.exp(log_joint - top[:, None])
    total = posterior.sum(axis=1, keepdims=True)
    posterior /= total
    rest = np.minimum(posterior, 0.5)
    log_odds = log_joint - top[:, None] - np.log(total) - np.log1p(-rest)
    along = np.einsum("nkl,nl->nk", covariance, posterior)
    common = (along * posterior).sum(axis=1, keepdims=True)
    variance = (own_variance(covariance) - 2.0 * along + common) / (1.0 - rest) ** 2

    others = log_joint.copy()
    others[rows, best] = -np.inf
    second = np.maximum(others.max(axis=1), -1e300)
    slope = -np.exp(others - second[:, None])
    summed = np.maximum(-slope.sum(axis=1), 1e-300)
    slope /= summed[:, None]
    slope[rows, best] = 1.0
    log_odds[rows, best] = top - second - np.log(summed)
    variance[rows, best] = np.einsum("nk,nkl,nl->n", slope, covariance, slope)
    return log_odds, np.maximum(variance, 0.0)
