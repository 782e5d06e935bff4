"""A model as one SELECT statement, which scores a table where it is.

`to_sql` adds up the evidence of each class (`Sums`), scaled by how much of a row is known (`KnownCells`), and selects
the class, its probability and an explanation (`Answers`).
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np

from deciban.errors import Argument, UsageError
from deciban.export.ir import CorrectionTables, TermModel
from deciban.export.lower import fold_model
from deciban.export.sql.cells import EXPECTED, SCORED_TABLE, Cells, Reading, Stages, total
from deciban.export.sql.correction_lookups import add_corrections
from deciban.export.sql.shares import block_shares
from deciban.export.sql.terms import block_evidence, fail_at_holes, may_miss
from deciban.families.base.lowering import JointNormalTerm, LevelPlace
from deciban.model.fitted import Fitted
from deciban.model.model import Model
from deciban.sources.dialects import Dialect, dialect_of
from deciban.tables.labels import LabelArray
from deciban.util.text_tables import DECIBANS, evidence_column, format_class
from deciban.util.version import __version__

# The part of a correction that is all of it.
WHOLE = -1


def to_sql(
    fitted: Fitted | Model,
    table: str,
    dialect: str = "duckdb",
    explain: bool = False,
    keep: Sequence[str] | None = None,
) -> str:
    """A model as one SELECT statement, which scores a table in the database where it is.

    Parameters
    ----------
    fitted : Fitted or Model
        The fitted state, or its model.
    table : str
        The name of the table; dots part the schema from it. It has the columns that the model reads.
    dialect : {"duckdb", "postgres", "spark"}, default="duckdb"
        The engine that runs the statement.
    explain : bool, default=False
        Add, in decibans, the evidence of each column for the predicted class against the next best.
    keep : sequence of str, default=None
        The columns of the table that are passed on. None: all.

    Returns
    -------
    str
        The statement. It answers the columns that are kept, `predicted` and `P(class)` of each class; with `explain`
        also `against`, `decibans`, `decibans of prior` and `decibans of` each column.

    Raises
    ------
    UsageError
        If SQL cannot score a column; it is named.

    See Also
    --------
    deciban.export.lower.fold_model : The terms that it is made of.

    Examples
    --------
    >>> import duckdb
    >>> from deciban import BayesClassifier
    >>> from deciban.datasets import weather
    >>> days = weather()
    >>> statement = to_sql(BayesClassifier(tune=None).fit(days, "play").model_, "days", explain=True, keep=[])
    >>> duckdb.sql(statement).columns[:6]
    ['predicted', 'P(no)', 'P(yes)', 'against', 'decibans', 'decibans of prior']
    """
    write = dialect_of(dialect)
    if isinstance(keep, str):
        raise UsageError("give the names of the columns in a list", parameter=Argument("keep", keep))
    model = fitted.model if isinstance(fitted, Fitted) else fitted
    terms = fold_model(fitted)
    cells = Cells(terms, Stages(write))
    kept = _kept(cells, keep)
    sums = Sums(cells, model, terms, explain)
    answers = Answers(cells, terms, sums.joint(), _rejected(cells, terms))
    named = [("predicted", answers.predicted())]
    labels = map(format_class, model.classes.tolist())
    named += [(f"P({label})", one) for label, one in zip(labels, answers.probabilities(), strict=True)]
    if explain:
        named += answers.explanation(sums.columns())
    names = Names(write, [*(keep or ()), *model.schema.column_names])
    shown = [f"{expression} AS {names.new(name)}" for name, expression in named]
    statement = cells.stages.statement(f"{write.quote_table(table)} AS {SCORED_TABLE}", [*kept, *shown])
    return f"{_head(cells, terms)}{statement}"


def _head(cells: Cells, terms: TermModel) -> str:
    """The comment before the statement: the types that the columns of the table must have, and what ends the query."""
    lines = [f"a model of deciban {__version__}{cells.dialect.advice}", "it reads these columns of the table:"]
    lines += [f"  {json.dumps(one.name)}: {EXPECTED[one.read_as]}" for one in terms.columns.values()]
    lines.append("a column of another type ends the query with an error that names it")
    for block in terms.blocks:
        if any(isinstance(term, JointNormalTerm) and not may_miss(cells, term) for term in block.terms):
            names = json.dumps([terms.columns[column].name for column in block.columns if column in terms.columns])
            lines.append(f"a missing cell in some, but not all, of these columns ends the query: {names}")
    return "".join(f"-- {line}\n" for line in lines)


def _kept(cells: Cells, keep: Sequence[str] | None) -> list[str]:
    """The columns of the table that are passed on: all, or some."""
    if keep is None:
        return [cells.dialect.expand(cells.stages.read("row", cells.dialect.whole_row(SCORED_TABLE)))]
    quoted = [cells.dialect.identifier(name) for name in keep]
    return [f"{cells.stages.read('row', f'{SCORED_TABLE}.{one}')} AS {one}" for one in quoted]


def _rejected(cells: Cells, terms: TermModel) -> str | None:
    """Return a condition: a row is rejected, so that it has no answer; None if every row has one."""
    causes = cells.rejected(terms.refusals)
    for block in terms.blocks:
        for term in block.terms:
            if isinstance(term, JointNormalTerm) and not may_miss(cells, term):
                causes.append(fail_at_holes(cells, block, term))
    return " OR ".join(causes) if causes else None


class Sums:
    """What is added up for each class: the start and what each column says alone, in `explain` apart; and what columns
    have of joint blocks, which are added as a whole."""

    def __init__(self, cells: Cells, model: Model, terms: TermModel, explain: bool) -> None:
        self.cells, self.model, self.terms = cells, model, terms
        self.classes = model.classes.size
        self.rest: list[list[str]] = [[] for _ in range(self.classes)]
        self.known = KnownCells(cells, terms)
        self.alone: dict[int, list[list[str]]] = {}
        self.shares: dict[int, list[list[str]]] = {}
        for block in terms.blocks:
            single = explain and len(block.columns) == 1
            self._add(self._of(self.alone, block.columns[0]) if single else self.rest, block_evidence(cells, block))
            if explain and not single:
                for column, share in block_shares(cells, model, block).items():
                    self._add(self._of(self.shares, column), share)
        for column, offsets in self.known.offsets():
            self._add(self._of(self.alone, column) if explain else self.rest, offsets)
        if terms.corrections is not None:
            self._add_corrections(terms.corrections, explain)

    def _of(self, sums: dict[int, list[list[str]]], column: int) -> list[list[str]]:
        return sums.setdefault(column, [[] for _ in range(self.classes)])

    def _add(self, sums: list[list[str]], evidence: Sequence[str | None]) -> None:
        for some, one in zip(sums, evidence, strict=True):
            some += [one] if one is not None else []

    def _add_corrections(self, tables: CorrectionTables, explain: bool) -> None:
        parts = [table.shares() if explain else {WHOLE: table.values} for table in tables.tables]
        for place, by_class in add_corrections(self.cells, tables, parts, self.known.enough).items():
            sums = self._of(self.alone, tables.places[place].column) if explain else self.rest
            for c, some in enumerate(by_class):
                sums[c] += some

    def joint(self) -> list[list[str]]:
        """Return the terms of the log joint of each class."""
        alone = [self._named(sums) for _, sums in sorted(self.alone.items())]
        found = []
        for c, prior in enumerate(self.terms.log_prior.tolist()):
            sums = [*self.rest[c], *(name for sums in alone for name in sums[c])]
            found.append([self.cells.dialect.number(prior), *self.known.scaled(sums)])
        return found

    def _named(self, sums: list[list[str]]) -> list[list[str]]:
        """Each sum by its name, as it is needed twice."""
        names = self.cells.stages.names("o", [self.cells.stages.sum("k", some) for some in sums])
        return [[name] if some else [] for name, some in zip(names, sums, strict=True)]

    def columns(self) -> dict[str, list[list[str]]]:
        """Return the terms of the evidence of each column for each class, by the name of the column."""
        found = {}
        for column, known in self.terms.columns.items():
            alone = self._named(self._of(self.alone, column))
            shares = self._of(self.shares, column)
            found[known.name] = [self.known.scaled([*a, *b]) for a, b in zip(alone, shares, strict=True)]
        return found


class Names:
    """Names of answers: no longer than the engine can have them, and none that is taken."""

    def __init__(self, dialect: Dialect, taken: Iterable[str]) -> None:
        self.dialect = dialect
        self._taken = {name.casefold() for name in taken}

    def new(self, wanted: str) -> str:
        """A name like the one that is wanted, as SQL writes it."""
        name = self.dialect.possible_name(wanted)
        shown, more = self._cut(name, 0), 0
        while shown.casefold() in self._taken:
            more += 1
            shown = self._cut(name, more) + "_" * more
        self._taken.add(shown.casefold())
        return self.dialect.identifier(shown)

    def _cut(self, name: str, less: int) -> str:
        return name.encode()[: self.dialect.max_name - less].decode(errors="ignore")


def label_literals(dialect: Dialect, classes: LabelArray) -> list[str]:
    """The labels of the classes, in their type."""
    kind, labels = classes.dtype.kind, classes.tolist()
    if kind == "b":
        return [str(label).upper() for label in labels]
    if kind in "iu":
        return [f"CAST('{label}' AS {dialect.integer})" for label in labels]
    if kind == "M":
        days = classes.dtype == np.dtype("M8[D]")
        shown = np.datetime_as_string(classes, unit="D" if days else "us")
        return [f"CAST('{label.replace('T', ' ')}' AS {'DATE' if days else dialect.timestamp})" for label in shown]
    return [dialect.literal(label if isinstance(label, str) else format_class(label)) for label in labels]


class Answers:
    """The answers for a row, given the log joint of each class; all is NULL for a `rejected` row."""

    def __init__(self, cells: Cells, model: TermModel, sums: Sequence[Sequence[str]], rejected: str | None) -> None:
        self.cells, self.model, self.stages = cells, model, cells.stages
        self.number, self.first = cells.dialect.number, cells.first
        self.labels = label_literals(cells.dialect, model.classes)
        self.joint = self.stages.names("j", [self.stages.sum("k", parts) for parts in sums])
        top = self._greatest(self.joint)
        if rejected is not None:
            top = f"CASE WHEN {self.stages.name('r', rejected)} THEN NULL ELSE {top} END"
        self.top = self.stages.name("m", top)
        self.impossible = f"{self.top} = {self.number(-math.inf)}"
        best = " ".join(f"WHEN {one} = {self.top} THEN {c}" for c, one in enumerate(self.joint, self.first))
        likely = self.first + int(model.log_prior.argmax())
        self.best = self.stages.name("c", f"CASE WHEN {self.impossible} THEN {likely} {best} END")

    def _greatest(self, numbers: Sequence[str]) -> str:
        return f"GREATEST({', '.join(numbers)})" if len(numbers) > 1 else numbers[0]

    def predicted(self) -> str:
        """The label of the most probable class."""
        return self._label(self.best)

    def _label(self, place: str) -> str:
        cases = " ".join(f"WHEN {c} THEN {label}" for c, label in enumerate(self.labels, self.first))
        return f"CASE {place} {cases} END"

    def probabilities(self) -> list[str]:
        """The posterior of each class; the prior where every class has probability 0."""
        least, zero = self.number(self.cells.dialect.min_exponent), self.number(0.0)
        behind = [f"{one} - {self.top}" for one in self.joint]
        shares = self.stages.names(
            "q", [f"CASE WHEN {one} < {least} THEN {zero} ELSE exp({one}) END" for one in behind]
        )
        whole = self.stages.name("q", total(shares))
        priors = [self.number(math.exp(value)) for value in self.model.log_prior]
        return [
            f"CASE WHEN {self.impossible} THEN {prior} ELSE {share} / {whole} END"
            for prior, share in zip(priors, shares, strict=True)
        ]

    def against(self) -> str:
        """The place of the next best class; NULL where there is none, or every class has probability 0."""
        if len(self.joint) == 1:
            return f"CAST(NULL AS {self.cells.dialect.integer})"
        others = [
            f"CASE WHEN {self.best} = {c} THEN {self.number(-math.inf)} ELSE {one} END"
            for c, one in enumerate(self.joint, self.first)
        ]
        second = self.stages.name("m", self._greatest(others))
        cases = " ".join(
            f"WHEN {self.best} <> {c} AND {one} = {second} THEN {c}" for c, one in enumerate(self.joint, self.first)
        )
        return self.stages.name("c", f"CASE WHEN {self.impossible} THEN NULL {cases} END")

    def explanation(self, columns: Mapping[str, Sequence[Sequence[str]]]) -> list[tuple[str, str]]:
        """(name, expression): the class that speaks against the best one, and in decibans the sum of what speaks for
        the best one, the prior and what each of the columns says."""
        other = self.against()
        start = [[self.number(value)] for value in self.model.log_prior.tolist()]
        found = [("against", self._label(other)), ("decibans", self._decibans([[one] for one in self.joint], other))]
        found.append((evidence_column("prior"), self._decibans(start, other)))
        found += [(evidence_column(name), self._decibans(sums, other)) for name, sums in columns.items()]
        return found

    def _decibans(self, sums: Sequence[Sequence[str]], other: str) -> str:
        """How far the best class is ahead of another."""
        if len(self.joint) == 1:
            return f"CAST(NULL AS {self.cells.dialect.double})"
        each = [total(parts) if parts else self.number(0.0) for parts in sums]
        if len(each) == 2:
            ahead, behind = self.number(DECIBANS), self.number(-DECIBANS)
            sign = f"CASE {other} WHEN {self.first} THEN {ahead} WHEN {self.first + 1} THEN {behind} END"
            return f"{self.stages.name('g', sign)} * ({each[1]} - {each[0]})"
        names = self.stages.names("v", each)
        return f"{self.number(DECIBANS)} * ({self._element(names, self.best)} - {self._element(names, other)})"

    def _element(self, names: Sequence[str], place: str) -> str:
        cases = " ".join(f"WHEN {c} THEN {one}" for c, one in enumerate(names, self.first))
        return f"CASE {place} {cases} END"


class KnownCells:
    """The known cells of a row: offsets of columns, whether missing cells are evidence, and the scale of the sums.

    enough: whether enough is known for the missing cells of some columns to be evidence; None where they never are.
    """

    def __init__(self, cells: Cells, terms: TermModel) -> None:
        self.cells, self.partial, self.presence = cells, terms.partial, terms.presence
        self.enough: str | None = None
        self.share: str | None = None
        if self.partial is not None and self.presence:
            number = cells.dialect.number
            parts = [
                f"CASE WHEN {self._is_missing(column)} THEN {number(0.0)} ELSE {number(float(share))} END"
                for column in self.presence
                if (share := self.partial.shares[column]) > 0.0
            ]
            self.share = cells.stages.name("h", cells.stages.sum("k", parts)) if parts else number(0.0)
            if self.partial.informative.size:
                self.enough = cells.stages.name("h", f"{self.share} >= {number(self.partial.min_share)}")

    def _is_missing(self, column: int) -> str:
        place = self.presence[column]
        reading: Reading = "text" if isinstance(place, LevelPlace) else "number"
        return f"{self.cells.cell(column, reading)} IS NULL"

    def offsets(self) -> Iterator[tuple[int, list[str | None]]]:
        """Yield the numbers that each known column adds to each class."""
        if self.partial is None:
            return
        number = self.cells.dialect.number
        for column in self.presence:
            unknown = self._is_missing(column)
            if self.enough is not None and column in self.partial.informative:
                unknown = f"({unknown} AND NOT {self.enough})"
            relative = (self.partial.offsets[column] - self.partial.offsets[column, 0]).tolist()
            yield (
                column,
                [
                    f"CASE WHEN {unknown} THEN {number(0.0)} ELSE {number(value)} END" if value else None
                    for value in relative
                ],
            )

    def scaled(self, sums: list[str]) -> list[str]:
        """The terms of a sum, scaled by how much is known, as one term; as they are where nothing is scaled."""
        if self.partial is None or self.share is None or not sums:
            return sums
        return [f"{self._scale()} * {self.cells.stages.name('k', self.cells.stages.sum('k', sums))}"]

    def _scale(self) -> str:
        assert self.partial is not None, "there are scales"
        number = self.cells.dialect.number
        cases = []
        for (low, before), (high, after) in pairwise(self.partial.scale_points):
            slope = number((after - before) / (high - low))
            line = f"{number(before)} + {slope} * ({self.share} - {number(low)})"
            cases.append(f"WHEN {self.share} < {number(high)} THEN {line}")
        return self.cells.stages.name("h", f"CASE {' '.join(cases)} ELSE {number(1.0)} END")
