"""A model as one SELECT statement, which scores a table where it is."""

import json
from collections.abc import Sequence

from deciban.errors import Argument, UsageError
from deciban.export.ir import CorrectionTables, TermModel
from deciban.export.lower import fold_model
from deciban.export.sql.answers import Answers, Names
from deciban.export.sql.cells import SCORED_TABLE, Cells
from deciban.export.sql.corrections import add_corrections
from deciban.export.sql.engines import EXPECTED, SCORING_ENGINES
from deciban.export.sql.evidence import block_evidence
from deciban.export.sql.joint_normals import fail_at_holes, may_miss
from deciban.export.sql.joint_shares import block_shares
from deciban.export.sql.partial_rows import KnownCells
from deciban.export.sql.stages import Stages
from deciban.families.base.lowering import JointNormalTerm
from deciban.model.fitted import Fitted
from deciban.model.model import Model
from deciban.sources.dialects import dialect_of
from deciban.util.text_tables import class_name
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
        What is known, or the model of it.
    table : str
        The name of the table; dots part the schema from it. It has the columns that the model reads.
    dialect : {"duckdb", "postgres", "spark"}, default="duckdb"
        Whose SQL it is.
    explain : bool, default=False
        Whether to say, in decibans, what each column says for the predicted class against the next best.
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
    deciban.export.model_terms.model_as_terms : What it is made of.

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
    dialect_of(dialect)
    if isinstance(keep, str):
        raise UsageError("give the names of the columns in a list", parameter=Argument("keep", keep))
    engine = SCORING_ENGINES[dialect]
    model = fitted.model if isinstance(fitted, Fitted) else fitted
    terms = fold_model(fitted)
    cells = Cells(terms, Stages(engine))
    kept = _kept(cells, keep)
    sums = Sums(cells, model, terms, explain)
    answers = Answers(cells, terms, sums.joint(), _refused(cells, terms))
    named = [("predicted", answers.predicted())]
    labels = map(class_name, model.classes.tolist())
    named += [(f"P({label})", one) for label, one in zip(labels, answers.probabilities(), strict=True)]
    if explain:
        named += answers.explanation(sums.columns())
    names = Names(engine.dialect, [*(keep or ()), *model.schema.column_names])
    shown = [f"{expression} AS {names.new(name)}" for name, expression in named]
    statement = cells.stages.statement(f"{engine.dialect.qualified(table)} AS {SCORED_TABLE}", [*kept, *shown])
    return f"{_head(cells, terms)}{statement}"


def _head(cells: Cells, terms: TermModel) -> str:
    """The comment before the statement: the types that the columns of the table must have, and what ends the query."""
    lines = [f"a model of deciban {__version__}{cells.engine.advice}", "it reads these columns of the table:"]
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
        return [cells.engine.expanded(cells.stages.read("row", cells.engine.whole_row(SCORED_TABLE)))]
    quoted = [cells.dialect.identifier(name) for name in keep]
    return [f"{cells.stages.read('row', f'{SCORED_TABLE}.{one}')} AS {one}" for one in quoted]


def _refused(cells: Cells, terms: TermModel) -> str | None:
    """Whether a row has no answer; None where every row has one."""
    causes = cells.refused(terms.refusals)
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
        """What the log joint of each class is the sum of."""
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
        """What the evidence of each column for each class is the sum of, by its name."""
        found = {}
        for column, known in self.terms.columns.items():
            alone = self._named(self._of(self.alone, column))
            shares = self._of(self.shares, column)
            found[known.name] = [self.known.scaled([*a, *b]) for a, b in zip(alone, shares, strict=True)]
        return found
