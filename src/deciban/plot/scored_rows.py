"""Labeled rows with the posteriors of a classifier."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from deciban.errors import Argument, DataError, Labels, UsageError
from deciban.evaluation.validation import read_learned_rows, score_left_out
from deciban.fitting.fit import open_examples
from deciban.fitting.update import find_class_places
from deciban.plot.display import get_fitted
from deciban.scoring.predict import predict_posteriors
from deciban.tables.labels import LabelArray
from deciban.util.arrays import Codes, Floats


@dataclass(frozen=True)
class ScoredRows:
    """Posterior, position of the true class and weight of each row.

    prior: the prior of the posteriors. plain: the posteriors of plain Bayes, if the model is tuned.
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
    """Score labeled rows. Without X, score the rows of the last fit, each by the model without it.

    leave_one_out: the model was trained on these rows. plain: also score the rows of a tuned model by plain Bayes.
    """
    fitted = get_fitted(estimator)
    prior = np.exp(fitted.model.log_prior)
    tuned = plain and fitted.tuning is not None
    if X is None:
        diagnosis = estimator.diagnose() if tuned else None
        after = estimator.leave_one_out() if diagnosis is None else diagnosis.after
        before = None if diagnosis is None else diagnosis.before.posterior
        return ScoredRows(after.classes, after.posterior, after.labels, after.weights, prior, before)
    if leave_one_out:
        some = read_learned_rows(fitted, open_examples(fitted, X, y, sample_weight))
        after = score_left_out(fitted, *some)
        before = score_left_out(fitted, *some, fitted.plain).posterior if tuned else None
        return ScoredRows(after.classes, after.posterior, after.labels, after.weights, prior, before)
    rows = open_examples(fitted, X, y, sample_weight).whole()
    weights = rows.row_weights
    places = find_class_places(fitted, rows.labels, rows.weights)
    kept = np.flatnonzero((places >= 0) & (weights > 0.0))
    if not kept.size:
        raise DataError("no row has a label and a positive weight", remedy="pass at least one labeled row")
    table = rows.table.take(kept)
    before = predict_posteriors(replace(fitted, tuning=None), table) if tuned else None
    return ScoredRows(fitted.classes, predict_posteriors(fitted, table), places[kept], weights[kept], prior, before)


def check_posteriors(y_true: Any, posterior: Any, classes: Any = None) -> ScoredRows:
    """Check the posteriors of any classifier. Without `classes`, use the sorted labels of the rows."""
    probabilities = np.ascontiguousarray(posterior, dtype=np.float64)
    truths = np.asarray(y_true)
    labels = np.unique(truths) if classes is None else np.asarray(classes)
    if probabilities.ndim != 2 or len(probabilities) != truths.size or probabilities.shape[1] != labels.size:
        raise UsageError(
            (
                f"posteriors of shape {probabilities.shape} do not match {truths.size} rows of the classes ",
                Labels(labels.tolist()),
            ),
            remedy="pass one row per label and one column per class",
        )
    place = {label: k for k, label in enumerate(labels.tolist())}
    if unknown := [label for label in truths.tolist() if label not in place]:
        raise DataError(
            (f"the true class {unknown[0]!r} is not among ", Labels(labels.tolist())),
            remedy=("list all classes in ", Argument("classes")),
        )
    places = np.array([place[label] for label in truths.tolist()], dtype=np.int32)
    prior = np.bincount(places, minlength=labels.size) / places.size
    return ScoredRows(labels, probabilities, places, np.ones(places.size), prior)
