"""What the counts of a model know of one column: how often each of its values, or of its bins, is in each class."""

from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np
import pyarrow as pa

from deciban.model.counts import Counts
from deciban.schema.schema import ColumnGroup
from deciban.statistics import Bins, Combined, Levels, Tuples
from deciban.util.arrays import Floats, summed

# Bins are shown no narrower than this many halvings of the range of a column.
DRAWN_BITS = 12


@dataclass(frozen=True)
class ColumnCounts:
    """How often something was counted in each class, class by value or class by bin.

    levels: the values, where they are categories. low, high: the bins, where they are numbers.
    """

    table: Floats
    levels: pa.Array | None = None
    low: Floats | None = None
    high: Floats | None = None


def counted_column(counts: Counts, column: int, by: ColumnGroup | None = None) -> ColumnCounts | None:
    """Counts of the values or bins of a column, from any of its groups or from the one that counts what `by` needs;
    None if only sums of it were counted."""
    host = None if by is None else counts.schema.group_counting(by)
    for p, (group, statistic) in enumerate(zip(counts.schema.groups, counts.statistics, strict=True)):
        if getattr(group.family, "cuts", None) or (host is not None and p != host[0]):  # cuts count places, not values
            continue
        if column in group.columns and (found := _counted(statistic, group.columns.index(column))) is not None:
            return found
    return None


@singledispatch
def _counted(statistic: Any, place: int) -> ColumnCounts | None:
    return None


@_counted.register
def _(statistic: Levels, place: int) -> ColumnCounts | None:
    return ColumnCounts(statistic.tables[place], levels=statistic.levels[place])


@_counted.register
def _(statistic: Tuples, place: int) -> ColumnCounts | None:
    levels = statistic.levels[place]
    return ColumnCounts(summed(statistic.table, statistic.tuples[:, place], len(levels)), levels=levels)


@_counted.register
def _(statistic: Bins, place: int) -> ColumnCounts | None:
    column = statistic.columns[place]
    reach = np.ptp(column.edges) or np.abs(column.edges).max() if column.edges.size else 1.0
    column = column.coarser(max(column.exponent, int(np.frexp(reach)[1]) - DRAWN_BITS))
    return ColumnCounts(column.table, low=column.edges, high=column.edges + np.ldexp(1.0, column.exponent))


@_counted.register
def _(statistic: Combined, place: int) -> ColumnCounts | None:  # type: ignore[type-arg]  # whatever is combined
    return next((found for part in statistic.parts if (found := _counted(part, place)) is not None), None)
