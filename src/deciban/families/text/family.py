"""Family of texts: `Text`, its likelihood, and the evidence of each column of texts."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import ClassVar, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deciban.errors import Argument, BadCell
from deciban.families.base.checks import TEXTS
from deciban.families.base.contract import (
    BaseLikelihood,
    Covariance,
    DiscriminantTerms,
    FreeParameters,
    LeftOutRows,
    ParameterEstimates,
    Sampled,
    score_by_refitting,
)
from deciban.families.base.lowering import ExportedColumns, Lowered, Term, TextTerm
from deciban.families.bernoulli import Exchange
from deciban.families.text.kinds import KINDS, Kind, WordCounts, WordFactor, WordScores
from deciban.families.text.options import TermWeights, TextOptions
from deciban.families.text.tokens import as_text, find_present
from deciban.kernels.text_arrays import LabeledTexts, LeftOutTexts, UnknownWords
from deciban.statistics.vocabulary import BUCKET_SEEDS, Vocabulary, bucket_number, count_buckets, display_word
from deciban.statistics.words import Words, count_by_class, count_by_text
from deciban.tables.cells import is_text
from deciban.tables.table import Readable, decode_cells, take_cells
from deciban.util.arrays import CORES, Codes, Floats, Integers
from deciban.util.sparse import SparseRows, stack_rows
from deciban.util.special import log_gamma

# Texts with at least this many words on average are counted by words when tuning tries it, others by characters.
MIN_WORDS = 1.5

# From this number of words on, preparing a column uses a second thread.
MIN_WORDS_FOR_THREAD = 1 << 14


@dataclass(frozen=True, repr=False)
class Text(TextOptions):
    r"""Texts as bags of words: P(word | class) = (count + alpha) / (all + alpha * vocabulary).

    Parameters
    ----------
    kind : {"multinomial", "bernoulli", "complement", "lift"}, default="multinomial"
        "multinomial" counts every word of a text. "bernoulli" uses the presence and absence of words. "complement"
        scores a class by how rarely the other classes use the words. "lift" scores a class by how much more probable
        each word makes it: log P(class | word) / P(class). The last two are scores, not likelihoods.
    alpha : float, default=1.0
        Smoothing: amount added to every count.
    analyzer : {"word", "char", "char_wb"}, default="word"
        Count words, characters, or characters within words. This and the next five parameters are those of
        scikit-learn's `CountVectorizer`, and find the same words.
    ngram_range : tuple of int, default=(1, 1)
        Minimum and maximum length of n-grams.
    lowercase : bool, default=True
        Convert all characters to lowercase.
    strip_accents : bool, default=False
        Remove accents; also None or "unicode", as in scikit-learn.
    stop_words : sequence of str, default=()
        Words to leave out.
    tokenizer : callable or None, default=None
        A function from a text to its words. It runs in Python and is slow. A model with a tokenizer cannot be saved.
    min_word_length : int, default=2
        Minimum number of characters of a word.
    term_counts : {"count", "log", "root"}, default="count"
        Amount of a word that occurs n times in a text: n, 1 + log n, or the square root of n.
    normalize : bool, default=False
        Divide the amounts of a text by their Euclidean norm.
    min_count : float, default=0.0
        Words with a smaller total count are left out of the vocabulary.
    max_features : int or None, default=None
        Maximum number of words kept; rarer words share a count with others of the same hash. None keeps all words.
    tempering : float, default=0.0
        The evidence of a text of n known words is multiplied by n ** -tempering, because words repeat each other.
    linear : float, default=0.0
        For kind "lift": share of a lift l that is scored as l - 1 instead of log l.

    See Also
    --------
    Multinomial : Counts of words that are already columns of a table.
    BayesClassifier.top_words : The most characteristic words of a class.

    Notes
    -----
    For a text with the amounts :math:`x_w` of its words, where :math:`N_{wc}` is the total of word w in class c,
    :math:`N_c` that of all words, and V the size of the vocabulary ("multinomial"):

    .. math:: \log P(x \mid c) = \sum_w x_w \log \frac{N_{wc} + \alpha}{N_c + \alpha V}

    Examples
    --------
    >>> from deciban import BayesClassifier, Text
    >>> mails = ["win money now", "cheap money", "lunch at noon", "see you at lunch"]
    >>> clf = BayesClassifier(Text(), tune=None).fit(mails, ["spam", "spam", "ham", "ham"])
    >>> clf.predict(["money at last", "lunch?"]).tolist()
    ['spam', 'ham']
    """

    is_text = True
    support = TEXTS

    @property
    def statistic_key(self) -> Hashable:
        return type(self).__name__, self.tokens, self.term_weights, self.max_features

    @property
    def term_weights(self) -> TermWeights:
        """Rule for the amounts of words."""
        return KINDS[self.kind].term_weights(self)

    @property
    def has_default_evidence(self) -> bool:
        """True if all parameters that determine amounts and scores have their defaults."""
        chosen = "kind", "term_counts", "normalize", "tempering"
        return all(getattr(self, name) == getattr(Text, name) for name in chosen)

    @classmethod
    def additions_for(cls, values: pa.Array) -> list[Self]:
        """Return words for texts of several words, else runs of characters."""
        if not is_text(values.type):
            return []
        words = [len(cell.split()) for cell in decode_cells(values) if cell is not None]
        several = float(np.mean(words)) >= MIN_WORDS
        return [cls() if several else cls(analyzer="char_wb", ngram_range=(2, 3))]

    def read(self, batch: Readable, columns: Sequence[int]) -> list[pa.Array]:
        cells = batch.values(columns)
        if isinstance(cells, np.ndarray):
            raise BadCell(
                0,
                None,
                "found numbers, expected text",
                ("use ", Argument("family", "Gaussian"), " or ", Argument("family", "Categorical"), " for this column"),
            )
        return [as_text(array, k) for k, array in enumerate(cells)]

    def empty(self, classes: int, columns: int) -> Words:
        return Words.empty(classes, columns, self.max_features)

    def count(self, cells: list[pa.Array], labels: Codes, weights: Floats, classes: int) -> Words:
        columns = []
        texts = np.zeros((classes, len(cells)))
        counted = np.flatnonzero((labels >= 0) & (weights > 0.0))
        labeled = LabeledTexts(counted[np.argsort(labels[counted], kind="stable")], labels, weights)
        for j, array in enumerate(cells):
            words, numbers, bounds, amounts = self._read_words(array)
            columns.append((words, count_by_class(numbers, bounds, amounts, labeled, len(words), classes)))
            there = (labels >= 0) & find_present(array)
            texts[:, j] = np.bincount(labels[there], weights[there], classes)
        return Words.of(columns, texts, self.max_features)

    def count_shares(self, cells: list[pa.Array], shares: Floats) -> Words:
        columns, only = [], np.zeros(len(shares), dtype=np.int32)
        for array in cells:
            words, numbers, bounds, amounts = self._read_words(array)
            weighted = (LabeledTexts(np.flatnonzero(part), only, part) for part in np.ascontiguousarray(shares.T))
            rows = [count_by_class(numbers, bounds, amounts, part, len(words), 1) for part in weighted]
            columns.append((words, stack_rows(rows, len(words))))
        texts = np.stack([shares[find_present(array)].sum(axis=0) for array in cells], axis=1)
        return Words.of(columns, texts, self.max_features)

    def _read_words(self, texts: pa.Array) -> tuple[Vocabulary, Codes, Integers, Floats | None]:
        """Return the distinct words, the numbers of those of each text, their bounds, and their amounts if not 1."""
        numbers, bounds, words = self.tokens.learn(texts)
        if self.term_weights.plain:
            return words, numbers, bounds, None
        amounts, numbers, bounds = self.term_weights.of(count_by_text(numbers, bounds, len(words))).kernel_arrays()
        return words, numbers, bounds, amounts

    def estimate(self, statistic: Words) -> TextLikelihood:
        columns = tuple(self._column(statistic, j) for j in range(len(statistic.counts)))
        for column in columns:
            column.prepare()
        return TextLikelihood(columns)

    def _column(self, statistic: Words, j: int) -> TextColumn:
        return TextColumn(self, WordCounts.of(statistic, j, self.min_count, self.term_weights.presence))

    def _count_known(self, column: TextColumn, statistic: Words, j: int, texts: pa.Array) -> SparseRows:
        """Return the amounts of the words of texts that are in the vocabulary of the column, as they were counted."""
        if self.min_count == 0.0:
            return column.rows(texts)
        everything = replace(self, min_count=0.0)._column(statistic, j)
        return everything.rows(texts).take_columns(range(len(column.words)))  # words below min_count come last

    def score_left_out(
        self, statistic: Words, cells: list[pa.Array], rows: LeftOutRows, slot: Integers, out: Floats
    ) -> None:
        for j, array in enumerate(cells):
            column = self._column(statistic, j)
            part = np.zeros((rows.labels.size, 1, out.shape[2]))
            column.score_left_out(self._count_known(column, statistic, j, array), rows, part)
            part[~find_present(array)] = 0.0
            alone = column.counts.texts[rows.labels] <= rows.removed * (1.0 + 1e-9)
            again = np.flatnonzero((not column.kind.left_out_by_formula) | ((rows.removed > 0.0) & alone))
            only = statistic.reindex_columns(np.where(np.arange(len(cells)) == j, 0, -1), 1)
            found = np.zeros((again.size, 1, out.shape[2]))
            score_by_refitting(self, only, [take_cells(array, again)], rows[again], np.zeros(1, dtype=np.int64), found)
            part[again] = found
            out[:, slot[j]] += part[:, 0]

    def add_covariance(
        self, whole: TextLikelihood, statistic: Words, cells: list[pa.Array], weight: Floats, out: Covariance
    ) -> None:
        for j, (array, column) in enumerate(zip(cells, whole.columns, strict=True)):
            if len(column.words):
                column.add_covariance(column.rows(array), weight[j] * find_present(array), out)


@dataclass(frozen=True)
class TextLikelihood(BaseLikelihood):
    """Evidence of the words of each column."""

    columns: tuple[TextColumn, ...]

    accepts_length: ClassVar[bool] = True

    @property
    def text_columns(self) -> tuple[TextColumn, ...]:
        return self.columns

    def score(self, cells: list[pa.Array], weight: Floats, slot: Integers, out: Floats) -> None:
        for j, texts in enumerate(cells):
            self.columns[j].score(texts, float(weight[j]), int(slot[j]), out)

    def log_common_factor(self, cells: list[pa.Array]) -> Floats | None:
        """Return the log multinomial coefficient of each text, as `Multinomial` does."""
        found = [column.log_orders(texts) for column, texts in zip(self.columns, cells, strict=True)]
        if all(each is None for each in found):
            return None
        rows = len(cells[0])
        return np.stack([np.zeros(rows) if each is None else each for each in found], axis=1)

    def discriminant_terms(self, names: Sequence[str]) -> list[DiscriminantTerms] | None:
        found = [column.terms(name) for column, name in zip(self.columns, names, strict=True)]
        terms = [each for each in found if each is not None]
        if len(terms) < len(found):
            return None
        for j, term in enumerate(terms):
            terms[j] = replace(term, features=partial(_features_of_column, term.features, j))
        return terms

    def lower(self, columns: ExportedColumns) -> Lowered:
        blocks: list[list[Term]] = [
            [column.lower(number)] for column, number in zip(self.columns, columns.numbers, strict=True)
        ]
        return Lowered(blocks, [])

    def sample(self, labels: Integers, rng: np.random.Generator, length: int | None = None) -> list[Sampled]:
        return [column.sample(labels, rng, length) for column in self.columns]

    def estimates(self) -> list[ParameterEstimates]:
        return [column.estimates() for column in self.columns]

    def free_parameters(self) -> FreeParameters:
        each = [column.kind.free_parameters() for column in self.columns]
        return FreeParameters.of_columns(
            [one.independent for one in each],
            shared=sum(one.shared for one in each),
            n_values=[size for one in each for size in one.n_values],
            unbounded=any(one.unbounded for one in each),
        )

    def formula(self, cells: list[pa.Array], row: int, column: int, label: int) -> str | None:
        mine = self.columns[column]
        return mine.formula(mine.find_known_words(cells[column][row : row + 1]), label)


@dataclass(frozen=True)
class KnownWords:
    """Known words of one text: their numbers in the vocabulary, and their amounts.

    power: the factor of the evidence of the text (see `tempering`).
    """

    words: Integers
    amounts: Floats
    power: float


@dataclass(frozen=True)
class TextColumn:
    """Evidence of the words of one column."""

    options: TextOptions
    counts: WordCounts

    @cached_property
    def kind(self) -> Kind:
        return KINDS[self.options.kind](self.counts, self.options)

    @cached_property
    def term_weights(self) -> TermWeights:
        return self.kind.term_weights(self.options)

    @property
    def words(self) -> Vocabulary:
        return self.counts.words

    def prepare(self) -> None:
        """Build the index and the scores of a large vocabulary on two threads; small ones are built on demand."""
        if self.counts.size < MIN_WORDS_FOR_THREAD or self.term_weights.presence or CORES == 1:
            return
        with ThreadPoolExecutor(1) as pool:
            index = pool.submit(lambda: self.words.index)
            self.kind.prepare()
            index.result()

    @cached_property
    def _unknown(self) -> UnknownWords:
        """Rule for unknown words: they count as their bucket of rare words, if there is one."""
        numbers = np.full(count_buckets(self.options.max_features), -1, dtype=np.int32)
        for number in range(self.words.bucket_count):
            numbers[bucket_number(self.words[number])] = number
        return UnknownWords(numbers, BUCKET_SEEDS)

    def rows(self, texts: pa.Array) -> SparseRows:
        """Return the amounts of the known words, one row per text; a missing text has none."""
        numbers, bounds = self.options.tokens.look_up(texts, self.words, self._unknown)
        return self.term_weights.of(count_by_text(numbers, bounds, len(self.words)))

    def _occurrences(self, texts: pa.Array) -> SparseRows:
        """Return one cell per occurrence of a known word; equivalent to `rows` if amounts are plain counts."""
        numbers, bounds = self.options.tokens.look_up(texts, self.words, self._unknown)
        return SparseRows(np.ones(numbers.size), numbers, bounds, len(self.words))

    def score(self, texts: pa.Array, weight: float, slot: int, out: Floats) -> None:
        if not len(self.words) or weight == 0.0:
            return
        if self.term_weights.plain and not self.options.tempering:
            self.kind.score(self._occurrences(texts), weight, slot, out)
            return
        rows, part = self.rows(texts), np.zeros((len(texts), 1, out.shape[2]))
        self.kind.score(rows, 1.0, 0, part)
        if texts.null_count:
            part[~find_present(texts)] = 0.0
        out[:, slot] += weight * self._power(rows.sum())[:, None] * part[:, 0]

    def lower(self, column: int) -> TextTerm:
        """Return the export term of this column, given its number."""
        options, weights, size = self.options, self.term_weights, len(self.words)
        seeds = tuple(BUCKET_SEEDS.tolist()) if options.max_features is not None else ()
        present = self.kind.word_scores(np.arange(size), np.ones(size)).present
        absent = zeros = blocked = None
        if weights.presence:
            absent = self.kind.word_scores(np.zeros(0, dtype=np.int64), np.zeros(0)).absent_scores
            sums = Exchange.of(present, absent, np.ones(size))
            zeros, blocked = sums.zeros, sums.blocked
        both = present if absent is None else np.concatenate([present, absent], axis=1)
        rows, row = np.unique(both, axis=0, return_inverse=True)  # many rare words have equal scores
        classes = present.shape[1]
        return TextTerm(
            column,
            options.tokens,
            [str(word) for word in decode_cells(self.words.array)],
            count_buckets(options.max_features),
            seeds,
            weights.term_counts,
            weights.normalize,
            options.tempering,
            rows[:, :classes],
            row.ravel(),
            None if absent is None else rows[:, classes:],
            zeros,
            blocked,
        )

    def log_orders(self, texts: pa.Array) -> Floats | None:
        """Return the log multinomial coefficient of the known words of each text; None if amounts are not counts."""
        return compute_log_orders(self.rows(texts)) if self.kind.counts_orders else None

    def _power(self, length: Floats) -> Floats:
        """Return the factor of the evidence of texts, given the sums of the amounts of their known words."""
        return np.asarray(np.maximum(length, 1.0) ** -self.options.tempering)

    def score_left_out(self, rows: SparseRows, left: LeftOutRows, part: Floats) -> None:
        """Add to part[row, 0, class] the evidence of each text, estimated from all others.

        Without smoothing it may be inexact; see `Kind.left_out_by_formula`.
        """
        length = self.kind.score_left_out(rows, LeftOutTexts(left.labels, left.removed), part)
        part[:, 0] *= self._power(length)[:, None]
        if self.kind.counts_orders:
            part[:, 0] += compute_log_orders(self._drop_own_words(rows, left))[:, None]

    def _drop_own_words(self, rows: SparseRows, left: LeftOutRows) -> SparseRows:
        """Return the counts of words of each text, with 0 for words that are in no other text."""
        removed = np.repeat(left.removed, np.diff(rows.indptr)) * rows.stored
        total = self.counts.total[rows.indices[rows.indptr[0] : rows.indptr[-1]]]
        rest = total - removed
        gone = (removed > 0.0) & ((rest <= 1e-10 * total) | (rest < self.options.min_count))
        return rows.with_values(np.where(gone, 0.0, rows.stored))

    def add_covariance(self, rows: SparseRows, weight: Floats, out: Covariance) -> None:
        """Add the estimation errors; see `Family.add_covariance`. Each text has its own weight."""
        self.kind.add_covariance(rows, (weight * self._power(rows.sum()))[:, None], out)

    def sample(self, labels: Integers, rng: np.random.Generator, length: int | None) -> pa.Array:
        """Draw texts for rows of the given classes."""
        drawn, sizes = self.kind.draw(labels, rng, length)
        words = self.words.array[self.words.bucket_count :].take(pa.array(drawn))
        lists = pa.LargeListArray.from_arrays(np.concatenate([[0], np.cumsum(sizes)]), words)
        return pc.binary_join(lists, pa.scalar(" ", pa.large_string()))

    def estimates(self) -> ParameterEstimates:
        """Return P(word | class), for "bernoulli" the probability that a text contains it; or scores of words."""
        found = {name: np.ascontiguousarray(table.T) for name, table in self.kind.estimates().items()}
        return ParameterEstimates(found, tuple(display_word(word or "") for word in decode_cells(self.words.array)))

    def find_known_words(self, text: pa.Array) -> KnownWords | None:
        """Return the known words of one text; None if it is missing."""
        if text.null_count:
            return None
        rows = self.rows(text)
        stored = slice(0, rows.indptr[1])
        return KnownWords(rows.indices[stored].astype(np.int64), rows.data[stored], float(self._power(rows.sum())[0]))

    def word_scores(self, text: KnownWords) -> WordScores:
        """Return the evidence of one text for each class, word by word."""
        present, absent, absent_scores = self.kind.word_scores(text.words, text.amounts)
        return WordScores(text.power * present, absent, text.power * absent_scores)

    def formula(self, text: KnownWords | None, label: int) -> str | None:
        """Return the likelihood of a text as a formula; None if it has no evidence."""
        if text is None:
            return None
        power = "" if text.power == 1.0 else f"^{text.power:.3g}"
        return self.kind.formula(text.words, text.amounts, power, label)

    def factors(self, text: KnownWords | None) -> list[WordFactor] | None:
        """Return the factors of the likelihood of a text, word by word; None if it is missing or a score."""
        return None if text is None else self.kind.factors(text.words, text.amounts)

    def log_orders_of_words(self, text: KnownWords) -> float | None:
        """Return `log_orders` of one text."""
        if not self.kind.counts_orders:
            return None
        return float(log_gamma(text.amounts.sum() + 1.0) - log_gamma(text.amounts + 1.0).sum())

    def terms(self, name: str) -> DiscriminantTerms | None:
        """Return the evidence as weights of words times amounts; None with tempering, which is not linear."""
        if self.options.tempering:
            return None
        weights, offset = self.kind.linear()

        def amounts(texts: pa.Array) -> Floats:
            dense = self.rows(texts).dense().astype(np.float64)
            dense[~find_present(texts)] = np.nan
            return dense

        words = tuple(f"{name}: {display_word(word or '')}" for word in decode_cells(self.words.array))
        return DiscriminantTerms(words, amounts, np.ascontiguousarray(weights), offset)


def compute_log_orders(rows: SparseRows) -> Floats:
    """Return log m! - sum of log x! for the counts x of each row, with the sum m."""
    ways = rows.with_values(log_gamma(rows.stored + 1.0)).sum()
    return np.asarray(log_gamma(rows.sum() + 1.0) - ways)


def _features_of_column(features: Callable[[pa.Array], Floats], column: int, cells: list[pa.Array]) -> Floats:
    return features(cells[column])
