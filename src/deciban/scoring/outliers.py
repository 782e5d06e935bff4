"""Outlier rows, and cells that are missing or hold unseen values.

A row is an outlier if its density under plain Bayes is lower than that of all but 1 in 1,000 rows sampled from plain
Bayes itself. A missing cell, or one with an unseen value, adds nothing to the density, which may make it higher or
lower. So such a row is compared with sampled rows that lack the same cells. A missing cell neither makes an outlier nor
hides one: only the known cells of the row count.
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

# Maximum number of columns named in a message.
MAX_COLUMNS_NAMED = 5

# Kind of a missing cell; 0 is a cell with evidence.
MISSING = 1

# Kind of a cell with a value that training did not contain.
UNSEEN = 2

Kinds = npt.NDArray[np.int8]


def find_levels(model: Model) -> dict[int, pa.Array]:
    """Return the values seen in training for each categorical column, by column index."""
    levels: dict[int, pa.Array] = {}
    for group, likelihood in zip(model.schema.groups, model.likelihoods, strict=True):
        if (known := likelihood.list_known_values()) is not None:
            levels.update(zip(group.columns, known, strict=True))
    return levels


class CellKinds:
    """Classifier of cells: known, missing, or with a value not seen in training."""

    def __init__(self, model: Model) -> None:
        self._levels = find_levels(model)

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
    """Counter of missing cells and cells with unseen values in tables to predict."""

    def __init__(self, model: Model) -> None:
        self._names = {model.schema.column_name(column): column for column in range(model.schema.width)}
        self._levels = find_levels(model)
        self.missing: Counter[str] = Counter()
        self.unseen: Counter[str] = Counter()
        self.examples: dict[str, Any] = {}

    def add(self, table: Table) -> None:
        """Count the cells of a table, except columns that it does not have."""
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
        except BadCell:  # scoring the row raises the error again, with its place
            return
        if unseen.size:
            self.unseen[name] += unseen.size
            self.examples.setdefault(name, cells[int(unseen[0])].as_py())

    def to_dict(self) -> dict[str, dict[str, int]]:
        """Return the number of missing and unseen cells per column."""
        return {"missing_cells": dict(self.missing), "unseen_cells": dict(self.unseen)}

    def __str__(self) -> str:
        """Return the numbers of cells and their columns; empty if all cells are known."""
        parts = []
        if self.missing:
            parts.append(f"{count_noun(self.missing.total(), 'missing cell')}: {_list_columns(self.missing, {})}")
        if self.unseen:
            cells = count_noun(self.unseen.total(), "cell")
            parts.append(f"{cells} with unseen values: {_list_columns(self.unseen, self.examples)}")
        return "; ".join(parts)


def _list_columns(counts: Counter[str], examples: dict[str, Any]) -> str:
    def describe(name: str, number: int) -> str:
        example = f", such as {shorten(repr(examples[name]), 30)}" if name in examples else ""
        return f"{name} ({number:,}{example})"

    shown = [describe(*entry) for entry in counts.most_common(MAX_COLUMNS_NAMED)]
    return ", ".join(shown) + (", …" if len(counts) > MAX_COLUMNS_NAMED else "")


# Share of rows sampled from the model that count as outliers.
OUTLIER_SHARE = 0.001

# Number of sampled rows, unless they take longer than the time limit: enough to estimate the 0.1% quantile.
MAX_SAMPLED_ROWS = 20_000

# Minimum number of sampled rows, for models that are slow to sample from.
MIN_SAMPLED_ROWS = 2_000

# Rows sampled in a trial that estimates the time.
TRIAL_ROWS = 500

# Time limit for sampling, in seconds.
SAMPLING_SECONDS = 1.0

# Maximum number of patterns of missing cells whose limits are cached.
MAX_PATTERNS = 256

# Maximum number of new patterns whose limits are estimated for one table.
MAX_NEW_PATTERNS = 16


class OutlierDetector:
    """Counter of outliers: compares the density of rows with that of rows sampled from the model.

    rows: number of sampled rows; default: as many as take about a second. can_sample: False if the model cannot be
    sampled from. Then no row is tested.
    """

    def __init__(self, fitted: Fitted, rows: int | None = None) -> None:
        plain = replace(fitted, tuning=None)
        self._model = plain.model
        self._limits: OrderedDict[bytes, float] = OrderedDict()
        self._sampled = _sample_rows(plain, rows)
        self.can_sample = self._sampled is not None

    def count(self, table: Table, kinds: Kinds) -> tuple[int, int]:
        """Return the number of tested rows, and the number of outliers among them.

        A row with a rare new pattern of missing cells is not tested if the table has many such patterns.
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
        """Return the 0.1% quantile of the density of sampled rows without the cells of the pattern."""
        if key not in self._limits:
            density = self._sampled_densities(pattern)
            self._limits[key] = float(density[int(OUTLIER_SHARE * density.size)])
            if len(self._limits) > MAX_PATTERNS:
                self._limits.popitem(last=False)
        self._limits.move_to_end(key)
        return self._limits[key]

    def _sampled_densities(self, pattern: Flags) -> Floats:
        """Return the densities of sampled rows without the cells of the pattern, in ascending order."""
        assert self._sampled is not None, "there are rows to compare with"
        lacking = np.broadcast_to(pattern, (self._sampled.rows, pattern.size))
        density = np.sort(log_density(self._model, without_cells(self._sampled, lacking)))
        return density - 1e-9 * np.maximum(1.0, np.abs(density))  # differences from rounding do not count

    def score(self, table: Table, kinds: Kinds) -> Floats:
        """Return the share of sampled rows that are at most as dense as each row: 0.1% or less for outliers."""
        density = log_density(self._model, without_cells(table, kinds == UNSEEN))
        scores = np.empty(table.rows)
        for pattern, rows in group_by_missing(kinds != 0):
            sampled = self._sampled_densities(pattern)
            scores[rows] = np.searchsorted(sampled, density[rows], side="right") / sampled.size
        return scores


def score_outliers(fitted: Fitted, table: Table) -> Floats | None:
    """Return the outlier score of each row, see `OutlierDetector.score`; None if the model cannot be sampled from."""
    detector = OutlierDetector(fitted, MAX_SAMPLED_ROWS)
    aligned = fitted.plain.schema.table_as_learned(table)
    return detector.score(aligned, CellKinds(fitted.plain).of(aligned)) if detector.can_sample else None


def log_density(plain: Model, table: Table) -> Floats:
    """Return log P(row) of each row, on one core."""
    return np.asarray(score_table(plain, table, lambda joint, prior: log_normalize(joint, prior)[1], True, threads=1))


def without_cells(table: Table, lacking: Flags) -> Table:
    """Return the table with these cells missing, row by column."""
    columns = np.flatnonzero(lacking.any(axis=0))
    if not columns.size:
        return table
    if isinstance(table, Matrix):
        return Matrix(np.where(lacking, np.nan, table.array))
    if not isinstance(table, Frame):
        return table
    pairs = zip(table.table.columns, lacking.T, strict=True)
    return Frame(pa.table([_blank_cells(*pair) for pair in pairs], names=table.table.column_names), table.named)


def _blank_cells(cells: pa.ChunkedArray, gone: Flags) -> pa.ChunkedArray | pa.Array:
    """Return the cells of a column with some of them missing."""
    if not gone.any():
        return cells
    if pa.types.is_string_view(cells.type) or pa.types.is_binary_view(cells.type):  # pc.if_else has no kernel for these
        cells = cells.cast(pa.large_string() if pa.types.is_string_view(cells.type) else pa.large_binary())
    blank = pa.nulls(len(cells), cells.type)
    return blank if gone.all() else pc.if_else(pa.array(gone), blank, cells.combine_chunks())


def _sample_rows(plain: Fitted, size: int | None) -> Table | None:
    """Return rows sampled from plain Bayes: `size`, or as many as take a second; None if it cannot be sampled from."""

    def draw(rows: int) -> Table:
        return plain.model.schema.table_as_learned(as_table(sample_rows(plain, rows, 0)[0]))

    try:
        if size is not None:
            return draw(size)
        start = perf_counter()
        log_density(plain.model, draw(TRIAL_ROWS))
        possible = TRIAL_ROWS * SAMPLING_SECONDS / max(perf_counter() - start, 1e-9)
        return draw(int(min(max(possible, MIN_SAMPLED_ROWS), MAX_SAMPLED_ROWS)))
    except DecibanError:
        return None
