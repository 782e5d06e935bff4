"""The Model that is estimated from counts, the Evidence it gives, and the posteriors of log joint probabilities."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from deciban import kernels
from deciban.errors import BadCell
from deciban.families import Likelihood
from deciban.families.base.contract import LeftOutRows, Sampled, add_common_factor
from deciban.model.corrections import Bins, Corrections
from deciban.model.counts import Counts, Guard
from deciban.model.partial_rows import MissingAdjustment, PartialRows
from deciban.schema.schema import Schema
from deciban.tables.labels import LabelArray
from deciban.tables.table import Table, missing_cells
from deciban.util.arrays import Flags, Floats, Integers


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


# Evidence beyond this for every class leaves too few digits to what is added to it.
VAST_EVIDENCE = 1e6

# Classes that are so few that whole columns of them are compared, one class after the other.
FEW_CLASSES = 16


@dataclass(frozen=True)
class Model:
    """A prior and a likelihood for each column group, with a weight for each block and a bias for each class.

    log joint = log prior + bias + sum over blocks of weight * evidence + corrections. Plain Bayes has weights of 1,
    biases of 0 and no corrections. In a row with missing cells, a tuned model has the bias of the known columns,
    averages the corrections over the others, and multiplies all but the log prior by a scale. `BayesClassifier.model_`
    has the model of a fitted classifier, whose methods take tables in any form.

    Parameters
    ----------
    schema : Schema
        The column groups of the model; their blocks are `schema.block_names`.
    classes : ndarray of shape (n_classes,)
        The labels of the classes, sorted.
    log_prior : ndarray of shape (n_classes,)
        The log prior of each class.
    weights : ndarray of shape (n_blocks,)
        The evidence weight of each block.
    likelihoods : tuple
        The likelihood of each column group, in the order of `schema.groups`.
    corrections : Corrections, default=None
        What is added to the sum of the evidence. None: nothing.
    cap : float, default=inf
        No block but texts is worth more than this, in nats and after its weight, for or against any class.
    partial : PartialRows, default=None
        The bias of each class, column by column, and how rows with missing cells are scored. None: there is no bias,
        and a missing cell is no evidence.

    Attributes
    ----------
    bias : ndarray of shape (n_classes,)
        What is added to the log joint of each class, in a row without missing cells.

    See Also
    --------
    Counts : What a model is estimated from.
    Evidence : What each block contributes to the log joint.

    Examples
    --------
    >>> from deciban import BayesClassifier
    >>> from deciban.datasets import weather
    >>> model = BayesClassifier(tune=None).fit(weather(), "play").model_
    >>> model.schema.block_names, model.weights.tolist(), model.bias.tolist()
    (('outlook', 'temperature', 'humidity', 'wind'), [1.0, 1.0, 1.0, 1.0], [0.0, 0.0])
    >>> import numpy as np
    >>> np.exp(model.log_prior).round(3).tolist()
    [0.357, 0.643]
    """

    schema: Schema
    classes: LabelArray
    log_prior: Floats
    weights: Floats
    likelihoods: tuple[Likelihood, ...]
    corrections: Corrections | None = None
    cap: float = np.inf
    partial: PartialRows | None = None

    @cached_property
    def bias(self) -> Floats:
        """What is added to the log joint of each class, in a row without missing cells."""
        return np.zeros(self.classes.size) if self.partial is None else self.partial.bias

    def adjust_for_missing(self, table: Table) -> MissingAdjustment | None:
        """What is known of rows with missing cells.

        Parameters
        ----------
        table : Table
            Rows with the columns of the schema, in its order.

        Returns
        -------
        MissingAdjustment or None
            None: no cell is missing, or it does not matter beyond the evidence of its block.
        """
        if self.partial is None:
            return None
        missing = missing_cells(table)
        return None if missing is None else self.partial.adjust_for_missing(missing)

    def log_joint(self, table: Table, first_row: int = 0, full: bool = True) -> Floats:
        """log P(row, class), unnormalized.

        Parameters
        ----------
        table : Table
            Rows with the columns of the schema, in its order.
        first_row : int, default=0
            The number of the first row, for messages.
        full : bool, default=True
            Whether a term is added that is the same for every class, such as the number of orders of words.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
        """
        known = self.adjust_for_missing(table)
        out = np.empty((table.rows, 1, self.classes.size))
        out[:, 0] = self.log_prior if self.partial is None else self.bias if known is None else known.bias
        if self.cap == np.inf:
            self._score(table, first_row, self._part_weights, self.schema.shared_slots, full, out)
        else:
            apart = np.zeros((table.rows, len(self.schema.block_names), self.classes.size))
            self._score(table, first_row, self._part_weights, self.schema.block_slots, full, apart)
            apart = self.cap_weighted_evidence(apart, self.cap)
            for b in range(apart.shape[1]):  # in a fixed order, so that a row alone has the same bits
                out[:, 0] += apart[:, b]
        if self.corrections is not None:
            self.corrections.add_to(self._bins(table, first_row), out[:, 0], self.unknown_corrected_cells(known))
        joint = out[:, 0]
        if known is not None:
            joint *= known.scale[:, None]
        if self.partial is not None:
            joint += self.log_prior
        return joint

    def unknown_corrected_cells(self, known: MissingAdjustment | None) -> Flags | None:
        """The unknown cells of the corrected columns.

        Parameters
        ----------
        known : MissingAdjustment or None
            What is known of some rows.

        Returns
        -------
        ndarray of shape (n_corrected_columns, n_rows), or None
            None: there are none.
        """
        if known is None or self.corrections is None:
            return None
        return np.ascontiguousarray(known.unknown[:, [one.column for one in self.corrections.columns]].T)

    def _bins(self, table: Table, first_row: int) -> Bins:
        """The bins of the corrected columns; a DataError that names the cell where one cannot be read."""
        assert self.corrections is not None, "there are corrections"
        try:
            return self.corrections.read(table)
        except BadCell as bad:
            raise bad.as_error(self.schema.column_name(bad.column), first_row) from None

    def cap_weighted_evidence(self, weighted: Floats, cap: float) -> Floats:
        """The weighted evidence, none of which is further below that of the best class than the cap.

        Where it would be, the evidence is relative to that of the best class; where every class has probability 0 it is
        none. Texts and counts of words are left as they are: they are many words.

        Parameters
        ----------
        weighted : ndarray of shape (n_rows, n_blocks, n_classes)
            Weight times evidence of each block.
        cap : float
            The most that a block may be worth, in nats.

        Returns
        -------
        ndarray of shape (n_rows, n_blocks, n_classes)
        """
        return weighted if cap == np.inf else self._limited(weighted, cap)[0]

    def _limited(self, weighted: Floats, cap: float) -> tuple[Floats, Flags]:
        """The same, and whether a block was worth more than the cap, or so much for every class that others would be
        rounded away; row by block."""
        lowest, top = _least(np.minimum, weighted), _least(np.maximum, weighted)
        beyond = np.asarray((~(lowest >= top - cap) | (top < -VAST_EVIDENCE)) & ~self._word_blocks)
        if not beyond.any():
            return weighted, beyond
        best, limited = top[beyond][:, None], weighted.copy()
        with np.errstate(invalid="ignore"):
            below = np.where(best == -np.inf, 0.0, weighted[beyond] - best)
        limited[beyond] = np.maximum(below, -cap)
        return limited, beyond

    @cached_property
    def _word_blocks(self) -> Flags:
        found = np.zeros(len(self.schema.block_names), dtype=np.bool_)
        for slot, group in zip(self.schema.block_slots, self.schema.groups, strict=True):
            found[slot] = group.family.is_text or group.family.accepts_new_columns
        return found

    @property
    def n_slots(self) -> int:
        """The numbers of evidence that are held for each row and class while it is scored."""
        return 1 if self.cap == np.inf else max(len(self.schema.block_names), 1)

    @cached_property
    def _part_weights(self) -> tuple[Floats, ...]:
        return tuple(self.weights[slot] for slot in self.schema.block_slots)

    def evidence(self, table: Table, first_row: int = 0) -> "Evidence":
        """The evidence of each block for each class, kept apart.

        Parameters
        ----------
        table : Table
            Rows with the columns of the schema, in its order.
        first_row : int, default=0
            The number of the first row, for messages.

        Returns
        -------
        Evidence
        """
        out = np.zeros((table.rows, len(self.schema.block_names), self.classes.size))
        ones = tuple(np.ones(slot.size) for slot in self.schema.block_slots)
        self._score(table, first_row, ones, self.schema.block_slots, True, out)
        values, capped = self.cap_evidence(out)
        known, bias = self.adjust_for_missing(table), self.bias
        if known is not None:
            values, bias = known.scale[:, None, None] * values, known.scale[:, None] * known.bias
        plain = Evidence(self.schema.block_names, self.classes, values, self.weights, bias, self.log_prior, capped)
        if self.corrections is None:
            return plain
        shares = self.corrections.shares(self._bins(table, first_row), self.unknown_corrected_cells(known))
        if known is not None:
            shares *= known.scale[:, None, None]
        names = tuple(f"correction of {self.schema.column_name(one.column)}" for one in self.corrections.columns)
        return replace(
            plain,
            blocks=(*self.schema.block_names, *names),
            values=np.concatenate([values, shares], axis=1),
            weights=np.concatenate([self.weights, np.ones(len(names))]),
        )

    def cap_evidence(self, values: Floats) -> tuple[Floats, Flags | None]:
        """The evidence of each block within the cap after its weight, and where the cap made it smaller.

        Parameters
        ----------
        values : ndarray of shape (n_rows, n_blocks, n_classes)
            The evidence of each block.

        Returns
        -------
        values : ndarray of shape (n_rows, n_blocks, n_classes)
        capped : ndarray of shape (n_rows, n_blocks) or None
            None: there is no cap.
        """
        if self.cap == np.inf:
            return values, None
        limited, beyond = self._limited(self._weights_above_0 * values, self.cap)
        return np.where(beyond[:, :, None], limited / self._weights_above_0, values), beyond

    @cached_property
    def _weights_above_0(self) -> Floats:
        """The weights, 1 where one is 0, by block."""
        return np.where(self.weights > 0.0, self.weights, 1.0)[None, :, None]

    def leave_one_out_evidence(self, counts: "Counts", table: Table, rows: LeftOutRows, first_row: int = 0) -> Floats:
        """The leave-one-out evidence of rows that were counted: of each row as if it had not been counted.

        Parameters
        ----------
        counts : Counts
            What the model was estimated from.
        table : Table
            The rows, with the columns of the schema, in its order.
        rows : LeftOutRows
            The class of each row, and the weight of it that is taken out.
        first_row : int, default=0
            The number of the first row, for messages.

        Returns
        -------
        ndarray of shape (n_rows, n_blocks, n_classes)
        """
        out = np.zeros((table.rows, len(self.schema.block_names), self.classes.size))
        guard = Guard(self.schema, first_row)
        for p, (group, statistic) in enumerate(zip(self.schema.groups, counts.statistics, strict=True)):
            cells = guard(p, group.family.read, table, group.columns)
            guard(p, group.family.score_left_out, statistic, cells, rows, self.schema.block_slots[p], out)
        return out

    def _score(
        self,
        table: Table,
        first_row: int,
        weights: tuple[Floats, ...],
        slots: tuple[Integers, ...],
        full: bool,
        out: Floats,
    ) -> None:
        """Add the weighted evidence of every column group to `out`. The one place where anything is scored."""
        for p, group in enumerate(self.schema.groups):
            likelihood = self.likelihoods[p]
            try:
                cells = group.family.read(table, group.columns)
                likelihood.score(cells, weights[p], slots[p], out)
            except BadCell as bad:
                raise Guard(self.schema, first_row).named(p, bad) from None
            if full:
                add_common_factor(likelihood, cells, weights[p], slots[p], out)

    def sample(
        self, n_samples: int, rng: np.random.Generator, label: int | None = None, length: int | None = None
    ) -> tuple[list[Sampled], Integers]:
        """Rows drawn from the model: a class from the prior, then each column group from its family.

        Parameters
        ----------
        n_samples : int
            Number of rows.
        rng : numpy.random.Generator
            Where the random numbers come from.
        label : int, default=None
            The position of the class of all rows. None: drawn from the prior.
        length : int, default=None
            The number of words of each text, and of each row of counts of words. None: drawn from the lengths that were
            learned.

        Returns
        -------
        columns : list of array
            The cells of each column, in the order of the schema.
        labels : ndarray of shape (n_rows,)
            The position of the class of each row in `classes`.
        """
        prior = np.exp(self.log_prior)
        labels = rng.choice(self.classes.size, size=n_samples, p=prior / prior.sum())
        if label is not None:
            labels = np.full(n_samples, label, dtype=np.int64)
        columns: dict[int, Sampled] = {}
        guard = Guard(self.schema)
        for p, group in enumerate(self.schema.groups):
            likelihood = self.likelihoods[p]
            given = (length,) if length is not None and likelihood.accepts_length else ()
            drawn = guard(p, likelihood.sample, labels, rng, *given)
            columns.update(zip(group.columns, drawn, strict=True))
        return [columns.get(column, pa.nulls(n_samples)) for column in range(self.schema.width)], labels


@dataclass(frozen=True)
class Evidence:
    """log P(block | class) of each row, block and class, and what it is added to.

    log joint = log prior + bias + sum over blocks of weight * value. `BayesClassifier.evidence` gives it.

    Parameters
    ----------
    blocks : tuple of str
        The names of the blocks: of a column, or of the columns of a joint block, as "a+b"; then, where the model is
        corrected, "correction of a" of each column.
    classes : ndarray of shape (n_classes,)
        The labels of the classes.
    values : ndarray of shape (n_rows, n_blocks, n_classes)
        The evidence of each block for each class: its log likelihood, in nats. A tuned model multiplies it, and the
        bias, by the scale of the row where cells are missing.
    weights : ndarray of shape (n_blocks,)
        The evidence weight of each block; 1 in plain Bayes.
    bias : ndarray of shape (n_classes,) or (n_rows, n_classes)
        What is added to the log joint of each class, for all rows or, where cells are missing, for each: the sum of the
        offsets of the known columns. 0 in plain Bayes.
    log_prior : ndarray of shape (n_classes,) or (n_rows, n_classes)
        The log prior of each class, for all rows or for each.
    capped : ndarray of shape (n_rows, n_blocks), default=None
        Where a block would be worth more than the cap of a tuned model: its values are then relative to that of the
        best class, and none is further below it than the cap. None: there is no cap.

    Attributes
    ----------
    weighted : ndarray of shape (n_rows, n_blocks, n_classes)
        weight * value.
    log_joint, log_posterior : ndarray of shape (n_rows, n_classes)
        The sum, and the same normalized.
    impossible : ndarray of shape (n_rows,)
        The rows to which every class gives probability 0.

    See Also
    --------
    BayesClassifier.explain : The same as a printed calculation, in decibans.

    Examples
    --------
    >>> from deciban import BayesClassifier
    >>> from deciban.datasets import weather
    >>> evidence = BayesClassifier(alpha=0, tune=None).fit(weather(), "play").evidence([{"outlook": "sunny"}])
    >>> evidence.blocks, evidence.classes.tolist()
    (('outlook', 'temperature', 'humidity', 'wind'), ['no', 'yes'])
    >>> import numpy as np
    >>> np.exp(evidence.values[0, 0]).round(3).tolist()                   # P(sunny | no), P(sunny | yes)
    [0.6, 0.222]
    >>> np.exp(evidence.log_posterior).round(3).tolist()
    [[0.6, 0.4]]
    """

    blocks: tuple[str, ...]
    classes: LabelArray
    values: Floats
    weights: Floats
    bias: Floats
    log_prior: Floats
    capped: Flags | None = None

    @property
    def weighted(self) -> Floats:
        """weight * value of each row, block and class; 0 where the weight is 0."""
        weights = self.weights[None, :, None]
        return np.multiply(weights, self.values, out=np.zeros_like(self.values), where=weights > 0.0)

    def take(self, places: Integers) -> "Evidence":
        """The evidence of some of the rows.

        Parameters
        ----------
        places : ndarray of int
            Their numbers, from 0.

        Returns
        -------
        Evidence
        """
        capped = None if self.capped is None else self.capped[places]
        prior, bias = (one if one.ndim == 1 else one[places] for one in (self.log_prior, self.bias))
        return replace(self, values=self.values[places], log_prior=prior, bias=bias, capped=capped)

    def row_log_prior(self, row: int) -> Floats:
        """The log prior of each class for a row: that of all rows, or, where rows were left out, its own.

        Parameters
        ----------
        row : int
            The number of the row, from 0.

        Returns
        -------
        ndarray of shape (n_classes,)
        """
        return self.log_prior if self.log_prior.ndim == 1 else self.log_prior[row]

    def row_bias(self, row: int) -> Floats:
        """The bias of each class for a row.

        Parameters
        ----------
        row : int
            The number of the row, from 0.

        Returns
        -------
        ndarray of shape (n_classes,)
        """
        return self.bias if self.bias.ndim == 1 else self.bias[row]

    @property
    def log_joint(self) -> Floats:
        """log prior + bias + the sum of the weighted evidence, of each row and class."""
        joint: Floats = np.broadcast_to(self.log_prior + self.bias, self.values.shape[::2]).copy()
        for b in np.flatnonzero(self.weights):
            joint += self.weights[b] * self.values[:, b]
        return joint

    @property
    def log_posterior(self) -> Floats:
        """The logarithm of the posterior of each row and class."""
        return log_normalize(self.log_joint, self.log_prior, logarithm=True)[0]

    @property
    def impossible(self) -> Flags:
        """Whether every class gives a row probability 0: then its posterior is the prior."""
        return np.asarray(self.log_joint.max(axis=1) == -np.inf)


def _least(lesser: np.ufunc, weighted: Floats) -> Floats:
    """The least, or by `np.maximum` the greatest, of the numbers of each row and block; NaN where one is."""
    classes = weighted.shape[2]
    if classes > FEW_CLASSES:
        return np.asarray(lesser.reduce(weighted, axis=2))
    found = weighted[:, :, 0].copy()
    for c in range(1, classes):  # several times as fast as to reduce so short an axis
        lesser(found, weighted[:, :, c], out=found)
    return found


def concatenate_evidence(parts: Sequence[Evidence]) -> Evidence:
    """The evidence of some rows, then of others, by one model; each row has its own prior."""
    capped = [part.capped for part in parts if part.capped is not None]
    return replace(
        parts[0],
        values=np.concatenate([part.values for part in parts]),
        log_prior=np.concatenate([part.log_prior for part in parts]),
        bias=np.concatenate([np.broadcast_to(part.bias, part.values.shape[::2]) for part in parts]),
        capped=np.concatenate(capped) if capped else None,
    )


def estimate(
    counts: Counts,
    log_prior: Floats,
    likelihoods: tuple[Likelihood, ...] | None = None,
    weights: Floats | None = None,
) -> Model:
    """The model that the counts support. Unless given, every weight is 1; every bias is 0."""
    if likelihoods is None:
        parts = zip(counts.schema.groups, counts.statistics, strict=True)
        likelihoods = tuple(group.family.estimate(statistic) for group, statistic in parts)
    blocks = len(counts.schema.block_names)
    weights = np.ones(blocks) if weights is None else weights
    return Model(counts.schema, counts.classes, log_prior, weights, likelihoods)
