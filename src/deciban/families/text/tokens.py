"""Tokenization: Arrow texts, folding to lowercase without accents, splitting into words."""

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
from deciban.errors import Argument, BadCell, Message, UsageError
from deciban.kernels.text_arrays import CharacterRules, Texts, UnknownWords, WordIndex, WordRules, WordSpans
from deciban.statistics.vocabulary import SEEDS, Vocabulary, enlarge, enlarge_spans, number_words
from deciban.util.arrays import SPARE, Bytes, Codes, Flags, Integers, kernel_view

Analyzer = Literal["word", "char", "char_wb"]

Tokenizer = Callable[[str], Iterable[str]]

# Number of bytes of text that are split at a time; they fit in the cache.
SLICE_BYTES = 1 << 18

# Bytes that kernels may write after the words of a text.
SPARE_BYTES = 128

# Number of Unicode code points.
POINTS = 0x110000

# Number of code points that are examined at a time.
POINTS_AT_ONCE = 1 << 12

# No code point from here on has an uppercase form.
MAX_CASED = 0x20000

# No code point from here on is, or has, an accent.
MAX_COMPOSED = 0x32000


def as_text(array: pa.Array, column: int = 0) -> pa.Array:
    """Return the cells as texts; raise BadCell if they have another type."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        if pa.types.is_string_view(kind.value_type):  # Arrow cannot take rows of it
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
    other = Argument("family", "Gaussian"), " or ", Argument("family", "Categorical")
    remedy: Message = "decode the bytes, for instance as UTF-8" if binary else ("use ", *other, " for this column")
    raise BadCell(column, row, f"found {array[row].as_py()!r} ({kind}), expected text", remedy)


def view_texts(array: pa.Array) -> Texts:
    """Return the texts of an Arrow array of strings for kernels; they share its bytes."""
    kind = np.int64 if pa.types.is_large_string(array.type) else np.int32
    _, starts, held = array.buffers()
    present = find_present(array)
    if starts is None or not starts.size:
        return Texts(np.zeros(0, dtype=np.uint8), np.zeros(len(array) + 1, dtype=np.int64), present)
    offsets = np.frombuffer(starts, dtype=kind)[array.offset : array.offset + len(array) + 1].astype(np.int64)
    data = np.zeros(0, dtype=np.uint8) if held is None else np.frombuffer(held, dtype=np.uint8)
    return Texts(np.asarray(kernel_view(data)), offsets, present)


def find_present(array: pa.Array) -> Flags:
    """Return a flag for each text that is not missing."""
    if not array.null_count:
        return np.ones(len(array), dtype=np.bool_)
    return np.asarray(array.is_valid().to_numpy(zero_copy_only=False))


def decode_texts(data: Bytes, offsets: Integers) -> list[str]:
    """Return the texts as Python strings; invalid UTF-8 is replaced."""
    return [bytes(data[a:b]).decode(errors="replace") for a, b in pairwise(offsets)]


class Folding(NamedTuple):
    """Table of replacements of code points: folded[point]; 0 if it is not part of a word.

    A negative entry stands for several code points: their number is pool[-folded[point]], and they follow it.
    """

    folded: Codes
    pool: Codes


# Placeholder for ASCII texts, which kernels fold without a table.
ASCII_FOLDING = Folding(np.zeros(128, dtype=np.int32), np.zeros(1, dtype=np.int32))


def fold_text(text: str, lowercase: bool, strip_accents: bool) -> str:
    """Return a text in lowercase and without accents, as requested."""
    text = text.lower() if lowercase else text
    if not strip_accents or text.isascii():
        return text
    return "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))


@cache
def build_folding(lowercase: bool, strip_accents: bool, characters: bool) -> Folding:
    """Return the table for `find_words` or, with `characters`, for `find_characters`, which marks white space.

    It is built once from Python's Unicode tables, when the first text that is not ASCII is read.
    """
    from deciban.kernels.tokenize import SPACE

    folded, spaces = _characters() if characters else (_word_characters(), set[int]())

    def one(point: int) -> int:
        """Return the entry of a character: 0 if it is not part of a word, marked if it is white space."""
        return (point or ord(" ")) + SPACE if point in spaces else int(folded[point])

    pool, becomes = [0], {point: one(point) for point in spaces}
    for point in range(MAX_COMPOSED if strip_accents else MAX_CASED if lowercase else 0):
        if 0xD800 <= point < 0xE000:
            continue
        text = fold_text(chr(point), lowercase, strip_accents)
        if len(text) == 1 and text != chr(point):
            becomes[point] = one(ord(text))
        elif len(text) != 1:
            becomes[point] = -len(pool)
            pool += [len(text), *(one(ord(c)) for c in text)]
    folded[list(becomes)] = list(becomes.values())
    return Folding(folded, np.array(pool, dtype=np.int32))


def _word_characters() -> Codes:
    """Return each code point that may be part of a word; 0 for all others."""
    found = np.zeros(POINTS, dtype=np.int32)
    for first, block in _blocks():
        for run in re.finditer(r"\w+", block):
            found[first + run.start() : first + run.end()] = np.arange(first + run.start(), first + run.end())
    return found


def _characters() -> tuple[Codes, set[int]]:
    """Return all code points, with surrogates replaced, and the set of those that are white space."""
    found = np.arange(POINTS, dtype=np.int32)
    found[0xD800:0xE000] = 0xFFFD
    spaces = {first + space.start() for first, block in _blocks() for space in re.finditer(r"\s", block)}
    return found, spaces | {0}  # NUL is not part of a word


def _blocks() -> Iterator[tuple[int, str]]:
    """Yield all characters in blocks, each with its first code point; all at once would need 100 MB."""
    for first in range(0, POINTS, POINTS_AT_ONCE):
        points = np.arange(first, first + POINTS_AT_ONCE, dtype="<u4")
        yield first, points.tobytes().decode("utf-32-le", "surrogatepass")


class TextSlice(NamedTuple):
    """Texts that are split together; ascii_only: True if all of them are ASCII."""

    texts: Texts
    ascii_only: bool


class Units(NamedTuple):
    """Texts split into units: words or characters.

    groups: the first unit of each group, and the end; n-grams do not cross groups. bounds: the first group of each
    text, and the end.
    """

    spans: WordSpans
    groups: Integers
    bounds: Integers


@dataclass(frozen=True)
class Tokens:
    """Rules that split a text into words; the parameters are those of `Text`."""

    analyzer: Analyzer = "word"
    ngram_range: tuple[int, int] = (1, 1)
    lowercase: bool = True
    strip_accents: bool = False
    stop_words: tuple[str, ...] = ()
    min_word_length: int = 2
    tokenizer: Tokenizer | None = None

    def learn(self, texts: pa.Array) -> tuple[Codes, Integers, Vocabulary]:
        """Return the numbers of the words of all texts, the bounds of each text among them, and the vocabulary."""
        numbers, bounds, index = self._number(texts, WordIndex.empty(texts.nbytes), None)
        return numbers, bounds, Vocabulary.from_index(index)

    def look_up(self, texts: pa.Array, vocabulary: Vocabulary, unknown: UnknownWords) -> tuple[Codes, Integers]:
        """Return the numbers of the words that are in a vocabulary, and the bounds of each text among them."""
        numbers, bounds, _ = self._number(texts, vocabulary.index, unknown)
        return numbers, bounds

    def words(self, text: str) -> list[str]:
        """Return the words (tokens) of one text, in any order."""
        numbers, _, vocabulary = self.learn(pa.array([text], pa.large_string()))
        return [vocabulary[number] for number in numbers]

    @property
    def marks_words(self) -> bool:
        """True if words are runs of characters of the text, so that they can be highlighted in it."""
        return self.analyzer == "word" and self.tokenizer is None

    def _number(
        self, texts: pa.Array, index: WordIndex, unknown: UnknownWords | None
    ) -> tuple[Codes, Integers, WordIndex]:
        """Return the result of `number_words` for all texts."""
        found = []
        given: list[Any]
        for some in self._slices(view_texts(texts)):
            offsets, rows = some.texts.offsets, some.texts.present.size
            kernel: Any
            if self._single_words:
                longest = int(np.diff(offsets).max(initial=0))
                kernel, given = kernels.tokenize.number_texts, [some.texts, self._word_rules(some.ascii_only)]
                spans, expected = allocate_spans(longest, longest // 2), int(offsets[-1] - offsets[0]) // 5
            else:
                bounds, spans = self._grams(self._segment(some))
                kernel, given, expected = kernels.word_index.number_words, [bounds], int(bounds[-1])
            numbers, bounds, index = number_words(kernel, given, spans, index, unknown, rows, expected)
            found.append((numbers, bounds))
        return *_concatenate(found), index

    @property
    def _single_words(self) -> bool:
        """True if only single words are counted, without stop words."""
        return self.marks_words and self.ngram_range == (1, 1) and not self.stop_words

    def _slices(self, texts: Texts) -> Iterator[TextSlice]:
        """Yield the texts in slices: as large as possible for single words, otherwise as fit in the cache."""
        data, offsets, present = texts
        begin, plain = 0, True
        for first, last in _runs_of_bytes(offsets, 4 * SLICE_BYTES if self._single_words else SLICE_BYTES):
            some = data[offsets[first] : offsets[last]]
            ascii_only = bool(some.max(initial=0) < 128)
            sigma = not ascii_only and self.lowercase and self.tokenizer is None and _has_sigma(some)
            if begin < first and (sigma or not self._single_words):
                yield TextSlice(Texts(data, offsets[begin : first + 1], present[begin:first]), plain)
                begin, plain = first, True
            if sigma:
                lowered = [text.lower() for text in decode_texts(data, offsets[first : last + 1])]
                small = view_texts(pa.array(lowered, pa.large_string()))
                yield TextSlice(small._replace(present=present[first:last]), False)
                begin, plain = last, True
            else:
                plain = plain and ascii_only
        if begin < present.size:
            yield TextSlice(Texts(data, offsets[begin:], present[begin:]), plain)

    def _word_rules(self, ascii_only: bool) -> WordRules:
        return WordRules(*self._choose_folding(ascii_only), self.lowercase, self.min_word_length)

    def _choose_folding(self, ascii_only: bool) -> Folding:
        characters = self.analyzer != "word"
        if ascii_only and not characters:
            return ASCII_FOLDING
        return build_folding(self.lowercase, self.strip_accents, characters)

    def _grams(self, units: Units) -> tuple[Integers, WordSpans]:
        """Return the first word (or n-gram) of each text, and all of them.

        With "char_wb", a word shorter than the shortest n-gram counts once, as a whole.
        """
        spans, groups, texts = units
        low, high = self.ngram_range
        if high == 1:
            return np.ascontiguousarray(groups[texts]), spans
        whole, size = self.analyzer == "char_wb", np.diff(groups)
        count = sum(int(np.maximum(size - n + 1, 0).sum()) for n in range(low, high + 1))
        count += int(((size > 0) & (size < low)).sum()) if whole else 0
        bounds = np.zeros_like(texts)
        grams = WordSpans(spans.text, np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64))
        kernels.word_index.list_grams(spans, groups, texts, self.ngram_range, whole, bounds, grams)
        return bounds, grams

    def _segment(self, some: TextSlice) -> Units:
        if self.tokenizer is not None:
            return self._filter(*self._tokenize(some.texts, self.tokenizer))
        return self._characters(some) if self.analyzer != "word" else self._filter(*self._words(some))

    def _characters(self, some: TextSlice) -> Units:
        rows, in_words = some.texts.present.size, self.analyzer == "char_wb"
        size = int(some.texts.offsets[-1] - some.texts.offsets[0])
        max_size = size + size // 2 if in_words else size  # a word of one letter gets a space before and after it
        spans, groups = allocate_spans(max_size, max_size), np.zeros(rows + size // 2 + 64, dtype=np.int64)
        bounds, state = np.zeros(rows + 1, dtype=np.int64), np.zeros(4, dtype=np.int64)
        rules = CharacterRules(*self._choose_folding(some.ascii_only), in_words)
        while not kernels.tokenize.find_characters(some.texts, rules, spans, groups, bounds, state):
            spans, groups = enlarge_spans(spans), enlarge(groups)
        return Units(spans, groups[: bounds[-1] + 1], bounds)

    def _words(self, some: TextSlice) -> tuple[WordSpans, Integers]:
        """Return the words, and the first word of each text."""
        size = int(some.texts.offsets[-1] - some.texts.offsets[0])
        bounds, state = np.zeros(some.texts.present.size + 1, dtype=np.int64), np.zeros(4, dtype=np.int64)
        spans, rules = allocate_spans(size, size // 4), self._word_rules(some.ascii_only)
        while not kernels.tokenize.find_words(some.texts, rules, spans, bounds, state):
            spans = enlarge_spans(spans)
        return WordSpans(spans.text, spans.begins[: bounds[-1]], spans.stops[: bounds[-1]]), bounds

    def _filter(self, spans: WordSpans, bounds: Integers) -> Units:
        """Remove stop words; write words next to each other if n-grams need it."""
        if self.ngram_range[1] > 1 or self.stop_words:
            left = np.zeros_like(bounds)
            out = np.empty(int((spans.stops - spans.begins).sum()) + spans.begins.size + SPARE, dtype=np.uint8)
            kernels.word_index.keep_words(spans, bounds, self._stop.index, SEEDS, out, left)
            spans, bounds = WordSpans(out, spans.begins[: left[-1]], spans.stops[: left[-1]]), left
        return Units(spans, bounds, np.arange(bounds.size))

    @cached_property
    def _stop(self) -> Vocabulary:
        return Vocabulary.of(self.stop_words)

    def _tokenize(self, texts: Texts, tokenizer: Tokenizer) -> tuple[WordSpans, Integers]:
        """Return the words found by the user's function, and the first word of each text."""
        warnings.warn("Text(tokenizer=...) runs in Python and is about 50 times slower than analyzer=", stacklevel=2)
        words: list[bytes] = []
        bounds = [0]
        for text, there in zip(decode_texts(texts.data, texts.offsets), texts.present, strict=True):
            if there:
                found = tokenizer(fold_text(text, self.lowercase, self.strip_accents))
                found = list(found) if isinstance(found, Iterable) else [found]
                if unknown := [word for word in found if not isinstance(word, str)]:
                    raise UsageError(
                        f"Text(tokenizer=...) returned {unknown[0]!r}, expected words",
                        remedy="return a list of str",
                    )
                words += [word.replace("\0", " ").encode(errors="replace") for word in found if word]
            bounds.append(len(words))
        stops = np.cumsum([len(word) for word in words], dtype=np.int64)
        begins = np.concatenate([[0], stops[:-1]]).astype(np.int64) if words else stops.copy()
        data = np.frombuffer(b"".join(words) + bytes(32), dtype=np.uint8).copy()
        return WordSpans(data, begins, stops), np.array(bounds)


def allocate_spans(size: int, words: int) -> WordSpans:
    """Allocate space for the words of a text of `size` bytes."""
    begins, stops = np.empty(words + 64, dtype=np.int64), np.empty(words + 64, dtype=np.int64)
    return WordSpans(np.empty(size + 2 * SPARE_BYTES, dtype=np.uint8), begins, stops)


def _has_sigma(data: Bytes) -> bool:
    """Return True if there is a capital sigma, the one letter whose lowercase form depends on its neighbors."""
    first, second = "\N{GREEK CAPITAL LETTER SIGMA}".encode()
    return bool((data[np.flatnonzero(data[:-1] == first) + 1] == second).any())


def _runs_of_bytes(offsets: Integers, size: int) -> Iterator[tuple[int, int]]:
    """Yield runs of texts of about `size` bytes: the first text, and the one after the last."""
    rows, first = offsets.size - 1, 0
    while first < rows:
        last = int(np.searchsorted(offsets, offsets[first] + size, side="right"))
        last = min(max(last - 1, first + 1), rows)
        yield first, last
        first = last


def _concatenate(slices: Sequence[tuple[Codes, Integers]]) -> tuple[Codes, Integers]:
    """Return the numbers of the words of all slices, and the bounds of each text among them."""
    if len(slices) == 1:
        return slices[0]
    before = np.cumsum([0, *(bounds[-1] for _, bounds in slices)])
    starts = [bounds[1:] + offset for (_, bounds), offset in zip(slices, before[:-1], strict=True)]
    numbers = np.concatenate([numbers for numbers, _ in slices] or [np.zeros(0, dtype=np.int32)])
    return numbers, np.concatenate([np.zeros(1, dtype=np.int64), *starts])
