"""From texts to words: what of a text is a word, and how it is written in the vocabulary.

The same words as those of scikit-learn's vectorizers with the options of the same names, in any language.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from deciban import kernels
from deciban.errors import UsageError
from deciban.families.text.cells import decoded_texts, texts_of
from deciban.families.text.folding import ASCII_FOLDING, Folding, folded_text, folding
from deciban.kernels.text_arrays import CharacterRules, Texts, UnknownWords, WordIndex, WordRules, WordSpans
from deciban.statistics.vocabulary import SEEDS, Vocabulary, enlarged, enlarged_spans, number_with_room
from deciban.util.arrays import SPARE, Bytes, Codes, Integers

Analyzer = Literal["word", "char", "char_wb"]
Tokenizer = Callable[[str], Iterable[str]]

# Texts are cut into words so many bytes at a time: they stay in the cache.
CUT_BYTES = 1 << 18

# Bytes that kernels may write behind the words of a text.
SPARE_BYTES = 128


class TextSlice(NamedTuple):
    """Some texts that are cut into words together, and whether all of them are ASCII."""

    texts: Texts
    ascii_only: bool


class Units(NamedTuple):
    """Texts cut into words or characters.

    groups: the first unit of each group, which n-grams do not leave, and the end. bounds: the first group of each text,
    and the end.
    """

    spans: WordSpans
    groups: Integers
    bounds: Integers


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

    def learn(self, texts: pa.Array) -> tuple[Codes, Integers, Vocabulary]:
        """The numbers of the words of all texts, the bounds of those of each, and the vocabulary of these words."""
        numbers, bounds, index = self._numbered(texts, WordIndex.empty(texts.nbytes), None)
        return numbers, bounds, Vocabulary.of_index(index)

    def look_up(self, texts: pa.Array, vocabulary: Vocabulary, unknown: UnknownWords) -> tuple[Codes, Integers]:
        """The numbers of the words of all texts that are in a vocabulary, and the bounds of those of each text."""
        numbers, bounds, _ = self._numbered(texts, vocabulary.index, unknown)
        return numbers, bounds

    def words(self, text: str) -> list[str]:
        """The words of one text, in no particular order: what a vectorizer calls its tokens."""
        numbers, _, vocabulary = self.learn(pa.array([text], pa.large_string()))
        return [vocabulary[number] for number in numbers]

    @property
    def marks_words(self) -> bool:
        """Whether its words are runs of letters of the text, which can be found there again."""
        return self.analyzer == "word" and self.tokenizer is None

    def _numbered(
        self, texts: pa.Array, index: WordIndex, unknown: UnknownWords | None
    ) -> tuple[Codes, Integers, WordIndex]:
        """See `number_with_room`."""
        found = []
        given: list[Any]
        for some in self._slices(texts_of(texts)):
            offsets, rows = some.texts.offsets, some.texts.present.size
            if self._single_words:
                longest = int(np.diff(offsets).max(initial=0))
                kernel, given = kernels.number_texts, [some.texts, self._word_rules(some.ascii_only)]
                spans, expected = room(longest, longest // 2), int(offsets[-1] - offsets[0]) // 5
            else:
                bounds, spans = self._grams(self._cut(some))
                kernel, given, expected = kernels.number_words, [bounds], int(bounds[-1])
            numbers, bounds, index = number_with_room(kernel, given, spans, index, unknown, rows, expected)
            found.append((numbers, bounds))
        return *_concatenated(found), index

    @property
    def _single_words(self) -> bool:
        """Whether words are counted as they come, one by one."""
        return self.marks_words and self.ngram_range == (1, 1) and not self.stop_words

    def _slices(self, texts: Texts) -> Iterator[TextSlice]:
        """Texts that are cut together: of single words as many as can be, otherwise those that fit into the cache."""
        data, offsets, present = texts
        begin, plain = 0, True
        for first, last in _runs_of_bytes(offsets, 4 * CUT_BYTES if self._single_words else CUT_BYTES):
            some = data[offsets[first] : offsets[last]]
            ascii_only = bool(some.max(initial=0) < 128)
            sigma = not ascii_only and self.lowercase and self.tokenizer is None and _has_sigma(some)
            if begin < first and (sigma or not self._single_words):
                yield TextSlice(Texts(data, offsets[begin : first + 1], present[begin:first]), plain)
                begin, plain = first, True
            if sigma:
                lowered = [text.lower() for text in decoded_texts(data, offsets[first : last + 1])]
                small = texts_of(pa.array(lowered, pa.large_string()))
                yield TextSlice(small._replace(present=present[first:last]), False)
                begin, plain = last, True
            else:
                plain = plain and ascii_only
        if begin < present.size:
            yield TextSlice(Texts(data, offsets[begin:], present[begin:]), plain)

    def _word_rules(self, ascii_only: bool) -> WordRules:
        return WordRules(*self._folding(ascii_only), self.lowercase, self.shortest)

    def _folding(self, ascii_only: bool) -> Folding:
        characters = self.analyzer != "word"
        if ascii_only and not characters:
            return ASCII_FOLDING
        return folding(self.lowercase, self.strip_accents, characters)

    def _grams(self, units: Units) -> tuple[Integers, WordSpans]:
        """Where the words (or n-grams) of each text begin among all, and these.

        In words, of a group that is shorter than an n-gram all of it counts, once.
        """
        spans, groups, texts = units
        least, most = self.ngram_range
        if most == 1:
            return np.ascontiguousarray(groups[texts]), spans
        whole, size = self.analyzer == "char_wb", np.diff(groups)
        count = sum(int(np.maximum(size - n + 1, 0).sum()) for n in range(least, most + 1))
        count += int(((size > 0) & (size < least)).sum()) if whole else 0
        bounds = np.zeros_like(texts)
        grams = WordSpans(spans.text, np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64))
        kernels.list_grams(spans, groups, texts, self.ngram_range, whole, bounds, grams)
        return bounds, grams

    def _cut(self, some: TextSlice) -> Units:
        if self.tokenizer is not None:
            return self._kept(*self._tokenized(some.texts, self.tokenizer))
        return self._characters(some) if self.analyzer != "word" else self._kept(*self._words(some))

    def _characters(self, some: TextSlice) -> Units:
        rows, in_words = some.texts.present.size, self.analyzer == "char_wb"
        size = int(some.texts.offsets[-1] - some.texts.offsets[0])
        most = size + size // 2 if in_words else size  # a word of one letter gets a space before and behind
        spans, groups = room(most, most), np.zeros(rows + size // 2 + 64, dtype=np.int64)
        bounds, state = np.zeros(rows + 1, dtype=np.int64), np.zeros(4, dtype=np.int64)
        rules = CharacterRules(*self._folding(some.ascii_only), in_words)
        while not kernels.find_characters(some.texts, rules, spans, groups, bounds, state):
            spans, groups = enlarged_spans(spans), enlarged(groups)
        return Units(spans, groups[: bounds[-1] + 1], bounds)

    def _words(self, some: TextSlice) -> tuple[WordSpans, Integers]:
        """Words, and where those of each text begin."""
        size = int(some.texts.offsets[-1] - some.texts.offsets[0])
        bounds, state = np.zeros(some.texts.present.size + 1, dtype=np.int64), np.zeros(4, dtype=np.int64)
        spans, rules = room(size, size // 4), self._word_rules(some.ascii_only)
        while not kernels.find_words(some.texts, rules, spans, bounds, state):
            spans = enlarged_spans(spans)
        return WordSpans(spans.text, spans.begins[: bounds[-1]], spans.stops[: bounds[-1]]), bounds

    def _kept(self, spans: WordSpans, bounds: Integers) -> Units:
        """Words without stop words, and side by side where several form an n-gram."""
        if self.ngram_range[1] > 1 or self.stop_words:
            left = np.zeros_like(bounds)
            out = np.empty(int((spans.stops - spans.begins).sum()) + spans.begins.size + SPARE, dtype=np.uint8)
            kernels.keep_words(spans, bounds, self._stop.index, SEEDS, out, left)
            spans, bounds = WordSpans(out, spans.begins[: left[-1]], spans.stops[: left[-1]]), left
        return Units(spans, bounds, np.arange(bounds.size))

    @cached_property
    def _stop(self) -> Vocabulary:
        return Vocabulary.of(self.stop_words)

    def _tokenized(self, texts: Texts, tokenizer: Tokenizer) -> tuple[WordSpans, Integers]:
        """The words that the user's own function finds, and where those of each text begin."""
        warnings.warn(
            "Text(tokenizer=...) runs in Python, a word at a time: it is some fifty times slower", stacklevel=2
        )
        words: list[bytes] = []
        bounds = [0]
        for text, there in zip(decoded_texts(texts.data, texts.offsets), texts.present, strict=True):
            if there:
                found = tokenizer(folded_text(text, self.lowercase, self.strip_accents))
                found = list(found) if isinstance(found, Iterable) else [found]
                if unknown := [word for word in found if not isinstance(word, str)]:
                    raise UsageError(f"Text(tokenizer=...) found {unknown[0]!r}; let it return words, each a str")
                words += [word.replace("\0", " ").encode(errors="replace") for word in found if word]
            bounds.append(len(words))
        stops = np.cumsum([len(word) for word in words], dtype=np.int64)
        begins = np.concatenate([[0], stops[:-1]]).astype(np.int64) if words else stops.copy()
        data = np.frombuffer(b"".join(words) + bytes(32), dtype=np.uint8).copy()
        return WordSpans(data, begins, stops), np.array(bounds)


def room(size: int, words: int) -> WordSpans:
    """Room for so many words of texts of so many bytes."""
    begins, stops = np.empty(words + 64, dtype=np.int64), np.empty(words + 64, dtype=np.int64)
    return WordSpans(np.empty(size + 2 * SPARE_BYTES, dtype=np.uint8), begins, stops)


def _has_sigma(data: Bytes) -> bool:
    """Whether there is a capital sigma: the one letter whose small form depends on its neighbours."""
    first, second = "\N{GREEK CAPITAL LETTER SIGMA}".encode()
    return bool((data[np.flatnonzero(data[:-1] == first) + 1] == second).any())


def _runs_of_bytes(offsets: Integers, size: int) -> Iterator[tuple[int, int]]:
    """Some texts at a time, of so many bytes: the first and the one after the last."""
    rows, first = offsets.size - 1, 0
    while first < rows:
        last = int(np.searchsorted(offsets, offsets[first] + size, side="right"))
        last = min(max(last - 1, first + 1), rows)
        yield first, last
        first = last


def _concatenated(slices: Sequence[tuple[Codes, Integers]]) -> tuple[Codes, Integers]:
    """The numbers of the words of all slices, and the bounds of those of each text."""
    if len(slices) == 1:
        return slices[0]
    before = np.cumsum([0, *(bounds[-1] for _, bounds in slices)])
    starts = [bounds[1:] + offset for (_, bounds), offset in zip(slices, before[:-1], strict=True)]
    numbers = np.concatenate([numbers for numbers, _ in slices] or [np.zeros(0, dtype=np.int32)])
    return numbers, np.concatenate([np.zeros(1, dtype=np.int64), *starts])
