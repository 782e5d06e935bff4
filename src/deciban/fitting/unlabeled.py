"""Learn from rows without a label: expectation-maximization over counts (Nigam et al. 2000).

A round classifies these rows by the model, and counts each in every class, with its posterior as weight. The next round
estimates the model from these expected counts and the counts of the labeled rows. How much a row without a label
counts, and the number of rounds, are chosen by the log-loss of the labeled rows. These are assigned to folds, and the
rounds are run without each fold, so that no row is scored by a model that it had a part in. Rows without a label are
ignored unless the labeled rows gain more than noise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from deciban.fitting.tune.boosting import make_finite_prior
from deciban.fitting.tune.hyperparameters import UNLABELED, WEIGHTS
from deciban.fitting.tune.rows import Rows
from deciban.fitting.tune.weights import WeightSearch, center, compute_metrics, use_prior_of_others
from deciban.model.counts import Counts, Guard
from deciban.model.model import estimate, log_normalize, posteriors
from deciban.model.tuning import Tuning, Unlabeled
from deciban.schema.schema import Schema
from deciban.tables.row_sampling import sample_places
from deciban.tables.table import Table
from deciban.util.arrays import Floats, Integers
from deciban.util.parallel import one_blas_thread
from deciban.util.progress import Advance, progress


@one_blas_thread()
def learn_unlabeled(
    tuning: Tuning, counts: Counts, rows: Rows, table: Table, weights: Floats, log_prior: Floats
) -> tuple[Tuning, Floats | None]:
    """Return the tuning with the expected counts of rows without a label, if labeled rows gain by them.

    The second value is the evidence of the labeled rows, row by block by class, each scored without its fold; None if
    the others are ignored. table, weights: the rows without a label. log_prior: that of the model.
    """
    few = 0 < len(tuning.schema.block_names) <= WEIGHTS.max_blocks
    if not weights.size or not few or np.unique(rows.labels).size < 2 or rows.budget.spent:
        return tuning, None
    search = _Search.of(tuning, counts, rows, table, weights, log_prior)
    with progress("learning from rows without a label", "rounds") as advance:
        runs = [(weight, search.run(weight, advance)) for weight in UNLABELED.weights]
    weight, run = min(runs, key=lambda one: min(step.loss for step in one[1][1:]))
    rounds = 1 + int(np.argmin([step.loss for step in run[1:]]))
    start, best = run[0], run[rounds]
    found = Unlabeled(None, weights.size, weight, rounds, best.loss, start.loss)
    gain, share = start.losses - best.losses, rows.weights / rows.total
    if share @ gain <= UNLABELED.min_gain * np.sqrt(share**2 @ (gain - share @ gain) ** 2):
        return replace(tuning, unlabeled=found), None
    for step in run[:rounds]:
        model = replace(step.tuning, unlabeled=found).model(counts, log_prior)
        shares = weight * weights[:, None] * posteriors(model.log_joint(table), log_prior)
        found = replace(found, counts=count_shares(counts.schema, table, shares, counts))
    return replace(best.tuning, unlabeled=found), search.score(best.expected)


def count_shares(schema: Schema, table: Table, shares: Floats, like: Counts) -> Counts:
    """Return the counts of rows that are in every class of `like` with a share of their weight, row by class.

    They are not added to the weight of the classes, from which the prior is computed.
    """
    shares = np.where(shares < UNLABELED.min_share, 0.0, shares)
    statistics, guard = [], Guard(schema)
    for p, group in enumerate(schema.groups):
        cells = guard(p, group.family.read, table, group.columns)
        statistics.append(guard(p, group.family.count_shares, cells, shares))
    return Counts(schema, like.classes, np.zeros(like.classes.size), tuple(statistics), declared=True)


@dataclass(frozen=True)
class _Step:
    """Labeled rows scored without their fold, after some rounds.

    expected: the expected counts without each fold. tuning: with the weights that all rows support. losses: of each
    row, weighted without its fold too.
    """

    expected: list[Counts] | None
    tuning: Tuning
    losses: Floats
    loss: float


@dataclass(frozen=True)
class _Search:
    """Rounds without each fold of the labeled rows.

    parts: the counts without each fold. fold: that of each row. table, weights: a sample of the rows without a label.
    """

    tuning: Tuning
    rows: Rows
    parts: list[Counts]
    fold: Integers
    class_weight: Floats
    table: Table
    weights: Floats
    log_prior: Floats

    @classmethod
    def of(
        cls, tuning: Tuning, counts: Counts, rows: Rows, table: Table, weights: Floats, log_prior: Floats
    ) -> _Search:
        kept = sample_places(weights.size, UNLABELED.max_rows)
        some = weights[kept] * (weights.sum() / weights[kept].sum())
        fold, parts = assign_units(rows, UNLABELED.folds), []
        counted = replace(counts.select_schema(tuning.schema), declared=True)  # a class may have no rows without a fold
        for f in range(UNLABELED.folds):
            here = np.flatnonzero(fold == f)
            shares = np.eye(counts.classes.size)[rows.labels[here]] * rows.weights[here, None]
            own = count_shares(tuning.schema, rows.table.take(here), shares, counts)
            parts.append(counted.subtract(own, tolerance=UNLABELED.min_share))
        return cls(tuning, rows, parts, fold, counts.class_weight, table.take(kept), some, log_prior)

    @cached_property
    def start(self) -> _Step:
        """The labeled rows scored without any others."""
        return self._measure(None)

    @cached_property
    def _first(self) -> list[Counts]:
        """Expected counts of the first round, for a weight of 1."""
        return [self._expect(self.start.tuning, part, 1.0) for part in self.parts]

    def run(self, weight: float, advance: Advance) -> list[_Step]:
        """Return the steps of rounds in which a row without a label counts this much, until the loss rises."""
        steps = [self.start]
        while len(steps) == 1 or (len(steps) <= UNLABELED.max_rounds and not self.rows.budget.spent):
            if len(steps) == 1:
                found = [weight * part for part in self._first]
            else:
                last = steps[-1]
                found = [self._expect(last.tuning, total, weight) for total in self._add(last.expected)]
            steps.append(self._measure(found))
            advance(1)
            if int(np.argmin([step.loss for step in steps])) < len(steps) - UNLABELED.patience:
                break
        return steps

    def _add(self, expected: list[Counts] | None) -> list[Counts]:
        """Return all counts without each fold."""
        return self.parts if expected is None else [a + b for a, b in zip(self.parts, expected, strict=True)]

    def _expect(self, tuning: Tuning, counts: Counts, weight: float) -> Counts:
        """Return the expected counts of the rows without a label by the model of these counts."""
        model = tuning.model(counts, self.log_prior)
        shares = weight * self.weights[:, None] * posteriors(model.log_joint(self.table), self.log_prior)
        return count_shares(tuning.schema, self.table, shares, counts)

    def score(self, expected: list[Counts] | None) -> Floats:
        """Return the evidence of the labeled rows, each scored without its fold: row by block by class."""
        found = np.zeros((self.rows.labels.size, len(self.tuning.schema.block_names), self.rows.classes))
        for f, total in enumerate(self._add(expected)):
            here = np.flatnonzero(self.fold == f)
            found[here] = estimate(total, self.log_prior).evidence(self.rows.table.take(here)).values
        return found

    def _measure(self, expected: list[Counts] | None) -> _Step:
        rows, tuning, every = self.rows, self.tuning, np.arange(self.rows.labels.size)
        evidence, prior = center(self.score(expected)), make_finite_prior(rows)
        weight = np.broadcast_to(tuning.weights, (every.size, tuning.weights.size))
        bias = np.broadcast_to(tuning.bias, (every.size, rows.classes))
        if tuning.rows:
            search = WeightSearch.of(evidence, rows, tuning.weight_groups)
            whole = search.learn(rows.weights)
            each = search.learn_without_each(self.fold, UNLABELED.folds, whole)
            weight, bias = (np.stack(part)[self.fold] for part in zip(*each, strict=True))
            tuning = replace(tuning, weights=whole[0], bias=whole[1])
        joint = np.einsum("nbc,nb->nc", evidence, weight) + bias + prior
        joint = use_prior_of_others(joint, rows, self.class_weight[rows.labels], rows.weights)
        posterior = log_normalize(joint, prior)[0][every, rows.labels]
        losses = -np.log(np.maximum(posterior, np.finfo(np.float64).eps))
        if tuning.rows:
            accuracy, log_loss = compute_metrics(joint, rows)
            tuning = replace(tuning, accuracy=accuracy, log_loss=log_loss)
        return _Step(expected, tuning, losses, float(rows.weights @ losses / rows.total))


def assign_units(rows: Rows, folds: int) -> Integers:
    """Return the fold of each row: by content, about as many of each class, copies in the same."""
    unit = rows.copies.units
    units, first = np.unique(unit, return_index=True)
    order = np.lexsort((rows.table.take(first).hashes(), rows.labels[first]))
    turn = np.empty(units.size, dtype=np.int64)
    turn[order] = np.arange(units.size) % folds
    return np.asarray(turn[np.searchsorted(units, unit)])
