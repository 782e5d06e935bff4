"""Corrections: small tables of cells, whose values are added to the log joint."""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import Any, Callable, Iterator

from deciban.export.py.arrays import decoded_array, decoded_fixed, zeros
from deciban.export.py.cells import Column, number_in
from deciban.export.py.families import Context, add_to
from deciban.export.py.shares import shapley_shares

# What is added to the rows of a cell when its value is averaged, so that none is empty.
_ROWS_OF_NO_CELL = 1e-6


class TableCorrections:
    """What is added to the log joint, and the share of each column in it."""

    def __init__(self, encoded: dict[str, Any], columns: list[Column], context: Context) -> None:
        self.classes, self.levels = context.classes, context.levels
        self.depth, self.tests = decoded_array(encoded["depth"]), decoded_array(encoded["tests"])
        self.contrasts, self.rows = decoded_fixed(encoded["contrasts"]), decoded_fixed(encoded["rows"])
        self.columns = [columns[one["column"]] for one in encoded["columns"]]
        self.cuts = [decoded_array(one["cuts"]) if "cuts" in one else None for one in encoded["columns"]]
        self.sets = [one.get("levels") for one in encoded["columns"]]

    def bin_of(self, k: int, raw: Any) -> int:
        """The bin of a corrected column: 0 is a missing cell, 1 a category that is none of the levels."""
        column, cuts = self.columns[k], self.cuts[k]
        if cuts is None:
            code = self.levels[self.sets[k]].code_in(column, raw)
            return 0 if code == -1 else max(2 + code, 1)
        x = number_in(column, raw)
        return 0 if math.isnan(x) else 1 + bisect_right(cuts, x)

    def each_table(self, cells: list[Any], unknown: list[bool]) -> Iterator[tuple[int, int, int, int, int]]:
        """Of each table its first test, its first cell, its depth, the cell of the row, and what is unknown of that.

        unknown: of each column of the model, whether it says nothing.
        """
        bins = [self.bin_of(k, cells[column.place]) for k, column in enumerate(self.columns)]
        test = first = 0
        for depth in self.depth:
            cell = free = 0
            for at in range(2 * test, 2 * (test + depth), 2):
                place = self.tests[at]
                gone = unknown[self.columns[place].place]
                cell = 2 * cell + (not gone and bins[place] > self.tests[at + 1])
                free = 2 * free + gone
            yield test, first, depth, cell, free
            test += depth
            first += 1 << depth

    def centred(self, sums: list[float]) -> list[float]:
        """Values of classes from how these differ from the first: their mean is 0."""
        mean = sum(sums) / self.classes
        return [value - mean for value in [0.0, *sums]]

    def contrast(self, cell: int) -> list[float]:
        """How classes differ from the first in a cell."""
        size = self.classes - 1
        return self.contrasts[cell * size : (cell + 1) * size]

    def totals(self, cells: list[Any], unknown: list[bool]) -> list[float]:
        """What is added to the log joint of each class; a table is averaged over what is unknown of it."""
        sums = zeros(self.classes - 1)
        for _, first, depth, cell, free in self.each_table(cells, unknown):
            if free == 0:
                add_to(sums, 1.0, self.contrast(first + cell))
            elif free < (1 << depth) - 1:
                add_to(sums, 1.0, self.mean(first + cell, free))
        return self.centred(sums)

    def mean(self, cell: int, free: int) -> list[float]:
        """The mean of the cells that differ from one in no other than the free digits."""
        sums, total, some = zeros(self.classes - 1), 0.0, free
        while True:
            amount = self.rows[cell + some] + _ROWS_OF_NO_CELL
            total += amount
            add_to(sums, amount, self.contrast(cell + some))
            if not some:
                return [value / total for value in sums]
            some = (some - 1) & free

    def means_agreeing(self, first: int, depth: int, cell: int) -> Callable[[int], list[float]]:
        """For a set of tests (bits), the mean of a table over the rows that agree with a cell in these; of none 0."""
        count = 1 << depth
        places = [first + (cell ^ differs) for differs in range(count)]
        weight = [self.rows[at] + _ROWS_OF_NO_CELL for at in places]
        contrasts = [self.contrast(at) for at in places]
        sums = [[w * one[c] for w, one in zip(weight, contrasts)] for c in range(self.classes - 1)]
        for values in (weight, *sums):
            for bit in (1 << level for level in range(depth)):
                for some in range(count):
                    if some & bit:
                        values[some] += values[some ^ bit]

        def mean_of(known: int) -> list[float]:
            free = count - 1 - known
            return [values[free] / weight[free] for values in sums] if known else zeros(self.classes - 1)

        return mean_of

    def add_shares(self, test: int, first: int, depth: int, cell: int, free: int, out: list[list[float]]) -> None:
        """Add the Shapley value of each known column that a table asks of."""
        players: dict[int, int] = {}
        for k in range(depth):
            column, bit = self.tests[2 * (test + k)], 1 << (depth - 1 - k)
            if not free & bit:
                players[column] = players.get(column, 0) | bit
        mean_of = self.means_agreeing(first, depth, cell)
        bits = list(players.values())

        def value_of(some: int) -> list[float]:
            return mean_of(sum(bit for p, bit in enumerate(bits) if some & 1 << p))

        for column, share in zip(players, shapley_shares(value_of, len(bits), self.classes - 1)):
            add_to(out[column], 1.0, share)

    def shares(self, cells: list[Any], unknown: list[bool]) -> list[list[float]]:
        """What each corrected column has of the correction."""
        out = [zeros(self.classes - 1) for _ in self.columns]
        for test, first, depth, cell, free in self.each_table(cells, unknown):
            self.add_shares(test, first, depth, cell, free, out)
        return [self.centred(sums) for sums in out]
