"""From rows to what is known of them: fit, learn more, forget, add and subtract.

Every function returns a new `Fitted` and changes nothing: where one fails, what was known before stays as it was.
"""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from deciban.errors import DataError, ForgetError, SchemaError, UsageError
from deciban.fitting.plan import (
    Plan,
    completed,
    conclude,
    count_examples,
    declared_classes,
    defaults_of,
    plan_examples,
    refuse_nothing_learned,
)
from deciban.fitting.tune.propose import relearn_weights
from deciban.model.counts import Counts
from deciban.model.fitted import Fitted, Origin, Settings
from deciban.model.priors import prior_of
from deciban.model.tuning import Tuning
from deciban.schema.infer import extended
from deciban.schema.schema import Schema
from deciban.sources.labelled_stream import Examples, LabelledStream, Where
from deciban.sources.open import found_rows, open_rows
from deciban.sources.relations import RelationRows, is_relation
from deciban.sources.stream import Source, Stream
from deciban.store import model_file
from deciban.store.identity import identity
from deciban.store.model_file import shards_of
from deciban.tables.label_warnings import cut_off, spellings
from deciban.tables.labelled import LabelledTable
from deciban.tables.labels import MISSING_LABEL, UNKNOWN_LABEL, Labels
from deciban.util.arrays import Codes, Floats
from deciban.util.text_tables import listed

# What labels in a file look like, if they are not dates: these are taken as they are written.
LABELS_IN_WORDS = {"VARCHAR": "text", "DOUBLE": "numbers", "BOOLEAN": "true and false"}


def open_examples(fitted: Fitted | None, X: Any, y: Any, sample_weight: Any = None, where: Where = "here") -> Examples:
    """Rows with their labels and weights, which files hold in columns of their own.

    If something was learned before, columns of a file are read as the types they were learned with, and left out if
    they were left out then. where: whether they are to be counted here or by the engine that has them.
    """
    if where not in ("here", "engine"):
        raise UsageError(f"where={where!r}: choose 'here' or 'engine'")
    given = found_rows(X, files=isinstance(y, str))
    if where == "engine" and is_relation(given):
        given = RelationRows.of(given)
    types = {} if fitted is None else fitted.column_types(y if isinstance(y, str) else None)
    source = open_rows(given, types, None if fitted is None else fitted.origin.habit)
    if not isinstance(source, Stream):
        if where == "engine":
            raise UsageError(
                "where='engine': the rows are in memory, and no engine has them; leave where= out, or give a file, "
                "a query or a table of a database"
            )
        return LabelledTable.of(source, y, sample_weight)
    if isinstance(source, Source) and fitted is not None:
        source = source.without([name for name in fitted.origin.ignored if name in source.names])
    examples = LabelledStream.of(source, y, sample_weight, where)
    if isinstance(given, Source) and isinstance(source, Source) and source.looks_like(y) != given.looks_like(y):
        return replace(examples, labels_look_like=given.looks_like(y))
    return examples


def fit(
    settings: Settings,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    classes: Any = None,
    partial: bool = False,
    where: Where = "here",
) -> Fitted:
    """What is known after these rows alone; see `fit_examples`."""
    settings.check()
    examples = open_examples(None, X, y, sample_weight, where)
    with examples.naming():
        fitted = fit_examples(settings, examples, classes=classes, partial=partial)
    return replace(fitted, origin=_named(fitted.origin, y, sample_weight))


def _named(origin: Origin, y: Any, sample_weight: Any) -> Origin:
    """Where rows came from, with the columns of their labels and weights, where these were given by name."""
    target, weight = (name if isinstance(name, str) else None for name in (y, sample_weight))
    return replace(origin, target=target, weight=weight)


def plan(settings: Settings, X: Any, y: Any, sample_weight: Any = None) -> Plan:
    """How rows like these, with labels and weights in columns of these names, are to be counted."""
    settings.check()
    examples = open_examples(None, X, y, sample_weight)
    with examples.naming():
        found = plan_examples(settings, examples)
    return replace(found, origin=_named(found.origin, y, sample_weight))


def fit_shards(plan: Plan, shards: Sequence[bytes], force: bool = False) -> Fitted:
    """What is known from what was counted by a plan elsewhere; the same rows twice are refused, unless `force`."""
    names = [f"shard {k + 1}" for k in range(len(shards))]
    parts = [model_file.from_content(shard, name) for shard, name in zip(shards, names, strict=True)]
    counted = merge(parts, names, force)
    refuse_nothing_learned(counted.counts)
    found = conclude(plan, plan.start + counted.counts)
    return replace(found, origin=found.origin.with_shards(shards_of(counted)))


def fit_examples(settings: Settings, examples: Examples, *, classes: Any = None, partial: bool = False) -> Fitted:
    """What is known after these rows: the schema is inferred, structure chosen, all rows counted, weights learned.

    classes: all the labels there may be; without, those of the settings. partial: these are the first rows of more;
    they may lack columns that the settings name, and may weigh nothing.
    """
    plan = plan_examples(settings, examples, classes=classes, partial=partial, stacklevel=5)
    assert plan.everything is not None, "it was made here"
    counts = plan.start + count_examples(plan.schema, plan.everything, settings.threads)
    refuse_nothing_learned(counts, partial)
    _warn_of_labels(examples, counts, stacklevel=5)
    return conclude(plan, counts)


def learn_more(
    fitted: Fitted, X: Any, y: Any, sample_weight: Any = None, classes: Any = None, where: Where = "here"
) -> Fitted:
    """What is known after these rows too. The tuning is kept, and stale.

    classes: all the labels there may be; without, those of the settings.
    """
    settings, known = fitted.settings, fitted.counts
    declared = settings.classes if classes is None else classes
    if not known.class_weight.any():  # nothing was learned that could decide
        declared = known.classes if known.declared else declared
        return fit(settings, X, y, sample_weight, classes=declared, partial=True, where=where)
    settings.check()
    examples = open_examples(fitted, X, y, sample_weight, where)
    with examples.naming():
        schema, everything = _extended(fitted, examples)
        known = known.extended_to(schema)
        known = known if declared is None else known.declaring(declared_classes(declared))
        counted = count_examples(schema, everything, settings.threads)
        _refuse_other_labels(examples, counted, known)
        _warn_of_labels(examples, counted, fitted.counts)
        if not counted.rows and not counted.unlabelled and known.classes.size == fitted.classes.size:
            return fitted
        return with_counts(fitted, known + counted)


def forget(fitted: Fitted, X: Any, y: Any, sample_weight: Any = None, where: Where = "here") -> Fitted:
    """What would be known had these rows not been learned."""
    examples = open_examples(fitted, X, y, sample_weight, where)
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
    examples = open_examples(fitted, X, y, sample_weight)
    with examples.naming():
        rows, everything = examples.sample()
        labels = replace(rows.labels, classes=fitted.classes, codes=places_of(fitted, rows.labels, rows.weights))
        tuning = Tuning.plain(fitted.counts) if fitted.tuning is None else fitted.tuning
        table = fitted.counts.schema.table_as_learned(rows.table)
        tuning = replace(tuning, corrections=None, cap=np.inf, partial=None)
        tuning, used = relearn_weights(tuning, fitted.counts, table, labels, rows.weights, learned)
        tuning = completed(tuning, fitted.counts, used, everything, fitted.settings, learned)
    return replace(fitted, tuning=tuning)


def shard(fitted: Fitted, X: Any, y: Any, sample_weight: Any = None, where: Where = "here") -> Fitted:
    """These rows alone, counted as `fitted` counts: what is to be added to it."""
    settings = fitted.settings
    settings.check()
    examples = open_examples(fitted, X, y, sample_weight, where)
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


def add(one: Fitted, other: Fitted, force: bool = False) -> Fitted:
    """What is known from the rows of both; the settings and the tuning, which is stale then, are those of `one`.

    Models of different targets, or without a common column, raise a SchemaError unless `force`.
    """
    if other.counts.adds_nothing_to(one.counts):
        return one
    if one.counts.adds_nothing_to(other.counts):
        return other
    if not force:
        _refuse_other_question(one, other)
    both = with_counts(one, one.counts + other.counts)
    origin = both.origin.with_shards((*shards_of(one), *shards_of(other)))
    return replace(both, origin=replace(origin, target=one.origin.target or other.origin.target))


def _refuse_other_question(one: Fitted, other: Fitted) -> None:
    """Raise a SchemaError if two models predict different columns, or have no column in common.

    Targets and columns without a name, as those of arrays, may be the same.
    """
    mine, theirs = one.origin.target, other.origin.target
    if mine is not None and theirs is not None and mine != theirs:
        raise SchemaError(
            f"they predict different columns, {mine!r} and {theirs!r}; "
            "merge models of the same target, or pass force=True to merge()"
        )
    names, others = one.counts.schema.names, other.counts.schema.names
    if names and others and not set(names) & set(others):
        raise SchemaError(
            f"they have no column in common, {listed(names, 3)} against {listed(others, 3)}; "
            "merge models of the same columns, or pass force=True to merge()"
        )


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
    """What is known from the rows of all models.

    Unless `force`, models that share rows, predict different columns or have no column in common raise a DataError.
    names: what messages call the models.
    """
    total, owners = models[0], dict.fromkeys(shards_of(models[0]), names[0])
    for name, model in zip(names[1:], models[1:], strict=True):
        twice = [known for known in shards_of(model) if known in owners]
        if twice and not force:
            raise DataError(
                f"{owners[twice[0]]} and {name} have learned the same rows; leave one out, or pass force=True"
            )
        owners.update(dict.fromkeys(shards_of(model), name))
        try:
            total = add(total, model, force)
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


def _extended(fitted: Fitted, examples: Examples) -> tuple[Schema, Examples]:
    """The schema with the columns of these rows that it does not know yet, and the rows to be counted by it."""
    schema, settings = fitted.counts.schema, fitted.settings
    if schema.names is None or examples.names is None or set(examples.names) <= schema.columns_with_family:
        return schema, examples
    sample, everything = examples.sample()
    sample = sample.weighing()
    return extended(schema, sample.table, settings.columns, defaults_of(settings), sample.weights), everything


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
