"""Validation of the contents of a model file."""

import math
import re
from functools import singledispatch
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deciban.model.conformity import HALF
from deciban.model.corrections import OTHER_BIN, Corrections
from deciban.model.counts import Counts
from deciban.model.fitted import Fitted, list_in_order
from deciban.model.partial_rows import SCALED_SHARES, PartialRows
from deciban.model.tuning import Tuning
from deciban.schema.schema import Schema
from deciban.statistics import Bins, Combined, Levels, Moments, Scatter, Totals, Tuples, Vocabulary, Words
from deciban.statistics.bins import MAX_BINS, MAX_EXPONENT, MIN_EXPONENT, find_edges
from deciban.statistics.exact import MAX_DIGITS, ExactSums
from deciban.statistics.vocabulary import BUCKET_MARK, bucket_number
from deciban.store.values import MAX_QUESTIONS
from deciban.util.arrays import TOO_LARGE, Floats
from deciban.util.sparse import SparseRows

# Maximum number of columns, to limit memory for damaged files.
MAX_COLUMNS = 1 << 24

# Maximum number of columns outside all column groups: each takes memory when rows are read, but no byte of the file.
MAX_UNUSED_COLUMNS = 1 << 16

# Tolerance for covariance matrices, as a share of the variances, because of rounding.
COVARIANCE_ERROR = 1e-6

# Upper bound of variances: that of numbers up to TOO_LARGE.
VAST = 1e290

# Name of a bucket of rare words.
BUCKET = re.compile(BUCKET_MARK + "[0-9a-f]{6}")

# Maximum number of bins per corrected column: they are bytes.
MAX_CORRECTED_BINS = 256

# Maximum number of folds, to limit memory.
MAX_FOLDS = 1000

# Upper bound of corrections, in nats.
VAST_CORRECTION = 1e6


def require(fact: Any, what: str) -> None:
    if not fact:
        raise ValueError(what)


def check(fitted: Fitted) -> None:
    """Raise a ValueError that names the first invalid part."""
    check_counts(fitted.counts)
    if fitted.tuning is not None:
        check_tuning(fitted.tuning, fitted.counts)
    if fitted.order is not None and fitted.listed is not None:
        listed = set(list_in_order(fitted.classes) or ())
        require(listed <= set(fitted.listed), "a class has no place in the order of the classes")
    seen = fitted.counts.class_weight > 0.0
    require(not seen.any() or np.isfinite(fitted.log_prior[seen]).any(), "no class has a positive prior")
    require(all(len(shard) == 64 and not shard.strip("0123456789abcdef") for shard in fitted.origin.shards), "shards")


def check_counts(counts: Counts) -> None:
    check_schema(counts.schema)
    classes = counts.classes
    require(classes.ndim == 1, "the classes are not a list")
    require(classes.dtype.kind != "f" or np.isfinite(classes).all(), "a class is not a number")
    require((classes[:-1] < classes[1:]).all(), "the classes are not sorted")
    require(counts.class_weight.shape == classes.shape, "the classes and their weights differ in number")
    _not_negative(counts.class_weight, "a class")
    require(counts.class_weight.any() or not counts.rows, "no row has a weight")
    require(counts.declared or (counts.class_weight > 0.0).all(), "a class has no rows")
    require(counts.rows >= 0 and counts.unlabeled >= 0, "a number of rows is negative")
    require(counts.epsilon is None or counts.epsilon > 0.0, "the epsilon of released counts is not positive")
    require(
        len(counts.statistics) == len(counts.schema.groups), "the column groups and their statistics differ in number"
    )
    for group, statistic in zip(counts.schema.groups, counts.statistics, strict=True):
        template = group.family.empty(classes.size, len(group.columns))
        require(type(statistic) is type(template), f"{group.family} has a {type(statistic).__name__}")
        check_statistic(statistic, template, classes.size)
        group.family.check_statistic(statistic)


def check_schema(schema: Schema) -> None:
    names = schema.names
    used = {column for group in schema.groups for column in group.columns}
    require(0 <= schema.width <= min(MAX_COLUMNS, len(used) + MAX_UNUSED_COLUMNS), "there are too many columns")
    require(names is None or (len(names) == schema.width == len(set(names))), "the number of column names is wrong")
    for facts in (schema.types, schema.looks_like):
        require(facts is None or len(facts) == schema.width, "the number of column types is wrong")
    taken: set[int] = set()
    for group in schema.groups:
        columns = set(group.columns)
        require(
            columns and len(columns) == len(group.columns) == len(group.reasons),
            "the number of reasons in a column group is wrong",
        )
        require(min(columns) >= 0 and max(columns) < schema.width, "a column group has an unknown column")
        alpha = getattr(group.family, "alpha", 0.0)
        require(not isinstance(alpha, tuple) or len(alpha) == len(columns), "the number of smoothing values is wrong")
        if not group.auxiliary:
            require(not columns & taken, "a column is in two column groups")
            taken |= columns


def check_tuning(tuning: Tuning, counts: Counts) -> None:
    check_schema(tuning.schema)
    require(tuning.schema.names == counts.schema.names, "it was tuned for other columns")
    require(tuning.schema.width == counts.schema.width, "it was tuned for another number of columns")
    require(
        all(counts.schema.group_counting(group) is not None for group in tuning.schema.groups),
        "a column group was not counted",
    )
    require(tuning.weights.shape == (len(tuning.schema.block_names),), "the number of weights is wrong")
    _not_negative(tuning.weights, "the weight of a block")
    require(
        tuning.bias.shape == counts.classes.shape and np.isfinite(tuning.bias).all(), "the number of biases is wrong"
    )
    require(tuning.accuracy is None or 0.0 <= tuning.accuracy <= 1.0, "the accuracy is not between 0 and 1")
    require(tuning.log_loss is None or 0.0 <= tuning.log_loss < np.inf, "the log-loss is negative or not a number")

    require(tuning.correction_rows >= 0, "the number of rows of the corrections is negative")
    require(tuning.cap > 0.0, "the cap is not positive")
    require(tuning.limit > 0.0, "the limit is not positive")
    if tuning.corrections is not None:
        check_corrections(tuning.corrections, counts)
    if tuning.partial is not None:
        check_partial(tuning.partial, tuning)
    require(tuning.fold_gain is None or 0.0 <= tuning.fold_gain < np.inf, "the gain of the corrections is not a number")
    if tuning.conformity is not None:
        scores = tuning.conformity.counts
        require(scores.shape == (counts.classes.size, 2 * HALF), "the conformity scores have the wrong shape")
        _not_negative(scores, "a conformity score")
    if (unlabeled := tuning.unlabeled) is not None:
        require(unlabeled.rows >= 0 and unlabeled.rounds >= 1, "the number of rows without a label or rounds is wrong")
        require(0.0 < unlabeled.weight < np.inf, "the weight of rows without a label is not positive")
        losses = np.array([unlabeled.log_loss, unlabeled.ignored_log_loss])
        require(((losses >= 0.0) & (losses < np.inf)).all(), "a log-loss of labeled rows is negative or not a number")
    if unlabeled is not None and (expected := unlabeled.counts) is not None:
        check_counts(expected)
        same = expected.schema == counts.schema and np.array_equal(expected.classes, counts.classes)
        require(same and not expected.class_weight.any(), "the rows without a label were counted for another model")


def check_partial(partial: PartialRows, tuning: Tuning) -> None:
    """Raise a ValueError if the parameters for missing cells are invalid."""
    width, informative = tuning.schema.width, partial.informative
    require(partial.offsets.shape == (width, tuning.bias.size), "the offsets have the wrong shape")
    require(np.isfinite(partial.offsets).all(), "an offset is infinite or not a number")
    beyond = np.abs(partial.bias - tuning.bias) > 1e-6 * (1.0 + np.abs(partial.offsets).sum(axis=0))
    require(not beyond.any(), "the offsets do not sum to the bias")
    require(partial.shares.shape == (width,), "the number of evidence shares is wrong")
    _not_negative(partial.shares, "a share of the evidence")
    require(partial.scales.shape == (len(SCALED_SHARES),), "the number of scales is wrong")
    _not_negative(partial.scales, "a scale")
    require((partial.scales > 0.0).all() and (partial.scales < VAST_CORRECTION).all(), "a scale is 0 or too large")
    require(informative.ndim == 1 and (np.diff(informative) > 0).all(), "the informative columns are not sorted")
    require(((informative >= 0) & (informative < width)).all(), "an informative column is unknown")
    require(0.0 < partial.min_share <= 1.0 + 1e-9, "the minimum share of the evidence is not between 0 and 1")


def check_corrections(corrections: Corrections, counts: Counts) -> None:
    columns, tests, values = corrections.columns, corrections.tests, corrections.values
    for column in columns:
        require(0 <= column.column < counts.schema.width, "a corrected column is unknown")
        require((column.cuts is None) != (column.levels is None), "a corrected column needs either cuts or levels")
        require(2 <= column.bins <= MAX_CORRECTED_BINS, "a corrected column has too many bins")
        if column.cuts is not None:
            require(
                column.cuts.ndim == 1 and np.isfinite(column.cuts).all(), "a cut of a corrected column is not a number"
            )
            require((np.diff(column.cuts) > 0.0).all(), "the cuts of a corrected column are not increasing")
        if (places := column.places) is not None:
            known = column.levels is not None and places.shape == (1 + corrections.folds, len(column.levels))
            require(known, "the bins of levels have the wrong shape")
            require((places >= OTHER_BIN).all(), "a level has the bin of missing cells")
            require((places[0, 1:] >= places[0, :-1]).all(), "the bins of levels are not increasing")
    require(
        tests.ndim == 3 and tests.shape[2] == 2 and 1 <= tests.shape[1] <= MAX_QUESTIONS,
        "the correction tables have the wrong shape",
    )
    cells = (len(tests), 1 << tests.shape[1])
    ended = np.maximum.accumulate(tests[:, :, 0] < 0, axis=1)
    require(len(tests) and np.array_equal(ended, tests[:, :, 0] < 0), "a correction table has a question after its end")
    require(
        columns and (tests[:, :, 0] >= -1).all() and (tests[:, :, 0] < len(columns)).all(),
        "a correction table has no question",
    )
    used = tests[:, :, 1][~ended]
    require(((used >= 0) & (used < MAX_CORRECTED_BINS)).all(), "a correction table uses an unknown bin")
    require(values.shape == (*cells, counts.classes.size), "the corrections have the wrong shape")
    require((np.abs(values) < VAST_CORRECTION).all(), "a correction is too large")
    require(corrections.rows.shape == cells, "the row weights of the corrections have the wrong shape")
    _not_negative(corrections.rows, "the weight of a corrected cell")
    require(2 <= corrections.folds <= MAX_FOLDS and corrections.fold.shape == cells[:1], "the number of folds is wrong")
    require(1 <= corrections.hashed <= len(columns), "no column determines the fold of a row")
    require(
        ((corrections.fold >= 0) & (corrections.fold < corrections.folds)).all(),
        "the fold of a correction table is wrong",
    )


def _not_negative(numbers: Floats, what: str) -> None:
    require(np.isfinite(numbers).all() and (numbers >= 0.0).all(), f"{what} is negative, infinite or not a number")


def _check_covariances(statistic: Scatter) -> None:
    """Raise a ValueError unless matrices are symmetric and positive semidefinite, except for rounding."""
    scatter, size = statistic.scatter, statistic.scatter.shape[1]
    require(np.allclose(scatter, np.swapaxes(scatter, 1, 2), rtol=1e-9, atol=0.0), "a covariance is not symmetric")
    own, error = np.diagonal(scatter, axis1=1, axis2=2), statistic.rounding_error
    rounding = 0.0 if error is None else size * error
    scale = 1.0 / np.sqrt(own + COVARIANCE_ERROR * own + rounding + (1.0 + statistic.weight[:, None]) / VAST)
    with np.errstate(over="ignore"):
        correlation = scatter * scale[:, :, None] * scale[:, None, :]
    require(np.abs(correlation).max(initial=0.0) <= 1.0, "a covariance is larger than its variances allow")
    correlation[:, range(size), range(size)] = 1.0
    try:
        np.linalg.cholesky(correlation)
    except np.linalg.LinAlgError:
        raise ValueError("a covariance matrix is not positive") from None


@singledispatch
def check_statistic(statistic: Any, template: Any, classes: int) -> None:
    """Raise a ValueError unless a statistic has the shape of an empty one and valid numbers."""
    raise ValueError(f"{type(statistic).__name__} is not a statistic of this family")


def _check_sums(sums: ExactSums, template: ExactSums) -> None:
    require(sums.limbs.dtype == np.int32 and sums.limbs.ndim, "sums are not integers")
    require(sums.shape == template.shape, "sums have the wrong shape")
    digits = sums.limbs.shape[-1]
    require(abs(sums.low) <= MAX_DIGITS and digits <= MAX_DIGITS, "a sum has too many digits")
    require(digits or not sums.low, "sums have no digits")
    cells = sums.limbs.reshape(math.prod(sums.shape), digits)
    require(not digits or (cells[:, 0].any() and cells[:, -1].any()), "sums have superfluous digits")


def _check_moments(statistic: Moments | Scatter, template: Moments | Scatter) -> None:
    for name in ("present", "first", "second"):
        _check_sums(getattr(statistic, name), getattr(template, name))
    error = statistic.rounding_error
    if error is not None:
        require(error.shape == template.first.shape, "rounding errors have the wrong shape")
        _not_negative(error, "a rounding error")
    for array in (statistic.weight, statistic.mean, statistic.scatter):
        require(np.isfinite(array).all(), "a moment is infinite or not a number")
    _not_negative(statistic.weight, "a weight")


@check_statistic.register
def _(statistic: Moments, template: Moments, classes: int) -> None:
    _check_moments(statistic, template)
    sums = statistic.first.nonzero() | statistic.second.nonzero()
    require(not (sums & (statistic.weight == 0.0)).any(), "cells without weight have values")
    _check_scatter(statistic, statistic.weight)


@check_statistic.register
def _(statistic: Scatter, template: Scatter, classes: int) -> None:
    _check_moments(statistic, template)
    sums = statistic.first.nonzero().any(axis=1) | statistic.second.nonzero().any(axis=1)
    require(not (sums & (statistic.weight == 0.0)).any(), "cells without weight have values")
    _check_scatter(statistic, statistic.weight[:, None])
    _check_covariances(statistic)


def _check_scatter(statistic: Moments | Scatter, weight: Floats) -> None:
    """Raise a ValueError if a scatter is negative beyond rounding, or a mean or variance is too large."""
    scatter, error = statistic.raw_scatter, statistic.rounding_error
    require((scatter >= (0.0 if error is None else -error)).all(), "a variance is negative")
    require((np.abs(statistic.mean) <= TOO_LARGE).all(), "a mean is too large")
    with np.errstate(over="ignore"):
        require(
            (scatter <= VAST * weight)[np.broadcast_to(weight, scatter.shape) > 0.0].all(), "a variance is too large"
        )


@check_statistic.register
def _(statistic: Totals, template: Totals, classes: int) -> None:
    for name in ("rows", "sums"):
        _check_sums(getattr(statistic, name), getattr(template, name))
        _not_negative(getattr(statistic, name).to_doubles()[0], "a total")
    require(not (statistic.sums.nonzero() & (statistic.present == 0.0)).any(), "cells without weight have values")


@check_statistic.register
def _(statistic: Levels, template: Levels, classes: int) -> None:
    require(
        len(statistic.levels) == len(statistic.tables) == len(template.levels), "the number of level lists is wrong"
    )
    for levels, table in zip(statistic.levels, statistic.tables, strict=True):
        _check_levels(levels)
        require(table.shape == (classes, len(levels)), "counts of levels have the wrong shape")
        _not_negative(table, "a count")


@check_statistic.register
def _(statistic: Tuples, template: Tuples, classes: int) -> None:
    require(len(statistic.levels) == len(template.levels), "the number of level lists is wrong")
    require(
        statistic.tuples.ndim == 2 and statistic.tuples.shape[1] == len(statistic.levels), "tuples have the wrong width"
    )
    require(statistic.table.shape == (classes, len(statistic.tuples)), "counts of tuples have the wrong shape")
    _not_negative(statistic.table, "a count")
    for j, levels in enumerate(statistic.levels):
        _check_levels(levels)
        codes = statistic.tuples[:, j]
        require((codes >= 0).all() and (codes < max(len(levels), 0)).all(), "a tuple has an unknown level")
    require(len(np.unique(statistic.tuples, axis=0)) == len(statistic.tuples), "a tuple occurs twice")


@check_statistic.register
def _(statistic: Bins, template: Bins, classes: int) -> None:
    require(len(statistic.columns) == len(template.columns), "the number of cells is wrong")
    for column in statistic.columns:
        edges, exponent = column.edges, column.exponent
        require(MIN_EXPONENT <= exponent <= MAX_EXPONENT, "the width of bins is invalid")
        require(edges.ndim == 1 and edges.size <= MAX_BINS, "there are too many bins")
        require(np.isfinite(edges).all() and (np.diff(edges) > 0.0).all(), "bins are not sorted")
        require(np.array_equal(edges, find_edges(edges, exponent)), "a bin does not begin at an edge")
        require(column.table.shape == (classes, edges.size), "counts of bins have the wrong shape")
        _not_negative(column.table, "a count")


@check_statistic.register
def _(statistic: Words, template: Words, classes: int) -> None:
    require(
        len(statistic.vocabularies) == len(statistic.counts) == len(template.counts),
        "the number of vocabularies is wrong",
    )
    require(
        statistic.max_features == template.max_features, "the maximum number of words differs from that of the family"
    )
    require(statistic.text_weight.shape == template.text_weight.shape, "numbers of texts have the wrong shape")
    _not_negative(statistic.text_weight, "a number of texts")
    for words, counts in zip(statistic.vocabularies, statistic.counts, strict=True):
        _check_words(words, statistic.buckets)
        _check_sparse(counts, classes, len(words))


def _check_sparse(rows: SparseRows, size: int, width: int) -> None:
    data, indices, indptr = rows.data, rows.indices, rows.indptr
    types = [array.dtype.name for array in (data, indices, indptr)]
    require(types == ["float64", "int32", "int64"], "counts are not numbers")
    require(data.ndim == indices.ndim == indptr.ndim == 1 and data.size == indices.size, "counts are not a list")
    require(indptr.size == size + 1 and rows.width == width, "counts of words have the wrong shape")
    require(indptr[0] == 0 and indptr[-1] == data.size and (np.diff(indptr) >= 0).all(), "counts have an invalid class")
    require(((indices >= 0) & (indices < width)).all(), "counts have an invalid word")
    place = np.repeat(np.arange(size), np.diff(indptr)) * np.int64(width) + indices
    require((np.diff(np.sort(place)) > 0).all(), "a word is counted twice")
    _not_negative(data, "a count")


def _check_words(words: Vocabulary, buckets: int) -> None:
    starts = words.starts
    require(starts.ndim == 1 and words.text.ndim == 1 and starts.size, "the words are not a list")
    require(
        starts[0] == 0 and starts[-1] == words.text.size and (starts[1:] > starts[:-1]).all(),
        "a word has a negative length",
    )
    require(len(words) < 1 << 31, "there are too many words")
    bytes(words.text).decode()
    require(words.is_unique, "a word occurs twice")
    require(not (words.text[words.starts[words.bucket_count : -1]] == 0).any(), "rare words do not come first")
    require(
        all(BUCKET.fullmatch(words[k]) for k in range(words.bucket_count)),
        "a bucket of rare words has an invalid number",
    )
    require(
        all(bucket_number(words[k]) < buckets for k in range(words.bucket_count)),
        "a bucket of rare words has an invalid name",
    )


@check_statistic.register(Combined)
def _(statistic: Combined[Any, Any], template: Combined[Any, Any], classes: int) -> None:
    for part, model in zip(statistic.parts, template.parts, strict=True):
        require(type(part) is type(model), f"a {type(part).__name__} found instead of a {type(model).__name__}")
        check_statistic(part, model, classes)


def _check_levels(levels: pa.Array) -> None:
    require(not levels.null_count, "a level is missing")
    if pa.types.is_null(levels.type):
        return  # Arrow cannot sort values without a type
    require(not pa.types.is_floating(levels.type) or not pc.any(pc.is_nan(levels)).as_py(), "a level is not a number")
    order = pc.array_sort_indices(levels).to_numpy()
    require(np.array_equal(order, np.arange(order.size)), "levels are not sorted")
    require(pc.count_distinct(levels).as_py() == len(levels), "a level occurs twice")
