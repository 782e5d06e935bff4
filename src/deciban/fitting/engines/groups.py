"""What is asked of discrete cells: the weight of each class and each combination of them.

Rows that are alike are as good as one row of their weight, so an answer is counted as any rows are.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from deciban.errors import DataError
from deciban.families.base.sql_questions import DistinctRows
from deciban.fitting.engines.asking import CHANGED, Classes, EngineRows, as_floats
from deciban.tables.table import Frame
from deciban.util.arrays import summed_cells

# Cells that are grouped by, together: as SQL writes them.
Keys = tuple[str, ...]


def ask_groups(asked: EngineRows, sets: Sequence[Keys], classes: Classes) -> list[DistinctRows]:
    """The groups of each set of keys."""
    found: dict[int, DistinctRows] = {}
    for places in _statements(sets, asked.dialect.max_grouping_sets):
        found |= dict(zip(places, _answer(asked, [sets[place] for place in places], classes), strict=True))
    return [found[place] for place in range(len(sets))]


def _statements(sets: Sequence[Keys], most: int) -> Iterator[list[int]]:
    """The places of sets that are asked for together: so many at most, and none with a key of another."""
    left = list(range(len(sets)))
    while left:
        chosen: list[int] = []
        taken: set[str] = set()
        for place in left:
            if len(chosen) < most and taken.isdisjoint(sets[place]):
                chosen.append(place)
                taken.update(sets[place])
        yield chosen
        left = [place for place in left if place not in set(chosen)]


def _answer(asked: EngineRows, sets: Sequence[Keys], classes: Classes) -> Iterator[DistinctRows]:
    """The groups of sets that have no key in common."""
    ends = np.cumsum([len(keys) for keys in sets]).tolist()
    names = [[f"v{k}" for k in range(end - len(keys), end)] for keys, end in zip(sets, ends, strict=True)]
    every = [name for own in names for name in own]
    marks = [f"GROUPING({own[0]}) AS g{k}" for k, own in enumerate(names)] if len(sets) > 1 else []
    grouped = ", ".join(f"({', '.join(('y', *own))})" for own in names)
    by = f"GROUPING SETS ({grouped})" if len(sets) > 1 else ", ".join(("y", *every))
    source = asked.cells([key for keys in sets for key in keys])
    answer = asked.rows.ask(f"SELECT {', '.join(('y', *every, *marks, asked.amount))} FROM {source} GROUP BY {by}")
    codes, weights = asked.codes(answer.column(0), classes), as_floats(answer.column(answer.num_columns - 1))
    if not np.allclose(summed_cells(codes, weights, classes.weight.size), len(sets) * classes.weight, rtol=1e-9):
        raise DataError(CHANGED)
    for k, end in enumerate(ends):
        here = np.arange(codes.size)
        if marks:
            here = np.flatnonzero(as_floats(answer.column(1 + len(every) + k)) == 0.0)
        cells = Frame(answer.select(range(1 + end - len(sets[k]), 1 + end))).take(here)
        yield DistinctRows(cells.values(range(len(sets[k]))), codes[here], weights[here], classes.labels.size)
