"""Labeled rows, opened from memory or from sources with columns for labels and weights."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from deciban.errors import Argument, DataError, Place, UsageError
from deciban.sources.open import find_rows
from deciban.sources.source import Source
from deciban.tables.cells import CellHabits, as_whole
from deciban.tables.convert import as_table
from deciban.tables.examples import LabeledTable, check_column, rows_to_sample
from deciban.tables.labels import LabelArray, Labels, encode_labels
from deciban.tables.table import Frame
from deciban.util.progress import progress

# First rows, examined for obvious mistakes before all rows are read.
FIRST_ROWS = 1_000


@dataclass(frozen=True)
class LabeledStream:
    """Source with columns for labels and weights. Rows are numbered from 1.

    labels_look_like: original type of the labels, if they are read as another type.
    rows: number of rows, if they were counted.
    pushdown: True to count rows by SQL inside the database.
    seen: sample of the rows, if one was drawn for pushdown.
    """

    stream: Source
    target: str
    weight: str | None = None
    labels_look_like: str = ""
    rows: int | None = None
    pushdown: bool = False
    seen: LabeledTable | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, stream: Source, y: Any, sample_weight: Any, pushdown: bool = False) -> "LabeledStream":
        """Check the columns of labels and weights; raise a UsageError if they are not given by name, or absent."""
        with stream.locate_errors():
            for role, name in (("y", y), ("sample_weight", sample_weight)):
                if not isinstance(name, str) and (role == "y" or name is not None):
                    cause = f"{role}: labels and weights of files must be columns"
                    raise UsageError(cause, remedy="give the column's name")
                if isinstance(name, str):
                    noun = {"y": "target", "sample_weight": "weight"}[role]
                    check_column(stream.names, name, f"no {noun} column {name!r}")
            if y == sample_weight:
                raise UsageError(f"column {y!r} cannot be both the target and the weight", remedy="choose two columns")
            if pushdown:
                stream.sql()  # raises if the rows are not in a database
        named = [name for name in stream.row_names if name not in (y, sample_weight)]
        return cls(stream.with_label_as_written(y).without(named), y, sample_weight, pushdown=pushdown)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name in self.stream.names if name not in (self.target, self.weight))

    @property
    def expected(self) -> int | None:
        return self.stream.expected if self.rows is None else self.rows

    @property
    def ignored(self) -> tuple[str, ...]:
        return self.stream.ignored

    @property
    def notes(self) -> Mapping[str, str]:
        return self.stream.notes

    @property
    def habit(self) -> CellHabits | None:
        return self.stream.learned_habit

    def first_classes(self) -> LabelArray:
        """Return the classes in the first rows."""
        return self._add_labels(self.stream.head(FIRST_ROWS)).labels.classes

    def pieces(self) -> Iterator[LabeledTable]:
        first = 1
        for table in self.stream.tables():
            yield self._add_labels(table, first)
            first += table.num_rows

    @property
    def elsewhere(self) -> bool:
        return self.stream.elsewhere

    def sample(self, max_rows: int | None = None) -> tuple[LabeledTable, "Examples"]:
        max_rows = rows_to_sample(len(self.names)) if max_rows is None else max_rows
        in_engine = self.pushdown
        with progress("looking", "rows", self.expected) as advance:
            draw = self.stream.sample_in_engine if in_engine else self.stream.sample
            labels = [self.target] if self.weight is None else [self.target, self.weight]
            drawn, rows = draw(max_rows, advance, labels)
        stream, table = self.stream.resolve_types(drawn)
        sample = self._add_labels(table)
        seen = sample if in_engine else None
        return sample, sample if table.num_rows == rows else replace(self, stream=stream, rows=rows, seen=seen)

    def peek(self) -> tuple[LabeledTable, "Examples"]:
        if self.stream.has_types:
            return self._add_labels(self.stream.head(1)), self
        return self.sample()

    def whole(self) -> LabeledTable:
        return self._add_labels(self.stream.table())

    def _add_labels(self, table: pa.Table, first_row: int = 1) -> LabeledTable:
        """Return a piece with labels. Whole-number labels of an untyped file become integers."""
        if not self.stream.typed:
            place = table.column_names.index(self.target)
            table = table.set_column(place, self.target, as_whole(table.column(place)))
        found = LabeledTable.of(Frame(table), self.target, self.weight, first_row)
        self._refuse_nul(found.labels, first_row)
        return found

    def labels_of(self, cells: pa.ChunkedArray) -> Labels:
        """Encode a column of labels."""
        labels = encode_labels(cells, len(cells))
        self._refuse_nul(labels)
        return labels

    def _refuse_nul(self, labels: Labels, first_row: int | None = None) -> None:
        if labels.classes.dtype.kind == "O" and (bad := _with_nul(labels)) is not None:
            place, label = bad
            row = None if first_row is None else first_row + place
            cause, remedy = f"the label {label!r} contains a NUL byte", "the file is damaged; write it again"
            raise DataError(cause, place=Place(column=self.target, row=row), remedy=remedy)

    @property
    def labels_without_newline(self) -> tuple[str, ...]:
        """Labels of unterminated last lines; empty if rows have weights, which hide label frequencies."""
        return () if self.weight is not None else self.stream.cells_without_newline(self.target)

    @contextmanager
    def locate_errors(self) -> Iterator[None]:
        """Return a context in which errors name the source, and every pass reads the same rows."""
        with self.stream.locate_errors(), self.stream.steady():
            yield


# Labeled rows for learning or evaluation: in memory, or read again for every pass.
Examples = LabeledTable | LabeledStream


def open_labeled(
    X: Any,
    y: Any,
    sample_weight: Any = None,
    pushdown: bool = False,
    *,
    types: Mapping[str, str] | None = None,
    habit: CellHabits | None = None,
    ignored: Sequence[str] = (),
) -> Examples:
    """Open rows with labels and weights. In files these are columns.

    pushdown: count rows by SQL inside the database.
    types, habit: column types and cell formats that a model has learned.
    ignored: columns that the model has left out.
    """
    if not isinstance(pushdown, bool):
        raise UsageError("expected True or False", parameter=Argument("pushdown", pushdown))
    found = find_rows(X, files=isinstance(y, str), in_engine=pushdown)
    if not isinstance(found, Source):
        if pushdown:
            raise UsageError(
                "the rows are in memory, not in a database",
                parameter=Argument("pushdown", pushdown),
                remedy=("leave ", Argument("pushdown"), " out, or give a file, a query or a table of a database"),
            )
        return LabeledTable.of(as_table(found), y, sample_weight)
    source = found.as_learned(types or {}, habit)
    source = source.without([name for name in ignored if name in source.names])
    examples = LabeledStream.of(source, y, sample_weight, pushdown)
    own = found.looks_like(y)
    return examples if source.looks_like(y) == own else replace(examples, labels_look_like=own)


def _with_nul(labels: Labels) -> tuple[int, str] | None:
    """Return the first row whose label contains a NUL byte, and the label."""
    for code, label in enumerate(labels.classes):
        if isinstance(label, str) and "\0" in label:
            return int(np.flatnonzero(labels.codes == code)[0]), label
    return None
