"""Rows scored by a model, batch by batch on threads."""

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from deciban.arrays import Floats
from deciban.model import Model
from deciban.parallel import map_in_threads, row_ranges, rows_of_a_batch
from deciban.tables.table import Table

SCORED_TEXT = 2 << 20


# Scores of one batch at most: they stay in the cache, and memory stays bounded when there are many classes.
MOST_SCORES = 1 << 18


# From the log joint of some rows and the log prior to what is asked for.
Finish = Callable[[Floats, Floats], npt.NDArray[Any]]


def scored(
    model: Model, table: Table, finish: Finish, full: bool = False, threads: int | None = None, first_row: int = 0
) -> npt.NDArray[Any]:
    """finish(log joint, log prior) of all rows of a table that fits the model, batch by batch on threads."""

    most = min(rows_of_a_batch(table, SCORED_TEXT), max(1, MOST_SCORES // model.classes.size))
    if table.rows <= most:
        return finish(model.log_joint(table, first_row, full), model.log_prior)
    nothing = finish(np.empty((0, model.classes.size)), model.log_prior)
    result = np.empty((table.rows, *nothing.shape[1:]), nothing.dtype)

    def fill(rows: tuple[int, int]) -> None:
        joint = model.log_joint(table.slice(*rows), first_row + rows[0], full)
        result[slice(*rows)] = finish(joint, model.log_prior)

    deque(map_in_threads(fill, row_ranges(table.rows, most), threads), maxlen=0)
    return result
