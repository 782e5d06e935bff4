"""The Bayes model estimated from counts, its evidence, and posteriors from log joint probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

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
from deciban.util.results import Part, Result, TextTable
from deciban.util.text_tables import count_noun, format_class, note_hidden


def log_normalize(log_joint: Floats, log_prior: Floats, logarithm: bool = False) -> tuple[Floats, Floats]:
    """Return the posterior of each row (or its logarithm), and the log density of the row.

    If every class has probability 0, the posterior is the prior and the log density is -inf. The prior is one for all
    rows, or has one line per row.
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
    """Return the posterior of each row."""
    return log_normalize(log_joint, log_prior)[0]


def most_probable(log_joint: Floats, log_prior: Floats) -> Integers:
    """Return the index of the class with the highest posterior; ties go to the first."""
    if log_joint.size > MAX_UNCOMPILED_SCORES:
        best = np.empty(len(log_joint), dtype=np.int64)
        kernels.scoring.most_probable(log_joint, int(log_prior.argmax()), best)
        return best
    best = log_joint.argmax(axis=1)
    impossible = log_joint[np.arange(best.size), best] == -np.inf
    return np.where(impossible, log_prior.argmax(), best)


# Cumulative probability that makes a class the median; exports find the same one despite rounding.
MIN_HALF = 0.5 - 1e-9


def find_median(posterior: Floats, order: Integers) -> Integers:
    """Return the first class, in ascending order, up to which the posterior of each row sums to one half."""
    return np.asarray(order[(np.cumsum(posterior[:, order], axis=1) >= MIN_HALF).argmax(axis=1)])


def choose_class(posterior: Floats, order: Integers | None) -> Integers:
    """Return the index of the predicted class: the most probable one, or the median of ordered classes."""
    return posterior.argmax(axis=1) if order is None else find_median(posterior, order)


def raise_to_limit(total: Floats, limit: float) -> Floats:
    """Raise the total evidence (row by class) to the limit below the best class, in place, and return it.

    A class of probability 0 keeps it.
    """
    if limit < np.inf:
        kernels.scoring.raise_to_limit(total, limit)
    return total


def measure_raised(total: Floats, limit: float) -> Floats:
    """Return what the limit adds to the total evidence, row by class."""
    return np.subtract(raise_to_limit(total.copy(), limit), total, out=np.zeros_like(total), where=total > -np.inf)


# Up to this many scores, NumPy finds the most probable classes in less time than it takes to load a compiled kernel.
MAX_UNCOMPILED_SCORES = 1 << 15

# Evidence below minus this for every class leaves too few digits for the other blocks.
VAST_EVIDENCE = 1e6


@dataclass(frozen=True)
class Model:
    """Bayes model: a prior, a likelihood per column group, a weight per block and a bias per class.

    log joint = log prior + bias + sum over blocks of weight * evidence + corrections. Plain Bayes has weights of 1,
    biases of 0 and no corrections. In a row with missing cells, a tuned model uses the bias of the known columns,
    averages the corrections over the others, and multiplies everything except the log prior by a scale. If what is
    then added to the log prior of a class is more than the limit below that of the best class, it is raised to it.

    `BayesClassifier.model_` holds the model of a fitted classifier. The methods of the classifier accept any table.

    Parameters
    ----------
    schema : Schema
        The column groups of the model; their blocks are `schema.block_names`.
    classes : ndarray of shape (n_classes,)
        Class labels, sorted.
    log_prior : ndarray of shape (n_classes,)
        Log prior of each class.
    weights : ndarray of shape (n_blocks,)
        Evidence weight of each block.
    likelihoods : tuple
        Likelihood of each column group, in the order of `schema.groups`.
    corrections : Corrections, default=None
        Correction tables, added to the sum of the evidence.
    cap : float, default=inf
        Maximum weighted evidence of a block for or against any class, in nats. Texts are not capped.
    partial : PartialRows, default=None
        Bias of each class, column by column, and the scale of rows with missing cells. None: no bias, and missing
        cells are ignored.
    limit : float, default=inf
        Maximum total evidence (all but the log prior) for any class against another, in nats. A class of probability 0
        keeps it.
    order : ndarray of shape (n_classes,), default=None
        Indices of ordered classes in ascending order: the prediction is then the posterior median. None: the classes
        have no order, and the most probable class is predicted.

    Attributes
    ----------
    bias : ndarray of shape (n_classes,)
        Bias of each class in a row without missing cells.

    See Also
    --------
    Counts : Sufficient statistics from which a model is estimated.
    Evidence : Contribution of each block to the log joint.

    Examples
    --------
    >>> from deciban import BayesClassifier
    >>> from deciban.datasets import weather
    >>> model = BayesClassifier(tune=None).fit(weather(), "play").model_
    >>> model
    <Model of 2 classes, 4 blocks>
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
    limit: float = np.inf
    order: Integers | None = None

    def __repr__(self) -> str:
        classes = count_noun(self.classes.size, "class")
        return f"<Model of {classes}, {count_noun(len(self.schema.block_names), 'block')}>"

    @cached_property
    def bias(self) -> Floats:
        """Bias of each class in a row without missing cells."""
        return np.zeros(self.classes.size) if self.partial is None else self.partial.bias

    def adjust_for_missing(self, table: Table) -> MissingAdjustment | None:
        """Return the bias and scale of rows with missing cells.

        Parameters
        ----------
        table : Table
            Rows with the columns of the schema, in its order.

        Returns
        -------
        MissingAdjustment or None
            None if no cell is missing, or if missing cells only remove the evidence of their block.
        """
        if self.partial is None:
            return None
        missing = missing_cells(table)
        return None if missing is None else self.partial.adjust_for_missing(missing)

    def log_joint(self, table: Table, first_row: int = 0, full: bool = True) -> Floats:
        """Return log P(row, class), unnormalized.

        Parameters
        ----------
        table : Table
            Rows with the columns of the schema, in its order.
        first_row : int, default=0
            Number of the first row, for error messages.
        full : bool, default=True
            If True, add terms that are the same for every class, such as the multinomial coefficient.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
        """
        known = self.adjust_for_missing(table)
        out = np.empty((table.rows, 1, self.classes.size))
        apart = self.partial is not None or self.limit < np.inf  # the log prior is added last
        out[:, 0] = self.log_prior if not apart else self.bias if known is None else known.bias
        if self.cap == np.inf:
            self._score(table, first_row, self._part_weights, self.schema.shared_slots, full, out)
        else:
            blocks = np.zeros((table.rows, len(self.schema.block_names), self.classes.size))
            self._score(table, first_row, self._part_weights, self.schema.block_slots, full, blocks)
            self._cap(blocks, self.cap, out[:, 0])
        if self.corrections is not None:
            self.corrections.add_to(self._bins(table, first_row), out[:, 0], self.unknown_corrected_cells(known))
        joint = out[:, 0]
        if known is not None:
            joint *= known.scale[:, None]
        if apart:
            raise_to_limit(joint, self.limit)
            joint += self.log_prior
        return joint

    def predict(self, joint: Floats, prior: Floats) -> Integers:
        """Return the index of the predicted class of each row.

        Parameters
        ----------
        joint : ndarray of shape (n_rows, n_classes)
            Log joint of each class.
        prior : ndarray of shape (n_classes,)
            Log prior.

        Returns
        -------
        ndarray of shape (n_rows,)
            The most probable class, or the posterior median of ordered classes.
        """
        return most_probable(joint, prior) if self.order is None else find_median(posteriors(joint, prior), self.order)

    def unknown_corrected_cells(self, known: MissingAdjustment | None) -> Flags | None:
        """Return flags of the unknown cells in the corrected columns.

        Parameters
        ----------
        known : MissingAdjustment or None
            Adjustment of the rows.

        Returns
        -------
        ndarray of shape (n_corrected_columns, n_rows), or None
            None if all cells are known.
        """
        if known is None or self.corrections is None:
            return None
        return np.ascontiguousarray(known.unknown[:, [one.column for one in self.corrections.columns]].T)

    def _bins(self, table: Table, first_row: int) -> Bins:
        """Return the bins of the corrected columns; raise a DataError for an invalid cell."""
        assert self.corrections is not None, "there are corrections"
        try:
            return self.corrections.read(table)
        except BadCell as bad:
            raise bad.as_error(self.schema.column_name(bad.column), first_row) from None

    def cap_weighted_evidence(self, weighted: Floats, cap: float) -> Floats:
        """Limit the weighted evidence to the cap below the best class, in place, and return it.

        Evidence that exceeds the cap is made relative to the best class. If every class has probability 0, it becomes
        0. Texts and word counts are not capped, because they consist of many words; monotone columns stay monotone.

        Parameters
        ----------
        weighted : ndarray of shape (n_rows, n_blocks, n_classes)
            Weight times evidence of each block.
        cap : float
            Maximum evidence of a block, in nats.

        Returns
        -------
        ndarray of shape (n_rows, n_blocks, n_classes)
        """
        if cap < np.inf:
            self._cap(weighted, cap, np.zeros(weighted.shape[::2]))
        return weighted

    def _cap(self, weighted: Floats, cap: float, total: Floats) -> Flags:
        """Limit the evidence in place and add it to `total`; return the flags of limited blocks, row by block.

        A block is also limited if its evidence is so large for every class that other blocks would be rounded away.
        """
        beyond = np.empty(weighted.shape[:2], dtype=np.bool_)
        kernels.scoring.limit_blocks(weighted, cap, VAST_EVIDENCE, self._uncapped_blocks, beyond, total)
        return beyond

    @cached_property
    def _uncapped_blocks(self) -> Flags:
        found = np.zeros(len(self.schema.block_names), dtype=np.bool_)
        for slot, group in zip(self.schema.block_slots, self.schema.groups, strict=True):
            found[slot] = not group.is_adjustable
        return found

    @property
    def n_slots(self) -> int:
        """Number of slots per row and class while rows are scored."""
        return 1 if self.cap == np.inf else max(len(self.schema.block_names), 1)

    @cached_property
    def _part_weights(self) -> tuple[Floats, ...]:
        return tuple(self.weights[slot] for slot in self.schema.block_slots)

    def evidence(self, table: Table, first_row: int = 0) -> Evidence:
        """Return the evidence of each block for each class.

        Parameters
        ----------
        table : Table
            Rows with the columns of the schema, in its order.
        first_row : int, default=0
            Number of the first row, for error messages.

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
        names, prior = self.schema.block_names, self.log_prior
        plain = Evidence(names, self.classes, values, self.weights, bias, prior, capped, self.limit)
        if self.corrections is None:
            return plain
        shares = self.corrections.shares(self._bins(table, first_row), self.unknown_corrected_cells(known))
        if known is not None:
            shares *= known.scale[:, None, None]
        more = tuple(f"correction of {self.schema.column_name(one.column)}" for one in self.corrections.columns)
        return replace(
            plain,
            blocks=(*names, *more),
            values=np.concatenate([values, shares], axis=1),
            weights=np.concatenate([self.weights, np.ones(len(more))]),
        )

    def cap_evidence(self, values: Floats) -> tuple[Floats, Flags | None]:
        """Return the evidence of each block limited to the cap, and flags of the limited blocks.

        Parameters
        ----------
        values : ndarray of shape (n_rows, n_blocks, n_classes)
            Evidence of each block, without weights. The cap applies to the weighted evidence.

        Returns
        -------
        values : ndarray of shape (n_rows, n_blocks, n_classes)
        capped : ndarray of shape (n_rows, n_blocks) or None
            None without a cap.
        """
        if self.cap == np.inf:
            return values, None
        limited = self._weights_above_0 * values
        beyond = self._cap(limited, self.cap, np.zeros(values.shape[::2]))
        return np.where(beyond[:, :, None], limited / self._weights_above_0, values), beyond

    @cached_property
    def _weights_above_0(self) -> Floats:
        """Weight of each block, with 1 in place of 0."""
        return np.where(self.weights > 0.0, self.weights, 1.0)[None, :, None]

    def leave_one_out_evidence(self, counts: Counts, table: Table, rows: LeftOutRows, first_row: int = 0) -> Floats:
        """Return the leave-one-out evidence of counted rows: each row is scored without its own counts.

        Parameters
        ----------
        counts : Counts
            The counts from which the model was estimated.
        table : Table
            The rows, with the columns of the schema, in its order.
        rows : LeftOutRows
            The class of each row, and the weight to remove.
        first_row : int, default=0
            Number of the first row, for error messages.

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
        """Add the weighted evidence of every column group to `out`.

        All scoring goes through this method.
        """
        for p, group in enumerate(self.schema.groups):
            likelihood = self.likelihoods[p]
            try:
                cells = group.family.read(table, group.columns)
                likelihood.score(cells, weights[p], slots[p], out)
            except BadCell as bad:
                raise Guard(self.schema, first_row).locate(p, bad) from None
            if full:
                add_common_factor(likelihood, cells, weights[p], slots[p], out)

    def sample(
        self, n_samples: int, rng: np.random.Generator, label: int | None = None, length: int | None = None
    ) -> tuple[list[Sampled], Integers]:
        """Return rows sampled from the model: a class from the prior, then each column group from its family.

        Parameters
        ----------
        n_samples : int
            Number of rows.
        rng : numpy.random.Generator
            Random number generator.
        label : int, default=None
            Index of the class of all rows. None draws it from the prior.
        length : int, default=None
            Number of words in each text, and in each row of word counts. None draws from the learned lengths.

        Returns
        -------
        columns : list of array
            Cells of each column, in the order of the schema.
        labels : ndarray of shape (n_rows,)
            Index of the class of each row in `classes`.
        """
        prior = np.exp(self.log_prior)
        labels = rng.choice(self.classes.size, size=n_samples, p=prior / prior.sum())
        if label is not None:
            labels = np.full(n_samples, label, dtype=np.int64)
        columns: dict[int, Sampled] = {}
        guard = Guard(self.schema)
        for p, group in enumerate(self.schema.groups):
            if group.auxiliary and not group.family.joint:
                continue  # a further block of columns that are drawn anyway
            likelihood = self.likelihoods[p]
            given = (length,) if length is not None and likelihood.accepts_length else ()
            drawn = guard(p, likelihood.sample, labels, rng, *given)
            columns.update(zip(group.columns, drawn, strict=True))
        return [columns.get(column, pa.nulls(n_samples)) for column in range(self.schema.width)], labels


# Rows of evidence that are printed: about a screen.
MAX_ROWS_PRINTED = 3

# Terms of a row that are printed.
MAX_TERMS_PRINTED = 40


class EvidenceTable(Result):
    """Base of evidence by block and by column: prints the terms of the log joint of each row, in nats."""

    classes: LabelArray
    log_prior: Floats

    def _terms(self) -> tuple[list[str], Floats]:
        """Return the names of the terms after the prior, and their values: row by term by class."""
        raise NotImplementedError

    def _all_terms(self) -> tuple[list[str], Floats]:
        names, values = self._terms()
        prior = np.broadcast_to(self.log_prior, values.shape[::2])[:, None]
        return ["prior", *names], np.concatenate([prior, values], axis=1)

    def _columns(self) -> dict[str, Any]:
        """Return a line for each row, term and class: ``row``, ``term``, ``class`` and ``nats``."""
        names, values = self._all_terms()
        rows, terms, classes = (places.ravel() for places in np.indices(values.shape))
        term = np.array(names, dtype=object)[terms]
        return {"row": rows, "term": term, "class": self.classes[classes], "nats": values.ravel()}

    def _parts(self) -> list[Part]:
        names, values = self._all_terms()
        head = ("", *map(format_class, self.classes.tolist()))
        hidden = len(names) - MAX_TERMS_PRINTED
        found: list[Part] = []
        for row, terms in enumerate(values[:MAX_ROWS_PRINTED]):
            pairs = [*zip(names, terms, strict=True)][:MAX_TERMS_PRINTED]
            lines = [(name, *(f"{value:.4f}" for value in term)) for name, term in pairs]
            lines += [(f"… ({hidden:,} more)", *[""] * self.classes.size)] if hidden > 0 else []
            lines.append(("log joint", *(f"{value:.4f}" for value in terms.sum(axis=0))))
            title = f"evidence of row {row} for each class, in nats"
            found.append(TextTable(lines, head, range(1, len(head)), title=title, total=True))
        return [*(found or ["no rows"]), *note_hidden(len(values) - MAX_ROWS_PRINTED, "more row", ": to_frame()")]


@dataclass(frozen=True, repr=False)
class Evidence(EvidenceTable):
    r"""Evidence of each row, block and class: log P(block | class).

    log joint = log prior + bias + sum over blocks of weight * value + raised. Returned by `BayesClassifier.evidence`.

    Parameters
    ----------
    blocks : tuple of str
        Names of the blocks: a column, or the columns of a joint block as "a+b". If the model has corrections, they are
        followed by "correction of a" for each corrected column.
    classes : ndarray of shape (n_classes,)
        Class labels.
    values : ndarray of shape (n_rows, n_blocks, n_classes)
        Log likelihood of each block for each class, in nats. In rows with missing cells, a tuned model multiplies it
        and the bias by the scale of the row.
    weights : ndarray of shape (n_blocks,)
        Evidence weight of each block; 1 in plain Bayes.
    bias : ndarray of shape (n_classes,) or (n_rows, n_classes)
        Bias of each class, for all rows or, if cells are missing, per row: the sum of the offsets of the known columns.
        0 in plain Bayes.
    log_prior : ndarray of shape (n_classes,) or (n_rows, n_classes)
        Log prior of each class, for all rows or per row.
    capped : ndarray of shape (n_rows, n_blocks), default=None
        True where the evidence of a block exceeds the cap of a tuned model. Its values are then relative to the best
        class and limited to the cap. None without a cap.
    limit : float, default=inf
        Maximum total evidence for a class against another, in nats. A tuned model has one: no more than the rows it
        learned can support.

    Attributes
    ----------
    weighted : ndarray of shape (n_rows, n_blocks, n_classes)
        weight * value.
    raised : ndarray of shape (n_rows, n_classes)
        Amount added to a class that is further below the best one than the limit; mostly 0.
    log_likelihood : ndarray of shape (n_rows, n_classes)
        The sum without the log prior: in plain Bayes, log P(row | class).
    log_joint, log_posterior : ndarray of shape (n_rows, n_classes)
        The sum, and the normalized sum.
    impossible : ndarray of shape (n_rows,)
        True for rows to which every class gives probability 0.

    See Also
    --------
    BayesClassifier.explain : Readable explanation in decibans.

    Notes
    -----
    The log joint of class c, with the weight :math:`w_j` of block j and the bias :math:`b_c`:

    .. math:: \log P(c, x) = \log P(c) + b_c + \sum_j w_j \log P(x_j \mid c)

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
    limit: float = np.inf

    def _terms(self) -> tuple[list[str], Floats]:
        shape = self.values.shape[::2]
        starts = {"bias": np.broadcast_to(self.bias, shape), "limit": self.raised}
        used = {name: values[:, None] for name, values in starts.items() if values.any()}
        return [*used, *self.blocks], np.concatenate([*used.values(), self.weighted], axis=1)

    @property
    def weighted(self) -> Floats:
        """Weight * value of each row, block and class; 0 if the weight is 0."""
        weights = self.weights[None, :, None]
        return np.multiply(weights, self.values, out=np.zeros_like(self.values), where=weights > 0.0)

    def take(self, places: Integers) -> Evidence:
        """Return the evidence of some rows.

        Parameters
        ----------
        places : ndarray of int
            Row numbers, starting at 0.

        Returns
        -------
        Evidence
        """
        capped = None if self.capped is None else self.capped[places]
        prior, bias = (one if one.ndim == 1 else one[places] for one in (self.log_prior, self.bias))
        return replace(self, values=self.values[places], log_prior=prior, bias=bias, capped=capped)

    def row_log_prior(self, row: int) -> Floats:
        """Return the log prior of each class for a row; leave-one-out rows have their own.

        Parameters
        ----------
        row : int
            Row number, starting at 0.

        Returns
        -------
        ndarray of shape (n_classes,)
        """
        return self.log_prior if self.log_prior.ndim == 1 else self.log_prior[row]

    def row_bias(self, row: int) -> Floats:
        """Return the bias of each class for a row.

        Parameters
        ----------
        row : int
            Row number, starting at 0.

        Returns
        -------
        ndarray of shape (n_classes,)
        """
        return self.bias if self.bias.ndim == 1 else self.bias[row]

    @property
    def _total(self) -> Floats:
        """Bias + sum of the weighted evidence, row by class, before the limit."""
        total: Floats = np.broadcast_to(self.bias, self.values.shape[::2]).copy()
        for b in np.flatnonzero(self.weights):
            total += self.weights[b] * self.values[:, b]
        return total

    @property
    def log_likelihood(self) -> Floats:
        """Bias + sum of the weighted evidence + raised, row by class."""
        return np.asarray(raise_to_limit(self._total, self.limit))

    @property
    def log_joint(self) -> Floats:
        """Log prior + log likelihood, row by class."""
        return np.asarray(self.log_likelihood + self.log_prior)

    @cached_property
    def raised(self) -> Floats:
        """Amount added to a class that is further below the best one than the limit, row by class."""
        return measure_raised(self._total, self.limit)

    @property
    def log_posterior(self) -> Floats:
        """Log posterior, row by class."""
        return log_normalize(self.log_joint, self.log_prior, logarithm=True)[0]

    @property
    def impossible(self) -> Flags:
        """True for rows to which every class gives probability 0; their posterior is the prior."""
        return np.asarray(self.log_joint.max(axis=1) == -np.inf)


def concatenate_evidence(parts: Sequence[Evidence]) -> Evidence:
    """Return the evidence of several sets of rows as one; each row has its own prior."""
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
    """Return the model estimated from the counts; weights default to 1, biases are 0."""
    if likelihoods is None:
        parts = zip(counts.schema.groups, counts.statistics, strict=True)
        likelihoods = tuple(group.family.estimate(statistic) for group, statistic in parts)
    blocks = len(counts.schema.block_names)
    weights = np.ones(blocks) if weights is None else weights
    return Model(counts.schema, counts.classes, log_prior, weights, likelihoods)
