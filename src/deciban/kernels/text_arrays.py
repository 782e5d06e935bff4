"""Named tuples of arrays for the kernels of texts and words, so that arguments cannot be confused."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from deciban.util.arrays import Bytes, Codes, Flags, Floats, Integers

Hashes = npt.NDArray[np.uint64]


class Texts(NamedTuple):
    """Texts in UTF-8: text k is data[offsets[k]:offsets[k + 1]] if it is `present`."""

    data: Bytes
    offsets: Integers
    present: Flags


class WordRules(NamedTuple):
    """Rules for splitting texts into words.

    They are the replacement of each code point (see `families.text.tokens`), whether ASCII letters are converted to
    lower case, and the minimum length of a word.
    """

    folded: Codes
    pool: Codes
    lower: bool
    min_word_length: int


class CharacterRules(NamedTuple):
    """Rules for splitting texts into characters: replacements, and whether n-grams stay within words."""

    folded: Codes
    pool: Codes
    in_words: bool


class WordSpans(NamedTuple):
    """Words (or characters, or n-grams): word k is text[begins[k]:stops[k]].

    The arrays may have space for more.
    """

    text: Bytes
    begins: Integers
    stops: Integers


class WordIndex(NamedTuple):
    """Hash table of a vocabulary of `known` words, with space for more; see `kernels.word_index`."""

    entries: Hashes
    text: Bytes
    starts: Integers
    known: int

    @classmethod
    def empty(cls, size: int) -> "WordIndex":
        """Return an index without words, with the space that texts of `size` bytes usually need."""
        entries = 1 << min(max(11, (size // 128).bit_length()), 18)
        text, starts = np.empty(size // 8 + 64, dtype=np.uint8), np.empty(entries // 2 + 1, dtype=np.int64)
        starts[0] = 0
        return cls(np.zeros((entries, 4), dtype=np.uint64), text, starts, 0)


class UnknownWords(NamedTuple):
    """Numbers of unknown words, by the bucket of their hash: numbers[bucket].

    A word is dropped if that is negative or `numbers` is empty.
    """

    numbers: Codes
    seeds: Hashes


class Numbering(NamedTuple):
    """Numbers of the words of texts, those of text k from bounds[k] to bounds[k + 1], up to `state`.

    `hashes` is scratch space for RUN words.
    """

    numbers: Codes
    bounds: Integers
    state: Integers
    hashes: Hashes


class LabeledTexts(NamedTuple):
    """The label and weight of every text, and the counted texts in the order of their classes."""

    order: Integers
    labels: Codes
    weights: Floats


class LeftOutTexts(NamedTuple):
    """The class of each text, and its counted weight to leave out (0: score by all counts)."""

    labels: Codes
    removed: Floats


class LeftOutRules(NamedTuple):
    """Smoothing of counts, minimum count of words in the vocabulary, and normalization.

    With normalization, the amounts of the words of a text are divided by their length.
    """

    alpha: float
    least: float
    normalize: bool


class ShareTable(NamedTuple):
    """Counts for shares of words, word by class, and the counts of each word in all classes (`total`).

    slope: score of each occurrence of a word for a class. bottom: denominator of the shares.
    """

    counts: Floats
    total: Floats
    slope: Floats
    bottom: Floats


class LiftTable(NamedTuple):
    """Counts of words: by class, in all classes, and of all words in each class; and the weight of all texts."""

    counts: Floats
    total: Floats
    sums: Floats
    texts: float


class PresenceTable(NamedTuple):
    """Texts that contain a word: by class, in all classes; and all texts of each class.

    absent: the sum over words of log(texts without the word + alpha).
    """

    counts: Floats
    total: Floats
    texts: Floats
    absent: Floats


class AbsentWithout(NamedTuple):
    """`PresenceTable.absent` without one text of the class, of the weight that was last left out (-1: none)."""

    absent: Floats
    removed: Floats
