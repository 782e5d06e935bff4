"""Exact leave-one-out: every training row is scored by a model that has not learned it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from deciban.decisions.loss import Loss
from deciban.errors import DataError, UsageError
from deciban.evaluation.metrics import CALIBRATION_BINS, MIN_PROBABILITY, Calibration, Evaluation
from deciban.families.base.contract import LeftOutRows
from deciban.fitting.left_out import score_without_each_row
from deciban.fitting.tune.rows import Copies, find_copies
from deciban.model.counts import Counts
from deciban.model.model import Evidence, Model, choose_class, concatenate_evidence, log_normalize
from deciban.model.tuning import copies_in_words
from deciban.tables.labels import LabelArray
from deciban.tables.table import Table
from deciban.util.arrays import Codes, Floats, Integers
from deciban.util.frames import remember_library
from deciban.util.results import Metrics, Part, Result
from deciban.util.text_tables import count_noun, terminal_width, wrap_lines

# Numbers of evidence kept in the result: 512 MB.
MAX_EVIDENCE = 1 << 26


@dataclass(frozen=True, repr=False)
class LeaveOneOut(Result):
    """Posteriors of the training rows, each scored by a model that has not learned it; print it for a summary.

    `BayesClassifier.leave_one_out` returns it. Families, blocks and evidence weights stay as they are. `to_frame`
    returns a line for each row: ``class`` (the true one), ``predicted``, ``probability`` (of the true class),
    ``log_loss`` and ``weight``.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
        The classes, sorted.
    posterior : ndarray of shape (rows, n_classes)
        The posterior of each labeled row.
    log_joint : ndarray of shape (rows, n_classes)
        log P(row, class), before normalization.
    labels : ndarray of shape (rows,)
        Index of the true class of each row.
    weights : ndarray of shape (rows,)
        Weight of each row.
    given_tuning : bool
        True if structure and weights were tuned on these rows. The metrics are then slightly optimistic.
    kept_evidence : Evidence or None
        The evidence of each block; None if it is too large to keep.
    copies : int, default=0
        Number of rows that are copies of others. Copies are left out together.
    order : ndarray of shape (n_classes,), default=None
        Indices of ordered classes, ascending.

    See Also
    --------
    Evaluation : All metrics, from `evaluate`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from deciban import BayesClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> print(BayesClassifier(tune=None).fit(X[50:140], y[50:140]).leave_one_out())
    leave-one-out of 90 rows: accuracy 0.9222, log-loss 0.2124, calibration error 0.0640
    """

    classes: LabelArray
    posterior: Floats
    log_joint: Floats
    labels: Codes
    weights: Floats
    given_tuning: bool
    kept_evidence: Evidence | None
    copies: int = 0
    order: Integers | None = None

    @property
    def evidence(self) -> Evidence:
        """Evidence of each block. `log_prior` has one line per row, because the prior is left out too."""
        if self.kept_evidence is None:
            raise UsageError(
                "the evidence of these rows is too large to keep", remedy="call leave_one_out with fewer rows"
            )
        return self.kept_evidence

    @cached_property
    def log_losses(self) -> Floats:
        """-log P(true class) of each row."""
        of_truth = self.posterior[np.arange(self.labels.size), self.labels]
        return np.asarray(-np.log(np.maximum(of_truth, MIN_PROBABILITY)))

    def evaluate(self, loss: Any = None) -> Evaluation:
        """Compute all metrics of these rows.

        Parameters
        ----------
        loss : Loss, matrix, mapping, table or path, default=None
            Costs of decisions. With it, the evaluation includes the mean cost of the least-risk decisions.

        Returns
        -------
        Evaluation
        """
        costs = None if loss is None else Loss.from_costs(loss).for_classes(list(self.classes))
        found = Evaluation.from_posterior(
            self.posterior, self.labels, self.weights, self.classes, 0.0, costs, self.order
        )
        return remember_library(replace(found, leave_one_out=True, copies=self.copies), self)

    @cached_property
    def _evaluation(self) -> Evaluation:
        return self.evaluate()

    @property
    def accuracy(self) -> float:
        """Share of correct predictions."""
        return self._evaluation.accuracy

    @property
    def log_loss(self) -> float:
        """Mean of -log P(true class), in nats."""
        return self._evaluation.log_loss

    @property
    def roc_auc(self) -> float | None:
        """Area under the ROC curve; for more than two classes, the mean over classes of one-vs-rest areas."""
        return self._evaluation.roc_auc

    @property
    def brier_score(self) -> float:
        """Brier score; see `Evaluation.brier_score`."""
        return self._evaluation.brier_score

    @property
    def expected_calibration_error(self) -> float:
        """Mean absolute difference between predicted and observed probabilities of the predicted class."""
        return self._evaluation.expected_calibration_error

    def mean_cost(self, loss: Any) -> float:
        """Compute the mean cost of the least-risk decisions.

        Parameters
        ----------
        loss : Loss, matrix, mapping, table or path
            Costs in any form that `Loss.from_costs` accepts: decision first, truth second.

        Returns
        -------
        float
        """
        cost = self.evaluate(loss).mean_cost
        assert cost is not None, "there is a loss"
        return cost

    def calibration(self, bins: int = CALIBRATION_BINS) -> Calibration:
        """Compare predicted probabilities with how often the predicted class was the true one.

        Parameters
        ----------
        bins : int, default=15
            Number of equal bins of probability.

        Returns
        -------
        Calibration
        """
        return remember_library(Calibration.from_posterior(self.posterior, self.labels, self.weights, bins), self)

    def _columns(self) -> dict[str, Any]:
        return {
            "class": self.classes[self.labels],
            "predicted": self.classes[choose_class(self.posterior, self.order)],
            "probability": self.posterior[np.arange(self.labels.size), self.labels],
            "log_loss": self.log_losses,
            "weight": self.weights,
        }

    def to_dict(self) -> dict[str, Any]:
        """Return all metrics as plain values: those of `Evaluation.to_dict`, and ``given_tuning``.

        Returns
        -------
        dict
        """
        return {**self._evaluation.to_dict(), "given_tuning": self.given_tuning}

    def __str__(self) -> str:
        return wrap_lines("; ".join(map(str, self._parts())), terminal_width())

    def _parts(self) -> list[Part]:
        given = " (given the tuning)" if self.given_tuning else ""
        values = [
            ("accuracy", f"{self.accuracy:.4f}"),
            ("log-loss", f"{self.log_loss:.4f}"),
            ("calibration error", f"{self.expected_calibration_error:.4f}"),
        ]
        metrics = Metrics(f"leave-one-out of {count_noun(self.labels.size, 'row')}{given}", values)
        return [metrics, *([copies_in_words(self.copies)] if self.copies else [])]


def leave_one_out(
    model: Model,
    counts: Counts,
    prior: Any,
    table: Table,
    labels: Codes,
    weights: Floats,
    threads: int | None = None,
    given_tuning: bool = False,
    copies: Copies | None = None,
) -> LeaveOneOut:
    """Score the labeled rows of a table that was learned, each without itself.

    counts: those of the model. Of a row at most weight 1 is left out, of copies the weight of all; its loss counts with
    its weight. copies: copies among all training rows; None if these are all training rows.
    """
    known = np.flatnonzero((labels >= 0) & (weights > 0.0))
    if not known.size:
        raise DataError("no row has a label and a weight", remedy="pass the rows the model was trained on")
    table = table if known.size == labels.size else table.take(known)
    labels, weights = labels[known], weights[known]
    copies = find_copies(table, labels, weights) if copies is None else copies.take(known)
    blocks = len(model.schema.block_names) + (model.corrections is not None)
    keep = labels.size * blocks * model.classes.size <= MAX_EVIDENCE

    def finish(evidence: Evidence, joint: Floats, _: slice) -> tuple[Floats, Floats, Evidence | None]:
        return joint, log_normalize(joint, evidence.log_prior)[0], evidence if keep else None

    rows = LeftOutRows(labels, copies.removed)
    parts = score_without_each_row(model, counts, prior, table, rows, weights, finish, threads)
    joint, posterior = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
    kept = concatenate_evidence([part[2] for part in parts if part[2] is not None]) if keep else None
    return LeaveOneOut(model.classes, posterior, joint, labels, weights, given_tuning, kept, copies.extra, model.order)
