"""From rows to what is known of them: fit, learn more, forget, add and subtract.

Every function returns a new `Fitted` and changes nothing: where one fails, what was known before stays as it was.
"""

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from deciban.arrays import Codes, Floats
from deciban.counting import batches, count_batches
from deciban.counts import Counts
from deciban.decisions.priors import check_prior, prior_of
from deciban.errors import DataError, ForgetError, SchemaError, UsageError
from deciban.files.labelled_stream import Examples, LabelledStream
from deciban.files.locate import scan
from deciban.files.open import open_rows
from deciban.files.stream import Source, Stream
from deciban.fitted import Fitted, Origin, Settings
from deciban.schema.infer import Defaults, check_columns, extended, infer_schema
from deciban.schema.schema import Schema
from deciban.store.identity import identity
from deciban.store.model_file import shards_of
from deciban.tables.label_warnings import cut_off, spellings, too_many
from deciban.tables.labelled import LabelledTable
from deciban.tables.labels import MISSING_LABEL, UNKNOWN_LABEL, LabelArray, Labels, encode_labels
from deciban.tables.table import Table
from deciban.text_tables import listed
from deciban.tune.correct import correct, may_correct, rows_to_correct, with_cap
from deciban.tune.propose import propose, relearn_weights, reweigh
from deciban.tune.rows import Rows
from deciban.tune.tuning import Tuning

# What labels in a file look like, if they are not dates: these are taken as they are written.
LABELS_IN_WORDS = {"VARCHAR": "text", "DOUBLE": "numbers", "BOOLEAN": "true and false"}


def open_examples(fitted: Fitted | None, X: Any, y: Any, sample_weight: Any = None) -> Examples:
    """Rows with their labels and weights, which files hold in columns of their own.

    If something was learned before, columns of a file are read as the types they were learned with, and left out if
    they were left out then.
    """
    given = scan(X) if isinstance(X, str | os.PathLike) else X
    types = {} if fitted is None else fitted.column_types(y if isinstance(y, str) else None)
    source = open_rows(given, types, None if fitted is None else fitted.origin.habit)
    if not isinstance(source, Stream):
        return LabelledTable.of(source, y, sample_weight)
    if isinstance(source, Source) and fitted is not None:
        source = source.without([name for name in fitted.origin.ignored if name in source.names])
    examples = LabelledStream.of(source, y, sample_weight)
    if isinstance(given, Source) and isinstance(source, Source) and source.looks_like(y) != given.looks_like(y):
        return replace(examples, labels_look_like=given.looks_like(y))
    return examples


def fit(
    settings: Settings, X: Any, y: Any, sample_weight: Any = None, *, classes: Any = None, partial: bool = False
) -> Fitted:
    """What is known after these rows alone; see `fit_examples`."""
    settings.check()
    examples = open_examples(None, X, y, sample_weight)
    target, weight = (name if isinstance(name, str) else None for name in (y, sample_weight))
    with examples.naming():
        fitted = fit_examples(settings, examples, classes=classes, partial=partial)
    return replace(fitted, origin=replace(fitted.origin, target=target, weight=weight))


def fit_examples(settings: Settings, examples: Examples, *, classes: Any = None, partial: bool = False) -> Fitted:
    """What is known after these rows: the schema is inferred, structure chosen, all rows counted, weights learned.

    classes: all the labels there may be; without, those of the settings. partial: these are the first rows of more;
    they may lack columns that the settings name, and may weigh nothing.
    """
    declared = settings.classes if classes is None else classes
    _check_before_reading(settings, examples, declared, partial)
    sample, everything = _sampled(settings, examples)
    notes = everything.notes or examples.notes
    defaults, rows = _defaults(settings), everything.expected
    schema = infer_schema(sample.table, settings.columns, defaults, partial, sample.weights, rows).with_notes(notes)
    if not partial and (warning := too_many(sample.labels)):
        warnings.warn(warning, stacklevel=4)
    proposal = None
    if settings.tune is not None:
        proposal = propose(
            schema.table_as_learned(sample.table), sample.labels, sample.weights, schema, settings.threads
        )
        schema = proposal.schema
    start = Counts.empty(schema)
    start = start if declared is None else start.declaring(_declared(declared))
    counts = start + count_examples(schema, everything, settings.threads)
    refuse_nothing_learned(counts, partial)
    _warn_of_labels(examples, counts, stacklevel=5)
    tuning = None if proposal is None else reweigh(proposal, counts)
    if tuning is not None and settings.tune == "auto":
        tuning = _corrected(tuning, counts, everything, settings)
    tuning = None if tuning is None else replace(tuning, schema=tuning.schema.with_notes(notes))
    origin = Origin(ignored=examples.ignored, habit=everything.habit or examples.habit)
    return Fitted(counts, prior_of(settings.prior, counts), tuning, origin, settings)


def learn_more(fitted: Fitted, X: Any, y: Any, sample_weight: Any = None, classes: Any = None) -> Fitted:
    """What is known after these rows too. The tuning is kept, and stale.

    classes: all the labels there may be; without, those of the settings.
    """
    settings, known = fitted.settings, fitted.counts
    declared = settings.classes if classes is None else classes
    if not known.class_weight.any():  # nothing was learned that could decide
        declared = known.classes if known.declared else declared
        return fit(settings, X, y, sample_weight, classes=declared, partial=True)
    settings.check()
    examples = open_examples(fitted, X, y, sample_weight)
    with examples.naming():
        schema, everything = _extended(fitted, examples)
        known = known.extended_to(schema)
        known = known if declared is None else known.declaring(_declared(declared))
        counted = count_examples(schema, everything, settings.threads)
        _refuse_other_labels(examples, counted, known)
        _warn_of_labels(examples, counted, fitted.counts)
        if not counted.rows and not counted.unlabelled and known.classes.size == fitted.classes.size:
            return fitted
        return with_counts(fitted, known + counted)


def forget(fitted: Fitted, X: Any, y: Any, sample_weight: Any = None) -> Fitted:
    """What would be known had these rows not been learned."""
    examples = open_examples(fitted, X, y, sample_weight)
    with examples.naming():
        rows = count_examples(fitted.counts.schema, examples, fitted.settings.threads)
        name = identity(rows)
        absent = _columns_missing_from(fitted.counts.schema, examples.names)
        if absent and name not in shards_of(fitted):
            raise _half_forgotten(absent)
        remaining = fitted.counts - rows
        if not remaining.class_weight.any():
            raise ForgetError("these are all the rows that were learned; nothing would be left of the model")
        left = with_counts(fitted, remaining)
    return replace(left, origin=left.origin.without(name))


def retune(fitted: Fitted, X: Any, y: Any, sample_weight: Any = None, *, learned: bool = True) -> Fitted:
    """The same counts with weights learned anew from these rows, which are among those counted if `learned`."""
    rows, everything = open_examples(fitted, X, y, sample_weight).sample()
    labels = replace(rows.labels, classes=fitted.classes, codes=places_of(fitted, rows.labels, rows.weights))
    tuning = Tuning.plain(fitted.counts) if fitted.tuning is None else fitted.tuning
    table = fitted.counts.schema.table_as_learned(rows.table)
    tuning = replace(tuning, corrections=None, cap=np.inf)
    tuning = relearn_weights(tuning, fitted.counts, table, labels, rows.weights, learned)
    if fitted.settings.tune == "auto":
        tuning = _corrected(tuning, fitted.counts, everything, fitted.settings, learned)
    return replace(fitted, tuning=tuning)


def _corrected(tuning: Tuning, counts: Counts, examples: Examples, settings: Settings, learned: bool = True) -> Tuning:
    """The tuning with corrections learned from these rows, as many of them as time allows."""
    classes, tuning = counts.classes.size, with_cap(tuning, counts)
    if not may_correct(tuning, classes):
        return tuning
    drawn, _ = examples.sample(rows_to_correct(counts.schema.width, classes))
    table = counts.schema.table_as_learned(drawn.table, drawn.first_row)
    codes = drawn.labels.places_among(counts.classes)
    rows = Rows.of(table, codes, drawn.weights, classes, table.rows).among(counts.classes, counts)
    return correct(tuning, counts, replace(rows, threads=settings.threads), learned)


def shard(fitted: Fitted, X: Any, y: Any, sample_weight: Any = None) -> Fitted:
    """These rows alone, counted as `fitted` counts: what is to be added to it."""
    settings = fitted.settings
    settings.check()
    examples = open_examples(fitted, X, y, sample_weight)
    with examples.naming():
        schema, everything = _extended(fitted, examples)
        counts = count_examples(schema, everything, settings.threads)
        _refuse_other_labels(examples, counts, fitted.counts)
        _warn_of_labels(examples, counts, fitted.counts)
        refuse_nothing_learned(counts, partial=True)
    try:
        prior = prior_of(settings.prior, counts)
    except UsageError:  # it names classes that are not in these rows
        settings = replace(settings, prior="empirical")
        prior = prior_of("empirical", counts)
    return Fitted(counts, prior, origin=fitted.origin.with_shards(()), settings=settings)


def add(one: Fitted, other: Fitted) -> Fitted:
    """What is known from the rows of both; the settings and the tuning, which is stale then, are those of `one`."""
    if other.counts.adds_nothing_to(one.counts):
        return one
    if one.counts.adds_nothing_to(other.counts):
        return other
    both = with_counts(one, one.counts + other.counts)
    return replace(both, origin=both.origin.with_shards((*shards_of(one), *shards_of(other))))


def subtract(one: Fitted, other: Fitted) -> Fitted:
    """What `one` would know had it not learned the rows of `other`."""
    if other.counts.adds_nothing_to(one.counts):
        return one
    absent = _columns_missing_from(one.counts.schema, other.counts.schema.names)
    if absent and not set(shards_of(other)) <= set(shards_of(one)):
        raise _half_forgotten(absent)
    left = with_counts(one, one.counts - other.counts)
    return replace(left, origin=left.origin.without(*shards_of(other)))


def merge(models: Sequence[Fitted], names: Sequence[str], force: bool = False) -> Fitted:
    """What is known from the rows of all models; rows that two of them have learned are refused, unless `force`.

    names: what messages call the models.
    """
    total, owners = models[0], dict.fromkeys(shards_of(models[0]), names[0])
    for name, model in zip(names[1:], models[1:], strict=True):
        twice = [known for known in shards_of(model) if known in owners]
        if twice and not force:
            raise DataError(f"{owners[twice[0]]} and {name} have learned the same rows; leave one out, or force it")
        owners.update(dict.fromkeys(shards_of(model), name))
        try:
            total = add(total, model)
        except (SchemaError, DataError, UsageError) as problem:
            raise type(problem)(f"{names[0]} and {name} do not fit together: {problem}") from problem
    return total


def with_prior(fitted: Fitted, prior: Any) -> Fitted:
    """The same with another prior; the likelihoods stay as they are."""
    settings = replace(fitted.settings, prior=prior)
    return replace(fitted, log_prior=prior_of(prior, fitted.counts), settings=settings)


def with_counts(fitted: Fitted, counts: Counts) -> Fitted:
    """The same with other counts: the tuning is kept, and stale; the names of shards are kept."""
    if not counts.class_weight.any():
        raise DataError("no row is left: all that was learned would weigh nothing; fit anew instead")
    tuning = None if fitted.tuning is None else fitted.tuning.after(counts, fitted.classes)
    origin = fitted.origin.with_shards(shards_of(fitted))
    return Fitted(counts, prior_of(fitted.settings.prior, counts), tuning, origin, fitted.settings)


def count_examples(schema: Schema, examples: Examples, threads: int | None = None) -> Counts:
    """The counts of all rows under a schema."""
    return count_batches(batches(examples, schema), Counts.empty(schema), threads, examples.expected)


def places_of(fitted: Fitted, labels: Labels, weights: Floats | None = None) -> Codes:
    """The places of labels among the model's classes, -1 where one is missing; a DataError where one is no class.

    Rows of weight 0 may have any label.
    """
    classes = fitted.model.classes
    places = labels.places_among(classes)
    unknown = places == UNKNOWN_LABEL
    counts = unknown if weights is None else unknown & (weights > 0.0)
    if counts.any():
        found = labels.label(int(np.flatnonzero(counts)[0]))
        raise DataError(f"the label {found!r} is none of the model's classes {classes.tolist()}")
    return np.where(unknown, np.int32(MISSING_LABEL), places)


def refuse_empty(table: Table) -> None:
    """A DataError where a table to learn from has no rows or no columns."""
    for count, what in ((table.rows, "sample(s)"), (table.width, "feature(s)")):
        if count == 0:
            raise DataError(
                f"Found array with 0 {what} (shape=({table.rows}, {table.width})) while a minimum of 1 is required: "
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


def _defaults(settings: Settings) -> Defaults:
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


def _extended(fitted: Fitted, examples: Examples) -> tuple[Schema, Examples]:
    """The schema with the columns of these rows that it does not know yet, and the rows to be counted by it."""
    schema, settings = fitted.counts.schema, fitted.settings
    if schema.names is None or examples.names is None or set(examples.names) <= schema.columns_with_family:
        return schema, examples
    sample, everything = examples.sample()
    sample = sample.weighing()
    return extended(schema, sample.table, settings.columns, _defaults(settings), sample.weights), everything


def _declared(classes: Any) -> LabelArray:
    """The declared classes as an array, none of them missing."""
    labels = sorted(classes) if isinstance(classes, set | frozenset) else classes
    found = encode_labels(labels, len(labels))
    if (found.codes < 0).any():
        raise UsageError(f"classes={classes!r}: a missing value is no class")
    return found.classes


def _warn_of_labels(examples: Examples, counts: Counts, known: Counts | None = None, stacklevel: int = 4) -> None:
    """Warn of labels that are probably not meant as they stand; `known` was learned before these were counted."""
    old = [] if known is None else known.classes.tolist()
    new = set(counts.classes.tolist()).difference(old)
    if new and (warning := spellings([*old, *sorted(new, key=str)])):
        warnings.warn(warning, stacklevel=stacklevel)
    unfinished = examples.unfinished_labels if isinstance(examples, LabelledStream) else ()
    before = None if known is None else known.classes
    if warning := cut_off(unfinished, counts.classes, counts.class_weight, before):
        warnings.warn(warning, stacklevel=stacklevel)


def _refuse_other_labels(examples: Examples, rows: Counts, known: Counts) -> None:
    """Refuse labels of another type than the classes, where reading them as that type made new classes or failed."""
    if not isinstance(examples, LabelledStream) or not known.classes.size:
        return
    old = set(known.classes.tolist())
    new = [label for label in rows.classes.tolist() if label not in old]
    found, text = examples.labels_look_like, known.classes.dtype.kind in "OU"
    remedy = "correct the labels"
    if found in LABELS_IN_WORDS and (new or known.classes.dtype.kind == "b"):
        kind = "text" if text else "bool" if known.classes.dtype.kind == "b" else "number"
        remedy += f", or read them as the classes are with types={{{examples.target!r}: {kind!r}}}"
    elif new and not text and rows.classes.dtype.kind in "OU":
        found = "VARCHAR"
    else:
        return
    shown = LABELS_IN_WORDS[found] + (f", such as {new[0]}" if new else "")
    raise DataError(
        f"the labels are {shown}, and the model's classes are {listed(known.classes.tolist(), 6)}; {remedy}"
    )


def _columns_missing_from(schema: Schema, names: tuple[str, ...] | None) -> list[str]:
    """The columns that were learned and are not among these."""
    return sorted(schema.columns_with_family.difference(names)) if names else []


def _half_forgotten(absent: list[str]) -> ForgetError:
    """Rows without a column that was learned would stay in it and go from others, unless they were learned so."""
    return ForgetError(
        f"these rows cannot be forgotten: the model has learned {listed(absent)}, which the table does not have; "
        f"correct the name, or add an empty column of it if the rows were learned without"
    )
