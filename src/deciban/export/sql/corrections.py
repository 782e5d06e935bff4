"""Tables of corrections: each is looked up by the answers to its questions, which are the binary digits of a cell."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deciban.arrays import Floats, Integers
from deciban.export.sql.cells import Cells
from deciban.export.terms import CorrectionTables, CutPlace

# Indexes that are worked out together.
INDEXES_AT_A_TIME = 16

# Questions of one table at most: with each its cells are twice as many.
ASKED_TOGETHER = 6

# A question: the number of a place, and the last one beyond which a row may be.
Question = tuple[int, int]


@dataclass
class Answered:
    """Questions, and what each combination of answers is worth: by part, then cell by class.

    The first question is the highest digit. A part is the whole correction, or what a column has of it.
    """

    questions: tuple[Question, ...]
    parts: dict[int, Floats]

    def add(self, questions: Sequence[Question], parts: dict[int, Floats]) -> None:
        """Add a table that asks some of these questions."""
        cells = self._cells_of(questions)
        for part, values in parts.items():
            before = self.parts.get(part)
            self.parts[part] = values[cells] if before is None else before + values[cells]

    def _cells_of(self, questions: Sequence[Question]) -> Integers:
        """For each cell here, that of a table with these questions."""
        size = len(self.questions)
        cells, found = np.arange(1 << size), np.zeros(1 << size, dtype=np.int64)
        for question in questions:
            digit = size - 1 - self.questions.index(question)
            found = 2 * found + ((cells >> digit) & 1)
        return found


def answered_tables(tests: Integers, parts: Sequence[dict[int, Floats]]) -> list[Answered]:
    """All tables, of which those that ask almost the same are one: it takes fewer lookups."""
    asked = [[(int(place), int(last)) for place, last in table if place >= 0] for table in tests]
    homes: list[tuple[set[Question], list[int]]] = []
    for t in sorted(range(len(asked)), key=lambda t: -len(set(asked[t]))):
        wanted = set(asked[t])
        together = [(len(wanted | own), own, tables) for own, tables in homes if len(wanted | own) <= ASKED_TOGETHER]
        _, own, tables = min(together, key=lambda one: one[0] - len(one[1]), default=(0, wanted, []))
        own |= wanted
        tables.append(t)
        if len(tables) == 1:
            homes.append((own, tables))
    found = []
    for questions, tables in homes:
        table = Answered(tuple(sorted(questions)), {})
        for t in tables:
            table.add(asked[t], parts[t])
        found.append(table)
    return found


def add_corrections(
    cells: Cells, tables: CorrectionTables, parts: Sequence[dict[int, Floats]]
) -> dict[int, list[list[str]]]:
    """For each part and class the lookups that add up to its correction; `parts` has the values of each table."""
    classes = tables.values.shape[2]
    lookups: dict[int, list[list[str]]] = {}
    answered = answered_tables(tables.tests, parts)
    indexes = [_index(cells, tables, table.questions) for table in answered]
    if classes > 2 or any(len(table.parts) > 1 for table in answered):  # they are needed more than once
        starts = range(0, len(indexes), INDEXES_AT_A_TIME)
        pieces = (indexes[start : start + INDEXES_AT_A_TIME] for start in starts)
        indexes = [name for some in pieces for name in cells.stages.names("i", some)]
    for table, index in zip(answered, indexes, strict=True):
        for part, values in table.parts.items():
            relative = (values - values[:, :1]).round(15)  # what is less does not matter in the sum of a thousand
            for c, column in enumerate(relative.T):
                if column.any():
                    element = f"({cells.dialect.doubles(column.tolist())})[{index}]"
                    lookups.setdefault(part, [[] for _ in range(classes)])[c].append(element)
    return lookups


def _index(cells: Cells, tables: CorrectionTables, questions: Sequence[Question]) -> str:
    """Where the cell of a row stands in an array."""
    digits = {question: 1 << (len(questions) - 1 - k) for k, question in enumerate(questions)}
    if cells.engine.stages_answers:
        answers = (f"({_answer(cells, tables, *one)} & {digit})" for one, digit in digits.items())
        return f"{cells.first} + ({' | '.join(answers)})"
    parts = [str(cells.first)]
    for place in dict.fromkeys(place for place, _ in questions):
        lasts = sorted(last for other, last in questions if other == place)
        steps = [
            f"WHEN {_is_beyond(cells, tables, place, last)} THEN {sum(digits[place, one] for one in lasts[: k + 1])}"
            for k, last in enumerate(lasts)
        ]
        parts.append(f"CASE {' '.join(reversed(steps))} ELSE 0 END")
    return " + ".join(parts)


def _answer(cells: Cells, tables: CorrectionTables, place: int, last: int) -> str:
    """The answer to a question, all binary digits of which are 1 or 0."""
    return cells.stages.name("a", f"-CAST({_is_beyond(cells, tables, place, last)} AS SMALLINT)")


def _is_beyond(cells: Cells, tables: CorrectionTables, place: int, last: int) -> str:
    """Whether the place of a row is beyond a last one; that of a missing number never is."""
    known = tables.places[place]
    if not isinstance(known, CutPlace):
        return f"{cells.place(known)} > {cells.first + last}"
    number = cells.number(known.column)
    if not last:
        return f"{number} IS NOT NULL"
    there = cells.stages.name("y", f"COALESCE({number}, {cells.dialect.number(-np.inf)})")
    return f"{there} >= {cells.dialect.number(known.cuts[last - 1])}"
