"""The family of texts: `Text`, its likelihood, and what it has learned of the words of each column."""

from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.special import gammaln

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
from deciban.families.text.options import TermWeights, TextOptions, row_sums
from deciban.families.text.tokens import as_text, present_texts
from deciban.kernels.text_arrays import LabeledTexts, LeftOutTexts, UnknownWords
from deciban.statistics.vocabulary import BUCKET_SEEDS, Vocabulary, bucket_number, count_buckets, display_word
from deciban.statistics.words import Words, count_by_class, count_by_text
from deciban.tables.table import Readable, decode_cells, take_cells
from deciban.util.arrays import CORES, Codes, Floats, Integers
from deciban.util.sparse import SparseRows

# So many words are worth a second thread.
MANY_WORDS = 1 << 14


@dataclass(frozen=True, repr=False)
class Text(TextOptions):
    """Texts as words, each drawn by itself from those of the class: (count + alpha) / (all + alpha * vocabulary).

    Parameters
    ----------
    kind : {"multinomial", "bernoulli", "complement", "lift"}, default="multinomial"
        "multinomial" counts every word of a text. "bernoulli" asks which words are there, and which are not.
        "complement" scores a class by how little the others use the words. "lift" scores it by how much more probable
        each word makes it: log P(class | word) / P(class). The last two are scores, not likelihoods.
    alpha : float, default=1.0
        What is added to every count.
    analyzer : {"word", "char", "char_wb"}, default="word"
        What is counted: words, characters, or characters within words. This and the next five parameters are those of
        scikit-learn's `CountVectorizer`; its words are ours.
    ngram_range : tuple of int, default=(1, 1)
        The least and the largest number of neighboring words (or characters) that are counted together.
    lowercase : bool, default=True
        Whether capital letters are made small.
    strip_accents : bool, default=False
        Whether letters lose their accents; also None or "unicode", as in scikit-learn.
    stop_words : sequence of str, default=()
        Words that are left out.
    tokenizer : callable or None, default=None
        A function from a text to its words. It runs in Python and is slow, and a model that has one cannot be saved.
    min_word_length : int, default=2
        The characters that a word has at least.
    term_counts : {"count", "log", "root"}, default="count"
        What a word that is in a text n times counts: n, 1 + log n, or the root of n.
    normalize : bool, default=False
        Whether the amounts of a text are divided by their length, the root of the sum of their squares.
    min_count : float, default=0.0
        Words that were counted less than this are not in the vocabulary.
    max_features : int or None, default=None
        How many words are kept; rarer ones share a count with others of the same hash. None keeps all.
    tempering : float, default=0.0
        The evidence of a text of n known words counts n ** -tempering times, because words repeat each other.
    linear : float, default=0.0
        Of kind "lift": the share of a lift l that is scored as l - 1 instead of log l.

    See Also
    --------
    Multinomial : counts of words that are columns of a table already.
    BayesClassifier.top_words : the words by which the texts of a class are known.

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
        """What the words of a text count."""
        return KINDS[self.kind].term_weights(self)

    @property
    def has_default_evidence(self) -> bool:
        """Whether the user has left open what words count and how they are scored."""
        chosen = "kind", "term_counts", "normalize", "tempering"
        return all(getattr(self, name) == getattr(Text, name) for name in chosen)

    def read(self, batch: Readable, columns: Sequence[int]) -> list[pa.Array]:
        cells = batch.values(columns)
        if isinstance(cells, np.ndarray):
            raise BadCell(
                0,
                None,
                "it holds numbers, expected text",
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
            numbers, bounds, words = self.tokens.learn(array)
            amounts = None
            if not self.term_weights.plain:
                each = count_by_text(numbers, bounds, len(words))
                amounts, numbers, bounds = self.term_weights.of(each).kernel_arrays()
            columns.append((words, count_by_class(numbers, bounds, amounts, labeled, len(words), classes)))
            there = (labels >= 0) & present_texts(array)
            texts[:, j] = np.bincount(labels[there], weights[there], classes)
        return Words.of(columns, texts, self.max_features)

    def estimate(self, statistic: Words) -> "TextLikelihood":
        columns = tuple(self._column(statistic, j) for j in range(len(statistic.counts)))
        for column in columns:
            column.prepare()
        return TextLikelihood(columns)

    def _column(self, statistic: Words, j: int) -> "TextColumn":
        return TextColumn(self, WordCounts.of(statistic, j, self.min_count, self.term_weights.presence))

    def _counted(self, column: "TextColumn", statistic: Words, j: int, texts: pa.Array) -> SparseRows:
        """The amounts of the words of texts as they were counted, of those that are in the vocabulary of the column."""
        if self.min_count == 0.0:
            return column.rows(texts)
        everything = replace(self, min_count=0.0)._column(statistic, j)
        return SparseRows.of(everything.rows(texts).matrix()[:, : len(column.words)])  # the others come last

    def score_left_out(
        self, statistic: Words, cells: list[pa.Array], rows: LeftOutRows, slot: Integers, out: Floats
    ) -> None:
        for j, array in enumerate(cells):
            column = self._column(statistic, j)
            part = np.zeros((rows.labels.size, 1, out.shape[2]))
            column.score_left_out(self._counted(column, statistic, j, array), rows, part)
            part[~present_texts(array)] = 0.0
            alone = column.counts.texts[rows.labels] <= rows.removed * (1.0 + 1e-9)
            again = np.flatnonzero((not column.kind.left_out_by_formula) | ((rows.removed > 0.0) & alone))
            only = statistic.reindex_columns(np.where(np.arange(len(cells)) == j, 0, -1), 1)
            found = np.zeros((again.size, 1, out.shape[2]))
            score_by_refitting(self, only, [take_cells(array, again)], rows[again], np.zeros(1, dtype=np.int64), found)
            part[again] = found
            out[:, slot[j]] += part[:, 0]

    def add_covariance(
        self, whole: "TextLikelihood", statistic: Words, cells: list[pa.Array], weight: Floats, out: Covariance
    ) -> None:
        for j, (array, column) in enumerate(zip(cells, whole.columns, strict=True)):
            if len(column.words):
                column.add_covariance(column.rows(array), weight[j] * present_texts(array), out)


@dataclass(frozen=True)
class TextLikelihood(BaseLikelihood):
    """The evidence of the words of each column."""

    columns: "tuple[TextColumn, ...]"

    accepts_length: ClassVar[bool] = True

    @property
    def text_columns(self) -> "tuple[TextColumn, ...]":
        return self.columns

    def score(self, cells: list[pa.Array], weight: Floats, slot: Integers, out: Floats) -> None:
        for j, texts in enumerate(cells):
            self.columns[j].score(texts, float(weight[j]), int(slot[j]), out)

    def log_common_factor(self, cells: list[pa.Array]) -> Floats | None:
        """The logarithm of the number of orders of the words, as of `Multinomial`."""
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
        return [column.estimated() for column in self.columns]

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
        return mine.formula(mine.known_words(cells[column][row : row + 1]), label)


@dataclass(frozen=True)
class KnownWords:
    """The words of one text that are in the vocabulary: their numbers there, and their amounts.

    power: what the evidence of the text is multiplied by, because it is long.
    """

    words: Integers
    amounts: Floats
    power: float


@dataclass(frozen=True)
class TextColumn:
    """The evidence of the words of one column."""

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
        """Make what texts are scored by at once, of many words on two threads; of few it is made when it is needed."""
        if self.counts.size < MANY_WORDS or self.term_weights.presence or CORES == 1:
            return
        with ThreadPoolExecutor(1) as pool:
            index = pool.submit(lambda: self.words.index)
            self.kind.prepare()
            index.result()

    @cached_property
    def _unknown(self) -> UnknownWords:
        """Words that are not known count as the bucket of rare words that they are in, if there is any."""
        numbers = np.full(count_buckets(self.options.max_features), -1, dtype=np.int32)
        for number in range(self.words.bucket_count):
            numbers[bucket_number(self.words[number])] = number
        return UnknownWords(numbers, BUCKET_SEEDS)

    def rows(self, texts: pa.Array) -> SparseRows:
        """The amounts of the words that are known, each text a row; a text that is missing has none."""
        numbers, bounds = self.options.tokens.look_up(texts, self.words, self._unknown)
        return self.term_weights.of(count_by_text(numbers, bounds, len(self.words)))

    def _occurrences(self, texts: pa.Array) -> SparseRows:
        """The same as `rows` where amounts are counts, with a cell for each time that a word is there."""
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
            part[~present_texts(texts)] = 0.0
        out[:, slot] += weight * self._power(row_sums(rows))[:, None] * part[:, 0]

    def lower(self, column: int) -> TextTerm:
        """The term of the words of the column of this number."""
        options, weights, size = self.options, self.term_weights, len(self.words)
        seeds = tuple(BUCKET_SEEDS.tolist()) if options.max_features is not None else ()
        present = self.kind.word_scores(np.arange(size), np.ones(size)).present
        absent = zeros = blocked = None
        if weights.presence:
            absent = self.kind.word_scores(np.zeros(0, dtype=np.int64), np.zeros(0)).absent_scores
            sums = Exchange.of(present, absent, np.ones(size))
            zeros, blocked = sums.zeros, sums.blocked
        both = present if absent is None else np.concatenate([present, absent], axis=1)
        rows, row = np.unique(both, axis=0, return_inverse=True)  # rare words have the same
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
        """The logarithm of the multinomial coefficient of each text: of the number of orders of its known words. None
        where the evidence is not that of counts of words."""
        return log_orders_of(self.rows(texts)) if self.kind.counts_orders else None

    def _power(self, length: Floats) -> Floats:
        """What the evidence of texts is multiplied by whose known words have these sums of amounts."""
        return np.asarray(np.maximum(length, 1.0) ** -self.options.tempering)

    def score_left_out(self, rows: SparseRows, left: LeftOutRows, part: Floats) -> None:
        """Add to part[row, 0, class] the evidence of each text by all others; without smoothing it may be wrong."""
        length = self.kind.score_left_out(rows, LeftOutTexts(left.labels, left.removed), part)
        part[:, 0] *= self._power(length)[:, None]
        if self.kind.counts_orders:
            part[:, 0] += log_orders_of(self._left_of(rows, left))[:, None]

    def _left_of(self, rows: SparseRows, left: LeftOutRows) -> SparseRows:
        """The counts of words of each text that are known without it: a word that is in no other text is not."""
        removed = np.repeat(left.removed, np.diff(rows.indptr)) * rows.stored
        total = self.counts.total[rows.indices[rows.indptr[0] : rows.indptr[-1]]]
        rest = total - removed
        gone = (removed > 0.0) & ((rest <= 1e-10 * total) | (rest < self.options.min_count))
        return rows.with_values(np.where(gone, 0.0, rows.stored))

    def add_covariance(self, rows: SparseRows, weight: Floats, out: Covariance) -> None:
        """See `Family.add_covariance`; each text has a weight of its own."""
        self.kind.add_covariance(rows, (weight * self._power(row_sums(rows)))[:, None], out)

    def sample(self, labels: Integers, rng: np.random.Generator, length: int | None) -> pa.Array:
        """Texts drawn for rows of the given classes: words in the order in which they were drawn."""
        drawn, sizes = self.kind.draw(labels, rng, length)
        words = self.words.array[self.words.bucket_count :].take(pa.array(drawn))
        lists = pa.LargeListArray.from_arrays(np.concatenate([[0], np.cumsum(sizes)]), words)
        return pc.binary_join(lists, pa.scalar(" ", pa.large_string()))

    def estimated(self) -> ParameterEstimates:
        """P(word | class): that a word of the class is this one, or ("bernoulli") that a text has it; or its score."""
        found = {name: np.ascontiguousarray(table.T) for name, table in self.kind.estimates().items()}
        return ParameterEstimates(found, tuple(display_word(word or "") for word in decode_cells(self.words.array)))

    def known_words(self, text: pa.Array) -> KnownWords | None:
        """The known words of one text; None where it is missing."""
        if text.null_count:
            return None
        rows = self.rows(text)
        stored = slice(0, rows.indptr[1])
        return KnownWords(
            rows.indices[stored].astype(np.int64), rows.data[stored], float(self._power(row_sums(rows))[0])
        )

    def word_scores(self, text: KnownWords) -> WordScores:
        """The evidence of one text for each class, word by word."""
        present, absent, absent_scores = self.kind.word_scores(text.words, text.amounts)
        return WordScores(text.power * present, absent, text.power * absent_scores)

    def formula(self, text: KnownWords | None, label: int) -> str | None:
        """How the likelihood of a text was found; None where it is no evidence."""
        if text is None:
            return None
        power = "" if text.power == 1.0 else f"^{text.power:.3g}"
        return self.kind.formula(text.words, text.amounts, power, label)

    def factors(self, text: KnownWords | None) -> list[WordFactor] | None:
        """The factors of the likelihood of a text, word by word; None where there are none."""
        return None if text is None else self.kind.factors(text.words, text.amounts)

    def log_orders_of_words(self, text: KnownWords) -> float | None:
        """The same as `log_orders` of one text."""
        if not self.kind.counts_orders:
            return None
        return float(gammaln(text.amounts.sum() + 1.0) - gammaln(text.amounts + 1.0).sum())

    def terms(self, name: str) -> DiscriminantTerms | None:
        """The evidence as weights of words times their amounts; None where long texts count less."""
        if self.options.tempering:
            return None
        weights, offset = self.kind.linear()

        def amounts(texts: pa.Array) -> Floats:
            dense = self.rows(texts).matrix().toarray().astype(np.float64)
            dense[~present_texts(texts)] = np.nan
            return dense

        words = tuple(f"{name}: {display_word(word or '')}" for word in decode_cells(self.words.array))
        return DiscriminantTerms(words, amounts, np.ascontiguousarray(weights), offset)


def log_orders_of(rows: SparseRows) -> Floats:
    """log m! - sum of log x! of the counts x of each row, m their sum."""
    ways = row_sums(rows.with_values(gammaln(rows.stored + 1.0)))
    return np.asarray(gammaln(row_sums(rows) + 1.0) - ways)


def _features_of_column(features: Callable[[pa.Array], Floats], column: int, cells: list[pa.Array]) -> Floats:
    return features(cells[column])
