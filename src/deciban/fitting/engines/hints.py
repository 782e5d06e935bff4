"""Some of the rows, which tell how to ask about all: near which number a column lies, how fine its bins may be, and
which discrete columns have so few combinations that they are asked for together."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from deciban.fitting.engines.asking import MOST_AGGREGATES, EngineRows, as_floats
from deciban.schema.schema import Schema
from deciban.statistics.levels import distinct
from deciban.tables.table import Table
from deciban.util.arrays import Floats, Integers

# The first rows that are looked at, if no sample was drawn.
FIRST_HINTS = 1 << 14

# Discrete columns are asked for together if so many rows of a sample, on average, have the same cells in them.
ALIKE = 2


@dataclass(frozen=True)
class Hints:
    """Some rows that are counted. drawn: those of a sample; without, the first ones are asked for where needed."""

    asked: EngineRows
    drawn: Table | None

    @classmethod
    def of(cls, asked: EngineRows, schema: Schema) -> "Hints":
        sample = asked.examples.seen
        if sample is None:
            return cls(asked, None)
        there = sample.labels.codes >= 0
        if sample.weights is not None:
            there &= sample.weights > 0.0
        return cls(asked, schema.table_as_learned(sample.table.take(np.flatnonzero(there))))

    def numbers(self, columns: Sequence[int], sql: Sequence[str]) -> Floats:
        """The numbers in some columns, row by column."""
        if self.drawn is not None:
            return np.asarray(self.drawn.numbers(columns), dtype=np.float64)
        found = np.full((FIRST_HINTS, len(columns)), np.nan)
        for first in range(0, len(sql), MOST_AGGREGATES):
            some = sql[first : first + MOST_AGGREGATES]
            names = ", ".join(f"v{k}" for k in range(len(some)))
            answer = self.asked.rows.ask(f"SELECT {names} FROM {self.asked.cells(some)} LIMIT {FIRST_HINTS}")
            for k, column in enumerate(answer.columns):
                found[: answer.num_rows, first + k] = as_floats(column)
        return found

    def together(self, columns: Sequence[int]) -> list[list[int]]:
        """Places of discrete columns that are asked for together; each is alone where nothing is known."""
        alone = [[place] for place in range(len(columns))]
        if self.drawn is None or not self.drawn.rows:
            return alone
        cells = self.drawn.values(columns)
        assert isinstance(cells, list), "cells of a stream have types"
        return bundles(cells)


def near_mean(numbers: Floats) -> float:
    """A number of few digits near the mean; 0 where there is none."""
    there = numbers[np.isfinite(numbers)]
    if not there.size:
        return 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        found = float(few_digits(np.array([there.mean()]), np.array([there.var()]))[0])
    return found if np.isfinite(found) else 0.0


def bundles(cells: Sequence[pa.Array]) -> list[list[int]]:
    """Places of columns, those of few values first, in bundles that have few combinations of values."""
    codes = [distinct(column, k) for k, column in enumerate(cells)]
    found: list[list[int]] = []
    held: Integers | None = None
    for place in sorted(range(len(cells)), key=lambda place: len(codes[place][1])):
        own = codes[place][0].astype(np.int64) + 1
        both = own if held is None else np.unique(held * (own.max() + 1) + own, return_inverse=True)[1].ravel()
        if held is not None and ALIKE * (both.max() + 1) <= own.size:
            found[-1].append(place)
            held = both
        else:
            found.append([place])
            held = own
    return found


def few_digits(shift: Floats, variance: Floats) -> Floats:
    """`shift` to a sixteenth of the deviation: then sums over whole numbers are exact."""
    known = (variance > 0.0) & np.isfinite(variance)
    unit = np.ldexp(1.0, np.floor(0.5 * np.log2(np.where(known, variance, 1.0)) - 3.0).astype(np.int64))
    return np.where(known, np.floor(shift / unit + 0.5) * unit, shift)
