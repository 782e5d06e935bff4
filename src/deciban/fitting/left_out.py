"""Scores of training rows by the model without each: evidence for evaluation, and conformity scores."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from deciban.errors import DataError
from deciban.families.base.contract import LeftOutRows
from deciban.fitting.tune.rows import Rows, correct_left_out_rows
from deciban.fitting.tune.weights import compute_metrics
from deciban.model.batches import row_ranges
from deciban.model.conformity import Conformity
from deciban.model.counts import Counts
from deciban.model.model import Evidence, Model, log_normalize
from deciban.model.priors import log_prior, prior_of
from deciban.model.tuning import Tuning
from deciban.tables.table import Table
from deciban.util.arrays import Floats
from deciban.util.parallel import map_in_threads, one_blas_thread
from deciban.util.progress import progress

Finished = TypeVar("Finished")

# Numbers of evidence computed at once: 16 MB per thread.
BATCH_EVIDENCE = 1 << 21

# Maximum number of rows with conformity scores: the coverage of 90% then has a standard error of 0.3%.
MAX_CONFORMITY_ROWS = 1 << 13

# Maximum numbers of evidence computed for conformity scores: about a second.
MAX_CONFORMITY_EVIDENCE = 1 << 26

# Rows with conformity scores that even the widest models have.
MIN_CONFORMITY_ROWS = 100

# Steps of the search for the share of all correction tables in conformity scores: to 0.1%.
SHARE_STEPS = 10


@one_blas_thread()
def score_without_each_row(
    model: Model,
    counts: Counts,
    prior: Any,
    table: Table,
    rows: LeftOutRows,
    weights: Floats,
    finish: Callable[[Evidence, Floats, slice], Finished],
    threads: int | None = None,
    known_evidence: Floats | None = None,
) -> list[Finished]:
    """Return finish(evidence, log joint, rows of the batch) for batches of rows, each scored without itself.

    counts: those of the model. rows: class of each row, and the weight to leave out with it. known_evidence: that of
    the blocks, row by block by class.
    """
    too_many = np.bincount(rows.labels, weights, counts.classes.size) > counts.class_weight * (1.0 + 1e-9)
    if rows.removed.any() and too_many.any():
        raise _not_learned()
    labels, priors = rows.labels, _leave_out_of_prior(prior, counts, rows)
    names, block_weights, corrected = model.schema.block_names, model.weights, None
    if model.corrections is not None:
        unknown = model.unknown_corrected_cells(model.adjust_for_missing(table))
        corrected = correct_left_out_rows(model.corrections, table, labels, model.classes, weights, unknown)
        names, block_weights = (*names, "corrections"), np.append(block_weights, 1.0)
    most = max(1, BATCH_EVIDENCE // max(1, len(names) * model.classes.size))

    def batch(span: tuple[int, int]) -> tuple[Finished, int]:
        here = slice(*span)
        with np.errstate(all="ignore"):  # rows that were never learned give NaN
            values = None if known_evidence is None else known_evidence[here]
            if values is None:
                values = model.leave_one_out_evidence(counts, table.slice(*span), rows[here], span[0])
            values, capped = model.cap_evidence(values)
        if corrected is not None:
            values = np.concatenate([values, corrected[here, None]], axis=1)
        known, bias = model.adjust_for_missing(table.slice(*span)), model.bias
        if known is not None:
            values, bias = known.scale[:, None, None] * values, known.scale[:, None] * known.bias
        evidence = Evidence(names, model.classes, values, block_weights, bias, priors[here], capped, model.limit)
        joint = evidence.log_joint
        if np.isnan(joint).any():
            raise _not_learned()
        return finish(evidence, joint, here), span[1] - span[0]

    parts = []
    with progress("leaving out", "rows", labels.size) as advance:
        for part, size in map_in_threads(batch, row_ranges(labels.size, most), threads):
            parts.append(part)
            advance(size)
    return parts


def _leave_out_of_prior(prior: Any, counts: Counts, rows: LeftOutRows) -> Floats:
    """Return the log prior of each row, from the classes of the other rows."""
    amounts, amount = np.unique(rows.removed, return_inverse=True)
    classes = counts.classes.size
    found = np.empty((amounts.size, classes, classes))
    for k, label in np.ndindex(amounts.size, classes):
        weight = counts.class_weight.copy()
        weight[label] = np.maximum(weight[label] - amounts[k], 0.0)
        found[k, label] = log_prior(prior, counts.classes, weight)
    return np.asarray(found[amount, rows.labels])


def _not_learned() -> DataError:
    return DataError(
        "cannot leave these rows out: the model was not trained on them, or their weight has decayed",
        remedy="pass only rows the model was trained on, or evaluate these as new rows",
    )


def learn_conformity(tuning: Tuning, counts: Counts, prior: Any, rows: Rows, learned: bool = True) -> Tuning:
    """Return the tuning with the conformity scores of these rows, each scored without itself.

    learned: True if the rows are among those counted. Rows that cannot be left out give no scores.
    """
    if counts.classes.size < 2 or (learned and counts.epsilon is not None):
        return tuning
    width = max(len(tuning.schema.block_names), 1) * counts.classes.size
    rows = rows.some(min(max(MAX_CONFORMITY_EVIDENCE // width, MIN_CONFORMITY_ROWS), MAX_CONFORMITY_ROWS))
    model, scored = tuning.model(counts, prior_of(prior, counts)), tuning.select(counts)
    corrections = model.corrections

    def finish(evidence: Evidence, joint: Floats, here: slice) -> tuple[Floats, Floats, Floats]:
        """Return the total evidence, the log prior, and what all correction tables would add to those without a row."""
        prior, more = evidence.log_prior, np.zeros(joint.shape)
        if corrections is not None:
            part = rows.table.slice(here.start, here.stop)
            known = model.adjust_for_missing(part)
            corrections.add_to(corrections.read(part), more, model.unknown_corrected_cells(known))
            more = (1.0 if known is None else known.scale[:, None]) * more - evidence.values[:, -1]
        return np.subtract(joint, prior, out=np.full(joint.shape, -np.inf), where=prior > -np.inf), prior, more

    left_out = rows.rows_to_leave_out(learned)
    try:
        parts = score_without_each_row(
            model, scored, prior, rows.table, left_out, rows.weights, finish, rows.threads, rows.evidence
        )
    except DataError:
        return tuning
    total, priors, more = (np.concatenate(part) for part in zip(*parts, strict=True))
    if tuning.fold_gain is not None:
        total = total + _find_share(total, more, rows, tuning.fold_gain) * more
    posterior = log_normalize(total + priors, priors)[0]
    return replace(tuning, conformity=Conformity.of(posterior, rows.labels, rows.weights))


def _find_share(total: Floats, more: Floats, rows: Rows, gain: float) -> float:
    """Return the share of `more` to add to the total evidence, so that the log-loss of the rows falls by this gain.

    Tables grown without one fold are less accurate than the mean of those of all folds, by which new rows are scored.
    The tuning has measured how much; without this share, sets would be too large.
    """
    low, high, log_loss = 0.0, 1.0, compute_metrics(total + rows.log_prior, rows)[1] - gain
    for _ in range(SHARE_STEPS):
        share = 0.5 * (low + high)
        if compute_metrics(total + share * more + rows.log_prior, rows)[1] > log_loss:
            low = share
        else:
            high = share
    return low
