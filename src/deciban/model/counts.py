"""All that was learned: counts that add."""

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

T = TypeVar("T")


@dataclass(frozen=True)
class Counts:
    """All that was learned: a frozen value that can be saved, sent, added, subtracted and scaled.

    `a + b` are the counts of the rows of both (merge), `a - b` those without the rows of b (forget), and `a * 0.9`
    those of rows of a smaller weight (decay). Smoothing, floors and priors are not in it: they enter when a model is
    estimated. Classes are sorted, and only those with a positive weight are kept, unless they were declared.
    `BayesClassifier.counts_` has the counts of a fitted classifier.

    Parameters
    ----------
    schema : Schema
        What each column is, in column groups of one family.
    classes : ndarray of shape (n_classes,)
        The labels of the classes, sorted.
    class_weight : ndarray of shape (n_classes,)
        The weight of the rows of each class.
    statistics : tuple
        The statistic of each column group, in the order of `schema.groups`.
    rows : int, default=0
        How many rows were counted.
    unlabeled : int, default=0
        How many rows were skipped because their label is missing.
    declared : bool, default=False
        Whether the classes were declared, so that any other label is an error.

    See Also
    --------
    Model : What is estimated from counts.
    merge : Add up models that were trained apart.

    Examples
    --------
    >>> from deciban import BayesClassifier
    >>> from deciban.datasets import weather
    >>> spring, autumn = (
    ...     BayesClassifier(tune=None).fit(part, "play").counts_ for part in (weather().slice(0, 7), weather().slice(7))
    ... )
    >>> year = spring + autumn
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

    @classmethod
    def empty(cls, schema: Schema, declared: LabelArray | None = None) -> "Counts":
        """The counts of no rows at all.

        Parameters
        ----------
        schema : Schema
            What each column is.
        declared : ndarray, default=None
            The classes, if no others are to be accepted. None: any.

        Returns
        -------
        Counts
        """
        classes = np.zeros(0, dtype=np.int64) if declared is None else np.unique(declared)
        statistics = tuple(group.family.empty(classes.size, len(group.columns)) for group in schema.groups)
        return cls(schema, classes, np.zeros(classes.size), statistics, declared=declared is not None)

    def __add__(self, other: "Counts") -> "Counts":
        """The counts of the rows of both."""
        if not self.classes.size and not self.unlabeled and self.schema == other.schema:
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
            unlabeled=self.unlabeled + other.unlabeled,
        )

    def leaves_unchanged(self, other: "Counts") -> bool:
        """Whether no row here has a weight, and no class is declared that other counts do not have.

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

    def __sub__(self, other: "Counts") -> "Counts":
        """The counts without the rows of `other`, which must have been counted before."""
        return self.subtract(other)

    def subtract(self, other: "Counts", tolerance: float | None = None) -> "Counts":
        """The counts without the rows of `other`, as `-` has them.

        Parameters
        ----------
        other : Counts
            The counts of rows that were counted before.
        tolerance : float, default=None
            For rows that are known to have been counted, at weights that are no whole numbers: what is left of a sum
            of weights below this is rounding, and 0. Nothing is refused then. None: what cannot have been counted is
            an error.

        Returns
        -------
        Counts
        """
        mine, theirs = self._aligned(other)
        new_class = tolerance is None and mine.classes.size > self.classes.size
        if mine.schema.width > self.schema.width or new_class:
            raise ForgetError(
                "cannot forget these rows: they have a column or a class that was never learned",
                remedy="pass only rows the model has learned",
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

    def __radd__(self, other: object) -> "Counts":
        """0 + counts, so that sum() adds counts up."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def __mul__(self, factor: float) -> "Counts":
        """The counts as if every row had had `factor` times its weight."""
        if not isinstance(factor, int | float | np.number) or not 0.0 <= factor < np.inf:
            raise UsageError(f"counts cannot be scaled by {factor!r}", remedy="give a finite number that is at least 0")
        scaled = tuple(statistic.scale(factor) for statistic in self.statistics)
        return replace(self, class_weight=self.class_weight * factor, statistics=scaled).drop_empty_classes()

    __rmul__ = __mul__

    def declare_classes(self, classes: LabelArray) -> "Counts":
        """The same counts with just these classes allowed.

        Parameters
        ----------
        classes : ndarray
            The classes; those that were counted must be among them.

        Returns
        -------
        Counts
        """
        given = np.unique(classes)
        unknown = self.classes[~np.isin(self.classes, given)].tolist()
        if unknown or (self.declared and given.size != self.classes.size):
            raise UsageError(
                (
                    Argument("classes"),
                    " is ",
                    Labels(given.tolist()),
                    ", but the model knows ",
                    Labels(self.classes.tolist()),
                ),
                remedy="declare all at first",
            )
        return replace(self._with_classes(given if self.classes.size < given.size else self.classes), declared=True)

    def drop_empty_classes(self) -> "Counts":
        """The same counts without the classes that no row has, unless they were declared.

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

    def extend_schema(self, schema: Schema) -> "Counts":
        """The same counts under a schema with more columns: in these, every row had missing cells.

        Parameters
        ----------
        schema : Schema
            A schema that has all columns of this one.

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

    def select_schema(self, schema: Schema) -> "Counts":
        """The same counts with the statistics that another schema of the same columns needs.

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

    def _aligned(self, other: "Counts") -> tuple["Counts", "Counts"]:
        """Both under the schema and the classes of the two together."""
        schema = union_schemas(self.schema, other.schema)
        classes = union_classes(self, other)
        declared = self.declared or other.declared
        mine = replace(self.extend_schema(schema)._with_classes(classes), declared=declared)
        return mine, replace(other.extend_schema(schema)._with_classes(classes), declared=declared)

    def _with_classes(self, classes: LabelArray) -> "Counts":
        if self.classes.size == classes.size:
            return replace(self, classes=classes)
        positions = np.searchsorted(classes, self.classes)
        statistics = tuple(s.reindex_classes(positions, classes.size) for s in self.statistics)
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
            f"the labels {a.tolist()[0]!r} and {b.tolist()[0]!r} are of different types",
            remedy="give all labels one type",
        )
    if a.size and b.size and {a.dtype.kind, b.dtype.kind} == {"i", "u"}:  # NumPy would make floats of them
        if max(int(a.max()), int(b.max())) >= 1 << 63:
            raise DataError(
                "some labels are integers beyond 2**63 and others may be negative", remedy="give all one type"
            )
        a, b = a.astype(np.int64), b.astype(np.int64)
    both = np.unique(np.concatenate([a, b])) if a.size and b.size else (a if a.size else b)
    for one in (mine, theirs):
        if one.declared and both.size > one.classes.size:
            unknown = both[~np.isin(both, one.classes)].tolist()[0]
            raise DataError(
                (f"the label {unknown!r} is not among the declared classes ", Labels(one.classes.tolist())),
                remedy=("correct the label or declare it in ", Argument("classes")),
            )
    return both


def _kind(classes: LabelArray) -> str:
    """Labels that can be compared: all text, or all numbers."""
    if classes.dtype.kind == "O":
        return "text" if isinstance(classes[0], str) else type(classes[0]).__name__
    return {"U": "text", "S": "bytes", "b": "bool", "M": "date", "m": "duration"}.get(classes.dtype.kind, "int")


@dataclass(frozen=True)
class Guard:
    """Runs an action that may meet a cell that cannot be used, and then names the column and row of that cell."""

    schema: Schema
    first_row: int = 0
    rows: Integers | None = None  # the numbers of the rows looked at, where some were left out

    def __call__(self, group: int, action: Callable[..., T], *arguments: Any) -> T:
        try:
            return action(*arguments)
        except BadCell as bad:
            raise self.named(group, bad) from None

    def named(self, group: int, bad: BadCell) -> DataError:
        column = self.schema.groups[group].columns[bad.column]
        if self.rows is not None and bad.row is not None:
            bad.row = int(self.rows[bad.row])
        return bad.as_error(self.schema.column_name(column), self.first_row)
