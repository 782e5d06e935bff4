"""What kernels of texts and words take together: arrays by name, so that none can stand in the place of another."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from deciban.util.arrays import Bytes, Codes, Flags, Floats, Integers

Hashes = npt.NDArray[np.uint64]


class Texts(NamedTuple):
    """Texts in UTF-8: text k is data[offsets[k]:offsets[k + 1]] where it is `present`."""

    data: Bytes
    offsets: Integers
    present: Flags


class WordRules(NamedTuple):
    """How texts are cut into words: what each code point becomes (see `families.text.tokens`), whether ASCII letters
    are made small, and the characters that a word has at least."""

    folded: Codes
    pool: Codes
    lower: bool
    min_word_length: int


class CharacterRules(NamedTuple):
    """How texts are cut into characters: what each code point becomes, and whether n-grams stay within words."""

    folded: Codes
    pool: Codes
    in_words: bool


class WordSpans(NamedTuple):
    """Words (or characters, or n-grams): word k is text[begins[k]:stops[k]]. There may be room for more."""

    text: Bytes
    begins: Integers
    stops: Integers


class WordIndex(NamedTuple):
    """The hash table of a vocabulary of `known` words, with room for more; see `kernels.word_index`."""

    entries: Hashes
    text: Bytes
    starts: Integers
    known: int

    @classmethod
    def empty(cls, size: int) -> "WordIndex":
        """Without words, for texts of so many bytes: with the room that most languages need."""
        entries = 1 << min(max(11, (size // 128).bit_length()), 18)
        text, starts = np.empty(size // 8 + 64, dtype=np.uint8), np.empty(entries // 2 + 1, dtype=np.int64)
        starts[0] = 0
        return cls(np.zeros((entries, 4), dtype=np.uint64), text, starts, 0)


class UnknownWords(NamedTuple):
    """The number of a word that is not in the vocabulary, by the bucket of its hash: numbers[bucket], none if that is
    negative or `numbers` is empty."""

    numbers: Codes
    seeds: Hashes


class Numbering(NamedTuple):
    """The numbers of the words of texts, those of text k from bounds[k] to bounds[k + 1], as far as `state` has come.

    `hashes` is room for RUN words.
    """

    numbers: Codes
    bounds: Integers
    state: Integers
    hashes: Hashes


class LabeledTexts(NamedTuple):
    """The label and weight of every text, and the texts that count, in the order of their classes."""

    order: Integers
    labels: Codes
    weights: Floats


class LeftOutTexts(NamedTuple):
    """The class of each text, and the weight of it that was counted and is left out (0: it is scored as it is)."""

    labels: Codes
    removed: Floats


class LeftOutRules(NamedTuple):
    """What is added to every count, the count below which words are left out of the vocabulary, and whether the amounts
    of the words of a text are divided by their length."""

    alpha: float
    least: float
    normalize: bool


class ShareTable(NamedTuple):
    """Counts that shares of words are of, word by class, and the counts of each word in all classes (`total`).

    slope: what each occurrence of a word adds to the score of a class. bottom: what shares are divided by.
    """

    counts: Floats
    total: Floats
    slope: Floats
    bottom: Floats


class LiftTable(NamedTuple):
    """The counts of words, word by class, those of each word in all classes, those of all words in each class, and the
    weight of all texts."""

    counts: Floats
    total: Floats
    sums: Floats
    texts: float


class PresenceTable(NamedTuple):
    """The texts that have a word, word by class, those of all classes, and all texts of each class.

    absent: the sum over words of log(texts without the word + alpha).
    """

    counts: Floats
    total: Floats
    texts: Floats
    absent: Floats


class AbsentWithout(NamedTuple):
    """`PresenceTable.absent` without one text of the class, of the weight that was left out last (-1: none was)."""

    absent: Floats
    removed: Floats
