"""Vocabularies: words and their numbers, and the buckets that rare words share."""

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

# Nobody outside this process knows how it hashes words, so none can be chosen to collide.
SEEDS = np.frombuffer(secrets.token_bytes(40), dtype=np.uint64) | np.uint64(1)

# Buckets of rare words are the same in every process and model file.
BUCKET_SEEDS = np.array(
    [0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB, 0xD6E8FEB86659FD93, 0xA0761D6478BD642F], np.uint64
)

# A bucket of rare words stands among the words of a vocabulary as this, which no word has, and its number.
BUCKET_MARK = "\0"

# The number of a word that is not in a vocabulary.
UNKNOWN = np.iinfo(np.int32).max

# What becomes of words that are not in a vocabulary: they are left out, or are all UNKNOWN.
LEAVE_OUT = UnknownWords(np.zeros(0, dtype=np.int32), BUCKET_SEEDS)
ALL_UNKNOWN = UnknownWords(np.array([UNKNOWN], dtype=np.int32), BUCKET_SEEDS)


@dataclass(frozen=True)
class Vocabulary:
    """Words, all different, in any order: one behind the other in `text`, each from its `starts` on.

    Buckets of rare words, if there are any, come first.
    """

    text: Bytes
    starts: Integers

    @classmethod
    def of(cls, words: Sequence[str]) -> Self:
        """The distinct ones of these words."""
        encoded = sorted({word.encode() for word in words})
        starts = np.concatenate([[0], np.cumsum([len(word) for word in encoded])]).astype(np.int64)
        return cls(np.frombuffer(b"".join(encoded), dtype=np.uint8).copy(), starts)

    @classmethod
    def from_index(cls, index: WordIndex) -> "Vocabulary":
        """The words of an index in the order in which they came.

        They keep the index, to be looked up by it, unless most of its entries are empty.
        """
        words = Vocabulary(index.text[: index.starts[index.known]], index.starts[: index.known + 1])
        if 8 * index.known < len(index.entries):
            return words.take(np.arange(index.known))
        words.__dict__["index"] = index
        return words

    def __len__(self) -> int:
        return self.starts.size - 1

    def __getstate__(self) -> dict[str, object]:
        """Without the index: another process hashes by other seeds."""
        return {"text": self.text, "starts": self.starts}

    def __getitem__(self, number: int) -> str:
        return bytes(self.text[self.starts[number] : self.starts[number + 1]]).decode(errors="replace")

    def display(self, number: int) -> str:
        """A word as people read it."""
        return display_word(self[number])

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
    def bucket_count(self) -> int:
        """How many of the words are buckets of rare words; they come first."""
        number = 0
        while number < len(self) and self[number].startswith(BUCKET_MARK):
            number += 1
        return number

    def buckets(self, size: int) -> Integers:
        """The bucket, of so many, that each word is in; that of a bucket is itself."""
        found = np.empty(len(self), dtype=np.int64)
        kernels.word_index.word_buckets(self.padded, self.starts, size, BUCKET_SEEDS, found)
        for number in range(self.bucket_count):
            found[number] = bucket_number(self[number])
        return found

    @property
    def is_unique(self) -> bool:
        """Whether no word is there twice."""
        return int(pc.count_distinct(self.array).as_py()) == len(self)

    @cached_property
    def index(self) -> WordIndex:
        """The hash table that its words are looked up in."""
        return self._build_index()

    def _build_index(self) -> WordIndex:
        text, size = self.padded, 16
        while need_more_entries(len(self), size):
            size *= 2
        entries = np.zeros((size, 4), dtype=np.uint64)
        kernels.word_index.index_words(text, self.starts, SEEDS, _allocate_hashes(), entries)
        return WordIndex(entries, text, self.starts, len(self))

    def look_up(self, words: "Vocabulary") -> Codes:
        """The number that each of these words has here, or UNKNOWN. An index that is made for it is not kept."""
        index, texts = self.__dict__.get("index") or self._build_index(), np.array([0, len(words)])
        spans = WordSpans(words.padded, words.starts[:-1], words.starts[1:])
        return number_words(kernels.word_index.number_words, (texts,), spans, index, ALL_UNKNOWN, 1, len(words))[0]

    def concat(self, words: "Vocabulary") -> "Vocabulary":
        """These words and others behind them."""
        starts = np.concatenate([self.starts, words.starts[1:] + self.starts[-1]])
        return Vocabulary(np.concatenate([self.text, words.text]), starts)

    @property
    def sort_order(self) -> Integers:
        """The numbers of the words in the order of their bytes."""
        firsts = np.empty(len(self), dtype=np.uint64)
        kernels.word_index.first_bytes(self.text, self.starts, firsts)
        order = np.argsort(firsts)
        kernels.word_index.sort_ties(self.text, self.starts, firsts, order, np.empty_like(order))
        return order


NO_WORDS = Vocabulary(np.zeros(0, dtype=np.uint8), np.zeros(1, dtype=np.int64))


def count_buckets(most: int | None) -> int:
    """How many buckets there are for the words beyond so many: a power of two, about a fourth of them."""
    return 0 if most is None else 1 << max(4, (most // 4 - 1).bit_length())


def bucket_name(bucket: int) -> str:
    """What stands for a bucket of rare words in a vocabulary."""
    return f"{BUCKET_MARK}{bucket:06x}"


def bucket_number(name: str) -> int:
    """The number of a bucket of rare words that has this name."""
    return int(name[len(BUCKET_MARK) :], 16)


def display_word(word: str) -> str:
    """A word of a vocabulary as people read it."""
    return f"(rare words {word[1:]})" if word.startswith(BUCKET_MARK) else word


def need_more_entries(words: int, entries: int) -> bool:
    """Whether so many words need more entries; as `kernels.word_index` asks."""
    return 10 * words > 7 * entries


def _allocate_hashes() -> Hashes:
    from deciban.kernels.word_index import RUN

    return np.empty((RUN, 3), dtype=np.uint64)


def enlarge(array: npt.NDArray[Any], least: int = 0) -> npt.NDArray[Any]:
    """The same array with room behind it: twice its size, or `least`."""
    grown = np.empty(max(2 * array.size, least), dtype=array.dtype)
    grown[: array.size] = array
    return grown


def enlarge_spans(spans: WordSpans) -> WordSpans:
    """The same words with room for as much again."""
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
    """The numbers of the words of `rows` texts, the bounds of those of each text, and the index, which may have grown.

    kernel: `number_texts` or `number_words`, which stops where room is short; then there is made more. given: what it
    takes first. spans: words, or room for those that texts are cut into. unknown: what becomes of words that are not in
    the index; None adds them to it. expected: about so many numbers.
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
            share = (row + 1) / rows  # of the texts, which may need as much again
            numbers = enlarge(numbers, min(int(1.1 * count / share), 4 * count) + RUN)
        if growing:
            size = int((spans.stops[word:last] - spans.begins[word:last]).sum())
            index = _enlarge_index(index, known, last - word, size)
    return numbers[: state[COUNT]], bounds, WordIndex(*index[:3], int(state[KNOWN]))


def _enlarge_index(index: WordIndex, known: int, words: int, size: int) -> WordIndex:
    """An index of `known` words with room for more words of so many bytes."""
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
