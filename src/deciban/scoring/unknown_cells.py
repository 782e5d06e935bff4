"""Cells without evidence: those that are missing, and those that hold a value that the model has never seen."""

from collections import Counter
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from deciban.errors import BadCell
from deciban.model.model import Model
from deciban.statistics.levels import encode
from deciban.tables.table import Frame, Matrix, Table
from deciban.util.text_tables import counted, shortened

# Columns that a message names.
MOST_COLUMNS_NAMED = 5


# Kinds of cells: 0 is evidence, others are missing or a value never seen in training.
MISSING, UNSEEN = 1, 2

Kinds = npt.NDArray[np.int8]


def known_levels(model: Model) -> dict[int, pa.Array]:
    """Return the values that were seen in training in each column of categories, by the number of the column."""
    levels: dict[int, pa.Array] = {}
    for group, likelihood in zip(model.schema.groups, model.likelihoods, strict=True):
        if (known := likelihood.known_values()) is not None:
            levels.update(zip(group.columns, known, strict=True))
    return levels


class CellKinds:
    """Tells which cells of a table are missing or hold a value never seen in training."""

    def __init__(self, model: Model) -> None:
        self._levels = known_levels(model)

    def of(self, table: Table) -> Kinds:
        """Return 0, `MISSING` or `UNSEEN` for each cell of a table with the columns of the model, row by column."""
        kinds = np.zeros((table.rows, table.width), dtype=np.int8)
        if isinstance(table, Frame):
            for column in range(table.width):
                kinds[:, column] = self._of_column(table.values([column])[0], column)
        elif isinstance(table, Matrix) and table.array.dtype.kind == "f":
            kinds[np.isnan(table.array)] = MISSING
        return kinds

    def _of_column(self, cells: pa.Array, column: int) -> Kinds:
        kinds = np.zeros(len(cells), dtype=np.int8)
        if column in self._levels:
            with suppress(BadCell):  # a row that cannot be scored was not predicted
                kinds[encode(cells, self._levels[column]) == -2] = UNSEEN
        if cells.null_count or pa.types.is_floating(cells.type):
            kinds[np.asarray(pc.is_null(cells, nan_is_null=True))] = MISSING
        return kinds


class UnknownCells:
    """Counts the cells, in tables to be predicted, that are missing or hold a value never seen in training."""

    def __init__(self, model: Model) -> None:
        self._names = {model.schema.column_name(column): column for column in range(model.schema.width)}
        self._levels = known_levels(model)
        self.missing: Counter[str] = Counter()
        self.unseen: Counter[str] = Counter()
        self.examples: dict[str, Any] = {}

    def add(self, table: Table) -> None:
        """Count the cells of a table; columns that it does not have are not counted."""
        if not isinstance(table, Frame) or table.names is None:
            return
        for place, name in enumerate(table.names):
            if name not in self._names:
                continue
            column = table.table.column(place)
            missing = column.null_count
            if pa.types.is_floating(column.type):
                missing += pc.sum(pc.is_nan(column)).as_py() or 0
            if missing:
                self.missing[name] += missing
            levels = self._levels.get(self._names[name])
            if levels is not None:
                self._add_unseen(name, table.values([place])[0], levels)

    def _add_unseen(self, name: str, cells: pa.Array, levels: pa.Array) -> None:
        try:
            unseen = np.flatnonzero(encode(cells, levels) == -2)
        except BadCell:  # scoring the row raises it again, and says where the cell is
            return
        if unseen.size:
            self.unseen[name] += unseen.size
            self.examples.setdefault(name, cells[int(unseen[0])].as_py())

    def as_dict(self) -> dict[str, dict[str, int]]:
        """How many of each column, for programs."""
        return {"missing_cells": dict(self.missing), "unseen_cells": dict(self.unseen)}

    def __str__(self) -> str:
        """How many there were, and where; empty if there were none."""
        parts = []
        if self.missing:
            parts.append(f"{_were(self.missing.total())} missing: {_few(self.missing, {})}")
        if self.unseen:
            held = f"{counted(self.unseen.total(), 'cell')} held values never seen"
            parts.append(f"{held}: {_few(self.unseen, self.examples)}")
        return "; ".join(parts)


def _were(number: int) -> str:
    return f"{counted(number, 'cell')} {'was' if number == 1 else 'were'}"


def _few(counts: Counter[str], examples: dict[str, Any]) -> str:
    def one(name: str, number: int) -> str:
        example = f", such as {shortened(repr(examples[name]), 30)}" if name in examples else ""
        return f"{name} ({number:,}{example})"

    shown = [one(*entry) for entry in counts.most_common(MOST_COLUMNS_NAMED)]
    return ", ".join(shown) + (", …" if len(counts) > MOST_COLUMNS_NAMED else "")
