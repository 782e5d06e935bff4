"""Rows that were counted, each scored without itself."""

from contextlib import suppress
from typing import Any

import numpy as np

from deciban.errors import ForgetError
from deciban.families.protocols import Family, LeftOut, add_base
from deciban.tables.arrow import take_cells
from deciban.util.arrays import Floats, Integers
from deciban.util.sparse import SparseRows


def score_anew(family: Family, statistic: Any, cells: Any, rows: LeftOut, slot: Integers, out: Floats) -> None:
    """score_left_out by definition: take a row from the counts, estimate, score it. For the few rows, or the family,
    for which there is no shorter way."""
    classes = out.shape[2]
    ones = np.ones(slot.size)
    for i in range(rows.labels.size):
        one, at = cells_of(cells, [i]), slice(i, i + 1)
        counted = family.count(one, rows.labels[at], rows.removed[at], classes)
        left = statistic
        if rows.removed[i] > 0.0:
            with suppress(ForgetError):  # of what is left nothing is known: the row stays in
                left = statistic.remove(counted)
        likelihood = family.estimate(left)
        likelihood.score(one, ones, slot, out[at])
        add_base(likelihood, one, ones, slot, out[at])


def cells_of(cells: Any, rows: Any) -> Any:
    """Some rows of what `read` returns."""
    if isinstance(cells, list):
        return [take_cells(column, rows) for column in cells]
    return cells.take(rows) if isinstance(cells, SparseRows) else cells[rows]
