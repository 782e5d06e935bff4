"""The cells of a row, each read once, and the places of these."""

from deciban.export.sql.engines import Reading
from deciban.export.sql.stages import Stages
from deciban.export.terms import MISSING_PLACE, OTHER_PLACE, CutPlace, LevelPlace, Place, Refusal, TermModel, TuplePlace

# Of more levels than this the places are looked up in a table that is joined, of fewer in a CASE.
MOST_CASES = 64

# The name of the table within the statement.
TABLE = "t"

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
        written = f"{TABLE}.{self.dialect.identifier(known.name)}"
        return self.stages.name("x", self.engine.cell(written, known, reading))

    def number(self, column: int) -> str:
        """A cell as a double."""
        return self.cell(column, "number")

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
        rows = [
            (self._literal(level), self.first + place.first + k)
            for k, level in enumerate(place.levels)
            if self.dialect.nul or not isinstance(level, str) or "\0" not in level
        ]
        if len(rows) > MOST_CASES:
            found = f"COALESCE({self.stages.joined('p', cell, rows)}, {other})"
        else:
            known = " ".join(f"WHEN {literal} THEN {number}" for literal, number in rows)
            found = f"CASE {cell} {known} ELSE {other} END" if rows else str(other)
        return self.stages.name("p", f"CASE WHEN {cell} IS NULL THEN {missing} ELSE {found} END")

    def _literal(self, level: str | float) -> str:
        if isinstance(level, str):
            return self.dialect.literal(level)
        return self.dialect.number(level) if isinstance(level, float) else f"CAST('{level}' AS {self.dialect.integer})"

    def refused(self, refusal: Refusal) -> str:
        """Whether a row has one of the places that are refused."""
        place = refusal.place
        if isinstance(place, LevelPlace):
            wanted = ", ".join(str(self.first + number) for number in refusal.places)
            return f"{self.place(place)} IN ({wanted})"
        number = self.number(place.column)
        return " OR ".join(self._within(number, place, some) for some in refusal.places)

    def _within(self, number: str, place: CutPlace, wanted: int) -> str:
        """Whether a number has a place, which is not that of a missing one."""
        bounds = []
        if wanted > 1:
            bounds.append(f"{number} >= {self.dialect.number(place.cuts[wanted - 2])}")
        if wanted <= len(place.cuts):
            bounds.append(f"{number} < {self.dialect.number(place.cuts[wanted - 1])}")
        return f"({' AND '.join(bounds)})"
