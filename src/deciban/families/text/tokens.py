"""From texts to words: what of a text is a word, and how it is written in the vocabulary.

The same words as those of scikit-learn's vectorizers with the options of the same names, in any language.
"""

import re
import unicodedata
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from deciban import kernels
from deciban.arrays import SPARE, Bytes, Codes, Flags, Integers, kernel_view
from deciban.errors import UsageError
from deciban.statistics.vocabulary import NO_TAIL, SEEDS, Cut, Index, Vocabulary, longer, numbered

Analyzer = Literal["word", "char", "char_wb"]
Tokenizer = Callable[[str], Iterable[str]]

# Texts cut into words (or characters): the bytes of all, where each unit begins and stops there, the first unit of each
# group, which n-grams do not leave, and the first group of each text.
Units = tuple[Bytes, Integers, Integers, Integers, Integers]

# Texts are cut into words so many bytes at a time: they stay in the cache.
PIECE_BYTES = 1 << 18

# Bytes that kernels may write behind the words of a text.
SPARE_BYTES = 128

# There are so many code points, of which so many are looked at together. Beyond CASED no letter has a capital form,
# beyond COMPOSED no character has accents or is one.
POINTS = 0x110000
BLOCK = 1 << 12
CASED = 0x20000
COMPOSED = 0x32000


@dataclass(frozen=True)
class Tokens:
    """What of a text is a word; see Text."""

    analyzer: Analyzer = "word"
    ngram_range: tuple[int, int] = (1, 1)
    lowercase: bool = True
    strip_accents: bool = False
    stop_words: tuple[str, ...] = ()
    shortest: int = 2
    tokenizer: Tokenizer | None = None

    def learned(self, texts: pa.Array) -> tuple[Codes, Integers, Index]:
        """The numbers of the words of each text, where those of each begin, and the words."""
        return self._numbered(self._stretches(*parts_of(texts)), Index.empty(texts.nbytes), True, NO_TAIL)

    def numbers(self, texts: pa.Array, vocabulary: Vocabulary, tail: Codes) -> tuple[Codes, Integers]:
        """The numbers of the words of each text that are known, and where those of each begin.

        Words that are not known have the number that `tail` has for their bucket, if it has any.
        """
        numbers, firsts, _ = self._numbered(self._stretches(*parts_of(texts)), vocabulary.index, False, tail)
        return numbers, firsts

    def words(self, text: str) -> list[str]:
        """The words of one text, in no particular order: what a vectorizer calls its tokens."""
        numbers, _, index = self.learned(pa.array([text], pa.large_string()))
        vocabulary = index.words
        return [vocabulary[number] for number in numbers]

    def _numbered(
        self, stretches: Iterable["Stretch"], index: Index, growing: bool, tail: Codes
    ) -> tuple[Codes, Integers, Index]:
        found = []
        for stretch in stretches:
            if self._single_words:
                kernel, given = kernels.number_texts, self._as_words(stretch)
                longest = int(np.diff(stretch.offsets).max(initial=0))
                cut, expected = room(longest, longest // 2), int(stretch.offsets[-1] - stretch.offsets[0]) // 5
            else:
                bounds, cut = self._grams(self._cut(*stretch))
                kernel, given, expected = kernels.number_words, (bounds,), int(bounds[-1])
            rows = stretch.present.size
            numbers, firsts, index = numbered(kernel, given, cut, index, growing, tail, rows, expected)
            found.append((numbers, firsts))
        return *_behind_each_other(found), index

    @property
    def _single_words(self) -> bool:
        """Whether it is words as they come, one by one, that are counted."""
        alone = self.ngram_range == (1, 1) and not self.stop_words
        return alone and self.analyzer == "word" and self.tokenizer is None

    def _stretches(self, data: Bytes, offsets: Integers, present: Flags) -> Iterator["Stretch"]:
        """Texts that are cut together: of single words as many as can be, otherwise those that fit into the cache."""
        begin, plain = 0, True
        for first, last in _pieces(offsets, 4 * PIECE_BYTES if self._single_words else PIECE_BYTES):
            some = data[offsets[first] : offsets[last]]
            ascii_only = bool(some.max(initial=0) < 128)
            sigma = not ascii_only and self.lowercase and self.tokenizer is None and _has_sigma(some)
            if begin < first and (sigma or not self._single_words):
                yield Stretch(data, offsets[begin : first + 1], present[begin:first], plain)
                begin, plain = first, True
            if sigma:
                lowered = [text.lower() for text in decoded(data, offsets[first : last + 1])]
                yield Stretch(*parts_of(pa.array(lowered, pa.large_string()))[:2], present[first:last], False)
                begin, plain = last, True
            else:
                plain = plain and ascii_only
        if begin < present.size:
            yield Stretch(data, offsets[begin:], present[begin:], plain)

    def _as_words(self, texts: "Stretch") -> tuple[Any, ...]:
        """Texts, and how they are cut into words, as kernels take it."""
        return *texts[:3], *self._folding(texts.plain), self.lowercase, self.shortest

    def _grams(self, units: Units) -> tuple[Integers, Cut]:
        """Where the words (or n-grams) of each text begin among all, and these.

        In words, of a group that is shorter than an n-gram all of it counts, once.
        """
        scratch, begins, stops, groups, texts = units
        least, most = self.ngram_range
        if most == 1:
            return np.ascontiguousarray(groups[texts]), (scratch, begins, stops)
        whole, size = self.analyzer == "char_wb", np.diff(groups)
        count = sum(int(np.maximum(size - n + 1, 0).sum()) for n in range(least, most + 1))
        count += int(((size > 0) & (size < least)).sum()) if whole else 0
        bounds, *found = np.zeros_like(texts), np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
        kernels.list_grams(begins, stops, groups, texts, least, most, whole, bounds, *found)
        return bounds, (scratch, found[0], found[1])

    def _folding(self, plain: bool) -> tuple[Codes, Codes]:
        characters = self.analyzer != "word"
        return NOTHING if plain and not characters else folding(self.lowercase, self.strip_accents, characters)

    def _cut(self, data: Bytes, offsets: Integers, present: Flags, plain: bool) -> Units:
        if self.tokenizer is not None:
            return self._kept(*self._by_hand(data, offsets, present, self.tokenizer))
        size, rows, folding = int(offsets[-1] - offsets[0]), present.size, self._folding(plain)
        texts, state = np.zeros(rows + 1, dtype=np.int64), np.zeros(4, dtype=np.int64)
        if self.analyzer != "word":
            in_words = self.analyzer == "char_wb"
            most = size + size // 2 if in_words else size  # a word of one letter gets a space before and behind
            (scratch, begins, stops), groups = room(most, most), np.zeros(rows + size // 2 + 64, dtype=np.int64)
            while not kernels.find_characters(
                data, offsets, present, *folding, in_words, scratch, begins, stops, groups, texts, state
            ):
                scratch, begins, stops, groups = (longer(array, 0) for array in (scratch, begins, stops, groups))
            return scratch, begins, stops, groups[: texts[-1] + 1], texts
        scratch, begins, stops = room(size, size // 4)
        while not kernels.find_words(
            data, offsets, present, *folding, self.lowercase, self.shortest, scratch, begins, stops, texts, state
        ):
            scratch, begins, stops = (longer(array, 0) for array in (scratch, begins, stops))
        return self._kept(scratch, begins[: texts[-1]], stops[: texts[-1]], texts)

    def _kept(self, scratch: Bytes, begins: Integers, stops: Integers, texts: Integers) -> Units:
        """Without the stop words, and side by side where several form a word."""
        if self.ngram_range[1] > 1 or self.stop_words:
            stop, left = self._stop.index, np.zeros_like(texts)
            out = np.empty(int((stops - begins).sum()) + begins.size + SPARE, dtype=np.uint8)
            kernels.keep_words(
                scratch, begins, stops, texts, stop.entries, stop.text, stop.starts, SEEDS, out, left
            )  # fmt: skip
            scratch, texts = out, left
        return scratch, begins[: texts[-1]], stops[: texts[-1]], texts, np.arange(texts.size)

    @cached_property
    def _stop(self) -> Vocabulary:
        return Vocabulary.of(self.stop_words)

    def _by_hand(
        self, data: Bytes, offsets: Integers, present: Flags, tokenizer: Tokenizer
    ) -> tuple[Bytes, Integers, Integers, Integers]:
        """The words that the user's own function finds."""
        warnings.warn(
            "Text(tokenizer=...) runs in Python, a word at a time: it is some fifty times slower", stacklevel=2
        )
        words: list[bytes] = []
        texts = [0]
        for text, there in zip(decoded(data, offsets), present, strict=True):
            if there:
                found = tokenizer(prepared(text, self.lowercase, self.strip_accents))
                found = list(found) if isinstance(found, Iterable) else [found]
                if unknown := [word for word in found if not isinstance(word, str)]:
                    raise UsageError(f"Text(tokenizer=...) found {unknown[0]!r}; let it return words, each a str")
                words += [word.replace("\0", " ").encode(errors="replace") for word in found if word]
            texts.append(len(words))
        stops = np.cumsum([len(word) for word in words], dtype=np.int64)
        begins = np.concatenate([[0], stops[:-1]]).astype(np.int64) if words else stops.copy()
        return np.frombuffer(b"".join(words) + bytes(32), dtype=np.uint8).copy(), begins, stops, np.array(texts)


def room(size: int, words: int) -> Cut:
    """What texts of so many bytes are cut into: the bytes of their words, where each begins and where it stops."""
    return (
        np.empty(size + 2 * SPARE_BYTES, dtype=np.uint8),
        np.empty(words + 64, dtype=np.int64),
        np.empty(words + 64, dtype=np.int64),
    )


class Stretch(NamedTuple):
    """Some texts, text k from offsets[k] to offsets[k + 1], whether each is there, and whether all are ASCII."""

    data: Bytes
    offsets: Integers
    present: Flags
    plain: bool


def _has_sigma(data: Bytes) -> bool:
    """Whether there is a capital sigma: the one letter whose small form depends on its neighbours."""
    first, second = "\N{GREEK CAPITAL LETTER SIGMA}".encode()
    return bool((data[np.flatnonzero(data[:-1] == first) + 1] == second).any())


def _pieces(offsets: Integers, size: int) -> Iterator[tuple[int, int]]:
    """Some texts at a time, of so many bytes: the first and the one after the last."""
    rows, first = offsets.size - 1, 0
    while first < rows:
        last = int(np.searchsorted(offsets, offsets[first] + size, side="right"))
        last = min(max(last - 1, first + 1), rows)
        yield first, last
        first = last


def _behind_each_other(pieces: Sequence[tuple[Codes, Integers]]) -> tuple[Codes, Integers]:
    """The numbers of the words of all pieces, and where those of each text begin."""
    if len(pieces) == 1:
        return pieces[0]
    before = np.cumsum([0, *(firsts[-1] for _, firsts in pieces)])
    starts = [firsts[1:] + offset for (_, firsts), offset in zip(pieces, before[:-1], strict=True)]
    numbers = np.concatenate([numbers for numbers, _ in pieces] or [NO_TAIL])
    return numbers, np.concatenate([np.zeros(1, dtype=np.int64), *starts])


def parts_of(texts: pa.Array) -> tuple[Bytes, Integers, Flags]:
    """The bytes of texts, where each begins, and whether it is there."""
    kind = np.int64 if pa.types.is_large_string(texts.type) else np.int32
    _, starts, held = texts.buffers()
    present = np.ones(len(texts), dtype=np.bool_)
    if texts.null_count:
        present = np.asarray(texts.is_valid().to_numpy(zero_copy_only=False))
    if starts is None or not starts.size:
        return np.zeros(0, dtype=np.uint8), np.zeros(len(texts) + 1, dtype=np.int64), present
    offsets = np.frombuffer(starts, dtype=kind)[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
    data = np.zeros(0, dtype=np.uint8) if held is None else np.frombuffer(held, dtype=np.uint8)
    return np.asarray(kernel_view(data)), offsets, present


def decoded(data: Bytes, offsets: Integers) -> list[str]:
    """The texts as Python has them; bytes that are no UTF-8 are replaced."""
    return [bytes(data[a:b]).decode(errors="replace") for a, b in pairwise(offsets)]


def prepared(text: str, lowercase: bool, strip_accents: bool) -> str:
    """A text as its words are written in the vocabulary."""
    text = text.lower() if lowercase else text
    if not strip_accents or text.isascii():
        return text
    return "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))


NOTHING: tuple[Codes, Codes] = (np.zeros(128, dtype=np.int32), np.zeros(1, dtype=np.int32))


@cache
def folding(lowercase: bool, strip_accents: bool, characters: bool) -> tuple[Codes, Codes]:
    """What each code point becomes in a word, as `find_words` (or `find_characters`) takes it.

    From Python's own tables, once, and only where there is a text that is not ASCII.
    """
    from deciban.kernels.texts import SPACE

    folded = np.arange(POINTS, dtype=np.int32) if characters else np.zeros(POINTS, dtype=np.int32)
    spaces: set[int] = set()
    for first in range(0, POINTS, BLOCK):  # all at once would need a hundred megabytes
        block = np.arange(first, first + BLOCK, dtype="<u4").tobytes().decode("utf-32-le", "surrogatepass")
        if characters:
            spaces.update(first + found.start() for found in re.finditer(r"\s", block))
            continue
        for run in re.finditer(r"\w+", block):
            folded[first + run.start() : first + run.end()] = np.arange(first + run.start(), first + run.end())
    if characters:
        spaces.add(0)  # NUL is no part of a word
        folded[0xD800:0xE000] = 0xFFFD

    def one(point: int) -> int:
        """A character as it is in a word: 0 if it is none, marked if it is white space."""
        return (point or ord(" ")) + SPACE if point in spaces else int(folded[point])

    pool, becomes = [0], {point: one(point) for point in spaces}
    for point in range(COMPOSED if strip_accents else CASED if lowercase else 0):
        if 0xD800 <= point < 0xE000:
            continue
        text = prepared(chr(point), lowercase, strip_accents)
        if len(text) == 1 and text != chr(point):
            becomes[point] = one(ord(text))
        elif len(text) != 1:
            becomes[point] = -len(pool)
            pool += [len(text), *(one(ord(c)) for c in text)]
    folded[list(becomes)] = list(becomes.values())
    return folded, np.array(pool, dtype=np.int32)
