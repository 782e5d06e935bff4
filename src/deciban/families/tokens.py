"""From texts to words: what of a text is a word, and how it is written in the vocabulary.

The same words as those of scikit-learn's vectorizers with the options of the same names, in any language.
"""

import re
import unicodedata
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from typing import Literal

import numpy as np
import pyarrow as pa

from deciban import kernels
from deciban.arrays import Bytes, Codes, Flags, Integers, kernel_view
from deciban.errors import UsageError
from deciban.statistics.words import SEEDS, Grams, Units, Vocabulary, learned

Analyzer = Literal["word", "char", "char_wb"]
Tokenizer = Callable[[str], Iterable[str]]

# Texts are cut into words so many bytes at a time: they stay in the cache.
PIECE_BYTES = 1 << 18

# The one letter whose small form depends on its neighbours.
SIGMA = "\N{GREEK CAPITAL LETTER SIGMA}"

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

    @property
    def grams(self) -> Grams:
        return Grams(*self.ngram_range, whole=self.analyzer == "char_wb")

    def units(self, texts: pa.Array) -> Iterator[Units]:
        """The words (or characters) of texts, some texts at a time."""
        data, offsets, present = parts_of(texts)
        first = 0
        while first < present.size:
            last = int(np.searchsorted(offsets, offsets[first] + PIECE_BYTES, side="right"))
            last = min(max(last - 1, first + 1), present.size)
            yield self._cut(data, offsets[first : last + 1], present[first:last])
            first = last

    def words(self, text: str) -> list[str]:
        """The words of one text, in no particular order: what a vectorizer calls its tokens."""
        vocabulary, place, pieces = learned(self.units(pa.array([text], pa.large_string())), self.grams)
        return [vocabulary[number] for numbers, _ in pieces for number in place[numbers]]

    def _cut(self, data: Bytes, offsets: Integers, present: Flags) -> Units:
        plain = data[offsets[0] : offsets[-1]].max(initial=0) < 128
        if self.tokenizer is not None:
            return self._kept(*self._by_hand(data, offsets, present, self.tokenizer))
        if not plain and self.lowercase and SIGMA.encode() in data[offsets[0] : offsets[-1]].tobytes():
            lowered = [text.lower() for text in decoded(data, offsets)]
            data, offsets, _ = parts_of(pa.array(lowered, pa.large_string()))
            plain = False
        characters = self.analyzer != "word"
        folded, pool = NOTHING if plain and not characters else folding(self.lowercase, self.strip_accents, characters)
        if characters:
            in_words = self.analyzer == "char_wb"
            return Units(*kernels.find_characters(data, offsets, present, folded, pool, in_words))
        found = kernels.find_words(data, offsets, present, folded, pool, self.lowercase, self.shortest)
        return self._kept(*found)

    def _kept(self, scratch: Bytes, begins: Integers, stops: Integers, texts: Integers) -> Units:
        """Without the stop words, and side by side where several form a word."""
        if self.ngram_range[1] > 1 or self.stop_words:
            slots, keys, text = self._stop.index
            scratch, texts = kernels.keep_words(
                scratch, begins, stops, texts, slots, keys, text, self._stop.starts, SEEDS
            )
        return Units(scratch, begins, stops, texts, np.arange(texts.size))

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
                if strange := [word for word in found if not isinstance(word, str)]:
                    raise UsageError(f"Text(tokenizer=...) found {strange[0]!r}; let it return words, each a str")
                words += [word.replace("\0", " ").encode(errors="replace") for word in found if word]
            texts.append(len(words))
        stops = np.cumsum([len(word) for word in words], dtype=np.int64)
        begins = np.concatenate([[0], stops[:-1]]).astype(np.int64) if words else stops.copy()
        return np.frombuffer(b"".join(words) + bytes(32), dtype=np.uint8).copy(), begins, stops, np.array(texts)


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
