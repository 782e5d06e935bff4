"""Export of a model as one SELECT statement that scores a table in place.

`to_sql` adds the evidence of each class (`Sums`), scales it by the known share of the row (`KnownCells`), and selects
the class, the probabilities and an explanation (`Answers`).
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
from deciban.export.sql.correction_lookups import add_shares, sum_corrections
from deciban.export.sql.shares import block_shares
from deciban.export.sql.terms import block_evidence, fail_at_holes, may_miss
from deciban.families.base.lowering import JointNormalTerm, LevelPlace
from deciban.model.fitted import Fitted
from deciban.model.model import MIN_HALF, Model
from deciban.sources.dialects import Dialect, dialect_of
from deciban.tables.labels import LabelArray
from deciban.util.text_tables import DECIBANS, evidence_column, format_class
from deciban.util.version import __version__


def to_sql(
    fitted: Fitted | Model,
    table: str,
    dialect: str = "duckdb",
    explain: bool = False,
    keep: Sequence[str] | None = None,
) -> str:
    """Return the model as one SELECT statement that scores a table in the database.

    Parameters
    ----------
    fitted : Fitted or Model
        The fitted state, or its model.
    table : str
        Name of the table, optionally with a schema: "schema.table". It has the columns that the model reads.
    dialect : {"duckdb", "postgres", "spark"}, default="duckdb"
        The engine that runs the statement.
    explain : bool, default=False
        Add, in decibans, the evidence of each column for the predicted class against the next best.
    keep : sequence of str, default=None
        Columns of the table to return. None returns all.

    Returns
    -------
    str
        The statement. It returns the kept columns, `predicted` and `P(class)` for each class; with `explain` also
        `against`, `decibans`, `decibans of prior`, `decibans of limit` (if the model has one) and `decibans of`
        each column.

    Raises
    ------
    UsageError
        If a column cannot be exported to SQL; the message names it.

    See Also
    --------
    deciban.export.lower.fold_model : The terms of the model.

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
        raise UsageError("pass the column names as a list", parameter=Argument("keep", keep))
    model = fitted.model if isinstance(fitted, Fitted) else fitted
    terms = fold_model(fitted)
    cells = Cells(terms, Stages(write))
    kept = _select_columns(cells, keep)
    sums = Sums(cells, model, terms, explain)
    answers = Answers(cells, terms, sums.joint(), _rejection(cells, terms))
    named = [("predicted", answers.predict())]
    labels = map(format_class, model.classes.tolist())
    named += [(f"P({label})", one) for label, one in zip(labels, answers.probabilities(), strict=True)]
    if explain:
        named += answers.explanation(sums.columns(), sums.added)
    names = Names(write, [*(keep or ()), *model.schema.column_names])
    shown = [f"{expression} AS {names.new(name)}" for name, expression in named]
    statement = cells.stages.statement(f"{write.quote_table(table)} AS {SCORED_TABLE}", [*kept, *shown])
    return f"{_head(cells, terms)}{statement}"


def _head(cells: Cells, terms: TermModel) -> str:
    """Return the comment at the top of the statement: the required column types, and what stops the query."""
    lines = [f"classifier exported by deciban {__version__}{cells.dialect.advice}", "required columns and their types:"]
    lines += [f"  {json.dumps(one.name)}: {EXPECTED[one.read_as]}" for one in terms.columns.values()]
    lines.append("a column of another type stops the query with an error that names the column")
    for block in terms.blocks:
        if any(isinstance(term, JointNormalTerm) and not may_miss(cells, term) for term in block.terms):
            names = json.dumps([terms.columns[column].name for column in block.columns if column in terms.columns])
            lines.append(f"a row in which some but not all of these columns are missing stops the query: {names}")
    return "".join(f"-- {line}\n" for line in lines)


def _select_columns(cells: Cells, keep: Sequence[str] | None) -> list[str]:
    """Return the columns of the table to select."""
    if keep is None:
        return [cells.dialect.expand(cells.stages.read("row", cells.dialect.whole_row(SCORED_TABLE)))]
    quoted = [cells.dialect.identifier(name) for name in keep]
    return [f"{cells.stages.read('row', f'{SCORED_TABLE}.{one}')} AS {one}" for one in quoted]


def _rejection(cells: Cells, terms: TermModel) -> str | None:
    """Return a condition for rejected rows, which have no result; None if no row is rejected."""
    causes = cells.reject_conditions(terms.refusals)
    for block in terms.blocks:
        for term in block.terms:
            if isinstance(term, JointNormalTerm) and not may_miss(cells, term):
                causes.append(fail_at_holes(cells, block, term))
    return " OR ".join(causes) if causes else None


class Sums:
    """Terms of the sum of each class.

    They are the start and the evidence of single columns, separate if `explain`, and the shares of columns in joint
    blocks, which are added as a whole.
    """

    def __init__(self, cells: Cells, model: Model, terms: TermModel, explain: bool) -> None:
        self.cells, self.model, self.terms = cells, model, terms
        self.classes = model.classes.size
        self.rest: list[list[str]] = [[] for _ in range(self.classes)]
        self.known = KnownCells(cells, terms)
        self.alone: dict[int, list[list[str]]] = {}
        self.shares: dict[int, list[list[str]]] = {}
        self.added: list[str] = []  # what the limit adds to each class
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
        if not explain:
            self._add(self.rest, sum_corrections(self.cells, tables, self.known.enough))
            return
        for place, by_class in add_shares(self.cells, tables, self.known.enough).items():
            sums = self._of(self.alone, tables.places[place].column)
            for c, some in enumerate(by_class):
                sums[c] += some

    def joint(self) -> list[list[str]]:
        """Return the terms of the log joint of each class."""
        alone = [self._name_sums(sums) for _, sums in sorted(self.alone.items())]
        found = [[*self.rest[c], *(name for sums in alone for name in sums[c])] for c in range(self.classes)]
        found = [self.known.scale(sums) for sums in found]
        if self.terms.limit < math.inf and self.classes > 1:
            found = self._limit(found)
        return [
            [self.cells.dialect.number(prior), *sums]
            for prior, sums in zip(self.terms.log_prior.tolist(), found, strict=True)
        ]

    def _limit(self, sums: list[list[str]]) -> list[list[str]]:
        """Return the terms of each class, with what raises them to the limit below the best class, unless -inf."""
        number, stages = self.cells.dialect.number, self.cells.stages
        each = stages.names("e", [stages.sum("k", some) if some else number(0.0) for some in sums])
        least = stages.name("e", f"GREATEST({', '.join(each)}) - {number(self.terms.limit)}")
        is_below = [f"{one} < {least} AND {one} > {number(-math.inf)}" for one in each]
        self.added = [
            f"CASE WHEN {below} THEN {least} - {one} ELSE {number(0.0)} END"
            for one, below in zip(each, is_below, strict=True)
        ]
        return [[f"CASE WHEN {below} THEN {least} ELSE {one} END"] for one, below in zip(each, is_below, strict=True)]

    def _name_sums(self, sums: list[list[str]]) -> list[list[str]]:
        """Return each sum by name, because it is used twice."""
        names = self.cells.stages.names("o", [self.cells.stages.sum("k", some) for some in sums])
        return [[name] if some else [] for name, some in zip(names, sums, strict=True)]

    def columns(self) -> dict[str, list[list[str]]]:
        """Return the terms of the evidence of each column for each class, by column name."""
        found = {}
        for column, known in self.terms.columns.items():
            alone = self._name_sums(self._of(self.alone, column))
            shares = self._of(self.shares, column)
            found[known.name] = [self.known.scale([*a, *b]) for a, b in zip(alone, shares, strict=True)]
        return found


class Names:
    """Names of result columns: unique, and not longer than the engine allows."""

    def __init__(self, dialect: Dialect, taken: Iterable[str]) -> None:
        self.dialect = dialect
        self._taken = {name.casefold() for name in taken}

    def new(self, wanted: str) -> str:
        """Return a quoted name similar to `wanted`."""
        name = self.dialect.possible_name(wanted)
        shown, more = self._shorten(name, 0), 0
        while shown.casefold() in self._taken:
            more += 1
            shown = self._shorten(name, more) + "_" * more
        self._taken.add(shown.casefold())
        return self.dialect.identifier(shown)

    def _shorten(self, name: str, less: int) -> str:
        return name.encode()[: self.dialect.max_name - less].decode(errors="ignore")


def label_literals(dialect: Dialect, classes: LabelArray) -> list[str]:
    """Return the class labels as SQL literals of their type."""
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
    """Result expressions for a row, given the log joint of each class; all NULL for a `rejected` row."""

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
        if model.order is None:
            self.best = self.stages.name("c", f"CASE WHEN {self.impossible} THEN {likely} {best} END")
        else:
            self.best = self.stages.name("c", self._median(model.order))

    def _greatest(self, numbers: Sequence[str]) -> str:
        return f"GREATEST({', '.join(numbers)})" if len(numbers) > 1 else numbers[0]

    def _median(self, order: Sequence[int]) -> str:
        """Return the index of the first class, in ascending order, up to which the posterior sums to one half."""
        shares = [self.stages.names("q", self.probabilities())[c] for c in order]
        sums = [total(shares[: k + 1]) for k in range(len(order))]
        cases = [
            f"WHEN {one} >= {self.number(MIN_HALF)} THEN {self.first + c}" for one, c in zip(sums, order, strict=True)
        ]
        return f"CASE {' '.join(cases)} END"

    def predict(self) -> str:
        """Return the label of the predicted class."""
        return self._label(self.best)

    def _label(self, place: str) -> str:
        cases = " ".join(f"WHEN {c} THEN {label}" for c, label in enumerate(self.labels, self.first))
        return f"CASE {place} {cases} END"

    def probabilities(self) -> list[str]:
        """Return the posterior of each class; the prior if every class has probability 0."""
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
        """Return the index of the second best class; NULL for a single class, or if every class has probability 0."""
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

    def explanation(
        self, columns: Mapping[str, Sequence[Sequence[str]]], added: Sequence[str]
    ) -> list[tuple[str, str]]:
        """Return (name, expression) pairs: the second best class, and the evidence for the best one in decibans.

        The evidence is the total, the prior, what the limit added (if anything can be), and the share of each column.
        """
        other = self.against()
        start = [[self.number(value)] for value in self.model.log_prior.tolist()]
        found = [("against", self._label(other)), ("decibans", self._decibans([[one] for one in self.joint], other))]
        found.append((evidence_column("prior"), self._decibans(start, other)))
        if self.model.limit < math.inf:
            found.append((evidence_column("limit"), self._decibans([[one] for one in added], other)))
        found += [(evidence_column(name), self._decibans(sums, other)) for name, sums in columns.items()]
        return found

    def _decibans(self, sums: Sequence[Sequence[str]], other: str) -> str:
        """Return the lead of the best class over another, in decibans."""
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
    """Known cells of a row: offsets of columns, whether missing cells are evidence, and the scale of the sums.

    enough: condition under which missing cells of informative columns are evidence; None if there are no such columns.
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
        """Yield the offset of each known column for each class."""
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

    def scale(self, sums: list[str]) -> list[str]:
        """Return the terms of a sum as one scaled term; unchanged if nothing is scaled."""
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
