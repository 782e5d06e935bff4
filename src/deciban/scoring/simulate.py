"""Sampling of rows from the generative model of a classifier."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from deciban.errors import Argument, UsageError
from deciban.model.fitted import Fitted
from deciban.model.model import Model
from deciban.tables.cells import from_numbers
from deciban.tables.labels import LabelArray
from deciban.util.frames import Library, choose_library, convert_arrow
from deciban.util.results import Pair, Part, TextTable
from deciban.util.text_tables import escape_line, format_class, format_digits, note_hidden, shorten

# Rows of a sample that are printed.
MAX_ROWS_PRINTED = 10

# Columns of a sample that are printed.
MAX_COLUMNS_PRINTED = 12

# Characters of a cell that are printed.
MAX_CELL_WIDTH = 30


@dataclass(frozen=True, repr=False)
class Sample(Pair):
    """Rows sampled from a model, and their classes: ``X, y = sample``.

    rows: an Arrow table, or an array if the columns are numbers without names. y: class of each row. `to_frame` returns
    both; target: name of its column of classes.
    """

    rows: Any
    y: LabelArray
    target: str | None = None

    @cached_property
    def X(self) -> Any:  # noqa: N802  # scikit-learn's name of a table
        """The rows as a data frame, or as an array if the columns are numbers without names."""
        return convert_arrow(self.rows, choose_library(None, self)) if isinstance(self.rows, pa.Table) else self.rows

    @property
    def _pair(self) -> tuple[Any, LabelArray]:
        return self.X, self.y

    @cached_property
    def _table(self) -> pa.Table:
        """Rows and classes as an Arrow table."""
        table = self.rows
        if not isinstance(table, pa.Table):
            table = pa.table({f"x{j}": table[:, j] for j in range(table.shape[1])})
        name = self.target or "class"
        while name in table.column_names:
            name += "_"
        return table.append_column(name, pa.array(self.y.tolist()))

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the columns of `to_frame` as lists."""
        return self._table.to_pydict()  # type: ignore[no-any-return]  # a dict of columns

    def _frame(self, library: Library) -> Any:
        return convert_arrow(self._table, library)

    def _parts(self) -> list[Part]:
        table = self._table
        names = [*table.column_names[:-1][:MAX_COLUMNS_PRINTED], table.column_names[-1]]
        head = table.slice(0, MAX_ROWS_PRINTED)
        cells = (head.column(head.num_columns - 1 if k == len(names) - 1 else k).to_pylist() for k in range(len(names)))
        lines = [tuple(map(_format_cell, row)) for row in zip(*cells, strict=True)]
        more = {"row": table.num_rows - len(lines), "column": table.num_columns - len(names)}
        notes = [note for noun, size in more.items() for note in note_hidden(size, f"more {noun}", ": to_frame()")]
        return [TextTable(lines, names, notes=notes)]


def _format_cell(cell: Any) -> str:
    if cell is None:
        return ""
    return format_digits(cell) if isinstance(cell, float) else shorten(escape_line(format_class(cell)), MAX_CELL_WIDTH)


def sample_rows(
    fitted: Fitted,
    n_samples: int = 1,
    random_state: Any = None,
    label: Any = None,
    length: int | None = None,
    model: Model | None = None,
) -> tuple[Any, LabelArray]:
    """Return rows sampled from the generative model, or from another one, and their classes.

    The rows are an Arrow table, or an array if all columns are numbers. label: class of all rows. length: number of
    words in each text.
    """
    for name, value in (("n_samples", n_samples), ("length", length)):
        if value is not None and (not isinstance(value, int | np.integer) or value < 0):
            raise UsageError("use an integer >= 0", parameter=Argument(name, value))
    model = model or fitted.generative
    if length is not None and not any(likelihood.accepts_length for likelihood in model.likelihoods):
        raise UsageError(
            (
                "no column has the family ",
                Argument("family", "Text"),
                " or ",
                Argument("family", "Multinomial"),
                ", to which it applies",
            ),
            remedy="omit it",
            parameter=Argument("length", length),
        )
    place = None if label is None else fitted.class_index(label)
    columns, labels = model.sample(int(n_samples), generator(random_state), place, length)
    names = model.schema.column_names
    types = model.schema.types or ("",) * len(names)
    for column in (column for group in model.schema.groups if group.family.is_binned for column in group.columns):
        if types[column].startswith(("int", "uint")):
            columns[column] = np.floor(columns[column])
    if model.schema.names is None and all(isinstance(column, np.ndarray) for column in columns):
        matrix = np.stack(columns, axis=1)
        return matrix > 0.5 if set(types) == {"bool"} else matrix, model.classes[labels]
    cells = [
        from_numbers(column, kind)
        if isinstance(column, np.ndarray) and (column.dtype.kind == "f" or kind == "bool")
        else pa.array(column)
        for column, kind in zip(columns, types, strict=True)
    ]
    return pa.table(cells, names=names), model.classes[labels]


def generator(random_state: Any) -> np.random.Generator:
    """Return a NumPy Generator for a scikit-learn `random_state` (None, seed, RandomState or Generator)."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if random_state is None:
        return np.random.default_rng(np.random.randint(0, 2**31 - 1))
    if not isinstance(random_state, np.random.RandomState):
        random_state = np.random.RandomState(random_state)
    return np.random.default_rng(random_state.randint(0, 2**31 - 1))
