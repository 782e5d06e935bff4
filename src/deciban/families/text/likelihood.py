"""The likelihood of Text: the evidence of the words of texts."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deciban.arrays import CORES, Floats, Integers
from deciban.families.bases import BaseLikelihood
from deciban.families.estimates import Estimated, Parameters
from deciban.families.protocols import Covariance, LeftOut, Sampled
from deciban.families.text.cells import present_texts
from deciban.families.text.kind import Kind, WordScores
from deciban.families.text.kinds import KINDS
from deciban.families.text.options import TextOptions
from deciban.families.text.term_weights import TermWeights, row_sums
from deciban.families.text.word_counts import WordCounts
from deciban.kernels.text_arrays import LeftOutTexts, UnknownWords
from deciban.sparse import SparseRows
from deciban.statistics.vocabulary import BUCKET_SEEDS, Vocabulary, bucket_number, buckets_beyond, shown_word
from deciban.statistics.words import counts_by_text
from deciban.tables.arrow import decoded_cells

# So many words are worth a second thread.
MANY_WORDS = 1 << 14


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
        numbers = np.full(buckets_beyond(self.options.most_words), -1, dtype=np.int32)
        for number in range(self.words.bucket_count):
            numbers[bucket_number(self.words[number])] = number
        return UnknownWords(numbers, BUCKET_SEEDS)

    def rows(self, texts: pa.Array) -> SparseRows:
        """The amounts of the words that are known, each text a row; a text that is missing has none."""
        numbers, bounds = self.options.tokens.look_up(texts, self.words, self._unknown)
        return self.term_weights.of(counts_by_text(numbers, bounds, len(self.words)))

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

    def _power(self, length: Floats) -> Floats:
        """What the evidence of texts is multiplied by whose known words have these sums of amounts."""
        return np.asarray(np.maximum(length, 1.0) ** -self.options.tempering)

    def score_left_out(self, rows: SparseRows, left: LeftOut, part: Floats) -> None:
        """Add to part[row, 0, class] the evidence of each text by all others; without smoothing it may be wrong."""
        length = self.kind.score_left_out(rows, LeftOutTexts(left.labels, left.removed), part)
        part[:, 0] *= self._power(length)[:, None]

    def add_covariance(self, rows: SparseRows, weight: Floats, out: Covariance) -> None:
        """See `Family.add_covariance`; each text has a weight of its own."""
        self.kind.add_covariance(rows, (weight * self._power(row_sums(rows)))[:, None], out)

    def sample(self, labels: Integers, rng: np.random.Generator, length: int | None) -> pa.Array:
        """Texts drawn for rows of the given classes: words in the order in which they were drawn."""
        drawn, sizes = self.kind.draw(labels, rng, length)
        words = self.words.array[self.words.bucket_count :].take(pa.array(drawn))
        lists = pa.LargeListArray.from_arrays(np.concatenate([[0], np.cumsum(sizes)]), words)
        return pc.binary_join(lists, pa.scalar(" ", pa.large_string()))

    def estimated(self) -> Estimated:
        """P(word | class): that a word of the class is this one, or ("bernoulli") that a text has it; or its score."""
        found = {name: np.ascontiguousarray(table.T) for name, table in self.kind.estimates().items()}
        return Estimated(found, tuple(shown_word(word or "") for word in decoded_cells(self.words.array)))

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


@dataclass(frozen=True)
class TextLikelihood(BaseLikelihood):
    """The evidence of the words of each column."""

    columns: tuple[TextColumn, ...]

    @property
    def texts(self) -> tuple[TextColumn, ...]:
        return self.columns

    def score(self, cells: list[pa.Array], weight: Floats, slot: Integers, out: Floats) -> None:
        for j, texts in enumerate(cells):
            self.columns[j].score(texts, float(weight[j]), int(slot[j]), out)

    def sample(self, labels: Integers, rng: np.random.Generator, length: int | None = None) -> list[Sampled]:
        return [column.sample(labels, rng, length) for column in self.columns]

    def estimates(self) -> list[Estimated]:
        return [column.estimated() for column in self.columns]

    def parameters(self) -> Parameters:
        each = [column.kind.parameters() for column in self.columns]
        return Parameters.of_columns(
            [one.apart for one in each],
            shared=sum(one.shared for one in each),
            sizes=[size for one in each for size in one.sizes],
            unbounded=any(one.unbounded for one in each),
        )

    def formula(self, cells: list[pa.Array], row: int, column: int, label: int) -> str | None:
        mine = self.columns[column]
        return mine.formula(mine.known_words(cells[column][row : row + 1]), label)
