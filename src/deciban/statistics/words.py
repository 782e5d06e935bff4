"""Counts of the words of texts."""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import scipy

from deciban import kernels
from deciban.arrays import SPARE, Bytes, Codes, Floats, Integers, SparseRows, placed, summed
from deciban.errors import ForgetError
from deciban.statistics.base import remaining

# Nobody outside this process knows how it hashes words, so none can be chosen to collide. Buckets are the same
# anywhere.
SEEDS = np.frombuffer(secrets.token_bytes(40), dtype=np.uint64) | np.uint64(1)
BUCKET_SEEDS = np.array(
    [0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB, 0xD6E8FEB86659FD93, 0xA0761D6478BD642F], np.uint64
)

# What stands before the number of a bucket of rare words, where words would be; no word has it.
RARE = "\0"


@dataclass(frozen=True)
class Vocabulary:
    """Words, all different, in any order: one behind the other in `text`, each from its `starts` on."""

    text: Bytes
    starts: Integers

    @classmethod
    def of(cls, words: Sequence[str]) -> Self:
        """The distinct ones of these words."""
        encoded = sorted({word.encode() for word in words})
        starts = np.concatenate([[0], np.cumsum([len(word) for word in encoded])]).astype(np.int64)
        return cls(np.frombuffer(b"".join(encoded), dtype=np.uint8).copy(), starts)

    def __len__(self) -> int:
        return self.starts.size - 1

    def __getstate__(self) -> dict[str, object]:
        """Without the index: another process hashes by other seeds."""
        return {"text": self.text, "starts": self.starts}

    def __getitem__(self, number: int) -> str:
        return bytes(self.text[self.starts[number] : self.starts[number + 1]]).decode(errors="replace")

    @cached_property
    def array(self) -> pa.Array:
        """The words as an Arrow array, which shares their bytes."""
        buffers = [None, pa.py_buffer(self.starts), pa.py_buffer(self.text)]
        return pa.Array.from_buffers(pa.large_string(), len(self), buffers)

    @property
    def padded(self) -> Bytes:
        """The bytes of the words and some more, for kernels that read many at a time."""
        if "index" in self.__dict__:
            return self.index.text
        return np.concatenate([self.text, np.zeros(SPARE, dtype=np.uint8)])

    def take(self, order: Integers) -> "Vocabulary":
        """Some of the words in this order."""
        _, starts, text = self.array.cast(pa.large_binary()).take(pa.array(order)).buffers()
        if not order.size:
            return NO_WORDS
        ends = np.frombuffer(starts, dtype=np.int64)[: order.size + 1]
        return Vocabulary(np.frombuffer(text, dtype=np.uint8)[: ends[-1]].copy(), ends.copy())

    @cached_property
    def rare(self) -> int:
        """How many buckets of rare words there are; they come first."""
        number = 0
        while number < len(self) and self[number].startswith(RARE):
            number += 1
        return number

    @property
    def all_different(self) -> bool:
        """Whether no word is there twice."""
        return int(pc.count_distinct(self.array).as_py()) == len(self)

    @cached_property
    def index(self) -> "Index":
        """What its words are looked up by."""
        return self._indexed()

    def _indexed(self) -> "Index":
        text, size = self.padded, 16
        while need_more_entries(len(self), size):
            size *= 2
        entries = np.zeros((size, 4), dtype=np.uint64)
        kernels.index_words(text, self.starts, SEEDS, _room_for_hashes(), entries)
        return Index(entries, text, self.starts, len(self))

    def numbers_of(self, words: "Vocabulary") -> Codes:
        """The number that each of these words has here, or UNKNOWN. An index that is made for it is not kept."""
        here, texts = self.__dict__.get("index") or self._indexed(), np.array([0, len(words)])
        cut = words.padded, words.starts[:-1], words.starts[1:]
        return numbered(kernels.number_words, (texts,), cut, here, False, ALL_UNKNOWN, 1, len(words))[0]

    def followed_by(self, words: "Vocabulary") -> "Vocabulary":
        """These words and others behind them."""
        starts = np.concatenate([self.starts, words.starts[1:] + self.starts[-1]])
        return Vocabulary(np.concatenate([self.text, words.text]), starts)


# What texts are cut into: the bytes of words, where each begins, and where it stops.
Cut = tuple[Bytes, Integers, Integers]

# The texts that count, class by class, and the label and weight of every text.
Labelled = tuple[Integers, Codes, Floats]

# The number of a word that is not in a vocabulary.
UNKNOWN = np.iinfo(np.int32).max
ALL_UNKNOWN = np.array([UNKNOWN], dtype=np.int32)

# Words, and their counts, class by word.
Counted = tuple[Vocabulary, SparseRows]

NO_TAIL = np.zeros(0, dtype=np.int32)
NO_WORDS = Vocabulary(np.zeros(0, dtype=np.uint8), np.zeros(1, dtype=np.int64))


class Index(NamedTuple):
    """Words in the order in which they came, `known` of them, with room for more; see `kernels.words`."""

    entries: npt.NDArray[np.uint64]
    text: Bytes
    starts: Integers
    known: int

    @classmethod
    def empty(cls, size: int) -> Self:
        """Without words, for texts of so many bytes: with the room that most languages need."""
        entries = 1 << min(max(11, (size // 128).bit_length()), 18)
        text, starts = np.empty(size // 8 + 64, dtype=np.uint8), np.empty(entries // 2 + 1, dtype=np.int64)
        starts[0] = 0
        return cls(np.zeros((entries, 4), dtype=np.uint64), text, starts, 0)

    @property
    def words(self) -> Vocabulary:
        """The words as they came; unless there is room for far more, they know that they are looked up here."""
        words = Vocabulary(self.text[: self.starts[self.known]], self.starts[: self.known + 1])
        if 8 * self.known < len(self.entries):
            return words.take(np.arange(self.known))
        words.__dict__["index"] = self
        return words


def in_order(vocabulary: Vocabulary) -> Integers:
    """The numbers of the words in the order of their bytes."""
    firsts = np.empty(len(vocabulary), dtype=np.uint64)
    kernels.first_bytes(vocabulary.text, vocabulary.starts, firsts)
    order = np.argsort(firsts)
    kernels.sort_ties(vocabulary.text, vocabulary.starts, firsts, order, np.empty_like(order))
    return order


def need_more_entries(words: int, entries: int) -> bool:
    """Whether so many words need more entries; as `kernels.words` asks."""
    return 10 * words > 7 * entries


def _room_for_hashes() -> npt.NDArray[np.uint64]:
    from deciban.kernels.words import RUN

    return np.empty((RUN, 3), dtype=np.uint64)


def longer(array: npt.NDArray[Any], least: int) -> npt.NDArray[Any]:
    """The same array with twice the room, or `least`."""
    grown = np.empty(max(2 * array.size, least), dtype=array.dtype)
    grown[: array.size] = array
    return grown


def numbered(
    kernel: Callable[..., bool],
    given: Sequence[Any],
    cut: Cut,
    index: "Index",
    growing: bool,
    tail: Codes,
    rows: int,
    expected: int,
) -> tuple[Codes, Integers, "Index"]:
    """The numbers of the words of `rows` texts, where those of each begin, and the vocabulary, which may have grown.

    kernel: `number_texts` or `number_words`, which stops where room is short. given: what it takes first. cut: words,
    or room for those that texts are cut into. About so many numbers are expected.
    """
    from deciban.kernels.words import COUNT, CUT, KNOWN, ROW, RUN, STATES, WORD

    entries, text, starts, known = index
    numbers, firsts = np.empty(max(expected, 64), dtype=np.int32), np.zeros(rows + 1, dtype=np.int64)
    state, hashes = np.zeros(STATES, dtype=np.int64), _room_for_hashes()
    state[KNOWN], state[CUT] = known, -1
    while not kernel(
        *given, *cut, SEEDS, entries, text, starts, growing, tail, BUCKET_SEEDS, hashes, numbers, firsts, state
    ):
        row, word, known, count, words = (int(state[k]) for k in (ROW, WORD, KNOWN, COUNT, CUT))
        scratch, begins, stops = cut
        if words < 0:  # the text did not fit
            cut = longer(scratch, 0), longer(begins, 0), longer(stops, 0)
            continue
        last = min(word + RUN, words)
        if count + last - word > numbers.size:
            share = (row + 1) / rows  # of the texts, which may need as much again
            numbers = longer(numbers, min(int(1.1 * count / share), 4 * count) + RUN)
        if growing:
            size = int((stops[word:last] - begins[word:last]).sum())
            if starts[known] + size + SPARE > text.size:
                text = longer(text, int(starts[known]) + size + SPARE)
            if known + last - word + 1 > starts.size:
                starts = longer(starts, known + last - word + 1)
            while need_more_entries(known + last - word, len(entries)):
                found = np.zeros((2 * len(entries), 4), dtype=np.uint64)
                kernels.move_entries(entries, found)
                entries = found
    return numbers[: state[COUNT]], firsts, Index(entries, text, starts, int(state[KNOWN]))


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
    def in_order(self) -> "Words":
        """The same words in the order of their bytes: equal counts are then equal in all."""
        return self._holding([_sorted(*column) for column in self._columns()], self.texts)

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
                taken = taken.holding(_from_buckets(words, have, taken, self.buckets))
            found.append(_occurring(words, have.holding(remaining(have.data, taken.data))))
        return self._holding(found, remaining(self.texts, other.texts))

    def scale(self, factor: float) -> "Words":
        scaled = [(words, counts.holding(counts.stored * factor)) for words, counts in self._columns()]
        return self._holding(scaled, self.texts * factor)

    def place_classes(self, positions: Integers, size: int) -> "Words":
        columns = [(words, _placed_classes(counts, positions, size)) for words, counts in self._columns()]
        return self._holding(columns, placed(self.texts, positions, size))

    def place_columns(self, positions: Integers, size: int) -> "Words":
        columns = [(NO_WORDS, _no_counts(self.texts.shape[0]))] * size
        for column, position in zip(self._columns(), positions, strict=True):
            if position >= 0:
                columns[position] = column
        return self._holding(columns, placed(self.texts, positions, size, axis=1))

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
    order = in_order(words)
    place = np.empty(len(words), dtype=np.int32)
    place[order] = np.arange(len(words), dtype=np.int32)
    moved = SparseRows(counts.data.copy(), place[counts.indices], counts.indptr, counts.width)
    return words.take(order), _with_sorted_cells(moved.matrix())


def _zero(column: Counted) -> Counted:
    """The same words, counted 0 times."""
    words, counts = column
    return words, counts.holding(np.zeros(counts.stored.size))


def _placed_classes(counts: SparseRows, positions: Integers, size: int) -> SparseRows:
    """The counts with their classes at other places; those of a class without a place are dropped."""
    if np.array_equal(positions, np.arange(size)):
        return counts
    there = np.flatnonzero(positions >= 0)
    there = there[np.argsort(positions[there])]
    ends = np.cumsum(placed(np.diff(counts.indptr), positions, size))
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
        matrix = counts.holding(counts.stored.copy()).matrix()
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
