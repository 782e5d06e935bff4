"""What is asked of numbers that are binned: the weight of each class and bin."""

from collections.abc import Sequence

import numpy as np

from deciban.arrays import Floats
from deciban.engines.asking import Classes, as_floats
from deciban.engines.engine import Engine
from deciban.engines.groups import Groups, Keys
from deciban.statistics import Bins
from deciban.statistics.bins import Column, least_exponent


def finest_exponent(some: Floats, largest: float) -> int:
    """The exponent of bins that are at least as fine as all rows of a column allow, and not much finer.

    some: the numbers of some of the rows, which allow finer ones. largest: the largest size of all.
    """
    alike = np.zeros(len(some), dtype=np.int32), np.ones(len(some))
    return max(Bins.count(some[:, None], *alike, 1).columns[0].exponent, least_exponent(largest))


def bin_keys(engine: Engine, values: Sequence[str], exponents: Sequence[int]) -> list[Keys]:
    """The number of the bin that each value is in."""
    return [(engine.floor(engine.scaled(v, -e)),) for v, e in zip(values, exponents, strict=True)]


def binned_column(exponent: int, groups: Groups, classes: Classes) -> Column:
    """The bins of a column in which cells are grouped by bins of this exponent; coarser where these are too many."""
    numbers = as_floats(groups.cells[0])
    there = np.flatnonzero(~np.isnan(numbers))
    cells, place = np.unique(numbers[there], return_inverse=True)
    table = np.zeros((classes.labels.size, cells.size))
    np.add.at(table, (groups.codes[there], place.ravel()), groups.weights[there])
    return Column(exponent, cells + 0.0, table).few_enough()  # -0.0 is 0.0
