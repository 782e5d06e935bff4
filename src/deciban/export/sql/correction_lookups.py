"""Correction tables as SQL lookups: the answers of the columns are the digits of the array index."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from deciban.export.ir import CorrectionTables
from deciban.export.sql.cells import Cells, total
from deciban.model.corrections import AveragedTable
from deciban.util.arrays import Floats, Integers

# Binary digits of an integer that holds the indices of several tables; a BIGINT has 63.
WORD_DIGITS = 62

# Tables are merged while the result has at most this many values per class: fewer lookups are faster.
MAX_MERGED_VALUES = 128

# Cuts of each used column, by its index: the last places below them.
Cuts = dict[int, tuple[int, ...]]


@dataclass(frozen=True, eq=False)
class Answered:
    """Columns with their cuts, and the value of each combination of answers.

    Values are by part, then by the answer of each column as in `AveragedTable`, then by class. A part is the whole
    correction, or the share of a column.
    """

    cuts: Cuts
    parts: dict[int, Floats]

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of answers of each column."""
        return _shape(self.cuts)

    @property
    def digits(self) -> int:
        """Binary digits of the index of a combination."""
        return max(prod(self.shape) - 1, 1).bit_length()

    def add(self, table: AveragedTable, parts: dict[int, Floats]) -> None:
        """Add the parts of a table that asks some of the questions."""
        own = dict(zip(table.columns, table.cuts, strict=True))
        answers = [_answers_among(cuts, own[column]) for column, cuts in self.cuts.items() if column in own]
        order = [table.columns.index(column) for column in self.cuts if column in own]
        shape = tuple(len(cuts) + 2 if column in own else 1 for column, cuts in self.cuts.items())
        for part, values in parts.items():
            found = np.transpose(values, (*order, len(order)))
            found = found[np.ix_(*answers, np.arange(values.shape[-1]))].reshape(*shape, -1)
            before = self.parts.get(part, np.zeros((*self.shape, values.shape[-1])))
            self.parts[part] = before + found


def _shape(cuts: Cuts) -> tuple[int, ...]:
    return tuple(len(some) + 2 for some in cuts.values())


def _answers_among(cuts: Sequence[int], own: Sequence[int]) -> Integers:
    """Return for each answer to some cuts the answer to those of one table; the first is unknown."""
    beyond = np.cumsum([0, *(int(cut in own) for cut in cuts)])
    return np.concatenate([[0], 1 + beyond])


def merge_tables(tables: Sequence[AveragedTable], parts: Sequence[dict[int, Floats]]) -> list[Answered]:
    """Return the tables, with those that use almost the same cuts merged into one."""
    found: list[tuple[Cuts, list[int]]] = []
    for t in sorted(range(len(tables)), key=lambda t: -tables[t].values.size):
        own = dict(zip(tables[t].columns, tables[t].cuts, strict=True))
        joined = ((one, _union(one[0], own)) for one in found)
        fitting = [
            (one, both) for one, both in joined if prod(_shape(both)) <= max(MAX_MERGED_VALUES, prod(_shape(one[0])))
        ]
        if fitting:
            (cuts, numbers), both = min(fitting, key=lambda pair: prod(_shape(pair[1])) / prod(_shape(pair[0][0])))
            cuts.update(both)
            numbers.append(t)
        else:
            found.append((own, [t]))
    answered = []
    for cuts, numbers in found:
        together = Answered(dict(sorted(cuts.items())), {})
        for t in numbers:
            together.add(tables[t], parts[t])
        answered.append(together)
    return answered


def _union(one: Cuts, other: Cuts) -> Cuts:
    return {c: tuple(sorted({*one.get(c, ()), *other.get(c, ())})) for c in (*one, *(c for c in other if c not in one))}


def add_corrections(
    cells: Cells, tables: CorrectionTables, parts: Sequence[dict[int, Floats]], enough: str | None
) -> dict[int, list[list[str]]]:
    """Return for each part and class the lookups that sum to its correction.

    parts: the values of each table. enough: condition under which missing cells of informative columns are evidence;
    None if there are no such columns.
    """
    classes = tables.tables[0].values.shape[-1]
    lookups: dict[int, list[list[str]]] = {}
    for some in words_of(merge_tables(tables.tables, parts)):
        for table, index in zip(some, _indexes(cells, tables, some, enough), strict=True):
            for part, values in table.parts.items():
                flat = values.reshape(-1, classes)
                relative = (flat - flat[:, :1]).round(15)  # enough digits for a sum of a thousand
                for c, column in enumerate(relative.T):
                    if column.any():
                        element = f"({cells.dialect.doubles(column.tolist())})[{index}]"
                        lookups.setdefault(part, [[] for _ in range(classes)])[c].append(element)
    return lookups


def words_of(answered: Sequence[Answered]) -> list[list[Answered]]:
    """Return groups of tables that use the same columns and whose indices fit into one integer."""
    left, words = list(answered), []
    while left:
        word: list[Answered] = []
        while (table := _find_fitting_table(left, word)) is not None:
            left.remove(table)
            word.append(table)
        words.append(word)
    return words


def _find_fitting_table(left: Sequence[Answered], word: Sequence[Answered]) -> Answered | None:
    """Return the remaining table with the fewest additional columns; None if no table fits into the integer."""
    room = WORD_DIGITS - sum(table.digits for table in word)
    columns = frozenset[int]().union(*(table.cuts for table in word))
    fits = [table for table in left if table.digits <= room]
    return min(fits, key=lambda table: len(table.cuts.keys() - columns), default=None)


def _indexes(cells: Cells, tables: CorrectionTables, word: Sequence[Answered], enough: str | None) -> list[str]:
    """Return the positions of a row's values in the arrays of some tables.

    Each place of a column gives its answers to all tables at once, added up to one number. The last place is that of a
    missing cell that is evidence.
    """
    sizes = [table.digits for table in word]
    shifts = [sum(sizes[:k]) for k in range(len(word))]
    columns = sorted(frozenset[int]().union(*(table.cuts for table in word)))
    answers = {column: np.zeros(tables.places[column].size + 1, dtype=np.int64) for column in columns}
    for table, shift in zip(word, shifts, strict=True):
        factor = prod(table.shape)
        for column, cuts in table.cuts.items():
            factor //= len(cuts) + 2
            places = np.append(np.arange(tables.places[column].size), 0)
            answer = 1 + np.searchsorted(cuts, places, side="left")
            answer[0] = 0 if cells.model.partial is not None else answer[0]
            answers[column] += (factor * answer) << shift
    parts = [
        f"({cells.dialect.integers(numbers.tolist())})[{_place(cells, tables, column, enough)}]"
        for column, numbers in answers.items()
    ]
    name = cells.stages.name("a", total(parts))
    digits = (cells.dialect.digits(name, shift, (1 << size) - 1) for shift, size in zip(shifts, sizes, strict=True))
    return [f"{cells.first} + {one}" for one in digits]


def _place(cells: Cells, tables: CorrectionTables, column: int, enough: str | None) -> str:
    """Return the place of a cell in a corrected column; the last place is a missing cell that is evidence."""
    place = cells.place(tables.places[column])
    partial = cells.model.partial
    if enough is None or partial is None or tables.places[column].column not in partial.informative:
        return place
    evident = f"{place} = {cells.first} AND {enough}"
    return cells.stages.name(
        "p", f"CASE WHEN {evident} THEN {cells.first + tables.places[column].size} ELSE {place} END"
    )
