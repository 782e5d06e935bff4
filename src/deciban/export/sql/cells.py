"""The cells of a row, each read once, and the places of these."""

import math
from collections.abc import Sequence
from typing import Any

from deciban.export.ir import TermModel
from deciban.export.sql.engines import Reading
from deciban.export.sql.stages import Stages
from deciban.families.base.lowering import (
    MISSING_PLACE,
    OTHER_PLACE,
    CutPlace,
    LevelPlace,
    Place,
    Refusal,
    TuplePlace,
    reject_infinite,
)

# Of more levels than this the places are looked up in a table that is joined, of fewer in a CASE.
MOST_CASES = 64

# The name of the table within the statement, which no column has: it stands for a whole row too.
SCORED_TABLE = "_deciban_rows"

# Texts that mean true and false; engines that read files take some of them for that.
FLAG_LEVELS = (("true", "false"), ("yes", "no"), ("t", "f"), ("y", "n"), ("on", "off"), ("1", "0"))

READINGS: dict[str, Reading] = {
    "number": "number",
    "integer": "integer",
    "text": "text",
    "date": "micros",
    "time": "micros",
}


class Cells:
    """Expressions of the cells of a row; places are numbered from the first element of an array on."""

    def __init__(self, model: TermModel, stages: Stages) -> None:
        self.model, self.stages = model, stages
        self.engine, self.dialect = stages.engine, stages.engine.dialect
        self.first = self.dialect.first

    def cell(self, column: int, reading: Reading) -> str:
        """A cell of the table, NULL where it is missing."""
        known = self.model.columns[column]
        written = f"{SCORED_TABLE}.{self.dialect.identifier(known.name)}"
        flags = self._flags(column) if reading == "text" else None
        return self.stages.read("x", self.engine.cell(written, known, reading, flags))

    def _flags(self, column: int) -> tuple[str, str] | None:
        """The levels of a column of texts that mean true and false; None where there are none, or more than one."""
        levels = {level for place in self.model.places if place.column == column for level in _texts_of(place)}
        found = []
        for words in FLAG_LEVELS:
            meant = [sorted(level for level in levels if level.casefold() == word) for word in words]
            if any(meant):
                found.append([some or [word] for some, word in zip(meant, words, strict=True)])
        if len(found) != 1 or any(len(some) > 1 for some in found[0]):
            return None
        (yes,), (no,) = found[0]
        return yes, no

    def number(self, column: int) -> str:
        """A cell as a double."""
        return self.cell(column, "number")

    def bounded(self, column: int, most: float) -> str:
        """A number that is to be squared, as long as its size is at most this."""
        return self.stages.name("x", self.engine.within(self.number(column), most))

    def log(self, column: int) -> str:
        """The logarithm of a number; NULL where it is not above 0."""
        number = self.number(column)
        return self.stages.name("x", f"CASE WHEN {number} > {self.dialect.number(0.0)} THEN ln({number}) END")

    def place(self, place: Place) -> str:
        """The place of a row, as it stands in arrays."""
        if isinstance(place, TuplePlace):
            members = zip(place.factors, map(self.place, place.members), strict=True)
            digits = " + ".join(f"{factor} * ({member} - {self.first})" for factor, member in members)
            return self.stages.name("p", f"{self.first} + {digits}")
        if isinstance(place, CutPlace):
            number = self.number(place.column)
            found = self.engine.cuts_below(number, place.cuts, self.first + 1)
            return self.stages.name("p", f"CASE WHEN {number} IS NULL THEN {self.first} ELSE {found} END")
        return self._level(place)

    def _level(self, place: LevelPlace) -> str:
        cell = self.cell(place.column, READINGS[place.kind])
        missing, other = self.first + MISSING_PLACE, self.first + (MISSING_PLACE if place.merged else OTHER_PLACE)
        first = self.first + place.first
        if len(place.levels) > MOST_CASES:
            joined = self.stages.joined("p", cell, self._array(place), first, len(place.levels))
            found = f"COALESCE({joined}, {other})"
        else:
            known = [f"WHEN {self._literal(level)} THEN {first + k}" for k, level in enumerate(place.levels)]
            found = f"CASE {cell} {' '.join(known)} ELSE {other} END" if known else str(other)
        return self.stages.name("p", f"CASE WHEN {cell} IS NULL THEN {missing} ELSE {found} END")

    def _literal(self, level: str | float) -> str:
        return "NULL" if self._cannot_be(level) else self.dialect.value(level)

    def _array(self, place: LevelPlace) -> str:
        levels: list[Any] = [None if self._cannot_be(level) else level for level in place.levels]
        if place.kind == "text":
            return self.dialect.texts(levels)
        return self.dialect.doubles(levels) if place.kind == "number" else self.dialect.integers(levels)

    def _cannot_be(self, level: str | float) -> bool:
        """Whether the engine has no way to write a level: then it is no cell there either."""
        return isinstance(level, str) and "\0" in level and not self.dialect.nul

    def refused(self, refusals: Sequence[Refusal]) -> list[str]:
        """The conditions under which a row is refused; those of infinite numbers are one."""
        endless = [one.place.column for one in refusals if one == reject_infinite(one.place.column)]
        others = [one for one in refusals if one != reject_infinite(one.place.column)]
        sizes = [f"abs({self.number(column)})" for column in endless]
        largest = f"GREATEST({', '.join(sizes)})" if len(sizes) > 1 else "".join(sizes)
        found = [f"{largest} = {self.dialect.number(math.inf)}"] if sizes else []
        return [*found, *map(self._refused, others)]

    def _refused(self, refusal: Refusal) -> str:
        """Whether a row has one of the places that are refused."""
        place = refusal.place
        if isinstance(place, LevelPlace):
            wanted = ", ".join(str(self.first + number) for number in refusal.places)
            return f"{self.place(place)} IN ({wanted})"
        number = self.number(place.column)
        return " OR ".join(self._lies_at(number, place, some) for some in refusal.places)

    def _lies_at(self, number: str, place: CutPlace, wanted: int) -> str:
        """Whether a number has a place, which is not that of a missing one."""
        bounds = []
        if wanted > 1:
            bounds.append(f"{number} >= {self.dialect.number(place.cuts[wanted - 2])}")
        if wanted <= len(place.cuts):
            bounds.append(f"{number} < {self.dialect.number(place.cuts[wanted - 1])}")
        return f"({' AND '.join(bounds)})"


def _texts_of(place: LevelPlace | CutPlace) -> tuple[str, ...]:
    """The levels of a place that are texts."""
    return tuple(level for level in place.levels if isinstance(level, str)) if isinstance(place, LevelPlace) else ()
