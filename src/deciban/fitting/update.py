"""Update a fitted model: learn, forget, add, subtract, merge, retune.

Every function returns a new `Fitted` and changes nothing in place: after an error, the old model is unchanged.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations
from typing import Any

import numpy as np

from deciban.errors import (
    Argument,
    DataError,
    ForgetError,
    Labels as ListedLabels,
    Message,
    SchemaError,
    UsageError,
    warn_user,
)
from deciban.fitting.fit import (
    Plan,
    check_something_learned,
    complete_tuning,
    count_examples,
    encode_classes,
    find_class_order,
    finish,
    fit,
    open_examples,
    warn_about_labels,
    warn_about_time,
)
from deciban.fitting.left_out import MAX_CONFORMITY_ROWS, learn_conformity
from deciban.fitting.tune.propose import relearn_weights
from deciban.fitting.tune.rows import Rows
from deciban.model.conformity import Conformity
from deciban.model.counts import Counts
from deciban.model.fitted import About, Fitted
from deciban.model.model import posteriors
from deciban.model.priors import prior_of
from deciban.model.tuning import Tuning
from deciban.schema.infer import Defaults, extend_schema
from deciban.schema.schema import Schema
from deciban.sources.streams import Examples, LabeledStream
from deciban.store import model_file
from deciban.store.model_file import identity, shards_of
from deciban.tables.labels import MISSING_LABEL, UNKNOWN_LABEL, Labels
from deciban.util.arrays import Codes, Floats, Integers
from deciban.util.budget import Budget
from deciban.util.progress import one_call
from deciban.util.text_tables import list_names

# Expected counts below this are rounding errors.
EXPECTED_TOLERANCE = 1e-9

# Types of labels in a file, in words. Dates are not listed: they are read as written.
LABELS_IN_WORDS = {"VARCHAR": "text", "DOUBLE": "numbers", "BOOLEAN": "true and false"}


def learn_more(
    fitted: Fitted, X: Any, y: Any, sample_weight: Any = None, classes: Any = None, pushdown: bool = False
) -> Fitted:
    """Learn more rows. The tuning is kept, and marked as stale.

    classes: all possible labels; default: those of the settings.
    """
    settings, known = fitted.settings, fitted.counts
    declared = settings.classes if classes is None else classes
    if not known.class_weight.any():  # nothing was learned yet
        declared = (fitted.origin.order or known.classes) if known.declared else declared
        return fit(settings, X, y, sample_weight, classes=declared, partial=True, pushdown=pushdown)
    settings.check()
    _check_order(fitted, find_class_order(settings, X, y))
    examples = open_examples(fitted, X, y, sample_weight, pushdown)
    with examples.locate_errors():
        schema, everything = _extend_schema(fitted, examples)
        known = known.extend_schema(schema)
        known = known if declared is None else known.declare_classes(encode_classes(declared))
        counted = count_examples(schema, everything, settings.threads)
        _check_label_type(examples, counted, known)
        warn_about_labels(examples, counted, fitted.counts)
        if not counted.rows and not counted.unlabeled and known.classes.size == fitted.classes.size:
            return fitted
        return replace_counts(fitted, known + counted)


def _check_order(fitted: Fitted, given: tuple[Any, ...] | None) -> None:
    """Raise a DataError if labels order the classes in another way than the model."""
    known = fitted.origin.order or ()
    both = [[label for label in one if label in two] for one, two in permutations((known, given or ()))]
    if both[0] != both[1]:
        raise DataError(
            (
                "the classes of the model are in the order ",
                ListedLabels(both[0]),
                ", those of the labels in the order ",
                ListedLabels(both[1]),
            ),
            remedy="use the same order",
        )


def forget(fitted: Fitted, X: Any, y: Any, sample_weight: Any = None, pushdown: bool = False) -> Fitted:
    """Forget rows: return the model as if it had not learned them."""
    examples = open_examples(fitted, X, y, sample_weight, pushdown)
    with examples.locate_errors():
        rows = count_examples(fitted.counts.schema, examples, fitted.settings.threads)
        name = identity(rows)
        absent = _find_missing_columns(fitted.counts.schema, examples.names)
        if absent and name not in shards_of(fitted):
            raise _make_forget_error(absent)
        remaining = fitted.counts - rows
        if not remaining.class_weight.any():
            raise ForgetError("cannot forget all rows that the model was trained on: nothing would be left")
        left = replace_counts(fitted, remaining)
    return replace(left, origin=left.origin.remove_shards(name))


def warn_left_out_in_part(fitted: Fitted) -> bool:
    """Warn and return True if leaving out learned rows leaves their part in expected counts."""
    if fitted.learned is fitted.counts:
        return False
    warn_user(
        "labeled rows had a part in the expected counts of rows without a label, which are not left out with them: the "
        "result is too good; cross-validate, or use new rows"
    )
    return True


def retune(
    fitted: Fitted,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    already_learned: bool = True,
    max_seconds: float | None = None,
) -> Fitted:
    """Relearn weights and corrections from these rows, for the same counts; `already_learned`: they are counted."""
    if already_learned:
        fitted.counts.check_no_noise()
    too_good = already_learned and warn_left_out_in_part(fitted)
    budget = Budget.of(max_seconds)
    examples = open_examples(fitted, X, y, sample_weight)
    with one_call(), examples.locate_errors():
        rows, everything = examples.sample()
        labels = replace(
            rows.labels, classes=fitted.classes, codes=find_class_places(fitted, rows.labels, rows.weights)
        )
        tuning = Tuning.plain(fitted.counts) if fitted.tuning is None else fitted.tuning
        table = fitted.counts.schema.table_as_learned(rows.table)
        tuning = replace(
            tuning, corrections=None, correction_rows=0, fold_gain=None, cap=np.inf, limit=np.inf, partial=None
        )
        tuning, used = relearn_weights(tuning, fitted.counts, table, labels, rows.weights, already_learned, budget)
        used = replace(used, budget=budget)
        tuning = complete_tuning(tuning, fitted.counts, used, everything, fitted.settings, already_learned)
        tuning = replace(tuning, accuracy=None, log_loss=None) if too_good else tuning
    warn_about_time(budget)
    return replace(fitted, counts=fitted.counts.end_privacy(), tuning=tuning)


def conformalize(fitted: Fitted, X: Any, y: Any, sample_weight: Any = None, *, already_learned: bool = True) -> Fitted:
    """Return the model with conformity scores of these rows; `already_learned`: each is left out of the counts."""
    examples = open_examples(fitted, X, y, sample_weight)
    with examples.locate_errors():
        drawn, _ = examples.sample(MAX_CONFORMITY_ROWS)
        table = fitted.counts.schema.table_as_learned(drawn.table, drawn.first_row)
        places = find_class_places(fitted, drawn.labels, drawn.weights)
        rows = Rows.of(table, places, drawn.weights, fitted.classes.size, MAX_CONFORMITY_ROWS)
        rows = replace(rows.among(fitted.classes, fitted.counts), threads=fitted.settings.threads)
        tuning = Tuning.plain(fitted.counts) if fitted.tuning is None else fitted.tuning
        if already_learned:
            fitted.counts.check_no_noise()
            warn_left_out_in_part(fitted)
            tuning = learn_conformity(tuning, fitted.counts, fitted.settings.prior, rows)
        else:
            posterior = posteriors(fitted.model.log_joint(rows.table), fitted.log_prior)
            tuning = replace(tuning, conformity=Conformity.of(posterior, rows.labels, rows.weights))
    return replace(fitted, counts=fitted.counts.end_privacy(), tuning=tuning)


def shard(fitted: Fitted, X: Any, y: Any, sample_weight: Any = None, pushdown: bool = False) -> Fitted:
    """Count these rows alone, as `fitted` counts: the result can be added to it."""
    settings = fitted.settings
    settings.check()
    examples = open_examples(fitted, X, y, sample_weight, pushdown)
    with examples.locate_errors():
        schema, everything = _extend_schema(fitted, examples)
        counts = count_examples(schema, everything, settings.threads)
        _check_label_type(examples, counts, fitted.counts)
        warn_about_labels(examples, counts, fitted.counts)
        check_something_learned(counts, partial=True)
    try:
        prior = prior_of(settings.class_prior, counts)
    except UsageError:  # the prior names classes that are not in these rows
        settings = replace(settings, prior="empirical")
        prior = prior_of("empirical", counts)
    return Fitted(counts, prior, origin=fitted.origin.with_shards(()), settings=settings)


def fit_shards(plan: Plan, shards: Sequence[bytes], force: bool = False) -> Fitted:
    """Fit a plan from shards counted elsewhere; raise a DataError if they share rows, unless `force`."""
    names = [f"shard {k + 1}" for k in range(len(shards))]
    parts = [model_file.from_content(shard, name) for shard, name in zip(shards, names, strict=True)]
    counted = merge(parts, names, force)
    check_something_learned(counted.counts)
    found = finish(plan, plan.start + counted.counts)
    return replace(found, origin=found.origin.with_shards(shards_of(counted)))


def add(one: Fitted, other: Fitted, force: bool = False) -> Fitted:
    """Return the model of the rows of both; settings and tuning, which is then stale, are those of `one`.

    Models of different targets, or without a common column, raise a SchemaError unless `force`.
    """
    if other.counts.leaves_unchanged(one.counts):
        return one
    if one.counts.leaves_unchanged(other.counts):
        return other
    if not force:
        check_compatible(one, other)
    for name, mine, theirs in zip(("ordered", "monotone", "classes"), one.order_key, other.order_key, strict=True):
        if mine != theirs:
            raise SchemaError(
                (Argument(name), f" is {mine or None} in one and {theirs or None} in the other"),
                remedy="fit both with the same parameters",
            )
    both = replace_counts(one, one.counts + other.counts)
    origin = both.origin.with_shards((*shards_of(one), *shards_of(other)))
    about = one.about if other.about in (one.about, About()) else About()  # of neither
    if both.tuning is not None and (theirs := _move_scores(other, both.counts)) is not None:
        mine = both.tuning.conformity
        merged = replace(theirs, stale=True) if mine is None else mine + theirs
        both = replace(both, tuning=replace(both.tuning, conformity=merged))
    both = _combine_expected(both, one, other, added=True)
    return replace(both, origin=replace(origin, target=one.origin.target or other.origin.target), about=about)


def check_compatible(one: Fitted, other: Fitted) -> None:
    """Raise a SchemaError if two models predict different columns, or have no column in common.

    Targets and columns without a name, as those of arrays, may be the same.
    """
    mine, theirs = one.origin.target, other.origin.target
    if mine is not None and theirs is not None and mine != theirs:
        raise SchemaError(
            f"they predict different columns, {mine!r} and {theirs!r}",
            remedy=("merge models with the same target, or pass ", Argument("force", True)),
        )
    names, others = one.counts.schema.names, other.counts.schema.names
    if names and others and not set(names) & set(others):
        raise SchemaError(
            f"they have no column in common ({list_names(names, 3)}; {list_names(others, 3)})",
            remedy=("merge models with the same columns, or pass ", Argument("force", True)),
        )


def subtract(one: Fitted, other: Fitted) -> Fitted:
    """Return `one` as if it had not learned the rows of `other`."""
    if other.counts.leaves_unchanged(one.counts):
        return one
    absent = _find_missing_columns(one.counts.schema, other.counts.schema.names)
    if absent and not set(shards_of(other)) <= set(shards_of(one)):
        raise _make_forget_error(absent)
    left = replace_counts(one, one.counts - other.counts)
    mine, theirs = _move_scores(one, left.counts), _move_scores(other, left.counts)
    if (
        left.tuning is not None
        and mine is not None
        and theirs is not None
        and (rest := mine.remove(theirs)) is not None
    ):
        left = replace(left, tuning=replace(left.tuning, conformity=replace(rest, stale=True)))
    left = _combine_expected(left, one, other, added=False)
    return replace(left, origin=left.origin.remove_shards(*shards_of(other)))


def _move_scores(fitted: Fitted, counts: Counts) -> Conformity | None:
    """Return the conformity scores of a model, for the classes of other counts; None if it has none."""
    if fitted.tuning is None or fitted.tuning.conformity is None:
        return None
    return fitted.tuning.conformity.reindex_classes(_class_positions(fitted, counts), counts.classes.size)


def _class_positions(fitted: Fitted, counts: Counts) -> Integers:
    """Return the position of each class among those of other counts; negative if it is not one of them."""
    codes = Labels(fitted.classes, np.arange(fitted.classes.size, dtype=np.int32)).places_among(counts.classes)
    return codes.astype(np.int64)


def _combine_expected(result: Fitted, one: Fitted, other: Fitted, added: bool) -> Fitted:
    """Return a sum or a difference of models with that of their expected counts, if the first has some."""
    parts = []
    for model in (one, other):
        found = None if model.tuning is None else model.tuning.unlabeled
        moved = None if found is None else found.reindex(result.counts, _class_positions(model, result.counts))
        parts.append((moved, None if moved is None else moved.counts))
    (mine, a), (theirs, b) = parts
    if result.tuning is None or mine is None or a is None:
        return result
    if theirs is not None and b is not None:
        total, sign = (a + b, 1) if added else (a.subtract(b, tolerance=EXPECTED_TOLERANCE), -1)
        mine = replace(mine, counts=total, rows=max(mine.rows + sign * theirs.rows, 0))
    return replace(result, tuning=replace(result.tuning, unlabeled=mine))


def merge(models: Sequence[Fitted], names: Sequence[str], force: bool = False) -> Fitted:
    """Return the model of the rows of all models.

    Unless `force`, models that share rows, predict different columns or have no column in common raise a DataError.
    names: names of the models in messages.
    """
    total, owners = models[0], dict.fromkeys(shards_of(models[0]), names[0])
    for name, model in zip(names[1:], models[1:], strict=True):
        twice = [known for known in shards_of(model) if known in owners]
        if twice and not force:
            raise DataError(
                f"{owners[twice[0]]} and {name} were trained on the same rows",
                remedy=("leave one out, or pass ", Argument("force", True)),
            )
        owners.update(dict.fromkeys(shards_of(model), name))
        try:
            total = add(total, model, force)
        except (SchemaError, DataError, UsageError) as problem:
            where = f"{problem.place}: " if problem.place else ""
            wrong = () if problem.parameter is None else (problem.parameter, ": ")
            cause = problem.cause if isinstance(problem.cause, tuple) else (problem.cause,)
            unfit = f"{names[0]} and {name} cannot be merged: {where}"
            raise type(problem)((unfit, *wrong, *cause), remedy=problem.remedy) from problem
    return total


def share_rows(one: Fitted, other: Fitted) -> bool:
    """Return True if both models were trained on the same set of rows, among others."""
    return not set(shards_of(one)).isdisjoint(shards_of(other))


def set_prior(fitted: Fitted, prior: Any) -> Fitted:
    """Return the model with another prior; the likelihoods stay as they are."""
    settings, tuning = replace(fitted.settings, prior=prior), fitted.tuning
    if tuning is not None and tuning.conformity is not None:
        tuning = replace(tuning, conformity=replace(tuning.conformity, stale=True))
    return replace(fitted, log_prior=prior_of(prior, fitted.counts), tuning=tuning, settings=settings)


def replace_counts(fitted: Fitted, counts: Counts) -> Fitted:
    """Return the model with other counts: the tuning is kept, and stale; the names of shards are kept."""
    if not counts.class_weight.any():
        raise DataError("no rows would be left in the model", remedy="fit a new model instead")
    fitted.settings.order_classes(counts.classes, fitted.origin.order)
    tuning = None if fitted.tuning is None else fitted.tuning.mark_stale(counts, fitted.counts)
    origin = fitted.origin.with_shards(shards_of(fitted))
    return Fitted(counts, prior_of(fitted.settings.class_prior, counts), tuning, origin, fitted.settings, fitted.about)


def find_class_places(fitted: Fitted, labels: Labels, weights: Floats | None = None) -> Codes:
    """Return the class index of each label, -1 for missing ones; raise a DataError for an unknown label.

    Rows of weight 0 may have any label.
    """
    classes = fitted.model.classes
    places = labels.places_among(classes)
    unknown = places == UNKNOWN_LABEL
    counts = unknown if weights is None else unknown & (weights > 0.0)
    if counts.any():
        found = labels.label(int(np.flatnonzero(counts)[0]))
        raise DataError((f"the label {found!r} is not one of the model's classes ", ListedLabels(classes.tolist())))
    return np.where(unknown, np.int32(MISSING_LABEL), places)


def _extend_schema(fitted: Fitted, examples: Examples) -> tuple[Schema, Examples]:
    """Return the schema with the new columns of these rows, and the rows to count by it."""
    schema, settings = fitted.counts.schema, fitted.settings
    if schema.names is None or examples.names is None or set(examples.names) <= schema.columns_with_family:
        return schema, examples
    sample, everything = examples.sample()
    sample = sample.drop_zero_weights()
    defaults = Defaults(settings.alpha, settings.unseen, settings.orient_columns(fitted.order))
    return extend_schema(schema, sample.table, settings.families, defaults, sample.weights), everything


def _check_label_type(examples: Examples, rows: Counts, known: Counts) -> None:
    """Raise a DataError if labels have another type than the classes, so that they became new classes."""
    if not isinstance(examples, LabeledStream) or not known.classes.size:
        return
    old = set(known.classes.tolist())
    new = [label for label in rows.classes.tolist() if label not in old]
    found, text = examples.labels_look_like, known.classes.dtype.kind in "OU"
    remedy: Message = "correct the labels"
    if found in LABELS_IN_WORDS and (new or known.classes.dtype.kind == "b"):
        kind = "text" if text else "bool" if known.classes.dtype.kind == "b" else "number"
        read = Argument("types", {examples.target: kind})
        words = {"text": "text", "bool": "booleans", "number": "numbers"}[kind]
        remedy = (f"correct the labels, or read them as {words} with ", read)
    elif new and not text and rows.classes.dtype.kind in "OU":
        found = "VARCHAR"
    else:
        return
    shown = LABELS_IN_WORDS[found] + (f", such as {new[0]}" if new else "")
    raise DataError(
        f"the labels are {shown}, but the model's classes are {list_names(known.classes.tolist(), 6)}", remedy=remedy
    )


def _find_missing_columns(schema: Schema, names: tuple[str, ...] | None) -> list[str]:
    """Return the learned columns that are not among these."""
    return sorted(schema.columns_with_family.difference(names)) if names else []


def _make_forget_error(absent: list[str]) -> ForgetError:
    """Return the error for rows that lack a learned column: they would be forgotten only in part."""
    if len(absent) == 1:
        return ForgetError(
            f"cannot forget these rows: they lack the column {absent[0]!r}",
            remedy="if it was also missing in training, add it as an empty column",
        )
    return ForgetError(
        f"cannot forget these rows: they lack the columns {list_names(absent)}",
        remedy="if these were also missing in training, add them as empty columns",
    )
