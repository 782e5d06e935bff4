"""Counts, the Model they support, and the Evidence it finds."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from deciban import kernels
from deciban.arrays import Flags, Floats, Integers
from deciban.data.labels import LabelArray
from deciban.data.schema import Schema
from deciban.data.tables import Table
from deciban.errors import BadCell, DataError, ForgetError, UsageError
from deciban.families import Likelihood
from deciban.families.base import LeftOut, Sampled, add_base
from deciban.families.heard_words import TextLikelihood
from deciban.statistics import Statistic
from deciban.statistics.base import remaining

T = TypeVar("T")


@dataclass(frozen=True)
class Counts:
    """All that was learned: a value that can be saved, sent, added, subtracted and scaled.

    Classes are sorted, and only those with a positive weight are kept, unless they were `declared` beforehand.
    """

    schema: Schema
    classes: LabelArray
    class_weight: Floats
    statistics: tuple[Any, ...]
    rows: int = 0
    unlabelled: int = 0
    declared: bool = False

    @classmethod
    def empty(cls, schema: Schema, declared: LabelArray | None = None) -> "Counts":
        """The counts of no rows at all; with `declared`, no other classes will be accepted."""
        classes = np.zeros(0, dtype=np.int64) if declared is None else np.unique(declared)
        statistics = tuple(part.family.empty(classes.size, len(part.columns)) for part in schema.parts)
        return cls(schema, classes, np.zeros(classes.size), statistics, declared=declared is not None)

    def __add__(self, other: "Counts") -> "Counts":
        """The counts of the rows of both."""
        if not self.classes.size and not self.unlabelled and self.schema == other.schema:
            return other  # nothing was counted yet
        mine, theirs = self._aligned(other)
        guard = Guard(mine.schema)
        pairs = enumerate(zip(mine.statistics, theirs.statistics, strict=True))
        merged = tuple(guard(p, a.merge, b) for p, (a, b) in pairs)
        return replace(
            mine,
            class_weight=mine.class_weight + theirs.class_weight,
            statistics=merged,
            rows=self.rows + other.rows,
            unlabelled=self.unlabelled + other.unlabelled,
        )

    def adds_nothing_to(self, other: "Counts") -> bool:
        """Whether no row here has a weight, and no class is declared that `other` does not have."""
        if self.class_weight.any():
            return False
        return not self.declared or set(self.classes.tolist()) <= set(other.classes.tolist())

    def __sub__(self, other: "Counts") -> "Counts":
        """The counts without the rows of `other`, which must have been counted before."""
        mine, theirs = self._aligned(other)
        if mine.schema.width > self.schema.width or mine.classes.size > self.classes.size:
            raise ForgetError(
                "these rows cannot be forgotten: they have a column or a class that was never learned; "
                "give just the rows that the model has learned"
            )
        guard = Guard(mine.schema)
        pairs = enumerate(zip(mine.statistics, theirs.statistics, strict=True))
        left = tuple(guard(p, a.remove, b) for p, (a, b) in pairs)
        return replace(
            mine,
            class_weight=remaining(mine.class_weight, theirs.class_weight),
            statistics=left,
            rows=max(self.rows - other.rows, 0),
            unlabelled=max(self.unlabelled - other.unlabelled, 0),
        ).without_empty_classes()

    def __radd__(self, other: object) -> "Counts":
        """0 + counts, so that sum() adds counts up."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def __mul__(self, factor: float) -> "Counts":
        """The counts as if every row had had `factor` times its weight."""
        if not isinstance(factor, int | float | np.number) or not 0.0 <= factor < np.inf:
            raise UsageError(f"counts cannot be scaled by {factor!r}; give a finite number that is at least 0")
        scaled = tuple(statistic.scale(factor) for statistic in self.statistics)
        return replace(self, class_weight=self.class_weight * factor, statistics=scaled).without_empty_classes()

    __rmul__ = __mul__

    def declaring(self, classes: LabelArray) -> "Counts":
        """The same counts with just these classes allowed; those counted already must be among them."""
        given = np.unique(classes)
        strangers = self.classes[~np.isin(self.classes, given)].tolist()
        if strangers or (self.declared and given.size != self.classes.size):
            raise UsageError(
                f"classes= is {given.tolist()}, but the model knows {self.classes.tolist()}; declare all at first"
            )
        return replace(self._with_classes(given if self.classes.size < given.size else self.classes), declared=True)

    def without_empty_classes(self) -> "Counts":
        """Without the classes that no row has, unless they were declared."""
        kept = self.class_weight > 0.0
        if self.declared or kept.all():
            return self
        positions = np.where(kept, np.cumsum(kept) - 1, -1)
        statistics = tuple(s.place_classes(positions, int(kept.sum())) for s in self.statistics)
        return replace(self, classes=self.classes[kept], class_weight=self.class_weight[kept], statistics=statistics)

    def under(self, schema: Schema) -> "Counts":
        """The same counts under a schema with more columns: in these, every row had missing cells."""
        if schema is self.schema or schema == self.schema:
            return self
        place = column_places(self.schema, schema)
        statistics = []
        for part in schema.parts:
            at = {column: k for k, column in enumerate(part.columns)}
            total: Statistic = part.family.empty(self.classes.size, len(part.columns))
            for old, statistic in zip(self.schema.parts, self.statistics, strict=True):
                if old.beside != part.beside or old.family.counts != part.family.counts:
                    continue
                positions = np.array([at.get(place[column], -1) for column in old.columns])
                if np.array_equal(positions, np.arange(len(part.columns))):
                    total = statistic
                elif (positions >= 0).any() and (not part.family.joint or part.open or (positions >= 0).all()):
                    total = total.merge(statistic.place_columns(positions, len(part.columns)))
            statistics.append(total)
        return replace(self, schema=schema, statistics=tuple(statistics))

    def heard(self, schema: Schema) -> "Counts":
        """The statistics that the parts of another schema of the same columns need."""
        if schema is self.schema:
            return self
        statistics = []
        for part in schema.parts:
            found = self.schema.find(part)
            assert found is not None, f"{part.family} was not counted"
            host, positions = found
            statistic = self.statistics[host]
            same = np.array_equal(positions, np.arange(len(part.columns)))
            statistics.append(statistic if same else statistic.place_columns(positions, len(part.columns)))
        return replace(self, schema=schema, statistics=tuple(statistics))

    def _aligned(self, other: "Counts") -> tuple["Counts", "Counts"]:
        """Both under the schema and the classes of the two together."""
        schema = self.schema.union(other.schema)
        classes = union_classes(self, other)
        declared = self.declared or other.declared
        mine = replace(self.under(schema)._with_classes(classes), declared=declared)
        return mine, replace(other.under(schema)._with_classes(classes), declared=declared)

    def _with_classes(self, classes: LabelArray) -> "Counts":
        if self.classes.size == classes.size:
            return replace(self, classes=classes)
        positions = np.searchsorted(classes, self.classes)
        statistics = tuple(s.place_classes(positions, classes.size) for s in self.statistics)
        weight = np.zeros(classes.size)
        weight[positions] = self.class_weight
        return replace(self, classes=classes, class_weight=weight, statistics=statistics)


def column_places(old: Schema, new: Schema) -> list[int]:
    """Where each column of `old` stands in `new`."""
    if old.names is None or new.names is None:
        return list(range(old.width))
    place = {name: k for k, name in enumerate(new.names)}
    return [place[name] for name in old.names]


def union_classes(mine: Counts, theirs: Counts) -> LabelArray:
    """The classes of both; a DataError where one of them declared its classes and the other has more."""
    a, b = mine.classes, theirs.classes
    if a.dtype == b.dtype and np.array_equal(a, b):
        return a
    if a.size and b.size and _kind(a) != _kind(b):
        raise DataError(
            f"the labels {a.tolist()[0]!r} and {b.tolist()[0]!r} are of different types; give all labels one type"
        )
    if a.size and b.size and {a.dtype.kind, b.dtype.kind} == {"i", "u"}:  # NumPy would make floats of them
        if max(int(a.max()), int(b.max())) >= 1 << 63:
            raise DataError("the labels hold integers beyond 2**63 beside negative-capable ones; give all one type")
        a, b = a.astype(np.int64), b.astype(np.int64)
    both = np.unique(np.concatenate([a, b])) if a.size and b.size else (a if a.size else b)
    for one in (mine, theirs):
        if one.declared and both.size > one.classes.size:
            unknown = both[~np.isin(both, one.classes)].tolist()[0]
            raise DataError(
                f"the label {unknown!r} is not among the declared classes {one.classes.tolist()}; "
                f"correct the label or declare it in classes="
            )
    return both


def _kind(classes: LabelArray) -> str:
    """Labels that can be compared: all text, or all numbers."""
    if classes.dtype.kind == "O":
        return "text" if isinstance(classes[0], str) else type(classes[0]).__name__
    return {"U": "text", "S": "bytes", "b": "bool", "M": "date", "m": "duration"}.get(classes.dtype.kind, "int")


@dataclass(frozen=True)
class Guard:
    """Runs what may meet a cell that cannot be used, and then names its column and row."""

    schema: Schema
    first_row: int = 0
    rows: Integers | None = None  # the numbers of the rows looked at, where some were left out

    def __call__(self, part: int, action: Callable[..., T], *arguments: Any) -> T:
        try:
            return action(*arguments)
        except BadCell as bad:
            raise self.named(part, bad) from None

    def named(self, part: int, bad: BadCell) -> DataError:
        column = self.schema.parts[part].columns[bad.column]
        if self.rows is not None and bad.row is not None:
            bad.row = int(self.rows[bad.row])
        return bad.as_error(self.schema.column_name(column), self.first_row)


def normalized(log_joint: Floats, log_prior: Floats, logarithm: bool = False) -> tuple[Floats, Floats]:
    """The posterior of each row (or its logarithm), and the log of its density, which was divided out.

    Where every class has probability 0 the posterior is the prior, and the density of -inf marks the row.
    """
    posterior, log_density = np.empty(log_joint.shape), np.empty(len(log_joint))
    kernels.normalize(log_joint, log_prior, logarithm, posterior, log_density)
    return posterior, log_density


def posteriors(log_joint: Floats, log_prior: Floats) -> Floats:
    """The posterior of each row."""
    return normalized(log_joint, log_prior)[0]


def most_probable(log_joint: Floats, log_prior: Floats) -> Integers:
    """The place of the class with the highest posterior; ties go to the first."""
    best = log_joint.argmax(axis=1)
    impossible = log_joint[np.arange(best.size), best] == -np.inf
    return np.where(impossible, log_prior.argmax(), best)


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

    def evidence_left_out(self, counts: "Counts", table: Table, rows: LeftOut, first_row: int = 0) -> Floats:
        """What each block says of rows that were counted, had each not been counted: row by block by class."""
        out = np.zeros((table.rows, len(self.schema.block_names), self.classes.size))
        guard = Guard(self.schema, first_row)
        for p, (part, statistic) in enumerate(zip(self.schema.parts, counts.statistics, strict=True)):
            cells = guard(p, part.family.read, table, part.columns)
            guard(p, part.family.score_left_out, statistic, cells, rows, self.schema.slots[p], out)
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
        for p, part in enumerate(self.schema.parts):
            likelihood = self.likelihoods[p]
            try:
                cells = part.family.read(table, part.columns)
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
        for p, part in enumerate(self.schema.parts):
            likelihood = self.likelihoods[p]
            given = () if length is None or not isinstance(likelihood, TextLikelihood) else (length,)
            drawn = guard(p, likelihood.sample, labels, rng, *given)
            columns.update(zip(part.columns, drawn, strict=True))
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
        return normalized(self.log_joint, self.log_prior, logarithm=True)[0]

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
        parts = zip(counts.schema.parts, counts.statistics, strict=True)
        likelihoods = tuple(part.family.estimate(statistic) for part, statistic in parts)
    blocks = len(counts.schema.block_names)
    weights = np.ones(blocks) if weights is None else weights
    bias = np.zeros(counts.classes.size) if bias is None else bias
    return Model(counts.schema, counts.classes, log_prior, bias, weights, likelihoods)
