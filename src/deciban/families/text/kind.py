"""The contract of the kinds of Text."""

from typing import NamedTuple, Protocol

import numpy as np

from deciban.families.estimates import Parameters
from deciban.families.protocols import Covariance
from deciban.families.text.options import TextOptions
from deciban.families.text.sampling import Drawn
from deciban.families.text.term_weights import TermWeights
from deciban.families.text.word_counts import WordCounts
from deciban.kernels.text_arrays import LeftOutTexts
from deciban.util.arrays import Floats, Integers
from deciban.util.sparse import SparseRows


class WordScores(NamedTuple):
    """The evidence of one text for each class as a sum over words, which are numbers in the vocabulary.

    present: the score of each known word of the text, word by class. absent, absent_scores: words that are not in it
    and their scores, where absence is evidence too.
    """

    present: Floats
    absent: Integers
    absent_scores: Floats


class WordFactor(NamedTuple):
    """One factor of the likelihood of a text: the number of the word, whether it is there, how often it counts, and of
    each class how its probability was found and the logarithm of the whole factor."""

    word: int
    present: bool
    amount: float
    formulas: list[str]
    logs: Floats


class Kind(Protocol):
    """The evidence that the words of a column are for each class."""

    def __init__(self, counts: WordCounts, options: TextOptions) -> None: ...

    @staticmethod
    def term_weights(options: TextOptions) -> TermWeights:
        """What is counted of the words of a text."""
        ...

    def prepare(self) -> None:
        """Make the table that texts are scored by, if that is not better left until it is needed."""
        ...

    def score(self, rows: SparseRows, weight: float, slot: int, out: Floats) -> None:
        """Add to out[row, slot, class] the evidence of texts, times a weight, from the amounts of their words."""
        ...

    @property
    def left_out_by_formula(self) -> bool:
        """Whether `score_left_out` is exact; without smoothing it may not be."""
        ...

    def score_left_out(self, rows: SparseRows, left: LeftOutTexts, part: Floats) -> Floats:
        """Add to part[row, 0, class] the evidence of each text by all others; the sums of its known amounts."""
        ...

    def add_covariance(self, rows: SparseRows, weight: Floats, out: Covariance) -> None:
        """See `Family.add_covariance`; each text has a weight of its own."""
        ...

    def estimates(self) -> dict[str, Floats]:
        """What was estimated of each word, by the name of the parameter, word by class."""
        ...

    def parameters(self) -> Parameters:
        """How many numbers had to be learned."""
        ...

    @property
    def counts_orders(self) -> bool:
        """Whether the likelihood of a text is that of its counts of words, in whatever order they come: whether the
        multinomial coefficient belongs to it."""
        ...

    def linear(self) -> tuple[Floats, Floats]:
        """What an amount of 1 of each word adds, word by class, and what a text without any word has."""
        ...

    def factors(self, words: Integers, amounts: Floats) -> list[WordFactor] | None:
        """The factors of the likelihood of a text of these words, those that tell the classes apart most first; None
        where it is a score, and no product of probabilities."""
        ...

    def word_scores(self, words: Integers, amounts: Floats) -> WordScores:
        """The evidence of a text of these words, word by word."""
        ...

    def formula(self, words: Integers, amounts: Floats, power: str, label: int) -> str | None:
        """How the likelihood of a text of these words was found; `power` is written behind a product."""
        ...

    def draw(self, labels: Integers, rng: np.random.Generator, length: int | None) -> Drawn:
        """Words of texts of the given classes; a BadCell where there is no distribution to draw them from."""
        ...
