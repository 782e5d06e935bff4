"""Rows with their labels and weights: a table in memory, or a stream of tables that is read again for every pass."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from deciban.arrays import Floats
from deciban.data.drawing import drawn
from deciban.data.labels import LabelArray, Labels, check_weights, encode_labels
from deciban.data.schema import listed
from deciban.data.stream import Source, Stream, fewer_long_rows
from deciban.data.tables import Frame, Table
from deciban.data.text_types import as_whole
from deciban.data.written import Habit
from deciban.errors import DataError, SchemaError, UsageError
from deciban.progress import progress

# What columns are is inferred, and tuning is done, on no more rows and cells than these.
SAMPLE_ROWS = 1 << 14
SAMPLE_CELLS = 1 << 24


# The rows that are looked at before all are read, to see what cannot be meant.
FIRST_ROWS = 1_000


class Examples(Protocol):
    """Rows to learn from, or to be judged by."""

    @property
    def names(self) -> tuple[str, ...] | None:
        """The names of the columns without those of labels and weights."""
        ...

    @property
    def expected(self) -> int | None:
        """About how many rows there are, if that is known."""
        ...

    @property
    def ignored(self) -> tuple[str, ...]:
        """Columns of their source that were left out."""
        ...

    @property
    def notes(self) -> Mapping[str, str]:
        """What is to be said of columns."""
        ...

    @property
    def habit(self) -> Habit | None:
        """How cells of a file are written, where that is not the usual way."""
        ...

    def pieces(self) -> Iterator["Labelled"]:
        """All rows, piece by piece."""
        ...

    def sample(self) -> tuple["Labelled", "Examples"]:
        """Rows drawn by lot, or all where they are few; and all rows, the same ones if they are in memory by then."""
        ...

    def glance(self) -> tuple["Labelled", "Examples"]:
        """The same where only the types of columns matter: some rows, if possible without reading many."""
        ...

    def whole(self) -> "Labelled":
        """All rows in one piece."""
        ...

    def naming(self) -> AbstractContextManager[None]:
        """While it lasts, errors name the source of the rows."""
        ...


@dataclass(frozen=True)
class Labelled:
    """A table with the labels and weights of its rows, and the number of its first one."""

    table: Table
    labels: Labels
    weights: Floats | None
    first_row: int = 0

    @classmethod
    def of(cls, table: Table, y: Any, sample_weight: Any = None, first_row: int = 0) -> "Labelled":
        """`y` and `sample_weight` are arrays, or the names of columns of the table."""
        if isinstance(y, str):
            table, y = _split(table, y, "y")
        if isinstance(sample_weight, str):
            table, sample_weight = _split(table, sample_weight, "sample_weight")
        weights = check_weights(sample_weight, table.rows, first_row)
        return cls(table, encode_labels(y, table.rows), weights, first_row)

    def weighing(self) -> "Labelled":
        """The rows that have a weight; all of them where none has."""
        if self.weights is None or (self.weights > 0.0).all() or not self.weights.any():
            return self
        rows = np.flatnonzero(self.weights > 0.0)
        labels = Labels(self.labels.classes, self.labels.codes[rows])
        return Labelled(self.table.take(rows), labels, self.weights[rows], self.first_row)

    @property
    def names(self) -> tuple[str, ...] | None:
        return self.table.names

    @property
    def expected(self) -> int:
        return self.table.rows

    @property
    def ignored(self) -> tuple[str, ...]:
        return ()

    @property
    def notes(self) -> Mapping[str, str]:
        return {}

    @property
    def habit(self) -> Habit | None:
        return None

    def pieces(self) -> Iterator["Labelled"]:
        yield self

    def sample(self) -> tuple["Labelled", "Labelled"]:
        most = _sample_rows(self.table.width)
        if isinstance(self.table, Frame):
            most = fewer_long_rows(most, self.table.text_bytes / max(self.table.rows, 1))
        if self.table.rows <= most:
            return self, self
        rows = drawn(self.table.rows, most)
        weights = None if self.weights is None else self.weights[rows]
        labels = Labels(self.labels.classes, self.labels.codes[rows])
        return Labelled(self.table.take(rows), labels, weights), self

    def glance(self) -> tuple["Labelled", "Labelled"]:
        return self, self

    def whole(self) -> "Labelled":
        return self

    def naming(self) -> AbstractContextManager[None]:
        return nullcontext()


@dataclass(frozen=True)
class LabelledStream:
    """A stream whose labels and weights are columns of its own. Rows are numbered from 1, as people count them.

    labels_look_like: what the labels are by themselves, where they are read as something else. rows: how many there
    are, if they were counted.
    """

    stream: Stream
    target: str
    weight: str | None = None
    labels_look_like: str = ""
    rows: int | None = None

    @classmethod
    def of(cls, stream: Stream, y: Any, sample_weight: Any) -> "LabelledStream":
        """A UsageError where labels or weights are not named, or the names are not there."""
        with stream.naming():
            for role, name in (("y", y), ("sample_weight", sample_weight)):
                if not isinstance(name, str) and (role == "y" or name is not None):
                    raise UsageError(
                        f"{role}: the rows of a file have theirs in a column of it; give the column's name"
                    )
                if isinstance(name, str):
                    _find(stream.names, name, {"y": "the target", "sample_weight": "the weight"}[role])
            if y == sample_weight:
                raise UsageError(f"column {y!r} cannot hold both the classes and the weights; name another")
        if isinstance(stream, Source):
            named = [name for name in stream.row_names if name not in (y, sample_weight)]
            stream = stream.with_dates_as_text(y).without(named)
        return cls(stream, y, sample_weight)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name in self.stream.names if name not in (self.target, self.weight))

    @property
    def expected(self) -> int | None:
        return self.stream.expected if self.rows is None else self.rows

    @property
    def ignored(self) -> tuple[str, ...]:
        return self.stream.ignored if isinstance(self.stream, Source) else ()

    @property
    def notes(self) -> Mapping[str, str]:
        return self.stream.notes if isinstance(self.stream, Source) else {}

    @property
    def habit(self) -> Habit | None:
        return self.stream.learned_habit if isinstance(self.stream, Source) else None

    def first_classes(self) -> LabelArray | None:
        """The classes of the first rows, if they can be seen without reading many."""
        return self._labelled(self.stream.head(FIRST_ROWS)).labels.classes if isinstance(self.stream, Source) else None

    def pieces(self) -> Iterator[Labelled]:
        first = 1
        for table in self.stream.tables():
            yield self._labelled(table, first)
            first += table.num_rows

    def sample(self) -> tuple[Labelled, Examples]:
        with progress("looking", "rows", self.expected) as advance:
            drawn, rows = self.stream.sample(_sample_rows(len(self.names)), advance)
        stream, table = self.stream.settled(drawn)
        sample = self._labelled(table)
        return sample, sample if table.num_rows == rows else replace(self, stream=stream, rows=rows)

    def glance(self) -> tuple[Labelled, Examples]:
        if isinstance(self.stream, Source) and self.stream.has_types:
            return self._labelled(self.stream.head(1)), self
        return self.sample()

    def whole(self) -> Labelled:
        return self._labelled(self.stream.table())

    def _labelled(self, table: pa.Table, first_row: int = 1) -> Labelled:
        """A piece; where a file has no types, labels that are whole numbers are integers in each."""
        if not self.stream.typed:
            place = table.column_names.index(self.target)
            table = table.set_column(place, self.target, as_whole(table.column(place)))
        found = Labelled.of(Frame(table), self.target, self.weight, first_row)
        if found.labels.classes.dtype.kind == "O" and (bad := _with_nul(found.labels)) is not None:
            place, label = bad
            raise DataError(
                f"column {self.target!r}, row {first_row + place}: the label {label!r} holds a NUL byte; "
                f"the file is damaged: write it anew"
            )
        return found

    @property
    def unfinished_labels(self) -> tuple[str, ...]:
        """Labels of last lines that have no end; none where rows have weights, which hide how often each is there."""
        if not isinstance(self.stream, Source) or self.weight is not None:
            return ()
        return self.stream.unfinished(self.target)

    def naming(self) -> AbstractContextManager[None]:
        return self.stream.naming()


def _with_nul(labels: Labels) -> tuple[int, str] | None:
    """The first row whose label holds a NUL byte, and the label."""
    for code, label in enumerate(labels.classes):
        if isinstance(label, str) and "\0" in label:
            return int(np.flatnonzero(labels.codes == code)[0]), label
    return None


def _sample_rows(width: int) -> int:
    return max(1_000, min(SAMPLE_ROWS, SAMPLE_CELLS // max(width, 1)))


def _find(names: tuple[str, ...], name: str, role: str) -> None:
    if name not in names:
        near = get_close_matches(name, names, 1)
        hint = f"did you mean {near[0]!r}? Its" if near else "its"
        raise SchemaError(f"{role}: there is no column {name!r} in the table; {hint} columns are {listed(names, 60)}")


def _split(table: Table, name: str, role: str) -> tuple[Frame, pa.ChunkedArray]:
    """The table without the column of this name, and that column."""
    if not isinstance(table, Frame) or table.names is None:
        raise UsageError(f"{role}={name!r} names a column, but the table's columns have no names; give an array")
    _find(table.names, name, f"{role}={name!r}")
    return Frame(table.table.drop_columns([name])), table.table[name]
