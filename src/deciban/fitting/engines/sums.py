"""Numbers that are asked of each class, as many in one statement as it has room for."""

from collections.abc import Callable

import numpy as np

from deciban.fitting.engines.asking import MOST_AGGREGATES, Classes, EngineRows
from deciban.util.arrays import Flags, Floats

# An aggregate in SQL, given what a value is called.
Aggregate = Callable[[str], str]


class Sums:
    """What is asked of values, each of which is a number of every row."""

    def __init__(self) -> None:
        self._asked: list[tuple[str, Aggregate]] = []

    def add(self, value: str, *aggregates: Aggregate) -> slice:
        """Ask for aggregates of a value; the places of the answers."""
        self._asked.extend((value, aggregate) for aggregate in aggregates)
        return slice(len(self._asked) - len(aggregates), len(self._asked))

    def ask(self, asked: EngineRows, classes: Classes | None) -> tuple[Classes, Floats, Flags]:
        """The classes, which are asked for too if they are not known; the answers, by class, NaN where there is none;
        and which of them are there and NaN in some class."""
        numbers, broken = [], []
        first = 0
        while first < len(self._asked) or classes is None:
            values, aggregates = self._statement(first)
            if classes is None:
                classes, found, nan = asked.of_all_classes(values, aggregates)
            else:
                found, nan = asked.of_each_class(asked.cells(values), aggregates, classes)
            numbers.append(found)
            broken.append(nan)
            first += len(aggregates)
        nothing = np.zeros((0, classes.labels.size)), np.zeros(0, dtype=np.bool_)
        return classes, np.concatenate([nothing[0], *numbers]), np.concatenate([nothing[1], *broken])

    def _statement(self, first: int) -> tuple[list[str], list[str]]:
        """The values that a statement is about, and the aggregates of them, from the first one that is still open."""
        names: dict[str, str] = {}
        part = self._asked[first : first + MOST_AGGREGATES]
        aggregates = [aggregate(names.setdefault(value, f"v{len(names)}")) for value, aggregate in part]
        return list(names), aggregates
