"""Vocabularies: words and their numbers, and buckets shared by rare words."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from deciban import kernels
from deciban.kernels.text_arrays import Hashes, Numbering, UnknownWords, WordIndex, WordSpans
from deciban.util.arrays import SPARE, Bytes, Codes, Integers

# Random seeds of the hash of words, so that nobody can construct words that collide.
SEEDS = np.frombuffer(secrets.token_bytes(40), dtype=np.uint64) | np.uint64(1)

# Fixed seeds of the hash of rare words: their buckets are the same in every process and model file.
BUCKET_SEEDS = np.array(
    [0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB, 0xD6E8FEB86659FD93, 0xA0761D6478BD642F], np.uint64
)

# First character of the name of a bucket of rare words; no word contains it.
BUCKET_MARK = "\0"

# The number of a word that is not in a vocabulary.
UNKNOWN = np.iinfo(np.int32).max

# Rule for words that are not in a vocabulary: leave them out.
LEAVE_OUT = UnknownWords(np.zeros(0, dtype=np.int32), BUCKET_SEEDS)

# Rule for words that are not in a vocabulary: number all of them UNKNOWN.
ALL_UNKNOWN = UnknownWords(np.array([UNKNOWN], dtype=np.int32), BUCKET_SEEDS)


@dataclass(frozen=True)
class Vocabulary:
    """Distinct words in any order, buckets of rare words first.

    text: the bytes of all words, concatenated. starts: the offset of each word, and the end.
    """

    text: Bytes
    starts: Integers

    @classmethod
    def of(cls, words: Sequence[str]) -> Self:
        """Return the vocabulary of the distinct words among these."""
        encoded = sorted({word.encode() for word in words})
        starts = np.concatenate([[0], np.cumsum([len(word) for word in encoded])]).astype(np.int64)
        return cls(np.frombuffer(b"".join(encoded), dtype=np.uint8).copy(), starts)

    @classmethod
    def from_index(cls, index: WordIndex) -> Vocabulary:
        """Return the words of an index, in order of first occurrence.

        The index is kept for later lookups unless most of its entries are empty.
        """
        words = Vocabulary(index.text[: index.starts[index.known]], index.starts[: index.known + 1])
        if 8 * index.known < len(index.entries):
            return words.take(np.arange(index.known))
        words.__dict__["index"] = index
        return words

    def __len__(self) -> int:
        return self.starts.size - 1

    def __getstate__(self) -> dict[str, object]:
        """Leave out the index: another process has other hash seeds."""
        return {"text": self.text, "starts": self.starts}

    def __getitem__(self, number: int) -> str:
        return bytes(self.text[self.starts[number] : self.starts[number + 1]]).decode(errors="replace")

    def display(self, number: int) -> str:
        """Return the word of this number for display."""
        return display_word(self[number])

    @cached_property
    def array(self) -> pa.Array:
        """Words as an Arrow array that shares their bytes."""
        buffers = [None, pa.py_buffer(self.starts), pa.py_buffer(self.text)]
        return pa.Array.from_buffers(pa.large_string(), len(self), buffers)

    @property
    def padded(self) -> Bytes:
        """Bytes of the words with padding, for kernels that read several bytes at a time."""
        if "index" in self.__dict__:
            return self.index.text
        return np.concatenate([self.text, np.zeros(SPARE, dtype=np.uint8)])

    def take(self, order: Integers) -> Vocabulary:
        """Return some of the words, in the given order."""
        _, starts, text = self.array.cast(pa.large_binary()).take(pa.array(order)).buffers()
        if not order.size:
            return NO_WORDS
        ends = np.frombuffer(starts, dtype=np.int64)[: order.size + 1]
        return Vocabulary(np.frombuffer(text, dtype=np.uint8)[: ends[-1]].copy(), ends.copy())

    @cached_property
    def bucket_count(self) -> int:
        """Number of buckets of rare words; they come first."""
        number = 0
        while number < len(self) and self[number].startswith(BUCKET_MARK):
            number += 1
        return number

    def buckets(self, size: int) -> Integers:
        """Return the bucket of each word among `size` buckets; a bucket is in itself."""
        found = np.empty(len(self), dtype=np.int64)
        kernels.word_index.word_buckets(self.padded, self.starts, size, BUCKET_SEEDS, found)
        for number in range(self.bucket_count):
            found[number] = bucket_number(self[number])
        return found

    @property
    def is_unique(self) -> bool:
        """True if no word occurs twice."""
        return int(pc.count_distinct(self.array).as_py()) == len(self)

    @cached_property
    def index(self) -> WordIndex:
        """Hash table of the words."""
        return self._build_index()

    def _build_index(self) -> WordIndex:
        text, size = self.padded, 16
        while need_more_entries(len(self), size):
            size *= 2
        entries = np.zeros((size, 4), dtype=np.uint64)
        kernels.word_index.index_words(text, self.starts, SEEDS, _allocate_hashes(), entries)
        return WordIndex(entries, text, self.starts, len(self))

    def look_up(self, words: Vocabulary) -> Codes:
        """Return the number of each of these words in this vocabulary, or UNKNOWN."""
        index, texts = self.__dict__.get("index") or self._build_index(), np.array([0, len(words)])
        spans = WordSpans(words.padded, words.starts[:-1], words.starts[1:])
        return number_words(kernels.word_index.number_words, (texts,), spans, index, ALL_UNKNOWN, 1, len(words))[0]

    def concat(self, words: Vocabulary) -> Vocabulary:
        """Return the words of this vocabulary followed by others."""
        starts = np.concatenate([self.starts, words.starts[1:] + self.starts[-1]])
        return Vocabulary(np.concatenate([self.text, words.text]), starts)

    @property
    def sort_order(self) -> Integers:
        """Numbers of the words, sorted by their bytes."""
        firsts = np.empty(len(self), dtype=np.uint64)
        kernels.word_index.first_bytes(self.text, self.starts, firsts)
        order = np.argsort(firsts)
        kernels.word_index.sort_ties(self.text, self.starts, firsts, order, np.empty_like(order))
        return order


NO_WORDS = Vocabulary(np.zeros(0, dtype=np.uint8), np.zeros(1, dtype=np.int64))


def count_buckets(max_features: int | None) -> int:
    """Return the number of buckets for rare words: a power of two, about a fourth of `max_features`."""
    return 0 if max_features is None else 1 << max(4, (max_features // 4 - 1).bit_length())


def bucket_name(bucket: int) -> str:
    """Return the name of a bucket of rare words in a vocabulary."""
    return f"{BUCKET_MARK}{bucket:06x}"


def bucket_number(name: str) -> int:
    """Return the number of the bucket of rare words with this name."""
    return int(name[len(BUCKET_MARK) :], 16)


def display_word(word: str) -> str:
    """Return a word of a vocabulary for display."""
    return f"(rare words {word[1:]})" if word.startswith(BUCKET_MARK) else word


def need_more_entries(words: int, entries: int) -> bool:
    """Return True if a hash table of `entries` is too small for `words`; the same rule as in `kernels.word_index`."""
    return 10 * words > 7 * entries


def _allocate_hashes() -> Hashes:
    from deciban.kernels.word_index import RUN

    return np.empty((RUN, 3), dtype=np.uint64)


def enlarge(array: npt.NDArray[Any], min_size: int = 0) -> npt.NDArray[Any]:
    """Return the array with free space at the end: twice its size, at least `min_size`."""
    grown = np.empty(max(2 * array.size, min_size), dtype=array.dtype)
    grown[: array.size] = array
    return grown


def enlarge_spans(spans: WordSpans) -> WordSpans:
    """Return the words with free space for as many more."""
    return WordSpans(enlarge(spans.text), enlarge(spans.begins), enlarge(spans.stops))


def number_words(
    kernel: Callable[..., bool],
    given: Sequence[Any],
    spans: WordSpans,
    index: WordIndex,
    unknown: UnknownWords | None,
    rows: int,
    expected: int,
) -> tuple[Codes, Integers, WordIndex]:
    """Return the numbers of the words of `rows` texts, the bounds of each text among them, and the enlarged index.

    kernel: `number_texts` or `number_words`; it returns when space runs out, and continues after more is allocated.
    given: its first arguments. spans: the words, or space for the words of the texts. unknown: the rule for words that
    are not in the index; None adds them to it. expected: an estimate of the number of words.
    """
    from deciban.kernels.word_index import COUNT, KNOWN, ROW, ROW_END, RUN, STATES, WORD

    numbers, bounds = np.empty(max(expected, 64), dtype=np.int32), np.zeros(rows + 1, dtype=np.int64)
    state, hashes = np.zeros(STATES, dtype=np.int64), _allocate_hashes()
    state[KNOWN], state[ROW_END] = index.known, -1
    growing, instead = unknown is None, LEAVE_OUT if unknown is None else unknown
    while not kernel(*given, spans, SEEDS, index, growing, instead, Numbering(numbers, bounds, state, hashes)):
        row, word, known, count, row_end = (int(state[k]) for k in (ROW, WORD, KNOWN, COUNT, ROW_END))
        if row_end < 0:  # the words of the text did not fit
            spans = enlarge_spans(spans)
            continue
        last = min(word + RUN, row_end)
        if count + last - word > numbers.size:
            share = (row + 1) / rows  # of the texts is done: extrapolate
            numbers = enlarge(numbers, min(int(1.1 * count / share), 4 * count) + RUN)
        if growing:
            size = int((spans.stops[word:last] - spans.begins[word:last]).sum())
            index = _enlarge_index(index, known, last - word, size)
    return numbers[: state[COUNT]], bounds, WordIndex(*index[:3], int(state[KNOWN]))


def _enlarge_index(index: WordIndex, known: int, words: int, size: int) -> WordIndex:
    """Return an index of `known` words with space for `words` more, of `size` bytes."""
    entries, text, starts, _ = index
    if starts[known] + size + SPARE > text.size:
        text = enlarge(text, int(starts[known]) + size + SPARE)
    if known + words + 1 > starts.size:
        starts = enlarge(starts, known + words + 1)
    while need_more_entries(known + words, len(entries)):
        more = np.zeros((2 * len(entries), 4), dtype=np.uint64)
        kernels.word_index.move_entries(entries, more)
        entries = more
    return WordIndex(entries, text, starts, known)
