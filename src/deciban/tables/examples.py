"""Labeled rows in memory."""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from deciban.errors import Argument, SchemaError, UsageError
from deciban.tables.cells import CellHabits
from deciban.tables.labels import Labels, check_weights, encode_labels
from deciban.tables.row_sampling import HASHED_ROWS, RowHashes, RowSampler, rows_that_fit, with_cells
from deciban.tables.table import Frame, Table
from deciban.util.arrays import Floats, Integers
from deciban.util.text_tables import list_names

# Maximum number of rows in the sample for schema inference and tuning.
SAMPLE_ROWS = 1 << 14

# Maximum number of its cells: wide tables have fewer rows in it.
SAMPLE_CELLS = 1 << 24


@dataclass(frozen=True)
class LabeledTable:
    """Table with labels and weights for its rows, and the number of its first row.

    It has the same interface as `LabeledStream`: `sample` for schema and tuning, `pieces` for counting, `whole` for
    steps that need all rows at once.
    """

    table: Table
    labels: Labels
    weights: Floats | None
    first_row: int = 0

    @classmethod
    def of(cls, table: Table, y: Any, sample_weight: Any = None, first_row: int = 0) -> "LabeledTable":
        """Add labels and weights to a table: arrays, or names of columns of the table."""
        if isinstance(y, str):
            table, y = _pop_column(table, y, "y")
        if isinstance(sample_weight, str):
            table, sample_weight = _pop_column(table, sample_weight, "sample_weight")
        weights = check_weights(sample_weight, table.rows, first_row)
        return cls(table, encode_labels(y, table.rows), weights, first_row)

    def drop_zero_weights(self) -> "LabeledTable":
        """Return the rows with a positive weight; all rows if no weight is positive."""
        if self.weights is None or (self.weights > 0.0).all() or not self.weights.any():
            return self
        return self.take(np.flatnonzero(self.weights > 0.0))

    def take(self, rows: Integers) -> "LabeledTable":
        """Return the rows at the given places."""
        labels = Labels(self.labels.classes, self.labels.codes[rows])
        weights = None if self.weights is None else self.weights[rows]
        return LabeledTable(self.table.take(rows), labels, weights, self.first_row)

    @property
    def row_weights(self) -> Floats:
        """Weight of each row; 1 if none are given."""
        return np.ones(self.table.rows) if self.weights is None else self.weights

    @property
    def names(self) -> tuple[str, ...] | None:
        """Names of the columns, without labels and weights."""
        return self.table.names

    @property
    def expected(self) -> int:
        """Number of rows."""
        return self.table.rows

    @property
    def ignored(self) -> tuple[str, ...]:
        """Columns of the source that were left out."""
        return ()

    @property
    def notes(self) -> Mapping[str, str]:
        """Notes on columns by name, for example on cells read as missing."""
        return {}

    @property
    def habit(self) -> CellHabits | None:
        """Formats of cells in CSV files; None if they are the default ones."""
        return None

    @property
    def elsewhere(self) -> bool:
        """True if the rows are on other machines."""
        return False

    def pieces(self) -> Iterator["LabeledTable"]:
        """Yield all rows, piece by piece."""
        yield self

    def sample(self, max_rows: int | None = None) -> tuple["LabeledTable", "LabeledTable"]:
        """Return a sample of at most `max_rows` rows, and all rows."""
        max_rows = rows_to_sample(self.table.width) if max_rows is None else max_rows
        if isinstance(self.table, Frame):
            max_rows = rows_that_fit(max_rows, self.table.text_bytes / max(self.table.rows, 1))
        if self.table.rows <= max_rows:
            return self, self
        sampler = RowSampler(max_rows)
        for start in range(0, self.table.rows, HASHED_ROWS):
            stop = min(start + HASHED_ROWS, self.table.rows)
            sampler.add(pa.table({"place": np.arange(start, stop)}), partial(self._hashes, start, stop))
        return self.take(sampler.table().column(0).to_numpy()), self

    def _hashes(self, start: int, stop: int) -> RowHashes:
        """Return a hash of cells, label and weight for rows `start` to `stop`."""
        classes, codes = self.labels.classes.tolist(), self.labels.codes[start:stop]
        try:
            known = pa.array(classes)
        except (pa.ArrowException, TypeError):
            known = pa.array(list(map(str, classes)))
        labels = pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), known)
        hashes = with_cells(self.table.slice(start, stop).hashes(), labels)
        return hashes if self.weights is None else with_cells(hashes, pa.array(self.weights[start:stop]))

    def peek(self) -> tuple["LabeledTable", "LabeledTable"]:
        """Return rows that show the types of columns, and all rows."""
        return self, self

    def whole(self) -> "LabeledTable":
        """Return all rows in one piece."""
        return self

    def locate_errors(self) -> AbstractContextManager[None]:
        """Return a context in which errors name the source, and every pass reads the same rows."""
        return nullcontext()


def rows_to_sample(width: int) -> int:
    """Return the maximum number of rows in a sample of a table with `width` columns."""
    return max(1_000, min(SAMPLE_ROWS, SAMPLE_CELLS // max(width, 1)))


def check_column(names: tuple[str, ...], name: str, cause: str, parameter: Argument | None = None) -> None:
    """Raise a SchemaError with this cause if no column has this name. It lists the columns."""
    if name not in names:
        near = get_close_matches(name, names, 1)
        hint = f"did you mean {near[0]!r}? Columns" if near else "columns"
        raise SchemaError(cause, remedy=f"{hint}: {list_names(names)}", parameter=parameter)


def _pop_column(table: Table, name: str, role: str) -> tuple[Frame, pa.ChunkedArray]:
    """Return the table without the named column, and that column."""
    if not isinstance(table, Frame) or table.names is None:
        raise UsageError(
            (Argument(role, name), " names a column, but the table's columns have no names"), remedy="pass an array"
        )
    check_column(table.names, name, "no such column in the table", Argument(role, name))
    return Frame(table.table.drop_columns([name])), table.table[name]
