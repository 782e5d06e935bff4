"""Fit a model in three steps: plan, count, finish. Rows may be in memory, files, databases, Spark or shards.

plan:    infer the schema and draft the tuning on a sample (`Plan`, which can be sent to other processes).
count:   count all rows where they are, in parallel.
finish:  learn weights and corrections from the counts of all rows (`Fitted`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any

import numpy as np

from deciban.errors import Argument, ClassPerRowWarning, DataError, DecibanWarning, UsageError, warn_user
from deciban.fitting.left_out import learn_conformity
from deciban.fitting.remarks import Reading, list_order_remarks, list_remarks
from deciban.fitting.sql_counts.pushdown import count_in_engine
from deciban.fitting.tune.boosting import bound_evidence, learn_corrections, limit_correction_rows, may_correct
from deciban.fitting.tune.hyperparameters import CORRECTIONS
from deciban.fitting.tune.partial import learn_partial_rows
from deciban.fitting.tune.propose import Proposal, limit_tuning_rows, propose, reweigh
from deciban.fitting.tune.rows import Copies, Rows, find_copies
from deciban.fitting.unlabeled import learn_unlabeled
from deciban.model.batches import add_up, batches, count_batches
from deciban.model.counts import Counts
from deciban.model.fitted import Fitted, Origin, Settings, list_in_order
from deciban.model.priors import Given, prior_of
from deciban.model.tuning import Tuning
from deciban.schema.infer import Defaults, check_columns, infer_schema, needs_cells
from deciban.schema.schema import Schema
from deciban.sources.open import open_table
from deciban.sources.source import Work
from deciban.sources.streams import Examples, LabeledStream, open_labeled
from deciban.store.model_file import content, from_content
from deciban.tables.examples import LabeledTable
from deciban.tables.labels import (
    LabelArray,
    check_class_count,
    check_spellings,
    check_truncation,
    encode_labels,
    has_class_per_row,
)
from deciban.tables.table import Frame, Table
from deciban.util.arrays import Floats
from deciban.util.budget import NO_LIMIT, Budget
from deciban.util.frames import library_of
from deciban.util.progress import one_call, progress
from deciban.util.text_tables import format_three, integer_if_whole

# A fit may take this many times its budget without a warning.
ALLOWED_OVERRUN = 1.2


@dataclass(frozen=True)
class TuningDraft:
    """Proposal of tuning from a sample, and the rows that corrections are learned from.

    sample, copies: the sample and the copies in it, if they are known for rows of their weights. budget: time for the
    whole fit.
    """

    proposal: Proposal
    examples: Examples
    sample: LabeledTable
    copies: Copies | None
    budget: Budget = NO_LIMIT

    def select_unlabeled(self, schema: Schema) -> tuple[Table, Floats]:
        """Return the rows of the sample without a label, and their weights."""
        weights = self.sample.row_weights
        rows = np.flatnonzero((self.sample.labels.codes < 0) & (weights > 0.0))
        return schema.table_as_learned(self.sample.table.take(rows)), weights[rows]


@dataclass(frozen=True, repr=False)
class Plan:
    """Schema and settings by which rows are counted. `BayesClassifier.plan` returns it.

    A plan can be pickled and sent to other processes, which need nothing else to count rows. The sample that it was
    made from is not pickled.

    Parameters
    ----------
    settings : Settings
        Parameters of the classifier.
    schema : Schema
        Family and statistics of each column.
    declared : ndarray or None
        All possible classes, if they were declared.
    origin : Origin
        The columns of labels and weights, and the cell formats of files.
    notes : mapping, default={}
        Notes on columns from reading them, by column name.
    draft : TuningDraft or None, default=None
        Input of tuning from the sample; None in another process, and without tuning.

    See Also
    --------
    count_batches : Count rows by a plan.
    BayesClassifier.fit_shards : Learn from what was counted.

    Examples
    --------
    >>> from deciban import BayesClassifier
    >>> from deciban.datasets import weather
    >>> plan = BayesClassifier(tune=None).plan(weather(), "play")
    >>> plan.schema.block_names, plan.origin.target
    (('outlook', 'temperature', 'humidity', 'wind'), 'play')
    >>> type(plan.count([weather()]))
    <class 'bytes'>
    """

    settings: Settings
    schema: Schema
    declared: LabelArray | None
    origin: Origin
    notes: Mapping[str, str] = field(default_factory=dict)
    draft: TuningDraft | None = None

    def __repr__(self) -> str:
        return f"<Plan for the column {self.origin.target!r}>\n{self.schema}"

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the sample."""
        state = {field.name: getattr(self, field.name) for field in fields(self)}
        return {**state, "draft": None}

    @property
    def start(self) -> Counts:
        """Empty counts under this plan."""
        counts = Counts.empty(self.schema)
        return counts if self.declared is None else counts.declare_classes(self.declared)

    def count(self, tables: Iterable[Any]) -> bytes:
        """Count tables with labels, such as Arrow batches, and return the bytes of a model file.

        Parameters
        ----------
        tables : iterable of table
            Rows with their labels, and weights if the plan has some, in the columns that the plan names.

        Returns
        -------
        bytes
        """
        if self.origin.target is None:
            raise UsageError(
                "the plan was made with a separate array of labels",
                remedy="pass the name of the label column to plan()",
            )
        pieces = self._add_labels(tables, self.origin.target)
        rows = (batch for piece in pieces for batch in batches(piece, self.schema))
        counts = self.start + count_batches(rows, Counts.empty(self.schema), self.settings.threads)
        settings = replace(self.settings, prior="empirical")  # a part may lack classes of a given prior
        return content(Fitted(counts, prior_of("uniform", counts), None, self.origin, settings))

    def _add_labels(self, tables: Iterable[Any], target: str) -> Iterator[LabeledTable]:
        """Yield rows with their labels, numbered, their cells read as those of the sample."""
        first = 0
        for table in tables:
            rows = open_table(table, self.schema.column_types, self.origin.habit)
            yield LabeledTable.of(rows, target, self.origin.weight, first)
            first += rows.rows


def fit(
    settings: Settings,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    classes: Any = None,
    partial: bool = False,
    pushdown: bool = False,
    max_seconds: float | None = None,
) -> Fitted:
    """Fit these rows; see `fit_examples`."""
    budget = Budget.of(max_seconds)
    settings.check()
    order = find_class_order(settings, X, y) if classes is None else classes
    examples = open_examples(None, X, y, sample_weight, pushdown)
    used = replace(settings, unlabeled=None) if partial else settings  # batches are learned without such rows
    with one_call(), examples.locate_errors():
        fitted = fit_examples(used, examples, classes=order, partial=partial, budget=budget)
    return replace(fitted, origin=_name_columns(fitted.origin, y, sample_weight), settings=settings)


def find_class_order(settings: Settings, X: Any, y: Any) -> tuple[Any, ...] | None:
    """Return the classes in ascending order if they have to be ordered and their type states how.

    That is an ordered category of pandas, or an Enum of polars.
    """
    if not settings.ordered or settings.classes is not None:
        return None
    if isinstance(y, str) and (library_of(X) not in ("pandas", "polars") or y not in getattr(X, "columns", ())):
        return None
    kind: Any = getattr(X[y] if isinstance(y, str) else y, "dtype", None)
    return tuple(kind.categories) if getattr(kind, "ordered", False) or type(kind).__name__ == "Enum" else None


def plan(settings: Settings, X: Any, y: Any, sample_weight: Any = None) -> Plan:
    """Return a plan for rows like these, with labels and weights in columns of these names."""
    settings.check()
    examples = open_examples(None, X, y, sample_weight)
    with examples.locate_errors():
        found, _ = plan_examples(settings, examples, classes=find_class_order(settings, X, y))
    return replace(found, origin=_name_columns(found.origin, y, sample_weight))


def fit_examples(
    settings: Settings,
    examples: Examples,
    *,
    classes: Any = None,
    partial: bool = False,
    budget: Budget = NO_LIMIT,
    reading: Reading | None = None,
) -> Fitted:
    """Fit these rows: plan, count, finish.

    classes: all possible labels; default: those of the settings. partial: more rows will follow; these may lack columns
    that the settings name, and may all have weight 0. budget: time for all steps. Counting takes what it takes; the
    other steps use fewer rows. reading: where the rows were read from, if not from `examples`.
    """
    plan, everything = plan_examples(
        settings, examples, classes=classes, partial=partial, budget=budget, reading=reading
    )
    counts = plan.start + count_examples(plan.schema, everything, settings.threads)
    check_something_learned(counts, partial)
    settings.order_classes(counts.classes, plan.origin.order)
    warn_about_labels(examples, counts)
    fitted = finish(plan, counts)
    warn_about_time(budget)
    return fitted


def _name_columns(origin: Origin, y: Any, sample_weight: Any) -> Origin:
    """Return the origin with the columns of labels and weights, if these were given by name."""
    target, weight = (name if isinstance(name, str) else None for name in (y, sample_weight))
    return replace(origin, target=target, weight=weight)


def open_examples(fitted: Fitted | None, X: Any, y: Any, sample_weight: Any = None, pushdown: bool = False) -> Examples:
    """Open rows with their labels and weights, which files have in columns.

    With a fitted model, columns of a file are read with the learned types, and ignored columns stay ignored. pushdown:
    count rows by SQL inside the database.
    """
    if fitted is None:
        return open_labeled(X, y, sample_weight, pushdown)
    types, origin = fitted.column_types(y if isinstance(y, str) else None), fitted.origin
    return open_labeled(X, y, sample_weight, pushdown, types=types, habit=origin.habit, ignored=origin.ignored)


def plan_examples(
    settings: Settings,
    examples: Examples,
    *,
    classes: Any = None,
    partial: bool = False,
    budget: Budget = NO_LIMIT,
    reading: Reading | None = None,
) -> tuple[Plan, Examples]:
    """Return the plan for these rows, and the rows to count, whose columns have types by then.

    The schema is inferred, and the structure chosen, on a sample. classes, partial, budget, reading: see
    `fit_examples`.
    """
    declared = settings.classes if classes is None else classes
    all_classes = None if declared is None else encode_classes(declared)
    if examples.names is not None:
        check_columns(examples.names, settings.families, partial)
    if isinstance(examples, LabeledStream) and declared is None:
        _check_prior_before_reading(settings, examples)
    sample, everything, by_types = _draw_sample(settings, examples, partial)
    notes = everything.notes or examples.notes
    copies = None if by_types else _find_copies(sample)
    known = sample.labels.classes if all_classes is None else all_classes
    order = settings.order_classes(known, declared)
    schema = infer_schema(
        sample.table,
        settings.families,
        Defaults(settings.alpha, settings.unseen, settings.orient_columns(order)),
        partial,
        sample.weights,
        everything.expected,
        None if copies is None else np.sort(np.unique(copies.units, return_index=True)[1]),
    ).with_notes(notes)
    if not partial and (warning := check_class_count(sample.labels)):
        warn_user(warning, ClassPerRowWarning if has_class_per_row(sample.labels) else DecibanWarning)
    for remark in list_remarks(schema, reading or Reading.of(examples)):
        warn_user(remark)
    draft = None
    if settings.tune is None and settings.unlabeled is not None:
        table, classes = schema.table_as_learned(sample.table), sample.labels.classes
        limit = limit_tuning_rows(schema, classes.size)
        rows = Rows.of(table, sample.labels.codes, sample.weights, classes.size, limit)
        draft = TuningDraft(Proposal(schema, rows, classes), everything, sample, None, budget)
    elif settings.tune is not None:
        for remark in list_order_remarks(examples):
            warn_user(remark)
        table, copies = schema.table_as_learned(sample.table), copies if sample.weights is None else None
        proposal = propose(table, sample.labels, sample.weights, schema, settings.threads, copies, budget)
        schema, draft = proposal.schema, TuningDraft(proposal, everything, sample, copies, budget)
    in_order = None if order is None else list_in_order(classes)
    origin = Origin(ignored=examples.ignored, habit=everything.habit or examples.habit, order=in_order)
    return Plan(settings, schema, all_classes, origin, notes, draft), everything


def _check_prior_before_reading(settings: Settings, examples: LabeledStream) -> None:
    """Raise a UsageError if a class of the first rows has no prior, before many of them are read."""
    prior = settings.class_prior
    if isinstance(prior, Given) and prior.names is not None:
        prior.check_names(examples.first_classes())


def _draw_sample(settings: Settings, examples: Examples, partial: bool) -> tuple[LabeledTable, Examples, bool]:
    """Return the sample to infer the schema from and to tune on, and all rows with typed columns.

    The third value is True if the types of columns decide the schema without cells: then any rows are a sample.
    """
    families = settings.families
    by_types = (
        settings.tune is None
        and settings.unlabeled is None
        and (
            not needs_cells(examples.table, families, partial)
            if isinstance(examples, LabeledTable)
            else families is not None and not isinstance(families, Mapping)
        )
    )
    sample, everything = examples.peek() if by_types else examples.sample()
    if isinstance(examples, LabeledStream) and not sample.table.rows:
        raise DataError("the table has no rows; there is nothing to learn from")
    if isinstance(examples, LabeledStream) and not examples.names:
        columns = "the target" if examples.weight is None else "the target and the weight"
        raise DataError(f"the table has no column besides {columns}", remedy="add a column to predict from")
    check_not_empty(sample.table)
    return sample if by_types else sample.drop_zero_weights(), everything, by_types


def _find_copies(sample: LabeledTable) -> Copies:
    """Return the copies among the rows of a sample; a row of a large weight counts as one row."""
    weights = np.ones(sample.table.rows) if sample.weights is None else np.minimum(sample.weights, 1.0)
    return find_copies(sample.table, sample.labels.codes, weights)


def count_examples(schema: Schema, examples: Examples, threads: int | None = None) -> Counts:
    """Count all rows under a schema, where they are."""
    if isinstance(examples, LabeledStream) and examples.pushdown:
        return count_in_engine(schema, examples, partial(count_examples, threads=threads))
    if isinstance(examples, LabeledStream) and examples.elsewhere:
        with progress("counting", "parts") as advance:  # how many there are is known only at the end
            shards = list(examples.stream.each_part(_make_counter(schema, examples)))
            advance(len(shards))
        return add_up((from_content(shard, "a shard").counts for shard in shards), Counts.empty(schema))
    return count_batches(batches(examples, schema), Counts.empty(schema), threads, examples.expected)


def _make_counter(schema: Schema, examples: LabeledStream) -> Work:
    """Return the function that counts a part of these rows elsewhere, on one core."""
    origin = Origin(examples.target, examples.weight, habit=examples.habit)
    return Plan(Settings(threads=1), schema, None, origin).count


def finish(plan: Plan, counts: Counts) -> Fitted:
    """Return the fitted model for these counts of all rows, with weights and corrections."""
    tuning = None
    if plan.draft is not None and plan.draft.budget.spent:
        warn_user((_name_limit(plan.draft.budget), " left no time for tuning: the model is plain Bayes"))
        tuning = replace(Tuning.plain(counts), note="plain Bayes: no time was left for tuning")
    elif plan.draft is not None:
        proposal, examples, budget = plan.draft.proposal, plan.draft.examples, plan.draft.budget
        before, tuning = budget.used, reweigh(proposal, counts)
        per_row = (budget.used - before) / max(proposal.rows.labels.size, 1)
        reserve = CORRECTIONS.first_rows * CORRECTIONS.weighing_times * per_row
        rows = replace(proposal.rows.among(proposal.classes, counts), budget=budget.without(reserve))
        if proposal.covers(counts):
            rows = replace(rows, evidence=proposal.evidence)
        drawn = plan.draft.sample, plan.draft.copies
        if plan.settings.unlabeled is not None:
            others, weights = plan.draft.select_unlabeled(plan.schema)
            prior = prior_of(plan.settings.class_prior, counts)
            try:
                tuning, evidence = learn_unlabeled(tuning, counts, rows, others, weights, prior)
            except DataError as problem:  # its row is that of the sample
                cause = problem.cause if isinstance(problem.cause, tuple) else (problem.cause,)
                place = replace(problem.place, row=None)
                raise DataError(("a row without a label: ", *cause), place=place, remedy=problem.remedy) from problem
            if rows.evidence is not None and evidence is not None:
                rows = replace(rows, evidence=evidence)
        if plan.settings.tune is not None:
            tuning = complete_tuning(tuning, counts, rows, examples, plan.settings, known=drawn)
    if plan.settings.tune is None and tuning is not None and tuning.unlabeled is None:
        tuning = None
    tuning = None if tuning is None else replace(tuning, schema=tuning.schema.with_notes(plan.notes))
    return Fitted(counts, prior_of(plan.settings.class_prior, counts), tuning, plan.origin, plan.settings)


def complete_tuning(
    tuning: Tuning,
    counts: Counts,
    rows: Rows,
    examples: Examples,
    settings: Settings,
    learned: bool = True,
    known: tuple[LabeledTable | None, Copies | None] = (None, None),
) -> Tuning:
    """Return the tuning with corrections, if requested, the adjustment for missing cells, and conformity scores.

    Corrections are learned from as many examples as time allows. rows: those that the weights were learned from, and
    the time budget; with their evidence if they are all examples. known: a sample of the examples, and the copies in
    it.
    """
    classes, tuning = counts.classes.size, bound_evidence(tuning, counts) if settings.tune == "auto" else tuning
    budget, weighted = rows.budget, replace(rows, threads=settings.threads)
    if settings.tune != "auto" or not may_correct(tuning, classes) or budget.spent:
        tuning = learn_partial_rows(tuning, counts, weighted, learned)
        return tuning if budget.spent else learn_conformity(tuning, counts, settings.prior, weighted, learned)
    if rows.evidence is None:
        drawn, _ = examples.sample(limit_correction_rows(counts.schema.width, classes))
        table = counts.schema.table_as_learned(drawn.table, drawn.first_row)
        codes = drawn.labels.places_among(counts.classes)
        copies = known[1] if drawn is known[0] else None
        rows = Rows.of(table, codes, drawn.weights, classes, table.rows, copies).among(counts.classes, counts)
    rows = replace(rows, threads=settings.threads, found_copies=rows.copies)

    def learn(max_rows: int) -> Tuning:
        some = replace(rows.some(max_rows), budget=budget.part(CORRECTIONS.budget_share))
        found = learn_partial_rows(learn_corrections(tuning, counts, some, learned), counts, some, learned)
        return learn_conformity(found, counts, settings.prior, some, learned)

    return budget.run_with_affordable_rows(learn, rows.labels.size, CORRECTIONS.first_rows)


def encode_classes(classes: Any) -> LabelArray:
    """Return the declared classes as an array; raise a UsageError if one is missing."""
    labels = sorted(classes) if isinstance(classes, set | frozenset) else classes
    found = encode_labels(labels, len(labels))
    if (found.codes < 0).any():
        raise UsageError("a missing value is not a class", parameter=Argument("classes", classes))
    return found.classes


def check_not_empty(table: Table) -> None:
    """Raise a DataError if a table has no rows or no columns."""
    width = 0 if isinstance(table, Frame) and table.has_no_cells else table.width
    for count, what in ((table.rows, "sample(s)"), (width, "feature(s)")):
        if count == 0:
            raise DataError(
                f"Found array with 0 {what} (shape=({table.rows}, {width})) while a minimum of 1 is required: "
                f"there is nothing to learn from"
            )


def warn_about_time(budget: Budget) -> None:
    """Warn if a fit took longer than it was given: reading and counting all rows cannot be shortened."""
    if (used := budget.used) > ALLOWED_OVERRUN * budget.seconds:
        took = f"the fit took {format_three(used)} s despite "
        fixed = "reading, counting and the smallest tuning are not shortened"
        warn_user((took, _name_limit(budget), f": {fixed}"))


def _name_limit(budget: Budget) -> Argument:
    return Argument("max_seconds", integer_if_whole(budget.seconds))


def check_something_learned(counts: Counts, partial: bool = False) -> None:
    """Raise a DataError if no row has a label and a weight.

    partial: rows of weight 0 alone are allowed, because more rows follow.
    """
    if counts.class_weight.any() or (partial and not counts.unlabeled):
        return
    raise DataError(
        "no rows to learn from: every label is missing or every weight is zero",
        remedy="pass at least one row with a label and a weight",
    )


def warn_about_labels(examples: Examples, counts: Counts, known: Counts | None = None) -> None:
    """Warn about suspicious labels: similar spellings, truncation. known: counts learned before."""
    old = [] if known is None else known.classes.tolist()
    new = set(counts.classes.tolist()).difference(old)
    if new and (warning := check_spellings([*old, *sorted(new, key=str)])):
        warn_user(warning)
    unfinished = examples.labels_without_newline if isinstance(examples, LabeledStream) else ()
    before = None if known is None else known.classes
    if warning := check_truncation(unfinished, counts.classes, counts.class_weight, before):
        warn_user(warning)
