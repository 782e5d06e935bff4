"""Rows and cells unlike the training data: outliers, and cells that are missing or hold a value never seen.

The rule: a row is an outlier if its density under plain Bayes is lower than that of all but 1 in 1,000 rows drawn from
plain Bayes itself. A cell that is missing, or holds a value never seen, adds nothing to a density, which may make it
higher or lower; so such a row is compared with drawn rows that lack the same cells. A missing cell neither makes an
outlier nor hides one: only the known cells of the row are judged.
"""

from collections import Counter, OrderedDict
from contextlib import suppress
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from deciban.errors import BadCell, DecibanError
from deciban.families.base.contract import group_by_missing
from deciban.model.fitted import Fitted
from deciban.model.model import Model, log_normalize
from deciban.scoring.predict import score_table
from deciban.scoring.simulate import sample_rows
from deciban.statistics.levels import encode
from deciban.tables.convert import as_table
from deciban.tables.table import Frame, Matrix, Table
from deciban.util.arrays import Flags, Floats
from deciban.util.text_tables import count_noun, shorten

# Columns that a message names.
MAX_COLUMNS_NAMED = 5

# Kinds of cells: 0 is evidence, others are missing or a value never seen in training.
MISSING, UNSEEN = 1, 2

Kinds = npt.NDArray[np.int8]


def known_levels(model: Model) -> dict[int, pa.Array]:
    """Return the values that were seen in training in each column of categories, by the number of the column."""
    levels: dict[int, pa.Array] = {}
    for group, likelihood in zip(model.schema.groups, model.likelihoods, strict=True):
        if (known := likelihood.list_known_values()) is not None:
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

    def to_dict(self) -> dict[str, dict[str, int]]:
        """How many of each column, for programs."""
        return {"missing_cells": dict(self.missing), "unseen_cells": dict(self.unseen)}

    def __str__(self) -> str:
        """How many there were, and where; empty if there were none."""
        parts = []
        if self.missing:
            parts.append(f"{_were(self.missing.total())} missing: {_few(self.missing, {})}")
        if self.unseen:
            held = f"{count_noun(self.unseen.total(), 'cell')} held values never seen"
            parts.append(f"{held}: {_few(self.unseen, self.examples)}")
        return "; ".join(parts)


def _were(number: int) -> str:
    return f"{count_noun(number, 'cell')} {'was' if number == 1 else 'were'}"


def _few(counts: Counter[str], examples: dict[str, Any]) -> str:
    def one(name: str, number: int) -> str:
        example = f", such as {shorten(repr(examples[name]), 30)}" if name in examples else ""
        return f"{name} ({number:,}{example})"

    shown = [one(*entry) for entry in counts.most_common(MAX_COLUMNS_NAMED)]
    return ", ".join(shown) + (", …" if len(counts) > MAX_COLUMNS_NAMED else "")


# The share of rows drawn from the model that would count as outliers.
OUTLIER_SHARE = 0.001

# Rows drawn to know how low densities are, unless they take longer than `DRAWING_SECONDS`; then fewer, but not below
# the minimum. The time is estimated from a trial.
MAX_DRAWN_ROWS = 20_000
MIN_DRAWN_ROWS = 2_000
TRIAL_ROWS = 500
DRAWING_SECONDS = 1.0

# Sets of missing cells whose limits are remembered.
MAX_PATTERNS = 256

# New sets of missing cells whose limits are estimated for one table.
MAX_NEW_PATTERNS = 16


class OutlierDetector:
    """Counts outliers by one model: compares the density of rows with that of rows drawn from the model.

    can_judge: whether rows can be drawn from the model; if not, no row is judged.
    """

    def __init__(self, fitted: Fitted) -> None:
        plain = replace(fitted, tuning=None)
        self._model = plain.model
        self._limits: OrderedDict[bytes, float] = OrderedDict()
        self._count_held = _drawn_rows(plain)
        self.can_judge = self._count_held is not None

    def count(self, table: Table, kinds: Kinds) -> tuple[int, int]:
        """Return how many rows could be judged, and how many of them are outliers.

        A row with a rare and new set of missing cells is not judged if the table has many of those.
        """
        known = without_cells(table, kinds == UNSEEN)
        density = log_density(self._model, known)
        judged = outliers = new = 0
        patterns = sorted(group_by_missing(kinds != 0), key=lambda found: -found[1].size)
        for pattern, rows in patterns:
            key = np.packbits(pattern).tobytes()
            if key not in self._limits:
                new += 1
                if new > MAX_NEW_PATTERNS:
                    continue
            judged += rows.size
            outliers += int((density[rows] < self._limit(key, pattern)).sum())
        return judged, outliers

    def _limit(self, key: bytes, pattern: Flags) -> float:
        """The density that all but 1 in 1,000 of the drawn rows have, without the cells of the pattern."""
        if key not in self._limits:
            assert self._count_held is not None, "there are rows to compare with"
            lacking = np.broadcast_to(pattern, (self._count_held.rows, pattern.size))
            density = np.sort(log_density(self._model, without_cells(self._count_held, lacking)))
            lowest = float(density[int(OUTLIER_SHARE * density.size)])
            self._limits[key] = lowest - 1e-9 * max(1.0, abs(lowest))  # equal but for rounding is not lower
            if len(self._limits) > MAX_PATTERNS:
                self._limits.popitem(last=False)
        self._limits.move_to_end(key)
        return self._limits[key]


def log_density(plain: Model, table: Table) -> Floats:
    """log P(row) of each row, on one core."""
    return np.asarray(score_table(plain, table, lambda joint, prior: log_normalize(joint, prior)[1], True, threads=1))


def without_cells(table: Table, lacking: Flags) -> Table:
    """The table with these cells missing, row by column."""
    columns = np.flatnonzero(lacking.any(axis=0))
    if not columns.size:
        return table
    if isinstance(table, Matrix):
        return Matrix(np.where(lacking, np.nan, table.array))
    if not isinstance(table, Frame):
        return table
    pairs = zip(table.table.columns, lacking.T, strict=True)
    return Frame(pa.table([_without(*pair) for pair in pairs], names=table.table.column_names), table.named)


def _without(cells: pa.ChunkedArray, gone: Flags) -> pa.ChunkedArray | pa.Array:
    """The cells of a column without some of them."""
    if not gone.any():
        return cells
    if pa.types.is_string_view(cells.type) or pa.types.is_binary_view(cells.type):  # pc.if_else has no kernel for these
        cells = cells.cast(pa.large_string() if pa.types.is_string_view(cells.type) else pa.large_binary())
    blank = pa.nulls(len(cells), cells.type)
    return blank if gone.all() else pc.if_else(pa.array(gone), blank, cells.combine_chunks())


def _drawn_rows(plain: Fitted) -> Table | None:
    """Rows drawn from plain Bayes, as many as are drawn and scored in about a second; None where none can be drawn."""

    def drawn(rows: int) -> Table:
        return plain.model.schema.table_as_learned(as_table(sample_rows(plain, rows, 0)[0]))

    try:
        start = perf_counter()
        log_density(plain.model, drawn(TRIAL_ROWS))
        possible = TRIAL_ROWS * DRAWING_SECONDS / max(perf_counter() - start, 1e-9)
        return drawn(int(min(max(possible, MIN_DRAWN_ROWS), MAX_DRAWN_ROWS)))
    except DecibanError:
        return None
