"""Counts, the Model they support, and the Evidence it finds."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from deciban.arrays import Flags, Floats, Integers
from deciban.counts import Counts, Guard
from deciban.errors import BadCell
from deciban.families import Likelihood
from deciban.families.protocols import LeftOut, Sampled, add_base
from deciban.posterior import log_normalize
from deciban.schema.schema import Schema
from deciban.tables.labels import LabelArray
from deciban.tables.table import Table


@dataclass(frozen=True)
class Model:
    """A prior and the likelihoods of the parts, with a weight for each block and a bias for each class."""

    schema: Schema
    classes: LabelArray
    log_prior: Floats
    bias: Floats
    weights: Floats
    likelihoods: tuple[Likelihood, ...]

    def log_joint(self, table: Table, first_row: int = 0, full: bool = True) -> Floats:
        """log P(row, class), unnormalised; without `full`, up to a term that is the same for every class."""
        out = np.empty((table.rows, 1, self.classes.size))
        out[:] = self._start
        self._score(table, first_row, self._part_weights, self.schema.together, full, out)
        return out[:, 0]

    @cached_property
    def _start(self) -> Floats:
        return self.log_prior + self.bias

    @cached_property
    def _part_weights(self) -> tuple[Floats, ...]:
        return tuple(self.weights[slot] for slot in self.schema.slots)

    def evidence(self, table: Table, first_row: int = 0) -> "Evidence":
        """What each block says for each class, kept apart."""
        out = np.zeros((table.rows, len(self.schema.block_names), self.classes.size))
        ones = tuple(np.ones(slot.size) for slot in self.schema.slots)
        self._score(table, first_row, ones, self.schema.slots, True, out)
        return Evidence(self.schema.block_names, self.classes, out, self.weights, self.bias, self.log_prior)

    def left_out_evidence_of(self, counts: "Counts", table: Table, rows: LeftOut, first_row: int = 0) -> Floats:
        """What each block says of rows that were counted, had each not been counted: row by block by class."""
        out = np.zeros((table.rows, len(self.schema.block_names), self.classes.size))
        guard = Guard(self.schema, first_row)
        for p, (group, statistic) in enumerate(zip(self.schema.groups, counts.statistics, strict=True)):
            cells = guard(p, group.family.read, table, group.columns)
            guard(p, group.family.score_left_out, statistic, cells, rows, self.schema.slots[p], out)
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
        """Add the weighted evidence of every part to `out`. The one place where anything is scored."""
        for p, group in enumerate(self.schema.groups):
            likelihood = self.likelihoods[p]
            try:
                cells = group.family.read(table, group.columns)
                likelihood.score(cells, weights[p], slots[p], out)
            except BadCell as bad:
                raise Guard(self.schema, first_row).named(p, bad) from None
            if full:
                add_base(likelihood, cells, weights[p], slots[p], out)

    def sample(
        self, rows: int, rng: np.random.Generator, label: int | None = None, length: int | None = None
    ) -> tuple[list[Sampled], Integers]:
        """Columns of drawn cells, in the order of the schema, and the class of each row, which may be given.

        length: the number of words of each text.
        """
        prior = np.exp(self.log_prior)
        labels = rng.choice(self.classes.size, size=rows, p=prior / prior.sum())
        if label is not None:
            labels = np.full(rows, label, dtype=np.int64)
        columns: dict[int, Sampled] = {}
        guard = Guard(self.schema)
        for p, group in enumerate(self.schema.groups):
            likelihood = self.likelihoods[p]
            given = (length,) if length is not None and likelihood.texts else ()
            drawn = guard(p, likelihood.sample, labels, rng, *given)
            columns.update(zip(group.columns, drawn, strict=True))
        return [columns.get(column, pa.nulls(rows)) for column in range(self.schema.width)], labels


@dataclass(frozen=True)
class Evidence:
    """log P(block | class) of each row, block and class, and what it is added to.

    log joint = log prior + bias + sum over blocks of weight * value.
    """

    blocks: tuple[str, ...]
    classes: LabelArray
    values: Floats
    weights: Floats
    bias: Floats
    log_prior: Floats

    @property
    def weighted(self) -> Floats:
        """weight * value, 0 where the weight is 0."""
        weights = self.weights[None, :, None]
        return np.multiply(weights, self.values, out=np.zeros_like(self.values), where=weights > 0.0)

    @property
    def log_joint(self) -> Floats:
        joint: Floats = np.broadcast_to(self.log_prior + self.bias, self.values.shape[::2]).copy()
        for b in np.flatnonzero(self.weights):
            joint += self.weights[b] * self.values[:, b]
        return joint

    @property
    def log_posterior(self) -> Floats:
        return log_normalize(self.log_joint, self.log_prior, logarithm=True)[0]

    @property
    def impossible(self) -> Flags:
        """The rows to which every class gives probability 0: their posterior is the prior."""
        return np.asarray(self.log_joint.max(axis=1) == -np.inf)


def estimate(
    counts: Counts,
    log_prior: Floats,
    likelihoods: tuple[Likelihood, ...] | None = None,
    weights: Floats | None = None,
    bias: Floats | None = None,
) -> Model:
    """The model that the counts support. Unless given, every weight is 1, every bias 0."""
    if likelihoods is None:
        parts = zip(counts.schema.groups, counts.statistics, strict=True)
        likelihoods = tuple(group.family.estimate(statistic) for group, statistic in parts)
    blocks = len(counts.schema.block_names)
    weights = np.ones(blocks) if weights is None else weights
    bias = np.zeros(counts.classes.size) if bias is None else bias
    return Model(counts.schema, counts.classes, log_prior, bias, weights, likelihoods)
