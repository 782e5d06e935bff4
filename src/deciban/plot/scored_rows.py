"""Rows whose class is known, with what a classifier says of them."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from deciban.errors import Argument, DataError, Labels, UsageError
from deciban.evaluation.validation import learned_rows, left_out
from deciban.fitting.fit import open_examples
from deciban.fitting.update import places_of
from deciban.plot.display import fitted_of
from deciban.scoring.predict import predict_posteriors
from deciban.tables.labels import LabelArray
from deciban.util.arrays import Codes, Floats


@dataclass(frozen=True)
class ScoredRows:
    """The posterior of each row, the place of its true class, and its weight.

    prior: that the posteriors were made with. plain: the posteriors of a tuned model before tuning.
    """

    classes: LabelArray
    posterior: Floats
    labels: Codes
    weights: Floats
    prior: Floats
    plain: Floats | None = None


def score_rows(
    estimator: Any, X: Any, y: Any, sample_weight: Any = None, leave_one_out: bool = False, plain: bool = False
) -> ScoredRows:
    """Rows that were not learned, or that were, each left out in its turn; without X those of the last fit.

    plain: also what plain Bayes says, of a tuned model.
    """
    fitted = fitted_of(estimator)
    prior = np.exp(fitted.model.log_prior)
    tuned = plain and fitted.tuning is not None
    if X is None:
        found = estimator.diagnose() if tuned else None
        after = estimator.leave_one_out() if found is None else found.after
        before = None if found is None else found.before.posterior
        return ScoredRows(after.classes, after.posterior, after.labels, after.weights, prior, before)
    if leave_one_out:
        some = learned_rows(fitted, open_examples(fitted, X, y, sample_weight))
        after = left_out(fitted, *some)
        before = left_out(fitted, *some, fitted.plain).posterior if tuned else None
        return ScoredRows(after.classes, after.posterior, after.labels, after.weights, prior, before)
    rows = open_examples(fitted, X, y, sample_weight).whole()
    weights = np.ones(rows.table.rows) if rows.weights is None else rows.weights
    places = places_of(fitted, rows.labels, rows.weights)
    kept = np.flatnonzero((places >= 0) & (weights > 0.0))
    if not kept.size:
        raise DataError("no row has a label and a weight", remedy="give at least one to compare with")
    table = rows.table.take(kept)
    before = predict_posteriors(replace(fitted, tuning=None), table) if tuned else None
    return ScoredRows(fitted.classes, predict_posteriors(fitted, table), places[kept], weights[kept], prior, before)


def check_posteriors(y_true: Any, posterior: Any, classes: Any = None) -> ScoredRows:
    """Rows of any classifier; without classes, those of the rows, sorted."""
    claims = np.ascontiguousarray(posterior, dtype=np.float64)
    truths = np.asarray(y_true)
    labels = np.unique(truths) if classes is None else np.asarray(classes)
    if claims.ndim != 2 or len(claims) != truths.size or claims.shape[1] != labels.size:
        raise UsageError(
            (
                f"the posteriors have shape {claims.shape} for {truths.size} rows of the classes ",
                Labels(labels.tolist()),
            ),
            remedy="give a row for each, and a column for each class",
        )
    place = {label: k for k, label in enumerate(labels.tolist())}
    if unknown := [label for label in truths.tolist() if label not in place]:
        raise DataError(
            (f"the true class {unknown[0]!r} is none of ", Labels(labels.tolist())),
            remedy=("give all in ", Argument("classes")),
        )
    places = np.array([place[label] for label in truths.tolist()], dtype=np.int32)
    prior = np.bincount(places, minlength=labels.size) / places.size
    return ScoredRows(labels, claims, places, np.ones(places.size), prior)
