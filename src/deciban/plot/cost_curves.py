"""Mean costs of rows whose class is known, for every threshold, and for every prior of a class."""

import numpy as np

from deciban.decisions.decide import incurred, least_risk_decisions
from deciban.decisions.loss import Loss
from deciban.errors import UsageError
from deciban.plot.judged import Judged
from deciban.util.arrays import Floats

# Thresholds, and priors, at which costs are found.
THRESHOLDS = 501
PRIORS_TRIED = np.concatenate([[0.001, 0.005, 0.01, 0.02], np.linspace(0.04, 0.96, 24), [0.98, 0.99, 0.995, 0.999]])


def costs_by_threshold(rows: Judged, loss: Loss, place: int) -> tuple[Floats, dict[str, Floats]]:
    """Thresholds, and the mean cost of deciding for a class of two where its posterior is above each."""
    labels = rows.classes.tolist()
    own, other = (loss.place("decision", labels[k]) for k in (place, 1 - place))
    matrix, weights = loss.matrix, rows.weights / rows.weights.sum()
    thresholds = np.linspace(0.0, 1.0, THRESHOLDS)
    chance = rows.posterior[:, place]
    order = np.argsort(chance, kind="stable")
    gain = weights * (matrix[own, rows.labels] - matrix[other, rows.labels])
    above = np.concatenate([np.cumsum(gain[order][::-1])[::-1], [0.0]])  # of rows from each place on
    start = np.searchsorted(chance[order], thresholds, side="right")
    return thresholds, {"above the threshold": float(weights @ matrix[other, rows.labels]) + above[start]}


def costs_by_prior(rows: Judged, loss: Loss, place: int) -> tuple[Floats, dict[str, Floats]]:
    """Priors of a class, and the mean cost of the decisions as they are, and as they are if the prior is told."""
    size = rows.classes.size
    present = np.bincount(rows.labels, rows.weights, size) > 0.0
    if not present[place] or np.count_nonzero(present) < 2:
        raise UsageError("costs against the prior need rows of the class and of another one")
    share = np.where(present, rows.prior, 0.0)
    share[place] = 0.0
    if not share.any():
        share = present.astype(np.float64)
        share[place] = 0.0
    share /= share.sum()
    now = _cost_by_truth(rows, rows.posterior, loss)
    as_now, as_told = np.empty(PRIORS_TRIED.size), np.empty(PRIORS_TRIED.size)
    for k, prior in enumerate(PRIORS_TRIED):
        wanted = (1.0 - prior) * share
        wanted[place] = prior
        factor = np.divide(wanted, rows.prior, out=np.zeros(size), where=rows.prior > 0.0)
        moved = rows.posterior * factor
        total = moved.sum(axis=1, keepdims=True)
        told = np.where(total > 0.0, moved / np.where(total > 0.0, total, 1.0), wanted)
        as_now[k], as_told[k] = now @ wanted, _cost_by_truth(rows, told, loss) @ wanted
    return PRIORS_TRIED.copy(), {"as the model decides": as_now, "if it is told the prior": as_told}


def _cost_by_truth(rows: Judged, posterior: Floats, loss: Loss) -> Floats:
    """The mean cost of the rows of each class; 0 where there are none."""
    cost = incurred(least_risk_decisions(np.ascontiguousarray(posterior), loss), rows.labels)
    size = rows.classes.size
    total, weight = np.bincount(rows.labels, rows.weights * cost, size), np.bincount(rows.labels, rows.weights, size)
    return np.divide(total, weight, out=np.zeros(size), where=weight > 0.0)
