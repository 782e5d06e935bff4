"""Correction tables as SQL lookups: the answers of the columns are the digits of the array index.

`sum_corrections` adds up whole tables, as integers. Rows with unknown columns then get the difference between the mean
over these columns and the cell that was added. `add_shares` looks up the shares of columns, for explanations.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeVar

import numpy as np

from deciban.export.ir import CorrectionTables
from deciban.export.sql.cells import Cells, total
from deciban.model.corrections import CELL_PRIOR_WEIGHT, AveragedTable
from deciban.sources.dialects import PostgresDialect, SparkDialect
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

    Values are by part, then by the answer of each column as in `AveragedTable`, then by class. A part is the share of a
    column.
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


def add_shares(cells: Cells, tables: CorrectionTables, enough: str | None) -> dict[int, list[list[str]]]:
    """Return for each corrected column and class the lookups that sum to its share.

    enough: condition under which missing cells of informative columns are evidence; None if there are no such columns.
    """
    classes, parts = tables.tables[0].values.shape[-1], [table.shares() for table in tables.tables]
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


# Tables that share a word.
Packed = TypeVar("Packed", "Answered", "Digits")


@dataclass(frozen=True, eq=False)
class Digits:
    """A correction table: its number, the cuts of each column, and the binary digits of its cells."""

    number: int
    cuts: Cuts
    digits: int


def sum_corrections(cells: Cells, tables: CorrectionTables, enough: str | None) -> list[str | None]:
    """Return the sum of all tables for each class, relative to the first one; None if nothing is added.

    enough: condition under which missing cells of informative columns are evidence; None if there are no such columns.
    """
    tests, contrasts = tables.corrections.tests, tables.contrasts
    depth = int(tables.corrections.questions.max())
    if not depth:
        return [None, *(f"{cells.dialect.number(tables.unit * value)}" for value in contrasts[:, 0].sum(axis=0))]
    per_word = WORD_DIGITS // depth
    asked: list[Cuts] = [dict.fromkeys(table[table[:, 0] >= 0, 0].tolist(), ()) for table in tests]
    words = words_of([Digits(t, cuts, depth) for t, cuts in enumerate(asked)])
    order = [table.number for word in words for table in word]
    tests, contrasts, rows = tests[order], contrasts[order], tables.corrections.rows[order]
    columns = sorted({column for cuts in asked for column in cuts})
    places = {column: _place(cells, tables, column, enough) for column in columns}
    bits, free = _answers(tests, tables, columns, per_word, depth)
    packed = _words(cells, places, bits)
    partial = None
    if cells.model.partial is not None:
        known = (f"{place} <> {cells.first}" for place in places.values())
        complete = cells.stages.name("h", " AND ".join(known))
        partial = PartialTables(cells, complete, _free_words(cells, places, free, complete), packed, per_word, depth)
    found: list[str | None] = [None]
    full = (1 << (tests[:, :, 0] >= 0).sum(axis=1)) - 1
    for c in range(contrasts.shape[2]):
        lookups = []
        for t, values in enumerate(contrasts[:, :, c]):
            index = cells.dialect.digits(packed[t // per_word], depth * (t % per_word), (1 << depth) - 1)
            used = values[: full[t] + 1].tolist()
            lookups.append(f"({cells.dialect.small_integers(used)})[{cells.first} + {index}]")
        whole = cells.stages.sum("k", lookups)
        if partial is not None:
            whole = f"({whole} + {partial.adjust(contrasts[:, :, c], rows, full)})"
        found.append(f"{cells.dialect.number(tables.unit)} * {whole}")
    return found


def _answers(
    tests: Integers, tables: CorrectionTables, columns: Sequence[int], per_word: int, depth: int
) -> tuple[dict[int, Integers], dict[int, Integers]]:
    """Return for each column the digits of its answers, place by word, and the digits that it determines, by word.

    The last place is that of a missing cell that is evidence: it exceeds no cut.
    """
    size = -(-len(tests) // per_word)
    bits = {column: np.zeros((tables.places[column].size + 1, size), dtype=np.int64) for column in columns}
    free = {column: np.zeros(size, dtype=np.int64) for column in columns}
    for t, asked in enumerate(tests):
        used = asked[asked[:, 0] >= 0].tolist()
        for k, (column, cut) in enumerate(used):
            digit = 1 << (depth * (t % per_word) + len(used) - 1 - k)
            bits[column][1 + max(cut, 0) : -1, t // per_word] += digit
            bits[column][0, t // per_word] += digit if cut < 0 else 0
            bits[column][-1, t // per_word] += digit if cut < 0 else 0
            free[column][t // per_word] += digit
    return bits, free


def _words(cells: Cells, places: dict[int, str], bits: dict[int, Integers]) -> list[str]:
    """Return the names of the words with the digits of all tables for a row."""
    words = []
    for w in range(len(next(iter(bits.values()))[0])):
        used = {column: numbers[:, w] for column, numbers in bits.items() if numbers[:, w].any()}
        parts = [f"({cells.dialect.integers(some.tolist())})[{places[column]}]" for column, some in used.items()]
        words.append(cells.stages.name("a", total(parts or ["0"])))
    return words


def _nested(rows: Sequence[Sequence[int]]) -> str:
    """Return a list of lists in DuckDB."""
    listed = (f"[{','.join(map(str, row))}]" for row in rows)
    return f"CAST('[{','.join(listed)}]' AS INTEGER[][])"


def _sum_lists(lists: Sequence[str]) -> str:
    """Return the sum of lists of equal length, element by element, in DuckDB: a few names instead of thousands."""
    return f"[{total([f'x[{k + 1}]' for k in range(len(lists))])} FOR x IN list_zip({', '.join(lists)})]"


def _free_words(cells: Cells, places: dict[int, str], free: dict[int, Integers], complete: str) -> str:
    """Return an array of words with the digits that unknown columns determine; NULL for complete rows."""
    unknown = {column: f"{place} = {cells.first}" for column, place in places.items()}
    if isinstance(cells.dialect, PostgresDialect | SparkDialect):
        each = [
            total([f"CASE WHEN {unknown[c]} THEN {bits[w]} ELSE 0 END" for c, bits in free.items() if bits[w]] or ["0"])
            for w in range(len(next(iter(free.values()))))
        ]
        listed = ", ".join(f"CAST({one} AS {cells.dialect.integer})" for one in each)
        array = f"array({listed})" if isinstance(cells.dialect, SparkDialect) else f"ARRAY[{listed}]"
    else:
        lists = [
            f"CASE WHEN {unknown[column]} THEN {cells.dialect.integers(bits.tolist())} "
            f"ELSE {cells.dialect.integers([0] * bits.size)} END"
            for column, bits in free.items()
        ]
        array = _sum_lists(lists)
    return cells.stages.name("a", f"CASE WHEN {complete} THEN NULL ELSE {array} END")


@dataclass(frozen=True)
class PartialTables:
    """Means of tables over unknown columns, in one expression that complete rows skip.

    complete: condition. free: array of words with the digits of unknown columns. words: those of the answers. per_word:
    tables per word. depth: digits per table.
    """

    cells: Cells
    complete: str
    free: str
    words: Sequence[str]
    per_word: int
    depth: int

    def adjust(self, values: Integers, rows: Floats, full: Integers) -> str:
        """Return the sum over tables with unknown columns of the mean less the value that was added; else 0.

        values: table by cell, as units. full: for each table, the digits of all its questions; if all are unknown, the
        mean is 0.
        """
        dialect = self.cells.dialect
        v, w = dialect.small_integers(values.ravel().tolist()), dialect.doubles(rows.ravel().tolist())
        if (rows == np.rint(rows)).all() and rows.max() < 1 << 31:
            w = dialect.small_integers(rows.ravel().astype(np.int64).tolist())
        e, prior = dialect.small_integers(full.tolist()), dialect.number(CELL_PRIOR_WEIGHT)
        write = {"PostgreSQL": self._in_postgres, "Spark": self._in_spark}.get(dialect.name, self._in_duckdb)
        return self.cells.stages.name("k", write(v, w, e, prior, values.shape))

    def _in_duckdb(self, v: str, w: str, e: str, prior: str, shape: tuple[int, ...]) -> str:
        tables, cells = shape
        mask = (1 << self.depth) - 1
        digits = f"[1 + t // {self.per_word}] >> ({self.depth} * (t % {self.per_word}))) & {mask}"
        words = self.cells.stages.name("a", f"CASE WHEN {self.complete} THEN NULL ELSE [{', '.join(self.words)}] END")
        marked = self.cells.stages.name(
            "d",
            f"CASE WHEN {self.complete} THEN NULL ELSE [{{'c': {cells} * t + 1 + (({words}{digits}), "
            f"'f': ({self.free}{digits}, 'e': ({e})[t + 1]}} FOR t IN range({tables}) "
            f"IF (({self.free}{digits}) <> 0] END",
        )
        subsets = [[s for s in range(f + 1) if s & f == s] for f in range(1 << self.depth)]
        each = f"{{'w': ({w})[d.c + s] + {prior}, 'v': ({v})[d.c + s]}} FOR s IN ({_nested(subsets)})[d.f + 1]"
        free = self.cells.stages.name("d", f"[{{'none': d.f = d.e, 'cells': [{each}]}} FOR d IN {marked}]")
        mean = "list_sum([x.w * x.v FOR x IN d.cells]) / list_sum([x.w FOR x IN d.cells])"
        return f"COALESCE(list_sum([CASE WHEN d.none THEN 0 ELSE {mean} END - d.cells[1].v FOR d IN {free}]), 0)"

    def _in_postgres(self, v: str, w: str, e: str, prior: str, shape: tuple[int, ...]) -> str:
        tables, cells = shape
        digits = f"[1 + t / {self.per_word}] >> ({self.depth} * (t % {self.per_word}))) & {(1 << self.depth) - 1}"
        words = self.cells.stages.name(
            "a", f"CASE WHEN {self.complete} THEN NULL ELSE ARRAY[{', '.join(self.words)}] END"
        )
        marked = (
            f"SELECT {cells} * t + 1 + CAST(({words}{digits} AS integer) AS c, CAST(({self.free}{digits} AS integer) "
            f"AS f, ({e})[t + 1] AS e FROM generate_series(0, {tables - 1}) AS t"
        )
        each = (
            f"SELECT s, ({w})[d.c + s] + {prior} AS w, ({v})[d.c + s] AS v FROM generate_series(0, d.f) AS s "
            f"WHERE (s & d.f) = s"
        )
        zero = self.cells.dialect.number(0.0)
        mean = f"CASE WHEN d.f = d.e THEN {zero} ELSE sum(x.w * x.v) / sum(x.w) END - sum(x.v) FILTER (WHERE x.s = 0)"
        found = (
            f"SELECT COALESCE(sum(m.difference), {zero}) FROM ({marked}) AS d, "
            f"LATERAL (SELECT {mean} AS difference FROM ({each}) AS x) AS m WHERE d.f <> 0"
        )
        return f"CASE WHEN {self.complete} THEN {zero} ELSE ({found}) END"

    def _in_spark(self, v: str, w: str, e: str, prior: str, shape: tuple[int, ...]) -> str:
        tables, cells = shape
        digits = f"[t div {self.per_word}], {self.depth} * (t % {self.per_word})) & {(1 << self.depth) - 1}"
        words = self.cells.stages.name(
            "a", f"CASE WHEN {self.complete} THEN NULL ELSE array({', '.join(self.words)}) END"
        )
        first = f"CAST({cells} * t + (shiftright({words}{digits}) AS INT)"
        free = f"CAST(shiftright({self.free}{digits} AS INT)"
        listed = f"filter(sequence(0, {tables - 1}), t -> {free} <> 0)"
        marked = f"transform({listed}, t -> struct({first} AS c, {free} AS f, ({e})[t] AS e))"
        weight = f"(({w})[d.c + s] + {prior})"
        some, zero = "filter(sequence(0, d.f), s -> (s & d.f) = s)", self.cells.dialect.number(0.0)
        sums = [f"aggregate({some}, {zero}, (y, s) -> y + {one})" for one in (f"{weight} * ({v})[d.c + s]", weight)]
        each = f"CASE WHEN d.f = d.e THEN {zero} ELSE {sums[0]} / {sums[1]} END - ({v})[d.c]"
        return f"CASE WHEN {self.complete} THEN {zero} ELSE aggregate({marked}, {zero}, (z, d) -> z + {each}) END"


def words_of(answered: Sequence[Packed]) -> list[list[Packed]]:
    """Return groups of tables that use the same columns and whose indices fit into one integer."""
    left, words = list(answered), []
    while left:
        word: list[Packed] = []
        while (table := _find_fitting_table(left, word)) is not None:
            left.remove(table)
            word.append(table)
        words.append(word)
    return words


def _find_fitting_table(left: Sequence[Packed], word: Sequence[Packed]) -> Packed | None:
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
