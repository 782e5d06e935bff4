"""What is asked of numbers that are binned: the weight of each class and bin."""

from dataclasses import dataclass

import numpy as np

from deciban.families.base.sql_questions import DistinctRows
from deciban.fitting.engines.asking import as_floats
from deciban.fitting.engines.groups import Keys
from deciban.sources.dialects import Dialect
from deciban.statistics import Bins
from deciban.statistics.bins import Column, edges_of
from deciban.util.arrays import Floats

# Numbers beyond 2 to this power, in widths of a bin, are edges of bins themselves.
WHOLE_DIGITS = 52


@dataclass(frozen=True)
class Grouping:
    """How a column is binned. by_value: bins are so fine that cells are grouped by themselves."""

    exponent: int
    by_value: bool

    @classmethod
    def of(cls, some: Floats, largest: float) -> "Grouping":
        """With bins at least as fine as all rows of a column allow, and not much finer.

        some: the numbers of some of the rows, which allow finer ones. largest: the largest size of all.
        """
        alike = np.zeros(len(some), dtype=np.int32), np.ones(len(some))
        exponent = Bins.count(some[:, None], *alike, 1).columns[0].exponent
        return cls(exponent, int(np.frexp(largest)[1]) - exponent > WHOLE_DIGITS)

    def key(self, dialect: Dialect, value: str) -> Keys:
        """The cell itself, or the number of the bin that it is in."""
        return (value if self.by_value else dialect.floor(dialect.scaled(value, -self.exponent)),)

    def column(self, rows: DistinctRows) -> Column:
        """The bins of a column, of which cells are grouped; coarser where these are too many."""
        numbers = as_floats(rows.cells[0])
        there = np.flatnonzero(~np.isnan(numbers))
        values = numbers[there]
        values = edges_of(values, self.exponent) if self.by_value else np.ldexp(values, self.exponent) + 0.0
        edges, place = np.unique(values, return_inverse=True)
        table = np.zeros((rows.classes, edges.size))
        np.add.at(table, (rows.labels[there], place.ravel()), rows.weights[there])
        return Column(self.exponent, edges, table).few_enough()
