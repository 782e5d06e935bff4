"""Texts as the words in them."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from deciban.errors import BadCell
from deciban.families.leave_one_out import score_anew
from deciban.families.protocols import Covariance, LeftOut
from deciban.families.support import TEXTS
from deciban.families.text.cells import as_text, present_texts
from deciban.families.text.kinds import KINDS
from deciban.families.text.likelihood import TextColumn, TextLikelihood
from deciban.families.text.options import TextOptions
from deciban.families.text.term_weights import TermWeights
from deciban.families.text.word_counts import WordCounts
from deciban.kernels.text_arrays import LabelledTexts
from deciban.statistics.words import Words, counts_by_class, counts_by_text
from deciban.tables.arrow import take_cells
from deciban.tables.readable import Readable
from deciban.util.arrays import Codes, Floats, Integers
from deciban.util.sparse import SparseRows


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
        The least and the largest number of neighbouring words (or characters) that are counted together.
    lowercase : bool, default=True
        Whether capital letters are made small.
    strip_accents : bool, default=False
        Whether letters lose their accents; also None or "unicode", as in scikit-learn.
    stop_words : sequence of str, default=()
        Words that are left out.
    tokenizer : callable or None, default=None
        A function from a text to its words. It runs in Python and is slow, and a model that has one cannot be saved.
    shortest : int, default=2
        The characters that a word has at least.
    amounts : {"count", "log", "root"}, default="count"
        What a word that is in a text n times counts: n, 1 + log n, or the root of n.
    normalize : bool, default=False
        Whether the amounts of a text are divided by their length, the root of the sum of their squares.
    min_count : float, default=0.0
        Words that were counted less than this are not in the vocabulary.
    most_words : int or None, default=None
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

    holds_texts = True
    support = TEXTS

    @property
    def counts(self) -> Hashable:
        return "Text", self.tokens, self.term_weights, self.most_words

    @property
    def term_weights(self) -> TermWeights:
        """What the words of a text count."""
        return KINDS[self.kind].term_weights(self)

    @property
    def has_default_evidence(self) -> bool:
        """Whether the user has left open what words count and how they are scored."""
        chosen = "kind", "amounts", "normalize", "tempering"
        return all(getattr(self, name) == getattr(Text, name) for name in chosen)

    def read(self, batch: Readable, columns: Sequence[int]) -> list[pa.Array]:
        cells = batch.values(columns)
        if isinstance(cells, np.ndarray):
            raise BadCell(0, None, "it holds numbers, expected text", "use Gaussian() or Categorical() for this column")
        return [as_text(array, k) for k, array in enumerate(cells)]

    def empty(self, classes: int, columns: int) -> Words:
        return Words.empty(classes, columns, self.most_words)

    def count(self, cells: list[pa.Array], labels: Codes, weights: Floats, classes: int) -> Words:
        columns = []
        texts = np.zeros((classes, len(cells)))
        counted = np.flatnonzero((labels >= 0) & (weights > 0.0))
        labelled = LabelledTexts(counted[np.argsort(labels[counted], kind="stable")], labels, weights)
        for j, array in enumerate(cells):
            numbers, bounds, words = self.tokens.learn(array)
            amounts = None
            if not self.term_weights.plain:
                each = counts_by_text(numbers, bounds, len(words))
                amounts, numbers, bounds = self.term_weights.of(each).kernel_arrays()
            columns.append((words, counts_by_class(numbers, bounds, amounts, labelled, len(words), classes)))
            there = (labels >= 0) & present_texts(array)
            texts[:, j] = np.bincount(labels[there], weights[there], classes)
        return Words.of(columns, texts, self.most_words)

    def estimate(self, statistic: Words) -> TextLikelihood:
        columns = tuple(self._column(statistic, j) for j in range(len(statistic.counts)))
        for column in columns:
            column.prepare()
        return TextLikelihood(columns)

    def _column(self, statistic: Words, j: int) -> TextColumn:
        return TextColumn(self, WordCounts.of(statistic, j, self.min_count, self.term_weights.presence))

    def _counted(self, column: TextColumn, statistic: Words, j: int, texts: pa.Array) -> SparseRows:
        """The amounts of the words of texts as they were counted, of those that are in the vocabulary of the column."""
        if self.min_count == 0.0:
            return column.rows(texts)
        everything = replace(self, min_count=0.0)._column(statistic, j)
        return SparseRows.of(everything.rows(texts).matrix()[:, : len(column.words)])  # the others come last

    def score_left_out(
        self, statistic: Words, cells: list[pa.Array], rows: LeftOut, slot: Integers, out: Floats
    ) -> None:
        for j, array in enumerate(cells):
            column = self._column(statistic, j)
            part = np.zeros((rows.labels.size, 1, out.shape[2]))
            column.score_left_out(self._counted(column, statistic, j, array), rows, part)
            part[~present_texts(array)] = 0.0
            alone = column.counts.texts[rows.labels] <= rows.removed * (1.0 + 1e-9)
            again = np.flatnonzero((not column.kind.left_out_by_formula) | ((rows.removed > 0.0) & alone))
            only = statistic.place_columns(np.where(np.arange(len(cells)) == j, 0, -1), 1)
            found = np.zeros((again.size, 1, out.shape[2]))
            score_anew(self, only, [take_cells(array, again)], rows[again], np.zeros(1, dtype=np.int64), found)
            part[again] = found
            out[:, slot[j]] += part[:, 0]

    def add_covariance(
        self, whole: TextLikelihood, statistic: Words, cells: list[pa.Array], weight: Floats, out: Covariance
    ) -> None:
        for j, (array, column) in enumerate(zip(cells, whole.columns, strict=True)):
            if len(column.words):
                column.add_covariance(column.rows(array), weight[j] * present_texts(array), out)
