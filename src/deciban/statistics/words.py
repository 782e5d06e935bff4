"""Counts of the words of texts."""

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

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
class Units:
    """Texts cut into words (or characters): `scratch` has the bytes of unit k from begins[k] to stops[k].

    Group g has the units from groups[g] on, which n-grams do not leave, and text i the groups from texts[i] on.
    """

    scratch: Bytes
    begins: Integers
    stops: Integers
    groups: Integers
    texts: Integers


@dataclass(frozen=True)
class Grams:
    """Which runs of units are words: `least` to `most` units long; of a shorter group, all of it if `whole`."""

    least: int = 1
    most: int = 1
    whole: bool = False


@dataclass(frozen=True)
class Vocabulary:
    """Words, all different, in the order of their bytes: one behind the other in `text`, each from its `starts` on."""

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

    def take(self, order: Integers) -> "Vocabulary":
        """Some of the words in this order."""
        starts = np.empty(order.size + 1, dtype=np.int64)
        text = np.empty(int((self.starts[order + 1] - self.starts[order]).sum()), dtype=np.uint8)
        kernels.taken_words(self.text, self.starts, order, text, starts)
        return Vocabulary(text, starts)

    @cached_property
    def rare(self) -> int:
        """How many buckets of rare words there are; they come first."""
        number = 0
        while number < len(self) and self[number].startswith(RARE):
            number += 1
        return number

    @property
    def all_different(self) -> bool:
        """Whether no word of a sorted vocabulary is there twice."""
        return int(pc.count_distinct(self.array).as_py()) == len(self)

    @cached_property
    def index(self) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64], Bytes]:
        """What words are looked up by, and their bytes with some to spare."""
        text = np.concatenate([self.text, np.zeros(SPARE, dtype=np.uint8)])
        return *kernels.index_words(text, self.starts, SEEDS), text

    def numbers(self, pieces: Iterable[Units], grams: Grams, tail: Codes) -> tuple[Codes, Integers]:
        """The numbers of the words of each text that are known, and where those of each begin.

        Words that are not known have the number that `tail` has for their bucket, if it has any.
        """
        slots, keys, text = self.index
        found = []
        for units in pieces:
            numbers, firsts, *_ = _numbered(units, grams, slots, keys, text, self.starts, len(self), False, tail)
            found.append((numbers[: firsts[-1]], firsts))
        return behind_each_other(found)

    def merged(self, other: "Vocabulary") -> tuple["Vocabulary", Integers, Integers]:
        """The words of both, and where those of each are among them."""
        text = np.empty(self.text.size + other.text.size, dtype=np.uint8)
        starts = np.empty(len(self) + len(other) + 1, dtype=np.int64)
        mine, theirs = np.empty(len(self), dtype=np.int64), np.empty(len(other), dtype=np.int64)
        size = kernels.merged_words(self.text, self.starts, other.text, other.starts, text, starts, mine, theirs)
        starts = starts[: size + 1].copy()
        return Vocabulary(text[: starts[-1]].copy(), starts), mine, theirs


NO_TAIL = np.zeros(0, dtype=np.int32)
NO_WORDS = Vocabulary(np.zeros(0, dtype=np.uint8), np.zeros(1, dtype=np.int64))


def _numbered(
    units: Units, grams: Grams, *vocabulary: object
) -> tuple[Codes, Integers, object, object, Bytes, Integers, int]:
    return kernels.number_words(  # type: ignore[no-any-return]
        units.scratch, units.begins, units.stops, units.groups, units.texts, grams.whole, grams.least, grams.most,
        SEEDS, *vocabulary, BUCKET_SEEDS,
    )  # fmt: skip


def learned(pieces: Iterable[Units], grams: Grams) -> tuple[Vocabulary, Codes, list[tuple[Codes, Integers]]]:
    """The vocabulary of some texts, the place in it of each number, and piece by piece the numbers of their words."""
    slots: object = np.zeros(1 << 11, dtype=np.uint64)
    keys: object = np.empty((1 << 10, 2), dtype=np.uint64)
    text, starts, known = np.empty(1 << 13, dtype=np.uint8), np.zeros(1 << 10, dtype=np.int64), 0
    found = []
    for units in pieces:
        numbers, firsts, slots, keys, text, starts, known = _numbered(
            units, grams, slots, keys, text, starts, known, True, NO_TAIL
        )
        found.append((numbers[: firsts[-1]], firsts))
    words = Vocabulary(text[: starts[known]], starts[: known + 1])
    order = in_order(words)
    place = np.empty(known, dtype=np.int32)
    place[order] = np.arange(known, dtype=np.int32)
    return words.take(order), place, found


def behind_each_other(pieces: Sequence[tuple[Codes, Integers]]) -> tuple[Codes, Integers]:
    """The numbers of the words of all pieces, and where those of each text begin."""
    before = np.cumsum([0, *(firsts[-1] for _, firsts in pieces)])
    starts = [firsts[1:] + offset for (_, firsts), offset in zip(pieces, before[:-1], strict=True)]
    numbers = np.concatenate([numbers for numbers, _ in pieces] or [NO_TAIL])
    return numbers, np.concatenate([np.zeros(1, dtype=np.int64), *starts])


def in_order(vocabulary: Vocabulary) -> Integers:
    """The numbers of the words in the order of their bytes."""
    firsts = np.empty(len(vocabulary), dtype=np.uint64)
    kernels.first_bytes(vocabulary.text, vocabulary.starts, firsts)
    order = np.argsort(firsts)
    kernels.sort_ties(vocabulary.text, vocabulary.starts, firsts, order, np.empty_like(order))
    return order


def gathered(numbers: Codes, firsts: Integers, words: int) -> SparseRows:
    """How often each of so many words is in each text."""
    data, indices, indptr = kernels.gather_numbers(numbers, firsts, words)
    return SparseRows(data, indices, indptr, words)


@dataclass(frozen=True)
class Words:
    """For each column of texts its words (those with a positive count), their counts, word by class, and its texts.

    texts: the weight of the texts that are not missing, class by column. most: how many words a column may have; if
    there are more, the rarest are counted in `buckets` by their hash. What was taken for rare stays in its bucket, also
    if it comes again, so that the count of a word may be too low, by no more than what its bucket holds.
    """

    vocabularies: tuple[Vocabulary, ...]
    tables: tuple[Floats, ...]
    texts: Floats
    most: int | None = None

    @classmethod
    def empty(cls, classes: int, columns: int, most: int | None = None) -> Self:
        tables = tuple(np.zeros((0, classes)) for _ in range(columns))
        return cls((NO_WORDS,) * columns, tables, np.zeros((classes, columns)), most)

    @classmethod
    def of(cls, columns: Sequence[tuple[Vocabulary, Floats]], texts: Floats, most: int | None = None) -> Self:
        """Of words in their order, and their counts, word by class."""
        found = [_bounded(vocabulary, table, most) for vocabulary, table in columns]
        return cls(tuple(words for words, _ in found), tuple(table for _, table in found), texts, most)

    @property
    def buckets(self) -> int:
        return buckets_of(self.most)

    def merge(self, other: Self) -> "Words":
        found = []
        for (words, table), (more, counts) in zip(self._columns(), other._columns(), strict=True):
            both, mine, theirs = words.merged(more)
            total = np.zeros((len(both), table.shape[1]))
            kernels.add_rows(table, mine, total)
            kernels.add_rows(counts, theirs, total)
            found.append(_bounded(both, total, self.most))
        return self._holding(found, self.texts + other.texts)

    def remove(self, other: Self) -> "Words":
        found = []
        for (words, table), (more, counts) in zip(self._columns(), other._columns(), strict=True):
            both, mine, theirs = words.merged(more)
            have, taken = np.zeros((len(both), table.shape[1])), np.zeros((len(both), table.shape[1]))
            have[mine], taken[theirs] = table, counts
            if self.most is not None:
                taken = _from_buckets(both, have, taken, self.buckets)
            left = remaining(have, taken)
            found.append(occurring(both, left))
        return self._holding(found, remaining(self.texts, other.texts))

    def scale(self, factor: float) -> "Words":
        return self._holding([(words, table * factor) for words, table in self._columns()], self.texts * factor)

    def place_classes(self, positions: Integers, size: int) -> "Words":
        columns = [(words, placed(table, positions, size, axis=1)) for words, table in self._columns()]
        return self._holding(columns, placed(self.texts, positions, size))

    def place_columns(self, positions: Integers, size: int) -> "Words":
        columns = [(NO_WORDS, np.zeros((0, self.texts.shape[0])))] * size
        for column, position in zip(self._columns(), positions, strict=True):
            if position >= 0:
                columns[position] = column
        return self._holding(columns, placed(self.texts, positions, size, axis=1))

    def _columns(self) -> list[tuple[Vocabulary, Floats]]:
        return list(zip(self.vocabularies, self.tables, strict=True))

    def _holding(self, columns: Sequence[tuple[Vocabulary, Floats]], texts: Floats) -> "Words":
        return Words(tuple(words for words, _ in columns), tuple(table for _, table in columns), texts, self.most)


def occurring(words: Vocabulary, table: Floats) -> tuple[Vocabulary, Floats]:
    """The words that were counted."""
    kept = np.flatnonzero(table.any(axis=1))
    return (words, table) if kept.size == len(words) else (words.take(kept), table.take(kept, axis=0))


def buckets_of(most: int | None) -> int:
    """How many buckets there are for the words beyond so many: a power of two, about a fourth of them."""
    return 0 if most is None else 1 << max(4, (most // 4 - 1).bit_length())


def _buckets(words: Vocabulary, buckets: int) -> Integers:
    """The bucket of each word; that of a bucket is itself."""
    found = np.empty(len(words), dtype=np.int64)
    text = np.concatenate([words.text, np.zeros(SPARE, dtype=np.uint8)])
    kernels.word_buckets(text, words.starts, buckets, BUCKET_SEEDS, found)
    for k in range(words.rare):
        found[k] = bucket_number(words[k])
    return found


def bucket_number(name: str) -> int:
    """The number of a bucket of rare words that has this name."""
    return int(name[len(RARE) :], 16)


def _bounded(words: Vocabulary, table: Floats, most: int | None) -> tuple[Vocabulary, Floats]:
    """The most frequent words, so many, and the others in their buckets."""
    first = words.rare
    if most is None or len(words) - first <= most:
        return words, table
    order = np.argsort(-table[first:].sum(axis=1), kind="stable") + first
    kept, rare = np.sort(order[:most]), np.concatenate([np.arange(first), np.sort(order[most:])])
    distinct, place = np.unique(_buckets(words.take(rare), buckets_of(most)), return_inverse=True)
    tail = Vocabulary.of([f"{RARE}{bucket:06x}" for bucket in distinct])
    both = Vocabulary(*_joined(tail, words.take(kept)))
    return both, np.concatenate([summed(table[rare].T, place, len(tail)).T, table[kept]])


def _joined(first: Vocabulary, second: Vocabulary) -> tuple[Bytes, Integers]:
    return np.concatenate([first.text, second.text]), np.concatenate(
        [first.starts, second.starts[1:] + first.starts[-1]]
    )


def _from_buckets(words: Vocabulary, have: Floats, taken: Floats, buckets: int) -> Floats:
    """What is to be taken, where that of a word that is not there in full is taken from its bucket.

    What was counted in a bucket of its own and is a word here is taken from the words of this bucket, a share of each:
    which of them it was, nobody knows.
    """
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
    return np.asarray(taken + np.minimum(share, 1.0)[bucket] * (have - taken))
