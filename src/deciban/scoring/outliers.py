"""Strangers: rows that are less probable than nearly all that the model itself would produce.

The rule: a row is a stranger if its density under plain Bayes is lower than that of all but 1 in 1,000 rows drawn from
plain Bayes itself. A cell that is missing, or holds a value never seen, adds nothing to a density, which may make it
higher or lower; so such a row is compared with drawn rows that lack the same cells. A missing cell neither makes a
stranger nor hides one: what is known of the row is judged by itself.
"""

from collections import OrderedDict
from contextlib import suppress
from dataclasses import replace
from time import perf_counter

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from deciban.errors import BadCell, DecibanError
from deciban.families.base.contract import by_pattern
from deciban.model.fitted import Fitted
from deciban.model.model import Model, log_normalize
from deciban.scoring.scoring import score_table
from deciban.scoring.simulate import sample_rows
from deciban.statistics.levels import encode
from deciban.tables.convert import as_table
from deciban.tables.table import Frame, Matrix, Table
from deciban.util.arrays import Flags, Floats

# The share of rows drawn from the model that would count as strangers.
STRANGE_SHARE = 0.001

# Rows that are drawn to know how low densities are, if that can be done in about `SECONDS_OF_DRAWING`; else fewer.
DRAWN_ROWS, FEWEST_DRAWN_ROWS, TRIAL_ROWS, SECONDS_OF_DRAWING = 20_000, 2_000, 500, 1.0

# Sets of missing cells whose limits are remembered, and how many new ones are worked out for one table.
MOST_PATTERNS, MOST_NEW_PATTERNS = 256, 16

# What a cell is: evidence, missing, or a value that was never seen.
MISSING, UNSEEN = 1, 2

Kinds = npt.NDArray[np.int8]


class CellKinds:
    """Says which cells are missing, or hold a value never seen, as `UnknownCells` does; row by column."""

    def __init__(self, model: Model) -> None:
        self._levels: dict[int, pa.Array] = {}
        for group, likelihood in zip(model.schema.groups, model.likelihoods, strict=True):
            if (known := likelihood.known_values()) is not None:
                self._levels.update(zip(group.columns, known, strict=True))

    def of(self, table: Table) -> Kinds:
        """0, `MISSING` or `UNSEEN` for each cell of a table with the columns of the model."""
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


class Strangers:
    """Judges rows by one model; it knows rows drawn from it, and how low their densities are.

    can_judge: whether rows can be drawn from the model; if not, no row is judged.
    """

    def __init__(self, fitted: Fitted) -> None:
        plain = replace(fitted, tuning=None)
        self._model = plain.model
        self._limits: OrderedDict[bytes, float] = OrderedDict()
        self._drawn = _drawn_rows(plain)
        self.can_judge = self._drawn is not None

    def judge(self, table: Table, kinds: Kinds) -> tuple[int, int]:
        """How many rows could be judged, and how many of them are strangers.

        A row with a set of missing cells that is rare and new is not judged, where a table has many of those.
        """
        known = without_cells(table, kinds == UNSEEN)
        density = log_density(self._model, known)
        judged = strange = new = 0
        patterns = sorted(by_pattern(kinds != 0), key=lambda found: -found[1].size)
        for pattern, rows in patterns:
            key = np.packbits(pattern).tobytes()
            if key not in self._limits:
                new += 1
                if new > MOST_NEW_PATTERNS:
                    continue
            judged += rows.size
            strange += int((density[rows] < self._limit(key, pattern)).sum())
        return judged, strange

    def _limit(self, key: bytes, pattern: Flags) -> float:
        """The density that all but 1 in 1,000 of the drawn rows have, without the cells of the pattern."""
        if key not in self._limits:
            assert self._drawn is not None, "there are rows to compare with"
            lacking = np.broadcast_to(pattern, (self._drawn.rows, pattern.size))
            density = np.sort(log_density(self._model, without_cells(self._drawn, lacking)))
            lowest = float(density[int(STRANGE_SHARE * density.size)])
            self._limits[key] = lowest - 1e-9 * max(1.0, abs(lowest))  # equal but for rounding is not lower
            if len(self._limits) > MOST_PATTERNS:
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
    blank = pa.nulls(len(cells), cells.type)
    return blank if gone.all() else pc.if_else(pa.array(gone), blank, cells.combine_chunks())


def _drawn_rows(plain: Fitted) -> Table | None:
    """Rows drawn from plain Bayes, as many as are drawn and scored in about a second; None where none can be drawn."""

    def drawn(rows: int) -> Table:
        return plain.model.schema.table_as_learned(as_table(sample_rows(plain, rows, 0)[0]))

    try:
        start = perf_counter()
        log_density(plain.model, drawn(TRIAL_ROWS))
        possible = TRIAL_ROWS * SECONDS_OF_DRAWING / max(perf_counter() - start, 1e-9)
        return drawn(int(min(max(possible, FEWEST_DRAWN_ROWS), DRAWN_ROWS)))
    except DecibanError:
        return None
