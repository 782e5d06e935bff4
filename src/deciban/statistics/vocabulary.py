"""Words and their numbers."""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from deciban import kernels
from deciban.arrays import SPARE, Bytes, Codes, Integers

# Nobody outside this process knows how it hashes words, so none can be chosen to collide. Buckets are the same
# anywhere.
SEEDS = np.frombuffer(secrets.token_bytes(40), dtype=np.uint64) | np.uint64(1)


BUCKET_SEEDS = np.array(
    [0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB, 0xD6E8FEB86659FD93, 0xA0761D6478BD642F], np.uint64
)


# What stands before the number of a bucket of rare words, where words would be; no word has it.
RARE = "\0"


# The number of a word that is not in a vocabulary.
UNKNOWN = np.iinfo(np.int32).max


ALL_UNKNOWN = np.array([UNKNOWN], dtype=np.int32)


NO_TAIL = np.zeros(0, dtype=np.int32)


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


def sort_order(vocabulary: Vocabulary) -> Integers:
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
