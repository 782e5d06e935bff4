"""Kinds of `Text`, one class each: the evidence of the words of a column.

`WordCounts` are the counts behind all kinds, `Kind` is their protocol, `KINDS` lists them by name.
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

# Maximum number of words drawn at once: they and their texts are in memory.
MAX_WORDS_DRAWN = 1 << 26


@dataclass(frozen=True)
class WordCounts:
    """Words of one column and their counts in each class.

    learned, table: all counted words, and their counts, class by word. order: the numbers of the scored words, the most
    frequent first, so that they stay in the cache. texts: the weight of the texts of each class.
    """

    learned: Vocabulary
    table: SparseRows
    order: Integers
    texts: Floats

    @classmethod
    def of(cls, statistic: Words, column: int, min_count: float, presence: bool) -> "WordCounts":
        """Return the counts of the words of a column with a total of at least min_count.

        presence: texts that contain a word were counted. The count of a bucket is limited to the number of texts,
        because a text may contain several of its words.
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
        """Number of scored words."""
        return self.order.size

    @property
    def classes(self) -> int:
        return self.texts.size

    @cached_property
    def words(self) -> Vocabulary:
        """Scored words."""
        return self.learned.take(self.order)

    @cached_property
    def stored(self) -> SparseRows:
        """Counts of the scored words, word by class, without zeros."""
        return self.table.transpose().take(self.order)

    @property
    def stored_words(self) -> Integers:
        """Word of each stored count."""
        return self.stored.stored_rows

    @cached_property
    def counts(self) -> Floats:
        """Counts of the scored words, word by class."""
        return self.stored.dense()

    @cached_property
    def sums(self) -> Floats:
        """Total count of each class."""
        return sum_at(self.stored.indices, self.stored.data, self.classes)

    @property
    def total(self) -> Floats:
        """Total count of each word."""
        return np.asarray(self.counts.sum(axis=1))

    @property
    def texts_per_amount(self) -> float:
        """Weight of all texts divided by the sum of all amounts."""
        return float(self.texts.sum() / max(self.sums.sum(), 1e-300))


def _by_frequency(total: Floats) -> Integers:
    """Return the numbers of words by descending frequency; ties keep their order, on every machine."""
    if not (total == np.floor(total)).all():
        return np.argsort(-total, kind="stable")
    limit = np.uint16(np.iinfo(np.uint16).max)  # sorting 16-bit integers is fast
    order = np.argsort(limit - np.minimum(total, limit).astype(np.uint16), kind="stable")
    frequent = order[: np.count_nonzero(total >= limit)]
    frequent[:] = frequent[np.argsort(-total[frequent], kind="stable")]
    return order


class WordScores(NamedTuple):
    """Evidence of one text for each class, as a sum over words.

    present: the score of each known word of the text, word by class. absent, absent_scores: the numbers of words that
    are not in the text, and their scores, if absence is evidence too.
    """

    present: Floats
    absent: Integers
    absent_scores: Floats


class WordFactor(NamedTuple):
    """Factor of the likelihood of a text.

    word: the number of the word. present: True if the text contains it. amount: its amount. formulas: for each class,
    its probability as text. logs: the logarithm of the factor for each class.
    """

    word: int
    present: bool
    amount: float
    formulas: list[str]
    logs: Floats


class Drawn(NamedTuple):
    """Words drawn for texts, numbered after the buckets of rare words, and the number of words of each text."""

    words: Integers
    sizes: Integers


class Kind(Protocol):
    """Protocol of the kinds of `Text`: the evidence of the words of a column."""

    def __init__(self, counts: WordCounts, options: TextOptions) -> None: ...

    @staticmethod
    def term_weights(options: TextOptions) -> TermWeights:
        """Return the rule for the amounts of words."""
        ...

    def prepare(self) -> None:
        """Build the table of scores in advance, if that pays."""
        ...

    def score(self, rows: SparseRows, weight: float, slot: int, out: Floats) -> None:
        """Add weight * evidence of texts to out[row, slot, class]; rows: the amounts of their words."""
        ...

    @property
    def left_out_by_formula(self) -> bool:
        """True if `score_left_out` is exact; without smoothing it may not be."""
        ...

    def score_left_out(self, rows: SparseRows, left: LeftOutTexts, part: Floats) -> Floats:
        """Add to part[row, 0, class] the evidence of each text, estimated from all others.

        Return the sum of the amounts of its words that are known without it.
        """
        ...

    def add_covariance(self, rows: SparseRows, weight: Floats, out: Covariance) -> None:
        """Add the estimation errors; see `Family.add_covariance`. Each text has its own weight."""
        ...

    def estimates(self) -> dict[str, Floats]:
        """Return the estimated parameters by name, word by class."""
        ...

    def free_parameters(self) -> FreeParameters:
        """Return the number of free parameters."""
        ...

    @property
    def counts_orders(self) -> bool:
        """True if the likelihood is that of counts of words, and so contains the multinomial coefficient."""
        ...

    def linear(self) -> tuple[Floats, Floats]:
        """Return the evidence of an amount of 1 of each word, word by class, and that of a text without words."""
        ...

    def factors(self, words: Integers, amounts: Floats) -> list[WordFactor] | None:
        """Return the factors of the likelihood of a text, those that differ most between classes first.

        None if the kind is a score instead of a product of probabilities.
        """
        ...

    def word_scores(self, words: Integers, amounts: Floats) -> WordScores:
        """Return the evidence of a text of these words, word by word."""
        ...

    def formula(self, words: Integers, amounts: Floats, power: str, label: int) -> str | None:
        """Return the likelihood of a text of these words as a formula; power: an exponent to append."""
        ...

    def draw(self, labels: Integers, rng: np.random.Generator, length: int | None) -> Drawn:
        """Draw the words of texts of the given classes; raise BadCell if the kind is a score."""
        ...


def draw_present_words(shares: Floats, counts: WordCounts, labels: Integers, rng: np.random.Generator) -> Drawn:
    """Draw texts of independent words, each present with its share in the class, in random order."""
    share = shares[counts.words.bucket_count :].T
    found = [np.zeros(0, dtype=np.int64) for _ in labels]
    if share.shape[1]:
        found = [rng.permutation(np.flatnonzero(rng.random(share.shape[1]) < share[label])) for label in labels]
    sizes = np.array([words.size for words in found], dtype=np.int64)
    return Drawn(np.concatenate([np.zeros(0, dtype=np.int64), *found]), sizes)


def draw_words(
    shares: Floats, counts: WordCounts, labels: Integers, rng: np.random.Generator, length: int | None
) -> Drawn:
    """Draw `length` words per text by their shares in the class; by default a Poisson number of mean length."""
    shares = shares[counts.words.bucket_count :]
    if not len(shares):
        return Drawn(np.zeros(0, dtype=np.int64), np.zeros(len(labels), dtype=np.int64))
    texts = np.maximum(counts.texts, 1e-300)
    means = (counts.sums / texts)[labels] if length is None else np.full(len(labels), float(length))
    if not means.sum() <= MAX_WORDS_DRAWN:
        raise BadCell(
            0, None, f"cannot draw {means.sum():.3g} words at once", "draw fewer rows, or pass a shorter length"
        )
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
    """Base class of kinds whose evidence is the sum of amount times score."""

    counts: WordCounts
    options: TextOptions

    @staticmethod
    def term_weights(options: TextOptions) -> TermWeights:
        return TermWeights(options.term_counts, options.normalize)

    def prepare(self) -> None:
        _ = self.slope

    @cached_property
    def slope(self) -> Floats:
        """Score of each word, word by class, padded to lanes."""
        return in_lanes(self._scores())

    @abstractmethod
    def _scores(self) -> Floats:
        """Return the score of each word, word by class."""

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
        """Return the weight for plain counts; normalized amounts are smaller by about this factor."""
        return weight * np.sqrt(self.counts.texts_per_amount) if self.options.normalize else weight

    @cached_property
    def _as_all(self) -> Flags:
        """Flags of classes without counts and smoothing, which use the shares of all classes together."""
        return np.asarray((self.counts.sums <= 0.0) & (self.options.alpha == 0.0))

    @cached_property
    def _basis(self) -> Floats:
        """Counts behind the shares, word by class."""
        counts = self.counts.counts
        return np.where(self._as_all, counts.sum(axis=1, keepdims=True), counts) if self._as_all.any() else counts

    def add_covariance(self, rows: SparseRows, weight: Floats, out: Covariance) -> None:
        add_amounts_variance(self._basis.T, self.options.alpha, rows, self._per_amount(weight), out.own)

    def estimates(self) -> dict[str, Floats]:
        return {"score": self.slope[:, : self.counts.classes]}

    def free_parameters(self) -> FreeParameters:
        """Return the number of words minus one, for each class; the length of a text is unbounded."""
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
            ("use ", Argument("family", "Text"), " to sample texts"),
        )


class _Shares(_Amounts):
    """Base class of kinds that score words by the logarithms of their shares, in the class or in the others."""

    of_others: ClassVar[bool]

    @property
    @abstractmethod
    def _bottom(self) -> Floats:
        """Denominator of the shares of each class."""

    def score_left_out(self, rows: SparseRows, left: LeftOutTexts, part: Floats) -> Floats:
        length, bottom = np.zeros(left.labels.size), self._bottom
        table = ShareTable(self._basis, self.counts.total, self.slope, bottom)
        fewer = np.empty_like(bottom)
        kernels.left_out.score_shares(
            rows.kernel_arrays(), left, table, self._rules, self.of_others, fewer, length, part
        )
        return length


class MultinomialWords(_Shares):
    """Kind "multinomial": log P(word | class) for each occurrence of a word."""

    of_others = False

    def _scores(self) -> Floats:
        """Return log P(word | class)."""
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
            for k in _sort_by_range(logs)
        ]

    def formula(self, words: Integers, amounts: Floats, power: str, label: int) -> str | None:
        """Return the number of words; `factors` lists them."""
        if not words.size:
            return None
        return f"(product of {count_noun(words.size, 'word')}){power}"

    def draw(self, labels: Integers, rng: np.random.Generator, length: int | None) -> Drawn:
        return draw_words(np.exp(self.slope), self.counts, labels, rng, length)


class ComplementWords(_Shares):
    """Kind "complement": a class is scored by -log P(word | other classes)."""

    of_others = True

    def _scores(self) -> Floats:
        """Return -log P(word | other classes)."""
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
    """Kind "lift": a class is scored by the lift P(class | word) / P(class) of each word."""

    def _scores(self) -> Floats:
        """Return the score of the lift of each word in each class; without counts it is the minimum."""
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
        """Return the number of classes minus one, for each word."""
        learned = self.counts.size * (self.counts.classes - 1)
        return FreeParameters((learned,), learned, shared=learned, unbounded=True)


def _sort_by_range(logs: Floats) -> list[int]:
    """Return the numbers of the rows of logs (factor by class), by descending range over the classes."""
    finite = np.where(np.isfinite(logs), logs, -1e300)
    found: list[int] = np.argsort(-(finite.max(axis=1) - finite.min(axis=1)), kind="stable").tolist()
    return found


def lift_score(lift: Floats, linear: float) -> Floats:
    """Return (1 - linear) * log(lift) + linear * (lift - 1)."""
    return lift - 1.0 if linear == 1.0 else (1.0 - linear) * log(lift) + linear * (lift - 1.0)


@dataclass(frozen=True)
class BernoulliWords:
    """Kind "bernoulli": log P(present | class) of the words of a text, log P(absent | class) of all others."""

    counts: WordCounts
    options: TextOptions

    @staticmethod
    def term_weights(options: TextOptions) -> TermWeights:
        return TermWeights("presence")

    def prepare(self) -> None:
        pass

    @cached_property
    def _exchange(self) -> Exchange:
        """Evidence of the absence of all words, and of the presence of each word."""
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
        own = absent.sum(axis=0) + rows.multiply(there - absent)
        out.own[:] += weight**2 * own / np.maximum(self.counts.texts, 0.5)

    def estimates(self) -> dict[str, Floats]:
        return {"probability": np.exp(self._exchange.one)}

    def free_parameters(self) -> FreeParameters:
        """Return one parameter per word and class."""
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
            for k in _sort_by_range(logs)
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
