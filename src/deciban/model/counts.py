"""Sufficient statistics of the training rows, as counts that can be added."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from deciban.errors import Argument, BadCell, DataError, ForgetError, Labels, UsageError
from deciban.schema.schema import Schema, union_schemas
from deciban.statistics import Statistic
from deciban.statistics.base import subtract_counts
from deciban.tables.labels import LabelArray
from deciban.util.arrays import Floats, Integers
from deciban.util.text_tables import count_noun, integer_if_whole

T = TypeVar("T")

# Number of classes in the repr of counts, so that it stays short.
MAX_CLASSES_SHOWN = 10


@dataclass(frozen=True)
class Counts:
    """Sufficient statistics of the training rows: a frozen value that can be added, subtracted and scaled.

    `a + b` counts the rows of both (merge), `a - b` removes the rows of b (forget), and `a * 0.9` multiplies every row
    weight (decay). Smoothing, variance floors and priors are not part of the counts: they are applied when a model is
    estimated. Classes are sorted. Classes without weight are dropped unless they were declared.
    `BayesClassifier.counts_` holds the counts of a fitted classifier.

    Parameters
    ----------
    schema : Schema
        The column groups, each with its family.
    classes : ndarray of shape (n_classes,)
        Class labels, sorted.
    class_weight : ndarray of shape (n_classes,)
        Total row weight per class.
    statistics : tuple
        Statistic of each column group, in the order of `schema.groups`.
    rows : int, default=0
        Number of counted rows.
    unlabeled : int, default=0
        Number of rows skipped because their label is missing.
    declared : bool, default=False
        True if the classes were declared, so that any other label is an error.
    epsilon : float, default=None
        Differential privacy of released counts (`BayesClassifier.release`): the noise hides any single row up to a
        factor of exp(epsilon). Infinity if exact counts were added to them; None for exact counts.

    See Also
    --------
    Model : Model estimated from counts.
    merge : Add up models that were trained separately.

    Examples
    --------
    >>> from deciban import BayesClassifier
    >>> from deciban.datasets import weather
    >>> spring, autumn = (
    ...     BayesClassifier(tune=None).fit(part, "play").counts_ for part in (weather().slice(0, 7), weather().slice(7))
    ... )
    >>> year = spring + autumn
    >>> year
    <Counts of 14 rows, 4 columns, class weights {'no': 5, 'yes': 9}>
    >>> year.rows, year.classes.tolist(), year.class_weight.tolist()
    (14, ['no', 'yes'], [5.0, 9.0])
    >>> (year - autumn).class_weight.tolist(), (0.5 * year).class_weight.tolist()
    ([3.0, 4.0], [2.5, 4.5])
    """

    schema: Schema
    classes: LabelArray
    class_weight: Floats
    statistics: tuple[Any, ...]
    rows: int = 0
    unlabeled: int = 0
    declared: bool = False
    epsilon: float | None = None

    def __repr__(self) -> str:
        amounts = map(integer_if_whole, self.class_weight.tolist())
        weights = dict(zip(self.classes.tolist(), amounts, strict=True))
        shown = dict(list(weights.items())[:MAX_CLASSES_SHOWN])
        more = f" and {len(weights) - len(shown)} more" if len(shown) < len(weights) else ""
        size = f"{count_noun(self.rows, 'row')}, {count_noun(self.schema.width, 'column')}"
        released = "" if self.epsilon is None else f", {self.describe_noise()}"
        return f"<Counts of {size}, class weights {shown}{more}{released}>"

    def describe_noise(self) -> str:
        """Return the guarantee of released counts in words.

        Returns
        -------
        str
            A sentence; empty for exact counts.
        """
        if self.epsilon is None:
            return ""
        if self.epsilon == np.inf:
            return "partly released with noise, partly exact"
        return f"released with epsilon={self.epsilon:g}"

    @classmethod
    def empty(cls, schema: Schema, declared: LabelArray | None = None) -> Counts:
        """Return counts of zero rows.

        Parameters
        ----------
        schema : Schema
            The column groups.
        declared : ndarray, default=None
            The only classes to accept. None accepts any class.

        Returns
        -------
        Counts
        """
        classes = np.zeros(0, dtype=np.int64) if declared is None else np.unique(declared)
        statistics = tuple(group.family.empty(classes.size, len(group.columns)) for group in schema.groups)
        return cls(schema, classes, np.zeros(classes.size), statistics, declared=declared is not None)

    def end_privacy(self) -> Counts:
        """Return the counts for a model that also contains exact values of rows, which the noise does not hide.

        Returns
        -------
        Counts
            The same counts; `epsilon` is infinite if they were released with noise.
        """
        return self if self.epsilon is None else replace(self, epsilon=np.inf)

    def check_no_noise(self) -> None:
        """Raise a UsageError for released counts: rows cannot be left out of them."""
        if self.epsilon is not None:
            raise UsageError(
                "rows cannot be left out of counts that were released with noise",
                remedy="use rows that the model has not learned",
            )

    def __add__(self, other: Counts) -> Counts:
        """Return the counts of the rows of both."""
        if not self.classes.size and not self.unlabeled and self.schema == other.schema:
            return other  # nothing has been counted yet
        mine, theirs = self._align(other)
        guard = Guard(mine.schema)
        pairs = enumerate(zip(mine.statistics, theirs.statistics, strict=True))
        merged = tuple(guard(p, a.merge, b) for p, (a, b) in pairs)
        return replace(
            mine,
            class_weight=mine.class_weight + theirs.class_weight,
            statistics=merged,
            rows=self.rows + other.rows,
            unlabeled=self.unlabeled + other.unlabeled,
            epsilon=mine._add_epsilon(theirs),
        )

    def _add_epsilon(self, other: Counts) -> float | None:
        """Return the privacy of both together: of each row that of its own release, so that the largest holds."""
        known = [counts.epsilon for counts in (self, other) if counts.class_weight.any() or counts.unlabeled]
        given = [epsilon for epsilon in known if epsilon is not None]
        return None if not given else np.inf if len(given) < len(known) else max(given)

    def leaves_unchanged(self, other: Counts) -> bool:
        """Return True if adding these counts leaves `other` unchanged.

        This holds if no counted row has a weight, and no class is declared that `other` lacks.

        Parameters
        ----------
        other : Counts
            The counts to which these would be added.

        Returns
        -------
        bool
        """
        if self.class_weight.any():
            return False
        return not self.declared or set(self.classes.tolist()) <= set(other.classes.tolist())

    def __sub__(self, other: Counts) -> Counts:
        """Return the counts without the rows of `other`, which must have been counted before."""
        return self.subtract(other)

    def subtract(self, other: Counts, tolerance: float | None = None) -> Counts:
        """Return the counts without the rows of `other`, like the operator `-`.

        Parameters
        ----------
        other : Counts
            Counts of rows that were counted before.
        tolerance : float, default=None
            For rows that are known to have been counted, with fractional weights: sums of weights below the tolerance
            are treated as rounding errors and set to 0. None raises a ForgetError for rows that cannot have been
            counted.

        Returns
        -------
        Counts
        """
        if self.epsilon is not None or other.epsilon is not None:
            raise ForgetError(
                "cannot forget rows of counts that were released with noise",
                remedy="forget them in the exact counts, and release those again",
            )
        mine, theirs = self._align(other)
        new_class = tolerance is None and mine.classes.size > self.classes.size
        if mine.schema.width > self.schema.width or new_class:
            raise ForgetError(
                "cannot forget these rows: they have a column or a class that is not in the model",
                remedy="pass only rows the model was trained on",
            )
        guard = Guard(mine.schema)
        pairs = enumerate(zip(mine.statistics, theirs.statistics, strict=True))
        left = tuple(guard(p, a.remove, b, tolerance) for p, (a, b) in pairs)
        return replace(
            mine,
            class_weight=subtract_counts(mine.class_weight, theirs.class_weight, tolerance),
            statistics=left,
            rows=max(self.rows - other.rows, 0),
            unlabeled=max(self.unlabeled - other.unlabeled, 0),
        ).drop_empty_classes()

    def __radd__(self, other: object) -> Counts:
        """Return the counts for `0 + counts`, so that sum() works."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def __mul__(self, factor: float) -> Counts:
        """Return the counts with every row weight multiplied by `factor`."""
        if not isinstance(factor, int | float | np.number) or not 0.0 <= factor < np.inf:
            raise UsageError(f"cannot scale counts by {factor!r}", remedy="pass a finite number >= 0")
        scaled = tuple(statistic.scale(factor) for statistic in self.statistics)
        return replace(self, class_weight=self.class_weight * factor, statistics=scaled).drop_empty_classes()

    __rmul__ = __mul__

    def declare_classes(self, classes: LabelArray) -> Counts:
        """Return the same counts with these classes declared.

        Parameters
        ----------
        classes : ndarray
            The only classes to accept. They must include all counted classes.

        Returns
        -------
        Counts
        """
        given = np.unique(classes)
        unknown = self.classes[~np.isin(self.classes, given)].tolist() if self.classes.size else []
        if unknown or (self.declared and given.size != self.classes.size):
            raise UsageError(
                (
                    Argument("classes"),
                    " is ",
                    Labels(given.tolist()),
                    ", but the model has the classes ",
                    Labels(self.classes.tolist()),
                ),
                remedy="declare all classes in the first call",
            )
        return replace(self._with_classes(given if self.classes.size < given.size else self.classes), declared=True)

    def drop_empty_classes(self) -> Counts:
        """Return the counts without classes that have no weight, unless the classes were declared.

        Returns
        -------
        Counts
        """
        kept = self.class_weight > 0.0
        if self.declared or kept.all():
            return self
        positions = np.where(kept, np.cumsum(kept) - 1, -1)
        statistics = tuple(s.reindex_classes(positions, int(kept.sum())) for s in self.statistics)
        return replace(self, classes=self.classes[kept], class_weight=self.class_weight[kept], statistics=statistics)

    def extend_schema(self, schema: Schema) -> Counts:
        """Return the same counts under a schema with more columns, which count as missing in every row.

        Parameters
        ----------
        schema : Schema
            A schema that contains all columns of the current one.

        Returns
        -------
        Counts
        """
        if schema is self.schema or schema == self.schema:
            return self
        place = column_places(self.schema, schema)
        statistics = []
        for group in schema.groups:
            at = {column: k for k, column in enumerate(group.columns)}
            total: Statistic = group.family.empty(self.classes.size, len(group.columns))
            for old, statistic in zip(self.schema.groups, self.statistics, strict=True):
                if old.auxiliary != group.auxiliary or old.family.statistic_key != group.family.statistic_key:
                    continue
                positions = np.array([at.get(place[column], -1) for column in old.columns])
                if np.array_equal(positions, np.arange(len(group.columns))):
                    total = statistic
                elif (positions >= 0).any() and (not group.family.joint or group.open or (positions >= 0).all()):
                    total = total.merge(statistic.reindex_columns(positions, len(group.columns)))
            statistics.append(total)
        return replace(self, schema=schema, statistics=tuple(statistics))

    def select_schema(self, schema: Schema) -> Counts:
        """Return the counts with only the statistics that another schema of the same columns needs.

        Parameters
        ----------
        schema : Schema
            A schema whose column groups were all counted.

        Returns
        -------
        Counts
        """
        if schema is self.schema:
            return self
        statistics = []
        for group in schema.groups:
            found = self.schema.group_counting(group)
            assert found is not None, f"{group.family} was not counted"
            host, positions = found
            statistic = self.statistics[host]
            same = np.array_equal(positions, np.arange(len(group.columns)))
            statistics.append(statistic if same else statistic.reindex_columns(positions, len(group.columns)))
        return replace(self, schema=schema, statistics=tuple(statistics))

    def _align(self, other: Counts) -> tuple[Counts, Counts]:
        """Return both counts under the union of their schemas and of their classes."""
        schema = union_schemas(self.schema, other.schema)
        classes = union_classes(self, other)
        declared = self.declared or other.declared
        mine = replace(self.extend_schema(schema)._with_classes(classes), declared=declared)
        return mine, replace(other.extend_schema(schema)._with_classes(classes), declared=declared)

    def _with_classes(self, classes: LabelArray) -> Counts:
        if self.classes.size == classes.size:
            return replace(self, classes=classes)
        positions = np.searchsorted(classes, self.classes)
        statistics = tuple(s.reindex_classes(positions, classes.size) for s in self.statistics)
        weight = np.zeros(classes.size)
        weight[positions] = self.class_weight
        return replace(self, classes=classes, class_weight=weight, statistics=statistics)


def column_places(old: Schema, new: Schema) -> list[int]:
    """Return the index in `new` of each column of `old`."""
    if old.names is None or new.names is None:
        return list(range(old.width))
    place = {name: k for k, name in enumerate(new.names)}
    return [place[name] for name in old.names]


def union_classes(mine: Counts, theirs: Counts) -> LabelArray:
    """Return the classes of both counts.

    Raise a DataError if one of them declared its classes and the other has more.
    """
    a, b = mine.classes, theirs.classes
    if a.dtype == b.dtype and np.array_equal(a, b):
        return a
    if a.size and b.size and _kind(a) != _kind(b):
        raise DataError(
            f"the labels {a.tolist()[0]!r} and {b.tolist()[0]!r} are of different types",
            remedy="use one type for all labels",
        )
    if a.size and b.size and {a.dtype.kind, b.dtype.kind} == {"i", "u"}:  # NumPy would convert them to floats
        if max(int(a.max()), int(b.max())) >= 1 << 63:
            raise DataError(
                "some labels are integers >= 2**63 and others may be negative", remedy="use one integer type"
            )
        a, b = a.astype(np.int64), b.astype(np.int64)
    both = np.unique(np.concatenate([a, b])) if a.size and b.size else (a if a.size else b)
    for counts in (mine, theirs):
        if counts.declared and both.size > counts.classes.size:
            unknown = both[~np.isin(both, counts.classes)].tolist()[0]
            raise DataError(
                (f"the label {unknown!r} is not among the declared classes ", Labels(counts.classes.tolist())),
                remedy=("correct the label or declare it in ", Argument("classes")),
            )
    return both


def _kind(classes: LabelArray) -> str:
    """Return the type of labels that can be compared with one another."""
    if classes.dtype.kind == "O":
        return "text" if isinstance(classes[0], str) else type(classes[0]).__name__
    return {"U": "text", "S": "bytes", "b": "bool", "M": "date", "m": "duration"}.get(classes.dtype.kind, "int")


@dataclass(frozen=True)
class Guard:
    """Wrapper that adds the column and row to errors about invalid cells."""

    schema: Schema
    first_row: int = 0
    rows: Integers | None = None  # row numbers, if some rows were left out

    def __call__(self, group: int, action: Callable[..., T], *arguments: Any) -> T:
        try:
            return action(*arguments)
        except BadCell as bad:
            raise self.locate(group, bad) from None

    def locate(self, group: int, bad: BadCell) -> DataError:
        column = self.schema.groups[group].columns[bad.column]
        if self.rows is not None and bad.row is not None:
            bad.row = int(self.rows[bad.row])
        return bad.as_error(self.schema.column_name(column), self.first_row)
