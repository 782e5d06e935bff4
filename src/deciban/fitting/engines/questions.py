"""What column groups need to know of an engine's rows: each thing is asked for once, whoever needs it."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np

from deciban.families.log_normal import positive_log
from deciban.fitting.engines.engine import Engine
from deciban.fitting.engines.groups import Groups
from deciban.statistics import Moments, Scatter, Totals
from deciban.statistics.bins import Column
from deciban.util.arrays import TOO_LARGE, Floats

Item = TypeVar("Item", bound=Hashable)


@dataclass(frozen=True)
class Number:
    """A number that is made of the cell of a column."""

    column: int

    def sql(self, engine: Engine, cell: str) -> str:
        """The number, given the cell as a double without NaN; NULL where it is missing."""
        return cell

    def of(self, cells: Floats) -> Floats:
        """The numbers of cells that are here."""
        return cells


@dataclass(frozen=True)
class Logarithm(Number):
    """The logarithm of a cell above 0; others are missing."""

    def sql(self, engine: Engine, cell: str) -> str:
        return f"CASE WHEN {cell} > {engine.dialect.number(0.0)} THEN ln({cell}) END"

    def of(self, cells: Floats) -> Floats:
        return positive_log(cells)


@dataclass(frozen=True)
class Positive(Number):
    """A cell above 0; others are missing."""

    def sql(self, engine: Engine, cell: str) -> str:
        return f"CASE WHEN {cell} > {engine.dialect.number(0.0)} THEN {cell} END"

    def of(self, cells: Floats) -> Floats:
        return np.where(cells > 0.0, cells, np.nan)


@dataclass(frozen=True)
class Flag(Number):
    """Whether a cell is above a number: 1 or 0."""

    cut: float

    def sql(self, engine: Engine, cell: str) -> str:
        one, zero, cut = map(engine.dialect.number, (1.0, 0.0, self.cut))
        return f"CASE WHEN {cell} > {cut} THEN {one} WHEN {cell} <= {cut} THEN {zero} END"


@dataclass(frozen=True)
class Event(Number):
    """A count 0, 1, 2, ...; others are missing."""

    def sql(self, engine: Engine, cell: str) -> str:
        return f"CASE WHEN {cell} >= {engine.dialect.number(0.0)} AND {engine.whole(cell)} THEN {cell} END"


@dataclass(frozen=True)
class Amount(Number):
    """A cell, cut off so that sums stay finite."""

    def sql(self, engine: Engine, cell: str) -> str:
        most = engine.dialect.number(float(TOO_LARGE))
        return f"CASE WHEN {cell} > {most} THEN {most} ELSE {cell} END"


@dataclass(frozen=True)
class Interval(Number):
    """The number of the interval between rising cuts that a cell is in."""

    cuts: tuple[float, ...]

    def sql(self, engine: Engine, cell: str) -> str:
        below = " ".join(f"WHEN {cell} < {engine.dialect.number(cut)} THEN {k}" for k, cut in enumerate(self.cuts))
        return f"CASE {below} WHEN {cell} IS NOT NULL THEN {len(self.cuts)} END"


class Listed(Generic[Item]):
    """Things in a list, each once."""

    def __init__(self) -> None:
        self._places: dict[Item, int] = {}

    def place(self, item: Item) -> int:
        """The place of a thing, which is entered if it is new."""
        return self._places.setdefault(item, len(self._places))

    @property
    def items(self) -> list[Item]:
        return list(self._places)


@dataclass(frozen=True)
class Questions:
    """All that is to be asked.

    numbers: columns whose cells are numbers, and whether it matters that these are whole. levels: columns. tuples:
    columns together, whose cells are taken as they are or as intervals.
    """

    numbers: dict[int, bool] = field(default_factory=dict)
    moments: Listed[Number] = field(default_factory=Listed)
    totals: Listed[Number] = field(default_factory=Listed)
    bins: Listed[Number] = field(default_factory=Listed)
    scatters: Listed[tuple[Number, ...]] = field(default_factory=Listed)
    levels: Listed[int] = field(default_factory=Listed)
    tuples: Listed[tuple[int | Interval, ...]] = field(default_factory=Listed)


@dataclass(frozen=True)
class Answers:
    """What was asked, in the order of the questions."""

    classes: int
    moments: Moments
    totals: Totals
    scatters: list[Scatter]
    bins: list[Column]
    levels: list[Groups]
    tuples: list[Groups]
