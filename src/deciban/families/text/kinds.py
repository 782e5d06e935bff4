"""The kinds of Text, one class for each: the evidence that the words of a column are for each class.

`WordCounts` are the counts that all kinds start from, `Kind` is what they answer, `KINDS` lists them by name.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple, Protocol

import numpy as np

from deciban import kernels
from deciban.errors import Argument, BadCell
from deciban.families.base.contract import Covariance, FreeParameters
from deciban.families.base.smoothing import format_fraction
from deciban.families.bernoulli import Exchange
from deciban.families.multinomial import add_amounts_variance, add_complement_covariance, score_amounts
from deciban.families.text.options import KindName, TermWeights, TextOptions
from deciban.kernels.text_arrays import AbsentWithout, LeftOutRules, LeftOutTexts, LiftTable, PresenceTable, ShareTable
from deciban.statistics.vocabulary import Vocabulary
from deciban.statistics.words import Words
from deciban.util.arrays import Flags, Floats, Integers, in_lanes, kernel_view, log, sum_at
from deciban.util.sparse import SparseRows
from deciban.util.text_tables import count_noun

# No more words are drawn at once: they and their texts are in memory.
MAX_WORDS_DRAWN = 1 << 26


@dataclass(frozen=True)
class WordCounts:
    """The words of one column and their counts in each class.

    learned, table: all words that were counted, and their counts, class by word. order: the numbers of those that are
    scored, frequent ones first, which stay together in the cache. texts: the weight of the texts of each class.
    """

    learned: Vocabulary
    table: SparseRows
    order: Integers
    texts: Floats

    @classmethod
    def of(cls, statistic: Words, column: int, min_count: float, presence: bool) -> "WordCounts":
        """The counts of the words of a column that were counted no less than min_count.

        presence: texts that have a word were counted. A text may have several words of a bucket, and still it is one.
        """
        words, counts, texts = (
            statistic.vocabularies[column],
            statistic.counts[column],
            statistic.text_weight[:, column],
        )
        if presence and words.bucket_count:
            counts = counts.with_values(np.minimum(counts.stored, np.repeat(texts, np.diff(counts.indptr))))
        total = sum_at(counts.indices, counts.data, len(words))
        order = _by_frequency(total)
        if buckets := words.bucket_count:
            order = np.concatenate([np.arange(buckets), order[order >= buckets]])
        if (rarest := total.min(initial=np.inf)) <= 0.0 or rarest < min_count:
            order = order[(total[order] > 0.0) & (total[order] >= min_count)]
        return cls(words, counts, order, texts)

    @property
    def size(self) -> int:
        """How many words there are."""
        return self.order.size

    @property
    def classes(self) -> int:
        return self.texts.size

    @cached_property
    def words(self) -> Vocabulary:
        """The words that are scored."""
        return self.learned.take(self.order)

    @cached_property
    def stored(self) -> SparseRows:
        """The counts of the words, word by class, without zeros."""
        by_word = self.table.matrix().T.tocsr()[self.order]
        return SparseRows(by_word.data, by_word.indices, by_word.indptr, self.classes)

    @property
    def stored_words(self) -> Integers:
        """The word of each count that is stored."""
        return np.repeat(np.arange(self.size), np.diff(self.stored.indptr))

    @cached_property
    def counts(self) -> Floats:
        """The counts of the words, word by class."""
        return self.stored.matrix().toarray()

    @cached_property
    def sums(self) -> Floats:
        """The counts of all words in each class."""
        return sum_at(self.stored.indices, self.stored.data, self.classes)

    @property
    def total(self) -> Floats:
        """The counts of each word in all classes."""
        return np.asarray(self.counts.sum(axis=1))

    @property
    def texts_per_amount(self) -> float:
        """The weight of all texts divided by the sum of all amounts."""
        return float(self.texts.sum() / max(self.sums.sum(), 1e-300))


def _by_frequency(total: Floats) -> Integers:
    """The numbers of words, frequent ones first, and equals as they are: the same on every machine."""
    if not (total == np.floor(total)).all():
        return np.argsort(-total, kind="stable")
    many = np.uint16(np.iinfo(np.uint16).max)  # short numbers are sorted fast
    order = np.argsort(many - np.minimum(total, many).astype(np.uint16), kind="stable")
    most = order[: np.count_nonzero(total >= many)]
    most[:] = most[np.argsort(-total[most], kind="stable")]
    return order


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


class Drawn(NamedTuple):
    """The words of texts, as numbers behind the buckets of rare words, and how many each text has."""

    words: Integers
    sizes: Integers


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

    def free_parameters(self) -> FreeParameters:
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


def draw_present_words(shares: Floats, counts: WordCounts, labels: Integers, rng: np.random.Generator) -> Drawn:
    """Which words are there, each by itself with its share in the class; in any order."""
    share = shares[counts.words.bucket_count :].T
    found = [np.zeros(0, dtype=np.int64) for _ in labels]
    if share.shape[1]:
        found = [rng.permutation(np.flatnonzero(rng.random(share.shape[1]) < share[label])) for label in labels]
    sizes = np.array([words.size for words in found], dtype=np.int64)
    return Drawn(np.concatenate([np.zeros(0, dtype=np.int64), *found]), sizes)


def draw_words(
    shares: Floats, counts: WordCounts, labels: Integers, rng: np.random.Generator, length: int | None
) -> Drawn:
    """Words one after the other, by their shares in the class: `length`, or as many as the class has on average."""
    shares = shares[counts.words.bucket_count :]
    if not len(shares):
        return Drawn(np.zeros(0, dtype=np.int64), np.zeros(len(labels), dtype=np.int64))
    texts = np.maximum(counts.texts, 1e-300)
    means = (counts.sums / texts)[labels] if length is None else np.full(len(labels), float(length))
    if not means.sum() <= MAX_WORDS_DRAWN:
        raise BadCell(0, None, f"{means.sum():.3g} words are too many to draw", "draw fewer rows, or give a length")
    sizes = rng.poisson(means) if length is None else np.full(len(labels), length)
    owner = np.repeat(labels, sizes)
    drawn = np.empty(owner.size, dtype=np.int64)
    for label in np.unique(owner):
        cumulative = np.cumsum(shares[:, label])
        throws = rng.random(int((owner == label).sum())) * cumulative[-1]
        drawn[owner == label] = np.minimum(np.searchsorted(cumulative, throws, side="right"), len(shares) - 1)
    return Drawn(drawn, sizes)


@dataclass(frozen=True)
class _Amounts(ABC):
    """Kinds that add up the scores of words, each times its amount."""

    counts: WordCounts
    options: TextOptions

    @staticmethod
    def term_weights(options: TextOptions) -> TermWeights:
        return TermWeights(options.term_counts, options.normalize)

    def prepare(self) -> None:
        _ = self.slope

    @cached_property
    def slope(self) -> Floats:
        """What each occurrence of a word adds, word by class, in lanes."""
        return in_lanes(self._scores())

    @abstractmethod
    def _scores(self) -> Floats:
        """The slope without the lanes."""

    def score(self, rows: SparseRows, weight: float, slot: int, out: Floats) -> None:
        score_amounts(rows, self.slope, np.array([weight]), np.array([slot]), out)

    @property
    def left_out_by_formula(self) -> bool:
        return self.options.alpha > 0.0 or bool(self.counts.sums.all())

    @property
    def _rules(self) -> LeftOutRules:
        options = self.options
        return LeftOutRules(float(options.alpha), float(options.min_count), options.normalize)

    def _per_amount(self, weight: Floats) -> Floats:
        """The weight of counts that are ones: amounts that are normalized are about this much smaller."""
        return weight * np.sqrt(self.counts.texts_per_amount) if self.options.normalize else weight

    @cached_property
    def _as_all(self) -> Flags:
        """The classes without counts that take the shares of all together, because nothing is added to theirs."""
        return np.asarray((self.counts.sums <= 0.0) & (self.options.alpha == 0.0))

    @cached_property
    def _basis(self) -> Floats:
        """The counts that shares are of, word by class."""
        counts = self.counts.counts
        return np.where(self._as_all, counts.sum(axis=1, keepdims=True), counts) if self._as_all.any() else counts

    def add_covariance(self, rows: SparseRows, weight: Floats, out: Covariance) -> None:
        add_amounts_variance(self._basis.T, self.options.alpha, rows, self._per_amount(weight), out.own)

    def estimates(self) -> dict[str, Floats]:
        return {"score": self.slope[:, : self.counts.classes]}

    def free_parameters(self) -> FreeParameters:
        """Shares of words sum to 1; there is no bound to the length of a text."""
        learned = self.counts.classes * max(self.counts.size - 1, 0)
        return FreeParameters((learned,), learned, unbounded=True)

    @property
    def counts_orders(self) -> bool:
        return False

    def linear(self) -> tuple[Floats, Floats]:
        return self.slope[:, : self.counts.classes], np.zeros(self.counts.classes)

    def factors(self, words: Integers, amounts: Floats) -> list[WordFactor] | None:
        return None

    def word_scores(self, words: Integers, amounts: Floats) -> WordScores:
        classes = self.counts.classes
        each = self.slope[words, :classes] * amounts[:, None]
        return WordScores(each, np.zeros(0, dtype=np.int64), np.zeros((0, classes)))

    def formula(self, words: Integers, amounts: Floats, power: str, label: int) -> str | None:
        return f"exp(score of {words.size} words){power}"

    def draw(self, labels: Integers, rng: np.random.Generator, length: int | None) -> Drawn:
        raise BadCell(
            0,
            None,
            f"{self.options} is a score, not a distribution",
            ("use ", Argument("family", "Text"), " to write texts"),
        )


class _Shares(_Amounts):
    """Kinds that score words by the logarithms of their shares, in the class or in the others."""

    of_others: ClassVar[bool]

    @property
    @abstractmethod
    def _bottom(self) -> Floats:
        """What the shares of each class are divided by."""

    def score_left_out(self, rows: SparseRows, left: LeftOutTexts, part: Floats) -> Floats:
        length, bottom = np.zeros(left.labels.size), self._bottom
        table = ShareTable(self._basis, self.counts.total, self.slope, bottom)
        fewer = np.empty_like(bottom)
        kernels.left_out.score_shares(
            rows.kernel_arrays(), left, table, self._rules, self.of_others, fewer, length, part
        )
        return length


class MultinomialWords(_Shares):
    """Each word of a text is drawn from those of the class: log P(word | class) for each occurrence."""

    of_others = False

    def _scores(self) -> Floats:
        """log P(word | class)."""
        alpha, stored, word = self.options.alpha, self.counts.stored, self.counts.stored_words
        found, log_bottom = np.empty((self.counts.size, self.counts.classes)), log(self._bottom)
        found[:] = log(np.full(1, alpha)) - log_bottom
        if self._as_all.any():
            total = sum_at(word, stored.data, self.counts.size)
            found[:, self._as_all] = log(total + alpha)[:, None] - log_bottom[self._as_all]
        found[word, stored.indices] = log(stored.data + alpha) - log_bottom[stored.indices]
        return found

    @property
    def _bottom(self) -> Floats:
        sums = np.where(self._as_all, self.counts.sums.sum(), self.counts.sums)
        return np.asarray(sums + self.options.alpha * self.counts.size)

    def estimates(self) -> dict[str, Floats]:
        return {"probability": np.exp(self.slope[:, : self.counts.classes])}

    @property
    def counts_orders(self) -> bool:
        return self.term_weights(self.options).plain and not self.options.tempering

    def factors(self, words: Integers, amounts: Floats) -> list[WordFactor]:
        alpha, size, sums = self.options.alpha, self.counts.size, self._basis.sum(axis=0)
        logs = self.slope[words, : self.counts.classes] * amounts[:, None]
        return [
            WordFactor(
                int(words[k]),
                True,
                float(amounts[k]),
                [format_fraction(self._basis[words[k], c], sums[c], alpha, size) for c in range(self.counts.classes)],
                logs[k],
            )
            for k in _most_telling(logs)
        ]

    def formula(self, words: Integers, amounts: Floats, power: str, label: int) -> str | None:
        """How many words there are; their factors are told apart."""
        if not words.size:
            return None
        return f"(product of {count_noun(words.size, 'word')}){power}"

    def draw(self, labels: Integers, rng: np.random.Generator, length: int | None) -> Drawn:
        return draw_words(np.exp(self.slope), self.counts, labels, rng, length)


class ComplementWords(_Shares):
    """A class is scored by how little all others use the words: -log P(word | other classes)."""

    of_others = True

    def _scores(self) -> Floats:
        """What the shares in the other classes lack."""
        alpha, stored, word = self.options.alpha, self.counts.stored, self.counts.stored_words
        log_bottom, total = log(self._bottom), sum_at(word, stored.data, self.counts.size)
        found = log(total + alpha)[:, None] - log_bottom
        found[word, stored.indices] = log(total[word] - stored.data + alpha) - log_bottom[stored.indices]
        return np.asarray(-np.maximum(found, np.log(1e-300)))

    @cached_property
    def _basis(self) -> Floats:
        counts = self.counts.counts
        return np.asarray(counts.sum(axis=1, keepdims=True) - counts)

    @property
    def _bottom(self) -> Floats:
        sums = self.counts.sums
        return np.asarray(sums.sum() - sums + self.options.alpha * self.counts.size)

    def add_covariance(self, rows: SparseRows, weight: Floats, out: Covariance) -> None:
        size = np.ones(self.counts.classes)
        add_complement_covariance(self.counts.counts.T, self.options.alpha, rows, self._per_amount(weight), size, out)


class LiftWords(_Amounts):
    """A class is scored by how much more probable each word makes it: its lift P(class | word) / P(class)."""

    def _scores(self) -> Floats:
        """The score of the lift of each word in each class; a word without counts there has the least."""
        linear, stored, word, sums = self.options.linear, self.counts.stored, self.counts.stored_words, self.counts.sums
        unit = self.options.alpha * (self.counts.texts_per_amount if self.options.normalize else 1.0)
        inverse = np.divide(sums.sum(), sums, out=np.zeros_like(sums), where=sums > 0.0)  # of the share of a class
        total = unit + sum_at(word, stored.data, self.counts.size)
        found = np.empty((self.counts.size, sums.size))
        found[:] = lift_score(unit / total, linear)[:, None]
        lift = (stored.data * inverse[stored.indices] + unit) / total[word]
        found[word, stored.indices] = lift_score(lift, linear)
        return found

    def score_left_out(self, rows: SparseRows, left: LeftOutTexts, part: Floats) -> Floats:
        counts, length = self.counts, np.zeros(left.labels.size)
        table = LiftTable(counts.counts, counts.total, counts.sums, float(counts.texts.sum()))
        rest = np.empty_like(counts.sums)
        linear = float(self.options.linear)
        kernels.left_out.score_lifts(rows.kernel_arrays(), left, table, self._rules, linear, rest, length, part)
        return length

    def free_parameters(self) -> FreeParameters:
        """What each word makes of the classes."""
        learned = self.counts.size * (self.counts.classes - 1)
        return FreeParameters((learned,), learned, shared=learned, unbounded=True)


def _most_telling(logs: Floats) -> list[int]:
    """The numbers of the rows of logs (factor by class) by how far they differ between classes, the farthest first."""
    finite = np.where(np.isfinite(logs), logs, -1e300)
    found: list[int] = np.argsort(-(finite.max(axis=1) - finite.min(axis=1)), kind="stable").tolist()
    return found


def lift_score(lift: Floats, linear: float) -> Floats:
    """The score of a lift: its logarithm, or a share of it linearly."""
    return lift - 1.0 if linear == 1.0 else (1.0 - linear) * log(lift) + linear * (lift - 1.0)


@dataclass(frozen=True)
class BernoulliWords:
    """Each word is in a text or not: log P(it is | class) of those that are, log P(it is not | class) of all others."""

    counts: WordCounts
    options: TextOptions

    @staticmethod
    def term_weights(options: TextOptions) -> TermWeights:
        return TermWeights("presence")

    def prepare(self) -> None:
        pass

    @cached_property
    def _exchange(self) -> Exchange:
        """The evidence of the absence of all words, and of each word that is there instead."""
        alpha, counts, texts = self.options.alpha, self.counts.counts, self.counts.texts
        ones, zeros = counts + alpha, texts - counts + alpha
        rows = np.maximum(texts + 2.0 * alpha, 1e-300)
        with np.errstate(divide="ignore"):
            one, zero = np.log(ones / rows), np.log(np.maximum(zeros, 0.0) / rows)
        nothing = texts + alpha <= 0.0  # a class without texts has no evidence
        one[:, nothing], zero[:, nothing] = 0.0, 0.0
        return Exchange.of(one, zero, np.ones(len(one)))

    def score(self, rows: SparseRows, weight: float, slot: int, out: Floats) -> None:
        part = np.zeros((rows.shape[0], 1, out.shape[2]))
        self._exchange.score(rows, 0.5, part)
        out[:, slot] += weight * part[:, 0]

    @property
    def left_out_by_formula(self) -> bool:
        return self.options.alpha > 0.0

    def score_left_out(self, rows: SparseRows, left: LeftOutTexts, part: Floats) -> Floats:
        alpha, length = float(self.options.alpha), np.zeros(left.labels.size)
        counts, texts = self.counts.counts, np.asarray(kernel_view(self.counts.texts))
        absent = log(np.maximum(texts - counts, 0.0) + alpha).sum(axis=0)
        table = PresenceTable(counts, self.counts.total, texts, absent)
        rules = LeftOutRules(alpha, float(self.options.min_count), False)
        without = AbsentWithout(np.zeros(texts.size), np.full(texts.size, -1.0))
        kernels.left_out.score_presence(rows.kernel_arrays(), left, table, rules, without, length, part)
        return length

    def add_covariance(self, rows: SparseRows, weight: Floats, out: Covariance) -> None:
        share = (self.counts.counts + 0.5) / (self.counts.texts + 1.0)
        absent, there = share / (1.0 - share), (1.0 - share) / share
        own = absent.sum(axis=0) + rows.matrix() @ (there - absent)
        out.own[:] += weight**2 * own / np.maximum(self.counts.texts, 0.5)

    def estimates(self) -> dict[str, Floats]:
        return {"probability": np.exp(self._exchange.one)}

    def free_parameters(self) -> FreeParameters:
        """The presence of each word is free."""
        learned = self.counts.classes * self.counts.size
        return FreeParameters((learned,), learned, n_values=(2**self.counts.size,))

    @property
    def counts_orders(self) -> bool:
        return False

    def linear(self) -> tuple[Floats, Floats]:
        one, zero = self._exchange.one, self._exchange.zero
        return one - zero, zero.sum(axis=0)

    def factors(self, words: Integers, amounts: Floats) -> list[WordFactor]:
        counts, texts, alpha = self.counts.counts, self.counts.texts, self.options.alpha
        present = np.zeros(self.counts.size, dtype=np.bool_)
        present[words] = True
        logs = np.where(present[:, None], self._exchange.one, self._exchange.zero)
        return [
            WordFactor(
                int(k),
                bool(present[k]),
                1.0,
                [
                    format_fraction(counts[k, c] if present[k] else texts[c] - counts[k, c], texts[c], alpha, 2)
                    for c in range(self.counts.classes)
                ],
                logs[k],
            )
            for k in _most_telling(logs)
        ]

    def word_scores(self, words: Integers, amounts: Floats) -> WordScores:
        absent = np.delete(np.arange(self.counts.size), words)
        return WordScores(self._exchange.one[words], absent, self._exchange.zero[absent])

    def formula(self, words: Integers, amounts: Floats, power: str, label: int) -> str | None:
        return f"({words.size} words present, {self.counts.size - words.size} absent){power}"

    def draw(self, labels: Integers, rng: np.random.Generator, length: int | None) -> Drawn:
        shares = np.exp(self._exchange.one)
        if length is None:
            return draw_present_words(shares, self.counts, labels, rng)
        return draw_words(shares, self.counts, labels, rng, length)


KINDS: dict[KindName, type[Kind]] = {
    "multinomial": MultinomialWords,
    "bernoulli": BernoulliWords,
    "complement": ComplementWords,
    "lift": LiftWords,
}
