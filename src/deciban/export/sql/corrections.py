"""Tables of corrections: each is looked up by the answers to its questions, which are the binary digits of a cell."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from deciban.arrays import Floats, Integers
from deciban.export.sql.cells import Cells
from deciban.export.sql.stages import total
from deciban.export.terms import CorrectionTables

# Binary digits of a whole number that holds answers.
WORD_DIGITS = 62

# Questions of one table at most: with each its cells are twice as many.
ASKED_TOGETHER = 6

# A question: the number of a place, and the last one beyond which a row may be.
Question = tuple[int, int]


@dataclass(frozen=True, eq=False)
class Answered:
    """Questions, and what each combination of answers is worth: by part, then cell by class.

    The first question is the highest digit. A part is the whole correction, or what a column has of it.
    """

    questions: tuple[Question, ...]
    parts: dict[int, Floats]

    @cached_property
    def columns(self) -> frozenset[int]:
        """The numbers of the places that are asked for."""
        return frozenset(place for place, _ in self.questions)

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
    found = []
    for questions, tables in _asking_alike([set(questions) for questions in asked]):
        together = Answered(tuple(sorted(questions)), {})
        for t in tables:
            together.add(asked[t], parts[t])
        found.append(together)
    return found


def _asking_alike(asked: Sequence[set[Question]]) -> list[tuple[set[Question], list[int]]]:
    """(questions, numbers of tables): tables that ask no more than so many questions together."""
    found: list[tuple[set[Question], list[int]]] = []
    for t in sorted(range(len(asked)), key=lambda t: -len(asked[t])):
        fitting = [one for one in found if len(one[0] | asked[t]) <= ASKED_TOGETHER]
        if fitting:
            questions, tables = min(fitting, key=lambda one: len(asked[t] - one[0]))
            questions |= asked[t]
            tables.append(t)
        else:
            found.append((set(asked[t]), [t]))
    return found


def add_corrections(
    cells: Cells, tables: CorrectionTables, parts: Sequence[dict[int, Floats]]
) -> dict[int, list[list[str]]]:
    """For each part and class the lookups that add up to its correction; `parts` has the values of each table."""
    classes = tables.values.shape[2]
    lookups: dict[int, list[list[str]]] = {}
    for some in words_of(answered_tables(tables.tests, parts)):
        for table, index in zip(some, _indexes(cells, tables, some), strict=True):
            for part, values in table.parts.items():
                relative = (values - values[:, :1]).round(15)  # what is less does not matter in the sum of a thousand
                for c, column in enumerate(relative.T):
                    if column.any():
                        element = f"({cells.dialect.doubles(column.tolist())})[{index}]"
                        lookups.setdefault(part, [[] for _ in range(classes)])[c].append(element)
    return lookups


def words_of(answered: Sequence[Answered]) -> list[list[Answered]]:
    """Tables whose cells are the digits of one whole number: such as ask about the same columns."""
    left, words = list(answered), []
    while left:
        word: list[Answered] = []
        while (table := _fitting(left, word)) is not None:
            left.remove(table)
            word.append(table)
        words.append(word)
    return words


def _fitting(left: Sequence[Answered], word: Sequence[Answered]) -> Answered | None:
    """Of the tables that are left the one that asks about the fewest columns beyond those of a word; None where no
    digits are left for it."""
    room = WORD_DIGITS - sum(len(table.questions) for table in word)
    columns = frozenset[int]().union(*(table.columns for table in word))
    fits = [table for table in left if len(table.questions) <= room]
    return min(fits, key=lambda table: len(table.columns - columns), default=None)


def _indexes(cells: Cells, tables: CorrectionTables, word: Sequence[Answered]) -> list[str]:
    """Where the cells of a row stand in the arrays of some tables.

    Each place of a column answers all their questions about it at once: the answers are added up to one number.
    """
    sizes = [len(table.questions) for table in word]
    shifts = [sum(sizes[:k]) for k in range(len(word))]
    columns = sorted(frozenset[int]().union(*(table.columns for table in word)))
    answers = {place: np.zeros(tables.places[place].size, dtype=np.int64) for place in columns}
    for table, shift in zip(word, shifts, strict=True):
        for digit, (place, last) in enumerate(reversed(table.questions), shift):
            answers[place][last + 1 :] += 1 << digit
    parts = [
        f"({cells.dialect.integers(numbers.tolist())})[{cells.place(tables.places[place])}]"
        for place, numbers in answers.items()
    ]
    name = cells.stages.name("a", total(parts))
    digits = (cells.engine.digits(name, shift, (1 << size) - 1) for shift, size in zip(shifts, sizes, strict=True))
    return [f"{cells.first} + {one}" for one in digits]
