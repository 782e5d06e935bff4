"""The words of texts: texts as Arrow has them, letters folded to small ones without accents, cut into words."""

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
import pyarrow.compute as pc

from deciban import kernels
from deciban.errors import BadCell, UsageError
from deciban.kernels.text_arrays import CharacterRules, Texts, UnknownWords, WordIndex, WordRules, WordSpans
from deciban.statistics.vocabulary import SEEDS, Vocabulary, enlarge, enlarge_spans, number_words
from deciban.util.arrays import SPARE, Bytes, Codes, Flags, Integers, kernel_view

Analyzer = Literal["word", "char", "char_wb"]

Tokenizer = Callable[[str], Iterable[str]]

# Texts are cut into words so many bytes at a time: they stay in the cache.
CUT_BYTES = 1 << 18

# Bytes that kernels may write behind the words of a text.
SPARE_BYTES = 128

# There are so many code points, of which so many are looked at together. Beyond CASED no letter has a capital form,
# beyond COMPOSED no character has accents or is one.
POINTS = 0x110000

POINTS_AT_ONCE = 1 << 12

CASED = 0x20000

COMPOSED = 0x32000


def as_text(array: pa.Array, column: int = 0) -> pa.Array:
    """The cells as texts; a BadCell where they are something else."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        if pa.types.is_string_view(kind.value_type):  # of which Arrow can take none
            array = pa.DictionaryArray.from_arrays(array.indices, array.dictionary.cast(pa.large_string()))
        return as_text(array.cast(array.type.value_type), column)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return array
    if pa.types.is_string_view(kind) or pa.types.is_null(kind):
        return array.cast(pa.large_string())
    filled = pc.indices_nonzero(array.is_valid())
    if not len(filled):
        return pa.nulls(len(array), pa.large_string())
    row = filled[0].as_py()
    binary = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
    remedy = "decode the bytes, for instance as UTF-8" if binary else "use Gaussian() or Categorical() for it"
    raise BadCell(column, row, f"found {array[row].as_py()!r} ({kind}), expected text", remedy)


def texts_of(array: pa.Array) -> Texts:
    """The texts of an Arrow array of strings as kernels take them; they share its bytes."""
    kind = np.int64 if pa.types.is_large_string(array.type) else np.int32
    _, starts, held = array.buffers()
    present = present_texts(array)
    if starts is None or not starts.size:
        return Texts(np.zeros(0, dtype=np.uint8), np.zeros(len(array) + 1, dtype=np.int64), present)
    offsets = np.frombuffer(starts, dtype=kind)[array.offset : array.offset + len(array) + 1].astype(np.int64)
    data = np.zeros(0, dtype=np.uint8) if held is None else np.frombuffer(held, dtype=np.uint8)
    return Texts(np.asarray(kernel_view(data)), offsets, present)


def present_texts(array: pa.Array) -> Flags:
    """Whether each text is there, not missing."""
    if not array.null_count:
        return np.ones(len(array), dtype=np.bool_)
    return np.asarray(array.is_valid().to_numpy(zero_copy_only=False))


def decoded_texts(data: Bytes, offsets: Integers) -> list[str]:
    """The texts as Python has them; bytes that are no UTF-8 are replaced."""
    return [bytes(data[a:b]).decode(errors="replace") for a, b in pairwise(offsets)]


class Folding(NamedTuple):
    """What each code point becomes: folded[point], 0 if it is no part of a word.

    Where that is negative, it becomes several: pool[-folded[point]] has their number, behind which they stand.
    """

    folded: Codes
    pool: Codes


# For texts that are ASCII, which kernels fold by themselves.
ASCII_FOLDING = Folding(np.zeros(128, dtype=np.int32), np.zeros(1, dtype=np.int32))


def folded_text(text: str, lowercase: bool, strip_accents: bool) -> str:
    """A text as its words are written in the vocabulary."""
    text = text.lower() if lowercase else text
    if not strip_accents or text.isascii():
        return text
    return "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))


@cache
def folding(lowercase: bool, strip_accents: bool, characters: bool) -> Folding:
    """The table for `find_words` or, with `characters`, for `find_characters`, where white space is marked.

    It is made from Python's own tables, once, and only where there is a text that is not ASCII.
    """
    from deciban.kernels.tokenize import SPACE

    folded, spaces = _characters() if characters else (_word_characters(), set[int]())

    def one(point: int) -> int:
        """A character as it is in a word: 0 if it is none, marked if it is white space."""
        return (point or ord(" ")) + SPACE if point in spaces else int(folded[point])

    pool, becomes = [0], {point: one(point) for point in spaces}
    for point in range(COMPOSED if strip_accents else CASED if lowercase else 0):
        if 0xD800 <= point < 0xE000:
            continue
        text = folded_text(chr(point), lowercase, strip_accents)
        if len(text) == 1 and text != chr(point):
            becomes[point] = one(ord(text))
        elif len(text) != 1:
            becomes[point] = -len(pool)
            pool += [len(text), *(one(ord(c)) for c in text)]
    folded[list(becomes)] = list(becomes.values())
    return Folding(folded, np.array(pool, dtype=np.int32))


def _word_characters() -> Codes:
    """Each code point that may be part of a word, 0 for all others."""
    found = np.zeros(POINTS, dtype=np.int32)
    for first, block in _blocks():
        for run in re.finditer(r"\w+", block):
            found[first + run.start() : first + run.end()] = np.arange(first + run.start(), first + run.end())
    return found


def _characters() -> tuple[Codes, set[int]]:
    """Each code point as it is, those that are no character replaced, and those that are white space."""
    found = np.arange(POINTS, dtype=np.int32)
    found[0xD800:0xE000] = 0xFFFD
    spaces = {first + space.start() for first, block in _blocks() for space in re.finditer(r"\s", block)}
    return found, spaces | {0}  # NUL is no part of a word


def _blocks() -> Iterator[tuple[int, str]]:
    """All characters, some at a time, with the first of them: all at once would need a hundred megabytes."""
    for first in range(0, POINTS, POINTS_AT_ONCE):
        points = np.arange(first, first + POINTS_AT_ONCE, dtype="<u4")
        yield first, points.tobytes().decode("utf-32-le", "surrogatepass")


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
    min_word_length: int = 2
    tokenizer: Tokenizer | None = None

    def learn(self, texts: pa.Array) -> tuple[Codes, Integers, Vocabulary]:
        """The numbers of the words of all texts, the bounds of those of each, and the vocabulary of these words."""
        numbers, bounds, index = self._numbered(texts, WordIndex.empty(texts.nbytes), None)
        return numbers, bounds, Vocabulary.from_index(index)

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
            kernel: Any
            if self._single_words:
                longest = int(np.diff(offsets).max(initial=0))
                kernel, given = kernels.tokenize.number_texts, [some.texts, self._word_rules(some.ascii_only)]
                spans, expected = room(longest, longest // 2), int(offsets[-1] - offsets[0]) // 5
            else:
                bounds, spans = self._grams(self._cut(some))
                kernel, given, expected = kernels.word_index.number_words, [bounds], int(bounds[-1])
            numbers, bounds, index = number_words(kernel, given, spans, index, unknown, rows, expected)
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
        return WordRules(*self._folding(ascii_only), self.lowercase, self.min_word_length)

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
        kernels.word_index.list_grams(spans, groups, texts, self.ngram_range, whole, bounds, grams)
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
        while not kernels.tokenize.find_characters(some.texts, rules, spans, groups, bounds, state):
            spans, groups = enlarge_spans(spans), enlarge(groups)
        return Units(spans, groups[: bounds[-1] + 1], bounds)

    def _words(self, some: TextSlice) -> tuple[WordSpans, Integers]:
        """Words, and where those of each text begin."""
        size = int(some.texts.offsets[-1] - some.texts.offsets[0])
        bounds, state = np.zeros(some.texts.present.size + 1, dtype=np.int64), np.zeros(4, dtype=np.int64)
        spans, rules = room(size, size // 4), self._word_rules(some.ascii_only)
        while not kernels.tokenize.find_words(some.texts, rules, spans, bounds, state):
            spans = enlarge_spans(spans)
        return WordSpans(spans.text, spans.begins[: bounds[-1]], spans.stops[: bounds[-1]]), bounds

    def _kept(self, spans: WordSpans, bounds: Integers) -> Units:
        """Words without stop words, and side by side where several form an n-gram."""
        if self.ngram_range[1] > 1 or self.stop_words:
            left = np.zeros_like(bounds)
            out = np.empty(int((spans.stops - spans.begins).sum()) + spans.begins.size + SPARE, dtype=np.uint8)
            kernels.word_index.keep_words(spans, bounds, self._stop.index, SEEDS, out, left)
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
                    raise UsageError(
                        f"Text(tokenizer=...) found {unknown[0]!r}", remedy="let it return words, each a str"
                    )
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
    """Whether there is a capital sigma: the one letter whose small form depends on its neighbors."""
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
