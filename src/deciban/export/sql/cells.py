"""SQL expressions for the cells of a row, and the chain of subqueries that computes them.

`Stages` names each expression and puts it into the first subquery in which all names it uses are known. `Cells` reads
each cell once, with the required type, and finds its place among levels and cuts.
"""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from deciban.export.ir import Column, ReadAs, TermModel
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
from deciban.sources.dialects import Dialect

# Type in which a cell is needed: a double, an integer, microseconds since 1970 or since midnight, or a text.
Reading = Literal["number", "integer", "micros", "text"]

# Expected contents of a column by its cell type, for comments and messages.
EXPECTED: dict[ReadAs, str] = {
    "number": "numbers",
    "flag": "true and false, or 1 and 0",
    "date": "dates or timestamps",
    "time": "times of day",
    "text": "text",
}

# Up to this many levels are looked up in a CASE, which is faster; more levels in a joined table.
MAX_CASES = 64

# Alias of the table within the statement. No column has this name, so it can stand for a whole row.
SCORED_TABLE = "_deciban_rows"

# Pairs of texts that mean true and false; engines that read files convert some of them.
FLAG_LEVELS = (("true", "false"), ("yes", "no"), ("t", "f"), ("y", "n"), ("on", "off"), ("1", "0"))

# Type in which the levels of a place are compared.
READINGS: dict[str, Reading] = {
    "number": "number",
    "integer": "integer",
    "text": "text",
    "date": "micros",
    "time": "micros",
}

# Names of expressions. Columns of the table occur only in the first subquery, under other names.
NAME = re.compile(r"\b_[a-z]+[0-9]+\b")

# Maximum number of terms per sum, because engines that compile expressions fail on long ones.
MAX_TERMS_OF_SUM = 16


@dataclass
class Stage:
    """One subquery.

    It has expressions by name, the names that each of them uses, and joined tables by the names of their keys.
    """

    named: dict[str, str] = field(default_factory=dict)
    mentions: dict[str, set[str]] = field(default_factory=dict)
    joins: list[tuple[str, str]] = field(default_factory=list)


class Stages:
    """Expressions that are computed once and referenced by name.

    Each expression is in the first subquery in which all names it uses are known.
    """

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self._stages: list[Stage] = []
        self._known: dict[str, str] = {}
        self._stage_of: dict[str, int] = {}

    def read(self, prefix: str, expression: str) -> str:
        """Return the name of an expression of table cells."""
        return self._known.get(expression) or self._put(prefix, expression, set())

    def name(self, prefix: str, expression: str) -> str:
        """Return the name of an expression; equal expressions share a name.

        A string literal that looks like a name does no harm.
        """
        return self._known.get(expression) or self._put(prefix, expression, self._find_names(expression))

    def names(self, prefix: str, expressions: Sequence[str]) -> list[str]:
        """Return the names of several expressions that are used together, or their positions in one array."""
        if not self.dialect.packs or len(expressions) < 3:
            return [self.name(prefix, expression) for expression in expressions]
        array = self.name(prefix, f"ARRAY[{', '.join(expressions)}]")
        return [f"{array}[{k + self.dialect.first}]" for k in range(len(expressions))]

    def sum(self, prefix: str, terms: Sequence[str]) -> str:
        """Return the sum of expressions; long sums are split into named sums."""
        while len(terms) > MAX_TERMS_OF_SUM:
            pieces = [terms[k : k + MAX_TERMS_OF_SUM] for k in range(0, len(terms), MAX_TERMS_OF_SUM)]
            terms = [self.name(prefix, total(some)) if len(some) > 1 else some[0] for some in pieces]
        return total(terms)

    def join_array(self, prefix: str, key: str, array: str, first: int, size: int) -> str:
        """Return the name of the index of a key in an array, counted from `first`; NULL for unknown keys."""
        table = f"_t{len(self._known)}"
        found = self._put(prefix, f"{table}.place", {key})
        join = f"LEFT JOIN {self.dialect.keys(array, first, size, table)} ON {key} = {table}.level"
        self._stages[self._stage_of[found]].joins.append((key, join))
        return found

    def _put(self, prefix: str, expression: str, mentioned: set[str]) -> str:
        name, stage = f"_{prefix}{len(self._known)}", max((1 + self._stage_of[one] for one in mentioned), default=0)
        while len(self._stages) <= stage:
            self._stages.append(Stage())
        self._stages[stage].named[name], self._stages[stage].mentions[name] = expression, mentioned
        self._known[expression], self._stage_of[name] = name, stage
        return name

    def _find_names(self, expression: str) -> set[str]:
        return {name for name in NAME.findall(expression) if name in self._stage_of}

    def statement(self, table: str, answers: Sequence[str]) -> str:
        """Return one SELECT of the results; `table` is a FROM clause."""
        needed = set().union(*map(self._find_names, answers))
        parts: list[str] = []
        last = len(self._stages) - 1
        for k in range(last, -1, -1):
            stage = self._stages[k]
            used = [name for name in stage.named if name in needed]
            carried = sorted(needed - set(used))
            shown = [f"{stage.named[name]} AS {name}" for name in used]
            source = " ".join([f"_stage{k - 1}" if k else table, *(join for _, join in stage.joins)])
            parts.append(f"_stage{k} AS (\n{self.dialect.fence}SELECT {_lines([*carried, *shown])}\nFROM {source}\n)")
            needed = {*carried, *(key for key, _ in stage.joins)}.union(*(stage.mentions[name] for name in used))
        chain = ",\n".join(reversed(parts))
        return f"WITH {chain}\nSELECT {_lines(answers)}\nFROM _stage{last}\n"


def _lines(expressions: Iterable[str]) -> str:
    return ",\n  ".join(expressions)


def total(terms: Sequence[str]) -> str:
    """Return the sum of expressions, as a balanced tree.

    >>> total(["a", "b", "c"])
    '(a + (b + c))'
    """
    if len(terms) <= 1:
        return terms[0] if terms else "0"
    half = len(terms) // 2
    return f"({total(terms[:half])} + {total(terms[half:])})"


class Cells:
    """Expressions for the cells of a row; places are numbered from the first element of an array."""

    def __init__(self, model: TermModel, stages: Stages) -> None:
        self.model, self.stages = model, stages
        self.dialect, self.first = stages.dialect, stages.dialect.first

    def cell(self, column: int, reading: Reading) -> str:
        """Return a cell of the table; NULL if it is missing."""
        known = self.model.columns[column]
        written = f"{SCORED_TABLE}.{self.dialect.identifier(known.name)}"
        return self.stages.read("x", self._check_type(written, column, known, reading))

    def _check_type(self, cell: str, column: int, known: Column, reading: Reading) -> str:
        """Return a cell in the required type; a column with another type raises an error that names it."""
        cases, wrong = [], self._is_wrong(cell, known)
        if reading == "text" and (flags := self._flags(column)) is not None:
            yes, no = map(self.dialect.literal, flags)
            words = f"CASE CAST({cell} AS {self.dialect.text}) WHEN 'true' THEN {yes} WHEN 'false' THEN {no} END"
            cases.append(f"WHEN {self.dialect.is_of(cell, 'flag')} THEN {words}")
        if wrong:
            name = known.name.replace("\0", "\ufffd")
            message = f"deciban: column {name!r}: expected {EXPECTED[known.read_as]}, found another type or cell"
            kind = {"number": self.dialect.double, "text": self.dialect.text}.get(reading, self.dialect.integer)
            cases.append(f"WHEN {cell} IS NOT NULL AND {wrong} THEN {self.dialect.fail(message, cell, kind)}")
        plain = self._plain(cell, known.read_as, reading)
        return f"CASE {' '.join(cases)} ELSE\n{plain} END" if cases else plain

    def _is_wrong(self, cell: str, known: Column) -> str:
        """Return a condition for cells that can be cast but are not of the expected type.

        Empty if it is not needed: other casts fail and name the column.
        """
        if known.read_as == "text":
            return self.dialect.is_of(cell, "flag", "number", "date", "time")
        if known.read_as in ("date", "time"):
            return self.dialect.is_of(cell, "time" if known.read_as == "date" else "date")
        return self.dialect.is_not_number(cell, known.read_as == "flag")

    def _plain(self, cell: str, read_as: ReadAs, reading: Reading) -> str:
        """Return a cell of the expected type; NULL if it is missing or NaN."""
        if reading == "text":
            return f"CAST({cell} AS {self.dialect.text})"
        if reading == "integer":
            return f"CAST({cell} AS {self.dialect.integer})"
        if read_as == "date":
            micros = self.dialect.microseconds(cell)
            return micros if reading == "micros" else self.dialect.days(micros)
        if read_as == "time":
            micros = self.dialect.time_microseconds(cell)
            return micros if reading == "micros" else self.dialect.seconds(micros)
        return self.dialect.not_nan(self.dialect.flag(cell) if read_as == "flag" else self.dialect.as_double(cell))

    def _flags(self, column: int) -> tuple[str, str] | None:
        """Return the levels of a text column that mean true and false; None unless there is exactly one pair."""
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
        """Return a cell as a double."""
        return self.cell(column, "number")

    def limit_size(self, column: int, limit: float) -> str:
        """Return a number to be squared if its absolute value is at most `limit`, else NULL."""
        return self.stages.name("x", self.dialect.within(self.number(column), limit))

    def log(self, column: int) -> str:
        """Return the logarithm of a number; NULL if it is not positive."""
        number = self.number(column)
        return self.stages.name("x", f"CASE WHEN {number} > {self.dialect.number(0.0)} THEN ln({number}) END")

    def place(self, place: Place) -> str:
        """Return the place of a row as an array index."""
        if isinstance(place, TuplePlace):
            members = zip(place.factors, map(self.place, place.members), strict=True)
            digits = " + ".join(f"{factor} * ({member} - {self.first})" for factor, member in members)
            return self.stages.name("p", f"{self.first} + {digits}")
        if isinstance(place, CutPlace):
            number = self.number(place.column)
            found = self.dialect.cuts_below(number, place.cuts, self.first + 1)
            return self.stages.name("p", f"CASE WHEN {number} IS NULL THEN {self.first} ELSE {found} END")
        return self._level(place)

    def _level(self, place: LevelPlace) -> str:
        cell = self._cell_of(place)
        missing, other = self.first + MISSING_PLACE, self.first + (MISSING_PLACE if place.merged else OTHER_PLACE)
        first = self.first + place.first
        if len(place.levels) > MAX_CASES:
            joined = self.stages.join_array("p", cell, self._array(place), first, len(place.levels))
            found = f"COALESCE({joined}, {other})"
        else:
            known = [f"WHEN {self._literal(level)} THEN {first + k}" for k, level in enumerate(place.levels)]
            found = f"CASE {cell} {' '.join(known)} ELSE {other} END" if known else str(other)
        return self.stages.name("p", f"CASE WHEN {cell} IS NULL THEN {missing} ELSE {found} END")

    def _cell_of(self, place: LevelPlace) -> str:
        """Return the cell, or the part of a cell, that has a place among levels."""
        if place.part is None:
            return self.cell(place.column, READINGS[place.kind])
        cell = self.cell(place.column, "text" if place.kind == "text" else "micros")
        return self.stages.name("x", self.dialect.part(cell, place.part))

    def _literal(self, level: str | float) -> str:
        return "NULL" if self._cannot_be(level) else self.dialect.value(level)

    def _array(self, place: LevelPlace) -> str:
        levels: list[Any] = [None if self._cannot_be(level) else level for level in place.levels]
        if place.kind == "text":
            return self.dialect.texts(levels)
        return self.dialect.doubles(levels) if place.kind == "number" else self.dialect.integers(levels)

    def _cannot_be(self, level: str | float) -> bool:
        """Return True if the engine cannot represent a level, so that no cell contains it."""
        return isinstance(level, str) and "\0" in level and not self.dialect.nul

    def reject_conditions(self, refusals: Sequence[Refusal]) -> list[str]:
        """Return the conditions under which a row is rejected, with one condition for all infinite numbers."""
        endless = [one.place.column for one in refusals if one == reject_infinite(one.place.column)]
        others = [one for one in refusals if one != reject_infinite(one.place.column)]
        sizes = [f"abs({self.number(column)})" for column in endless]
        largest = f"GREATEST({', '.join(sizes)})" if len(sizes) > 1 else "".join(sizes)
        found = [f"{largest} = {self.dialect.number(math.inf)}"] if sizes else []
        return [*found, *map(self._is_rejected, others)]

    def _is_rejected(self, refusal: Refusal) -> str:
        """Return a condition for rows with one of the rejected places."""
        place = refusal.place
        if isinstance(place, LevelPlace):
            wanted = ", ".join(str(self.first + number) for number in refusal.places)
            return f"{self.place(place)} IN ({wanted})"
        number = self.number(place.column)
        return " OR ".join(self._lies_at(number, place, some) for some in refusal.places)

    def _lies_at(self, number: str, place: CutPlace, wanted: int) -> str:
        """Return a condition for numbers at one of the given places."""
        bounds = []
        if wanted > 1:
            bounds.append(f"{number} >= {self.dialect.number(place.cuts[wanted - 2])}")
        if wanted <= len(place.cuts):
            bounds.append(f"{number} < {self.dialect.number(place.cuts[wanted - 1])}")
        return f"({' AND '.join(bounds)})"


def _texts_of(place: LevelPlace | CutPlace) -> tuple[str, ...]:
    """Return the text levels of a place."""
    if not isinstance(place, LevelPlace) or place.part is not None:
        return ()
    return tuple(level for level in place.levels if isinstance(level, str))
