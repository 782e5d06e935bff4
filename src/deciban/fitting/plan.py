"""How rows are to be counted, settled on a sample; and what is known when they are: what all ways of fitting share.

plan_examples ─► Plan ─► count (here, in other processes, on other machines) ─► conclude ─► Fitted
"""

import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import numpy as np

from deciban.errors import DataError, UsageError
from deciban.fitting.engines.count import count_in_engine
from deciban.fitting.tune.correct import correct, may_correct, rows_to_correct, with_cap
from deciban.fitting.tune.partial import learn_partial_rows
from deciban.fitting.tune.propose import Proposal, propose, reweigh
from deciban.fitting.tune.rows import Rows
from deciban.model.counting import add_up, batches, count_batches
from deciban.model.counts import Counts
from deciban.model.fitted import Fitted, Origin, Settings
from deciban.model.folds_by_content import find_copies
from deciban.model.priors import check_prior, prior_of
from deciban.model.tuning import Tuning
from deciban.schema.infer import Defaults, check_columns, infer_schema
from deciban.schema.schema import Schema
from deciban.sources.labelled_stream import Examples, LabelledStream
from deciban.sources.open import open_table
from deciban.sources.stream import Work
from deciban.store.model_file import content, from_content
from deciban.tables.label_warnings import too_many
from deciban.tables.labelled import LabelledTable
from deciban.tables.labels import LabelArray, encode_labels
from deciban.tables.table import Frame, Table
from deciban.util.arrays import Integers


@dataclass(frozen=True)
class Plan:
    """How rows are to be counted: what each column is, and what tuning will need. `BayesClassifier.plan` makes it.

    It can be pickled and sent to other processes, which need no more to count rows by it: the sample that it was
    settled on stays behind.

    Parameters
    ----------
    settings : Settings
        The parameters of the classifier.
    schema : Schema
        What is counted of each column.
    declared : ndarray or None
        All the classes there may be, if they were declared.
    origin : Origin
        The columns that hold labels and weights, and how the cells of files are written.
    notes : object
        What was remarked of columns while they were read.
    proposal : Proposal or None, default=None
        What tuning suggests from the sample; None in another process, and where nothing is tuned.
    everything : LabelledTable, LabelledStream or None, default=None
        The rows that corrections are learned from; None in another process.

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
    notes: Any
    proposal: Proposal | None = None
    everything: Examples | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Without the sample."""
        state = {field.name: getattr(self, field.name) for field in fields(self)}
        return {**state, "proposal": None, "everything": None}

    @property
    def start(self) -> Counts:
        """Nothing, counted by this plan."""
        counts = Counts.empty(self.schema)
        return counts if self.declared is None else counts.declaring(self.declared)

    def count(self, tables: Iterable[Any]) -> bytes:
        """What was counted of tables that hold labels, such as Arrow batches: the bytes of a model file.

        Parameters
        ----------
        tables : iterable of table
            Rows with their labels, and weights if the plan has some, in the columns that the plan names.

        Returns
        -------
        bytes
        """
        if self.origin.target is None:
            raise UsageError("the plan was made with labels apart; make it by the name of the column that holds them")
        pieces = self._labelled(tables, self.origin.target)
        rows = (batch for piece in pieces for batch in batches(piece, self.schema))
        counts = self.start + count_batches(rows, Counts.empty(self.schema), self.settings.threads)
        settings = replace(self.settings, prior="empirical")  # a part may lack classes that a given prior names
        return content(Fitted(counts, prior_of("uniform", counts), None, self.origin, settings))

    def _labelled(self, tables: Iterable[Any], target: str) -> Iterator[LabelledTable]:
        """Rows with their labels, numbered on, their cells read as those of the sample were."""
        first = 0
        for table in tables:
            rows = open_table(table, self.schema.column_types, self.origin.habit)
            yield LabelledTable.of(rows, target, self.origin.weight, first)
            first += rows.rows


def plan_examples(
    settings: Settings, examples: Examples, *, classes: Any = None, partial: bool = False, stacklevel: int = 4
) -> Plan:
    """How these rows are to be counted: the schema is inferred and structure chosen on a sample of them.

    classes: all the labels there may be; without, those of the settings. partial: these are the first rows of more;
    they may lack columns that the settings name. stacklevel: how far up the caller is that warnings are meant for.
    """
    declared = settings.classes if classes is None else classes
    _check_before_reading(settings, examples, declared, partial)
    sample, everything = _sampled(settings, examples)
    notes = everything.notes or examples.notes
    defaults, rows = defaults_of(settings), everything.expected
    schema = infer_schema(
        sample.table, settings.columns, defaults, partial, sample.weights, rows, _different(sample)
    ).with_notes(notes)
    if not partial and (warning := too_many(sample.labels)):
        warnings.warn(warning, stacklevel=stacklevel)
    for name in schema.columns_like("identifier"):
        warnings.warn(f"column {name!r} looks like an identifier; leave it out", stacklevel=stacklevel)
    proposal = None
    if settings.tune is not None:
        proposal = propose(
            schema.table_as_learned(sample.table), sample.labels, sample.weights, schema, settings.threads
        )
        schema = proposal.schema
    origin = Origin(ignored=examples.ignored, habit=everything.habit or examples.habit)
    all_classes = None if declared is None else declared_classes(declared)
    return Plan(settings, schema, all_classes, origin, notes, proposal, everything)


def _different(sample: LabelledTable) -> Integers:
    """The places of the rows that are not copies of others before them."""
    weights = np.ones(sample.table.rows) if sample.weights is None else np.minimum(sample.weights, 1.0)
    copies = find_copies(sample.table, sample.labels.codes, weights)
    return np.sort(np.unique(copies.units, return_index=True)[1])


def conclude(plan: Plan, counts: Counts) -> Fitted:
    """What is known when all rows are counted by a plan: with the weights that the counts support, and corrections."""
    tuning = None if plan.proposal is None else reweigh(plan.proposal, counts)
    if tuning is not None and plan.everything is not None:
        assert plan.proposal is not None, "what was tuned was proposed"
        rows = plan.proposal.rows.among(plan.proposal.classes, counts)
        tuning = completed(tuning, counts, rows, plan.everything, plan.settings)
    tuning = None if tuning is None else replace(tuning, schema=tuning.schema.with_notes(plan.notes))
    return Fitted(counts, prior_of(plan.settings.prior, counts), tuning, plan.origin, plan.settings)


def completed(
    tuning: Tuning, counts: Counts, rows: Rows, examples: Examples, settings: Settings, learned: bool = True
) -> Tuning:
    """The tuning with corrections, if they are wanted, and with what rows with missing cells need.

    Corrections are learned from as many examples as time allows. rows: those that the weights were learned from.
    """
    classes, tuning = counts.classes.size, with_cap(tuning, counts) if settings.tune == "auto" else tuning
    if settings.tune != "auto" or not may_correct(tuning, classes):
        return learn_partial_rows(tuning, counts, replace(rows, threads=settings.threads), learned)
    drawn, _ = examples.sample(rows_to_correct(counts.schema.width, classes))
    table = counts.schema.table_as_learned(drawn.table, drawn.first_row)
    codes = drawn.labels.places_among(counts.classes)
    rows = Rows.of(table, codes, drawn.weights, classes, table.rows).among(counts.classes, counts)
    rows = replace(rows, threads=settings.threads)
    return learn_partial_rows(correct(tuning, counts, rows, learned), counts, rows, learned)


def count_examples(schema: Schema, examples: Examples, threads: int | None = None) -> Counts:
    """The counts of all rows under a schema, which are counted where they are."""
    if isinstance(examples, LabelledStream) and examples.where == "engine":
        return count_in_engine(schema, examples, partial(count_examples, threads=threads))
    if isinstance(examples, LabelledStream) and examples.elsewhere:
        shards = examples.stream.each_part(_counting(schema, examples))
        return add_up((from_content(shard, "a shard").counts for shard in shards), Counts.empty(schema))
    return count_batches(batches(examples, schema), Counts.empty(schema), threads, examples.expected)


def _counting(schema: Schema, examples: LabelledStream) -> Work:
    """What counts a part of these rows, elsewhere: one core is enough for a part."""
    origin = Origin(examples.target, examples.weight, habit=examples.habit)
    return Plan(Settings(threads=1), schema, None, origin, {}).count


def refuse_empty(table: Table) -> None:
    """A DataError where a table to learn from has no rows or no columns."""
    width = 0 if isinstance(table, Frame) and table.has_no_cells else table.width
    for count, what in ((table.rows, "sample(s)"), (width, "feature(s)")):
        if count == 0:
            raise DataError(
                f"Found array with 0 {what} (shape=({table.rows}, {width})) while a minimum of 1 is required: "
                f"there is nothing to learn from"
            )


def refuse_nothing_learned(counts: Counts, partial: bool = False) -> None:
    """A DataError where no row has a label and a weight; as a part of more, rows of no weight at all add nothing."""
    if counts.class_weight.any() or (partial and not counts.unlabelled):
        return
    raise DataError(
        "no row is left to learn from: every label is missing or every weight is zero; "
        "give at least one row with a label and a weight"
    )


def defaults_of(settings: Settings) -> Defaults:
    return Defaults(settings.alpha, settings.unseen)


def _check_before_reading(settings: Settings, examples: Examples, declared: Any, partial: bool) -> None:
    """Refuse settings that cannot fit these rows, before many of them are read."""
    if examples.names is not None:
        check_columns(examples.names, settings.columns, partial)
    if isinstance(examples, LabelledStream) and declared is None:
        check_prior(settings.prior, examples.first_classes() if isinstance(settings.prior, Mapping) else None)


def _sampled(settings: Settings, examples: Examples) -> tuple[LabelledTable, Examples]:
    """Rows to infer the schema from and to tune on, and all rows, whose columns have types by then."""
    given = settings.tune is None and settings.columns is not None and not isinstance(settings.columns, Mapping)
    sample, everything = examples.peek() if given else examples.sample()
    if isinstance(examples, LabelledStream) and not sample.table.rows:
        raise DataError("the table has no rows; there is nothing to learn from")
    refuse_empty(sample.table)
    return sample.weighing(), everything


def declared_classes(classes: Any) -> LabelArray:
    """The declared classes as an array, none of them missing."""
    labels = sorted(classes) if isinstance(classes, set | frozenset) else classes
    found = encode_labels(labels, len(labels))
    if (found.codes < 0).any():
        raise UsageError(f"classes={classes!r}: a missing value is no class")
    return found.classes
