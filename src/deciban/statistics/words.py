"""Counts of the words of texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from deciban import kernels
from deciban.errors import ForgetError
from deciban.kernels.text_arrays import LabeledTexts
from deciban.statistics.base import subtract_counts
from deciban.statistics.vocabulary import NO_WORDS, UNKNOWN, Vocabulary, bucket_name, count_buckets
from deciban.util.arrays import Codes, Floats, Integers, scatter_to, sum_at, sum_columns_at
from deciban.util.sparse import SparseArrays, SparseRows

# A vocabulary, and the counts of its words, class by word.
Counted = tuple[Vocabulary, SparseRows]


def count_by_class(
    numbers: Codes, bounds: Integers, amounts: Floats | None, texts: LabeledTexts, words: int, classes: int
) -> SparseRows:
    """Sum the weights of texts for each of their words, class by word; words: the size of the vocabulary.

    See `kernels.word_index.count_words`.
    """
    max_cells = min(classes * words, int(np.diff(bounds)[texts.order].sum()))
    out = _allocate_cells(max_cells, classes)
    touched, each = np.empty(words + 1, dtype=np.int32), np.zeros(0) if amounts is None else amounts
    kernels.word_index.count_words(numbers, bounds, each, texts, np.zeros(words), touched, out)
    return _trim(out, np.maximum.accumulate(out.indptr), words)


def count_by_text(numbers: Codes, bounds: Integers, words: int) -> SparseRows:
    """Count how often each word occurs in each text, text by word; words: the size of the vocabulary."""
    out = _allocate_cells(numbers.size, bounds.size - 1)
    kernels.word_index.count_per_text(numbers, bounds, np.full(words, -1, dtype=np.int32), out)
    return SparseRows(*out, words)


def _allocate_cells(cells: int, rows: int) -> SparseArrays:
    return SparseArrays(np.empty(cells), np.empty(cells, dtype=np.int32), np.zeros(rows + 1, dtype=np.int64))


def _trim(out: SparseArrays, ends: Integers, width: int) -> SparseRows:
    """Return the rows without the unused space behind them."""
    return SparseRows(out.data[: ends[-1]], out.indices[: ends[-1]], ends, width)


@dataclass(frozen=True)
class Words:
    """Words of each column of texts (those with a positive count), and their counts, class by word.

    Words are in order of first occurrence, or sorted by their bytes if `max_features` is set.

    text_weight: the weight of the texts that are not missing, class by column. max_features: the maximum number of
    words per column. The rarest words beyond it are counted in `buckets` by their hash. A word once counted as rare
    stays in its bucket for these texts, so its count may be too low, by at most the count of its bucket.
    """

    vocabularies: tuple[Vocabulary, ...]
    counts: tuple[SparseRows, ...]
    text_weight: Floats
    max_features: int | None = None

    @classmethod
    def empty(cls, classes: int, columns: int, max_features: int | None = None) -> Self:
        nothing = _make_empty(classes)
        return cls((NO_WORDS,) * columns, (nothing,) * columns, np.zeros((classes, columns)), max_features)

    @classmethod
    def of(cls, columns: Sequence[Counted], text_weight: Floats, max_features: int | None = None) -> Self:
        """Return the statistic of columns, from the words of each and their counts, class by word."""
        found = [_limit_words(_drop_unused(*column), max_features) for column in columns]
        return cls(tuple(words for words, _ in found), tuple(counts for _, counts in found), text_weight, max_features)

    @property
    def buckets(self) -> int:
        """Number of buckets for rare words."""
        return count_buckets(self.max_features)

    @property
    def tables(self) -> tuple[Floats, ...]:
        """Counts of each column as dense arrays, word by class."""
        return tuple(counts.dense().T for counts in self.counts)

    @property
    def sorted_words(self) -> Words:
        """The same counts with words sorted by their bytes, so that equal counts compare equal."""
        return self._with_columns([_sort(*column) for column in self._columns()], self.text_weight)

    def comparison_key(self) -> tuple[object, ...]:
        """Return values that are equal for counts of the same texts, in any order."""
        ordered = self.sorted_words
        return ordered.vocabularies, ordered.counts, ordered.text_weight, ordered.max_features

    def merge(self, other: Self) -> Words:
        found = [
            _limit_words(_add(*both), self.max_features) for both in zip(self._columns(), other._columns(), strict=True)
        ]
        return self._with_columns(found, self.text_weight + other.text_weight)

    def remove(self, other: Self, tolerance: float | None = None) -> Words:
        found = []
        for mine, theirs in zip(self._columns(), other._columns(), strict=True):
            words, have = _add(mine, _set_to_zero(theirs))
            words, taken = _add(_set_to_zero(mine), theirs)
            if self.max_features is not None:
                have, (words, taken) = _sort(words, have)[1], _sort(words, taken)
                taken = taken.with_values(_take_from_buckets(words, have, taken, self.buckets, tolerance is None))
            found.append(_drop_unused(words, have.with_values(subtract_counts(have.data, taken.data, tolerance))))
        return self._with_columns(found, subtract_counts(self.text_weight, other.text_weight, tolerance))

    def scale(self, factor: float) -> Words:
        scaled = [(words, counts.with_values(counts.stored * factor)) for words, counts in self._columns()]
        return self._with_columns(scaled, self.text_weight * factor)

    def reindex_classes(self, positions: Integers, size: int) -> Words:
        columns = [(words, _reindex_classes(counts, positions, size)) for words, counts in self._columns()]
        return self._with_columns(columns, scatter_to(self.text_weight, positions, size))

    def reindex_columns(self, positions: Integers, size: int) -> Words:
        columns = [(NO_WORDS, _make_empty(self.text_weight.shape[0]))] * size
        for column, position in zip(self._columns(), positions, strict=True):
            if position >= 0:
                columns[position] = column
        return self._with_columns(columns, scatter_to(self.text_weight, positions, size, axis=1))

    def _columns(self) -> list[Counted]:
        return list(zip(self.vocabularies, self.counts, strict=True))

    def _with_columns(self, columns: Sequence[Counted], texts: Floats) -> Words:
        return Words(
            tuple(words for words, _ in columns), tuple(counts for _, counts in columns), texts, self.max_features
        )


def _make_empty(classes: int) -> SparseRows:
    return SparseRows(np.zeros(0), np.zeros(0, dtype=np.int32), np.zeros(classes + 1, dtype=np.int64), 0)


def _add(mine: Counted, theirs: Counted) -> Counted:
    """Return the words of both, new ones last, and the sums of their counts."""
    (words, counts), (more, others) = mine, theirs
    if not len(words) or not len(more):
        return mine if len(words) else theirs
    numbers = words.look_up(more)
    new = np.flatnonzero(numbers == UNKNOWN)
    numbers[new] = np.arange(len(words), len(words) + new.size)
    if new.size:
        words = words.concat(more.take(new))
    out = _allocate_cells(counts.stored.size + others.stored.size, counts.indptr.size - 1)
    place = np.full(len(words), -1, dtype=np.int64)
    kernels.word_index.add_counts(counts.kernel_arrays(), others.kernel_arrays(), numbers, place, out)
    return words, _trim(out, out.indptr, len(words))


def _sort(words: Vocabulary, counts: SparseRows) -> Counted:
    """Return the words sorted by their bytes, and their counts."""
    order = words.sort_order
    place = np.empty(len(words), dtype=np.int32)
    place[order] = np.arange(len(words), dtype=np.int32)
    return words.take(order), counts.move_columns(place, counts.width)


def _set_to_zero(column: Counted) -> Counted:
    """Return the same words with counts of 0."""
    words, counts = column
    return words, counts.with_values(np.zeros(counts.stored.size))


def _reindex_classes(counts: SparseRows, positions: Integers, size: int) -> SparseRows:
    """Return the counts with class i at positions[i]; a negative position drops the class."""
    if np.array_equal(positions, np.arange(size)):
        return counts
    there = np.flatnonzero(positions >= 0)
    there = there[np.argsort(positions[there])]
    ends = np.cumsum(scatter_to(np.diff(counts.indptr), positions, size))
    kept = counts.take(there)
    return SparseRows(kept.data, kept.indices, np.concatenate([[0], ends]).astype(np.int64), counts.width)


def _drop_unused(words: Vocabulary, counts: SparseRows) -> Counted:
    """Drop words without a count."""
    if not counts.data.all():
        counts = counts.drop_zeros()
    there = np.zeros(len(words), dtype=np.bool_)
    there[counts.indices] = True
    if there.all():
        return words, counts
    place = np.cumsum(there, dtype=np.int32) - 1
    kept = words.take(np.flatnonzero(there))
    return kept, SparseRows(counts.data, place[counts.indices], counts.indptr, len(kept))


def _limit_words(column: Counted, max_features: int | None) -> Counted:
    """Keep the most frequent words, sorted, after the buckets of all others; None keeps all words."""
    if max_features is None:
        return column
    words, counts = _sort(*column)
    first = words.bucket_count
    if len(words) - first <= max_features:
        return words, counts
    order = np.argsort(-sum_at(counts.indices, counts.data, len(words))[first:], kind="stable") + first
    kept = np.sort(order[:max_features])
    rare = np.concatenate([np.arange(first), np.sort(order[max_features:])])
    distinct, place = np.unique(words.take(rare).buckets(count_buckets(max_features)), return_inverse=True)
    tail = Vocabulary.of([bucket_name(bucket) for bucket in distinct])
    there = np.empty(len(words), dtype=np.int64)
    there[rare], there[kept] = place, len(tail) + np.arange(kept.size)
    return tail.concat(words.take(kept)), counts.move_columns(there, len(tail) + kept.size)


def _take_from_buckets(words: Vocabulary, having: SparseRows, taking: SparseRows, buckets: int, strict: bool) -> Floats:
    """Return the count to remove from each stored cell.

    If a word has fewer counts than are to be removed, the rest is removed from its bucket. Counts of a bucket that are
    counted as words here are removed from all words of the bucket in proportion, because it is unknown which of them
    they were. strict: raise ForgetError if the bucket has too few counts.
    """
    have, taken = having.dense().T, taking.dense().T
    bucket = words.buckets(buckets)
    lacking = sum_columns_at(np.maximum(taken - have, 0.0).T, bucket, buckets).T
    taken = np.minimum(taken, have)
    first = bucket[: words.bucket_count]
    from_bucket = np.minimum(have[: first.size] - taken[: first.size], lacking[first])
    taken[: first.size] += from_bucket
    lacking[first] -= from_bucket
    left = sum_columns_at((have - taken).T, bucket, buckets).T
    if strict and (lacking > left + 1e-9 * sum_columns_at(have.T, bucket, buckets).T).any():
        raise ForgetError(
            "cannot forget these rows: they contain words that were never counted",
            remedy="pass only rows the model was trained on",
        )
    share = np.divide(lacking, left, out=np.zeros_like(left), where=left > 0.0)
    taken += np.minimum(share, 1.0)[bucket] * (have - taken)
    return np.asarray(taken[having.indices, np.repeat(np.arange(taken.shape[1]), np.diff(having.indptr))])
