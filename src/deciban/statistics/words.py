"""Counts of the words of texts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import scipy

from deciban import kernels
from deciban.arrays import Codes, Floats, Integers, scatter_to, summed
from deciban.errors import ForgetError
from deciban.sparse import SparseRows
from deciban.statistics.base import remaining
from deciban.statistics.vocabulary import BUCKET_SEEDS, NO_WORDS, RARE, UNKNOWN, Vocabulary, sort_order

# The texts that count, class by class, and the label and weight of every text.
Labelled = tuple[Integers, Codes, Floats]


# Words, and their counts, class by word.
Counted = tuple[Vocabulary, SparseRows]


def counted_words(
    numbers: Codes, amounts: Floats | None, firsts: Integers, labelled: Labelled, known: int, classes: int
) -> SparseRows:
    """The weights of texts added up for each of their words, class by word; see `kernels.count_words`."""
    order, labels, weights = labelled
    most = min(classes * known, int(np.diff(firsts)[order].sum()))
    words, counts, ends = np.empty(most, dtype=np.int32), np.empty(most), np.zeros(classes + 1, dtype=np.int64)
    touched, each = np.empty(known + 1, dtype=np.int32), np.zeros(0) if amounts is None else amounts
    kernels.count_words(numbers, each, firsts, order, labels, weights, np.zeros(known), touched, words, counts, ends)
    ends = np.maximum.accumulate(ends)
    return SparseRows(counts[: ends[-1]], words[: ends[-1]], ends, known)


def gathered(numbers: Codes, firsts: Integers, words: int) -> SparseRows:
    """How often each of so many words is in each text."""
    place, indptr = np.full(words, -1, dtype=np.int32), np.zeros(firsts.size, dtype=np.int64)
    data, indices = np.empty(numbers.size), np.empty(numbers.size, dtype=np.int32)
    kernels.gather_numbers(numbers, firsts, place, data, indices, indptr)
    return SparseRows(data, indices, indptr, words)


@dataclass(frozen=True)
class Words:
    """For each column of texts its words (those with a positive count), their counts, class by word, and its texts.

    Words are in the order in which they came, or in that of their bytes if there may be no more than `most`.

    texts: the weight of the texts that are not missing, class by column. most: how many words a column may have; if
    there are more, the rarest are counted in `buckets` by their hash. What was taken for rare stays in its bucket, also
    if it comes again, so that the count of a word may be too low, by no more than what its bucket holds.
    """

    vocabularies: tuple[Vocabulary, ...]
    counts: tuple[SparseRows, ...]
    texts: Floats
    most: int | None = None

    @classmethod
    def empty(cls, classes: int, columns: int, most: int | None = None) -> Self:
        nothing = _no_counts(classes)
        return cls((NO_WORDS,) * columns, (nothing,) * columns, np.zeros((classes, columns)), most)

    @classmethod
    def of(cls, columns: Sequence[Counted], texts: Floats, most: int | None = None) -> Self:
        """Of words and their counts, class by word."""
        found = [_bounded(_occurring(*column), most) for column in columns]
        return cls(tuple(words for words, _ in found), tuple(counts for _, counts in found), texts, most)

    @property
    def buckets(self) -> int:
        return buckets_of(self.most)

    @property
    def tables(self) -> tuple[Floats, ...]:
        """The counts of each column, word by class, with all their zeros."""
        return tuple(counts.matrix().toarray().T for counts in self.counts)

    @property
    def in_sorted_order(self) -> "Words":
        """The same words in the order of their bytes: equal counts are then equal in all."""
        return self._holding([_sorted(*column) for column in self._columns()], self.texts)

    def comparable(self) -> tuple[object, ...]:
        """What counts of the same texts have in common, in whatever order these came."""
        ordered = self.in_sorted_order
        return ordered.vocabularies, ordered.counts, ordered.texts, ordered.most

    def merge(self, other: Self) -> "Words":
        found = [_bounded(_added(*both), self.most) for both in zip(self._columns(), other._columns(), strict=True)]
        return self._holding(found, self.texts + other.texts)

    def remove(self, other: Self) -> "Words":
        found = []
        for mine, theirs in zip(self._columns(), other._columns(), strict=True):
            words, have = _added(mine, _zero(theirs))
            words, taken = _added(_zero(mine), theirs)
            if self.most is not None:
                have, (words, taken) = _sorted(words, have)[1], _sorted(words, taken)
                taken = taken.with_values(_from_buckets(words, have, taken, self.buckets))
            found.append(_occurring(words, have.with_values(remaining(have.data, taken.data))))
        return self._holding(found, remaining(self.texts, other.texts))

    def scale(self, factor: float) -> "Words":
        scaled = [(words, counts.with_values(counts.stored * factor)) for words, counts in self._columns()]
        return self._holding(scaled, self.texts * factor)

    def place_classes(self, positions: Integers, size: int) -> "Words":
        columns = [(words, _placed_classes(counts, positions, size)) for words, counts in self._columns()]
        return self._holding(columns, scatter_to(self.texts, positions, size))

    def place_columns(self, positions: Integers, size: int) -> "Words":
        columns = [(NO_WORDS, _no_counts(self.texts.shape[0]))] * size
        for column, position in zip(self._columns(), positions, strict=True):
            if position >= 0:
                columns[position] = column
        return self._holding(columns, scatter_to(self.texts, positions, size, axis=1))

    def _columns(self) -> list[Counted]:
        return list(zip(self.vocabularies, self.counts, strict=True))

    def _holding(self, columns: Sequence[Counted], texts: Floats) -> "Words":
        return Words(tuple(words for words, _ in columns), tuple(counts for _, counts in columns), texts, self.most)


def _no_counts(classes: int) -> SparseRows:
    return SparseRows(np.zeros(0), np.zeros(0, dtype=np.int32), np.zeros(classes + 1, dtype=np.int64), 0)


def _added(mine: Counted, theirs: Counted) -> Counted:
    """The words of both, new ones behind, and the sum of their counts."""
    (words, counts), (more, others) = mine, theirs
    if not len(words) or not len(more):
        return mine if len(words) else theirs
    numbers = words.numbers_of(more)
    new = np.flatnonzero(numbers == UNKNOWN)
    numbers[new] = np.arange(len(words), len(words) + new.size)
    if new.size:
        words = words.followed_by(more.take(new))
    most, place = counts.stored.size + others.stored.size, np.full(len(words), -1, dtype=np.int64)
    data, indices, ends = np.empty(most), np.empty(most, dtype=np.int32), np.zeros_like(counts.indptr)
    kernels.add_counts(*counts.kernel_arrays(), *others.kernel_arrays(), numbers, place, data, indices, ends)
    return words, SparseRows(data[: ends[-1]], indices[: ends[-1]], ends, len(words))


def _sorted(words: Vocabulary, counts: SparseRows) -> Counted:
    """The words in the order of their bytes, and the counts of each class in that of its words."""
    order = sort_order(words)
    place = np.empty(len(words), dtype=np.int32)
    place[order] = np.arange(len(words), dtype=np.int32)
    moved = SparseRows(counts.data.copy(), place[counts.indices], counts.indptr, counts.width)
    return words.take(order), _with_sorted_cells(moved.matrix())


def _zero(column: Counted) -> Counted:
    """The same words, counted 0 times."""
    words, counts = column
    return words, counts.with_values(np.zeros(counts.stored.size))


def _placed_classes(counts: SparseRows, positions: Integers, size: int) -> SparseRows:
    """The counts with their classes at other places; those of a class without a place are dropped."""
    if np.array_equal(positions, np.arange(size)):
        return counts
    there = np.flatnonzero(positions >= 0)
    there = there[np.argsort(positions[there])]
    ends = np.cumsum(scatter_to(np.diff(counts.indptr), positions, size))
    kept = _as_stored(counts.matrix()[there])
    return SparseRows(kept.data, kept.indices, np.concatenate([[0], ends]).astype(np.int64), counts.width)


def _with_sorted_cells(matrix: "scipy.sparse.csr_array") -> SparseRows:
    """The rows of a SciPy matrix with their cells in order; it is changed."""
    matrix.sort_indices()
    return _as_stored(matrix)


def _as_stored(matrix: "scipy.sparse.csr_array") -> SparseRows:
    """The rows of a SciPy matrix in the types of kernels and files."""
    return SparseRows(matrix.data, matrix.indices.astype(np.int32), matrix.indptr.astype(np.int64), matrix.shape[1])


def _occurring(words: Vocabulary, counts: SparseRows) -> Counted:
    """The words that were counted."""
    if not counts.data.all():
        matrix = counts.with_values(counts.stored.copy()).matrix()
        matrix.eliminate_zeros()
        counts = _as_stored(matrix)
    there = np.zeros(len(words), dtype=np.bool_)
    there[counts.indices] = True
    if there.all():
        return words, counts
    place = np.cumsum(there, dtype=np.int32) - 1
    kept = words.take(np.flatnonzero(there))
    return kept, SparseRows(counts.data, place[counts.indices], counts.indptr, len(kept))


def buckets_of(most: int | None) -> int:
    """How many buckets there are for the words beyond so many: a power of two, about a fourth of them."""
    return 0 if most is None else 1 << max(4, (most // 4 - 1).bit_length())


def _buckets(words: Vocabulary, buckets: int) -> Integers:
    """The bucket of each word; that of a bucket is itself."""
    found = np.empty(len(words), dtype=np.int64)
    kernels.word_buckets(words.padded, words.starts, buckets, BUCKET_SEEDS, found)
    for k in range(words.rare):
        found[k] = bucket_number(words[k])
    return found


def bucket_number(name: str) -> int:
    """The number of a bucket of rare words that has this name."""
    return int(name[len(RARE) :], 16)


def _bounded(column: Counted, most: int | None) -> Counted:
    """The most frequent words, so many, and the others in their buckets, which come first; in order, if there are."""
    if most is None:
        return column
    words, counts = _sorted(*column)
    first = words.rare
    if len(words) - first <= most:
        return words, counts
    table = counts.matrix().T.tocsr()
    order = np.argsort(-table[first:].sum(axis=1), kind="stable") + first
    kept, rare = np.sort(order[:most]), np.concatenate([np.arange(first), np.sort(order[most:])])
    distinct, place = np.unique(_buckets(words.take(rare), buckets_of(most)), return_inverse=True)
    tail = Vocabulary.of([f"{RARE}{bucket:06x}" for bucket in distinct])
    into = scipy.sparse.csr_array((np.ones(rare.size), (place, np.arange(rare.size))), shape=(len(tail), rare.size))
    table = scipy.sparse.vstack([into @ table[rare], table[kept]], format="csr")
    return tail.followed_by(words.take(kept)), _with_sorted_cells(table.T.tocsr())


def _from_buckets(words: Vocabulary, having: SparseRows, taking: SparseRows, buckets: int) -> Floats:
    """What is to be taken of the stored cells, where that of a word that is not there in full is taken from its bucket.

    What was counted in a bucket of its own and is a word here is taken from the words of this bucket, a share of each:
    which of them it was, nobody knows.
    """
    have, taken = having.matrix().toarray().T, taking.matrix().toarray().T
    bucket = _buckets(words, buckets)
    lacking = summed(np.maximum(taken - have, 0.0).T, bucket, buckets).T
    taken = np.minimum(taken, have)
    first = bucket[: words.rare]
    from_bucket = np.minimum(have[: first.size] - taken[: first.size], lacking[first])
    taken[: first.size] += from_bucket
    lacking[first] -= from_bucket
    left = summed((have - taken).T, bucket, buckets).T
    if (lacking > left + 1e-9 * summed(have.T, bucket, buckets).T).any():
        raise ForgetError(
            "these rows cannot be forgotten: they have words that were never counted; "
            "give just the rows that the model has learned"
        )
    share = np.divide(lacking, left, out=np.zeros_like(left), where=left > 0.0)
    taken += np.minimum(share, 1.0)[bucket] * (have - taken)
    return np.asarray(taken[having.indices, np.repeat(np.arange(taken.shape[1]), np.diff(having.indptr))])
